/* A run over another graph: entities it has never seen, names and ids, evaluation of another data set;
 * and that nothing of test reaches training or scores. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "random_data.h"
#include "store/safetensors.h"
#include "tiny_run.h"

static const char *const path_alone[] = {
    "model=none", "path=on", "path_layers=3", "path_dim=8", "path_passes=2", "path_warmup=2", NULL};
static const char *const all_three[] = {"path=on",       "path_layers=3", "path_dim=8",
                                        "path_passes=2", "path_warmup=2", NULL};

/* All components count, whatever the validation split would choose. */
static void make_run(tiny_run *tiny, bool alone, uint64_t seed) {
    tiny_run_make(tiny, alone ? path_alone : all_three, seed);
    if (!alone)
        tiny->run->progress.mixture =
            (vlp_mixture){{[VLP_HORIZONTAL] = 0.3f, [VLP_VERTICAL] = 1, [VLP_PATH] = 0.5f}};
}

/* ---- A copy of the run's data set under other names ---------------------------------------------- */

/* Replaces every entity e... by x.... Names come in the same order: entity e of the run is
 * entities + e of the graph. */
static void write_renamed(const tiny_run *tiny, const char *folder) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        char *text = support_read(tiny->data, split_files[split]);
        assert_non_null(text);
        for (char *at = text; *at; at++)
            if (*at == 'e') *at = 'x';
        support_write_text(folder, split_files[split], text);
        free(text);
    }
}

static vlp_evaluation *evaluate(const tiny_run *tiny, bool graph) {
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    vlp_evaluation *evaluation = NULL;
    options.graph = graph;
    options.among = 6;
    must(vlp_run_evaluate(&evaluation, tiny->run, &options));
    return evaluation;
}

static void check_same_evaluation(const tiny_run *tiny, const vlp_evaluation *own) {
    vlp_evaluation *there = evaluate(tiny, true);
    assert_int_equal(there->components, 1u << VLP_PATH);
    assert_int_equal(there->candidates, tiny->entities);
    assert_int_equal(own->candidates, tiny->entities);
    assert_int_equal(there->queries, own->queries);
    for (int64_t i = 0; i < own->queries; i++)
        assert_true(vlp_evaluation_rank(own, (vlp_ranked_by)(VLP_BY_F_G + VLP_PATH), i) ==
                    vlp_evaluation_rank(there, VLP_BY_F, i));
    assert_true(there->both.mrr == own->alone[VLP_PATH].mrr);
    assert_true(there->both.amri == own->alone[VLP_PATH].amri);
    assert_true(there->frequency.mrr == own->frequency.mrr);
    assert_true(there->pagerank.queries == own->queries && there->pagerank.mrr > 0);
    assert_int_equal(own->pagerank.queries, 0);
    assert_true(there->weights[VLP_PATH] == 1 && isnan(there->weights[VLP_HORIZONTAL]));
    /* Over other names they are other queries. */
    vlp_interval gain;
    assert_int_equal(vlp_evaluation_compare(&gain, own, VLP_BY_F, there, VLP_BY_F), VLP_ERROR_ARGUMENT);
    vlp_evaluation_free(there);
}

/* f_p of all entities as answers of a query. */
static void path_scores(double *out, const tiny_run *tiny, vlp_query query, int32_t first) {
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    vlp_predictions *predictions = NULL;
    options.known = true;
    options.count = 1000;
    must(vlp_run_predict(&predictions, tiny->run, &query, 1, &options));
    const vlp_answers *answers = vlp_predictions_get(predictions, 0);
    assert_int_equal(answers->prediction_count, tiny->entities);
    for (int32_t i = 0; i < tiny->entities; i++) {
        int32_t entity = answers->predictions[i].entity - first;
        assert_in_range(entity, 0, tiny->entities - 1);
        out[entity] = answers->predictions[i].parts[VLP_PATH];
        if (first > 0) {
            assert_true(answers->predictions[i].score == out[entity]);
            assert_true(isnan(answers->predictions[i].parts[VLP_HORIZONTAL]));
        }
    }
    vlp_predictions_free(predictions);
}

enum { QUERIES = 24, SCORED = 40 };

typedef struct seen_scores {
    double rows[QUERIES][64];
    double triples[SCORED];
    vlp_mining *mining;
} seen_scores;

/* What the run gives, over its own graph or over the renamed one, whose ids begin at `first`. */
static void collect(seen_scores *out, const tiny_run *tiny, int32_t first) {
    for (int32_t i = 0; i < QUERIES; i++)
        path_scores(out->rows[i], tiny, (vlp_query){first + i % tiny->entities, i % 6, -1}, first);
    for (int32_t i = 0; i < SCORED; i++) {
        vlp_triple triple = {first + i % tiny->entities, i % 3, first + 7 * i % tiny->entities};
        vlp_score_options options = VLP_SCORE_OPTIONS_INIT;
        vlp_score score;
        options.uncalibrated = true;
        must(vlp_run_score(&score, tiny->run, &triple, 1, &options));
        out->triples[i] = score.parts[VLP_PATH];
        assert_true(first == 0 || score.score == score.parts[VLP_PATH]);
    }
    must(vlp_run_mine(&out->mining, tiny->run, NULL));
}

static void check_same_mining(const vlp_mining *own, const vlp_mining *there, int32_t first) {
    assert_true(own->count > 0);
    assert_int_equal(own->count, there->count);
    assert_int_equal(own->queries, there->queries);
    assert_int_equal(own->possible_triples, there->possible_triples);
    for (int64_t i = 0; i < own->count; i++) {
        vlp_triple moved = own->items[i].triple;
        moved.head += first;
        moved.tail += first;
        assert_memory_equal(&moved, &there->items[i].triple, sizeof moved);
        assert_true(own->items[i].score == there->items[i].score);
        assert_true(own->items[i].probability == there->items[i].probability);
    }
}

/* The explanations of the path model, which has no entity parameters, are the same over both graphs. */
static vlp_predictions *explain(const tiny_run *tiny, int32_t first) {
    vlp_query queries[QUERIES];
    vlp_predictions *predictions = NULL;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.explain = true;
    options.count = 3;
    for (int32_t i = 0; i < QUERIES; i++)
        queries[i] = (vlp_query){first + i % tiny->entities, i % 6, -1};
    must(vlp_run_predict(&predictions, tiny->run, queries, QUERIES, &options));
    return predictions;
}

static void check_same_explanations(const vlp_predictions *own, const vlp_predictions *there) {
    int32_t sets = 0;
    for (int32_t i = 0; i < QUERIES; i++)
        for (int32_t j = 0; j < vlp_predictions_get(own, i)->prediction_count; j++) {
            const vlp_prediction *a = &vlp_predictions_get(own, i)->predictions[j];
            const vlp_prediction *b = &vlp_predictions_get(there, i)->predictions[j];
            assert_int_equal(a->path_count, b->path_count);
            for (int32_t k = 0; k < a->path_count; k++)
                assert_true(a->paths[k].weight == b->paths[k].weight);
            assert_int_equal(a->support->count, b->support->count);
            assert_true(a->support->rank_before == b->support->rank_before);
            assert_true(a->support->rank == b->support->rank);
            assert_true(a->support->path == b->support->path);
            sets += a->support->count > 0;
        }
    assert_true(sets > 20);
}

static void renamed_graph(void **state) {
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        tiny_run tiny;
        static seen_scores own, there, again;
        make_run(&tiny, alone, 300 + (uint64_t)alone);
        char folder[64];
        snprintf(folder, sizeof folder, "%s", support_folder());
        write_renamed(&tiny, folder);
        char labels[256];
        snprintf(labels, sizeof labels, "x0\tthe first\n%s\tthe relation\n",
                 vlp_dataset_relation_name(tiny.dataset, 1));
        support_write_text(folder, "labels.tsv", labels);
        vlp_evaluation *evaluation = evaluate(&tiny, false);
        collect(&own, &tiny, 0);
        vlp_predictions *explained = alone ? explain(&tiny, 0) : NULL;
        vlp_graph_report report;
        must(vlp_run_use_graph(&report, tiny.run, folder, NULL));
        assert_int_equal(report.new_entities, tiny.entities);
        assert_int_equal(report.new_triples, report.triples);
        assert_int_equal(report.unknown_triples, 0);
        vlp_run_info info;
        vlp_run_describe(&info, tiny.run);
        assert_int_equal(info.components, 1u << VLP_PATH);
        assert_false(info.copies);
        const vlp_dataset *names = vlp_run_graph_dataset(tiny.run);
        assert_int_equal(vlp_dataset_entity_count(names), 2 * tiny.entities);
        for (int32_t e = 0; e < tiny.entities; e++) {
            const char *mine = vlp_dataset_entity_name(tiny.dataset, e);
            assert_string_equal(mine, vlp_dataset_entity_name(names, e));
            assert_string_equal(mine + 1, vlp_dataset_entity_name(names, tiny.entities + e) + 1);
        }
        int32_t labelled;
        must(vlp_dataset_find_entity(&labelled, names, "the first"));
        assert_int_equal(labelled, tiny.entities);
        must(vlp_dataset_find_relation(&labelled, names, "the relation"));
        assert_int_equal(labelled, 1);
        check_same_evaluation(&tiny, evaluation);
        collect(&there, &tiny, tiny.entities);
        assert_memory_equal(own.triples, there.triples, sizeof own.triples);
        for (int i = 0; i < QUERIES; i++)
            assert_memory_equal(own.rows[i], there.rows[i], (size_t)tiny.entities * sizeof(double));
        if (alone) {
            vlp_predictions *moved = explain(&tiny, tiny.entities);
            check_same_mining(own.mining, there.mining, tiny.entities);
            check_same_explanations(explained, moved);
            vlp_predictions_free(moved);
            vlp_predictions_free(explained);
        }
        /* Back: as before. */
        must(vlp_run_use_graph(NULL, tiny.run, NULL, NULL));
        assert_ptr_equal(vlp_run_graph_dataset(tiny.run), tiny.dataset);
        collect(&again, &tiny, 0);
        assert_memory_equal(own.triples, again.triples, sizeof own.triples);
        check_same_mining(own.mining, again.mining, 0);
        vlp_mining_free(own.mining);
        vlp_mining_free(there.mining);
        vlp_mining_free(again.mining);
        vlp_evaluation_free(evaluation);
        support_remove(folder);
        tiny_run_free(&tiny);
    }
}

/* ---- Known and new entities together ------------------------------------------------------------- */

/* Train without the triples of e25, and with new entities and a new relation where `grown`. */
static void write_mixed(const tiny_run *tiny, const char *folder, bool grown) {
    char *train = support_read(tiny->data, "train.txt"), *out = malloc(strlen(train) + 400);
    assert_non_null(out);
    *out = '\0';
    for (char *line = strtok(train, "\n"); line; line = strtok(NULL, "\n"))
        if (!strstr(line, "e25")) sprintf(out + strlen(out), "%s\n", line);
    if (grown) strcat(out, "new\tr0\te3\ne1\tr1\tnew\nnew\tr2\tother\ne1\tnovel\te2\n");
    support_write_text(folder, "train.txt", out);
    support_write_text(folder, "valid.txt", grown ? "e2\tr1\tnew\n" : "e2\tr1\te9\n");
    support_write_text(folder, "test.txt",
                       grown ? "new\tr0\te4\ne2\tr1\te3\nlonely\tr2\tother\ne4\tnovel\te5\n"
                             : "e3\tr0\te4\ne2\tr1\te3\n");
    free(train);
    free(out);
}

/* Ranks by hand, from the scores of all answers. */
static void check_ranks(const tiny_run *tiny, const vlp_evaluation *evaluation, unsigned filter) {
    const vlp_dataset *names = vlp_run_graph_dataset(tiny->run);
    for (int64_t i = 0; i < evaluation->queries; i++) {
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        vlp_predictions *predictions = NULL;
        int32_t answer;
        vlp_query query = query_of(names, VLP_TEST, i, &answer);
        options.known = true;
        options.count = 1000;
        must(vlp_run_predict(&predictions, tiny->run, &query, 1, &options));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        double gold = (double)NAN, rank = 1;
        for (int32_t j = 0; j < answers->prediction_count; j++)
            if (answers->predictions[j].entity == answer) gold = answers->predictions[j].score;
        for (int32_t j = 0; j < answers->prediction_count; j++) {
            const vlp_prediction *one = &answers->predictions[j];
            bool candidate = strcmp(vlp_dataset_entity_name(names, one->entity), "e25") != 0;
            if (one->entity == answer || !candidate || known(names, filter, query, one->entity))
                continue;
            rank += one->score > gold ? 1 : one->score == gold ? 0.5 : 0;
        }
        assert_true(fabs(rank - vlp_evaluation_rank(evaluation, VLP_BY_F, i)) < 1e-9);
        vlp_predictions_free(predictions);
    }
}

static void mixed_graph(void **state) {
    (void)state;
    for (int grown = 0; grown < 2; grown++) {
        tiny_run tiny;
        make_run(&tiny, false, 310);
        char folder[64];
        snprintf(folder, sizeof folder, "%s", support_folder());
        write_mixed(&tiny, folder, grown);
        vlp_graph_report report;
        must(vlp_run_use_graph(&report, tiny.run, folder, NULL));
        assert_int_equal(report.new_entities, grown ? 3 : 0);
        assert_int_equal(report.unknown_entities, grown ? 2 : 0);
        assert_int_equal(report.unknown_triples, grown);
        assert_int_equal(report.unknown_others, grown);
        assert_int_equal(report.unknown_relations, grown);
        const vlp_dataset *names = vlp_run_graph_dataset(tiny.run);
        int32_t found;
        if (grown) {
            must(vlp_dataset_find_entity(&found, names, "lonely"));
            assert_true(found >= tiny.entities && found < tiny.entities + 3);
        }
        must(vlp_dataset_find_entity(&found, names, "e7"));
        assert_string_equal(vlp_dataset_entity_name(tiny.dataset, found), "e7");
        vlp_evaluation *evaluation = evaluate(&tiny, true);
        assert_int_equal(evaluation->components, grown ? 1u << VLP_PATH : 7);
        assert_int_equal(evaluation->queries, grown ? 6 : 4);
        assert_int_equal(evaluation->candidates, tiny.entities - 1 + (grown ? 3 : 0));
        check_ranks(&tiny, evaluation, ALL);
        vlp_evaluation_free(evaluation);
        /* Only entities of the graph are answers where it has new ones. */
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        vlp_predictions *predictions = NULL;
        vlp_query query = {0, 0, -1};
        options.known = true;
        options.count = 1000;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
        assert_int_equal(vlp_predictions_get(predictions, 0)->prediction_count,
                         grown ? tiny.entities + 2 : tiny.entities);
        vlp_predictions_free(predictions);
        support_remove(folder);
        tiny_run_free(&tiny);
    }
}

static void refused(void **state) {
    (void)state;
    tiny_run tiny;
    make_run(&tiny, true, 320);
    vlp_evaluation *evaluation = NULL;
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    options.graph = true;
    assert_int_equal(vlp_run_evaluate(&evaluation, tiny.run, &options), VLP_ERROR_ARGUMENT);
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "a\tr0\tb\n");
    must(vlp_run_use_graph(NULL, tiny.run, folder, NULL));
    assert_int_equal(vlp_run_evaluate(&evaluation, tiny.run, &options), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "test"));
    options.graph = false;
    options.among = -1;
    assert_int_equal(vlp_run_evaluate(&evaluation, tiny.run, &options), VLP_ERROR_ARGUMENT);
    options.among = 0;
    options.graph = options.control = true;
    assert_int_equal(vlp_run_evaluate(&evaluation, tiny.run, &options), VLP_ERROR_ARGUMENT);
    assert_null(evaluation);
    /* An entity behind those of the graph. */
    vlp_query query = {tiny.entities + 2, 0, -1};
    vlp_predictions *predictions = NULL;
    assert_int_equal(vlp_run_predict(&predictions, tiny.run, &query, 1, NULL), VLP_ERROR_ARGUMENT);
    query.entity--;
    must(vlp_run_predict(&predictions, tiny.run, &query, 1, NULL));
    vlp_predictions_free(predictions);
    /* No relation is known. */
    support_write_text(folder, "train.txt", "a\tnovel\tb\n");
    assert_int_equal(vlp_run_use_graph(NULL, tiny.run, folder, NULL), VLP_ERROR_FORMAT);
    support_remove(folder);
    tiny_run_free(&tiny);
}

/* Every allocation fails once; some only give memory back that is not needed. */
static void out_of_memory(void **state) {
    (void)state;
    tiny_run tiny;
    make_run(&tiny, true, 330);
    char folder[64];
    snprintf(folder, sizeof folder, "%s", support_folder());
    write_mixed(&tiny, folder, true);
    failing_allocator memory;
    int64_t call = 0, refusals = 0;
    do {
        vlp_run *run = NULL;
        vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
        opening.threads = 1;
        must(vlp_run_open(&run, tiny.path, &opening));
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_run_use_graph(NULL, run, folder, NULL);
        if (status == VLP_OK) must(vlp_run_use_graph(NULL, run, NULL, NULL));
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        refusals += status != VLP_OK;
        vlp_run_free(run);
    } while (memory.failed);
    assert_true(refusals > 30);
    support_remove(folder);
    tiny_run_free(&tiny);
}

/* ---- No leak ------------------------------------------------------------------------------------- */

/* Test with every answer replaced by an entity at random. */
static void write_scrambled(const tiny_run *tiny, const char *folder) {
    int64_t count;
    const vlp_triple *test = vlp_dataset_triples(tiny->dataset, VLP_TEST, &count);
    oracle_random random = {340, 1, 0};
    char text[4096] = "";
    for (int64_t i = 0; i < count; i++) {
        int32_t other = (test[i].tail + 1 + oracle_below(&random, tiny->entities - 1)) % tiny->entities;
        sprintf(text + strlen(text), "%s\t%s\t%s\n",
                vlp_dataset_entity_name(tiny->dataset, test[i].head),
                vlp_dataset_relation_name(tiny->dataset, test[i].relation),
                vlp_dataset_entity_name(tiny->dataset, other));
    }
    support_write_text(folder, "test.txt", text);
    for (int split = VLP_TRAIN; split < VLP_TEST; split++) {
        char *same = support_read(tiny->data, split_files[split]);
        support_write_text(folder, split_files[split], same);
        free(same);
    }
}

static void check_same_tables(const vlp_model *left, const vlp_model *right) {
    assert_int_equal(left->table_count, right->table_count);
    for (int32_t i = 0; i < left->table_count; i++) {
        size_t bytes = (size_t)left->tables[i].rows * (size_t)left->tables[i].width * sizeof(float);
        float *mine = malloc(bytes), *other = malloc(bytes);
        assert_true(mine && other);
        must(left->backend->memory->download(left->compute, mine, left->tables[i].value, bytes));
        must(right->backend->memory->download(right->compute, other, right->tables[i].value, bytes));
        assert_memory_equal(mine, other, bytes);
        free(mine);
        free(other);
    }
}

/* Weights too: trained with the validation split, whose filter must not know test. */
static void no_leak(void **state) {
    (void)state;
    static const char *const settings[] = {
        "path=on",       "path_layers=3", "path_dim=8", "path_passes=4",
        "path_warmup=2", "eval_every=4",  NULL};
    tiny_run first, second = {0};
    tiny_run_make(&first, settings, 340);
    snprintf(second.folder, sizeof second.folder, "%s", support_folder());
    snprintf(second.path, sizeof second.path, "%s/run", second.folder);
    write_scrambled(&first, second.folder);
    tiny_run_train(&second, second.folder, settings);
    vlp_run_free(first.run); /* what valid chose, not what the helper set */
    vlp_run_free(second.run);
    must(vlp_run_open(&first.run, first.path, NULL));
    must(vlp_run_open(&second.run, second.path, NULL));
    first.dataset = vlp_run_dataset(first.run);
    assert_int_equal(first.run->model->components, 7);
    check_same_tables(first.run->model, second.run->model);
    assert_memory_equal(&first.run->progress.mixture, &second.run->progress.mixture,
                        sizeof first.run->progress.mixture);
    /* What weights are chosen by: a coarse grid may hide a difference. */
    assert_true(first.run->progress.best_mrr == second.run->progress.best_mrr);
    int64_t triples, differing = 0;
    const vlp_triple *test = vlp_dataset_triples(first.dataset, VLP_TEST, &triples);
    const vlp_triple *other = vlp_dataset_triples(vlp_run_dataset(second.run), VLP_TEST, NULL);
    for (int64_t i = 0; i < 2 * triples; i++) {
        int32_t answer;
        vlp_query query = query_of(first.dataset, VLP_TEST, i, &answer);
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        vlp_predictions *mine = NULL, *theirs = NULL;
        options.known = true;
        options.count = 1000;
        must(vlp_run_predict(&mine, first.run, &query, 1, &options));
        must(vlp_run_predict(&theirs, second.run, &query, 1, &options));
        const vlp_answers *a = vlp_predictions_get(mine, 0), *b = vlp_predictions_get(theirs, 0);
        assert_int_equal(a->prediction_count, first.entities);
        assert_int_equal(b->prediction_count, first.entities);
        for (int32_t j = 0; j < first.entities; j++) {
            assert_int_equal(a->predictions[j].entity, b->predictions[j].entity);
            assert_true(a->predictions[j].score == b->predictions[j].score);
            assert_memory_equal(a->predictions[j].parts, b->predictions[j].parts, 3 * sizeof(double));
        }
        vlp_predictions_free(mine);
        vlp_predictions_free(theirs);
        if (i < triples) differing += test[i].tail != other[i].tail;
    }
    assert_int_equal(differing, triples);
    tiny_run_free(&second);
    tiny_run_free(&first);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(renamed_graph), cmocka_unit_test(mixed_graph),
                                       cmocka_unit_test(refused), cmocka_unit_test(out_of_memory),
                                       cmocka_unit_test(no_leak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
