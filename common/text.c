/* Decoding UTF-8, display widths, escaping for display. */
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t text_next(const char *text, int *length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    int bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    *length = 1;
    if (bytes == 1) return first;
    if (bytes == 0) return 0xfffd;
    uint32_t value = first & (0x7fu >> bytes);
    for (int i = 1; i < bytes; i++) {
        unsigned char byte =
            (unsigned char)text[i]; /* the terminator is not a continuation byte either */
        if (byte >> 6 != 2) return 0xfffd;
        value = value << 6 | (byte & 0x3fu);
    }
    if (value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0xfffd;
    *length = bytes;
    return value;
}

int text_columns_of(uint32_t value) {
    if ((value >= 0x300 && value < 0x370) || value == 0x200d || (value >= 0xfe00 && value < 0xfe10))
        return 0; /* combining marks, joiner, variation selectors */
    bool wide = (value >= 0x1100 && value < 0x1160) || (value >= 0x2e80 && value < 0xd7a4) ||
                (value >= 0xf900 && value < 0xfb00) || (value >= 0xff00 && value < 0xff61) ||
                (value >= 0x1f300 && value < 0x1fb00) || (value >= 0x20000 && value < 0x3fffe);
    return wide ? 2 : 1;
}

static bool is_plain(uint32_t value, const char *text, int length) {
    bool control = value < 0x20 || (value >= 0x7f && value < 0xa0);
    bool invalid = length == 1 && (unsigned char)text[0] >= 0x80;
    return !control && !invalid;
}

const char *text_shown(const char *text) {
    static char *copies[8];
    static int next;
    bool plain = true;
    int length;
    for (const char *at = text; plain && *at; at += length) {
        uint32_t value = text_next(at, &length);
        plain = is_plain(value, at, length);
    }
    if (plain) return text;
    enum { LONGEST = 6 }; /* bytes of an escape, for one byte of text */
    char **copy = &copies[next++ % 8];
    free(*copy);
    *copy = malloc(LONGEST * strlen(text) + 1);
    if (!*copy) return "?";
    char *out = *copy;
    for (const char *at = text; *at; at += length) {
        uint32_t value = text_next(at, &length);
        if (is_plain(value, at, length))
            out = mempcpy(out, at, (size_t)length);
        else if (length == 1 && (unsigned char)*at >= 0x80)
            out += sprintf(out, "\\x%02x", (unsigned char)*at);
        else
            out += sprintf(out, "\\u%04x", value);
    }
    *out = '\0';
    return *copy;
}

const char *text_field(const char *text) {
    return isatty(STDOUT_FILENO) ? text_shown(text) : text;
}

int text_columns(const char *text) {
    int columns = 0;
    for (int length; *text; text += length) columns += text_columns_of(text_next(text, &length));
    return columns;
}

void text_print(const char *text, int columns) {
    int missing = columns - text_columns(text);
    printf("%s%*s", text, missing > 0 ? missing : 0, "");
}
