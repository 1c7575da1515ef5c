#include "learn/automatic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/distance.h"
#include "graph/walk.h"
#include "learn/trial.h"

/* What is known of a graph before anything is trained. */
typedef struct graph_facts {
    /* Share of triples whose entities another triple of train links: of train, of the validation split.
     */
    double linked_train, linked_valid;
    double within[VLP_PATH_MAX_LAYERS + 1]; /* share of validation pairs within so many hops */
    int64_t pairs;                          /* of the validation split that were looked at */
    int64_t needed_edges; /* of a large graph: those to read for a key at most; 0: all */
} graph_facts;

enum {
    SAMPLED_TRIPLES = 20000,
    SAMPLED_PAIRS = 500,
    LEAST_LAYERS = 3,
    MOST_LAYERS = 8,
    LEAST_PAIRS = 20,    /* below, the validation split decides nothing */
    ENOUGH_STEPS = 5000, /* of 32 keys: fewer cost accuracy on any graph seen so far */
    ENOUGH_PASSES = 4,
    TRIALS = 30,           /* as long as the first that fit into the time */
    MOST_PASSES = 10,      /* of those that no trial has chosen */
    LARGE_GRAPH = 1000000, /* triples: more are counted around a few entities first */
    WIDE_BALL = 1000000,   /* counting ends there */
    LEAST_EDGES = 10000,   /* read for a key, where not all within its layers are */
    MOST_EDGES = 100000,
    REFERENCE_EDGES = 2000, /* read for the references of a query there */
    SAMPLED_CANDIDATES = 4096
};

/* ---- The graph ----------------------------------------------------------------------------------- */

/* Whether another triple than `edge` (-1: any) links two entities. */
static bool is_linked(const vlp_graph *graph, int32_t a, int32_t b, int64_t edge) {
    int64_t of_a = graph->offset[a + 1] - graph->offset[a],
            of_b = graph->offset[b + 1] - graph->offset[b];
    int32_t row = of_a < of_b ? a : b, other = of_a < of_b ? b : a;
    for (int64_t slot = graph->offset[row]; slot < graph->offset[row + 1]; slot++)
        if (graph->neighbor[slot] == other && graph->edge[slot] != edge) return true;
    return false;
}

/* The i-th of `count` triples that are spread over a list. */
static int64_t spread(int64_t i, int64_t count, int64_t total) {
    return i * total / count;
}

static double linked_share(const vlp_graph *graph, const vlp_triple *triples, int64_t total, bool own) {
    int64_t count = total < SAMPLED_TRIPLES ? total : SAMPLED_TRIPLES, linked = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = spread(i, count, total);
        linked += is_linked(graph, triples[at].head, triples[at].tail, own ? at : -1);
    }
    return count > 0 ? (double)linked / (double)count : 0;
}

static int compare_counts(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The slots of the entities within `hops` of an entity; WIDE_BALL where they are more. */
static int64_t ball_slots(vlp_walk *walk, int32_t from, int32_t hops) {
    if (!vlp_walk_start(walk, from, -1)) return 0;
    vlp_walk_advance(walk, hops + 1);
    return walk->levels > hops + 1 ? walk->read : WIDE_BALL;
}

/* Of a large graph: the edges around an entity that reach nine of ten validation answers, from either
 * side, where all edges within LEAST_LAYERS hops are too many. Where they are not, and entities are
 * many, a limit that few keys meet: the memory of a GPU is planned for it. */
static vlp_status find_edges(graph_facts *facts, const vlp_graph *graph, const vlp_triple *pairs,
                             const int32_t *hops, int64_t count) {
    int64_t needed[2 * SAMPLED_PAIRS], reached = 0;
    double all = 0;
    if (graph->edges <= LARGE_GRAPH) return VLP_OK;
    vlp_walk walk;
    VLP_TRY(vlp_walk_new(&walk, graph, WIDE_BALL));
    for (int64_t i = 0; i < 2 * count; i++) {
        int32_t from = i < count ? pairs[i].head : pairs[i - count].tail, far = hops[i % count];
        all += (double)ball_slots(&walk, from, LEAST_LAYERS - 1);
        if (far >= 0 && far < VLP_WALK_LEVELS) needed[reached++] = ball_slots(&walk, from, far);
    }
    vlp_walk_free(&walk);
    if (reached == 0 || all / (2 * (double)count) <= 2 * MOST_EDGES) {
        if (graph->entities > WIDE_BALL) facts->needed_edges = WIDE_BALL;
        return VLP_OK;
    }
    qsort(needed, (size_t)reached, sizeof *needed, compare_counts);
    int64_t most = needed[reached * 9 / 10];
    facts->needed_edges = most < LEAST_EDGES ? LEAST_EDGES : most > MOST_EDGES ? MOST_EDGES : most;
    return VLP_OK;
}

/* Distances of as many validation pairs as a search over the graph allows in short time. */
static vlp_status find_distances(graph_facts *facts, const vlp_dataset *dataset) {
    const vlp_triple_list *valid = &dataset->splits[VLP_VALID];
    int64_t most = 200000000 / (dataset->graph->edges + dataset->graph->entities + 1);
    most = most < LEAST_PAIRS ? LEAST_PAIRS : most > SAMPLED_PAIRS ? SAMPLED_PAIRS : most;
    int64_t count = valid->count < most ? valid->count : most;
    vlp_skeleton *skeleton = NULL;
    vlp_triple pairs[SAMPLED_PAIRS];
    int32_t hops[SAMPLED_PAIRS];
    for (int64_t i = 0; i < count; i++) pairs[i] = valid->items[spread(i, count, valid->count)];
    VLP_TRY(vlp_skeleton_new(&skeleton, dataset->graph, dataset->threads));
    vlp_status status = vlp_skeleton_pairs(hops, skeleton, pairs, count, dataset->threads);
    vlp_skeleton_free(skeleton);
    VLP_TRY(status);
    VLP_TRY(find_edges(facts, dataset->graph, pairs, hops, count));
    for (int64_t i = 0; i < count; i++)
        for (int32_t l = hops[i] < 0 ? VLP_PATH_MAX_LAYERS + 1 : hops[i]; l <= VLP_PATH_MAX_LAYERS; l++)
            facts->within[l] += 1 / (double)count;
    facts->pairs = count;
    return VLP_OK;
}

static vlp_status find_facts(graph_facts *facts, const vlp_dataset *dataset) {
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN], *valid = &dataset->splits[VLP_VALID];
    *facts = (graph_facts){0};
    facts->linked_train = linked_share(dataset->graph, train->items, train->count, true);
    facts->linked_valid = linked_share(dataset->graph, valid->items, valid->count, false);
    return valid->count > 0 ? find_distances(facts, dataset) : VLP_OK;
}

/* ---- Choices ------------------------------------------------------------------------------------- */

typedef struct automatic {
    const vlp_automatic *from;
    vlp_trial trial;
    graph_facts facts;
    bool gpu;
    vlp_settings settings; /* of the path model, with model = none until embeddings are added */
    vlp_trial_result cost; /* of these settings */
    double embedding_time; /* s of the embeddings' part of the training */
    double started;
    int32_t trials;   /* that were trained to the end */
    bool long_enough; /* more passes were tried and did not help */
    double best;      /* validation MRR of the settings */
} automatic;

static bool is_given(const automatic *work, const char *name) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) return work->from->given[i];
    return false;
}

/* Sets what was not given. */
#define CHOOSE(work, member, value)                                                                     \
    do {                                                                                                \
        if (!is_given(work, #member)) (work)->settings.member = (value);                                \
    } while (0)

static double left(const automatic *work) {
    return work->from->deadline - vlp_trial_clock();
}

static double budget(const automatic *work) {
    return work->from->deadline - work->started;
}

/* Enough layers for the validation pairs that any number of them reaches, and one more. */
static int32_t layers_for(const graph_facts *facts) {
    if (facts->pairs < LEAST_PAIRS) return 5;
    int32_t layers = 1;
    while (layers < MOST_LAYERS && facts->within[layers] < 0.95 * facts->within[MOST_LAYERS]) layers++;
    layers += layers < MOST_LAYERS;
    return layers < LEAST_LAYERS ? LEAST_LAYERS : layers;
}

static void choose_path(automatic *work) {
    const graph_facts *facts = &work->facts;
    /* Where pairs of the validation split are hardly ever linked, but those of train are, the model has
     * to learn without links. */
    bool pair = facts->pairs >= LEAST_PAIRS && facts->linked_valid < 0.25 * facts->linked_train;
    CHOOSE(work, path, true);
    CHOOSE(work, path_layers, layers_for(facts));
    CHOOSE(work, path_hide, pair ? VLP_PATH_HIDE_PAIR : VLP_PATH_HIDE_EDGE);
    CHOOSE(work, path_edges, facts->needed_edges);
    CHOOSE(work, path_rate, 0.005);
    CHOOSE(work, path_far, work->gpu ? 1 : 0.125);
    CHOOSE(work, precision, VLP_PRECISION_BF16);
    CHOOSE(work, eval_every, 0);
    CHOOSE(work, save_every, 0);
    CHOOSE(work, path_passes, ENOUGH_PASSES);
}

static vlp_status measure(automatic *work) {
    double seconds = 0.01 * budget(work);
    vlp_progress(work->from->observer, "planning, seconds", (int64_t)(vlp_trial_clock() - work->started),
                 (int64_t)budget(work));
    return vlp_trial_measure(&work->cost, &work->trial, &work->settings,
                             seconds < 0.05 ? 0.05
                             : seconds > 3  ? 3
                                            : seconds);
}

/* ---- Embeddings ---------------------------------------------------------------------------------- */

/* Whether 1-to-All cross-entropy can be done in the time at all, by more operations a second than any
 * device has today: measuring it would take long. */
static bool has_time_for_all(const automatic *work, double passes) {
    const vlp_graph *graph = work->from->dataset->graph;
    double operations = 6 * passes * 2 * (double)graph->edges * graph->entities * 100;
    return operations / (work->gpu ? 1e16 : 1e13) < left(work);
}

/* Sampled negatives and rows that a step touches alone: a step costs the same on any graph. */
static void choose_sampled(automatic *work, double passes) {
    double queries = 2 * (double)work->from->dataset->graph->edges;
    CHOOSE(work, model, VLP_MODEL_COMPLEX);
    CHOOSE(work, dim, 64);
    CHOOSE(work, loss, VLP_LOSS_NEGATIVES);
    CHOOSE(work, negatives, 64);
    CHOOSE(work, negatives_from, VLP_NEGATIVES_UNIFORM);
    CHOOSE(work, query_weights, false);
    CHOOSE(work, vertical, false);
    if (work->from->dataset->graph->entities > SAMPLED_CANDIDATES)
        CHOOSE(work, candidates, SAMPLED_CANDIDATES);
    CHOOSE(work, references_edges, REFERENCE_EDGES);
    CHOOSE(work, optimizer, VLP_ADAGRAD);
    CHOOSE(work, rate, 0.1);
    CHOOSE(work, schedule, VLP_CONSTANT);
    CHOOSE(work, batch, 1000);
    CHOOSE(work, steps, (int64_t)ceil(passes * queries / work->settings.batch));
}

/* ComplEx against all entities with N3, for a number of passes over the queries of train; of another
 * model that was given, only the number of steps. */
static void choose_embeddings(automatic *work, double passes) {
    double queries = 2 * (double)work->from->dataset->graph->edges;
    if (!has_time_for_all(work, 1)) {
        choose_sampled(work, passes);
        return;
    }
    CHOOSE(work, model, VLP_MODEL_COMPLEX);
    if (vlp_model_is_dot(vlp_model_row_of(work->settings.model))) {
        CHOOSE(work, dim, work->settings.model != VLP_MODEL_COMPLEX ? 200 : work->gpu ? 1000 : 100);
        CHOOSE(work, loss, VLP_LOSS_CROSS_ENTROPY);
        if (vlp_model_has_n3(vlp_model_row_of(work->settings.model))) CHOOSE(work, n3, 0.05);
        CHOOSE(work, init_scale, 0.001);
        CHOOSE(work, query_weights, false);
        CHOOSE(work, vertical, false);
        CHOOSE(work, optimizer, VLP_ADAGRAD);
        CHOOSE(work, rate, 0.1);
        CHOOSE(work, schedule, VLP_CONSTANT);
        CHOOSE(work, batch, queries < 8000 ? (int32_t)fmax(queries / 8, 1) : 1000);
    }
    CHOOSE(work, steps, (int64_t)ceil(passes * queries / work->settings.batch));
}

static double passes_to_steps(const automatic *work, double passes) {
    return passes * (double)work->cost.steps / work->settings.path_passes;
}

/* Seconds of a training with these settings, its last evaluation included. */
static double training_time(const automatic *work) {
    int64_t valid = work->from->dataset->splits[VLP_VALID].count, ranked = work->settings.eval_triples;
    if (ranked == 0 || ranked > valid) ranked = valid;
    return work->embedding_time + work->cost.setup + work->cost.step * (double)work->cost.steps +
           work->cost.evaluation * (double)ranked;
}

/* Of the last evaluation at most a tenth of the time. */
static void limit_evaluation(automatic *work) {
    double all = work->cost.evaluation * (double)work->from->dataset->splits[VLP_VALID].count;
    double allowed = 0.1 * budget(work);
    if (all <= allowed || work->cost.evaluation <= 0) return;
    double most = allowed / work->cost.evaluation;
    CHOOSE(work, eval_triples, most < LEAST_PAIRS ? LEAST_PAIRS : (int64_t)most);
}

/* As few layers as the time asks for; then as many passes as it allows. */
static vlp_status fit_time(automatic *work) {
    VLP_TRY(measure(work));
    limit_evaluation(work);
    for (;;) {
        double steps = 0.7 * left(work) / (work->cost.step > 0 ? work->cost.step : 1e-9);
        double wanted = fmin(ENOUGH_STEPS, passes_to_steps(work, 1.2));
        if (steps >= wanted || work->settings.path_layers <= LEAST_LAYERS ||
            is_given(work, "path_layers"))
            break;
        work->settings.path_layers--;
        VLP_TRY(measure(work));
        limit_evaluation(work);
    }
    return VLP_OK;
}

/* ---- Comparing settings on the validation split -------------------------------------------------- */

/* A change to the settings; false: it does not apply. */
typedef struct move {
    const char *setting;
    bool (*apply)(vlp_settings *settings);
} move;

static bool longer(vlp_settings *settings) {
    settings->path_passes *= 2;
    return settings->path_passes <= 256;
}

static bool shorter(vlp_settings *settings) {
    settings->path_passes /= 2;
    return settings->path_passes >= 0.5;
}

static bool drop_more(vlp_settings *settings) {
    settings->path_drop += 0.3;
    return settings->path_drop < 0.8;
}

static bool drop_less(vlp_settings *settings) {
    settings->path_drop -= 0.15;
    return settings->path_drop > 0.1;
}

static bool hide_all(vlp_settings *settings) {
    bool changes = settings->path_hidden < 1;
    settings->path_hidden = 1;
    return changes;
}

static bool deeper(vlp_settings *settings) {
    settings->path_layers += settings->path_layers < 5 ? 1 : 2;
    return settings->path_layers <= MOST_LAYERS;
}

static bool all_states(vlp_settings *settings) {
    bool changes = settings->path_states == VLP_PATH_STATES_REACHED && settings->path_edges == 0;
    settings->path_states = VLP_PATH_STATES_ALL;
    return changes;
}

static bool hide_otherwise(vlp_settings *settings) {
    settings->path_hide =
        settings->path_hide == VLP_PATH_HIDE_EDGE ? VLP_PATH_HIDE_PAIR : VLP_PATH_HIDE_EDGE;
    return true;
}

/* What changes most comes first, and passes, which cost most, late. */
static const move moves[] = {
    {"path_drop", drop_more}, {"path_hide", hide_otherwise}, {"path_hidden", hide_all},
    {"path_passes", longer},  {"path_layers", deeper},       {"path_passes", shorter},
    {"path_drop", drop_less}, {"path_states", all_states},
};
enum { MOVES = sizeof moves / sizeof *moves };

#define WORTH 0.003 /* of validation MRR: below, a change is chance */

/* Trains with other settings and keeps them where they are better. *better: they are. */
static vlp_status try_settings(automatic *work, const vlp_settings *settings, bool *better) {
    vlp_trial_result result;
    VLP_TRY(vlp_trial_train(&result, &work->trial, settings));
    work->trials++;
    *better = result.mrr > work->best + WORTH;
    if (!*better) return VLP_OK;
    work->best = result.mrr;
    work->settings = *settings;
    work->cost = result;
    return VLP_OK;
}

/* Whether there is time for a trial that takes `factor` times the last training, and after it for the
 * training itself. */
static bool has_time(const automatic *work, double factor) {
    double once = training_time(work);
    return left(work) > once * (factor + (factor > 1 ? factor : 1)) + 0.15 * budget(work);
}

/* One change at a time, each as long as it helps, until none does. */
static vlp_status search(automatic *work) {
    int32_t idle = 0; /* moves in a row that did not help */
    bool better;
    work->best = -1;
    double pass = work->cost.step * passes_to_steps(work, 1);
    CHOOSE(work, path_passes, fmin(ENOUGH_PASSES, fmax(0.5, budget(work) / (TRIALS * pass))));
    vlp_settings start = work->settings;
    VLP_TRY(try_settings(work, &start, &better));
    for (int32_t i = 0; idle < MOVES; i = (i + 1) % MOVES, idle++) {
        if (is_given(work, moves[i].setting)) continue;
        for (;;) {
            vlp_settings next = work->settings;
            if (!moves[i].apply(&next)) break;
            double factor = next.path_passes / work->settings.path_passes * (double)next.path_layers /
                            work->settings.path_layers;
            if (!has_time(work, factor)) break;
            VLP_TRY(try_settings(work, &next, &better));
            vlp_progress(work->from->observer, "planning, seconds",
                         (int64_t)(vlp_trial_clock() - work->started), (int64_t)budget(work));
            if (moves[i].apply == longer) work->long_enough = !better;
            if (!better) break;
            idle = -1;
        }
    }
    return VLP_OK;
}

/* ---- Embeddings beside the path model ------------------------------------------------------------ */

enum { EMBEDDING_PASSES = 30, MOST_EMBEDDING_PASSES = 100 };

/* Seconds of the embeddings' part of a training, for a number of passes. */
static vlp_status measure_embeddings(automatic *work, double *seconds) {
    vlp_settings path = work->settings;
    vlp_trial_result cost;
    choose_embeddings(work, EMBEDDING_PASSES);
    vlp_settings alone = work->settings;
    alone.path = false;
    work->settings = path;
    double measured = fmin(0.01 * budget(work), 2);
    VLP_TRY(vlp_trial_measure(&cost, &work->trial, &alone, measured));
    *seconds = cost.setup + cost.step * (double)cost.steps;
    return VLP_OK;
}

/* Adds embeddings where the sum is better on the validation split, or, where trials take too long, where
 * they are cheap: the sum is chosen on the validation split in any case. */
static vlp_status add_embeddings(automatic *work, bool asked) {
    double seconds, part = work->trials > 0 ? 0.4 : 0.25;
    if (!asked && !has_time_for_all(work, EMBEDDING_PASSES)) return VLP_OK;
    VLP_TRY(measure_embeddings(work, &seconds));
    if (!asked && seconds > part * left(work)) return VLP_OK;
    vlp_settings path = work->settings;
    choose_embeddings(work, EMBEDDING_PASSES);
    if (seconds > part * left(work)) { /* asked for: as much as there is time for */
        double share = part * left(work) / seconds;
        CHOOSE(work, steps, (int64_t)fmax(share * (double)work->settings.steps, 1));
        seconds *= share;
    }
    work->embedding_time = seconds;
    if (asked || work->trials == 0) return VLP_OK;
    if (!has_time(work, 1)) {
        work->settings = path;
        work->embedding_time = 0;
        return VLP_OK;
    }
    /* More weight of N3 as long as it helps. */
    vlp_settings best = path, next = work->settings;
    bool better = true;
    for (int i = 0; better && i < 4 && has_time(work, 1); i++) {
        vlp_trial_result cost = work->cost;
        work->settings = best;
        VLP_TRY(try_settings(work, &next, &better));
        best = work->settings;
        work->cost = cost;
        if (is_given(work, "n3")) break;
        next.n3 *= 4;
    }
    if (best.model == path.model) work->embedding_time = 0;
    return VLP_OK;
}

/* Without the path model: as many steps as there is time for. */
static vlp_status plan_embeddings_alone(automatic *work) {
    CHOOSE(work, eval_every, 0);
    CHOOSE(work, save_every, 0);
    CHOOSE(work, precision, VLP_PRECISION_BF16);
    choose_embeddings(work, MOST_EMBEDDING_PASSES);
    VLP_TRY(measure(work));
    limit_evaluation(work);
    double fixed = training_time(work) - work->cost.step * (double)work->cost.steps;
    double steps = (0.93 * left(work) - fixed) / (work->cost.step > 0 ? work->cost.step : 1e-9);
    if (steps < (double)work->settings.steps) CHOOSE(work, steps, (int64_t)fmax(steps, 1));
    work->cost.steps = work->settings.steps;
    return VLP_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static void say_graph(const automatic *work) {
    const vlp_dataset *dataset = work->from->dataset;
    const graph_facts *facts = &work->facts;
    vlp_log(work->from->observer, "plan: %d entities, %d relations, %lld triples",
            dataset->graph->entities, dataset->graph->relations, (long long)dataset->graph->edges);
    if (facts->pairs > 0)
        vlp_log(work->from->observer,
                "plan: of the validation pairs %.0f%% are linked in train (of those of train %.0f%%), "
                "%.0f%% are within 3 hops, %.0f%% within %d",
                100 * facts->linked_valid, 100 * facts->linked_train, 100 * facts->within[3],
                100 * facts->within[MOST_LAYERS], MOST_LAYERS);
    else
        vlp_log(work->from->observer, "plan: without a validation split nothing can be compared");
}

static void say_components(const automatic *work) {
    const vlp_settings *settings = &work->settings;
    char path[160] = "", embeddings[96] = "";
    if (settings->path)
        snprintf(path, sizeof path,
                 "the path model with %d layers, %s hidden, %.0f%% of the others dropped",
                 settings->path_layers,
                 settings->path_hide == VLP_PATH_HIDE_PAIR ? "all edges of a pair" : "an answer's edge",
                 100 * settings->path_drop);
    if (settings->model != VLP_MODEL_NONE)
        snprintf(embeddings, sizeof embeddings, "%s%s of dimension %d, %lld steps",
                 settings->path ? ", and " : "", vlp_model_names[settings->model], settings->dim,
                 (long long)settings->steps);
    vlp_log(work->from->observer, "plan: %s%s", path, embeddings);
}

static void say_plan(const automatic *work) {
    double seconds = training_time(work);
    say_components(work);
    if (work->trials > 0)
        vlp_log(work->from->observer, "plan: chosen by %d trials on the validation split, MRR %.4f",
                work->trials, work->best);
    if (work->settings.path)
        vlp_log(work->from->observer, "plan: %.3g passes of the path model, %lld steps of %.3g ms",
                work->settings.path_passes, (long long)work->cost.steps, 1e3 * work->cost.step);
    vlp_log(work->from->observer, "plan: the model takes %.0f MB of %s memory, %.1f GB are free",
            ceil(1e-6 * (double)work->cost.bytes), work->gpu ? "the GPU's" : "the host's",
            1e-9 * (double)work->cost.free_bytes);
    vlp_log(work->from->observer, "plan: %.0f s are spent, training will take about %.0f s",
            vlp_trial_clock() - work->started, seconds);
}

/* As many passes as there is time for. */
static void fill_time(automatic *work) {
    double fixed = training_time(work) - work->cost.step * (double)work->cost.steps;
    double steps = (0.93 * left(work) - fixed) / (work->cost.step > 0 ? work->cost.step : 1e-9);
    double one = passes_to_steps(work, 1), passes = fmax(steps, 1) / one;
    if (is_given(work, "path_passes")) return;
    /* Where trials said that more passes do not help, there are no more. */
    if (work->trials > 0 && work->long_enough && passes > work->settings.path_passes) return;
    double most = fmax(ENOUGH_PASSES, fmin(MOST_PASSES, 2 * ENOUGH_STEPS / one));
    if (work->trials > 0) most = 8 * work->settings.path_passes;
    work->cost.steps = (int64_t)ceil(fmin(passes, most) * one);
    work->settings.path_passes = fmin(passes, most);
}

static vlp_status plan_paths(automatic *work) {
    int32_t asked = work->settings.model;
    bool embeds = is_given(work, "model") && asked != VLP_MODEL_NONE;
    work->settings.model = VLP_MODEL_NONE;
    choose_path(work);
    VLP_TRY(fit_time(work));
    if (work->facts.pairs >= LEAST_PAIRS && has_time(work, 4)) VLP_TRY(search(work));
    bool none = is_given(work, "model") && !embeds;
    if (embeds) work->settings.model = asked;
    if (!none) VLP_TRY(add_embeddings(work, embeds));
    fill_time(work);
    return VLP_OK;
}

vlp_status vlp_automatic_settings(vlp_settings *settings, const vlp_automatic *from) {
    const vlp_backend *backend;
    VLP_TRY(vlp_backend_find(&backend, from->device ? from->device : "auto"));
    automatic work = {.from = from,
                      .trial = {from->dataset, from->device, from->observer, NULL},
                      .gpu = backend != &vlp_cpu_backend,
                      .settings = *settings,
                      .started = vlp_trial_clock()};
    VLP_TRY(find_facts(&work.facts, from->dataset));
    say_graph(&work);
    VLP_TRY(is_given(&work, "path") && !settings->path ? plan_embeddings_alone(&work)
                                                       : plan_paths(&work));
    say_plan(&work);
    *settings = work.settings;
    return vlp_settings_check(settings);
}
