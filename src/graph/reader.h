/* Reading triples. TSV, CSV, N-Triples and N-Quads are read in blocks of complete records. All threads
 * parse the records of a block into their own spans and look them up among the known names; then one
 * thread adds new names in the order of the file, so that ids do not depend on the number of threads.
 * Turtle and TriG have no such records: one thread parses them.
 *
 * All formats accept CR LF, a missing last newline and a byte-order mark; all refuse invalid UTF-8 and
 * control characters in names, with an error that names file, line and cause. */
#ifndef VLP_GRAPH_READER_H
#define VLP_GRAPH_READER_H

#include "base/file.h"
#include "graph/dictionary.h"

typedef struct vlp_triple_list {
    vlp_triple *items;
    int64_t count, capacity;
} vlp_triple_list;

void vlp_triple_list_free(vlp_triple_list *list);

/* The result of one thread parsing one piece of complete records. */
typedef struct vlp_piece {
    const char *text; /* (size); the last line may lack its newline */
    size_t size;
    vlp_span *spans; /* (3 * triples): head, relation, tail of each */
    int64_t span_count, span_capacity;
    int32_t *ids; /* (3 * triples) of the spans, -1 for new names */
    int64_t id_capacity;
    char *arena; /* decoded names; spans may point here */
    int64_t arena_size, arena_capacity;
    int64_t graph_names; /* statements whose graph name was dropped */
    /* Set when parsing failed: */
    vlp_status status;
    int64_t error_line; /* 0-based, within the piece */
    char error[256];
} vlp_piece;

/* A parser fills the spans of a piece from its text. It stops at the first error, which it describes
 * without file and line. `settings` comes from vlp_record_format. */
typedef void (*vlp_piece_parser)(vlp_piece *piece, const void *settings);

/* Ends the parsing of a piece with a status, line and message. */
void vlp_piece_fail(vlp_piece *piece, vlp_status status, int64_t line, const char *format, ...)
    VLP_PRINTF(4, 5);
/* Appends a triple of spans; false when out of memory (the piece has failed then). */
bool vlp_piece_add(vlp_piece *piece, const vlp_span triple[3]);
void vlp_piece_free(vlp_piece *piece); /* its memory; the text is borrowed */

typedef struct vlp_read_sink {
    vlp_dictionary *entities, *relations;
    vlp_triple_list *triples; /* appended to */
    vlp_format format;        /* of the last file */
    int64_t graph_names;      /* statements whose graph name was dropped */
    int64_t anonymous;        /* blank nodes without a label; numbered through all files of a sink */
    /* Whether to remove repeated triples while reading, so that memory grows with the distinct ones.
     * The first of each is kept; some repeated triples may be left for vlp_triple_list_unique. */
    bool drops_repeated;
    int64_t repeated; /* dropped */
} vlp_read_sink;

/* Looks up the names of a piece and adds its triples to the sink. */
vlp_status vlp_sink_add(vlp_read_sink *sink, vlp_piece *piece, int threads);

typedef struct vlp_read_options {
    const vlp_file_options *file; /* format and columns; NULL: the defaults */
    int32_t threads;
    const vlp_observer *observer;
} vlp_read_options;

/* Reads a file ("-": standard input), or all of `source`, in any format. On failure the content of the
 * sink is unspecified. The options have been checked (vlp_file_options_check). */
vlp_status vlp_read_file(vlp_read_sink *sink, const char *path, const vlp_read_options *options);
vlp_status vlp_read_source(vlp_read_sink *sink, vlp_source *source, const vlp_read_options *options);

/* VLP_ERROR_ARGUMENT for columns, a separator or a format that cannot be. */
vlp_status vlp_file_options_check(const vlp_file_options *file);

/* ---- Records ---- */

typedef struct vlp_record_format {
    vlp_piece_parser parser;
    const void *settings;
    bool quoted;   /* a newline between quotes does not end a record */
    size_t header; /* bytes behind a byte-order mark to be skipped, at most VLP_PEEK */
} vlp_record_format;

vlp_status vlp_read_records(vlp_read_sink *sink, vlp_source *source, const vlp_record_format *format,
                            const vlp_read_options *options);

/* The end, behind the newline, of the first record that ends at or behind `from`; NULL where none does
 * before `end`. A record starts at `start`. */
const char *vlp_record_end(const char *start, const char *from, const char *end, bool quoted);

/* The columns of a table. */
typedef struct vlp_table_layout {
    int32_t columns[3]; /* of head, relation and tail, from 1 */
    char separator;
    bool quoted; /* RFC 4180: fields may be in quotes, and quotes in them doubled */
    bool exact;  /* no further columns */
} vlp_table_layout;

extern const vlp_table_layout vlp_tsv_layout, vlp_csv_layout; /* head, relation, tail and no more */
void vlp_parse_table(vlp_piece *piece, const void *layout);

/* The start of a table. */
typedef struct vlp_table_start {
    const char *name; /* of the file */
    const char *text; /* (size), without a byte-order mark */
    size_t size;
    bool ended; /* it is the whole file */
} vlp_table_start;

/* The layout of a table by its options and its header. *header is the size of the header with its line
 * end, 0: none. */
vlp_status vlp_table_plan(vlp_table_layout *out, size_t *header, const vlp_table_start *start,
                          const vlp_file_options *file, vlp_format format);

/* N-Triples and N-Quads; names as in rdf_names.h. settings: NULL. */
void vlp_parse_ntriples(vlp_piece *piece, const void *settings);
void vlp_parse_nquads(vlp_piece *piece, const void *settings);
/* Whether a line is a statement of N-Triples, or of N-Quads. */
bool vlp_is_statement(const char *line, size_t size, bool quads);
/* The error of an absolute IRI whose escapes are decoded, or NULL. */
const char *vlp_iri_fault(const char *text, size_t size);
/* The error of a language tag without its @, or NULL. */
const char *vlp_language_fault(const char *text, size_t size);

/* ---- Turtle and TriG ---- */

vlp_status vlp_read_turtle(vlp_read_sink *sink, vlp_source *source, vlp_format format,
                           const vlp_read_options *options);

/* ---- Lists of triples ---- */

/* Removes repeated triples and keeps the first of each, in order; *dropped is their number. */
vlp_status vlp_triple_list_unique(vlp_triple_list *list, int64_t *dropped, int32_t entities,
                                  int32_t threads);
/* Grows a list to a capacity for `more` further triples. If it is full and many triples are repeated,
 * it removes these first and adds their number to *dropped. */
vlp_status vlp_triple_list_reserve(vlp_triple_list *list, int64_t *dropped, int64_t more,
                                   int32_t entities, int32_t threads);

#endif
