/* A keyed permutation of 0 .. n - 1. The i-th item of a pass is computed without the others, so that a
 * run resumes in the middle of a pass without saved state. A Feistel network over the next even power
 * of two, iterated until the value is below n (cycle walking). */
#ifndef VLP_BASE_ORDER_H
#define VLP_BASE_ORDER_H

#include "base/random.h"

VLP_FORMULA int64_t vlp_permuted(int64_t i, int64_t n, uint64_t seed, uint64_t pass) {
    int half = 1;
    while (half < 31 && (INT64_C(1) << (2 * half)) < n) half++;
    uint32_t mask = (uint32_t)((UINT64_C(1) << half) - 1);
    uint64_t at = (uint64_t)i;
    do {
        uint32_t left = (uint32_t)(at >> half), right = (uint32_t)at & mask;
        for (uint32_t round = 0; round < 4; round++) {
            uint32_t mixed = vlp_random(seed, VLP_STREAM_ORDER + 0x100 * round, pass, right).v[0];
            uint32_t next = left ^ (mixed & mask);
            left = right;
            right = next;
        }
        at = (uint64_t)left << half | right;
    } while (at >= (uint64_t)n);
    return (int64_t)at;
}

#endif
