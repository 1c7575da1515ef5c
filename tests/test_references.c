/* References against the oracle, edge by edge: training queries of thousands of small graphs and of some
 * that are larger than one block of sources, arbitrary queries mixed in one call, wrong arguments.
 *
 * Agreement only means something on graphs where wrong rules give other answers. Two tests count that:
 * one how often each hard case occurred, one how many queries would have given each mistake away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oracle.h"

enum { SMALL_GRAPHS = 4000, MIDDLE_GRAPHS = 3 * ORACLE_SHAPES, SEED = 2024 };

typedef struct fixture {
    oracle_graph oracle;
    vlp_graph *graph;
} fixture;

static void fixture_finish(fixture *f) {
    assert_int_equal(vlp_graph_new(&f->graph, f->oracle.triples, f->oracle.count, f->oracle.entities,
                                   f->oracle.relations, 1),
                     VLP_OK);
}

static void fixture_free(fixture *f) {
    vlp_graph_free(f->graph);
    oracle_graph_free(&f->oracle);
    f->graph = NULL;
}

static vlp_query training_query(const oracle_graph *graph, int64_t i) {
    vlp_triple t = graph->triples[i % graph->count];
    if (i < graph->count) return (vlp_query){t.head, t.relation, i};
    return (vlp_query){t.tail, t.relation + graph->relations, i - graph->count};
}

static vlp_query random_query(const oracle_graph *graph, oracle_random *random) {
    vlp_query query = {oracle_below(random, graph->entities), oracle_below(random, 2 * graph->relations),
                       -1};
    if (graph->count > 0 && !oracle_chance(random, 4))
        query.left_out = oracle_below(random, (int32_t)graph->count);
    return query;
}

static vlp_reference_options random_options(oracle_random *random) {
    static const int32_t counts[] = {1, 2, 3, 8, 50};
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = counts[oracle_below(random, 5)];
    options.max_distance = oracle_chance(random, 3) ? 8 : oracle_below(random, 9);
    options.per_head = oracle_below(random, 3);
    options.threads = 1 + oracle_below(random, 2);
    return options;
}

/* ---- Comparing ---- */

static void print_references(const char *name, const vlp_reference *items, int32_t count) {
    print_error("  %s:", name);
    for (int32_t i = 0; i < count; i++) print_error(" %d@%d", items[i].edge, items[i].distance);
    print_error("\n");
}

static void print_case(const oracle_graph *graph, vlp_query query,
                       const vlp_reference_options *options) {
    print_error("  %d entities, %d relations, %lld triples\n", graph->entities, graph->relations,
                (long long)graph->count);
    for (int64_t i = 0; i < graph->count && graph->count <= 100; i++) {
        print_error("  %3lld: (%d, %d, %d)\n", (long long)i, graph->triples[i].head,
                    graph->triples[i].relation, graph->triples[i].tail);
    }
    print_error("  query (%d, %d) without %lld; count %d, max_distance %d, per_head %d, threads %d\n",
                query.entity, query.relation, (long long)query.left_out, options->count,
                options->max_distance, options->per_head, options->threads);
}

static bool same(const vlp_reference *a, int32_t a_count, const vlp_reference *b, int32_t b_count) {
    if (a_count != b_count) return false;
    for (int32_t i = 0; i < a_count; i++) {
        if (a[i].edge != b[i].edge || a[i].distance != b[i].distance) return false;
    }
    return true;
}

/* Query number `index` of a call has the references that the oracle finds. */
static void compare(const vlp_references *references, int64_t index, const oracle_graph *graph,
                    vlp_query query, const vlp_reference_options *options) {
    vlp_reference expected[1024];
    int32_t expected_count = oracle_references(expected, graph, query, options, 0), found_count = -1;
    const vlp_reference *found = vlp_references_get(references, index, &found_count);
    if (same(expected, expected_count, found, found_count)) return;
    print_error("query %lld of a call disagrees with the oracle\n", (long long)index);
    print_case(graph, query, options);
    print_references("expected", expected, expected_count);
    print_references("found", found, found_count);
    fail();
}

static vlp_references *find(const fixture *f, const vlp_query *queries, int64_t count,
                            const vlp_reference_options *options) {
    vlp_references *references = NULL;
    vlp_status status = vlp_graph_references(&references, f->graph, queries, count, options);
    if (status != VLP_OK) print_error("%s\n", vlp_error_message());
    assert_int_equal(status, VLP_OK);
    assert_non_null(references);
    return references;
}

/* All training queries in one call; every `stride`-th is compared. */
static void compare_training(const fixture *f, const vlp_reference_options *options, int64_t stride) {
    vlp_references *references = find(f, NULL, 0, options);
    for (int64_t i = 0; i < 2 * f->oracle.count; i += stride)
        compare(references, i, &f->oracle, training_query(&f->oracle, i), options);
    vlp_references_free(references);
}

/* ---- Tests against the oracle ---- */

static void test_training_small(void **state) {
    (void)state;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        oracle_random random = {SEED, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        for (int repeat = 0; repeat < 4; repeat++) {
            vlp_reference_options options = random_options(&random);
            compare_training(&f, &options, 1);
        }
        fixture_free(&f);
    }
}

/* The shapes that are made for one purpose are compared whole, of the others a part. */
static int64_t middle_stride(enum oracle_shape shape) {
    return shape == ORACLE_LAYERS || shape == ORACLE_FRACTIONS ? 1 : 7;
}

/* A finder that is asked again and again, about few heads: what it kept of one call does not show in the
 * next. */
static void test_finder(void **state) {
    (void)state;
    enum { CALLS = 6, MOST = 40 };
    for (uint64_t step = 0; step < SMALL_GRAPHS / 4; step++) {
        oracle_random random = {SEED + 60, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        vlp_reference_finder *finder = NULL;
        assert_int_equal(vlp_reference_finder_new(&finder, f.graph, &options), VLP_OK);
        for (int call = 0; call < CALLS; call++) {
            vlp_query queries[MOST];
            int32_t count = f.oracle.count > 0 ? oracle_below(&random, MOST) : 0;
            for (int32_t i = 0; i < count; i++) {
                queries[i] =
                    training_query(&f.oracle, oracle_below(&random, 2 * (int32_t)f.oracle.count));
                if (oracle_chance(&random, 2)) queries[i].left_out = -1;
            }
            vlp_references *references = NULL;
            assert_int_equal(vlp_reference_finder_find(&references, finder, queries, count), VLP_OK);
            for (int32_t i = 0; i < count; i++) compare(references, i, &f.oracle, queries[i], &options);
            vlp_references_free(references);
        }
        vlp_reference_finder_free(finder);
        fixture_free(&f);
    }
    vlp_reference_finder_free(NULL);
}

/* Searches that are bounded by edges, one finder with one limit after the other. */
static void test_limited(void **state) {
    (void)state;
    enum { LIMITS = 4 };
    int64_t differ = 0;
    for (uint64_t step = 0; step < SMALL_GRAPHS / 2; step++) {
        oracle_random random = {SEED + 90, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        vlp_reference_finder *finder = NULL;
        assert_int_equal(vlp_reference_finder_new(&finder, f.graph, &options), VLP_OK);
        for (int i = 0; i < LIMITS; i++) {
            int64_t edges = 1 + oracle_below(&random, 40);
            vlp_references *references = NULL;
            assert_int_equal(vlp_reference_finder_set(finder, &(vlp_reference_rule){.edges = edges}),
                             VLP_OK);
            assert_int_equal(vlp_reference_finder_find(&references, finder, NULL, 0), VLP_OK);
            for (int64_t q = 0; q < 2 * f.oracle.count; q++) {
                vlp_reference expected[1024], free_items[1024];
                vlp_query query = training_query(&f.oracle, q);
                int32_t count = oracle_references_within(expected, &f.oracle, query, &options, edges);
                int32_t found_count = -1;
                const vlp_reference *found = vlp_references_get(references, q, &found_count);
                assert_int_equal(found_count, count);
                assert_memory_equal(found, expected, (size_t)count * sizeof *expected);
                differ += count != oracle_references(free_items, &f.oracle, query, &options, 0);
            }
            vlp_references_free(references);
        }
        vlp_reference_finder_free(finder);
        fixture_free(&f);
    }
    assert_true(differ > 1000);
}

static void test_training_middle(void **state) {
    (void)state;
    for (uint64_t step = 0; step < MIDDLE_GRAPHS; step++) {
        enum oracle_shape shape = (enum oracle_shape)(step % ORACLE_SHAPES);
        int64_t stride = middle_stride(shape);
        oracle_random random = {SEED + 1, step, 0};
        fixture f;
        oracle_graph_middle(&f.oracle, shape, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        compare_training(&f, &options, stride);
        options = (vlp_reference_options)VLP_REFERENCE_OPTIONS_INIT;
        options.threads = 2;
        compare_training(&f, &options, stride);
        options.count = 1024;
        compare_training(&f, &options, stride);
        fixture_free(&f);
    }
}

/* The greatest N, in a graph where it is reached, and the defaults. */
static void test_many_references(void **state) {
    (void)state;
    oracle_random random = {SEED + 2, 0, 0};
    fixture f;
    oracle_graph_make(&f.oracle, ORACLE_RANDOM, 600, 1, 1800, &random);
    fixture_finish(&f);
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = 1024;
    compare_training(&f, &options, 17);
    vlp_references *references = find(&f, NULL, 0, &options);
    int32_t most = 0;
    for (int64_t i = 0; i < 2 * f.oracle.count; i++) {
        int32_t count;
        vlp_references_get(references, i, &count);
        most = count > most ? count : most;
    }
    assert_int_equal(most, 1024);
    vlp_references_free(references);
    options = (vlp_reference_options)VLP_REFERENCE_OPTIONS_INIT;
    references = find(&f, NULL, 0, NULL);
    for (int64_t i = 0; i < 2 * f.oracle.count; i += 17)
        compare(references, i, &f.oracle, training_query(&f.oracle, i), &options);
    vlp_references_free(references);
    fixture_free(&f);
}

/* A hub leaves out each of its thousands of edges in turn. */
static void test_large_star(void **state) {
    (void)state;
    for (int32_t per_head = 0; per_head < 2; per_head++) {
        oracle_random random = {SEED + 3, (uint64_t)per_head, 0};
        fixture f;
        oracle_graph_make(&f.oracle, ORACLE_STAR, 3000, 2, -1, &random);
        fixture_finish(&f);
        vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
        options.per_head = per_head;
        options.threads = 2;
        compare_training(&f, &options, 37);
        fixture_free(&f);
    }
}

/* Nine hubs in a row: on its way from the first to the last the mass falls below the unit and vanishes.
 * What is then cut off, or tied, still has to be seen. */
static void test_vanishing_mass(void **state) {
    (void)state;
    enum { HUBS = 9, LEAVES = 420 };
    oracle_random random = {SEED + 9, 0, 0};
    fixture f = {.oracle = {.entities = HUBS * (LEAVES + 1), .relations = 1}};
    for (int32_t hub = 0; hub < HUBS; hub++) {
        /* The way to the next hub stands among the leaves' edges, not before or behind all of them. */
        for (int32_t leaf = 0; leaf < LEAVES; leaf++) {
            int32_t other = HUBS + hub * LEAVES + leaf;
            bool inward = oracle_chance(&random, 2);
            oracle_graph_add(&f.oracle, inward ? other : hub, 0, inward ? hub : other);
            if (leaf == LEAVES / 2 && hub + 1 < HUBS) oracle_graph_add(&f.oracle, hub, 0, hub + 1);
        }
    }
    fixture_finish(&f);
    oracle_view view;
    oracle_view_make(&view, &f.oracle, (vlp_query){0, 0, -1}, 8, 0);
    assert_true(view.mass[6] > 0 && view.distance[8] == 8 && view.mass[8] == 0);
    oracle_view_free(&view);
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    for (options.count = 8; options.count <= 1024; options.count += 1016) {
        vlp_references *references = find(&f, NULL, 0, &options);
        for (int64_t i = 0; i < 2 * f.oracle.count; i++) {
            vlp_triple t = f.oracle.triples[i % f.oracle.count];
            bool between_hubs = t.head < HUBS && t.tail < HUBS;
            if (between_hubs || i % 50 == 0)
                compare(references, i, &f.oracle, training_query(&f.oracle, i), &options);
        }
        vlp_references_free(references);
    }
    fixture_free(&f);
}

/* Every (entity, relation) as it is, every training query, and random queries that leave out any triple
 * at all, their own or not: in random order, in one call. */
static int64_t mixture(vlp_query **out, const oracle_graph *graph, int32_t extra,
                       oracle_random *random) {
    int64_t pairs = (int64_t)graph->entities * 2 * graph->relations;
    int64_t count = pairs + 2 * graph->count + extra;
    vlp_query *queries = calloc((size_t)count, sizeof *queries);
    int32_t *order = oracle_permutation(random, (int32_t)count);
    assert_non_null(queries);
    for (int64_t i = 0; i < count; i++) {
        vlp_query query;
        if (i < pairs)
            query = (vlp_query){(int32_t)(i / (2 * graph->relations)),
                                (int32_t)(i % (2 * graph->relations)), -1};
        else if (i < pairs + 2 * graph->count)
            query = training_query(graph, i - pairs);
        else
            query = random_query(graph, random);
        queries[order[i]] = query;
    }
    free(order);
    *out = queries;
    return count;
}

/* The same query alone, and as the first and the last of another call. */
static void compare_alone(const fixture *f, vlp_query query, const vlp_reference_options *options,
                          oracle_random *random) {
    vlp_query around[4] = {query, random_query(&f->oracle, random), random_query(&f->oracle, random),
                           query};
    vlp_references *alone = find(f, &query, 1, options), *among = find(f, around, 4, options);
    compare(alone, 0, &f->oracle, query, options);
    for (int i = 0; i < 4; i++) compare(among, i, &f->oracle, around[i], options);
    vlp_references_free(alone);
    vlp_references_free(among);
}

static void compare_mixture(const fixture *f, int32_t extra, int64_t stride, oracle_random *random) {
    vlp_reference_options options = random_options(random);
    vlp_query *queries;
    int64_t count = mixture(&queries, &f->oracle, extra, random);
    vlp_references *references = find(f, queries, count, &options);
    for (int64_t i = 0; i < count; i += stride) compare(references, i, &f->oracle, queries[i], &options);
    for (int i = 0; i < 3; i++)
        compare_alone(f, queries[oracle_below(random, (int32_t)count)], &options, random);
    vlp_references_free(references);
    free(queries);
}

static void test_mixtures(void **state) {
    (void)state;
    for (uint64_t step = 0; step < SMALL_GRAPHS / 4; step++) {
        oracle_random random = {SEED + 4, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        compare_mixture(&f, 60, 1, &random);
        fixture_free(&f);
    }
    for (uint64_t step = 0; step < ORACLE_SHAPES; step++) {
        oracle_random random = {SEED + 5, step, 0};
        fixture f;
        oracle_graph_middle(&f.oracle, (enum oracle_shape)step, &random);
        fixture_finish(&f);
        compare_mixture(&f, 2000, 11, &random);
        fixture_free(&f);
    }
}

/* ---- What the graphs would have caught ---- */

enum hard_case {
    ANSWER_FARTHER,   /* the answer is still reached, but farther out */
    ANSWER_CUT_OFF,   /* and is not reached any more */
    ANSWER_KEPT_NEAR, /* by a parallel edge */
    OTHERS_FARTHER,   /* a head other than the answer moved farther, and stays a candidate */
    LOOP_LEFT_OUT,
    LOOP_PASSED,  /* a loop takes part of a mass that reaches a candidate */
    MASS_DECIDED, /* equal distance, and mass overruled the order of edges */
    EDGE_DECIDED, /* equal distance and mass, and edges overruled the order of heads */
    CAP_ACTIVE,
    NO_REFERENCE,
    FOREIGN_LEFT_OUT, /* a triple that does not touch the entity is out, and this matters */
    HARD_CASES
};

static const char *const hard_case_names[HARD_CASES] = {
    "answer farther", "answer cut off", "answer kept near", "others farther",
    "loop left out",  "loop passed",    "mass decided",     "edge decided",
    "cap active",     "no reference",   "foreign left out",
};

static void count_moves(int64_t *cases, const oracle_graph *graph, vlp_query query,
                        const oracle_view *view) {
    vlp_triple own = graph->triples[query.left_out];
    int32_t answer = own.head == query.entity ? own.tail : own.head;
    oracle_view before;
    if (own.head == own.tail) {
        cases[LOOP_LEFT_OUT]++;
        return;
    }
    cases[ANSWER_FARTHER] += view->distance[answer] > 1;
    cases[ANSWER_CUT_OFF] += view->distance[answer] < 0;
    cases[ANSWER_KEPT_NEAR] += view->distance[answer] == 1;
    oracle_view_make(&before, graph, (vlp_query){query.entity, query.relation, -1}, 8, 0);
    for (int64_t i = 0; i < view->count; i++) {
        int32_t head = view->candidates[i].head;
        if (head == answer || view->distance[head] == before.distance[head]) continue;
        cases[OTHERS_FARTHER]++;
        break;
    }
    oracle_view_free(&before);
}

static void count_ties(int64_t *cases, const oracle_view *view, int32_t kept) {
    bool mass = false, edge = false;
    for (int64_t i = 0; i + 1 < view->count && i < kept; i++) {
        oracle_candidate a = view->candidates[i], b = view->candidates[i + 1];
        if (a.distance != b.distance) continue;
        if (a.mass > b.mass && a.edge > b.edge) mass = true;
        if (a.mass == b.mass && a.head > b.head) edge = true;
    }
    cases[MASS_DECIDED] += mass;
    cases[EDGE_DECIDED] += edge;
}

static void count_hard_cases(int64_t *cases, const oracle_graph *graph, vlp_query query) {
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT, capped = options;
    vlp_reference free_items[8], capped_items[8];
    oracle_view view;
    capped.per_head = 1;
    oracle_view_make(&view, graph, query, options.max_distance, 0);
    count_moves(cases, graph, query, &view);
    count_ties(cases, &view, options.count);
    bool loop = false;
    for (int64_t i = 0; i < graph->count && view.count > 0; i++) {
        vlp_triple t = graph->triples[i];
        int32_t last = view.candidates[view.count - 1].distance;
        if (t.head == t.tail && i != query.left_out && view.distance[t.head] >= 0 &&
            view.distance[t.head] < last)
            loop = true;
    }
    cases[LOOP_PASSED] += loop;
    int32_t count = oracle_references(free_items, graph, query, &options, 0);
    int32_t capped_count = oracle_references(capped_items, graph, query, &capped, 0);
    cases[CAP_ACTIVE] += !same(free_items, count, capped_items, capped_count);
    cases[NO_REFERENCE] += count == 0;
    oracle_view_free(&view);
}

/* Queries as test_mixtures asks them, too. */
static void count_foreign(int64_t *cases, const oracle_graph *graph, oracle_random *random) {
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    vlp_reference right[8], wrong[8];
    vlp_query query = random_query(graph, random);
    if (query.left_out < 0) return;
    vlp_triple own = graph->triples[query.left_out];
    if (own.head == query.entity || own.tail == query.entity) return;
    int32_t right_count = oracle_references(right, graph, query, &options, 0);
    int32_t wrong_count = oracle_references(wrong, graph, query, &options, ORACLE_OWN_EDGE_IN_GRAPH);
    cases[FOREIGN_LEFT_OUT] += !same(right, right_count, wrong, wrong_count);
}

/* Over every eighth graph of test_training_small. */
static void test_hard_cases_occur(void **state) {
    (void)state;
    int64_t cases[HARD_CASES] = {0}, queries = 0;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step += 8) {
        oracle_random random = {SEED, step, 0};
        oracle_graph graph;
        oracle_graph_small(&graph, &random);
        for (int64_t i = 0; i < 2 * graph.count; i++)
            count_hard_cases(cases, &graph, training_query(&graph, i));
        for (int64_t i = 0; i < 2 * graph.count; i++) count_foreign(cases, &graph, &random);
        queries += 2 * graph.count;
        oracle_graph_free(&graph);
    }
    for (int i = 0; i < HARD_CASES; i++) {
        print_message("%-16s %6lld of %lld queries\n", hard_case_names[i], (long long)cases[i],
                      (long long)queries);
        assert_true(cases[i] > 500);
    }
}

static const char *const mistake_names[ORACLE_MISTAKES] = {
    "own edge in the graph", "own edge a reference",
    "old degrees",           "old far degree",
    "loop is one slot",      "parallel carry once",
    "path counts",           "layout late",
    "floating mass",         "no mass",
    "ties by head",          "orphans lost",
    "orphans massless",      "cap after cut",
    "cap at the entity",     "inverse read forward",
    "own edge backward",
};

static void count_mistakes(int64_t *caught, const oracle_graph *graph, vlp_query query,
                           const vlp_reference_options *options) {
    vlp_reference right[1024], wrong[1024];
    int32_t right_count = oracle_references(right, graph, query, options, 0);
    for (int i = 0; i < ORACLE_MISTAKES; i++) {
        int32_t wrong_count = oracle_references(wrong, graph, query, options, 1U << i);
        caught[i] += !same(right, right_count, wrong, wrong_count);
    }
}

/* Graphs of test_training_small, some of their queries. */
static void count_mistakes_small(int64_t *caught) {
    for (uint64_t step = 0; step < SMALL_GRAPHS; step += 8) {
        oracle_random random = {SEED, step, 0};
        oracle_graph graph;
        oracle_graph_small(&graph, &random);
        for (int repeat = 0; repeat < 4; repeat++) {
            vlp_reference_options options = random_options(&random);
            for (int64_t i = repeat; i < 2 * graph.count; i += 4)
                count_mistakes(caught, &graph, training_query(&graph, i), &options);
        }
        oracle_graph_free(&graph);
    }
}

/* Graphs of test_training_middle whose shares do not come out even, or whose sums do not in floating
 * point: rarely seen elsewhere. */
static void count_mistakes_middle(int64_t *caught) {
    for (uint64_t step = 0; step < MIDDLE_GRAPHS; step++) {
        enum oracle_shape shape = (enum oracle_shape)(step % ORACLE_SHAPES);
        if (shape != ORACLE_LAYERS && shape != ORACLE_FRACTIONS) continue;
        oracle_random random = {SEED + 1, step, 0};
        vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
        oracle_graph graph;
        options.count = 1024;
        oracle_graph_middle(&graph, shape, &random);
        for (int64_t i = 0; i < 2 * graph.count; i += middle_stride(shape))
            count_mistakes(caught, &graph, training_query(&graph, i), &options);
        oracle_graph_free(&graph);
    }
}

static void test_mistakes_are_caught(void **state) {
    (void)state;
    int64_t caught[ORACLE_MISTAKES] = {0};
    count_mistakes_small(caught);
    count_mistakes_middle(caught);
    for (int i = 0; i < ORACLE_MISTAKES; i++) {
        print_message("%-22s caught by %lld queries\n", mistake_names[i], (long long)caught[i]);
        assert_true(caught[i] >= 50);
    }
}

/* ---- Edges of the interface ---- */

static void test_empty(void **state) {
    (void)state;
    fixture f = {.oracle = {.entities = 3, .relations = 2}};
    vlp_query query = {2, 3, -1};
    fixture_finish(&f);
    vlp_references *references = find(&f, NULL, 0, NULL);
    vlp_references_free(references);
    int32_t count = -1;
    references = find(&f, &query, 1, NULL);
    vlp_references_get(references, 0, &count);
    assert_int_equal(count, 0);
    vlp_references_free(references);
    references = find(&f, &query, 0, NULL);
    vlp_references_free(references);
    vlp_references_free(NULL);
    fixture_free(&f);
}

static void refuse(const fixture *f, const vlp_query *queries, int64_t count,
                   const vlp_reference_options *options) {
    vlp_references *references = NULL;
    assert_int_equal(vlp_graph_references(&references, f->graph, queries, count, options),
                     VLP_ERROR_ARGUMENT);
    assert_null(references);
    assert_true(strlen(vlp_error_message()) > 0);
    assert_null(strchr(vlp_error_message(), '\n'));
}

static void test_wrong_options(void **state) {
    (void)state;
    static const struct {
        int32_t count, max_distance, per_head;
    } wrong[] = {{0, 8, 0}, {-1, 8, 0}, {1025, 8, 0}, {8, 9, 0}, {8, -1, 0}, {8, 8, -1}};
    oracle_random random = {SEED + 6, 0, 0};
    fixture f;
    oracle_graph_make(&f.oracle, ORACLE_PATH, 5, 2, -1, &random);
    fixture_finish(&f);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
        vlp_query query = {0, 0, -1};
        options.count = wrong[i].count;
        options.max_distance = wrong[i].max_distance;
        options.per_head = wrong[i].per_head;
        refuse(&f, NULL, 0, &options);
        refuse(&f, &query, 1, &options);
    }
    fixture_free(&f);
}

/* Each wrong query at each place of a call whose other queries are right. */
static void test_wrong_queries(void **state) {
    (void)state;
    oracle_random random = {SEED + 7, 0, 0};
    fixture f;
    oracle_graph_make(&f.oracle, ORACLE_PATH, 5, 2, -1, &random);
    fixture_finish(&f);
    const vlp_query wrong[] = {{-1, 0, -1},
                               {f.oracle.entities, 0, -1},
                               {INT32_MAX, 0, -1},
                               {0, -1, -1},
                               {0, 2 * f.oracle.relations, -1},
                               {0, 0, -2},
                               {0, 0, f.oracle.count},
                               {0, 0, INT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int place = 0; place < 3; place++) {
            vlp_query queries[3] = {{0, 0, -1}, {1, 1, -1}, {2, 3, 0}};
            queries[place] = wrong[i];
            refuse(&f, queries, 3, NULL);
        }
    }
    refuse(&f, (vlp_query[]){{0, 0, -1}}, -1, NULL);
    fixture_free(&f);
}

typedef struct watch {
    int64_t calls, last, total;
    bool backward;
} watch;

static void watch_progress(void *user, const char *what, int64_t done, int64_t total) {
    watch *w = user;
    (void)what;
    if (done < w->last) w->backward = true;
    w->calls++;
    w->last = done;
    w->total = total;
}

static bool always(void *user) {
    (void)user;
    return true;
}

static void test_observer(void **state) {
    (void)state;
    oracle_random random = {SEED + 8, 0, 0};
    watch seen = {0};
    vlp_observer observer = {.progress = watch_progress, .user = &seen};
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.observer = &observer;
    fixture f;
    oracle_graph_middle(&f.oracle, ORACLE_TREE, &random);
    fixture_finish(&f);
    for (options.threads = 1; options.threads <= 2; options.threads++) {
        seen = (watch){0};
        observer.stop = NULL;
        vlp_references_free(find(&f, NULL, 0, &options));
        assert_false(seen.backward);
        assert_true(seen.calls > 0 && seen.last == seen.total);
        /* Only the calling thread asks; another may have done all of the little work there is. */
        vlp_references *references = NULL;
        observer.stop = always;
        vlp_status status = vlp_graph_references(&references, f.graph, NULL, 0, &options);
        if (options.threads > 1 && status == VLP_OK) {
            vlp_references_free(references);
            continue;
        }
        assert_int_equal(status, VLP_ERROR_STOPPED);
        assert_null(references);
    }
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hard_cases_occur),
        cmocka_unit_test(test_mistakes_are_caught),
        cmocka_unit_test(test_training_small),
        cmocka_unit_test(test_training_middle),
        cmocka_unit_test(test_finder),
        cmocka_unit_test(test_limited),
        cmocka_unit_test(test_many_references),
        cmocka_unit_test(test_large_star),
        cmocka_unit_test(test_vanishing_mass),
        cmocka_unit_test(test_mixtures),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_wrong_queries),
        cmocka_unit_test(test_observer),
    };
    return cmocka_run_group_tests_name("references", tests, NULL, NULL);
}
