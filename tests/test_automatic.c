/* Automatic settings: what they are chosen by, that given ones stand, that the time is kept, and that
 * the recipe they leave gives the same bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/run_folder.h"
#include "learn/trial.h"
#include "run_lab.h"

enum { RING = 60 };

/* Triples in a ring, i to i + step, i = first, first + every, ..; appended to text. */
static void add_ring(char *text, const char *relation, int step, int first, int every) {
    for (int i = first; i < RING; i += every)
        sprintf(text + strlen(text), "e%d\t%s\te%d\n", i, relation, (i + step) % RING);
}

/* A ring with every edge in two relations. Pairs of the validation split are linked in train by a third,
 * or not. */
static void write_ring(const char *folder, bool linked) {
    char train[16384] = "", valid[16384] = "";
    add_ring(train, "next", 1, 0, 1);
    add_ring(train, "follows", 1, 0, 1);
    add_ring(train, "after", 2, 0, 2);
    add_ring(valid, linked ? "after" : "follows", linked ? 1 : 3, 0, 2);
    support_write_text(folder, "train.txt", train);
    support_write_text(folder, "valid.txt", valid);
}

typedef struct memory {
    char lines[8192];
    bool stop;
} memory;

static void remember(void *user, const char *line) {
    memory *all = user;
    size_t used = strlen(all->lines);
    snprintf(all->lines + used, sizeof all->lines - used, "%s\n", line);
}

static bool asked_to_stop(void *user) {
    return ((memory *)user)->stop;
}

typedef struct automatic_run {
    memory memory;
    vlp_settings settings;
    vlp_train_report report;
    vlp_status status;
} automatic_run;

static void train(automatic_run *out, const char *data, const char *run, double time,
                  const char *const *settings, int32_t count) {
    vlp_train_options options = run_options(settings, count, false);
    vlp_observer observer = {.log = remember, .stop = asked_to_stop, .user = &out->memory};
    options.time = time;
    options.observer = &observer;
    out->status = vlp_train(&out->report, data, run, &options);
    if (out->status == VLP_OK) must(vlp_run_folder_settings(&out->settings, run));
}

static void expect_trained(automatic_run *out, const char *data, double time,
                           const char *const *settings, int32_t count) {
    const char *folder = support_folder();
    train(out, data, support_path(folder, "run"), time, settings, count);
    if (out->status != VLP_OK) fail_msg("%s", vlp_error_message());
    assert_true(out->report.steps > 0);
    support_remove(folder);
}

static void test_hiding(void **state) {
    (void)state;
    for (int linked = 0; linked < 2; linked++) {
        automatic_run run = {0};
        const char *folder = support_folder(), *fixed[] = {"path_passes=0.5", "threads=2"};
        write_ring(folder, linked);
        expect_trained(&run, folder, 1, fixed, 2);
        assert_int_equal(run.settings.path_hide, linked ? VLP_PATH_HIDE_EDGE : VLP_PATH_HIDE_PAIR);
        assert_true(run.settings.path);
        assert_non_null(strstr(run.memory.lines, "plan: 60 entities, 3 relations, 150 triples\n"));
        assert_non_null(strstr(run.memory.lines, linked ? "100% are linked in train" : "0% are linked"));
        support_remove(folder);
    }
}

static void test_given(void **state) {
    (void)state;
    automatic_run run = {0};
    const char *given[] = {"path_layers=2",  "path_hide=pair", "path_passes=0.7", "seed=5",
                           "path_drop=0.25", "path_dim=8",     "threads=2"};
    expect_trained(&run, run_family(), 2, given, 7);
    assert_int_equal(run.settings.path_layers, 2);
    assert_int_equal(run.settings.path_hide, VLP_PATH_HIDE_PAIR);
    assert_true(run.settings.path_passes == 0.7);
    assert_true(run.settings.path_drop == 0.25);
    assert_int_equal(run.settings.seed, 5);
    assert_int_equal(run.settings.path_dim, 8);
    /* A model that is given is trained, and without the path model it alone. */
    const char *rotate[] = {"model=rotate", "dim=4", "path=off", "threads=2"};
    expect_trained(&run, run_family(), 1, rotate, 4);
    assert_int_equal(run.settings.model, VLP_MODEL_ROTATE);
    assert_int_equal(run.settings.dim, 4);
    assert_false(run.settings.path);
    const char *both[] = {"model=complex", "dim=6", "path_passes=0.5", "threads=2"};
    expect_trained(&run, run_family(), 1, both, 4);
    assert_int_equal(run.settings.model, VLP_MODEL_COMPLEX);
    assert_int_equal(run.settings.dim, 6);
    assert_true(run.settings.path);
}

static bool same_file(const char *left, const char *right) {
    FILE *files[2] = {fopen(left, "rb"), fopen(right, "rb")};
    assert_true(files[0] && files[1]);
    int one, other;
    do {
        one = getc(files[0]);
        other = getc(files[1]);
    } while (one == other && one != EOF);
    fclose(files[0]);
    fclose(files[1]);
    return one == other;
}

/* The recipe that is left in the run gives the same bits. */
static void test_recipe(void **state) {
    (void)state;
    automatic_run run = {0};
    const char *folder = support_folder(), *fixed[] = {"threads=2", "seed=3", "path_passes=0.5"};
    char first[128], second[128];
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    write_ring(folder, true);
    train(&run, folder, first, 120, fixed, 3);
    assert_int_equal(run.status, VLP_OK);
    vlp_train_options options = run_options(NULL, 0, false);
    options.recipe = support_path(first, "recipe.ini");
    must(vlp_train(NULL, folder, second, &options));
    assert_true(
        same_file(support_path(first, "model.safetensors"), support_path(second, "model.safetensors")));
    support_remove(folder);
}

/* Graphs of which little can be learned, and times that are too short. */
static void test_odd(void **state) {
    (void)state;
    static const char *const graphs[][2] = {
        {"a\tr\tb\nb\tr\tc\n", NULL},                          /* one relation, no validation split */
        {"a\tr\tb\nb\tr\ta\nb\tr\tc\nc\tr\tb\n", "a\tr\tc\n"}, /* symmetric */
        {"a\tr\ta\n", "a\tr\ta\n"},                            /* a loop and nothing else */
    };
    static const double times[] = {1e-3, 0.5};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (size_t j = 0; j < sizeof times / sizeof *times; j++) {
            automatic_run run = {0};
            const char *folder = support_folder(), *fixed[] = {"threads=1"};
            support_write_text(folder, "train.txt", graphs[i][0]);
            if (graphs[i][1]) support_write_text(folder, "valid.txt", graphs[i][1]);
            expect_trained(&run, folder, times[j], fixed, 1);
            assert_true(!strstr(run.memory.lines, "without a validation split") == !!graphs[i][1]);
            support_remove(folder);
        }
}

/* Steps that take longer than they were planned for are ended by the time. */
static void test_late(void **state) {
    (void)state;
    automatic_run run = {0};
    const char *endless[] = {"path_passes=1000000", "threads=2"};
    double start = vlp_trial_clock();
    expect_trained(&run, run_family(), 0.5, endless, 2);
    assert_true(vlp_trial_clock() - start < 60); /* it would take hours */
    assert_non_null(strstr(run.memory.lines, "the time is up at step "));
}

/* With many entities there is a limit even where a key reads few of them. */
static void test_many_entities(void **state) {
    (void)state;
    const char *folder = support_folder(), *fixed[] = {"threads=2", "model=none"};
    vlp_random_graph_options graph = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    graph.entities = 1010000;
    graph.triples = 1100000;
    graph.relations = 10;
    must(vlp_random_graph_generate(NULL, support_path(folder, "graph"), &graph));
    automatic_run run = {0};
    expect_trained(&run, support_path(folder, "graph"), 1, fixed, 2);
    assert_int_equal(run.settings.path_edges, 1000000);
    support_remove(folder);
}

/* On a large graph a key reads a part of it, embeddings have sampled negatives, and nothing takes the
 * time of all entities or of all queries. */
static void test_large(void **state) {
    (void)state;
    const char *folder = support_folder();
    vlp_random_graph_options graph = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    graph.entities = 30000; /* three hops reach most of them */
    graph.triples = 1100000;
    graph.relations = 10;
    must(vlp_random_graph_generate(NULL, support_path(folder, "graph"), &graph));
    automatic_run run = {0}, embeddings = {0};
    const char *fixed[] = {"threads=2", "path=off", "vertical=on", "dim=8"};
    expect_trained(&run, support_path(folder, "graph"), 6, fixed, 1);
    assert_true(run.settings.path && run.settings.path_edges > 0);
    assert_int_equal(run.settings.model, VLP_MODEL_NONE);
    assert_true(run.settings.eval_triples > 0);
    assert_non_null(strstr(run.memory.lines, "GB are free"));
    expect_trained(&embeddings, support_path(folder, "graph"), 2, fixed, 4);
    assert_int_equal(embeddings.settings.loss, VLP_LOSS_NEGATIVES);
    assert_int_equal(embeddings.settings.negatives_from, VLP_NEGATIVES_UNIFORM);
    assert_int_equal(embeddings.settings.optimizer, VLP_ADAGRAD);
    assert_true(embeddings.settings.candidates > 0 && embeddings.settings.references_edges > 0);
    assert_int_equal(embeddings.settings.dim, 8);
    support_remove(folder);
}

static void test_refused(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[128];
    snprintf(run, sizeof run, "%s/run", folder);
    vlp_train_options options = run_options(NULL, 0, false);
    options.time = 10;
    options.recipe = "some.ini";
    run_expect(vlp_train(NULL, run_family(), run, &options), VLP_ERROR_ARGUMENT,
               "a recipe has them already");
    options.recipe = NULL;
    options.base = "some";
    run_expect(vlp_train(NULL, run_family(), run, &options), VLP_ERROR_ARGUMENT,
               "a base has them already");
    options.base = NULL;
    options.time = -3;
    run_expect(vlp_train(NULL, run_family(), run, &options), VLP_ERROR_ARGUMENT, "time = -3");
    options.time = NAN;
    run_expect(vlp_train(NULL, run_family(), run, &options), VLP_ERROR_ARGUMENT, "time = nan");
    assert_int_equal(support_count(folder), 0);
    /* Stopped while settings are compared. */
    automatic_run stopped = {.memory.stop = true};
    const char *data = support_folder();
    write_ring(data, true);
    train(&stopped, data, run, 600, NULL, 0);
    assert_int_equal(stopped.status, VLP_ERROR_STOPPED);
    assert_int_equal(support_count(folder), 0);
    support_remove(data);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hiding), cmocka_unit_test(test_given),
        cmocka_unit_test(test_recipe), cmocka_unit_test(test_odd),
        cmocka_unit_test(test_late),   cmocka_unit_test(test_many_entities),
        cmocka_unit_test(test_large),  cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
