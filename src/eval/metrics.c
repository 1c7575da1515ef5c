/* Figures from rank counts: means, breakdowns, intervals, kinds of relations, average precision.
 *
 * Every sum runs in the order of the queries (or of the draws) in one thread, so that a figure does not
 * depend on how many threads there are; only the rounds of the bootstrap, which do not know each other,
 * are shared out. */
#include "eval/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

/* ---- Means --------------------------------------------------------------------------------------- */

/* Sums over queries. Ranks are multiples of a half, so that all but `reciprocal` are exact. */
typedef struct tally {
    int64_t queries, hits1, hits3, hits10;
    double reciprocal; /* of 1 / rank */
    double beyond;     /* of rank - 1 */
    double expected;   /* of what rank - 1 would be on average in a random order */
} tally;

static void tally_add(tally *sums, vlp_rank rank, vlp_rank_kind kind) {
    double value = vlp_rank_value(rank, kind);
    sums->queries++;
    sums->hits1 += value <= 1.0;
    sums->hits3 += value <= 3.0;
    sums->hits10 += value <= 10.0;
    sums->reciprocal += 1.0 / value;
    sums->beyond += value - 1.0;
    sums->expected += ((double)rank.candidates - 1.0) / 2.0;
}

static vlp_metrics tally_metrics(const tally *sums) {
    if (sums->queries == 0) return (vlp_metrics){0, NAN, NAN, NAN, NAN, NAN, NAN};
    double queries = (double)sums->queries;
    return (vlp_metrics){
        .queries = sums->queries,
        .mrr = sums->reciprocal / queries,
        .mr = (sums->beyond + queries) / queries,
        /* Where no query has a second candidate there is no order to be judged. */
        .amri = sums->expected > 0.0 ? 1.0 - sums->beyond / sums->expected : NAN,
        .hits1 = (double)sums->hits1 / queries,
        .hits3 = (double)sums->hits3 / queries,
        .hits10 = (double)sums->hits10 / queries,
    };
}

vlp_metrics vlp_metrics_compute(const vlp_rank *ranks, int64_t count, vlp_rank_kind kind,
                                const uint8_t *selected) {
    tally sums = {0};
    for (int64_t i = 0; i < count; i++)
        if (!selected || selected[i]) tally_add(&sums, ranks[i], kind);
    return tally_metrics(&sums);
}

/* ---- Among random candidates --------------------------------------------------------------------- */

static double log_choose(int64_t from, int64_t chosen) {
    int sign;
    return lgamma_r((double)from + 1, &sign) - lgamma_r((double)chosen + 1, &sign) -
           lgamma_r((double)(from - chosen) + 1, &sign);
}

double vlp_rank_hits_among(vlp_rank rank, int32_t hits, int32_t drawn) {
    int64_t others = (int64_t)rank.candidates - 1, above = rank.above, equal = rank.equal;
    int64_t below = others - above - equal;
    if (drawn >= others) return vlp_rank_value(rank, VLP_REALISTIC) <= (double)hits;
    double all = log_choose(others, drawn), sum = 0;
    for (int64_t a = 0; a <= above && a <= drawn && a < hits; a++)
        for (int64_t b = 0; b <= equal && a + b <= drawn && 2 * a + b <= 2 * ((int64_t)hits - 1); b++) {
            int64_t c = drawn - a - b;
            if (c > below) continue;
            sum += exp(log_choose(above, a) + log_choose(equal, b) + log_choose(below, c) - all);
        }
    return sum < 1 ? sum : 1;
}

/* ---- Breakdowns ---------------------------------------------------------------------------------- */

/* The value a query is grouped by. Without a sign, -1 (no path) comes behind every distance. */
static uint32_t group_key(const vlp_query_kind *kind, vlp_breakdown by) {
    switch (by) {
    case VLP_BREAKDOWN_RELATION:
        return (uint32_t)kind->relation;
    case VLP_BREAKDOWN_SIDE:
        return (uint32_t)kind->side;
    case VLP_BREAKDOWN_MAPPING:
        return (uint32_t)kind->mapping;
    case VLP_BREAKDOWN_DISTANCE:
        break;
    }
    return (uint32_t)kind->distance;
}

static int compare_keys(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Sorts keys and leaves each once; returns how many are left. */
static int64_t sort_unique(uint32_t *keys, int64_t count) {
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || keys[i] != keys[kept - 1]) keys[kept++] = keys[i];
    return kept;
}

vlp_status vlp_groups_compute(vlp_groups *out, const vlp_rank *ranks, const vlp_query_kind *kinds,
                              int64_t count, vlp_breakdown by) {
    *out = (vlp_groups){NULL, 0};
    vlp_status status = VLP_OK;
    vlp_group *items = NULL;
    tally *sums = NULL;
    uint32_t *keys = vlp_alloc((size_t)count, sizeof *keys);
    if (!keys) {
        status = vlp_fail_memory("a breakdown");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) keys[i] = group_key(&kinds[i], by);
    int64_t groups = sort_unique(keys, count);
    sums = vlp_alloc_zero((size_t)groups, sizeof *sums);
    items = vlp_alloc((size_t)groups, sizeof *items);
    if (!sums || !items) {
        status = vlp_fail_memory("a breakdown");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t key = group_key(&kinds[i], by);
        const uint32_t *found = bsearch(&key, keys, (size_t)groups, sizeof *keys, compare_keys);
        assert(found);
        tally_add(&sums[found - keys], ranks[i], VLP_REALISTIC);
    }
    for (int64_t i = 0; i < groups; i++) {
        items[i] = (vlp_group){.value = (int32_t)keys[i], .metrics = tally_metrics(&sums[i])};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++) items[i].alone[c] = NAN;
    }
    *out = (vlp_groups){items, groups};
    items = NULL;
out:
    vlp_free(items);
    vlp_free(sums);
    vlp_free(keys);
    return status;
}

void vlp_groups_free(vlp_groups *groups) {
    if (!groups) return;
    vlp_free(groups->items);
    *groups = (vlp_groups){NULL, 0};
}

vlp_status vlp_metrics_macro_mrr(double *out, const vlp_rank *ranks, const vlp_query_kind *kinds,
                                 int64_t count) {
    vlp_groups relations;
    VLP_TRY(vlp_groups_compute(&relations, ranks, kinds, count, VLP_BREAKDOWN_RELATION));
    double sum = 0.0;
    for (int64_t i = 0; i < relations.count; i++) sum += relations.items[i].metrics.mrr;
    *out = relations.count > 0 ? sum / (double)relations.count : NAN;
    vlp_groups_free(&relations);
    return VLP_OK;
}

/* ---- Bootstrap ----------------------------------------------------------------------------------- */

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* What a triple adds to twice the MRR of all: its two queries together. */
static double triple_gain(const vlp_rank *ranks, int64_t triple, int64_t triples) {
    return 1.0 / vlp_rank_value(ranks[triple], VLP_REALISTIC) +
           1.0 / vlp_rank_value(ranks[triple + triples], VLP_REALISTIC);
}

/* The figure of as many triples as there are, drawn with replacement. One call of the generator gives
 * two draws. */
static double resampled(const double *gains, int64_t triples, uint64_t seed, int32_t round) {
    double sum = 0.0;
    for (int64_t i = 0; i < triples; i += 2) {
        vlp_random4 bits = vlp_random(seed, VLP_STREAM_BOOTSTRAP, (uint64_t)round, (uint32_t)(i / 2));
        sum += gains[vlp_random_below(bits.v[0], bits.v[1], (uint32_t)triples)];
        if (i + 1 < triples) sum += gains[vlp_random_below(bits.v[2], bits.v[3], (uint32_t)triples)];
    }
    return sum / (2.0 * (double)triples);
}

/* The value below which a share of the sorted values lies, between two of them where it falls there. */
static double quantile(const double *sorted, int32_t count, double share) {
    double place = share * (double)(count - 1);
    int32_t below = (int32_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (place - (double)below);
}

/* `middle` is the figure itself, not the rounds' median: reports print it beside the very same MRR.
 * gains: (triples), the sum over the two queries of each. */
static vlp_status bootstrap(vlp_interval *out, const double *gains, int64_t triples, int32_t rounds,
                            uint64_t seed, int32_t threads) {
    assert(triples <= (int64_t)UINT32_MAX);
    if (rounds < 1) return vlp_fail(VLP_ERROR_ARGUMENT, "%d bootstrap rounds; it is 1 or more", rounds);
    if (triples == 0) {
        *out = (vlp_interval){NAN, NAN, NAN};
        return VLP_OK;
    }
    double *figures = vlp_alloc((size_t)rounds, sizeof *figures);
    if (!figures) return vlp_fail_memory("a bootstrap interval");
    double sum = 0.0;
    for (int64_t i = 0; i < triples; i++) sum += gains[i];
#pragma omp parallel for num_threads(vlp_thread_count(threads)) schedule(static)
    for (int32_t round = 0; round < rounds; round++)
        figures[round] = resampled(gains, triples, seed, round);
    qsort(figures, (size_t)rounds, sizeof *figures, compare_doubles);
    *out = (vlp_interval){
        .low = quantile(figures, rounds, 0.025),
        .middle = sum / (2.0 * (double)triples),
        .high = quantile(figures, rounds, 0.975),
    };
    vlp_free(figures);
    return VLP_OK;
}

vlp_status vlp_metrics_bootstrap(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                                 int64_t count, int32_t rounds, uint64_t seed, int32_t threads) {
    assert(count >= 0 && count % 2 == 0);
    int64_t triples = count / 2;
    double *gains = vlp_alloc((size_t)triples, sizeof *gains);
    if (!gains) return vlp_fail_memory("a bootstrap interval");
    for (int64_t i = 0; i < triples; i++) {
        gains[i] = triple_gain(first, i, triples);
        if (second) gains[i] = triple_gain(second, i, triples) - gains[i];
    }
    vlp_status status = bootstrap(out, gains, triples, rounds, seed, threads);
    vlp_free(gains);
    return status;
}

vlp_status vlp_metrics_bootstrap_mean(vlp_interval *out, const double *values, int64_t count,
                                      int32_t rounds, uint64_t seed, int32_t threads) {
    assert(count >= 0 && count % 2 == 0);
    int64_t triples = count / 2;
    double *gains = vlp_alloc((size_t)triples, sizeof *gains);
    if (!gains) return vlp_fail_memory("a bootstrap interval");
    for (int64_t i = 0; i < triples; i++) gains[i] = values[i] + values[i + triples];
    vlp_status status = bootstrap(out, gains, triples, rounds, seed, threads);
    vlp_free(gains);
    return status;
}

/* ---- Kinds of relations -------------------------------------------------------------------------- */

static int compare_pairs(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* How many values the keys have without their lowest `shift` bits; the keys are sorted. */
static int64_t distinct(const uint64_t *sorted, int64_t count, int shift) {
    int64_t values = count > 0;
    for (int64_t i = 1; i < count; i++) values += sorted[i] >> shift != sorted[i - 1] >> shift;
    return values;
}

/* The kind of one relation from its pairs of head (upper half) and tail. A triple that comes twice, as
 * in the union of splits, is one answer. The means are compared as whole numbers: 1.5 itself is many. */
static int8_t mapping_of(uint64_t *pairs, int64_t count) {
    if (count == 0) return 0;
    qsort(pairs, (size_t)count, sizeof *pairs, compare_pairs);
    int64_t triples = distinct(pairs, count, 0), heads = distinct(pairs, count, 32);
    for (int64_t i = 0; i < count; i++) pairs[i] = pairs[i] << 32 | pairs[i] >> 32;
    qsort(pairs, (size_t)count, sizeof *pairs, compare_pairs);
    int64_t tails = distinct(pairs, count, 32);
    bool many_tails = 2 * triples >= 3 * heads;
    bool many_heads = 2 * triples >= 3 * tails;
    return (int8_t)(2 * many_heads + many_tails);
}

vlp_status vlp_relation_mappings(int8_t *mapping, const vlp_triple *triples, int64_t count,
                                 int32_t relations) {
    vlp_status status = VLP_OK;
    int64_t *ends = vlp_alloc_zero((size_t)relations, sizeof *ends); /* of each relation's pairs */
    uint64_t *pairs = vlp_alloc((size_t)count, sizeof *pairs);       /* by relation */
    if (!ends || !pairs) {
        status = vlp_fail_memory("the kinds of relations");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) {
        assert(triples[i].relation >= 0 && triples[i].relation < relations);
        ends[triples[i].relation]++;
    }
    /* Counts become starts, and starts move to the ends as the pairs come in. */
    int64_t start = 0;
    for (int32_t r = 0; r < relations; r++) {
        int64_t size = ends[r];
        ends[r] = start;
        start += size;
    }
    for (int64_t i = 0; i < count; i++)
        pairs[ends[triples[i].relation]++] =
            (uint64_t)(uint32_t)triples[i].head << 32 | (uint32_t)triples[i].tail;
    start = 0;
    for (int32_t r = 0; r < relations; r++) {
        mapping[r] = mapping_of(pairs + start, ends[r] - start);
        start = ends[r];
    }
out:
    vlp_free(pairs);
    vlp_free(ends);
    return status;
}

/* ---- Average precision --------------------------------------------------------------------------- */

typedef struct judged {
    float score;
    bool truth;
} judged;

static int compare_checked(const void *left, const void *right) {
    float a = ((const judged *)left)->score, b = ((const judged *)right)->score;
    return (a < b) - (a > b);
}

/* The sum, over thresholds, of the recall that is gained there times the precision. */
vlp_status vlp_metrics_auc_pr(double *out, const float *scores, const uint8_t *truths, int64_t count) {
    vlp_status status = VLP_OK;
    judged *items = vlp_alloc((size_t)count, sizeof *items);
    if (!items) {
        status = vlp_fail_memory("a precision-recall curve");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) {
        if (isnan(scores[i])) {
            status = vlp_fail(VLP_ERROR_ARGUMENT, "score %lld is not a number", (long long)i);
            goto out;
        }
        items[i] = (judged){scores[i], truths[i] != 0};
    }
    qsort(items, (size_t)count, sizeof *items, compare_checked);
    double area = 0.0;
    int64_t found = 0;
    for (int64_t i = 0; i < count;) {
        int64_t before = found;
        float threshold = items[i].score;
        for (; i < count && items[i].score == threshold; i++) found += items[i].truth;
        area += (double)(found - before) * ((double)found / (double)i);
    }
    *out = found > 0 ? area / (double)found : NAN;
out:
    vlp_free(items);
    return status;
}
