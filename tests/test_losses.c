/* The losses of a backend against formulas in double precision, their gradients against finite
 * differences of those formulas. Shapes are random and small. */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "reference_ops.h"

enum { SEED = 21 };

/* One row of scores, with the weights of its negatives fixed. */
typedef struct one_row {
    const double *scores, *p1, *scale, *offset;
    double weight, temperature;
    int32_t width, answer;
} one_row;

static double negative_row(const void *context) {
    const one_row *one = context;
    return one->weight * reference_negative_loss(one->scores, one->p1, one->width);
}

static void check_negative_loss(lab *bench, int kind, double range) {
    int32_t batch = lab_between(bench, 1, 6), width = lab_between(bench, 1, 9), total = batch * width;
    vlp_weight_form form = lab_weighing(bench, kind);
    double *scores = lab_random(bench, total, range), *weights = lab_shares(bench, batch);
    double *expected = lab_zeros(bench, total), *loss = lab_zeros(bench, batch), p1[16];
    for (int32_t i = 0; i < total; i++)
        if (i % width > 0 && lab_between(bench, 0, 3) == 0) scores[i] = -INFINITY;
    float *scores_on = lab_put(bench, scores, total), *weights_on = lab_put(bench, weights, batch);
    float *loss_on = lab_put(bench, lab_random(bench, batch, 9), batch);
    for (int32_t i = 0; i < batch; i++) {
        double *row = scores + i * width;
        reference_weights(&form, p1, row, width);
        one_row one = {row, p1, NULL, NULL, weights[i], 1, width, 0};
        loss[i] = negative_row(&one);
        for (int32_t j = 0; j < width; j++)
            if (!isinf(row[j])) expected[i * width + j] = lab_slope(row + j, negative_row, &one);
    }
    bench->backend->loss->negative(bench->compute, scores_on, loss_on, &form, weights_on, batch, width);
    lab_expect("negative loss", loss, lab_get(bench, loss_on, batch), batch, 1e-5, 0.1);
    lab_expect("negative loss: scores", expected, lab_get(bench, scores_on, total), total, 2e-4, 1e-3);
}

static double softmax_row(const void *context) {
    const one_row *one = context;
    return one->weight * reference_softmax_loss(one->scores, one->answer, one->scale, one->offset,
                                                one->temperature, one->width);
}

static void check_softmax_loss(lab *bench, double range) {
    int32_t count = lab_between(bench, 1, 6), columns = lab_between(bench, 1, 40);
    int32_t total = count * columns, stride = columns + lab_between(bench, 0, 3);
    double temperature = lab_between(bench, 0, 1) ? 1 : 2.5;
    double *logits = lab_random(bench, total, range), *weights = lab_shares(bench, count);
    double *scale = lab_between(bench, 0, 1) ? lab_random(bench, columns, 2) : NULL;
    double *offset = lab_between(bench, 0, 1) ? lab_random(bench, columns, 3) : NULL;
    double *expected = lab_zeros(bench, total), *loss = lab_zeros(bench, count);
    int32_t *answers = lab_ids(bench, count, 0, columns - 1);
    double *apart = lab_random(bench, count * stride, 9); /* rows with something between them */
    float *weights_on = lab_put(bench, weights, count), *logits_on;
    float *loss_on = lab_put(bench, lab_random(bench, count, 9), count);
    if (scale) scale[lab_between(bench, 0, columns - 1)] = 0; /* an entity of length zero */
    for (int32_t i = 0; i < count; i++) {
        one_row one = {logits + i * columns, NULL,        scale,   offset,
                       weights[i],           temperature, columns, answers[i]};
        loss[i] = softmax_row(&one);
        lab_slopes(expected + i * columns, logits + i * columns, columns, softmax_row, &one);
    }
    for (int32_t i = 0; i < count; i++)
        memcpy(apart + i * stride, logits + i * columns, (size_t)columns * sizeof *apart);
    logits_on = lab_put(bench, apart, count * stride);
    bench->backend->loss->softmax(
        bench->compute, logits_on, NULL, loss_on,
        &(vlp_softmax){.count = count,
                       .columns = columns,
                       .stride = stride,
                       .answers = lab_put_ids(bench, answers, count),
                       .weights = weights_on,
                       .column_scale = scale ? lab_put(bench, scale, columns) : NULL,
                       .column_offset = offset ? lab_put(bench, offset, columns) : NULL,
                       .temperature = (float)temperature});
    for (int32_t i = 0; i < count; i++)
        memcpy(apart + i * stride, expected + i * columns, (size_t)columns * sizeof *apart);
    lab_expect("softmax", loss, lab_get(bench, loss_on, count), count, 1e-5, 0.5);
    lab_expect("softmax: logits", apart, lab_get(bench, logits_on, count * stride), count * stride, 2e-4,
               1e-2);
}

/* One row of logits with several answers. */
typedef struct binary_row {
    const double *logits, *targets;
    double weight;
    int32_t columns;
} binary_row;

static double binary_row_loss(const void *context) {
    const binary_row *one = context;
    return one->weight * reference_binary_loss(one->logits, one->targets, one->columns);
}

/* Rows with no answer, with some, with all; more columns than one product of factors takes. */
static void check_binary_loss(lab *bench, double range) {
    int32_t count = lab_between(bench, 1, 5), columns = lab_between(bench, 1, 200), used = 0;
    int32_t total = count * columns, stride = columns + lab_between(bench, 0, 3);
    double positive = lab_between(bench, 0, 1) ? 1 : 0.875, negative = positive < 1 ? 0.0625 : 0;
    double *logits = lab_random(bench, count * stride, range), *weights = lab_shares(bench, count);
    double *targets = lab_zeros(bench, total), *loss = lab_zeros(bench, count);
    double *expected = lab_zeros(bench, count * stride);
    int32_t *answers = lab_ids(bench, total, 0, 0);
    int64_t begin[5], end[5];
    for (int32_t i = 0; i < count; i++) {
        int32_t share = lab_between(bench, 0, 3); /* of columns that are answers, in thirds */
        begin[i] = used;
        /* In descending order: any order will do. */
        for (int32_t j = columns - 1; j >= 0; j--) {
            bool answer = lab_between(bench, 0, 2) < share;
            targets[i * columns + j] = answer ? positive : negative;
            if (answer) answers[used++] = j;
        }
        end[i] = used;
    }
    memcpy(expected, logits, (size_t)(count * stride) * sizeof *expected);
    for (int32_t i = 0; i < count; i++) {
        double *row = logits + i * stride;
        binary_row one = {row, targets + i * columns, weights[i], columns};
        loss[i] = binary_row_loss(&one);
        lab_slopes(expected + i * stride, row, columns, binary_row_loss, &one);
    }
    float *logits_on = lab_put(bench, logits, count * stride);
    float *loss_on = lab_put(bench, lab_random(bench, count, 9), count);
    bench->backend->loss->binary(
        bench->compute, logits_on, NULL, loss_on,
        &(vlp_binary){.count = count,
                      .columns = columns,
                      .stride = stride,
                      .begin = lab_put_bytes(bench, begin, (size_t)count * sizeof *begin),
                      .end = lab_put_bytes(bench, end, (size_t)count * sizeof *end),
                      .answers = lab_put_ids(bench, answers, total),
                      .weights = lab_put(bench, weights, count),
                      .positive = (float)positive,
                      .negative = (float)negative});
    lab_expect("binary", loss, lab_get(bench, loss_on, count), count, 2e-5, 0.5);
    lab_expect("binary: logits", expected, lab_get(bench, logits_on, count * stride), count * stride,
               2e-4, 1e-2);
}

static void test_losses(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 2; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        for (int round = 0; round < 300; round++) {
            for (int kind = VLP_WEIGH_EVEN; kind <= VLP_WEIGH_RED; kind++)
                check_negative_loss(&bench, kind, round % 3 == 0 ? 30 : 3);
            check_softmax_loss(&bench, round % 3 == 0 ? 40 : 2);
            check_binary_loss(&bench, round % 3 == 0 ? 30 : 3);
            lab_clear(&bench);
        }
        lab_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses)};
    return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
