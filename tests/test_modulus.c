/* Moduli on the CPU, in every version that runs here, against square roots in double precision: one root
 * at a time over all numbers of fp32, sums and gradients of rows of odd widths, numbers at the edges of
 * the range; and that a score depends on its two rows alone, to the last bit. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "lab.h"
#include "reference_ops.h"

enum { SEED = 70, MAX_HALF = 500, GAP = 19 };

static const int32_t halves[] = {1, 3, 7, 8, 9, 15, 16, 17, 24, 33, 100, 200, 201, 500};
enum { HALVES = sizeof halves / sizeof *halves };

typedef void (*check)(lab *bench, const cpu_modulus *version);

static void for_versions(check one) {
    const vlp_backend *backend = NULL;
    assert_int_equal(vlp_backend_find(&backend, "cpu"), VLP_OK);
    for (const cpu_modulus *const *version = cpu_modulus_versions; *version; version++) {
        if (!(*version)->runs()) continue;
        lab bench;
        lab_open_on(&bench, backend, 2, SEED);
        one(&bench, *version);
        lab_close(&bench);
    }
}

/* ---- One root ------------------------------------------------------------------------------------ */

/* How far moduli of re + i im are from the roots of their squares, in units in the last place of these.
 * The parts have 12 bits: their squares are exact, the sum of these is rounded once. */
static double root_error(const cpu_modulus *version, const float *re, const float *im) {
    float zero[2] = {0}, rows[CPU_MODULUS_ROWS][2], sums[CPU_MODULUS_ROWS];
    const float *others[CPU_MODULUS_ROWS];
    double worst = 0;
    for (int i = 0; i < CPU_MODULUS_ROWS; i++) {
        rows[i][0] = re[i];
        rows[i][1] = im[i];
        others[i] = rows[i];
    }
    cpu_modulus_sums(version, sums, zero, others, CPU_MODULUS_ROWS, 1);
    for (int i = 0; i < CPU_MODULUS_ROWS; i++) {
        double root = sqrt((double)(re[i] * re[i] + im[i] * im[i]));
        double error = fabs((double)sums[i] - root) / ldexp(1, ilogb(root) - FLT_MANT_DIG + 1);
        worst = fmax(worst, isfinite(error) ? error : INFINITY);
    }
    return worst;
}

/* Millions of squares of one magnitude, and some of every magnitude that is a normal number. */
static void check_roots(lab *bench, const cpu_modulus *version) {
    enum { BITS = 12, SIDE = 1 << BITS };
    double worst = 0;
    float re[CPU_MODULUS_ROWS], im[CPU_MODULUS_ROWS];
    for (int32_t i = SIDE / 2; i < SIDE; i++)
        for (int32_t j = 0; j <= i; j += CPU_MODULUS_ROWS) {
            for (int n = 0; n < CPU_MODULUS_ROWS; n++) {
                re[n] = (float)i;
                im[n] = (float)(j + n);
            }
            worst = fmax(worst, root_error(version, re, im));
        }
    for (int power = -62; power < 63; power++)
        for (int round = 0; round < 1000; round++) {
            for (int n = 0; n < CPU_MODULUS_ROWS; n++) {
                re[n] = ldexpf((float)lab_between(bench, SIDE / 2, SIDE - 1), power - BITS + 1);
                im[n] = ldexpf((float)lab_between(bench, 0, SIDE - 1), power - BITS + 1);
            }
            worst = fmax(worst, root_error(version, im, re));
        }
    print_message("%s: off by at most %.2f units in the last place\n", version->name, worst);
    assert_true(worst <= 2);
}

static void test_roots(void **state) {
    (void)state;
    for_versions(check_roots);
}

/* ---- Rows ---------------------------------------------------------------------------------------- */

/* A row and the others, each followed by numbers that must not be read, and their gradients. */
typedef struct rows {
    int32_t half, count;
    float one[2 * MAX_HALF + GAP], others[CPU_MODULUS_ROWS][2 * MAX_HALF + GAP];
    float one_grad[2 * MAX_HALF + GAP], others_grad[CPU_MODULUS_ROWS][2 * MAX_HALF + GAP];
    float weights[CPU_MODULUS_ROWS];
    const float *at[CPU_MODULUS_ROWS];
    float *grad_at[CPU_MODULUS_ROWS];
} rows;

static float draw(lab *bench, float range) {
    return range * ((float)lab_between(bench, 0, 1 << 24) * 0x1p-23f - 1);
}

static void fill(lab *bench, float *row, int32_t half, float range) {
    for (int32_t j = 0; j < 2 * half; j++) row[j] = draw(bench, range);
    for (int32_t j = 2 * half; j < 2 * half + GAP; j++) row[j] = NAN;
}

static rows *make_rows(lab *bench, rows *made, int32_t half, int32_t count, float range) {
    made->half = half;
    made->count = count;
    fill(bench, made->one, half, range);
    fill(bench, made->one_grad, half, 1);
    for (int32_t i = 0; i < CPU_MODULUS_ROWS; i++) {
        fill(bench, made->others[i], half, range);
        fill(bench, made->others_grad[i], half, 1);
        made->weights[i] = draw(bench, 2);
        made->at[i] = made->others[i];
        made->grad_at[i] = made->others_grad[i];
    }
    return made;
}

/* The square of modulus j in fp32, as a double. */
static double square_of(const rows *made, int32_t i, int32_t j) {
    double re = (double)(made->at[i][j] - made->one[j]);
    double im = (double)(made->at[i][j + made->half] - made->one[j + made->half]);
    return (double)(float)(re * re + im * im);
}

static double expected_sum(const rows *made, int32_t i) {
    double sum = 0;
    for (int32_t j = 0; j < made->half; j++) sum += sqrt(square_of(made, i, j));
    return sum;
}

/* The same number but for layouts, or as little a number. */
static void expect_sum(const cpu_modulus *version, const rows *made, int32_t i, float got) {
    double expected = expected_sum(made, i), layouts = 4 + made->half / 4;
    bool right = isnan(expected) ? isnan(got)
                 : expected > (double)FLT_MAX
                     ? isinf(got) && got > 0
                     : fabs((double)got - expected) <= layouts * 0x1p-24 * expected;
    if (!right)
        fail_msg("%s: %d moduli: expected %.9g, got %.9g", version->name, made->half, expected,
                 (double)got);
}

/* Correct, and the same in any group of rows and in either order. */
static void expect_sums(const cpu_modulus *version, const rows *made) {
    float sums[CPU_MODULUS_ROWS + 1] = {-1, -1, -1, -1, -1}, alone;
    cpu_modulus_sums(version, sums, made->one, made->at, made->count, made->half);
    for (int32_t i = 0; i <= CPU_MODULUS_ROWS; i++) {
        if (i >= made->count) {
            assert_true(sums[i] == -1);
            continue;
        }
        expect_sum(version, made, i, sums[i]);
        if (isnan(sums[i])) continue;
        const float *one = made->one;
        cpu_modulus_sums(version, &alone, made->one, made->at + i, 1, made->half);
        assert_memory_equal(&alone, &sums[i], sizeof alone);
        cpu_modulus_sums(version, &alone, made->at[i], &one, 1, made->half);
        assert_memory_equal(&alone, &sums[i], sizeof alone);
    }
}

static void check_sums(lab *bench, const cpu_modulus *version) {
    static rows made;
    const float ranges[] = {1, 1e-3f, 1e-12f, 1e15f, 1e18f};
    for (int h = 0; h < HALVES; h++)
        for (int32_t count = 1; count <= CPU_MODULUS_ROWS; count++)
            for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
                expect_sums(version, make_rows(bench, &made, halves[h], count, ranges[r]));
                /* Nothing here is so special that it had to be made again. */
                float sums[CPU_MODULUS_ROWS];
                version->sums(sums, made.one, made.at, count, halves[h]);
                for (int32_t i = 0; i < count; i++) assert_true(isfinite(sums[i]));
            }
}

static void test_sums(void **state) {
    (void)state;
    for_versions(check_sums);
}

/* ---- Edges of the range -------------------------------------------------------------------------- */

static const float edges[] = {0,     FLT_TRUE_MIN, 1e-40f, 1e-30f,  3e-23f,   1e-20f,    1e-19f,
                              1e18f, 1e19f,        1e20f,  FLT_MAX, INFINITY, -INFINITY, NAN};
enum { EDGES = sizeof edges / sizeof *edges };

/* Number j of row i differs by `apart`, along one of the axes. */
static void set_apart(rows *made, int32_t i, int32_t j, float apart, bool imaginary) {
    made->one[j] = made->one[j + made->half] = 0;
    made->others[i][j] = imaginary ? 0 : apart;
    made->others[i][j + made->half] = imaginary ? apart : 0;
}

static void check_edges(lab *bench, const cpu_modulus *version) {
    static rows made;
    for (int e = 0; e < EDGES; e++)
        for (int h = 0; h < HALVES - 4; h++) {
            int32_t half = halves[h];
            for (int32_t j = 0; j < half; j++) { /* one number of a row of others */
                make_rows(bench, &made, half, CPU_MODULUS_ROWS, 1);
                set_apart(&made, j % CPU_MODULUS_ROWS, j, edges[e], j % 2);
                expect_sums(version, &made);
            }
            for (int32_t j = 0; j < half; j++) set_apart(&made, 1, j, edges[e], j % 2);
            expect_sums(version, &made);
        }
    make_rows(bench, &made, 33, 2, 1);
    memcpy(made.others[1], made.one, sizeof made.one);
    float sums[2];
    cpu_modulus_sums(version, sums, made.one, made.at, 2, 33);
    assert_true(sums[1] == 0 && !signbit(sums[1]));
}

static void test_edges(void **state) {
    (void)state;
    for_versions(check_edges);
}

/* ---- Gradients ----------------------------------------------------------------------------------- */

/* Adds the gradients of all moduli of row i in double precision. A square that is not finite in fp32 has
 * no direction either. */
static void add_expected(double *one_grad, double *other_grad, const rows *made, int32_t i) {
    int32_t half = made->half;
    for (int32_t j = 0; j < half; j++) {
        double square = square_of(made, i, j);
        double tiny = (double)(VLP_TINY_DISTANCE * VLP_TINY_DISTANCE);
        if (!(square > tiny) || isinf(square)) continue;
        for (int part = 0; part < 2; part++) {
            int32_t at = j + part * half;
            double apart = (double)(made->at[i][at] - made->one[at]);
            one_grad[at] += (double)made->weights[i] * apart / sqrt(square);
            other_grad[at] -= (double)made->weights[i] * apart / sqrt(square);
        }
    }
}

static double *doubles(lab *bench, const float *values, int32_t count) {
    double *out = lab_zeros(bench, count);
    for (int32_t j = 0; j < count; j++) out[j] = (double)values[j];
    return out;
}

static void expect_row(lab *bench, const double *expected, const float *got, int32_t width) {
    lab_expect("modulus: gradient", expected, doubles(bench, got, width), width, 2e-6, 1);
    for (int32_t j = width; j < width + GAP; j++) assert_true(isnan(got[j]));
}

static void expect_gradients(lab *bench, const cpu_modulus *version, rows *made) {
    int32_t width = 2 * made->half;
    double *one_grad = doubles(bench, made->one_grad, width), *others_grad[CPU_MODULUS_ROWS];
    static rows again;
    again = *made;
    for (int32_t i = 0; i < CPU_MODULUS_ROWS; i++) {
        int32_t same = (int32_t)((made->grad_at[i] - made->others_grad[0]) / (2 * MAX_HALF + GAP));
        others_grad[i] = same < i ? others_grad[same] : doubles(bench, made->grad_at[i], width);
        if (i < made->count) add_expected(one_grad, others_grad[i], made, i);
        again.grad_at[i] = again.others_grad[same];
    }
    version->backward(made->one_grad, made->grad_at, made->weights, made->one, made->at, made->count,
                      made->half);
    expect_row(bench, one_grad, made->one_grad, width);
    for (int32_t i = 0; i < CPU_MODULUS_ROWS; i++)
        expect_row(bench, others_grad[i], made->grad_at[i], width);
    for (int32_t i = 0; i < made->count; i++) /* one after the other: the same bits */
        version->backward(again.one_grad, again.grad_at + i, made->weights + i, made->one, made->at + i,
                          1, made->half);
    assert_memory_equal(again.one_grad, made->one_grad, sizeof again.one_grad);
    assert_memory_equal(again.others_grad, made->others_grad, sizeof again.others_grad);
    lab_clear(bench);
}

static void check_gradients(lab *bench, const cpu_modulus *version) {
    static rows made;
    const float ranges[] = {1, 1e-3f, 1e-12f, 1e18f};
    for (int h = 0; h < HALVES; h++)
        for (int32_t count = 1; count <= CPU_MODULUS_ROWS; count++)
            for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
                make_rows(bench, &made, halves[h], count, ranges[r]);
                if (r == 1) { /* a row twice, and one that is the same */
                    made.at[2] = made.at[0];
                    made.grad_at[2] = made.grad_at[0];
                    memcpy(made.others[1], made.one, sizeof made.one);
                }
                expect_gradients(bench, version, &made);
            }
}

static void test_gradients(void **state) {
    (void)state;
    for_versions(check_gradients);
}

/* Distances that are tiny, or too great to be squared, have no gradient; those between have one of the
 * length of the weight; what is not finite is seen in it. */
static void check_gradient_edges(lab *bench, const cpu_modulus *version) {
    static rows made;
    const float tiny = VLP_TINY_DISTANCE;
    const float apart[] = {0, 1e-40f, 1e-20f, tiny, 1.001f * tiny, 2 * tiny, 1e18f, 1e20f, FLT_MAX};
    for (size_t e = 0; e < sizeof apart / sizeof *apart; e++)
        for (int32_t j = 0; j < 17; j++) {
            make_rows(bench, &made, 17, 3, 1);
            set_apart(&made, j % 3, j, apart[e], j % 2);
            expect_gradients(bench, version, &made);
        }
    for (int32_t j = 0; j < 34; j++)
        for (int bad = 0; bad < 2; bad++) {
            make_rows(bench, &made, 17, 2, 1);
            made.others[1][j] = bad ? NAN : INFINITY;
            version->backward(made.one_grad, made.grad_at, made.weights, made.one, made.at, 2, 17);
            assert_false(isfinite(made.one_grad[j]) || isfinite(made.others_grad[1][j]));
            for (int32_t other = 0; other < 34; other++) {
                assert_true(isfinite(made.others_grad[0][other]));
                assert_true(isfinite(made.one_grad[other]) || other % 17 == j % 17);
            }
        }
}

static void test_gradient_edges(void **state) {
    (void)state;
    for_versions(check_gradient_edges);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

enum { ENTITIES = 67, QUERIES = 6, TWINS = 5 };

/* Entities that have the row of entity 3; their neighbours are others in every tile and rest. */
static const int32_t twins[TWINS] = {3, 4, 30, 61, ENTITIES - 1};

typedef struct scored {
    vlp_form form;
    float *q, *table;
    float all[QUERIES * ENTITIES];
} scored;

static void all_scores(lab *bench, const scored *from, float *scores, int32_t first, int32_t entities,
                       int32_t queries) {
    int64_t width = from->form.query_width;
    assert_int_equal(bench->backend->scores->all(bench->compute, scores, &from->form,
                                                 &(vlp_related_rows){.count = queries, .rows = from->q},
                                                 from->table + first * width, entities),
                     VLP_OK);
}

/* Scores of pairs, of fewer entities, of fewer queries and of twins have the bits of all scores. */
static void expect_same_bits(lab *bench, const scored *from) {
    int32_t ids[QUERIES * ENTITIES], order = lab_between(bench, 1, ENTITIES - 1);
    float scores[QUERIES * ENTITIES];
    for (int32_t i = 0; i < QUERIES * ENTITIES; i++) ids[i] = i * order % ENTITIES;
    vlp_pairs pairs = {.batch = QUERIES,
                       .width = ENTITIES,
                       .entities = ids,
                       .table = from->table,
                       .table_rows = ENTITIES};
    assert_int_equal(bench->backend->pairs->scores(
                         bench->compute, scores, &from->form,
                         &(vlp_related_rows){.count = pairs.batch, .rows = from->q}, &pairs),
                     VLP_OK);
    for (int32_t i = 0; i < QUERIES * ENTITIES; i++)
        assert_memory_equal(&scores[i], &from->all[i / ENTITIES * ENTITIES + ids[i]], sizeof *scores);
    for (int32_t first = 0; first < 9; first++) {
        int32_t count = ENTITIES - 3 * first, queries = 1 + first % QUERIES;
        all_scores(bench, from, scores, first, count, queries);
        for (int32_t i = 0; i < queries; i++)
            assert_memory_equal(scores + i * count, from->all + i * ENTITIES + first,
                                (size_t)count * sizeof *scores);
    }
    for (int32_t i = 0; i < QUERIES * TWINS; i++) {
        const float *row = from->all + i / TWINS * ENTITIES;
        assert_memory_equal(row + twins[i % TWINS], row + twins[0], sizeof *row);
    }
}

static void check_scores(lab *bench, const cpu_modulus *version) {
    bench->compute->modulus = version;
    for (int h = 0; h < HALVES; h++)
        for (int threads = 1; threads <= 3; threads++) {
            int32_t width = 2 * halves[h];
            static scored from;
            from.form = (vlp_form){.transform = VLP_ROTATE,
                                   .similarity = VLP_MINUS_MODULUS,
                                   .entity_width = width,
                                   .relation_width = halves[h],
                                   .query_width = width,
                                   .margin = 6};
            double *q = lab_random(bench, QUERIES * width, 1);
            double *table = lab_random(bench, ENTITIES * width, 1);
            for (int t = 1; t < TWINS; t++)
                memcpy(table + twins[t] * width, table + twins[0] * width,
                       (size_t)width * sizeof *table);
            memcpy(q, table + twins[0] * width, (size_t)width * sizeof *q); /* at a distance of 0 */
            from.q = lab_put(bench, q, QUERIES * width);
            from.table = lab_put(bench, table, ENTITIES * width);
            bench->compute->threads = threads;
            all_scores(bench, &from, from.all, 0, ENTITIES, QUERIES);
            assert_true(from.all[twins[0]] == from.form.margin);
            for (int32_t i = 0; i < QUERIES * ENTITIES; i++) {
                double expected = reference_similarity(&from.form, q + i / ENTITIES * width,
                                                       table + i % ENTITIES * width);
                double got = (double)from.all[i];
                lab_expect("all scores", &expected, &got, 1, 1e-6, 6 + halves[h]);
            }
            expect_same_bits(bench, &from);
            lab_clear(bench);
        }
}

static void test_scores(void **state) {
    (void)state;
    for_versions(check_scores);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roots),          cmocka_unit_test(test_sums),
        cmocka_unit_test(test_edges),          cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gradient_edges), cmocka_unit_test(test_scores),
    };
    return cmocka_run_group_tests_name("moduli", tests, NULL, NULL);
}
