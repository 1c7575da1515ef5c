/* Answers without some known triples, the table of embeddings, and the metrics callback of training. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/mixture.h"
#include "failing_allocator.h"
#include "tiny_run.h"

/* ---- Without some triples ------------------------------------------------------------------------ */

static const char *const with_paths[] = {"path=on", "path_layers=3", "path_dim=8", "path_passes=6",
                                         NULL};

static vlp_what_if ask(const tiny_run *tiny, vlp_query query, int32_t answer, const vlp_triple *triples,
                       int32_t count) {
    vlp_what_if out;
    must(vlp_run_what_if(&out, tiny->run, query, answer, triples, count, NULL));
    return out;
}

static void same_before(const vlp_what_if *got, const vlp_prediction *prediction, int32_t at) {
    near(got->score_before, prediction->score);
    assert_true(got->rank_before == at + 1);
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        if (isnan(prediction->parts[c]))
            assert_true(isnan(got->parts_before[c]) && isnan(got->parts[c]));
        else
            near(got->parts_before[c], prediction->parts[c]);
}

/* What explanations say of the triples that an answer rests on. */
static void agrees_with_support(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, with_paths, 31);
    tiny.run->progress.mixture =
        (vlp_mixture){{[VLP_HORIZONTAL] = 0.3f, [VLP_VERTICAL] = 1, [VLP_PATH] = 0.5f}};
    int32_t fell = 0;
    for (int32_t entity = 0; entity < 12; entity++) {
        vlp_query query = {entity, entity % 6, -1};
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        vlp_predictions *predictions = NULL;
        options.count = 3;
        options.explain = true;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        for (int32_t i = 0; i < answers->prediction_count; i++) {
            const vlp_prediction *prediction = &answers->predictions[i];
            const vlp_support *support = prediction->support;
            vlp_what_if got = ask(&tiny, query, prediction->entity, support->triples, support->count);
            same_before(&got, prediction, i);
            assert_true(got.rank == support->rank);
            near(got.score, support->score);
            near(got.parts[VLP_PATH], support->path);
            assert_true(got.parts[VLP_HORIZONTAL] == got.parts_before[VLP_HORIZONTAL]);
            fell += got.rank > got.rank_before;
        }
        vlp_predictions_free(predictions);
    }
    assert_true(fell > 5);
    tiny_run_free(&tiny);
}

/* Without a path model: a reference's contribution is lost, and nothing else. */
static void agrees_with_contributions(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 32);
    int32_t changed = 0;
    for (int32_t entity = 0; entity < 10; entity++) {
        vlp_query query = {entity, entity % 6, -1};
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        vlp_predictions *predictions = NULL;
        options.count = 2;
        options.explain = true;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        for (int32_t i = 0; i < answers->prediction_count; i++)
            for (int32_t j = 0; j < answers->reference_count; j++) {
                const vlp_prediction *prediction = &answers->predictions[i];
                vlp_what_if got =
                    ask(&tiny, query, prediction->entity, &answers->references[j].triple, 1);
                same_before(&got, prediction, i);
                near(got.score, prediction->score - prediction->contributions[j]);
                changed += got.score != got.score_before;
            }
        vlp_predictions_free(predictions);
    }
    assert_true(changed > 5);
    tiny_run_free(&tiny);
}

/* Embeddings alone do not depend on the graph. */
static void embeddings_stay(void **state) {
    (void)state;
    static const char *const settings[] = {"model=complex", "vertical=off", NULL};
    tiny_run tiny;
    tiny_run_make(&tiny, settings, 33);
    const vlp_triple *triples = vlp_run_graph_triples(tiny.run, NULL);
    vlp_what_if got = ask(&tiny, (vlp_query){3, 1, -1}, 5, triples, VLP_MAX_REMOVED);
    assert_true(got.rank == got.rank_before && got.score == got.score_before);
    assert_true(isnan(got.parts[VLP_VERTICAL]) && isnan(got.parts[VLP_PATH]));
    tiny_run_free(&tiny);
}

/* Order and repetition do not matter; nothing taken out changes nothing. */
static void sets_of_triples(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, with_paths, 34);
    tiny.run->progress.mixture = vlp_mixture_alone(VLP_PATH);
    const vlp_triple *triples = vlp_run_graph_triples(tiny.run, NULL);
    vlp_query query = {triples[2].head, triples[2].relation, 2};
    vlp_triple once[] = {triples[4], triples[9], triples[30]},
               again[] = {triples[30], triples[4], triples[9], triples[4], triples[30]};
    vlp_what_if first = ask(&tiny, query, triples[2].tail, once, 3),
                second = ask(&tiny, query, triples[2].tail, again, 5),
                none = ask(&tiny, query, triples[2].tail, NULL, 0);
    assert_memory_equal(&first, &second, sizeof first);
    assert_true(none.rank == none.rank_before && none.score == none.score_before);
    assert_true(first.score_before == none.score_before && first.score != none.score);
    tiny_run_free(&tiny);
}

static void wrong_arguments(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 35);
    const vlp_triple *triples = vlp_run_graph_triples(tiny.run, NULL);
    vlp_query query = {1, 1, -1};
    vlp_what_if out;
    vlp_triple other = {triples[0].head, triples[0].relation, tiny.entities}, unknown = {-1, 99, 2},
               inverse = {0, triples[0].relation + tiny.relations, 0};
    const vlp_triple *wrong[] = {&other, &unknown, &inverse};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vlp_run_what_if(&out, tiny.run, query, 2, wrong[i], 1, NULL),
                         VLP_ERROR_ARGUMENT);
        assert_non_null(strstr(vlp_error_message(), "is not in the graph"));
    }
    assert_int_equal(vlp_run_what_if(&out, tiny.run, query, 2, triples, VLP_MAX_REMOVED + 1, NULL),
                     VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_what_if(&out, tiny.run, query, 2, NULL, 1, NULL), VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_what_if(&out, tiny.run, query, tiny.entities, NULL, 0, NULL),
                     VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_what_if(NULL, tiny.run, query, 2, NULL, 0, NULL), VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_what_if(&out, NULL, query, 2, NULL, 0, NULL), VLP_ERROR_ARGUMENT);
    tiny_run_free(&tiny);
}

static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, with_paths, 36);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_run *run = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        vlp_what_if got;
        if (status == VLP_OK)
            status = vlp_run_what_if(&got, run, (vlp_query){0, 0, -1}, 2,
                                     vlp_run_graph_triples(run, NULL), 3, NULL);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 50);
    tiny_run_free(&tiny);
}

/* ---- Embeddings ---------------------------------------------------------------------------------- */

static void table_of_entities(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 37);
    vlp_embeddings first, second;
    must(vlp_run_entity_embeddings(&first, tiny.run));
    must(vlp_run_entity_embeddings(&second, tiny.run));
    assert_ptr_equal(first.values, second.values);
    assert_int_equal(first.rows, tiny.entities);
    for (int64_t i = 0; i < first.rows * first.columns; i++)
        assert_true((double)first.values[i] == tiny.tables[0][i]);
    assert_int_equal(vlp_run_entity_embeddings(NULL, tiny.run), VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_entity_embeddings(&first, NULL), VLP_ERROR_ARGUMENT);
    assert_null(first.values);
    tiny_run_free(&tiny);
}

/* ---- Metrics during training --------------------------------------------------------------------- */

typedef struct seen_points {
    vlp_history_point points[32];
    int32_t count;
} seen_points;

static void see(void *user, const vlp_history_point *point) {
    seen_points *seen = user;
    assert_true(seen->count < 32);
    seen->points[seen->count++] = *point;
}

static void metrics_are_told(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 38);
    char path[200];
    snprintf(path, sizeof path, "%s/watched", tiny.folder);
    const char *settings[] = {"steps=20", "eval_every=5", "batch=8", "dim=4", "negatives=4"};
    seen_points seen = {.count = 0};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = 5;
    options.metrics = see;
    options.user = &seen;
    must(vlp_train(NULL, tiny.data, path, &options));
    vlp_run *run = NULL;
    vlp_history *history = NULL;
    must(vlp_run_open(&run, path, NULL));
    must(vlp_run_history(&history, run));
    assert_true(history->count >= 4);
    assert_int_equal(seen.count, history->count);
    for (int32_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.points[i].step, history->items[i].step);
        assert_true(fabs(seen.points[i].valid_mrr - history->items[i].valid_mrr) < 1e-6);
        for (int c = 0; c < VLP_COMPONENTS; c++)
            assert_true(fabs(seen.points[i].losses[c] - history->items[i].losses[c]) <
                        1e-5 * (1 + fabs(seen.points[i].losses[c])));
    }
    vlp_history_free(history);
    vlp_run_free(run);
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_support), cmocka_unit_test(agrees_with_contributions),
        cmocka_unit_test(embeddings_stay),     cmocka_unit_test(sets_of_triples),
        cmocka_unit_test(wrong_arguments),     cmocka_unit_test(out_of_memory),
        cmocka_unit_test(table_of_entities),   cmocka_unit_test(metrics_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
