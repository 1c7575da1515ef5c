/* The path model: its keys, its random choices, its scores and what explanations are made of, against
 * the oracle in double precision on random graphs with loops, parallel edges, hubs, isolated entities
 * and entities without a path; in every version of the CPU's loops that runs here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/paths_kernels.h"
#include "failing_allocator.h"
#include "path_lab.h"

enum { SEED = 90, ROUNDS = 60 };

typedef void (*check)(lab *bench);

/* With every version of the loops of the CPU; once on another backend. */
static void for_versions(check one, uint64_t stream) {
    const vlp_backend *backend = lab_backend();
    if (!backend->paths) skip();
    for (const path_kernels *const *version = path_kernel_versions; *version; version++) {
        if (!(*version)->runs()) continue;
        lab bench;
        lab_open_on(&bench, backend, 2, SEED);
        bench.random.step = stream;
        bool cpu = backend == &vlp_cpu_backend;
        if (cpu) assert_int_equal(cpu_paths_use(bench.compute, *version), VLP_OK);
        one(&bench);
        lab_close(&bench);
        if (!cpu) break;
    }
}

static void random_case(path_case *one, lab *bench, bool reached_only) {
    oracle_graph graph;
    oracle_graph_small(&graph, &bench->random);
    path_case_open(one, bench, &graph, path_case_form(bench, &graph, reached_only));
}

/* ---- Keys ----------------------------------------------------------------------------------------- */

static bool is_known(const oracle_graph *graph, int32_t head, int32_t relation, int32_t answer) {
    int32_t half = graph->relations;
    vlp_triple wanted = {head, relation, answer};
    if (relation >= half) wanted = (vlp_triple){answer, relation - half, head};
    for (int64_t i = 0; i < graph->count; i++)
        if (memcmp(&graph->triples[i], &wanted, sizeof wanted) == 0) return true;
    return false;
}

static void expect_keys(const vlp_path_keys *keys, const vlp_path_graph *graph,
                        const oracle_graph *source) {
    int64_t answers = 0, most = 0;
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t count = keys->offset[i + 1] - keys->offset[i];
        assert_true(count > 0);
        for (int64_t j = keys->offset[i]; j < keys->offset[i + 1]; j++)
            assert_true(is_known(source, keys->heads[i], keys->relations[i], graph->neighbor[j]));
        if (count > most) most = count;
        answers += count;
    }
    /* Distinct keys, and as many answers as there are: then none is missing. */
    for (int64_t i = 1; i < keys->count; i++)
        assert_true(
            keys->heads[i - 1] < keys->heads[i] ||
            (keys->heads[i - 1] == keys->heads[i] && keys->relations[i - 1] < keys->relations[i]));
    assert_int_equal(answers, 2 * source->count);
    assert_int_equal(most, keys->most_answers);
}

static void test_keys(void **state) {
    (void)state;
    lab bench;
    lab_open_on(&bench, &vlp_cpu_backend, 1, SEED);
    for (int round = 0; round < 400; round++) {
        path_case one;
        random_case(&one, &bench, true);
        expect_keys(&one.keys_host, &one.host, &one.graph_source);
        double sum = 0;
        for (int32_t v = 0; v < one.world.entities; v++)
            sum += log((double)(one.host.offset[v + 1] - one.host.offset[v] + 1));
        if (one.world.triples > 0)
            assert_true(fabs((double)one.host.mean_log_degree - sum / one.world.entities) < 1e-6);
        else
            assert_true(one.host.mean_log_degree == 1);
        path_case_close(&one);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* ---- Random choices ------------------------------------------------------------------------------ */

static void test_choices(void **state) {
    (void)state;
    enum { ITEMS = 1 << 16 };
    static const double shares[] = {0, 0.125, 0.3, 0.5, 0.9, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        int64_t count = 0, both = 0;
        uint32_t share = vlp_path_share((float)shares[i]);
        for (uint32_t item = 0; item < ITEMS; item++) {
            bool one = vlp_path_chosen(SEED, 1, item, share);
            count += one;
            both += one && vlp_path_chosen(SEED, 1, item + 1, share);
        }
        double p = shares[i], spread = 5 * sqrt(p * (1 - p) / ITEMS) + 1e-4;
        assert_true(fabs((double)count / ITEMS - p) <= spread);
        assert_true(fabs((double)both / ITEMS - p * p) <= 2 * spread);
    }
    assert_true(vlp_path_key_seed(1, 2, 3) != vlp_path_key_seed(1, 2, 4));
    assert_true(vlp_path_key_seed(1, 2, 3) != vlp_path_key_seed(1, 3, 3));
}

/* Every key as often in a pass as the root of its answers is whole, in another order in the next; of
 * every key at least one answer is hidden, and about the share that is asked for. */
static void check_choose(lab *bench) {
    path_case one;
    oracle_graph graph;
    oracle_graph_make(&graph, ORACLE_TWO_HUBS, 80, 1, -1, &bench->random);
    path_case_open(&one, bench, &graph, path_case_form(bench, &graph, true));
    const vlp_path_keys *keys = &one.keys_host;
    int32_t count = 7;
    int64_t steps = keys->turn_count, capacity = count * keys->most_answers, hidden = 0, more = 0;
    vlp_path_keys on = *keys;
    on.heads = lab_put_ids(bench, keys->heads, keys->count);
    on.relations = lab_put_ids(bench, keys->relations, keys->count);
    on.offset = lab_put_bytes(bench, keys->offset, ((size_t)keys->count + 1) * sizeof(int64_t));
    on.turns = lab_put_ids(bench, keys->turns, keys->turn_count);
    vlp_path_batch batch = {.count = count,
                            .heads = lab_put_ids(bench, lab_ids(bench, count, 0, 0), count),
                            .relations = lab_put_ids(bench, lab_ids(bench, count, 0, 0), count),
                            .answers = lab_put_bytes(bench, lab_zeros(bench, count), 8 * (size_t)count),
                            .offset = lab_put_bytes(bench, lab_zeros(bench, 8), 64),
                            .hidden = lab_put_bytes(bench, lab_zeros(bench, capacity), (size_t)capacity),
                            .capacity = capacity};
    int32_t *times = calloc((size_t)keys->count, sizeof *times);
    for (int64_t step = 0; step < steps; step++) { /* `count` passes */
        int32_t heads[7], relations[7];
        int64_t answers[7], offset[8];
        uint8_t *flags = malloc((size_t)capacity);
        path_case_begin(bench, step);
        bench->backend->paths->choose(bench->compute, &batch, &on,
                                      &(vlp_path_choice){.seed = SEED, .hidden = 0.25f});
        lab_get_bytes(bench, heads, batch.heads, sizeof heads);
        lab_get_bytes(bench, relations, batch.relations, sizeof relations);
        lab_get_bytes(bench, answers, batch.answers, sizeof answers);
        lab_get_bytes(bench, offset, batch.offset, sizeof offset);
        lab_get_bytes(bench, flags, batch.hidden, (size_t)offset[count]);
        for (int32_t i = 0; i < count; i++) {
            int64_t key = 0, own = 0;
            while (keys->offset[key] != answers[i]) key++;
            assert_int_equal(heads[i], keys->heads[key]);
            assert_int_equal(relations[i], keys->relations[key]);
            assert_int_equal(offset[i + 1] - offset[i], keys->offset[key + 1] - keys->offset[key]);
            times[key]++;
            for (int64_t j = offset[i]; j < offset[i + 1]; j++) own += flags[j];
            assert_true(own > 0);
            bool many = offset[i + 1] - offset[i] > 20; /* where the least of one hardly matters */
            hidden += many ? own : 0;
            more += many ? offset[i + 1] - offset[i] : 0;
        }
        free(flags);
    }
    int64_t often = 0;
    for (int64_t key = 0; key < keys->count; key++) {
        int64_t answers = keys->offset[key + 1] - keys->offset[key], turns = times[key] / count;
        assert_int_equal(times[key] % count, 0);
        assert_true(turns * turns <= answers && (turns + 1) * (turns + 1) > answers);
        often += turns > 1;
    }
    assert_true(often > 0);
    assert_true(more > 500);
    assert_true(fabs((double)hidden / (double)more - 0.25) < 0.06);
    free(times);
    path_case_close(&one);
}

static void test_choose(void **state) {
    (void)state;
    for_versions(check_choose, 2);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

static void expect_scores(path_case *one, lab *bench, int32_t head, int32_t relation,
                          const uint8_t *removed) {
    int32_t entities = one->world.entities;
    int32_t *list = lab_ids(bench, one->world.triples, 0, 0);
    int64_t count = 0;
    for (int64_t i = 0; removed && i < one->world.triples; i++)
        if (removed[i]) list[count++] = (int32_t)i;
    double *expected = lab_zeros(bench, entities);
    path_oracle_scores(expected, &one->world, head, relation, removed, NULL);
    double *got = path_case_scores(one, bench, head, relation, removed ? list : NULL, count);
    lab_expect("scores", expected, got, entities, 2e-4, 0.2);
}

static uint8_t *random_removed(lab *bench, int64_t triples) {
    uint8_t *removed = (uint8_t *)lab_zeros(bench, triples);
    for (int64_t i = 0; i < triples; i++)
        removed[i] = lab_between(bench, 0, 3) == 0 ? PATH_BOTH_WAYS : 0;
    return removed;
}

static void check_scores(lab *bench) {
    for (int round = 0; round < ROUNDS; round++) {
        path_case one;
        random_case(&one, bench, round % 2 == 0);
        int32_t head = lab_between(bench, 0, one.world.entities - 1);
        int32_t relation = lab_between(bench, 0, one.world.form.relations - 1);
        expect_scores(&one, bench, head, relation, NULL);
        expect_scores(&one, bench, head, relation, random_removed(bench, one.world.triples));
        path_case_close(&one);
        lab_clear(bench);
    }
}

static void test_scores(void **state) {
    (void)state;
    for_versions(check_scores, 3);
}

/* Several blocks of a class, degrees that are frequent and that are not, hubs. */
static void check_middle(lab *bench) {
    static const enum oracle_shape shapes[] = {ORACLE_RANDOM, ORACLE_STAR, ORACLE_CLIQUE, ORACLE_TREE,
                                               ORACLE_TWO_HUBS};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int reached_only = 0; reached_only < 2; reached_only++) {
            path_case one;
            oracle_graph graph;
            oracle_graph_middle(&graph, shapes[i], &bench->random);
            vlp_path_form form = path_case_form(bench, &graph, reached_only);
            form.layers = 3;
            path_case_open(&one, bench, &graph, form);
            /* Few classes, so that blocks of mixed degrees are large. */
            if (lab_between(bench, 0, 1)) one.graph.frequent_classes = 2;
            expect_scores(&one, bench, graph.triples[0].head, 0, random_removed(bench, graph.count));
            path_case_close(&one);
            lab_clear(bench);
        }
}

static void test_middle(void **state) {
    (void)state;
    for_versions(check_middle, 4);
}

/* Many queries at once, more relations than are made at once: the same bits as one by one. */
static void check_many(lab *bench) {
    path_case one;
    oracle_graph graph;
    oracle_graph_make(&graph, ORACLE_RANDOM, 60, 25, 150, &bench->random);
    path_case_open(&one, bench, &graph, path_case_form(bench, &graph, true));
    int32_t count = 120, entities = one.world.entities;
    int32_t *heads = lab_ids(bench, count, 0, entities - 1);
    int32_t *relations = lab_ids(bench, count, 0, one.world.form.relations - 1);
    float *scores = lab_put(bench, lab_zeros(bench, count * entities), (int64_t)count * entities);
    assert_int_equal(bench->backend->paths->scores(
                         bench->compute, scores, &one.model,
                         &(vlp_path_queries){.count = count,
                                             .heads = lab_put_ids(bench, heads, count),
                                             .relations = lab_put_ids(bench, relations, count)}),
                     VLP_OK);
    for (int32_t i = 0; i < count; i++) {
        double *alone = path_case_scores(&one, bench, heads[i], relations[i], NULL, 0);
        lab_expect_same_bits(bench, "scores of many", alone, scores + (int64_t)i * entities, entities);
    }
    path_case_close(&one);
}

static void test_many(void **state) {
    (void)state;
    for_versions(check_many, 5);
}

/* A graph without triples gives what taking them out gives; constants of the graph stay the same. */
static void check_removed(lab *bench) {
    for (int round = 0; round < ROUNDS; round++) {
        path_case one, other;
        random_case(&one, bench, round % 2 == 0);
        uint8_t *removed = random_removed(bench, one.world.triples);
        oracle_graph left = {.entities = one.world.entities, .relations = one.graph_source.relations};
        int32_t *list = lab_ids(bench, one.world.triples, 0, 0);
        int64_t count = 0;
        for (int64_t i = 0; i < one.world.triples; i++) {
            vlp_triple triple = one.world.items[i];
            if (removed[i])
                list[count++] = (int32_t)i;
            else
                oracle_graph_add(&left, triple.head, triple.relation, triple.tail);
        }
        path_case_open(&other, bench, &left, one.world.form);
        other.model.values = &one.values;
        other.graph.mean_log_degree = one.graph.mean_log_degree;
        int32_t head = lab_between(bench, 0, one.world.entities - 1);
        double *expected = path_case_scores(&other, bench, head, 0, NULL, 0);
        double *got = path_case_scores(&one, bench, head, 0, list, count);
        lab_expect("without triples", expected, got, one.world.entities, 1e-4, 0.1);
        path_case_close(&one);
        path_case_close(&other);
        lab_clear(bench);
    }
}

static void test_removed(void **state) {
    (void)state;
    for_versions(check_removed, 6);
}

static void check_limit(lab *bench) {
    int64_t fewer = 0;
    for (int round = 0; round < ROUNDS; round++) {
        path_case one;
        random_case(&one, bench, true);
        one.world.form.edge_limit = lab_between(bench, 1, 30);
        int32_t head = lab_between(bench, 0, one.world.entities - 1);
        int32_t *hops = lab_ids(bench, one.world.entities, 0, 0);
        int32_t *reach = lab_ids(bench, one.world.entities, 0, 0);
        path_oracle_hops(hops, &one.world, head, NULL);
        path_oracle_reach(reach, &one.world, head, NULL);
        for (int32_t v = 0; v < one.world.entities; v++)
            fewer += hops[v] >= 0 && hops[v] <= one.world.form.layers && reach[v] < 0;
        expect_scores(&one, bench, head, 0, NULL);
        path_case_close(&one);
        lab_clear(bench);
    }
    assert_true(fewer > 100);
}

static void test_limit(void **state) {
    (void)state;
    for_versions(check_limit, 7);
}

/* Entities that the graph does not tell apart get the same bits: leaves of a star, whatever block their
 * rows are computed in. */
static void check_ties(lab *bench) {
    enum { LEAVES = 130 };
    for (int reached_only = 0; reached_only < 2; reached_only++) {
        oracle_graph graph = {.entities = LEAVES + 2, .relations = 1};
        for (int32_t leaf = 2; leaf < graph.entities; leaf++) oracle_graph_add(&graph, 0, 0, leaf);
        oracle_graph_add(&graph, 1, 0, 0);
        path_case one;
        path_case_open(&one, bench, &graph, path_case_form(bench, &graph, reached_only));
        double *scores = path_case_scores(&one, bench, 1, 0, NULL, 0);
        for (int32_t leaf = 3; leaf < graph.entities; leaf++) assert_true(scores[leaf] == scores[2]);
        path_case_close(&one);
        lab_clear(bench);
    }
}

static void test_ties(void **state) {
    (void)state;
    for_versions(check_ties, 8);
}

/* ---- Explanations -------------------------------------------------------------------------------- */

typedef struct factor_context {
    const path_case *one;
    int32_t head, relation, answer;
    const uint8_t *removed;
    double *factors, *scores;
} factor_context;

static double score_of_factors(const void *context) {
    const factor_context *at = context;
    path_oracle_scores(at->scores, &at->one->world, at->head, at->relation, at->removed, at->factors);
    return at->scores[at->answer];
}

/* Whether the slope is the same on both sides: it is not where messages tie for an extreme. */
static bool expect_slope(double *factor, const factor_context *at, double score, double got) {
    const double step = 1e-6;
    *factor = 1 + step;
    double right = (score_of_factors(at) - score) / step;
    *factor = 1 - step;
    double left = (score - score_of_factors(at)) / step;
    *factor = 1;
    if (fabs(left - right) > 1e-3 * (fabs(left) + fabs(right)) + 1e-5) return false;
    if (fabs(got - left) > 2e-3 * (fabs(left) + 0.1))
        fail_msg("the gradient of a message is %g, expected %g", got, left);
    return true;
}

static void check_messages(lab *bench) {
    int64_t smooth = 0, all = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        path_case one;
        random_case(&one, bench, round % 2 == 0);
        int64_t triples = one.world.triples, edges = 2 * triples, size = one.world.form.layers * edges;
        uint8_t *removed = random_removed(bench, triples);
        factor_context at = {.one = &one,
                             .head = lab_between(bench, 0, one.world.entities - 1),
                             .relation = lab_between(bench, 0, one.world.form.relations - 1),
                             .answer = lab_between(bench, 0, one.world.entities - 1),
                             .removed = removed,
                             .factors = lab_zeros(bench, size),
                             .scores = lab_zeros(bench, one.world.entities)};
        int32_t *list = lab_ids(bench, triples, 0, 0);
        int64_t count = 0;
        for (int64_t i = 0; i < size; i++) at.factors[i] = 1;
        for (int64_t i = 0; i < triples; i++)
            if (removed[i]) list[count++] = (int32_t)i;
        float *out = lab_put(bench, lab_random(bench, size, 9), size);
        float *score = lab_put(bench, lab_random(bench, 1, 9), 1);
        vlp_path_queries query = {.count = 1,
                                  .heads = lab_put_ids(bench, &at.head, 1),
                                  .relations = lab_put_ids(bench, &at.relation, 1),
                                  .removed_offset =
                                      lab_put_bytes(bench, (int64_t[]){0, count}, 2 * sizeof(int64_t)),
                                  .removed = lab_put_ids(bench, list, count)};
        assert_int_equal(bench->backend->paths->message_gradients(bench->compute, score, out, &one.model,
                                                                  &query, at.answer),
                         VLP_OK);
        double expected_score = score_of_factors(&at);
        lab_expect("score", &expected_score, lab_get(bench, score, 1), 1, 2e-4, 0.2);
        double *got = lab_get(bench, out, size);
        for (int64_t l = 0; l < one.world.form.layers; l++)
            for (int64_t e = 0; e < edges; e++) {
                bool into_head = one.host.relation[e] < one.world.form.relations / 2;
                double *factor = at.factors + (l * 2 + into_head) * triples + one.host.triple[e];
                smooth += expect_slope(factor, &at, expected_score, got[l * edges + e]);
                all++;
            }
        path_case_close(&one);
        lab_clear(bench);
    }
    assert_true((double)smooth > 0.8 * (double)all);
}

static void test_messages(void **state) {
    (void)state;
    for_versions(check_messages, 9);
}

/* The one-sided slope of the score as a factor grows or shrinks. */
static double slope_to(double *factor, const factor_context *at, double step) {
    double score = score_of_factors(at);
    *factor = 1 + step;
    double slope = (score_of_factors(at) - score) / step;
    *factor = 1;
    return slope;
}

/* 0 reaches 3 by way of 1 and of 2, with equal messages: the first receives the gradients of the
 * maximum and of the minimum, that is the slope as it grows; the second the slope as it shrinks. */
static void check_tied_messages(lab *bench) {
    int told = 0;
    for (int round = 0; round < ROUNDS; round++) {
        oracle_graph graph = {.entities = 4, .relations = 1};
        oracle_graph_add(&graph, 0, 0, 1);
        oracle_graph_add(&graph, 0, 0, 2);
        oracle_graph_add(&graph, 1, 0, 3);
        oracle_graph_add(&graph, 2, 0, 3);
        path_case one;
        vlp_path_form form = {.layers = 2, .dim = 8, .relations = 2, .reached_only = round % 2 == 0};
        path_case_open(&one, bench, &graph, form);
        enum { TRIPLES = 4, EDGES = 2 * TRIPLES, SIZE = 2 * EDGES };
        factor_context at = {.one = &one,
                             .answer = 3,
                             .factors = lab_zeros(bench, SIZE),
                             .scores = lab_zeros(bench, one.world.entities)};
        for (int i = 0; i < SIZE; i++) at.factors[i] = 1;
        float *out = lab_put(bench, lab_zeros(bench, SIZE), SIZE);
        float *score = lab_put(bench, lab_zeros(bench, 1), 1);
        int32_t *query = lab_put_ids(bench, (int32_t[]){0}, 1);
        vlp_path_queries queries = {.count = 1, .heads = query, .relations = query};
        assert_int_equal(bench->backend->paths->message_gradients(bench->compute, score, out, &one.model,
                                                                  &queries, at.answer),
                         VLP_OK);
        double *got = lab_get(bench, out, SIZE), expected[2], others[2];
        for (int i = 0; i < 2; i++) {
            int64_t slot = one.host.offset[3] + i;
            int32_t triple = one.host.triple[slot];
            double *factor = at.factors + EDGES + triple; /* of layer 1, towards the tail entity */
            assert_int_equal(triple, 2 + i);
            expected[i] = slope_to(factor, &at, i == 0 ? 1e-6 : -1e-6);
            others[i] = slope_to(factor, &at, i == 0 ? -1e-6 : 1e-6);
            lab_expect("tied message", &expected[i], got + EDGES + slot, 1, 2e-3, 0.1);
        }
        told += fabs(expected[0] - others[0]) > 0.01 && fabs(expected[1] - others[1]) > 0.01;
        path_case_close(&one);
        lab_clear(bench);
    }
    assert_true(told > ROUNDS / 4);
}

static void test_tied_messages(void **state) {
    (void)state;
    for_versions(check_tied_messages, 10);
}

/* ---- The table ----------------------------------------------------------------------------------- */

/* The operations are all there, or none is. */
static void test_table(void **state) {
    (void)state;
    typedef void (*any_function)(void);
    enum { OPERATIONS = sizeof(vlp_path_operations) / sizeof(any_function) };
    vlp_path_operations operations;
    vlp_backend backend = vlp_cpu_backend;
    assert_non_null(backend.paths);
    backend.paths = &operations;
    for (size_t missing = 0; missing <= OPERATIONS; missing++) {
        memcpy(&operations, vlp_cpu_backend.paths, sizeof operations);
        if (missing < OPERATIONS)
            memset((char *)&operations + missing * sizeof(any_function), 0, sizeof(any_function));
        assert_int_equal(vlp_backend_is_complete(&backend), missing == OPERATIONS);
    }
    backend.paths = NULL;
    assert_true(vlp_backend_is_complete(&backend));
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static vlp_status all_operations(const path_case *one, const vlp_backend *backend, double *loss,
                                 float *scores, float *messages) {
    vlp_compute *compute = NULL;
    float score;
    int32_t head = 0, relation = 0;
    vlp_path_queries query = {.count = 1, .heads = &head, .relations = &relation};
    vlp_path_keys keys = {0};
    vlp_status status = backend->open(&compute, 1);
    if (status == VLP_OK) status = vlp_path_keys_make(&keys, &one->host);
    if (status == VLP_OK)
        status = backend->paths->step(compute, loss, &one->grads, &one->model, &one->batch,
                                      &(vlp_path_options){.far = 1});
    if (status == VLP_OK) status = backend->paths->scores(compute, scores, &one->model, &query);
    if (status == VLP_OK)
        status = backend->paths->message_gradients(compute, &score, messages, &one->model, &query, 1);
    vlp_path_keys_free(&keys);
    backend->close(compute);
    return status;
}

/* Arrays of the CPU's are the host's: every call for memory fails in turn. */
static void test_memory(void **state) {
    (void)state;
    lab bench;
    path_case one;
    lab_open_on(&bench, &vlp_cpu_backend, 1, SEED);
    oracle_graph graph;
    oracle_graph_make(&graph, ORACLE_CLIQUE, 6, 2, -1, &bench.random);
    path_case_open(&one, &bench, &graph, path_case_form(&bench, &graph, true));
    path_case_batch(&one, &bench, 3, SEED, 0);
    one.world.form.edge_limit = 1000;
    int64_t edges = one.world.form.layers * 2 * one.world.triples;
    float *scores = lab_put(&bench, lab_zeros(&bench, one.world.entities), one.world.entities);
    float *messages = lab_put(&bench, lab_zeros(&bench, edges), edges);
    double loss;
    failing_allocator memory;
    int64_t call = 0;
    vlp_status status;
    do {
        failing_allocator_install(&memory, ++call);
        status = all_operations(&one, bench.backend, &loss, scores, messages);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_true(call > 20);
    path_case_close(&one);
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_choices),
        cmocka_unit_test(test_choose),        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_middle),        cmocka_unit_test(test_many),
        cmocka_unit_test(test_removed),       cmocka_unit_test(test_limit),
        cmocka_unit_test(test_ties),          cmocka_unit_test(test_messages),
        cmocka_unit_test(test_tied_messages), cmocka_unit_test(test_table),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
