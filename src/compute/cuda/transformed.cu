/* Answers that the relation of the query transforms. The k of pairs are computed for a chunk of queries
 * at a time, which bounds the memory: by batched matrix products, where every query has the matrix of
 * its relation, or by units. The similarities follow; the backward pass has the same steps in reverse.
 */
#include "compute/cuda/similarity.h"
#include "compute/cuda/units.h"

constexpr int64_t CHUNK_BYTES = static_cast<int64_t>(512) << 20;
enum { PAIR_WARPS = 8 };

/* A chunk of queries, `pairs` their rows: its arrays hold at most `capacity` queries. */
typedef struct chunk {
    const vlp_form *form;
    const vlp_related_rows *queries;
    const vlp_pairs *pairs;
    int64_t capacity, first, count;
    float *answers; /* (count * width, query_width) k; zeros where masked */
    /* for a matrix transform, NULL otherwise */
    float *rows;      /* (count * width, entity_width) entities */
    float *relations; /* (count, relation_width) */
    /* for the backward pass, NULL otherwise */
    float *weights;        /* (count * width) as unit_backward takes them */
    float *answers_grad;   /* (count * width, query_width) */
    float *rows_grad;      /* (count * width, entity_width) */
    float *relations_grad; /* (count, relation_width) */
} chunk;

/* ---- Answers ------------------------------------------------------------------------------------- */

static bool open_chunks(vlp_compute *compute, chunk *work, const vlp_form *form,
                        const vlp_related_rows *queries, const vlp_pairs *pairs, bool backward) {
    int64_t width = pairs->width, e = form->entity_width, q = form->query_width;
    int64_t r = form->relation_width;
    int64_t bytes = (width * (e + q) + r) * static_cast<int64_t>(sizeof(float));
    int64_t capacity = CHUNK_BYTES / (backward ? 2 * bytes : bytes);
    capacity = capacity < 1 ? 1 : capacity < pairs->batch ? capacity : pairs->batch;
    *work = {};
    work->form = form;
    work->queries = queries;
    work->pairs = pairs;
    work->capacity = capacity;
    work->answers = scratch<float>(compute, SLOT_TRANSFORMED_ANSWERS, capacity * width * q);
    if (!work->answers) return false;
    if (vlp_transform_traits_of(form->transform).matrix) {
        work->rows = scratch<float>(compute, SLOT_TRANSFORMED_ROWS, capacity * width * e);
        work->relations = scratch<float>(compute, SLOT_TRANSFORMED_RELATIONS, capacity * r);
        if (!work->rows || !work->relations) return false;
    }
    if (!backward) return true;
    work->weights = scratch<float>(compute, SLOT_TRANSFORMED_WEIGHTS, capacity * width);
    work->answers_grad = scratch<float>(compute, SLOT_TRANSFORMED_ANSWERS_GRAD, capacity * width * q);
    work->rows_grad = scratch<float>(compute, SLOT_TRANSFORMED_ROWS_GRAD, capacity * width * e);
    work->relations_grad = scratch<float>(compute, SLOT_TRANSFORMED_RELATIONS_GRAD, capacity * r);
    return work->weights && work->answers_grad && work->rows_grad && work->relations_grad;
}

/* The next chunk; false after the last. */
static bool next_chunk(chunk *work) {
    work->first += work->count;
    int64_t left = work->pairs->batch - work->first;
    work->count = left < work->capacity ? left : work->capacity;
    return work->count > 0;
}

static const int32_t *entities_of(const chunk *work) {
    return work->pairs->entities + work->first * work->pairs->width;
}

static const float *queries_of(const chunk *work) {
    return work->queries->rows + work->first * work->form->query_width;
}

/* The chunk's entities: a group for each query. */
static cuda_unit_rows units_of(const chunk *work) {
    return {work->count * work->pairs->width,       work->pairs->table, entities_of(work),
            work->queries->relations + work->first, work->pairs->width, work->queries->relation_table};
}

static vlp_product product_of(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
    return {.transpose_a = transpose_a,
            .transpose_b = transpose_b,
            .m = m,
            .n = n,
            .k = k,
            .alpha = 1,
            .beta = 0,
            .lda = transpose_a ? m : k,
            .ldb = transpose_b ? k : n,
            .ldc = n,
            .rounded = false};
}

/* k = W t, W (d_q, d_e) of the query's relation. */
static void matrix_answers(vlp_compute *compute, const chunk *work) {
    int32_t e = work->form->entity_width, q = work->form->query_width, r = work->form->relation_width;
    int64_t width = work->pairs->width, count = work->count;
    cuda_gather(compute, work->rows, work->pairs->table, entities_of(work), count * width, e);
    cuda_gather(compute, work->relations, work->queries->relation_table,
                work->queries->relations + work->first, count, r);
    vlp_product product = product_of(width, q, e, false, true);
    product_batch batch = {.stride_a = width * e, .stride_b = r, .stride_c = width * q, .count = count};
    cuda_products(compute, work->answers, &product, work->rows, work->relations, &batch);
}

static void chunk_answers(vlp_compute *compute, const chunk *work) {
    switch (work->form->transform) {
        VLP_UNIT_LABELS {
            cuda_unit_rows rows = units_of(work);
            cuda_unit_transform(compute, work->answers, work->form, &rows, SIDE_ANSWER);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: /* does not transform answers */
        assert(false);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_answers(compute, work);
        break;
    }
}

void cuda_all_answers(vlp_compute *compute, float *k, const vlp_form *form, const float *entity_table,
                      int32_t entities, const float *relation) {
    switch (form->transform) {
        VLP_UNIT_LABELS {
            cuda_unit_rows rows = {entities, entity_table, nullptr, nullptr, 1, relation};
            cuda_unit_transform(compute, k, form, &rows, SIDE_ANSWER);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: /* does not transform answers */
        assert(false);
        break;
    case VLP_MATRIX_TRANSLATE: {
        vlp_product product = product_of(entities, form->query_width, form->entity_width, false, true);
        cuda_product(compute, k, &product, entity_table, relation);
        break;
    }
    }
}

/* ---- Similarities: one warp per pair ------------------------------------------------------------- */

/* The operands of a kernel over the pairs of a chunk. */
typedef struct chunk_view {
    const float *q, *answers;
    const int32_t *entities;
    int64_t pairs;
    int32_t width, query_width, units;
} chunk_view;

static chunk_view view_of(const chunk *work) {
    return {queries_of(work),
            work->answers,
            entities_of(work),
            work->count * work->pairs->width,
            work->pairs->width,
            work->form->query_width,
            vlp_form_similarity_columns(work->form)};
}

__device__ static int64_t my_pair(void) {
    return static_cast<int64_t>(blockIdx.x) * PAIR_WARPS + threadIdx.x / 32;
}

static unsigned pair_blocks(const chunk_view *view) {
    return cuda_blocks(view->pairs, PAIR_WARPS);
}

/* The sum of two rows, for every lane of the warp. */
template <vlp_similarity SIMILARITY>
__device__ static float row_sum(const float *q, const float *k, int32_t units) {
    constexpr int COUNT = PARTS<SIMILARITY>;
    float sum = 0;
    for (int32_t j = threadIdx.x % 32; j < units; j += 32) {
        float left[COUNT], right[COUNT];
        load_unit<COUNT>(left, q, j, units);
        load_unit<COUNT>(right, k, j, units);
        sum += unit_term<SIMILARITY>(left, right);
    }
    return warp_sum(sum);
}

template <vlp_similarity SIMILARITY>
__global__ static void chunk_scores(float *scores, chunk_view view, float margin) {
    int64_t pair = my_pair();
    if (pair >= view.pairs) return;
    float sum = row_sum<SIMILARITY>(view.q + pair / view.width * view.query_width,
                                    view.answers + pair * view.query_width, view.units);
    if (threadIdx.x % 32 == 0)
        scores[pair] =
            view.entities[pair] < 0 ? -INFINITY : vlp_similarity_score(SIMILARITY, sum, margin);
}

/* The gradient of k of every pair, and the weights; zeros where masked. */
template <vlp_similarity SIMILARITY>
__global__ static void chunk_gradients(float *answers_grad, float *weights, const float *scores_grad,
                                       chunk_view view) {
    constexpr int COUNT = PARTS<SIMILARITY>;
    int64_t pair = my_pair();
    if (pair >= view.pairs) return;
    const float *q = view.q + pair / view.width * view.query_width;
    const float *k = view.answers + pair * view.query_width;
    float weight = view.entities[pair] < 0 ? 0.0f : scores_grad[pair];
    if constexpr (vlp_similarity_weight_needs_sum(SIMILARITY))
        weight = vlp_similarity_weight(SIMILARITY, weight, row_sum<SIMILARITY>(q, k, view.units));
    if (threadIdx.x % 32 == 0) weights[pair] = weight;
    for (int32_t j = threadIdx.x % 32; j < view.units; j += 32) {
        float left[COUNT], right[COUNT], grad[COUNT] = {};
        load_unit<COUNT>(left, q, j, view.units);
        load_unit<COUNT>(right, k, j, view.units);
        unit_backward<SIMILARITY>(grad, weight, left, right);
        store_unit<COUNT>(answers_grad + pair * view.query_width, grad, j, view.units);
    }
}

enum { QUERY_THREADS = 64 };

/* The gradients of queries over their pairs, in their order. Grid: (queries, slices of units), one
 * thread per unit. */
template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(QUERY_THREADS)
    chunk_query_gradients(float *q_grad, const float *weights, chunk_view view) {
    constexpr int COUNT = PARTS<SIMILARITY>;
    int64_t query = blockIdx.x, first = query * view.width;
    int32_t j = static_cast<int32_t>(blockIdx.y) * QUERY_THREADS + threadIdx.x;
    if (j >= view.units) return;
    float q[COUNT], sum[COUNT] = {};
    load_unit<COUNT>(q, view.q + query * view.query_width, j, view.units);
#pragma unroll 8
    for (int64_t i = first; i < first + view.width; i++) {
        float k[COUNT], grad[COUNT] = {};
        load_unit<COUNT>(k, view.answers + i * view.query_width, j, view.units);
        unit_backward<SIMILARITY>(grad, weights[i], k, q); /* similarities are symmetric */
#pragma unroll
        for (int part = 0; part < COUNT; part++) sum[part] += grad[part];
    }
    store_unit<COUNT>(q_grad + query * view.query_width, sum, j, view.units);
}

vlp_status cuda_transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                   const vlp_related_rows *queries, const vlp_pairs *pairs) {
    chunk work;
    if (!open_chunks(compute, &work, form, queries, pairs, false)) return cuda_status(compute);
    while (next_chunk(&work)) {
        chunk_view view = view_of(&work);
        chunk_answers(compute, &work);
        with_similarity(form->similarity, [&](auto similarity) {
            LAUNCH(compute, chunk_scores<decltype(similarity)::value>, pair_blocks(&view),
                   32 * PAIR_WARPS, 0, scores + work.first * pairs->width, view, form->margin);
        });
    }
    return cuda_status(compute);
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* rows_grad = k_grad W, relations_grad = k_grad^T rows for W and zero for the bias. */
static void matrix_backward(vlp_compute *compute, const chunk *work) {
    int32_t e = work->form->entity_width, d = work->form->query_width, r = work->form->relation_width;
    int64_t width = work->pairs->width, count = work->count;
    vlp_product rows = product_of(width, e, d, false, false);
    product_batch by_rows = {
        .stride_a = width * d, .stride_b = r, .stride_c = width * e, .count = count};
    cuda_products(compute, work->rows_grad, &rows, work->answers_grad, work->relations, &by_rows);
    cuda_note(compute,
              cudaMemsetAsync(work->relations_grad, 0,
                              static_cast<size_t>(count) * static_cast<size_t>(r) * sizeof(float),
                              compute->stream),
              "clearing memory");
    vlp_product matrices = product_of(d, e, width, true, false);
    product_batch by_matrices = {
        .stride_a = width * d, .stride_b = width * e, .stride_c = r, .count = count};
    cuda_products(compute, work->relations_grad, &matrices, work->answers_grad, work->rows,
                  &by_matrices);
}

/* From the gradients of k: those of the entities' rows, and of the relation of each query. */
static void chunk_backward(vlp_compute *compute, const chunk *work) {
    switch (work->form->transform) {
        VLP_UNIT_LABELS {
            cuda_unit_rows rows = units_of(work);
            cuda_unit_gradients gradients = {work->answers_grad,   work->rows_grad, false,
                                             work->relations_grad, nullptr,         0};
            cuda_unit_backward(compute, &gradients, work->form, &rows, SIDE_ANSWER);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: /* does not transform answers */
        assert(false);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_backward(compute, work);
        break;
    }
}

template <vlp_similarity SIMILARITY>
static void launch_gradients(vlp_compute *compute, float *q_grad, const float *scores_grad,
                             const chunk *work) {
    chunk_view view = view_of(work);
    LAUNCH(compute, chunk_gradients<SIMILARITY>, pair_blocks(&view), 32 * PAIR_WARPS, 0,
           work->answers_grad, work->weights, scores_grad, view);
    LAUNCH(compute, chunk_query_gradients<SIMILARITY>,
           dim3(static_cast<unsigned>(work->count), cuda_blocks(view.units, QUERY_THREADS)),
           QUERY_THREADS, 0, q_grad, work->weights, view);
}

vlp_status cuda_transformed_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                     const vlp_form *form, const float *scores_grad,
                                     const vlp_related_rows *queries, const vlp_pairs *pairs) {
    chunk work;
    if (!open_chunks(compute, &work, form, queries, pairs, true)) return cuda_status(compute);
    const vlp_table_gradient relations = {out->relations, nullptr, queries->relation_count,
                                          form->relation_width};
    while (next_chunk(&work)) {
        chunk_answers(compute, &work);
        with_similarity(form->similarity, [&](auto similarity) {
            launch_gradients<decltype(similarity)::value>(
                compute, out->queries + work.first * form->query_width,
                scores_grad + work.first * pairs->width, &work);
        });
        chunk_backward(compute, &work);
        cuda_scatter_add(compute, &relations, work.relations_grad, nullptr,
                         queries->relations + work.first, work.count);
        cuda_scatter_add(compute, &out->entities, work.rows_grad, nullptr, entities_of(&work),
                         work.count * pairs->width);
    }
    return cuda_status(compute);
}
