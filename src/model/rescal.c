/* RESCAL: h^T W_r t. The query takes the matrix, q = W_r^T h, which is the same score as comparing h
 * with W_r t, and lets one matrix product score all answers. */
#include "model/gsf.h"

static void form_of(vlp_form *form, const vlp_model_options *options) {
    form->entity_width = form->query_width = vlp_form_width(options->dim);
    form->relation_width = vlp_form_width((int64_t)options->dim * options->dim);
}

/* h^T W t = t^T W^T h */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    int64_t d = form->entity_width;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) out[i * d + j] = relation[j * d + i];
}

VLP_DEFINE_MODEL(rescal, .transform = VLP_MATRIX_TRANSPOSED, .similarity = VLP_DOT, .form = form_of,
                 .inverse = inverse);
