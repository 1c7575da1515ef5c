/* What an answer's score is made of: what each component adds to the answers of a query. A new component
 * is a table of these functions, named in predict.c. */
#ifndef VLP_RUN_EXPLAIN_H
#define VLP_RUN_EXPLAIN_H

#include "run/candidates.h"

/* One call of predict or explain. */
typedef struct vlp_answering {
    vlp_run *run;
    vlp_predictor *predictor;
    const vlp_filter *known;
    vlp_predict_options options;
    const vlp_query *queries;
    const int32_t *given;       /* the answers to explain, NULL: the best are wanted */
    vlp_answers *items;         /* of all queries */
    int64_t answer_count;       /* entities that may be answers where nothing is restricted */
    vlp_candidates *candidates; /* NULL: every entity may be an answer. Made for the last batch */
} vlp_answering;

typedef struct vlp_component_explanation {
    /* Explains the predictions of items[start .. start + count), the last batch of the predictor. Called
     * whether the run has the component or not. */
    vlp_status (*explain)(vlp_answering *work, int64_t start, int64_t count);
    /* Frees what `explain` left in the answers of a query. */
    void (*release)(const vlp_answers *answers);
} vlp_component_explanation;

/* VLP_ERROR_ARGUMENT for ids out of range; given: (count) answers, or NULL. For callers that are inside.
 */
vlp_status vlp_check_queries(const vlp_run *run, const vlp_query *queries, const int32_t *given,
                             int64_t count);

/* References, and with options.explain their contributions. */
extern const vlp_component_explanation vlp_vertical_explanation;
/* With options.explain, paths and the triples that an answer rests on. */
extern const vlp_component_explanation vlp_path_explanation;

#endif
