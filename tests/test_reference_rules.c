/* The other rules for references, which are controls: ties at random, random edges of the relation, and
 * the query's own triple kept for distances. What is chosen is compared with all that the oracle allows,
 * and how often with equal shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chi_square.h"
#include "oracle.h"

enum { GRAPHS = 600, SEED = 77, MOST = 1024 };

typedef struct fixture {
    oracle_graph oracle;
    vlp_graph *graph;
    vlp_query *queries; /* (count): those of training, and as many that leave out nothing */
    int64_t count;
} fixture;

static void fixture_finish(fixture *f) {
    const oracle_graph *graph = &f->oracle;
    assert_int_equal(
        vlp_graph_new(&f->graph, graph->triples, graph->count, graph->entities, graph->relations, 1),
        VLP_OK);
    f->count = 0;
    f->queries = calloc((size_t)graph->count * 4 + 1, sizeof *f->queries);
    assert_non_null(f->queries);
    for (int64_t i = 0; i < graph->count; i++) {
        vlp_triple t = graph->triples[i];
        f->queries[f->count++] = (vlp_query){t.head, t.relation, i};
        f->queries[f->count++] = (vlp_query){t.tail, t.relation + graph->relations, i};
        f->queries[f->count++] = (vlp_query){t.tail, t.relation, -1};
        f->queries[f->count++] = (vlp_query){t.head, t.relation + graph->relations, i};
    }
}

static void fixture_free(fixture *f) {
    vlp_graph_free(f->graph);
    oracle_graph_free(&f->oracle);
    free(f->queries);
}

static vlp_references *find(const fixture *f, const vlp_query *queries, int64_t count,
                            const vlp_reference_options *options, vlp_reference_rule rule) {
    vlp_references *references = NULL;
    assert_int_equal(vlp_graph_references_by(&references, f->graph, queries, count, options, &rule),
                     VLP_OK);
    return references;
}

static vlp_reference_options random_options(oracle_random *random) {
    static const int32_t counts[] = {1, 2, 3, 8, 50};
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = counts[oracle_below(random, 5)];
    options.max_distance = oracle_chance(random, 3) ? 8 : oracle_below(random, 9);
    options.threads = 1 + oracle_below(random, 2);
    return options;
}

/* How often edge `edge` is in a list. */
static int32_t times(const vlp_reference *list, int32_t count, int32_t edge) {
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) found += list[i].edge == edge;
    return found;
}

/* Ties at random: as many of each distance as without the rule, each once, and each a candidate. */
static void test_ties_at_random(void **state) {
    (void)state;
    int64_t differ = 0;
    for (uint64_t step = 0; step < GRAPHS; step++) {
        oracle_random random = {SEED, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        vlp_references *references =
            find(&f, f.queries, f.count, &options,
                 (vlp_reference_rule){.choice = VLP_REFERENCES_NEAREST_RANDOM, .seed = SEED + step});
        for (int64_t q = 0; q < f.count; q++) {
            oracle_view view;
            oracle_view_make(&view, &f.oracle, f.queries[q], options.max_distance, 0);
            int32_t count, expected = view.count < options.count ? (int32_t)view.count : options.count;
            const vlp_reference *list = vlp_references_get(references, q, &count);
            assert_int_equal(count, expected);
            for (int32_t i = 0; i < count; i++) {
                assert_int_equal(list[i].distance, view.candidates[i].distance);
                assert_int_equal(times(list, count, list[i].edge), 1);
                int64_t at = 0;
                while (at < view.count && view.candidates[at].edge != list[i].edge) at++;
                assert_true(at < view.count);
                assert_int_equal(view.candidates[at].distance, list[i].distance);
                differ += view.candidates[i].edge != list[i].edge;
            }
            oracle_view_free(&view);
        }
        vlp_references_free(references);
        fixture_free(&f);
    }
    assert_true(differ > 1000);
}

/* Random references: edges of the relation other than the left-out one, each once, as many as there are
 * or as were asked for. */
static void test_random_edges(void **state) {
    (void)state;
    for (uint64_t step = 0; step < GRAPHS; step++) {
        oracle_random random = {SEED + 1, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        vlp_reference_rule rule = {.choice = VLP_REFERENCES_RANDOM, .seed = SEED + step};
        vlp_references *references = find(&f, f.queries, f.count, &options, rule);
        for (int64_t q = 0; q < f.count; q++) {
            int32_t relation = f.queries[q].relation % f.oracle.relations, count, there = 0;
            for (int64_t i = 0; i < f.oracle.count; i++)
                there += f.oracle.triples[i].relation == relation && i != f.queries[q].left_out;
            const vlp_reference *list = vlp_references_get(references, q, &count);
            assert_int_equal(count, there < options.count ? there : options.count);
            for (int32_t i = 0; i < count; i++) {
                assert_int_equal(f.oracle.triples[list[i].edge].relation, relation);
                assert_int_not_equal(list[i].edge, f.queries[q].left_out);
                assert_int_equal(times(list, count, list[i].edge), 1);
                assert_int_equal(list[i].distance, -1);
            }
            /* Alone, a query has the references that it has among others. */
            vlp_references *alone = find(&f, &f.queries[q], 1, &options, rule);
            int32_t alone_count;
            const vlp_reference *same = vlp_references_get(alone, 0, &alone_count);
            assert_int_equal(alone_count, count);
            if (count > 0) assert_memory_equal(same, list, (size_t)count * sizeof *list);
            vlp_references_free(alone);
        }
        vlp_references_free(references);
        fixture_free(&f);
    }
}

/* Over many seeds all pairs of ties, or of edges, are drawn equally often. The graph: a star of LEAVES
 * triples around entity 0, and the query of entity 0 without one of them. */
static void test_equal_shares(void **state) {
    (void)state;
    enum { LEAVES = 7, PAIRS = LEAVES * LEAVES, DRAWS = 20000, LEFT_OUT = 3 };
    vlp_triple triples[LEAVES];
    vlp_graph *graph = NULL;
    for (int32_t i = 0; i < LEAVES; i++) triples[i] = (vlp_triple){0, 0, i + 1};
    assert_int_equal(vlp_graph_new(&graph, triples, LEAVES, LEAVES + 1, 1, 1), VLP_OK);
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = 2;
    options.threads = 1;
    static const vlp_reference_choice choices[] = {VLP_REFERENCES_NEAREST_RANDOM, VLP_REFERENCES_RANDOM};
    for (int c = 0; c < 2; c++) {
        int64_t seen[PAIRS] = {0};
        long double share[PAIRS] = {0};
        for (int32_t low = 0; low < LEAVES; low++)
            for (int32_t high = low + 1; high < LEAVES; high++)
                if (low != LEFT_OUT && high != LEFT_OUT)
                    share[low * LEAVES + high] = 2.0L / (LEAVES - 1) / (LEAVES - 2);
        vlp_query query = {0, 0, LEFT_OUT};
        vlp_reference_finder *finder = NULL;
        assert_int_equal(vlp_reference_finder_new(&finder, graph, &options), VLP_OK);
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            vlp_references *references = NULL;
            vlp_reference_rule rule = {.choice = choices[c], .seed = seed};
            assert_int_equal(vlp_reference_finder_set(finder, &rule), VLP_OK);
            assert_int_equal(vlp_reference_finder_find(&references, finder, &query, 1), VLP_OK);
            int32_t count;
            const vlp_reference *list = vlp_references_get(references, 0, &count);
            assert_int_equal(count, 2);
            int32_t low = list[0].edge < list[1].edge ? list[0].edge : list[1].edge;
            seen[low * LEAVES + (list[0].edge + list[1].edge - low)]++;
            vlp_references_free(references);
        }
        fit f = compare_counts(seen, share, PAIRS, DRAWS);
        f.cells--;
        assert_true(fits(f, UNLIKELY));
        vlp_reference_finder_free(finder);
    }
    vlp_graph_free(graph);
}

/* The own triple in the graph, as the oracle sees it when it makes that mistake on purpose. */
static void test_own_edge(void **state) {
    (void)state;
    int64_t differ = 0;
    for (uint64_t step = 0; step < GRAPHS; step++) {
        oracle_random random = {SEED + 2, step, 0};
        fixture f;
        oracle_graph_small(&f.oracle, &random);
        fixture_finish(&f);
        vlp_reference_options options = random_options(&random);
        options.per_head = oracle_below(&random, 3);
        vlp_references *references =
            find(&f, f.queries, f.count, &options, (vlp_reference_rule){.own_edge = true});
        for (int64_t q = 0; q < f.count; q++) {
            vlp_reference expected[MOST], without[MOST];
            int32_t count, expected_count = oracle_references(expected, &f.oracle, f.queries[q],
                                                              &options, ORACLE_OWN_EDGE_IN_GRAPH);
            int32_t without_count = oracle_references(without, &f.oracle, f.queries[q], &options, 0);
            const vlp_reference *list = vlp_references_get(references, q, &count);
            assert_int_equal(count, expected_count);
            if (count > 0) assert_memory_equal(list, expected, (size_t)count * sizeof *list);
            differ += count != without_count ||
                      (count > 0 && memcmp(list, without, (size_t)count * sizeof *list) != 0);
        }
        vlp_references_free(references);
        fixture_free(&f);
    }
    assert_true(differ > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties_at_random),
        cmocka_unit_test(test_random_edges),
        cmocka_unit_test(test_equal_shares),
        cmocka_unit_test(test_own_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
