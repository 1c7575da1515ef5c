/* What the benches share. */
#ifndef VLP_BENCH_BENCH_H
#define VLP_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vlp.h"

static inline double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void need(vlp_status status) {
    if (status == VLP_OK) return;
    fprintf(stderr, "bench: %s\n", vlp_error_message());
    exit(1);
}

#endif
