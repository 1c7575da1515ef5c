/* Answers to queries, and what they were copied from. */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "graph/reference.h"
#include "run/run_internal.h"

/* ---- What a run keeps for it --------------------------------------------------------------------- */

enum { FALLBACK_REFERENCES = 8 }; /* to show where the run has no head */

const vlp_graph *vlp_run_graph(const vlp_run *run) {
    return run->live ? run->live->graph : run->dataset->graph;
}

vlp_mixture vlp_run_mixture(const vlp_run *run) {
    return run->settings.vertical ? run->progress.mixture : (vlp_mixture){0, 1};
}

vlp_status vlp_run_predictor(vlp_predictor **out, vlp_run *run) {
    *out = run->predictor;
    if (run->predictor) return VLP_OK;
    vlp_predictor_options options = {.model = run->model,
                                     .graph = vlp_run_graph(run),
                                     .mixture = vlp_run_mixture(run),
                                     .references = run->settings.vertical ? run->settings.references : 0,
                                     .references_per_head = run->settings.references_per_head,
                                     .threads = run->settings.threads};
    VLP_TRY(vlp_predictor_new(&run->predictor, &options));
    *out = run->predictor;
    return VLP_OK;
}

vlp_status vlp_run_known(const vlp_filter **out, vlp_run *run, unsigned splits) {
    if (splits == 0) splits = (1u << VLP_SPLITS) - 1;
    if (!run->known || run->known_splits != splits) {
        vlp_filter_free(run->known);
        run->known = NULL;
        const vlp_triple *lists[VLP_SPLITS + 2];
        int64_t counts[VLP_SPLITS + 2];
        int used = 0;
        for (int split = 0; split < VLP_SPLITS; split++)
            if (splits >> split & 1) {
                lists[used] = run->dataset->splits[split].items;
                counts[used++] = run->dataset->splits[split].count;
            }
        if (run->live) {
            lists[used] = run->live->triples.items;
            counts[used++] = run->live->triples.count;
            lists[used] = run->live->others.items;
            counts[used++] = run->live->others.count;
        }
        VLP_TRY(vlp_filter_build(&run->known, lists, counts, used, run->model->entities,
                                 vlp_dataset_relation_count(run->dataset), run->settings.threads));
        run->known_splits = splits;
    }
    *out = run->known;
    return VLP_OK;
}

void vlp_run_predicting_free(vlp_run *run) {
    vlp_predictor_free(run->predictor);
    vlp_filter_free(run->known);
    run->predictor = NULL;
    run->known = NULL;
    vlp_live_graph_free(run->live);
    run->live = NULL;
}

void vlp_run_describe(vlp_run_info *out, const vlp_run *run) {
    if (!out) return;
    *out = (vlp_run_info){0};
    if (!run) return;
    vlp_mixture mixture = vlp_run_mixture(run);
    *out = (vlp_run_info){
        .folder = run->folder,
        .data = run->facts.data,
        .model = vlp_model_row_of(run->settings.model)->name,
        .dim = run->settings.dim,
        .step = run->progress.best_step,
        .valid_mrr = run->dataset->splits[VLP_VALID].count > 0 ? run->progress.best_mrr : (double)NAN,
        .vertical = run->settings.vertical,
        .copies = run->settings.vertical && mixture.vertical > 0 && run->settings.references > 0,
        .horizontal_only = mixture.vertical == 0,
        .lambda = (double)mixture.horizontal,
        .references = run->settings.vertical ? run->settings.references : 0,
        .graph = run->live ? run->live->folder : NULL};
}

/* ---- The object ---------------------------------------------------------------------------------- */

struct vlp_predictions {
    int64_t count;
    vlp_answers *items; /* (count); what they point to is one block each, which starts with the
                           predictions */
};

void vlp_predictions_free(vlp_predictions *predictions) {
    if (!predictions) return;
    for (int64_t i = 0; predictions->items && i < predictions->count; i++)
        vlp_free((void *)(uintptr_t)predictions->items[i].predictions);
    vlp_free(predictions->items);
    vlp_free(predictions);
}

const vlp_answers *vlp_predictions_get(const vlp_predictions *predictions, int64_t query) {
    if (!predictions || query < 0 || query >= predictions->count) return NULL;
    return &predictions->items[query];
}

static vlp_predictions *predictions_new(int64_t count) {
    vlp_predictions *predictions = vlp_alloc_zero(1, sizeof *predictions);
    if (!predictions) return NULL;
    predictions->items = vlp_alloc_zero((size_t)count, sizeof *predictions->items);
    if (!predictions->items) {
        vlp_predictions_free(predictions);
        return NULL;
    }
    predictions->count = count;
    return predictions;
}

/* ---- Filling it ---------------------------------------------------------------------------------- */

/* One call of predict or explain. */
typedef struct answering {
    vlp_run *run;
    vlp_predictor *predictor;
    const vlp_filter *known;
    vlp_predict_options options;
    const vlp_query *queries;
    const int32_t *given; /* the answers to explain, NULL: the best are wanted */
    vlp_predictions *out;
    vlp_top *scores;          /* (batch) of given answers */
    vlp_explained *explained; /* (batch) */
    int32_t *answers;         /* of the batch's predictions */
    int64_t answer_capacity;
} answering;

/* Makes the block of one query: predictions, then references, then contributions. */
static vlp_status put_answers(answering *work, int64_t index, const vlp_top *top, int32_t count,
                              const vlp_reference *list, int32_t references) {
    const vlp_triple *triples = vlp_run_graph(work->run)->triples;
    size_t first = (size_t)count * sizeof(vlp_prediction),
           second = (size_t)references * sizeof(vlp_answer_reference),
           third = work->options.explain ? (size_t)count * (size_t)references * sizeof(double) : 0;
    second = (second + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    char *block = vlp_alloc(first + second + third, 1);
    if (!block) return vlp_fail_memory("predictions");
    vlp_prediction *predictions = (void *)block;
    vlp_answer_reference *shown = (void *)(block + first);
    double *contributions = (void *)(block + first + second);
    vlp_query query = work->queries[index];
    for (int32_t i = 0; i < count; i++)
        predictions[i] = (vlp_prediction){
            .entity = top[i].entity,
            .known = vlp_filter_has(work->known, query.entity, query.relation, top[i].entity),
            .score = (double)top[i].score,
            .horizontal = (double)top[i].horizontal,
            .vertical = work->run->settings.vertical ? (double)top[i].vertical : (double)NAN,
            .contributions = work->options.explain ? contributions + (int64_t)i * references : NULL};
    for (int32_t i = 0; i < references; i++)
        shown[i] = (vlp_answer_reference){triples[list[i].edge], list[i].distance};
    work->out->items[index] = (vlp_answers){query, predictions, count, shown, references};
    return VLP_OK;
}

/* The contributions of a batch, into the blocks made before. */
static vlp_status put_contributions(answering *work, int64_t start, int64_t count) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += work->out->items[start + i].prediction_count;
    VLP_TRY(vlp_grow(&work->answers, &work->answer_capacity, total, sizeof(int32_t), "predictions"));
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        const vlp_answers *answers = &work->out->items[start + i];
        bool any = answers->prediction_count > 0;
        work->explained[i] = (vlp_explained){
            .query = answers->query,
            .references = answers->references,
            .reference_count = answers->reference_count,
            .answers = work->answers + at,
            .answer_count = answers->prediction_count,
            .contributions = any ? (double *)(uintptr_t)answers->predictions[0].contributions : NULL};
        for (int32_t j = 0; j < answers->prediction_count; j++)
            work->answers[at++] = answers->predictions[j].entity;
    }
    return vlp_predictor_contributions(work->predictor, work->explained, count, work->options.observer);
}

/* References to show where the scores ask for none. */
static vlp_status find_shown(vlp_references **out, const answering *work, int64_t start, int64_t count) {
    const vlp_settings *settings = &work->run->settings;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = settings->references > 0 ? settings->references : FALLBACK_REFERENCES;
    options.per_head = settings->references_per_head;
    options.threads = settings->threads;
    return vlp_graph_references(out, vlp_run_graph(work->run), work->queries + start, count, &options);
}

static vlp_status answer_batch(answering *work, int64_t start, int64_t count) {
    vlp_status status = VLP_OK;
    vlp_references *shown = NULL;
    const vlp_query *queries = work->queries + start;
    if (work->given)
        VLP_CHECK(
            vlp_predictor_score(work->scores, work->predictor, queries, work->given + start, count));
    else
        VLP_CHECK(vlp_predictor_top(work->predictor, queries, count, work->options.count,
                                    work->options.known ? NULL : work->known, work->options.observer));
    const vlp_references *found = vlp_predictor_references(work->predictor);
    if (!found && work->options.explain && !work->run->settings.vertical) {
        VLP_CHECK(find_shown(&shown, work, start, count));
        found = shown;
    }
    for (int64_t i = 0; i < count; i++) {
        int32_t answers = 1, references = 0;
        const vlp_top *top =
            work->given ? &work->scores[i] : vlp_predictor_answers(work->predictor, i, &answers);
        const vlp_reference *list = found ? vlp_references_get(found, i, &references) : NULL;
        VLP_CHECK(put_answers(work, start + i, top, answers, list, references));
    }
    if (work->options.explain) VLP_CHECK(put_contributions(work, start, count));
out:
    vlp_references_free(shown);
    return status;
}

/* ---- Asking -------------------------------------------------------------------------------------- */

static vlp_status check(const vlp_run *run, const vlp_query *queries, const int32_t *given,
                        int64_t count, const vlp_predict_options *options) {
    VLP_TRY(vlp_check_array(queries, count, "queries"));
    VLP_TRY(vlp_check_splits(options->filter));
    if (options->count < 1)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d answers asked for; it is 1 or more", options->count);
    int32_t entities = run->model->entities;
    int64_t edges = vlp_run_graph(run)->edges;
    for (int64_t i = 0; i < count; i++) {
        const vlp_query *query = &queries[i];
        if (query->entity < 0 || query->entity >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: entity %d of %d", (long long)i,
                            query->entity, entities);
        if (query->relation < 0 || query->relation >= run->model->relations)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: relation %d of %d", (long long)i,
                            query->relation, run->model->relations);
        if (query->left_out < -1 || query->left_out >= edges)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: left-out triple %lld of %lld", (long long)i,
                            (long long)query->left_out, (long long)edges);
        if (given && (given[i] < 0 || given[i] >= entities))
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: answer %d of %d", (long long)i, given[i],
                            entities);
    }
    return VLP_OK;
}

static vlp_status answer(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                         const int32_t *given, int64_t count, const vlp_predict_options *options) {
    *out = NULL;
    vlp_status status = VLP_OK;
    answering work = {.run = run, .options = *options, .queries = queries, .given = given};
    VLP_TRY(check(run, queries, given, count, options));
    VLP_TRY(vlp_run_predictor(&work.predictor, run));
    VLP_TRY(vlp_run_known(&work.known, run, options->filter));
    int64_t batch = vlp_predictor_batch(work.predictor);
    work.out = predictions_new(count);
    work.scores = vlp_alloc((size_t)batch, sizeof *work.scores);
    work.explained = vlp_alloc((size_t)batch, sizeof *work.explained);
    if (!work.out || !work.scores || !work.explained) {
        status = vlp_fail_memory("predictions");
        goto out;
    }
    for (int64_t start = 0; start < count; start += batch) {
        VLP_CHECK(answer_batch(&work, start, count - start < batch ? count - start : batch));
        if (count > batch)
            vlp_progress(options->observer, "queries", start + batch < count ? start + batch : count,
                         count);
        if (vlp_stopped(options->observer)) {
            status = vlp_fail_stopped();
            goto out;
        }
    }
out:
    vlp_free(work.scores);
    vlp_free(work.explained);
    vlp_free(work.answers);
    if (status != VLP_OK) {
        vlp_predictions_free(work.out);
        return status;
    }
    *out = work.out;
    return VLP_OK;
}

vlp_status vlp_run_predict(vlp_predictions **out, vlp_run *run, const vlp_query *queries, int64_t count,
                           const vlp_predict_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_predict_options, &options, given));
    return answer(out, run, queries, NULL, count, &options);
}

vlp_status vlp_run_explain(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                           const int32_t *answers, int64_t count, const vlp_predict_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_predict_options, &options, given));
    VLP_TRY(vlp_check_array(answers, count, "answers"));
    options.count = 1;
    options.explain = true;
    return answer(out, run, queries, answers, count, &options);
}

vlp_query vlp_query_of(const vlp_dataset *dataset, vlp_triple query) {
    int32_t entities = vlp_dataset_entity_count(dataset),
            relations = vlp_dataset_relation_count(dataset);
    bool tail = query.tail == -1, head = query.head == -1;
    int32_t known = tail ? query.head : query.tail;
    if (head == tail || known < 0 || known >= entities || query.relation < 0 ||
        query.relation >= relations)
        return (vlp_query){-1, -1, -1};
    return (vlp_query){known, tail ? query.relation : query.relation + relations, -1};
}
