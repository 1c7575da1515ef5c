/* Queries from heads and relations, answers moved by relations, and their gradients. Gradients of
 * relations are summed relation by relation, in the order of the queries. */
#include "compute/cuda/transform.h"

/* ---- Elementwise --------------------------------------------------------------------------------- */

/* Columns that make a number each: of a part, where numbers are complex. */
static inline __host__ __device__ int32_t columns_of(const vlp_form &form) {
    return is_complex_transform(form) ? form.query_width / 2 : form.query_width;
}

__global__ static void query_rows(vlp_form form, float *q, const float *heads, const int32_t *relations,
                                  const float *table, bool linear) {
    int64_t i = blockIdx.x;
    int32_t j = my_column(), columns = columns_of(form);
    if (j >= columns) return;
    const float *h = heads + i * form.entity_width + j;
    const float *r = table + static_cast<int64_t>(relations[i]) * form.relation_width;
    float *out = q + i * form.query_width + j;
    bool parts = is_complex_transform(form);
    complex_number z = query_number(form, {h[0], parts ? h[columns] : 0.0f}, r, j, linear);
    out[0] = z.re;
    if (parts) out[columns] = z.im;
}

__global__ static void query_rows_backward(vlp_form form, float *heads_grad, const float *q_grad,
                                           const int32_t *relations, const float *table) {
    int64_t i = blockIdx.x;
    int32_t j = my_column(), columns = columns_of(form);
    if (j >= columns) return;
    const float *r = table + static_cast<int64_t>(relations[i]) * form.relation_width;
    const float *dq = q_grad + i * form.query_width;
    float *out = heads_grad + i * form.entity_width;
    if (!is_complex_transform(form)) {
        out[j] += form.transform == VLP_TRANSLATE ? dq[j] : dq[j] * r[j];
        return;
    }
    complex_number before = number(out, j, columns);
    complex_number z = times_conjugate(number(dq, j, columns), turn_of(form, r, j, columns));
    out[j] = before.re + z.re;
    out[j + columns] = before.im + z.im;
}

enum { RELATION_THREADS = 256, RELATION_COLUMNS = 128 };

/* What a query adds to the gradient of its relation, four columns of it. */
__device__ static void add_relation(const vlp_form &form, float re[4], float im[4], const float *dq,
                                    const float *h, const complex_number turn[4], int32_t half,
                                    int32_t left, bool aligned) {
    float d_re[4], h_re[4], d_im[4], h_im[4];
    load4(d_re, dq, left, aligned);
    if (form.transform == VLP_TRANSLATE) {
#pragma unroll
        for (int k = 0; k < 4; k++) re[k] += d_re[k];
        return;
    }
    load4(h_re, h, left, aligned);
    if (form.transform == VLP_SCALE) {
#pragma unroll
        for (int k = 0; k < 4; k++) re[k] += d_re[k] * h_re[k];
        return;
    }
    load4(d_im, dq + half, left, aligned);
    load4(h_im, h + half, left, aligned);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        complex_number z = {h_re[k], h_im[k]}, d = {d_re[k], d_im[k]};
        if (form.transform == VLP_ROTATE) {
            /* d q / d theta = i q: the gradient along the circle. */
            complex_number turned = times(z, turn[k]);
            re[k] += form.phase_scale * (d.im * turned.re - d.re * turned.im);
        } else {
            complex_number part = times_conjugate(d, z);
            re[k] += part.re;
            im[k] += part.im;
        }
    }
}

/* A block for every query and slice of columns; the first query of a relation works for all of its, a
 * warp every eighth of them. */
__global__ static void __launch_bounds__(RELATION_THREADS)
    relation_rows_backward(vlp_form form, float *relation_grad, const float *q_grad, const float *heads,
                           const float *table, cuda_segments segments, int64_t count,
                           uint32_t relation_count, bool aligned) {
    constexpr int WARPS = RELATION_THREADS / 32;
    __shared__ float sums[WARPS][2][RELATION_COLUMNS];
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, relation_count)) return;
    int64_t end = segment_end(segments.keys, at, count), width = form.query_width;
    int64_t row = static_cast<int64_t>(segments.keys[at]) * form.relation_width;
    int32_t half = is_complex_transform(form) ? form.query_width / 2 : 0,
            columns = form.query_width - half;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t j = static_cast<int32_t>(blockIdx.y) * RELATION_COLUMNS + 4 * lane, left = columns - j;
    complex_number turn[4] = {};
    float re[4] = {0, 0, 0, 0}, im[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4 && k < left && form.transform == VLP_ROTATE; k++)
        turn[k] = phase(table[row + j + k], form.phase_scale);
#pragma unroll 2
    for (int64_t i = at + warp; left > 0 && i < end; i += WARPS) {
        int64_t item = segments.order[i];
        add_relation(form, re, im, q_grad + item * width + j, heads + item * form.entity_width + j, turn,
                     half, left, aligned);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        sums[warp][0][4 * lane + k] = re[k];
        sums[warp][1][4 * lane + k] = im[k];
    }
    __syncthreads();
    int side = threadIdx.x / RELATION_COLUMNS, column = threadIdx.x % RELATION_COLUMNS;
    j = static_cast<int32_t>(blockIdx.y) * RELATION_COLUMNS + column;
    if (j >= columns || (side == 1 && form.transform != VLP_SCALE_COMPLEX)) return;
    float sum = 0;
    for (int w = 0; w < WARPS; w++) sum += sums[w][side][column];
    relation_grad[row + side * half + j] += sum;
}

/* ---- Matrices ------------------------------------------------------------------------------------ */

enum { MATRIX_WARPS = 8, MATRIX_THREADS = 128 };

/* y = W x (+ bias behind W), W (rows, columns) of the item's relation; += where `add`. */
__global__ static void matrix_times(float *y, const float *table, const int32_t *relations,
                                    const float *x, int32_t relation_width, int32_t rows,
                                    int32_t columns, bool bias, bool add) {
    int64_t item = blockIdx.x;
    int32_t row = static_cast<int32_t>(blockIdx.y) * MATRIX_WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    const float *matrix = table + static_cast<int64_t>(relations[item]) * relation_width;
    const float *w = matrix + static_cast<int64_t>(row) * columns, *from = x + item * columns;
    float sum = 0;
#pragma unroll 4
    for (int32_t j = threadIdx.x % 32; j < columns; j += 32) sum += w[j] * from[j];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 > 0) return;
    if (bias) sum += matrix[static_cast<int64_t>(rows) * columns + row];
    float *out = y + item * rows + row;
    *out = add ? *out + sum : sum;
}

/* y = W^T x. */
__global__ static void transposed_times(float *y, const float *table, const int32_t *relations,
                                        const float *x, int32_t relation_width, int32_t rows,
                                        int32_t columns, bool add) {
    int64_t item = blockIdx.x;
    int32_t j = static_cast<int32_t>(blockIdx.y) * MATRIX_THREADS + threadIdx.x;
    if (j >= columns) return;
    const float *w = table + static_cast<int64_t>(relations[item]) * relation_width;
    float sum = 0;
#pragma unroll 4
    for (int32_t i = 0; i < rows; i++)
        sum += w[static_cast<int64_t>(i) * columns + j] * x[item * rows + i];
    float *out = y + item * columns + j;
    *out = add ? *out + sum : sum;
}

/* The matrix of a relation += sum over its items of left right^T; what stands behind it += left. */
__global__ static void outer_sums(float *relation_grad, const float *left, const float *right,
                                  cuda_segments segments, int64_t count, uint32_t relation_count,
                                  int32_t relation_width, int32_t rows, int32_t columns, bool bias) {
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, relation_count)) return;
    int64_t end = segment_end(segments.keys, at, count), cells = static_cast<int64_t>(rows) * columns;
    int64_t cell = static_cast<int64_t>(blockIdx.y) * MATRIX_THREADS + threadIdx.x;
    if (cell >= cells + (bias ? rows : 0)) return;
    int64_t row = cell < cells ? cell / columns : cell - cells, column = cell % columns;
    float sum = 0;
#pragma unroll 4
    for (int64_t i = at; i < end; i++) {
        int64_t item = segments.order[i];
        float l = left[item * rows + row];
        sum += cell < cells ? l * right[item * columns + column] : l;
    }
    relation_grad[static_cast<int64_t>(segments.keys[at]) * relation_width + cell] += sum;
}

static void matrix_query(vlp_compute *compute, float *q, const vlp_form *form,
                         const vlp_related_rows *heads, bool linear) {
    int32_t e = form->entity_width, width = form->query_width;
    unsigned items = static_cast<unsigned>(heads->count);
    if (form->transform == VLP_MATRIX_TRANSPOSED)
        LAUNCH(compute, transposed_times, dim3(items, cuda_blocks(width, MATRIX_THREADS)),
               MATRIX_THREADS, 0, q, heads->relation_table, heads->relations, heads->rows,
               form->relation_width, e, width, false);
    else
        LAUNCH(compute, matrix_times, dim3(items, cuda_blocks(width, MATRIX_WARPS)), 32 * MATRIX_WARPS,
               0, q, heads->relation_table, heads->relations, heads->rows, form->relation_width, width,
               e, !linear, false);
}

/* From q_grad, the queries sorted by their relations. */
typedef struct query_gradients {
    const float *q_grad;
    cuda_segments segments;
    bool linear;
} query_gradients;

static void matrix_backward(vlp_compute *compute, float *heads_grad, float *relation_grad,
                            const vlp_form *form, const query_gradients *from,
                            const vlp_related_rows *heads) {
    int32_t e = form->entity_width, width = form->query_width;
    const float *table = heads->relation_table, *q_grad = from->q_grad;
    unsigned items = static_cast<unsigned>(heads->count);
    bool transposed = form->transform == VLP_MATRIX_TRANSPOSED, bias = !transposed && !from->linear;
    if (transposed)
        LAUNCH(compute, matrix_times, dim3(items, cuda_blocks(e, MATRIX_WARPS)), 32 * MATRIX_WARPS, 0,
               heads_grad, table, heads->relations, q_grad, form->relation_width, e, width, false, true);
    else
        LAUNCH(compute, transposed_times, dim3(items, cuda_blocks(e, MATRIX_THREADS)), MATRIX_THREADS, 0,
               heads_grad, table, heads->relations, q_grad, form->relation_width, width, e, true);
    int32_t rows = transposed ? e : width, columns = transposed ? width : e;
    int64_t cells = static_cast<int64_t>(rows) * columns + (bias ? rows : 0);
    LAUNCH(compute, outer_sums, dim3(items, cuda_blocks(cells, MATRIX_THREADS)), MATRIX_THREADS, 0,
           relation_grad, transposed ? heads->rows : q_grad, transposed ? q_grad : heads->rows,
           from->segments, heads->count, static_cast<uint32_t>(heads->relation_count),
           form->relation_width, rows, columns, bias);
}

/* ---- Batches ------------------------------------------------------------------------------------- */

void cuda_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
                bool linear) {
    if (heads->count == 0) return;
    if (is_matrix_transform(*form))
        matrix_query(compute, q, form, heads, linear);
    else
        LAUNCH(compute, query_rows, cuda_grid(heads->count, columns_of(*form)), COLUMN_BLOCK, 0, *form,
               q, heads->rows, heads->relations, heads->relation_table, linear);
}

static vlp_status query_backward(vlp_compute *compute, float *heads_grad, float *relation_grad,
                                 const vlp_form *form, const float *q_grad,
                                 const vlp_related_rows *heads, bool linear) {
    query_gradients from = {q_grad, {}, linear};
    int64_t count = heads->count;
    if (count == 0) return cuda_status(compute);
    if (!cuda_sort(compute, &from.segments, heads->relations, count, heads->relation_count,
                   SLOT_SORT_KEYS, SLOT_SORT_ITEMS))
        return cuda_status(compute);
    if (is_matrix_transform(*form)) {
        matrix_backward(compute, heads_grad, relation_grad, form, &from, heads);
        return cuda_status(compute);
    }
    int32_t columns = columns_of(*form);
    LAUNCH(compute, query_rows_backward, cuda_grid(count, columns), COLUMN_BLOCK, 0, *form, heads_grad,
           q_grad, heads->relations, heads->relation_table);
    if (form->transform == VLP_TRANSLATE && linear) return cuda_status(compute); /* r is left out */
    uintptr_t places = reinterpret_cast<uintptr_t>(q_grad) | reinterpret_cast<uintptr_t>(heads->rows);
    dim3 grid(static_cast<unsigned>(count), cuda_blocks(columns, RELATION_COLUMNS));
    LAUNCH(compute, relation_rows_backward, grid, RELATION_THREADS, 0, *form, relation_grad, q_grad,
           heads->rows, heads->relation_table, from.segments, count,
           static_cast<uint32_t>(heads->relation_count),
           columns % 4 == 0 && places % sizeof(float4) == 0);
    return cuda_status(compute);
}

void cuda_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        cuda_query(compute, k, form, answers, true);
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
        return query_backward(compute, answers_grad, relation_grad, form, k_grad, answers, true);
    cuda_add(compute, answers_grad, k_grad, answers->count * form->query_width);
    return cuda_status(compute);
}

/* ---- The relation asked for ---------------------------------------------------------------------- */

/* The score is linear in the relation's row; v is what multiplies it. RESCAL has a column for every
 * cell of its matrix, whose v is h t^T. */
static int32_t relation_columns(const vlp_form &form) {
    return form.transform == VLP_SCALE_COMPLEX ? form.relation_width / 2 : form.relation_width;
}

__global__ static void relation_query_rows(vlp_form form, float *v, const float *heads,
                                           const float *answers, int32_t columns) {
    int64_t i = blockIdx.x;
    int32_t j = my_column(), width = form.entity_width;
    if (j >= columns) return;
    const float *h = heads + i * width, *t = answers + i * width;
    float *out = v + i * form.relation_width;
    if (form.transform == VLP_SCALE_COMPLEX) {
        complex_number z = times_conjugate(number(t, j, columns), number(h, j, columns));
        out[j] = z.re;
        out[j + columns] = z.im;
    } else if (form.transform == VLP_SCALE) {
        out[j] = h[j] * t[j];
    } else {
        out[j] = h[j / width] * t[j % width];
    }
}

static void relation_query(vlp_compute *compute, float *v, const vlp_form *form,
                           const vlp_head_answer_rows *rows) {
    if (rows->count == 0) return;
    int32_t columns = relation_columns(*form);
    LAUNCH(compute, relation_query_rows, cuda_grid(rows->count, columns), COLUMN_BLOCK, 0, *form, v,
           rows->heads, rows->answers, columns);
}

/* A thread a number of h and of t. */
__global__ static void relation_query_rows_backward(vlp_form form, float *heads_grad,
                                                    float *answers_grad, const float *v_grad,
                                                    const float *heads, const float *answers) {
    int64_t i = blockIdx.x, e = form.entity_width;
    int32_t j = my_column(), columns = columns_of(form), width = form.entity_width;
    if (j >= columns) return;
    const float *h = heads + i * e, *t = answers + i * e, *dv = v_grad + i * form.relation_width;
    float *h_grad = heads_grad + i * e + j, *t_grad = answers_grad + i * e + j;
    complex_number to_head = {0, 0}, to_answer = {0, 0};
    if (form.transform == VLP_SCALE_COMPLEX) {
        complex_number d = number(dv, j, columns);
        to_head = times_conjugate(number(t, j, columns), d);
        to_answer = times(number(h, j, columns), d);
    } else if (form.transform == VLP_SCALE) {
        to_head.re = dv[j] * t[j];
        to_answer.re = dv[j] * h[j];
    } else { /* RESCAL: the products of dv with t and with h */
        for (int32_t k = 0; k < width; k++) {
            to_head.re += dv[static_cast<int64_t>(j) * width + k] * t[k];
            to_answer.re += dv[static_cast<int64_t>(k) * width + j] * h[k];
        }
    }
    float before[4] = {h_grad[0], t_grad[0], 0, 0};
    bool parts = columns < width;
    if (parts) before[2] = h_grad[columns], before[3] = t_grad[columns];
    h_grad[0] = before[0] + to_head.re;
    t_grad[0] = before[1] + to_answer.re;
    if (parts) h_grad[columns] = before[2] + to_head.im;
    if (parts) t_grad[columns] = before[3] + to_answer.im;
}

static void relation_query_backward(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                    const vlp_form *form, const float *v_grad,
                                    const vlp_head_answer_rows *rows) {
    if (rows->count == 0) return;
    LAUNCH(compute, relation_query_rows_backward, cuda_grid(rows->count, columns_of(*form)),
           COLUMN_BLOCK, 0, *form, heads_grad, answers_grad, v_grad, rows->heads, rows->answers);
}

const vlp_transform_operations cuda_transform_operations = {.query = cuda_query,
                                                            .query_backward = query_backward,
                                                            .answer_backward = answer_backward,
                                                            .relation_query = relation_query,
                                                            .relation_query_backward =
                                                                relation_query_backward};
