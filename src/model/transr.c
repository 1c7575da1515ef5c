/* TransR: margin - |W_r h + r - W_r t|, in a space of its own for each relation. A relation's row is W_r
 * (relation_dim, dim), row-major, then r. */
#include "model/gsf.h"

static void form_of(vlp_form *form, const vlp_model_options *options) {
    int64_t width = options->relation_dim > 0 ? options->relation_dim : options->dim;
    form->entity_width = vlp_form_width(options->dim);
    form->query_width = vlp_form_width(width);
    form->relation_width = vlp_form_width(width * options->dim + width);
}

static int64_t matrix_of(const vlp_form *form) {
    return (int64_t)form->query_width * form->entity_width;
}

/* |W h + r - W t| = |W t - r - W h| */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    int64_t matrix = matrix_of(form);
    for (int64_t i = 0; i < form->relation_width; i++) out[i] = i < matrix ? relation[i] : -relation[i];
}

static int32_t arrays(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_form *form) {
    out[0] = (vlp_model_array){"relations", 0, matrix_of(form)};
    out[1] = (vlp_model_array){"translations", matrix_of(form), form->query_width};
    return 2;
}

VLP_DEFINE_MODEL(transr, .transform = VLP_MATRIX_TRANSLATE, .similarity = VLP_MINUS_L1, .has_norm = true,
                 .form = form_of, .inverse = inverse, .arrays = arrays,
                 .relation_dim_array = "translations");
