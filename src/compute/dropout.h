/* The random choice of dropout, from counters: what is dropped in a step depends on seed, step, row and
 * column alone. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_DROPOUT_H
#define VLP_COMPUTE_DROPOUT_H

#include "base/random.h"
#include "compute/operands.h"

/* Columns that share the bits of one counter; rows, which have 20 bits of it. */
enum { VLP_DROPOUT_GROUP = 8, VLP_DROPOUT_ROWS = 1 << 20 };

/* The columns of group g are g, g + groups, g + 2 groups ...: neighbouring columns are of neighbouring
 * groups, which are computed together. */
VLP_FORMULA int32_t vlp_dropout_groups(const vlp_dropout *dropout) {
    return (dropout->width + VLP_DROPOUT_GROUP - 1) / VLP_DROPOUT_GROUP;
}

VLP_FORMULA vlp_random4 vlp_dropout_bits(const vlp_dropout *dropout, int64_t step, int64_t row,
                                         int32_t group) {
    return vlp_random(dropout->seed, VLP_STREAM_DROPOUT, (uint64_t)step << 20 | (uint64_t)row,
                      (uint32_t)group);
}

/* What column number `index` of a group is multiplied by; word: v[index / 2] of its bits. The
 * probability is rounded to 16 bits, and `kept` belongs to the rounded one: the mean does not change. */
VLP_FORMULA float vlp_dropout_factor(const vlp_dropout *dropout, uint32_t word, int32_t index) {
    uint32_t threshold = (uint32_t)(dropout->probability * 65536.0f + 0.5f);
    float kept = 65536.0f / (float)(65536 - threshold);
    return (word >> (16 * (index % 2)) & 0xffff) < threshold ? 0.0f : kept;
}

#endif
