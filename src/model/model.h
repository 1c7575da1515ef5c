/* A model: the tables of parameters of its components, on a backend. What a component is in the layers
 * above: eval/component.h (its scores), learn/component.h (its training), run/explain.h. */
#ifndef VLP_MODEL_MODEL_H
#define VLP_MODEL_MODEL_H

#include "compute/backend.h"
#include "model/gsf.h"

typedef struct vlp_table {
    const char *name; /* in weight files */
    vlp_component component;
    int64_t rows;
    int32_t width;
    bool by_rows;     /* gradients are added to some rows: they are marked in `touched` */
    bool allows_bf16; /* training may read it as a bf16 copy */
    int32_t parts;    /* of a row of that copy: see vlp_bf16_layout */
    float *value;     /* (rows, width), on the backend. Rows of zeros follow up to a multiple of its
                         stride: products over all rows may include them, which is far faster on some
                         backends */
    /* for training, NULL otherwise */
    float *grad, *first, *second;
    uint8_t
        *touched; /* (rows) where `by_rows`: see vlp_table_gradient; NULL: every step sets all rows */
    /* Where training reads a bf16 copy, NULL otherwise: rows as in `value`, written by updates. */
    vlp_bf16 *bf16;
    vlp_bf16_layout layout;
} vlp_table;

/* What a model is made from. */
typedef struct vlp_model_shape {
    vlp_model_options options;
    int32_t entities, relations; /* relations: with the inverse ones */
    unsigned components;         /* bits */
    vlp_path_form path;          /* read where components have VLP_PATH */
} vlp_model_shape;

typedef struct vlp_model {
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_form form;
    vlp_model_options options;
    int32_t entities, relations; /* relations: with the inverse ones */
    unsigned components;         /* bits */
    vlp_path_form path;
    /* The tables, those of a component together. */
    vlp_table tables[VLP_MAX_TABLES];
    int32_t table_count;
    struct {
        int32_t first, count;
    } ranges[VLP_COMPONENTS]; /* of `tables` */
} vlp_model;

/* Initial values of a table, from a random stream of its own; uniform and normal both 0: zeros. */
typedef struct vlp_value_range {
    uint32_t stream;
    float uniform; /* half the width of the range */
    float normal;  /* deviation, where uniform is 0 */
} vlp_value_range;

/* A component's tables: what it adds to a model. */
typedef struct vlp_component_tables {
    const char *name;
    /* Adds its tables by vlp_model_add_table. */
    void (*declare)(vlp_model *model);
    /* The initial values of its table `index`. init_scale: the setting. */
    vlp_value_range (*initial)(const vlp_model *model, int32_t index, double init_scale);
    /* In place of `initial`: the initial value of one number. */
    float (*value)(const vlp_model *model, int32_t index, int64_t row, int32_t column, uint64_t seed);
} vlp_component_tables;

extern const vlp_component_tables vlp_horizontal_tables, vlp_vertical_tables, vlp_path_component_tables;

/* name, component, rows, width, by_rows, allows_bf16 and parts are the caller's. */
void vlp_model_add_table(vlp_model *model, vlp_table table);

/* The tables of a shape without memory, to ask for their sizes. Freed with vlp_model_free. */
vlp_status vlp_model_declare(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                             const vlp_model_shape *shape);
/* `training`: with gradients and moments. Values are zero. */
vlp_status vlp_model_new(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                         const vlp_model_shape *shape, bool training);
void vlp_model_free(vlp_model *model);

/* Bytes of the tables: values, and in training gradients and two moments of each. */
int64_t vlp_model_bytes(const vlp_model *model, bool training);

static inline bool vlp_model_has(const vlp_model *model, vlp_component component) {
    return model->components >> component & 1;
}

/* The table of a component that has number `index` in it. */
static inline const vlp_table *vlp_model_table(const vlp_model *model, vlp_component component,
                                               int32_t index) {
    assert(index < model->ranges[component].count);
    return &model->tables[model->ranges[component].first + index];
}

/* Keeps bf16 copies of the tables that allow it from now on; they are written by
 * vlp_model_convert_bf16, and by every update. */
vlp_status vlp_model_keep_bf16(vlp_model *model);
void vlp_model_convert_bf16(vlp_model *model);

/* Initial values, a function of the seed alone. Each table has its own random stream, so that no
 * component changes the values of another. */
vlp_status vlp_model_init(vlp_model *model, uint64_t seed, double init_scale);

static inline vlp_table_gradient vlp_table_gradient_of(const vlp_table *table) {
    return (vlp_table_gradient){table->grad, table->touched, table->rows, table->width};
}

/* ---- The horizontal component: embeddings ---- */

enum { VLP_TABLE_ENTITIES = 0, VLP_TABLE_RELATIONS, VLP_HORIZONTAL_TABLES };

static inline const vlp_table *vlp_model_entities(const vlp_model *model) {
    return vlp_model_table(model, VLP_HORIZONTAL, VLP_TABLE_ENTITIES);
}

static inline const vlp_table *vlp_model_relations(const vlp_model *model) {
    return vlp_model_table(model, VLP_HORIZONTAL, VLP_TABLE_RELATIONS);
}

/* Rows of a batch with their relations of the model. */
static inline vlp_related_rows vlp_model_related(const vlp_model *model, const float *rows,
                                                 const int32_t *relations, int64_t count) {
    return (vlp_related_rows){.count = count,
                              .rows = rows,
                              .relations = relations,
                              .relation_table = vlp_model_relations(model)->value,
                              .relation_count = model->relations};
}

/* ---- The vertical component: the aggregator (the paper's reference answer aggregation) ---- */

/* d_e outputs each. */
enum {
    VLP_AGGREGATOR_NODE = 0,    /* (d_e, d_q) W_node */
    VLP_AGGREGATOR_EDGE,        /* (d_e, d_q) W_edge */
    VLP_AGGREGATOR_OUTPUT,      /* (d_e, d_e + d_q) W_agg */
    VLP_AGGREGATOR_NODE_BIAS,   /* (1, d_e) */
    VLP_AGGREGATOR_EDGE_BIAS,   /* (1, d_e) */
    VLP_AGGREGATOR_OUTPUT_BIAS, /* (1, d_e) */
    VLP_VERTICAL_TABLES
};

/* Working memory for batches up to a size; the backward pass reads what the forward pass wrote. */
typedef struct vlp_aggregator_work {
    int32_t batch;
    bool uses_bf16; /* products are over bf16 copies */
    vlp_aggregator_inputs inputs;
    float *concat;      /* (batch, d_e + d_q) [t_N, q] */
    float *output;      /* (batch, d_e) t', then normalized */
    float *norms;       /* (batch) */
    float *activated;   /* (batch, d_e) t' before it is normalized */
    float *concat_grad; /* (batch, d_e) of t_N */
    float *spare;       /* (batch, d_q) */
    float *spare_rows;  /* (batch, d_e) */
    /* Where it uses_bf16, NULL otherwise: rows of one part; those of the output as the entities'. */
    vlp_bf16 *bf16_concat, *bf16_output;
    vlp_bf16 *bf16_grad, *bf16_concat_grad; /* of the output before its tanh, and of t_N */
} vlp_aggregator_work;

/* `uses_bf16`: products are over bf16 copies, where the model keeps them already. Scores that are ranked
 * are fp32. */
vlp_status vlp_aggregator_work_new(vlp_aggregator_work *work, const vlp_model *model, int32_t batch,
                                   bool uses_bf16);
void vlp_aggregator_work_free(vlp_aggregator_work *work, const vlp_model *model);

/* work->output (batch, d_e): t' / |t'|, from heads (batch, d_e), relations and q (batch, d_q). */
void vlp_aggregator_forward(const vlp_model *model, vlp_aggregator_work *work, const float *heads,
                            const int32_t *relations, const float *q,
                            const vlp_reference_batch *references, int64_t batch);

/* Where the gradient continues when embeddings receive it too. */
typedef struct vlp_aggregator_sources {
    const int32_t *heads, *relations; /* (batch) of the queries */
    float *q_grad;                    /* (batch, d_q), set */
} vlp_aggregator_sources;

/* From the gradient of work->output: the gradients of the aggregator's tables are set. output_grad is
 * fp32 in the layout of a bf16 copy; layout NULL: plain rows. `sources` NULL: stop-gradient (the
 * default: embeddings receive no gradient of the vertical loss); else what comes through references and
 * head entities is added to the gradients of entities and relations, and q_grad is set. */
vlp_status vlp_aggregator_backward(const vlp_model *model, vlp_aggregator_work *work,
                                   const float *output_grad, const vlp_bf16_layout *layout,
                                   const vlp_reference_batch *references, int64_t batch,
                                   const vlp_aggregator_sources *sources);

/* ---- The path component ---- */

/* Its tables, by vlp_path_table: values, or gradients. */
vlp_path_tables vlp_model_path_values(const vlp_model *model);
vlp_path_tables vlp_model_path_gradients(const vlp_model *model);

#endif
