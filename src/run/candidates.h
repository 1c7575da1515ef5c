/* Which entities may be answers: vlp_candidate_options of vlp.h, resolved against a run's graph. */
#ifndef VLP_RUN_CANDIDATES_H
#define VLP_RUN_CANDIDATES_H

#include "graph/places.h"
#include "run/run_internal.h"

typedef struct vlp_candidates {
    const vlp_graph *graph;
    uint8_t *allowed;   /* (entities) that meet all restrictions but `seen` */
    vlp_places *places; /* of the graph, with `seen`; else NULL */
    int32_t relation;   /* that the list was made for; -1: none yet */
    int32_t *entities;  /* (entities) the list, ascending, and its marks */
    uint8_t *marks;     /* (entities) */
    int64_t count;
} vlp_candidates;

/* *out is NULL where nothing is restricted. `known`: what conditions are looked up in.
 * VLP_ERROR_ARGUMENT where no entity is left, with the restriction that left none. For callers that are
 * inside. */
vlp_status vlp_candidates_open(vlp_candidates **out, const vlp_run *run, const vlp_filter *known,
                               const vlp_candidate_options *given);
void vlp_candidates_free(vlp_candidates *candidates);

/* Makes the list of the answers of queries (e, relation, ?). It may be empty with `seen`. */
vlp_candidate_list vlp_candidates_of(vlp_candidates *candidates, int32_t relation);

#endif
