/* Internals of the CPU backend. */
#ifndef VLP_COMPUTE_CPU_CPU_H
#define VLP_COMPUTE_CPU_CPU_H

#include <string.h>

#include "base/simd.h"
#include "compute/backend.h"
#include "compute/cpu/modulus.h"

/* Items sorted by the row they belong to: order[start[s] .. start[s + 1]) are the items of row row[s].
 */
typedef struct cpu_segments {
    int32_t *order; /* (items) */
    int32_t *row;   /* (segments) */
    int64_t *start; /* (segments + 1) */
    int64_t segments;
    int64_t order_capacity, row_capacity, start_capacity;
    int64_t *counts; /* (rows + 1) */
    int64_t counts_capacity;
} cpu_segments;

struct vlp_compute {
    int threads;
    const cpu_modulus *modulus;
    vlp_step_values values; /* of the step */
    cpu_segments segments;
    /* Which pairs the segments are of: the backward pass uses those of the forward pass again. */
    const int32_t *segments_of;
    int32_t segments_batch, segments_width;
    float *scratch; /* grows as asked for */
    int64_t scratch_capacity;
    bool has_blas;  /* OpenBLAS has buffers for this backend */
    float *packed;  /* (threads, cpu_rounded_floats) of rounded products; NULL: the processor has none */
    int32_t *marks; /* (threads, entities) of the sampler */
    int64_t marks_capacity;
    int32_t *column_of; /* (entities) the column of an answer of the batch, -1 in between */
    int64_t column_capacity;
    struct cpu_paths *paths; /* of the path model; NULL until it is used */
};

/* Sorts items 0 .. count - 1 by ids[i]; items with a negative id are left out. */
vlp_status cpu_segments_make(cpu_segments *segments, const int32_t *ids, int64_t count, int32_t rows);
void cpu_segments_free(cpu_segments *segments);

/* At least `count` floats of working memory, contents undefined; NULL and a message when out of it. */
float *cpu_scratch(vlp_compute *compute, int64_t count);

vlp_status cpu_blas_open(vlp_compute *compute);
void cpu_blas_close(vlp_compute *compute);
void cpu_paths_close(vlp_compute *compute);

/* Products with factors rounded to bf16: whether the processor has the instructions, the floats of
 * working memory of one product, and the product itself, k > 0, on the calling thread. */
bool cpu_rounds_factors(void);
int64_t cpu_rounded_floats(void);
void cpu_rounded_product(float *c, const vlp_product *shape, const float *a, const float *b,
                         float *work);

/* A row of a gradient, to be added to: zeros and marked, where it was not touched before. */
static inline float *cpu_touch(const vlp_table_gradient *grad, int64_t index) {
    float *row = grad->rows + index * grad->width;
    if (!grad->touched || grad->touched[index]) return row;
    memset(row, 0, (size_t)grad->width * sizeof *row);
    grad->touched[index] = 1;
    return row;
}

/* Loops over one row that several operations are made of: to += weight row, <left, right>, and the sum
 * of squares, in double. (Clones for processors have names that a library would show: they are static.)
 */
void cpu_add_row(float *to, const float *row, float weight, int32_t width);
float cpu_dot_row(const float *left, const float *right, int32_t width);
double cpu_square_chunk(const float *values, int64_t count);

/* scores[i] = g(one, others[i]), at most CPU_MODULUS_ROWS of them. Whether the one is the query or the
 * answer makes no difference, not even in the last digit. */
void cpu_similarities(const vlp_compute *compute, float *scores, const vlp_form *form, const float *one,
                      const float *const *others, int32_t count);

/* Queries that are compared with one answer. */
typedef struct cpu_pair_rows {
    const float *q[CPU_MODULUS_ROWS];
    float *q_grad[CPU_MODULUS_ROWS], weights[CPU_MODULUS_ROWS];
    int32_t count;
} cpu_pair_rows;

/* q_grad += w dg/dq, k_grad += w dg/dk, of all rows; their count is 0 afterwards. */
void cpu_similarities_backward(const vlp_compute *compute, const vlp_form *form, cpu_pair_rows *rows,
                               float *k_grad, const float *k);

/* Pairs whose answers are transformed by the relation, as the operations on pairs. */
vlp_status cpu_transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                  const vlp_related_rows *queries, const vlp_pairs *pairs);
vlp_status cpu_transformed_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                    const vlp_form *form, const float *scores_grad,
                                    const vlp_related_rows *queries, const vlp_pairs *pairs);

/* The operations, one table per file. */
extern const vlp_step_operations cpu_step_operations;
extern const vlp_blas_operations cpu_blas_operations;
extern const vlp_row_operations cpu_row_operations;
extern const vlp_transform_operations cpu_transform_operations;
extern const vlp_pair_operations cpu_pair_operations;
extern const vlp_sample_operations cpu_sample_operations;
extern const vlp_loss_operations cpu_loss_operations;
extern const vlp_score_operations cpu_score_operations;
extern const vlp_aggregator_operations cpu_aggregator_operations;
extern const vlp_optimizer_operations cpu_optimizer_operations;
extern const vlp_rank_operations cpu_rank_operations;
extern const vlp_select_operations cpu_select_operations;
extern const vlp_path_operations cpu_path_operations;

/* Operations that other files call, as in compute/backend.h. */
void cpu_product(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                 const float *b);
void cpu_gather(vlp_compute *compute, float *out, const float *table, const int32_t *ids, int64_t count,
                int32_t width);
vlp_status cpu_scatter_add(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                           const float *weights, const int32_t *ids, int64_t count);
void cpu_inverse_norms(vlp_compute *compute, float *out, const float *table, int64_t rows,
                       int32_t width);
void cpu_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
               bool linear);
vlp_status cpu_all_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                          const vlp_related_rows *queries, const float *entity_table, int32_t entities);
/* k (count, query_width) of answers (count, entity_width). */
void cpu_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers);
vlp_status cpu_answer_backward(vlp_compute *compute, float *answers_grad, float *relation_grad,
                               const vlp_form *form, const float *k_grad,
                               const vlp_related_rows *answers);

#endif
