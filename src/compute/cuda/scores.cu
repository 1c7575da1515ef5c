/* Scores of queries with all entities: a matrix product for dot models, for distances a kernel tiled
 * like one. */
#include <cstdlib>

#include "compute/cuda/tiles.h"

/* The scores of query i go to row rows[i], or to row i where rows is NULL. */
template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(TILE_THREADS)
    score_tiles(float *scores, tile_operands operands, const int32_t *rows) {
    int64_t first_query = static_cast<int64_t>(blockIdx.y) * TILE_QUERIES;
    int64_t first_entity = static_cast<int64_t>(blockIdx.x) * TILE_ENTITIES;
    float sums[MINE_QUERIES][MINE_ENTITIES];
    tile_sums<SIMILARITY>(sums, operands, first_query, first_entity);
#pragma unroll
    for (int i = 0; i < MINE_QUERIES; i++) {
        int64_t query = first_query + my_query() + i;
        if (query >= operands.count) continue;
        float *row = scores + (rows ? rows[query] : query) * operands.entities;
#pragma unroll
        for (int j = 0; j < MINE_ENTITIES; j++) {
            int64_t entity = first_entity + my_entity(j);
            if (entity < operands.entities)
                row[entity] = vlp_similarity_score(SIMILARITY, sums[i][j], operands.margin);
        }
    }
}

static void tiled_scores(vlp_compute *compute, float *scores, const int32_t *rows,
                         const tile_operands &operands, vlp_similarity kind) {
    with_similarity(kind, [&](auto similarity) {
        LAUNCH(compute, score_tiles<decltype(similarity)::value>, tile_grid(&operands), TILE_THREADS, 0,
               scores, operands, rows);
    });
}

/* ---- Answers that relations transform ------------------------------------------------------------ */

/* The queries of a batch, grouped by relation. */
typedef struct relation_order {
    int32_t *relations; /* (count) on the host, of the queries in this order */
    int32_t *order;     /* (count) on the host */
    int32_t *on_device; /* the same order on the device */
    float *q;           /* (count, query_width) in this order */
} relation_order;

/* given: (count) the relations of the queries in their order; overwritten. */
static void group_queries(relation_order *by, int32_t *given, int64_t count) {
    int64_t used = 0;
    for (int64_t first = 0; first < count; first++) {
        int32_t relation = given[first];
        for (int64_t i = first; relation >= 0 && i < count; i++) {
            if (given[i] != relation) continue;
            by->order[used] = static_cast<int32_t>(i);
            by->relations[used++] = relation;
            given[i] = -1; /* grouped */
        }
    }
}

static bool order_queries(vlp_compute *compute, relation_order *by, int32_t *given, const vlp_form *form,
                          const vlp_related_rows *queries) {
    int64_t count = queries->count;
    size_t bytes = static_cast<size_t>(count) * sizeof(int32_t);
    by->on_device = scratch<int32_t>(compute, SLOT_TRANSFORMED_ORDER, count);
    by->q = scratch<float>(compute, SLOT_TRANSFORMED_QUERIES, count * form->query_width);
    if (!by->on_device || !by->q || cuda_copy(compute, given, queries->relations, bytes) != VLP_OK)
        return false;
    group_queries(by, given, count);
    if (cuda_copy(compute, by->on_device, by->order, bytes) != VLP_OK) return false;
    cuda_gather(compute, by->q, queries->rows, by->on_device, count, form->query_width);
    return true;
}

/* All entities are transformed once for every relation of the batch, and compared with all of its
 * queries in one launch. */
static vlp_status transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                     const vlp_related_rows *queries, const float *entity_table,
                                     int32_t entities) {
    int32_t width = form->query_width;
    int64_t count = queries->count;
    int32_t *host = static_cast<int32_t *>(malloc(3 * static_cast<size_t>(count) * sizeof *host));
    if (!host) return cuda_fail(VLP_ERROR_MEMORY, "out of memory for transformed answers");
    relation_order by = {host, host + count, nullptr, nullptr};
    float *k = scratch<float>(compute, SLOT_TRANSFORMED_ANSWERS, static_cast<int64_t>(entities) * width);
    bool ordered = k && order_queries(compute, &by, host + 2 * count, form, queries);
    for (int64_t first = 0, end; ordered && first < count; first = end) {
        for (end = first + 1; end < count && by.relations[end] == by.relations[first];) end++;
        cuda_all_answers(compute, k, form, entity_table, entities,
                         queries->relation_table +
                             static_cast<int64_t>(by.relations[first]) * form->relation_width);
        tiled_scores(compute, scores, by.on_device + first,
                     tile_operands_of(form, by.q + first * width, k, entities, end - first),
                     form->similarity);
    }
    free(host);
    return cuda_status(compute);
}

vlp_status cuda_all_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                           const vlp_related_rows *queries, const float *entity_table,
                           int32_t entities) {
    if (queries->count == 0 || entities == 0) return cuda_status(compute);
    if (vlp_form_transforms_answers(form))
        return transformed_scores(compute, scores, form, queries, entity_table, entities);
    if (form->similarity == VLP_DOT) {
        const vlp_product product = {.transpose_a = false,
                                     .transpose_b = true,
                                     .m = queries->count,
                                     .n = entities,
                                     .k = form->query_width,
                                     .alpha = 1,
                                     .beta = 0,
                                     .lda = form->query_width,
                                     .ldb = form->entity_width,
                                     .ldc = entities,
                                     .rounded = false};
        cuda_product(compute, scores, &product, queries->rows, entity_table);
    } else {
        tiled_scores(compute, scores, nullptr,
                     tile_operands_of(form, queries->rows, entity_table, entities, queries->count),
                     form->similarity);
    }
    return cuda_status(compute);
}

const vlp_score_operations cuda_score_operations = {.all = cuda_all_scores};
