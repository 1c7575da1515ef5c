/* A keyed permutation of 0 .. n - 1. The i-th item of a pass is computed without the others, so that a
 * run resumes in the middle of a pass without saved state. */
#ifndef VLP_BASE_ORDER_H
#define VLP_BASE_ORDER_H

#include "base/random.h"

/* A Feistel network of four rounds is uneven on few bits (an item is at some positions several percent
 * too often), so that fewer items than this are shuffled by swap-or-not. */
enum { VLP_FEISTEL_FROM = 1024, VLP_SWAP_ROUNDS = 16 };

/* Swap-or-not shuffle (Hoang, Morris and Rogaway, 2012): in each round an item changes places with its
 * partner, key - at modulo n, if the random bit of the pair is set. The partner is uniform, so after k
 * rounds the probability of each position differs from 1 / n by at most 2^-k. */
VLP_FORMULA int64_t vlp_swap_or_not(int64_t i, int64_t n, uint64_t seed, uint64_t pass) {
    uint32_t at = (uint32_t)i, size = (uint32_t)n;
    vlp_random4 keys = {{0, 0, 0, 0}};
    for (uint32_t round = 0; round < VLP_SWAP_ROUNDS; round++) {
        if (round % 4 == 0) keys = vlp_random(seed, VLP_STREAM_ORDER + 0x400, pass, round / 4);
        uint32_t key = (uint32_t)((uint64_t)keys.v[round % 4] * size >> 32);
        uint32_t partner = key >= at ? key - at : key + size - at;
        uint32_t larger = partner > at ? partner : at;
        uint32_t pair = round * VLP_FEISTEL_FROM + larger;
        if (vlp_random(seed, VLP_STREAM_ORDER + 0x500, pass, pair).v[0] & 1) at = partner;
    }
    return at;
}

/* From VLP_FEISTEL_FROM items on: a Feistel network over the next even power of two, iterated until the
 * value is below n (cycle walking). */
VLP_FORMULA int64_t vlp_permuted(int64_t i, int64_t n, uint64_t seed, uint64_t pass) {
    if (n < VLP_FEISTEL_FROM) return vlp_swap_or_not(i, n, seed, pass);
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

/* The query of row i in the batch of a step: passes over all queries, each in an order of its own. */
VLP_FORMULA int64_t vlp_batch_query(int64_t step, int64_t count, int64_t i, int64_t queries,
                                    uint64_t seed) {
    int64_t at = step * count + i;
    return vlp_permuted(at % queries, queries, seed, (uint64_t)(at / queries));
}

#endif
