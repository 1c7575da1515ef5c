/* Padded copies of the path model's tables: rows of a frequent class of degrees have one matrix W + s
 * W', and w_l is made for the relations that are asked for. */
#include "compute/cpu/paths_kernels.h"

enum { LINE_FLOATS = 16, TILE_RELATIONS = 8 };

static int64_t padded(int64_t count) {
    return (count + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

path_sizes path_sizes_of(const vlp_path_form *form) {
    int64_t width = padded(form->dim);
    return (path_sizes){.layers = form->layers,
                        .dim = form->dim,
                        .relations = form->relations,
                        .width = width,
                        .hidden = padded(2 * (int64_t)form->dim),
                        .matrix = PATH_PARTS * width * width};
}

vlp_status path_array_grow(vlp_compute *compute, path_array *array, int64_t count) {
    if (count <= array->capacity) return VLP_OK;
    path_array_free(compute, array);
    array->values = vlp_cpu_backend.memory->allocate(compute, (size_t)count * sizeof *array->values);
    if (!array->values) return VLP_ERROR_MEMORY;
    array->capacity = count;
    return VLP_OK;
}

void path_array_free(vlp_compute *compute, path_array *array) {
    vlp_cpu_backend.memory->release(compute, array->values);
    *array = (path_array){0};
}

void path_weights_free(vlp_compute *compute, path_weights *weights) {
    path_array_free(compute, &weights->common);
    path_array_free(compute, &weights->asked_arrays);
    vlp_free(weights->slots);
    vlp_free(weights->asked);
}

/* ---- What all queries share ---------------------------------------------------------------------- */

static float *take(float **next, int64_t count) {
    float *taken = *next;
    *next += padded(count);
    return taken;
}

static vlp_status open_common(vlp_compute *compute, path_weights *weights, bool bf16) {
    const path_sizes *sizes = &weights->sizes;
    int64_t matrices = (int64_t)sizes->layers * (weights->classes + 2);
    int64_t hidden = sizes->width * sizes->hidden;
    int64_t count = matrices * ((bf16 ? 3 : 2) * sizes->matrix + sizes->width) +
                    2 * sizes->layers * sizes->width + 3 * hidden + 2 * sizes->hidden;
    VLP_TRY(path_array_grow(compute, &weights->common, count));
    float *next = weights->common.values;
    weights->update = take(&next, matrices * sizes->matrix);
    weights->transposed = take(&next, matrices * sizes->matrix);
    weights->bias = take(&next, matrices * sizes->width);
    weights->update_bf16 = weights->transposed_bf16 = NULL;
    if (bf16) weights->update_bf16 = (uint32_t *)(void *)take(&next, matrices * sizes->matrix / 2);
    if (bf16) weights->transposed_bf16 = (uint32_t *)(void *)take(&next, matrices * sizes->matrix / 2);
    weights->norm = take(&next, 2 * sizes->layers * sizes->width);
    weights->hidden = take(&next, 2 * hidden);
    weights->transposed_hidden = take(&next, hidden);
    weights->hidden_bias = take(&next, sizes->hidden);
    weights->output = take(&next, sizes->hidden);
    return VLP_OK;
}

/* to (rows, to_width) from (rows, width), zeros behind. */
static void pad_rows(float *to, int64_t to_width, const float *from, int64_t width, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        memcpy(to + i * to_width, from + i * width, (size_t)width * sizeof *to);
        memset(to + i * to_width + width, 0, (size_t)(to_width - width) * sizeof *to);
    }
}

/* W or W' of a layer, and it transposed. */
static void set_matrix(path_weights *weights, const vlp_path_model *model, int32_t layer,
                       int32_t which) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, width = sizes->width, matrix = 2 * (int64_t)layer + which;
    int64_t at = path_matrix(weights, layer, weights->classes + which);
    const float *from = model->values->table[VLP_PATH_UPDATE] + matrix * PATH_PARTS * d * d;
    float *to = weights->update + at * sizes->matrix;
    float *transposed = weights->transposed + at * sizes->matrix;
    memset(to, 0, (size_t)sizes->matrix * sizeof *to);
    for (int64_t part = 0; part < PATH_PARTS; part++)
        pad_rows(to + part * width * width, width, from + part * d * d, d, d);
    for (int64_t i = 0; i < PATH_PARTS * width; i++)
        for (int64_t j = 0; j < width; j++) transposed[j * PATH_PARTS * width + i] = to[i * width + j];
    pad_rows(weights->bias + at * width, width, model->values->table[VLP_PATH_UPDATE_BIAS] + matrix * d,
             d, 1);
}

static VLP_CLONES void add_scaled(float *restrict to, const float *restrict a, const float *restrict b,
                                  float scale, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = a[i] + scale * b[i];
}

/* W + s W' of a class. */
static void set_class(path_weights *weights, int32_t layer, int32_t rows) {
    const path_sizes *sizes = &weights->sizes;
    float scale = weights->scales[rows];
    int64_t plain = path_matrix(weights, layer, weights->classes);
    int64_t at = path_matrix(weights, layer, rows);
    struct {
        float *values;
        int64_t size;
    } tables[] = {{weights->update, sizes->matrix},
                  {weights->transposed, sizes->matrix},
                  {weights->bias, sizes->width}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const float *from = tables[i].values + plain * tables[i].size;
        add_scaled(tables[i].values + at * tables[i].size, from, from + tables[i].size, scale,
                   tables[i].size);
    }
}

static void round_matrix(path_weights *weights, int32_t at, const path_bf16_kernels *bf16) {
    const path_sizes *sizes = &weights->sizes;
    int64_t matrix = sizes->matrix, width = sizes->width;
    bf16->pack_pairs(weights->update_bf16 + at * matrix / 2, weights->update + at * matrix,
                     PATH_PARTS * width, width);
    bf16->pack_pairs(weights->transposed_bf16 + at * matrix / 2, weights->transposed + at * matrix,
                     width, PATH_PARTS * width);
}

static void set_readout(path_weights *weights, const vlp_path_model *model) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, half = sizes->width * sizes->hidden;
    const float *hidden = model->values->table[VLP_PATH_HIDDEN];
    const float *output = model->values->table[VLP_PATH_OUTPUT];
    memset(weights->hidden, 0, (size_t)(2 * half) * sizeof(float));
    pad_rows(weights->hidden, sizes->hidden, hidden, 2 * d, d);
    pad_rows(weights->hidden + half, sizes->hidden, hidden + d * 2 * d, 2 * d, d);
    for (int64_t i = 0; i < sizes->width; i++)
        for (int64_t j = 0; j < sizes->hidden; j++)
            weights->transposed_hidden[j * sizes->width + i] = weights->hidden[i * sizes->hidden + j];
    pad_rows(weights->hidden_bias, sizes->hidden, model->values->table[VLP_PATH_HIDDEN_BIAS], 2 * d, 1);
    pad_rows(weights->output, sizes->hidden, output, 2 * d, 1);
    weights->output_bias = output[2 * d];
}

vlp_status path_weights_set(vlp_compute *compute, path_weights *weights, const vlp_path_model *model,
                            const path_bf16_kernels *bf16) {
    weights->sizes = path_sizes_of(model->form);
    weights->classes =
        model->graph->frequent_classes < PATH_CLASSES ? model->graph->frequent_classes : PATH_CLASSES;
    VLP_TRY(open_common(compute, weights, bf16 != NULL));
    const path_sizes *sizes = &weights->sizes;
    for (int32_t class = 0; class < VLP_PATH_MAX_CLASSES; class ++)
        weights->scales[class] = vlp_path_class_scale(model->graph, class);
    pad_rows(weights->norm, sizes->width, model->values->table[VLP_PATH_NORM], sizes->dim,
             2 * (int64_t)sizes->layers);
    set_readout(weights, model);
    int32_t classes = weights->classes, layers = sizes->layers;
#pragma omp parallel num_threads(compute->threads)
    {
#pragma omp for schedule(static)
        for (int32_t i = 0; i < 2 * layers; i++) set_matrix(weights, model, i / 2, i % 2);
#pragma omp for schedule(static)
        for (int32_t i = 0; i < layers * classes; i++) set_class(weights, i / classes, i % classes);
        if (bf16)
#pragma omp for schedule(static)
            for (int32_t i = 0; i < layers * (classes + 2); i++) round_matrix(weights, i, bf16);
    }
    return VLP_OK;
}

/* ---- What depends on relations ------------------------------------------------------------------- */

/* to (count) = bias + the sum over k of q[k] rows[k stride ..]. */
static VLP_CLONES void combine(float *restrict to, const float *restrict q, const float *restrict rows,
                               int64_t stride, const float *restrict bias, int32_t dim, int64_t count) {
    for (int64_t j = 0; j < count; j++) to[j] = bias[j];
    for (int32_t k = 0; k < dim; k++)
#pragma omp simd
        for (int64_t j = 0; j < count; j++) to[j] += q[k] * rows[k * stride + j];
}

/* w_l of a few relations, for all that are asked for: A_l is read once. */
static void set_relations(path_weights *weights, const vlp_path_model *model, int32_t layer,
                          int32_t first) {
    const path_sizes *sizes = &weights->sizes;
    int64_t d = sizes->dim, row = sizes->relations * d, left = sizes->relations - first;
    int64_t count = left < TILE_RELATIONS ? left : TILE_RELATIONS;
    const float *matrix = model->values->table[VLP_PATH_RELATION] + layer * d * row + first * d;
    const float *bias = model->values->table[VLP_PATH_RELATION_BIAS] + layer * row + first * d;
    float tile[TILE_RELATIONS * VLP_PATH_MAX_DIM];
    for (int64_t slot = 0; slot < weights->asked_count; slot++) {
        float *to = weights->relation +
                    ((slot * sizes->layers + layer) * sizes->relations + first) * sizes->width;
        combine(tile, weights->queries + slot * sizes->width, matrix, row, bias, sizes->dim, count * d);
        pad_rows(to, sizes->width, tile, d, count);
    }
}

static vlp_status choose_slots(path_weights *weights, const int32_t *relations, int32_t count) {
    int32_t all = weights->sizes.relations;
    VLP_TRY(vlp_grow(&weights->slots, &weights->slot_capacity, all, sizeof(int32_t), "a path model"));
    VLP_TRY(vlp_grow(&weights->asked, &weights->asked_capacity, all, sizeof(int32_t), "a path model"));
    for (int32_t relation = 0; relation < all; relation++) weights->slots[relation] = -1;
    weights->asked_count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (weights->slots[relations[i]] >= 0) continue;
        weights->asked[weights->asked_count] = relations[i];
        weights->slots[relations[i]] = weights->asked_count++;
    }
    return VLP_OK;
}

vlp_status path_weights_ask(vlp_compute *compute, path_weights *weights, const vlp_path_model *model,
                            const int32_t *relations, int32_t count) {
    const path_sizes *sizes = &weights->sizes;
    VLP_TRY(choose_slots(weights, relations, count));
    int64_t slot = sizes->layers * sizes->relations * sizes->width;
    VLP_TRY(
        path_array_grow(compute, &weights->asked_arrays, weights->asked_count * (slot + sizes->width)));
    weights->queries = weights->asked_arrays.values;
    weights->relation = weights->queries + weights->asked_count * sizes->width;
    for (int32_t i = 0; i < weights->asked_count; i++)
        pad_rows(weights->queries + i * sizes->width, sizes->width,
                 model->values->table[VLP_PATH_QUERY] + (int64_t)weights->asked[i] * sizes->dim,
                 sizes->dim, 1);
    int32_t tiles = (sizes->relations + TILE_RELATIONS - 1) / TILE_RELATIONS;
#pragma omp parallel for schedule(static) num_threads(compute->threads)
    for (int32_t i = 0; i < sizes->layers * tiles; i++)
        set_relations(weights, model, i / tiles, i % tiles * TILE_RELATIONS);
    return VLP_OK;
}
