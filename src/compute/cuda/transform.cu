/* Queries from head entities and relations, answers transformed by relations, and their gradients: by
 * units (units.cu) or by the relations' matrices (here). Gradients of relations are summed relation by
 * relation, in the order of the rows. */
#include "compute/cuda/units.h"

/* ---- Matrices ------------------------------------------------------------------------------------ */

enum { MATRIX_WARPS = 8, MATRIX_THREADS = 128 };

/* The matrices W (rows, columns) of items, each at the start of its relation's row; a bias (rows) may
 * follow. */
typedef struct relation_matrices {
    const float *table;       /* (relation_count, relation_width) */
    const int32_t *relations; /* (count) of the items */
    int64_t count;
    int32_t relation_count, relation_width, rows, columns;
} relation_matrices;

static relation_matrices matrices_of(const vlp_related_rows *rows, const vlp_form *form,
                                     int32_t matrix_rows, int32_t columns) {
    return {rows->relation_table, rows->relations, rows->count, rows->relation_count,
            form->relation_width, matrix_rows,     columns};
}

/* y = W x, plus the bias where `bias`; += where `add`. */
__global__ static void matrix_times(float *y, relation_matrices w, const float *x, bool bias, bool add) {
    int64_t item = blockIdx.x;
    int32_t row = static_cast<int32_t>(blockIdx.y) * MATRIX_WARPS + threadIdx.x / 32;
    if (row >= w.rows) return;
    const float *matrix = w.table + static_cast<int64_t>(w.relations[item]) * w.relation_width;
    const float *from = matrix + static_cast<int64_t>(row) * w.columns, *item_x = x + item * w.columns;
    float sum = 0;
#pragma unroll 4
    for (int32_t j = threadIdx.x % 32; j < w.columns; j += 32) sum += from[j] * item_x[j];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 > 0) return;
    if (bias) sum += matrix[static_cast<int64_t>(w.rows) * w.columns + row];
    float *out = y + item * w.rows + row;
    *out = add ? *out + sum : sum;
}

/* y = W^T x; += where `add`. */
__global__ static void transposed_times(float *y, relation_matrices w, const float *x, bool add) {
    int64_t item = blockIdx.x;
    int32_t j = static_cast<int32_t>(blockIdx.y) * MATRIX_THREADS + threadIdx.x;
    if (j >= w.columns) return;
    const float *matrix = w.table + static_cast<int64_t>(w.relations[item]) * w.relation_width;
    float sum = 0;
#pragma unroll 4
    for (int32_t i = 0; i < w.rows; i++)
        sum += matrix[static_cast<int64_t>(i) * w.columns + j] * x[item * w.rows + i];
    float *out = y + item * w.columns + j;
    *out = add ? *out + sum : sum;
}

/* W of a relation += sum over its items of left right^T; where `bias`, the bias += left. */
__global__ static void outer_sums(float *relation_grad, relation_matrices w, const float *left,
                                  const float *right, cuda_segments segments, bool bias) {
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, static_cast<uint32_t>(w.relation_count))) return;
    int64_t end = segment_end(segments.keys, at, w.count);
    int64_t cells = static_cast<int64_t>(w.rows) * w.columns;
    int64_t cell = static_cast<int64_t>(blockIdx.y) * MATRIX_THREADS + threadIdx.x;
    if (cell >= cells + (bias ? w.rows : 0)) return;
    int64_t row = cell < cells ? cell / w.columns : cell - cells, column = cell % w.columns;
    float sum = 0;
#pragma unroll 4
    for (int64_t i = at; i < end; i++) {
        int64_t item = segments.order[i];
        float l = left[item * w.rows + row];
        sum += cell < cells ? l * right[item * w.columns + column] : l;
    }
    relation_grad[static_cast<int64_t>(segments.keys[at]) * w.relation_width + cell] += sum;
}

static void launch_matrix(vlp_compute *compute, float *y, const relation_matrices *w, const float *x,
                          bool bias, bool add) {
    LAUNCH(compute, matrix_times,
           dim3(static_cast<unsigned>(w->count), cuda_blocks(w->rows, MATRIX_WARPS)), 32 * MATRIX_WARPS,
           0, y, *w, x, bias, add);
}

static void launch_transposed(vlp_compute *compute, float *y, const relation_matrices *w, const float *x,
                              bool add) {
    LAUNCH(compute, transposed_times,
           dim3(static_cast<unsigned>(w->count), cuda_blocks(w->columns, MATRIX_THREADS)),
           MATRIX_THREADS, 0, y, *w, x, add);
}

static void launch_outer(vlp_compute *compute, float *relation_grad, const relation_matrices *w,
                         const float *left, const float *right, const cuda_segments *segments,
                         bool bias) {
    int64_t cells = static_cast<int64_t>(w->rows) * w->columns + (bias ? w->rows : 0);
    LAUNCH(compute, outer_sums,
           dim3(static_cast<unsigned>(w->count), cuda_blocks(cells, MATRIX_THREADS)), MATRIX_THREADS, 0,
           relation_grad, *w, left, right, *segments, bias);
}

/* ---- Batches ------------------------------------------------------------------------------------- */

static void transform_rows(vlp_compute *compute, float *y, const vlp_form *form,
                           const vlp_related_rows *rows, unit_side side) {
    int32_t e = form->entity_width, width = form->query_width;
    if (rows->count == 0) return;
    switch (form->transform) {
        VLP_UNIT_LABELS {
            cuda_unit_rows units = cuda_unit_rows_of(rows);
            cuda_unit_transform(compute, y, form, &units, side);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: {
        relation_matrices w = matrices_of(rows, form, e, width);
        launch_transposed(compute, y, &w, rows->rows, false);
        break;
    }
    case VLP_MATRIX_TRANSLATE: {
        relation_matrices w = matrices_of(rows, form, width, e);
        launch_matrix(compute, y, &w, rows->rows, side == SIDE_QUERY, false);
        break;
    }
    }
}

/* From the gradient of y: rows_grad (count, entity_width) +=, relation_grad +=. */
static vlp_status transform_backward(vlp_compute *compute, float *rows_grad, float *relation_grad,
                                     const vlp_form *form, const float *y_grad,
                                     const vlp_related_rows *rows, unit_side side) {
    int32_t e = form->entity_width, width = form->query_width;
    cuda_segments segments;
    if (rows->count == 0 || !cuda_sort(compute, &segments, rows->relations, rows->count,
                                       rows->relation_count, SLOT_SORT_KEYS, SLOT_SORT_ITEMS))
        return cuda_status(compute);
    switch (form->transform) {
        VLP_UNIT_LABELS {
            cuda_unit_rows units = cuda_unit_rows_of(rows);
            cuda_unit_gradients gradients = {y_grad,        rows_grad, true,
                                             relation_grad, &segments, rows->relation_count};
            cuda_unit_backward(compute, &gradients, form, &units, side);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: {
        relation_matrices w = matrices_of(rows, form, e, width);
        launch_matrix(compute, rows_grad, &w, y_grad, false, true);
        launch_outer(compute, relation_grad, &w, rows->rows, y_grad, &segments, false);
        break;
    }
    case VLP_MATRIX_TRANSLATE: {
        relation_matrices w = matrices_of(rows, form, width, e);
        launch_transposed(compute, rows_grad, &w, y_grad, true);
        launch_outer(compute, relation_grad, &w, y_grad, rows->rows, &segments, side == SIDE_QUERY);
        break;
    }
    }
    return cuda_status(compute);
}

void cuda_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
                bool linear) {
    transform_rows(compute, q, form, heads, linear ? SIDE_LINEAR_QUERY : SIDE_QUERY);
}

static vlp_status query_backward(vlp_compute *compute, float *heads_grad, float *relation_grad,
                                 const vlp_form *form, const float *q_grad,
                                 const vlp_related_rows *heads, bool linear) {
    return transform_backward(compute, heads_grad, relation_grad, form, q_grad, heads,
                              linear ? SIDE_LINEAR_QUERY : SIDE_QUERY);
}

void cuda_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        transform_rows(compute, k, form, answers, SIDE_ANSWER);
    else if (k != answers->rows && answers->count > 0)
        cuda_note(
            compute,
            cudaMemcpyAsync(k, answers->rows,
                            static_cast<size_t>(answers->count * form->query_width) * sizeof(float),
                            cudaMemcpyDeviceToDevice, compute->stream),
            "copying answers");
}

static vlp_status answer_backward(vlp_compute *compute, float *answers_grad, float *relation_grad,
                                  const vlp_form *form, const float *k_grad,
                                  const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        return transform_backward(compute, answers_grad, relation_grad, form, k_grad, answers,
                                  SIDE_ANSWER);
    cuda_add(compute, answers_grad, k_grad, answers->count * form->query_width);
    return cuda_status(compute);
}

/* ---- Relation prediction ------------------------------------------------------------------------- */

/* MATRIX_TRANSPOSED: v = h t^T, one thread per cell of the matrix. */
__global__ static void outer_rows(vlp_form form, float *v, const float *heads, const float *answers) {
    int64_t i = blockIdx.x;
    int32_t cell = my_column(), width = form.query_width;
    if (cell >= form.relation_width) return;
    v[i * form.relation_width + cell] =
        heads[i * form.entity_width + cell / width] * answers[i * width + cell % width];
}

/* From dv: h_grad += dv t, t_grad += dv^T h, one thread per column of both. */
__global__ static void outer_rows_backward(vlp_form form, float *heads_grad, float *answers_grad,
                                           const float *v_grad, const float *heads,
                                           const float *answers) {
    int64_t i = blockIdx.x;
    int32_t j = my_column(), width = form.entity_width;
    if (j >= width) return;
    const float *h = heads + i * width, *t = answers + i * width, *dv = v_grad + i * form.relation_width;
    float to_head = 0, to_answer = 0;
    for (int32_t k = 0; k < width; k++) {
        to_head += dv[static_cast<int64_t>(j) * width + k] * t[k];
        to_answer += dv[static_cast<int64_t>(k) * width + j] * h[k];
    }
    heads_grad[i * width + j] += to_head;
    answers_grad[i * width + j] += to_answer;
}

static void relation_query(vlp_compute *compute, float *v, const vlp_form *form,
                           const vlp_head_answer_rows *rows) {
    if (rows->count == 0) return;
    switch (form->transform) {
        VLP_UNIT_LABELS
        cuda_unit_relation_query(compute, v, form, rows);
        break;
    case VLP_MATRIX_TRANSPOSED:
        LAUNCH(compute, outer_rows, cuda_grid(rows->count, form->relation_width), COLUMN_BLOCK, 0, *form,
               v, rows->heads, rows->answers);
        break;
    case VLP_MATRIX_TRANSLATE: /* not linear in the relation */
        assert(false);
        break;
    }
}

static void relation_query_backward(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                    const vlp_form *form, const float *v_grad,
                                    const vlp_head_answer_rows *rows) {
    if (rows->count == 0) return;
    switch (form->transform) {
        VLP_UNIT_LABELS
        cuda_unit_relation_query_backward(compute, heads_grad, answers_grad, form, v_grad, rows);
        break;
    case VLP_MATRIX_TRANSPOSED:
        LAUNCH(compute, outer_rows_backward, cuda_grid(rows->count, form->entity_width), COLUMN_BLOCK, 0,
               *form, heads_grad, answers_grad, v_grad, rows->heads, rows->answers);
        break;
    case VLP_MATRIX_TRANSLATE: /* not linear in the relation */
        assert(false);
        break;
    }
}

const vlp_transform_operations cuda_transform_operations = {.query = cuda_query,
                                                            .query_backward = query_backward,
                                                            .answer_backward = answer_backward,
                                                            .relation_query = relation_query,
                                                            .relation_query_backward =
                                                                relation_query_backward};
