/* TransH: margin - |h_p + r - t_p|, where h_p and t_p are the projections of h and t to the hyperplane
 * of the relation. A relation's row is the translation r, then the normal w, which the formulas
 * normalize; the unit normal is exported. */
#include <math.h>

#include "model/gsf.h"

/* |h_p + r - t_p| = |t_p - r - h_p| */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    int32_t width = form->relation_width;
    for (int32_t i = 0; i < width; i++) out[i] = i < width / 2 ? -relation[i] : relation[i];
}

static int32_t arrays(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_form *form) {
    int64_t half = form->relation_width / 2;
    out[0] = (vlp_model_array){"relations", 0, half};
    out[1] = (vlp_model_array){"normals", half, half};
    return 2;
}

/* A normal of zeros stays one. */
static void normalize(float *relation, const vlp_form *form) {
    int32_t half = form->relation_width / 2;
    float *normal = relation + half;
    double square = 0;
    for (int32_t i = 0; i < half; i++) square += (double)normal[i] * (double)normal[i];
    if (!(sqrt(square) > (double)VLP_TINY_DISTANCE)) return;
    for (int32_t i = 0; i < half; i++) normal[i] = (float)((double)normal[i] / sqrt(square));
}

VLP_DEFINE_MODEL(transh, .transform = VLP_HYPERPLANE, .similarity = VLP_MINUS_L1, .has_norm = true,
                 .inverse = inverse, .arrays = arrays, .to_arrays = normalize);
