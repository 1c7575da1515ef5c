/* TransE: margin - |h + r - t|. */
#include "model/gsf.h"

/* |h + r - t| = |t - r - h| */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    for (int32_t i = 0; i < form->relation_width; i++) out[i] = -relation[i];
}

VLP_DEFINE_MODEL(transe, .transform = VLP_TRANSLATE, .similarity = VLP_MINUS_L1, .has_norm = true,
                 .inverse = inverse);
