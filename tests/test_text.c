/* Text against the plain way of doing it: UTF-8 by its definition, newlines one by one, edit distance by
 * the whole table, escapes character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/text.h"
#include "failing_allocator.h"

/* ---- Oracles and random numbers ------------------------------------------------------------------ */

static uint64_t random_state;

static uint32_t random_below(uint32_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

/* The length of the character at the start of a text, read bit by bit; 0 without one. */
static size_t plain_character(const unsigned char *text, size_t size) {
    size_t length = 1;
    uint32_t code = text[0], least = 0;
    if (code >= 0x80) {
        length = code < 0xc0 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : code < 0xf8 ? 4 : 0;
        least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
        if (length == 0 || length > size) return 0;
        code &= (1u << (7 - length)) - 1;
    }
    for (size_t i = 1; i < length; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) return 0;
        code = code * 64 + (text[i] - 0x80u);
    }
    return code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

static size_t plain_valid_prefix(const unsigned char *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        size_t length = plain_character(text + at, size - at);
        if (length == 0) break;
        at += length;
    }
    return at;
}

static void expect_same_prefix(const unsigned char *text, size_t size) {
    assert_int_equal(vlp_utf8_valid_prefix((const char *)text, size), plain_valid_prefix(text, size));
}

/* ---- UTF-8 --------------------------------------------------------------------------------------- */

static void test_utf8_all_short(void **state) {
    (void)state;
    unsigned char text[3];
    for (uint32_t value = 0; value < 1u << 24; value++) {
        text[0] = (unsigned char)value;
        text[1] = (unsigned char)(value >> 8);
        text[2] = (unsigned char)(value >> 16);
        size_t expected = plain_valid_prefix(text, 3);
        if (vlp_utf8_valid_prefix((const char *)text, 3) != expected) expect_same_prefix(text, 3);
        if (value < 1u << 16) expect_same_prefix(text, 2);
        if (value < 1u << 8) expect_same_prefix(text, 1);
    }
}

/* The bytes at which some rule of UTF-8 begins or ends. */
static const unsigned char edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                      0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                      0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff};
enum { EDGES = sizeof edges };

static void test_utf8_four_bytes(void **state) {
    (void)state;
    for (int i = 0; i < EDGES * EDGES * EDGES * EDGES; i++) {
        unsigned char text[4];
        for (int j = 0, left = i; j < 4; j++, left /= EDGES) text[j] = edges[left % EDGES];
        expect_same_prefix(text, 4);
    }
}

/* The steps of the fast path must not hide anything: every sequence at every place of a long text. */
static void test_utf8_places(void **state) {
    (void)state;
    enum { SIZE = 200 };
    static const char *const sequences[] = {
        "\x80",         "\xc3\xa9",         "\xc3",         "\xe4\xb8\xad",     "\xe4\xb8",
        "\xed\xa0\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xc0\x80"};
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        size_t length = strlen(sequences[i]);
        for (size_t size = length; size <= SIZE; size++) {
            unsigned char *text =
                malloc(size); /* of this size, so that a sanitizer sees what lies beyond */
            assert_non_null(text);
            for (size_t place = 0; place + length <= size; place++) {
                memset(text, 'a', size);
                memcpy(text + place, sequences[i], length);
                expect_same_prefix(text, size);
            }
            free(text);
        }
    }
}

static size_t put_character(unsigned char *out, uint32_t code) {
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6) out[i] = (unsigned char)(0x80 | (code & 0x3f));
    out[0] = (unsigned char)(marks[length] | code);
    return length;
}

static void test_utf8_mutations(void **state) {
    (void)state;
    enum { SIZE = 400, ALIGNMENTS = 16 };
    random_state = 1;
    static unsigned char memory[SIZE + ALIGNMENTS + 4];
    for (int round = 0; round < 20000; round++) {
        unsigned char *text = memory + round % ALIGNMENTS;
        uint32_t ascii = 1 + random_below(40); /* characters beyond ASCII are one in so many */
        size_t size = 0;
        for (size_t wanted = random_below(SIZE); size < wanted;) {
            uint32_t code = random_below(ascii) ? random_below(0x80) : random_below(0x110000);
            if (code >= 0xd800 && code < 0xe000) continue;
            size += put_character(text + size, code);
        }
        assert_int_equal(vlp_utf8_valid_prefix((const char *)text, size), size);
        for (uint32_t left = random_below(3); size > 0 && left > 0; left--)
            text[random_below((uint32_t)size)] = edges[random_below(EDGES)];
        expect_same_prefix(text, size);
    }
}

static void test_byte_order_mark(void **state) {
    (void)state;
    assert_int_equal(vlp_bom_length("\xef\xbb\xbfx", 4), 3);
    assert_int_equal(vlp_bom_length("\xef\xbb\xbf", 3), 3);
    assert_int_equal(vlp_bom_length("\xef\xbb", 2), 0);
    assert_int_equal(vlp_bom_length("\xef\xbb\xbe", 3), 0);
    assert_int_equal(vlp_bom_length("x\xef\xbb\xbf", 4), 0);
    assert_int_equal(vlp_bom_length("", 0), 0);
}

/* ---- Newlines ------------------------------------------------------------------------------------ */

static void test_newlines(void **state) {
    (void)state;
    enum { SIZE = 64 * 255 * 3 + 17 }; /* beyond what a lane of one byte can count, and a rest */
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, '\n', SIZE);
    for (size_t size = 0; size < 600; size++) assert_int_equal(vlp_count_newlines(text, size), size);
    assert_int_equal(vlp_count_newlines(text, SIZE), SIZE);
    random_state = 2;
    int64_t expected = 0;
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = (char)("\n\v\t\x8a a"[random_below(6)]);
        expected += text[i] == '\n';
    }
    assert_int_equal(vlp_count_newlines(text, SIZE), expected);
    free(text);
}

/* ---- Edit distance ------------------------------------------------------------------------------- */

static int plain_distance(const char *left, const char *right) {
    enum { MOST = 300 };
    static int table[MOST + 1][MOST + 1];
    size_t rows = strlen(left), columns = strlen(right);
    assert_true(rows <= MOST && columns <= MOST);
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (int)(i + j);
                continue;
            }
            int best = table[i - 1][j - 1] + (left[i - 1] != right[j - 1]);
            if (table[i - 1][j] + 1 < best) best = table[i - 1][j] + 1;
            if (table[i][j - 1] + 1 < best) best = table[i][j - 1] + 1;
            table[i][j] = best;
        }
    return table[rows][columns];
}

static void expect_distance(const char *left, const char *right, int limit) {
    int distance = plain_distance(left, right);
    int expected = distance > limit ? limit + 1 : distance;
    assert_int_equal(vlp_edit_distance(left, right, limit), expected);
    assert_int_equal(vlp_edit_distance(right, left, limit), expected);
}

static void random_text(char *out, uint32_t most, uint32_t letters) {
    uint32_t length = random_below(most + 1);
    for (uint32_t i = 0; i < length; i++) out[i] = (char)('a' + random_below(letters));
    out[length] = '\0';
}

static void test_distance_known(void **state) {
    (void)state;
    assert_int_equal(vlp_edit_distance("", "", 0), 0);
    assert_int_equal(vlp_edit_distance("kitten", "sitting", 5), 3);
    assert_int_equal(vlp_edit_distance("kitten", "sitting", 3), 3);
    assert_int_equal(vlp_edit_distance("kitten", "sitting", 2), 3);
    assert_int_equal(vlp_edit_distance("abc", "", 3), 3);
    assert_int_equal(vlp_edit_distance("abc", "", 2), 3);
    assert_int_equal(vlp_edit_distance("aaaa", "aaaaa", 1), 1);
    assert_int_equal(vlp_edit_distance("\xc3\xa9", "e", 9), 2); /* by bytes */
}

static void test_distance_random(void **state) {
    (void)state;
    random_state = 3;
    char left[301], right[301];
    for (int round = 0; round < 20000; round++) {
        uint32_t letters = 1 + random_below(4);
        random_text(left, 14, letters);
        random_text(right, 14, letters);
        for (int limit = 0; limit <= 16; limit += 1 + (int)random_below(4))
            expect_distance(left, right, limit);
    }
    for (int round = 0; round < 60; round++) { /* a band that does not fit on the stack */
        random_text(left, 300, 3);
        random_text(right, 300, 3);
        expect_distance(left, right, (int)random_below(400));
    }
}

/* Without memory for a wide band the texts count as far from each other. */
static void test_distance_without_memory(void **state) {
    (void)state;
    char left[201], right[201];
    memset(left, 'a', 200);
    memset(right, 'b', 200);
    left[200] = right[200] = '\0';
    failing_allocator memory;
    failing_allocator_install(&memory, 1);
    assert_int_equal(vlp_edit_distance(left, right, 250), 251);
    failing_allocator_remove(&memory);
    assert_true(memory.failed);
    assert_int_equal(vlp_edit_distance(left, right, 250), 200);
}

/* ---- Escapes ------------------------------------------------------------------------------------- */

/* The same, character by character, into a buffer that is long enough. */
static void plain_escape(char *out, const unsigned char *text) {
    size_t left = strlen((const char *)text);
    while (left > 0) {
        size_t length = plain_character(text, left);
        uint32_t code = length == 2 ? (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu) : text[0];
        if (length == 0) {
            out += sprintf(out, "\\x%02x", text[0]);
            length = 1;
        } else if (length <= 2 && (code < 0x20 || (code >= 0x7f && code < 0xa0))) {
            out += sprintf(out, "\\u%04x", code);
        } else {
            memcpy(out, text, length);
            out += length;
        }
        text += length;
        left -= length;
    }
    *out = '\0';
}

/* Texts of up to five bytes that are likely to make, break or end a character, at every buffer size. */
static void test_escape(void **state) {
    (void)state;
    static const unsigned char bytes[] = {0x01, 0x1b, 'a',  0x7f, 0x80, 0x9b, 0x9f, 0xa0,
                                          0xbf, 0xc2, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff};
    random_state = 5;
    for (int round = 0; round < 200000; round++) {
        unsigned char text[8] = {0};
        uint32_t length = random_below(6);
        for (uint32_t i = 0; i < length; i++) text[i] = bytes[random_below(sizeof bytes)];
        char expected[64], escaped[64];
        plain_escape(expected, text);
        vlp_text_escape(escaped, sizeof escaped, (const char *)text);
        assert_string_equal(escaped, expected);
        assert_int_equal(vlp_utf8_valid_prefix(escaped, strlen(escaped)), strlen(escaped));
        for (const char *at = escaped; *at; at++) {
            assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
            if (*at == '\xc2') assert_true((unsigned char)at[1] >= 0xa0);
        }
        /* Cut: a beginning, and whole characters and escapes only. */
        size_t size = 1 + random_below(16);
        vlp_text_escape(escaped, size, (const char *)text);
        assert_true(strlen(escaped) < size);
        assert_memory_equal(escaped, expected, strlen(escaped));
        assert_int_equal(vlp_utf8_valid_prefix(escaped, strlen(escaped)), strlen(escaped));
    }
}

/* Names go into messages and logs; both are one line that a terminal does not obey. */
static void keep_line(void *user, const char *line) {
    snprintf(user, 64, "%s", line);
}

static void test_messages(void **state) {
    (void)state;
    char line[64];
    const vlp_observer observer = {keep_line, NULL, NULL, line};
    assert_int_equal(vlp_fail(VLP_ERROR_FORMAT, "name '%s'", "a\n\xc2\x9b\x9b\u00e9"), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "name 'a\\u000a\\u009b\\x9b\u00e9'");
    vlp_log(&observer, "name '%s'", "a\xc2\x85");
    assert_string_equal(line, "name 'a\\u0085'");
    /* A message of the message before. */
    assert_int_equal(vlp_fail(VLP_ERROR_FORMAT, "file: %s", vlp_error_message()), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "file: name 'a\\u000a\\u009b\\x9b\u00e9'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_all_short),
        cmocka_unit_test(test_utf8_four_bytes),
        cmocka_unit_test(test_utf8_places),
        cmocka_unit_test(test_utf8_mutations),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_newlines),
        cmocka_unit_test(test_distance_known),
        cmocka_unit_test(test_distance_random),
        cmocka_unit_test(test_distance_without_memory),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
