/* Every loop is written once, for a transform that is a constant, and instantiated for all of them.
 *
 * Which loops have clones for processors decides where products and sums are contracted, and so the last
 * digits: changing it changes the bits of trained models. */
#include "compute/cpu/units.h"

#include <assert.h>
#include <string.h>

#include "base/simd.h"
#include "base/vector_math.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- Loading and storing ------------------------------------------------------------------------- */

INLINE void load(float *unit, const float *row, int32_t j, int32_t parts, int32_t columns) {
    for (int32_t part = 0; part < parts; part++) unit[part] = row[(int64_t)part * columns + j];
}

INLINE void store(float *row, const float *unit, int32_t j, int32_t parts, int32_t columns) {
    for (int32_t part = 0; part < parts; part++) row[(int64_t)part * columns + j] = unit[part];
}

/* Numbers of a unit of p. */
INLINE int32_t prepared_parts(vlp_transform transform) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    return traits.prepared > 0 ? traits.prepared : traits.relation_parts;
}

/* ---- One unit ------------------------------------------------------------------------------------ */

/* In functions of their own: arrays that are declared within a loop over units keep it from being
 * vectorized. */

INLINE void prepare_unit(vlp_transform transform, float *p, const float *r, float scale, int32_t j,
                         int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    float from[VLP_MAX_RELATION_PARTS], to[VLP_MAX_PREPARED];
    load(from, r, j, traits.relation_parts, columns);
    vlp_unit_prepare(transform, to, from, scale);
    store(p, to, j, traits.prepared, columns);
}

/* Term `index` of the sums: of the forward pass over x, of the backward pass over dy. */
INLINE float unit_term(vlp_transform transform, int32_t index, const float *x, const float *p,
                       bool backward, int32_t j, int32_t columns) {
    float unit[VLP_MAX_PARTS], prepared[VLP_MAX_PREPARED], terms[VLP_MAX_SUMS] = {0};
    load(unit, x, j, vlp_transform_traits_of(transform).parts, columns);
    load(prepared, p, j, prepared_parts(transform), columns);
    if (backward)
        vlp_unit_terms_backward(transform, terms, unit, prepared);
    else
        vlp_unit_terms(transform, terms, unit, prepared);
    return terms[index];
}

INLINE void query_unit(vlp_transform transform, float *q, const float *h, const float *p,
                       const vlp_unit_row *row, int32_t j, int32_t columns) {
    int32_t parts = vlp_transform_traits_of(transform).parts;
    float unit[VLP_MAX_PARTS], prepared[VLP_MAX_PREPARED], out[VLP_MAX_PARTS];
    load(unit, h, j, parts, columns);
    load(prepared, p, j, prepared_parts(transform), columns);
    vlp_unit_query(transform, out, unit, prepared, row);
    store(q, out, j, parts, columns);
}

INLINE void answer_unit(vlp_transform transform, float *k, const float *t, const float *p,
                        const vlp_unit_row *row, int32_t j, int32_t columns) {
    int32_t parts = vlp_transform_traits_of(transform).parts;
    float unit[VLP_MAX_PARTS], prepared[VLP_MAX_PREPARED], out[VLP_MAX_PARTS];
    load(unit, t, j, parts, columns);
    load(prepared, p, j, prepared_parts(transform), columns);
    vlp_unit_answer(transform, out, unit, prepared, row);
    store(k, out, j, parts, columns);
}

INLINE void backward_unit(vlp_transform transform, const cpu_backward_rows *rows,
                          const vlp_unit_row *row, bool answer, int32_t j, int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    float unit[VLP_MAX_PARTS], prepared[VLP_MAX_PREPARED], d[VLP_MAX_PARTS];
    float dx[VLP_MAX_PARTS], dr[VLP_MAX_RELATION_PARTS];
    load(unit, rows->x, j, traits.parts, columns);
    load(prepared, rows->p, j, prepared_parts(transform), columns);
    load(d, rows->dy, j, traits.parts, columns);
    load(dx, rows->x_grad, j, traits.parts, columns);
    load(dr, rows->r_grad, j, traits.relation_parts, columns);
    if (answer) {
        vlp_unit_answer_grad_tail(transform, dx, d, prepared, row);
        vlp_unit_answer_grad_relation(transform, dr, d, unit, prepared, row);
    } else {
        vlp_unit_query_grad_head(transform, dx, d, prepared, row);
        vlp_unit_query_grad_relation(transform, dr, d, unit, prepared, row);
    }
    store(rows->x_grad, dx, j, traits.parts, columns);
    store(rows->r_grad, dr, j, traits.relation_parts, columns);
}

/* The rows of relation prediction in the backward pass. */
typedef struct relation_rows {
    float *h_grad, *t_grad;
    const float *dv, *h, *t;
} relation_rows;

/* Of a bilinear transform: the score <q(h, r), t> is <r, v>, v its gradient of r, and <dv, v> is the
 * score with dv in the place of r. So the formulas of the query serve here too. */
INLINE void relation_unit(vlp_transform transform, float *v, const float *h, const float *t, int32_t j,
                          int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    const vlp_unit_row row = {.linear = true};
    float head[VLP_MAX_PARTS], tail[VLP_MAX_PARTS];
    float none[VLP_MAX_PREPARED] = {0}, out[VLP_MAX_RELATION_PARTS] = {0};
    load(head, h, j, traits.parts, columns);
    load(tail, t, j, traits.parts, columns);
    vlp_unit_query_grad_relation(transform, out, tail, head, none, &row);
    store(v, out, j, traits.relation_parts, columns);
}

INLINE void relation_backward_unit(vlp_transform transform, const relation_rows *rows, int32_t j,
                                   int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    const vlp_unit_row row = {.linear = true};
    float head[VLP_MAX_PARTS], tail[VLP_MAX_PARTS], d[VLP_MAX_PREPARED] = {0};
    float dh[VLP_MAX_PARTS], dt[VLP_MAX_PARTS], q[VLP_MAX_PARTS];
    load(head, rows->h, j, traits.parts, columns);
    load(tail, rows->t, j, traits.parts, columns);
    load(d, rows->dv, j, traits.relation_parts, columns);
    load(dh, rows->h_grad, j, traits.parts, columns);
    load(dt, rows->t_grad, j, traits.parts, columns);
    vlp_unit_query_grad_head(transform, dh, tail, d, &row);
    vlp_unit_query(transform, q, head, d, &row);
    for (int32_t part = 0; part < traits.parts; part++) dt[part] += q[part];
    store(rows->h_grad, dh, j, traits.parts, columns);
    store(rows->t_grad, dt, j, traits.parts, columns);
}

/* ---- One row ------------------------------------------------------------------------------------- */

/* Sum `index` of a pass. One loop per sum: a loop over several is not vectorized. */
INLINE float sum_units(vlp_transform transform, int32_t index, const float *x, const float *p,
                       bool backward, int32_t columns) {
    float sum = 0;
#ifndef __clang__ /* it takes the local arrays of unit_term as shared by all iterations */
#pragma omp simd reduction(+ : sum)
#endif
    for (int32_t j = 0; j < columns; j++) sum += unit_term(transform, index, x, p, backward, j, columns);
    return sum;
}

/* All sums of a pass, into row->sums. */
INLINE void sum_row(vlp_transform transform, vlp_unit_row *row, const float *x, const float *p,
                    bool backward, int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    int32_t first = backward ? traits.sums : 0, count = backward ? traits.sums_backward : traits.sums;
    _Static_assert(VLP_MAX_SUMS == 3, "a line for each sum");
    if (count > 0) row->sums[first] = sum_units(transform, 0, x, p, backward, columns);
    if (count > 1) row->sums[first + 1] = sum_units(transform, 1, x, p, backward, columns);
    if (count > 2) row->sums[first + 2] = sum_units(transform, 2, x, p, backward, columns);
}

/* ---- Instances ----------------------------------------------------------------------------------- */

typedef struct unit_loops {
    void (*prepare)(float *p, const float *r, float scale, int32_t columns);
    void (*sums)(vlp_unit_row *row, const float *x, const float *dy, const float *p, int32_t columns);
    /* `row` is a copy, so that no store of the loop can change it. */
    void (*query)(float *q, const float *h, const float *p, vlp_unit_row row, int32_t columns);
    void (*query_backward)(cpu_backward_rows rows, vlp_unit_row row, int32_t columns);
    void (*answer)(float *k, const float *t, const float *p, vlp_unit_row row, int32_t columns);
    void (*answer_backward)(cpu_backward_rows rows, vlp_unit_row row, int32_t columns);
    void (*relation)(float *v, const float *h, const float *t, int32_t columns);
    void (*relation_backward)(relation_rows rows, int32_t columns);
} unit_loops;

/* For every unit j of a row, whose arrays do not overlap. */
#define FOR_UNITS VLP_SIMD for (int32_t j = 0; j < columns; j++)

#define LOOPS(NAME, name, ...)                                                                          \
    VLP_CLONES static void name##_prepare(float *p, const float *r, float scale, int32_t columns) {     \
        FOR_UNITS prepare_unit(VLP_##NAME, p, r, scale, j, columns);                                    \
    }                                                                                                   \
    VLP_CLONES static void name##_sums(vlp_unit_row *row, const float *x, const float *dy,              \
                                       const float *p, int32_t columns) {                               \
        sum_row(VLP_##NAME, row, x, p, false, columns);                                                 \
        if (dy) sum_row(VLP_##NAME, row, dy, p, true, columns);                                         \
    }                                                                                                   \
    VLP_CLONES static void name##_query(float *q, const float *h, const float *p, vlp_unit_row row,     \
                                        int32_t columns) {                                              \
        FOR_UNITS query_unit(VLP_##NAME, q, h, p, &row, j, columns);                                    \
    }                                                                                                   \
    VLP_CLONES static void name##_query_backward(cpu_backward_rows rows, vlp_unit_row row,              \
                                                 int32_t columns) {                                     \
        FOR_UNITS backward_unit(VLP_##NAME, &rows, &row, false, j, columns);                            \
    }                                                                                                   \
    VLP_CLONES static void name##_answer(float *k, const float *t, const float *p, vlp_unit_row row,    \
                                         int32_t columns) {                                             \
        FOR_UNITS answer_unit(VLP_##NAME, k, t, p, &row, j, columns);                                   \
    }                                                                                                   \
    VLP_CLONES static void name##_answer_backward(cpu_backward_rows rows, vlp_unit_row row,             \
                                                  int32_t columns) {                                    \
        FOR_UNITS backward_unit(VLP_##NAME, &rows, &row, true, j, columns);                             \
    }                                                                                                   \
    static void name##_relation(float *v, const float *h, const float *t, int32_t columns) {            \
        FOR_UNITS relation_unit(VLP_##NAME, v, h, t, j, columns);                                       \
    }                                                                                                   \
    static void name##_relation_backward(relation_rows rows, int32_t columns) {                         \
        FOR_UNITS relation_backward_unit(VLP_##NAME, &rows, j, columns);                                \
    }                                                                                                   \
    static const unit_loops name##_loops = {name##_prepare,  name##_sums,                               \
                                            name##_query,    name##_query_backward,                     \
                                            name##_answer,   name##_answer_backward,                    \
                                            name##_relation, name##_relation_backward};
VLP_UNIT_TRANSFORMS(LOOPS, )
#undef LOOPS

static const unit_loops *loops_of(const vlp_form *form) {
    switch (form->transform) {
#define LABEL(NAME, name, ...)                                                                          \
    case VLP_##NAME:                                                                                    \
        return &name##_loops;
        VLP_UNIT_TRANSFORMS(LABEL, )
#undef LABEL
    case VLP_MATRIX_TRANSPOSED:
    case VLP_MATRIX_TRANSLATE:
        break;
    }
    assert(false); /* a matrix transform has no units */
    return NULL;
}

/* ---- Rows ---------------------------------------------------------------------------------------- */

/* Instead of rotate's formula: cosines and sines are vectorized only in loops of their own. */
VLP_CLONES static void phases(float *cosine, float *sine, const float *rho, float scale, int32_t count) {
#pragma omp simd
    for (int32_t j = 0; j < count; j++) cosine[j] = cosf(rho[j] * scale);
#pragma omp simd
    for (int32_t j = 0; j < count; j++) sine[j] = sinf(rho[j] * scale);
}

const float *cpu_unit_prepare(const vlp_form *form, float *spare, const float *r) {
    int32_t columns = vlp_form_columns(form);
    if (vlp_transform_traits_of(form->transform).prepared == 0) return r;
    if (form->transform == VLP_ROTATE)
        phases(spare, spare + columns, r, form->phase_scale, columns);
    else
        loops_of(form)->prepare(spare, r, form->phase_scale, columns);
    return spare;
}

/* dy NULL: in the forward pass. */
static vlp_unit_row row_of(const vlp_form *form, const float *x, const float *dy, const float *p,
                           bool linear) {
    vlp_unit_row row = {.scale = form->phase_scale, .linear = linear};
    if (vlp_transform_traits_of(form->transform).sums > 0)
        loops_of(form)->sums(&row, x, dy, p, vlp_form_columns(form));
    return row;
}

void cpu_unit_query(const vlp_form *form, float *q, const float *h, const float *p, bool linear) {
    vlp_unit_row row = row_of(form, h, NULL, p, linear);
    loops_of(form)->query(q, h, p, row, vlp_form_columns(form));
}

void cpu_unit_query_backward(const vlp_form *form, const cpu_backward_rows *rows, bool linear) {
    vlp_unit_row row = row_of(form, rows->x, rows->dy, rows->p, linear);
    loops_of(form)->query_backward(*rows, row, vlp_form_columns(form));
}

void cpu_unit_answer(const vlp_form *form, float *k, const float *t, const float *p) {
    vlp_unit_row row = row_of(form, t, NULL, p, true);
    loops_of(form)->answer(k, t, p, row, vlp_form_columns(form));
}

void cpu_unit_answer_backward(const vlp_form *form, const cpu_backward_rows *rows) {
    vlp_unit_row row = row_of(form, rows->x, rows->dy, rows->p, true);
    loops_of(form)->answer_backward(*rows, row, vlp_form_columns(form));
}

void cpu_unit_relation_query(const vlp_form *form, float *v, const float *h, const float *t) {
    assert(vlp_transform_traits_of(form->transform).bilinear);
    loops_of(form)->relation(v, h, t, vlp_form_columns(form));
}

void cpu_unit_relation_query_backward(const vlp_form *form, float *h_grad, float *t_grad,
                                      const float *dv, const float *h, const float *t) {
    assert(vlp_transform_traits_of(form->transform).bilinear);
    loops_of(form)->relation_backward((relation_rows){h_grad, t_grad, dv, h, t}, vlp_form_columns(form));
}
