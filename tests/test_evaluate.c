/* Ranks against a slow oracle: every score is made with plain loops, in double, from the tables as they
 * would be exported; every candidate is compared with the answer one by one. Scores that lie too near to
 * tell may fall either way, rows that are copies of each other have to tie exactly.
 *
 * Also: nothing of an answer reaches a score, and what goes wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "eval/evaluate.h"
#include "eval/same_rows.h"
#include "eval/scorer.h"
#include "failing_allocator.h"
#include "lab.h"
#include "oracle.h"
#include "random_data.h"
#include "world.h"

enum { SEED = 77 };

/* ---- The oracle's ranks ---- */

/* How candidates stand to the answer. */
typedef struct standing {
    int32_t above, copies, unclear, candidates;
} standing;

static standing oracle_standing(const world *w, const vlp_ranking_options *options, vlp_query query,
                                int32_t answer, const double *horizontal, const double *vertical,
                                vlp_mixture mixture) {
    standing s = {0, 0, 0, 1};
    double v = vertical ? mixture.weights[VLP_VERTICAL] : 0, h = mixture.weights[VLP_HORIZONTAL];
    bool flat = v == 0 && h == 0;
    for (int32_t e = 0; e < w->entities; e++) {
        if (e == answer || (options->only && !options->only[e]) ||
            known(w->dataset, options->filter, query, e))
            continue;
        s.candidates++;
        double gold = h * horizontal[answer] + (vertical ? v * vertical[answer] : 0);
        double less = h * horizontal[e] + (vertical ? v * vertical[e] : 0) - gold;
        if (flat || w->copy_of[e] == w->copy_of[answer])
            s.copies++;
        else if (fabs(less) < 1e-5 * (fabs(v) + fabs(h)) * (1 + fabs(gold)))
            s.unclear++;
        else
            s.above += less > 0;
    }
    return s;
}

typedef struct tally {
    int64_t compared, unclear, ties, filtered;
} tally;

static void check_rank(vlp_rank rank, standing s, int64_t query, vlp_mixture mixture) {
    int32_t above = rank.above - s.above, equal = rank.equal - s.copies;
    bool right = above >= 0 && equal >= 0 && above + equal <= s.unclear;
    if (!right || rank.candidates != s.candidates)
        print_error("query %lld, mixture (%g, %g): above %d equal %d of %d; the oracle has above %d, "
                    "copies %d, too near to tell %d, of %d\n",
                    (long long)query, (double)mixture.weights[VLP_VERTICAL],
                    (double)mixture.weights[VLP_HORIZONTAL], rank.above, rank.equal, rank.candidates,
                    s.above, s.copies, s.unclear, s.candidates);
    assert_true(right);
    assert_int_equal(rank.candidates, s.candidates);
}

static const vlp_mixture both[] = {{{0, 1}}, {{1, 0}}, {{0.05f, 1}}, {{1, 1}}, {{0, 0}}, {{40, 0.5f}}};
static const vlp_mixture horizontal_only[] = {{{1, 0}}, {{0.5f, 1}}};

static vlp_ranking_options ranking_options(const world *w, vlp_split split, unsigned filter) {
    vlp_ranking_options options = {.split = split,
                                   .filter = filter,
                                   .mixtures =
                                       vlp_model_has(w->model, VLP_VERTICAL) ? both : horizontal_only,
                                   .mixture_count = vlp_model_has(w->model, VLP_VERTICAL) ? 6 : 2,
                                   .references = 3,
                                   .threads = 1};
    return options;
}

static vlp_ranking *rank_all(const world *w, const vlp_ranking_options *options) {
    vlp_ranking *ranking = NULL;
    vlp_status status = vlp_ranking_compute(&ranking, w->model, w->dataset, options);
    if (status != VLP_OK) print_error("%s\n", vlp_error_message());
    assert_int_equal(status, VLP_OK);
    return ranking;
}

/* All ranks of a split, or every `stride`-th query's. */
static void check_ranking(const world *w, const vlp_ranking_options *options, int64_t stride,
                          tally *sum) {
    int64_t count;
    vlp_dataset_triples(w->dataset, options->split, &count);
    double *horizontal = calloc((size_t)w->entities, sizeof *horizontal);
    double *scores = calloc((size_t)w->entities, sizeof *scores);
    assert_true(horizontal && scores);
    double *vertical = vlp_model_has(w->model, VLP_VERTICAL) ? scores : NULL;
    vlp_ranking *ranking = rank_all(w, options);
    assert_int_equal(ranking->queries, 2 * count);
    assert_int_equal(ranking->mixtures, options->mixture_count);
    for (int64_t i = 0; i < 2 * count; i += stride) {
        int32_t answer;
        vlp_query query = query_of(w->dataset, options->split, i, &answer);
        oracle_scores(horizontal, vertical, w, query, options->references, options->references_per_head);
        for (int32_t m = 0; m < options->mixture_count; m++) {
            vlp_mixture mixture = options->mixtures[m];
            standing s = oracle_standing(w, options, query, answer, horizontal, vertical, mixture);
            check_rank(vlp_ranking_of(ranking, m)[i], s, i, mixture);
            sum->compared += s.candidates;
            sum->unclear += s.unclear;
            sum->ties += s.copies;
            sum->filtered += w->entities - s.candidates;
        }
    }
    vlp_ranking_free(ranking);
    free(horizontal);
    free(scores);
}

/* Rows that are copies are found, and no others. */
static void test_same_rows(void **state) {
    (void)state;
    int found = 0;
    for (int i = 0; i < 3 * KINDS; i++) {
        oracle_random random = {SEED + 9, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        world w = world_make(dataset, kinds[i % KINDS], false, 1, &random);
        int32_t *same = NULL;
        assert_int_equal(vlp_same_rows(&same, w.model), VLP_OK);
        for (int32_t e = 0; e < w.entities; e++) {
            assert_int_equal(same ? same[e] : e, w.copy_of[e]);
            found += w.copy_of[e] != e;
        }
        vlp_free(same);
        world_free(&w);
        vlp_dataset_free(dataset);
    }
    assert_true(found > 10);
}

/* Every model, with and without a head, on valid and on test, each with its filter and with others. */
static void test_ranks(void **state) {
    (void)state;
    tally sum = {0, 0, 0, 0};
    for (int i = 0; i < 8 * KINDS; i++) {
        oracle_random random = {SEED, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        world w = world_make(dataset, kinds[i % KINDS], i / KINDS % 4 != 3, 1 + i % 2, &random);
        for (int part = 0; part < 4; part++) {
            vlp_split split = part % 2 ? VLP_TEST : VLP_VALID;
            unsigned filter = part > 1            ? (unsigned)oracle_below(&random, 8)
                              : split == VLP_TEST ? ALL
                                                  : TRAIN_VALID;
            vlp_ranking_options options = ranking_options(&w, split, filter);
            options.references = oracle_below(&random, 9);
            options.references_per_head = oracle_below(&random, 3);
            options.threads = 1 + part % 2;
            check_ranking(&w, &options, 1, &sum);
        }
        world_free(&w);
        vlp_dataset_free(dataset);
    }
    assert_true(sum.compared > 100000 && sum.unclear < sum.compared / 100);
    assert_true(sum.ties > sum.compared / 50 && sum.filtered > sum.compared / 50);
}

/* Only some compete, the answer among them or not. */
static void test_only(void **state) {
    (void)state;
    tally sum = {0, 0, 0, 0};
    for (int i = 0; i < 2 * KINDS; i++) {
        oracle_random random = {SEED + 1, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        world w = world_make(dataset, kinds[i % KINDS], i % 2, 1, &random);
        uint8_t only[64] = {0};
        for (int32_t e = 0; e < w.entities; e++) only[e] = oracle_chance(&random, 2);
        vlp_ranking_options options = ranking_options(&w, VLP_TEST, i % 3 ? ALL : 0);
        options.only = only;
        check_ranking(&w, &options, 1, &sum);
        /* Few: only these are scored. */
        for (int32_t e = 0; e < w.entities; e++) only[e] = e % 5 == i % 5 && oracle_chance(&random, 2);
        check_ranking(&w, &options, 1, &sum);
        memset(only, 1, sizeof only);
        check_ranking(&w, &options, 1, &sum);
        world_free(&w);
        vlp_dataset_free(dataset);
    }
    assert_true(sum.ties > 0 && sum.filtered > 0);
}

/* Some triples of a split have the ranks that they have among all, in both directions. */
static void test_most_triples(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        oracle_random random = {SEED + 2, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        world w = world_make(dataset, kinds[i], i % 2, 1, &random);
        vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
        vlp_ranking *all = rank_all(&w, &options);
        int64_t triples = all->queries / 2;
        for (int64_t most = 1; most <= triples + 1; most += 1 + triples / 5) {
            options.most_triples = most;
            vlp_ranking *some = rank_all(&w, &options);
            int64_t count = most < triples ? most : triples, before = -1;
            assert_int_equal(some->queries, 2 * count);
            for (int64_t j = 0; j < count; j++) {
                int64_t place = j * triples / count;
                assert_true(place > before);
                for (int side = 0; side < 2; side++)
                    assert_memory_equal(&vlp_ranking_of(some, 1)[j + side * count],
                                        &vlp_ranking_of(all, 1)[place + side * triples],
                                        sizeof(vlp_rank));
                before = place;
            }
            vlp_ranking_free(some);
        }
        vlp_ranking_free(all);
        world_free(&w);
        vlp_dataset_free(dataset);
    }
}

/* The ranks again, with the scores of every batch kept on the way. */
static void check_collected(const world *w, vlp_ranking_options options, const vlp_ranking *expected) {
    options.collect = true;
    vlp_ranking *ranking = rank_all(w, &options);
    assert_memory_equal(ranking->ranks, expected->ranks,
                        (size_t)expected->queries * 6 * sizeof(vlp_rank));
    int64_t pair = 0;
    for (int64_t i = 0; i < ranking->queries; i++) {
        int64_t end = pair + ranking->ranks[i].candidates, answer = pair;
        while (!ranking->truths[answer]) answer++;
        assert_true(answer < end);
        int32_t above = 0;
        for (; pair < end; pair++) above += ranking->scores[pair] > ranking->scores[answer];
        assert_int_equal(above, ranking->ranks[i].above);
    }
    assert_int_equal(pair, ranking->pairs);
    vlp_ranking_free(ranking);
}

/* More queries than a batch holds; the same ranks for any number of threads. */
static void test_batches_and_threads(void **state) {
    (void)state;
    tally sum = {0, 0, 0, 0};
    for (int i = 0; i < KINDS; i++) {
        oracle_random random = {SEED + 2, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset((sizes){90, 3, 5, {200, 5, 700}}, &random);
        vlp_ranking *rankings[2];
        for (int32_t t = 0; t < 2; t++) {
            oracle_random same = {SEED + 3, (uint64_t)i, 0};
            world w = world_make(dataset, kinds[i], true, t + 1, &same);
            vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
            options.threads = t + 1;
            rankings[t] = rank_all(&w, &options);
            if (t == 1) check_ranking(&w, &options, 53, &sum);
            if (t == 1) check_collected(&w, options, rankings[1]);
            world_free(&w);
        }
        assert_true(rankings[0]->queries > 1024);
        assert_memory_equal(rankings[0]->ranks, rankings[1]->ranks,
                            (size_t)rankings[0]->queries * 6 * sizeof(vlp_rank));
        for (int t = 0; t < 2; t++) vlp_ranking_free(rankings[t]);
        vlp_dataset_free(dataset);
    }
}

/* ---- Nothing of an answer reaches a score ---- */

/* The data set again, with other answers in test: other tails, or other heads. */
static vlp_dataset *replace_answers(const vlp_dataset *dataset, bool tails, oracle_random *random) {
    const char *folder = support_folder();
    int32_t entities = vlp_dataset_entity_count(dataset);
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t count;
        const vlp_triple *from = vlp_dataset_triples(dataset, (vlp_split)split, &count);
        vlp_triple *triples = calloc((size_t)count + 1, sizeof *triples);
        assert_non_null(triples);
        for (int64_t i = 0; i < count; i++) {
            bool repeated = split == VLP_TEST;
            triples[i] = from[i];
            while (repeated) {
                *(tails ? &triples[i].tail : &triples[i].head) = oracle_below(random, entities);
                repeated = false;
                for (int64_t j = 0; j < i; j++)
                    repeated = repeated || memcmp(&triples[i], &triples[j], sizeof *triples) == 0;
            }
        }
        /* Ids count from 0 in the order of appearance; so do the names that write_triples gives. */
        write_triples(folder, split_files[split], triples, count);
        free(triples);
    }
    vlp_dataset *made = open_folder(folder);
    support_remove(folder);
    return made;
}

typedef struct score_copy {
    float *horizontal, *vertical; /* (queries, entities) */
} score_copy;

static score_copy score(const world *w, const vlp_dataset *dataset, const vlp_query *queries,
                        int64_t count) {
    size_t bytes = (size_t)count * (size_t)w->entities * sizeof(float);
    score_copy copy = {malloc(bytes), malloc(bytes)};
    assert_true(copy.horizontal && copy.vertical);
    const float *scores[VLP_MAX_COMPONENTS];
    vlp_scorer *scorer = NULL;
    vlp_scorer_options options = {.model = w->model,
                                  .graph = dataset->graph,
                                  .references = 4,
                                  .batch = (int32_t)count,
                                  .columns = w->entities,
                                  .threads = 1};
    assert_int_equal(vlp_scorer_open(&scorer, &options), VLP_OK);
    assert_int_equal(vlp_scorer_prepare(scorer, queries, count), VLP_OK);
    assert_int_equal(vlp_scorer_all(scores, scorer), VLP_OK);
    lab_backend()->memory->download(w->compute, copy.horizontal, scores[VLP_HORIZONTAL], bytes);
    lab_backend()->memory->download(w->compute, copy.vertical, scores[VLP_VERTICAL], bytes);
    vlp_scorer_free(scorer);
    return copy;
}

/* Ranks of replaced answers are those that the old scores give them. */
static void check_ranks_of_scores(const world *w, const vlp_dataset *other, const score_copy *scores,
                                  bool tails) {
    static const vlp_mixture alone[] = {{{0, 1}}, {{1, 0}}};
    vlp_ranking_options options = {
        .split = VLP_TEST, .mixtures = alone, .mixture_count = 2, .references = 4, .threads = 1};
    vlp_ranking *ranking = NULL;
    assert_int_equal(vlp_ranking_compute(&ranking, w->model, other, &options), VLP_OK);
    int32_t *same = NULL; /* a product may give the same rows other last digits: ranks know of that */
    if (!lab_backend()->position_invariant_scores)
        assert_int_equal(vlp_same_rows(&same, w->model), VLP_OK);
    int64_t half = ranking->queries / 2;
    for (int64_t i = tails ? 0 : half; i < (tails ? half : 2 * half); i++) {
        int32_t answer;
        query_of(other, VLP_TEST, i, &answer);
        for (int m = 0; m < 2; m++) {
            const float *row = (m ? scores->horizontal : scores->vertical) + i * w->entities;
            vlp_rank expected = {0, -1, w->entities}, found = vlp_ranking_of(ranking, m)[i];
            float gold = row[same ? same[answer] : answer];
            for (int32_t e = 0; e < w->entities; e++) {
                float one = row[same ? same[e] : e];
                expected.above += one > gold;
                expected.equal += one == gold;
            }
            assert_memory_equal(&expected, &found, sizeof found);
        }
    }
    vlp_free(same);
    vlp_ranking_free(ranking);
}

static void test_no_leak(void **state) {
    (void)state;
    for (int i = 0; i < 2 * KINDS; i++) {
        oracle_random random = {SEED + 4, (uint64_t)i, 0};
        const int64_t last = 40;
        /* Every name is in train or valid, whatever test has. */
        vlp_dataset *first = random_dataset((sizes){25, 2, 0, {120, 60, last}}, &random);
        vlp_dataset *dataset = replace_answers(first, true, &random);
        vlp_dataset_free(first);
        world w = world_make(dataset, kinds[i % KINDS], true, 1, &random);
        int64_t triples;
        vlp_dataset_triples(dataset, VLP_TEST, &triples);
        vlp_query queries[80];
        int32_t answer;
        assert_true(triples > last / 2 && triples <= last);
        for (int64_t j = 0; j < 2 * triples; j++) queries[j] = query_of(dataset, VLP_TEST, j, &answer);
        score_copy scores = score(&w, dataset, queries, 2 * triples);
        for (int tails = 0; tails < 2; tails++) {
            vlp_dataset *other = replace_answers(dataset, tails, &random);
            assert_int_equal(vlp_dataset_entity_count(other), w.entities);
            for (int32_t e = 0; e < w.entities; e++)
                assert_string_equal(vlp_dataset_entity_name(other, e),
                                    vlp_dataset_entity_name(dataset, e));
            size_t bytes = (size_t)(2 * triples) * (size_t)w.entities * sizeof(float);
            score_copy again = score(&w, other, queries, 2 * triples);
            assert_memory_equal(scores.horizontal, again.horizontal, bytes);
            assert_memory_equal(scores.vertical, again.vertical, bytes);
            check_ranks_of_scores(&w, other, &scores, tails);
            free(again.horizontal);
            free(again.vertical);
            vlp_dataset_free(other);
        }
        free(scores.horizontal);
        free(scores.vertical);
        world_free(&w);
        vlp_dataset_free(dataset);
    }
}

/* ---- What goes wrong, and what is empty ---- */

/* One number that is none, in any table, ends the evaluation. */
static void test_nan(void **state) {
    (void)state;
    for (int i = 0; i < KINDS * TABLES; i++) {
        oracle_random random = {SEED + 7, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset((sizes){12, 2, 2, {40, 4, 9}}, &random);
        world w = world_make(dataset, kinds[i / TABLES], true, 1 + i % 2, &random);
        vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
        int id = i % TABLES;
        int32_t answer, row = id > VLP_TABLE_RELATIONS ? 0
                              : id == VLP_TABLE_ENTITIES
                                  ? w.entities - 1
                                  : query_of(dataset, VLP_TEST, 3, &answer).relation;
        w.tables[id][row * w.model->tables[id].width + 1] = NAN;
        world_upload(&w);
        vlp_ranking *ranking = (vlp_ranking *)&w;
        assert_int_equal(vlp_ranking_compute(&ranking, w.model, dataset, &options), VLP_ERROR_DIVERGED);
        assert_null(ranking);
        assert_non_null(strstr(vlp_error_message(), "not a number"));
        assert_non_null(strstr(vlp_error_message(), "test"));
        world_free(&w);
        vlp_dataset_free(dataset);
    }
}

/* The message names the batch, which is not the one that was under way when it was found. */
static void test_nan_in_a_later_batch(void **state) {
    (void)state;
    oracle_random random = {SEED + 10, 0, 0};
    vlp_dataset *dataset = random_dataset((sizes){90, 3, 5, {200, 5, 700}}, &random);
    world w = world_make(dataset, kinds[4], true, 1, &random);
    vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
    int64_t triples;
    vlp_dataset_triples(dataset, VLP_TEST, &triples);
    assert_in_range(triples, 512, 1023); /* inverse relations begin in the second batch */
    int32_t width = w.model->form.relation_width;
    for (int32_t r = w.relations; r < 2 * w.relations; r++)
        w.tables[VLP_TABLE_RELATIONS][r * width] = NAN;
    world_upload(&w);
    vlp_ranking *ranking = NULL;
    assert_int_equal(vlp_ranking_compute(&ranking, w.model, dataset, &options), VLP_ERROR_DIVERGED);
    assert_non_null(strstr(vlp_error_message(), "(query 512 of test)"));
    world_free(&w);
    vlp_dataset_free(dataset);
}

static bool stop_at_once(void *user) {
    ++*(int *)user;
    return true;
}

static void note_progress(void *user, const char *what, int64_t done, int64_t total) {
    assert_string_equal(what, "queries");
    *(int *)user = (int)(done * 1000 / total);
}

static void test_stop_and_empty(void **state) {
    (void)state;
    oracle_random random = {SEED + 8, 0, 0};
    vlp_dataset *dataset = random_dataset((sizes){12, 2, 2, {40, 0, 9}}, &random);
    world w = world_make(dataset, kinds[0], true, 1, &random);
    int calls = 0, reached = 0;
    vlp_observer stopping = {.stop = stop_at_once, .user = &calls};
    vlp_observer watching = {.progress = note_progress, .user = &reached};
    vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
    vlp_ranking *ranking = NULL;
    options.observer = &stopping;
    assert_int_equal(vlp_ranking_compute(&ranking, w.model, dataset, &options), VLP_ERROR_STOPPED);
    assert_null(ranking);
    assert_true(calls > 0);
    options.observer = &watching;
    ranking = rank_all(&w, &options);
    assert_int_equal(reached, 1000);
    vlp_ranking_free(ranking);
    options.split = VLP_VALID;
    ranking = rank_all(&w, &options);
    assert_int_equal(ranking->queries, 0);
    vlp_ranking_free(ranking);
    vlp_query_kind none;
    assert_int_equal(vlp_query_kinds(&none, dataset, VLP_VALID, 1), VLP_OK);
    vlp_ranking_free(NULL);
    vlp_scorer_free(NULL);
    world_free(&w);
    vlp_dataset_free(dataset);
}

static vlp_status rank_from_nothing(const vlp_dataset *dataset, const vlp_ranking_options *options) {
    vlp_model_options model_options = {VLP_MODEL_TRANSR, 5, 3, VLP_NORM_L1, 4.0};
    vlp_compute *compute = NULL;
    vlp_model *model = NULL;
    vlp_ranking *ranking = NULL;
    vlp_status status = lab_backend()->open(&compute, 1);
    if (status != VLP_OK) return status;
    status = vlp_model_new(&model, lab_backend(), compute,
                           &(vlp_model_shape){model_options,
                                              vlp_dataset_entity_count(dataset),
                                              2 * vlp_dataset_relation_count(dataset),
                                              components_of(true),
                                              {0}},
                           false);
    if (status == VLP_OK) status = vlp_model_init(model, 1, 0);
    if (status == VLP_OK) status = vlp_ranking_compute(&ranking, model, dataset, options);
    vlp_ranking_free(ranking);
    vlp_model_free(model);
    lab_backend()->close(compute);
    return status;
}

/* Every allocation fails once, and is called by its name. */
static void test_out_of_memory(void **state) {
    (void)state;
    oracle_random random = {SEED + 9, 0, 0};
    vlp_dataset *dataset = random_dataset((sizes){12, 2, 2, {40, 3, 9}}, &random);
    vlp_ranking_options options = {
        .split = VLP_TEST, .filter = ALL, .mixtures = both, .mixture_count = 6, .references = 3};
    options.threads = 1;
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_status status = rank_from_nothing(dataset, &options);
        failing_allocator_remove(&memory);
        if (memory.failed && status != VLP_ERROR_MEMORY)
            print_error("call %lld: %s\n", (long long)call, vlp_error_message());
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_true(call > 40);
    vlp_dataset_free(dataset);
}

static void test_grid(void **state) {
    (void)state;
    int32_t count = 0;
    vlp_mixture *grid = NULL;
    enum { H = VLP_HORIZONTAL, V = VLP_VERTICAL };
    assert_int_equal(vlp_mixture_grid(&grid, &count, 1u << H | 1u << V), VLP_OK);
    assert_int_equal(count, 27);
    assert_true(grid[0].weights[V] == 1 && grid[0].weights[H] == 0);
    assert_true(grid[count - 1].weights[V] == 0 && grid[count - 1].weights[H] == 1);
    assert_true(fabsf(grid[1].weights[H] - 1e-4f) < 1e-9f && grid[count - 2].weights[H] == 100);
    for (int32_t i = 2; i < count - 1; i++) {
        assert_true(grid[i].weights[V] == 1);
        assert_true(fabs(grid[i].weights[H] / grid[i - 1].weights[H] - pow(10, 0.25)) < 1e-3);
    }
    vlp_free(grid);
    /* One component has nothing to be weighed against. */
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        assert_int_equal(vlp_mixture_grid(&grid, &count, 1u << c), VLP_OK);
        assert_int_equal(count, 1);
        for (int other = 0; other < VLP_MAX_COMPONENTS; other++)
            assert_true(grid[0].weights[other] == (float)(other == c));
        vlp_free(grid);
    }
}

/* A third component is another axis: every mixture of the first two without it and with each of its
 * weights, and it alone. */
static void test_third_axis(void **state) {
    (void)state;
    static const float first[] = {0.5f, 2}, second[] = {0.1f, 1, 10};
    const vlp_weight_axis axes[] = {
        {(vlp_component)1, NULL, 0}, {(vlp_component)0, first, 2}, {(vlp_component)2, second, 3}};
    enum { COUNT = (1 + 2 + 1) * (1 + 3) + 1 };
    vlp_mixture mixtures[COUNT];
    assert_int_equal(vlp_mixtures_of(NULL, axes, 3), COUNT);
    assert_int_equal(vlp_mixtures_of(mixtures, axes, 3), COUNT);
    const float bases[4][2] = {{0, 1}, {0.5f, 1}, {2, 1}, {1, 0}};
    const float thirds[4] = {0, 0.1f, 1, 10};
    for (int i = 0; i < 16; i++) {
        assert_true(mixtures[i].weights[0] == bases[i / 4][0] &&
                    mixtures[i].weights[1] == bases[i / 4][1]);
        assert_true(mixtures[i].weights[2] == thirds[i % 4] && mixtures[i].weights[3] == 0);
    }
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++) {
        assert_true(mixtures[COUNT - 1].weights[c] == (float)(c == 2));
        if (c > 2) continue;
        /* Each component alone is among them. */
        int alone = 0;
        for (int i = 0; i < COUNT; i++) {
            vlp_mixture expected = vlp_mixture_alone((vlp_component)c);
            alone += memcmp(&mixtures[i], &expected, sizeof expected) == 0;
        }
        assert_int_equal(alone, 1);
    }
}

/* One side is its half of both; the candidates' scores that are kept tell the same ranks. */
static void test_sides_and_scores(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        oracle_random random = {SEED + 9, (uint64_t)i, 0};
        vlp_dataset *dataset = random_dataset(random_sizes(&random), &random);
        world w = world_make(dataset, kinds[i % KINDS], i % 2, 1, &random);
        uint8_t *marks = calloc((size_t)w.entities, 1);
        assert_non_null(marks);
        for (int32_t e = 0; e < w.entities; e++) marks[e] = oracle_chance(&random, 2);
        vlp_ranking_options options = ranking_options(&w, VLP_TEST, ALL);
        options.only = i % 3 ? marks : NULL;
        options.collect = true;
        vlp_ranking *both_sides = rank_all(&w, &options);
        int64_t half = both_sides->queries / 2, pair = 0;
        for (int side = 0; side < 2; side++) {
            options.sides = side ? VLP_HEADS : VLP_TAILS;
            vlp_ranking *one = rank_all(&w, &options);
            assert_int_equal(one->queries, half);
            for (int32_t m = 0; m < options.mixture_count; m++)
                assert_memory_equal(vlp_ranking_of(one, m), vlp_ranking_of(both_sides, m) + side * half,
                                    (size_t)half * sizeof(vlp_rank));
            vlp_ranking_free(one);
        }
        for (int64_t q = 0; q < both_sides->queries; q++) {
            vlp_rank rank = both_sides->ranks[q];
            int64_t end = pair + rank.candidates, answer = -1;
            assert_true(end <= both_sides->pairs);
            for (int64_t j = pair; j < end; j++) {
                if (!both_sides->truths[j]) continue;
                assert_int_equal(answer, -1);
                answer = j;
            }
            assert_true(answer >= 0);
            int32_t above = 0;
            for (int64_t j = pair; j < end; j++)
                above += both_sides->scores[j] > both_sides->scores[answer];
            /* The first mixture is f_c alone, or f_g: nothing is added that could be rounded. */
            assert_int_equal(above, rank.above);
            pair = end;
        }
        assert_int_equal(pair, both_sides->pairs);
        vlp_ranking_free(both_sides);
        free(marks);
        world_free(&w);
        vlp_dataset_free(dataset);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_rows),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_only),
        cmocka_unit_test(test_most_triples),
        cmocka_unit_test(test_batches_and_threads),
        cmocka_unit_test(test_no_leak),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_nan_in_a_later_batch),
        cmocka_unit_test(test_stop_and_empty),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_third_axis),
        cmocka_unit_test(test_sides_and_scores),
    };
    return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
