/* DistMult: h^T diag(r) t. */
#include "model/gsf.h"

#include <string.h>

/* The score is symmetric. */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    memcpy(out, relation, (size_t)form->relation_width * sizeof *out);
}

VLP_DEFINE_MODEL(distmult, .transform = VLP_SCALE, .similarity = VLP_DOT, .inverse = inverse);
