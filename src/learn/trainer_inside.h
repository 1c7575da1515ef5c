/* The inside of a trainer, for the files that make a step. */
#ifndef VLP_LEARN_TRAINER_INSIDE_H
#define VLP_LEARN_TRAINER_INSIDE_H

#include "learn/trainer.h"

/* Logits of one block of rows: at most this many numbers. */
enum { LOGIT_LIMIT = 64 << 20 };

struct vlp_trainer {
    const vlp_dataset *dataset;
    const vlp_settings *settings;
    vlp_model *model;
    const vlp_observer *observer;
    int64_t queries; /* 2 * train */
    int32_t batch, width, relations;
    vlp_filter *known;          /* of train */
    vlp_shells *shells;         /* for ReD */
    vlp_references *references; /* of all training queries, for the head */
    /* The batch, on the host. */
    int64_t *query;
    int32_t *heads, *query_relations, *answers, *pairs;
    float *weights, *even, *row_loss;
    int64_t *known_offset;
    int32_t *known_list;
    int64_t known_capacity;
    int32_t *reference_heads, *reference_answers, *reference_counts;
    /* The columns of a sampled softmax, on the host: ids, log corrections, each query's answer's place.
     */
    int32_t *columns, *column_answers;
    float *offsets;
    int32_t *column_of; /* (entities) the place of an answer of the batch, -1 in between */
    /* On the backend. */
    int32_t *d_heads, *d_relations, *d_answers, *d_pairs;
    int32_t *d_reference_heads, *d_reference_answers, *d_reference_counts;
    float *d_weights, *d_even, *d_row_loss;
    float *head_rows, *heads_grad, *q, *q_grad; /* (batch, d) */
    float *scores;                              /* (batch, width) */
    float *logits;                              /* (block, entities) */
    float *inverse_norms;                       /* (entities) */
    float *output_grad;                         /* (batch, d_e) */
    int32_t *d_columns, *d_column_answers;
    float *d_offsets, *candidate_rows; /* of a sampled softmax */
    /* Where embeddings feel L1: the candidates' gradients, and the query's. */
    float *candidate_grad, *projected, *vertical_q_grad;
    /* Where the relation is predicted too. */
    float *answer_rows, *answers_grad, *v, *v_grad, *relation_logits;
    int32_t block; /* rows of logits at a time */
    vlp_head_work head;
};

/* The sum of the first rows of d_row_loss. */
double vlp_trainer_sum(vlp_trainer *trainer, int64_t rows);

/* The two losses of a step, each adding to the gradients of what it trains. */
vlp_status vlp_horizontal_step(double *loss, vlp_trainer *trainer, int64_t step);
vlp_status vlp_vertical_step(double *loss, vlp_trainer *trainer, int64_t step);

#endif
