/* q = h o r_H, k = t o r_T: a relation has a number for the head entity and one for the tail entity. */
#ifndef VLP_COMPUTE_TRANSFORMS_PAIR_H
#define VLP_COMPUTE_TRANSFORMS_PAIR_H

#include "compute/transforms/unit.h"

enum {
    VLP_PAIR_PARTS = 1,
    VLP_PAIR_RELATION_PARTS = 2, /* r_H, r_T */
    VLP_PAIR_PREPARED = 0,
    VLP_PAIR_SUMS = 0,
    VLP_PAIR_SUMS_BACKWARD = 0,
    VLP_PAIR_ANSWERS = 1,
    VLP_PAIR_BILINEAR = 0
};

VLP_NOTHING_PREPARED(pair)
VLP_NO_SUMS(pair)

VLP_FORMULA void vlp_pair_query(float *q, const float *h, const float *p, const vlp_unit_row *row) {
    (void)row;
    q[0] = h[0] * p[0];
}

VLP_FORMULA void vlp_pair_query_grad_head(float *h_grad, const float *dq, const float *p,
                                          const vlp_unit_row *row) {
    (void)row;
    h_grad[0] += dq[0] * p[0];
}

VLP_FORMULA void vlp_pair_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                              const float *p, const vlp_unit_row *row) {
    (void)p, (void)row;
    r_grad[0] += dq[0] * h[0];
}

VLP_FORMULA void vlp_pair_answer(float *k, const float *t, const float *p, const vlp_unit_row *row) {
    (void)row;
    k[0] = t[0] * p[1];
}

VLP_FORMULA void vlp_pair_answer_grad_tail(float *t_grad, const float *dk, const float *p,
                                           const vlp_unit_row *row) {
    (void)row;
    t_grad[0] += dk[0] * p[1];
}

VLP_FORMULA void vlp_pair_answer_grad_relation(float *r_grad, const float *dk, const float *t,
                                               const float *p, const vlp_unit_row *row) {
    (void)p, (void)row;
    r_grad[1] += dk[0] * t[0];
}

#endif
