/* Sums over rows of outer products of two vectors, in fp32: blocks sum ranges of rows, and their partial
 * sums are added later, in the order of the blocks. */
#ifndef VLP_COMPUTE_CUDA_PATHS_OUTER_H
#define VLP_COMPUTE_CUDA_PATHS_OUTER_H

#include "compute/cuda/paths.h"

enum { OUTER_TILE = 32, OUTER_EACH = 4 }; /* columns and rows of a tile; results per thread */

/* partial (gridDim.y, m n): left (rows, m), right (rows, n) are functions of a row and a column. Results
 * are in parts of `width` columns, each (m, width). */
template <class Left, class Right>
__global__ static void __launch_bounds__(PATH_THREADS)
    outer_products(float *partial, Left left, Right right, const path_counts *counts, int32_t m,
                   int32_t n, int32_t width) {
    __shared__ float a[OUTER_TILE][OUTER_TILE + 1], b[OUTER_TILE][OUTER_TILE + 1];
    int32_t tiles = (n + OUTER_TILE - 1) / OUTER_TILE;
    int32_t first_m = static_cast<int32_t>(blockIdx.x) / tiles * OUTER_TILE;
    int32_t first_n = static_cast<int32_t>(blockIdx.x) % tiles * OUTER_TILE;
    int32_t rows = counts->rows, blocks = static_cast<int32_t>(gridDim.y);
    int32_t each = (rows + blocks - 1) / blocks,
            begin = min(each * static_cast<int32_t>(blockIdx.y), rows);
    int32_t end = min(begin + each, rows), x = threadIdx.x % OUTER_TILE, y = threadIdx.x / OUTER_TILE;
    float sum[OUTER_EACH] = {};
    for (int32_t row = begin; row < end; row += OUTER_TILE) {
        __syncthreads();
        for (int32_t i = y; i < OUTER_TILE; i += PATH_THREADS / OUTER_TILE) {
            bool in = row + i < end;
            a[i][x] = in && first_m + x < m ? left(row + i, first_m + x) : 0.0f;
            b[i][x] = in && first_n + x < n ? right(row + i, first_n + x) : 0.0f;
        }
        __syncthreads();
        for (int32_t i = 0; i < OUTER_TILE; i++)
#pragma unroll
            for (int k = 0; k < OUTER_EACH; k++)
                sum[k] = __fmaf_rn(a[i][y + k * (OUTER_TILE / OUTER_EACH)], b[i][x], sum[k]);
    }
    int32_t column = first_n + x;
    if (column >= n) return;
    float *to = partial + static_cast<int64_t>(blockIdx.y) * m * n +
                static_cast<int64_t>(column / width) * m * width + column % width;
    for (int k = 0; k < OUTER_EACH; k++) {
        int32_t i = first_m + y + k * (OUTER_TILE / OUTER_EACH);
        if (i < m) to[static_cast<int64_t>(i) * width] = sum[k];
    }
}

static inline dim3 outer_grid(int32_t m, int32_t n, int32_t blocks) {
    return dim3(cuda_blocks(m, OUTER_TILE) * cuda_blocks(n, OUTER_TILE), static_cast<unsigned>(blocks));
}

#endif
