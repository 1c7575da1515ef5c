#include "relations.h"

#include "component.h"
#include "text.h"

/* Explains one relation; *out stays NULL unless it is asked for. */
static vlp_status explain(vlp_predictions **out, const relations_output *output, vlp_entity_pair pair,
                          const vlp_relation_prediction *prediction) {
    *out = NULL;
    if (!output->predict->explain) return VLP_OK;
    vlp_query query = {pair.head, prediction->relation, prediction->edge};
    return vlp_run_explain(out, output->run, &query, &pair.tail, 1, output->predict);
}

/* The triple that a prediction states. */
static vlp_triple stated(const vlp_dataset *data, vlp_entity_pair pair,
                         const vlp_relation_prediction *prediction) {
    int32_t relations = vlp_dataset_relation_count(data);
    return prediction->relation < relations
               ? (vlp_triple){pair.head, prediction->relation, pair.tail}
               : (vlp_triple){pair.tail, prediction->relation - relations, pair.head};
}

static vlp_status prediction_json(json_out *json, const relations_output *out, vlp_entity_pair pair,
                                  const vlp_relation_prediction *prediction) {
    const vlp_dataset *data = out->data;
    vlp_triple triple = stated(data, pair, prediction);
    vlp_predictions *explained;
    vlp_status status = explain(&explained, out, pair, prediction);
    if (status != VLP_OK) return status;
    json_object(json, NULL);
    json_string(json, "head", vlp_dataset_entity_name(data, triple.head));
    json_string(json, "relation", vlp_dataset_relation_name(data, triple.relation));
    json_string(json, "tail", vlp_dataset_entity_name(data, triple.tail));
    json_bool(json, "inverse", prediction->relation >= vlp_dataset_relation_count(data));
    json_number(json, "score", prediction->score);
    json_number(json, "tail_log_probability", prediction->tail_log_probability);
    json_number(json, "head_log_probability", prediction->head_log_probability);
    json_number(json, "f", prediction->f);
    component_parts_json(json, prediction->parts);
    json_bool(json, "known", prediction->known);
    if (explained) {
        const vlp_answers *answers = vlp_predictions_get(explained, 0);
        predicting_paths_json(json, data, &answers->predictions[0]);
        predicting_references_json(json, data, answers, &answers->predictions[0]);
    }
    json_end_object(json);
    vlp_predictions_free(explained);
    return VLP_OK;
}

vlp_status relations_json(json_out *json, const relations_output *out,
                          const vlp_relation_answers *answers) {
    vlp_status status = VLP_OK;
    json_string(json, "head", vlp_dataset_entity_name(out->data, answers->pair.head));
    json_string(json, "relation", "?");
    json_string(json, "tail", vlp_dataset_entity_name(out->data, answers->pair.tail));
    json_array(json, "predictions");
    for (int32_t i = 0; status == VLP_OK && i < answers->prediction_count; i++)
        status = prediction_json(json, out, answers->pair, &answers->predictions[i]);
    json_end_array(json);
    return status;
}

/* "-mother->", or "<-mother-" from the tail entity to the head entity; in one static buffer. */
static const char *arrow(const vlp_dataset *data, const vlp_relation_prediction *prediction) {
    static char text[512];
    int32_t relations = vlp_dataset_relation_count(data);
    bool forward = prediction->relation < relations;
    snprintf(text, sizeof text, "%s%s%s", forward ? "-" : "<-",
             text_shown(vlp_dataset_relation_name(data, prediction->relation % relations)),
             forward ? "->" : "-");
    return text;
}

vlp_status relations_text(const relations_output *out, const vlp_relation_answers *answers) {
    enum { MAX_COLUMNS = 64 }; /* longer names are not aligned */
    const vlp_dataset *data = out->data;
    vlp_status status = VLP_OK;
    int widest = 0;
    printf("%s  ?  %s\n", predicting_readable(data, answers->pair.head),
           predicting_readable(data, answers->pair.tail));
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        int width = text_columns(arrow(data, &answers->predictions[i]));
        if (width > widest && width <= MAX_COLUMNS) widest = width;
    }
    for (int32_t i = 0; status == VLP_OK && i < answers->prediction_count; i++) {
        const vlp_relation_prediction *prediction = &answers->predictions[i];
        vlp_predictions *explained;
        status = explain(&explained, out, answers->pair, prediction);
        if (status != VLP_OK) break;
        printf("%5d  ", i + 1);
        text_print(arrow(data, prediction), widest);
        printf("  %8.4f   f %8.4f", prediction->score, prediction->f);
        component_parts_print(out->info->components, prediction->parts);
        printf("%s\n", prediction->known ? "   known" : "");
        if (explained) {
            const vlp_answers *one = vlp_predictions_get(explained, 0);
            predicting_paths_text(data, &one->predictions[0]);
            predicting_references_text(data, one, &one->predictions[0], out->info);
        }
        vlp_predictions_free(explained);
    }
    return status;
}

void relations_table(const vlp_dataset *data, const vlp_relation_answers *answers) {
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_relation_prediction *prediction = &answers->predictions[i];
        vlp_triple triple = stated(data, answers->pair, prediction);
        printf("%s\t%s\t%s\trelation\t%d\t%.6g\t%s\n",
               text_field(vlp_dataset_entity_name(data, triple.head)),
               text_field(vlp_dataset_relation_name(data, triple.relation)),
               text_field(vlp_dataset_entity_name(data, triple.tail)), i + 1, prediction->score,
               prediction->known ? "known" : "new");
    }
}
