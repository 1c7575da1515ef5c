/* vlp_tune: its trials and its best recipe; the same results at any number of trials at a time; searches
 * that are stopped, killed, continued and extended; what is refused. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "failing_allocator.h"
#include "learn/draws.h"
#include "learn/run_folder.h"
#include "run_lab.h"

/* ---- Searches of small embeddings ---------------------------------------------------------------- */

static const char space_text[] = "rate = 0.01 .. 0.3 log\nn3 = 0.0001 .. 0.1 log\nbatch = 32, 64\n";
static const char *const usual[] = {"dim=4", "steps=540", "seed=3", "threads=2"};
enum { USUAL = sizeof usual / sizeof *usual };

static const char *folder, *space;

static int set_up(void **state) {
    (void)state;
    static char at[256];
    folder = support_folder();
    support_write_text(folder, "space.ini", space_text);
    snprintf(at, sizeof at, "%s/space.ini", folder);
    space = at;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    support_remove(folder);
    return 0;
}

static vlp_tune_options usual_options(int64_t trials) {
    vlp_tune_options options = VLP_TUNE_OPTIONS_INIT;
    options.settings = usual;
    options.setting_count = USUAL;
    options.component = VLP_HORIZONTAL;
    options.space = space;
    options.trials = trials;
    options.device = lab_device();
    return options;
}

/* ---- trials.jsonl without what differs between searches: sorted, without seconds ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* To be freed. */
static char *results_of(const char *name) {
    enum { MOST = 256 };
    char *text = support_read(support_path(folder, name), "trials.jsonl"), *lines[MOST];
    int count = 0;
    assert_non_null(text);
    assert_true(text[0] && text[strlen(text) - 1] == '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *from = strstr(line, "\"seconds\":"), *to = from ? strchr(from, ',') : NULL;
        assert_true(count < MOST && (to || count == 0));
        if (to) memmove(from, to, strlen(to) + 1);
        lines[count++] = line;
    }
    qsort(lines, (size_t)count, sizeof *lines, by_text);
    char *out = calloc(1, 1 << 17);
    assert_non_null(out);
    for (int i = 0; i < count; i++) {
        if (i > 0 && strcmp(lines[i], lines[i - 1]) == 0) fail_msg("twice: %s", lines[i]);
        strcat(strcat(out, lines[i]), "\n");
    }
    free(text);
    return out;
}

static void same_search(const char *left, const char *right) {
    char *first = results_of(left), *second = results_of(right);
    assert_string_equal(first, second);
    free(first);
    free(second);
    first = support_read(support_path(folder, left), "best.ini");
    second = support_read(support_path(folder, right), "best.ini");
    assert_non_null(first);
    assert_non_null(second);
    assert_string_equal(first, second);
    free(first);
    free(second);
}

static int lines_of(const char *name) {
    char *text = support_read(support_path(folder, name), "trials.jsonl");
    int count = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++) count++;
    free(text);
    return count;
}

/* The undisturbed search of 40 trials that others are held against. */
static const char *whole(vlp_tune_report *report) {
    static vlp_tune_report made;
    static bool is_made;
    if (!is_made) {
        vlp_tune_options options = usual_options(40);
        must(vlp_tune(&made, run_family(), support_path(folder, "whole"), &options));
        is_made = true;
    }
    if (report) *report = made;
    return "whole";
}

/* ---- Results ------------------------------------------------------------------------------------- */

/* The best recipe trains to exactly the MRR that the search saw. */
static void test_best(void **state) {
    (void)state;
    vlp_tune_report report;
    const char *name = whole(&report);
    assert_int_equal(lines_of(name), 41);
    assert_int_equal(report.trials, 40);
    assert_int_equal(report.call_trials, 40);
    assert_true(report.complete);
    assert_non_null(strstr(report.settings, "n3="));
    assert_int_equal(support_count(support_path(folder, name)), 2); /* no lock, nothing temporary */
    char recipe[256];
    snprintf(recipe, sizeof recipe, "%s", support_path(support_path(folder, name), "best.ini"));
    const char *threads[] = {"threads=1", "eval_every=0"};
    vlp_train_options options = run_options(threads, 2, false);
    vlp_train_report trained;
    options.recipe = recipe;
    must(vlp_train(&trained, run_family(), support_path(folder, "trained"), &options));
    assert_true(trained.valid_mrr == report.best.mrr);
    assert_int_equal(trained.steps, (540 + report.best.part - 1) / report.best.part);
    /* No line has a better one. */
    char *first = support_read(support_path(folder, name), "trials.jsonl"), *at = first;
    for (; (at = strstr(at, "\"mrr\":")); at++) assert_true(strtod(at + 6, NULL) <= report.best.mrr);
    free(first);
}

/* Without a space, embeddings are searched with both losses over all entities, each for as many passes
 * over what its batches are of: queries, or the fewer keys. */
static void test_losses(void **state) {
    (void)state;
    enum { DRAWN = 60, PASSES = 60 };
    vlp_dataset *dataset;
    must(vlp_dataset_open(&dataset, run_family(), NULL));
    const vlp_graph *graph = dataset->graph;
    int64_t keys = 0, queries = 2 * graph->edges;
    for (int32_t v = 0; v < graph->entities; v++)
        for (int32_t r = 0; r < 2 * graph->relations; r++) {
            bool found = false;
            for (int64_t slot = graph->offset[v]; slot < graph->offset[v + 1]; slot++)
                found = found || graph->relation[slot] == r;
            keys += found;
        }
    assert_true(keys > 0 && keys < queries);
    vlp_tune_options options = usual_options(DRAWN);
    options.space = NULL;
    options.setting_count = 1;
    vlp_draws candidates;
    must(vlp_draws_open(&candidates, dataset, &options));
    must(vlp_draws_draw(&candidates, DRAWN));
    assert_int_equal(candidates.count, DRAWN);
    int by_loss[3] = {0};
    for (int64_t i = 0; i < DRAWN; i++) {
        const vlp_settings *drawn = &candidates.drawn[i];
        by_loss[drawn->loss]++;
        int64_t items = drawn->loss == VLP_LOSS_KVSALL ? keys : queries;
        int64_t batch = drawn->batch < items ? drawn->batch : items;
        assert_int_equal(drawn->steps, (PASSES * items + batch - 1) / batch);
    }
    assert_int_equal(by_loss[VLP_LOSS_NEGATIVES], 0);
    /* Five standard deviations of a half. */
    assert_in_range(by_loss[VLP_LOSS_KVSALL], DRAWN / 2 - 20, DRAWN / 2 + 20);
    vlp_draws_close(&candidates);
    /* A space of one's own that does not name it has the first of them; --set stands over the space. */
    options.space = space;
    must(vlp_draws_open(&candidates, dataset, &options));
    must(vlp_draws_draw(&candidates, 1));
    assert_int_equal(candidates.drawn[0].loss, VLP_LOSS_CROSS_ENTROPY);
    vlp_draws_close(&candidates);
    const char *given[] = {"dim=4", "steps=27", "loss=kvsall", "threads=2"};
    options.space = NULL;
    options.settings = given;
    options.setting_count = 4;
    options.trials = 3;
    vlp_tune_report report;
    must(vlp_tune(&report, run_family(), support_path(folder, "kvsall"), &options));
    assert_int_equal(report.trials, 3);
    assert_true(report.best.mrr > 0 && !strstr(report.settings, "loss="));
    char *best = support_read(support_path(folder, "kvsall"), "best.ini");
    assert_non_null(strstr(best, "loss = kvsall"));
    free(best);
    vlp_dataset_free(dataset);
}

/* A trial of a rung is its candidate's training, shorter in all that makes its length. */
static void test_lengths(void **state) {
    (void)state;
    const char *settings[] = {"steps=100", "warmup=30",     "decay_at=60",
                              "path=on",   "path_passes=4", "path_warmup=90"};
    vlp_tune_options options = usual_options(0);
    vlp_draws candidates;
    vlp_dataset *dataset;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    must(vlp_dataset_open(&dataset, run_family(), NULL));
    must(vlp_draws_open(&candidates, dataset, &options));
    must(vlp_draws_draw(&candidates, 3));
    assert_int_equal(candidates.count, 3);
    const int64_t steps[] = {4, 12, 34, 100}, warmup[] = {1, 3, 10, 30}, decay_at[] = {3, 7, 20, 60},
                  path_warmup[] = {3, 10, 30, 90};
    const double passes[] = {0.1481, 0.4444, 1.333, 4};
    for (int32_t rung = 0; rung < 4; rung++) {
        vlp_settings at = vlp_draws_at(&candidates, 2, rung), full = candidates.drawn[2];
        assert_int_equal(at.steps, steps[rung]);
        assert_int_equal(at.warmup, warmup[rung]);
        assert_int_equal(at.decay_at, decay_at[rung]);
        assert_int_equal(at.path_warmup, path_warmup[rung]);
        assert_true(at.path_passes == passes[rung]);
        assert_true(at.rate == full.rate && at.n3 == full.n3 && at.batch == full.batch);
    }
    /* What is not trained has no length to change. */
    candidates.drawn[0].path = false;
    candidates.drawn[1].model = VLP_MODEL_NONE;
    assert_true(vlp_draws_at(&candidates, 0, 0).path_passes == 4);
    assert_int_equal(vlp_draws_at(&candidates, 1, 0).steps, 100);
    vlp_draws_close(&candidates);
    vlp_dataset_free(dataset);
}

static void test_at_once(void **state) {
    (void)state;
    const char *one[] = {"dim=4", "steps=540", "seed=3", "threads=1"};
    vlp_tune_options options = usual_options(40);
    vlp_tune_report report;
    options.settings = one;
    must(vlp_tune(&report, run_family(), support_path(folder, "one"), &options));
    assert_int_equal(report.at_once, 1);
    same_search("one", whole(NULL));
}

/* A search with more trials takes up what a shorter one has. */
static void test_extended(void **state) {
    (void)state;
    const char *out = support_path(folder, "longer");
    const int64_t trials[] = {2, 13, 40};
    vlp_tune_report report;
    for (int i = 0; i < 3; i++) {
        vlp_tune_options options = usual_options(trials[i]);
        must(vlp_tune(&report, run_family(), out, &options));
        if (i == 0) assert_int_equal(report.trials, 2);
    }
    /* The two at full length and the best of nine are beyond what 40 alone would have trained. */
    char *all = results_of("longer"), *expected = results_of(whole(NULL)), *at = expected;
    for (char *line = strtok(at, "\n"); line; line = strtok(NULL, "\n"))
        if (!strstr(all, line)) fail_msg("missing: %s", line);
    free(all);
    free(expected);
    /* Again: nothing is left to do. */
    vlp_tune_options options = usual_options(40);
    must(vlp_tune(&report, run_family(), out, &options));
    assert_int_equal(report.call_trials, 0);
}

/* A list has an end: every value is tried once. */
static void test_exhausted(void **state) {
    (void)state;
    support_write_text(folder, "list.ini", "batch = 32, 64\nn3 = 0.1, 0.01\nrate=0.1\n");
    char list[256];
    snprintf(list, sizeof list, "%s", support_path(folder, "list.ini"));
    vlp_tune_options options = usual_options(40);
    vlp_tune_report report;
    options.space = list;
    must(vlp_tune(&report, run_family(), support_path(folder, "list"), &options));
    assert_int_equal(report.trials, 5); /* four at a third, one in full */
    assert_true(report.complete);
}

typedef struct watched {
    int64_t calls, finished, running;
    double left;
    bool sorted;
} watched;

static void watch(void *user, const vlp_tune_state *state) {
    watched *seen = user;
    seen->calls++;
    seen->finished += state->last != NULL;
    if (state->running > seen->running) seen->running = state->running;
    seen->left = state->seconds_left;
    for (int64_t i = 1; i < state->count; i++)
        seen->sorted = seen->sorted && state->trials[i - 1].mrr >= state->trials[i].mrr;
    assert_int_equal(state->total, 13);
    if (state->last) assert_non_null(strstr(state->last->settings, "rate="));
}

static void test_watched(void **state) {
    (void)state;
    vlp_tune_options options = usual_options(13);
    watched seen = {.sorted = true};
    options.watch = watch;
    options.user = &seen;
    must(vlp_tune(NULL, run_family(), support_path(folder, "watched"), &options));
    assert_int_equal(seen.finished, 13);
    assert_true(seen.sorted);
    assert_true(seen.left == 0);
}

/* The aggregator over a finished run, whose tables are not touched; and the path model over it. */
static void test_base(void **state) {
    (void)state;
    char base[256];
    snprintf(base, sizeof base, "%s", support_path(folder, "base"));
    must(run_start(run_family(), base, NULL));
    /* The default of references is not what the base has: the recipe has to name it. */
    const char *settings[] = {"steps=6", "threads=1", "path_passes=0.2", "references=8"};
    vlp_tune_options options = VLP_TUNE_OPTIONS_INIT;
    options.base = base;
    options.settings = settings;
    options.trials = 4;
    options.device = lab_device();
    const vlp_component components[] = {VLP_VERTICAL, VLP_PATH};
    const char *tuned[] = {"over0", "over1"}, *added[] = {"added0", "added1"};
    for (int i = 0; i < 2; i++) {
        char recipe[300];
        vlp_tune_report report;
        options.component = components[i];
        options.setting_count = i == 0 ? 4 : 3;
        must(vlp_tune(&report, run_family(), support_path(folder, tuned[i]), &options));
        snprintf(recipe, sizeof recipe, "%s/best.ini", support_path(folder, tuned[i]));
        const char *threads[] = {"threads=1", "eval_every=0"};
        vlp_train_options train = run_options(threads, 2, false);
        vlp_train_report trained;
        train.recipe = recipe;
        train.base = base;
        must(vlp_train(&trained, run_family(), support_path(folder, added[i]), &train));
        assert_true(trained.valid_mrr == report.best.mrr);
    }
}

/* ---- Stopped, killed, busy ----------------------------------------------------------------------- */

static bool after_five(void *user) {
    (void)user;
    return lines_of("stopped") >= 6;
}

static void test_stopped(void **state) {
    (void)state;
    vlp_observer observer = {.stop = after_five};
    vlp_tune_options options = usual_options(40);
    vlp_tune_report report = {0};
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "stopped"));
    options.observer = &observer;
    run_expect(vlp_tune(&report, run_family(), out, &options), VLP_ERROR_STOPPED, "stopped");
    assert_false(report.complete);
    assert_in_range(report.trials, 5, 39);
    assert_true(vlp_path_exists(support_path(out, "best.ini")));
    options.observer = NULL;
    must(vlp_tune(&report, run_family(), out, &options));
    assert_int_equal(report.trials, 40);
    same_search("stopped", whole(NULL));
}

/* A time that is too short for any trial says so, and is kept; the search goes on with more. */
static void test_time(void **state) {
    (void)state;
    const char *long_ones[] = {"dim=4", "steps=100000000", "seed=3", "threads=2"};
    vlp_tune_options options = usual_options(0);
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "timed"));
    options.settings = long_ones;
    options.time = 0.5;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_ARGUMENT,
               "the time of 0.5 s was up before a trial was finished");
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(after.tv_sec - before.tv_sec, 0, 5);
    assert_int_equal(lines_of("timed"), 1);
    /* Without a number of trials a time allows any. */
    vlp_tune_options timed = usual_options(0);
    vlp_tune_report report;
    timed.time = 2;
    must(vlp_tune(&report, run_family(), support_path(folder, "any"), &timed));
    assert_false(report.complete);
    assert_true(report.seconds < 4 && report.trials > 0);
}

/* The program; NULL without one, as beside a build for ThreadSanitizer. */
static const char *program(void) {
    const char *path = getenv("VLP_PROGRAM");
    return path && access(path, X_OK) == 0 ? path : NULL;
}

/* Starts `vlp tune` as usual_options does. */
static pid_t start_program(const char *out, const char *steps) {
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(126);
        execl(program(), "vlp", "tune", run_family(), "-o", out, "-q", "--trials", "40", "--component",
              "embeddings", "--space", space, "--set", "dim=4", "--set", steps, "--seed", "3",
              "--threads", "2", "--device", lab_device(), (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Killed at random moments until it gets to its end: the bytes of finished trials stay, none is trained
 * again, and trials and recipe are those of a search that was left alone. */
static void test_killed(void **state) {
    (void)state;
    if (!program()) skip();
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "killed"));
    int kills = 0;
    for (uint32_t attempt = 0;; attempt++) {
        assert_true(attempt < 100);
        char *before = support_read(out, "trials.jsonl");
        pid_t child = start_program(out, "steps=540");
        int ended = 0;
        /* From the first milliseconds on, then long enough to get anywhere. */
        uint32_t wait = vlp_random(5, VLP_STREAM_TEST, 0, attempt).v[0] % (20 + 8 * attempt);
        nanosleep(&(struct timespec){0, (long)wait * 1000000}, NULL);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &ended, 0), child);
        char *after = support_read(out, "trials.jsonl");
        if (before && strncmp(before, after ? after : "", strlen(before)) != 0) {
            const char *newline = strrchr(before, '\n');
            assert_non_null(newline); /* a part of a line may go */
            assert_memory_equal(before, after, (size_t)(newline - before) + 1);
        }
        if (after && after[strlen(after) - 1] == '\n')
            free(results_of("killed")); /* none is there twice */
        free(before);
        free(after);
        if (WIFEXITED(ended)) {
            assert_int_equal(WEXITSTATUS(ended), 0);
            break;
        }
        kills++;
    }
    assert_true(kills >= 3);
    same_search("killed", whole(NULL));
    assert_int_equal(support_count(out), 2);
}

/* While another process searches in a folder, and from the same process. */
static void test_busy(void **state) {
    (void)state;
    vlp_tune_options options = usual_options(40);
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "busy"));
    vlp_run_lock *lock;
    must(vlp_run_lock_take(&lock, out));
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_BUSY, "by process");
    vlp_run_lock_release(lock, true);
    if (!program()) return;
    pid_t child = start_program(out, "steps=100000000");
    for (int i = 0; !vlp_path_exists(support_path(out, "trials.jsonl")); i++) {
        assert_true(i < 2000);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    char process[32];
    snprintf(process, sizeof process, "by process %ld ", (long)child);
    vlp_status status = vlp_tune(NULL, run_family(), out, &options);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    run_expect(status, VLP_ERROR_BUSY, process);
}

/* ---- Refused ------------------------------------------------------------------------------------- */

static void refuse(const char *data, const vlp_tune_options *options, vlp_status status,
                   const char *message) {
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "refused"));
    run_expect(vlp_tune(NULL, data, out, options), status, message);
    assert_false(vlp_path_exists(out));
}

static void test_refused(void **state) {
    (void)state;
    const char *data = run_family();
    vlp_tune_options options = usual_options(4);
    options.component = VLP_VERTICAL;
    refuse(data, &options, VLP_ERROR_ARGUMENT, "the aggregator is searched over a base");
    options = usual_options(4);
    options.base = "somewhere";
    refuse(data, &options, VLP_ERROR_ARGUMENT, "embeddings are not trained over a base");
    options.component = VLP_PATH;
    refuse(data, &options, VLP_ERROR_IO, "somewhere");
    options = usual_options(-1);
    refuse(data, &options, VLP_ERROR_ARGUMENT, "trials = -1");
    options = usual_options(1);
    options.time = NAN;
    refuse(data, &options, VLP_ERROR_ARGUMENT, "is no number of seconds");
    options = usual_options(1);
    options.space = "nowhere.ini";
    refuse(data, &options, VLP_ERROR_IO, "nowhere.ini");
    const char *wrong[] = {"dimm=4"};
    options = usual_options(1);
    options.settings = wrong;
    options.setting_count = 1;
    refuse(data, &options, VLP_ERROR_UNKNOWN, "'dimm'");
    /* Every candidate is invalid: the message is that of one. */
    const char *invalid[] = {"model=transe"};
    options.settings = invalid;
    refuse(data, &options, VLP_ERROR_ARGUMENT, "transe");
    options = usual_options(1);
    char without[256];
    snprintf(without, sizeof without, "%s", support_path(folder, "without"));
    assert_int_equal(mkdir(without, 0777), 0);
    support_write_text(without, "train.txt", "a\tr\tb\n");
    refuse(without, &options, VLP_ERROR_ARGUMENT, "has no validation split");
}

static void test_other_search(void **state) {
    (void)state;
    vlp_tune_options options = usual_options(2);
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "other"));
    must(vlp_tune(NULL, run_family(), out, &options));
    char *before = support_read(out, "trials.jsonl");
    const char *other_seed[] = {"dim=4", "steps=540", "seed=4", "threads=2"};
    options.settings = other_seed;
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_EXISTS, "with other settings");
    options = usual_options(2);
    options.space = NULL;
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_EXISTS, "with other space");
    options = usual_options(2);
    char data[256];
    snprintf(data, sizeof data, "%s", support_path(folder, "data"));
    assert_int_equal(mkdir(data, 0777), 0);
    support_write_text(data, "train.txt", "a\tr\tb\nb\tr\tc\n");
    support_write_text(data, "valid.txt", "a\tr\tc\n");
    run_expect(vlp_tune(NULL, data, out, &options), VLP_ERROR_EXISTS, "with other data");
    char *after = support_read(out, "trials.jsonl");
    assert_string_equal(before, after);
    free(before);
    free(after);
    /* A folder with something else in it is left as it is. */
    assert_int_equal(unlink(support_path(out, "trials.jsonl")), 0);
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_EXISTS,
               "is not a search, and holds files");
    assert_int_equal(support_count(out), 1);
}

/* A damaged line is named, and nothing is lost; one that was being written is removed. */
static void test_damaged(void **state) {
    (void)state;
    const char *const damages[] = {
        "rubbish\n",
        "{\"candidate\":0,\"rung\":3,\"mrr\":0.5,\"seconds\":1.000,\"settings\":{}}\n",
        "{\"candidate\":99999999999,\"rung\":3,\"mrr\":0.5,\"seconds\":1.000,\"settings\":{}}\n",
        "{\"candidate\":0,\"rung\":4,\"mrr\":0.5,\"seconds\":1.000,\"settings\":{}}\n",
        "{\"candidate\":0,\"rung\":3,\"mrr\":1.5,\"seconds\":1.000,\"settings\":{}}\n",
        "{\"candidate\":0,\"rung\":3,\"mrr\":0.5,\"seconds\":1.000,\"settings\":{}\n",
        "\n"};
    vlp_tune_options options = usual_options(2);
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "damaged"));
    must(vlp_tune(NULL, run_family(), out, &options));
    char *good = support_read(out, "trials.jsonl"), text[16384];
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        snprintf(text, sizeof text, "%s%s", good, damages[i]);
        support_write_text(out, "trials.jsonl", text);
        run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_FORMAT, "trials.jsonl:4: ");
    }
    support_write_text(out, "trials.jsonl", "rubbish\n");
    run_expect(vlp_tune(NULL, run_family(), out, &options), VLP_ERROR_FORMAT, "trials.jsonl:1: ");
    snprintf(text, sizeof text, "%s%s", good, "{\"candidate\":0,\"ru");
    support_write_text(out, "trials.jsonl", text);
    must(vlp_tune(NULL, run_family(), out, &options));
    char *mended = support_read(out, "trials.jsonl");
    assert_string_equal(good, mended);
    free(good);
    free(mended);
}

/* A training that diverges is a result: the last of its rung. Without a mean of squares, a gradient that
 * vanishes after large ones makes a step without bound. */
static void test_diverged(void **state) {
    (void)state;
    support_write_text(folder, "wild.ini", "beta2 = 0, 0.999\n");
    char wild[256], out[256];
    snprintf(wild, sizeof wild, "%s", support_path(folder, "wild.ini"));
    snprintf(out, sizeof out, "%s", support_path(folder, "wild"));
    const char *settings[] = {"model=rescal", "optimizer=adam", "dim=4",     "rate=1000",
                              "init_scale=1", "steps=40",       "threads=2", "n3=0"};
    vlp_tune_options options = usual_options(4);
    vlp_tune_report report;
    options.space = wild;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    must(vlp_tune(&report, run_family(), out, &options));
    char *text = support_read(out, "trials.jsonl");
    assert_non_null(strstr(text, "\"mrr\":null"));
    assert_string_equal(report.settings, "beta2=0.999");
    assert_int_equal(report.trials, 2);
    free(text);
    /* Taken up, it is not trained again. */
    must(vlp_tune(&report, run_family(), out, &options));
    assert_int_equal(report.call_trials, 0);
    /* Where nothing else is left, the search says so. */
    const char *only[] = {"model=rescal", "optimizer=adam", "dim=4",     "rate=1000",
                          "init_scale=1", "steps=40",       "threads=2", "beta2=0"};
    options.settings = only;
    run_expect(vlp_tune(&report, run_family(), support_path(folder, "wilder"), &options),
               VLP_ERROR_DIVERGED, "every trial of the search diverged");
}

/* Every allocation fails once, in the search and in its trials: nothing is left behind, and a search
 * that is taken up afterwards has the trials of one that was left alone. */
static void test_memory(void **state) {
    (void)state;
    const char *settings[] = {"dim=2", "steps=2", "threads=1", "eval_triples=2"};
    vlp_tune_options options = usual_options(2);
    options.settings = settings;
    char out[256];
    snprintf(out, sizeof out, "%s", support_path(folder, "alone"));
    must(vlp_tune(NULL, run_family(), out, &options));
    snprintf(out, sizeof out, "%s", support_path(folder, "scarce"));
    failing_allocator memory;
    int64_t call = 0, refusals = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_tune(NULL, run_family(), out, &options);
        failing_allocator_remove(&memory);
        if (status != VLP_OK && status != VLP_ERROR_MEMORY) fail_msg("%s", vlp_error_message());
        assert_true(status == VLP_OK || memory.failed);
        refusals += status != VLP_OK;
        assert_true(lines_of("scarce") <= 3);
        if (status != VLP_OK) continue;
        same_search("scarce", "alone");
        /* From the start: a failure in the middle is followed by one that takes the rest up. */
        assert_int_equal(unlink(support_path(out, "trials.jsonl")), 0);
        assert_int_equal(unlink(support_path(out, "best.ini")), 0);
    } while (memory.failed);
    assert_true(refusals > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best),     cmocka_unit_test(test_losses),
        cmocka_unit_test(test_lengths),  cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_extended), cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_watched),  cmocka_unit_test(test_base),
        cmocka_unit_test(test_stopped),  cmocka_unit_test(test_time),
        cmocka_unit_test(test_killed),   cmocka_unit_test(test_busy),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_other_search),
        cmocka_unit_test(test_damaged),  cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
