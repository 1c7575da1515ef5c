/* Training in partitions: what is trained when, resuming, and what it learns beside training of all
 * entities at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "failing_allocator.h"
#include "learn/partitions.h"
#include "learn/settings.h"
#include "run_lab.h"

/* Entities in groups of ten; relation r leads from a group to one that depends on r and the group. A
 * tenth of the triples is held out: half for valid, half for test. */
enum { ENTITIES = 600, GROUP = 10, RELATIONS = 4 };

static void write_groups(const char *folder) {
    FILE *files[3];
    const char *const names[] = {"train.txt", "valid.txt", "test.txt"};
    mkdir(folder, 0777);
    for (int i = 0; i < 3; i++) files[i] = fopen(support_path(folder, names[i]), "w");
    oracle_random random = {5, 0, 0};
    for (int e = 0; e < ENTITIES; e++)
        for (int r = 0; r < RELATIONS; r++)
            for (int k = 0; k < 3; k++) {
                int group = (e / GROUP * 7 + 13 * r) % (ENTITIES / GROUP);
                int answer = group * GROUP + (e + 3 * k) % GROUP;
                int which = e < GROUP ? 0 : oracle_below(&random, 20);
                fprintf(files[which == 1 ? 1 : which == 2 ? 2 : 0], "e%d\tr%d\te%d\n", e, r, answer);
            }
    for (int i = 0; i < 3; i++) assert_int_equal(fclose(files[i]), 0);
}

#define COMMON                                                                                          \
    "model=distmult", "dim=256", "vertical=off", "negatives_from=uniform", "negatives=16", "batch=128", \
        "rate=0.01", "margin=20", "eval_every=0", "threads=2", "save_every=0"
enum { COMMON_COUNT = 11 };

static vlp_train_options options_of(const char *const *settings, int32_t more) {
    vlp_train_options options = run_options(settings, COMMON_COUNT + more, false);
    options.device = lab_device();
    return options;
}

/* ---- What is trained when ------------------------------------------------------------------------ */

/* A pass trains every triple once, in a pair that holds its two entities, and the pairs have steps in
 * proportion; another pass has another order, and other pairs for triples within a partition. */
static void passes_are_complete(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64];
    snprintf(data, sizeof data, "%s/data", folder);
    write_groups(data);
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, data, NULL));
    vlp_settings settings;
    vlp_settings_default(&settings);
    must(vlp_settings_assign(&settings, "model=distmult"));
    must(vlp_settings_assign(&settings, "dim=8"));
    must(vlp_settings_assign(&settings, "batch=32"));
    must(vlp_settings_assign(&settings, "vertical=off"));
    vlp_compute *compute = NULL;
    vlp_model *model = NULL;
    vlp_model_shape shape = vlp_settings_shape(&settings, dataset);
    must(vlp_cpu_backend.open(&compute, 1));
    must(vlp_model_new(&model, &vlp_cpu_backend, compute, &shape, true));
    vlp_partitions_options options = {.dataset = dataset,
                                      .settings = &settings,
                                      .model = model,
                                      .device = &vlp_cpu_backend,
                                      .compute = compute,
                                      .count = 5};
    vlp_partitions *partitions = NULL;
    must(vlp_partitions_new(&partitions, &options));
    int32_t sizes[5] = {0};
    for (int32_t e = 0; e < ENTITIES; e++) sizes[vlp_partitions_part(partitions, e)]++;
    for (int i = 0; i < 5; i++) assert_int_equal(sizes[i], ENTITIES / 5);
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(dataset, VLP_TRAIN, &count);
    int64_t pass_steps = (2 * count + 31) / 32, orders = 0;
    int8_t first_pass[10], *first_pair = calloc((size_t)count, 1);
    int64_t within[5] = {0}, moved[5] = {0};
    for (int64_t pass = 0; pass < 3; pass++) {
        uint8_t *trained = calloc((size_t)count, 1);
        int64_t step = pass * pass_steps;
        for (int visits = 0; step < (pass + 1) * pass_steps; visits++) {
            vlp_partition_visit visit;
            must(vlp_partitions_visit(&visit, partitions, step));
            assert_int_equal(visit.first, step);
            assert_true(visit.end > step && visit.parts[0] < visit.parts[1] && visits < 10);
            int64_t own = 0;
            for (int64_t i = 0; i < count; i++) {
                if (!vlp_partitions_trains(partitions, &visit, i)) continue;
                int32_t head = vlp_partitions_part(partitions, train[i].head),
                        tail = vlp_partitions_part(partitions, train[i].tail);
                assert_true((head == visit.parts[0] || head == visit.parts[1]) &&
                            (tail == visit.parts[0] || tail == visit.parts[1]));
                assert_int_equal(trained[i]++, 0);
                own++;
                int8_t used = (int8_t)(visit.parts[0] * 5 + visit.parts[1]);
                if (pass == 0) first_pair[i] = used;
                within[head] += pass > 0 && head == tail;
                moved[head] += pass > 0 && head == tail && used != first_pair[i];
            }
            double share = (double)own / (double)count * (double)pass_steps;
            assert_true(fabs((double)(visit.end - visit.first) - share) <= 1.0001);
            int8_t name = (int8_t)(visit.parts[0] * 5 + visit.parts[1]);
            if (pass == 0)
                first_pass[visits] = name;
            else
                orders += first_pass[visits] != name;
            step = visit.end;
        }
        assert_int_equal(step, (pass + 1) * pass_steps);
        for (int64_t i = 0; i < count; i++) assert_int_equal(trained[i], 1);
        free(trained);
    }
    assert_true(orders > 8);
    for (int i = 0; i < 5; i++) assert_true(within[i] > 50 && 2 * moved[i] > within[i]);
    free(first_pair);
    vlp_partitions_free(partitions);
    vlp_model_free(model);
    vlp_cpu_backend.close(compute);
    vlp_dataset_free(dataset);
    support_remove(folder);
}

/* Two partitions fit, with gradients and moments; more memory needs none. */
static void counts(void **state) {
    (void)state;
    vlp_settings settings;
    vlp_settings_default(&settings);
    vlp_model *model = NULL;
    vlp_compute *compute = NULL;
    must(vlp_cpu_backend.open(&compute, 1));
    vlp_model_shape shape = {.options = {VLP_MODEL_DISTMULT, 100, 0, 0, 6},
                             .entities = 1000,
                             .relations = 4,
                             .components = 1u << VLP_HORIZONTAL};
    must(vlp_model_declare(&model, &vlp_cpu_backend, compute, &shape));
    int64_t all = 1000 * 100 * 16;
    assert_int_equal(vlp_partition_count(model, &settings, all), 0);
    assert_int_equal(vlp_partition_count(model, &settings, all - 1), 3);
    for (int64_t bytes = all / 2; bytes > 20000; bytes = bytes * 3 / 4) {
        int32_t partitions = vlp_partition_count(model, &settings, bytes);
        assert_true(2 * ((double)all / partitions) <= (double)bytes);
        assert_true(2 * ((double)all / (partitions - 1)) > (double)bytes);
    }
    assert_int_equal(vlp_partition_count(model, &settings, 1), 500);
    vlp_model_free(model);
    vlp_cpu_backend.close(compute);
}

/* ---- Runs ---------------------------------------------------------------------------------------- */

static bool same_file(const char *left, const char *right, const char *name) {
    FILE *files[2] = {fopen(support_path(left, name), "rb"), fopen(support_path(right, name), "rb")};
    assert_true(files[0] && files[1]);
    int a, b;
    do {
        a = getc(files[0]);
        b = getc(files[1]);
    } while (a == b && a != EOF);
    fclose(files[0]);
    fclose(files[1]);
    return a == b;
}

/* Stopped anywhere and resumed, a run has the same bits. */
static void resumes_exactly(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], whole[64], cut[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(cut, sizeof cut, "%s/cut", folder);
    write_groups(data);
    const char *settings[] = {COMMON, "steps=150", "device_memory=1"};
    vlp_train_options options = options_of(settings, 2);
    must(vlp_train(NULL, data, whole, &options));
    char *log = support_read(whole, "train.log");
    assert_non_null(strstr(log, "600 entities in 5 partitions"));
    free(log);
    const int64_t stops[] = {1, 37, 38, 90, 149};
    for (int i = 0; i < 5; i++) {
        run_stopper when = {.at = stops[i]};
        vlp_observer observer = run_stop_at(&when);
        vlp_train_options part = options;
        part.observer = &observer;
        part.resume = i > 0;
        assert_int_equal(vlp_train(NULL, data, cut, &part), VLP_ERROR_STOPPED);
    }
    options.resume = true;
    must(vlp_train(NULL, data, cut, &options));
    assert_true(same_file(whole, cut, "state.safetensors"));
    assert_true(same_file(whole, cut, "model.safetensors"));
    support_remove(folder);
}

/* Partitions learn what all entities at once learn. */
static void learns(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], run[64];
    double mrr[2];
    snprintf(data, sizeof data, "%s/data", folder);
    write_groups(data);
    for (int i = 0; i < 2; i++) {
        const char *settings[] = {COMMON, "steps=1500", i == 0 ? "device_memory=0" : "device_memory=1"};
        vlp_train_options options = options_of(settings, 2);
        vlp_train_report report;
        snprintf(run, sizeof run, "%s/run%d", folder, i);
        must(vlp_train(&report, data, run, &options));
        mrr[i] = report.valid_mrr;
    }
    if (mrr[1] < 0.9 * mrr[0] || mrr[0] < 0.2)
        print_error("all at once %.4f, in partitions %.4f\n", mrr[0], mrr[1]);
    assert_true(mrr[0] > 0.2 && mrr[1] > 0.9 * mrr[0]);
    support_remove(folder);
}

static void refuses_other_settings(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], run[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    write_groups(data);
    const char *const wrong[][2] = {{"vertical=on", "that needs vertical = off"},
                                    {"negatives_from=red", "that needs negatives_from = uniform"},
                                    {"loss=cross-entropy", "that needs loss = negative-sampling"},
                                    {"path=on", "that needs path = off"}};
    for (int i = 0; i < 4; i++) {
        const char *settings[] = {COMMON, "steps=5", "device_memory=1", wrong[i][0]};
        vlp_train_options options = options_of(settings, 3);
        run_expect(vlp_train(NULL, data, run, &options), VLP_ERROR_ARGUMENT, wrong[i][1]);
    }
    support_remove(folder);
}

static void out_of_memory(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[64], run[64];
    snprintf(data, sizeof data, "%s/data", folder);
    write_groups(data);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    const char *settings[] = {COMMON, "steps=3", "device_memory=1"};
    do {
        call += call < 400 ? 1 : 7;
        vlp_train_options options = options_of(settings, 2);
        options.device = "cpu";
        snprintf(run, sizeof run, "%s/run%lld", folder, (long long)call);
        failing_allocator_install(&memory, call);
        vlp_status status = vlp_train(NULL, data, run, &options);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
    } while (memory.failed);
    assert_true(failures > 50);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_complete),    cmocka_unit_test(counts),
        cmocka_unit_test(resumes_exactly),        cmocka_unit_test(learns),
        cmocka_unit_test(refuses_other_settings), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
