/* A step of the path model against the oracle: the loss, the gradients of every table by finite
 * differences, what is hidden and dropped, sampled candidates, pruned gradients; and that neither
 * repetition nor the number of threads changes a bit. In every version of the CPU's loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/paths_kernels.h"
#include "path_lab.h"

enum { SEED = 91, ROUNDS = 40, STEP = 5 };

static void open_version(lab *bench, int32_t threads, const path_kernels *version, uint64_t stream) {
    const vlp_backend *backend = lab_backend();
    lab_open_on(bench, backend, threads, SEED);
    bench->random.step = stream;
    if (backend == &vlp_cpu_backend) assert_int_equal(cpu_paths_use(bench->compute, version), VLP_OK);
}

typedef void (*check)(lab *bench);

/* With every version of the loops of the CPU; once on another backend. */
static void for_versions(check one, uint64_t stream) {
    if (!lab_backend()->paths) skip();
    for (const path_kernels *const *version = path_kernel_versions; *version; version++) {
        if (!(*version)->runs()) continue;
        lab bench;
        open_version(&bench, 2, *version, stream);
        one(&bench);
        lab_close(&bench);
        if (lab_backend() != &vlp_cpu_backend) break;
    }
}

/* A graph that has keys. */
static void random_case(path_case *one, lab *bench, bool reached_only) {
    oracle_graph graph;
    for (;;) {
        oracle_graph_small(&graph, &bench->random);
        if (graph.count > 0) break;
        oracle_graph_free(&graph);
    }
    path_case_open(one, bench, &graph, path_case_form(bench, &graph, reached_only));
}

static vlp_path_options random_options(lab *bench) {
    static const float drops[] = {0, 0, 0.25f}, shares[] = {1, 1, 0.5f};
    return (vlp_path_options){.seed = SEED,
                              .hiding = (vlp_path_hiding)lab_between(bench, 0, 1),
                              .drop = drops[lab_between(bench, 0, 2)],
                              .far = shares[lab_between(bench, 0, 2)],
                              .near = lab_between(bench, 0, 3)};
}

/* ---- The loss ------------------------------------------------------------------------------------ */

static void check_loss(lab *bench) {
    int64_t caught[PATH_MISTAKES] = {0};
    for (int round = 0; round < 4 * ROUNDS; round++) {
        path_case one;
        random_case(&one, bench, round % 2 == 0);
        vlp_path_options options = random_options(bench);
        path_case_batch(&one, bench, lab_between(bench, 1, 5), SEED, STEP);
        double got = path_case_step(&one, bench, &options, STEP);
        double expected = path_oracle_loss(&one.world, one.keys, one.batch.count, &options);
        lab_expect("loss", &expected, &got, 1, 1e-4, 0.1);
        for (int mistake = 1; mistake < PATH_MISTAKES; mistake++) {
            one.world.mistake = (path_mistake)mistake;
            double wrong = path_oracle_loss(&one.world, one.keys, one.batch.count, &options);
            caught[mistake] += fabs(wrong - got) > 1e-2 * (fabs(expected) + 0.1);
        }
        path_case_close(&one);
        lab_clear(bench);
    }
    /* A backend that made one of these mistakes would have failed above. */
    for (int mistake = 1; mistake < PATH_MISTAKES; mistake++) assert_true(caught[mistake] > ROUNDS / 4);
}

static void test_loss(void **state) {
    (void)state;
    for_versions(check_loss, 1);
}

/* The mean over a hundred keys of one graph: several per group of gradients, and several of a relation.
 */
static void check_batch(lab *bench) {
    for (int round = 0; round < 4; round++) {
        path_case one;
        oracle_graph graph;
        oracle_graph_make(&graph, ORACLE_RANDOM, 25, 3, 60, &bench->random);
        vlp_path_form form = path_case_form(bench, &graph, round % 2 == 0);
        form.edge_limit = form.reached_only ? 40 : 0;
        path_case_open(&one, bench, &graph, form);
        vlp_path_options options = random_options(bench);
        path_case_batch(&one, bench, PATH_LAB_KEYS, SEED, STEP);
        double got = path_case_step(&one, bench, &options, STEP);
        double expected = path_oracle_loss(&one.world, one.keys, one.batch.count, &options);
        lab_expect("loss of a batch", &expected, &got, 1, 1e-4, 0.1);
        path_case_close(&one);
        lab_clear(bench);
    }
}

static void test_batch(void **state) {
    (void)state;
    for_versions(check_batch, 2);
}

/* ---- Gradients ----------------------------------------------------------------------------------- */

typedef struct step_context {
    const path_case *one;
    const vlp_path_options *options;
} step_context;

static double loss_of(const void *context) {
    const step_context *at = context;
    return path_oracle_loss(&at->one->world, at->one->keys, at->one->batch.count, at->options);
}

/* The slope of the loss along a direction in a table, left and right: they differ at a kink. */
static bool slope_along(double *out, const step_context *at, vlp_path_table table,
                        const double *direction) {
    const double step = 1e-6;
    double *values = at->one->world.table[table], losses[3];
    int64_t size = path_table_size(&at->one->world.form, table);
    for (int side = -1; side <= 1; side++) {
        for (int64_t i = 0; i < size; i++) values[i] += side * step * direction[i];
        losses[side + 1] = loss_of(at);
        for (int64_t i = 0; i < size; i++) values[i] -= side * step * direction[i];
    }
    double left = (losses[1] - losses[0]) / step, right = (losses[2] - losses[1]) / step;
    *out = (left + right) / 2;
    return fabs(left - right) < 1e-3 * (fabs(left) + fabs(right)) + 1e-5;
}

/* Of a table: numbers drawn at random, one at a time, and random directions. */
static void expect_table(lab *bench, const step_context *at, vlp_path_table table, int64_t counts[2]) {
    int64_t size = path_table_size(&at->one->world.form, table);
    const double *grad = lab_get(bench, at->one->grads.table[table], size);
    double norm = 0;
    for (int64_t i = 0; i < size; i++) norm += grad[i] * grad[i];
    norm = sqrt(norm);
    for (int round = 0; round < 8; round++) {
        double *direction = lab_zeros(bench, size), expected, got = 0, length = 0;
        if (round < 6) direction[lab_between(bench, 0, (int32_t)size - 1)] = 1;
        if (round >= 6) direction = lab_random(bench, size, 1);
        for (int64_t i = 0; i < size; i++) length += direction[i] * direction[i];
        for (int64_t i = 0; i < size; i++) {
            direction[i] /= sqrt(length);
            got += direction[i] * grad[i];
        }
        counts[1]++;
        if (!slope_along(&expected, at, table, direction)) continue;
        counts[0]++;
        if (fabs(got - expected) > 1e-3 * (fabs(expected) + norm) + 1e-5)
            fail_msg("%s: slope %g, expected %g", vlp_path_table_name(table), got, expected);
    }
}

static void check_gradients(lab *bench) {
    int64_t counts[2] = {0}; /* smooth, all */
    for (int round = 0; round < ROUNDS / 2; round++) {
        path_case one;
        random_case(&one, bench, round % 2 == 0);
        vlp_path_options options = random_options(bench);
        path_case_batch(&one, bench, lab_between(bench, 1, 3), SEED, STEP);
        path_case_step(&one, bench, &options, STEP);
        step_context at = {&one, &options};
        for (int table = 0; table < VLP_PATH_TABLES; table++)
            expect_table(bench, &at, (vlp_path_table)table, counts);
        path_case_close(&one);
        lab_clear(bench);
    }
    assert_true((double)counts[0] > 0.8 * (double)counts[1]);
}

static void test_gradients(void **state) {
    (void)state;
    for_versions(check_gradients, 3);
}

/* ---- What is hidden ------------------------------------------------------------------------------ */

/* h and t are joined by one triple alone, its answer is hidden: then h reaches nothing, and every
 * relation's weights, which only messages use, receive no gradient. The query is (h, r, ?) of the triple
 * and of its inverse; h is a loop once. */
static void check_hidden(lab *bench) {
    static const vlp_triple triples[] = {{0, 0, 1}, {0, 0, 0}, {2, 1, 3}};
    for (int i = 0; i < 2; i++)
        for (int inverse = 0; inverse < 2; inverse++)
            for (int hiding = 0; hiding < 2; hiding++) {
                oracle_graph graph = {.entities = 4, .relations = 2};
                oracle_graph_add(&graph, triples[i].head, triples[i].relation, triples[i].tail);
                oracle_graph_add(&graph, triples[2].head, triples[2].relation, triples[2].tail);
                path_case one;
                path_case_open(&one, bench, &graph, path_case_form(bench, &graph, true));
                do path_case_batch(&one, bench, 1, SEED, STEP);
                while (one.keys[0].relation != (inverse ? 2 : 0));
                vlp_path_options options = {.hiding = (vlp_path_hiding)hiding, .far = 1};
                path_case_step(&one, bench, &options, STEP);
                int64_t size = path_table_size(&one.world.form, VLP_PATH_RELATION_BIAS);
                double *grad = lab_get(bench, one.grads.table[VLP_PATH_RELATION_BIAS], size);
                for (int64_t j = 0; j < size; j++) assert_true(grad[j] == 0);
                path_case_close(&one);
                lab_clear(bench);
            }
}

static void test_hidden(void **state) {
    (void)state;
    for_versions(check_hidden, 4);
}

/* ---- Sampling ------------------------------------------------------------------------------------ */

/* The mean gradient over many seeds is near that without sampling; another share would not be. */
static void expect_mean(lab *bench, vlp_path_options options, double tolerance, int seeds) {
    path_case one;
    oracle_graph graph;
    oracle_graph_make(&graph, ORACLE_RANDOM, 120, 2, 170, &bench->random);
    vlp_path_form form = {.layers = 3, .dim = 8, .relations = 4, .reached_only = true};
    path_case_open(&one, bench, &graph, form);
    path_case_batch(&one, bench, 3, SEED, STEP);
    vlp_path_options exact = {.far = 1};
    int64_t size;
    double exact_loss = path_case_step(&one, bench, &exact, STEP), mean_loss = 0;
    double *expected = path_case_gradients(&one, bench, &size), *mean = lab_zeros(bench, size);
    double *first = lab_zeros(bench, size), norm = 0, spread = 0;
    for (int i = 0; i < seeds; i++) {
        int hosts = bench->hosts, devices = bench->devices;
        options.seed = (uint64_t)(SEED + i);
        mean_loss += path_case_step(&one, bench, &options, STEP) / seeds;
        double *grads = path_case_gradients(&one, bench, &size);
        for (int64_t j = 0; j < size; j++) mean[j] += grads[j] / seeds;
        if (i == 0) memcpy(first, grads, (size_t)size * sizeof *first);
        while (bench->hosts > hosts) free(bench->host[--bench->hosts]);
        while (bench->devices > devices)
            bench->backend->memory->release(bench->compute, bench->device[--bench->devices]);
    }
    for (int64_t j = 0; j < size; j++) {
        norm += expected[j] * expected[j];
        spread += (first[j] - expected[j]) * (first[j] - expected[j]);
    }
    assert_true(sqrt(spread / norm) > 3 * tolerance); /* one sample is not near */
    lab_expect_close("mean gradient", expected, mean, size, tolerance);
    lab_expect("mean loss", &exact_loss, &mean_loss, 1, tolerance, 0);
    path_case_close(&one);
    lab_clear(bench);
}

static void check_sampling(lab *bench) {
    expect_mean(bench, (vlp_path_options){.far = 0.125f, .near = 0}, 0.015, 400);
}

static void check_pruning(lab *bench) {
    expect_mean(bench, (vlp_path_options){.far = 1, .prune = 0.2f}, 0.03, 400);
}

static void test_sampling(void **state) {
    (void)state;
    for_versions(check_sampling, 5);
}

static void test_pruning(void **state) {
    (void)state;
    for_versions(check_pruning, 6);
}

/* ---- The same bits ------------------------------------------------------------------------------- */

/* Repeated, and with 1 to 5 threads. */
static void expect_same(const path_kernels *version, bool reached_only) {
    float *first[VLP_PATH_TABLES] = {0};
    double loss = 0;
    for (int32_t threads = 1; threads <= 5; threads++) {
        lab bench;
        open_version(&bench, threads, version, 7);
        path_case one;
        oracle_graph graph;
        oracle_graph_make(&graph, ORACLE_TWO_HUBS, 90, 3, -1, &bench.random);
        vlp_path_form form = {
            .layers = 3, .dim = 24, .relations = 6, .reached_only = reached_only, .bf16 = true};
        path_case_open(&one, &bench, &graph, form);
        path_case_batch(&one, &bench, 40, SEED, STEP);
        vlp_path_options options = {.seed = SEED, .drop = 0.1f, .far = 0.5f, .near = 1, .prune = 1e-2f};
        for (int repeat = 0; repeat < 2; repeat++) {
            double got = path_case_step(&one, &bench, &options, STEP);
            if (!first[0]) loss = got;
            assert_true(memcmp(&loss, &got, sizeof got) == 0);
            for (int table = 0; table < VLP_PATH_TABLES; table++) {
                size_t size = (size_t)path_table_size(&form, (vlp_path_table)table) * sizeof(float);
                float *bits = malloc(size);
                lab_get_bytes(&bench, bits, one.grads.table[table], size);
                if (first[table])
                    assert_memory_equal(first[table], bits, size);
                else
                    first[table] = bits;
                if (first[table] != bits) free(bits);
            }
        }
        path_case_close(&one);
        lab_close(&bench);
    }
    for (int table = 0; table < VLP_PATH_TABLES; table++) free(first[table]);
}

static void test_same(void **state) {
    (void)state;
    if (!lab_backend()->paths) skip();
    for (const path_kernels *const *version = path_kernel_versions; *version; version++) {
        if (!(*version)->runs()) continue;
        expect_same(*version, true);
        expect_same(*version, false);
        if (lab_backend() != &vlp_cpu_backend) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss),   cmocka_unit_test(test_batch),    cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_hidden), cmocka_unit_test(test_sampling), cmocka_unit_test(test_pruning),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
