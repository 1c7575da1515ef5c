/* The relation between two entities, against softmaxes over the scores of all entities, query by query.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

#include "failing_allocator.h"
#include "run_lab.h"

enum { MOST = 64 };

static bool is_known(const vlp_dataset *dataset, vlp_triple asked, unsigned splits) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t count;
        const vlp_triple *triples = vlp_dataset_triples(dataset, (vlp_split)split, &count);
        for (int64_t i = 0; (splits >> split & 1) && i < count; i++)
            if (memcmp(&triples[i], &asked, sizeof asked) == 0) return true;
    }
    return false;
}

static vlp_triple triple_of(int32_t relations, int32_t entity, int32_t relation, int32_t answer) {
    return relation < relations ? (vlp_triple){entity, relation, answer}
                                : (vlp_triple){answer, relation - relations, entity};
}

static int64_t edge_of(const tiny_run *tiny, vlp_triple triple) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&train[i], &triple, sizeof triple) == 0) return i;
    return -1;
}

/* f of all entities, and one component of it. */
static void scores_of(const tiny_run *tiny, vlp_query query, double *f, double *part, int component) {
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = MOST;
    options.known = true;
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, tiny->run, &query, 1, &options));
    const vlp_answers *answers = vlp_predictions_get(predictions, 0);
    assert_int_equal(answers->prediction_count, tiny->entities);
    for (int32_t i = 0; i < tiny->entities; i++) {
        f[answers->predictions[i].entity] = answers->predictions[i].score;
        part[answers->predictions[i].entity] = answers->predictions[i].parts[component];
    }
    vlp_predictions_free(predictions);
}

/* Four times the mean standard deviation of f over entities, in 64 queries of training triples. */
static double plain_scale(const tiny_run *tiny) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    int64_t queries = count < 64 ? count : 64;
    double sum = 0, f[MOST], part[MOST];
    for (int64_t i = 0; i < queries; i++) {
        vlp_triple triple = train[i * count / queries];
        vlp_query query = i % 2 ? (vlp_query){triple.tail, triple.relation + tiny->relations, -1}
                                : (vlp_query){triple.head, triple.relation, -1};
        scores_of(tiny, query, f, part, 0);
        double mean = 0, squares = 0;
        for (int32_t e = 0; e < tiny->entities; e++) mean += f[e] / tiny->entities;
        for (int32_t e = 0; e < tiny->entities; e++) squares += pow(f[e] - mean, 2) / tiny->entities;
        sum += sqrt(squares);
    }
    return 4 * sum / (double)queries;
}

/* The log of p(answer | query), of the entities that are not known answers, and f and a part of the
 * answer. */
static double plain_log_probability(const tiny_run *tiny, vlp_query query, int32_t answer, double scale,
                                    unsigned splits, double *f_out, double *part_out, int component) {
    double f[MOST], part[MOST], sum = 0;
    scores_of(tiny, query, f, part, component);
    for (int32_t e = 0; e < tiny->entities; e++)
        if (e == answer ||
            !is_known(tiny->dataset, triple_of(tiny->relations, query.entity, query.relation, e),
                      splits))
            sum += exp(f[e] / scale);
    *f_out = f[answer];
    *part_out = part[answer];
    return f[answer] / scale - log(sum);
}

static void check_pair(const tiny_run *tiny, const vlp_relation_answers *answers, double scale,
                       const vlp_predict_options *options) {
    unsigned splits = options->filter ? options->filter : 7;
    int32_t head = answers->pair.head, tail = answers->pair.tail, relations = tiny->relations;
    int32_t all = head == tail ? relations : 2 * relations, left = 0, met = 0;
    int component = tiny->run->model->components >> VLP_HORIZONTAL & 1 ? VLP_HORIZONTAL : VLP_PATH;
    double worst_shown = INFINITY;
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        if (i > 0) assert_true(answers->predictions[i].score <= answers->predictions[i - 1].score);
        worst_shown = answers->predictions[i].score;
    }
    for (int32_t r = 0; r < all; r++) {
        vlp_triple triple = triple_of(relations, head, r, tail);
        bool known = is_known(tiny->dataset, triple, splits);
        if (known && !options->known) continue;
        left++;
        int64_t edge = edge_of(tiny, triple);
        int32_t inverse = r < relations ? r + relations : r - relations;
        double f[2], parts[2];
        double forth = plain_log_probability(tiny, (vlp_query){head, r, edge}, tail, scale, splits,
                                             &f[0], &parts[0], component);
        double back = plain_log_probability(tiny, (vlp_query){tail, inverse, edge}, head, scale, splits,
                                            &f[1], &parts[1], component);
        const vlp_relation_prediction *got = NULL;
        for (int32_t i = 0; i < answers->prediction_count; i++)
            if (answers->predictions[i].relation == r) got = &answers->predictions[i];
        if (!got) {
            assert_true((forth + back) / 2 <= worst_shown + 1e-4);
            continue;
        }
        met++;
        near(got->tail_log_probability, forth);
        near(got->head_log_probability, back);
        near(got->score, (forth + back) / 2);
        near(got->f, (f[0] + f[1]) / 2);
        near(got->parts[component], (parts[0] + parts[1]) / 2);
        assert_int_equal(got->known, known);
        assert_int_equal(got->edge, edge);
        assert_true(got->score <= 0);
    }
    assert_int_equal(answers->prediction_count, left < options->count ? left : options->count);
    assert_int_equal(met, answers->prediction_count);
}

static const char *const models[][6] = {
    {"model=rotate"},
    {"model=complex", "loss=cross-entropy", "path=on", "path_layers=2", "path_dim=8"},
    {"model=none", "path=on", "path_layers=2", "path_dim=8"}};
enum { MODELS = sizeof models / sizeof *models };

static void softmax_of_every_relation(void **state) {
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        tiny_run tiny;
        const char *settings[7] = {0};
        memcpy(settings, models[m], sizeof models[m]);
        tiny_run_make(&tiny, settings, 300 + m);
        assert_true(tiny.entities <= MOST);
        if (tiny.run->model->components >> VLP_PATH & 1)
            tiny.run->progress.mixture.weights[VLP_PATH] = 0.7f;
        double scale = plain_scale(&tiny);
        int64_t train_count;
        const vlp_triple *train = vlp_dataset_triples(tiny.dataset, VLP_TRAIN, &train_count);
        enum { PAIRS = 8 };
        vlp_entity_pair pairs[PAIRS] = {{3, 3}, {1, 9}, {9, 1}, {0, 25}};
        for (int i = 4; i < PAIRS; i++)
            pairs[i] = (vlp_entity_pair){train[11 * i].head, train[11 * i].tail};
        for (int way = 0; way < 3; way++) {
            vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
            options.known = way != 1;
            options.filter = way == 2 ? 1 : 0;
            options.count = way == 1 ? 2 : 100;
            vlp_relation_predictions *predictions = NULL;
            must(vlp_run_predict_relations(&predictions, tiny.run, pairs, PAIRS, &options));
            for (int i = 0; i < PAIRS; i++) {
                const vlp_relation_answers *answers = vlp_relation_predictions_get(predictions, i);
                assert_memory_equal(&answers->pair, &pairs[i], sizeof pairs[i]);
                check_pair(&tiny, answers, scale, &options);
            }
            assert_null(vlp_relation_predictions_get(predictions, PAIRS));
            assert_null(vlp_relation_predictions_get(predictions, -1));
            vlp_relation_predictions_free(predictions);
        }
        tiny_run_free(&tiny);
    }
}

static void score_not_a_number(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 310);
    vlp_entity_pair pair = {1, 2};
    vlp_relation_predictions *predictions = NULL;
    const vlp_model *model = tiny.run->model;
    const float wrong = NAN;
    must(model->backend->memory->upload(model->compute, model->tables[VLP_TABLE_ENTITIES].value, &wrong,
                                        sizeof wrong));
    assert_int_equal(vlp_run_predict_relations(&predictions, tiny.run, &pair, 1, NULL),
                     VLP_ERROR_DIVERGED);
    assert_null(predictions);
    tiny_run_free(&tiny);
}

static void wrong_pairs(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 311);
    vlp_relation_predictions *predictions = NULL;
    vlp_entity_pair wrong[3] = {{-1, 0}, {0, tiny.entities}, {INT32_MAX, 0}}, fine = {0, 1};
    for (int i = 0; i < 3; i++)
        run_expect(vlp_run_predict_relations(&predictions, tiny.run, &wrong[i], 1, NULL),
                   VLP_ERROR_ARGUMENT, "pair 0: entity");
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = 0;
    run_expect(vlp_run_predict_relations(&predictions, tiny.run, &fine, 1, &options), VLP_ERROR_ARGUMENT,
               "0 relations");
    assert_null(predictions);
    must(vlp_run_predict_relations(&predictions, tiny.run, NULL, 0, NULL));
    vlp_relation_predictions_free(predictions);
    tiny_run_free(&tiny);
}

static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 312);
    vlp_entity_pair pairs[2] = {{0, 1}, {4, 4}};
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        call += call < 40 ? 1 : 5;
        failing_allocator_install(&memory, call);
        vlp_run *run = NULL;
        vlp_relation_predictions *predictions = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_predict_relations(&predictions, run, pairs, 2, NULL);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_relation_predictions_free(predictions);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 20);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(softmax_of_every_relation),
                                       cmocka_unit_test(score_not_a_number),
                                       cmocka_unit_test(wrong_pairs), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
