/* The path model as a component of a run: its stage behind the embeddings, over a base, alone; resuming;
 * weights; scores. */
#include <math.h>
#include <string.h>

#include "run_lab.h"
#include "store/safetensors.h"
#include "vlp.h"

enum { MAX_SETTINGS = 24 };

static const char *const path_settings[] = {"path=on",       "path_layers=3",   "path_dim=16",
                                            "path_batch=16", "path_passes=0.5", "path_warmup=5",
                                            "path_rate=0.01"};
enum { PATH_SETTINGS = sizeof path_settings / sizeof *path_settings };

/* Trains with the usual settings, those of the path model where `path`, and some more (up to NULL). */
static vlp_status train(const char *run, bool path, const char *base, const vlp_observer *observer,
                        int resume, ...) {
    const char *settings[MAX_SETTINGS];
    int32_t count = 0;
    for (int i = 0; i < RUN_USUAL && !base; i++) settings[count++] = run_usual[i];
    for (int i = 0; i < PATH_SETTINGS && path; i++) settings[count++] = path_settings[i];
    va_list more;
    va_start(more, resume);
    for (const char *text; (text = va_arg(more, const char *));) settings[count++] = text;
    va_end(more);
    vlp_train_options options = run_options(settings, count, resume != 0);
    options.base = base;
    options.observer = observer;
    return vlp_train(NULL, run_family(), run, &options);
}

static vlp_safetensors *weights_of(const char *run, const char *file) {
    vlp_safetensors *out = NULL;
    must(vlp_safetensors_open(&out, support_path(run, file), true));
    return out;
}

/* Of the tensors whose names begin so, how many two runs have in common; with the same bits. */
static int32_t same_tensors(const char *left, const char *right, const char *file, const char *prefix) {
    vlp_safetensors *a = weights_of(left, file), *b = weights_of(right, file);
    int32_t count, same = 0;
    const vlp_tensor *all = vlp_safetensors_all(a, &count);
    for (int32_t i = 0; i < count; i++) {
        if (strncmp(all[i].name, prefix, strlen(prefix)) != 0) continue;
        const vlp_tensor *other = vlp_safetensors_find(b, all[i].name);
        if (!other) continue;
        size_t bytes = (size_t)(all[i].shape[0] * all[i].shape[1]) * sizeof(float);
        same += other->shape[0] == all[i].shape[0] && memcmp(all[i].data, other->data, bytes) == 0;
    }
    vlp_safetensors_free(a);
    vlp_safetensors_free(b);
    return same;
}

static double fact_of(const char *run, const char *file, const char *key) {
    vlp_safetensors *weights = weights_of(run, file);
    double value = strtod(vlp_safetensors_metadata(weights, key), NULL);
    vlp_safetensors_free(weights);
    return value;
}

/* ---- Stages -------------------------------------------------------------------------------------- */

static void trains_alone_over_a_base_or_behind_embeddings(void **state) {
    (void)state;
    char alone[256], plain[256], both[256], added[256];
    const char *folder = support_folder();
    snprintf(alone, sizeof alone, "%s/alone", folder);
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(both, sizeof both, "%s/both", folder);
    snprintf(added, sizeof added, "%s/added", folder);
    must(train(alone, true, NULL, NULL, false, "model=none", NULL));
    must(train(plain, false, NULL, NULL, false, NULL));
    must(train(both, true, NULL, NULL, false, NULL));
    must(train(added, true, plain, NULL, false, NULL));
    /* Nine tables; embeddings and aggregator have eight. */
    assert_int_equal(same_tensors(alone, alone, "model.safetensors", ""), 9);
    assert_int_equal(same_tensors(alone, both, "state.safetensors", "path_"), 27);
    assert_int_equal(same_tensors(alone, added, "state.safetensors", "path_"), 27);
    assert_int_equal(same_tensors(plain, both, "model.safetensors", ""), 8);
    assert_int_equal(same_tensors(plain, added, "model.safetensors", ""), 8);
    /* It has learned: none of its tables is what it was in the beginning. */
    assert_int_equal(same_tensors(plain, alone, "model.safetensors", "path_"), 0);
    double steps = fact_of(alone, "state.safetensors", "step");
    assert_true(steps >= 5);
    assert_true(fact_of(both, "state.safetensors", "step") == 12 + steps);
    assert_true(fact_of(added, "state.safetensors", "step") == steps);
}

/* The second stage starts from the best embeddings of the first, whatever it ended with. */
static void starts_from_the_best(void **state) {
    (void)state;
    char plain[256], both[256];
    snprintf(plain, sizeof plain, "%s/plain", support_folder());
    snprintf(both, sizeof both, "%s/both", support_folder());
    /* A rate at which the validation MRR falls, and patience that ends the stage. */
    must(train(plain, false, NULL, NULL, false, "rate=3", "eval_every=2", "patience=2", NULL));
    must(train(both, true, NULL, NULL, false, "rate=3", "eval_every=2", "patience=2", NULL));
    assert_true(fact_of(plain, "model.safetensors", "best_step") < 12);
    assert_int_equal(same_tensors(plain, both, "model.safetensors", ""), 8);
    assert_int_equal(same_tensors(plain, both, "state.safetensors", "entities"), 2); /* moments */
    /* The stage behind has its own count. */
    assert_true(fact_of(both, "state.safetensors", "step") > 12);
}

/* One step whose weight decay leaves nothing of what was there: the difference to a step without it are
 * the initial values, of the normalizations 1 and 0. */
static void weights_decay(void **state) {
    (void)state;
    char plain[256], decayed[256];
    snprintf(plain, sizeof plain, "%s/no-decay", support_folder());
    snprintf(decayed, sizeof decayed, "%s/decay", support_folder());
    must(train(plain, true, NULL, NULL, false, "model=none", "path_passes=1e-6", "path_warmup=0", NULL));
    must(train(decayed, true, NULL, NULL, false, "model=none", "path_passes=1e-6", "path_warmup=0",
               "path_weight_decay=100", NULL));
    assert_true(fact_of(plain, "state.safetensors", "step") == 1);
    vlp_safetensors *a = weights_of(plain, "state.safetensors");
    vlp_safetensors *b = weights_of(decayed, "state.safetensors");
    const vlp_tensor *left = vlp_safetensors_find(a, "path_norm");
    const vlp_tensor *right = vlp_safetensors_find(b, "path_norm");
    assert_int_equal(left->shape[0], 6);
    for (int64_t i = 0; i < 6 * left->shape[1]; i++) {
        double difference =
            (double)((const float *)left->data)[i] - (double)((const float *)right->data)[i];
        assert_true(fabs(difference - (i / left->shape[1] % 2 == 0)) < 1e-5);
    }
    vlp_safetensors_free(a);
    vlp_safetensors_free(b);
}

static void resumes_with_the_same_bits(void **state) {
    (void)state;
    char whole[256], parts[256];
    snprintf(whole, sizeof whole, "%s/whole", support_folder());
    must(train(whole, true, NULL, NULL, false, NULL));
    static const struct {
        const char *what;
        int64_t at;
    } stops[] = {{"steps", 5}, {"steps", 12}, {"steps of the path model", 2}};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        snprintf(parts, sizeof parts, "%s/parts%zu", support_folder(), i);
        run_stopper stop = {.at = stops[i].at, .what = stops[i].what};
        vlp_observer observer = run_stop_at(&stop);
        assert_int_equal(train(parts, true, NULL, &observer, false, NULL), VLP_ERROR_STOPPED);
        must(train(parts, true, NULL, NULL, true, NULL));
        assert_int_equal(same_tensors(whole, parts, "state.safetensors", ""), 3 * (8 + 9));
        assert_int_equal(same_tensors(whole, parts, "model.safetensors", ""), 8 + 9);
        assert_true(fact_of(whole, "model.safetensors", "weight_path") ==
                    fact_of(parts, "model.safetensors", "weight_path"));
    }
    run_expect(train(parts, true, NULL, NULL, true, "steps=20", NULL), VLP_ERROR_ARGUMENT,
               "steps are those of the embeddings");
}

/* ---- Scores -------------------------------------------------------------------------------------- */

/* f is the weighted sum of its components, in predictions and in scores of triples, and the weights on
 * the validation split are at least as good as each component alone. */
static void sums_its_components(void **state) {
    (void)state;
    char both[256];
    snprintf(both, sizeof both, "%s/both", support_folder());
    must(train(both, true, NULL, NULL, false, "path_passes=2", NULL));
    vlp_run *run = NULL;
    vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
    opening.device = lab_device();
    must(vlp_run_open(&run, both, &opening));
    vlp_run_info info;
    vlp_run_describe(&info, run);
    assert_int_equal(info.components, 7);
    vlp_evaluation *evaluation = NULL;
    vlp_evaluation_options evaluating = VLP_EVALUATION_OPTIONS_INIT;
    evaluating.split = VLP_VALID;
    evaluating.filter = 1u << VLP_TRAIN | 1u << VLP_VALID;
    must(vlp_run_evaluate(&evaluation, run, &evaluating));
    for (int c = 0; c < VLP_COMPONENTS; c++)
        assert_true(evaluation->both.mrr >= evaluation->alone[c].mrr);
    /* The MRR by a component alone is the mean over the groups of a breakdown. */
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        double sum = 0;
        for (int64_t i = 0; i < evaluation->by_relation.count; i++)
            sum += evaluation->by_relation.items[i].alone[c] *
                   (double)evaluation->by_relation.items[i].metrics.queries;
        assert_true(fabs(sum / (double)evaluation->queries - evaluation->alone[c].mrr) < 1e-9);
    }
    assert_true(isnan(evaluation->by_relation.items[0].alone[VLP_COMPONENTS]));
    vlp_evaluation_free(evaluation);
    int64_t count;
    const vlp_triple *test = vlp_dataset_triples(vlp_run_dataset(run), VLP_TEST, &count);
    assert_true(count > 0);
    vlp_score score;
    vlp_score_options scoring = VLP_SCORE_OPTIONS_INIT;
    must(vlp_run_score(&score, run, test, 1, &scoring));
    int32_t relations = vlp_dataset_relation_count(vlp_run_dataset(run));
    vlp_query queries[2] = {{test->head, test->relation, -1},
                            {test->tail, test->relation + relations, -1}};
    int32_t answers[2] = {test->tail, test->head};
    vlp_predictions *predictions = NULL;
    must(vlp_run_explain(&predictions, run, queries, answers, 2, NULL));
    double sums[VLP_COMPONENTS] = {0}, total = 0;
    for (int i = 0; i < 2; i++) {
        const vlp_prediction *answer = &vlp_predictions_get(predictions, i)->predictions[0];
        double sum = 0;
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            sum += info.weights[c] * answer->parts[c];
            sums[c] += answer->parts[c] / 2;
        }
        assert_true(fabs(sum - answer->score) < 1e-4 * (1 + fabs(sum)));
        total += answer->score / 2;
    }
    for (int c = 0; c < VLP_COMPONENTS; c++)
        assert_true(fabs(sums[c] - score.parts[c]) < 1e-4 * (1 + fabs(sums[c])));
    assert_true(fabs(total - score.score) < 1e-4 * (1 + fabs(total)));
    vlp_predictions_free(predictions);
    vlp_run_free(run);
}

/* The mean of f_p of a triple, asked both ways; `left_out` as in vlp_query. */
static double asked_both_ways(vlp_run *run, vlp_triple triple, int64_t left_out) {
    int32_t relations = vlp_dataset_relation_count(vlp_run_dataset(run));
    vlp_query queries[2] = {{triple.head, triple.relation, left_out},
                            {triple.tail, triple.relation + relations, left_out}};
    int32_t answers[2] = {triple.tail, triple.head};
    vlp_predictions *predictions = NULL;
    double sum = 0;
    must(vlp_run_explain(&predictions, run, queries, answers, 2, NULL));
    for (int i = 0; i < 2; i++)
        sum += vlp_predictions_get(predictions, i)->predictions[0].parts[VLP_PATH] / 2;
    vlp_predictions_free(predictions);
    return sum;
}

/* A known triple is scored without itself. */
static void scores_a_known_triple_without_itself(void **state) {
    (void)state;
    char folder[256];
    snprintf(folder, sizeof folder, "%s/run", support_folder());
    must(train(folder, true, NULL, NULL, false, "model=none", NULL));
    vlp_run *run = NULL;
    vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
    opening.device = lab_device();
    must(vlp_run_open(&run, folder, &opening));
    int64_t count;
    const vlp_triple *known = vlp_dataset_triples(vlp_run_dataset(run), VLP_TRAIN, &count);
    vlp_score_options scoring = VLP_SCORE_OPTIONS_INIT;
    scoring.uncalibrated = true;
    for (int64_t i = 0; i < 4; i++) {
        vlp_score score;
        must(vlp_run_score(&score, run, &known[i], 1, &scoring));
        assert_true(fabs(score.score - asked_both_ways(run, known[i], i)) < 1e-5);
        assert_true(fabs(score.score - asked_both_ways(run, known[i], -1)) > 1e-4);
    }
    vlp_run_free(run);
}

/* ---- Refusals ------------------------------------------------------------------------------------ */

static void refuses(void **state) {
    (void)state;
    char run[256];
    snprintf(run, sizeof run, "%s/run", support_folder());
    run_expect(train(run, false, NULL, NULL, false, "model=none", NULL), VLP_ERROR_ARGUMENT,
               "nothing is left to train");
    run_expect(train(run, false, NULL, NULL, false, "trains=path", NULL), VLP_ERROR_ARGUMENT,
               "set path = on");
    run_expect(train(run, true, NULL, NULL, false, "trains=path", NULL), VLP_ERROR_ARGUMENT,
               "trains = path adds the path model to a base");
    run_expect(train(run, true, NULL, NULL, false, "path_dim=20", NULL), VLP_ERROR_ARGUMENT,
               "not a multiple of 8; 24 is");
    run_expect(train(run, true, NULL, NULL, false, "path_weight_decay=101", NULL), VLP_ERROR_ARGUMENT,
               "path_weight_decay = 101 times path_rate = 0.01 takes more of a number than there is: at "
               "most 100");
    run_expect(train(run, true, NULL, NULL, false, "rate=0.5", "weight_decay=4", NULL),
               VLP_ERROR_ARGUMENT,
               "weight_decay = 4 times rate = 0.5 takes more of a number than there is: at most 2");
    run_expect(train(run, true, NULL, NULL, false, "path_states=all", "path_edges=9", NULL),
               VLP_ERROR_ARGUMENT, "path_edges limits the entities that are reached");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_alone_over_a_base_or_behind_embeddings),
        cmocka_unit_test(starts_from_the_best),
        cmocka_unit_test(weights_decay),
        cmocka_unit_test(resumes_with_the_same_bits),
        cmocka_unit_test(sums_its_components),
        cmocka_unit_test(scores_a_known_triple_without_itself),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
