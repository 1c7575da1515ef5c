/* Text against the plain way of doing it: UTF-8 by its definition, newlines one by one, edit distance by
 * the whole table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "failing_allocator.h"

/* ---- Oracles and random numbers ------------------------------------------------------------------ */

static uint64_t random_state;

static uint32_t random_below(uint32_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

/* The length of the character at the start of a text, read bit by bit; 0 where there is none. */
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
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
