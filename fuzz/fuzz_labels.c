/* labels.tsv: compares the labels of a few known entities with a reference parser. */
#include "fuzz.h"
#include "graph/labels.h"

UNCOUNTED_BEGIN

static const char *const names[] = {"a", "bb", "c c", "\xc3\xa9", "dog.n.01", "e"};
enum { NAMES = sizeof names / sizeof *names };

typedef struct text {
    const uint8_t *bytes; /* or NULL */
    size_t length;
} text;

typedef struct row {
    text name, label, description;
} row;

static bool has_control(text field) {
    for (size_t i = 0; i < field.length; i++)
        if (naive_control(field.bytes[i])) return true;
    return false;
}

/* "name<TAB>label[<TAB>description]"; false if the line is invalid. */
static bool naive_row(row *out, const uint8_t *line, size_t length) {
    if (!naive_utf8(line, length)) return false;
    if (length > 0 && line[length - 1] == '\r') length--;
    text fields[3] = {{line, 0}, {NULL, 0}, {NULL, 0}};
    int count = 1;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\0') return false;
        if (line[i] != '\t') {
            fields[count - 1].length++;
            continue;
        }
        if (count == 3) return false;
        fields[count++] = (text){line + i + 1, 0};
    }
    *out = (row){fields[0], fields[1], fields[2]};
    return count >= 2 && fields[0].length > 0 && !has_control(fields[1]) && !has_control(fields[2]);
}

/* Whether a label equals the field; an empty field is no label. */
static bool is_field(const char *kept, text field) {
    if (field.length == 0) return kept == NULL;
    return kept && strlen(kept) == field.length && memcmp(kept, field.bytes, field.length) == 0;
}

/* Parses all rows; the first one of each entity is used. Returns the number of the invalid line, from
 * 1, or 0. */
static int64_t naive_rows(row rows[NAMES], const uint8_t *data, size_t size) {
    size_t at = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    int64_t number = 1;
    for (size_t next; at < size; at += next, number++) {
        row found;
        if (!naive_row(&found, data + at, naive_line(data + at, size - at, &next))) return number;
        for (int i = 0; i < NAMES; i++)
            if (!rows[i].name.bytes && is_field(names[i], found.name)) rows[i] = found;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vlp_dictionary *entities, *relations;
    if (!entities) {
        REQUIRE(vlp_dictionary_new(&relations) == VLP_OK);
        REQUIRE(vlp_dictionary_add(relations, &(int32_t){0}, names[1]) == VLP_OK);
        REQUIRE(vlp_dictionary_new(&entities) == VLP_OK);
        for (int32_t i = 0, id; i < NAMES; i++) {
            vlp_span span = vlp_span_make(names[i], strlen(names[i]));
            REQUIRE(vlp_dictionary_intern(entities, &id, &span) == VLP_OK && id == i);
        }
    }
    row rows[NAMES] = {0};
    int64_t wrong = naive_rows(rows, data, size);
    vlp_labels *both[VLP_LABEL_KINDS] = {NULL};
    const vlp_dictionary *const dictionaries[VLP_LABEL_KINDS] = {entities, relations};
    vlp_source *source = NULL;
    REQUIRE(vlp_source_open_memory(&source, "labels.tsv", data, size) == VLP_OK);
    vlp_status status = vlp_labels_read(both, source, dictionaries);
    const vlp_labels *labels = both[VLP_ENTITY_LABELS];
    REQUIRE(status == (wrong ? VLP_ERROR_FORMAT : VLP_OK));
    REQUIRE((labels != NULL) == (status == VLP_OK));
    if (wrong) {
        char start[64];
        int length = snprintf(start, sizeof start, "labels.tsv:%lld: ", (long long)wrong);
        REQUIRE(strncmp(vlp_error_message(), start, (size_t)length) == 0);
    } else {
        int64_t count = 0;
        for (int32_t i = 0; i < NAMES; i++) {
            REQUIRE(is_field(vlp_labels_label(labels, i), rows[i].label));
            REQUIRE(is_field(vlp_labels_description(labels, i), rows[i].description));
            count += rows[i].label.length > 0;
        }
        REQUIRE(vlp_labels_count(labels) == count);
        /* The relation has the name of an entity, and its label. */
        REQUIRE(is_field(vlp_labels_label(both[VLP_RELATION_LABELS], 0), rows[1].label));
        REQUIRE(is_field(vlp_labels_description(both[VLP_RELATION_LABELS], 0), rows[1].description));
    }
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++) vlp_labels_free(both[kind]);
    vlp_source_free(source);
    return 0;
}

UNCOUNTED_END
