/* The tables of a run, for other programs: in memory, or as npy arrays in a folder that appears whole or
 * not at all. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"
#include "store/npy.h"

static vlp_status write_array(vlp_staging *folder, const char *name, const float *data, int64_t rows,
                              int64_t columns) {
    char file[64];
    snprintf(file, sizeof file, "%s.npy", name);
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, folder, file));
    vlp_tensor tensor = {name, VLP_F32, 2, {rows, columns, 0, 0}, data};
    vlp_npy_put(writer, &tensor);
    return vlp_writer_commit(&writer);
}

/* Relations as others read them: the arrays that the model's row names. values (rows, relation_width) is
 * changed. */
static vlp_status write_relations(vlp_staging *folder, const vlp_run *run, float *values) {
    const vlp_form *form = &run->model->form;
    const vlp_model_row *model = vlp_model_row_of(run->model->options.kind);
    vlp_model_array arrays[VLP_MAX_MODEL_ARRAYS];
    int64_t rows = run->model->relations, width = form->relation_width;
    int32_t count = vlp_model_arrays(arrays, model, form);
    float *array = vlp_alloc((size_t)(rows * width), sizeof *array);
    if (!array) return vlp_fail_memory("an export");
    for (int64_t i = 0; model->to_arrays && i < rows; i++) model->to_arrays(values + i * width, form);
    vlp_status status = VLP_OK;
    for (int32_t n = 0; n < count && status == VLP_OK; n++) {
        int64_t part = arrays[n].width;
        for (int64_t i = 0; i < rows; i++)
            memcpy(array + i * part, values + i * width + arrays[n].offset,
                   (size_t)part * sizeof *array);
        status = write_array(folder, arrays[n].name, array, rows, part);
    }
    vlp_free(array);
    return status;
}

static vlp_status write_table(vlp_staging *folder, const vlp_run *run, const vlp_model *model,
                              const vlp_table *table) {
    size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
    float *values = vlp_alloc(bytes, 1);
    if (!values) return vlp_fail_memory("an export");
    vlp_status status = model->backend->memory->download(model->compute, values, table->value, bytes);
    if (status == VLP_OK)
        status = vlp_model_has(model, VLP_HORIZONTAL) && table == vlp_model_relations(model)
                     ? write_relations(folder, run, values)
                     : write_array(folder, table->name, values, table->rows, table->width);
    vlp_free(values);
    return status;
}

/* The entities' table on the host, copied when it is first asked for. */
static vlp_status copy_embeddings(float **out, const vlp_run *run, const vlp_model *model) {
    vlp_run_gate *gate = run->gate;
    const vlp_table *table = vlp_model_entities(model);
    size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
    vlp_status status = VLP_OK;
    pthread_mutex_lock(&gate->copying);
    if (!gate->embeddings) {
        float *copy = vlp_alloc(bytes, 1);
        status = copy ? model->backend->memory->download(model->compute, copy, table->value, bytes)
                      : vlp_fail_memory("embeddings");
        if (status == VLP_OK)
            gate->embeddings = copy;
        else
            vlp_free(copy);
    }
    *out = gate->embeddings;
    pthread_mutex_unlock(&gate->copying);
    return status;
}

vlp_status vlp_run_entity_embeddings(vlp_embeddings *out, vlp_run *run) {
    VLP_REQUIRE(out);
    *out = (vlp_embeddings){NULL, 0, 0};
    VLP_REQUIRE(run);
    if (!vlp_model_has(run->model, VLP_HORIZONTAL)) return VLP_OK;
    const vlp_table *table = vlp_model_entities(run->model);
    float *values = table->value;
    if (run->backend != &vlp_cpu_backend) {
        vlp_worker *worker;
        VLP_TRY(vlp_run_enter(&worker, run));
        vlp_status status = copy_embeddings(&values, run, &worker->model);
        vlp_run_leave(run, worker);
        VLP_TRY(status);
    }
    *out = (vlp_embeddings){values, table->rows, table->width};
    return VLP_OK;
}

static vlp_status write_names(vlp_staging *folder, const vlp_run *run, bool entities) {
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, folder, entities ? "entities.tsv" : "relations.tsv"));
    vlp_run_folder_put_names(writer, run->dataset, entities);
    return vlp_writer_commit(&writer);
}

vlp_status vlp_run_export(const vlp_run *run, const char *folder) {
    VLP_REQUIRE(run);
    VLP_REQUIRE(folder);
    vlp_staging *staging = NULL;
    vlp_worker *worker = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY(vlp_staging_open(&staging, folder));
    VLP_CHECK(vlp_run_enter(&worker, run));
    for (int32_t i = 0; i < run->model->table_count; i++)
        VLP_CHECK(write_table(staging, run, &worker->model, &worker->model.tables[i]));
    VLP_CHECK(write_names(staging, run, true));
    VLP_CHECK(write_names(staging, run, false));
    VLP_CHECK(vlp_staging_commit(&staging));
out:
    if (worker) vlp_run_leave(run, worker);
    vlp_staging_free(staging);
    return status;
}
