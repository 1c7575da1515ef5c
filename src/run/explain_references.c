/* The explanation of the vertical component: the references of a query, and what each of them
 * contributes to an answer's score. */
#include <string.h>

#include "graph/reference.h"
#include "run/explain.h"

enum { FALLBACK_REFERENCES = 8 }; /* to show where the run has no aggregator */

/* The memory of a query: references, then contributions (predictions, references). */
static vlp_status put_references(vlp_answering *work, vlp_answers *answers, const vlp_reference *list,
                                 int32_t references) {
    const vlp_triple *triples = vlp_run_graph(work->run)->triples;
    int64_t cells = work->options.explain ? (int64_t)answers->prediction_count * references : 0;
    size_t first = (size_t)references * sizeof(vlp_answer_reference);
    first = (first + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    char *block = vlp_alloc_zero(first + (size_t)cells * sizeof(double), 1);
    if (!block) return vlp_fail_memory("predictions");
    vlp_answer_reference *shown = (void *)block;
    double *contributions = (void *)(block + first);
    for (int32_t i = 0; i < references; i++)
        shown[i] = (vlp_answer_reference){triples[list[i].edge], list[i].distance};
    answers->references = shown;
    answers->reference_count = references;
    vlp_prediction *predictions = (vlp_prediction *)(uintptr_t)answers->predictions;
    for (int32_t i = 0; work->options.explain && i < answers->prediction_count; i++)
        predictions[i].contributions = contributions + (int64_t)i * references;
    return VLP_OK;
}

/* The contributions of a batch, into the memory allocated before. */
static vlp_status put_contributions(vlp_answering *work, const vlp_answers *items, int64_t count) {
    int64_t total = 0, at = 0;
    for (int64_t i = 0; i < count; i++) total += items[i].prediction_count;
    int32_t *entities = vlp_alloc((size_t)total, sizeof *entities);
    vlp_explained *explained = vlp_alloc((size_t)count, sizeof *explained);
    vlp_status status = entities && explained ? VLP_OK : vlp_fail_memory("contributions");
    for (int64_t i = 0; status == VLP_OK && i < count; i++) {
        const vlp_answers *answers = &items[i];
        bool any = answers->prediction_count > 0;
        explained[i] = (vlp_explained){
            .query = answers->query,
            .references = answers->references,
            .reference_count = answers->reference_count,
            .answers = entities + at,
            .answer_count = answers->prediction_count,
            .contributions = any ? (double *)(uintptr_t)answers->predictions[0].contributions : NULL};
        for (int32_t j = 0; j < answers->prediction_count; j++)
            entities[at++] = answers->predictions[j].entity;
    }
    if (status == VLP_OK)
        status = vlp_predictor_contributions(work->predictor, explained, count, work->options.observer);
    vlp_free(entities);
    vlp_free(explained);
    return status;
}

/* References to show where the scores use neither references nor paths. */
static vlp_status find_shown(vlp_references **out, const vlp_answering *work, int64_t start,
                             int64_t count) {
    const vlp_settings *settings = &work->run->settings;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = settings->references > 0 ? settings->references : FALLBACK_REFERENCES;
    options.per_head = settings->references_per_head;
    options.threads = settings->threads;
    vlp_reference_rule rule = vlp_settings_reference_rule(settings);
    return vlp_graph_references_by(out, vlp_run_graph(work->run), work->queries + start, count, &options,
                                   &rule);
}

static vlp_status explain(vlp_answering *work, int64_t start, int64_t count) {
    vlp_status status = VLP_OK;
    vlp_references *shown = NULL;
    vlp_answers *items = work->items + start;
    const vlp_references *found = vlp_predictor_references(work->predictor);
    unsigned explained = 1u << VLP_VERTICAL | 1u << VLP_PATH;
    if (!found && work->options.explain && !(vlp_predictor_components(work->predictor) & explained)) {
        VLP_CHECK(find_shown(&shown, work, start, count));
        found = shown;
    }
    for (int64_t i = 0; i < count; i++) {
        int32_t references = 0;
        const vlp_reference *list = found ? vlp_references_get(found, i, &references) : NULL;
        VLP_CHECK(put_references(work, &items[i], list, references));
    }
    if (work->options.explain) VLP_CHECK(put_contributions(work, items, count));
out:
    vlp_references_free(shown);
    return status;
}

static void release(const vlp_answers *answers) {
    vlp_free((void *)(uintptr_t)answers->references);
}

const vlp_component_explanation vlp_vertical_explanation = {explain, release};
