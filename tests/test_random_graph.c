/* The generated graph against what its files say: counts, rules, degrees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "support.h"

static const char *root;

static int setup(void **state) {
    (void)state;
    root = support_folder();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    support_remove(root);
    return 0;
}

/* ---- What the files say ---- */

typedef struct line {
    int head, relation, tail;
} line;

typedef struct lines {
    line *items;
    int count;
} lines;

/* A file of three numbers per line, each behind a letter; one that is not there has no lines. */
static lines read_lines(const char *folder, const char *name) {
    lines out = {NULL, 0};
    char *text = support_read(folder, name), *at = text;
    if (!text) return out;
    for (const char *c = text; *c; c++) out.count += *c == '\n';
    out.items = calloc((size_t)out.count + 1, sizeof *out.items);
    assert_non_null(out.items);
    for (int i = 0; i < out.count; i++) {
        line *to = &out.items[i];
        int used = 0;
        assert_int_equal(
            sscanf(at, "%*c%d\t%*c%d\t%*c%d\n%n", &to->head, &to->relation, &to->tail, &used), 3);
        at += used;
    }
    assert_int_equal(*at, '\0');
    free(text);
    return out;
}

static int compare(const void *left, const void *right) {
    return memcmp(left, right, sizeof(line));
}

static bool has(const lines *sorted, int head, int relation, int tail) {
    line key = {head, relation, tail};
    return bsearch(&key, sorted->items, (size_t)sorted->count, sizeof key, compare) != NULL;
}

/* Whether head -first-> x -second-> tail for some x: by all triples of train. */
static bool follows(const lines *train, const lines *sorted, const line *triple, const line *rule) {
    for (int i = 0; i < train->count; i++)
        if (train->items[i].head == triple->head && train->items[i].relation == rule->relation &&
            has(sorted, train->items[i].tail, rule->tail, triple->tail))
            return true;
    return false;
}

static const char *generate(const char *name, const vlp_random_graph_options *options,
                            vlp_import_report *report) {
    const char *folder = support_path(root, name);
    assert_int_equal(vlp_random_graph_generate(report, folder, options), VLP_OK);
    return folder;
}

/* ---- Tests ---- */

/* Counts are what was asked for, no triple is there twice, every entity and relation is in train. */
static void counts(void **state) {
    (void)state;
    static const struct {
        int entities, triples, relations;
    } sizes[] = {{10, 10, 1}, {10, 30, 3}, {2000, 9000, 40}, {500, 500, 200}, {30000, 150000, 200}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
        options.entities = sizes[s].entities;
        options.triples = sizes[s].triples;
        options.relations = sizes[s].relations;
        options.held_out = 0.1;
        vlp_import_report report;
        char name[16];
        snprintf(name, sizeof name, "counts%zu", s);
        const char *folder = generate(name, &options, &report);
        int64_t total = report.triples[VLP_TRAIN] + report.triples[VLP_VALID] + report.triples[VLP_TEST];
        assert_int_equal(total, sizes[s].triples);
        vlp_dataset *dataset = NULL;
        assert_int_equal(vlp_dataset_open(&dataset, folder, NULL), VLP_OK);
        assert_int_equal(vlp_dataset_entity_count(dataset), sizes[s].entities);
        assert_int_equal(vlp_dataset_relation_count(dataset), report.relations);
        vlp_dataset_stats stats;
        assert_int_equal(vlp_dataset_describe(&stats, dataset), VLP_OK);
        for (int split = 0; split < VLP_SPLITS; split++) {
            assert_int_equal(stats.triples[split], report.triples[split]);
            assert_int_equal(stats.duplicates[split], 0);
            assert_int_equal(stats.unseen_entities[split], 0);
            assert_int_equal(stats.unseen_relations[split], 0);
        }
        vlp_dataset_free(dataset);
    }
}

/* Every held-out triple follows from train by the rule of its relation; shares are as asked for. */
static void held_out_follows(void **state) {
    (void)state;
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    options.entities = 3000;
    options.triples = 15000;
    options.relations = 40;
    options.held_out = 0.1;
    vlp_import_report report;
    const char *folder = generate("rules", &options, &report);
    lines train = read_lines(folder, "train.txt"), sorted = read_lines(folder, "train.txt");
    lines rules = read_lines(folder, "rules.tsv");
    qsort(sorted.items, (size_t)sorted.count, sizeof *sorted.items, compare);
    static const char *const names[] = {"valid.txt", "test.txt"};
    int held_out = 0, composed = 0;
    for (int r = 0; r < rules.count; r++)
        for (int i = 0; i < train.count; i++) composed += train.items[i].relation == rules.items[r].head;
    for (int s = 0; s < 2; s++) {
        lines split = read_lines(folder, names[s]);
        held_out += split.count;
        for (int i = 0; i < split.count; i++) {
            int r = 0;
            while (r < rules.count && rules.items[r].head != split.items[i].relation) r++;
            assert_true(r < rules.count);
            assert_true(follows(&train, &sorted, &split.items[i], &rules.items[r]));
        }
        free(split.items);
    }
    double share = (double)held_out / (held_out + composed);
    assert_true(share > 0.18 && share < 0.22);
    /* A third of all at least can be learned. */
    assert_true(3 * (held_out + composed) > 15000);
    free(train.items);
    free(sorted.items);
    free(rules.items);
}

/* The entities of the top 1% have at least 10 times their even share of the heads, those of the top
 * sixteenth about a quarter: degrees fall with the root of the rank. */
static int descending(const void *left, const void *right) {
    return *(const int *)right - *(const int *)left;
}

static void degrees(void **state) {
    (void)state;
    enum { ENTITIES = 16000 };
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    options.entities = ENTITIES;
    options.triples = 10 * ENTITIES;
    options.relations = 20;
    options.held_out = 0;
    vlp_import_report report;
    const char *folder = generate("degrees", &options, &report);
    assert_null(support_read(folder, "test.txt"));
    lines train = read_lines(folder, "train.txt");
    int *out = calloc(2 * ENTITIES, sizeof *out), *in = out + ENTITIES;
    assert_non_null(out);
    for (int i = 0; i < train.count; i++) {
        out[train.items[i].head]++;
        in[train.items[i].tail]++;
    }
    qsort(out, ENTITIES, sizeof *out, descending);
    qsort(in, ENTITIES, sizeof *in, descending);
    /* Nine tenths of the triples by rank: degree(rank) = 1 + 9 N (sqrt((rank + 1) / N) - sqrt(rank /
     * N)). */
    int top = 0;
    for (int i = 0; i < ENTITIES / 16; i++) top += out[i];
    assert_int_equal(top, ENTITIES / 16 + 9 * ENTITIES / 4);
    assert_int_equal(out[0], 1 + (int)(9 * ENTITIES / 126.4911064));
    assert_true(out[ENTITIES - 1] >= 5 && out[ENTITIES - 1] <= 6);
    assert_true(in[0] > 200);
    free(out);
    free(train.items);
}

static void same_seed_same_bytes(void **state) {
    (void)state;
    static const char *const files[] = {"train.txt", "valid.txt", "test.txt", "rules.tsv"};
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    options.entities = 2000;
    options.triples = 10000;
    options.relations = 20;
    vlp_import_report report;
    generate("one", &options, &report);
    generate("two", &options, &report);
    options.seed = 1;
    generate("other", &options, &report);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *a = support_read(support_path(root, "one"), files[i]);
        char *b = support_read(support_path(root, "two"), files[i]);
        char *c = support_read(support_path(root, "other"), files[i]);
        assert_string_equal(a, b);
        assert_string_not_equal(a, c);
        free(a);
        free(b);
        free(c);
    }
}

static void refuses_bad_options(void **state) {
    (void)state;
    static const vlp_random_graph_options good = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    const char *folder = support_path(root, "bad");
    vlp_random_graph_options bad[] = {good, good, good, good, good, good};
    static const char *const messages[] = {"9 entities",  "relations is 0", "triples is 99999",
                                           "held_out is", "held_out is",    "one would have"};
    bad[0].entities = 9;
    bad[1].relations = 0;
    bad[2].triples = 99999;
    bad[3].held_out = 0.41;
    bad[4].held_out = -0.1;
    bad[5].triples = 1000000000;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(vlp_random_graph_generate(NULL, folder, &bad[i]), VLP_ERROR_ARGUMENT);
        assert_non_null(strstr(vlp_error_message(), messages[i]));
    }
    assert_int_equal(support_count(root), 0);
}

static void survives_lack_of_memory(void **state) {
    (void)state;
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    options.entities = 500;
    options.triples = 2000;
    options.relations = 20;
    const char *folder = support_path(root, "memory");
    failing_allocator memory;
    int64_t call = 0;
    vlp_status status;
    do {
        failing_allocator_install(&memory, ++call);
        status = vlp_random_graph_generate(NULL, folder, &options);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        assert_int_equal(support_count(root), status == VLP_OK);
    } while (memory.failed);
    assert_int_equal(status, VLP_OK);
    assert_true(call > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts, setup, teardown),
        cmocka_unit_test_setup_teardown(held_out_follows, setup, teardown),
        cmocka_unit_test_setup_teardown(degrees, setup, teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_bad_options, setup, teardown),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
