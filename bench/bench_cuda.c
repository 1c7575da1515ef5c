/* Timings of the CUDA backend: the operations of a step at the shapes of three recipes, each beside the
 * least time its bytes, products and roots take on this card; steps of the whole recipes; evaluation;
 * and how long it takes to begin.
 *
 *   bench_cuda [RECIPE...]    data sets are looked for in VLP_BENCH_DATA; VLP_BENCH_PRECISION=fp32 for
 *                             steps without bf16 copies */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "eval/evaluate.h"
#include "eval/predictor.h"
#include "learn/trainer_internal.h"

/* ---- Recipes ------------------------------------------------------------------------------------- */

typedef struct recipe {
    const char *name, *data;
    double goal; /* ms a step */
    const char *settings[24];
} recipe;

static const recipe recipes[] = {
    {"wn18rr-rotate",
     "WN18RR",
     2.0,
     {"model=rotate", "dim=500", "batch=512", "negatives=1024", "margin=6", "alpha0=1.1", "alpha1=0.5",
      "alpha2=0.5", "tau=5", "references=8", "temperature=10", "rate=1e-4", "vertical_rate=5e-4"}},
    {"fb15k-237-rotate",
     "FB15k-237",
     2.0,
     {"model=rotate", "dim=1000", "batch=1024", "negatives=256", "margin=11", "alpha0=1.7", "alpha1=1",
      "alpha2=3", "tau=0.5", "references=8", "temperature=13", "rate=5e-4"}},
    {"fb15k-237-complex",
     "FB15k-237",
     1.5,
     {"model=complex", "dim=1000", "batch=1000", "loss=cross-entropy", "n3=0.05",
      "relation_prediction=4", "optimizer=adagrad", "rate=0.1", "init_scale=1e-3", "references=8",
      "temperature=13"}},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* One recipe's training, opened. */
typedef struct work {
    const recipe *recipe;
    vlp_settings settings;
    vlp_dataset *dataset;
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_model *model;
    vlp_trainer *trainer;
    double bandwidth, products, roots; /* bytes, operations, roots a second: what the card gives */
} work;

static const vlp_horizontal_state *horizontal_of(const work *w) {
    return w->trainer->states[VLP_HORIZONTAL];
}

static vlp_vertical_state *vertical_of(const work *w) {
    return w->trainer->states[VLP_VERTICAL];
}

static void set(vlp_settings *settings, const char *text) {
    char key[64];
    const char *equals = strchr(text, '=');
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    need(vlp_settings_set(settings, key, equals + 1, "bench"));
}

static void open_work(work *w, const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, w->recipe->data);
    vlp_settings_default(&w->settings);
    for (int i = 0; w->recipe->settings[i]; i++) set(&w->settings, w->recipe->settings[i]);
    const char *precision = getenv("VLP_BENCH_PRECISION");
    need(vlp_settings_set(&w->settings, "precision", precision ? precision : "bf16", "bench"));
    need(vlp_settings_check(&w->settings));
    double start = seconds();
    need(vlp_dataset_open(&w->dataset, path, NULL));
    need(vlp_backend_find(&w->backend, "cuda"));
    need(w->backend->open(&w->compute, 0));
    double opened = seconds();
    vlp_model_shape shape = vlp_settings_shape(&w->settings, w->dataset);
    need(vlp_model_new(&w->model, w->backend, w->compute, &shape, true));
    need(vlp_model_init(w->model, w->settings.seed, w->settings.init_scale));
    double made = seconds();
    need(vlp_trainer_new(&w->trainer, w->dataset, &w->settings, w->model, NULL));
    double prepared = seconds();
    vlp_step_loss loss;
    need(vlp_trainer_step(&loss, w->trainer, 0));
    printf("%s: first step after %.2f s (data and device %.2f, model %.2f, graph %.2f, step %.2f)\n",
           w->recipe->name, seconds() - start, opened - start, made - opened, prepared - made,
           seconds() - prepared);
    fflush(stdout);
}

static void close_work(work *w) {
    vlp_trainer_free(w->trainer);
    vlp_model_free(w->model);
    w->backend->close(w->compute);
    vlp_dataset_free(w->dataset);
}

/* ---- Timing -------------------------------------------------------------------------------------- */

typedef void (*operation)(work *w);

static void wait_for(work *w) {
    vlp_step_report report;
    need(w->backend->memory->download(w->compute, &report, w->trainer->report, sizeof report));
}

/* Seconds of one operation: several in a recorded step, the median of a few replays. */
static double time_of(work *w, operation one, int inside) {
    enum { REPLAYS = 9 };
    double times[REPLAYS];
    vlp_plan *plan = w->backend->steps->plan_new(w->compute);
    vlp_step_values values = {.step = 1, .rates = {1e-9f, 1e-9f}, .correction1 = 1, .correction2 = 1};
    for (int round = -3; round < REPLAYS; round++) {
        wait_for(w);
        double start = seconds();
        if (!w->backend->steps->begin(w->compute, plan, &values)) {
            for (int i = 0; i < inside; i++) one(w);
            need(w->backend->steps->end(w->compute, plan));
        }
        wait_for(w);
        if (round >= 0) times[round] = (seconds() - start) / inside;
    }
    w->backend->steps->plan_free(w->compute, plan);
    for (int i = 0; i < REPLAYS; i++)
        for (int j = i + 1; j < REPLAYS; j++)
            if (times[j] < times[i]) {
                double swap = times[i];
                times[i] = times[j];
                times[j] = swap;
            }
    return times[REPLAYS / 2];
}

/* A line of the table: bytes through device memory, operations of products, roots; the floor is the
 * longest of what these take. */
static double line(work *w, const char *what, operation one, double bytes, double operations,
                   double roots) {
    double time = time_of(w, one, 10), floor = bytes / w->bandwidth;
    if (operations / w->products > floor) floor = operations / w->products;
    if (roots / w->roots > floor) floor = roots / w->roots;
    printf("  %-34s %9.1f us %9.1f MB %8.1f GFLOP %9.1f us %5.0f%%\n", what, 1e6 * time, 1e-6 * bytes,
           1e-9 * operations, 1e6 * floor, 100 * floor / time);
    fflush(stdout);
    return time;
}

/* ---- What the card gives ------------------------------------------------------------------------- */

enum { SIDE = 8192 };
static float *left_matrix, *right_matrix, *product_matrix;
static vlp_bf16 *left_bf16, *right_bf16;

static void read_much(work *w) {
    w->backend->rows->square_sum(
        w->compute, (double *)product_matrix,
        &(vlp_table_gradient){.rows = left_matrix, .count = SIDE, .width = SIDE});
}

/* As a step multiplies: over bf16 copies, or in TF32. */
static void multiply_much(work *w) {
    if (w->trainer->uses_bf16)
        w->backend->bf16->product(w->compute, product_matrix,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = SIDE,
                                                 .n = SIDE,
                                                 .k = SIDE,
                                                 .alpha = 1,
                                                 .lda = SIDE,
                                                 .ldb = SIDE,
                                                 .ldc = SIDE},
                                  left_bf16, right_bf16);
    else
        w->backend->blas->product(w->compute, product_matrix,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = SIDE,
                                                 .n = SIDE,
                                                 .k = SIDE,
                                                 .alpha = 1,
                                                 .lda = SIDE,
                                                 .ldb = SIDE,
                                                 .ldc = SIDE},
                                  left_matrix, right_matrix);
}

/* bf16 copies of the two factors. */
static void convert_factors(work *w) {
    vlp_bf16_layout layout = vlp_bf16_layout_of(1, SIDE);
    size_t bytes = (size_t)SIDE * SIDE * sizeof(vlp_bf16);
    left_bf16 = w->backend->memory->allocate(w->compute, bytes);
    right_bf16 = w->backend->memory->allocate(w->compute, bytes);
    if (!left_bf16 || !right_bf16) exit(1);
    w->backend->bf16->convert_rows(w->compute, left_bf16, &layout, left_matrix, SIDE, SIDE);
    w->backend->bf16->convert_rows(w->compute, right_bf16, &layout, right_matrix, SIDE, SIDE);
}

static void measure_card(work *w) {
    size_t count = (size_t)SIDE * SIDE, bytes = count * sizeof(float);
    float *host = malloc(bytes);
    left_matrix = w->backend->memory->allocate(w->compute, bytes);
    right_matrix = w->backend->memory->allocate(w->compute, bytes);
    product_matrix = w->backend->memory->allocate(w->compute, bytes);
    if (!host || !left_matrix || !right_matrix || !product_matrix) exit(1);
    uint32_t state = 1; /* random numbers: a product of zeros is faster than any other */
    for (size_t i = 0; i < count; i++)
        host[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
    need(w->backend->memory->upload(w->compute, left_matrix, host, bytes));
    need(w->backend->memory->upload(w->compute, right_matrix, host, bytes));
    free(host);
    if (w->trainer->uses_bf16) convert_factors(w);
    w->bandwidth = (double)bytes / time_of(w, read_much, 4);
    w->products = 2.0 * SIDE * SIDE * SIDE / time_of(w, multiply_much, 2);
    w->roots = 132 * 16 * 1.755e9;
    w->backend->memory->release(w->compute, left_matrix);
    w->backend->memory->release(w->compute, right_matrix);
    w->backend->memory->release(w->compute, product_matrix);
    if (w->trainer->uses_bf16) {
        w->backend->memory->release(w->compute, left_bf16);
        w->backend->memory->release(w->compute, right_bf16);
    }
    printf("card: reads %.2f TB/s, products in %s %.0f TFLOP/s\n", 1e-12 * w->bandwidth,
           w->trainer->uses_bf16 ? "bf16" : "TF32", 1e-12 * w->products);
}

/* ---- Operations of a step ------------------------------------------------------------------------ */

static vlp_pairs pairs_of(work *w) {
    return vlp_horizontal_pairs(horizontal_of(w), w->trainer);
}

/* The queries of the batch: q, or their head entities. */
static vlp_related_rows queries_of(work *w, const float *rows) {
    return vlp_model_related(w->model, rows, w->trainer->chosen.relations, w->trainer->batch);
}

static void op_batch(work *w) {
    w->backend->steps->choose_batch(w->compute, &w->trainer->tables, &w->trainer->chosen);
}

static void op_sample(work *w) {
    const vlp_batch *chosen = &w->trainer->chosen;
    vlp_sample_options options = {horizontal_of(w)->shells ? &horizontal_of(w)->view : NULL,
                                  (float)w->settings.alpha0, w->model->entities, w->settings.negatives,
                                  w->settings.seed};
    vlp_sampled_queries queries = {w->trainer->batch, chosen->heads, chosen->known_begin,
                                   chosen->known_end, horizontal_of(w)->known_list};
    need(w->backend->sample->negatives(w->compute, chosen->pairs, &queries, &options));
}

static void op_pair_scores(work *w) {
    vlp_pairs pairs = pairs_of(w);
    vlp_related_rows queries = queries_of(w, w->trainer->q);
    need(w->backend->pairs->scores(w->compute, horizontal_of(w)->scores, &w->model->form, &queries,
                                   &pairs));
}

static void op_negative_loss(work *w) {
    vlp_weight_form form = {(vlp_weighing)w->settings.weights, (float)w->settings.alpha1,
                            (float)w->settings.alpha2, (float)w->settings.tau, true};
    w->backend->loss->negative(w->compute, horizontal_of(w)->scores, horizontal_of(w)->row_loss, &form,
                               w->trainer->chosen.weights, w->trainer->batch, horizontal_of(w)->width);
}

static void op_pair_backward(work *w) {
    vlp_pairs pairs = pairs_of(w);
    const vlp_table *entities = vlp_model_entities(w->model);
    const vlp_table *relations = vlp_model_relations(w->model);
    w->backend->memory->fill_bytes(w->compute, entities->touched, 0, (size_t)entities->rows);
    vlp_related_rows queries = queries_of(w, w->trainer->q);
    vlp_pair_gradients out = {.queries = horizontal_of(w)->q_grad,
                              .entities = vlp_table_gradient_of(entities),
                              .relations = relations->grad};
    if (horizontal_of(w)->fused) out.entities.rows = NULL;
    need(w->backend->pairs->backward(w->compute, &out, &w->model->form, horizontal_of(w)->scores,
                                     &queries, &pairs));
}

static void op_query_backward(work *w) {
    const vlp_table *entities = vlp_model_entities(w->model);
    const vlp_table *relations = vlp_model_relations(w->model);
    vlp_related_rows heads = queries_of(w, w->trainer->head_rows);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    need(w->backend->transform->query_backward(w->compute, horizontal_of(w)->heads_grad, relations->grad,
                                               &w->model->form, horizontal_of(w)->q_grad, &heads,
                                               false));
    need(w->backend->rows->scatter_add(w->compute, &entity_grad, horizontal_of(w)->heads_grad, NULL,
                                       w->trainer->chosen.heads, w->trainer->batch));
}

static vlp_reference_batch references_of(work *w) {
    const vlp_batch *chosen = &w->trainer->chosen;
    return (vlp_reference_batch){chosen->reference_heads, chosen->reference_answers,
                                 chosen->reference_counts, w->settings.references};
}

static void op_aggregator_forward(work *w) {
    vlp_reference_batch references = references_of(w);
    vlp_aggregator_forward(w->model, &vertical_of(w)->aggregator, w->trainer->head_rows,
                           w->trainer->chosen.relations, w->trainer->q, &references, w->trainer->batch);
}

static void op_aggregator_backward(work *w) {
    vlp_reference_batch references = references_of(w);
    bool padded = vertical_of(w)->uses_bf16;
    need(vlp_aggregator_backward(w->model, &vertical_of(w)->aggregator,
                                 padded ? vertical_of(w)->padded_grad : vertical_of(w)->output_grad,
                                 padded ? &vlp_model_entities(w->model)->layout : NULL, &references,
                                 w->trainer->batch, NULL));
}

/* The products and the softmax of the 1-to-All loss or, without one, of the head; over bf16 copies
 * where training reads them. */
static bool uses_bf16(const work *w) {
    return w->trainer->uses_bf16;
}

static int64_t columns_of(const work *w) {
    return vlp_trainer_stride(w->trainer, w->model->entities);
}

static void op_logits(work *w) {
    const vlp_table *entities = vlp_model_entities(w->model);
    int32_t e = entities->width, padded = vlp_bf16_layout_stride(&entities->layout);
    if (uses_bf16(w))
        w->backend->bf16->product(w->compute, vertical_of(w)->logits,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = w->trainer->block,
                                                 .n = columns_of(w),
                                                 .k = padded,
                                                 .alpha = 1,
                                                 .lda = padded,
                                                 .ldb = padded,
                                                 .ldc = columns_of(w)},
                                  vertical_of(w)->aggregator.bf16_output, entities->bf16);
    else
        w->backend->blas->product(w->compute, vertical_of(w)->logits,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = w->trainer->block,
                                                 .n = columns_of(w),
                                                 .k = e,
                                                 .alpha = 1,
                                                 .lda = e,
                                                 .ldb = e,
                                                 .ldc = columns_of(w)},
                                  vertical_of(w)->aggregator.output, entities->value);
}

static void op_logits_backward(work *w) {
    const vlp_table *entities = vlp_model_entities(w->model);
    int32_t e = entities->width, padded = vlp_bf16_layout_stride(&entities->layout);
    if (uses_bf16(w))
        w->backend->bf16->product(w->compute, vertical_of(w)->padded_grad,
                                  &(vlp_product){.m = w->trainer->block,
                                                 .n = padded,
                                                 .k = columns_of(w),
                                                 .alpha = 1,
                                                 .lda = columns_of(w),
                                                 .ldb = padded,
                                                 .ldc = padded},
                                  vertical_of(w)->bf16_logits, entities->bf16);
    else
        w->backend->blas->product(w->compute, vertical_of(w)->output_grad,
                                  &(vlp_product){.m = w->trainer->block,
                                                 .n = e,
                                                 .k = columns_of(w),
                                                 .alpha = 1,
                                                 .lda = columns_of(w),
                                                 .ldb = e,
                                                 .ldc = e},
                                  vertical_of(w)->logits, entities->value);
}

static void op_entities_backward(work *w) {
    const vlp_table *entities = vlp_model_entities(w->model);
    int32_t e = entities->width, padded = vlp_bf16_layout_stride(&entities->layout);
    if (uses_bf16(w))
        w->backend->bf16->product(w->compute, entities->grad,
                                  &(vlp_product){.transpose_a = true,
                                                 .m = columns_of(w),
                                                 .n = e,
                                                 .k = w->trainer->block,
                                                 .alpha = 1,
                                                 .lda = columns_of(w),
                                                 .ldb = padded,
                                                 .ldc = e},
                                  horizontal_of(w)->bf16_logits, horizontal_of(w)->bf16_q);
    else
        w->backend->blas->product(w->compute, entities->grad,
                                  &(vlp_product){.transpose_a = true,
                                                 .m = columns_of(w),
                                                 .n = e,
                                                 .k = w->trainer->block,
                                                 .alpha = 1,
                                                 .lda = columns_of(w),
                                                 .ldb = e,
                                                 .ldc = e},
                                  horizontal_of(w)->logits, w->trainer->q);
}

static void op_softmax(work *w) {
    w->backend->loss->softmax(w->compute, vertical_of(w)->logits, vertical_of(w)->bf16_logits,
                              vertical_of(w)->row_loss,
                              &(vlp_softmax){.count = w->trainer->block,
                                             .columns = w->model->entities,
                                             .stride = columns_of(w),
                                             .answers = w->trainer->chosen.answers,
                                             .weights = vertical_of(w)->even,
                                             .column_scale = vertical_of(w)->inverse_norms,
                                             .temperature = (float)w->settings.temperature});
}

static void op_update(work *w) {
    const vlp_table *table = vlp_model_entities(w->model);
    vlp_update update = {.kind = w->settings.optimizer == VLP_ADAGRAD,
                         .beta1 = 0.9f,
                         .beta2 = 0.999f,
                         .epsilon = 1e-8f,
                         .report = w->trainer->report};
    vlp_updated updated = {.width = table->width,
                           .rows = table->rows,
                           .value = table->value,
                           .grad = table->grad,
                           .first = table->first,
                           .second = table->second,
                           .inverse_norms = vertical_of(w)->inverse_norms,
                           .bf16 = table->bf16,
                           .layout = table->layout};
    vlp_pairs pairs = pairs_of(w);
    if (horizontal_of(w)->fused)
        need(w->backend->bf16->pair_update(w->compute, &updated, &update, &w->model->form,
                                           horizontal_of(w)->scores, w->trainer->q, &pairs));
    else
        w->backend->optimizer->update(w->compute, &update, &updated, 1);
}

/* The products of the head: 2 of (b, e, q) forward, 1 of (b, e, e + q); back the same to the matrices,
 * and 1 of (b, e, e) to t_N. */
static double aggregator_operations(work *w, bool backward) {
    double b = w->trainer->batch, e = w->model->form.entity_width, q = w->model->form.query_width;
    return 2 * b * e * (2 * q + (e + q) + (backward ? e : 0));
}

/* Bytes are those that have to pass at least once; half of it where bf16 copies are read. */
static void operations(work *w) {
    double b = w->trainer->batch, e = w->model->form.entity_width, n = w->model->entities;
    double table = 4 * n * e, logits = 4 * (double)w->trainer->block * n, rows = 4 * b * e;
    double pairs = b * horizontal_of(w)->width,
           units = w->settings.model == VLP_MODEL_ROTATE ? e / 2 : e;
    double half = uses_bf16(w) ? 0.5 : 1, copy = half * table, logits_grad = half * logits;
    double product = 2 * (double)w->trainer->block * n * e;
    bool fused = horizontal_of(w)->fused;
    printf("  %-34s %12s %12s %14s %12s %6s\n", "operation", "time", "bytes", "products", "floor",
           "share");
    line(w, "choose batch", op_batch, 4 * b * 30, 0, 0);
    if (w->settings.loss == VLP_LOSS_NEGATIVES) {
        double roots = w->settings.model == VLP_MODEL_ROTATE ? pairs * units : 0;
        line(w, "sample", op_sample, b * n / 2 + 4 * pairs, 0, 0);
        line(w, "pair scores (with sort)", op_pair_scores, copy + rows + 8 * pairs, 0, roots);
        line(w, "negative loss", op_negative_loss, 8 * pairs, 0, 0);
        line(w, fused ? "pair backward to queries" : "pair backward", op_pair_backward,
             copy + (fused ? 0 : table) + 2 * rows + 8 * pairs, 0, (fused ? 1 : 2) * roots);
    }
    line(w, "query backward, scatter", op_query_backward, 6 * rows, 0, 0);
    line(w, "head forward", op_aggregator_forward, rows * (2 * w->settings.references + 8),
         aggregator_operations(w, false), 0);
    line(w, "logits", op_logits, copy + logits + half * rows, product, 0);
    line(w, "softmax", op_softmax, logits + logits_grad, 0, 0);
    line(w, "logits backward", op_logits_backward, copy + logits_grad + rows, product, 0);
    if (w->settings.loss == VLP_LOSS_CROSS_ENTROPY)
        line(w, "logits backward to entities", op_entities_backward, table + logits_grad + half * rows,
             product, 0);
    line(w, "head backward", op_aggregator_backward, rows * 12, aggregator_operations(w, true), 0);
    /* Parameters and moments read and written, the gradient read where it is not made here, the copy. */
    line(w, fused ? "pair backward to entities, update" : "update of entities", op_update,
         ((w->settings.optimizer == VLP_ADAGRAD ? 4 : 6) + (fused ? 0 : 1)) * table +
             (uses_bf16(w) ? copy : 0),
         0, fused ? pairs * units : 0);
}

/* ---- Wholes -------------------------------------------------------------------------------------- */

static void whole_steps(work *w) {
    enum { WARM = 20, STEPS = 300 };
    vlp_step_loss loss;
    for (int64_t step = 1; step <= WARM; step++) need(vlp_trainer_step(NULL, w->trainer, step));
    need(vlp_trainer_read(&loss, w->trainer));
    double start = seconds();
    for (int64_t step = WARM; step < WARM + STEPS; step++)
        need(vlp_trainer_step(NULL, w->trainer, step));
    double asked = seconds() - start;
    need(vlp_trainer_read(&loss, w->trainer));
    double time = (seconds() - start) / STEPS;
    printf("%s: %.3f ms a step (goal %.1f), %.0f steps/s; the host asks in %.1f us; loss %.4f + %.4f\n",
           w->recipe->name, 1e3 * time, w->recipe->goal, 1 / time, 1e6 * asked / STEPS,
           loss.components[VLP_HORIZONTAL], loss.components[VLP_VERTICAL]);
    fflush(stdout);
}

static void evaluation(work *w, bool vertical) {
    vlp_model bare = *w->model;
    if (!vertical) bare.components = 1u << VLP_HORIZONTAL;
    vlp_mixture *grid = NULL;
    int32_t count = 1;
    need(vlp_mixture_grid(&grid, &count, bare.components));
    vlp_ranking_options options = {.split = VLP_TEST,
                                   .filter = 7,
                                   .mixtures = grid,
                                   .mixture_count = count,
                                   .references = w->settings.references};
    vlp_ranking *ranking = NULL;
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        double start = seconds();
        need(vlp_ranking_compute(&ranking, &bare, w->dataset, &options));
        double time = seconds() - start;
        if (time < best) best = time;
        if (round < 2) vlp_ranking_free(ranking);
    }
    printf("%s: test, both sides, %s, %d mixtures: %.3f s for %lld queries\n", w->recipe->name,
           vertical ? "f_c and f_g" : "f_g", count, best, (long long)ranking->queries);
    vlp_ranking_free(ranking);
    vlp_free(grid);
    fflush(stdout);
}

/* The ten best answers of queries of test, those that are known left out. */
static void prediction(work *w) {
    enum { QUERIES = 10000, WANTED = 10 };
    vlp_predictor_options options = {.model = w->model,
                                     .graph = w->dataset->graph,
                                     .mixture = {{[VLP_HORIZONTAL] = 0.1f, [VLP_VERTICAL] = 1}},
                                     .references = w->settings.references};
    vlp_predictor *predictor = NULL;
    vlp_filter *known = NULL;
    vlp_query queries[QUERIES];
    const vlp_triple_list *test = &w->dataset->splits[VLP_TEST];
    for (int64_t i = 0; i < QUERIES; i++) {
        vlp_triple triple = test->items[i % test->count];
        queries[i] = (vlp_query){triple.head, triple.relation, -1};
    }
    need(vlp_predictor_new(&predictor, &options));
    need(vlp_filter_new(&known, w->dataset, 7));
    int64_t batch = vlp_predictor_batch(predictor);
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        double start = seconds();
        for (int64_t i = 0; i < QUERIES; i += batch)
            need(vlp_predictor_top(predictor, queries + i, QUERIES - i < batch ? QUERIES - i : batch,
                                   WANTED, known, NULL, NULL));
        if (seconds() - start < best) best = seconds() - start;
    }
    printf("%s: the best %d of f_c and f_g: %.0f queries a second\n", w->recipe->name, WANTED,
           QUERIES / best);
    vlp_filter_free(known);
    vlp_predictor_free(predictor);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *folder = getenv("VLP_BENCH_DATA");
    if (!folder) folder = "../shared/data";
    for (int i = 0; i < RECIPES; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++) wanted = wanted || strcmp(argv[a], recipes[i].name) == 0;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, recipes[i].data);
        if (!wanted) continue;
        if (access(path, R_OK) != 0) {
            printf("%s: no data in %s; set VLP_BENCH_DATA\n", recipes[i].name, path);
            continue;
        }
        work w = {.recipe = &recipes[i]};
        open_work(&w, folder);
        measure_card(&w);
        whole_steps(&w);
        operations(&w);
        evaluation(&w, false);
        evaluation(&w, true);
        prediction(&w);
        close_work(&w);
    }
    return 0;
}
