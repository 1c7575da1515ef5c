/* Internals of the CUDA backend: its state, its memory, and what its files share.
 *
 * Operations are asynchronous, in one stream, in the order of the calls, except between fork_begin and
 * fork_end: those go to a second stream, with working memory of its own. A call that fails is recorded
 * once and reported by the next operation that returns a status. Working memory grows when an operation
 * needs more; plans that were recorded over the old memory are then recorded again (`generation`). */
#ifndef VLP_COMPUTE_CUDA_CUDA_H
#define VLP_COMPUTE_CUDA_CUDA_H

#include <cuda_runtime.h>

#include "compute/backend.h"

/* Working memory, a buffer for each use: operations that call each other never share one. */
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
    SLOT_UNIT_SUMS,
    SLOT_TRANSFORMED_ROWS,
    SLOT_TRANSFORMED_RELATIONS,
    SLOT_TRANSFORMED_ANSWERS,
    SLOT_TRANSFORMED_WEIGHTS,
    SLOT_TRANSFORMED_ANSWERS_GRAD,
    SLOT_TRANSFORMED_ROWS_GRAD,
    SLOT_TRANSFORMED_RELATIONS_GRAD,
    SLOT_TRANSFORMED_QUERIES,
    SLOT_TRANSFORMED_ORDER,
    SLOT_RANK_ANSWERS,
    SLOT_RANK_FILTERED,
    SLOT_PATHS,
    SLOTS
};

typedef struct cuda_buffer {
    void *memory;
    size_t bytes;
} cuda_buffer;

/* Items sorted by the row they belong to: keys (count), rows in ascending order, masked items last with
 * the key `rows`; order (count): the items in this order. The sort is stable. */
typedef struct cuda_segments {
    const uint32_t *keys, *order;
} cuda_segments;

/* Steps in flight, at most: then step_begin waits for the oldest. */
enum { RING = 32 };

typedef struct cuda_blas cuda_blas;
typedef struct cuda_path_graph cuda_path_graph;

struct vlp_compute {
    cudaStream_t stream;     /* the current one of `streams` */
    cudaStream_t streams[2]; /* the main stream, and that of a fork */
    int forked;              /* index of the current stream: 1 in a fork */
    cudaEvent_t fork_event, join_event;
    int multiprocessors;
    size_t shared_limit; /* bytes of shared memory per block, at most */
    size_t memory;       /* bytes of the device; VLP_CUDA_MEMORY: as if it had so many MiB */
    cuda_blas *blas;
    cuda_path_graph *path_graphs; /* layouts of the path model's graphs */
    cuda_buffer slots[2][SLOTS];  /* of each stream */
    uint64_t generation;
    bool failed, no_memory;
    char message[256];
    vlp_step_values *values; /* of the step, on the device */
    vlp_step_values *ring;   /* (RING) pinned, on the host until they are copied */
    cudaEvent_t events[RING];
    int64_t begun;
    bool eager;    /* plans are not recorded: VLP_CUDA_EAGER */
    bool stepping; /* between step_begin and step_end: products in TF32 */
    /* The pairs that were sorted last. */
    const int32_t *pairs_of;
    int32_t pairs_batch, pairs_width, pairs_rows;
};

/* ---- memory.cu ---- */
extern vlp_fail_function cuda_fail_function;
vlp_status cuda_fail(vlp_status status, const char *format, ...) VLP_PRINTF(2, 3);
/* Records a failed call; true: it did not fail. */
bool cuda_note(vlp_compute *compute, cudaError_t error, const char *what);
/* The status of all calls so far. */
vlp_status cuda_status(vlp_compute *compute);
/* Waits for both streams. */
void cuda_wait(vlp_compute *compute);
/* Copies between host and device, in either direction, and waits for the stream. */
vlp_status cuda_copy(vlp_compute *compute, void *to, const void *from, size_t bytes);
/* Working memory of at least `bytes`, contents undefined; NULL when out of memory, which is recorded. */
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

/* The grid of passes over rows, one thread per column (see my_column): all loads of a row are in flight
 * at once, and coalesced. */
enum { COLUMN_BLOCK = 256 };
static inline dim3 cuda_grid(int64_t rows, int64_t columns) {
    return dim3(static_cast<unsigned>(rows), cuda_blocks(columns, COLUMN_BLOCK));
}

/* ---- segments.cu ---- */
/* Sorts items by ids, negative ids being masked. The result is in the two slots named. */
bool cuda_sort(vlp_compute *compute, cuda_segments *out, const int32_t *ids, int64_t count, int32_t rows,
               cuda_slot keys, cuda_slot order);

/* ---- blas.cu ---- */
vlp_status cuda_blas_load(void); /* loads cuBLAS */
vlp_status cuda_blas_open(vlp_compute *compute);
void cuda_blas_close(vlp_compute *compute);
/* Products of row-major matrices that are strides apart. */
typedef struct product_batch {
    int64_t stride_a, stride_b, stride_c, count;
} product_batch;
void cuda_products(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                   const float *b, const product_batch *batch);

/* ---- transformed.cu: answers that the relation transforms ---- */
/* As pairs->scores and pairs->backward. */
vlp_status cuda_transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                   const vlp_related_rows *queries, const vlp_pairs *pairs);
vlp_status cuda_transformed_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                     const vlp_form *form, const float *scores_grad,
                                     const vlp_related_rows *queries, const vlp_pairs *pairs);

/* k (entities, query_width) of all entities by one relation (relation_width). */
void cuda_all_answers(vlp_compute *compute, float *k, const vlp_form *form, const float *entity_table,
                      int32_t entities, const float *relation);

/* ---- paths_layout.cu ---- */
/* Drops the layouts of graphs that read `memory`; NULL: all. */
void cuda_path_forget(vlp_compute *compute, const void *memory);

/* ---- The operations, one table per file, as in cpu/ ---- */
extern const vlp_step_operations cuda_step_operations;
extern const vlp_blas_operations cuda_blas_operations;
extern const vlp_row_operations cuda_row_operations;
extern const vlp_transform_operations cuda_transform_operations;
extern const vlp_pair_operations cuda_pair_operations;
extern const vlp_sample_operations cuda_sample_operations;
extern const vlp_loss_operations cuda_loss_operations;
extern const vlp_score_operations cuda_score_operations;
extern const vlp_aggregator_operations cuda_aggregator_operations;
extern const vlp_optimizer_operations cuda_optimizer_operations;
extern const vlp_rank_operations cuda_rank_operations;
extern const vlp_select_operations cuda_select_operations;
extern const vlp_path_operations cuda_path_operations;

/* The bf16 operations, in the files of what they are variants of. */
void cuda_product_bf16(vlp_compute *compute, float *c, const vlp_product *product, const vlp_bf16 *a,
                       const vlp_bf16 *b);
void cuda_convert_rows(vlp_compute *compute, vlp_bf16 *out, const vlp_bf16_layout *layout,
                       const float *from, int64_t stride, int64_t rows);
vlp_status cuda_pair_update(vlp_compute *compute, const vlp_updated *table, const vlp_update *update,
                            const vlp_form *form, const float *scores_grad, const float *q,
                            const vlp_pairs *pairs);
vlp_status cuda_pair_norms(vlp_compute *compute, float *inverse_norms, const float *entity_table,
                           int32_t entities, const vlp_bf16_layout *layout);

/* Operations that other files call, as in compute/backend.h. */
void cuda_product(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                  const float *b);
void cuda_gather(vlp_compute *compute, float *out, const float *table, const int32_t *ids, int64_t count,
                 int32_t width);
vlp_status cuda_scatter_add(vlp_compute *compute, const vlp_table_gradient *table, const float *rows,
                            const float *weights, const int32_t *ids, int64_t count);
void cuda_add(vlp_compute *compute, float *x, const float *y, int64_t count);
void cuda_query(vlp_compute *compute, float *q, const vlp_form *form, const vlp_related_rows *heads,
                bool linear);
vlp_status cuda_all_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                           const vlp_related_rows *queries, const float *entity_table, int32_t entities);
/* k (count, query_width) of answers (count, entity_width). */
void cuda_answer(vlp_compute *compute, float *k, const vlp_form *form, const vlp_related_rows *answers);

#endif
