/* Every public function with NULL for each of its pointers, with ids, counts and enum values out of
 * range, and with option structs of unknown versions: an error with a message, or the neutral value that
 * vlp.h documents, and never a crash. The last test holds the list of functions against the header. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- What was called ----------------------------------------------------------------------------- */

static const char *called[256];
static int called_count;

static void note(const char *function) {
    for (int i = 0; i < called_count; i++)
        if (strcmp(called[i], function) == 0) return;
    assert_true(called_count < 256);
    called[called_count++] = function;
}

/* A message that no check leaves, so that an old one is not taken for a new one. */
static void forget_message(void) {
    vlp_fail(VLP_ERROR_IO, "no message");
}

static void expect_refused(const char *function, vlp_status status, const char *part, int line) {
    note(function);
    if (status != VLP_ERROR_ARGUMENT)
        fail_msg("line %d: %s gives status %d, not VLP_ERROR_ARGUMENT", line, function, (int)status);
    if (!strstr(vlp_error_message(), part))
        fail_msg("line %d: %s says '%s', which lacks '%s'", line, function, vlp_error_message(), part);
}

/* The call is refused with a message that has `part` in it. */
#define REFUSED(part, function, ...)                                                                    \
    do {                                                                                                \
        forget_message();                                                                               \
        expect_refused(#function, function(__VA_ARGS__), part, __LINE__);                               \
    } while (0)
/* The call has NULL for `argument`, and says so. */
#define NULL_REFUSED(argument, function, ...)                                                           \
    REFUSED(#function ": " #argument " is NULL", function, __VA_ARGS__)
/* The call gives a value. */
#define GIVES(value, function, ...)                                                                     \
    do {                                                                                                \
        note(#function);                                                                                \
        assert_true(function(__VA_ARGS__) == (value));                                                  \
    } while (0)
#define DOES_NOTHING(function, ...)                                                                     \
    do {                                                                                                \
        note(#function);                                                                                \
        function(__VA_ARGS__);                                                                          \
    } while (0)

/* Ids that nothing has: `count` is how many there are. */
enum { BAD_IDS = 4 };
static int32_t bad_id(int i, int64_t count) {
    const int32_t ids[BAD_IDS] = {-1, (int32_t)count, INT32_MAX, INT32_MIN};
    return ids[i];
}

/* Versions that no struct has: `newest` is the initializer's. */
enum { BAD_VERSIONS = 5 };
static int32_t bad_version(int i, int32_t newest) {
    const int32_t versions[BAD_VERSIONS] = {0, -1, newest + 1, INT32_MAX, INT32_MIN};
    return versions[i];
}

/* Calls with structs of unknown versions: the arguments name the struct `options`. */
#define VERSIONS_REFUSED(type, INITIALIZER, function, ...)                                              \
    do {                                                                                                \
        for (int v = 0; v < BAD_VERSIONS; v++) {                                                        \
            type options = INITIALIZER;                                                                 \
            options.version = bad_version(v, options.version);                                          \
            char part[64];                                                                              \
            snprintf(part, sizeof part, #type " of version %d;", options.version);                      \
            REFUSED(part, function, __VA_ARGS__);                                                       \
        }                                                                                               \
    } while (0)

/* ---- Objects to call with ------------------------------------------------------------------------ */

static vlp_dataset *dataset;
static vlp_filter *filter;
static vlp_run *run;
static int32_t entities, relations;
static char data[64], folder[64], trained[96], new_folder[96];

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static int set_up(void **state) {
    (void)state;
    snprintf(data, sizeof data, "%s", support_family(3, 3));
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(trained, sizeof trained, "%s/run", folder);
    snprintf(new_folder, sizeof new_folder, "%s/new", folder);
    must(vlp_dataset_open(&dataset, data, NULL));
    must(vlp_filter_new(&filter, dataset, 7));
    const char *settings[] = {"steps=5", "dim=4", "batch=16", "negatives=4", "threads=1"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    options.device = "cpu";
    must(vlp_train(NULL, data, trained, &options));
    must(vlp_run_open(&run, trained, NULL));
    entities = vlp_dataset_entity_count(dataset);
    relations = vlp_dataset_relation_count(dataset);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vlp_run_free(run);
    vlp_filter_free(filter);
    vlp_dataset_free(dataset);
    support_remove(folder);
    *strrchr(data, '/') = '\0'; /* support_family's own folder */
    support_remove(data);
    return 0;
}

/* ---- 1. Errors and allocation -------------------------------------------------------------------- */

static void *refuse_all(void *user, void *memory, size_t size) {
    (void)user, (void)memory, (void)size;
    return NULL;
}

static void library(void **state) {
    (void)state;
    note("vlp_error_message");
    note("vlp_version");
    assert_non_null(vlp_error_message());
    assert_non_null(vlp_version());
    DOES_NOTHING(vlp_allocator_set, NULL);
    /* Half of an allocator is none: the next allocation works. */
    vlp_allocator half = {.reallocate = refuse_all};
    vlp_allocator_set(&half);
    vlp_allocator_set(&(vlp_allocator){.user = &half});
    vlp_filter *made = NULL;
    must(vlp_filter_new(&made, dataset, 1));
    vlp_filter_free(made);
}

/* ---- 2. Data sets -------------------------------------------------------------------------------- */

static void data_sets(void **state) {
    (void)state;
    vlp_dataset *made = dataset;
    NULL_REFUSED(out, vlp_dataset_open, NULL, data, NULL);
    NULL_REFUSED(folder, vlp_dataset_open, &made, NULL, NULL);
    assert_null(made);
    VERSIONS_REFUSED(vlp_dataset_options, VLP_DATASET_OPTIONS_INIT, vlp_dataset_open, &made, data,
                     &options);
    vlp_dataset_options negative = VLP_DATASET_OPTIONS_INIT;
    negative.threads = -1;
    REFUSED("-1 threads", vlp_dataset_open, &made, data, &negative);
    const vlp_named_triple *const named[VLP_SPLITS] = {&(vlp_named_triple){"a", "r", "b"}, NULL, NULL};
    const int64_t one[VLP_SPLITS] = {1, 0, 0}, less[VLP_SPLITS] = {1, -1, 0},
                  more[VLP_SPLITS] = {1, 1, 0};
    NULL_REFUSED(out, vlp_dataset_from_names, NULL, named, one, NULL);
    NULL_REFUSED(triples, vlp_dataset_from_names, &made, NULL, one, NULL);
    NULL_REFUSED(counts, vlp_dataset_from_names, &made, named, NULL, NULL);
    REFUSED("-1 triples", vlp_dataset_from_names, &made, named, less, NULL);
    REFUSED("triples of valid are NULL", vlp_dataset_from_names, &made, named, more, NULL);
    REFUSED("-1 threads", vlp_dataset_from_names, &made, named, one, &negative);
    VERSIONS_REFUSED(vlp_dataset_options, VLP_DATASET_OPTIONS_INIT, vlp_dataset_from_names, &made, named,
                     one, &options);
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    NULL_REFUSED(out, vlp_dataset_from_ids, NULL, &content, NULL);
    NULL_REFUSED(content, vlp_dataset_from_ids, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_dataset_content, VLP_DATASET_CONTENT_INIT, vlp_dataset_from_ids, &made,
                     &options, NULL);
    VERSIONS_REFUSED(vlp_dataset_options, VLP_DATASET_OPTIONS_INIT, vlp_dataset_from_ids, &made,
                     &content, &options);
    content.counts[VLP_TRAIN] = 1;
    REFUSED("triples of train are NULL", vlp_dataset_from_ids, &made, &content, NULL);
    content.triples[VLP_TRAIN] = &(vlp_triple){0, -1, 0};
    REFUSED("relation -1", vlp_dataset_from_ids, &made, &content, NULL);
    assert_null(made);
    DOES_NOTHING(vlp_dataset_free, NULL);
    GIVES(0, vlp_dataset_entity_count, NULL);
    GIVES(0, vlp_dataset_relation_count, NULL);
    GIVES(NULL, vlp_dataset_entity_name, NULL, 0);
    GIVES(NULL, vlp_dataset_relation_name, NULL, 0);
    GIVES(NULL, vlp_dataset_entity_label, NULL, 0);
    GIVES(NULL, vlp_dataset_entity_description, NULL, 0);
    for (int i = 0; i < BAD_IDS; i++) {
        GIVES(NULL, vlp_dataset_entity_name, dataset, bad_id(i, entities));
        GIVES(NULL, vlp_dataset_relation_name, dataset, bad_id(i, relations));
        GIVES(NULL, vlp_dataset_entity_label, dataset, bad_id(i, entities));
        GIVES(NULL, vlp_dataset_entity_description, dataset, bad_id(i, entities));
    }
    assert_non_null(vlp_dataset_entity_label(dataset, entities - 1)); /* the family has labels */
    assert_non_null(vlp_dataset_relation_name(dataset, relations - 1));
    int32_t id;
    NULL_REFUSED(out, vlp_dataset_find_entity, NULL, dataset, "x");
    NULL_REFUSED(dataset, vlp_dataset_find_entity, &id, NULL, "x");
    NULL_REFUSED(name, vlp_dataset_find_entity, &id, dataset, NULL);
    NULL_REFUSED(out, vlp_dataset_find_relation, NULL, dataset, "x");
    NULL_REFUSED(dataset, vlp_dataset_find_relation, &id, NULL, "x");
    NULL_REFUSED(name, vlp_dataset_find_relation, &id, dataset, NULL);
    vlp_dataset_stats stats;
    NULL_REFUSED(out, vlp_dataset_describe, NULL, dataset);
    NULL_REFUSED(dataset, vlp_dataset_describe, &stats, NULL);
    int64_t count = 99;
    GIVES(NULL, vlp_dataset_triples, NULL, VLP_TRAIN, &count);
    assert_int_equal(count, 0);
    for (int i = 0; i < BAD_IDS; i++) {
        count = 99;
        GIVES(NULL, vlp_dataset_triples, dataset, (vlp_split)bad_id(i, VLP_SPLITS), &count);
        assert_int_equal(count, 0);
    }
    assert_non_null(vlp_dataset_triples(dataset, VLP_TRAIN, NULL));
}

static void filters(void **state) {
    (void)state;
    vlp_filter *made = filter;
    NULL_REFUSED(out, vlp_filter_new, NULL, dataset, 1);
    NULL_REFUSED(dataset, vlp_filter_new, &made, NULL, 1);
    assert_null(made);
    REFUSED("splits 0x8", vlp_filter_new, &made, dataset, 8);
    REFUSED("splits 0xffffffff", vlp_filter_new, &made, dataset, UINT32_MAX);
    DOES_NOTHING(vlp_filter_free, NULL);
    const vlp_triple *train = vlp_dataset_triples(dataset, VLP_TRAIN, NULL);
    int64_t count = 99;
    GIVES(NULL, vlp_filter_answers, NULL, 0, 0, &count);
    assert_int_equal(count, 0);
    GIVES(false, vlp_filter_has, NULL, 0, 0, 0);
    for (int i = 0; i < BAD_IDS; i++) {
        count = 99;
        GIVES(NULL, vlp_filter_answers, filter, bad_id(i, entities), train->relation, &count);
        assert_int_equal(count, 0);
        count = 99;
        GIVES(NULL, vlp_filter_answers, filter, train->head, bad_id(i, 2 * relations), &count);
        assert_int_equal(count, 0);
        GIVES(false, vlp_filter_has, filter, bad_id(i, entities), train->relation, train->tail);
        GIVES(false, vlp_filter_has, filter, train->head, bad_id(i, 2 * relations), train->tail);
        GIVES(false, vlp_filter_has, filter, train->head, train->relation, bad_id(i, entities));
    }
    assert_non_null(vlp_filter_answers(filter, train->head, train->relation, NULL));
    assert_true(vlp_filter_has(filter, train->head, train->relation, train->tail));
}

/* ---- 3. Making data sets ------------------------------------------------------------------------- */

static void making(void **state) {
    (void)state;
    char file[128];
    snprintf(file, sizeof file, "%s/train.txt", data);
    NULL_REFUSED(file, vlp_split_file, NULL, NULL, new_folder, NULL);
    NULL_REFUSED(folder, vlp_split_file, NULL, file, NULL, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_split_file, NULL, file, new_folder,
                     &options);
    NULL_REFUSED(file, vlp_import_ntriples, NULL, NULL, new_folder, false, NULL, NULL);
    NULL_REFUSED(folder, vlp_import_ntriples, NULL, file, NULL, false, NULL, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_import_ntriples, NULL, file,
                     new_folder, false, NULL, &options);
    NULL_REFUSED(file, vlp_import_table, NULL, NULL, new_folder, NULL, NULL);
    NULL_REFUSED(folder, vlp_import_table, NULL, file, NULL, NULL, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_import_table, NULL, file, new_folder,
                     NULL, &options);
    VERSIONS_REFUSED(vlp_table_options, VLP_TABLE_OPTIONS_INIT, vlp_import_table, NULL, file, new_folder,
                     &options, NULL);
    vlp_table_options table = VLP_TABLE_OPTIONS_INIT;
    table.columns[1] = 0;
    REFUSED("column 0", vlp_import_table, NULL, file, new_folder, &table, NULL);
    NULL_REFUSED(source, vlp_import_wordnet, NULL, NULL, new_folder, false, NULL);
    NULL_REFUSED(folder, vlp_import_wordnet, NULL, data, NULL, false, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_import_wordnet, NULL, data,
                     new_folder, false, &options);
    vlp_split_options split = VLP_SPLIT_OPTIONS_INIT;
    split.threads = INT32_MIN;
    REFUSED("threads", vlp_split_file, NULL, file, new_folder, &split);
    REFUSED("threads", vlp_import_ntriples, NULL, file, new_folder, false, NULL, &split);
    REFUSED("threads", vlp_import_table, NULL, file, new_folder, NULL, &split);
    REFUSED("threads", vlp_import_wordnet, NULL, data, new_folder, false, &split);
    split = (vlp_split_options)VLP_SPLIT_OPTIONS_INIT;
    split.valid = (double)NAN;
    REFUSED("shares of", vlp_split_file, NULL, file, new_folder, &split);
    NULL_REFUSED(folder, vlp_family_generate, NULL, NULL, NULL);
    VERSIONS_REFUSED(vlp_family_options, VLP_FAMILY_OPTIONS_INIT, vlp_family_generate, NULL, new_folder,
                     &options);
    assert_int_equal(support_count(folder), 1); /* none of these made a folder */
}

/* ---- 4. to 6. Distances, references, audit ------------------------------------------------------- */

static void distances(void **state) {
    (void)state;
    int32_t *out = calloc((size_t)entities, sizeof *out);
    assert_non_null(out);
    vlp_triple pair = {0, 0, 1};
    NULL_REFUSED(out, vlp_distance_from, NULL, dataset, 0, 0);
    NULL_REFUSED(dataset, vlp_distance_from, out, NULL, 0, 0);
    REFUSED("-1 hops", vlp_distance_from, out, dataset, 0, -1);
    NULL_REFUSED(dataset, vlp_distance_pairs, out, NULL, &pair, 1, 1);
    REFUSED("array is NULL", vlp_distance_pairs, NULL, dataset, &pair, 1, 1);
    REFUSED("array is NULL", vlp_distance_pairs, out, dataset, NULL, 1, 1);
    REFUSED("-1 pairs", vlp_distance_pairs, out, dataset, &pair, -1, 1);
    REFUSED("-1 threads", vlp_distance_pairs, out, dataset, &pair, 1, -1);
    must(vlp_distance_pairs(NULL, dataset, NULL, 0, 1));
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_triple head = {bad_id(i, entities), 0, 0}, tail = {0, 0, bad_id(i, entities)};
        REFUSED("entity", vlp_distance_from, out, dataset, bad_id(i, entities), 0);
        REFUSED("out of range", vlp_distance_pairs, out, dataset, &head, 1, 1);
        REFUSED("out of range", vlp_distance_pairs, out, dataset, &tail, 1, 1);
    }
    free(out);
}

static void references(void **state) {
    (void)state;
    vlp_references *made = NULL;
    vlp_query query = {0, 0, -1};
    int64_t edges;
    vlp_dataset_triples(dataset, VLP_TRAIN, &edges);
    NULL_REFUSED(out, vlp_references_find, NULL, dataset, &query, 1, NULL);
    NULL_REFUSED(dataset, vlp_references_find, &made, NULL, &query, 1, NULL);
    REFUSED("-1 queries", vlp_references_find, &made, dataset, &query, -1, NULL);
    VERSIONS_REFUSED(vlp_reference_options, VLP_REFERENCE_OPTIONS_INIT, vlp_references_find, &made,
                     dataset, &query, 1, &options);
    vlp_reference_options wrong[5];
    for (int i = 0; i < 5; i++) wrong[i] = (vlp_reference_options)VLP_REFERENCE_OPTIONS_INIT;
    wrong[0].count = 0;
    wrong[1].count = INT32_MAX;
    wrong[2].max_distance = -1;
    wrong[3].per_head = -1;
    wrong[4].threads = -1;
    for (int i = 0; i < 5; i++) REFUSED("", vlp_references_find, &made, dataset, &query, 1, &wrong[i]);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_query bad[3] = {{bad_id(i, entities), 0, -1}, {0, bad_id(i, 2 * relations), -1}, {0, 0, -2}};
        if (bad_id(i, edges) != -1) bad[2].left_out = bad_id(i, edges);
        for (int j = 0; j < 3; j++)
            REFUSED("query 0", vlp_references_find, &made, dataset, &bad[j], 1, NULL);
    }
    assert_null(made);
    must(vlp_references_find(&made, dataset, &query, 1, NULL));
    int32_t count = 99;
    GIVES(NULL, vlp_references_get, NULL, 0, &count);
    assert_int_equal(count, 0);
    const int64_t numbers[] = {-1, 1, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) {
        count = 99;
        GIVES(NULL, vlp_references_get, made, numbers[i], &count);
        assert_int_equal(count, 0);
    }
    assert_non_null(vlp_references_get(made, 0, NULL));
    vlp_references_free(made);
    DOES_NOTHING(vlp_references_free, NULL);
}

static void audits(void **state) {
    (void)state;
    vlp_audit *audit = NULL;
    NULL_REFUSED(out, vlp_audit_run, NULL, dataset, NULL);
    NULL_REFUSED(dataset, vlp_audit_run, &audit, NULL, NULL);
    VERSIONS_REFUSED(vlp_audit_options, VLP_AUDIT_OPTIONS_INIT, vlp_audit_run, &audit, dataset,
                     &options);
    vlp_audit_options wrong = VLP_AUDIT_OPTIONS_INIT;
    wrong.references.version = 9;
    REFUSED("vlp_reference_options of version 9", vlp_audit_run, &audit, dataset, &wrong);
    const double thresholds[] = {-0.1, 1.1, (double)NAN};
    for (int i = 0; i < 3; i++) {
        wrong = (vlp_audit_options)VLP_AUDIT_OPTIONS_INIT;
        wrong.threshold = thresholds[i];
        REFUSED("threshold", vlp_audit_run, &audit, dataset, &wrong);
    }
    assert_null(audit);
    DOES_NOTHING(vlp_audit_free, NULL);
}

/* ---- 7. Training --------------------------------------------------------------------------------- */

static void training(void **state) {
    (void)state;
    GIVES(NULL, vlp_component_name, (vlp_component)-1);
    GIVES(NULL, vlp_component_name, VLP_COMPONENTS);
    vlp_train_report report = {.steps = 77};
    NULL_REFUSED(data, vlp_train, &report, NULL, new_folder, NULL);
    NULL_REFUSED(run, vlp_train, &report, data, NULL, NULL);
    NULL_REFUSED(dataset, vlp_train_dataset, &report, NULL, new_folder, NULL);
    NULL_REFUSED(run, vlp_train_dataset, &report, dataset, NULL, NULL);
    VERSIONS_REFUSED(vlp_train_options, VLP_TRAIN_OPTIONS_INIT, vlp_train_dataset, &report, dataset,
                     new_folder, &options);
    VERSIONS_REFUSED(vlp_train_options, VLP_TRAIN_OPTIONS_INIT, vlp_train, &report, data, new_folder,
                     &options);
    vlp_train_options wrong = VLP_TRAIN_OPTIONS_INIT;
    wrong.setting_count = -1;
    REFUSED("-1 settings", vlp_train, &report, data, new_folder, &wrong);
    wrong.setting_count = 1;
    REFUSED("array is NULL", vlp_train, &report, data, new_folder, &wrong);
    const char *settings[] = {NULL};
    wrong.settings = settings;
    REFUSED("key=value", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "dim";
    REFUSED("key=value, not 'dim'", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "dim=0";
    REFUSED("dim takes", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "trains=head";
    REFUSED("needs embeddings", vlp_train, &report, data, new_folder, &wrong);
    wrong = (vlp_train_options)VLP_TRAIN_OPTIONS_INIT;
    wrong.device = "abacus";
    REFUSED("device 'abacus'", vlp_train, &report, data, new_folder, &wrong);
    assert_int_equal(report.steps, 77); /* untouched on failure */
    assert_int_equal(support_count(folder), 1);
    vlp_setting_info info = {.name = "mine"};
    GIVES(false, vlp_setting_describe, NULL, 0);
    GIVES(false, vlp_setting_describe, &info, -1);
    GIVES(false, vlp_setting_describe, &info, INT32_MAX);
    GIVES(false, vlp_setting_describe, &info, INT32_MIN);
    assert_string_equal(info.name, "mine");
}

/* What is wrong with other statuses than the argument's. */
static void statuses(void **state) {
    (void)state;
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    assert_int_equal(vlp_train(NULL, data, trained, &options), VLP_ERROR_EXISTS);
    assert_int_equal(vlp_family_generate(NULL, data, NULL), VLP_ERROR_EXISTS);
    char file[128];
    snprintf(file, sizeof file, "%s/train.txt", data);
    assert_int_equal(vlp_split_file(NULL, file, file, NULL), VLP_ERROR_EXISTS);
    const char *settings[] = {"dims=3"};
    options.settings = settings;
    options.setting_count = 1;
    assert_int_equal(vlp_train(NULL, data, new_folder, &options), VLP_ERROR_UNKNOWN);
}

/* ---- 8. Runs ------------------------------------------------------------------------------------- */

static void runs(void **state) {
    (void)state;
    vlp_run *made = run;
    NULL_REFUSED(out, vlp_run_open, NULL, trained, NULL);
    NULL_REFUSED(folder, vlp_run_open, &made, NULL, NULL);
    assert_null(made);
    VERSIONS_REFUSED(vlp_run_options, VLP_RUN_OPTIONS_INIT, vlp_run_open, &made, trained, &options);
    vlp_run_options wrong = VLP_RUN_OPTIONS_INIT;
    wrong.threads = -1;
    REFUSED("threads", vlp_run_open, &made, trained, &wrong);
    wrong = (vlp_run_options)VLP_RUN_OPTIONS_INIT;
    wrong.device = "";
    REFUSED("device", vlp_run_open, &made, trained, &wrong);
    DOES_NOTHING(vlp_run_free, NULL);
    GIVES(NULL, vlp_run_dataset, NULL);
    GIVES(NULL, vlp_run_checksum, NULL);
    GIVES(NULL, vlp_run_version, NULL);
    char text[64] = "mine";
    GIVES(false, vlp_run_setting, NULL, run, 0);
    GIVES(false, vlp_run_setting, text, NULL, 0);
    GIVES(false, vlp_run_setting, text, run, -1);
    GIVES(false, vlp_run_setting, text, run, INT32_MAX);
    assert_string_equal(text, "mine");
    vlp_history *history = NULL;
    NULL_REFUSED(out, vlp_run_history, NULL, run);
    NULL_REFUSED(run, vlp_run_history, &history, NULL);
    DOES_NOTHING(vlp_history_free, NULL);
    NULL_REFUSED(run, vlp_run_export, NULL, new_folder);
    NULL_REFUSED(folder, vlp_run_export, run, NULL);
    vlp_run_info info;
    memset(&info, 0x5a, sizeof info);
    DOES_NOTHING(vlp_run_describe, NULL, run);
    vlp_run_describe(&info, NULL);
    assert_null(info.folder);
    assert_int_equal(info.dim, 0);
}

static void evaluations(void **state) {
    (void)state;
    vlp_evaluation *made = NULL;
    NULL_REFUSED(out, vlp_run_evaluate, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_evaluate, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_evaluation_options, VLP_EVALUATION_OPTIONS_INIT, vlp_run_evaluate, &made, run,
                     &options);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_evaluation_options wrong = VLP_EVALUATION_OPTIONS_INIT;
        wrong.split = (vlp_split)bad_id(i, VLP_SPLITS);
        REFUSED("no split", vlp_run_evaluate, &made, run, &wrong);
        wrong = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
        wrong.sides = (vlp_sides)bad_id(i, VLP_TAILS + 1);
        REFUSED("sides", vlp_run_evaluate, &made, run, &wrong);
        wrong = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
        int32_t candidate = bad_id(i, entities);
        wrong.candidates = &candidate;
        wrong.candidate_count = 1;
        REFUSED("candidate", vlp_run_evaluate, &made, run, &wrong);
        wrong.candidate_count = -1;
        REFUSED("-1 candidates", vlp_run_evaluate, &made, run, &wrong);
    }
    vlp_evaluation_options other = VLP_EVALUATION_OPTIONS_INIT;
    other.filter = 8;
    REFUSED("splits 0x8", vlp_run_evaluate, &made, run, &other);
    assert_null(made);
    must(vlp_run_evaluate(&made, run, NULL));
    vlp_evaluation empty = {0};
    note("vlp_evaluation_rank");
    assert_true(isnan(vlp_evaluation_rank(NULL, VLP_BY_F, 0)));
    assert_true(isnan(vlp_evaluation_rank(&empty, VLP_BY_F, 0)));
    const int64_t numbers[] = {-1, made->queries, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) assert_true(isnan(vlp_evaluation_rank(made, VLP_BY_F, numbers[i])));
    vlp_interval out;
    NULL_REFUSED(out, vlp_evaluation_compare, NULL, made, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(first, vlp_evaluation_compare, &out, NULL, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(second, vlp_evaluation_compare, &out, made, VLP_BY_F, NULL, VLP_BY_F);
    NULL_REFUSED(first->ranks, vlp_evaluation_compare, &out, &empty, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(second->ranks, vlp_evaluation_compare, &out, made, VLP_BY_F, &empty, VLP_BY_F);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_ranked_by by = (vlp_ranked_by)bad_id(i, VLP_BY_F_C + 1);
        assert_true(isnan(vlp_evaluation_rank(made, by, 0)));
        REFUSED("rank by", vlp_evaluation_compare, &out, made, by, made, VLP_BY_F);
        REFUSED("rank by", vlp_evaluation_compare, &out, made, VLP_BY_F, made, by);
    }
    assert_true(vlp_evaluation_rank(made, VLP_BY_F_C, made->queries - 1) >= 1);
    vlp_evaluation_free(made);
    DOES_NOTHING(vlp_evaluation_free, NULL);
}

/* ---- 9. Predicting ------------------------------------------------------------------------------- */

static void predictions(void **state) {
    (void)state;
    vlp_predictions *made = NULL;
    vlp_query query = {0, 0, -1};
    int32_t answer = 0;
    NULL_REFUSED(out, vlp_run_predict, NULL, run, &query, 1, NULL);
    NULL_REFUSED(run, vlp_run_predict, &made, NULL, &query, 1, NULL);
    REFUSED("array is NULL", vlp_run_predict, &made, run, NULL, 1, NULL);
    REFUSED("-1 queries", vlp_run_predict, &made, run, &query, -1, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_predict, &made, run, &query,
                     1, &options);
    NULL_REFUSED(out, vlp_run_explain, NULL, run, &query, &answer, 1, NULL);
    NULL_REFUSED(run, vlp_run_explain, &made, NULL, &query, &answer, 1, NULL);
    REFUSED("queries, and their array is NULL", vlp_run_explain, &made, run, NULL, &answer, 1, NULL);
    REFUSED("answers, and their array is NULL", vlp_run_explain, &made, run, &query, NULL, 1, NULL);
    REFUSED("-1 answers", vlp_run_explain, &made, run, &query, &answer, -1, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_explain, &made, run, &query,
                     &answer, 1, &options);
    vlp_predict_options wrong = VLP_PREDICT_OPTIONS_INIT;
    wrong.count = 0;
    REFUSED("0 answers", vlp_run_predict, &made, run, &query, 1, &wrong);
    wrong = (vlp_predict_options)VLP_PREDICT_OPTIONS_INIT;
    wrong.filter = UINT32_MAX;
    REFUSED("splits", vlp_run_predict, &made, run, &query, 1, &wrong);
    REFUSED("splits", vlp_run_explain, &made, run, &query, &answer, 1, &wrong);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_query bad[2] = {{bad_id(i, entities), 0, -1}, {0, bad_id(i, 2 * relations), -1}};
        int32_t bad_answer = bad_id(i, entities);
        for (int j = 0; j < 2; j++) {
            REFUSED("query 0", vlp_run_predict, &made, run, &bad[j], 1, NULL);
            REFUSED("query 0", vlp_run_explain, &made, run, &bad[j], &answer, 1, NULL);
        }
        REFUSED("query 0: answer", vlp_run_explain, &made, run, &query, &bad_answer, 1, NULL);
    }
    assert_null(made);
    vlp_predict_options all = VLP_PREDICT_OPTIONS_INIT;
    all.count = INT32_MAX; /* more than there are */
    must(vlp_run_predict(&made, run, &query, 1, &all));
    assert_non_null(vlp_predictions_get(made, 0));
    GIVES(NULL, vlp_predictions_get, NULL, 0);
    const int64_t numbers[] = {-1, 1, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) GIVES(NULL, vlp_predictions_get, made, numbers[i]);
    vlp_predictions_free(made);
    must(vlp_run_predict(&made, run, NULL, 0, NULL));
    vlp_predictions_free(made);
    DOES_NOTHING(vlp_predictions_free, NULL);
}

static void scores(void **state) {
    (void)state;
    vlp_score out;
    vlp_triple triple = {0, 0, 1};
    NULL_REFUSED(run, vlp_run_score, &out, NULL, &triple, 1, NULL);
    REFUSED("scores, and their array is NULL", vlp_run_score, NULL, run, &triple, 1, NULL);
    REFUSED("triples, and their array is NULL", vlp_run_score, &out, run, NULL, 1, NULL);
    REFUSED("-1 scores", vlp_run_score, &out, run, &triple, -1, NULL);
    VERSIONS_REFUSED(vlp_score_options, VLP_SCORE_OPTIONS_INIT, vlp_run_score, &out, run, &triple, 1,
                     &options);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_triple bad[3] = {
            {bad_id(i, entities), 0, 0}, {0, bad_id(i, relations), 0}, {0, 0, bad_id(i, entities)}};
        for (int j = 0; j < 3; j++) REFUSED("triple 0", vlp_run_score, &out, run, &bad[j], 1, NULL);
    }
    must(vlp_run_score(NULL, run, NULL, 0, NULL));
    vlp_calibration calibration;
    NULL_REFUSED(out, vlp_run_calibrate, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_calibrate, &calibration, NULL, NULL);
    VERSIONS_REFUSED(vlp_calibration_options, VLP_CALIBRATION_OPTIONS_INIT, vlp_run_calibrate,
                     &calibration, run, &options);
    vlp_calibration_options wrong = VLP_CALIBRATION_OPTIONS_INIT;
    wrong.exchanges = INT32_MAX;
    REFUSED("exchanges", vlp_run_calibrate, &calibration, run, &wrong);
}

static void mining(void **state) {
    (void)state;
    vlp_mining *made = NULL;
    NULL_REFUSED(out, vlp_run_mine, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_mine, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_mine_options, VLP_MINE_OPTIONS_INIT, vlp_run_mine, &made, run, &options);
    vlp_mine_options wrong[5];
    for (int i = 0; i < 5; i++) wrong[i] = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    wrong[0].relation = -2;
    wrong[1].relation = relations;
    wrong[2].relation = INT32_MAX;
    wrong[3].count = 0;
    wrong[4].per_query = INT32_MAX;
    for (int i = 0; i < 5; i++) REFUSED("", vlp_run_mine, &made, run, &wrong[i]);
    assert_null(made);
    DOES_NOTHING(vlp_mining_free, NULL);
    NULL_REFUSED(run, vlp_run_use_graph, NULL, NULL, data, NULL);
    int64_t count = 99;
    GIVES(NULL, vlp_run_graph_triples, NULL, &count);
    assert_int_equal(count, 0);
    GIVES(NULL, vlp_run_graph_dataset, NULL);
    assert_ptr_equal(vlp_run_graph_dataset(run), vlp_run_dataset(run));
    assert_non_null(vlp_run_graph_triples(run, NULL));
}

static void triple_files(void **state) {
    (void)state;
    vlp_triple_reader *made = NULL;
    vlp_triple triple;
    bool more;
    char path[128];
    snprintf(path, sizeof path, "%s/train.txt", data);
    NULL_REFUSED(out, vlp_triple_reader_open, NULL, dataset, path, false);
    NULL_REFUSED(dataset, vlp_triple_reader_open, &made, NULL, path, false);
    NULL_REFUSED(path, vlp_triple_reader_open, &made, dataset, NULL, false);
    assert_null(made);
    must(vlp_triple_reader_open(&made, dataset, path, false));
    NULL_REFUSED(out, vlp_triple_reader_next, NULL, &more, made);
    NULL_REFUSED(more, vlp_triple_reader_next, &triple, NULL, made);
    NULL_REFUSED(reader, vlp_triple_reader_next, &triple, &more, NULL);
    assert_int_equal(vlp_triple_reader_line(made), 0);
    must(vlp_triple_reader_next(&triple, &more, made));
    assert_true(more);
    vlp_triple_reader_free(made);
    GIVES(0, vlp_triple_reader_line, NULL);
    DOES_NOTHING(vlp_triple_reader_free, NULL);
}

static void queries(void **state) {
    (void)state;
    note("vlp_query_of");
    vlp_triple bad[2 + 3 * BAD_IDS] = {{-1, 0, -1}, {0, 0, 0}};
    for (int i = 0; i < BAD_IDS; i++) {
        bad[2 + 3 * i] = (vlp_triple){bad_id(i, entities), 0, -1};
        bad[3 + 3 * i] = (vlp_triple){-1, 0, bad_id(i, entities)};
        bad[4 + 3 * i] = (vlp_triple){0, bad_id(i, relations), -1};
    }
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        bool last = i == sizeof bad / sizeof *bad; /* a good one, and no data set */
        vlp_query query =
            last ? vlp_query_of(NULL, (vlp_triple){0, 0, -1}) : vlp_query_of(dataset, bad[i]);
        assert_int_equal(query.entity, -1);
        assert_int_equal(query.relation, -1);
        assert_int_equal(query.left_out, -1);
    }
    vlp_query forward = vlp_query_of(dataset, (vlp_triple){2, 1, -1});
    vlp_query backward = vlp_query_of(dataset, (vlp_triple){-1, 1, 2});
    assert_int_equal(forward.entity, 2);
    assert_int_equal(forward.relation, 1);
    assert_int_equal(backward.entity, 2);
    assert_int_equal(backward.relation, 1 + relations);
}

/* ---- All of them --------------------------------------------------------------------------------- */

/* The last test: every function of the header was called by one of the others. */
static void nothing_is_left_out(void **state) {
    (void)state;
    char *text = support_read("include", "vlp.h");
    assert_non_null(text);
    int found = 0, missing = 0;
    for (char *at = text; (at = strstr(at, "\nVLP_API ")); found++) {
        char *end = strchr(at, '('), *start = end;
        while (start > at && (start[-1] == '_' || (start[-1] >= 'a' && start[-1] <= 'z'))) start--;
        *end = '\0';
        bool known = false;
        for (int i = 0; i < called_count; i++) known = known || strcmp(called[i], start) == 0;
        if (!known) print_error("%s is public, and no test here calls it with bad arguments\n", start);
        missing += !known;
        at = end + 1;
    }
    free(text);
    assert_true(found > 50);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(library),
                                       cmocka_unit_test(data_sets),
                                       cmocka_unit_test(filters),
                                       cmocka_unit_test(making),
                                       cmocka_unit_test(distances),
                                       cmocka_unit_test(references),
                                       cmocka_unit_test(audits),
                                       cmocka_unit_test(training),
                                       cmocka_unit_test(statuses),
                                       cmocka_unit_test(runs),
                                       cmocka_unit_test(evaluations),
                                       cmocka_unit_test(predictions),
                                       cmocka_unit_test(scores),
                                       cmocka_unit_test(mining),
                                       cmocka_unit_test(triple_files),
                                       cmocka_unit_test(queries),
                                       cmocka_unit_test(nothing_is_left_out)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
