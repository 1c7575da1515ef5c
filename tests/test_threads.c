/* Several threads of a process that compute at once, each with a backend of its own: the same bits as
 * alone. And products that are cut into pieces, against sums in double. */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "compute/backend.h"
#include "oracle.h"
#include "support.h"

enum { CALLERS = 8 };

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- Products in pieces -------------------------------------------------------------------------- */

typedef struct shape {
    bool transpose_a, transpose_b;
    int32_t m, n, k;
    float alpha, beta;
} shape;

/* By columns and by rows, in few and in many pieces, with sums that are short, just over the kernels'
 * block and several blocks long, and with rests that are no multiple of anything. */
static const shape shapes[] = {
    {false, true, 256, 135, 200, 1, 0},   {false, false, 256, 200, 135, 1, 1},
    {true, false, 135, 200, 256, 0.5, 1}, {true, true, 131, 203, 401, 2, 0},
    {false, true, 67, 1009, 449, 1, 0.5}, {true, false, 1009, 67, 897, 1, 0},
    {false, false, 300, 300, 1500, 1, 1}, {false, true, 3, 5, 7, 1, 0},
    {true, true, 1, 2000, 700, 1, 1},     {false, false, 40, 24, 0, 1, 0.5},
    {false, true, 253, 2101, 35, 1, 0},   {true, false, 253, 2101, 33, 0.5, 2}};
enum { SHAPES = sizeof shapes / sizeof *shapes, PADDING = 3 };

/* Matrices of a shape; rows of `c` are PADDING longer than its columns. */
typedef struct matrices {
    float *a, *b, *before, *c;
    int64_t lda, ldb, ldc;
    size_t size; /* of c, in bytes */
} matrices;

static float *random_floats(int64_t count, uint32_t stream) {
    float *values = malloc((size_t)(count + 4) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i += 4) {
        vlp_random4 bits = vlp_random(stream, VLP_STREAM_TEST, (uint64_t)i, 0);
        for (int j = 0; j < 4; j++) values[i + j] = vlp_random_unit(bits.v[j]) - 0.5f;
    }
    return values;
}

static matrices matrices_new(const shape *s) {
    matrices out = {.lda = s->transpose_a ? s->m : s->k, .ldb = s->transpose_b ? s->k : s->n};
    if (out.lda == 0) out.lda = 1;
    out.ldc = s->n + PADDING;
    out.size = (size_t)(s->m * out.ldc) * sizeof(float);
    out.a = random_floats((int64_t)s->m * s->k, 1);
    out.b = random_floats((int64_t)s->n * s->k, 2);
    out.before = random_floats(s->m * out.ldc, 3);
    out.c = malloc(out.size);
    assert_non_null(out.c);
    return out;
}

static void matrices_free(matrices *these) {
    free(these->a);
    free(these->b);
    free(these->before);
    free(these->c);
}

static void multiply_with(vlp_compute *compute, const shape *s, matrices *these, bool rounded) {
    memcpy(these->c, these->before, these->size);
    vlp_cpu_backend.blas->product(compute, these->c,
                                  &(vlp_product){.transpose_a = s->transpose_a,
                                                 .transpose_b = s->transpose_b,
                                                 .m = s->m,
                                                 .n = s->n,
                                                 .k = s->k,
                                                 .alpha = s->alpha,
                                                 .beta = s->beta,
                                                 .lda = these->lda,
                                                 .ldb = these->ldb,
                                                 .ldc = these->ldc,
                                                 .rounded = rounded},
                                  these->a, these->b);
}

static void multiply(vlp_compute *compute, const shape *s, matrices *these) {
    multiply_with(compute, s, these, false);
}

static void expect_product(const shape *s, const matrices *these) {
    for (int32_t i = 0; i < s->m; i++)
        for (int32_t j = 0; j < these->ldc; j++) {
            float got = these->c[i * these->ldc + j], before = these->before[i * these->ldc + j];
            if (j >= s->n) { /* between the rows */
                assert_memory_equal(&got, &before, sizeof got);
                continue;
            }
            double sum = 0;
            for (int32_t k = 0; k < s->k; k++)
                sum += (double)these->a[s->transpose_a ? k * these->lda + i : i * these->lda + k] *
                       (double)these->b[s->transpose_b ? j * these->ldb + k : k * these->ldb + j];
            double expected = (double)s->alpha * sum + (double)s->beta * (double)before;
            if (!(fabs((double)got - expected) <= 1e-6 * (20 + sqrt((double)s->k))))
                fail_msg("%d x %d x %d at %d, %d: %g, not %g", s->m, s->n, s->k, i, j, (double)got,
                         expected);
        }
}

static void products_in_pieces(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 7; threads += 2) {
        vlp_compute *compute;
        must(vlp_cpu_backend.open(&compute, threads));
        int before = omp_get_max_threads();
        for (int i = 0; i < SHAPES; i++) {
            matrices these = matrices_new(&shapes[i]);
            multiply(compute, &shapes[i], &these);
            expect_product(&shapes[i], &these);
            matrices_free(&these);
        }
        /* What the caller told OpenMP stays. */
        assert_int_equal(omp_get_max_threads(), before);
        vlp_cpu_backend.close(compute);
    }
}

/* ---- Rounded factors ----------------------------------------------------------------------------- */

/* To the nearest bf16, ties to even. */
static void round_to_bf16(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

/* The product of rounded factors against sums in double; and the same bits where the product rounds
 * them, on any number of threads. */
static void rounded_products(void **state) {
    (void)state;
    bool rounds = vlp_cpu_backend.blas->rounds_factors();
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        bool large = (int64_t)s->m * s->n * s->k > 5 << 18;
        matrices first = {0};
        for (int32_t threads = 1; threads <= 7; threads += 2) {
            vlp_compute *compute;
            must(vlp_cpu_backend.open(&compute, threads));
            matrices these = matrices_new(s), plain = matrices_new(s);
            round_to_bf16(these.a, (int64_t)s->m * s->k);
            round_to_bf16(these.b, (int64_t)s->n * s->k);
            multiply_with(compute, s, &these, true);
            expect_product(s, &these);
            multiply_with(compute, s, &plain, true);
            bool same = memcmp(these.c, plain.c, plain.size) == 0;
            assert_int_equal(same, (rounds && large) || s->k == 0);
            vlp_cpu_backend.close(compute);
            matrices_free(&plain);
            if (threads > 1 && rounds && large) assert_memory_equal(these.c, first.c, these.size);
            if (threads == 1)
                first = these;
            else
                matrices_free(&these);
        }
        matrices_free(&first);
    }
}

/* ---- Callers at once ----------------------------------------------------------------------------- */

typedef struct caller {
    pthread_t thread;
    pthread_barrier_t *start;
    int32_t number;
    float *alone[SHAPES]; /* results to get again */
    char folder[96], run[160];
    bool right;
} caller;

/* How many threads a caller's backend has: 1, 2 or 3. */
static int32_t threads_of(const caller *one) {
    return 1 + one->number % 3;
}

static bool multiply_all(caller *one) {
    vlp_compute *compute;
    if (vlp_cpu_backend.open(&compute, threads_of(one)) != VLP_OK) return false;
    bool right = true;
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < SHAPES; i++) {
            matrices these = matrices_new(&shapes[i]);
            multiply(compute, &shapes[i], &these);
            if (!one->alone[i]) {
                one->alone[i] = these.c;
                these.c = NULL;
            } else {
                right = right && memcmp(one->alone[i], these.c, these.size) == 0;
            }
            matrices_free(&these);
        }
    vlp_cpu_backend.close(compute);
    return right;
}

static void *multiply_beside_others(void *argument) {
    caller *one = argument;
    pthread_barrier_wait(one->start);
    one->right = multiply_all(one);
    return NULL;
}

/* Runs `work` in CALLERS threads at once; all have to be right. */
static void at_once(caller callers[CALLERS], void *(*work)(void *)) {
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, CALLERS);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].start = &start;
        callers[i].right = false;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, work, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < CALLERS; i++) assert_true(callers[i].right);
}

static void products_at_once(void **state) {
    (void)state;
    caller callers[CALLERS] = {0};
    for (int i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        assert_true(multiply_all(&callers[i]));
    }
    at_once(callers, multiply_beside_others);
    for (int i = 0; i < CALLERS; i++)
        for (int j = 0; j < SHAPES; j++) free(callers[i].alone[j]);
}

/* A whole training with gradients of every kind: the models take turns. */
static bool train(const caller *one, const char *run) {
    static const char *const kinds[][2] = {{"model=complex", "loss=cross-entropy"},
                                           {"model=rotate", "negatives_from=uniform"},
                                           {"model=transr", "relation_dim=8"},
                                           {"model=rescal", "vertical_gradient=on"}};
    char threads[32];
    snprintf(threads, sizeof threads, "threads=%d", threads_of(one));
    const char *settings[] = {kinds[one->number % 4][0],
                              kinds[one->number % 4][1],
                              threads,
                              "steps=6",
                              "dim=16",
                              "batch=64",
                              "negatives=16",
                              "eval_every=3",
                              "seed=5"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    options.device = "cpu";
    if (vlp_train(NULL, support_family(4, 3), run, &options) == VLP_OK) return true;
    fprintf(stderr, "%s\n", vlp_error_message());
    return false;
}

static void *train_beside_others(void *argument) {
    caller *one = argument;
    pthread_barrier_wait(one->start);
    one->right = train(one, one->run);
    return NULL;
}

static void trainings_at_once(void **state) {
    (void)state;
    const char *folder = support_folder();
    caller callers[CALLERS] = {0};
    for (int i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        snprintf(callers[i].folder, sizeof callers[i].folder, "%s/alone%d", folder, i);
        snprintf(callers[i].run, sizeof callers[i].run, "%s/beside%d", folder, i);
        assert_true(train(&callers[i], callers[i].folder));
    }
    at_once(callers, train_beside_others);
    for (int i = 0; i < CALLERS; i++)
        for (int file = 0; file < 2; file++) {
            char command[512];
            snprintf(command, sizeof command, "cmp %s/%s %s/%s", callers[i].folder,
                     file ? "state.safetensors" : "model.safetensors", callers[i].run,
                     file ? "state.safetensors" : "model.safetensors");
            assert_int_equal(system(command), 0);
        }
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_pieces), cmocka_unit_test(rounded_products),
        cmocka_unit_test(products_at_once), cmocka_unit_test(trainings_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
