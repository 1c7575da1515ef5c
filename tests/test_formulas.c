/* The formulas of transforms and similarities, on the host: every gradient against differences of the
 * formula it belongs to, and the promises of compute/transforms/unit.h. That the formulas are those of
 * the models is checked where backends compute them (test_gradients.c). */
#include <math.h>
#include <string.h>

#include "compute/form.h"
#include "oracle.h"
#include "support.h"

enum { COLUMNS = 3, WIDTH = COLUMNS * VLP_MAX_PARTS, RELATION = COLUMNS * VLP_MAX_RELATION_PARTS };

/* ---- Rows of a few units ------------------------------------------------------------------------- */

/* A loss over a transformed row: <dy, y>. */
typedef struct row_case {
    vlp_transform transform;
    bool answer, linear;
    float scale;
    float x[WIDTH], r[RELATION], dy[WIDTH];
} row_case;

/* Zeros behind the last part. */
static void load(float unit[VLP_MAX_PARTS], const float *row, int32_t j, int32_t parts) {
    for (int32_t part = 0; part < VLP_MAX_PARTS; part++)
        unit[part] = part < parts ? row[part * COLUMNS + j] : 0;
}

static void store(float *row, const float *unit, int32_t j, int32_t parts) {
    for (int32_t part = 0; part < parts; part++) row[part * COLUMNS + j] = unit[part];
}

/* p of unit j. */
static void prepared(float *p, const row_case *one, int32_t j) {
    vlp_transform_traits traits = vlp_transform_traits_of(one->transform);
    float r[VLP_MAX_RELATION_PARTS];
    load(r, one->r, j, traits.relation_parts);
    if (traits.prepared > 0)
        vlp_unit_prepare(one->transform, p, r, one->scale);
    else
        memcpy(p, r, (size_t)traits.relation_parts * sizeof *p);
}

static vlp_unit_row sums_of(const row_case *one) {
    vlp_transform_traits traits = vlp_transform_traits_of(one->transform);
    vlp_unit_row row = {.scale = one->scale, .linear = one->linear};
    for (int32_t j = 0; j < COLUMNS; j++) {
        float p[VLP_MAX_PREPARED], unit[VLP_MAX_PARTS], terms[VLP_MAX_SUMS] = {0};
        prepared(p, one, j);
        load(unit, one->x, j, traits.parts);
        vlp_unit_terms(one->transform, terms, unit, p);
        load(unit, one->dy, j, traits.parts);
        vlp_unit_terms_backward(one->transform, terms + traits.sums, unit, p);
        for (int32_t i = 0; i < traits.sums + traits.sums_backward; i++) row.sums[i] += terms[i];
    }
    return row;
}

static void transformed(float *y, const row_case *one) {
    vlp_transform_traits traits = vlp_transform_traits_of(one->transform);
    vlp_unit_row row = sums_of(one);
    for (int32_t j = 0; j < COLUMNS; j++) {
        float p[VLP_MAX_PREPARED], x[VLP_MAX_PARTS], unit[VLP_MAX_PARTS];
        prepared(p, one, j);
        load(x, one->x, j, traits.parts);
        if (one->answer)
            vlp_unit_answer(one->transform, unit, x, p, &row);
        else
            vlp_unit_query(one->transform, unit, x, p, &row);
        store(y, unit, j, traits.parts);
    }
}

static double loss_of(const row_case *one) {
    float y[WIDTH];
    double sum = 0;
    transformed(y, one);
    for (int32_t i = 0; i < COLUMNS * vlp_transform_traits_of(one->transform).parts; i++)
        sum += (double)one->dy[i] * (double)y[i];
    return sum;
}

/* Added to what is there. */
static void gradients(float *x_grad, float *r_grad, const row_case *one) {
    vlp_transform_traits traits = vlp_transform_traits_of(one->transform);
    vlp_unit_row row = sums_of(one);
    for (int32_t j = 0; j < COLUMNS; j++) {
        float p[VLP_MAX_PREPARED], x[VLP_MAX_PARTS], dy[VLP_MAX_PARTS];
        float dx[VLP_MAX_PARTS], dr[VLP_MAX_RELATION_PARTS];
        prepared(p, one, j);
        load(x, one->x, j, traits.parts);
        load(dy, one->dy, j, traits.parts);
        load(dx, x_grad, j, traits.parts);
        load(dr, r_grad, j, traits.relation_parts);
        if (one->answer) {
            vlp_unit_answer_grad_tail(one->transform, dx, dy, p, &row);
            vlp_unit_answer_grad_relation(one->transform, dr, dy, x, p, &row);
        } else {
            vlp_unit_query_grad_head(one->transform, dx, dy, p, &row);
            vlp_unit_query_grad_relation(one->transform, dr, dy, x, p, &row);
        }
        store(x_grad, dx, j, traits.parts);
        store(r_grad, dr, j, traits.relation_parts);
    }
}

/* ---- Slopes -------------------------------------------------------------------------------------- */

/* Fourth order, with steps that fp32 holds exactly. */
static double slope(float *at, double (*loss)(const void *), const void *of) {
    const float step = 0x1p-5f, middle = *at;
    double sum = 0;
    const double weights[] = {8, -1};
    for (int i = 0; i < 2; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            *at = middle + (float)(sign * (i + 1)) * step;
            sum += weights[i] * sign * loss(of);
        }
    *at = middle;
    return sum / (12 * (double)step);
}

static double loss_of_case(const void *of) {
    return loss_of(of);
}

static void check_slope(double found, double expected, const char *what, int32_t kind) {
    if (fabs(found - expected) > 2e-3 * (1 + fabs(expected)))
        fail_msg("transform or similarity %d, %s: slope %.6g, gradient %.6g", kind, what, expected,
                 found);
}

static void fill(oracle_random *random, float *out, int32_t count) { /* within +-1 */
    for (int32_t i = 0; i < count; i++) out[i] = (float)oracle_below(random, 2049) / 1024 - 1;
}

/* ---- Tests --------------------------------------------------------------------------------------- */

static const vlp_transform unit_transforms[] = {
#define ENUMERATOR(NAME, ...) VLP_##NAME,
    VLP_UNIT_TRANSFORMS(ENUMERATOR, )
#undef ENUMERATOR
};
enum { TRANSFORMS = sizeof unit_transforms / sizeof *unit_transforms };

static row_case random_case(oracle_random *random, vlp_transform transform, int32_t kind) {
    row_case one = {.transform = transform, .answer = kind == 2, .linear = kind >= 1, .scale = 1.75f};
    fill(random, one.x, WIDTH);
    fill(random, one.r, RELATION);
    fill(random, one.dy, WIDTH);
    /* Away from relations without a direction, near which differences are no slopes. */
    for (int32_t i = 0; i < RELATION; i++) one.r[i] += copysignf(0.5f, one.r[i]);
    return one;
}

static void test_transforms(void **state) {
    (void)state;
    oracle_random from = {.seed = 11}, *random = &from;
    for (int32_t round = 0; round < 20 * TRANSFORMS * 3; round++) {
        vlp_transform transform = unit_transforms[round % TRANSFORMS];
        vlp_transform_traits traits = vlp_transform_traits_of(transform);
        row_case one = random_case(random, transform, round / TRANSFORMS % 3);
        float x_grad[WIDTH] = {0}, r_grad[RELATION] = {0};
        gradients(x_grad, r_grad, &one);
        for (int32_t i = 0; i < COLUMNS * traits.parts; i++)
            check_slope(x_grad[i], slope(one.x + i, loss_of_case, &one), "x", (int32_t)transform);
        for (int32_t i = 0; i < COLUMNS * traits.relation_parts; i++)
            check_slope(r_grad[i], slope(one.r + i, loss_of_case, &one), "r", (int32_t)transform);
    }
}

/* Without b_r both transforms are linear in x: twice the row gives twice the result. Gradients are added
 * to what is there. */
static void test_promises(void **state) {
    (void)state;
    oracle_random from = {.seed = 11}, *random = &from;
    for (int32_t round = 0; round < 8 * TRANSFORMS; round++) {
        vlp_transform transform = unit_transforms[round % TRANSFORMS];
        int32_t width = COLUMNS * vlp_transform_traits_of(transform).parts;
        row_case one = random_case(random, transform, 1 + round / TRANSFORMS % 2);
        float y[WIDTH], twice[WIDTH], grads[2][WIDTH + RELATION] = {{0}};
        transformed(y, &one);
        bool changed = memcmp(y, one.x, (size_t)width * sizeof *y) != 0;
        if (one.answer) assert_int_equal(changed, vlp_transform_traits_of(transform).answers);
        for (int32_t i = 0; i < width; i++) one.x[i] *= 2;
        transformed(twice, &one);
        for (int32_t i = 0; i < width; i++) assert_true(twice[i] == 2 * y[i]);
        for (int32_t i = 0; i < WIDTH + RELATION; i++) grads[1][i] = 5;
        gradients(grads[0], grads[0] + WIDTH, &one);
        gradients(grads[1], grads[1] + WIDTH, &one);
        for (int32_t i = 0; i < WIDTH + RELATION; i++)
            assert_true(fabsf(grads[1][i] - grads[0][i] - 5) < 1e-5f);
    }
}

/* A relation of zeros has no direction: results and gradients stay finite. */
static void test_no_direction(void **state) {
    (void)state;
    oracle_random from = {.seed = 11}, *random = &from;
    for (int32_t round = 0; round < 3 * TRANSFORMS; round++) {
        row_case one = random_case(random, unit_transforms[round % TRANSFORMS], round / TRANSFORMS);
        float x_grad[WIDTH] = {0}, r_grad[RELATION] = {0};
        memset(one.r, 0, sizeof one.r);
        gradients(x_grad, r_grad, &one);
        assert_true(isfinite(loss_of(&one)));
        for (int32_t i = 0; i < WIDTH; i++) assert_true(isfinite(x_grad[i]));
        for (int32_t i = 0; i < RELATION; i++) assert_true(isfinite(r_grad[i]));
    }
}

/* ---- Similarities -------------------------------------------------------------------------------- */

typedef struct similarity_case {
    vlp_similarity similarity;
    float q[WIDTH], k[WIDTH], weight;
} similarity_case;

static float sum_of(const similarity_case *one) {
    float sum = 0;
    int32_t parts = vlp_similarity_parts(one->similarity);
    for (int32_t j = 0; j < COLUMNS; j++) {
        float q[VLP_MAX_PARTS], k[VLP_MAX_PARTS];
        load(q, one->q, j, parts);
        load(k, one->k, j, parts);
        sum += vlp_similarity_term(one->similarity, q, k);
    }
    return sum;
}

static double similarity_loss(const void *of) {
    const similarity_case *one = of;
    return (double)(one->weight * vlp_similarity_score(one->similarity, sum_of(one), 3));
}

/* The gradient of k, or, with the two exchanged, of q. */
static void similarity_gradients(float *grad, const similarity_case *one, const float *from,
                                 const float *to) {
    int32_t parts = vlp_similarity_parts(one->similarity);
    float w = vlp_similarity_weight(one->similarity, one->weight, sum_of(one));
    for (int32_t j = 0; j < COLUMNS; j++) {
        float a[VLP_MAX_PARTS], b[VLP_MAX_PARTS], g[VLP_MAX_PARTS] = {0};
        load(a, from, j, parts);
        load(b, to, j, parts);
        vlp_similarity_backward(one->similarity, g, w, a, b);
        store(grad, g, j, parts);
    }
}

/* Both sides at once give the same as each by itself. */
static void check_both(const similarity_case *one, const float *q_grad, const float *k_grad) {
    int32_t parts = vlp_similarity_parts(one->similarity);
    float w = vlp_similarity_weight(one->similarity, one->weight, sum_of(one));
    for (int32_t j = 0; j < COLUMNS; j++) {
        float q[VLP_MAX_PARTS], k[VLP_MAX_PARTS];
        float dq[VLP_MAX_PARTS] = {3, 3, 3, 3}, dk[VLP_MAX_PARTS] = {5, 5, 5, 5};
        load(q, one->q, j, parts);
        load(k, one->k, j, parts);
        vlp_similarity_backward_both(one->similarity, dq, dk, w, q, k);
        for (int32_t part = 0; part < parts; part++) {
            assert_true(fabsf(dq[part] - 3 - q_grad[part * COLUMNS + j]) < 1e-5f);
            assert_true(fabsf(dk[part] - 5 - k_grad[part * COLUMNS + j]) < 1e-5f);
        }
    }
}

static void test_similarities(void **state) {
    (void)state;
    oracle_random from = {.seed = 11}, *random = &from;
    for (int32_t round = 0; round < 80; round++) {
        similarity_case one = {.similarity = (vlp_similarity)(round % 4), .weight = 1.5f};
        int32_t width = COLUMNS * vlp_similarity_parts(one.similarity);
        fill(random, one.q, WIDTH);
        fill(random, one.k, WIDTH);
        /* Away from the kinks of a norm. */
        for (int32_t i = 0; i < width; i++) one.k[i] += copysignf(0.5f, one.k[i] - one.q[i]);
        float k_grad[WIDTH], q_grad[WIDTH];
        similarity_gradients(k_grad, &one, one.q, one.k);
        similarity_gradients(q_grad, &one, one.k, one.q);
        check_both(&one, q_grad, k_grad);
        for (int32_t i = 0; i < width; i++) {
            check_slope(k_grad[i], slope(one.k + i, similarity_loss, &one), "k",
                        (int32_t)one.similarity);
            check_slope(q_grad[i], slope(one.q + i, similarity_loss, &one), "q",
                        (int32_t)one.similarity);
        }
    }
}

/* The gradient of a distance of zero is zero. */
static void test_equal_rows(void **state) {
    (void)state;
    oracle_random from = {.seed = 11}, *random = &from;
    for (int similarity = VLP_MINUS_L1; similarity <= VLP_MINUS_MODULUS; similarity++) {
        similarity_case one = {.similarity = (vlp_similarity)similarity, .weight = 1};
        float grad[WIDTH] = {0};
        fill(random, one.q, WIDTH);
        memcpy(one.k, one.q, sizeof one.k);
        assert_true(similarity_loss(&one) == 3);
        similarity_gradients(grad, &one, one.q, one.k);
        for (int32_t i = 0; i < WIDTH; i++) assert_true(grad[i] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transforms),   cmocka_unit_test(test_promises),
        cmocka_unit_test(test_no_direction), cmocka_unit_test(test_similarities),
        cmocka_unit_test(test_equal_rows),
    };
    return cmocka_run_group_tests_name("formulas", tests, NULL, NULL);
}
