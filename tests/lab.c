#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lab_device(void) {
    const char *named = getenv("VLP_TEST_DEVICE");
    return named && *named ? named : "cpu";
}

const vlp_backend *lab_backend(void) {
    const vlp_backend *backend = NULL;
    if (vlp_backend_find(&backend, lab_device()) != VLP_OK) fail_msg("%s", vlp_error_message());
    return backend;
}

const vlp_backend *lab_gpu(void) {
    const vlp_backend *gpu = NULL;
    if (vlp_backend_find(&gpu, "cuda") == VLP_OK) return gpu;
    bool asked = strcmp(lab_device(), "cuda") == 0;
    printf("%s: %s\n", asked ? "a GPU was asked for" : "no GPU here: skipped", vlp_error_message());
    if (asked) exit(1);
    return NULL;
}

void lab_open(lab *bench, int32_t threads, uint64_t seed) {
    lab_open_on(bench, lab_backend(), threads, seed);
}

void lab_open_on(lab *bench, const vlp_backend *backend, int32_t threads, uint64_t seed) {
    memset(bench, 0, sizeof *bench);
    bench->backend = backend;
    bench->threads = threads;
    bench->random.seed = seed;
    if (bench->backend->open(&bench->compute, threads) != VLP_OK) fail_msg("%s", vlp_error_message());
}

void lab_clear(lab *bench) {
    while (bench->hosts > 0) free(bench->host[--bench->hosts]);
    while (bench->devices > 0)
        bench->backend->memory->release(bench->compute, bench->device[--bench->devices]);
}

void lab_close(lab *bench) {
    lab_clear(bench);
    bench->backend->close(bench->compute);
}

/* ---- Arrays -------------------------------------------------------------------------------------- */

static void *host_array(lab *bench, int64_t count, size_t size) {
    assert_true(bench->hosts < LAB_ARRAYS);
    void *memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    bench->host[bench->hosts++] = memory;
    return memory;
}

int32_t lab_between(lab *bench, int32_t low, int32_t high) {
    return low + oracle_below(&bench->random, high - low + 1);
}

double *lab_zeros(lab *bench, int64_t count) {
    return host_array(bench, count, sizeof(double));
}

double *lab_random(lab *bench, int64_t count, double range) {
    double *values = lab_zeros(bench, count);
    for (int64_t i = 0; i < count; i++) {
        double unit = (double)oracle_below(&bench->random, 1 << 24) * 0x1p-24;
        values[i] = (double)(float)(range * (2 * unit - 1));
    }
    return values;
}

double *lab_shares(lab *bench, int64_t count) {
    double *shares = lab_random(bench, count, 1), sum = 0;
    for (int64_t i = 0; i < count; i++) sum += fabs(shares[i]) + 0.125;
    for (int64_t i = 0; i < count; i++) shares[i] = (double)(float)((fabs(shares[i]) + 0.125) / sum);
    return shares;
}

vlp_weight_form lab_weighing(lab *bench, int kind) {
    return (vlp_weight_form){(vlp_weighing)kind, 0.25f * (float)lab_between(bench, 0, 6),
                             0.5f * (float)lab_between(bench, 0, 4),
                             0.5f * (float)lab_between(bench, -1, 3), lab_between(bench, 0, 1) == 1};
}

int32_t *lab_ids(lab *bench, int64_t count, int32_t low, int32_t high) {
    int32_t *ids = host_array(bench, count, sizeof *ids);
    for (int64_t i = 0; i < count; i++) ids[i] = lab_between(bench, low, high);
    return ids;
}

void *lab_put_bytes(lab *bench, const void *bytes, size_t size) {
    assert_true(bench->devices < LAB_ARRAYS);
    void *memory = bench->backend->memory->allocate(bench->compute, size + 1);
    assert_non_null(memory);
    bench->device[bench->devices++] = memory;
    if (size > 0)
        assert_int_equal(bench->backend->memory->upload(bench->compute, memory, bytes, size), VLP_OK);
    return memory;
}

float *lab_put(lab *bench, const double *values, int64_t count) {
    float *bf16 = malloc(((size_t)count + 1) * sizeof *bf16);
    assert_non_null(bf16);
    for (int64_t i = 0; i < count; i++) bf16[i] = (float)values[i];
    float *memory = lab_put_bytes(bench, bf16, (size_t)count * sizeof *bf16);
    free(bf16);
    return memory;
}

int32_t *lab_put_ids(lab *bench, const int32_t *ids, int64_t count) {
    return lab_put_bytes(bench, ids, (size_t)count * sizeof *ids);
}

void lab_get_bytes(lab *bench, void *to, const void *from, size_t size) {
    if (size == 0) return;
    if (bench->backend->memory->download(bench->compute, to, from, size) != VLP_OK)
        fail_msg("%s", vlp_error_message());
}

double lab_get_double(lab *bench, const double *value) {
    double got;
    lab_get_bytes(bench, &got, value, sizeof got);
    return got;
}

double *lab_get(lab *bench, const float *values, int64_t count) {
    double *wide = lab_zeros(bench, count);
    float *narrow = malloc(((size_t)count + 1) * sizeof *narrow);
    assert_non_null(narrow);
    lab_get_bytes(bench, narrow, values, (size_t)count * sizeof *narrow);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)narrow[i];
    free(narrow);
    return wide;
}

/* ---- bf16 copies ------------------------------------------------------------------------------ */

double lab_bf16(double x) {
    int exponent;
    double mantissa = frexp(x, &exponent); /* 8 bits of it are kept; nearbyint uses_bf16 to even */
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

vlp_bf16 *lab_bf16_places(lab *bench, const vlp_bf16_layout *layout, int64_t rows) {
    size_t size = (size_t)rows * (size_t)vlp_bf16_layout_stride(layout) * sizeof(vlp_bf16);
    void *bytes = malloc(size + 1);
    assert_non_null(bytes);
    memset(bytes, 0x41, size);
    vlp_bf16 *places = lab_put_bytes(bench, bytes, size);
    free(bytes);
    return places;
}

double *lab_get_bf16(lab *bench, const vlp_bf16 *values, const vlp_bf16_layout *layout, int64_t rows) {
    int64_t stride = vlp_bf16_layout_stride(layout), width = (int64_t)layout->parts * layout->width;
    double *out = lab_zeros(bench, rows * width);
    vlp_bf16 *all = malloc((size_t)(rows * stride) * sizeof *all + 1);
    assert_non_null(all);
    lab_get_bytes(bench, all, values, (size_t)(rows * stride) * sizeof *all);
    for (int64_t i = 0; i < rows * stride; i++) {
        int64_t part = i % stride / layout->padded, at = i % stride % layout->padded;
        uint32_t bits = (uint32_t)all[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (at < layout->width)
            out[i / stride * width + part * layout->width + at] = (double)value;
        else
            assert_int_equal(all[i], 0);
    }
    free(all);
    return out;
}

/* ---- Judging ------------------------------------------------------------------------------------- */

void lab_expect(const char *what, const double *expected, const double *got, int64_t count,
                double tolerance, double floor) {
    for (int64_t i = 0; i < count; i++) {
        bool near = isinf(expected[i])
                        ? got[i] == expected[i]
                        : fabs(got[i] - expected[i]) <= tolerance * (fabs(expected[i]) + floor);
        if (near) continue;
        print_error("%s: number %lld of %lld is %.9g, expected %.9g\n", what, (long long)i,
                    (long long)count, got[i], expected[i]);
        fail();
    }
}

void lab_expect_near(const char *what, const double *expected, const double *got, int64_t count) {
    lab_expect(what, expected, got, count, 1e-5, 1);
}

void lab_expect_gradient(const char *what, const double *expected, const double *got, int64_t count) {
    lab_expect(what, expected, got, count, 5e-4, 0.02);
}

void lab_expect_bf16(const char *what, const double *expected, const double *got, int64_t count) {
    lab_expect(what, expected, got, count, 0x1p-8, 1e-3);
}

void lab_expect_close(const char *what, const double *expected, const double *got, int64_t count,
                      double tolerance) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isinf(expected[i]) && expected[i] == got[i]) continue;
        difference += (got[i] - expected[i]) * (got[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    double off = size > 0 ? sqrt(difference / size) : sqrt(difference);
    if (off <= tolerance) return; /* and not when it is no number */
    print_error("%s: off by %.3g, allowed %.3g\n", what, off, tolerance);
    fail();
}

void lab_expect_same_bits(lab *bench, const char *what, const double *before, const float *now,
                          int64_t count) {
    const double *after = lab_get(bench, now, count);
    if (memcmp(before, after, (size_t)count * sizeof *after) == 0) return;
    print_error("%s: the same work gave other bits\n", what);
    fail();
}

/* ---- Slopes -------------------------------------------------------------------------------------- */

double lab_slope(double *x, lab_function f, const void *context) {
    double at = *x, step = 1e-6;
    *x = at + step;
    double up = f(context);
    *x = at - step;
    double down = f(context);
    *x = at;
    return (up - down) / (2 * step);
}

void lab_slopes(double *out, double *x, int64_t count, lab_function f, const void *context) {
    for (int64_t i = 0; i < count; i++) out[i] = lab_slope(x + i, f, context);
}
