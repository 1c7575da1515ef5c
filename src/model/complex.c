/* ComplEx: Re(h^T diag(r) conj(t)). In halves of real and imaginary parts, Re<q, conj t> is the plain
 * dot product of the two rows. */
#include "model/gsf.h"

void vlp_complex_form(vlp_form *form, const vlp_model_options *options) {
    form->transform = VLP_SCALE_COMPLEX;
    form->similarity = VLP_DOT;
    form->entity_width = form->relation_width = form->query_width =
        vlp_form_width(2 * (int64_t)options->dim);
}
