/* A baseline for graphs of new entities: personalised PageRank, which reads the graph and no relation.
 */
#ifndef VLP_EVAL_PAGERANK_H
#define VLP_EVAL_PAGERANK_H

#include "eval/metrics.h"
#include "graph/dataset.h"

/* At every step a walk returns to its source with probability VLP_PAGERANK_RESTART, and else follows one
 * of the edges of its node, each with the same chance: both directions of all triples. At a node without
 * edges it returns. The iteration ends when a step changes the probabilities by less than
 * VLP_PAGERANK_TOLERANCE in all (L1 norm). */
#define VLP_PAGERANK_RESTART 0.15
#define VLP_PAGERANK_TOLERANCE 1e-9

/* out (count, graph->entities): the probabilities of where the walk from sources[i] is. */
vlp_status vlp_pagerank(double *out, const vlp_graph *graph, const int32_t *sources, int64_t count,
                        int32_t threads);

/* Ranks of all queries of a split (2 * triples, as vlp_ranking has them), when candidates are scored by
 * PageRank from the query's entity over train, which itself scores 0. `only` as in vlp_ranking_options.
 */
vlp_status vlp_baseline_pagerank(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                                 const vlp_filter *filter, const uint8_t *only,
                                 const vlp_observer *observer);

#endif
