/* What needs no learning: the answers a relation has most often, and the answers of the references. A
 * model that does not beat them has learned nothing. */
#ifndef VLP_EVAL_BASELINES_H
#define VLP_EVAL_BASELINES_H

#include "eval/metrics.h"
#include "graph/dataset.h"

/* Ranks of all queries of a split (2 * triples, as vlp_ranking has them), when candidates are scored by
 * how often train has them as answers of the relation, read in the query's direction. `only` as in
 * vlp_ranking_options. */
vlp_status vlp_baseline_frequency(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                                  const vlp_filter *filter, const uint8_t *only);

/* The same when they are scored by how many of the query's references have them as answer. */
vlp_status vlp_baseline_vote(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                             const vlp_filter *filter, const uint8_t *only, int32_t references,
                             int32_t per_head, int32_t threads);

#endif
