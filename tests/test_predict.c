/* Predictions against scores made from the definitions, in double, reference by reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

#include "failing_allocator.h"

/* ---- The best answers ---------------------------------------------------------------------------- */

static const char *const models[][4] = {{"model=rotate"},
                                        {"model=complex", "loss=cross-entropy"},
                                        {"model=distmult"},
                                        {"model=transe", "norm=l2"},
                                        {"model=transr", "relation_dim=4"},
                                        {"model=rescal"},
                                        {"model=pairre"},
                                        {"model=transh"},
                                        {"model=quate", "loss=cross-entropy"},
                                        {"model=complex", "vertical=off"},
                                        {"model=rotate", "references=0"}};
enum { MODELS = sizeof models / sizeof *models };

static bool is_known(const vlp_dataset *dataset, vlp_query query, int32_t entity, unsigned splits) {
    int32_t relations = vlp_dataset_relation_count(dataset);
    bool forward = query.relation < relations;
    vlp_triple asked = {forward ? query.entity : entity, query.relation % relations,
                        forward ? entity : query.entity};
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t count;
        const vlp_triple *triples = vlp_dataset_triples(dataset, (vlp_split)split, &count);
        for (int64_t i = 0; (splits >> split & 1) && i < count; i++)
            if (memcmp(&triples[i], &asked, sizeof asked) == 0) return true;
    }
    return false;
}

static int descending(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

/* Scores, order, what is left out, what is marked. */
static void check_answers(const tiny_run *tiny, const vlp_answers *answers,
                          const vlp_predict_options *options) {
    unsigned splits = options->filter ? options->filter : 7;
    vlp_triple edges[64];
    int32_t used =
        tiny->run->settings.references > 0 ? tiny_run_references(tiny, answers->query, edges) : 0;
    if (!tiny->run->settings.vertical && !options->explain) used = 0;
    double all[64];
    int32_t left = 0, met = 0;
    for (int32_t e = 0; e < tiny->entities; e++)
        if (options->known || !is_known(tiny->dataset, answers->query, e, splits))
            all[left++] = tiny_run_score(tiny, answers->query, edges, used, -1, e).f;
    qsort(all, (size_t)left, sizeof *all, descending);
    assert_int_equal(answers->prediction_count, left < options->count ? left : options->count);
    assert_int_equal(answers->reference_count, used);
    for (int32_t i = 0; i < used; i++)
        assert_memory_equal(&answers->references[i].triple, &edges[i], sizeof *edges);
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        tiny_score score = tiny_run_score(tiny, answers->query, edges, used, -1, prediction->entity);
        near(prediction->score, all[i]);
        near(prediction->score, score.f);
        near(prediction->horizontal, score.g);
        assert_int_equal(isnan(prediction->vertical), isnan(score.c));
        if (!isnan(score.c)) near(prediction->vertical, score.c);
        assert_int_equal(prediction->known,
                         is_known(tiny->dataset, answers->query, prediction->entity, splits));
        assert_true(options->known || !prediction->known);
        assert_int_equal(prediction->contributions != NULL, options->explain);
        for (int32_t j = 0; j < i; j++) met += answers->predictions[j].entity == prediction->entity;
    }
    assert_int_equal(met, 0);
}

/* All queries there are, asked at once and in several ways. */
static void best_answers(void **state) {
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        tiny_run tiny;
        const char *settings[5] = {models[m][0], models[m][1], models[m][2], NULL};
        tiny_run_make(&tiny, settings, 10 + m);
        int64_t count = (int64_t)tiny.entities * 2 * tiny.relations;
        vlp_query *queries = malloc((size_t)count * sizeof *queries);
        for (int64_t i = 0; i < count; i++)
            queries[i] = (vlp_query){(int32_t)(i % tiny.entities), (int32_t)(i / tiny.entities), -1};
        for (int way = 0; way < 4; way++) {
            vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
            options.count = (int[]){3, 1, 1000, 10}[way];
            options.known = way == 2;
            options.filter = way == 3 ? 1 : 0;
            options.explain = way == 1;
            vlp_predictions *predictions = NULL;
            must(vlp_run_predict(&predictions, tiny.run, queries, count, &options));
            for (int64_t i = way; i < count; i += 7)
                check_answers(&tiny, vlp_predictions_get(predictions, i), &options);
            vlp_predictions_free(predictions);
        }
        free(queries);
        tiny_run_free(&tiny);
    }
}

/* ---- Contributions ------------------------------------------------------------------------------- */

/* Each by leaving that reference out and making the score anew. */
static void check_contributions(const tiny_run *tiny, const vlp_answers *answers) {
    vlp_triple edges[64];
    for (int32_t i = 0; i < answers->reference_count; i++) edges[i] = answers->references[i].triple;
    for (int32_t p = 0; p < answers->prediction_count; p++) {
        const vlp_prediction *prediction = &answers->predictions[p];
        double whole =
            tiny_run_score(tiny, answers->query, edges, answers->reference_count, -1, prediction->entity)
                .f;
        for (int32_t i = 0; i < answers->reference_count; i++) {
            double without = tiny_run_score(tiny, answers->query, edges, answers->reference_count, i,
                                            prediction->entity)
                                 .f;
            near(prediction->contributions[i], whole - without);
        }
    }
}

static void contributions(void **state) {
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        tiny_run tiny;
        const char *settings[6] = {models[m][0], models[m][1], models[m][2], NULL};
        tiny_run_make(&tiny, settings, 30 + m);
        /* More variants than a batch holds. */
        enum { QUERIES = 400 };
        vlp_query queries[QUERIES];
        int32_t given[QUERIES];
        for (int i = 0; i < QUERIES; i++) {
            queries[i] = (vlp_query){i % tiny.entities, i % (2 * tiny.relations), -1};
            given[i] = (i * 7) % tiny.entities;
        }
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        options.count = 3;
        options.explain = true;
        vlp_predictions *predictions = NULL;
        must(vlp_run_predict(&predictions, tiny.run, queries, QUERIES, &options));
        int64_t references = 0;
        for (int i = 0; i < QUERIES; i++) {
            check_contributions(&tiny, vlp_predictions_get(predictions, i));
            references += vlp_predictions_get(predictions, i)->reference_count;
        }
        assert_int_equal(references == 0, tiny.run->settings.references == 0);
        vlp_predictions_free(predictions);
        must(vlp_run_explain(&predictions, tiny.run, queries, given, QUERIES, NULL));
        for (int i = 0; i < QUERIES; i++) {
            const vlp_answers *answers = vlp_predictions_get(predictions, i);
            assert_int_equal(answers->prediction_count, 1);
            assert_int_equal(answers->predictions[0].entity, given[i]);
            check_contributions(&tiny, answers);
        }
        vlp_predictions_free(predictions);
        tiny_run_free(&tiny);
    }
}

/* A run whose valid chose f_g alone has references, and nothing is copied from them. */
static void nothing_copied(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 5);
    tiny.run->progress.mixture = (vlp_mixture){0, 1};
    vlp_run_info info;
    vlp_run_describe(&info, tiny.run);
    assert_true(info.vertical);
    assert_true(info.horizontal_only);
    assert_false(info.copies);
    vlp_query query = {3, 1, -1};
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.explain = true;
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
    const vlp_answers *answers = vlp_predictions_get(predictions, 0);
    assert_true(answers->reference_count > 0);
    for (int32_t i = 0; i < answers->reference_count; i++)
        assert_true(answers->predictions[0].contributions[i] == 0);
    near(answers->predictions[0].score, answers->predictions[0].horizontal);
    vlp_predictions_free(predictions);
    tiny_run_free(&tiny);
}

/* ---- What can go wrong --------------------------------------------------------------------------- */

static void wrong_arguments(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 6);
    int32_t entities = tiny.entities, answer = entities;
    int64_t edges;
    vlp_run_graph_triples(tiny.run, &edges);
    const vlp_query wrong[] = {{-1, 0, -1}, {entities, 0, -1}, {0, -1, -1}, {0, 2 * tiny.relations, -1},
                               {0, 0, -2},  {0, 0, edges}};
    vlp_predictions *predictions = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(vlp_run_predict(&predictions, tiny.run, &wrong[i], 1, NULL),
                         VLP_ERROR_ARGUMENT);
        assert_null(predictions);
    }
    vlp_query fine = {0, 0, -1};
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = 0;
    assert_int_equal(vlp_run_predict(&predictions, tiny.run, &fine, 1, &options), VLP_ERROR_ARGUMENT);
    assert_int_equal(vlp_run_explain(&predictions, tiny.run, &fine, &answer, 1, NULL),
                     VLP_ERROR_ARGUMENT);
    must(vlp_run_predict(&predictions, tiny.run, &fine, 1, NULL));
    vlp_predictions_free(predictions);
    must(vlp_run_predict(&predictions, tiny.run, NULL, 0, NULL));
    vlp_predictions_free(predictions);
    tiny_run_free(&tiny);
}

static bool stop_at_once(void *user) {
    ++*(int *)user;
    return true;
}

static void stops(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 7);
    int asked = 0;
    vlp_observer observer = {NULL, NULL, stop_at_once, &asked};
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.observer = &observer;
    vlp_predictions *predictions = NULL;
    vlp_query query = {0, 0, -1};
    assert_int_equal(vlp_run_predict(&predictions, tiny.run, &query, 1, &options), VLP_ERROR_STOPPED);
    assert_null(predictions);
    assert_true(asked > 0);
    tiny_run_free(&tiny);
}

/* Every allocation fails in turn; what was made so far is let go of. */
static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 8);
    failing_allocator memory;
    int64_t call = 0, failures = 0;
    do {
        call += call < 40 ? 1 : 7;
        failing_allocator_install(&memory, call);
        vlp_run *run = NULL;
        vlp_predictions *predictions = NULL;
        vlp_query queries[2] = {{0, 0, -1}, {1, 4, -1}};
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        options.explain = true;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        vlp_status status = vlp_run_open(&run, tiny.path, &opening);
        if (status == VLP_OK) status = vlp_run_predict(&predictions, run, queries, 2, &options);
        /* Giving memory back may fail without harm. */
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        failures += status != VLP_OK;
        vlp_predictions_free(predictions);
        vlp_run_free(run);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_true(failures > 20);
    tiny_run_free(&tiny);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

/* An allocator that knows how much is held at most. */
typedef struct counting {
    int64_t held, peak;
} counting;

static void *counting_reallocate(void *user, void *memory, size_t size) {
    counting *count = user;
    size_t *block = memory ? (size_t *)memory - 2 : NULL;
    size_t before = block ? *block : 0;
    block = realloc(block, size + 2 * sizeof *block);
    if (!block) return NULL;
    *block = size;
    int64_t now = __atomic_add_fetch(&count->held, (int64_t)size - (int64_t)before, __ATOMIC_SEQ_CST);
    if (now > count->peak) count->peak = now;
    return block + 2;
}

static void counting_release(void *user, void *memory) {
    counting *count = user;
    size_t *block = (size_t *)memory - 2;
    __atomic_sub_fetch(&count->held, (int64_t)*block, __ATOMIC_SEQ_CST);
    free(block);
}

/* The peak while a file of queries is answered as the program does it. */
static int64_t peak_of(const tiny_run *tiny, int64_t queries) {
    enum { BATCH = 100 };
    const char *path = support_path(tiny->folder, "queries.tsv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int64_t i = 0; i < queries; i++)
        if (i % 2)
            fprintf(file, "?\tr%d\te%d\n", (int)(i % 3), (int)(i % 24));
        else
            fprintf(file, "e%d\tr%d\t?\n", (int)(i % 24), (int)(i % 3));
    fclose(file);
    counting count = {0, 0};
    vlp_allocator_set(&(vlp_allocator){counting_reallocate, counting_release, &count});
    vlp_run *run = NULL;
    vlp_triple_reader *reader = NULL;
    vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
    opening.threads = 1;
    must(vlp_run_open(&run, tiny->path, &opening));
    must(vlp_triple_reader_open(&reader, vlp_run_dataset(run), path, true));
    int64_t answered = 0;
    for (bool more = true; more;) {
        vlp_query batch[BATCH];
        int64_t read = 0;
        vlp_triple triple;
        while (read < BATCH) {
            must(vlp_triple_reader_next(&triple, &more, reader));
            if (!more) break;
            batch[read++] = vlp_query_of(vlp_run_dataset(run), triple);
        }
        vlp_predictions *predictions = NULL;
        must(vlp_run_predict(&predictions, run, batch, read, NULL));
        vlp_predictions_free(predictions);
        answered += read;
    }
    assert_int_equal(answered, queries);
    vlp_triple_reader_free(reader);
    vlp_run_free(run);
    vlp_allocator_set(NULL);
    assert_int_equal(count.held, 0);
    return count.peak;
}

static void memory_is_flat(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 9);
    int64_t few = peak_of(&tiny, 100), many = peak_of(&tiny, 10000);
    /* The file's own buffer grows with a small file up to its size. */
    assert_true(many <= few + (300 << 10));
    tiny_run_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_answers),   cmocka_unit_test(contributions),
        cmocka_unit_test(nothing_copied), cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(stops),          cmocka_unit_test(out_of_memory),
        cmocka_unit_test(memory_is_flat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
