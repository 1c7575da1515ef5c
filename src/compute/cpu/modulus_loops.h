/* The loops over moduli, written once: modulus.c includes this file for every instruction set, with
 * names of its own (NAME), the attribute TARGET, a VECTOR of LANES floats, and these functions:
 *
 *   load, store       a vector, or its first `rest` floats where that is not 0; others are read as zeros
 *   fma               a b + c
 *   add_modulus       sum + SCALE times the root of a square
 *   inverse_modulus   1 by the root of a square; 0 where the root is tiny or infinite
 *   total             the sum over each of four vectors
 *
 * Multiply-adds are written as fma, so that the compiler does not contract loop by loop. Counts are
 * compile-time constants, so that sums stay in registers. */

typedef struct NAME(complex) {
    VECTOR re, im;
} NAME(complex);

INLINE NAME(complex) NAME(read)(const float *row, int32_t half, int32_t rest) {
    return (NAME(complex)){NAME(load)(row, rest), NAME(load)(row + half, rest)};
}

INLINE NAME(complex) NAME(minus)(NAME(complex) left, NAME(complex) right) {
    return (NAME(complex)){left.re - right.re, left.im - right.im};
}

INLINE VECTOR NAME(square)(NAME(complex) number) {
    return NAME(fma)(number.re, number.re, number.im * number.im);
}

/* ---- Sums ---------------------------------------------------------------------------------------- */

INLINE void NAME(add_moduli)(VECTOR *sums, const float *one, const float *const *others, int32_t count,
                             int32_t half, int32_t j, int32_t rest) {
    NAME(complex) here = NAME(read)(one + j, half, rest);
    for (int32_t i = 0; i < count; i++) {
        NAME(complex) there = NAME(read)(others[i] + j, half, rest);
        sums[i] = NAME(add_modulus)(sums[i], NAME(square)(NAME(minus)(here, there)), rest);
    }
}

INLINE void NAME(sums_of)(float *sums, const float *one, const float *const *others, int32_t count,
                          int32_t half) {
    VECTOR sum[CPU_MODULUS_ROWS] = {0};
    int32_t rest = half % LANES, whole = half - rest;
    for (int32_t j = 0; j < whole; j += LANES) NAME(add_moduli)(sum, one, others, count, half, j, 0);
    if (rest) NAME(add_moduli)(sum, one, others, count, half, whole, rest);
    __m128 totals = NAME(total)(sum) * (1.0f / SCALE);
    for (int32_t i = 0; i < count; i++) sums[i] = totals[i];
}

TARGET static void NAME(sums)(float *sums, const float *one, const float *const *others, int32_t count,
                              int32_t half) {
    switch (count) {
    case 1:
        NAME(sums_of)(sums, one, others, 1, half);
        break;
    case 2:
        NAME(sums_of)(sums, one, others, 2, half);
        break;
    case 3:
        NAME(sums_of)(sums, one, others, 3, half);
        break;
    case 4:
        NAME(sums_of)(sums, one, others, 4, half);
        break;
    }
}

/* ---- Gradients ----------------------------------------------------------------------------------- */

/* The gradient of the one row stays in registers over the others. */
INLINE void NAME(add_gradients)(float *one_grad, float *const *others_grad, const float *weights,
                                const float *one, const float *const *others, int32_t count,
                                int32_t half, int32_t j, int32_t rest) {
    NAME(complex) here = NAME(read)(one + j, half, rest), grad = NAME(read)(one_grad + j, half, rest);
    for (int32_t i = 0; i < count; i++) {
        NAME(complex) apart = NAME(minus)(NAME(read)(others[i] + j, half, rest), here);
        VECTOR scale = NAME(inverse_modulus)(NAME(square)(apart)) * weights[i];
        grad.re = NAME(fma)(scale, apart.re, grad.re);
        grad.im = NAME(fma)(scale, apart.im, grad.im);
        float *out = others_grad[i] + j;
        NAME(complex) other = NAME(read)(out, half, rest);
        NAME(store)(out, NAME(fma)(-scale, apart.re, other.re), rest);
        NAME(store)(out + half, NAME(fma)(-scale, apart.im, other.im), rest);
    }
    NAME(store)(one_grad + j, grad.re, rest);
    NAME(store)(one_grad + half + j, grad.im, rest);
}

INLINE void NAME(backward_of)(float *one_grad, float *const *others_grad, const float *weights,
                              const float *one, const float *const *others, int32_t count,
                              int32_t half) {
    int32_t rest = half % LANES, whole = half - rest;
    for (int32_t j = 0; j < whole; j += LANES)
        NAME(add_gradients)(one_grad, others_grad, weights, one, others, count, half, j, 0);
    if (rest) NAME(add_gradients)(one_grad, others_grad, weights, one, others, count, half, whole, rest);
}

TARGET static void NAME(backward)(float *one_grad, float *const *others_grad, const float *weights,
                                  const float *one, const float *const *others, int32_t count,
                                  int32_t half) {
    switch (count) {
    case 1:
        NAME(backward_of)(one_grad, others_grad, weights, one, others, 1, half);
        break;
    case 2:
        NAME(backward_of)(one_grad, others_grad, weights, one, others, 2, half);
        break;
    case 3:
        NAME(backward_of)(one_grad, others_grad, weights, one, others, 3, half);
        break;
    case 4:
        NAME(backward_of)(one_grad, others_grad, weights, one, others, 4, half);
        break;
    }
}

#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef SCALE
