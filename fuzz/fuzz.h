/* Shared by the fuzz targets: the check macro, a choice that depends only on the input, and a
 * reference UTF-8 decoder. */
#ifndef VLP_FUZZ_FUZZ_H
#define VLP_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks an invariant; aborts if it does not hold. */
#define REQUIRE(condition)                                                                              \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                     \
            abort();                                                                                    \
        }                                                                                               \
    } while (0)

/* Around the code of the targets: its branches are irrelevant to the fuzzer, and counting them would
 * double the time. */
#define UNCOUNTED_BEGIN                                                                                 \
    _Pragma("clang attribute push(__attribute__((no_sanitize(\"coverage\"))), apply_to = function)")
#define UNCOUNTED_END _Pragma("clang attribute pop")

UNCOUNTED_BEGIN

/* True for about one input in `n`, deterministically, for expensive checks. */
static inline bool one_in(const uint8_t *data, size_t size, uint32_t n) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    return (hash >> 8) % n == 0;
}

/* The length of the character at the start of a text, 0 if invalid; *code is its code point. */
static inline size_t naive_character(uint32_t *code, const uint8_t *text, size_t size) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (size == 0) return 0;
    size_t length = 0;
    if (text[0] < 0x80) length = 1;
    if (text[0] >> 5 == 6) length = 2;
    if (text[0] >> 4 == 14) length = 3;
    if (text[0] >> 3 == 30) length = 4;
    if (length == 0 || length > size) return 0;
    *code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

static inline bool naive_utf8(const uint8_t *text, size_t size) {
    uint32_t code;
    for (size_t at = 0, length; at < size; at += length)
        if ((length = naive_character(&code, text + at, size - at)) == 0) return false;
    return true;
}

static inline bool naive_control(uint32_t code) {
    return code < 0x20 || code == 0x7f;
}

/* The length of the first line of `text`, without its newline; *next points after it. */
static inline size_t naive_line(const uint8_t *text, size_t size, size_t *next) {
    const uint8_t *newline = memchr(text, '\n', size);
    size_t length = newline ? (size_t)(newline - text) : size;
    *next = newline ? length + 1 : length;
    return length;
}

UNCOUNTED_END

#endif
