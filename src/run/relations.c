/* The relation between two entities: see vlp_relation_prediction in vlp.h for what is scored.
 *
 * A pair (h, t) is 4R queries: (h, r, ?) for all 2R relations with the answer t, then (t, inverse of r,
 * ?) with the answer h. Their scores with all entities are read tile by tile; each query keeps the sum
 * of its softmax, so that memory does not depend on the number of entities. */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "run/score.h"

enum { SCALE_QUERIES = 64 };
/* The scale in standard deviations. On the validation splits of umls and kinship, for ComplEx and RotatE
 * with the aggregator, the path model and all of them, 2 to 8 differ by less than .01 of the MRR of
 * relations on average; f alone is .04 below. */
#define SCALE_DEVIATIONS 4.0

struct vlp_relation_predictions {
    int64_t count;
    vlp_relation_answers *items; /* (count) */
};

void vlp_relation_predictions_free(vlp_relation_predictions *predictions) {
    if (!predictions) return;
    for (int64_t i = 0; predictions->items && i < predictions->count; i++)
        vlp_free((void *)(uintptr_t)predictions->items[i].predictions);
    vlp_free(predictions->items);
    vlp_free(predictions);
}

const vlp_relation_answers *vlp_relation_predictions_get(const vlp_relation_predictions *from,
                                                         int64_t pair) {
    if (!from || pair < 0 || pair >= from->count) return NULL;
    return &from->items[pair];
}

/* ---- Reading scores ------------------------------------------------------------------------------ */

/* What is read of one query. */
typedef struct reading {
    int32_t answer;
    const int32_t *known; /* (known_count) ascending: they do not compete with the answer */
    int64_t known_count, next;
    double largest, sum;                 /* log of the softmax's sum: largest + log(sum) */
    double f, parts[VLP_MAX_COMPONENTS]; /* of the answer */
    double total, squares;               /* of f, for its standard deviation */
} reading;

typedef struct relating {
    const vlp_run *run;
    vlp_predictor *predictor;
    const vlp_filter *known;
    const vlp_graph *graph;
    vlp_predict_options options;
    vlp_candidate_list among; /* all entities that may be answers */
    vlp_query *queries;       /* (4R) */
    reading *readings;        /* (4R, at least SCALE_QUERIES) */
    double scale;             /* that f is divided by */
} relating;

static double mixed(const vlp_mixture *mixture, const float *const scores[], int32_t at) {
    double f = 0;
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scores[c] && mixture->weights[c] != 0)
            f += (double)mixture->weights[c] * (double)scores[c][at];
    return f;
}

/* Adds exp(x) to a sum that is relative to the largest exponent so far. */
static void add_exponential(reading *to, double x) {
    if (x > to->largest) {
        to->sum = to->sum * exp(to->largest - x) + 1;
        to->largest = x;
    } else {
        to->sum += exp(x - to->largest);
    }
}

static void read_softmax(void *user, int64_t query, int64_t first, int32_t count,
                         const float *const scores[VLP_MAX_COMPONENTS]) {
    relating *work = user;
    reading *to = &work->readings[query];
    const vlp_mixture *mixture = &vlp_predictor_opened(work->predictor)->mixture;
    for (int32_t i = 0; i < count; i++) {
        int32_t entity = work->among.entities[first + i];
        double f = mixed(mixture, scores, i);
        if (f != f) to->largest = (double)NAN; /* stays so, and is seen at the end */
        if (entity == to->answer) {
            to->f = f;
            for (int c = 0; c < VLP_COMPONENTS; c++)
                if (scores[c]) to->parts[c] = (double)scores[c][i];
        }
        while (to->next < to->known_count && to->known[to->next] < entity) to->next++;
        bool known = to->next < to->known_count && to->known[to->next] == entity;
        if (!known || entity == to->answer) add_exponential(to, f / work->scale);
    }
}

static void read_spread(void *user, int64_t query, int64_t first, int32_t count,
                        const float *const scores[VLP_MAX_COMPONENTS]) {
    (void)first;
    relating *work = user;
    reading *to = &work->readings[query];
    const vlp_mixture *mixture = &vlp_predictor_opened(work->predictor)->mixture;
    for (int32_t i = 0; i < count; i++) {
        double f = mixed(mixture, scores, i);
        to->total += f;
        to->squares += f * f;
    }
}

/* ---- The scale ----------------------------------------------------------------------------------- */

/* SCALE_DEVIATIONS times the mean standard deviation of f, in queries of triples that lie equally far
 * apart in the training split, of both directions in turn. */
static vlp_status set_scale(relating *work) {
    const vlp_graph *graph = work->graph;
    int64_t count = graph->edges < SCALE_QUERIES ? graph->edges : SCALE_QUERIES;
    vlp_query queries[SCALE_QUERIES];
    for (int64_t i = 0; i < count; i++) {
        vlp_triple triple = graph->triples[i * graph->edges / count];
        queries[i] = i % 2 ? (vlp_query){triple.tail, triple.relation + graph->relations, -1}
                           : (vlp_query){triple.head, triple.relation, -1};
        work->readings[i] = (reading){0};
    }
    VLP_TRY(vlp_predictor_read(work->predictor, queries, count, &work->among, read_spread, work,
                               work->options.observer));
    double deviations = 0, n = (double)work->among.count;
    for (int64_t i = 0; i < count; i++) {
        double mean = work->readings[i].total / n, square = work->readings[i].squares / n - mean * mean;
        deviations += square > 0 ? sqrt(square) : 0;
    }
    work->scale = SCALE_DEVIATIONS * deviations / (double)count;
    /* All scores are equal, or not a number, which the reading of a pair then finds. */
    if (!(work->scale > 0)) work->scale = 1;
    return VLP_OK;
}

/* ---- One pair ------------------------------------------------------------------------------------ */

static vlp_triple triple_of(const relating *work, vlp_entity_pair pair, int32_t relation) {
    int32_t relations = work->graph->relations;
    return relation < relations ? (vlp_triple){pair.head, relation, pair.tail}
                                : (vlp_triple){pair.tail, relation - relations, pair.head};
}

/* The queries of `relations` relations, and what is to be read of each. */
static void ask_about(relating *work, vlp_entity_pair pair, int32_t relations) {
    int32_t half = work->graph->relations;
    for (int32_t i = 0; i < 2 * relations; i++) {
        int32_t relation = i % relations, inverse = relation < half ? relation + half : relation - half;
        bool tail = i < relations;
        vlp_query query = {tail ? pair.head : pair.tail, tail ? relation : inverse,
                           vlp_graph_find(work->graph, triple_of(work, pair, relation))};
        reading *to = &work->readings[i];
        *to = (reading){.answer = tail ? pair.tail : pair.head, .largest = -(double)INFINITY};
        to->known = vlp_filter_answers(work->known, query.entity, query.relation, &to->known_count);
        work->queries[i] = query;
    }
}

static double log_probability(const relating *work, const reading *from) {
    return from->f / work->scale - (from->largest + log(from->sum));
}

static vlp_relation_prediction predict_relation(const relating *work, vlp_entity_pair pair,
                                                int32_t relations, int32_t relation) {
    const reading *tail = &work->readings[relation], *head = &work->readings[relations + relation];
    unsigned components = vlp_predictor_components(work->predictor);
    vlp_relation_prediction out = {.relation = relation,
                                   .known = vlp_filter_has(work->known, pair.head, relation, pair.tail),
                                   .edge = work->queries[relation].left_out,
                                   .tail_log_probability = log_probability(work, tail),
                                   .head_log_probability = log_probability(work, head),
                                   .f = (tail->f + head->f) / 2};
    out.score = (out.tail_log_probability + out.head_log_probability) / 2;
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        out.parts[c] = components >> c & 1 ? (tail->parts[c] + head->parts[c]) / 2 : (double)NAN;
    return out;
}

static int best_first(const void *left, const void *right) {
    const vlp_relation_prediction *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->relation > b->relation) - (a->relation < b->relation);
}

static vlp_status relate(vlp_relation_answers *out, relating *work, vlp_entity_pair pair) {
    int32_t relations = work->graph->relations * (pair.head == pair.tail ? 1 : 2), kept = 0;
    vlp_relation_prediction *predictions = vlp_alloc((size_t)relations, sizeof *predictions);
    if (!predictions) return vlp_fail_memory("predictions");
    *out = (vlp_relation_answers){pair, predictions, 0};
    ask_about(work, pair, relations);
    VLP_TRY(vlp_predictor_read(work->predictor, work->queries, 2 * (int64_t)relations, &work->among,
                               read_softmax, work, work->options.observer));
    for (int32_t relation = 0; relation < relations; relation++) {
        predictions[kept] = predict_relation(work, pair, relations, relation);
        if (predictions[kept].score != predictions[kept].score)
            return vlp_fail(VLP_ERROR_DIVERGED,
                            "a score is not a number; the run is damaged or training diverged");
        kept += work->options.known || !predictions[kept].known;
    }
    vlp_sort(predictions, kept, sizeof *predictions, best_first);
    out->prediction_count = kept < work->options.count ? kept : work->options.count;
    return VLP_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status check(const vlp_run *run, const vlp_entity_pair *pairs, int64_t count,
                        const vlp_predict_options *options) {
    VLP_TRY(vlp_check_array(pairs, count, "pairs"));
    VLP_TRY(vlp_check_splits(options->filter));
    if (options->count < 1)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d relations asked for; it is 1 or more", options->count);
    int32_t entities = vlp_run_graph(run)->entities;
    const uint8_t *answers = vlp_run_answers(run);
    for (int64_t i = 0; i < 2 * count; i++) {
        int32_t entity = i % 2 ? pairs[i / 2].tail : pairs[i / 2].head;
        if (entity < 0 || entity >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "pair %lld: entity %d of %d", (long long)(i / 2), entity,
                            entities);
        if (answers && !answers[entity])
            return vlp_fail(VLP_ERROR_ARGUMENT, "pair %lld: the graph in use does not have %s",
                            (long long)(i / 2), vlp_dataset_entity_name(vlp_run_names(run), entity));
    }
    return VLP_OK;
}

static vlp_status prepare(relating *work, int32_t **entities) {
    size_t queries = 4 * (size_t)work->graph->relations;
    const uint8_t *answers = vlp_run_answers(work->run);
    int32_t *list = *entities = vlp_alloc((size_t)work->graph->entities, sizeof *list);
    work->queries = vlp_alloc(queries, sizeof *work->queries);
    work->readings =
        vlp_alloc(queries > SCALE_QUERIES ? queries : SCALE_QUERIES, sizeof *work->readings);
    if (!list || !work->queries || !work->readings) return vlp_fail_memory("predictions");
    for (int32_t e = 0; e < work->graph->entities; e++)
        if (!answers || answers[e]) list[work->among.count++] = e;
    work->among.entities = list;
    return set_scale(work);
}

static vlp_status relate_inside(vlp_relation_predictions *out, const vlp_run *run, vlp_worker *worker,
                                const vlp_entity_pair *pairs, const vlp_predict_options *options) {
    vlp_status status = VLP_OK;
    relating work = {.run = run, .graph = vlp_run_graph(run), .options = *options};
    int32_t *entities = NULL;
    VLP_CHECK(check(run, pairs, out->count, options));
    VLP_CHECK(vlp_run_predictor(&work.predictor, run, worker));
    VLP_CHECK(vlp_run_known(&work.known, run, options->filter));
    if (out->count > 0) VLP_CHECK(prepare(&work, &entities));
    for (int64_t i = 0; i < out->count; i++) {
        VLP_CHECK(relate(&out->items[i], &work, pairs[i]));
        if (out->count > 1) vlp_progress(options->observer, "pairs", i + 1, out->count);
    }
out:
    vlp_free(entities);
    vlp_free(work.queries);
    vlp_free(work.readings);
    return status;
}

vlp_status vlp_run_predict_relations(vlp_relation_predictions **out, vlp_run *run,
                                     const vlp_entity_pair *pairs, int64_t count,
                                     const vlp_predict_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_predict_options, &options, given));
    VLP_TRY(vlp_check_array(pairs, count, "pairs"));
    vlp_relation_predictions *predictions = vlp_alloc_zero(1, sizeof *predictions);
    if (!predictions) return vlp_fail_memory("predictions");
    predictions->items = vlp_alloc_zero((size_t)count, sizeof *predictions->items);
    predictions->count = count;
    vlp_status status = predictions->items ? VLP_OK : vlp_fail_memory("predictions");
    vlp_worker *worker = NULL;
    if (status == VLP_OK) status = vlp_run_enter(&worker, run);
    if (status == VLP_OK) {
        status = relate_inside(predictions, run, worker, pairs, &options);
        vlp_run_leave(run, worker);
    }
    if (status != VLP_OK) {
        vlp_relation_predictions_free(predictions);
        return status;
    }
    *out = predictions;
    return VLP_OK;
}
