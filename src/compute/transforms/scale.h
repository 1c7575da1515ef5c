/* q = r o h. */
#ifndef VLP_COMPUTE_TRANSFORMS_SCALE_H
#define VLP_COMPUTE_TRANSFORMS_SCALE_H

#include "compute/transforms/unit.h"

enum {
    VLP_SCALE_PARTS = 1,
    VLP_SCALE_RELATION_PARTS = 1,
    VLP_SCALE_PREPARED = 0,
    VLP_SCALE_SUMS = 0,
    VLP_SCALE_SUMS_BACKWARD = 0,
    VLP_SCALE_ANSWERS = 0,
    VLP_SCALE_BILINEAR = 1
};

VLP_NOTHING_PREPARED(scale)
VLP_NO_SUMS(scale)
VLP_PLAIN_ANSWERS(scale, VLP_SCALE_PARTS)

VLP_FORMULA void vlp_scale_query(float *q, const float *h, const float *p, const vlp_unit_row *row) {
    (void)row;
    q[0] = h[0] * p[0];
}

VLP_FORMULA void vlp_scale_query_grad_head(float *h_grad, const float *dq, const float *p,
                                           const vlp_unit_row *row) {
    (void)row;
    h_grad[0] += dq[0] * p[0];
}

VLP_FORMULA void vlp_scale_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                               const float *p, const vlp_unit_row *row) {
    (void)p, (void)row;
    r_grad[0] += dq[0] * h[0];
}

#endif
