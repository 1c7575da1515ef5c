#include "model/gsf.h"

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
