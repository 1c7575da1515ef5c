/* Missing triples against a search over all triples there are, interruptions, and references from a
 * graph that has grown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tiny_run.h"

#include "checked_qsort.h"

/* ---- Mining -------------------------------------------------------------------------------------- */

typedef struct found {
    vlp_triple triple;
    double score;
} found;

static int best_first(const void *left, const void *right) {
    const found *a = left, *b = right;
    return (a->score < b->score) - (a->score > b->score);
}

/* Whether train has the entity in this place (0: head, 1: tail) of the relation; whether it has loops.
 */
static bool in_place(const tiny_run *tiny, int32_t entity, int32_t relation, int place) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    for (int64_t i = 0; i < count; i++)
        if (train[i].relation == relation && (place ? train[i].tail : train[i].head) == entity)
            return true;
    return false;
}

static bool has_loops(const tiny_run *tiny, int32_t relation) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    for (int64_t i = 0; i < count; i++)
        if (train[i].relation == relation && train[i].head == train[i].tail) return true;
    return false;
}

/* What mining is restricted to. */
typedef struct asked {
    int32_t relation;         /* -1: all */
    vlp_sides sides;          /* which entity queries ask for */
    const uint8_t *candidate; /* (entities); NULL: all */
    bool seen;                /* answers are seen in that place */
} asked;

/* Whether a query about one entity of the triple may propose the other one, in `place` (0: head, 1:
 * tail). */
static bool may_propose(const tiny_run *tiny, vlp_triple triple, int place, const asked *what) {
    int32_t about = place ? triple.head : triple.tail, answer = place ? triple.tail : triple.head;
    if (what->sides == (place ? VLP_HEADS : VLP_TAILS)) return false;
    if (what->candidate && !what->candidate[answer]) return false;
    if (what->seen && !in_place(tiny, answer, triple.relation, place)) return false;
    return in_place(tiny, about, triple.relation, !place);
}

/* Every unknown triple that some query could propose, with its score, best first. */
static int64_t search_all(found **out, const tiny_run *tiny, const asked *what) {
    vlp_filter *known = NULL;
    must(vlp_filter_new(&known, tiny->dataset, 7));
    int32_t e = tiny->entities;
    found *all = malloc((size_t)e * (size_t)e * (size_t)tiny->relations * sizeof *all);
    int64_t count = 0;
    for (int32_t r = 0; r < tiny->relations; r++)
        for (int32_t h = 0; h < e; h++)
            for (int32_t t = 0; t < e; t++) {
                vlp_triple triple = {h, r, t};
                if (what->relation >= 0 && r != what->relation) continue;
                if (vlp_filter_has(known, h, r, t) || (h == t && !has_loops(tiny, r))) continue;
                if (!may_propose(tiny, triple, 0, what) && !may_propose(tiny, triple, 1, what)) continue;
                all[count++] = (found){triple, tiny_run_triple(tiny, triple).f};
            }
    qsort(all, (size_t)count, sizeof *all, best_first);
    vlp_filter_free(known);
    *out = all;
    return count;
}

static void check_mining(const tiny_run *tiny, const vlp_mining *mining, const found *all, int64_t count,
                         int32_t wanted) {
    assert_int_equal(mining->count, count < wanted ? count : wanted);
    for (int64_t i = 0; i < mining->count; i++) {
        const vlp_mined *item = &mining->items[i];
        near(item->score, all[i].score);
        near(item->score, tiny_run_triple(tiny, item->triple).f);
        if (i > 0) assert_true(item->score <= mining->items[i - 1].score);
        for (int64_t j = 0; j < i; j++)
            assert_true(memcmp(&item->triple, &mining->items[j].triple, sizeof item->triple) != 0);
        bool there = false;
        for (int64_t j = 0; j < count; j++)
            there = there || memcmp(&all[j].triple, &item->triple, sizeof item->triple) == 0;
        assert_true(there);
        assert_true(item->probability > 0 && item->probability < 1);
    }
}

/* With as many candidates a query as there are entities, nothing that could be proposed is missed. */
static void finds_the_best(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 70);
    for (int32_t only = -1; only < 2; only++) {
        found *all;
        int64_t count = search_all(&all, &tiny, &(asked){.relation = only});
        for (int32_t wanted = 5; wanted < 6000; wanted *= 10) {
            vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
            options.count = wanted;
            options.per_query = 1000;
            options.relation = only;
            vlp_mining *mining = NULL;
            must(vlp_run_mine(&mining, tiny.run, &options));
            check_mining(&tiny, mining, all, count, wanted);
            int64_t relations = only < 0 ? tiny.relations : 1, e = tiny.entities;
            assert_int_equal(mining->possible_queries, 2 * relations * e);
            assert_int_equal(mining->possible_triples, relations * e * e);
            assert_true(mining->queries > 0 && mining->queries < mining->possible_queries);
            vlp_mining_free(mining);
        }
        free(all);
    }
    tiny_run_free(&tiny);
}

/* The same among some candidates, those seen in a place, and for one side. */
static void finds_the_best_among_candidates(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 72);
    const int32_t list[] = {3, 17, 5, 8, 3, 11};
    uint8_t marks[64] = {0};
    for (int i = 0; i < 6; i++) marks[list[i]] = 1;
    for (int way = 1; way < 12; way++) {
        asked what = {.relation = way % 5 == 0 ? 1 : -1,
                      .sides = (vlp_sides)(way % 3),
                      .candidate = way & 1 ? marks : NULL,
                      .seen = way & 2};
        vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;
        candidates.entities = way & 1 ? list : NULL;
        candidates.entity_count = way & 1 ? 6 : 0;
        candidates.seen = what.seen;
        vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
        options.count = 5000;
        options.per_query = 1000;
        options.relation = what.relation;
        options.sides = what.sides;
        options.candidates = &candidates;
        found *all;
        int64_t count = search_all(&all, &tiny, &what);
        assert_true(count > 0);
        vlp_mining *mining = NULL;
        must(vlp_run_mine(&mining, tiny.run, &options));
        check_mining(&tiny, mining, all, count, options.count);
        int64_t relations = what.relation < 0 ? tiny.relations : 1,
                sides = what.sides == VLP_BOTH_SIDES ? 2 : 1;
        assert_int_equal(mining->possible_queries, sides * relations * tiny.entities);
        vlp_mining_free(mining);
        free(all);
    }
    tiny_run_free(&tiny);
}

/* A state belongs to its candidates; no candidate seen in any place is an error. */
static void state_of_other_candidates(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 73);
    char path[256];
    snprintf(path, sizeof path, "%s/mining.state", tiny.folder);
    const int32_t list[] = {3, 17};
    vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;
    candidates.entities = list;
    candidates.entity_count = 2;
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    options.state = path;
    options.resume = true;
    options.candidates = &candidates;
    vlp_mining *mining = NULL;
    must(vlp_run_mine(&mining, tiny.run, &options));
    vlp_mining_free(mining);
    mining = NULL;
    for (int way = 0; way < 4; way++) {
        candidates.entity_count = way == 0 ? 1 : 2;
        candidates.seen = way == 1;
        options.sides = way == 2 ? VLP_HEADS : VLP_BOTH_SIDES;
        options.candidates = way == 3 ? NULL : &candidates;
        assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
        assert_non_null(strstr(vlp_error_message(), "another run, graph or choice of options"));
        assert_null(mining);
    }
    assert_int_equal(unlink(path), 0);
    /* An entity that is no head entity of relation 0, asked for as such. */
    int32_t never = 0;
    while (in_place(&tiny, never, 0, 0)) never++;
    candidates.entities = &never;
    candidates.entity_count = 1;
    candidates.seen = true;
    options = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    options.candidates = &candidates;
    options.relation = 0;
    options.sides = VLP_HEADS;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "no candidate is left"));
    options.sides = (vlp_sides)3;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    tiny_run_free(&tiny);
}

/* With one candidate a query: each is the best unknown answer of some query. */
static void one_per_query(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 71);
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    options.per_query = 1;
    vlp_mining *mining = NULL;
    must(vlp_run_mine(&mining, tiny.run, &options));
    assert_true(mining->count > 10);
    for (int64_t i = 0; i < mining->count; i++) {
        vlp_triple triple = mining->items[i].triple;
        vlp_query queries[2] = {{triple.head, triple.relation, -1},
                                {triple.tail, triple.relation + tiny.relations, -1}};
        vlp_predict_options asking = VLP_PREDICT_OPTIONS_INIT;
        asking.count = 1;
        vlp_predictions *predictions = NULL;
        must(vlp_run_predict(&predictions, tiny.run, queries, 2, &asking));
        bool tail = vlp_predictions_get(predictions, 0)->predictions[0].entity == triple.tail;
        bool head = vlp_predictions_get(predictions, 1)->predictions[0].entity == triple.head;
        assert_true(tail || head);
        vlp_predictions_free(predictions);
    }
    vlp_mining_free(mining);
    tiny_run_free(&tiny);
}

static bool stop_later(void *user) {
    int *left = user;
    return --*left < 0;
}

/* The run is interrupted after every chunk, and in the end has found what one that was left alone finds.
 */
static void interrupt(const tiny_run *tiny, int32_t per_query) {
    vlp_mining *whole = NULL, *mining = NULL;
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    options.count = 40;
    options.per_query = per_query;
    must(vlp_run_mine(&whole, tiny->run, &options));
    char path[256];
    snprintf(path, sizeof path, "%s/mining.state", tiny->folder);
    int left, interruptions = 0;
    vlp_observer observer = {NULL, NULL, stop_later, &left};
    options.state = path;
    options.resume = true;
    options.observer = &observer;
    vlp_status status = VLP_ERROR_STOPPED;
    for (; status == VLP_ERROR_STOPPED; interruptions++) {
        left = 4; /* a chunk asks three times: each try comes a chunk farther */
        status = vlp_run_mine(&mining, tiny->run, &options);
        if (status == VLP_ERROR_STOPPED) {
            assert_true(vlp_path_exists(path));
            /* Without resume it is not thrown away; with other options it is not taken. */
            vlp_mining *other = NULL;
            vlp_mine_options wrong = options;
            wrong.observer = NULL;
            wrong.resume = false;
            assert_int_equal(vlp_run_mine(&other, tiny->run, &wrong), VLP_ERROR_EXISTS);
            wrong.resume = true;
            wrong.count = 41;
            assert_int_equal(vlp_run_mine(&other, tiny->run, &wrong), VLP_ERROR_ARGUMENT);
        }
        assert_true(interruptions < 100);
    }
    must(status);
    assert_true(interruptions > 2);
    /* The state stays until the caller removes it, and gives the whole result again. */
    assert_true(vlp_path_exists(path));
    vlp_mining_free(mining);
    left = 4;
    must(vlp_run_mine(&mining, tiny->run, &options));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mining->count, whole->count);
    assert_int_equal(mining->queries, whole->queries);
    assert_int_equal(mining->candidates, whole->candidates);
    for (int64_t i = 0; i < whole->count; i++) {
        assert_memory_equal(&mining->items[i].triple, &whole->items[i].triple, sizeof(vlp_triple));
        assert_true(mining->items[i].score == whole->items[i].score);
        assert_true(mining->items[i].tail == whole->items[i].tail);
    }
    vlp_mining_free(mining);
    vlp_mining_free(whole);
    /* A damaged state is refused. */
    support_write_text(tiny->folder, "mining.state", "damaged");
    options.observer = NULL;
    assert_int_equal(vlp_run_mine(&mining, tiny->run, &options), VLP_ERROR_FORMAT);
}

static void interrupted_and_resumed(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 72);
    interrupt(&tiny, 10);
    tiny_run_free(&tiny);
}

/* With more entities in a place than are asked about at a time. */
static void interrupted_within_a_relation(void **state) {
    (void)state;
    enum { ENTITIES = 1300 };
    tiny_run tiny = {0};
    snprintf(tiny.folder, sizeof tiny.folder, "%s", support_folder());
    snprintf(tiny.path, sizeof tiny.path, "%s/run", tiny.folder);
    FILE *file = fopen(support_path(tiny.folder, "train.txt"), "w");
    assert_non_null(file);
    for (int i = 0; i < ENTITIES; i++) fprintf(file, "e%d\tr\te%d\n", i, (i * 7 + 1) % ENTITIES);
    fclose(file);
    tiny_run_train(&tiny, tiny.folder, NULL);
    interrupt(&tiny, 1);
    tiny_run_free(&tiny);
}

static void wrong_options(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 73);
    vlp_mining *mining = NULL;
    vlp_mine_options options = VLP_MINE_OPTIONS_INIT;
    options.count = 0;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    options = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    options.per_query = 0;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    options = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    options.relation = tiny.relations;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    options = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    options.prior = 0;
    assert_int_equal(vlp_run_mine(&mining, tiny.run, &options), VLP_ERROR_ARGUMENT);
    must(vlp_run_mine(&mining, tiny.run, NULL));
    vlp_mining_free(mining);
    tiny_run_free(&tiny);
}

/* ---- Live references ----------------------------------------------------------------------------- */

/* The run's train with some triples gone, some new, in another order, and names the run never saw. */
static void write_grown(const tiny_run *tiny, const char *folder) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    FILE *file = fopen(support_path(folder, "train.tsv"), "w");
    assert_non_null(file);
    fputs("stranger\tr1\te3\ne3\tstrange\te4\n", file);
    for (int64_t i = count - 1; i >= 0; i--) {
        if (i % 10 == 0) continue;
        fprintf(file, "%s\t%s\t%s\n", vlp_dataset_entity_name(tiny->dataset, train[i].head),
                vlp_dataset_relation_name(tiny->dataset, train[i].relation),
                vlp_dataset_entity_name(tiny->dataset, train[i].tail));
    }
    for (int i = 0; i < 20; i++) fprintf(file, "e%d\tr%d\te%d\n", i, i % 3, (i * 5 + 1) % 26);
    fclose(file);
    support_write_text(folder, "valid.txt", "e1\tr0\te20\ne2\tr0\tnobody\n");
}

/* The references of a query in another data set, in the run's numbers. */
static int32_t references_there(const tiny_run *tiny, const vlp_dataset *other, vlp_query query,
                                vlp_triple *edges) {
    int32_t relations = vlp_dataset_relation_count(other), entity, relation;
    bool forward = query.relation < tiny->relations;
    must(vlp_dataset_find_entity(&entity, other, vlp_dataset_entity_name(tiny->dataset, query.entity)));
    must(vlp_dataset_find_relation(
        &relation, other, vlp_dataset_relation_name(tiny->dataset, query.relation % tiny->relations)));
    vlp_query there = {entity, forward ? relation : relation + relations, -1};
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = tiny->run->settings.references;
    vlp_references *references = NULL;
    must(vlp_references_find(&references, other, &there, 1, &options));
    int32_t count;
    int64_t triples;
    const vlp_reference *list = vlp_references_get(references, 0, &count);
    const vlp_triple *train = vlp_dataset_triples(other, VLP_TRAIN, &triples);
    for (int32_t i = 0; i < count; i++) {
        vlp_triple edge = train[list[i].edge];
        must(vlp_dataset_find_entity(&edges[i].head, tiny->dataset,
                                     vlp_dataset_entity_name(other, edge.head)));
        must(vlp_dataset_find_relation(&edges[i].relation, tiny->dataset,
                                       vlp_dataset_relation_name(other, edge.relation)));
        must(vlp_dataset_find_entity(&edges[i].tail, tiny->dataset,
                                     vlp_dataset_entity_name(other, edge.tail)));
    }
    vlp_references_free(references);
    return count;
}

/* The same folder without the names that the run does not know: what references are found in. */
static vlp_dataset *open_cleaned(const char *folder) {
    const char *cleaned = support_folder();
    char *text = support_read(folder, "train.tsv"), *start = strstr(text, "\te4\n") + 4;
    support_write_text(cleaned, "train.txt", start);
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, cleaned, NULL));
    free(text);
    support_remove(cleaned);
    return dataset;
}

/* A triple that only the grown graph has is known, and scored without itself. */
static void check_new_triples(const tiny_run *tiny, const vlp_triple *graph, int64_t count) {
    vlp_filter *train = NULL;
    must(vlp_filter_new(&train, tiny->dataset, 7));
    for (int64_t i = 0; i < count; i++) {
        if (vlp_filter_has(train, graph[i].head, graph[i].relation, graph[i].tail)) continue;
        vlp_score score;
        must(vlp_run_score(&score, tiny->run, &graph[i], 1, NULL));
        assert_true(score.known);
        vlp_query query = {graph[i].head, graph[i].relation, i};
        vlp_predictions *predictions = NULL;
        must(vlp_run_explain(&predictions, tiny->run, &query, &graph[i].tail, 1, NULL));
        near(score.tail, vlp_predictions_get(predictions, 0)->predictions[0].score);
        for (int32_t j = 0; j < vlp_predictions_get(predictions, 0)->reference_count; j++)
            assert_true(memcmp(&vlp_predictions_get(predictions, 0)->references[j].triple, &graph[i],
                               sizeof *graph) != 0);
        vlp_predictions_free(predictions);
    }
    vlp_filter_free(train);
}

static void grown_graph(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 80);
    char folder[64];
    snprintf(folder, sizeof folder, "%s", support_folder());
    write_grown(&tiny, folder);
    vlp_dataset *other = open_cleaned(folder);
    vlp_graph_report report;
    must(vlp_run_use_graph(&report, tiny.run, folder, NULL));
    int64_t there, mine;
    vlp_dataset_triples(other, VLP_TRAIN, &there);
    vlp_dataset_triples(tiny.dataset, VLP_TRAIN, &mine);
    assert_int_equal(report.triples, there);
    assert_int_equal(report.unknown_triples, 2);
    assert_int_equal(report.unknown_entities, 1);
    assert_int_equal(report.unknown_relations, 1);
    assert_true(report.new_triples > 0 && report.new_triples <= 20);
    const vlp_triple *graph = vlp_run_graph_triples(tiny.run, &there);
    assert_int_equal(there, report.triples);
    vlp_run_info info;
    vlp_run_describe(&info, tiny.run);
    assert_string_equal(info.graph, folder);
    int only_there = 0; /* the answer that is in the other's valid alone */
    for (int i = 0; i < 60; i++) {
        vlp_query query = {i == 0 ? 1 : (i * 3) % 24, i % 6, -1};
        vlp_triple edges[64];
        int32_t used = references_there(&tiny, other, query, edges);
        vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
        options.known = true;
        options.count = 100;
        options.explain = true;
        vlp_predictions *predictions = NULL;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, &options));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        assert_int_equal(answers->reference_count, used);
        for (int32_t j = 0; j < used; j++)
            assert_memory_equal(&answers->references[j].triple, &edges[j], sizeof *edges);
        for (int32_t j = 0; j < answers->prediction_count; j++) {
            const vlp_prediction *one = &answers->predictions[j];
            near(one->score, tiny_run_score(&tiny, query, edges, used, -1, one->entity).f);
            /* Known: in the run's data set, or in any split of the other. */
            if (query.relation != 0 || query.entity != 1 || one->entity != 20) continue;
            assert_true(one->known);
            only_there++;
        }
        vlp_predictions_free(predictions);
    }
    assert_int_equal(only_there, 1);
    check_new_triples(&tiny, graph, there);
    vlp_mining *mining = NULL;
    must(vlp_run_mine(&mining, tiny.run, NULL));
    for (int64_t i = 0; i < mining->count; i++)
        for (int64_t j = 0; j < there; j++)
            assert_true(memcmp(&mining->items[i].triple, &graph[j], sizeof *graph) != 0);
    vlp_mining_free(mining);
    vlp_dataset_free(other);
    support_remove(folder);
    tiny_run_free(&tiny);
}

/* The run's own folder as the reference graph, and back: nothing changes. */
static void same_graph(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 81);
    double scores[3][10];
    vlp_query query = {2, 1, -1};
    for (int way = 0; way < 3; way++) {
        vlp_graph_report report;
        must(vlp_run_use_graph(&report, tiny.run, way == 1 ? tiny.data : NULL, NULL));
        assert_int_equal(report.new_triples, 0);
        vlp_predictions *predictions = NULL;
        must(vlp_run_predict(&predictions, tiny.run, &query, 1, NULL));
        for (int i = 0; i < 10; i++)
            scores[way][i] = vlp_predictions_get(predictions, 0)->predictions[i].score;
        vlp_predictions_free(predictions);
    }
    assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    assert_memory_equal(scores[0], scores[2], sizeof scores[0]);
    /* What cannot be used leaves the run as it was. */
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "x\ty\tz\n");
    assert_int_equal(vlp_run_use_graph(NULL, tiny.run, folder, NULL), VLP_ERROR_FORMAT);
    assert_int_equal(vlp_run_use_graph(NULL, tiny.run, "/nowhere", NULL), VLP_ERROR_IO);
    vlp_predictions *predictions = NULL;
    must(vlp_run_predict(&predictions, tiny.run, &query, 1, NULL));
    assert_true(vlp_predictions_get(predictions, 0)->predictions[0].score == scores[0][0]);
    vlp_predictions_free(predictions);
    support_remove(folder);
    tiny_run_free(&tiny);
}

/* A graph in which nothing is missing. */
static void nothing_is_missing(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "a\tr\tb\nb\tr\ta\n");
    const char *settings[] = {"dim=4", "steps=2", "negatives=2", "threads=1"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = 4;
    vlp_run *run = NULL;
    vlp_mining *mining = NULL;
    must(vlp_train(NULL, folder, support_path(folder, "run"), &options));
    must(vlp_run_open(&run, support_path(folder, "run"), NULL));
    must(vlp_run_mine(&mining, run, NULL));
    assert_int_equal(mining->count, 0);
    vlp_mining_free(mining);
    vlp_run_free(run);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_best),
                                       cmocka_unit_test(finds_the_best_among_candidates),
                                       cmocka_unit_test(state_of_other_candidates),
                                       cmocka_unit_test(one_per_query),
                                       cmocka_unit_test(nothing_is_missing),
                                       cmocka_unit_test(interrupted_and_resumed),
                                       cmocka_unit_test(interrupted_within_a_relation),
                                       cmocka_unit_test(wrong_options),
                                       cmocka_unit_test(grown_graph),
                                       cmocka_unit_test(same_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
