/* Compressed sparse rows: items grouped by node and sorted within each row. Used by the graph, the
 * filter and the search for repeated triples. */
#ifndef VLP_GRAPH_ROWS_H
#define VLP_GRAPH_ROWS_H

#include "base/base.h"

/* A 64-bit key and its value. */
typedef struct vlp_keyed {
    uint64_t key;
    int64_t value;
} vlp_keyed;

/* A stable sort by key. spare: (count). */
void vlp_keyed_sort(vlp_keyed *items, vlp_keyed *spare, int64_t count);

/* A prefix sum: turns counts in offset[node + 1] into the starts of rows. */
void vlp_rows_accumulate(int64_t *offset, int32_t rows);

/* The length of the longest row. */
int64_t vlp_rows_longest(const int64_t *offset, int32_t rows);

/* A sort key: by relation, then answer. */
static inline uint64_t vlp_pair_key(int32_t relation, int32_t answer) {
    return (uint64_t)(uint32_t)relation << 32 | (uint32_t)answer;
}

#endif
