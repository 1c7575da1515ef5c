/* The CUDA backend's inside: its state, its memory, and what its files give each other.
 *
 * All work goes into one stream, in the order it is asked for, but for what is asked for aside: that
 * goes into a second one, with working memory of its own. A call that fails is noted down once and
 * reported by the next operation that returns a status. Working memory grows when an operation needs
 * more; plans that were recorded over the old memory are then recorded anew (`generation`). */
#ifndef VLP_COMPUTE_CUDA_CUDA_H
#define VLP_COMPUTE_CUDA_CUDA_H

#include <cuda_runtime.h>

#include "compute/backend.h"

/* Working memory, one piece for each use: operations that call each other never share one. */
enum cuda_slot {
    SLOT_SORT_KEYS_IN,
    SLOT_SORT_KEYS,
    SLOT_SORT_ITEMS_IN,
    SLOT_SORT_ITEMS,
    SLOT_SORT_WORK,
    SLOT_PAIR_KEYS,
    SLOT_PAIR_ORDER,
    SLOT_PAIR_QUERY,
    SLOT_PAIR_BEGIN,
    SLOT_PAIR_PARTS,
    SLOT_PAIR_WEIGHTS,
    SLOT_PAIR_SCALES,
    SLOT_PAIR_QUERIES,
    SLOT_PAIR_SQUARES,
    SLOT_HOLDS,
    SLOT_SUMS,
    SLOT_MEAN_IDS,
    SLOT_COLUMNS,
    SLOT_MOVED_ROWS,
    SLOT_MOVED_MATRICES,
    SLOT_MOVED_ANSWERS,
    SLOT_MOVED_ANSWERS_GRAD,
    SLOT_MOVED_ROWS_GRAD,
    SLOT_MOVED_MATRICES_GRAD,
    SLOT_MOVED_QUERIES,
    SLOT_MOVED_ORDER,
    SLOT_RANK_ANSWERS,
    SLOT_RANK_FILTERED,
    SLOTS
};

typedef struct cuda_buffer {
    void *memory;
    size_t bytes;
} cuda_buffer;

/* Items sorted by the row they belong to: keys (count) ascending, those of no row last with the key
 * `rows`; order (count): which item stands there. Equal keys keep the order of their items. */
typedef struct cuda_segments {
    const uint32_t *keys, *order;
} cuda_segments;

/* Steps that may be under way before step_begin waits for the oldest. */
enum { RING = 32 };

typedef struct cuda_blas cuda_blas;

struct vlp_compute {
    cudaStream_t stream;     /* where work goes now */
    cudaStream_t streams[2]; /* the main one, and the one aside */
    int aside;               /* which of them `stream` is */
    cudaEvent_t forked, concat;
    int multiprocessors;
    size_t shared_limit; /* bytes of shared memory a block can ask for */
    cuda_blas *blas;
    cuda_buffer slots[2][SLOTS]; /* of each stream */
    uint64_t generation;
    bool failed, no_memory;
    char message[256];
    /* The step's values on the device, and on the host until they are copied. */
    vlp_step_values *values;
    vlp_step_values *ring; /* (RING) pinned */
    cudaEvent_t events[RING];
    int64_t begun;
    bool eager;    /* plans are not recorded: VLP_CUDA_EAGER */
    bool stepping; /* between step_begin and step_end: products in TF32 */
    /* Which pairs the sorted ones are of. */
    const int32_t *pairs_of;
    int32_t pairs_batch, pairs_width, pairs_rows;
};

/* ---- memory.cu ---- */
extern vlp_fail_function cuda_fail_function;
vlp_status cuda_fail(vlp_status status, const char *format, ...) VLP_PRINTF(2, 3);
/* Notes a failed call down; returns whether all is well. */
bool cuda_note(vlp_compute *compute, cudaError_t error, const char *what);
/* The status of everything so far. */
vlp_status cuda_status(vlp_compute *compute);
/* Waits for all work. */
void cuda_wait(vlp_compute *compute);
/* Copies between host and device, either way, and waits for it. */
vlp_status cuda_copy(vlp_compute *compute, void *to, const void *from, size_t bytes);
/* At least so many bytes of working memory, contents undefined; NULL when there are not, noted down. */
void *cuda_scratch(vlp_compute *compute, cuda_slot slot, size_t bytes);
template <class T> static T *scratch(vlp_compute *compute, cuda_slot slot, int64_t count) {
    return static_cast<T *>(cuda_scratch(compute, slot, static_cast<size_t>(count) * sizeof(T)));
}

#define LAUNCH(compute, kernel, grid, block, shared, ...)                                               \
    do {                                                                                                \
        kernel<<<(grid), (block), (shared), (compute)->stream>>>(__VA_ARGS__);                          \
        cuda_note((compute), cudaGetLastError(), #kernel);                                              \
    } while (0)

static inline unsigned cuda_blocks(int64_t count, int64_t each) {
    return static_cast<unsigned>((count + each - 1) / each);
}

/* Blocks for passes over rows, a thread a column (see my_column): nobody waits for a row before asking
 * for the next part of it. */
enum { COLUMN_BLOCK = 256 };
static inline dim3 cuda_grid(int64_t rows, int64_t columns) {
    return dim3(static_cast<unsigned>(rows), cuda_blocks(columns, COLUMN_BLOCK));
}

/* ---- segments.cu ---- */
/* Sorts items by ids; negative ids are of no row. The result stands in the two slots named. */
bool cuda_sort(vlp_compute *compute, cuda_segments *out, const int32_t *ids, int64_t count, int32_t rows,
               cuda_slot keys, cuda_slot order);

/* ---- blas.cu ---- */
vlp_status cuda_blas_load(void); /* whether cuBLAS is there */
vlp_status cuda_blas_open(vlp_compute *compute);
void cuda_blas_close(vlp_compute *compute);
/* `batch` products of row-major matrices that stand apart by strides. */
void cuda_products(vlp_compute *compute, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, int64_t stride_a, const float *b,
                   int64_t ldb, int64_t stride_b, float beta, float *c, int64_t ldc, int64_t stride_c,
                   int64_t batch);

/* ---- The operations, one file a group, as in cpu/ ---- */
void cuda_product(vlp_compute *, bool, bool, int64_t, int64_t, int64_t, float, const float *, int64_t,
                  const float *, int64_t, float, float *, int64_t);
void cuda_product_bf16(vlp_compute *, bool, bool, int64_t, int64_t, int64_t, float, const vlp_bf16 *,
                       int64_t, const vlp_bf16 *, int64_t, float, float *, int64_t);
void cuda_convert_rows(vlp_compute *, vlp_bf16 *, const vlp_bf16_layout *, const float *, int64_t,
                       int64_t);
void cuda_gather(vlp_compute *, float *, const float *, const int32_t *, int64_t, int32_t);
vlp_status cuda_scatter_add(vlp_compute *, float *, uint8_t *, const float *, const float *,
                            const int32_t *, int64_t, int32_t, int32_t);
vlp_status cuda_scatter_mean(vlp_compute *, float *, uint8_t *, const float *, float, const int32_t *,
                             const int32_t *, int64_t, int32_t, int32_t, int32_t);
void cuda_add(vlp_compute *, float *, const float *, int64_t);
void cuda_project_add(vlp_compute *, float *, const float *, const float *, const float *, int64_t,
                      int32_t);
void cuda_inverse_norms(vlp_compute *, float *, const float *, int64_t, int32_t);
void cuda_scale_columns(vlp_compute *, float *, const float *, int64_t, int64_t);
vlp_status cuda_n3_loss(vlp_compute *, double *, float *, uint8_t *, const float *, const int32_t *,
                        int64_t, int32_t, int32_t, float, bool);
void cuda_sum(vlp_compute *, double *, const float *, int64_t, double);
void cuda_square_sum(vlp_compute *, double *, const float *, const uint8_t *, int64_t, int32_t);
void cuda_query(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *, const float *,
                int64_t, bool);
vlp_status cuda_query_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                               const float *, const int32_t *, const float *, int32_t, int64_t, bool);
void cuda_relation_query(vlp_compute *, const vlp_form *, float *, const float *, const float *,
                         int64_t);
void cuda_relation_query_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                                  const float *, const float *, int64_t);
void cuda_answer(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *, const float *,
                 int64_t);
vlp_status cuda_answer_backward(vlp_compute *, const vlp_form *, float *, float *, const float *,
                                const float *, const int32_t *, const float *, int32_t, int64_t);
vlp_status cuda_pair_scores(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *,
                            const float *, const float *, int32_t, const vlp_pairs *);
vlp_status cuda_pair_backward(vlp_compute *, const vlp_form *, float *, float *, uint8_t *, float *,
                              const float *, const float *, const int32_t *, const float *, int32_t,
                              const float *, int32_t, const vlp_pairs *);
vlp_status cuda_pair_update(vlp_compute *, const vlp_form *, const vlp_update *, const vlp_updated *,
                            const float *, const float *, const vlp_pairs *);
vlp_status cuda_pair_norms(vlp_compute *, float *, const float *, int32_t, const vlp_bf16_layout *);
vlp_status cuda_moved_scores(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *,
                             const float *, const float *, const vlp_pairs *);
vlp_status cuda_moved_backward(vlp_compute *, const vlp_form *, float *, float *, uint8_t *, float *,
                               const float *, const float *, const int32_t *, const float *, int32_t,
                               const float *, int32_t, const vlp_pairs *);
vlp_status cuda_all_scores(vlp_compute *, const vlp_form *, float *, const float *, const int32_t *,
                           const float *, const float *, int32_t, int64_t);
void cuda_negative_loss(vlp_compute *, const vlp_weight_form *, float *, float *, const float *, int32_t,
                        int32_t);
void cuda_softmax_loss(vlp_compute *, float *, vlp_bf16 *, float *, const int32_t *, const float *,
                       const float *, const float *, float, int64_t, int64_t, int64_t);
vlp_status cuda_sample(vlp_compute *, int32_t *, const int32_t *, int32_t, const int64_t *,
                       const int64_t *, const int32_t *, const vlp_sample_options *);
void cuda_update(vlp_compute *, const vlp_update *, const vlp_updated *, int32_t);
void cuda_mean_references(vlp_compute *, const vlp_form *, const vlp_aggregator_inputs *,
                          const vlp_reference_batch *, const float *, const float *, const int32_t *,
                          const float *, int64_t);
void cuda_concat_query(vlp_compute *, const vlp_form *, float *, vlp_bf16 *, const float *,
                       const float *, const int32_t *, const float *, int64_t);
void cuda_tanh_normalize(vlp_compute *, float *, float *, float *, vlp_bf16 *, const vlp_bf16_layout *,
                         const float *, int64_t, int32_t);
void cuda_tanh_normalize_backward(vlp_compute *, float *, const float *, const vlp_bf16_layout *,
                                  const float *, const float *, const float *, int64_t, int32_t);
void cuda_bias_backward(vlp_compute *, float *, float *, float *, vlp_bf16 *, const int32_t *, int64_t,
                        int32_t);
vlp_status cuda_rank(vlp_compute *, int32_t *, int32_t *, int32_t *, const vlp_ranked *);
vlp_status cuda_selection_new(vlp_compute *, vlp_selection **, int32_t, int32_t, int32_t);
void cuda_selection_free(vlp_compute *, vlp_selection *);
vlp_status cuda_selection_start(vlp_compute *, vlp_selection *, const vlp_excluded *, int32_t);
vlp_status cuda_selection_offer(vlp_compute *, vlp_selection *, const float *, const float *,
                                const float *, vlp_mixture, int32_t, int32_t);
vlp_status cuda_selection_finish(vlp_compute *, vlp_best *, vlp_selection *);
vlp_plan *cuda_plan_new(vlp_compute *);
void cuda_plan_free(vlp_compute *, vlp_plan *);
bool cuda_step_begin(vlp_compute *, vlp_plan *, const vlp_step_values *);
vlp_status cuda_step_end(vlp_compute *, vlp_plan *);
void cuda_choose_batch(vlp_compute *, const vlp_query_tables *, const vlp_batch *);
vlp_status cuda_choose_columns(vlp_compute *, int32_t *, const vlp_columns *, const int32_t *, int32_t,
                               int32_t, int32_t, uint64_t);
void cuda_fork_begin(vlp_compute *);
void cuda_fork_end(vlp_compute *);
void cuda_fork_join(vlp_compute *);
void cuda_check_step(vlp_compute *, vlp_step_report *, const vlp_step_check *);

#endif
