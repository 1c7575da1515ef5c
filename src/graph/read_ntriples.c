/* N-Triples and N-Quads: the syntax of lines is checked here, terms with escapes are decoded by serd.
 *
 * serd parses N-Triples as a dialect of Turtle: it accepts statements over several lines, several
 * statements per line, prefixed names, `a`, `;`, `[ ]`, `( )`, PREFIX and GRAPH, skips NUL bytes and
 * accepts escapes for invalid code points. As pieces are divided at line ends, the result would depend
 * on the number of threads. Therefore the syntax of every line is checked here first, byte by byte,
 * and serd reads only lines that are one complete statement each. serd checks the non-ASCII characters
 * of blank node labels and decodes escapes.
 *
 * The graph name of a quad is checked like a subject, counted and dropped before serd reads the line.
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
#include "graph/rdf_names.h"

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
    bool quads;             /* whether a graph name may follow the object */
    const char *object_end; /* of a statement */
    bool graph;             /* whether the statement has a graph name */
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
    if (!vlp_rdf_starts_label(start, (size_t)(line->at - start)))
        return "the label of a blank node starts with a letter, a digit or _";
    return NULL;
}

#define BAD_LANGUAGE "a language tag that is not like @en or @zh-Hant"

/* A language tag, from behind its @ on. */
static const char *scan_language(scanner *line) {
    for (bool first = true;; first = false) {
        const char *start = line->at;
        while (line->at < line->end && (is_letter(*line->at) || (!first && is_digit(*line->at))))
            line->at++;
        if (line->at == start) return BAD_LANGUAGE;
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
    if (next_is(line, '@')) {
        line->at++;
        return scan_language(line);
    }
    if (!next_is(line, '^')) return NULL;
    if (line->end - line->at < 3 || memcmp(line->at, "^^<", 3) != 0)
        return "a datatype is written ^^ and an IRI in < >";
    line->at += 2;
    return scan_iri(line);
}

static const char *scan_resource(scanner *line, const char *otherwise) {
    if (next_is(line, '<')) return scan_iri(line);
    if (next_is(line, '_')) return scan_blank_node(line);
    return otherwise;
}

/* What may follow the three terms. */
static const char *scan_end(scanner *line) {
    line->object_end = line->at;
    skip_blanks(line);
    line->graph = next_is(line, '<') || next_is(line, '_') || next_is(line, '"');
    if (line->graph) {
        if (!line->quads) return "a fourth term; a statement of N-Triples has three";
        const char *fault = scan_resource(line, "a graph name is an IRI in < > or a blank node _:label");
        if (fault) return fault;
        skip_blanks(line);
    }
    if (!next_is(line, '.'))
        return line->graph ? "no full stop after the graph name" : "no full stop after the object";
    line->at++;
    skip_blanks(line);
    if (line->at < line->end && *line->at != '#')
        return "text after the full stop; a line is one statement";
    return NULL;
}

static const char *scan_statement(scanner *line) {
    const char *fault = scan_resource(line, "a subject is an IRI in < > or a blank node _:label");
    if (fault) return fault;
    skip_blanks(line);
    fault = next_is(line, '<') ? scan_iri(line) : "a predicate is an IRI in < >";
    if (fault) return fault;
    skip_blanks(line);
    if (next_is(line, '"'))
        fault = scan_literal(line);
    else
        fault = scan_resource(line,
                              "an object is an IRI in < >, a blank node _:label or a literal in \" \"");
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
static scanner cut_line(const char *start, const char *end, const char **next, bool quads) {
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    const char *stop = newline ? newline : end;
    *next = newline ? newline + 1 : end;
    while (stop > start && stop[-1] == '\r') stop--;
    return (scanner){.at = start, .end = stop, .quads = quads};
}

const char *vlp_iri_fault(const char *text, size_t size) {
    scanner iri = {.at = text, .end = text + size};
    const char *fault = scan_scheme(&iri);
    if (fault) return fault;
    skip_bytes(&iri, IN_IRI);
    if (iri.at < iri.end) return "a character that is not allowed in an IRI";
    return vlp_utf8_valid_prefix(text, size) < size ? "invalid UTF-8" : NULL;
}

const char *vlp_language_fault(const char *text, size_t size) {
    scanner tag = {.at = text, .end = text + size};
    const char *fault = scan_language(&tag);
    return fault || tag.at == tag.end ? fault : BAD_LANGUAGE;
}

bool vlp_is_statement(const char *line, size_t size, bool quads) {
    const char *next;
    scanner scan = cut_line(line, line + size, &next, quads);
    bool statement = false;
    return vlp_utf8_valid_prefix(line, size) == size && !scan_line(&scan, &statement) && statement;
}

/* The three terms of a line for serd, and the index of their names. */
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

static survey survey_lines(vlp_piece *piece, bool quads) {
    survey found = {0};
    const char *text = piece->text, *end = text + piece->size;
    const char *valid = text + vlp_utf8_valid_prefix(text, piece->size);
    for (const char *start = text, *next; start < end; start = next) {
        scanner line = cut_line(start, end, &next, quads);
        const char *stop = line.end;
        bool statement = false;
        found.fault = stop > valid ? "invalid UTF-8" : scan_line(&line, &statement);
        if (found.fault) break;
        if (statement && !add_statement(piece, &found, start, line.object_end)) break;
        piece->graph_names += statement && line.graph;
        found.lines++;
    }
    return found;
}

/* ---- serd ---------------------------------------------------------------------------------------- */

/* serd parses a blank subject labelled base, prefix or graph as a Turtle keyword; a letter is put
 * before every label to prevent that, and removed here. */
static const uint8_t blank_prefix[] = "b";

static vlp_text text_of(const SerdNode *node) {
    return node ? (vlp_text){node->buf, node->n_bytes} : (vlp_text){NULL, 0};
}

static bool add_resource(vlp_span *out, vlp_piece *piece, const SerdNode *node) {
    if (node->type != SERD_BLANK) return vlp_rdf_add(out, piece, (vlp_text[]){text_of(node)}, 1);
    size_t prefix = sizeof blank_prefix - 1;
    const vlp_text parts[2] = {{"_:", 2}, {node->buf + prefix, node->n_bytes - prefix}};
    return vlp_rdf_add(out, piece, parts, 2);
}

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
    static const char end[3] = {' ', '.', '\n'}; /* the text stops behind the object */
    (void)size;                                  /* always 1 */
    reading *this = stream;
    char *to = buffer;
    size_t given = 0;
    while (given < count && this->fetched < this->lines->hard_count) {
        const hard_line *line = &this->lines->hard[this->fetched];
        bool inside = this->offset < line->size;
        const char *from = inside ? line->start + this->offset : end + (this->offset - line->size);
        size_t left = (inside ? line->size : line->size + sizeof end) - this->offset;
        size_t taken = left < count - given ? left : count - given;
        memcpy(to + given, from, taken);
        given += taken;
        this->offset += taken;
        if (this->offset < line->size + sizeof end) continue;
        this->fetched++;
        this->offset = 0;
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
        added = vlp_rdf_add_literal(&triple[2], piece, text_of(object), text_of(datatype),
                                    text_of(language));
    else if (added)
        added = add_resource(&triple[2], piece, object);
    if (!added) {
        this->failed = true;
        return SERD_ERR_UNKNOWN;
    }
    this->statements++;
    return SERD_SUCCESS;
}

/* Sets the text of the spans that serd filled, whose names follow each other in the arena. */
static void point_spans(vlp_piece *piece, const survey *lines, int64_t statements) {
    int64_t at = 0;
    for (int64_t i = 0; i < statements; i++)
        vlp_rdf_point(piece->spans + lines->hard[i].span, 3, piece, &at);
}

/* Parses the lines that need serd. */
static void read_statements(vlp_piece *piece, const survey *lines) {
    enum { PAGE = 4096 };
    reading this = {.piece = piece, .lines = lines};
    SerdReader *reader = serd_reader_new(SERD_NTRIPLES, &this, NULL, NULL, NULL, take_statement, NULL);
    if (!reader) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for a reader of RDF");
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
                       this.complaint[0] ? this.complaint : "not a statement");
}

static void parse(vlp_piece *piece, bool quads) {
    assert(piece->span_count == 0 && piece->arena_size == 0);
    survey lines = survey_lines(piece, quads);
    if (lines.hard_count > 0 && piece->status == VLP_OK) read_statements(piece, &lines);
    /* An error of serd precedes the first syntax error, and the first error is reported. */
    if (lines.fault && piece->status == VLP_OK)
        vlp_piece_fail(piece, VLP_ERROR_FORMAT, lines.lines, "%s", lines.fault);
    vlp_free(lines.hard);
}

void vlp_parse_ntriples(vlp_piece *piece, const void *settings) {
    (void)settings;
    parse(piece, false);
}

void vlp_parse_nquads(vlp_piece *piece, const void *settings) {
    (void)settings;
    parse(piece, true);
}
