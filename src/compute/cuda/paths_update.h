/* The update's two versions: plain, and on tensor cores. */
#ifndef VLP_COMPUTE_CUDA_PATHS_UPDATE_H
#define VLP_COMPUTE_CUDA_PATHS_UPDATE_H

#include "compute/cuda/paths.h"

/* What a layer is updated with. */
struct update_operands {
    const float *matrix, *transposed; /* (2, 5 dim, dim); (2 dim, 5 dim) */
    const uint4 *packed;              /* in the place of `transposed`: factors for tensor cores */
    const float *bias, *norm;         /* (2, dim), (2, dim) */
    int32_t layer;
};

/* The boundary's gradient at a key's head entity, from g1, g2, and those of maximum and minimum. */
__device__ inline float path_boundary_gradient(const path_work &work, int32_t layer, int32_t key,
                                               int32_t column, float boundary, const float (&grads)[4]) {
    uint32_t hits = work.boundary_hits[(layer * PATH_KEYS + key) * (work.dim / 8) + column / 8];
    bool most = hits >> column % 8 & 1, least = hits >> (8 + column % 8) & 1;
    return __fmaf_rn(boundary, grads[1], grads[0]) + (most ? grads[2] : 0) + (least ? grads[3] : 0);
}

/* ---- paths_update_mma.cu ---- */
bool cuda_path_mma_dim(int32_t dim); /* whether there is a version for tensor cores */
void cuda_path_mma_pack(vlp_compute *compute, const path_work *work, const float *updates);
void cuda_path_mma_update(vlp_compute *compute, const path_work *work, const update_operands &in);
void cuda_path_mma_backward(vlp_compute *compute, const path_work *work, const update_operands &in);

#endif
