/* How fast queries are answered, against what the two matrix products alone would allow in the same
 * process, and whether memory stays flat. Every model runs in a process of its own.
 *
 *   bench_predict SCRATCH DATA [QUERIES]   SCRATCH: a folder for runs; DATA: a data set, WN18RR say */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "run/run_internal.h"

enum { BATCH = 512, PRODUCTS_EVERY = 8 };

static double peak_mebibytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* A run of one step: weights that are nearly random answer as slowly as good ones. */
static vlp_run *make_run(const char *scratch, const char *data, const char *model, const char *dim) {
    char path[512], kind[64], size[64];
    snprintf(path, sizeof path, "%s/%s-%s", scratch, model, dim);
    snprintf(kind, sizeof kind, "model=%s", model);
    snprintf(size, sizeof size, "dim=%s", dim);
    const char *settings[] = {
        kind, size, "steps=1", "batch=16", "negatives=4", "negatives_from=uniform", "eval_every=0"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    struct stat info;
    char model_file[600];
    snprintf(model_file, sizeof model_file, "%s/model.safetensors", path);
    if (stat(model_file, &info) != 0) need(vlp_train(NULL, data, path, &options));
    vlp_run *run = NULL;
    need(vlp_run_open(&run, path, NULL));
    /* The mixture of a trained run: both scores count. */
    if (run->settings.vertical)
        run->progress.mixture = (vlp_mixture){{[VLP_HORIZONTAL] = 0.1f, [VLP_VERTICAL] = 1}};
    return run;
}

/* What is timed: answering, and in between the products of a batch with all entities alone, one for f_g
 * and one for f_c, so that a machine that is busy for a while is busy for both. */
typedef struct timing {
    double answering, products;
    int64_t queries, product_rows;
} timing;

static void time_products(timing *times, const vlp_run *run, float *rows, float *scores) {
    const vlp_model *model = run->model;
    int64_t width = model->form.entity_width, entities = model->entities;
    double start = seconds();
    for (int product = 0; product < 2; product++)
        model->backend->blas->product(model->compute, scores,
                                      &(vlp_product){.transpose_b = true,
                                                     .m = BATCH,
                                                     .n = entities,
                                                     .k = width,
                                                     .alpha = 1,
                                                     .lda = width,
                                                     .ldb = width,
                                                     .ldc = entities},
                                      rows, vlp_model_entities(model)->value);
    times->products += seconds() - start;
    times->product_rows += BATCH;
}

/* The ten best answers of a batch of queries, both ways, out of train. */
static void answer_batch(timing *times, vlp_run *run, int64_t first, int64_t size) {
    int64_t count;
    const vlp_dataset *data = vlp_run_dataset(run);
    const vlp_triple *train = vlp_dataset_triples(data, VLP_TRAIN, &count);
    int32_t relations = vlp_dataset_relation_count(data);
    vlp_query queries[BATCH];
    for (int64_t i = 0; i < size; i++) {
        vlp_triple triple = train[(first + i) * 7919 % count];
        queries[i] = i % 2 ? (vlp_query){triple.tail, triple.relation + relations, -1}
                           : (vlp_query){triple.head, triple.relation, -1};
    }
    vlp_predictions *predictions = NULL;
    double start = seconds();
    need(vlp_run_predict(&predictions, run, queries, size, NULL));
    times->answering += seconds() - start;
    times->queries += size;
    vlp_predictions_free(predictions);
}

static timing answer(vlp_run *run, int64_t queries, float *rows, float *scores) {
    timing times = {0};
    for (int64_t first = 0, batch = 0; first < queries; first += BATCH, batch++) {
        answer_batch(&times, run, first, queries - first < BATCH ? queries - first : BATCH);
        if (batch % PRODUCTS_EVERY == 0) time_products(&times, run, rows, scores);
    }
    return times;
}

static void measure(const char *scratch, const char *data, const char *model, const char *dim,
                    int64_t queries) {
    vlp_run *run = make_run(scratch, data, model, dim);
    int64_t width = run->model->form.entity_width;
    float *rows = malloc((size_t)(BATCH * width) * sizeof *rows);
    float *scores = malloc((size_t)BATCH * (size_t)run->model->entities * sizeof *scores);
    if (!rows || !scores) exit(1);
    for (int64_t i = 0; i < BATCH * width; i++) rows[i] = (float)(i % 7) - 3;
    answer(run, queries / 10 + 1, rows, scores); /* also what is made once */
    double peak = peak_mebibytes();
    timing times = answer(run, queries, rows, scores);
    double rate = (double)times.queries / times.answering;
    double allowed = (double)times.product_rows / times.products;
    char name[64];
    snprintf(name, sizeof name, "%s, %lld numbers a row", model, (long long)width);
    printf("%-30s %10.0f/s %12.0f/s %8.2f %10.0f MiB %10.0f MiB\n", name, rate, allowed, rate / allowed,
           peak, peak_mebibytes());
    free(rows);
    free(scores);
    vlp_run_free(run);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench_predict SCRATCH DATA [QUERIES]\n");
        return 2;
    }
    int64_t queries = argc > 3 ? atoll(argv[3]) : 100000;
    static const char *const models[][2] = {{"distmult", "200"}, {"complex", "200"}, {"rotate", "200"}};
    printf("%lld queries, 10 best answers each, %d threads\n", (long long)queries, vlp_thread_count(0));
    printf("%-30s %12s %14s %8s %14s %14s\n", "", "answered", "products alone", "ratio", "peak, a tenth",
           "peak, all");
    fflush(stdout);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        pid_t child = fork();
        if (child == 0) {
            /* Distances are not products, and slower: fewer queries tell as much. */
            bool dot = i < 2;
            measure(argv[1], argv[2], models[i][0], models[i][1], dot ? queries : queries / 20 + 1);
            fflush(stdout);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    return 0;
}
