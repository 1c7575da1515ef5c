/* QuatE: <h (x) u, t>, where u is the relation's unit quaternion and (x) the Hamilton product. `dim`
 * counts quaternions. Rows are all real parts, then those of i, j and k; a relation's row is not
 * normalized, the formulas do that; unit quaternions are exported. */
#include <math.h>

#include "model/gsf.h"

enum { PARTS = 4 };

/* <h (x) u, t> = <t (x) conj(u), h> */
static void inverse(float *out, const float *relation, const vlp_form *form) {
    int32_t width = form->relation_width;
    for (int32_t i = 0; i < width; i++) out[i] = i < width / PARTS ? relation[i] : -relation[i];
}

/* A quaternion of zeros stays one. */
static void normalize(float *relation, const vlp_form *form) {
    int32_t columns = form->relation_width / PARTS;
    for (int32_t j = 0; j < columns; j++) {
        double square = 0;
        for (int64_t i = j; i < form->relation_width; i += columns)
            square += (double)relation[i] * (double)relation[i];
        if (!(sqrt(square) > (double)VLP_TINY_DISTANCE)) continue;
        for (int64_t i = j; i < form->relation_width; i += columns)
            relation[i] = (float)((double)relation[i] / sqrt(square));
    }
}

VLP_DEFINE_MODEL(quate, .transform = VLP_QUATERNION, .similarity = VLP_DOT, .inverse = inverse,
                 .to_arrays = normalize);
