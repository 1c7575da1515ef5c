/* Timings of the path model on the GPU: steps of training, the choice of their keys included, the scores
 * of a test split's queries, and their filtered ranks.
 *
 *   bench_cuda_paths [NAME...]    data sets are looked for in VLP_BENCH_DATA; VLP_BENCH_PRECISION=fp32
 *                                 for states in fp32; VLP_BENCH_STEPS and VLP_BENCH_QUERIES for fewer;
 *                                 VLP_BENCH_DIM for another dimension than 32 */
#include <string.h>

#include "bench.h"
#include "compute/backend.h"
#include "eval/evaluate.h"
#include "eval/mixture.h"
#include "graph/dataset.h"
#include "learn/settings.h"

typedef struct shape {
    const char *name, *data;
    int32_t layers;
    bool reached_only, pair;
    float far, prune;
    double goal, score_goal; /* ms per step, s per test split; 0: none */
} shape;

static const shape shapes[] = {
    {"fb15k-237", "FB15k-237", 6, false, true, 1, 0, 8, 2},
    {"fb15k-237-pruned", "FB15k-237", 6, false, true, 1, 1e-3f, 8, 0},
    {"fb15k-237-reached", "FB15k-237", 6, true, true, 1, 1e-3f, 8, 2},
    {"wn18rr-8", "WN18RR", 8, true, false, 1, 0, 3, 0.5},
    {"wn18rr-6", "WN18RR", 6, true, false, 1, 0, 1.5, 0.5},
    {"wn18rr-8-pruned", "WN18RR", 8, true, false, 1, 1e-3f, 3, 0},
    {"wn18rr-6-pruned", "WN18RR", 6, true, false, 1, 1e-3f, 1.5, 0},
    {"wn18rr-8-sampled", "WN18RR", 8, true, false, 0.125f, 1e-3f, 0, 0},
    {"wn18rr-6-sampled", "WN18RR", 6, true, false, 0.125f, 1e-3f, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, BATCH = 32, SCORED = 128 };

/* A model over a data set, on the GPU. */
typedef struct work {
    const shape *shape;
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_dataset *dataset;
    vlp_path_form form;
    vlp_path_graph graph;
    vlp_path_keys keys_host, keys;
    vlp_path_tables values, grads;
    vlp_path_model model;
    bool bf16;
} work;

static int64_t setting(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static void *device_zeros(work *w, size_t bytes) {
    void *memory = w->backend->memory->allocate(w->compute, bytes);
    if (!memory) abort();
    return memory;
}

static void *on_device(work *w, const void *from, size_t bytes) {
    void *memory = device_zeros(w, bytes);
    need(w->backend->memory->upload(w->compute, memory, from, bytes));
    return memory;
}

static void open_tables(work *w) {
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        vlp_path_shape size = vlp_path_table_shape(&w->form, (vlp_path_table)table);
        size_t bytes = (size_t)(size.rows * size.width) * sizeof(float);
        float *values = malloc(bytes);
        if (!values) abort();
        for (int64_t row = 0; row < size.rows; row++)
            for (int32_t column = 0; column < size.width; column++)
                values[row * size.width + column] =
                    vlp_path_initial(&w->form, (vlp_path_table)table, row, column, 0);
        w->values.table[table] = on_device(w, values, bytes);
        w->grads.table[table] = device_zeros(w, bytes);
        free(values);
    }
}

static void open_work(work *w, const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, w->shape->data);
    need(vlp_dataset_open(&w->dataset, path, NULL));
    need(vlp_backend_find(&w->backend, "cuda"));
    need(w->backend->open(&w->compute, 0));
    const vlp_graph *rows = w->dataset->graph;
    vlp_path_graph host = {.entities = rows->entities,
                           .relations = 2 * rows->relations,
                           .triples = rows->edges,
                           .offset = rows->offset,
                           .neighbor = rows->neighbor,
                           .relation = rows->relation,
                           .triple = rows->edge};
    vlp_path_graph_measure(&host);
    need(vlp_path_keys_make(&w->keys_host, &host));
    size_t slots = 2 * (size_t)rows->edges * sizeof(int32_t), keys = (size_t)w->keys_host.count;
    w->graph = host;
    w->graph.offset = on_device(w, host.offset, ((size_t)host.entities + 1) * sizeof(int64_t));
    w->graph.neighbor = on_device(w, host.neighbor, slots);
    w->graph.relation = on_device(w, host.relation, slots);
    w->graph.triple = on_device(w, host.triple, slots);
    w->keys = w->keys_host;
    w->keys.heads = on_device(w, w->keys_host.heads, keys * sizeof(int32_t));
    w->keys.relations = on_device(w, w->keys_host.relations, keys * sizeof(int32_t));
    w->keys.offset = on_device(w, w->keys_host.offset, (keys + 1) * sizeof(int64_t));
    w->keys.turns = on_device(w, w->keys_host.turns, (size_t)w->keys_host.turn_count * sizeof(int32_t));
    w->form = (vlp_path_form){.layers = w->shape->layers,
                              .dim = (int32_t)setting("VLP_BENCH_DIM", 32),
                              .relations = host.relations,
                              .reached_only = w->shape->reached_only,
                              .bf16 = w->bf16};
    w->model = (vlp_path_model){&w->form, &w->values, &w->graph};
    open_tables(w);
}

static void time_steps(work *w) {
    int64_t steps = setting("VLP_BENCH_STEPS", 200), warm = steps < 20 ? 1 : 20;
    int64_t capacity = BATCH * w->keys_host.most_answers;
    vlp_path_batch batch = {.count = BATCH,
                            .heads = device_zeros(w, BATCH * sizeof(int32_t)),
                            .relations = device_zeros(w, BATCH * sizeof(int32_t)),
                            .answers = device_zeros(w, BATCH * sizeof(int64_t)),
                            .offset = device_zeros(w, (BATCH + 1) * sizeof(int64_t)),
                            .hidden = device_zeros(w, (size_t)capacity),
                            .capacity = capacity};
    vlp_path_options options = {.hiding = w->shape->pair ? VLP_PATH_HIDE_PAIR : VLP_PATH_HIDE_EDGE,
                                .far = w->shape->far,
                                .near = 3,
                                .prune = w->shape->prune};
    double *loss = device_zeros(w, sizeof *loss), host_loss = 0, start = seconds();
    vlp_plan *plan = w->backend->steps->plan_new(w->compute);
    for (int64_t step = 0; step < steps + warm; step++) {
        if (step == warm) {
            need(w->backend->memory->download(w->compute, &host_loss, loss, sizeof host_loss));
            start = seconds();
        }
        if (w->backend->steps->begin(w->compute, plan, &(vlp_step_values){.step = step})) continue;
        w->backend->paths->choose(w->compute, &batch, &w->keys, &(vlp_path_choice){.hidden = 0.5f});
        need(w->backend->paths->step(w->compute, loss, &w->grads, &w->model, &batch, &options));
        need(w->backend->steps->end(w->compute, plan));
    }
    need(w->backend->memory->download(w->compute, &host_loss, loss, sizeof host_loss));
    printf("%-18s %d layers: %6.3f ms per step of %d keys", w->shape->name, w->shape->layers,
           1e3 * (seconds() - start) / (double)steps, BATCH);
    if (w->shape->goal > 0) printf(" (goal %.1f)", w->shape->goal);
    printf(", loss %.4f\n", host_loss);
    w->backend->steps->plan_free(w->compute, plan);
}

/* The distinct keys of the test split's queries, or the first `limit`; one after the other as they come
 * first. */
static int64_t test_keys(int32_t *heads, int32_t *relations, const work *w, int64_t limit) {
    vlp_triple_list list = w->dataset->splits[VLP_TEST];
    int64_t count = 0;
    int32_t half = w->graph.relations / 2;
    uint8_t *seen = calloc((size_t)w->graph.entities * (size_t)w->graph.relations, 1);
    if (!seen) abort();
    for (int64_t i = 0; i < 2 * list.count && count < limit; i++) {
        vlp_triple triple = list.items[i % list.count];
        bool forward = i < list.count;
        int32_t head = forward ? triple.head : triple.tail;
        int32_t relation = triple.relation + (forward ? 0 : half);
        uint8_t *mark = seen + (int64_t)head * w->graph.relations + relation;
        if (*mark) continue;
        *mark = 1;
        heads[count] = head;
        relations[count++] = relation;
    }
    free(seen);
    return count;
}

static void time_scores(work *w) {
    vlp_triple_list list = w->dataset->splits[VLP_TEST];
    int64_t limit = setting("VLP_BENCH_QUERIES", 2 * list.count);
    size_t bytes = (size_t)(2 * list.count) * sizeof(int32_t);
    int32_t *heads = malloc(bytes), *relations = malloc(bytes);
    if (!heads || !relations) abort();
    int64_t count = test_keys(heads, relations, w, limit);
    int32_t *heads_on = on_device(w, heads, bytes), *relations_on = on_device(w, relations, bytes);
    float *scores = device_zeros(w, (size_t)SCORED * (size_t)w->graph.entities * sizeof *scores), one;
    double start = 0;
    for (int64_t first = -SCORED; first < count; first += SCORED) { /* the first to warm up */
        int64_t at = first < 0 ? 0 : first;
        if (first == 0) {
            need(w->backend->memory->download(w->compute, &one, scores, sizeof one));
            start = seconds();
        }
        vlp_path_queries queries = {.count = (int32_t)(count - at < SCORED ? count - at : SCORED),
                                    .heads = heads_on + at,
                                    .relations = relations_on + at};
        need(w->backend->paths->scores(w->compute, scores, &w->model, &queries));
    }
    need(w->backend->memory->download(w->compute, &one, scores, sizeof one));
    printf("%-18s %d layers: %6.3f s for the scores of %lld keys of %lld test queries", w->shape->name,
           w->shape->layers, seconds() - start, (long long)count, (long long)(2 * list.count));
    printf("\n");
    free(heads);
    free(relations);
}

static void set(vlp_settings *settings, const char *key, const char *value) {
    need(vlp_settings_set(settings, key, value, "bench"));
}

/* All that `vlp eval` computes of f_p: known answers filtered, both sides. */
static void time_evaluation(work *w) {
    vlp_settings settings;
    char layers[16];
    vlp_model *model = NULL;
    vlp_ranking *ranking = NULL;
    vlp_settings_default(&settings);
    snprintf(layers, sizeof layers, "%d", w->shape->layers);
    set(&settings, "model", "none");
    set(&settings, "path", "on");
    set(&settings, "path_layers", layers);
    set(&settings, "path_states", w->shape->reached_only ? "reached" : "all");
    set(&settings, "precision", w->bf16 ? "bf16" : "fp32");
    need(vlp_settings_check(&settings));
    vlp_model_shape of = vlp_settings_shape(&settings, w->dataset);
    need(vlp_model_new(&model, w->backend, w->compute, &of, true));
    need(vlp_model_init(model, 0, 1));
    vlp_mixture only = vlp_mixture_alone(VLP_PATH);
    vlp_ranking_options options = {
        .split = VLP_TEST, .filter = 7, .mixtures = &only, .mixture_count = 1};
    double best = 1e9;
    for (int round = 0; round < 2; round++) {
        double start = seconds();
        need(vlp_ranking_compute(&ranking, model, w->dataset, &options));
        if (seconds() - start < best) best = seconds() - start;
        if (round == 0) vlp_ranking_free(ranking);
    }
    printf("%-18s %d layers: %6.3f s for the ranks of %lld test queries (goal %.1f)\n", w->shape->name,
           w->shape->layers, best, (long long)ranking->queries, w->shape->score_goal);
    vlp_ranking_free(ranking);
    vlp_model_free(model);
}

static bool asked_for(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc < 2;
}

int main(int argc, char **argv) {
    const char *folder = getenv("VLP_BENCH_DATA"), *precision = getenv("VLP_BENCH_PRECISION");
    for (int i = 0; i < SHAPES; i++) {
        if (!asked_for(shapes[i].name, argc, argv)) continue;
        work w = {.shape = shapes + i, .bf16 = !precision || strcmp(precision, "fp32") != 0};
        open_work(&w, folder ? folder : "../shared/data");
        time_steps(&w);
        fflush(stdout);
        if (shapes[i].score_goal > 0) {
            time_scores(&w);
            if (!getenv("VLP_BENCH_QUERIES")) time_evaluation(&w);
        }
        fflush(stdout);
        vlp_path_keys_free(&w.keys_host);
        w.backend->close(w.compute);
        vlp_dataset_free(w.dataset);
    }
    return 0;
}
