#include "html.h"
#include "text.h"

#include <math.h>
#include <stdarg.h>

void html_put(html_out *out, const char *markup) {
    fputs(markup, out->stream);
}

void html_print(html_out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out->stream, format, arguments);
    va_end(arguments);
}

/* Controls and the code points that are no characters are errors in HTML. */
static bool forbidden(uint32_t value) {
    return (value < 0x20 && value != '\t' && value != '\n') || (value >= 0x7f && value < 0xa0) ||
           (value >= 0xfdd0 && value <= 0xfdef) || (value & 0xfffe) == 0xfffe;
}

static void put_character(FILE *stream, uint32_t value, const char *bytes, int length) {
    switch (value) {
    case '&':
        fputs("&amp;", stream);
        return;
    case '<':
        fputs("&lt;", stream);
        return;
    case '>':
        fputs("&gt;", stream);
        return;
    case '"':
        fputs("&quot;", stream);
        return;
    case '\'':
        fputs("&#39;", stream);
        return;
    default:
        if (value == 0xfffd || forbidden(value))
            fputs("\xef\xbf\xbd", stream);
        else
            fwrite(bytes, 1, (size_t)length, stream);
    }
}

void html_text(html_out *out, const char *text) {
    for (int length; *text; text += length) {
        uint32_t value = text_next(text, &length);
        put_character(out->stream, value, text, length);
    }
}

void html_text_short(html_out *out, const char *text, int columns) {
    if (text_columns(text) <= columns) {
        html_text(out, text);
        return;
    }
    int used = 1; /* the ellipsis */
    for (int length; *text; text += length) {
        uint32_t value = text_next(text, &length);
        used += text_columns_of(value);
        if (used > columns) break;
        put_character(out->stream, value, text, length);
    }
    html_put(out, "…");
}

void html_name(html_out *out, const char *text) {
    html_put(out, "<bdi>");
    html_text(out, text);
    html_put(out, "</bdi>");
}

void html_number(html_out *out, double value, int digits) {
    if (isfinite(value))
        html_print(out, "%s%.*f", value < 0 ? "−" : "", digits, fabs(value));
    else
        html_put(out, "–");
}

void html_signed(html_out *out, double value, int digits) {
    if (isfinite(value))
        html_print(out, "%s%.*f", value < 0 ? "−" : "+", digits, fabs(value));
    else
        html_put(out, "–");
}
