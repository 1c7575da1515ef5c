/* Invariants of all parsers of records: the result does not depend on the division into pieces, the
 * number of threads or repeated lines. */
#ifndef VLP_FUZZ_LINES_H
#define VLP_FUZZ_LINES_H

#include "base/text.h"
#include "fuzz.h"
#include "graph/reader.h"

UNCOUNTED_BEGIN

static inline vlp_piece parse_piece(const vlp_record_format *format, const void *text, size_t size) {
    vlp_piece piece = {.text = text, .size = size};
    format->parser(&piece, format->settings);
    REQUIRE(piece.status == VLP_OK || piece.status == VLP_ERROR_FORMAT);
    if (piece.status != VLP_OK) {
        size_t length = strlen(piece.error);
        REQUIRE(length > 0 && length < sizeof piece.error - 1);
        for (size_t i = 0; i < length; i++) REQUIRE(!naive_control((unsigned char)piece.error[i]));
        REQUIRE(naive_utf8((const uint8_t *)piece.error, length));
    }
    return piece;
}

static inline bool same_span(const vlp_span *span, const void *text, size_t length) {
    return span->length == length && memcmp(span->text, text, length) == 0 &&
           span->hash == vlp_name_hash(text, length);
}

/* Two pieces, divided after the first record that ends in the second half, give the same result as the
 * whole. */
static inline void check_cut(const vlp_record_format *format, const vlp_piece *whole) {
    const char *end = vlp_record_end(whole->text, whole->text + whole->size / 2,
                                     whole->text + whole->size, format->quoted);
    if (!end) return;
    size_t cut = (size_t)(end - whole->text);
    int64_t lines = 0;
    for (size_t i = 0; i < cut; i++) lines += whole->text[i] == '\n';
    vlp_piece first = parse_piece(format, whole->text, cut);
    vlp_piece second = parse_piece(format, whole->text + cut, whole->size - cut);
    bool good = first.status == VLP_OK;
    int64_t spans = first.span_count + (good ? second.span_count : 0);
    REQUIRE(whole->status == (good ? second.status : first.status));
    REQUIRE(spans == whole->span_count);
    if (whole->status == VLP_OK) REQUIRE(whole->graph_names == first.graph_names + second.graph_names);
    for (int64_t i = 0; i < spans; i++) {
        const vlp_span *span =
            i < first.span_count ? &first.spans[i] : &second.spans[i - first.span_count];
        REQUIRE(same_span(&whole->spans[i], span->text, span->length));
    }
    if (whole->status != VLP_OK) {
        REQUIRE(whole->error_line == (good ? lines + second.error_line : first.error_line));
        REQUIRE(strcmp(whole->error, good ? second.error : first.error) == 0);
    }
    vlp_piece_free(&first);
    vlp_piece_free(&second);
}

static inline void check_name(const vlp_dictionary *dictionary, int32_t id, const vlp_span *span,
                              int32_t *known) {
    /* Ids ascend in the order of first occurrence. */
    REQUIRE(id >= 0 && id <= *known);
    if (id == *known) ++*known;
    REQUIRE(vlp_dictionary_name_length(dictionary, id) == span->length);
    REQUIRE(memcmp(vlp_dictionary_name(dictionary, id), span->text, span->length) == 0);
    REQUIRE(vlp_dictionary_find(dictionary, span->text, span->length) == id);
}

/* Reads a text that repeats the text of `whole` `copies` times. */
static inline void check_read(const vlp_record_format *format, const vlp_piece *whole, const char *text,
                              size_t size, int64_t copies, int32_t threads) {
    vlp_triple_list triples = {NULL, 0, 0};
    vlp_read_sink sink = {.triples = &triples};
    vlp_source *source = NULL;
    REQUIRE(vlp_dictionary_new(&sink.entities) == VLP_OK);
    REQUIRE(vlp_dictionary_new(&sink.relations) == VLP_OK);
    REQUIRE(vlp_source_open_memory(&source, "input", text, size) == VLP_OK);
    vlp_read_options options = {.threads = threads};
    REQUIRE(vlp_read_records(&sink, source, format, &options) == whole->status);
    if (whole->status != VLP_OK) {
        char message[512];
        snprintf(message, sizeof message, "input:%lld: %s", (long long)whole->error_line + 1,
                 whole->error);
        REQUIRE(strcmp(message, vlp_error_message()) == 0);
    } else {
        int32_t entities = 0, relations = 0;
        int64_t each = whole->span_count / 3;
        REQUIRE(triples.count == each * copies);
        for (int64_t i = 0; i < triples.count; i++) {
            const vlp_span *spans = &whole->spans[i % each * 3];
            check_name(sink.entities, triples.items[i].head, &spans[0], &entities);
            check_name(sink.relations, triples.items[i].relation, &spans[1], &relations);
            check_name(sink.entities, triples.items[i].tail, &spans[2], &entities);
        }
        REQUIRE(entities == vlp_dictionary_size(sink.entities));
        REQUIRE(relations == vlp_dictionary_size(sink.relations));
    }
    vlp_source_free(source);
    vlp_dictionary_free(sink.entities);
    vlp_dictionary_free(sink.relations);
    vlp_triple_list_free(&triples);
}

/* Through the complete reader: once unchanged, and once repeated so that two threads get work. */
static inline void check_reader(const vlp_record_format *format, const vlp_piece *whole) {
    /* The reader, not the piece parser, removes a byte-order mark. */
    if (whole->size == 0 || vlp_bom_length(whole->text, whole->size) > 0) return;
    check_read(format, whole, whole->text, whole->size, 1, 1);
    bool ends = whole->text[whole->size - 1] == '\n';
    size_t each = whole->size + !ends, copies = ((size_t)1 << 18) / each;
    char *text = malloc(copies * each);
    REQUIRE(text != NULL);
    for (size_t i = 0; i < copies; i++) {
        memcpy(text + i * each, whole->text, whole->size);
        text[(i + 1) * each - 1] = '\n';
    }
    check_read(format, whole, text, copies * each, (int64_t)copies, 1);
    check_read(format, whole, text, copies * each, (int64_t)copies, 2);
    free(text);
}

UNCOUNTED_END

#endif
