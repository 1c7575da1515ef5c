/* The operations that training, evaluation and prediction are made of. A backend is a set of tables of
 * operations over memory of its own, one table per source file; trainer and evaluator are written once
 * over them. Operands and their memory: compute/operands.h. Only `upload`, `download`, `resident` and a
 * selection's arguments and results cross between host and backend.
 *
 * Every operation takes the backend's state first, then its outputs, then its inputs. Sums are computed
 * in an order that depends on shapes and the number of threads only: the same work gives the same bits.
 *
 * Operations are asynchronous and run in the order they are called, as in one stream. An operation that
 * returns no status leaves its failure to the next one that does; `download` waits for all before it. */
#ifndef VLP_COMPUTE_BACKEND_H
#define VLP_COMPUTE_BACKEND_H

#include "compute/operands.h"
#include "compute/paths.h"

/* Of these tables and the operands: a backend that is loaded must have the same. */
enum { VLP_BACKEND_VERSION = 7 };

typedef struct vlp_compute vlp_compute; /* a backend's state: threads, working memory */

/* A step that is repeated over the same memory: a backend may record its operations the first time and
 * replay them from then on. */
typedef struct vlp_plan vlp_plan;

/* The selection of the best answers of several queries, one tile of entities after the other. */
typedef struct vlp_selection vlp_selection;

typedef struct vlp_memory_operations {
    void *(*allocate)(vlp_compute *compute, size_t bytes); /* zeros; NULL when out of memory */
    void (*release)(vlp_compute *compute, void *memory);
    vlp_status (*upload)(vlp_compute *compute, void *to, const void *from, size_t bytes);
    vlp_status (*download)(vlp_compute *compute, void *to, const void *from, size_t bytes);
    void (*zero)(vlp_compute *compute, void *memory, size_t bytes);
    void (*fill_bytes)(vlp_compute *compute, void *memory, int value, size_t bytes);
    /* A host array that is only read and outlives its use, for the backend to read: the array itself
     * where the backend can, a copy elsewhere. NULL when out of memory. */
    const void *(*resident)(vlp_compute *compute, const void *host, size_t bytes);
    void (*dismiss)(vlp_compute *compute, const void *memory); /* what `resident` returned */
    /* Free and total bytes; false where the backend does not count them. */
    bool (*available)(vlp_compute *compute, int64_t *unused, int64_t *total);
} vlp_memory_operations;

typedef struct vlp_step_operations {
    vlp_plan *(*plan_new)(vlp_compute *compute); /* NULL when out of memory */
    void (*plan_free)(vlp_compute *compute, vlp_plan *plan);
    /* Begins a step with its values. True: the recorded step is replayed, and nothing more is to be
     * called. False: its operations follow, the same as in every step of the plan, and then `end`. plan
     * NULL: a step by itself, without `end`. Between the two, products may round their factors as the
     * hardware's fast products do. */
    bool (*begin)(vlp_compute *compute, vlp_plan *plan, const vlp_step_values *values);
    vlp_status (*end)(vlp_compute *compute, vlp_plan *plan);
    /* The queries of the step: a keyed permutation of all, or of all keys, one epoch after the other. */
    void (*choose_batch)(vlp_compute *compute, const vlp_query_tables *tables, const vlp_batch *batch);
    /* The columns of the step. *used: columns to go over, masked ones among them. */
    vlp_status (*choose_columns)(vlp_compute *compute, int32_t *used, const vlp_columns *columns,
                                 const vlp_column_options *options);
    /* Checks a component's loss and squares in the report: records the first fault, sets the scale. */
    void (*check)(vlp_compute *compute, vlp_step_report *report, const vlp_step_check *check);
    /* Fork/join: operations between fork_begin and fork_end may run concurrently, in a second stream,
     * with those between fork_end and fork_join. Neither reads what the other writes. */
    void (*fork_begin)(vlp_compute *compute);
    void (*fork_end)(vlp_compute *compute);
    void (*fork_join)(vlp_compute *compute);
} vlp_step_operations;

typedef struct vlp_blas_operations {
    void (*product)(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                    const float *b);
    /* Whether large products with `rounded` have rounded factors on this machine. */
    bool (*rounds_factors)(void);
} vlp_blas_operations;

typedef struct vlp_row_operations {
    /* out (count, width): row ids[i] of the table, zeros where it is -1. */
    void (*gather)(vlp_compute *compute, float *out, const float *table, const int32_t *ids,
                   int64_t count, int32_t width);
    /* table[ids[i]] += weights[i] rows[i], rows (count, width); weights NULL: 1. */
    vlp_status (*scatter_add)(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                              const float *weights, const int32_t *ids, int64_t count);
    /* The transpose of a mean over lists: table[id] += weight / counts[i] * rows[i] for the ids of list
     * i. */
    vlp_status (*scatter_mean)(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                               float weight, const vlp_id_lists *lists);
    /* x += y. */
    void (*add)(vlp_compute *compute, float *x, const float *y, int64_t count);
    /* grad += a - t <a, t> / |t|^2, row by row: the gradient of a cosine with respect to its rows t. */
    void (*project_add)(vlp_compute *compute, float *grad, const float *a, const float *t,
                        const float *inverse_norms, int64_t rows, int32_t width);
    /* 1 / norm of each row of a table, 0 for a row of zeros. */
    void (*inverse_norms)(vlp_compute *compute, float *out, const float *table, int64_t rows,
                          int32_t width);
    /* x[i][j] *= scale[j]. */
    void (*scale_columns)(vlp_compute *compute, float *x, const float *scale, int64_t rows,
                          int64_t columns);
    /* out (rows, width) = in with dropout; may be the same array. */
    void (*dropout)(vlp_compute *compute, float *out, const float *in, const vlp_dropout *dropout);
    /* *out += weight * sum of values. */
    void (*sum)(vlp_compute *compute, double *out, const float *values, int64_t count, double weight);
    /* *out = the sum of squares over the touched rows: non-finite when one of their numbers is. */
    void (*square_sum)(vlp_compute *compute, double *out, const vlp_table_gradient *grad);
    /* N3 over the rows ids (count) of a table of the gradient's shape: *loss += its value, grad += its
     * gradient. */
    vlp_status (*n3_loss)(vlp_compute *compute, double *loss, const vlp_table_gradient *grad,
                          const float *table, const int32_t *ids, int64_t count,
                          const vlp_n3_options *options);
} vlp_row_operations;

typedef struct vlp_transform_operations {
    /* q (count, query_width) from head entities; `linear` leaves out the bias b_r. */
    void (*query)(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
                  bool linear);
    /* From q_grad: heads_grad (count, entity_width) +=, relation_grad (relation_count, relation_width)
     * +=. */
    vlp_status (*query_backward)(vlp_compute *compute, float *heads_grad, float *relation_grad,
                                 const vlp_form *form, const float *q_grad,
                                 const vlp_related_rows *heads, bool linear);
    /* From k_grad (count, query_width), k = W_r2 t: answers_grad (count, entity_width) +=, and
     * relation_grad += where the relation transforms answers. */
    vlp_status (*answer_backward)(vlp_compute *compute, float *answers_grad, float *relation_grad,
                                  const vlp_form *form, const float *k_grad,
                                  const vlp_related_rows *answers);
    /* v (count, relation_width): the score of (h, r, t) is <r, v>. Dot models only. */
    void (*relation_query)(vlp_compute *compute, float *v, const vlp_form *form,
                           const vlp_head_answer_rows *rows);
    /* From v_grad: heads_grad +=, answers_grad += (count, entity_width). */
    void (*relation_query_backward)(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                    const vlp_form *form, const float *v_grad,
                                    const vlp_head_answer_rows *rows);
} vlp_transform_operations;

typedef struct vlp_pair_operations {
    /* scores (batch, width) of queries q with their entities; -inf where masked. */
    vlp_status (*scores)(vlp_compute *compute, float *scores, const vlp_form *form,
                         const vlp_related_rows *queries, const vlp_pairs *pairs);
    /* From scores_grad (batch, width), for the pairs and queries of the last call of `scores`,
     * unchanged. */
    vlp_status (*backward)(vlp_compute *compute, const vlp_pair_gradients *out, const vlp_form *form,
                           const float *scores_grad, const vlp_related_rows *queries,
                           const vlp_pairs *pairs);
} vlp_pair_operations;

typedef struct vlp_sample_operations {
    /* Draws negatives by p0, without replacement, into entities (count, options->count + 1) behind the
     * first of each row, which is kept. -1 where too few entities remain. */
    vlp_status (*negatives)(vlp_compute *compute, int32_t *entities, const vlp_sampled_queries *queries,
                            const vlp_sample_options *options);
} vlp_sample_operations;

typedef struct vlp_loss_operations {
    /* The paper's horizontal loss over scores (batch, width), the first of a row the positive: scores
     * become their gradients; row_loss[i] = weights[i] (positive + negative) / 2. weights sum to 1. */
    void (*negative)(vlp_compute *compute, float *scores, float *row_loss, const vlp_weight_form *form,
                     const float *weights, int32_t batch, int32_t width);
    /* Logits become the gradients of the unscaled logits, or are kept where `bf16`, of the same shape,
     * is to hold these (NULL on a backend without bf16 operations); row_loss[i] = weights[i] *
     * cross-entropy. */
    void (*softmax)(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                    const vlp_softmax *softmax);
    /* The same with the sum over columns of the binary cross-entropy of their sigmoids. */
    void (*binary)(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                   const vlp_binary *binary);
} vlp_loss_operations;

typedef struct vlp_score_operations {
    /* scores (count, entities) of queries q with every row of a table. */
    vlp_status (*all)(vlp_compute *compute, float *scores, const vlp_form *form,
                      const vlp_related_rows *queries, const float *entity_table, int32_t entities);
} vlp_score_operations;

/* Buffers for bf16 copies are NULL on a backend without bf16 operations. */
typedef struct vlp_aggregator_operations {
    /* The inputs from the references' rows of the entity table and from head entities. */
    void (*mean_references)(vlp_compute *compute, const vlp_aggregator_inputs *inputs,
                            const vlp_form *form, const vlp_reference_batch *references,
                            const float *entity_table, const vlp_related_rows *heads);
    /* Rows [t_N, q] from concat (rows, entity_width + query_width), whose first columns hold t_N without
     * its biases: in place, or, where `bf16` is not NULL, in that bf16 copy alone. */
    void (*concat_query)(vlp_compute *compute, float *concat, vlp_bf16 *bf16, const vlp_form *form,
                         const vlp_concat_operands *operands);
    void (*tanh_normalize)(vlp_compute *compute, const vlp_tanh_rows *rows, const float *bias);
    /* From the gradient of rows->output: grad (rows, width) of x. output_grad is fp32 in the layout of a
     * bf16 copy; layout NULL: plain rows. */
    void (*tanh_normalize_backward)(vlp_compute *compute, float *grad, const float *output_grad,
                                    const vlp_bf16_layout *layout, const vlp_tanh_rows *rows);
    /* bias_grad, and same_grad where it is not NULL, = the sums over the rows of the masked gradient. */
    void (*bias_backward)(vlp_compute *compute, float *bias_grad, float *same_grad,
                          const vlp_layer_gradient *layer);
} vlp_aggregator_operations;

typedef struct vlp_optimizer_operations {
    /* One step over `count` tables, at most VLP_MAX_TABLES. */
    void (*update)(vlp_compute *compute, const vlp_update *update, const vlp_updated *tables,
                   int32_t count);
} vlp_optimizer_operations;

typedef struct vlp_rank_operations {
    /* For every query and mixture: candidates that score above the answer, and equal to it. above,
     * equal: (count, mixtures). *bad: whether a score is NaN. */
    vlp_status (*counts)(vlp_compute *compute, int32_t *above, int32_t *equal, int32_t *bad,
                         const vlp_ranked *ranked);
} vlp_rank_operations;

typedef struct vlp_select_operations {
    vlp_status (*open)(vlp_compute *compute, vlp_selection **out, const vlp_select_options *options);
    void (*close)(vlp_compute *compute, vlp_selection *selection);
    /* Starts again for `rows` queries. excluded: (rows), the caller's; its lists are kept until
     * `finish`. */
    vlp_status (*start)(vlp_compute *compute, vlp_selection *selection, const vlp_excluded *excluded,
                        int32_t rows);
    /* Offers a tile; tiles come in ascending order, with the components of the selection. */
    vlp_status (*offer)(vlp_compute *compute, vlp_selection *selection, const vlp_score_tile *tile,
                        const vlp_mixture *mixture);
    /* The result, borrowed until the next start. VLP_ERROR_DIVERGED, here or from `offer`, when the
     * score of an entity that competes is NaN. */
    vlp_status (*finish)(vlp_compute *compute, vlp_best *out, vlp_selection *selection);
} vlp_select_operations;

/* The path model; compute/paths.h has its equations. Results do not depend on the number of threads. */
typedef struct vlp_path_operations {
    /* The keys of the step (vlp_step_values), and which of their answers are hidden. */
    void (*choose)(vlp_compute *compute, const vlp_path_batch *batch, const vlp_path_keys *keys,
                   const vlp_path_choice *choice);
    /* *loss = the mean over the batch's keys, each weighted by the root of the number of its answers, of
     * the mean over its hidden answers of the cross-entropy over all entities, the key's other answers
     * masked. grads: the gradients of all tables, set. */
    vlp_status (*step)(vlp_compute *compute, double *loss, const vlp_path_tables *grads,
                       const vlp_path_model *model, const vlp_path_batch *batch,
                       const vlp_path_options *options);
    /* scores (count, entities), f_p in fp32. */
    vlp_status (*scores)(vlp_compute *compute, float *scores, const vlp_path_model *model,
                         const vlp_path_queries *queries);
    /* For one query and answer: *score, and out (layers, 2 triples), the derivative of the score with
     * respect to a factor of the message through each slot of the graph in each layer; 0 where it is
     * not read. */
    vlp_status (*message_gradients)(vlp_compute *compute, float *score, float *out,
                                    const vlp_path_model *model, const vlp_path_queries *query,
                                    int32_t answer);
} vlp_path_operations;

/* Optional: mixed precision, over bf16 copies with sums in fp32. */
typedef struct vlp_bf16_operations {
    void (*product)(vlp_compute *compute, float *c, const vlp_product *product, const vlp_bf16 *a,
                    const vlp_bf16 *b);
    /* A bf16 copy of rows that are `stride` floats apart. */
    void (*convert_rows)(vlp_compute *compute, vlp_bf16 *out, const vlp_bf16_layout *layout,
                         const float *from, int64_t stride, int64_t rows);
    /* The entities' gradients of pairs->backward fused with the update of their table: the gradient of a
     * row is that of its pairs, plus table->grad where it is touched. pairs->table and pairs->bf16 are
     * the table's; not lazy, and not where the relation transforms answers. */
    vlp_status (*pair_update)(vlp_compute *compute, const vlp_updated *table, const vlp_update *update,
                              const vlp_form *form, const float *scores_grad, const float *q,
                              const vlp_pairs *pairs);
    /* The norms that pair_update keeps, of a table as it is: the same to the bit. */
    vlp_status (*pair_norms)(vlp_compute *compute, float *inverse_norms, const float *entity_table,
                             int32_t entities, const vlp_bf16_layout *layout);
} vlp_bf16_operations;

typedef struct vlp_backend {
    const char *name;
    int32_t stride;     /* strides of rows of logits are best a multiple of this many floats */
    int64_t tile;       /* scores that are best computed before they are read */
    bool shared_memory; /* what one state allocated, others may read: several work at a time */
    /* Equal rows get equal scores, to the bit, at every position in a table. */
    bool position_invariant_scores;

    vlp_status (*probe)(void); /* whether this machine has what the backend needs; the message says what
                                  is missing */
    vlp_status (*open)(vlp_compute **out, int32_t threads);
    void (*close)(vlp_compute *compute);

    const vlp_memory_operations *memory;
    const vlp_step_operations *steps;
    const vlp_blas_operations *blas;
    const vlp_row_operations *rows;
    const vlp_transform_operations *transform;
    const vlp_pair_operations *pairs;
    const vlp_sample_operations *sample;
    const vlp_loss_operations *loss;
    const vlp_score_operations *scores;
    const vlp_aggregator_operations *aggregator;
    const vlp_optimizer_operations *optimizer;
    const vlp_rank_operations *rank;
    const vlp_select_operations *select;
    const vlp_bf16_operations *bf16;  /* optional: NULL on a backend without mixed precision */
    const vlp_path_operations *paths; /* optional: NULL on a backend without the path model */
} vlp_backend;

extern const vlp_backend vlp_cpu_backend;

/* Whether a backend has every operation; of those of bf16 and of the path model, all or none. */
bool vlp_backend_is_complete(const vlp_backend *backend);

/* "Not enough memory for WHAT", with free and total memory and an advice where the backend counts its
 * memory. */
vlp_status vlp_fail_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                  int64_t needed, const char *advice);

/* VLP_OK where `needed` bytes are free or the backend does not count its memory, else the error above.
 */
vlp_status vlp_check_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                   int64_t needed, const char *advice);

/* By name: "cpu", "cuda", "auto" (the GPU where there is one). The error says what is missing. */
vlp_status vlp_backend_find(const vlp_backend **out, const char *name);

/* A backend that is loaded at run time exports vlp_backend_load: its table, or NULL when it is of
 * another version. `fail` sets the message of the calling thread and returns the status. */
typedef vlp_status (*vlp_fail_function)(vlp_status status, const char *message);
typedef const vlp_backend *(*vlp_backend_load_function)(int32_t version, vlp_fail_function fail);

#endif
