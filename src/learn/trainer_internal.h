/* The inside of a trainer, for the files that compute a step. */
#ifndef VLP_LEARN_TRAINER_INTERNAL_H
#define VLP_LEARN_TRAINER_INTERNAL_H

#include "compute/paths.h"
#include "learn/batch_references.h"
#include "learn/component.h"

/* Logits of one block of rows: at most this many numbers. */
enum { LOGIT_LIMIT = 64 << 20 };

enum { MAX_RESIDENTS = 24, MAX_ARRAYS = 64 };

struct vlp_trainer {
    struct vlp_partitions *partitions; /* they make the steps; NULL: this trainer does */
    const vlp_dataset *dataset;
    const vlp_settings *settings;
    vlp_model *model;
    const vlp_observer *observer;
    unsigned trained;       /* the components whose tables steps update, as bits */
    int64_t queries;        /* 2 * train, or of a part of it */
    int64_t first_step;     /* from which batches are counted */
    vlp_path_keys keys;     /* on the host, where batches are of keys; else zeros */
    int64_t schedule_start; /* the step from which the schedule runs */
    int32_t batch;
    int32_t block;                /* rows of logits at a time */
    bool uses_bf16;               /* steps read bf16 copies (precision = bf16) */
    bool fresh;                   /* copies and norms are those of the tables */
    void *states[VLP_COMPONENTS]; /* NULL for components that are not there, or never trained */
    vlp_settings optimizers[VLP_COMPONENTS]; /* what each component is updated with */
    int64_t own_steps;                       /* of the stage of the component with its own batch */
    /* One for each set of components that is trained, made when it first is. */
    vlp_plan *plans[1 << VLP_COMPONENTS];
    /* On the backend. */
    vlp_step_report *report;
    vlp_query_tables tables; /* what choosing a batch reads: components add what they need */
    vlp_batch chosen;
    int32_t *ends;        /* (2 batch) the head entities and the answers of the chosen queries */
    float *head_rows, *q; /* (batch, d_e), (batch, d_q); NULL in a model without embeddings */
    /* The embeddings are the horizontal component's; others may read them or add to their gradients. */
    bool embeddings_shared; /* another component is not independent: it adds to their gradients */
    bool entities_dense;    /* it adds to all rows of entities */
    float *other_q_grad;    /* (batch, d_q) what it adds to the gradient of q; NULL: nothing */
    float *entity_norms;    /* (entities) 1 / norm, written by every update; NULL: not wanted */
    /* Memory on the backend, released with the trainer. */
    const void *residents[MAX_RESIDENTS];
    void *arrays[MAX_ARRAYS];
    int32_t resident_count, array_count;
};

/* The distance between rows of `columns` logits. */
static inline int64_t vlp_trainer_stride(const vlp_trainer *trainer, int64_t columns) {
    int64_t unit = trainer->model->backend->stride;
    return (columns + unit - 1) / unit * unit;
}

/* Gives the backend a host array that outlives the trainer's use; *out (a pointer) stays NULL for an
 * array that does not exist. */
vlp_status vlp_trainer_resident(vlp_trainer *trainer, void *out, const void *host, int64_t count,
                                size_t size);

/* Where the horizontal component is trained with loss = kvsall, batches are of keys: finds them and sets
 * tables.keys. The trainer frees them. */
vlp_status vlp_trainer_open_keys(vlp_trainer *trainer);

/* An array on the backend: where its pointer is, and its size. */
typedef struct vlp_trainer_array {
    void *place; /* address of the pointer, which stays NULL where count is 0 */
    int64_t count;
    size_t size;
} vlp_trainer_array;

/* Allocates arrays that are released with the trainer. */
vlp_status vlp_trainer_allocate(vlp_trainer *trainer, const vlp_trainer_array *arrays, int32_t count);

/* Adds the sum of row losses (rows), times a weight, to a component's loss in the report. */
void vlp_trainer_add_loss(vlp_trainer *trainer, vlp_component component, const float *row_loss,
                          int64_t rows, double weight);

/* ---- The horizontal component ---- */

typedef struct vlp_horizontal_state {
    vlp_filter *known;     /* of train */
    vlp_shells *shells;    /* for ReD */
    uint32_t *known_begin; /* (queries) in the filter's list */
    int32_t *known_counts; /* (queries) */
    vlp_shell_view view;
    const int32_t *known_list;
    int32_t width;         /* of a row of pairs: the answer and its negatives */
    bool fused;            /* entities are updated along with the gradients of their pairs */
    float *row_loss;       /* (batch) */
    float *heads_grad;     /* (batch, d_e) */
    float *dropped_q;      /* (batch, d_q) q with dropout; NULL: none */
    float *q_grad;         /* (batch, d_q) */
    float *scores;         /* (batch, width) */
    float *logits;         /* (block, columns), rows a stride apart */
    vlp_bf16 *bf16_q;      /* (batch, d_q) */
    vlp_bf16 *bf16_logits; /* gradients of logits */
    /* Where the relation is predicted too. answers_grad follows heads_grad. */
    float *answer_rows, *answers_grad, *v, *v_grad, *relation_logits;
} vlp_horizontal_state;

/* The pairs of the step: every query with its answer and its negatives. */
vlp_pairs vlp_horizontal_pairs(const vlp_horizontal_state *state, const vlp_trainer *trainer);

/* ---- The vertical component ---- */

typedef struct vlp_vertical_state {
    const vlp_model *model;
    vlp_references *references;        /* of all training queries; NULL: `ahead` */
    vlp_batch_references *ahead;       /* of one batch at a time */
    vlp_reference *batch_edges;        /* (batch, references) of `ahead`, on the backend */
    int32_t *batch_edge_counts;        /* (batch) */
    vlp_columns columns;               /* of a sampled softmax */
    int32_t block;                     /* rows of logits at a time */
    float *even;                       /* (batch) every query's weight in the loss */
    float *row_loss;                   /* (batch) */
    float *logits;                     /* (block, columns), rows a stride apart */
    float *inverse_norms;              /* (columns) */
    float *output_grad;                /* (batch, d_e) */
    float *candidate_rows;             /* of a sampled softmax */
    float *candidate_grad, *projected; /* where embeddings receive the gradient: of the candidates */
    bool uses_bf16;
    vlp_bf16 *bf16_logits; /* gradients of logits */
    float *padded_grad;    /* (batch, row of a bf16 copy): output_grad with padding */
    vlp_aggregator_work aggregator;
} vlp_vertical_state;

#endif
