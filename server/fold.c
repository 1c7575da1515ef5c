#include "fold.h"

#include <string.h>

#include "text.h"

static const struct {
    uint16_t from;
    char to[10];
} table[] = {
#include "fold_table.inc"
};
enum { ROWS = sizeof table / sizeof *table };

/* The replacement of a character, or NULL. */
static const char *replacement(uint32_t character) {
    size_t low = 0, high = ROWS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].from < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ROWS && table[low].from == character ? table[low].to : NULL;
}

bool fold_separates(uint32_t character) {
    if (character < 0x80)
        return !((character >= '0' && character <= '9') || (character >= 'a' && character <= 'z'));
    return (character < 0xc0 && character != 0xaa && character != 0xb5 && character != 0xba) ||
           (character >= 0x2000 && character < 0x2070) || (character >= 0x3000 && character < 0x3003);
}

size_t fold_text(char out[FOLD_LIMIT], const char *text) {
    size_t used = 0;
    for (int length; *text; text += length) {
        uint32_t character = text_next(text, &length);
        char letter = (char)(character >= 'A' && character <= 'Z' ? character + 32 : character);
        const char *to = &letter;
        size_t size = 1;
        if (character <= ' ' || character == '_' || character == 0x7f) {
            letter = ' ';
        } else if (character >= 0x80) {
            to = replacement(character);
            size = to ? strlen(to) : (size_t)length;
            if (!to) to = text;
        }
        if (size == 1 && to[0] == ' ' && (used == 0 || out[used - 1] == ' ')) continue;
        if (used + size >= FOLD_LIMIT) break;
        memcpy(out + used, to, size);
        used += size;
    }
    if (used > 0 && out[used - 1] == ' ') used--;
    out[used] = '\0';
    return used;
}
