/* Explanations of the path component: removals against graphs without the triples, and what is said of
 * an answer against what happens to it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/mixture.h"
#include "eval/path_graph.h"
#include "failing_allocator.h"
#include "run/without.h"
#include "tiny_run.h"

/* ---- Removals ------------------------------------------------------------------------------------ */

/* f_p of all entities over a graph of these triples; the mean degree is that of the run's graph. */
static void path_scores_of(float *out, const vlp_run *run, const vlp_triple *triples, int64_t count,
                           vlp_query query) {
    const vlp_model *model = run->model;
    const vlp_memory_operations *memory = model->backend->memory;
    const vlp_graph *whole = vlp_run_graph(run);
    vlp_graph *graph = NULL;
    vlp_path_resident resident;
    must(vlp_graph_new(&graph, triples, count, whole->entities, whole->relations, 1));
    must(vlp_path_resident_open(&resident, model, graph));
    vlp_path_graph measured = vlp_path_graph_of(whole);
    resident.graph.mean_log_degree = measured.mean_log_degree;
    resident.graph.frequent_classes = measured.frequent_classes;
    vlp_path_tables values = vlp_model_path_values(model);
    vlp_path_model read = {&model->path, &values, &resident.graph};
    int32_t *ids = memory->allocate(model->compute, 2 * sizeof *ids);
    size_t bytes = (size_t)whole->entities * sizeof *out;
    float *scores = memory->allocate(model->compute, bytes);
    must(
        memory->upload(model->compute, ids, (int32_t[]){query.entity, query.relation}, 2 * sizeof *ids));
    vlp_path_queries asked = {.count = 1, .heads = ids, .relations = ids + 1};
    must(model->backend->paths->scores(model->compute, scores, &read, &asked));
    must(memory->download(model->compute, out, scores, bytes));
    memory->release(model->compute, ids);
    memory->release(model->compute, scores);
    vlp_path_resident_close(&resident, model);
    vlp_graph_free(graph);
}

static double rank_of(const vlp_run *run, const float *scores, vlp_query query, int32_t answer) {
    vlp_filter *known = NULL;
    double rank = 1;
    must(vlp_filter_new(&known, vlp_run_dataset(run), 7));
    for (int32_t e = 0; e < run->model->entities; e++) {
        if (e == answer || vlp_filter_has(known, query.entity, query.relation, e)) continue;
        rank += scores[e] > scores[answer] ? 1 : scores[e] == scores[answer] ? 0.5 : 0;
    }
    vlp_filter_free(known);
    return rank;
}

/* The graph's triples without some; returns their number. */
static int64_t leave_out(vlp_triple *out, const vlp_graph *graph, const vlp_triple *removed,
                         int32_t count) {
    int64_t used = 0;
    for (int64_t i = 0; i < graph->edges; i++) {
        bool stays = true;
        for (int32_t j = 0; j < count; j++)
            stays = stays && memcmp(&graph->triples[i], &removed[j], sizeof *removed) != 0;
        if (stays) out[used++] = graph->triples[i];
    }
    return used;
}

static const char *const path_alone[] = {
    "model=none",    "path=on",       "path_layers=3",  "path_dim=8",
    "path_passes=6", "path_warmup=2", "path_rate=0.01", NULL};

/* As tiny_run_make, for a run without embeddings. */
static void path_run_open(tiny_run *tiny, const char *const *settings) {
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    while (settings[options.setting_count]) options.setting_count++;
    must(vlp_train(NULL, tiny->data, tiny->path, &options));
    must(vlp_run_open(&tiny->run, tiny->path, NULL));
    tiny->dataset = vlp_run_dataset(tiny->run);
}

/* A removal for the first worker of a run. */
static void removal_open(vlp_removal **out, vlp_worker **worker, const vlp_run *run) {
    must(vlp_run_enter(worker, run));
    vlp_predictor_options options =
        vlp_run_predictor_options(run, &(*worker)->model, vlp_run_graph(run));
    must(vlp_removal_open(out, &options, 32));
}

/* A removed triple is a graph without it. */
static void removals(void **state) {
    (void)state;
    tiny_run tiny, made;
    tiny_run_make(&made, NULL, 21); /* for its data */
    tiny = made;
    snprintf(tiny.path, sizeof tiny.path, "%s/paths", made.folder);
    path_run_open(&tiny, path_alone);
    const vlp_graph *graph = vlp_run_graph(tiny.run);
    vlp_removal *removal = NULL;
    vlp_worker *worker = NULL;
    const vlp_filter *known = NULL;
    removal_open(&removal, &worker, tiny.run);
    must(vlp_run_known(&known, tiny.run, 0));
    oracle_random random = {7, 0, 0};
    float scores[64];
    vlp_triple left[256];
    int32_t changed = 0;
    for (int i = 0; i < 40; i++) {
        /* Every fourth leaves a triple out by itself. */
        vlp_query query = {oracle_below(&random, 26), oracle_below(&random, 6),
                           i % 4 == 3 ? oracle_below(&random, (int32_t)graph->edges) : -1};
        vlp_removal_answer answer = {query, oracle_below(&random, 26), known,
                                     vlp_mixture_alone(VLP_PATH)};
        vlp_removed_set sets[40] = {{{0}, 0}};
        vlp_removal_result before, results[40];
        int32_t count = i % 2 ? 5 : 40; /* more than a batch */
        for (int32_t j = 0; j < count; j++) {
            sets[j].count = j % (VLP_REMOVAL_MAX + 1);
            for (int32_t k = 0; k < sets[j].count; k++)
                sets[j].triples[k] = (7 * k + oracle_below(&random, 7)) % (int32_t)graph->edges;
        }
        must(vlp_removal_begin(&before, removal, &answer));
        must(vlp_removal_try(results, removal, sets, count));
        for (int32_t j = 0; j < count; j++) {
            vlp_triple removed[VLP_REMOVAL_MAX + 1];
            int32_t used = 0;
            for (; used < sets[j].count; used++) removed[used] = graph->triples[sets[j].triples[used]];
            if (query.left_out >= 0) removed[used++] = graph->triples[query.left_out];
            int64_t edges = leave_out(left, graph, removed, used);
            path_scores_of(scores, tiny.run, left, edges, query);
            near(results[j].parts[VLP_PATH], (double)scores[answer.answer]);
            near(results[j].score, (double)scores[answer.answer]);
            assert_true(results[j].rank == rank_of(tiny.run, scores, query, answer.answer));
            if (sets[j].count == 0)
                assert_true(results[j].parts[VLP_PATH] == before.parts[VLP_PATH] &&
                            results[j].margin == before.margin &&
                            results[j].competitor == before.competitor);
            if (results[j].competitor < 0)
                assert_true(results[j].margin == (double)INFINITY);
            else
                near(results[j].margin,
                     (double)scores[answer.answer] - (double)scores[results[j].competitor]);
            if (results[j].rank > before.rank) assert_true(results[j].margin <= 0);
            changed += results[j].rank > before.rank;
        }
    }
    assert_true(changed > 20);
    vlp_removal_close(removal);
    vlp_run_leave(tiny.run, worker);
    vlp_run_free(tiny.run);
    tiny_run_free(&made);
}

/* With all components: f is that of a prediction, and f_c loses a reference by its contribution. */
static void removals_of_references(void **state) {
    (void)state;
    static const char *const settings[] = {"path=on", "path_layers=2", "path_dim=8", "path_passes=1",
                                           NULL};
    tiny_run tiny;
    tiny_run_make(&tiny, settings, 22);
    vlp_mixture mixture = {{[VLP_HORIZONTAL] = 0.3f, [VLP_VERTICAL] = 2, [VLP_PATH] = 0.5f}};
    vlp_mixture vertical = vlp_mixture_alone(VLP_VERTICAL);
    tiny.run->progress.mixture = mixture;
    vlp_removal *removal = NULL;
    vlp_worker *worker = NULL;
    const vlp_filter *known = NULL;
    removal_open(&removal, &worker, tiny.run);
    must(vlp_run_known(&known, tiny.run, 0));
    int32_t references = 0;
    for (int i = 0; i < 30; i++) {
        vlp_query query = {i % 26, i % 6, -1};
        vlp_predictions *predictions = NULL;
        vlp_predict_options all = VLP_PREDICT_OPTIONS_INIT;
        all.count = 100;
        all.explain = true;
        all.paths = 0;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &all));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        int32_t at = i % answers->prediction_count, count = answers->reference_count;
        const vlp_prediction *prediction = &answers->predictions[at];
        assert_null(prediction->support);
        vlp_removal_answer answer = {query, prediction->entity, known, mixture};
        vlp_removal_result before, results[8];
        must(vlp_removal_begin(&before, removal, &answer));
        near(before.score, prediction->score);
        near(before.parts[VLP_PATH], prediction->parts[VLP_PATH]);
        assert_true(before.rank == at + 1);
        vlp_removed_set sets[8];
        for (int32_t j = 0; j < count; j++) {
            int64_t edge = 0;
            while (memcmp(&vlp_run_graph(tiny.run)->triples[edge], &answers->references[j].triple,
                          sizeof(vlp_triple)) != 0)
                edge++;
            sets[j] = (vlp_removed_set){{(int32_t)edge}, 1};
        }
        answer.mixture = vertical;
        must(vlp_removal_begin(&before, removal, &answer));
        must(vlp_removal_try(results, removal, sets, count));
        for (int32_t j = 0; j < count; j++)
            near(2 * (before.score - results[j].score), prediction->contributions[j]);
        references += count;
        vlp_predictions_free(predictions);
    }
    assert_true(references > 40);
    vlp_removal_close(removal);
    vlp_run_leave(tiny.run, worker);
    tiny_run_free(&tiny);
}

/* A query's own triple is out of the graph that f_p is read over. */
static void left_out(void **state) {
    (void)state;
    tiny_run tiny, made;
    tiny_run_make(&made, NULL, 23);
    tiny = made;
    snprintf(tiny.path, sizeof tiny.path, "%s/paths", made.folder);
    path_run_open(&tiny, path_alone);
    const vlp_graph *graph = vlp_run_graph(tiny.run);
    vlp_query queries[60];
    int32_t given[60], changed = 0;
    for (int i = 0; i < 60; i++) {
        vlp_triple triple = graph->triples[i];
        queries[i] = (vlp_query){triple.head, triple.relation, i % 3 ? i : -1};
        given[i] = triple.tail;
    }
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.paths = 0;
    vlp_predictions *predictions = NULL;
    must(vlp_run_explain(&predictions, tiny.run, queries, given, 60, &options));
    for (int i = 0; i < 60; i++) {
        float scores[64], whole[64];
        vlp_triple left[256];
        int64_t edges = leave_out(left, graph, &graph->triples[i], queries[i].left_out >= 0 ? 1 : 0);
        path_scores_of(scores, tiny.run, left, edges, queries[i]);
        path_scores_of(whole, tiny.run, graph->triples, graph->edges, queries[i]);
        near(vlp_predictions_get(predictions, i)->predictions[0].parts[VLP_PATH],
             (double)scores[given[i]]);
        changed += fabsf(scores[given[i]] - whole[given[i]]) > 0.01f;
    }
    assert_true(changed > 20);
    vlp_predictions_free(predictions);
    vlp_run_free(tiny.run);
    tiny_run_free(&made);
}

/* ---- What is said of an answer ------------------------------------------------------------------- */

enum { PEOPLE = 40, CITIES = 8, COUNTRIES = 5, HELD_OUT = 8 };

/* A rule to learn: who lives in a city of a country is of that country. Friends are noise. */
static void write_rule(const char *folder) {
    FILE *train = fopen(support_path(folder, "train.txt"), "w"),
         *test = fopen(support_path(folder, "test.txt"), "w"),
         *valid = fopen(support_path(folder, "valid.txt"), "w");
    assert_true(train && test && valid);
    oracle_random random = {5, 0, 0};
    for (int c = 0; c < CITIES; c++) fprintf(train, "city%d\tin\tcountry%d\n", c, c % COUNTRIES);
    for (int p = 0; p < PEOPLE; p++) {
        int city = oracle_below(&random, CITIES);
        fprintf(train, "p%d\tlives\tcity%d\np%d\tknows\tp%d\n", p, city, p,
                oracle_below(&random, PEOPLE));
        fprintf(p < HELD_OUT       ? test
                : p < HELD_OUT + 4 ? valid
                                   : train,
                "p%d\tof\tcountry%d\n", p, city % COUNTRIES);
    }
    fprintf(train, "lone1\tknows\tlone2\n"); /* nothing leads there */
    fclose(train);
    fclose(test);
    fclose(valid);
}

static void rule_run(tiny_run *out) {
    static const char *const settings[] = {
        "model=none",     "path=on",        "path_layers=3",   "path_dim=16", "path_passes=40",
        "path_warmup=10", "path_rate=0.01", "path_hidden=0.3", "path_far=1",  NULL};
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "%s", support_folder());
    snprintf(out->data, sizeof out->data, "%s", out->folder);
    snprintf(out->path, sizeof out->path, "%s/run", out->folder);
    write_rule(out->folder);
    path_run_open(out, settings);
}

static bool in_graph(const vlp_graph *graph, vlp_triple triple) {
    for (int64_t i = 0; i < graph->edges; i++)
        if (memcmp(&graph->triples[i], &triple, sizeof triple) == 0) return true;
    return false;
}

/* A chain of known triples from one entity to another. */
static void check_path(const vlp_graph *graph, const vlp_path *path, int32_t from, int32_t to) {
    assert_true(path->weight > 0 && path->weight <= 1 + 1e-9);
    assert_true(path->count >= 1 && path->count <= 3);
    for (int32_t i = 0; i < path->count; i++) {
        vlp_triple triple = path->triples[i].triple;
        bool forward = path->triples[i].forward;
        assert_true(in_graph(graph, triple));
        assert_int_equal(forward ? triple.head : triple.tail, from);
        from = forward ? triple.tail : triple.head;
    }
    assert_int_equal(from, to);
}

/* The set does what is said of it, and no part of it does. */
static void check_support(const vlp_run *run, const vlp_answers *answers, int32_t number) {
    const vlp_prediction *prediction = &answers->predictions[number];
    const vlp_support *support = prediction->support;
    const vlp_graph *graph = vlp_run_graph(run);
    float scores[128];
    vlp_triple left[512], less[VLP_REMOVAL_MAX];
    for (int32_t skipped = -2; skipped < support->count; skipped++) {
        /* -2: nothing is out; -1: all of the set. */
        int32_t used = 0;
        for (int32_t i = 0; skipped > -2 && i < support->count; i++)
            if (i != skipped) less[used++] = support->triples[i];
        int64_t edges = leave_out(left, graph, less, used);
        assert_int_equal(edges, graph->edges - used);
        path_scores_of(scores, run, left, edges, answers->query);
        double rank = rank_of(run, scores, answers->query, prediction->entity);
        if (skipped == -2) assert_true(rank == support->rank_before);
        if (skipped == -1) assert_true(rank == support->rank);
        if (skipped == -1) near(support->path, (double)scores[prediction->entity]);
        if (skipped >= 0) assert_true(rank <= support->rank_before);
    }
    if (support->count > 0) assert_true(support->rank > support->rank_before);
    if (support->count == 0) assert_true(support->rank == support->rank_before);
}

static void rule_is_shown(void **state) {
    (void)state;
    tiny_run tiny;
    rule_run(&tiny);
    int64_t count;
    const vlp_triple *test = vlp_dataset_triples(tiny.dataset, VLP_TEST, &count);
    int32_t first = 0, sizes[VLP_REMOVAL_MAX + 1] = {0};
    vlp_query queries[2 * HELD_OUT];
    int32_t given[2 * HELD_OUT];
    for (int i = 0; i < HELD_OUT; i++) {
        queries[i] = (vlp_query){test[i].head, test[i].relation, -1};
        given[i] = test[i].tail;
        queries[HELD_OUT + i] =
            (vlp_query){test[i].tail, test[i].relation + vlp_dataset_relation_count(tiny.dataset), -1};
        given[HELD_OUT + i] = test[i].head;
    }
    vlp_predictions *predictions = NULL;
    must(vlp_run_explain(&predictions, tiny.run, queries, given, 2 * HELD_OUT, NULL));
    for (int i = 0; i < 2 * HELD_OUT; i++) {
        const vlp_answers *answers = vlp_predictions_get(predictions, i);
        const vlp_prediction *prediction = &answers->predictions[0];
        assert_non_null(prediction->support);
        assert_true(prediction->path_count >= 1 && prediction->path_count <= 3);
        for (int32_t j = 0; j < prediction->path_count; j++)
            check_path(vlp_run_graph(tiny.run), &prediction->paths[j], queries[i].entity, given[i]);
        check_support(tiny.run, answers, 0);
        sizes[prediction->support->count]++;
        if (i >= HELD_OUT) continue;
        /* p lives in the city, which is in the country. */
        assert_true(prediction->support->rank_before == 1);
        const vlp_path *best = &prediction->paths[0];
        first +=
            best->count == 2 && best->triples[0].forward && best->triples[1].forward &&
            strcmp(vlp_dataset_relation_name(tiny.dataset, best->triples[0].triple.relation), "lives") ==
                0 &&
            strcmp(vlp_dataset_relation_name(tiny.dataset, best->triples[1].triple.relation), "in") == 0;
        assert_int_equal(prediction->support->count, 1);
        vlp_triple only = prediction->support->triples[0];
        assert_true(memcmp(&only, &best->triples[0].triple, sizeof only) == 0 ||
                    memcmp(&only, &best->triples[1].triple, sizeof only) == 0);
    }
    assert_int_equal(first, HELD_OUT);
    assert_true(sizes[1] >= HELD_OUT);
    vlp_predictions_free(predictions);
    tiny_run_free(&tiny);
}

/* Larger sets too: the answers of a graph of many parallel ways. */
static void sets_are_minimal(void **state) {
    (void)state;
    tiny_run tiny, made;
    int32_t sizes[VLP_REMOVAL_MAX + 1] = {0};
    tiny_run_make(&made, NULL, 24);
    tiny = made;
    snprintf(tiny.path, sizeof tiny.path, "%s/paths", made.folder);
    path_run_open(&tiny, path_alone);
    enum { QUERIES = 26 * 6 };
    vlp_query queries[QUERIES];
    for (int i = 0; i < QUERIES; i++) queries[i] = (vlp_query){i % 26, i / 26, -1};
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.explain = true;
    options.count = 6;
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, tiny.run, queries, QUERIES, &options));
    for (int i = 0; i < QUERIES; i++) {
        const vlp_answers *answers = vlp_predictions_get(predictions, i);
        for (int32_t j = 0; j < answers->prediction_count; j++) {
            const vlp_prediction *prediction = &answers->predictions[j];
            check_support(tiny.run, answers, j);
            sizes[prediction->support->count]++;
            for (int32_t k = 0; k < prediction->path_count; k++)
                check_path(vlp_run_graph(tiny.run), &prediction->paths[k], queries[i].entity,
                           prediction->entity);
        }
    }
    vlp_predictions_free(predictions);
    vlp_run_free(tiny.run);
    tiny_run_free(&made);
    assert_true(sizes[1] > 50 && sizes[2] + sizes[3] + sizes[4] > 5);
}

/* No path leads to an answer that nothing connects. */
static void no_path(void **state) {
    (void)state;
    tiny_run tiny;
    rule_run(&tiny);
    vlp_query query = {0, 0, -1};
    int32_t lone;
    must(vlp_dataset_find_entity(&query.entity, tiny.dataset, "p0"));
    must(vlp_dataset_find_entity(&lone, tiny.dataset, "lone1"));
    vlp_predictions *predictions = NULL;
    must(vlp_run_explain(&predictions, tiny.run, &query, &lone, 1, NULL));
    const vlp_prediction *prediction = &vlp_predictions_get(predictions, 0)->predictions[0];
    assert_int_equal(prediction->path_count, 0);
    assert_non_null(prediction->support);
    assert_int_equal(prediction->support->count, 0);
    vlp_predictions_free(predictions);
    tiny_run_free(&tiny);
}

/* The same bits at every call and number of threads. */
static void same_every_time(void **state) {
    (void)state;
    tiny_run tiny;
    rule_run(&tiny);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.explain = true;
    options.paths = VLP_MAX_PATHS;
    options.count = 4;
    vlp_query queries[PEOPLE];
    for (int i = 0; i < PEOPLE; i++) queries[i] = (vlp_query){i, i % 8, -1};
    vlp_predictions *made[3];
    for (int way = 0; way < 3; way++) {
        vlp_run *run = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = way == 1 ? 2 : 1;
        must(vlp_run_open(&run, tiny.path, &opening));
        /* One at a time, and all at once. */
        must(vlp_run_predict(&made[way], run, queries, PEOPLE, &options));
        vlp_run_free(run);
    }
    for (int way = 1; way < 3; way++)
        for (int i = 0; i < PEOPLE; i++)
            for (int32_t j = 0; j < vlp_predictions_get(made[0], i)->prediction_count; j++) {
                const vlp_prediction *a = &vlp_predictions_get(made[0], i)->predictions[j];
                const vlp_prediction *b = &vlp_predictions_get(made[way], i)->predictions[j];
                assert_int_equal(a->path_count, b->path_count);
                for (int32_t k = 0; k < a->path_count; k++) {
                    assert_true(a->paths[k].weight == b->paths[k].weight);
                    assert_int_equal(a->paths[k].count, b->paths[k].count);
                    for (int32_t l = 0; l < a->paths[k].count; l++)
                        assert_memory_equal(&a->paths[k].triples[l].triple,
                                            &b->paths[k].triples[l].triple, sizeof(vlp_triple));
                }
                assert_int_equal(a->support->count, b->support->count);
                assert_true(a->support->rank == b->support->rank);
                assert_true(a->support->path == b->support->path);
                assert_memory_equal(a->support->triples, b->support->triples,
                                    (size_t)a->support->count * sizeof(vlp_triple));
            }
    for (int way = 0; way < 3; way++) vlp_predictions_free(made[way]);
    tiny_run_free(&tiny);
}

/* ---- What can go wrong --------------------------------------------------------------------------- */

static bool stop_at_once(void *user) {
    return ++*(int *)user > 3;
}

static void stops(void **state) {
    (void)state;
    tiny_run tiny;
    rule_run(&tiny);
    int asked = 0;
    vlp_observer observer = {NULL, NULL, stop_at_once, &asked};
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.observer = &observer;
    options.explain = true;
    vlp_predictions *predictions = NULL;
    vlp_query query = {0, 0, -1};
    assert_int_equal(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_STOPPED);
    assert_null(predictions);
    tiny_run_free(&tiny);
}

/* Every allocation fails in turn; what was made so far is freed. */
static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    rule_run(&tiny);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        call += call < 150 ? 1 : 3;
        failing_allocator_install(&memory, call);
        vlp_run *run = NULL;
        vlp_predictions *predictions = NULL;
        vlp_query queries[2] = {{0, 0, -1}, {1, 4, -1}};
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        options.explain = true;
        options.count = 2;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_predict(&predictions, run, queries, 2, &options);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_predictions_free(predictions);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 100);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(removals),
                                       cmocka_unit_test(left_out),
                                       cmocka_unit_test(removals_of_references),
                                       cmocka_unit_test(rule_is_shown),
                                       cmocka_unit_test(sets_are_minimal),
                                       cmocka_unit_test(no_path),
                                       cmocka_unit_test(same_every_time),
                                       cmocka_unit_test(stops),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
