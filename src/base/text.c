/* UTF-8, lines and likeness of texts.
 *
 * Every byte of every file that is read passes through the validator and the newline counter, so both
 * take blocks of a fixed size that the compiler turns into vector instructions. */
#include "base/text.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* ---- UTF-8 --------------------------------------------------------------------------------------- */

enum { WORDS = 8, BLOCK = WORDS * sizeof(uint64_t) };

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* The position of the first byte at or after `at` that is not ASCII, or `size`. */
static size_t skip_ascii(const char *text, size_t size, size_t at) {
    uint64_t words[WORDS];
    while (size - at >= BLOCK) {
        uint64_t any = 0;
        memcpy(words, text + at, BLOCK);
        for (int i = 0; i < WORDS; i++) any |= words[i];
        if (any & HIGH_BITS) break;
        at += BLOCK;
    }
    while (size - at >= sizeof *words) {
        memcpy(words, text + at, sizeof *words);
        if (words[0] & HIGH_BITS) break;
        at += sizeof *words;
    }
    while (at < size && (unsigned char)text[at] < 0x80) at++;
    return at;
}

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

/* The length of the sequence of two to four bytes that `text` starts with; 0 where there is none. The
 * lead byte narrows the second one: that is where overlong forms, surrogates and what lies above
 * U+10FFFF are told (The Unicode Standard, table 3-7). */
static size_t sequence_length(const unsigned char *text, size_t size) {
    unsigned char lead = text[0];
    if (lead < 0xc2 || lead > 0xf4 || size < 2) return 0;
    unsigned char second = text[1];
    if (lead < 0xe0) return is_continuation(second) ? 2 : 0;
    unsigned char low = 0x80, high = 0xbf;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    if (second < low || second > high || size < 3 || !is_continuation(text[2])) return 0;
    if (lead < 0xf0) return 3;
    return size >= 4 && is_continuation(text[3]) ? 4 : 0;
}

size_t vlp_utf8_valid_prefix(const char *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        if ((unsigned char)text[at] < 0x80) {
            at = skip_ascii(text, size, at);
            continue;
        }
        size_t length = sequence_length((const unsigned char *)text + at, size - at);
        if (length == 0) break;
        at += length;
    }
    return at;
}

/* Whether a character, the first `length` bytes of `text`, is a control: U+0080 to U+009F take two
 * bytes. */
static bool is_control(const unsigned char *text, size_t length) {
    if (length == 1) return text[0] < 0x20 || text[0] == 0x7f;
    return length == 2 && text[0] == 0xc2 && text[1] < 0xa0;
}

void vlp_text_escape(char *out, size_t size, const char *text) {
    assert(size > 0);
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        char escaped[8];
        size_t length = at[0] < 0x80 ? 1 : sequence_length(at, left), written = length;
        memcpy(escaped, at, length);
        if (length == 0)
            written = (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", at[0]);
        else if (is_control(at, length))
            written = (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", at[length - 1]);
        if (written >= size - used) break;
        memcpy(out + used, escaped, written);
        used += written;
        at += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
    out[used] = '\0';
}

size_t vlp_bom_length(const char *text, size_t size) {
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* ---- Lines --------------------------------------------------------------------------------------- */

int64_t vlp_count_newlines(const char *text, size_t size) {
    enum { LANES = 64, ROUNDS = 255 }; /* a lane of one byte counts to 255 */
    int64_t count = 0;
    while (size >= LANES) {
        uint8_t lanes[LANES] = {0};
        size_t rounds = size / LANES < ROUNDS ? size / LANES : ROUNDS;
        for (size_t round = 0; round < rounds; round++, text += LANES)
            for (int i = 0; i < LANES; i++) lanes[i] = (uint8_t)(lanes[i] + (text[i] == '\n'));
        for (int i = 0; i < LANES; i++) count += lanes[i];
        size -= rounds * LANES;
    }
    for (size_t i = 0; i < size; i++) count += text[i] == '\n';
    return count;
}

/* ---- Edit distance ------------------------------------------------------------------------------- */

static int least(int left, int right) {
    return left < right ? left : right;
}

/* The distance of texts that differ in length by at most `limit`. Only cells within `limit` of the
 * diagonal can be part of a path that short: band[k] is the distance of the first i bytes of `left` from
 * the first i + k - limit of `right`. (2 * limit + 2), the last one a border. */
static int banded_distance(int *band, const char *left, int left_length, const char *right,
                           int right_length, int limit) {
    const int far = limit + 1;
    for (int k = 0; k <= 2 * limit; k++) band[k] = k < limit ? far : k - limit;
    band[2 * limit + 1] = far;
    for (int i = 1; i <= left_length; i++) {
        int nearest = far, before = far;
        for (int k = 0; k <= 2 * limit; k++) {
            int j = i + k - limit;
            int cell = far;
            if (j == 0) cell = i;
            if (j > 0 && j <= right_length) {
                cell = band[k] + (left[i - 1] != right[j - 1]);
                cell = least(cell, least(band[k + 1], before) + 1);
            }
            band[k] = before = least(cell, far);
            nearest = least(nearest, before);
        }
        if (nearest == far) return far;
    }
    return band[right_length - left_length + limit];
}

int vlp_edit_distance(const char *left, const char *right, int limit) {
    assert(limit >= 0 && limit < INT_MAX);
    /* A common start and end change nothing, and most of a misspelt name is just that. */
    while (*left && *left == *right) left++, right++;
    size_t left_size = strlen(left), right_size = strlen(right);
    while (left_size > 0 && right_size > 0 && left[left_size - 1] == right[right_size - 1])
        left_size--, right_size--;
    size_t longer = left_size > right_size ? left_size : right_size;
    size_t shorter = left_size > right_size ? right_size : left_size;
    if (longer - shorter > (size_t)limit) return limit + 1;
    if (shorter == 0) return (int)longer;
    /* No distance is above the longer length, so that no band need be wider. */
    int width = longer < (size_t)limit ? (int)longer : limit;
    if (longer > INT_MAX / 4) return limit + 1;

    int narrow[130];
    int *band = narrow;
    size_t cells = 2 * (size_t)width + 2;
    if (cells > sizeof narrow / sizeof *narrow) band = vlp_alloc(cells, sizeof *band);
    if (!band) return limit + 1; /* as good as far: the callers look for what is near */
    int distance = banded_distance(band, left, (int)left_size, right, (int)right_size, width);
    if (band != narrow) vlp_free(band);
    return distance;
}
