/* A matrix product whose factors are rounded to bf16, with sums in fp32, where the processor multiplies
 * pairs of them: twice the products of fp32 per instruction.
 *
 * As in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a panel of b
 * stays in the L1 cache, a block of a in L2, a block of b in L3. Both are rounded while they are packed;
 * a word of packed memory has two consecutive terms of the sum. The parts of a sum follow from k alone,
 * so that an element of c has the same bits however the product is cut into pieces. */
#include "compute/cpu/cpu.h"

#ifdef __x86_64__

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define INLINE TARGET static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum {
    LANES = 16,
    ROWS = 12,            /* of a tile of c, in registers: ROWS x COLUMNS */
    COLUMNS = 2 * LANES,  /* a tile's */
    PAIRS = 224,          /* terms of a part of the sum are at most twice as many */
    BLOCK_ROWS = 240,     /* of a; a multiple of ROWS */
    BLOCK_COLUMNS = 2048, /* of b; a multiple of COLUMNS */
    A_WORDS = BLOCK_ROWS * PAIRS,
    B_WORDS = BLOCK_COLUMNS * PAIRS
};

bool cpu_rounds_factors(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bf16");
}

int64_t cpu_rounded_floats(void) {
    return A_WORDS + B_WORDS;
}

/* ---- Packing ------------------------------------------------------------------------------------- */

/* A matrix of the product, as it is packed: `lines` rows of a, or columns of b, and the terms of a part.
 * Either the terms of a line, or the lines of a term, are next to each other. */
typedef struct factor {
    const float *from;
    int64_t stride; /* from one line to the next, or from one term to the next */
    int64_t lines, terms;
    bool terms_adjacent;
} factor;

INLINE __mmask16 first_lanes(int64_t count) {
    if (count <= 0) return 0;
    if (count >= LANES) return 0xffff;
    return (__mmask16)((1u << count) - 1);
}

/* 16 words: terms 2 k and 2 k + 1 of each of 16 lines. */
INLINE __m512i pair_lines(const factor *of, int64_t line, int64_t k) {
    /* Words of 16 bits 0, 16, 1, 17, ..: those of the two terms in turn. */
    __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                     22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __mmask16 mask = first_lanes(of->lines - line);
    const float *at = of->from + 2 * k * of->stride + line;
    __m512 low = _mm512_maskz_loadu_ps(mask, at);
    __m512 high =
        2 * k + 1 < of->terms ? _mm512_maskz_loadu_ps(mask, at + of->stride) : _mm512_setzero_ps();
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/* 16 words: the pairs k .. k + 15 of a line. */
INLINE __m512i pair_terms(const factor *of, int64_t line, int64_t k) {
    if (line >= of->lines) return _mm512_setzero_si512();
    const float *at = of->from + line * of->stride + 2 * k;
    int64_t left = of->terms - 2 * k;
    __m512 low = _mm512_maskz_loadu_ps(first_lanes(left), at);
    __m512 high = left > LANES ? _mm512_maskz_loadu_ps(first_lanes(left - LANES), at + LANES)
                               : _mm512_setzero_ps();
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Blocks of `step` rows and columns off the diagonal are exchanged. */
INLINE void exchange(__m512i rows[LANES], int step) {
    int32_t first[LANES], second[LANES];
    for (int j = 0; j < LANES; j++) {
        first[j] = j & step ? LANES + j - step : j;
        second[j] = j & step ? LANES + j : j + step;
    }
    __m512i low = _mm512_loadu_si512(first), high = _mm512_loadu_si512(second);
    UNROLL for (int i = 0; i < LANES; i++) {
        if (i & step) continue;
        __m512i upper = rows[i], lower = rows[i + step];
        rows[i] = _mm512_permutex2var_epi32(upper, low, lower);
        rows[i + step] = _mm512_permutex2var_epi32(upper, high, lower);
    }
}

/* Pairs k .. k + 15 of 16 lines, transposed. */
INLINE void pair_square(__m512i out[LANES], const factor *of, int64_t line, int64_t k) {
    UNROLL for (int i = 0; i < LANES; i++) out[i] = pair_terms(of, line + i, k);
    exchange(out, 8);
    exchange(out, 4);
    exchange(out, 2);
    exchange(out, 1);
}

/* Panels of `width` lines: to[(panel * pairs + k) * width + line], zeros behind the last line and term.
 */
INLINE void pack(uint32_t *to, const factor *of, int64_t width) {
    int64_t pairs = (of->terms + 1) / 2;
    for (int64_t panel = 0; panel < of->lines; panel += width, to += pairs * width)
        for (int64_t line = 0; line < width; line += LANES) {
            __mmask16 mask = first_lanes(width - line);
            for (int64_t k = 0; k < pairs; k += LANES) {
                int count = pairs - k < LANES ? (int)(pairs - k) : LANES;
                __m512i square[LANES];
                if (of->terms_adjacent)
                    pair_square(square, of, panel + line, k);
                else
                    for (int i = 0; i < count; i++) square[i] = pair_lines(of, panel + line, k + i);
                for (int i = 0; i < count; i++)
                    _mm512_mask_storeu_epi32(to + (k + i) * width + line, mask, square[i]);
            }
        }
}

TARGET static void pack_rows(uint32_t *to, const factor *of) {
    pack(to, of, ROWS);
}

TARGET static void pack_columns(uint32_t *to, const factor *of) {
    pack(to, of, COLUMNS);
}

/* ---- Tiles --------------------------------------------------------------------------------------- */

/* Where a tile goes: c = alpha tile + beta c. c is not read where beta is 0. */
typedef struct target {
    float *c;
    int64_t stride, rows, columns; /* what is there of the tile */
    float alpha, beta;
} target;

INLINE void add_tile(const target *to, const __m512 sum[ROWS][2], int64_t rows, int64_t columns) {
    __m512 alpha = _mm512_set1_ps(to->alpha), beta = _mm512_set1_ps(to->beta);
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < 2; j++) {
        if (i >= rows) continue;
        float *c = to->c + i * to->stride + LANES * j;
        __mmask16 mask = first_lanes(columns - LANES * j);
        __m512 out = _mm512_mul_ps(alpha, sum[i][j]);
        if (to->beta != 0) out = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(mask, c), out);
        _mm512_mask_storeu_ps(c, mask, out);
    }
}

TARGET static void tile(const target *to, const uint32_t *a, const uint32_t *b, int64_t pairs) {
    __m512 sum[ROWS][2];
    UNROLL for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    for (int64_t k = 0; k < pairs; k++, a += ROWS, b += COLUMNS) {
        __m512bh left = (__m512bh)_mm512_loadu_si512(b), right = (__m512bh)_mm512_loadu_si512(b + LANES);
        UNROLL for (int i = 0; i < ROWS; i++) {
            __m512bh one = (__m512bh)_mm512_set1_epi32((int32_t)a[i]);
            sum[i][0] = _mm512_dpbf16_ps(sum[i][0], one, left);
            sum[i][1] = _mm512_dpbf16_ps(sum[i][1], one, right);
        }
    }
    if (to->rows >= ROWS && to->columns >= COLUMNS)
        add_tile(to, sum, ROWS, COLUMNS);
    else
        add_tile(to, sum, to->rows, to->columns);
}

/* c (rows, columns) from a packed block of each. */
static void block(const target *to, const uint32_t *a, const uint32_t *b, int64_t pairs) {
    for (int64_t j = 0; j < to->columns; j += COLUMNS)
        for (int64_t i = 0; i < to->rows; i += ROWS) {
            target one = *to;
            one.c += i * to->stride + j;
            one.rows -= i;
            one.columns -= j;
            tile(&one, a + i * pairs, b + j * pairs, pairs);
        }
}

/* ---- The product --------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

void cpu_rounded_product(float *c, const vlp_product *shape, const float *a, const float *b,
                         float *work) {
    uint32_t *packed_a = (uint32_t *)(void *)work, *packed_b = packed_a + A_WORDS;
    int64_t parts = (shape->k + 2 * PAIRS - 1) / (2 * PAIRS);
    /* Even, so that no part but the last has half a pair. */
    int64_t depth = parts > 0 ? ((shape->k + parts - 1) / parts + 1) / 2 * 2 : 1;
    for (int64_t column = 0; column < shape->n; column += BLOCK_COLUMNS)
        for (int64_t term = 0; term < shape->k; term += depth) {
            factor right = {.from = b + (shape->transpose_b ? column * shape->ldb + term
                                                            : term * shape->ldb + column),
                            .stride = shape->ldb,
                            .lines = least(shape->n - column, BLOCK_COLUMNS),
                            .terms = least(shape->k - term, depth),
                            .terms_adjacent = shape->transpose_b};
            pack_columns(packed_b, &right);
            for (int64_t row = 0; row < shape->m; row += BLOCK_ROWS) {
                factor left = {
                    .from = a + (shape->transpose_a ? term * shape->lda + row : row * shape->lda + term),
                    .stride = shape->lda,
                    .lines = least(shape->m - row, BLOCK_ROWS),
                    .terms = right.terms,
                    .terms_adjacent = !shape->transpose_a};
                pack_rows(packed_a, &left);
                target to = {.c = c + row * shape->ldc + column,
                             .stride = shape->ldc,
                             .rows = left.lines,
                             .columns = right.lines,
                             .alpha = shape->alpha,
                             .beta = term == 0 ? shape->beta : 1};
                block(&to, packed_a, packed_b, (right.terms + 1) / 2);
            }
        }
}

#else

bool cpu_rounds_factors(void) {
    return false;
}

int64_t cpu_rounded_floats(void) {
    return 0;
}

void cpu_rounded_product(float *c, const vlp_product *shape, const float *a, const float *b,
                         float *work) {
    (void)c, (void)shape, (void)a, (void)b, (void)work;
    assert(false);
}

#endif
