/* The interface of a unit-wise transform: q = W_r1 h + b_r and k = W_r2 t, unit by unit.
 *
 * A unit is PARTS numbers that are `columns` apart in a row: part p of unit j is row[p * columns + j].
 * The formulas see one unit at a time, in small arrays: h, t, q, k (PARTS numbers each), and r, the
 * relation's unit (RELATION_PARTS numbers, in the relation's row likewise `columns` apart). What a unit
 * needs of the whole row are sums over its units.
 *
 * A transform is a header compute/transforms/name.h and a row in the list of compute/transforms.h. The
 * header defines, as enum constants:
 *
 *   VLP_NAME_PARTS           numbers of a unit of h, t, q and k
 *   VLP_NAME_RELATION_PARTS  numbers of a unit of the relation
 *   VLP_NAME_PREPARED        numbers of a prepared unit of the relation; 0: the unit itself is used
 *   VLP_NAME_SUMS            sums over a row that the forward pass needs
 *   VLP_NAME_SUMS_BACKWARD   further sums that the backward pass needs
 *   VLP_NAME_ANSWERS         1 where answers are transformed, 0 where k = t
 *   VLP_NAME_BILINEAR        1 where q is bilinear in h and r, and k = t: a dot product with k is then
 *                            <r, v> for some v of h and t, and relations can be predicted
 *
 * and these functions. `p` is the prepared unit, or r where PREPARED is 0. Outputs named _grad are added
 * to, others are set. Gradients of the relation are those of the trained r, not of p.
 *
 *   vlp_name_prepare(p, r, scale)                          scale: the form's phase_scale
 *   vlp_name_terms(terms, x, p)                            the unit's terms of the SUMS sums
 *   vlp_name_terms_backward(terms, dy, p)                  the unit's terms of the SUMS_BACKWARD sums
 *   vlp_name_query(q, h, p, row)                           W_r1 h + b_r
 *   vlp_name_query_grad_head(h_grad, dq, p, row)           W_r1^T dq
 *   vlp_name_query_grad_relation(r_grad, dq, h, p, row)
 *   vlp_name_answer(k, t, p, row)                          W_r2 t
 *   vlp_name_answer_grad_tail(t_grad, dk, p, row)          W_r2^T dk
 *   vlp_name_answer_grad_relation(r_grad, dk, t, p, row)
 *
 * The macros below define those that a transform has no use for. Arrays do not overlap. */
#ifndef VLP_COMPUTE_TRANSFORMS_UNIT_H
#define VLP_COMPUTE_TRANSFORMS_UNIT_H

#include <math.h>

#include "base/formula.h"

/* Bounds of the constants, for local arrays. */
enum {
    VLP_MAX_PARTS = 4,
    VLP_MAX_RELATION_PARTS = 4,
    VLP_MAX_PREPARED = 5,
    VLP_MAX_SUMS = 3 /* SUMS + SUMS_BACKWARD */
};

/* What the formulas of a unit know of the whole row. */
typedef struct vlp_unit_row {
    /* The SUMS sums over the row x that is transformed (h or t), then, in the backward pass, the
     * SUMS_BACKWARD sums over the gradient dy of the transformed row (dq or dk). */
    float sums[VLP_MAX_SUMS];
    float scale; /* the form's phase_scale; read by the gradients of the relation */
    bool linear; /* b_r is left out of the query, and has no gradient */
} vlp_unit_row;

/* A norm below this has no direction: its gradient is taken as zero. */
#define VLP_TINY_DISTANCE 1e-12f

/* PREPARED is 0. */
#define VLP_NOTHING_PREPARED(name)                                                                      \
    VLP_FORMULA void vlp_##name##_prepare(float *p, const float *r, float scale) {                      \
        (void)p, (void)r, (void)scale;                                                                  \
    }

/* SUMS and SUMS_BACKWARD are 0. */
#define VLP_NO_SUMS(name)                                                                               \
    VLP_FORMULA void vlp_##name##_terms(float *terms, const float *x, const float *p) {                 \
        (void)terms, (void)x, (void)p;                                                                  \
    }                                                                                                   \
    VLP_FORMULA void vlp_##name##_terms_backward(float *terms, const float *dy, const float *p) {       \
        (void)terms, (void)dy, (void)p;                                                                 \
    }

/* ANSWERS is 0: W_r2 is the identity. */
#define VLP_PLAIN_ANSWERS(name, parts)                                                                  \
    VLP_FORMULA void vlp_##name##_answer(float *k, const float *t, const float *p,                      \
                                         const vlp_unit_row *row) {                                     \
        (void)p, (void)row;                                                                             \
        for (int i = 0; i < (parts); i++) k[i] = t[i];                                                  \
    }                                                                                                   \
    VLP_FORMULA void vlp_##name##_answer_grad_tail(float *t_grad, const float *dk, const float *p,      \
                                                   const vlp_unit_row *row) {                           \
        (void)p, (void)row;                                                                             \
        for (int i = 0; i < (parts); i++) t_grad[i] += dk[i];                                           \
    }                                                                                                   \
    VLP_FORMULA void vlp_##name##_answer_grad_relation(float *r_grad, const float *dk, const float *t,  \
                                                       const float *p, const vlp_unit_row *row) {       \
        (void)r_grad, (void)dk, (void)t, (void)p, (void)row;                                            \
    }

#endif
