/* The triples of a run: what is read from each line against a reading field by field. */
#include "fuzz.h"
#include "store/triples.h"

UNCOUNTED_BEGIN

enum { ENTITIES = 12, RELATIONS = 3, FIELDS = 4 };

/* A number of digits below `limit`, or -1. */
static int32_t naive_number(const uint8_t *text, size_t length, int32_t limit) {
    double value = 0;
    if (length == 0) return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + text[i] - '0';
    }
    return value < limit ? (int32_t)value : -1;
}

/* The split of a line and its triple; -1 when it is something else. */
static int naive_line_of(vlp_triple *out, const uint8_t *line, size_t length) {
    static const char *const splits[VLP_SPLITS] = {"train", "valid", "test"};
    const uint8_t *fields[FIELDS] = {line};
    size_t lengths[FIELDS] = {0};
    int count = 1, split = -1;
    for (size_t i = 0; i < length; i++) {
        if (line[i] != '\t') {
            lengths[count - 1]++;
            continue;
        }
        if (count == FIELDS) return -1;
        fields[count++] = line + i + 1;
    }
    if (count < FIELDS) return -1;
    for (int i = 0; i < VLP_SPLITS; i++)
        if (lengths[0] == strlen(splits[i]) && memcmp(fields[0], splits[i], lengths[0]) == 0) split = i;
    *out = (vlp_triple){naive_number(fields[1], lengths[1], ENTITIES),
                        naive_number(fields[2], lengths[2], RELATIONS),
                        naive_number(fields[3], lengths[3], ENTITIES)};
    return out->head < 0 || out->relation < 0 || out->tail < 0 ? -1 : split;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_stored_triples read;
    vlp_source *source = NULL;
    REQUIRE(vlp_source_open_memory(&source, "triples", data, size) == VLP_OK);
    vlp_status status = vlp_triples_parse(&read, source, ENTITIES, RELATIONS);
    int64_t met[VLP_SPLITS] = {0}, number = 1, wrong = 0;
    for (size_t at = 0; at < size && !wrong; number++) {
        size_t length = 0;
        while (at + length < size && data[at + length] != '\n') length++;
        vlp_triple triple;
        int split = naive_line_of(&triple, data + at, length);
        if (split < 0) wrong = number;
        if (split >= 0 && status == VLP_OK) {
            REQUIRE(met[split] < read.counts[split]);
            REQUIRE(memcmp(&read.items[split][met[split]], &triple, sizeof triple) == 0);
            met[split]++;
        }
        at += length + 1;
    }
    REQUIRE(status == (wrong ? VLP_ERROR_FORMAT : VLP_OK));
    for (int split = 0; split < VLP_SPLITS; split++) REQUIRE(read.counts[split] == met[split]);
    if (wrong) {
        char start[64];
        int length = snprintf(start, sizeof start, "triples:%lld: ", (long long)wrong);
        REQUIRE(strncmp(vlp_error_message(), start, (size_t)length) == 0);
    }
    vlp_stored_triples_free(&read);
    vlp_source_free(source);
    return 0;
}

UNCOUNTED_END
