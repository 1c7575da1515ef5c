/* References found for one batch at a time are those of a search for all training queries: in order, out
 * of order, with and without the thread, and in a whole training. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "graph/dataset.h"
#include "graph/reference.h"
#include "learn/batch_references.h"
#include "support.h"

enum { SEED = 11 };

static const char *root;

static int setup(void **state) {
    (void)state;
    root = support_folder();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    support_remove(root);
    return 0;
}

static vlp_dataset *open_graph(void) {
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    options.entities = 800;
    options.triples = 4000;
    options.relations = 20;
    const char *folder = support_path(root, "graph");
    assert_int_equal(vlp_random_graph_generate(NULL, folder, &options), VLP_OK);
    vlp_dataset *dataset = NULL;
    assert_int_equal(vlp_dataset_open(&dataset, folder, NULL), VLP_OK);
    return dataset;
}

/* The batch of a step against the search for all. */
static void check_step(vlp_batch_references *batches, const vlp_references *all, const vlp_graph *graph,
                       int32_t batch, int32_t capacity, int64_t step) {
    const vlp_reference *items;
    const int32_t *counts;
    assert_int_equal(vlp_batch_references_get(&items, &counts, batches, step), VLP_OK);
    for (int32_t i = 0; i < batch; i++) {
        int32_t count;
        int64_t query = vlp_batch_query(step, batch, i, 2 * graph->edges, SEED);
        const vlp_reference *expected = vlp_references_get(all, query, &count);
        assert_int_equal(counts[i], count);
        assert_memory_equal(items + i * capacity, expected, (size_t)count * sizeof *expected);
    }
}

static void same_as_all(void **state) {
    (void)state;
    enum { BATCH = 300 };
    vlp_dataset *dataset = open_graph();
    const vlp_graph *graph = dataset->graph;
    static const vlp_reference_rule rules[] = {{.edges = 0},
                                               {.edges = 200},
                                               {.choice = VLP_REFERENCES_NEAREST_RANDOM, .seed = 5},
                                               {.choice = VLP_REFERENCES_RANDOM, .seed = 5},
                                               {.own_edge = true}};
    for (int l = 0; l < 5; l++) {
        vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
        options.threads = 2;
        vlp_references *all = NULL;
        assert_int_equal(vlp_graph_references_by(&all, graph, NULL, 0, &options, &rules[l]), VLP_OK);
        for (int ahead = 0; ahead < 2; ahead++) {
            vlp_batch_references *batches = NULL;
            assert_int_equal(vlp_batch_references_new(&batches, graph, &options, SEED, BATCH, ahead),
                             VLP_OK);
            assert_int_equal(vlp_batch_references_set(batches, &rules[l]), VLP_OK);
            double seconds = -1;
            assert_int_equal(vlp_batch_references_time(&seconds, batches), VLP_OK);
            assert_true(seconds > 0);
            /* More than a pass; then as after a resume. */
            for (int64_t step = 0; step < 30; step++)
                check_step(batches, all, graph, BATCH, options.count, step);
            check_step(batches, all, graph, BATCH, options.count, 7);
            check_step(batches, all, graph, BATCH, options.count, 8);
            vlp_batch_references_free(batches);
        }
        vlp_references_free(all);
    }
    vlp_batch_references_free(NULL);
    vlp_dataset_free(dataset);
}

/* The weights of a run with this setting. */
static char *train(const char *data, const char *name, const char *found, size_t *size) {
    const char *settings[] = {"dim=8",
                              "steps=40",
                              "batch=64",
                              "negatives=8",
                              "threads=2",
                              "eval_every=20",
                              "references_edges=500",
                              found};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    options.device = "cpu";
    assert_int_equal(vlp_train(NULL, data, support_path(root, name), &options), VLP_OK);
    FILE *file = fopen(support_path(support_path(root, name), "model.safetensors"), "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 24);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 24, file);
    fclose(file);
    return bytes;
}

static void same_training(void **state) {
    (void)state;
    size_t before_size, ahead_size;
    vlp_dataset_free(open_graph());
    char data[512];
    snprintf(data, sizeof data, "%s", support_path(root, "graph"));
    char *before = train(data, "before", "references_found=before", &before_size);
    char *ahead = train(data, "ahead", "references_found=ahead", &ahead_size);
    assert_int_equal(before_size, ahead_size);
    assert_memory_equal(before, ahead, before_size);
    free(before);
    free(ahead);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_all, setup, teardown),
        cmocka_unit_test_setup_teardown(same_training, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
