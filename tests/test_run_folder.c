/* A run folder: it needs no other, has a format, and belongs to one training at a time. */
#include "run_lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/dataset.h"
#include "store/safetensors.h"

/* ---- The data set in it -------------------------------------------------------------------------- */

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
                       "http://a/test\tonly in test\nhttp://a/\xc3\xa9\t ends in a space \t \n"
                       "http://r\tis near\tof places\nhttp://s\t\tonly described\n");
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
    for (int32_t i = 0; i < vlp_dataset_relation_count(left); i++) {
        same_texts(vlp_dataset_relation_name(left, i), vlp_dataset_relation_name(right, i));
        same_texts(vlp_dataset_relation_label(left, i), vlp_dataset_relation_label(right, i));
        same_texts(vlp_dataset_relation_description(left, i),
                   vlp_dataset_relation_description(right, i));
    }
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
    must(run_start(data, run, NULL));
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
    must(run_start(run_family(), run, NULL));
    support_write_text(folder, "train.txt", "a\tr\tb\n");
    vlp_run *opened = NULL;
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    options.data = folder;
    run_expect(vlp_run_open(&opened, run, &options), VLP_ERROR_FORMAT, "is not the data set that");
    static const char *const files[] = {"entities.tsv", "relations.tsv"};
    for (int i = 0; i < 2; i++) {
        char *text = support_read(run, files[i]);
        text[0] ^= 1; /* of the first name */
        support_write_text(run, files[i], text);
        run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
        text[0] ^= 1;
        support_write_text(run, files[i], text);
        free(text);
    }
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\t1\n", 12);
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\n", 10);
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "triples.tsv.gz:1: not a triple");
    support_write_text(run, "entities.tsv", "a\n\nb\n");
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "entities.tsv:2: damaged");
    support_write_text(run, "entities.tsv", "a\na\n");
    support_write_gzip(run, "triples.tsv.gz", "train\t0\t0\t1\n", 12);
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, "were changed after training");
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
    vlp_train_options options = run_options(run_usual, RUN_USUAL, false);
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
    must(run_start(run_family(), other, NULL));
    must(vlp_dataset_open(&dataset, run_family(), NULL));
    must(vlp_train_dataset(NULL, dataset, again, &options));
    assert_true(run_same_state(other, again));
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

/* Format 1 had the weights of the components under other names. */
static const char *metadata_of(const vlp_safetensors *file, const char *key) {
    if (strcmp(key, "mixture_vertical") == 0) key = "weight_vertical";
    if (strcmp(key, "mixture_horizontal") == 0) key = "weight_horizontal";
    return vlp_safetensors_metadata(file, key);
}

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
        pairs[count++] =
            (vlp_pair){*keys, key && strcmp(*keys, key) == 0 ? value : metadata_of(old, *keys)};
    const vlp_tensor *all = vlp_safetensors_all(old, &tensors);
    must(vlp_safetensors_write(path, all, tensors, pairs, count));
    vlp_safetensors_free(old);
}

#define FORMAT_1                                                                                        \
    "data", "data_checksum", "version", "step", "best_mrr", "best_step", "waited", "mixture_vertical",  \
        "mixture_horizontal"
static const char *const keys_1[] = {FORMAT_1, NULL};
static const char *const keys_2[] = {"data",   "data_checksum",   "version",
                                     "step",   "best_mrr",        "best_step",
                                     "waited", "weight_vertical", "weight_horizontal",
                                     "format", "settings",        "settings_digest",
                                     "steps",  "schedule_start",  NULL};

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
    must(run_start(data, run, NULL));
    must(run_start(data, whole, "steps=20"));
    double mrr = mrr_of(run, NULL);
    make_format_1(run);
    assert_true(mrr_of(run, NULL) == mrr);
    assert_int_equal(rename(data, moved), 0);
    vlp_run *opened = NULL;
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_IO, "there is no folder");
    assert_true(mrr_of(run, moved) == mrr);
    /* Resuming brings it up to date; with more steps it ends where a longer run does. */
    const char *settings[] = {"steps=20"};
    vlp_train_options options = run_options(settings, 1, true);
    must(vlp_train(NULL, moved, run, &options));
    assert_true(run_same_state(run, whole));
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
    must(run_start(run_family(), run, NULL));
    vlp_run *opened = NULL;
    rewrite(run, "model.safetensors", keys_2, "format", "3");
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, part);
    assert_non_null(strstr(vlp_error_message(), "model.safetensors"));
    rewrite(run, "model.safetensors", keys_2, "format", "2");
    must(vlp_run_open(&opened, run, NULL));
    vlp_run_free(opened);
    opened = NULL;
    /* Not the older state before it instead. */
    rewrite(run, "state.safetensors", keys_2, "format", "3");
    run_expect(run_resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, part);
    /* Before a setting that is not known here is met. */
    char *config = support_read(run, "config.ini"), text[8192];
    char *line = strstr(config, "; format 2");
    assert_non_null(line);
    line[9] = '3';
    snprintf(text, sizeof text, "%s\nnovelty = 7\n", config);
    support_write_text(run, "config.ini", text);
    run_expect(vlp_run_open(&opened, run, NULL), VLP_ERROR_FORMAT, part);
    run_expect(run_resume(NULL, run, NULL, NULL), VLP_ERROR_FORMAT, part);
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
    other->second = run_resume(NULL, other->run, NULL, NULL);
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
    vlp_train_options options = run_options(run_usual, RUN_USUAL, false);
    options.observer = &observer;
    must(vlp_train(NULL, run_family(), run, &options));
    assert_true(second.met);
    assert_int_equal(second.second, VLP_ERROR_BUSY);
    snprintf(process, sizeof process, "process %ld on ", (long)getpid());
    assert_non_null(strstr(second.message, process));
    assert_int_equal(second.open, VLP_OK);
    must(run_start(run_family(), other, NULL));
    assert_true(run_same_state(run, other));
    /* Nothing is left of it. */
    assert_int_equal(access(support_path(run, "train.lock"), F_OK), -1);

    /* Another process's, also without a run in it. A file that is only left over holds nothing. */
    support_write_text(run, "train.lock", "4711 elsewhere.example\n");
    int file = open(support_path(run, "train.lock"), O_RDWR);
    assert_int_equal(flock(file, LOCK_EX | LOCK_NB), 0);
    run_expect(run_resume(NULL, run, NULL, NULL), VLP_ERROR_BUSY,
               "is being trained by process 4711 on elsewhere.example");
    run_expect(run_start(run_family(), run, NULL), VLP_ERROR_BUSY, "process 4711");
    assert_int_equal(ftruncate(file, 0), 0);
    run_expect(run_resume(NULL, run, NULL, NULL), VLP_ERROR_BUSY, "by another process");
    close(file);
    must(run_resume(NULL, run, NULL, NULL));
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_no_data_folder),    cmocka_unit_test(data_is_checked),
        cmocka_unit_test(trains_from_memory),      cmocka_unit_test(format_1_opens),
        cmocka_unit_test(newer_formats_are_named), cmocka_unit_test(one_training_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
