/* Unit-wise transforms of one row: the formulas of compute/transforms.h as vectorized loops. Gradients
 * are added to. Arrays do not overlap. */
#ifndef VLP_COMPUTE_CPU_UNITS_H
#define VLP_COMPUTE_CPU_UNITS_H

#include "compute/form.h"

/* Floats of a prepared relation; 0: the relation's row is used as it is. */
static inline int64_t cpu_prepared_width(const vlp_form *form) {
    return (int64_t)vlp_transform_traits_of(form->transform).prepared * vlp_form_columns(form);
}

/* p of a relation's row r: r itself, or `spare` (cpu_prepared_width) with its prepared units. */
const float *cpu_unit_prepare(const vlp_form *form, float *spare, const float *r);

/* One row x in the backward pass: y is its query or answer, p its relation, prepared. */
typedef struct cpu_backward_rows {
    float *x_grad, *r_grad;
    const float *dy, *x, *p;
} cpu_backward_rows;

void cpu_unit_query(const vlp_form *form, float *q, const float *h, const float *p, bool linear);
void cpu_unit_query_backward(const vlp_form *form, const cpu_backward_rows *rows, bool linear);
void cpu_unit_answer(const vlp_form *form, float *k, const float *t, const float *p);
void cpu_unit_answer_backward(const vlp_form *form, const cpu_backward_rows *rows);

/* For a bilinear transform and a dot product: v with score <r, v>, and its gradients. */
void cpu_unit_relation_query(const vlp_form *form, float *v, const float *h, const float *t);
void cpu_unit_relation_query_backward(const vlp_form *form, float *h_grad, float *t_grad,
                                      const float *dv, const float *h, const float *t);

#endif
