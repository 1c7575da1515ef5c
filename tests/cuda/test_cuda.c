/* The CUDA backend against the CPU's on shapes that fill a GPU, and what only a GPU has: plans, memory
 * that ends; test_sampler.c beside has its sampler, test_training.c whole steps. The small shapes are
 * those of the other tests, which run on either backend (VLP_TEST_DEVICE=cuda).
 *
 * Without a GPU there is nothing to test: the tests are passed over, unless VLP_TEST_DEVICE asks for
 * one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/distance.h"
#include "lab.h"
#include "learn/trainer.h"
#include "tables.h"

enum { SEED = 70 };

static const vlp_backend *gpu;

/* Both backends, each with a bench; arrays are made on the first and put on both. */
typedef struct both {
    lab cpu, gpu;
} both;

static void both_open(both *b, uint64_t seed) {
    lab_open_on(&b->cpu, &vlp_cpu_backend, 0, seed);
    lab_open_on(&b->gpu, gpu, 0, seed);
}

static void both_clear(both *b) {
    lab_clear(&b->cpu);
    lab_clear(&b->gpu);
}

static void both_close(both *b) {
    lab_close(&b->cpu);
    lab_close(&b->gpu);
}

/* A pointer on either side. */
typedef struct floats {
    float *on[2];
} floats;
typedef struct ids {
    int32_t *on[2];
} ids;

static floats put(both *b, const double *values, int64_t count) {
    return (floats){{lab_put(&b->cpu, values, count), lab_put(&b->gpu, values, count)}};
}

static ids put_ids(both *b, const int32_t *values, int64_t count) {
    return (ids){{lab_put_ids(&b->cpu, values, count), lab_put_ids(&b->gpu, values, count)}};
}

static floats random_floats(both *b, int64_t count, double range) {
    return put(b, lab_random(&b->cpu, count, range), count);
}

static ids random_ids(both *b, int64_t count, int32_t low, int32_t high) {
    return put_ids(b, lab_ids(&b->cpu, count, low, high), count);
}

static lab *side(both *b, int i) {
    return i == 0 ? &b->cpu : &b->gpu;
}

/* The length of the difference over the length of the expected: what sums of many numbers are held to.
 */
static void expect_close(both *b, const char *what, floats values, int64_t count, double tolerance) {
    lab_expect_close(what, lab_get(&b->cpu, values.on[0], count), lab_get(&b->gpu, values.on[1], count),
                     count, tolerance);
}

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- Pairs --------------------------------------------------------------------------------------- */

typedef struct pair_shape {
    vlp_model_options model;
    int32_t batch, width, entities;
} pair_shape;

/* Batches that fit shared memory with wide, narrow and narrowest slices, and one that does not. */
static const pair_shape pair_shapes[] = {
    {{VLP_MODEL_ROTATE, 500, 0, 0, 6}, 300, 65, 4001},
    {{VLP_MODEL_ROTATE, 33, 0, 0, 6}, 512, 40, 700},
    {{VLP_MODEL_ROTATE, 37, 0, 0, 9}, 1024, 30, 900},
    {{VLP_MODEL_ROTATE, 64, 0, 0, 9}, 2048, 17, 900},
    {{VLP_MODEL_ROTATE, 21, 0, 0, 9}, 5000, 9, 2000},
    {{VLP_MODEL_ROTATE, 1, 0, 0, 9}, 3, 1100, 30},
    {{VLP_MODEL_TRANSE, 130, 0, 0, 6}, 512, 33, 1500},
    {{VLP_MODEL_TRANSE, 67, 0, 1, 6}, 512, 33, 1500},
    {{VLP_MODEL_TRANSE, 64, 0, 1, 6}, 2100, 9, 300},
    {{VLP_MODEL_DISTMULT, 255, 0, 0, 6}, 777, 20, 500},
    {{VLP_MODEL_COMPLEX, 100, 0, 0, 6}, 1024, 20, 500},
    {{VLP_MODEL_RESCAL, 40, 0, 0, 6}, 200, 20, 300},
    {{VLP_MODEL_TRANSR, 40, 24, 0, 6}, 130, 20, 300},
    {{VLP_MODEL_TRANSR, 33, 35, 1, 6}, 130, 21, 300},
    {{VLP_MODEL_PAIRRE, 37, 0, 0, 6}, 512, 33, 700},
    {{VLP_MODEL_PAIRRE, 500, 0, 0, 6}, 600, 121, 4001}, /* more than a chunk of k */
    {{VLP_MODEL_TRANSH, 35, 0, VLP_NORM_L1, 6}, 60, 20, 300},
    {{VLP_MODEL_TRANSH, 300, 0, VLP_NORM_L2, 6}, 200, 33, 900},
    {{VLP_MODEL_QUATE, 50, 0, 0, 6}, 512, 33, 700},
    {{VLP_MODEL_QUATE, 13, 0, 0, 6}, 777, 20, 500},
};

static void check_pairs(both *b, const pair_shape *shape, vlp_form form) {
    int32_t relations = 5, batch = shape->batch, entities = shape->entities;
    int64_t total = (int64_t)batch * shape->width, q_size = (int64_t)batch * form.query_width;
    int64_t e_size = (int64_t)entities * form.entity_width;
    int64_t r_size = (int64_t)relations * form.relation_width;
    floats q = random_floats(b, q_size, 1), e = random_floats(b, e_size, 1);
    floats r = random_floats(b, r_size, 1), scores = random_floats(b, total, 9);
    floats q_grad = random_floats(b, q_size, 9), e_grad = random_floats(b, e_size, 0.1);
    floats r_grad = random_floats(b, r_size, 0.1), weights = random_floats(b, total, 1);
    ids members = random_ids(b, total, -1, entities - 1),
        ids_on = random_ids(b, batch, 0, relations - 1);
    uint8_t *touched[2];
    for (int i = 0; i < 2; i++) {
        lab *bench = side(b, i);
        touched[i] = lab_put_bytes(bench, lab_ids(bench, entities, 0, 0), (size_t)entities);
        vlp_pairs pairs = {.batch = batch,
                           .width = shape->width,
                           .entities = members.on[i],
                           .table = e.on[i],
                           .table_rows = entities};
        vlp_related_rows queries = {batch, q.on[i], ids_on.on[i], r.on[i], relations};
        vlp_pair_gradients out = {.queries = q_grad.on[i],
                                  .entities = {e_grad.on[i], touched[i], entities, form.entity_width},
                                  .relations = r_grad.on[i]};
        must(bench->backend->pairs->scores(bench->compute, scores.on[i], &form, &queries, &pairs));
        must(bench->backend->pairs->backward(bench->compute, &out, &form, weights.on[i], &queries,
                                             &pairs));
    }
    expect_close(b, "pair scores", scores, total, 2e-6);
    expect_close(b, "pairs: queries", q_grad, q_size, 1e-5);
    expect_close(b, "pairs: entities", e_grad, e_size, 1e-5);
    expect_close(b, "pairs: relations", r_grad, r_size, 1e-5);
    uint8_t *marks[2] = {calloc((size_t)entities, 1), calloc((size_t)entities, 1)};
    for (int i = 0; i < 2; i++) lab_get_bytes(side(b, i), marks[i], touched[i], (size_t)entities);
    assert_memory_equal(marks[0], marks[1], (size_t)entities);
    free(marks[0]);
    free(marks[1]);
}

static void test_pairs(void **state) {
    (void)state;
    if (!gpu) skip();
    both b;
    both_open(&b, SEED);
    for (size_t i = 0; i < sizeof pair_shapes / sizeof *pair_shapes; i++) {
        vlp_form form;
        vlp_model_form(&form, &pair_shapes[i].model);
        check_pairs(&b, &pair_shapes[i], form);
        both_clear(&b);
    }
    both_close(&b);
}

/* ---- Scores, losses, sums ------------------------------------------------------------------------ */

static void check_all_scores(both *b, const pair_shape *shape, vlp_form form) {
    int32_t count = 67, entities = shape->entities;
    floats q = random_floats(b, (int64_t)count * form.query_width, 1);
    floats e = random_floats(b, (int64_t)entities * form.entity_width, 1);
    floats r = random_floats(b, 3 * (int64_t)form.relation_width, 1);
    floats scores = random_floats(b, (int64_t)count * entities, 9);
    ids relations = random_ids(b, count, 0, 2);
    for (int s = 0; s < 2; s++)
        must(side(b, s)->backend->scores->all(side(b, s)->compute, scores.on[s], &form,
                                              &(vlp_related_rows){.count = count,
                                                                  .rows = q.on[s],
                                                                  .relations = relations.on[s],
                                                                  .relation_table = r.on[s],
                                                                  .relation_count = 3},
                                              e.on[s], entities));
    expect_close(b, "all scores", scores, (int64_t)count * entities, 2e-6);
}

static void test_all_scores(void **state) {
    (void)state;
    if (!gpu) skip();
    both b;
    both_open(&b, SEED + 1);
    for (size_t i = 0; i < sizeof pair_shapes / sizeof *pair_shapes; i++) {
        vlp_form form;
        vlp_model_form(&form, &pair_shapes[i].model);
        check_all_scores(&b, &pair_shapes[i], form);
        both_clear(&b);
    }
    both_close(&b);
}

/* Every transform that transforms answers, with every similarity: more than there are models of. */
static void test_transformed_answers(void **state) {
    (void)state;
    if (!gpu) skip();
    static const vlp_transform transforms[] = {
#define ENUMERATOR(NAME, ...) VLP_##NAME,
        VLP_UNIT_TRANSFORMS(ENUMERATOR, )
#undef ENUMERATOR
    };
    static const vlp_similarity similarities[] = {VLP_DOT, VLP_MINUS_L2, VLP_MINUS_MODULUS};
    const pair_shape shape = {.batch = 130, .width = 21, .entities = 300};
    both b;
    both_open(&b, SEED + 8);
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++) {
        vlp_transform_traits traits = vlp_transform_traits_of(transforms[i]);
        for (int s = 0; s < 3 && traits.answers; s++) {
            enum { COLUMNS = 70 };
            vlp_form form = {.transform = transforms[i],
                             .similarity = similarities[s],
                             .entity_width = traits.parts * COLUMNS,
                             .relation_width = traits.relation_parts * COLUMNS,
                             .query_width = traits.parts * COLUMNS,
                             .margin = s > 0 ? 6 : 0};
            check_pairs(&b, &shape, form);
            both_clear(&b);
            check_all_scores(&b, &shape, form);
            both_clear(&b);
        }
    }
    both_close(&b);
}

static void test_softmax(void **state) {
    (void)state;
    if (!gpu) skip();
    static const int64_t shapes[][2] = {{7, 40943}, {64, 14541}, {130, 474}, {3, 70001}};
    both b;
    both_open(&b, SEED + 2);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t rows = shapes[i][0], columns = shapes[i][1], stride = (columns + 31) / 32 * 32;
        floats logits = random_floats(&b, rows * stride, 1), loss = random_floats(&b, rows, 9);
        floats weights = random_floats(&b, rows, 1), scale = random_floats(&b, columns, 1);
        ids answers = random_ids(&b, rows, 0, (int32_t)columns - 1);
        for (int s = 0; s < 2; s++)
            side(&b, s)->backend->loss->softmax(side(&b, s)->compute, logits.on[s], NULL, loss.on[s],
                                                &(vlp_softmax){.count = rows,
                                                               .columns = columns,
                                                               .stride = stride,
                                                               .answers = answers.on[s],
                                                               .weights = weights.on[s],
                                                               .column_scale = scale.on[s],
                                                               .temperature = 10});
        expect_close(&b, "softmax", loss, rows, 1e-5);
        expect_close(&b, "softmax: logits", logits, rows * stride, 1e-5);
        both_clear(&b);
    }
    both_close(&b);
}

static void test_binary(void **state) {
    (void)state;
    if (!gpu) skip();
    static const int64_t shapes[][2] = {{7, 40943}, {64, 14541}, {130, 474}, {3, 5000}};
    both b;
    both_open(&b, SEED + 20);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t rows = shapes[i][0], columns = shapes[i][1], stride = (columns + 31) / 32 * 32;
        floats logits = random_floats(&b, rows * stride, 8), loss = random_floats(&b, rows, 9);
        floats weights = random_floats(&b, rows, 1);
        /* A row has every 7th column from its number on, but the last row none. */
        int32_t *answers = lab_ids(&b.cpu, rows * columns, 0, 0), used = 0;
        int64_t *begin = (int64_t *)lab_zeros(&b.cpu, rows), *end = (int64_t *)lab_zeros(&b.cpu, rows);
        for (int64_t row = 0; row < rows; row++) {
            begin[row] = used;
            for (int64_t j = row; j < columns && row < rows - 1; j += 7) answers[used++] = (int32_t)j;
            end[row] = used;
        }
        ids answers_on = put_ids(&b, answers, used);
        for (int s = 0; s < 2; s++)
            side(&b, s)->backend->loss->binary(
                side(&b, s)->compute, logits.on[s], NULL, loss.on[s],
                &(vlp_binary){.count = rows,
                              .columns = columns,
                              .stride = stride,
                              .begin = lab_put_bytes(side(&b, s), begin, (size_t)rows * sizeof *begin),
                              .end = lab_put_bytes(side(&b, s), end, (size_t)rows * sizeof *end),
                              .answers = answers_on.on[s],
                              .weights = weights.on[s],
                              .positive = 0.9f,
                              .negative = 0.001f});
        expect_close(&b, "binary", loss, rows, 1e-5);
        expect_close(&b, "binary: logits", logits, rows * stride, 1e-5);
        both_clear(&b);
    }
    both_close(&b);
}

/* The same choice on both. */
static void test_dropout(void **state) {
    (void)state;
    if (!gpu) skip();
    both b;
    both_open(&b, SEED + 21);
    vlp_step_values values = {.step = 3000000};
    for (int32_t width = 1; width < 1000; width = 3 * width + 4) {
        int64_t rows = 700;
        floats in = random_floats(&b, rows * width, 1), out = random_floats(&b, rows * width, 1);
        for (int s = 0; s < 2; s++) {
            lab *bench = side(&b, s);
            assert_false(bench->backend->steps->begin(bench->compute, NULL, &values));
            bench->backend->rows->dropout(
                bench->compute, out.on[s], in.on[s],
                &(vlp_dropout){.rows = rows, .width = width, .probability = 0.3f, .seed = SEED});
        }
        lab_expect_same_bits(&b.gpu, "dropout", lab_get(&b.cpu, out.on[0], rows * width), out.on[1],
                             rows * width);
        both_clear(&b);
    }
    both_close(&b);
}

/* Outside a step products are as exact as fp32 is, inside one they are those of TF32. */
static void test_products(void **state) {
    (void)state;
    if (!gpu) skip();
    both b;
    both_open(&b, SEED + 3);
    vlp_plan *plan = gpu->steps->plan_new(b.gpu.compute);
    vlp_step_values values = {0};
    int64_t m = 96, n = 1501, k = 1000, ldc = 1504;
    for (int kind = 0; kind < 8; kind++) {
        bool left = kind & 1, right = kind & 2, inside = kind & 4;
        floats a = random_floats(&b, m * k, 1), c = random_floats(&b, m * ldc, 1);
        floats other = random_floats(&b, n * k, 1);
        if (inside) assert_false(gpu->steps->begin(b.gpu.compute, plan, &values));
        for (int s = 0; s < 2; s++)
            side(&b, s)->backend->blas->product(side(&b, s)->compute, c.on[s],
                                                &(vlp_product){.transpose_a = left,
                                                               .transpose_b = right,
                                                               .m = m,
                                                               .n = n,
                                                               .k = k,
                                                               .alpha = 0.5f,
                                                               .beta = 0.25f,
                                                               .lda = left ? m : k,
                                                               .ldb = right ? k : n,
                                                               .ldc = ldc},
                                                a.on[s], other.on[s]);
        if (inside) {
            assert_int_equal(gpu->steps->end(b.gpu.compute, plan), VLP_OK);
            gpu->steps->plan_free(b.gpu.compute,
                                  plan); /* every step of a plan is the same: another one */
            plan = gpu->steps->plan_new(b.gpu.compute);
        }
        expect_close(&b, inside ? "product in TF32" : "product", c, m * ldc, inside ? 1e-3 : 2e-6);
        both_clear(&b);
    }
    gpu->steps->plan_free(b.gpu.compute, plan);
    both_close(&b);
}

/* Sums of segments of very different lengths, and of many items. */
static void test_scatter(void **state) {
    (void)state;
    if (!gpu) skip();
    static const int32_t shapes[][3] = {
        {512, 40943, 1000}, {1024, 3, 333}, {5000, 11, 64}, {20000, 977, 31}};
    both b;
    both_open(&b, SEED + 4);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int32_t count = shapes[i][0], rows = shapes[i][1], width = shapes[i][2];
        int64_t size = (int64_t)rows * width;
        floats table = random_floats(&b, size, 1), add = random_floats(&b, (int64_t)count * width, 1);
        ids to = random_ids(&b, count, -1, rows - 1);
        for (int s = 0; s < 2; s++)
            assert_int_equal(
                side(&b, s)->backend->rows->scatter_add(
                    side(&b, s)->compute,
                    &(vlp_table_gradient){.rows = table.on[s], .count = rows, .width = width}, add.on[s],
                    NULL, to.on[s], count),
                VLP_OK);
        expect_close(&b, "scatter", table, size, 1e-6);
        both_clear(&b);
    }
    both_close(&b);
}

/* ---- Ranks and the best answers ------------------------------------------------------------------ */

/* Distances that are counted where they are made, at the shapes of an evaluation: the same counts as of
 * those that are written. */
static void check_ranks(both *b, const vlp_model_options *model, int32_t count, int32_t entities) {
    enum { MIXTURES = 27, KNOWN = 50 };
    vlp_form form;
    vlp_model_form(&form, model);
    int64_t cells = (int64_t)count * entities, results = (int64_t)count * MIXTURES;
    vlp_mixture mixtures[MIXTURES] = {{{0, 1}}, {{1, 0}}};
    for (int m = 2; m < MIXTURES; m++) mixtures[m] = (vlp_mixture){{(float)m * 0.01f, 1, 0.5f}};
    int64_t *offsets = calloc((size_t)count + 1, sizeof *offsets);
    int32_t *known = lab_ids(&b->gpu, (int64_t)count * KNOWN, 0, entities / KNOWN - 1);
    for (int32_t i = 0; i < count; i++) offsets[i + 1] = offsets[i] + KNOWN;
    for (int32_t i = 0; i < count * KNOWN; i++) known[i] += i % KNOWN * (entities / KNOWN);
    lab *bench = &b->gpu;
    vlp_ranked ranked = {
        .queries = {.count = count,
                    .rows = lab_put(bench, lab_random(bench, (int64_t)count * form.query_width, 1),
                                    (int64_t)count * form.query_width)},
        .entities = entities,
        .form = &form,
        .entity_table = lab_put(bench, lab_random(bench, (int64_t)entities * form.entity_width, 1),
                                (int64_t)entities * form.entity_width),
        .horizontal = lab_put(bench, lab_zeros(bench, cells), cells),
        .scores = {[VLP_VERTICAL] = lab_put(bench, lab_random(bench, cells, 1), cells)},
        .answers = lab_put_ids(bench, lab_ids(bench, count, 0, entities - 1), count),
        .filter_offset = lab_put_bytes(bench, offsets, ((size_t)count + 1) * sizeof *offsets),
        .filtered = lab_put_ids(bench, known, (int64_t)count * KNOWN),
        .filtered_count = (int64_t)count * KNOWN,
        .mixtures = mixtures,
        .mixture_count = MIXTURES};
    int32_t *counts[2];
    for (int i = 0; i < 2; i++) {
        ranked.keep = i == 1;
        counts[i] = lab_ids(bench, 2 * results + 1, 7, 7);
        int32_t *on = lab_put_ids(bench, counts[i], 2 * results + 1);
        must(gpu->rank->counts(bench->compute, on, on + results, on + 2 * results, &ranked));
        lab_get_bytes(bench, counts[i], on, (size_t)(2 * results + 1) * sizeof *on);
        assert_int_equal(counts[i][2 * results], 0);
    }
    assert_memory_equal(counts[0], counts[1], (size_t)(2 * results) * sizeof(int32_t));
    free(offsets);
}

static void test_ranks(void **state) {
    (void)state;
    if (!gpu) skip();
    static const vlp_model_options models[] = {{VLP_MODEL_ROTATE, 1000, 0, 0, 9},
                                               {VLP_MODEL_ROTATE, 333, 0, 0, 9},
                                               {VLP_MODEL_TRANSE, 500, 0, VLP_NORM_L1, 9},
                                               {VLP_MODEL_TRANSE, 251, 0, VLP_NORM_L2, 9}};
    both b;
    both_open(&b, SEED + 6);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        check_ranks(&b, &models[i], 512 - 3 * (int32_t)i, 14541 + (int32_t)i);
        both_clear(&b);
    }
    both_close(&b);
}

/* Both backends choose the same of the same scores, which are sums without layout. */
static void check_best(both *b, int32_t rows, int32_t entities, int32_t wanted, int32_t range,
                       unsigned components) {
    int64_t cells = (int64_t)rows * entities;
    double *values = lab_zeros(&b->cpu, cells);
    floats scores[VLP_MAX_COMPONENTS];
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++) {
        for (int64_t i = 0; i < cells; i++) values[i] = lab_between(&b->cpu, -range, range);
        if (components >> c & 1) scores[c] = put(b, values, cells);
    }
    for (int32_t e = 0; e < entities; e++) values[e] = 0.25 * (e % 5);
    floats scale = put(b, values, entities);
    int32_t *known = lab_ids(&b->cpu, entities, 0, 0);
    for (int32_t e = 0; e < entities; e++) known[e] = e;
    vlp_excluded *excluded = calloc((size_t)rows, sizeof *excluded);
    assert_non_null(excluded);
    for (int32_t i = 0; i < rows; i++) excluded[i] = (vlp_excluded){known + i, i % 9 * 100};
    vlp_selection *selections[2];
    vlp_best best[2];
    for (int s = 0; s < 2; s++) {
        lab *bench = side(b, s);
        must(bench->backend->select->open(bench->compute, &selections[s],
                                          &(vlp_select_options){rows, wanted, entities, components}));
        must(bench->backend->select->start(bench->compute, selections[s], excluded, rows));
        vlp_score_tile tile = {.columns = entities};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
            if (components >> c & 1)
                tile.components[c] =
                    (vlp_component_scores){scores[c].on[s], entities, c % 2 ? scale.on[s] : NULL};
        must(bench->backend->select->offer(bench->compute, selections[s], &tile,
                                           &(vlp_mixture){{0.5f, 1, 0.25f, 2}}));
        must(bench->backend->select->finish(bench->compute, &best[s], selections[s]));
    }
    for (int32_t i = 0; i < rows; i++) {
        assert_int_equal(best[0].counts[i], best[1].counts[i]);
        assert_memory_equal(best[0].items + i * best[0].stride, best[1].items + i * best[1].stride,
                            (size_t)best[0].counts[i] * sizeof(vlp_top));
    }
    for (int s = 0; s < 2; s++) side(b, s)->backend->select->close(side(b, s)->compute, selections[s]);
    free(excluded);
}

static void test_best(void **state) {
    (void)state;
    if (!gpu) skip();
    both b;
    both_open(&b, SEED + 7);
    static const int32_t shapes[][4] = {{512, 14541, 10, 1 << 19}, {512, 14541, 10, 3},
                                        {512, 14541, 1000, 100},   {300, 14541, 3000, 100},
                                        {64, 40943, 40943, 1000},  {7, 100001, 10, 1 << 19}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (unsigned components = 1; components < 16; components = 2 * components + 1) {
            check_best(&b, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], components);
            both_clear(&b);
        }
    }
    both_close(&b);
}

/* ---- Plans --------------------------------------------------------------------------------------- */

static void scatter_one(lab *bench, float *table, const float *rows, const int32_t *into, int64_t count,
                        int32_t entities) {
    assert_int_equal(
        gpu->rows->scatter_add(bench->compute,
                               &(vlp_table_gradient){.rows = table, .count = entities, .width = 8}, rows,
                               NULL, into, count),
        VLP_OK);
}

/* A plan is told, recorded, and launched from then on; where the working memory it was recorded over
 * had to grow in between, it is told again. */
static void test_plans(void **state) {
    (void)state;
    if (!gpu) skip();
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED + 6);
    enum { COUNT = 50, LARGE = 70000, ENTITIES = 30, WIDTH = 8, STEPS = 8 };
    float *table = lab_put(&bench, lab_zeros(&bench, ENTITIES * WIDTH), ENTITIES * WIDTH);
    double *values = lab_random(&bench, LARGE * WIDTH, 1), *sums = lab_zeros(&bench, ENTITIES * WIDTH);
    int32_t *into = lab_ids(&bench, LARGE, 0, ENTITIES - 1);
    const float *rows = lab_put(&bench, values, LARGE * WIDTH);
    const int32_t *into_on = lab_put_ids(&bench, into, LARGE);
    float *other = lab_put(&bench, sums, ENTITIES * WIDTH);
    vlp_plan *plan = gpu->steps->plan_new(bench.compute);
    for (int step = 0; step < STEPS; step++) {
        vlp_step_values now = {.step = step};
        if (step == STEPS / 2) scatter_one(&bench, other, rows, into_on, LARGE, ENTITIES);
        bool launched = gpu->steps->begin(bench.compute, plan, &now);
        assert_int_equal(launched, step % (STEPS / 2) >= 2);
        if (launched) continue;
        scatter_one(&bench, table, rows, into_on, COUNT, ENTITIES);
        must(gpu->steps->end(bench.compute, plan));
    }
    for (int i = 0; i < COUNT * WIDTH; i++)
        sums[into[i / WIDTH] * WIDTH + i % WIDTH] += STEPS * values[i];
    lab_expect_near("a plan's sums", sums, lab_get(&bench, table, ENTITIES * WIDTH), ENTITIES * WIDTH);
    gpu->steps->plan_free(bench.compute, plan);
    lab_close(&bench);
}

/* ---- The end of the memory ----------------------------------------------------------------------- */

static void test_memory_ends(void **state) {
    (void)state;
    if (!gpu) skip();
    vlp_compute *compute = NULL;
    vlp_model *model = NULL;
    must(gpu->open(&compute, 0));
    vlp_model_options options = {VLP_MODEL_ROTATE, 60000, 0, 0, 6};
    assert_int_equal(
        vlp_model_new(&model, gpu, compute,
                      &(vlp_model_shape){options, 2000000000, 10, components_of(false), {0}}, true),
        VLP_ERROR_MEMORY);
    assert_non_null(strstr(vlp_error_message(), "would fit"));
    assert_non_null(strstr(vlp_error_message(), "device cpu"));
    assert_null(gpu->memory->allocate(compute, (size_t)1 << 50));
    /* And the backend goes on. */
    float *little = gpu->memory->allocate(compute, 64), back = 1;
    assert_non_null(little);
    must(gpu->memory->download(compute, &back, little, sizeof back));
    assert_true(back == 0);
    gpu->memory->release(compute, little);
    gpu->close(compute);
}

int main(void) {
    gpu = lab_gpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),      cmocka_unit_test(test_transformed_answers),
        cmocka_unit_test(test_all_scores), cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_products),   cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_ranks),      cmocka_unit_test(test_best),
        cmocka_unit_test(test_plans),      cmocka_unit_test(test_memory_ends),
        cmocka_unit_test(test_binary),     cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
