/* The references of the training queries of one step at a time: found when the step needs them, or in a
 * thread while the step before it runs. They are those that a search for all training queries gives. */
#ifndef VLP_LEARN_BATCH_REFERENCES_H
#define VLP_LEARN_BATCH_REFERENCES_H

#include "graph/reference.h"

typedef struct vlp_batch_references vlp_batch_references;

/* `graph` outlives the object. `ahead`: a thread searches for the next step. */
vlp_status vlp_batch_references_new(vlp_batch_references **out, const vlp_graph *graph,
                                    const vlp_reference_options *options, uint64_t seed, int32_t batch,
                                    bool ahead);
void vlp_batch_references_free(vlp_batch_references *references);
/* Before the first search: see vlp_reference_finder_set. */
vlp_status vlp_batch_references_set(vlp_batch_references *references, const vlp_reference_rule *rule);

/* The references of the batch of a step: *out (batch, options->count), counts (batch). They are valid
 * until the next call. Steps may come in any order; the next one is the cheapest with `ahead`. */
vlp_status vlp_batch_references_get(const vlp_reference **out, const int32_t **counts,
                                    vlp_batch_references *references, int64_t step);

/* About how long a search for all training queries would take, in seconds, by a few of them. */
vlp_status vlp_batch_references_time(double *seconds, vlp_batch_references *references);

#endif
