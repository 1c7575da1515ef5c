/* The lines of a source, one after the other, in bounded memory. */
#ifndef VLP_GRAPH_LINES_H
#define VLP_GRAPH_LINES_H

#include "base/file.h"

/* The maximum length of a line. */
enum { VLP_LONGEST_LINE = 1 << 20 };

typedef struct vlp_lines {
    vlp_source *source; /* borrowed */
    char *buffer;       /* [start, end) is not consumed yet */
    int64_t capacity, start, end;
    bool begun, ended; /* after the first read; the end of the source */
    int64_t number;    /* of the last line, from 1 */
} vlp_lines;

vlp_status vlp_lines_start(vlp_lines *lines, vlp_source *source);
void vlp_lines_free(vlp_lines *lines);

/* The next line, terminated, without LF or CR LF and without a byte-order mark at the start of the
 * source; NULL at the end. Valid until the next call; the caller may change it. VLP_ERROR_FORMAT for
 * invalid UTF-8, a zero byte, and a line that is too long; the call after it continues with the next
 * line. */
vlp_status vlp_lines_next(vlp_lines *lines, char **line, size_t *length);

/* A failure at the last line: "file:line: cause". */
vlp_status vlp_lines_fail(const vlp_lines *lines, vlp_status status, const char *cause);

#endif
