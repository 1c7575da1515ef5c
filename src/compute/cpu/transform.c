/* Queries from head entities and relations, answers transformed by relations, and their gradients.
 * Gradients of relations are summed relation by relation, so that no two threads write the same row. */
#include <string.h>

#include "compute/cpu/cpu.h"
#include "compute/cpu/units.h"

/* ---- Matrices ------------------------------------------------------------------------------------ */

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

/* ---- One row ------------------------------------------------------------------------------------- */

/* What a row is: a head entity that becomes a query, a query without its bias b_r, or an answer. */
typedef enum row_kind { ROW_QUERY, ROW_LINEAR_QUERY, ROW_ANSWER } row_kind;

/* Floats of working memory per row, at least 1. */
static int64_t spare_width(const vlp_form *form) {
    int64_t prepared = cpu_prepared_width(form),
            entity = form->entity_width > 1 ? form->entity_width : 1;
    return prepared > entity ? prepared : entity;
}

static void transform_row(const vlp_form *form, row_kind kind, float *y, const float *x, const float *r,
                          float *spare) {
    int32_t width = form->query_width, entity = form->entity_width;
    switch (form->transform) {
        VLP_UNIT_LABELS {
            const float *p = cpu_unit_prepare(form, spare, r);
            if (kind == ROW_ANSWER)
                cpu_unit_answer(form, y, x, p);
            else
                cpu_unit_query(form, y, x, p, kind == ROW_LINEAR_QUERY);
            break;
        }
    case VLP_MATRIX_TRANSPOSED:
        matrix_row(y, r, x, entity, width, true);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_row(y, r, x, width, entity, false);
        if (kind == ROW_QUERY) add(y, r + (int64_t)width * entity, width);
        break;
    }
}

/* The gradients of one row; rows->p is the relation's row. */
static void transform_row_backward(const vlp_form *form, row_kind kind, const cpu_backward_rows *rows,
                                   float *spare) {
    int32_t width = form->query_width, entity = form->entity_width;
    const float *dy = rows->dy, *x = rows->x, *r = rows->p;
    float *x_grad = rows->x_grad, *r_grad = rows->r_grad;
    switch (form->transform) {
        VLP_UNIT_LABELS {
            cpu_backward_rows units = *rows;
            units.p = cpu_unit_prepare(form, spare, r);
            if (kind == ROW_ANSWER)
                cpu_unit_answer_backward(form, &units);
            else
                cpu_unit_query_backward(form, &units, kind == ROW_LINEAR_QUERY);
            break;
        }
    case VLP_MATRIX_TRANSPOSED:
        matrix_row(spare, r, dy, entity, width, false);
        add(x_grad, spare, entity);
        outer_row(r_grad, x, dy, entity, width);
        break;
    case VLP_MATRIX_TRANSLATE:
        matrix_row(spare, r, dy, width, entity, true);
        add(x_grad, spare, entity);
        outer_row(r_grad, dy, x, width, entity);
        if (kind == ROW_QUERY) add(r_grad + (int64_t)width * entity, dy, width);
        break;
    }
}

/* ---- Batches ------------------------------------------------------------------------------------- */

static void transform_rows(vlp_compute *compute, float *y, const vlp_form *form,
                           const vlp_related_rows *rows, row_kind kind) {
    int64_t width = spare_width(form), count = rows->count;
#pragma omp parallel num_threads(compute->threads) if (count * form->query_width > 4096)
    {
        float spare[width];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            transform_row(form, kind, y + i * form->query_width, rows->rows + i * form->entity_width,
                          rows->relation_table + (int64_t)rows->relations[i] * form->relation_width,
                          spare);
    }
}

static vlp_status transform_rows_backward(vlp_compute *compute, float *rows_grad, float *relation_grad,
                                          const vlp_form *form, const float *y_grad,
                                          const vlp_related_rows *rows, row_kind kind) {
    cpu_segments *segments = &compute->segments;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, rows->relations, rows->count, rows->relation_count));
    int64_t width = spare_width(form);
#pragma omp parallel num_threads(compute->threads) if (rows->count * form->query_width > 4096)
    {
        float spare[width];
#pragma omp for schedule(dynamic, 1)
        for (int64_t s = 0; s < segments->segments; s++) {
            int64_t row = (int64_t)segments->row[s] * form->relation_width;
            for (int64_t at = segments->start[s]; at < segments->start[s + 1]; at++) {
                int64_t i = segments->order[at];
                cpu_backward_rows one = {.x_grad = rows_grad + i * form->entity_width,
                                         .r_grad = relation_grad + row,
                                         .dy = y_grad + i * form->query_width,
                                         .x = rows->rows + i * form->entity_width,
                                         .p = rows->relation_table + row};
                transform_row_backward(form, kind, &one, spare);
            }
        }
    }
    return VLP_OK;
}

void cpu_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
               bool linear) {
    transform_rows(compute, q, form, heads, linear ? ROW_LINEAR_QUERY : ROW_QUERY);
}

static vlp_status query_backward(vlp_compute *compute, float *heads_grad, float *relation_grad,
                                 const vlp_form *form, const float *q_grad,
                                 const vlp_related_rows *heads, bool linear) {
    return transform_rows_backward(compute, heads_grad, relation_grad, form, q_grad, heads,
                                   linear ? ROW_LINEAR_QUERY : ROW_QUERY);
}

void cpu_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        transform_rows(compute, k, form, answers, ROW_ANSWER);
    else if (k != answers->rows)
        memcpy(k, answers->rows, (size_t)(answers->count * form->query_width) * sizeof *k);
}

vlp_status cpu_answer_backward(vlp_compute *compute, float *answers_grad, float *relation_grad,
                               const vlp_form *form, const float *k_grad,
                               const vlp_related_rows *answers) {
    if (vlp_form_transforms_answers(form))
        return transform_rows_backward(compute, answers_grad, relation_grad, form, k_grad, answers,
                                       ROW_ANSWER);
    for (int64_t i = 0; i < answers->count * form->query_width; i++) answers_grad[i] += k_grad[i];
    return VLP_OK;
}

/* ---- Relation prediction ------------------------------------------------------------------------- */

static void relation_row(const vlp_form *form, float *v, const float *h, const float *t) {
    switch (form->transform) {
        VLP_UNIT_LABELS
        cpu_unit_relation_query(form, v, h, t);
        break;
    case VLP_MATRIX_TRANSPOSED: /* h t^T */
        memset(v, 0, (size_t)form->relation_width * sizeof *v);
        outer_row(v, h, t, form->entity_width, form->query_width);
        break;
    case VLP_MATRIX_TRANSLATE: /* not linear in the relation */
        assert(false);
        break;
    }
}

static void relation_row_backward(const vlp_form *form, float *h_grad, float *t_grad, const float *dv,
                                  const float *h, const float *t) {
    int32_t width = form->entity_width;
    switch (form->transform) {
        VLP_UNIT_LABELS
        cpu_unit_relation_query_backward(form, h_grad, t_grad, dv, h, t);
        break;
    case VLP_MATRIX_TRANSPOSED:
        for (int32_t i = 0; i < width; i++)
            for (int32_t j = 0; j < width; j++) {
                h_grad[i] += dv[(int64_t)i * width + j] * t[j];
                t_grad[j] += dv[(int64_t)i * width + j] * h[i];
            }
        break;
    case VLP_MATRIX_TRANSLATE: /* not linear in the relation */
        assert(false);
        break;
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
                                                           .query_backward = query_backward,
                                                           .answer_backward = cpu_answer_backward,
                                                           .relation_query = relation_query,
                                                           .relation_query_backward =
                                                               relation_query_backward};
