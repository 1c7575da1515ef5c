/* Losses over rows of scores; a row's gradient replaces its scores. */
#include <float.h>

#include "base/vector_math.h"
#include "compute/cpu/cpu.h"

/* The exponent of p1 of a pair; -inf where the pair is masked. */
static inline float exponent_of(const vlp_weight_form *form, float n, float c) {
    float exponent = vlp_weight_exponent(form, n, c);
    return n == -INFINITY ? -INFINITY : exponent;
}

/* The horizontal loss of one query: -log s(c) - sum p1 log s(-n), halved, times the query's weight, with
 * a stop-gradient at the weights p1. A score of -inf is a masked pair: its weight is zero. */
VLP_CLONES static float negative_row(const vlp_weight_form *given, float *scores, float weight,
                                     int32_t width) {
    const vlp_weight_form copy = *given, *form = &copy; /* the loops' stores cannot change it */
    float c = scores[0], maximum = -INFINITY, total = 0, sum = 0, half = 0.5f * weight;
#pragma omp simd reduction(max : maximum)
    for (int32_t j = 1; j < width; j++) {
        float exponent = exponent_of(form, scores[j], c);
        maximum = exponent > maximum ? exponent : maximum;
    }
    scores[0] = -half * vlp_sigmoid(-c);
    float loss = half * vlp_minus_log_sigmoid(c);
    if (!(maximum > -FLT_MAX)) { /* all masked: a reduction may start at -FLT_MAX as well as at -inf */
        for (int32_t j = 1; j < width; j++) scores[j] = 0;
        return loss;
    }
#pragma omp simd reduction(+ : total, sum)
    for (int32_t j = 1; j < width; j++) {
        float n = scores[j], share = expf(exponent_of(form, n, c) - maximum);
        float e = expf(-fabsf(n)), sigmoid = (n >= 0 ? 1.0f : e) / (1.0f + e);
        total += share;
        /* -log s(-n) = max(n, 0) + log(1 + e^-|n|) */
        sum += share * ((n > 0 ? n : 0.0f) + logf(1.0f + e));
        scores[j] = share * sigmoid;
    }
    float scale = half / total;
    for (int32_t j = 1; j < width; j++) scores[j] *= scale;
    return loss + scale * sum;
}

static void negative_loss(vlp_compute *compute, float *scores, float *row_loss,
                          const vlp_weight_form *form, const float *weights, int32_t batch,
                          int32_t width) {
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int32_t i = 0; i < batch; i++)
        row_loss[i] = negative_row(form, scores + (int64_t)i * width, weights[i], width);
}

/* Log-sum-exp in fp32 over logits minus their maximum. */
VLP_CLONES static float softmax_row(const vlp_softmax *softmax, float *x, int32_t answer, float weight) {
    const float *scale = softmax->column_scale, *offset = softmax->column_offset;
    float temperature = softmax->temperature, maximum = -INFINITY, total = 0;
    int64_t columns = softmax->columns;
    if (scale)
        for (int64_t j = 0; j < columns; j++) x[j] *= temperature * scale[j];
    else if (temperature != 1.0f)
        for (int64_t j = 0; j < columns; j++) x[j] *= temperature;
    if (offset)
        for (int64_t j = 0; j < columns; j++) x[j] += offset[j];
#pragma omp simd reduction(max : maximum)
    for (int64_t j = 0; j < columns; j++) maximum = x[j] > maximum ? x[j] : maximum;
    float gold = x[answer] - maximum;
#pragma omp simd reduction(+ : total)
    for (int64_t j = 0; j < columns; j++) {
        x[j] = expf(x[j] - maximum);
        total += x[j];
    }
    float share = weight * temperature / total;
    for (int64_t j = 0; j < columns; j++) x[j] *= share;
    x[answer] -= weight * temperature;
    if (scale)
        for (int64_t j = 0; j < columns; j++) x[j] *= scale[j];
    return weight * (logf(total) - gold);
}

static void softmax_loss(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                         const vlp_softmax *softmax) {
    (void)bf16;
    assert(!bf16);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < softmax->count; i++)
        row_loss[i] =
            softmax_row(softmax, logits + i * softmax->stride, softmax->answers[i], softmax->weights[i]);
}

/* log(1 + e^-|x|) is summed as the logarithm of a product: this many factors of at most 2 stay far
 * from overflow, and a logarithm costs as much as the rest of a column. */
enum { FACTORS = 64 };

/* Binary cross-entropy of a row: max(x, 0) + log(1 + e^-|x|) - target x, summed. */
VLP_CLONES static float binary_row(const vlp_binary *binary, float *x, const int32_t *answers,
                                   int64_t count, float weight) {
    float negative = binary->negative, more = binary->positive - negative, sum = 0, gold = 0;
    int64_t columns = binary->columns;
    for (int64_t i = 0; i < count; i++) gold += x[answers[i]];
    for (int64_t start = 0; start < columns; start += FACTORS) {
        int64_t end = start + FACTORS < columns ? start + FACTORS : columns;
        float product = 1;
#pragma omp simd reduction(+ : sum) reduction(* : product)
        for (int64_t j = start; j < end; j++) {
            float e = expf(-fabsf(x[j])), whole = 1.0f + e;
            product *= whole;
            sum += (x[j] > 0 ? x[j] : 0.0f) - negative * x[j];
            x[j] = weight * ((x[j] >= 0 ? 1.0f : e) / whole - negative);
        }
        sum += logf(product);
    }
    for (int64_t i = 0; i < count; i++) x[answers[i]] -= weight * more;
    return weight * (sum - more * gold);
}

static void binary_loss(vlp_compute *compute, float *logits, vlp_bf16 *bf16, float *row_loss,
                        const vlp_binary *binary) {
    (void)bf16;
    assert(!bf16);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < binary->count; i++)
        row_loss[i] = binary_row(binary, logits + i * binary->stride, binary->answers + binary->begin[i],
                                 binary->end[i] - binary->begin[i], binary->weights[i]);
}

const vlp_loss_operations cpu_loss_operations = {
    .negative = negative_loss, .softmax = softmax_loss, .binary = binary_loss};
