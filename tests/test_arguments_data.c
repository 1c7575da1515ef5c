/* Every public function with NULL for each of its pointers, with ids, counts and enum values out of
 * range, and with option structs of unknown versions: an error with a message, or the neutral value that
 * vlp.h documents, and never a crash. Here data sets and what is computed from them; the rest
 * is in test_arguments.c. The last test holds the list of functions against the header. */
#include "arguments.h"

#include <math.h>

/* ---- Objects to call with ------------------------------------------------------------------------ */

static vlp_dataset *dataset;
static vlp_filter *filter;
static int32_t entities, relations;
static char data[64], folder[64], new_folder[96];

static int set_up(void **state) {
    (void)state;
    snprintf(data, sizeof data, "%s", support_family(3, 3));
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(new_folder, sizeof new_folder, "%s/new", folder);
    must(vlp_dataset_open(&dataset, data, NULL));
    must(vlp_filter_new(&filter, dataset, 7));
    entities = vlp_dataset_entity_count(dataset);
    relations = vlp_dataset_relation_count(dataset);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vlp_filter_free(filter);
    vlp_dataset_free(dataset);
    support_remove(folder);
    *strrchr(data, '/') = '\0'; /* support_family's own folder */
    support_remove(data);
    return 0;
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
    GIVES(NULL, vlp_dataset_relation_label, NULL, 0);
    GIVES(NULL, vlp_dataset_relation_description, NULL, 0);
    for (int i = 0; i < BAD_IDS; i++) {
        GIVES(NULL, vlp_dataset_entity_name, dataset, bad_id(i, entities));
        GIVES(NULL, vlp_dataset_relation_name, dataset, bad_id(i, relations));
        GIVES(NULL, vlp_dataset_entity_label, dataset, bad_id(i, entities));
        GIVES(NULL, vlp_dataset_entity_description, dataset, bad_id(i, entities));
        GIVES(NULL, vlp_dataset_relation_label, dataset, bad_id(i, relations));
        GIVES(NULL, vlp_dataset_relation_description, dataset, bad_id(i, relations));
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
    NULL_REFUSED(file, vlp_import_file, NULL, NULL, new_folder, NULL, NULL);
    NULL_REFUSED(folder, vlp_import_file, NULL, file, NULL, NULL, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_import_file, NULL, file, new_folder,
                     NULL, &options);
    VERSIONS_REFUSED(vlp_file_options, VLP_FILE_OPTIONS_INIT, vlp_import_file, NULL, file, new_folder,
                     &options, NULL);
    static const struct {
        vlp_format format;
        int32_t columns[3];
        const char *names[3];
        char separator;
        const char *message;
    } wrong[] = {{VLP_FORMATS, {0}, {NULL}, 0, "there is no format 7"},
                 {(vlp_format)-1, {0}, {NULL}, 0, "there is no format -1"},
                 {VLP_FORMAT_AUTO, {1, 0, 2}, {NULL}, 0, "column 0"},
                 {VLP_FORMAT_AUTO, {0}, {"a", NULL, "b"}, 0, "column 0"},
                 {VLP_FORMAT_AUTO, {1, 2, -1}, {NULL}, 0, "column -1"},
                 {VLP_FORMAT_AUTO, {1, 2, 1}, {NULL}, 0, "column 1 is given for two"},
                 {VLP_FORMAT_CSV, {0}, {NULL}, '"', "the separator must be"},
                 {VLP_FORMAT_CSV, {0}, {NULL}, '\n', "the separator must be"},
                 {VLP_FORMAT_CSV, {0}, {NULL}, (char)0xc3, "the separator must be"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        vlp_file_options how = VLP_FILE_OPTIONS_INIT;
        how.format = wrong[i].format;
        memcpy(how.columns, wrong[i].columns, sizeof how.columns);
        memcpy(how.column_names, wrong[i].names, sizeof how.column_names);
        how.separator = wrong[i].separator;
        REFUSED(wrong[i].message, vlp_import_file, NULL, file, new_folder, &how, NULL);
    }
    assert_string_equal(vlp_format_name(VLP_FORMAT_TURTLE), "turtle");
    GIVES(NULL, vlp_format_name, VLP_FORMATS);
    GIVES(NULL, vlp_format_name, (vlp_format)-1);
    NULL_REFUSED(source, vlp_import_wordnet, NULL, NULL, new_folder, false, NULL);
    NULL_REFUSED(folder, vlp_import_wordnet, NULL, data, NULL, false, NULL);
    VERSIONS_REFUSED(vlp_split_options, VLP_SPLIT_OPTIONS_INIT, vlp_import_wordnet, NULL, data,
                     new_folder, false, &options);
    vlp_split_options split = VLP_SPLIT_OPTIONS_INIT;
    split.threads = INT32_MIN;
    REFUSED("threads", vlp_split_file, NULL, file, new_folder, &split);
    REFUSED("threads", vlp_import_file, NULL, file, new_folder, NULL, &split);
    REFUSED("threads", vlp_import_wordnet, NULL, data, new_folder, false, &split);
    split = (vlp_split_options)VLP_SPLIT_OPTIONS_INIT;
    split.valid = (double)NAN;
    REFUSED("shares of", vlp_split_file, NULL, file, new_folder, &split);
    NULL_REFUSED(folder, vlp_family_generate, NULL, NULL, NULL);
    VERSIONS_REFUSED(vlp_family_options, VLP_FAMILY_OPTIONS_INIT, vlp_family_generate, NULL, new_folder,
                     &options);
    NULL_REFUSED(folder, vlp_random_graph_generate, NULL, NULL, NULL);
    VERSIONS_REFUSED(vlp_random_graph_options, VLP_RANDOM_GRAPH_OPTIONS_INIT, vlp_random_graph_generate,
                     NULL, new_folder, &options);
    assert_int_equal(support_count(folder), 0); /* none of these made a folder */
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

/* ---- All of them --------------------------------------------------------------------------------- */

static void nothing_is_left_out(void **state) {
    (void)state;
    int found = 0;
    assert_int_equal(count_missing(2, 6, &found), 0);
    assert_true(found > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_sets),          cmocka_unit_test(filters),    cmocka_unit_test(making),
        cmocka_unit_test(distances),          cmocka_unit_test(references), cmocka_unit_test(audits),
        cmocka_unit_test(nothing_is_left_out)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
