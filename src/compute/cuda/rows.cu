/* Rows of tables: gather, scatter, norms, elementwise passes, sums, bf16 copies, N3. */
#include "compute/cuda/device.h"
#include "compute/dropout.h"

/* ---- Gather -------------------------------------------------------------------------------------- */

/* Four columns per thread. */
__global__ static void gather_rows(float *out, const float *table, const int32_t *ids, int32_t width,
                                   bool aligned) {
    int64_t i = blockIdx.x, id = ids[i];
    int32_t j = 4 * my_column(), left = width - j;
    float four[4] = {0, 0, 0, 0};
    if (left <= 0) return;
    if (id >= 0) load4(four, table + id * width + j, left, aligned);
    put4(out + i * width + j, four, left, aligned, false);
}

void cuda_gather(vlp_compute *compute, float *out, const float *table, const int32_t *ids, int64_t count,
                 int32_t width) {
    if (count == 0) return;
    uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(table);
    LAUNCH(compute, gather_rows, cuda_grid(count, (width + 3) / 4), COLUMN_BLOCK, 0, out, table, ids,
           width, width % 4 == 0 && addresses % sizeof(float4) == 0);
}

/* ---- Scatter ------------------------------------------------------------------------------------- */

enum { SCATTER_THREADS = 128 };

/* holds (count): whether the row of a segment was touched before, at its first item. */
__global__ static void touch_rows(uint8_t *holds, uint8_t *touched, cuda_segments segments,
                                  int64_t count, uint32_t table_rows) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count || !segment_begins(segments.keys, at, table_rows)) return;
    holds[at] = touched[segments.keys[at]];
    touched[segments.keys[at]] = 1;
}

/* What is added to rows of a table: item i is row i / capacity, weighted by weights[i], or by
 * weight / counts[i / capacity]. */
typedef struct scatter_items {
    const float *rows;
    const float *weights; /* (count), or NULL */
    float weight;
    const int32_t *counts; /* (count / capacity), or NULL */
    int64_t count;
    int32_t capacity;
} scatter_items;

/* Grid: (items, slices of columns), four columns per thread. The block of the first item of a segment
 * adds for all of it, in the order of items; the others end at once. */
__global__ static void __launch_bounds__(SCATTER_THREADS)
    scatter_rows(vlp_table_gradient table, const uint8_t *holds, scatter_items items,
                 cuda_segments segments, bool aligned) {
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, static_cast<uint32_t>(table.count))) return;
    int64_t end = segment_end(segments.keys, at, items.count), row = segments.keys[at];
    int32_t width = table.width;
    int32_t j = 4 * (static_cast<int32_t>(blockIdx.y) * SCATTER_THREADS + threadIdx.x), left = width - j;
    if (left <= 0) return;
    float sum[4] = {0, 0, 0, 0}, more[4];
    if (!holds || holds[at]) load4(sum, table.rows + row * width + j, left, aligned);
#pragma unroll 2
    for (int64_t i = at; i < end; i++) {
        int64_t item = segments.order[i], from = item / items.capacity;
        float share = items.counts    ? items.weight / static_cast<float>(items.counts[from])
                      : items.weights ? items.weights[item]
                                      : items.weight;
        load4(more, items.rows + from * width + j, left, aligned);
#pragma unroll
        for (int k = 0; k < 4; k++) sum[k] += share * more[k];
    }
    put4(table.rows + row * width + j, sum, left, aligned, false);
}

/* Sorts items by their rows and marks these as touched; *holds: see touch_rows, NULL without marks. */
static bool open_segments(vlp_compute *compute, cuda_segments *segments, const uint8_t **holds,
                          const vlp_table_gradient *table, const int32_t *ids, int64_t items) {
    uint8_t *touched = table->touched;
    uint8_t *noted = touched ? scratch<uint8_t>(compute, SLOT_HOLDS, items) : nullptr;
    *holds = noted;
    if ((touched && !noted) ||
        !cuda_sort(compute, segments, ids, items, static_cast<int32_t>(table->count), SLOT_SORT_KEYS,
                   SLOT_SORT_ITEMS))
        return false;
    if (touched)
        LAUNCH(compute, touch_rows, cuda_blocks(items, 256), 256, 0, noted, touched, *segments, items,
               static_cast<uint32_t>(table->count));
    return true;
}

static void scatter(vlp_compute *compute, const vlp_table_gradient *table, const scatter_items *items,
                    const int32_t *ids) {
    cuda_segments segments;
    const uint8_t *holds;
    if (!open_segments(compute, &segments, &holds, table, ids, items->count)) return;
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(table->rows) | reinterpret_cast<uintptr_t>(items->rows);
    dim3 grid(static_cast<unsigned>(items->count), cuda_blocks(table->width, 4 * SCATTER_THREADS));
    LAUNCH(compute, scatter_rows, grid, SCATTER_THREADS, 0, *table, holds, *items, segments,
           table->width % 4 == 0 && addresses % sizeof(float4) == 0);
}

vlp_status cuda_scatter_add(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                            const float *weights, const int32_t *ids, int64_t count) {
    scatter_items items = {rows, weights, 1.0f, nullptr, count, 1};
    if (count > 0) scatter(compute, table, &items, ids);
    return cuda_status(compute);
}

__global__ static void mask_ids(int32_t *out, const int32_t *ids, const int32_t *counts, int64_t items,
                                int32_t capacity) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < items) out[i] = i % capacity < counts[i / capacity] ? ids[i] : -1;
}

static vlp_status scatter_mean(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                               float weight, const vlp_id_lists *lists) {
    scatter_items items = {
        rows, nullptr, weight, lists->counts, lists->count * lists->capacity, lists->capacity};
    if (items.count == 0) return cuda_status(compute);
    int32_t *masked = scratch<int32_t>(compute, SLOT_MEAN_IDS, items.count);
    if (!masked) return cuda_status(compute);
    LAUNCH(compute, mask_ids, cuda_blocks(items.count, 256), 256, 0, masked, lists->ids, lists->counts,
           items.count, lists->capacity);
    scatter(compute, table, &items, masked);
    return cuda_status(compute);
}

/* ---- Dropout ------------------------------------------------------------------------------------- */

/* One thread per group of columns. */
__global__ static void drop_out(float *out, const float *in, vlp_dropout dropout,
                                const vlp_step_values *values) {
    int64_t i = blockIdx.x;
    int32_t group = my_column(), groups = vlp_dropout_groups(&dropout);
    if (group >= groups) return;
    vlp_random4 bits = vlp_dropout_bits(&dropout, values->step, i, group);
    out += i * dropout.width;
    in += i * dropout.width;
#pragma unroll
    for (int32_t k = 0; k < VLP_DROPOUT_GROUP; k++) {
        int32_t column = k * groups + group;
        if (column < dropout.width)
            out[column] = in[column] * vlp_dropout_factor(&dropout, bits.v[k / 2], k);
    }
}

static void dropout_rows(vlp_compute *compute, float *out, const float *in, const vlp_dropout *dropout) {
    assert(dropout->rows <= VLP_DROPOUT_ROWS);
    if (dropout->rows == 0) return;
    LAUNCH(compute, drop_out, cuda_grid(dropout->rows, vlp_dropout_groups(dropout)), COLUMN_BLOCK, 0,
           out, in, *dropout, compute->values);
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

static void sum_values(vlp_compute *compute, double *out, const float *values, int64_t count,
                       double weight) {
    LAUNCH(compute, add_sum, 1, 512, 0, out, values, count, weight);
}

/* In double: the square of a gradient of 1e20 is finite. Rows are strided over the blocks. */
__global__ static void square_parts(double *parts, const float *values, const uint8_t *touched,
                                    int64_t rows, int32_t width) {
    __shared__ double shared[32];
    double sum = 0;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        if (touched && !touched[row]) continue;
        const float *row_values = values + row * width;
#pragma unroll 4
        for (int32_t j = threadIdx.x; j < width; j += SUM_THREADS)
            sum += static_cast<double>(row_values[j]) * row_values[j];
    }
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

static void square_sum(vlp_compute *compute, double *out, const vlp_table_gradient *grad) {
    double *parts = scratch<double>(compute, SLOT_SUMS, SUM_BLOCKS);
    if (!parts) return;
    int64_t rows = grad->count;
    int blocks = rows < 1 ? 1 : rows < SUM_BLOCKS ? static_cast<int>(rows) : SUM_BLOCKS;
    LAUNCH(compute, square_parts, blocks, SUM_THREADS, 0, parts, grad->rows, grad->touched, rows,
           grad->width);
    LAUNCH(compute, set_sum, 1, 256, 0, out, parts, blocks);
}

/* ---- Norms and projections ----------------------------------------------------------------------- */

/* One warp per row. */
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

__global__ static void __launch_bounds__(NORM_THREADS)
    set_inverse_norms(float *out, const float *table, int32_t width) {
    __shared__ float shared[32];
    const float *row = table + static_cast<int64_t>(blockIdx.x) * width;
    int32_t each = in_quads(width) ? 4 : 1;
    float sum = 0;
    for (int32_t j = each * threadIdx.x; j < width; j += each * NORM_THREADS)
        for (int32_t i = 0; i < each; i++) add_square(sum, row[j + i]);
    float inverse = inverse_norm(sum, shared);
    if (threadIdx.x == 0) out[blockIdx.x] = inverse;
}

static void inverse_norms(vlp_compute *compute, float *out, const float *table, int64_t rows,
                          int32_t width) {
    if (rows == 0) return;
    LAUNCH(compute, set_inverse_norms, static_cast<unsigned>(rows), NORM_THREADS, 0, out, table, width);
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

static void project_add(vlp_compute *compute, float *grad, const float *a, const float *t,
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

static void scale_columns(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                          int64_t columns) {
    if (rows == 0) return;
    LAUNCH(compute, scale_all, static_cast<unsigned>(rows), 512, 0, x, scale, columns);
}

/* ---- bf16 copies --------------------------------------------------------------------------------- */

__global__ static void convert_all(vlp_bf16 *out, vlp_bf16_layout layout, const float *from,
                                   int64_t stride) {
    int64_t row = blockIdx.x;
    int32_t j = my_column(), width = vlp_bf16_layout_stride(&layout);
    if (j >= width) return;
    int32_t part = j / layout.padded, at = j - part * layout.padded;
    out[row * width + j] = at < layout.width ? bf16(from[row * stride + part * layout.width + at]) : 0;
}

void cuda_convert_rows(vlp_compute *compute, vlp_bf16 *out, const vlp_bf16_layout *layout,
                       const float *from, int64_t stride, int64_t rows) {
    if (rows == 0) return;
    LAUNCH(compute, convert_all, cuda_grid(rows, vlp_bf16_layout_stride(layout)), COLUMN_BLOCK, 0, out,
           *layout, from, stride);
}

/* ---- N3 ------------------------------------------------------------------------------------------ */

/* d |x|^3 = 3 |x| x, for every part of a unit. One block per item; that of the first item of a segment
 * works for all of it: they have the same row. Squares are added from the last part to the first. */
__global__ static void n3_rows(float *parts, vlp_table_gradient grad, const float *table,
                               const uint8_t *holds, cuda_segments segments, int64_t count,
                               vlp_n3_options options) {
    __shared__ float shared[32];
    int64_t at = blockIdx.x;
    bool begins = segment_begins(segments.keys, at, static_cast<uint32_t>(grad.count));
    if (!begins && threadIdx.x == 0) parts[at] = 0;
    if (!begins) return;
    float times = static_cast<float>(segment_end(segments.keys, at, count) - at), total = 0;
    bool add = !holds || holds[at];
    int32_t width = grad.width, columns = width / options.parts;
    const float *x = table + static_cast<int64_t>(segments.keys[at]) * width;
    float *g = grad.rows + static_cast<int64_t>(segments.keys[at]) * width;
    for (int32_t j = threadIdx.x; j < columns; j += blockDim.x) {
        float unit[VLP_MAX_PARTS] = {}, before[VLP_MAX_PARTS] = {}, square = 0;
#pragma unroll
        for (int part = 0; part < VLP_MAX_PARTS; part++) {
            if (part < options.parts) unit[part] = x[part * columns + j];
            if (part < options.parts && add) before[part] = g[part * columns + j];
        }
#pragma unroll
        for (int part = VLP_MAX_PARTS - 1; part >= 0; part--) square += unit[part] * unit[part];
        float size = options.parts == 1 ? fabsf(unit[0]) : sqrtf(square);
        float slope = 3 * options.weight * times * size;
        total += size * size * size;
#pragma unroll
        for (int part = 0; part < VLP_MAX_PARTS; part++)
            if (part < options.parts) g[part * columns + j] = before[part] + slope * unit[part];
    }
    total = block_sum(total, shared);
    if (threadIdx.x == 0) parts[at] = times * total;
}

static vlp_status n3_loss(vlp_compute *compute, double *loss, const vlp_table_gradient *grad,
                          const float *table, const int32_t *ids, int64_t count,
                          const vlp_n3_options *options) {
    cuda_segments segments;
    const uint8_t *holds;
    float *parts = scratch<float>(compute, SLOT_SUMS, count > 2 * SUM_BLOCKS ? count : 2 * SUM_BLOCKS);
    if (count == 0 || !parts || !open_segments(compute, &segments, &holds, grad, ids, count))
        return cuda_status(compute);
    LAUNCH(compute, n3_rows, static_cast<unsigned>(count), 512, 0, parts, *grad, table, holds, segments,
           count, *options);
    sum_values(compute, loss, parts, count, static_cast<double>(options->weight));
    return cuda_status(compute);
}

const vlp_row_operations cuda_row_operations = {.gather = cuda_gather,
                                                .scatter_add = cuda_scatter_add,
                                                .scatter_mean = scatter_mean,
                                                .add = cuda_add,
                                                .project_add = project_add,
                                                .inverse_norms = inverse_norms,
                                                .scale_columns = scale_columns,
                                                .dropout = dropout_rows,
                                                .sum = sum_values,
                                                .square_sum = square_sum,
                                                .n3_loss = n3_loss};
