/* TransR: margin - |W_r h + r - W_r t|, in a space of its own for each relation. */
#include "model/gsf.h"

void vlp_transr_form(vlp_form *form, const vlp_model_options *options) {
    int32_t width = options->relation_dim > 0 ? options->relation_dim : options->dim;
    form->transform = VLP_MATRIX_TRANSLATE;
    form->similarity = options->norm == VLP_NORM_L1 ? VLP_MINUS_L1 : VLP_MINUS_L2;
    form->entity_width = vlp_form_width(options->dim);
    form->query_width = vlp_form_width(width);
    form->relation_width = vlp_form_width((int64_t)width * options->dim + width);
    form->margin = (float)options->margin;
}
