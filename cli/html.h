/* HTML and SVG into a stream.
 *
 * Two kinds of text are kept apart: trusted markup (html_put, html_print), and untrusted names, labels
 * and paths, which are escaped (html_text and the functions built on it). The program does not set a
 * locale, so numbers have a decimal point. */
#ifndef VLP_CLI_HTML_H
#define VLP_CLI_HTML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct html_out {
    FILE *stream;
} html_out;

void html_put(html_out *out, const char *markup);
/* Formatted markup; %s only for trusted text. */
void html_print(html_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Escaped for content and quoted attributes; invalid UTF-8 bytes and characters that HTML forbids
 * become U+FFFD. */
void html_text(html_out *out, const char *text);
/* The same, truncated to `columns` with an ellipsis. */
void html_text_short(html_out *out, const char *text, int columns);
/* A name in running text, with its writing direction isolated (<bdi>). */
void html_name(html_out *out, const char *text);
/* A number with `digits` decimals and a typographic minus; a dash if it is not finite. */
void html_number(html_out *out, double value, int digits);
/* The same with a sign also for positive numbers. */
void html_signed(html_out *out, double value, int digits);

#endif
