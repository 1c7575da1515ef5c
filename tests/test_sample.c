/* Evaluations of some triples, and among some entities, against those of all of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "failing_allocator.h"
#include "run/sample.h"
#include "tiny_run.h"

static vlp_evaluation *evaluate(const tiny_run *tiny, int64_t triples, int32_t sample, uint64_t seed) {
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    vlp_evaluation *out = NULL;
    options.triples = triples;
    options.sample = sample;
    options.seed = seed;
    must(vlp_run_evaluate(&out, tiny->run, &options));
    return out;
}

/* Every item is drawn equally often, and exactly as many as asked for. */
static void draws_are_uniform(void **state) {
    (void)state;
    enum { ENTITIES = 20, WANTED = 6, ROUNDS = 4000 };
    int32_t drawn[ENTITIES] = {0}, pairs = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        uint8_t marks[ENTITIES];
        int32_t count = 0;
        memset(marks, 1, sizeof marks);
        marks[3] = 0;
        vlp_sample_marks(marks, ENTITIES, WANTED, seed);
        for (int32_t e = 0; e < ENTITIES; e++) {
            count += marks[e];
            drawn[e] += marks[e];
        }
        pairs += marks[0] && marks[1];
        assert_int_equal(count, WANTED);
    }
    assert_int_equal(drawn[3], 0);
    double expected = (double)ROUNDS * WANTED / (ENTITIES - 1);
    for (int32_t e = 0; e < ENTITIES; e++)
        if (e != 3) assert_true(fabs(drawn[e] - expected) < 5 * sqrt(expected));
    double both = expected * (WANTED - 1) / (ENTITIES - 2);
    assert_true(fabs(pairs - both) < 5 * sqrt(both));
}

/* The ranks of the triples drawn are those that they have among all. */
static void some_triples(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 41);
    vlp_evaluation *all = evaluate(&tiny, 0, 0, 0);
    int64_t count;
    const vlp_triple *split = vlp_dataset_triples(tiny.dataset, VLP_TEST, &count);
    assert_true(count > 3);
    assert_int_equal(all->triples, count);
    for (uint64_t seed = 0; seed < 5; seed++) {
        int64_t wanted = count / 2;
        vlp_dataset part;
        vlp_triple *taken = NULL;
        must(vlp_sample_triples(&part, &taken, tiny.dataset, VLP_TEST, wanted, seed));
        vlp_evaluation *some = evaluate(&tiny, wanted, 0, seed);
        assert_int_equal(some->triples, wanted);
        assert_int_equal(some->split_triples, count);
        assert_int_equal(some->queries, 2 * wanted);
        double sum = 0;
        for (int64_t i = 0, at = -1; i < wanted; i++) {
            do at++;
            while (memcmp(&split[at], &taken[i], sizeof *taken) != 0); /* in their order */
            for (int side = 0; side < 2; side++) {
                double rank = vlp_evaluation_rank(all, VLP_BY_F, at + side * count);
                assert_true(vlp_evaluation_rank(some, VLP_BY_F, i + side * wanted) == rank);
                sum += 1 / rank;
            }
        }
        near(some->both.mrr, sum / (double)(2 * wanted));
        vlp_evaluation_free(some);
        vlp_free(taken);
    }
    vlp_evaluation *more = evaluate(&tiny, count + 5, 0, 0);
    assert_true(more->both.mrr == all->both.mrr && more->triples == count);
    vlp_evaluation_free(more);
    vlp_evaluation_free(all);
    tiny_run_free(&tiny);
}

/* A sample is an evaluation among the same entities as candidates; `few`: they alone are scored. */
static void check_sample(const tiny_run *tiny, int32_t wanted) {
    uint8_t marks[64];
    int32_t given[64];
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    vlp_evaluation *expected = NULL, *got = evaluate(tiny, 0, wanted, 7);
    memset(marks, 1, sizeof marks);
    vlp_sample_marks(marks, tiny->entities, wanted, 7);
    for (int32_t e = 0; e < tiny->entities; e++)
        if (marks[e]) given[options.candidate_count++] = e;
    options.candidates = given;
    must(vlp_run_evaluate(&expected, tiny->run, &options));
    assert_int_equal(got->sample, wanted);
    assert_int_equal(got->candidates, wanted);
    assert_int_equal(expected->sample, 0);
    for (int64_t i = 0; i < got->queries; i++)
        for (int by = VLP_BY_F; by <= VLP_BY_F_C; by++)
            assert_true(vlp_evaluation_rank(got, (vlp_ranked_by)by, i) ==
                        vlp_evaluation_rank(expected, (vlp_ranked_by)by, i));
    near(got->frequency.mrr, expected->frequency.mrr);
    near(got->vote.mrr, expected->vote.mrr);
    assert_true(isnan(got->auc_pr) && isfinite(expected->auc_pr));
    vlp_evaluation_free(got);
    vlp_evaluation_free(expected);
}

static void some_candidates(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 42);
    assert_true(tiny.entities <= 64);
    check_sample(&tiny, 4);
    check_sample(&tiny, tiny.entities / 2);
    vlp_evaluation *all = evaluate(&tiny, 0, 0, 0), *most = evaluate(&tiny, 0, tiny.entities, 0);
    assert_int_equal(most->sample, 0);
    assert_true(most->both.mrr == all->both.mrr);
    vlp_evaluation_free(all);
    vlp_evaluation_free(most);
    tiny_run_free(&tiny);
}

static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 43);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_run *run = NULL;
        vlp_evaluation *evaluation = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
        opening.threads = 1;
        options.triples = 2;
        options.sample = 3;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_evaluate(&evaluation, run, &options);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_evaluation_free(evaluation);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 50);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws_are_uniform),
                                       cmocka_unit_test(some_triples), cmocka_unit_test(some_candidates),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
