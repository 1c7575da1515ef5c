/* The optimizer's step of one number, for kernels. */
#ifndef VLP_COMPUTE_CUDA_UPDATE_H
#define VLP_COMPUTE_CUDA_UPDATE_H

#include "compute/cuda/device.h"

typedef struct row_update {
    int32_t kind;
    float beta1, beta2, epsilon, scale;
    float rate, step, root; /* step, root: Adam's, corrected */
    float keep;             /* what weight decay leaves of a number */
} row_update;

__device__ inline row_update open_update(const vlp_update &update, const vlp_updated &table,
                                         const vlp_step_values *values) {
    float rate = values->rates[table.component];
    return {update.kind,
            update.beta1,
            update.beta2,
            update.epsilon,
            update.report ? update.report->scales[table.component] : 1.0f,
            rate,
            rate / values->correction1,
            1.0f / sqrtf(values->correction2),
            1.0f - rate * update.decay};
}

/* Approximate roots and quotients: an error of an ulp or two of the step. */
__device__ inline void adam(const row_update &u, float &x, float g, float &m, float &v) {
    float grad = g * u.scale;
    m = u.beta1 * m + (1.0f - u.beta1) * grad;
    v = u.beta2 * v + (1.0f - u.beta2) * grad * grad;
    x = u.keep * x - fast_quotient(u.step * m, fast_root(v) * u.root + u.epsilon);
}

__device__ inline void adagrad(const row_update &u, float &x, float g, float &v) {
    float grad = g * u.scale;
    v += grad * grad;
    x = u.keep * x - fast_quotient(u.rate * grad, fast_root(v) + u.epsilon);
}

/* COUNT numbers of a row; zeros stay zeros. */
template <int COUNT>
__device__ inline void update_numbers(const row_update &u, float *x, const float *g, float *m,
                                      float *v) {
    if (u.kind == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) adam(u, x[i], g[i], m[i], v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) adagrad(u, x[i], g[i], v[i]);
    }
}

__device__ inline void note_fault(vlp_step_report *report, int32_t table, int64_t step) {
    if (report && atomicCAS(&report->fault, VLP_FAULT_NONE, VLP_FAULT_TABLE + table) == VLP_FAULT_NONE)
        report->fault_step = step;
}

#endif
