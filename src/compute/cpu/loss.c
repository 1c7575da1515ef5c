/* Losses over rows of scores; a row's gradient replaces its scores. */
#include "base/vector_math.h"
#include "compute/cpu/cpu.h"

/* The paper's L2 for one query: -log s(c) - sum p1 log s(-n), halved, times the query's weight. The
 * weights p1 are constants: no gradient passes through them. */
static float negative_row(const vlp_weight_form *form, float *scores, float weight, int32_t width) {
    float c = scores[0], most = -INFINITY, total = 0;
    float half = 0.5f * weight, loss = half * vlp_minus_log_sigmoid(c);
    for (int32_t j = 1; j < width; j++) {
        if (scores[j] == -INFINITY) continue;
        float exponent = vlp_weight_exponent(form, scores[j], c);
        if (exponent > most) most = exponent;
    }
    for (int32_t j = 1; j < width; j++)
        if (scores[j] != -INFINITY) total += expf(vlp_weight_exponent(form, scores[j], c) - most);
    for (int32_t j = 1; j < width; j++) {
        float n = scores[j];
        if (n == -INFINITY) {
            scores[j] = 0;
            continue;
        }
        float p1 = expf(vlp_weight_exponent(form, n, c) - most) / total;
        loss += half * p1 * vlp_minus_log_sigmoid(-n);
        scores[j] = half * p1 * vlp_sigmoid(n);
    }
    scores[0] = -half * vlp_sigmoid(-c);
    return loss;
}

void cpu_negative_loss(vlp_compute *compute, const vlp_weight_form *form, float *scores, float *row_loss,
                       const float *weights, int32_t batch, int32_t width) {
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int32_t i = 0; i < batch; i++)
        row_loss[i] = negative_row(form, scores + (int64_t)i * width, weights[i], width);
}

/* Log-sum-exp in fp32 with the largest taken out; the answer's logit enters the loss as it is. */
VLP_CLONES static float softmax_row(float *x, int32_t answer, float weight, const float *scale,
                                    const float *offset, float temperature, int64_t columns) {
    float most = -INFINITY, total = 0;
    if (scale)
        for (int64_t j = 0; j < columns; j++) x[j] *= temperature * scale[j];
    else if (temperature != 1.0f)
        for (int64_t j = 0; j < columns; j++) x[j] *= temperature;
    if (offset)
        for (int64_t j = 0; j < columns; j++) x[j] += offset[j];
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < columns; j++) most = x[j] > most ? x[j] : most;
    float gold = x[answer] - most;
#pragma omp simd reduction(+ : total)
    for (int64_t j = 0; j < columns; j++) {
        x[j] = expf(x[j] - most);
        total += x[j];
    }
    float share = weight * temperature / total;
    for (int64_t j = 0; j < columns; j++) x[j] *= share;
    x[answer] -= weight * temperature;
    if (scale)
        for (int64_t j = 0; j < columns; j++) x[j] *= scale[j];
    return weight * (logf(total) - gold);
}

void cpu_softmax_loss(vlp_compute *compute, float *logits, float *row_loss, const int32_t *answers,
                      const float *weights, const float *column_scale, const float *column_offset,
                      float temperature, int64_t count, int64_t columns, int64_t stride) {
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < count; i++)
        row_loss[i] = softmax_row(logits + i * stride, answers[i], weights[i], column_scale,
                                  column_offset, temperature, columns);
}
