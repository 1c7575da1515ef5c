/* q = h + r. */
#ifndef VLP_COMPUTE_TRANSFORMS_TRANSLATE_H
#define VLP_COMPUTE_TRANSFORMS_TRANSLATE_H

#include "compute/transforms/unit.h"

enum {
    VLP_TRANSLATE_PARTS = 1,
    VLP_TRANSLATE_RELATION_PARTS = 1,
    VLP_TRANSLATE_PREPARED = 0,
    VLP_TRANSLATE_SUMS = 0,
    VLP_TRANSLATE_SUMS_BACKWARD = 0,
    VLP_TRANSLATE_ANSWERS = 0,
    VLP_TRANSLATE_BILINEAR = 0
};

VLP_NOTHING_PREPARED(translate)
VLP_NO_SUMS(translate)
VLP_PLAIN_ANSWERS(translate, VLP_TRANSLATE_PARTS)

VLP_FORMULA void vlp_translate_query(float *q, const float *h, const float *p, const vlp_unit_row *row) {
    q[0] = row->linear ? h[0] : h[0] + p[0];
}

VLP_FORMULA void vlp_translate_query_grad_head(float *h_grad, const float *dq, const float *p,
                                               const vlp_unit_row *row) {
    (void)p, (void)row;
    h_grad[0] += dq[0];
}

VLP_FORMULA void vlp_translate_query_grad_relation(float *r_grad, const float *dq, const float *h,
                                                   const float *p, const vlp_unit_row *row) {
    (void)h, (void)p;
    if (!row->linear) r_grad[0] += dq[0];
}

#endif
