/* q = h (x) u, the Hamilton product with the unit quaternion u = r / |r|. A unit is a real part and the
 * parts of i, j and k; a prepared unit is u, then 1 / |r|. Where |r| is zero, both are zero. */
#ifndef VLP_COMPUTE_TRANSFORMS_QUATERNION_H
#define VLP_COMPUTE_TRANSFORMS_QUATERNION_H

#include "compute/transforms/unit.h"

enum {
    VLP_QUATERNION_PARTS = 4,
    VLP_QUATERNION_RELATION_PARTS = 4,
    VLP_QUATERNION_PREPARED = 5,
    VLP_QUATERNION_SUMS = 0,
    VLP_QUATERNION_SUMS_BACKWARD = 0,
    VLP_QUATERNION_ANSWERS = 0,
    VLP_QUATERNION_BILINEAR = 0 /* not linear in r */
};

VLP_NO_SUMS(quaternion)
VLP_PLAIN_ANSWERS(quaternion, VLP_QUATERNION_PARTS)

VLP_FORMULA void vlp_quaternion_prepare(float *p, const float *r, float scale) {
    (void)scale;
    float norm = sqrtf(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
    p[4] = norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
    for (int i = 0; i < 4; i++) p[i] = r[i] * p[4];
}

VLP_FORMULA void vlp_quaternion_query(float *q, const float *h, const float *p,
                                      const vlp_unit_row *row) {
    (void)row;
    q[0] = h[0] * p[0] - h[1] * p[1] - h[2] * p[2] - h[3] * p[3];
    q[1] = h[0] * p[1] + h[1] * p[0] + h[2] * p[3] - h[3] * p[2];
    q[2] = h[0] * p[2] - h[1] * p[3] + h[2] * p[0] + h[3] * p[1];
    q[3] = h[0] * p[3] + h[1] * p[2] - h[2] * p[1] + h[3] * p[0];
}

/* dq (x) conj(u) */
VLP_FORMULA void vlp_quaternion_query_grad_head(float *h_grad, const float *dq, const float *p,
                                                const vlp_unit_row *row) {
    (void)row;
    h_grad[0] += dq[0] * p[0] + dq[1] * p[1] + dq[2] * p[2] + dq[3] * p[3];
    h_grad[1] += dq[1] * p[0] - dq[0] * p[1] - dq[2] * p[3] + dq[3] * p[2];
    h_grad[2] += dq[2] * p[0] - dq[0] * p[2] - dq[3] * p[1] + dq[1] * p[3];
    h_grad[3] += dq[3] * p[0] - dq[0] * p[3] - dq[1] * p[2] + dq[2] * p[1];
}

/* g = conj(h) (x) dq is the gradient of u; that of r is its part across u, over |r|. */
VLP_FORMULA void vlp_quaternion_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                                    const float *p, const vlp_unit_row *row) {
    (void)row;
    float g[4], along = 0;
    g[0] = h[0] * dq[0] + h[1] * dq[1] + h[2] * dq[2] + h[3] * dq[3];
    g[1] = h[0] * dq[1] - h[1] * dq[0] - h[2] * dq[3] + h[3] * dq[2];
    g[2] = h[0] * dq[2] + h[1] * dq[3] - h[2] * dq[0] - h[3] * dq[1];
    g[3] = h[0] * dq[3] - h[1] * dq[2] + h[2] * dq[1] - h[3] * dq[0];
    for (int i = 0; i < 4; i++) along += g[i] * p[i];
    for (int i = 0; i < 4; i++) r_grad[i] += p[4] * (g[i] - along * p[i]);
}

#endif
