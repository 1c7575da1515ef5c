/* Reading triples. A file is read in blocks of complete lines. All threads parse the lines of a block
 * into their own spans and look them up among the known names; then one thread adds new names in the
 * order of the file, so that ids do not depend on the number of threads.
 *
 * Both formats accept CR LF, a missing last newline and a byte-order mark; both refuse invalid UTF-8
 * and control characters in names, with an error that names file, line and cause. */
#ifndef VLP_GRAPH_READER_H
#define VLP_GRAPH_READER_H

#include "base/file.h"
#include "graph/dictionary.h"

typedef struct vlp_triple_list {
    vlp_triple *items;
    int64_t count, capacity;
} vlp_triple_list;

void vlp_triple_list_free(vlp_triple_list *list);

/* The result of one thread parsing one piece of complete lines. */
typedef struct vlp_piece {
    const char *text; /* (size); the last line may lack its newline */
    size_t size;
    vlp_span *spans; /* (3 * triples): head, relation, tail of each */
    int64_t span_count, span_capacity;
    int32_t *ids; /* (3 * triples) of the spans, -1 for new names */
    int64_t id_capacity;
    char *arena; /* decoded names; spans may point here */
    int64_t arena_size, arena_capacity;
    int64_t skipped; /* statements that the parser skipped */
    /* Set when parsing failed: */
    vlp_status status;
    int64_t error_line; /* 0-based, within the piece */
    char error[256];
} vlp_piece;

/* A parser fills the spans of a piece from its text. It stops at the first error, which it describes
 * without file and line. `settings` comes from vlp_read_options. */
typedef void (*vlp_piece_parser)(vlp_piece *piece, const void *settings);

/* Ends the parsing of a piece with a status, line and message. */
void vlp_piece_fail(vlp_piece *piece, vlp_status status, int64_t line, const char *format, ...)
    VLP_PRINTF(4, 5);
/* Appends a triple of spans; false when out of memory (the piece has failed then). */
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
    /* Whether to remove repeated triples while reading, so that memory grows with the distinct ones.
     * The first of each is kept; some repeated triples may be left for vlp_triple_list_unique. */
    bool drops_repeated;
    int64_t repeated; /* dropped */
} vlp_read_sink;

/* Reads all of `source`. On failure the content of the sink is unspecified. */
vlp_status vlp_read_lines(vlp_read_sink *sink, vlp_source *source, const vlp_read_options *options);

/* Parsers. */
extern const vlp_table_options vlp_tsv_layout; /* exactly head, relation and tail, separated by tabs */
void vlp_parse_table(vlp_piece *piece, const void *table_options);
/* N-Triples. Names: the IRI, _:label for a blank node, the N-Triples form of a literal ("text"@en), so
 * that no name contains a tab or a newline. settings: NULL. */
void vlp_parse_ntriples(vlp_piece *piece, const void *settings);

/* Reads a file in the format of its extension: .nt or .nt.gz N-Triples, all others TSV. */
vlp_status vlp_read_file(vlp_read_sink *sink, const char *path, int32_t threads,
                         const vlp_observer *observer);

/* Removes repeated triples and keeps the first of each, in order; *dropped is their number. */
vlp_status vlp_triple_list_unique(vlp_triple_list *list, int64_t *dropped, int32_t entities,
                                  int32_t threads);
/* Grows a list to a capacity for `more` further triples. If it is full and many triples are repeated,
 * it removes these first and adds their number to *dropped. */
vlp_status vlp_triple_list_reserve(vlp_triple_list *list, int64_t *dropped, int64_t more,
                                   int32_t entities, int32_t threads);

#endif
