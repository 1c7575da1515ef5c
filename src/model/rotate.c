/* RotatE: margin - sum |e^(i theta) h - t|. What is trained is rho, theta = rho pi dim / (margin + 2),
 * so that phases and entities move at one rate: both start within +-(margin + 2) / dim, theta within
 * +-pi. */
#include <math.h>

#include "model/gsf.h"

void vlp_rotate_form(vlp_form *form, const vlp_model_options *options) {
    form->transform = VLP_ROTATE;
    form->similarity = VLP_MINUS_MODULUS;
    form->entity_width = form->query_width = vlp_form_width(2 * (int64_t)options->dim);
    form->relation_width = vlp_form_width(options->dim);
    form->margin = (float)options->margin;
    form->phase_scale = (float)(M_PI * options->dim / (options->margin + 2));
}
