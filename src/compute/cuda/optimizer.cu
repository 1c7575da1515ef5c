/* One fused pass: read gradient and moments, write moments and parameters, clear the gradient. Rate,
 * corrections, clipping and faults are read on the device. */
#include "compute/cuda/device.h"

typedef struct row_update {
    int32_t kind;
    float rate, beta1, beta2, epsilon, correction1, correction2, scale;
} row_update;

/* The numbers of the step; false: there was a fault, and nothing is to move. */
__device__ static bool open_update(row_update *out, const vlp_update &update,
                                   const vlp_step_values *values) {
    if (update.report && update.report->fault != VLP_FAULT_NONE) return false;
    out->kind = update.kind;
    out->rate = values->rates[update.group];
    out->beta1 = update.beta1;
    out->beta2 = update.beta2;
    out->epsilon = update.epsilon;
    out->correction1 = values->correction1;
    out->correction2 = values->correction2;
    out->scale = update.report ? update.report->scales[update.group] : 1.0f;
    return true;
}

__device__ static void adam(const row_update &u, float step, float root, float &x, float &g, float &m,
                            float &v) {
    float grad = g * u.scale;
    m = u.beta1 * m + (1.0f - u.beta1) * grad;
    v = u.beta2 * v + (1.0f - u.beta2) * grad * grad;
    x -= step * m / (sqrtf(v) * root + u.epsilon);
    g = 0;
}

__device__ static void adagrad(const row_update &u, float &x, float &g, float &v) {
    float grad = g * u.scale;
    v += grad * grad;
    x -= u.rate * grad / (sqrtf(v) + u.epsilon);
    g = 0;
}

__device__ static void update_one(const row_update &u, float step, float root, float *x, float *g,
                                  float *m, float *v, int64_t i) {
    if (u.kind == 0)
        adam(u, step, root, x[i], g[i], m[i], v[i]);
    else
        adagrad(u, x[i], g[i], v[i]);
}

/* All rows, four numbers a thread; arrays begin where cudaMalloc has them begin. */
__global__ static void update_all(vlp_update update, const vlp_step_values *values, float *x, float *g,
                                  float *m, float *v, int64_t count) {
    row_update u;
    if (!open_update(&u, update, values)) return;
    float step = u.rate / u.correction1, root = 1.0f / sqrtf(u.correction2);
    int64_t quad = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, i = 4 * quad;
    if (i + 4 > count) {
        for (; i < count; i++) update_one(u, step, root, x, g, m, v, i);
        return;
    }
    float4 *x4 = reinterpret_cast<float4 *>(x) + quad, *g4 = reinterpret_cast<float4 *>(g) + quad;
    float4 *v4 = reinterpret_cast<float4 *>(v) + quad;
    float4 xs = *x4, gs = *g4, vs = *v4;
    if (u.kind == 0) {
        float4 *m4 = reinterpret_cast<float4 *>(m) + quad;
        float4 ms = *m4;
        adam(u, step, root, xs.x, gs.x, ms.x, vs.x);
        adam(u, step, root, xs.y, gs.y, ms.y, vs.y);
        adam(u, step, root, xs.z, gs.z, ms.z, vs.z);
        adam(u, step, root, xs.w, gs.w, ms.w, vs.w);
        *m4 = ms;
    } else {
        adagrad(u, xs.x, gs.x, vs.x);
        adagrad(u, xs.y, gs.y, vs.y);
        adagrad(u, xs.z, gs.z, vs.z);
        adagrad(u, xs.w, gs.w, vs.w);
    }
    *x4 = xs;
    *g4 = gs;
    *v4 = vs;
}

/* Only the rows that were touched: a block each. */
__global__ static void update_touched(vlp_update update, const vlp_step_values *values, float *x,
                                      float *g, float *m, float *v, uint8_t *touched, int32_t width) {
    row_update u;
    int64_t row = blockIdx.x;
    if (!touched[row] || !open_update(&u, update, values)) return;
    float step = u.rate / u.correction1, root = 1.0f / sqrtf(u.correction2);
    for (int32_t j = threadIdx.x; j < width; j += blockDim.x)
        update_one(u, step, root, x, g, m, v, row * width + j);
    __syncthreads(); /* everybody has seen the mark */
    if (threadIdx.x == 0) touched[row] = 0;
}

void cuda_update(vlp_compute *compute, const vlp_update *update, float *table, float *grad, float *first,
                 float *second, uint8_t *touched, bool lazy, int64_t rows, int32_t width) {
    int64_t count = rows * width;
    if (count == 0) return;
    if (lazy) {
        LAUNCH(compute, update_touched, static_cast<unsigned>(rows), 128, 0, *update, compute->values,
               table, grad, first, second, touched, width);
        return;
    }
    LAUNCH(compute, update_all, cuda_blocks(count, 4 * 256), 256, 0, *update, compute->values, table,
           grad, first, second, count);
    if (touched)
        cuda_note(compute, cudaMemsetAsync(touched, 0, static_cast<size_t>(rows), compute->stream),
                  "clearing marks");
}
