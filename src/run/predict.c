/* Answers to queries. What they are made of is explained by the components: run/explain.h. */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "run/explain.h"

/* NULL: nothing to explain. */
static const vlp_component_explanation *const explanations[VLP_COMPONENTS] = {
    [VLP_HORIZONTAL] = NULL,
    [VLP_VERTICAL] = &vlp_vertical_explanation,
    [VLP_PATH] = &vlp_path_explanation};

/* ---- What a run is ------------------------------------------------------------------------------- */

vlp_mixture vlp_run_mixture(const vlp_run *run) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (run->model->components == 1u << c) return vlp_mixture_alone((vlp_component)c);
    return run->progress.mixture;
}

static bool horizontal_only(const vlp_mixture *mixture) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (c != VLP_HORIZONTAL && mixture->weights[c] != 0) return false;
    return true;
}

void vlp_run_describe(vlp_run_info *out, const vlp_run *run) {
    if (!out) return;
    *out = (vlp_run_info){0};
    if (!run) return;
    pthread_mutex_lock(&run->gate->lock);
    unsigned components = vlp_run_graph_components(run);
    vlp_mixture mixture = vlp_run_graph_mixture(run);
    const char *graph = run->live ? run->live->folder : NULL;
    pthread_mutex_unlock(&run->gate->lock);
    bool vertical = components >> VLP_VERTICAL & 1;
    *out = (vlp_run_info){
        .folder = run->folder,
        .data = run->facts.data,
        .model = vlp_model_names[run->settings.model],
        .dim = run->settings.dim,
        .step = run->progress.best_step,
        .valid_mrr = run->dataset->splits[VLP_VALID].count > 0 ? run->progress.best_mrr : (double)NAN,
        .components = components,
        .copies = vertical && mixture.weights[VLP_VERTICAL] > 0 && run->settings.references > 0,
        .horizontal_only = horizontal_only(&mixture),
        .lambda = (double)mixture.weights[VLP_HORIZONTAL],
        .references = vertical ? run->settings.references : 0,
        .graph = graph};
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        out->weights[c] = components >> c & 1 ? (double)mixture.weights[c] : (double)NAN;
}

/* ---- The object ---------------------------------------------------------------------------------- */

struct vlp_predictions {
    int64_t count;
    vlp_answers *items; /* (count) */
};

void vlp_predictions_free(vlp_predictions *predictions) {
    if (!predictions) return;
    for (int64_t i = 0; predictions->items && i < predictions->count; i++) {
        for (int c = 0; c < VLP_COMPONENTS; c++)
            if (explanations[c]) explanations[c]->release(&predictions->items[i]);
        vlp_free((void *)(uintptr_t)predictions->items[i].predictions);
    }
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

/* The predictions of one query. */
static vlp_status put_answers(vlp_answering *work, int64_t index, const vlp_top *top, int32_t count) {
    vlp_query query = work->queries[index];
    unsigned components = vlp_predictor_components(work->predictor);
    vlp_prediction *predictions = vlp_alloc((size_t)count, sizeof *predictions);
    if (!predictions) return vlp_fail_memory("predictions");
    for (int32_t i = 0; i < count; i++) {
        predictions[i] = (vlp_prediction){
            .entity = top[i].entity,
            .known = vlp_filter_has(work->known, query.entity, query.relation, top[i].entity),
            .score = (double)top[i].score};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
            predictions[i].parts[c] = components >> c & 1 ? (double)top[i].parts[c] : (double)NAN;
    }
    work->items[index] =
        (vlp_answers){.query = query, .predictions = predictions, .prediction_count = count};
    return VLP_OK;
}

/* The best answers, or the scores of those given, of a batch. *among: the candidates of the batch, NULL:
 * all entities. */
static vlp_status score_batch(vlp_answering *work, vlp_top *scores, const vlp_candidate_list *among,
                              int64_t start, int64_t count) {
    const vlp_query *queries = work->queries + start;
    if (work->given)
        return vlp_predictor_score(scores, work->predictor, queries, work->given + start, count);
    return vlp_predictor_top(work->predictor, queries, count, work->options.count,
                             work->options.known ? NULL : work->known, among, work->options.observer);
}

/* scores: (batch), of given answers. With candidates all queries of the batch have the same. */
static vlp_status answer_batch(vlp_answering *work, vlp_top *scores, int64_t start, int64_t count) {
    vlp_candidate_list among = {NULL, work->answer_count};
    if (work->candidates) among = vlp_candidates_of(work->candidates, work->queries[start].relation);
    if (among.count > 0)
        VLP_TRY(score_batch(work, scores, work->candidates ? &among : NULL, start, count));
    for (int64_t i = 0; i < count; i++) {
        int32_t answers = among.count > 0;
        const vlp_top *top = scores + i;
        if (!work->given && among.count > 0) top = vlp_predictor_answers(work->predictor, i, &answers);
        VLP_TRY(put_answers(work, start + i, top, answers));
        work->items[start + i].candidate_count = among.count;
    }
    for (int c = 0; c < VLP_COMPONENTS && among.count > 0; c++)
        if (explanations[c]) VLP_TRY(explanations[c]->explain(work, start, count));
    return VLP_OK;
}

/* ---- Queries by relation ------------------------------------------------------------------------- */

/* Where candidates depend on the relation, queries are answered relation by relation. */
typedef struct ordering {
    int64_t *place;     /* (count) the place of ordered query i among those given */
    vlp_query *queries; /* (count) ordered */
} ordering;

static void ordering_free(ordering *order) {
    vlp_free(order->place);
    vlp_free(order->queries);
}

static vlp_status ordering_new(ordering *out, const vlp_query *queries, int64_t count,
                               int32_t relations) {
    int64_t *next = vlp_alloc_zero((size_t)relations + 1, sizeof *next);
    out->place = vlp_alloc((size_t)count, sizeof *out->place);
    out->queries = vlp_alloc((size_t)count, sizeof *out->queries);
    if (!next || !out->place || !out->queries) {
        vlp_free(next);
        return vlp_fail_memory("predictions");
    }
    for (int64_t i = 0; i < count; i++) next[queries[i].relation + 1]++;
    for (int32_t r = 0; r < relations; r++) next[r + 1] += next[r];
    for (int64_t i = 0; i < count; i++) {
        int64_t at = next[queries[i].relation]++;
        out->place[at] = i;
        out->queries[at] = queries[i];
    }
    vlp_free(next);
    return VLP_OK;
}

/* The end of the batch that starts at `start`. */
static int64_t batch_end(const vlp_answering *work, int64_t start, int64_t count, int64_t batch) {
    int64_t end = count - start < batch ? count : start + batch;
    if (!work->candidates || !work->candidates->places) return end;
    for (int64_t i = start + 1; i < end; i++)
        if (work->queries[i].relation != work->queries[start].relation) return i;
    return end;
}

/* Puts answers back into the order of the queries given. */
static vlp_status restore_order(vlp_predictions *predictions, const ordering *order) {
    vlp_answers *items = vlp_alloc((size_t)predictions->count, sizeof *items);
    if (!items) return vlp_fail_memory("predictions");
    for (int64_t i = 0; i < predictions->count; i++) items[order->place[i]] = predictions->items[i];
    vlp_free(predictions->items);
    predictions->items = items;
    return VLP_OK;
}

/* ---- Asking -------------------------------------------------------------------------------------- */

static vlp_status check_options(const vlp_predict_options *options) {
    VLP_TRY(vlp_check_splits(options->filter));
    if (options->count < 1)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d answers asked for; it is 1 or more", options->count);
    if (options->paths < 0 || options->paths > VLP_MAX_PATHS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d paths asked for; it is 0 to %d", options->paths,
                        VLP_MAX_PATHS);
    return VLP_OK;
}

vlp_status vlp_check_queries(const vlp_run *run, const vlp_query *queries, const int32_t *given,
                             int64_t count) {
    VLP_TRY(vlp_check_array(queries, count, "queries"));
    int32_t entities = vlp_run_graph(run)->entities;
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

/* All batches, into work->items. */
static vlp_status answer_all(vlp_answering *work, int64_t count) {
    vlp_status status = VLP_OK;
    const vlp_observer *observer = work->options.observer;
    int64_t batch = vlp_predictor_batch(work->predictor);
    vlp_top *scores = vlp_alloc((size_t)batch, sizeof *scores);
    if (!scores) return vlp_fail_memory("predictions");
    for (int64_t start = 0, end; start < count; start = end) {
        end = batch_end(work, start, count, batch);
        VLP_CHECK(answer_batch(work, scores, start, end - start));
        if (count > batch) vlp_progress(observer, "queries", end, count);
        if (vlp_stopped(observer)) {
            status = vlp_fail_stopped();
            goto out;
        }
    }
out:
    vlp_free(scores);
    return status;
}

static vlp_status answer_inside(vlp_predictions **out, vlp_run *run, vlp_worker *worker,
                                const vlp_query *queries, const int32_t *given, int64_t count,
                                const vlp_predict_options *options) {
    vlp_status status = VLP_OK;
    vlp_answering work = {.run = run, .options = *options, .queries = queries, .given = given};
    vlp_predictions *predictions = NULL;
    ordering order = {NULL, NULL};
    VLP_TRY(check_options(options));
    VLP_TRY(vlp_check_queries(run, queries, given, count));
    VLP_TRY(vlp_run_predictor(&work.predictor, run, worker));
    VLP_TRY(vlp_run_known(&work.known, run, options->filter));
    work.answer_count = vlp_run_answer_count(run);
    if (!given) VLP_CHECK(vlp_candidates_open(&work.candidates, run, work.known, options->candidates));
    if (work.candidates && work.candidates->places) {
        VLP_CHECK(ordering_new(&order, queries, count, run->model->relations));
        work.queries = order.queries;
    }
    predictions = predictions_new(count);
    if (!predictions) {
        status = vlp_fail_memory("predictions");
        goto out;
    }
    work.items = predictions->items;
    VLP_CHECK(answer_all(&work, count));
    if (order.place) VLP_CHECK(restore_order(predictions, &order));
out:
    vlp_candidates_free(work.candidates);
    ordering_free(&order);
    if (status != VLP_OK) {
        vlp_predictions_free(predictions);
        return status;
    }
    *out = predictions;
    return VLP_OK;
}

static vlp_status answer(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                         const int32_t *given, int64_t count, const vlp_predict_options *options) {
    vlp_worker *worker;
    *out = NULL;
    VLP_TRY(vlp_run_enter(&worker, run));
    vlp_status status = answer_inside(out, run, worker, queries, given, count, options);
    vlp_run_leave(run, worker);
    return status;
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
