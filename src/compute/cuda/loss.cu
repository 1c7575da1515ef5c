/* Losses over rows of scores, a block a row; a row's gradient replaces its scores. */
#include "compute/cuda/device.h"

/* ---- Sampled negatives --------------------------------------------------------------------------- */

enum { NEGATIVE_THREADS = 256, SOFTMAX_THREADS = 512 };

/* The paper's L2 for one query: -log s(c) - sum p1 log s(-n), halved, times the query's weight. The
 * weights p1 are constants: no gradient passes through them. */
__global__ static void negative_rows(vlp_weight_form form, float *scores, float *row_loss,
                                     const float *weights, int32_t width) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x;
    float *row = scores + i * width, c = row[0], half = 0.5f * weights[i];
    float most = -INFINITY, total = 0, loss = 0;
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS)
        if (row[j] != -INFINITY) most = fmaxf(most, vlp_weight_exponent(&form, row[j], c));
    most = block_max(most, shared);
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS)
        if (row[j] != -INFINITY) total += expf(vlp_weight_exponent(&form, row[j], c) - most);
    total = block_sum(total, shared);
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS) {
        float n = row[j];
        if (n == -INFINITY) {
            row[j] = 0;
            continue;
        }
        float p1 = expf(vlp_weight_exponent(&form, n, c) - most) / total;
        loss += half * p1 * vlp_minus_log_sigmoid(-n);
        row[j] = half * p1 * vlp_sigmoid(n);
    }
    loss = block_sum(loss, shared);
    if (threadIdx.x > 0) return;
    row_loss[i] = loss + half * vlp_minus_log_sigmoid(c);
    row[0] = -half * vlp_sigmoid(-c);
}

void cuda_negative_loss(vlp_compute *compute, const vlp_weight_form *form, float *scores,
                        float *row_loss, const float *weights, int32_t batch, int32_t width) {
    if (batch == 0) return;
    LAUNCH(compute, negative_rows, static_cast<unsigned>(batch), NEGATIVE_THREADS, 0, *form, scores,
           row_loss, weights, width);
}

/* ---- Softmax ------------------------------------------------------------------------------------- */

/* A sum of exponentials, the largest exponent taken out. */
typedef struct exponentials {
    float most, sum;
} exponentials;

/* A logit of -inf is nobody; one that is no number makes the sum none. */
__device__ static exponentials with(exponentials e, float x) {
    if (x > e.most) return {x, e.sum * expf(e.most - x) + 1.0f};
    if (x != -INFINITY) e.sum += expf(x - e.most);
    return e;
}

__device__ static exponentials joined(exponentials a, exponentials b) {
    float most = fmaxf(a.most, b.most);
    if (most == -INFINITY) return {most, a.sum + b.sum};
    return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

__device__ static exponentials block_joined(exponentials e) {
    __shared__ exponentials shared[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int offset = 16; offset > 0; offset /= 2)
        e = joined(
            e, {__shfl_xor_sync(ALL_LANES, e.most, offset), __shfl_xor_sync(ALL_LANES, e.sum, offset)});
    if (lane == 0) shared[warp] = e;
    __syncthreads();
    e = shared[0];
    for (int w = 1; w < SOFTMAX_THREADS / 32; w++) e = joined(e, shared[w]);
    return e;
}

__device__ static float logit_of(const float *row, const float *scale, const float *offset,
                                 float temperature, int64_t j) {
    float x = row[j] * (scale ? temperature * scale[j] : temperature);
    return offset ? x + offset[j] : x;
}

__global__ static void __launch_bounds__(SOFTMAX_THREADS)
    softmax_rows(float *logits, float *row_loss, const int32_t *answers, const float *weights,
                 const float *scale, const float *offset, float temperature, int64_t columns,
                 int64_t stride) {
    int64_t i = blockIdx.x, answer = answers[i];
    float *row = logits + i * stride, weight = weights[i];
    exponentials e = {-INFINITY, 0};
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < columns; j += SOFTMAX_THREADS)
        e = with(e, logit_of(row, scale, offset, temperature, j));
    float gold = logit_of(row, scale, offset, temperature, answer);
    e = block_joined(e); /* and everybody has read the answer's logit */
    float share = weight * temperature / e.sum;
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < columns; j += SOFTMAX_THREADS) {
        float x = expf(logit_of(row, scale, offset, temperature, j) - e.most) * share;
        if (j == answer) x -= weight * temperature;
        row[j] = scale ? x * scale[j] : x;
    }
    if (threadIdx.x == 0) row_loss[i] = weight * (logf(e.sum) - (gold - e.most));
}

void cuda_softmax_loss(vlp_compute *compute, float *logits, float *row_loss, const int32_t *answers,
                       const float *weights, const float *column_scale, const float *column_offset,
                       float temperature, int64_t count, int64_t columns, int64_t stride) {
    if (count == 0) return;
    LAUNCH(compute, softmax_rows, static_cast<unsigned>(count), SOFTMAX_THREADS, 0, logits, row_loss,
           answers, weights, column_scale, column_offset, temperature, columns, stride);
}
