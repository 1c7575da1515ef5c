/* Data sets from memory: by names and by ids they are what reading the same triples from files gives;
 * texts and ids that are wrong are refused by place; every allocation may fail. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "graph/dataset.h"
#include "oracle.h"

enum { MOST = 400 };

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* Triples at random, by name, with repeated ones and with names that only a later split has. */
typedef struct sample {
    char names[VLP_SPLITS][MOST][3][24];
    vlp_named_triple triples[VLP_SPLITS][MOST];
    int64_t counts[VLP_SPLITS];
} sample;

static sample *sample_make(uint64_t seed) {
    static const char *const marks[] = {"e", "\xc3\xa9", "\xe6\x9d\xb1 ", "?", "r\xc2\x9b"};
    oracle_random random = {seed, 0, 0};
    sample *made = calloc(1, sizeof *made);
    assert_non_null(made);
    for (int split = 0; split < VLP_SPLITS; split++) {
        made->counts[split] =
            split == VLP_TRAIN ? 1 + oracle_below(&random, MOST) : oracle_below(&random, 60);
        int32_t entities = 1 + oracle_below(&random, 40);
        for (int64_t i = 0; i < made->counts[split]; i++) {
            char(*names)[24] = made->names[split][i];
            for (int end = 0; end < 3; end++)
                snprintf(names[end], sizeof names[end], "%s%d", marks[oracle_below(&random, 5)],
                         oracle_below(&random, end == 1 ? 3 : entities));
            made->triples[split][i] = (vlp_named_triple){names[0], names[1], names[2]};
        }
    }
    return made;
}

static void sample_write(const sample *made, const char *folder) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        char name[16];
        snprintf(name, sizeof name, "%s.txt", vlp_split_names[split]);
        FILE *file = fopen(support_path(folder, name), "w");
        assert_non_null(file);
        for (int64_t i = 0; i < made->counts[split]; i++)
            fprintf(file, "%s\t%s\t%s\n", made->triples[split][i].head, made->triples[split][i].relation,
                    made->triples[split][i].tail);
        fclose(file);
    }
}

static vlp_status from_names(vlp_dataset **out, const sample *made) {
    const vlp_named_triple *triples[VLP_SPLITS];
    for (int split = 0; split < VLP_SPLITS; split++)
        triples[split] = made->counts[split] ? made->triples[split] : NULL;
    return vlp_dataset_from_names(out, triples, made->counts, NULL);
}

static void same_datasets(const vlp_dataset *left, const vlp_dataset *right) {
    char checksums[2][33];
    vlp_dataset_checksum(checksums[0], left);
    vlp_dataset_checksum(checksums[1], right);
    assert_string_equal(checksums[0], checksums[1]);
    vlp_dataset_stats stats[2];
    must(vlp_dataset_describe(&stats[0], left));
    must(vlp_dataset_describe(&stats[1], right));
    stats[0].bytes = stats[1].bytes = 0;
    assert_memory_equal(&stats[0], &stats[1], sizeof stats[0]);
    for (int32_t i = 0; i < stats[0].entities; i++)
        assert_string_equal(vlp_dataset_entity_name(left, i), vlp_dataset_entity_name(right, i));
    for (int32_t i = 0; i < stats[0].relations; i++)
        assert_string_equal(vlp_dataset_relation_name(left, i), vlp_dataset_relation_name(right, i));
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t counts[2];
        const vlp_triple *a = vlp_dataset_triples(left, (vlp_split)split, &counts[0]);
        const vlp_triple *b = vlp_dataset_triples(right, (vlp_split)split, &counts[1]);
        assert_int_equal(counts[0], counts[1]);
        if (counts[0]) assert_memory_equal(a, b, (size_t)counts[0] * sizeof *a);
    }
}

/* The content of a data set by ids, names included; to be freed by free(names). */
static vlp_dataset_content content_of(const vlp_dataset *dataset, const char ***names) {
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    content.entities = vlp_dataset_entity_count(dataset);
    content.relations = vlp_dataset_relation_count(dataset);
    *names = calloc((size_t)(content.entities + content.relations), sizeof **names);
    assert_non_null(*names);
    for (int32_t i = 0; i < content.entities; i++) (*names)[i] = vlp_dataset_entity_name(dataset, i);
    for (int32_t i = 0; i < content.relations; i++)
        (*names)[content.entities + i] = vlp_dataset_relation_name(dataset, i);
    content.entity_names = *names;
    content.relation_names = *names + content.entities;
    for (int split = 0; split < VLP_SPLITS; split++)
        content.triples[split] = vlp_dataset_triples(dataset, (vlp_split)split, &content.counts[split]);
    return content;
}

static void memory_is_as_files(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        const char *folder = support_folder(), **names;
        sample *made = sample_make(seed);
        sample_write(made, folder);
        vlp_dataset *read = NULL, *named = NULL, *numbered = NULL;
        must(vlp_dataset_open(&read, folder, NULL));
        must(from_names(&named, made));
        same_datasets(read, named);
        assert_null(named->folder);
        /* The arrays are the caller's again. */
        memset(made, 0xee, sizeof *made);
        free(made);
        vlp_dataset_content content = content_of(named, &names);
        must(vlp_dataset_from_ids(&numbered, &content, NULL));
        for (int split = 0; split < VLP_SPLITS; split++)
            numbered->duplicates[split] = named->duplicates[split];
        same_datasets(read, numbered);
        vlp_dataset_free(named);
        vlp_dataset_free(numbered);
        vlp_dataset_free(read);
        free(names);
        support_remove(folder);
    }
}

/* Ids stay, whatever their order; names are the ids where there are none; repeated triples go. */
static void ids_stay(void **state) {
    (void)state;
    const vlp_triple train[] = {{5, 1, 0}, {0, 0, 5}, {5, 1, 0}, {2, 0, 2}}, test[] = {{4, 2, 5}};
    const char *labels[] = {NULL, "one", "", "three", NULL, "five"};
    const char *descriptions[] = {"zero only", NULL, NULL, "3", NULL, NULL};
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    content.triples[VLP_TRAIN] = train;
    content.counts[VLP_TRAIN] = 4;
    content.triples[VLP_TEST] = test;
    content.counts[VLP_TEST] = 1;
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    assert_int_equal(vlp_dataset_entity_count(dataset), 6);
    assert_int_equal(vlp_dataset_relation_count(dataset), 3);
    assert_string_equal(vlp_dataset_entity_name(dataset, 5), "5");
    assert_string_equal(vlp_dataset_relation_name(dataset, 2), "2");
    assert_null(vlp_dataset_entity_label(dataset, 1));
    vlp_dataset_stats stats;
    must(vlp_dataset_describe(&stats, dataset));
    assert_int_equal(stats.triples[VLP_TRAIN], 3);
    assert_int_equal(stats.duplicates[VLP_TRAIN], 1);
    assert_int_equal(stats.unseen_entities[VLP_TEST], 1); /* 4; 1 and 3 are in no triple */
    assert_int_equal(stats.unseen_relations[VLP_TEST], 1);
    int32_t distances[6];
    must(vlp_distance_from(distances, dataset, 0, 0));
    assert_int_equal(distances[5], 1);
    assert_int_equal(distances[3], -1);
    vlp_dataset_free(dataset);

    content.entities = 6;
    content.entity_labels = labels;
    content.entity_descriptions = descriptions;
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    assert_string_equal(vlp_dataset_entity_label(dataset, 3), "three");
    assert_string_equal(vlp_dataset_entity_description(dataset, 3), "3");
    assert_string_equal(vlp_dataset_entity_description(dataset, 0), "zero only");
    assert_null(vlp_dataset_entity_label(dataset, 0));
    assert_null(vlp_dataset_entity_label(dataset, 2));
    int32_t found;
    must(vlp_dataset_find_entity(&found, dataset, "five"));
    assert_int_equal(found, 5);
    must(vlp_dataset_describe(&stats, dataset));
    assert_int_equal(stats.labels, 3);
    assert_int_equal(stats.relation_labels, 0);
    vlp_dataset_free(dataset);

    /* Relations are found by their labels likewise: a name comes first, two with a label are none. */
    const char *relation_labels[] = {"2", "same", "same"}, *relation_descriptions[] = {"zero", NULL, ""};
    content.relations = 3;
    content.relation_labels = relation_labels;
    content.relation_descriptions = relation_descriptions;
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    assert_string_equal(vlp_dataset_relation_label(dataset, 0), "2");
    assert_string_equal(vlp_dataset_relation_description(dataset, 0), "zero");
    assert_null(vlp_dataset_relation_description(dataset, 2));
    must(vlp_dataset_find_relation(&found, dataset, "2"));
    assert_int_equal(found, 2);
    assert_int_equal(vlp_dataset_find_relation(&found, dataset, "same"), VLP_ERROR_UNKNOWN);
    assert_non_null(strstr(vlp_error_message(), "the label of 1 and of 2"));
    must(vlp_dataset_describe(&stats, dataset));
    assert_int_equal(stats.relation_labels, 3);
    vlp_dataset_free(dataset);
    relation_labels[0] = "zeroth";
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    must(vlp_dataset_find_relation(&found, dataset, "zeroth"));
    assert_int_equal(found, 0);
    assert_int_equal(vlp_dataset_find_relation(&found, dataset, "zeroht"), VLP_ERROR_UNKNOWN);
    assert_non_null(strstr(vlp_error_message(), "nearest known: zeroth"));
    vlp_dataset_free(dataset);
}

static void expect(vlp_status status, vlp_dataset *dataset, const char *part) {
    assert_int_equal(status, VLP_ERROR_ARGUMENT);
    assert_null(dataset);
    if (!strstr(vlp_error_message(), part)) fail_msg("'%s' not in '%s'", part, vlp_error_message());
}

static void names_are_checked(void **state) {
    (void)state;
    static const struct {
        vlp_named_triple triple;
        const char *part;
    } cases[] = {{{"", "r", "b"}, "triple 1 of valid: an empty name (the head)"},
                 {{"a", NULL, "b"}, "no name (the relation)"},
                 {{"a", "r", "b\tc"}, "a control character (the tail)"},
                 {{"a", "r", "b\n"}, "a control character (the tail)"},
                 {{"a\x7f", "r", "b"}, "a control character (the head)"},
                 {{"a", "\xff", "b"}, "invalid UTF-8 (the relation)"}};
    vlp_dataset *dataset = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vlp_named_triple train = {"a", "r", "b"}, valid[2] = {train, cases[i].triple};
        const vlp_named_triple *const triples[VLP_SPLITS] = {&train, valid, NULL};
        const int64_t counts[VLP_SPLITS] = {1, 2, 0};
        expect(vlp_dataset_from_names(&dataset, triples, counts, NULL), dataset, cases[i].part);
    }
    const vlp_named_triple *const none[VLP_SPLITS] = {NULL, NULL, NULL};
    const int64_t empty[VLP_SPLITS] = {0, 0, 0}, missing[VLP_SPLITS] = {1, 0, 0};
    expect(vlp_dataset_from_names(&dataset, none, empty, NULL), dataset, "no training triples");
    expect(vlp_dataset_from_names(&dataset, none, missing, NULL), dataset, "triples of train are NULL");
    expect(vlp_dataset_from_names(&dataset, NULL, empty, NULL), dataset, "NULL");
    expect(vlp_dataset_from_names(&dataset, none, NULL, NULL), dataset, "NULL");
    expect(vlp_dataset_from_names(NULL, none, empty, NULL), dataset, "out is NULL");
}

static void ids_are_checked(void **state) {
    (void)state;
    const vlp_triple good = {0, 0, 1}, bad[] = {{0, 0, 2}, {-1, 0, 1}, {0, 1, 1}, {0, -1, 0}};
    const char *const parts[] = {"triple 0 of test: tail 2; it is 0 to 1", "head -1", "relation 1",
                                 "relation -1"};
    const char *names[] = {"a", "b"}, *twice[] = {"a", "a"}, *wrong[] = {"a", "b\tc"},
               *relation[] = {"r"};
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT, changed;
    content.triples[VLP_TRAIN] = &good;
    content.counts[VLP_TRAIN] = content.relations = 1;
    content.entities = 2;
    content.entity_names = names;
    content.relation_names = relation;
    vlp_dataset *dataset = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        changed = content;
        changed.triples[VLP_TEST] = &bad[i];
        changed.counts[VLP_TEST] = 1;
        expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, parts[i]);
    }
    changed = content;
    changed.entity_names = twice;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "'a' is the name of both 0 and 1");
    changed.entity_names = wrong;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "the name of entity 1: a control");
    changed = content;
    changed.entity_labels = wrong;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "the label of entity 1");
    changed = content;
    changed.relation_labels = wrong + 1;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "the label of relation 0");
    changed = content;
    changed.relation_descriptions = wrong + 1;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "the description of relation 0");
    changed = content;
    changed.relations = 0;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "names or labels for 0 relations");
    changed = content;
    changed.entities = 0;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "names or labels for 0 entities");
    changed = content;
    changed.relations = -1;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "-1 relations");
    changed = content;
    changed.version = 3;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "version 3");
    changed = content;
    changed.counts[VLP_VALID] = -1;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "-1 triples in valid");
    changed.counts[VLP_VALID] = 1;
    expect(vlp_dataset_from_ids(&dataset, &changed, NULL), dataset, "triples of valid are NULL");
    expect(vlp_dataset_from_ids(&dataset, NULL, NULL), dataset, "content is NULL");
    expect(vlp_dataset_from_ids(NULL, &content, NULL), dataset, "out is NULL");
    must(vlp_dataset_from_ids(&dataset, &content, NULL));
    vlp_dataset_free(dataset);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    sample *made = sample_make(7);
    const char **names;
    vlp_dataset *whole = NULL;
    must(from_names(&whole, made));
    vlp_dataset_content content = content_of(whole, &names);
    content.entity_labels = content.entity_descriptions = content.entity_names;
    content.relation_labels = content.relation_descriptions = content.relation_names;
    vlp_dataset_options options = {1, 1, NULL};
    failing_allocator memory;
    for (int way = 0; way < 2; way++) {
        int64_t call = 0;
        do {
            vlp_dataset *dataset = NULL;
            failing_allocator_install(&memory, ++call);
            vlp_status status =
                way ? vlp_dataset_from_ids(&dataset, &content, &options) : from_names(&dataset, made);
            assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
            assert_true((status == VLP_OK) == (dataset != NULL));
            vlp_dataset_free(dataset);
            failing_allocator_remove(&memory);
        } while (memory.failed);
        assert_true(call > 10);
    }
    vlp_dataset_free(whole);
    free(names);
    free(made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_as_files),        cmocka_unit_test(ids_stay),
        cmocka_unit_test(names_are_checked),         cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
