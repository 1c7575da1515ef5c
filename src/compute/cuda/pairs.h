/* Shared by the kernels over pairs: pairs sorted by entity, and the walks over rows in fp32 (pairs.cu)
 * and over bf16 copies (pairs_bf16.cu). */
#ifndef VLP_COMPUTE_CUDA_PAIRS_H
#define VLP_COMPUTE_CUDA_PAIRS_H

#include "compute/cuda/cuda.h"

/* A walk has two warps per block: entities differ in their number of pairs, and a block occupies its
 * multiprocessor until its last warp ends. */
enum { WALK_THREADS = 64 };

/* Sorted pairs, for kernels. */
typedef struct sorted_pairs {
    const uint32_t *keys, *order; /* (total) entity, pair */
    const int32_t *query;         /* (total) */
    const int32_t *begin;         /* (entities + 1) */
    int32_t total, entities;
} sorted_pairs;

/* How rows are cut into slices. */
typedef struct slicing {
    int32_t units; /* of a row, and floats from a part of a unit to the next */
    int32_t slices;
    bool aligned; /* for loads of four floats */
} slicing;

/* A pass over pairs. */
typedef struct pair_work {
    const vlp_form *form;
    const vlp_pairs *given;
    const float *q, *table;
    sorted_pairs pairs;
    slicing cut;
    int32_t lanes;     /* per pair */
    vlp_bf16 *queries; /* the queries in bf16, where the pass is over bf16 copies; else NULL */
    dim3 grid;
} pair_work;

/* ---- Over bf16 copies ---- */
/* Converts the queries to bf16 where `again`, else those of the last call are kept; sets the slices. */
bool cuda_convert_queries(vlp_compute *compute, pair_work *work, bool again);
/* parts (slices, total): sums over a slice of every pair, in sorted order. */
void cuda_bf16_scores(vlp_compute *compute, const pair_work *work, float *parts);
/* The entities' gradients from `sorted` (total), weights in sorted order; the queries' from weights
 * (batch, width). */
void cuda_bf16_gradients(vlp_compute *compute, const vlp_pair_gradients *out, const pair_work *work,
                         const float *sorted, const float *weights);

/* The same gradients of entities, fused with their update (pair_update in backend.h). */
void cuda_updated_pairs(vlp_compute *compute, const vlp_updated *table, const vlp_update *update,
                        const pair_work *work, const float *sorted);

#endif
