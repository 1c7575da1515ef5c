/* An answer as if some known triples were not known. */
#include "base/options.h"
#include "eval/removal.h"
#include "run/explain.h"
#include "run/score.h"

static vlp_status find_edges(vlp_removed_set *out, const vlp_graph *graph, const vlp_triple *triples,
                             int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        vlp_triple triple = triples[i];
        bool valid = triple.head >= 0 && triple.head < graph->entities && triple.relation >= 0 &&
                     triple.relation < graph->relations;
        int64_t edge = valid ? vlp_graph_find(graph, triple) : -1;
        if (edge < 0)
            return vlp_fail(
                VLP_ERROR_ARGUMENT,
                "triple %d of %d, (%d, %d, %d), is not in the graph: only a known triple can "
                "be taken out",
                i + 1, count, triple.head, triple.relation, triple.tail);
        out->triples[out->count++] = (int32_t)edge;
    }
    return VLP_OK;
}

/* `of` lacks the known answers and the mixture. */
static vlp_status score_again(vlp_what_if *out, const vlp_run *run, vlp_worker *worker,
                              vlp_removal_answer of, const vlp_triple *triples, int32_t count,
                              unsigned filter) {
    vlp_predictor *predictor;
    vlp_removal *removal = NULL;
    vlp_removal_result before, after;
    vlp_removed_set set = {.count = 0};
    vlp_status status = VLP_OK;
    VLP_TRY(vlp_check_queries(run, &of.query, &of.answer, 1));
    VLP_TRY(find_edges(&set, vlp_run_graph(run), triples, count));
    VLP_TRY(vlp_run_predictor(&predictor, run, worker));
    const vlp_predictor_options *opened = vlp_predictor_opened(predictor);
    of.mixture = opened->mixture;
    VLP_TRY(vlp_run_known(&of.known, run, filter));
    VLP_CHECK(vlp_removal_open(&removal, opened, 1));
    VLP_CHECK(vlp_removal_begin(&before, removal, &of));
    VLP_CHECK(vlp_removal_try(&after, removal, &set, 1));
    out->rank_before = before.rank;
    out->score_before = before.score;
    out->rank = after.rank;
    out->score = after.score;
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++) {
        out->parts_before[c] = before.parts[c];
        out->parts[c] = after.parts[c];
    }
out:
    vlp_removal_close(removal);
    return status;
}

vlp_status vlp_run_what_if(vlp_what_if *out, vlp_run *run, vlp_query query, int32_t answer,
                           const vlp_triple *triples, int32_t count, const vlp_predict_options *given) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(run);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    vlp_worker *worker;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_predict_options, &options, given));
    VLP_TRY(vlp_check_splits(options.filter));
    VLP_TRY(vlp_check_array(triples, count, "triples"));
    if (count > VLP_MAX_REMOVED)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d triples to take out; it is 0 to %d", count,
                        VLP_MAX_REMOVED);
    VLP_TRY(vlp_run_enter(&worker, run));
    vlp_removal_answer of = {.query = query, .answer = answer};
    vlp_status status = score_again(out, run, worker, of, triples, count, options.filter);
    vlp_run_leave(run, worker);
    return status;
}
