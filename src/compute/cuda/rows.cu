/* Rows of tables: gathering, scattering, norms, elementwise passes, sums. */
#include "compute/cuda/device.h"

/* ---- Gathering ----------------------------------------------------------------------------------- */

__global__ static void gather_rows(float *out, const float *table, const int32_t *ids, int32_t width) {
    int64_t i = blockIdx.x;
    int32_t id = ids[i];
    for (int32_t j = threadIdx.x; j < width; j += blockDim.x)
        out[i * width + j] = id < 0 ? 0.0f : table[static_cast<int64_t>(id) * width + j];
}

void cuda_gather(vlp_compute *compute, float *out, const float *table, const int32_t *ids, int64_t count,
                 int32_t width) {
    if (count == 0) return;
    LAUNCH(compute, gather_rows, static_cast<unsigned>(count), 128, 0, out, table, ids, width);
}

/* ---- Scattering ---------------------------------------------------------------------------------- */

enum { SCATTER_THREADS = 128 };

/* A block for every item and slice of columns; only the first item of a segment does anything, for the
 * whole of it. Items stand for rows item / most, weighted by weights[item], or weight / counts[row]. */
__global__ static void scatter_rows(float *table, uint8_t *touched, const float *rows,
                                    const float *weights, float weight, const int32_t *counts,
                                    cuda_segments segments, int64_t count, int32_t most,
                                    uint32_t table_rows, int32_t width) {
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, table_rows)) return;
    int64_t end = segment_end(segments.keys, at, count), row = segments.keys[at];
    if (touched && threadIdx.x == 0 && blockIdx.y == 0) touched[row] = 1;
    int64_t j = static_cast<int64_t>(blockIdx.y) * SCATTER_THREADS + threadIdx.x;
    if (j >= width) return;
    float sum = table[row * width + j];
#pragma unroll 4
    for (int64_t i = at; i < end; i++) {
        int64_t item = segments.order[i], from = item / most;
        float share = counts    ? weight / static_cast<float>(counts[from])
                      : weights ? weights[item]
                                : weight;
        sum += share * rows[from * width + j];
    }
    table[row * width + j] = sum;
}

static void scatter(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                    const float *weights, float weight, const int32_t *ids, const int32_t *counts,
                    int64_t items, int32_t most, int32_t table_rows, int32_t width) {
    cuda_segments segments;
    if (!cuda_sort(compute, &segments, ids, items, table_rows, SLOT_SORT_KEYS, SLOT_SORT_ITEMS)) return;
    dim3 grid(static_cast<unsigned>(items), cuda_blocks(width, SCATTER_THREADS));
    LAUNCH(compute, scatter_rows, grid, SCATTER_THREADS, 0, table, touched, rows, weights, weight,
           counts, segments, items, most, static_cast<uint32_t>(table_rows), width);
}

vlp_status cuda_scatter_add(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                            const float *weights, const int32_t *ids, int64_t count,
                            int32_t rows_of_table, int32_t width) {
    if (count > 0)
        scatter(compute, table, touched, rows, weights, 1.0f, ids, nullptr, count, 1, rows_of_table,
                width);
    return cuda_status(compute);
}

__global__ static void mark_there(int32_t *out, const int32_t *ids, const int32_t *counts, int64_t items,
                                  int32_t most) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < items) out[i] = i % most < counts[i / most] ? ids[i] : -1;
}

vlp_status cuda_scatter_mean(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                             float weight, const int32_t *ids, const int32_t *counts, int64_t count,
                             int32_t most, int32_t rows_of_table, int32_t width) {
    int64_t items = count * most;
    if (items == 0) return cuda_status(compute);
    int32_t *there = scratch<int32_t>(compute, SLOT_MEAN_IDS, items);
    if (!there) return cuda_status(compute);
    LAUNCH(compute, mark_there, cuda_blocks(items, 256), 256, 0, there, ids, counts, items, most);
    scatter(compute, table, touched, rows, nullptr, weight, there, counts, items, most, rows_of_table,
            width);
    return cuda_status(compute);
}

/* ---- Sums ---------------------------------------------------------------------------------------- */

enum { SUM_BLOCKS = 1024, SUM_THREADS = 256 };

__global__ static void add_sum(double *out, const float *values, int64_t count, double weight) {
    __shared__ double shared[32];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += static_cast<double>(values[i]);
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) *out += weight * sum;
}

void cuda_sum(vlp_compute *compute, double *out, const float *values, int64_t count, double weight) {
    LAUNCH(compute, add_sum, 1, 512, 0, out, values, count, weight);
}

/* In double: the square of a gradient of 1e20 is still a number. */
__global__ static void square_parts(double *parts, const float *values, int64_t count) {
    __shared__ double shared[32];
    double sum = 0;
    int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x, quads = count / 4;
    int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 *four = reinterpret_cast<const float4 *>(values);
#pragma unroll 2
    for (int64_t i = first; i < quads; i += stride) {
        float4 v = four[i];
        sum += static_cast<double>(v.x) * v.x + static_cast<double>(v.y) * v.y +
               static_cast<double>(v.z) * v.z + static_cast<double>(v.w) * v.w;
    }
    for (int64_t i = 4 * quads + first; i < count; i += stride)
        sum += static_cast<double>(values[i]) * values[i];
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ static void set_sum(double *out, const double *parts, int count) {
    __shared__ double shared[32];
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) *out = sum;
}

void cuda_square_sum(vlp_compute *compute, double *out, const float *values, int64_t count) {
    double *parts = scratch<double>(compute, SLOT_SUMS, SUM_BLOCKS);
    if (!parts) return;
    int64_t wanted = (count + 4 * SUM_THREADS - 1) / (4 * SUM_THREADS);
    int blocks = wanted < 1 ? 1 : wanted < SUM_BLOCKS ? static_cast<int>(wanted) : SUM_BLOCKS;
    LAUNCH(compute, square_parts, blocks, SUM_THREADS, 0, parts, values, count);
    LAUNCH(compute, set_sum, 1, 256, 0, out, parts, blocks);
}

/* ---- Norms: a warp a row ------------------------------------------------------------------------- */

enum { ROW_WARPS = 8 };

__device__ static int64_t my_row(void) {
    return static_cast<int64_t>(blockIdx.x) * ROW_WARPS + threadIdx.x / 32;
}

static unsigned row_blocks(int64_t rows) {
    return cuda_blocks(rows, ROW_WARPS);
}

__device__ static float dot_row(const float *left, const float *right, int32_t width) {
    float sum = 0;
#pragma unroll 4
    for (int32_t j = threadIdx.x % 32; j < width; j += 32) sum += left[j] * right[j];
    return warp_sum(sum);
}

__global__ static void set_inverse_norms(float *out, const float *table, int64_t rows, int32_t width) {
    int64_t row = my_row();
    if (row >= rows) return;
    float norm = sqrtf(dot_row(table + row * width, table + row * width, width));
    if (threadIdx.x % 32 == 0) out[row] = norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
}

void cuda_inverse_norms(vlp_compute *compute, float *out, const float *table, int64_t rows,
                        int32_t width) {
    if (rows == 0) return;
    LAUNCH(compute, set_inverse_norms, row_blocks(rows), 32 * ROW_WARPS, 0, out, table, rows, width);
}

__global__ static void project_rows(float *grad, const float *a, const float *t,
                                    const float *inverse_norms, int64_t rows, int32_t width) {
    int64_t row = my_row();
    if (row >= rows) return;
    const float *from = a + row * width, *axis = t + row * width;
    float along = dot_row(from, axis, width) * inverse_norms[row] * inverse_norms[row];
    for (int32_t j = threadIdx.x % 32; j < width; j += 32)
        grad[row * width + j] += from[j] - axis[j] * along;
}

void cuda_project_add(vlp_compute *compute, float *grad, const float *a, const float *t,
                      const float *inverse_norms, int64_t rows, int32_t width) {
    if (rows == 0) return;
    LAUNCH(compute, project_rows, row_blocks(rows), 32 * ROW_WARPS, 0, grad, a, t, inverse_norms, rows,
           width);
}

/* ---- Elementwise passes -------------------------------------------------------------------------- */

__device__ static int64_t my_item(void) {
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ static void add_all(float *x, const float *y, int64_t count) {
    int64_t i = my_item();
    if (i < count) x[i] += y[i];
}

void cuda_add(vlp_compute *compute, float *x, const float *y, int64_t count) {
    if (count == 0) return;
    LAUNCH(compute, add_all, cuda_blocks(count, 256), 256, 0, x, y, count);
}

__global__ static void scale_all(float *x, const float *scale, int64_t columns) {
    int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) x[i * columns + j] *= scale[j];
}

void cuda_scale_columns(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                        int64_t columns) {
    if (rows == 0) return;
    LAUNCH(compute, scale_all, static_cast<unsigned>(rows), 512, 0, x, scale, columns);
}

/* ---- Rounded copies ------------------------------------------------------------------------------ */

__global__ static void round_all(vlp_bf16 *out, vlp_rounding rounding, const float *from,
                                 int64_t stride) {
    int64_t row = blockIdx.x;
    int32_t width = vlp_rounding_stride(&rounding);
    for (int32_t j = threadIdx.x; j < width; j += blockDim.x) {
        int32_t part = j / rounding.padded, at = j - part * rounding.padded;
        out[row * width + j] =
            at < rounding.width ? rounded(from[row * stride + part * rounding.width + at]) : 0;
    }
}

void cuda_round_rows(vlp_compute *compute, vlp_bf16 *out, const vlp_rounding *rounding,
                     const float *from, int64_t stride, int64_t rows) {
    if (rows == 0) return;
    LAUNCH(compute, round_all, static_cast<unsigned>(rows), 256, 0, out, *rounding, from, stride);
}

__global__ static void strip_all(float *out, vlp_rounding rounding, const float *from) {
    int64_t row = blockIdx.x;
    int32_t width = rounding.parts * rounding.width;
    for (int32_t j = threadIdx.x; j < width; j += blockDim.x)
        out[row * width + j] = from[row * vlp_rounding_stride(&rounding) + rounded_place(rounding, j)];
}

void cuda_strip_rows(vlp_compute *compute, float *out, const vlp_rounding *rounding, const float *from,
                     int64_t rows) {
    if (rows == 0) return;
    LAUNCH(compute, strip_all, static_cast<unsigned>(rows), 256, 0, out, *rounding, from);
}

/* ---- N3 ------------------------------------------------------------------------------------------ */

/* d |z|^3 = 3 |z| z, for a real number and for both parts of a complex one. */
__global__ static void cube_rows(float *parts, float *grad, const float *rows_in, float weight,
                                 int32_t width, bool moduli) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x;
    const float *x = rows_in + i * width;
    float *g = grad + i * width, total = 0;
    int32_t half = width / 2;
    for (int32_t j = threadIdx.x; j < (moduli ? half : width); j += blockDim.x) {
        float size = moduli ? sqrtf(x[j] * x[j] + x[j + half] * x[j + half]) : fabsf(x[j]);
        total += size * size * size;
        g[j] += 3 * weight * size * x[j];
        if (moduli) g[j + half] += 3 * weight * size * x[j + half];
    }
    total = block_sum(total, shared);
    if (threadIdx.x == 0) parts[i] = total;
}

void cuda_cube_loss(vlp_compute *compute, float *grad, double *loss, const float *rows_in, float weight,
                    int64_t rows, int32_t width, bool moduli) {
    if (rows == 0) return;
    float *parts = scratch<float>(compute, SLOT_SUMS, rows > 2 * SUM_BLOCKS ? rows : 2 * SUM_BLOCKS);
    if (!parts) return;
    LAUNCH(compute, cube_rows, static_cast<unsigned>(rows), 128, 0, parts, grad, rows_in, weight, width,
           moduli);
    cuda_sum(compute, loss, parts, rows, static_cast<double>(weight));
}
