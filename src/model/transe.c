/* TransE: margin - |h + r - t|. */
#include "model/gsf.h"

void vlp_transe_form(vlp_form *form, const vlp_model_options *options) {
    form->transform = VLP_TRANSLATE;
    form->similarity = options->norm == VLP_NORM_L1 ? VLP_MINUS_L1 : VLP_MINUS_L2;
    form->entity_width = form->relation_width = form->query_width = vlp_form_width(options->dim);
    form->margin = (float)options->margin;
}
