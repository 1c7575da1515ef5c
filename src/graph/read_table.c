/* Tables: TSV, whose fields contain no separator, and CSV (RFC 4180), whose fields may be in quotes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/format.h"
#include "graph/reader.h"

const vlp_table_layout vlp_tsv_layout = {{1, 2, 3}, '\t', false, true};
const vlp_table_layout vlp_csv_layout = {{1, 2, 3}, ',', true, true};

/* ---- Fields -------------------------------------------------------------------------------------- */

/* The unread part of a text. */
typedef struct cursor {
    const char *at, *end;
} cursor;

/* A field of a record; quotes in it are doubled where `doubled`. */
typedef struct field {
    const char *text;
    size_t length;
    bool doubled;
} field;

/* Whether the cursor is at the end of a record: a newline, CR LF, or the end of the text. */
static bool at_record_end(const cursor *text) {
    size_t left = (size_t)(text->end - text->at);
    if (left == 0 || *text->at == '\n') return true;
    return *text->at == '\r' && (left == 1 || text->at[1] == '\n');
}

/* A field in quotes; the cursor is left behind it. Returns the error, or NULL. */
static const char *quoted_field(field *out, cursor *text, char separator) {
    const char *start = ++text->at;
    for (out->doubled = false;; text->at += 2, out->doubled = true) {
        text->at = memchr(text->at, '"', (size_t)(text->end - text->at));
        if (!text->at) return "a field in quotes that has no closing quote";
        if (text->at + 1 == text->end || text->at[1] != '"') break;
    }
    out->text = start;
    out->length = (size_t)(text->at++ - start);
    if (at_record_end(text) || *text->at == separator) return NULL;
    return "text behind the closing quote of a field; a quote in a field in quotes is doubled";
}

static const char *plain_field(field *out, cursor *text, const vlp_table_layout *layout) {
    const char *start = text->at;
    while (!at_record_end(text) && *text->at != layout->separator) {
        if (layout->quoted && *text->at == '"')
            return "a quote in a field without quotes; put the field in quotes and double those in it";
        text->at++;
    }
    *out = (field){start, (size_t)(text->at - start), false};
    return NULL;
}

/* Reads the next field; *more is whether another one of the record follows. */
static const char *next_field(field *out, bool *more, cursor *text, const vlp_table_layout *layout) {
    bool quoted = layout->quoted && text->at < text->end && *text->at == '"';
    const char *fault =
        quoted ? quoted_field(out, text, layout->separator) : plain_field(out, text, layout);
    if (fault) return fault;
    *more = text->at < text->end && *text->at == layout->separator;
    if (*more) {
        text->at++;
        return NULL;
    }
    if (text->at < text->end && *text->at == '\r') text->at++;
    if (text->at < text->end) text->at++; /* the newline */
    return NULL;
}

/* Copies a field with its doubled quotes made single. The arena has capacity for the whole text, so that
 * earlier spans stay valid. */
static vlp_span undouble(vlp_piece *piece, const field *from) {
    char *start = piece->arena + piece->arena_size, *to = start;
    for (size_t i = 0; i < from->length; i++) {
        *to++ = from->text[i];
        if (from->text[i] == '"') i++;
    }
    piece->arena_size += to - start;
    return (vlp_span){start, (uint32_t)(to - start), 0};
}

/* ---- Records ------------------------------------------------------------------------------------- */

static const char *const column_names[3] = {"head", "relation", "tail"};

/* The error of a name, or NULL. */
static const char *name_fault(const char *text, size_t length) {
    if (length == 0) return "an empty name";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return "a control character in a name";
    return NULL;
}

static bool set_span(vlp_span *out, vlp_piece *piece, const field *found) {
    if (!found->doubled) {
        *out = (vlp_span){found->text, (uint32_t)found->length, 0};
        return true;
    }
    if (piece->arena_capacity < (int64_t)piece->size &&
        vlp_grow(&piece->arena, &piece->arena_capacity, (int64_t)piece->size, 1, "names") != VLP_OK) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for names");
        return false;
    }
    *out = undouble(piece, found);
    return true;
}

/* Splits a record into fields and stores the selected ones in `triple`. Returns the number of fields, 0
 * where the piece has failed. */
static int32_t split_record(vlp_span triple[3], vlp_piece *piece, int64_t line, cursor *text,
                            const vlp_table_layout *layout) {
    bool more = true;
    for (int32_t count = 1;; count++) {
        field found;
        const char *fault = next_field(&found, &more, text, layout);
        if (fault) {
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, line, "%s", fault);
            return 0;
        }
        for (int i = 0; i < 3; i++)
            if (layout->columns[i] == count && !set_span(&triple[i], piece, &found)) return 0;
        if (!more) return count;
    }
}

/* The same for a line without quotes, [line, end). */
static int32_t split_line(vlp_span triple[3], const char *line, const char *end,
                          const vlp_table_layout *layout) {
    int32_t count = 1;
    for (const char *start = line;; count++) {
        const char *stop = memchr(start, layout->separator, (size_t)(end - start));
        if (!stop) stop = end;
        for (int i = 0; i < 3; i++)
            if (layout->columns[i] == count) triple[i] = (vlp_span){start, (uint32_t)(stop - start), 0};
        if (stop == end) return count;
        start = stop + 1;
    }
}

static const char *separator_title(char separator) {
    return separator == '\t' ? "tabs" : separator == ',' ? "commas" : "the separator";
}

static bool add_fields(vlp_piece *piece, int64_t line, vlp_span triple[3], int32_t fields,
                       const vlp_table_layout *layout, int32_t needed) {
    if (fields < needed || (layout->exact && fields != needed)) {
        vlp_piece_fail(
            piece, VLP_ERROR_FORMAT, line,
            "%d field%s where %s%d are needed (head, relation, tail, separated by %s)%s", fields,
            fields == 1 ? "" : "s", layout->exact ? "" : "at least ", needed,
            separator_title(layout->separator),
            layout->exact && fields > needed ? "; an import takes any columns, by name or number" : "");
        return false;
    }
    for (int i = 0; i < 3; i++) {
        const char *fault = name_fault(triple[i].text, triple[i].length);
        if (fault) {
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, line, "%s (the %s)", fault, column_names[i]);
            return false;
        }
        triple[i].hash = vlp_name_hash(triple[i].text, triple[i].length);
    }
    return vlp_piece_add(piece, triple);
}

/* Lines whose fields are not in quotes. valid: the end of the valid UTF-8. */
static void parse_lines(vlp_piece *piece, const char *valid, const vlp_table_layout *layout,
                        int32_t needed) {
    const char *end = piece->text + piece->size;
    int64_t number = 0;
    for (const char *line = piece->text, *stop; line < end; line = stop + 1, number++) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        if (stop > valid) {
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, number, "invalid UTF-8");
            return;
        }
        vlp_span triple[3] = {{0}};
        const char *last = stop > line && stop[-1] == '\r' ? stop - 1 : stop;
        int32_t fields = split_line(triple, line, last, layout);
        if (!add_fields(piece, number, triple, fields, layout, needed)) return;
    }
}

static void parse_records(vlp_piece *piece, const char *valid, const vlp_table_layout *layout,
                          int32_t needed) {
    int64_t line = 0;
    for (cursor text = {piece->text, piece->text + piece->size}; text.at < text.end;) {
        const char *start = text.at;
        vlp_span triple[3] = {{0}};
        int32_t fields = split_record(triple, piece, line, &text, layout);
        if (fields == 0) return;
        if (text.at > valid) {
            line += vlp_count_newlines(start, (size_t)(valid - start));
            vlp_piece_fail(piece, VLP_ERROR_FORMAT, line, "invalid UTF-8");
            return;
        }
        if (!add_fields(piece, line, triple, fields, layout, needed)) return;
        line += vlp_count_newlines(start, (size_t)(text.at - start));
    }
}

void vlp_parse_table(vlp_piece *piece, const void *settings) {
    const vlp_table_layout *layout = settings;
    int32_t needed = 0;
    for (int i = 0; i < 3; i++)
        if (layout->columns[i] > needed) needed = layout->columns[i];
    const char *valid = piece->text + vlp_utf8_valid_prefix(piece->text, piece->size);
    if (layout->quoted)
        parse_records(piece, valid, layout, needed);
    else
        parse_lines(piece, valid, layout, needed);
}

/* ---- The layout ---------------------------------------------------------------------------------- */

/* Names by which a header is recognized, in lower case. */
static const char *const known_names[3][9] = {
    {"head", "h", "subject", "subj", "s", "source", "from", ":start_id", NULL},
    {"relation", "r", "predicate", "pred", "p", "property", "rel", ":type", NULL},
    {"tail", "t", "object", "obj", "o", "target", "to", ":end_id", NULL},
};

/* Whether a field is a text, with or without regard to case. */
static bool is_text(const vlp_span *found, const char *text, bool any_case) {
    size_t length = strlen(text);
    if (found->length != length) return false;
    return any_case ? strncasecmp(found->text, text, length) == 0
                    : memcmp(found->text, text, length) == 0;
}

enum { HEADER_COLUMNS = 1000 };

/* The fields of a header. */
typedef struct header {
    vlp_span fields[HEADER_COLUMNS];
    int32_t count;
    vlp_piece arena; /* of fields with doubled quotes */
} header;

/* The fields of the first record. False without one of at most HEADER_COLUMNS fields. */
static bool read_header(header *out, const char *text, size_t size, const vlp_table_layout *layout) {
    out->count = 0;
    out->arena = (vlp_piece){.text = text, .size = size};
    cursor from = {text, text + size};
    for (bool more = size > 0; more;) {
        field found;
        if (out->count == HEADER_COLUMNS || next_field(&found, &more, &from, layout)) return false;
        if (!set_span(&out->fields[out->count++], &out->arena, &found)) return false;
    }
    return out->count > 0;
}

/* The columns of a header that has one name of each list, once; false for any other. */
static bool recognize(int32_t columns[3], const header *names) {
    for (int i = 0; i < 3; i++) {
        columns[i] = 0;
        for (int32_t column = 0; column < names->count; column++)
            for (const char *const *known = known_names[i]; *known; known++) {
                if (!is_text(&names->fields[column], *known, true)) continue;
                if (columns[i] > 0) return false;
                columns[i] = column + 1;
            }
        if (columns[i] == 0) return false;
    }
    return true;
}

/* The header's columns as a text for a message. */
static void list_columns(char *out, size_t size, const header *names) {
    size_t used = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < names->count && used < size; i++) {
        int length = names->fields[i].length < 40 ? (int)names->fields[i].length : 40;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", i ? ", " : "", length,
                                 names->fields[i].text);
    }
}

static vlp_status find_column(int32_t *column, const char *file, const char *name, const header *names) {
    *column = 0;
    for (int32_t i = 0; i < names->count; i++) {
        if (!is_text(&names->fields[i], name, false)) continue;
        if (*column > 0)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s:1: columns %d and %d are both named '%.80s'; use the number of one",
                            file, *column, i + 1, name);
        *column = i + 1;
    }
    if (*column > 0) return VLP_OK;
    char known[240];
    list_columns(known, sizeof known, names);
    return vlp_fail(VLP_ERROR_FORMAT, "%s:1: there is no column '%.80s'; the columns are %s", file, name,
                    known);
}

static vlp_status choose_columns(vlp_table_layout *layout, const char *name, const header *names,
                                 const vlp_file_options *file) {
    for (int i = 0; i < 3; i++)
        if (file->column_names[i])
            VLP_TRY(find_column(&layout->columns[i], name, file->column_names[i], names));
    for (int i = 1; i < 3; i++)
        for (int j = 0; j < i; j++)
            if (layout->columns[i] == layout->columns[j])
                return vlp_fail(VLP_ERROR_FORMAT, "%s:1: column %d is chosen for both the %s and the %s",
                                name, layout->columns[i], column_names[j], column_names[i]);
    return VLP_OK;
}

vlp_status vlp_table_plan(vlp_table_layout *out, size_t *header_size, const vlp_table_start *start,
                          const vlp_file_options *file, vlp_format format) {
    const char *name = start->name, *text = start->text;
    size_t size = start->size;
    bool chosen = false, named = false;
    *out = format == VLP_FORMAT_CSV ? vlp_csv_layout : vlp_tsv_layout;
    if (file->separator) out->separator = file->separator;
    for (int i = 0; i < 3; i++) {
        named |= file->column_names[i] != NULL;
        chosen |= file->columns[i] > 0 || file->column_names[i];
        if (file->columns[i] > 0) out->columns[i] = file->columns[i];
    }
    out->exact = !chosen;
    *header_size = 0;
    if (size == 0) return VLP_OK;
    const char *stop = vlp_record_end(text, text, text + size, out->quoted);
    if (!stop && start->ended) stop = text + size;
    bool asked = named || file->header;
    if (!stop && asked)
        return vlp_fail(VLP_ERROR_FORMAT, "%s:1: the first row, the header, is longer than %d KiB", name,
                        VLP_PEEK >> 10);
    if (!stop || (!asked && (chosen || format != VLP_FORMAT_CSV))) return VLP_OK;
    header *names = vlp_alloc(1, sizeof *names);
    if (!names) return vlp_fail_memory("a header");
    vlp_status status = VLP_OK;
    bool whole = read_header(names, text, (size_t)(stop - text), out);
    if (named && !whole)
        status = vlp_fail(VLP_ERROR_FORMAT, "%s:1: the first row cannot be read as a header", name);
    else if (named)
        status = choose_columns(out, name, names, file);
    else if (whole && !chosen && format == VLP_FORMAT_CSV) {
        int32_t columns[3];
        if (recognize(columns, names)) {
            memcpy(out->columns, columns, sizeof columns);
            out->exact = false;
            asked = true;
        }
    }
    vlp_piece_free(&names->arena);
    vlp_free(names);
    if (asked) *header_size = (size_t)(stop - text);
    return status;
}
