/* A file of the user's that appears whole or not at all: written beside its place, synced, renamed. Only
 * a regular file is replaced; folders, devices, FIFOs and symbolic links are refused. */
#ifndef VLP_CLI_OUTPUT_H
#define VLP_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct output_file {
    FILE *stream;
    char *path, *partial; /* the target, and the temporary file; NULL when there is none */
} output_file;

/* All of these print a message where they return false. */

/* Whether `path` could be written: to be asked before the work. */
bool output_check(const char *path);
/* Whether `path` is a folder, or one could be made there. */
bool output_check_folder(const char *path);
/* Creates the temporary file. */
bool output_open(output_file *out, const char *path);
/* Syncs and renames. *bytes: the size of the file. On failure nothing is left. */
bool output_commit(output_file *out, int64_t *bytes);
/* Gives up what was not committed; does nothing after a commit. */
void output_drop(output_file *out);

#endif
