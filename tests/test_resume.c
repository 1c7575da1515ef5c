/* Resuming a run: which settings it takes, where schedules go on, that edited files are noticed; and
 * what failed or killed trainings leave behind: nothing. */
#include "run_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_allocator.h"

/* ---- Settings ------------------------------------------------------------------------------------ */

/* Puts `to` in the place of `from` in config.ini. */
static void edit_config(const char *run, const char *from, const char *to) {
    char *config = support_read(run, "config.ini"), *at = strstr(config, from), text[8192];
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    support_write_text(run, "config.ini", text);
    free(config);
}

static void config_is_not_trusted(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } edits[] = {{"margin = 6\n", "margin = 9\n", "margin = 9, not 6"},
                 {"references = 3\n", "", "references = 8, not 3"},
                 {"vertical = on\n", "vertical = off\n", "vertical = off, not on"},
                 {"dim = 6\n", "dim = 7\n", "dim = 7, not 6"},
                 {"seed = 0\n", "seed = 1\n", "seed = 1, not 0"}};
    const char *folder = support_folder();
    char run[64], other[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    must(run_start(run_family(), run, NULL));
    vlp_run *opened = NULL;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *kept = support_read(run, "config.ini");
        edit_config(run, edits[i].from, edits[i].to);
        run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, edits[i].part);
        assert_non_null(strstr(vlp_error_message(), "config.ini does not fit the weights beside it"));
        run_expect(run_resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, edits[i].part);
        vlp_train_options over = VLP_TRAIN_OPTIONS_INIT;
        over.base = run;
        assert_int_not_equal(vlp_train(NULL, run_family(), other, &over), VLP_OK);
        assert_int_equal(access(other, F_OK), -1);
        support_write_text(run, "config.ini", kept);
        free(kept);
    }
    edit_config(run, "eval_every = 4\n", "eval_every = 5\n");
    edit_config(run, "threads = 2\n", "threads = 1\n");
    must(vlp_run_open(&opened, run, NULL));
    vlp_run_free(opened);
    must(run_resume(NULL, run, NULL, NULL));
    /* A damaged line of the metrics. */
    char *lines = support_read(run, "metrics.jsonl");
    *strchr(lines, ',') = ';';
    support_write_text(run, "metrics.jsonl", lines);
    run_expect(run_resume(NULL, run, "steps=14", NULL), VLP_ERROR_FORMAT, "metrics.jsonl:1: damaged");
    free(lines);
    support_remove(folder);
}

static void resume_takes_some_settings(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], whole[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    must(run_start(run_family(), run, NULL));
    must(run_start(run_family(), whole, "steps=20"));
    run_expect(run_resume(NULL, run, "dim=9", NULL), VLP_ERROR_ARGUMENT,
               "was started with dim = 6, not 9");
    run_expect(run_resume(NULL, run, "schedule=cosine", NULL), VLP_ERROR_ARGUMENT,
               "was started with schedule = constant, not cosine");
    run_expect(run_resume(NULL, run, "steps=11", NULL), VLP_ERROR_ARGUMENT, "has done 12 steps");
    run_expect(run_resume(NULL, run, "stepz=11", NULL), VLP_ERROR_UNKNOWN,
               "there is no setting 'stepz'");
    /* Its own settings again, and adjustable ones. */
    vlp_train_report report;
    must(run_resume(&report, run, "dim=6", "patience=9"));
    assert_int_equal(report.call_steps, 0);
    assert_int_equal(report.steps, 12);
    /* Further, with an interruption, and as if it had been so from the start. */
    run_stopper when = {.at = 15};
    vlp_observer observer = run_stop_at(&when);
    const char *more[] = {"steps=20", "save_every=2", "eval_every=0", "patience=0"};
    vlp_train_options options = run_options(more, 4, true);
    options.observer = &observer;
    assert_int_equal(vlp_train(&report, run_family(), run, &options), VLP_ERROR_STOPPED);
    assert_int_equal(report.call_steps, 3);
    must(run_resume(&report, run, NULL, NULL));
    assert_int_equal(report.call_steps, 5);
    assert_int_equal(report.steps, 20);
    assert_true(report.seconds < 60);
    assert_true(run_same_state(run, whole));
    char *config = support_read(run, "config.ini");
    assert_true(strstr(config, "\nsteps = 20\n") && strstr(config, "\nsave_every = 2\n"));
    free(config);
    char *log = support_read(run, "train.log");
    assert_non_null(strstr(log, "20 steps instead of 12\n")); /* a constant rate has no schedule */
    free(log);
    support_remove(folder);
}

/* A schedule that depends on the steps starts anew where they are changed: with one step more, its first
 * rate is used twice, as a constant one is. Interrupted, it goes on from where it started anew. */
static void schedules_start_anew(void **state) {
    (void)state;
    static const char *const schedules[] = {"schedule=linear", "schedule=cosine", "schedule=step"};
    const char *folder = support_folder();
    char constant[64], run[64], other[64];
    for (int i = 0; i < 3; i++) {
        snprintf(constant, sizeof constant, "%s/constant-%d", folder, i);
        snprintf(run, sizeof run, "%s/run-%d", folder, i);
        snprintf(other, sizeof other, "%s/other-%d", folder, i);
        const char *settings[] = {schedules[i], "steps=1",   "batch=32",  "negatives=6",
                                  "dim=6",      "rate=0.03", "threads=2", "references=3"};
        const char *always[] = {"schedule=constant", "steps=2",   "batch=32",    "negatives=6", "dim=6",
                                "rate=0.03",         "threads=2", "references=3"};
        vlp_train_options options = run_options(settings, 8, false);
        must(vlp_train(NULL, run_family(), run, &options));
        must(vlp_train(NULL, run_family(), other, &options));
        options.settings = always;
        must(vlp_train(NULL, run_family(), constant, &options));
        must(run_resume(NULL, run, "steps=2", NULL));
        assert_true(run_same_state(run, constant));
        char *log = support_read(run, "train.log");
        assert_non_null(
            strstr(log, "2 steps instead of 1; the schedule of the learning rate starts anew"));
        free(log);
        /* To 6 steps in one go, and in two. */
        must(run_resume(NULL, run, "steps=6", NULL));
        must(run_resume(NULL, other, "steps=2", NULL));
        run_stopper when = {.at = 4};
        vlp_observer observer = run_stop_at(&when);
        const char *more[] = {"steps=6"};
        options = run_options(more, 1, true);
        options.observer = &observer;
        assert_int_equal(vlp_train(NULL, run_family(), other, &options), VLP_ERROR_STOPPED);
        must(run_resume(NULL, other, "threads=2", NULL));
        assert_true(run_same_state(run, other));
    }
    support_remove(folder);
}

/* The only step of a run has the whole rate. */
static void one_step_is_not_decayed(void **state) {
    (void)state;
    const char *folder = support_folder();
    char constant[64], run[64];
    snprintf(constant, sizeof constant, "%s/constant", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    const char *settings[] = {"schedule=step", "steps=1", "dim=6", "rate=0.03", "threads=2"};
    vlp_train_options options = run_options(settings, 5, false);
    must(vlp_train(NULL, run_family(), run, &options));
    settings[0] = "schedule=constant";
    must(vlp_train(NULL, run_family(), constant, &options));
    assert_true(run_same_state(run, constant));
    support_remove(folder);
}

/* A run that has run out of patience is finished: resuming does nothing, unless with more patience. */
static void patience_ends_a_run(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    /* Rates this small change no rank. */
    const char *settings[] = {"steps=100", "dim=6",        "batch=32",   "negatives=6", "rate=1e-12",
                              "threads=2", "eval_every=2", "patience=2", "references=3"};
    vlp_train_options options = run_options(settings, 9, false);
    vlp_train_report report;
    must(vlp_train(&report, run_family(), run, &options));
    assert_int_equal(report.steps, 6);
    must(run_resume(&report, run, NULL, NULL));
    assert_int_equal(report.call_steps, 0);
    must(run_resume(&report, run, "patience=3", NULL));
    assert_int_equal(report.call_steps, 2);
    support_remove(folder);
}

/* ---- Nothing is left ----------------------------------------------------------------------------- */

static void leftovers_are_swept(void **state) {
    (void)state;
    static const char *const files[] = {"model.safetensors.partial-4711", "state.safetensors.partial-1",
                                        "metrics.jsonl.partial-12-3", "state.previous.safetensors.link",
                                        "calibration.safetensors.partial-99"};
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    must(run_start(run_family(), run, NULL));
    int count = support_count(run);
    for (int i = 0; i < 5; i++) support_write_text(run, files[i], "half");
    support_write_text(run, "notes.partial-mine", "not ours");
    must(run_resume(NULL, run, NULL, NULL));
    assert_int_equal(support_count(run), count + 1);
    unlink(support_path(run, "notes.partial-mine"));

    /* A training that was killed before its run was begun. */
    snprintf(run, sizeof run, "%s/killed", folder);
    mkdir(run, 0777);
    support_write_text(run, "train.lock", "4711 elsewhere.example\n");
    support_write_text(run, "entities.tsv", "a\n");
    support_write_text(run, "triples.tsv.gz.partial-4711", "half");
    must(run_start(run_family(), run, NULL));
    assert_int_equal(support_count(run), count);
    support_remove(folder);
}

static void other_files_are_refused(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], full[64], file[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(full, sizeof full, "%s/full", folder);
    snprintf(file, sizeof file, "%s/file", folder);
    mkdir(full, 0777);
    mkdir(run, 0777); /* empty: fine */
    support_write_text(full, "entities.tsv", "mine\n");
    support_write_text(full, "x.partial-7", "mine\n");
    support_write_text(folder, "file", "mine\n");
    for (int i = 0; i < 2; i++) {
        const char *settings[] = {"steps=1"};
        vlp_train_options options = run_options(settings, 1, i == 1);
        run_expect(vlp_train(NULL, run_family(), full, &options), VLP_ERROR_EXISTS,
                   "is not a run, and holds ");
        assert_int_equal(support_count(full), 2);
        assert_int_not_equal(vlp_train(NULL, run_family(), file, &options), VLP_OK);
    }
    must(run_start(run_family(), run, NULL));
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, NULL));
    assert_int_not_equal(vlp_run_export(opened, full), VLP_OK);
    assert_non_null(strstr(vlp_error_message(), "not empty"));
    assert_int_equal(support_count(full), 2);
    unlink(support_path(full, "entities.tsv"));
    unlink(support_path(full, "x.partial-7"));
    must(vlp_run_export(opened, full));
    assert_int_equal(support_count(full), 10);
    vlp_run_free(opened);
    char *text = support_read(folder, "file");
    assert_string_equal(text, "mine\n");
    free(text);
    support_remove(folder);
}

static void failed_starts_leave_nothing(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], there[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(there, sizeof there, "%s/there", folder);
    mkdir(there, 0777);
    static const char *const settings[] = {"dims=3", "model=nothing", "trains=aggregator",
                                           "candidates=2000000000"};
    for (int i = 0; i < 4; i++) {
        assert_int_not_equal(run_start(run_family(), run, settings[i]), VLP_OK);
        assert_int_equal(support_count(folder), 1);
        assert_int_not_equal(run_start(run_family(), there, settings[i]), VLP_OK);
        assert_int_equal(support_count(there), 0);
    }
    assert_int_not_equal(run_start(there, run, NULL), VLP_OK); /* no data set */
    assert_int_equal(support_count(folder), 1);
    /* Stopped while it was prepared. */
    run_stopper when = {.now = true};
    vlp_observer observer = run_stop_at(&when);
    vlp_train_options options = run_options(run_usual, RUN_USUAL, false);
    options.observer = &observer;
    assert_int_equal(vlp_train(NULL, run_family(), run, &options), VLP_ERROR_STOPPED);
    assert_int_equal(support_count(folder), 1);
    support_remove(folder);
}

/* Whatever allocation fails: a run that was saved can be resumed, and one that was not is gone. */
static void check_allocations(const char *model, const char *loss) {
    const char *folder = support_folder();
    char run[64], whole[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    const char *settings[] = {"steps=2",      "dim=3",        "batch=8",     "negatives=2", "threads=1",
                              "save_every=1", "references=2", "vertical=on", model,         loss};
    vlp_train_options options = run_options(settings, 10, false);
    must(vlp_train(NULL, run_family(), whole, &options));
    failing_allocator memory;
    int64_t call = 0;
    int saved = 0, gone = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_train(NULL, run_family(), run, &options);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || memory.failed);
        bool there = access(run, F_OK) == 0;
        if (status != VLP_OK && there) {
            assert_int_equal(access(support_path(run, "train.lock"), F_OK), -1);
            must(run_resume(NULL, run, NULL, NULL));
            saved++;
        }
        gone += !there;
        if (there) {
            assert_true(run_same_state(run, whole));
            support_remove(run);
        }
    } while (memory.failed);
    assert_true(gone > 50 && saved > 5);
    support_remove(folder);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    check_allocations("model=rotate", "loss=negative-sampling");
    check_allocations("model=distmult", "loss=kvsall");
}

/* ---- What is told -------------------------------------------------------------------------------- */

/* More candidates than entities are refused before any work, and named. */
static void candidates_are_checked(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, run_family(), NULL));
    int32_t entities = vlp_dataset_entity_count(dataset);
    vlp_dataset_free(dataset);
    char most[32], beyond[32], part[64];
    snprintf(most, sizeof most, "candidates=%d", entities);
    snprintf(beyond, sizeof beyond, "candidates=%d", entities + 1);
    snprintf(part, sizeof part, "candidates = %d is more than the %d entities", entities + 1, entities);
    run_expect(run_start(run_family(), run, beyond), VLP_ERROR_ARGUMENT, part);
    must(run_start(run_family(), run, most));
    support_remove(folder);
}

/* Beyond its budget, the sampler's approximation is in train.log as well as in the observer's lines. */
static void approximation_is_noted(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], run[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    mkdir(data, 0777);
    FILE *file = fopen(support_path(data, "train.txt"), "w");
    assert_non_null(file);
    for (int i = 0; i < 3000; i++) fprintf(file, "e%d\tr\te%d\n", i, (i * 7 + 1) % 3000);
    fclose(file);
    const char *settings[] = {"steps=1",      "dim=2",     "batch=8",          "negatives=2",
                              "vertical=off", "threads=2", "distance_memory=1"};
    vlp_train_options options = run_options(settings, 7, false);
    must(vlp_train(NULL, data, run, &options));
    char *log = support_read(run, "train.log");
    assert_non_null(strstr(log, "near shells are exact"));
    free(log);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_is_not_trusted),     cmocka_unit_test(resume_takes_some_settings),
        cmocka_unit_test(schedules_start_anew),      cmocka_unit_test(one_step_is_not_decayed),
        cmocka_unit_test(patience_ends_a_run),       cmocka_unit_test(leftovers_are_swept),
        cmocka_unit_test(other_files_are_refused),   cmocka_unit_test(failed_starts_leave_nothing),
        cmocka_unit_test(every_allocation_may_fail), cmocka_unit_test(candidates_are_checked),
        cmocka_unit_test(approximation_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
