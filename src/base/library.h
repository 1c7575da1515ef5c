/* Shared libraries that are loaded at run time. */
#ifndef VLP_BASE_LIBRARY_H
#define VLP_BASE_LIBRARY_H

#include <stddef.h>

/* dlopen(name, RTLD_NOW | RTLD_LOCAL) with `count` environment variables ("NAME=value", static strings)
 * in front of the others, for libraries that read their settings while they are loaded. The environment
 * of the process is the same before and after. Returns NULL on failure, with the reason in dlerror(). */
void *vlp_library_open(const char *name, const char *const variables[], size_t count);

#endif
