/* q = exp(i scale rho) o h over complex numbers. What is trained is rho; a prepared unit is the cosine
 * and the sine of the phase. */
#ifndef VLP_COMPUTE_TRANSFORMS_ROTATE_H
#define VLP_COMPUTE_TRANSFORMS_ROTATE_H

#include "compute/transforms/unit.h"

enum {
    VLP_ROTATE_PARTS = 2,
    VLP_ROTATE_RELATION_PARTS = 1,
    VLP_ROTATE_PREPARED = 2,
    VLP_ROTATE_SUMS = 0,
    VLP_ROTATE_SUMS_BACKWARD = 0,
    VLP_ROTATE_ANSWERS = 0,
    VLP_ROTATE_BILINEAR = 0
};

VLP_NO_SUMS(rotate)
VLP_PLAIN_ANSWERS(rotate, VLP_ROTATE_PARTS)

VLP_FORMULA void vlp_rotate_prepare(float *p, const float *r, float scale) {
    p[0] = cosf(r[0] * scale);
    p[1] = sinf(r[0] * scale);
}

VLP_FORMULA void vlp_rotate_query(float *q, const float *h, const float *p, const vlp_unit_row *row) {
    (void)row;
    q[0] = h[0] * p[0] - h[1] * p[1];
    q[1] = h[0] * p[1] + h[1] * p[0];
}

VLP_FORMULA void vlp_rotate_query_grad_head(float *h_grad, const float *dq, const float *p,
                                            const vlp_unit_row *row) {
    (void)row;
    h_grad[0] += dq[0] * p[0] + dq[1] * p[1];
    h_grad[1] += dq[1] * p[0] - dq[0] * p[1];
}

/* d q / d theta = i q: the gradient along the circle. */
VLP_FORMULA void vlp_rotate_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                                const float *p, const vlp_unit_row *row) {
    float re = h[0] * p[0] - h[1] * p[1], im = h[0] * p[1] + h[1] * p[0];
    r_grad[0] += row->scale * (dq[1] * re - dq[0] * im);
}

#endif
