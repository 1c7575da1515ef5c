/* q = r o h over complex numbers: a unit is a real and an imaginary part. */
#ifndef VLP_COMPUTE_TRANSFORMS_SCALE_COMPLEX_H
#define VLP_COMPUTE_TRANSFORMS_SCALE_COMPLEX_H

#include "compute/transforms/unit.h"

enum {
    VLP_SCALE_COMPLEX_PARTS = 2,
    VLP_SCALE_COMPLEX_RELATION_PARTS = 2,
    VLP_SCALE_COMPLEX_PREPARED = 0,
    VLP_SCALE_COMPLEX_SUMS = 0,
    VLP_SCALE_COMPLEX_SUMS_BACKWARD = 0,
    VLP_SCALE_COMPLEX_ANSWERS = 0,
    VLP_SCALE_COMPLEX_BILINEAR = 1
};

VLP_NOTHING_PREPARED(scale_complex)
VLP_NO_SUMS(scale_complex)
VLP_PLAIN_ANSWERS(scale_complex, VLP_SCALE_COMPLEX_PARTS)

VLP_FORMULA void vlp_scale_complex_query(float *q, const float *h, const float *p,
                                         const vlp_unit_row *row) {
    (void)row;
    q[0] = h[0] * p[0] - h[1] * p[1];
    q[1] = h[0] * p[1] + h[1] * p[0];
}

/* dq conj(r) */
VLP_FORMULA void vlp_scale_complex_query_grad_head(float *h_grad, const float *dq, const float *p,
                                                   const vlp_unit_row *row) {
    (void)row;
    h_grad[0] += dq[0] * p[0] + dq[1] * p[1];
    h_grad[1] += dq[1] * p[0] - dq[0] * p[1];
}

/* dq conj(h) */
VLP_FORMULA void vlp_scale_complex_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                                       const float *p, const vlp_unit_row *row) {
    (void)p, (void)row;
    r_grad[0] += dq[0] * h[0] + dq[1] * h[1];
    r_grad[1] += dq[1] * h[0] - dq[0] * h[1];
}

#endif
