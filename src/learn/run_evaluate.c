/* vlp_run_evaluate: ranks of a split, and every figure that follows from them. */
#include <string.h>

#include "eval/baselines.h"
#include "learn/run_inside.h"

enum { MIXTURES = 3, BOOTSTRAP_ROUNDS = 1000 }; /* f, f_g, f_c */

static vlp_metrics side_metrics(const vlp_rank *ranks, int64_t queries, bool tail, uint8_t *selected) {
    for (int64_t i = 0; i < queries; i++) selected[i] = (i < queries / 2) == tail;
    return vlp_metrics_compute(ranks, queries, VLP_REALISTIC, selected);
}

static vlp_status set_baselines(vlp_evaluation *out, const vlp_run *run, vlp_split split,
                                unsigned filter) {
    vlp_filter *known = NULL;
    vlp_status status = VLP_OK;
    vlp_rank *ranks = vlp_alloc((size_t)out->queries, sizeof *ranks);
    if (!ranks) return vlp_fail_memory("baselines");
    VLP_CHECK(vlp_filter_new(&known, run->dataset, filter));
    VLP_CHECK(vlp_baseline_frequency(ranks, run->dataset, split, known));
    out->frequency = vlp_metrics_compute(ranks, out->queries, VLP_REALISTIC, NULL);
    int32_t references = run->settings.references > 0 ? run->settings.references : 8;
    VLP_CHECK(vlp_baseline_vote(ranks, run->dataset, split, known, references,
                                run->settings.references_per_head, run->settings.threads));
    out->vote = vlp_metrics_compute(ranks, out->queries, VLP_REALISTIC, NULL);
out:
    vlp_filter_free(known);
    vlp_free(ranks);
    return status;
}

static vlp_status set_groups(vlp_evaluation *out, const vlp_run *run, const vlp_rank *ranks) {
    vlp_status status = VLP_OK;
    vlp_query_kind *kinds = vlp_alloc((size_t)out->queries, sizeof *kinds);
    if (!kinds) return vlp_fail_memory("breakdowns");
    VLP_CHECK(vlp_query_kinds(kinds, run->dataset, out->split, run->settings.threads));
    VLP_CHECK(vlp_groups_compute(&out->by_relation, ranks, kinds, out->queries, VLP_BY_RELATION));
    VLP_CHECK(vlp_groups_compute(&out->by_side, ranks, kinds, out->queries, VLP_BY_SIDE));
    VLP_CHECK(vlp_groups_compute(&out->by_mapping, ranks, kinds, out->queries, VLP_BY_MAPPING));
    VLP_CHECK(vlp_groups_compute(&out->by_distance, ranks, kinds, out->queries, VLP_BY_DISTANCE));
    VLP_CHECK(vlp_metrics_macro_mrr(&out->macro_mrr, ranks, kinds, out->queries));
out:
    vlp_free(kinds);
    return status;
}

static vlp_status set_metrics(vlp_evaluation *out, const vlp_run *run, const vlp_ranking *ranking) {
    int64_t queries = ranking->queries;
    const vlp_rank *ranks = vlp_ranking_of(ranking, 0);
    uint8_t *selected = vlp_alloc((size_t)queries, 1);
    if (!selected) return vlp_fail_memory("metrics");
    out->queries = queries;
    out->both = vlp_metrics_compute(ranks, queries, VLP_REALISTIC, NULL);
    out->tail = side_metrics(ranks, queries, true, selected);
    out->head = side_metrics(ranks, queries, false, selected);
    vlp_free(selected);
    out->optimistic = vlp_metrics_compute(ranks, queries, VLP_OPTIMISTIC, NULL);
    out->pessimistic = vlp_metrics_compute(ranks, queries, VLP_PESSIMISTIC, NULL);
    out->horizontal = vlp_metrics_compute(vlp_ranking_of(ranking, 1), queries, VLP_REALISTIC, NULL);
    if (run->settings.vertical)
        out->vertical = vlp_metrics_compute(vlp_ranking_of(ranking, 2), queries, VLP_REALISTIC, NULL);
    return vlp_metrics_bootstrap(&out->interval, ranks, NULL, queries, BOOTSTRAP_ROUNDS,
                                 run->settings.seed, run->settings.threads);
}

vlp_status vlp_run_evaluate(vlp_evaluation **out, vlp_run *run, const vlp_evaluation_options *given) {
    *out = NULL;
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    if (given) options = *given;
    if (run->dataset->splits[options.split].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "the data set has no %s to evaluate",
                        vlp_split_names[options.split]);
    unsigned filter =
        options.filter ? options.filter : 1u << VLP_TRAIN | 1u << VLP_VALID | 1u << options.split;
    vlp_mixture chosen = run->settings.vertical ? run->progress.mixture : (vlp_mixture){0, 1};
    const vlp_mixture mixtures[MIXTURES] = {chosen, {0, 1}, {1, 0}};
    vlp_ranking_options ranking_options = {.split = options.split,
                                           .filter = filter,
                                           .mixtures = mixtures,
                                           .mixture_count = run->settings.vertical ? MIXTURES : 2,
                                           .references = run->settings.references,
                                           .references_per_head = run->settings.references_per_head,
                                           .threads = run->settings.threads,
                                           .observer = options.observer};
    vlp_ranking *ranking = NULL;
    vlp_status status = VLP_OK;
    vlp_evaluation *evaluation = vlp_alloc_zero(1, sizeof *evaluation);
    if (!evaluation) return vlp_fail_memory("an evaluation");
    evaluation->split = options.split;
    evaluation->lambda = (double)chosen.horizontal;
    evaluation->horizontal_only = chosen.vertical == 0;
    VLP_CHECK(vlp_ranking_compute(&ranking, run->model, run->dataset, &ranking_options));
    VLP_CHECK(set_metrics(evaluation, run, ranking));
    VLP_CHECK(set_baselines(evaluation, run, options.split, filter));
    VLP_CHECK(set_groups(evaluation, run, vlp_ranking_of(ranking, 0)));
out:
    vlp_ranking_free(ranking);
    if (status != VLP_OK) {
        vlp_evaluation_free(evaluation);
        return status;
    }
    *out = evaluation;
    return VLP_OK;
}

void vlp_evaluation_free(vlp_evaluation *evaluation) {
    if (!evaluation) return;
    vlp_groups_free(&evaluation->by_relation);
    vlp_groups_free(&evaluation->by_side);
    vlp_groups_free(&evaluation->by_mapping);
    vlp_groups_free(&evaluation->by_distance);
    vlp_free(evaluation);
}
