/* Operations over bf16 copies, held to the same operations over the same numbers in fp32. Backends
 * without them have nothing to show here. */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

enum { SEED = 7100 };

/* Random numbers that bf16 holds exactly. */
static double *bf16_random(lab *bench, int64_t count, double range) {
    double *values = lab_random(bench, count, range);
    for (int64_t i = 0; i < count; i++) values[i] = lab_bf16(values[i]);
    return values;
}

static vlp_bf16_layout any_layout(lab *bench) {
    return vlp_bf16_layout_of(lab_between(bench, 1, 2), lab_between(bench, 1, 300));
}

/* The copy of rows on the backend. */
static vlp_bf16 *put_bf16(lab *bench, const vlp_bf16_layout *layout, const float *from, int32_t rows) {
    vlp_bf16 *out = lab_bf16_places(bench, layout, rows);
    bench->backend->bf16->convert_rows(bench->compute, out, layout, from, layout->parts * layout->width,
                                       rows);
    return out;
}

static void check_layout(lab *bench) {
    vlp_bf16_layout layout = any_layout(bench);
    int32_t rows = lab_between(bench, 1, 9), count = rows * layout.parts * layout.width;
    double *values = lab_random(bench, count, 3), *expected = lab_zeros(bench, count);
    for (int32_t i = 0; i < count; i++) expected[i] = lab_bf16(values[i]);
    vlp_bf16 *on = put_bf16(bench, &layout, lab_put(bench, values, count), rows);
    lab_expect("bf16 rows", expected, lab_get_bf16(bench, on, &layout, rows), count, 0, 0);
}

/* Products of numbers that bf16 holds: only the order of the sums differs. */
static void check_products(lab *bench) {
    int32_t m = lab_between(bench, 1, 70), n = lab_between(bench, 1, 70), k = lab_between(bench, 1, 150);
    for (int kind = 0; kind < 4; kind++) {
        bool ta = kind & 1, tb = kind & 2;
        int32_t a_width = ta ? m : k, b_width = tb ? k : n;
        vlp_bf16_layout of_a = vlp_bf16_layout_of(1, a_width), of_b = vlp_bf16_layout_of(1, b_width);
        double *a = bf16_random(bench, m * k, 1), *b = bf16_random(bench, k * n, 1);
        double *c = lab_random(bench, m * n, 1);
        float *c_on = lab_put(bench, c, m * n);
        bench->backend->bf16->product(bench->compute, c_on,
                                      &(vlp_product){.transpose_a = ta,
                                                     .transpose_b = tb,
                                                     .m = m,
                                                     .n = n,
                                                     .k = k,
                                                     .alpha = 0.5f,
                                                     .beta = 2,
                                                     .lda = of_a.padded,
                                                     .ldb = of_b.padded,
                                                     .ldc = n},
                                      put_bf16(bench, &of_a, lab_put(bench, a, m * k), m * k / a_width),
                                      put_bf16(bench, &of_b, lab_put(bench, b, k * n), k * n / b_width));
        for (int32_t i = 0; i < m * n; i++) {
            double sum = 0;
            for (int32_t l = 0; l < k; l++)
                sum += (ta ? a[l * m + i / n] : a[i / n * k + l]) *
                       (tb ? b[i % n * k + l] : b[l * n + i % n]);
            c[i] = 0.5 * sum + 2 * c[i];
        }
        lab_expect("bf16 product", c, lab_get(bench, c_on, m * n), m * n, 1e-4, 1);
    }
}

/* ---- Pairs --------------------------------------------------------------------------------------- */

typedef struct pair_case {
    vlp_form form;
    int32_t entities, batch, width, total, size;
    double *q, *table, *weights;
    float *q_on, *table_on, *weights_on;
    vlp_pairs pairs;
} pair_case;

static void make_case(lab *bench, pair_case *one, vlp_similarity similarity) {
    bool modulus = similarity == VLP_MINUS_MODULUS;
    int32_t units = lab_between(bench, 1, 300), width = modulus ? 2 * units : units;
    *one = (pair_case){.form = {.transform = modulus ? VLP_ROTATE : VLP_TRANSLATE,
                                .similarity = similarity,
                                .entity_width = width,
                                .relation_width = width,
                                .query_width = width},
                       .entities = lab_between(bench, 1, 40),
                       .batch = lab_between(bench, 1, 20),
                       .width = lab_between(bench, 1, 70)};
    one->total = one->batch * one->width;
    one->size = one->entities * width;
    one->q = bf16_random(bench, one->batch * width, 1);
    one->table = bf16_random(bench, one->size, 1);
    one->weights = lab_random(bench, one->total, 1);
    one->q_on = lab_put(bench, one->q, one->batch * width);
    one->table_on = lab_put(bench, one->table, one->size);
    one->weights_on = lab_put(bench, one->weights, one->total);
    one->pairs = (vlp_pairs){
        .batch = one->batch,
        .width = one->width,
        .entities = lab_put_ids(bench, lab_ids(bench, one->total, -1, one->entities - 1), one->total),
        .table = one->table_on,
        .table_rows = one->entities,
        .layout = modulus ? vlp_bf16_layout_of(2, units) : vlp_bf16_layout_of(1, width)};
}

/* What a pass over pairs gives. */
typedef struct pair_result {
    double *scores, *q_grad, *entity_grad;
    uint8_t touched[64];
} pair_result;

static pair_result run_pairs(lab *bench, const pair_case *one, bool bf16) {
    pair_result out = {NULL, NULL, NULL, {0}};
    vlp_pairs pairs = one->pairs;
    int32_t q_size = one->batch * one->form.query_width;
    out.touched[0] = 1;
    if (bf16) pairs.bf16 = put_bf16(bench, &pairs.layout, one->table_on, one->entities);
    float *scores = lab_put(bench, lab_zeros(bench, one->total), one->total);
    float *q_grad = lab_put(bench, lab_zeros(bench, q_size), q_size);
    /* What stands in rows that are not touched is of no account. */
    double *before = lab_zeros(bench, one->size);
    for (int32_t i = 0; i < one->size; i++) before[i] = 5;
    float *entity_grad = lab_put(bench, before, one->size);
    uint8_t *touched = lab_put_bytes(bench, out.touched, sizeof out.touched);
    const vlp_backend *backend = bench->backend;
    for (int round = 0; round < 2; round++) {
        double *first = out.scores;
        assert_int_equal(
            backend->pairs->scores(bench->compute, scores, &one->form,
                                   &(vlp_related_rows){.count = pairs.batch, .rows = one->q_on}, &pairs),
            VLP_OK);
        out.scores = lab_get(bench, scores, one->total);
        if (first) lab_expect_same_bits(bench, "bf16 scores", first, scores, one->total);
    }
    assert_int_equal(
        backend->pairs->backward(bench->compute,
                                 &(vlp_pair_gradients){.queries = q_grad,
                                                       .entities = {.rows = entity_grad,
                                                                    .touched = touched,
                                                                    .count = one->entities,
                                                                    .width = one->form.entity_width}},
                                 &one->form, one->weights_on,
                                 &(vlp_related_rows){.count = pairs.batch, .rows = one->q_on}, &pairs),
        VLP_OK);
    out.q_grad = lab_get(bench, q_grad, q_size);
    out.entity_grad = lab_get(bench, entity_grad, one->size);
    lab_get_bytes(bench, out.touched, touched, sizeof out.touched);
    return out;
}

static void check_pairs(lab *bench, vlp_similarity similarity) {
    pair_case one;
    make_case(bench, &one, similarity);
    pair_result full = run_pairs(bench, &one, false), bf16 = run_pairs(bench, &one, true);
    lab_expect_close("bf16 scores", full.scores, bf16.scores, one.total, 1e-2);
    lab_expect_close("bf16 pairs: queries", full.q_grad, bf16.q_grad, one.batch * one.form.query_width,
                     1e-2);
    lab_expect_close("bf16 pairs: entities", full.entity_grad, bf16.entity_grad, one.size, 1e-2);
    assert_memory_equal(full.touched, bf16.touched, sizeof full.touched);
}

/* ---- Pairs and the update in one ----------------------------------------------------------------- */

/* What an update leaves behind. */
typedef struct updated_rows {
    double *x, *first, *second, *norms;
    uint8_t touched[64];
} updated_rows;

/* In two operations, or in one. */
static void run_update(lab *bench, const pair_case *one, int kind, bool fused, const double *grad,
                       updated_rows *out) {
    const vlp_backend *backend = bench->backend;
    vlp_step_values values = {.step = 3, .rates = {0.01f, 7}, .correction1 = 0.5f, .correction2 = 0.25f};
    assert_false(backend->steps->begin(bench->compute, NULL, &values));
    vlp_pairs pairs = one->pairs;
    int32_t q_size = one->batch * one->form.query_width;
    float *q_grad = lab_put(bench, lab_zeros(bench, q_size), q_size);
    uint8_t touched[64] = {1, 0, 1};
    vlp_step_report report = {.scales = {0.5f, 3}};
    vlp_update update = {
        .kind = kind, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .decay = kind == 0 ? 0.4f : 0};
    update.report = lab_put_bytes(bench, &report, sizeof report);
    double *moments = lab_zeros(bench, one->size);
    for (int32_t i = 0; i < one->size; i++) moments[i] = 0.25;
    vlp_updated table = {.table = 0,
                         .width = one->form.entity_width,
                         .rows = one->entities,
                         .value = lab_put(bench, one->table, one->size),
                         .grad = lab_put(bench, grad, one->size),
                         .first = lab_put(bench, moments, one->size),
                         .second = lab_put(bench, moments, one->size),
                         .touched = lab_put_bytes(bench, touched, sizeof touched),
                         .inverse_norms = lab_put(bench, lab_zeros(bench, one->entities), one->entities),
                         .layout = pairs.layout};
    table.bf16 = put_bf16(bench, &pairs.layout, table.value, one->entities);
    pairs.table = table.value;
    pairs.bf16 = table.bf16;
    float *scores = lab_put(bench, lab_zeros(bench, one->total), one->total);
    assert_int_equal(backend->pairs->scores(bench->compute, scores, &one->form,
                                            &(vlp_related_rows){.count = pairs.batch, .rows = one->q_on},
                                            &pairs),
                     VLP_OK);
    assert_int_equal(
        backend->pairs->backward(bench->compute,
                                 &(vlp_pair_gradients){.queries = q_grad,
                                                       .entities = {.rows = fused ? NULL : table.grad,
                                                                    .touched = table.touched,
                                                                    .count = one->entities,
                                                                    .width = one->form.entity_width}},
                                 &one->form, one->weights_on,
                                 &(vlp_related_rows){.count = pairs.batch, .rows = one->q_on}, &pairs),
        VLP_OK);
    if (fused)
        assert_int_equal(backend->bf16->pair_update(bench->compute, &table, &update, &one->form,
                                                    one->weights_on, one->q_on, &pairs),
                         VLP_OK);
    else
        backend->optimizer->update(bench->compute, &update, &table, 1);
    out->x = lab_get(bench, table.value, one->size);
    out->first = lab_get(bench, table.first, one->size);
    out->second = lab_get(bench, table.second, one->size);
    out->norms = lab_get(bench, table.inverse_norms, one->entities);
    lab_get_bytes(bench, out->touched, table.touched, (size_t)one->entities);
    lab_get_bytes(bench, &report, update.report, sizeof report);
    assert_int_equal(report.fault, VLP_FAULT_NONE);
    if (!fused) return;
    /* The copy is of what stands there; norms that are made anew have the same bits. */
    double *expected = lab_zeros(bench, one->size);
    for (int32_t i = 0; i < one->size; i++) expected[i] = lab_bf16(out->x[i]);
    lab_expect("the copy", expected, lab_get_bf16(bench, table.bf16, &pairs.layout, one->entities),
               one->size, 0, 0);
    assert_int_equal(backend->bf16->pair_norms(bench->compute, table.inverse_norms, table.value,
                                               one->entities, &pairs.layout),
                     VLP_OK);
    lab_expect_same_bits(bench, "norms", out->norms, table.inverse_norms, one->entities);
}

static void check_update(lab *bench, vlp_similarity similarity) {
    updated_rows apart_rows, fused;
    const uint8_t none[64] = {0};
    pair_case one;
    make_case(bench, &one, similarity);
    double *grad = lab_random(bench, one.size, 1);
    for (int kind = 0; kind < 2; kind++) {
        run_update(bench, &one, kind, false, grad, &apart_rows);
        run_update(bench, &one, kind, true, grad, &fused);
        lab_expect("updated rows", apart_rows.x, fused.x, one.size, 1e-4, 1e-2);
        if (kind == 0) lab_expect("first moments", apart_rows.first, fused.first, one.size, 1e-4, 1e-2);
        lab_expect("second moments", apart_rows.second, fused.second, one.size, 1e-4, 1e-2);
        lab_expect("norms", apart_rows.norms, fused.norms, one.entities, 1e-4, 1e-3);
        assert_memory_equal(fused.touched, none, (size_t)one.entities);
    }
}

/* ---- Softmax ------------------------------------------------------------------------------------- */

static void check_softmax(lab *bench) {
    int32_t count = lab_between(bench, 1, 6), columns = lab_between(bench, 1, 5000);
    int32_t stride = columns + lab_between(bench, 0, 9), cells = count * stride;
    double *logits = lab_random(bench, cells, 4), *scale = lab_shares(bench, columns);
    int32_t *answers = lab_put_ids(bench, lab_ids(bench, count, 0, columns - 1), count);
    float *weights = lab_put(bench, lab_shares(bench, count), count);
    float *scale_on = lab_between(bench, 0, 1) ? lab_put(bench, scale, columns) : NULL;
    float *losses[2] = {lab_put(bench, lab_zeros(bench, count), count),
                        lab_put(bench, lab_zeros(bench, count), count)};
    float *full = lab_put(bench, logits, cells), *kept = lab_put(bench, logits, cells);
    vlp_bf16_layout layout = {1, columns, stride};
    vlp_bf16 *zeros = calloc((size_t)cells, sizeof *zeros);
    assert_non_null(zeros);
    vlp_bf16 *bf16 = lab_put_bytes(bench, zeros, (size_t)cells * sizeof *zeros);
    free(zeros);
    bench->backend->loss->softmax(bench->compute, full, NULL, losses[0],
                                  &(vlp_softmax){.count = count,
                                                 .columns = columns,
                                                 .stride = stride,
                                                 .answers = answers,
                                                 .weights = weights,
                                                 .column_scale = scale_on,
                                                 .temperature = 10});
    bench->backend->loss->softmax(bench->compute, kept, bf16, losses[1],
                                  &(vlp_softmax){.count = count,
                                                 .columns = columns,
                                                 .stride = stride,
                                                 .answers = answers,
                                                 .weights = weights,
                                                 .column_scale = scale_on,
                                                 .temperature = 10});
    double *gradients = lab_get(bench, full, cells), *expected = lab_zeros(bench, count * columns);
    for (int32_t i = 0; i < count * columns; i++)
        expected[i] = lab_bf16(gradients[i / columns * stride + i % columns]);
    lab_expect("bf16 softmax", expected, lab_get_bf16(bench, bf16, &layout, count), count * columns, 0,
               0);
    lab_expect_same_bits(bench, "logits that stay", logits, kept, cells);
    lab_expect_same_bits(bench, "losses", lab_get(bench, losses[0], count), losses[1], count);
}

static void check_binary(lab *bench) {
    int32_t count = lab_between(bench, 1, 6), columns = lab_between(bench, 1, 5000);
    int32_t stride = columns + lab_between(bench, 0, 9), cells = count * stride;
    double *logits = lab_random(bench, cells, 9);
    float *losses[2] = {lab_put(bench, lab_zeros(bench, count), count),
                        lab_put(bench, lab_zeros(bench, count), count)};
    float *full = lab_put(bench, logits, cells), *kept = lab_put(bench, logits, cells);
    vlp_bf16_layout layout = {1, columns, stride};
    vlp_bf16 *bf16 = lab_bf16_places(bench, &layout, count);
    /* The answers of row i: every third column from i on. */
    int32_t *answers = lab_ids(bench, cells, 0, 0), used = 0;
    int64_t begin[6], end[6];
    for (int32_t i = 0; i < count; i++) {
        begin[i] = used;
        for (int32_t j = i; j < columns; j += 3) answers[used++] = j;
        end[i] = used;
    }
    vlp_binary binary = {.count = count,
                         .columns = columns,
                         .stride = stride,
                         .begin = lab_put_bytes(bench, begin, sizeof begin),
                         .end = lab_put_bytes(bench, end, sizeof end),
                         .answers = lab_put_ids(bench, answers, cells),
                         .weights = lab_put(bench, lab_shares(bench, count), count),
                         .positive = 0.9f,
                         .negative = 0.01f};
    bench->backend->loss->binary(bench->compute, full, NULL, losses[0], &binary);
    bench->backend->loss->binary(bench->compute, kept, bf16, losses[1], &binary);
    double *gradients = lab_get(bench, full, cells);
    vlp_bf16 *got = calloc((size_t)cells, sizeof *got);
    assert_non_null(got);
    lab_get_bytes(bench, got, bf16, (size_t)cells * sizeof *got);
    for (int32_t i = 0; i < count * columns; i++) {
        int32_t cell = i / columns * stride + i % columns;
        uint32_t bits = (uint32_t)got[cell] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true((double)value == lab_bf16(gradients[cell]));
    }
    free(got);
    lab_expect_same_bits(bench, "logits that stay", logits, kept, cells);
    lab_expect_same_bits(bench, "losses", lab_get(bench, losses[0], count), losses[1], count);
}

static void test_bf16(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 2, SEED);
    if (!bench.backend->bf16) {
        lab_close(&bench);
        skip();
    }
    for (int round = 0; round < 40; round++) {
        check_layout(&bench);
        check_products(&bench);
        lab_clear(&bench);
        for (int similarity = VLP_DOT; similarity <= VLP_MINUS_MODULUS; similarity++) {
            check_pairs(&bench, (vlp_similarity)similarity);
            lab_clear(&bench);
            check_update(&bench, (vlp_similarity)similarity);
            lab_clear(&bench);
        }
        check_softmax(&bench);
        check_binary(&bench);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests_name("bf16", tests, NULL, NULL);
}
