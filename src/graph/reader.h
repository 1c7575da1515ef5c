/* Reading triples. A file is read in blocks of whole lines; the lines of a block are parsed by all
 * threads, each into spans of its own, and looked up among the names known so far; new names are then
 * added in the order of the file, so that ids do not depend on the number of threads.
 *
 * Both formats accept CR LF, a missing last newline and a byte-order mark; both refuse invalid UTF-8
 * and control characters in names, with the file, the line and the cause. */
#ifndef VLP_GRAPH_READER_H
#define VLP_GRAPH_READER_H

#include "base/file.h"
#include "graph/dictionary.h"

typedef struct vlp_triple_list {
    vlp_triple *items;
    int64_t count, capacity;
} vlp_triple_list;

void vlp_triple_list_free(vlp_triple_list *list);

/* What one thread makes of one piece of whole lines. */
typedef struct vlp_piece {
    const char *text; /* (size); the last line may lack its newline */
    size_t size;
    vlp_span *spans; /* (3 * triples): head, relation, tail of each */
    int64_t span_count, span_capacity;
    int32_t *ids; /* (3 * triples) of the spans, -1 where the name is new */
    int64_t id_capacity;
    char *arena; /* names that are not in the text as they are; spans may point here */
    int64_t arena_size, arena_capacity;
    int64_t skipped; /* statements a parser left out on purpose */
    /* Set when parsing failed: */
    vlp_status status;
    int64_t error_line; /* 0-based, within the piece */
    char error[256];
} vlp_piece;

/* A parser fills the spans of a piece from its text. It stops at the first error, which it describes
 * without file and line. `settings` is what the caller of vlp_read_lines gave. */
typedef void (*vlp_piece_parser)(vlp_piece *piece, const void *settings);

/* Ends a piece's parsing: status, line and message. */
void vlp_piece_fail(vlp_piece *piece, vlp_status status, int64_t line, const char *format, ...)
    VLP_PRINTF(4, 5);
/* Appends a triple of spans; false when out of memory (the piece has then failed). */
bool vlp_piece_add(vlp_piece *piece, const vlp_span triple[3]);

typedef struct vlp_read_options {
    vlp_piece_parser parser;
    const void *settings;
    bool skip_first_line; /* a header */
    int32_t threads;
    const vlp_observer *observer;
} vlp_read_options;

typedef struct vlp_read_sink {
    vlp_dictionary *entities, *relations;
    vlp_triple_list *triples; /* appended to */
    int64_t skipped;
    /* Whether repeated triples may be dropped while reading, so that a file of few distinct ones takes
     * little memory. Which are dropped then and which are left for vlp_triple_list_unique is
     * unspecified; the first of each stays. */
    bool drops_repeated;
    int64_t repeated; /* dropped */
} vlp_read_sink;

/* Reads all of `source`. On failure the sink holds an unspecified part. */
vlp_status vlp_read_lines(vlp_read_sink *sink, vlp_source *source, const vlp_read_options *options);

/* Parsers. */
extern const vlp_table_options vlp_tsv_layout; /* head, relation, tail, exactly these, by tabs */
void vlp_parse_table(vlp_piece *piece, const void *table_options);
/* N-Triples through serd. Names: an IRI as it is, a blank node as _:label, a literal as N-Triples
 * writes it ("text"@en), so that no name holds a tab or a newline. settings: NULL. */
void vlp_parse_ntriples(vlp_piece *piece, const void *settings);

/* Reads a file in the format that its name says: .nt or .nt.gz N-Triples, all others TSV. */
vlp_status vlp_read_file(vlp_read_sink *sink, const char *path, int32_t threads,
                         const vlp_observer *observer);

/* Drops repeated triples, the first of each stays in place; *dropped counts them. */
vlp_status vlp_triple_list_unique(vlp_triple_list *list, int64_t *dropped, int32_t entities,
                                  int32_t threads);
/* Makes a list large enough for `more` triples. One that is full is first freed of its repeated triples
 * where many are, which are added to *dropped. */
vlp_status vlp_triple_list_reserve(vlp_triple_list *list, int64_t *dropped, int64_t more,
                                   int32_t entities, int32_t threads);

#endif
