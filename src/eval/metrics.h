/* From rank counts to figures. A query's rank among the candidates is known by how many score above its
 * answer and how many score the same; everything else follows from these two numbers. */
#ifndef VLP_EVAL_METRICS_H
#define VLP_EVAL_METRICS_H

#include "base/base.h"

/* What one scoring gave one query. */
typedef struct vlp_rank {
    int32_t above;      /* candidates, after the filter, with a larger score than the answer */
    int32_t equal;      /* others with the same score */
    int32_t candidates; /* left after the filter, the answer included */
} vlp_rank;

/* optimistic = 1 + above, pessimistic = 1 + above + equal, realistic = their mean. */
typedef enum vlp_rank_kind { VLP_REALISTIC = 0, VLP_OPTIMISTIC, VLP_PESSIMISTIC } vlp_rank_kind;

static inline double vlp_rank_value(vlp_rank rank, vlp_rank_kind kind) {
    double half = kind == VLP_REALISTIC ? 0.5 : kind == VLP_PESSIMISTIC ? 1.0 : 0.0;
    return 1.0 + (double)rank.above + half * (double)rank.equal;
}

/* What a query is, for breakdowns. */
typedef struct vlp_query_kind {
    int32_t relation; /* without direction */
    int8_t side;      /* 0: the head entity was asked for, 1: the tail entity */
    int8_t mapping;   /* 0 1-1, 1 1-N, 2 N-1, 3 N-N */
    int32_t distance; /* between the query's entity and its answer; -1: no path */
} vlp_query_kind;

/* Metrics of the queries whose selected[i] is not 0 (NULL: all). NaN for MRR and the like when there is
 * none. AMRI = 1 - sum(rank - 1) / sum(E[rank] - 1), E[rank] = (candidates + 1) / 2. */
vlp_metrics vlp_metrics_compute(const vlp_rank *ranks, int64_t count, vlp_rank_kind kind,
                                const uint8_t *selected);

/* The expectation of a query's Hits@`hits` (realistic) where its answer competes with `drawn` of its
 * other candidates alone, drawn without replacement and with equal chances; with all of them where there
 * are no more. Exact: the draw holds a of those above and b of those equal with the probability of the
 * hypergeometric distribution, and is a hit where 1 + a + b / 2 <= hits. */
double vlp_rank_hits_among(vlp_rank rank, int32_t hits, int32_t drawn);

/* Breakdowns: one entry a value that occurs, ascending by value; for distances -1 (no path) last. */
typedef enum vlp_breakdown {
    VLP_BREAKDOWN_RELATION = 0,
    VLP_BREAKDOWN_SIDE,
    VLP_BREAKDOWN_MAPPING,
    VLP_BREAKDOWN_DISTANCE
} vlp_breakdown;
vlp_status vlp_groups_compute(vlp_groups *out, const vlp_rank *ranks, const vlp_query_kind *kinds,
                              int64_t count, vlp_breakdown by);
void vlp_groups_free(vlp_groups *groups);

/* The mean over relations of their MRR (realistic). */
vlp_status vlp_metrics_macro_mrr(double *out, const vlp_rank *ranks, const vlp_query_kind *kinds,
                                 int64_t count);

/* 95% interval, by a paired bootstrap over triples (the two queries of a triple stay together: query i
 * and query i + count / 2), of the MRR of `second` less that of `first`; second NULL: of the MRR itself.
 */
vlp_status vlp_metrics_bootstrap(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                                 int64_t count, int32_t rounds, uint64_t seed, int32_t threads);

/* The same interval of the mean of values[0 .. count), one for each query. */
vlp_status vlp_metrics_bootstrap_mean(vlp_interval *out, const double *values, int64_t count,
                                      int32_t rounds, uint64_t seed, int32_t threads);

/* The kinds of relations by mean answers a query: (tails a head, heads a tail) against 1.5, from the
 * triples given. mapping[r] as in vlp_query_kind, (relations). */
vlp_status vlp_relation_mappings(int8_t *mapping, const vlp_triple *triples, int64_t count,
                                 int32_t relations);

/* Area under the precision-recall curve (average precision) of scores with 0/1 truths; ties count as one
 * threshold. NaN when there is no truth of 1. */
vlp_status vlp_metrics_auc_pr(double *out, const float *scores, const uint8_t *truths, int64_t count);

#endif
