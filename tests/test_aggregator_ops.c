/* The operations of the vertical aggregator, each against loops in double precision and finite
 * differences: the means over references, [t_N, q], the normal tanh and its way back, sums of columns.
 * Where a backend uses_bf16, also its bf16 copies, to the zeros between their parts. */
#include <math.h>

#include "lab.h"
#include "model/gsf.h"
#include "reference_ops.h"

enum { SEED = 80, ROUNDS = 40 };

typedef void (*check)(lab *bench, int32_t rows, int32_t width);

/* Single rows, single columns, widths that are multiples of four and of eight and that are not; and
 * large arrays: odd ones, many rows, and rows longer than a block of threads reads at once. */
static void for_shapes(check one, uint64_t stream) {
    for (int32_t threads = 1; threads <= 2; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        bench.random.step = stream;
        for (int round = 0; round < ROUNDS; round++) {
            int32_t rows = round % 7 == 0 ? 1 : lab_between(&bench, 1, 9);
            int32_t width = round % 5 == 0 ? 1 : lab_between(&bench, 1, 13);
            if (round % 3 == 0) width = 4 * lab_between(&bench, 1, 5);
            one(&bench, rows, width);
            lab_clear(&bench);
        }
        one(&bench, 307, 257);
        lab_clear(&bench);
        one(&bench, 1100, 72);
        lab_clear(&bench);
        one(&bench, 3, 1204);
        lab_close(&bench);
    }
}

/* Numbers that have to be set, whatever was there. */
static float *places(lab *bench, int64_t count) {
    return lab_put(bench, lab_random(bench, count, 9), count);
}

/* ---- References ---------------------------------------------------------------------------------- */

/* A batch with its references, and what the head is to be given of them. */
typedef struct reference_case {
    vlp_form form;
    int32_t rows, entities, relation_count, capacity;
    double *table, *relation_table, *heads;
    int32_t *relations, *counts, *head_ids, *answer_ids;
    double *answers, *differences, *k, *s;
} reference_case;

static void fill_case(lab *bench, reference_case *one, int32_t rows) {
    const vlp_form *form = &one->form;
    int32_t e = form->entity_width;
    one->rows = rows;
    one->entities = lab_between(bench, 1, 9);
    one->relation_count = lab_between(bench, 1, 3);
    one->capacity = lab_between(bench, 0, 11); /* batches of rows that are full, and that are not */
    one->table = lab_random(bench, (int64_t)one->entities * e, 1);
    double range = form->transform == VLP_ROTATE ? 3 / (double)form->phase_scale : 1; /* half a turn */
    one->relation_table = lab_random(bench, (int64_t)one->relation_count * form->relation_width, range);
    one->heads = lab_random(bench, (int64_t)rows * e, 1);
    one->relations = lab_ids(bench, rows, 0, one->relation_count - 1);
    one->counts = lab_ids(bench, rows, 0, one->capacity);
    one->head_ids = lab_ids(bench, (int64_t)rows * one->capacity, 0, one->entities - 1);
    one->answer_ids = lab_ids(bench, (int64_t)rows * one->capacity, 0, one->entities - 1);
    for (int32_t i = 0; i < rows * one->capacity; i++)
        if (i % one->capacity >= one->counts[i / one->capacity])
            one->head_ids[i] = one->answer_ids[i] = -1;
}

static void expected_inputs(lab *bench, reference_case *one) {
    const vlp_form *form = &one->form;
    int32_t e = form->entity_width;
    one->answers = lab_zeros(bench, (int64_t)one->rows * e);
    one->differences = lab_zeros(bench, (int64_t)one->rows * e);
    one->k = lab_zeros(bench, (int64_t)one->rows * form->query_width);
    one->s = lab_zeros(bench, (int64_t)one->rows * form->query_width);
    for (int32_t i = 0; i < one->rows; i++) {
        double *answer = one->answers + i * e, *difference = one->differences + i * e;
        const double *r = one->relation_table + one->relations[i] * form->relation_width;
        for (int32_t n = i * one->capacity; n < i * one->capacity + one->counts[i]; n++)
            for (int32_t j = 0; j < e; j++) {
                const double *t = one->table + one->answer_ids[n] * e;
                const double *h = one->table + one->head_ids[n] * e;
                answer[j] += t[j] / one->counts[i];
                difference[j] += (one->heads[i * e + j] - h[j]) / one->counts[i];
            }
        reference_answer(form, one->k + i * form->query_width, answer, r);
        reference_query(form, one->s + i * form->query_width, difference, r, true);
    }
}

static void run_references(lab *bench, const reference_case *one, bool uses_bf16) {
    int64_t e_size = (int64_t)one->rows * one->form.entity_width, cells = one->rows * one->capacity;
    int64_t q_size = (int64_t)one->rows * one->form.query_width;
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, one->form.query_width);
    vlp_reference_batch references = {lab_put_ids(bench, one->head_ids, cells),
                                      lab_put_ids(bench, one->answer_ids, cells),
                                      lab_put_ids(bench, one->counts, one->rows), one->capacity};
    vlp_aggregator_inputs inputs = {.answers = places(bench, e_size),
                                    .differences = places(bench, e_size)};
    inputs.k = vlp_form_transforms_answers(&one->form) ? places(bench, q_size) : inputs.answers;
    inputs.s = places(bench, q_size);
    if (uses_bf16) {
        inputs.bf16_k = lab_bf16_places(bench, &layout, one->rows);
        inputs.bf16_s = lab_bf16_places(bench, &layout, one->rows);
    }
    int64_t r_size = (int64_t)one->relation_count * one->form.relation_width;
    bench->backend->aggregator->mean_references(
        bench->compute, &inputs, &one->form, &references,
        lab_put(bench, one->table, (int64_t)one->entities * one->form.entity_width),
        &(vlp_related_rows){.count = one->rows,
                            .rows = lab_put(bench, one->heads, e_size),
                            .relations = lab_put_ids(bench, one->relations, one->rows),
                            .relation_table = lab_put(bench, one->relation_table, r_size)});
    lab_expect_near("mean of answers", one->answers, lab_get(bench, inputs.answers, e_size), e_size);
    lab_expect_near("difference of heads", one->differences, lab_get(bench, inputs.differences, e_size),
                    e_size);
    if (uses_bf16) {
        lab_expect_bf16("bf16 k", one->k, lab_get_bf16(bench, inputs.bf16_k, &layout, one->rows),
                        q_size);
        lab_expect_bf16("bf16 s", one->s, lab_get_bf16(bench, inputs.bf16_s, &layout, one->rows),
                        q_size);
        return;
    }
    lab_expect_near("k", one->k, lab_get(bench, inputs.k, q_size), q_size);
    lab_expect_near("s", one->s, lab_get(bench, inputs.s, q_size), q_size);
}

static void check_references(lab *bench, int32_t rows, int32_t width) {
    for (int32_t m = 0; m < reference_model_count(); m++) {
        vlp_model_options model = reference_model(m);
        model = reference_sized(model, reference_has_matrices(&model) && width > 20 ? 20 : width,
                                lab_between(bench, 1, 13));
        reference_case one;
        vlp_model_form(&one.form, &model);
        fill_case(bench, &one, rows);
        expected_inputs(bench, &one);
        run_references(bench, &one, false);
        if (bench->backend->bf16) run_references(bench, &one, true);
    }
}

static void test_references(void **state) {
    (void)state;
    for_shapes(check_references, 1);
}

/* ---- [t_N, q] ------------------------------------------------------------------------------------ */

static void check_join(lab *bench, int32_t rows, int32_t e) {
    int32_t width = lab_between(bench, 0, 1) ? e : lab_between(bench, 1, 13), all = e + width;
    vlp_form form = {.entity_width = e, .query_width = width};
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, all);
    int64_t size = (int64_t)rows * all;
    double *concat = lab_random(bench, size, 1), *q = lab_random(bench, (int64_t)rows * width, 1);
    double *node = lab_random(bench, e, 1), *edge = lab_random(bench, e, 1);
    int32_t *counts = lab_ids(bench, rows, 0, 2), *counts_on = lab_put_ids(bench, counts, rows);
    float *concat_on = lab_put(bench, concat, size), *again = lab_put(bench, concat, size);
    float *node_on = lab_put(bench, node, e), *edge_on = lab_put(bench, edge, e);
    float *q_on = lab_put(bench, q, (int64_t)rows * width);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < all; j++) {
            if (j >= e) concat[i * all + j] = q[i * width + j - e];
            if (j < e && counts[i] > 0) concat[i * all + j] += node[j] + edge[j];
        }
    bench->backend->aggregator->concat_query(
        bench->compute, concat_on, NULL, &form,
        &(vlp_concat_operands){
            .rows = rows, .node_bias = node_on, .edge_bias = edge_on, .counts = counts_on, .q = q_on});
    lab_expect_near("concat", concat, lab_get(bench, concat_on, size), size);
    if (!bench->backend->bf16) return;
    vlp_bf16 *bf16 = lab_bf16_places(bench, &layout, rows);
    bench->backend->aggregator->concat_query(
        bench->compute, again, bf16, &form,
        &(vlp_concat_operands){
            .rows = rows, .node_bias = node_on, .edge_bias = edge_on, .counts = counts_on, .q = q_on});
    lab_expect_bf16("bf16 concat", concat, lab_get_bf16(bench, bf16, &layout, rows), size);
}

static void test_join(void **state) {
    (void)state;
    for_shapes(check_join, 2);
}

/* ---- The output ---------------------------------------------------------------------------------- */

/* <weights, y / |y|> of one row, y = tanh(x + bias). */
typedef struct one_output {
    const double *x, *bias, *weights;
    int32_t width;
} one_output;

static double output_product(const void *context) {
    const one_output *one = context;
    double sum = 0, square = 0;
    for (int32_t j = 0; j < one->width; j++) {
        double y = tanh(one->x[j] + one->bias[j]);
        sum += one->weights[j] * y;
        square += y * y;
    }
    return square > 0 ? sum / sqrt(square) : 0;
}

/* Rows with something between their parts, and plain ones. */
static float *put_apart(lab *bench, const double *rows_in, const vlp_bf16_layout *layout, int64_t rows) {
    int64_t stride = vlp_bf16_layout_stride(layout), width = layout->width;
    double *apart = lab_random(bench, rows * stride, 9);
    for (int64_t i = 0; i < rows * layout->parts * width; i++)
        apart[i / width * layout->padded + i % width] = rows_in[i];
    return lab_put(bench, apart, rows * stride);
}

static void check_backward(lab *bench, const double *slopes, const double *weights,
                           const vlp_bf16_layout *layout, const vlp_tanh_rows *rows) {
    int64_t size = rows->rows * rows->width;
    for (int apart = 0; apart < 2; apart++) {
        float *grad = places(bench, size);
        float *from =
            apart ? put_apart(bench, weights, layout, rows->rows) : lab_put(bench, weights, size);
        bench->backend->aggregator->tanh_normalize_backward(bench->compute, grad, from,
                                                            apart ? layout : NULL, rows);
        lab_expect("normal tanh backward", slopes, lab_get(bench, grad, size), size, 5e-4, 0.05);
    }
}

static void check_output(lab *bench, int32_t rows, int32_t width) {
    bool parts = lab_between(bench, 0, 1);
    if (parts) width *= 2;
    vlp_bf16_layout layout = parts ? vlp_bf16_layout_of(2, width / 2) : vlp_bf16_layout_of(1, width);
    int64_t size = (int64_t)rows * width;
    int32_t zero_row = lab_between(bench, 0, rows - 1);
    double *x = lab_random(bench, size, 2), *bias = lab_random(bench, width, 1);
    double *weights = lab_random(bench, size, 1), *slopes = lab_zeros(bench, size);
    double *activated = lab_zeros(bench, size), *norms = lab_zeros(bench, rows);
    double *normal = lab_zeros(bench, size);
    for (int32_t j = 0; j < width; j++) x[zero_row * width + j] = -bias[j];
    for (int32_t i = 0; i < rows; i++) {
        double *row = activated + i * width, square = 0;
        for (int32_t j = 0; j < width; j++) {
            row[j] = tanh(x[i * width + j] + bias[j]);
            square += row[j] * row[j];
        }
        norms[i] = sqrt(square);
        if (i == zero_row) continue;
        for (int32_t j = 0; j < width; j++) normal[i * width + j] = row[j] / norms[i];
        one_output one = {x + i * width, bias, weights + i * width, width};
        lab_slopes(slopes + i * width, x + i * width, width, output_product, &one);
    }
    float *x_on = lab_put(bench, x, size), *again = lab_put(bench, x, size);
    float *activated_on = places(bench, size), *norms_on = places(bench, rows);
    float *bias_on = lab_put(bench, bias, width);
    vlp_tanh_rows on = {
        .rows = rows, .width = width, .output = x_on, .activated = activated_on, .norms = norms_on};
    bench->backend->aggregator->tanh_normalize(bench->compute, &on, bias_on);
    lab_expect_near("tanh", activated, lab_get(bench, activated_on, size), size);
    lab_expect_near("norms", norms, lab_get(bench, norms_on, rows), rows);
    lab_expect_near("normal tanh", normal, lab_get(bench, x_on, size), size);
    check_backward(bench, slopes, weights, &layout, &on);
    if (!bench->backend->bf16) return;
    vlp_bf16 *bf16 = lab_bf16_places(bench, &layout, rows);
    on.output = again;
    on.bf16 = bf16;
    on.layout = layout;
    bench->backend->aggregator->tanh_normalize(bench->compute, &on, bias_on);
    lab_expect_near("normal tanh", normal, lab_get(bench, again, size), size);
    lab_expect_bf16("bf16 normal tanh", normal, lab_get_bf16(bench, bf16, &layout, rows), size);
}

static void test_output(void **state) {
    (void)state;
    for_shapes(check_output, 3);
}

/* ---- Sums of columns ----------------------------------------------------------------------------- */

static void check_bias(lab *bench, int32_t rows, int32_t width) {
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, width);
    int64_t size = (int64_t)rows * width;
    for (int kind = 0; kind < 4; kind++) {
        bool counted = kind & 1, same = kind & 2;
        double *grad = lab_random(bench, size, 1), *sums = lab_zeros(bench, width), *first = NULL;
        int32_t *counts = lab_ids(bench, rows, 0, 2);
        int32_t *counts_on = counted ? lab_put_ids(bench, counts, rows) : NULL;
        float *on[2] = {lab_put(bench, grad, size), lab_put(bench, grad, size)};
        vlp_bf16 *bf16 = bench->backend->bf16 ? lab_bf16_places(bench, &layout, rows) : NULL;
        for (int64_t i = 0; i < size; i++) {
            if (counted && counts[i / width] == 0) grad[i] = 0;
            sums[i % width] += grad[i];
        }
        for (int round = 0; round < 2; round++) {
            float *bias_grad = places(bench, width), *same_grad = same ? places(bench, width) : NULL;
            bench->backend->aggregator->bias_backward(bench->compute, bias_grad, same_grad,
                                                      &(vlp_layer_gradient){.rows = rows,
                                                                            .width = width,
                                                                            .grad = on[round],
                                                                            .bf16 = round ? bf16 : NULL,
                                                                            .counts = counts_on});
            lab_expect("sums of columns", sums, lab_get(bench, bias_grad, width), width, 1e-5, 1);
            lab_expect("what was summed", grad, lab_get(bench, on[round], size), size, 0, 0);
            if (first) lab_expect_same_bits(bench, "sums of columns", first, bias_grad, width);
            first = lab_get(bench, bias_grad, width);
            if (same) lab_expect_same_bits(bench, "the same sums", first, same_grad, width);
        }
        if (bf16) lab_expect_bf16("bf16 gradient", grad, lab_get_bf16(bench, bf16, &layout, rows), size);
    }
}

static void test_bias(void **state) {
    (void)state;
    for_shapes(check_bias, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_bias),
    };
    return cmocka_run_group_tests_name("operations of the head", tests, NULL, NULL);
}
