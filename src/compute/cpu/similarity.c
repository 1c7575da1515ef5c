/* Similarities of one row and a few others: the formulas of compute/similarity.h as vectorized loops,
 * and moduli by modulus.c. */
#include "base/simd.h"
#include "compute/cpu/cpu.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- One pair, units of one part ----------------------------------------------------------------- */

INLINE float row_sum(vlp_similarity similarity, const float *q, const float *k, int32_t width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < width; j++) sum += vlp_similarity_term(similarity, q + j, k + j);
    return sum;
}

INLINE float row_score(vlp_similarity similarity, const vlp_form *form, const float *q, const float *k) {
    float sum = row_sum(similarity, q, k, form->query_width);
    return vlp_similarity_score(similarity, sum, form->margin);
}

/* The arrays do not overlap: only so is the loop vectorized. */
INLINE void row_backward(vlp_similarity similarity, float *restrict q_grad, float *restrict k_grad,
                         float w, const float *restrict q, const float *restrict k, int32_t width) {
    float sum = vlp_similarity_weight_needs_sum(similarity) ? row_sum(similarity, q, k, width) : 0;
    float weight = vlp_similarity_weight(similarity, w, sum);
    VLP_SIMD for (int32_t j = 0; j < width; j++)
        vlp_similarity_backward_both(similarity, q_grad + j, k_grad + j, weight, q + j, k + j);
}

VLP_CLONES static float pair_score(const vlp_form *form, const float *q, const float *k) {
    switch (form->similarity) {
    case VLP_DOT:
        return row_score(VLP_DOT, form, q, k);
    case VLP_MINUS_L1:
        return row_score(VLP_MINUS_L1, form, q, k);
    case VLP_MINUS_L2:
        return row_score(VLP_MINUS_L2, form, q, k);
    case VLP_MINUS_MODULUS: /* by modulus.c */
        break;
    }
    assert(false);
    return 0;
}

VLP_CLONES static void pair_backward(const vlp_form *form, float *q_grad, float *k_grad, float w,
                                     const float *q, const float *k) {
    int32_t width = form->query_width;
    switch (form->similarity) {
    case VLP_DOT:
        row_backward(VLP_DOT, q_grad, k_grad, w, q, k, width);
        break;
    case VLP_MINUS_L1:
        row_backward(VLP_MINUS_L1, q_grad, k_grad, w, q, k, width);
        break;
    case VLP_MINUS_L2:
        row_backward(VLP_MINUS_L2, q_grad, k_grad, w, q, k, width);
        break;
    case VLP_MINUS_MODULUS: /* by modulus.c */
        assert(false);
        break;
    }
}

/* ---- One row and a few others -------------------------------------------------------------------- */

void cpu_similarities(const vlp_compute *compute, float *scores, const vlp_form *form, const float *one,
                      const float *const *others, int32_t count) {
    if (form->similarity == VLP_MINUS_MODULUS) {
        cpu_modulus_sums(compute->modulus, scores, one, others, count, form->query_width / 2);
        for (int32_t i = 0; i < count; i++)
            scores[i] = vlp_similarity_score(VLP_MINUS_MODULUS, scores[i], form->margin);
    } else {
        for (int32_t i = 0; i < count; i++) scores[i] = pair_score(form, others[i], one);
    }
}

void cpu_similarities_backward(const vlp_compute *compute, const vlp_form *form, cpu_pair_rows *rows,
                               float *k_grad, const float *k) {
    if (form->similarity == VLP_MINUS_MODULUS)
        compute->modulus->backward(k_grad, rows->q_grad, rows->weights, k, rows->q, rows->count,
                                   form->query_width / 2);
    else
        for (int32_t i = 0; i < rows->count; i++)
            pair_backward(form, rows->q_grad[i], k_grad, rows->weights[i], rows->q[i], k);
    rows->count = 0;
}
