/* From the gradients of a layer's messages to those of its states and relation weights: a team walks the
 * slots of a source's row, as the messages it sent. What slots of one segment have in common, x and w,
 * is multiplied once. */
#include "compute/cuda/paths_team.h"

/* How slots are walked: blocks per multiprocessor, and slots that are loaded at a time. More in flight
 * at the cost of occupancy: walks wait for the L2 cache. */
template <class T> struct collect_tuning {
    static constexpr int BLOCKS = 2, AHEAD = sizeof(T) == 4 ? 2 : 3;
};

/* Arrays of a layer. */
template <class T> struct collect_operands {
    path_level sources, targets;   /* rows of x; rows that received its messages */
    const T *x, *w;                /* w: of the first octet */
    const T *gradients, *extremes; /* of the messages */
    const uint16_t *hits;          /* of the first octet */
    T *partial;
};

template <class T> static collect_operands<T> operands_of(const path_work &work, int32_t layer) {
    int64_t octets = static_cast<int64_t>(layer) * work.octets;
    collect_operands<T> out;
    out.sources = path_back_level_of(work, layer);
    out.targets = path_back_level_of(work, layer + 1);
    out.x = static_cast<const T *>(work.x) + layer * work.capacity * work.dim;
    out.w = static_cast<const T *>(work.weights) + octets * work.graph.relations * PATH_OCTET * work.dim;
    out.gradients = static_cast<const T *>(work.gradients);
    out.extremes = static_cast<const T *>(work.extremes);
    out.hits = work.hits + octets * work.graph.slot_count * work.dim;
    out.partial = static_cast<T *>(work.partial);
    return out;
}

/* What is known of a slot before its target is read. */
struct slot_ahead {
    int32_t row;    /* of the target; -1: it gives no gradient */
    uint32_t flags; /* hits, and whether a segment ends here */
};

constexpr uint32_t ENDS_SEGMENT = 1u << 16;

/* slot, hits, out_of: of the slot; sites: of the targets of the thread's octet; first: the octet's first
 * row, where all are there. */
template <bool CHECK, bool DENSE>
__device__ static slot_ahead look_ahead(const path_slot *slots, const uint16_t *hits,
                                        const uint32_t *out_of, const uint2 *sites, int32_t first,
                                        const path_thread &at) {
    path_slot slot = *slots;
    slot_ahead out = {-1, __ldcs(hits)};
    if (slot.segment >= 0) out.flags |= ENDS_SEGMENT;
    if (CHECK && (*out_of & at.bit)) return out;
    if (DENSE) {
        out.row = first + slot.node * PATH_OCTET + at.key;
    } else {
        uint2 target = sites[slot.node];
        if (at.row >= 0 && path_has_gradient(target, at.key)) out.row = path_row(target, at.key);
    }
    return out;
}

/* What a message received at its target. */
template <class T> struct arrival {
    eight<T> constant, slope; /* g1, g2 */
    eight<T> most, least;     /* of the maximum and the minimum, set where it was that */
    uint32_t flags;           /* as in slot_ahead */
};

/* gradients, extremes: of the thread's part. ALWAYS: the target gives a gradient. */
template <class T, bool ALWAYS>
__device__ static void load_arrival(arrival<T> *out, const T *gradients, const T *extremes, int32_t dim,
                                    const slot_ahead &from) {
    if (!ALWAYS && from.row < 0) {
        out->constant = out->slope = zero_eight<T>();
        out->flags = from.flags & ENDS_SEGMENT;
        return;
    }
    int64_t place = static_cast<int64_t>(from.row) * (2 * dim);
    out->flags = from.flags;
    out->constant = load_eight(gradients + place);
    out->slope = load_eight(gradients + place + 8);
    if (from.flags & 0xffu) out->most = load_eight(extremes + place);
    if (from.flags & 0xff00u) out->least = load_eight(extremes + place + 8);
}

/* Adds the numbers that bits name. */
template <class T>
__device__ static void add_named(float (&to)[8], const eight<T> &from, uint32_t bits) {
    float values[8];
    unpack(values, from);
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (bits >> i & 1) to[i] += values[i];
}

/* Adds the gradients of the extremes that a message was. */
template <class T> __device__ static void add_extremes(float (&to)[8], const arrival<T> &from) {
    if (from.flags & 0xffu) add_named(to, from.most, from.flags);
    if (from.flags & 0xff00u) add_named(to, from.least, from.flags >> 8);
}

template <class T>
__device__ static eight<T> load_state(const collect_operands<T> &in, const path_thread &at,
                                      int32_t dim) {
    if (at.row < 0) return zero_eight<T>();
    return load_eight(in.x + static_cast<int64_t>(at.row) * dim + 8 * at.part);
}

/* Sums over the messages of a segment. */
struct segment_sums {
    float constant[8], slope[8];
};

/* The end of a segment: its part of the state's gradient, and of the relation's weights. w, partial: of
 * the thread's octet, key and part. */
template <class T>
__device__ static void end_segment(float (&state)[8], segment_sums *sums, const T *w_of, T *partial,
                                   int32_t stride, const eight<T> &packed, const path_slot &slot) {
    float x[8], w[8], weight[8];
    unpack(x, packed);
    unpack(w, load_eight(w_of + static_cast<int64_t>(slot.relation) * stride));
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float change = __fmaf_rn(x[i] * w[i], sums->slope[i], sums->constant[i]);
        state[i] = __fmaf_rn(change, w[i], state[i]);
        weight[i] = change * x[i];
    }
    stream_eight(partial + static_cast<int64_t>(slot.segment) * stride, weight);
    *sums = {};
}

template <class T> __device__ static void add_arrival(segment_sums *sums, const arrival<T> &from) {
    float constant[8], slope[8];
    unpack(constant, from.constant);
    unpack(slope, from.slope);
#pragma unroll
    for (int i = 0; i < 8; i++) sums->constant[i] += constant[i], sums->slope[i] += slope[i];
    add_extremes(sums->constant, from);
}

/* Reads up to AHEAD slots behind the last: arrays of slots have PATH_PADDING more. */
template <class T, bool CHECK, bool DENSE, int DIM>
__device__ static void walk(float (&state)[8], const path_work &work, const collect_operands<T> &in,
                            const path_thread &at) {
    constexpr int AHEAD = collect_tuning<T>::AHEAD;
    static_assert(AHEAD <= PATH_PADDING, "padding of slots");
    int32_t dim = path_dim<DIM>(work), count = at.end - at.begin, stride = PATH_OCTET * dim;
    int32_t first = at.octet * work.graph.entities * PATH_OCTET;
    int64_t octet = at.octet, column = at.key * dim + 8 * at.part;
    const path_slot *slots = path_hold(work.graph.slots + at.begin);
    const uint16_t *hits = path_hold(in.hits + (octet * work.graph.slot_count + at.begin) * dim +
                                     at.key * (dim / 8) + at.part);
    const uint32_t *out_of = CHECK ? path_hold(work.out + at.begin) : nullptr;
    const uint2 *sites = DENSE ? nullptr : path_hold(in.targets.sites + octet * work.graph.entities);
    const T *gradients = path_hold(in.gradients + 16 * at.part);
    const T *extremes = path_hold(in.extremes + 16 * at.part);
    const T *w = in.w + octet * work.graph.relations * stride + column;
    T *partial = in.partial + octet * work.graph.segments * stride + column;
    segment_sums sums = {};
    /* While gradients are on their way, it is found out where the next ones are. */
    slot_ahead next[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        next[i] = look_ahead<CHECK, DENSE>(slots + i, hits + i * dim, out_of + i, sites, first, at);
    for (int32_t slot = 0; slot < count; slot += AHEAD) {
        arrival<T> now[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (slot + i < count)
                load_arrival<T, DENSE && !CHECK>(&now[i], gradients, extremes, dim, next[i]);
        hits += AHEAD * dim;
        slots += AHEAD;
        if (CHECK) out_of += AHEAD;
        if (slot + AHEAD < count)
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                next[i] =
                    look_ahead<CHECK, DENSE>(slots + i, hits + i * dim, out_of + i, sites, first, at);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (slot + i >= count) continue;
            add_arrival(&sums, now[i]);
            if (now[i].flags & ENDS_SEGMENT && at.row >= 0)
                end_segment(state, &sums, w, partial, stride, load_state(in, at, dim), slots[i - AHEAD]);
        }
    }
}

/* With what the state's row gave to itself. */
template <class T>
__device__ static void store_state(const path_work &work, const collect_operands<T> &in,
                                   const path_thread &at, float (&state)[8]) {
    uint2 target = in.targets.sites[static_cast<int64_t>(at.octet) * work.graph.entities + at.node];
    if (path_has_gradient(target, at.key)) {
        float own[8];
        int64_t row = path_row(target, at.key);
        unpack(own, stream_load(work.own_grads + row * work.dim + 8 * at.part));
#pragma unroll
        for (int i = 0; i < 8; i++) state[i] += own[i];
    }
    stream_eight(work.state_grads + static_cast<int64_t>(at.row) * work.dim + 8 * at.part, state);
}

/* One team per unit: a site, or a piece of a hub's. */
template <class T, bool DENSE, int DIM>
__global__ static void __launch_bounds__(PATH_THREADS, collect_tuning<T>::BLOCKS)
    collect_rows(path_work work, collect_operands<T> in) {
    path_thread at = path_thread_of(path_dim<DIM>(work));
    if (at.team >= at.teams) return;
    int32_t units = path_units(work, in.sources), step = static_cast<int32_t>(gridDim.x) * at.teams;
    int32_t i = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    path_unit next = {};
    if (i < units) next = path_load_unit(work, in.sources, i);
    for (; i < units; i += step) {
        path_enter(&at, DENSE ? path_load_unit(work, in.sources, i) : next, true);
        /* Rows of sparse layers are short: the next one is loaded ahead. */
        if (!DENSE && i + step < units) next = path_load_unit(work, in.sources, i + step);
        if (!(at.site.x >> PATH_OCTET)) continue;
        float state[8] = {};
        if (at.check)
            walk<T, true, DENSE, DIM>(state, work, in, at);
        else
            walk<T, false, DENSE, DIM>(state, work, in, at);
        if (at.row < 0) continue;
        if (at.piece < 0)
            store_state(work, in, at, state);
        else
            store_eight(path_hub_sums(work, at, at.piece, 0), state);
    }
}

/* One team per site of a hub. */
template <class T>
__global__ static void __launch_bounds__(PATH_THREADS)
    collect_hubs(path_work work, collect_operands<T> in) {
    path_thread at = path_thread_of(work.dim);
    int32_t site = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    if (at.team >= at.teams || site >= work.octets * work.graph.hubs) return;
    path_enter(&at, path_unit_at(work, in.sources, site / work.graph.hubs, site % work.graph.hubs),
               true);
    if (at.row < 0) return;
    float state[8] = {};
#pragma unroll 4
    for (int32_t i = work.graph.hub_piece[at.node]; i < work.graph.hub_piece[at.node + 1]; i++) {
        float one[8];
        unpack(one, load_eight(path_hub_sums(work, at, at.octet * work.graph.pieces + i, 0)));
#pragma unroll
        for (int k = 0; k < 8; k++) state[k] += one[k];
    }
    store_state(work, in, at, state);
}

/* One team per octet and chunk. */
template <class T>
__global__ static void __launch_bounds__(PATH_THREADS) sum_segments(path_work work, int32_t layer) {
    path_thread at = path_thread_of(work.dim);
    if (at.team >= at.teams) return;
    const uint32_t *active = path_back_active_of(work, layer);
    const T *partial = static_cast<const T *>(work.partial);
    int32_t total = work.octets * work.graph.chunks;
    for (int32_t i = static_cast<int32_t>(blockIdx.x) * at.teams + at.team; i < total;
         i += static_cast<int32_t>(gridDim.x) * at.teams) {
        int32_t octet = i / work.graph.chunks;
        int2 range = work.graph.chunk[i % work.graph.chunks];
        uint32_t bit = 1u << (octet * PATH_OCTET + at.key);
        float sum[8] = {};
        constexpr int AHEAD = 8;
        for (int32_t first = range.x; first < range.y; first += AHEAD) {
            uint32_t keys[AHEAD], any = 0;
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                keys[k] = 0;
                if (first + k < range.y) keys[k] = active[work.graph.segment_node[first + k]];
                any |= keys[k];
            }
            if (!(any >> (octet * PATH_OCTET) & 0xff)) continue;
            eight<T> next[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                int64_t place = static_cast<int64_t>(octet) * work.graph.segments + first + k;
                next[k] = zero_eight<T>();
                if (keys[k] & bit)
                    next[k] =
                        stream_load(partial + (place * PATH_OCTET + at.key) * work.dim + 8 * at.part);
            }
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                float one[8];
                unpack(one, next[k]);
#pragma unroll
                for (int c = 0; c < 8; c++) sum[c] += one[c];
            }
        }
        int64_t row = (static_cast<int64_t>(layer) * total + i) * PATH_OCTET + at.key;
        store_eight(work.chunk_sums + row * work.dim + 8 * at.part, sum);
    }
}

/* ---- Factors of messages ------------------------------------------------------------------------- */

/* One thread per slot of a source's row; one key. */
template <class T>
__global__ static void message_factors(float *out, path_work work, vlp_path_graph graph,
                                       collect_operands<T> in) {
    int64_t slot_at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot_at >= work.graph.slot_count) return;
    path_slot slot = work.graph.slots[slot_at];
    int32_t reverse = work.graph.begin[slot.node] + slot.position;
    int32_t node = work.graph.slots[reverse].node;
    path_thread at = path_thread_of(work.dim);
    at.octet = at.key = 0;
    at.node = node;
    at.row = path_find_row(work, in.sources, 0, node);
    at.bit = 1;
    float sum = 0;
    for (at.part = 0; at.part < work.dim / 8; at.part++) {
        slot_ahead from =
            look_ahead<true, false>(work.graph.slots + slot_at, in.hits + slot_at * work.dim + at.part,
                                    work.out + slot_at, in.targets.sites, 0, at);
        if (from.row < 0) continue;
        const T *gradients = in.gradients + static_cast<int64_t>(from.row) * 2 * work.dim + 16 * at.part;
        const T *extremes = in.extremes + static_cast<int64_t>(from.row) * 2 * work.dim + 16 * at.part;
        float constant[8], slope[8], x[8], w[8];
        unpack(constant, load_eight(gradients));
        unpack(slope, load_eight(gradients + 8));
        add_named(constant, load_eight(extremes), from.flags);
        add_named(constant, load_eight(extremes + 8), from.flags >> 8);
        unpack(x, load_state(in, at, work.dim));
        unpack(w, load_eight(in.w + static_cast<int64_t>(slot.relation) * PATH_OCTET * work.dim +
                             8 * at.part));
        for (int i = 0; i < 8; i++) {
            float value = x[i] * w[i];
            sum += __fmaf_rn(value, slope[i], constant[i]) * value;
        }
    }
    out[graph.offset[work.graph.entity[slot.node]] + slot.position] = sum;
}

/* ---- Launches ------------------------------------------------------------------------------------ */

template <class T, bool DENSE> static auto rows_kernel(int32_t dim) {
    constexpr bool SMALL = sizeof(T) == 2;
    if (SMALL && dim == 32) return collect_rows < T, DENSE, SMALL ? 32 : 0 > ;
    if (SMALL && dim == 64) return collect_rows < T, DENSE, SMALL ? 64 : 0 > ;
    return collect_rows<T, DENSE, 0>;
}

template <class T> static void collect(vlp_compute *compute, const path_work *work, int32_t layer) {
    unsigned blocks = static_cast<unsigned>(compute->multiprocessors);
    int32_t teams = PATH_THREADS / (PATH_OCTET * (work->dim / 8));
    /* Where every target gives a gradient. */
    bool dense = work->dense && layer > 0 && layer + 1 < work->pruned_from;
    auto rows = dense ? rows_kernel<T, true>(work->dim) : rows_kernel<T, false>(work->dim);
    collect_operands<T> in = operands_of<T>(*work, layer);
    LAUNCH(compute, rows, collect_tuning<T>::BLOCKS * blocks, PATH_THREADS, 0, *work, in);
    if (work->graph.hubs > 0)
        LAUNCH(compute, collect_hubs<T>, cuda_blocks(work->octets * work->graph.hubs, teams),
               PATH_THREADS, 0, *work, in);
    LAUNCH(compute, sum_segments<T>, 8 * blocks, PATH_THREADS, 0, *work, layer);
}

void cuda_path_collect(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16) {
    bf16 ? collect<__nv_bfloat16>(compute, work, layer) : collect<float>(compute, work, layer);
}

void cuda_path_factors(vlp_compute *compute, float *out, const path_work *work,
                       const vlp_path_graph *graph, int32_t layer, bool bf16) {
    unsigned blocks = cuda_blocks(work->graph.slot_count, PATH_THREADS);
    if (blocks == 0) return;
    if (bf16)
        LAUNCH(compute, message_factors<__nv_bfloat16>, blocks, PATH_THREADS, 0, out, *work, *graph,
               operands_of<__nv_bfloat16>(*work, layer));
    else
        LAUNCH(compute, message_factors<float>, blocks, PATH_THREADS, 0, out, *work, *graph,
               operands_of<float>(*work, layer));
}
