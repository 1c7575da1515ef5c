/* Rows of tables: gathering, scattering, norms, elementwise passes. */
#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"

void cpu_gather(vlp_compute *compute, float *out, const float *table, const int32_t *ids, int64_t count,
                int32_t width) {
    size_t bytes = (size_t)width * sizeof *out;
#pragma omp parallel for num_threads(compute->threads) if (count * width > 65536)
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            memset(out + i * width, 0, bytes);
        else
            memcpy(out + i * width, table + (int64_t)ids[i] * width, bytes);
    }
}

VLP_CLONES static void add_row(float *to, const float *row, float weight, int32_t width) {
    for (int32_t j = 0; j < width; j++) to[j] += weight * row[j];
}

void cpu_add_row(float *to, const float *row, float weight, int32_t width) {
    add_row(to, row, weight, width);
}

vlp_status cpu_scatter_add(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                           const float *weights, const int32_t *ids, int64_t count,
                           int32_t rows_of_table, int32_t width) {
    cpu_segments *segments = &compute->segments;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, ids, count, rows_of_table));
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (count * width > 16384)
    for (int64_t s = 0; s < segments->segments; s++) {
        float *to = table + (int64_t)segments->row[s] * width;
        cpu_touch(to, touched, segments->row[s], width);
        for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
            int32_t item = segments->order[i];
            add_row(to, rows + (int64_t)item * width, weights ? weights[item] : 1.0f, width);
        }
    }
    return VLP_OK;
}

vlp_status cpu_scatter_mean(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                            float weight, const int32_t *ids, const int32_t *counts, int64_t count,
                            int32_t most, int32_t rows_of_table, int32_t width) {
    cpu_segments *segments = &compute->segments;
    compute->segments_of = NULL;
    int64_t items = count * most;
    int32_t *there = vlp_alloc((size_t)items, sizeof *there);
    if (!there) return vlp_fail_memory("references");
    for (int64_t i = 0; i < items; i++) there[i] = i % most < counts[i / most] ? ids[i] : -1;
    vlp_status status = cpu_segments_make(segments, there, items, rows_of_table);
    vlp_free(there);
    VLP_TRY(status);
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (items * width > 16384)
    for (int64_t s = 0; s < segments->segments; s++) {
        float *to = table + (int64_t)segments->row[s] * width;
        cpu_touch(to, touched, segments->row[s], width);
        for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
            int64_t row = segments->order[i] / most;
            add_row(to, rows + row * width, weight / (float)counts[row], width);
        }
    }
    return VLP_OK;
}

VLP_CLONES static float square_row(const float *row, int32_t width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < width; j++) sum += row[j] * row[j];
    return sum;
}

void cpu_inverse_norms(vlp_compute *compute, float *out, const float *table, int64_t rows,
                       int32_t width) {
#pragma omp parallel for num_threads(compute->threads) if (rows * width > 65536)
    for (int64_t i = 0; i < rows; i++) {
        float norm = sqrtf(square_row(table + i * width, width));
        out[i] = norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
    }
}

/* Parts are summed in their order, whichever thread made them. */
static double sum_in_order(const float *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)parts[i];
    return sum;
}

/* In double: the square of a gradient of 1e20 is still a number. */
VLP_CLONES static double square_chunk(const float *values, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    return sum;
}

double cpu_square_chunk(const float *values, int64_t count) {
    return square_chunk(values, count);
}

void cpu_square_sum(vlp_compute *compute, double *out, const float *values, const uint8_t *touched,
                    int64_t rows, int32_t width) {
    enum { CHUNK = 64 }; /* rows */
    int64_t chunks = (rows + CHUNK - 1) / CHUNK;
    double *parts = vlp_alloc_zero((size_t)chunks, sizeof *parts), sum = 0;
    if (!parts) {
        *out = NAN;
        return;
    }
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (rows * width > 65536)
    for (int64_t c = 0; c < chunks; c++)
        for (int64_t i = c * CHUNK; i < rows && i < (c + 1) * CHUNK; i++)
            if (!touched || touched[i]) parts[c] += square_chunk(values + i * width, width);
    /* In their order, whichever thread made them. */
    for (int64_t c = 0; c < chunks; c++) sum += parts[c];
    vlp_free(parts);
    *out = sum;
}

void cpu_sum(vlp_compute *compute, double *out, const float *values, int64_t count, double weight) {
    (void)compute;
    *out += weight * sum_in_order(values, count);
}

/* ---- Elementwise passes over rows ---------------------------------------------------------------- */

VLP_CLONES static float dot_row(const float *left, const float *right, int32_t width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < width; j++) sum += left[j] * right[j];
    return sum;
}

float cpu_dot_row(const float *left, const float *right, int32_t width) {
    return dot_row(left, right, width);
}

void cpu_add(vlp_compute *compute, float *x, const float *y, int64_t count) {
#pragma omp parallel for num_threads(compute->threads) if (count > 65536)
    for (int64_t i = 0; i < count; i++) x[i] += y[i];
}

void cpu_project_add(vlp_compute *compute, float *grad, const float *a, const float *t,
                     const float *inverse_norms, int64_t rows, int32_t width) {
#pragma omp parallel for num_threads(compute->threads) if (rows * width > 65536)
    for (int64_t i = 0; i < rows; i++) {
        const float *from = a + i * width, *row = t + i * width;
        float along = dot_row(from, row, width) * inverse_norms[i] * inverse_norms[i];
        for (int32_t j = 0; j < width; j++) grad[i * width + j] += from[j] - row[j] * along;
    }
}

void cpu_scale_columns(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                       int64_t columns) {
#pragma omp parallel for num_threads(compute->threads) if (rows * columns > 65536)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) x[i * columns + j] *= scale[j];
}

/* d |z|^3 = 3 |z| z, for a real number and for both parts of a complex one. Returns the sum of cubes. */
static float n3_row(float *g, const float *x, float weight, int32_t width, bool moduli) {
    float total = 0;
    int32_t half = width / 2;
    for (int32_t j = 0; moduli && j < half; j++) {
        float size = sqrtf(x[j] * x[j] + x[j + half] * x[j + half]);
        total += size * size * size;
        g[j] += 3 * weight * size * x[j];
        g[j + half] += 3 * weight * size * x[j + half];
    }
    for (int32_t j = 0; !moduli && j < width; j++) {
        float size = fabsf(x[j]);
        total += size * size * size;
        g[j] += 3 * weight * size * x[j];
    }
    return total;
}

/* A row that is meant several times has its gradient as many times. */
vlp_status cpu_n3_loss(vlp_compute *compute, double *loss, float *grad, uint8_t *touched,
                       const float *table, const int32_t *ids, int64_t count, int32_t rows,
                       int32_t width, float weight, bool moduli) {
    cpu_segments *segments = &compute->segments;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, ids, count, rows));
    float *parts = cpu_scratch(compute, segments->segments);
    if (!parts) return VLP_ERROR_MEMORY;
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (count * width > 4096)
    for (int64_t s = 0; s < segments->segments; s++) {
        int64_t row = segments->row[s];
        float times = (float)(segments->start[s + 1] - segments->start[s]);
        cpu_touch(grad + row * width, touched, row, width);
        parts[s] =
            times * n3_row(grad + row * width, table + row * width, weight * times, width, moduli);
    }
    *loss += (double)weight * sum_in_order(parts, segments->segments);
    return VLP_OK;
}
