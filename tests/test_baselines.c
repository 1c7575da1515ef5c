/* Kinds of queries (side, mapping, distance) and the baselines, against naive recomputation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "eval/baselines.h"
#include "eval/evaluate.h"
#include "eval/pagerank.h"
#include "failing_allocator.h"
#include "random_data.h"

enum { SEED = 77 };

/* 0 1-1, 1 1-N, 2 N-1, 3 N-N: answers a query, on average over train, against 1.5. */
static int oracle_mapping(const vlp_triple *train, int64_t count, int32_t relation) {
    int64_t triples = 0, heads = 0, tails = 0;
    for (int64_t i = 0; i < count; i++) {
        bool new_head = true, new_tail = true;
        if (train[i].relation != relation) continue;
        for (int64_t j = 0; j < i; j++) {
            if (train[j].relation != relation) continue;
            new_head = new_head && train[j].head != train[i].head;
            new_tail = new_tail && train[j].tail != train[i].tail;
        }
        triples++;
        heads += new_head;
        tails += new_tail;
    }
    if (triples == 0) return -1;
    return (2 * triples >= 3 * heads) + 2 * (2 * triples >= 3 * tails);
}

static void test_kinds(void **state) {
    (void)state;
    int64_t by_mapping[4] = {0}, by_distance[12] = {0};
    for (int i = 0; i < 150; i++) {
        oracle_random random = {SEED + 5, (uint64_t)i, 0};
        sizes s = random_sizes(&random);
        s.relations = 3;
        s.counts[VLP_TRAIN] /= 1 + i % 3;
        vlp_dataset *dataset = random_dataset(s, &random);
        oracle_graph graph = {vlp_dataset_entity_count(dataset), vlp_dataset_relation_count(dataset), 0,
                              0, NULL};
        int64_t count, train;
        const vlp_triple *triples = vlp_dataset_triples(dataset, VLP_TEST, &count);
        const vlp_triple *edges = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
        for (int64_t j = 0; j < train; j++)
            oracle_graph_add(&graph, edges[j].head, edges[j].relation, edges[j].tail);
        int32_t *distance = oracle_distance_matrix(&graph);
        vlp_query_kind found[64];
        assert_int_equal(vlp_query_kinds(found, dataset, VLP_TEST, 1 + i % 2), VLP_OK);
        for (int64_t j = 0; j < 2 * count; j++) {
            vlp_triple t = triples[j % count];
            int mapping = oracle_mapping(edges, train, t.relation);
            assert_int_equal(found[j].relation, t.relation);
            assert_int_equal(found[j].side, j < count);
            assert_int_equal(found[j].distance, distance[t.head * graph.entities + t.tail]);
            by_distance[found[j].distance + 1 < 11 ? found[j].distance + 1 : 11]++;
            if (mapping < 0) continue; /* not in train: nothing to say */
            assert_int_equal(found[j].mapping, mapping);
            by_mapping[mapping]++;
        }
        free(distance);
        oracle_graph_free(&graph);
        vlp_dataset_free(dataset);
    }
    for (int m = 0; m < 4; m++) assert_true(by_mapping[m] > 10);
    for (int d = 0; d < 6; d++) assert_true(by_distance[d] > 5);
}

/* The rank of an answer among scores that are counts. */
static vlp_rank rank_of_counts(const vlp_dataset *dataset, unsigned filter, vlp_query query,
                               int32_t answer, const int32_t *scores, const uint8_t *only) {
    vlp_rank rank = {0, 0, 1};
    for (int32_t e = 0; e < vlp_dataset_entity_count(dataset); e++) {
        if (e == answer || known(dataset, filter, query, e) || (only && !only[e])) continue;
        rank.candidates++;
        rank.above += scores[e] > scores[answer];
        rank.equal += scores[e] == scores[answer];
    }
    return rank;
}

/* Votes of training edges for their answers: of all that the relation has (most 0), or of references. */
static void count_votes(int32_t *scores, const vlp_dataset *dataset, vlp_query query, int32_t most,
                        int32_t per_head) {
    int32_t relations = vlp_dataset_relation_count(dataset), size = 0;
    int64_t train;
    const vlp_triple *edges = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
    vlp_references *found = NULL;
    const vlp_reference *list = NULL;
    vlp_reference_options options = {1, most, 8, per_head, 1, NULL};
    if (most > 0) {
        assert_int_equal(vlp_references_find(&found, dataset, &query, 1, &options), VLP_OK);
        list = vlp_references_get(found, 0, &size);
    }
    memset(scores, 0, 64 * sizeof *scores);
    for (int64_t i = 0; i < (most > 0 ? size : train); i++) {
        vlp_triple edge = edges[most > 0 ? list[i].edge : i];
        if (edge.relation != query.relation % relations) continue;
        scores[query.relation < relations ? edge.tail : edge.head]++;
    }
    vlp_references_free(found);
}

static void test_baselines(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        oracle_random random = {SEED + 6, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        vlp_split split = i % 2 ? VLP_TEST : VLP_VALID;
        unsigned splits = i % 5 ? (i % 2 ? ALL : TRAIN_VALID) : 0;
        int32_t most = 1 + oracle_below(&random, 8), per_head = oracle_below(&random, 3), scores[64];
        vlp_filter *filter = NULL;
        int64_t count;
        vlp_dataset_triples(dataset, split, &count);
        vlp_rank frequency[64], vote[64];
        uint8_t marks[64];
        for (int e = 0; e < 64; e++) marks[e] = oracle_chance(&random, 2);
        const uint8_t *only = i % 3 ? NULL : marks;
        assert_int_equal(vlp_filter_new(&filter, dataset, splits), VLP_OK);
        assert_int_equal(vlp_baseline_frequency(frequency, dataset, split, filter, only), VLP_OK);
        assert_int_equal(
            vlp_baseline_vote(vote, dataset, split, filter, only, most, per_head, 1 + i % 2), VLP_OK);
        for (int64_t j = 0; j < 2 * count; j++) {
            int32_t answer;
            vlp_query query = query_of(dataset, split, j, &answer);
            count_votes(scores, dataset, query, 0, 0);
            vlp_rank expected = rank_of_counts(dataset, splits, query, answer, scores, only);
            assert_memory_equal(&expected, &frequency[j], sizeof expected);
            count_votes(scores, dataset, query, most, per_head);
            expected = rank_of_counts(dataset, splits, query, answer, scores, only);
            assert_memory_equal(&expected, &vote[j], sizeof expected);
        }
        vlp_filter_free(filter);
        vlp_dataset_free(dataset);
    }
}

/* ---- PageRank ------------------------------------------------------------------------------------ */

/* Solves the equations of the walk from `source`: p = restart e + (1 - restart) W p, where column u of W
 * is one step from u, by Gaussian elimination with pivots. */
static void dense_pagerank(double *out, const vlp_dataset *dataset, int32_t source) {
    enum { MOST = 64 };
    static double a[MOST][MOST + 1];
    int32_t n = vlp_dataset_entity_count(dataset);
    int64_t count;
    double degree[MOST] = {0};
    const vlp_triple *train = vlp_dataset_triples(dataset, VLP_TRAIN, &count);
    assert_true(n <= MOST);
    memset(a, 0, sizeof a);
    for (int64_t i = 0; i < count; i++) {
        degree[train[i].head]++;
        degree[train[i].tail]++;
    }
    for (int64_t i = 0; i < count; i++) {
        a[train[i].tail][train[i].head] -= 0.85 / degree[train[i].head];
        a[train[i].head][train[i].tail] -= 0.85 / degree[train[i].tail];
    }
    for (int32_t e = 0; e < n; e++) {
        a[e][e] += 1;
        if (degree[e] == 0) a[source][e] -= 0.85; /* no edge: the walk returns */
    }
    a[source][n] = 0.15;
    for (int32_t column = 0; column < n; column++) {
        int32_t pivot = column;
        for (int32_t row = column; row < n; row++)
            if (fabs(a[row][column]) > fabs(a[pivot][column])) pivot = row;
        for (int32_t j = 0; j <= n; j++) {
            double kept = a[column][j];
            a[column][j] = a[pivot][j];
            a[pivot][j] = kept;
        }
        for (int32_t row = 0; row < n; row++) {
            if (row == column) continue;
            double factor = a[row][column] / a[column][column];
            for (int32_t j = column; j <= n; j++) a[row][j] -= factor * a[column][j];
        }
    }
    for (int32_t e = 0; e < n; e++) out[e] = a[e][n] / a[e][e];
}

static void test_pagerank(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        oracle_random random = {SEED + 7, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        int32_t entities = vlp_dataset_entity_count(dataset), sources[64];
        double *found = malloc((size_t)entities * (size_t)entities * sizeof *found), expected[64];
        for (int32_t e = 0; e < entities; e++) sources[e] = (e * 7 + i) % entities;
        assert_int_equal(vlp_pagerank(found, dataset->graph, sources, entities, 1 + i % 3), VLP_OK);
        for (int32_t e = 0; e < entities; e++) {
            double sum = 0;
            dense_pagerank(expected, dataset, sources[e]);
            for (int32_t other = 0; other < entities; other++) {
                double value = found[(int64_t)e * entities + other];
                assert_true(fabs(value - expected[other]) < 1e-8);
                sum += value;
            }
            assert_true(fabs(sum - 1) < 1e-8);
        }
        free(found);
        vlp_dataset_free(dataset);
    }
}

/* The rank of an answer by its probability; the query's entity itself has none. */
static vlp_rank rank_of_walk(const vlp_dataset *dataset, unsigned filter, vlp_query query,
                             int32_t answer, double *scores, const uint8_t *only) {
    vlp_rank rank = {0, 0, 1};
    scores[query.entity] = 0;
    for (int32_t e = 0; e < vlp_dataset_entity_count(dataset); e++) {
        if (e == answer || known(dataset, filter, query, e) || (only && !only[e])) continue;
        rank.candidates++;
        rank.above += scores[e] > scores[answer];
        rank.equal += scores[e] == scores[answer];
    }
    return rank;
}

static void test_pagerank_ranks(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        oracle_random random = {SEED + 8, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        vlp_split split = i % 2 ? VLP_TEST : VLP_VALID;
        unsigned splits = i % 5 ? ALL : 0;
        vlp_filter *filter = NULL;
        int64_t count;
        vlp_rank ranks[64];
        uint8_t marks[64];
        for (int e = 0; e < 64; e++) marks[e] = oracle_chance(&random, 2);
        const uint8_t *only = i % 3 ? NULL : marks;
        vlp_dataset_triples(dataset, split, &count);
        assert_int_equal(vlp_filter_new(&filter, dataset, splits), VLP_OK);
        assert_int_equal(vlp_baseline_pagerank(ranks, dataset, split, filter, only, NULL), VLP_OK);
        for (int64_t j = 0; j < 2 * count; j++) {
            int32_t answer;
            double scores[64];
            vlp_query query = query_of(dataset, split, j, &answer);
            assert_int_equal(vlp_pagerank(scores, dataset->graph, &query.entity, 1, 1), VLP_OK);
            vlp_rank expected = rank_of_walk(dataset, splits, query, answer, scores, only);
            assert_memory_equal(&expected, &ranks[j], sizeof expected);
        }
        vlp_filter_free(filter);
        vlp_dataset_free(dataset);
    }
}

static void test_pagerank_memory(void **state) {
    (void)state;
    oracle_random random = {SEED + 9, 0, 0};
    vlp_dataset *dataset = random_dataset((sizes){12, 2, 2, {40, 3, 9}}, &random);
    vlp_filter *filter = NULL;
    vlp_rank ranks[18];
    assert_int_equal(vlp_filter_new(&filter, dataset, ALL), VLP_OK);
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_baseline_pagerank(ranks, dataset, VLP_TEST, filter, NULL, NULL);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_int_equal(call, 2 + 2 + 2 + 1);
    vlp_filter_free(filter);
    vlp_dataset_free(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_baselines),
        cmocka_unit_test(test_pagerank),        cmocka_unit_test(test_pagerank_ranks),
        cmocka_unit_test(test_pagerank_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
