/* Forward and backward pass of one query over its local graph. */
#include <math.h>

#include "compute/cpu/paths_kernels.h"

void path_work_free(vlp_compute *compute, path_work *work) {
    path_local_close(&work->local);
    path_array_free(compute, &work->state_array);
    path_array_free(compute, &work->block_array);
    path_array_free(compute, &work->gradient_array);
    path_array_free(compute, &work->candidate_array);
    vlp_free(work->active);
    vlp_free(work->rows);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

/* To two vectors. */
static int64_t padded(int64_t count) {
    return (count + 31) / 32 * 32;
}

static float *take(float **next, int64_t count) {
    float *taken = *next;
    *next += (count + 15) / 16 * 16;
    return taken;
}

static vlp_status open_blocks(vlp_compute *compute, path_work *work) {
    const path_sizes *sizes = &work->weights->sizes;
    int64_t width = sizes->width;
    VLP_TRY(path_array_grow(compute, &work->block_array,
                            PATH_ROWS * (3 * PATH_PARTS * width + 5 * width + sizes->hidden) +
                                sizes->hidden));
    float *next = work->block_array.values;
    work->y = take(&next, PATH_ROWS * PATH_PARTS * width);
    work->y_grad = take(&next, PATH_ROWS * PATH_PARTS * width);
    work->z = take(&next, PATH_ROWS * width);
    work->scaled = take(&next, PATH_ROWS * width);
    work->hidden = take(&next, PATH_ROWS * sizes->hidden);
    work->offset = take(&next, sizes->hidden);
    work->largest = (int32_t *)(void *)take(&next, PATH_ROWS * width);
    work->smallest = (int32_t *)(void *)take(&next, PATH_ROWS * width);
    work->y_bf16 = (uint32_t *)(void *)take(&next, PATH_ROWS * PATH_PARTS * width / 2);
    work->z_bf16 = (uint32_t *)(void *)take(&next, PATH_ROWS * width / 2);
    return VLP_OK;
}

/* States of all layers where they are kept, else of two. */
static vlp_status open_states(vlp_compute *compute, path_work *work, bool keep) {
    const path_local *local = &work->local;
    int64_t width = work->weights->sizes.width, count = 0;
    int32_t layers = work->weights->sizes.layers;
    for (int32_t l = 0; l <= layers; l++) count += (keep ? 2 : 1) * local->reached[l] * (width + 16);
    VLP_TRY(path_array_grow(compute, &work->state_array, count));
    float *next = work->state_array.values;
    for (int32_t l = 0; l <= layers; l++) {
        bool own = keep || l + 1 >= layers;
        work->x[l] = own ? take(&next, local->reached[l] * width) : NULL;
        if (!keep || l == 0) continue;
        work->unit[l - 1] = take(&next, local->reached[l] * width);
        work->inverse[l - 1] = take(&next, local->reached[l]);
    }
    for (int32_t l = layers - 2; l >= 0 && !keep; l--) work->x[l] = work->x[l + 2];
    return VLP_OK;
}

static vlp_status open_rows(path_work *work) {
    /* One is written behind the last. */
    return vlp_grow(&work->rows, &work->rows_capacity, work->local.queue_count + 1, sizeof *work->rows,
                    "a query");
}

static vlp_status open_candidates(vlp_compute *compute, path_work *work) {
    int64_t count = work->local.candidate_count;
    VLP_TRY(path_array_grow(compute, &work->candidate_array, 2 * count + 32));
    work->scores = work->candidate_array.values;
    work->score_grads = work->scores + (count + 15) / 16 * 16;
    return VLP_OK;
}

static vlp_status open_gradients(vlp_compute *compute, path_work *work) {
    int64_t nodes = work->local.node_count, width = work->weights->sizes.width;
    VLP_TRY(path_array_grow(compute, &work->gradient_array, 2 * nodes * width));
    VLP_TRY(vlp_grow(&work->active, &work->active_capacity, nodes, sizeof *work->active, "gradients"));
    work->state_grads = work->gradient_array.values;
    work->changes = work->state_grads + nodes * width;
    memset(work->active, 0, (size_t)nodes);
    return VLP_OK;
}

/* ---- Layers -------------------------------------------------------------------------------------- */

static path_layer layer_of(const path_work *work, int32_t l) {
    const path_weights *weights = work->weights;
    const path_sizes *sizes = &weights->sizes;
    int64_t matrix = (int64_t)work->slot * sizes->layers + l;
    return (path_layer){.local = &work->local,
                        .layer = l,
                        .width = sizes->width,
                        .x = work->x[l],
                        .w = weights->relation + matrix * sizes->relations * sizes->width,
                        .query = weights->queries + work->slot * sizes->width};
}

static path_norm norm_of(const path_work *work, int32_t l, bool keep) {
    const path_sizes *sizes = &work->weights->sizes;
    const float *norm = work->weights->norm + 2 * l * sizes->width;
    return (path_norm){.dim = sizes->dim,
                       .reached = work->local.reached[l],
                       .width = sizes->width,
                       .scale = norm,
                       .shift = norm + sizes->width,
                       .x = work->x[l],
                       .next = work->x[l + 1],
                       .unit = keep ? work->unit[l] : NULL,
                       .inverse = keep ? work->inverse[l] : NULL};
}

/* s of rows. */
static void scales_of(float *scales, const path_work *work, const int32_t *rows, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        scales[i] = work->weights->scales[work->local.nodes[rows[i]].degree_class];
}

static void fill_rows(float *to, const float *row, int64_t width, int32_t count) {
    for (int32_t i = 0; i < count; i++) memcpy(to + i * width, row, (size_t)width * sizeof *to);
}

/* to[i] += scales[i] from[i], rows of `width`. */
static void add_rows(float *to, const float *from, const float *scales, int64_t width, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++) to[i * width + j] += scales[i] * from[i * width + j];
}

/* c (count, width) += y W, `matrix` the number of W among the update matrices; y_bf16 is y. */
static void multiply_y(path_work *work, float *c, int64_t matrix, int32_t count) {
    const path_weights *weights = work->weights;
    int64_t width = weights->sizes.width, size = weights->sizes.matrix;
    if (work->bf16)
        work->bf16->product(c, work->y_bf16, weights->update_bf16 + matrix * size / 2, count, width,
                            PATH_PARTS * width / 2, true);
    else
        work->kernels->product(c, work->y, weights->update + matrix * size, count, width,
                               PATH_PARTS * width, true);
}

/* z of a block from y. The last class takes two products. */
static void multiply(path_work *work, int32_t l, int32_t class, const int32_t *rows, int32_t count) {
    const path_weights *weights = work->weights;
    int64_t width = weights->sizes.width, at = path_matrix(weights, l, class);
    if (work->bf16) work->bf16->pack(work->y_bf16, work->y, padded(count * PATH_PARTS * width));
    fill_rows(work->z, weights->bias + at * width, width, count);
    multiply_y(work, work->z, at, count);
    if (class < weights->classes) return;
    float scales[PATH_ROWS];
    scales_of(scales, work, rows, count);
    fill_rows(work->scaled, weights->bias + (at + 1) * width, width, count);
    multiply_y(work, work->scaled, at + 1, count);
    add_rows(work->z, work->scaled, scales, width, count);
}

/* The rows of a layer by class, work->rows[begins[c] .. begins[c + 1]): those that candidates depend on,
 * or that have received a gradient. The last class are degrees without a product of their own, because
 * they are not frequent or because here they are few; rows of a degree always stay together. */
static void choose_rows(path_work *work, int32_t l, bool backward, int32_t *begins) {
    const path_local *local = &work->local;
    int32_t classes = work->weights->classes, few[PATH_CLASSES * PATH_FEW], few_count = 0, total = 0;
    for (int32_t class = 0; class <= classes; class ++) {
        begins[class] = total;
        for (int32_t i = local->class_begin[class]; i < local->class_begin[class + 1]; i++) {
            int32_t node = local->order[i];
            bool wanted = backward ? work->active[node] : local->last[node] > l;
            work->rows[total] = node;
            total += wanted && node < local->reached[l + 1];
        }
        if (class == classes || total - begins[class] > PATH_FEW) continue;
        while (total > begins[class]) few[few_count++] = work->rows[--total];
    }
    memcpy(work->rows + total, few, (size_t)few_count * sizeof *few);
    begins[classes + 1] = total + few_count;
}

static void forward_layer(path_work *work, int32_t l, bool keep) {
    path_layer layer = layer_of(work, l);
    path_norm norm = norm_of(work, l, keep);
    int32_t begins[PATH_CLASSES + 2];
    choose_rows(work, l, false, begins);
    for (int32_t class = 0; class <= work->weights->classes; class ++)
        for (int32_t i = begins[class]; i < begins[class + 1]; i += PATH_ROWS) {
            int32_t left = begins[class + 1] - i, count = left < PATH_ROWS ? left : PATH_ROWS;
            const int32_t *rows = work->rows + i;
            work->kernels->aggregate(work->y, NULL, NULL, &layer, rows, count);
            multiply(work, l, class, rows, count);
            work->kernels->normalize(&norm, work->z, rows, count);
        }
}

/* ---- The readout --------------------------------------------------------------------------------- */

static void set_offset(path_work *work) {
    const path_weights *weights = work->weights;
    int64_t width = weights->sizes.width, hidden = weights->sizes.hidden;
    const float *query = weights->queries + work->slot * width, *rows = weights->hidden + width * hidden;
    memcpy(work->offset, weights->hidden_bias, (size_t)hidden * sizeof(float));
    for (int64_t k = 0; k < weights->sizes.dim; k++)
        for (int64_t j = 0; j < hidden; j++) work->offset[j] += query[k] * rows[k * hidden + j];
    memset(work->hidden, 0, (size_t)hidden * sizeof(float));
    work->kernels->readout(&work->zero_score, work->hidden, work->offset, weights->output,
                           weights->output_bias, 1, hidden);
}

/* Last states of nodes as rows of z, and their hidden layer before its offset. */
static void read_states(path_work *work, const int32_t *nodes, int32_t count) {
    const path_sizes *sizes = &work->weights->sizes;
    const float *x = work->x[sizes->layers];
    for (int32_t i = 0; i < count; i++)
        memcpy(work->z + i * sizes->width, x + nodes[i] * sizes->width,
               (size_t)sizes->width * sizeof *x);
    work->kernels->product(work->hidden, work->z, work->weights->hidden, count, sizes->hidden,
                           sizes->width, false);
}

vlp_status path_forward(vlp_compute *compute, path_work *work, bool keep) {
    const path_weights *weights = work->weights;
    const path_local *local = &work->local;
    const path_sizes *sizes = &weights->sizes;
    VLP_TRY(open_blocks(compute, work));
    VLP_TRY(open_states(compute, work, keep));
    VLP_TRY(open_candidates(compute, work));
    VLP_TRY(open_rows(work));
    memcpy(work->x[0], weights->queries + work->slot * sizes->width,
           (size_t)sizes->width * sizeof(float));
    for (int32_t l = 0; l < sizes->layers; l++) forward_layer(work, l, keep);
    set_offset(work);
    for (int32_t i = 0; i < local->candidate_count; i += PATH_ROWS) {
        int32_t left = local->candidate_count - i, count = left < PATH_ROWS ? left : PATH_ROWS;
        read_states(work, local->queue + i, count);
        work->kernels->readout(work->scores + i, work->hidden, work->offset, weights->output,
                               weights->output_bias, count, sizes->hidden);
    }
    return VLP_OK;
}

/* Through offset = q H + bias. */
static void offset_backward(const path_work *work, const path_gradients *grads,
                            const path_key_gradients *key_grads, const float *offset_grad) {
    const path_sizes *sizes = &work->weights->sizes;
    int64_t half = sizes->width * sizes->hidden;
    const float *query = work->weights->queries + work->slot * sizes->width;
    for (int64_t j = 0; j < sizes->hidden; j++) grads->hidden_bias[j] += offset_grad[j];
    for (int64_t k = 0; k < sizes->dim; k++) {
        const float *row = work->weights->hidden + half + k * sizes->hidden;
        float *row_grad = grads->hidden + half + k * sizes->hidden, sum = 0;
        for (int64_t j = 0; j < sizes->hidden; j++) {
            row_grad[j] += query[k] * offset_grad[j];
            sum += row[j] * offset_grad[j];
        }
        key_grads->query[k] += sum;
    }
}

static void readout_block(path_work *work, const path_gradients *grads, float *offset_grad,
                          const int32_t *nodes, const float *score_grads, int32_t count) {
    const path_weights *weights = work->weights;
    int64_t width = weights->sizes.width, hidden = weights->sizes.hidden;
    read_states(work, nodes, count);
    work->kernels->readout_backward(work->hidden, offset_grad, grads->output, score_grads, work->offset,
                                    weights->output, count, hidden);
    work->kernels->outer(grads->hidden, NULL, 0, work->z, work->hidden, count, width, hidden);
    work->kernels->product(work->scaled, work->hidden, weights->transposed_hidden, count, width, hidden,
                           false);
    for (int32_t i = 0; i < count; i++) {
        work->active[nodes[i]] = 1;
        memcpy(work->state_grads + nodes[i] * width, work->scaled + i * width,
               (size_t)width * sizeof(float));
        grads->output[hidden] += score_grads[i];
    }
}

static void readout_backward(path_work *work, const path_gradients *grads,
                             const path_key_gradients *key_grads, float zero_grad) {
    const path_local *local = &work->local;
    const path_weights *weights = work->weights;
    float offset_grad[2 * VLP_PATH_MAX_DIM] = {0};
    memset(work->hidden, 0, (size_t)weights->sizes.hidden * sizeof(float));
    work->kernels->readout_backward(work->hidden, offset_grad, grads->output, &zero_grad, work->offset,
                                    weights->output, 1, weights->sizes.hidden);
    grads->output[weights->sizes.hidden] += zero_grad;
    for (int32_t i = 0; i < local->candidate_count;) {
        int32_t nodes[PATH_ROWS], count = 0;
        float score_grads[PATH_ROWS];
        for (; i < local->candidate_count && count < PATH_ROWS; i++) {
            if (work->score_grads[i] == 0) continue;
            nodes[count] = local->queue[i];
            score_grads[count++] = work->score_grads[i];
        }
        if (count > 0) readout_block(work, grads, offset_grad, nodes, score_grads, count);
    }
    offset_backward(work, grads, key_grads, offset_grad);
}

/* ---- Layers, backward ---------------------------------------------------------------------------- */

/* From the gradients z of a block by way of the update matrix W: y_grad = or += z W^T, W's gradient
 * += y^T z, and where `scaled` is not NULL that += scale times the same. */
typedef struct matrix_gradient {
    int64_t matrix; /* the number of W */
    bool add;
    float *update, *scaled;
    float scale;
} matrix_gradient;

static void multiply_z(path_work *work, const matrix_gradient *to, const float *z, int32_t count) {
    const path_weights *weights = work->weights;
    const path_bf16_kernels *bf16 = work->bf16;
    int64_t width = weights->sizes.width, size = weights->sizes.matrix, parts = PATH_PARTS * width;
    if (bf16) {
        bf16->pack(work->z_bf16, z, padded(count * width));
        bf16->product(work->y_grad, work->z_bf16, weights->transposed_bf16 + to->matrix * size / 2,
                      count, parts, width / 2, to->add);
        bf16->pack_pairs(work->z_bf16, z, count, width);
        bf16->outer(to->update, to->scaled, to->scale, work->y_bf16, work->z_bf16, (count + 1) / 2,
                    parts, width);
    } else {
        work->kernels->product(work->y_grad, z, weights->transposed + to->matrix * size, count, parts,
                               width, to->add);
        work->kernels->outer(to->update, to->scaled, to->scale, work->y, z, count, parts, width);
    }
}

/* A block's way back from the gradients of z, rows of work->changes. */
static void backward_block(path_work *work, const path_gradients *grads, const path_scatter *scatter,
                           const path_layer *layer, int32_t class, int32_t begin, int32_t count) {
    const path_weights *weights = work->weights;
    const int32_t *rows = work->rows + begin;
    int64_t width = weights->sizes.width, matrix = weights->sizes.matrix;
    int64_t at = path_matrix(weights, layer->layer, class);
    float *update = grads->update + 2 * layer->layer * matrix;
    bool frequent = class < weights->classes;
    /* Products read whole tiles of rows: changes are read from a block of their own. */
    memcpy(work->z, work->changes + begin * width, (size_t)(count * width) * sizeof(float));
    work->kernels->aggregate(work->y, work->largest, work->smallest, layer, rows, count);
    if (work->bf16) work->bf16->pack_pairs(work->y_bf16, work->y, count, PATH_PARTS * width);
    matrix_gradient plain = {at, false, update, frequent ? update + matrix : NULL,
                             frequent ? weights->scales[class] : 0};
    multiply_z(work, &plain, work->z, count);
    if (!frequent) {
        float scales[PATH_ROWS];
        scales_of(scales, work, rows, count);
        memset(work->scaled, 0, (size_t)(count * width) * sizeof(float));
        add_rows(work->scaled, work->z, scales, width, count);
        matrix_gradient scaled = {at + 1, true, update + matrix, NULL, 0};
        multiply_z(work, &scaled, work->scaled, count);
    }
    path_block block = {rows, count, work->y, work->y_grad, work->largest, work->smallest};
    work->kernels->scatter(scatter, layer, &block);
}

/* Gradients of z for all rows that have received a gradient, before messages add to those of states. */
static void normalize_rows(path_work *work, const path_gradients *grads, int32_t l, int32_t total) {
    int64_t width = work->weights->sizes.width;
    path_norm norm = norm_of(work, l, true);
    float *norm_grads = grads->norm + 2 * l * width, *bias = grads->bias + 2 * l * width;
    for (int32_t i = 0; i < total; i += PATH_ROWS) {
        int32_t count = total - i < PATH_ROWS ? total - i : PATH_ROWS;
        float scales[PATH_ROWS];
        scales_of(scales, work, work->rows + i, count);
        path_norm_gradients to = {.z = work->changes + i * width,
                                  .scale = norm_grads,
                                  .shift = norm_grads + width,
                                  .bias = bias,
                                  .scaled_bias = bias + width};
        work->kernels->normalize_backward(&to, &norm, work->state_grads, work->rows + i, scales, count);
    }
}

static void backward_layer(path_work *work, const path_gradients *grads,
                           const path_key_gradients *key_grads, int32_t l, float *messages) {
    const path_sizes *sizes = &work->weights->sizes;
    int32_t begins[PATH_CLASSES + 2], classes = work->weights->classes;
    path_layer layer = layer_of(work, l);
    path_scatter scatter = {.states = work->state_grads,
                            .active = work->active,
                            .relation = key_grads->relation + l * sizes->relations * sizes->width,
                            .query = key_grads->query,
                            .messages = messages};
    choose_rows(work, l, true, begins);
    normalize_rows(work, grads, l, begins[classes + 1]);
    for (int32_t class = 0; class <= classes; class ++)
        for (int32_t i = begins[class]; i < begins[class + 1]; i += PATH_ROWS) {
            int32_t left = begins[class + 1] - i, count = left < PATH_ROWS ? left : PATH_ROWS;
            backward_block(work, grads, &scatter, &layer, class, i, count);
        }
}

vlp_status path_backward(vlp_compute *compute, path_work *work, const path_gradients *grads,
                         const path_key_gradients *key_grads, float zero_grad, float *messages) {
    const path_sizes *sizes = &work->weights->sizes;
    VLP_TRY(open_gradients(compute, work));
    readout_backward(work, grads, key_grads, zero_grad);
    for (int32_t l = sizes->layers - 1; l >= 0; l--)
        backward_layer(work, grads, key_grads, l,
                       messages ? messages + (int64_t)l * work->local.edge_count : NULL);
    if (work->active[0])
        for (int64_t j = 0; j < sizes->dim; j++) key_grads->query[j] += work->state_grads[j];
    return VLP_OK;
}
