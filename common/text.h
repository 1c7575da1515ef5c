/* Display of untrusted names in any script: widths in columns, and escapes. */
#ifndef VLP_COMMON_TEXT_H
#define VLP_COMMON_TEXT_H

#include <stdint.h>

/* The next character and its length in bytes; U+FFFD, length 1, for an invalid byte. */
uint32_t text_next(const char *text, int *length);
/* The width of a character in columns: 2 for East Asian characters and emoji, 0 for combining marks
 * (approximate). */
int text_columns_of(uint32_t character);
/* A text for display: itself, or a copy in which control characters (C0, DEL and C1) are \uNNNN and
 * invalid UTF-8 bytes are \xNN. A copy is valid until the eighth call after it. */
const char *text_shown(const char *text);
/* A field of a table on standard output: unchanged in a file or pipe, text_shown on a terminal. */
const char *text_field(const char *text);
/* The width of a text in columns. */
int text_columns(const char *text);
/* Prints a text, padded with spaces to `columns`. */
void text_print(const char *text, int columns);

#endif
