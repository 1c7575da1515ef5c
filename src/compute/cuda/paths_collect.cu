/* From the gradients of a layer's messages to those of its states and relation weights: a team walks the
 * slots of a source's row, as the messages it sent. What slots of one segment have in common, x and w,
 * is multiplied once. */
#include "compute/cuda/paths_team.h"

/* How slots are walked: blocks per multiprocessor, and slots that are loaded before the first is used.
 */
template <class T, bool DENSE> struct collect_tuning {
    static constexpr int BLOCKS = sizeof(T) == 4 ? 2 : DENSE ? 3 : 4;
    static constexpr int AHEAD = sizeof(T) == 4 || DENSE ? 2 : 1;
};

template <class T> struct collect_operands {
    const T *x, *w;                /* of the layer */
    const T *gradients, *extremes; /* of the layer's messages */
    const uint16_t *hits;
    T *partial;
    path_level sources, targets;
};

template <class T>
__device__ static collect_operands<T> operands_of(const path_work &work, int32_t layer) {
    collect_operands<T> out;
    out.x = static_cast<const T *>(work.x) + layer * work.capacity * work.dim;
    out.w = static_cast<const T *>(work.weights) +
            static_cast<int64_t>(layer) * work.octets * work.graph.relations * PATH_OCTET * work.dim;
    out.gradients = static_cast<const T *>(work.gradients);
    out.extremes = static_cast<const T *>(work.extremes);
    out.hits = work.hits + static_cast<int64_t>(layer) * work.octets * work.graph.slot_count *
                               PATH_OCTET * (work.dim / 8);
    out.partial = static_cast<T *>(work.partial);
    out.sources = path_back_level_of(work, layer);
    out.targets = path_back_level_of(work, layer + 1);
    return out;
}

/* What a message received at its target. */
template <class T> struct arrival {
    eight<T> constant, slope; /* g1, g2 */
    eight<T> most, least;     /* of the maximum and the minimum, where it was that */
    uint32_t hits;
    int32_t segment, relation; /* of the slot */
};

template <class T, bool CHECK, bool DENSE>
__device__ static arrival<T> load_arrival(const path_work &work, const collect_operands<T> &in,
                                          const path_thread &at, int32_t slot_at) {
    int32_t parts = work.dim / 8;
    int64_t slots = static_cast<int64_t>(at.octet) * work.graph.slot_count + slot_at;
    path_slot slot = work.graph.slots[slot_at];
    uint32_t hits = __ldcs(in.hits + (slots * PATH_OCTET + at.key) * parts + at.part);
    arrival<T> out = {zero_eight<T>(), zero_eight<T>(), zero_eight<T>(), zero_eight<T>(), 0,
                      slot.segment,    slot.relation};
    if (CHECK && (work.out[slot_at] & at.bit)) return out;
    int64_t row = static_cast<int64_t>(at.octet) * work.graph.entities + slot.node;
    if (DENSE) {
        row = row * PATH_OCTET + at.key;
    } else {
        uint2 site = in.targets.sites[row];
        if (at.row < 0 || !path_has_gradient(site, at.key)) return out;
        row = path_row(site, at.key);
    }
    int64_t place = 16 * (row * parts + at.part);
    out.hits = hits;
    out.constant = load_eight(in.gradients + place);
    out.slope = load_eight(in.gradients + place + 8);
    if (hits & 255u) out.most = load_eight(in.extremes + place);
    if (hits >> 8) out.least = load_eight(in.extremes + place + 8);
    return out;
}

/* Adds the gradients of the extremes that a message was. */
template <class T> __device__ static void add_extremes(float (&to)[8], const arrival<T> &from) {
    if (from.hits & 255u) {
        float most[8];
        unpack(most, from.most);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (from.hits >> i & 1) to[i] += most[i];
    }
    if (from.hits >> 8) {
        float least[8];
        unpack(least, from.least);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (from.hits >> (8 + i) & 1) to[i] += least[i];
    }
}

/* Sums over the messages of a segment. */
struct segment_sums {
    float constant[8], slope[8];
};

/* The end of a segment: its part of the state's gradient, and of the relation's weights. */
template <class T>
__device__ static void end_segment(float (&state)[8], segment_sums *sums, const path_work &work,
                                   const collect_operands<T> &in, const path_thread &at,
                                   const eight<T> &packed, const arrival<T> &slot) {
    int64_t row =
        (static_cast<int64_t>(at.octet) * work.graph.relations + slot.relation) * PATH_OCTET + at.key;
    int64_t place =
        (static_cast<int64_t>(at.octet) * work.graph.segments + slot.segment) * PATH_OCTET + at.key;
    float x[8], w[8], weight[8];
    unpack(x, packed);
    unpack(w, load_eight(in.w + row * work.dim + 8 * at.part));
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float change = __fmaf_rn(x[i] * w[i], sums->slope[i], sums->constant[i]);
        state[i] = __fmaf_rn(change, w[i], state[i]);
        weight[i] = change * x[i];
    }
    stream_eight(in.partial + place * work.dim + 8 * at.part, weight);
    *sums = {};
}

template <class T>
__device__ static void add_arrival(float (&state)[8], segment_sums *sums, const path_work &work,
                                   const collect_operands<T> &in, const path_thread &at,
                                   const eight<T> &x, const arrival<T> &from) {
    float constant[8], slope[8];
    unpack(constant, from.constant);
    unpack(slope, from.slope);
#pragma unroll
    for (int i = 0; i < 8; i++) sums->constant[i] += constant[i], sums->slope[i] += slope[i];
    add_extremes(sums->constant, from);
    if (from.segment >= 0 && at.row >= 0) end_segment(state, sums, work, in, at, x, from);
}

template <class T, bool CHECK, bool DENSE>
__device__ static void walk(float (&state)[8], const path_work &work, const collect_operands<T> &in,
                            const path_thread &at, const eight<T> &x) {
    constexpr int AHEAD = collect_tuning<T, DENSE>::AHEAD;
    segment_sums sums = {};
    int32_t slot = at.begin;
    for (; slot + AHEAD <= at.end; slot += AHEAD) {
        arrival<T> next[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) next[i] = load_arrival<T, CHECK, DENSE>(work, in, at, slot + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) add_arrival(state, &sums, work, in, at, x, next[i]);
    }
    for (; slot < at.end; slot++)
        add_arrival(state, &sums, work, in, at, x, load_arrival<T, CHECK, DENSE>(work, in, at, slot));
}

template <class T>
__device__ static eight<T> load_state(const path_work &work, const collect_operands<T> &in,
                                      const path_thread &at) {
    if (at.row < 0) return zero_eight<T>();
    return load_eight(in.x + static_cast<int64_t>(at.row) * work.dim + 8 * at.part);
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
template <class T, bool DENSE>
__global__ static void __launch_bounds__(PATH_THREADS, collect_tuning<T, DENSE>::BLOCKS)
    collect_rows(path_work work, int32_t layer) {
    path_thread at = path_thread_of(work.dim);
    if (at.team >= at.teams) return;
    collect_operands<T> in = operands_of<T>(work, layer);
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
        eight<T> x = load_state(work, in, at);
        if (at.check)
            walk<T, true, DENSE>(state, work, in, at, x);
        else
            walk<T, false, DENSE>(state, work, in, at, x);
        if (at.row < 0) continue;
        if (at.piece < 0)
            store_state(work, in, at, state);
        else
            store_eight(path_hub_sums(work, at, at.piece, 0), state);
    }
}

/* One team per site of a hub. */
template <class T>
__global__ static void __launch_bounds__(PATH_THREADS) collect_hubs(path_work work, int32_t layer) {
    path_thread at = path_thread_of(work.dim);
    int32_t site = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    if (at.team >= at.teams || site >= work.octets * work.graph.hubs) return;
    collect_operands<T> in = operands_of<T>(work, layer);
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
            eight<T> next[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                int64_t place = static_cast<int64_t>(octet) * work.graph.segments + first + k;
                bool in = first + k < range.y && (active[work.graph.segment_node[first + k]] & bit);
                next[k] = zero_eight<T>();
                if (in)
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
__global__ static void message_factors(float *out, path_work work, vlp_path_graph graph, int32_t layer) {
    int64_t slot_at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot_at >= work.graph.slot_count) return;
    collect_operands<T> in = operands_of<T>(work, layer);
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
        arrival<T> from = load_arrival<T, true, false>(work, in, at, static_cast<int32_t>(slot_at));
        float constant[8], slope[8], x[8], w[8];
        unpack(constant, from.constant);
        unpack(slope, from.slope);
        add_extremes(constant, from);
        unpack(x, load_state(work, in, at));
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

template <class T> static void collect(vlp_compute *compute, const path_work *work, int32_t layer) {
    unsigned blocks = static_cast<unsigned>(compute->multiprocessors);
    int32_t teams = PATH_THREADS / (PATH_OCTET * (work->dim / 8));
    bool dense = work->dense && layer > 0;
    auto rows = dense ? collect_rows<T, true> : collect_rows<T, false>;
    unsigned each = dense ? collect_tuning<T, true>::BLOCKS : collect_tuning<T, false>::BLOCKS;
    LAUNCH(compute, rows, each * blocks, PATH_THREADS, 0, *work, layer);
    if (work->graph.hubs > 0)
        LAUNCH(compute, collect_hubs<T>, cuda_blocks(work->octets * work->graph.hubs, teams),
               PATH_THREADS, 0, *work, layer);
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
               layer);
    else
        LAUNCH(compute, message_factors<float>, blocks, PATH_THREADS, 0, out, *work, *graph, layer);
}
