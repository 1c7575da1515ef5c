/* CSV: compares the parser, including its errors, with a reference parser (RFC 4180). */
#include "lines.h"

UNCOUNTED_BEGIN

enum { LONGEST = 4096 };

typedef struct record {
    char fields[3][LONGEST];
    size_t lengths[3];
    int count;
    size_t size; /* bytes, with the line end */
} record;

static bool ends_record(const uint8_t *data, size_t size, size_t at) {
    return at == size || data[at] == '\n' ||
           (data[at] == '\r' && (at + 1 == size || data[at + 1] == '\n'));
}

static void keep(record *out, uint8_t byte) {
    if (out->count < 3) out->fields[out->count][out->lengths[out->count]++] = (char)byte;
}

/* Reads one field from *at on; false where it is wrong. */
static bool naive_field(record *out, const uint8_t *data, size_t size, size_t *at) {
    if (out->count < 3) out->lengths[out->count] = 0;
    if (*at == size || data[*at] != '"') {
        for (; !ends_record(data, size, *at) && data[*at] != ','; ++*at) {
            if (data[*at] == '"') return false;
            keep(out, data[*at]);
        }
        return true;
    }
    for (++*at;; ++*at) {
        if (*at == size) return false;
        if (data[*at] == '"') {
            if (*at + 1 == size || data[*at + 1] != '"') break;
            ++*at;
        }
        keep(out, data[*at]);
    }
    ++*at;
    return ends_record(data, size, *at) || data[*at] == ',';
}

/* The record at the start of the data; false where it is no triple. */
static bool naive_record(record *out, const uint8_t *data, size_t size) {
    size_t at = 0;
    for (out->count = 0;; at++) {
        if (!naive_field(out, data, size, &at)) return false;
        out->count++;
        if (ends_record(data, size, at)) break;
    }
    if (at < size && data[at] == '\r') at++;
    if (at < size) at++;
    out->size = at;
    if (out->count != 3 || !naive_utf8(data, at)) return false;
    for (int i = 0; i < 3; i++) {
        if (out->lengths[i] == 0) return false;
        for (size_t j = 0; j < out->lengths[i]; j++)
            if (naive_control((unsigned char)out->fields[i][j])) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static record found;
    const vlp_record_format format = {
        .parser = vlp_parse_table, .settings = &vlp_csv_layout, .quoted = true};
    if (size > LONGEST) return 0;
    vlp_piece whole = parse_piece(&format, data, size);
    int64_t line = 0, spans = 0;
    bool good = true;
    for (size_t at = 0; at < size; at += found.size) {
        good = naive_record(&found, data + at, size - at);
        if (!good) break;
        REQUIRE(whole.span_count >= spans + 3);
        for (int i = 0; i < 3; i++, spans++)
            REQUIRE(same_span(&whole.spans[spans], found.fields[i], found.lengths[i]));
        for (size_t i = at; i < at + found.size; i++) line += data[i] == '\n';
    }
    REQUIRE(good == (whole.status == VLP_OK));
    REQUIRE(whole.span_count == spans);
    /* The line of invalid UTF-8 is its own, behind the start of the record. */
    if (!good) REQUIRE(whole.error_line >= line);
    if (!good && strcmp(whole.error, "invalid UTF-8") != 0) REQUIRE(whole.error_line == line);
    check_cut(&format, &whole);
    if (one_in(data, size, 1 << 14) && good) check_reader(&format, &whole);
    vlp_piece_free(&whole);
    return 0;
}

UNCOUNTED_END
