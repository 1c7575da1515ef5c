#include "eval/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "eval/listed_ranking.h"
#include "eval/same_rows.h"
#include "eval/scorer.h"

enum { SCORE_LIMIT = 32 << 20, MAX_QUERIES = 512 };

/* What the host knows of a batch. */
typedef struct batch {
    int64_t start, count;
    vlp_query *queries;
    int32_t *answers, *candidates;
    int64_t *filter_offset;
    int32_t *filtered;
    int64_t filtered_capacity;
    vlp_ranked ranked;
} batch;

/* Two batches are in flight: the host prepares one while the backend ranks the other. */
typedef struct ranker {
    const vlp_model *model;
    const vlp_dataset *dataset;
    const vlp_ranking_options *options;
    vlp_ranking *out;
    const vlp_filter *filter;
    vlp_scorer *scorer;
    int64_t *order; /* (queries) in which they are asked; NULL: theirs */
    batch batches[2];
    int64_t cells;    /* ranks of a batch */
    int32_t *results; /* (2 cells + 1): those above, those equal, whether a score is NaN */
    /* On the backend, of the batch that is ranked. */
    int32_t *d_answers, *d_results, *d_filtered;
    int64_t *d_filter_offset, d_filtered_capacity;
    const uint8_t *only;
    int32_t *same;     /* the first entity with the same row; NULL: each entity has its own score */
    int32_t competing; /* candidates before the filter */
    float *rows[VLP_MAX_COMPONENTS]; /* (batch, entities) scores on the host, where they are collected */
    int64_t score_capacity, truth_capacity;
} ranker;

/* How many triples of a split are ranked. */
static int64_t ranked_triples(const vlp_triple_list *triples, const vlp_ranking_options *options) {
    bool fewer = options->most_triples > 0 && options->most_triples < triples->count;
    return fewer ? options->most_triples : triples->count;
}

vlp_query vlp_ranking_query(int32_t *answer, const vlp_dataset *dataset,
                            const vlp_ranking_options *options, int64_t index) {
    const vlp_triple_list *triples = &dataset->splits[options->split];
    int64_t count = ranked_triples(triples, options);
    bool forward = index < count;
    int64_t place = forward ? index : index - count;
    vlp_triple triple = triples->items[place * triples->count / count];
    int32_t inverse = vlp_dataset_relation_count(dataset);
    *answer = forward ? triple.tail : triple.head;
    return forward ? (vlp_query){triple.head, triple.relation, -1}
                   : (vlp_query){triple.tail, triple.relation + inverse, -1};
}

static vlp_query query_of(const ranker *work, int64_t index, int32_t *answer) {
    return vlp_ranking_query(answer, work->dataset, work->options, index);
}

/* The number of the query that is asked at a place. */
static int64_t asked_at(const ranker *work, int64_t place) {
    return work->order ? work->order[place] : place;
}

typedef struct placed_query {
    vlp_query query;
    int64_t index;
} placed_query;

static int by_key(const void *left, const void *right) {
    const placed_query *a = left, *b = right;
    if (a->query.relation != b->query.relation) return a->query.relation < b->query.relation ? -1 : 1;
    if (a->query.entity != b->query.entity) return a->query.entity < b->query.entity ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Equal queries one after the other, which the path component reads once. */
static vlp_status order_queries(ranker *work) {
    int64_t count = work->out->queries;
    if (!vlp_model_has(work->model, VLP_PATH)) return VLP_OK;
    placed_query *placed = vlp_alloc((size_t)count, sizeof *placed);
    work->order = vlp_alloc((size_t)count, sizeof *work->order);
    if (!placed || !work->order) {
        vlp_free(placed);
        return vlp_fail_memory("an evaluation");
    }
    for (int64_t i = 0; i < count; i++) {
        int32_t answer;
        placed[i].query = query_of(work, work->out->first + i, &answer);
        placed[i].index = i;
    }
    vlp_sort(placed, count, sizeof *placed, by_key);
    for (int64_t i = 0; i < count; i++) work->order[i] = placed[i].index;
    vlp_free(placed);
    return VLP_OK;
}

/* The filtered answers of the batch, and how many candidates each query keeps. */
static vlp_status set_filter(const ranker *work, batch *now) {
    const uint8_t *only = work->options->only;
    int64_t total = 0;
    for (int64_t i = 0; i < now->count; i++) {
        int64_t size;
        const int32_t *known =
            vlp_filter_answers(work->filter, now->queries[i].entity, now->queries[i].relation, &size);
        VLP_TRY(vlp_grow(&now->filtered, &now->filtered_capacity, total + size, sizeof(int32_t),
                         "known answers"));
        int32_t removed = 0;
        for (int64_t j = 0; j < size; j++)
            removed += known[j] != now->answers[i] && (!only || only[known[j]]);
        if (size > 0) memcpy(now->filtered + total, known, (size_t)size * sizeof *known);
        now->filter_offset[i] = total;
        /* The answer is a candidate even where it is not among those that compete. */
        now->candidates[i] = work->competing - removed + (only && !only[now->answers[i]]);
        total += size;
    }
    now->filter_offset[now->count] = total;
    return VLP_OK;
}

/* The host's part: queries, references, filter. Nothing is asked of the backend. */
static vlp_status prepare_batch(ranker *work, batch *now, int64_t start, int64_t count) {
    now->start = start;
    now->count = count;
    for (int64_t i = 0; i < count; i++)
        now->queries[i] = query_of(work, work->out->first + asked_at(work, start + i), &now->answers[i]);
    VLP_TRY(vlp_scorer_find(work->scorer, work->model->components, now->queries, count));
    return set_filter(work, now);
}

/* Answers and filter of the batch, for the backend. */
static vlp_status upload_batch(ranker *work, const batch *now) {
    const vlp_backend *backend = work->model->backend;
    vlp_compute *compute = work->model->compute;
    int64_t total = now->filter_offset[now->count];
    if (total > work->d_filtered_capacity) {
        if (work->d_filtered) backend->memory->release(compute, work->d_filtered);
        work->d_filtered_capacity = 0;
        work->d_filtered = backend->memory->allocate(compute, 2 * (size_t)total * sizeof(int32_t));
        if (!work->d_filtered) return vlp_fail_memory("known answers");
        work->d_filtered_capacity = 2 * total;
    }
    size_t rows = (size_t)now->count;
    VLP_TRY(backend->memory->upload(compute, work->d_answers, now->answers, rows * sizeof(int32_t)));
    VLP_TRY(backend->memory->upload(compute, work->d_filter_offset, now->filter_offset,
                                    (rows + 1) * sizeof(int64_t)));
    return backend->memory->upload(compute, work->d_filtered, now->filtered,
                                   (size_t)total * sizeof(int32_t));
}

/* Starts the ranking of a prepared batch. Uploads come first: behind other work they would wait. */
static vlp_status begin_batch(ranker *work, batch *now) {
    const vlp_model *model = work->model;
    VLP_TRY(upload_batch(work, now));
    VLP_TRY(vlp_scorer_make(work->scorer, model->components));
    vlp_ranked *ranked = &now->ranked;
    VLP_TRY(vlp_scorer_ranked(ranked, work->scorer));
    ranked->keep = work->options->collect;
    ranked->answers = work->d_answers;
    ranked->filter_offset = work->d_filter_offset;
    ranked->filtered = work->d_filtered;
    ranked->filtered_count = now->filter_offset[now->count];
    ranked->only = work->only;
    ranked->same = work->same;
    ranked->mixtures = work->options->mixtures;
    ranked->mixture_count = work->options->mixture_count;
    return model->backend->rank->counts(model->compute, work->d_results, work->d_results + work->cells,
                                        work->d_results + 2 * work->cells, ranked);
}

/* The first mixture of row i of the batch for entity e. */
static float collected_score(const ranker *work, int64_t i, int32_t e) {
    float score = 0;
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (work->rows[c])
            score +=
                work->options->mixtures[0].weights[c] * work->rows[c][i * work->model->entities + e];
    return score;
}

/* Keeps the scores of the candidates of one query: row i of the batch. */
static vlp_status collect_row(ranker *work, const batch *now, int64_t i) {
    vlp_ranking *out = work->out;
    const uint8_t *only = work->options->only;
    int32_t entities = work->model->entities, answer = now->answers[i];
    const int32_t *known = now->filtered + now->filter_offset[i];
    int64_t known_count = now->filter_offset[i + 1] - now->filter_offset[i], next = 0;
    int64_t needed = out->pairs + now->candidates[i];
    VLP_TRY(vlp_grow(&out->scores, &work->score_capacity, needed, sizeof(float), "scores"));
    VLP_TRY(vlp_grow(&out->truths, &work->truth_capacity, needed, 1, "scores"));
    for (int32_t e = 0; e < entities; e++) {
        while (next < known_count && known[next] < e) next++; /* they ascend */
        bool filtered = next < known_count && known[next] == e;
        if (e != answer && (filtered || (only && !only[e]))) continue;
        out->scores[out->pairs] = collected_score(work, i, work->same ? work->same[e] : e);
        out->truths[out->pairs++] = e == answer;
    }
    return VLP_OK;
}

static vlp_status collect_batch(ranker *work, const batch *now) {
    const vlp_model *model = work->model;
    const vlp_ranked *ranked = &now->ranked;
    size_t bytes = (size_t)now->count * (size_t)model->entities * sizeof(float);
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        const float *scores =
            c == VLP_HORIZONTAL && ranked->form ? ranked->horizontal : ranked->scores[c];
        if (work->rows[c])
            VLP_TRY(model->backend->memory->download(model->compute, work->rows[c], scores, bytes));
    }
    for (int64_t i = 0; i < now->count; i++) VLP_TRY(collect_row(work, now, i));
    return VLP_OK;
}

/* Waits for the results of a batch. */
static vlp_status await_batch(ranker *work, const batch *now) {
    const vlp_model *model = work->model;
    VLP_TRY(model->backend->memory->download(model->compute, work->results, work->d_results,
                                             (size_t)(2 * work->cells + 1) * sizeof *work->results));
    if (work->results[2 * work->cells])
        return vlp_fail(VLP_ERROR_DIVERGED,
                        "a score is not a number (query %lld of %s); the run is damaged or training "
                        "diverged",
                        (long long)now->start, vlp_split_names[work->options->split]);
    return work->options->collect ? collect_batch(work, now) : VLP_OK;
}

static void keep_ranks(const ranker *work, const batch *now) {
    int32_t mixtures = work->options->mixture_count;
    for (int64_t i = 0; i < now->count; i++)
        for (int32_t m = 0; m < mixtures; m++)
            work->out->ranks[(int64_t)m * work->out->queries + asked_at(work, now->start + i)] =
                (vlp_rank){work->results[i * mixtures + m],
                           work->results[work->cells + i * mixtures + m], now->candidates[i]};
}

/* All queries, `size` at a time. */
static vlp_status rank_queries(ranker *work, int32_t size) {
    const vlp_observer *observer = work->options->observer;
    int64_t queries = work->out->queries;
    batch *last = NULL;
    for (int64_t start = 0; start < queries || last; start += size) {
        batch *now = start < queries ? &work->batches[start / size % 2] : NULL;
        if (now)
            VLP_TRY(prepare_batch(work, now, start, queries - start < size ? queries - start : size));
        if (last) VLP_TRY(await_batch(work, last));
        if (now) VLP_TRY(begin_batch(work, now));
        if (last) {
            keep_ranks(work, last);
            vlp_progress(observer, "queries", last->start + last->count, queries);
        }
        if (vlp_stopped(observer)) return vlp_fail_stopped();
        last = now;
    }
    return VLP_OK;
}

static vlp_status allocate_device(ranker *work, size_t size) {
    const vlp_backend *backend = work->model->backend;
    vlp_compute *compute = work->model->compute;
    work->d_answers = backend->memory->allocate(compute, size * sizeof(int32_t));
    work->d_filter_offset = backend->memory->allocate(compute, (size + 1) * sizeof(int64_t));
    work->d_results =
        backend->memory->allocate(compute, (size_t)(2 * work->cells + 1) * sizeof(int32_t));
    if (!work->d_answers || !work->d_filter_offset || !work->d_results)
        return vlp_fail_memory("an evaluation");
    if (!work->options->only) return VLP_OK;
    work->only = backend->memory->resident(compute, work->options->only, (size_t)work->model->entities);
    return work->only ? VLP_OK : vlp_fail_memory("an evaluation");
}

static vlp_status allocate_batch(batch *now, size_t size) {
    now->queries = vlp_alloc(size, sizeof *now->queries);
    now->answers = vlp_alloc(size, sizeof *now->answers);
    now->candidates = vlp_alloc(size, sizeof *now->candidates);
    now->filter_offset = vlp_alloc(size + 1, sizeof *now->filter_offset);
    if (!now->queries || !now->answers || !now->candidates || !now->filter_offset)
        return vlp_fail_memory("an evaluation");
    return VLP_OK;
}

static vlp_status allocate(ranker *work, int32_t size) {
    work->cells = (int64_t)size * work->options->mixture_count;
    for (int i = 0; i < 2; i++) VLP_TRY(allocate_batch(&work->batches[i], (size_t)size));
    work->results = vlp_alloc((size_t)(2 * work->cells + 1), sizeof *work->results);
    if (!work->results) return vlp_fail_memory("an evaluation");
    for (int c = 0; c < VLP_COMPONENTS && work->options->collect; c++) {
        if (!vlp_model_has(work->model, (vlp_component)c)) continue;
        work->rows[c] = vlp_alloc((size_t)size * (size_t)work->model->entities, sizeof(float));
        if (!work->rows[c]) return vlp_fail_memory("an evaluation");
    }
    VLP_TRY(allocate_device(work, (size_t)size));
    if (!work->model->backend->position_invariant_scores && vlp_scores_by_row(work->model->components))
        VLP_TRY(vlp_same_rows(&work->same, work->model));
    vlp_scorer_options scoring = {.model = work->model,
                                  .graph = work->dataset->graph,
                                  .trained = work->options->trained,
                                  .references = work->options->references,
                                  .references_per_head = work->options->references_per_head,
                                  .references_rule = work->options->references_rule,
                                  .batch = size,
                                  .columns = work->model->entities,
                                  .threads = work->options->threads};
    return vlp_scorer_open(&work->scorer, &scoring);
}

static void ranker_free(ranker *work) {
    const vlp_backend *backend = work->model->backend;
    vlp_compute *compute = work->model->compute;
    void *there[] = {work->d_answers, work->d_filter_offset, work->d_results, work->d_filtered};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) backend->memory->release(compute, there[i]);
    if (work->only) backend->memory->dismiss(compute, work->only);
    vlp_scorer_free(work->scorer);
    for (int i = 0; i < 2; i++) {
        vlp_free(work->batches[i].queries);
        vlp_free(work->batches[i].answers);
        vlp_free(work->batches[i].candidates);
        vlp_free(work->batches[i].filter_offset);
        vlp_free(work->batches[i].filtered);
    }
    vlp_free(work->results);
    vlp_free(work->order);
    vlp_free(work->same);
    for (int c = 0; c < VLP_COMPONENTS; c++) vlp_free(work->rows[c]);
}

/* Whether it pays to score the candidates alone. The path model scores all entities in any case. */
static bool is_short_list(const ranker *work) {
    return !work->options->collect && work->competing < work->model->entities / 4 &&
           !vlp_model_has(work->model, VLP_PATH);
}

vlp_status vlp_ranking_compute(vlp_ranking **out, const vlp_model *model, const vlp_dataset *dataset,
                               const vlp_ranking_options *options) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_filter *made = NULL;
    ranker work = {.model = model, .dataset = dataset, .options = options, .competing = model->entities};
    for (int32_t e = 0; options->only && e < model->entities; e++) work.competing -= !options->only[e];
    vlp_ranking *ranking = vlp_alloc_zero(1, sizeof *ranking);
    if (!ranking) return vlp_fail_memory("an evaluation");
    work.out = ranking;
    int64_t triples = ranked_triples(&dataset->splits[options->split], options);
    ranking->first = options->sides == VLP_HEADS ? triples : 0;
    ranking->queries = options->sides == VLP_BOTH_SIDES ? 2 * triples : triples;
    ranking->mixtures = options->mixture_count;
    ranking->ranks =
        vlp_alloc((size_t)ranking->queries * (size_t)ranking->mixtures, sizeof *ranking->ranks);
    if (!ranking->ranks) {
        status = vlp_fail_memory("an evaluation");
        goto out;
    }
    if (!options->known) VLP_CHECK(vlp_filter_new(&made, dataset, options->filter));
    work.filter = options->known ? options->known : made;
    if (is_short_list(&work)) {
        VLP_CHECK(vlp_ranking_listed(ranking, model, dataset, options, work.filter));
        goto out;
    }
    int64_t rows = SCORE_LIMIT / model->entities;
    int32_t size = (int32_t)(rows < 1 ? 1 : rows > MAX_QUERIES ? MAX_QUERIES : rows);
    VLP_CHECK(order_queries(&work));
    VLP_CHECK(allocate(&work, size));
    VLP_CHECK(rank_queries(&work, size));
out:
    ranker_free(&work);
    vlp_filter_free(made);
    if (status != VLP_OK) {
        vlp_ranking_free(ranking);
        return status;
    }
    *out = ranking;
    return VLP_OK;
}

void vlp_ranking_free(vlp_ranking *ranking) {
    if (!ranking) return;
    vlp_free(ranking->ranks);
    vlp_free(ranking->scores);
    vlp_free(ranking->truths);
    vlp_free(ranking);
}

vlp_status vlp_query_kinds(vlp_query_kind *kinds, const vlp_dataset *dataset, vlp_split split,
                           int32_t threads) {
    const vlp_triple_list *triples = &dataset->splits[split], *train = &dataset->splits[VLP_TRAIN];
    int32_t relations = vlp_dataset_relation_count(dataset);
    vlp_status status = VLP_OK;
    int8_t *mapping = vlp_alloc((size_t)relations, sizeof *mapping);
    int32_t *distance = vlp_alloc((size_t)triples->count, sizeof *distance);
    if (!mapping || !distance) {
        status = vlp_fail_memory("breakdowns");
        goto out;
    }
    VLP_CHECK(vlp_relation_mappings(mapping, train->items, train->count, relations));
    VLP_CHECK(vlp_distance_pairs(distance, dataset, triples->items, triples->count, threads));
    for (int64_t i = 0; i < 2 * triples->count; i++) {
        int64_t triple = i % triples->count;
        int32_t relation = triples->items[triple].relation;
        kinds[i] = (vlp_query_kind){relation, i < triples->count, mapping[relation], distance[triple]};
    }
out:
    vlp_free(mapping);
    vlp_free(distance);
    return status;
}
