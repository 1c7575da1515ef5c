/* The tables of the horizontal component: the embeddings that f_g is computed from. */
#include "base/random.h"
#include "model/model.h"

static void declare(vlp_model *model) {
    vlp_model_add_table(model, (vlp_table){.name = "entities",
                                           .component = VLP_HORIZONTAL,
                                           .rows = model->entities,
                                           .width = model->form.entity_width,
                                           .by_rows = true,
                                           .allows_bf16 = true,
                                           .parts = vlp_similarity_parts(model->form.similarity)});
    vlp_model_add_table(model, (vlp_table){.name = "relations",
                                           .component = VLP_HORIZONTAL,
                                           .rows = model->relations,
                                           .width = model->form.relation_width});
}

/* Uniform within +-(margin + 2) / dim, or normal with deviation init_scale where it is not 0. */
static vlp_value_range initial(const vlp_model *model, int32_t index, double init_scale) {
    vlp_value_range range = {.stream = VLP_STREAM_ENTITIES + (uint32_t)index};
    if (init_scale > 0)
        range.normal = (float)init_scale;
    else
        range.uniform = (float)((model->options.margin + 2) / model->options.dim);
    return range;
}

const vlp_component_tables vlp_horizontal_tables = {"horizontal", declare, initial, NULL};
