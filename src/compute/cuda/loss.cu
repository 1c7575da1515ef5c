/* Losses over rows of scores, a block a row; a row's gradient replaces its scores. */
#include "compute/cuda/device.h"

/* ---- Sampled negatives --------------------------------------------------------------------------- */

enum { NEGATIVE_THREADS = 256 };

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

/* Exponentials as the hardware makes them: their error is far below what the products before leave. */

/* Below every logit that is a number. */
constexpr float LOWEST = -3e38f;

/* Rounded step by step: joined with what is done to it next, a logit would differ from itself. */
__device__ static float logit_of(float x, float temperature, float scale, float offset) {
    return __fadd_rn(__fmul_rn(x, __fmul_rn(temperature, scale)), offset);
}

/* A sum of exponentials of a thread, the largest exponent taken out. */
typedef struct exponentials {
    float most, sum;
} exponentials;

/* A logit of -inf is nobody; one that is no number makes the sum none. */
__device__ static void add_logits(exponentials &e, const float x[4]) {
    float most = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
    if (most > e.most) {
        e.sum *= __expf(e.most - most);
        e.most = most;
    }
    e.sum += (__expf(x[0] - e.most) + __expf(x[1] - e.most)) +
             (__expf(x[2] - e.most) + __expf(x[3] - e.most));
}

/* What a row is made of. */
typedef struct softmax_row {
    float *logits;
    vlp_bf16 *rounded; /* NULL: the gradients replace the logits */
    const float *scale, *offset;
    float temperature;
    int64_t columns;
    bool aligned;

    /* Four numbers of an array over the columns; a constant where there is none. */
    __device__ void four(float out[4], const float *from, float constant, int64_t j) const {
        int64_t left = columns - j;
        if (from) {
            load4(out, from + j, left < 4 ? static_cast<int>(left) : 4, aligned);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) out[i] = constant;
        }
    }

    /* The logits of columns j .. j + 3, -inf beyond the end, and their scales. */
    __device__ void load(float x[4], float s[4], int64_t j) const {
        float o[4];
        four(x, logits, 0, j);
        four(s, scale, 1, j);
        four(o, offset, 0, j);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = j + i < columns ? logit_of(x[i], temperature, s[i], o[i]) : -INFINITY;
    }

    __device__ void store(const float x[4], int64_t j) const {
        int64_t left = columns - j;
        if (aligned && left >= 4 && rounded) {
            *reinterpret_cast<uint2 *>(rounded + j) = {rounded_pair(x[0], x[1]),
                                                       rounded_pair(x[2], x[3])};
        } else if (aligned && left >= 4) {
            *reinterpret_cast<float4 *>(logits + j) = {x[0], x[1], x[2], x[3]};
        } else {
            for (int i = 0; i < 4 && i < left; i++) {
                if (rounded)
                    rounded[j + i] = ::rounded(x[i]);
                else
                    logits[j + i] = x[i];
            }
        }
    }
} softmax_row;

template <int THREADS>
__global__ static void __launch_bounds__(THREADS)
    softmax_rows(softmax_row row, float *row_loss, const int32_t *answers, const float *weights,
                 int64_t stride) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x, answer = answers[i];
    float weight = weights[i], x[4], s[4];
    row.logits += i * stride;
    if (row.rounded) row.rounded += i * stride;
    exponentials e = {LOWEST, 0};
#pragma unroll 2
    for (int64_t j = 4 * threadIdx.x; j < row.columns; j += 4 * THREADS) {
        row.load(x, s, j);
        add_logits(e, x);
    }
    float gold = logit_of(row.logits[answer], row.temperature, row.scale ? row.scale[answer] : 1.0f,
                          row.offset ? row.offset[answer] : 0.0f);
    float most = block_max(e.most, shared); /* and everybody has read the answer's logit */
    float sum = block_sum(e.sum * __expf(e.most - most), shared);
    float full = weight * row.temperature, share = full / sum;
#pragma unroll 2
    for (int64_t j = 4 * threadIdx.x; j < row.columns; j += 4 * THREADS) {
        row.load(x, s, j);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            x[k] = __fmul_rn(__expf(x[k] - most), share);
            /* Not joined with a product: a sure answer has no gradient at all. */
            if (j + k == answer) x[k] -= full;
            x[k] *= s[k];
        }
        row.store(x, j);
    }
    if (threadIdx.x == 0) row_loss[i] = weight * (logf(sum) - (gold - most));
}

void cuda_softmax_loss(vlp_compute *compute, float *logits, vlp_bf16 *rounded, float *row_loss,
                       const int32_t *answers, const float *weights, const float *column_scale,
                       const float *column_offset, float temperature, int64_t count, int64_t columns,
                       int64_t stride) {
    if (count == 0) return;
    uintptr_t places = reinterpret_cast<uintptr_t>(logits) | reinterpret_cast<uintptr_t>(rounded) |
                       reinterpret_cast<uintptr_t>(column_scale) |
                       reinterpret_cast<uintptr_t>(column_offset);
    bool aligned = stride % 4 == 0 && places % sizeof(float4) == 0;
    softmax_row row = {logits, rounded, column_scale, column_offset, temperature, columns, aligned};
    if (columns > 4096)
        LAUNCH(compute, softmax_rows<1024>, static_cast<unsigned>(count), 1024, 0, row, row_loss,
               answers, weights, stride);
    else
        LAUNCH(compute, softmax_rows<128>, static_cast<unsigned>(count), 128, 0, row, row_loss, answers,
               weights, stride);
}
