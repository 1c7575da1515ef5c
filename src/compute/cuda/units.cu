/* Unit-wise transforms of rows, and their gradients: no atomics, sums in a fixed order. */
#include "compute/cuda/units.h"

/* ---- Rows: one thread per unit ------------------------------------------------------------------- */

/* The index of row i in `rows`, -1 where masked. */
__device__ static int64_t row_at(const cuda_unit_rows &rows, int64_t i) {
    return rows.ids ? rows.ids[i] : i;
}

__device__ static const float *relation_of(const cuda_unit_rows &rows, const vlp_form &form,
                                           int64_t group) {
    int64_t relation = rows.relations ? rows.relations[group] : 0;
    return rows.relation_table + relation * form.relation_width;
}

/* There are less than 2^31 rows; the branch keeps the division out of batches of single rows. */
__device__ static int64_t group_of(const cuda_unit_rows &rows, int64_t i) {
    return rows.group == 1 ? i : static_cast<uint32_t>(i) / static_cast<uint32_t>(rows.group);
}

/* What the formulas read of a whole row: the first COUNT sums, of x, and of dy where COUNT is more than
 * SUMS. The whole block adds, in an order that depends on its size alone; every thread gets the sums. */
template <class UNIT, int COUNT>
__device__ static vlp_unit_row sum_row(const vlp_form &form, bool linear, const float *x,
                                       const float *dy, const float *r) {
    vlp_unit_row row = {};
    row.scale = form.phase_scale;
    row.linear = linear;
    if constexpr (COUNT > 0) {
        __shared__ float shared[32];
        int32_t columns = form.entity_width / UNIT::PARTS;
        float sums[COUNT] = {};
        for (int32_t j = threadIdx.x; j < columns; j += blockDim.x) {
            float unit[UNIT::PARTS], relation[UNIT::RELATION_PARTS], p[UNIT::PREPARED], terms[COUNT];
            load_unit<UNIT::RELATION_PARTS>(relation, r, j, columns);
            UNIT::prepare(p, relation, form.phase_scale);
            load_unit<UNIT::PARTS>(unit, x, j, columns);
            UNIT::terms(terms, unit, p);
            if constexpr (COUNT > UNIT::SUMS) {
                load_unit<UNIT::PARTS>(unit, dy, j, columns);
                UNIT::terms_backward(terms + UNIT::SUMS, unit, p);
            }
#pragma unroll
            for (int s = 0; s < COUNT; s++) sums[s] += terms[s];
        }
#pragma unroll
        for (int s = 0; s < COUNT; s++) row.sums[s] = block_sum(sums[s], shared);
    }
    return row;
}

/* Grid: cuda_grid of rows and units. */
template <class UNIT, bool ANSWER>
__global__ static void unit_rows(vlp_form form, float *y, cuda_unit_rows rows, bool linear) {
    int64_t i = blockIdx.x, at = row_at(rows, i);
    int32_t j = my_column(), columns = form.entity_width / UNIT::PARTS;
    float *to = y + i * form.query_width;
    float out[UNIT::PARTS] = {};
    if (at >= 0) {
        const float *x = rows.rows + at * form.entity_width;
        const float *r = relation_of(rows, form, group_of(rows, i));
        vlp_unit_row row = sum_row<UNIT, UNIT::SUMS>(form, linear, x, nullptr, r);
        if (j >= columns) return;
        float unit[UNIT::PARTS], relation[UNIT::RELATION_PARTS], p[UNIT::PREPARED];
        load_unit<UNIT::RELATION_PARTS>(relation, r, j, columns);
        UNIT::prepare(p, relation, form.phase_scale);
        load_unit<UNIT::PARTS>(unit, x, j, columns);
        UNIT::template transform<ANSWER>(out, unit, p, row);
    }
    if (j < columns) store_unit<UNIT::PARTS>(to, out, j, columns);
}

/* The same grid. sums (count, ALL_SUMS): those of every row, for the gradients of relations. */
template <class UNIT, bool ANSWER>
__global__ static void unit_rows_backward(vlp_form form, cuda_unit_gradients gradients, float *sums,
                                          cuda_unit_rows rows, bool linear) {
    int64_t i = blockIdx.x, at = row_at(rows, i);
    int32_t j = my_column(), columns = form.entity_width / UNIT::PARTS;
    if (at < 0) return;
    const float *x = rows.rows + at * form.entity_width, *dy = gradients.y_grad + i * form.query_width;
    const float *r = relation_of(rows, form, group_of(rows, i));
    float *to = gradients.rows_grad + i * form.entity_width;
    vlp_unit_row row = sum_row<UNIT, UNIT::ALL_SUMS>(form, linear, x, dy, r);
    if constexpr (UNIT::ALL_SUMS > 0)
        if (j < UNIT::ALL_SUMS) sums[i * UNIT::ALL_SUMS + j] = row.sums[j];
    if (j >= columns) return;
    float d[UNIT::PARTS], relation[UNIT::RELATION_PARTS], p[UNIT::PREPARED], grad[UNIT::PARTS] = {};
    load_unit<UNIT::PARTS>(d, dy, j, columns);
    load_unit<UNIT::RELATION_PARTS>(relation, r, j, columns);
    UNIT::prepare(p, relation, form.phase_scale);
    if (gradients.add) load_unit<UNIT::PARTS>(grad, to, j, columns);
    UNIT::template grad_row<ANSWER>(grad, d, p, row);
    store_unit<UNIT::PARTS>(to, grad, j, columns);
}

/* ---- Relations ----------------------------------------------------------------------------------- */

enum { RELATION_THREADS = 256, RELATION_WARPS = RELATION_THREADS / 32, RELATION_COLUMNS = 128 };

/* A row in the sum of a relation's gradient. */
typedef struct relation_item {
    const float *x, *dy, *sums;
} relation_item;

/* The gradient of relation r over items first .. end, a slice of RELATION_COLUMNS units; item(i) is one
 * of them, with x NULL where masked. Each warp adds every RELATION_WARPS-th item, four units per lane;
 * then the warps' sums are added in their order. */
template <class UNIT, bool ANSWER, class ITEM>
__device__ static void sum_relation(float *to, bool add, const vlp_form &form, bool linear,
                                    const float *r, int64_t first, int64_t end, bool aligned,
                                    ITEM item) {
    __shared__ float sums[RELATION_WARPS][UNIT::RELATION_PARTS][RELATION_COLUMNS];
    int32_t columns = form.entity_width / UNIT::PARTS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t j = static_cast<int32_t>(blockIdx.y) * RELATION_COLUMNS + 4 * lane, left = columns - j;
    float p[4][UNIT::PREPARED] = {}, grad[4][UNIT::RELATION_PARTS] = {};
#pragma unroll
    for (int u = 0; u < 4 && u < left; u++) {
        float relation[UNIT::RELATION_PARTS];
        load_unit<UNIT::RELATION_PARTS>(relation, r, j + u, columns);
        UNIT::prepare(p[u], relation, form.phase_scale);
    }
    vlp_unit_row row = {};
    row.scale = form.phase_scale;
    row.linear = linear;
#pragma unroll 2
    for (int64_t i = first + warp; left > 0 && i < end; i += RELATION_WARPS) {
        relation_item one = item(i);
        if (!one.x) continue;
        float x[UNIT::PARTS][4], dy[UNIT::PARTS][4];
        load_units<UNIT::PARTS>(dy, one.dy + j, columns, left, aligned);
        load_units<UNIT::PARTS>(x, one.x + j, columns, left, aligned);
#pragma unroll
        for (int s = 0; s < UNIT::ALL_SUMS; s++) row.sums[s] = one.sums[s];
#pragma unroll
        for (int u = 0; u < 4; u++)
            UNIT::template grad_relation<ANSWER>(grad[u], unit_of<UNIT::PARTS>(dy, u).at,
                                                 unit_of<UNIT::PARTS>(x, u).at, p[u], row);
    }
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
        for (int part = 0; part < UNIT::RELATION_PARTS; part++)
            sums[warp][part][4 * lane + u] = grad[u][part];
    __syncthreads();
    int column = threadIdx.x % RELATION_COLUMNS;
    j = static_cast<int32_t>(blockIdx.y) * RELATION_COLUMNS + column;
    if (j >= columns) return;
    for (int part = threadIdx.x / RELATION_COLUMNS; part < UNIT::RELATION_PARTS;
         part += RELATION_THREADS / RELATION_COLUMNS) {
        float sum = 0;
        for (int w = 0; w < RELATION_WARPS; w++) sum += sums[w][part][column];
        to[part * columns + j] = add ? to[part * columns + j] + sum : sum;
    }
}

/* Grid: (rows, slices of units). The block of the first row of a segment adds for all of it. */
template <class UNIT, bool ANSWER>
__global__ static void __launch_bounds__(RELATION_THREADS)
    unit_relations(vlp_form form, cuda_unit_gradients gradients, const float *sums, cuda_unit_rows rows,
                   cuda_segments segments, bool linear, bool aligned) {
    int64_t at = blockIdx.x;
    if (!segment_begins(segments.keys, at, static_cast<uint32_t>(gradients.relation_count))) return;
    int64_t end = segment_end(segments.keys, at, rows.count);
    int64_t offset = static_cast<int64_t>(segments.keys[at]) * form.relation_width;
    sum_relation<UNIT, ANSWER>(gradients.relation_grad + offset, true, form, linear,
                               rows.relation_table + offset, at, end, aligned, [&](int64_t i) {
                                   int64_t item = segments.order[i];
                                   return relation_item{rows.rows + item * form.entity_width,
                                                        gradients.y_grad + item * form.query_width,
                                                        sums + item * UNIT::ALL_SUMS};
                               });
}

/* Answers in groups. Grid: (groups, slices of units). */
template <class UNIT>
__global__ static void __launch_bounds__(RELATION_THREADS)
    unit_groups(vlp_form form, cuda_unit_gradients gradients, const float *sums, cuda_unit_rows rows,
                bool aligned) {
    int64_t group = blockIdx.x, first = group * rows.group;
    sum_relation<UNIT, true>(
        gradients.relation_grad + group * form.relation_width, false, form, true,
        relation_of(rows, form, group), first, first + rows.group, aligned, [&](int64_t i) {
            int64_t at = row_at(rows, i);
            return relation_item{at < 0 ? nullptr : rows.rows + at * form.entity_width,
                                 gradients.y_grad + i * form.query_width, sums + i * UNIT::ALL_SUMS};
        });
}

/* ---- Launching ----------------------------------------------------------------------------------- */

template <class UNIT, bool ANSWER>
static void launch_rows(vlp_compute *compute, float *y, const vlp_form *form, const cuda_unit_rows *rows,
                        bool linear) {
    LAUNCH(compute, (unit_rows<UNIT, ANSWER>), cuda_grid(rows->count, vlp_form_columns(form)),
           COLUMN_BLOCK, 0, *form, y, *rows, linear);
}

void cuda_unit_transform(vlp_compute *compute, float *y, const vlp_form *form,
                         const cuda_unit_rows *rows, unit_side side) {
    if (rows->count == 0) return;
    with_unit_transform(form->transform, [&](auto unit) {
        using UNIT = decltype(unit);
        if (side != SIDE_ANSWER)
            launch_rows<UNIT, false>(compute, y, form, rows, side == SIDE_LINEAR_QUERY);
        else if constexpr (UNIT::ANSWERS)
            launch_rows<UNIT, true>(compute, y, form, rows, true);
    });
}

template <class UNIT, bool ANSWER>
static void launch_backward(vlp_compute *compute, const cuda_unit_gradients *gradients,
                            const vlp_form *form, const cuda_unit_rows *rows, bool linear) {
    int32_t columns = vlp_form_columns(form);
    float *sums = scratch<float>(compute, SLOT_UNIT_SUMS, rows->count * UNIT::ALL_SUMS);
    if (!sums) return;
    LAUNCH(compute, (unit_rows_backward<UNIT, ANSWER>), cuda_grid(rows->count, columns), COLUMN_BLOCK, 0,
           *form, *gradients, sums, *rows, linear);
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(gradients->y_grad) | reinterpret_cast<uintptr_t>(rows->rows);
    bool aligned = columns % 4 == 0 && addresses % sizeof(float4) == 0;
    unsigned slices = cuda_blocks(columns, RELATION_COLUMNS);
    if (gradients->segments)
        LAUNCH(compute, (unit_relations<UNIT, ANSWER>), dim3(static_cast<unsigned>(rows->count), slices),
               RELATION_THREADS, 0, *form, *gradients, sums, *rows, *gradients->segments, linear,
               aligned);
    else if constexpr (ANSWER)
        LAUNCH(compute, unit_groups<UNIT>,
               dim3(static_cast<unsigned>(rows->count / rows->group), slices), RELATION_THREADS, 0,
               *form, *gradients, sums, *rows, aligned);
}

void cuda_unit_backward(vlp_compute *compute, const cuda_unit_gradients *gradients, const vlp_form *form,
                        const cuda_unit_rows *rows, unit_side side) {
    if (rows->count == 0) return;
    with_unit_transform(form->transform, [&](auto unit) {
        using UNIT = decltype(unit);
        if (side != SIDE_ANSWER)
            launch_backward<UNIT, false>(compute, gradients, form, rows, side == SIDE_LINEAR_QUERY);
        else if constexpr (UNIT::ANSWERS)
            launch_backward<UNIT, true>(compute, gradients, form, rows, true);
    });
}

/* ---- Relation prediction ------------------------------------------------------------------------- */

/* Of a bilinear transform: the score <q(h, r), t> is <r, v>, v its gradient of r, and <dv, v> is the
 * score with dv in the place of r. So the formulas of the query serve here too. */
template <class UNIT>
__global__ static void unit_relation_query(vlp_form form, float *v, const float *heads,
                                           const float *answers) {
    int64_t i = blockIdx.x;
    int32_t j = my_column(), columns = form.entity_width / UNIT::PARTS;
    if (j >= columns) return;
    float h[UNIT::PARTS], t[UNIT::PARTS], none[UNIT::PREPARED] = {}, out[UNIT::RELATION_PARTS] = {};
    vlp_unit_row row = {};
    row.linear = true;
    load_unit<UNIT::PARTS>(h, heads + i * form.entity_width, j, columns);
    load_unit<UNIT::PARTS>(t, answers + i * form.entity_width, j, columns);
    UNIT::template grad_relation<false>(out, t, h, none, row);
    store_unit<UNIT::RELATION_PARTS>(v + i * form.relation_width, out, j, columns);
}

template <class UNIT>
__global__ static void unit_relation_query_backward(vlp_form form, float *heads_grad,
                                                    float *answers_grad, const float *v_grad,
                                                    const float *heads, const float *answers) {
    int64_t i = blockIdx.x, e = form.entity_width;
    int32_t j = my_column(), columns = form.entity_width / UNIT::PARTS;
    if (j >= columns) return;
    float h[UNIT::PARTS], t[UNIT::PARTS], dv[UNIT::PREPARED];
    float h_grad[UNIT::PARTS], t_grad[UNIT::PARTS], q[UNIT::PARTS];
    vlp_unit_row row = {};
    row.linear = true;
    load_unit<UNIT::PARTS>(h, heads + i * e, j, columns);
    load_unit<UNIT::PARTS>(t, answers + i * e, j, columns);
    load_unit<UNIT::PREPARED>(dv, v_grad + i * form.relation_width, j, columns);
    load_unit<UNIT::PARTS>(h_grad, heads_grad + i * e, j, columns);
    load_unit<UNIT::PARTS>(t_grad, answers_grad + i * e, j, columns);
    UNIT::template grad_row<false>(h_grad, t, dv, row);
    UNIT::template transform<false>(q, h, dv, row);
#pragma unroll
    for (int part = 0; part < UNIT::PARTS; part++) t_grad[part] += q[part];
    store_unit<UNIT::PARTS>(heads_grad + i * e, h_grad, j, columns);
    store_unit<UNIT::PARTS>(answers_grad + i * e, t_grad, j, columns);
}

void cuda_unit_relation_query(vlp_compute *compute, float *v, const vlp_form *form,
                              const vlp_head_answer_rows *rows) {
    assert(vlp_transform_traits_of(form->transform).bilinear);
    with_unit_transform(form->transform, [&](auto unit) {
        using UNIT = decltype(unit);
        if constexpr (UNIT::traits.bilinear)
            LAUNCH(compute, unit_relation_query<UNIT>, cuda_grid(rows->count, vlp_form_columns(form)),
                   COLUMN_BLOCK, 0, *form, v, rows->heads, rows->answers);
    });
}

void cuda_unit_relation_query_backward(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                       const vlp_form *form, const float *v_grad,
                                       const vlp_head_answer_rows *rows) {
    assert(vlp_transform_traits_of(form->transform).bilinear);
    with_unit_transform(form->transform, [&](auto unit) {
        using UNIT = decltype(unit);
        if constexpr (UNIT::traits.bilinear)
            LAUNCH(compute, unit_relation_query_backward<UNIT>,
                   cuda_grid(rows->count, vlp_form_columns(form)), COLUMN_BLOCK, 0, *form, heads_grad,
                   answers_grad, v_grad, rows->heads, rows->answers);
    });
}
