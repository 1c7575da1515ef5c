/* Thresholds between true and false triples: the fit against every threshold there is, and a run's
 * against scores from the definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

#include "base/random.h"
#include "failing_allocator.h"
#include "run/classify.h"
#include "run/score.h"
#include "run_lab.h"

/* ---- The fit ------------------------------------------------------------------------------------- */

/* True and false triples weighted equally; `relation` -1: all. */
static double accuracy_of(const vlp_judged *items, int64_t count, int32_t relation, double threshold) {
    double found = 0, positives = 0, rejected = 0, negatives = 0;
    for (int64_t i = 0; i < count; i++) {
        if (relation >= 0 && items[i].relation != relation) continue;
        bool taken = items[i].score >= threshold;
        positives += items[i].is_true;
        negatives += !items[i].is_true;
        found += items[i].is_true && taken;
        rejected += !items[i].is_true && !taken;
    }
    return (found / positives + rejected / negatives) / 2;
}

/* The best accuracy of all thresholds: every score is one, and so is what lies above all of them. */
static double best_accuracy(const vlp_judged *items, int64_t count, int32_t relation) {
    double best = accuracy_of(items, count, relation, INFINITY);
    for (int64_t i = 0; i < count; i++) {
        double accuracy = accuracy_of(items, count, relation, items[i].score);
        if (accuracy > best) best = accuracy;
    }
    return best;
}

static int by_score(const void *left, const void *right) {
    const vlp_judged *a = left, *b = right;
    return (a->score > b->score) - (a->score < b->score);
}

static void best_threshold(void **state) {
    (void)state;
    enum { MOST = 60 };
    oracle_random random = {5, 6, 7};
    for (int round = 0; round < 300; round++) {
        vlp_judged items[MOST];
        int32_t count = 2 + oracle_below(&random, MOST - 1), values = 1 + oracle_below(&random, 40);
        for (int32_t i = 0; i < count; i++)
            items[i] = (vlp_judged){0, i == 0 || (i > 1 && oracle_below(&random, 3) == 0),
                                    0.25 * oracle_below(&random, values)};
        for (int32_t i = 0; i < count; i++) items[i].score += items[i].is_true * (round % 4);
        qsort(items, (size_t)count, sizeof *items, by_score);
        double threshold = vlp_threshold_fit(items, count);
        near(accuracy_of(items, count, -1, threshold), best_accuracy(items, count, -1));
    }
    /* In the middle of the widest of two gaps that are as good; everything is true below the lowest. */
    const vlp_judged two[] = {{0, false, 1}, {0, true, 2}, {0, false, 4}, {0, true, 8}};
    assert_true(vlp_threshold_fit(two, 4) == 6);
    const vlp_judged only[] = {{0, true, 3}, {0, true, 3}};
    assert_true(vlp_threshold_fit(only, 2) == 3);
    assert_true(vlp_threshold_fit(NULL, 0) == 0);
}

/* ---- A run --------------------------------------------------------------------------------------- */

enum { MOST = 1000 };

static bool in_split(const vlp_dataset *dataset, vlp_triple asked, vlp_split split) {
    int64_t count;
    const vlp_triple *triples = vlp_dataset_triples(dataset, split, &count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&triples[i], &asked, sizeof asked) == 0) return true;
    return false;
}

/* The triples of a split and their corruptions, with scores by the definitions. */
static int64_t judged_of(vlp_judged *out, const tiny_run *tiny, vlp_split split, int32_t exchanges,
                         uint64_t seed) {
    vlp_corruption corruption = {.run = tiny->run, .seed = seed, .stream = VLP_STREAM_CLASSES};
    must(vlp_filter_new(&corruption.known, tiny->dataset, split == VLP_VALID ? 3 : 7));
    must(vlp_places_new(&corruption.places, tiny->dataset->graph));
    int64_t positives, count = 0;
    const vlp_triple *triples = vlp_dataset_triples(tiny->dataset, split, &positives);
    for (int64_t i = 0; i < positives; i++)
        out[count++] = (vlp_judged){triples[i].relation, true, tiny_run_triple(tiny, triples[i]).f};
    for (int64_t i = 0; i < positives; i++)
        for (int32_t draw = 0; draw < 2 * exchanges; draw++) {
            vlp_triple triple;
            if (!vlp_corrupt(&triple, &corruption, triples[i], ((int64_t)split << 40) + i, draw / 2,
                             draw % 2 == 0))
                continue;
            assert_int_equal((triple.head != triples[i].head) + (triple.tail != triples[i].tail), 1);
            assert_false(in_split(tiny->dataset, triple, VLP_TRAIN));
            assert_false(in_split(tiny->dataset, triple, VLP_VALID));
            assert_false(split == VLP_TEST && in_split(tiny->dataset, triple, VLP_TEST));
            out[count++] = (vlp_judged){triple.relation, false, tiny_run_triple(tiny, triple).f};
        }
    assert_true(count <= MOST);
    vlp_filter_free(corruption.known);
    vlp_places_free(corruption.places);
    return count;
}

static void check_classes(const tiny_run *tiny, const vlp_classification *got,
                          const vlp_classification_options *options) {
    static vlp_judged valid[MOST], test[MOST];
    int64_t valid_count = judged_of(valid, tiny, VLP_VALID, options->exchanges, options->seed);
    int64_t test_count = judged_of(test, tiny, VLP_TEST, options->exchanges, options->seed);
    near(accuracy_of(valid, valid_count, -1, got->threshold), best_accuracy(valid, valid_count, -1));
    assert_int_equal(got->positives + got->negatives, valid_count);
    assert_int_equal(got->test_positives + got->test_negatives, test_count);
    assert_int_equal(got->relation_count, tiny->relations);
    double found = 0, rejected = 0;
    for (int32_t r = 0; r < tiny->relations; r++) {
        const vlp_relation_threshold *of = &got->relations[r];
        int64_t positives = 0, negatives = 0, test_positives = 0;
        for (int64_t i = 0; i < valid_count; i++) {
            positives += valid[i].relation == r && valid[i].is_true;
            negatives += valid[i].relation == r && !valid[i].is_true;
        }
        for (int64_t i = 0; i < test_count; i++) {
            if (test[i].relation != r) continue;
            bool taken = vlp_classification_holds(got, r, test[i].score);
            assert_int_equal(taken, test[i].score >= of->threshold);
            test_positives += test[i].is_true;
            found += test[i].is_true && taken;
            rejected += !test[i].is_true && !taken;
        }
        assert_int_equal(of->positives, positives);
        assert_int_equal(of->negatives, negatives);
        assert_int_equal(of->test_positives, test_positives);
        assert_int_equal(of->own, positives >= options->minimum && negatives >= options->minimum);
        if (of->own)
            near(accuracy_of(valid, valid_count, r, of->threshold),
                 best_accuracy(valid, valid_count, r));
        else
            assert_true(of->threshold == got->threshold);
        if (test_positives > 0) near(of->test_accuracy, accuracy_of(test, test_count, r, of->threshold));
    }
    near(got->test_true_rate, found / (double)got->test_positives);
    near(got->test_false_rate, rejected / (double)got->test_negatives);
    near(got->test_accuracy, (got->test_true_rate + got->test_false_rate) / 2);
}

static void thresholds_of_a_run(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        tiny_run tiny;
        tiny_run_make(&tiny, NULL, 400 + seed);
        vlp_classification_options options = VLP_CLASSIFICATION_OPTIONS_INIT;
        options.seed = seed;
        options.exchanges = 1 + (int32_t)seed;
        options.minimum = seed == 2 ? 5 : 4;
        vlp_classification *first = NULL, *second = NULL;
        must(vlp_run_classify(&first, tiny.run, &options));
        check_classes(&tiny, first, &options);
        /* The same again: from the folder, and fitted anew where what is there is damaged. */
        for (int damaged = 0; damaged < 2; damaged++) {
            FILE *file = fopen(support_path(tiny.path, "thresholds.safetensors"), "r+");
            assert_non_null(file);
            fseek(file, -3, SEEK_END);
            if (damaged) fputc('x', file);
            fclose(file);
            must(vlp_run_classify(&second, tiny.run, &options));
            assert_true(first->threshold == second->threshold);
            assert_true(first->positives == second->positives && first->negatives == second->negatives);
            assert_true(first->accuracy == second->accuracy);
            assert_true(first->test_true_rate == second->test_true_rate &&
                        first->test_false_rate == second->test_false_rate &&
                        first->test_accuracy == second->test_accuracy);
            assert_memory_equal(first->relations, second->relations,
                                (size_t)first->relation_count * sizeof *first->relations);
            vlp_classification_free(second);
        }
        /* Other weights: what is there does not count. */
        tiny.run->gate->fingerprint[0] = '\0';
        tiny.run->progress.mixture.weights[VLP_HORIZONTAL] = 2;
        vlp_run_set_graph(tiny.run, NULL); /* the predictors are made anew, with the other mixture */
        must(vlp_run_classify(&second, tiny.run, &options));
        assert_false(first->threshold == second->threshold);
        vlp_classification_free(second);
        assert_false(vlp_classification_holds(first, -1, INFINITY));
        assert_false(vlp_classification_holds(first, first->relation_count, INFINITY));
        assert_false(vlp_classification_holds(first, 0, NAN));
        assert_false(vlp_classification_holds(NULL, 0, 1));
        vlp_classification_free(first);
        tiny_run_free(&tiny);
    }
}

/* More triples than are used: an equal share of each relation, as far as it has them. */
static void shares_of_relations(void **state) {
    (void)state;
    const char *folder = support_folder();
    FILE *train = fopen(support_path(folder, "train.txt"), "w"),
         *valid = fopen(support_path(folder, "valid.txt"), "w");
    for (int i = 0; i < 100; i++) fprintf(train, "e%d\tr%d\te%d\n", i, i % 2, (i + 1) % 100);
    for (int i = 0; i < 4500; i++) fprintf(valid, "e%d\tr0\te%d\n", i / 50, (i % 50) * 2);
    for (int i = 0; i < 300; i++) fprintf(valid, "e%d\tr1\te%d\n", i / 4, (i % 4) * 3);
    fclose(train);
    fclose(valid);
    tiny_run tiny = {0};
    snprintf(tiny.path, sizeof tiny.path, "%s/run", folder);
    snprintf(tiny.folder, sizeof tiny.folder, "%s", folder);
    const char *settings[] = {"vertical=off", NULL};
    tiny_run_train(&tiny, folder, settings);
    vlp_classification *classes = NULL;
    must(vlp_run_classify(&classes, tiny.run, NULL));
    assert_int_equal(classes->relations[0].positives, 3700);
    assert_int_equal(classes->relations[1].positives, 300);
    assert_true(isnan(classes->test_accuracy));
    assert_int_equal(classes->test_positives, 0);
    vlp_classification_free(classes);
    tiny_run_free(&tiny);
}

static void without_valid(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "a\tr\tb\nb\tr\tc\nc\tr\ta\n");
    tiny_run tiny = {0};
    snprintf(tiny.path, sizeof tiny.path, "%s/run", folder);
    snprintf(tiny.folder, sizeof tiny.folder, "%s", folder);
    tiny_run_train(&tiny, folder, NULL);
    vlp_classification *classes = NULL;
    run_expect(vlp_run_classify(&classes, tiny.run, NULL), VLP_ERROR_ARGUMENT, "has no valid");
    assert_null(classes);
    tiny_run_free(&tiny);
}

static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 410);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        call += call < 40 ? 1 : 7;
        failing_allocator_install(&memory, call);
        vlp_run *run = NULL;
        vlp_classification *classes = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_classify(&classes, run, NULL);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_classification_free(classes);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 20);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_threshold),
                                       cmocka_unit_test(thresholds_of_a_run),
                                       cmocka_unit_test(shares_of_relations),
                                       cmocka_unit_test(without_valid), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
