#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "store/safetensors.h"

const char *const training_tables[TRAINING_TABLES] = {"entities",
                                                      "relations",
                                                      "aggregator_node",
                                                      "aggregator_edge",
                                                      "aggregator_output",
                                                      "aggregator_node_bias",
                                                      "aggregator_edge_bias",
                                                      "aggregator_output_bias"};

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- Data ---------------------------------------------------------------------------------------- */

enum { ENTITIES = 30, RELATIONS = 3 };

static void write_split(const char *folder, const char *name, uint64_t seed, int32_t count) {
    FILE *file = fopen(support_path(folder, name), "w");
    assert_non_null(file);
    oracle_random random = {seed, 0, 0};
    bool train = strcmp(name, "train.txt") == 0;
    for (int32_t e = 0; train && e < ENTITIES; e++)
        fprintf(file, "e%d\tr%d\te%d\n", e, e % RELATIONS, e / 2);
    for (int32_t i = 0; i < count; i++) {
        int32_t head = oracle_below(&random, ENTITIES), relation = oracle_below(&random, RELATIONS);
        /* Answers follow a rule, with exceptions: there is something to learn. */
        int32_t tail = oracle_chance(&random, 4) ? oracle_below(&random, ENTITIES)
                                                 : (head / 3 * 3 + 7 * relation + 3) % ENTITIES;
        fprintf(file, "e%d\tr%d\te%d\n", head, relation, tail);
    }
    fclose(file);
}

void training_data(const char *folder, uint64_t seed, uint64_t test_seed) {
    write_split(folder, "train.txt", 3 * seed, 90);
    write_split(folder, "valid.txt", 3 * seed + 1, 24);
    write_split(folder, "test.txt", 3 * test_seed + 2, 33);
}

/* ---- Training ------------------------------------------------------------------------------------ */

typedef struct stopper {
    int64_t at;
    bool now;
} stopper;

static void watch_steps(void *user, const char *what, int64_t done, int64_t total) {
    stopper *when = user;
    (void)total;
    if (strcmp(what, "steps") == 0 && done >= when->at) when->now = true;
}

static bool stop_now(void *user) {
    return ((stopper *)user)->now;
}

bool training_run(vlp_train_report *report, const char *data, const char *run,
                  const char *const *settings, int64_t stop_at) {
    stopper when = {stop_at > 0 ? stop_at : INT64_MAX, false};
    vlp_observer observer = {.progress = watch_steps, .stop = stop_now, .user = &when};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.resume = training_metadata(run, "state.safetensors", "step") >= 0;
    options.settings = settings;
    while (!options.resume && settings[options.setting_count]) options.setting_count++;
    options.observer = &observer;
    options.device = lab_device();
    vlp_status status = vlp_train(report, data, run, &options);
    if (status != VLP_ERROR_STOPPED) must(status);
    return status == VLP_OK;
}

vlp_run *training_open(const char *run) {
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    options.device = lab_device();
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, &options));
    return opened;
}

/* ---- Files --------------------------------------------------------------------------------------- */

training_table training_read(const char *run, const char *file, const char *name) {
    training_table out = {0};
    vlp_safetensors *opened = NULL;
    must(vlp_safetensors_open(&opened, support_path(run, file), true));
    const vlp_tensor *tensor = vlp_safetensors_find(opened, name);
    if (tensor) {
        assert_int_equal(tensor->type, VLP_F32);
        assert_int_equal(tensor->dimensions, 2);
        out = (training_table){tensor->shape[0], tensor->shape[1], tensor->shape[0] * tensor->shape[1],
                               NULL};
        out.values = malloc((size_t)out.count * sizeof *out.values);
        assert_non_null(out.values);
        for (int64_t i = 0; i < out.count; i++) out.values[i] = (double)((const float *)tensor->data)[i];
    }
    vlp_safetensors_free(opened);
    return out;
}

void training_table_free(training_table *table) {
    free(table->values);
    *table = (training_table){0};
}

double training_metadata(const char *run, const char *file, const char *key) {
    char *bytes = support_read(run, file);
    if (!bytes) return -1;
    free(bytes);
    vlp_safetensors *opened = NULL;
    must(vlp_safetensors_open(&opened, support_path(run, file), true));
    const char *text = vlp_safetensors_metadata(opened, key);
    assert_non_null(text);
    double value = strtod(text, NULL);
    vlp_safetensors_free(opened);
    return value;
}

/* ---- Scores -------------------------------------------------------------------------------------- */

training_scores training_score(vlp_run *run, const vlp_query *queries, int64_t count) {
    int32_t entities = vlp_dataset_entity_count(vlp_run_dataset(run));
    size_t cells = (size_t)count * (size_t)entities;
    training_scores out = {entities, calloc(cells, sizeof(double)), calloc(cells, sizeof(double))};
    assert_true(out.horizontal && out.vertical);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = entities;
    options.known = true;
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, run, queries, count, &options));
    for (int64_t i = 0; i < count; i++) {
        const vlp_answers *answers = vlp_predictions_get(predictions, i);
        assert_int_equal(answers->prediction_count, entities);
        for (int32_t j = 0; j < entities; j++) {
            const vlp_prediction *prediction = &answers->predictions[j];
            out.horizontal[i * entities + prediction->entity] = prediction->parts[VLP_HORIZONTAL];
            out.vertical[i * entities + prediction->entity] = prediction->parts[VLP_VERTICAL];
        }
    }
    vlp_predictions_free(predictions);
    return out;
}

void training_scores_free(training_scores *scores) {
    free(scores->horizontal);
    free(scores->vertical);
}
