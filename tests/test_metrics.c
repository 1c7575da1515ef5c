/* Figures against their definitions, written down slowly: ranks by sorting scores, means by loops,
 * breakdowns by selecting, the bootstrap with the draws in an array, precision and recall threshold by
 * threshold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "eval/metrics.h"
#include "failing_allocator.h"
#include "oracle.h"
#include "support.h"

enum { SEED = 71, MOST = 400 };

static void expect_near(double value, double expected, double tolerance) {
    if (isnan(expected) ? isnan(value) : fabs(value - expected) <= tolerance) return;
    print_error("%.17g is not near %.17g\n", value, expected);
    fail();
}

/* A query with up to 60 candidates; ties are common. */
static vlp_rank random_rank(oracle_random *random) {
    int32_t candidates = 1 + oracle_below(random, 60);
    int32_t above = oracle_below(random, oracle_chance(random, 3) ? 1 : candidates);
    int32_t equal = oracle_chance(random, 2) ? 0 : oracle_below(random, candidates - above);
    return (vlp_rank){above, equal, candidates};
}

static void random_queries(vlp_rank *ranks, vlp_query_kind *kinds, int64_t count,
                           oracle_random *random) {
    int32_t relations = 1 + oracle_below(random, 20);
    for (int64_t i = 0; i < count; i++) {
        ranks[i] = random_rank(random);
        kinds[i] = (vlp_query_kind){
            .relation = oracle_below(random, relations) * 1000,
            .side = (int8_t)oracle_below(random, 2),
            .mapping = (int8_t)oracle_below(random, 4),
            .distance = oracle_below(random, 12) - 1,
        };
    }
}

/* ---- Ranks --------------------------------------------------------------------------------------- */

static int descending(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a < b) - (a > b);
}

/* The counts of an evaluation and the places in a sorted list are two ways to say the same. */
static void test_ranks(void **state) {
    (void)state;
    oracle_random random = {SEED, 0, 0};
    for (int round = 0; round < 500; round++) {
        float scores[64], sorted[64];
        bool known[64];
        int32_t entities = 1 + oracle_below(&random, 64), answer = oracle_below(&random, entities);
        int32_t values = 1 + oracle_below(&random, 40);
        for (int32_t i = 0; i < entities; i++) {
            scores[i] = (float)oracle_below(&random, values) - 7.5f;
            known[i] = i != answer && oracle_chance(&random, 4);
        }
        vlp_rank rank = {0, 0, 0};
        int32_t left = 0;
        for (int32_t i = 0; i < entities; i++) {
            if (known[i]) continue;
            sorted[left++] = scores[i];
            rank.candidates++;
            rank.above += scores[i] > scores[answer];
            rank.equal += i != answer && scores[i] == scores[answer];
        }
        qsort(sorted, (size_t)left, sizeof *sorted, descending);
        int32_t best = 0, worst = left - 1;
        while (sorted[best] != scores[answer]) best++;
        while (sorted[worst] != scores[answer]) worst--;
        assert_int_equal(rank.candidates, left);
        assert_true(vlp_rank_value(rank, VLP_OPTIMISTIC) == best + 1);
        assert_true(vlp_rank_value(rank, VLP_PESSIMISTIC) == worst + 1);
        assert_true(vlp_rank_value(rank, VLP_REALISTIC) == (best + worst) / 2.0 + 1);
    }
}

/* ---- Means --------------------------------------------------------------------------------------- */

static double share_within(const double *values, int64_t count, double limit) {
    int64_t within = 0;
    for (int64_t i = 0; i < count; i++) within += values[i] <= limit;
    return (double)within / (double)count;
}

static void expect_definition(const vlp_metrics *metrics, const vlp_rank *ranks, int64_t count,
                              vlp_rank_kind kind, const uint8_t *selected) {
    double values[MOST], over = 0, expected = 0, reciprocal = 0, sum = 0;
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        if (selected && !selected[i]) continue;
        double rank = 1 + ranks[i].above;
        if (kind == VLP_PESSIMISTIC) rank += ranks[i].equal;
        if (kind == VLP_REALISTIC) rank = (rank + rank + ranks[i].equal) / 2;
        values[used++] = rank;
        reciprocal += 1 / rank;
        sum += rank;
        over += rank - 1;
        expected += (ranks[i].candidates + 1) / 2.0 - 1;
    }
    assert_int_equal(metrics->queries, used);
    expect_near(metrics->mrr, reciprocal / (double)used, 1e-12);
    expect_near(metrics->mr, sum / (double)used, 0);
    expect_near(metrics->amri, 1 - over / expected, 1e-12);
    expect_near(metrics->hits1, share_within(values, used, 1), 0);
    expect_near(metrics->hits3, share_within(values, used, 3), 0);
    expect_near(metrics->hits10, share_within(values, used, 10), 0);
}

static void test_means(void **state) {
    (void)state;
    oracle_random random = {SEED + 1, 0, 0};
    for (int round = 0; round < 500; round++) {
        vlp_rank ranks[MOST];
        uint8_t selected[MOST];
        int64_t count = oracle_below(&random, round % 5 ? 20 : MOST);
        for (int64_t i = 0; i < count; i++) {
            ranks[i] = random_rank(&random);
            selected[i] = oracle_chance(&random, 2) ? (uint8_t)(1 + oracle_below(&random, 255)) : 0;
        }
        for (vlp_rank_kind kind = VLP_REALISTIC; kind <= VLP_PESSIMISTIC; kind++) {
            vlp_metrics all = vlp_metrics_compute(ranks, count, kind, NULL);
            vlp_metrics some = vlp_metrics_compute(ranks, count, kind, selected);
            expect_definition(&all, ranks, count, kind, NULL);
            expect_definition(&some, ranks, count, kind, selected);
        }
    }
}

static void test_known_means(void **state) {
    (void)state;
    /* Ranks 1, 2.5 and 10 of 11 candidates each. */
    const vlp_rank ranks[] = {{0, 0, 11}, {1, 1, 11}, {9, 0, 11}};
    vlp_metrics metrics = vlp_metrics_compute(ranks, 3, VLP_REALISTIC, NULL);
    assert_int_equal(metrics.queries, 3);
    expect_near(metrics.mrr, (1 + 0.4 + 0.1) / 3, 1e-15);
    expect_near(metrics.mr, 4.5, 0);
    expect_near(metrics.amri, 1 - 10.5 / 15, 1e-15);
    expect_near(metrics.hits1, 1.0 / 3, 0);
    expect_near(metrics.hits3, 2.0 / 3, 0);
    expect_near(metrics.hits10, 1, 0);

    const vlp_rank best[] = {{0, 0, 5}, {0, 0, 9}}, tied[] = {{0, 4, 5}, {0, 8, 9}};
    const vlp_rank worst[] = {{4, 0, 5}, {8, 0, 9}}, alone[] = {{0, 0, 1}, {0, 0, 1}};
    expect_near(vlp_metrics_compute(best, 2, VLP_REALISTIC, NULL).amri, 1, 0);
    expect_near(vlp_metrics_compute(tied, 2, VLP_REALISTIC, NULL).amri, 0, 0);
    expect_near(vlp_metrics_compute(tied, 2, VLP_OPTIMISTIC, NULL).amri, 1, 0);
    expect_near(vlp_metrics_compute(worst, 2, VLP_REALISTIC, NULL).amri, -1, 0);
    vlp_metrics forced = vlp_metrics_compute(alone, 2, VLP_REALISTIC, NULL);
    assert_true(isnan(forced.amri) && forced.mrr == 1 && forced.mr == 1 && forced.hits1 == 1);

    const uint8_t none[] = {0, 0, 0};
    vlp_metrics empty = vlp_metrics_compute(ranks, 3, VLP_REALISTIC, none);
    assert_int_equal(empty.queries, 0);
    assert_true(isnan(empty.mrr) && isnan(empty.mr) && isnan(empty.amri) && isnan(empty.hits1) &&
                isnan(empty.hits3) && isnan(empty.hits10));
}

/* ---- Breakdowns ---------------------------------------------------------------------------------- */

static int32_t value_by(const vlp_query_kind *kind, vlp_breakdown by) {
    const int32_t values[] = {kind->relation, kind->side, kind->mapping, kind->distance};
    return values[by];
}

/* Each group is what selecting its queries gives, to the bit. */
static void test_breakdowns(void **state) {
    (void)state;
    oracle_random random = {SEED + 2, 0, 0};
    for (int round = 0; round < 300; round++) {
        vlp_rank ranks[MOST];
        vlp_query_kind kinds[MOST];
        int64_t count = oracle_below(&random, round % 4 ? 12 : MOST);
        random_queries(ranks, kinds, count, &random);
        for (vlp_breakdown by = VLP_BREAKDOWN_RELATION; by <= VLP_BREAKDOWN_DISTANCE; by++) {
            vlp_groups groups;
            assert_int_equal(vlp_groups_compute(&groups, ranks, kinds, count, by), VLP_OK);
            int64_t queries = 0;
            double sum = 0;
            for (int64_t i = 0; i < groups.count; i++) {
                int32_t value = groups.items[i].value;
                if (i > 0)
                    assert_true(value == -1 ||
                                (groups.items[i - 1].value < value && groups.items[i - 1].value != -1));
                uint8_t selected[MOST];
                for (int64_t j = 0; j < count; j++) selected[j] = value_by(&kinds[j], by) == value;
                vlp_metrics expected = vlp_metrics_compute(ranks, count, VLP_REALISTIC, selected);
                assert_true(expected.queries > 0);
                assert_memory_equal(&groups.items[i].metrics, &expected, sizeof expected);
                queries += expected.queries;
                sum += expected.mrr;
            }
            assert_int_equal(queries, count);
            double macro = 0;
            assert_int_equal(vlp_metrics_macro_mrr(&macro, ranks, kinds, count), VLP_OK);
            if (by == VLP_BREAKDOWN_RELATION) expect_near(macro, sum / (double)groups.count, 1e-15);
            vlp_groups_free(&groups);
            assert_null(groups.items);
        }
    }
    vlp_groups_free(NULL);
}

static void test_distances_in_order(void **state) {
    (void)state;
    vlp_rank ranks[6] = {{0, 0, 2}, {0, 0, 2}, {0, 0, 2}, {0, 0, 2}, {0, 0, 2}, {1, 0, 2}};
    const int32_t distances[6] = {3, -1, 300, 0, 3, -1}, expected[4] = {0, 3, 300, -1};
    const int64_t sizes[4] = {1, 2, 1, 2};
    vlp_query_kind kinds[6] = {{0}};
    for (int i = 0; i < 6; i++) kinds[i].distance = distances[i];
    vlp_groups groups;
    assert_int_equal(vlp_groups_compute(&groups, ranks, kinds, 6, VLP_BREAKDOWN_DISTANCE), VLP_OK);
    assert_int_equal(groups.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(groups.items[i].value, expected[i]);
        assert_int_equal(groups.items[i].metrics.queries, sizes[i]);
    }
    expect_near(groups.items[3].metrics.mrr, 0.75, 0);
    vlp_groups_free(&groups);
}

static void test_macro(void **state) {
    (void)state;
    /* Three queries of one relation at rank 1, one of another at rank 4. */
    const vlp_rank ranks[] = {{0, 0, 9}, {0, 0, 9}, {3, 0, 9}, {0, 0, 9}};
    const vlp_query_kind kinds[] = {{7, 0, 0, 1}, {7, 1, 0, 1}, {2, 0, 0, 1}, {7, 0, 0, 1}};
    double macro = 0;
    assert_int_equal(vlp_metrics_macro_mrr(&macro, ranks, kinds, 4), VLP_OK);
    expect_near(macro, (1 + 0.25) / 2, 0);
    assert_int_equal(vlp_metrics_macro_mrr(&macro, ranks, kinds, 0), VLP_OK);
    assert_true(isnan(macro));
}

/* ---- Bootstrap ----------------------------------------------------------------------------------- */

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double reciprocal(vlp_rank rank) {
    return 1 / vlp_rank_value(rank, VLP_REALISTIC);
}

/* The MRR of `second` less that of `first` over drawn triples, one round; `first` alone without it. */
static double plain_round(const vlp_rank *first, const vlp_rank *second, const int32_t *drawn,
                          int32_t triples) {
    double sum = 0;
    for (int32_t i = 0; i < triples; i++)
        for (int side = 0; side < 2; side++) {
            int32_t query = drawn[i] + side * triples;
            sum +=
                second ? reciprocal(second[query]) - reciprocal(first[query]) : reciprocal(first[query]);
        }
    return sum / (2 * triples);
}

enum { ROUNDS = 201 };

static void plain_bootstrap(vlp_interval *out, double *mean, const vlp_rank *first,
                            const vlp_rank *second, int32_t triples, uint64_t seed) {
    double figures[ROUNDS];
    int32_t drawn[MOST];
    *mean = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int32_t i = 0; i < triples; i++) {
            vlp_random4 bits = vlp_random(seed, 20, (uint64_t)round, (uint32_t)i / 2);
            const uint32_t *half = bits.v + i % 2 * 2;
            drawn[i] = (int32_t)vlp_random_below(half[0], half[1], (uint32_t)triples);
        }
        figures[round] = plain_round(first, second, drawn, triples);
        *mean += figures[round] / ROUNDS;
    }
    qsort(figures, ROUNDS, sizeof *figures, ascending);
    for (int32_t i = 0; i < triples; i++) drawn[i] = i;
    /* With 201 rounds the limits are the 6th value from either end. */
    *out = (vlp_interval){figures[5], plain_round(first, second, drawn, triples), figures[195]};
}

static void test_bootstrap(void **state) {
    (void)state;
    oracle_random random = {SEED + 3, 0, 0};
    for (int test = 0; test < 200; test++) {
        vlp_rank first[MOST], second[MOST];
        int32_t triples = 1 + oracle_below(&random, test % 4 ? 15 : MOST / 2);
        for (int32_t i = 0; i < 2 * triples; i++) {
            first[i] = random_rank(&random);
            second[i] = oracle_chance(&random, 2) ? first[i] : random_rank(&random);
        }
        const vlp_rank *other = test % 2 ? second : NULL;
        uint64_t seed = (uint64_t)oracle_below(&random, INT32_MAX) << 17;
        vlp_interval expected, one, two;
        double mean;
        plain_bootstrap(&expected, &mean, first, other, triples, seed);
        assert_int_equal(vlp_metrics_bootstrap(&one, first, other, 2 * triples, ROUNDS, seed, 1),
                         VLP_OK);
        assert_int_equal(vlp_metrics_bootstrap(&two, first, other, 2 * triples, ROUNDS, seed, 2),
                         VLP_OK);
        assert_memory_equal(&one, &two, sizeof one);
        expect_near(one.low, expected.low, 1e-12);
        expect_near(one.middle, expected.middle, 1e-12);
        expect_near(one.high, expected.high, 1e-12);
        /* The mean of the rounds strays by their deviation, a quarter of the interval or so, over the
         * root of their number: six times that is far for chance. */
        expect_near(mean, one.middle, 6 * (one.high - one.low) / 4 / sqrt(ROUNDS) + 1e-12);
        if (!other) expect_near(one.middle, vlp_metrics_compute(first, 2 * triples, 0, NULL).mrr, 1e-12);
    }
}

/* As wide as theory has it: 1.96 deviations of the mean each way. */
static void test_bootstrap_width(void **state) {
    (void)state;
    enum { TRIPLES = 1000 };
    static vlp_rank ranks[2 * TRIPLES];
    oracle_random random = {SEED + 4, 0, 0};
    for (int i = 0; i < 2 * TRIPLES; i++) ranks[i] = random_rank(&random);
    double mean = 0, square = 0;
    for (int i = 0; i < TRIPLES; i++) {
        double both = (reciprocal(ranks[i]) + reciprocal(ranks[i + TRIPLES])) / 2;
        mean += both / TRIPLES;
        square += both * both / TRIPLES;
    }
    double error = sqrt((square - mean * mean) / TRIPLES);
    vlp_interval interval;
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, 2 * TRIPLES, 4000, 5, 0), VLP_OK);
    expect_near(interval.low, mean - 1.96 * error, 0.15 * error);
    expect_near(interval.high, mean + 1.96 * error, 0.15 * error);
}

static void test_bootstrap_degenerate(void **state) {
    (void)state;
    vlp_rank ranks[MOST], swapped[MOST];
    vlp_interval interval;
    for (int i = 0; i < MOST; i++) ranks[i] = (vlp_rank){i % 7, i % 3, 20};
    /* A run against itself. */
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, ranks, MOST, 50, 1, 0), VLP_OK);
    assert_true(interval.low == 0 && interval.middle == 0 && interval.high == 0);
    /* All ranks alike: every draw is the same. */
    for (int i = 0; i < MOST; i++) ranks[i] = (vlp_rank){2, 0, 20};
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, MOST, 50, 1, 0), VLP_OK);
    assert_true(interval.low == interval.middle && interval.high == interval.middle);
    expect_near(interval.middle, 1.0 / 3, 1e-14);
    /* Sides that even each other out do so in every draw, because a triple's queries stay together. */
    for (int i = 0; i < MOST; i++) {
        bool easy = (i % (MOST / 2) % 2 == 0) == (i < MOST / 2);
        ranks[i] = (vlp_rank){easy ? 0 : 3, 0, 20};
        swapped[i] = (vlp_rank){easy ? 3 : 0, 0, 20};
    }
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, MOST, 50, 1, 0), VLP_OK);
    assert_true(interval.low == 0.625 && interval.middle == 0.625 && interval.high == 0.625);
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, swapped, MOST, 50, 1, 0), VLP_OK);
    assert_true(interval.low == 0 && interval.middle == 0 && interval.high == 0);
    /* One round, one triple, none. */
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, 2, 1, 1, 0), VLP_OK);
    assert_true(interval.low == 0.625 && interval.middle == 0.625 && interval.high == 0.625);
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, 0, 50, 1, 0), VLP_OK);
    assert_true(isnan(interval.low) && isnan(interval.middle) && isnan(interval.high));
    assert_int_equal(vlp_metrics_bootstrap(&interval, ranks, NULL, 2, 0, 1, 0), VLP_ERROR_ARGUMENT);
    assert_string_equal(vlp_error_message(), "0 bootstrap rounds; it is 1 or more");
}

/* ---- Kinds of relations -------------------------------------------------------------------------- */

static void test_mappings_by_hand(void **state) {
    (void)state;
    const vlp_triple triples[] = {
        /* 0: one each way */
        {1, 0, 2},
        {3, 0, 4},
        /* 1: 3 tails for 2 heads, just 1.5: many */
        {1, 1, 2},
        {1, 1, 3},
        {2, 1, 4},
        /* 2: the same backwards */
        {2, 2, 1},
        {3, 2, 1},
        {4, 2, 2},
        /* 3: all pairs of two and two */
        {1, 3, 1},
        {1, 3, 2},
        {2, 3, 1},
        {2, 3, 2},
        /* 4: 4 tails for 3 heads, below 1.5 */
        {1, 4, 2},
        {1, 4, 3},
        {2, 4, 4},
        {3, 4, 5},
        /* 5 has no triple; 6: one that comes three times is one */
        {1, 6, 2},
        {1, 6, 2},
        {1, 6, 2},
    };
    const int8_t expected[] = {0, 1, 2, 3, 0, 0, 0};
    int8_t mapping[7];
    int64_t count = sizeof triples / sizeof *triples;
    assert_int_equal(vlp_relation_mappings(mapping, triples, count, 7), VLP_OK);
    assert_memory_equal(mapping, expected, sizeof expected);
    assert_int_equal(vlp_relation_mappings(mapping, triples, 0, 7), VLP_OK);
    for (int i = 0; i < 7; i++) assert_int_equal(mapping[i], 0);
    assert_int_equal(vlp_relation_mappings(mapping, triples, 0, 0), VLP_OK);
}

enum { ENTITIES = 12 };

/* The mean number of answers of the queries that have any, from a table of what is there. */
static double mean_answers(bool there[ENTITIES][ENTITIES], bool backwards) {
    int queries = 0, answers = 0;
    for (int a = 0; a < ENTITIES; a++) {
        int found = 0;
        for (int b = 0; b < ENTITIES; b++) found += backwards ? there[b][a] : there[a][b];
        queries += found > 0;
        answers += found;
    }
    return queries == 0 ? 0 : (double)answers / queries;
}

static void test_mappings(void **state) {
    (void)state;
    oracle_random random = {SEED + 5, 0, 0};
    int64_t seen[4] = {0}, border = 0;
    for (int round = 0; round < 600; round++) {
        vlp_triple triples[64];
        int8_t mapping[5];
        int64_t count = oracle_below(&random, 64);
        int32_t heads = 1 + oracle_below(&random, ENTITIES), tails = 1 + oracle_below(&random, ENTITIES);
        for (int64_t i = 0; i < count; i++)
            triples[i] = (vlp_triple){oracle_below(&random, heads), oracle_below(&random, 5),
                                      oracle_below(&random, tails)};
        assert_int_equal(vlp_relation_mappings(mapping, triples, count, 5), VLP_OK);
        for (int32_t r = 0; r < 5; r++) {
            bool there[ENTITIES][ENTITIES] = {{false}};
            for (int64_t i = 0; i < count; i++)
                if (triples[i].relation == r) there[triples[i].head][triples[i].tail] = true;
            double tails_of = mean_answers(there, false), heads_of = mean_answers(there, true);
            int expected = heads_of < 1.5 ? (tails_of < 1.5 ? 0 : 1) : (tails_of < 1.5 ? 2 : 3);
            assert_int_equal(mapping[r], expected);
            seen[expected]++;
            border += tails_of == 1.5 || heads_of == 1.5;
        }
    }
    for (int i = 0; i < 4; i++) assert_true(seen[i] > 50);
    assert_true(border > 50);
}

/* ---- Average precision --------------------------------------------------------------------------- */

static double plain_auc_pr(const float *scores, const uint8_t *truths, int64_t count) {
    float thresholds[MOST];
    memcpy(thresholds, scores, (size_t)count * sizeof *scores);
    qsort(thresholds, (size_t)count, sizeof *thresholds, descending);
    double area = 0, recall = 0, positives = 0;
    for (int64_t i = 0; i < count; i++) positives += truths[i] != 0;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && thresholds[i] == thresholds[i - 1]) continue;
        double hits = 0, taken = 0;
        for (int64_t j = 0; j < count; j++) {
            taken += scores[j] >= thresholds[i];
            hits += scores[j] >= thresholds[i] && truths[j];
        }
        area += (hits / positives - recall) * (hits / taken);
        recall = hits / positives;
    }
    return positives > 0 ? area : NAN;
}

static void test_auc_pr(void **state) {
    (void)state;
    oracle_random random = {SEED + 6, 0, 0};
    for (int round = 0; round < 500; round++) {
        float scores[MOST];
        uint8_t truths[MOST];
        int64_t count = oracle_below(&random, round % 4 ? 15 : MOST);
        int32_t values = 1 + oracle_below(&random, 200), one_in = 1 + oracle_below(&random, 20);
        for (int64_t i = 0; i < count; i++) {
            scores[i] = (float)oracle_below(&random, values) / 3 - 10;
            truths[i] = oracle_chance(&random, one_in);
        }
        double area = -1;
        assert_int_equal(vlp_metrics_auc_pr(&area, scores, truths, count), VLP_OK);
        expect_near(area, plain_auc_pr(scores, truths, count), 1e-12);
    }
}

static void test_known_auc_pr(void **state) {
    (void)state;
    double area = -1;
    const float scores[] = {0.9f, 0.8f, 0.7f, 0.6f}, tied[] = {0.0f, -0.0f, 0.0f, -0.0f};
    const float far[] = {INFINITY, 1, -INFINITY, 0}, wrong[] = {1, 2, NAN, 3};
    const uint8_t best[] = {1, 1, 0, 0}, mixed[] = {1, 0, 9, 0}, none[] = {0, 0, 0, 0};
    assert_int_equal(vlp_metrics_auc_pr(&area, scores, best, 4), VLP_OK);
    expect_near(area, 1, 0);
    assert_int_equal(vlp_metrics_auc_pr(&area, scores, mixed, 4), VLP_OK);
    expect_near(area, (1 + 2.0 / 3) / 2, 1e-15);
    assert_int_equal(vlp_metrics_auc_pr(&area, tied, mixed, 4), VLP_OK);
    expect_near(area, 0.5, 0);
    assert_int_equal(vlp_metrics_auc_pr(&area, far, mixed, 4), VLP_OK);
    expect_near(area, (1 + 0.5) / 2, 0);
    assert_int_equal(vlp_metrics_auc_pr(&area, scores, none, 4), VLP_OK);
    assert_true(isnan(area));
    assert_int_equal(vlp_metrics_auc_pr(&area, wrong, mixed, 4), VLP_ERROR_ARGUMENT);
    assert_string_equal(vlp_error_message(), "score 2 is not a number");
}

/* ---- Among random candidates --------------------------------------------------------------------- */

/* All draws of `drawn` of the other candidates, one by one: those above are the first, then those equal.
 */
static double hits_of_all_draws(vlp_rank rank, int32_t hits, int32_t drawn) {
    int32_t others = rank.candidates - 1;
    int64_t draws = 0, good = 0;
    for (uint32_t set = 0; set < 1u << others; set++) {
        if (__builtin_popcount(set) != (drawn < others ? drawn : others)) continue;
        int above = 0, equal = 0;
        for (int32_t i = 0; i < others; i++) {
            above += set >> i & 1 && i < rank.above;
            equal += set >> i & 1 && i >= rank.above && i < rank.above + rank.equal;
        }
        draws++;
        good += 1 + above + equal / 2.0 <= hits;
    }
    return (double)good / (double)draws;
}

static void test_among(void **state) {
    (void)state;
    oracle_random random = {SEED + 9, 0, 0};
    int between = 0;
    for (int i = 0; i < 2000; i++) {
        int32_t candidates = 1 + oracle_below(&random, i % 2 ? 13 : 4) + (i % 2 ? 0 : 9);
        int32_t above = oracle_below(&random, candidates);
        vlp_rank rank = {above, oracle_below(&random, candidates - above), candidates};
        int32_t hits = 1 + oracle_below(&random, 4), drawn = 1 + oracle_below(&random, i % 2 ? 13 : 8);
        double expected = hits_of_all_draws(rank, hits, drawn);
        expect_near(vlp_rank_hits_among(rank, hits, drawn), expected, 1e-12);
        between += expected > 0 && expected < 1;
    }
    assert_true(between > 200);
    /* Large numbers: 49 of 99,999 rank above; the chance that at most 9 of 50 drawn do is nearly 1. */
    expect_near(vlp_rank_hits_among((vlp_rank){49, 0, 100000}, 10, 50), 1, 1e-9);
    /* Half of them: P(X <= 9) of 50 draws without replacement from 50,000 of 99,999, by the binomial
     * distribution to five digits. */
    double binomial = 0, term = pow(0.5, 50);
    for (int i = 0; i < 10; i++) {
        binomial += term;
        term *= (50.0 - i) / (i + 1.0);
    }
    expect_near(vlp_rank_hits_among((vlp_rank){50000, 0, 100000}, 10, 50), binomial, 3e-7);
}

/* The interval of reciprocal ranks as values is that of the MRR, bit for bit. */
static void test_bootstrap_mean(void **state) {
    (void)state;
    oracle_random random = {SEED + 10, 0, 0};
    vlp_rank ranks[60];
    double values[60];
    for (int i = 0; i < 60; i++) {
        ranks[i] = random_rank(&random);
        values[i] = 1 / vlp_rank_value(ranks[i], VLP_REALISTIC);
    }
    vlp_interval expected, found;
    assert_int_equal(vlp_metrics_bootstrap(&expected, ranks, NULL, 60, 200, 3, 2), VLP_OK);
    assert_int_equal(vlp_metrics_bootstrap_mean(&found, values, 60, 200, 3, 1), VLP_OK);
    assert_memory_equal(&expected, &found, sizeof found);
    assert_true(found.low < found.middle && found.middle < found.high);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static vlp_status everything(const vlp_rank *ranks, const vlp_query_kind *kinds) {
    const vlp_triple triples[] = {{1, 0, 2}, {1, 0, 3}, {2, 1, 2}};
    const float scores[] = {1, 2, 3};
    const uint8_t truths[] = {0, 1, 0};
    int8_t mapping[2];
    double figure;
    vlp_interval interval;
    vlp_groups groups;
    VLP_TRY(vlp_groups_compute(&groups, ranks, kinds, 20, VLP_BREAKDOWN_DISTANCE));
    vlp_groups_free(&groups);
    VLP_TRY(vlp_metrics_macro_mrr(&figure, ranks, kinds, 20));
    VLP_TRY(vlp_metrics_bootstrap(&interval, ranks, NULL, 20, 10, 0, 2));
    double values[20] = {0};
    VLP_TRY(vlp_metrics_bootstrap_mean(&interval, values, 20, 10, 0, 2));
    VLP_TRY(vlp_relation_mappings(mapping, triples, 3, 2));
    return vlp_metrics_auc_pr(&figure, scores, truths, 3);
}

static void test_memory(void **state) {
    (void)state;
    oracle_random random = {SEED + 7, 0, 0};
    vlp_rank ranks[20];
    vlp_query_kind kinds[20];
    random_queries(ranks, kinds, 20, &random);
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = everything(ranks, kinds);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_int_equal(call, 3 + 3 + 2 + 2 + 2 + 1 + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_known_means),
        cmocka_unit_test(test_breakdowns),
        cmocka_unit_test(test_distances_in_order),
        cmocka_unit_test(test_macro),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_bootstrap_width),
        cmocka_unit_test(test_bootstrap_degenerate),
        cmocka_unit_test(test_mappings_by_hand),
        cmocka_unit_test(test_mappings),
        cmocka_unit_test(test_auc_pr),
        cmocka_unit_test(test_known_auc_pr),
        cmocka_unit_test(test_among),
        cmocka_unit_test(test_bootstrap_mean),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
