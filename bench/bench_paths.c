/* Trains the path model by itself with a minimal loop (AdamW, warm-up over 200 steps, cosine to 0, norm
 * of the gradient clipped at 1), and prints seconds per 1,000 keys and the filtered MRR.
 *
 *   bench_paths DIR [NAME=VALUE]...
 *
 * layers 6, dim 32, keys (one pass), batch 32, rate .003, seed 0, threads (all), reached 1
 * (reached_only), limit 0, pair 0, drop 0, hidden .5, far 1, near 3, prune 0, bf16 0, parts 8
 * (validations on the way, over `queries` 2000), test 1; version avx512, avx2 or plain. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "compute/cpu/paths_kernels.h"
#include "graph/dataset.h"

typedef struct bench_options {
    double layers, dim, keys, batch, rate, seed, threads, reached, limit, pair, drop, hidden, far, near,
        prune, bf16, parts, queries, test;
    const char *version;
} bench_options;

static bench_options options = {.layers = 6,
                                .dim = 32,
                                .batch = 32,
                                .rate = 3e-3,
                                .reached = 1,
                                .hidden = 0.5,
                                .far = 1,
                                .near = 3,
                                .parts = 8,
                                .queries = 2000,
                                .test = 1};

static void set_option(const char *text) {
    static const struct {
        const char *name;
        double *value;
    } names[] = {
        {"layers", &options.layers},   {"dim", &options.dim},         {"keys", &options.keys},
        {"batch", &options.batch},     {"rate", &options.rate},       {"seed", &options.seed},
        {"threads", &options.threads}, {"reached", &options.reached}, {"limit", &options.limit},
        {"pair", &options.pair},       {"drop", &options.drop},       {"hidden", &options.hidden},
        {"far", &options.far},         {"near", &options.near},       {"prune", &options.prune},
        {"bf16", &options.bf16},       {"parts", &options.parts},     {"queries", &options.queries},
        {"test", &options.test}};
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 7 && strncmp(text, "version", 7) == 0) {
        options.version = equals + 1;
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i].name) && strncmp(text, names[i].name, length) == 0) {
            *names[i].value = strtod(equals + 1, NULL);
            return;
        }
    fprintf(stderr, "bench: there is no option '%s'\n", text);
    exit(2);
}

/* ---- The model ----------------------------------------------------------------------------------- */

static const vlp_backend *const backend = &vlp_cpu_backend;
static vlp_compute *compute;
static vlp_dataset *dataset;
static vlp_path_form form;
static vlp_path_graph graph;
static vlp_path_keys keys;
static vlp_path_tables values, grads, first, second;
static vlp_path_model model = {&form, &values, &graph};

static void *zeros(size_t bytes) {
    void *memory = backend->memory->allocate(compute, bytes);
    if (!memory) abort();
    return memory;
}

static int64_t size_of(int table) {
    vlp_path_shape shape = vlp_path_table_shape(&form, (vlp_path_table)table);
    return shape.rows * shape.width;
}

static void open_model(void) {
    const vlp_graph *rows = dataset->graph;
    graph = (vlp_path_graph){.entities = rows->entities,
                             .relations = 2 * rows->relations,
                             .triples = rows->edges,
                             .offset = rows->offset,
                             .neighbor = rows->neighbor,
                             .relation = rows->relation,
                             .triple = rows->edge};
    vlp_path_graph_measure(&graph);
    need(vlp_path_keys_make(&keys, &graph));
    form = (vlp_path_form){.layers = (int32_t)options.layers,
                           .dim = (int32_t)options.dim,
                           .relations = graph.relations,
                           .reached_only = options.reached != 0,
                           .edge_limit = (int64_t)options.limit,
                           .bf16 = options.bf16 != 0};
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        vlp_path_shape shape = vlp_path_table_shape(&form, (vlp_path_table)table);
        size_t bytes = (size_t)size_of(table) * sizeof(float);
        values.table[table] = zeros(bytes);
        grads.table[table] = zeros(bytes);
        first.table[table] = zeros(bytes);
        second.table[table] = zeros(bytes);
        for (int64_t row = 0; row < shape.rows; row++)
            for (int32_t column = 0; column < shape.width; column++)
                values.table[table][row * shape.width + column] =
                    vlp_path_initial(&form, (vlp_path_table)table, row, column, (uint64_t)options.seed);
    }
}

static void update(double rate, int64_t step) {
    double square = 0, correction1 = 1 - pow(0.9, (double)step),
           correction2 = 1 - pow(0.999, (double)step);
    for (int table = 0; table < VLP_PATH_TABLES; table++)
        for (int64_t i = 0; i < size_of(table); i++)
            square += (double)grads.table[table][i] * (double)grads.table[table][i];
    float scale = square > 1 ? (float)(1 / sqrt(square)) : 1;
    float size = (float)(rate / correction1), root = (float)(1 / sqrt(correction2));
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        float *x = values.table[table], *m = first.table[table], *v = second.table[table];
        const float *g = grads.table[table];
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < size_of(table); i++) {
            float grad = scale * g[i];
            m[i] = 0.9f * m[i] + 0.1f * grad;
            v[i] = 0.999f * v[i] + 0.001f * grad * grad;
            x[i] -= size * m[i] / (root * sqrtf(v[i]) + 1e-8f);
        }
    }
}

/* ---- Evaluation ---------------------------------------------------------------------------------- */

/* The realistic rank of an answer, known ones left out. */
static double rank_of(const float *scores, int32_t answer, const int32_t *known, int64_t count) {
    int64_t above = 0, equal = 0;
    for (int32_t v = 0; v < graph.entities; v++) {
        above += scores[v] > scores[answer];
        equal += scores[v] == scores[answer];
    }
    for (int64_t i = 0; i < count; i++) {
        above -= scores[known[i]] > scores[answer];
        equal -= known[i] != answer && scores[known[i]] == scores[answer];
    }
    return (double)above + (double)(equal + 1) / 2;
}

/* The mean reciprocal rank of a split's queries in both directions, or of about `limit` of them. */
static void evaluate(vlp_split split, int64_t limit) {
    enum { AT_ONCE = 256 };
    vlp_filter *filter = NULL;
    vlp_triple_list list = dataset->splits[split];
    int32_t half = graph.relations / 2, heads[AT_ONCE], relations[AT_ONCE], answers[AT_ONCE];
    int64_t queries = 2 * list.count, stride = limit > 0 && limit < queries ? queries / limit : 1;
    double start = seconds(), sum = 0, hits = 0, hits10 = 0, count = 0;
    need(vlp_filter_new(&filter, dataset, (2u << split) - 1)); /* the split and those before it */
    float *scores = zeros((size_t)AT_ONCE * (size_t)graph.entities * sizeof *scores);
    for (int64_t at = 0; at < queries;) {
        int32_t batch = 0;
        for (; at < queries && batch < AT_ONCE; at += stride, batch++) {
            vlp_triple triple = list.items[at % list.count];
            bool forward = at < list.count;
            heads[batch] = forward ? triple.head : triple.tail;
            relations[batch] = triple.relation + (forward ? 0 : half);
            answers[batch] = forward ? triple.tail : triple.head;
        }
        need(backend->paths->scores(
            compute, scores, &model,
            &(vlp_path_queries){.count = batch, .heads = heads, .relations = relations}));
        for (int32_t i = 0; i < batch; i++) {
            int64_t known;
            const int32_t *items = vlp_filter_answers(filter, heads[i], relations[i], &known);
            double rank = rank_of(scores + (int64_t)i * graph.entities, answers[i], items, known);
            sum += 1 / rank;
            hits += rank <= 1;
            hits10 += rank <= 10;
            count++;
        }
    }
    printf("  %s MRR %.4f, Hits@1 %.4f, Hits@10 %.4f over %.0f queries in %.1f s\n",
           split == VLP_TEST ? "test" : "validation", sum / count, hits / count, hits10 / count, count,
           seconds() - start);
    fflush(stdout);
    backend->memory->release(compute, scores);
    vlp_filter_free(filter);
}

/* ---- Training ------------------------------------------------------------------------------------ */

static void train(void) {
    int32_t count = (int32_t)options.batch;
    int64_t all = options.keys > 0 ? (int64_t)options.keys : keys.count, steps = all / count;
    int64_t capacity = count * keys.most_answers, warm = steps / 4 < 200 ? steps / 4 + 1 : 200;
    int64_t part = options.parts > 0 ? steps / (int64_t)options.parts + 1 : steps + 1;
    vlp_path_batch batch = {.count = count,
                            .heads = zeros((size_t)count * sizeof(int32_t)),
                            .relations = zeros((size_t)count * sizeof(int32_t)),
                            .answers = zeros((size_t)count * sizeof(int64_t)),
                            .offset = zeros((size_t)(count + 1) * sizeof(int64_t)),
                            .hidden = zeros((size_t)capacity),
                            .capacity = capacity};
    vlp_path_choice choice = {(uint64_t)options.seed, (float)options.hidden};
    vlp_path_options how = {.seed = (uint64_t)options.seed,
                            .hiding = options.pair != 0 ? VLP_PATH_HIDE_PAIR : VLP_PATH_HIDE_EDGE,
                            .drop = (float)options.drop,
                            .far = (float)options.far,
                            .near = (int32_t)options.near,
                            .prune = (float)options.prune};
    double spent = 0, losses = 0;
    for (int64_t step = 0; step < steps; step++) {
        double start = seconds(), loss;
        backend->steps->begin(compute, NULL, &(vlp_step_values){.step = step});
        backend->paths->choose(compute, &batch, &keys, &choice);
        need(backend->paths->step(compute, &loss, &grads, &model, &batch, &how));
        double cosine = 0.5 * (1 + cos(3.14159265 * (double)step / (double)steps));
        update(options.rate * fmin(1, (double)(step + 1) / (double)warm) * cosine, step + 1);
        spent += seconds() - start;
        losses += loss;
        if ((step + 1) % part != 0 && step + 1 != steps) continue;
        printf("%lld keys, %.1f s, %.3f s per 1,000 keys, loss %.4f\n", (long long)(step + 1) * count,
               spent, 1000 * spent / (double)((step + 1) * count), losses / (double)((step % part) + 1));
        fflush(stdout);
        losses = 0;
        if (options.queries > 0) evaluate(VLP_VALID, (int64_t)options.queries);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_paths DIR [NAME=VALUE]...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) set_option(argv[i]);
    need(vlp_dataset_open(&dataset, argv[1], NULL));
    need(backend->open(&compute, (int32_t)options.threads));
    for (const path_kernels *const *version = path_kernel_versions; options.version && *version;
         version++)
        if (strcmp((*version)->name, options.version) == 0) need(cpu_paths_use(compute, *version));
    open_model();
    printf("%d entities, %d relations, %lld triples, %lld keys; %d layers of %d\n", graph.entities,
           graph.relations / 2, (long long)graph.triples, (long long)keys.count, form.layers, form.dim);
    train();
    if (options.test != 0) evaluate(VLP_TEST, 0);
    return 0;
}
