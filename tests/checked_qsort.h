/* Stands in for the C library's qsort in a test program and refuses NULL, which qsort must not be given
 * even with no items. */
#ifndef VLP_TESTS_CHECKED_QSORT_H
#define VLP_TESTS_CHECKED_QSORT_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void (*sort_function)(void *, size_t, size_t, int (*)(const void *, const void *));

__attribute__((visibility("default"))) void qsort(void *items, size_t count, size_t size,
                                                  int (*compare)(const void *, const void *)) {
    /* The declaration says that `items` is not NULL, so that a compiler may drop the comparison. */
    void *volatile given = items;
    if (!given) fail_msg("qsort was given NULL");
    sort_function next;
    void *found = dlsym(RTLD_NEXT, "qsort");
    memcpy(&next, &found, sizeof next);
    next(items, count, size, compare);
}

#endif
