/* Making data sets from files, and auditing them, by plain search: what splits take, what an audit
 * finds, which labels are chosen. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_data.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- Dividing ------------------------------------------------------------------------------------ */

static int compare_text(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The triples of some splits as sorted texts, to be freed with free_texts. */
static char **texts_of(const vlp_dataset *dataset, unsigned splits, int64_t *count) {
    *count = 0;
    char **texts = calloc(4096, sizeof *texts);
    assert_non_null(texts);
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t triples;
        const vlp_triple *items = vlp_dataset_triples(dataset, (vlp_split)split, &triples);
        for (int64_t i = 0; (splits >> split & 1) && i < triples; i++) {
            char text[128];
            snprintf(text, sizeof text, "%s %s %s", vlp_dataset_entity_name(dataset, items[i].head),
                     vlp_dataset_relation_name(dataset, items[i].relation),
                     vlp_dataset_entity_name(dataset, items[i].tail));
            assert_true(*count < 4096);
            texts[(*count)++] = strdup(text);
        }
    }
    qsort(texts, (size_t)*count, sizeof *texts, compare_text);
    return texts;
}

static void free_texts(char **texts, int64_t count) {
    for (int64_t i = 0; i < count; i++) free(texts[i]);
    free(texts);
}

/* A folder with all.txt, and in it the division of it as a data set. */
static vlp_dataset *divide(const char *folder, const char *name, const vlp_split_options *options) {
    const char *target = support_path(folder, name);
    must(vlp_split_file(NULL, support_path(folder, "all.txt"), target, options));
    return open_folder(target);
}

/* Triples at random, none twice. */
static void write_all(const char *folder, oracle_random *random) {
    vlp_triple triples[400];
    int64_t count = 0, wanted = 20 + oracle_below(random, 1 + oracle_below(random, 300));
    for (int64_t tries = 0; tries < wanted; tries++) {
        vlp_triple triple = {oracle_below(random, 1 + oracle_below(random, 40)),
                             oracle_below(random, 1 + oracle_below(random, 5)),
                             oracle_below(random, 40)};
        bool is_new = true;
        for (int64_t i = 0; i < count && is_new; i++)
            is_new = memcmp(&triples[i], &triple, sizeof triple) != 0;
        if (is_new) triples[count++] = triple;
    }
    write_triples(folder, "all.txt", triples, count);
}

static int64_t count_of(const vlp_dataset *dataset, int split) {
    int64_t count;
    vlp_dataset_triples(dataset, (vlp_split)split, &count);
    return count;
}

/* Every triple is in one split and none is lost. */
static void check_union(const char *folder, const vlp_dataset *dataset) {
    const char *whole = support_folder();
    char *text = support_read(folder, "all.txt");
    support_write_text(whole, "train.txt", text);
    free(text);
    vlp_dataset *all = open_folder(whole);
    int64_t count, divided;
    char **expected = texts_of(all, ALL, &count), **got = texts_of(dataset, ALL, &divided);
    assert_int_equal(count, divided);
    for (int64_t i = 0; i < count; i++) assert_string_equal(expected[i], got[i]);
    free_texts(expected, count);
    free_texts(got, divided);
    vlp_dataset_free(all);
    support_remove(whole);
}

/* Whether train could spare one more triple. */
static bool could_spare_one(const vlp_dataset *dataset) {
    int64_t train;
    const vlp_triple *items = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
    for (int64_t i = 0; i < train; i++) {
        int others_head = 0, others_tail = 0, others_relation = 0;
        for (int64_t j = 0; j < train; j++) {
            if (j == i) continue;
            others_head += items[j].head == items[i].head || items[j].tail == items[i].head;
            others_tail += items[j].head == items[i].tail || items[j].tail == items[i].tail;
            others_relation += items[j].relation == items[i].relation;
        }
        if (others_head > 0 && others_tail > 0 && others_relation > 0) return true;
    }
    return false;
}

/* Valid and test have their shares, unless train would lose an entity or relation: then they have all
 * that it can spare. */
static void every_entity_stays_in_train(void **state) {
    (void)state;
    oracle_random random = {5, 0, 0};
    int full = 0, short_of = 0;
    for (int round = 0; round < 60; round++) {
        const char *folder = support_folder();
        write_all(folder, &random);
        vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
        options.valid = 0.05 * oracle_below(&random, 10);
        options.test = 0.05 * oracle_below(&random, 10);
        options.seed = (uint64_t)round;
        options.threads = 1;
        vlp_dataset *dataset = divide(folder, "kept", &options);
        check_union(folder, dataset);
        vlp_dataset_stats stats;
        must(vlp_dataset_describe(&stats, dataset));
        double all = (double)(stats.triples[0] + stats.triples[1] + stats.triples[2]);
        int64_t wanted[] = {0, (int64_t)(options.valid * all + 0.5),
                            (int64_t)(options.test * all + 0.5)};
        for (int split = VLP_VALID; split <= VLP_TEST; split++) {
            assert_int_equal(stats.unseen_entities[split], 0);
            assert_int_equal(stats.unseen_relations[split], 0);
            assert_true(stats.triples[split] <= wanted[split]);
            bool met = stats.triples[split] == wanted[split];
            if (!met) assert_false(could_spare_one(dataset));
            full += met && wanted[split] > 0;
            short_of += !met;
        }
        vlp_dataset_free(dataset);
        options.keep_entities = false;
        dataset = divide(folder, "free", &options);
        check_union(folder, dataset);
        for (int split = VLP_VALID; split <= VLP_TEST; split++)
            assert_int_equal(count_of(dataset, split), wanted[split]);
        vlp_dataset_free(dataset);
        support_remove(folder);
    }
    if (full <= 10 || short_of <= 10)
        fail_msg("%d shares met, %d not: too few of a kind", full, short_of);
}

/* How many triples of a relation, by name, some splits have. */
static int64_t relation_count(const vlp_dataset *dataset, const char *name, int split) {
    int64_t count, found = 0;
    const vlp_triple *items = vlp_dataset_triples(dataset, (vlp_split)split, &count);
    for (int64_t i = 0; i < count; i++)
        found += strcmp(vlp_dataset_relation_name(dataset, items[i].relation), name) == 0;
    return found;
}

static void shares_of_every_relation(void **state) {
    (void)state;
    oracle_random random = {6, 0, 0};
    for (int round = 0; round < 20; round++) {
        const char *folder = support_folder();
        write_all(folder, &random);
        vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
        options.valid = 0.1;
        options.test = 0.25;
        options.by_relation = true;
        options.keep_entities = false;
        options.threads = 1;
        vlp_dataset *dataset = divide(folder, "one", &options);
        check_union(folder, dataset);
        for (int32_t r = 0; r < vlp_dataset_relation_count(dataset); r++) {
            const char *name = vlp_dataset_relation_name(dataset, r);
            int64_t counts[VLP_SPLITS], all = 0;
            for (int split = 0; split < VLP_SPLITS; split++)
                all += counts[split] = relation_count(dataset, name, split);
            assert_int_equal(counts[VLP_TEST], (int64_t)(0.25 * (double)all + 0.5));
            assert_int_equal(counts[VLP_VALID], (int64_t)(0.1 * (double)all + 0.5));
        }
        vlp_dataset_free(dataset);
        support_remove(folder);
    }
}

/* Every triple is held out as often as any other, whatever its place in the file. */
static void places_are_even(void **state) {
    (void)state;
    enum { TRIPLES = 20, ROUNDS = 400, HELD = 5 };
    const char *folder = support_folder();
    vlp_triple triples[TRIPLES];
    for (int i = 0; i < TRIPLES; i++) triples[i] = (vlp_triple){i, 0, i + 1};
    write_triples(folder, "all.txt", triples, TRIPLES);
    int64_t held[TRIPLES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
        options.valid = 0;
        options.test = (double)HELD / TRIPLES;
        options.keep_entities = false;
        options.seed = (uint64_t)round;
        options.threads = 1;
        char name[32];
        snprintf(name, sizeof name, "%d", round % 8);
        vlp_dataset *dataset = divide(folder, name, &options);
        int64_t count;
        const vlp_triple *items = vlp_dataset_triples(dataset, VLP_TEST, &count);
        assert_int_equal(count, HELD);
        for (int64_t i = 0; i < count; i++)
            held[atoi(vlp_dataset_entity_name(dataset, items[i].head) + 1)]++;
        vlp_dataset_free(dataset);
        support_remove(support_path(folder, name));
    }
    /* Binomial with p = 1/4: a deviation of 8.7. */
    for (int i = 0; i < TRIPLES; i++)
        if (fabs((double)held[i] - (double)ROUNDS * HELD / TRIPLES) > 4.5 * 8.7)
            fail_msg("triple %d is held out %lld times of %d", i, (long long)held[i], ROUNDS);
    support_remove(folder);
}

/* ---- Auditing ------------------------------------------------------------------------------------ */

static bool in_split(const vlp_dataset *dataset, int split, vlp_triple wanted) {
    int64_t count;
    const vlp_triple *items = vlp_dataset_triples(dataset, (vlp_split)split, &count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&items[i], &wanted, sizeof wanted) == 0) return true;
    return false;
}

/* Triples of `first` in a split whose counterpart under `second`, read the same way or backwards, stands
 * in train and is not the triple itself. */
static int64_t counterparts(const vlp_dataset *dataset, int split, int32_t first, int32_t second,
                            bool inverse) {
    int64_t count, found = 0;
    const vlp_triple *items = vlp_dataset_triples(dataset, (vlp_split)split, &count);
    for (int64_t i = 0; i < count; i++) {
        if (items[i].relation != first) continue;
        vlp_triple other = {items[i].head, second, items[i].tail};
        if (inverse) other = (vlp_triple){items[i].tail, second, items[i].head};
        found += memcmp(&other, &items[i], sizeof other) != 0 && in_split(dataset, VLP_TRAIN, other);
    }
    return found;
}

static void check_pairs(const vlp_dataset *dataset, const vlp_audit *audit, double threshold) {
    int32_t relations = vlp_dataset_relation_count(dataset);
    int64_t pairs = 0;
    for (int32_t first = 0; first < relations; first++)
        for (int32_t second = 0; second < relations; second++)
            for (int inverse = 0; inverse < 2; inverse++) {
                int64_t shared = counterparts(dataset, VLP_TRAIN, first, second, inverse), all = 0,
                        train;
                const vlp_triple *items = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
                for (int64_t i = 0; i < train; i++) all += items[i].relation == first;
                if (shared == 0 || (double)shared / (double)all < threshold) continue;
                const vlp_relation_pair *found = NULL;
                for (int64_t i = 0; i < audit->pair_count; i++)
                    if (audit->pairs[i].first == first && audit->pairs[i].second == second &&
                        audit->pairs[i].inverse == inverse)
                        found = &audit->pairs[i];
                assert_non_null(found);
                assert_int_equal(found->shared, shared);
                assert_true(fabs(found->share - (double)shared / (double)all) < 1e-12);
                assert_int_equal(found->leaked, counterparts(dataset, VLP_TEST, first, second, inverse));
                pairs++;
            }
    assert_int_equal(audit->pair_count, pairs);
    for (int64_t i = 1; i < audit->pair_count; i++)
        assert_true(audit->pairs[i - 1].leaked >= audit->pairs[i].leaked);
}

/* Test triples that some pair gives away. */
static int64_t leaked_by_hand(const vlp_dataset *dataset, const vlp_audit *audit) {
    int64_t count, leaked = 0;
    const vlp_triple *items = vlp_dataset_triples(dataset, VLP_TEST, &count);
    for (int64_t i = 0; i < count; i++) {
        bool is = false;
        for (int64_t p = 0; p < audit->pair_count; p++) {
            const vlp_relation_pair *pair = &audit->pairs[p];
            vlp_triple other = {items[i].head, pair->second, items[i].tail};
            if (pair->inverse) other = (vlp_triple){items[i].tail, pair->second, items[i].head};
            is = is || (pair->first == items[i].relation && in_split(dataset, VLP_TRAIN, other));
        }
        leaked += is;
    }
    return leaked;
}

static void audit_finds_what_repeats(void **state) {
    (void)state;
    oracle_random random = {7, 0, 0};
    int64_t pairs = 0, leaked = 0, overlaps = 0;
    for (int round = 0; round < 80; round++) {
        sizes s = random_sizes(&random);
        s.entities = 3 + oracle_below(&random, 8); /* small: triples meet */
        vlp_dataset *dataset = random_dataset(s, &random);
        vlp_audit_options options = VLP_AUDIT_OPTIONS_INIT;
        options.threshold = 0.1 * oracle_below(&random, 9);
        vlp_audit *audit = NULL;
        must(vlp_audit_run(&audit, dataset, &options));
        for (int a = 0; a < VLP_SPLITS; a++)
            for (int b = a + 1; b < VLP_SPLITS; b++) {
                int64_t count, both = 0;
                const vlp_triple *items = vlp_dataset_triples(dataset, (vlp_split)b, &count);
                for (int64_t i = 0; i < count; i++) both += in_split(dataset, a, items[i]);
                assert_int_equal(audit->overlap[a][b], both);
                overlaps += both;
            }
        check_pairs(dataset, audit, options.threshold);
        assert_int_equal(audit->leaked, leaked_by_hand(dataset, audit));
        pairs += audit->pair_count;
        leaked += audit->leaked;
        vlp_audit_free(audit);
        vlp_dataset_free(dataset);
    }
    assert_true(pairs > 100 && leaked > 100 && overlaps > 100);
}

/* ---- Labels -------------------------------------------------------------------------------------- */

/* The language that was asked for, else none, else any; of several the first. */
static void labels_of_a_language(void **state) {
    (void)state;
    static const char text[] = "<x:a> <x:r> <x:b> .\n"
                               "<x:a> <http://www.w3.org/2000/01/rdf-schema#label> \"Hund\"@de .\n"
                               "<x:a> <http://www.w3.org/2000/01/rdf-schema#label> \"canis\" .\n"
                               "<x:a> <http://www.w3.org/2000/01/rdf-schema#label> \"dog\"@en-GB .\n"
                               "<x:a> <http://www.w3.org/2000/01/rdf-schema#label> \"hound\"@en .\n"
                               "<x:b> <http://www.w3.org/2004/02/skos/core#prefLabel> \"Katze\"@de .\n"
                               "<x:b> <x:weight> \"4\" .\n";
    static const struct {
        const char *language, *labels[2];
    } cases[] = {{"en", {"dog", "Katze"}},
                 {"de", {"Hund", "Katze"}},
                 {"fr", {"canis", "Katze"}},
                 {"e", {"canis", "Katze"}},
                 {NULL, {"Hund", "Katze"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = support_folder(), *target = support_path(folder, "made");
        support_write_text(folder, "all.nt", text);
        vlp_import_report report;
        vlp_file_options how = VLP_FILE_OPTIONS_INIT;
        how.language = cases[i].language;
        must(vlp_import_file(&report, support_path(folder, "all.nt"), target, &how, NULL));
        assert_int_equal(report.skipped, 1);
        assert_int_equal(report.labels, 2);
        vlp_dataset *dataset = open_folder(target);
        assert_int_equal(vlp_dataset_entity_count(dataset), 2);
        for (int e = 0; e < 2; e++)
            assert_string_equal(vlp_dataset_entity_label(dataset, e), cases[i].labels[e]);
        vlp_dataset_free(dataset);
        support_remove(folder);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entity_stays_in_train),
        cmocka_unit_test(shares_of_every_relation),
        cmocka_unit_test(places_are_even),
        cmocka_unit_test(audit_finds_what_repeats),
        cmocka_unit_test(labels_of_a_language),
    };
    return cmocka_run_group_tests_name("making", tests, NULL, NULL);
}
