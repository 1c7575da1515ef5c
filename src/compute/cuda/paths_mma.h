/* Products of tiles of 16 rows on tensor cores: bf16 factors, sums in fp32.
 *
 * Of every row of D numbers, thread t of the four that share it (a quad) holds numbers t D / 4 ..
 * (t + 1) D / 4 - 1, as factors and as results: the order of a sum's terms, and of columns, is chosen so
 * (the packed matrices have it), and results become factors of the next product without moving. The
 * quads of a warp hold rows q and q + 8 of a tile, q = 0 .. 7. */
#ifndef VLP_COMPUTE_CUDA_PATHS_MMA_H
#define VLP_COMPUTE_CUDA_PATHS_MMA_H

#include "compute/cuda/paths.h"

/* c (16, 8) += a (16, 16) b (16, 8). */
__device__ inline void mma_tile(float (&c)[4], const uint32_t (&a)[4], uint2 b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

__device__ inline uint32_t shared_address(const void *at) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

/* The transpose of a (16 rows, 16 columns) part of a matrix in shared memory, as the left factor. */
__device__ inline void load_transposed(uint32_t (&a)[4], const __nv_bfloat16 *at, int32_t stride) {
    int32_t lane = threadIdx.x % 32, row = lane % 8 + lane / 16 * 8, column = lane / 8 % 2 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(at + row * stride + column))
                 : "memory");
}

/* A (16 rows, 8 columns) part of a matrix in shared memory, as the right factor. */
__device__ inline uint2 load_right(const __nv_bfloat16 *at, int32_t stride) {
    int32_t lane = threadIdx.x % 16;
    uint2 b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(b.x), "=r"(b.y)
                 : "r"(shared_address(at + lane * stride))
                 : "memory");
    return b;
}

__device__ inline float quad_sum(float value) {
    value += __shfl_xor_sync(ALL_LANES, value, 1);
    return value + __shfl_xor_sync(ALL_LANES, value, 2);
}

/* V numbers of a row of D = 4 V, in pairs. */
template <int V> struct columns { uint32_t words[V / 2]; };

template <int V> __device__ inline columns<V> load_columns(const __nv_bfloat16 *from) {
    columns<V> out;
    if constexpr (V == 4) {
        uint2 two = *reinterpret_cast<const uint2 *>(from);
        out.words[0] = two.x, out.words[1] = two.y;
    } else {
#pragma unroll
        for (int i = 0; i < V / 8; i++) {
            uint4 four = reinterpret_cast<const uint4 *>(from)[i];
            out.words[4 * i] = four.x, out.words[4 * i + 1] = four.y;
            out.words[4 * i + 2] = four.z, out.words[4 * i + 3] = four.w;
        }
    }
    return out;
}

template <int V> __device__ inline void store_columns(__nv_bfloat16 *to, const columns<V> &from) {
    if constexpr (V == 4) {
        *reinterpret_cast<uint2 *>(to) = make_uint2(from.words[0], from.words[1]);
    } else {
#pragma unroll
        for (int i = 0; i < V / 8; i++)
            reinterpret_cast<uint4 *>(to)[i] = make_uint4(from.words[4 * i], from.words[4 * i + 1],
                                                          from.words[4 * i + 2], from.words[4 * i + 3]);
    }
}

template <int V> __device__ inline columns<V> pack_columns(const float (&from)[V]) {
    columns<V> out;
#pragma unroll
    for (int i = 0; i < V / 2; i++) out.words[i] = pack_two(from[2 * i], from[2 * i + 1]);
    return out;
}

template <int V> __device__ inline float column(const columns<V> &from, int i) {
    uint32_t word = from.words[i / 2];
    return __uint_as_float(i % 2 ? word & 0xffff0000u : word << 16);
}

template <int V> __device__ inline void load_floats(float (&to)[V], const float *from) {
#pragma unroll
    for (int i = 0; i < V / 4; i++) {
        float4 four = reinterpret_cast<const float4 *>(from)[i];
        to[4 * i] = four.x, to[4 * i + 1] = four.y, to[4 * i + 2] = four.z, to[4 * i + 3] = four.w;
    }
}

template <int V> __device__ inline void store_floats(float *to, const float (&from)[V]) {
#pragma unroll
    for (int i = 0; i < V / 4; i++)
        reinterpret_cast<float4 *>(to)[i] =
            make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
}

/* The left factor of step s of V / 4, from rows q and q + 8. */
template <int V>
__device__ inline void left_factor(uint32_t (&a)[4], const columns<V> (&rows)[2], int s) {
    a[0] = rows[0].words[2 * s], a[1] = rows[1].words[2 * s];
    a[2] = rows[0].words[2 * s + 1], a[3] = rows[1].words[2 * s + 1];
}

#endif
