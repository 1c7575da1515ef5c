/* Distances against Floyd and Warshall: the skeleton, one source, many pairs, counts, shells within and
 * beyond their budget, at every thread count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/distance.h"
#include "oracle.h"

enum { SEED = 77, SMALL_GRAPHS = 600 };

typedef struct fixture {
    oracle_graph oracle;
    int32_t *truth; /* (entities, entities) */
    vlp_graph *graph;
    vlp_skeleton *skeleton;
} fixture;

/* Floyd and Warshall where the cube is small; relaxation, which test_oracle holds to it, where not. */
static int32_t *true_distances(const oracle_graph *graph) {
    if (graph->entities <= 64) return oracle_distance_matrix(graph);
    int64_t n = graph->entities;
    int32_t *out = calloc((size_t)(n * n), sizeof *out);
    assert_non_null(out);
    for (int32_t i = 0; i < n; i++) oracle_distance_from(out + i * n, graph, i);
    return out;
}

static void fixture_finish(fixture *f, int32_t threads) {
    const oracle_graph *g = &f->oracle;
    f->truth = true_distances(g);
    f->graph = NULL;
    f->skeleton = NULL;
    assert_int_equal(vlp_graph_new(&f->graph, g->triples, g->count, g->entities, g->relations, threads),
                     VLP_OK);
    assert_int_equal(vlp_skeleton_new(&f->skeleton, f->graph, threads), VLP_OK);
}

static void fixture_free(fixture *f) {
    vlp_skeleton_free(f->skeleton);
    vlp_graph_free(f->graph);
    free(f->truth);
    oracle_graph_free(&f->oracle);
}

static void fixture_small(fixture *f, uint64_t step, int32_t threads) {
    oracle_random random = {SEED, step, 0};
    oracle_graph_small(&f->oracle, &random);
    fixture_finish(f, threads);
}

static void fixture_middle(fixture *f, enum oracle_shape shape, int32_t threads) {
    oracle_random random = {SEED + 1, shape, 0};
    oracle_graph_middle(&f->oracle, shape, &random);
    fixture_finish(f, threads);
}

static int32_t truth(const fixture *f, int32_t from, int32_t to) {
    return f->truth[(int64_t)from * f->oracle.entities + to];
}

static int32_t *numbers(int64_t count) {
    int32_t *out = calloc((size_t)count + 1, sizeof *out);
    assert_non_null(out);
    return out;
}

/* Runs `check` on small graphs and on one middle-sized graph of every shape. Three threads are more than
 * some machines have, and waiting for each other then takes them long: seldom asked for. */
static void on_all_graphs(void (*check)(const fixture *f, int32_t threads)) {
    fixture f;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        int32_t threads = step % 50 == 0 ? 3 : 1 + (int32_t)(step % 2);
        fixture_small(&f, step, threads);
        check(&f, threads);
        fixture_free(&f);
    }
    for (int shape = 0; shape < ORACLE_SHAPES; shape++) {
        fixture_middle(&f, (enum oracle_shape)shape, 2);
        check(&f, 2);
        for (int32_t threads = 1; threads <= 3 && shape == ORACLE_RANDOM; threads += 2)
            check(&f, threads);
        fixture_free(&f);
    }
}

/* ---- The oracle itself: two ways that share nothing agree ---- */

static void compare_oracles(const oracle_graph *graph, int32_t step) {
    int32_t *matrix = oracle_distance_matrix(graph), *distance = numbers(graph->entities);
    for (int32_t from = 0; from < graph->entities; from += step) {
        oracle_distance_from(distance, graph, from);
        assert_memory_equal(distance, matrix + (int64_t)from * graph->entities,
                            (size_t)graph->entities * sizeof *distance);
    }
    free(matrix);
    free(distance);
}

static void test_oracle(void **state) {
    (void)state;
    oracle_graph graph;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        oracle_random random = {SEED, step, 0};
        oracle_graph_small(&graph, &random);
        compare_oracles(&graph, 1);
        oracle_graph_free(&graph);
    }
    oracle_random random = {SEED + 4, 0, 0};
    oracle_graph_make(&graph, ORACLE_RANDOM, 300, 2, 400, &random);
    compare_oracles(&graph, 1);
    oracle_graph_free(&graph);
}

/* ---- Skeleton ---- */

static void check_skeleton(const fixture *f, int32_t threads) {
    (void)threads;
    const vlp_skeleton *s = f->skeleton;
    const int32_t n = f->oracle.entities;
    int32_t *last_row = numbers(n); /* row + 1 in which an entity was last seen as a neighbour */
    assert_int_equal(s->nodes, n);
    assert_int_equal(s->offset[0], 0);
    for (int32_t row = 0; row < n; row++) {
        int32_t entity = s->entity[row];
        int64_t expected = 0;
        assert_in_range(entity, 0, (unsigned)n - 1);
        assert_int_equal(s->place[entity], row);
        for (int64_t i = s->offset[row]; i < s->offset[row + 1]; i++) {
            assert_in_range(s->neighbor[i], 0, (unsigned)n - 1);
            int32_t other = s->entity[s->neighbor[i]];
            assert_int_equal(truth(f, entity, other), 1);
            assert_int_not_equal(last_row[other], row + 1);
            last_row[other] = row + 1;
        }
        for (int32_t to = 0; to < n; to++) expected += truth(f, entity, to) == 1;
        assert_int_equal(s->offset[row + 1] - s->offset[row], expected);
    }
    free(last_row);
}

static void test_skeleton(void **state) {
    (void)state;
    on_all_graphs(check_skeleton);
}

/* ---- One source ---- */

static void check_search(const fixture *f, int32_t threads) {
    const int32_t n = f->oracle.entities;
    int32_t *distance = numbers(n), *queue = numbers(n);
    int32_t step = n > 100 ? 7 + threads : 1;
    for (int32_t source = 0; source < n; source += step) {
        for (int32_t limit = 0; limit < 6; limit++) {
            memset(distance, 0x55, (size_t)n * sizeof *distance);
            vlp_skeleton_search(f->skeleton, source, limit, distance, queue);
            for (int32_t to = 0; to < n; to++) {
                int32_t expected = truth(f, source, to);
                if (limit > 0 && expected > limit) expected = -1;
                assert_int_equal(distance[to], expected);
            }
        }
    }
    free(distance);
    free(queue);
}

static void test_search(void **state) {
    (void)state;
    on_all_graphs(check_search);
}

/* ---- Pairs ---- */

static void compare_pairs(const fixture *f, const vlp_triple *pairs, int64_t count, int32_t threads) {
    int32_t *out = numbers(count);
    memset(out, 0x55, (size_t)count * sizeof *out);
    assert_int_equal(vlp_skeleton_pairs(out, f->skeleton, pairs, count, threads), VLP_OK);
    for (int64_t i = 0; i < count; i++) assert_int_equal(out[i], truth(f, pairs[i].head, pairs[i].tail));
    free(out);
}

/* Random pairs, an entity with itself and repeated pairs among them, and then few sources or few
 * targets: whichever end is searched from, both are seen. */
static void check_pairs(const fixture *f, int32_t threads) {
    const int32_t n = f->oracle.entities;
    const int64_t count = n > 100 ? 6000 : 60;
    oracle_random random = {SEED + 2, (uint64_t)n, (uint32_t)f->oracle.count};
    vlp_triple *pairs = calloc((size_t)count, sizeof *pairs);
    assert_non_null(pairs);
    for (int way = 0; way < 3; way++) {
        int32_t heads = way == 1 ? (n + 9) / 10 : n, tails = way == 2 ? (n + 9) / 10 : n;
        for (int64_t i = 0; i < count; i++) {
            /* The relation means nothing here, whatever it is. */
            pairs[i] = (vlp_triple){oracle_below(&random, heads), oracle_below(&random, 1000) - 500,
                                    oracle_below(&random, tails)};
            if (i > 0 && oracle_chance(&random, 9)) pairs[i] = pairs[i - 1];
            if (oracle_chance(&random, 20)) pairs[i].tail = pairs[i].head;
        }
        compare_pairs(f, pairs, count, threads);
    }
    compare_pairs(f, pairs, 1, threads);
    compare_pairs(f, pairs, 0, threads);
    free(pairs);
}

static void test_pairs(void **state) {
    (void)state;
    on_all_graphs(check_pairs);
}

/* A path in shuffled names: the distance of its i-th and its j-th entity is |i - j|, here above what a
 * byte holds and above a block of sources. A second path beside it is out of reach. */
static void compare_chain(int32_t length, int32_t threads) {
    oracle_random random = {SEED + 3, (uint64_t)length, 0};
    oracle_graph chain = {.entities = 2 * length, .relations = 1};
    int32_t *name = oracle_permutation(&random, 2 * length);
    vlp_graph *graph = NULL;
    vlp_skeleton *skeleton = NULL;
    enum { PAIRS = 9000 };
    vlp_triple *pairs = calloc(PAIRS, sizeof *pairs);
    int32_t *expected = numbers(PAIRS), *out = numbers(PAIRS);
    assert_non_null(pairs);
    for (int32_t i = 1; i < 2 * length; i++) {
        if (i != length) oracle_graph_add(&chain, name[i], 0, name[i - 1]);
    }
    for (int64_t i = 0; i < PAIRS; i++) {
        int32_t a = oracle_below(&random, 2 * length), b = oracle_below(&random, 2 * length);
        if (i == 0) a = 0, b = length - 1; /* the whole of it, once */
        pairs[i] = (vlp_triple){name[a], 0, name[b]};
        expected[i] = (a < length) == (b < length) ? abs(a - b) : -1;
    }
    assert_int_equal(
        vlp_graph_new(&graph, chain.triples, chain.count, chain.entities, chain.relations, threads),
        VLP_OK);
    assert_int_equal(vlp_skeleton_new(&skeleton, graph, threads), VLP_OK);
    assert_int_equal(vlp_skeleton_pairs(out, skeleton, pairs, PAIRS, threads), VLP_OK);
    assert_memory_equal(out, expected, PAIRS * sizeof *out);
    vlp_skeleton_free(skeleton);
    vlp_graph_free(graph);
    oracle_graph_free(&chain);
    free(name);
    free(pairs);
    free(expected);
    free(out);
}

static void test_long_chains(void **state) {
    (void)state;
    static const int32_t lengths[] = {255, 256, 257, 300, 512, 513, 700, 1300};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        compare_chain(lengths[i], 1 + (int32_t)(i % 3));
}

/* ---- Counts ---- */

static void check_counts(const fixture *f, int32_t threads) {
    static const int32_t limits[] = {0, 1, 2, 3, 8, 15, 200};
    const int64_t n = f->oracle.entities;
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        int32_t limit = limits[k];
        int32_t *counts = numbers(n * (limit + 1)), *expected = numbers(n * (limit + 1));
        memset(counts, 0x55, (size_t)(n * (limit + 1)) * sizeof *counts);
        for (int32_t from = 0; from < n; from++) {
            for (int32_t to = 0; to < n; to++) {
                int32_t d = truth(f, from, to);
                if (d >= 0 && d <= limit) expected[from * (int64_t)(limit + 1) + d]++;
            }
        }
        assert_int_equal(vlp_skeleton_counts(counts, f->skeleton, limit, threads, NULL), VLP_OK);
        assert_memory_equal(counts, expected, (size_t)(n * (limit + 1)) * sizeof *counts);
        free(counts);
        free(expected);
    }
}

static void test_counts(void **state) {
    (void)state;
    on_all_graphs(check_counts);
}

/* ---- Shells ---- */

/* The list of one shell: all that are at that distance, ascending. */
static void check_members(const fixture *f, const vlp_shells *shells, int32_t node, int32_t distance) {
    int32_t count = -1, expected = 0;
    const int32_t *members = vlp_shells_members(shells, node, distance, &count);
    for (int32_t to = 0; to < f->oracle.entities; to++) {
        if (truth(f, node, to) != distance) continue;
        assert_true(expected < count);
        assert_int_equal(members[expected++], to);
    }
    assert_int_equal(count, expected);
}

static int32_t matrix_cell(const vlp_shells *shells, int32_t row, int32_t column) {
    int byte = shells->matrix[row * vlp_shells_stride(shells->nodes) + column / 2];
    return column % 2 == 0 ? byte & 15 : byte >> 4;
}

static void check_row(const fixture *f, const vlp_shells *shells, int32_t node) {
    const int32_t n = f->oracle.entities, limit = shells->limit, near = shells->near[node];
    int32_t *expected = numbers(limit + 2);
    int64_t listed = 0;
    assert_in_range(near, 1, (unsigned)limit);
    for (int32_t to = 0; to < n; to++) {
        int32_t d = truth(f, node, to), found = vlp_shells_distance(shells, node, to);
        if (d < 0 || d > limit) d = limit + 1;
        expected[d]++;
        listed += d >= 1 && d <= near;
        /* What the shells say is true; they may only not know, and then only beyond the near ones. */
        if (found != d) assert_true(!shells->exact && d > near && found == limit + 1);
        if (shells->exact) assert_int_equal(matrix_cell(shells, node, to), d);
    }
    for (int32_t d = 0; d <= limit; d++) {
        int32_t count = shells->counts[(int64_t)node * (limit + 1) + d];
        assert_int_equal(count, shells->exact || d <= near ? expected[d] : 0);
    }
    assert_int_equal(shells->near_offset[node + 1] - shells->near_offset[node], listed);
    for (int32_t d = 1; d <= near; d++) check_members(f, shells, node, d);
    free(expected);
}

static vlp_shells *make_shells(const fixture *f, int32_t limit, int64_t budget, int32_t threads) {
    vlp_shells *shells = NULL;
    assert_int_equal(vlp_shells_new(&shells, f->skeleton, limit, budget, threads, NULL), VLP_OK);
    assert_non_null(shells);
    assert_int_equal(shells->nodes, f->oracle.entities);
    assert_int_equal(shells->limit, limit);
    for (int32_t node = 0; node < f->oracle.entities; node++) check_row(f, shells, node);
    if (shells->exact) assert_true(vlp_shells_bytes(shells) <= budget);
    return shells;
}

static void check_shells_exact(const fixture *f, int32_t threads) {
    static const int32_t limits[] = {1, 2, 5, 8, 14};
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        vlp_shells *shells = make_shells(f, limits[k], INT64_C(1) << 32, threads);
        assert_true(shells->exact);
        vlp_shells_free(shells);
    }
}

static void test_shells_exact(void **state) {
    (void)state;
    on_all_graphs(check_shells_exact);
}

/* Growing budgets, from less than anything fits to more than enough. Nearness grows with them as long as
 * only lists are kept, and they hold little more than the first shells force them to. */
static void check_shells_near(const fixture *f, int32_t threads) {
    const int32_t n = f->oracle.entities, limit = n > 100 ? 4 : 6;
    int32_t *near_before = numbers(n);
    int64_t least = 0;
    bool exact_before = false;
    for (int64_t budget = 1; budget < INT64_C(1) << 26; budget = budget * 4 + 200) {
        vlp_shells *shells = make_shells(f, limit, budget, threads);
        if (budget == 1) {
            assert_false(shells->exact);
            least = vlp_shells_bytes(shells);
        }
        assert_true(shells->exact >= exact_before);
        exact_before = shells->exact;
        for (int32_t node = 0; node < n && !shells->exact; node++) {
            assert_true(shells->near[node] >= near_before[node]);
            near_before[node] = shells->near[node];
        }
        assert_true(vlp_shells_bytes(shells) <= least + budget);
        vlp_shells_free(shells);
    }
    assert_true(exact_before);
    free(near_before);
}

static void test_shells_near(void **state) {
    (void)state;
    on_all_graphs(check_shells_near);
}

/* The least budget that gives all distances is honoured as the largest is. */
static void check_shells_least_exact(const fixture *f) {
    int64_t low = 1, high = INT64_C(1) << 26; /* low does not do, high does */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        vlp_shells *shells = NULL;
        assert_int_equal(vlp_shells_new(&shells, f->skeleton, 5, middle, 1, NULL), VLP_OK);
        *(shells->exact ? &high : &low) = middle;
        vlp_shells_free(shells);
    }
    vlp_shells *shells = make_shells(f, 5, high, 1);
    assert_true(shells->exact);
    /* Not stingy either: the matrix, counts and first shells are all that has to be held. */
    assert_true(high < 4 * vlp_shells_bytes(shells));
    vlp_shells_free(shells);
}

static void test_shells_least_exact(void **state) {
    (void)state;
    fixture f;
    for (uint64_t step = 0; step < 40; step++) {
        fixture_small(&f, step, 1);
        check_shells_least_exact(&f);
        fixture_free(&f);
    }
    fixture_middle(&f, ORACLE_RANDOM, 1);
    check_shells_least_exact(&f);
    fixture_free(&f);
}

static void test_shells_refused(void **state) {
    (void)state;
    static const int32_t limits[] = {-1, 0, 255, INT32_MAX};
    fixture f;
    fixture_small(&f, 1, 1);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        vlp_shells *shells = NULL;
        assert_int_equal(vlp_shells_new(&shells, f.skeleton, limits[i], 1 << 20, 1, NULL),
                         VLP_ERROR_ARGUMENT);
        assert_null(shells);
        assert_true(strlen(vlp_error_message()) > 0);
    }
    fixture_free(&f);
}

/* The same shells whatever the number of threads: nothing may depend on who came first. */
static void compare_shells(const fixture *f, const vlp_shells *a, const vlp_shells *b) {
    const size_t n = (size_t)f->oracle.entities;
    assert_int_equal(a->exact, b->exact);
    assert_memory_equal(a->near, b->near, n);
    assert_memory_equal(a->near_offset, b->near_offset, (n + 1) * sizeof *a->near_offset);
    assert_memory_equal(a->near_member, b->near_member,
                        (size_t)a->near_offset[n] * sizeof *a->near_member);
    assert_memory_equal(a->counts, b->counts, n * (size_t)(a->limit + 1) * sizeof *a->counts);
    for (int32_t i = 0; i < a->nodes && a->exact; i++) {
        for (int32_t j = 0; j < a->nodes; j++)
            assert_int_equal(matrix_cell(a, i, j), matrix_cell(b, i, j));
    }
}

static void test_shells_threads(void **state) {
    (void)state;
    static const enum oracle_shape shapes[] = {ORACLE_RANDOM, ORACLE_TREE, ORACLE_TWO_HUBS};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fixture f;
        fixture_middle(&f, shapes[i], 1);
        for (int64_t budget = 3000; budget < INT64_C(1) << 24; budget *= 7) {
            vlp_shells *one = make_shells(&f, 5, budget, 1);
            for (int32_t threads = 2; threads <= 3; threads++) {
                vlp_shells *more = make_shells(&f, 5, budget, threads);
                compare_shells(&f, one, more);
                vlp_shells_free(more);
            }
            vlp_shells_free(one);
        }
        fixture_free(&f);
    }
}

/* The observer can end the long ones. */
static bool always(void *user) {
    (void)user;
    return true;
}

/* With one thread: of several only the calling one asks, and another may have done all of the little
 * work there is. */
static void test_stopped(void **state) {
    (void)state;
    static const int64_t budgets[] = {1 << 26, 1};
    vlp_observer observer = {.stop = always};
    fixture f;
    fixture_middle(&f, ORACLE_TREE, 1);
    int32_t *counts = numbers((int64_t)f.oracle.entities * 9);
    assert_int_equal(vlp_skeleton_counts(counts, f.skeleton, 8, 1, &observer), VLP_ERROR_STOPPED);
    free(counts);
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        vlp_shells *shells = NULL;
        assert_int_equal(vlp_shells_new(&shells, f.skeleton, 8, budgets[i], 1, &observer),
                         VLP_ERROR_STOPPED);
        assert_null(shells);
    }
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_skeleton),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_shells_exact),
        cmocka_unit_test(test_shells_near),
        cmocka_unit_test(test_shells_threads),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_shells_least_exact),
        cmocka_unit_test(test_shells_refused),
    };
    return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}
