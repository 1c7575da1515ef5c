/* The generalized score function, as far as computing needs to know it: how a query is made from a head
 * and a relation, and how it is compared with an answer. A model is a choice of these (src/model).
 * Formulas that every backend needs stand here once; the file compiles as C17 and as CUDA.
 *
 * Complex vectors are stored as all real parts, then all imaginary parts. */
#ifndef VLP_COMPUTE_FORM_H
#define VLP_COMPUTE_FORM_H

#include <math.h>

#include "base/formula.h"

/* q from h and the relation's row. */
typedef enum vlp_transform {
    VLP_TRANSLATE = 0,     /* q = h + r */
    VLP_SCALE,             /* q = r o h */
    VLP_SCALE_COMPLEX,     /* q = r o h over complex numbers */
    VLP_ROTATE,            /* q = exp(i phase_scale rho) o h over complex numbers */
    VLP_MATRIX_TRANSPOSED, /* q = W^T h, W row-major (d, d): RESCAL */
    VLP_MATRIX_TRANSLATE   /* q = W h + r, k = W t; the row is W (d_r, d_e), then r: TransR */
} vlp_transform;

/* g(q, k). */
typedef enum vlp_similarity {
    VLP_DOT = 0,      /* <q, k>; over complex numbers in halves, the same sum is Re<q, conj k> */
    VLP_MINUS_L1,     /* margin - |q - k|_1 */
    VLP_MINUS_L2,     /* margin - |q - k|_2 */
    VLP_MINUS_MODULUS /* margin - sum of the moduli of the complex differences */
} vlp_similarity;

typedef struct vlp_form {
    vlp_transform transform;
    vlp_similarity similarity;
    int32_t entity_width;   /* floats of an entity's row */
    int32_t relation_width; /* floats of a relation's row */
    int32_t query_width;    /* floats of q and k */
    float margin;           /* 0 for dot */
    float phase_scale;      /* of VLP_ROTATE */
} vlp_form;

/* Answers pass through the relation too. */
VLP_FORMULA bool vlp_form_moves_answers(const vlp_form *form) {
    return form->transform == VLP_MATRIX_TRANSLATE;
}

/* A distance below this has no direction to speak of: its gradient is taken as zero there. */
#define VLP_TINY_DISTANCE 1e-12f

VLP_FORMULA float vlp_sigmoid(float x) {
    return x >= 0 ? 1.0f / (1.0f + expf(-x)) : expf(x) / (1.0f + expf(x));
}

/* -log sigmoid(x), without overflow. */
VLP_FORMULA float vlp_minus_log_sigmoid(float x) {
    return (x < 0 ? -x : 0.0f) + log1pf(expf(-fabsf(x)));
}

/* How negatives are weighed against each other: p1 before its softmax. */
typedef enum vlp_weighing { VLP_WEIGH_EVEN = 0, VLP_WEIGH_SELF_ADVERSARIAL, VLP_WEIGH_RED } vlp_weighing;

typedef struct vlp_weight_form {
    vlp_weighing kind;
    float alpha1, alpha2, tau;
    bool continuous; /* above c + tau: alpha1 (c + tau) - alpha2 m; else the paper's alpha1 c - alpha2 m
                      */
} vlp_weight_form;

/* The exponent of p1 for a negative's score n, the positive's being c (the paper's equation of p1). */
VLP_FORMULA float vlp_weight_exponent(const vlp_weight_form *form, float n, float c) {
    /* Both are made, then one is taken: loops over this become vectors. */
    float m = n - c - form->tau, plain = form->alpha1 * n;
    float held = form->alpha1 * (form->continuous ? c + form->tau : c) - form->alpha2 * m;
    bool over = form->kind == VLP_WEIGH_RED && n > c + form->tau;
    return form->kind == VLP_WEIGH_EVEN ? 0.0f : over ? held : plain;
}

#endif
