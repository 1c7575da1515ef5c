/* Queries against all entities: a product for the dot models, for distances a kernel shaped like one. */
#include <cstdlib>

#include "compute/cuda/device.h"

/* A block makes TILE x TILE scores; a thread 4 x 4 of them. Units come in steps of DEPTH. */
enum { TILE = 64, DEPTH = 16, TILE_THREADS = 256 };

/* Roots within an ulp: the answer's score and everybody's are made by the same instructions. */
template <int SIMILARITY>
__device__ inline void add_term(float &sum, float q_re, float q_im, float k_re, float k_im) {
    float re = q_re - k_re;
    if (SIMILARITY == VLP_MINUS_L1) {
        sum += fabsf(re);
    } else if (SIMILARITY == VLP_MINUS_L2) {
        sum = fmaf(re, re, sum);
    } else {
        float im = q_im - k_im;
        sum += fast_root(fmaf(re, re, im * im));
    }
}

/* A tile of rows, transposed: to[unit][row], zeros beyond the ends. */
__device__ static void load_tile(float (*to)[TILE + 4], const float *rows, int64_t first, int64_t count,
                                 int32_t width, int32_t unit, int32_t units) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += TILE_THREADS) {
        int row = i / DEPTH, u = i % DEPTH;
        bool there = first + row < count && unit + u < units;
        to[u][row] = there ? rows[(first + row) * width + unit + u] : 0.0f;
    }
}

template <int SIMILARITY>
__global__ static void __launch_bounds__(TILE_THREADS)
    distance_tiles(float *scores, const float *q, const float *table, int32_t entities, int64_t count,
                   int32_t width, int32_t units, float margin) {
    constexpr bool complex = SIMILARITY == VLP_MINUS_MODULUS;
    constexpr int PARTS = complex ? 2 : 1;
    __shared__ __align__(16) float q_tile[PARTS][DEPTH][TILE + 4], k_tile[PARTS][DEPTH][TILE + 4];
    int64_t first_query = static_cast<int64_t>(blockIdx.y) * TILE;
    int64_t first_entity = static_cast<int64_t>(blockIdx.x) * TILE;
    int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    float sums[4][4] = {};
    for (int32_t unit = 0; unit < units; unit += DEPTH) {
        __syncthreads();
        for (int part = 0; part < PARTS; part++) {
            load_tile(q_tile[part], q + part * units, first_query, count, width, unit, units);
            load_tile(k_tile[part], table + part * units, first_entity, entities, width, unit, units);
        }
        __syncthreads();
#pragma unroll 4
        for (int u = 0; u < DEPTH; u++) {
            float q_re[4], q_im[4] = {0, 0, 0, 0}, k_re[4], k_im[4] = {0, 0, 0, 0};
            load4(q_re, &q_tile[0][u][row], 4, true);
            load4(k_re, &k_tile[0][u][column], 4, true);
            if (complex) {
                load4(q_im, &q_tile[PARTS - 1][u][row], 4, true);
                load4(k_im, &k_tile[PARTS - 1][u][column], 4, true);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    add_term<SIMILARITY>(sums[i][j], q_re[i], q_im[i], k_re[j], k_im[j]);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t query = first_query + row + i, entity = first_entity + column + j;
            if (query >= count || entity >= entities) continue;
            float sum = SIMILARITY == VLP_MINUS_L2 ? sqrtf(sums[i][j]) : sums[i][j];
            scores[query * entities + entity] = margin - sum;
        }
}

/* scores (count, entities) of q and rows of a table, both as wide as a query. */
void cuda_distances(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                    const float *table, int32_t entities, int64_t count) {
    int32_t width = form->query_width;
    dim3 grid(cuda_blocks(entities, TILE), cuda_blocks(count, TILE));
    if (form->similarity == VLP_MINUS_L1)
        LAUNCH(compute, distance_tiles<VLP_MINUS_L1>, grid, TILE_THREADS, 0, scores, q, table, entities,
               count, width, width, form->margin);
    else if (form->similarity == VLP_MINUS_L2)
        LAUNCH(compute, distance_tiles<VLP_MINUS_L2>, grid, TILE_THREADS, 0, scores, q, table, entities,
               count, width, width, form->margin);
    else
        LAUNCH(compute, distance_tiles<VLP_MINUS_MODULUS>, grid, TILE_THREADS, 0, scores, q, table,
               entities, count, width, width / 2, form->margin);
}

/* Answers that relations move: all entities are moved once for every relation of the batch. */
static vlp_status moved_all_scores(vlp_compute *compute, const vlp_form *form, float *scores,
                                   const float *q, const int32_t *relations, const float *relation_table,
                                   const float *entity_table, int32_t entities, int64_t count) {
    int32_t width = form->query_width, e = form->entity_width;
    size_t bytes = static_cast<size_t>(count) * sizeof(int32_t);
    float *k = scratch<float>(compute, SLOT_MOVED_ANSWERS, static_cast<int64_t>(entities) * width);
    int32_t *ids = static_cast<int32_t *>(malloc(bytes));
    if (!ids) return cuda_fail(VLP_ERROR_MEMORY, "out of memory for moved answers");
    if (k &&
        cuda_note(compute,
                  cudaMemcpyAsync(ids, relations, bytes, cudaMemcpyDeviceToHost, compute->stream),
                  "copying") &&
        cuda_note(compute, cudaStreamSynchronize(compute->stream), "the work before scores")) {
        for (int64_t first = 0; first < count; first++) {
            int32_t relation = ids[first];
            if (relation < 0) continue; /* done */
            const float *w = relation_table + static_cast<int64_t>(relation) * form->relation_width;
            cuda_product(compute, false, true, entities, width, e, 1, entity_table, e, w, e, 0, k,
                         width);
            for (int64_t i = first; i < count; i++) {
                if (ids[i] != relation) continue;
                cuda_distances(compute, form, scores + i * entities, q + i * width, k, entities, 1);
                ids[i] = -1;
            }
        }
    }
    free(ids);
    return cuda_status(compute);
}

vlp_status cuda_all_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                           const int32_t *relations, const float *relation_table,
                           const float *entity_table, int32_t entities, int64_t count) {
    if (count == 0 || entities == 0) return cuda_status(compute);
    if (vlp_form_moves_answers(form))
        return moved_all_scores(compute, form, scores, q, relations, relation_table, entity_table,
                                entities, count);
    if (form->similarity == VLP_DOT)
        cuda_product(compute, false, true, count, entities, form->query_width, 1, q, form->query_width,
                     entity_table, form->entity_width, 0, scores, entities);
    else
        cuda_distances(compute, form, scores, q, entity_table, entities, count);
    return cuda_status(compute);
}
