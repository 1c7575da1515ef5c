/* RESCAL: h^T W_r t. The query takes the matrix, q = W_r^T h, which is the same score as comparing h
 * with W_r t, and lets all answers be scored by one product. */
#include "model/gsf.h"

void vlp_rescal_form(vlp_form *form, const vlp_model_options *options) {
    form->transform = VLP_MATRIX_TRANSPOSED;
    form->similarity = VLP_DOT;
    form->entity_width = form->query_width = vlp_form_width(options->dim);
    form->relation_width = vlp_form_width((int64_t)options->dim * options->dim);
}
