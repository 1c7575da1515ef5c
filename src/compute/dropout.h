/* The random choice of dropout, from counters: what is dropped in a step depends on seed, step, row and
 * column alone. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_DROPOUT_H
#define VLP_COMPUTE_DROPOUT_H

#include "base/random.h"
#include "compute/operands.h"

/* Columns that share a random word; rows, which have 20 bits of the counter. */
enum { VLP_DROPOUT_GROUP = 8, VLP_DROPOUT_ROWS = 1 << 20 };

/* What the columns from VLP_DROPOUT_GROUP * group on are multiplied by. The probability is rounded to 16
 * bits; the factor of those that are kept is that of the rounded one, so that the mean does not change.
 */
VLP_FORMULA void vlp_dropout_factors(float factors[VLP_DROPOUT_GROUP], const vlp_dropout *dropout,
                                     int64_t step, int64_t row, int32_t group) {
    uint32_t threshold = (uint32_t)(dropout->probability * 65536.0f + 0.5f);
    float kept = 65536.0f / (float)(65536 - threshold);
    vlp_random4 bits = vlp_random(dropout->seed, VLP_STREAM_DROPOUT,
                                  (uint64_t)step << 20 | (uint64_t)row, (uint32_t)group);
    for (int i = 0; i < VLP_DROPOUT_GROUP; i++)
        factors[i] = (bits.v[i / 2] >> (16 * (i % 2)) & 0xffff) < threshold ? 0.0f : kept;
}

#endif
