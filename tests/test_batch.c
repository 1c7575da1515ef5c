/* The queries of a step, and the columns of a sampled softmax: every query once a pass, with what
 * belongs to it looked up again from the triples; columns that are the answers and others, once each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

enum { SEED = 60, ROUNDS = 12, MOST = 3 };

/* Triples with known answers and references, on both sides. */
typedef struct queries {
    int32_t triples, entities, relations;
    vlp_triple *items;
    uint32_t *begin;
    int32_t *counts, *edge_counts;
    vlp_reference *edges;
    vlp_query_tables on;
} queries;

static void make_queries(lab *bench, queries *q, bool weigh) {
    q->triples = lab_between(bench, 1, 40);
    q->entities = lab_between(bench, 1, 9);
    q->relations = lab_between(bench, 1, 3);
    size_t n = (size_t)q->triples;
    q->items = (vlp_triple *)lab_zeros(bench, 3 * q->triples);
    q->begin = (uint32_t *)lab_zeros(bench, 2 * q->triples);
    q->counts = lab_ids(bench, 2 * q->triples, 1, 9);
    q->edge_counts = lab_ids(bench, 2 * q->triples, 0, MOST);
    q->edges = (vlp_reference *)lab_zeros(bench, 2 * MOST * q->triples);
    for (int32_t i = 0; i < q->triples; i++)
        q->items[i] =
            (vlp_triple){lab_between(bench, 0, q->entities - 1), lab_between(bench, 0, q->relations - 1),
                         lab_between(bench, 0, q->entities - 1)};
    for (int32_t i = 0; i < 2 * q->triples; i++) q->begin[i] = (uint32_t)lab_between(bench, 0, 99);
    for (int32_t i = 0; i < 2 * MOST * q->triples; i++)
        q->edges[i] = (vlp_reference){lab_between(bench, 0, q->triples - 1), 1};
    q->on = (vlp_query_tables){q->triples,
                               q->relations,
                               SEED,
                               lab_put_bytes(bench, q->items, n * sizeof *q->items),
                               lab_put_bytes(bench, q->begin, 2 * n * sizeof *q->begin),
                               lab_put_ids(bench, q->counts, 2 * q->triples),
                               weigh,
                               lab_put_bytes(bench, q->edges, 2 * MOST * n * sizeof *q->edges),
                               lab_put_ids(bench, q->edge_counts, 2 * q->triples),
                               MOST,
                               false,
                               {0}};
}

/* A batch on this side. */
typedef struct drawn {
    int32_t *heads, *relations, *answers, *pairs, *reference_heads, *reference_answers, *counts;
    int64_t *begin, *end;
    double *weights;
} drawn;

static vlp_batch batch_on(lab *bench, int32_t count, int32_t width) {
    int32_t *poison = lab_ids(bench, count * (width + MOST), -5, -5);
    int32_t cells = count * MOST;
    return (vlp_batch){
        .count = count,
        .width = width,
        .heads = lab_put_ids(bench, poison, count),
        .relations = lab_put_ids(bench, poison, count),
        .answers = lab_put_ids(bench, poison, count),
        .pairs = lab_put_ids(bench, poison, count * width),
        .weights = lab_put(bench, lab_zeros(bench, count), count),
        .known_begin = (int64_t *)lab_put_ids(bench, lab_ids(bench, 2 * count, 0, 0), 2 * count),
        .known_end = (int64_t *)lab_put_ids(bench, lab_ids(bench, 2 * count, 0, 0), 2 * count),
        .reference_heads = lab_put_ids(bench, poison, cells),
        .reference_answers = lab_put_ids(bench, poison, cells),
        .reference_counts = lab_put_ids(bench, poison, count)};
}

static int32_t *get_ids(lab *bench, const int32_t *from, int32_t count) {
    int32_t *ids = lab_ids(bench, count, 0, 0);
    lab_get_bytes(bench, ids, from, (size_t)count * sizeof *ids);
    return ids;
}

static drawn get_batch(lab *bench, const vlp_batch *on) {
    int32_t count = on->count;
    drawn got = {.heads = get_ids(bench, on->heads, count),
                 .relations = get_ids(bench, on->relations, count),
                 .answers = get_ids(bench, on->answers, count),
                 .pairs = get_ids(bench, on->pairs, count * on->width),
                 .reference_heads = get_ids(bench, on->reference_heads, count * MOST),
                 .reference_answers = get_ids(bench, on->reference_answers, count * MOST),
                 .counts = get_ids(bench, on->reference_counts, count),
                 .begin = (int64_t *)get_ids(bench, (const int32_t *)on->known_begin, 2 * count),
                 .end = (int64_t *)get_ids(bench, (const int32_t *)on->known_end, 2 * count),
                 .weights = lab_get(bench, on->weights, count)};
    return got;
}

/* Whether place i of a batch is query number `query`, with all that belongs to it. */
static bool is_query(const queries *q, const drawn *got, int32_t i, int32_t width, int32_t query) {
    vlp_triple triple = q->items[query % q->triples];
    bool forward = query < q->triples;
    if (got->heads[i] != (forward ? triple.head : triple.tail) ||
        got->answers[i] != (forward ? triple.tail : triple.head) ||
        got->relations[i] != triple.relation + (forward ? 0 : q->relations) ||
        got->pairs[i * width] != got->answers[i] || got->begin[i] != q->begin[query] ||
        got->end[i] != (int64_t)q->begin[query] + q->counts[query] ||
        got->counts[i] != q->edge_counts[query])
        return false;
    for (int32_t j = 0; j < got->counts[i]; j++) {
        vlp_triple edge = q->items[q->edges[query * MOST + j].edge];
        if (got->reference_heads[i * MOST + j] != (forward ? edge.head : edge.tail) ||
            got->reference_answers[i * MOST + j] != (forward ? edge.tail : edge.head))
            return false;
    }
    return true;
}

/* Steps of a whole number of passes: every query as often as there are passes. */
static void check_passes(lab *bench, bool weigh) {
    queries q;
    make_queries(bench, &q, weigh);
    int32_t all = 2 * q.triples, count = lab_between(bench, 1, all), width = lab_between(bench, 1, 4);
    vlp_batch on = batch_on(bench, count, width);
    int32_t *times = lab_ids(bench, all, 0, 0);
    for (int64_t step = 0; step < all; step++) { /* `count` passes */
        vlp_step_values values = {.step = step};
        assert_false(bench->backend->steps->begin(bench->compute, NULL, &values));
        bench->backend->steps->choose_batch(bench->compute, &q.on, &on);
        drawn got = get_batch(bench, &on);
        double sum = 0, expected = 0;
        for (int32_t i = 0; i < count; i++) {
            int32_t query = 0;
            /* Of queries that are alike in everything, the one that came least often. */
            int32_t best = -1;
            for (query = 0; query < all; query++)
                if (is_query(&q, &got, i, width, query) && (best < 0 || times[query] < times[best]))
                    best = query;
            assert_true(best >= 0);
            times[best]++;
            for (int32_t j = 1; j < width; j++) assert_int_equal(got.pairs[i * width + j], -5);
            int32_t triple = best % q.triples;
            expected += weigh ? 1 / sqrt(q.counts[triple] + q.counts[triple + q.triples] + 6.0) : 1;
            sum += got.weights[i];
        }
        assert_true(fabs(sum - 1) < 1e-5);
        int32_t first = 0; /* one weight by itself */
        for (int32_t query = 0; query < all; query++)
            if (is_query(&q, &got, first, width, query)) {
                int32_t triple = query % q.triples;
                double weight =
                    weigh ? 1 / sqrt(q.counts[triple] + q.counts[triple + q.triples] + 6.0) : 1;
                assert_true(fabs(got.weights[first] - weight / expected) < 1e-6);
                break;
            }
        bench->hosts -= 10; /* what get_batch took; the loop is long */
        for (int i = 0; i < 10; i++) free(bench->host[bench->hosts + i]);
    }
    for (int32_t i = 0; i < all; i++) assert_int_equal(times[i], count);
}

static void test_batches(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 2, SEED);
    for (int round = 0; round < ROUNDS; round++) {
        check_passes(&bench, round % 2);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* ---- Columns ------------------------------------------------------------------------------------- */

static void check_columns(lab *bench, int64_t step, int32_t entities, int32_t count,
                          int32_t candidates) {
    int32_t room = count + candidates, used = 0, distinct = 0, others = 0;
    int32_t *answers = lab_ids(bench, count, 0, entities - 1), *poison = lab_ids(bench, room, -9, -9);
    vlp_columns on = {lab_put_ids(bench, poison, room), lab_put(bench, lab_zeros(bench, room), room),
                      lab_put_ids(bench, poison, count)};
    vlp_step_values values = {.step = step};
    assert_false(bench->backend->steps->begin(bench->compute, NULL, &values));
    assert_int_equal(bench->backend->steps->choose_columns(
                         bench->compute, &used, &on,
                         &(vlp_column_options){.answers = lab_put_ids(bench, answers, count),
                                               .count = count,
                                               .candidates = candidates,
                                               .entities = entities,
                                               .seed = SEED}),
                     VLP_OK);
    assert_in_range(used, 1, room);
    int32_t *ids = get_ids(bench, on.ids, room), *places = get_ids(bench, on.answers, count);
    double *offsets = lab_get(bench, on.offsets, room);
    int32_t *kind = lab_ids(bench, entities, 0, 0); /* 1: an answer, 2: an answer with its column */
    for (int32_t i = 0; i < count; i++) kind[answers[i]] = 1;
    for (int32_t e = 0; e < entities; e++) distinct += kind[e];
    int32_t wanted = candidates < entities - distinct ? candidates : entities - distinct;
    double correction = wanted > 0 ? log((double)(entities - distinct) / wanted) : 0;
    for (int32_t c = 0; c < used; c++) {
        if (ids[c] < 0) { /* nothing there: out of the softmax */
            assert_int_equal(ids[c], -1);
            assert_true(isinf(offsets[c]) && offsets[c] < 0);
            continue;
        }
        assert_in_range(ids[c], 0, entities - 1);
        assert_in_range(kind[ids[c]], 0, 1); /* once */
        assert_true(fabs(offsets[c] - (kind[ids[c]] == 1 ? 0 : correction)) < 1e-5);
        others += kind[ids[c]] == 0;
        kind[ids[c]] += 2;
    }
    assert_int_equal(others, wanted);
    for (int32_t i = 0; i < count; i++) {
        assert_in_range(places[i], 0, used - 1);
        assert_int_equal(ids[places[i]], answers[i]);
    }
}

static void test_columns(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 2, SEED + 1);
    for (int round = 0; round < 60; round++) {
        bool large = round % 20 == 19;
        int32_t entities = large ? 5000 : lab_between(&bench, 1, 30);
        int32_t count = large ? 1700 : lab_between(&bench, 1, 12);
        check_columns(&bench, round, entities, count, large ? 2300 : lab_between(&bench, 1, 25));
        lab_clear(&bench);
    }
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
