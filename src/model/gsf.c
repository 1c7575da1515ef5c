#include "model/gsf.h"

#include <stdio.h>
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

static bool fits(const vlp_model_options *options) {
    vlp_form form;
    vlp_model_form(&form, options);
    return form.entity_width > 0 && form.relation_width > 0 && form.query_width > 0;
}

vlp_status vlp_model_check(const vlp_model_options *options) {
    if (fits(options)) return VLP_OK;
    vlp_model_options smaller = *options;
    char advice[48] = "lower relation_dim";
    int32_t low = 0, high = options->dim; /* low fits, or is 0; high does not fit */
    while (high - low > 1) {
        smaller.dim = low + (high - low) / 2;
        if (fits(&smaller))
            low = smaller.dim;
        else
            high = smaller.dim;
    }
    if (low > 0) snprintf(advice, sizeof advice, "dim = %d would fit", low);
    return vlp_fail(VLP_ERROR_ARGUMENT, "a row of %s with dim = %d has more than %d numbers; %s",
                    rows[options->kind].name, options->dim, VLP_MAX_WIDTH, advice);
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
