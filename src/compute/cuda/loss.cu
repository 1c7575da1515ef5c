/* Losses over rows of scores, one block per row; a row's gradient replaces its scores. */
#include "compute/cuda/device.h"

/* ---- Sampled negatives --------------------------------------------------------------------------- */

enum { NEGATIVE_THREADS = 256 };

/* The paper's horizontal loss of one query: -log s(c) - sum p1 log s(-n), halved, times the query's
 * weight. Stop-gradient on p1. */
__global__ static void negative_rows(vlp_weight_form form, float *scores, float *row_loss,
                                     const float *weights, int32_t width) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x;
    float *row = scores + i * width, c = row[0], half = 0.5f * weights[i];
    float maximum = -INFINITY, total = 0, loss = 0;
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS)
        if (row[j] != -INFINITY) maximum = fmaxf(maximum, vlp_weight_exponent(&form, row[j], c));
    maximum = block_max(maximum, shared);
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS)
        if (row[j] != -INFINITY) total += expf(vlp_weight_exponent(&form, row[j], c) - maximum);
    total = block_sum(total, shared);
    for (int32_t j = 1 + threadIdx.x; j < width; j += NEGATIVE_THREADS) {
        float n = row[j];
        if (n == -INFINITY) {
            row[j] = 0;
            continue;
        }
        float p1 = expf(vlp_weight_exponent(&form, n, c) - maximum) / total;
        loss += half * p1 * vlp_minus_log_sigmoid(-n);
        row[j] = half * p1 * vlp_sigmoid(n);
    }
    loss = block_sum(loss, shared);
    if (threadIdx.x > 0) return;
    row_loss[i] = loss + half * vlp_minus_log_sigmoid(c);
    row[0] = -half * vlp_sigmoid(-c);
}

static void negative_loss(vlp_compute *compute, float *scores, float *row_loss,
                          const vlp_weight_form *form, const float *weights, int32_t batch,
                          int32_t width) {
    if (batch == 0) return;
    LAUNCH(compute, negative_rows, static_cast<unsigned>(batch), NEGATIVE_THREADS, 0, *form, scores,
           row_loss, weights, width);
}

/* ---- Softmax ------------------------------------------------------------------------------------- */

/* Approximate exponentials (__expf): their error is far below that of the products before. */

/* Below every finite logit. */
constexpr float LOWEST = -3e38f;

/* Explicit rounding: contracted with the next operation, a logit would differ from pass to pass. */
__device__ static float logit_of(float x, float temperature, float scale) {
    return __fmul_rn(x, __fmul_rn(temperature, scale));
}

/* A sum of exponentials exp(x - maximum). */
typedef struct exponentials {
    float maximum, sum;
} exponentials;

/* A logit of -inf is masked; one that is NaN makes the sum NaN. */
__device__ static void add_logits(exponentials &e, const float x[4]) {
    float maximum = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
    if (maximum > e.maximum) {
        e.sum *= __expf(e.maximum - maximum);
        e.maximum = maximum;
    }
    e.sum += (__expf(x[0] - e.maximum) + __expf(x[1] - e.maximum)) +
             (__expf(x[2] - e.maximum) + __expf(x[3] - e.maximum));
}

/* The operands of a row. */
typedef struct softmax_row {
    float *logits;
    vlp_bf16 *bf16; /* NULL: the gradients replace the logits */
    const float *scale, *offset;
    float temperature;
    int32_t columns;
    int32_t whole; /* columns before this one are aligned for loads of four, and have no offset */
} softmax_row;

/* The logits of columns j .. j + 3, -inf beyond the end, and their scales. */
template <bool WHOLE>
__device__ static void load_logits(const softmax_row &row, float x[4], float s[4], int32_t j) {
    int32_t left = WHOLE ? 4 : row.columns - j;
    load4(x, row.logits + j, left, WHOLE);
#pragma unroll
    for (int i = 0; i < 4; i++) s[i] = 1;
    if (row.scale) load4(s, row.scale + j, left, WHOLE);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[i] = logit_of(x[i], row.temperature, s[i]);
        if (!WHOLE && row.offset && i < left) x[i] = __fadd_rn(x[i], row.offset[j + i]);
        if (!WHOLE && i >= left) x[i] = -INFINITY;
    }
}

template <bool WHOLE>
__device__ static void store_gradients(const softmax_row &row, const float x[4], int32_t j) {
    int32_t left = WHOLE ? 4 : row.columns - j;
    if (!row.bf16) {
        put4(row.logits + j, x, left, WHOLE, false);
    } else if (WHOLE) {
        *reinterpret_cast<uint2 *>(row.bf16 + j) = {bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3])};
    } else {
        for (int i = 0; i < 4 && i < left; i++) row.bf16[j + i] = bf16(x[i]);
    }
}

template <bool WHOLE>
__device__ static void add_columns(const softmax_row &row, exponentials &e, int32_t j) {
    float x[4], s[4];
    load_logits<WHOLE>(row, x, s, j);
    add_logits(e, x);
}

template <bool WHOLE>
__device__ static void set_gradients(const softmax_row &row, float maximum, float share, float full,
                                     int32_t answer, int32_t j) {
    float x[4], s[4];
    load_logits<WHOLE>(row, x, s, j);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[i] = __fmul_rn(__expf(x[i] - maximum), share);
        /* Not contracted with the product: an answer of probability 1 has a gradient of zero. */
        if (j + i == answer) x[i] -= full;
        x[i] *= s[i];
    }
    store_gradients<WHOLE>(row, x, j);
}

template <int THREADS>
__global__ static void __launch_bounds__(THREADS)
    softmax_rows(softmax_row row, float *row_loss, const int32_t *answers, const float *weights,
                 int64_t stride) {
    __shared__ float shared[32];
    constexpr int STEP = 4 * THREADS;
    int64_t i = blockIdx.x;
    int32_t answer = answers[i], first = 4 * threadIdx.x;
    float weight = weights[i];
    row.logits += i * stride;
    if (row.bf16) row.bf16 += i * stride;
    exponentials e = {LOWEST, 0};
#pragma unroll 2
    for (int32_t j = first; j < row.whole; j += STEP) add_columns<true>(row, e, j);
    for (int32_t j = row.whole + first; j < row.columns; j += STEP) add_columns<false>(row, e, j);
    float gold = logit_of(row.logits[answer], row.temperature, row.scale ? row.scale[answer] : 1.0f);
    if (row.offset) gold = __fadd_rn(gold, row.offset[answer]);
    float maximum = block_max(e.maximum, shared); /* after it all threads have read the answer's logit */
    float sum = block_sum(e.sum * __expf(e.maximum - maximum), shared);
    float full = weight * row.temperature, share = full / sum;
#pragma unroll 2
    for (int32_t j = first; j < row.whole; j += STEP)
        set_gradients<true>(row, maximum, share, full, answer, j);
    for (int32_t j = row.whole + first; j < row.columns; j += STEP)
        set_gradients<false>(row, maximum, share, full, answer, j);
    if (threadIdx.x == 0) row_loss[i] = weight * (logf(sum) - (gold - maximum));
}

static void softmax_loss(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                         const vlp_softmax *softmax) {
    const float *scale = softmax->column_scale, *offset = softmax->column_offset;
    if (softmax->count == 0) return;
    uintptr_t addresses = reinterpret_cast<uintptr_t>(logits) | reinterpret_cast<uintptr_t>(bf16) |
                          reinterpret_cast<uintptr_t>(scale) | reinterpret_cast<uintptr_t>(offset);
    bool aligned = softmax->stride % 4 == 0 && addresses % sizeof(float4) == 0 && !offset;
    int32_t width = static_cast<int32_t>(softmax->columns);
    softmax_row row = {
        logits, bf16, scale, offset, softmax->temperature, width, aligned ? width / 4 * 4 : 0};
    unsigned rows = static_cast<unsigned>(softmax->count);
    if (softmax->columns > 4096)
        LAUNCH(compute, softmax_rows<1024>, rows, 1024, 0, row, row_loss, softmax->answers,
               softmax->weights, softmax->stride);
    else
        LAUNCH(compute, softmax_rows<128>, rows, 128, 0, row, row_loss, softmax->answers,
               softmax->weights, softmax->stride);
}

/* ---- Binary cross-entropy ------------------------------------------------------------------------ */

/* max(x, 0) + log(1 + e^-|x|) - target x, summed over a row; the targets of its answers are corrected
 * before and after the pass over all columns. Where the gradients go to bf16, logits keep their values.
 */
__global__ static void binary_rows(vlp_binary binary, float *logits, vlp_bf16 *bf16_rows,
                                   float *row_loss) {
    __shared__ float shared[32];
    int64_t i = blockIdx.x, count = binary.end[i] - binary.begin[i];
    const int32_t *answers = binary.answers + binary.begin[i];
    float *row = logits + i * binary.stride, weight = binary.weights[i];
    vlp_bf16 *rounded = bf16_rows ? bf16_rows + i * binary.stride : nullptr;
    float negative = binary.negative, more = binary.positive - negative, loss = 0;
    /* Explicit rounding: the same bits before they are rounded to bf16 as in fp32. */
    float correction = __fmul_rn(weight, more);
    auto gradient = [=](float x, float e) {
        return __fmul_rn(weight, (x >= 0 ? 1.0f : e) / (1.0f + e) - negative);
    };
    for (int64_t k = threadIdx.x; k < count; k += blockDim.x) loss -= more * row[answers[k]];
    __syncthreads();
    for (int64_t j = threadIdx.x; j < binary.columns; j += blockDim.x) {
        float x = row[j], e = __expf(-fabsf(x));
        loss += fmaxf(x, 0.0f) - negative * x + __logf(1.0f + e);
        if (rounded)
            rounded[j] = bf16(gradient(x, e));
        else
            row[j] = gradient(x, e);
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
        float x = row[answers[k]];
        if (rounded)
            rounded[answers[k]] = bf16(__fsub_rn(gradient(x, __expf(-fabsf(x))), correction));
        else
            row[answers[k]] = __fsub_rn(x, correction);
    }
    loss = block_sum(loss, shared);
    if (threadIdx.x == 0) row_loss[i] = weight * loss;
}

static void binary_loss(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                        const vlp_binary *binary) {
    if (binary->count == 0) return;
    LAUNCH(compute, binary_rows, static_cast<unsigned>(binary->count),
           binary->columns > 4096 ? 1024 : 128, 0, *binary, logits, bf16, row_loss);
}

const vlp_loss_operations cuda_loss_operations = {
    .negative = negative_loss, .softmax = softmax_loss, .binary = binary_loss};
