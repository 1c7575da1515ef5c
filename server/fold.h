/* Texts as they are compared while people type: without case and accents.
 *
 * Folded are ASCII, Latin, Greek (also polytonic), Cyrillic and Armenian: case, accents and ligatures (É
 * is e, ß is ss, Æ is ae, Ø is o, Ł is l, ς is σ, Ё is е). Combining marks U+0300 to U+036F are dropped.
 * Runs of white space, controls and underscores are one space, and there is none at the ends. Other
 * scripts stay as they are. */
#ifndef VLP_SERVER_FOLD_H
#define VLP_SERVER_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLD_LIMIT = 256 }; /* bytes of a folded text with its end; longer ones are cut at a character */

/* Writes the folded text to `out`; returns its length in bytes. */
size_t fold_text(char out[FOLD_LIMIT], const char *text);

/* Whether a character of a folded text separates words: ASCII and Latin-1 punctuation, general
 * punctuation, space. */
bool fold_separates(uint32_t character);

#endif
