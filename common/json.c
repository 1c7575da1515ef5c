#include "json.h"

#include <math.h>

#include "text.h"

json_out json_start(FILE *stream) {
    return (json_out){stream, true};
}

/* Quotes, backslashes and control characters are escaped; invalid UTF-8 bytes, as in paths, become
 * U+FFFD. */
static void put_string(FILE *stream, const char *text) {
    fputc('"', stream);
    for (int length; *text; text += length) {
        uint32_t value = text_next(text, &length);
        if (value == '"' || value == '\\')
            fprintf(stream, "\\%c", (int)value);
        else if (value < 0x20 || value == 0x7f)
            fprintf(stream, "\\u%04x", value);
        else if (value == 0xfffd)
            fputs("\xef\xbf\xbd", stream);
        else
            fwrite(text, 1, (size_t)length, stream);
    }
    fputc('"', stream);
}

static void begin(json_out *json, const char *key) {
    if (!json->first) fputc(',', json->stream);
    json->first = false;
    if (!key) return;
    put_string(json->stream, key);
    fputc(':', json->stream);
}

void json_object(json_out *json, const char *key) {
    begin(json, key);
    fputc('{', json->stream);
    json->first = true;
}

void json_array(json_out *json, const char *key) {
    begin(json, key);
    fputc('[', json->stream);
    json->first = true;
}

void json_end_object(json_out *json) {
    fputc('}', json->stream);
    json->first = false;
}

void json_end_array(json_out *json) {
    fputc(']', json->stream);
    json->first = false;
}

void json_string(json_out *json, const char *key, const char *value) {
    begin(json, key);
    if (value)
        put_string(json->stream, value);
    else
        fputs("null", json->stream);
}

void json_integer(json_out *json, const char *key, int64_t value) {
    begin(json, key);
    fprintf(json->stream, "%lld", (long long)value);
}

void json_number(json_out *json, const char *key, double value) {
    begin(json, key);
    if (isfinite(value))
        fprintf(json->stream, "%.9g", value);
    else
        fputs("null", json->stream);
}

void json_bool(json_out *json, const char *key, bool value) {
    begin(json, key);
    fputs(value ? "true" : "false", json->stream);
}
