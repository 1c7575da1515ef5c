#include "graph/triple_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "graph/format.h"
#include "graph/lines.h"

struct vlp_triple_reader {
    const vlp_dataset *dataset;
    vlp_source *source;
    bool queries;
    vlp_lines lines;
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
    vlp_status status = vlp_lines_start(&reader->lines, source);
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
    VLP_TRY(vlp_source_open(&source, path));
    return vlp_triple_reader_new(out, dataset, source, queries);
}

void vlp_triple_reader_free(vlp_triple_reader *reader) {
    if (!reader) return;
    vlp_lines_free(&reader->lines);
    vlp_source_free(reader->source);
    vlp_free(reader);
}

int64_t vlp_triple_reader_line(const vlp_triple_reader *reader) {
    return reader ? reader->lines.number : 0;
}

/* ---- One triple ---------------------------------------------------------------------------------- */

/* Splits a line at its tabs, in place; returns NULL or the error. */
static const char *cut_fields(char *fields[3], char *line, size_t length) {
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

/* Fails at a line that has been cut, with the format it looks like where that is another one. */
static vlp_status fail_fields(const vlp_triple_reader *reader, const char *fault, char *line,
                              size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!line[i]) line[i] = '\t';
    vlp_format_guess seen = vlp_format_look(line, length);
    if (seen.format == VLP_FORMAT_AUTO || seen.format == VLP_FORMAT_TSV)
        return vlp_lines_fail(&reader->lines, VLP_ERROR_FORMAT, fault);
    char cause[256];
    snprintf(cause, sizeof cause, "%s (this looks like %s, not TSV)", fault,
             vlp_format_title(seen.format));
    return vlp_lines_fail(&reader->lines, VLP_ERROR_FORMAT, cause);
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
    *more = true;
    do {
        VLP_TRY(vlp_lines_next(&reader->lines, &line, &length));
        if (!line) {
            *more = false;
            return VLP_OK;
        }
    } while (length == 0); /* blank lines are skipped */
    const char *fault = cut_fields(fields, line, length);
    if (fault) return fail_fields(reader, fault, line, length);
    vlp_triple found;
    vlp_status status = find_names(&found, reader, fields);
    if (status != VLP_OK) return vlp_lines_fail(&reader->lines, status, vlp_error_message());
    *out = found;
    return VLP_OK;
}
