/* HTML and SVG into a stream.
 *
 * Two kinds of text go out and must not be mixed up: markup, which is ours (html_put, html_print), and
 * names, labels and paths, which are anybody's (html_text and what is built on it). The program never
 * sets a locale, so that numbers have a point everywhere. */
#ifndef VLP_CLI_HTML_H
#define VLP_CLI_HTML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct html_out {
    FILE *stream;
} html_out;

void html_put(html_out *out, const char *markup);
/* Markup with numbers: no %s of what is not ours. */
void html_print(html_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Escaped, fit for content and for quoted attributes; bytes that are no UTF-8 and characters that HTML
 * forbids become U+FFFD. */
void html_text(html_out *out, const char *text);
/* The same, cut to so many columns, with an ellipsis where it was longer. */
void html_text_short(html_out *out, const char *text, int columns);
/* A name in running text, isolated from its surroundings as far as the direction of writing goes. */
void html_name(html_out *out, const char *text);
/* Digits behind the point, and a minus that is one; a dash where there is no number. */
void html_number(html_out *out, double value, int digits);
/* The same with its sign also where it is positive. */
void html_signed(html_out *out, double value, int digits);

#endif
