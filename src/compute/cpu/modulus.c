/* A square root costs as much as one or two dozen multiplications. An estimate y of its reciprocal costs
 * as much as three, and s = x y approximates the root of x: with d = 1 - y s,
 *
 *   root = s (1 + d / 2 + 3 d^2 / 8 + ..)
 *
 * of which Newton's step is the first two terms. */
#include "compute/cpu/modulus.h"

#include <math.h>
#include <stddef.h>

#include "compute/form.h"

/* ---- Any processor ------------------------------------------------------------------------------- */

static bool runs_anywhere(void) {
    return true;
}

static float plain_sum(const float *one, const float *other, int32_t half) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < half; j++) {
        float re = other[j] - one[j], im = other[j + half] - one[j + half];
        sum += sqrtf(re * re + im * im);
    }
    return sum;
}

static void plain_sums(float *sums, const float *one, const float *const *others, int32_t count,
                       int32_t half) {
    for (int32_t i = 0; i < count; i++) sums[i] = plain_sum(one, others[i], half);
}

/* The arrays do not overlap: only so is the loop vectorized. */
static void plain_gradient(float *restrict one_grad, float *restrict other_grad, float weight,
                           const float *restrict one, const float *restrict other, int32_t half) {
#pragma omp simd
    for (int32_t j = 0; j < half; j++) {
        float re = other[j] - one[j], im = other[j + half] - one[j + half];
        float square = re * re + im * im;
        /* Divided by infinity where there is no direction: a branch would prevent vectorization. */
        float scale = weight / sqrtf(square > VLP_TINY_DISTANCE * VLP_TINY_DISTANCE ? square : INFINITY);
        one_grad[j] += scale * re;
        other_grad[j] -= scale * re;
        one_grad[j + half] += scale * im;
        other_grad[j + half] -= scale * im;
    }
}

static void plain_backward(float *one_grad, float *const *others_grad, const float *weights,
                           const float *one, const float *const *others, int32_t count, int32_t half) {
    for (int32_t i = 0; i < count; i++)
        plain_gradient(one_grad, others_grad[i], weights[i], one, others[i], half);
}

static const cpu_modulus plain = {"plain", runs_anywhere, plain_sums, plain_backward};

#ifdef __x86_64__

#include <immintrin.h>

#define INLINE TARGET static inline __attribute__((always_inline))

/* ---- AVX-512: an estimate of 14 bits, and Newton's step ------------------------------------------ */

#define NAME(function) function##_avx512
#define TARGET __attribute__((target("avx512f")))
#define VECTOR __m512
#define LANES 16
#define SCALE 2

INLINE __mmask16 first_avx512(int32_t rest) {
    return (__mmask16)((1u << rest) - 1);
}

INLINE __m512 load_avx512(const float *from, int32_t rest) {
    return rest ? _mm512_maskz_loadu_ps(first_avx512(rest), from) : _mm512_loadu_ps(from);
}

INLINE void store_avx512(float *to, __m512 values, int32_t rest) {
    if (rest)
        _mm512_mask_storeu_ps(to, first_avx512(rest), values);
    else
        _mm512_storeu_ps(to, values);
}

INLINE __m512 fma_avx512(__m512 a, __m512 b, __m512 c) {
    return _mm512_fmadd_ps(a, b, c);
}

/* s (3 - y s) is twice the root; halving is left to the end. Lanes behind the rest are zeros, of which y
 * is infinite. */
INLINE __m512 add_modulus_avx512(__m512 sum, __m512 square, int32_t rest) {
    __m512 y = rest ? _mm512_maskz_rsqrt14_ps(first_avx512(rest), square) : _mm512_rsqrt14_ps(square);
    __m512 s = square * y;
    return _mm512_fmadd_ps(s, _mm512_fnmadd_ps(y, s, _mm512_set1_ps(3)), sum);
}

INLINE __m512 inverse_modulus_avx512(__m512 square) {
    __m512 tiny = _mm512_set1_ps(VLP_TINY_DISTANCE * VLP_TINY_DISTANCE);
    __mmask16 some = _mm512_cmp_ps_mask(square, tiny, _CMP_GT_OQ);
    some = _mm512_mask_cmp_ps_mask(some, square, _mm512_set1_ps(INFINITY), _CMP_LT_OQ);
    __m512 y = _mm512_rsqrt14_ps(square), s = square * y;
    return _mm512_maskz_mul_ps(some, y * 0.5f, _mm512_fnmadd_ps(y, s, _mm512_set1_ps(3)));
}

INLINE __m256 fold_avx512(__m512 sum) {
    __m512 upper = _mm512_shuffle_f32x4(sum, sum, _MM_SHUFFLE(3, 2, 3, 2));
    return _mm512_castps512_ps256(sum + upper);
}

INLINE __m128 total_avx512(const __m512 *sums) {
    __m256 low = _mm256_hadd_ps(fold_avx512(sums[0]), fold_avx512(sums[1]));
    __m256 high = _mm256_hadd_ps(fold_avx512(sums[2]), fold_avx512(sums[3]));
    __m256 both = _mm256_hadd_ps(low, high);
    return _mm256_castps256_ps128(both) + _mm256_extractf128_ps(both, 1);
}

static bool runs_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}

#include "compute/cpu/modulus_loops.h"

static const cpu_modulus avx512 = {"avx512", runs_avx512, sums_avx512, backward_avx512};

/* ---- AVX2: an estimate of nearly 12 bits, and one term more -------------------------------------- */

#define NAME(function) function##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256
#define LANES 8
#define SCALE 1

INLINE __m256i first_avx2(int32_t rest) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(rest), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE __m256 load_avx2(const float *from, int32_t rest) {
    return rest ? _mm256_maskload_ps(from, first_avx2(rest)) : _mm256_loadu_ps(from);
}

INLINE void store_avx2(float *to, __m256 values, int32_t rest) {
    if (rest)
        _mm256_maskstore_ps(to, first_avx2(rest), values);
    else
        _mm256_storeu_ps(to, values);
}

INLINE __m256 fma_avx2(__m256 a, __m256 b, __m256 c) {
    return _mm256_fmadd_ps(a, b, c);
}

/* x (1 + d / 2 + 3 d^2 / 8), where d = 1 - y s. */
INLINE __m256 corrected_avx2(__m256 x, __m256 y, __m256 s) {
    __m256 d = _mm256_fnmadd_ps(y, s, _mm256_set1_ps(1));
    return _mm256_fmadd_ps(x * d, _mm256_fmadd_ps(d, _mm256_set1_ps(0.375f), _mm256_set1_ps(0.5f)), x);
}

INLINE __m256 add_modulus_avx2(__m256 sum, __m256 square, int32_t rest) {
    __m256 y = _mm256_rsqrt_ps(square);
    if (rest) y = _mm256_and_ps(y, _mm256_castsi256_ps(first_avx2(rest)));
    __m256 s = square * y;
    return sum + corrected_avx2(s, y, s);
}

INLINE __m256 inverse_modulus_avx2(__m256 square) {
    __m256 tiny = _mm256_set1_ps(VLP_TINY_DISTANCE * VLP_TINY_DISTANCE);
    __m256 some = _mm256_and_ps(_mm256_cmp_ps(square, tiny, _CMP_GT_OQ),
                                _mm256_cmp_ps(square, _mm256_set1_ps(INFINITY), _CMP_LT_OQ));
    __m256 y = _mm256_rsqrt_ps(square);
    return _mm256_and_ps(corrected_avx2(y, y, square * y), some);
}

INLINE __m128 total_avx2(const __m256 *sums) {
    __m256 both = _mm256_hadd_ps(_mm256_hadd_ps(sums[0], sums[1]), _mm256_hadd_ps(sums[2], sums[3]));
    return _mm256_castps256_ps128(both) + _mm256_extractf128_ps(both, 1);
}

static bool runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#include "compute/cpu/modulus_loops.h"

static const cpu_modulus avx2 = {"avx2", runs_avx2, sums_avx2, backward_avx2};

const cpu_modulus *const cpu_modulus_versions[] = {&avx512, &avx2, &plain, NULL};
#else
const cpu_modulus *const cpu_modulus_versions[] = {&plain, NULL};
#endif

/* ---- Choosing ------------------------------------------------------------------------------------ */

const cpu_modulus *cpu_modulus_choose(void) {
    for (const cpu_modulus *const *version = cpu_modulus_versions; *version; version++)
        if ((*version)->runs()) return *version;
    return &plain;
}

void cpu_modulus_sums(const cpu_modulus *version, float *sums, const float *one,
                      const float *const *others, int32_t count, int32_t half) {
    version->sums(sums, one, others, count, half);
    for (int32_t i = 0; i < count; i++)
        if (!isfinite(sums[i])) sums[i] = plain_sum(one, others[i], half);
}
