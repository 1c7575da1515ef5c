/* The loop of a training and what it keeps: the mixture, the best model, when it stops and saves, what
 * resuming takes up; and which answers the filters of predictions and evaluations hide. Oracles go over
 * all entities, all candidates and all triples. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lab.h"
#include "random_data.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static char folder[64], data[64], other_data[96];

static int make_data(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(data, sizeof data, "%s", folder);
    training_data(data, 4, 4);
    /* The same train and valid, another test. */
    snprintf(other_data, sizeof other_data, "%s/other", folder);
    assert_int_equal(mkdir(other_data, 0777), 0);
    training_data(other_data, 4, 5);
    return 0;
}

static int remove_data(void **state) {
    (void)state;
    support_remove(folder);
    return 0;
}

/* A place for a run, good until the next eight calls. */
static const char *new_run(void) {
    static char paths[8][96];
    static int next;
    char *path = paths[next % 8];
    snprintf(path, sizeof paths[0], "%s/run-%d", folder, next++);
    return path;
}

/* ---- Ranks by hand ------------------------------------------------------------------------------- */

/* The queries of a split, and their answers: (2 triples). */
typedef struct asked {
    int64_t count;
    vlp_query *queries;
    int32_t *answers;
} asked;

static asked ask_split(const vlp_dataset *dataset, vlp_split split) {
    int64_t triples;
    vlp_dataset_triples(dataset, split, &triples);
    asked out = {2 * triples, malloc(2 * (size_t)triples * sizeof(vlp_query)),
                 malloc(2 * (size_t)triples * sizeof(int32_t))};
    assert_true(out.queries && out.answers);
    for (int64_t i = 0; i < out.count; i++)
        out.queries[i] = query_of(dataset, split, i, &out.answers[i]);
    return out;
}

static void asked_free(asked *all) {
    free(all->queries);
    free(all->answers);
}

/* The mean reciprocal rank of f = vertical f_c + horizontal f_g: ties share the mean of their places,
 * answers that are known in the splits of `filter` do not compete. */
static double mrr_by_hand(const vlp_dataset *dataset, const asked *all, const training_scores *scores,
                          double vertical, double horizontal, unsigned filter) {
    double sum = 0;
    for (int64_t i = 0; i < all->count; i++) {
        double f[64], rank = 1;
        for (int32_t e = 0; e < scores->entities; e++) {
            int64_t at = i * scores->entities + e;
            f[e] = horizontal * scores->horizontal[at];
            if (vertical != 0) f[e] += vertical * scores->vertical[at];
        }
        for (int32_t e = 0; e < scores->entities; e++) {
            if (e == all->answers[i] || known(dataset, filter, all->queries[i], e)) continue;
            rank += f[e] > f[all->answers[i]] ? 1 : f[e] == f[all->answers[i]] ? 0.5 : 0;
        }
        sum += 1 / rank;
    }
    return sum / (double)all->count;
}

static void expect_near(const char *what, double got, double expected, double tolerance) {
    if (!(fabs(got - expected) <= tolerance)) fail_msg("%s is %.9g, expected %.9g", what, got, expected);
}

/* ---- The mixture --------------------------------------------------------------------------------- */

/* The candidates: f_c alone, lambda from 10^-4 to 10^2 in quarters of a decade, f_g alone. */
enum { LAMBDAS = 25 };

typedef struct choice {
    double lambda, mrr, worst;
    bool horizontal_only;
} choice;

/* Tries every candidate on the validation split. */
static choice choose_by_hand(vlp_run *run) {
    const vlp_dataset *dataset = vlp_run_dataset(run);
    asked all = ask_split(dataset, VLP_VALID);
    training_scores scores = training_score(run, all.queries, all.count);
    choice best = {0, -1, 2, false};
    for (int i = 0; i < LAMBDAS + 2; i++) {
        bool horizontal_only = i == LAMBDAS + 1;
        double lambda = i == 0 ? 0 : horizontal_only ? 1 : pow(10, -4 + 0.25 * (i - 1));
        double mrr = mrr_by_hand(dataset, &all, &scores, !horizontal_only, lambda, TRAIN_VALID);
        best.worst = fmin(best.worst, mrr);
        if (mrr > best.mrr) {
            best.mrr = mrr;
            best.lambda = lambda;
            best.horizontal_only = horizontal_only;
        }
    }
    training_scores_free(&scores);
    asked_free(&all);
    return best;
}

static const char *const mixtures[][12] = {
    {"model=rotate", "steps=30", "rate=0.02"},
    {"model=distmult", "steps=60", "rate=0.05", "vertical_rate=0.001"},
    {"model=complex", "steps=6", "rate=0.01", "vertical_rate=0.05"},
    {"model=transe", "steps=40", "rate=0.05", "references=2"},
    {"model=rotate", "steps=60", "rate=0.05", "vertical_rate=0.0001"},
};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures };

static void with_common(const char *out[24], const char *const *own) {
    static const char *const common[] = {"batch=64",  "negatives=8",  "dim=6",
                                         "threads=2", "eval_every=0", "save_every=0"};
    int count = 0;
    for (; count < 6; count++) out[count] = common[count];
    for (; *own; own++) out[count++] = *own;
    out[count] = NULL;
}

/* A run keeps the candidate with the best MRR on the validation split, and uses it. */
static void best_mixture_is_kept(void **state) {
    (void)state;
    double least = 1e9, most = 0;
    for (int i = 0; i < MIXTURES; i++) {
        const char *settings[24], *path = new_run();
        with_common(settings, mixtures[i]);
        vlp_train_report report;
        assert_true(training_run(&report, data, path, settings, 0));
        vlp_run *run = training_open(path);
        choice best = choose_by_hand(run);
        assert_true(best.mrr > best.worst + 0.02); /* there is something to choose */
        vlp_run_info info;
        vlp_run_describe(&info, run);
        assert_int_equal(info.horizontal_only, best.horizontal_only);
        expect_near("lambda", info.lambda, best.lambda, 1e-3 * best.lambda);
        expect_near("the validation MRR of the run", info.valid_mrr, best.mrr, 1e-9);
        expect_near("the validation MRR of the report", report.valid_mrr, best.mrr, 1e-9);
        vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
        options.split = VLP_VALID;
        vlp_evaluation *evaluation = NULL;
        must(vlp_run_evaluate(&evaluation, run, &options));
        expect_near("the MRR of an evaluation", evaluation->both.mrr, best.mrr, 1e-9);
        vlp_evaluation_free(evaluation);
        vlp_run_free(run);
        double position = best.horizontal_only ? 1e9 : best.lambda;
        least = fmin(least, position);
        most = fmax(most, position);
    }
    assert_true(most > 2 * least); /* not always the same choice */
}

/* Another test split changes nothing that a training decides. */
static void test_plays_no_part(void **state) {
    (void)state;
    for (int i = 0; i < MIXTURES; i++) {
        const char *settings[24], *own[12] = {NULL}, *runs[2] = {new_run(), new_run()};
        int count = 0;
        for (; mixtures[i][count]; count++) own[count] = mixtures[i][count];
        own[count++] = "eval_every=3";
        with_common(settings, own);
        vlp_train_report reports[2];
        for (int r = 0; r < 2; r++)
            assert_true(training_run(&reports[r], r ? other_data : data, runs[r], settings, 0));
        expect_near("the validation MRR", reports[1].valid_mrr, reports[0].valid_mrr, 0);
        static const char *const keys[] = {"best_step", "weight_vertical", "weight_horizontal"};
        for (int k = 0; k < 3; k++)
            expect_near(keys[k], training_metadata(runs[1], "model.safetensors", keys[k]),
                        training_metadata(runs[0], "model.safetensors", keys[k]), 0);
        training_table tables[2];
        for (int r = 0; r < 2; r++) tables[r] = training_read(runs[r], "model.safetensors", "entities");
        assert_memory_equal(tables[0].values, tables[1].values,
                            (size_t)tables[0].count * sizeof(double));
        for (int r = 0; r < 2; r++) training_table_free(&tables[r]);
    }
}

/* ---- Evaluating, stopping and keeping the best --------------------------------------------------- */

/* A training whose validation MRR goes up and down. */
static const char *const unsteady[] = {"model=distmult", "steps=60",     "eval_every=2", "rate=0.3",
                                       "batch=16",       "negatives=4",  "dim=4",        "vertical=off",
                                       "threads=2",      "save_every=5", "seed=1"};
enum { UNSTEADY = sizeof unsteady / sizeof *unsteady };

static void unsteady_with(const char *out[24], const char *setting) {
    memcpy(out, unsteady, sizeof unsteady);
    out[UNSTEADY] = setting;
    out[UNSTEADY + 1] = NULL;
}

static vlp_history *history_of(const char *path) {
    vlp_run *run = training_open(path);
    vlp_history *history = NULL;
    must(vlp_run_history(&history, run));
    vlp_run_free(run);
    return history;
}

/* The evaluation at which `patience` runs out, and whether it does. */
static int64_t stop_by_hand(const vlp_history *history, int patience, bool *stops) {
    double best = -1;
    int waited = 0;
    *stops = true;
    for (int64_t i = 0; i < history->count; i++) {
        if (history->items[i].valid_mrr > best) {
            best = history->items[i].valid_mrr;
            waited = 0;
        } else if (++waited == patience) {
            return i;
        }
    }
    *stops = false;
    return history->count - 1;
}

/* With the sequence of validation MRRs known from a run without patience, it is known where others end.
 */
static void patience_ends_a_run(void **state) {
    (void)state;
    const char *settings[24], *whole = new_run();
    unsteady_with(settings, "patience=0");
    vlp_train_report report;
    assert_true(training_run(&report, data, whole, settings, 0));
    assert_int_equal(report.steps, 60);
    vlp_history *history = history_of(whole);
    assert_int_equal(history->count, 30);
    int ended = 0, waited = 0;
    for (int patience = 1; patience <= 8; patience++) {
        char text[32];
        bool stops;
        snprintf(text, sizeof text, "patience=%d", patience);
        unsteady_with(settings, text);
        int64_t last = stop_by_hand(history, patience, &stops);
        assert_true(training_run(&report, data, new_run(), settings, 0));
        if (report.steps != history->items[last].step)
            fail_msg("patience %d ends at step %lld, expected %lld", patience, (long long)report.steps,
                     (long long)history->items[last].step);
        ended += stops;
        waited += stops && last > patience; /* a better one came in between */
    }
    assert_true(ended >= 3 && waited >= 2);
    vlp_history_free(history);
}

/* Where nothing learns, the first evaluation is the best and patience runs out after as many more. It
 * does so too when the run is stopped in between, however often; and a run that has ended stays so. */
static void patience_survives_resuming(void **state) {
    (void)state;
    for (int patience = 1; patience <= 3; patience++) {
        char text[32];
        snprintf(text, sizeof text, "patience=%d", patience);
        const char *const settings[] = {
            "rate=1e-30", "steps=40",    "eval_every=4", "save_every=3", "vertical=off",
            "batch=16",   "negatives=4", "dim=4",        "threads=2",    text,
            NULL};
        const char *whole = new_run(), *parts = new_run();
        vlp_train_report report;
        assert_true(training_run(&report, data, whole, settings, 0));
        assert_int_equal(report.steps, 4 * (1 + patience));
        bool ended = false;
        for (int64_t stop = 1; !ended; stop++) {
            assert_true(stop <= 40);
            ended = training_run(&report, data, parts, settings, stop);
        }
        assert_int_equal(report.steps, 4 * (1 + patience));
        assert_true(training_run(&report, data, parts, settings, 0));
        assert_int_equal(report.steps, 4 * (1 + patience));
    }
}

/* The model is that of the step with the best validation MRR, the first of several, bit for bit; the
 * state is that of the last step. */
static void best_model_is_kept(void **state) {
    (void)state;
    const char *settings[24], *whole = new_run(), *until = new_run();
    unsteady_with(settings, "patience=0");
    assert_true(training_run(NULL, data, whole, settings, 0));
    vlp_history *history = history_of(whole);
    int64_t best = 0;
    for (int64_t i = 0; i < history->count; i++) {
        assert_int_equal(history->items[i].step, 2 * (i + 1));
        if (history->items[i].valid_mrr > history->items[best].valid_mrr) best = i;
    }
    assert_true(best > 0 && best < history->count - 1);
    int64_t step = history->items[best].step;
    assert_int_equal((int64_t)training_metadata(whole, "model.safetensors", "step"), step);
    assert_int_equal((int64_t)training_metadata(whole, "state.safetensors", "step"), 60);
    assert_int_equal((int64_t)training_metadata(whole, "state.safetensors", "best_step"), step);
    expect_near("the best MRR", training_metadata(whole, "state.safetensors", "best_mrr"),
                history->items[best].valid_mrr, 1e-6);
    assert_false(training_run(NULL, data, until, settings, step));
    for (int t = 0; t < 2; t++) {
        training_table kept = training_read(whole, "model.safetensors", training_tables[t]);
        training_table then = training_read(until, "state.safetensors", training_tables[t]);
        training_table last = training_read(whole, "state.safetensors", training_tables[t]);
        size_t bytes = (size_t)kept.count * sizeof(double);
        assert_memory_equal(kept.values, then.values, bytes);
        assert_memory_not_equal(kept.values, last.values, bytes);
        training_table_free(&kept);
        training_table_free(&then);
        training_table_free(&last);
    }
    vlp_history_free(history);
}

/* Stopped and resumed at every third step, the unsteady run has the same history, model and state. */
static void resuming_keeps_the_best(void **state) {
    (void)state;
    const char *settings[24], *whole = new_run(), *parts = new_run();
    unsteady_with(settings, "patience=8");
    vlp_train_report reports[2];
    assert_true(training_run(&reports[0], data, whole, settings, 0));
    for (int64_t stop = 3; !training_run(&reports[1], data, parts, settings, stop); stop += 3)
        assert_true(stop < 60);
    assert_int_equal(reports[0].steps, reports[1].steps);
    vlp_history *histories[2] = {history_of(whole), history_of(parts)};
    assert_int_equal(histories[0]->count, histories[1]->count);
    for (int64_t i = 0; i < histories[0]->count; i++)
        assert_memory_equal(&histories[0]->items[i], &histories[1]->items[i], sizeof(vlp_history_point));
    static const char *const files[] = {"model.safetensors", "state.safetensors"};
    for (int f = 0; f < 2; f++) {
        static const char *const keys[] = {"step", "best_step", "best_mrr", "waited"};
        for (int k = 0; k < 4; k++)
            expect_near(keys[k], training_metadata(parts, files[f], keys[k]),
                        training_metadata(whole, files[f], keys[k]), 0);
        for (int t = 0; t < 2; t++) {
            training_table tables[2] = {training_read(whole, files[f], training_tables[t]),
                                        training_read(parts, files[f], training_tables[t])};
            assert_memory_equal(tables[0].values, tables[1].values,
                                (size_t)tables[0].count * sizeof(double));
            for (int i = 0; i < 2; i++) training_table_free(&tables[i]);
        }
    }
    for (int i = 0; i < 2; i++) vlp_history_free(histories[i]);
}

/* ---- Saving -------------------------------------------------------------------------------------- */

/* What was saved by the time each step was reported. */
typedef struct saves {
    const char *run;
    int64_t every, steps;
    int64_t seen; /* steps whose save was seen */
} saves;

static void watch_saves(void *user, const char *what, int64_t done, int64_t total) {
    saves *work = user;
    (void)total;
    if (strcmp(what, "steps") != 0 || done < 2) return;
    /* Whether a step is reported before it is saved or after is left open. */
    int64_t saved = (int64_t)training_metadata(work->run, "state.safetensors", "step");
    int64_t before = work->every ? (done - 1) / work->every * work->every : 0;
    int64_t now = work->every ? done / work->every * work->every : 0;
    if (done == work->steps) now = done;
    if (saved < 0) saved = 0;
    if (saved != before && saved != now)
        fail_msg("save_every = %lld: at step %lld that of step %lld is saved", (long long)work->every,
                 (long long)done, (long long)saved);
    work->seen++;
}

static void saves_when_due(void **state) {
    (void)state;
    for (int64_t every = 0; every <= 5; every++) {
        char text[32];
        snprintf(text, sizeof text, "save_every=%lld", (long long)every);
        const char *const settings[] = {"steps=13",    "eval_every=4", "vertical=off", "batch=16",
                                        "negatives=4", "dim=4",        "threads=2",    text};
        saves work = {.run = new_run(), .every = every, .steps = 13};
        vlp_observer observer = {.progress = watch_saves, .user = &work};
        vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
        options.settings = settings;
        options.setting_count = sizeof settings / sizeof *settings;
        options.observer = &observer;
        options.device = lab_device();
        must(vlp_train(NULL, data, work.run, &options));
        assert_int_equal(work.seen, 12);
        assert_int_equal((int64_t)training_metadata(work.run, "state.safetensors", "step"), 13);
        vlp_history *history = history_of(work.run);
        static const int64_t evaluated[] = {4, 8, 12, 13};
        assert_int_equal(history->count, 4);
        for (int i = 0; i < 4; i++) assert_int_equal(history->items[i].step, evaluated[i]);
        vlp_history_free(history);
    }
}

/* ---- Filters ------------------------------------------------------------------------------------- */

static vlp_run *any_run(void) {
    static const char *const own[] = {"steps=10", "rate=0.02", NULL};
    const char *settings[24], *path = new_run();
    with_common(settings, own);
    assert_true(training_run(NULL, data, path, settings, 0));
    return training_open(path);
}

/* Each combination of splits hides exactly their answers; 0 stands for all. With `known` they are shown
 * and marked. */
static void filters_of_predictions(void **state) {
    (void)state;
    vlp_run *run = any_run();
    const vlp_dataset *dataset = vlp_run_dataset(run);
    int32_t entities = vlp_dataset_entity_count(dataset);
    int64_t hidden[8] = {0}, count = 2 * (int64_t)vlp_dataset_relation_count(dataset) * entities;
    vlp_query *queries = malloc((size_t)count * sizeof *queries);
    assert_non_null(queries);
    for (int64_t i = 0; i < count; i++)
        queries[i] = (vlp_query){(int32_t)(i % entities), (int32_t)(i / entities), -1};
    for (unsigned filter = 0; filter < 8; filter++)
        for (int shows = 0; shows < 2; shows++) {
            vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
            options.count = entities;
            options.filter = filter;
            options.known = shows;
            vlp_predictions *predictions = NULL;
            must(vlp_run_predict(&predictions, run, queries, count, &options));
            for (int64_t i = 0; i < count; i++) {
                const vlp_answers *answers = vlp_predictions_get(predictions, i);
                int shown[64] = {0};
                for (int32_t j = 0; j < answers->prediction_count; j++)
                    shown[answers->predictions[j].entity] = answers->predictions[j].known ? 2 : 1;
                for (int32_t e = 0; e < entities; e++) {
                    bool is = known(dataset, filter ? filter : ALL, queries[i], e);
                    assert_int_equal(shown[e], !is ? 1 : shows ? 2 : 0);
                    hidden[filter] += is;
                }
            }
            vlp_predictions_free(predictions);
        }
    /* Every split has answers that no other has. */
    for (unsigned filter = 1; filter < 8; filter++)
        for (unsigned other = 1; other < filter; other++)
            if (hidden[filter] == hidden[other])
                fail_msg("filters %u and %u hide as many", filter, other);
    free(queries);
    vlp_run_free(run);
}

/* The same for the answers that do not compete in an evaluation. By default those of train, of valid and
 * of the split that is ranked. */
static void filters_of_evaluations(void **state) {
    (void)state;
    vlp_run *run = any_run();
    const vlp_dataset *dataset = vlp_run_dataset(run);
    vlp_run_info info;
    vlp_run_describe(&info, run);
    for (int split = VLP_VALID; split <= VLP_TEST; split++) {
        asked all = ask_split(dataset, (vlp_split)split);
        training_scores scores = training_score(run, all.queries, all.count);
        for (unsigned filter = 0; filter < 8; filter++) {
            vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
            options.split = (vlp_split)split;
            options.filter = filter;
            vlp_evaluation *evaluation = NULL;
            must(vlp_run_evaluate(&evaluation, run, &options));
            unsigned used = filter ? filter : split == VLP_TEST ? ALL : TRAIN_VALID;
            double both = mrr_by_hand(dataset, &all, &scores, !info.horizontal_only,
                                      info.horizontal_only ? 1 : info.lambda, used);
            expect_near("the MRR of f", evaluation->both.mrr, both, 1e-9);
            expect_near("the MRR of f_g", evaluation->alone[VLP_HORIZONTAL].mrr,
                        mrr_by_hand(dataset, &all, &scores, 0, 1, used), 1e-9);
            expect_near("the MRR of f_c", evaluation->alone[VLP_VERTICAL].mrr,
                        mrr_by_hand(dataset, &all, &scores, 1, 0, used), 1e-9);
            vlp_evaluation_free(evaluation);
        }
        training_scores_free(&scores);
        asked_free(&all);
    }
    vlp_run_free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_mixture_is_kept),   cmocka_unit_test(test_plays_no_part),
        cmocka_unit_test(patience_ends_a_run),    cmocka_unit_test(patience_survives_resuming),
        cmocka_unit_test(best_model_is_kept),     cmocka_unit_test(resuming_keeps_the_best),
        cmocka_unit_test(saves_when_due),         cmocka_unit_test(filters_of_predictions),
        cmocka_unit_test(filters_of_evaluations),
    };
    return cmocka_run_group_tests_name("training, the loop", tests, make_data, remove_data);
}
