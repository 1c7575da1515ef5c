/* The training graph as compressed sparse rows, in both directions. A triple (h, r, t) is a slot (r,
 * t) in h's row and a slot (r + relations, h) in t's; a loop is two slots of one row. */
#ifndef VLP_GRAPH_GRAPH_H
#define VLP_GRAPH_GRAPH_H

#include "base/base.h"

typedef struct vlp_graph {
    int32_t entities;
    int32_t relations;         /* without the inverse ones */
    int64_t edges;             /* distinct triples */
    const vlp_triple *triples; /* (edges), borrowed, in the order of the file */
    int64_t *offset;           /* (entities + 1) into the slots */
    /* (2 * edges) slots, sorted by row, then relation, then edge */
    int32_t *neighbor;
    int32_t *relation;
    int32_t *edge;
} vlp_graph;

/* `triples` contains no repeated triples and must outlive the graph. */
vlp_status vlp_graph_new(vlp_graph **out, const vlp_triple *triples, int64_t count, int32_t entities,
                         int32_t relations, int32_t threads);
void vlp_graph_free(vlp_graph *graph);
int64_t vlp_graph_bytes(const vlp_graph *graph);

static inline int64_t vlp_graph_degree(const vlp_graph *graph, int32_t node) {
    return graph->offset[node + 1] - graph->offset[node];
}

/* The slots of `node` with `relation` (0 .. 2 * relations - 1): first, and how many. */
int64_t vlp_graph_slots(const vlp_graph *graph, int32_t node, int32_t relation, int64_t *count);

/* Answers of (entity, relation) in lists of triples, which may repeat: see vlp_filter in vlp.h. */
vlp_status vlp_filter_build(vlp_filter **out, const vlp_triple *const *lists, const int64_t *counts,
                            int list_count, int32_t entities, int32_t relations, int32_t threads);

/* The concatenated answers of all queries, into which vlp_filter_answers points. */
const int32_t *vlp_filter_list(const vlp_filter *filter, int64_t *count);

#endif
