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

template <class T> struct aggregate_operands {
    const T *x, *w;     /* of the layer; w: of the octet */
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

/* A message: its factors, and whether it is read. */
template <class T> struct message {
    eight<T> x, w;
    bool out;
};

template <class T, bool CHECK>
__device__ static message<T> load_message(const path_work &work, const aggregate_operands<T> &in,
                                          const path_thread &at, int32_t slot_at) {
    path_slot slot = work.graph.slots[slot_at];
    uint2 site = in.sources.sites[path_site(work, at.sites, slot.node)];
    message<T> out = {zero_eight<T>(), zero_eight<T>(), false};
    if (CHECK) out.out = work.out[slot_at] & at.bit;
    if (at.row < 0 || !path_has_row(site, at.key) || out.out) return out;
    int32_t relation = vlp_path_inverse(slot.relation, work.graph.relations);
    int64_t w_row =
        (static_cast<int64_t>(at.octet) * work.graph.relations + relation) * PATH_OCTET + at.key;
    out.x = load_eight(in.x + static_cast<int64_t>(path_row(site, at.key)) * work.dim + 8 * at.part);
    out.w = load_eight(in.w + w_row * work.dim + 8 * at.part);
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

/* Slots begin .. end - 1, at most 254. */
template <class T, bool TRACK, bool CHECK>
__device__ static void walk(sums *to, extremes<T, TRACK> *best, const path_work &work,
                            const aggregate_operands<T> &in, const path_thread &at, int32_t begin,
                            int32_t end) {
    constexpr int AHEAD = sizeof(T) == 2 ? 4 : 2; /* messages that are loaded before the first is used */
    int32_t slot = begin;
    for (; slot + AHEAD <= end; slot += AHEAD) {
        message<T> next[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) next[i] = load_message<T, CHECK>(work, in, at, slot + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            add_message<T, TRACK, CHECK>(to, best, next[i], slot + i - begin + 1);
    }
    for (; slot < end; slot++)
        add_message<T, TRACK, CHECK>(to, best, load_message<T, CHECK>(work, in, at, slot),
                                     slot - begin + 1);
}

template <class T, bool TRACK>
__device__ static void walk_slots(sums *to, extremes<T, TRACK> *best, const path_work &work,
                                  const aggregate_operands<T> &in, const path_thread &at, int32_t begin,
                                  int32_t end) {
    if (at.check)
        walk<T, TRACK, true>(to, best, work, in, at, begin, end);
    else
        walk<T, TRACK, false>(to, best, work, in, at, begin, end);
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
    if (at.part == 0) work.degree[row] = degree;
}

/* Low bytes of slots, 1 .. the degree, 0 the boundary. */
__device__ static uint4 low_bytes(const int32_t (&most)[8], const int32_t (&least)[8]) {
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        words[i / 4] |= (static_cast<uint32_t>(most[i]) & 255u) << 8 * (i % 4);
        words[2 + i / 4] |= (static_cast<uint32_t>(least[i]) & 255u) << 8 * (i % 4);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ static void store_arguments(const path_work &work, const path_thread &at, int32_t layer,
                                       const int32_t (&most)[8], const int32_t (&least)[8]) {
    int64_t row = layer * work.capacity + at.row;
    work.arguments[row * (work.dim / 8) + at.part] = low_bytes(most, least);
}

/* Whether a row's messages can differ from 0: in layer 0 those of the heads' neighbours. */
__device__ static bool has_messages(const path_work &work, const path_thread &at, int32_t layer) {
    if (layer > 0) return true;
    return work.hops[work.graph.entities + at.node] >> (PATH_OCTET * at.octet) & 0xff;
}

/* The degree without the edges that are out, where a row is not walked. */
__device__ static int32_t count_out(const path_work &work, const path_thread &at) {
    int32_t count = 0;
    for (int32_t slot = work.graph.begin[at.node]; at.check && slot < work.graph.begin[at.node + 1];
         slot++)
        count += (work.out[slot] & at.bit) != 0;
    return count;
}

template <class T, bool KEEP>
__global__ static void __launch_bounds__(PATH_THREADS) aggregate_rows(path_work work, int32_t layer) {
    path_thread at = thread_of(work.dim);
    if (at.team >= at.teams) return;
    aggregate_operands<T> in = operands_of<T>(work, layer);
    path_level level = path_level_of(work, layer + 1);
    int32_t first = level.counts->hub_sites + static_cast<int32_t>(blockIdx.x) * at.teams + at.team;
    for (int32_t i = first; i < level.counts->sites; i += static_cast<int32_t>(gridDim.x) * at.teams) {
        enter_site(&at, work, level, level.list[i]);
        float boundary[8];
        load_boundary<T>(boundary, work, at);
        sums all = {};
        extremes<T, KEEP> best;
        best.start(boundary);
#pragma unroll
        for (int k = 0; k < 8; k++) all.sum[k] = boundary[k], all.squares[k] = boundary[k] * boundary[k];
        if (has_messages(work, at, layer))
            walk_slots(&all, &best, work, in, at, work.graph.begin[at.node],
                       work.graph.begin[at.node + 1]);
        else
            all.out = count_out(work, at);
        if (at.row < 0) continue;
        float most[8], least[8];
        int32_t most_at[8], least_at[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            most[k] = best.value(best.most[k]), least[k] = best.value(best.least[k]);
            most_at[k] = best.most_slot(k), least_at[k] = best.least_slot(k);
        }
        store_features<T>(work, at, layer, all, most, least);
        if (KEEP) store_arguments(work, at, layer, most_at, least_at);
    }
}

/* ---- Hubs, forward ------------------------------------------------------------------------------- */

/* The best of all pieces that a team has walked. */
struct hub_best {
    float most[8], least[8];
    int32_t most_at[8], least_at[8];

    __device__ void take(int i, float high, int32_t high_at, float low, int32_t low_at) {
        if (high > most[i]) most[i] = high, most_at[i] = high_at;
        if (low < least[i]) least[i] = low, least_at[i] = low_at;
    }
};

/* The best of all teams, for the first. */
__device__ static void merge_teams(hub_best *best, float *values, int32_t *slots,
                                   const path_thread &at) {
    for (int i = 0; i < 8; i++)
        for (int side = 0; side < 2; side++) {
            __syncthreads();
            values[threadIdx.x] = side ? best->least[i] : best->most[i];
            slots[threadIdx.x] = side ? best->least_at[i] : best->most_at[i];
            __syncthreads();
            for (int32_t team = 1; at.team == 0 && team < at.teams; team++) {
                float value = values[team * at.size + at.lane];
                int32_t slot = slots[team * at.size + at.lane];
                if (side)
                    best->take(i, -INFINITY, 0, value, slot);
                else
                    best->take(i, value, slot, INFINITY, 0);
            }
        }
}

template <class T, bool KEEP>
__device__ static void walk_pieces(sums *all, hub_best *total, const path_work &work,
                                   const aggregate_operands<T> &in, const path_thread &at,
                                   const float (&boundary)[8]) {
    int32_t begin = work.graph.begin[at.node], end = work.graph.begin[at.node + 1];
    for (int32_t piece = begin + at.team * PATH_PIECE; piece < end; piece += at.teams * PATH_PIECE) {
        extremes<T, KEEP> best;
        best.start(boundary);
        walk_slots(all, &best, work, in, at, piece, min(piece + PATH_PIECE, end));
#pragma unroll
        for (int i = 0; i < 8; i++)
            total->take(i, best.value(best.most[i]), piece - begin + best.most_slot(i),
                        best.value(best.least[i]), piece - begin + best.least_slot(i));
    }
}

/* One block per row of a site of a hub. */
template <class T, bool KEEP>
__global__ static void __launch_bounds__(PATH_THREADS) aggregate_hubs(path_work work, int32_t layer) {
    __shared__ float values[PATH_THREADS];
    __shared__ int32_t slots[PATH_THREADS];
    path_thread at = thread_of(work.dim);
    aggregate_operands<T> in = operands_of<T>(work, layer);
    path_level level = path_level_of(work, layer + 1);
    for (int32_t i = static_cast<int32_t>(blockIdx.x); i < level.counts->hub_sites;
         i += static_cast<int32_t>(gridDim.x)) {
        enter_site(&at, work, level, level.list[i]);
        float boundary[8];
        load_boundary<T>(boundary, work, at);
        sums all = {};
        hub_best best;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            best.most[k] = best.least[k] = boundary[k];
            best.most_at[k] = best.least_at[k] = 0;
        }
        if (at.team < at.teams) walk_pieces<T, KEEP>(&all, &best, work, in, at, boundary);
        for (int k = 0; k < 8; k++) {
            all.sum[k] = sum_teams(all.sum[k], values, at) + boundary[k];
            all.squares[k] = sum_teams(all.squares[k], values, at) + boundary[k] * boundary[k];
        }
        all.out = static_cast<int32_t>(sum_teams(static_cast<float>(all.out), values, at));
        merge_teams(&best, values, slots, at);
        if (at.team != 0 || at.row < 0) continue;
        store_features<T>(work, at, layer, all, best.most, best.least);
        if (!KEEP) continue;
        store_arguments(work, at, layer, best.most_at, best.least_at);
        int64_t hub_sites = static_cast<int64_t>(work.octets) * work.graph.hubs;
        int64_t site = layer * hub_sites + path_site(work, at.sites, at.node);
        int2 *to = work.hub_arguments + (site * PATH_OCTET + at.key) * work.dim + 8 * at.part;
        for (int k = 0; k < 8; k++) to[k] = make_int2(best.most_at[k], best.least_at[k]);
    }
}

static unsigned row_blocks(const vlp_compute *compute) {
    return static_cast<unsigned>(compute->multiprocessors) * 8;
}

template <class T, bool KEEP>
static void aggregate(vlp_compute *compute, const path_work *work, int32_t layer) {
    if (work->graph.hubs > 0) {
        auto hubs = aggregate_hubs<T, KEEP>;
        LAUNCH(compute, hubs, row_blocks(compute), PATH_THREADS, 0, *work, layer);
    }
    auto rows = aggregate_rows<T, KEEP>;
    LAUNCH(compute, rows, row_blocks(compute), PATH_THREADS, 0, *work, layer);
}

void cuda_path_aggregate(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16) {
    if (bf16)
        work->keep ? aggregate<__nv_bfloat16, true>(compute, work, layer)
                   : aggregate<__nv_bfloat16, false>(compute, work, layer);
    else
        work->keep ? aggregate<float, true>(compute, work, layer)
                   : aggregate<float, false>(compute, work, layer);
}
