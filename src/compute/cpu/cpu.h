/* The CPU backend's inside. */
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
    int32_t *marks; /* (threads, entities) of the sampler */
    int64_t marks_capacity;
    int32_t *column_of; /* (entities) the column of an answer of the batch, -1 in between */
    int64_t column_capacity;
};

/* Sorts items 0 .. count - 1 by ids[i]; items with a negative id are left out. */
vlp_status cpu_segments_make(cpu_segments *segments, const int32_t *ids, int64_t count, int32_t rows);
void cpu_segments_free(cpu_segments *segments);

/* At least `count` floats of working memory, contents undefined; NULL and a message when out of it. */
float *cpu_scratch(vlp_compute *compute, int64_t count);

vlp_status cpu_blas_open(vlp_compute *compute);
void cpu_blas_close(vlp_compute *compute);

/* Makes zeros of a row of a gradient that holds nothing yet, and marks it. */
static inline void cpu_touch(float *row, uint8_t *touched, int64_t index, int32_t width) {
    if (!touched || touched[index]) return;
    memset(row, 0, (size_t)width * sizeof *row);
    touched[index] = 1;
}

/* Loops over one row that several operations are made of: to += weight row, <left, right>, and the sum
 * of squares, in double. (Clones for processors have names that a library would show: they are static.)
 */
void cpu_add_row(float *to, const float *row, float weight, int32_t width);
float cpu_dot_row(const float *left, const float *right, int32_t width);
double cpu_square_chunk(const float *values, int64_t count);

/* The operations, one file a group. */
void cpu_product(vlp_compute *, bool, bool, int64_t, int64_t, int64_t, float, const float *, int64_t,
                 const float *, int64_t, float, float *, int64_t);
void cpu_gather(vlp_compute *, float *, const float *, const int32_t *, int64_t, int32_t);
vlp_status cpu_scatter_add(vlp_compute *, float *, uint8_t *, const float *, const float *,
                           const int32_t *, int64_t, int32_t, int32_t);
void cpu_inverse_norms(vlp_compute *, float *, const float *, int64_t, int32_t);
void cpu_query(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *, const float *,
               int64_t, bool);
vlp_status cpu_query_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                              const float *, const int32_t *, const float *, int32_t, int64_t, bool);
void cpu_answer(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *, const float *,
                int64_t);
vlp_status cpu_answer_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                               const float *, const int32_t *, const float *, int32_t, int64_t);
vlp_status cpu_pair_scores(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *,
                           const float *, const float *, int32_t, const vlp_pairs *);
vlp_status cpu_pair_backward(vlp_compute *, const vlp_form *, float *, float *, uint8_t *, float *,
                             const float *, const float *, const int32_t *, const float *, int32_t,
                             const float *, int32_t, const vlp_pairs *);
void cpu_negative_loss(vlp_compute *, const vlp_weight_form *, float *, float *, const float *, int32_t,
                       int32_t);
vlp_status cpu_sample(vlp_compute *, int32_t *, const int32_t *, int32_t, const int64_t *,
                      const int64_t *, const int32_t *, const vlp_sample_options *);
vlp_status cpu_all_scores(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *,
                          const float *, const float *, int32_t, int64_t);
void cpu_softmax_loss(vlp_compute *, float *, vlp_bf16 *, float *, const int32_t *, const float *,
                      const float *, const float *, float, int64_t, int64_t, int64_t);
vlp_status cpu_scatter_mean(vlp_compute *, float *, uint8_t *, const float *, float, const int32_t *,
                            const int32_t *, int64_t, int32_t, int32_t, int32_t);
void cpu_add(vlp_compute *, float *, const float *, int64_t);
void cpu_project_add(vlp_compute *, float *, const float *, const float *, const float *, int64_t,
                     int32_t);
void cpu_relation_query(vlp_compute *, const vlp_form *, float *, const float *, const float *, int64_t);
void cpu_relation_query_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                                 const float *, const float *, int64_t);
void cpu_scale_columns(vlp_compute *, float *, const float *, int64_t, int64_t);
vlp_status cpu_n3_loss(vlp_compute *, double *, float *, uint8_t *, const float *, const int32_t *,
                       int64_t, int32_t, int32_t, float, bool);
void cpu_update(vlp_compute *, const vlp_update *, const vlp_updated *, int32_t);
void cpu_mean_references(vlp_compute *, const vlp_form *, const vlp_aggregator_inputs *,
                         const vlp_reference_batch *, const float *, const float *, const int32_t *,
                         const float *, int64_t);
void cpu_concat_query(vlp_compute *, const vlp_form *, float *, vlp_bf16 *, const float *, const float *,
                      const int32_t *, const float *, int64_t);
void cpu_tanh_normalize(vlp_compute *, float *, float *, float *, vlp_bf16 *, const vlp_bf16_layout *,
                        const float *, int64_t, int32_t);
void cpu_tanh_normalize_backward(vlp_compute *, float *, const float *, const vlp_bf16_layout *,
                                 const float *, const float *, const float *, int64_t, int32_t);
void cpu_bias_backward(vlp_compute *, float *, float *, float *, vlp_bf16 *, const int32_t *, int64_t,
                       int32_t);
vlp_plan *cpu_plan_new(vlp_compute *);
void cpu_plan_free(vlp_compute *, vlp_plan *);
bool cpu_step_begin(vlp_compute *, vlp_plan *, const vlp_step_values *);
vlp_status cpu_step_end(vlp_compute *, vlp_plan *);
void cpu_choose_batch(vlp_compute *, const vlp_query_tables *, const vlp_batch *);
vlp_status cpu_choose_columns(vlp_compute *, int32_t *, const vlp_columns *, const int32_t *, int32_t,
                              int32_t, int32_t, uint64_t);
void cpu_sum(vlp_compute *, double *, const float *, int64_t, double);
void cpu_side(vlp_compute *);
void cpu_square_sum(vlp_compute *, double *, const float *, const uint8_t *, int64_t, int32_t);
void cpu_check_step(vlp_compute *, vlp_step_report *, const vlp_step_check *);
vlp_status cpu_rank(vlp_compute *, int32_t *, int32_t *, int32_t *, const vlp_ranked *);
vlp_status cpu_selection_new(vlp_compute *, vlp_selection **, int32_t, int32_t, int32_t);
void cpu_selection_free(vlp_compute *, vlp_selection *);
vlp_status cpu_selection_start(vlp_compute *, vlp_selection *, const vlp_excluded *, int32_t);
vlp_status cpu_selection_offer(vlp_compute *, vlp_selection *, const float *, const float *,
                               const float *, vlp_mixture, int32_t, int32_t);
vlp_status cpu_selection_finish(vlp_compute *, vlp_best *, vlp_selection *);

#endif
