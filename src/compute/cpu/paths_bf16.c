/* The products of a block with factors rounded to bf16, where the processor multiplies pairs of them:
 * twice the products of fp32 per instruction, sums in fp32. */
#include "compute/cpu/paths_kernels.h"

#ifdef __x86_64__

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define INLINE TARGET static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
enum { LANES = 16, ROWS = 12 };

static bool runs(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bf16");
}

/* ---- Rounding ------------------------------------------------------------------------------------ */

TARGET static void pack(uint32_t *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i += 2 * LANES) {
        __m512bh both =
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + LANES), _mm512_loadu_ps(from + i));
        _mm512_storeu_si512(to + i / 2, (__m512i)both);
    }
}

TARGET static void pack_pairs(uint32_t *to, const float *from, int64_t rows, int64_t width) {
    /* Words 0, 16, 1, 17, ..: those of the two rows in turn. */
    __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                     22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t j = 0; j < width; j += LANES) {
            const float *at = from + i * width + j;
            __m512 low = _mm512_loadu_ps(at);
            __m512 high = i + 1 < rows ? _mm512_loadu_ps(at + width) : _mm512_setzero_ps();
            __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(to + i / 2 * width + j, _mm512_permutexvar_epi16(order, both));
        }
}

/* ---- Products ------------------------------------------------------------------------------------ */

/* Where a tile goes: c = or c += the tile, and then also scaled += scale * the tile. */
typedef struct target {
    float *c, *scaled;
    int64_t stride;
    float scale;
    bool add;
} target;

/* The tile of `rows` rows and n vectors: the sum over pairs k of a[i row + k step] b[k b_stride + ..].
 */
INLINE void tile(target to, const uint32_t *a, int64_t row, int64_t step, const uint32_t *b,
                 int64_t b_stride, int64_t depth, int rows, int n) {
    __m512 sum[ROWS][2];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < n; j++) sum[i][j] =
        _mm512_setzero_ps();
    for (int64_t k = 0; k < depth; k++) {
        __m512bh right[2];
        UNROLL for (int j = 0; j < n; j++) right[j] =
            (__m512bh)_mm512_loadu_si512(b + k * b_stride + LANES * j);
        UNROLL for (int i = 0; i < rows; i++) {
            __m512bh left = (__m512bh)_mm512_set1_epi32((int32_t)a[i * row + k * step]);
            UNROLL for (int j = 0; j < n; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], left, right[j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < n; j++) {
        float *c = to.c + i * to.stride + LANES * j;
        __m512 out = sum[i][j];
        if (to.add) out = out + _mm512_loadu_ps(c);
        _mm512_storeu_ps(c, out);
        if (!to.scaled) continue;
        float *scaled = to.scaled + i * to.stride + LANES * j;
        _mm512_storeu_ps(scaled,
                         _mm512_fmadd_ps(_mm512_set1_ps(to.scale), sum[i][j], _mm512_loadu_ps(scaled)));
    }
}

INLINE void product_columns(float *c, const uint32_t *a, const uint32_t *b, int32_t m, int64_t n,
                            int64_t pairs, bool add, int vectors) {
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS)
        tile((target){c + i * n, NULL, n, 0, add}, a + i * pairs, pairs, 1, b, n, pairs, ROWS, vectors);
    c += i * n, a += i * pairs;
    if (m - i > 8)
        tile((target){c, NULL, n, 0, add}, a, pairs, 1, b, n, pairs, ROWS, vectors);
    else if (m - i > 4)
        tile((target){c, NULL, n, 0, add}, a, pairs, 1, b, n, pairs, 8, vectors);
    else if (m - i > 0)
        tile((target){c, NULL, n, 0, add}, a, pairs, 1, b, n, pairs, 4, vectors);
}

TARGET static void product(float *c, const uint32_t *a, const uint32_t *b, int32_t m, int64_t n,
                           int64_t pairs, bool add) {
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) product_columns(c + j, a, b + j, m, n, pairs, add, 2);
    if (j < n) product_columns(c + j, a, b + j, m, n, pairs, add, 1);
}

INLINE void outer_columns(target to, const uint32_t *a, const uint32_t *b, int64_t pairs, int64_t m,
                          int vectors) {
    int64_t i = 0, n = to.stride;
    for (; i + ROWS <= m; i += ROWS) {
        tile(to, a + i, 1, m, b, n, pairs, ROWS, vectors);
        to.c += ROWS * n;
        if (to.scaled) to.scaled += ROWS * n;
    }
    for (; i < m; i += 4) {
        tile(to, a + i, 1, m, b, n, pairs, 4, vectors);
        to.c += 4 * n;
        if (to.scaled) to.scaled += 4 * n;
    }
}

TARGET static void outer(float *c, float *scaled, float scale, const uint32_t *a, const uint32_t *b,
                         int64_t pairs, int64_t m, int64_t n) {
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES)
        outer_columns((target){c + j, scaled ? scaled + j : NULL, n, scale, true}, a, b + j, pairs, m,
                      2);
    if (j < n)
        outer_columns((target){c + j, scaled ? scaled + j : NULL, n, scale, true}, a, b + j, pairs, m,
                      1);
}

static const path_bf16_kernels kernels = {pack, pack_pairs, product, outer};

const path_bf16_kernels *path_bf16_choose(void) {
    return runs() ? &kernels : NULL;
}
#else
const path_bf16_kernels *path_bf16_choose(void) {
    return NULL;
}
#endif
