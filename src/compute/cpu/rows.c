/* Rows of tables: gathering, scattering, norms, elementwise passes. */
#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "compute/dropout.h"

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

vlp_status cpu_scatter_add(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                           const float *weights, const int32_t *ids, int64_t count) {
    cpu_segments *segments = &compute->segments;
    int32_t width = table->width;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, ids, count, (int32_t)table->count));
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (count * width > 16384)
    for (int64_t s = 0; s < segments->segments; s++) {
        float *to = cpu_touch(table, segments->row[s]);
        for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
            int32_t item = segments->order[i];
            add_row(to, rows + (int64_t)item * width, weights ? weights[item] : 1.0f, width);
        }
    }
    return VLP_OK;
}

static vlp_status scatter_mean(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                               float weight, const vlp_id_lists *lists) {
    cpu_segments *segments = &compute->segments;
    int32_t capacity = lists->capacity, width = table->width;
    compute->segments_of = NULL;
    int64_t items = lists->count * capacity;
    int32_t *there = vlp_alloc((size_t)items, sizeof *there);
    if (!there) return vlp_fail_memory("references");
    for (int64_t i = 0; i < items; i++)
        there[i] = i % capacity < lists->counts[i / capacity] ? lists->ids[i] : -1;
    vlp_status status = cpu_segments_make(segments, there, items, (int32_t)table->count);
    vlp_free(there);
    VLP_TRY(status);
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (items * width > 16384)
    for (int64_t s = 0; s < segments->segments; s++) {
        float *to = cpu_touch(table, segments->row[s]);
        for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
            int64_t row = segments->order[i] / capacity;
            add_row(to, rows + row * width, weight / (float)lists->counts[row], width);
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

/* Partial sums are added in a fixed order, whichever thread computed them. */
static double sum_in_order(const float *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)parts[i];
    return sum;
}

/* In double: the square of a gradient of 1e20 stays finite. */
VLP_CLONES static double square_chunk(const float *values, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    return sum;
}

double cpu_square_chunk(const float *values, int64_t count) {
    return square_chunk(values, count);
}

static void square_sum(vlp_compute *compute, double *out, const vlp_table_gradient *grad) {
    enum { CHUNK = 64 }; /* rows */
    int64_t rows = grad->count, chunks = (rows + CHUNK - 1) / CHUNK;
    int32_t width = grad->width;
    double *parts = vlp_alloc_zero((size_t)chunks, sizeof *parts), sum = 0;
    if (!parts) {
        *out = NAN;
        return;
    }
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (rows * width > 65536)
    for (int64_t c = 0; c < chunks; c++)
        for (int64_t i = c * CHUNK; i < rows && i < (c + 1) * CHUNK; i++)
            if (!grad->touched || grad->touched[i])
                parts[c] += square_chunk(grad->rows + i * width, width);
    /* In a fixed order, whichever thread computed them. */
    for (int64_t c = 0; c < chunks; c++) sum += parts[c];
    vlp_free(parts);
    *out = sum;
}

static void sum_values(vlp_compute *compute, double *out, const float *values, int64_t count,
                       double weight) {
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

static void add(vlp_compute *compute, float *x, const float *y, int64_t count) {
#pragma omp parallel for num_threads(compute->threads) if (count > 65536)
    for (int64_t i = 0; i < count; i++) x[i] += y[i];
}

static void project_add(vlp_compute *compute, float *grad, const float *a, const float *t,
                        const float *inverse_norms, int64_t rows, int32_t width) {
#pragma omp parallel for num_threads(compute->threads) if (rows * width > 65536)
    for (int64_t i = 0; i < rows; i++) {
        const float *from = a + i * width, *row = t + i * width;
        float along = dot_row(from, row, width) * inverse_norms[i] * inverse_norms[i];
        for (int32_t j = 0; j < width; j++) grad[i * width + j] += from[j] - row[j] * along;
    }
}

static void scale_columns(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                          int64_t columns) {
#pragma omp parallel for num_threads(compute->threads) if (rows * columns > 65536)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) x[i * columns + j] *= scale[j];
}

/* Groups of columns whose random bits are computed at a time. */
enum { DROPOUT_CHUNK = 64 };

VLP_CLONES static void dropout_row(const vlp_dropout *given, float *out, const float *in, int64_t step,
                                   int64_t row) {
    const vlp_dropout copy = *given, *dropout = &copy; /* the loops' stores cannot change it */
    uint32_t words[4][DROPOUT_CHUNK];
    int32_t groups = vlp_dropout_groups(dropout);
    for (int32_t first = 0; first < groups; first += DROPOUT_CHUNK) {
        int32_t count = groups - first < DROPOUT_CHUNK ? groups - first : DROPOUT_CHUNK;
#pragma omp simd
        for (int32_t g = 0; g < count; g++) {
            vlp_random4 bits = vlp_dropout_bits(dropout, step, row, first + g);
            words[0][g] = bits.v[0];
            words[1][g] = bits.v[1];
            words[2][g] = bits.v[2];
            words[3][g] = bits.v[3];
        }
        for (int32_t i = 0; i < VLP_DROPOUT_GROUP; i++) {
            int32_t start = i * groups + first, left = dropout->width - start;
            int32_t end = left < count ? left : count;
#pragma omp simd
            for (int32_t g = 0; g < end; g++)
                out[start + g] = in[start + g] * vlp_dropout_factor(dropout, words[i / 2][g], i);
        }
    }
}

static void dropout_rows(vlp_compute *compute, float *out, const float *in, const vlp_dropout *dropout) {
    assert(dropout->rows <= VLP_DROPOUT_ROWS);
#pragma omp parallel for num_threads(compute->threads) if (dropout->rows * dropout->width > 4096)
    for (int64_t i = 0; i < dropout->rows; i++)
        dropout_row(dropout, out + i * dropout->width, in + i * dropout->width, compute->values.step, i);
}

/* Units whose moduli are computed at a time. */
enum { N3_CHUNK = 64 };

/* d |x|^3 = 3 |x| x, for every part of a unit. Returns the sum of cubes. Loops go over the units of one
 * part, so that they are vectorized whatever the number of parts. */
VLP_CLONES static float n3_row(float *g, const float *x, float weight, int32_t width, int32_t parts) {
    float total = 0;
    int32_t columns = width / parts;
    for (int32_t first = 0; first < columns; first += N3_CHUNK) {
        float size[N3_CHUNK] = {0};
        int32_t count = columns - first < N3_CHUNK ? columns - first : N3_CHUNK;
        for (int32_t part = 0; part < parts; part++) {
            const float *from = x + (int64_t)part * columns + first;
            for (int32_t j = 0; j < count; j++) size[j] += from[j] * from[j];
        }
        if (parts == 1)
            for (int32_t j = 0; j < count; j++) size[j] = fabsf(x[first + j]);
        else
            for (int32_t j = 0; j < count; j++) size[j] = sqrtf(size[j]);
#pragma omp simd reduction(+ : total)
        for (int32_t j = 0; j < count; j++) total += size[j] * size[j] * size[j];
        for (int32_t part = 0; part < parts; part++) {
            const float *from = x + (int64_t)part * columns + first;
            float *to = g + (int64_t)part * columns + first;
#pragma omp simd
            for (int32_t j = 0; j < count; j++) to[j] += 3 * weight * size[j] * from[j];
        }
    }
    return total;
}

/* A row whose id occurs several times gets its gradient as many times. */
static vlp_status n3_loss(vlp_compute *compute, double *loss, const vlp_table_gradient *grad,
                          const float *table, const int32_t *ids, int64_t count,
                          const vlp_n3_options *options) {
    cpu_segments *segments = &compute->segments;
    float weight = options->weight;
    int32_t width = grad->width;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(segments, ids, count, (int32_t)grad->count));
    float *parts = cpu_scratch(compute, segments->segments);
    if (!parts) return VLP_ERROR_MEMORY;
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (count * width > 4096)
    for (int64_t s = 0; s < segments->segments; s++) {
        int64_t row = segments->row[s];
        float times = (float)(segments->start[s + 1] - segments->start[s]);
        float *g = cpu_touch(grad, row);
        parts[s] = times * n3_row(g, table + row * width, weight * times, width, options->parts);
    }
    *loss += (double)weight * sum_in_order(parts, segments->segments);
    return VLP_OK;
}

const vlp_row_operations cpu_row_operations = {.gather = cpu_gather,
                                               .scatter_add = cpu_scatter_add,
                                               .scatter_mean = scatter_mean,
                                               .add = add,
                                               .project_add = project_add,
                                               .inverse_norms = cpu_inverse_norms,
                                               .scale_columns = scale_columns,
                                               .dropout = dropout_rows,
                                               .sum = sum_values,
                                               .square_sum = square_sum,
                                               .n3_loss = n3_loss};
