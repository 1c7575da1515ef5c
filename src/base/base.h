/* What every module stands on: statuses and messages, checked allocation, threads, observers.
 *
 * The message of a failed call lives in a thread-local buffer. Worker threads of a parallel region
 * therefore never report themselves: they hand a status and a position to the calling thread. */
#ifndef VLP_BASE_BASE_H
#define VLP_BASE_BASE_H

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "vlp.h"

#define VLP_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Sets this thread's message and returns `status`, so that a failure is one statement. */
vlp_status vlp_fail(vlp_status status, const char *format, ...) VLP_PRINTF(2, 3);

/* The message for a failed allocation; `what` names what the memory was for. */
vlp_status vlp_fail_memory(const char *what);

/* VLP_ERROR_IO with the text of `code`, an errno value: "cannot VERB PATH: reason". */
vlp_status vlp_fail_io(const char *verb, const char *path, int code);

/* What the static analyzer cannot see from the declarations: a failure is never VLP_OK. */
#ifdef __clang_analyzer__
#define vlp_fail(status, ...) ((void)(vlp_fail)(status, __VA_ARGS__), (status))
#define vlp_fail_memory(what) ((void)(vlp_fail_memory)(what), VLP_ERROR_MEMORY)
#define vlp_fail_io(verb, path, code) ((void)(vlp_fail_io)(verb, path, code), VLP_ERROR_IO)
#endif

/* Leaves early with the failure of `call`, when there is nothing to clean up. */
#define VLP_TRY(call)                                                                                   \
    do {                                                                                                \
        vlp_status try_status_ = (call);                                                                \
        if (try_status_ != VLP_OK) return try_status_;                                                  \
    } while (0)

/* Goes to `out:` with `status` set, when there is. */
#define VLP_CHECK(call)                                                                                 \
    do {                                                                                                \
        status = (call);                                                                                \
        if (status != VLP_OK) goto out;                                                                 \
    } while (0)

/* ---- Memory. NULL on failure or when count * size overflows; never NULL for an empty array. ---- */
void *vlp_alloc(size_t count, size_t size);      /* uninitialised */
void *vlp_alloc_zero(size_t count, size_t size); /* zeros */
void *vlp_realloc(void *memory, size_t count, size_t size);
void vlp_free(void *memory);
char *vlp_string_copy(const char *text);

/* Makes room for `needed` items of `size` bytes in a growing array, at least doubling it. `array` is the
 * address of the pointer to the items, of whatever type. */
vlp_status vlp_grow(void *array, int64_t *capacity, int64_t needed, size_t size, const char *what);

/* Memory that this process could still use, and all that it could ever use: of the machine and its swap
 * space, within the limits of control groups and of the address space. False where the system does not
 * say. */
bool vlp_memory_available(int64_t *available, int64_t *total);

/* qsort, which must not be given NULL, as arrays without items may be. */
static inline void vlp_sort(void *items, int64_t count, size_t size,
                            int (*compare)(const void *, const void *)) {
    if (count > 1) qsort(items, (size_t)count, size, compare);
}

/* ---- Threads ---- */
/* The number of threads to use when `requested` were asked for (0: all of the machine's). */
int vlp_thread_count(int32_t requested);

/* ---- Observers; each takes NULL ---- */
void vlp_log(const vlp_observer *observer, const char *format, ...) VLP_PRINTF(2, 3);
void vlp_progress(const vlp_observer *observer, const char *what, int64_t done, int64_t total);
bool vlp_stopped(const vlp_observer *observer);
vlp_status vlp_fail_stopped(void);

#endif
