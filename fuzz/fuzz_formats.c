/* Any bytes under any name, with columns and headers: a format is chosen, and the file is read or
 * refused. The result does not depend on the number of threads. */
#include "fuzz.h"
#include "graph/format.h"
#include "graph/reader.h"

UNCOUNTED_BEGIN

static vlp_status read_with(char *message, size_t room, int64_t *count, const char *name,
                            const uint8_t *data, size_t size, const vlp_read_options *options) {
    vlp_triple_list triples = {NULL, 0, 0};
    vlp_read_sink sink = {.triples = &triples};
    vlp_source *source = NULL;
    REQUIRE(vlp_dictionary_new(&sink.entities) == VLP_OK);
    REQUIRE(vlp_dictionary_new(&sink.relations) == VLP_OK);
    REQUIRE(vlp_source_open_memory(&source, name, data, size) == VLP_OK);
    vlp_status status = vlp_read_source(&sink, source, options);
    REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
    REQUIRE(sink.format > VLP_FORMAT_AUTO && sink.format < VLP_FORMATS);
    snprintf(message, room, "%s", status == VLP_OK ? "" : vlp_error_message());
    if (status != VLP_OK) REQUIRE(strncmp(message, name, strlen(name)) == 0);
    for (const char *at = message; *at; at++) REQUIRE(!naive_control((unsigned char)*at));
    *count = triples.count;
    vlp_source_free(source);
    vlp_dictionary_free(sink.entities);
    vlp_dictionary_free(sink.relations);
    vlp_triple_list_free(&triples);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const columns[] = {"head", "relation", "tail", "x", "a \"b\""};
    static char messages[2][2048];
    if (size < 2) return 0;
    uint8_t choice = data[0], more = data[1];
    char name[32];
    vlp_format_file_name(name, sizeof name, "x", choice % VLP_FORMAT_EXTENSIONS);
    vlp_file_options file = VLP_FILE_OPTIONS_INIT;
    if (more & 1) file.format = (vlp_format)(choice % VLP_FORMATS);
    file.header = more >> 1 & 1;
    for (int i = 0; i < 3 && more & 4; i++) {
        if (more >> 3 & 1)
            file.column_names[i] = columns[(choice + i) % 5];
        else
            file.columns[i] = (choice + i) % 3 + 1;
    }
    if (more & 16) file.separator = ';';
    REQUIRE(vlp_file_options_check(&file) == VLP_OK);
    int64_t counts[2];
    vlp_status status[2];
    for (int i = 0; i < (one_in(data, size, 64) ? 2 : 1); i++) {
        vlp_read_options options = {.file = &file, .threads = 1 + i};
        status[i] =
            read_with(messages[i], sizeof messages[i], &counts[i], name, data + 2, size - 2, &options);
        REQUIRE(i == 0 || (status[0] == status[1] && strcmp(messages[0], messages[1]) == 0));
        REQUIRE(i == 0 || status[0] != VLP_OK || counts[0] == counts[1]);
    }
    return 0;
}

UNCOUNTED_END
