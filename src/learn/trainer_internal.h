/* The inside of a trainer, for the files that make a step. */
#ifndef VLP_LEARN_TRAINER_INTERNAL_H
#define VLP_LEARN_TRAINER_INTERNAL_H

#include "learn/trainer.h"

/* Logits of one block of rows: at most this many numbers. */
enum { LOGIT_LIMIT = 64 << 20 };

enum { MAX_RESIDENTS = 16 };

struct vlp_trainer {
    const vlp_dataset *dataset;
    const vlp_settings *settings;
    vlp_model *model;
    const vlp_observer *observer;
    int64_t queries; /* 2 * train */
    int32_t batch, width;
    vlp_filter *known;          /* of train */
    vlp_shells *shells;         /* for ReD */
    vlp_references *references; /* of all training queries, for the head */
    uint32_t *known_begin;      /* (queries) in the filter's list */
    int32_t *known_counts;      /* (queries) */
    /* All that a step reads of these, for the backend to read. */
    vlp_query_tables tables;
    vlp_shell_view view;
    const int32_t *known_list;
    const void *residents[MAX_RESIDENTS];
    int32_t resident_count;
    /* A whole step, and one of the head alone. */
    vlp_plan *plans[2];
    /* On the backend. */
    vlp_step_report *report;
    vlp_batch chosen;
    int32_t *ends;       /* (2 batch) the heads and the answers of the chosen queries */
    vlp_columns columns; /* of a sampled softmax */
    float *even, *row_loss, *aggregator_loss;   /* (batch) */
    float *head_rows, *heads_grad, *q, *q_grad; /* (batch, d) */
    float *scores;                              /* (batch, width) */
    float *logits, *aggregator_logits;          /* (block, columns), rows `stride` apart */
    float *inverse_norms;                       /* (columns) */
    float *output_grad;                         /* (batch, d_e) */
    float *candidate_rows;                      /* of a sampled softmax */
    /* Where embeddings feel L1: the candidates' gradients, and the query's. */
    float *candidate_grad, *projected, *vertical_q_grad;
    /* Where the relation is predicted too. answers_grad stands behind heads_grad. */
    float *answer_rows, *answers_grad, *v, *v_grad, *relation_logits;
    int32_t block; /* rows of logits at a time */
    /* Where a step reads bf16 copies (precision = bf16). */
    bool uses_bf16, aggregator_uses_bf16;
    bool fused;       /* entities are updated along with the gradients of their pairs */
    bool fresh;       /* the copies and norms are those of the tables */
    vlp_bf16 *bf16_q; /* (batch, d_q) */
    vlp_bf16 *bf16_logits, *bf16_aggregator_logits; /* gradients of logits */
    float *padded_grad; /* (batch, row of a bf16 copy): output_grad with zeros in between */
    vlp_aggregator_work head;
};

/* How far apart rows of `columns` logits stand. */
static inline int64_t vlp_trainer_stride(const vlp_trainer *trainer, int64_t columns) {
    int64_t unit = trainer->model->backend->stride;
    return (columns + unit - 1) / unit * unit;
}

/* Adds the first rows of row_loss, or of aggregator_loss for the head, times a weight, to a loss of the
 * report.
 */
void vlp_trainer_add_loss(vlp_trainer *trainer, vlp_component component, int64_t rows, double weight);

/* The pairs of the step: every query with its answer and its negatives. */
vlp_pairs vlp_trainer_pairs(const vlp_trainer *trainer);

/* The two losses of a step, with the gradients of what they train (of entities only as far as `fused`
 * leaves them to the update). */
vlp_status vlp_horizontal_step(vlp_trainer *trainer);
vlp_status vlp_vertical_step(vlp_trainer *trainer);

#endif
