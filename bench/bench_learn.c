/* Timings of the operations that training and evaluation on the CPU spend their time in, beside what
 * bounds them: the rate of sgemm itself, and the rate at which memory is read. Shapes are those of
 * FB15k-237 at a batch of 512, 256 negatives, dimension 200. Medians of several rounds.
 *
 *   bench_learn [THREADS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "bench.h"
#include "compute/backend.h"

enum { ENTITIES = 14541, BATCH = 512, NEGATIVES = 256, DIM = 200, WIDTH = 2 * DIM, ROUNDS = 9 };

static const vlp_backend *backend;
static vlp_compute *compute;

static float *numbers(int64_t count, float range) {
    float *values = backend->memory->allocate(compute, (size_t)count * sizeof *values);
    if (!values) abort();
    for (int64_t i = 0; i < count; i++)
        values[i] = range * (2 * vlp_random_unit(vlp_random(1, 2, (uint64_t)i, 0).v[0]) - 1);
    return values;
}

static int32_t *ids(int64_t count, int32_t below) {
    int32_t *values = malloc((size_t)count * sizeof *values);
    if (!values) abort();
    for (int64_t i = 0; i < count; i++)
        values[i] = (int32_t)(vlp_random(1, 3, (uint64_t)i, 0).v[0] % (uint32_t)below);
    return values;
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median time of a piece of work. */
#define MEDIAN(out, work)                                                                               \
    do {                                                                                                \
        double times_[ROUNDS];                                                                          \
        for (int round_ = -1; round_ < ROUNDS; round_++) {                                              \
            double start_ = seconds();                                                                  \
            work;                                                                                       \
            if (round_ >= 0) times_[round_] = seconds() - start_;                                       \
        }                                                                                               \
        qsort(times_, ROUNDS, sizeof *times_, by_size);                                                 \
        (out) = times_[ROUNDS / 2];                                                                     \
    } while (0)

/* The largest arrays: all tables and logits are views of these. */
static float *table, *table_grad, *q, *q_grad, *logits;
static double gemm_rate, memory_rate;

static float sum_of(const float *values, int64_t count) {
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
    for (int64_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

static void floors(void) {
    double time, flops = 2.0 * BATCH * ENTITIES * WIDTH;
    MEDIAN(time, backend->blas->product(compute, logits,
                                        &(vlp_product){.transpose_b = true,
                                                       .m = BATCH,
                                                       .n = ENTITIES,
                                                       .k = WIDTH,
                                                       .alpha = 1,
                                                       .lda = WIDTH,
                                                       .ldb = WIDTH,
                                                       .ldc = ENTITIES},
                                        q, table));
    gemm_rate = flops / time;
    int64_t count = (int64_t)256 << 18; /* 256 MiB, beyond every cache */
    float *large = numbers(count, 1);
    volatile float sum = 0;
    MEDIAN(time, sum = sum + sum_of(large, count));
    memory_rate = (double)count * sizeof(float) / time;
    backend->memory->release(compute, large);
    printf("floor: sgemm %.0f GFLOP/s, memory read at %.1f GB/s\n\n", gemm_rate / 1e9,
           memory_rate / 1e9);
}

static void row(const char *what, double time, double flops, double bytes) {
    double arithmetic = flops / gemm_rate, traffic = bytes / memory_rate;
    double floor = arithmetic > traffic ? arithmetic : traffic;
    printf("%-44s %9.2f ms %9.1f GFLOP/s %8.1f GB/s  floor %8.2f ms by %-6s %5.0f%%\n", what, time * 1e3,
           flops / time / 1e9, bytes / time / 1e9, floor * 1e3,
           arithmetic > traffic ? "sgemm" : "memory", 100 * floor / time);
    fflush(stdout);
}

/* The three products of a step over all entities: logits, gradients of queries and of entities. */
static void step_products(int64_t batch, int64_t entities, bool rounded) {
    vlp_product product = {.transpose_b = true,
                           .m = batch,
                           .n = entities,
                           .k = WIDTH,
                           .alpha = 1,
                           .lda = WIDTH,
                           .ldb = WIDTH,
                           .ldc = entities,
                           .rounded = rounded};
    backend->blas->product(compute, logits, &product, q, table);
    product = (vlp_product){.m = batch,
                            .n = WIDTH,
                            .k = entities,
                            .alpha = 1,
                            .lda = entities,
                            .ldb = WIDTH,
                            .ldc = WIDTH,
                            .rounded = rounded};
    backend->blas->product(compute, q_grad, &product, logits, table);
    product = (vlp_product){.transpose_a = true,
                            .m = entities,
                            .n = WIDTH,
                            .k = batch,
                            .alpha = 1,
                            .lda = entities,
                            .ldb = WIDTH,
                            .ldc = WIDTH,
                            .rounded = rounded};
    backend->blas->product(compute, table_grad, &product, logits, q);
}

static void products(void) {
    static const int64_t entities[] = {104, ENTITIES}, batches[] = {128, 256, BATCH};
    for (int e = 0; e < 2; e++)
        for (int b = 0; b < 3; b++)
            for (int rounded = 0; rounded < 2; rounded++) {
                char what[64];
                double time, size = (double)(batches[b] * entities[e]);
                MEDIAN(time, step_products(batches[b], entities[e], rounded));
                snprintf(what, sizeof what, "products of %lld x %lld, %s", (long long)batches[b],
                         (long long)entities[e], rounded ? "bf16" : "fp32");
                row(what, time, 3 * 2 * size * WIDTH, 3 * size * sizeof(float));
            }
}

static void pairs_of(const char *name, vlp_similarity similarity, double flops) {
    vlp_form form = {.transform = VLP_SCALE_COMPLEX,
                     .similarity = similarity,
                     .entity_width = WIDTH,
                     .query_width = WIDTH,
                     .relation_width = WIDTH};
    int64_t count = (int64_t)BATCH * (NEGATIVES + 1);
    int32_t *entities = ids(count, ENTITIES), *relations = ids(BATCH, 1);
    float *scores = numbers(count, 1), *grads = numbers(count, 1e-3f);
    vlp_pairs pairs = {.batch = BATCH,
                       .width = NEGATIVES + 1,
                       .entities = entities,
                       .table = table,
                       .table_rows = ENTITIES};
    vlp_related_rows queries = {
        .count = BATCH, .rows = q, .relations = relations, .relation_table = q, .relation_count = 1};
    vlp_pair_gradients out = {.queries = q_grad,
                              .entities = {.rows = table_grad, .count = ENTITIES, .width = WIDTH}};
    char what[64];
    double time, rows = (double)ENTITIES * WIDTH * sizeof(float);
    MEDIAN(time, need(backend->pairs->scores(compute, scores, &form, &queries, &pairs)));
    snprintf(what, sizeof what, "%s: scores of pairs", name);
    row(what, time, flops * DIM * (double)count, rows);
    MEDIAN(time, need(backend->pairs->backward(compute, &out, &form, grads, &queries, &pairs)));
    snprintf(what, sizeof what, "%s: gradients of pairs", name);
    row(what, time, 2 * flops * DIM * (double)count, 3 * rows);
    MEDIAN(time, need(backend->scores->all(compute, logits, &form, &queries, table, ENTITIES)));
    snprintf(what, sizeof what, "%s: scores of all entities", name);
    row(what, time, flops * DIM * (double)BATCH * ENTITIES,
        rows + (double)BATCH * ENTITIES * sizeof(float));
    free(entities);
    free(relations);
    backend->memory->release(compute, scores);
    backend->memory->release(compute, grads);
}

static void losses(void) {
    int64_t count = (int64_t)BATCH * (NEGATIVES + 1), cells = (int64_t)BATCH * ENTITIES;
    float *scores = numbers(count, 1), *losses_of = numbers(BATCH, 1), *weights = numbers(BATCH, 1);
    int32_t *answers = ids(BATCH, ENTITIES);
    int64_t *none = calloc(BATCH + 1, sizeof *none);
    int32_t *above = ids(BATCH, 1), *equal = ids(BATCH, 1);
    vlp_weight_form form = {VLP_WEIGH_RED, 0.5f, 0.5f, 5, true};
    double time, bytes = (double)cells * sizeof(float);
    MEDIAN(time,
           backend->loss->negative(compute, scores, losses_of, &form, weights, BATCH, NEGATIVES + 1));
    row("loss of negatives", time, 0, 2.0 * (double)count * sizeof(float));
    MEDIAN(time, backend->loss->softmax(compute, logits, NULL, losses_of,
                                        &(vlp_softmax){.count = BATCH,
                                                       .columns = ENTITIES,
                                                       .stride = ENTITIES,
                                                       .answers = answers,
                                                       .weights = weights,
                                                       .temperature = 1}));
    row("softmax over all entities", time, 0, 2 * bytes);
    const vlp_mixture mixture = {{[VLP_HORIZONTAL] = 1}};
    vlp_ranked ranked = {.queries = {.count = BATCH},
                         .entities = ENTITIES,
                         .scores = {[VLP_HORIZONTAL] = logits},
                         .answers = answers,
                         .filter_offset = none,
                         .filtered = answers,
                         .mixtures = &mixture,
                         .mixture_count = 1};
    int32_t bad;
    MEDIAN(time, need(backend->rank->counts(compute, above, equal, &bad, &ranked)));
    row("ranks among all entities", time, 0, bytes);
    backend->memory->release(compute, scores);
    backend->memory->release(compute, losses_of);
    backend->memory->release(compute, weights);
    free(answers);
    free(none);
    free(above);
    free(equal);
}

int main(int argc, char **argv) {
    need(vlp_backend_find(&backend, "cpu"));
    need(backend->open(&compute, argc > 1 ? atoi(argv[1]) : 0));
    int64_t size = (int64_t)ENTITIES * WIDTH;
    table = numbers(size, 0.1f);
    table_grad = backend->memory->allocate(compute, (size_t)size * sizeof *table_grad);
    q = numbers((int64_t)BATCH * WIDTH, 0.1f);
    q_grad = numbers((int64_t)BATCH * WIDTH, 0.1f);
    logits = numbers((int64_t)BATCH * ENTITIES, 1);
    floors();
    products();
    pairs_of("RotatE", VLP_MINUS_MODULUS, 6);
    pairs_of("ComplEx", VLP_DOT, 4);
    losses();
    backend->close(compute);
    return 0;
}
