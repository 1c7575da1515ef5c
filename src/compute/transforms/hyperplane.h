/* q = h - <u, h> u + r, k = t - <u, t> u: entities are projected to the hyperplane with unit normal
 * u = w / |w|. What is trained is w; where |w| is zero nothing is projected. The projection needs sums
 * over the row: <w, w>, <w, x> and, in the backward pass, <w, dy>. */
#ifndef VLP_COMPUTE_TRANSFORMS_HYPERPLANE_H
#define VLP_COMPUTE_TRANSFORMS_HYPERPLANE_H

#include "compute/transforms/unit.h"

enum {
    VLP_HYPERPLANE_PARTS = 1,
    VLP_HYPERPLANE_RELATION_PARTS = 2, /* r, w */
    VLP_HYPERPLANE_PREPARED = 0,
    VLP_HYPERPLANE_SUMS = 2,          /* <w, w>, <w, x> */
    VLP_HYPERPLANE_SUMS_BACKWARD = 1, /* <w, dy> */
    VLP_HYPERPLANE_ANSWERS = 1,
    VLP_HYPERPLANE_BILINEAR = 0
};

VLP_NOTHING_PREPARED(hyperplane)

VLP_FORMULA void vlp_hyperplane_terms(float *terms, const float *x, const float *p) {
    terms[0] = p[1] * p[1];
    terms[1] = p[1] * x[0];
}

VLP_FORMULA void vlp_hyperplane_terms_backward(float *terms, const float *dy, const float *p) {
    terms[0] = p[1] * dy[0];
}

/* <w, x> / <w, w>: how often w is contained in x. */
VLP_FORMULA float vlp_hyperplane_share(const vlp_unit_row *row) {
    float square = row->sums[0];
    return square > VLP_TINY_DISTANCE * VLP_TINY_DISTANCE ? row->sums[1] / square : 0.0f;
}

/* <w, dy> / <w, w> */
VLP_FORMULA float vlp_hyperplane_share_backward(const vlp_unit_row *row) {
    float square = row->sums[0];
    return square > VLP_TINY_DISTANCE * VLP_TINY_DISTANCE ? row->sums[2] / square : 0.0f;
}

VLP_FORMULA void vlp_hyperplane_answer(float *k, const float *t, const float *p,
                                       const vlp_unit_row *row) {
    k[0] = t[0] - vlp_hyperplane_share(row) * p[1];
}

/* A projection is its own transpose. */
VLP_FORMULA void vlp_hyperplane_answer_grad_tail(float *t_grad, const float *dk, const float *p,
                                                 const vlp_unit_row *row) {
    t_grad[0] += dk[0] - vlp_hyperplane_share_backward(row) * p[1];
}

/* Of -<w, x> <w, dy> / <w, w>. */
VLP_FORMULA void vlp_hyperplane_answer_grad_relation(float *r_grad, const float *dk, const float *t,
                                                     const float *p, const vlp_unit_row *row) {
    float a = vlp_hyperplane_share(row), b = vlp_hyperplane_share_backward(row);
    r_grad[1] += 2 * a * b * p[1] - b * t[0] - a * dk[0];
}

VLP_FORMULA void vlp_hyperplane_query(float *q, const float *h, const float *p,
                                      const vlp_unit_row *row) {
    vlp_hyperplane_answer(q, h, p, row);
    if (!row->linear) q[0] += p[0];
}

VLP_FORMULA void vlp_hyperplane_query_grad_head(float *h_grad, const float *dq, const float *p,
                                                const vlp_unit_row *row) {
    vlp_hyperplane_answer_grad_tail(h_grad, dq, p, row);
}

VLP_FORMULA void vlp_hyperplane_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                                    const float *p, const vlp_unit_row *row) {
    if (!row->linear) r_grad[0] += dq[0];
    vlp_hyperplane_answer_grad_relation(r_grad, dq, h, p, row);
}

#endif
