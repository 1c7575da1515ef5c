/* The tables of the path component: those of compute/paths.h. */
#include "model/model.h"

static void declare(vlp_model *model) {
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        vlp_path_shape shape = vlp_path_table_shape(&model->path, (vlp_path_table)table);
        vlp_model_add_table(model, (vlp_table){.name = vlp_path_table_name((vlp_path_table)table),
                                               .component = VLP_PATH,
                                               .rows = shape.rows,
                                               .width = shape.width});
    }
}

static float value(const vlp_model *model, int32_t index, int64_t row, int32_t column, uint64_t seed) {
    return vlp_path_initial(&model->path, (vlp_path_table)index, row, column, seed);
}

vlp_path_tables vlp_model_path_values(const vlp_model *model) {
    vlp_path_tables out;
    for (int i = 0; i < VLP_PATH_TABLES; i++) out.table[i] = vlp_model_table(model, VLP_PATH, i)->value;
    return out;
}

vlp_path_tables vlp_model_path_gradients(const vlp_model *model) {
    vlp_path_tables out;
    for (int i = 0; i < VLP_PATH_TABLES; i++) out.table[i] = vlp_model_table(model, VLP_PATH, i)->grad;
    return out;
}

const vlp_component_tables vlp_path_component_tables = {"path", declare, NULL, value};
