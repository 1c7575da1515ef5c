/* Pairs and the update of their entities in one: an entity's gradient stays in registers, and the walk,
 * which waits for instructions, and the update, which waits for memory, fill each other's gaps. */
#include "compute/cuda/pairs_rounded.h"
#include "compute/cuda/update.h"

/* ---- Norms --------------------------------------------------------------------------------------- */

/* Squares of a slice, lane by lane; made here and when a table was loaded, by the same sums. */
template <int SIMILARITY> __device__ static float square_of(const float x[PARTS<SIMILARITY>][4]) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) add_square(sum, x[part][i]);
    return warp_sum(sum);
}

/* squares (slices, rows): of a table as it stands. */
template <int SIMILARITY>
__global__ static void __launch_bounds__(WALK_THREADS)
    slice_squares(float *squares, const float *table, vlp_rounding rounding, int32_t rows) {
    int32_t row = static_cast<int32_t>(blockIdx.x * (WALK_THREADS / 32) + threadIdx.x / 32);
    int32_t first = static_cast<int32_t>(blockIdx.y) * SLICE + 4 * (threadIdx.x % 32);
    if (row >= rows) return;
    const float *from = table + static_cast<int64_t>(row) * PARTS<SIMILARITY> * rounding.width + first;
    float x[PARTS<SIMILARITY>][4];
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
        load4(x[part], from + part * rounding.width, rounding.width - first, rounding.width % 4 == 0);
    float square = square_of<SIMILARITY>(x);
    if (threadIdx.x % 32 == 0) squares[static_cast<int64_t>(blockIdx.y) * rows + row] = square;
}

__global__ static void finish_norms(float *out, const float *squares, int32_t slices, int32_t rows) {
    int32_t row = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0;
    if (row >= rows) return;
    for (int32_t slice = 0; slice < slices; slice++)
        sum += squares[static_cast<int64_t>(slice) * rows + row];
    float norm = sqrtf(sum);
    out[row] = norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
}

/* ---- The walk ------------------------------------------------------------------------------------ */

/* Four columns of a row, of every part: all is read before anything is written. */
template <int SIMILARITY>
__device__ static void update_columns(const row_update &u, const vlp_updated &table,
                                      float grad[PARTS<SIMILARITY>][4], float x[PARTS<SIMILARITY>][4],
                                      int64_t row, int32_t first) {
    constexpr int COUNT = PARTS<SIMILARITY>;
    int32_t width = table.rounding.width, left = width - first;
    int64_t at = row * COUNT * width + first;
    bool aligned = width % 4 == 0;
    float m[COUNT][4] = {}, v[COUNT][4];
#pragma unroll
    for (int part = 0; part < COUNT; part++) {
        load4(x[part], table.value + at + part * width, left, aligned);
        load4(v[part], table.second + at + part * width, left, aligned);
        if (u.kind == 0) load4(m[part], table.first + at + part * width, left, aligned);
    }
#pragma unroll
    for (int part = 0; part < COUNT; part++) {
        update_numbers<4>(u, x[part], grad[part], m[part], v[part]);
        put4(table.value + at + part * width, x[part], left, aligned, false);
        put4(table.second + at + part * width, v[part], left, aligned, false);
        if (u.kind == 0) put4(table.first + at + part * width, m[part], left, aligned, false);
        /* Behind the last number the copy has zeros, as x has. */
        if (first < table.rounding.padded)
            *reinterpret_cast<uint2 *>(table.rounded + row * vlp_rounding_stride(&table.rounding) +
                                       part * table.rounding.padded + first) = {
                rounded_pair(x[part][0], x[part][1]), rounded_pair(x[part][2], x[part][3])};
    }
}

/* Asks for what update_columns will read, so that it comes while the pairs are walked. */
template <int SIMILARITY>
__device__ static void fetch_columns(const vlp_updated &table, int kind, int64_t row, int32_t first) {
    if (first >= table.rounding.width) return;
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++) {
        int64_t at = (row * PARTS<SIMILARITY> + part) * table.rounding.width + first;
        fetch(table.value + at);
        fetch(table.second + at);
        if (kind == 0) fetch(table.first + at);
    }
}

/* Grid: (chunks of entities, slices); a warp has an entity and a slice. weights (total) in sorted order.
 */
template <int SIMILARITY>
__global__ static void __launch_bounds__(WALK_THREADS, 18)
    update_pairs(vlp_update update, const __grid_constant__ vlp_updated table,
                 const vlp_step_values *values, float *squares, const float *weights, rounded_rows from,
                 sorted_pairs pairs) {
    rounded_walk<SIMILARITY, 32> at(from);
    bool fault = update.report && update.report->fault != VLP_FAULT_NONE;
    if (fault || at.row >= pairs.entities) return;
    float grad[PARTS<SIMILARITY>][4] = {}, x[PARTS<SIMILARITY>][4], finite = 0;
    fetch_columns<SIMILARITY>(table, update.kind, at.row, at.first);
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin < end) walk_backward(grad, at, from, pairs, weights, begin, end);
    int32_t width = from.rounding.width, left = width - at.first;
    if (table.touched && table.touched[at.row]) {
        float more[4];
#pragma unroll
        for (int part = 0; part < PARTS<SIMILARITY>; part++) {
            int64_t place = (static_cast<int64_t>(at.row) * PARTS<SIMILARITY> + part) * width + at.first;
            load4(more, table.grad + place, left, width % 4 == 0);
#pragma unroll
            for (int i = 0; i < 4; i++) grad[part][i] += more[i];
        }
    }
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) finite += 0.0f * grad[part][i];
    if (finite != 0) note_fault(update.report, table.table, values->step);
    update_columns<SIMILARITY>(open_update(update, table, values), table, grad, x, at.row, at.first);
    if (!squares) return;
    float square = square_of<SIMILARITY>(x);
    if (at.lane == 0) squares[static_cast<int64_t>(blockIdx.y) * pairs.entities + at.row] = square;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

template <int SIMILARITY>
static void launch_update(vlp_compute *compute, const pair_work *work, const vlp_update *update,
                          const vlp_updated *table, float *squares, const float *sorted) {
    LAUNCH(compute, update_pairs<SIMILARITY>, work->grid, WALK_THREADS, 0, *update, *table,
           compute->values, squares, sorted, rows_of(work), work->pairs);
}

template <int SIMILARITY>
static void launch_squares(vlp_compute *compute, const pair_work *work, float *squares) {
    LAUNCH(compute, slice_squares<SIMILARITY>, work->grid, WALK_THREADS, 0, squares, work->table,
           work->given->rounding, work->pairs.entities);
}

static void finish(vlp_compute *compute, const pair_work *work, float *out, const float *squares) {
    LAUNCH(compute, finish_norms, cuda_blocks(work->pairs.entities, 256), 256, 0, out, squares,
           work->cut.slices, work->pairs.entities);
}

void cuda_updated_pairs(vlp_compute *compute, const pair_work *work, const vlp_update *update,
                        const vlp_updated *table, const float *sorted) {
    int64_t cells = static_cast<int64_t>(work->cut.slices) * work->pairs.entities;
    float *squares = table->inverse_norms ? scratch<float>(compute, SLOT_PAIR_SQUARES, cells) : nullptr;
    if (table->inverse_norms && !squares) return;
    switch (work->form->similarity) {
    case VLP_DOT:
        launch_update<VLP_DOT>(compute, work, update, table, squares, sorted);
        break;
    case VLP_MINUS_L1:
        launch_update<VLP_MINUS_L1>(compute, work, update, table, squares, sorted);
        break;
    case VLP_MINUS_L2:
        launch_update<VLP_MINUS_L2>(compute, work, update, table, squares, sorted);
        break;
    case VLP_MINUS_MODULUS:
        launch_update<VLP_MINUS_MODULUS>(compute, work, update, table, squares, sorted);
        break;
    }
    if (squares) finish(compute, work, table->inverse_norms, squares);
    if (table->touched)
        cuda_note(compute,
                  cudaMemsetAsync(table->touched, 0, static_cast<size_t>(table->rows), compute->stream),
                  "clearing marks");
}

vlp_status cuda_pair_norms(vlp_compute *compute, float *out, const float *table, int32_t entities,
                           const vlp_rounding *rounding) {
    vlp_pairs given = {};
    pair_work work = {};
    given.rounding = *rounding;
    work.given = &given;
    work.table = table;
    work.pairs.entities = entities;
    work.cut.slices = (rounding->padded + SLICE - 1) / SLICE;
    work.grid = dim3(cuda_blocks(entities, WALK_THREADS / 32), static_cast<unsigned>(work.cut.slices));
    float *squares =
        scratch<float>(compute, SLOT_PAIR_SQUARES, static_cast<int64_t>(work.cut.slices) * entities);
    if (!squares || entities == 0) return cuda_status(compute);
    if (rounding->parts == 2)
        launch_squares<VLP_MINUS_MODULUS>(compute, &work, squares);
    else
        launch_squares<VLP_DOT>(compute, &work, squares);
    finish(compute, &work, out, squares);
    return cuda_status(compute);
}
