/* The compressed graph, the known-answer filter and the dropping of repeated triples against naive
 * scans, and every allocation of src/graph's builders failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "graph/distance.h"
#include "graph/reader.h"
#include "oracle.h"

enum { SEED = 555, SMALL_GRAPHS = 1500, HUB_EDGES = 100000 };

static void *array(int64_t count, size_t size) {
    void *out = calloc((size_t)count + 1, size);
    assert_non_null(out);
    return out;
}

/* ---- The graph ---- */

typedef struct slot {
    int32_t row, relation, edge, neighbor;
} slot;

static int compare_slots(const void *left, const void *right) {
    const slot *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    if (a->relation != b->relation) return a->relation < b->relation ? -1 : 1;
    return (a->edge > b->edge) - (a->edge < b->edge);
}

/* (2 * count) slots in the order that graph.h promises. */
static slot *expected_slots(const oracle_graph *g) {
    slot *slots = array(2 * g->count, sizeof *slots);
    for (int64_t i = 0; i < g->count; i++) {
        vlp_triple t = g->triples[i];
        slots[2 * i] = (slot){t.head, t.relation, (int32_t)i, t.tail};
        slots[2 * i + 1] = (slot){t.tail, t.relation + g->relations, (int32_t)i, t.head};
    }
    qsort(slots, (size_t)(2 * g->count), sizeof *slots, compare_slots);
    return slots;
}

static vlp_graph *make_graph(const oracle_graph *g, int32_t threads) {
    vlp_graph *graph = NULL;
    vlp_status status = vlp_graph_new(&graph, g->triples, g->count, g->entities, g->relations, threads);
    assert_int_equal(status, VLP_OK);
    assert_non_null(graph);
    return graph;
}

static void check_graph(const oracle_graph *g, int32_t threads) {
    slot *slots = expected_slots(g);
    vlp_graph *graph = make_graph(g, threads);
    int64_t at = 0;
    assert_int_equal(graph->entities, g->entities);
    assert_int_equal(graph->relations, g->relations);
    assert_int_equal(graph->edges, g->count);
    assert_ptr_equal(graph->triples, g->triples);
    for (int32_t row = 0; row < g->entities; row++) {
        assert_int_equal(graph->offset[row], at);
        for (int32_t relation = 0; relation < 2 * g->relations; relation++) {
            int64_t first = at, count = -1;
            while (at < 2 * g->count && slots[at].row == row && slots[at].relation == relation) at++;
            int64_t found = vlp_graph_slots(graph, row, relation, &count);
            assert_int_equal(count, at - first);
            if (count > 0) assert_int_equal(found, first);
        }
        assert_int_equal(vlp_graph_degree(graph, row), at - graph->offset[row]);
    }
    assert_int_equal(graph->offset[g->entities], 2 * g->count);
    for (int64_t i = 0; i < 2 * g->count; i++) {
        assert_true(graph->neighbor[i] == slots[i].neighbor && graph->relation[i] == slots[i].relation &&
                    graph->edge[i] == slots[i].edge);
    }
    assert_true(vlp_graph_bytes(graph) >= 24 * g->count + 8 * (int64_t)g->entities);
    vlp_graph_free(graph);
    free(slots);
}

static void test_graph(void **state) {
    (void)state;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        oracle_random random = {SEED, step, 0};
        oracle_graph g;
        oracle_graph_small(&g, &random);
        check_graph(&g, step % 50 == 0 ? 3 : 1 + (int32_t)(step % 2));
        oracle_graph_free(&g);
    }
    for (int shape = 0; shape < ORACLE_SHAPES; shape++) {
        oracle_random random = {SEED + 1, (uint64_t)shape, 0};
        oracle_graph g;
        oracle_graph_middle(&g, (enum oracle_shape)shape, &random);
        for (int32_t threads = 1; threads <= 3; threads++) check_graph(&g, threads);
        oracle_graph_free(&g);
    }
}

static void test_empty_graphs(void **state) {
    (void)state;
    for (int32_t entities = 0; entities < 3; entities++) {
        for (int32_t relations = 0; relations < 3; relations++)
            check_graph(&(oracle_graph){.entities = entities, .relations = relations}, 2);
    }
    vlp_graph_free(NULL);
    vlp_filter_free(NULL);
}

/* One node in the middle of the ids that has nearly all edges, in and out, in no order. Every pair is
 * tried once a relation and direction, so that no triple is repeated. */
static void make_hub(oracle_graph *g) {
    oracle_random random = {SEED + 2, 0, 0};
    const int32_t leaves = HUB_EDGES / 5;
    *g = (oracle_graph){.entities = leaves + 1, .relations = 3, .count = HUB_EDGES};
    g->triples = array(g->count, sizeof *g->triples);
    int32_t *order = oracle_permutation(&random, HUB_EDGES), hub = leaves / 2;
    for (int32_t i = 0; i < HUB_EDGES; i++) {
        int32_t leaf = i / 5, way = i % 5;
        if (leaf >= hub) leaf++;
        if (way < 3)
            g->triples[order[i]] = (vlp_triple){hub, way, leaf};
        else
            g->triples[order[i]] = (vlp_triple){leaf, way - 3, hub};
    }
    free(order);
}

static void test_hub(void **state) {
    (void)state;
    oracle_graph g;
    make_hub(&g);
    for (int32_t threads = 1; threads <= 3; threads++) check_graph(&g, threads);
    oracle_graph_free(&g);
}

/* ---- Repeated triples ---- */

static bool equal(vlp_triple a, vlp_triple b) {
    return a.head == b.head && a.relation == b.relation && a.tail == b.tail;
}

static void fill_list(vlp_triple_list *list, const vlp_triple *items, int64_t count) {
    *list = (vlp_triple_list){.count = count, .capacity = count};
    if (count == 0) return;
    list->items = vlp_alloc((size_t)count, sizeof *list->items);
    assert_non_null(list->items);
    memcpy(list->items, items, (size_t)count * sizeof *items);
}

static void check_unique(const vlp_triple *items, int64_t count, const vlp_triple *expected,
                         int64_t expected_count, int32_t entities, int32_t threads) {
    vlp_triple_list list;
    int64_t dropped = -1;
    fill_list(&list, items, count);
    assert_int_equal(vlp_triple_list_unique(&list, &dropped, entities, threads), VLP_OK);
    assert_int_equal(list.count, expected_count);
    assert_int_equal(dropped, count - expected_count);
    for (int64_t i = 0; i < expected_count; i++) assert_true(equal(list.items[i], expected[i]));
    /* Once is enough. */
    assert_int_equal(vlp_triple_list_unique(&list, &dropped, entities, threads), VLP_OK);
    assert_int_equal(list.count, expected_count);
    assert_int_equal(dropped, 0);
    vlp_triple_list_free(&list);
}

/* Few possible triples, so that most are repeated; compared with the list of those not seen before. */
static void test_unique_small(void **state) {
    (void)state;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        oracle_random random = {SEED + 3, step, 0};
        int32_t entities = 1 + oracle_below(&random, 12), relations = 1 + oracle_below(&random, 4);
        int64_t count = oracle_below(&random, step % 100 == 0 ? 3000 : 80), kept = 0;
        vlp_triple *items = array(count, sizeof *items), *expected = array(count, sizeof *expected);
        for (int64_t i = 0; i < count; i++) {
            items[i] = (vlp_triple){oracle_below(&random, entities), oracle_below(&random, relations),
                                    oracle_below(&random, entities)};
            bool seen = false;
            for (int64_t k = 0; k < kept && !seen; k++) seen = equal(expected[k], items[i]);
            if (!seen) expected[kept++] = items[i];
        }
        check_unique(items, count, expected, kept, entities, 1 + (int32_t)(step % 2));
        free(items);
        free(expected);
    }
}

/* The k-th of the triples that a list of its own kind never repeats. */
static vlp_triple nth_triple(int64_t k, int32_t entities) {
    return (vlp_triple){(int32_t)(k * 7919 % entities), (int32_t)(k / entities % 5),
                        (int32_t)(k / entities / 5 * 31 % entities)};
}

/* Long enough for every thread to get a part: a third repeats what stood anywhere before. */
static void test_unique_large(void **state) {
    (void)state;
    enum { COUNT = 300000, ENTITIES = 10007 };
    vlp_triple *items = array(COUNT, sizeof *items), *expected = array(COUNT, sizeof *expected);
    oracle_random random = {SEED + 4, 0, 0};
    int64_t kept = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        if (kept > 0 && oracle_chance(&random, 3))
            items[i] = expected[oracle_below(&random, (int32_t)kept)];
        else {
            expected[kept] = items[i] = nth_triple(kept, ENTITIES);
            kept++;
        }
    }
    for (int32_t threads = 1; threads <= 3; threads++)
        check_unique(items, COUNT, expected, kept, ENTITIES, threads);
    /* All of one head, and all the same. */
    for (int64_t i = 0; i < COUNT; i++) items[i] = (vlp_triple){5, 1, 5};
    check_unique(items, COUNT, items, 1, ENTITIES, 2);
    for (int64_t i = 0; i < COUNT; i++)
        items[i] = (vlp_triple){5, (int32_t)(i % 600), (int32_t)(i / 1200)};
    kept = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        if (i % 1200 < 600) expected[kept++] = items[i];
    }
    check_unique(items, COUNT, expected, kept, ENTITIES, 2);
    free(items);
    free(expected);
}

/* Adds `count` triples piece by piece, as a reader does: in the end they are what vlp_triple_list_unique
 * leaves of all of them, and the list never had a capacity of more than `limit` triples. */
typedef vlp_triple (*triple_source)(int64_t i);

static void check_reserve(triple_source source, int64_t count, int64_t limit) {
    enum { PIECE = 50000, ENTITIES = 10007 };
    vlp_triple_list all = {0}, list = {0};
    int64_t dropped = 0, dropped_all = 0, last = 0;
    vlp_triple *items = array(count, sizeof *items);
    for (int64_t i = 0; i < count; i++) items[i] = source(i);
    fill_list(&all, items, count);
    assert_int_equal(vlp_triple_list_unique(&all, &dropped_all, ENTITIES, 2), VLP_OK);
    for (int64_t done = 0; done < count; done += PIECE) {
        assert_int_equal(vlp_triple_list_reserve(&list, &dropped, PIECE, ENTITIES, 2), VLP_OK);
        assert_true(list.count + PIECE <= list.capacity);
        assert_int_equal(list.count + dropped, done);
        assert_true(list.capacity <= limit);
        memcpy(list.items + list.count, items + done, PIECE * sizeof *items);
        list.count += PIECE;
    }
    assert_int_equal(vlp_triple_list_unique(&list, &last, ENTITIES, 2), VLP_OK);
    assert_int_equal(dropped + last, dropped_all);
    assert_int_equal(list.count, all.count);
    assert_memory_equal(list.items, all.items, (size_t)all.count * sizeof *all.items);
    vlp_triple_list_free(&all);
    vlp_triple_list_free(&list);
    free(items);
}

static vlp_triple few_triples(int64_t i) {
    return nth_triple(i * 7907 % 1000, 10007);
}

static vlp_triple one_triple(int64_t i) {
    return nth_triple(i % 16 == 0 ? i : 3, 10007);
}

static vlp_triple pairs_of_triples(int64_t i) {
    return nth_triple(i % 2500000, 10007);
}

static vlp_triple different_triples(int64_t i) {
    return nth_triple(i, 10007);
}

/* Memory grows with the distinct triples, also where one of them is most of the file; a list without
 * repeated triples grows by doubling. */
static void test_reserve(void **state) {
    (void)state;
    check_reserve(few_triples, 5000000, 2 << 20);
    check_reserve(one_triple, 5000000, 2 << 20);
    check_reserve(pairs_of_triples, 5000000, 7 << 20);
    check_reserve(different_triples, 3000000, 7 << 20);
}

/* ---- Filter ---- */

/* known[a] says whether a answers (entity, relation), by reading every list. */
static void scan(bool *known, const vlp_triple *const *lists, const int64_t *counts, int list_count,
                 int32_t entity, int32_t relation, int32_t relations) {
    for (int list = 0; list < list_count; list++) {
        for (int64_t i = 0; i < counts[list]; i++) {
            vlp_triple t = lists[list][i];
            if (relation < relations && t.relation == relation && t.head == entity) known[t.tail] = true;
            if (relation >= relations && t.relation == relation - relations && t.tail == entity)
                known[t.head] = true;
        }
    }
}

static void check_answers(const vlp_filter *filter, const bool *known, int32_t entity, int32_t relation,
                          int32_t entities) {
    int64_t count = -1, at = 0;
    const int32_t *answers = vlp_filter_answers(filter, entity, relation, &count);
    for (int32_t a = 0; a < entities; a++) {
        assert_int_equal(vlp_filter_has(filter, entity, relation, a), known[a]);
        if (!known[a]) continue;
        assert_true(at < count);
        assert_int_equal(answers[at++], a);
    }
    assert_int_equal(count, at);
}

static void check_filter(const vlp_triple *const *lists, const int64_t *counts, int list_count,
                         int32_t entities, int32_t relations, int32_t threads) {
    vlp_filter *filter = NULL;
    assert_int_equal(vlp_filter_build(&filter, lists, counts, list_count, entities, relations, threads),
                     VLP_OK);
    assert_non_null(filter);
    for (int32_t entity = 0; entity < entities; entity++) {
        for (int32_t relation = 0; relation < 2 * relations; relation++) {
            bool *known = array(entities, sizeof *known);
            scan(known, lists, counts, list_count, entity, relation, relations);
            check_answers(filter, known, entity, relation, entities);
            free(known);
        }
    }
    vlp_filter_free(filter);
}

/* Up to three lists over the same ids; triples repeat within a list and among them. */
static void test_filter_small(void **state) {
    (void)state;
    for (uint64_t step = 0; step < SMALL_GRAPHS; step++) {
        oracle_random random = {SEED + 5, step, 0};
        int32_t entities = 1 + oracle_below(&random, 12), relations = 1 + oracle_below(&random, 4);
        int list_count = oracle_below(&random, 4);
        vlp_triple *lists[3] = {NULL};
        int64_t counts[3] = {0};
        for (int list = 0; list < list_count; list++) {
            counts[list] = oracle_chance(&random, 5) ? 0 : oracle_below(&random, 60);
            if (counts[list] > 0) lists[list] = array(counts[list], sizeof **lists);
            for (int64_t i = 0; i < counts[list]; i++)
                lists[list][i] =
                    (vlp_triple){oracle_below(&random, entities), oracle_below(&random, relations),
                                 oracle_below(&random, entities)};
        }
        check_filter((const vlp_triple *const *)lists, counts, list_count, entities, relations,
                     step % 50 == 0 ? 3 : 1 + (int32_t)(step % 2));
        for (int list = 0; list < list_count; list++) free(lists[list]);
    }
}

static void test_filter_middle(void **state) {
    (void)state;
    for (int shape = 0; shape < ORACLE_SHAPES; shape += 2) {
        oracle_random random = {SEED + 6, (uint64_t)shape, 0};
        oracle_graph g;
        oracle_graph_middle(&g, (enum oracle_shape)shape, &random);
        const vlp_triple *lists[2] = {g.triples, g.triples + g.count / 3};
        int64_t counts[2] = {g.count / 2, g.count - g.count / 3};
        check_filter(lists, counts, 2, g.entities, g.relations, 2);
        oracle_graph_free(&g);
    }
}

/* More relations than a byte counts, in rows long enough to be sorted by bytes. */
static void test_many_relations(void **state) {
    (void)state;
    oracle_random random = {SEED + 8, 0, 0};
    oracle_graph g = {.entities = 6, .relations = 3000};
    for (int i = 0; i < 900; i++)
        oracle_graph_add(&g, oracle_below(&random, g.entities), oracle_below(&random, g.relations),
                         oracle_below(&random, g.entities));
    const vlp_triple *lists[2] = {g.triples, g.triples + g.count / 2};
    int64_t counts[2] = {g.count, g.count / 2};
    check_graph(&g, 1);
    check_filter(lists, counts, 2, g.entities, g.relations, 1);
    oracle_graph_free(&g);
}

/* The hub's answers, and a leaf's, of a filter that saw everything twice. */
static void test_filter_hub(void **state) {
    (void)state;
    oracle_graph g;
    make_hub(&g);
    const vlp_triple *lists[2] = {g.triples, g.triples};
    int64_t counts[2] = {g.count, g.count};
    for (int32_t threads = 1; threads <= 3; threads++) {
        vlp_filter *filter = NULL;
        const int32_t asked[] = {0, 1, g.entities / 2, g.entities / 2 - 1, g.entities - 1};
        assert_int_equal(vlp_filter_build(&filter, lists, counts, 2, g.entities, g.relations, threads),
                         VLP_OK);
        for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
            for (int32_t relation = 0; relation < 2 * g.relations; relation++) {
                bool *known = array(g.entities, sizeof *known);
                scan(known, lists, counts, 2, asked[i], relation, g.relations);
                check_answers(filter, known, asked[i], relation, g.entities);
                free(known);
            }
        }
        vlp_filter_free(filter);
    }
    oracle_graph_free(&g);
}

/* ---- Every allocation fails once ---- */

typedef struct inputs {
    oracle_graph oracle;
    vlp_graph *graph;
    vlp_skeleton *skeleton;
    vlp_query *queries; /* (oracle.count) */
} inputs;

/* One call of what is tested, with what it made freed again. `out` is checked to be NULL on failure. */
typedef vlp_status (*operation)(const inputs *in, int32_t threads);

static vlp_status build_graph(const inputs *in, int32_t threads) {
    vlp_graph *out = NULL;
    vlp_status status = vlp_graph_new(&out, in->oracle.triples, in->oracle.count, in->oracle.entities,
                                      in->oracle.relations, threads);
    assert_int_equal(status == VLP_OK, out != NULL);
    vlp_graph_free(out);
    return status;
}

static vlp_status build_filter(const inputs *in, int32_t threads) {
    vlp_filter *out = NULL;
    const vlp_triple *lists[2] = {in->oracle.triples, in->oracle.triples};
    int64_t counts[2] = {in->oracle.count, in->oracle.count / 2};
    vlp_status status =
        vlp_filter_build(&out, lists, counts, 2, in->oracle.entities, in->oracle.relations, threads);
    assert_int_equal(status == VLP_OK, out != NULL);
    vlp_filter_free(out);
    return status;
}

/* A list that could not be freed of its repetitions is as it was. It is not the library's own here, so
 * that no allocation of its making is counted. */
static vlp_status drop_repeated(const inputs *in, int32_t threads) {
    int64_t count = in->oracle.count, dropped = -1;
    vlp_triple *items = array(2 * count, sizeof *items);
    for (int64_t i = 0; i < 2 * count; i++) items[i] = in->oracle.triples[i % count];
    vlp_triple_list list = {items, 2 * count, 2 * count + 1};
    vlp_status status = vlp_triple_list_unique(&list, &dropped, in->oracle.entities, threads);
    assert_int_equal(list.count, status == VLP_OK ? count : 2 * count);
    for (int64_t i = 0; i < list.count; i++)
        assert_true(equal(list.items[i], in->oracle.triples[i % count]));
    free(list.items);
    return status;
}

static vlp_status build_skeleton(const inputs *in, int32_t threads) {
    vlp_skeleton *out = NULL;
    vlp_status status = vlp_skeleton_new(&out, in->graph, threads);
    assert_int_equal(status == VLP_OK, out != NULL);
    vlp_skeleton_free(out);
    return status;
}

static vlp_status build_shells(const inputs *in, int64_t budget, int32_t threads) {
    vlp_shells *out = NULL;
    vlp_status status = vlp_shells_new(&out, in->skeleton, 3, budget, threads, NULL);
    assert_int_equal(status == VLP_OK, out != NULL);
    if (out) assert_int_equal(out->exact, budget > 1);
    vlp_shells_free(out);
    return status;
}

static vlp_status build_exact_shells(const inputs *in, int32_t threads) {
    return build_shells(in, INT64_C(1) << 32, threads);
}

static vlp_status build_near_shells(const inputs *in, int32_t threads) {
    return build_shells(in, 1, threads);
}

static vlp_status measure_pairs(const inputs *in, int32_t threads) {
    int32_t *out = array(in->oracle.count, sizeof *out);
    vlp_status status =
        vlp_skeleton_pairs(out, in->skeleton, in->oracle.triples, in->oracle.count, threads);
    free(out);
    return status;
}

static vlp_status count_distances(const inputs *in, int32_t threads) {
    int32_t *out = array(in->oracle.entities * INT64_C(4), sizeof *out);
    vlp_status status = vlp_skeleton_counts(out, in->skeleton, 3, threads, NULL);
    free(out);
    return status;
}

static vlp_status find_references(const inputs *in, const vlp_query *queries, int32_t threads) {
    vlp_references *out = NULL;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.threads = threads;
    vlp_status status = vlp_graph_references(&out, in->graph, queries, in->oracle.count, &options);
    assert_int_equal(status == VLP_OK, out != NULL);
    vlp_references_free(out);
    return status;
}

static vlp_status find_training_references(const inputs *in, int32_t threads) {
    return find_references(in, NULL, threads);
}

static vlp_status find_given_references(const inputs *in, int32_t threads) {
    return find_references(in, in->queries, threads);
}

static void fail_each_allocation(operation run, const inputs *in, int32_t threads) {
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = run(in, threads);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        if (memory.failed) assert_true(strlen(vlp_error_message()) > 0);
    } while (memory.failed);
    assert_true(call > 2);
}

static void fail_all(inputs *in) {
    static const operation operations[] = {
        build_graph,           build_filter,       drop_repeated,
        build_skeleton,        build_exact_shells, build_near_shells,
        measure_pairs,         count_distances,    find_training_references,
        find_given_references,
    };
    in->graph = make_graph(&in->oracle, 1);
    in->skeleton = NULL;
    in->queries = array(in->oracle.count, sizeof *in->queries);
    for (int64_t i = 0; i < in->oracle.count; i++)
        in->queries[i] = (vlp_query){in->oracle.triples[i].tail, 0, i};
    assert_int_equal(vlp_skeleton_new(&in->skeleton, in->graph, 1), VLP_OK);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        for (int32_t threads = 1; threads <= 2; threads++)
            fail_each_allocation(operations[i], in, threads);
    }
    vlp_skeleton_free(in->skeleton);
    vlp_graph_free(in->graph);
    free(in->queries);
    oracle_graph_free(&in->oracle);
}

static void test_allocations_fail(void **state) {
    (void)state;
    oracle_random random = {SEED + 7, 0, 0};
    inputs in = {0};
    oracle_graph_middle(&in.oracle, ORACLE_TREE, &random);
    fail_all(&in);
    /* A ring long enough for work to be shared among threads where it is only for large graphs. */
    enum { LENGTH = 12000 };
    in.oracle = (oracle_graph){.entities = LENGTH, .relations = 2, .count = LENGTH};
    in.oracle.triples = array(LENGTH, sizeof *in.oracle.triples);
    for (int32_t i = 0; i < LENGTH; i++) in.oracle.triples[i] = (vlp_triple){i, i % 2, (i + 1) % LENGTH};
    fail_all(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_empty_graphs),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_unique_small),
        cmocka_unit_test(test_unique_large),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_filter_small),
        cmocka_unit_test(test_filter_middle),
        cmocka_unit_test(test_filter_hub),
        cmocka_unit_test(test_many_relations),
        cmocka_unit_test(test_allocations_fail),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
