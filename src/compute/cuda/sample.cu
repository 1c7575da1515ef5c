/* Negatives by p0, without replacement, known answers left out, by exponential keys (sample_keys.h): the
 * `count` smallest keys are a draw without replacement in proportion to the weights. They are put down
 * in the order of entities.
 *
 * Keys are not made for everyone. The sizes of the shells are known, and so is the number of keys
 * expected up to a threshold: with one that lets through a few more than are wanted, only those are
 * chosen from. Where chance lets through too few or too many, the threshold moves and the block tries
 * again: the keys are functions of (seed, step, query, entity), so that the result does not depend on
 * it.
 *
 * A block draws for one query. */
#include <cassert>
#include <cmath>

#include "compute/cuda/sample_keys.h"

enum {
    MAX_KEPT = 8192,
    BINS = 512,          /* of keys, 64 an octave at first */
    FEW_TOGETHER = 64,   /* keys that are compared each with each */
    FIXED_SHARED = 12288 /* bytes of shared memory that do not grow with the work, and some to spare */
};

/* ---- A few: kept in shared memory, and the smallest keys chosen among them ------------------------ */

/* Places behind one another for the lanes of a warp that want one. All lanes. */
__device__ static int32_t take_place(int32_t *taken, bool wanted) {
    unsigned some = __ballot_sync(ALL_LANES, wanted);
    int32_t lane = threadIdx.x % 32, begin = 0;
    if (lane == 0 && some) begin = atomicAdd(taken, __popc(some));
    return __shfl_sync(ALL_LANES, begin, 0) + __popc(some & ((1u << lane) - 1));
}

/* Keys below low are chosen and keys above high are not; of the `together` others, all but the `excess`
 * largest. */
typedef struct selection {
    uint32_t low, high;
    int32_t excess, together;
} selection;

/* The bin where the excess ends, counted from the first; found.excess and found.together become those of
 * the bin. One warp, every one for itself. */
__device__ static int32_t find_bin(selection &found, const int32_t *bins) {
    int32_t lane = threadIdx.x % 32;
    for (int32_t start = 0;; start += 128) {
        int4 four = reinterpret_cast<const int4 *>(bins + start)[lane];
        int32_t sum = four.x + four.y + four.z + four.w, through = sum_through(sum);
        unsigned reached = __ballot_sync(ALL_LANES, through >= found.excess);
        if (!reached) {
            found.excess -= __shfl_sync(ALL_LANES, through, 31);
            continue;
        }
        int32_t bin = start + 4 * lane, excess = found.excess - (through - sum);
        const int32_t sizes[] = {four.x, four.y, four.z, four.w};
        int32_t size = sizes[0];
#pragma unroll
        for (int i = 1; i < 4; i++)
            if (bin % 4 == i - 1 && excess > size) {
                excess -= size;
                size = sizes[i];
                bin++;
            }
        int source = __ffs(static_cast<int>(reached)) - 1;
        found.excess = __shfl_sync(ALL_LANES, excess, source);
        found.together = __shfl_sync(ALL_LANES, size, source);
        return __shfl_sync(ALL_LANES, bin, source);
    }
}

/* Where the smallest `count` of the kept keys end: keys are counted in bins from the threshold down, and
 * again within the bin where the end is while there are many in it. All threads; keys: (kept) with their
 * entities below them. */
__device__ static selection select_keys(const uint64_t *keys, int32_t kept, int32_t count,
                                        uint32_t threshold) {
    __shared__ __align__(16) int32_t bins[BINS];
    selection found = {0, threshold, kept - count, kept};
    if (found.excess <= 0) {
        __syncthreads();
        return {UINT32_MAX, UINT32_MAX, 0, 0};
    }
    /* Mostly the end is less than an octave below the threshold; the last bin takes what is far below.
     */
    int shift = KEY_OCTAVE - 6;
    for (;;) {
        __syncthreads();
        for (int32_t i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
        __syncthreads();
        for (int32_t i = threadIdx.x; i < kept; i += blockDim.x) {
            uint32_t key = static_cast<uint32_t>(keys[i] >> 32);
            if (key < found.low || key > found.high) continue;
            atomicAdd(&bins[min((found.high - key) >> shift, static_cast<uint32_t>(BINS) - 1)], 1);
        }
        __syncthreads();
        int32_t bin = find_bin(found, bins);
        uint32_t width = (1u << shift) - 1;
        found.high -= static_cast<uint32_t>(bin) << shift;
        if (bin < BINS - 1 && found.high - found.low > width) found.low = found.high - width;
        if (found.together <= FEW_TOGETHER || found.low == found.high) return found;
        shift = max(32 - __clz(static_cast<int>(found.high - found.low)) - 9, 0);
    }
}

/* Sets the bits of the smallest keys. All threads; line: (kept). */
__device__ static void mark_chosen(uint32_t *bits, const selection &found, const uint64_t *keys,
                                   int32_t kept, int32_t *line, int32_t *together) {
    for (int32_t i = threadIdx.x; i < kept; i += blockDim.x) {
        uint32_t key = static_cast<uint32_t>(keys[i] >> 32), entity = static_cast<uint32_t>(keys[i]);
        if (key < found.low)
            atomicOr(&bits[entity / 32], 1u << (entity % 32));
        else if (key <= found.high)
            line[atomicAdd(together, 1)] = i;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < *together; i += blockDim.x) {
        uint64_t key = keys[line[i]];
        uint32_t entity = static_cast<uint32_t>(key);
        int32_t larger = 0;
        for (int32_t j = 0; j < *together; j++) larger += keys[line[j]] > key;
        if (larger >= found.excess) atomicOr(&bits[entity / 32], 1u << (entity % 32));
    }
    __syncthreads();
}

/* Writes the entities whose bits are set, ascending, -1 behind the last. All threads; line: (count), by
 * which they go to memory side by side. */
__device__ static void write_set(int32_t *row, int32_t *line, const uint32_t *bits, int32_t entities,
                                 int32_t count) {
    __shared__ int32_t sums[32];
    int32_t threads = blockDim.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t words = (entities + 31) / 32, each = (words + threads - 1) / threads;
    int32_t begin = each * static_cast<int32_t>(threadIdx.x), end = min(begin + each, words), mine = 0;
    for (int32_t at = begin; at < end; at++) mine += __popc(bits[at]);
    int32_t place = sum_through(mine);
    if (lane == 31) sums[warp] = place;
    __syncthreads();
    int32_t sum = lane < threads / 32 ? sums[lane] : 0, total = warp_sum(sum);
    place += warp_sum(lane < warp ? sum : 0) - mine;
    for (int32_t at = begin; at < end; at++)
        for (uint32_t word = bits[at]; word; word &= word - 1)
            line[place++] = 32 * at + __ffs(static_cast<int>(word)) - 1;
    __syncthreads();
    for (int32_t i = threadIdx.x; i < count; i += threads) row[i] = i < total ? line[i] : -1;
}

template <source Shells>
__global__ static void __launch_bounds__(MAX_SAMPLE_THREADS, 2)
    sample_few(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
               const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    /* (capacity) keys with their entities, then line (capacity), then a bit an entity: known ones, later
     * those that are chosen */
    extern __shared__ uint64_t keys[];
    int32_t *line = reinterpret_cast<int32_t *>(keys + options.capacity);
    uint32_t *bits = reinterpret_cast<uint32_t *>(line + options.capacity);
    __shared__ drawing draw;
    __shared__ int32_t together;
    options.shells = Shells;
    query asked = open_query(options, heads, known_begin, known_end, known, values);
    int32_t words = (options.entities + 31) / 32, capacity = options.capacity, count = options.count;
    for (int32_t i = threadIdx.x; i < words; i += blockDim.x) bits[i] = 0;
    open_shells(options, asked, draw, bits);
    open_threshold(options, asked, draw, (count + capacity) / 2, capacity);
    do {
        pass_over(options, asked, draw, [&](int32_t entity) {
            bool kept = entity >= 0 && !(bits[entity / 32] >> (entity % 32) & 1);
            uint32_t key = kept ? key_of(options, asked, draw, entity) : 0;
            kept = kept && key <= draw.threshold;
            int32_t place = take_place(&draw.kept, kept);
            if (kept && place < capacity)
                keys[place] = static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(entity);
        });
    } while (!settle(options, asked, draw, min(asked.remain, count), capacity));
    int32_t kept = min(draw.kept, capacity);
    for (int32_t i = threadIdx.x; i < words; i += blockDim.x) bits[i] = 0;
    if (threadIdx.x == 0) together = 0;
    selection found = select_keys(keys, kept, count, draw.threshold);
    mark_chosen(bits, found, keys, kept, line, &together);
    write_set(entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1, line, bits,
              options.entities, count);
}

/* ---- Many: the threshold is found to the key, and all up to it are taken in order ---------------- */

template <source Shells>
__global__ static void __launch_bounds__(MAX_SAMPLE_THREADS, 2)
    sample_many(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
                const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    __shared__ drawing draw;
    options.shells = Shells;
    query asked = open_query(options, heads, known_begin, known_end, known, values);
    int32_t count = options.count;
    open_shells(options, asked, draw, nullptr);
    open_threshold(options, asked, draw, count, count);
    if (asked.remain > count) {
        do {
            pass_over(options, asked, draw, [&](int32_t entity) {
                bool kept = entity >= 0 && key_of(options, asked, draw, entity) <= draw.threshold;
                take_place(&draw.kept, kept && !is_known(asked, entity));
            });
        } while (!settle(options, asked, draw, count, count));
    }
    /* Of equal keys that are a few too many together, the first are taken. */
    int32_t *row = entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1, used = 0;
    for (int32_t start = 0; start < options.entities && used < count; start += blockDim.x) {
        int32_t entity = start + threadIdx.x, total;
        bool taken = entity < options.entities &&
                     key_of(options, asked, draw, entity) <= draw.threshold && !is_known(asked, entity);
        int32_t place = used + place_of(taken, &total);
        if (taken && place < count) row[place] = entity;
        used += total;
    }
    for (int32_t i = used + threadIdx.x; i < count; i += blockDim.x) row[i] = -1;
}

/* ---- The operation ------------------------------------------------------------------------------- */

/* Threads a query, so that as many queries as can be are drawn for at once. */
static int threads_for(const vlp_compute *compute, int32_t batch) {
    int32_t together = (batch + compute->multiprocessors - 1) / compute->multiprocessors;
    return together <= 2 ? MAX_SAMPLE_THREADS : together <= 4 ? 256 : 128;
}

template <source Shells>
static vlp_status sample(vlp_compute *compute, int32_t *entities, const vlp_sampled_queries *queries,
                         const vlp_sample_options *options) {
    unsigned batch = static_cast<unsigned>(queries->count);
    sampling work = {};
    if (options->shells) work.view = *options->shells;
    work.alpha0 = options->alpha0;
    work.entities = options->entities;
    work.count = options->count;
    work.seed = options->seed;
    /* Twice six deviations and a few: as good as never too few or too many. */
    double room = options->count + 2 * (6 * std::sqrt(static_cast<double>(options->count)) + 32);
    if (room > MAX_KEPT) room = MAX_KEPT;
    work.capacity = static_cast<int32_t>(room);
    size_t bytes = static_cast<size_t>(work.capacity) * (sizeof(uint64_t) + sizeof(int32_t)) +
                   static_cast<size_t>(options->entities + 31) / 32 * sizeof(uint32_t);
    if (room >= MAX_KEPT || bytes > compute->shared_limit - FIXED_SHARED) {
        LAUNCH(compute, sample_many<Shells>, batch, MAX_SAMPLE_THREADS, 0, entities, work,
               queries->heads, queries->known_begin, queries->known_end, queries->known,
               compute->values);
        return cuda_status(compute);
    }
    cuda_note(compute,
              cudaFuncSetAttribute(sample_few<Shells>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes)),
              "asking for shared memory");
    LAUNCH(compute, sample_few<Shells>, batch, threads_for(compute, queries->count), bytes, entities,
           work, queries->heads, queries->known_begin, queries->known_end, queries->known,
           compute->values);
    return cuda_status(compute);
}

static vlp_status sample_negatives(vlp_compute *compute, int32_t *entities,
                                   const vlp_sampled_queries *queries,
                                   const vlp_sample_options *options) {
    const vlp_shell_view *shells = options->shells;
    compute->pairs_of = nullptr;
    if (queries->count == 0 || options->count == 0) return cuda_status(compute);
    assert(!shells || !shells->matrix || shells->stride % 16 == 0);
    return (!shells          ? sample<UNIFORM>
            : shells->matrix ? sample<MATRIX>
                             : sample<LISTS>)(compute, entities, queries, options);
}

const vlp_sample_operations cuda_sample_operations = {.negatives = sample_negatives};
