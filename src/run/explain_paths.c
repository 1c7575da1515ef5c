/* The explanation of the path component: the paths that carry an answer, and the known triples it rests
 * on (run/without.h). */
#include <string.h>

#include "run/explain.h"
#include "run/without.h"

enum { BATCH = 32 }; /* sets of triples that are taken out at once */

/* What the answers of a batch are explained with. */
typedef struct explaining {
    const vlp_graph *graph;
    vlp_removal *removal;
    vlp_without *without;
} explaining;

/* The memory of an answer: its support; its paths; their triples; those of the support. */
static vlp_status put(vlp_prediction *prediction, const vlp_graph *graph, const vlp_carried *carried) {
    int64_t steps = 0;
    for (int32_t i = 0; i < carried->path_count; i++) steps += carried->paths[i].length;
    size_t paths_at = sizeof(vlp_support),
           steps_at = paths_at + (size_t)carried->path_count * sizeof(vlp_path),
           triples_at = steps_at + (size_t)steps * sizeof(vlp_path_triple);
    char *block = vlp_alloc_zero(triples_at + (size_t)carried->set.count * sizeof(vlp_triple), 1);
    if (!block) return vlp_fail_memory("explanations");
    vlp_support *support = (void *)block;
    vlp_path *paths = (void *)(block + paths_at);
    vlp_path_triple *step = (void *)(block + steps_at);
    vlp_triple *triples = (void *)(block + triples_at);
    for (int32_t i = 0; i < carried->path_count; i++) {
        const vlp_found_path *found = &carried->paths[i];
        paths[i] = (vlp_path){found->weight, step, found->length};
        for (int32_t j = 0; j < found->length; j++) {
            /* The slot is in the row of the entity that the message reached: an inverse relation there
             * is the triple's tail entity. */
            int32_t slot = found->slots[j];
            *step++ = (vlp_path_triple){graph->triples[graph->edge[slot]],
                                        graph->relation[slot] >= graph->relations};
        }
    }
    for (int32_t i = 0; i < carried->set.count; i++)
        triples[i] = graph->triples[carried->set.triples[i]];
    *support = (vlp_support){.triples = triples,
                             .count = carried->set.count,
                             .rank_before = carried->before.rank,
                             .rank = carried->after.rank,
                             .score = carried->after.score,
                             .path = carried->after.parts[VLP_PATH]};
    prediction->paths = paths;
    prediction->path_count = carried->path_count;
    prediction->support = support;
    return VLP_OK;
}

static vlp_status explain_answers(explaining *with, vlp_answering *work, const vlp_answers *answers) {
    vlp_prediction *predictions = (vlp_prediction *)(uintptr_t)answers->predictions;
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        vlp_removal_answer answer = {.query = answers->query,
                                     .answer = predictions[i].entity,
                                     .known = work->known,
                                     .mixture = vlp_predictor_opened(work->predictor)->mixture};
        vlp_carried carried;
        VLP_TRY(vlp_without_find(&carried, with->without, &answer, work->options.paths));
        VLP_TRY(put(&predictions[i], with->graph, &carried));
        vlp_progress(work->options.observer, "explanations", i + 1, answers->prediction_count);
        if (vlp_stopped(work->options.observer)) return vlp_fail_stopped();
    }
    return VLP_OK;
}

static vlp_status explain(vlp_answering *work, int64_t start, int64_t count) {
    vlp_predictor_options options = *vlp_predictor_opened(work->predictor);
    if (!work->options.explain || work->options.paths == 0 || !vlp_model_has(options.model, VLP_PATH) ||
        options.mixture.weights[VLP_PATH] == 0)
        return VLP_OK;
    if (work->candidates) options.only = work->candidates->marks;
    vlp_status status = VLP_OK;
    explaining with = {.graph = options.graph};
    VLP_CHECK(vlp_removal_open(&with.removal, &options, BATCH));
    VLP_CHECK(vlp_without_open(&with.without, with.removal, with.graph, options.model->path.layers));
    for (int64_t i = 0; i < count; i++) VLP_CHECK(explain_answers(&with, work, &work->items[start + i]));
out:
    vlp_without_close(with.without);
    vlp_removal_close(with.removal);
    return status;
}

static void release(const vlp_answers *answers) {
    for (int32_t i = 0; i < answers->prediction_count; i++)
        vlp_free((void *)(uintptr_t)answers->predictions[i].support);
}

const vlp_component_explanation vlp_path_explanation = {explain, release};
