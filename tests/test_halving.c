/* Successive halving against a slow, obvious search over a made-up objective, with trials that finish in
 * any order, any number of them at a time, and some of them known beforehand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "learn/halving.h"
#include "run_lab.h"

enum { MOST = 200, RUNGS = VLP_HALVING_RUNGS };

/* A validation MRR: NaN for some, equal for some. */
static double objective(uint64_t seed, int64_t candidate, int32_t rung) {
    vlp_random4 words = vlp_random(seed, VLP_STREAM_TEST, (uint64_t)candidate, (uint32_t)rung);
    if (words.v[0] % 10 == 0) return NAN;
    return (double)(words.v[1] % 12) / 12;
}

/* ---- The obvious search: one bracket after the other, one rung after the other ---- */

static double shown(double mrr) {
    return isnan(mrr) ? -1 : mrr;
}

/* Marks the trials of a bracket. */
static void search_bracket(bool trained[MOST][RUNGS], uint64_t seed, int64_t first, int32_t count) {
    bool in[VLP_HALVING_BRACKET];
    memset(in, true, sizeof in);
    int32_t rungs = count >= 27 ? 4 : count >= 9 ? 3 : count >= 3 ? 2 : 1, left = count;
    for (int32_t rung = 4 - rungs; rung < 4; rung++) {
        for (int32_t i = 0; i < count; i++)
            if (in[i]) trained[first + i][rung] = true;
        /* The worst is removed, and of equal ones the last, until a third is left. */
        for (int32_t keep = left / 3; left > keep; left--) {
            int32_t worst = -1;
            for (int32_t i = 0; i < count; i++)
                if (in[i] && (worst < 0 || shown(objective(seed, first + i, rung)) <=
                                               shown(objective(seed, first + worst, rung))))
                    worst = i;
            in[worst] = false;
        }
    }
}

/* ---- The search itself ---- */

typedef struct running {
    int64_t candidate;
    int32_t rung;
} running;

static void check_search(uint64_t seed) {
    static bool trained[MOST][RUNGS], expected[MOST][RUNGS];
    memset(trained, 0, sizeof trained);
    memset(expected, 0, sizeof expected);
    vlp_halving *halving;
    must(vlp_halving_new(&halving));
    vlp_random4 words = vlp_random(seed, VLP_STREAM_TEST, 1000000, 0);
    int32_t brackets = 1 + (int32_t)(words.v[0] % 4), at_once = 1 + (int32_t)(words.v[1] % 9),
            trials = 0, wanted = 0, known = 0;
    for (int32_t i = 0; i < brackets; i++) {
        int32_t count = 1 + (int32_t)(vlp_random(seed, VLP_STREAM_TEST, 1000001, (uint32_t)i).v[0] %
                                      VLP_HALVING_BRACKET);
        search_bracket(expected, seed, vlp_halving_candidates(halving), count);
        must(vlp_halving_add(halving, count));
        wanted += vlp_halving_trials(count);
    }
    /* Some are known, among them ones that this search does not need. */
    for (int64_t c = 0; c < vlp_halving_candidates(halving); c++)
        for (int32_t r = 0; r < RUNGS; r++)
            if (vlp_random(seed, VLP_STREAM_TEST, 2000000 + (uint64_t)c, (uint32_t)r).v[0] % 5 == 0) {
                vlp_halving_finish(halving, c, r, objective(seed, c, r));
                known += expected[c][r];
                trained[c][r] = expected[c][r];
            }
    running slots[16];
    int32_t busy = 0;
    for (uint32_t turn = 0;; turn++) {
        running next;
        while (busy < at_once && vlp_halving_next(&next.candidate, &next.rung, halving)) {
            assert_false(trained[next.candidate][next.rung]);
            trained[next.candidate][next.rung] = true;
            slots[busy++] = next;
            trials++;
        }
        if (busy == 0) break;
        int32_t which =
            (int32_t)(vlp_random(seed, VLP_STREAM_TEST, 3000000, turn).v[0] % (uint32_t)busy);
        running done = slots[which];
        slots[which] = slots[--busy];
        vlp_halving_finish(halving, done.candidate, done.rung,
                           objective(seed, done.candidate, done.rung));
    }
    assert_memory_equal(trained, expected, sizeof trained);
    assert_int_equal(trials + known, wanted);
    vlp_halving_free(halving);
}

static void test_against_oracle(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) check_search(seed);
}

/* The next bracket begins while the last trials of the one before it run. */
static void test_brackets_overlap(void **state) {
    (void)state;
    vlp_halving *halving;
    int64_t candidate;
    int32_t rung;
    must(vlp_halving_new(&halving));
    assert_false(vlp_halving_next(&candidate, &rung, halving));
    must(vlp_halving_add(halving, 2));
    must(vlp_halving_add(halving, 3));
    for (int64_t i = 0; i < 5; i++) {
        assert_true(vlp_halving_next(&candidate, &rung, halving));
        assert_int_equal(candidate, i);
        assert_int_equal(rung, i < 2 ? 3 : 2);
    }
    assert_false(vlp_halving_next(&candidate, &rung, halving));
    for (int64_t i = 2; i < 5; i++) vlp_halving_finish(halving, i, 2, i == 3 ? 0.5 : 0.25);
    assert_true(vlp_halving_next(&candidate, &rung, halving));
    assert_int_equal(candidate, 3);
    assert_int_equal(rung, 3);
    vlp_halving_free(halving);
}

static void test_budgets(void **state) {
    (void)state;
    assert_int_equal(vlp_halving_trials(VLP_HALVING_BRACKET), VLP_HALVING_TRIALS);
    assert_int_equal(vlp_halving_trials(1), 1);
    assert_int_equal(vlp_halving_trials(2), 2);
    assert_int_equal(vlp_halving_trials(3), 4);
    assert_int_equal(vlp_halving_trials(9), 13);
    assert_int_equal(vlp_halving_trials(19), 19 + 6 + 2);
    for (int64_t trials = 0; trials < 60; trials++) {
        int32_t largest = vlp_halving_largest(trials);
        assert_true(largest == 0 || vlp_halving_trials(largest) <= trials);
        for (int32_t more = largest + 1; more <= VLP_HALVING_BRACKET; more++)
            assert_true(vlp_halving_trials(more) > trials);
    }
    assert_int_equal(vlp_halving_part(0), 27);
    assert_int_equal(vlp_halving_part(1), 9);
    assert_true(vlp_halving_share(3) == 1 && vlp_halving_share(2) == 1.0 / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle),
                                       cmocka_unit_test(test_brackets_overlap),
                                       cmocka_unit_test(test_budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
