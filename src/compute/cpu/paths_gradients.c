/* Gradients of the path model's tables from those of groups and keys. Every sum is over groups, keys or
 * tiles in ascending order, so that the threads that computed them make no difference. */
#include <omp.h>

#include "compute/cpu/paths_internal.h"

enum { TILE_RELATIONS = 8, CHUNK = 4096 };

int64_t path_gradients_size(const path_sizes *sizes) {
    return 2 * sizes->layers * (sizes->matrix + 2 * sizes->width) + 2 * sizes->width * sizes->hidden +
           2 * sizes->hidden + 16;
}

path_gradients path_gradients_at(const path_sizes *sizes, float *values) {
    path_gradients out;
    int64_t rows = 2 * (int64_t)sizes->layers;
    out.update = values;
    out.bias = out.update + rows * sizes->matrix;
    out.norm = out.bias + rows * sizes->width;
    out.hidden = out.norm + rows * sizes->width;
    out.hidden_bias = out.hidden + 2 * sizes->width * sizes->hidden;
    out.output = out.hidden_bias + sizes->hidden;
    return out;
}

int64_t path_key_gradients_size(const path_sizes *sizes) {
    return sizes->width + (int64_t)sizes->layers * sizes->relations * sizes->width;
}

path_key_gradients path_key_gradients_at(const path_sizes *sizes, float *values) {
    return (path_key_gradients){values, values + sizes->width};
}

/* ---- Groups -------------------------------------------------------------------------------------- */

/* The first of `count` arrays, `stride` apart, becomes their sum. */
static VLP_CLONES void sum_arrays(float *restrict first, int64_t stride, int32_t count, int64_t length) {
    for (int32_t i = 1; i < count; i++)
#pragma omp simd
        for (int64_t j = 0; j < length; j++) first[j] += first[i * stride + j];
}

/* to (rows, width) from padded rows. */
static void unpad_rows(float *to, int64_t width, const float *from, int64_t from_width, int64_t rows) {
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * width, from + i * from_width, (size_t)width * sizeof *to);
}

static void write_tables(const vlp_path_tables *grads, const path_sizes *sizes, float *values) {
    path_gradients from = path_gradients_at(sizes, values);
    int64_t d = sizes->dim, width = sizes->width, layers = sizes->layers;
    for (int64_t part = 0; part < layers * 2 * PATH_PARTS; part++)
        unpad_rows(grads->table[VLP_PATH_UPDATE] + part * d * d, d, from.update + part * width * width,
                   width, d);
    unpad_rows(grads->table[VLP_PATH_UPDATE_BIAS], d, from.bias, width, 2 * layers);
    unpad_rows(grads->table[VLP_PATH_NORM], d, from.norm, width, 2 * layers);
    for (int64_t half = 0; half < 2; half++)
        unpad_rows(grads->table[VLP_PATH_HIDDEN] + half * d * 2 * d, 2 * d,
                   from.hidden + half * width * sizes->hidden, sizes->hidden, d);
    unpad_rows(grads->table[VLP_PATH_HIDDEN_BIAS], 2 * d, from.hidden_bias, sizes->hidden, 1);
    unpad_rows(grads->table[VLP_PATH_OUTPUT], 2 * d, from.output, sizes->hidden, 1);
    grads->table[VLP_PATH_OUTPUT][2 * d] = from.output[sizes->hidden];
}

/* ---- Relations ----------------------------------------------------------------------------------- */

/* A tile of the relations of a layer. */
typedef struct relation_tile {
    int32_t layer, first;
    int64_t count;  /* columns */
    float *sums;    /* (asked, count) the gradients of w_l, by relation asked for */
    float *partial; /* (asked, d) what q_r gets through them */
} relation_tile;

static void sum_keys(const relation_tile *tile, const path_weights *weights,
                     const path_batch_gradients *batch) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, size = path_key_gradients_size(sizes);
    memset(tile->sums, 0, (size_t)(weights->asked_count * tile->count) * sizeof(float));
    for (int32_t key = 0; key < batch->keys; key++) {
        float *sum = tile->sums + weights->slots[batch->relations[key]] * tile->count;
        const float *from = path_key_gradients_at(sizes, batch->key_values + key * size).relation +
                            ((int64_t)tile->layer * sizes->relations + tile->first) * sizes->width;
        for (int64_t relation = 0; relation < tile->count / d; relation++)
            for (int64_t j = 0; j < d; j++) sum[relation * d + j] += from[relation * sizes->width + j];
    }
}

/* Through w_l = A_l q + a_l: matrix_grad (d rows of `count`, stride apart), bias_grad (count), and the
 * partial gradients of queries. */
static VLP_CLONES void relation_gradients(float *matrix_grad, float *bias_grad, const float *matrix,
                                          int64_t stride, const relation_tile *tile,
                                          const path_weights *weights) {
    int64_t count = tile->count;
    int32_t d = weights->sizes.dim;
    memset(bias_grad, 0, (size_t)count * sizeof(float));
    for (int32_t k = 0; k < d; k++) memset(matrix_grad + k * stride, 0, (size_t)count * sizeof(float));
    for (int32_t slot = 0; slot < weights->asked_count; slot++) {
        const float *restrict sum = tile->sums + slot * count;
        const float *q = weights->queries + slot * weights->sizes.width;
        for (int64_t j = 0; j < count; j++) bias_grad[j] += sum[j];
        for (int32_t k = 0; k < d; k++) {
            float *restrict to = matrix_grad + k * stride;
            const float *restrict row = matrix + k * stride;
            float product = 0;
#pragma omp simd reduction(+ : product)
            for (int64_t j = 0; j < count; j++) {
                to[j] += q[k] * sum[j];
                product += row[j] * sum[j];
            }
            tile->partial[slot * d + k] = product;
        }
    }
}

static void reduce_tile(const vlp_path_tables *grads, const path_weights *weights,
                        const vlp_path_model *model, const path_batch_gradients *batch,
                        const relation_tile *tile) {
    int64_t d = weights->sizes.dim, row = weights->sizes.relations * d;
    int64_t matrix = tile->layer * d * row + tile->first * d;
    sum_keys(tile, weights, batch);
    relation_gradients(grads->table[VLP_PATH_RELATION] + matrix,
                       grads->table[VLP_PATH_RELATION_BIAS] + tile->layer * row + tile->first * d,
                       model->values->table[VLP_PATH_RELATION] + matrix, row, tile, weights);
}

static void set_queries(const vlp_path_tables *grads, const path_weights *weights,
                        const path_batch_gradients *batch, const float *partial, int32_t tiles) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, asked = weights->asked_count, size = path_key_gradients_size(sizes);
    memset(grads->table[VLP_PATH_QUERY], 0, (size_t)(sizes->relations * d) * sizeof(float));
    for (int32_t key = 0; key < batch->keys; key++) {
        const float *from = path_key_gradients_at(sizes, batch->key_values + key * size).query;
        float *to = grads->table[VLP_PATH_QUERY] + batch->relations[key] * d;
        for (int64_t j = 0; j < d; j++) to[j] += from[j];
    }
    for (int32_t tile = 0; tile < tiles; tile++)
        for (int64_t slot = 0; slot < asked; slot++) {
            float *to = grads->table[VLP_PATH_QUERY] + weights->asked[slot] * d;
            for (int64_t j = 0; j < d; j++) to[j] += partial[(tile * asked + slot) * d + j];
        }
}

vlp_status path_gradients_reduce(vlp_compute *compute, const vlp_path_tables *grads,
                                 const path_weights *weights, const vlp_path_model *model,
                                 const path_batch_gradients *batch) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, asked = weights->asked_count, size = path_gradients_size(sizes);
    int32_t in_layer = (sizes->relations + TILE_RELATIONS - 1) / TILE_RELATIONS;
    int32_t tiles = sizes->layers * in_layer;
    int64_t chunks = (size + CHUNK - 1) / CHUNK;
    int64_t sums = asked * TILE_RELATIONS * d, partials = asked * d;
    float *scratch = cpu_scratch(compute, tiles * partials + compute->threads * sums);
    if (!scratch) return VLP_ERROR_MEMORY;
#pragma omp parallel num_threads(compute->threads)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < chunks; i++)
            sum_arrays(batch->group_values + i * CHUNK, size, batch->groups,
                       size - i * CHUNK < CHUNK ? size - i * CHUNK : CHUNK);
#pragma omp for schedule(dynamic)
        for (int32_t i = 0; i < tiles; i++) {
            int32_t first = i % in_layer * TILE_RELATIONS, left = sizes->relations - first;
            relation_tile tile = {
                i / in_layer, first, (left < TILE_RELATIONS ? left : TILE_RELATIONS) * d,
                scratch + tiles * partials + omp_get_thread_num() * sums, scratch + i * partials};
            reduce_tile(grads, weights, model, batch, &tile);
        }
    }
    write_tables(grads, sizes, batch->group_values);
    set_queries(grads, weights, batch, scratch, tiles);
    return VLP_OK;
}
