/* All transforms: how a query is computed from a head entity and a relation, and whether answers are
 * transformed. Compiles as C17 and as CUDA. Backends instantiate their kernels from two lists:
 *
 *   VLP_UNIT_TRANSFORMS(X, ...)    X(NAME, name, ...) for every unit-wise transform: a header each, with
 *                                  the formulas described in compute/transforms/unit.h
 *   VLP_MATRIX_TRANSFORMS(X, ...)  X(NAME, answers, bilinear, ...) for every transform by the relation's
 * matrix; these are matrix products
 *
 * A function that takes the transform as its first argument is a switch that the compiler removes where
 * that argument is a constant, such as a template argument. */
#ifndef VLP_COMPUTE_TRANSFORMS_H
#define VLP_COMPUTE_TRANSFORMS_H

#include "compute/transforms/hyperplane.h"
#include "compute/transforms/pair.h"
#include "compute/transforms/quaternion.h"
#include "compute/transforms/rotate.h"
#include "compute/transforms/scale.h"
#include "compute/transforms/scale_complex.h"
#include "compute/transforms/translate.h"

/* clang-format off */
#define VLP_UNIT_TRANSFORMS(X, ...)                                                                     \
    X(TRANSLATE, translate, __VA_ARGS__)                                                                \
    X(SCALE, scale, __VA_ARGS__)                                                                        \
    X(SCALE_COMPLEX, scale_complex, __VA_ARGS__)                                                        \
    X(ROTATE, rotate, __VA_ARGS__)                                                                      \
    X(PAIR, pair, __VA_ARGS__)                                                                          \
    X(HYPERPLANE, hyperplane, __VA_ARGS__)                                                              \
    X(QUATERNION, quaternion, __VA_ARGS__)

/* MATRIX_TRANSPOSED: q = W^T h; the relation's row is W (d_e, d_q), row-major.
 * MATRIX_TRANSLATE: q = W h + b, k = W t; the relation's row is W (d_q, d_e), then b. */
#define VLP_MATRIX_TRANSFORMS(X, ...)                                                                   \
    X(MATRIX_TRANSPOSED, false, true, __VA_ARGS__)                                                      \
    X(MATRIX_TRANSLATE, true, false, __VA_ARGS__)

#define VLP_ENUMERATOR(NAME, ...) VLP_##NAME,
/* VLP_TRANSLATE, VLP_SCALE, ... */
typedef enum vlp_transform {
    VLP_UNIT_TRANSFORMS(VLP_ENUMERATOR, )
    VLP_MATRIX_TRANSFORMS(VLP_ENUMERATOR, )
} vlp_transform;
#undef VLP_ENUMERATOR

/* The labels of all unit-wise transforms, for a switch that treats them alike. */
#define VLP_UNIT_LABEL(NAME, ...) case VLP_##NAME:
#define VLP_UNIT_LABELS VLP_UNIT_TRANSFORMS(VLP_UNIT_LABEL, )
/* clang-format on */

/* ---- Constants ----------------------------------------------------------------------------------- */

/* The constants of compute/transforms/unit.h. A matrix transform has units of one part, and no relation
 * parts. */
typedef struct vlp_transform_traits {
    bool matrix, answers, bilinear;
    int32_t parts, relation_parts, prepared, sums, sums_backward;
} vlp_transform_traits;

#define VLP_UNIT(NAME, ...)                                                                             \
    case VLP_##NAME: {                                                                                  \
        vlp_transform_traits traits = {false,                                                           \
                                       VLP_##NAME##_ANSWERS != 0,                                       \
                                       VLP_##NAME##_BILINEAR != 0,                                      \
                                       VLP_##NAME##_PARTS,                                              \
                                       VLP_##NAME##_RELATION_PARTS,                                     \
                                       VLP_##NAME##_PREPARED,                                           \
                                       VLP_##NAME##_SUMS,                                               \
                                       VLP_##NAME##_SUMS_BACKWARD};                                     \
        return traits;                                                                                  \
    }
#define VLP_MATRIX(NAME, answers, bilinear, ...)                                                        \
    case VLP_##NAME: {                                                                                  \
        vlp_transform_traits traits = {true, answers, bilinear, 1, 0, 0, 0, 0};                         \
        return traits;                                                                                  \
    }
VLP_CONSTEXPR vlp_transform_traits vlp_transform_traits_of(vlp_transform transform) {
    switch (transform) {
        VLP_UNIT_TRANSFORMS(VLP_UNIT, )
        VLP_MATRIX_TRANSFORMS(VLP_MATRIX, )
    }
    vlp_transform_traits none = {false, false, false, 0, 0, 0, 0, 0};
    return none;
}
#undef VLP_UNIT
#undef VLP_MATRIX

#ifdef __cplusplus
#define VLP_ASSERT_CONSTANT static_assert
#else
#define VLP_ASSERT_CONSTANT _Static_assert
#endif
#define VLP_UNIT(NAME, name, ...)                                                                       \
    VLP_ASSERT_CONSTANT((int)VLP_##NAME##_PARTS <= (int)VLP_MAX_PARTS &&                                \
                            (int)VLP_##NAME##_RELATION_PARTS <= (int)VLP_MAX_RELATION_PARTS &&          \
                            (int)VLP_##NAME##_PREPARED <= (int)VLP_MAX_PREPARED &&                      \
                            (int)VLP_##NAME##_SUMS + (int)VLP_##NAME##_SUMS_BACKWARD <=                 \
                                (int)VLP_MAX_SUMS,                                                      \
                        "local arrays are too short for " #name);
VLP_UNIT_TRANSFORMS(VLP_UNIT, )
#undef VLP_UNIT
#undef VLP_ASSERT_CONSTANT

/* ---- Formulas of a unit, by transform ------------------------------------------------------------ */

/* vlp_name_FUNCTION(arguments) of a unit-wise transform; nothing for a matrix transform. */
#define VLP_UNIT(NAME, name, function, ...)                                                             \
    case VLP_##NAME:                                                                                    \
        vlp_##name##_##function(__VA_ARGS__);                                                           \
        break;
#define VLP_MATRIX(NAME, ...) case VLP_##NAME:
#define VLP_CALL(transform, function, ...)                                                              \
    do {                                                                                                \
        switch (transform) {                                                                            \
            VLP_UNIT_TRANSFORMS(VLP_UNIT, function, __VA_ARGS__)                                        \
            VLP_MATRIX_TRANSFORMS(VLP_MATRIX, )                                                         \
            break;                                                                                      \
        }                                                                                               \
    } while (0)

VLP_FORMULA void vlp_unit_prepare(vlp_transform transform, float *p, const float *r, float scale) {
    VLP_CALL(transform, prepare, p, r, scale);
}

VLP_FORMULA void vlp_unit_terms(vlp_transform transform, float *terms, const float *x, const float *p) {
    VLP_CALL(transform, terms, terms, x, p);
}

VLP_FORMULA
void vlp_unit_terms_backward(vlp_transform transform, float *terms, const float *dy, const float *p) {
    VLP_CALL(transform, terms_backward, terms, dy, p);
}

VLP_FORMULA void vlp_unit_query(vlp_transform transform, float *q, const float *h, const float *p,
                                const vlp_unit_row *row) {
    VLP_CALL(transform, query, q, h, p, row);
}

VLP_FORMULA void vlp_unit_query_grad_head(vlp_transform transform, float *h_grad, const float *dq,
                                          const float *p, const vlp_unit_row *row) {
    VLP_CALL(transform, query_grad_head, h_grad, dq, p, row);
}

VLP_FORMULA void vlp_unit_query_grad_relation(vlp_transform transform, float *r_grad, const float *dq,
                                              const float *h, const float *p, const vlp_unit_row *row) {
    VLP_CALL(transform, query_grad_relation, r_grad, dq, h, p, row);
}

VLP_FORMULA void vlp_unit_answer(vlp_transform transform, float *k, const float *t, const float *p,
                                 const vlp_unit_row *row) {
    VLP_CALL(transform, answer, k, t, p, row);
}

VLP_FORMULA void vlp_unit_answer_grad_tail(vlp_transform transform, float *t_grad, const float *dk,
                                           const float *p, const vlp_unit_row *row) {
    VLP_CALL(transform, answer_grad_tail, t_grad, dk, p, row);
}

VLP_FORMULA
void vlp_unit_answer_grad_relation(vlp_transform transform, float *r_grad, const float *dk,
                                   const float *t, const float *p, const vlp_unit_row *row) {
    VLP_CALL(transform, answer_grad_relation, r_grad, dk, t, p, row);
}

#undef VLP_UNIT
#undef VLP_MATRIX
#undef VLP_CALL

#endif
