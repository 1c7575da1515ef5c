/* Tables of triples: compares the parser, including its errors, with a reference parser. */
#include "lines.h"

UNCOUNTED_BEGIN

typedef struct field {
    const uint8_t *text;
    size_t length;
} field;

/* The three fields of a line; false unless they are three valid names. */
static bool naive_fields(field fields[3], const uint8_t *line, size_t length) {
    if (!naive_utf8(line, length)) return false;
    if (length > 0 && line[length - 1] == '\r') length--;
    int count = 0;
    const uint8_t *start = line;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && line[i] != '\t') {
            if (naive_control(line[i])) return false;
            continue;
        }
        field found = {start, (size_t)(line + i - start)};
        if (found.length == 0 || count == 3) return false;
        fields[count++] = found;
        start = line + i + 1;
    }
    return count == 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const vlp_record_format format = {.parser = vlp_parse_table, .settings = &vlp_tsv_layout};
    vlp_piece whole = parse_piece(&format, data, size);
    int64_t number = 0;
    bool good = true;
    for (size_t at = 0, next; at < size; at += next, number++) {
        field fields[3];
        size_t length = naive_line(data + at, size - at, &next);
        good = naive_fields(fields, data + at, length);
        if (!good) break;
        REQUIRE(whole.span_count >= 3 * (number + 1));
        for (int i = 0; i < 3; i++)
            REQUIRE(same_span(&whole.spans[3 * number + i], fields[i].text, fields[i].length));
    }
    REQUIRE(good == (whole.status == VLP_OK));
    REQUIRE(whole.span_count == 3 * number);
    if (!good) REQUIRE(whole.error_line == number);
    check_cut(&format, &whole);
    if (one_in(data, size, 1 << 14)) check_reader(&format, &whole);
    vlp_piece_free(&whole);
    return 0;
}

UNCOUNTED_END
