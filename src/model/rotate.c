/* RotatE: margin - sum |e^(i theta) h - t|. What is trained is rho, theta = rho pi dim / (margin + 2),
 * so that one learning rate fits phases and entities: both start within +-(margin + 2) / dim, theta
 * within +-pi. Phases are exported in radians. */
#include <math.h>

#include "model/gsf.h"

static void form_of(vlp_form *form, const vlp_model_options *options) {
    form->phase_scale = (float)(M_PI * options->dim / (options->margin + 2));
}

/* A rotation keeps moduli. */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    for (int32_t i = 0; i < form->relation_width; i++) out[i] = -relation[i];
}

static void to_radians(float *relation, const vlp_form *form) {
    for (int32_t i = 0; i < form->relation_width; i++) relation[i] *= form->phase_scale;
}

static void from_radians(float *relation, const vlp_form *form) {
    for (int32_t i = 0; i < form->relation_width; i++) relation[i] /= form->phase_scale;
}

VLP_DEFINE_MODEL(rotate, .transform = VLP_ROTATE, .similarity = VLP_MINUS_MODULUS, .form = form_of,
                 .inverse = inverse, .to_arrays = to_radians, .from_arrays = from_radians);
