/* Atomic replacement of an output file: a temporary file beside it is written, synced and renamed.
 * Only a regular file is replaced; folders, devices, FIFOs and symbolic links are refused. */
#ifndef VLP_CLI_OUTPUT_H
#define VLP_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct output_file {
    FILE *stream;
    char *path, *partial; /* the target and the temporary file, or NULL */
} output_file;

/* All of these print a message if they return false. */

/* Whether `path` can be written; to be called before the work. */
bool output_check(const char *path);
/* Whether `path` is a folder or can be created as one. */
bool output_check_folder(const char *path);
/* Creates the temporary file. */
bool output_open(output_file *out, const char *path);
/* Syncs and renames. *bytes: the size of the file. On failure no file is left. */
bool output_commit(output_file *out, int64_t *bytes);
/* Discards an uncommitted file; does nothing after a commit. */
void output_drop(output_file *out);

#endif
