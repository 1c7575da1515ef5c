/* Scores of triples, asked both ways. */
#include "run/score.h"

#include <math.h>

#include "base/options.h"

int64_t vlp_graph_find(const vlp_graph *graph, vlp_triple triple) {
    int64_t count, first = vlp_graph_slots(graph, triple.head, triple.relation, &count);
    for (int64_t slot = first; slot < first + count; slot++)
        if (graph->neighbor[slot] == triple.tail) return graph->edge[slot];
    return -1;
}

/* One direction of a batch. */
static vlp_status score_side(vlp_top *out, vlp_predictor *predictor, const vlp_graph *graph,
                             const vlp_triple *triples, int64_t count, bool tails, vlp_query *queries,
                             int32_t *answers) {
    for (int64_t i = 0; i < count; i++) {
        vlp_triple triple = triples[i];
        queries[i] = (vlp_query){tails ? triple.head : triple.tail,
                                 tails ? triple.relation : triple.relation + graph->relations,
                                 vlp_graph_find(graph, triple)};
        answers[i] = tails ? triple.tail : triple.head;
    }
    return vlp_predictor_score(out, predictor, queries, answers, count);
}

vlp_status vlp_triples_score(vlp_score *out, vlp_predictor *predictor, const vlp_graph *graph,
                             const vlp_triple *triples, int64_t count, const vlp_observer *observer) {
    unsigned components = vlp_predictor_components(predictor);
    vlp_status status = VLP_OK;
    int64_t batch = vlp_predictor_batch(predictor);
    vlp_query *queries = vlp_alloc((size_t)batch, sizeof *queries);
    int32_t *answers = vlp_alloc((size_t)batch, sizeof *answers);
    vlp_top *tail = vlp_alloc((size_t)batch, sizeof *tail);
    vlp_top *head = vlp_alloc((size_t)batch, sizeof *head);
    if (!queries || !answers || !tail || !head) {
        status = vlp_fail_memory("scores");
        goto out;
    }
    for (int64_t start = 0; start < count; start += batch) {
        int64_t size = count - start < batch ? count - start : batch;
        VLP_CHECK(score_side(tail, predictor, graph, triples + start, size, true, queries, answers));
        VLP_CHECK(score_side(head, predictor, graph, triples + start, size, false, queries, answers));
        for (int64_t i = 0; i < size; i++) {
            vlp_score *score = &out[start + i];
            *score = (vlp_score){.score = ((double)tail[i].score + (double)head[i].score) / 2,
                                 .tail = (double)tail[i].score,
                                 .head = (double)head[i].score,
                                 .probability = (double)NAN};
            for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
                score->parts[c] = components >> c & 1
                                      ? ((double)tail[i].parts[c] + (double)head[i].parts[c]) / 2
                                      : (double)NAN;
        }
        if (count > batch) vlp_progress(observer, "triples", start + size, count);
        if (vlp_stopped(observer)) {
            status = vlp_fail_stopped();
            goto out;
        }
    }
out:
    vlp_free(queries);
    vlp_free(answers);
    vlp_free(tail);
    vlp_free(head);
    return status;
}

double vlp_calibrated(const vlp_calibration *calibration, double score, double prior) {
    double logit = calibration->intercept + calibration->slope * score + log(prior / (1 - prior));
    return 1 / (1 + exp(-logit));
}

vlp_status vlp_prior_check(double prior) {
    if (prior > 0 && prior < 1) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT, "a prior of %g; it is above 0 and below 1", prior);
}

static vlp_status check(const vlp_run *run, const vlp_triple *triples, int64_t count, double prior) {
    VLP_TRY(vlp_prior_check(prior));
    VLP_TRY(vlp_check_array(triples, count, "triples"));
    int32_t entities = vlp_run_graph(run)->entities,
            relations = vlp_dataset_relation_count(run->dataset);
    for (int64_t i = 0; i < count; i++) {
        vlp_triple triple = triples[i];
        if (triple.head < 0 || triple.head >= entities || triple.tail < 0 || triple.tail >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "triple %lld has an entity out of range", (long long)i);
        if (triple.relation < 0 || triple.relation >= relations)
            return vlp_fail(VLP_ERROR_ARGUMENT, "triple %lld: relation %d of %d", (long long)i,
                            triple.relation, relations);
    }
    return VLP_OK;
}

static vlp_status score_inside(vlp_score *out, const vlp_run *run, vlp_worker *worker,
                               const vlp_triple *triples, int64_t count,
                               const vlp_score_options *options) {
    VLP_TRY(check(run, triples, count, options->prior));
    bool calibrated = !options->uncalibrated && run->dataset->splits[VLP_VALID].count > 0;
    vlp_calibration calibration = {0};
    if (calibrated) {
        vlp_calibration_options calibrating = VLP_CALIBRATION_OPTIONS_INIT;
        calibrating.observer = options->observer;
        VLP_TRY(vlp_calibrate_inside(&calibration, run, worker, &calibrating));
    }
    vlp_predictor *predictor;
    const vlp_filter *known;
    VLP_TRY(vlp_run_predictor(&predictor, run, worker));
    VLP_TRY(vlp_run_known(&known, run, 0));
    VLP_TRY(vlp_triples_score(out, predictor, vlp_run_graph(run), triples, count, options->observer));
    for (int64_t i = 0; i < count; i++) {
        out[i].known = vlp_filter_has(known, triples[i].head, triples[i].relation, triples[i].tail);
        if (calibrated) out[i].probability = vlp_calibrated(&calibration, out[i].score, options->prior);
    }
    return VLP_OK;
}

vlp_status vlp_run_score(vlp_score *out, vlp_run *run, const vlp_triple *triples, int64_t count,
                         const vlp_score_options *given) {
    VLP_REQUIRE(run);
    vlp_score_options options = VLP_SCORE_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_score_options, &options, given));
    VLP_TRY(vlp_check_array(out, count, "scores"));
    vlp_worker *worker;
    VLP_TRY(vlp_run_enter(&worker, run));
    vlp_status status = score_inside(out, run, worker, triples, count, &options);
    vlp_run_leave(run, worker);
    return status;
}
