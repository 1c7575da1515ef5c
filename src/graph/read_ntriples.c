/* N-Triples: the syntax of lines is checked here, terms with escapes are decoded by serd.
 *
 * serd parses N-Triples as a dialect of Turtle: it accepts statements over several lines, several
 * statements per line, prefixed names, `a`, `;`, `[ ]`, `( )`, PREFIX and GRAPH, skips NUL bytes and
 * accepts escapes for invalid code points. As pieces are divided at line ends, the result would depend
 * on the number of threads. Therefore the syntax of every line is checked here first, byte by byte,
 * and serd reads only lines that are one complete statement each. serd checks the non-ASCII characters
 * of blank node labels and decodes escapes.
 *
 * A statement of three IRIs without escapes needs no decoding: its names are spans of the text. Most
 * statements are of this kind and bypass serd.
 *
 * Invariant: serd reads only lines of the form `term term term .`, so its k-th statement is the k-th
 * line passed to it, and an error refers to that line. */
#include <serd/serd.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/reader.h"

/* ---- The syntax of lines ------------------------------------------------------------------------- */

/* The contexts in which a byte is allowed unescaped. serd checks blank node labels and non-ASCII text.
 */
enum { IN_IRI = 1, IN_LITERAL = 2, IN_COMMENT = 4, IN_LABEL = 8 };
enum {
    TEXT = IN_LITERAL | IN_COMMENT,
    NAME = IN_IRI | TEXT,
    LETTER = IN_LABEL | NAME,
};

static const uint8_t places[256] = {
    [0x01 ... 0x09] = TEXT, [0x0b ... 0x0c] = TEXT,
    [0x0e ... 0x20] = TEXT, ['!'] = NAME,
    ['"'] = IN_COMMENT,     ['#' ... ','] = NAME,
    ['-' ... '.'] = LETTER, ['/'] = NAME,
    ['0' ... '9'] = LETTER, [':' ... ';'] = NAME,
    ['<'] = TEXT,           ['='] = NAME,
    ['>'] = TEXT,           ['?' ... '@'] = NAME,
    ['A' ... 'Z'] = LETTER, ['['] = NAME,
    ['\\'] = IN_COMMENT,    [']'] = NAME,
    ['^'] = TEXT,           ['_'] = LETTER,
    ['`'] = TEXT,           ['a' ... 'z'] = LETTER,
    ['{' ... '}'] = TEXT,   ['~'] = NAME,
    [0x7f] = TEXT,          [0x80 ... 0xff] = LETTER,
};

/* The unchecked rest of a line, without its line end. */
typedef struct scanner {
    const char *at, *end;
} scanner;

static bool next_is(const scanner *line, char byte) {
    return line->at < line->end && *line->at == byte;
}

static void skip_blanks(scanner *line) {
    while (next_is(line, ' ') || next_is(line, '\t')) line->at++;
}

static void skip_bytes(scanner *line, uint8_t place) {
    const char *at = line->at, *end = line->end;
    while (at < end && (places[(unsigned char)*at] & place)) at++;
    line->at = at;
}

static bool is_letter(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* The value of a hexadecimal digit, or -1. */
static int hexadecimal(char byte) {
    if (is_digit(byte)) return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

/* The functions below advance over a part of a line and return an error, or NULL. */

/* \uXXXX or \UXXXXXXXX, from the `u` on. */
static const char *scan_code(scanner *line, uint32_t *code) {
    int digits = *line->at++ == 'u' ? 4 : 8;
    *code = 0;
    for (; digits > 0; digits--, line->at++) {
        int value = line->at < line->end ? hexadecimal(*line->at) : -1;
        if (value < 0) return "an escape \\u needs 4 hexadecimal digits, \\U 8";
        *code = *code << 4 | (uint32_t)value;
    }
    if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return "an escape \\u or \\U that is no code point";
    return NULL;
}

static const char *scan_iri_escape(scanner *line) {
    line->at++;
    if (!next_is(line, 'u') && !next_is(line, 'U'))
        return "a backslash in an IRI that does not start \\u or \\U";
    uint32_t code;
    const char *fault = scan_code(line, &code);
    if (fault) return fault;
    /* serd accepts most of these. The characters themselves are not allowed in an IRI, and neither are
     * their escapes. */
    if (code < 0x80 && !(places[code] & IN_IRI))
        return "an escape for a character that is not allowed in an IRI";
    return NULL;
}

static const char *scan_scheme(scanner *line) {
    const char *start = line->at;
    while (line->at < line->end && (is_letter(*line->at) || is_digit(*line->at) || next_is(line, '+') ||
                                    next_is(line, '-') || next_is(line, '.')))
        line->at++;
    bool absolute = line->at > start && is_letter(*start) && next_is(line, ':');
    return absolute ? NULL
                    : "an IRI without a scheme; N-Triples has absolute IRIs only, such as http://...";
}

static const char *scan_iri(scanner *line) {
    line->at++;
    if (next_is(line, '>')) return "an empty IRI";
    const char *missing = scan_scheme(line);
    if (missing) return missing;
    for (;;) {
        skip_bytes(line, IN_IRI);
        if (line->at == line->end) return "an IRI without a closing >";
        if (*line->at != '\\') break;
        const char *fault = scan_iri_escape(line);
        if (fault) return fault;
    }
    if (*line->at == ' ') return "a space in an IRI, or no closing >";
    if (*line->at != '>') return "a character that is not allowed in an IRI";
    line->at++;
    return NULL;
}

static const char *scan_blank_node(scanner *line) {
    line->at++;
    if (!next_is(line, ':')) return "a blank node is written _:label";
    const char *start = ++line->at;
    skip_bytes(line, IN_LABEL);
    /* A label does not end with a full stop; that one ends the statement. */
    while (line->at > start && line->at[-1] == '.') line->at--;
    if (line->at == start || *start == '.' || *start == '-')
        return "the label of a blank node starts with a letter, a digit or _";
    return NULL;
}

static const char *scan_language(scanner *line) {
    line->at++;
    for (bool first = true;; first = false) {
        const char *start = line->at;
        while (line->at < line->end && (is_letter(*line->at) || (!first && is_digit(*line->at))))
            line->at++;
        if (line->at == start) return "a language tag that is not like @en or @zh-Hant";
        if (!next_is(line, '-')) return NULL;
        line->at++;
    }
}

static const char *scan_literal_escape(scanner *line) {
    line->at++;
    if (next_is(line, 'u') || next_is(line, 'U')) {
        uint32_t code;
        return scan_code(line, &code);
    }
    if (line->at == line->end || *line->at == '\0' || !strchr("tbnrf\"'\\", *line->at))
        return "a backslash in a literal that does not start an escape";
    line->at++;
    return NULL;
}

static const char *scan_literal(scanner *line) {
    line->at++;
    for (;;) {
        skip_bytes(line, IN_LITERAL);
        if (line->at == line->end) return "a literal without a closing quote";
        if (*line->at != '\\') break;
        const char *fault = scan_literal_escape(line);
        if (fault) return fault;
    }
    if (*line->at != '"') return "a NUL byte or a carriage return in a literal";
    line->at++;
    if (next_is(line, '@')) return scan_language(line);
    if (!next_is(line, '^')) return NULL;
    if (line->end - line->at < 3 || memcmp(line->at, "^^<", 3) != 0)
        return "a datatype is written ^^ and an IRI in < >";
    line->at += 2;
    return scan_iri(line);
}

/* What may follow the three terms. */
static const char *scan_end(scanner *line) {
    skip_blanks(line);
    if (!next_is(line, '.')) {
        if (next_is(line, '<') || next_is(line, '_') || next_is(line, '"'))
            return "a fourth term; a statement has three (N-Quads are not read)";
        return "no full stop after the object";
    }
    line->at++;
    skip_blanks(line);
    if (line->at < line->end && *line->at != '#')
        return "text after the full stop; a line is one statement";
    return NULL;
}

static const char *scan_statement(scanner *line) {
    const char *fault = NULL;
    if (next_is(line, '<'))
        fault = scan_iri(line);
    else if (next_is(line, '_'))
        fault = scan_blank_node(line);
    else
        fault = "a subject is an IRI in < > or a blank node _:label";
    if (fault) return fault;
    skip_blanks(line);
    fault = next_is(line, '<') ? scan_iri(line) : "a predicate is an IRI in < >";
    if (fault) return fault;
    skip_blanks(line);
    if (next_is(line, '<'))
        fault = scan_iri(line);
    else if (next_is(line, '_'))
        fault = scan_blank_node(line);
    else if (next_is(line, '"'))
        fault = scan_literal(line);
    else
        fault = "an object is an IRI in < >, a blank node _:label or a literal in \" \"";
    return fault ? fault : scan_end(line);
}

/* A complete line; *statement is whether it contains a statement. */
static const char *scan_line(scanner *line, bool *statement) {
    skip_blanks(line);
    *statement = line->at < line->end && *line->at != '#';
    const char *fault = *statement ? scan_statement(line) : NULL;
    if (fault) return fault;
    skip_bytes(line, IN_COMMENT); /* a comment or nothing */
    return line->at < line->end ? "a NUL byte or a carriage return in a comment" : NULL;
}

/* The line that starts at `start`, without its line end; `next` is where the following one starts. */
static scanner cut_line(const char *start, const char *end, const char **next) {
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    const char *stop = newline ? newline : end;
    *next = newline ? newline + 1 : end;
    while (stop > start && stop[-1] == '\r') stop--;
    return (scanner){start, stop};
}

/* A line for serd, and the index of its names. */
typedef struct hard_line {
    const char *start;
    size_t size;
    int64_t line, span;
} hard_line;

/* The lines of a piece up to the first syntax error. */
typedef struct survey {
    hard_line *hard;
    int64_t hard_count, hard_capacity;
    int64_t lines;     /* lines without a syntax error */
    const char *fault; /* the syntax error of the line after them, or NULL */
} survey;

/* The names of a statement of three IRIs without escapes, as spans of the line; false for any other
 * statement. The syntax of the line has been checked. */
static bool plain_names(vlp_span triple[3], const char *at, const char *end) {
    for (int term = 0; term < 3; term++) {
        while (*at == ' ' || *at == '\t') at++;
        if (*at != '<') return false;
        at++;
        const char *close = memchr(at, '>', (size_t)(end - at));
        if (memchr(at, '\\', (size_t)(close - at))) return false;
        triple[term] = vlp_span_make(at, (size_t)(close - at));
        at = close + 1;
    }
    return true;
}

/* Adds the names of a statement, or empty spans that serd fills later. */
static bool add_statement(vlp_piece *piece, survey *found, const char *start, const char *end) {
    vlp_span triple[3] = {{0}};
    if (plain_names(triple, start, end)) return vlp_piece_add(piece, triple);
    memset(triple, 0, sizeof triple);
    if (vlp_grow(&found->hard, &found->hard_capacity, found->hard_count + 1, sizeof *found->hard,
                 "statements") != VLP_OK) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for statements");
        return false;
    }
    found->hard[found->hard_count++] =
        (hard_line){start, (size_t)(end - start), found->lines, piece->span_count};
    return vlp_piece_add(piece, triple);
}

static survey survey_lines(vlp_piece *piece) {
    survey found = {0};
    const char *text = piece->text, *end = text + piece->size;
    const char *valid = text + vlp_utf8_valid_prefix(text, piece->size);
    for (const char *start = text, *next; start < end; start = next) {
        scanner line = cut_line(start, end, &next);
        const char *stop = line.end;
        bool statement = false;
        found.fault = stop > valid ? "invalid UTF-8" : scan_line(&line, &statement);
        if (found.fault) break;
        if (statement && !add_statement(piece, &found, start, stop)) break;
        found.lines++;
    }
    return found;
}

/* ---- Names --------------------------------------------------------------------------------------- */

/* Names are appended to the arena, which may move while it grows: the text of a span is valid only
 * after point_spans. */

static char *begin_name(vlp_piece *piece, size_t length) {
    if (length > UINT32_MAX) {
        vlp_piece_fail(piece, VLP_ERROR_FORMAT, 0, "a name of over 4 GiB");
        return NULL;
    }
    int64_t needed = piece->arena_size + (int64_t)length;
    if (needed > piece->arena_capacity &&
        vlp_grow(&piece->arena, &piece->arena_capacity, needed, 1, "names") != VLP_OK) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for names");
        return NULL;
    }
    return piece->arena + piece->arena_size;
}

static vlp_span end_name(vlp_piece *piece, size_t length) {
    vlp_span name = vlp_span_make(piece->arena + piece->arena_size, length);
    piece->arena_size += (int64_t)length;
    return name;
}

/* serd parses a blank subject labelled base, prefix or graph as a Turtle keyword; a letter is put
 * before every label to prevent that, and removed here. */
static const uint8_t blank_prefix[] = "b";

static bool add_resource(vlp_span *out, vlp_piece *piece, const SerdNode *node) {
    size_t mark = node->type == SERD_BLANK ? 2 : 0;
    size_t prefix = node->type == SERD_BLANK ? sizeof blank_prefix - 1 : 0;
    size_t length = mark + node->n_bytes - prefix;
    char *name = begin_name(piece, length);
    if (!name) return false;
    memcpy(name, "_:", mark);
    memcpy(name + mark, node->buf + prefix, node->n_bytes - prefix);
    *out = end_name(piece, length);
    return true;
}

/* The letter after the backslash of a character with a short escape, or 0. */
static char escape_letter(uint8_t byte) {
    switch (byte) {
    case '\t':
        return 't';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '"':
        return '"';
    case '\\':
        return '\\';
    default:
        return 0;
    }
}

static bool is_escaped(uint8_t byte) {
    return byte < 0x20 || byte == 0x7f || byte == '"' || byte == '\\';
}

static size_t spelled_length(const uint8_t *text, size_t size) {
    size_t length = size;
    for (size_t i = 0; i < size; i++)
        if (is_escaped(text[i])) length += escape_letter(text[i]) ? 1 : 5;
    return length;
}

static char *spell(char *out, const uint8_t *text, size_t size) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = text[i];
        if (!is_escaped(byte)) {
            *out++ = (char)byte;
            continue;
        }
        char letter = escape_letter(byte);
        *out++ = '\\';
        if (letter) {
            *out++ = letter;
            continue;
        }
        memcpy(out, "u00", 3);
        out[3] = digits[byte >> 4];
        out[4] = digits[byte & 15];
        out += 5;
    }
    return out;
}

static char *put(char *out, const void *text, size_t size) {
    memcpy(out, text, size);
    return out + size;
}

/* "x" and "x"^^xsd:string are the same literal (RDF 1.1 Concepts, 3.3) and get the same name. */
static bool is_string_type(const SerdNode *datatype) {
    static const char string[] = "http://www.w3.org/2001/XMLSchema#string";
    return datatype->n_bytes == sizeof string - 1 &&
           memcmp(datatype->buf, string, sizeof string - 1) == 0;
}

static bool add_literal(vlp_span *out, vlp_piece *piece, const SerdNode *node, const SerdNode *datatype,
                        const SerdNode *language) {
    if (datatype && is_string_type(datatype)) datatype = NULL;
    size_t text = spelled_length(node->buf, node->n_bytes);
    size_t length = text + 2;
    if (language) length += 1 + language->n_bytes;
    if (datatype) length += 4 + datatype->n_bytes;
    char *at = begin_name(piece, length);
    if (!at) return false;
    *at++ = '"';
    at = text == node->n_bytes ? put(at, node->buf, text) : spell(at, node->buf, node->n_bytes);
    *at++ = '"';
    if (language) {
        *at++ = '@';
        at = put(at, language->buf, language->n_bytes);
    }
    if (datatype) {
        at = put(at, "^^<", 3);
        at = put(at, datatype->buf, datatype->n_bytes);
        *at++ = '>';
    }
    assert(at == piece->arena + piece->arena_size + length);
    *out = end_name(piece, length);
    return true;
}

/* ---- serd ---------------------------------------------------------------------------------------- */

/* The state of parsing the lines of a piece that need serd. */
typedef struct reading {
    vlp_piece *piece;
    const survey *lines;
    int64_t fetched; /* lines passed to serd completely */
    size_t offset;   /* bytes of the next line passed to serd */
    int64_t statements;
    bool failed;
    char complaint[128]; /* the message of serd, or "" */
} reading;

/* Passes the lines to serd, one after the other. */
static size_t fetch(void *buffer, size_t size, size_t count, void *stream) {
    (void)size; /* always 1 */
    reading *this = stream;
    char *to = buffer;
    size_t given = 0;
    while (given < count && this->fetched < this->lines->hard_count) {
        const hard_line *line = &this->lines->hard[this->fetched];
        size_t left = line->size - this->offset, wanted = count - given;
        size_t taken = left < wanted ? left : wanted;
        memcpy(to + given, line->start + this->offset, taken);
        given += taken;
        this->offset += taken;
        if (this->offset == line->size &&
            given < count) { /* the line end, which the line does not include */
            to[given++] = '\n';
            this->fetched++;
            this->offset = 0;
        }
    }
    return given;
}

static int never_fails(void *stream) {
    (void)stream;
    return 0;
}

/* serd continues after some errors; the first one is reported and ends the parsing. */
static SerdStatus take_complaint(void *handle, const SerdError *error) {
    reading *this = handle;
    if (this->failed) return SERD_SUCCESS;
    this->failed = true;
    int length = vsnprintf(this->complaint, sizeof this->complaint, error->fmt, *error->args);
    if (length < 0) this->complaint[0] = '\0';
    this->complaint[strcspn(this->complaint, "\n")] = '\0';
    /* serd quotes single bytes, which may be part of a UTF-8 sequence. */
    for (char *at = this->complaint; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) *at = '?';
    return SERD_SUCCESS;
}

static SerdStatus take_statement(void *handle, SerdStatementFlags flags, const SerdNode *graph,
                                 const SerdNode *subject, const SerdNode *predicate,
                                 const SerdNode *object, const SerdNode *datatype,
                                 const SerdNode *language) {
    (void)flags;
    (void)graph;
    reading *this = handle;
    vlp_piece *piece = this->piece;
    if (this->failed || this->statements == this->lines->hard_count) return SERD_ERR_UNKNOWN;
    vlp_span *triple = piece->spans + this->lines->hard[this->statements].span;
    bool added = add_resource(&triple[0], piece, subject) && add_resource(&triple[1], piece, predicate);
    if (added && object->type == SERD_LITERAL)
        added = add_literal(&triple[2], piece, object, datatype, language);
    else if (added)
        added = add_resource(&triple[2], piece, object);
    if (!added) {
        this->failed = true;
        return SERD_ERR_UNKNOWN;
    }
    this->statements++;
    return SERD_SUCCESS;
}

/* Sets the text of the spans that serd filled, which are consecutive in the arena. */
static void point_spans(vlp_piece *piece, const survey *lines, int64_t statements) {
    int64_t at = 0;
    for (int64_t i = 0; i < statements; i++)
        for (int part = 0; part < 3; part++) {
            vlp_span *span = &piece->spans[lines->hard[i].span + part];
            span->text = piece->arena + at;
            at += span->length;
        }
}

/* Parses the lines that need serd. */
static void read_statements(vlp_piece *piece, const survey *lines) {
    enum { PAGE = 4096 };
    reading this = {.piece = piece, .lines = lines};
    SerdReader *reader = serd_reader_new(SERD_NTRIPLES, &this, NULL, NULL, NULL, take_statement, NULL);
    if (!reader) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for an N-Triples reader");
        return;
    }
    serd_reader_set_strict(reader, true);
    serd_reader_add_blank_prefix(reader, blank_prefix);
    serd_reader_set_error_sink(reader, take_complaint, &this);
    SerdStatus outcome = serd_reader_read_source(reader, fetch, never_fails, &this, NULL, PAGE);
    serd_reader_free(reader);
    point_spans(piece, lines, this.statements);
    if (outcome == SERD_SUCCESS && !this.failed && this.statements == lines->hard_count) return;
    if (piece->status == VLP_ERROR_MEMORY) return;
    /* There cannot be more statements than lines; attribute the error to the last line. */
    int64_t bad = this.statements < lines->hard_count ? this.statements : lines->hard_count - 1;
    piece->span_count = lines->hard[bad].span;
    if (piece->status != VLP_OK)
        piece->error_line = lines->hard[bad].line;
    else
        vlp_piece_fail(piece, VLP_ERROR_FORMAT, lines->hard[bad].line, "%s",
                       this.complaint[0] ? this.complaint : "not a statement of N-Triples");
}

void vlp_parse_ntriples(vlp_piece *piece, const void *settings) {
    (void)settings;
    assert(piece->span_count == 0 && piece->arena_size == 0);
    survey lines = survey_lines(piece);
    if (lines.hard_count > 0 && piece->status == VLP_OK) read_statements(piece, &lines);
    /* An error of serd precedes the first syntax error, and the first error is reported. */
    if (lines.fault && piece->status == VLP_OK)
        vlp_piece_fail(piece, VLP_ERROR_FORMAT, lines.lines, "%s", lines.fault);
    vlp_free(lines.hard);
}
