/* A bench for operations of a backend: arrays of doubles that are fp32 numbers exactly, their copies on
 * the backend, comparisons that name the number that is off, and slopes by finite differences.
 *
 * Everything crosses over by upload and download, so that any backend can stand behind the table. */
#ifndef VLP_TESTS_LAB_H
#define VLP_TESTS_LAB_H

#include "compute/backend.h"
#include "oracle.h"
#include "support.h"

enum { LAB_ARRAYS = 1024 };

typedef struct lab {
    const vlp_backend *backend;
    vlp_compute *compute;
    int32_t threads;
    oracle_random random;
    void *host[LAB_ARRAYS], *device[LAB_ARRAYS];
    int hosts, devices;
} lab;

/* The backend under test: the CPU's, or the one that VLP_TEST_DEVICE names. */
const char *lab_device(void);
const vlp_backend *lab_backend(void);
/* The GPU's, NULL without one: says so, and ends the program where one was asked for. */
const vlp_backend *lab_gpu(void);

void lab_open(lab *bench, int32_t threads, uint64_t seed);
void lab_open_on(lab *bench, const vlp_backend *backend, int32_t threads, uint64_t seed);
/* Lets go of all arrays; the backend stays open. */
void lab_clear(lab *bench);
void lab_close(lab *bench);

/* ---- Arrays on this side, the bench's until it is cleared ---- */
int32_t lab_between(lab *bench, int32_t low, int32_t high); /* both included */
double *lab_zeros(lab *bench, int64_t count);
double *lab_random(lab *bench, int64_t count, double range);            /* within +-range */
double *lab_shares(lab *bench, int64_t count);                          /* above 0, about 1 in all */
vlp_weight_form lab_weighing(lab *bench, int kind);                     /* of that vlp_weighing */
int32_t *lab_ids(lab *bench, int64_t count, int32_t low, int32_t high); /* both included */

/* ---- Arrays on the backend ---- */
float *lab_put(lab *bench, const double *values, int64_t count);
int32_t *lab_put_ids(lab *bench, const int32_t *ids, int64_t count);
void *lab_put_bytes(lab *bench, const void *bytes, size_t size);
double *lab_get(lab *bench, const float *values, int64_t count);
double lab_get_double(lab *bench, const double *value);
void lab_get_bytes(lab *bench, void *to, const void *from, size_t size);

/* ---- bf16 copies ---- */
double lab_bf16(double x); /* the nearest number in bf16, of two the even one */
/* Places for rows of a bf16 copy, with something in them. */
vlp_bf16 *lab_bf16_places(lab *bench, const vlp_bf16_layout *layout, int64_t rows);
/* The rows (rows, parts * width) of a bf16 copy; what is between their parts has to be zeros. */
double *lab_get_bf16(lab *bench, const vlp_bf16 *values, const vlp_bf16_layout *layout, int64_t rows);

/* ---- Judging ---- */
/* |got - expected| <= tolerance (|expected| + floor); infinities have to be the same. */
void lab_expect(const char *what, const double *expected, const double *got, int64_t count,
                double tolerance, double floor);
/* What fp32 sums of a few dozen numbers of about 1 can be held to. */
void lab_expect_near(const char *what, const double *expected, const double *got, int64_t count);
void lab_expect_gradient(const char *what, const double *expected, const double *got, int64_t count);
/* What numbers that were bf16 once, to bf16, can be held to. */
void lab_expect_bf16(const char *what, const double *expected, const double *got, int64_t count);
/* The length of the difference is at most `tolerance` of that of what is expected. */
void lab_expect_close(const char *what, const double *expected, const double *got, int64_t count,
                      double tolerance);
/* An array on the backend has the same bits as `before`, which came from lab_get. */
void lab_expect_same_bits(lab *bench, const char *what, const double *before, const float *now,
                          int64_t count);

/* ---- Slopes ---- */
typedef double (*lab_function)(const void *context);
/* d f / d *x by central differences. f reads x through its context. */
double lab_slope(double *x, lab_function f, const void *context);
void lab_slopes(double *out, double *x, int64_t count, lab_function f, const void *context);

#endif
