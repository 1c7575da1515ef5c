/* The names that terms of RDF get, the same for every format: the IRI; _:label for a blank node; the
 * N-Triples form of a literal ("text"@en). No name contains a tab or a newline.
 *
 * Names are appended to the arena of a piece, which may move while it grows: the text of a span is valid
 * only after vlp_rdf_point. */
#ifndef VLP_GRAPH_RDF_NAMES_H
#define VLP_GRAPH_RDF_NAMES_H

#include "graph/reader.h"

/* A text without a terminator. */
typedef struct vlp_text {
    const void *bytes;
    size_t size;
} vlp_text;

/* The parts, concatenated. False where the piece has failed. */
bool vlp_rdf_add(vlp_span *out, vlp_piece *piece, const vlp_text *parts, int count);

/* A literal; datatype and language are empty without one. */
bool vlp_rdf_add_literal(vlp_span *out, vlp_piece *piece, vlp_text text, vlp_text datatype,
                         vlp_text language);

/* Whether the label of a blank node starts with a character that may stand there, given that it may
 * stand inside of a label, which serd checks. */
bool vlp_rdf_starts_label(const char *label, size_t size);

/* Sets the text of `count` spans whose names follow each other in the arena from *at, and advances it.
 */
void vlp_rdf_point(vlp_span *spans, int64_t count, const vlp_piece *piece, int64_t *at);

#endif
