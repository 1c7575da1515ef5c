/* The sampler of negatives, against exact probabilities.
 *
 * On graphs of a few entities the probability of every set that can be drawn is summed over all orders
 * in which it can come; thousands of draws are then held to it by chi-square. Draws are functions of
 * fixed counters, so that a test that passes once passes always. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "chi_square.h"
#include "compute/backend.h"
#include "graph/distance.h"
#include "lab.h"
#include "oracle.h"

enum { SEED = 404, SMALL = 11, LIMIT = 8, REPEATS = 500, STEPS = 9, LISTS_DEEP = 99, SINGLES = 2000 };

/* ---- Graphs with their shells ---- */

enum mode {
    MODE_UNIFORM,
    MODE_EXACT,  /* as made with memory to spare */
    MODE_NEAR,   /* as made with none */
    MODE_MATRIX, /* distances of all, lists cut short: members by rejection */
    MODE_LISTS,  /* no distances but the lists, cut short */
    MODES
};

typedef struct world {
    oracle_graph oracle;
    int32_t *distance; /* (entities, entities), -1 without a path */
    vlp_graph *graph;
    vlp_skeleton *skeleton;
    vlp_shells *shells;
    enum mode mode;
    vlp_shell_view view;
    uint8_t *near;
    int32_t *counts;
} world;

/* Shells as `mode` says, lists of at most `depth` shells where it cuts them. */
static void world_shells(world *w, enum mode mode, int32_t limit, int32_t depth) {
    int32_t nodes = w->oracle.entities, width = limit + 1;
    vlp_shells_free(w->shells);
    free(w->near);
    free(w->counts);
    int64_t budget = mode == MODE_NEAR ? 0 : INT64_C(1) << 30;
    assert_int_equal(vlp_shells_new(&w->shells, w->skeleton, limit, budget, 1, NULL), VLP_OK);
    assert_int_equal(w->shells->exact, mode != MODE_NEAR);
    w->mode = mode;
    w->near = calloc((size_t)nodes, 1);
    w->counts = calloc((size_t)nodes * (size_t)width, sizeof *w->counts);
    assert_true(w->near && w->counts);
    memcpy(w->counts, w->shells->counts, (size_t)nodes * (size_t)width * sizeof *w->counts);
    for (int32_t e = 0; e < nodes; e++) {
        w->near[e] = w->shells->near[e];
        if ((mode == MODE_MATRIX || mode == MODE_LISTS) && w->near[e] > depth)
            w->near[e] = (uint8_t)depth;
        for (int32_t d = w->near[e] + 1; mode == MODE_LISTS && d <= limit; d++)
            w->counts[e * width + d] = 0;
    }
    w->view = (vlp_shell_view){nodes,
                               limit,
                               mode == MODE_LISTS ? NULL : w->shells->matrix,
                               vlp_shells_stride(nodes),
                               w->counts,
                               w->near,
                               w->shells->near_offset,
                               w->shells->near_member};
}

static void world_finish(world *w) {
    w->distance = oracle_distance_matrix(&w->oracle);
    assert_int_equal(vlp_graph_new(&w->graph, w->oracle.triples, w->oracle.count, w->oracle.entities,
                                   w->oracle.relations, 1),
                     VLP_OK);
    assert_int_equal(vlp_skeleton_new(&w->skeleton, w->graph, 1), VLP_OK);
}

static void world_free(world *w) {
    vlp_shells_free(w->shells);
    vlp_skeleton_free(w->skeleton);
    vlp_graph_free(w->graph);
    oracle_graph_free(&w->oracle);
    free(w->distance);
    free(w->near);
    free(w->counts);
}

/* The distance that counts for p0. */
static int32_t distance_of(const world *w, int32_t head, int32_t entity) {
    int32_t limit = w->view.limit, d = w->distance[head * w->oracle.entities + entity];
    if (d == 0) return 1;
    if (d < 0 || d > limit) d = limit;
    if (w->view.matrix || d <= w->near[head]) return d;
    return w->near[head] + 1 < limit ? w->near[head] + 1 : limit;
}

static long double weight_of(const world *w, int32_t head, int32_t entity, float alpha0) {
    if (w->mode == MODE_UNIFORM) return 1;
    return expl(-(long double)alpha0 * (long double)distance_of(w, head, entity));
}

enum { SHAPES = 12 };

/* Undirected pairs, ended by -1; loops and reverse edges among them. */
static const int8_t drawn_shapes[SHAPES][32] = {
    {0, 1, 1, 2, 2, 3, -1},                                                /* path */
    {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, -1},                  /* path to the limit */
    {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, -1},     /* and beyond it */
    {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 5, 5, -1},                              /* star, a loop */
    {0, 1, 1, 2, 2, 0, 3, 4, 4, 5, 5, 3, -1},                              /* two triangles */
    {0, 1, 1, 2, 3, 4, 4, 3, 4, 4, 0, 0, -1},                              /* parts, loops, reverse */
    {0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3, -1},                              /* clique */
    {0, 1, 0, 2, 1, 3, 1, 4, 2, 5, 2, 6, 3, 7, -1},                        /* tree */
    {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 0, 4, -1},            /* ring with a chord */
    {2, 2, 3, 1, -1},                                                      /* hardly anything */
    {0, 1, 0, 2, 0, 3, 1, 4, 2, 4, 3, 4, 4, 5, 5, 6, 5, 7, 6, 8, -1},      /* layers */
    {0, 1, 1, 0, 1, 2, 2, 3, 2, 4, 4, 5, 5, 2, 5, 6, 7, 7, 0, 7, 8, 0, -1} /* anything */
};
static const int32_t shape_entities[SHAPES] = {4, 9, 11, 7, 6, 7, 5, 8, 8, 6, 9, 9};

static void world_small(world *w, int shape) {
    *w = (world){.oracle = {.entities = shape_entities[shape], .relations = 2}};
    for (const int8_t *at = drawn_shapes[shape]; at[0] >= 0; at += 2)
        oracle_graph_add(&w->oracle, at[0], at[0] % 2, at[1]);
    world_finish(w);
}

/* ---- Known answers ---- */

typedef struct answers {
    int64_t *offset; /* (batch + 1) */
    int32_t *known;
} answers;

/* A head's known answers, by its number and `variant`: none, its neighbours, itself and others at
 * random, all but two. Returns how many. */
static int32_t known_answers(int32_t *out, const world *w, int32_t head, int variant) {
    int32_t n = w->oracle.entities, count = 0;
    oracle_random random = {SEED + 1, (uint64_t)variant, (uint32_t)head};
    int kind = (int)((head + variant) % 4);
    int32_t spared = oracle_below(&random, n), spared_too = oracle_below(&random, n);
    for (int32_t e = 0; e < n; e++) {
        bool is = kind == 1   ? w->distance[head * n + e] == 1
                  : kind == 2 ? e == head || oracle_chance(&random, 4)
                  : kind == 3 ? e != spared && e != spared_too
                              : false;
        if (is) out[count++] = e;
    }
    return count;
}

/* For a batch whose row i asks for head i % entities. */
static answers answers_make(const world *w, int32_t batch, int variant) {
    answers a = {calloc((size_t)batch + 1, sizeof(int64_t)),
                 calloc((size_t)batch * (size_t)w->oracle.entities + 1, sizeof(int32_t))};
    assert_true(a.offset && a.known);
    for (int32_t i = 0; i < batch; i++)
        a.offset[i + 1] =
            a.offset[i] + known_answers(a.known + a.offset[i], w, i % w->oracle.entities, variant);
    return a;
}

static void answers_free(answers *a) {
    free(a->offset);
    free(a->known);
}

/* ---- Drawing ---- */

enum { ANSWER = -77, CANARY = -1234567 };

/* The shells, for the backend to read. */
static vlp_shell_view resident_view(vlp_compute *compute, const world *w) {
    const vlp_backend *backend = lab_backend();
    vlp_shell_view view = w->view;
    size_t nodes = (size_t)view.nodes, members = (size_t)view.near_offset[nodes];
    if (view.matrix)
        view.matrix = backend->memory->resident(compute, view.matrix, nodes * (size_t)view.stride);
    view.counts = backend->memory->resident(compute, view.counts,
                                            nodes * ((size_t)view.limit + 1) * sizeof(int32_t));
    view.near = backend->memory->resident(compute, view.near, nodes);
    view.near_offset =
        backend->memory->resident(compute, view.near_offset, (nodes + 1) * sizeof(int64_t));
    view.near_member = backend->memory->resident(compute, view.near_member, members * sizeof(int32_t));
    assert_true(view.counts && view.near && view.near_offset && view.near_member);
    return view;
}

static void dismiss_view(vlp_compute *compute, const vlp_shell_view *view) {
    const void *arrays[] = {view->matrix, view->counts, view->near, view->near_offset,
                            view->near_member};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i]) lab_backend()->memory->dismiss(compute, arrays[i]);
}

/* Draws on the backend: `entities` (cells) go there and come back. */
static void run_sample(vlp_compute *compute, const world *w, int32_t *entities, size_t cells,
                       const int32_t *heads, int32_t batch, const int64_t *offset, const int32_t *known,
                       vlp_sample_options options, uint64_t step) {
    const vlp_backend *backend = lab_backend();
    size_t rows = (size_t)batch, listed = (size_t)offset[batch] + 1;
    int32_t *entities_on = backend->memory->allocate(compute, cells * sizeof *entities);
    int32_t *heads_on = backend->memory->allocate(compute, rows * sizeof *heads);
    int64_t *offset_on = backend->memory->allocate(compute, (rows + 1) * sizeof *offset);
    int32_t *known_on = backend->memory->allocate(compute, listed * sizeof *known);
    assert_true(entities_on && heads_on && offset_on && known_on);
    backend->memory->upload(compute, entities_on, entities, cells * sizeof *entities);
    backend->memory->upload(compute, heads_on, heads, rows * sizeof *heads);
    backend->memory->upload(compute, offset_on, offset, (rows + 1) * sizeof *offset);
    backend->memory->upload(compute, known_on, known, (listed - 1) * sizeof *known);
    vlp_shell_view view = {0};
    if (w->mode != MODE_UNIFORM) {
        view = resident_view(compute, w);
        options.shells = &view;
    }
    vlp_step_values values = {.step = (int64_t)step};
    assert_false(backend->steps->begin(compute, NULL, &values));
    assert_int_equal(backend->sample->negatives(compute, entities_on,
                                                &(vlp_sampled_queries){.count = batch,
                                                                       .heads = heads_on,
                                                                       .known_begin = offset_on,
                                                                       .known_end = offset_on + 1,
                                                                       .known = known_on},
                                                &options),
                     VLP_OK);
    assert_int_equal(backend->memory->download(compute, entities, entities_on, cells * sizeof *entities),
                     VLP_OK);
    dismiss_view(compute, &view);
    backend->memory->release(compute, entities_on);
    backend->memory->release(compute, heads_on);
    backend->memory->release(compute, offset_on);
    backend->memory->release(compute, known_on);
}

/* A batch of negatives, row i for head i % entities; free() it. The answers' column and what lies behind
 * the last row stay as they were. */
static int32_t *draw(vlp_compute *compute, const world *w, const answers *a, int32_t batch, float alpha0,
                     int32_t count, uint64_t seed, uint64_t step) {
    size_t cells = (size_t)batch * (size_t)(count + 1);
    int32_t *entities = calloc(cells + 8, sizeof *entities);
    int32_t *heads = calloc((size_t)batch, sizeof *heads);
    assert_true(entities && heads);
    for (size_t i = 0; i < cells + 8; i++) entities[i] = CANARY;
    for (int32_t i = 0; i < batch; i++) {
        entities[(int64_t)i * (count + 1)] = ANSWER - i;
        heads[i] = i % w->oracle.entities;
    }
    vlp_sample_options options = {NULL, alpha0, w->oracle.entities, count, seed};
    run_sample(compute, w, entities, cells + 8, heads, batch, a->offset, a->known, options, step);
    for (int32_t i = 0; i < batch; i++) assert_int_equal(entities[(int64_t)i * (count + 1)], ANSWER - i);
    for (size_t i = cells; i < cells + 8; i++) assert_int_equal(entities[i], CANARY);
    free(heads);
    return entities;
}

/* The row of one query has what there is, once, and nothing that is known; `seen`: (entities) zeros. */
static void check_row(const int32_t *row, int32_t count, const int32_t *known, int64_t known_count,
                      int32_t entities, uint8_t *seen) {
    int32_t available = entities - (int32_t)known_count, found = 0;
    for (int64_t i = 0; i < known_count; i++) seen[known[i]] = 1;
    for (int32_t i = 1; i <= count; i++) {
        if (row[i] == -1) continue;
        assert_in_range(row[i], 0, entities - 1);
        assert_int_equal(seen[row[i]], 0);
        seen[row[i]] = 1;
        found++;
    }
    assert_int_equal(found, count < available ? count : available);
    memset(seen, 0, (size_t)entities);
}

/* ---- Sets ---- */

/* share[mask]: the probability that the entities of the mask are the ones drawn, when `count` are drawn
 * one after the other by weight. Every order in which a set can come is one way through its subsets. */
static void set_shares(long double *share, const long double *weight, int32_t n, int32_t count) {
    int32_t available = 0;
    for (int32_t e = 0; e < n; e++) available += weight[e] > 0;
    if (count > available) count = available;
    memset(share, 0, sizeof *share << n);
    share[0] = 1;
    for (int32_t mask = 0; mask < 1 << n; mask++) {
        if (share[mask] == 0 || __builtin_popcount((unsigned)mask) >= count) continue;
        long double left = 0;
        for (int32_t e = 0; e < n; e++) left += mask >> e & 1 ? 0 : weight[e];
        for (int32_t e = 0; e < n; e++)
            if (!(mask >> e & 1) && weight[e] > 0)
                share[mask | 1 << e] += share[mask] * weight[e] / left;
        share[mask] = 0;
    }
}

static void count_sets(int64_t *observed, const int32_t *rows, const answers *a, const world *w,
                       int32_t batch, int32_t count) {
    int32_t n = w->oracle.entities;
    uint8_t seen[SMALL] = {0};
    for (int32_t i = 0; i < batch; i++) {
        const int32_t *row = rows + (int64_t)i * (count + 1);
        int32_t mask = 0;
        check_row(row, count, a->known + a->offset[i], a->offset[i + 1] - a->offset[i], n, seen);
        for (int32_t j = 1; j <= count; j++)
            if (row[j] >= 0) mask |= 1 << row[j];
        observed[(int64_t)(i % n) << n | mask]++;
    }
}

/* Draws of every head of a graph against the exact shares of sets. */
static fit check_sets(vlp_compute *compute, const world *w, float alpha0, int32_t count, int variant) {
    int32_t n = w->oracle.entities, batch = n * REPEATS;
    int64_t *observed = calloc((size_t)n << n, sizeof *observed);
    long double *share = calloc((size_t)1 << n, sizeof *share);
    assert_true(observed && share);
    answers a = answers_make(w, batch, variant);
    for (uint64_t step = 0; step < STEPS; step++) {
        int32_t *rows = draw(compute, w, &a, batch, alpha0, count, SEED + (uint64_t)variant, step);
        count_sets(observed, rows, &a, w, batch, count);
        free(rows);
    }
    fit whole = {0, 0};
    for (int32_t head = 0; head < n; head++) {
        long double weight[SMALL];
        for (int32_t e = 0; e < n; e++) weight[e] = weight_of(w, head, e, alpha0);
        for (int64_t i = a.offset[head]; i < a.offset[head + 1]; i++) weight[a.known[i]] = 0;
        set_shares(share, weight, n, count);
        fit one = compare_counts(observed + ((int64_t)head << n), share, INT64_C(1) << n,
                                 (double)REPEATS * STEPS);
        if (!fits(one, ABSURD))
            print_error("head %d: %.1f with %lld degrees of freedom\n", head, one.sum,
                        (long long)one.cells);
        assert_true(fits(one, ABSURD));
        whole.sum += one.sum;
        whole.cells += one.cells;
    }
    answers_free(&a);
    free(observed);
    free(share);
    return whole;
}

static vlp_compute *open_compute(int32_t threads) {
    vlp_compute *compute = NULL;
    assert_int_equal(lab_backend()->open(&compute, threads), VLP_OK);
    return compute;
}

/* Every shape in every mode, with a few of the strengths, counts and kinds of known answers each. */
static void test_sets(void **state) {
    (void)state;
    static const float strengths[] = {0, 0.4f, 1.1f, 3, 30};
    static const int32_t depths[] = {0, 1, 2, 3, LISTS_DEEP};
    vlp_compute *compute = open_compute(1);
    fit all = {0, 0};
    for (int shape = 0; shape < SHAPES; shape++) {
        world w;
        world_small(&w, shape);
        for (int i = 0; i < 3 * MODES; i++) {
            oracle_random random = {SEED, (uint64_t)(shape * 100 + i), 0};
            enum mode mode = (enum mode)(i % MODES);
            int32_t depth = depths[oracle_below(&random, 5)];
            int32_t limit = oracle_chance(&random, 3) ? 1 + oracle_below(&random, 4) : LIMIT;
            world_shells(&w, mode, limit, depth);
            float alpha0 = strengths[(shape + i) % 5];
            int32_t count = 1 + oracle_below(&random, w.oracle.entities);
            fit f = check_sets(compute, &w, alpha0, count, shape + i);
            if (!fits(f, UNLIKELY))
                print_error("shape %d, mode %d, limit %d, depth %d, alpha0 %g, count %d: %.1f with %lld "
                            "degrees of freedom\n",
                            shape, mode, limit, depth, (double)alpha0, count, f.sum, (long long)f.cells);
            assert_true(fits(f, UNLIKELY));
            all.sum += f.sum;
            all.cells += f.cells;
        }
        world_free(&w);
    }
    assert_true(all.cells > 1000 && fits(all, UNLIKELY));
    lab_backend()->close(compute);
}

/* A strength so great that the weights of all but the nearest vanish beside it, and beside zero: shells
 * are then emptied one after the other, nearest first. */
static void test_great_strengths(void **state) {
    (void)state;
    static const float strengths[] = {30, 124.5f, 400, 1000};
    static const enum mode modes[] = {MODE_EXACT, MODE_NEAR, MODE_LISTS};
    vlp_compute *compute = open_compute(1);
    for (int i = 0; i < 36; i++) {
        world w;
        world_small(&w, i % 3 == 0 ? 1 : i % 3 == 1 ? 7 : 11);
        world_shells(&w, modes[i / 4 % 3], LIMIT, 3);
        int32_t n = w.oracle.entities, count = 1 + i % (n < 5 ? n : 5), known[64];
        assert_true(n <= 64);
        answers a = answers_make(&w, n, 0);
        int32_t *rows = draw(compute, &w, &a, n, strengths[i % 4], count, SEED, (uint64_t)i);
        for (int32_t head = 0; head < n; head++) {
            const int32_t *row = rows + head * (count + 1);
            bool out[64] = {false}; /* drawn, or not there to be drawn */
            int32_t farthest = 0;
            for (int32_t j = known_answers(known, &w, head, 0) - 1; j >= 0; j--) out[known[j]] = true;
            for (int32_t j = 1; j <= count && row[j] >= 0; j++) {
                out[row[j]] = true;
                int32_t distance = distance_of(&w, head, row[j]);
                if (distance > farthest) farthest = distance;
            }
            for (int32_t e = 0; e < n; e++) {
                if (!out[e] && distance_of(&w, head, e) < farthest)
                    print_error("alpha0 %g, head %d: distance %d was drawn before %d\n",
                                (double)strengths[i % 4], head, farthest, distance_of(&w, head, e));
                assert_true(out[e] || distance_of(&w, head, e) >= farthest);
            }
        }
        free(rows);
        answers_free(&a);
        world_free(&w);
    }
    lab_backend()->close(compute);
}

/* ---- Counters ---- */

/* The same draws whatever the number of threads and of queries beside a query, others for another seed
 * or step. */
static void test_counters(void **state) {
    (void)state;
    vlp_compute *computes[3];
    for (int t = 0; t < 3; t++) computes[t] = open_compute(t + 1);
    for (int i = 0; i < 4 * MODES; i++) {
        oracle_random random = {SEED + 2, (uint64_t)i, 0};
        world w = {0};
        oracle_graph_make(&w.oracle, ORACLE_RANDOM, 60, 2, 90, &random);
        world_finish(&w);
        world_shells(&w, (enum mode)(i % MODES), LIMIT, 2);
        int32_t batch = 200, count = 1 + oracle_below(&random, 30);
        size_t bytes = (size_t)batch * (size_t)(count + 1) * sizeof(int32_t);
        answers a = answers_make(&w, batch, i);
        int32_t *first = draw(computes[0], &w, &a, batch, 1, count, SEED, 9);
        for (int t = 0; t < 3; t++) {
            int32_t *again = draw(computes[t], &w, &a, batch, 1, count, SEED, 9);
            assert_memory_equal(first, again, bytes);
            free(again);
        }
        int32_t *part = draw(computes[1], &w, &a, 31, 1, count, SEED, 9);
        assert_memory_equal(first, part, 31 * (size_t)(count + 1) * sizeof(int32_t));
        int32_t *other_seed = draw(computes[1], &w, &a, batch, 1, count, SEED + 1, 9);
        int32_t *other_step = draw(computes[1], &w, &a, batch, 1, count, SEED, 10);
        assert_memory_not_equal(first, other_seed, bytes);
        assert_memory_not_equal(first, other_step, bytes);
        assert_memory_not_equal(other_seed, other_step, bytes);
        free(first);
        free(part);
        free(other_seed);
        free(other_step);
        answers_free(&a);
        world_free(&w);
    }
    for (int t = 0; t < 3; t++) lab_backend()->close(computes[t]);
}

/* ---- Graphs of some hundred entities ---- */

/* Single draws of one head, SINGLES a step, for which known answers are those of `variant`. */
static void count_singles(int64_t *observed, vlp_compute *compute, const world *w, int32_t head,
                          int variant, float alpha0, uint64_t first, uint64_t steps) {
    int32_t n = w->oracle.entities, heads[SINGLES], rows[2 * SINGLES];
    int64_t offset[SINGLES + 1] = {0};
    int32_t *known = calloc((size_t)n * SINGLES, sizeof *known);
    assert_non_null(known);
    for (int32_t i = 0; i < SINGLES; i++) {
        heads[i] = head;
        offset[i + 1] = offset[i] + known_answers(known + offset[i], w, head, variant);
    }
    for (uint64_t step = first; step < first + steps; step++) {
        vlp_sample_options options = {NULL, alpha0, n, 1, SEED};
        run_sample(compute, w, rows, 2 * SINGLES, heads, SINGLES, offset, known, options, step);
        for (int32_t i = 0; i < SINGLES; i++) {
            assert_in_range(rows[2 * i + 1], 0, n - 1);
            observed[rows[2 * i + 1]]++;
        }
    }
    free(known);
}

/* Whether the draws of some steps fall on entities, and on shells, as often as their weights say. */
static bool first_draw_fits(vlp_compute *compute, const world *w, int32_t head, int variant,
                            float alpha0, uint64_t first, uint64_t steps) {
    double draws = (double)steps * SINGLES;
    int32_t n = w->oracle.entities;
    int64_t *observed = calloc((size_t)n, sizeof *observed), by_shell[LIMIT + 1] = {0};
    long double *share = calloc((size_t)n, sizeof *share), of_shell[LIMIT + 1] = {0}, total = 0;
    int32_t *known = calloc((size_t)n, sizeof *known);
    assert_true(observed && share && known);
    count_singles(observed, compute, w, head, variant, alpha0, first, steps);
    for (int32_t e = 0; e < n; e++) share[e] = weight_of(w, head, e, alpha0);
    for (int32_t i = known_answers(known, w, head, variant) - 1; i >= 0; i--) share[known[i]] = 0;
    for (int32_t e = 0; e < n; e++) total += share[e];
    for (int32_t e = 0; e < n; e++) {
        share[e] /= total;
        of_shell[distance_of(w, head, e)] += share[e];
        by_shell[distance_of(w, head, e)] += observed[e];
    }
    bool good = fits(compare_counts(by_shell, of_shell, LIMIT + 1, draws), UNLIKELY) &&
                fits(compare_counts(observed, share, n, draws), UNLIKELY);
    free(observed);
    free(share);
    free(known);
    return good;
}

/* The first draw. What is unlikely happens once in a while, and each backend draws its own: a poor fit
 * has to be as poor again with other draws, and more of them, to count. */
static void check_first_draw(vlp_compute *compute, const world *w, int32_t head, int variant,
                             float alpha0, uint64_t steps) {
    assert_true(first_draw_fits(compute, w, head, variant, alpha0, 0, steps) ||
                first_draw_fits(compute, w, head, variant, alpha0, steps, 4 * steps));
}

static void test_first_draw(void **state) {
    (void)state;
    vlp_compute *compute = open_compute(2);
    static const float strengths[] = {0, 0.5f, 1.7f};
    static const enum oracle_shape shapes[] = {ORACLE_RANDOM, ORACLE_TREE, ORACLE_PATH};
    for (int i = 0; i < 6; i++) {
        oracle_random random = {SEED + 3, (uint64_t)i, 0};
        world w = {0};
        oracle_graph_make(&w.oracle, shapes[i % 3], 240 + 10 * i, 3, shapes[i % 3] ? -1 : 150 + 50 * i,
                          &random);
        world_finish(&w);
        for (int mode = 0; mode < MODES; mode++) {
            world_shells(&w, (enum mode)mode, LIMIT, 1 + i % 3);
            for (int repeat = 0; repeat < 2; repeat++)
                check_first_draw(compute, &w, oracle_below(&random, w.oracle.entities), i + repeat,
                                 strengths[(i + mode + repeat) % 3], 10);
        }
        world_free(&w);
    }
    lab_backend()->close(compute);
}

/* One of the two that remain among hundreds: trying is given up now and then, and counting has to be as
 * even as trying. */
static void test_last_two(void **state) {
    (void)state;
    vlp_compute *compute = open_compute(1);
    oracle_random random = {SEED + 5, 0, 0};
    world w = {0};
    oracle_graph_make(&w.oracle, ORACLE_RANDOM, 200, 1, 150, &random);
    world_finish(&w);
    for (int mode = 0; mode < MODES; mode += 3) { /* MODE_UNIFORM, MODE_MATRIX */
        world_shells(&w, (enum mode)mode, LIMIT, 0);
        check_first_draw(compute, &w, 4, 3, 0, 45);
    }
    world_free(&w);
    lab_backend()->close(compute);
}

/* Most of all entities at once, so that the last are found by counting: rows are right, and with
 * alpha0 = 0 every entity is among them equally often. */
static void test_many(void **state) {
    (void)state;
    enum { ENTITIES = 300, COUNT = 280, ROUNDS = 3 };
    vlp_compute *compute = open_compute(2);
    for (int mode = 0; mode < MODES; mode++) {
        oracle_random random = {SEED + 4, (uint64_t)mode, 0};
        world w = {0};
        oracle_graph_make(&w.oracle, ORACLE_RANDOM, ENTITIES, 2, 500, &random);
        int32_t n = w.oracle.entities, batch = n;
        uint8_t seen[2 * ENTITIES] = {0};
        int64_t included[2 * ENTITIES] = {0};
        assert_true(n <= 2 * ENTITIES);
        world_finish(&w);
        world_shells(&w, (enum mode)mode, LIMIT, 2);
        answers none = {calloc((size_t)batch + 1, sizeof(int64_t)), calloc(1, sizeof(int32_t))};
        answers some = answers_make(&w, batch, mode);
        for (uint64_t step = 0; step < ROUNDS; step++) {
            int32_t *rows = draw(compute, &w, &none, batch, 0, COUNT, SEED, step);
            for (int32_t i = 0; i < batch; i++)
                check_row(rows + i * (COUNT + 1), COUNT, NULL, 0, n, seen);
            for (int32_t i = 0; i < batch * (COUNT + 1); i++)
                if (i % (COUNT + 1) > 0) included[rows[i]]++;
            free(rows);
            rows = draw(compute, &w, &some, batch, 2, COUNT, SEED, step);
            for (int32_t i = 0; i < batch; i++)
                check_row(rows + i * (COUNT + 1), COUNT, some.known + some.offset[i],
                          some.offset[i + 1] - some.offset[i], n, seen);
            free(rows);
        }
        /* Inclusions of a simple random sample: variance p (1 - p) each, one total. */
        double p = (double)COUNT / n, draws = (double)ROUNDS * batch, sum = 0;
        for (int32_t e = 0; e < n; e++) sum += pow((double)included[e] - draws * p, 2);
        sum *= (n - 1) / (n * draws * p * (1 - p));
        assert_true(fits((fit){sum, n - 1}, UNLIKELY));
        assert_true(sum > quantile(n - 1, -UNLIKELY));
        answers_free(&none);
        answers_free(&some);
        world_free(&w);
    }
    lab_backend()->close(compute);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),     cmocka_unit_test(test_great_strengths),
        cmocka_unit_test(test_counters), cmocka_unit_test(test_first_draw),
        cmocka_unit_test(test_last_two), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
