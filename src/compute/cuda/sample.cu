/* Negatives by p0, without replacement, known answers left out, by exponential keys: entity e gets the
 * key E / w with E drawn from the exponential distribution and w the weight of its shell; the `count`
 * smallest keys are a draw without replacement in proportion to the weights, in the order of drawing.
 *
 * Keys are not made for everyone. The sizes of the shells are known, and so is the number of keys
 * expected below a threshold: with one that lets through a few more than are wanted, an entity is tested
 * by comparing its random word with a bound for its shell, and only those that pass get a key and are
 * sorted. Where chance lets through too few or too many, the threshold moves and the block tries again:
 * the words are functions of (seed, step, query, entity), so that the result does not depend on it.
 *
 * A block draws for one query. */
#include <cmath>

#include "base/random.h"
#include "compute/cuda/device.h"

enum { MOST_SHELLS = 16, SAMPLE_THREADS = 512, MOST_KEPT = 8192 };

typedef struct sampling {
    vlp_shell_view view;
    bool uniform, matrix;
    float alpha0;
    int32_t entities, count, capacity; /* capacity: of those that are kept, a power of two */
    uint64_t seed;
} sampling;

/* One query's drawing, in shared memory. */
typedef struct drawing {
    int32_t head, shells, first; /* first: the nearest shell that has members left */
    int32_t left[MOST_SHELLS];
    uint64_t bound[MOST_SHELLS]; /* words below it are kept; 2^32: all */
    const int32_t *known;
    int32_t known_count;
    int64_t remain;
    uint64_t counter; /* of the random words */
    int32_t kept;
    double level, low, high; /* logarithm of the threshold, and what is known about it */
} drawing;

/* The place of an entity in an ascending list, or -1. */
__device__ static int32_t find(const int32_t *list, int32_t count, int32_t entity) {
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (list[middle] < entity)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low] == entity ? low : -1;
}

/* The shell of an entity: distances 0 and 1 are shell 1 (a head is as near as a neighbour), what is
 * farther than the last shell belongs to it. Shell 0 is all entities when draws are uniform. */
__device__ static int32_t shell_of(const sampling &options, const drawing &draw, int32_t entity) {
    const vlp_shell_view &view = options.view;
    if (options.uniform) return 0;
    int32_t distance = view.limit + 1;
    if (options.matrix) {
        distance = view.matrix[draw.head * view.stride + entity / 2] >> (entity % 2 * 4) & 15;
    } else if (entity == draw.head) {
        distance = 0;
    } else {
        const int32_t *counts = view.counts + static_cast<int64_t>(draw.head) * (view.limit + 1);
        const int32_t *members = view.near_member + view.near_offset[draw.head];
        for (int32_t d = 1; d <= view.near[draw.head]; members += counts[d++])
            if (find(members, counts[d], entity) >= 0) {
                distance = d;
                break;
            }
    }
    if (distance < 1) distance = 1;
    return distance < draw.shells ? distance : draw.shells - 1;
}

/* Members of the shells of a head, known answers among them. One thread. */
__device__ static void open_shells(const sampling &options, drawing &draw) {
    const vlp_shell_view &view = options.view;
    for (int d = 0; d < MOST_SHELLS; d++) draw.left[d] = 0;
    if (options.uniform) {
        draw.shells = 1;
        draw.left[0] = options.entities;
        return;
    }
    const int32_t *counts = view.counts + static_cast<int64_t>(draw.head) * (view.limit + 1);
    int32_t last = options.matrix ? view.limit : view.near[draw.head] + 1, rest = options.entities;
    if (last > view.limit) last = view.limit;
    draw.shells = last + 1;
    for (int32_t d = 1; d < last; d++) {
        draw.left[d] = counts[d] + (d == 1 ? counts[0] : 0);
        rest -= draw.left[d];
    }
    draw.left[last] = rest;
}

/* How many keys are expected below the threshold exp(level). One warp: a lane a shell. */
__device__ static float expected(const sampling &options, const drawing &draw, double level) {
    int d = threadIdx.x % 32;
    float part = 0;
    if (d < draw.shells && draw.left[d] > 0) {
        float power =
            expf(static_cast<float>(level - static_cast<double>(options.alpha0) * (d - draw.first)));
        part = -expm1f(-power) * static_cast<float>(draw.left[d]);
    }
    return warp_sum(part);
}

/* A threshold below which `wanted` keys are expected. One warp. */
__device__ static double solve_level(const sampling &options, const drawing &draw, float wanted) {
    double low = -60, high = static_cast<double>(options.alpha0) * MOST_SHELLS + 60;
    for (int i = 0; i < 48; i++) {
        double middle = 0.5 * (low + high);
        if (expected(options, draw, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Bounds of the random words for a threshold. One thread a shell. */
__device__ static void set_bounds(const sampling &options, drawing &draw, bool all) {
    int d = threadIdx.x;
    if (d >= MOST_SHELLS) return;
    double power = exp(draw.level - static_cast<double>(options.alpha0) * (d - draw.first));
    double bound = all || !isfinite(power) ? 0x1p32 : ceil(-expm1(-power) * 0x1p32);
    draw.bound[d] = bound >= 0x1p32 ? static_cast<uint64_t>(1) << 32 : static_cast<uint64_t>(bound);
}

/* The logarithm of a key: of E / w, relative to the weight of the nearest shell. */
__device__ static double key_of(const sampling &options, const drawing &draw, uint32_t word,
                                int32_t shell) {
    double unit = (static_cast<double>(word) + 0.5) * 0x1p-32;
    return log(-log1p(-unit)) + static_cast<double>(options.alpha0) * (shell - draw.first);
}

/* ---- Passing over the entities ------------------------------------------------------------------- */

__device__ static vlp_random4 words_of(const sampling &options, const drawing &draw, int32_t block) {
    return vlp_random(options.seed, VLP_STREAM_KEYS, draw.counter, static_cast<uint32_t>(block));
}

/* Whether an entity whose word passed is really there to be drawn. */
__device__ static bool is_there(const drawing &draw, int32_t entity) {
    return find(draw.known, draw.known_count, entity) < 0;
}

/* Calls keep(entity, word, shell) for everyone whose word is below the bound of its shell, in any order.
 */
template <class Keep>
__device__ static void pass_over(const sampling &options, const drawing &draw, Keep keep) {
    const vlp_shell_view &view = options.view;
    bool lists = !options.uniform && !options.matrix;
    int32_t rest = options.uniform ? 0 : draw.shells - 1;
    const uint8_t *row = options.matrix ? view.matrix + draw.head * view.stride : nullptr;
    for (int32_t block = threadIdx.x; block * 4 < options.entities; block += blockDim.x) {
        vlp_random4 words = words_of(options, draw, block);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int32_t entity = 4 * block + i, shell = rest;
            if (entity >= options.entities) break;
            if (row) {
                int32_t distance = row[entity / 2] >> (entity % 2 * 4) & 15;
                shell = distance < 1 ? 1 : distance < draw.shells ? distance : rest;
            }
            if (words.v[i] >= draw.bound[shell]) continue;
            if (lists && shell_of(options, draw, entity) != rest) continue;
            if (is_there(draw, entity)) keep(entity, words.v[i], shell);
        }
    }
    if (!lists) return;
    /* Those of the near lists, and the head, which stands in none. */
    const int32_t *counts = view.counts + static_cast<int64_t>(draw.head) * (view.limit + 1);
    const int32_t *members = view.near_member + view.near_offset[draw.head];
    for (int32_t d = 0; d <= view.near[draw.head]; d++) {
        int32_t shell = d < 1 ? 1 : d, count = d == 0 ? 1 : counts[d];
        for (int32_t i = threadIdx.x; shell < rest && i < count; i += blockDim.x) {
            int32_t entity = d == 0 ? draw.head : members[i];
            uint32_t word = words_of(options, draw, entity / 4).v[entity % 4];
            if (word < draw.bound[shell] && is_there(draw, entity)) keep(entity, word, shell);
        }
        if (d > 0) members += counts[d];
    }
}

/* Sets up a query. All threads. */
__device__ static void open_drawing(const sampling &options, drawing &draw, const int32_t *heads,
                                    const int64_t *known_begin, const int64_t *known_end,
                                    const int32_t *known, const vlp_step_values *values) {
    int64_t query = blockIdx.x;
    if (threadIdx.x == 0) {
        draw.head = heads[query];
        draw.known = known + known_begin[query];
        draw.known_count = static_cast<int32_t>(known_end[query] - known_begin[query]);
        draw.counter = static_cast<uint64_t>(values->step) << 32 | static_cast<uint32_t>(query);
        open_shells(options, draw);
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < draw.known_count; i += blockDim.x)
        atomicSub(&draw.left[shell_of(options, draw, draw.known[i])], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        draw.remain = 0;
        draw.first = 0;
        for (int32_t d = draw.shells - 1; d >= 0; d--) {
            draw.remain += draw.left[d];
            if (draw.left[d] > 0) draw.first = d;
        }
        draw.low = -INFINITY;
        draw.high = INFINITY;
        draw.level = 0;
    }
    __syncthreads();
}

/* Moves the threshold after `kept` keys were found below it, of which there should be least .. most.
 * Returns whether it is good. All threads; draw.kept is read. */
__device__ static bool settle(drawing &draw, int64_t least, int64_t most) {
    __syncthreads();
    int64_t kept = draw.kept;
    __syncthreads();
    if (kept >= least && kept <= most) return true;
    if (threadIdx.x == 0) {
        if (kept < least)
            draw.low = draw.level;
        else
            draw.high = draw.level;
        draw.level = isinf(draw.high)  ? draw.low + 0.5
                     : isinf(draw.low) ? draw.high - 0.5
                                       : 0.5 * (draw.low + draw.high);
    }
    __syncthreads();
    return false;
}

/* ---- A few: kept in shared memory and sorted ----------------------------------------------------- */

/* Ascending by key, then entity; places beyond the last hold infinity. */
__device__ static void sort_kept(double *keys, int32_t *ids, int32_t size) {
    for (int32_t length = 2; length <= size; length *= 2)
        for (int32_t apart = length / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int32_t i = threadIdx.x; i < size / 2; i += blockDim.x) {
                int32_t low = 2 * i - (i & (apart - 1)), high = low + apart;
                bool up = (low & length) == 0;
                double a = keys[low], b = keys[high];
                int32_t left = ids[low], right = ids[high];
                bool after = a > b || (a == b && left > right);
                if (after != up) continue;
                keys[low] = b, keys[high] = a;
                ids[low] = right, ids[high] = left;
            }
        }
    __syncthreads();
}

__global__ static void __launch_bounds__(SAMPLE_THREADS)
    sample_few(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
               const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    extern __shared__ double keys[]; /* (capacity), then ids (capacity) */
    int32_t *ids = reinterpret_cast<int32_t *>(keys + options.capacity);
    __shared__ drawing draw;
    open_drawing(options, draw, heads, known_begin, known_end, known, values);
    int32_t capacity = options.capacity, count = options.count;
    int64_t least = draw.remain < count ? draw.remain : count;
    bool all = draw.remain <= capacity;
    if (!all && threadIdx.x < 32) {
        double level = solve_level(options, draw, 0.5f * static_cast<float>(count + capacity));
        if (threadIdx.x == 0) draw.level = level;
    }
    for (int round = 0; round < 200; round++) {
        __syncthreads();
        set_bounds(options, draw, all);
        if (threadIdx.x == 0) draw.kept = 0;
        __syncthreads();
        pass_over(options, draw, [&](int32_t entity, uint32_t word, int32_t shell) {
            int32_t place = atomicAdd(&draw.kept, 1);
            if (place >= capacity) return;
            keys[place] = key_of(options, draw, word, shell);
            ids[place] = entity;
        });
        if (settle(draw, least, capacity)) break;
    }
    int32_t kept = draw.kept < capacity ? draw.kept : capacity, size = 1;
    while (size < kept) size *= 2;
    for (int32_t i = kept + threadIdx.x; i < size; i += blockDim.x) {
        keys[i] = INFINITY;
        ids[i] = INT32_MAX;
    }
    sort_kept(keys, ids, size);
    int32_t *row = entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1;
    for (int32_t i = threadIdx.x; i < count; i += blockDim.x) row[i] = i < kept ? ids[i] : -1;
}

/* ---- Many: the threshold is found to the key, and all below it are taken in order ---------------- */

__global__ static void __launch_bounds__(SAMPLE_THREADS)
    sample_many(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
                const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    __shared__ drawing draw;
    open_drawing(options, draw, heads, known_begin, known_end, known, values);
    int32_t count = options.count;
    bool all = draw.remain <= count;
    if (!all && threadIdx.x < 32) {
        double level = solve_level(options, draw, static_cast<float>(count));
        if (threadIdx.x == 0) draw.level = level;
    }
    bool settled = all;
    for (int round = 0; round < 200 && !settled; round++) {
        __syncthreads();
        set_bounds(options, draw, false);
        if (threadIdx.x == 0) draw.kept = 0;
        __syncthreads();
        pass_over(options, draw, [&](int32_t, uint32_t, int32_t) { atomicAdd(&draw.kept, 1); });
        settled = settle(draw, count, count);
    }
    /* Equal keys cannot be told apart: of a few too many, the first are taken. */
    if (!settled && threadIdx.x == 0) draw.level = draw.high;
    __syncthreads();
    set_bounds(options, draw, all);
    __syncthreads();
    int32_t *row = entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1, used = 0;
    for (int32_t start = 0; start < options.entities && used < count; start += blockDim.x) {
        int32_t entity = start + threadIdx.x, total;
        bool taken = false;
        if (entity < options.entities) {
            uint32_t word = words_of(options, draw, entity / 4).v[entity % 4];
            taken = word < draw.bound[shell_of(options, draw, entity)] && is_there(draw, entity);
        }
        int32_t place = used + place_of(taken, &total);
        if (taken && place < count) row[place] = entity;
        used += total;
    }
    for (int32_t i = used + threadIdx.x; i < count; i += blockDim.x) row[i] = -1;
}

/* ---- The operation ------------------------------------------------------------------------------- */

vlp_status cuda_sample(vlp_compute *compute, int32_t *entities, const int32_t *heads, int32_t batch,
                       const int64_t *known_begin, const int64_t *known_end, const int32_t *known,
                       const vlp_sample_options *options) {
    compute->pairs_of = nullptr;
    if (batch == 0 || options->count == 0) return cuda_status(compute);
    sampling work = {};
    if (options->shells) work.view = *options->shells;
    work.uniform = !options->shells;
    work.matrix = options->shells && options->shells->matrix;
    work.alpha0 = options->alpha0;
    work.entities = options->entities;
    work.count = options->count;
    work.seed = options->seed;
    /* Twice six deviations and a few: as good as never too few or too many. */
    double room = options->count + 2 * (6 * std::sqrt(static_cast<double>(options->count)) + 32);
    work.capacity = 64;
    while (work.capacity < room && work.capacity <= MOST_KEPT) work.capacity *= 2;
    if (work.capacity > MOST_KEPT) {
        LAUNCH(compute, sample_many, static_cast<unsigned>(batch), SAMPLE_THREADS, 0, entities, work,
               heads, known_begin, known_end, known, compute->values);
        return cuda_status(compute);
    }
    size_t bytes = static_cast<size_t>(work.capacity) * (sizeof(double) + sizeof(int32_t));
    cuda_note(compute,
              cudaFuncSetAttribute(sample_few, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes)),
              "asking for shared memory");
    LAUNCH(compute, sample_few, static_cast<unsigned>(batch), SAMPLE_THREADS, bytes, entities, work,
           heads, known_begin, known_end, known, compute->values);
    return cuda_status(compute);
}
