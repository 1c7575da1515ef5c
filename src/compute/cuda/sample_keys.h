/* Exponential keys, and passing over the entities whose keys are small: what the samplers share.
 *
 * An entity's key is E / w, with E = -log(1 - u) drawn from the exponential distribution and w the
 * weight of its shell. The 39 bits of u are functions of (seed, step, query, entity) alone: the seven
 * leading ones are a byte of random words that sixteen entities share, the others a word of the entity's
 * own. For a threshold, each shell has a bound of the leading bits: who is above it has a key above the
 * threshold. So most entities cost a byte, a half-byte of distance and a comparison, four at a time, and
 * only the rest get the other bits and a key.
 *
 * Keys are 32 bits that are ordered as the numbers are: a float's without the last, with the powers of
 * two of 1 / w added to the exponent, so that no strength of the weights overflows. Roundings move a
 * shell's weight by less than 1e-6 of it. Of equal keys the smaller entity comes first: that takes two
 * keys within 2^-22 of each other where the drawing ends, and moves an entity's chance by far less. */
#ifndef VLP_COMPUTE_CUDA_SAMPLE_KEYS_H
#define VLP_COMPUTE_CUDA_SAMPLE_KEYS_H

#include "base/random.h"
#include "compute/cuda/device.h"

enum {
    MAX_SHELLS = 16,
    MAX_SAMPLE_THREADS = 512,
    ROOM = 128,      /* entities that can wait in line, whole warps of them */
    LEADING = 127,   /* the seven leading bits of u */
    SHARING = 16,    /* entities that share random words */
    GROUP = 32,      /* entities that a lane passes over at a time */
    KEY_OCTAVE = 22, /* bits of a key behind its exponent */
    MAX_OCTAVES = 46 /* between two shells: E is in 2^-40 .. 2^5, beyond it nothing changes places */
};

/* Where shells come from: there is one, a matrix of distances, lists of who is near. */
enum source { UNIFORM, MATRIX, LISTS };

typedef struct sampling {
    vlp_shell_view view;
    source shells; /* kernels have one each: they set it, so that it costs nothing to ask */
    float alpha0;
    int32_t entities, count, capacity; /* capacity: of those that are kept */
    uint64_t seed;
} sampling;

/* What every thread knows of its block's query. */
typedef struct query {
    int32_t head, last;          /* last: the farthest shell */
    const uint8_t *distances;    /* the head's row of the matrix, or NULL */
    const int32_t *known;        /* (known_count) ascending */
    int32_t known_count, remain; /* remain: entities that are not known */
    uint64_t counter;            /* of the random words */
} query;

/* A query's drawing, in shared memory. */
typedef struct drawing {
    int32_t left[MAX_SHELLS];      /* members that are not known */
    uint32_t octaves[MAX_SHELLS];  /* of 1 / w, relative to the nearest shell: whole powers of two, as
                                       they are added to keys */
    float scale[MAX_SHELLS];       /* and what is left of it, 1 .. 2 */
    uint4 bound;                   /* of the leading bits: a byte for each distance 0 .. 15 */
    uint32_t threshold, low, high; /* keys up to the threshold are kept; too few up to low, too many up
                                      to high */
    int32_t kept;
} drawing;

/* ---- Entities ------------------------------------------------------------------------------------ */

/* The shell of a distance: 0 and 1 are shell 1 (a head is as near as a neighbour), what is farther than
 * the last shell belongs to it. Shell 0 is all entities when draws are uniform. */
__device__ static int32_t shell_at(const query &asked, int32_t distance) {
    return min(max(distance, 1), asked.last);
}

__device__ static int32_t shell_of(const sampling &options, const query &asked, int32_t entity) {
    const vlp_shell_view &view = options.view;
    if (options.shells == UNIFORM) return 0;
    if (options.shells == MATRIX)
        return shell_at(asked, __ldg(asked.distances + entity / 2) >> (entity % 2 * 4) & 15);
    if (entity == asked.head) return 1;
    const int32_t *counts = view.counts + static_cast<int64_t>(asked.head) * (view.limit + 1);
    const int32_t *members = view.near_member + view.near_offset[asked.head];
    for (int32_t d = 1; d <= view.near[asked.head]; members += counts[d++])
        if (list_has(members, counts[d], entity)) return shell_at(asked, d);
    return asked.last;
}

__device__ static bool is_known(const query &asked, int32_t entity) {
    return list_has(asked.known, asked.known_count, entity);
}

/* The random words of entities that share them, a byte each. */
__device__ static vlp_random4 words_of(const sampling &options, const query &asked, int32_t block) {
    return vlp_random(options.seed, VLP_STREAM_KEYS, asked.counter, static_cast<uint32_t>(block));
}

__device__ static uint32_t key_of(const sampling &options, const query &asked, const drawing &draw,
                                  int32_t entity) {
    int32_t shell = shell_of(options, asked, entity);
    uint32_t place = static_cast<uint32_t>(entity) % SHARING;
    vlp_random4 words = words_of(options, asked, entity / SHARING);
    uint32_t low = place & 4 ? words.v[1] : words.v[0], high = place & 4 ? words.v[3] : words.v[2];
    uint32_t leading = (place & 8 ? high : low) >> (place % 4 * 8) & LEADING;
    uint32_t others =
        vlp_random(options.seed, VLP_STREAM_KEY_ENDS, asked.counter, static_cast<uint32_t>(entity)).v[0];
    /* Near u = 1 it is 1 - u that has the digits. */
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

__device__ static query open_query(const sampling &options, const int32_t *heads,
                                   const int64_t *known_begin, const int64_t *known_end,
                                   const int32_t *known, const vlp_step_values *values) {
    int64_t at = blockIdx.x, begin = known_begin[at];
    const vlp_shell_view &view = options.view;
    query asked = {};
    asked.head = heads[at];
    asked.known = known + begin;
    asked.known_count = static_cast<int32_t>(known_end[at] - begin);
    asked.remain = options.entities - asked.known_count;
    asked.counter = static_cast<uint64_t>(values->step) << 32 | static_cast<uint32_t>(at);
    if (options.shells == UNIFORM) return asked;
    asked.last = options.shells == MATRIX ? view.limit : min(view.near[asked.head] + 1, view.limit);
    if (options.shells == MATRIX) asked.distances = view.matrix + asked.head * view.stride;
    return asked;
}

/* Counts the members of the shells that are not known. `known`: a bit an entity, zeros, to be set, or
 * NULL. All threads. */
__device__ static void open_shells(const sampling &options, const query &asked, drawing &draw,
                                   uint32_t *known) {
    if (threadIdx.x < MAX_SHELLS) draw.left[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        int32_t shell = threadIdx.x, members = 0;
        if (shell > 0 && shell < asked.last) {
            const int32_t *counts =
                options.view.counts + static_cast<int64_t>(asked.head) * (options.view.limit + 1);
            members = counts[shell] + (shell == 1 ? counts[0] : 0);
        }
        int32_t rest = options.entities - warp_sum(members);
        if (shell <= asked.last) atomicAdd(&draw.left[shell], shell == asked.last ? rest : members);
    }
    for (int32_t i = threadIdx.x; i < asked.known_count; i += blockDim.x) {
        int32_t entity = asked.known[i];
        if (known) atomicOr(&known[entity / 32], 1u << (entity % 32));
        atomicSub(&draw.left[shell_of(options, asked, entity)], 1);
    }
    __syncthreads();
}

/* The logarithm to base 2 of a threshold up to which about `wanted` of more keys are expected. One warp:
 * each lane tries another. */
__device__ static float solve_threshold(const query &asked, const drawing &draw, int32_t first,
                                        float octaves, float wanted) {
    /* As if all were in the nearest shell, and as if all were in the farthest. */
    float part = fminf(wanted / static_cast<float>(asked.remain), 1 - 0x1p-20f);
    float low = log2f(part);
    float high = log2f(-log1pf(-part)) + octaves * static_cast<float>(asked.last - first);
    for (int round = 0; round < 6 && high - low > 0.02f; round++) {
        float width = (high - low) / 33, level = low + width * (threadIdx.x % 32 + 1), sum = 0;
        for (int32_t shell = first; shell <= asked.last; shell++) {
            float power = exp2f(level - octaves * static_cast<float>(shell - first));
            sum += static_cast<float>(draw.left[shell]) * (1 - __expf(-power));
        }
        int below = __popc(__ballot_sync(ALL_LANES, sum < wanted));
        low += width * static_cast<float>(below);
        high = low + width;
    }
    return 0.5f * (low + high);
}

/* Bounds of the leading bits for the threshold, a little too high rather than too low. One warp: a lane
 * a distance. Where shells are lists, whoever is passed over in groups is of the last. */
__device__ static void set_bounds(const sampling &options, const query &asked, drawing &draw) {
    int32_t distance = threadIdx.x % 32;
    if (distance >= 16) return;
    int32_t shell = options.shells == MATRIX ? shell_at(asked, distance) : asked.last;
    uint32_t most = __float_as_uint(128.0f) >> 1, octaves = draw.octaves[shell];
    uint32_t key = draw.threshold > octaves ? min(draw.threshold - octaves, most) : 0;
    float drawn = __uint_as_float(key << 1) / draw.scale[shell] * 1.0001f;
    float bound = -expm1f(-drawn) * (LEADING + 1) + 1e-3f;
    reinterpret_cast<uint8_t *>(&draw.bound)[distance] =
        static_cast<uint8_t>(min(static_cast<int>(bound), static_cast<int>(LEADING)));
}

/* Makes ready for keys, with a threshold up to which `wanted` are expected; of `most` entities or fewer
 * all are kept. All threads, after open_shells. */
__device__ static void open_threshold(const sampling &options, const query &asked, drawing &draw,
                                      int32_t wanted, int32_t most) {
    if (threadIdx.x < 32) {
        int32_t shell = threadIdx.x;
        unsigned some = __ballot_sync(ALL_LANES, shell <= asked.last && draw.left[shell] > 0);
        int32_t first = some ? __ffs(static_cast<int>(some)) - 1 : 0;
        double octaves = fmin(static_cast<double>(options.alpha0) * 1.4426950408889634, MAX_OCTAVES);
        double mine = shell > first ? octaves * (shell - first) : 0, whole = floor(mine);
        if (shell < MAX_SHELLS) {
            draw.octaves[shell] = static_cast<uint32_t>(whole) << KEY_OCTAVE;
            draw.scale[shell] = exp2f(static_cast<float>(mine - whole));
        }
        uint32_t threshold = UINT32_MAX;
        if (asked.remain > most) {
            float level = solve_threshold(asked, draw, first, static_cast<float>(octaves),
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
        set_bounds(options, asked, draw);
    }
    __syncthreads();
}

/* Whether least .. most keys were found up to the threshold, or no threshold is between one of too few
 * and one of too many; otherwise it moves. All threads; draw.kept is read, and begins anew. */
__device__ static bool settle(const sampling &options, const query &asked, drawing &draw, int32_t least,
                              int32_t most) {
    __syncthreads();
    bool few = draw.kept < least;
    uint32_t low = few ? draw.threshold : draw.low, high = few ? draw.high : draw.threshold;
    if (!few && (draw.kept <= most || high - low <= 1)) return true;
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
        set_bounds(options, asked, draw);
    }
    __syncthreads();
    return false;
}

/* ---- Passing over the entities ------------------------------------------------------------------- */

/* Bytes of `low` (0 .. 3) and `high` (4 .. 7), chosen by the four lower half-bytes of `which`. From 8 on
 * they choose the sign of a byte: none where bytes are below 128. */
__device__ static uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t which) {
    uint32_t chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(which));
    return chosen;
}

/* Whose leading bits are not above the bound of their distance, among the sixteen that share words: bit
 * 8 j + i is entity 4 i + j. No byte borrows from the next: 128 stands above the bound. */
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

/* The sum of the lanes up to mine. */
__device__ static int32_t sum_through(int32_t value) {
    int32_t lane = threadIdx.x % 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        int32_t other = __shfl_up_sync(ALL_LANES, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

/* The distances of a group. */
__device__ static uint4 distances_of(const query &asked, int32_t group, int32_t groups) {
    if (!asked.distances || group >= groups) return make_uint4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const uint4 *>(asked.distances) + group);
}

/* Calls keep(entity) for everyone whose key may be up to the threshold, known ones among them, in any
 * order: whole warps at a time, -1 where a lane has none. Who passes the bounds waits in line until
 * there is one for every lane. */
template <class Keep>
__device__ static void pass_over(const sampling &options, const query &asked, const drawing &draw,
                                 Keep keep) {
    __shared__ int32_t lines[MAX_SAMPLE_THREADS / 32][ROOM];
    int32_t lane = threadIdx.x % 32, *line = lines[threadIdx.x / 32], waiting = 0;
    int32_t groups = (options.entities + GROUP - 1) / GROUP, step = blockDim.x;
    uint4 bound = draw.bound;
    auto hand_on = [&](int32_t entity) {
        if (entity >= options.entities) entity = -1;
        /* Those of the near lists come later. */
        if (options.shells == LISTS && entity >= 0 && shell_of(options, asked, entity) != asked.last)
            entity = -1;
        keep(entity);
    };
    uint4 next = distances_of(asked, threadIdx.x, groups);
    for (int32_t group = threadIdx.x; group - lane < groups; group += step) {
        uint4 distances = next;
        next = distances_of(asked, group + step, groups);
        uint32_t within =
            within_bounds(words_of(options, asked, 2 * group), distances.x, distances.y, bound);
        within |= within_bounds(words_of(options, asked, 2 * group + 1), distances.z, distances.w, bound)
                  << 4;
        if (group >= groups) within = 0;
        int32_t mine = __popc(within), through = sum_through(mine), place = waiting + through - mine;
        int32_t total = waiting + __shfl_sync(ALL_LANES, through, 31);
        for (; total > 0; total -= ROOM, place -= ROOM) {
            for (; within && place < ROOM; place++) {
                uint32_t bit = 31 - static_cast<uint32_t>(__clz(static_cast<int>(within)));
                within ^= 1u << bit;
                line[place] = GROUP * group + static_cast<int32_t>(bit % 8 * 4 + bit / 8);
            }
            __syncwarp();
            int32_t there = min(total, static_cast<int32_t>(ROOM));
            waiting = there % 32;
            for (int32_t at = waiting; at < there; at += 32) hand_on(line[at + lane]);
            __syncwarp();
        }
    }
    if (waiting > 0) hand_on(lane < waiting ? line[lane] : -1);
    if (options.shells != LISTS) return;
    /* The members of the near lists, and the head, which stands in none. */
    const vlp_shell_view &view = options.view;
    const int32_t *counts = view.counts + static_cast<int64_t>(asked.head) * (view.limit + 1);
    const int32_t *members = view.near_member + view.near_offset[asked.head];
    int32_t count = 0;
    for (int32_t d = 1; d < asked.last; d++) count += counts[d];
    for (int32_t i = threadIdx.x; i - lane <= count; i += step)
        keep(i < count ? members[i] : i == count && asked.last > 1 ? asked.head : -1);
}

#endif
