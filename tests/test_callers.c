/* One run, many threads: the same results as one thread has, with other callers at the same time. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

enum { CALLERS = 8, ROUNDS = 6, QUERIES = 12, TRIPLES = 10, WANTED = 5, MAX_FIGURES = 4096 };

/* What a caller got, as one list of numbers. */
typedef struct figures {
    double values[MAX_FIGURES];
    int32_t count;
} figures;

static void put(figures *out, double value) {
    if (out->count < MAX_FIGURES) out->values[out->count] = value;
    out->count++;
}

/* cmocka's asserts are for the main thread: callers return what is wrong. */
static bool same(const figures *a, const figures *b) {
    return a->count == b->count && a->count <= MAX_FIGURES &&
           memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values) == 0;
}

/* ---- The calls ----------------------------------------------------------------------------------- */

static void put_answers(figures *out, const vlp_predictions *predictions, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const vlp_answers *answers = vlp_predictions_get(predictions, i);
        put(out, answers->prediction_count);
        put(out, answers->reference_count);
        for (int32_t j = 0; j < answers->prediction_count; j++) {
            const vlp_prediction *one = &answers->predictions[j];
            put(out, one->entity);
            put(out, one->score);
            put(out, one->parts[VLP_HORIZONTAL]);
            put(out, one->parts[VLP_VERTICAL]);
            for (int32_t k = 0; one->contributions && k < answers->reference_count; k++)
                put(out, one->contributions[k]);
        }
    }
}

static vlp_query query_number(const vlp_run *run, int64_t i) {
    const vlp_dataset *dataset = vlp_run_dataset(run);
    int32_t relations = vlp_dataset_relation_count(dataset);
    return (vlp_query){(int32_t)(i * 5 % vlp_dataset_entity_count(dataset)),
                       (int32_t)(i % (2 * relations)), -1};
}

static vlp_status predict(figures *out, vlp_run *run, bool explain) {
    vlp_query queries[QUERIES];
    vlp_predictions *predictions = NULL;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = WANTED;
    options.explain = explain;
    options.filter = explain ? 1u << VLP_TRAIN : 0;
    for (int64_t i = 0; i < QUERIES; i++) queries[i] = query_number(run, i);
    VLP_TRY(vlp_run_predict(&predictions, run, queries, QUERIES, &options));
    put_answers(out, predictions, QUERIES);
    vlp_predictions_free(predictions);
    return VLP_OK;
}

static vlp_status explain_given(figures *out, vlp_run *run) {
    vlp_query queries[QUERIES];
    int32_t answers[QUERIES];
    vlp_predictions *predictions = NULL;
    for (int64_t i = 0; i < QUERIES; i++) {
        queries[i] = query_number(run, i + 3);
        answers[i] = (int32_t)(i * 7 % vlp_dataset_entity_count(vlp_run_dataset(run)));
    }
    VLP_TRY(vlp_run_explain(&predictions, run, queries, answers, QUERIES, NULL));
    put_answers(out, predictions, QUERIES);
    vlp_predictions_free(predictions);
    return VLP_OK;
}

static vlp_status score(figures *out, vlp_run *run) {
    int64_t count;
    const vlp_triple *test = vlp_dataset_triples(vlp_run_dataset(run), VLP_TEST, &count);
    vlp_score scores[TRIPLES];
    VLP_TRY(vlp_run_score(scores, run, test, TRIPLES, NULL));
    for (int i = 0; i < TRIPLES; i++) {
        put(out, scores[i].score);
        put(out, scores[i].parts[VLP_VERTICAL]);
        put(out, scores[i].probability);
    }
    return VLP_OK;
}

static vlp_status calibrate(figures *out, vlp_run *run, int round) {
    vlp_calibration calibration;
    vlp_calibration_options options = VLP_CALIBRATION_OPTIONS_INIT;
    options.exchanges = 2;
    options.fresh = round % 2;
    VLP_TRY(vlp_run_calibrate(&calibration, run, &options));
    put(out, calibration.intercept);
    put(out, calibration.slope);
    put(out, calibration.brier);
    return VLP_OK;
}

static vlp_status evaluate(figures *out, vlp_run *run) {
    vlp_evaluation *evaluation = NULL;
    VLP_TRY(vlp_run_evaluate(&evaluation, run, NULL));
    put(out, evaluation->both.mrr);
    put(out, evaluation->alone[VLP_HORIZONTAL].mrr);
    put(out, evaluation->alone[VLP_VERTICAL].mrr);
    put(out, evaluation->interval.low);
    vlp_evaluation_free(evaluation);
    return VLP_OK;
}

static vlp_status mine(figures *out, vlp_run *run) {
    vlp_mining *mining = NULL;
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    options.count = 8;
    options.per_query = 2;
    VLP_TRY(vlp_run_mine(&mining, run, &options));
    for (int64_t i = 0; i < mining->count; i++) {
        put(out, mining->items[i].triple.tail);
        put(out, mining->items[i].score);
        put(out, mining->items[i].probability);
    }
    vlp_mining_free(mining);
    return VLP_OK;
}

enum { CALLS = 7 };

static vlp_status call(figures *out, vlp_run *run, int kind, int round) {
    out->count = 0;
    switch (kind) {
    case 0:
        return predict(out, run, false);
    case 1:
        return predict(out, run, true);
    case 2:
        return explain_given(out, run);
    case 3:
        return score(out, run);
    case 4:
        return calibrate(out, run, round);
    case 5:
        return evaluate(out, run);
    default:
        return mine(out, run);
    }
}

/* ---- Callers ------------------------------------------------------------------------------------- */

typedef struct caller {
    pthread_t thread;
    vlp_run *run;
    const figures *expected; /* (calls), and where the graph changes those of the other graph behind */
    int calls, number;
    bool either; /* of two graphs */
    char wrong[200];
} caller;

static void *work(void *argument) {
    caller *me = argument;
    figures *got = malloc(sizeof *got);
    for (int round = 0; got && round < ROUNDS && !me->wrong[0]; round++)
        for (int i = 0; i < me->calls && !me->wrong[0]; i++) {
            int kind = (i + me->number) % me->calls;
            vlp_status status = call(got, me->run, kind, round);
            bool right = status == VLP_OK && (same(got, &me->expected[kind]) ||
                                              (me->either && same(got, &me->expected[CALLS + kind])));
            if (!right)
                snprintf(me->wrong, sizeof me->wrong, "caller %d, call %d: %.150s", me->number, kind,
                         status == VLP_OK ? "other figures" : vlp_error_message());
        }
    free(got);
    return NULL;
}

static void start(caller *callers, vlp_run *run, const figures *expected, int calls, bool either) {
    for (int i = 0; i < CALLERS; i++) {
        callers[i] =
            (caller){.run = run, .expected = expected, .calls = calls, .number = i, .either = either};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, work, &callers[i]), 0);
    }
}

static void join(caller *callers) {
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].wrong[0]) fail_msg("%s", callers[i].wrong);
}

static figures *expect(vlp_run *run, figures *out) {
    for (int kind = 0; kind < CALLS; kind++) {
        must(call(&out[kind], run, kind, 1));
        assert_in_range(out[kind].count, 3, MAX_FIGURES);
    }
    return out;
}

static void same_as_one_thread(void **state) {
    (void)state;
    tiny_run tiny;
    caller callers[CALLERS];
    tiny_run_make(&tiny, NULL, 5);
    figures *expected = expect(tiny.run, calloc(CALLS, sizeof *expected));
    start(callers, tiny.run, expected, CALLS, false);
    join(callers);
    assert_in_range(tiny.run->gate->workers, 1, CALLERS);
    /* A second run, whose caches are empty when all begin at once. */
    vlp_run *fresh = NULL;
    must(vlp_run_open(&fresh, tiny.path, NULL));
    fresh->progress = tiny.run->progress;
    start(callers, fresh, expected, CALLS, false);
    join(callers);
    vlp_run_free(fresh);
    free(expected);
    tiny_run_free(&tiny);
}

/* Where the backend has one worker, callers queue. */
static void callers_queue(void **state) {
    (void)state;
    tiny_run tiny;
    caller callers[CALLERS];
    tiny_run_make(&tiny, NULL, 6);
    tiny.run->gate->limit = 1;
    figures *expected = expect(tiny.run, calloc(CALLS, sizeof *expected));
    start(callers, tiny.run, expected, CALLS, false);
    join(callers);
    assert_int_equal(tiny.run->gate->workers, 1);
    free(expected);
    tiny_run_free(&tiny);
}

/* While the reference graph changes, each call has one of the two graphs, whole. */
static void graph_changes(void **state) {
    (void)state;
    tiny_run tiny;
    caller callers[CALLERS];
    tiny_run_make(&tiny, NULL, 7);
    const char *data = support_folder();
    char folder[128];
    snprintf(folder, sizeof folder, "%s", data);
    FILE *file = fopen(support_path(folder, "train.txt"), "w");
    assert_non_null(file);
    for (int e = 0; e < 24; e++) fprintf(file, "e%d\tr%d\te%d\n", e, e % 3, (e * 7 + 1) % 26);
    fclose(file);
    figures *expected = calloc(2 * CALLS, sizeof *expected);
    assert_non_null(expected);
    expect(tiny.run, expected);
    must(vlp_run_use_graph(NULL, tiny.run, folder, NULL));
    expect(tiny.run, expected + CALLS);
    assert_false(same(&expected[1], &expected[CALLS + 1]));
    start(callers, tiny.run, expected, 4, true); /* predictions and scores */
    for (int i = 0; i < 20; i++) must(vlp_run_use_graph(NULL, tiny.run, i % 2 ? folder : NULL, NULL));
    join(callers);
    free(expected);
    support_remove(folder);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_one_thread),
                                       cmocka_unit_test(callers_queue), cmocka_unit_test(graph_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
