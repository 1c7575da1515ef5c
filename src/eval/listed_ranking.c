#include "eval/listed_ranking.h"

#include <string.h>

#include "base/order.h"
#include "eval/predictor.h"
#include "eval/same_rows.h"

enum { SCORES = 16 << 20, /* floats of a batch, per component */ MAX_QUERIES = 512 };

/* A batch of queries is scored with the candidates and the answers of the batch, in one list. */
typedef struct listed_batch {
    const vlp_ranking_options *options;
    const vlp_filter *known;
    vlp_predictor *predictor;
    int32_t components[VLP_COMPONENTS]; /* that the model has */
    int32_t component_count;
    const int32_t *sample; /* (sample_count) candidates, ascending */
    int64_t sample_count;
    vlp_query *queries; /* (capacity) */
    int32_t *answers;   /* (capacity) */
    int32_t *list;      /* (sample_count + capacity), of which list_count; ascending */
    int64_t list_count, capacity;
    int32_t *place; /* (entities) in the list, of those that are in it */
    int32_t *same;  /* the first entity with the same row, which is scored instead; NULL: each is */
    float *scores;  /* (capacity, components, list_count) */
} listed_batch;

static int ascending(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static int32_t row_of(const listed_batch *work, int32_t entity) {
    return work->same ? work->same[entity] : entity;
}

static void make_list(listed_batch *work, int64_t count) {
    int64_t all = 0, distinct = 0;
    for (int64_t i = 0; i < work->sample_count; i++) work->list[all++] = row_of(work, work->sample[i]);
    for (int64_t i = 0; i < count; i++) work->list[all++] = row_of(work, work->answers[i]);
    vlp_sort(work->list, all, sizeof *work->list, ascending);
    for (int64_t i = 0; i < all; i++)
        if (i == 0 || work->list[i] != work->list[i - 1]) work->list[distinct++] = work->list[i];
    work->list_count = distinct;
    for (int64_t i = 0; i < distinct; i++) work->place[work->list[i]] = (int32_t)i;
}

static void keep_scores(void *user, int64_t query, int64_t first, int32_t count,
                        const float *const scores[VLP_MAX_COMPONENTS]) {
    listed_batch *work = user;
    for (int32_t c = 0; c < work->component_count; c++)
        memcpy(work->scores + (query * work->component_count + c) * work->list_count + first,
               scores[work->components[c]], (size_t)count * sizeof(float));
}

/* f of a query with an entity of the list. */
static float mixed(const listed_batch *work, int64_t query, int32_t entity, const vlp_mixture *mixture) {
    int64_t at = work->place[row_of(work, entity)];
    float f = 0;
    for (int32_t c = 0; c < work->component_count; c++)
        f += mixture->weights[work->components[c]] *
             work->scores[(query * work->component_count + c) * work->list_count + at];
    return f;
}

/* False: a score is NaN. */
static bool rank_query(vlp_rank *out, const listed_batch *work, int64_t query,
                       const vlp_mixture *mixture) {
    int32_t answer = work->answers[query];
    int64_t known_count, next = 0;
    const int32_t *known = vlp_filter_answers(work->known, work->queries[query].entity,
                                              work->queries[query].relation, &known_count);
    float gold = mixed(work, query, answer, mixture);
    bool valid = gold == gold;
    *out = (vlp_rank){.candidates = 1};
    for (int64_t i = 0; i < work->sample_count; i++) {
        int32_t entity = work->sample[i];
        if (entity == answer) continue;
        while (next < known_count && known[next] < entity) next++;
        if (next < known_count && known[next] == entity) continue;
        float score = mixed(work, query, entity, mixture);
        valid = valid && score == score;
        out->above += score > gold;
        out->equal += score == gold;
        out->candidates++;
    }
    return valid;
}

/* The queries from `start` on. */
static vlp_status rank_batch(vlp_ranking *ranking, listed_batch *work, const vlp_dataset *dataset,
                             int64_t start, int64_t count) {
    const vlp_ranking_options *options = work->options;
    vlp_candidate_list among;
    bool valid = true;
    for (int64_t i = 0; i < count; i++)
        work->queries[i] =
            vlp_ranking_query(&work->answers[i], dataset, options, ranking->first + start + i);
    make_list(work, count);
    among = (vlp_candidate_list){work->list, work->list_count};
    VLP_TRY(vlp_predictor_read(work->predictor, work->queries, count, &among, keep_scores, work,
                               options->observer));
#pragma omp parallel for num_threads(vlp_thread_count(options->threads)) reduction(&& : valid)
    for (int64_t i = 0; i < count; i++)
        for (int32_t m = 0; m < options->mixture_count; m++)
            valid = rank_query(&ranking->ranks[(int64_t)m * ranking->queries + start + i], work, i,
                               &options->mixtures[m]) &&
                    valid;
    return valid ? VLP_OK
                 : vlp_fail(VLP_ERROR_DIVERGED,
                            "a score is not a number; the run is damaged or training diverged");
}

static vlp_status rank_all(vlp_ranking *ranking, listed_batch *work, const vlp_dataset *dataset) {
    const vlp_observer *observer = work->options->observer;
    for (int64_t start = 0; start < ranking->queries; start += work->capacity) {
        int64_t left = ranking->queries - start, count = left < work->capacity ? left : work->capacity;
        VLP_TRY(rank_batch(ranking, work, dataset, start, count));
        vlp_progress(observer, "queries", start + count, ranking->queries);
        if (vlp_stopped(observer)) return vlp_fail_stopped();
    }
    return VLP_OK;
}

vlp_status vlp_ranking_listed(vlp_ranking *ranking, const vlp_model *model, const vlp_dataset *dataset,
                              const vlp_ranking_options *options, const vlp_filter *known) {
    listed_batch work = {.options = options, .known = known};
    vlp_status status = VLP_OK;
    int32_t *sample = vlp_alloc((size_t)model->entities, sizeof *sample);
    if (!sample) return vlp_fail_memory("an evaluation");
    for (int32_t e = 0; e < model->entities; e++)
        if (options->only[e]) sample[work.sample_count++] = e;
    work.sample = sample;
    for (int32_t c = 0; c < VLP_COMPONENTS; c++)
        if (vlp_model_has(model, (vlp_component)c)) work.components[work.component_count++] = c;
    int64_t rows = SCORES / (work.sample_count + MAX_QUERIES);
    work.capacity = rows < 1 ? 1 : rows > MAX_QUERIES ? MAX_QUERIES : rows;
    size_t capacity = (size_t)work.capacity, listed = (size_t)work.sample_count + capacity;
    work.queries = vlp_alloc(capacity, sizeof *work.queries);
    work.answers = vlp_alloc(capacity, sizeof *work.answers);
    work.list = vlp_alloc(listed, sizeof *work.list);
    work.place = vlp_alloc((size_t)model->entities, sizeof *work.place);
    work.scores = vlp_alloc(capacity * (size_t)work.component_count * listed, sizeof *work.scores);
    vlp_predictor_options opening = {.model = model,
                                     .graph = dataset->graph,
                                     .trained = options->trained,
                                     .mixture = options->mixtures[0],
                                     .references = options->references,
                                     .references_per_head = options->references_per_head,
                                     .references_rule = options->references_rule,
                                     .threads = options->threads};
    if (!work.queries || !work.answers || !work.list || !work.place || !work.scores) {
        status = vlp_fail_memory("an evaluation");
        goto out;
    }
    if (!model->backend->position_invariant_scores && vlp_scores_by_row(model->components))
        VLP_CHECK(vlp_same_rows(&work.same, model));
    VLP_CHECK(vlp_predictor_new(&work.predictor, &opening));
    VLP_CHECK(rank_all(ranking, &work, dataset));
out:
    vlp_predictor_free(work.predictor);
    vlp_free(work.scores);
    vlp_free(work.same);
    vlp_free(work.place);
    vlp_free(work.list);
    vlp_free(work.answers);
    vlp_free(work.queries);
    vlp_free(sample);
    return status;
}
