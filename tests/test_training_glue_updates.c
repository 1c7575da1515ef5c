/* What a step of a training does with its settings, by plain arithmetic over the tables that a run
 * saves: learning rates, Adam and Adagrad, initial values, the temperature of the vertical loss. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/npy.h"

static char folder[64], data[64];

static int make_data(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(data, sizeof data, "%s", folder);
    training_data(data, 1, 1);
    return 0;
}

static int remove_data(void **state) {
    (void)state;
    support_remove(folder);
    return 0;
}

enum { MAX_SETTINGS = 32 };

/* Puts settings behind each other; each list ends with NULL. */
static void join(const char *out[MAX_SETTINGS], const char *const *first, const char *const *second) {
    int count = 0;
    for (; *first; first++) out[count++] = *first;
    for (; *second; second++) out[count++] = *second;
    assert_true(count < MAX_SETTINGS);
    out[count] = NULL;
}

/* A run whose tables are those a training starts from: a step at a rate of next to nothing leaves them
 * as they are. The path is good until the next call. */
static const char *initial_run(vlp_train_report *report, const char *const *settings) {
    static int runs;
    static char run[96];
    snprintf(run, sizeof run, "%s/initial-%d", folder, runs++);
    const char *all[MAX_SETTINGS];
    const char *const still[] = {"rate=1e-30", "vertical_rate=1e-30", "steps=1", NULL};
    join(all, settings, still);
    assert_true(training_run(report, data, run, all, 0));
    return run;
}

static training_table saved_table(const char *run, const char *name) {
    return training_read(run, "state.safetensors", name);
}

/* ---- Learning rates ------------------------------------------------------------------------------ */

enum { STEPS = 10 };

/* Ten steps; what the rate of each is multiplied by. */
static const struct {
    const char *settings[6];
    double factors[STEPS];
} schedules[] = {
    {{"schedule=constant"}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {{"schedule=constant", "warmup=4"}, {0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1}},
    {{"schedule=step", "decay=0.1"}, {1, 1, 1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1}},
    {{"schedule=step", "decay=0.5", "decay_at=3", "warmup=2"},
     {0.5, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
    {{"schedule=linear"}, {1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}},
    {{"schedule=linear", "warmup=5"}, {0.2, 0.36, 0.48, 0.56, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}},
    {{"schedule=cosine"},
     {1, 0.9755283, 0.9045085, 0.7938926, 0.6545085, 0.5, 0.3454915, 0.2061074, 0.0954915, 0.0244717}},
    {{"schedule=cosine", "warmup=2"},
     {0.5, 0.9755283, 0.9045085, 0.7938926, 0.6545085, 0.5, 0.3454915, 0.2061074, 0.0954915, 0.0244717}},
};

/* The largest change of a number. */
static double largest_move(const training_table *before, const training_table *after) {
    double most = 0;
    assert_int_equal(before->count, after->count);
    for (int64_t i = 0; i < before->count; i++)
        most = fmax(most, fabs(after->values[i] - before->values[i]));
    return most;
}

/* Adam that keeps nothing of earlier steps moves every number by the rate, whatever its gradient is. The
 * run is stopped after every step and taken up again: a rate follows from the step alone. */
static void rates_of_every_step(void **state) {
    (void)state;
    static const char *const common[] = {"steps=10",  "rate=0.1",     "vertical_rate=0.03",
                                         "beta1=0",   "beta2=0",      "epsilon=1e-20",
                                         "dim=6",     "batch=32",     "negatives=6",
                                         "threads=2", "eval_every=0", "save_every=0",
                                         "seed=3",    "references=4", NULL};
    static const char *const tables[] = {"entities", "aggregator_output"};
    static const double rates[] = {0.1, 0.03};
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
        const char *all[MAX_SETTINGS];
        char run[96];
        join(all, common, schedules[s].settings);
        snprintf(run, sizeof run, "%s/schedule-%zu", folder, s);
        training_table before[2];
        const char *initial = initial_run(NULL, common);
        for (int t = 0; t < 2; t++) before[t] = saved_table(initial, tables[t]);
        for (int step = 0; step < STEPS; step++) {
            assert_int_equal(training_run(NULL, data, run, all, step + 1), step == STEPS - 1);
            for (int t = 0; t < 2; t++) {
                training_table after = saved_table(run, tables[t]);
                double expected = rates[t] * schedules[s].factors[step];
                double moved = largest_move(&before[t], &after);
                if (fabs(moved - expected) > 1e-3 * expected)
                    fail_msg("schedule %zu, step %d: %s moves by %g, expected %g", s, step, tables[t],
                             moved, expected);
                training_table_free(&before[t]);
                before[t] = after;
            }
        }
        for (int t = 0; t < 2; t++) training_table_free(&before[t]);
    }
}

/* ---- Adam and Adagrad ---------------------------------------------------------------------------- */

/* A table with its moments. */
typedef struct moments {
    training_table value, first, second;
} moments;

static moments read_moments(const char *run, const char *name) {
    char first[64], second[64];
    snprintf(first, sizeof first, "%s.first", name);
    snprintf(second, sizeof second, "%s.second", name);
    return (moments){saved_table(run, name), saved_table(run, first), saved_table(run, second)};
}

static void moments_free(moments *table) {
    training_table_free(&table->value);
    training_table_free(&table->first);
    training_table_free(&table->second);
}

/* Zeros where a training starts. */
static moments first_moments(const char *initial, const char *name) {
    moments out = {.value = saved_table(initial, name)};
    out.first = out.second = out.value;
    size_t count = (size_t)out.value.count;
    out.first.values = calloc(count, sizeof(double));
    out.second.values = calloc(count, sizeof(double));
    assert_true(out.first.values && out.second.values);
    return out;
}

static void expect(const char *what, int64_t i, double got, double expected, double tolerance) {
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s, number %lld: %.9g, expected %.9g", what, (long long)i, got, expected);
}

#define RATE 0.05
#define AGGREGATOR_RATE 0.02
#define BETA1 0.5
#define BETA2 0.75
#define EPSILON 1e-3

static double decay; /* weight decay */

/* Step number `step`, from 1, by the equations of Kingma and Ba: the gradient is what the first moment
 * took up. Rows without a gradient do not take part where `lazy`. Returns how many numbers moved. */
static int64_t check_adam(const char *name, const moments *before, const moments *after, int step,
                          double rate, bool lazy) {
    int64_t moved = 0;
    for (int64_t i = 0; i < after->value.count; i++) {
        double x = before->value.values[i], m = before->first.values[i], v = before->second.values[i];
        double m_now = after->first.values[i], v_now = after->second.values[i];
        if (lazy && m_now == m && v_now == v) {
            expect(name, i, after->value.values[i], x, 0);
            continue;
        }
        double g = (m_now - BETA1 * m) / (1 - BETA1);
        expect(name, i, v_now, BETA2 * v + (1 - BETA2) * g * g, 1e-3 * (v_now + 1e-3 * m * m));
        double m_hat = m_now / (1 - pow(BETA1, step)), v_hat = v_now / (1 - pow(BETA2, step));
        x *= 1 - rate * decay;
        expect(name, i, after->value.values[i], x - rate * m_hat / (sqrt(v_hat) + EPSILON),
               1e-6 * fabs(x) + 1e-4 * rate);
        moved += after->value.values[i] != before->value.values[i];
    }
    return moved;
}

/* The sum of squares grows by the square of the gradient. */
static int64_t check_adagrad(const char *name, const moments *before, const moments *after, int step,
                             double rate, bool lazy) {
    (void)step, (void)lazy;
    int64_t moved = 0;
    for (int64_t i = 0; i < after->value.count; i++) {
        double sum = after->second.values[i], g = sqrt(sum - before->second.values[i]);
        expect(name, i, fabs(after->value.values[i] - before->value.values[i]),
               rate * g / (sqrt(sum) + EPSILON), 1e-6 * fabs(before->value.values[i]) + 1e-3 * rate);
        moved += after->value.values[i] != before->value.values[i];
    }
    return moved;
}

/* Six steps of an optimizer; every number of every table. */
static void check_optimizer(const char *setting, bool lazy,
                            int64_t check(const char *, const moments *, const moments *, int, double,
                                          bool)) {
    static const char *const common[] = {"steps=6",      "rate=0.05",         "vertical_rate=0.02",
                                         "beta1=0.5",    "beta2=0.75",        "epsilon=1e-3",
                                         "dim=6",        "batch=8",           "negatives=2",
                                         "threads=2",    "schedule=constant", "eval_every=0",
                                         "save_every=0", "references=3",      NULL};
    const char *const own[] = {setting, NULL};
    const char *all[MAX_SETTINGS];
    char run[96];
    join(all, common, own);
    snprintf(run, sizeof run, "%s/%s", folder, setting);
    moments before[TRAINING_TABLES];
    const char *initial = initial_run(NULL, all);
    for (int t = 0; t < TRAINING_TABLES; t++) before[t] = first_moments(initial, training_tables[t]);
    for (int step = 1; step <= 6; step++) {
        training_run(NULL, data, run, all, step);
        for (int t = 0; t < TRAINING_TABLES; t++) {
            moments after = read_moments(run, training_tables[t]);
            double rate = t < 2 ? RATE : AGGREGATOR_RATE;
            int64_t moved = check(training_tables[t], &before[t], &after, step, rate, lazy && t == 0);
            assert_true(moved > 0);
            if (lazy && t == 0) assert_true(moved < after.value.count);
            moments_free(&before[t]);
            before[t] = after;
        }
    }
    for (int t = 0; t < TRAINING_TABLES; t++) moments_free(&before[t]);
}

static void adam_by_hand(void **state) {
    (void)state;
    check_optimizer("optimizer=adam", false, check_adam);
}

static void weight_decay_by_hand(void **state) {
    (void)state;
    decay = 0.5;
    check_optimizer("weight_decay=0.5", false, check_adam);
    decay = 0;
}

static void lazy_adam_by_hand(void **state) {
    (void)state;
    check_optimizer("optimizer=lazy-adam", true, check_adam);
}

static void adagrad_by_hand(void **state) {
    (void)state;
    check_optimizer("optimizer=adagrad", false, check_adagrad);
}

/* ---- Initial values ------------------------------------------------------------------------------ */

static double deviation(const training_table *table) {
    double sum = 0;
    for (int64_t i = 0; i < table->count; i++) sum += table->values[i] * table->values[i];
    return sqrt(sum / (double)table->count);
}

/* The share of numbers within +-bound. */
static double share_within(const training_table *table, double bound) {
    int64_t within = 0;
    for (int64_t i = 0; i < table->count; i++) within += fabs(table->values[i]) <= bound;
    return (double)within / (double)table->count;
}

static double mean_of(const training_table *table) {
    double sum = 0;
    for (int64_t i = 0; i < table->count; i++) sum += table->values[i];
    return sum / (double)table->count;
}

/* Uniform in +-range: a mean of 0, nothing outside, a half within the inner half, and some at the ends.
 * Counts are of at least 400 numbers: the bounds are four deviations. */
static void check_uniform(const char *model, const char *name, const training_table *table,
                          double range) {
    double count = (double)table->count, most = 0;
    for (int64_t i = 0; i < table->count; i++) most = fmax(most, fabs(table->values[i]));
    if (!(count >= 400 && most <= range * 1.000001 && most > range * 0.97 &&
          fabs(mean_of(table)) < 4 * range / sqrt(3 * count) &&
          fabs(share_within(table, range / 2) - 0.5) < 4 * 0.5 / sqrt(count)))
        fail_msg("%s: %s is not uniform in +-%g: mean %g, largest %g, %g within its half", model, name,
                 range, mean_of(table), most, share_within(table, range / 2));
}

static void check_normal(const char *model, const char *name, const training_table *table,
                         double scale) {
    double count = (double)table->count;
    if (!(fabs(mean_of(table)) < 4 * scale / sqrt(count) &&
          fabs(deviation(table) / scale - 1) < 4 / sqrt(2 * count) &&
          fabs(share_within(table, scale) - 0.6827) < 4 * 0.466 / sqrt(count)))
        fail_msg("%s: %s is not normal with deviation %g: mean %g, deviation %g, %g within one", model,
                 name, scale, mean_of(table), deviation(table), share_within(table, scale));
}

static const struct {
    const char *model;
    const char *settings[4];
    double range;
} ranges[] = {
    {"rotate", {"dim=80", "margin=6"}, 0.1},
    {"rotate", {"dim=100", "margin=0"}, 0.02},
    {"complex", {"dim=40", "margin=6"}, 0.2},
    {"transe", {"dim=80", "margin=14"}, 0.2},
    {"distmult", {"dim=80", "margin=0"}, 0.025},
    {"rescal", {"dim=25", "margin=3"}, 0.2},
    {"transr", {"dim=25", "relation_dim=20", "margin=3"}, 0.2},
};

/* Every table of every model: embeddings in +-(margin + 2) / dim or normal with init_scale; the
 * aggregator's matrices in +-sqrt(6 / (rows + columns)) and its biases zero, whatever init_scale is. */
static void initial_values(void **state) {
    (void)state;
    for (size_t r = 0; r < 2 * sizeof ranges / sizeof *ranges; r++) {
        bool normal = r % 2;
        char model[32];
        snprintf(model, sizeof model, "model=%s", ranges[r / 2].model);
        const char *const own[] = {model,
                                   "batch=8",
                                   "negatives=2",
                                   "threads=2",
                                   "references=2",
                                   "eval_every=0",
                                   normal ? "init_scale=0.7" : NULL,
                                   NULL};
        const char *all[MAX_SETTINGS];
        join(all, own, ranges[r / 2].settings);
        const char *initial = initial_run(NULL, all);
        for (int t = 0; t < TRAINING_TABLES; t++) {
            training_table table = saved_table(initial, training_tables[t]);
            double glorot = sqrt(6.0 / (double)(table.rows + table.columns));
            if (t >= 5)
                assert_true(deviation(&table) < 1e-20);
            else if (t >= 2)
                check_uniform(model, training_tables[t], &table, glorot);
            else if (normal)
                check_normal(model, training_tables[t], &table, 0.7);
            else
                check_uniform(model, training_tables[t], &table, ranges[r / 2].range);
            training_table_free(&table);
        }
    }
}

/* RotatE's phases, as they are exported in radians, start anywhere on the circle. */
static void phases_span_the_circle(void **state) {
    (void)state;
    static const char *const settings[][8] = {{"dim=80", "margin=6", "batch=8", "negatives=2"},
                                              {"dim=100", "margin=0", "batch=8", "negatives=2"}};
    for (int i = 0; i < 2; i++) {
        char arrays[96];
        snprintf(arrays, sizeof arrays, "%s/phases-%d", folder, i);
        vlp_run *run = training_open(initial_run(NULL, settings[i]));
        assert_int_equal(vlp_run_export(run, arrays), VLP_OK);
        vlp_run_free(run);
        vlp_array phases = {0};
        assert_int_equal(vlp_npy_read(&phases, support_path(arrays, "relations.npy")), VLP_OK);
        training_table table = {phases.shape[0], phases.shape[1], phases.shape[0] * phases.shape[1],
                                malloc((size_t)(phases.shape[0] * phases.shape[1]) * sizeof(double))};
        assert_non_null(table.values);
        for (int64_t j = 0; j < table.count; j++) table.values[j] = (double)phases.data[j];
        check_uniform("rotate", "phases", &table, 3.14159265);
        training_table_free(&table);
        vlp_array_free(&phases);
    }
}

/* Tables have random streams of their own, and another seed gives other values. */
static void initial_values_differ(void **state) {
    (void)state;
    static const char *const settings[] = {"model=rotate", "dim=20",       "batch=8", "negatives=2",
                                           "eval_every=0", "references=2", NULL};
    static const char *const other[] = {"model=rotate", "dim=20",       "batch=8", "negatives=2",
                                        "eval_every=0", "references=2", "seed=1",  NULL};
    training_table tables[5], others[5];
    const char *initial = initial_run(NULL, settings);
    for (int t = 0; t < 5; t++) tables[t] = saved_table(initial, training_tables[t]);
    initial = initial_run(NULL, other);
    for (int t = 0; t < 5; t++) others[t] = saved_table(initial, training_tables[t]);
    /* Scaled to one range, the first numbers of two tables would be the same in one stream. */
    for (int t = 0; t < 5; t++) {
        for (int u = 0; u < t; u++) {
            int same = 0;
            for (int i = 0; i < 100; i++)
                same += fabs(tables[t].values[i] / deviation(&tables[t]) -
                             tables[u].values[i] / deviation(&tables[u])) < 0.05;
            if (same > 30) fail_msg("%s begins as %s does", training_tables[t], training_tables[u]);
        }
        assert_memory_not_equal(tables[t].values, others[t].values, 100 * sizeof(double));
    }
    for (int t = 0; t < 5; t++) {
        training_table_free(&tables[t]);
        training_table_free(&others[t]);
    }
}

/* ---- Temperature --------------------------------------------------------------------------------- */

/* alpha times the mean of -log softmax(temperature f_c)[answer] over all training queries, from the f_c
 * of a run; each query without its own triple. */
static double vertical_loss_by_hand(const char *path, double temperature, double weight) {
    vlp_run *run = training_open(path);
    const vlp_dataset *dataset = vlp_run_dataset(run);
    int64_t train;
    const vlp_triple *triples = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
    int32_t relations = vlp_dataset_relation_count(dataset);
    vlp_query *queries = malloc(2 * (size_t)train * sizeof *queries);
    assert_non_null(queries);
    for (int64_t i = 0; i < train; i++) {
        queries[i] = (vlp_query){triples[i].head, triples[i].relation, i};
        queries[train + i] = (vlp_query){triples[i].tail, triples[i].relation + relations, i};
    }
    training_scores scores = training_score(run, queries, 2 * train);
    double loss = 0;
    for (int64_t i = 0; i < 2 * train; i++) {
        const double *f_c = scores.vertical + i * scores.entities;
        double sum = 0;
        for (int32_t e = 0; e < scores.entities; e++) sum += exp(temperature * f_c[e]);
        int32_t answer = i < train ? triples[i].tail : triples[i - train].head;
        loss += log(sum) - temperature * f_c[answer];
    }
    training_scores_free(&scores);
    free(queries);
    vlp_run_free(run);
    return weight * loss / (double)(2 * train);
}

/* A batch of all queries, so that every step has the same loss. */
static const char *const whole_batches[] = {"batch=1000",        "dim=6",       "references=4",
                                            "threads=2",         "negatives=4", "eval_every=0",
                                            "schedule=constant", NULL};

static void temperature_in_the_loss(void **state) {
    (void)state;
    static const double temperatures[] = {1, 3, 10, 25};
    double losses[4];
    for (int t = 0; t < 4; t++) {
        char run[96], text[32];
        const char *all[MAX_SETTINGS];
        snprintf(run, sizeof run, "%s/temperature-%d", folder, t);
        snprintf(text, sizeof text, "temperature=%g", temperatures[t]);
        const char *const own[] = {text,      "rate=1e-30",          "vertical_rate=1e-30",
                                   "steps=1", "vertical_weight=0.8", NULL};
        join(all, whole_batches, own);
        vlp_train_report report;
        assert_true(training_run(&report, data, run, all, 0));
        losses[t] = vertical_loss_by_hand(run, temperatures[t], 0.8);
        if (fabs(report.losses[VLP_VERTICAL] - losses[t]) > 1e-4 * losses[t])
            fail_msg("temperature %g: a loss of %.9g, expected %.9g", temperatures[t],
                     report.losses[VLP_VERTICAL], losses[t]);
    }
    for (int t = 1; t < 4; t++) assert_true(fabs(losses[t] - losses[0]) > 0.01 * losses[0]);
}

/* A step's loss is that of the tables the steps before it have left, entities that moved and their norms
 * too. */
static void loss_follows_the_tables(void **state) {
    (void)state;
    static const char *const own[] = {"rate=0.1", "vertical_rate=0.02", "vertical_weight=0.8",
                                      "temperature=5", NULL};
    double expected = 0;
    for (int steps = 1; steps <= 4; steps++) {
        char run[96], text[32];
        const char *all[MAX_SETTINGS], *with_own[MAX_SETTINGS];
        snprintf(run, sizeof run, "%s/following-%d", folder, steps);
        snprintf(text, sizeof text, "steps=%d", steps);
        const char *const last[] = {text, NULL};
        join(with_own, whole_batches, own);
        join(all, with_own, last);
        vlp_train_report report;
        assert_true(training_run(&report, data, run, all, 0));
        if (steps > 1 && fabs(report.losses[VLP_VERTICAL] - expected) > 1e-4 * expected)
            fail_msg("step %d: a loss of %.9g, expected %.9g", steps, report.losses[VLP_VERTICAL],
                     expected);
        expected = vertical_loss_by_hand(run, 5, 0.8);
    }
}

/* A step of Adagrad with epsilon = 1 moves a number by d = rate g / (|g| + 1), so that its gradient can
 * be told from d; the loss then has to fall by the sum of g d, as long as steps are small. Embeddings
 * stay as they are. */
static void temperature_in_the_gradient(void **state) {
    (void)state;
    static const double temperatures[] = {2, 12};
    for (int t = 0; t < 2; t++) {
        char text[32], runs[2][96];
        snprintf(text, sizeof text, "temperature=%g", temperatures[t]);
        const char *const own[] = {text,        "rate=1e-30", "vertical_rate=0.002", "optimizer=adagrad",
                                   "epsilon=1", NULL};
        const char *all[MAX_SETTINGS], *longer[MAX_SETTINGS];
        const char *const steps[] = {"steps=1", NULL}, *const more[] = {"steps=2", NULL};
        join(longer, whole_batches, own);
        join(all, longer, steps);
        join(longer, all, more);
        vlp_train_report reports[2];
        for (int i = 0; i < 2; i++) {
            snprintf(runs[i], sizeof runs[i], "%s/gradient-%d-%d", folder, t, i);
            assert_true(training_run(&reports[i], data, runs[i], i ? longer : all, 0));
        }
        double expected = 0, fall = reports[0].losses[VLP_VERTICAL] - reports[1].losses[VLP_VERTICAL];
        const char *initial = initial_run(NULL, all);
        for (int id = 2; id < TRAINING_TABLES; id++) {
            training_table before = saved_table(initial, training_tables[id]);
            training_table after = saved_table(runs[0], training_tables[id]);
            for (int64_t i = 0; i < before.count; i++) {
                double d = fabs(before.values[i] - after.values[i]), share = d / 0.002;
                expected += d * share / (1 - share);
            }
            training_table_free(&before);
            training_table_free(&after);
        }
        assert_true(expected > 1e-5);
        if (fabs(fall - expected) > 0.05 * expected)
            fail_msg("temperature %g: the loss falls by %g, expected %g", temperatures[t], fall,
                     expected);
    }
}

/* ---- N3 ------------------------------------------------------------------------------------------ */

/* The sum of cubes of a row: of moduli where its halves are real and imaginary parts. */
static double cubes(const training_table *table, int64_t row, bool is_complex) {
    const double *x = table->values + row * table->columns;
    int64_t half = table->columns / 2;
    double sum = 0;
    for (int64_t j = 0; j < (is_complex ? half : table->columns); j++)
        sum += pow(is_complex ? hypot(x[j], x[j + half]) : fabs(x[j]), 3);
    return sum;
}

/* What n3 adds to the loss of a batch of all queries: its weight times the mean of the three rows'
 * cubes. */
static void n3_of_complex_numbers(void **state) {
    (void)state;
    static const char *const models[] = {"model=distmult", "model=complex"};
    for (int m = 0; m < 2; m++) {
        double losses[2];
        const char *run = NULL;
        for (int with = 0; with < 2; with++) {
            const char *const own[] = {models[m],
                                       "loss=cross-entropy",
                                       "vertical=off",
                                       "batch=1000",
                                       "dim=6",
                                       "init_scale=0.5",
                                       "query_weights=off",
                                       "eval_every=0",
                                       with ? "n3=0.3" : "n3=0",
                                       NULL};
            vlp_train_report report;
            run = initial_run(&report, own);
            losses[with] = report.losses[VLP_HORIZONTAL];
        }
        training_table entities = saved_table(run, "entities"),
                       relations = saved_table(run, "relations");
        vlp_dataset *dataset = NULL;
        assert_int_equal(vlp_dataset_open(&dataset, data, NULL), VLP_OK);
        int64_t train;
        const vlp_triple *triples = vlp_dataset_triples(dataset, VLP_TRAIN, &train);
        int32_t inverse = vlp_dataset_relation_count(dataset);
        double sum = 0;
        for (int64_t i = 0; i < train; i++)
            sum += 2 * cubes(&entities, triples[i].head, m) + 2 * cubes(&entities, triples[i].tail, m) +
                   cubes(&relations, triples[i].relation, m) +
                   cubes(&relations, triples[i].relation + inverse, m);
        expect(models[m], 0, losses[1] - losses[0], 0.3 * sum / (double)(2 * train), 1e-4);
        vlp_dataset_free(dataset);
        training_table_free(&entities);
        training_table_free(&relations);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_of_every_step),     cmocka_unit_test(adam_by_hand),
        cmocka_unit_test(weight_decay_by_hand),    cmocka_unit_test(lazy_adam_by_hand),
        cmocka_unit_test(adagrad_by_hand),         cmocka_unit_test(initial_values),
        cmocka_unit_test(initial_values_differ),   cmocka_unit_test(phases_span_the_circle),
        cmocka_unit_test(temperature_in_the_loss), cmocka_unit_test(temperature_in_the_gradient),
        cmocka_unit_test(loss_follows_the_tables), cmocka_unit_test(n3_of_complex_numbers),
    };
    return cmocka_run_group_tests_name("training, updates", tests, make_data, remove_data);
}
