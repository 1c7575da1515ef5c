/* Rank counts. Of scores that are given: against sorting those who compete. Of scores that a backend
 * makes while it counts: against counting those that it writes down, number for number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "model/gsf.h"

enum { SEED = 30, ROUNDS = 40 };

/* ---- Given scores ---- */

static const vlp_mixture mixtures[] = {{1, 0}, {0, 1}, {1, 0.5f}, {0.25f, 2}, {1, -1}};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures };

/* Scores are small whole numbers: mixtures are exact and ties are many. */
typedef struct ranking {
    int32_t count, entities;
    double *vertical, *horizontal;
    int32_t *answers, *filtered;
    int64_t *offsets;
    uint8_t *only;
    int32_t *same; /* whose score each has, or NULL */
} ranking;

static int descending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* Those who compete, the answer first, are sorted; the answer's place is then looked up. */
static void sorted_place(const ranking *ranks, int32_t i, vlp_mixture mixture, int32_t *above,
                         int32_t *equal) {
    double *competing = malloc((size_t)ranks->entities * sizeof *competing), gold = 0;
    assert_non_null(competing);
    size_t count = 0;
    for (int32_t e = 0; e < ranks->entities; e++) {
        int64_t at = (int64_t)i * ranks->entities + (ranks->same ? ranks->same[e] : e);
        double score = (double)mixture.horizontal * ranks->horizontal[at];
        if (ranks->vertical) score += (double)mixture.vertical * ranks->vertical[at];
        bool out = ranks->only && !ranks->only[e];
        for (int64_t f = ranks->offsets[i]; f < ranks->offsets[i + 1]; f++)
            out = out || ranks->filtered[f] == e;
        if (e == ranks->answers[i]) gold = score;
        if (!out || e == ranks->answers[i]) competing[count++] = score;
    }
    qsort(competing, count, sizeof *competing, descending);
    size_t first = 0, end = 0;
    while (competing[first] != gold) first++;
    for (end = first; end < count && competing[end] == gold;) end++;
    *above = (int32_t)first;
    *equal = (int32_t)(end - first - 1);
    free(competing);
}

static void random_ranking(lab *bench, ranking *ranks, int32_t count, int32_t entities) {
    bool both = lab_between(bench, 0, 3) > 0, some = lab_between(bench, 0, 1);
    int32_t spread = lab_between(bench, 0, 6), cells = count * entities;
    *ranks = (ranking){.count = count, .entities = entities};
    int32_t *draws = lab_ids(bench, 2 * cells, -spread, spread);
    ranks->horizontal = lab_zeros(bench, cells);
    ranks->vertical = both ? lab_zeros(bench, cells) : NULL;
    for (int32_t i = 0; i < cells; i++) {
        ranks->horizontal[i] = draws[i];
        if (both) ranks->vertical[i] = draws[cells + i];
    }
    ranks->answers = lab_ids(bench, count, 0, entities - 1);
    ranks->filtered = lab_ids(bench, cells, 0, 0);
    ranks->offsets = (int64_t *)lab_zeros(bench, count + 1);
    for (int32_t i = 0; i < count; i++) {
        int64_t at = ranks->offsets[i];
        int32_t one_in = lab_between(bench, 1, 5); /* at times everyone, the answer among them */
        for (int32_t e = 0; e < entities; e++)
            if (lab_between(bench, 1, one_in) == 1) ranks->filtered[at++] = e;
        ranks->offsets[i + 1] = at;
    }
    if (!bench->backend->position_invariant_scores && lab_between(bench, 0, 1)) {
        ranks->same = lab_ids(bench, entities, 0, 0);
        for (int32_t e = 0; e < entities; e++) /* a few are like one before them */
            ranks->same[e] = lab_between(bench, 0, 2) ? e : ranks->same[lab_between(bench, 0, e)];
        for (int32_t e = 0; e < entities; e++)
            if (ranks->same[ranks->same[e]] != ranks->same[e]) ranks->same[e] = e;
    }
    if (!some) return;
    ranks->only = (uint8_t *)lab_zeros(bench, entities);
    for (int32_t e = 0; e < entities; e++) ranks->only[e] = (uint8_t)lab_between(bench, 0, 1);
}

/* False when a score is not a number. */
static bool run_rank(lab *bench, const ranking *ranks, int32_t *above, int32_t *equal) {
    int32_t cells = ranks->count * ranks->entities, results = ranks->count * MIXTURES, bad = 7;
    int32_t *above_on = lab_put_ids(bench, above, results);
    int32_t *equal_on = lab_put_ids(bench, equal, results), *bad_on = lab_put_ids(bench, &bad, 1);
    vlp_ranked ranked = {
        .queries = {.count = ranks->count},
        .entities = ranks->entities,
        .vertical = ranks->vertical ? lab_put(bench, ranks->vertical, cells) : NULL,
        .horizontal = lab_put(bench, ranks->horizontal, cells),
        .answers = lab_put_ids(bench, ranks->answers, ranks->count),
        .filter_offset =
            lab_put_bytes(bench, ranks->offsets, ((size_t)ranks->count + 1) * sizeof(int64_t)),
        .filtered = lab_put_ids(bench, ranks->filtered, cells),
        .filtered_count = ranks->offsets[ranks->count],
        .only = ranks->only ? lab_put_bytes(bench, ranks->only, (size_t)ranks->entities) : NULL,
        .same = ranks->same,
        .mixtures = mixtures,
        .mixture_count = MIXTURES};
    assert_int_equal(bench->backend->rank->counts(bench->compute, above_on, equal_on, bad_on, &ranked),
                     VLP_OK);
    lab_get_bytes(bench, above, above_on, (size_t)results * sizeof *above);
    lab_get_bytes(bench, equal, equal_on, (size_t)results * sizeof *equal);
    lab_get_bytes(bench, &bad, bad_on, sizeof bad);
    assert_in_range(bad, 0, 1);
    return !bad;
}

static void check_rank(lab *bench, int32_t count, int32_t entities) {
    ranking ranks;
    random_ranking(bench, &ranks, count, entities);
    int32_t *above = lab_ids(bench, count * MIXTURES, -9, -9), above_expected;
    int32_t *equal = lab_ids(bench, count * MIXTURES, -9, -9), equal_expected;
    assert_true(run_rank(bench, &ranks, above, equal));
    for (int32_t i = 0; i < count; i++)
        for (int32_t m = 0; m < MIXTURES; m++) {
            sorted_place(&ranks, i, mixtures[m], &above_expected, &equal_expected);
            assert_int_equal(above[i * MIXTURES + m], above_expected);
            assert_int_equal(equal[i * MIXTURES + m], equal_expected);
        }
    /* One cell anywhere, the answer's or a competitor's, is enough. */
    double *scores = ranks.vertical && lab_between(bench, 0, 1) ? ranks.vertical : ranks.horizontal;
    int32_t at = lab_between(bench, 0, count * entities - 1);
    if (ranks.only) ranks.only[at % entities] = 1;
    for (int32_t i = 0; i < count; i++) ranks.offsets[i + 1] = 0;
    scores[at] = NAN;
    assert_false(run_rank(bench, &ranks, above, equal));
}

static void test_given(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        for (int round = 0; round <= ROUNDS; round++) {
            int32_t count = round % 7 == 0 ? 1 : lab_between(&bench, 1, 9);
            int32_t entities = round % 5 == 0 ? 1 : lab_between(&bench, 1, 9);
            bool large = round == ROUNDS;
            check_rank(&bench, large ? 307 : count, large ? 257 : entities);
            lab_clear(&bench);
        }
        lab_close(&bench);
    }
}

/* ---- Scores that are made ---- */

enum { RELATIONS = 3, MAX_MIXTURES = 70 };

/* A model's queries on the backend with everything ranking asks for. */
typedef struct task {
    vlp_form form;
    vlp_ranked ranked;
    int32_t *answers; /* host */
    uint8_t *only;    /* host, or NULL */
    int64_t *offsets; /* host */
    int32_t *filtered;
    vlp_mixture mixtures[MAX_MIXTURES];
} task;

typedef struct shape {
    vlp_model_options model;
    int32_t count, entities, mixtures;
} shape;

/* Entities of which many are copies of others, so that there are ties with the answer. */
static double *random_table(lab *bench, int32_t entities, int32_t width) {
    double *table = lab_random(bench, (int64_t)entities * width, 1);
    for (int32_t e = 1; e < entities; e++)
        if (lab_between(bench, 0, 2) == 0)
            memcpy(table + (int64_t)e * width, table + (int64_t)lab_between(bench, 0, e - 1) * width,
                   (size_t)width * sizeof *table);
    return table;
}

static void random_filter(lab *bench, task *t, int32_t count, int32_t entities) {
    t->offsets = (int64_t *)lab_zeros(bench, count + 1);
    t->filtered = lab_ids(bench, (int64_t)count * entities, 0, 0);
    for (int32_t i = 0; i < count; i++) {
        int32_t one_in = lab_between(bench, 0, 6) == 0 ? 1 : lab_between(bench, 2, 40);
        int64_t at = t->offsets[i];
        for (int32_t e = 0; e < entities; e++)
            if (lab_between(bench, 1, one_in) == 1) t->filtered[at++] = e;
        t->offsets[i + 1] = at;
    }
    t->only = lab_between(bench, 0, 1) ? (uint8_t *)lab_zeros(bench, entities) : NULL;
    for (int32_t e = 0; t->only && e < entities; e++) t->only[e] = (uint8_t)lab_between(bench, 0, 1);
}

static void random_task(lab *bench, task *t, const shape *s) {
    vlp_model_form(&t->form, &s->model);
    int32_t count = s->count, entities = s->entities, width = t->form.query_width;
    int64_t cells = (int64_t)count * entities, size = (int64_t)entities * t->form.entity_width;
    random_filter(bench, t, count, entities);
    t->answers = lab_ids(bench, count, 0, entities - 1);
    t->mixtures[0] = (vlp_mixture){1, 0};
    t->mixtures[1] = (vlp_mixture){0, 1};
    for (int m = 2; m < MAX_MIXTURES; m++)
        t->mixtures[m] = (vlp_mixture){0.3f * (float)lab_between(bench, 0, 9), 0.1f * (float)m};
    double *table = random_table(bench, entities, t->form.entity_width);
    int32_t *relations = lab_ids(bench, count, 0, RELATIONS - 1);
    t->ranked = (vlp_ranked){
        .queries = {.count = count,
                    .rows = lab_put(bench, lab_random(bench, (int64_t)count * width, 1),
                                    (int64_t)count * width),
                    .relations = lab_put_ids(bench, relations, count),
                    .relation_table =
                        lab_put(bench, lab_random(bench, RELATIONS * (int64_t)t->form.relation_width, 1),
                                RELATIONS * (int64_t)t->form.relation_width),
                    .relation_count = RELATIONS},
        .entities = entities,
        .form = &t->form,
        .entity_table = lab_put(bench, table, size),
        .horizontal = lab_put(bench, lab_zeros(bench, cells), cells),
        .vertical = lab_between(bench, 0, 2) ? lab_put(bench, lab_random(bench, cells, 1), cells) : NULL,
        .answers = lab_put_ids(bench, t->answers, count),
        .filter_offset = lab_put_bytes(bench, t->offsets, ((size_t)count + 1) * sizeof(int64_t)),
        .filtered = lab_put_ids(bench, t->filtered, t->offsets[count]),
        .filtered_count = t->offsets[count],
        .only = t->only ? lab_put_bytes(bench, t->only, (size_t)entities) : NULL,
        .mixtures = t->mixtures,
        .mixture_count = s->mixtures};
}

/* The counts of a task; they say whether a score is not a number. */
static bool count_task(lab *bench, const vlp_ranked *ranked, int32_t *above, int32_t *equal) {
    int64_t results = ranked->queries.count * ranked->mixture_count;
    int32_t *above_on = lab_put_ids(bench, lab_ids(bench, results, 5, 9), results), bad;
    int32_t *equal_on = lab_put_ids(bench, lab_ids(bench, results, 5, 9), results);
    int32_t *bad_on = lab_put_ids(bench, lab_ids(bench, 1, 5, 9), 1);
    if (bench->backend->rank->counts(bench->compute, above_on, equal_on, bad_on, ranked) != VLP_OK)
        fail_msg("%s", vlp_error_message());
    lab_get_bytes(bench, above, above_on, (size_t)results * sizeof *above);
    lab_get_bytes(bench, equal, equal_on, (size_t)results * sizeof *equal);
    lab_get_bytes(bench, &bad, bad_on, sizeof bad);
    return !bad;
}

/* The counts of one of the two scores alone, by looking at each. */
static void expect_counts(const task *t, const double *scores, const int32_t *above,
                          const int32_t *equal, int32_t mixture) {
    int32_t entities = t->ranked.entities, mixture_count = t->ranked.mixture_count;
    for (int64_t i = 0; i < t->ranked.queries.count; i++) {
        const double *row = scores + i * entities;
        double gold = row[t->answers[i]];
        int32_t more = 0, same = 0;
        int64_t next = t->offsets[i];
        for (int32_t e = 0; e < entities; e++) {
            bool out = e == t->answers[i] || (t->only && !t->only[e]);
            if (next < t->offsets[i + 1] && t->filtered[next] == e) {
                out = true;
                next++;
            }
            more += !out && row[e] > gold;
            same += !out && row[e] == gold;
        }
        assert_int_equal(above[i * mixture_count + mixture], more);
        assert_int_equal(equal[i * mixture_count + mixture], same);
    }
}

static int64_t check_task(lab *bench, const shape *s) {
    task t;
    random_task(bench, &t, s);
    int64_t results = t.ranked.queries.count * t.ranked.mixture_count,
            cells = t.ranked.queries.count * s->entities;
    int32_t *above[2], *equal[2];
    for (int i = 0; i < 2; i++) {
        above[i] = lab_ids(bench, results, -1, -1);
        equal[i] = lab_ids(bench, results, -1, -1);
        t.ranked.keep = i == 1;
        assert_true(count_task(bench, &t.ranked, above[i], equal[i]));
    }
    /* Now f_g stands there, and the counts are the same. */
    assert_memory_equal(above[0], above[1], (size_t)results * sizeof(int32_t));
    assert_memory_equal(equal[0], equal[1], (size_t)results * sizeof(int32_t));
    if (t.ranked.vertical)
        expect_counts(&t, lab_get(bench, t.ranked.vertical, cells), above[0], equal[0], 0);
    if (t.ranked.mixture_count > 1)
        expect_counts(&t, lab_get(bench, t.ranked.horizontal, cells), above[0], equal[0], 1);
    int64_t ties = 0;
    for (int64_t i = 0; i < results; i++) ties += equal[0][i] > 0;
    return ties;
}

/* One number that is none anywhere, in what the scores are made of. */
static void check_not_a_number(lab *bench, const shape *s) {
    for (int where = 0; where < 3; where++) {
        task t;
        random_task(bench, &t, s);
        if (where == 2 && !t.ranked.vertical) continue;
        const float *arrays[] = {t.ranked.queries.rows, t.ranked.entity_table, t.ranked.vertical};
        int64_t sizes[] = {t.ranked.queries.count * t.form.query_width,
                           (int64_t)s->entities * t.form.entity_width,
                           t.ranked.queries.count * s->entities};
        double *values = lab_get(bench, arrays[where], sizes[where]);
        values[lab_between(bench, 0, (int32_t)sizes[where] - 1)] = NAN;
        float *there = lab_put(bench, values, sizes[where]);
        if (where == 0) t.ranked.queries.rows = there;
        if (where == 1) t.ranked.entity_table = there;
        if (where == 2) t.ranked.vertical = there;
        int64_t results = t.ranked.queries.count * t.ranked.mixture_count;
        int32_t *above = lab_ids(bench, results, 0, 0), *equal = lab_ids(bench, results, 0, 0);
        assert_false(count_task(bench, &t.ranked, above, equal));
    }
}

/* Sizes on both sides of tiles of queries, entities and units. */
static const shape shapes[] = {
    {{VLP_MODEL_ROTATE, 7, 0, 0, 6}, 1, 1, 5},
    {{VLP_MODEL_ROTATE, 8, 0, 0, 6}, 64, 128, 16},
    {{VLP_MODEL_ROTATE, 33, 0, 0, 6}, 65, 129, 27},
    {{VLP_MODEL_ROTATE, 64, 0, 0, 6}, 130, 255, 17},
    {{VLP_MODEL_ROTATE, 1, 0, 0, 6}, 63, 127, 70},
    {{VLP_MODEL_ROTATE, 130, 0, 0, 6}, 9, 700, 2},
    {{VLP_MODEL_TRANSE, 5, 0, VLP_NORM_L1, 6}, 3, 300, 27},
    {{VLP_MODEL_TRANSE, 100, 0, VLP_NORM_L1, 6}, 67, 131, 5},
    {{VLP_MODEL_TRANSE, 16, 0, VLP_NORM_L2, 6}, 66, 200, 27},
    {{VLP_MODEL_TRANSE, 1, 0, VLP_NORM_L2, 6}, 20, 90, 3},
    {{VLP_MODEL_TRANSR, 6, 9, VLP_NORM_L1, 6}, 33, 150, 5},
    {{VLP_MODEL_TRANSR, 17, 4, VLP_NORM_L2, 6}, 70, 40, 27},
    {{VLP_MODEL_PAIRRE, 11, 0, 0, 6}, 40, 130, 27},
    {{VLP_MODEL_TRANSH, 10, 0, VLP_NORM_L1, 6}, 40, 130, 27},
    {{VLP_MODEL_TRANSH, 7, 0, VLP_NORM_L2, 6}, 33, 100, 5},
    {{VLP_MODEL_QUATE, 6, 0, 0, 6}, 40, 130, 5},
    {{VLP_MODEL_DISTMULT, 20, 0, 0, 6}, 33, 150, 27},
    {{VLP_MODEL_COMPLEX, 9, 0, 0, 6}, 65, 300, 5},
    {{VLP_MODEL_RESCAL, 8, 0, 0, 6}, 5, 33, 5},
};

static void test_made(void **state) {
    (void)state;
    int64_t ties = 0;
    lab bench;
    lab_open(&bench, 2, SEED + 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int round = 0; round < 3; round++) {
            ties += check_task(&bench, &shapes[i]);
            lab_clear(&bench);
        }
    assert_true(ties > 1000);
    lab_close(&bench);
}

static void test_not_a_number(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 2, SEED + 2);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int round = 0; round < 3; round++) {
            check_not_a_number(&bench, &shapes[i]);
            lab_clear(&bench);
        }
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_not_a_number),
    };
    return cmocka_run_group_tests_name("rank", tests, NULL, NULL);
}
