/* Pairs whose answers are transformed by the relation, more of them than a backend buffers at a time:
 * scores and gradients are those of the queries one by one. */
#include "lab.h"
#include "model/gsf.h"
#include "reference_ops.h"

enum { BATCH = 7, WIDTH = 6000, ENTITIES = 50, RELATIONS = 3, PAIRS = BATCH * WIDTH };

typedef struct pair_results {
    float *scores; /* (BATCH, WIDTH) */
    vlp_pair_gradients grads;
    int64_t q_size, entity_size, relation_size;
} pair_results;

static float *zeros(lab *bench, int64_t count) {
    return lab_put(bench, lab_zeros(bench, count), count);
}

static pair_results results_of(lab *bench, const vlp_form *form) {
    pair_results out = {.scores = zeros(bench, PAIRS),
                        .q_size = (int64_t)BATCH * form->query_width,
                        .entity_size = (int64_t)ENTITIES * form->entity_width,
                        .relation_size = (int64_t)RELATIONS * form->relation_width};
    out.grads.queries = zeros(bench, out.q_size);
    out.grads.relations = zeros(bench, out.relation_size);
    out.grads.entities = (vlp_table_gradient){
        .rows = zeros(bench, out.entity_size), .count = ENTITIES, .width = form->entity_width};
    return out;
}

typedef struct pair_operands {
    vlp_form form;
    const float *scores_grad;
    vlp_related_rows queries;
    vlp_pairs pairs;
} pair_operands;

/* Queries first .. first + count - 1. */
static void run_pairs(lab *bench, const pair_results *out, const pair_operands *of, int32_t first,
                      int32_t count) {
    const vlp_form *form = &of->form;
    vlp_related_rows queries = of->queries;
    vlp_pairs pairs = of->pairs;
    vlp_pair_gradients grads = out->grads;
    grads.queries += (int64_t)first * form->query_width;
    queries.count = pairs.batch = count;
    queries.rows += (int64_t)first * form->query_width;
    queries.relations += first;
    pairs.entities += (int64_t)first * WIDTH;
    const vlp_pair_operations *operations = bench->backend->pairs;
    assert_int_equal(
        operations->scores(bench->compute, out->scores + (int64_t)first * WIDTH, form, &queries, &pairs),
        VLP_OK);
    assert_int_equal(operations->backward(bench->compute, &grads, form,
                                          of->scores_grad + (int64_t)first * WIDTH, &queries, &pairs),
                     VLP_OK);
}

static void expect_same(lab *bench, const char *what, const float *one_by_one, const float *together,
                        int64_t count) {
    lab_expect(what, lab_get(bench, one_by_one, count), lab_get(bench, together, count), count, 1e-4, 1);
}

static void check_chunks(lab *bench, const vlp_model_options *model) {
    pair_operands of;
    vlp_model_form(&of.form, model);
    pair_results together = results_of(bench, &of.form), one_by_one = results_of(bench, &of.form);
    double *table = lab_random(bench, together.entity_size, 1);
    double *relation_table = lab_random(bench, together.relation_size, 1);
    double *q = lab_random(bench, together.q_size, 1), *weights = lab_random(bench, PAIRS, 1e-3);
    of.queries = (vlp_related_rows){
        .count = BATCH,
        .rows = lab_put(bench, q, together.q_size),
        .relations = lab_put_ids(bench, lab_ids(bench, BATCH, 0, RELATIONS - 1), BATCH),
        .relation_table = lab_put(bench, relation_table, together.relation_size),
        .relation_count = RELATIONS};
    of.pairs =
        (vlp_pairs){.batch = BATCH,
                    .width = WIDTH,
                    .entities = lab_put_ids(bench, lab_ids(bench, PAIRS, -1, ENTITIES - 1), PAIRS),
                    .table = lab_put(bench, table, together.entity_size),
                    .table_rows = ENTITIES};
    of.scores_grad = lab_put(bench, weights, PAIRS);
    run_pairs(bench, &together, &of, 0, BATCH);
    for (int32_t b = 0; b < BATCH; b++) run_pairs(bench, &one_by_one, &of, b, 1);
    expect_same(bench, "scores", one_by_one.scores, together.scores, PAIRS);
    expect_same(bench, "queries", one_by_one.grads.queries, together.grads.queries, together.q_size);
    expect_same(bench, "entities", one_by_one.grads.entities.rows, together.grads.entities.rows,
                together.entity_size);
    expect_same(bench, "relations", one_by_one.grads.relations, together.grads.relations,
                together.relation_size);
}

static void test_chunks(void **state) {
    (void)state;
    lab bench;
    int checked = 0;
    lab_open(&bench, 2, 90);
    for (int32_t m = 0; m < reference_model_count(); m++) {
        vlp_model_options model = reference_model(m);
        if (!vlp_transform_traits_of(vlp_model_row_of(model.kind)->transform).answers) continue;
        model = reference_sized(model, reference_has_matrices(&model) ? 256 : 512, 8);
        check_chunks(&bench, &model);
        lab_clear(&bench);
        checked++;
    }
    assert_true(checked >= 3);
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks)};
    return cmocka_run_group_tests_name("transformed", tests, NULL, NULL);
}
