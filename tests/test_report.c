/* What a report is made from: ranks that evaluations keep, comparisons of them, the course of training,
 * settings of a run. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"

static const char *work;

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static void near_to(double value, double expected, double apart) {
    if (!(fabs(value - expected) <= apart)) fail_msg("%.17g is not %.17g", value, expected);
}

/* Two data sets, and on the first of them a run with a head and one without, on the second one run. */
static int make_runs(void **state) {
    (void)state;
    work = support_folder();
    vlp_family_options family = VLP_FAMILY_OPTIONS_INIT;
    family.families = 6;
    family.generations = 3;
    must(vlp_family_generate(NULL, support_path(work, "people"), &family));
    family.seed = 5;
    must(vlp_family_generate(NULL, support_path(work, "others"), &family));
    static const struct {
        const char *data, *run, *more;
    } runs[] = {{"people", "head", "vertical=on"},
                {"people", "bare", "vertical=off"},
                {"others", "far", "seed=3"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *settings[] = {"steps=40",     "batch=64",  "negatives=16", "dim=8",     "rate=0.02",
                                  "eval_every=8", "threads=2", "references=3", runs[i].more};
        vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
        options.settings = settings;
        options.setting_count = sizeof settings / sizeof *settings;
        must(vlp_train(NULL, support_path(work, runs[i].data), support_path(work, runs[i].run),
                       &options));
    }
    return 0;
}

static int remove_runs(void **state) {
    (void)state;
    support_remove(work);
    return 0;
}

static vlp_run *open_run(const char *name) {
    vlp_run *run = NULL;
    must(vlp_run_open(&run, support_path(work, name), NULL));
    return run;
}

static vlp_evaluation *evaluate(vlp_run *run, vlp_split split, vlp_sides sides, unsigned filter) {
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    options.split = split;
    options.sides = sides;
    options.filter = filter;
    vlp_evaluation *evaluation = NULL;
    must(vlp_run_evaluate(&evaluation, run, &options));
    return evaluation;
}

/* ---- Ranks ---- */

/* The mean of 1 / rank over the queries from `first` on. */
static double mrr(const vlp_evaluation *evaluation, vlp_ranked_by by, int64_t first, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += 1 / vlp_evaluation_rank(evaluation, by, first + i);
    return sum / (double)count;
}

static void ranks_give_the_figures(void **state) {
    (void)state;
    vlp_run *run = open_run("head");
    vlp_evaluation *both = evaluate(run, VLP_TEST, VLP_BOTH_SIDES, 0);
    vlp_evaluation *heads = evaluate(run, VLP_TEST, VLP_HEADS, 0);
    int64_t triples = both->queries / 2;
    near_to(mrr(both, VLP_BY_F, 0, both->queries), both->both.mrr, 1e-12);
    near_to(mrr(both, VLP_BY_F_G, 0, both->queries), both->alone[VLP_HORIZONTAL].mrr, 1e-12);
    near_to(mrr(both, VLP_BY_F_C, 0, both->queries), both->alone[VLP_VERTICAL].mrr, 1e-12);
    near_to(mrr(both, VLP_BY_F, 0, triples), both->tail.mrr, 1e-12);
    near_to(mrr(both, VLP_BY_F, triples, triples), both->head.mrr, 1e-12);
    /* Of one side, queries keep their numbers, and those of the other side are not there. */
    for (int64_t i = 0; i < triples; i++) {
        assert_true(isnan(vlp_evaluation_rank(heads, VLP_BY_F, i)));
        near_to(vlp_evaluation_rank(heads, VLP_BY_F, triples + i),
                vlp_evaluation_rank(both, VLP_BY_F, triples + i), 0);
    }
    assert_true(isnan(vlp_evaluation_rank(both, VLP_BY_F, -1)));
    assert_true(isnan(vlp_evaluation_rank(both, VLP_BY_F, both->queries)));
    vlp_evaluation_free(both);
    vlp_evaluation_free(heads);
    vlp_run_free(run);
}

/* ---- Comparing ---- */

static void differences_are_those_of_the_figures(void **state) {
    (void)state;
    vlp_run *head = open_run("head"), *bare = open_run("bare");
    vlp_evaluation *a = evaluate(head, VLP_TEST, VLP_BOTH_SIDES, 0);
    vlp_evaluation *b = evaluate(bare, VLP_TEST, VLP_BOTH_SIDES, 0);
    vlp_interval interval, back;
    must(vlp_evaluation_compare(&interval, a, VLP_BY_F, b, VLP_BY_F));
    near_to(interval.middle, b->both.mrr - a->both.mrr, 1e-12);
    assert_true(interval.low <= interval.middle && interval.middle <= interval.high);
    assert_true(interval.low < interval.high);
    must(vlp_evaluation_compare(&back, b, VLP_BY_F, a, VLP_BY_F));
    near_to(back.middle, -interval.middle, 1e-12);
    /* An evaluation does not differ from itself, and its parts do by what their figures say. */
    must(vlp_evaluation_compare(&interval, a, VLP_BY_F, a, VLP_BY_F));
    near_to(interval.low, 0, 0);
    near_to(interval.high, 0, 0);
    must(vlp_evaluation_compare(&interval, a, VLP_BY_F_G, a, VLP_BY_F_C));
    near_to(interval.middle, a->alone[VLP_VERTICAL].mrr - a->alone[VLP_HORIZONTAL].mrr, 1e-12);
    vlp_evaluation_free(a);
    vlp_evaluation_free(b);
    vlp_run_free(head);
    vlp_run_free(bare);
}

/* With one side, the interval is that of its own queries. */
static void one_side_is_compared(void **state) {
    (void)state;
    vlp_run *head = open_run("head"), *bare = open_run("bare");
    vlp_evaluation *a = evaluate(head, VLP_TEST, VLP_TAILS, 0);
    vlp_evaluation *b = evaluate(bare, VLP_TEST, VLP_TAILS, 0);
    vlp_interval interval;
    must(vlp_evaluation_compare(&interval, a, VLP_BY_F, b, VLP_BY_F));
    near_to(interval.middle, b->both.mrr - a->both.mrr, 1e-12);
    assert_true(interval.low < interval.middle && interval.middle < interval.high);
    vlp_evaluation_free(a);
    vlp_evaluation_free(b);
    vlp_run_free(head);
    vlp_run_free(bare);
}

static void refused(const vlp_evaluation *a, vlp_ranked_by a_by, const vlp_evaluation *b,
                    vlp_ranked_by b_by, const char *why) {
    vlp_interval interval = {7, 7, 7};
    assert_int_equal(vlp_evaluation_compare(&interval, a, a_by, b, b_by), VLP_ERROR_ARGUMENT);
    if (!strstr(vlp_error_message(), why)) fail_msg("%s", vlp_error_message());
    near_to(interval.middle, 7, 0);
}

static void what_cannot_be_compared_is_refused(void **state) {
    (void)state;
    vlp_run *head = open_run("head"), *bare = open_run("bare"), *far = open_run("far");
    vlp_evaluation *test = evaluate(head, VLP_TEST, VLP_BOTH_SIDES, 0);
    vlp_evaluation *valid = evaluate(head, VLP_VALID, VLP_BOTH_SIDES, 0);
    vlp_evaluation *heads = evaluate(head, VLP_TEST, VLP_HEADS, 0);
    vlp_evaluation *tails = evaluate(head, VLP_TEST, VLP_TAILS, 0);
    vlp_evaluation *raw = evaluate(head, VLP_TEST, VLP_BOTH_SIDES, 1u << VLP_TEST);
    vlp_evaluation *plain = evaluate(bare, VLP_TEST, VLP_BOTH_SIDES, 0);
    vlp_evaluation *other = evaluate(far, VLP_TEST, VLP_BOTH_SIDES, 0);
    refused(test, VLP_BY_F, other, VLP_BY_F, "different data sets");
    refused(test, VLP_BY_F, valid, VLP_BY_F, "other queries");
    refused(heads, VLP_BY_F, tails, VLP_BY_F, "other queries");
    refused(test, VLP_BY_F, tails, VLP_BY_F, "other queries");
    refused(test, VLP_BY_F, raw, VLP_BY_F, "other candidates");
    refused(test, VLP_BY_F, plain, VLP_BY_F_C, "without a component");
    assert_true(isnan(vlp_evaluation_rank(plain, VLP_BY_F_C, 0)));
    vlp_evaluation *all[] = {test, valid, heads, tails, raw, plain, other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) vlp_evaluation_free(all[i]);
    vlp_run_free(head);
    vlp_run_free(bare);
    vlp_run_free(far);
}

/* ---- The course of training ---- */

static void history_is_what_was_noted(void **state) {
    (void)state;
    vlp_run *run = open_run("head");
    vlp_history *history = NULL;
    must(vlp_run_history(&history, run));
    assert_int_equal(history->count, 5);
    double best = 0;
    for (int64_t i = 0; i < history->count; i++) {
        assert_int_equal(history->items[i].step, 8 * (i + 1));
        assert_true(history->items[i].losses[VLP_HORIZONTAL] > 0 &&
                    history->items[i].losses[VLP_VERTICAL] > 0);
        best = fmax(best, history->items[i].valid_mrr);
    }
    vlp_run_info info;
    vlp_run_describe(&info, run);
    near_to(best, info.valid_mrr, 1e-6); /* the file has six digits */
    vlp_history_free(history);

    /* Figures that a version does not know, or does not have, are no damage. */
    char *kept = support_read(support_path(work, "head"), "metrics.jsonl");
    support_write_text(support_path(work, "head"), "metrics.jsonl",
                       "{\"step\":1,\"loss\":1,\"loss_path\":-2e-05,\"loss_vertical\":2.5,"
                       "\"valid_mrr\":null}\n{\"step\":7}\n");
    must(vlp_run_history(&history, run));
    assert_int_equal(history->count, 2);
    assert_true(isnan(history->items[0].losses[VLP_HORIZONTAL]) && isnan(history->items[0].valid_mrr));
    near_to(history->items[0].losses[VLP_VERTICAL], 2.5, 0);
    assert_true(history->items[1].step == 7 && isnan(history->items[1].losses[VLP_VERTICAL]));
    vlp_history_free(history);

    /* A damaged line is named. */
    static const struct {
        const char *text;
        size_t size; /* 0: up to the end of the text */
        const char *place;
    } damaged[] = {{"{\"step\":1,\"loss\":nan}\n", 0, "metrics.jsonl:1:"},
                   {"{\"step\":1}\nno line of ours\n", 0, "metrics.jsonl:2:"},
                   {"{\"step\":1}\n{\"step\":2}\n{\"step\":9", 0, "metrics.jsonl:3:"},
                   {"{\"step\":1}\n\n", 0, "metrics.jsonl:2:"},
                   {"{\"step\":1,\"loss\":1.2.3}\n", 0, "metrics.jsonl:1:"},
                   {"{\"step\":-1}\n", 0, "metrics.jsonl:1:"},
                   {"{\"step\":3}\0\n{\"step\":4}\n", 23, "metrics.jsonl:1:"}};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        support_write(support_path(work, "head"), "metrics.jsonl", damaged[i].text,
                      damaged[i].size ? damaged[i].size : strlen(damaged[i].text));
        assert_int_equal(vlp_run_history(&history, run), VLP_ERROR_FORMAT);
        assert_null(history);
        assert_non_null(strstr(vlp_error_message(), damaged[i].place));
    }
    support_write_text(support_path(work, "head"), "metrics.jsonl", kept);
    free(kept);
    vlp_run_free(run);
}

static void settings_are_those_of_training(void **state) {
    (void)state;
    vlp_run *run = open_run("far");
    vlp_setting_info info;
    char text[64];
    int found = 0;
    for (int32_t i = 0; vlp_setting_describe(&info, i); i++) {
        assert_true(vlp_run_setting(text, run, i));
        if (strcmp(info.name, "seed") == 0) found += strcmp(text, "3") == 0;
        if (strcmp(info.name, "rate") == 0) found += strcmp(text, "0.02") == 0;
        if (strcmp(info.name, "margin") == 0) found += strcmp(text, info.fallback) == 0;
        assert_false(vlp_run_setting(text, run, i + 1000));
    }
    assert_int_equal(found, 3);
    assert_false(vlp_run_setting(text, run, -1));
    assert_string_equal(vlp_run_version(run), vlp_version());
    assert_int_equal(strlen(vlp_run_checksum(run)), 32);
    vlp_run_free(run);
}

/* ---- Memory ---- */

static void no_memory_is_told(void **state) {
    (void)state;
    vlp_run *run = open_run("head");
    vlp_evaluation *evaluation = evaluate(run, VLP_TEST, VLP_TAILS, 0);
    failing_allocator memory;
    vlp_status status;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_history *history = NULL;
        vlp_interval interval;
        status = vlp_run_history(&history, run);
        if (status == VLP_OK)
            status = vlp_evaluation_compare(&interval, evaluation, VLP_BY_F, evaluation, VLP_BY_F_G);
        vlp_history_free(history);
        failing_allocator_remove(&memory);
        if (memory.failed) assert_int_equal(status, VLP_ERROR_MEMORY);
    } while (memory.failed);
    must(status);
    assert_true(call > 4); /* it did fail some */
    vlp_evaluation_free(evaluation);
    vlp_run_free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_give_the_figures),
        cmocka_unit_test(differences_are_those_of_the_figures),
        cmocka_unit_test(one_side_is_compared),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
        cmocka_unit_test(history_is_what_was_noted),
        cmocka_unit_test(settings_are_those_of_training),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, make_runs, remove_runs);
}
