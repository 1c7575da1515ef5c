/* Breadth-first search: from one source with a queue, or from 512 at once with one bit per source (the
 * bits of a row mark the sources that have reached it). */
#include "graph/distance.h"

#include <string.h>

#include <omp.h>

#include "graph/block_search.h"
#include "graph/rows.h"

/* ---- The skeleton -------------------------------------------------------------------------------- */

/* Numbers rows in breadth-first order over all components, so that the neighbours of a row are close
 * to it and to each other in memory. */
static void order_rows(vlp_skeleton *skeleton, const vlp_graph *graph) {
    int32_t *queue = skeleton->entity, filled = 0;
    memset(skeleton->place, 0xff, (size_t)graph->entities * sizeof *skeleton->place);
    for (int32_t start = 0; start < graph->entities; start++) {
        if (skeleton->place[start] >= 0) continue;
        skeleton->place[start] = filled;
        queue[filled++] = start;
        for (int32_t head = filled - 1; head < filled; head++)
            for (int64_t slot = graph->offset[queue[head]]; slot < graph->offset[queue[head] + 1];
                 slot++) {
                int32_t next = graph->neighbor[slot];
                if (skeleton->place[next] >= 0) continue;
                skeleton->place[next] = filled;
                queue[filled++] = next;
            }
    }
}

/* The distinct neighbours of a row other than itself, sorted; returns how many. */
static int64_t simple_row(int32_t *out, const vlp_skeleton *skeleton, const vlp_graph *graph,
                          int32_t row, vlp_keyed *items, vlp_keyed *spare) {
    int32_t entity = skeleton->entity[row];
    int64_t start = graph->offset[entity], count = 0, kept = 0;
    for (int64_t i = 0; i < vlp_graph_degree(graph, entity); i++) {
        int32_t place = skeleton->place[graph->neighbor[start + i]];
        if (place != row) items[count++] = (vlp_keyed){(uint32_t)place, 0};
    }
    vlp_keyed_sort(items, spare, count);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || items[i].key != items[i - 1].key) {
            if (out) out[kept] = (int32_t)items[i].key;
            kept++;
        }
    return kept;
}

static vlp_status fill_rows(vlp_skeleton *skeleton, const vlp_graph *graph, int threads) {
    size_t longest = (size_t)vlp_rows_longest(graph->offset, graph->entities);
    vlp_keyed *buffer = vlp_alloc((size_t)threads * 2 * longest, sizeof *buffer);
    if (!buffer) return vlp_fail_memory("the distance graph");
    vlp_status status = VLP_OK;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024) if (graph->edges > 10000)
        for (int32_t row = 0; row < skeleton->nodes; row++) {
            vlp_keyed *items = buffer + (size_t)omp_get_thread_num() * 2 * longest;
            int32_t *out = pass ? skeleton->neighbor + skeleton->offset[row] : NULL;
            int64_t kept = simple_row(out, skeleton, graph, row, items, items + longest);
            if (pass == 0) skeleton->offset[row + 1] = kept;
        }
        if (pass == 1) break;
        skeleton->offset[0] = 0;
        vlp_rows_accumulate(skeleton->offset, skeleton->nodes);
        skeleton->neighbor =
            vlp_alloc((size_t)skeleton->offset[skeleton->nodes], sizeof *skeleton->neighbor);
        if (!skeleton->neighbor) {
            status = vlp_fail_memory("the distance graph");
            break;
        }
    }
    vlp_free(buffer);
    return status;
}

vlp_status vlp_skeleton_new(vlp_skeleton **out, const vlp_graph *graph, int32_t threads) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_skeleton *skeleton = vlp_alloc_zero(1, sizeof *skeleton);
    if (!skeleton) return vlp_fail_memory("the distance graph");
    size_t nodes = (size_t)graph->entities;
    skeleton->nodes = graph->entities;
    skeleton->offset = vlp_alloc(nodes + 1, sizeof *skeleton->offset);
    skeleton->place = vlp_alloc(nodes, sizeof *skeleton->place);
    skeleton->entity = vlp_alloc(nodes, sizeof *skeleton->entity);
    if (!skeleton->offset || !skeleton->place || !skeleton->entity) {
        status = vlp_fail_memory("the distance graph");
        goto out;
    }
    order_rows(skeleton, graph);
    VLP_CHECK(fill_rows(skeleton, graph, vlp_thread_count(threads)));
out:
    if (status != VLP_OK) {
        vlp_skeleton_free(skeleton);
        return status;
    }
    *out = skeleton;
    return VLP_OK;
}

void vlp_skeleton_free(vlp_skeleton *skeleton) {
    if (!skeleton) return;
    vlp_free(skeleton->offset);
    vlp_free(skeleton->neighbor);
    vlp_free(skeleton->place);
    vlp_free(skeleton->entity);
    vlp_free(skeleton);
}

/* ---- One source ---------------------------------------------------------------------------------- */

void vlp_skeleton_search(const vlp_skeleton *skeleton, int32_t source, int32_t limit, int32_t *distance,
                         int32_t *queue) {
    memset(distance, 0xff, (size_t)skeleton->nodes * sizeof *distance);
    int32_t filled = 0;
    distance[source] = 0;
    queue[filled++] = skeleton->place[source];
    for (int32_t head = 0; head < filled; head++) {
        int32_t row = queue[head], next = distance[skeleton->entity[row]] + 1;
        if (limit > 0 && next > limit) return;
        for (int64_t slot = skeleton->offset[row]; slot < skeleton->offset[row + 1]; slot++) {
            int32_t entity = skeleton->entity[skeleton->neighbor[slot]];
            if (distance[entity] >= 0) continue;
            distance[entity] = next;
            queue[filled++] = skeleton->neighbor[slot];
        }
    }
}

/* ---- Distances of pairs -------------------------------------------------------------------------- */

/* A pair of rows, source and target, and its index in the output. */
typedef struct wanted_pair {
    int32_t target;
    int32_t lane;
    int64_t index;
} wanted_pair;

typedef struct pair_block {
    int32_t sources[VLP_BLOCK_SOURCES];
    int32_t source_count;
    int64_t first, end; /* of the pairs sorted by source */
} pair_block;

/* Searches one block of sources. Pairs that are found are removed from the list; the search ends when
 * it is empty. */
static void search_pairs(int32_t *out, const vlp_skeleton *skeleton, const pair_block *block,
                         wanted_pair *pairs, vlp_block_search *search) {
    vlp_block_search_start(search, skeleton, block->sources, block->source_count);
    int64_t left = block->end - block->first;
    wanted_pair *mine = pairs + block->first;
    for (int32_t level = 0;; level++) {
        int64_t kept = 0;
        for (int64_t i = 0; i < left; i++) {
            uint64_t word = search->seen[mine[i].target].lane[mine[i].lane >> 6];
            if (word >> (mine[i].lane & 63) & 1)
                out[mine[i].index] = level;
            else
                mine[kept++] = mine[i];
        }
        left = kept;
        if (left == 0 || !vlp_block_search_step(search, skeleton)) break;
    }
    for (int64_t i = 0; i < left; i++) out[mine[i].index] = -1;
}

/* Sorts the pairs by source and divides them into blocks of at most VLP_BLOCK_SOURCES sources. */
static int64_t make_blocks(pair_block *blocks, wanted_pair *wanted, const vlp_keyed *items,
                           int64_t count, const vlp_skeleton *skeleton, const vlp_triple *pairs) {
    int64_t used = 0;
    pair_block *block = NULL;
    for (int64_t i = 0; i < count; i++) {
        int32_t source = (int32_t)items[i].key;
        bool same = block && block->sources[block->source_count - 1] == source;
        if (!same && (!block || block->source_count == VLP_BLOCK_SOURCES)) {
            block = &blocks[used++];
            block->source_count = 0;
            block->first = i;
        }
        if (!same) block->sources[block->source_count++] = source;
        wanted[i] = (wanted_pair){skeleton->place[pairs[items[i].value].tail], block->source_count - 1,
                                  items[i].value};
        block->end = i + 1;
    }
    return used;
}

vlp_status vlp_skeleton_pairs(int32_t *out, const vlp_skeleton *skeleton, const vlp_triple *pairs,
                              int64_t count, int32_t requested) {
    int threads = vlp_thread_count(requested);
    vlp_status status = VLP_OK;
    vlp_block_search *searches = vlp_block_searches_new(skeleton, threads, 0);
    vlp_keyed *items = vlp_alloc((size_t)count, sizeof *items);
    vlp_keyed *spare = vlp_alloc((size_t)count, sizeof *spare);
    wanted_pair *wanted = vlp_alloc((size_t)count, sizeof *wanted);
    size_t maximum = (size_t)(count < skeleton->nodes ? count : skeleton->nodes) / VLP_BLOCK_SOURCES + 1;
    pair_block *blocks = vlp_alloc(maximum, sizeof *blocks);
    if (!searches || !items || !spare || !wanted || !blocks) {
        status = vlp_fail_memory("distances");
        goto out;
    }
    for (int64_t i = 0; i < count; i++)
        items[i] = (vlp_keyed){(uint32_t)skeleton->place[pairs[i].head], i};
    vlp_keyed_sort(items, spare, count);
    int64_t used = make_blocks(blocks, wanted, items, count, skeleton, pairs);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (used > 1)
    for (int64_t i = 0; i < used; i++)
        search_pairs(out, skeleton, &blocks[i], wanted, &searches[omp_get_thread_num()]);
out:
    vlp_block_searches_free(searches);
    vlp_free(items);
    vlp_free(spare);
    vlp_free(wanted);
    vlp_free(blocks);
    return status;
}
