/* The vertical aggregator over a backend against the paper's formula, reference by reference in double
 * precision: t', its cosines with every entity, the cross-entropy of their softmax, and the gradients of
 * the aggregator's six tables, and of the embeddings where they receive the vertical loss's gradient,
 * against finite differences. Where a backend has bf16 operations, the same over bf16 copies, to the
 * precision of bf16. */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "model/model.h"
#include "reference_ops.h"

enum { SEED = 40, ROUNDS = 15, MAX_WIDTH = 64 };

/* A model's tables on this side, and a batch with its references. */
typedef struct aggregator_case {
    reference_head head;
    double *tables[TABLES];
    int32_t entities, batch, capacity;
    int32_t *heads, *relations, *answers, *counts;
    int32_t *reference_heads, *reference_answers; /* (batch, capacity) */
    double *weights, temperature;
} aggregator_case;

static void fill_case(lab *bench, aggregator_case *one, const vlp_model *model) {
    memset(one, 0, sizeof *one);
    one->head.form = &model->form;
    for (int id = 0; id < TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        int64_t size = table->rows * table->width;
        /* Over bf16 copies the aggregator's matrices are numbers in bf16, and small enough for its tanh
         * to be no mere sign. */
        double range = id == TABLE_OUTPUT ? 0.5 : 1;
        if (table->bf16 && id >= VLP_HORIZONTAL_TABLES) range = 1.2 / sqrt(table->width);
        one->tables[id] = lab_random(bench, size, range);
        for (int64_t i = 0; i < size && table->bf16 && id >= VLP_HORIZONTAL_TABLES; i++)
            one->tables[id][i] = lab_bf16(one->tables[id][i]);
        one->head.tables[id] = one->tables[id];
        float *staged = lab_put(bench, one->tables[id], size);
        bench->backend->memory->upload(bench->compute, table->value, staged,
                                       (size_t)size * sizeof *staged);
    }
    one->entities = model->entities;
    one->batch = lab_between(bench, 1, 5);
    one->capacity = lab_between(bench, 0, 5); /* without references there is still a head */
    one->heads = lab_ids(bench, one->batch, 0, model->entities - 1);
    one->relations = lab_ids(bench, one->batch, 0, model->relations - 1);
    one->answers = lab_ids(bench, one->batch, 0, model->entities - 1);
    one->counts = lab_ids(bench, one->batch, 0, one->capacity);
    one->reference_heads = lab_ids(bench, one->batch * one->capacity, 0, model->entities - 1);
    one->reference_answers = lab_ids(bench, one->batch * one->capacity, 0, model->entities - 1);
    for (int32_t i = 0; i < one->batch * one->capacity; i++)
        if (i % one->capacity >= one->counts[i / one->capacity])
            one->reference_heads[i] = one->reference_answers[i] = -1;
    one->weights = lab_shares(bench, one->batch);
    one->temperature = lab_between(bench, 1, 10);
}

static void expected_output(const aggregator_case *one, double *output, int32_t b) {
    reference_aggregator_output(&one->head, output, one->heads[b], one->relations[b],
                                one->reference_heads + b * one->capacity,
                                one->reference_answers + b * one->capacity, one->counts[b]);
}

/* L1 of the batch as a function of all tables. */
static double aggregator_loss(const void *context) {
    const aggregator_case *one = context;
    int32_t d = one->head.form->entity_width;
    double output[MAX_WIDTH], cosines[16], loss = 0;
    for (int32_t b = 0; b < one->batch; b++) {
        expected_output(one, output, b);
        for (int32_t e = 0; e < one->entities; e++)
            cosines[e] = reference_cosine(output, one->tables[VLP_TABLE_ENTITIES] + e * d, d);
        loss += one->weights[b] * reference_softmax_loss(cosines, one->answers[b], NULL, NULL,
                                                         one->temperature, one->entities);
    }
    return loss;
}

/* ---- The same on the backend --------------------------------------------------------------------- */

typedef struct aggregator_device {
    vlp_aggregator_work work;
    vlp_reference_batch references;
    float *rows, *q, *logits, *row_loss, *inverse, *grad, *candidate_grad;
    int32_t *relations;
} aggregator_device;

static void run_aggregator(lab *bench, const aggregator_case *one, const vlp_model *model,
                           aggregator_device *on) {
    const vlp_backend *backend = bench->backend;
    int32_t d = model->form.entity_width, batch = one->batch, cells = batch * one->capacity;
    int32_t width = model->form.query_width;
    const double *zeros = lab_zeros(bench, batch * (width > d ? width : d));
    on->references = (vlp_reference_batch){lab_put_ids(bench, one->reference_heads, cells),
                                           lab_put_ids(bench, one->reference_answers, cells),
                                           lab_put_ids(bench, one->counts, batch), one->capacity};
    on->relations = lab_put_ids(bench, one->relations, batch);
    on->rows = lab_put(bench, zeros, batch * d);
    on->q = lab_put(bench, zeros, batch * width);
    backend->rows->gather(bench->compute, on->rows, vlp_model_entities(model)->value,
                          lab_put_ids(bench, one->heads, batch), batch, d);
    backend->transform->query(bench->compute, on->q, &model->form,
                              &(vlp_related_rows){.count = batch,
                                                  .rows = on->rows,
                                                  .relations = on->relations,
                                                  .relation_table = vlp_model_relations(model)->value},
                              false);
    vlp_aggregator_forward(model, &on->work, on->rows, on->relations, on->q, &on->references, batch);
}

/* What the queries pass on to heads and relations. */
static void run_queries_backward(lab *bench, const aggregator_case *one, const vlp_model *model,
                                 aggregator_device *on, const vlp_aggregator_sources *sources) {
    const vlp_backend *backend = bench->backend;
    const vlp_table *entities = vlp_model_entities(model);
    const vlp_table *relations = vlp_model_relations(model);
    int32_t d = model->form.entity_width, batch = one->batch;
    float *rows_grad = lab_put(bench, lab_zeros(bench, batch * d), batch * d);
    assert_int_equal(backend->transform->query_backward(
                         bench->compute, rows_grad, relations->grad, &model->form, sources->q_grad,
                         &(vlp_related_rows){.count = batch,
                                             .rows = on->rows,
                                             .relations = on->relations,
                                             .relation_table = relations->value,
                                             .relation_count = model->relations},
                         false),
                     VLP_OK);
    assert_int_equal(backend->rows->scatter_add(bench->compute,
                                                &(vlp_table_gradient){.rows = entities->grad,
                                                                      .touched = entities->touched,
                                                                      .count = model->entities,
                                                                      .width = d},
                                                rows_grad, NULL, sources->heads, batch),
                     VLP_OK);
}

static vlp_aggregator_sources put_sources(lab *bench, const aggregator_case *one,
                                          aggregator_device *on) {
    int32_t q_size = one->batch * one->head.form->query_width;
    return (vlp_aggregator_sources){lab_put_ids(bench, one->heads, one->batch), on->relations,
                                    lab_put(bench, lab_random(bench, q_size, 9), q_size)};
}

/* Logits, loss, and back: as a training step does it. */
static double run_loss(lab *bench, const aggregator_case *one, const vlp_model *model,
                       aggregator_device *on, bool shared) {
    const vlp_backend *backend = bench->backend;
    int32_t d = model->form.entity_width, batch = one->batch, entities = one->entities;
    const float *table = vlp_model_entities(model)->value;
    const double *zeros = lab_zeros(bench, (batch + entities) * (d + entities));
    on->logits = lab_put(bench, zeros, batch * entities);
    on->row_loss = lab_put(bench, zeros, batch);
    on->inverse = lab_put(bench, zeros, entities);
    on->grad = lab_put(bench, zeros, batch * d);
    backend->rows->inverse_norms(bench->compute, on->inverse, table, entities, d);
    backend->blas->product(bench->compute, on->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = batch,
                                          .n = entities,
                                          .k = d,
                                          .alpha = 1,
                                          .lda = d,
                                          .ldb = d,
                                          .ldc = entities},
                           on->work.output, table);
    backend->loss->softmax(bench->compute, on->logits, NULL, on->row_loss,
                           &(vlp_softmax){.count = batch,
                                          .columns = entities,
                                          .stride = entities,
                                          .answers = lab_put_ids(bench, one->answers, batch),
                                          .weights = lab_put(bench, one->weights, batch),
                                          .column_scale = on->inverse,
                                          .temperature = (float)one->temperature});
    backend->blas->product(
        bench->compute, on->grad,
        &(vlp_product){
            .m = batch, .n = d, .k = entities, .alpha = 1, .lda = entities, .ldb = d, .ldc = d},
        on->logits, table);
    on->candidate_grad = lab_put(bench, zeros, entities * d);
    backend->blas->product(bench->compute, on->candidate_grad,
                           &(vlp_product){.transpose_a = true,
                                          .m = entities,
                                          .n = d,
                                          .k = batch,
                                          .alpha = 1,
                                          .lda = entities,
                                          .ldb = d,
                                          .ldc = d},
                           on->logits, on->work.output);
    vlp_aggregator_sources sources = put_sources(bench, one, on);
    assert_int_equal(vlp_aggregator_backward(model, &on->work, on->grad, NULL, &on->references, batch,
                                             shared ? &sources : NULL),
                     VLP_OK);
    if (shared) {
        run_queries_backward(bench, one, model, on, &sources);
        backend->rows->project_add(bench->compute, vlp_model_entities(model)->grad, on->candidate_grad,
                                   table, on->inverse, entities, d);
    }
    double sum = 0, *losses = lab_get(bench, on->row_loss, batch);
    for (int32_t b = 0; b < batch; b++) sum += losses[b];
    return sum;
}

/* ---- Checks -------------------------------------------------------------------------------------- */

/* (batch, entity_width) t' / |t'|. */
static double *expected_outputs(lab *bench, const aggregator_case *one) {
    int32_t d = one->head.form->entity_width;
    double *expected = lab_zeros(bench, one->batch * d);
    for (int32_t b = 0; b < one->batch; b++) {
        double *row = expected + b * d, square = 0;
        expected_output(one, row, b);
        for (int32_t j = 0; j < d; j++) square += row[j] * row[j];
        for (int32_t j = 0; j < d; j++) row[j] /= sqrt(square);
    }
    return expected;
}

static void check_output(lab *bench, const aggregator_case *one, aggregator_device *on) {
    int32_t size = one->batch * one->head.form->entity_width;
    lab_expect("head output", expected_outputs(bench, one), lab_get(bench, on->work.output, size), size,
               2e-5, 1);
}

/* Heads and references are marked for a lazy optimizer. */
static void check_touched(lab *bench, const aggregator_case *one, const vlp_model *model) {
    uint8_t expected[16] = {0}, got[16];
    for (int32_t b = 0; b < one->batch; b++) {
        expected[one->heads[b]] = 1;
        for (int32_t i = b * one->capacity; i < b * one->capacity + one->counts[b]; i++)
            expected[one->reference_heads[i]] = expected[one->reference_answers[i]] = 1;
    }
    lab_get_bytes(bench, got, vlp_model_entities(model)->touched, (size_t)one->entities);
    assert_memory_equal(got, expected, (size_t)one->entities);
}

/* The gradients before the step: those of entities and relations are added to, the aggregator's set. */
static void fill_gradients(lab *bench, const vlp_model *model, double *before[TABLES]) {
    for (int id = 0; id < TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        int64_t size = table->rows * table->width;
        /* But rows of entities that are not touched count as zeros. */
        before[id] = id == VLP_TABLE_ENTITIES ? lab_zeros(bench, size) : lab_random(bench, size, 1);
        bench->backend->memory->upload(bench->compute, table->grad, lab_put(bench, before[id], size),
                                       (size_t)size * sizeof(float));
        if (id >= VLP_HORIZONTAL_TABLES) before[id] = lab_zeros(bench, size);
    }
}

static void check_gradients(lab *bench, aggregator_case *one, const vlp_model *model,
                            aggregator_device *on, bool shared) {
    double *expected[TABLES], expected_loss = aggregator_loss(one);
    fill_gradients(bench, model, expected);
    double loss = run_loss(bench, one, model, on, shared);
    lab_expect("head loss", &expected_loss, &loss, 1, 2e-5, 0.5);
    for (int id = 0; id < TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        int64_t size = table->rows * table->width;
        double *got = lab_get(bench, table->grad, size);
        for (int64_t i = 0; i < size; i++)
            if (shared || id >= VLP_HORIZONTAL_TABLES)
                expected[id][i] += lab_slope(&one->tables[id][i], aggregator_loss, one);
        lab_expect_gradient(table->name, expected[id], got, size);
    }
    if (shared) check_touched(bench, one, model);
}

static void check_aggregator(lab *bench, vlp_model_options options, int round) {
    int32_t dim = 1 + (round * 3 + options.kind) % 6;
    vlp_transform_traits traits = vlp_transform_traits_of(vlp_model_row_of(options.kind)->transform);
    if (dim * traits.parts == 1) dim = 2; /* the cosine of single numbers is a sign: no gradient */
    options = reference_sized(options, dim, 1 + (dim + 1) % 5);
    vlp_model *model = NULL;
    aggregator_case one;
    aggregator_device on;
    int32_t entities = lab_between(bench, 2, 9), relations = lab_between(bench, 1, 3);
    assert_int_equal(
        vlp_model_new(&model, bench->backend, bench->compute,
                      &(vlp_model_shape){options, entities, relations, components_of(true), {0}}, true),
        VLP_OK);
    fill_case(bench, &one, model);
    /* Room for more than the batch, as when the last batch of a pass is short; and nothing is bf16
     * where the model keeps no copies. */
    assert_int_equal(vlp_aggregator_work_new(&on.work, model, one.batch + round % 3, round % 2), VLP_OK);
    run_aggregator(bench, &one, model, &on);
    check_output(bench, &one, &on);
    int32_t size = one.batch * model->form.entity_width;
    double *first = lab_get(bench, on.work.output, size);
    run_aggregator(bench, &one, model, &on);
    lab_expect_same_bits(bench, "head output", first, on.work.output, size);
    check_gradients(bench, &one, model, &on, round % 2 == 1);
    vlp_aggregator_work_free(&on.work, model);
    vlp_model_free(model);
}

static void test_aggregator(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 2; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        for (int32_t m = 0; m < reference_model_count(); m++)
            for (int round = 0; round < ROUNDS; round++) {
                check_aggregator(&bench, reference_model(m), round);
                lab_clear(&bench);
            }
        lab_close(&bench);
    }
}

/* ---- Over bf16 copies ------------------------------------------------------------------------- */

/* A head whose gradient is given: the sum of <weights, t' / |t'|>. */
typedef struct given_gradient {
    const aggregator_case *one;
    const double *weights; /* (batch, entity_width) */
} given_gradient;

static double given_loss(const void *context) {
    const given_gradient *given = context;
    int32_t d = given->one->head.form->entity_width;
    double output[MAX_WIDTH], loss = 0;
    for (int32_t b = 0; b < given->one->batch; b++) {
        double square = 0, sum = 0;
        expected_output(given->one, output, b);
        for (int32_t j = 0; j < d; j++) {
            square += output[j] * output[j];
            sum += output[j] * given->weights[b * d + j];
        }
        loss += sum / sqrt(square);
    }
    return loss;
}

/* The weights as a product with bf16 entities leaves them: in their places of a bf16 row. */
static float *put_apart(lab *bench, const double *weights, const vlp_bf16_layout *layout, int32_t rows) {
    int32_t stride = vlp_bf16_layout_stride(layout), width = layout->width;
    double *apart = lab_zeros(bench, rows * stride);
    for (int32_t i = 0; i < rows * layout->parts * width; i++)
        apart[i / width * layout->padded + i % width] = weights[i];
    return lab_put(bench, apart, rows * stride);
}

static void check_bf16_gradients(lab *bench, aggregator_case *one, const vlp_model *model,
                                 aggregator_device *on, bool shared) {
    const vlp_bf16_layout *layout = &vlp_model_entities(model)->layout;
    double *before[TABLES];
    given_gradient given = {one, lab_random(bench, one->batch * model->form.entity_width, 1)};
    fill_gradients(bench, model, before);
    vlp_aggregator_sources sources = put_sources(bench, one, on);
    assert_int_equal(vlp_aggregator_backward(model, &on->work,
                                             put_apart(bench, given.weights, layout, one->batch), layout,
                                             &on->references, one->batch, shared ? &sources : NULL),
                     VLP_OK);
    if (shared) run_queries_backward(bench, one, model, on, &sources);
    for (int id = 0; id < TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        int64_t size = table->rows * table->width;
        if (!shared && id < VLP_HORIZONTAL_TABLES) continue;
        double *got = lab_get(bench, table->grad, size), *slopes = lab_zeros(bench, size);
        for (int64_t i = 0; i < size; i++) got[i] -= before[id][i];
        lab_slopes(slopes, one->tables[id], size, given_loss, &given);
        /* Three numbers in bf16 stand between, and small sums of large terms keep less than these. */
        lab_expect_close(table->name, slopes, got, size, 3e-2);
    }
}

static void check_bf16_aggregator(lab *bench, vlp_model_options options, int round) {
    int32_t dim = 4 + (round * 5 + options.kind) % 13;
    options = reference_sized(options, dim, 1 + (dim + 1) % 9);
    vlp_model *model = NULL;
    aggregator_case one;
    aggregator_device on;
    int32_t entities = lab_between(bench, 2, 9), relations = lab_between(bench, 1, 3);
    assert_int_equal(
        vlp_model_new(&model, bench->backend, bench->compute,
                      &(vlp_model_shape){options, entities, relations, components_of(true), {0}}, true),
        VLP_OK);
    assert_int_equal(vlp_model_keep_bf16(model), VLP_OK);
    fill_case(bench, &one, model);
    vlp_model_convert_bf16(model);
    const vlp_bf16_layout *layout = &vlp_model_entities(model)->layout;
    int32_t size = one.batch * model->form.entity_width;
    for (int uses_bf16 = 0; uses_bf16 < 2; uses_bf16++) {
        assert_int_equal(vlp_aggregator_work_new(&on.work, model, one.batch + round % 3, uses_bf16),
                         VLP_OK);
        assert_int_equal(on.work.uses_bf16, uses_bf16);
        run_aggregator(bench, &one, model, &on);
        double *got = lab_get(bench, on.work.output, size);
        if (uses_bf16) {
            lab_expect_close("bf16 head", expected_outputs(bench, &one), got, size, 1e-2);
            lab_expect_bf16("bf16 output", got,
                            lab_get_bf16(bench, on.work.bf16_output, layout, one.batch), size);
            check_bf16_gradients(bench, &one, model, &on, round % 2 == 1);
        } else {
            check_output(bench, &one, &on); /* as exact as ever, for evaluation */
        }
        vlp_aggregator_work_free(&on.work, model);
    }
    vlp_model_free(model);
}

static void test_bf16_aggregator(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 1, SEED + 1);
    bool uses_bf16 = bench.backend->bf16;
    for (int32_t m = 0; m < reference_model_count() && uses_bf16; m++)
        for (int round = 0; round < ROUNDS; round++) {
            check_bf16_aggregator(&bench, reference_model(m), round);
            lab_clear(&bench);
        }
    lab_close(&bench);
    if (!uses_bf16) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_aggregator),
                                       cmocka_unit_test(test_bf16_aggregator)};
    return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
