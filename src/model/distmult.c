/* DistMult: h^T diag(r) t. */
#include "model/gsf.h"

void vlp_distmult_form(vlp_form *form, const vlp_model_options *options) {
    form->transform = VLP_SCALE;
    form->similarity = VLP_DOT;
    form->entity_width = form->relation_width = form->query_width = vlp_form_width(options->dim);
}
