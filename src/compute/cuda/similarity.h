/* Similarities for kernels: the formulas of compute/similarity.h, instantiated by similarity.
 * Specializations by faster instructions are compared with the formulas in
 * tests/cuda/test_specializations.c. */
#ifndef VLP_COMPUTE_CUDA_SIMILARITY_H
#define VLP_COMPUTE_CUDA_SIMILARITY_H

#include <type_traits>

#include "compute/cuda/device.h"

template <vlp_similarity SIMILARITY> constexpr int PARTS = vlp_similarity_parts(SIMILARITY);

/* ---- Units --------------------------------------------------------------------------------------- */

/* A unit's term of the sum. */
template <vlp_similarity SIMILARITY> __device__ inline float unit_term(const float *q, const float *k) {
    return vlp_similarity_term(SIMILARITY, q, k);
}

template <> __device__ inline float unit_term<VLP_MINUS_MODULUS>(const float *q, const float *k) {
    return fast_root(vlp_modulus_square(q, k));
}

/* k_grad += w dg/dk of a unit; w is that of vlp_similarity_weight. */
template <vlp_similarity SIMILARITY>
__device__ inline void unit_backward(float *k_grad, float w, const float *q, const float *k) {
    vlp_similarity_backward(SIMILARITY, k_grad, w, q, k);
}

template <>
__device__ inline void unit_backward<VLP_MINUS_MODULUS>(float *k_grad, float w, const float *q,
                                                        const float *k) {
    float square = vlp_modulus_square(q, k);
    float scale = square > VLP_TINY_DISTANCE * VLP_TINY_DISTANCE ? w * fast_inverse_root(square) : 0;
    k_grad[0] += scale * (q[0] - k[0]);
    k_grad[1] += scale * (q[1] - k[1]);
}

/* ---- Four adjacent units of a row, [part][unit] --------------------------------------------------- */

/* sum + the terms of four units, one after the other. */
template <vlp_similarity SIMILARITY>
__device__ inline float add_terms(float sum, const float (*q)[4], const float (*k)[4]) {
    constexpr int COUNT = PARTS<SIMILARITY>;
#pragma unroll
    for (int u = 0; u < 4; u++)
        sum += unit_term<SIMILARITY>(unit_of<COUNT>(q, u).at, unit_of<COUNT>(k, u).at);
    return sum;
}

/* k_grad += w dg/dk of four units. */
template <vlp_similarity SIMILARITY>
__device__ inline void add_backward(float (*k_grad)[4], float w, const float (*q)[4],
                                    const float (*k)[4]) {
    constexpr int COUNT = PARTS<SIMILARITY>;
#pragma unroll
    for (int u = 0; u < 4; u++) {
        unit_of<COUNT> grad(k_grad, u);
        unit_backward<SIMILARITY>(grad.at, w, unit_of<COUNT>(q, u).at, unit_of<COUNT>(k, u).at);
#pragma unroll
        for (int part = 0; part < COUNT; part++) k_grad[part][u] = grad.at[part];
    }
}

/* ---- Dispatch ------------------------------------------------------------------------------------ */

template <vlp_similarity SIMILARITY>
using similarity_constant = std::integral_constant<vlp_similarity, SIMILARITY>;

/* Calls function(similarity_constant<similarity>()), for kernels that are templates. */
template <class F> static inline void with_similarity(vlp_similarity similarity, F function) {
    switch (similarity) {
    case VLP_DOT:
        function(similarity_constant<VLP_DOT>());
        break;
    case VLP_MINUS_L1:
        function(similarity_constant<VLP_MINUS_L1>());
        break;
    case VLP_MINUS_L2:
        function(similarity_constant<VLP_MINUS_L2>());
        break;
    case VLP_MINUS_MODULUS:
        function(similarity_constant<VLP_MINUS_MODULUS>());
        break;
    }
}

#endif
