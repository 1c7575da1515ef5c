/* Queries number by number, for the kernels that make them: a number is a column of a row, or the real
 * and the imaginary part that stand half a row apart. Not for the transforms by matrices. */
#ifndef VLP_COMPUTE_CUDA_TRANSFORM_H
#define VLP_COMPUTE_CUDA_TRANSFORM_H

#include "compute/cuda/device.h"

typedef struct complex_number {
    float re, im;
} complex_number;

__device__ inline complex_number phase(float rho, float scale) {
    complex_number turn;
    sincosf(rho * scale, &turn.im, &turn.re);
    return turn;
}

__device__ inline complex_number times(complex_number a, complex_number b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* a conj(b) */
__device__ inline complex_number times_conjugate(complex_number a, complex_number b) {
    return {a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
}

__device__ inline complex_number number(const float *row, int32_t j, int32_t half) {
    return {row[j], row[j + half]};
}

/* The complex number that turns h: the relation itself, or its phase. */
__device__ inline complex_number turn_of(const vlp_form &form, const float *r, int32_t j, int32_t half) {
    return form.transform == VLP_ROTATE ? phase(r[j], form.phase_scale) : number(r, j, half);
}

static inline __host__ __device__ bool is_complex_transform(const vlp_form &form) {
    return form.transform == VLP_SCALE_COMPLEX || form.transform == VLP_ROTATE;
}

static inline bool is_matrix_transform(const vlp_form &form) {
    return form.transform == VLP_MATRIX_TRANSPOSED || form.transform == VLP_MATRIX_TRANSLATE;
}

/* Number j of q from that of h; the imaginary part is nothing where numbers are real. */
__device__ inline complex_number query_number(const vlp_form &form, complex_number h, const float *r,
                                              int32_t j, bool linear) {
    if (form.transform == VLP_TRANSLATE) return {h.re + (linear ? 0.0f : r[j]), 0.0f};
    if (form.transform == VLP_SCALE) return {h.re * r[j], 0.0f};
    return times(h, turn_of(form, r, j, form.query_width / 2));
}

#endif
