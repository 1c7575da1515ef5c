/* Counter-based random numbers (Philox4x32-10): the same (seed, stream, step, index) always gives the
 * same numbers, so resuming needs no saved state and threads share none. */
#ifndef VLP_BASE_RANDOM_H
#define VLP_BASE_RANDOM_H

#include "base/formula.h"

/* On a GPU __umulhi gives the high half of a product directly, which is faster than a 64-bit product. */
#ifdef __CUDA_ARCH__
#define R123_USE_64BIT 0
#define R123_USE_MULHILO32_MULHI_INTRIN 1
#define R123_MULHILO32_MULHI_INTRIN __umulhi
#endif
#include <Random123/philox.h>

/* Streams separate independent uses of one seed. A new use gets a new number; existing numbers do not
 * change. */
enum vlp_stream {
    VLP_STREAM_SPLIT = 1,
    VLP_STREAM_FAMILY = 2,
    VLP_STREAM_NEGATIVES = 3,
    VLP_STREAM_ORDER = 4,    /* of queries in a pass */
    VLP_STREAM_ENTITIES = 5, /* initial values */
    VLP_STREAM_RELATIONS = 6,
    VLP_STREAM_AGGREGATOR = 7,
    VLP_STREAM_CANDIDATES = 8, /* of a sampled softmax */
    VLP_STREAM_KEYS = 9,       /* exponential keys of negatives: the leading bits */
    VLP_STREAM_KEY_ENDS = 10,  /* the remaining bits */
    VLP_STREAM_DROPOUT = 11,

    /* Of the path model: initial values, the seeds of a batch's keys; and of a key: hidden answers,
     * dropped triples, candidates, gradients that are kept. */
    VLP_STREAM_PATH_VALUES = 12,
    VLP_STREAM_PATH_KEYS = 13,
    VLP_STREAM_PATH_HIDDEN = 14,
    VLP_STREAM_PATH_DROPPED = 15,
    VLP_STREAM_PATH_CANDIDATES = 16,
    VLP_STREAM_PATH_GRADIENTS = 17,

    VLP_STREAM_KEY_ANSWERS = 18, /* which answer of a key is its query's */

    VLP_STREAM_BOOTSTRAP = 20,
    VLP_STREAM_CALIBRATION = 21,
    VLP_STREAM_CLASSES = 22, /* true triples that are drawn, and their corruptions */
    VLP_STREAM_SPACE = 23,   /* draws of settings from a search space */
    VLP_STREAM_GRAPH = 24,   /* the generated graph */
    VLP_STREAM_SAMPLE = 25,  /* triples and candidates of an evaluation */
    VLP_STREAM_PARTITIONS = 26,
    VLP_STREAM_REFERENCES = 27,
    VLP_STREAM_TEST = 1000
};

typedef struct vlp_random4 {
    uint32_t v[4];
} vlp_random4;

VLP_FORMULA vlp_random4 vlp_random(uint64_t seed, uint32_t stream, uint64_t step, uint32_t index) {
    philox4x32_ctr_t counter = {{index, stream, (uint32_t)step, (uint32_t)(step >> 32)}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t result = philox4x32(counter, key);
    vlp_random4 out = {{result.v[0], result.v[1], result.v[2], result.v[3]}};
    return out;
}

/* Uniform in 0 .. bound - 1, from 64 random bits; the bias is below 2^-32 for bounds below 2^32. */
VLP_FORMULA uint32_t vlp_random_below(uint32_t high, uint32_t low, uint32_t bound) {
    uint64_t bits = (uint64_t)high << 32 | low;
    return (uint32_t)(((unsigned __int128)bits * bound) >> 64);
}

/* Uniform in [0, 1), from 24 bits: exact in fp32, never 1. */
VLP_FORMULA float vlp_random_unit(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f;
}

#endif
