/* What the loops of the path model are made of, for AVX-512, AVX2 and any processor. */
#include "compute/cpu/paths_kernels.h"

#include <math.h>

/* Loops over the rows and vectors of a tile have to disappear for its sums to be registers. */
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE TARGET static inline __attribute__((always_inline))

/* ---- Any processor: vectors of the compiler ------------------------------------------------------ */

typedef float floats __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));

#define NAME(function) function##_plain
#define TARGET
#define VECTOR floats
#define INTS ints
#define LANES 4
#define PRODUCT_ROWS 4
#define OUTER_ROWS 4

INLINE floats load_plain(const float *from) {
    floats out;
    memcpy(&out, from, sizeof out);
    return out;
}

INLINE void store_plain(float *to, floats values) {
    memcpy(to, &values, sizeof values);
}

INLINE floats set_plain(float value) {
    return (floats){value, value, value, value};
}

INLINE ints set_ints_plain(int32_t value) {
    return (ints){value, value, value, value};
}

INLINE floats fma_plain(floats a, floats b, floats c) {
    return a * b + c;
}

INLINE floats choose_plain(ints where, floats yes, floats no) {
    return (floats)((where & (ints)yes) | (~where & (ints)no));
}

INLINE floats larger_plain(floats a, floats b) {
    return choose_plain(a > b, a, b);
}

INLINE floats smaller_plain(floats a, floats b) {
    return choose_plain(a < b, a, b);
}

INLINE floats root_plain(floats x) {
    return (floats){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

INLINE void keep_larger_plain(floats *best, ints *at, floats message, ints edge) {
    ints beyond = message > *best;
    *best = choose_plain(beyond, message, *best);
    *at = (beyond & edge) | (~beyond & *at);
}

INLINE void keep_smaller_plain(floats *best, ints *at, floats message, ints edge) {
    ints beyond = message < *best;
    *best = choose_plain(beyond, message, *best);
    *at = (beyond & edge) | (~beyond & *at);
}

INLINE floats where_equal_plain(ints a, ints b, floats value) {
    return (floats)((a == b) & (ints)value);
}

INLINE floats where_positive_plain(floats x, floats value) {
    return (floats)((x > set_plain(0)) & (ints)value);
}

INLINE float total_plain(floats x) {
    return (x[0] + x[2]) + (x[1] + x[3]);
}

static bool runs_plain(void) {
    return true;
}

#define KERNELS(version)                                                                                \
    {                                                                                                   \
#version, runs_##version, product_##version, outer_##version, aggregate_##version,              \
            scatter_##version, normalize_##version, normalize_backward_##version, readout_##version,    \
            readout_backward_##version                                                                  \
    }

#include "compute/cpu/paths_loops.h"

static const path_kernels plain = KERNELS(plain);

#ifdef __x86_64__

#include <immintrin.h>

/* ---- AVX-512 ------------------------------------------------------------------------------------- */

#define NAME(function) function##_avx512
#define TARGET __attribute__((target("avx512f")))
#define VECTOR __m512
#define INTS __m512i
#define LANES 16
#define PRODUCT_ROWS 12
#define OUTER_ROWS 12

INLINE __m512 load_avx512(const float *from) {
    return _mm512_loadu_ps(from);
}

INLINE void store_avx512(float *to, __m512 values) {
    _mm512_storeu_ps(to, values);
}

INLINE __m512 set_avx512(float value) {
    return _mm512_set1_ps(value);
}

INLINE __m512i set_ints_avx512(int32_t value) {
    return _mm512_set1_epi32(value);
}

INLINE __m512 fma_avx512(__m512 a, __m512 b, __m512 c) {
    return _mm512_fmadd_ps(a, b, c);
}

INLINE __m512 larger_avx512(__m512 a, __m512 b) {
    return _mm512_max_ps(a, b);
}

INLINE __m512 smaller_avx512(__m512 a, __m512 b) {
    return _mm512_min_ps(a, b);
}

INLINE __m512 root_avx512(__m512 x) {
    return _mm512_sqrt_ps(x);
}

INLINE void keep_larger_avx512(__m512 *best, __m512i *at, __m512 message, __m512i edge) {
    *at = _mm512_mask_mov_epi32(*at, _mm512_cmp_ps_mask(message, *best, _CMP_GT_OQ), edge);
    *best = _mm512_max_ps(*best, message);
}

INLINE void keep_smaller_avx512(__m512 *best, __m512i *at, __m512 message, __m512i edge) {
    *at = _mm512_mask_mov_epi32(*at, _mm512_cmp_ps_mask(message, *best, _CMP_LT_OQ), edge);
    *best = _mm512_min_ps(*best, message);
}

INLINE __m512 where_equal_avx512(__m512i a, __m512i b, __m512 value) {
    return _mm512_maskz_mov_ps(_mm512_cmpeq_epi32_mask(a, b), value);
}

INLINE __m512 where_positive_avx512(__m512 x, __m512 value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), value);
}

INLINE float total_avx512(__m512 x) {
    return _mm512_reduce_add_ps(x);
}

static bool runs_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}

#include "compute/cpu/paths_loops.h"

static const path_kernels avx512 = KERNELS(avx512);

/* ---- AVX2 ---------------------------------------------------------------------------------------- */

#define NAME(function) function##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256
#define INTS __m256i
#define LANES 8
#define PRODUCT_ROWS 6
#define OUTER_ROWS 4

INLINE __m256 load_avx2(const float *from) {
    return _mm256_loadu_ps(from);
}

INLINE void store_avx2(float *to, __m256 values) {
    _mm256_storeu_ps(to, values);
}

INLINE __m256 set_avx2(float value) {
    return _mm256_set1_ps(value);
}

INLINE __m256i set_ints_avx2(int32_t value) {
    return _mm256_set1_epi32(value);
}

INLINE __m256 fma_avx2(__m256 a, __m256 b, __m256 c) {
    return _mm256_fmadd_ps(a, b, c);
}

INLINE __m256 larger_avx2(__m256 a, __m256 b) {
    return _mm256_max_ps(a, b);
}

INLINE __m256 smaller_avx2(__m256 a, __m256 b) {
    return _mm256_min_ps(a, b);
}

INLINE __m256 root_avx2(__m256 x) {
    return _mm256_sqrt_ps(x);
}

INLINE __m256i choose_ints_avx2(__m256 where, __m256i yes, __m256i no) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), where));
}

INLINE void keep_larger_avx2(__m256 *best, __m256i *at, __m256 message, __m256i edge) {
    *at = choose_ints_avx2(_mm256_cmp_ps(message, *best, _CMP_GT_OQ), edge, *at);
    *best = _mm256_max_ps(*best, message);
}

INLINE void keep_smaller_avx2(__m256 *best, __m256i *at, __m256 message, __m256i edge) {
    *at = choose_ints_avx2(_mm256_cmp_ps(message, *best, _CMP_LT_OQ), edge, *at);
    *best = _mm256_min_ps(*best, message);
}

INLINE __m256 where_equal_avx2(__m256i a, __m256i b, __m256 value) {
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)), value);
}

INLINE __m256 where_positive_avx2(__m256 x, __m256 value) {
    return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ), value);
}

INLINE float total_avx2(__m256 x) {
    __m128 half = _mm256_castps256_ps128(x) + _mm256_extractf128_ps(x, 1);
    half = half + _mm_movehl_ps(half, half);
    return half[0] + half[1];
}

static bool runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#include "compute/cpu/paths_loops.h"

static const path_kernels avx2 = KERNELS(avx2);

const path_kernels *const path_kernel_versions[] = {&avx512, &avx2, &plain, NULL};
#else
const path_kernels *const path_kernel_versions[] = {&plain, NULL};
#endif

/* ---- Choosing ------------------------------------------------------------------------------------ */

const path_kernels *path_kernels_choose(void) {
    for (const path_kernels *const *version = path_kernel_versions; *version; version++)
        if ((*version)->runs()) return *version;
    return &plain;
}
