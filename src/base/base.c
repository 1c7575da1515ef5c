#include "base/base.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"

#ifdef __clang_analyzer__
#undef vlp_fail
#undef vlp_fail_memory
#undef vlp_fail_io
#endif

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

static _Thread_local char error_message[1024];

const char *vlp_error_message(void) {
    return error_message;
}

const char *vlp_version(void) {
    return STRINGIFY(VLP_VERSION_MAJOR) "." STRINGIFY(VLP_VERSION_MINOR) "." STRINGIFY(
        VLP_VERSION_PATCH);
}

vlp_status vlp_fail(vlp_status status, const char *format, ...) {
    assert(status != VLP_OK);
    /* Formatted into a second buffer: an argument may be the present message itself. */
    char text[sizeof error_message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* Names and paths are untrusted: the message stays one line without control characters. */
    vlp_text_escape(error_message, sizeof error_message, text);
    return status;
}

vlp_status vlp_fail_memory(const char *what) {
    return vlp_fail(VLP_ERROR_MEMORY, "out of memory for %s", what);
}

vlp_status vlp_fail_io(const char *verb, const char *path, int code) {
    char reason[128];
    /* The GNU function may return a constant instead of filling the buffer. */
    const char *text = strerror_r(code, reason, sizeof reason);
    return vlp_fail(VLP_ERROR_IO, "cannot %s %s: %s", verb, path, text);
}

vlp_status vlp_fail_stopped(void) {
    return vlp_fail(VLP_ERROR_STOPPED, "stopped");
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static void *system_reallocate(void *user, void *memory, size_t size) {
    (void)user;
    return realloc(memory, size);
}

static void system_release(void *user, void *memory) {
    (void)user;
    free(memory);
}

static const vlp_allocator system_allocator = {system_reallocate, system_release, NULL};

/* A mutable global: the allocator is needed before there is an object that could hold it. */
static vlp_allocator allocator = {system_reallocate, system_release, NULL};

void vlp_allocator_set(const vlp_allocator *replacement) {
    if (replacement && (!replacement->reallocate || !replacement->release)) return;
    allocator = replacement ? *replacement : system_allocator;
}

/* Hash tables and embeddings are accessed at random; huge pages avoid most TLB misses. A failed hint
 * is harmless. */
static void prefer_huge_pages(void *memory, size_t size) {
    const size_t huge = (size_t)2 << 20;
    if (size < 4 * huge) return;
    uintptr_t start = ((uintptr_t)memory + huge - 1) & ~(uintptr_t)(huge - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(huge - 1);
    if (end > start) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void *vlp_realloc(void *memory, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (bytes == 0) bytes = 1;
    void *result = allocator.reallocate(allocator.user, memory, bytes);
    if (result) prefer_huge_pages(result, bytes);
    return result;
}

void *vlp_alloc(size_t count, size_t size) {
    return vlp_realloc(NULL, count, size);
}

void *vlp_alloc_zero(size_t count, size_t size) {
    bool lazy = allocator.reallocate == system_reallocate;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    /* Pages of calloc that are never written take neither memory nor time. */
    void *memory = lazy ? calloc(bytes > 0 ? bytes : 1, 1) : vlp_realloc(NULL, count, size);
    if (memory && lazy) prefer_huge_pages(memory, bytes);
    if (memory && !lazy) memset(memory, 0, bytes);
    return memory;
}

void vlp_free(void *memory) {
    if (memory) allocator.release(allocator.user, memory);
}

char *vlp_string_copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = vlp_alloc(size, 1);
    if (copy) memcpy(copy, text, size);
    return copy;
}

vlp_status vlp_grow(void *array, int64_t *capacity, int64_t needed, size_t size, const char *what) {
    if (needed <= *capacity) return VLP_OK;
    int64_t larger = *capacity < 16 ? 16 : *capacity * 2;
    if (larger < needed) larger = needed;
    void *items; /* copied by bytes: the caller chooses the pointer's type */
    memcpy(&items, array, sizeof items);
    items = vlp_realloc(items, (size_t)larger, size);
    if (!items) return vlp_fail_memory(what);
    memcpy(array, &items, sizeof items);
    *capacity = larger;
    return VLP_OK;
}

/* ---- Threads and observers ----------------------------------------------------------------------- */

int vlp_thread_count(int32_t requested) {
    if (requested > 0) return requested > 1024 ? 1024 : requested;
    int available = omp_get_max_threads();
    return available > 0 ? available : 1;
}

void vlp_log(const vlp_observer *observer, const char *format, ...) {
    if (!observer || !observer->log) return;
    char text[1024], line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    vlp_text_escape(line, sizeof line, text);
    observer->log(observer->user, line);
}

void vlp_progress(const vlp_observer *observer, const char *what, int64_t done, int64_t total) {
    if (observer && observer->progress) observer->progress(observer->user, what, done, total);
}

bool vlp_stopped(const vlp_observer *observer) {
    return observer && observer->stop && observer->stop(observer->user);
}
