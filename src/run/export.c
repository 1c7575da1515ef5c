/* Writes the tables of a run as npy arrays, for programs that read those. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "run/run_internal.h"
#include "store/npy.h"

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

static vlp_status write_tables(const vlp_run *run, const vlp_model *model, const char *folder) {
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_table *table = &model->tables[i];
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("an export");
        vlp_status status =
            model->backend->memory->download(model->compute, values, table->value, bytes);
        if (status == VLP_OK)
            status = vlp_model_has(model, VLP_HORIZONTAL) && table == vlp_model_relations(model)
                         ? write_relations(folder, run, values)
                         : write_array(folder, table->name, values, table->rows, table->width);
        vlp_free(values);
        VLP_TRY(status);
    }
    return VLP_OK;
}

vlp_status vlp_run_export(const vlp_run *run, const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return vlp_fail_io("make", folder, errno);
    vlp_worker *worker;
    VLP_TRY(vlp_run_enter(&worker, run));
    vlp_status status = write_tables(run, &worker->model, folder);
    vlp_run_leave(run, worker);
    VLP_TRY(status);
    return vlp_run_folder_write_names(folder, run->dataset);
}
