/* Shared by kernels. Sums are reduced by trees whose shape depends on the size of the block alone. */
#ifndef VLP_COMPUTE_CUDA_DEVICE_H
#define VLP_COMPUTE_CUDA_DEVICE_H

#include <cuda_bf16.h>

#include "compute/cuda/cuda.h"

constexpr unsigned ALL_LANES = 0xffffffffu;

/* The column of a thread of cuda_grid; its row is blockIdx.x. */
__device__ inline int32_t my_column() {
    return static_cast<int32_t>(blockIdx.y * COLUMN_BLOCK + threadIdx.x);
}

template <class T> __device__ inline T warp_sum(T value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(ALL_LANES, value, offset);
    return value;
}

/* The sum over a block, for every thread of it. `shared` holds 32 values; it may be reused without a
 * barrier. */
template <class T> __device__ inline T block_sum(T value, T *shared) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    value = warp_sum(value);
    __syncthreads();
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    value = lane < warps ? shared[lane] : T(0);
    return warp_sum(value);
}

__device__ inline float block_max(float value, float *shared) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, offset));
    __syncthreads();
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    value = lane < warps ? shared[lane] : -INFINITY;
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, offset));
    return value;
}

/* The end of the segment that begins at `at`. Called by all threads of the block. */
__device__ inline int64_t segment_end(const uint32_t *keys, int64_t at, int64_t count) {
    __shared__ int64_t end;
    __syncthreads();
    if (threadIdx.x < 32) {
        uint32_t row = keys[at];
        int64_t i = at + 1;
        for (;; i += 32) {
            bool same = i + threadIdx.x < count && keys[i + threadIdx.x] == row;
            unsigned bits = __ballot_sync(ALL_LANES, same);
            if (bits == ALL_LANES) continue;
            i += __popc(bits);
            break;
        }
        if (threadIdx.x == 0) end = i;
    }
    __syncthreads();
    return end;
}

/* Whether a segment of a row of the table begins here. */
__device__ inline bool segment_begins(const uint32_t *keys, int64_t at, uint32_t rows) {
    return keys[at] < rows && (at == 0 || keys[at - 1] != keys[at]);
}

/* Whether a number is in an ascending list. */
__device__ inline bool list_has(const int32_t *list, int64_t count, int32_t number) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (list[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low] == number;
}

/* The number of flags set by lower threads of the block, and by all. Called by all threads; the block is
 * whole warps. */
__device__ inline int32_t flags_before(bool flag, int32_t *total) {
    __shared__ int32_t counts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned bits = __ballot_sync(ALL_LANES, flag);
    __syncthreads();
    if (lane == 0) counts[warp] = __popc(bits);
    __syncthreads();
    int32_t before = 0, sum = 0;
    for (int w = 0; w < warps; w++) {
        if (w < warp) before += counts[w];
        sum += counts[w];
    }
    *total = sum;
    return before + __popc(bits & ((1u << lane) - 1));
}

/* Four numbers of a row from `from` on, of which `left` exist, padded with zeros. */
__device__ inline void load4(float out[4], const float *from, int left, bool aligned) {
    if (aligned && left >= 4) {
        float4 four = *reinterpret_cast<const float4 *>(from);
        out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] = i < left ? from[i] : 0.0f;
}

/* to[i] = values[i], or += where `add`, for the `left` that exist. */
__device__ inline void put4(float *to, const float values[4], int left, bool aligned, bool add) {
    if (aligned && left >= 4) {
        float4 four = {values[0], values[1], values[2], values[3]};
        if (add) {
            float4 before = *reinterpret_cast<const float4 *>(to);
            four.x += before.x, four.y += before.y, four.z += before.z, four.w += before.w;
        }
        *reinterpret_cast<float4 *>(to) = four;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < left) to[i] = add ? to[i] + values[i] : values[i];
}

/* ---- Units of a row, part by part ---------------------------------------------------------------- */

/* Four units of every part; parts are `columns` apart, `left` units remain from `from` on. */
template <int COUNT>
__device__ inline void load_units(float (*four)[4], const float *from, int32_t columns, int32_t left,
                                  bool aligned) {
#pragma unroll
    for (int part = 0; part < COUNT; part++) load4(four[part], from + part * columns, left, aligned);
}

/* Unit u of several, [part][unit]. */
template <int COUNT> struct unit_of {
    float at[COUNT];
    template <int UNITS> __device__ unit_of(const float (*units)[UNITS], int u) {
#pragma unroll
        for (int part = 0; part < COUNT; part++) at[part] = units[part][u];
    }
};

/* ---- Norms of rows ------------------------------------------------------------------------------- */

/* One block per row. Norms are computed when a table is loaded and with every update: both add the same
 * numbers in the same order, so that they have the same bits. */
enum { NORM_THREADS = 256 };

__device__ inline void add_square(float &sum, float x) {
    sum = __fmaf_rn(x, x, sum);
}

/* Whether rows can be read four numbers per thread. */
__device__ inline bool in_quads(int32_t width) {
    return width % 4 == 0;
}

__device__ inline float inverse_norm(float sum, float *shared) {
    float norm = sqrtf(block_sum(sum, shared));
    return norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
}

/* ---- bf16 ---------------------------------------------------------------------------------------- */

__device__ inline vlp_bf16 bf16(float x) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

/* Two numbers in one word, the first in its lower half. */
__device__ inline uint32_t bf16_pair(float low, float high) {
    return static_cast<uint32_t>(bf16(high)) << 16 | bf16(low);
}

__device__ inline float low_half(uint32_t word) {
    return __uint_as_float(word << 16);
}

__device__ inline float high_half(uint32_t word) {
    return __uint_as_float(word & 0xffff0000u);
}

/* The position of a column in the bf16 copy of its row. */
__device__ inline int32_t bf16_position(const vlp_bf16_layout &layout, int32_t column) {
    int32_t part = column / layout.width;
    return part * layout.padded + column - part * layout.width;
}

/* Approximate roots and quotients, one instruction each, within an ulp or two; subnormal numbers are
 * flushed to zero. */
__device__ inline float fast_root(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__device__ inline float fast_inverse_root(float x) {
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__device__ inline float fast_quotient(float a, float b) {
    float quotient;
    asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
}

#endif
