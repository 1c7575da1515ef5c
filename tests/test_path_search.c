/* The search for paths against all chains of small graphs. */
#include <math.h>
#include <stdlib.h>

#include "run/path_search.h"
#include "tiny_run.h"

enum { SMALL = 6, MAX_CHAINS = 4096 };

/* All chains of a small graph, by the definition: one product for every choice of layers. */
typedef struct chains {
    const vlp_path_search *search;
    int32_t hops[SMALL];
    vlp_found_path *found;
    int32_t count;
} chains;

static double message(const chains *all, int32_t layer, int64_t slot) {
    const vlp_graph *graph = all->search->graph;
    float value = all->search->messages[layer * 2 * graph->edges + slot];
    return all->hops[graph->neighbor[slot]] <= layer ? fabs((double)value) : 0;
}

/* What reached an entity in layers below `before`. */
static double reached(const chains *all, int32_t entity, int32_t before) {
    const vlp_graph *graph = all->search->graph;
    double sum = 0;
    for (int32_t l = 0; l < before; l++)
        for (int64_t slot = graph->offset[entity]; slot < graph->offset[entity + 1]; slot++)
            sum += message(all, l, slot);
    return sum;
}

/* The weight of slots[0 .. length), from the answer on, with messages in layers below `before`. */
static double weigh(const chains *all, const int32_t *slots, int32_t length, int32_t entity,
                    int32_t before) {
    if (length == 0) return 1;
    double sum = 0, all_reached = reached(all, entity, before);
    for (int32_t l = 0; all_reached > 0 && l < before; l++)
        sum += message(all, l, slots[0]) / all_reached *
               weigh(all, slots + 1, length - 1, all->search->graph->neighbor[slots[0]], l);
    return sum;
}

static void collect(chains *all, int32_t *slots, int32_t length, int32_t entity, unsigned visited) {
    const vlp_graph *graph = all->search->graph;
    if (length > 0 && entity == all->search->head) {
        vlp_found_path path = {.weight =
                                   weigh(all, slots, length, all->search->answer, all->search->layers),
                               .length = length};
        for (int32_t i = 0; i < length; i++) path.slots[i] = slots[length - 1 - i];
        assert_true(all->count < MAX_CHAINS);
        if (path.weight > 0) all->found[all->count++] = path;
        return;
    }
    if (length == all->search->layers || length == VLP_PATH_MAX_LAYERS) return;
    for (int64_t slot = graph->offset[entity]; slot < graph->offset[entity + 1]; slot++) {
        int32_t source = graph->neighbor[slot];
        if (source != all->search->head && visited >> source & 1) continue;
        slots[length] = (int32_t)slot;
        collect(all, slots, length + 1, source, visited | 1u << source);
    }
}

static int heavier(const void *left, const void *right) {
    const vlp_found_path *a = left, *b = right;
    return (a->weight < b->weight) - (a->weight > b->weight);
}

static void small_hops(int32_t *hops, const vlp_graph *graph, int32_t head) {
    for (int32_t v = 0; v < graph->entities; v++) hops[v] = v == head ? 0 : 1000;
    for (int32_t pass = 0; pass < graph->entities; pass++)
        for (int64_t i = 0; i < graph->edges; i++) {
            vlp_triple edge = graph->triples[i];
            if (hops[edge.tail] > hops[edge.head] + 1) hops[edge.tail] = hops[edge.head] + 1;
            if (hops[edge.head] > hops[edge.tail] + 1) hops[edge.head] = hops[edge.tail] + 1;
        }
}

static void best_chains(void **state) {
    (void)state;
    oracle_random random = {1, 0, 0};
    int64_t compared = 0, longest = 0;
    vlp_found_path *found = malloc(MAX_CHAINS * sizeof *found);
    for (int repeat = 0; repeat < 300; repeat++) {
        vlp_triple triples[8];
        int32_t layers = 1 + oracle_below(&random, 4), count = 3 + oracle_below(&random, 6);
        for (int32_t i = 0; i < count; i++)
            triples[i] = (vlp_triple){oracle_below(&random, SMALL), i % 3, oracle_below(&random, SMALL)};
        vlp_graph *graph = NULL;
        must(vlp_graph_new(&graph, triples, count, SMALL, 3, 1));
        float messages[4 * 16];
        for (int32_t i = 0; i < layers * 2 * count; i++)
            messages[i] = (float)(oracle_below(&random, 1000) - 300);
        vlp_path_search search = {graph, layers, messages, oracle_below(&random, SMALL),
                                  oracle_below(&random, SMALL)};
        chains all = {.search = &search, .found = found};
        int32_t slots[VLP_PATH_MAX_LAYERS], got_count;
        small_hops(all.hops, graph, search.head);
        collect(&all, slots, 0, search.answer, 1u << search.answer);
        qsort(found, (size_t)all.count, sizeof *found, heavier);
        vlp_found_path got[VLP_MAX_PATHS];
        must(vlp_paths_find(got, &got_count, &search, VLP_MAX_PATHS));
        assert_int_equal(got_count, all.count < VLP_MAX_PATHS ? all.count : VLP_MAX_PATHS);
        for (int32_t i = 0; i < got_count; i++) {
            assert_true(fabs(got[i].weight - found[i].weight) < 1e-12);
            compared++;
            if (got[i].length > longest) longest = got[i].length;
            /* Chains of the same weight may be in any order. */
            bool distinct = (i == 0 || found[i - 1].weight - found[i].weight > 1e-9) &&
                            (i + 1 == all.count || found[i].weight - found[i + 1].weight > 1e-9);
            if (!distinct) continue;
            assert_int_equal(got[i].length, found[i].length);
            assert_memory_equal(got[i].slots, found[i].slots,
                                (size_t)got[i].length * sizeof *got[i].slots);
        }
        vlp_graph_free(graph);
    }
    free(found);
    assert_true(compared > 200);
    assert_int_equal(longest, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
