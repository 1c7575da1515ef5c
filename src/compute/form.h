/* The generalized score function f_g = g(W_r1 h + b_r, W_r2 t), as far as computing needs to know it:
 * how a query is computed from a head entity and a relation (compute/transforms.h), and how it is
 * compared with an answer (compute/similarity.h). A model is a choice of these (src/model). Compiles as
 * C17 and as CUDA.
 *
 * Rows of complex numbers are all real parts, then all imaginary parts; of quaternions likewise. */
#ifndef VLP_COMPUTE_FORM_H
#define VLP_COMPUTE_FORM_H

#include <math.h>

#include "base/formula.h"
#include "compute/similarity.h"
#include "compute/transforms.h"

typedef struct vlp_form {
    vlp_transform transform;
    vlp_similarity similarity;
    int32_t entity_width;   /* floats of an entity's row */
    int32_t relation_width; /* floats of a relation's row */
    int32_t query_width;    /* floats of q and k */
    float margin;           /* 0 for dot */
    float phase_scale;      /* the `scale` of compute/transforms/unit.h */
} vlp_form;

/* Whether answers are transformed by the relation: k = W_r2 t. */
VLP_FORMULA bool vlp_form_transforms_answers(const vlp_form *form) {
    return vlp_transform_traits_of(form->transform).answers;
}

/* Units of a row that the transform sees, and units that the similarity sees. */
VLP_FORMULA int32_t vlp_form_columns(const vlp_form *form) {
    return form->entity_width / vlp_transform_traits_of(form->transform).parts;
}

VLP_FORMULA int32_t vlp_form_similarity_columns(const vlp_form *form) {
    return form->query_width / vlp_similarity_parts(form->similarity);
}

VLP_FORMULA float vlp_sigmoid(float x) {
    return x >= 0 ? 1.0f / (1.0f + expf(-x)) : expf(x) / (1.0f + expf(x));
}

/* -log sigmoid(x), without overflow. */
VLP_FORMULA float vlp_minus_log_sigmoid(float x) {
    return (x < 0 ? -x : 0.0f) + log1pf(expf(-fabsf(x)));
}

/* The weights of negatives, p1, before their softmax. */
typedef enum vlp_weighing { VLP_WEIGH_EVEN = 0, VLP_WEIGH_SELF_ADVERSARIAL, VLP_WEIGH_RED } vlp_weighing;

typedef struct vlp_weight_form {
    vlp_weighing kind;
    float alpha1, alpha2, tau;
    bool continuous; /* above c + tau: alpha1 (c + tau) - alpha2 m; else the paper's alpha1 c - alpha2 m
                      */
} vlp_weight_form;

/* The exponent of p1 for a negative's score n, the positive's being c (the paper's equation of p1). */
VLP_FORMULA float vlp_weight_exponent(const vlp_weight_form *form, float n, float c) {
    /* Both cases are computed, then one is selected: loops over this are vectorized. */
    float m = n - c - form->tau, plain = form->alpha1 * n;
    float held = form->alpha1 * (form->continuous ? c + form->tau : c) - form->alpha2 * m;
    bool over = form->kind == VLP_WEIGH_RED && n > c + form->tau;
    return form->kind == VLP_WEIGH_EVEN ? 0.0f : over ? held : plain;
}

#endif
