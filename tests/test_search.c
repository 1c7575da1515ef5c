/* Searching names: folding by examples, results against a search over all texts by the definitions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "server/fold.h"
#include "server/search.h"
#include "text.h"

/* ---- Folding ------------------------------------------------------------------------------------- */

static void folds(const char *text, const char *expected) {
    char folded[FOLD_LIMIT];
    assert_int_equal(fold_text(folded, text), strlen(expected));
    assert_string_equal(folded, expected);
}

static void texts_are_folded(void **state) {
    (void)state;
    folds("New  York_City ", "new york city");
    folds("  \t", "");
    folds("ÉLÈVE Ångström", "eleve angstrom");
    folds("e\xcc\x81", "e"); /* a combining accent */
    folds("Straße Ærø Łódź Þór Œuvre ﬁ", "strasse aero lodz thor oeuvre ﬁ");
    folds("ΑΘΗΝΑ Ὀδυσσεύς", "αθηνα οδυσσευσ");
    folds("Москва Ёлка", "москва елка");
    folds("Tiếng Việt", "tieng viet");
    folds("東京 ہند", "東京 ہند"); /* other scripts stay */
    char text[4 * FOLD_LIMIT + 1], folded[FOLD_LIMIT];
    for (size_t i = 0; i < sizeof text - 1; i += 2) memcpy(text + i, "я", 3);
    size_t length = fold_text(folded, text);
    assert_true(length == FOLD_LIMIT - 2 && strncmp(folded, text, length) == 0);
}

/* ---- Finding ------------------------------------------------------------------------------------- */

enum { ENTITIES = 60, ALPHABET = 6 };
static char names[ENTITIES][48], labels[ENTITIES][80];
static bool labelled[ENTITIES];
static int32_t degrees[ENTITIES];

static const char *name_of(const void *user, int32_t entity) {
    (void)user;
    return names[entity];
}

static const char *label_of(const void *user, int32_t entity) {
    (void)user;
    return labelled[entity] ? labels[entity] : NULL;
}

static uint64_t random_state;
static int draw(int bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)bound);
}

static void write_text(char *to, int most) {
    static const char *const letters[ALPHABET] = {"a", "B", "c", "é", "д", " "};
    size_t used = 0;
    to[0] = '\0';
    for (int length = 1 + draw(most); length > 0; length--)
        used += (size_t)sprintf(to + used, "%s", letters[draw(ALPHABET)]);
}

static int decode(uint32_t *out, const char *text) {
    int count = 0;
    for (int length; *text; text += length) out[count++] = text_next(text, &length);
    return count;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/* The edits between what was typed and the nearest beginning of a text. */
static int distance(const char *typed, const char *text) {
    uint32_t a[FOLD_LIMIT], b[FOLD_LIMIT];
    static int table[FOLD_LIMIT][FOLD_LIMIT];
    int m = decode(a, typed), n = decode(b, text), best = m;
    for (int i = 0; i <= m; i++)
        for (int j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            int value = least(table[i - 1][j], table[i][j - 1]) + 1;
            value = least(value, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                value = least(value, table[i - 2][j - 2] + 1);
            table[i][j] = value;
        }
    for (int j = 0; j <= n; j++) best = least(best, table[m][j]);
    return best;
}

/* The class of a text that begins a name or label, or, `later`, a word behind it. */
static int class_of(const char *typed, const char *text, bool later) {
    uint32_t characters[FOLD_LIMIT];
    int length = decode(characters, typed), edits = length < 3 ? 0 : length < 8 ? 1 : 2;
    if (!later && strcmp(typed, text) == 0) return 0;
    if (strncmp(typed, text, strlen(typed)) == 0) return later ? 2 : 1;
    int far = distance(typed, text);
    return far <= edits ? 2 + far : 9;
}

static int entity_class(const char *typed, int32_t entity) {
    char folded[FOLD_LIMIT];
    fold_text(folded, names[entity]);
    int best = class_of(typed, folded, false);
    if (labelled[entity]) {
        fold_text(folded, labels[entity]);
        best = least(best, class_of(typed, folded, false));
    }
    /* The words of the text folded last, from the end. */
    int words = 0;
    for (size_t i = strlen(folded); i > 1 && words < SEARCH_WORDS; i--)
        if (folded[i - 1] != ' ' && folded[i - 2] == ' ') {
            best = least(best, class_of(typed, folded + i - 1, true));
            words++;
        }
    return best;
}

typedef struct ordered {
    int class;
    int32_t degree, entity;
} ordered;

static int compare(const void *left, const void *right) {
    const ordered *a = left, *b = right;
    if (a->class != b->class) return a->class - b->class;
    if (a->degree != b->degree) return b->degree - a->degree;
    return a->entity - b->entity;
}

static void check(const search_index *index, const char *typed, int32_t limit) {
    char folded[FOLD_LIMIT];
    ordered all[ENTITIES];
    int32_t found[SEARCH_LIMIT], expected = 0;
    fold_text(folded, typed);
    for (int32_t e = 0; e < ENTITIES; e++) {
        int class = folded[0] ? entity_class(folded, e) : 0;
        if (class < 9) all[expected++] = (ordered){class, degrees[e], e};
    }
    qsort(all, (size_t)expected, sizeof *all, compare);
    bool more;
    int32_t count = search_index_find(found, &more, index, typed, limit);
    assert_int_equal(more, expected > limit);
    assert_int_equal(count, expected < limit ? expected : limit);
    for (int32_t i = 0; i < count; i++) assert_int_equal(found[i], all[i].entity);
}

static void finds_what_a_slow_search_finds(void **state) {
    (void)state;
    search_source source = {ENTITIES, name_of, label_of, NULL, degrees};
    for (int round = 0; round < 60; round++) {
        random_state = (uint64_t)round;
        for (int32_t e = 0; e < ENTITIES; e++) {
            write_text(names[e], 12);
            write_text(labels[e], 26);
            labelled[e] = draw(3) > 0;
            degrees[e] = draw(8);
        }
        search_index *index = search_index_make(&source);
        assert_non_null(index);
        for (int i = 0; i < 60; i++) {
            char typed[80];
            write_text(typed, 12);
            check(index, typed, 1 + draw(i % 2 ? 5 : SEARCH_LIMIT));
        }
        check(index, "", 20);
        search_index_free(index);
    }
}

/* Many entities with the same text: the tree of minima has several levels. */
static const char *same_name(const void *user, int32_t entity) {
    (void)user, (void)entity;
    return "the same name";
}
static const char *no_label(const void *user, int32_t entity) {
    (void)user, (void)entity;
    return NULL;
}

static void finds_the_largest_degrees_among_equal_texts(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    int32_t *all = malloc(COUNT * sizeof *all), found[10];
    for (int32_t e = 0; e < COUNT; e++) all[e] = (int32_t)((e * 7919LL) % COUNT);
    search_index *index = search_index_make(&(search_source){COUNT, same_name, no_label, NULL, all});
    static const char *const typed[] = {"the same name", "the", "same", "teh same", "the smae nmae", ""};
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        bool more;
        assert_int_equal(search_index_find(found, &more, index, typed[i], 10), 10);
        assert_true(more);
        for (int32_t j = 0; j < 10; j++) assert_int_equal(all[found[j]], COUNT - 1 - j);
    }
    search_index_free(index);
    free(all);
}

static void an_empty_index_finds_nothing(void **state) {
    (void)state;
    int32_t found[5];
    bool more;
    search_index *index = search_index_make(&(search_source){0, same_name, no_label, NULL, NULL});
    assert_int_equal(search_index_find(found, &more, index, "anything", 5), 0);
    assert_int_equal(search_index_find(found, &more, index, "", 5), 0);
    assert_false(more);
    search_index_free(index);
    search_index_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_folded),
                                       cmocka_unit_test(finds_what_a_slow_search_finds),
                                       cmocka_unit_test(finds_the_largest_degrees_among_equal_texts),
                                       cmocka_unit_test(an_empty_index_finds_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
