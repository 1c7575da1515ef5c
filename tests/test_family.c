/* The family world against a slow oracle that sees nothing but the written files: it takes father,
 * mother, husband and wife from train.txt, works out every relation from them as a matrix of people by
 * people, and holds every line of the splits and of hops.tsv to that. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_allocator.h"

/* ---- Folders ---- */

typedef struct fixture {
    char root[64], folder[80], other[80];
} fixture;

static const char *const file_names[] = {"train.txt", "valid.txt", "test.txt", "labels.tsv", "hops.tsv"};
enum { TRAIN, VALID, TEST, LABELS, HOPS, FILES };

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    strcpy(f->root, "/tmp/vlp-test-family-XXXXXX");
    if (!mkdtemp(f->root)) return -1;
    snprintf(f->folder, sizeof f->folder, "%s/out", f->root);
    snprintf(f->other, sizeof f->other, "%s/other", f->root);
    *state = f;
    return 0;
}

static void remove_output(const char *folder) {
    char path[256];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, file_names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static int teardown(void **state) {
    fixture *f = *state;
    remove_output(f->folder);
    remove_output(f->other);
    /* Fails if anything was left beside the folders. */
    int left = rmdir(f->root);
    free(f);
    return left;
}

/* NULL for a file that does not exist. */
static char *read_file(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    text[size] = '\0';
    fclose(file);
    return text;
}

/* ---- What the files say ---- */

/* The first ones have names of their own here, because the others are worked out from them. */
enum { FATHER, MOTHER, SON, DAUGHTER, HUSBAND, WIFE, CHILD };

static const struct {
    const char *name;
    int steps;
} relations[] = {
    {"father", 0},
    {"mother", 0},
    {"son", 0},
    {"daughter", 0},
    {"husband", 1},
    {"wife", 1},
    {"child", 1},
    {"grandfather", 2},
    {"grandmother", 2},
    {"grandson", 2},
    {"granddaughter", 2},
    {"brother", 2},
    {"sister", 2},
    {"father_in_law", 2},
    {"mother_in_law", 2},
    {"son_in_law", 2},
    {"daughter_in_law", 2},
    {"great_grandfather", 3},
    {"great_grandmother", 3},
    {"great_grandson", 3},
    {"great_granddaughter", 3},
    {"uncle", 3},
    {"aunt", 3},
    {"nephew", 3},
    {"niece", 3},
    {"brother_in_law", 3},
    {"sister_in_law", 3},
    {"great_great_grandfather", 4},
    {"great_great_grandmother", 4},
    {"great_great_grandson", 4},
    {"great_great_granddaughter", 4},
    {"cousin", 4},
};
enum { RELATIONS = sizeof relations / sizeof *relations };

typedef struct fact {
    int head, relation, tail, hops;
} fact;

/* A matrix of people by people is an array of bytes; row x, column y: "x's ... is y". */
typedef struct oracle {
    char *texts[FILES];
    const char **names;
    int people;
    fact *facts[3];
    int fact_count[3];
    unsigned char *stated[RELATIONS]; /* in any split */
    unsigned char *truth[RELATIONS];
    bool *is_female;
} oracle;

static unsigned char *matrix_new(const oracle *o) {
    unsigned char *m = calloc((size_t)o->people * (size_t)o->people, 1);
    assert_non_null(m);
    return m;
}

static unsigned char *cell(const oracle *o, unsigned char *m, int x, int y) {
    return &m[(size_t)x * (size_t)o->people + (size_t)y];
}

static int find_name(const oracle *o, const char *name) {
    for (int i = 0; i < o->people; i++)
        if (strcmp(o->names[i], name) == 0) return i;
    fail_msg("%s has no label", name);
    return -1;
}

static int find_relation(const char *name) {
    for (int i = 0; i < RELATIONS; i++)
        if (strcmp(relations[i].name, name) == 0) return i;
    fail_msg("unknown relation %s", name);
    return -1;
}

static int count_lines(const char *text) {
    int count = 0;
    for (; text && *text; text++) count += *text == '\n';
    return count;
}

/* Cuts a line off a text and into its fields; false at the end. */
static bool next_line(char **text, char *fields[4], int expected) {
    if (!*text || !**text) return false;
    char *line = *text;
    char *newline = strchr(line, '\n');
    assert_non_null(newline);
    *newline = '\0';
    *text = newline + 1;
    int count = 0;
    for (char *field = line; field; count++) {
        assert_true(count < 4);
        fields[count] = field;
        field = strchr(field, '\t');
        if (field) *field++ = '\0';
    }
    assert_int_equal(count, expected);
    return true;
}

static void read_names(oracle *o) {
    char *fields[4], *text = o->texts[LABELS];
    o->names = calloc((size_t)count_lines(text), sizeof *o->names);
    assert_non_null(o->names);
    while (next_line(&text, fields, 2)) {
        /* anna_ashford_1923 is Anna Ashford (1923), and anna_ashford_1923_2 another one. */
        char first[32], surname[32], expected[80];
        int year = 0;
        assert_int_equal(sscanf(fields[0], "%31[a-z]_%31[a-z]_%d", first, surname, &year), 3);
        snprintf(expected, sizeof expected, "%c%s %c%s (%d)", first[0] - 'a' + 'A', first + 1,
                 surname[0] - 'a' + 'A', surname + 1, year);
        assert_string_equal(fields[1], expected);
        for (int i = 0; i < o->people; i++) assert_string_not_equal(o->names[i], fields[0]);
        o->names[o->people++] = fields[0];
    }
}

static void read_facts(oracle *o, int split) {
    char *fields[4], *text = o->texts[split];
    o->facts[split] = calloc((size_t)count_lines(text) + 1, sizeof(fact));
    assert_non_null(o->facts[split]);
    while (next_line(&text, fields, 3)) {
        fact f = {find_name(o, fields[0]), find_relation(fields[1]), find_name(o, fields[2]), 0};
        /* No triple stands twice, in one split or in two. */
        unsigned char *c = cell(o, o->stated[f.relation], f.head, f.tail);
        assert_int_equal(*c, 0);
        *c = 1;
        o->facts[split][o->fact_count[split]++] = f;
    }
}

/* hops.tsv repeats test.txt line by line. */
static void read_hops(oracle *o) {
    char *fields[4], *text = o->texts[HOPS];
    assert_non_null(text);
    int line = 0;
    for (; next_line(&text, fields, 4); line++) {
        assert_true(line < o->fact_count[TEST]);
        fact *f = &o->facts[TEST][line];
        assert_string_equal(fields[0], o->names[f->head]);
        assert_string_equal(fields[1], relations[f->relation].name);
        assert_string_equal(fields[2], o->names[f->tail]);
        f->hops = atoi(fields[3]);
    }
    assert_int_equal(line, o->fact_count[TEST]);
}

static void oracle_read(oracle *o, const char *folder) {
    memset(o, 0, sizeof *o);
    for (int i = 0; i < FILES; i++) o->texts[i] = read_file(folder, file_names[i]);
    read_names(o);
    for (int r = 0; r < RELATIONS; r++) o->stated[r] = matrix_new(o);
    for (int split = 0; split < 3; split++) read_facts(o, split);
    read_hops(o);
}

static void oracle_free(oracle *o) {
    for (int i = 0; i < FILES; i++) free(o->texts[i]);
    for (int i = 0; i < 3; i++) free(o->facts[i]);
    for (int r = 0; r < RELATIONS; r++) free(o->stated[r]), free(o->truth[r]);
    free(o->is_female);
    free(o->names);
}

/* ---- What follows ---- */

/* x's z is y's z for some y who is x's ... */
static unsigned char *then(const oracle *o, unsigned char *first, unsigned char *second) {
    unsigned char *m = matrix_new(o);
    for (int x = 0; x < o->people; x++)
        for (int y = 0; y < o->people; y++)
            for (int z = 0; *cell(o, first, x, y) && z < o->people; z++)
                *cell(o, m, x, z) |= *cell(o, second, y, z);
    return m;
}

static unsigned char *backwards(const oracle *o, unsigned char *of) {
    unsigned char *m = matrix_new(o);
    for (int x = 0; x < o->people; x++)
        for (int y = 0; y < o->people; y++) *cell(o, m, y, x) = *cell(o, of, x, y);
    return m;
}

static void add(const oracle *o, unsigned char *to, unsigned char *from) {
    for (size_t i = 0; i < (size_t)o->people * (size_t)o->people; i++) to[i] |= from[i];
}

static void without_self(const oracle *o, unsigned char *m) {
    for (int x = 0; x < o->people; x++) *cell(o, m, x, x) = 0;
}

/* Sets the truth of a relation between people, told apart by the sex of the second. */
static void tell_apart(oracle *o, const char *men, const char *women, unsigned char *m) {
    int man = find_relation(men), woman = find_relation(women);
    o->truth[man] = matrix_new(o);
    if (woman != man) o->truth[woman] = matrix_new(o);
    for (int x = 0; x < o->people; x++)
        for (int y = 0; y < o->people; y++)
            if (*cell(o, m, x, y)) *cell(o, o->truth[o->is_female[y] ? woman : man], x, y) = 1;
}

static void find_sexes(oracle *o) {
    bool *is_male = calloc((size_t)o->people, sizeof *is_male);
    o->is_female = calloc((size_t)o->people, sizeof *o->is_female);
    assert_non_null(is_male);
    assert_non_null(o->is_female);
    for (int i = 0; i < o->fact_count[TRAIN]; i++) {
        fact f = o->facts[TRAIN][i];
        if (f.relation == FATHER || f.relation == SON || f.relation == HUSBAND) is_male[f.tail] = true;
        if (f.relation == MOTHER || f.relation == DAUGHTER || f.relation == WIFE)
            o->is_female[f.tail] = true;
        if (f.relation == HUSBAND) o->is_female[f.head] = true;
        if (f.relation == WIFE) is_male[f.head] = true;
    }
    for (int p = 0; p < o->people; p++) assert_true(is_male[p] != o->is_female[p]);
    free(is_male);
}

/* From father, mother, husband and wife in train alone. */
static void oracle_conclude(oracle *o) {
    find_sexes(o);
    unsigned char *parent = matrix_new(o), *spouse = matrix_new(o);
    for (int i = 0; i < o->fact_count[TRAIN]; i++) {
        fact f = o->facts[TRAIN][i];
        if (f.relation == FATHER || f.relation == MOTHER) *cell(o, parent, f.head, f.tail) = 1;
        if (f.relation == HUSBAND || f.relation == WIFE)
            *cell(o, spouse, f.head, f.tail) = *cell(o, spouse, f.tail, f.head) = 1;
    }
    unsigned char *child = backwards(o, parent);
    unsigned char *grandparent = then(o, parent, parent), *grandchild = backwards(o, grandparent);
    unsigned char *sibling = then(o, parent, child);
    without_self(o, sibling);
    unsigned char *uncle = then(o, parent, sibling), *nephew = backwards(o, uncle);
    unsigned char *cousin = then(o, uncle, child);
    unsigned char *parent_in_law = then(o, spouse, parent), *child_in_law = then(o, child, spouse);
    unsigned char *sibling_in_law = then(o, spouse, sibling),
                  *siblings_spouse = then(o, sibling, spouse);
    add(o, sibling_in_law, siblings_spouse);
    unsigned char *great = then(o, grandparent, parent), *great_child = backwards(o, great);
    unsigned char *great_great = then(o, great, parent), *great_great_child = backwards(o, great_great);

    tell_apart(o, "father", "mother", parent);
    tell_apart(o, "son", "daughter", child);
    tell_apart(o, "husband", "wife", spouse);
    tell_apart(o, "child", "child", child);
    tell_apart(o, "grandfather", "grandmother", grandparent);
    tell_apart(o, "grandson", "granddaughter", grandchild);
    tell_apart(o, "brother", "sister", sibling);
    tell_apart(o, "father_in_law", "mother_in_law", parent_in_law);
    tell_apart(o, "son_in_law", "daughter_in_law", child_in_law);
    tell_apart(o, "great_grandfather", "great_grandmother", great);
    tell_apart(o, "great_grandson", "great_granddaughter", great_child);
    tell_apart(o, "uncle", "aunt", uncle);
    tell_apart(o, "nephew", "niece", nephew);
    tell_apart(o, "brother_in_law", "sister_in_law", sibling_in_law);
    tell_apart(o, "great_great_grandfather", "great_great_grandmother", great_great);
    tell_apart(o, "great_great_grandson", "great_great_granddaughter", great_great_child);
    tell_apart(o, "cousin", "cousin", cousin);

    unsigned char *all[] = {
        parent,          spouse, child,       grandparent,   grandchild,       sibling,
        uncle,           nephew, cousin,      parent_in_law, child_in_law,     sibling_in_law,
        siblings_spouse, great,  great_child, great_great,   great_great_child};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---- What has to hold ---- */

static void check_truth(oracle *o) {
    for (int split = 0; split < 3; split++)
        for (int i = 0; i < o->fact_count[split]; i++) {
            fact f = o->facts[split][i];
            if (!*cell(o, o->truth[f.relation], f.head, f.tail))
                fail_msg("%s: (%s, %s, %s) is not true", file_names[split], o->names[f.head],
                         relations[f.relation].name, o->names[f.tail]);
        }
}

/* Whatever is asked, head or tail, every true answer is in one of the splits. */
static void check_complete(oracle *o) {
    for (int r = 0; r < RELATIONS; r++) {
        bool *asks_head = calloc((size_t)o->people, 1), *asks_tail = calloc((size_t)o->people, 1);
        assert_non_null(asks_head);
        assert_non_null(asks_tail);
        for (int x = 0; x < o->people; x++)
            for (int y = 0; y < o->people; y++)
                if (*cell(o, o->stated[r], x, y)) asks_tail[x] = asks_head[y] = true;
        for (int x = 0; x < o->people; x++)
            for (int y = 0; y < o->people; y++)
                if ((asks_tail[x] || asks_head[y]) && *cell(o, o->truth[r], x, y) &&
                    !*cell(o, o->stated[r], x, y))
                    fail_msg("(%s, %s, %s) is true and in no split", o->names[x], relations[r].name,
                             o->names[y]);
        free(asks_head);
        free(asks_tail);
    }
}

/* The number of hops from `source` to all people over train, -1 where there is no way. */
static void find_distances(const oracle *o, int source, int *distance) {
    for (int p = 0; p < o->people; p++) distance[p] = p == source ? 0 : -1;
    bool has_changed = true;
    for (int level = 0; has_changed; level++) {
        has_changed = false;
        for (int i = 0; i < o->fact_count[TRAIN]; i++) {
            fact f = o->facts[TRAIN][i];
            int reached = distance[f.head] == level ? f.tail : distance[f.tail] == level ? f.head : -1;
            if (reached < 0 || distance[reached] >= 0) continue;
            distance[reached] = level + 1;
            has_changed = true;
        }
    }
}

typedef struct counts {
    int all[5], test[5]; /* triples by their steps */
} counts;

/* Held-out triples are as far as their rule is long, and hops.tsv says so. That a rule of that length
 * exists is what the truth says: it follows from births and marriages in train, by so many of them. */
static void check_hops(const oracle *o, counts *counted) {
    int *distance = malloc((size_t)o->people * sizeof *distance);
    assert_non_null(distance);
    for (int split = VALID; split <= TEST; split++)
        for (int i = 0; i < o->fact_count[split]; i++) {
            fact f = o->facts[split][i];
            find_distances(o, f.head, distance);
            if (distance[f.tail] != relations[f.relation].steps)
                fail_msg("(%s, %s, %s) is %d hops apart in train", o->names[f.head],
                         relations[f.relation].name, o->names[f.tail], distance[f.tail]);
            if (split == VALID) continue;
            assert_int_equal(f.hops, distance[f.tail]);
            assert_in_range(f.hops, 1, 4);
            counted->test[f.hops]++;
        }
    free(distance);
}

static int year_of(const oracle *o, int person) {
    int year = 0;
    assert_int_equal(sscanf(o->names[person], "%*[a-z]_%*[a-z]_%d", &year), 1);
    return year;
}

/* Whether the two have an ancestor in common, up to great-grandparents, or one is the other's. */
static bool are_kin(oracle *o, int one, int other) {
    static const char *const up[] = {
        "father", "mother", "grandfather", "grandmother", "great_grandfather", "great_grandmother"};
    bool kin = false;
    for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
        unsigned char *mine = o->truth[find_relation(up[i])];
        kin |= *cell(o, mine, one, other) || *cell(o, mine, other, one);
        for (size_t j = 0; j < sizeof up / sizeof *up; j++) {
            unsigned char *theirs = o->truth[find_relation(up[j])];
            for (int p = 0; p < o->people; p++)
                kin |= *cell(o, mine, one, p) && *cell(o, theirs, other, p);
        }
    }
    return kin;
}

static void check_genealogy(oracle *o) {
    for (int x = 0; x < o->people; x++) {
        int fathers = 0, mothers = 0, spouses = 0;
        for (int y = 0; y < o->people; y++) {
            bool is_father = *cell(o, o->truth[FATHER], x, y),
                 is_mother = *cell(o, o->truth[MOTHER], x, y);
            bool is_spouse = *cell(o, o->truth[HUSBAND], x, y) || *cell(o, o->truth[WIFE], x, y);
            fathers += is_father;
            mothers += is_mother;
            spouses += is_spouse;
            if (is_father || is_mother) assert_true(year_of(o, x) - year_of(o, y) >= 18);
            if (is_spouse) {
                assert_true(abs(year_of(o, x) - year_of(o, y)) <= 10);
                assert_false(are_kin(o, x, y));
            }
        }
        assert_true(fathers == mothers && fathers <= 1);
        assert_true(spouses <= 1);
    }
}

/* Births are never held out, of a couple one triple remains, and all people are in train. */
static void check_basis(oracle *o) {
    bool *is_known = calloc((size_t)o->people, sizeof *is_known);
    assert_non_null(is_known);
    for (int split = 0; split < 3; split++)
        for (int i = 0; i < o->fact_count[split]; i++) {
            fact f = o->facts[split][i];
            if (split == TRAIN) is_known[f.head] = is_known[f.tail] = true;
            if (split != TRAIN) assert_true(relations[f.relation].steps > 0);
        }
    for (int p = 0; p < o->people; p++) assert_true(is_known[p]);
    free(is_known);
}

static counts check_world(const char *folder, const vlp_import_report *report) {
    oracle o;
    oracle_read(&o, folder);
    counts counted = {0};
    assert_int_equal(report->entities, o.people);
    assert_int_equal(report->labels, o.people);
    int occurring = 0;
    for (int r = 0; r < RELATIONS; r++)
        occurring += memchr(o.stated[r], 1, (size_t)o.people * (size_t)o.people) != NULL;
    assert_int_equal(report->relations, occurring);
    for (int split = 0; split < 3; split++) {
        assert_int_equal(report->triples[split], o.fact_count[split]);
        for (int i = 0; i < o.fact_count[split]; i++)
            counted.all[relations[o.facts[split][i].relation].steps]++;
    }
    oracle_conclude(&o);
    check_basis(&o);
    check_truth(&o);
    check_complete(&o);
    check_genealogy(&o);
    check_hops(&o, &counted);
    oracle_free(&o);
    return counted;
}

/* ---- Tests ---- */

static void test_default_world(void **state) {
    const fixture *f = *state;
    vlp_import_report report;
    assert_int_equal(vlp_family_generate(&report, f->folder, NULL), VLP_OK);
    counts counted = check_world(f->folder, &report);
    for (int hops = 1; hops <= 4; hops++) assert_true(counted.test[hops] >= 100);
    assert_int_equal(report.relations, RELATIONS);
    assert_int_equal(report.duplicates, 0);
    assert_int_equal(report.skipped, 0);
}

/* Villages are large connected parts, and there are three. */
static void test_world_hangs_together(void **state) {
    const fixture *f = *state;
    vlp_import_report report;
    assert_int_equal(vlp_family_generate(&report, f->folder, NULL), VLP_OK);
    oracle o;
    oracle_read(&o, f->folder);
    int *distance = malloc((size_t)o.people * sizeof *distance);
    int *part = calloc((size_t)o.people, sizeof *part);
    assert_non_null(distance);
    assert_non_null(part);
    int in_large_parts = 0;
    for (int p = 0; p < o.people; p++) {
        if (part[p]) continue;
        int size = 0;
        find_distances(&o, p, distance);
        for (int q = 0; q < o.people; q++)
            if (distance[q] >= 0) part[q] = 1, size++;
        if (size >= o.people / 10) in_large_parts += size;
    }
    assert_true(in_large_parts >= o.people * 9 / 10);
    free(distance);
    free(part);
    oracle_free(&o);
}

static void test_other_worlds(void **state) {
    const fixture *f = *state;
    static const vlp_family_options options[] = {
        {1, 1, 2, 0.1, 0},  {1, 1, 12, 0.1, 1}, {1, 2, 5, 0.2, 2},  {1, 3, 3, 0.4, 3},
        {1, 4, 6, 0.25, 4}, {1, 12, 8, 0.1, 5}, {1, 30, 4, 0.3, 6}, {1, 40, 5, 0.1, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        vlp_import_report report;
        assert_int_equal(vlp_family_generate(&report, f->folder, &options[i]), VLP_OK);
        counts counted = check_world(f->folder, &report);
        /* Small worlds cannot meet the share, because couples are held out as a whole. */
        for (int hops = 1; hops <= 4 && options[i].families >= 10; hops++) {
            double share = (double)counted.test[hops] / counted.all[hops];
            assert_true(share > 0.6 * options[i].held_out && share < 1.4 * options[i].held_out);
        }
        remove_output(f->folder);
    }
}

static void test_holds_nothing_out(void **state) {
    const fixture *f = *state;
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    options.held_out = 0;
    vlp_import_report report;
    assert_int_equal(vlp_family_generate(&report, f->folder, &options), VLP_OK);
    assert_int_equal(report.triples[VLP_VALID], 0);
    assert_int_equal(report.triples[VLP_TEST], 0);
    char *hops = read_file(f->folder, "hops.tsv");
    assert_non_null(hops);
    assert_string_equal(hops, "");
    free(hops);
    char *test = read_file(f->folder, "test.txt");
    assert_null(test);
}

static void test_same_seed_same_bytes(void **state) {
    const fixture *f = *state;
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    options.seed = 77;
    vlp_import_report report;
    assert_int_equal(vlp_family_generate(&report, f->folder, &options), VLP_OK);
    for (int same = 1; same >= 0; same--) {
        if (!same) options.seed = 78;
        assert_int_equal(vlp_family_generate(&report, f->other, &options), VLP_OK);
        for (int i = 0; i < FILES; i++) {
            char *one = read_file(f->folder, file_names[i]), *other = read_file(f->other, file_names[i]);
            assert_non_null(one);
            assert_non_null(other);
            assert_true((strcmp(one, other) == 0) == same);
            free(one);
            free(other);
        }
        remove_output(f->other);
    }
}

static void test_refuses_bad_options(void **state) {
    const fixture *f = *state;
    static const struct {
        vlp_family_options options;
        const char *message;
    } bad[] = {
        {{1, 0, 5, 0.1, 0}, "families is 0; the range is 1 to 100000"},
        {{1, 100001, 5, 0.1, 0}, "families is 100001; the range is 1 to 100000"},
        {{1, 40, 1, 0.1, 0}, "generations is 1; the range is 2 to 12"},
        {{1, 40, 13, 0.1, 0}, "generations is 13; the range is 2 to 12"},
        {{1, 40, 5, -0.1, 0}, "held_out is -0.1; the range is 0 to 0.4, for each of valid and test"},
        {{1, 40, 5, 0.5, 0}, "held_out is 0.5; the range is 0 to 0.4, for each of valid and test"},
        {{1, 40, 5, NAN, 0}, "held_out is nan; the range is 0 to 0.4, for each of valid and test"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vlp_import_report report = {.entities = -1};
        assert_int_equal(vlp_family_generate(&report, f->folder, &bad[i].options), VLP_ERROR_ARGUMENT);
        assert_string_equal(vlp_error_message(), bad[i].message);
        assert_int_equal(report.entities, -1);
        assert_int_equal(access(f->folder, F_OK), -1);
    }
}

static void test_refuses_a_full_folder(void **state) {
    const fixture *f = *state;
    vlp_family_options options = {1, 2, 3, 0.1, 0};
    vlp_import_report report;
    assert_int_equal(vlp_family_generate(&report, f->folder, &options), VLP_OK);
    assert_int_equal(vlp_family_generate(&report, f->folder, &options), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), f->folder));
}

/* ---- Memory that runs out at every place in turn ---- */

static void test_survives_lack_of_memory(void **state) {
    const fixture *f = *state;
    vlp_family_options options = {1, 7, 4, 0.2, 0};
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_import_report report;
        vlp_status status = vlp_family_generate(&report, f->folder, &options);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        assert_int_equal(access(f->folder, F_OK), status == VLP_OK ? 0 : -1);
        remove_output(f->folder);
    } while (memory.failed);
    assert_true(call > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_default_world, setup, teardown),
        cmocka_unit_test_setup_teardown(test_world_hangs_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_worlds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holds_nothing_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_seed_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_bad_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_a_full_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survives_lack_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
