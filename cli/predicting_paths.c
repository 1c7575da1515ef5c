/* The paths of an answer and the known triples it rests on, as JSON and as text. */
#include "component.h"
#include "predicting.h"
#include "text.h"

static void triple_json(json_out *json, const vlp_dataset *data, vlp_triple triple) {
    json_string(json, "head", vlp_dataset_entity_name(data, triple.head));
    json_string(json, "relation", vlp_dataset_relation_name(data, triple.relation));
    json_string(json, "tail", vlp_dataset_entity_name(data, triple.tail));
}

void predicting_paths_json(json_out *json, const vlp_dataset *data, const vlp_prediction *prediction) {
    const vlp_support *support = prediction->support;
    if (!support) return;
    json_array(json, "paths");
    for (int32_t i = 0; i < prediction->path_count; i++) {
        const vlp_path *path = &prediction->paths[i];
        json_object(json, NULL);
        json_number(json, "weight", path->weight);
        json_array(json, "triples");
        for (int32_t j = 0; j < path->count; j++) {
            json_object(json, NULL);
            triple_json(json, data, path->triples[j].triple);
            json_bool(json, "forward", path->triples[j].forward);
            json_end_object(json);
        }
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
    json_number(json, "rank", support->rank_before);
    if (support->count == 0) {
        json_string(json, "without", NULL);
        return;
    }
    json_object(json, "without");
    json_array(json, "triples");
    for (int32_t i = 0; i < support->count; i++) {
        json_object(json, NULL);
        triple_json(json, data, support->triples[i]);
        json_end_object(json);
    }
    json_end_array(json);
    json_number(json, "rank", support->rank);
    json_number(json, "score", support->score);
    json_number(json, "path", support->path);
    json_end_object(json);
}

static void print_step(const vlp_dataset *data, vlp_triple triple, bool forward) {
    printf(forward ? " -%s-> %s" : " <-%s- %s", text_shown(cli_relation(data, triple.relation)),
           predicting_readable(data, forward ? triple.tail : triple.head));
}

static void print_path(const vlp_dataset *data, const vlp_path *path) {
    const vlp_path_triple *first = &path->triples[0];
    printf("        %4.2f  %s", path->weight,
           predicting_readable(data, first->forward ? first->triple.head : first->triple.tail));
    for (int32_t i = 0; i < path->count; i++)
        print_step(data, path->triples[i].triple, path->triples[i].forward);
    putchar('\n');
}

void predicting_paths_text(const vlp_dataset *data, const vlp_prediction *prediction) {
    const vlp_support *support = prediction->support;
    if (!support) return;
    if (prediction->path_count == 0) {
        printf("        no path: no chain of known triples that the path model reads leads to it\n");
        return;
    }
    for (int32_t i = 0; i < prediction->path_count; i++) print_path(data, &prediction->paths[i]);
    if (support->count == 0) {
        printf("        no set of 4 known triples was found without which it falls from rank %g\n",
               support->rank_before);
        return;
    }
    printf("        without %s it falls from rank %g to %g (f_p %.4f to %.4f):\n",
           support->count == 1 ? "this known triple" : "these known triples", support->rank_before,
           support->rank, prediction->parts[VLP_PATH], support->path);
    for (int32_t i = 0; i < support->count; i++) {
        printf("              %s", predicting_readable(data, support->triples[i].head));
        print_step(data, support->triples[i], true);
        putchar('\n');
    }
}
