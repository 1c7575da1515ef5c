/* Messages: their statistics at every row, and the way back to states and relation weights. A row of a
 * site is walked by a team of 8 dim / 8 threads, eight numbers of one key per thread; the row of a hub
 * by all teams of a block, piece by piece. */
#include "compute/cuda/paths_team.h"

/* ---- Extremes ------------------------------------------------------------------------------------ */

/* The largest and smallest message and, where TRACK, their slots: 1 .. 254 within a walk, 0 the
 * boundary, which keeps them when messages are equal to it.
 *
 * A product of two bf16 numbers has 16 significant bits: the slot fits below, and one comparison keeps
 * value and slot. There 255 is the boundary too, on the side where it wins over equal messages. */
template <class T, bool TRACK> struct extremes {
    static constexpr bool CODED = TRACK && sizeof(T) == 2;
    static constexpr int ENTRIES = TRACK && !CODED ? 8 : 1;
    float most[8], least[8];
    int32_t most_at[ENTRIES], least_at[ENTRIES];

    __device__ void start(const float (&boundary)[8]) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            most[i] = least[i] = boundary[i];
            if constexpr (CODED) {
                uint32_t bits = __float_as_uint(boundary[i]), size = bits & 0x7fffffffu;
                if (boundary[i] >= 0) most[i] = __uint_as_float(size | 255u);
                if (boundary[i] <= 0) least[i] = __uint_as_float(size | 0x800000ffu);
            }
            if constexpr (ENTRIES == 8) most_at[i] = least_at[i] = 0;
        }
    }

    __device__ void add(int i, float message, int32_t slot) {
        if constexpr (CODED) {
            float coded = __uint_as_float(__float_as_uint(message) | static_cast<uint32_t>(slot));
            most[i] = fmaxf(most[i], coded);
            least[i] = fminf(least[i], coded);
        } else if constexpr (TRACK) {
            if (message > most[i]) most[i] = message, most_at[i] = slot;
            if (message < least[i]) least[i] = message, least_at[i] = slot;
        } else {
            most[i] = fmaxf(most[i], message);
            least[i] = fminf(least[i], message);
        }
    }

    __device__ static float value(float coded) {
        return CODED ? __uint_as_float(__float_as_uint(coded) & ~255u) : coded;
    }
    __device__ static int32_t slot(float coded) {
        uint32_t code = __float_as_uint(coded) & 255u;
        return code == 255u ? 0 : static_cast<int32_t>(code);
    }
    __device__ int32_t most_slot(int i) const {
        if constexpr (CODED)
            return slot(most[i]);
        else
            return TRACK ? most_at[i] : 0;
    }
    __device__ int32_t least_slot(int i) const {
        if constexpr (CODED)
            return slot(least[i]);
        else
            return TRACK ? least_at[i] : 0;
    }
};

/* ---- Forward ------------------------------------------------------------------------------------- */

/* How slots are walked: blocks per multiprocessor, and messages that are loaded at a time. */
template <class T> struct aggregate_tuning {
    static constexpr int BLOCKS = sizeof(T) == 4 ? 2 : 4, AHEAD = sizeof(T) == 4 ? 2 : 1;
};

/* Arrays of a layer. */
template <class T> struct aggregate_operands {
    int32_t layer;
    path_level sources, targets; /* rows of x; rows that are computed */
    const T *x, *w;              /* w: of the first octet */
    T *features;
    int32_t *degree;
    float *scale;
    uint16_t *hits; /* of the first octet */
};

__host__ __device__ static uint16_t *hits_of_layer(const path_work &work, int32_t layer) {
    return work.hits + static_cast<int64_t>(layer) * work.octets * work.graph.slot_count * work.dim;
}

template <class T> static aggregate_operands<T> operands_of(const path_work &work, int32_t layer) {
    int64_t weights = static_cast<int64_t>(work.octets) * work.graph.relations * PATH_OCTET * work.dim;
    int64_t rows = work.keep ? layer * work.capacity : 0;
    aggregate_operands<T> out;
    out.layer = layer;
    out.sources = path_level_of(work, layer);
    out.targets = path_level_of(work, layer + 1);
    out.x = static_cast<const T *>(work.x) + path_kept(work, layer) * work.dim;
    out.w = static_cast<const T *>(work.weights) + layer * weights;
    out.features = static_cast<T *>(work.features) + rows * 4 * work.dim;
    out.degree = work.degree + rows;
    out.scale = work.scale + rows;
    out.hits = work.keep ? hits_of_layer(work, layer) : nullptr;
    return out;
}

/* What is known of a slot before the state of its source is read. */
struct edge_ahead {
    int2 edge;
    int32_t row; /* of the source, where rows are sparse; -1: none */
    bool out;    /* of the graph */
};

/* edges, out: of the slot; sites: of the thread's octet. */
template <bool CHECK, bool DENSE>
__device__ static edge_ahead look_ahead(const int2 *edges, const uint32_t *out_of, const uint2 *sites,
                                        const path_thread &at) {
    edge_ahead out = {*edges, 0, false};
    if (CHECK) out.out = *out_of & at.bit;
    if (DENSE) return out;
    uint2 site = sites[out.edge.x];
    out.row = at.row >= 0 && path_has_row(site, at.key) && !out.out ? path_row(site, at.key) : -1;
    return out;
}

/* The factors of a message. */
template <class T> struct message { eight<T> x, w; };

/* x, w: of the thread's octet, key and part. */
template <class T, bool CHECK, bool DENSE>
__device__ static message<T> load_message(const T *x, const T *w, const edge_ahead &from, int32_t dim) {
    int32_t stride = PATH_OCTET * dim;
    message<T> out = {zero_eight<T>(), zero_eight<T>()};
    if (DENSE) {
        out.w = load_eight(w + static_cast<int64_t>(from.edge.y) * stride);
        if (!CHECK || !from.out) out.x = load_eight(x + static_cast<int64_t>(from.edge.x) * stride);
    } else if (from.row >= 0) {
        out.x = load_eight(x + static_cast<int64_t>(from.row) * dim);
        out.w = load_eight(w + static_cast<int64_t>(from.edge.y) * stride);
    }
    return out;
}

__device__ static void product(float (&to)[8], const message<float> &from) {
    float x[8], w[8];
    unpack(x, from.x);
    unpack(w, from.w);
#pragma unroll
    for (int i = 0; i < 8; i++) to[i] = x[i] * w[i];
}

/* Rounded to bf16, two at a time. */
__device__ static void product(float (&to)[8], const message<__nv_bfloat16> &from) {
    eight<__nv_bfloat16> out;
    const __nv_bfloat162 *x = reinterpret_cast<const __nv_bfloat162 *>(&from.x);
    const __nv_bfloat162 *w = reinterpret_cast<const __nv_bfloat162 *>(&from.w);
#pragma unroll
    for (int i = 0; i < 4; i++) reinterpret_cast<__nv_bfloat162 *>(&out)[i] = __hmul2(x[i], w[i]);
    unpack(to, out);
}

/* Sums over the messages of a walk. */
struct sums {
    float sum[8], squares[8];
    int32_t out; /* edges that are out of the graph */
};

template <class T, bool TRACK, bool CHECK>
__device__ static void add_message(sums *to, extremes<T, TRACK> *best, const message<T> &from, bool out,
                                   int32_t slot) {
    float value[8];
    product(value, from);
    if (CHECK) to->out += out;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        to->sum[i] += value[i];
        to->squares[i] = __fmaf_rn(value[i], value[i], to->squares[i]);
        if (!CHECK || !out) best->add(i, value[i], slot);
    }
}

/* Reads up to AHEAD slots behind the last: arrays of slots have PATH_PADDING more. */
template <class T, bool TRACK, bool CHECK, bool DENSE, int DIM>
__device__ static void walk(sums *to, extremes<T, TRACK> *best, const path_work &work,
                            const aggregate_operands<T> &in, const path_thread &at) {
    constexpr int AHEAD = aggregate_tuning<T>::AHEAD;
    static_assert(AHEAD <= PATH_PADDING, "padding of slots");
    int32_t dim = path_dim<DIM>(work), column = 8 * at.part, count = at.end - at.begin;
    int64_t octet = at.octet, entities = work.graph.entities, stride = PATH_OCTET * dim;
    const uint2 *sites = DENSE ? nullptr : path_hold(in.sources.sites + octet * entities);
    const T *w = path_hold(in.w + octet * work.graph.relations * stride + at.key * dim + column);
    const T *x = path_hold(in.x + column + (DENSE ? octet * entities * stride + at.key * dim : 0));
    const int2 *edges = path_hold(work.graph.edges + at.begin);
    const uint32_t *out_of = CHECK ? path_hold(work.out + at.begin) : nullptr;
    /* While messages are on their way, it is found out where the next ones are. */
    edge_ahead next[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) next[i] = look_ahead<CHECK, DENSE>(edges + i, out_of + i, sites, at);
    for (int32_t slot = 0; slot < count; slot += AHEAD) {
        message<T> now[AHEAD];
        bool out[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (slot + i >= count) continue;
            now[i] = load_message<T, CHECK, DENSE>(x, w, next[i], dim);
            out[i] = next[i].out;
        }
        edges += AHEAD;
        out_of += AHEAD;
        if (slot + AHEAD < count)
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                next[i] = look_ahead<CHECK, DENSE>(edges + i, out_of + i, sites, at);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (slot + i < count) add_message<T, TRACK, CHECK>(to, best, now[i], out[i], slot + i + 1);
    }
}

/* x_0 of a row: q at the head entity, as states are rounded. */
template <class T>
__device__ static void load_boundary(float (&to)[8], const path_work &work, const path_thread &at) {
    int32_t key = at.octet * PATH_OCTET + at.key;
    bool head = at.row >= 0 && work.key[key].head == at.node;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float q = head ? work.query[key * work.dim + 8 * at.part + i] : 0.0f;
        to[i] = sizeof(T) == 2 ? __bfloat162float(__float2bfloat16_rn(q)) : q;
    }
}

/* The features of a row, from its sums and the values of its extremes. */
template <class T>
__device__ static void store_features(const path_work &work, const aggregate_operands<T> &in,
                                      const path_thread &at, const sums &all, const float (&most)[8],
                                      const float (&least)[8]) {
    int32_t degree = work.graph.begin[at.node + 1] - work.graph.begin[at.node] - all.out;
    float inverse = 1.0f / static_cast<float>(degree + 1), mean[8], deviation[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        mean[i] = all.sum[i] * inverse;
        float variance = __fmaf_rn(all.squares[i], inverse, -(mean[i] * mean[i]));
        deviation[i] = sqrtf(fmaxf(variance, VLP_PATH_LEAST_VARIANCE));
    }
    T *to = in.features + static_cast<int64_t>(at.row) * 4 * work.dim + 8 * at.part;
    store_eight(to, mean);
    store_eight(to + work.dim, most);
    store_eight(to + 2 * work.dim, least);
    store_eight(to + 3 * work.dim, deviation);
    if (at.part > 0) return;
    vlp_path_graph graph = {};
    graph.mean_log_degree = work.mean_log_degree;
    in.degree[at.row] = degree;
    in.scale[at.row] = vlp_path_class_scale(&graph, vlp_path_degree_class(degree));
}

/* Bits of the numbers whose maximum, and from bit 8 on minimum, is the message of a slot. */
__device__ static uint32_t hits_of(const int32_t (&most)[8], const int32_t (&least)[8], int32_t slot) {
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        bits |= most[i] == slot ? 1u << i : 0u;
        bits |= least[i] == slot ? 256u << i : 0u;
    }
    return bits;
}

/* Rows of fewer slots are told one slot at a time; in others a warp puts the hits of a window of slots
 * into shared memory first. */
enum { FEW_SLOTS = 8, HITS_AHEAD = 4, HIT_WINDOW = 64 };

/* The hits of a walk's slots, which are 1 .. count in most and least; hits: of the layer. All threads of
 * a team take part: every slot is written whole, so that nothing has to be cleared before. */
__device__ static void store_hits(const path_work &work, uint16_t *hits, const path_thread &at,
                                  const int32_t (&most)[8], const int32_t (&least)[8]) {
    __shared__ __align__(16) uint16_t tables[PATH_THREADS / 32][HIT_WINDOW][32];
    const int32_t *reverse = work.graph.reverse + at.begin;
    int32_t column = at.key * (work.dim / 8) + at.part, count = at.end - at.begin;
    uint16_t *to = hits + at.octet * work.graph.slot_count * work.dim;
    if (count < FEW_SLOTS || work.dim % 32 != 0) {
        for (int32_t slot = 0; slot < count; slot += HITS_AHEAD) {
            int32_t places[HITS_AHEAD];
#pragma unroll
            for (int i = 0; i < HITS_AHEAD; i++) places[i] = reverse[min(slot + i, count - 1)];
#pragma unroll
            for (int i = 0; i < HITS_AHEAD; i++)
                if (slot + i < count)
                    to[static_cast<int64_t>(places[i]) * work.dim + column] =
                        static_cast<uint16_t>(hits_of(most, least, slot + i + 1));
        }
        return;
    }
    int32_t lane = static_cast<int32_t>(threadIdx.x) % 32;
    uint16_t(*table)[32] = tables[threadIdx.x / 32];
    uint4 *chunks = reinterpret_cast<uint4 *>(table); /* four per slot */
    to += column - lane;
    for (int32_t base = 0; base < count; base += HIT_WINDOW) {
        int32_t here = min(count - base, static_cast<int32_t>(HIT_WINDOW));
        for (int32_t i = lane; i < 4 * here; i += 32) chunks[i] = make_uint4(0, 0, 0, 0);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            uint32_t high = static_cast<uint32_t>(most[i] - 1 - base);
            uint32_t low = static_cast<uint32_t>(least[i] - 1 - base);
            if (high < static_cast<uint32_t>(here)) table[high][lane] |= static_cast<uint16_t>(1u << i);
            if (low < static_cast<uint32_t>(here)) table[low][lane] |= static_cast<uint16_t>(256u << i);
        }
        __syncwarp();
        for (int32_t i = lane; i < 4 * here; i += 32) {
            int64_t place = reverse[base + i / 4];
            *reinterpret_cast<uint4 *>(to + place * work.dim + 8 * (i % 4)) = chunks[i];
        }
        __syncwarp();
    }
}

/* Tells whether the boundary of a head entity was an extreme. */
__device__ static void store_boundary_hits(const path_work &work, const path_thread &at, int32_t layer,
                                           const int32_t (&most)[8], const int32_t (&least)[8]) {
    int32_t key = at.octet * PATH_OCTET + at.key;
    if (work.key[key].head == at.node)
        work.boundary_hits[(layer * PATH_KEYS + key) * (work.dim / 8) + at.part] =
            static_cast<uint16_t>(hits_of(most, least, 0));
}

/* Whether a row's messages can differ from 0: in layer 0 those of the heads' neighbours. */
__device__ static bool has_messages(const path_work &work, const path_thread &at, int32_t layer) {
    if (layer > 0) return true;
    return work.hops[work.graph.entities + at.node] >> (PATH_OCTET * at.octet) & 0xff;
}

/* Edges that are out, where a row is not walked. */
__device__ static int32_t count_out(const path_work &work, const path_thread &at) {
    int32_t count = 0;
    for (int32_t slot = at.begin; at.check && slot < at.end; slot++)
        count += (work.out[slot] & at.bit) != 0;
    return count;
}

/* Of a piece of a hub: sums, extremes and, where their codes do not have them, the extremes' slots. */
template <class T, bool KEEP>
__device__ static void store_piece(const path_work &work, const path_thread &at, const sums &all,
                                   const extremes<T, KEEP> &best) {
    store_eight(path_hub_sums(work, at, at.piece, 0), all.sum);
    store_eight(path_hub_sums(work, at, at.piece, 1), all.squares);
    store_eight(path_hub_sums(work, at, at.piece, 2), best.most);
    store_eight(path_hub_sums(work, at, at.piece, 3), best.least);
    *path_hub_sums(work, at, at.piece, 6) = __int_as_float(all.out);
    if constexpr (extremes<T, KEEP>::ENTRIES == 8) {
        float most_at[8], least_at[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            most_at[i] = __int_as_float(best.most_at[i]);
            least_at[i] = __int_as_float(best.least_at[i]);
        }
        store_eight(path_hub_sums(work, at, at.piece, 4), most_at);
        store_eight(path_hub_sums(work, at, at.piece, 5), least_at);
    }
}

/* All threads of a team take part, those of keys without a row too. */
template <class T, bool KEEP>
__device__ static void store_row(const path_work &work, const aggregate_operands<T> &in,
                                 const path_thread &at, const sums &all, const extremes<T, KEEP> &best,
                                 bool messages) {
    float most[8], least[8];
    int32_t most_at[8], least_at[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        most[i] = best.value(best.most[i]), least[i] = best.value(best.least[i]);
        most_at[i] = best.most_slot(i), least_at[i] = best.least_slot(i);
    }
    if (at.row >= 0) store_features(work, in, at, all, most, least);
    if (!KEEP || !messages) return;
    if (at.row >= 0) store_boundary_hits(work, at, in.layer, most_at, least_at);
    store_hits(work, in.hits, at, most_at, least_at);
}

/* One team per unit: a site, or a piece of a hub's. Sums of a hub are without the boundary. */
template <class T, bool KEEP, bool DENSE, int DIM>
__global__ static void __launch_bounds__(PATH_THREADS, aggregate_tuning<T>::BLOCKS)
    aggregate_rows(path_work work, aggregate_operands<T> in) {
    path_thread at = path_thread_of(path_dim<DIM>(work));
    if (at.team >= at.teams) return;
    const path_level &level = in.targets;
    int32_t units = path_units(work, level), step = static_cast<int32_t>(gridDim.x) * at.teams;
    int32_t i = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    path_unit next = {};
    if (i < units) next = path_load_unit(work, level, i);
    for (; i < units; i += step) {
        path_enter(&at, DENSE ? path_load_unit(work, level, i) : next);
        /* Rows of sparse layers are short: the next one is loaded ahead. */
        if (!DENSE && i + step < units) next = path_load_unit(work, level, i + step);
        sums all = {};
        extremes<T, KEEP> best;
        {
            float boundary[8];
            load_boundary<T>(boundary, work, at);
            best.start(boundary);
            if (at.piece < 0)
#pragma unroll
                for (int k = 0; k < 8; k++)
                    all.sum[k] = boundary[k], all.squares[k] = boundary[k] * boundary[k];
        }
        bool messages = has_messages(work, at, in.layer);
        if (!messages)
            all.out = count_out(work, at);
        else if (at.check)
            walk<T, KEEP, true, DENSE, DIM>(&all, &best, work, in, at);
        else
            walk<T, KEEP, false, DENSE, DIM>(&all, &best, work, in, at);
        if (at.piece < 0)
            store_row(work, in, at, all, best, messages);
        else if (at.row >= 0)
            store_piece(work, at, all, best);
    }
}

/* Where a hub's extremes came from: eight slots for the maximum and, 8 dim further, for the minimum. */
__device__ static int32_t *hub_slots(const path_work &work, const path_thread &at, int32_t layer) {
    int64_t site = (static_cast<int64_t>(layer) * work.octets + at.octet) * work.graph.hubs + at.node;
    return work.hub_slots + (site * 2 * PATH_OCTET + at.key) * work.dim + 8 * at.part;
}

/* One team per site of a hub. */
template <class T, bool KEEP>
__global__ static void __launch_bounds__(PATH_THREADS)
    finish_hubs(path_work work, aggregate_operands<T> in) {
    path_thread at = path_thread_of(work.dim);
    int32_t site = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    if (at.team >= at.teams || site >= work.octets * work.graph.hubs) return;
    path_enter(&at, path_unit_at(work, in.targets, site / work.graph.hubs, site % work.graph.hubs));
    if (at.row < 0) return;
    float boundary[8], most[8], least[8];
    int32_t most_at[8] = {}, least_at[8] = {};
    sums all = {};
    load_boundary<T>(boundary, work, at);
#pragma unroll
    for (int k = 0; k < 8; k++) {
        most[k] = least[k] = all.sum[k] = boundary[k];
        all.squares[k] = boundary[k] * boundary[k];
    }
    constexpr int ARRAYS = extremes<T, KEEP>::ENTRIES == 8 ? 6 : 4;
    int32_t first = work.graph.hub_piece[at.node], last = work.graph.hub_piece[at.node + 1];
#pragma unroll 4
    for (int32_t i = first; i < last; i++) {
        int32_t piece = at.octet * work.graph.pieces + i, before = (i - first) * work.graph.piece_size;
        float values[6][8];
#pragma unroll
        for (int array = 0; array < ARRAYS; array++)
            unpack(values[array], load_eight(path_hub_sums(work, at, piece, array)));
        all.out += __float_as_int(*path_hub_sums(work, at, piece, 6));
#pragma unroll
        for (int k = 0; k < 8; k++) {
            using best = extremes<T, KEEP>;
            float high = best::value(values[2][k]), low = best::value(values[3][k]);
            int32_t high_at = ARRAYS == 6 ? __float_as_int(values[4][k]) : best::slot(values[2][k]);
            int32_t low_at = ARRAYS == 6 ? __float_as_int(values[5][k]) : best::slot(values[3][k]);
            all.sum[k] += values[0][k];
            all.squares[k] += values[1][k];
            if (high > most[k]) most[k] = high, most_at[k] = before + high_at;
            if (low < least[k]) least[k] = low, least_at[k] = before + low_at;
        }
    }
    store_features(work, in, at, all, most, least);
    if (!KEEP) return;
    store_boundary_hits(work, at, in.layer, most_at, least_at);
    int32_t *slots = hub_slots(work, at, in.layer);
#pragma unroll
    for (int k = 0; k < 8; k++) slots[k] = most_at[k], slots[PATH_OCTET * work.dim + k] = least_at[k];
}

/* One team per piece of a hub and layer. */
__global__ static void __launch_bounds__(PATH_THREADS) hub_hits(path_work work) {
    path_thread at = path_thread_of(work.dim);
    int32_t pieces = work.octets * work.graph.pieces, layer = static_cast<int32_t>(blockIdx.y);
    int32_t unit = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    if (at.team >= at.teams || unit >= pieces) return;
    path_enter(&at, path_load_unit(work, path_level_of(work, layer + 1), unit));
    if (!(at.site.x & 0xff) || !has_messages(work, at, layer)) return;
    int32_t most[8] = {}, least[8] = {}, before = at.begin - work.graph.begin[at.node];
    if (at.row >= 0) {
        const int32_t *slots = hub_slots(work, at, layer);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            most[k] = slots[k] - before;
            least[k] = slots[PATH_OCTET * work.dim + k] - before;
        }
    }
    store_hits(work, hits_of_layer(work, layer), at, most, least);
}

void cuda_path_hub_hits(vlp_compute *compute, const path_work *work) {
    int32_t teams = PATH_THREADS / (PATH_OCTET * (work->dim / 8));
    dim3 grid(cuda_blocks(work->octets * work->graph.pieces, teams),
              static_cast<unsigned>(work->layers));
    if (work->graph.pieces > 0) LAUNCH(compute, hub_hits, grid, PATH_THREADS, 0, *work);
}

template <class T, bool KEEP, bool DENSE> static auto rows_kernel(int32_t dim) {
    constexpr bool SMALL = sizeof(T) == 2;
    if (SMALL && dim == 32) return aggregate_rows < T, KEEP, DENSE, SMALL ? 32 : 0 > ;
    if (SMALL && dim == 64) return aggregate_rows < T, KEEP, DENSE, SMALL ? 64 : 0 > ;
    return aggregate_rows<T, KEEP, DENSE, 0>;
}

template <class T, bool KEEP>
static void aggregate(vlp_compute *compute, const path_work *work, int32_t layer) {
    bool dense = work->dense && layer > 0;
    unsigned blocks = static_cast<unsigned>(compute->multiprocessors) * aggregate_tuning<T>::BLOCKS;
    int32_t teams = PATH_THREADS / (PATH_OCTET * (work->dim / 8));
    auto rows = dense ? rows_kernel<T, KEEP, true>(work->dim) : rows_kernel<T, KEEP, false>(work->dim);
    auto hubs = finish_hubs<T, KEEP>;
    aggregate_operands<T> in = operands_of<T>(*work, layer);
    LAUNCH(compute, rows, blocks, PATH_THREADS, 0, *work, in);
    if (work->graph.hubs > 0)
        LAUNCH(compute, hubs, cuda_blocks(work->octets * work->graph.hubs, teams), PATH_THREADS, 0,
               *work, in);
}

void cuda_path_aggregate(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16) {
    if (bf16)
        work->keep ? aggregate<__nv_bfloat16, true>(compute, work, layer)
                   : aggregate<__nv_bfloat16, false>(compute, work, layer);
    else
        work->keep ? aggregate<float, true>(compute, work, layer)
                   : aggregate<float, false>(compute, work, layer);
}
