#include "graph/turtle_text.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Bytes that are looked at ahead: three quotes, or a full stop and the byte behind it. */
enum { BUFFER = 1 << 16, AHEAD = 3 };

vlp_status vlp_turtle_text_start(vlp_turtle_text *text, vlp_source *source) {
    *text = (vlp_turtle_text){.source = source, .first = true};
    text->buffer = vlp_alloc(BUFFER, 1);
    return text->buffer ? VLP_OK : vlp_fail_memory("a reader");
}

void vlp_turtle_text_free(vlp_turtle_text *text) {
    vlp_free(text->buffer);
}

static int fail(vlp_turtle_text *text, const char *cause) {
    text->status = VLP_ERROR_FORMAT;
    snprintf(text->error, sizeof text->error, "%s", cause);
    return -1;
}

/* Bytes of the buffer that are valid UTF-8. At most 3 bytes of a character that is not complete yet
 * follow. */
static bool check_utf8(vlp_turtle_text *text) {
    size_t valid = vlp_utf8_valid_prefix(text->buffer, text->filled);
    if (valid == text->filled) return true;
    if (!text->ended && text->filled - valid < 4) return true; /* checked again with what follows */
    /* The line is that of the wrong byte. */
    text->line += text->newline + vlp_count_newlines(text->buffer + text->at, valid - text->at);
    text->newline = false;
    fail(text, "invalid UTF-8");
    return false;
}

static bool refill(vlp_turtle_text *text) {
    size_t left = text->filled - text->at, got = 0;
    memmove(text->buffer, text->buffer + text->at, left);
    text->at = 0;
    text->filled = left;
    size_t wanted = BUFFER - left;
    text->status = vlp_source_read(text->source, text->buffer + left, wanted, &got);
    if (text->status != VLP_OK) return false;
    text->filled += got;
    text->ended = got < wanted;
    if (text->first) text->at = vlp_bom_length(text->buffer, text->filled);
    text->first = false;
    return check_utf8(text);
}

/* The byte at a distance from the next one; -1 behind the end. */
static int peek(const vlp_turtle_text *text, size_t distance) {
    size_t at = text->at + distance;
    return at < text->filled ? (unsigned char)text->buffer[at] : -1;
}

static bool is_digit(int byte) {
    return byte >= '0' && byte <= '9';
}

/* The bytes of prefixed names, keywords, labels and language tags, but the full stop. */
static bool is_name(int byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || is_digit(byte) ||
           byte == '_' || byte == '-' || byte == ':' || byte == '%' || byte == '\\' || byte >= 0x80;
}

/* Whether the full stop that comes next belongs to the name or number before it. */
static bool stop_continues(const vlp_turtle_text *text) {
    int next = peek(text, 1);
    if (text->place == VLP_TURTLE_NUMBER) return is_digit(next) || next == 'e' || next == 'E';
    return is_name(next) || next == '.';
}

static void begin_literal(vlp_turtle_text *text, int quote) {
    bool three = peek(text, 1) == quote && peek(text, 2) == quote;
    text->quote = (char)quote;
    text->place = three ? VLP_TURTLE_LONG : VLP_TURTLE_SHORT;
    text->as_is = three ? 2 : 0;
}

/* The place behind a byte that starts a token, or lies between two. */
static void begin_token(vlp_turtle_text *text, int byte) {
    if (byte == '_' && peek(text, 1) == ':')
        text->place = VLP_TURTLE_LABEL;
    else if (is_digit(byte) || ((byte == '+' || byte == '-' || byte == '.') && is_digit(peek(text, 1))))
        text->place = VLP_TURTLE_NUMBER;
    else if (is_name(byte) || byte == '@')
        text->place = VLP_TURTLE_NAME;
    else if (byte == '<')
        text->place = VLP_TURTLE_IRI;
    else if (byte == '#')
        text->place = VLP_TURTLE_COMMENT;
    else if (byte == '"' || byte == '\'')
        begin_literal(text, byte);
    if (byte == '\\') text->as_is = 1;
    if (byte == '[' || byte == '(' || byte == '{') text->depth++;
    if (byte == ']' || byte == ')' || byte == '}') text->depth--;
}

/* Follows a byte. Returns the byte that has to be given before it, or 0. */
static int follow(vlp_turtle_text *text, int byte) {
    switch (text->place) {
    case VLP_TURTLE_NUMBER:
    case VLP_TURTLE_NAME:
        if (byte == '.' && !stop_continues(text)) {
            text->place = VLP_TURTLE_BETWEEN;
            return ' ';
        }
        if (byte == '\\') text->as_is = 1;
        if (byte == '.' || is_name(byte)) return 0;
        if (text->place == VLP_TURTLE_NUMBER && (byte == '+' || byte == '-')) return 0;
        text->place = VLP_TURTLE_BETWEEN;
        begin_token(text, byte);
        return 0;
    case VLP_TURTLE_BETWEEN:
        begin_token(text, byte);
        return 0;
    case VLP_TURTLE_LABEL: /* the colon */
        text->marking = true;
        text->place = VLP_TURTLE_NAME;
        return 0;
    case VLP_TURTLE_IRI:
        if (byte == '>') text->place = VLP_TURTLE_BETWEEN;
        return 0;
    case VLP_TURTLE_COMMENT:
        if (byte == '\n' || byte == '\r') text->place = VLP_TURTLE_BETWEEN;
        return 0;
    case VLP_TURTLE_SHORT:
        if (byte == '\\') text->as_is = 1;
        if (byte == text->quote) text->place = VLP_TURTLE_BETWEEN;
        return 0;
    case VLP_TURTLE_LONG:
        if (byte == '\\') text->as_is = 1;
        if (byte != text->quote) return 0;
        if (peek(text, 1) != byte || peek(text, 2) != byte) return '\\';
        text->place = VLP_TURTLE_BETWEEN;
        text->as_is = 2;
        return 0;
    }
    return 0;
}

int vlp_turtle_text_next(vlp_turtle_text *text) {
    if (text->status != VLP_OK) return -1;
    if (text->marking) {
        text->marking = false;
        return VLP_TURTLE_BLANK;
    }
    if (text->filled - text->at < AHEAD && !text->ended && !refill(text)) return -1;
    if (text->at == text->filled) return -1;
    if (++text->pending > VLP_TURTLE_LONGEST)
        return fail(text, "a statement or comment of more than 64 MiB; is a quote missing?");
    int byte = (unsigned char)text->buffer[text->at];
    if (byte == '\0') return fail(text, "a zero byte");
    if (text->as_is > 0) {
        text->as_is--;
    } else if (!text->prefixed) {
        int before = follow(text, byte);
        text->prefixed = before != 0;
        if (before) return before;
    }
    text->prefixed = false;
    if (text->depth > VLP_TURTLE_DEPTH) return fail(text, "brackets that are nested too deeply");
    text->line += text->newline;
    text->newline = byte == '\n';
    text->at++;
    return byte;
}
