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

/* Relations as others read them: the arrays that the model's row names. values (rows, relation_width) is
 * changed. */
static vlp_status write_relations(const char *folder, const vlp_run *run, float *values) {
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

vlp_status vlp_run_export(const vlp_run *run, const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return vlp_fail_io("make", folder, errno);
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &run->model->tables[id];
        if (table->rows == 0) continue;
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("an export");
        vlp_status status = run->backend->memory->download(run->compute, values, table->value, bytes);
        if (status == VLP_OK)
            status = id == VLP_TABLE_RELATIONS
                         ? write_relations(folder, run, values)
                         : write_array(folder, table->name, values, table->rows, table->width);
        vlp_free(values);
        VLP_TRY(status);
    }
    return vlp_run_folder_write_names(folder, run->dataset);
}
