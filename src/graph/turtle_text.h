/* The text of a Turtle or TriG file on its way to serd, byte by byte. It is checked and changed so that
 * serd 0.30 reads what the grammar says:
 *
 *   - A letter is put before every label of a blank node. serd numbers nodes without a label as b1, b2,
 *     ..., and reads a label _:b1 as B1, also where _:B1 is another node.
 *   - A space is put before the full stop behind a name or a number. serd reads "5." as a plain literal
 *     instead of an integer.
 *   - A backslash is put before a quote in a literal with three quotes on each side. serd does not see
 * the escape that follows such a quote.
 *   - Brackets nested deeper than VLP_TURTLE_DEPTH are an error: serd recurses for each.
 *   - Invalid UTF-8 and zero bytes are errors: serd replaces the former and skips the latter.
 *   - More than VLP_TURTLE_LONGEST bytes between two statements are an error: serd keeps a term in
 *     memory, and a compressed file may contain one of any size.
 *
 * Invariant: outside of literals, IRIs and comments, tokens are recognized as by the grammar of Turtle.
 */
#ifndef VLP_GRAPH_TURTLE_TEXT_H
#define VLP_GRAPH_TURTLE_TEXT_H

#include "base/file.h"

enum { VLP_TURTLE_DEPTH = 500, VLP_TURTLE_LONGEST = 64 << 20, VLP_TURTLE_BLANK = 'z' };

typedef enum vlp_turtle_place {
    VLP_TURTLE_BETWEEN, /* tokens */
    VLP_TURTLE_NAME,    /* in a name or keyword */
    VLP_TURTLE_NUMBER,
    VLP_TURTLE_LABEL, /* behind the _ of a blank node */
    VLP_TURTLE_IRI,
    VLP_TURTLE_COMMENT,
    VLP_TURTLE_SHORT, /* in a literal with one quote on each side */
    VLP_TURTLE_LONG   /* with three */
} vlp_turtle_place;

typedef struct vlp_turtle_text {
    vlp_source *source; /* borrowed */
    char *buffer;       /* [at, filled) is not given yet */
    size_t at, filled;
    bool first, ended; /* before the first block; the end of the source */
    vlp_turtle_place place;
    char quote;      /* of the literal */
    int as_is;       /* bytes to give unchanged: of quotes, and behind a backslash */
    bool prefixed;   /* a byte has been put before the next one */
    bool marking;    /* the letter of a label follows */
    int depth;       /* of brackets */
    int64_t line;    /* newlines before the last byte given */
    bool newline;    /* the last byte given was one */
    int64_t pending; /* bytes since the caller set it to 0, after a statement */
    /* Set at the end, where it is not that of the source: */
    vlp_status status;
    char error[160]; /* empty where the source failed, whose message is set */
} vlp_turtle_text;

vlp_status vlp_turtle_text_start(vlp_turtle_text *text, vlp_source *source);
void vlp_turtle_text_free(vlp_turtle_text *text);

/* The next byte; -1 at the end and after an error. */
int vlp_turtle_text_next(vlp_turtle_text *text);

#endif
