#include "graph/lines.h"

#include <string.h>

#include "base/text.h"

enum { FIRST_BUFFER = 1 << 16 };

vlp_status vlp_lines_start(vlp_lines *lines, vlp_source *source) {
    *lines = (vlp_lines){.source = source};
    return vlp_grow(&lines->buffer, &lines->capacity, FIRST_BUFFER, 1, "a file reader");
}

void vlp_lines_free(vlp_lines *lines) {
    vlp_free(lines->buffer);
}

/* Appends input to the buffer, growing it where needed. One byte is spare, for the terminator of a line
 * without a newline. */
static vlp_status read_more(vlp_lines *lines) {
    int64_t left = lines->end - lines->start;
    if (lines->start > 0) memmove(lines->buffer, lines->buffer + lines->start, (size_t)left);
    lines->start = 0;
    lines->end = left;
    if (left + 1 >= lines->capacity)
        VLP_TRY(vlp_grow(&lines->buffer, &lines->capacity, 2 * left, 1, "a file reader"));
    size_t got, wanted = (size_t)(lines->capacity - left - 1);
    VLP_TRY(vlp_source_read(lines->source, lines->buffer + left, wanted, &got));
    lines->end += (int64_t)got;
    lines->ended = got < wanted;
    if (!lines->begun) lines->start = (int64_t)vlp_bom_length(lines->buffer, got);
    lines->begun = true;
    return VLP_OK;
}

/* The next line as it is; a line that is too long is truncated, and *cut is set. */
static vlp_status take_line(char **line, size_t *length, bool *cut, vlp_lines *lines) {
    int64_t looked = 0; /* bytes of the line that are known to contain no newline */
    *line = NULL;
    *cut = false;
    for (;;) {
        int64_t size = lines->end - lines->start;
        char *text = lines->buffer + lines->start;
        char *newline = size > looked ? memchr(text + looked, '\n', (size_t)(size - looked)) : NULL;
        if (newline || (lines->ended && (size > 0 || *cut))) {
            *line = text;
            *length = newline ? (size_t)(newline - text) : (size_t)size;
            lines->start += (int64_t)*length + (newline != NULL);
            lines->number++;
            return VLP_OK;
        }
        if (lines->ended) return VLP_OK;
        looked = size;
        if (size >= VLP_LONGEST_LINE) { /* the rest of it is skipped */
            *cut = true;
            lines->start = lines->end;
            looked = 0;
        }
        VLP_TRY(read_more(lines));
    }
}

vlp_status vlp_lines_next(vlp_lines *lines, char **line, size_t *length) {
    bool cut;
    VLP_TRY(take_line(line, length, &cut, lines));
    if (!*line) return VLP_OK;
    if (cut) return vlp_lines_fail(lines, VLP_ERROR_FORMAT, "a line of more than 1 MiB");
    if (*length > 0 && (*line)[*length - 1] == '\r') --*length;
    if (vlp_utf8_valid_prefix(*line, *length) != *length)
        return vlp_lines_fail(lines, VLP_ERROR_FORMAT, "invalid UTF-8");
    (*line)[*length] = '\0'; /* overwrites the line end, or the spare byte of the buffer */
    if (strlen(*line) != *length) return vlp_lines_fail(lines, VLP_ERROR_FORMAT, "a zero byte");
    return VLP_OK;
}

vlp_status vlp_lines_fail(const vlp_lines *lines, vlp_status status, const char *cause) {
    return vlp_fail(status, "%s:%lld: %s", vlp_source_name(lines->source), (long long)lines->number,
                    cause);
}
