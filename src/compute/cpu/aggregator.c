/* The vertical aggregator: its inputs from references, its rows, and their gradients. This backend has
 * no bf16 operations. */
#include <string.h>

#include "base/vector_math.h"
#include "compute/cpu/cpu.h"

/* ---- References ---------------------------------------------------------------------------------- */

VLP_CLONES static void mean_row(float *out, const float *table, const int32_t *ids, int32_t count,
                                int32_t width) {
    memset(out, 0, (size_t)width * sizeof *out);
    for (int32_t i = 0; i < count; i++) {
        const float *row = table + (int64_t)ids[i] * width;
        for (int32_t j = 0; j < width; j++) out[j] += row[j];
    }
    if (count > 1) {
        float share = 1.0f / (float)count;
        for (int32_t j = 0; j < width; j++) out[j] *= share;
    }
}

static void mean_references(vlp_compute *compute, const vlp_aggregator_inputs *inputs,
                            const vlp_form *form, const vlp_reference_batch *references,
                            const float *entity_table, const vlp_related_rows *heads) {
    assert(!inputs->bf16_k && !inputs->bf16_s);
    int32_t width = form->entity_width;
    int64_t count = heads->count;
#pragma omp parallel for num_threads(compute->threads) if (count * width > 16384)
    for (int64_t i = 0; i < count; i++) {
        int64_t first = i * references->capacity;
        int32_t there = references->counts[i];
        float *difference = inputs->differences + i * width;
        mean_row(inputs->answers + i * width, entity_table, references->answers + first, there, width);
        mean_row(difference, entity_table, references->heads + first, there, width);
        if (there == 0) continue;
        for (int32_t j = 0; j < width; j++) difference[j] = heads->rows[i * width + j] - difference[j];
    }
    vlp_related_rows rows = *heads;
    rows.rows = inputs->answers;
    cpu_answer(compute, inputs->k, form, &rows);
    rows.rows = inputs->differences;
    cpu_query(compute, inputs->s, form, &rows, true);
}

static void concat_query(vlp_compute *compute, float *concat, vlp_bf16 *bf16, const vlp_form *form,
                         const vlp_concat_operands *operands) {
    (void)bf16;
    assert(!bf16);
    const float *node_bias = operands->node_bias, *edge_bias = operands->edge_bias;
    int32_t e = form->entity_width, width = form->query_width;
    int64_t rows = operands->rows;
#pragma omp parallel for num_threads(compute->threads) if (rows * (e + width) > 65536)
    for (int64_t i = 0; i < rows; i++) {
        float *row = concat + i * (e + width);
        for (int32_t j = 0; j < e && operands->counts[i] > 0; j++)
            row[j] = row[j] + node_bias[j] + edge_bias[j];
        memcpy(row + e, operands->q + i * width, (size_t)width * sizeof *row);
    }
}

/* ---- The output ---------------------------------------------------------------------------------- */

/* tanh(x) = 1 - 2 / (exp(2 x) + 1), which is vectorized; beyond 9 it is 1 in fp32. Near zero the
 * difference cancels: there it is the start of the Taylor series. */
VLP_CLONES static void tanh_row(float *out, const float *x, const float *bias, int32_t width) {
#pragma omp simd
    for (int32_t j = 0; j < width; j++) {
        float value = x[j] + bias[j];
        value = value > 9.0f ? 9.0f : value < -9.0f ? -9.0f : value;
        float square = value * value;
        float near_zero =
            value * (1.0f - square * (1.0f / 3 - square * (2.0f / 15 - square * (17.0f / 315))));
        float far = 1.0f - 2.0f / (expf(2.0f * value) + 1.0f);
        out[j] = square < 0.04f ? near_zero : far;
    }
}

static float inverse_of(float norm) {
    return norm > VLP_TINY_DISTANCE ? 1.0f / norm : 0.0f;
}

static void tanh_normalize(vlp_compute *compute, const vlp_tanh_rows *rows, const float *bias) {
    assert(!rows->bf16);
    int32_t width = rows->width;
#pragma omp parallel for num_threads(compute->threads) if (rows->rows * width > 4096)
    for (int64_t i = 0; i < rows->rows; i++) {
        float *row = rows->output + i * width, *y = rows->activated + i * width;
        tanh_row(y, row, bias, width);
        rows->norms[i] = (float)sqrt(cpu_square_chunk(y, width));
        float scale = inverse_of(rows->norms[i]);
        for (int32_t j = 0; j < width; j++) row[j] = y[j] * scale;
    }
}

/* A row in the layout of a bf16 copy, without its padding. */
static void strip_row(float *out, const float *from, const vlp_bf16_layout *layout) {
    for (int32_t part = 0; part < layout->parts; part++)
        memcpy(out + (int64_t)part * layout->width, from + (int64_t)part * layout->padded,
               (size_t)layout->width * sizeof *out);
}

/* u = y / |y|: dy = (du - u <u, du>) / |y|; y = tanh(x): dx = dy (1 - y^2). */
static void tanh_normalize_backward(vlp_compute *compute, float *grad, const float *output_grad,
                                    const vlp_bf16_layout *layout, const vlp_tanh_rows *rows) {
    int32_t width = rows->width;
    vlp_bf16_layout plain = {1, width, width};
    if (!layout) layout = &plain;
    int64_t stride = vlp_bf16_layout_stride(layout);
#pragma omp parallel for num_threads(compute->threads) if (rows->rows * width > 65536)
    for (int64_t i = 0; i < rows->rows; i++) {
        float *g = grad + i * width;
        const float *u = rows->output + i * width, *y = rows->activated + i * width;
        strip_row(g, output_grad + i * stride, layout);
        float along = cpu_dot_row(g, u, width), scale = inverse_of(rows->norms[i]);
        for (int32_t j = 0; j < width; j++) g[j] = (g[j] - u[j] * along) * scale * (1.0f - y[j] * y[j]);
    }
}

static void bias_backward(vlp_compute *compute, float *bias_grad, float *same_grad,
                          const vlp_layer_gradient *layer) {
    (void)compute;
    assert(!layer->bf16);
    int32_t width = layer->width;
    size_t bytes = (size_t)width * sizeof *bias_grad;
    memset(bias_grad, 0, bytes);
    for (int64_t i = 0; i < layer->rows; i++) {
        if (layer->counts && layer->counts[i] == 0)
            memset(layer->grad + i * width, 0, bytes);
        else
            cpu_add_row(bias_grad, layer->grad + i * width, 1.0f, width);
    }
    if (same_grad) memcpy(same_grad, bias_grad, bytes);
}

const vlp_aggregator_operations cpu_aggregator_operations = {.mean_references = mean_references,
                                                             .concat_query = concat_query,
                                                             .tanh_normalize = tanh_normalize,
                                                             .tanh_normalize_backward =
                                                                 tanh_normalize_backward,
                                                             .bias_backward = bias_backward};
