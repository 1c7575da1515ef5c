/* The vertical aggregator: its inputs from references, its rows, and their gradients. Loads and stores
 * are vectorized, four columns per thread, where widths are multiples of four; else one. */
#include "compute/cuda/units.h"

/* ---- Adjacent columns ---------------------------------------------------------------------------- */

template <int COLUMNS> struct columns { float at[COLUMNS]; };

template <int COLUMNS> __device__ static columns<COLUMNS> load(const float *from) {
    columns<COLUMNS> out;
    if constexpr (COLUMNS == 4) {
        float4 four = *reinterpret_cast<const float4 *>(from);
        out.at[0] = four.x, out.at[1] = four.y, out.at[2] = four.z, out.at[3] = four.w;
    } else {
        out.at[0] = *from;
    }
    return out;
}

template <int COLUMNS> __device__ static void store(float *to, const columns<COLUMNS> &values) {
    if constexpr (COLUMNS == 4)
        *reinterpret_cast<float4 *>(to) =
            make_float4(values.at[0], values.at[1], values.at[2], values.at[3]);
    else
        *to = values.at[0];
}

template <int COLUMNS> __device__ static void store(vlp_bf16 *to, const columns<COLUMNS> &values) {
    if constexpr (COLUMNS == 4)
        *reinterpret_cast<uint2 *>(to) =
            make_uint2(bf16_pair(values.at[0], values.at[1]), bf16_pair(values.at[2], values.at[3]));
    else
        *to = bf16(values.at[0]);
}

template <int COLUMNS> __device__ static void add(columns<COLUMNS> *to, const columns<COLUMNS> &values) {
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) to->at[c] += values.at[c];
}

/* The padding of a bf16 row: zeros. */
__device__ static void pad_row(vlp_bf16 *row, const vlp_bf16_layout &layout) {
    for (int32_t at = layout.width; at < layout.padded; at++) row[at] = 0;
}

__device__ static float inverse_of(float norm) {
    return norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
}

/* ---- References: one block per slice of a query's columns ---------------------------------------- */

enum { REFERENCE_THREADS = 64, REFERENCE_BATCH = 4 };

/* The sums over a query's references, in their order, of the columns from j on of their answers' and of
 * their head entities' rows. REFERENCE_BATCH loads are in flight at a time; where the last batch is
 * short, its last rows are loaded again, and not added. */
template <int PARTS, int COLUMNS>
__device__ static void sum_references(columns<COLUMNS> answer[PARTS], columns<COLUMNS> head[PARTS],
                                      const vlp_reference_batch &references, int64_t query,
                                      const float *table, int32_t width, int32_t j) {
    int32_t count = references.counts[query];
    int64_t begin = query * references.capacity;
    for (int32_t first = 0; first < count; first += REFERENCE_BATCH) {
        columns<COLUMNS> answers[REFERENCE_BATCH][PARTS], heads[REFERENCE_BATCH][PARTS];
        const float *t[REFERENCE_BATCH], *h[REFERENCE_BATCH];
#pragma unroll
        for (int b = 0; b < REFERENCE_BATCH; b++) {
            int64_t at = begin + min(first + b, count - 1);
            t[b] = table + static_cast<int64_t>(references.answers[at]) * width + j;
            h[b] = table + static_cast<int64_t>(references.heads[at]) * width + j;
        }
#pragma unroll
        for (int b = 0; b < REFERENCE_BATCH; b++)
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                answers[b][part] = load<COLUMNS>(t[b] + part * (width / PARTS));
                heads[b][part] = load<COLUMNS>(h[b] + part * (width / PARTS));
            }
#pragma unroll
        for (int b = 0; b < REFERENCE_BATCH; b++)
#pragma unroll
            for (int part = 0; part < PARTS && first + b < count; part++) {
                add(&answer[part], answers[b][part]);
                add(&head[part], heads[b][part]);
            }
    }
}

/* s and k from the means, unit by unit, fused into the kernel of the means: for transforms without sums
 * over rows. */
template <class UNIT> struct reference_units {
    static constexpr int PARTS = UNIT::PARTS;
    static constexpr bool FUSED = true, ANSWERS = UNIT::ANSWERS;

    /* s = W_r1 difference, k = W_r2 answer, or answer itself; of the columns from j on. */
    template <int COLUMNS>
    static __device__ void transform(columns<COLUMNS> s[PARTS], columns<COLUMNS> k[PARTS],
                                     const columns<COLUMNS> difference[PARTS],
                                     const columns<COLUMNS> answer[PARTS], const vlp_form &form,
                                     const float *r, int32_t j) {
        columns<COLUMNS> relation[UNIT::RELATION_PARTS];
        vlp_unit_row row = {};
        row.scale = form.phase_scale;
        row.linear = true;
#pragma unroll
        for (int part = 0; part < UNIT::RELATION_PARTS; part++)
            relation[part] = load<COLUMNS>(r + part * (form.entity_width / PARTS) + j);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            float p[UNIT::PREPARED], x[PARTS], y[PARTS], unit[UNIT::RELATION_PARTS];
            get(unit, relation, c);
            UNIT::prepare(p, unit, form.phase_scale);
            get(x, difference, c);
            UNIT::template transform<false>(y, x, p, row);
            put(s, y, c);
            get(x, answer, c);
            UNIT::template transform<true>(y, x, p, row);
            put(k, y, c);
        }
    }

  private:
    template <int COUNT, int COLUMNS>
    static __device__ void get(float (&unit)[COUNT], const columns<COLUMNS> *parts, int c) {
#pragma unroll
        for (int part = 0; part < COUNT; part++) unit[part] = parts[part].at[c];
    }

    template <int COUNT, int COLUMNS>
    static __device__ void put(columns<COLUMNS> *parts, const float (&unit)[COUNT], int c) {
#pragma unroll
        for (int part = 0; part < COUNT; part++) parts[part].at[c] = unit[part];
    }
};

/* The means alone. */
struct reference_means {
    static constexpr int PARTS = 1;
    static constexpr bool FUSED = false, ANSWERS = false;
};

/* Grid: (queries, slices of units), COLUMNS units per thread. All loads come before the stores: the
 * compiler cannot know that the arrays do not overlap. */
template <class UNITS, int COLUMNS>
__global__ static void reference_rows(vlp_form form, vlp_aggregator_inputs inputs,
                                      vlp_reference_batch references, const float *table,
                                      vlp_related_rows heads) {
    constexpr int PARTS = UNITS::PARTS;
    int64_t i = blockIdx.x, width = form.entity_width;
    int32_t part_width = form.entity_width / PARTS, count = references.counts[i];
    int32_t j = COLUMNS * static_cast<int32_t>(blockIdx.y * REFERENCE_THREADS + threadIdx.x);
    if (j >= part_width) return;
    columns<COLUMNS> head[PARTS], answer[PARTS] = {}, difference[PARTS] = {}, s[PARTS], k[PARTS];
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        head[part] = load<COLUMNS>(heads.rows + i * width + part * part_width + j);
    sum_references<PARTS>(answer, difference, references, i, table, form.entity_width, j);
    float share = count > 1 ? 1.0f / static_cast<float>(count) : 1.0f;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            answer[part].at[c] *= share;
            float mean = difference[part].at[c] * share;
            difference[part].at[c] = count > 0 ? head[part].at[c] - mean : 0.0f;
        }
    if constexpr (UNITS::FUSED) {
        const float *r =
            heads.relation_table + static_cast<int64_t>(heads.relations[i]) * form.relation_width;
        UNITS::transform(s, k, difference, answer, form, r, j);
    }
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, form.query_width);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t at = part * part_width + j, row = i * width + at, bf16_row = i * layout.padded + at;
        store(inputs.answers + row, answer[part]);
        store(inputs.differences + row, difference[part]);
        if constexpr (UNITS::FUSED) {
            if (inputs.bf16_s) {
                store(inputs.bf16_k + bf16_row, k[part]);
                store(inputs.bf16_s + bf16_row, s[part]);
            } else {
                if (UNITS::ANSWERS) store(inputs.k + row, k[part]);
                store(inputs.s + row, s[part]);
            }
        }
    }
    if (!UNITS::FUSED || !inputs.bf16_s || j + COLUMNS < part_width) return;
    pad_row(inputs.bf16_k + i * layout.padded, layout);
    pad_row(inputs.bf16_s + i * layout.padded, layout);
}

template <class UNITS, int COLUMNS>
static void launch_references(vlp_compute *compute, const vlp_aggregator_inputs *inputs,
                              const vlp_form *form, const vlp_reference_batch *references,
                              const float *entity_table, const vlp_related_rows *heads) {
    dim3 grid(static_cast<unsigned>(heads->count),
              cuda_blocks(form->entity_width / (UNITS::PARTS * COLUMNS), REFERENCE_THREADS));
    LAUNCH(compute, (reference_rows<UNITS, COLUMNS>), grid, REFERENCE_THREADS, 0, *form, *inputs,
           *references, entity_table, *heads);
}

template <class UNITS>
static void mean_rows(vlp_compute *compute, const vlp_aggregator_inputs *inputs, const vlp_form *form,
                      const vlp_reference_batch *references, const float *entity_table,
                      const vlp_related_rows *heads) {
    bool four = form->entity_width % (4 * UNITS::PARTS) == 0;
    (four ? launch_references<UNITS, 4> : launch_references<UNITS, 1>)(compute, inputs, form, references,
                                                                       entity_table, heads);
}

static void mean_references(vlp_compute *compute, const vlp_aggregator_inputs *inputs,
                            const vlp_form *form, const vlp_reference_batch *references,
                            const float *entity_table, const vlp_related_rows *heads) {
    vlp_transform_traits traits = vlp_transform_traits_of(form->transform);
    if (heads->count == 0) return;
    if (!traits.matrix && traits.sums == 0) {
        with_unit_transform(form->transform, [&](auto unit) {
            using UNIT = decltype(unit);
            if constexpr (UNIT::SUMS == 0)
                mean_rows<reference_units<UNIT>>(compute, inputs, form, references, entity_table, heads);
        });
        return;
    }
    mean_rows<reference_means>(compute, inputs, form, references, entity_table, heads);
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, form->query_width);
    vlp_related_rows rows = *heads;
    rows.rows = inputs->answers;
    cuda_answer(compute, inputs->k, form, &rows);
    rows.rows = inputs->differences;
    cuda_query(compute, inputs->s, form, &rows, true);
    if (inputs->bf16_k)
        cuda_convert_rows(compute, inputs->bf16_k, &layout, inputs->k, form->query_width, rows.count);
    if (inputs->bf16_s)
        cuda_convert_rows(compute, inputs->bf16_s, &layout, inputs->s, form->query_width, rows.count);
}

/* ---- [t_N, q] ------------------------------------------------------------------------------------ */

enum { CONCAT_THREADS = 256 };

template <int COLUMNS>
__global__ static void concat_rows(float *concat, vlp_bf16 *bf16_concat, vlp_concat_operands operands,
                                   int32_t e, int32_t width) {
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, e + width);
    int64_t i = blockIdx.x, all = e + width;
    int32_t j = COLUMNS * static_cast<int32_t>(blockIdx.y * CONCAT_THREADS + threadIdx.x);
    if (j >= layout.padded) return;
    columns<COLUMNS> x = {};
    if (j < e) {
        x = load<COLUMNS>(concat + i * all + j);
        if (operands.counts[i] > 0) {
            add(&x, load<COLUMNS>(operands.node_bias + j));
            add(&x, load<COLUMNS>(operands.edge_bias + j));
        }
    } else if (j < all) {
        x = load<COLUMNS>(operands.q + i * width + j - e);
    }
    if (bf16_concat)
        store(bf16_concat + i * layout.padded + j, x);
    else if (j < all)
        store(concat + i * all + j, x);
}

static void concat_query(vlp_compute *compute, float *concat, vlp_bf16 *bf16, const vlp_form *form,
                         const vlp_concat_operands *operands) {
    if (operands->rows == 0) return;
    int32_t e = form->entity_width, width = form->query_width;
    bool four = e % 4 == 0 && width % 4 == 0;
    dim3 grid(static_cast<unsigned>(operands->rows),
              cuda_blocks(vlp_bf16_layout_of(1, e + width).padded, CONCAT_THREADS * (four ? 4 : 1)));
    auto kernel = four ? concat_rows<4> : concat_rows<1>;
    LAUNCH(compute, kernel, grid, CONCAT_THREADS, 0, concat, bf16, *operands, e, width);
}

/* ---- The output: one block per row --------------------------------------------------------------- */

enum { OUTPUT_THREADS = 256 };

/* In the layout of a bf16 copy: the column of a position, -1 in the padding. */
__device__ static int32_t column_of(const vlp_bf16_layout &layout, int32_t position) {
    int32_t part = position / layout.padded, at = position - part * layout.padded;
    return at < layout.width ? part * layout.width + at : -1;
}

template <int COLUMNS>
__global__ static void tanh_rows(float *x, float *activated, float *norms, vlp_bf16 *bf16_x,
                                 vlp_bf16_layout layout, const float *bias, int32_t width) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x;
    int32_t stride = vlp_bf16_layout_stride(&layout);
    float *row = x + i * width, *y = activated + i * width, square = 0;
    for (int32_t j = COLUMNS * threadIdx.x; j < width; j += COLUMNS * OUTPUT_THREADS) {
        columns<COLUMNS> value = load<COLUMNS>(row + j);
        add(&value, load<COLUMNS>(bias + j));
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            value.at[c] = tanhf(value.at[c]);
            square += value.at[c] * value.at[c];
        }
        store(y + j, value);
    }
    /* block_sum synchronizes: other threads' stores to y are visible after it. */
    float norm = sqrtf(block_sum(square, shared)), scale = inverse_of(norm);
    if (threadIdx.x == 0) norms[i] = norm;
    for (int32_t position = COLUMNS * threadIdx.x; position < stride;
         position += COLUMNS * OUTPUT_THREADS) {
        int32_t j = column_of(layout, position);
        columns<COLUMNS> value = {};
        if (j >= 0) {
            value = load<COLUMNS>(y + j);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) value.at[c] *= scale;
            store(row + j, value);
        }
        if (bf16_x) store(bf16_x + i * stride + position, value);
    }
}

static void tanh_normalize(vlp_compute *compute, const vlp_tanh_rows *rows, const float *bias) {
    if (rows->rows == 0) return;
    vlp_bf16_layout positions = rows->bf16 ? rows->layout : vlp_bf16_layout{1, rows->width, rows->width};
    auto kernel = positions.width % 4 == 0 ? tanh_rows<4> : tanh_rows<1>;
    LAUNCH(compute, kernel, static_cast<unsigned>(rows->rows), OUTPUT_THREADS, 0, rows->output,
           rows->activated, rows->norms, rows->bf16, positions, bias, rows->width);
}

/* u = y / |y|: dy = (du - u <u, du>) / |y|; y = tanh(x): dx = dy (1 - y^2). */
template <int COLUMNS>
__global__ static void tanh_rows_backward(float *grad, const float *normalized_grad,
                                          vlp_bf16_layout layout, const float *normal,
                                          const float *activated, const float *norms, int32_t width) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x;
    int32_t stride = vlp_bf16_layout_stride(&layout);
    const float *u = normal + i * width, *y = activated + i * width, *du = normalized_grad + i * stride;
    float along = 0, scale = inverse_of(norms[i]);
    for (int32_t position = COLUMNS * threadIdx.x; position < stride;
         position += COLUMNS * OUTPUT_THREADS) {
        int32_t j = column_of(layout, position);
        if (j < 0) continue;
        columns<COLUMNS> left = load<COLUMNS>(u + j), right = load<COLUMNS>(du + position);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) along += left.at[c] * right.at[c];
    }
    along = block_sum(along, shared);
    for (int32_t position = COLUMNS * threadIdx.x; position < stride;
         position += COLUMNS * OUTPUT_THREADS) {
        int32_t j = column_of(layout, position);
        if (j < 0) continue;
        columns<COLUMNS> value = load<COLUMNS>(du + position), normal_at = load<COLUMNS>(u + j);
        columns<COLUMNS> tanh_at = load<COLUMNS>(y + j);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            value.at[c] =
                (value.at[c] - normal_at.at[c] * along) * scale * (1.0f - tanh_at.at[c] * tanh_at.at[c]);
        store(grad + i * width + j, value);
    }
}

static void tanh_normalize_backward(vlp_compute *compute, float *grad, const float *output_grad,
                                    const vlp_bf16_layout *layout, const vlp_tanh_rows *rows) {
    if (rows->rows == 0) return;
    vlp_bf16_layout positions = layout ? *layout : vlp_bf16_layout{1, rows->width, rows->width};
    auto kernel = positions.width % 4 == 0 ? tanh_rows_backward<4> : tanh_rows_backward<1>;
    LAUNCH(compute, kernel, static_cast<unsigned>(rows->rows), OUTPUT_THREADS, 0, grad, output_grad,
           positions, rows->output, rows->activated, rows->norms, rows->width);
}

/* ---- Sums of columns ----------------------------------------------------------------------------- */

/* A block sums SUM_COLUMNS columns, the rows in SUM_PARTS parts that are reduced by a tree; each thread
 * has SUM_BATCH loads in flight. */
enum { SUM_COLUMNS = 16, SUM_PARTS = 64, SUM_BATCH = 8 };
static_assert(SUM_PARTS == 64 && SUM_COLUMNS == 16, "two parts per warp, and one warp reduces all");

__global__ static void __launch_bounds__(SUM_COLUMNS *SUM_PARTS)
    column_sums(float *bias_grad, float *same_grad, float *grad, vlp_bf16 *bf16_grad,
                const int32_t *counts, int64_t rows, int32_t width) {
    __shared__ float parts[SUM_PARTS / 2][SUM_COLUMNS + 1];
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, width);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = threadIdx.x / SUM_COLUMNS;
    int32_t first = static_cast<int32_t>(blockIdx.x) * SUM_COLUMNS;
    int32_t j = first + static_cast<int32_t>(threadIdx.x % SUM_COLUMNS);
    float sum = 0;
    for (int64_t start = part; start < rows; start += SUM_PARTS * SUM_BATCH) {
        float values[SUM_BATCH];
        bool kept[SUM_BATCH];
#pragma unroll
        for (int b = 0; b < SUM_BATCH; b++) {
            int64_t i = start + b * SUM_PARTS;
            values[b] = i < rows && j < width ? grad[i * width + j] : 0.0f;
            kept[b] = i >= rows || !counts || counts[i] > 0;
        }
#pragma unroll
        for (int b = 0; b < SUM_BATCH; b++) {
            int64_t i = start + b * SUM_PARTS;
            if (!kept[b]) {
                values[b] = 0.0f;
                if (j < width) grad[i * width + j] = 0.0f;
            }
            if (bf16_grad && i < rows && j < layout.padded)
                bf16_grad[i * layout.padded + j] = bf16(values[b]);
            sum += values[b];
        }
    }
    sum += __shfl_xor_sync(ALL_LANES, sum, SUM_COLUMNS);
    if (lane < SUM_COLUMNS) parts[warp][lane] = sum;
    __syncthreads();
    if (warp >= SUM_COLUMNS || first + warp >= width) return;
    sum = warp_sum(parts[lane][warp]);
    if (lane > 0) return;
    bias_grad[first + warp] = sum;
    if (same_grad) same_grad[first + warp] = sum;
}

static void bias_backward(vlp_compute *compute, float *bias_grad, float *same_grad,
                          const vlp_layer_gradient *layer) {
    LAUNCH(compute, column_sums, cuda_blocks(vlp_bf16_layout_of(1, layer->width).padded, SUM_COLUMNS),
           SUM_COLUMNS * SUM_PARTS, 0, bias_grad, same_grad, layer->grad, layer->bf16, layer->counts,
           layer->rows, layer->width);
}

const vlp_aggregator_operations cuda_aggregator_operations = {.mean_references = mean_references,
                                                              .concat_query = concat_query,
                                                              .tanh_normalize = tanh_normalize,
                                                              .tanh_normalize_backward =
                                                                  tanh_normalize_backward,
                                                              .bias_backward = bias_backward};
