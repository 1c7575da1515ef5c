/* The readout's two versions: for every dimension, and one thread per row. */
#ifndef VLP_COMPUTE_CUDA_PATHS_READOUT_H
#define VLP_COMPUTE_CUDA_PATHS_READOUT_H

#include "compute/cuda/paths.h"

/* What the readout is computed with. */
struct readout_operands {
    const float *hidden; /* (2 dim, 2 dim): of x, of q */
    const float *bias;   /* (2 dim) */
    const float *output; /* (2 dim + 1) */
};

/* ---- paths_readout_mma.cu ---- */
bool cuda_path_read_dim(int32_t dim); /* whether there is a version of its own */
void cuda_path_read_rows(vlp_compute *compute, const path_work *work, const readout_operands &in);
/* In bf16. */
void cuda_path_read_backward(vlp_compute *compute, const path_work *work, const readout_operands &in);

#endif
