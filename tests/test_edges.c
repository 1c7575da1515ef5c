/* Where fp32 operations of a backend go wrong at the edges of their range. */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "model/gsf.h"
#include "reference_ops.h"

enum { WIDTH = 4 };

static void open_bench(lab *bench) {
    lab_open(bench, 2, 50);
}

/* However near q and k are, the gradient of their L2 distance has length 1. */
static void test_near_pairs(void **state) {
    (void)state;
    lab bench;
    open_bench(&bench);
    vlp_model_options model = {VLP_MODEL_TRANSE, WIDTH, 0, VLP_NORM_L2, 24};
    vlp_form form;
    vlp_model_form(&form, &model);
    const int32_t first = 0;
    const double zeros[WIDTH] = {0}, one = 1;
    for (double apart = 1e-1; apart > 1e-7; apart /= 10) {
        const double q[WIDTH] = {0.8 * apart, 0, -0.6 * apart, 0}, expected[WIDTH] = {0.8, 0, -0.6, 0};
        float *entity_grad = lab_put(&bench, zeros, WIDTH), *relation = lab_put(&bench, zeros, WIDTH);
        float *q_grad = lab_put(&bench, zeros, WIDTH), *entity = lab_put(&bench, zeros, WIDTH);
        int32_t *ids = lab_put_ids(&bench, &first, 1);
        vlp_pairs pairs = {.batch = 1, .width = 1, .entities = ids, .table = entity, .table_rows = 1};
        assert_int_equal(
            bench.backend->pairs->backward(
                bench.compute,
                &(vlp_pair_gradients){
                    .queries = q_grad,
                    .entities = {.rows = entity_grad, .count = 1, .width = form.entity_width}},
                &form, lab_put(&bench, &one, 1),
                &(vlp_related_rows){.count = pairs.batch,
                                    .rows = lab_put(&bench, q, WIDTH),
                                    .relations = ids,
                                    .relation_table = relation,
                                    .relation_count = 1},
                &pairs),
            VLP_OK);
        lab_expect("near pair", expected, lab_get(&bench, entity_grad, WIDTH), WIDTH, 1e-3, 0.01);
    }
    lab_close(&bench);
}

/* Small numbers keep their digits: the head takes their direction. */
static void test_small_tanh(void **state) {
    (void)state;
    lab bench;
    open_bench(&bench);
    const double zero = 0;
    for (double x = 1; x > 1e-8; x /= 7) {
        double expected = tanh((double)(float)x);
        float *on = lab_put(&bench, &x, 1), *activated = lab_put(&bench, &zero, 1);
        bench.backend->aggregator->tanh_normalize(bench.compute,
                                                  &(vlp_tanh_rows){.rows = 1,
                                                                   .width = 1,
                                                                   .output = on,
                                                                   .activated = activated,
                                                                   .norms = lab_put(&bench, &zero, 1)},
                                                  lab_put(&bench, &zero, 1));
        lab_expect("small tanh", &expected, lab_get(&bench, activated, 1), 1, 1e-4, 0);
    }
    lab_close(&bench);
}

/* A number whose square is not finite in fp32 is finite itself. */
static void test_great_squares(void **state) {
    (void)state;
    lab bench;
    open_bench(&bench);
    const double values[2] = {1e20, 1}, expected = 1e40;
    double sum = 0, *out = lab_put_bytes(&bench, &sum, sizeof sum);
    bench.backend->rows->square_sum(
        bench.compute, out,
        &(vlp_table_gradient){.rows = lab_put(&bench, values, 2), .count = 1, .width = 2});
    sum = lab_get_double(&bench, out);
    lab_expect("great squares", &expected, &sum, 1, 1e-5, 0);
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_pairs),
        cmocka_unit_test(test_small_tanh),
        cmocka_unit_test(test_great_squares),
    };
    return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
