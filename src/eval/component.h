/* How a component scores: what the scorer (eval/scorer.h) asks of it. A new component is a table of
 * these functions, named in scorer.c. */
#ifndef VLP_EVAL_COMPONENT_H
#define VLP_EVAL_COMPONENT_H

#include "graph/reference.h"
#include "model/model.h"

typedef struct vlp_scorer_options {
    const vlp_model *model;
    const vlp_graph *graph;   /* where references come from, and what paths are read over; in the model's
                                 ids */
    const vlp_graph *trained; /* what the model was trained on, whose mean degree is a constant of the
                                 path component; NULL: `graph` */
    int32_t references, references_per_head; /* as the aggregator was trained */
    vlp_reference_rule references_rule;      /* likewise */
    int32_t batch;                           /* queries at a time */
    int32_t columns;                         /* entities at a time */
    int32_t threads;
} vlp_scorer_options;

/* Queries that all components read, on the backend. */
typedef struct vlp_prepared {
    int64_t count;
    const int32_t *heads, *relations; /* (count) */
    const float *head_rows, *q; /* (count, d_e), (count, d_q); NULL in a model without embeddings */
} vlp_prepared;

/* Entities of their own for prepared queries. */
typedef struct vlp_scored_pairs {
    int32_t width;           /* entities per query */
    const int32_t *entities; /* (count, width) on the host; -1: masked */
    const int32_t *ids;      /* the same on the backend */
    float *scores;           /* (count, width) on the backend, to be used at will */
} vlp_scored_pairs;

/* `state` is what `open` returned. Optional functions may be NULL. */
typedef struct vlp_component_scoring {
    /* A score depends on the entity's embedding alone: entities with the same row have the same. */
    bool by_row;
    /* int32s per query that go to the backend along with the queries; optional: none. */
    int32_t (*ids)(const vlp_scorer_options *options);
    vlp_status (*open)(void **state, const vlp_scorer_options *options);
    void (*close)(void *state);
    /* The host's work for queries, written to `ids`; it may run while the backend is still busy with the
     * queries before. Optional. */
    vlp_status (*find)(void *state, int32_t *ids, const vlp_query *queries, int64_t count);
    /* The backend's work for queries, before any score. Components are prepared in their order.
     * Optional. */
    vlp_status (*prepare)(void *state, const vlp_prepared *queries, const int32_t *ids);
    /* The scores of entities first .. first + columns - 1; borrowed until the next call. */
    vlp_status (*columns)(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                          int32_t first, int32_t columns);
    /* The scores of given entities, in their order: ids (columns) on the backend, at most as many as the
     * scorer's columns. Borrowed until the next call. */
    vlp_status (*listed)(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                         const int32_t *ids, int32_t columns);
    /* The scores of all entities, (count, entities), with nothing left to multiply. For scorers of as
     * many columns as there are entities. */
    vlp_status (*all)(const float **out, void *state, const vlp_prepared *queries);
    /* In place of `all`: leaves the scores to be computed by a ranking. Optional. */
    void (*rank)(vlp_ranked *out, void *state, const vlp_prepared *queries);
    /* out (count, width) on the host. */
    vlp_status (*pairs)(float *out, void *state, const vlp_prepared *queries,
                        const vlp_scored_pairs *pairs);
} vlp_component_scoring;

extern const vlp_component_scoring vlp_horizontal_scoring, vlp_vertical_scoring, vlp_path_scoring;

/* ---- Of the vertical component alone ---- */

/* The references of the queries of the last `find`; NULL where none were looked for. */
const vlp_references *vlp_vertical_found(const void *state);
/* Takes given references (host arrays, as many per query as the scorer's) in place of those found. */
void vlp_vertical_give(void *state, int32_t *ids, const vlp_reference_batch *references, int64_t count);

/* ---- Of the path component alone ---- */

/* Takes triples[offset[i] .. offset[i + 1]) out of the graph of query i of the last `find`, in place of
 * what the query itself leaves out. ids: what `find` wrote. Host arrays, copied. */
vlp_status vlp_path_remove(void *state, int32_t *ids, const int64_t *offset, const int32_t *triples,
                           int64_t count);

/* An answer, over the graph without some triples (host array; the query's own left_out is not read). */
typedef struct vlp_explained_answer {
    vlp_query query;
    int32_t answer;
    const int32_t *removed;
    int32_t removed_count;
} vlp_explained_answer;
/* out (layers, 2 triples) on the host: the derivative of f_p with respect to a factor of the message
 * through each slot of the graph in each layer (vlp_path_operations). Ends the last `find`. */
vlp_status vlp_path_messages(void *state, float *out, const vlp_explained_answer *of);

#endif
