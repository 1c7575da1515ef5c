/* What a place of a batch holds. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_BATCH_H
#define VLP_COMPUTE_BATCH_H

#include "base/order.h"
#include "compute/operands.h"

/* A query, with where its known answers are: in the list of known answers, or in keys.answers. */
typedef struct vlp_drawn {
    int64_t query, known_begin, known_end;
} vlp_drawn;

/* A key as a query of one of its answers, drawn uniformly. The horizontal loss reads all of them; N3 and
 * the aggregator, whose references leave the query's own triple out, read this one. */
VLP_FORMULA vlp_drawn vlp_key_draw(const vlp_query_tables *tables, int64_t key, int64_t at) {
    const vlp_key_tables *keys = &tables->keys;
    int64_t begin = keys->offset[key], end = keys->offset[key + 1];
    vlp_random4 bits = vlp_random(tables->seed, VLP_STREAM_KEY_ANSWERS, (uint64_t)at, 0);
    int64_t slot = begin + vlp_random_below(bits.v[0], bits.v[1], (uint32_t)(end - begin));
    int64_t triple = keys->triples[slot];
    vlp_drawn drawn = {triple, begin, end};
    if (keys->relations[key] >= tables->relations) drawn.query += tables->triples;
    return drawn;
}

/* Place `at` of all batches, one after the other. known_begin and known_end are 0 where the tables have
 * no known answers. */
VLP_FORMULA vlp_drawn vlp_batch_draw(const vlp_query_tables *tables, int64_t at) {
    int64_t items = tables->keys.count > 0 ? tables->keys.count : 2 * tables->triples;
    int64_t item = vlp_permuted(at % items, items, tables->seed, (uint64_t)(at / items));
    if (tables->keys.count > 0) return vlp_key_draw(tables, item, at);
    vlp_drawn drawn = {item, 0, 0};
    if (!tables->known_begin) return drawn;
    drawn.known_begin = tables->known_begin[item];
    drawn.known_end = drawn.known_begin + tables->known_counts[item];
    return drawn;
}

#endif
