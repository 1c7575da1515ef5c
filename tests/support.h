/* What tests share: cmocka with its needs, temporary folders, files of given content. */
#ifndef VLP_TESTS_SUPPORT_H
#define VLP_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vlp.h"

/* A new empty folder; to be removed with support_remove. */
const char *support_folder(void);
void support_remove(const char *folder); /* with all that is in it */
/* Writes folder/name with exactly these bytes. */
void support_write(const char *folder, const char *name, const void *data, size_t size);
void support_write_text(const char *folder, const char *name, const char *text);
void support_write_gzip(const char *folder, const char *name, const void *data, size_t size);
/* The content of folder/name, terminated, to be freed; NULL when it is not there. */
char *support_read(const char *folder, const char *name);
/* folder/name in one of a few static buffers. */
const char *support_path(const char *folder, const char *name);
/* A generated family as a data set, made once a program. */
const char *support_family(int32_t families, int32_t generations);
/* How many entries a folder has. */
int support_count(const char *folder);

#endif
