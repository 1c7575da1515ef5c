/* Dictionaries, the table reader and its driver, files, labels: against plain recomputation, at every
 * boundary that blocks and pieces have, and with every allocation failing once. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "failing_allocator.h"
#include "graph/labels.h"
#include "graph/reader.h"

typedef struct result {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
} result;

static void result_free(result *read) {
    vlp_dictionary_free(read->entities);
    vlp_dictionary_free(read->relations);
    vlp_triple_list_free(&read->triples);
}

static vlp_status read_source(result *read, vlp_source *source, int32_t threads) {
    *read = (result){0};
    VLP_TRY(vlp_dictionary_new(&read->entities));
    VLP_TRY(vlp_dictionary_new(&read->relations));
    vlp_read_sink sink = {
        .entities = read->entities, .relations = read->relations, .triples = &read->triples};
    vlp_record_format format = {.parser = vlp_parse_table, .settings = &vlp_tsv_layout};
    return vlp_read_records(&sink, source, &format, &(vlp_read_options){.threads = threads});
}

static vlp_status read_text(result *read, const char *text, size_t size, int32_t threads) {
    vlp_source *source = NULL;
    VLP_TRY(vlp_source_open_memory(&source, "text", text, size));
    vlp_status status = read_source(read, source, threads);
    vlp_source_free(source);
    return status;
}

static void check_triple(const result *read, int64_t i, const char *head, const char *relation,
                         const char *tail) {
    vlp_triple triple = read->triples.items[i];
    assert_string_equal(vlp_dictionary_name(read->entities, triple.head), head);
    assert_string_equal(vlp_dictionary_name(read->relations, triple.relation), relation);
    assert_string_equal(vlp_dictionary_name(read->entities, triple.tail), tail);
}

/* ---- Dictionary ---- */

static void dictionary_keeps_order_and_finds(void **state) {
    (void)state;
    vlp_dictionary *dictionary = NULL;
    assert_int_equal(vlp_dictionary_new(&dictionary), VLP_OK);
    enum { NAMES = 5000 };
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < NAMES; i++) {
            int length =
                snprintf(name, sizeof name, "%d%s", i * 7919 % 10007, i % 3 ? "" : "-long-name-x");
            vlp_span span = vlp_span_make(name, (size_t)length);
            int32_t id = -1;
            assert_int_equal(vlp_dictionary_intern(dictionary, &id, &span), VLP_OK);
            assert_int_equal(id, i);
            assert_string_equal(vlp_dictionary_name(dictionary, id), name);
            assert_int_equal(vlp_dictionary_name_length(dictionary, id), length);
            assert_int_equal(vlp_dictionary_find(dictionary, name, (size_t)length), i);
        }
    vlp_dictionary_trim(dictionary);
    assert_int_equal(vlp_dictionary_size(dictionary), NAMES);
    assert_int_equal(vlp_dictionary_find(dictionary, "nobody", 6), -1);
    assert_int_equal(vlp_dictionary_find(dictionary, "791", 3),
                     vlp_dictionary_find(dictionary, "791", 3));
    vlp_dictionary_free(dictionary);
}

/* Names that only differ in length, share prefixes, or hold any byte, must stay apart even where their
 * hashes agree: the test gives them the same hash by hand. */
static void dictionary_survives_equal_hashes(void **state) {
    (void)state;
    vlp_dictionary *dictionary = NULL;
    assert_int_equal(vlp_dictionary_new(&dictionary), VLP_OK);
    const char *names[] = {"a", "aa", "aaa", "abc", "ab", "b", "\xff\xfe", "a\nb", "a b"};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 9; i++) {
            vlp_span span = {names[i], (uint32_t)strlen(names[i]), 12345};
            int32_t id;
            assert_int_equal(vlp_dictionary_intern(dictionary, &id, &span), VLP_OK);
            assert_int_equal(id, i);
        }
    vlp_dictionary_free(dictionary);
}

/* Allocations, each shorter than a page, that end where a page ends; the page behind cannot be read. The
 * size is kept at the start of the page. */
static void *page_end_reallocate(void *user, void *memory, size_t size) {
    (void)user;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_true(size + sizeof size <= page);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, page, PROT_NONE) != 0) return NULL;
    memcpy(map, &size, sizeof size);
    char *block = map + page - size;
    if (memory) {
        size_t old;
        memcpy(&old, (char *)memory - ((uintptr_t)memory & (page - 1)), sizeof old);
        memcpy(block, memory, old < size ? old : size);
    }
    return block;
}

static void page_end_release(void *user, void *memory) {
    (void)user, (void)memory; /* a few pages of a test */
}

/* A longer name with the hash of a stored one is compared without a read behind the last name. */
static void dictionary_reads_no_further(void **state) {
    (void)state;
    static const char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    const vlp_allocator allocator = {page_end_reallocate, page_end_release, NULL};
    for (uint32_t stored = 1; stored <= 24; stored++) {
        vlp_dictionary *dictionary = NULL;
        vlp_allocator_set(&allocator);
        assert_int_equal(vlp_dictionary_new(&dictionary), VLP_OK);
        int32_t id;
        vlp_span name = {text, stored, 12345};
        assert_int_equal(vlp_dictionary_intern(dictionary, &id, &name), VLP_OK);
        vlp_dictionary_trim(dictionary);
        for (uint32_t length = 1; length <= 32; length++) {
            vlp_span asked = {text, length, 12345};
            vlp_dictionary_find_many(dictionary, &id, 1, &asked, 1, 1);
            assert_int_equal(id, length == stored ? 0 : -1);
        }
        vlp_dictionary_free(dictionary);
        vlp_allocator_set(NULL);
    }
}

/* ---- Tables ---- */

static void accepts_what_it_should(void **state) {
    (void)state;
    struct {
        const char *text;
        int64_t count;
    } cases[] = {{"a\tr\tb\n", 1},
                 {"a\tr\tb", 1},
                 {"a\tr\tb\r\n", 1},
                 {"a\tr\tb\r\nb\tr\ta", 2},
                 {"\xef\xbb\xbf"
                  "a\tr\tb\n",
                  1},
                 {"a b\tr  r\t b \n", 1},
                 {"\xc3\xa9\tr\t\xf0\x9f\x90\x95\n", 1},
                 {"a\tr\tb\na\tr\tb\n", 2},
                 {"", 0},
                 {"\xef\xbb\xbf", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result read;
        vlp_status status = read_text(&read, cases[i].text, strlen(cases[i].text), 2);
        if (status != VLP_OK) fail_msg("case %zu: %s", i, vlp_error_message());
        assert_int_equal(read.triples.count, cases[i].count);
        result_free(&read);
    }
    result read;
    assert_int_equal(read_text(&read,
                               "\xef\xbb\xbf"
                               "a\tr\tb\r\n b\tr \ta",
                               17, 1),
                     VLP_OK);
    check_triple(&read, 0, "a", "r", "b");
    check_triple(&read, 1, " b", "r ", "a");
    assert_int_equal(vlp_dictionary_size(read.entities), 3);
    result_free(&read);
}

static void refuses_what_it_should(void **state) {
    (void)state;
    struct {
        const char *text;
        size_t size;
        const char *message;
    } cases[] = {
#define CASE(text, message) {text, sizeof text - 1, message}
        CASE("a\tr\n", "text:1: 2 fields where 3 are needed (head, relation, tail, separated by tabs)"),
        CASE("a\tr\tb\n\n",
             "text:2: 1 field where 3 are needed (head, relation, tail, separated by tabs)"),
        CASE("a\tr\tb\tc\n",
             "text:1: 4 fields where 3 are needed (head, relation, tail, separated by tabs); an "
             "import takes any columns, by name or number"),
        CASE("a\tr\tb\n\tr\tb\n", "text:2: an empty name (the head)"),
        CASE("a\tr\tb\na\tr\t\r\n", "text:2: an empty name (the tail)"),
        CASE("a\tr\tb\na\tr\rr\tc\n", "text:2: a control character in a name (the relation)"),
        CASE("a\tr\tb\na\tr\tb\x7f", "text:2: a control character in a name (the tail)"),
        CASE("a\tr\tb\0\n", "text:1: a control character in a name (the tail)"),
        CASE("a\tr\tb\nc\tr\t\xc0\x80\n", "text:2: invalid UTF-8"),
        CASE("a\tr\tb\nc\tr\t\xed\xa0\x80\n", "text:2: invalid UTF-8"),
        CASE("\xff", "text:1: invalid UTF-8"),
        CASE("a\tr\tb\nc\tr\td\ne\tr\t\xe2\x82", "text:3: invalid UTF-8"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result read;
        assert_int_equal(read_text(&read, cases[i].text, cases[i].size, 2), VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), cases[i].message);
        result_free(&read);
    }
}

/* A text large enough for several blocks and pieces, with lines of all lengths. */
static char *large_text(size_t *size, int64_t lines, uint64_t seed) {
    char *text = malloc((size_t)lines * 80 + 1), *end = text;
    for (int64_t i = 0; i < lines; i++) {
        vlp_random4 bits = vlp_random(seed, VLP_STREAM_TEST, (uint64_t)i, 0);
        end += sprintf(end, "e%u%.*s\tr%u\te%u%s", bits.v[0] % 5000, (int)(bits.v[3] % 30),
                       "abcdefghijklmnopqrstuvwxyzabcdef", bits.v[1] % 7, bits.v[2] % 5000,
                       i + 1 == lines ? ""
                       : i % 5        ? "\n"
                                      : "\r\n");
    }
    *size = (size_t)(end - text);
    return text;
}

/* Ids and triples are those of a plain line-by-line reading, at any number of threads. */
static void large_files_read_in_order(void **state) {
    (void)state;
    enum { LINES = 300000 };
    size_t size;
    char *text = large_text(&size, LINES, 1);
    result read[3];
    for (int i = 0; i < 3; i++) assert_int_equal(read_text(&read[i], text, size, i + 1), VLP_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read[i].triples.count, LINES);
        assert_memory_equal(read[i].triples.items, read[0].triples.items, LINES * sizeof(vlp_triple));
    }
    int32_t entities = 0, relations = 0;
    char *line = text;
    for (int64_t i = 0; i < LINES; i++) {
        char *fields[3], *rest = line;
        char *next = memchr(line, '\n', size - (size_t)(line - text));
        if (next) *next = '\0';
        if (next && next[-1] == '\r') next[-1] = '\0';
        for (int f = 0; f < 3; f++) fields[f] = strsep(&rest, "\t");
        check_triple(&read[1], i, fields[0], fields[1], fields[2]);
        vlp_triple triple = read[1].triples.items[i];
        /* An id is new exactly when it is the next one. */
        assert_true(triple.head <= entities);
        entities += triple.head == entities;
        assert_true(triple.tail <= entities);
        entities += triple.tail == entities;
        assert_true(triple.relation <= relations);
        relations += triple.relation == relations;
        line = next ? next + 1 : line;
    }
    assert_int_equal(vlp_dictionary_size(read[1].entities), entities);
    for (int i = 0; i < 3; i++) result_free(&read[i]);
    free(text);
}

/* The line number of an error is right wherever it stands: in any block, any piece. */
static void errors_name_their_line(void **state) {
    (void)state;
    enum { LINES = 300000 };
    for (int64_t bad = 0; bad < LINES; bad += 23456) {
        size_t size;
        char *text = large_text(&size, LINES, 2), *line = text, expected[128];
        for (int64_t i = 0; i < bad; i++) line = strchr(line, '\n') + 1;
        *strchr(line, '\t') = '_';
        result read;
        for (int threads = 1; threads < 4; threads++) {
            assert_int_equal(read_text(&read, text, size, threads), VLP_ERROR_FORMAT);
            snprintf(expected, sizeof expected,
                     "text:%lld: 2 fields where 3 are needed (head, relation, tail, separated by tabs)",
                     (long long)bad + 1);
            assert_string_equal(vlp_error_message(), expected);
            result_free(&read);
        }
        free(text);
    }
}

/* Lines longer than a block, up to the limit. */
static void long_lines(void **state) {
    (void)state;
    for (size_t length = 3 << 20; length < 70u << 20; length += 22 << 20) {
        char *text = malloc(length + 64);
        memset(text, 'x', length);
        sprintf(text + length, "\tr\ty\na\tr\tb\n");
        result read;
        vlp_status status = read_text(&read, text, length + 11, 2);
        if (length < 64u << 20) {
            assert_int_equal(status, VLP_OK);
            assert_int_equal(read.triples.count, 2);
            assert_int_equal(vlp_dictionary_name_length(read.entities, 0), length);
        } else {
            assert_int_equal(status, VLP_ERROR_FORMAT);
            assert_string_equal(vlp_error_message(),
                                "text:1: a line of more than 64 MiB; is this a text file?");
        }
        result_free(&read);
        free(text);
    }
}

static void tables_with_other_columns(void **state) {
    (void)state;
    vlp_file_options table = {1, VLP_FORMAT_TSV, {4, 2, 1}, {NULL}, ',', true, false, false, NULL};
    const char *text = "tail,relation,x,head\nt,r,1,h,extra\n";
    vlp_source *source = NULL;
    assert_int_equal(vlp_source_open_memory(&source, "csv", text, strlen(text)), VLP_OK);
    result read = {0};
    assert_int_equal(vlp_dictionary_new(&read.entities), VLP_OK);
    assert_int_equal(vlp_dictionary_new(&read.relations), VLP_OK);
    vlp_read_sink sink = {
        .entities = read.entities, .relations = read.relations, .triples = &read.triples};
    vlp_read_options options = {.file = &table, .threads = 1};
    assert_int_equal(vlp_read_source(&sink, source, &options), VLP_OK);
    assert_int_equal(read.triples.count, 1);
    check_triple(&read, 0, "h", "r", "t");
    vlp_source_free(source);
    assert_int_equal(vlp_source_open_memory(&source, "csv", "header\nt,r,1\n", 13), VLP_OK);
    assert_int_equal(vlp_read_source(&sink, source, &options), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(),
                        "csv:2: 3 fields where at least 4 are needed (head, relation, "
                        "tail, separated by commas)");
    vlp_source_free(source);
    result_free(&read);
}

static bool stop_at_once(void *user) {
    (void)user;
    return true;
}

static void stops_when_asked(void **state) {
    (void)state;
    size_t size;
    char *text = large_text(&size, 300000, 3);
    vlp_source *source = NULL;
    assert_int_equal(vlp_source_open_memory(&source, "text", text, size), VLP_OK);
    result read = {0};
    assert_int_equal(vlp_dictionary_new(&read.entities), VLP_OK);
    assert_int_equal(vlp_dictionary_new(&read.relations), VLP_OK);
    vlp_read_sink sink = {
        .entities = read.entities, .relations = read.relations, .triples = &read.triples};
    vlp_observer observer = {.stop = stop_at_once};
    vlp_read_options options = {.observer = &observer};
    assert_int_equal(vlp_read_source(&sink, source, &options), VLP_ERROR_STOPPED);
    vlp_source_free(source);
    result_free(&read);
    free(text);
}

/* ---- Files ---- */

static void gzip_is_told_by_content(void **state) {
    (void)state;
    const char *folder = support_folder();
    size_t size;
    char *text = large_text(&size, 100000, 4);
    support_write_gzip(folder, "a.txt", text, size);
    support_write(folder, "b.gz", text, size);
    result read[2];
    const char *names[2] = {"a.txt", "b.gz"};
    for (int i = 0; i < 2; i++) {
        vlp_source *source = NULL;
        assert_int_equal(vlp_source_open(&source, support_path(folder, names[i])), VLP_OK);
        assert_int_equal(read_source(&read[i], source, 2), VLP_OK);
        assert_int_equal(read[i].triples.count, 100000);
        vlp_source_free(source);
    }
    assert_memory_equal(read[0].triples.items, read[1].triples.items, 100000 * sizeof(vlp_triple));
    result_free(&read[0]);
    result_free(&read[1]);
    free(text);
    support_remove(folder);
}

/* A gzip file cut anywhere is refused, never taken for a shorter one. */
static void cut_gzip_is_refused(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_gzip(folder, "whole.gz", "a\tr\tb\nb\tr\tc\nc\tr\td\n", 18);
    FILE *file = fopen(support_path(folder, "whole.gz"), "rb");
    char bytes[256];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 2; cut < size; cut++) {
        support_write(folder, "cut.gz", bytes, cut);
        vlp_source *source = NULL;
        result read;
        assert_int_equal(vlp_source_open(&source, support_path(folder, "cut.gz")), VLP_OK);
        vlp_status status = read_source(&read, source, 1);
        if (status != VLP_ERROR_FORMAT) fail_msg("cut at %zu of %zu was accepted", cut, size);
        vlp_source_free(source);
        result_free(&read);
    }
    support_remove(folder);
}

/* The end of the input may come just as the reader's buffer is full: no excuse to call it the end. */
static void cut_gzip_is_refused_in_any_steps(void **state) {
    (void)state;
    const char *folder = support_folder();
    char text[2000], bytes[512], out[2000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 7);
    support_write_gzip(folder, "whole.gz", text, sizeof text);
    FILE *file = fopen(support_path(folder, "whole.gz"), "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 30 && size < sizeof bytes);
    for (size_t cut = 2; cut <= size; cut++)
        for (size_t step = 1; step < 1500; step = step * 3 / 2 + 1) {
            support_write(folder, "cut.gz", bytes, cut);
            vlp_source *source = NULL;
            assert_int_equal(vlp_source_open(&source, support_path(folder, "cut.gz")), VLP_OK);
            size_t total = 0, got = step;
            vlp_status status = VLP_OK;
            while (status == VLP_OK && got == step && total + step <= sizeof out) {
                status = vlp_source_read(source, out + total, step, &got);
                total += got;
            }
            if (status == VLP_OK && got == step) status = vlp_source_read(source, out, step, &got);
            if (cut == size)
                assert_int_equal(status, VLP_OK);
            else
                assert_int_equal(status, VLP_ERROR_FORMAT);
            vlp_source_free(source);
        }
    support_remove(folder);
}

/* ---- Labels ---- */

static vlp_status read_labels(vlp_labels *labels[2], const result *names, const char *text,
                              size_t size) {
    const vlp_dictionary *const dictionaries[2] = {names->entities, names->relations};
    vlp_source *source = NULL;
    VLP_TRY(vlp_source_open_memory(&source, "labels", text, size));
    vlp_status status = vlp_labels_read(labels, source, dictionaries);
    vlp_source_free(source);
    return status;
}

static void labels_are_read(void **state) {
    (void)state;
    result read;
    assert_int_equal(read_text(&read, "a\tr\tb\nc\tr\td\n", 12, 1), VLP_OK);
    const char *text =
        "\xef\xbb\xbf"
        "a\tAn A\tthe first\r\nz\tunknown\nb\tB\na\tsecond\nc\t\tonly described\nc\tlate\n"
        "r\tis near\tof places\n";
    vlp_labels *both[2] = {NULL}, *labels = NULL;
    assert_int_equal(read_labels(both, &read, text, strlen(text)), VLP_OK);
    assert_string_equal(vlp_labels_label(both[VLP_RELATION_LABELS], 0), "is near");
    assert_string_equal(vlp_labels_description(both[VLP_RELATION_LABELS], 0), "of places");
    assert_int_equal(vlp_labels_count(both[VLP_RELATION_LABELS]), 1);
    vlp_labels_free(both[VLP_RELATION_LABELS]);
    labels = both[VLP_ENTITY_LABELS];
    assert_string_equal(vlp_labels_label(labels, 0), "An A");
    assert_string_equal(vlp_labels_description(labels, 0), "the first");
    assert_string_equal(vlp_labels_label(labels, 1), "B");
    assert_null(vlp_labels_description(labels, 1));
    assert_null(vlp_labels_label(labels, 2));
    assert_string_equal(vlp_labels_description(labels, 2), "only described");
    assert_null(vlp_labels_label(labels, 3));
    assert_int_equal(vlp_labels_count(labels), 2);
    vlp_labels_free(labels);
    /* A byte-order mark alone is an empty file. */
    assert_int_equal(read_labels(both, &read, "\xef\xbb\xbf", 3), VLP_OK);
    assert_int_equal(vlp_labels_count(both[0]), 0);
    vlp_labels_free(both[0]);
    vlp_labels_free(both[1]);
    struct {
        const char *text;
        size_t size;
        const char *message;
    } bad[] = {{"a\n", 2, "labels:1: 1 field where a name and a label are needed, separated by a tab"},
               {"a\tb\n\tx\n", 7, "labels:2: an empty name"},
               {"a\tb\tc\td\n", 8,
                "labels:1: more than 3 fields; a line has a name, a label and at most a description"},
               {"a\tb\0c\n", 6, "labels:1: a zero byte"},
               {"a\tb\nb\t\xff\n", 8, "labels:2: invalid UTF-8"},
               {"a\tb\x01\n", 5, "labels:1: a control character in a label"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_labels(both, &read, bad[i].text, bad[i].size), VLP_ERROR_FORMAT);
        assert_null(both[0]);
        assert_null(both[1]);
        assert_string_equal(vlp_error_message(), bad[i].message);
    }
    result_free(&read);
}

/* ---- Memory ---- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    size_t size;
    char *text = large_text(&size, 3000, 5);
    for (int32_t threads = 1; threads < 3; threads++) {
        failing_allocator memory;
        int64_t call = 0;
        vlp_status status;
        do {
            failing_allocator_install(&memory, ++call);
            result read = {0};
            vlp_labels *labels[2] = {NULL};
            int64_t dropped;
            status = read_text(&read, text, size, threads);
            if (status == VLP_OK)
                status = vlp_triple_list_unique(&read.triples, &dropped,
                                                vlp_dictionary_size(read.entities), threads);
            if (status == VLP_OK) status = read_labels(labels, &read, "e1\tE 1\ne2\tE 2\n", 14);
            vlp_labels_free(labels[0]);
            vlp_labels_free(labels[1]);
            result_free(&read);
            failing_allocator_remove(&memory);
            assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        } while (memory.failed);
        assert_true(call > 20);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dictionary_keeps_order_and_finds),
        cmocka_unit_test(dictionary_survives_equal_hashes),
        cmocka_unit_test(dictionary_reads_no_further),
        cmocka_unit_test(accepts_what_it_should),
        cmocka_unit_test(refuses_what_it_should),
        cmocka_unit_test(large_files_read_in_order),
        cmocka_unit_test(errors_name_their_line),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(tables_with_other_columns),
        cmocka_unit_test(stops_when_asked),
        cmocka_unit_test(gzip_is_told_by_content),
        cmocka_unit_test(cut_gzip_is_refused),
        cmocka_unit_test(cut_gzip_is_refused_in_any_steps),
        cmocka_unit_test(labels_are_read),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
