/* An allocator for tests: fails one call of all, and counts what is alive, so that every place that asks
 * for memory can be seen to fail cleanly, one after the other:
 *
 *   failing_allocator memory;
 *   int64_t call = 0;
 *   do {
 *       failing_allocator_install(&memory, ++call);
 *       status = what_is_tested();
 *       failing_allocator_remove(&memory);   // asserts that nothing is left behind
 *   } while (memory.failed);                 // until there is no call of that number any more
 *
 * Calls may come from several threads. */
#ifndef VLP_TESTS_FAILING_ALLOCATOR_H
#define VLP_TESTS_FAILING_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "vlp.h"

typedef struct failing_allocator {
    int64_t fail_at;       /* the number of the call that fails, from 1; 0: none */
    _Atomic int64_t calls; /* to reallocate, so far */
    _Atomic int64_t live;  /* blocks that are not released yet */
    _Atomic bool failed;   /* the call came */
} failing_allocator;

static inline void *failing_allocator_reallocate(void *user, void *memory, size_t size) {
    failing_allocator *allocator = user;
    if (atomic_fetch_add(&allocator->calls, 1) + 1 == allocator->fail_at) {
        atomic_store(&allocator->failed, true);
        return NULL;
    }
    void *result = realloc(memory, size);
    if (result && !memory) atomic_fetch_add(&allocator->live, 1);
    return result;
}

static inline void failing_allocator_release(void *user, void *memory) {
    failing_allocator *allocator = user;
    if (memory) atomic_fetch_sub(&allocator->live, 1);
    free(memory);
}

static inline void failing_allocator_install(failing_allocator *allocator, int64_t fail_at) {
    allocator->fail_at = fail_at;
    atomic_init(&allocator->calls, 0);
    atomic_init(&allocator->live, 0);
    atomic_init(&allocator->failed, false);
    vlp_allocator_set(
        &(vlp_allocator){failing_allocator_reallocate, failing_allocator_release, allocator});
}

/* Puts the ordinary allocator back. What was allocated in between has to be gone by now. */
static inline void failing_allocator_remove(failing_allocator *allocator) {
    vlp_allocator_set(NULL);
    if (allocator->live == 0) return;
    fprintf(stderr, "%lld blocks left behind after call %lld failed\n", (long long)allocator->live,
            (long long)allocator->fail_at);
    abort();
}

#endif
