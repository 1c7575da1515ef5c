/* Queries from heads and relations, answers moved by relations, and their gradients. Gradients of
 * relations are summed relation by relation, so that no two threads write the same row. */
#include <string.h>

#include "base/vector_math.h"
#include "compute/cpu/cpu.h"

/* ---- One row ------------------------------------------------------------------------------------- */

VLP_CLONES static void scale_complex(float *q, const float *h, const float *r, int32_t half) {
    for (int32_t j = 0; j < half; j++) {
        q[j] = h[j] * r[j] - h[j + half] * r[j + half];
        q[j + half] = h[j] * r[j + half] + h[j + half] * r[j];
    }
}

/* cos and sin in two loops: in one they do not become vectors. */
VLP_CLONES static void phases(float *cosine, float *sine, const float *rho, float scale, int32_t count) {
#pragma omp simd
    for (int32_t j = 0; j < count; j++) cosine[j] = cosf(rho[j] * scale);
#pragma omp simd
    for (int32_t j = 0; j < count; j++) sine[j] = sinf(rho[j] * scale);
}

/* y = W x with W (rows, columns); transposed: y = W^T x. */
VLP_CLONES static void matrix_row(float *y, const float *w, const float *x, int32_t rows,
                                  int32_t columns, bool transposed) {
    if (transposed) {
        memset(y, 0, (size_t)columns * sizeof *y);
        for (int32_t i = 0; i < rows; i++)
            for (int32_t j = 0; j < columns; j++) y[j] += w[(int64_t)i * columns + j] * x[i];
        return;
    }
    for (int32_t i = 0; i < rows; i++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t j = 0; j < columns; j++) sum += w[(int64_t)i * columns + j] * x[j];
        y[i] = sum;
    }
}

/* W += y x^T. */
VLP_CLONES static void outer_row(float *w, const float *y, const float *x, int32_t rows,
                                 int32_t columns) {
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++) w[(int64_t)i * columns + j] += y[i] * x[j];
}

static void add(float *to, const float *from, int32_t width) {
    for (int32_t j = 0; j < width; j++) to[j] += from[j];
}

/* q of one head. `spare` holds 2 * query_width floats. */
static void query_row(const vlp_form *form, float *q, const float *h, const float *r, bool linear,
                      float *spare) {
    int32_t width = form->query_width, entity = form->entity_width;
    switch (form->transform) {
    case VLP_TRANSLATE:
        memcpy(q, h, (size_t)width * sizeof *q);
        if (!linear) add(q, r, width);
        break;
    case VLP_SCALE:
        for (int32_t j = 0; j < width; j++) q[j] = h[j] * r[j];
        break;
    case VLP_SCALE_COMPLEX:
        scale_complex(q, h, r, width / 2);
        break;
    case VLP_ROTATE:
        phases(spare, spare + width / 2, r, form->phase_scale, width / 2);
        scale_complex(q, h, spare, width / 2);
        break;
    case VLP_MATRIX_TRANSPOSED:
        matrix_row(q, r, h, entity, width, true);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_row(q, r, h, width, entity, false);
        if (!linear) add(q, r + (int64_t)width * entity, width);
        break;
    }
}

/* h_grad += d q / d h, r_grad += d q / d r, of one query. `spare` holds 2 * max(width, entity) floats.
 */
static void query_row_backward(const vlp_form *form, float *h_grad, float *r_grad, const float *dq,
                               const float *h, const float *r, bool linear, float *spare) {
    int32_t width = form->query_width, entity = form->entity_width, half = width / 2;
    const float *turn = r;
    switch (form->transform) {
    case VLP_TRANSLATE:
        add(h_grad, dq, width);
        if (!linear) add(r_grad, dq, width);
        break;
    case VLP_SCALE:
        for (int32_t j = 0; j < width; j++) h_grad[j] += dq[j] * r[j];
        for (int32_t j = 0; j < width; j++) r_grad[j] += dq[j] * h[j];
        break;
    case VLP_ROTATE:
        phases(spare, spare + half, r, form->phase_scale, half);
        turn = spare;
        for (int32_t j = 0; j < half; j++) {
            /* d q / d theta = i q: the gradient along the circle. */
            float re = h[j] * turn[j] - h[j + half] * turn[j + half];
            float im = h[j] * turn[j + half] + h[j + half] * turn[j];
            r_grad[j] += form->phase_scale * (dq[j + half] * re - dq[j] * im);
        }
        /* fall through: h is turned as by any complex number */
        __attribute__((fallthrough));
    case VLP_SCALE_COMPLEX:
        for (int32_t j = 0; j < half; j++) {
            h_grad[j] += dq[j] * turn[j] + dq[j + half] * turn[j + half];
            h_grad[j + half] += dq[j + half] * turn[j] - dq[j] * turn[j + half];
        }
        if (form->transform == VLP_ROTATE) break;
        for (int32_t j = 0; j < half; j++) {
            r_grad[j] += dq[j] * h[j] + dq[j + half] * h[j + half];
            r_grad[j + half] += dq[j + half] * h[j] - dq[j] * h[j + half];
        }
        break;
    case VLP_MATRIX_TRANSPOSED:
        matrix_row(spare, r, dq, entity, width, false);
        add(h_grad, spare, entity);
        outer_row(r_grad, h, dq, entity, width);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_row(spare, r, dq, width, entity, true);
        add(h_grad, spare, entity);
        outer_row(r_grad, dq, h, width, entity);
        if (!linear) add(r_grad + (int64_t)width * entity, dq, width);
        break;
    }
}

/* ---- Batches ------------------------------------------------------------------------------------- */

static int64_t spare_width(const vlp_form *form) {
    return 2 *
           (int64_t)(form->query_width > form->entity_width ? form->query_width : form->entity_width);
}

void cpu_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
               bool linear) {
    int64_t width = spare_width(form), count = heads->count;
#pragma omp parallel num_threads(compute->threads) if (count * form->query_width > 4096)
    {
        float spare[width];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            query_row(form, q + i * form->query_width, heads->rows + i * form->entity_width,
                      heads->relation_table + (int64_t)heads->relations[i] * form->relation_width,
                      linear, spare);
    }
}

vlp_status cpu_query_backward(vlp_compute *compute, float *heads_grad, float *relation_grad,
                              const vlp_form *form, const float *q_grad, const vlp_related_rows *heads,
                              bool linear) {
    cpu_segments *segments = &compute->segments;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, heads->relations, heads->count, heads->relation_count));
    int64_t width = spare_width(form);
#pragma omp parallel num_threads(compute->threads) if (heads->count * form->query_width > 4096)
    {
        float spare[width];
#pragma omp for schedule(dynamic, 1)
        for (int64_t s = 0; s < segments->segments; s++) {
            int64_t row = (int64_t)segments->row[s] * form->relation_width;
            for (int64_t at = segments->start[s]; at < segments->start[s + 1]; at++) {
                int64_t i = segments->order[at];
                query_row_backward(form, heads_grad + i * form->entity_width, relation_grad + row,
                                   q_grad + i * form->query_width, heads->rows + i * form->entity_width,
                                   heads->relation_table + row, linear, spare);
            }
        }
    }
    return VLP_OK;
}

void cpu_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        cpu_query(compute, k, form, answers, true);
    else if (k != answers->rows)
        memcpy(k, answers->rows, (size_t)(answers->count * form->query_width) * sizeof *k);
}

static vlp_status answer_backward(vlp_compute *compute, float *answers_grad, float *relation_grad,
                                  const vlp_form *form, const float *k_grad,
                                  const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        return cpu_query_backward(compute, answers_grad, relation_grad, form, k_grad, answers, true);
    for (int64_t i = 0; i < answers->count * form->query_width; i++) answers_grad[i] += k_grad[i];
    return VLP_OK;
}

/* ---- The relation asked for ---------------------------------------------------------------------- */

/* The score is linear in the relation's row; v is what multiplies it. */
static void relation_row(const vlp_form *form, float *v, const float *h, const float *t) {
    int32_t width = form->entity_width, half = width / 2;
    if (form->transform == VLP_SCALE_COMPLEX) {
        for (int32_t j = 0; j < half; j++) {
            v[j] = h[j] * t[j] + h[j + half] * t[j + half];
            v[j + half] = h[j] * t[j + half] - h[j + half] * t[j];
        }
    } else if (form->transform == VLP_SCALE) {
        for (int32_t j = 0; j < width; j++) v[j] = h[j] * t[j];
    } else { /* RESCAL: h t^T */
        memset(v, 0, (size_t)form->relation_width * sizeof *v);
        outer_row(v, h, t, width, width);
    }
}

static void relation_row_backward(const vlp_form *form, float *h_grad, float *t_grad, const float *dv,
                                  const float *h, const float *t) {
    int32_t width = form->entity_width, half = width / 2;
    if (form->transform == VLP_SCALE_COMPLEX) {
        for (int32_t j = 0; j < half; j++) {
            h_grad[j] += dv[j] * t[j] + dv[j + half] * t[j + half];
            h_grad[j + half] += dv[j] * t[j + half] - dv[j + half] * t[j];
            t_grad[j] += dv[j] * h[j] - dv[j + half] * h[j + half];
            t_grad[j + half] += dv[j] * h[j + half] + dv[j + half] * h[j];
        }
    } else if (form->transform == VLP_SCALE) {
        for (int32_t j = 0; j < width; j++) {
            h_grad[j] += dv[j] * t[j];
            t_grad[j] += dv[j] * h[j];
        }
    } else {
        for (int32_t i = 0; i < width; i++)
            for (int32_t j = 0; j < width; j++) {
                h_grad[i] += dv[(int64_t)i * width + j] * t[j];
                t_grad[j] += dv[(int64_t)i * width + j] * h[i];
            }
    }
}

static void relation_query(vlp_compute *compute, float *v, const vlp_form *form,
                           const vlp_head_answer_rows *rows) {
    int64_t e = form->entity_width;
#pragma omp parallel for num_threads(compute->threads) if (rows->count * form->relation_width > 16384)
    for (int64_t i = 0; i < rows->count; i++)
        relation_row(form, v + i * form->relation_width, rows->heads + i * e, rows->answers + i * e);
}

static void relation_query_backward(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                    const vlp_form *form, const float *v_grad,
                                    const vlp_head_answer_rows *rows) {
    int64_t e = form->entity_width;
#pragma omp parallel for num_threads(compute->threads) if (rows->count * form->relation_width > 16384)
    for (int64_t i = 0; i < rows->count; i++)
        relation_row_backward(form, heads_grad + i * e, answers_grad + i * e,
                              v_grad + i * form->relation_width, rows->heads + i * e,
                              rows->answers + i * e);
}

const vlp_transform_operations cpu_transform_operations = {.query = cpu_query,
                                                           .query_backward = cpu_query_backward,
                                                           .answer_backward = answer_backward,
                                                           .relation_query = relation_query,
                                                           .relation_query_backward =
                                                               relation_query_backward};
