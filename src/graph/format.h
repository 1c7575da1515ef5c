/* Formats of files of triples: their names, their extensions, and what a text looks like. */
#ifndef VLP_GRAPH_FORMAT_H
#define VLP_GRAPH_FORMAT_H

#include "base/base.h"

/* "Turtle"; for messages. */
const char *vlp_format_title(vlp_format format);
/* ".ttl", the first of the extensions of a format. */
const char *vlp_format_extension(vlp_format format);

/* All extensions that a split of a data set may have, compressed ones included: [0 .. count - 1]. */
enum { VLP_FORMAT_EXTENSIONS = 21 };
/* "train" + the extension with that index. */
void vlp_format_file_name(char *out, size_t size, const char *split, int index);

/* The format that the extension of a file name states, in front of .gz or .zst where there is one;
 * VLP_FORMAT_AUTO where it states none: .txt, other extensions, none at all. */
vlp_format vlp_format_of_name(const char *name);

/* What the start of a file looks like. */
typedef struct vlp_format_guess {
    vlp_format format;   /* VLP_FORMAT_AUTO: unknown, or none that is read */
    bool certain;        /* it has a directive, or its first line is a statement */
    const char *foreign; /* what it is where the format is unknown, and what to do; or NULL */
} vlp_format_guess;

/* text: the first `size` bytes of a file; a last line that is not complete is not looked at, unless it
 * is the first. */
vlp_format_guess vlp_format_look(const char *text, size_t size);

/* Whether a format is one of the tables (TSV, CSV). */
bool vlp_format_is_table(vlp_format format);

#endif
