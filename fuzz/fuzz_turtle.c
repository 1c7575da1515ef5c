/* Turtle and TriG. What N-Triples or N-Quads accept, Turtle or TriG reads as the same triples. What
 * Turtle accepts, TriG reads alike. What was read is written as N-Triples and read again. */
#include "lines.h"

UNCOUNTED_BEGIN

typedef struct reading {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
    int64_t anonymous;
    vlp_status status;
} reading;

static reading read_as(vlp_format format, const void *data, size_t size) {
    reading out = {0};
    vlp_source *source = NULL;
    REQUIRE(vlp_dictionary_new(&out.entities) == VLP_OK);
    REQUIRE(vlp_dictionary_new(&out.relations) == VLP_OK);
    REQUIRE(vlp_source_open_memory(&source, "input", data, size) == VLP_OK);
    vlp_file_options file = VLP_FILE_OPTIONS_INIT;
    file.format = format;
    vlp_read_sink sink = {.entities = out.entities, .relations = out.relations, .triples = &out.triples};
    out.status = vlp_read_source(&sink, source, &(vlp_read_options){.file = &file, .threads = 1});
    REQUIRE(out.status == VLP_OK || out.status == VLP_ERROR_FORMAT);
    if (out.status != VLP_OK) REQUIRE(strncmp(vlp_error_message(), "input:", 6) == 0);
    out.anonymous = sink.anonymous;
    vlp_source_free(source);
    return out;
}

static void reading_free(reading *read) {
    vlp_dictionary_free(read->entities);
    vlp_dictionary_free(read->relations);
    vlp_triple_list_free(&read->triples);
}

static void name_of(char *out, size_t size, const vlp_dictionary *names, int32_t id) {
    const char *name = vlp_dictionary_name(names, id);
    bool iri = name[0] != '"' && strncmp(name, "_:", 2) != 0;
    int length = snprintf(out, size, iri ? "<%s>" : "%s", name);
    REQUIRE(length > 0 && (size_t)length < size);
    size_t end = strlen(name);
    REQUIRE(end == vlp_dictionary_name_length(names, id) && naive_utf8((const uint8_t *)name, end));
    for (size_t i = 0; i < end; i++) REQUIRE(!naive_control((unsigned char)name[i]));
}

static void require_same(const reading *left, const reading *right) {
    static char names[2][1 << 14];
    REQUIRE(left->status == VLP_OK && right->status == VLP_OK);
    REQUIRE(left->triples.count == right->triples.count);
    for (int64_t i = 0; i < left->triples.count; i++)
        REQUIRE(memcmp(&left->triples.items[i], &right->triples.items[i], sizeof(vlp_triple)) == 0);
    for (int kind = 0; kind < 2; kind++) {
        const vlp_dictionary *a = kind ? left->entities : left->relations;
        const vlp_dictionary *b = kind ? right->entities : right->relations;
        REQUIRE(vlp_dictionary_size(a) == vlp_dictionary_size(b));
        for (int32_t id = 0; id < vlp_dictionary_size(a); id++) {
            name_of(names[0], sizeof names[0], a, id);
            name_of(names[1], sizeof names[1], b, id);
            REQUIRE(strcmp(names[0], names[1]) == 0);
        }
    }
}

/* Writes all triples as N-Triples and reads them again. */
static void check_round_trip(const reading *read) {
    static char text[1 << 20], name[1 << 14];
    size_t used = 0;
    for (int64_t i = 0; i < read->triples.count; i++) {
        const int32_t ids[3] = {read->triples.items[i].head, read->triples.items[i].relation,
                                read->triples.items[i].tail};
        for (int part = 0; part < 3; part++) {
            name_of(name, sizeof name, part == 1 ? read->relations : read->entities, ids[part]);
            if (used + strlen(name) + 8 > sizeof text) return;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", name,
                                     part == 2 ? " .\n" : " ");
        }
    }
    reading again = read_as(VLP_FORMAT_NTRIPLES, text, used);
    require_same(read, &again);
    reading_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    reading turtle = read_as(VLP_FORMAT_TURTLE, data, size);
    reading trig = read_as(VLP_FORMAT_TRIG, data, size);
    reading triples = read_as(VLP_FORMAT_NTRIPLES, data, size);
    reading quads = read_as(VLP_FORMAT_NQUADS, data, size);
    if (triples.status == VLP_OK) require_same(&triples, &turtle);
    if (triples.status == VLP_OK) require_same(&triples, &quads);
    if (turtle.status == VLP_OK) require_same(&turtle, &trig);
    /* The names of nodes without a label are not those of N-Triples. */
    if (trig.status == VLP_OK && trig.anonymous == 0) check_round_trip(&trig);
    reading_free(&turtle);
    reading_free(&trig);
    reading_free(&triples);
    reading_free(&quads);
    return 0;
}

UNCOUNTED_END
