/* ComplEx: Re(h^T diag(r) conj(t)). With all real parts before all imaginary parts, Re<q, conj t> is the
 * plain dot product of the two rows. */
#include "model/gsf.h"

/* Re<r h, conj t> = Re<conj(r) t, conj h> */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    int32_t width = form->relation_width;
    for (int32_t i = 0; i < width; i++) out[i] = i < width / 2 ? relation[i] : -relation[i];
}

VLP_DEFINE_MODEL(complex, .transform = VLP_SCALE_COMPLEX, .similarity = VLP_DOT, .inverse = inverse);
