/* setenv would change the array that other threads may be reading: getenv takes no lock. So the library
 * sees a copy of the array with the variables in front, and the pointer to it is exchanged for the time
 * of loading. Copies are kept for the life of the process, since a reader may still hold one. */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The latest copy; element 0 of a copy is the address of the one before, so that all stay reachable. */
static char **copies;

/* The environment with `variables` in front; NULL when out of memory. */
static char **extended(char **present, const char *const variables[], size_t count) {
    size_t size = 0;
    while (present && present[size]) size++;
    char **copy = malloc((size + count + 2) * sizeof *copy);
    if (!copy) return NULL;
    copy[0] = (char *)copies;
    copies = copy++;
    memcpy(copy, variables, count * sizeof *copy);
    if (size > 0) memcpy(copy + count, present, size * sizeof *copy);
    copy[count + size] = NULL;
    return copy;
}

/* How many threads are loading a library. */
static int loading;

bool vlp_is_loading(void) {
    return __atomic_load_n(&loading, __ATOMIC_RELAXED) > 0;
}

void *vlp_library_open(const char *name, const char *const variables[], size_t count) {
    __atomic_add_fetch(&loading, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    char **before = environ, **copy = count > 0 ? extended(before, variables, count) : NULL;
    if (copy) __atomic_store_n(&environ, copy, __ATOMIC_RELEASE);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (copy) __atomic_store_n(&environ, before, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&loading, 1, __ATOMIC_RELAXED);
    return handle;
}
