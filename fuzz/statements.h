/* N-Triples and N-Quads: a reference parser by the grammar, and the checks of their targets. */
#ifndef VLP_FUZZ_STATEMENTS_H
#define VLP_FUZZ_STATEMENTS_H

#include "lines.h"

UNCOUNTED_BEGIN

/* ---- The grammar (RDF 1.1 N-Triples, 7), with the erratum that leaves the colon out of labels -------
 */

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* A growing name. */
typedef struct buffer {
    char *bytes;
    size_t length, capacity;
} buffer;

static void append(buffer *name, const void *bytes, size_t length) {
    if (name->length + length > name->capacity) {
        name->capacity = 2 * (name->length + length);
        name->bytes = realloc(name->bytes, name->capacity);
        REQUIRE(name->bytes != NULL);
    }
    memcpy(name->bytes + name->length, bytes, length);
    name->length += length;
}

static void append_code(buffer *name, uint32_t code) {
    uint8_t bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
    static const uint8_t marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (uint8_t)(marks[length] | code);
    append(name, bytes, length);
}

static bool take(cursor *c, const char *token) {
    size_t length = strlen(token);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, token, length) != 0) return false;
    c->at += length;
    return true;
}

static bool take_character(cursor *c, uint32_t *code) {
    size_t length = naive_character(code, c->at, (size_t)(c->end - c->at));
    c->at += length;
    return length > 0;
}

static void take_blanks(cursor *c) {
    while (take(c, " ") || take(c, "\t")) continue;
}

/* UCHAR, after its backslash. */
static bool take_uchar(cursor *c, uint32_t *code) {
    int digits = take(c, "u") ? 4 : take(c, "U") ? 8 : 0;
    if (digits == 0) return false;
    *code = 0;
    for (int i = 0; i < digits; i++, c->at++) {
        static const char known[] = "0123456789abcdefABCDEF";
        const char *digit = c->at < c->end && *c->at ? strchr(known, *c->at) : NULL;
        if (!digit) return false;
        uint32_t value = (uint32_t)(digit - known);
        *code = *code * 16 + (value < 16 ? value : value - 6);
    }
    return *code <= 0x10ffff && !(*code >= 0xd800 && *code <= 0xdfff);
}

static bool in_iri(uint32_t code) {
    return code > 0x20 && code != 0x7f && (code > 0x7f || !strchr("<>\"{}|^`\\", (int)code));
}

static bool is_letter(uint32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

static bool is_digit(uint32_t code) {
    return code >= '0' && code <= '9';
}

/* IRIREF with a scheme, unescaped. */
static bool take_iri(cursor *c, buffer *name) {
    if (!take(c, "<")) return false;
    const uint8_t *scheme = c->at;
    while (c->at < c->end &&
           (is_letter(*c->at) ||
            (c->at > scheme && (is_digit(*c->at) || *c->at == '+' || *c->at == '-' || *c->at == '.'))))
        c->at++;
    if (c->at == scheme || !take(c, ":")) return false;
    append(name, scheme, (size_t)(c->at - scheme));
    while (!take(c, ">")) {
        uint32_t code;
        if (!(take(c, "\\") ? take_uchar(c, &code) : take_character(c, &code)) || !in_iri(code))
            return false;
        append_code(name, code);
    }
    return true;
}

/* PN_CHARS. */
static bool in_label(uint32_t code) {
    static const uint32_t ranges[][2] = {
        {'a', 'z'},       {'A', 'Z'},       {'0', '9'},         {'_', '_'},       {'-', '-'},
        {0xb7, 0xb7},     {0xc0, 0xd6},     {0xd8, 0xf6},       {0xf8, 0x37d},    {0x37f, 0x1fff},
        {0x200c, 0x200d}, {0x203f, 0x2040}, {0x2070, 0x218f},   {0x2c00, 0x2fef}, {0x3001, 0xd7ff},
        {0xf900, 0xfdcf}, {0xfdf0, 0xfffd}, {0x10000, 0xeffff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

/* PN_CHARS_U or a digit. */
static bool starts_label(uint32_t code) {
    return in_label(code) && code != '-' && code != 0xb7 && !(code >= 0x300 && code <= 0x36f) &&
           code != 0x203f && code != 0x2040;
}

static bool take_blank_node(cursor *c, buffer *name) {
    if (!take(c, "_:")) return false;
    const uint8_t *start = c->at;
    for (uint32_t code;;) {
        const uint8_t *before = c->at;
        if (take_character(c, &code) && (in_label(code) || code == '.')) continue;
        c->at = before;
        break;
    }
    while (c->at > start && c->at[-1] == '.') c->at--;
    uint32_t first;
    if (c->at == start || !naive_character(&first, start, (size_t)(c->at - start)) ||
        !starts_label(first))
        return false;
    append(name, "_:", 2);
    append(name, start, (size_t)(c->at - start));
    return true;
}

/* A character of a literal, escaped as in names. */
static void append_spelled(buffer *name, uint32_t code) {
    static const char characters[] = "\t\n\r\b\f\"\\", letters[] = "tnrbf\"\\";
    const char *known = code > 0 && code < 0x80 ? strchr(characters, (int)code) : NULL;
    char text[8];
    if (known)
        append(name, (char[]){'\\', letters[known - characters]}, 2);
    else if (naive_control(code))
        append(name, text, (size_t)snprintf(text, sizeof text, "\\u%04X", code));
    else
        append_code(name, code);
}

static bool take_literal_character(cursor *c, uint32_t *code) {
    static const char letters[] = "tbnrf\"'\\", characters[] = "\t\b\n\r\f\"'\\";
    if (!take(c, "\\")) return take_character(c, code) && *code != '\r' && *code != '\0';
    const char *known = c->at < c->end && *c->at ? strchr(letters, *c->at) : NULL;
    if (!known) return take_uchar(c, code);
    c->at++;
    *code = (uint8_t)characters[known - letters];
    return true;
}

static bool take_language(cursor *c, buffer *name) {
    const uint8_t *start = c->at;
    for (bool first = true; first || take(c, "-"); first = false) {
        const uint8_t *part = c->at;
        while (c->at < c->end && (is_letter(*c->at) || (!first && is_digit(*c->at)))) c->at++;
        if (c->at == part) return false;
    }
    append(name, "@", 1);
    append(name, start, (size_t)(c->at - start));
    return true;
}

static bool take_literal(cursor *c, buffer *name) {
    static const char string[] = "^^<http://www.w3.org/2001/XMLSchema#string>";
    if (!take(c, "\"")) return false;
    append(name, "\"", 1);
    while (!take(c, "\"")) {
        uint32_t code;
        if (!take_literal_character(c, &code)) return false;
        append_spelled(name, code);
    }
    append(name, "\"", 1);
    if (take(c, "@")) return take_language(c, name);
    if (!take(c, "^^")) return true;
    size_t plain = name->length;
    append(name, "^^<", 3);
    if (!take_iri(c, name)) return false;
    append(name, ">", 1);
    bool is_string = name->length - plain == sizeof string - 1 &&
                     memcmp(name->bytes + plain, string, sizeof string - 1) == 0;
    if (is_string) name->length = plain;
    return true;
}

static bool take_term(cursor *c, buffer *name) {
    if (c->at < c->end && *c->at == '<') return take_iri(c, name);
    if (c->at < c->end && *c->at == '_') return take_blank_node(c, name);
    return take_literal(c, name);
}

/* The name of a graph. It is dropped: of the characters of a label only the first is checked, for being
 * one that stands only inside of labels. */
static bool take_graph(cursor *c, buffer *name) {
    if (c->at < c->end && *c->at == '<') return take_iri(c, name);
    if (!take(c, "_:")) return false;
    const uint8_t *start = c->at;
    while (c->at < c->end && (*c->at >= 0x80 || in_label(*c->at) || *c->at == '.')) c->at++;
    while (c->at > start && c->at[-1] == '.') c->at--;
    uint32_t first;
    return c->at > start && naive_character(&first, start, (size_t)(c->at - start)) && first != '.' &&
           (!in_label(first) || starts_label(first));
}

/* triple? comment?; *statement is whether there is a triple; graphs: NULL for N-Triples. */
static bool take_line(buffer names[3], bool *statement, int64_t *graphs, cursor c) {
    if (memchr(c.at, '\0', (size_t)(c.end - c.at)) || memchr(c.at, '\r', (size_t)(c.end - c.at)))
        return false;
    for (int i = 0; i < 3; i++) names[i].length = 0;
    take_blanks(&c);
    *statement = c.at < c.end && *c.at != '#';
    if (!*statement) return true;
    if (!take_term(&c, &names[0]) || names[0].bytes[0] == '"') return false;
    take_blanks(&c);
    if (c.at == c.end || *c.at != '<' || !take_term(&c, &names[1])) return false;
    take_blanks(&c);
    if (!take_term(&c, &names[2])) return false;
    take_blanks(&c);
    if (graphs && c.at < c.end && *c.at != '.') {
        static buffer graph;
        graph.length = 0;
        if (!take_graph(&c, &graph)) return false;
        take_blanks(&c);
        ++*graphs;
    }
    if (!take(&c, ".")) return false;
    take_blanks(&c);
    return c.at == c.end || *c.at == '#';
}

/* ---- The checks ---------------------------------------------------------------------------------- */

static void check_grammar(const vlp_piece *whole, const uint8_t *data, size_t size, bool quads) {
    static buffer names[3];
    int64_t number = 0, spans = 0, graphs = 0, with = 0;
    bool good = true;
    for (size_t at = 0, next; at < size; at += next, number++) {
        size_t length = naive_line(data + at, size - at, &next);
        bool statement = false;
        good = naive_utf8(data + at, length);
        while (length > 0 && data[at + length - 1] == '\r') length--;
        good = good && take_line(names, &statement, quads ? &with : NULL,
                                 (cursor){data + at, data + at + length});
        if (!good) break;
        graphs = with;
        for (int i = 0; statement && i < 3; i++, spans++) {
            REQUIRE(whole->span_count > spans);
            REQUIRE(same_span(&whole->spans[spans], names[i].bytes, names[i].length));
        }
    }
    REQUIRE(good == (whole->status == VLP_OK));
    REQUIRE(whole->span_count == spans);
    if (good) REQUIRE(whole->graph_names == graphs);
    if (!good) REQUIRE(whole->error_line == number);
}

/* Writing as N-Triples and reading again gives the same. */
static void check_round_trip(const vlp_record_format *format, const vlp_piece *whole) {
    static buffer text;
    text.length = 0;
    for (int64_t i = 0; i < whole->span_count; i++) {
        const vlp_span *span = &whole->spans[i];
        bool iri = span->text[0] != '"' && span->text[0] != '_';
        if (iri) append(&text, "<", 1);
        append(&text, span->text, span->length);
        if (iri) append(&text, ">", 1);
        append(&text, i % 3 < 2 ? " " : " .\n", i % 3 < 2 ? 1 : 3);
        for (uint32_t j = 0; j < span->length; j++)
            REQUIRE(!naive_control((unsigned char)span->text[j]));
    }
    if (text.length == 0) return;
    vlp_piece again = parse_piece(format, text.bytes, text.length);
    REQUIRE(again.status == VLP_OK);
    REQUIRE(again.span_count == whole->span_count);
    for (int64_t i = 0; i < again.span_count; i++)
        REQUIRE(same_span(&again.spans[i], whole->spans[i].text, whole->spans[i].length));
    vlp_piece_free(&again);
}

static void check_statements(const vlp_record_format *format, const uint8_t *data, size_t size,
                             bool quads) {
    vlp_piece whole = parse_piece(format, data, size);
    check_grammar(&whole, data, size, quads);
    if (whole.status == VLP_OK) check_round_trip(format, &whole);
    check_cut(format, &whole);
    if (one_in(data, size, 1 << 14)) check_reader(format, &whole);
    vlp_piece_free(&whole);
}

UNCOUNTED_END

#endif
