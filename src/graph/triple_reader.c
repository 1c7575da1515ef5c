#include "graph/triple_reader.h"

#include <string.h>

#include "base/options.h"
#include "base/text.h"

enum { FIRST_BUFFER = 1 << 16 };

struct vlp_triple_reader {
    const vlp_dataset *dataset;
    vlp_source *source;
    bool queries;
    char *buffer; /* [start, end) is not consumed yet */
    int64_t capacity, start, end;
    bool ended;   /* the end of the source */
    int64_t line; /* of the last triple, from 1 */
};

vlp_status vlp_triple_reader_new(vlp_triple_reader **out, const vlp_dataset *dataset, vlp_source *source,
                                 bool queries) {
    *out = NULL;
    vlp_triple_reader *reader = vlp_alloc_zero(1, sizeof *reader);
    if (!reader) {
        vlp_source_free(source);
        return vlp_fail_memory("a file reader");
    }
    reader->dataset = dataset;
    reader->source = source;
    reader->queries = queries;
    vlp_status status = vlp_grow(&reader->buffer, &reader->capacity, FIRST_BUFFER, 1, "a file reader");
    if (status != VLP_OK) {
        vlp_triple_reader_free(reader);
        return status;
    }
    *out = reader;
    return VLP_OK;
}

vlp_status vlp_triple_reader_open(vlp_triple_reader **out, const vlp_dataset *dataset, const char *path,
                                  bool queries) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(dataset);
    VLP_REQUIRE(path);
    vlp_source *source = NULL;
    VLP_TRY(vlp_source_open(&source, strcmp(path, "-") == 0 ? "/dev/stdin" : path));
    return vlp_triple_reader_new(out, dataset, source, queries);
}

void vlp_triple_reader_free(vlp_triple_reader *reader) {
    if (!reader) return;
    vlp_source_free(reader->source);
    vlp_free(reader->buffer);
    vlp_free(reader);
}

int64_t vlp_triple_reader_line(const vlp_triple_reader *reader) {
    return reader ? reader->line : 0;
}

/* ---- Lines --------------------------------------------------------------------------------------- */

/* Appends input to the buffer, growing it where needed. */
static vlp_status read_more(vlp_triple_reader *reader) {
    int64_t left = reader->end - reader->start;
    if (reader->start > 0) memmove(reader->buffer, reader->buffer + reader->start, (size_t)left);
    reader->start = 0;
    reader->end = left;
    if (left == reader->capacity)
        VLP_TRY(vlp_grow(&reader->buffer, &reader->capacity, 2 * left, 1, "a file reader"));
    size_t got, wanted = (size_t)(reader->capacity - left);
    VLP_TRY(vlp_source_read(reader->source, reader->buffer + left, wanted, &got));
    reader->end += (int64_t)got;
    reader->ended = got < wanted;
    return VLP_OK;
}

/* The next line without its end; NULL at the end of the file. A line that is too long is truncated,
 * and *cut is set. */
static vlp_status next_line(char **line, size_t *length, bool *cut, vlp_triple_reader *reader) {
    int64_t looked = 0; /* bytes of the line that are known to contain no newline */
    *line = NULL;
    *cut = false;
    for (;;) {
        int64_t size = reader->end - reader->start;
        char *text = reader->buffer + reader->start;
        char *newline = size > looked ? memchr(text + looked, '\n', (size_t)(size - looked)) : NULL;
        if (newline || (reader->ended && (size > 0 || *cut))) {
            *line = text;
            *length = newline ? (size_t)(newline - text) : (size_t)size;
            reader->start += (int64_t)*length + (newline != NULL);
            reader->line++;
            return VLP_OK;
        }
        if (reader->ended) return VLP_OK;
        looked = size;
        if (size >= VLP_LONGEST_LINE) { /* the rest of it is skipped */
            *cut = true;
            reader->start = reader->end;
            looked = 0;
        }
        VLP_TRY(read_more(reader));
    }
}

/* ---- One triple ---------------------------------------------------------------------------------- */

static vlp_status fail_line(const vlp_triple_reader *reader, vlp_status status, const char *cause) {
    return vlp_fail(status, "%s:%lld: %s", vlp_source_name(reader->source), (long long)reader->line,
                    cause);
}

/* Splits a line at its tabs, in place; returns NULL or the error. */
static const char *cut_fields(char *fields[3], char *line, size_t length) {
    if (vlp_utf8_valid_prefix(line, length) != length) return "invalid UTF-8";
    line[length] = '\0'; /* overwrites the newline, or the spare byte of the buffer */
    size_t count = 1;
    fields[0] = line;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        if (byte != '\t' && (byte < 0x20 || byte == 0x7f)) return "a control character";
        if (byte != '\t') continue;
        if (count == 3) return "more than 3 fields (head, relation, tail, separated by tabs)";
        line[i] = '\0';
        fields[count++] = line + i + 1;
    }
    if (count < 3) return "fewer than 3 fields (head, relation, tail, separated by tabs)";
    for (int i = 0; i < 3; i++)
        if (!*fields[i]) return "an empty name";
    return NULL;
}

static vlp_status find_names(vlp_triple *out, const vlp_triple_reader *reader, char *const fields[3]) {
    /* In a file of triples '?' is an ordinary name. */
    bool asked[3];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        asked[i] = reader->queries && strcmp(fields[i], "?") == 0;
        count += asked[i];
    }
    if (reader->queries && count != 1)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "a query has one '?', as its head, relation or tail; this line has %d", count);
    *out = (vlp_triple){-1, -1, -1};
    if (!asked[0]) VLP_TRY(vlp_dataset_find_entity(&out->head, reader->dataset, fields[0]));
    if (!asked[1]) VLP_TRY(vlp_dataset_find_relation(&out->relation, reader->dataset, fields[1]));
    if (!asked[2]) VLP_TRY(vlp_dataset_find_entity(&out->tail, reader->dataset, fields[2]));
    return VLP_OK;
}

vlp_status vlp_triple_reader_next(vlp_triple *out, bool *more, vlp_triple_reader *reader) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(more);
    VLP_REQUIRE(reader);
    char *line, *fields[3];
    size_t length;
    bool cut;
    *more = true;
    do {
        VLP_TRY(next_line(&line, &length, &cut, reader));
        if (!line) {
            *more = false;
            return VLP_OK;
        }
        if (cut) return fail_line(reader, VLP_ERROR_FORMAT, "a line of more than 1 MiB");
        if (length > 0 && line[length - 1] == '\r') length--;
        if (reader->line == 1) {
            size_t mark = vlp_bom_length(line, length);
            line += mark;
            length -= mark;
        }
    } while (length == 0); /* blank lines are skipped */
    const char *fault = cut_fields(fields, line, length);
    if (fault) return fail_line(reader, VLP_ERROR_FORMAT, fault);
    vlp_triple found;
    vlp_status status = find_names(&found, reader, fields);
    if (status != VLP_OK) return fail_line(reader, status, vlp_error_message());
    *out = found;
    return VLP_OK;
}
