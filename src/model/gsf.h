/* The models of the generalized score function f_g = g(W_r1 h + b_r, W_r2 t): a row each. A new model is
 * a file that fills a form, a row in the table, and its kernels' formulas in the backends. */
#ifndef VLP_MODEL_GSF_H
#define VLP_MODEL_GSF_H

#include "base/base.h"
#include "compute/form.h"

typedef enum vlp_model_kind {
    VLP_MODEL_RESCAL = 0,
    VLP_MODEL_TRANSE,
    VLP_MODEL_TRANSR,
    VLP_MODEL_DISTMULT,
    VLP_MODEL_COMPLEX,
    VLP_MODEL_ROTATE,
    VLP_MODELS
} vlp_model_kind;

typedef enum vlp_norm { VLP_NORM_L1 = 0, VLP_NORM_L2 } vlp_norm;

typedef struct vlp_model_options {
    int32_t kind; /* vlp_model_kind */
    int32_t dim, relation_dim;
    int32_t norm; /* vlp_norm */
    double margin;
} vlp_model_options;

typedef struct vlp_model_row {
    const char *name;
    bool dot;            /* g is the dot product: 1-to-All cross-entropy is possible */
    bool complex_valued; /* rows are complex numbers in halves */
    void (*form)(vlp_form *form, const vlp_model_options *options);
} vlp_model_row;

/* The most numbers of a row. Half of what an int32_t holds: loops over a row step past its end. */
enum { VLP_MAX_WIDTH = 1 << 30 };

/* A width of a form; 0 where it is too large, which vlp_model_check refuses. */
static inline int32_t vlp_form_width(int64_t width) {
    return width <= VLP_MAX_WIDTH ? (int32_t)width : 0;
}

/* Refuses options whose rows are too wide, and says which dim would fit. */
vlp_status vlp_model_check(const vlp_model_options *options);

/* The relation read backwards, where it follows from the relation itself: f_g(t, inverse, h) =
 * f_g(h, relation, t). Rows of relation_width floats, apart from each other. */
void vlp_model_inverse(float *out, const float *relation, const vlp_form *form);

const vlp_model_row *vlp_model_row_of(int32_t kind);
void vlp_model_form(vlp_form *form, const vlp_model_options *options);

/* One file each. */
void vlp_rescal_form(vlp_form *form, const vlp_model_options *options);
void vlp_transe_form(vlp_form *form, const vlp_model_options *options);
void vlp_transr_form(vlp_form *form, const vlp_model_options *options);
void vlp_distmult_form(vlp_form *form, const vlp_model_options *options);
void vlp_complex_form(vlp_form *form, const vlp_model_options *options);
void vlp_rotate_form(vlp_form *form, const vlp_model_options *options);

#endif
