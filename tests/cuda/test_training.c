/* Training on the GPU: near the CPU's, and the same bits each time, recorded or not. Passed over without
 * a GPU, unless VLP_TEST_DEVICE asks for one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "learn/trainer.h"

static const vlp_backend *gpu;

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* A family that is small enough for a CPU and not for one block. */
static const char *family(void) {
    return support_family(12, 4);
}

enum { STEPS = 40, LOSSES = 2 * STEPS };

typedef struct trained {
    double losses[LOSSES];
    float *entities, *start; /* as they are, and as they were at first */
    int64_t count;
} trained;

static void trained_free(trained *one) {
    free(one->entities);
    free(one->start);
}

static float *entities_of(const vlp_model *model, int64_t *count) {
    const vlp_table *table = vlp_model_entities(model);
    *count = table->rows * table->width;
    float *out = malloc((size_t)*count * sizeof *out);
    assert_non_null(out);
    must(model->backend->memory->download(model->compute, out, table->value,
                                          (size_t)*count * sizeof *out));
    return out;
}

/* Trains by steps, reading every loss, or only at the end. */
static trained train(const vlp_backend *backend, const vlp_settings *settings, const char *data,
                     bool every) {
    vlp_dataset *dataset = NULL;
    vlp_compute *compute = NULL;
    vlp_model *model = NULL;
    vlp_trainer *trainer = NULL;
    trained out = {.count = 0};
    must(vlp_dataset_open(&dataset, data, NULL));
    must(backend->open(&compute, settings->threads));
    vlp_model_shape shape = vlp_settings_shape(settings, dataset);
    must(vlp_model_new(&model, backend, compute, &shape, true));
    must(vlp_model_init(model, settings->seed, settings->init_scale));
    out.start = entities_of(model, &out.count);
    must(vlp_trainer_new(&trainer, dataset, settings, model, NULL));
    vlp_step_loss loss = {{0}};
    for (int64_t step = 0; step < STEPS; step++) {
        unsigned all = vlp_settings_components(settings), vertical = 1u << VLP_VERTICAL;
        vlp_trainer_choose(trainer, step % 10 == 9 && settings->vertical ? vertical : all);
        must(vlp_trainer_step(every ? &loss : NULL, trainer, step));
        out.losses[2 * step] = loss.components[VLP_HORIZONTAL];
        out.losses[2 * step + 1] = loss.components[VLP_VERTICAL];
    }
    must(vlp_trainer_read(&loss, trainer));
    out.entities = entities_of(model, &out.count);
    vlp_trainer_free(trainer);
    vlp_model_free(model);
    backend->close(compute);
    vlp_dataset_free(dataset);
    return out;
}

static vlp_settings settings_of(const char *const *texts) {
    vlp_settings settings;
    vlp_settings_default(&settings);
    settings.steps = STEPS;
    settings.batch = 200;
    settings.dim = 24;
    settings.rate = 0.002;
    settings.references = 4;
    /* More than there are entities: both samplers then draw all of them. */
    settings.negatives = 900;
    for (; *texts; texts++) {
        char key[32];
        const char *equals = strchr(*texts, '=');
        snprintf(key, sizeof key, "%.*s", (int)(equals - *texts), *texts);
        must(vlp_settings_set(&settings, key, equals + 1, "test"));
    }
    must(vlp_settings_check(&settings));
    return settings;
}

/* Every model, loss, source, weight and optimizer at least once. */
static const char *const cases[][7] = {
    {"model=rotate", NULL},
    {"model=rotate", "negatives_from=uniform", "weights=self-adversarial", "red_form=paper", NULL},
    {"model=transe", "norm=l1", "query_weights=off", NULL},
    {"model=transe", "norm=l2", "weights=uniform", "clip=0.05", NULL},
    {"model=transr", "relation_dim=9", "dim=17", NULL},
    {"model=distmult", "optimizer=lazy-adam", "vertical_gradient=on", NULL},
    {"model=complex", "loss=cross-entropy", "relation_prediction=0.5", "n3=0.01", "optimizer=adagrad",
     "rate=0.05", NULL},
    {"model=complex", "loss=cross-entropy", "dim=13", "rate=0.01", NULL},
    {"model=rescal", "loss=cross-entropy", "relation_prediction=1", "dim=12", NULL},
    {"model=complex", "candidates=100", "schedule=cosine", NULL},
    {"model=rotate", "candidates=100", "vertical_gradient=on", "warmup=10", NULL},
    {"model=rotate", "vertical=off", "dim=33", NULL},
    {"model=distmult", "references=0", "dim=31", "schedule=linear", NULL},
    {"model=pairre", NULL},
    {"model=pairre", "vertical_gradient=on", "dim=31", NULL},
    {"model=transh", "norm=l1", NULL},
    {"model=transh", "norm=l2", "vertical_gradient=on", "clip=0.05", "dim=33", NULL},
    {"model=quate", "dim=9", NULL},
    {"model=quate", "loss=cross-entropy", "n3=0.01", "optimizer=adagrad", "rate=0.05", "dim=8", NULL},
    {"model=quate", "candidates=100", "vertical_gradient=on", "dim=7", NULL},
    {"model=complex", "loss=kvsall", "label_smoothing=0.1", "n3=0.01", "rate=0.01", NULL},
    {"model=distmult", "loss=kvsall", "dropout=0.2", "optimizer=adagrad", "rate=0.02", "dim=33", NULL},
    {"model=rescal", "loss=kvsall", "vertical_gradient=on", "dropout=0.1", "dim=12", NULL},
    {"model=quate", "loss=kvsall", "dim=9", NULL},
    {"model=distmult", "dropout=0.2", "dim=31", NULL},
};
enum { CASES = sizeof cases / sizeof *cases };

/* How far the tables of two trainings stand apart, in parts of how far training has moved them. */
static double drift(const trained *cpu, const trained *there) {
    double difference = 0, moved = 0;
    for (int64_t j = 0; j < cpu->count; j++) {
        assert_true(cpu->start[j] == there->start[j]);
        difference += pow((double)cpu->entities[j] - (double)there->entities[j], 2);
        moved += pow((double)cpu->entities[j] - (double)cpu->start[j], 2);
    }
    return sqrt(difference / moved);
}

/* The CPU trains in fp32 whatever the precision; bf16 copies stay near it. Adam makes steps of one
 * size out of gradients of any: where they are as good as nothing, tables drift apart. */
static void check_training(int i, vlp_precision precision) {
    bool bf16 = precision == VLP_PRECISION_BF16;
    double loss_limit = bf16 ? 3e-2 : 5e-3, drift_limit = bf16 ? 0.5 : 0.3;
    vlp_settings settings = settings_of(cases[i]);
    settings.precision = (int32_t)precision;
    trained cpu = train(&vlp_cpu_backend, &settings, family(), true);
    trained there = train(gpu, &settings, family(), true);
    for (int l = 0; l < LOSSES; l++)
        if (!(fabs(cpu.losses[l] - there.losses[l]) <= loss_limit * (fabs(cpu.losses[l]) + 0.05))) {
            print_error("%s, case %d%s: step %d, %s loss %.6g, on the CPU %.6g\n", cases[i][0], i,
                        bf16 ? " in bf16" : "", l / 2, l % 2 ? "vertical" : "horizontal",
                        there.losses[l], cpu.losses[l]);
            fail();
        }
    if (!(drift(&cpu, &there) <= drift_limit)) {
        print_error("%s, case %d%s: tables are off by %.3g of their way\n", cases[i][0], i,
                    bf16 ? " in bf16" : "", drift(&cpu, &there));
        fail();
    }
    trained_free(&cpu);
    trained_free(&there);
}

static void test_training_agrees(void **state) {
    (void)state;
    if (!gpu) skip();
    for (int i = 0; i < CASES; i++) {
        check_training(i, VLP_PRECISION_FP32);
        check_training(i, VLP_PRECISION_BF16);
    }
}

/* Twice the same bits; captured steps those of eager steps; at any time of reading. */
static void test_same_bits(void **state) {
    (void)state;
    if (!gpu) skip();
    for (int i = 0; i < 2 * CASES; i++) {
        vlp_settings settings = settings_of(cases[i / 2]);
        settings.negatives = 64;
        settings.precision = i % 2 ? VLP_PRECISION_BF16 : VLP_PRECISION_FP32;
        trained first = train(gpu, &settings, family(), true),
                second = train(gpu, &settings, family(), false);
        setenv("VLP_CUDA_EAGER", "1", 1);
        trained eager = train(gpu, &settings, family(), true);
        unsetenv("VLP_CUDA_EAGER");
        size_t bytes = (size_t)first.count * sizeof(float);
        if (memcmp(first.entities, second.entities, bytes) != 0 ||
            memcmp(first.entities, eager.entities, bytes) != 0 ||
            memcmp(first.losses, eager.losses, sizeof first.losses) != 0) {
            print_error("%s, case %d%s: the same work gave other bits\n", cases[i / 2][0], i / 2,
                        i % 2 ? " in bf16" : "");
            fail();
        }
        trained_free(&first);
        trained_free(&second);
        trained_free(&eager);
    }
}

int main(void) {
    gpu = lab_gpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_training_agrees),
    };
    return cmocka_run_group_tests_name("cuda training", tests, NULL, NULL);
}
