/* Answers among some candidates, against scoring every entity and leaving the others out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

#include "failing_allocator.h"
#include "run_lab.h"

enum { ENTITIES = 64, CONDITIONS = 3 };

/* What a call restricts, and the same as marks by plain loops. */
typedef struct restriction {
    vlp_candidate_options options;
    int32_t list[2 * ENTITIES];
    vlp_condition conditions[CONDITIONS];
} restriction;

/* Whether the triple is in one of the splits. */
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

/* Whether train has the entity as an answer of the relation (or of the inverse relation). */
static bool is_seen(const tiny_run *tiny, int32_t relation, int32_t entity) {
    for (int32_t other = 0; other < tiny->entities; other++)
        if (is_known(tiny->dataset, triple_of(tiny->relations, other, relation, entity), 1)) return true;
    return false;
}

/* Whether a candidate may answer queries of the relation. */
static bool may_answer(const tiny_run *tiny, const restriction *given, unsigned splits, int32_t relation,
                       int32_t entity) {
    bool listed = !given->options.entities;
    for (int64_t i = 0; i < given->options.entity_count; i++) listed |= given->list[i] == entity;
    if (!listed) return false;
    for (int32_t i = 0; i < given->options.condition_count; i++) {
        vlp_condition condition = given->conditions[i];
        if (!is_known(tiny->dataset,
                      triple_of(tiny->relations, entity, condition.relation, condition.entity), splits))
            return false;
    }
    return !given->options.seen || is_seen(tiny, relation, entity);
}

static void draw(restriction *out, const tiny_run *tiny, oracle_random *random) {
    memset(out, 0, sizeof *out);
    out->options = (vlp_candidate_options)VLP_CANDIDATE_OPTIONS_INIT;
    int kinds = 1 + oracle_below(random, 7);
    if (kinds & 1) {
        out->options.entities = out->list;
        out->options.entity_count = 1 + oracle_below(random, 2 * tiny->entities);
        for (int64_t i = 0; i < out->options.entity_count; i++)
            out->list[i] = oracle_below(random, tiny->entities);
    }
    if (kinds & 2) {
        int64_t train;
        const vlp_triple *triples = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &train);
        out->options.conditions = out->conditions;
        out->options.condition_count = 1 + oracle_below(random, 2);
        for (int32_t i = 0; i < out->options.condition_count; i++) {
            vlp_triple triple = triples[oracle_below(random, (int32_t)train)];
            out->conditions[i] = oracle_below(random, 2)
                                     ? (vlp_condition){triple.relation, triple.tail}
                                     : (vlp_condition){triple.relation + tiny->relations, triple.head};
        }
    }
    out->options.seen = kinds & 4;
}

/* The answers of a query among the candidates: those of all entities, without the others. */
static void check_answers(const tiny_run *tiny, const restriction *given, const vlp_answers *all,
                          const vlp_answers *got, const vlp_predict_options *options) {
    unsigned splits = options->filter ? options->filter : 7;
    int32_t expected = 0;
    int64_t candidates = 0;
    for (int32_t e = 0; e < tiny->entities; e++)
        candidates += may_answer(tiny, given, splits, all->query.relation, e);
    for (int32_t i = 0; i < all->prediction_count && expected < options->count; i++) {
        const vlp_prediction *one = &all->predictions[i];
        if (!may_answer(tiny, given, splits, all->query.relation, one->entity)) continue;
        assert_true(expected < got->prediction_count);
        const vlp_prediction *other = &got->predictions[expected++];
        near(other->score, one->score);
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            assert_int_equal(isnan(other->parts[c]), isnan(one->parts[c]));
            if (!isnan(one->parts[c])) near(other->parts[c], one->parts[c]);
        }
        /* Products round a row differently in another position: near ties may change places. */
        if (other->entity != one->entity) assert_true(fabs(other->score - one->score) < 1e-5);
        assert_int_equal(other->known, one->known || other->known);
        assert_true(may_answer(tiny, given, splits, all->query.relation, other->entity));
    }
    assert_int_equal(got->prediction_count, expected);
    assert_int_equal(got->candidate_count, candidates);
    assert_memory_equal(&got->query, &all->query, sizeof got->query);
    if (candidates > 0) assert_int_equal(got->reference_count, all->reference_count);
}

static const char *const models[][6] = {
    {"model=rotate"},
    {"model=complex", "loss=cross-entropy", "vertical=off"},
    {"model=transr", "relation_dim=4"},
    {"model=complex", "loss=cross-entropy", "path=on", "path_layers=2", "path_dim=8"},
    {"model=none", "path=on", "path_layers=2", "path_dim=8"}};
enum { MODELS = sizeof models / sizeof *models };

/* Random restrictions of every kind over queries of all relations, in an order that mixes them. */
static void scores_then_leaves_out(void **state) {
    (void)state;
    int64_t restricted = 0, emptied = 0, empty_queries = 0;
    for (size_t m = 0; m < MODELS; m++) {
        tiny_run tiny;
        const char *settings[7] = {0};
        memcpy(settings, models[m], sizeof models[m]);
        tiny_run_make(&tiny, settings, 200 + m);
        assert_true(tiny.entities <= ENTITIES);
        if (tiny.run->model->components >> VLP_PATH & 1)
            tiny.run->progress.mixture.weights[VLP_PATH] = 0.7f;
        enum { QUERIES = 90 };
        vlp_query queries[QUERIES];
        for (int i = 0; i < QUERIES; i++)
            queries[i] = (vlp_query){(i * 5) % tiny.entities, (i * 7) % (2 * tiny.relations), -1};
        oracle_random random = {m, 1, 2};
        for (int round = 0; round < 24; round++) {
            restriction given;
            draw(&given, &tiny, &random);
            vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
            options.known = round % 2;
            options.filter = round % 3 == 0 ? 1 : 0;
            options.explain = round % 8 == 0;
            options.paths = 0;
            options.count = 1000;
            vlp_predictions *all = NULL, *got = NULL;
            must(vlp_run_predict(&all, tiny.run, queries, QUERIES, &options));
            options.count = (int[]){1, 4, 1000}[round % 3];
            options.candidates = &given.options;
            vlp_status status = vlp_run_predict(&got, tiny.run, queries, QUERIES, &options);
            if (status != VLP_OK) {
                run_expect(status, VLP_ERROR_ARGUMENT, "no candidate is left: ");
                assert_null(got);
                given.options.seen = false;
                for (int32_t e = 0; e < tiny.entities; e++)
                    assert_false(may_answer(&tiny, &given, options.filter ? options.filter : 7, 0, e));
                emptied++;
            } else {
                for (int i = 0; i < QUERIES; i++) {
                    const vlp_answers *answers = vlp_predictions_get(got, i);
                    check_answers(&tiny, &given, vlp_predictions_get(all, i), answers, &options);
                    empty_queries += answers->candidate_count == 0;
                }
                restricted++;
            }
            vlp_predictions_free(all);
            vlp_predictions_free(got);
        }
        tiny_run_free(&tiny);
    }
    /* All of it was met. */
    assert_true(restricted > 50);
    assert_true(emptied > 3);
    assert_true(empty_queries > 3);
}

/* Without a restriction the candidates are all entities. */
static void no_restriction(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 210);
    vlp_candidate_options none = VLP_CANDIDATE_OPTIONS_INIT;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    vlp_query query = {1, 1, -1};
    for (int way = 0; way < 2; way++) {
        vlp_predictions *predictions = NULL;
        options.candidates = way ? &none : NULL;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
        assert_int_equal(vlp_predictions_get(predictions, 0)->candidate_count, tiny.entities);
        vlp_predictions_free(predictions);
    }
    tiny_run_free(&tiny);
}

/* The rank that an answer falls from and to is that among the candidates. */
static void support_among_candidates(void **state) {
    (void)state;
    tiny_run tiny;
    const char *settings[] = {"model=none", "path=on",       "path_layers=2",
                              "path_dim=8", "path_passes=2", NULL};
    tiny_run_make(&tiny, settings, 211);
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.explain = true;
    options.count = 1000;
    const int32_t list[] = {9, 3, 12, 5, 20, 1};
    vlp_candidate_options few = VLP_CANDIDATE_OPTIONS_INIT;
    few.entities = list;
    few.entity_count = 6;
    options.candidates = &few;
    vlp_query query = {2, 1, -1};
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
    const vlp_answers *answers = vlp_predictions_get(predictions, 0);
    assert_true(answers->prediction_count > 2);
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        double above = 0, equal = 0;
        for (int32_t j = 0; j < answers->prediction_count; j++) {
            above += answers->predictions[j].score > answers->predictions[i].score;
            equal += j != i && answers->predictions[j].score == answers->predictions[i].score;
        }
        assert_non_null(answers->predictions[i].support);
        near(answers->predictions[i].support->rank_before, 1 + above + equal / 2);
        assert_true(answers->predictions[i].support->rank <= answers->prediction_count);
    }
    vlp_predictions_free(predictions);
    tiny_run_free(&tiny);
}

/* ---- What is wrong ------------------------------------------------------------------------------- */

static void names_what_left_none(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 212);
    vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.candidates = &candidates;
    vlp_query query = {1, 1, -1};
    vlp_predictions *predictions = NULL;
    int32_t list[2] = {0, -1};
    candidates.entities = list;
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               "the list names none");
    candidates.entity_count = 2;
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               "candidate 1: entity -1");
    candidates.entity_count = 1;
    /* Of the other entities one has a triple that entity 0 does not have. */
    vlp_condition condition = {0, 0};
    while (is_known(tiny.dataset, (vlp_triple){0, 0, condition.entity}, 7)) condition.entity++;
    candidates.conditions = &condition;
    candidates.condition_count = 1;
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               "no entity x that meets the restrictions before it has the known triple (x, r0, e");
    condition.relation += tiny.relations;
    condition.entity = 0;
    while (is_known(tiny.dataset, (vlp_triple){condition.entity, 0, 0}, 7)) condition.entity++;
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               ", r0, x)");
    condition.relation = 2 * tiny.relations;
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               "condition 0: relation");
    condition = (vlp_condition){0, tiny.entities};
    run_expect(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_ARGUMENT,
               "condition 0: entity");
    assert_null(predictions);
    tiny_run_free(&tiny);
}

/* Every allocation fails in turn. */
static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 213);
    const int32_t list[] = {4, 9, 11};
    vlp_condition condition = {0, 0};
    while (!is_known(tiny.dataset, (vlp_triple){4, 0, condition.entity}, 7)) condition.entity++;
    vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;
    candidates.entities = list;
    candidates.entity_count = 3;
    candidates.conditions = &condition;
    candidates.condition_count = 1;
    candidates.seen = true;
    vlp_query queries[2] = {{0, 1, -1}, {1, 0, -1}};
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        call += call < 40 ? 1 : 7;
        failing_allocator_install(&memory, call);
        vlp_run *run = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_predictions *predictions = NULL;
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        options.candidates = &candidates;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_predict(&predictions, run, queries, 2, &options);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_predictions_free(predictions);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 10);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_then_leaves_out), cmocka_unit_test(no_restriction),
        cmocka_unit_test(support_among_candidates), cmocka_unit_test(names_what_left_none),
        cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
