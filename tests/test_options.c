/* Option structs of every version: shorter ones of older callers, and versions that are not known. */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/options.h"

/* ---- Memory that ends at an unreadable page ------------------------------------------------------ */

typedef struct fenced {
    char *pages;
    size_t page;
} fenced;

static fenced fenced_new(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    return (fenced){pages, page};
}

/* The last `size` bytes before the unreadable page, as a copy of `from`. */
static void *fenced_copy(fenced memory, const void *from, size_t size) {
    return memcpy(memory.pages + memory.page - size, from, size);
}

static void fenced_free(fenced memory) {
    assert_int_equal(munmap(memory.pages, 2 * memory.page), 0);
}

/* ---- A struct that has grown twice --------------------------------------------------------------- */

typedef struct grown_1 {
    int32_t version;
    char letter; /* three bytes of padding follow */
} grown_1;

typedef struct grown_2 {
    int32_t version;
    char letter;
    bool added; /* where version 1 has padding */
    double also_added;
} grown_2;

typedef struct grown {
    int32_t version;
    char letter;
    bool added;
    double also_added;
    const char *last;
} grown;

static const vlp_options_kind grown_kind = {
    "grown",
    3,
    {offsetof(grown_1, letter) + 1, offsetof(grown_2, also_added) + sizeof(double), sizeof(grown)}};

static const grown defaults = {3, 'd', true, 2.5, "default"};

static void shorter_struct_works(void **state) {
    (void)state;
    fenced memory = fenced_new();
    grown_1 first;
    memset(&first, 0, sizeof first); /* the padding says that `added` is false */
    first.version = 1;
    first.letter = 'x';
    grown out;
    memcpy(&out, &defaults, sizeof out); /* with its padding, which is compared too */
    assert_int_equal(vlp_options_take(&out, fenced_copy(memory, &first, sizeof first), &grown_kind),
                     VLP_OK);
    assert_int_equal(out.version, 3);
    assert_int_equal(out.letter, 'x');
    assert_true(out.added);
    assert_true(out.also_added == 2.5);
    assert_string_equal(out.last, "default");

    grown_2 second = {2, 'y', false, 7};
    out = defaults;
    assert_int_equal(vlp_options_take(&out, fenced_copy(memory, &second, sizeof second), &grown_kind),
                     VLP_OK);
    assert_int_equal(out.version, 3);
    assert_int_equal(out.letter, 'y');
    assert_false(out.added);
    assert_true(out.also_added == 7);
    assert_string_equal(out.last, "default");

    grown third = {3, 'z', false, 8, "given"};
    out = defaults;
    assert_int_equal(vlp_options_take(&out, fenced_copy(memory, &third, sizeof third), &grown_kind),
                     VLP_OK);
    assert_memory_equal(&out, &third, sizeof out);
    fenced_free(memory);
}

static void null_means_defaults(void **state) {
    (void)state;
    grown out;
    memcpy(&out, &defaults, sizeof out); /* with its padding, which is compared too */
    assert_int_equal(vlp_options_take(&out, NULL, &grown_kind), VLP_OK);
    assert_memory_equal(&out, &defaults, sizeof out);
}

static void unknown_version_is_refused(void **state) {
    (void)state;
    const int32_t unknown[] = {0, -1, 4, INT32_MAX, INT32_MIN};
    fenced memory = fenced_new();
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        /* Nothing but the version may be read. */
        grown out;
        memcpy(&out, &defaults, sizeof out); /* with its padding, which is compared too */
        assert_int_equal(
            vlp_options_take(&out, fenced_copy(memory, &unknown[i], sizeof unknown[i]), &grown_kind),
            VLP_ERROR_ARGUMENT);
        assert_memory_equal(&out, &defaults, sizeof out);
        char expected[64];
        snprintf(expected, sizeof expected, "grown of version %d;", unknown[i]);
        assert_non_null(strstr(vlp_error_message(), expected));
        assert_non_null(strstr(vlp_error_message(), "versions 1 to 3"));
    }
    fenced_free(memory);
}

/* ---- The structs of vlp.h ------------------------------------------------------------------------ */

/* What each version has: these numbers are a promise to programs that are compiled already. A struct
 * that grows gets a new version, and a new number here behind the old ones. */
static const struct {
    const vlp_options_kind *kind;
    size_t whole, alignment;
    size_t sizes[VLP_OPTIONS_VERSIONS];
} promised[] = {
#define ROW(type, ...)                                                                                  \
    {                                                                                                   \
        &type##_kind, sizeof(type), _Alignof(type), {                                                   \
            __VA_ARGS__                                                                                 \
        }                                                                                               \
    }
    ROW(vlp_dataset_options, 16),
    ROW(vlp_dataset_content, 96, 112),
    ROW(vlp_split_options, 48),
    ROW(vlp_file_options, 64),
    ROW(vlp_family_options, 32),
    ROW(vlp_reference_options, 32),
    ROW(vlp_random_graph_options, 48),
    ROW(vlp_audit_options, 48),
    ROW(vlp_train_options, 64, 72, 88),
    ROW(vlp_tune_options, 104),
    ROW(vlp_run_options, 40),
    ROW(vlp_evaluation_options, 48, 57, 88),
    ROW(vlp_predict_options, 24, 28, 40),
    ROW(vlp_score_options, 24),
    ROW(vlp_calibration_options, 32),
    ROW(vlp_mine_options, 48, 60),
    ROW(vlp_candidate_options, 37),
    ROW(vlp_classification_options, 32),
#undef ROW
};
enum { PROMISED = sizeof promised / sizeof *promised };

static void sizes_are_kept(void **state) {
    (void)state;
#define COUNT(type) +1
    assert_int_equal(PROMISED, VLP_OPTION_STRUCTS(COUNT));
#undef COUNT
    for (int i = 0; i < PROMISED; i++) {
        const vlp_options_kind *kind = promised[i].kind;
        for (int v = 0; v < VLP_OPTIONS_VERSIONS; v++)
            if (kind->sizes[v] != promised[i].sizes[v])
                fail_msg("%s: version %d has %zu bytes, not %zu; a struct that grows gets a new version",
                         kind->name, v + 1, kind->sizes[v], promised[i].sizes[v]);
        /* No field lies behind the last version's end. */
        size_t newest = kind->sizes[kind->version - 1];
        if (promised[i].whole < newest || promised[i].whole - newest >= promised[i].alignment)
            fail_msg("%s has %zu bytes and its newest version %zu", kind->name, promised[i].whole,
                     newest);
    }
}

/* An initializer has the newest version, and a struct of every version is taken as far as it goes. */
static void every_version_is_taken(void **state) {
    (void)state;
    fenced memory = fenced_new();
#define CHECK(type, INITIALIZER)                                                                        \
    do {                                                                                                \
        const type initial = INITIALIZER;                                                               \
        assert_int_equal(initial.version, type##_kind.version);                                         \
        for (int32_t version = 1; version <= type##_kind.version; version++) {                          \
            size_t size = type##_kind.sizes[version - 1];                                               \
            unsigned char given[sizeof(type)];                                                          \
            memset(given, 0x5a, sizeof given);                                                          \
            memcpy(given, &version, sizeof version);                                                    \
            type out;                                                                                   \
            memcpy(&out, &initial, sizeof out);                                                         \
            assert_int_equal(                                                                           \
                VLP_OPTIONS_TAKE(type, &out, (const type *)fenced_copy(memory, given, size)), VLP_OK);  \
            assert_int_equal(out.version, type##_kind.version);                                         \
            assert_memory_equal((const char *)&out + 4, given + 4, size - 4);                           \
            assert_memory_equal((const char *)&out + size, (const char *)&initial + size,               \
                                sizeof out - size);                                                     \
        }                                                                                               \
    } while (0)
    CHECK(vlp_dataset_options, VLP_DATASET_OPTIONS_INIT);
    CHECK(vlp_split_options, VLP_SPLIT_OPTIONS_INIT);
    CHECK(vlp_file_options, VLP_FILE_OPTIONS_INIT);
    CHECK(vlp_family_options, VLP_FAMILY_OPTIONS_INIT);
    CHECK(vlp_reference_options, VLP_REFERENCE_OPTIONS_INIT);
    CHECK(vlp_audit_options, VLP_AUDIT_OPTIONS_INIT);
    CHECK(vlp_train_options, VLP_TRAIN_OPTIONS_INIT);
    CHECK(vlp_tune_options, VLP_TUNE_OPTIONS_INIT);
    CHECK(vlp_run_options, VLP_RUN_OPTIONS_INIT);
    CHECK(vlp_evaluation_options, VLP_EVALUATION_OPTIONS_INIT);
    CHECK(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT);
    CHECK(vlp_candidate_options, VLP_CANDIDATE_OPTIONS_INIT);
    CHECK(vlp_score_options, VLP_SCORE_OPTIONS_INIT);
    CHECK(vlp_calibration_options, VLP_CALIBRATION_OPTIONS_INIT);
    CHECK(vlp_classification_options, VLP_CLASSIFICATION_OPTIONS_INIT);
    CHECK(vlp_mine_options, VLP_MINE_OPTIONS_INIT);
#undef CHECK
    fenced_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_struct_works), cmocka_unit_test(null_means_defaults),
        cmocka_unit_test(unknown_version_is_refused), cmocka_unit_test(sizes_are_kept),
        cmocka_unit_test(every_version_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
