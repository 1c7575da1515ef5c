/* A sorted table of folded texts: those that begin with a text, or are within some edits of beginning
 * with it, best ranks first.
 *
 * Beginnings are ranges of the table. A tree of minima over ranks finds the best of a range without
 * looking at all of it. Fuzzy search walks a tree of characters over the table with an automaton that
 * holds, for each number of edits, the set of positions in the typed text as bits; where it accepts, all
 * texts below do. */
#ifndef VLP_SERVER_SEARCH_TABLE_H
#define VLP_SERVER_SEARCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "search.h"

typedef struct search_item {
    uint64_t key;    /* the first 8 bytes, as a big-endian number */
    uint32_t offset; /* of the text in the pool */
    int32_t rank;    /* of its entity, 0 is best */
} search_item;

typedef struct search_node {
    uint32_t begin, end;   /* rows of the table */
    uint32_t first, count; /* children */
    uint32_t character;    /* that leads to it; 0: the end of a text */
} search_node;

typedef struct search_table {
    const char *pool;
    uint32_t count;
    uint32_t *offsets; /* (count), by text */
    int32_t *ranks;    /* (count) */
    uint64_t *keys;    /* (count) the first bytes, so that most rows are decided without their text */
    int32_t *least;    /* (2 width) the smallest rank of blocks, as a binary tree; 1 is its root */
    uint32_t width;    /* leaves */
    search_node *nodes;
    uint32_t node_count;
} search_table;

/* The best ranks so far, without those that earlier classes gave. */
typedef struct search_top {
    int32_t ranks[SEARCH_LIMIT + 1], found[SEARCH_LIMIT + 1];
    int32_t count, found_count, wanted;
} search_top;

/* Sorts `items` and takes what the table needs of them; `pool` is borrowed for the table's life. */
bool search_table_make(search_table *out, const char *pool, search_item *items, uint32_t count);
void search_table_free(search_table *table);

/* Add the rows whose text is, begins with, or begins within `edits` edits of what was typed. */
void search_table_equal(search_top *top, const search_table *table, const char *text);
void search_table_prefix(search_top *top, const search_table *table, const char *text);
void search_table_fuzzy(search_top *top, const search_table *table, const char *text, int edits);

#endif
