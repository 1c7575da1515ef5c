#include "graph/rdf_names.h"

#include <string.h>

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

static char *put(char *out, vlp_text text) {
    if (text.size > 0) memcpy(out, text.bytes, text.size);
    return out + text.size;
}

bool vlp_rdf_add(vlp_span *out, vlp_piece *piece, const vlp_text *parts, int count) {
    size_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].size;
    char *at = begin_name(piece, length);
    if (!at) return false;
    for (int i = 0; i < count; i++) at = put(at, parts[i]);
    *out = end_name(piece, length);
    return true;
}

void vlp_rdf_point(vlp_span *spans, int64_t count, const vlp_piece *piece, int64_t *at) {
    for (int64_t i = 0; i < count; i++) {
        spans[i].text = piece->arena + *at;
        *at += spans[i].length;
    }
}

bool vlp_rdf_starts_label(const char *label, size_t size) {
    static const char *const inner[] = {"-", ".", "\xc2\xb7", "\xe2\x80\xbf", "\xe2\x81\x80"};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        size_t length = strlen(inner[i]);
        if (size >= length && memcmp(label, inner[i], length) == 0) return false;
    }
    /* U+0300 to U+036F */
    bool combining = size >= 2 && ((unsigned char)label[0] == 0xcc ||
                                   ((unsigned char)label[0] == 0xcd && (unsigned char)label[1] < 0xb0));
    return size > 0 && !combining;
}

/* ---- Literals ------------------------------------------------------------------------------------ */

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

/* "x" and "x"^^xsd:string are the same literal (RDF 1.1 Concepts, 3.3) and get the same name. */
static bool is_string_type(vlp_text datatype) {
    static const char string[] = "http://www.w3.org/2001/XMLSchema#string";
    return datatype.size == sizeof string - 1 && memcmp(datatype.bytes, string, sizeof string - 1) == 0;
}

bool vlp_rdf_add_literal(vlp_span *out, vlp_piece *piece, vlp_text text, vlp_text datatype,
                         vlp_text language) {
    if (is_string_type(datatype)) datatype.size = 0;
    size_t spelled = spelled_length(text.bytes, text.size);
    size_t length = spelled + 2;
    if (language.size > 0) length += 1 + language.size;
    if (datatype.size > 0) length += 4 + datatype.size;
    char *at = begin_name(piece, length);
    if (!at) return false;
    *at++ = '"';
    at = spelled == text.size ? put(at, text) : spell(at, text.bytes, text.size);
    *at++ = '"';
    if (language.size > 0) {
        *at++ = '@';
        at = put(at, language);
    }
    if (datatype.size > 0) {
        at = put(at, (vlp_text){"^^<", 3});
        at = put(at, datatype);
        *at++ = '>';
    }
    assert(at == piece->arena + piece->arena_size + length);
    *out = end_name(piece, length);
    return true;
}
