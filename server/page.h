/* The files of the page and the OpenAPI description, which are part of the program. */
#ifndef VLP_SERVER_PAGE_H
#define VLP_SERVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct page_file {
    const char *type, *text;
    size_t size;
} page_file;

/* Writes the file with this address to *out; false: there is none. */
bool page_find(page_file *out, const char *path);

#endif
