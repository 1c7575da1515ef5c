/* The best answers of queries and what each reference brings to them. Works a batch at a time over tiles
 * of entities, so that its memory depends on neither the number of queries nor that of entities. */
#ifndef VLP_EVAL_PREDICTOR_H
#define VLP_EVAL_PREDICTOR_H

#include "eval/scorer.h"

typedef struct vlp_predictor_options {
    const vlp_model *model;
    const vlp_graph *graph;   /* where references come from, and what paths are read over */
    const vlp_graph *trained; /* as in vlp_scorer_options */
    const uint8_t *only;      /* (entities) the entities that may be among the best answers; NULL: all */
    vlp_mixture mixture;
    int32_t references, references_per_head;
    vlp_reference_rule references_rule;
    int32_t threads;
} vlp_predictor_options;

typedef struct vlp_predictor vlp_predictor;
vlp_status vlp_predictor_new(vlp_predictor **out, const vlp_predictor_options *options);
void vlp_predictor_free(vlp_predictor *predictor);
/* What it was opened with. */
const vlp_predictor_options *vlp_predictor_opened(const vlp_predictor *predictor);
/* The components of its scores, as bits. */
unsigned vlp_predictor_components(const vlp_predictor *predictor);
/* The maximum number of queries of a call. */
int32_t vlp_predictor_batch(const vlp_predictor *predictor);

/* Candidates: distinct entities in ascending order, at least one. */
typedef struct vlp_candidate_list {
    const int32_t *entities;
    int64_t count;
} vlp_candidate_list;

/* The best `wanted` answers of each query, those that `excluded` (NULL: none) knows left out. Only
 * entities of `among` are scored; NULL: all that the options allow. */
vlp_status vlp_predictor_top(vlp_predictor *predictor, const vlp_query *queries, int64_t count,
                             int32_t wanted, const vlp_filter *excluded, const vlp_candidate_list *among,
                             const vlp_observer *observer);
/* Of query `index` of the last vlp_predictor_top, best first. */
const vlp_top *vlp_predictor_answers(const vlp_predictor *predictor, int64_t index, int32_t *count);

/* out[i]: the scores of queries[i] with entities[i]. */
vlp_status vlp_predictor_score(vlp_top *out, vlp_predictor *predictor, const vlp_query *queries,
                               const int32_t *entities, int64_t count);

/* The scores of one query with candidates first .. first + count - 1 of a list, by component: scores[c]
 * is NULL where the model does not have it. Several threads call it, one query each at a time; the
 * candidates of a query come in their order. */
typedef void (*vlp_score_reader)(void *user, int64_t query, int64_t first, int32_t count,
                                 const float *const scores[VLP_MAX_COMPONENTS]);
/* Hands all scores of queries with the candidates to `read`. Any number of queries. */
vlp_status vlp_predictor_read(vlp_predictor *predictor, const vlp_query *queries, int64_t count,
                              const vlp_candidate_list *among, vlp_score_reader read, void *user,
                              const vlp_observer *observer);

/* The references of the last queries of either call; NULL where the model looks for none. */
const vlp_references *vlp_predictor_references(const vlp_predictor *predictor);

/* A query with answers to explain. */
typedef struct vlp_explained {
    vlp_query query;
    const vlp_answer_reference *references;
    int32_t reference_count;
    const int32_t *answers;
    int32_t answer_count;
    double *contributions; /* (answer_count, reference_count), set: f with all references less f without
                              this one */
} vlp_explained;
/* Any number of them. Spoils what the last vlp_predictor_top left. */
vlp_status vlp_predictor_contributions(vlp_predictor *predictor, const vlp_explained *items,
                                       int64_t count, const vlp_observer *observer);

#endif
