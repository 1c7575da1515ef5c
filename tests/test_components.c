/* The components of a score: their tables, their weights, their training, apart from each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/trainer.h"
#include "store/safetensors.h"
#include "tiny_run.h"

/* ---- Tables ---- */

static void tables_belong_to_components(void **state) {
    (void)state;
    static const char *const names[] = {"entities",
                                        "relations",
                                        "aggregator_node",
                                        "aggregator_edge",
                                        "aggregator_output",
                                        "aggregator_node_bias",
                                        "aggregator_edge_bias",
                                        "aggregator_output_bias"};
    const vlp_backend *backend = NULL;
    vlp_compute *compute = NULL;
    must(vlp_backend_find(&backend, "cpu"));
    must(backend->open(&compute, 1));
    for (int vertical = 0; vertical < 2; vertical++) {
        vlp_model *model = NULL;
        vlp_model_options options = {VLP_MODEL_ROTATE, 5, 0, 0, 6};
        must(vlp_model_new(&model, backend, compute,
                           &(vlp_model_shape){options, 7, 4, components_of(vertical), {0}}, true));
        assert_int_equal(model->table_count, vertical ? TABLES : VLP_HORIZONTAL_TABLES);
        assert_int_equal(model->ranges[VLP_HORIZONTAL].first, 0);
        assert_int_equal(model->ranges[VLP_HORIZONTAL].count, VLP_HORIZONTAL_TABLES);
        assert_int_equal(model->ranges[VLP_VERTICAL].count, vertical ? VLP_VERTICAL_TABLES : 0);
        for (int32_t i = 0; i < model->table_count; i++) {
            const vlp_table *table = &model->tables[i];
            assert_string_equal(table->name, names[i]);
            assert_int_equal(table->component,
                             i < VLP_HORIZONTAL_TABLES ? VLP_HORIZONTAL : VLP_VERTICAL);
            assert_true(table->value && table->grad && table->first && table->second);
            assert_int_equal(table->touched != NULL, i == 0);
        }
        assert_ptr_equal(vlp_model_relations(model), &model->tables[1]);
        if (vertical)
            assert_ptr_equal(vlp_model_table(model, VLP_VERTICAL, VLP_AGGREGATOR_OUTPUT),
                             &model->tables[TABLE_OUTPUT]);
        vlp_model_free(model);
    }
    backend->close(compute);
    assert_string_equal(vlp_component_name(VLP_HORIZONTAL), "horizontal");
    assert_string_equal(vlp_component_name(VLP_VERTICAL), "vertical");
    assert_null(vlp_component_name(VLP_COMPONENTS));
    assert_null(vlp_component_name((vlp_component)-1));
}

/* ---- Weights ---- */

/* Writes the run's weight file again, its weights under the names of an earlier format. */
static void write_old(const tiny_run *tiny, double vertical, double horizontal) {
    vlp_safetensors *file = NULL;
    char path[256], texts[2][32];
    snprintf(path, sizeof path, "%s/model.safetensors", tiny->path);
    must(vlp_safetensors_open(&file, path, true));
    static const char *const keys[] = {"data",     "data_checksum", "version", "step",
                                       "best_mrr", "best_step",     "waited"};
    enum { KEYS = sizeof keys / sizeof *keys };
    vlp_pair pairs[KEYS + 2];
    for (int i = 0; i < KEYS; i++)
        pairs[i] = (vlp_pair){keys[i], vlp_safetensors_metadata(file, keys[i])};
    snprintf(texts[0], sizeof texts[0], "%.17g", vertical);
    snprintf(texts[1], sizeof texts[1], "%.17g", horizontal);
    pairs[KEYS] = (vlp_pair){"mixture_vertical", texts[0]};
    pairs[KEYS + 1] = (vlp_pair){"mixture_horizontal", texts[1]};
    vlp_tensor tensors[TABLES];
    const vlp_model *model = tiny->run->model;
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_tensor *tensor;
        const int64_t shape[2] = {model->tables[i].rows, model->tables[i].width};
        must(vlp_safetensors_need(&tensor, file, model->tables[i].name, VLP_F32, 2, shape));
        tensors[i] = *tensor;
    }
    must(vlp_safetensors_write(path, tensors, model->table_count, pairs, KEYS + 2));
    vlp_safetensors_free(file);
}

static void weights_are_kept_by_name(void **state) {
    (void)state;
    tiny_run tiny;
    vlp_run *run = NULL;
    vlp_run_info info;
    tiny_run_make(&tiny, NULL, 3);
    /* As chosen on the validation split, for the next opening. */
    must(vlp_run_open(&run, tiny.path, NULL));
    vlp_run_describe(&info, run);
    assert_int_equal(info.components, components_of(true));
    float vertical = run->progress.mixture.weights[VLP_VERTICAL];
    float horizontal = run->progress.mixture.weights[VLP_HORIZONTAL];
    assert_true((vertical == 1 || vertical == 0) && (vertical == 1 || horizontal == 1));
    near(info.weights[VLP_VERTICAL], (double)vertical);
    near(info.lambda, (double)horizontal);
    for (int c = VLP_COMPONENTS; c < VLP_MAX_COMPONENTS; c++) assert_true(isnan(info.weights[c]));
    vlp_run_free(run);
    /* Older runs name them otherwise. */
    write_old(&tiny, 1, 0.25);
    must(vlp_run_open(&run, tiny.path, NULL));
    vlp_run_describe(&info, run);
    assert_true(info.weights[VLP_VERTICAL] == 1 && info.weights[VLP_HORIZONTAL] == 0.25);
    assert_true(info.lambda == 0.25 && !info.horizontal_only);
    vlp_run_free(run);
    tiny_run_free(&tiny);
    /* A run of one component has its weight alone. */
    static const char *const bare[] = {"vertical=off", NULL};
    tiny_run_make(&tiny, bare, 3);
    vlp_run_describe(&info, tiny.run);
    assert_int_equal(info.components, components_of(false));
    assert_true(info.weights[VLP_HORIZONTAL] == 1 && isnan(info.weights[VLP_VERTICAL]));
    assert_true(info.horizontal_only && !info.copies);
    tiny_run_free(&tiny);
}

/* ---- Training ---- */

static float *values_of(const vlp_model *model, vlp_component component, size_t *bytes) {
    float *values = NULL;
    *bytes = 0;
    for (int32_t i = 0; i < model->ranges[component].count; i++) {
        const vlp_table *table = vlp_model_table(model, component, i);
        size_t size = (size_t)table->rows * (size_t)table->width * sizeof(float);
        values = realloc(values, *bytes + size);
        assert_non_null(values);
        memcpy((char *)values + *bytes, table->value, size);
        *bytes += size;
    }
    return values;
}

/* Steps of some components leave the tables of the others as they are; and what one of them becomes
 * does not depend on whether the other is trained along with it. */
static void components_are_trained_apart(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 4);
    const vlp_backend *backend = NULL;
    must(vlp_backend_find(&backend, "cpu"));
    float *after[2][3] = {{NULL}};
    for (unsigned trained = 1; trained <= 3; trained++) {
        vlp_settings settings = tiny.run->settings;
        vlp_compute *compute = NULL;
        vlp_model *model = NULL;
        vlp_trainer *trainer = NULL;
        vlp_step_loss loss;
        must(backend->open(&compute, 1));
        vlp_model_options options = {settings.model, settings.dim, 0, settings.norm, settings.margin};
        must(vlp_model_new(&model, backend, compute,
                           &(vlp_model_shape){options, tiny.entities, 2 * tiny.relations, 3, {0}},
                           true));
        must(vlp_model_init(model, 1, 0));
        must(vlp_trainer_new(&trainer, tiny.dataset, &settings, model, NULL));
        size_t bytes[2];
        float *before[2];
        for (int c = 0; c < 2; c++) before[c] = values_of(model, (vlp_component)c, &bytes[c]);
        vlp_trainer_choose(trainer, trained);
        /* One step: embeddings that are trained are others for the aggregator from then on. */
        must(vlp_trainer_step(&loss, trainer, 0));
        for (int c = 0; c < 2; c++) {
            size_t size;
            float *now = after[c][trained - 1] = values_of(model, (vlp_component)c, &size);
            bool moved = memcmp(now, before[c], bytes[c]) != 0;
            assert_int_equal(moved, trained >> c & 1);
            assert_int_equal(loss.components[c] > 0, trained >> c & 1);
            if (trained == 3) assert_memory_equal(now, after[c][c], bytes[c]);
            free(before[c]);
        }
        vlp_trainer_free(trainer);
        vlp_model_free(model);
        backend->close(compute);
    }
    for (int i = 0; i < 6; i++) free(after[i / 3][i % 3]);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_belong_to_components),
                                       cmocka_unit_test(weights_are_kept_by_name),
                                       cmocka_unit_test(components_are_trained_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
