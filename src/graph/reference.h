/* References: see vlp_reference_options in vlp.h, and docs/architecture.md for the algorithm. */
#ifndef VLP_GRAPH_REFERENCE_H
#define VLP_GRAPH_REFERENCE_H

#include "graph/graph.h"

/* The mass a walk starts with. Divisible by 1 .. 42, so that masses in small graphs are exact and
 * equal masses compare equal; twice the value fits in 63 bits. The mass of a node is divided by its
 * degree, rounded down, and every slot carries that share to the next level. */
#define VLP_WALK_UNIT UINT64_C(3504963035833459200)

/* Which edges of the relation become references. */
typedef enum vlp_reference_choice {
    VLP_REFERENCES_NEAREST = 0,    /* the nearest, ties by mass */
    VLP_REFERENCES_NEAREST_RANDOM, /* the nearest, ties at random */
    VLP_REFERENCES_RANDOM          /* any, all with the same probability; their distance is -1 */
} vlp_reference_choice;

/* What the public options leave out; all zero: the rule of vlp_reference_options. */
typedef struct vlp_reference_rule {
    int64_t edges; /* bounds the search of a query at hubs: a distance is looked at where the entities
                      that are nearer have at most `edges` edges together; 0: no limit */
    vlp_reference_choice choice; /* other than nearest: with options.per_head 0 */
    bool own_edge; /* the left-out triple counts for distances and masses; it is no reference still */
    uint64_t seed; /* of random choices, which depend on it and on the query alone */
} vlp_reference_rule;

/* The reusable state of the search, for repeated calls. */
typedef struct vlp_reference_finder vlp_reference_finder;
vlp_status vlp_reference_finder_new(vlp_reference_finder **out, const vlp_graph *graph,
                                    const vlp_reference_options *options);
void vlp_reference_finder_free(vlp_reference_finder *finder);
/* From the next call on; without it the rule is that of the options. */
vlp_status vlp_reference_finder_set(vlp_reference_finder *finder, const vlp_reference_rule *rule);
vlp_status vlp_reference_finder_find(vlp_references **out, vlp_reference_finder *finder,
                                     const vlp_query *queries, int64_t count);

/* As vlp_references_find, on a graph. */
vlp_status vlp_graph_references(vlp_references **out, const vlp_graph *graph, const vlp_query *queries,
                                int64_t count, const vlp_reference_options *options);
/* The same by another rule. */
vlp_status vlp_graph_references_by(vlp_references **out, const vlp_graph *graph,
                                   const vlp_query *queries, int64_t count,
                                   const vlp_reference_options *options, const vlp_reference_rule *rule);

/* The references of all queries, (queries, N); the first counts[i] of row i are valid. */
const vlp_reference *vlp_references_all(const vlp_references *references, const int32_t **counts);

#endif
