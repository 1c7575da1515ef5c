/* Shared by the samplers: exponential keys, and the pass over the entities that finds small ones.
 *
 * An entity's key is E / w, with E = -log(1 - u) drawn from the exponential distribution and w the
 * weight of its shell. The 39 bits of u are functions of (seed, step, query, entity) alone: the seven
 * leading bits are a byte of random words that sixteen entities share, the others a word of the entity's
 * own. For a threshold, each shell has a bound of the leading bits: an entity above it has a key above
 * the threshold. So most entities cost a byte, a half-byte of distance and a comparison, four at a time,
 * and the other bits and the key are computed for the rest only.
 *
 * Keys are 32 bits that are ordered as the numbers are: a float's without the last, with the powers of
 * two of 1 / w added to the exponent, so that no strength of the weights overflows. Rounding changes a
 * shell's weight by less than 1e-6 of it. Of equal keys the smaller entity is first: that takes two keys
 * within 2^-22 of each other at the threshold, and changes an entity's probability by far less. */
#ifndef VLP_COMPUTE_CUDA_SAMPLE_KEYS_H
#define VLP_COMPUTE_CUDA_SAMPLE_KEYS_H

#include "base/random.h"
#include "compute/cuda/device.h"

enum {
    MAX_SHELLS = 16,
    MAX_SAMPLE_THREADS = 512,
    QUEUE = 128,     /* capacity of a warp's queue of entities, whole warps of them */
    LEADING = 127,   /* the seven leading bits of u */
    SHARING = 16,    /* entities that share random words */
    GROUP = 32,      /* entities that a lane tests at a time */
    KEY_OCTAVE = 22, /* bits of a key below its exponent */
    MAX_OCTAVES = 46 /* between two shells: E is in 2^-40 .. 2^5, more changes no order of keys */
};

/* The source of shells: one shell, a matrix of distances, lists of near entities. */
enum source { UNIFORM, MATRIX, LISTS };

typedef struct sampling {
    vlp_shell_view view;
    source shells; /* set by the kernel from its template argument: a constant to the compiler */
    float alpha0;
    int32_t entities, count, capacity; /* capacity: of kept keys */
    uint64_t seed;
} sampling;

/* The block's query, in the registers of every thread. */
typedef struct sampled_query {
    int32_t head, last;          /* last: the farthest shell */
    const uint8_t *distances;    /* the head entity's row of the matrix, or NULL */
    const int32_t *known;        /* (known_count) ascending */
    int32_t known_count, remain; /* remain: entities that are not known answers */
    uint64_t counter;            /* of the random words */
} sampled_query;

/* The state of a query's draw, in shared memory. */
typedef struct drawing {
    int32_t left[MAX_SHELLS];      /* members that are not known answers */
    uint32_t octaves[MAX_SHELLS];  /* of 1 / w, relative to the nearest shell: whole powers of two, as
                                       they are added to keys */
    float scale[MAX_SHELLS];       /* the remaining factor, 1 .. 2 */
    uint4 bound;                   /* of the leading bits: a byte for each distance 0 .. 15 */
    uint32_t threshold, low, high; /* keys up to the threshold are kept; too few up to low, too many up
                                      to high */
    int32_t kept;
} drawing;

/* ---- Entities ------------------------------------------------------------------------------------ */

/* The shell of a distance: 0 and 1 are shell 1 (the head entity counts as a neighbour), distances beyond
 * the last shell belong to it. Shell 0 is all entities when draws are uniform. */
__device__ static int32_t shell_at(const sampled_query &query, int32_t distance) {
    return min(max(distance, 1), query.last);
}

__device__ static int32_t shell_of(const sampling &options, const sampled_query &query, int32_t entity) {
    const vlp_shell_view &view = options.view;
    if (options.shells == UNIFORM) return 0;
    if (options.shells == MATRIX)
        return shell_at(query, __ldg(query.distances + entity / 2) >> (entity % 2 * 4) & 15);
    if (entity == query.head) return 1;
    const int32_t *counts = view.counts + static_cast<int64_t>(query.head) * (view.limit + 1);
    const int32_t *members = view.near_member + view.near_offset[query.head];
    for (int32_t d = 1; d <= view.near[query.head]; members += counts[d++])
        if (list_has(members, counts[d], entity)) return shell_at(query, d);
    return query.last;
}

__device__ static bool is_known(const sampled_query &query, int32_t entity) {
    return list_has(query.known, query.known_count, entity);
}

/* The random words that SHARING entities share, a byte each. */
__device__ static vlp_random4 words_of(const sampling &options, const sampled_query &query,
                                       int32_t block) {
    return vlp_random(options.seed, VLP_STREAM_KEYS, query.counter, static_cast<uint32_t>(block));
}

__device__ static uint32_t key_of(const sampling &options, const sampled_query &query,
                                  const drawing &draw, int32_t entity) {
    int32_t shell = shell_of(options, query, entity);
    uint32_t byte = static_cast<uint32_t>(entity) % SHARING;
    vlp_random4 words = words_of(options, query, entity / SHARING);
    uint32_t low = byte & 4 ? words.v[1] : words.v[0], high = byte & 4 ? words.v[3] : words.v[2];
    uint32_t leading = (byte & 8 ? high : low) >> (byte % 4 * 8) & LEADING;
    uint32_t others =
        vlp_random(options.seed, VLP_STREAM_KEY_ENDS, query.counter, static_cast<uint32_t>(entity)).v[0];
    /* Near u = 1, 1 - u has the precision. */
    bool upper = leading > LEADING / 2;
    if (upper) {
        leading ^= LEADING;
        others = ~others;
    }
    float part = fmaf(static_cast<float>(others), 0x1p-39f, 0x1p-40f);
    part = fmaf(static_cast<float>(leading), 0x1p-7f, part);
    float drawn = upper ? -logf(part) : -log1pf(-part);
    return (__float_as_uint(drawn * draw.scale[shell]) >> 1) + draw.octaves[shell];
}

/* ---- Shells and thresholds ----------------------------------------------------------------------- */

__device__ static sampled_query open_query(const sampling &options, const int32_t *heads,
                                           const int64_t *known_begin, const int64_t *known_end,
                                           const int32_t *known, const vlp_step_values *values) {
    int64_t at = blockIdx.x, begin = known_begin[at];
    const vlp_shell_view &view = options.view;
    sampled_query query = {};
    query.head = heads[at];
    query.known = known + begin;
    query.known_count = static_cast<int32_t>(known_end[at] - begin);
    query.remain = options.entities - query.known_count;
    query.counter = static_cast<uint64_t>(values->step) << 32 | static_cast<uint32_t>(at);
    if (options.shells == UNIFORM) return query;
    query.last = options.shells == MATRIX ? view.limit : min(view.near[query.head] + 1, view.limit);
    if (options.shells == MATRIX) query.distances = view.matrix + query.head * view.stride;
    return query;
}

/* Counts the members of the shells that are not known answers. `known`: one bit per entity, zero before,
 * set here, or NULL. Called by all threads. */
__device__ static void open_shells(const sampling &options, const sampled_query &query, drawing &draw,
                                   uint32_t *known) {
    if (threadIdx.x < MAX_SHELLS) draw.left[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        int32_t shell = threadIdx.x, members = 0;
        if (shell > 0 && shell < query.last) {
            const int32_t *counts =
                options.view.counts + static_cast<int64_t>(query.head) * (options.view.limit + 1);
            members = counts[shell] + (shell == 1 ? counts[0] : 0);
        }
        int32_t rest = options.entities - warp_sum(members);
        if (shell <= query.last) atomicAdd(&draw.left[shell], shell == query.last ? rest : members);
    }
    for (int32_t i = threadIdx.x; i < query.known_count; i += blockDim.x) {
        int32_t entity = query.known[i];
        if (known) atomicOr(&known[entity / 32], 1u << (entity % 32));
        atomicSub(&draw.left[shell_of(options, query, entity)], 1);
    }
    __syncthreads();
}

/* The logarithm to base 2 of a threshold up to which about `wanted` keys are expected, fewer than there
 * are. One warp: each lane tries another threshold. */
__device__ static float solve_threshold(const sampled_query &query, const drawing &draw, int32_t first,
                                        float octaves, float wanted) {
    /* Bounds: all entities in the nearest shell, and all in the farthest. */
    float part = fminf(wanted / static_cast<float>(query.remain), 1 - 0x1p-20f);
    float low = log2f(part);
    float high = log2f(-log1pf(-part)) + octaves * static_cast<float>(query.last - first);
    for (int round = 0; round < 6 && high - low > 0.02f; round++) {
        float width = (high - low) / 33, level = low + width * (threadIdx.x % 32 + 1), sum = 0;
        for (int32_t shell = first; shell <= query.last; shell++) {
            float power = exp2f(level - octaves * static_cast<float>(shell - first));
            sum += static_cast<float>(draw.left[shell]) * (1 - __expf(-power));
        }
        int below = __popc(__ballot_sync(ALL_LANES, sum < wanted));
        low += width * static_cast<float>(below);
        high = low + width;
    }
    return 0.5f * (low + high);
}

/* Bounds of the leading bits for the threshold, rounded up. One warp, one lane per distance. Where
 * shells are lists, the groups of within_bounds hold the last shell only. */
__device__ static void set_bounds(const sampling &options, const sampled_query &query, drawing &draw) {
    int32_t distance = threadIdx.x % 32;
    if (distance >= 16) return;
    int32_t shell = options.shells == MATRIX ? shell_at(query, distance) : query.last;
    uint32_t maximum = __float_as_uint(128.0f) >> 1, octaves = draw.octaves[shell];
    uint32_t key = draw.threshold > octaves ? min(draw.threshold - octaves, maximum) : 0;
    float drawn = __uint_as_float(key << 1) / draw.scale[shell] * 1.0001f;
    float bound = -expm1f(-drawn) * (LEADING + 1) + 1e-3f;
    reinterpret_cast<uint8_t *>(&draw.bound)[distance] =
        static_cast<uint8_t>(min(static_cast<int>(bound), static_cast<int>(LEADING)));
}

/* Prepares the keys, with a threshold up to which `wanted` are expected; where at most `maximum`
 * entities remain, all are kept. Called by all threads, after open_shells. */
__device__ static void open_threshold(const sampling &options, const sampled_query &query, drawing &draw,
                                      int32_t wanted, int32_t maximum) {
    if (threadIdx.x < 32) {
        int32_t shell = threadIdx.x;
        unsigned some = __ballot_sync(ALL_LANES, shell <= query.last && draw.left[shell] > 0);
        int32_t first = some ? __ffs(static_cast<int>(some)) - 1 : 0;
        double octaves = fmin(static_cast<double>(options.alpha0) * 1.4426950408889634, MAX_OCTAVES);
        double mine = shell > first ? octaves * (shell - first) : 0, whole = floor(mine);
        if (shell < MAX_SHELLS) {
            draw.octaves[shell] = static_cast<uint32_t>(whole) << KEY_OCTAVE;
            draw.scale[shell] = exp2f(static_cast<float>(mine - whole));
        }
        uint32_t threshold = UINT32_MAX;
        if (query.remain > maximum) {
            float level = solve_threshold(query, draw, first, static_cast<float>(octaves),
                                          static_cast<float>(wanted));
            float floor_of = floorf(level);
            threshold = (static_cast<uint32_t>(static_cast<int32_t>(floor_of)) << KEY_OCTAVE) +
                        (__float_as_uint(exp2f(level - floor_of)) >> 1);
        }
        if (shell == 0) {
            draw.threshold = threshold;
            draw.low = 0;
            draw.high = UINT32_MAX;
            draw.kept = 0;
        }
        __syncwarp();
        set_bounds(options, query, draw);
    }
    __syncthreads();
}

/* Whether minimum .. maximum keys were found up to the threshold, or no threshold is left between one
 * with too few and one with too many; otherwise bisects. Called by all threads; draw.kept is read, and
 * reset. */
__device__ static bool settle(const sampling &options, const sampled_query &query, drawing &draw,
                              int32_t minimum, int32_t maximum) {
    __syncthreads();
    bool few = draw.kept < minimum;
    uint32_t low = few ? draw.threshold : draw.low, high = few ? draw.high : draw.threshold;
    if (!few && (draw.kept <= maximum || high - low <= 1)) return true;
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            uint32_t step = min(max((high - low) / 2, 1u), 1u << (KEY_OCTAVE - 1));
            draw.low = low;
            draw.high = high;
            draw.threshold = few ? low + step : high - step;
            draw.kept = 0;
        }
        __syncwarp();
        set_bounds(options, query, draw);
    }
    __syncthreads();
    return false;
}

/* ---- The pass over the entities ------------------------------------------------------------------ */

/* Bytes of `low` (0 .. 3) and `high` (4 .. 7), selected by the four lower half-bytes of `which`. From 8
 * on these select the sign of a byte: zero where bytes are below 128. */
__device__ static uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t which) {
    uint32_t chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(which));
    return chosen;
}

/* The entities, of the sixteen that share words, with leading bits at most the bound of their distance:
 * bit 8 j + i is entity 4 i + j. No byte borrows from the next: 128 is added to the bound. */
__device__ static uint32_t within_bounds(const vlp_random4 &words, uint32_t near, uint32_t far,
                                         uint4 bound) {
    uint32_t within = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t which = (i < 2 ? near : far) >> (i % 2 * 16);
        uint32_t bounds = choose_bytes(bound.x, bound.y, which) |
                          choose_bytes(bound.z, bound.w, which ^ 0x8888u) | 0x80808080u;
        within |= ((bounds - (words.v[i] & 0x7f7f7f7fu)) & 0x80808080u) >> (7 - i);
    }
    return within;
}

/* The sum over the lanes up to this one: an inclusive scan. */
__device__ static int32_t sum_through(int32_t value) {
    int32_t lane = threadIdx.x % 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        int32_t other = __shfl_up_sync(ALL_LANES, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

/* The distances of a group. */
__device__ static uint4 distances_of(const sampled_query &query, int32_t group, int32_t groups) {
    if (!query.distances || group >= groups) return make_uint4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const uint4 *>(query.distances) + group);
}

/* Calls keep(entity) for all entities whose key may be up to the threshold, known answers among them, in
 * any order: by whole warps, -1 where a lane has none. Entities within the bounds are queued until there
 * is one for every lane: no divergence. */
template <class Keep>
__device__ static void pass_over(const sampling &options, const sampled_query &query,
                                 const drawing &draw, Keep keep) {
    __shared__ int32_t queues[MAX_SAMPLE_THREADS / 32][QUEUE];
    int32_t lane = threadIdx.x % 32, *queue = queues[threadIdx.x / 32], waiting = 0;
    int32_t groups = (options.entities + GROUP - 1) / GROUP, step = blockDim.x;
    uint4 bound = draw.bound;
    auto keep_last = [&](int32_t entity) {
        if (entity >= options.entities) entity = -1;
        /* The near lists follow below. */
        if (options.shells == LISTS && entity >= 0 && shell_of(options, query, entity) != query.last)
            entity = -1;
        keep(entity);
    };
    uint4 next = distances_of(query, threadIdx.x, groups);
    for (int32_t group = threadIdx.x; group - lane < groups; group += step) {
        uint4 distances = next;
        next = distances_of(query, group + step, groups);
        uint32_t within =
            within_bounds(words_of(options, query, 2 * group), distances.x, distances.y, bound);
        within |= within_bounds(words_of(options, query, 2 * group + 1), distances.z, distances.w, bound)
                  << 4;
        if (group >= groups) within = 0;
        int32_t mine = __popc(within), through = sum_through(mine), at = waiting + through - mine;
        int32_t total = waiting + __shfl_sync(ALL_LANES, through, 31);
        for (; total > 0; total -= QUEUE, at -= QUEUE) {
            for (; within && at < QUEUE; at++) {
                uint32_t bit = 31 - static_cast<uint32_t>(__clz(static_cast<int>(within)));
                within ^= 1u << bit;
                queue[at] = GROUP * group + static_cast<int32_t>(bit % 8 * 4 + bit / 8);
            }
            __syncwarp();
            int32_t queued = min(total, static_cast<int32_t>(QUEUE));
            waiting = queued % 32;
            for (int32_t i = waiting; i < queued; i += 32) keep_last(queue[i + lane]);
            __syncwarp();
        }
    }
    if (waiting > 0) keep_last(lane < waiting ? queue[lane] : -1);
    if (options.shells != LISTS) return;
    /* The members of the near lists, and the head entity, which is in none. */
    const vlp_shell_view &view = options.view;
    const int32_t *counts = view.counts + static_cast<int64_t>(query.head) * (view.limit + 1);
    const int32_t *members = view.near_member + view.near_offset[query.head];
    int32_t count = 0;
    for (int32_t d = 1; d < query.last; d++) count += counts[d];
    for (int32_t i = threadIdx.x; i - lane <= count; i += step)
        keep(i < count ? members[i] : i == count && query.last > 1 ? query.head : -1);
}

#endif
