/* What each key's graph is without, which entities it reaches, which of their states are needed, and the
 * rows these get: 32 keys at a time, a bit each. */
#include <cub/block/block_scan.cuh>

#include "compute/cuda/paths.h"

/* ---- Edges that are out -------------------------------------------------------------------------- */

/* Both edges of a slot of a node. */
__device__ static void take_out(const path_work &work, int32_t node, int32_t at, uint32_t keys) {
    path_slot slot = work.graph.slots[at];
    atomicOr(work.out + at, keys);
    atomicOr(work.out + work.graph.begin[slot.node] + slot.position, keys);
    atomicOr(work.touched + node, keys);
    atomicOr(work.touched + slot.node, keys);
}

/* One block per key: marks its answers, and takes out what is hidden. */
__global__ static void hide(path_work work, vlp_path_graph graph, const uint8_t *hidden,
                            vlp_path_hiding hiding) {
    path_key key = work.key[blockIdx.x];
    uint32_t bit = 1u << blockIdx.x;
    int32_t begin = work.graph.begin[key.head];
    int32_t first = begin + static_cast<int32_t>(key.answer - graph.offset[work.graph.entity[key.head]]);
    for (int32_t i = threadIdx.x; i < key.answers; i += blockDim.x) {
        int32_t answer = work.graph.slots[first + i].node;
        atomicOr(work.known + answer, bit);
        if (!hidden[key.hidden + i]) continue;
        atomicOr(work.hidden + answer, bit);
        if (hiding == VLP_PATH_HIDE_EDGE) take_out(work, key.head, first + i, bit);
    }
    if (hiding != VLP_PATH_HIDE_PAIR) return;
    __syncthreads();
    for (int32_t at = begin + threadIdx.x; at < work.graph.begin[key.head + 1]; at += blockDim.x)
        if (__ldcg(work.hidden + work.graph.slots[at].node) & bit) take_out(work, key.head, at, bit);
}

/* Choices of 128 items for all keys, lane by lane: words[i] of lane b is that of item 32 i + b, a bit
 * for each key. */
__device__ static void choose_items(uint32_t words[4], const path_work &work, uint32_t stream,
                                    uint32_t group, uint32_t share) {
    int lane = threadIdx.x % 32;
    vlp_random4 mine = {{0, 0, 0, 0}};
    if (lane < work.keys) mine = vlp_path_choices(work.key[lane].seed, stream, group, share);
#pragma unroll
    for (int i = 0; i < 4; i++)
        for (int b = 0; b < 32; b++) {
            uint32_t word = __ballot_sync(ALL_LANES, mine.v[i] >> b & 1);
            if (lane == b) words[i] = word;
        }
}

/* One warp per 128 triples. */
__global__ static void drop(path_work work, uint32_t share) {
    int64_t group = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (128 * group >= work.graph.triple_count) return;
    uint32_t words[4];
    choose_items(words, work, VLP_STREAM_PATH_DROPPED, static_cast<uint32_t>(group), share);
    for (int i = 0; i < 4; i++) {
        int64_t triple = 128 * group + 32 * i + threadIdx.x % 32;
        if (triple >= work.graph.triple_count) continue;
        int2 both = work.graph.triples[triple];
        work.out[both.x] = words[i];
        work.out[both.y] = words[i];
    }
}

static void clear_marks(vlp_compute *compute, const path_work *work) {
    /* `out` to the heads' level of `hops` are next to each other. */
    char *begin = reinterpret_cast<char *>(work->out);
    char *end = reinterpret_cast<char *>(work->hops + work->graph.entities);
    cuda_note(compute, cudaMemsetAsync(begin, 0, static_cast<size_t>(end - begin), compute->stream),
              "clearing memory");
}

void cuda_path_hide(vlp_compute *compute, const path_work *work, const vlp_path_graph *graph,
                    const uint8_t *hidden, const vlp_path_options *options) {
    uint32_t share = vlp_path_share(options->drop);
    clear_marks(compute, work);
    if (share > 0) {
        size_t bytes = static_cast<size_t>(work->graph.entities) * sizeof *work->touched;
        LAUNCH(compute, drop, cuda_blocks(work->graph.triple_count, 128 * PATH_THREADS / 32),
               PATH_THREADS, 0, *work, share);
        cuda_note(compute, cudaMemsetAsync(work->touched, 0xff, bytes, compute->stream), "marking");
    }
    LAUNCH(compute, hide, static_cast<unsigned>(work->keys), PATH_THREADS, 0, *work, *graph, hidden,
           options->hiding);
}

__global__ static void remove_listed(path_work work, const int64_t *offset, const int32_t *removed) {
    uint32_t bit = 1u << blockIdx.x;
    for (int64_t i = offset[blockIdx.x] + threadIdx.x; i < offset[blockIdx.x + 1]; i += blockDim.x) {
        int2 both = work.graph.triples[removed[i]];
        take_out(work, work.graph.slots[both.y].node, both.x, bit);
    }
}

void cuda_path_remove(vlp_compute *compute, const path_work *work, const vlp_path_queries *queries,
                      int32_t first) {
    clear_marks(compute, work);
    if (!queries->removed_offset) return;
    LAUNCH(compute, remove_listed, static_cast<unsigned>(work->keys), 64, 0, *work,
           queries->removed_offset + first, queries->removed);
}

/* ---- The search ---------------------------------------------------------------------------------- */

__global__ static void start_search(path_work work, int64_t limit) {
    path_key key = work.key[threadIdx.x];
    work.left[threadIdx.x] = limit;
    atomicOr(work.hops + key.head, 1u << threadIdx.x);
}

/* Of some slots of a row, `step` apart: the keys of neighbours, edges that are out apart. */
__device__ static uint32_t union_of(const uint32_t *keys, const path_work &work, int32_t node,
                                    int32_t first, int32_t step) {
    bool check = work.touched[node] != 0;
    uint32_t all = 0;
    for (int32_t at = work.graph.begin[node] + first; at < work.graph.begin[node + 1]; at += step)
        all |= keys[work.graph.slots[at].node] & (check ? ~work.out[at] : ~0u);
    return all;
}

enum { SEARCH_LANES = 8 }; /* per node that is no hub */

/* next = the keys of a node and its neighbours, within `limit` (NULL: all). One block per hub, then
 * eight lanes per node. */
__global__ static void expand(uint32_t *next, const uint32_t *keys, const uint32_t *limit,
                              path_work work) {
    int32_t hubs = work.graph.hubs, block = static_cast<int32_t>(blockIdx.x), thread = threadIdx.x;
    if (block < hubs) {
        __shared__ uint32_t parts[32];
        uint32_t all = __reduce_or_sync(ALL_LANES, union_of(keys, work, block, thread, PATH_THREADS));
        if (thread % 32 == 0) parts[thread / 32] = all;
        __syncthreads();
        if (thread > 0) return;
        for (int i = 1; i < PATH_THREADS / 32; i++) all |= parts[i];
        next[block] = (all | keys[block]) & (limit ? limit[block] : ~0u);
        return;
    }
    int32_t node = hubs + (block - hubs) * (PATH_THREADS / SEARCH_LANES) + thread / SEARCH_LANES;
    uint32_t all = 0;
    if (node < work.graph.entities)
        all = union_of(keys, work, node, thread % SEARCH_LANES, SEARCH_LANES);
    for (int offset = SEARCH_LANES / 2; offset > 0; offset /= 2)
        all |= __shfl_xor_sync(ALL_LANES, all, offset);
    if (node < work.graph.entities && thread % SEARCH_LANES == 0)
        next[node] = (all | keys[node]) & (limit ? limit[node] : ~0u);
}

static void launch_expand(vlp_compute *compute, uint32_t *next, const uint32_t *keys,
                          const uint32_t *limit, const path_work *work) {
    int64_t others = work->graph.entities - work->graph.hubs;
    unsigned blocks =
        static_cast<unsigned>(work->graph.hubs) + cuda_blocks(others, PATH_THREADS / SEARCH_LANES);
    LAUNCH(compute, expand, blocks, PATH_THREADS, 0, next, keys, limit, *work);
}

/* One block per key: of the nodes that are new in `reached`, the first whose edges fit are added to
 * next. Nodes are in the order in which a limit takes them. */
enum { LIMIT_THREADS = 512 };
__global__ static void limit_level(uint32_t *next, const uint32_t *before, const uint32_t *reached,
                                   path_work work) {
    using Scan = cub::BlockScan<int64_t, LIMIT_THREADS>;
    __shared__ typename Scan::TempStorage storage;
    uint32_t bit = 1u << blockIdx.x;
    int64_t left = work.left[blockIdx.x], used = 0;
    if (left < 0) return;
    bool full = false;
    for (int32_t start = 0; start < work.graph.entities && !full; start += LIMIT_THREADS) {
        int32_t node = start + static_cast<int32_t>(threadIdx.x);
        bool fresh = node < work.graph.entities && (reached[node] & ~before[node] & bit);
        int64_t degree = fresh ? work.graph.begin[node + 1] - work.graph.begin[node] : 0, sum, total;
        Scan(storage).InclusiveSum(degree, sum, total);
        bool fits = used + sum <= left;
        if (fresh && fits) atomicOr(next + node, bit);
        full = __syncthreads_or(fresh && !fits);
        used += total;
    }
    if (threadIdx.x == 0) work.left[blockIdx.x] = full ? -1 : left - used;
}

static void search(vlp_compute *compute, const path_work *work, const vlp_path_form *form) {
    int32_t entities = work->graph.entities, levels = form->reached_only ? form->layers : 1;
    bool limited = form->reached_only && form->edge_limit > 0;
    LAUNCH(compute, start_search, 1, static_cast<unsigned>(work->keys), 0, *work, form->edge_limit);
    for (int32_t level = 1; level <= levels; level++) {
        uint32_t *next = work->hops + static_cast<int64_t>(level) * entities, *before = next - entities;
        launch_expand(compute, limited ? work->spare : next, before, nullptr, work);
        if (!limited) continue;
        cuda_note(compute,
                  cudaMemcpyAsync(next, before, static_cast<size_t>(entities) * sizeof *next,
                                  cudaMemcpyDeviceToDevice, compute->stream),
                  "copying");
        LAUNCH(compute, limit_level, static_cast<unsigned>(work->keys), LIMIT_THREADS, 0, next, before,
               work->spare, *work);
    }
}

/* ---- What candidates depend on ------------------------------------------------------------------- */

/* One warp per 128 entities. */
__global__ static void choose_candidates(uint32_t *candidates, const uint32_t *near_hops,
                                         const uint32_t *reached, path_work work, uint32_t share) {
    int64_t group = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (128 * group >= work.graph.entities) return;
    uint32_t words[4], all = work.keys < 32 ? (1u << work.keys) - 1 : ~0u;
    choose_items(words, work, VLP_STREAM_PATH_CANDIDATES, static_cast<uint32_t>(group), share);
    for (int i = 0; i < 4; i++) {
        int64_t entity = 128 * group + 32 * i + threadIdx.x % 32;
        if (entity >= work.graph.entities) continue;
        int32_t node = work.graph.node[entity];
        uint32_t wanted = words[i] | work.known[node] | (near_hops ? near_hops[node] : 0);
        candidates[node] = wanted & (reached ? reached[node] : all);
    }
}

/* The entities within `near` hops of each key; NULL: none. */
static const uint32_t *find_near(vlp_compute *compute, path_work *work, const vlp_path_form *form,
                                 int32_t near) {
    int64_t entities = work->graph.entities;
    if (near < 0) return nullptr;
    if (form->reached_only) return work->hops + (near < form->layers ? near : form->layers) * entities;
    if (near < 2) return work->hops + near * entities;
    const uint32_t *from = work->hops + entities;
    for (int32_t hop = 2; hop <= near; hop++) {
        uint32_t *to = hop % 2 == near % 2 ? work->near_hops : work->spare;
        launch_expand(compute, to, from, nullptr, work);
        from = to;
    }
    return from;
}

__global__ static void fill_words(uint32_t *to, uint32_t word, int64_t count) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) to[i] = word;
}

/* Sets work->active, levels. */
static void find_active(vlp_compute *compute, path_work *work, const vlp_path_form *form,
                        const path_scope *scope) {
    int64_t entities = work->graph.entities;
    uint32_t all = work->keys < 32 ? (1u << work->keys) - 1 : ~0u;
    work->levels = form->layers + 1;
    work->reached = form->reached_only ? work->hops + form->layers * entities : nullptr;
    if (scope->all && form->reached_only) {
        work->active = work->hops;
        return;
    }
    if (scope->all) {
        work->levels = form->layers > 1 ? 3 : 2; /* 0, those between, the last */
        cuda_note(compute,
                  cudaMemcpyAsync(work->active, work->hops,
                                  static_cast<size_t>(entities) * sizeof *work->hops,
                                  cudaMemcpyDeviceToDevice, compute->stream),
                  "copying");
        int64_t others = (work->levels - 1) * entities;
        LAUNCH(compute, fill_words, cuda_blocks(others, PATH_THREADS), PATH_THREADS, 0,
               work->active + entities, all, others);
        return;
    }
    work->near_hops = const_cast<uint32_t *>(find_near(compute, work, form, scope->near));
    uint32_t *last = work->active + form->layers * entities;
    LAUNCH(compute, choose_candidates, cuda_blocks(entities, 128 * PATH_THREADS / 32), PATH_THREADS, 0,
           last, work->near_hops, work->reached, *work, scope->share);
    for (int32_t l = form->layers - 1; l >= 0; l--) {
        bool bounded = form->reached_only || l == 0;
        launch_expand(compute, work->active + l * entities, work->active + (l + 1) * entities,
                      bounded ? work->hops + l * entities : nullptr, work);
    }
}

/* ---- Rows ---------------------------------------------------------------------------------------- */

enum { SITE_THREADS = 512 };

/* The keys of a site with a row, and its octet and node. */
__device__ static uint32_t site_keys(const path_work &work, const uint32_t *active, int64_t site,
                                     int32_t *octet, int32_t *node) {
    if (site >= path_sites(work)) return 0;
    *octet = static_cast<int32_t>(site / work.graph.entities);
    *node = static_cast<int32_t>(site % work.graph.entities);
    return active[*node] >> (PATH_OCTET * *octet) & 0xff;
}

/* Sites that are listed above, rows below. */
__device__ static uint64_t site_count(uint32_t keys, bool listed) {
    return static_cast<uint64_t>(listed) << 32 | static_cast<uint64_t>(__popc(keys));
}

__global__ static void count_sites(path_work work) {
    __shared__ uint64_t shared[32];
    int32_t octet, node = 0, level = static_cast<int32_t>(blockIdx.y);
    int64_t site = static_cast<int64_t>(blockIdx.x) * SITE_THREADS + threadIdx.x;
    uint32_t keys = site_keys(work, work.active + static_cast<int64_t>(level) * work.graph.entities,
                              site, &octet, &node);
    uint64_t sum = block_sum(site_count(keys, keys && node >= work.graph.hubs), shared);
    if (threadIdx.x == 0) work.site_sums[level * gridDim.x + blockIdx.x] = sum;
}

__global__ static void place_sites(path_work work) {
    using Scan = cub::BlockScan<uint64_t, SITE_THREADS>;
    __shared__ typename Scan::TempStorage storage;
    __shared__ uint64_t shared[32];
    int32_t octet = 0, node = 0, level = static_cast<int32_t>(blockIdx.y);
    int64_t site = static_cast<int64_t>(blockIdx.x) * SITE_THREADS + threadIdx.x;
    int64_t sites = path_sites(work);
    uint64_t before = 0, at, total;
    for (unsigned i = threadIdx.x; i < blockIdx.x; i += SITE_THREADS)
        before += work.site_sums[level * gridDim.x + i];
    before = block_sum(before, shared);
    uint32_t keys = site_keys(work, work.active + static_cast<int64_t>(level) * work.graph.entities,
                              site, &octet, &node);
    bool listed = keys && node >= work.graph.hubs;
    Scan(storage).ExclusiveSum(site_count(keys, listed), at, total);
    at += before;
    if (site >= sites) return;
    uint32_t row = static_cast<uint32_t>(at), place = static_cast<uint32_t>(at >> 32);
    work.sites[level * sites + site] = make_uint2(keys | keys << PATH_OCTET, row);
    if (listed)
        work.list[level * sites + place] = static_cast<uint32_t>(node) | static_cast<uint32_t>(octet)
                                                                             << 30;
    for (uint32_t left = keys; left; left &= left - 1) {
        uint32_t key =
            static_cast<uint32_t>(octet) * PATH_OCTET + static_cast<uint32_t>(__ffs(left) - 1);
        work.rows[level * work.capacity + row++] = static_cast<uint32_t>(node) | key << PATH_NODE_BITS;
    }
    if (site + 1 == sites)
        work.counts[level] = {static_cast<int32_t>(row), static_cast<int32_t>(place + listed)};
}

/* ---- The way back -------------------------------------------------------------------------------- */

/* One row of the grid per layer from pruned_from on. */
__global__ static void count_gradients(path_work work) {
    __shared__ uint64_t shared[32];
    int32_t octet, node = 0, layer = work.pruned_from + static_cast<int32_t>(blockIdx.y);
    int64_t site = static_cast<int64_t>(blockIdx.x) * SITE_THREADS + threadIdx.x;
    uint32_t keys = site_keys(work, path_back_active_of(work, layer), site, &octet, &node);
    uint64_t sum = block_sum(site_count(keys, keys && node >= work.graph.hubs), shared);
    if (threadIdx.x == 0) work.site_sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

/* As place_sites, for the rows that have a gradient: these keep their numbers. */
__global__ static void place_gradients(path_work work) {
    using Scan = cub::BlockScan<uint64_t, SITE_THREADS>;
    __shared__ typename Scan::TempStorage storage;
    __shared__ uint64_t shared[32];
    int32_t octet = 0, node = 0, layer = work.pruned_from + static_cast<int32_t>(blockIdx.y);
    int64_t site = static_cast<int64_t>(blockIdx.x) * SITE_THREADS + threadIdx.x;
    int64_t sites = path_sites(work);
    uint64_t before = 0, at, total;
    for (unsigned i = threadIdx.x; i < blockIdx.x; i += SITE_THREADS)
        before += work.site_sums[blockIdx.y * gridDim.x + i];
    before = block_sum(before, shared);
    uint32_t keys = site_keys(work, path_back_active_of(work, layer), site, &octet, &node);
    bool listed = keys && node >= work.graph.hubs;
    Scan(storage).ExclusiveSum(site_count(keys, listed), at, total);
    at += before;
    if (site >= sites) return;
    uint32_t place = static_cast<uint32_t>(at), list_place = static_cast<uint32_t>(at >> 32);
    uint2 *own = work.sites + path_level_number(work, layer) * sites + site;
    own->x = (own->x & 0xff) | keys << PATH_OCTET;
    if (listed)
        work.back_list[layer * sites + list_place] =
            static_cast<uint32_t>(node) | static_cast<uint32_t>(octet) << 30;
    for (uint32_t left = keys; left; left &= left - 1)
        work.back_rows[layer * work.capacity + place++] =
            static_cast<uint32_t>(path_row(*own, __ffs(left) - 1));
    if (site + 1 == sites)
        work.back_counts[layer] = {static_cast<int32_t>(place),
                                   static_cast<int32_t>(list_place + listed)};
}

void cuda_path_reach_back(vlp_compute *compute, const path_work *work) {
    int64_t entities = work->graph.entities;
    for (int32_t l = work->layers - 1; l >= work->pruned_from; l--)
        launch_expand(compute, work->back_active + l * entities, work->back_active + (l + 1) * entities,
                      work->active + l * entities, work);
    dim3 grid(cuda_blocks(path_sites(*work), SITE_THREADS),
              static_cast<unsigned>(work->layers + 1 - work->pruned_from));
    LAUNCH(compute, count_gradients, grid, SITE_THREADS, 0, *work);
    LAUNCH(compute, place_gradients, grid, SITE_THREADS, 0, *work);
}

void cuda_path_reach(vlp_compute *compute, path_work *work, const vlp_path_form *form,
                     const path_scope *scope) {
    work->layers_alike = scope->all && !form->reached_only;
    work->dense = work->layers_alike && work->keys % PATH_OCTET == 0;
    search(compute, work, form);
    find_active(compute, work, form, scope);
    dim3 grid(cuda_blocks(path_sites(*work), SITE_THREADS), static_cast<unsigned>(work->levels));
    LAUNCH(compute, count_sites, grid, SITE_THREADS, 0, *work);
    LAUNCH(compute, place_sites, grid, SITE_THREADS, 0, *work);
}
