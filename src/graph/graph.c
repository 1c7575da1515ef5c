/* Building the rows of the graph: slots are scattered to their rows in edge order, then each row is
 * sorted by relation, which keeps the edge order within a relation. */
#include "graph/graph.h"

#include <string.h>

#include <omp.h>

#include "graph/rows.h"

/* Scatters both slots of every triple; offset[v] advances to the end of row v, which the caller
 * reverts. */
static void scatter(vlp_graph *graph) {
    for (int64_t i = 0; i < graph->edges; i++) {
        vlp_triple triple = graph->triples[i];
        int64_t slot = graph->offset[triple.head]++;
        graph->neighbor[slot] = triple.tail;
        graph->relation[slot] = triple.relation;
        graph->edge[slot] = (int32_t)i;
        slot = graph->offset[triple.tail]++;
        graph->neighbor[slot] = triple.head;
        graph->relation[slot] = triple.relation + graph->relations;
        graph->edge[slot] = (int32_t)i;
    }
}

static void sort_row(vlp_graph *graph, int32_t node, vlp_keyed *items, vlp_keyed *spare) {
    int64_t start = graph->offset[node], count = vlp_graph_degree(graph, node);
    bool sorted = true;
    for (int64_t i = 1; i < count && sorted; i++)
        sorted = graph->relation[start + i - 1] <= graph->relation[start + i];
    if (sorted) return;
    for (int64_t i = 0; i < count; i++) {
        uint64_t ends =
            (uint64_t)(uint32_t)graph->neighbor[start + i] << 32 | (uint32_t)graph->edge[start + i];
        items[i] = (vlp_keyed){(uint32_t)graph->relation[start + i], (int64_t)ends};
    }
    vlp_keyed_sort(items, spare, count);
    for (int64_t i = 0; i < count; i++) {
        graph->relation[start + i] = (int32_t)items[i].key;
        graph->neighbor[start + i] = (int32_t)((uint64_t)items[i].value >> 32);
        graph->edge[start + i] = (int32_t)(uint32_t)items[i].value;
    }
}

/* Sorts all rows; each thread has a buffer for the longest one. */
static vlp_status sort_rows(vlp_graph *graph, int threads) {
    size_t longest = (size_t)vlp_rows_longest(graph->offset, graph->entities);
    vlp_keyed *buffer = vlp_alloc((size_t)threads * 2 * longest, sizeof *buffer);
    if (!buffer) return vlp_fail_memory("sorting the graph");
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024) if (graph->edges > 10000)
    for (int32_t node = 0; node < graph->entities; node++) {
        vlp_keyed *items = buffer + (size_t)omp_get_thread_num() * 2 * longest;
        sort_row(graph, node, items, items + longest);
    }
    vlp_free(buffer);
    return VLP_OK;
}

vlp_status vlp_graph_new(vlp_graph **out, const vlp_triple *triples, int64_t count, int32_t entities,
                         int32_t relations, int32_t threads) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_graph *graph = vlp_alloc_zero(1, sizeof *graph);
    if (!graph) return vlp_fail_memory("the graph");
    graph->entities = entities;
    graph->relations = relations;
    graph->edges = count;
    graph->triples = triples;
    size_t slots = 2 * (size_t)count;
    graph->offset = vlp_alloc_zero((size_t)entities + 1, sizeof *graph->offset);
    graph->neighbor = vlp_alloc(slots, sizeof *graph->neighbor);
    graph->relation = vlp_alloc(slots, sizeof *graph->relation);
    graph->edge = vlp_alloc(slots, sizeof *graph->edge);
    if (!graph->offset || !graph->neighbor || !graph->relation || !graph->edge) {
        status = vlp_fail_memory("the graph");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) {
        graph->offset[triples[i].head + 1]++;
        graph->offset[triples[i].tail + 1]++;
    }
    vlp_rows_accumulate(graph->offset, entities);
    scatter(graph);
    memmove(graph->offset + 1, graph->offset, (size_t)entities * sizeof *graph->offset);
    graph->offset[0] = 0;
    VLP_CHECK(sort_rows(graph, vlp_thread_count(threads)));
out:
    if (status != VLP_OK) {
        vlp_graph_free(graph);
        return status;
    }
    *out = graph;
    return VLP_OK;
}

void vlp_graph_free(vlp_graph *graph) {
    if (!graph) return;
    vlp_free(graph->offset);
    vlp_free(graph->neighbor);
    vlp_free(graph->relation);
    vlp_free(graph->edge);
    vlp_free(graph);
}

int64_t vlp_graph_bytes(const vlp_graph *graph) {
    return ((int64_t)graph->entities + 1) * (int64_t)sizeof *graph->offset +
           2 * graph->edges * 3 * (int64_t)sizeof *graph->edge;
}

/* The first of [low, high) whose relation is at least `relation`. */
static int64_t lower_bound(const int32_t *relations, int64_t low, int64_t high, int32_t relation) {
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (relations[middle] < relation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t vlp_graph_slots(const vlp_graph *graph, int32_t node, int32_t relation, int64_t *count) {
    int64_t end = graph->offset[node + 1];
    int64_t first = lower_bound(graph->relation, graph->offset[node], end, relation);
    *count = lower_bound(graph->relation, first, end, relation + 1) - first;
    return first;
}
