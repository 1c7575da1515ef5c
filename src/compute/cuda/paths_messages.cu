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

/* How slots are walked: blocks per multiprocessor, and messages that are loaded before the first is
 * used.
 */
template <class T, bool DENSE> struct aggregate_tuning {
    static constexpr int BLOCKS = sizeof(T) == 4 || DENSE ? 2 : 4;
    static constexpr int AHEAD = sizeof(T) == 2 && DENSE ? 4 : 2;
};

template <class T> struct aggregate_operands {
    const T *x, *w;     /* of the layer; w: of its first octet */
    path_level sources; /* rows of x */
};

template <class T>
__device__ static aggregate_operands<T> operands_of(const path_work &work, int32_t layer) {
    aggregate_operands<T> out;
    out.x = static_cast<const T *>(work.x) + path_kept(work, layer) * work.dim;
    out.w = static_cast<const T *>(work.weights) +
            static_cast<int64_t>(layer) * work.octets * work.graph.relations * PATH_OCTET * work.dim;
    out.sources = path_level_of(work, layer);
    return out;
}

/* A message: its factors, and whether its edge is out of the graph. */
template <class T> struct message {
    eight<T> x, w;
    bool out;
};

/* x, w, sites: of the thread's octet, the first two of its key and part. */
template <class T, bool CHECK, bool DENSE>
__device__ static message<T> load_message(const path_work &work, const T *x, const T *w,
                                          const uint2 *sites, const path_thread &at, int32_t slot) {
    int2 edge = work.graph.edges[slot];
    int32_t stride = PATH_OCTET * work.dim;
    message<T> out = {zero_eight<T>(), zero_eight<T>(), false};
    if (CHECK) out.out = work.out[slot] & at.bit;
    if (DENSE) {
        out.w = load_eight(w + static_cast<int64_t>(edge.y) * stride);
        if (!CHECK || !out.out) out.x = load_eight(x + static_cast<int64_t>(edge.x) * stride);
        return out;
    }
    uint2 site = sites[edge.x];
    if (at.row < 0 || !path_has_row(site, at.key) || out.out) return out;
    out.x = load_eight(x + static_cast<int64_t>(path_row(site, at.key)) * work.dim);
    out.w = load_eight(w + static_cast<int64_t>(edge.y) * stride);
    return out;
}

/* Sums over the messages of a walk. */
struct sums {
    float sum[8], squares[8];
    int32_t out; /* edges that are out of the graph */
};

template <class T, bool TRACK, bool CHECK>
__device__ static void add_message(sums *to, extremes<T, TRACK> *best, const message<T> &from,
                                   int32_t slot) {
    float x[8], w[8];
    unpack(x, from.x);
    unpack(w, from.w);
    if (CHECK) to->out += from.out;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float value = x[i] * w[i];
        to->sum[i] += value;
        to->squares[i] = __fmaf_rn(value, value, to->squares[i]);
        if (!CHECK || !from.out) best->add(i, value, slot);
    }
}

template <class T, bool TRACK, bool CHECK, bool DENSE>
__device__ static void walk(sums *to, extremes<T, TRACK> *best, const path_work &work,
                            const aggregate_operands<T> &in, const path_thread &at) {
    constexpr int AHEAD = aggregate_tuning<T, DENSE>::AHEAD;
    int64_t octet = at.octet, entities = work.graph.entities, stride = PATH_OCTET * work.dim;
    int32_t column = 8 * at.part;
    const uint2 *sites = in.sources.sites + octet * entities;
    const T *w = in.w + octet * work.graph.relations * stride + at.key * work.dim + column;
    const T *x = in.x + column;
    if (DENSE) x += octet * entities * stride + at.key * work.dim;
    int32_t slot = at.begin;
    for (; slot + AHEAD <= at.end; slot += AHEAD) {
        message<T> next[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            next[i] = load_message<T, CHECK, DENSE>(work, x, w, sites, at, slot + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            add_message<T, TRACK, CHECK>(to, best, next[i], slot + i - at.begin + 1);
    }
    for (; slot < at.end; slot++)
        add_message<T, TRACK, CHECK>(
            to, best, load_message<T, CHECK, DENSE>(work, x, w, sites, at, slot), slot - at.begin + 1);
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
__device__ static void store_features(const path_work &work, const path_thread &at, int32_t layer,
                                      const sums &all, const float (&most)[8], const float (&least)[8]) {
    int32_t degree = work.graph.begin[at.node + 1] - work.graph.begin[at.node] - all.out;
    float inverse = 1.0f / static_cast<float>(degree + 1), mean[8], deviation[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        mean[i] = all.sum[i] * inverse;
        float variance = __fmaf_rn(all.squares[i], inverse, -(mean[i] * mean[i]));
        deviation[i] = sqrtf(fmaxf(variance, VLP_PATH_LEAST_VARIANCE));
    }
    int64_t row = (work.keep ? layer * work.capacity : 0) + at.row;
    T *to = static_cast<T *>(work.features) + row * 4 * work.dim + 8 * at.part;
    store_eight(to, mean);
    store_eight(to + work.dim, most);
    store_eight(to + 2 * work.dim, least);
    store_eight(to + 3 * work.dim, deviation);
    if (at.part > 0) return;
    vlp_path_graph graph = {};
    graph.mean_log_degree = work.mean_log_degree;
    work.degree[row] = degree;
    work.scale[row] = vlp_path_class_scale(&graph, vlp_path_degree_class(degree));
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

/* Rows of fewer slots go through these, others through their extremes; slots at a time. */
enum { FEW_SLOTS = 12, HITS_AHEAD = 4 };

/* Writes the hits of COUNT slots, slot_of(0) .. slot_of(COUNT - 1), of which 0 is none; places are
 * loaded before the first is used. */
template <int COUNT, class Slots>
__device__ static void store_slots(uint16_t *to, const path_work &work, int32_t first,
                                   const int32_t (&most)[8], const int32_t (&least)[8], Slots slot_of) {
    int32_t places[COUNT];
    uint32_t bits[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int32_t slot = slot_of(i);
        bits[i] = slot > 0 ? hits_of(most, least, slot) : 0;
        places[i] = bits[i] ? work.graph.reverse[first + slot] : 0;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (bits[i]) to[static_cast<int64_t>(places[i]) * work.dim] = static_cast<uint16_t>(bits[i]);
}

/* Tells the messages that were extremes; slots are 1 .. the degree, 0 the boundary. */
__device__ static void store_hits(const path_work &work, const path_thread &at, int32_t layer,
                                  const int32_t (&most)[8], const int32_t (&least)[8]) {
    int32_t first = work.graph.begin[at.node] - 1, degree = work.graph.begin[at.node + 1] - first - 1;
    int32_t key = at.octet * PATH_OCTET + at.key, parts = work.dim / 8;
    int64_t octet = static_cast<int64_t>(layer) * work.octets + at.octet;
    uint16_t *to =
        work.hits + octet * work.graph.slot_count * PATH_OCTET * parts + at.key * parts + at.part;
    if (work.key[key].head == at.node)
        work.boundary_hits[(layer * PATH_KEYS + key) * parts + at.part] =
            static_cast<uint16_t>(hits_of(most, least, 0));
    if (degree < FEW_SLOTS) {
        for (int32_t slot = 1; slot <= degree; slot += HITS_AHEAD)
            store_slots<HITS_AHEAD>(to, work, first, most, least, [&](int i) {
                int32_t at_slot = slot + i;
                return at_slot <= degree ? at_slot : 0;
            });
        return;
    }
#pragma unroll
    for (int side = 0; side < 2; side++)
        store_slots<8>(to, work, first, most, least, [&](int i) {
            /* Once for every slot: where it is the first of the extremes. */
            int32_t slot = side == 0 ? most[i] : least[i];
            uint32_t before = (1u << (8 * side + i)) - 1;
            return hits_of(most, least, slot) & before ? 0 : slot;
        });
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

template <class T, bool KEEP>
__device__ static void store_row(const path_work &work, const path_thread &at, int32_t layer,
                                 const sums &all, const extremes<T, KEEP> &best) {
    float most[8], least[8];
    int32_t most_at[8], least_at[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        most[i] = best.value(best.most[i]), least[i] = best.value(best.least[i]);
        most_at[i] = best.most_slot(i), least_at[i] = best.least_slot(i);
    }
    store_features<T>(work, at, layer, all, most, least);
    if (KEEP) store_hits(work, at, layer, most_at, least_at);
}

/* One team per unit: a site, or a piece of a hub's. Sums of a hub are without the boundary. */
template <class T, bool KEEP, bool DENSE>
__global__ static void __launch_bounds__(PATH_THREADS, aggregate_tuning<T, DENSE>::BLOCKS)
    aggregate_rows(path_work work, int32_t layer) {
    path_thread at = path_thread_of(work.dim);
    if (at.team >= at.teams) return;
    aggregate_operands<T> in = operands_of<T>(work, layer);
    path_level level = path_level_of(work, layer + 1);
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
        if (!has_messages(work, at, layer))
            all.out = count_out(work, at);
        else if (at.check)
            walk<T, KEEP, true, DENSE>(&all, &best, work, in, at);
        else
            walk<T, KEEP, false, DENSE>(&all, &best, work, in, at);
        if (at.row < 0) continue;
        if (at.piece < 0)
            store_row(work, at, layer, all, best);
        else
            store_piece(work, at, all, best);
    }
}

/* One team per site of a hub. */
template <class T, bool KEEP>
__global__ static void __launch_bounds__(PATH_THREADS) finish_hubs(path_work work, int32_t layer) {
    path_thread at = path_thread_of(work.dim);
    int32_t site = static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    if (at.team >= at.teams || site >= work.octets * work.graph.hubs) return;
    path_enter(&at, path_unit_at(work, path_level_of(work, layer + 1), site / work.graph.hubs,
                                 site % work.graph.hubs));
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
#pragma unroll 2
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
    store_features<T>(work, at, layer, all, most, least);
    if (KEEP) store_hits(work, at, layer, most_at, least_at);
}

template <class T, bool KEEP>
static void aggregate(vlp_compute *compute, const path_work *work, int32_t layer) {
    bool dense = work->dense && layer > 0;
    unsigned blocks = static_cast<unsigned>(compute->multiprocessors) *
                      (dense ? aggregate_tuning<T, true>::BLOCKS : aggregate_tuning<T, false>::BLOCKS);
    int32_t teams = PATH_THREADS / (PATH_OCTET * (work->dim / 8));
    auto rows = dense ? aggregate_rows<T, KEEP, true> : aggregate_rows<T, KEEP, false>;
    auto hubs = finish_hubs<T, KEEP>;
    LAUNCH(compute, rows, blocks, PATH_THREADS, 0, *work, layer);
    if (work->graph.hubs > 0)
        LAUNCH(compute, hubs, cuda_blocks(work->octets * work->graph.hubs, teams), PATH_THREADS, 0,
               *work, layer);
}

void cuda_path_aggregate(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16) {
    if (bf16)
        work->keep ? aggregate<__nv_bfloat16, true>(compute, work, layer)
                   : aggregate<__nv_bfloat16, false>(compute, work, layer);
    else
        work->keep ? aggregate<float, true>(compute, work, layer)
                   : aggregate<float, false>(compute, work, layer);
}
