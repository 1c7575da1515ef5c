/* The scores of a batch of queries by the components of a model. Queries are found (host) and made
 * (backend); then scores are asked for, of a tile of entities, of all entities, or of given pairs. */
#ifndef VLP_EVAL_SCORER_H
#define VLP_EVAL_SCORER_H

#include "eval/component.h"

typedef struct vlp_scorer vlp_scorer;
vlp_status vlp_scorer_open(vlp_scorer **out, const vlp_scorer_options *options);
void vlp_scorer_free(vlp_scorer *scorer);

/* Prepares queries for all components; count is at most the scorer's batch. */
vlp_status vlp_scorer_prepare(vlp_scorer *scorer, const vlp_query *queries, int64_t count);
/* The same in two halves, for some components (bits). The first is the host's, and may run while the
 * backend is still busy with the queries before; the second starts the backend's work. */
vlp_status vlp_scorer_find(vlp_scorer *scorer, unsigned components, const vlp_query *queries,
                           int64_t count);
vlp_status vlp_scorer_make(vlp_scorer *scorer, unsigned components);

/* The references that the last vlp_scorer_find found; NULL where none were looked for. */
const vlp_references *vlp_scorer_references(const vlp_scorer *scorer);
/* Gives the vertical component the references of the queries of the last vlp_scorer_find, which did not
 * find any for it: host arrays of the scorer's capacity. For models that have it. */
void vlp_scorer_give_references(vlp_scorer *scorer, const vlp_reference_batch *references);
/* Takes triples[offset[i] .. offset[i + 1]) out of the graph that the path component reads for query i
 * of the last vlp_scorer_find, in place of its left-out triple. For models that have it. */
vlp_status vlp_scorer_remove(vlp_scorer *scorer, const int64_t *offset, const int32_t *triples);
/* The gradients of an answer's messages (vlp_path_messages). Ends the last vlp_scorer_find. */
vlp_status vlp_scorer_messages(float *out, vlp_scorer *scorer, const vlp_explained_answer *of);

/* The scores of the prepared queries with entities first .. first + columns - 1, borrowed until the next
 * call. */
vlp_status vlp_scorer_columns(vlp_score_tile *out, vlp_scorer *scorer, int32_t first, int32_t columns);

/* The same for the entities list[first .. first + columns) of the last vlp_scorer_list, which copies a
 * list from the host. The tile counts positions in the list. */
vlp_status vlp_scorer_list(vlp_scorer *scorer, const int32_t *list, int64_t count);
vlp_status vlp_scorer_listed(vlp_score_tile *out, vlp_scorer *scorer, int32_t first, int32_t columns);

/* For scorers of as many columns as there are entities: the scores with all of them, borrowed arrays
 * (count, entities) on the backend, NULL for components that the last vlp_scorer_make did not prepare;
 * and the part of a ranking that the scorer knows, which is all but answers, filter and mixtures. */
vlp_status vlp_scorer_all(const float *out[VLP_MAX_COMPONENTS], vlp_scorer *scorer);
vlp_status vlp_scorer_ranked(vlp_ranked *out, vlp_scorer *scorer);

/* out[c] (count, width): scores of the prepared queries with entities of their own (-1: masked), host
 * arrays. out[c] NULL: not wanted. */
vlp_status vlp_scorer_pairs(float *const out[VLP_MAX_COMPONENTS], vlp_scorer *scorer,
                            const int32_t *entities, int32_t width);

/* Whether entities with the same embedding have the same scores. */
bool vlp_scores_by_row(unsigned components);

#endif
