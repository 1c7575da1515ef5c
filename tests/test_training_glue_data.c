/* What trainings are given and take as known: which entities become negatives, which data set and which
 * base a run accepts, and which triples serve a calibration. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "lab.h"
#include "random_data.h"
#include "store/npy.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- Negatives ----------------------------------------------------------------------------------- */

/* One step of an optimizer that moves just the rows a step has touched: heads, answers and negatives.
 * Sets moved[e]; returns how many there are. */
static int64_t moved_entities(bool *moved, const char *folder, const char *data, const char *negatives,
                              const char *batch, int seed) {
    char run[2][96], text[32];
    snprintf(text, sizeof text, "seed=%d", seed);
    training_table tables[2];
    for (int i = 0; i < 2; i++) {
        snprintf(run[i], sizeof run[i], "%s/run-%d-%d", folder, seed, i);
        const char *const settings[] = {"model=distmult",
                                        "dim=4",
                                        "init_scale=0.5",
                                        "optimizer=lazy-adam",
                                        "vertical=off",
                                        "steps=1",
                                        "negatives_from=uniform",
                                        "threads=2",
                                        "weights=uniform",
                                        negatives,
                                        batch,
                                        text,
                                        i ? "rate=0.1" : "rate=1e-30",
                                        NULL};
        assert_true(training_run(NULL, data, run[i], settings, 0));
        tables[i] = training_read(run[i], "state.safetensors", "entities");
    }
    int64_t count = 0, width = tables[0].columns;
    for (int64_t e = 0; e < tables[0].rows; e++) {
        moved[e] = memcmp(tables[0].values + e * width, tables[1].values + e * width,
                          (size_t)width * sizeof(double)) != 0;
        count += moved[e];
    }
    for (int i = 0; i < 2; i++) training_table_free(&tables[i]);
    return count;
}

/* Sixteen queries with four negatives each among 200 entities in a ring: about 75 rows move. If all
 * queries drew the same, no more than 36 could. */
static void negatives_differ_between_queries(void **state) {
    (void)state;
    const char *folder = support_folder();
    vlp_triple ring[200];
    for (int i = 0; i < 200; i++) ring[i] = (vlp_triple){i, 0, (i + 1) % 200};
    write_triples(folder, "train.txt", ring, 200);
    for (int seed = 0; seed < 3; seed++) {
        bool moved[200];
        int64_t count = moved_entities(moved, folder, folder, "negatives=4", "batch=16", seed);
        if (count < 55 || count > 96) fail_msg("%lld rows have moved", (long long)count);
    }
    support_remove(folder);
}

/* Whether a query, with all that is not known as its negatives, leaves just the rows that did not move.
 */
static bool explains(const vlp_dataset *dataset, vlp_query query, int32_t answer, const bool *moved) {
    for (int32_t e = 0; e < vlp_dataset_entity_count(dataset); e++) {
        bool left_alone = e != query.entity && e != answer && known(dataset, 1u << VLP_TRAIN, query, e);
        if (moved[e] == left_alone) return false;
    }
    return true;
}

/* A step of one query with more negatives than entities: its known answers are none, whichever way it is
 * asked. Which query it was is not known, but there has to be one. */
static void known_answers_are_no_negatives(void **state) {
    (void)state;
    const char *folder = support_folder();
    oracle_random random = {9, 0, 0};
    vlp_triple dense[70];
    for (int i = 0; i < 70; i++)
        dense[i] =
            (vlp_triple){oracle_below(&random, 12), oracle_below(&random, 2), oracle_below(&random, 12)};
    write_triples(folder, "train.txt", dense, 70);
    vlp_dataset *dataset = open_folder(folder);
    int64_t train;
    vlp_dataset_triples(dataset, VLP_TRAIN, &train);
    int told[2] = {0, 0}; /* steps that only a query for tails, or only one for heads, explains */
    for (int seed = 0; seed < 14; seed++) {
        bool moved[64], found[2] = {false, false};
        moved_entities(moved, folder, folder, "negatives=1000", "batch=1", seed);
        for (int64_t i = 0; i < 2 * train; i++) {
            int32_t answer;
            vlp_query query = query_of(dataset, VLP_TRAIN, i, &answer);
            if (explains(dataset, query, answer, moved)) found[i >= train] = true;
        }
        if (!found[0] && !found[1]) fail_msg("seed %d: no query leaves these rows alone", seed);
        for (int side = 0; side < 2; side++) told[side] += found[side] && !found[!side];
    }
    assert_true(told[0] >= 2 && told[1] >= 2);
    vlp_dataset_free(dataset);
    support_remove(folder);
}

/* ---- Other data ---------------------------------------------------------------------------------- */

/* A run is not taken up on a data set that differs in one triple of its test split. */
static void other_data_is_refused(void **state) {
    (void)state;
    char data[2][64], run[96];
    for (int i = 0; i < 2; i++) {
        snprintf(data[i], sizeof data[i], "%s", support_folder());
        training_data(data[i], 11, 11);
    }
    snprintf(run, sizeof run, "%s/run", data[0]);
    char *text = support_read(data[1], "test.txt"), *end = strrchr(text, 'e');
    end[1] = end[1] == '1' ? '2' : '1'; /* a digit of the last triple's tail */
    support_write_text(data[1], "test.txt", text);
    free(text);
    const char *const settings[] = {"steps=20", "batch=16", "dim=4", "negatives=4", NULL};
    assert_false(training_run(NULL, data[0], run, settings, 5));
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.resume = true;
    options.device = lab_device();
    assert_int_not_equal(vlp_train(NULL, data[1], run, &options), VLP_OK);
    assert_int_equal((int)training_metadata(run, "state.safetensors", "step"), 5);
    assert_true(training_run(NULL, data[0], run, settings, 0));
    for (int i = 0; i < 2; i++) support_remove(data[i]);
}

/* ---- Calibration --------------------------------------------------------------------------------- */

/* Of four entities and one relation every triple is in train or in valid: none can serve as a false one.
 */
static void calibration_knows_valid(void **state) {
    (void)state;
    const char *folder = support_folder(), *run = support_path(folder, "run");
    vlp_triple triples[16];
    for (int i = 0; i < 16; i++) triples[i] = (vlp_triple){i / 4, 0, i % 4};
    write_triples(folder, "train.txt", triples, 10);
    write_triples(folder, "valid.txt", triples + 10, 6);
    const char *const settings[] = {"steps=3", "batch=8", "dim=4", "negatives=2", "references=2", NULL};
    assert_true(training_run(NULL, folder, run, settings, 0));
    vlp_run *opened = training_open(run);
    vlp_calibration calibration;
    must(vlp_run_calibrate(&calibration, opened, NULL));
    assert_int_equal(calibration.positives, 6);
    assert_int_equal(calibration.negatives, 0);
    vlp_run_free(opened);
    support_remove(folder);
}

/* ---- A base -------------------------------------------------------------------------------------- */

/* Leaves the first half of an array's rows. */
static void halve(const char *folder, const char *name) {
    const char *path = support_path(folder, name);
    vlp_array array = {0};
    must(vlp_npy_read(&array, path));
    assert_int_equal(array.dimensions, 2);
    vlp_tensor tensor = {name, VLP_F32, 2, {array.shape[0] / 2, array.shape[1], 0, 0}, array.data};
    must(vlp_npy_write(path, &tensor));
    vlp_array_free(&array);
}

/* Relations that come without their inverses get them: a triple has the same f_g asked either way. */
static void base_without_inverses(void **state) {
    (void)state;
    static const char *const models[] = {"model=rescal",  "model=transe",   "model=transr",
                                         "model=complex", "model=distmult", "model=rotate"};
    const char *folder = support_folder();
    training_data(folder, 12, 12);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char run[96], arrays[96], over[96];
        snprintf(run, sizeof run, "%s/%zu", folder, m);
        snprintf(arrays, sizeof arrays, "%s/%zu-npy", folder, m);
        snprintf(over, sizeof over, "%s/%zu-over", folder, m);
        const char *const settings[] = {models[m],   "steps=10",    "dim=5", "vertical=off",
                                        "rate=0.05", "negatives=4", NULL};
        assert_true(training_run(NULL, folder, run, settings, 0));
        vlp_run *opened = training_open(run);
        must(vlp_run_export(opened, arrays));
        vlp_run_free(opened);
        halve(arrays, "relations.npy");
        if (strcmp(models[m], "model=transr") == 0) halve(arrays, "translations.npy");
        const char *const texts[] = {models[m], "steps=2", "references=2"};
        vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
        options.settings = texts;
        options.setting_count = 3;
        options.base = arrays;
        options.device = lab_device();
        must(vlp_train(NULL, folder, over, &options));
        opened = training_open(over);
        int32_t relations = vlp_dataset_relation_count(vlp_run_dataset(opened)), entities = 30;
        vlp_query queries[30 * 6];
        for (int32_t i = 0; i < entities * 2 * relations; i++)
            queries[i] = (vlp_query){i % entities, i / entities, -1};
        training_scores scores = training_score(opened, queries, entities * 2 * relations);
        assert_int_equal(scores.entities, entities);
        for (int32_t i = 0; i < entities * relations; i++)
            for (int32_t t = 0; t < entities; t++) {
                int32_t back = entities * (relations + i / entities) + t;
                double forward = scores.horizontal[i * entities + t];
                double backward = scores.horizontal[back * entities + i % entities];
                if (fabs(forward - backward) > 1e-4)
                    fail_msg("%s: %g forward, %g backward", models[m], forward, backward);
            }
        training_scores_free(&scores);
        vlp_run_free(opened);
    }
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negatives_differ_between_queries),
        cmocka_unit_test(known_answers_are_no_negatives),
        cmocka_unit_test(other_data_is_refused),
        cmocka_unit_test(calibration_knows_valid),
        cmocka_unit_test(base_without_inverses),
    };
    return cmocka_run_group_tests_name("training, data", tests, NULL, NULL);
}
