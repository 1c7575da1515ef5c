/* OpenMP's runtime, loaded at the first parallel region.
 *
 * libgomp decides while it is loaded how long a waiting thread spins before it sleeps, and by default
 * that is milliseconds: beside other processes, waiting threads then take the cores from those they wait
 * for. There is no call to change it. So neither the library nor the program links libgomp; the
 * functions that gcc's code for OpenMP calls are defined here, hidden, and pass the call on to a libgomp
 * that was loaded with a short spin. OpenBLAS gets the same one. The policy of the user
 * (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or that of a libgomp which the process had loaded before, is kept.
 *
 * A construct that needs another function of libgomp fails to link: add it to the list.
 * clang's code calls libomp instead and needs none of this. */
#ifndef __clang__

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/library.h"

/* Longer than a thread waits in most regions of a training step, so that it does not have to be woken,
 * and short beside the time slice that a spinning thread would take from another. */
enum { SPIN_NANOSECONDS = 100000 };

/* Return type, name, parameters, arguments of each function. */
#define FUNCTIONS(X)                                                                                    \
    X(void, GOMP_parallel, (void (*body)(void *), void *data, unsigned threads, unsigned flags),        \
      (body, data, threads, flags))                                                                     \
    X(void, GOMP_barrier, (void), ())                                                                   \
    X(bool, GOMP_loop_nonmonotonic_dynamic_start,                                                       \
      (long first, long end, long step, long chunk, long *from, long *to),                              \
      (first, end, step, chunk, from, to))                                                              \
    X(bool, GOMP_loop_nonmonotonic_dynamic_next, (long *from, long *to), (from, to))                    \
    X(void, GOMP_loop_end, (void), ())                                                                  \
    X(void, GOMP_loop_end_nowait, (void), ())                                                           \
    X(int, omp_get_max_threads, (void), ())                                                             \
    X(int, omp_get_num_threads, (void), ())                                                             \
    X(int, omp_get_thread_num, (void), ())                                                              \
    X(void, omp_set_num_threads, (int threads), (threads))

#define POINTER(type, name, parameters, arguments) type(*name) parameters;
typedef struct functions {
    FUNCTIONS(POINTER)
} functions;

static functions runtime;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Without libgomp a parallel region has one thread. */
static void serial_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    (void)threads, (void)flags;
    body(data);
}

static bool serial_start(long first, long end, long step, long chunk, long *from, long *to) {
    (void)chunk;
    *from = first;
    *to = end;
    return step > 0 ? first < end : first > end;
}

static bool serial_next(long *from, long *to) {
    (void)from, (void)to;
    return false;
}

static void serial_nothing(void) {
}

static int serial_one(void) {
    return 1;
}

static int serial_zero(void) {
    return 0;
}

static void serial_set(int threads) {
    (void)threads;
}

static const functions serial = {.GOMP_parallel = serial_parallel,
                                 .GOMP_barrier = serial_nothing,
                                 .GOMP_loop_nonmonotonic_dynamic_start = serial_start,
                                 .GOMP_loop_nonmonotonic_dynamic_next = serial_next,
                                 .GOMP_loop_end = serial_nothing,
                                 .GOMP_loop_end_nowait = serial_nothing,
                                 .omp_get_max_threads = serial_one,
                                 .omp_get_num_threads = serial_one,
                                 .omp_get_thread_num = serial_zero,
                                 .omp_set_num_threads = serial_set};

/* How many turns of libgomp's waiting loop take SPIN_NANOSECONDS here: a turn is 1 to 50 ns, depending
 * on what the processor's pause does. The fastest of a few tries, since this thread may be interrupted.
 */
static int spin_count(void) {
    enum { TRIES = 8, TURNS = 256 };
    static volatile int word;
    long fastest = LONG_MAX;
    for (int i = 0; i < TRIES; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int turn = 0; turn < TURNS && word == 0; turn++) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        long taken = (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec;
        if (taken < fastest) fastest = taken;
    }
    return (int)(SPIN_NANOSECONDS * (long)TURNS / (fastest > TURNS ? fastest : TURNS));
}

static void load(void) {
    static const char name[] = "libgomp.so.1";
    static char policy[48];
    runtime = serial;
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!handle) {
        const char *variables[] = {policy};
        bool chosen = getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT");
        snprintf(policy, sizeof policy, "GOMP_SPINCOUNT=%d", spin_count());
        handle = vlp_library_open(name, variables, chosen ? 0 : 1);
    }
    if (!handle) return;
    functions found;
#define FIND(type, name, parameters, arguments) *(void **)&found.name = dlsym(handle, #name);
    FUNCTIONS(FIND)
#define MISSING(type, name, parameters, arguments) || !found.name
    if (false FUNCTIONS(MISSING)) return; /* older than gcc 6 */
    runtime = found;
}

#define PASS_ON(type, name, parameters, arguments)                                                      \
    type name parameters {                                                                              \
        pthread_once(&once, load);                                                                      \
        return runtime.name arguments;                                                                  \
    }
FUNCTIONS(PASS_ON)

#endif
