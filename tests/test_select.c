/* The best answers that a backend chooses from tiles of scores, against sorting all of them. Scores are
 * sums that fp32 holds exactly: what comes back has to be the very same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

enum { SEED = 40, ROOM = 7 };

/* ---- An oracle ---- */

/* Sets of components, also such as have more than there are by now. */
static const unsigned sets[] = {1, 3, 7, 10, 15};
enum { SETS = sizeof sets / sizeof *sets };

/* Scores of queries with all entities, and who does not compete. */
typedef struct contest {
    int32_t rows, entities;
    unsigned components;
    vlp_mixture mixture;
    float *scores[VLP_MAX_COMPONENTS]; /* (rows, entities); NULL for those that are not there */
    float *scale;                      /* (entities), of components 1 and 3 */
    int32_t *excluded;                 /* (rows, entities) */
    vlp_excluded *lists;               /* (rows) */
} contest;

static int best_first(const void *left, const void *right) {
    const vlp_top *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->entity > b->entity) - (a->entity < b->entity);
}

/* All that compete for a query, best first; returns how many. Nobody is chosen for minus infinity. */
static int32_t sorted(vlp_top *out, const contest *c, int32_t row) {
    int32_t count = 0;
    const vlp_excluded *list = &c->lists[row];
    for (int32_t e = 0; e < c->entities; e++) {
        int64_t at = 0, cell = (int64_t)row * c->entities + e;
        while (at < list->count && list->items[at] != e) at++;
        if (at < list->count) continue;
        vlp_top one = {.entity = e};
        for (int k = 0; k < VLP_MAX_COMPONENTS; k++) {
            if (!c->scores[k]) continue;
            one.parts[k] = c->scores[k][cell] * (k % 2 ? c->scale[e] : 1);
            one.score += c->mixture.weights[k] * one.parts[k];
        }
        if (!isinf(one.score)) out[count++] = one;
    }
    qsort(out, (size_t)count, sizeof *out, best_first);
    return count;
}

/* ---- Random contests ---- */

static void *array(int64_t count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

/* Whole numbers: few where `coarse`, so that most scores are met several times. */
static contest random_contest(lab *bench, int32_t rows, int32_t entities, bool coarse,
                              unsigned components) {
    contest c = {
        .rows = rows, .entities = entities, .components = components, .mixture = {{0.5f, 1, 0.25f, 2}}};
    int64_t cells = (int64_t)rows * entities;
    int32_t range = coarse ? 4 : 1 << 19;
    for (int k = 0; k < VLP_MAX_COMPONENTS; k++)
        c.scores[k] = components >> k & 1 ? array(cells, sizeof(float)) : NULL;
    c.scale = array(entities, sizeof(float));
    c.excluded = array(cells, sizeof(int32_t));
    c.lists = array(rows, sizeof *c.lists);
    for (int32_t e = 0; e < entities; e++) c.scale[e] = 0.25f * (float)lab_between(bench, 0, 7);
    for (int64_t i = 0; i < cells; i++)
        for (int k = 0; k < VLP_MAX_COMPONENTS; k++) {
            if (!c.scores[k]) continue;
            c.scores[k][i] = (float)lab_between(bench, -range, range);
            if (k % 2) continue; /* infinity times a scale of zero is NaN */
            if (lab_between(bench, 0, 40) == 0) c.scores[k][i] = -INFINITY;
            if (lab_between(bench, 0, 40) == 0) c.scores[k][i] = -0.0f;
        }
    for (int32_t r = 0; r < rows; r++) {
        int32_t one_in = lab_between(bench, 0, 5); /* none, all, or some */
        c.lists[r].items = c.excluded + (int64_t)r * entities;
        for (int32_t e = 0; e < entities && one_in > 0; e++)
            if (lab_between(bench, 1, one_in) == 1)
                c.excluded[(int64_t)r * entities + c.lists[r].count++] = e;
    }
    return c;
}

static void contest_free(contest *c) {
    for (int k = 0; k < VLP_MAX_COMPONENTS; k++) free(c->scores[k]);
    free(c->scale);
    free(c->excluded);
    free(c->lists);
}

/* ---- The backend's choice ---- */

/* Columns first .. first + count - 1 of all rows, on the backend: by themselves, or within whole rows.
 */
static vlp_component_scores put_tile(lab *bench, const contest *c, const float *scores, int32_t first,
                                     int32_t count, bool whole) {
    size_t cells = (size_t)c->rows * (size_t)c->entities;
    if (whole)
        return (vlp_component_scores){
            (float *)lab_put_bytes(bench, scores, cells * sizeof *scores) + first, c->entities, NULL};
    float *tile = array((int64_t)c->rows * count, sizeof *tile);
    for (int32_t r = 0; r < c->rows; r++)
        memcpy(tile + (int64_t)r * count, scores + (int64_t)r * c->entities + first,
               (size_t)count * sizeof *tile);
    float *there = lab_put_bytes(bench, tile, (size_t)c->rows * (size_t)count * sizeof *tile);
    free(tile);
    return (vlp_component_scores){there, count, NULL};
}

static vlp_status choose(lab *bench, vlp_best *best, vlp_selection *selection, const contest *c,
                         int32_t columns) {
    const vlp_backend *backend = bench->backend;
    const float *scale = lab_put_bytes(bench, c->scale, (size_t)c->entities * sizeof *scale);
    VLP_TRY(backend->select->start(bench->compute, selection, c->lists, c->rows));
    for (int32_t first = 0; first < c->entities; first += columns) {
        int32_t count = c->entities - first < columns ? c->entities - first : columns;
        vlp_score_tile tile = {.first = first, .columns = count};
        for (int k = 0; k < VLP_MAX_COMPONENTS; k++) {
            if (!c->scores[k]) continue;
            tile.components[k] = put_tile(bench, c, c->scores[k], first, count, k == 2);
            if (k % 2) tile.components[k].scale = scale;
        }
        VLP_TRY(backend->select->offer(bench->compute, selection, &tile, &c->mixture));
    }
    return backend->select->finish(bench->compute, best, selection);
}

static void expect_sorted(const contest *c, const vlp_best *best, int32_t wanted) {
    vlp_top *all = array(c->entities, sizeof *all);
    for (int32_t r = 0; r < c->rows; r++) {
        int32_t left = sorted(all, c, r);
        const vlp_top *top = best->items + r * best->stride;
        assert_int_equal(best->counts[r], left < wanted ? left : wanted);
        for (int32_t i = 0; i < best->counts[r]; i++) {
            assert_int_equal(top[i].entity, all[i].entity);
            assert_true(top[i].score == all[i].score);
            for (int k = 0; k < VLP_MAX_COMPONENTS; k++) assert_true(top[i].parts[k] == all[i].parts[k]);
        }
    }
    free(all);
}

/* The same selection is used for several contests, the last of fewer rows. */
static void check(lab *bench, int32_t entities, int32_t wanted, int32_t columns, int way) {
    vlp_selection *selection = NULL;
    if (columns > entities) columns = entities;
    unsigned components = sets[way % SETS];
    assert_int_equal(
        bench->backend->select->open(bench->compute, &selection,
                                     &(vlp_select_options){ROOM, wanted, columns, components}),
        VLP_OK);
    for (int round = 0; round < 2; round++) {
        contest c = random_contest(bench, round ? lab_between(bench, 1, ROOM) : ROOM, entities,
                                   (way + round) % 2, components);
        vlp_best best;
        if (choose(bench, &best, selection, &c, columns) != VLP_OK) fail_msg("%s", vlp_error_message());
        expect_sorted(&c, &best, wanted);
        contest_free(&c);
        lab_clear(bench);
    }
    bench->backend->select->close(bench->compute, selection);
}

static void test_random(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        for (int round = 0; round < 60; round++) {
            int32_t entities = lab_between(&bench, 1, 700);
            check(&bench, entities, lab_between(&bench, 1, round % 4 ? 40 : entities),
                  lab_between(&bench, entities / 20 + 1, entities), round);
        }
        lab_close(&bench);
    }
}

/* Rooms that fill many times, more wanted than a tile has or than there are, a single entity. */
static void test_shapes(void **state) {
    (void)state;
    static const int32_t shapes[][3] = {
        {1, 1, 1},        {2, 1, 1},          {3, 3, 1},          {5000, 10, 5000},  {5000, 10, 1024},
        {4097, 1, 4097},  {4096, 1024, 4096}, {4100, 1025, 2050}, {9000, 1000, 900}, {9000, 3000, 9000},
        {5000, 4999, 77}, {5000, 5000, 5000}, {2500, 2500, 1300}, {64, 64, 64},      {1023, 1023, 1023}};
    lab bench;
    lab_open(&bench, 2, SEED + 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = 0; way < SETS; way++)
            check(&bench, shapes[i][0], shapes[i][1], shapes[i][2], way);
    lab_close(&bench);
}

/* Scores that rise meet a threshold that is always too low, those that fall one that is never passed. */
static void test_in_order(void **state) {
    (void)state;
    enum { ENTITIES = 6000 };
    lab bench;
    lab_open(&bench, 2, SEED + 2);
    for (int way = 0; way < 6; way++) {
        int32_t wanted = way / 2 == 0 ? 1 : way / 2 == 1 ? 50 : 2000;
        contest c = random_contest(&bench, 2, ENTITIES, false, 1);
        for (int32_t i = 0; i < 2 * ENTITIES; i++) c.scores[0][i] = (float)(way % 2 ? -i : i);
        vlp_selection *selection = NULL;
        vlp_best best;
        assert_int_equal(bench.backend->select->open(bench.compute, &selection,
                                                     &(vlp_select_options){2, wanted, ENTITIES / 2, 1}),
                         VLP_OK);
        assert_int_equal(choose(&bench, &best, selection, &c, ENTITIES / 2), VLP_OK);
        expect_sorted(&c, &best, wanted);
        bench.backend->select->close(bench.compute, selection);
        contest_free(&c);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* A NaN is found anywhere, of either sign and in the score of any component, unless it is excluded. */
static void test_not_a_number(void **state) {
    (void)state;
    enum { ENTITIES = 1500 };
    lab bench;
    lab_open(&bench, 2, SEED + 3);
    vlp_selection *selection = NULL;
    assert_int_equal(
        bench.backend->select->open(bench.compute, &selection, &(vlp_select_options){2, 3, ENTITIES, 7}),
        VLP_OK);
    const int32_t third[] = {3};
    for (int32_t at = 0; at < ENTITIES; at += at < 70 ? 1 : 97) {
        contest c = random_contest(&bench, 2, ENTITIES, at % 2, 7);
        for (int32_t i = 0; i < 2 * ENTITIES; i++) c.scores[0][i] = (float)(ENTITIES - i);
        c.lists[0] = c.lists[1] = (vlp_excluded){third, 1};
        c.scores[at % 7 % 3][ENTITIES + at] = at % 3 ? NAN : -NAN;
        vlp_best best;
        assert_int_equal(choose(&bench, &best, selection, &c, at % 5 ? ENTITIES : 400),
                         at == 3 ? VLP_OK : VLP_ERROR_DIVERGED);
        contest_free(&c);
        lab_clear(&bench);
    }
    bench.backend->select->close(bench.compute, selection);
    bench.backend->select->close(bench.compute, NULL);
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_not_a_number),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
