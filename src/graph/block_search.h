/* Breadth-first search from up to 512 sources at once, one bit per source. */
#ifndef VLP_GRAPH_BLOCK_SEARCH_H
#define VLP_GRAPH_BLOCK_SEARCH_H

#include "graph/distance.h"

enum { VLP_BLOCK_LANES = 8, VLP_BLOCK_SOURCES = 64 * VLP_BLOCK_LANES };

/* One bit per source of the block. */
typedef struct vlp_source_bits {
    _Alignas(64) uint64_t lane[VLP_BLOCK_LANES];
} vlp_source_bits;

/* The working memory of one search; a thread keeps one for all its blocks. */
typedef struct vlp_block_search {
    vlp_source_bits *seen;  /* (nodes) sources that have reached the row */
    vlp_source_bits *fresh; /* (nodes) of these, the ones reached in the last step */
    vlp_source_bits *next;  /* (nodes) */
    vlp_source_bits *extra; /* (extra, nodes) for the caller */
    void *memory;
} vlp_block_search;

/* An array of `count` searches with `extra` sets of rows each, NULL when out of memory. */
vlp_block_search *vlp_block_searches_new(const vlp_skeleton *skeleton, int count, int extra);
void vlp_block_searches_free(vlp_block_search *searches);

/* Level 0: every source has reached itself. `sources` are rows. */
void vlp_block_search_start(vlp_block_search *search, const vlp_skeleton *skeleton,
                            const int32_t *sources, int32_t count);
/* The next level; false when no source reached anything new. */
bool vlp_block_search_step(vlp_block_search *search, const vlp_skeleton *skeleton);

#endif
