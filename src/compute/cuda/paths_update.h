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

/* The boundary's gradient at a head entity: of g1, g2, maximum and minimum. */
__device__ inline float path_boundary_gradient(const path_work &work, int32_t layer, int64_t row,
                                               int32_t key, int32_t node, int32_t column, float boundary,
                                               const float (&grads)[4]) {
    int32_t parts = work.dim / 8, part = column / 8;
    auto byte = [&](const uint4 *at, int side) {
        return reinterpret_cast<const uint8_t *>(at)[8 * side + column % 8];
    };
    const uint4 *low = work.arguments + (layer * work.capacity + row) * parts + part;
    bool most = byte(low, 0) == 0, least = byte(low, 1) == 0;
    if (node < work.graph.hubs) {
        int64_t site = (static_cast<int64_t>(layer) * work.octets + key / PATH_OCTET) * work.graph.hubs;
        const uint4 *high =
            work.hub_arguments + ((site + node) * PATH_OCTET + key % PATH_OCTET) * 3 * parts + part;
        for (int i = 0; i < 3; i++) {
            most = most && byte(high + i * parts, 0) == 0;
            least = least && byte(high + i * parts, 1) == 0;
        }
    }
    return __fmaf_rn(boundary, grads[1], grads[0]) + (most ? grads[2] : 0) + (least ? grads[3] : 0);
}

/* ---- paths_update_mma.cu ---- */
bool cuda_path_mma_dim(int32_t dim); /* whether there is a version for tensor cores */
void cuda_path_mma_pack(vlp_compute *compute, const path_work *work, const float *updates);
void cuda_path_mma_update(vlp_compute *compute, const path_work *work, const update_operands &in);
void cuda_path_mma_backward(vlp_compute *compute, const path_work *work, const update_operands &in);

#endif
