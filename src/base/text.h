/* Text from outside: UTF-8 and lines. */
#ifndef VLP_BASE_TEXT_H
#define VLP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms, at most
 * U+10FFFF); `size` when all of it is. */
size_t vlp_utf8_valid_prefix(const char *text, size_t size);

/* Copies a text for people to see, cut to `size` bytes with its terminator: control characters (C0, DEL
 * and C1, which terminals obey) become \uNNNN, bytes that are not UTF-8 become \xNN. */
void vlp_text_escape(char *out, size_t size, const char *text);

/* The number of newlines in a text. */
int64_t vlp_count_newlines(const char *text, size_t size);

/* The length of a UTF-8 byte-order mark at the start of a text: 3 or 0. */
size_t vlp_bom_length(const char *text, size_t size);

/* Levenshtein distance of two texts, by bytes, or `limit` + 1 when it is larger than `limit`. */
int vlp_edit_distance(const char *left, const char *right, int limit);

#endif
