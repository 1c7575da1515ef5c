#include "results_json.h"

#include <math.h>
#include <stdio.h>

static const char *const split_names[VLP_SPLITS] = {"train", "valid", "test"};
static const char *const mapping_names[4] = {"1-1", "1-N", "N-1", "N-N"};
const char *const group_names[] = {"relation", "side", "mapping", "distance"};

void component_parts_json(json_out *json, const double *parts) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        json_number(json, vlp_component_name((vlp_component)c), parts[c]);
}

const char *group_text(const vlp_dataset *data, group_kind kind, int32_t value) {
    switch (kind) {
    case GROUP_RELATION:
        return vlp_dataset_relation_name(data, value);
    case GROUP_SIDE:
        return value ? "tail" : "head";
    case GROUP_MAPPING:
        return mapping_names[value];
    case GROUP_DISTANCE:
        break;
    }
    return value < 0 ? "no path" : NULL;
}

static void metrics_members(json_out *json, const vlp_metrics *metrics) {
    json_integer(json, "queries", metrics->queries);
    json_number(json, "mrr", metrics->mrr);
    json_number(json, "mr", metrics->mr);
    json_number(json, "amri", metrics->amri);
    json_number(json, "hits@1", metrics->hits1);
    json_number(json, "hits@3", metrics->hits3);
    json_number(json, "hits@10", metrics->hits10);
}

static void metrics_json(json_out *json, const char *key, const vlp_metrics *metrics) {
    json_object(json, key);
    metrics_members(json, metrics);
    json_end_object(json);
}

static void groups_json(json_out *json, const vlp_dataset *data, group_kind kind,
                        const vlp_groups *groups) {
    char key[32];
    snprintf(key, sizeof key, "by_%s", group_names[kind]);
    json_array(json, key);
    for (int64_t i = 0; i < groups->count; i++) {
        const char *text = group_text(data, kind, groups->items[i].value);
        json_object(json, NULL);
        if (text && groups->items[i].value >= 0)
            json_string(json, group_names[kind], text);
        else if (text)
            json_string(json, group_names[kind], NULL);
        else
            json_integer(json, group_names[kind], groups->items[i].value);
        metrics_members(json, &groups->items[i].metrics);
        component_parts_json(json, groups->items[i].alone);
        json_end_object(json);
    }
    json_end_array(json);
}

static void among_json(json_out *json, const vlp_evaluation *evaluation) {
    json_object(json, "among");
    json_integer(json, "candidates", evaluation->among);
    json_number(json, "hits@10", evaluation->hits10_among.middle);
    json_array(json, "hits@10_interval");
    json_number(json, NULL, evaluation->hits10_among.low);
    json_number(json, NULL, evaluation->hits10_among.high);
    json_end_array(json);
    json_number(json, "baseline_pagerank", evaluation->pagerank_hits10_among);
    json_end_object(json);
}

/* What was drawn at random, and of how many; nothing where nothing was. */
static void sampled_json(json_out *json, const vlp_dataset *data, const vlp_evaluation *evaluation) {
    if (evaluation->triples < evaluation->split_triples) {
        json_object(json, "sampled_triples");
        json_integer(json, "triples", evaluation->triples);
        json_integer(json, "of", evaluation->split_triples);
        json_end_object(json);
    }
    if (evaluation->sample > 0) {
        json_object(json, "sampled_candidates");
        json_integer(json, "candidates", evaluation->sample);
        json_integer(json, "of", vlp_dataset_entity_count(data));
        json_end_object(json);
    }
}

/* The MRR of f less that of each component alone: [low, middle, high], 95%, paired. */
static void gain_json(json_out *json, const vlp_evaluation *evaluation) {
    json_object(json, "gain");
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        vlp_interval gain = {(double)NAN, (double)NAN, (double)NAN}; /* null where memory is missing */
        if (!(evaluation->components >> c & 1)) continue;
        (void)vlp_evaluation_compare(&gain, evaluation, (vlp_ranked_by)(VLP_BY_F_G + c), evaluation,
                                     VLP_BY_F);
        json_array(json, vlp_component_name((vlp_component)c));
        json_number(json, NULL, gain.low);
        json_number(json, NULL, gain.middle);
        json_number(json, NULL, gain.high);
        json_end_array(json);
    }
    json_end_object(json);
}

void evaluation_json(json_out *json, const vlp_dataset *data, const vlp_evaluation *evaluation) {
    json_object(json, NULL);
    json_string(json, "split", split_names[evaluation->split]);
    json_integer(json, "queries", evaluation->queries);
    sampled_json(json, data, evaluation);
    metrics_json(json, "both", &evaluation->both);
    metrics_json(json, "head", &evaluation->head);
    metrics_json(json, "tail", &evaluation->tail);
    metrics_json(json, "optimistic", &evaluation->optimistic);
    metrics_json(json, "pessimistic", &evaluation->pessimistic);
    if (evaluation->horizontal_only)
        json_string(json, "lambda", NULL);
    else
        json_number(json, "lambda", evaluation->lambda);
    json_number(json, "macro_mrr", evaluation->macro_mrr);
    json_array(json, "mrr_interval");
    json_number(json, NULL, evaluation->interval.low);
    json_number(json, NULL, evaluation->interval.high);
    json_end_array(json);
    groups_json(json, data, GROUP_RELATION, &evaluation->by_relation);
    groups_json(json, data, GROUP_SIDE, &evaluation->by_side);
    groups_json(json, data, GROUP_MAPPING, &evaluation->by_mapping);
    groups_json(json, data, GROUP_DISTANCE, &evaluation->by_distance);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if ((evaluation->components >> c & 1))
            metrics_json(json, vlp_component_name((vlp_component)c), &evaluation->alone[c]);
    json_object(json, "weights");
    component_parts_json(json, evaluation->weights);
    json_end_object(json);
    gain_json(json, evaluation);
    if (evaluation->control.queries) {
        metrics_json(json, "control", &evaluation->control);
        json_array(json, "control_gain_interval");
        json_number(json, NULL, evaluation->control_gain.low);
        json_number(json, NULL, evaluation->control_gain.high);
        json_end_array(json);
    }
    if (isfinite(evaluation->auc_pr)) json_number(json, "auc_pr", evaluation->auc_pr);
    metrics_json(json, "baseline_frequency", &evaluation->frequency);
    metrics_json(json, "baseline_vote", &evaluation->vote);
    if (evaluation->pagerank.queries) metrics_json(json, "baseline_pagerank", &evaluation->pagerank);
    if (evaluation->among > 0) among_json(json, evaluation);
    json_end_object(json);
}
