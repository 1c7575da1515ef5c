/* Compressed rows: items put into the row of their node, and sorted there. The one piece of machinery
 * behind the graph, the filter and the search for repeated triples. */
#ifndef VLP_GRAPH_ROWS_H
#define VLP_GRAPH_ROWS_H

#include "base/base.h"

/* A 64-bit key and what belongs to it. */
typedef struct vlp_keyed {
    uint64_t key;
    int64_t value;
} vlp_keyed;

/* Sorts by key, keeping the order of equal ones. `spare` holds (count) items. */
void vlp_keyed_sort(vlp_keyed *items, vlp_keyed *spare, int64_t count);

/* Turns counts[node] at offset[node + 1] into starts: offset[0] = 0 and so on. */
void vlp_rows_accumulate(int64_t *offset, int32_t rows);

/* The longest row. */
int64_t vlp_rows_longest(const int64_t *offset, int32_t rows);

/* A relation and an answer as one number, in their order. */
static inline uint64_t vlp_pair_key(int32_t relation, int32_t answer) {
    return (uint64_t)(uint32_t)relation << 32 | (uint32_t)answer;
}

#endif
