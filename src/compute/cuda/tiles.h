/* Scores of a tile of queries by a tile of entities, shaped like a matrix product: a block's sums stay
 * in registers, units pass through shared memory. Sums are computed unit by unit with the same
 * instructions in every kernel and at every position, so that equal rows have equal scores. */
#ifndef VLP_COMPUTE_CUDA_TILES_H
#define VLP_COMPUTE_CUDA_TILES_H

#include "compute/cuda/similarity.h"

/* A thread computes MINE_QUERIES x MINE_ENTITIES sums of its block's, TILE_DEPTH units at a time. */
enum {
    TILE_QUERIES = 64,
    TILE_ENTITIES = 128,
    TILE_DEPTH = 16,
    TILE_THREADS = 256,
    MINE_QUERIES = 4,
    MINE_ENTITIES = 8
};

/* The sum with the term of one more unit. Every rounding is explicit: were it left to the compiler,
 * contraction could differ between kernels, and scores that are equal would not compare equal. */
template <vlp_similarity SIMILARITY>
__device__ float add_unit(float sum, const float *q, const float *k) = delete;

template <> __device__ inline float add_unit<VLP_DOT>(float sum, const float *q, const float *k) {
    return __fmaf_rn(q[0], k[0], sum);
}

template <> __device__ inline float add_unit<VLP_MINUS_L1>(float sum, const float *q, const float *k) {
    return __fadd_rn(sum, fabsf(__fsub_rn(q[0], k[0])));
}

template <> __device__ inline float add_unit<VLP_MINUS_L2>(float sum, const float *q, const float *k) {
    float difference = __fsub_rn(q[0], k[0]);
    return __fmaf_rn(difference, difference, sum);
}

template <>
__device__ inline float add_unit<VLP_MINUS_MODULUS>(float sum, const float *q, const float *k) {
    float re = __fsub_rn(q[0], k[0]), im = __fsub_rn(q[1], k[1]);
    return __fadd_rn(sum, fast_root(__fmaf_rn(re, re, __fmul_rn(im, im))));
}

/* Queries and entities to be compared: rows of `width` floats, `units` units of the similarity. */
typedef struct tile_operands {
    const float *q, *table;
    int64_t count; /* queries */
    int32_t entities, width, units;
    float margin;
} tile_operands;

static inline tile_operands tile_operands_of(const vlp_form *form, const float *q, const float *table,
                                             int32_t entities, int64_t count) {
    return {q,           table, count, entities, form->query_width, vlp_form_similarity_columns(form),
            form->margin};
}

static inline dim3 tile_grid(const tile_operands *operands) {
    return dim3(cuda_blocks(operands->entities, TILE_ENTITIES),
                cuda_blocks(operands->count, TILE_QUERIES));
}

/* A thread's first query and its entities, within the block's. The entities are two runs of four, half a
 * tile apart: loads from shared memory are free of bank conflicts. */
__device__ inline int my_query(void) {
    return threadIdx.x / 16 * MINE_QUERIES;
}

__device__ inline int my_entity(int j) {
    return threadIdx.x % 16 * 4 + j % 4 + j / 4 * (TILE_ENTITIES / 2);
}

/* A slice of rows, transposed: to[unit][row], padded with zeros. */
template <int ROWS>
__device__ inline void load_slice(float (*to)[ROWS + 4], const float *rows, int64_t first, int64_t count,
                                  int32_t width, int32_t unit, int32_t units) {
    constexpr int FOURS = TILE_DEPTH / 4;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * FOURS; i += TILE_THREADS) {
        int row = i / FOURS, u = i % FOURS * 4;
        float four[4];
        load4(four, rows + (first + row) * width + unit + u, first + row < count ? units - unit - u : 0,
              units % 4 == 0);
#pragma unroll
        for (int j = 0; j < 4; j++) to[u + j][row] = four[j];
    }
}

/* The sums of the block's queries from first_query on with its entities from first_entity on. */
template <vlp_similarity SIMILARITY>
__device__ inline void tile_sums(float sums[MINE_QUERIES][MINE_ENTITIES], const tile_operands &operands,
                                 int64_t first_query, int64_t first_entity) {
    constexpr int parts = PARTS<SIMILARITY>;
    __shared__ __align__(16) float q_tile[parts][TILE_DEPTH][TILE_QUERIES + 4];
    __shared__ __align__(16) float k_tile[parts][TILE_DEPTH][TILE_ENTITIES + 4];
    int32_t units = operands.units, width = operands.width;
#pragma unroll
    for (int i = 0; i < MINE_QUERIES; i++)
#pragma unroll
        for (int j = 0; j < MINE_ENTITIES; j++) sums[i][j] = 0;
    for (int32_t unit = 0; unit < units; unit += TILE_DEPTH) {
        __syncthreads();
#pragma unroll
        for (int part = 0; part < parts; part++) {
            load_slice<TILE_QUERIES>(q_tile[part], operands.q + part * units, first_query,
                                     operands.count, width, unit, units);
            load_slice<TILE_ENTITIES>(k_tile[part], operands.table + part * units, first_entity,
                                      operands.entities, width, unit, units);
        }
        __syncthreads();
#pragma unroll 4
        for (int u = 0; u < TILE_DEPTH; u++) {
            float q[parts][MINE_QUERIES], k[parts][MINE_ENTITIES];
#pragma unroll
            for (int part = 0; part < parts; part++) {
                load4(q[part], &q_tile[part][u][my_query()], 4, true);
                load4(k[part], &k_tile[part][u][my_entity(0)], 4, true);
                load4(k[part] + 4, &k_tile[part][u][my_entity(4)], 4, true);
            }
#pragma unroll
            for (int i = 0; i < MINE_QUERIES; i++)
#pragma unroll
                for (int j = 0; j < MINE_ENTITIES; j++)
                    sums[i][j] = add_unit<SIMILARITY>(sums[i][j], unit_of<parts>(q, i).at,
                                                      unit_of<parts>(k, j).at);
        }
    }
}

/* Launches a kernel that is a template over distances; dot products are matrix products. */
#define LAUNCH_DISTANCE(compute, form, kernel, grid, block, shared, ...)                                \
    do {                                                                                                \
        switch ((form)->similarity) {                                                                   \
        case VLP_DOT:                                                                                   \
            assert(false);                                                                              \
            break;                                                                                      \
        case VLP_MINUS_L1:                                                                              \
            LAUNCH(compute, kernel<VLP_MINUS_L1>, grid, block, shared, __VA_ARGS__);                    \
            break;                                                                                      \
        case VLP_MINUS_L2:                                                                              \
            LAUNCH(compute, kernel<VLP_MINUS_L2>, grid, block, shared, __VA_ARGS__);                    \
            break;                                                                                      \
        case VLP_MINUS_MODULUS:                                                                         \
            LAUNCH(compute, kernel<VLP_MINUS_MODULUS>, grid, block, shared, __VA_ARGS__);               \
            break;                                                                                      \
        }                                                                                               \
    } while (0)

#endif
