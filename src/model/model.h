/* A model with its parameters: tables on a backend, and the vertical aggregator over them. */
#ifndef VLP_MODEL_MODEL_H
#define VLP_MODEL_MODEL_H

#include "compute/backend.h"
#include "model/gsf.h"

/* The tables, by name in weight files. */
typedef enum vlp_table_id {
    VLP_TABLE_ENTITIES = 0,
    VLP_TABLE_RELATIONS,
    /* the vertical aggregator, d_e outputs each */
    VLP_TABLE_NODE,        /* (d_e, d_q) W_node */
    VLP_TABLE_EDGE,        /* (d_e, d_q) W_edge */
    VLP_TABLE_OUTPUT,      /* (d_e, d_e + d_q) W_agg */
    VLP_TABLE_NODE_BIAS,   /* (1, d_e) */
    VLP_TABLE_EDGE_BIAS,   /* (1, d_e) */
    VLP_TABLE_OUTPUT_BIAS, /* (1, d_e) */
    VLP_TABLES
} vlp_table_id;

typedef struct vlp_table {
    const char *name;
    int64_t rows;
    int32_t width;
    float *value; /* (rows, width), on the backend, padded with rows of zeros to a multiple of its
                     stride: products may include them, which is far faster on some backends */
    /* for training, NULL otherwise */
    float *grad, *first, *second;
    uint8_t *touched; /* (rows) as in vlp_table_gradient. Of entities alone: the gradients of other
                         tables are complete in every step */
    /* The bf16 copy that training reads, kept up to date by updates; NULL: none. */
    vlp_bf16 *bf16;
    vlp_bf16_layout layout;
} vlp_table;

typedef struct vlp_model {
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_form form;
    vlp_model_options options;
    int32_t entities, relations; /* relations: with the inverse ones */
    bool vertical;
    vlp_table tables[VLP_TABLES]; /* those of the aggregator are empty without one */
} vlp_model;

/* `training`: with gradients and moments. Values are zero. */
vlp_status vlp_model_new(vlp_model **out, const vlp_backend *backend, vlp_compute *compute,
                         const vlp_model_options *options, int32_t entities, int32_t relations,
                         bool vertical, bool training);
void vlp_model_free(vlp_model *model);

/* Keeps bf16 copies of entities and the aggregator's matrices from now on; they are written by
 * vlp_model_convert_bf16, and by every update. */
vlp_status vlp_model_keep_bf16(vlp_model *model);
void vlp_model_convert_bf16(vlp_model *model);

/* Initial values, a function of the seed alone: tables uniform within +-(margin + 2) / dim or normal
 * with deviation init_scale where it is not 0; the aggregator's by fan-in and fan-out. Each table has
 * a random stream of its own, so that the aggregator does not change the others. */
vlp_status vlp_model_init(vlp_model *model, uint64_t seed, double init_scale);

static inline bool vlp_table_of_aggregator(int id) {
    return id >= VLP_TABLE_NODE;
}

static inline vlp_table_gradient vlp_table_gradient_of(const vlp_table *table) {
    return (vlp_table_gradient){table->grad, table->touched, table->rows, table->width};
}

/* Rows of a batch with their relations of the model. */
static inline vlp_related_rows vlp_model_related(const vlp_model *model, const float *rows,
                                                 const int32_t *relations, int64_t count) {
    return (vlp_related_rows){.count = count,
                              .rows = rows,
                              .relations = relations,
                              .relation_table = model->tables[VLP_TABLE_RELATIONS].value,
                              .relation_count = model->relations};
}

/* ---- The vertical aggregator (the paper's reference answer aggregation) ---- */

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
    /* Where it uses_bf16, NULL otherwise: rows of one part; the output in the entities' layout. */
    vlp_bf16 *bf16_concat, *bf16_output;
    vlp_bf16 *bf16_grad, *bf16_concat_grad; /* of the output before its tanh, and of t_N */
} vlp_aggregator_work;

/* `uses_bf16`: products are over bf16 copies, where the model keeps them. Evaluations need fp32. */
vlp_status vlp_aggregator_work_new(vlp_aggregator_work *work, const vlp_model *model, int32_t batch,
                                   bool uses_bf16);
void vlp_aggregator_work_free(vlp_aggregator_work *work, const vlp_model *model);

/* work->output (batch, d_e): t' / |t'|, from heads (batch, d_e), relations and q (batch, d_q). */
void vlp_aggregator_forward(const vlp_model *model, vlp_aggregator_work *work, const float *heads,
                            const int32_t *relations, const float *q,
                            const vlp_reference_batch *references, int64_t batch);
/* Where the vertical loss's gradient goes without the stop-gradient at the embeddings. */
typedef struct vlp_aggregator_sources {
    const int32_t *heads, *relations; /* (batch) of the queries */
    float *q_grad;                    /* (batch, d_q), set */
} vlp_aggregator_sources;

/* From the gradient of work->output: sets the gradients of the aggregator's tables. output_grad is fp32
 * in the layout of a bf16 copy; layout NULL: plain rows. `sources` NULL is the stop-gradient (the
 * default: embeddings receive no gradient of the vertical loss); else the gradients of entities and
 * relations through references and head entities are added, and q_grad is set. */
vlp_status vlp_aggregator_backward(const vlp_model *model, vlp_aggregator_work *work,
                                   const float *output_grad, const vlp_bf16_layout *layout,
                                   const vlp_reference_batch *references, int64_t batch,
                                   const vlp_aggregator_sources *sources);

#endif
