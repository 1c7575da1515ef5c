#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

static const char *const names[VLP_TABLES] = {"entities",
                                              "relations",
                                              "aggregator_node",
                                              "aggregator_edge",
                                              "aggregator_output",
                                              "aggregator_node_bias",
                                              "aggregator_edge_bias",
                                              "aggregator_output_bias"};

static_assert((int)VLP_TABLES <= (int)VLP_MAX_TABLES, "steps and optimizers count on it");

static void set_shapes(vlp_model *model) {
    int32_t e = model->form.entity_width, q = model->form.query_width;
    const struct {
        int64_t rows;
        int32_t width;
    } shapes[VLP_TABLES] = {{model->entities, e},
                            {model->relations, model->form.relation_width},
                            {e, q},
                            {e, q},
                            {e, e + q},
                            {1, e},
                            {1, e},
                            {1, e}};
    for (int id = 0; id < VLP_TABLES; id++) {
        model->tables[id].name = names[id];
        if (vlp_table_of_aggregator(id) && !model->vertical) continue;
        model->tables[id].rows = shapes[id].rows;
        model->tables[id].width = shapes[id].width;
    }
}

/* Bytes of the model: values, and in training gradients and two moments of each. On the CPU the copies
 * that are saved are in the same memory. Never overflows. */
static int64_t model_bytes(const vlp_model *model, bool training) {
    double bytes = 0, parts = training ? 4 : 1;
    if (training && model->backend == &vlp_cpu_backend) parts += 3;
    for (int id = 0; id < VLP_TABLES; id++)
        bytes += (double)model->tables[id].rows * model->tables[id].width * sizeof(float);
    return parts * bytes < 0x1p62 ? (int64_t)(parts * bytes) : INT64_C(1) << 62;
}

/* Says before anything is allocated what would fit, where the backend counts its memory. */
static vlp_status check_memory(const vlp_model *model, bool training) {
    int64_t unused, total, needed = model_bytes(model, training);
    bool counts = model->backend->memory->available(model->compute, &unused, &total);
    if (!counts && needed == INT64_C(1) << 62) return vlp_fail_memory("the model");
    if (!counts || needed <= unused) return VLP_OK;
    vlp_model smaller = *model;
    while (smaller.options.dim > 1 && model_bytes(&smaller, training) > unused) {
        smaller.options.dim -= 1 + smaller.options.dim / 16;
        vlp_model_form(&smaller.form, &smaller.options);
        set_shapes(&smaller);
    }
    char advice[64];
    snprintf(advice, sizeof advice, "dim = %d would fit", smaller.options.dim);
    return vlp_fail_device_memory(model->backend, model->compute, "the model", needed, advice);
}

/* With the padding. */
static int64_t padded_rows(const vlp_model *model, const vlp_table *table) {
    int64_t unit = model->backend->stride;
    return (table->rows + unit - 1) / unit * unit;
}

static vlp_status allocate_table(const vlp_model *model, vlp_table *table, bool training) {
    size_t count = (size_t)padded_rows(model, table) * (size_t)table->width;
    float **parts[4] = {&table->value, &table->grad, &table->first, &table->second};
    for (int i = 0; i < (training ? 4 : 1); i++) {
        *parts[i] = model->backend->memory->allocate(model->compute, count * sizeof(float));
        if (!*parts[i]) return vlp_fail_memory(table->name);
    }
    if (training && table == &model->tables[VLP_TABLE_ENTITIES]) {
        table->touched = model->backend->memory->allocate(model->compute, (size_t)table->rows);
        if (!table->touched) return vlp_fail_memory(table->name);
    }
    return VLP_OK;
}

vlp_status vlp_model_new(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                         const vlp_model_options *options, int32_t entities, int32_t relations,
                         bool vertical, bool training) {
    *out = NULL;
    VLP_TRY(vlp_model_check(options));
    vlp_model *model = vlp_alloc_zero(1, sizeof *model);
    if (!model) return vlp_fail_memory("a model");
    model->backend = backend;
    model->compute = compute;
    model->options = *options;
    model->entities = entities;
    model->relations = relations;
    model->vertical = vertical;
    vlp_model_form(&model->form, options);
    set_shapes(model);
    vlp_status status = check_memory(model, training);
    for (int id = 0; id < VLP_TABLES && status == VLP_OK; id++)
        status = allocate_table(model, &model->tables[id], training);
    if (status != VLP_OK) {
        vlp_model_free(model);
        return status;
    }
    *out = model;
    return VLP_OK;
}

void vlp_model_free(vlp_model *model) {
    if (!model) return;
    for (int id = 0; id < VLP_TABLES; id++) {
        vlp_table *table = &model->tables[id];
        void *parts[] = {table->value,  table->grad,    table->first,
                         table->second, table->touched, table->bf16};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (parts[i]) model->backend->memory->release(model->compute, parts[i]);
    }
    vlp_free(model);
}

/* ---- bf16 copies ------------------------------------------------------------------------------ */

static bool has_bf16(int id) {
    return id == VLP_TABLE_ENTITIES || id == VLP_TABLE_NODE || id == VLP_TABLE_EDGE ||
           id == VLP_TABLE_OUTPUT;
}

vlp_status vlp_model_keep_bf16(vlp_model *model) {
    assert(model->backend->bf16);
    for (int id = 0; id < VLP_TABLES; id++) {
        vlp_table *table = &model->tables[id];
        if (!has_bf16(id) || table->rows == 0 || table->bf16) continue;
        /* Each part of the similarity's unit is aligned. */
        int32_t parts = id == VLP_TABLE_ENTITIES ? vlp_similarity_parts(model->form.similarity) : 1;
        table->layout = vlp_bf16_layout_of(parts, table->width / parts);
        size_t count =
            (size_t)padded_rows(model, table) * (size_t)vlp_bf16_layout_stride(&table->layout);
        table->bf16 = model->backend->memory->allocate(model->compute, count * sizeof *table->bf16);
        if (!table->bf16)
            return vlp_fail_device_memory(model->backend, model->compute, "bf16 copies",
                                          (int64_t)(count * sizeof *table->bf16),
                                          "lower dim, or set precision = fp32");
    }
    return VLP_OK;
}

void vlp_model_convert_bf16(vlp_model *model) {
    for (int id = 0; id < VLP_TABLES; id++) {
        vlp_table *table = &model->tables[id];
        if (table->bf16)
            model->backend->bf16->convert_rows(model->compute, table->bf16, &table->layout, table->value,
                                               table->width, table->rows);
    }
}

/* ---- Initial values ------------------------------------------------------------------------------ */

typedef struct value_range {
    uint32_t stream;
    float uniform; /* half the width of the range, or 0 */
    float normal;  /* standard deviation, where uniform is 0 */
} value_range;

static void fill_values(float *values, int64_t count, uint64_t seed, value_range range) {
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < (count + 3) / 4; block++) {
        vlp_random4 bits = vlp_random(seed, range.stream, (uint64_t)block, 0);
        for (int i = 0; i < 4 && block * 4 + i < count; i++) {
            float unit = vlp_random_unit(bits.v[i]), value = range.uniform * (2 * unit - 1);
            if (range.uniform == 0) { /* Box-Muller over two of the four words */
                float other = vlp_random_unit(bits.v[i ^ 1]);
                float radius = sqrtf(-2 * logf((i & 1 ? other : unit) + 0x1p-25f));
                float angle = 6.2831853f * (i & 1 ? unit : other);
                value = range.normal * radius * (i & 1 ? sinf(angle) : cosf(angle));
            }
            values[block * 4 + i] = value;
        }
    }
}

vlp_status vlp_model_init(vlp_model *model, uint64_t seed, double init_scale) {
    int32_t dim = model->options.dim;
    float range = (float)((model->options.margin + 2) / dim);
    for (int id = 0; id < VLP_TABLES; id++) {
        vlp_table *table = &model->tables[id];
        int64_t count = table->rows * table->width;
        bool bias = id >= VLP_TABLE_NODE_BIAS;
        if (count == 0 || bias) continue; /* biases start at zero */
        value_range values = {VLP_STREAM_ENTITIES + (uint32_t)id, range, 0};
        if (vlp_table_of_aggregator(id)) {
            values.stream = VLP_STREAM_AGGREGATOR + 0x100 * (uint32_t)id;
            values.uniform = (float)sqrt(6.0 / (double)(table->rows + table->width));
        } else if (init_scale > 0) {
            values = (value_range){values.stream, 0, (float)init_scale};
        }
        float *host = vlp_alloc((size_t)count, sizeof *host);
        if (!host) return vlp_fail_memory("initial values");
        fill_values(host, count, seed, values);
        vlp_status status = model->backend->memory->upload(model->compute, table->value, host,
                                                           (size_t)count * sizeof *host);
        vlp_free(host);
        VLP_TRY(status);
    }
    return VLP_OK;
}
