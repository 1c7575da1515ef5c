/* A run folder: it stands alone, has a format, belongs to one training at a time, notices files that
 * were changed, and keeps nothing of trainings that failed. */
#include "support.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_allocator.h"
#include "graph/dataset.h"
#include "lab.h"
#include "run/run_internal.h"
#include "store/safetensors.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static void expect(vlp_status status, vlp_status expected, const char *part) {
    if (status != expected || !strstr(vlp_error_message(), part))
        fail_msg("status %d, '%s' lacks '%s'", status, vlp_error_message(), part);
}

/* ---- Trainings ----------------------------------------------------------------------------------- */

enum { MOST_SETTINGS = 24 };

static const char *const usual[] = {"steps=12",  "batch=32",         "negatives=6",  "dim=6",
                                    "rate=0.03", "references=3",     "eval_every=4", "save_every=3",
                                    "threads=2", "schedule=constant"};
enum { USUAL = sizeof usual / sizeof *usual };

static const char *family(void) {
    return support_family(4, 3);
}

/* Options with settings of the caller's, which live as long as `settings`. */
static vlp_train_options options_of(const char **settings, int32_t count, bool resume) {
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = count;
    options.resume = resume;
    options.device = lab_device();
    return options;
}

/* Starts a run with the usual settings and some more (NULL: none). */
static vlp_status start(const char *data, const char *run, const char *more) {
    const char *settings[USUAL + 1];
    int32_t count = 0;
    for (; count < USUAL; count++) settings[count] = usual[count];
    if (more) settings[count++] = more;
    vlp_train_options options = options_of(settings, count, false);
    return vlp_train(NULL, data, run, &options);
}

/* Resumes a run with these settings (NULL: none) and no others. */
static vlp_status resume(vlp_train_report *report, const char *run, const char *first,
                         const char *second) {
    const char *settings[2] = {first, second};
    vlp_train_options options = options_of(settings, (first != NULL) + (second != NULL), true);
    return vlp_train(report, family(), run, &options);
}

static bool same_tensor(const char *left, const char *right, const char *file, const char *name) {
    vlp_safetensors *files[2] = {NULL, NULL};
    const vlp_tensor *tensors[2];
    must(vlp_safetensors_open(&files[0], support_path(left, file), true));
    must(vlp_safetensors_open(&files[1], support_path(right, file), true));
    for (int i = 0; i < 2; i++) {
        tensors[i] = vlp_safetensors_find(files[i], name);
        assert_non_null(tensors[i]);
    }
    size_t bytes = (size_t)(tensors[0]->shape[0] * tensors[0]->shape[1]) * sizeof(float);
    bool same = memcmp(tensors[0]->data, tensors[1]->data, bytes) == 0;
    vlp_safetensors_free(files[0]);
    vlp_safetensors_free(files[1]);
    return same;
}

/* The same tables and moments. */
static bool same_state(const char *left, const char *right) {
    static const char *const names[] = {"entities", "relations.second", "aggregator_output",
                                        "aggregator_node.first"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!same_tensor(left, right, "state.safetensors", names[i])) return false;
    return true;
}

/* Asks to stop once a step is done. */
typedef struct stopper {
    int64_t at;
    bool now;
} stopper;

static void watch_steps(void *user, const char *what, int64_t done, int64_t total) {
    stopper *when = user;
    (void)total;
    if (strcmp(what, "steps") == 0 && done >= when->at) when->now = true;
}

static bool stop_now(void *user) {
    return ((stopper *)user)->now;
}

/* ---- A run stands alone -------------------------------------------------------------------------- */

/* Names, labels and descriptions of every kind, an entity that only valid has, one that only test has.
 */
static void write_odd_data(const char *folder) {
    support_write_text(folder, "train.nt",
                       "<http://a/1> <http://r> <http://a/2> .\n"
                       "<http://a/2> <http://r> \"a \\t tab, a \\\"quote\\\" and \\u007F\"@en .\n"
                       "<http://a/2> <http://s> _:blank .\n"
                       "<http://a/1> <http://s> <http://a/2> .\n"
                       "<http://a/1> <http://s> <http://a/2> .\n"
                       "<http://a/\xc3\xa9> <http://r> <http://a/1> .\n");
    support_write_text(folder, "valid.nt",
                       "<http://a/valid> <http://r> <http://a/1> .\n"
                       "<http://a/1> <http://r> <http://a/\xc3\xa9> .\n");
    support_write_text(folder, "test.nt",
                       "<http://a/2> <http://t> <http://a/test> .\n"
                       "<http://a/2> <http://r> <http://a/1> .\n");
    support_write_text(folder, "labels.tsv",
                       "http://a/1\tone, with a \"quote\"\tthe first\nhttp://a/2\t\tno label\n"
                       "http://a/test\tonly in test\nhttp://a/\xc3\xa9\t ends in a space \t \n");
}

static void same_texts(const char *left, const char *right) {
    assert_true((left == NULL) == (right == NULL));
    if (left) assert_string_equal(left, right);
}

static void same_datasets(const vlp_dataset *left, const vlp_dataset *right) {
    char checksums[2][33];
    vlp_dataset_checksum(checksums[0], left);
    vlp_dataset_checksum(checksums[1], right);
    assert_string_equal(checksums[0], checksums[1]);
    for (int32_t i = 0; i < vlp_dataset_entity_count(left); i++) {
        same_texts(vlp_dataset_entity_name(left, i), vlp_dataset_entity_name(right, i));
        same_texts(vlp_dataset_entity_label(left, i), vlp_dataset_entity_label(right, i));
        same_texts(vlp_dataset_entity_description(left, i), vlp_dataset_entity_description(right, i));
        assert_int_equal(left->seen_entities[i], right->seen_entities[i]);
    }
    for (int32_t i = 0; i < vlp_dataset_relation_count(left); i++)
        same_texts(vlp_dataset_relation_name(left, i), vlp_dataset_relation_name(right, i));
}

static double mrr_of(const char *run, const char *data) {
    vlp_run *opened = NULL;
    vlp_evaluation *evaluation = NULL;
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    options.data = data;
    options.device = lab_device();
    must(vlp_run_open(&opened, run, &options));
    must(vlp_run_evaluate(&evaluation, opened, NULL));
    double mrr = evaluation->both.mrr;
    vlp_evaluation_free(evaluation);
    vlp_run_free(opened);
    return mrr;
}

static void needs_no_data_folder(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], moved[64], run[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    mkdir(data, 0777);
    write_odd_data(data);
    must(start(data, run, NULL));
    vlp_dataset *read = NULL;
    must(vlp_dataset_open(&read, data, NULL));
    double before = mrr_of(run, data);
    assert_int_equal(rename(data, moved), 0);
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, NULL));
    same_datasets(read, vlp_run_dataset(opened));
    vlp_run_info info;
    vlp_run_describe(&info, opened);
    assert_string_equal(info.data, data);
    vlp_run_free(opened);
    assert_true(mrr_of(run, NULL) == before);
    assert_true(mrr_of(run, moved) == before);
    /* The control is trained and read without it, too. */
    vlp_evaluation *evaluation = NULL;
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    options.control = true;
    must(vlp_run_open(&opened, run, NULL));
    must(vlp_run_evaluate(&evaluation, opened, &options));
    assert_true(evaluation->control.queries > 0);
    vlp_evaluation_free(evaluation);
    vlp_run_free(opened);
    vlp_dataset_free(read);
    support_remove(folder);
}

/* Another folder than the one it was trained on is refused, and so are files of its own that changed. */
static void data_is_checked(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    must(start(family(), run, NULL));
    support_write_text(folder, "train.txt", "a\tr\tb\n");
    vlp_run *opened = NULL;
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    options.data = folder;
    expect(vlp_run_open(&opened, run, &options), VLP_ERROR_FORMAT, "is not the data set that");
    static const char *const files[] = {"entities.tsv", "relations.tsv"};
    for (int i = 0; i < 2; i++) {
        char *text = support_read(run, files[i]);
        text[0] ^= 1; /* of the first name */
        support_write_text(run, files[i], text);
        expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
        text[0] ^= 1;
        support_write_text(run, files[i], text);
        free(text);
    }
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\t1\n", 12);
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\n", 10);
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "triples.tsv.gz:1: not a triple");
    support_write_text(run, "entities.tsv", "a\n\nb\n");
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "entities.tsv:2: damaged");
    support_write_text(run, "entities.tsv", "a\na\n");
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\t1\n", 12);
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
    assert_null(opened);
    support_remove(folder);
}

/* Trained from memory, with ids in an order that no file gives; the weights keep their ids. */
static void trains_from_memory(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], other[64], again[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(again, sizeof again, "%s/again", folder);
    const vlp_triple train[] = {{5, 1, 0}, {0, 0, 5}, {2, 0, 3}, {3, 1, 5}, {5, 1, 2}},
                     valid[] = {{4, 0, 5}};
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    content.triples[VLP_TRAIN] = train;
    content.counts[VLP_TRAIN] = 5;
    content.triples[VLP_VALID] = content.triples[VLP_TEST] = valid;
    content.counts[VLP_VALID] = content.counts[VLP_TEST] = 1;
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    vlp_train_options options = options_of((const char **)(uintptr_t)usual, USUAL, false);
    vlp_train_report report;
    must(vlp_train_dataset(&report, dataset, run, &options));
    assert_int_equal(report.call_steps, 12);
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, NULL));
    same_datasets(dataset, vlp_run_dataset(opened));
    vlp_run_info info;
    vlp_run_describe(&info, opened);
    assert_string_equal(info.data, "");
    vlp_run_free(opened);
    mrr_of(run, NULL);
    vlp_dataset_free(dataset);

    /* What a folder gives and the same data set in memory train to the same bits. */
    must(start(family(), other, NULL));
    must(vlp_dataset_open(&dataset, family(), NULL));
    must(vlp_train_dataset(NULL, dataset, again, &options));
    assert_true(same_state(other, again));
    /* Its triples have the same bytes. */
    vlp_map left, right;
    must(vlp_map_open(&left, support_path(other, "triples.tsv.gz")));
    must(vlp_map_open(&right, support_path(again, "triples.tsv.gz")));
    assert_int_equal(left.size, right.size);
    assert_memory_equal(left.data, right.data, left.size);
    vlp_map_close(&left);
    vlp_map_close(&right);
    vlp_dataset_free(dataset);
    support_remove(folder);
}

/* ---- Formats ------------------------------------------------------------------------------------- */

/* Rewrites a weight file with only these keys, of which one may have another value. */
static void rewrite(const char *run, const char *file, const char *const *keys, const char *key,
                    const char *value) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", run, file);
    vlp_safetensors *old = NULL;
    must(vlp_safetensors_open(&old, path, true));
    vlp_pair pairs[24];
    int32_t count = 0, tensors;
    for (; *keys; keys++)
        pairs[count++] = (vlp_pair){
            *keys, key && strcmp(*keys, key) == 0 ? value : vlp_safetensors_metadata(old, *keys)};
    const vlp_tensor *all = vlp_safetensors_all(old, &tensors);
    must(vlp_safetensors_write(path, all, tensors, pairs, count));
    vlp_safetensors_free(old);
}

#define FORMAT_1                                                                                        \
    "data", "data_checksum", "version", "step", "best_mrr", "best_step", "waited", "mixture_vertical",  \
        "mixture_horizontal"
static const char *const keys_1[] = {FORMAT_1, NULL};
static const char *const keys_2[] = {FORMAT_1, "format",         "settings", "settings_digest",
                                     "steps",  "schedule_start", NULL};

/* Makes a run what the first version would have written. */
static void make_format_1(const char *run) {
    static const char *const files[] = {"model.safetensors", "state.safetensors",
                                        "state.previous.safetensors"};
    for (int i = 0; i < 3; i++) rewrite(run, files[i], keys_1, NULL, NULL);
    unlink(support_path(run, "triples.tsv.gz"));
    char *config = support_read(run, "config.ini"), *line = strstr(config, "; format 2\n");
    assert_non_null(line);
    memmove(line, line + 11, strlen(line + 11) + 1);
    support_write_text(run, "config.ini", config);
    free(config);
}

static void format_1_opens(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], moved[64], run[64], whole[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    vlp_family_options people = VLP_FAMILY_OPTIONS_INIT;
    people.families = 4;
    people.generations = 3;
    must(vlp_family_generate(NULL, data, &people));
    must(start(data, run, NULL));
    must(start(data, whole, "steps=20"));
    double mrr = mrr_of(run, NULL);
    make_format_1(run);
    assert_true(mrr_of(run, NULL) == mrr);
    assert_int_equal(rename(data, moved), 0);
    vlp_run *opened = NULL;
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_IO, "there is no folder");
    assert_true(mrr_of(run, moved) == mrr);
    /* Resuming brings it up to date; with more steps it ends where a longer run does. */
    const char *settings[] = {"steps=20"};
    vlp_train_options options = options_of(settings, 1, true);
    must(vlp_train(NULL, moved, run, &options));
    assert_true(same_state(run, whole));
    support_remove(moved);
    mrr_of(run, NULL);
    support_remove(folder);
}

static void newer_formats_are_named(void **state) {
    (void)state;
    static const char part[] =
        "was written by a newer version of vlp (format 3; this one reads up to 2)";
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    must(start(family(), run, NULL));
    vlp_run *opened = NULL;
    rewrite(run, "model.safetensors", keys_2, "format", "3");
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, part);
    assert_non_null(strstr(vlp_error_message(), "model.safetensors"));
    rewrite(run, "model.safetensors", keys_2, "format", "2");
    must(vlp_run_open(&opened, run, NULL));
    vlp_run_free(opened);
    opened = NULL;
    /* Not the older state before it instead. */
    rewrite(run, "state.safetensors", keys_2, "format", "3");
    expect(resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, part);
    /* Before a setting that is not known here is met. */
    char *config = support_read(run, "config.ini"), text[8192];
    char *line = strstr(config, "; format 2");
    assert_non_null(line);
    line[9] = '3';
    snprintf(text, sizeof text, "%s\nnovelty = 7\n", config);
    support_write_text(run, "config.ini", text);
    expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, part);
    expect(resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, part);
    free(config);
    support_remove(folder);
}

/* ---- The lock ------------------------------------------------------------------------------------ */

typedef struct intruder {
    const char *run;
    vlp_status second, open; /* of a second training, and of opening it to read */
    char message[512];
    bool met;
} intruder;

static void intrude(void *user, const char *what, int64_t done, int64_t total) {
    intruder *other = user;
    (void)total;
    if (strcmp(what, "steps") != 0 || done != 9) return;
    other->met = true;
    other->second = resume(NULL, other->run, NULL, NULL);
    snprintf(other->message, sizeof other->message, "%s", vlp_error_message());
    vlp_run *opened = NULL;
    other->open = vlp_run_open(&opened, other->run, NULL);
    vlp_run_free(opened);
}

static void one_training_at_a_time(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], other[64], process[32];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    intruder second = {.run = run};
    vlp_observer observer = {.progress = intrude, .user = &second};
    vlp_train_options options = options_of((const char **)(uintptr_t)usual, USUAL, false);
    options.observer = &observer;
    must(vlp_train(NULL, family(), run, &options));
    assert_true(second.met);
    assert_int_equal(second.second, VLP_ERROR_BUSY);
    snprintf(process, sizeof process, "process %ld on ", (long)getpid());
    assert_non_null(strstr(second.message, process));
    assert_int_equal(second.open, VLP_OK);
    must(start(family(), other, NULL));
    assert_true(same_state(run, other));
    /* Nothing is left of it. */
    assert_int_equal(access(support_path(run, "train.lock"), F_OK), -1);

    /* Another process's, also without a run in it. A file that is only left over holds nothing. */
    support_write_text(run, "train.lock", "4711 elsewhere.example\n");
    int file = open(support_path(run, "train.lock"), O_RDWR);
    assert_int_equal(flock(file, LOCK_EX | LOCK_NB), 0);
    expect(resume(NULL, run, NULL, NULL), VLP_ERROR_BUSY,
           "is being trained by process 4711 on elsewhere.example");
    expect(start(family(), run, NULL), VLP_ERROR_BUSY, "process 4711");
    assert_int_equal(ftruncate(file, 0), 0);
    expect(resume(NULL, run, NULL, NULL), VLP_ERROR_BUSY, "by another process");
    close(file);
    must(resume(NULL, run, NULL, NULL));
    support_remove(folder);
}

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
    must(start(family(), run, NULL));
    vlp_run *opened = NULL;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *kept = support_read(run, "config.ini");
        edit_config(run, edits[i].from, edits[i].to);
        expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, edits[i].part);
        assert_non_null(strstr(vlp_error_message(), "config.ini does not fit the weights beside it"));
        expect(resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, edits[i].part);
        vlp_train_options over = VLP_TRAIN_OPTIONS_INIT;
        over.base = run;
        assert_int_not_equal(vlp_train(NULL, family(), other, &over), VLP_OK);
        assert_int_equal(access(other, F_OK), -1);
        support_write_text(run, "config.ini", kept);
        free(kept);
    }
    edit_config(run, "eval_every = 4\n", "eval_every = 5\n");
    edit_config(run, "threads = 2\n", "threads = 1\n");
    must(vlp_run_open(&opened, run, NULL));
    vlp_run_free(opened);
    must(resume(NULL, run, NULL, NULL));
    /* A damaged line of the metrics. */
    char *lines = support_read(run, "metrics.jsonl");
    *strchr(lines, ',') = ';';
    support_write_text(run, "metrics.jsonl", lines);
    expect(resume(NULL, run, "steps=14", NULL), VLP_ERROR_FORMAT, "metrics.jsonl:1: damaged");
    free(lines);
    support_remove(folder);
}

static void resume_takes_some_settings(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], whole[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    must(start(family(), run, NULL));
    must(start(family(), whole, "steps=20"));
    expect(resume(NULL, run, "dim=9", NULL), VLP_ERROR_ARGUMENT, "was started with dim = 6, not 9");
    expect(resume(NULL, run, "schedule=cosine", NULL), VLP_ERROR_ARGUMENT,
           "was started with schedule = constant, not cosine");
    expect(resume(NULL, run, "steps=11", NULL), VLP_ERROR_ARGUMENT, "has done 12 steps");
    expect(resume(NULL, run, "stepz=11", NULL), VLP_ERROR_ARGUMENT, "there is no setting 'stepz'");
    /* Its own settings again, and adjustable ones. */
    vlp_train_report report;
    must(resume(&report, run, "dim=6", "patience=9"));
    assert_int_equal(report.call_steps, 0);
    assert_int_equal(report.steps, 12);
    /* Further, with an interruption, and as if it had been so from the start. */
    stopper when = {15, false};
    vlp_observer observer = {.progress = watch_steps, .stop = stop_now, .user = &when};
    const char *more[] = {"steps=20", "save_every=2", "eval_every=0", "patience=0"};
    vlp_train_options options = options_of(more, 4, true);
    options.observer = &observer;
    assert_int_equal(vlp_train(&report, family(), run, &options), VLP_ERROR_STOPPED);
    assert_int_equal(report.call_steps, 3);
    must(resume(&report, run, NULL, NULL));
    assert_int_equal(report.call_steps, 5);
    assert_int_equal(report.steps, 20);
    assert_true(report.seconds < 60);
    assert_true(same_state(run, whole));
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
        vlp_train_options options = options_of(settings, 8, false);
        must(vlp_train(NULL, family(), run, &options));
        must(vlp_train(NULL, family(), other, &options));
        options.settings = always;
        must(vlp_train(NULL, family(), constant, &options));
        must(resume(NULL, run, "steps=2", NULL));
        assert_true(same_state(run, constant));
        char *log = support_read(run, "train.log");
        assert_non_null(
            strstr(log, "2 steps instead of 1; the schedule of the learning rate starts anew"));
        free(log);
        /* To 6 steps in one go, and in two. */
        must(resume(NULL, run, "steps=6", NULL));
        must(resume(NULL, other, "steps=2", NULL));
        stopper when = {4, false};
        vlp_observer observer = {.progress = watch_steps, .stop = stop_now, .user = &when};
        const char *more[] = {"steps=6"};
        options = options_of(more, 1, true);
        options.observer = &observer;
        assert_int_equal(vlp_train(NULL, family(), other, &options), VLP_ERROR_STOPPED);
        must(resume(NULL, other, "threads=2", NULL));
        assert_true(same_state(run, other));
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
    vlp_train_options options = options_of(settings, 5, false);
    must(vlp_train(NULL, family(), run, &options));
    settings[0] = "schedule=constant";
    must(vlp_train(NULL, family(), constant, &options));
    assert_true(same_state(run, constant));
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
    vlp_train_options options = options_of(settings, 9, false);
    vlp_train_report report;
    must(vlp_train(&report, family(), run, &options));
    assert_int_equal(report.steps, 6);
    must(resume(&report, run, NULL, NULL));
    assert_int_equal(report.call_steps, 0);
    must(resume(&report, run, "patience=3", NULL));
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
    must(start(family(), run, NULL));
    int count = support_count(run);
    for (int i = 0; i < 5; i++) support_write_text(run, files[i], "half");
    support_write_text(run, "notes.partial-mine", "not ours");
    must(resume(NULL, run, NULL, NULL));
    assert_int_equal(support_count(run), count + 1);
    unlink(support_path(run, "notes.partial-mine"));

    /* A training that was killed before its run was begun. */
    snprintf(run, sizeof run, "%s/killed", folder);
    mkdir(run, 0777);
    support_write_text(run, "train.lock", "4711 elsewhere.example\n");
    support_write_text(run, "entities.tsv", "a\n");
    support_write_text(run, "triples.tsv.gz.partial-4711", "half");
    must(start(family(), run, NULL));
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
        vlp_train_options options = options_of(settings, 1, i == 1);
        expect(vlp_train(NULL, family(), full, &options), VLP_ERROR_EXISTS, "is not a run, and holds ");
        assert_int_equal(support_count(full), 2);
        assert_int_not_equal(vlp_train(NULL, family(), file, &options), VLP_OK);
    }
    must(start(family(), run, NULL));
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
        assert_int_not_equal(start(family(), run, settings[i]), VLP_OK);
        assert_int_equal(support_count(folder), 1);
        assert_int_not_equal(start(family(), there, settings[i]), VLP_OK);
        assert_int_equal(support_count(there), 0);
    }
    assert_int_not_equal(start(there, run, NULL), VLP_OK); /* no data set */
    assert_int_equal(support_count(folder), 1);
    /* Stopped while it was prepared. */
    stopper when = {0, true};
    vlp_observer observer = {.stop = stop_now, .user = &when};
    vlp_train_options options = options_of((const char **)(uintptr_t)usual, USUAL, false);
    options.observer = &observer;
    assert_int_equal(vlp_train(NULL, family(), run, &options), VLP_ERROR_STOPPED);
    assert_int_equal(support_count(folder), 1);
    support_remove(folder);
}

/* Whatever allocation fails: a run that was saved can be resumed, and one that was not is gone. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64], whole[64];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    const char *settings[] = {"steps=2",   "dim=3",        "batch=8",      "negatives=2",
                              "threads=1", "save_every=1", "references=2", "vertical=on"};
    vlp_train_options options = options_of(settings, 8, false);
    must(vlp_train(NULL, family(), whole, &options));
    failing_allocator memory;
    int64_t call = 0;
    int saved = 0, gone = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_train(NULL, family(), run, &options);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || memory.failed);
        bool there = access(run, F_OK) == 0;
        if (status != VLP_OK && there) {
            assert_int_equal(access(support_path(run, "train.lock"), F_OK), -1);
            must(resume(NULL, run, NULL, NULL));
            saved++;
        }
        gone += !there;
        if (there) {
            assert_true(same_state(run, whole));
            support_remove(run);
        }
    } while (memory.failed);
    assert_true(gone > 50 && saved > 5);
    support_remove(folder);
}

/* ---- What is told -------------------------------------------------------------------------------- */

/* More candidates than entities are refused before any work, and named. */
static void candidates_are_checked(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, family(), NULL));
    int32_t entities = vlp_dataset_entity_count(dataset);
    vlp_dataset_free(dataset);
    char most[32], beyond[32], part[64];
    snprintf(most, sizeof most, "candidates=%d", entities);
    snprintf(beyond, sizeof beyond, "candidates=%d", entities + 1);
    snprintf(part, sizeof part, "candidates = %d is more than the %d entities", entities + 1, entities);
    expect(start(family(), run, beyond), VLP_ERROR_ARGUMENT, part);
    must(start(family(), run, most));
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
    vlp_train_options options = options_of(settings, 7, false);
    must(vlp_train(NULL, data, run, &options));
    char *log = support_read(run, "train.log");
    assert_non_null(strstr(log, "near shells are exact"));
    free(log);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_no_data_folder),      cmocka_unit_test(data_is_checked),
        cmocka_unit_test(trains_from_memory),        cmocka_unit_test(format_1_opens),
        cmocka_unit_test(newer_formats_are_named),   cmocka_unit_test(one_training_at_a_time),
        cmocka_unit_test(config_is_not_trusted),     cmocka_unit_test(resume_takes_some_settings),
        cmocka_unit_test(schedules_start_anew),      cmocka_unit_test(one_step_is_not_decayed),
        cmocka_unit_test(patience_ends_a_run),       cmocka_unit_test(leftovers_are_swept),
        cmocka_unit_test(other_files_are_refused),   cmocka_unit_test(failed_starts_leave_nothing),
        cmocka_unit_test(every_allocation_may_fail), cmocka_unit_test(candidates_are_checked),
        cmocka_unit_test(approximation_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
