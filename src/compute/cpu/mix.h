/* A row of mixed scores. Every entity's is computed by the same instructions: the answer's score,
 * computed a second time elsewhere, might be rounded differently and invent ties. */
#ifndef VLP_COMPUTE_CPU_MIX_H
#define VLP_COMPUTE_CPU_MIX_H

#include "compute/cpu/cpu.h"

/* The scores of one query by the components that are there. */
typedef struct mixed_rows {
    int32_t count;
    struct {
        int component;
        const float *scores; /* (columns) */
        const float *scale;  /* (columns); NULL: 1 */
    } items[VLP_MAX_COMPONENTS];
} mixed_rows;

static inline void mixed_rows_add(mixed_rows *rows, int component, const float *scores,
                                  const float *scale) {
    rows->items[rows->count].component = component;
    rows->items[rows->count].scores = scores;
    rows->items[rows->count++].scale = scale;
}

/* Columns that are mixed before the next ones: they remain in the L1 cache. */
enum { MIX_BLOCK = 1024 };

/* Inlined, so that they are compiled for the instruction set of mix_row: its multiplications and
 * additions are fused where there are such instructions. */
#define MIX_INLINE static inline __attribute__((always_inline))

/* out = weight scores: the first component. */
MIX_INLINE void mix_first(float *restrict out, const float *restrict scores, const float *restrict scale,
                          float weight, int32_t columns) {
    if (scale)
        for (int32_t e = 0; e < columns; e++) out[e] = weight * (scores[e] * scale[e]);
    else
        for (int32_t e = 0; e < columns; e++) out[e] = weight * scores[e];
}

/* The first component, which has no scale, and the second in one pass. */
MIX_INLINE void mix_two(float *restrict out, const float *restrict first, float first_weight,
                        const float *restrict scores, const float *restrict scale, float weight,
                        int32_t columns) {
    if (scale)
        for (int32_t e = 0; e < columns; e++)
            out[e] = weight * (scores[e] * scale[e]) + first_weight * first[e];
    else
        for (int32_t e = 0; e < columns; e++) out[e] = weight * scores[e] + first_weight * first[e];
}

/* out += weight scores: every further one. */
MIX_INLINE void mix_next(float *restrict out, const float *restrict scores, const float *restrict scale,
                         float weight, int32_t columns) {
    if (scale)
        for (int32_t e = 0; e < columns; e++) out[e] = weight * (scores[e] * scale[e]) + out[e];
    else
        for (int32_t e = 0; e < columns; e++) out[e] = weight * scores[e] + out[e];
}

VLP_CLONES static void mix_row(float *out, const mixed_rows *rows, const vlp_mixture *mixture,
                               int32_t columns) {
    for (int32_t start = 0; start < columns; start += MIX_BLOCK) {
        int32_t block = columns - start < MIX_BLOCK ? columns - start : MIX_BLOCK;
        const float *first = NULL;
        float first_weight = 0;
        for (int32_t i = 0; i < rows->count; i++) {
            const float *scores = rows->items[i].scores + start;
            const float *scale = rows->items[i].scale ? rows->items[i].scale + start : NULL;
            float weight = mixture->weights[rows->items[i].component];
            if (i == 0 && !scale && rows->count > 1) {
                first = scores;
                first_weight = weight;
            } else if (i == 0) {
                mix_first(out + start, scores, scale, weight, block);
            } else if (i == 1 && first) {
                mix_two(out + start, first, first_weight, scores, scale, weight, block);
            } else {
                mix_next(out + start, scores, scale, weight, block);
            }
        }
    }
}

#endif
