/* Files: mapped for reading, read as a byte stream (plain, gzip, zstd or memory), and replaced
 * atomically: a reader sees either the old or the complete new content. */
#ifndef VLP_BASE_FILE_H
#define VLP_BASE_FILE_H

#include <stdio.h>

#include "base/base.h"

/* ---- A regular file mapped read-only ---- */
typedef struct vlp_map {
    const char *data; /* never NULL after a successful open, also for an empty file */
    size_t size;
} vlp_map;
vlp_status vlp_map_open(vlp_map *map, const char *path);
void vlp_map_close(vlp_map *map);

/* ---- A stream of bytes ---- */
typedef struct vlp_source vlp_source;
/* gzip and zstd are recognized by their content and decompressed in bounded memory. `path` is a regular
 * file, "-" for standard input, or names a descriptor (/dev/stdin, /dev/fd/N), which may be a pipe; any
 * other FIFO or device is refused. */
vlp_status vlp_source_open(vlp_source **out, const char *path);
vlp_status vlp_source_open_memory(vlp_source **out, const char *name, const void *data, size_t size);
/* Fills `buffer`; *got < size only at the end of the source. */
vlp_status vlp_source_read(vlp_source *source, void *buffer, size_t size, size_t *got);
/* The first bytes of the source, VLP_PEEK of them unless it ends before; to be called before any read,
 * which then returns them again. Borrowed until the first read. */
enum { VLP_PEEK = 1 << 16 };
vlp_status vlp_source_peek(vlp_source *source, const char **text, size_t *size);
const char *vlp_source_name(const vlp_source *source); /* for messages */
void vlp_source_free(vlp_source *source);

/* ---- A file that is replaced atomically ---- */
/* Checks a target before the work. Refuses one that exists and is not a regular file (folder, device,
 * FIFO, symbolic link), or whose parent folder is missing or not writable. */
vlp_status vlp_writer_check(const char *path);
typedef struct vlp_writer vlp_writer;
vlp_status vlp_writer_open(vlp_writer **out, const char *path);
/* The same; messages name `shown` instead of `path`. */
vlp_status vlp_writer_open_as(vlp_writer **out, const char *path, const char *shown);
/* Write errors are stored and returned by the commit. */
void vlp_writer_bytes(vlp_writer *writer, const void *data, size_t size);
void vlp_writer_text(vlp_writer *writer, const char *text);
void vlp_writer_format(vlp_writer *writer, const char *format, ...) VLP_PRINTF(2, 3);
/* Flushes, syncs, renames over `path`, syncs the folder. `path` is checked again: only a regular file
 * is replaced. Frees the writer in any case. */
vlp_status vlp_writer_commit(vlp_writer **writer);
/* Discards an uncommitted file and removes the temporary one. */
void vlp_writer_free(vlp_writer *writer);

/* Opens a log file for appending and creates it if it is missing. NULL if `path` is not a regular file
 * or cannot be opened. To be closed with fclose. */
FILE *vlp_append_open(const char *path);

/* ---- A folder that is created atomically ---- */
/* Files are written into a temporary folder beside `path`; the commit renames it. Refuses a `path`
 * that exists and is not an empty folder. Opening removes the temporary folders that processes which are
 * gone have left there for the same `path`. */
typedef struct vlp_staging vlp_staging;
vlp_status vlp_staging_check(const char *path); /* the check of vlp_staging_open, for before the work */
vlp_status vlp_staging_open(vlp_staging **out, const char *path);
/* A writer for `name` in the folder. */
vlp_status vlp_staging_writer(vlp_writer **out, vlp_staging *staging, const char *name);
/* Renames the folder to `path` and syncs its parent folder. Frees the staging in any case. */
vlp_status vlp_staging_commit(vlp_staging **staging);
void vlp_staging_free(vlp_staging *staging); /* removes an uncommitted folder */

/* "folder/name", to be freed; NULL when out of memory. */
char *vlp_path_join(const char *folder, const char *name);
bool vlp_path_exists(const char *path);

/* ---- Shared by file.c and source.c ---- */
/* Opens a regular file for reading, or any stream where `streams` allows it and the path names a
 * descriptor. Any other FIFO or device is refused. */
struct stat;
vlp_status vlp_input_open(int *out, struct stat *info, const char *path, bool streams);

/* ---- Shared by writer.c and staging.c ---- */
/* VLP_OK if the parent folder of `path` exists and is writable. Messages name `shown`. */
vlp_status vlp_parent_check(const char *path, const char *shown);
/* A descriptor of the parent folder of `path`; -1 and errno where it cannot be opened. */
int vlp_parent_open(const char *path);
/* Makes a rename in the parent folder of `path` durable. Messages name `shown`. */
vlp_status vlp_parent_sync(const char *path, const char *shown);
/* "PATH.partial-PID", and "PATH.partial-PID-N" from the second attempt on; to be freed, NULL when out of
 * memory. */
enum { VLP_TEMPORARY_ATTEMPTS = 100 };
char *vlp_temporary_name(const char *path, int attempt);
/* The id of the process that has `name`, an entry of the parent folder, as a temporary name of `path`; 0
 * if it is not one. */
long vlp_temporary_process(const char *name, const char *path);

#endif
