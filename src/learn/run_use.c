/* Runs that are finished: opening and exporting. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "learn/run_inside.h"
#include "store/npy.h"

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status fill(vlp_run *run, const vlp_run_options *options) {
    VLP_TRY(vlp_run_settings(&run->settings, run->folder));
    if (options->threads > 0) run->settings.threads = options->threads;
    VLP_TRY(vlp_run_load_facts(&run->facts, run->folder));
    vlp_dataset_options opening = {1, run->settings.threads, options->observer};
    const char *data = options->data ? options->data : run->facts.data;
    VLP_TRY(vlp_dataset_open(&run->dataset, data, &opening));
    char checksum[33];
    vlp_dataset_checksum(checksum, run->dataset);
    if (strcmp(checksum, run->facts.checksum) != 0)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s is not the data set that %s was trained on: its names or triples differ",
                        data, run->folder);
    VLP_TRY(vlp_backend_find(&run->backend, options->device ? options->device : "auto"));
    VLP_TRY(run->backend->open(&run->compute, run->settings.threads));
    vlp_model_options model = {run->settings.model, run->settings.dim, run->settings.relation_dim,
                               run->settings.norm, run->settings.margin};
    VLP_TRY(vlp_model_new(&run->model, run->backend, run->compute, &model,
                          vlp_dataset_entity_count(run->dataset),
                          2 * vlp_dataset_relation_count(run->dataset), run->settings.vertical, false));
    return vlp_run_load_model(run->model, &run->progress, &run->facts, run->folder);
}

vlp_status vlp_run_open(vlp_run **out, const char *folder, const vlp_run_options *given) {
    *out = NULL;
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    if (given) options = *given;
    vlp_run *run = vlp_alloc_zero(1, sizeof *run);
    if (!run) return vlp_fail_memory("a run");
    run->folder = vlp_string_copy(folder);
    vlp_status status = run->folder ? fill(run, &options) : vlp_fail_memory("a run");
    if (status != VLP_OK) {
        vlp_run_free(run);
        return status;
    }
    *out = run;
    return VLP_OK;
}

void vlp_run_free(vlp_run *run) {
    if (!run) return;
    vlp_run_predicting_free(run);
    vlp_model_free(run->model);
    if (run->backend) run->backend->close(run->compute);
    vlp_dataset_free(run->dataset);
    vlp_free(run->folder);
    vlp_free(run);
}

const vlp_dataset *vlp_run_dataset(const vlp_run *run) {
    return run->dataset;
}

/* ---- Exporting ----------------------------------------------------------------------------------- */

static vlp_status write_array(const char *folder, const char *name, const float *data, int64_t rows,
                              int64_t columns) {
    char file[64];
    snprintf(file, sizeof file, "%s.npy", name);
    char *path = vlp_path_join(folder, file);
    if (!path) return vlp_fail_memory("a file name");
    vlp_tensor tensor = {name, VLP_F32, 2, {rows, columns, 0, 0}, data};
    vlp_status status = vlp_npy_write(path, &tensor);
    vlp_free(path);
    return status;
}

/* Relations as others read them: phases in radians, translations apart from matrices. */
static vlp_status write_relations(const char *folder, const vlp_run *run, float *values) {
    const vlp_form *form = &run->model->form;
    int64_t rows = run->model->relations, width = form->relation_width;
    if (form->transform == VLP_ROTATE)
        for (int64_t i = 0; i < rows * width; i++) values[i] *= form->phase_scale;
    if (form->transform != VLP_MATRIX_TRANSLATE)
        return write_array(folder, "relations", values, rows, width);
    int64_t matrix = (int64_t)form->query_width * form->entity_width, shift = form->query_width;
    float *parts = vlp_alloc((size_t)(rows * width), sizeof *parts);
    if (!parts) return vlp_fail_memory("an export");
    for (int64_t i = 0; i < rows; i++) {
        memcpy(parts + i * matrix, values + i * width, (size_t)matrix * sizeof *parts);
        memcpy(parts + rows * matrix + i * shift, values + i * width + matrix,
               (size_t)shift * sizeof *parts);
    }
    vlp_status status = write_array(folder, "relations", parts, rows, matrix);
    if (status == VLP_OK)
        status = write_array(folder, "translations", parts + rows * matrix, rows, shift);
    vlp_free(parts);
    return status;
}

vlp_status vlp_run_export(const vlp_run *run, const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return vlp_fail_io("make", folder, errno);
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &run->model->tables[id];
        if (table->rows == 0) continue;
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("an export");
        vlp_status status = run->backend->download(run->compute, values, table->value, bytes);
        if (status == VLP_OK)
            status = id == VLP_TABLE_RELATIONS
                         ? write_relations(folder, run, values)
                         : write_array(folder, table->name, values, table->rows, table->width);
        vlp_free(values);
        VLP_TRY(status);
    }
    return vlp_run_write_names(folder, run->dataset);
}
