#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

static const vlp_component_tables *const components[VLP_COMPONENTS] = {
    [VLP_HORIZONTAL] = &vlp_horizontal_tables,
    [VLP_VERTICAL] = &vlp_vertical_tables,
    [VLP_PATH] = &vlp_path_component_tables};

static_assert((int)VLP_COMPONENTS <= (int)VLP_MAX_COMPONENTS, "public arrays have no more elements");

const char *vlp_component_name(vlp_component component) {
    return (int)component >= 0 && component < VLP_COMPONENTS ? components[component]->name : NULL;
}

/* ---- Tables -------------------------------------------------------------------------------------- */

void vlp_model_add_table(vlp_model *model, vlp_table table) {
    assert(model->table_count < VLP_MAX_TABLES);
    if (model->ranges[table.component].count++ == 0)
        model->ranges[table.component].first = model->table_count;
    model->tables[model->table_count++] = table;
}

static void declare_tables(vlp_model *model) {
    model->table_count = 0;
    memset(model->ranges, 0, sizeof model->ranges);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (vlp_model_has(model, (vlp_component)c)) components[c]->declare(model);
}

/* Never overflows. */
int64_t vlp_model_bytes(const vlp_model *model, bool training) {
    double bytes = 0, parts = training ? 4 : 1;
    for (int32_t i = 0; i < model->table_count; i++)
        bytes += (double)model->tables[i].rows * model->tables[i].width * sizeof(float);
    return parts * bytes < 0x1p62 ? (int64_t)(parts * bytes) : INT64_C(1) << 62;
}

/* Says before anything is allocated what would fit, where the backend counts its memory. */
static vlp_status check_memory(const vlp_model *model, bool training) {
    int64_t unused, total, needed = vlp_model_bytes(model, training);
    bool counts = model->backend->memory->available(model->compute, &unused, &total);
    if (!counts && needed == INT64_C(1) << 62) return vlp_fail_memory("the model");
    if (!counts || needed <= unused) return VLP_OK;
    vlp_model smaller = *model;
    while (smaller.options.dim > 1 && vlp_model_bytes(&smaller, training) > unused) {
        smaller.options.dim -= 1 + smaller.options.dim / 16;
        vlp_model_form(&smaller.form, &smaller.options);
        declare_tables(&smaller);
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
    if (training && table->by_rows) {
        table->touched = model->backend->memory->allocate(model->compute, (size_t)table->rows);
        if (!table->touched) return vlp_fail_memory(table->name);
    }
    return VLP_OK;
}

vlp_status vlp_model_declare(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                             const vlp_model_shape *shape) {
    *out = NULL;
    VLP_TRY(vlp_model_check(&shape->options));
    vlp_model *model = vlp_alloc_zero(1, sizeof *model);
    if (!model) return vlp_fail_memory("a model");
    model->backend = backend;
    model->compute = compute;
    model->options = shape->options;
    model->entities = shape->entities;
    model->relations = shape->relations;
    model->components = shape->components;
    model->path = shape->path;
    model->path.relations = shape->relations;
    vlp_model_form(&model->form, &shape->options);
    declare_tables(model);
    *out = model;
    return VLP_OK;
}

vlp_status vlp_model_new(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                         const vlp_model_shape *shape, bool training) {
    vlp_model *model;
    *out = NULL;
    VLP_TRY(vlp_model_declare(&model, backend, compute, shape));
    vlp_status status = check_memory(model, training);
    for (int32_t i = 0; i < model->table_count && status == VLP_OK; i++)
        status = allocate_table(model, &model->tables[i], training);
    if (status != VLP_OK) {
        vlp_model_free(model);
        return status;
    }
    *out = model;
    return VLP_OK;
}

void vlp_model_free(vlp_model *model) {
    if (!model) return;
    for (int32_t i = 0; i < model->table_count; i++) {
        vlp_table *table = &model->tables[i];
        void *parts[] = {table->value,  table->grad,    table->first,
                         table->second, table->touched, table->bf16};
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if (parts[j]) model->backend->memory->release(model->compute, parts[j]);
    }
    vlp_free(model);
}

/* ---- bf16 copies ------------------------------------------------------------------------------ */

vlp_status vlp_model_keep_bf16(vlp_model *model) {
    assert(model->backend->bf16);
    for (int32_t i = 0; i < model->table_count; i++) {
        vlp_table *table = &model->tables[i];
        if (!table->allows_bf16 || table->bf16) continue;
        table->layout = vlp_bf16_layout_of(table->parts, table->width / table->parts);
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
    for (int32_t i = 0; i < model->table_count; i++) {
        vlp_table *table = &model->tables[i];
        if (table->bf16)
            model->backend->bf16->convert_rows(model->compute, table->bf16, &table->layout, table->value,
                                               table->width, table->rows);
    }
}

/* ---- Initial values ------------------------------------------------------------------------------ */

static void fill_values(float *values, int64_t count, uint64_t seed, vlp_value_range range) {
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

/* The values of table `index` of a component; false: they are zero. */
static bool initial_values(float *values, const vlp_model *model, const vlp_table *table, int32_t index,
                           uint64_t seed, double init_scale) {
    const vlp_component_tables *of = components[table->component];
    if (of->value) {
        for (int64_t i = 0; i < table->rows * table->width; i++)
            values[i] = of->value(model, index, i / table->width, (int32_t)(i % table->width), seed);
        return true;
    }
    vlp_value_range range = of->initial(model, index, init_scale);
    if (range.uniform == 0 && range.normal == 0) return false;
    fill_values(values, table->rows * table->width, seed, range);
    return true;
}

vlp_status vlp_model_init(vlp_model *model, uint64_t seed, double init_scale) {
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_table *table = &model->tables[i];
        int64_t count = table->rows * table->width;
        int32_t index = i - model->ranges[table->component].first;
        if (model->backend == &vlp_cpu_backend) {
            initial_values(table->value, model, table, index, seed, init_scale);
            continue;
        }
        float *host = vlp_alloc((size_t)count, sizeof *host);
        if (!host) return vlp_fail_memory("initial values");
        vlp_status status = VLP_OK;
        if (initial_values(host, model, table, index, seed, init_scale))
            status = model->backend->memory->upload(model->compute, table->value, host,
                                                    (size_t)count * sizeof *host);
        vlp_free(host);
        VLP_TRY(status);
    }
    return VLP_OK;
}
