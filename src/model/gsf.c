#include "model/gsf.h"

#include <string.h>

static const vlp_model_row rows[VLP_MODELS] = {
    [VLP_MODEL_RESCAL] = {"rescal", true, false, vlp_rescal_form},
    [VLP_MODEL_TRANSE] = {"transe", false, false, vlp_transe_form},
    [VLP_MODEL_TRANSR] = {"transr", false, false, vlp_transr_form},
    [VLP_MODEL_DISTMULT] = {"distmult", true, false, vlp_distmult_form},
    [VLP_MODEL_COMPLEX] = {"complex", true, true, vlp_complex_form},
    [VLP_MODEL_ROTATE] = {"rotate", false, true, vlp_rotate_form},
};

const vlp_model_row *vlp_model_row_of(int32_t kind) {
    assert(kind >= 0 && kind < VLP_MODELS);
    return &rows[kind];
}

void vlp_model_form(vlp_form *form, const vlp_model_options *options) {
    *form = (vlp_form){0};
    rows[options->kind].form(form, options);
}

void vlp_model_inverse(float *out, const float *relation, const vlp_form *form) {
    int32_t width = form->relation_width, d = form->entity_width;
    switch (form->transform) {
    case VLP_TRANSLATE: /* |h + r - t| = |t - r - h| */
    case VLP_ROTATE:    /* a rotation keeps moduli */
        for (int32_t i = 0; i < width; i++) out[i] = -relation[i];
        break;
    case VLP_SCALE:
        memcpy(out, relation, (size_t)width * sizeof *out);
        break;
    case VLP_SCALE_COMPLEX: /* Re<r h, conj t> = Re<conj(r) t, conj h> */
        for (int32_t i = 0; i < width; i++) out[i] = i < width / 2 ? relation[i] : -relation[i];
        break;
    case VLP_MATRIX_TRANSPOSED: /* h W t = t W^T h */
        for (int32_t i = 0; i < d; i++)
            for (int32_t j = 0; j < d; j++) out[(int64_t)i * d + j] = relation[(int64_t)j * d + i];
        break;
    case VLP_MATRIX_TRANSLATE: /* |W h + r - W t| = |W t - r - W h| */
        for (int32_t i = 0; i < width; i++)
            out[i] = i < form->query_width * d ? relation[i] : -relation[i];
        break;
    }
}
