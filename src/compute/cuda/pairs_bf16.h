/* Walks over bf16 copies, for kernels: half the bytes, and differences and squares two at a time in
 * bf16, since these kernels wait for instructions more than for memory. Sums are fp32. */
#ifndef VLP_COMPUTE_CUDA_PAIRS_BF16_H
#define VLP_COMPUTE_CUDA_PAIRS_BF16_H

#include <type_traits>

#include "compute/cuda/device.h"
#include "compute/cuda/pairs.h"

/* Numbers of a part in a slice. */
enum { SLICE = 128 };

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

__device__ inline uint32_t bits_of(__nv_bfloat162 pair) {
    return *reinterpret_cast<uint32_t *>(&pair);
}

/* What the numbers add to the sum that becomes the score. */
template <int SIMILARITY, int COUNT>
__device__ inline float term_of(const packed<SIMILARITY, COUNT> &q, const packed<SIMILARITY, COUNT> &k) {
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
__device__ inline void add_backward(float (*grad)[COUNT], float w, const packed<SIMILARITY, COUNT> &q,
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
template <int SIMILARITY, int COUNT, int LANES> __device__ inline void sum_groups(float (*grad)[COUNT]) {
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int offset = LANES; offset < 32; offset *= 2)
                grad[part][i] += __shfl_xor_sync(ALL_LANES, grad[part][i], offset);
}

/* ---- Walking ------------------------------------------------------------------------------------- */

/* What a kernel reads. */
typedef struct bf16_rows {
    const vlp_bf16 *queries, *table;
    vlp_bf16_layout layout;
    int32_t batch;
} bf16_rows;

static inline bf16_rows rows_of(const pair_work *work) {
    return {work->queries, work->given->bf16, work->given->layout, work->given->batch};
}

/* Where a lane stands: a warp has an entity and a slice, LANES lanes a pair, SLICE / LANES numbers of
 * each part a lane. */
template <int SIMILARITY, int LANES> struct bf16_walk {
    static constexpr int COUNT = SLICE / LANES, GROUPS = 32 / LANES;
    static constexpr int QUERY = PARTS<SIMILARITY> * SLICE; /* numbers of a query in a slice */
    int lane, group, part;
    int32_t row, slice;  /* the entity; which part of it */
    int32_t first;       /* the lane's first number */
    const char *queries; /* of the slice */
    uint32_t place; /* bytes from a query's numbers to the lane's: in 32 bits, as all offsets here */

    __device__ bf16_walk(const bf16_rows &from, int32_t row_of_warp, int32_t slice_of_warp)
        : lane(threadIdx.x % 32), group(lane / LANES), part(lane % LANES), row(row_of_warp),
          slice(slice_of_warp), first(slice * SLICE + COUNT * part),
          queries(reinterpret_cast<const char *>(from.queries +
                                                 static_cast<int64_t>(slice) * from.batch * QUERY)),
          place(COUNT * part * sizeof(vlp_bf16)) {
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

    __device__ void load_query(packed<SIMILARITY, COUNT> &q, uint32_t offset) const {
        q.load(reinterpret_cast<const vlp_bf16 *>(queries + (offset + place)), SLICE, true);
    }

    __device__ void load_entity(packed<SIMILARITY, COUNT> &k, const bf16_rows &from) const {
        k.load(from.table + static_cast<int64_t>(row) * PARTS<SIMILARITY> * from.layout.padded + first,
               from.layout.padded, first < from.layout.padded);
    }
};

/* The gradients of an entity, k, of the pairs begin .. end, weights in sorted order: what a group of
 * lanes has of them. */
template <int SIMILARITY, int LANES>
__device__ inline void
walk_backward(float (*grad)[SLICE / LANES], const bf16_walk<SIMILARITY, LANES> &at,
              const packed<SIMILARITY, SLICE / LANES> &k, const sorted_pairs &pairs,
              const float *weights, int32_t begin, int32_t end) {
    using walk = bf16_walk<SIMILARITY, LANES>;
    packed<SIMILARITY, walk::COUNT> q;
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        uint32_t mine = at.lane < count ? walk::offset_of(pairs.query[base + at.lane]) : 0;
        float weight = at.lane < count ? weights[base + at.lane] : 0.0f; /* nothing where no pair is */
#pragma unroll 1
        for (int32_t i = at.group; i - at.group < count; i += walk::GROUPS) {
            at.load_query(q, __shfl_sync(ALL_LANES, mine, i & 31));
            add_backward(grad, __shfl_sync(ALL_LANES, weight, i & 31), q, k);
        }
    }
}

#endif
