/* Tables: lines of fields with one separator. The TSV files of the benchmarks have three columns. */
#include <string.h>

#include "base/text.h"
#include "graph/reader.h"

const vlp_table_options vlp_tsv_layout = {1, {1, 2, 3}, '\t', false};

/* The error of a name, or NULL. */
static const char *name_fault(const char *text, size_t length) {
    if (length == 0) return "an empty name";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return "a control character in a name";
    return NULL;
}

static const char *const column_names[3] = {"head", "relation", "tail"};

/* Splits a line into fields and stores the selected ones in `triple`. Returns the number of fields. */
static int32_t split_line(vlp_span triple[3], const char *line, size_t length,
                          const vlp_table_options *table) {
    int32_t field = 0;
    const char *end = line + length;
    for (const char *start = line;; field++) {
        const char *stop = memchr(start, table->separator, (size_t)(end - start));
        if (!stop) stop = end;
        for (int i = 0; i < 3; i++)
            if (table->columns[i] == field + 1)
                triple[i] = (vlp_span){start, (uint32_t)(stop - start), 0};
        if (stop == end) return field + 1;
        start = stop + 1;
    }
}

static bool parse_line(vlp_piece *piece, int64_t number, const char *line, size_t length,
                       const vlp_table_options *table, int32_t needed) {
    vlp_span triple[3] = {{0}};
    bool exact = table == &vlp_tsv_layout; /* other tables may have further columns */
    int32_t fields = split_line(triple, line, length, table);
    if (fields < needed || (exact && fields != needed)) {
        vlp_piece_fail(piece, VLP_ERROR_FORMAT, number,
                       "%d field%s where %s%d are needed (head, relation, tail, separated by %s)",
                       fields, fields == 1 ? "" : "s", exact ? "" : "at least ", needed,
                       table->separator == '\t' ? "tabs" : "the separator");
        return false;
    }
    for (int i = 0; i < 3; i++) {
        const char *fault = name_fault(triple[i].text, triple[i].length);
        if (fault) {
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, number, "%s (the %s)", fault, column_names[i]);
            return false;
        }
        triple[i].hash = vlp_name_hash(triple[i].text, triple[i].length);
    }
    return vlp_piece_add(piece, triple);
}

void vlp_parse_table(vlp_piece *piece, const void *table_options) {
    const vlp_table_options *table = table_options;
    int32_t needed = 0;
    for (int i = 0; i < 3; i++)
        if (table->columns[i] > needed) needed = table->columns[i];
    size_t valid = vlp_utf8_valid_prefix(piece->text, piece->size);
    int64_t number = 0;
    const char *end = piece->text + piece->size;
    for (const char *line = piece->text; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        if (stop > piece->text + valid) {
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, number, "invalid UTF-8");
            return;
        }
        size_t length = (size_t)(stop - line);
        if (length > 0 && line[length - 1] == '\r') length--;
        if (!parse_line(piece, number, line, length, table, needed)) return;
        line = stop + 1;
    }
}
