/* Queries, pairs and a whole horizontal step of a backend against formulas in double precision,
 * their gradients against finite differences of those formulas. Shapes are random and small, a few are
 * large enough for every operation to share its work among threads. */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "model/gsf.h"
#include "reference_ops.h"

enum { SEED = 20, ROUNDS = 12, MAX_WIDTH = 192 };

static const int32_t thread_counts[] = {1, 2, 3};

typedef void (*check)(lab *bench, const vlp_model_options *model, bool large);

static void for_all_models(check one, uint64_t stream) {
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        lab bench;
        lab_open(&bench, thread_counts[t], SEED);
        bench.random.step = stream;
        for (int32_t m = 0; m < reference_model_count(); m++)
            for (int round = 0; round <= ROUNDS; round++) {
                vlp_model_options model = reference_model(m);
                bool large = round == ROUNDS;
                int32_t dim = 1 + (round * 5 + m) % 9;
                if (large) dim = reference_has_matrices(&model) ? 13 : 40;
                model = reference_sized(model, dim, 1 + (dim + 2) % 7);
                one(&bench, &model, large);
                lab_clear(&bench);
            }
        lab_close(&bench);
    }
}

/* ---- Queries ------------------------------------------------------------------------------------- */

/* <dq, q(h, r)> of one query, or <dk, k(t, r)> of one answer. */
typedef struct one_query {
    const vlp_form *form;
    const double *h, *r, *dq;
    bool linear, answer;
} one_query;

static double query_product(const void *context) {
    const one_query *one = context;
    double q[MAX_WIDTH], sum = 0;
    if (one->answer)
        reference_answer(one->form, q, one->h, one->r);
    else
        reference_query(one->form, q, one->h, one->r, one->linear);
    for (int32_t j = 0; j < one->form->query_width; j++) sum += one->dq[j] * q[j];
    return sum;
}

typedef struct query_batch {
    vlp_form form;
    int32_t relations, count;
    double *heads, *table, *dq;
    int32_t *ids;
    float *heads_on, *table_on, *dq_on;
    int32_t *ids_on;
    vlp_related_rows on;
} query_batch;

static void make_queries(lab *bench, query_batch *batch, const vlp_model_options *model, bool large) {
    vlp_model_form(&batch->form, model);
    const vlp_form *form = &batch->form;
    batch->relations = lab_between(bench, 1, 4);
    batch->count = large ? 5000 / form->query_width : lab_between(bench, 1, 9);
    batch->heads = lab_random(bench, batch->count * form->entity_width, 1);
    batch->table = lab_random(bench, batch->relations * form->relation_width, 1);
    batch->dq = lab_random(bench, batch->count * form->query_width, 1);
    batch->ids = lab_ids(bench, batch->count, 0, batch->relations - 1);
    batch->heads_on = lab_put(bench, batch->heads, batch->count * form->entity_width);
    batch->table_on = lab_put(bench, batch->table, batch->relations * form->relation_width);
    batch->dq_on = lab_put(bench, batch->dq, batch->count * form->query_width);
    batch->ids_on = lab_put_ids(bench, batch->ids, batch->count);
    batch->on = (vlp_related_rows){batch->count, batch->heads_on, batch->ids_on, batch->table_on,
                                   batch->relations};
}

static void run_query(lab *bench, const query_batch *batch, float *q, bool linear) {
    bench->backend->transform->query(bench->compute, q, &batch->form, &batch->on, linear);
}

static void check_query_forward(lab *bench, const query_batch *batch, bool linear) {
    const vlp_form *form = &batch->form;
    int32_t width = form->query_width;
    double *expected = lab_zeros(bench, batch->count * width);
    for (int32_t i = 0; i < batch->count; i++)
        reference_query(form, expected + i * width, batch->heads + i * form->entity_width,
                        batch->table + batch->ids[i] * form->relation_width, linear);
    /* What stood there before does not matter. */
    float *q = lab_put(bench, lab_random(bench, batch->count * width, 9), batch->count * width);
    run_query(bench, batch, q, linear);
    double *got = lab_get(bench, q, batch->count * width);
    lab_expect_near("query", expected, got, batch->count * width);
    run_query(bench, batch, q, linear);
    lab_expect_same_bits(bench, "query", got, q, batch->count * width);
}

static void check_query_backward(lab *bench, const query_batch *batch, bool linear, bool answer) {
    const vlp_form *form = &batch->form;
    int32_t d = form->entity_width, rows = batch->relations * form->relation_width;
    double *heads_grad = lab_random(bench, batch->count * d, 1);
    double *relation_grad = lab_random(bench, rows, 1);
    float *heads_grad_on = lab_put(bench, heads_grad, batch->count * d);
    float *relation_grad_on = lab_put(bench, relation_grad, rows);
    if (answer)
        assert_int_equal(bench->backend->transform->answer_backward(bench->compute, heads_grad_on,
                                                                    relation_grad_on, form, batch->dq_on,
                                                                    &batch->on),
                         VLP_OK);
    else
        assert_int_equal(bench->backend->transform->query_backward(bench->compute, heads_grad_on,
                                                                   relation_grad_on, form, batch->dq_on,
                                                                   &batch->on, linear),
                         VLP_OK);
    for (int32_t i = 0; i < batch->count; i++) {
        double *h = batch->heads + i * d, *r = batch->table + batch->ids[i] * form->relation_width;
        one_query one = {form, h, r, batch->dq + i * form->query_width, linear, answer};
        for (int32_t j = 0; j < d; j++) heads_grad[i * d + j] += lab_slope(h + j, query_product, &one);
        for (int32_t j = 0; j < form->relation_width; j++)
            relation_grad[batch->ids[i] * form->relation_width + j] +=
                lab_slope(r + j, query_product, &one);
    }
    lab_expect_gradient("query: heads", heads_grad, lab_get(bench, heads_grad_on, batch->count * d),
                        batch->count * d);
    lab_expect_gradient("query: relations", relation_grad, lab_get(bench, relation_grad_on, rows), rows);
}

static void check_queries(lab *bench, const vlp_model_options *model, bool large) {
    query_batch batch;
    make_queries(bench, &batch, model, large);
    for (int kind = 0; kind < 3; kind++) { /* the query, without its bias, the answer */
        if (kind < 2) check_query_forward(bench, &batch, kind == 1);
        check_query_backward(bench, &batch, kind == 1, kind == 2);
    }
}

static void test_queries(void **state) {
    (void)state;
    for_all_models(check_queries, 1);
}

/* ---- The relation asked for ---------------------------------------------------------------------- */

/* <q(h, r), t>, which for the models that can be asked for a relation is linear in r. */
typedef struct one_triple {
    const vlp_form *form;
    const double *h, *r, *t;
} one_triple;

static double triple_product(const void *context) {
    const one_triple *one = context;
    double q[MAX_WIDTH], sum = 0;
    reference_query(one->form, q, one->h, one->r, true);
    for (int32_t j = 0; j < one->form->query_width; j++) sum += q[j] * one->t[j];
    return sum;
}

/* v is the slope along r. The slopes of <dv, v(h, t)> are those of the product with dv in the place of
 * r. */
static void check_relation_query(lab *bench, const vlp_model_options *model, bool large) {
    vlp_form form;
    vlp_model_form(&form, model);
    if (!vlp_model_predicts_relations(vlp_model_row_of(model->kind))) return;
    int32_t count = large ? 5000 / form.relation_width : lab_between(bench, 1, 9);
    int32_t e = form.entity_width, width = form.relation_width, ends = count * e, all = count * width;
    double *heads = lab_random(bench, ends, 1), *answers = lab_random(bench, ends, 1);
    double *dv = lab_random(bench, all, 1), *expected = lab_zeros(bench, all),
           *r = lab_zeros(bench, width);
    double *grads[2] = {lab_random(bench, ends, 1), lab_random(bench, ends, 1)};
    const float *heads_on = lab_put(bench, heads, ends), *answers_on = lab_put(bench, answers, ends);
    float *v_on = lab_put(bench, lab_random(bench, all, 9), all);
    float *grads_on[2] = {lab_put(bench, grads[0], ends), lab_put(bench, grads[1], ends)};
    bench->backend->transform->relation_query(
        bench->compute, v_on, &form,
        &(vlp_head_answer_rows){.count = count, .heads = heads_on, .answers = answers_on});
    bench->backend->transform->relation_query_backward(
        bench->compute, grads_on[0], grads_on[1], &form, lab_put(bench, dv, all),
        &(vlp_head_answer_rows){.count = count, .heads = heads_on, .answers = answers_on});
    for (int32_t i = 0; i < count; i++) {
        one_triple one = {&form, heads + i * e, r, answers + i * e};
        lab_slopes(expected + i * width, r, width, triple_product, &one);
        one.r = dv + i * width;
        for (int32_t j = i * e; j < (i + 1) * e; j++) {
            grads[0][j] += lab_slope(heads + j, triple_product, &one);
            grads[1][j] += lab_slope(answers + j, triple_product, &one);
        }
    }
    lab_expect_gradient("v of a relation", expected, lab_get(bench, v_on, all), all);
    lab_expect_gradient("v: heads", grads[0], lab_get(bench, grads_on[0], ends), ends);
    lab_expect_gradient("v: answers", grads[1], lab_get(bench, grads_on[1], ends), ends);
}

static void test_relation_query(void **state) {
    (void)state;
    for_all_models(check_relation_query, 9);
}

/* ---- Pairs --------------------------------------------------------------------------------------- */

typedef struct pair_batch {
    vlp_form form;
    int32_t relations, entities, batch, width;
    double *q, *relation_table, *entity_table;
    int32_t *ids, *members;
    float *q_on, *relation_on, *entity_on;
    int32_t *ids_on;
    vlp_related_rows queries;
    vlp_pairs pairs;
} pair_batch;

static void make_pairs(lab *bench, pair_batch *batch, const vlp_model_options *model, bool large) {
    vlp_model_form(&batch->form, model);
    const vlp_form *form = &batch->form;
    batch->relations = lab_between(bench, 1, 3);
    batch->entities = large ? 61 : lab_between(bench, 1, 7);
    batch->batch = large ? 19 : lab_between(bench, 1, 5);
    batch->width = large ? 23 : lab_between(bench, 1, 6);
    int32_t total = batch->batch * batch->width;
    batch->q = lab_random(bench, batch->batch * form->query_width, 1);
    batch->relation_table = lab_random(bench, batch->relations * form->relation_width, 1);
    batch->entity_table = lab_random(bench, batch->entities * form->entity_width, 1);
    batch->ids = lab_ids(bench, batch->batch, 0, batch->relations - 1);
    batch->members = lab_ids(bench, total, -1, batch->entities - 1);
    if (lab_between(bench, 0, 5) == 0) /* all pairs are masked */
        for (int32_t i = 0; i < total; i++) batch->members[i] = -1;
    batch->q_on = lab_put(bench, batch->q, batch->batch * form->query_width);
    batch->relation_on = lab_put(bench, batch->relation_table, batch->relations * form->relation_width);
    batch->entity_on = lab_put(bench, batch->entity_table, batch->entities * form->entity_width);
    batch->ids_on = lab_put_ids(bench, batch->ids, batch->batch);
    batch->queries = (vlp_related_rows){batch->batch, batch->q_on, batch->ids_on, batch->relation_on,
                                        batch->relations};
    batch->pairs = (vlp_pairs){.batch = batch->batch,
                               .width = batch->width,
                               .entities = lab_put_ids(bench, batch->members, total),
                               .table = batch->entity_on,
                               .table_rows = batch->entities};
}

static double *expected_scores(lab *bench, const pair_batch *batch) {
    const vlp_form *form = &batch->form;
    double *scores = lab_zeros(bench, batch->batch * batch->width), k[MAX_WIDTH];
    for (int32_t i = 0; i < batch->batch * batch->width; i++) {
        int32_t b = i / batch->width;
        scores[i] = -INFINITY;
        if (batch->members[i] < 0) continue;
        reference_answer(form, k, batch->entity_table + batch->members[i] * form->entity_width,
                         batch->relation_table + batch->ids[b] * form->relation_width);
        scores[i] = reference_similarity(form, batch->q + b * form->query_width, k);
    }
    return scores;
}

static void run_pair_scores(lab *bench, const pair_batch *batch, float *scores) {
    assert_int_equal(bench->backend->pairs->scores(bench->compute, scores, &batch->form, &batch->queries,
                                                   &batch->pairs),
                     VLP_OK);
}

static void check_pair_scores(lab *bench, const pair_batch *batch) {
    int32_t total = batch->batch * batch->width;
    float *scores = lab_put(bench, lab_random(bench, total, 9), total);
    run_pair_scores(bench, batch, scores);
    double *got = lab_get(bench, scores, total);
    lab_expect_near("pair scores", expected_scores(bench, batch), got, total);
    run_pair_scores(bench, batch, scores);
    lab_expect_same_bits(bench, "pair scores", got, scores, total);
}

/* The score of one pair. */
typedef struct one_pair {
    const vlp_form *form;
    const double *q, *t, *r;
} one_pair;

static double pair_score(const void *context) {
    const one_pair *one = context;
    double k[MAX_WIDTH];
    reference_answer(one->form, k, one->t, one->r);
    return reference_similarity(one->form, one->q, k);
}

/* Gradients of a batch of pairs and who was touched. */
typedef struct pair_gradients {
    double *q, *entities, *relations;
    uint8_t touched[64];
} pair_gradients;

static void expect_pair(pair_gradients *out, const pair_batch *batch, int32_t i, double weight) {
    const vlp_form *form = &batch->form;
    int32_t b = i / batch->width, width = form->query_width, d = form->entity_width;
    int64_t row = (int64_t)batch->ids[b] * form->relation_width, member = batch->members[i];
    double *q = batch->q + b * width, *t = batch->entity_table + member * d;
    double *r = batch->relation_table + row;
    one_pair one = {form, q, t, r};
    for (int32_t j = 0; j < width; j++)
        out->q[b * width + j] += weight * lab_slope(q + j, pair_score, &one);
    for (int32_t j = 0; j < d; j++)
        out->entities[member * d + j] += weight * lab_slope(t + j, pair_score, &one);
    for (int32_t j = 0; vlp_form_transforms_answers(form) && j < form->relation_width; j++)
        out->relations[row + j] += weight * lab_slope(r + j, pair_score, &one);
    out->touched[member] = 1;
}

/* Gradients on the backend, before and after. */
typedef struct device_gradients {
    float *q, *entities, *relations, *scores;
    uint8_t *touched;
} device_gradients;

static void run_pair_backward(lab *bench, const pair_batch *batch, const device_gradients *grads) {
    assert_int_equal(bench->backend->pairs->backward(
                         bench->compute,
                         &(vlp_pair_gradients){.queries = grads->q,
                                               .entities = {.rows = grads->entities,
                                                            .touched = grads->touched,
                                                            .count = batch->entities,
                                                            .width = batch->form.entity_width},
                                               .relations = grads->relations},
                         &batch->form, grads->scores, &batch->queries, &batch->pairs),
                     VLP_OK);
}

/* Starts from gradients that are not zero, which are added to, and a q_grad that is replaced. */
static void check_pair_backward(lab *bench, const pair_batch *batch) {
    const vlp_form *form = &batch->form;
    int32_t total = batch->batch * batch->width, q_size = batch->batch * form->query_width;
    int32_t e_size = batch->entities * form->entity_width;
    int32_t r_size = batch->relations * form->relation_width;
    pair_gradients expected = {
        lab_zeros(bench, q_size), lab_random(bench, e_size, 1), lab_random(bench, r_size, 1), {0}};
    /* Rows that are not touched count as zeros, whatever stands there, as soon as they have a pair. */
    expected.touched[0] = 1;
    double *weights = lab_random(bench, total, 1);
    device_gradients grads = {lab_put(bench, lab_random(bench, q_size, 9), q_size),
                              lab_put(bench, expected.entities, e_size),
                              lab_put(bench, expected.relations, r_size), NULL,
                              lab_put_bytes(bench, expected.touched, (size_t)batch->entities)};
    for (int32_t i = 0; i < total; i++) {
        int32_t member = batch->members[i];
        for (int32_t j = 0; member > 0 && j < form->entity_width; j++)
            expected.entities[member * form->entity_width + j] = 0;
    }
    for (int32_t i = 0; i < total; i++) {
        if (lab_between(bench, 0, 4) == 0) weights[i] = 0;
        if (batch->members[i] >= 0)
            expect_pair(&expected, batch, i, weights[i]);
        else
            weights[i] = 7; /* of a masked pair: to be skipped */
    }
    grads.scores = lab_put(bench, weights, total);
    run_pair_backward(bench, batch, &grads);
    double *got_q = lab_get(bench, grads.q, q_size), *got_e = lab_get(bench, grads.entities, e_size);
    lab_expect_gradient("pairs: queries", expected.q, got_q, q_size);
    lab_expect_gradient("pairs: entities", expected.entities, got_e, e_size);
    lab_expect_gradient("pairs: relations", expected.relations, lab_get(bench, grads.relations, r_size),
                        r_size);
    uint8_t touched[64];
    lab_get_bytes(bench, touched, grads.touched, (size_t)batch->entities);
    assert_memory_equal(touched, expected.touched, (size_t)batch->entities);
    run_pair_backward(bench, batch, &grads);
    lab_expect_same_bits(bench, "pair gradients", got_q, grads.q, q_size);
}

static void check_pairs(lab *bench, const vlp_model_options *model, bool large) {
    pair_batch batch, other;
    make_pairs(bench, &batch, model, large);
    check_pair_scores(bench, &batch);
    check_pair_backward(bench, &batch);
    /* Backward of pairs that were not the last to be scored, and of some that never were. */
    make_pairs(bench, &other, model, false);
    run_pair_scores(bench, &other, lab_put(bench, lab_zeros(bench, 1000), 1000));
    check_pair_backward(bench, &batch);
    check_pair_backward(bench, &other);
}

static void test_pairs(void **state) {
    (void)state;
    for_all_models(check_pairs, 2);
}

/* Every entity; the same scores as the definition of the model gives. */
static void check_all_scores(lab *bench, const vlp_model_options *model, bool large) {
    query_batch batch;
    make_queries(bench, &batch, model, false);
    const vlp_form *form = &batch.form;
    int32_t entities = large ? 203 : lab_between(bench, 1, 9), total = batch.count * entities;
    double *table = lab_random(bench, entities * form->entity_width, 1);
    double *expected = lab_zeros(bench, total);
    for (int32_t i = 0; i < total; i++)
        expected[i] = reference_score(model, batch.heads + i / entities * form->entity_width,
                                      batch.table + batch.ids[i / entities] * form->relation_width,
                                      table + i % entities * form->entity_width);
    float *table_on = lab_put(bench, table, entities * form->entity_width);
    float *q = lab_put(bench, lab_zeros(bench, batch.count * form->query_width),
                       batch.count * form->query_width);
    float *scores = lab_put(bench, lab_random(bench, total, 9), total);
    double *got = NULL;
    for (int round = 0; round < 2; round++) {
        run_query(bench, &batch, q, false);
        assert_int_equal(
            bench->backend->scores->all(bench->compute, scores, form,
                                        &(vlp_related_rows){.count = batch.count,
                                                            .rows = q,
                                                            .relations = batch.ids_on,
                                                            .relation_table = batch.table_on},
                                        table_on, entities),
            VLP_OK);
        if (got) lab_expect_same_bits(bench, "all scores", got, scores, total);
        got = lab_get(bench, scores, total);
    }
    lab_expect("all scores", expected, got, total, 2e-5, 1);
}

static void test_all_scores(void **state) {
    (void)state;
    for_all_models(check_all_scores, 3);
}

/* ---- A horizontal step --------------------------------------------------------------------------- */

/* L2 of a batch as a function of the two tables. */
typedef struct one_step {
    const vlp_model_options *model;
    const vlp_form *form;
    const double *entities, *relations, *weights, *p1;
    const int32_t *heads, *ids, *members;
    int32_t batch, width;
} one_step;

static void step_scores(const one_step *step, double *scores, int32_t b) {
    for (int32_t j = 0; j < step->width; j++) {
        int32_t member = step->members[b * step->width + j], d = step->form->entity_width;
        scores[j] = member < 0
                        ? -INFINITY
                        : reference_score(step->model, step->entities + step->heads[b] * d,
                                          step->relations + step->ids[b] * step->form->relation_width,
                                          step->entities + member * d);
    }
}

static double step_loss(const void *context) {
    const one_step *step = context;
    double loss = 0, scores[16];
    for (int32_t b = 0; b < step->batch; b++) {
        step_scores(step, scores, b);
        loss +=
            step->weights[b] * reference_negative_loss(scores, step->p1 + b * step->width, step->width);
    }
    return loss;
}

/* What a training step does: gradients of both tables, from zero. */
static void run_step(lab *bench, const one_step *step, const vlp_weight_form *weighing,
                     float *entity_grad, float *relation_grad, int32_t entities, int32_t relations,
                     double loss) {
    const vlp_backend *backend = bench->backend;
    vlp_compute *compute = bench->compute;
    const vlp_form *form = step->form;
    int32_t d = form->entity_width, batch = step->batch, total = batch * step->width;
    float *entity_on = lab_put(bench, step->entities, entities * d);
    float *relation_on = lab_put(bench, step->relations, relations * form->relation_width);
    int32_t *heads = lab_put_ids(bench, step->heads, batch), *ids = lab_put_ids(bench, step->ids, batch);
    vlp_pairs pairs = {.batch = batch,
                       .width = step->width,
                       .entities = lab_put_ids(bench, step->members, total),
                       .table = entity_on,
                       .table_rows = entities};
    double *zeros = lab_zeros(bench, 1000);
    float *rows = lab_put(bench, zeros, batch * d), *rows_grad = lab_put(bench, zeros, batch * d);
    float *q = lab_put(bench, zeros, batch * form->query_width);
    float *q_grad = lab_put(bench, zeros, batch * form->query_width);
    float *scores = lab_put(bench, zeros, total), *row_loss = lab_put(bench, zeros, batch);
    vlp_related_rows head_rows = {batch, rows, ids, relation_on, relations}, queries = head_rows;
    queries.rows = q;
    backend->rows->gather(compute, rows, entity_on, heads, batch, d);
    backend->transform->query(compute, q, form, &head_rows, false);
    assert_int_equal(backend->pairs->scores(compute, scores, form, &queries, &pairs), VLP_OK);
    backend->loss->negative(compute, scores, row_loss, weighing, lab_put(bench, step->weights, batch),
                            batch, step->width);
    assert_int_equal(
        backend->pairs->backward(
            compute,
            &(vlp_pair_gradients){
                .queries = q_grad,
                .entities = {.rows = entity_grad, .count = entities, .width = form->entity_width},
                .relations = relation_grad},
            form, scores, &queries, &pairs),
        VLP_OK);
    assert_int_equal(backend->transform->query_backward(compute, rows_grad, relation_grad, form, q_grad,
                                                        &head_rows, false),
                     VLP_OK);
    assert_int_equal(backend->rows->scatter_add(
                         compute,
                         &(vlp_table_gradient){.rows = entity_grad, .count = entities, .width = d},
                         rows_grad, NULL, heads, batch),
                     VLP_OK);
    double sum = 0, *got = lab_get(bench, row_loss, batch);
    for (int32_t b = 0; b < batch; b++) sum += got[b];
    lab_expect("step loss", &loss, &sum, 1, 1e-5, 0.1);
}

/* Few entities: the head is often its own answer, or a negative, and an answer is a negative elsewhere
 * or in its own row. */
static void check_step(lab *bench, const vlp_model_options *model, bool large) {
    vlp_form form;
    vlp_model_form(&form, model);
    if (large) return;
    int32_t entities = lab_between(bench, 1, 5), relations = lab_between(bench, 1, 3);
    int32_t batch = lab_between(bench, 1, 5), width = lab_between(bench, 1, 6);
    int32_t e_size = entities * form.entity_width, r_size = relations * form.relation_width;
    vlp_weight_form weighing = lab_weighing(bench, lab_between(bench, 0, 2));
    double *e = lab_random(bench, e_size, 1), *r = lab_random(bench, r_size, 1);
    double *p1 = lab_zeros(bench, batch * width), scores[16];
    int32_t *members = lab_ids(bench, batch * width, -1, entities - 1);
    for (int32_t b = 0; b < batch; b++)
        if (members[b * width] < 0) members[b * width] = lab_between(bench, 0, entities - 1);
    one_step step = {.model = model, .form = &form, .entities = e, .relations = r};
    step.weights = lab_shares(bench, batch);
    step.heads = lab_ids(bench, batch, 0, entities - 1);
    step.ids = lab_ids(bench, batch, 0, relations - 1);
    step.members = members;
    step.p1 = p1;
    step.batch = batch;
    step.width = width;
    for (int32_t b = 0; b < batch; b++) {
        step_scores(&step, scores, b);
        reference_weights(&weighing, p1 + b * width, scores, width);
    }
    double *zeros = lab_zeros(bench, 1000);
    float *entity_grad = lab_put(bench, zeros, e_size), *relation_grad = lab_put(bench, zeros, r_size);
    run_step(bench, &step, &weighing, entity_grad, relation_grad, entities, relations, step_loss(&step));
    double *expected = lab_zeros(bench, e_size + r_size);
    lab_slopes(expected, e, e_size, step_loss, &step);
    lab_slopes(expected + e_size, r, r_size, step_loss, &step);
    lab_expect_gradient("step: entities", expected, lab_get(bench, entity_grad, e_size), e_size);
    lab_expect_gradient("step: relations", expected + e_size, lab_get(bench, relation_grad, r_size),
                        r_size);
}

static void test_horizontal_step(void **state) {
    (void)state;
    for_all_models(check_step, 4);
    for_all_models(check_step, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queries),         cmocka_unit_test(test_relation_query),
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_all_scores),
        cmocka_unit_test(test_horizontal_step),
    };
    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
