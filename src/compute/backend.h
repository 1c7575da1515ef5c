/* The operations that training, evaluation and prediction are made of. A backend is a table of them over
 * memory of its own; trainer and evaluator are written once over the table. Pointers to arrays are the
 * backend's (host memory for the CPU); only `upload`, `download`, `resident` and what a selection is
 * told and tells cross over. Structs of options, such as forms and mixtures, are the caller's.
 *
 * Matrices are row-major. Sums are made in an order that depends on shapes and the number of threads
 * only, so that the same work gives the same bits.
 *
 * Operations may be done later than they are asked for, in their order. What goes wrong in one that
 * returns nothing is reported by the next that returns a status; `download` waits for all before it. */
#ifndef VLP_COMPUTE_BACKEND_H
#define VLP_COMPUTE_BACKEND_H

#include "base/base.h"
#include "compute/bf16.h"
#include "compute/form.h"
#include "compute/step.h"

/* Of this table and the structs around it: a backend that is loaded has to be of the same. */
enum { VLP_BACKEND_VERSION = 3 };

typedef struct vlp_compute vlp_compute; /* a backend's state: threads, working memory */

/* A step that is done again and again, over the same memory: a backend may note down its operations the
 * first time and repeat them without being told each. */
typedef struct vlp_plan vlp_plan;

/* A batch of queries with the entities each is compared to. */
typedef struct vlp_pairs {
    int32_t batch, width;
    const int32_t *entities; /* (batch, width); the first of a row is the answer; -1: nothing there */
    /* A copy of the entity table to be read in its place, NULL: none. */
    const vlp_bf16 *bf16;
    vlp_bf16_layout layout;
} vlp_pairs;

/* Where a sampler finds who is how far from whom: see vlp_shells in graph/distance.h. */
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
    const vlp_shell_view *shells; /* NULL: uniform */
    float alpha0;
    int32_t entities;
    int32_t count; /* negatives a query */
    uint64_t seed;
} vlp_sample_options;

/* The training queries, all of them: query i < triples asks (head, relation, ?) of triple i, query
 * triples + i asks (tail, relation + relations, ?). */
typedef struct vlp_query_tables {
    int64_t triples;
    int32_t relations; /* without the inverse ones */
    uint64_t seed;
    const vlp_triple *items; /* (triples) */
    /* (2 triples) where the known answers of a query stand in a list, and how many. NULL: not wanted. */
    const uint32_t *known_begin;
    const int32_t *known_counts;
    bool weigh;                 /* queries by 1 / sqrt(n(h, r) + n(t, r-1) + 6), else all the same */
    const vlp_reference *edges; /* (2 triples, most) references; NULL: none */
    const int32_t *edge_counts; /* (2 triples) */
    int32_t capacity;           /* references stored per query at most */
} vlp_query_tables;

/* The queries of a step. Arrays that are NULL are not wanted. */
typedef struct vlp_batch {
    int32_t count;                                /* queries */
    int32_t width;                                /* of a row of pairs */
    int32_t *heads, *relations, *answers;         /* (count) */
    int32_t *pairs;                               /* (count, width): the answer is put first */
    float *weights;                               /* (count), 1 in all */
    int64_t *known_begin, *known_end;             /* (count) */
    int32_t *reference_heads, *reference_answers; /* (count, most) */
    int32_t *reference_counts;                    /* (count) */
} vlp_batch;

/* The columns of a sampled softmax: the batch's answers, and others drawn alike. */
typedef struct vlp_columns {
    int32_t *ids;     /* (count + candidates) entities, -1: nothing there */
    float *offsets;   /* (count + candidates) what is added to a logit: a logarithm, -inf for nothing */
    int32_t *answers; /* (count) the column of each query's answer */
} vlp_columns;

/* References of a batch of queries. */
typedef struct vlp_reference_batch {
    const int32_t *heads;   /* (batch, most) h_i */
    const int32_t *answers; /* (batch, most) t_i */
    const int32_t *counts;  /* (batch) */
    int32_t capacity;
} vlp_reference_batch;

/* What the vertical head is given of the references, in its places; all is zeros without references.
 * Where there are places for bf16 copies, k and s are made there, and elsewhere only where a backend
 * needs them on the way. */
typedef struct vlp_aggregator_inputs {
    float *answers, *differences; /* (batch, d_e) the mean of the t_i, h less the mean of the h_i */
    float *k, *s;                 /* (batch, d_q) W_r2 answers, W_r1 differences; k is `answers` itself
                                     where the form does not move them */
    vlp_bf16 *bf16_k, *bf16_s;    /* rows of vlp_bf16_layout_of(1, d_q), or both NULL */
} vlp_aggregator_inputs;

/* An optimizer's step. Rate and corrections are those of the step (vlp_step_values). */
typedef struct vlp_update {
    int32_t kind; /* 0 Adam, 1 Adagrad */
    float beta1, beta2, epsilon;
    /* On the backend, NULL: none. After a fault nothing moves. A gradient that is not finite is noted as
     * one, while the tables are moved: what stands in them then is of no use. */
    vlp_step_report *report;
} vlp_update;

/* A table that it moves. */
typedef struct vlp_updated {
    int32_t table;        /* its number, for faults */
    vlp_step_group group; /* whose rate and clipping */
    int32_t width;
    int64_t rows;
    float *value, *grad;
    float *first, *second; /* moments (second alone for Adagrad) */
    /* (rows) cleared; the gradient of a row that is not touched is zero, whatever stands there. NULL:
     * all are. */
    uint8_t *touched;
    bool lazy;            /* rows that are not touched stay as they are */
    float *inverse_norms; /* (rows) one over the norms of the new rows; NULL: not wanted */
    vlp_bf16 *bf16;       /* a copy of the new rows; NULL: none */
    vlp_bf16_layout layout;
} vlp_updated;

/* A way to join the two scores: f = vertical * f_c + horizontal * f_g. */
typedef struct vlp_mixture {
    float vertical, horizontal;
} vlp_mixture;

/* Queries whose answers are ranked among all entities. */
typedef struct vlp_ranked {
    int64_t count;
    int32_t entities;
    /* f_g, as all_scores makes it, and where (count, entities). form NULL: it stands there already. */
    const vlp_form *form;
    const float *q;
    const int32_t *relations;
    const float *relation_table, *entity_table;
    float *horizontal;
    bool keep;              /* f_g is wanted there; else it need not be written */
    const float *vertical;  /* (count, entities) f_c, NULL without a head */
    const int32_t *answers; /* (count) */
    /* Known answers that are left out: filtered[filter_offset[i] .. filter_offset[i + 1]) of query i,
     * filtered_count in all. The answer itself is none of them, even where it stands there. */
    const int64_t *filter_offset; /* (count + 1) */
    const int32_t *filtered;
    int64_t filtered_count;
    const uint8_t *only; /* (entities) the candidates that compete, NULL: all */
    /* (entities) whose score each has: the first entity's with the same row. NULL: its own; always so
     * where `even`. */
    const int32_t *same;
    const vlp_mixture *mixtures;
    int32_t mixture_count;
} vlp_ranked;

/* One of the best answers of a query. */
typedef struct vlp_top {
    float score, horizontal, vertical; /* vertical: 0 without a head */
    int32_t entity;
} vlp_top;

/* The entities that do not compete for a query: ascending, in host memory. */
typedef struct vlp_excluded {
    const int32_t *items;
    int64_t count;
} vlp_excluded;

/* The best answers of queries, in host memory: counts[i] of query i from items[i * stride] on, best
 * first, equal scores by entity. */
typedef struct vlp_best {
    const vlp_top *items;
    const int32_t *counts;
    int64_t stride;
} vlp_best;

/* The choice of the best answers of several queries, which meet a tile of entities at a time. */
typedef struct vlp_selection vlp_selection;

typedef struct vlp_backend {
    const char *name;
    int32_t stride;            /* rows of logits best stand a multiple of so many floats apart */
    bool uses_bf16;            /* has the operations on bf16 copies; NULL where not */
    bool even;                 /* the same rows get the same scores, wherever they stand */
    int64_t tile;              /* scores that are best made before they are looked at */
    vlp_status (*probe)(void); /* whether this machine has what it takes; the message says what not */
    vlp_status (*open)(vlp_compute **out, int32_t threads);
    void (*close)(vlp_compute *compute);

    /* ---- memory ---- */
    void *(*allocate)(vlp_compute *compute, size_t bytes); /* zeros; NULL when there is not enough */
    void (*release)(vlp_compute *compute, void *memory);
    vlp_status (*upload)(vlp_compute *compute, void *to, const void *from, size_t bytes);
    vlp_status (*download)(vlp_compute *compute, void *to, const void *from, size_t bytes);
    void (*zero)(vlp_compute *compute, void *memory, size_t bytes);
    void (*fill_bytes)(vlp_compute *compute, void *memory, int value, size_t bytes);
    /* A host array that is only read and outlives its use, for the backend to read: the array itself
     * where that can be, a copy elsewhere. NULL when there is not enough memory. */
    const void *(*resident)(vlp_compute *compute, const void *host, size_t bytes);
    void (*dismiss)(vlp_compute *compute, const void *memory); /* what `resident` gave */
    /* Bytes that are free and that there are; false where nobody counts them. */
    bool (*memory)(vlp_compute *compute, int64_t *unused, int64_t *total);

    /* ---- steps ---- */
    vlp_plan *(*plan_new)(vlp_compute *compute); /* NULL when there is not enough memory */
    void (*plan_free)(vlp_compute *compute, vlp_plan *plan);
    /* Begins a step with its values. True: the step is done (or on its way) as it was the last time, and
     * that was all. False: its operations follow, the same as in every step of the plan, and then
     * step_end. plan NULL: a step by itself, without an end. Between the two, products may round their
     * factors as the hardware's fast products do. */
    bool (*step_begin)(vlp_compute *compute, vlp_plan *plan, const vlp_step_values *values);
    vlp_status (*step_end)(vlp_compute *compute, vlp_plan *plan);
    /* The queries of the step: a keyed permutation of all, pass after pass. */
    void (*choose_batch)(vlp_compute *compute, const vlp_query_tables *tables, const vlp_batch *batch);
    /* The columns of the step: the answers (count), and `candidates` others. *used: how many columns to
     * go over, empty ones among them. */
    vlp_status (*choose_columns)(vlp_compute *compute, int32_t *used, const vlp_columns *columns,
                                 const int32_t *answers, int32_t count, int32_t candidates,
                                 int32_t entities, uint64_t seed);
    /* *out += weight * sum of values. */
    void (*sum)(vlp_compute *compute, double *out, const float *values, int64_t count, double weight);
    /* *out = the sum of squares over the rows that are touched (NULL: all): not a finite number when one
     * of them is none. */
    void (*square_sum)(vlp_compute *compute, double *out, const float *values, const uint8_t *touched,
                       int64_t rows, int32_t width);
    /* Looks at a group's loss and squares in the report: notes the first fault, sets the scale. */
    void (*check_step)(vlp_compute *compute, vlp_step_report *report, const vlp_step_check *check);

    /* What is asked for between fork_begin and fork_end may be done beside what is asked for from
     * fork_end to fork_join: neither reads what the other writes. */
    void (*fork_begin)(vlp_compute *compute);
    void (*fork_end)(vlp_compute *compute);
    void (*fork_join)(vlp_compute *compute);

    /* ---- products and rows ---- */
    /* c = alpha op(a) op(b) + beta c; op(a) is (m, k), op(b) (k, n), c (m, n). */
    void (*product)(vlp_compute *compute, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                    float beta, float *c, int64_t ldc);
    /* The same over bf16 factors, with sums in fp32. */
    void (*product_bf16)(vlp_compute *compute, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                         int64_t k, float alpha, const vlp_bf16 *a, int64_t lda, const vlp_bf16 *b,
                         int64_t ldb, float beta, float *c, int64_t ldc);
    /* A bf16 copy of rows that stand `stride` apart. */
    void (*convert_rows)(vlp_compute *compute, vlp_bf16 *out, const vlp_bf16_layout *layout,
                         const float *from, int64_t stride, int64_t rows);
    /* out (count, width): row ids[i] of the table, zeros where it is -1. */
    void (*gather)(vlp_compute *compute, float *out, const float *table, const int32_t *ids,
                   int64_t count, int32_t width);
    /* table[ids[i]] += weights[i] rows[i]; weights NULL: 1. A row of the table that is not touched
     * counts as zeros, whatever stands there, and is touched then (touched NULL: all are). */
    vlp_status (*scatter_add)(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                              const float *weights, const int32_t *ids, int64_t count,
                              int32_t rows_of_table, int32_t width);
    /* The transpose of a mean over references: table[ids[i * most + j]] += weight / counts[i] * rows[i],
     * j < counts[i]. */
    vlp_status (*scatter_mean)(vlp_compute *compute, float *table, uint8_t *touched, const float *rows,
                               float weight, const int32_t *ids, const int32_t *counts, int64_t count,
                               int32_t most, int32_t rows_of_table, int32_t width);
    /* x += y. */
    void (*add)(vlp_compute *compute, float *x, const float *y, int64_t count);
    /* grad += a - t <a, t> / |t|^2, row by row: what a cosine with the rows t passes on of a. */
    void (*project_add)(vlp_compute *compute, float *grad, const float *a, const float *t,
                        const float *inverse_norms, int64_t rows, int32_t width);
    /* One over the norms of the rows of a table, 0 for a row of zeros. */
    void (*inverse_norms)(vlp_compute *compute, float *out, const float *table, int64_t rows,
                          int32_t width);

    /* ---- queries ---- */
    /* q (count, query_width) from heads (count, entity_width); `linear` leaves the bias b_r out. */
    void (*query)(vlp_compute *compute, const vlp_form *form, float *q, const float *heads,
                  const int32_t *relations, const float *relation_table, int64_t count, bool linear);
    /* From dq: heads_grad (count, entity_width) +=, relation_grad (relations, relation_width) +=. */
    vlp_status (*query_backward)(vlp_compute *compute, const vlp_form *form, float *heads_grad,
                                 float *relation_grad, const float *q_grad, const float *heads,
                                 const int32_t *relations, const float *relation_table,
                                 int32_t relation_count, int64_t count, bool linear);
    /* v (count, relation_width): the relation's row enters the score of (h, t) as <row, v>. Dot models
     * only. */
    void (*relation_query)(vlp_compute *compute, const vlp_form *form, float *v, const float *heads,
                           const float *answers, int64_t count);
    /* From dv: heads_grad +=, answers_grad += (count, entity_width). */
    void (*relation_query_backward)(vlp_compute *compute, const vlp_form *form, float *heads_grad,
                                    float *answers_grad, const float *v_grad, const float *heads,
                                    const float *answers, int64_t count);
    /* Back from k (count, query_width): the answers, moved where the form moves them. */
    vlp_status (*answer_backward)(vlp_compute *compute, const vlp_form *form, float *answers_grad,
                                  float *relation_grad, const float *k_grad, const float *answers,
                                  const int32_t *relations, const float *relation_table,
                                  int32_t relation_count, int64_t count);

    /* ---- pairs ---- */
    /* scores (batch, width) of every pair; -inf where there is none. */
    vlp_status (*pair_scores)(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                              const int32_t *relations, const float *relation_table,
                              const float *entity_table, int32_t entities, const vlp_pairs *pairs);
    /* For the pairs and queries that pair_scores was called with last, unchanged.
     * From d scores: q_grad (batch, query_width) =, entity_grad += (NULL: not wanted, over bf16
     * copies only), relation_grad += (moved answers only), touched as in scatter_add. */
    vlp_status (*pair_backward)(vlp_compute *compute, const vlp_form *form, float *q_grad,
                                float *entity_grad, uint8_t *touched, float *relation_grad,
                                const float *scores_grad, const float *q, const int32_t *relations,
                                const float *relation_table, int32_t relation_count,
                                const float *entity_table, int32_t entities, const vlp_pairs *pairs);
    /* What pair_backward gives of the entities, and the update of their table, in one: the gradient of a
     * row is what stands in table->grad, where it is touched, and that of its pairs. Over bf16 copies
     * only (pairs->bf16 is table->bf16), not for moved answers; table->lazy is not. */
    vlp_status (*pair_update)(vlp_compute *compute, const vlp_form *form, const vlp_update *update,
                              const vlp_updated *table, const float *scores_grad, const float *q,
                              const vlp_pairs *pairs);
    /* The norms that pair_update keeps, of a table as it stands: the same to the bit. */
    vlp_status (*pair_norms)(vlp_compute *compute, float *inverse_norms, const float *entity_table,
                             int32_t entities, const vlp_bf16_layout *layout);
    /* The paper's L2 over scores (batch, width), the first of a row the positive: scores become their
     * gradients; row_loss[i] = weights[i] (positive + negative) / 2. weights sum to 1. */
    void (*negative_loss)(vlp_compute *compute, const vlp_weight_form *form, float *scores,
                          float *row_loss, const float *weights, int32_t batch, int32_t width);
    /* negatives (batch, width - 1 behind the answer) by p0, without replacement, the known answers of
     * each query, known[known_begin[i] .. known_end[i]) in ascending order, left out. entities (batch,
     * width): the first of a row is kept. The view of the shells is the caller's, its arrays are the
     * backend's. */
    vlp_status (*sample)(vlp_compute *compute, int32_t *entities, const int32_t *heads, int32_t batch,
                         const int64_t *known_begin, const int64_t *known_end, const int32_t *known,
                         const vlp_sample_options *options);

    /* ---- all entities ---- */
    /* scores (count, entities) of queries with every row of a table. */
    vlp_status (*all_scores)(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                             const int32_t *relations, const float *relation_table,
                             const float *entity_table, int32_t entities, int64_t count);
    /* Softmax cross-entropy. logits (count, columns), rows `stride` apart, are scaled by temperature *
     * column_scale[j] (NULL: 1), and become the gradients of the unscaled logits, or stay where
     * `bf16`, of the same shape, is to take these; row_loss[i] = weights[i] * cross-entropy of column
     * answers[i]. */
    void (*softmax_loss)(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                         const int32_t *answers, const float *weights, const float *column_scale,
                         const float *column_offset, float temperature, int64_t count, int64_t columns,
                         int64_t stride);
    /* x[i][j] *= scale[j]. */
    void (*scale_columns)(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                          int64_t columns);
    /* N3 over rows ids (count) of a table: *loss += weight * sum of |x|^3 over all their numbers, of
     * complex ones where `moduli`; grad += its gradient, touched as in scatter_add. */
    vlp_status (*n3_loss)(vlp_compute *compute, double *loss, float *grad, uint8_t *touched,
                          const float *table, const int32_t *ids, int64_t count, int32_t rows,
                          int32_t width, float weight, bool moduli);

    /* ---- the vertical head; places for bf16 copies are NULL where a backend has none ---- */
    /* The head's inputs from rows of the table, heads (count, entity_width) and relations. */
    void (*mean_references)(vlp_compute *compute, const vlp_form *form,
                            const vlp_aggregator_inputs *inputs, const vlp_reference_batch *references,
                            const float *table, const float *heads, const int32_t *relations,
                            const float *relation_table, int64_t count);
    /* Rows [t_N, q] from concat (rows, entity_width + query_width), whose first columns hold t_N without
     * its biases, which it has where counts[i] > 0, and q (rows, query_width). They are made in place,
     * or, where `bf16` is not NULL, there alone. */
    void (*concat_query)(vlp_compute *compute, const vlp_form *form, float *concat, vlp_bf16 *bf16,
                         const float *node_bias, const float *edge_bias, const int32_t *counts,
                         const float *q, int64_t rows);
    /* activated = tanh(x + bias), norms (rows) the lengths of its rows, x = activated / norms, and a
     * bf16 copy of that where it is not NULL. */
    void (*tanh_normalize)(vlp_compute *compute, float *x, float *activated, float *norms,
                           vlp_bf16 *bf16, const vlp_bf16_layout *layout, const float *bias,
                           int64_t rows, int32_t width);
    /* Back from the gradient of x after it to that before: grad (rows, width). normalized_grad stands as
     * in a bf16 copy, in fp32; layout NULL: plain rows. */
    void (*tanh_normalize_backward)(vlp_compute *compute, float *grad, const float *normalized_grad,
                                    const vlp_bf16_layout *layout, const float *x,
                                    const float *activated, const float *norms, int64_t rows,
                                    int32_t width);
    /* bias_grad, and same_grad where it is not NULL, = the sums of the columns of grad (rows, width);
     * rows with counts[i] == 0 (NULL: there are none) become zeros before. bf16: a copy of grad as
     * of vlp_bf16_layout_of(1, width), or NULL. */
    void (*bias_backward)(vlp_compute *compute, float *bias_grad, float *same_grad, float *grad,
                          vlp_bf16 *bf16, const int32_t *counts, int64_t rows, int32_t width);

    /* ---- the optimizer ---- */
    /* One step over up to VLP_MAX_TABLES tables. */
    void (*update)(vlp_compute *compute, const vlp_update *update, const vlp_updated *tables,
                   int32_t count);
    /* ---- ranks ---- */
    /* For every query and mixture: candidates that score above the answer, and equal to it. above,
     * equal: (count, mixtures). *bad: whether a score is not a number. */
    vlp_status (*rank)(vlp_compute *compute, int32_t *above, int32_t *equal, int32_t *bad,
                       const vlp_ranked *ranked);

    /* ---- the best ---- */
    /* For up to `rows` queries the best `wanted` each, from tiles of up to `columns` entities. */
    vlp_status (*selection_new)(vlp_compute *compute, vlp_selection **out, int32_t rows, int32_t wanted,
                                int32_t columns);
    void (*selection_free)(vlp_compute *compute, vlp_selection *selection);
    /* Begins anew for `rows` queries. excluded: (rows), the caller's, whose lists stay to the end. */
    vlp_status (*selection_start)(vlp_compute *compute, vlp_selection *selection,
                                  const vlp_excluded *excluded, int32_t rows);
    /* Offers entities first .. first + columns - 1, tiles in ascending order, with their scores (rows,
     * columns); vertical NULL without a head, else still to be multiplied by scale[entity]. */
    vlp_status (*selection_offer)(vlp_compute *compute, vlp_selection *selection,
                                  const float *horizontal, const float *vertical, const float *scale,
                                  vlp_mixture mixture, int32_t first, int32_t columns);
    /* What was chosen, borrowed until the next start. VLP_ERROR_FORMAT, here or when it was offered,
     * when a score of one that competes is not a number. */
    vlp_status (*selection_finish)(vlp_compute *compute, vlp_best *out, vlp_selection *selection);
} vlp_backend;

extern const vlp_backend vlp_cpu_backend;

/* "Not enough memory for WHAT", with what there is and an advice where the backend counts its memory. */
vlp_status vlp_fail_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                  int64_t needed, const char *advice);

/* VLP_OK where `needed` bytes are free or the backend does not count its memory, else the error above.
 */
vlp_status vlp_check_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                   int64_t needed, const char *advice);

/* By name: "cpu", "cuda", "auto" (the GPU where there is one). The error says what is missing. */
vlp_status vlp_backend_find(const vlp_backend **out, const char *name);

/* A backend that is loaded while the program runs exports vlp_backend_load: its table, or NULL when it
 * is of another version. `fail` sets the message of the calling thread and returns the status. */
typedef vlp_status (*vlp_fail_function)(vlp_status status, const char *message);
typedef const vlp_backend *(*vlp_backend_load_function)(int32_t version, vlp_fail_function fail);

#endif
