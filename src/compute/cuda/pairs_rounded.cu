/* Pairs over rounded copies: half the bytes, and differences and squares two at a time in bf16, since
 * these kernels wait for instructions more than for memory. Sums are fp32, and so are gradients. The
 * walks are those of pairs.cu; queries are rounded slice by slice, so that the slice that all blocks
 * read at the same time stands together. */
#include <type_traits>

#include "compute/cuda/device.h"
#include "compute/cuda/pairs.h"

/* Numbers of a part in a slice; threads a block. */
enum { SLICE = 128, THREADS = 256 };

template <int SIMILARITY> constexpr int PARTS = SIMILARITY == VLP_MINUS_MODULUS ? 2 : 1;

/* ---- Numbers of a lane, two in a word ------------------------------------------------------------ */

template <int SIMILARITY, int COUNT> struct packed {
    __nv_bfloat162 at[PARTS<SIMILARITY>][COUNT / 2];

    /* Parts stand `apart`; zeros where nothing is there. */
    __device__ void load(const vlp_bf16 *from, int32_t apart, bool there) {
        typedef typename std::conditional<COUNT == 8, uint4, uint2>::type words;
#pragma unroll
        for (int part = 0; part < PARTS<SIMILARITY>; part++)
            *reinterpret_cast<words *>(at[part]) =
                there ? *reinterpret_cast<const words *>(from + part * apart) : words{};
    }
};

__device__ static uint32_t bits_of(__nv_bfloat162 pair) {
    return *reinterpret_cast<uint32_t *>(&pair);
}

/* What the numbers add to the sum that becomes the score. */
template <int SIMILARITY, int COUNT>
__device__ static float term_of(const packed<SIMILARITY, COUNT> &q, const packed<SIMILARITY, COUNT> &k) {
    float low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        if (SIMILARITY == VLP_DOT) {
            uint32_t left = bits_of(q.at[0][i]), right = bits_of(k.at[0][i]);
            low += low_half(left) * low_half(right);
            high += high_half(left) * high_half(right);
            continue;
        }
        __nv_bfloat162 difference = __hsub2(q.at[0][i], k.at[0][i]);
        uint32_t bits = bits_of(difference);
        if (SIMILARITY == VLP_MINUS_L1) {
            low += fabsf(low_half(bits));
            high += fabsf(high_half(bits));
        } else if (SIMILARITY == VLP_MINUS_L2) {
            low += low_half(bits) * low_half(bits);
            high += high_half(bits) * high_half(bits);
        } else {
            constexpr int LAST = PARTS<SIMILARITY> - 1;
            __nv_bfloat162 im = __hsub2(q.at[LAST][i], k.at[LAST][i]);
            bits = bits_of(__hfma2(difference, difference, __hmul2(im, im)));
            low += fast_root(low_half(bits));
            high += fast_root(high_half(bits));
        }
    }
    return low + high;
}

/* grad += w dg/dk, of a number and, where there is one, of its imaginary part. */
template <int SIMILARITY, int COUNT>
__device__ static void add_backward(float (*grad)[COUNT], float w, const packed<SIMILARITY, COUNT> &q,
                                    const packed<SIMILARITY, COUNT> &k) {
    constexpr int LAST = PARTS<SIMILARITY> - 1;
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        float *re = &grad[0][2 * i], *im = &grad[LAST][2 * i];
        uint32_t bits = bits_of(SIMILARITY == VLP_DOT ? q.at[0][i] : __hsub2(q.at[0][i], k.at[0][i]));
        float low = low_half(bits), high = high_half(bits);
        if (SIMILARITY == VLP_MINUS_L1) {
            re[0] += low > 0 ? w : low < 0 ? -w : 0.0f;
            re[1] += high > 0 ? w : high < 0 ? -w : 0.0f;
        } else if (SIMILARITY != VLP_MINUS_MODULUS) {
            re[0] += w * low;
            re[1] += w * high;
        } else {
            /* A little is added to the square: a difference of zero has a gradient of zero. */
            const __nv_bfloat162 tiny = __float2bfloat162_rn(VLP_TINY_DISTANCE * VLP_TINY_DISTANCE);
            __nv_bfloat162 d_re = __hsub2(q.at[0][i], k.at[0][i]);
            __nv_bfloat162 d_im = __hsub2(q.at[LAST][i], k.at[LAST][i]);
            uint32_t squares = bits_of(__hfma2(d_re, d_re, __hfma2(d_im, d_im, tiny)));
            uint32_t im_bits = bits_of(d_im);
            float first = w * fast_inverse_root(low_half(squares));
            float second = w * fast_inverse_root(high_half(squares));
            re[0] += first * low;
            re[1] += second * high;
            im[0] += first * low_half(im_bits);
            im[1] += second * high_half(im_bits);
        }
    }
}

/* Sums over the groups of a warp: lanes LANES apart. */
template <int SIMILARITY, int COUNT, int LANES> __device__ static void sum_groups(float (*grad)[COUNT]) {
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int offset = LANES; offset < 32; offset *= 2)
                grad[part][i] += __shfl_xor_sync(ALL_LANES, grad[part][i], offset);
}

/* ---- The queries, rounded ------------------------------------------------------------------------ */

/* out (slices, batch, parts, SLICE), zeros behind the last number of a part. */
__global__ static void round_queries(vlp_bf16 *out, const float *q, int32_t batch, int32_t parts,
                                     int32_t width) {
    int64_t query = blockIdx.x, slice = blockIdx.y;
    vlp_bf16 *to = out + (slice * batch + query) * parts * SLICE;
    for (int i = threadIdx.x; i < parts * SLICE; i += blockDim.x) {
        int64_t part = i / SLICE, unit = slice * SLICE + i % SLICE;
        to[i] = unit < width ? rounded(q[(query * parts + part) * width + unit]) : 0;
    }
}

bool cuda_round_queries(vlp_compute *compute, pair_work *work, bool again) {
    const vlp_rounding *rounding = &work->given->rounding;
    int32_t batch = work->given->batch, parts = rounding->parts;
    work->cut.slices = (rounding->padded + SLICE - 1) / SLICE;
    int64_t count = static_cast<int64_t>(work->cut.slices) * batch * parts * SLICE;
    work->queries = scratch<vlp_bf16>(compute, SLOT_PAIR_QUERIES, count);
    if (!work->queries) return false;
    if (again)
        LAUNCH(compute, round_queries,
               dim3(static_cast<unsigned>(batch), static_cast<unsigned>(work->cut.slices)), SLICE, 0,
               work->queries, work->q, batch, parts, rounding->width);
    return true;
}

/* ---- Entity by entity ---------------------------------------------------------------------------- */

/* What a kernel reads. */
typedef struct rounded_rows {
    const vlp_bf16 *queries, *table;
    vlp_rounding rounding;
    int32_t batch;
} rounded_rows;

/* Where a lane stands: a warp has an entity and a slice, LANES lanes a pair, SLICE / LANES numbers of
 * each part a lane. */
template <int SIMILARITY, int LANES> struct rounded_walk {
    static constexpr int COUNT = SLICE / LANES, GROUPS = 32 / LANES;
    static constexpr int QUERY = PARTS<SIMILARITY> * SLICE; /* numbers of a query in a slice */
    int lane, group, part;
    int32_t row, first; /* the entity; the lane's first number */
    const vlp_bf16 *queries;

    __device__ rounded_walk(const rounded_rows &from)
        : lane(threadIdx.x % 32), group(lane / LANES), part(lane % LANES),
          row(static_cast<int32_t>(blockIdx.x * (THREADS / 32) + threadIdx.x / 32)),
          first(static_cast<int32_t>(blockIdx.y) * SLICE + COUNT * part),
          queries(from.queries + static_cast<int64_t>(blockIdx.y) * from.batch * QUERY + COUNT * part) {
    }

    __device__ void load_entity(packed<SIMILARITY, COUNT> &k, const rounded_rows &from) const {
        k.load(from.table + static_cast<int64_t>(row) * PARTS<SIMILARITY> * from.rounding.padded + first,
               from.rounding.padded, first < from.rounding.padded);
    }
};

template <int SIMILARITY, int LANES>
__global__ static void __launch_bounds__(THREADS, 5)
    rounded_scores(float *parts, rounded_rows from, sorted_pairs pairs) {
    using walk = rounded_walk<SIMILARITY, LANES>;
    walk at(from);
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    packed<SIMILARITY, walk::COUNT> k, q;
    at.load_entity(k, from);
    float *out = parts + static_cast<int64_t>(blockIdx.y) * pairs.total;
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        int32_t mine = at.lane < count ? pairs.query[base + at.lane] * walk::QUERY : 0;
#pragma unroll 1
        for (int32_t i = at.group; i - at.group < count; i += walk::GROUPS) {
            q.load(at.queries + __shfl_sync(ALL_LANES, mine, i & 31), SLICE, true);
            float sum = term_of(q, k);
#pragma unroll
            for (int offset = LANES / 2; offset > 0; offset /= 2)
                sum += __shfl_xor_sync(ALL_LANES, sum, offset);
            if (at.part == 0 && i < count) out[base + i] = sum;
        }
    }
}

template <int SIMILARITY, int LANES>
__global__ static void __launch_bounds__(THREADS, 6)
    rounded_gradients(float *entity_grad, const uint8_t *touched, const float *weights,
                      rounded_rows from, sorted_pairs pairs) {
    using walk = rounded_walk<SIMILARITY, LANES>;
    walk at(from);
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    float grad[PARTS<SIMILARITY>][walk::COUNT] = {};
    packed<SIMILARITY, walk::COUNT> k, q;
    at.load_entity(k, from);
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        int32_t mine = at.lane < count ? pairs.query[base + at.lane] * walk::QUERY : 0;
        float weight = at.lane < count ? weights[base + at.lane] : 0.0f; /* nothing where no pair is */
#pragma unroll 1
        for (int32_t i = at.group; i - at.group < count; i += walk::GROUPS) {
            q.load(at.queries + __shfl_sync(ALL_LANES, mine, i & 31), SLICE, true);
            add_backward(grad, __shfl_sync(ALL_LANES, weight, i & 31), q, k);
        }
    }
    sum_groups<SIMILARITY, walk::COUNT, LANES>(grad);
    if (at.group > 0) return;
    bool holds = !touched || touched[at.row], aligned = from.rounding.width % 4 == 0;
    int64_t place = static_cast<int64_t>(at.row) * PARTS<SIMILARITY> * from.rounding.width + at.first;
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < walk::COUNT; i += 4)
            put4(entity_grad + place + part * from.rounding.width + i, &grad[part][i],
                 from.rounding.width - at.first - i, aligned, holds);
}

/* ---- Query by query ------------------------------------------------------------------------------ */

enum { CHUNK = 1024, WARPS = THREADS / 32 };

/* An entity of a query and its weight. */
typedef struct weighted {
    int32_t entity;
    float weight;
} weighted;

/* Grid: (queries, slices). Marks the entities as touched, after everybody has asked whether they were.
 */
template <int SIMILARITY, int LANES>
__global__ static void __launch_bounds__(THREADS, 4)
    rounded_query_gradients(float *q_grad, uint8_t *touched, const float *weights, rounded_rows from,
                            const int32_t *entities, int32_t width) {
    constexpr int COUNT = SLICE / LANES, GROUPS = THREADS / LANES;
    __shared__ weighted items[CHUNK];
    __shared__ float sums[WARPS][PARTS<SIMILARITY>][SLICE];
    int64_t query = blockIdx.x;
    int warp = threadIdx.x / 32, group = threadIdx.x / LANES, part = threadIdx.x % LANES;
    int32_t first = static_cast<int32_t>(blockIdx.y) * SLICE + COUNT * part;
    bool there = first < from.rounding.padded;
    float grad[PARTS<SIMILARITY>][COUNT] = {};
    packed<SIMILARITY, COUNT> q, k;
    q.load(from.queries +
               (blockIdx.y * static_cast<int64_t>(from.batch) + query) * PARTS<SIMILARITY> * SLICE +
               COUNT * part,
           SLICE, true);
    for (int32_t base = 0; base < width; base += CHUNK) {
        int32_t count = width - base < CHUNK ? width - base : CHUNK;
        __syncthreads();
        for (int32_t i = threadIdx.x; i < count; i += THREADS) {
            int32_t entity = entities[query * width + base + i];
            bool nobody = entity < 0;
            items[i] = {nobody ? 0 : entity, nobody ? 0.0f : weights[query * width + base + i]};
            if (touched && blockIdx.y == 0 && !nobody) touched[entity] = 1;
        }
        __syncthreads();
#pragma unroll 2
        for (int32_t i = group; i < count; i += GROUPS) {
            weighted item = items[i];
            int64_t row = static_cast<int64_t>(item.entity) * PARTS<SIMILARITY> * from.rounding.padded;
            k.load(from.table + row + first, from.rounding.padded, there);
            add_backward(grad, item.weight, k, q); /* the two sides of a similarity are alike */
        }
    }
    __syncwarp();
    sum_groups<SIMILARITY, COUNT, LANES>(grad);
    if (threadIdx.x % 32 < LANES)
        for (int p = 0; p < PARTS<SIMILARITY>; p++)
#pragma unroll
            for (int i = 0; i < COUNT; i++) sums[warp][p][COUNT * part + i] = grad[p][i];
    __syncthreads();
    int side = threadIdx.x / SLICE, at = threadIdx.x % SLICE;
    int32_t unit = static_cast<int32_t>(blockIdx.y) * SLICE + at;
    if (side >= PARTS<SIMILARITY> || unit >= from.rounding.width) return;
    float total = 0;
    for (int w = 0; w < WARPS; w++) total += sums[w][side][at];
    q_grad[(query * PARTS<SIMILARITY> + side) * from.rounding.width + unit] = total;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

static rounded_rows rows_of(const pair_work *work) {
    return {work->queries, work->given->rounded, work->given->rounding, work->given->batch};
}

template <int SIMILARITY>
static void launch_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    LAUNCH(compute, (rounded_scores<SIMILARITY, 16>), work->grid, THREADS, 0, parts, rows_of(work),
           work->pairs);
}

void cuda_rounded_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    switch (work->form->similarity) {
    case VLP_DOT:
        launch_scores<VLP_DOT>(compute, work, parts);
        break;
    case VLP_MINUS_L1:
        launch_scores<VLP_MINUS_L1>(compute, work, parts);
        break;
    case VLP_MINUS_L2:
        launch_scores<VLP_MINUS_L2>(compute, work, parts);
        break;
    case VLP_MINUS_MODULUS:
        launch_scores<VLP_MINUS_MODULUS>(compute, work, parts);
        break;
    }
}

template <int SIMILARITY>
static void launch_gradients(vlp_compute *compute, const pair_work *work, const pair_gradients *out,
                             const float *sorted, const float *weights) {
    LAUNCH(compute, (rounded_gradients<SIMILARITY, 32>), work->grid, THREADS, 0, out->entities,
           out->touched, sorted, rows_of(work), work->pairs);
    dim3 grid(static_cast<unsigned>(work->given->batch), static_cast<unsigned>(work->cut.slices));
    LAUNCH(compute, (rounded_query_gradients<SIMILARITY, 16>), grid, THREADS, 0, out->queries,
           out->touched, weights, rows_of(work), work->given->entities, work->given->width);
}

void cuda_rounded_gradients(vlp_compute *compute, const pair_work *work, const pair_gradients *out,
                            const float *sorted, const float *weights) {
    switch (work->form->similarity) {
    case VLP_DOT:
        launch_gradients<VLP_DOT>(compute, work, out, sorted, weights);
        break;
    case VLP_MINUS_L1:
        launch_gradients<VLP_MINUS_L1>(compute, work, out, sorted, weights);
        break;
    case VLP_MINUS_L2:
        launch_gradients<VLP_MINUS_L2>(compute, work, out, sorted, weights);
        break;
    case VLP_MINUS_MODULUS:
        launch_gradients<VLP_MINUS_MODULUS>(compute, work, out, sorted, weights);
        break;
    }
}
