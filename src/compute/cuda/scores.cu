/* Queries against all entities: a product for the dot models, for distances a kernel shaped like one. */
#include <cstdlib>

#include "compute/cuda/tiles.h"

template <int SIMILARITY>
__global__ static void __launch_bounds__(TILE_THREADS)
    distance_tiles(float *scores, tile_operands operands) {
    int64_t first_query = static_cast<int64_t>(blockIdx.y) * TILE_QUERIES;
    int64_t first_entity = static_cast<int64_t>(blockIdx.x) * TILE_ENTITIES;
    float sums[MINE_QUERIES][MINE_ENTITIES];
    tile_sums<SIMILARITY>(sums, operands, first_query, first_entity);
#pragma unroll
    for (int i = 0; i < MINE_QUERIES; i++)
#pragma unroll
        for (int j = 0; j < MINE_ENTITIES; j++) {
            int64_t query = first_query + my_query() + i, entity = first_entity + my_entity(j);
            if (query >= operands.count || entity >= operands.entities) continue;
            scores[query * operands.entities + entity] =
                score_of_sum<SIMILARITY>(sums[i][j], operands.margin);
        }
}

/* scores (count, entities) of q and rows of a table, both as wide as a query. */
void cuda_distances(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                    const float *table, int32_t entities, int64_t count) {
    tile_operands operands = tile_operands_of(form, q, table, entities, count);
    LAUNCH_DISTANCE(compute, form, distance_tiles, tile_grid(&operands), TILE_THREADS, 0, scores,
                    operands);
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
