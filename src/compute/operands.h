/* The operands of a backend's operations (compute/backend.h). Arrays they point to are in the backend's
 * memory, unless said otherwise; the structs themselves are the caller's, in host memory, and are read
 * before the operation returns. Matrices are row-major. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_OPERANDS_H
#define VLP_COMPUTE_OPERANDS_H

#include "base/base.h"
#include "compute/bf16.h"
#include "compute/form.h"
#include "compute/step.h"

/* ---- Products and tables ------------------------------------------------------------------------- */

/* c = alpha op(a) op(b) + beta c; op(a) is (m, k), op(b) (k, n), c (m, n). */
typedef struct vlp_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    float alpha, beta;
    int64_t lda, ldb, ldc; /* strides of the rows of a, b and c */
    /* Factors may be rounded to bf16, where the backend is faster with them; sums stay in fp32. */
    bool rounded;
} vlp_product;

/* The gradient of a table. A row that is not touched counts as zeros, whatever its memory holds; an
 * operation that adds to it marks it. */
typedef struct vlp_table_gradient {
    float *rows;      /* (count, width) */
    uint8_t *touched; /* (count); NULL: all rows are touched */
    int64_t count;
    int32_t width;
} vlp_table_gradient;

/* Lists of ids of at most `capacity` each: list i is ids[i * capacity + j], j < counts[i]. */
typedef struct vlp_id_lists {
    const int32_t *ids;    /* (count, capacity) */
    const int32_t *counts; /* (count) */
    int64_t count;
    int32_t capacity;
} vlp_id_lists;

/* The N3 regularizer: weight * sum of |x|^3 over the units of a row, |x| the length of a unit. */
typedef struct vlp_n3_options {
    float weight;
    int32_t parts; /* numbers of a unit, as in compute/transforms/unit.h */
} vlp_n3_options;

/* Dropout over rows, by the step's random words: a number is zero with the probability, or else divided
 * by what remains of 1. The same options give the same choice in the same step. */
typedef struct vlp_dropout {
    int64_t rows; /* at most VLP_DROPOUT_ROWS */
    int32_t width;
    float probability;
    uint64_t seed;
} vlp_dropout;

/* ---- Queries ------------------------------------------------------------------------------------- */

/* Rows of a batch, each with its relation. The operation says what the rows are: head entities or
 * answers (count, entity_width), or queries q (count, query_width). Relations are read only where the
 * form needs them: operations over q need them where the relation transforms answers. */
typedef struct vlp_related_rows {
    int64_t count;
    const float *rows;
    const int32_t *relations;    /* (count) */
    const float *relation_table; /* (relation_count, relation_width) */
    int32_t relation_count;
} vlp_related_rows;

/* Head entities with their answers. */
typedef struct vlp_head_answer_rows {
    int64_t count;
    const float *heads, *answers; /* (count, entity_width) */
} vlp_head_answer_rows;

/* ---- Pairs --------------------------------------------------------------------------------------- */

/* A batch of queries with the entities each is compared to. */
typedef struct vlp_pairs {
    int32_t batch, width;
    const int32_t *entities; /* (batch, width); the first of a row is the answer; -1: masked */
    const float *table;      /* (table_rows, entity_width) the entity table */
    int32_t table_rows;
    const vlp_bf16 *bf16; /* a bf16 copy of the table, read in its place; NULL: none */
    vlp_bf16_layout layout;
} vlp_pairs;

/* Where gradients of pairs go. */
typedef struct vlp_pair_gradients {
    float *queries;              /* (batch, query_width), set */
    vlp_table_gradient entities; /* added to; rows NULL: not computed, over bf16 copies only */
    float *relations;            /* (relation_count, relation_width), added to; read only where the
                                    relation transforms answers */
} vlp_pair_gradients;

/* ---- The sampler --------------------------------------------------------------------------------- */

/* The distances a sampler draws by: see vlp_shells in graph/distance.h. */
typedef struct vlp_shell_view {
    int32_t nodes, limit;
    const uint8_t *matrix; /* (nodes, stride) half-bytes, or NULL */
    int64_t stride;        /* bytes, a multiple of 16 */
    const int32_t *counts; /* (nodes, limit + 1) */
    const uint8_t *near;
    const int64_t *near_offset;
    const int32_t *near_member;
} vlp_shell_view;

typedef struct vlp_sample_options {
    const vlp_shell_view *shells; /* the caller's, its arrays the backend's; NULL: uniform */
    float alpha0;
    int32_t entities;
    int32_t count; /* negatives per query */
    uint64_t seed;
} vlp_sample_options;

/* Queries to draw negatives for. The known answers of query i, known[known_begin[i] .. known_end[i]) in
 * ascending order, are never drawn. */
typedef struct vlp_sampled_queries {
    int32_t count;
    const int32_t *heads;                   /* (count) */
    const int64_t *known_begin, *known_end; /* (count) */
    const int32_t *known;
} vlp_sampled_queries;

/* ---- The batch of a step ------------------------------------------------------------------------- */

/* The keys (h, r) of the training graph: the answers of key i are answers[offset[i] .. offset[i + 1]),
 * each that of the training triple with the number beside it in `triples`. */
typedef struct vlp_key_tables {
    int64_t count;
    const int32_t *relations;         /* (count), inverse ones included */
    const int64_t *offset;            /* (count + 1) */
    const int32_t *answers, *triples; /* (2 triples) */
} vlp_key_tables;

/* All training queries: query i < triples asks (head, relation, ?) of triple i, query triples + i asks
 * (tail, relation + relations, ?). */
typedef struct vlp_query_tables {
    int64_t triples;
    int32_t relations; /* without the inverse ones */
    uint64_t seed;
    const vlp_triple *items; /* (triples) */
    /* (2 triples) first known answer of a query in their list, and the count. NULL: not wanted. */
    const uint32_t *known_begin;
    const int32_t *known_counts;
    bool weigh;                 /* queries by 1 / sqrt(n(h, r) + n(t, r-1) + 6), else all the same */
    const vlp_reference *edges; /* (2 triples, capacity) references; NULL: none */
    const int32_t *edge_counts; /* (2 triples) */
    int32_t capacity;           /* references stored per query, at most */
    bool of_batch;              /* edges and their counts are those of the step's rows: (count, ...) */
    vlp_key_tables keys; /* count > 0: a batch is of keys, each as a query of one of its answers */
} vlp_query_tables;

/* The queries of a step. Arrays that are NULL are not wanted. */
typedef struct vlp_batch {
    int32_t count;                                /* queries */
    int32_t width;                                /* of a row of pairs */
    int32_t *heads, *relations, *answers;         /* (count) */
    int32_t *pairs;                               /* (count, width): the answer is written first */
    float *weights;                               /* (count), of sum 1 */
    int64_t *known_begin, *known_end;             /* (count); of keys: in keys.answers */
    int32_t *reference_heads, *reference_answers; /* (count, capacity) */
    int32_t *reference_counts;                    /* (count) */
} vlp_batch;

/* The columns of a sampled softmax: the batch's answers, and other entities drawn uniformly. */
typedef struct vlp_columns {
    int32_t *ids;     /* (count + candidates) entities; -1: masked */
    float *offsets;   /* (count + candidates) added to a logit: a logarithm, -inf where masked */
    int32_t *answers; /* (count) the column of each query's answer */
} vlp_columns;

typedef struct vlp_column_options {
    const int32_t *answers; /* (count) of the batch */
    int32_t count;
    int32_t candidates; /* other entities to draw */
    int32_t entities;
    uint64_t seed;
} vlp_column_options;

/* ---- Losses -------------------------------------------------------------------------------------- */

/* Softmax cross-entropy over rows of logits. */
typedef struct vlp_softmax {
    int64_t count, columns, stride; /* rows, columns, floats from a row to the next */
    const int32_t *answers;         /* (count) the column of each row's answer */
    const float *weights;           /* (count) of the rows' losses */
    /* A logit becomes temperature * column_scale[j] * logit + column_offset[j]. */
    const float *column_scale;  /* (columns); NULL: 1 */
    const float *column_offset; /* (columns); NULL: 0 */
    float temperature;
} vlp_softmax;

/* Binary cross-entropy over rows of logits, with several answers each: the columns
 * answers[begin[i] .. end[i]) of row i have the target `positive`, the others `negative`. */
typedef struct vlp_binary {
    int64_t count, columns, stride; /* rows, columns, floats from a row to the next */
    const int64_t *begin, *end;     /* (count) */
    const int32_t *answers;         /* of a row distinct, in any order */
    const float *weights;           /* (count) of the rows' losses */
    float positive, negative;
} vlp_binary;

/* ---- The vertical aggregator --------------------------------------------------------------------- */

/* References of a batch of queries. */
typedef struct vlp_reference_batch {
    const int32_t *heads;   /* (batch, capacity) h_i */
    const int32_t *answers; /* (batch, capacity) t_i */
    const int32_t *counts;  /* (batch) */
    int32_t capacity;
} vlp_reference_batch;

/* The aggregator's inputs, written into these buffers; zeros for a query without references. Where
 * there are buffers for bf16 copies, k and s are written there; the fp32 buffers of k and s then hold
 * intermediate values at most. */
typedef struct vlp_aggregator_inputs {
    float *answers, *differences; /* (batch, d_e) the mean of the t_i, h minus the mean of the h_i */
    float *k, *s;                 /* (batch, d_q) W_r2 answers, W_r1 differences; k is `answers` itself
                                     where the relation does not transform answers */
    vlp_bf16 *bf16_k, *bf16_s;    /* rows of vlp_bf16_layout_of(1, d_q), or both NULL */
} vlp_aggregator_inputs;

/* What is concatenated to [t_N, q]: t_N gets its biases where counts[i] > 0. */
typedef struct vlp_concat_operands {
    int64_t rows;
    const float *node_bias, *edge_bias; /* (entity_width) */
    const int32_t *counts;              /* (rows) references */
    const float *q;                     /* (rows, query_width) */
} vlp_concat_operands;

/* The aggregator's output: activated = tanh(x + bias), output = activated / |activated|. */
typedef struct vlp_tanh_rows {
    int64_t rows;
    int32_t width;
    float *output;    /* (rows, width) holds x before */
    float *activated; /* (rows, width) */
    float *norms;     /* (rows) |activated| */
    vlp_bf16 *bf16;   /* a bf16 copy of the output in `layout`; NULL: none */
    vlp_bf16_layout layout;
} vlp_tanh_rows;

/* The gradient of a linear layer's output. Rows with counts[i] == 0 are masked: they are set to zero. */
typedef struct vlp_layer_gradient {
    int64_t rows;
    int32_t width;
    float *grad;           /* (rows, width) */
    vlp_bf16 *bf16;        /* a bf16 copy of it, rows of vlp_bf16_layout_of(1, width); NULL: none */
    const int32_t *counts; /* (rows); NULL: no row is masked */
} vlp_layer_gradient;

/* ---- The optimizer ------------------------------------------------------------------------------- */

/* An optimizer's step. Rate and corrections are those of the step (vlp_step_values). */
typedef struct vlp_update {
    int32_t kind; /* 0 Adam, 1 Adagrad */
    float beta1, beta2, epsilon;
    float decay; /* weight decay: before its step a number loses rate * decay of itself */
    /* In the backend's memory; NULL: none. After a fault no table is updated. A non-finite gradient is
     * recorded as one while the tables are being updated: their values are of no use then. */
    vlp_step_report *report;
} vlp_update;

/* A table that it updates. */
typedef struct vlp_updated {
    int32_t table;           /* its number, below VLP_MAX_TABLES, for faults */
    vlp_component component; /* whose rate and clipping */
    int32_t width;
    int64_t rows;
    float *value, *grad;
    float *first, *second; /* moments (second alone for Adagrad) */
    uint8_t *touched;      /* (rows) as in vlp_table_gradient; cleared. NULL: all rows are touched */
    bool lazy;             /* rows that are not touched are not updated */
    float *inverse_norms;  /* (rows) 1 / norm of the new rows; NULL: not wanted */
    vlp_bf16 *bf16;        /* a bf16 copy of the new rows; NULL: none */
    vlp_bf16_layout layout;
} vlp_updated;

/* ---- Ranks and selection ------------------------------------------------------------------------- */

/* The weights of a mixture: f = sum of weights[c] f_c over the components c that are there. Summed in
 * this order, by the same operations for every entity: weights[c] f_c of the first, then one
 * multiplication and addition for each further one. */
typedef struct vlp_mixture {
    float weights[VLP_MAX_COMPONENTS];
} vlp_mixture;

/* Queries whose answers are ranked among all entities. */
typedef struct vlp_ranked {
    /* q; without a form its count alone is read. */
    vlp_related_rows queries;
    int32_t entities;
    /* (count, entities) of each component; NULL: it is not there. */
    const float *scores[VLP_MAX_COMPONENTS];
    /* Optional: f_g is computed here, as scores->all does, into `horizontal` (count, entities);
     * scores[VLP_HORIZONTAL] is then not read. form NULL: not. */
    const vlp_form *form;
    const float *entity_table;
    float *horizontal;
    bool keep;              /* f_g is wanted in `horizontal`; else it may remain unwritten */
    const int32_t *answers; /* (count) */
    /* Known answers that are filtered: filtered[filter_offset[i] .. filter_offset[i + 1]) of query i,
     * filtered_count in all. The answer itself is never filtered, even where it is listed. */
    const int64_t *filter_offset; /* (count + 1) */
    const int32_t *filtered;
    int64_t filtered_count;
    const uint8_t *only; /* (entities) the candidates that compete; NULL: all */
    /* (entities) whose score each has: the first entity's with the same row. NULL: its own; always so
     * where scores are position-invariant. */
    const int32_t *same;
    const vlp_mixture *mixtures; /* the caller's */
    int32_t mixture_count;
} vlp_ranked;

/* One of the best answers of a query. */
typedef struct vlp_top {
    float score;
    float parts[VLP_MAX_COMPONENTS]; /* of each component, before its weight; 0 where it is not there */
    int32_t entity;
} vlp_top;

/* A selection: for at most `rows` queries the best `wanted` each, from tiles of at most `columns`
 * entities. */
typedef struct vlp_select_options {
    int32_t rows, wanted, columns;
    unsigned components; /* bits of those that tiles have; at least one */
} vlp_select_options;

/* The entities that do not compete for a query: ascending, in host memory. */
typedef struct vlp_excluded {
    const int32_t *items;
    int64_t count;
} vlp_excluded;

/* The scores of one component with the entities of a tile. */
typedef struct vlp_component_scores {
    const float *rows; /* (rows, columns), `stride` floats from a row to the next; NULL: not there */
    int64_t stride;
    const float *scale; /* (entities) that a score is still to be multiplied by; NULL: 1 */
} vlp_component_scores;

/* Scores of a selection's queries with the entities first .. first + columns - 1. */
typedef struct vlp_score_tile {
    int32_t first, columns;
    vlp_component_scores components[VLP_MAX_COMPONENTS];
} vlp_score_tile;

/* The best answers of queries, in host memory: counts[i] of query i from items[i * stride] on, best
 * first, equal scores by entity. */
typedef struct vlp_best {
    const vlp_top *items;
    const int32_t *counts;
    int64_t stride;
} vlp_best;

#endif
