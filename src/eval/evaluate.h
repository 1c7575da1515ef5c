/* Ranking the answers of a split: every triple gives two queries, every entity is a candidate, known
 * answers are filtered. Memory is bounded by a batch. Nothing that is derived from an answer reaches a
 * score: answers are read after the scores are computed. */
#ifndef VLP_EVAL_EVALUATE_H
#define VLP_EVAL_EVALUATE_H

#include "eval/metrics.h"
#include "eval/mixture.h"
#include "graph/dataset.h"
#include "graph/reference.h"
#include "model/model.h"

typedef struct vlp_ranking_options {
    vlp_split split;
    unsigned filter;         /* bits of the splits whose answers are filtered */
    const vlp_filter *known; /* what to filter by instead; NULL: a filter of `filter` is made */
    vlp_sides sides;
    const uint8_t *only;  /* (entities) the candidates that compete, NULL: all */
    int64_t most_triples; /* of the split, spread over it; 0: all */
    bool collect;         /* keep the scores of all candidates, by the first mixture */
    const vlp_mixture *mixtures;
    int32_t mixture_count;
    int32_t references, references_per_head; /* as the aggregator was trained */
    vlp_reference_rule references_rule;      /* likewise */
    const vlp_graph *trained;                /* as in vlp_scorer_options; NULL: train of the data set */
    int32_t threads;
    const vlp_observer *observer;
} vlp_ranking_options;

/* Query i < triples is (h, r, ?) of triple i, query triples + i is (?, r, t); with one side, there is
 * only its half. */
typedef struct vlp_ranking {
    int64_t first; /* of all 2 * triples queries, the index of the first one here */
    int64_t queries;
    int32_t mixtures;
    vlp_rank *ranks; /* (mixtures, queries) */
    /* With `collect`: every candidate that the filter left to a query, and whether it is the answer. */
    float *scores;
    uint8_t *truths;
    int64_t pairs;
} vlp_ranking;

/* Query number `index` of all 2 * triples that the options ask for. */
vlp_query vlp_ranking_query(int32_t *answer, const vlp_dataset *dataset,
                            const vlp_ranking_options *options, int64_t index);

vlp_status vlp_ranking_compute(vlp_ranking **out, const vlp_model *model, const vlp_dataset *dataset,
                               const vlp_ranking_options *options);
void vlp_ranking_free(vlp_ranking *ranking);
static inline const vlp_rank *vlp_ranking_of(const vlp_ranking *ranking, int32_t mixture) {
    return ranking->ranks + (int64_t)mixture * ranking->queries;
}

/* Side, relation, mapping and distance of every query of a split, for breakdowns. kinds: (queries). */
vlp_status vlp_query_kinds(vlp_query_kind *kinds, const vlp_dataset *dataset, vlp_split split,
                           int32_t threads);

#endif
