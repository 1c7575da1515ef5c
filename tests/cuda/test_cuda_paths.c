/* The path model on the GPU at shapes that the other tests (test_paths, test_path_steps) do not have:
 * hubs of several pieces, groups of keys that are full and that are not, every version of its kernels by
 * dimension, in fp32 and in bf16; against the CPU, and against itself.
 *
 * Without a GPU the tests are passed over, unless VLP_TEST_DEVICE asks for one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "path_lab.h"

enum { SEED = 95, STEP = 3 };

static const vlp_backend *gpu;

/* The same world on both backends. */
typedef struct both {
    lab cpu, gpu;
    path_case on_cpu, on_gpu;
} both;

/* A graph with hubs: some entities have hundreds of edges, several of them by one relation. */
static oracle_graph hub_graph(oracle_random *random, int32_t entities, int32_t relations) {
    oracle_graph graph = {.entities = entities, .relations = relations};
    for (int32_t v = 3; v + 5 < entities; v++) { /* the last five are isolated */
        oracle_graph_add(&graph, 0, oracle_below(random, relations), v);
        if (v % 2) oracle_graph_add(&graph, v, 0, 1);
        if (v % 5 == 0) oracle_graph_add(&graph, 2, 1, v);
        oracle_graph_add(&graph, v, oracle_below(random, relations), oracle_below(random, entities - 5));
    }
    oracle_graph_add(&graph, 0, 0, 0);
    return graph;
}

static void both_open(both *b, vlp_path_form form, int32_t entities, uint64_t stream) {
    lab *labs[2] = {&b->cpu, &b->gpu};
    path_case *cases[2] = {&b->on_cpu, &b->on_gpu};
    for (int i = 0; i < 2; i++) {
        lab_open_on(labs[i], i == 0 ? &vlp_cpu_backend : gpu, 2, SEED);
        labs[i]->random.step = stream;
        oracle_graph graph = hub_graph(&labs[i]->random, entities, form.relations / 2);
        path_case_open(cases[i], labs[i], &graph, form);
    }
}

static void both_close(both *b) {
    path_case_close(&b->on_cpu);
    path_case_close(&b->on_gpu);
    lab_close(&b->cpu);
    lab_close(&b->gpu);
}

/* The gradients of every table: the length of the difference over that of the table's. */
static void expect_gradients(both *b, double tolerance) {
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        int64_t size = path_table_size(&b->on_cpu.world.form, (vlp_path_table)table);
        lab_expect_close(vlp_path_table_name((vlp_path_table)table),
                         lab_get(&b->cpu, b->on_cpu.grads.table[table], size),
                         lab_get(&b->gpu, b->on_gpu.grads.table[table], size), size, tolerance);
    }
}

typedef struct shape {
    vlp_path_form form;
    int32_t entities, keys;
    vlp_path_options options;
} shape;

static const shape shapes[] = {
    {{.layers = 3, .dim = 8, .relations = 6}, 700, 1, {.far = 1}},
    {{.layers = 2, .dim = 16, .relations = 6, .reached_only = true}, 700, 33, {.far = 1}},
    {{.layers = 3, .dim = 24, .relations = 4}, 300, 8, {.far = 0.5f, .near = 1, .drop = 0.1f}},
    {{.layers = 3, .dim = 32, .relations = 6}, 900, 32, {.hiding = VLP_PATH_HIDE_PAIR, .far = 1}},
    {{.layers = 4, .dim = 32, .relations = 6, .reached_only = true}, 900, 40, {.far = 1}},
    {{.layers = 2, .dim = 32, .relations = 4, .reached_only = true, .edge_limit = 500},
     600,
     31,
     {.far = 1}},
    {{.layers = 3, .dim = 32, .relations = 6, .reached_only = true},
     900,
     32,
     {.far = 0.25f, .near = 1, .prune = 1e-3f, .drop = 0.2f}},
    {{.layers = 3, .dim = 32, .relations = 6}, 900, 32, {.far = 1, .prune = 5e-3f}},
    {{.layers = 2, .dim = 32, .relations = 6}, 600, 12, {.far = 1, .prune = 5e-3f, .drop = 0.2f}},
    {{.layers = 1, .dim = 16, .relations = 6}, 600, 40, {.far = 1, .prune = 5e-3f}},
    {{.layers = 3, .dim = 64, .relations = 6}, 500, 9, {.far = 1}},
    {{.layers = 2, .dim = 128, .relations = 4, .reached_only = true}, 400, 5, {.far = 1}},
};

/* Tolerances: fp32 sums in another order, where ties for an extreme fall alike; bf16 factors. */
static void check_shape(const shape *one, bool bf16, double loss_tolerance, double tolerance) {
    both b;
    vlp_path_options options = one->options;
    both_open(&b, one->form, one->entities, (uint64_t)one->keys);
    path_case_batch(&b.on_cpu, &b.cpu, one->keys, SEED, STEP);
    path_case_batch(&b.on_gpu, &b.gpu, one->keys, SEED, STEP);
    double expected = path_case_step(&b.on_cpu, &b.cpu, &options, STEP);
    b.on_gpu.world.form.bf16 = bf16;
    double got = path_case_step(&b.on_gpu, &b.gpu, &options, STEP);
    lab_expect("loss", &expected, &got, 1, loss_tolerance, 0.1);
    expect_gradients(&b, tolerance);
    both_close(&b);
}

static void test_fp32(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(shapes + i, false, 1e-5, 2e-3);
}

static void test_bf16(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(shapes + i, true, 2e-2, 0.25);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

static double *scores_of(path_case *one, lab *bench, int32_t count, const int32_t *heads,
                         const int32_t *relations, bool bf16) {
    int64_t size = (int64_t)count * one->world.entities;
    one->world.form.bf16 = bf16;
    float *scores = lab_put(bench, lab_random(bench, size, 9), size);
    vlp_path_queries queries = {.count = count,
                                .heads = lab_put_ids(bench, heads, count),
                                .relations = lab_put_ids(bench, relations, count)};
    if (bench->backend->paths->scores(bench->compute, scores, &one->model, &queries) != VLP_OK)
        fail_msg("%s", vlp_error_message());
    return lab_get(bench, scores, size);
}

static void test_scores(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        both b;
        both_open(&b, shapes[i].form, shapes[i].entities, i);
        int32_t count = 70, entities = b.on_cpu.world.entities; /* isolated heads among them */
        int32_t *heads = lab_ids(&b.cpu, count, 0, entities - 1);
        int32_t *relations = lab_ids(&b.cpu, count, 0, shapes[i].form.relations - 1);
        heads[0] = heads[40] = entities - 1;
        int64_t size = (int64_t)count * entities;
        double *expected = scores_of(&b.on_cpu, &b.cpu, count, heads, relations, false);
        lab_expect("scores", expected, scores_of(&b.on_gpu, &b.gpu, count, heads, relations, false),
                   size, 2e-4, 0.2);
        lab_expect_close("scores in bf16", expected,
                         scores_of(&b.on_gpu, &b.gpu, count, heads, relations, true), size, 2e-2);
        both_close(&b);
    }
}

/* ---- The same bits ------------------------------------------------------------------------------- */

/* Repeated, and in a recorded step. */
static void test_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        both b;
        vlp_path_options options = shapes[i].options;
        both_open(&b, shapes[i].form, shapes[i].entities, i);
        b.on_gpu.world.form.bf16 = true;
        path_case_batch(&b.on_gpu, &b.gpu, shapes[i].keys, SEED, STEP);
        int64_t count;
        double loss = path_case_step(&b.on_gpu, &b.gpu, &options, STEP);
        double *first = path_case_gradients(&b.on_gpu, &b.gpu, &count);
        double *on = lab_put_bytes(&b.gpu, &(double){-1}, sizeof *on);
        vlp_plan *plan = gpu->steps->plan_new(b.gpu.compute);
        for (int repeat = 0; repeat < 5; repeat++) {
            for (int table = 0; table < VLP_PATH_TABLES; table++)
                gpu->memory->fill_bytes(b.gpu.compute, b.on_gpu.grads.table[table], 0x7f,
                                        (size_t)path_table_size(&shapes[i].form, (vlp_path_table)table) *
                                            sizeof(float));
            if (!gpu->steps->begin(b.gpu.compute, plan, &(vlp_step_values){.step = STEP})) {
                assert_int_equal(gpu->paths->step(b.gpu.compute, on, &b.on_gpu.grads, &b.on_gpu.model,
                                                  &b.on_gpu.batch, &options),
                                 VLP_OK);
                assert_int_equal(gpu->steps->end(b.gpu.compute, plan), VLP_OK);
            }
            double got = lab_get_double(&b.gpu, on),
                   *now = path_case_gradients(&b.on_gpu, &b.gpu, &count);
            assert_memory_equal(&loss, &got, sizeof got);
            assert_memory_equal(first, now, (size_t)count * sizeof *now);
        }
        gpu->steps->plan_free(b.gpu.compute, plan);
        both_close(&b);
    }
}

int main(void) {
    gpu = lab_gpu();
    if (!gpu) return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
