/* The scores of a batch of queries in parts, for those who do not want all entities at once. See
 * evaluate.h for the simple way. */
#ifndef VLP_EVAL_SCORER_H
#define VLP_EVAL_SCORER_H

#include "eval/evaluate.h"

typedef struct vlp_scorer_options {
    const vlp_model *model;
    const vlp_graph *graph;                  /* where references come from; in the model's numbers */
    int32_t references, references_per_head; /* as the head was trained */
    int32_t batch;                           /* queries at a time */
    int32_t columns;                         /* entities at a time */
    int32_t threads;
} vlp_scorer_options;
vlp_status vlp_scorer_open(vlp_scorer **out, const vlp_scorer_options *options);

/* Makes q and t' of the queries; count <= batch. References are looked for in the graph, or `given`:
 * host arrays (count, references) in the scorer's width. */
vlp_status vlp_scorer_prepare(vlp_scorer *scorer, const vlp_query *queries, int64_t count,
                              const vlp_reference_batch *given);
/* The same in two halves. The first is the host's, and may be done while the backend is still busy with
 * what was asked of the queries before; the second tells the backend. */
vlp_status vlp_scorer_look(vlp_scorer *scorer, const vlp_query *queries, int64_t count,
                           const vlp_reference_batch *given);
vlp_status vlp_scorer_make(vlp_scorer *scorer, int64_t count);
/* What was found for the queries of the last vlp_scorer_look; NULL where nothing was looked for. */
const vlp_references *vlp_scorer_found(const vlp_scorer *scorer);

/* Scores (count, columns) of the prepared queries with entities first .. first + columns - 1, borrowed
 * arrays on the backend. `vertical` (NULL without a head) has still to be multiplied by the inverse norm
 * of each entity, (entities) on the backend: whoever reads the scores next does so in passing. */
vlp_status vlp_scorer_columns(const float **horizontal, const float **vertical, vlp_scorer *scorer,
                              int64_t count, int32_t first, int32_t columns);
const float *vlp_scorer_inverse_norms(const vlp_scorer *scorer);

/* What a ranking of the prepared queries among all entities has to know of them: all but answers, filter
 * and mixtures. f_c is made, f_g is not yet. For scorers of as many columns as there are entities. */
void vlp_scorer_ranked(vlp_ranked *out, vlp_scorer *scorer, int64_t count);

/* Scores (count, width) of the prepared queries with entities of their own, -1 for none; host arrays,
 * either may be NULL. Without a head `vertical` is left as it is. */
vlp_status vlp_scorer_pairs(float *horizontal, float *vertical, vlp_scorer *scorer,
                            const int32_t *entities, int64_t count, int32_t width);

#endif
