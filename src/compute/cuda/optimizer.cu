/* One fused pass over all tables, one block per row: loads gradient and moments, stores moments and
 * parameters, their bf16 copy and the row's norm. Rate, corrections, clipping and faults are read on the
 * device. */
#include "compute/cuda/update.h"

enum { UPDATE_THREADS = NORM_THREADS };

/* The tables: block first[i] + row updates a row of table i. */
typedef struct update_list {
    vlp_updated tables[VLP_MAX_TABLES];
    int64_t first[VLP_MAX_TABLES + 1];
} update_list;

/* A thread's sums over its columns of a row. */
typedef struct row_sums {
    float square; /* of the new values */
    float finite; /* 0 times the gradient: not 0 where that is NaN or infinite */
} row_sums;

__device__ static void copy_quad(vlp_bf16 *copy, const vlp_bf16_layout &layout, const float x[4],
                                 int32_t j) {
    if (layout.width % 4 == 0) {
        *reinterpret_cast<uint2 *>(copy + bf16_position(layout, j)) = {bf16_pair(x[0], x[1]),
                                                                       bf16_pair(x[2], x[3])};
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) copy[bf16_position(layout, j + i)] = bf16(x[i]);
}

/* Four numbers at a time. */
__device__ static row_sums update_quads(const row_update &u, const vlp_updated &table, int64_t row,
                                        bool touched) {
    row_sums sums = {0, 0};
    int64_t at = row * table.width;
    vlp_bf16 *copy = table.bf16 ? table.bf16 + row * vlp_bf16_layout_stride(&table.layout) : nullptr;
    for (int32_t j = 4 * threadIdx.x; j < table.width; j += 4 * UPDATE_THREADS) {
        float x[4], v[4], m[4] = {0, 0, 0, 0}, g[4] = {0, 0, 0, 0};
        load4(x, table.value + at + j, 4, true);
        load4(v, table.second + at + j, 4, true);
        if (u.kind == 0) load4(m, table.first + at + j, 4, true);
        if (touched) load4(g, table.grad + at + j, 4, true);
        update_numbers<4>(u, x, g, m, v);
        put4(table.value + at + j, x, 4, true, false);
        put4(table.second + at + j, v, 4, true, false);
        if (u.kind == 0) put4(table.first + at + j, m, 4, true, false);
        if (copy) copy_quad(copy, table.layout, x, j);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            add_square(sums.square, x[i]);
            sums.finite += 0.0f * g[i];
        }
    }
    return sums;
}

__device__ static row_sums update_singles(const row_update &u, const vlp_updated &table, int64_t row,
                                          bool touched) {
    row_sums sums = {0, 0};
    int64_t at = row * table.width;
    vlp_bf16 *copy = table.bf16 ? table.bf16 + row * vlp_bf16_layout_stride(&table.layout) : nullptr;
    for (int32_t j = threadIdx.x; j < table.width; j += UPDATE_THREADS) {
        float x = table.value[at + j], v = table.second[at + j], g = touched ? table.grad[at + j] : 0.0f;
        float m = u.kind == 0 ? table.first[at + j] : 0.0f;
        update_numbers<1>(u, &x, &g, &m, &v);
        table.value[at + j] = x;
        table.second[at + j] = v;
        if (u.kind == 0) table.first[at + j] = m;
        if (copy) copy[bf16_position(table.layout, j)] = bf16(x);
        add_square(sums.square, x);
        sums.finite += 0.0f * g;
    }
    return sums;
}

__global__ static void __launch_bounds__(UPDATE_THREADS)
    update_rows(vlp_update update, const __grid_constant__ update_list list,
                const vlp_step_values *values) {
    __shared__ float shared[32];
    int i = 0;
    while (static_cast<int64_t>(blockIdx.x) >= list.first[i + 1]) i++;
    const vlp_updated &table = list.tables[i];
    int64_t row = blockIdx.x - list.first[i];
    bool touched = !table.touched || table.touched[row];
    bool fault = update.report && update.report->fault != VLP_FAULT_NONE;
    /* A barrier: the block agrees on the fault, which other blocks may record meanwhile, and all threads
     * have read the mark before it is cleared. */
    if (__syncthreads_or(fault) || (table.lazy && !touched)) return;
    row_update u = open_update(update, table, values);
    row_sums sums = in_quads(table.width) ? update_quads(u, table, row, touched)
                                          : update_singles(u, table, row, touched);
    if (sums.finite != 0) note_fault(update.report, table.table, values->step);
    if (table.inverse_norms) {
        float inverse = inverse_norm(sums.square, shared);
        if (threadIdx.x == 0) table.inverse_norms[row] = inverse;
    }
    if (table.touched && threadIdx.x == 0) table.touched[row] = 0;
}

static void update_tables(vlp_compute *compute, const vlp_update *update, const vlp_updated *tables,
                          int32_t count) {
    assert(count <= VLP_MAX_TABLES);
    update_list list = {};
    for (int32_t i = 0; i < count; i++) {
        assert(tables[i].table >= 0 && tables[i].table < VLP_MAX_TABLES);
        list.tables[i] = tables[i];
        list.first[i + 1] = list.first[i] + tables[i].rows;
    }
    if (list.first[count] == 0) return;
    LAUNCH(compute, update_rows, static_cast<unsigned>(list.first[count]), UPDATE_THREADS, 0, *update,
           list, compute->values);
}

const vlp_optimizer_operations cuda_optimizer_operations = {.update = update_tables};
