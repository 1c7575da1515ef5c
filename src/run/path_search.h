/* The chains of known triples that carry an answer's path score, from the gradients of its messages.
 *
 * The gradient of a message (vlp_path_operations) says how much the score depends on it, to first order.
 * Seen from the answer, an entity's state came from the messages that reached it in earlier layers, each
 * in proportion to the absolute value of its gradient: layer normalization lets the sign of a gradient
 * say little about what the score would be without the message. The weight of a chain is the product of
 * these proportions along it, summed over the layers that its messages may have had: a share, from 0 to
 * 1. A state may stay for some layers before it moves on. Chains visit no entity twice. */
#ifndef VLP_RUN_PATH_SEARCH_H
#define VLP_RUN_PATH_SEARCH_H

#include "compute/paths.h"
#include "graph/graph.h"

typedef struct vlp_found_path {
    double weight;
    int32_t length;
    int32_t slots[VLP_PATH_MAX_LAYERS]; /* from the head entity to the answer: through slot s of v's row
                                           its neighbor's message reached v */
} vlp_found_path;

typedef struct vlp_path_search {
    const vlp_graph *graph;
    int32_t layers;
    const float *messages; /* (layers, 2 graph->edges) */
    int32_t head, answer;
} vlp_path_search;

/* The best chains, best first; at most `wanted` of them. Returns their number in *count. */
vlp_status vlp_paths_find(vlp_found_path *out, int32_t *count, const vlp_path_search *search,
                          int32_t wanted);

/* Adds to total (edges) the gradients of each triple, summed over layers and directions, times `weight`.
 */
void vlp_paths_total(double *total, const vlp_path_search *search, double weight);

#endif
