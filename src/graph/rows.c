#include "graph/rows.h"

#include <string.h>

static void insertion_sort(vlp_keyed *items, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        vlp_keyed item = items[i];
        int64_t j = i;
        for (; j > 0 && items[j - 1].key > item.key; j--) items[j] = items[j - 1];
        items[j] = item;
    }
}

/* Radix sort by bytes, least significant first; bytes in which all keys agree are skipped. */
void vlp_keyed_sort(vlp_keyed *items, vlp_keyed *spare, int64_t count) {
    if (count <= 32) {
        insertion_sort(items, count);
        return;
    }
    uint64_t differing = 0;
    for (int64_t i = 1; i < count; i++) differing |= items[i].key ^ items[0].key;
    vlp_keyed *from = items, *to = spare;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differing >> shift & 0xff)) continue;
        int64_t starts[257] = {0};
        for (int64_t i = 0; i < count; i++) starts[(from[i].key >> shift & 0xff) + 1]++;
        for (int i = 1; i < 257; i++) starts[i] += starts[i - 1];
        for (int64_t i = 0; i < count; i++) to[starts[from[i].key >> shift & 0xff]++] = from[i];
        vlp_keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, (size_t)count * sizeof *items);
}

void vlp_rows_accumulate(int64_t *offset, int32_t rows) {
    for (int32_t row = 0; row < rows; row++) offset[row + 1] += offset[row];
}

int64_t vlp_rows_longest(const int64_t *offset, int32_t rows) {
    int64_t longest = 0;
    for (int32_t row = 0; row < rows; row++)
        if (offset[row + 1] - offset[row] > longest) longest = offset[row + 1] - offset[row];
    return longest;
}
