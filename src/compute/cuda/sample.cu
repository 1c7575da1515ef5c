/* Negatives by p0, without replacement, without known answers, by exponential keys (sample_keys.h): the
 * `count` smallest keys are a draw without replacement in proportion to the weights. They are written in
 * ascending order of entities.
 *
 * Keys are not computed for all entities. The sizes of the shells are known, and so is the expected
 * number of keys up to a threshold: with a threshold for a few more than `count`, only the keys below it
 * are compared. Where by chance these are too few or too many, the threshold is changed and the block
 * repeats the pass: keys are functions of (seed, step, query, entity), so that the result does not
 * depend on the threshold.
 *
 * One block per query. */
#include <cassert>
#include <cmath>

#include "compute/cuda/sample_keys.h"

enum {
    MAX_KEPT = 8192,
    BINS = 512,          /* of keys, 64 per octave at first */
    FEW_TOGETHER = 64,   /* keys that are compared pairwise, at most */
    FIXED_SHARED = 12288 /* bytes of static shared memory, rounded up */
};

/* ---- Few negatives: keys below the threshold in shared memory, the smallest selected ------------- */

/* Consecutive slots for the lanes of a warp that want one. Called by all lanes. */
__device__ static int32_t take_slot(int32_t *taken, bool wanted) {
    unsigned some = __ballot_sync(ALL_LANES, wanted);
    int32_t lane = threadIdx.x % 32, begin = 0;
    if (lane == 0 && some) begin = atomicAdd(taken, __popc(some));
    return __shfl_sync(ALL_LANES, begin, 0) + __popc(some & ((1u << lane) - 1));
}

/* Keys below low are selected and keys above high are not; of the `together` others, all but the
 * `excess` largest are. */
typedef struct selection {
    uint32_t low, high;
    int32_t excess, together;
} selection;

/* The bin where the excess ends, counted from the first; found.excess and found.together become those of
 * the bin. Every warp computes it for itself. */
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

/* Selects the smallest `count` of the kept keys: keys are counted in bins from the threshold down, and
 * again within the bin where the excess ends while it holds many. Called by all threads; keys (kept):
 * the key in the upper half, the entity in the lower. */
__device__ static selection select_keys(const uint64_t *keys, int32_t kept, int32_t count,
                                        uint32_t threshold) {
    __shared__ __align__(16) int32_t bins[BINS];
    selection found = {0, threshold, kept - count, kept};
    if (found.excess <= 0) {
        __syncthreads();
        return {UINT32_MAX, UINT32_MAX, 0, 0};
    }
    /* Mostly the excess ends less than an octave below the threshold; the last bin holds all keys far
     * below. */
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

/* Sets the bits of the selected keys' entities. Called by all threads; queue (kept): working memory. */
__device__ static void mark_selected(uint32_t *bits, const selection &found, const uint64_t *keys,
                                     int32_t kept, int32_t *queue, int32_t *together) {
    for (int32_t i = threadIdx.x; i < kept; i += blockDim.x) {
        uint32_t key = static_cast<uint32_t>(keys[i] >> 32), entity = static_cast<uint32_t>(keys[i]);
        if (key < found.low)
            atomicOr(&bits[entity / 32], 1u << (entity % 32));
        else if (key <= found.high)
            queue[atomicAdd(together, 1)] = i;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < *together; i += blockDim.x) {
        uint64_t key = keys[queue[i]];
        uint32_t entity = static_cast<uint32_t>(key);
        int32_t larger = 0;
        for (int32_t j = 0; j < *together; j++) larger += keys[queue[j]] > key;
        if (larger >= found.excess) atomicOr(&bits[entity / 32], 1u << (entity % 32));
    }
    __syncthreads();
}

/* Writes the entities whose bits are set in ascending order, then -1. Called by all threads; queue
 * (count): working memory in shared memory, from which stores are coalesced. */
__device__ static void write_set(int32_t *row, int32_t *queue, const uint32_t *bits, int32_t entities,
                                 int32_t count) {
    __shared__ int32_t sums[32];
    int32_t threads = blockDim.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t words = (entities + 31) / 32, each = (words + threads - 1) / threads;
    int32_t begin = each * static_cast<int32_t>(threadIdx.x), end = min(begin + each, words), mine = 0;
    for (int32_t at = begin; at < end; at++) mine += __popc(bits[at]);
    int32_t next = sum_through(mine);
    if (lane == 31) sums[warp] = next;
    __syncthreads();
    int32_t sum = lane < threads / 32 ? sums[lane] : 0, total = warp_sum(sum);
    next += warp_sum(lane < warp ? sum : 0) - mine;
    for (int32_t at = begin; at < end; at++)
        for (uint32_t word = bits[at]; word; word &= word - 1)
            queue[next++] = 32 * at + __ffs(static_cast<int>(word)) - 1;
    __syncthreads();
    for (int32_t i = threadIdx.x; i < count; i += threads) row[i] = i < total ? queue[i] : -1;
}

template <source Shells>
__global__ static void __launch_bounds__(MAX_SAMPLE_THREADS, 2)
    sample_few(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
               const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    /* (capacity) keys with their entities, then queue (capacity), then one bit per entity: of known
     * answers, later of selected entities */
    extern __shared__ uint64_t keys[];
    int32_t *queue = reinterpret_cast<int32_t *>(keys + options.capacity);
    uint32_t *bits = reinterpret_cast<uint32_t *>(queue + options.capacity);
    __shared__ drawing draw;
    __shared__ int32_t together;
    options.shells = Shells;
    sampled_query query = open_query(options, heads, known_begin, known_end, known, values);
    int32_t words = (options.entities + 31) / 32, capacity = options.capacity, count = options.count;
    for (int32_t i = threadIdx.x; i < words; i += blockDim.x) bits[i] = 0;
    open_shells(options, query, draw, bits);
    open_threshold(options, query, draw, (count + capacity) / 2, capacity);
    do {
        pass_over(options, query, draw, [&](int32_t entity) {
            bool kept = entity >= 0 && !(bits[entity / 32] >> (entity % 32) & 1);
            uint32_t key = kept ? key_of(options, query, draw, entity) : 0;
            kept = kept && key <= draw.threshold;
            int32_t slot = take_slot(&draw.kept, kept);
            if (kept && slot < capacity)
                keys[slot] = static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(entity);
        });
    } while (!settle(options, query, draw, min(query.remain, count), capacity));
    int32_t kept = min(draw.kept, capacity);
    for (int32_t i = threadIdx.x; i < words; i += blockDim.x) bits[i] = 0;
    if (threadIdx.x == 0) together = 0;
    selection found = select_keys(keys, kept, count, draw.threshold);
    mark_selected(bits, found, keys, kept, queue, &together);
    write_set(entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1, queue, bits,
              options.entities, count);
}

/* ---- Many negatives: the threshold is exact, and all keys up to it are taken in order ------------ */

template <source Shells>
__global__ static void __launch_bounds__(MAX_SAMPLE_THREADS, 2)
    sample_many(int32_t *entities, sampling options, const int32_t *heads, const int64_t *known_begin,
                const int64_t *known_end, const int32_t *known, const vlp_step_values *values) {
    __shared__ drawing draw;
    options.shells = Shells;
    sampled_query query = open_query(options, heads, known_begin, known_end, known, values);
    int32_t count = options.count;
    open_shells(options, query, draw, nullptr);
    open_threshold(options, query, draw, count, count);
    if (query.remain > count) {
        do {
            pass_over(options, query, draw, [&](int32_t entity) {
                bool kept = entity >= 0 && key_of(options, query, draw, entity) <= draw.threshold;
                take_slot(&draw.kept, kept && !is_known(query, entity));
            });
        } while (!settle(options, query, draw, count, count));
    }
    /* Of equal keys at the threshold, the first entities are taken. */
    int32_t *row = entities + static_cast<int64_t>(blockIdx.x) * (count + 1) + 1, used = 0;
    for (int32_t start = 0; start < options.entities && used < count; start += blockDim.x) {
        int32_t entity = start + threadIdx.x, total;
        bool taken = entity < options.entities &&
                     key_of(options, query, draw, entity) <= draw.threshold && !is_known(query, entity);
        int32_t next = used + flags_before(taken, &total);
        if (taken && next < count) row[next] = entity;
        used += total;
    }
    for (int32_t i = used + threadIdx.x; i < count; i += blockDim.x) row[i] = -1;
}

/* ---- The operation ------------------------------------------------------------------------------- */

/* Threads per query: fewer where more queries share a multiprocessor, for occupancy. */
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
    /* Twice six standard deviations, and some: almost never too few or too many. */
    double capacity = options->count + 2 * (6 * std::sqrt(static_cast<double>(options->count)) + 32);
    if (capacity > MAX_KEPT) capacity = MAX_KEPT;
    work.capacity = static_cast<int32_t>(capacity);
    size_t bytes = static_cast<size_t>(work.capacity) * (sizeof(uint64_t) + sizeof(int32_t)) +
                   static_cast<size_t>(options->entities + 31) / 32 * sizeof(uint32_t);
    if (capacity >= MAX_KEPT || bytes > compute->shared_limit - FIXED_SHARED) {
        LAUNCH(compute, sample_many<Shells>, batch, MAX_SAMPLE_THREADS, 0, entities, work,
               queries->heads, queries->known_begin, queries->known_end, queries->known,
               compute->values);
        return cuda_status(compute);
    }
    cuda_note(compute,
              cudaFuncSetAttribute(sample_few<Shells>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes)),
              "reserving shared memory");
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
