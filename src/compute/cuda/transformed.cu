/* Pairs whose answers are moved by the query's relation (TransR): every query has a matrix of its own,
 * and its answers are one product. Queries are taken in chunks that bound the memory. */
#include "compute/cuda/device.h"

constexpr int64_t CHUNK_BYTES = static_cast<int64_t>(512) << 20;
enum { PAIR_WARPS = 8 };

/* A chunk's arrays. */
typedef struct moved {
    const vlp_form *form;
    int32_t width;   /* of a row of pairs */
    int64_t chunk;   /* queries at a time */
    float *rows;     /* (chunk * width, entity_width) entities */
    float *matrices; /* (chunk, relation_width) rows of the relations */
    float *answers;  /* (chunk * width, query_width) k */
    /* for the backward pass */
    float *answers_grad, *rows_grad, *matrices_grad;
} moved;

static bool open_moved(vlp_compute *compute, moved *work, const vlp_form *form, const vlp_pairs *pairs,
                       bool backward) {
    int64_t width = pairs->width, e = form->entity_width, q = form->query_width;
    int64_t each = (width * (e + q) + form->relation_width) * static_cast<int64_t>(sizeof(float));
    if (backward) each *= 2;
    int64_t chunk = CHUNK_BYTES / each;
    chunk = chunk < 1 ? 1 : chunk < pairs->batch ? chunk : pairs->batch;
    *work = {form, pairs->width, chunk, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    work->rows = scratch<float>(compute, SLOT_TRANSFORMED_ROWS, chunk * width * e);
    work->matrices = scratch<float>(compute, SLOT_TRANSFORMED_MATRICES, chunk * form->relation_width);
    work->answers = scratch<float>(compute, SLOT_TRANSFORMED_ANSWERS, chunk * width * q);
    if (!work->rows || !work->matrices || !work->answers) return false;
    if (!backward) return true;
    work->answers_grad = scratch<float>(compute, SLOT_TRANSFORMED_ANSWERS_GRAD, chunk * width * q);
    work->rows_grad = scratch<float>(compute, SLOT_TRANSFORMED_ROWS_GRAD, chunk * width * e);
    work->matrices_grad =
        scratch<float>(compute, SLOT_TRANSFORMED_MATRICES_GRAD, chunk * form->relation_width);
    return work->answers_grad && work->rows_grad && work->matrices_grad;
}

/* k of the pairs of queries first .. first + count: zeros where masked. */
static void move_chunk(vlp_compute *compute, const moved *work, const vlp_related_rows *queries,
                       const vlp_pairs *pairs, int64_t first, int64_t count) {
    int32_t e = work->form->entity_width, q = work->form->query_width, r = work->form->relation_width;
    int64_t width = work->width;
    cuda_gather(compute, work->rows, pairs->table, pairs->entities + first * width, count * width, e);
    cuda_gather(compute, work->matrices, queries->relation_table, queries->relations + first, count, r);
    vlp_product product = {.transpose_a = false,
                           .transpose_b = true,
                           .m = width,
                           .n = q,
                           .k = e,
                           .alpha = 1,
                           .beta = 0,
                           .lda = e,
                           .ldb = e,
                           .ldc = q};
    product_batch batch = {.stride_a = width * e, .stride_b = r, .stride_c = width * q, .count = count};
    cuda_products(compute, work->answers, &product, work->rows, work->matrices, &batch);
}

/* The distance of two rows, for every lane of the warp. */
__device__ static float row_distance(const float *q, const float *k, int32_t width, bool l1) {
    float sum = 0;
    for (int32_t j = threadIdx.x % 32; j < width; j += 32) {
        float difference = q[j] - k[j];
        sum += l1 ? fabsf(difference) : difference * difference;
    }
    sum = warp_sum(sum);
    return l1 ? sum : sqrtf(sum);
}

__global__ static void score_moved(float *scores, const float *q, const float *answers,
                                   const int32_t *entities, int64_t count, int32_t width,
                                   int32_t query_width, float margin, bool l1) {
    int64_t pair = static_cast<int64_t>(blockIdx.x) * PAIR_WARPS + threadIdx.x / 32;
    if (pair >= count) return;
    float distance =
        row_distance(q + pair / width * query_width, answers + pair * query_width, query_width, l1);
    if (threadIdx.x % 32 == 0) scores[pair] = entities[pair] < 0 ? -INFINITY : margin - distance;
}

vlp_status cuda_transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                             const vlp_related_rows *queries, const vlp_pairs *pairs) {
    moved work;
    if (!open_moved(compute, &work, form, pairs, false)) return cuda_status(compute);
    int64_t width = pairs->width;
    for (int64_t first = 0; first < pairs->batch; first += work.chunk) {
        int64_t count = pairs->batch - first < work.chunk ? pairs->batch - first : work.chunk;
        move_chunk(compute, &work, queries, pairs, first, count);
        LAUNCH(compute, score_moved, cuda_blocks(count * width, PAIR_WARPS), 32 * PAIR_WARPS, 0,
               scores + first * width, queries->rows + first * form->query_width, work.answers,
               pairs->entities + first * width, count * width, pairs->width, form->query_width,
               form->margin, form->similarity == VLP_MINUS_L1);
    }
    return cuda_status(compute);
}

/* k_grad of every pair; zeros where masked. */
__global__ static void moved_gradients(float *answers_grad, const float *scores_grad, const float *q,
                                       const float *answers, const int32_t *entities, int64_t count,
                                       int32_t width, int32_t query_width, bool l1) {
    int64_t pair = static_cast<int64_t>(blockIdx.x) * PAIR_WARPS + threadIdx.x / 32;
    if (pair >= count) return;
    const float *mine = q + pair / width * query_width, *k = answers + pair * query_width;
    float weight = entities[pair] < 0 ? 0.0f : scores_grad[pair];
    if (!l1) {
        float distance = row_distance(mine, k, query_width, false);
        weight = distance > VLP_TINY_DISTANCE ? weight / distance : 0.0f;
    }
    for (int32_t j = threadIdx.x % 32; j < query_width; j += 32) {
        float difference = mine[j] - k[j];
        answers_grad[pair * query_width + j] = !l1              ? weight * difference
                                               : difference > 0 ? weight
                                               : difference < 0 ? -weight
                                                                : 0.0f;
    }
}

/* q_grad = -(sum of k_grad over the pairs of a query). */
__global__ static void moved_query_gradients(float *q_grad, const float *answers_grad, int32_t width,
                                             int32_t query_width) {
    int64_t query = blockIdx.x;
    int32_t j = static_cast<int32_t>(blockIdx.y) * 64 + threadIdx.x;
    if (j >= query_width) return;
    const float *from = answers_grad + query * width * query_width + j;
    float sum = 0;
#pragma unroll 8
    for (int64_t i = 0; i < width; i++) sum += from[i * query_width];
    q_grad[query * query_width + j] = -sum;
}

/* rows_grad = k_grad W, matrices_grad = k_grad^T rows, of `count` queries. */
static void chunk_gradients(vlp_compute *compute, const moved *work, int64_t count) {
    int32_t e = work->form->entity_width, d = work->form->query_width, r = work->form->relation_width;
    int64_t width = work->width;
    vlp_product rows = {.transpose_a = false,
                        .transpose_b = false,
                        .m = width,
                        .n = e,
                        .k = d,
                        .alpha = 1,
                        .beta = 0,
                        .lda = d,
                        .ldb = e,
                        .ldc = e};
    product_batch by_rows = {
        .stride_a = width * d, .stride_b = r, .stride_c = width * e, .count = count};
    cuda_products(compute, work->rows_grad, &rows, work->answers_grad, work->matrices, &by_rows);
    cuda_note(compute,
              cudaMemsetAsync(work->matrices_grad, 0,
                              static_cast<size_t>(count) * static_cast<size_t>(r) * sizeof(float),
                              compute->stream),
              "clearing memory");
    vlp_product matrices = {.transpose_a = true,
                            .transpose_b = false,
                            .m = d,
                            .n = e,
                            .k = width,
                            .alpha = 1,
                            .beta = 0,
                            .lda = d,
                            .ldb = e,
                            .ldc = e};
    product_batch by_matrices = {
        .stride_a = width * d, .stride_b = width * e, .stride_c = r, .count = count};
    cuda_products(compute, work->matrices_grad, &matrices, work->answers_grad, work->rows, &by_matrices);
}

vlp_status cuda_transformed_backward(vlp_compute *compute, const vlp_pair_gradients *out, const vlp_form *form,
                               const float *scores_grad, const vlp_related_rows *queries,
                               const vlp_pairs *pairs) {
    moved work;
    if (!open_moved(compute, &work, form, pairs, true)) return cuda_status(compute);
    int64_t width = pairs->width;
    int32_t d = form->query_width;
    const vlp_table_gradient relations = {out->relations, nullptr, queries->relation_count,
                                          form->relation_width};
    for (int64_t first = 0; first < pairs->batch; first += work.chunk) {
        int64_t count = pairs->batch - first < work.chunk ? pairs->batch - first : work.chunk;
        const int32_t *members = pairs->entities + first * width;
        move_chunk(compute, &work, queries, pairs, first, count);
        LAUNCH(compute, moved_gradients, cuda_blocks(count * width, PAIR_WARPS), 32 * PAIR_WARPS, 0,
               work.answers_grad, scores_grad + first * width, queries->rows + first * d, work.answers,
               members, count * width, pairs->width, d, form->similarity == VLP_MINUS_L1);
        LAUNCH(compute, moved_query_gradients, dim3(static_cast<unsigned>(count), cuda_blocks(d, 64)),
               64, 0, out->queries + first * d, work.answers_grad, pairs->width, d);
        chunk_gradients(compute, &work, count);
        cuda_scatter_add(compute, &relations, work.matrices_grad, nullptr, queries->relations + first,
                         count);
        cuda_scatter_add(compute, &out->entities, work.rows_grad, nullptr, members, count * width);
    }
    return cuda_status(compute);
}
