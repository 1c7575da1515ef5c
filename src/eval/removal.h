/* An answer's score and rank over the graph without some of its triples: what explanations of the path
 * component are checked with, and vlp_run_what_if.
 *
 * f_p reads the graph that is left. f_c loses the references that are taken out, and no others take
 * their place. f_g does not depend on the graph. */
#ifndef VLP_EVAL_REMOVAL_H
#define VLP_EVAL_REMOVAL_H

#include "eval/predictor.h"

enum { VLP_REMOVAL_MAX = VLP_MAX_REMOVED }; /* triples that are taken out at a time */

/* Triples of the graph, in any order. */
typedef struct vlp_removed_set {
    int32_t triples[VLP_REMOVAL_MAX];
    int32_t count;
} vlp_removed_set;

typedef struct vlp_removal_answer {
    vlp_query query;
    int32_t answer;
    const vlp_filter *known; /* whose answers do not compete; NULL: all do */
    vlp_mixture mixture;     /* of f */
} vlp_removal_answer;

/* The answer without a set. */
typedef struct vlp_removal_result {
    double rank;                      /* filtered, realistic */
    double score;                     /* f */
    double parts[VLP_MAX_COMPONENTS]; /* f_g, f_c, f_p; NaN where the model does not have it */
    double margin; /* f less that of the competitor that has to pass it for its rank to fall; infinite
                      without one */
    int32_t competitor; /* that entity, or -1 */
} vlp_removal_result;

/* `batch`: how many sets are scored at once, at most. */
typedef struct vlp_removal vlp_removal;
vlp_status vlp_removal_open(vlp_removal **out, const vlp_predictor_options *options, int32_t batch);
void vlp_removal_close(vlp_removal *removal);

/* The answer to examine; `out`: with nothing taken out but what the query leaves out. */
vlp_status vlp_removal_begin(vlp_removal_result *out, vlp_removal *removal,
                             const vlp_removal_answer *answer);
/* out[i]: without sets[i]. Any number of sets. */
vlp_status vlp_removal_try(vlp_removal_result *out, vlp_removal *removal, const vlp_removed_set *sets,
                           int32_t count);
/* The gradients of the messages of an answer to the query (vlp_scorer_messages) without a set: (layers,
 * 2 triples), borrowed until the next call. For models with the path component. */
vlp_status vlp_removal_messages(const float **out, vlp_removal *removal, const vlp_removed_set *set,
                                int32_t answer);

/* Whether a rank is worse than it was. */
static inline bool vlp_removal_falls(const vlp_removal_result *before, const vlp_removal_result *after) {
    return after->rank > before->rank;
}

#endif
