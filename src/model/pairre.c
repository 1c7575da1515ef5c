/* PairRE: margin - |h o r_H - t o r_T|_1. Its norm is the L1 norm; the setting `norm` is not read.
 * Entities are not normalized. A relation's row is r_H, then r_T. */
#include "model/gsf.h"

#include <string.h>

/* |h o r_H - t o r_T| = |t o r_T - h o r_H| */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    size_t half = (size_t)form->relation_width / 2;
    memcpy(out, relation + half, half * sizeof *out);
    memcpy(out + half, relation, half * sizeof *out);
}

static int32_t arrays(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_form *form) {
    int64_t half = form->relation_width / 2;
    out[0] = (vlp_model_array){"relations", 0, half};
    out[1] = (vlp_model_array){"relations_tail", half, half};
    return 2;
}

VLP_DEFINE_MODEL(pairre, .transform = VLP_PAIR, .similarity = VLP_MINUS_L1, .inverse = inverse,
                 .arrays = arrays);
