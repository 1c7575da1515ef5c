/* Files of queries and of triples: compares each line with a reference parser. Invalid lines do not
 * stop the reader. */
#include <stddef.h>
#include <unistd.h>

#include "fuzz.h"
#include "graph/triple_reader.h"

UNCOUNTED_BEGIN

static const char *const entities[] = {"a", "bb", "c c", "\xc3\xa9", "?"};
static const char *const relations[] = {"r", "s s"};
enum { ENTITIES = sizeof entities / sizeof *entities, RELATIONS = sizeof relations / sizeof *relations };

static vlp_dataset *small_dataset(void) {
    char folder[] = "/tmp/vlp-fuzz-XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/train.txt", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    for (int i = 0; i < ENTITIES; i++)
        fprintf(file, "%s\t%s\t%s\n", entities[i], relations[i % RELATIONS], entities[i]);
    REQUIRE(fclose(file) == 0);
    vlp_dataset *dataset = NULL;
    REQUIRE(vlp_dataset_open(&dataset, folder, NULL) == VLP_OK);
    unlink(path);
    rmdir(folder);
    return dataset;
}

typedef struct field {
    const uint8_t *bytes;
    size_t length;
} field;

static int32_t find(field name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == name.length && memcmp(names[i], name.bytes, name.length) == 0) return i;
    return -2;
}

/* Parses a line: true for a triple, else the error. */
static bool naive_triple(vlp_triple *out, const uint8_t *line, size_t length, bool queries) {
    field fields[3] = {{line, 0}, {NULL, 0}, {NULL, 0}};
    int count = 1;
    if (!naive_utf8(line, length)) return false;
    for (size_t i = 0; i < length; i++) {
        if (line[i] != '\t' && naive_control(line[i])) return false;
        if (line[i] != '\t') {
            fields[count - 1].length++;
            continue;
        }
        if (count == 3) return false;
        fields[count++] = (field){line + i + 1, 0};
    }
    if (count < 3) return false;
    *out = (vlp_triple){find(fields[0], entities, ENTITIES), find(fields[1], relations, RELATIONS),
                        find(fields[2], entities, ENTITIES)};
    if (queries) {
        bool head = out->head == ENTITIES - 1, tail = out->tail == ENTITIES - 1;
        bool relation = fields[1].length == 1 && fields[1].bytes[0] == '?';
        if (head + relation + tail != 1) return false;
        *(head ? &out->head : relation ? &out->relation : &out->tail) = -1;
    }
    return out->head >= -1 && out->relation >= -1 && out->tail >= -1;
}

static void check(const uint8_t *data, size_t size, const vlp_dataset *dataset, bool queries) {
    vlp_source *source = NULL;
    vlp_triple_reader *reader = NULL;
    REQUIRE(vlp_source_open_memory(&source, "queries", data, size) == VLP_OK);
    REQUIRE(vlp_triple_reader_new(&reader, dataset, source, queries) == VLP_OK);
    vlp_triple got, expected;
    bool more;
    int64_t number = 1;
    for (size_t at = 0, next; at < size; at += next, number++) {
        const uint8_t *line = data + at;
        size_t length = naive_line(line, size - at, &next);
        if (length > 0 && line[length - 1] == '\r') length--;
        size_t mark = number == 1 && length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        if (length == mark) continue;
        bool good = naive_triple(&expected, line + mark, length - mark, queries);
        vlp_status status = vlp_triple_reader_next(&got, &more, reader);
        REQUIRE(more && vlp_triple_reader_line(reader) == number);
        REQUIRE(good == (status == VLP_OK));
        if (good) {
            REQUIRE(memcmp(&got, &expected, sizeof got) == 0);
        } else {
            char start[64];
            int written = snprintf(start, sizeof start, "queries:%lld: ", (long long)number);
            REQUIRE(status == VLP_ERROR_FORMAT || status == VLP_ERROR_UNKNOWN);
            REQUIRE(strncmp(vlp_error_message(), start, (size_t)written) == 0);
        }
    }
    REQUIRE(vlp_triple_reader_next(&got, &more, reader) == VLP_OK && !more);
    vlp_triple_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vlp_dataset *dataset;
    if (!dataset) dataset = small_dataset();
    check(data, size, dataset, true);
    check(data, size, dataset, false);
    return 0;
}

UNCOUNTED_END
