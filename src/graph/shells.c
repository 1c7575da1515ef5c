/* Distances of all pairs: as counts, as a matrix of half-bytes, and as lists of the nearest entities. */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "base/simd.h"
#include "graph/block_search.h"

/* The maximum length of a list; larger shells are sampled by rejection. */
enum { NEAR_LIST_LIMIT = 256 };

/* Distances up to 14, and 15 for larger ones, take four bits. */
enum { LEVEL_PLANES = 4 };

/* ---- All pairs, by blocks of sources ------------------------------------------------------------- */

/* The results of a sweep. Rows and columns of the matrix are entities. */
typedef struct sweep {
    const vlp_skeleton *skeleton;
    int32_t limit;
    int32_t *counts;            /* (threads, nodes, limit + 1), by row */
    vlp_block_search *searches; /* (threads) */
    uint8_t *matrix;            /* as in vlp_shells, or NULL */
} sweep;

VLP_CLONES static void add_counts(int32_t *counts, const vlp_source_bits *fresh, int32_t nodes,
                                  int32_t stride) {
    for (int32_t row = 0; row < nodes; row++) {
        int total = 0;
        for (int lane = 0; lane < VLP_BLOCK_LANES; lane++)
            total += __builtin_popcountll(fresh[row].lane[lane]);
        counts[(int64_t)row * stride] += total;
    }
}

/* Spreads 16 bits over the 16 half-bytes of a word: bit i to the lowest bit of half-byte i. */
static inline uint64_t spread_bits(uint64_t bits) {
    bits = (bits | bits << 24) & UINT64_C(0x000000ff000000ff);
    bits = (bits | bits << 12) & UINT64_C(0x000f000f000f000f);
    bits = (bits | bits << 6) & UINT64_C(0x0303030303030303);
    return (bits | bits << 3) & UINT64_C(0x1111111111111111);
}

/* Stores the level of the newly reached sources: bit k of the level in plane k. */
VLP_CLONES static void note_level(vlp_source_bits *planes, const vlp_source_bits *fresh, int32_t nodes,
                                  int32_t level) {
    for (int plane = 0; plane < LEVEL_PLANES; plane++) {
        if (!(level >> plane & 1)) continue;
        vlp_source_bits *bits = planes + (int64_t)plane * nodes;
        for (int32_t row = 0; row < nodes; row++)
            for (int lane = 0; lane < VLP_BLOCK_LANES; lane++)
                bits[row].lane[lane] |= fresh[row].lane[lane];
    }
}

/* Writes the levels of a block's sources, as half-bytes, into their columns of every row. */
static void write_matrix(const sweep *work, const vlp_source_bits *planes, int32_t first,
                         int32_t count) {
    int64_t nodes = work->skeleton->nodes, stride = vlp_shells_stride(work->skeleton->nodes);
    size_t bytes = (size_t)vlp_shells_stride(count);
    for (int64_t row = 0; row < nodes; row++) {
        uint64_t words[VLP_BLOCK_SOURCES / 16];
        for (int word = 0; word < VLP_BLOCK_SOURCES / 16; word++) {
            uint64_t levels = 0;
            for (int plane = 0; plane < LEVEL_PLANES; plane++)
                levels |=
                    spread_bits(planes[plane * nodes + row].lane[word / 4] >> (word % 4 * 16) & 0xffff)
                    << plane;
            words[word] = levels;
        }
        memcpy(work->matrix + work->skeleton->entity[row] * stride + first / 2, words, bytes);
    }
}

static void sweep_block(const sweep *work, int32_t first, int32_t count, int thread) {
    int32_t nodes = work->skeleton->nodes, sources[VLP_BLOCK_SOURCES];
    vlp_block_search *search = &work->searches[thread];
    int32_t *counts = work->counts + (int64_t)thread * nodes * (work->limit + 1);
    vlp_source_bits *planes = search->extra; /* (LEVEL_PLANES, nodes) */
    for (int32_t i = 0; i < count; i++) sources[i] = work->skeleton->place[first + i];
    vlp_block_search_start(search, work->skeleton, sources, count);
    if (work->matrix) memset(planes, 0, (size_t)nodes * LEVEL_PLANES * sizeof *planes);
    add_counts(counts, search->fresh, nodes, work->limit + 1);
    for (int32_t level = 1; level <= work->limit; level++) {
        if (!vlp_block_search_step(search, work->skeleton)) break;
        add_counts(counts + level, search->fresh, nodes, work->limit + 1);
        if (work->matrix) note_level(planes, search->fresh, nodes, level);
    }
    if (!work->matrix) return;
    /* Unreached entities get limit + 1. */
    for (int32_t row = 0; row < nodes; row++)
        for (int lane = 0; lane < VLP_BLOCK_LANES; lane++)
            search->fresh[row].lane[lane] = ~search->seen[row].lane[lane];
    note_level(planes, search->fresh, nodes, work->limit + 1);
    write_matrix(work, planes, first, count);
}

/* Runs all blocks. counts: (nodes, limit + 1) by entity; matrix or NULL. */
static vlp_status sweep_all(int32_t *counts, uint8_t *matrix, const vlp_skeleton *skeleton,
                            int32_t limit, int32_t requested, const vlp_observer *observer) {
    int threads = vlp_thread_count(requested);
    vlp_status status = VLP_OK;
    size_t cells = (size_t)skeleton->nodes * (size_t)(limit + 1);
    int32_t *partial = vlp_alloc_zero((size_t)threads * cells, sizeof *partial);
    vlp_block_search *searches = vlp_block_searches_new(skeleton, threads, matrix ? LEVEL_PLANES : 0);
    bool stopped = vlp_stopped(observer);
    if (!partial || !searches) {
        status = vlp_fail_memory("distances");
        goto out;
    }
    sweep work = {skeleton, limit, partial, searches, matrix};
    int64_t done = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int32_t first = 0; first < skeleton->nodes; first += VLP_BLOCK_SOURCES) {
        bool stop;
#pragma omp atomic read
        stop = stopped;
        if (stop) continue;
        int thread = omp_get_thread_num();
        int32_t count = skeleton->nodes - first;
        if (count > VLP_BLOCK_SOURCES) count = VLP_BLOCK_SOURCES;
        sweep_block(&work, first, count, thread);
        int64_t now;
#pragma omp atomic capture
        now = done += count;
        if (thread == 0) {
            vlp_progress(observer, "distances", now, skeleton->nodes);
            if (vlp_stopped(observer)) {
#pragma omp atomic write
                stopped = true;
            }
        }
    }
    if (stopped) {
        status = vlp_fail_stopped();
        goto out;
    }
    vlp_progress(observer, "distances", skeleton->nodes, skeleton->nodes);
    for (int32_t row = 0; row < skeleton->nodes; row++)
        for (int32_t d = 0; d <= limit; d++) {
            int32_t total = 0;
            for (int t = 0; t < threads; t++)
                total += partial[(size_t)t * cells + (size_t)row * (size_t)(limit + 1) + (size_t)d];
            counts[(int64_t)skeleton->entity[row] * (limit + 1) + d] = total;
        }
out:
    vlp_free(partial);
    vlp_block_searches_free(searches);
    return status;
}

vlp_status vlp_skeleton_counts(int32_t *counts, const vlp_skeleton *skeleton, int32_t limit,
                               int32_t threads, const vlp_observer *observer) {
    return sweep_all(counts, NULL, skeleton, limit, threads, observer);
}

/* ---- Near shells --------------------------------------------------------------------------------- */

/* Working memory of one thread. */
typedef struct near_search {
    int32_t *mark;  /* (nodes) the last source that reached the entity, plus one */
    int32_t *queue; /* (nodes) entities */
    int32_t level_end[256];
} near_search;

static int compare_ids(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Complete shells around `entity`, with at most `maximum` members together (the first shell is always
 * included). Returns the number of shells. queue[0] is the entity itself, level_end[d] the end of
 * shell d. */
static int32_t near_shells(near_search *search, const vlp_skeleton *skeleton, int32_t entity,
                           int32_t limit, int64_t maximum, bool sorted) {
    int32_t filled = 1;
    search->mark[entity] = entity + 1;
    search->queue[0] = entity;
    search->level_end[0] = 1;
    for (int32_t d = 1, start = 0; d <= limit; d++) {
        for (int32_t i = start; i < search->level_end[d - 1]; i++) {
            int32_t row = skeleton->place[search->queue[i]];
            for (int64_t slot = skeleton->offset[row]; slot < skeleton->offset[row + 1]; slot++) {
                int32_t next = skeleton->entity[skeleton->neighbor[slot]];
                if (search->mark[next] == entity + 1) continue;
                search->mark[next] = entity + 1;
                search->queue[filled++] = next;
                if (d > 1 && filled - 1 > maximum) return d - 1; /* a hub is not read to its end */
            }
        }
        start = search->level_end[d - 1];
        if (sorted)
            qsort(search->queue + start, (size_t)(filled - start), sizeof *search->queue, compare_ids);
        search->level_end[d] = filled;
    }
    return limit;
}

/* Counts (pass 0) or stores (pass 1) the near shells of every entity. False if a stop was requested. */
static bool near_pass(vlp_shells *shells, const vlp_skeleton *skeleton, near_search *searches,
                      int threads, int64_t maximum, int pass, const vlp_observer *observer) {
    bool stopped = vlp_stopped(observer);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
    for (int32_t entity = 0; entity < shells->nodes; entity++) {
        int thread = omp_get_thread_num();
        if (thread == 0 && entity % 256 == 0) {
            vlp_progress(observer, "near entities", (int64_t)pass * shells->nodes + entity,
                         2 * (int64_t)shells->nodes);
            if (vlp_stopped(observer)) {
#pragma omp atomic write
                stopped = true;
            }
        }
        bool stop;
#pragma omp atomic read
        stop = stopped;
        if (stop) continue;
        near_search *search = &searches[thread];
        int32_t depth = near_shells(search, skeleton, entity, shells->limit, maximum, pass == 1);
        int32_t total = search->level_end[depth] - 1;
        if (pass == 0) {
            shells->near[entity] = (uint8_t)depth;
            shells->near_offset[entity + 1] = total;
            if (shells->exact) continue;
            int32_t *counts = shells->counts + (int64_t)entity * (shells->limit + 1);
            counts[0] = 1;
            for (int32_t d = 1; d <= depth; d++)
                counts[d] = search->level_end[d] - search->level_end[d - 1];
        } else {
            memcpy(shells->near_member + shells->near_offset[entity], search->queue + 1,
                   (size_t)total * sizeof *search->queue);
        }
    }
    return !stopped;
}

static void forget_marks(near_search *searches, int threads, int32_t nodes) {
    for (int t = 0; t < threads; t++) memset(searches[t].mark, 0, (size_t)nodes * sizeof(int32_t));
}

static vlp_status collect_near(vlp_shells *shells, const vlp_skeleton *skeleton, int64_t maximum,
                               int threads, const vlp_observer *observer) {
    vlp_status status = VLP_OK;
    size_t nodes = (size_t)shells->nodes;
    near_search *searches = vlp_alloc_zero((size_t)threads, sizeof *searches);
    if (!searches) return vlp_fail_memory("near entities");
    for (int t = 0; t < threads; t++) {
        searches[t].mark = vlp_alloc(nodes, sizeof(int32_t));
        searches[t].queue = vlp_alloc(nodes, sizeof(int32_t));
        if (!searches[t].mark || !searches[t].queue) {
            status = vlp_fail_memory("near entities");
            goto out;
        }
    }
    forget_marks(searches, threads, shells->nodes);
    shells->near_offset[0] = 0;
    if (!near_pass(shells, skeleton, searches, threads, maximum, 0, observer)) {
        status = vlp_fail_stopped();
        goto out;
    }
    for (size_t i = 0; i < nodes; i++) shells->near_offset[i + 1] += shells->near_offset[i];
    shells->near_member = vlp_alloc((size_t)shells->near_offset[nodes], sizeof *shells->near_member);
    if (!shells->near_member) {
        status = vlp_fail_memory("near entities");
        goto out;
    }
    forget_marks(searches, threads, shells->nodes);
    if (!near_pass(shells, skeleton, searches, threads, maximum, 1, observer))
        status = vlp_fail_stopped();
out:
    for (int t = 0; t < threads; t++) {
        vlp_free(searches[t].mark);
        vlp_free(searches[t].queue);
    }
    vlp_free(searches);
    return status;
}

/* ---- Shells -------------------------------------------------------------------------------------- */

static vlp_status collect_exact(vlp_shells *shells, const vlp_skeleton *skeleton, int threads,
                                const vlp_observer *observer) {
    shells->matrix = vlp_alloc((size_t)shells->nodes, (size_t)vlp_shells_stride(shells->nodes));
    if (!shells->matrix) return vlp_fail_memory("the distance matrix");
    return sweep_all(shells->counts, shells->matrix, skeleton, shells->limit, threads, observer);
}

vlp_status vlp_shells_new(vlp_shells **out, const vlp_skeleton *skeleton, int32_t limit,
                          int64_t memory_budget, int32_t requested, const vlp_observer *observer) {
    *out = NULL;
    if (limit < 1 || limit > 14)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a distance limit of %d; the range is 1 to 14", limit);
    vlp_status status = VLP_OK;
    int threads = vlp_thread_count(requested);
    vlp_shells *shells = vlp_alloc_zero(1, sizeof *shells);
    if (!shells) return vlp_fail_memory("distance shells");
    int64_t nodes = skeleton->nodes;
    shells->nodes = skeleton->nodes;
    shells->limit = limit;
    shells->counts = vlp_alloc_zero((size_t)nodes, (size_t)(limit + 1) * sizeof *shells->counts);
    shells->near = vlp_alloc_zero((size_t)nodes, 1);
    shells->near_offset = vlp_alloc_zero((size_t)nodes + 1, sizeof *shells->near_offset);
    if (!shells->counts || !shells->near || !shells->near_offset) {
        status = vlp_fail_memory("distance shells");
        goto out;
    }
    /* The first shells are always kept; the rest of the budget is for lists. */
    int64_t fixed = vlp_shells_bytes(shells) + skeleton->offset[nodes] * (int64_t)sizeof(int32_t);
    int64_t matrix = nodes * vlp_shells_stride(shells->nodes);
    shells->exact = fixed + matrix <= memory_budget;
    int64_t spare = memory_budget - fixed - (shells->exact ? matrix : 0);
    int64_t maximum = spare > 0 && nodes > 0 ? spare / (nodes * (int64_t)sizeof(int32_t)) : 0;
    if (maximum > NEAR_LIST_LIMIT) maximum = NEAR_LIST_LIMIT;
    if (shells->exact) VLP_CHECK(collect_exact(shells, skeleton, threads, observer));
    VLP_CHECK(collect_near(shells, skeleton, maximum, threads, observer));
    if (!shells->exact)
        vlp_log(
            observer,
            "distances of all pairs need %lld MiB, the budget is %lld: near shells are exact, the rest "
            "is one shell",
            (long long)((fixed + matrix) >> 20) + 1, (long long)(memory_budget >> 20));
out:
    if (status != VLP_OK) {
        vlp_shells_free(shells);
        return status;
    }
    *out = shells;
    return VLP_OK;
}

void vlp_shells_free(vlp_shells *shells) {
    if (!shells) return;
    vlp_free(shells->matrix);
    vlp_free(shells->counts);
    vlp_free(shells->near);
    vlp_free(shells->near_offset);
    vlp_free(shells->near_member);
    vlp_free(shells);
}

int64_t vlp_shells_bytes(const vlp_shells *shells) {
    int64_t nodes = shells->nodes, members = shells->near_offset[nodes];
    return (shells->matrix ? nodes * vlp_shells_stride(shells->nodes) : 0) +
           nodes * (shells->limit + 1) * (int64_t)sizeof(int32_t) + nodes +
           (nodes + 1) * (int64_t)sizeof(int64_t) + members * (int64_t)sizeof(int32_t);
}

const int32_t *vlp_shells_members(const vlp_shells *shells, int32_t node, int32_t distance,
                                  int32_t *count) {
    assert(distance >= 1 && distance <= shells->near[node]);
    const int32_t *counts = shells->counts + (int64_t)node * (shells->limit + 1);
    const int32_t *members = shells->near_member + shells->near_offset[node];
    for (int32_t d = 1; d < distance; d++) members += counts[d];
    *count = counts[distance];
    return members;
}

int32_t vlp_shells_distance(const vlp_shells *shells, int32_t from, int32_t to) {
    if (shells->matrix)
        return shells->matrix[from * vlp_shells_stride(shells->nodes) + to / 2] >> (to % 2 * 4) & 15;
    if (from == to) return 0;
    for (int32_t d = 1; d <= shells->near[from]; d++) {
        int32_t count;
        const int32_t *members = vlp_shells_members(shells, from, d, &count);
        if (bsearch(&to, members, (size_t)count, sizeof *members, compare_ids)) return d;
    }
    return shells->limit + 1;
}
