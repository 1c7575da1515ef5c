/* The walk over pairs fused with the update of their entities: an entity's gradient stays in registers,
 * and the walk, which is bound by instruction throughput, overlaps with the update, which is bound by
 * memory bandwidth. */
#include "compute/cuda/pairs_bf16.h"
#include "compute/cuda/update.h"

/* ---- Norms --------------------------------------------------------------------------------------- */

/* The sum of squares of a slice. An update and slice_squares add in the same order: same bits. */
template <int COUNT> __device__ static float square_of(const float x[COUNT][4]) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < COUNT; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) add_square(sum, x[part][i]);
    return warp_sum(sum);
}

/* squares (slices, rows) of a table. */
template <int COUNT>
__global__ static void __launch_bounds__(WALK_THREADS)
    slice_squares(float *squares, const float *table, vlp_bf16_layout layout, int32_t rows) {
    int32_t row = static_cast<int32_t>(blockIdx.x * (WALK_THREADS / 32) + threadIdx.x / 32);
    int32_t first = static_cast<int32_t>(blockIdx.y) * SLICE + 4 * (threadIdx.x % 32);
    if (row >= rows) return;
    const float *from = table + static_cast<int64_t>(row) * COUNT * layout.width + first;
    float x[COUNT][4];
    load_units<COUNT>(x, from, layout.width, layout.width - first, layout.width % 4 == 0);
    float square = square_of<COUNT>(x);
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

/* Four columns of an entity, of every part. */
template <vlp_similarity SIMILARITY> struct entity_columns {
    static constexpr int COUNT = PARTS<SIMILARITY>;
    float x[COUNT][4], m[COUNT][4] = {}, v[COUNT][4];
    int64_t row, at; /* the entity; the offset of its first number */
    int32_t first, width;

    __device__ entity_columns(const vlp_updated &table, int64_t row_of_warp, int32_t first_of_lane)
        : row(row_of_warp), at(row * COUNT * table.layout.width + first_of_lane), first(first_of_lane),
          width(table.layout.width) {
    }

    __device__ void load(float out[4], const float *from, int part) const {
        load4(out, from + at + part * width, width - first, width % 4 == 0);
    }

    __device__ void put(float *to, const float values[4], int part) const {
        put4(to + at + part * width, values, width - first, width % 4 == 0, false);
    }

    __device__ void read(const vlp_updated &table, int kind) {
#pragma unroll
        for (int part = 0; part < COUNT; part++) {
            load(x[part], table.value, part);
            load(v[part], table.second, part);
            if (kind == 0) load(m[part], table.first, part);
        }
    }

    /* The columns in bf16: the bf16 copy need not be read. */
    __device__ packed<SIMILARITY, 4> bf16() const {
        packed<SIMILARITY, 4> k;
#pragma unroll
        for (int part = 0; part < COUNT; part++)
            *reinterpret_cast<uint2 *>(k.at[part]) = bf16_four(x[part]);
        return k;
    }

    __device__ static uint2 bf16_four(const float four[4]) {
        return {bf16_pair(four[0], four[1]), bf16_pair(four[2], four[3])};
    }

    __device__ void update(const row_update &u, const vlp_updated &table, const float grad[COUNT][4]) {
#pragma unroll
        for (int part = 0; part < COUNT; part++) {
            update_numbers<4>(u, x[part], grad[part], m[part], v[part]);
            put(table.value, x[part], part);
            put(table.second, v[part], part);
            if (u.kind == 0) put(table.first, m[part], part);
            /* The padding of the copy is zeros, as are the numbers of x beyond the width. */
            if (first < table.layout.padded)
                *reinterpret_cast<uint2 *>(table.bf16 + row * vlp_bf16_layout_stride(&table.layout) +
                                           part * table.layout.padded + first) = bf16_four(x[part]);
        }
    }
};

/* Adds the gradient of a row that other operations have touched. */
template <vlp_similarity SIMILARITY>
__device__ static void add_touched(float grad[PARTS<SIMILARITY>][4], const vlp_updated &table,
                                   const entity_columns<SIMILARITY> &columns) {
    if (!table.touched || !table.touched[columns.row]) return;
    float more[4];
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++) {
        columns.load(more, table.grad, part);
#pragma unroll
        for (int i = 0; i < 4; i++) grad[part][i] += more[i];
    }
}

/* One warp per entity and slice. The slices of an entity are adjacent warps: for most widths slices are
 * not cache-line aligned, and a line that two of them share is read and written once where both run at
 * the same time. The operands of the update are loaded before the walk, which hides their latency. */
enum { PAIR_UPDATE_THREADS = 128 };

/* weights (total) in sorted order. */
template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(PAIR_UPDATE_THREADS, 8)
    update_pairs(vlp_update update, const __grid_constant__ vlp_updated table,
                 const vlp_step_values *values, float *squares, const float *weights, bf16_rows from,
                 sorted_pairs pairs, int32_t slices) {
    int32_t warp = static_cast<int32_t>(blockIdx.x * (PAIR_UPDATE_THREADS / 32) + threadIdx.x / 32);
    bf16_walk<SIMILARITY, 32> at(from, warp / slices, warp % slices);
    bool fault = update.report && update.report->fault != VLP_FAULT_NONE;
    if (fault || at.row >= pairs.entities) return;
    entity_columns<SIMILARITY> columns(table, at.row, at.first);
    float grad[PARTS<SIMILARITY>][4] = {}, finite = 0;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    columns.read(table, update.kind);
    if (begin < end) walk_backward(grad, at, columns.bf16(), pairs, weights, begin, end);
    add_touched(grad, table, columns);
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) finite += 0.0f * grad[part][i];
    if (finite != 0) note_fault(update.report, table.table, values->step);
    columns.update(open_update(update, table, values), table, grad);
    if (!squares) return;
    float square = square_of<PARTS<SIMILARITY>>(columns.x);
    if (at.lane == 0) squares[static_cast<int64_t>(at.slice) * pairs.entities + at.row] = square;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

template <vlp_similarity SIMILARITY>
static void launch_update(vlp_compute *compute, const vlp_updated *table, float *squares,
                          const vlp_update *update, const pair_work *work, const float *sorted) {
    int64_t warps = static_cast<int64_t>(work->pairs.entities) * work->cut.slices;
    LAUNCH(compute, update_pairs<SIMILARITY>, cuda_blocks(warps, PAIR_UPDATE_THREADS / 32),
           PAIR_UPDATE_THREADS, 0, *update, *table, compute->values, squares, sorted, rows_of(work),
           work->pairs, work->cut.slices);
}

template <int COUNT>
static void launch_squares(vlp_compute *compute, const pair_work *work, float *squares) {
    LAUNCH(compute, slice_squares<COUNT>, work->grid, WALK_THREADS, 0, squares, work->table,
           work->given->layout, work->pairs.entities);
}

static void finish(vlp_compute *compute, const pair_work *work, float *out, const float *squares) {
    LAUNCH(compute, finish_norms, cuda_blocks(work->pairs.entities, 256), 256, 0, out, squares,
           work->cut.slices, work->pairs.entities);
}

void cuda_updated_pairs(vlp_compute *compute, const vlp_updated *table, const vlp_update *update,
                        const pair_work *work, const float *sorted) {
    int64_t cells = static_cast<int64_t>(work->cut.slices) * work->pairs.entities;
    float *squares = table->inverse_norms ? scratch<float>(compute, SLOT_PAIR_SQUARES, cells) : nullptr;
    if (table->inverse_norms && !squares) return;
    with_similarity(work->form->similarity, [&](auto similarity) {
        launch_update<decltype(similarity)::value>(compute, table, squares, update, work, sorted);
    });
    if (squares) finish(compute, work, table->inverse_norms, squares);
    if (table->touched)
        cuda_note(compute,
                  cudaMemsetAsync(table->touched, 0, static_cast<size_t>(table->rows), compute->stream),
                  "clearing marks");
}

vlp_status cuda_pair_norms(vlp_compute *compute, float *out, const float *table, int32_t entities,
                           const vlp_bf16_layout *layout) {
    vlp_pairs given = {};
    pair_work work = {};
    given.layout = *layout;
    work.given = &given;
    work.table = table;
    work.pairs.entities = entities;
    work.cut.slices = (layout->padded + SLICE - 1) / SLICE;
    work.grid = dim3(cuda_blocks(entities, WALK_THREADS / 32), static_cast<unsigned>(work.cut.slices));
    float *squares =
        scratch<float>(compute, SLOT_PAIR_SQUARES, static_cast<int64_t>(work.cut.slices) * entities);
    if (!squares || entities == 0) return cuda_status(compute);
    assert(layout->parts == 1 || layout->parts == 2); /* those of the similarities */
    (layout->parts == 1 ? launch_squares<1> : launch_squares<2>)(compute, &work, squares);
    finish(compute, &work, out, squares);
    return cuda_status(compute);
}
