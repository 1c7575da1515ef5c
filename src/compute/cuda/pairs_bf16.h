/* Walks over bf16 copies, for kernels: half the bytes of fp32, and packed arithmetic, two numbers per
 * instruction, since these kernels are bound by instruction throughput. Sums are fp32. */
#ifndef VLP_COMPUTE_CUDA_PAIRS_BF16_H
#define VLP_COMPUTE_CUDA_PAIRS_BF16_H

#include "compute/cuda/pairs.h"
#include "compute/cuda/similarity.h"

/* Numbers of a part in a slice. */
enum { SLICE = 128 };

/* ---- Units of a lane, two per word --------------------------------------------------------------- */

template <vlp_similarity SIMILARITY, int COUNT> struct packed {
    __nv_bfloat162 at[PARTS<SIMILARITY>][COUNT / 2];

    /* Parts are `stride` numbers apart; zeros where `padding`. */
    __device__ void load(const vlp_bf16 *from, int32_t stride, bool padding) {
        typedef typename std::conditional<COUNT == 8, uint4, uint2>::type words;
#pragma unroll
        for (int part = 0; part < PARTS<SIMILARITY>; part++)
            *reinterpret_cast<words *>(at[part]) =
                padding ? words{} : *reinterpret_cast<const words *>(from + part * stride);
    }
};

__device__ inline uint32_t bits_of(__nv_bfloat162 pair) {
    return *reinterpret_cast<uint32_t *>(&pair);
}

/* The formulas of compute/similarity.h for the two units of a word, `at` in each part: converted to
 * fp32, or, in the specializations below, over differences of packed bf16. */
template <vlp_similarity SIMILARITY> struct word_units {
    /* low, high: += the terms of the two units. */
    template <int WORDS>
    static __device__ void add_terms(float &low, float &high, const __nv_bfloat162 (*q)[WORDS],
                                     const __nv_bfloat162 (*k)[WORDS], int at) {
        constexpr int COUNT = PARTS<SIMILARITY>;
        float q_units[2][COUNT], k_units[2][COUNT];
        convert(q_units, q, at);
        convert(k_units, k, at);
        low += vlp_similarity_term(SIMILARITY, q_units[0], k_units[0]);
        high += vlp_similarity_term(SIMILARITY, q_units[1], k_units[1]);
    }

    /* grad[part][2 at], grad[part][2 at + 1] += w dg/dk. */
    template <int WORDS>
    static __device__ void add_backward(float (*grad)[2 * WORDS], float w,
                                        const __nv_bfloat162 (*q)[WORDS],
                                        const __nv_bfloat162 (*k)[WORDS], int at) {
        constexpr int COUNT = PARTS<SIMILARITY>;
        float q_units[2][COUNT], k_units[2][COUNT];
        convert(q_units, q, at);
        convert(k_units, k, at);
#pragma unroll
        for (int unit = 0; unit < 2; unit++) {
            float unit_grad[COUNT];
#pragma unroll
            for (int part = 0; part < COUNT; part++) unit_grad[part] = grad[part][2 * at + unit];
            vlp_similarity_backward(SIMILARITY, unit_grad, w, q_units[unit], k_units[unit]);
#pragma unroll
            for (int part = 0; part < COUNT; part++) grad[part][2 * at + unit] = unit_grad[part];
        }
    }

  private:
    template <int WORDS>
    static __device__ void convert(float (*units)[PARTS<SIMILARITY>],
                                   const __nv_bfloat162 (*from)[WORDS], int at) {
#pragma unroll
        for (int part = 0; part < PARTS<SIMILARITY>; part++) {
            uint32_t bits = bits_of(from[part][at]);
            units[0][part] = low_half(bits);
            units[1][part] = high_half(bits);
        }
    }
};

template <> struct word_units<VLP_MINUS_L1> {
    template <int WORDS>
    static __device__ void add_terms(float &low, float &high, const __nv_bfloat162 (*q)[WORDS],
                                     const __nv_bfloat162 (*k)[WORDS], int at) {
        uint32_t difference = bits_of(__hsub2(q[0][at], k[0][at]));
        low += fabsf(low_half(difference));
        high += fabsf(high_half(difference));
    }

    template <int WORDS>
    static __device__ void add_backward(float (*grad)[2 * WORDS], float w,
                                        const __nv_bfloat162 (*q)[WORDS],
                                        const __nv_bfloat162 (*k)[WORDS], int at) {
        uint32_t difference = bits_of(__hsub2(q[0][at], k[0][at]));
        float low = low_half(difference), high = high_half(difference);
        grad[0][2 * at] += low > 0 ? w : low < 0 ? -w : 0.0f;
        grad[0][2 * at + 1] += high > 0 ? w : high < 0 ? -w : 0.0f;
    }
};

template <> struct word_units<VLP_MINUS_L2> {
    template <int WORDS>
    static __device__ void add_terms(float &low, float &high, const __nv_bfloat162 (*q)[WORDS],
                                     const __nv_bfloat162 (*k)[WORDS], int at) {
        uint32_t difference = bits_of(__hsub2(q[0][at], k[0][at]));
        low += low_half(difference) * low_half(difference);
        high += high_half(difference) * high_half(difference);
    }

    template <int WORDS>
    static __device__ void add_backward(float (*grad)[2 * WORDS], float w,
                                        const __nv_bfloat162 (*q)[WORDS],
                                        const __nv_bfloat162 (*k)[WORDS], int at) {
        uint32_t difference = bits_of(__hsub2(q[0][at], k[0][at]));
        grad[0][2 * at] += w * low_half(difference);
        grad[0][2 * at + 1] += w * high_half(difference);
    }
};

template <> struct word_units<VLP_MINUS_MODULUS> {
    template <int WORDS>
    static __device__ void add_terms(float &low, float &high, const __nv_bfloat162 (*q)[WORDS],
                                     const __nv_bfloat162 (*k)[WORDS], int at) {
        __nv_bfloat162 re = __hsub2(q[0][at], k[0][at]), im = __hsub2(q[1][at], k[1][at]);
        uint32_t squares = bits_of(__hfma2(re, re, __hmul2(im, im)));
        low += fast_root(low_half(squares));
        high += fast_root(high_half(squares));
    }

    /* The square of VLP_TINY_DISTANCE is added in place of a comparison: a difference of zero has a
     * gradient of zero. */
    template <int WORDS>
    static __device__ void add_backward(float (*grad)[2 * WORDS], float w,
                                        const __nv_bfloat162 (*q)[WORDS],
                                        const __nv_bfloat162 (*k)[WORDS], int at) {
        const __nv_bfloat162 tiny = __float2bfloat162_rn(VLP_TINY_DISTANCE * VLP_TINY_DISTANCE);
        __nv_bfloat162 re = __hsub2(q[0][at], k[0][at]), im = __hsub2(q[1][at], k[1][at]);
        uint32_t squares = bits_of(__hfma2(re, re, __hfma2(im, im, tiny)));
        uint32_t re_bits = bits_of(re), im_bits = bits_of(im);
        float low = w * fast_inverse_root(low_half(squares));
        float high = w * fast_inverse_root(high_half(squares));
        grad[0][2 * at] += low * low_half(re_bits);
        grad[0][2 * at + 1] += high * high_half(re_bits);
        grad[1][2 * at] += low * low_half(im_bits);
        grad[1][2 * at + 1] += high * high_half(im_bits);
    }
};

/* The sum of a lane's terms. */
template <vlp_similarity SIMILARITY, int COUNT>
__device__ inline float term_of(const packed<SIMILARITY, COUNT> &q, const packed<SIMILARITY, COUNT> &k) {
    float low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++)
        word_units<SIMILARITY>::template add_terms<COUNT / 2>(low, high, q.at, k.at, i);
    return low + high;
}

/* grad[part][unit] += w dg/dk. */
template <vlp_similarity SIMILARITY, int COUNT>
__device__ inline void add_backward(float (*grad)[COUNT], float w, const packed<SIMILARITY, COUNT> &q,
                                    const packed<SIMILARITY, COUNT> &k) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++)
        word_units<SIMILARITY>::template add_backward<COUNT / 2>(grad, w, q.at, k.at, i);
}

/* Sums over the groups of a warp: lanes that are LANES apart. */
template <vlp_similarity SIMILARITY, int COUNT, int LANES>
__device__ inline void sum_groups(float (*grad)[COUNT]) {
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int offset = LANES; offset < 32; offset *= 2)
                grad[part][i] += __shfl_xor_sync(ALL_LANES, grad[part][i], offset);
}

/* ---- Walking ------------------------------------------------------------------------------------- */

/* The operands of a kernel. */
typedef struct bf16_rows {
    const vlp_bf16 *queries, *table;
    vlp_bf16_layout layout;
    int32_t batch;
} bf16_rows;

static inline bf16_rows rows_of(const pair_work *work) {
    return {work->queries, work->given->bf16, work->given->layout, work->given->batch};
}

/* The position of a lane: a warp has one entity and one slice, LANES lanes per pair, SLICE / LANES
 * numbers of each part per lane. */
template <vlp_similarity SIMILARITY, int LANES> struct bf16_walk {
    static constexpr int COUNT = SLICE / LANES, GROUPS = 32 / LANES;
    static constexpr int QUERY = PARTS<SIMILARITY> * SLICE; /* numbers of a query in a slice */
    int lane, group, part;
    int32_t row, slice;  /* the entity; the slice of its row */
    int32_t first;       /* the lane's first number */
    const char *queries; /* of the slice */
    uint32_t offset; /* bytes from a query's numbers to the lane's; offsets in 32 bits save registers */

    __device__ bf16_walk(const bf16_rows &from, int32_t row_of_warp, int32_t slice_of_warp)
        : lane(threadIdx.x % 32), group(lane / LANES), part(lane % LANES), row(row_of_warp),
          slice(slice_of_warp), first(slice * SLICE + COUNT * part),
          queries(reinterpret_cast<const char *>(from.queries +
                                                 static_cast<int64_t>(slice) * from.batch * QUERY)),
          offset(COUNT * part * sizeof(vlp_bf16)) {
    }

    /* Grid: (chunks of entities, slices). */
    __device__ bf16_walk(const bf16_rows &from)
        : bf16_walk(from, static_cast<int32_t>(blockIdx.x * (WALK_THREADS / 32) + threadIdx.x / 32),
                    static_cast<int32_t>(blockIdx.y)) {
    }

    /* Bytes to a query's numbers. */
    __device__ static uint32_t offset_of(int32_t query) {
        return static_cast<uint32_t>(query) * QUERY * sizeof(vlp_bf16);
    }

    __device__ void load_query(packed<SIMILARITY, COUNT> &q, uint32_t offset_of_query) const {
        q.load(reinterpret_cast<const vlp_bf16 *>(queries + (offset_of_query + offset)), SLICE, false);
    }

    __device__ void load_entity(packed<SIMILARITY, COUNT> &k, const bf16_rows &from) const {
        k.load(from.table + static_cast<int64_t>(row) * PARTS<SIMILARITY> * from.layout.padded + first,
               from.layout.padded, first >= from.layout.padded);
    }
};

/* The gradient of an entity, k, over the pairs begin .. end, weights in sorted order: the partial sum of
 * a group of lanes. */
template <vlp_similarity SIMILARITY, int LANES>
__device__ inline void
walk_backward(float (*grad)[SLICE / LANES], const bf16_walk<SIMILARITY, LANES> &at,
              const packed<SIMILARITY, SLICE / LANES> &k, const sorted_pairs &pairs,
              const float *weights, int32_t begin, int32_t end) {
    using walk = bf16_walk<SIMILARITY, LANES>;
    packed<SIMILARITY, walk::COUNT> q;
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        uint32_t mine = at.lane < count ? walk::offset_of(pairs.query[base + at.lane]) : 0;
        float weight = at.lane < count ? weights[base + at.lane] : 0.0f; /* 0 after the last pair */
#pragma unroll 1
        for (int32_t i = at.group; i - at.group < count; i += walk::GROUPS) {
            at.load_query(q, __shfl_sync(ALL_LANES, mine, i & 31));
            add_backward(grad, __shfl_sync(ALL_LANES, weight, i & 31), q, k);
        }
    }
}

#endif
