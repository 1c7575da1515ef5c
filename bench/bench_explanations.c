/* Whether explanations are faithful. Of random queries of test whose answer has rank 1, the triples of
 * the explanation, at most four, are taken out of the graph: does the answer lose rank 1? Beside it as
 * many random triples, drawn from all that are on walks of at most L edges from the head entity to the
 * answer (L: the layers of the path model); and the references of the vertical component, the four that
 * cost the answer most.
 *
 *   bench_explanations RUN [PREDICTIONS [SEED]]   prints the rows of results/explanations.csv */
#include <string.h>

#include "base/order.h"
#include "bench.h"
#include "eval/mixture.h"
#include "run/run_internal.h"
#include "run/without.h"

enum { FAR = 1 << 20 };

typedef struct experiment {
    const vlp_run *run;
    const vlp_graph *graph;
    const vlp_filter *known;
    vlp_removal *removal;
    vlp_without *without;
    vlp_predictor *predictor;
    int32_t layers;
    int64_t predictions;
    uint64_t seed;
    int32_t *from_head, *from_answer, *queue; /* (entities) hops */
    int32_t *on_walks;                        /* (edges) */
} experiment;

/* Counts of a sample. */
typedef struct tally {
    int64_t predictions, asked;
    int64_t falls, random_falls;
    int64_t triples, sizes[VLP_SUPPORT_MAX + 1]; /* [0]: no set was found */
    int64_t scorings, walks;
    double seconds;
} tally;

/* ---- Random triples ------------------------------------------------------------------------------ */

static void measure(int32_t *hops, const experiment *all, int32_t source) {
    const vlp_graph *graph = all->graph;
    int64_t end = 1;
    for (int32_t v = 0; v < graph->entities; v++) hops[v] = FAR;
    hops[source] = 0;
    all->queue[0] = source;
    for (int64_t begin = 0; begin < end; begin++) {
        int32_t v = all->queue[begin];
        for (int64_t slot = graph->offset[v]; slot < graph->offset[v + 1]; slot++)
            if (hops[graph->neighbor[slot]] == FAR) {
                hops[graph->neighbor[slot]] = hops[v] + 1;
                all->queue[end++] = graph->neighbor[slot];
            }
    }
}

static int64_t find_walks(const experiment *all, int32_t head, int32_t answer) {
    int64_t count = 0;
    measure(all->from_head, all, head);
    measure(all->from_answer, all, answer);
    for (int64_t i = 0; i < all->graph->edges; i++) {
        vlp_triple triple = all->graph->triples[i];
        int32_t one = all->from_head[triple.head] + all->from_answer[triple.tail];
        int32_t other = all->from_head[triple.tail] + all->from_answer[triple.head];
        if ((one < other ? one : other) + 1 <= all->layers) all->on_walks[count++] = (int32_t)i;
    }
    return count;
}

static bool contains(const vlp_removed_set *set, int32_t triple) {
    for (int32_t i = 0; i < set->count; i++)
        if (set->triples[i] == triple) return true;
    return false;
}

static vlp_removed_set draw(const experiment *all, int64_t walks, int32_t wanted, int64_t number) {
    vlp_removed_set set = {.count = 0};
    for (uint32_t at = 0; set.count < wanted && set.count < walks; at++) {
        vlp_random4 random = vlp_random(all->seed, VLP_STREAM_TEST, (uint64_t)number, at);
        int32_t triple = all->on_walks[vlp_random_below(random.v[0], random.v[1], (uint32_t)walks)];
        if (!contains(&set, triple)) set.triples[set.count++] = triple;
    }
    return set;
}

/* ---- Samples ------------------------------------------------------------------------------------- */

/* Query `index` of both directions of test. */
static vlp_removal_answer query_of(const experiment *all, int64_t index, vlp_mixture mixture) {
    int64_t count;
    const vlp_dataset *data = vlp_run_dataset(all->run);
    const vlp_triple *test = vlp_dataset_triples(data, VLP_TEST, &count);
    vlp_triple triple = test[index % count];
    bool tail = index < count;
    int32_t relation = triple.relation + (tail ? 0 : vlp_dataset_relation_count(data));
    return (vlp_removal_answer){.query = {tail ? triple.head : triple.tail, relation, -1},
                                .answer = tail ? triple.tail : triple.head,
                                .known = all->known,
                                .mixture = mixture};
}

/* Whether two runs of the experiment take a query: its answer has rank 1. */
static bool first(vlp_removal_result *before, const experiment *all, const vlp_removal_answer *answer) {
    need(vlp_removal_begin(before, all->removal, answer));
    return before->rank == 1;
}

static void try_random(tally *sums, const experiment *all, const vlp_removal_answer *answer,
                       const vlp_removal_result *before, int32_t triples, int64_t number) {
    int64_t walks = find_walks(all, answer->query.entity, answer->answer);
    vlp_removed_set random = draw(all, walks, triples, number);
    vlp_removal_result result;
    need(vlp_removal_try(&result, all->removal, &random, 1));
    sums->walks += walks;
    sums->random_falls += vlp_removal_falls(before, &result);
}

static void try_paths(tally *sums, const experiment *all, const vlp_removal_answer *answer,
                      int64_t number) {
    vlp_carried carried;
    double start = seconds();
    need(vlp_without_find(&carried, all->without, answer, 3));
    sums->seconds += seconds() - start;
    sums->falls += carried.set.count > 0;
    sums->triples += carried.set.count;
    sums->sizes[carried.set.count]++;
    sums->scorings += carried.scorings;
    try_random(sums, all, answer, &carried.before,
               carried.set.count > 0 ? carried.set.count : VLP_SUPPORT_MAX, number);
}

/* Greedily, the references that cost the answer most. */
static void try_references(tally *sums, const experiment *all, const vlp_removal_answer *answer,
                           const vlp_removal_result *before, int64_t number) {
    vlp_top score;
    int32_t count = 0;
    need(vlp_predictor_score(&score, all->predictor, &answer->query, &answer->answer, 1));
    const vlp_references *references = vlp_predictor_references(all->predictor);
    const vlp_reference *list = references ? vlp_references_get(references, 0, &count) : NULL;
    vlp_removed_set set = {.count = 0}, *sets = calloc((size_t)count + 1, sizeof *sets);
    vlp_removal_result *results = calloc((size_t)count + 1, sizeof *results);
    double start = seconds();
    bool falls = false;
    while (!falls && set.count < VLP_SUPPORT_MAX && set.count < count) {
        int32_t tried = 0, best = 0;
        for (int32_t i = 0; i < count; i++) {
            if (contains(&set, list[i].edge)) continue;
            sets[tried] = set;
            sets[tried].triples[sets[tried].count++] = list[i].edge;
            tried++;
        }
        need(vlp_removal_try(results, all->removal, sets, tried));
        for (int32_t i = 1; i < tried; i++)
            if (results[i].margin < results[best].margin) best = i;
        set = sets[best];
        falls = vlp_removal_falls(before, &results[best]);
        sums->scorings += tried;
    }
    sums->seconds += seconds() - start;
    free(sets);
    free(results);
    sums->falls += falls;
    sums->triples += falls ? set.count : 0;
    sums->sizes[falls ? set.count : 0]++;
    try_random(sums, all, answer, before, falls ? set.count : VLP_SUPPORT_MAX, number);
}

static void sample(const experiment *all, const char *ranked_by, const char *taken, vlp_mixture mixture,
                   bool references) {
    tally sums = {0};
    int64_t test;
    vlp_dataset_triples(vlp_run_dataset(all->run), VLP_TEST, &test);
    for (; sums.asked < 2 * test && sums.predictions < all->predictions; sums.asked++) {
        int64_t index = vlp_permuted(sums.asked, 2 * test, all->seed, 0);
        vlp_removal_answer answer = query_of(all, index, mixture);
        vlp_removal_result before;
        if (!first(&before, all, &answer)) continue;
        sums.predictions++;
        if (references)
            try_references(&sums, all, &answer, &before, index);
        else
            try_paths(&sums, all, &answer, index);
    }
    double n = sums.predictions > 0 ? (double)sums.predictions : 1;
    printf("%s,%s,%lld,%lld,%.4f,%.4f,%.3f", ranked_by, taken, (long long)sums.predictions,
           (long long)sums.asked, (double)sums.falls / n, (double)sums.random_falls / n,
           sums.falls > 0 ? (double)sums.triples / (double)sums.falls : 0.0);
    for (int i = 0; i <= VLP_SUPPORT_MAX; i++) printf(",%lld", (long long)sums.sizes[i]);
    printf(",%.0f,%.1f,%.3f\n", (double)sums.walks / n, (double)sums.scorings / n, sums.seconds / n);
    fflush(stdout);
}

/* ---- The experiment ------------------------------------------------------------------------------ */

static void open_experiment(experiment *all, vlp_run *run, vlp_worker *worker) {
    size_t entities = (size_t)run->model->entities;
    vlp_predictor_options options = vlp_run_predictor_options(run, &worker->model, vlp_run_graph(run));
    all->graph = vlp_run_graph(run);
    need(vlp_run_known(&all->known, run, 0));
    need(vlp_run_predictor(&all->predictor, run, worker));
    need(vlp_removal_open(&all->removal, &options, 32));
    need(vlp_without_open(&all->without, all->removal, all->graph, all->layers));
    all->from_head = malloc(entities * sizeof(int32_t));
    all->from_answer = malloc(entities * sizeof(int32_t));
    all->queue = malloc(entities * sizeof(int32_t));
    all->on_walks = malloc((size_t)all->graph->edges * sizeof(int32_t));
    if (!all->from_head || !all->from_answer || !all->queue || !all->on_walks) exit(1);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_explanations RUN [PREDICTIONS [SEED]]\n");
        return 2;
    }
    vlp_run *run = NULL;
    vlp_worker *worker = NULL;
    need(vlp_run_open(&run, argv[1], NULL));
    if (!vlp_model_has(run->model, VLP_PATH)) {
        fprintf(stderr, "bench: %s has no path model: there are no paths to take out\n", argv[1]);
        return 1;
    }
    need(vlp_run_enter(&worker, run));
    experiment all = {.run = run,
                      .layers = run->model->path.layers,
                      .predictions = argc > 2 ? atoll(argv[2]) : 500,
                      .seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0};
    open_experiment(&all, run, worker);
    printf("ranked_by,taken_out,predictions,queries,falls,falls_random,triples,none,one,two,three,four,"
           "on_walks,scorings,seconds\n");
    vlp_mixture path = vlp_mixture_alone(VLP_PATH), vertical = vlp_mixture_alone(VLP_VERTICAL);
    sample(&all, "f_p", "explanation", path, false);
    if (run->model->components != 1u << VLP_PATH)
        sample(&all, "f", "explanation", vlp_run_mixture(run), false);
    if (vlp_model_has(run->model, VLP_VERTICAL)) sample(&all, "f_c", "references", vertical, true);
    vlp_without_close(all.without);
    vlp_removal_close(all.removal);
    free(all.from_head);
    free(all.from_answer);
    free(all.queue);
    free(all.on_walks);
    vlp_run_leave(run, worker);
    vlp_run_free(run);
    return 0;
}
