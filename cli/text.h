/* Names are anybody's, in any script: how many columns they take on a page and on a terminal. */
#ifndef VLP_CLI_TEXT_H
#define VLP_CLI_TEXT_H

#include <stdint.h>

/* The next character and how many bytes it takes; U+FFFD for a byte that begins none. */
uint32_t text_next(const char *text, int *length);
/* Columns of a character: about two for East Asian ones and emoji, none for marks. */
int text_columns_of(uint32_t character);
/* A text for people to see: itself, or a copy in which control characters, which a terminal would obey
 * (C0, DEL and C1), are \uNNNN, and bytes that are not UTF-8 are \xNN. The copy is overwritten by the
 * eighth call after it. */
const char *text_shown(const char *text);
/* A field of a table on standard output: data for programs as it is, shown as above on a terminal. */
const char *text_field(const char *text);
/* Columns of a text. */
int text_columns(const char *text);
/* Prints a text, and spaces behind it up to so many columns. */
void text_print(const char *text, int columns);

#endif
