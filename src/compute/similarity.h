/* The similarity g(q, k) of a query and an answer. A score is a function of a sum over units; a unit is
 * vlp_similarity_parts numbers that are `columns` apart in a row, as in compute/transforms/unit.h. All
 * similarities are symmetric: the gradient of q is that of k with q and k exchanged.
 *
 *   sum = sum over units of vlp_similarity_term(g, q, k)
 *   score = vlp_similarity_score(g, sum, margin)
 *   w = vlp_similarity_weight(g, gradient of the score, sum)
 *   k_grad += by vlp_similarity_backward(g, k_grad, w, q, k), unit by unit; q_grad with q and k
 * exchanged, or both by vlp_similarity_backward_both
 *
 * The similarity comes first: where it is a constant, such as a template argument, the compiler removes
 * the switch. Compiles as C17 and as CUDA. */
#ifndef VLP_COMPUTE_SIMILARITY_H
#define VLP_COMPUTE_SIMILARITY_H

#include "compute/transforms/unit.h"

typedef enum vlp_similarity {
    VLP_DOT = 0,      /* <q, k>; over complex numbers, the same sum is Re<q, conj k> */
    VLP_MINUS_L1,     /* margin - |q - k|_1 */
    VLP_MINUS_L2,     /* margin - |q - k|_2 */
    VLP_MINUS_MODULUS /* margin - sum of the moduli of the complex differences */
} vlp_similarity;

/* Numbers of a unit. */
VLP_CONSTEXPR int32_t vlp_similarity_parts(vlp_similarity similarity) {
    switch (similarity) {
    case VLP_DOT:
    case VLP_MINUS_L1:
    case VLP_MINUS_L2:
        return 1;
    case VLP_MINUS_MODULUS:
        return 2;
    }
    return 0;
}

/* The square of a complex difference. */
VLP_FORMULA float vlp_modulus_square(const float *q, const float *k) {
    float re = q[0] - k[0], im = q[1] - k[1];
    return re * re + im * im;
}

/* A unit's term of the sum. */
VLP_FORMULA float vlp_similarity_term(vlp_similarity similarity, const float *q, const float *k) {
    switch (similarity) {
    case VLP_DOT:
        return q[0] * k[0];
    case VLP_MINUS_L1:
        return fabsf(q[0] - k[0]);
    case VLP_MINUS_L2:
        return (q[0] - k[0]) * (q[0] - k[0]);
    case VLP_MINUS_MODULUS:
        return sqrtf(vlp_modulus_square(q, k));
    }
    return 0;
}

VLP_FORMULA float vlp_similarity_score(vlp_similarity similarity, float sum, float margin) {
    switch (similarity) {
    case VLP_DOT:
        return sum;
    case VLP_MINUS_L1:
    case VLP_MINUS_MODULUS:
        return margin - sum;
    case VLP_MINUS_L2:
        return margin - sqrtf(sum);
    }
    return 0;
}

/* Whether vlp_similarity_weight reads the sum. */
VLP_CONSTEXPR bool vlp_similarity_weight_needs_sum(vlp_similarity similarity) {
    switch (similarity) {
    case VLP_DOT:
    case VLP_MINUS_L1:
    case VLP_MINUS_MODULUS:
        return false;
    case VLP_MINUS_L2:
        return true;
    }
    return false;
}

/* The gradient w of the score, as vlp_similarity_backward takes it: over the distance for the L2 norm.
 * Not from the score: subtracting the margin again would cancel most digits of a small distance. */
VLP_FORMULA float vlp_similarity_weight(vlp_similarity similarity, float w, float sum) {
    switch (similarity) {
    case VLP_DOT:
    case VLP_MINUS_L1:
    case VLP_MINUS_MODULUS:
        return w;
    case VLP_MINUS_L2: {
        float distance = sqrtf(sum);
        return distance > VLP_TINY_DISTANCE ? w / distance : 0.0f;
    }
    }
    return 0;
}

/* w dg/dk of a unit, of a distance: dg/dq is its negative. */
VLP_FORMULA void vlp_distance_gradient(vlp_similarity similarity, float *g, float w, const float *q,
                                       const float *k) {
    switch (similarity) {
    case VLP_DOT: /* no distance */
        break;
    case VLP_MINUS_L1: {
        float difference = q[0] - k[0];
        g[0] = difference > 0 ? w : difference < 0 ? -w : 0.0f;
        break;
    }
    case VLP_MINUS_L2:
        g[0] = w * (q[0] - k[0]);
        break;
    case VLP_MINUS_MODULUS: {
        float square = vlp_modulus_square(q, k);
        float scale = square > VLP_TINY_DISTANCE * VLP_TINY_DISTANCE ? w / sqrtf(square) : 0.0f;
        g[0] = scale * (q[0] - k[0]);
        g[1] = scale * (q[1] - k[1]);
        break;
    }
    }
}

/* k_grad += w dg/dk of a unit. */
VLP_FORMULA void vlp_similarity_backward(vlp_similarity similarity, float *k_grad, float w,
                                         const float *q, const float *k) {
    float g[2] = {0, 0};
    if (similarity == VLP_DOT) {
        k_grad[0] += w * q[0];
        return;
    }
    vlp_distance_gradient(similarity, g, w, q, k);
    for (int i = 0; i < vlp_similarity_parts(similarity); i++) k_grad[i] += g[i];
}

/* Both gradients of a unit at once: q_grad += w dg/dq, k_grad += w dg/dk. */
VLP_FORMULA void vlp_similarity_backward_both(vlp_similarity similarity, float *q_grad, float *k_grad,
                                              float w, const float *q, const float *k) {
    float g[2] = {0, 0};
    if (similarity == VLP_DOT) {
        q_grad[0] += w * k[0];
        k_grad[0] += w * q[0];
        return;
    }
    vlp_distance_gradient(similarity, g, w, q, k);
    for (int i = 0; i < vlp_similarity_parts(similarity); i++) {
        q_grad[i] -= g[i];
        k_grad[i] += g[i];
    }
}

#endif
