/* What an answer of the path component rests on: the paths that carry it, and a smallest set of known
 * triples without which it falls from its rank.
 *
 * The set is found by taking triples out of the graph and scoring again. Candidates are the triples of
 * the best paths, and those whose gradients hold the answer above the entity that is next to pass it.
 * Every candidate is tried alone. While no set
 * makes the answer fall, those that cost it most are kept; for each, gradients and paths are computed
 * again over the graph that is left, and its new candidates are tried beside it. At last every triple
 * that can be put back is put back. */
#ifndef VLP_RUN_WITHOUT_H
#define VLP_RUN_WITHOUT_H

#include "eval/removal.h"
#include "run/path_search.h"

enum { VLP_SUPPORT_MAX = 4 }; /* triples of a set */

typedef struct vlp_carried {
    vlp_found_path paths[VLP_MAX_PATHS];
    int32_t path_count;
    vlp_removal_result before;
    /* Empty where no set that was tried, of at most VLP_SUPPORT_MAX triples, makes the answer fall. */
    vlp_removed_set set;
    vlp_removal_result after; /* without the set */
    int32_t scorings;         /* of the answer, over a graph without some triples */
} vlp_carried;

/* Working memory; `removal` and `graph` are borrowed. */
typedef struct vlp_without vlp_without;
vlp_status vlp_without_open(vlp_without **out, vlp_removal *removal, const vlp_graph *graph,
                            int32_t layers);
void vlp_without_close(vlp_without *work);

/* `paths`: how many are wanted, at most VLP_MAX_PATHS. Deterministic. */
vlp_status vlp_without_find(vlp_carried *out, vlp_without *work, const vlp_removal_answer *answer,
                            int32_t paths);

#endif
