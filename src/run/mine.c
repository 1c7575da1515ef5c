/* The likeliest missing triples: see vlp_mine_options in vlp.h for what is asked and what is not.
 *
 * Queries are asked in a fixed order (relation, direction, entity) in chunks of a fixed size; between
 * two chunks a few numbers and the triples kept so far are the whole state, so that going on after an
 * interruption gives what an undisturbed run gives. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/options.h"
#include "graph/places.h"
#include "run/candidates.h"
#include "run/score.h"
#include "store/safetensors.h"

enum { SAVE_EVERY = 16 /* chunks */, MAX_PER_QUERY = 1000 };
enum { FIGURES = 3 + VLP_COMPONENTS }; /* of a triple in the state: f, its parts, f of both directions */

/* How far it is. */
typedef struct progress_of_mining {
    int64_t place;  /* number of (relation, direction) pairs that are done */
    int64_t entity; /* number of entities of the present one that are done */
    int64_t queries, candidates;
} progress_of_mining;

typedef struct miner {
    vlp_run *run;
    vlp_worker *worker;
    vlp_mine_options options;
    vlp_predictor *predictor;
    const vlp_filter *known;
    const vlp_graph *graph;
    vlp_places *places;
    vlp_candidates *candidates; /* NULL: every entity may be an answer */
    progress_of_mining at;
    int64_t total;   /* queries */
    uint8_t *loops;  /* (relations) the graph has (e, r, e) of it */
    vlp_mined *kept; /* the best so far, and behind them what came since */
    int64_t count, capacity;
    /* of a chunk */
    vlp_query *queries;  /* (batch) */
    vlp_triple *triples; /* (batch * per_query) */
    vlp_score *scores;   /* likewise */
    char identity[128];  /* what a state has to be of */
} miner;

/* ---- Keeping the best ---------------------------------------------------------------------------- */

static int compare_triples(const vlp_mined *a, const vlp_mined *b) {
    if (a->triple.relation != b->triple.relation)
        return a->triple.relation < b->triple.relation ? -1 : 1;
    if (a->triple.head != b->triple.head) return a->triple.head < b->triple.head ? -1 : 1;
    return (a->triple.tail > b->triple.tail) - (a->triple.tail < b->triple.tail);
}

static int by_triple(const void *left, const void *right) {
    const vlp_mined *a = left, *b = right;
    int order = compare_triples(a, b);
    /* Found both ways, the same triple may differ in the last bits of its score. */
    return order ? order : (a->score < b->score) - (a->score > b->score);
}

static int by_score(const void *left, const void *right) {
    const vlp_mined *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return compare_triples(a, b);
}

/* Drops repeated triples and all but the best. */
static void keep_best(miner *work) {
    vlp_sort(work->kept, work->count, sizeof *work->kept, by_triple);
    int64_t distinct = 0;
    for (int64_t i = 0; i < work->count; i++)
        if (i == 0 || compare_triples(&work->kept[i], &work->kept[distinct - 1]) != 0)
            work->kept[distinct++] = work->kept[i];
    vlp_sort(work->kept, distinct, sizeof *work->kept, by_score);
    work->count = distinct < work->options.count ? distinct : work->options.count;
}

/* ---- Asking -------------------------------------------------------------------------------------- */

/* The relation, 0 .. 2 * relations - 1, of pair number `place`. */
static int32_t relation_of(const miner *work, int64_t place) {
    int32_t relation = work->options.relation >= 0 ? work->options.relation : (int32_t)(place / 2);
    return relation + (place % 2 ? work->graph->relations : 0);
}

static int64_t place_count(const miner *work) {
    return work->options.relation >= 0 ? 2 : 2 * (int64_t)work->graph->relations;
}

/* The entities that a place is asked about: none where its answers are not asked for, or none of them
 * may be an answer. */
static const int32_t *entities_of(const miner *work, int64_t place, int64_t *count) {
    int32_t relation = relation_of(work, place);
    vlp_sides asks_for = relation < work->graph->relations ? VLP_TAILS : VLP_HEADS;
    const int32_t *entities = vlp_places_of(work->places, relation, count);
    if (work->options.sides != VLP_BOTH_SIDES && work->options.sides != asks_for) *count = 0;
    if (work->candidates && vlp_candidates_of(work->candidates, relation).count == 0) *count = 0;
    return entities;
}

/* Asks about entities of one place; what is proposed is scored and kept. */
static vlp_status mine_chunk(miner *work, int32_t relation, const int32_t *entities, int64_t count) {
    int32_t relations = work->graph->relations;
    vlp_candidate_list among = {NULL, 0};
    if (work->candidates) among = vlp_candidates_of(work->candidates, relation);
    for (int64_t i = 0; i < count; i++) work->queries[i] = (vlp_query){entities[i], relation, -1};
    VLP_TRY(vlp_predictor_top(work->predictor, work->queries, count, work->options.per_query,
                              work->known, work->candidates ? &among : NULL, work->options.observer));
    int64_t candidates = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t answers;
        const vlp_top *top = vlp_predictor_answers(work->predictor, i, &answers);
        for (int32_t j = 0; j < answers; j++) {
            if (top[j].entity == entities[i] && !work->loops[relation % relations]) continue;
            work->triples[candidates++] =
                relation < relations ? (vlp_triple){entities[i], relation, top[j].entity}
                                     : (vlp_triple){top[j].entity, relation - relations, entities[i]};
        }
    }
    vlp_observer silent = {0}; /* its progress is not ours; whether to stop is */
    if (work->options.observer) {
        silent.stop = work->options.observer->stop;
        silent.user = work->options.observer->user;
    }
    VLP_TRY(vlp_triples_score(work->scores, work->predictor, work->graph, work->triples, candidates,
                              &silent));
    VLP_TRY(vlp_grow(&work->kept, &work->capacity, work->count + candidates, sizeof *work->kept,
                     "missing triples"));
    for (int64_t i = 0; i < candidates; i++) {
        vlp_mined *mined = &work->kept[work->count++];
        *mined = (vlp_mined){.triple = work->triples[i],
                             .score = work->scores[i].score,
                             .probability = (double)NAN,
                             .tail = work->scores[i].tail,
                             .head = work->scores[i].head};
        memcpy(mined->parts, work->scores[i].parts, sizeof mined->parts);
    }
    if (work->count / 2 > work->options.count) keep_best(work);
    work->at.queries += count;
    work->at.candidates += candidates;
    return VLP_OK;
}

/* ---- The state ----------------------------------------------------------------------------------- */

static vlp_status set_identity(miner *work) {
    char fingerprint[33];
    VLP_TRY(vlp_run_fingerprint(fingerprint, work->run, work->worker));
    uint64_t graph =
        XXH3_64bits(work->graph->triples, (size_t)work->graph->edges * sizeof *work->graph->triples);
    const vlp_dataset *names = vlp_run_names(work->run);
    for (int split = VLP_VALID; work->run->live && split < VLP_SPLITS; split++) {
        const vlp_triple_list *known = &names->splits[split];
        if (known->count > 0)
            graph ^= XXH3_64bits(known->items, (size_t)known->count * sizeof(vlp_triple)) *
                     (uint64_t)(2 * split + 1);
    }
    int used = snprintf(work->identity, sizeof work->identity, "%s %016llx %d %d %d", fingerprint,
                        (unsigned long long)graph, work->options.count, work->options.per_query,
                        work->options.relation);
    /* Without restrictions it is as it was before there were any. */
    if (work->candidates || work->options.sides != VLP_BOTH_SIDES)
        snprintf(work->identity + used, sizeof work->identity - (size_t)used, " %d %d %016llx",
                 (int)work->options.sides, work->candidates && work->candidates->places,
                 work->candidates ? (unsigned long long)XXH3_64bits(work->candidates->allowed,
                                                                    (size_t)work->graph->entities)
                                  : 0ull);
    return VLP_OK;
}

static vlp_status save(miner *work) {
    vlp_status status = VLP_OK;
    keep_best(work);
    int64_t position[4] = {work->at.place, work->at.entity, work->at.queries, work->at.candidates};
    int32_t *triples = vlp_alloc((size_t)work->count * 3, sizeof *triples);
    double *figures = vlp_alloc((size_t)work->count * FIGURES, sizeof *figures);
    if (!triples || !figures) {
        status = vlp_fail_memory("saving");
        goto out;
    }
    for (int64_t i = 0; i < work->count; i++) {
        const vlp_mined *item = &work->kept[i];
        memcpy(triples + 3 * i, &item->triple, sizeof item->triple);
        double *row = figures + FIGURES * i;
        row[0] = item->score;
        memcpy(row + 1, item->parts, VLP_COMPONENTS * sizeof *row);
        row[1 + VLP_COMPONENTS] = item->tail;
        row[2 + VLP_COMPONENTS] = item->head;
    }
    vlp_tensor tensors[3] = {{"position", VLP_I64, 1, {4, 0, 0, 0}, position},
                             {"triples", VLP_I32, 2, {work->count, 3, 0, 0}, triples},
                             {"scores", VLP_F64, 2, {work->count, FIGURES, 0, 0}, figures}};
    vlp_pair pairs[1] = {{"mining", work->identity}};
    status = vlp_safetensors_write(work->options.state, tensors, 3, pairs, 1);
out:
    vlp_free(triples);
    vlp_free(figures);
    return status;
}

/* What is read is checked: anyone may have written it. */
static bool makes_sense(const miner *work, const int64_t *position, const vlp_tensor *triples) {
    if (position[0] < 0 || position[0] > place_count(work) || position[1] < 0 || position[2] < 0 ||
        position[3] < 0 || triples->shape[0] > work->options.count)
        return false;
    const vlp_triple *items = triples->data;
    for (int64_t i = 0; i < triples->shape[0]; i++)
        if (items[i].head < 0 || items[i].head >= work->graph->entities || items[i].tail < 0 ||
            items[i].tail >= work->graph->entities || items[i].relation < 0 ||
            items[i].relation >= work->graph->relations)
            return false;
    return true;
}

static vlp_status load(miner *work) {
    const char *path = work->options.state;
    vlp_status status = VLP_OK;
    vlp_safetensors *file = NULL;
    const vlp_tensor *position, *triples, *scores;
    const int64_t four[1] = {4}, three[2] = {-1, 3};
    VLP_CHECK(vlp_safetensors_open(&file, path, true));
    const char *identity = vlp_safetensors_metadata(file, "mining");
    if (!identity || strcmp(identity, work->identity) != 0) {
        status =
            vlp_fail(VLP_ERROR_ARGUMENT,
                     "%s is of another run, graph or choice of options; remove it to start anew", path);
        goto out;
    }
    VLP_CHECK(vlp_safetensors_need(&position, file, "position", VLP_I64, 1, four));
    VLP_CHECK(vlp_safetensors_need(&triples, file, "triples", VLP_I32, 2, three));
    const int64_t five[2] = {triples->shape[0], FIGURES};
    VLP_CHECK(vlp_safetensors_need(&scores, file, "scores", VLP_F64, 2, five));
    const int64_t *at = position->data;
    if (!makes_sense(work, at, triples)) {
        status = vlp_fail(VLP_ERROR_FORMAT, "%s: damaged; remove it to start anew", path);
        goto out;
    }
    work->at = (progress_of_mining){at[0], at[1], at[2], at[3]};
    work->count = triples->shape[0];
    VLP_CHECK(
        vlp_grow(&work->kept, &work->capacity, work->count, sizeof *work->kept, "missing triples"));
    for (int64_t i = 0; i < work->count; i++) {
        const double *row = (const double *)scores->data + i * FIGURES;
        work->kept[i] = (vlp_mined){.triple = ((const vlp_triple *)triples->data)[i],
                                    .score = row[0],
                                    .probability = (double)NAN,
                                    .tail = row[1 + VLP_COMPONENTS],
                                    .head = row[2 + VLP_COMPONENTS]};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
            work->kept[i].parts[c] = c < VLP_COMPONENTS ? row[1 + c] : (double)NAN;
    }
out:
    vlp_safetensors_free(file);
    return status;
}

static vlp_status open_state(miner *work) {
    const char *path = work->options.state;
    if (!path) return VLP_OK;
    VLP_TRY(vlp_writer_check(path));
    VLP_TRY(set_identity(work));
    if (!vlp_path_exists(path)) return VLP_OK;
    if (work->options.resume) return load(work);
    return vlp_fail(VLP_ERROR_EXISTS, "%s holds unfinished work; resume it, or remove it", path);
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status mine_all(miner *work) {
    int64_t batch = vlp_predictor_batch(work->predictor), chunks = 0;
    for (; work->at.place < place_count(work); work->at.place++, work->at.entity = 0) {
        int32_t relation = relation_of(work, work->at.place);
        int64_t there;
        const int32_t *entities = entities_of(work, work->at.place, &there);
        while (work->at.entity < there) {
            int64_t left = there - work->at.entity, size = left < batch ? left : batch;
            vlp_status status = mine_chunk(work, relation, entities + work->at.entity, size);
            if (status == VLP_ERROR_STOPPED && work->options.state) VLP_TRY(save(work));
            if (status == VLP_ERROR_STOPPED) return vlp_fail_stopped();
            VLP_TRY(status);
            work->at.entity += size;
            vlp_progress(work->options.observer, "queries", work->at.queries, work->total);
            if (work->options.state && ++chunks % SAVE_EVERY == 0) VLP_TRY(save(work));
        }
    }
    /* Whole: the caller removes it when the result is where it should be. */
    return work->options.state ? save(work) : VLP_OK;
}

static vlp_status prepare(miner *work) {
    vlp_run *run = work->run;
    VLP_TRY(vlp_run_predictor(&work->predictor, run, work->worker));
    VLP_TRY(vlp_run_known(&work->known, run, 0));
    work->graph = vlp_run_graph(run);
    VLP_TRY(vlp_places_new(&work->places, work->graph));
    VLP_TRY(vlp_candidates_open(&work->candidates, run, work->known, work->options.candidates));
    size_t batch = (size_t)vlp_predictor_batch(work->predictor);
    size_t candidates = batch * (size_t)work->options.per_query;
    work->queries = vlp_alloc(batch, sizeof *work->queries);
    work->triples = vlp_alloc(candidates, sizeof *work->triples);
    work->scores = vlp_alloc(candidates, sizeof *work->scores);
    work->loops = vlp_alloc_zero((size_t)work->graph->relations, 1);
    if (!work->queries || !work->triples || !work->scores || !work->loops)
        return vlp_fail_memory("missing triples");
    for (int64_t i = 0; i < work->graph->edges; i++)
        if (work->graph->triples[i].head == work->graph->triples[i].tail)
            work->loops[work->graph->triples[i].relation] = 1;
    for (int64_t place = 0; place < place_count(work); place++) {
        int64_t there;
        entities_of(work, place, &there);
        work->total += there;
    }
    if (work->total == 0 && work->candidates && work->candidates->places)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "no candidate is left: none of those that meet the other restrictions is seen "
                        "in the place of a relation that is asked for");
    return open_state(work);
}

/* Hands the result over: probabilities are put in. */
static vlp_status finish(vlp_mining **out, miner *work, const vlp_calibration *calibration) {
    vlp_mining *mining = vlp_alloc_zero(1, sizeof *mining);
    if (!mining) return vlp_fail_memory("missing triples");
    keep_best(work);
    for (int64_t i = 0; calibration && i < work->count; i++)
        work->kept[i].probability =
            vlp_calibrated(calibration, work->kept[i].score, work->options.prior);
    int64_t entities = vlp_run_answer_count(work->run), relations = place_count(work) / 2;
    int64_t sides = work->options.sides == VLP_BOTH_SIDES ? 2 : 1;
    *mining = (vlp_mining){.items = work->kept,
                           .count = work->count,
                           .queries = work->at.queries,
                           .possible_queries = sides * relations * entities,
                           .candidates = work->at.candidates,
                           .possible_triples = relations * entities * entities};
    work->kept = NULL;
    *out = mining;
    return VLP_OK;
}

static vlp_status check(const vlp_run *run, const vlp_mine_options *options) {
    if (options->count < 1)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d triples asked for; it is 1 or more", options->count);
    if (options->per_query < 1 || options->per_query > MAX_PER_QUERY)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d candidates a query; it is 1 to %d", options->per_query,
                        MAX_PER_QUERY);
    if (options->relation < -1 || options->relation >= vlp_dataset_relation_count(run->dataset))
        return vlp_fail(VLP_ERROR_ARGUMENT, "relation %d of %d", options->relation,
                        vlp_dataset_relation_count(run->dataset));
    if ((int)options->sides < VLP_BOTH_SIDES || options->sides > VLP_TAILS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "there is no choice of sides %d", (int)options->sides);
    return vlp_prior_check(options->prior);
}

vlp_status vlp_run_mine(vlp_mining **out, vlp_run *run, const vlp_mine_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_mine_options, &options, given));
    VLP_TRY(check(run, &options));
    vlp_status status = VLP_OK;
    miner work = {.run = run, .options = options};
    vlp_calibration calibration;
    bool calibrated = run->dataset->splits[VLP_VALID].count > 0;
    VLP_CHECK(vlp_run_enter(&work.worker, run));
    VLP_CHECK(prepare(&work));
    if (calibrated) {
        vlp_calibration_options calibrating = VLP_CALIBRATION_OPTIONS_INIT;
        calibrating.observer = options.observer;
        VLP_CHECK(vlp_calibrate_inside(&calibration, run, work.worker, &calibrating));
    }
    VLP_CHECK(mine_all(&work));
    VLP_CHECK(finish(out, &work, calibrated ? &calibration : NULL));
out:
    vlp_run_leave(run, work.worker);
    vlp_places_free(work.places);
    vlp_candidates_free(work.candidates);
    vlp_free(work.kept);
    vlp_free(work.queries);
    vlp_free(work.loops);
    vlp_free(work.triples);
    vlp_free(work.scores);
    return status;
}

void vlp_mining_free(vlp_mining *mining) {
    if (!mining) return;
    vlp_free(mining->items);
    vlp_free(mining);
}
