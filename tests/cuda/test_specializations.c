/* What the CUDA backend computes by other instructions than the formulas' (compute/similarity.h,
 * compute/transforms.h), against the formulas on the host: approximate roots, packed bf16, sums with
 * explicit rounding, cosine and sine at once. Rows have a single unit, so that no sum hides an error;
 * and, for the transforms, several units and sums over the row.
 *
 * Skipped without a GPU, unless VLP_TEST_DEVICE asks for one. */
#include <math.h>
#include <string.h>

#include "lab.h"

enum { SEED = 90, COUNT = 4096 };

static const vlp_backend *gpu;

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static const vlp_similarity similarities[] = {VLP_DOT, VLP_MINUS_L1, VLP_MINUS_L2, VLP_MINUS_MODULUS};
enum { SIMILARITIES = sizeof similarities / sizeof *similarities };

/* ---- Units of similarities ----------------------------------------------------------------------- */

/* COUNT queries of one unit, each with an entity of its own. */
typedef struct unit_case {
    vlp_form form;
    int32_t parts;
    double *q, *k, *weights; /* (COUNT, parts), (COUNT, parts), (COUNT) */
} unit_case;

/* fp32 numbers, of 2^-range .. 2^range. */
static double magnitude(lab *bench, int32_t range) {
    double sign = lab_between(bench, 0, 1) ? 1 : -1;
    double value = 1 + lab_between(bench, 0, (1 << 20) - 1) * 0x1p-20;
    return sign * ldexp(value, lab_between(bench, -range, range));
}

/* Differences of every size: zero, far below VLP_TINY_DISTANCE and just above it among them. Numbers of
 * bf16 are of similar sizes, so that differences are rounded, not absorbed. */
static unit_case make_units(lab *bench, vlp_similarity similarity, bool bf16) {
    int32_t parts = vlp_similarity_parts(similarity), size = COUNT * parts;
    unit_case one = {.form = {.transform = parts == 2 ? VLP_ROTATE : VLP_TRANSLATE,
                              .similarity = similarity,
                              .entity_width = parts,
                              .relation_width = 1,
                              .query_width = parts},
                     .parts = parts,
                     .q = lab_zeros(bench, size),
                     .k = lab_zeros(bench, size),
                     .weights = lab_random(bench, COUNT, 1)};
    for (int32_t i = 0; i < size; i++) {
        int32_t unit = i / parts, kind = unit % 8;
        one.q[i] = magnitude(bench, bf16 ? 3 : 20);
        one.k[i] = kind == 0 ? one.q[i] : kind == 1 ? 0 : magnitude(bench, bf16 ? 3 : 20);
        if (kind == 2) one.q[i] = one.k[i] + magnitude(bench, 0) * 1e-3;
        if (kind == 3) one.q[i] = magnitude(bench, 0) * 1e-15, one.k[i] = 0;
        if (kind == 4) one.q[i] = magnitude(bench, 0) * 1e-10, one.k[i] = 0;
        one.q[i] = bf16 ? lab_bf16(one.q[i]) : (double)(float)one.q[i];
        one.k[i] = bf16 ? lab_bf16(one.k[i]) : (double)(float)one.k[i];
    }
    return one;
}

/* By the formulas, in fp32. */
typedef struct unit_result {
    double *scores, *q_grad, *k_grad;
} unit_result;

static unit_result expect_units(lab *bench, const unit_case *one) {
    vlp_similarity similarity = one->form.similarity;
    int32_t parts = one->parts;
    unit_result out = {lab_zeros(bench, COUNT), lab_zeros(bench, COUNT * parts),
                       lab_zeros(bench, COUNT * parts)};
    for (int32_t i = 0; i < COUNT; i++) {
        float q[2] = {0}, k[2] = {0}, q_grad[2] = {0}, k_grad[2] = {0};
        for (int32_t part = 0; part < parts; part++) {
            q[part] = (float)one->q[i * parts + part];
            k[part] = (float)one->k[i * parts + part];
        }
        float sum = vlp_similarity_term(similarity, q, k);
        float w = vlp_similarity_weight(similarity, (float)one->weights[i], sum);
        out.scores[i] = (double)vlp_similarity_score(similarity, sum, one->form.margin);
        vlp_similarity_backward(similarity, k_grad, w, q, k);
        vlp_similarity_backward(similarity, q_grad, w, k, q);
        for (int32_t part = 0; part < parts; part++) {
            out.q_grad[i * parts + part] = (double)q_grad[part];
            out.k_grad[i * parts + part] = (double)k_grad[part];
        }
    }
    return out;
}

static unit_result run_units(lab *bench, const unit_case *one, bool bf16) {
    int32_t parts = one->parts, size = COUNT * parts;
    int32_t *ids = lab_ids(bench, COUNT, 0, 0);
    for (int32_t i = 0; i < COUNT; i++) ids[i] = i;
    float *table = lab_put(bench, one->k, size);
    vlp_pairs pairs = {.batch = COUNT,
                       .width = 1,
                       .entities = lab_put_ids(bench, ids, COUNT),
                       .table = table,
                       .table_rows = COUNT,
                       .layout = vlp_bf16_layout_of(parts, 1)};
    if (bf16) {
        vlp_bf16 *copy = lab_bf16_places(bench, &pairs.layout, COUNT);
        gpu->bf16->convert_rows(bench->compute, copy, &pairs.layout, table, parts, COUNT);
        pairs.bf16 = copy;
    }
    vlp_related_rows queries = {.count = COUNT, .rows = lab_put(bench, one->q, size)};
    float *scores = lab_put(bench, one->weights, COUNT);
    float *q_grad = lab_put(bench, lab_random(bench, size, 9), size);
    float *k_grad = lab_put(bench, lab_zeros(bench, size), size);
    vlp_pair_gradients out = {.queries = q_grad, .entities = {k_grad, NULL, COUNT, parts}};
    must(gpu->pairs->scores(bench->compute, scores, &one->form, &queries, &pairs));
    must(gpu->pairs->backward(bench->compute, &out, &one->form, lab_put(bench, one->weights, COUNT),
                              &queries, &pairs));
    return (unit_result){lab_get(bench, scores, COUNT), lab_get(bench, q_grad, size),
                         lab_get(bench, k_grad, size)};
}

/* Approximate roots are within an ulp or two of fp32. */
static void test_units(void **state) {
    (void)state;
    if (!gpu) skip();
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED);
    for (int s = 0; s < SIMILARITIES; s++) {
        unit_case one = make_units(&bench, similarities[s], false);
        unit_result expected = expect_units(&bench, &one), got = run_units(&bench, &one, false);
        int64_t size = (int64_t)COUNT * one.parts;
        lab_expect("a unit's score", expected.scores, got.scores, COUNT, 1e-6, 1e-30);
        lab_expect("a unit's query", expected.q_grad, got.q_grad, size, 1e-6, 1e-6);
        lab_expect("a unit's entity", expected.k_grad, got.k_grad, size, 1e-6, 1e-6);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* A difference in bf16 is rounded to 2^-9 of itself, and so are squares and their sum; a root halves
 * their error. Products of two numbers in bf16 are exact in fp32. */
static void test_bf16_units(void **state) {
    (void)state;
    if (!gpu) skip();
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED + 1);
    for (int s = 0; s < SIMILARITIES; s++) {
        unit_case one = make_units(&bench, similarities[s], true);
        unit_result expected = expect_units(&bench, &one), got = run_units(&bench, &one, true);
        int64_t size = (int64_t)COUNT * one.parts;
        double tolerance = similarities[s] == VLP_DOT ? 1e-6 : 0x1p-7;
        lab_expect("a score in bf16", expected.scores, got.scores, COUNT, tolerance, 1e-16);
        lab_expect("a query in bf16", expected.q_grad, got.q_grad, size, tolerance, 1);
        lab_expect("an entity in bf16", expected.k_grad, got.k_grad, size, tolerance, 1);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* ---- Tiles --------------------------------------------------------------------------------------- */

/* Queries of one unit with all entities: the sums with explicit rounding. Of a dot product they are used
 * where the relation transforms answers: PAIR by ones. */
static void check_tiles(lab *bench, vlp_similarity similarity) {
    enum { QUERIES = 70, ENTITIES = 300 };
    unit_case one = make_units(bench, similarity, false);
    int32_t parts = one.parts, *relations = lab_ids(bench, QUERIES, 0, 0);
    double *expected = lab_zeros(bench, (int64_t)QUERIES * ENTITIES), *ones = lab_zeros(bench, 4);
    for (int i = 0; i < 4; i++) ones[i] = 1;
    if (similarity == VLP_DOT) one.form.transform = VLP_PAIR, one.form.relation_width = 2;
    for (int32_t i = 0; i < QUERIES; i++)
        for (int32_t e = 0; e < ENTITIES; e++) {
            float q[2] = {0}, k[2] = {0};
            for (int32_t part = 0; part < parts; part++) {
                q[part] = (float)one.q[i * parts + part];
                k[part] = (float)one.k[e * parts + part];
            }
            expected[i * ENTITIES + e] = (double)vlp_similarity_score(
                similarity, vlp_similarity_term(similarity, q, k), one.form.margin);
        }
    float *scores = lab_put(bench, expected, (int64_t)QUERIES * ENTITIES);
    gpu->memory->zero(bench->compute, scores, (size_t)QUERIES * ENTITIES * sizeof *scores);
    vlp_related_rows queries = {.count = QUERIES,
                                .rows = lab_put(bench, one.q, (int64_t)QUERIES * parts),
                                .relations = lab_put_ids(bench, relations, QUERIES),
                                .relation_table = lab_put(bench, ones, 4),
                                .relation_count = 1};
    must(gpu->scores->all(bench->compute, scores, &one.form, &queries,
                          lab_put(bench, one.k, (int64_t)ENTITIES * parts), ENTITIES));
    lab_expect("a tile's score", expected, lab_get(bench, scores, (int64_t)QUERIES * ENTITIES),
               (int64_t)QUERIES * ENTITIES, 1e-6, 1e-30);
}

static void test_tiles(void **state) {
    (void)state;
    if (!gpu) skip();
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED + 2);
    for (int s = 0; s < SIMILARITIES; s++) {
        check_tiles(&bench, similarities[s]);
        lab_clear(&bench);
    }
    lab_close(&bench);
}

/* ---- Transforms ---------------------------------------------------------------------------------- */

/* Rows of `columns` units, each with a relation of its own. */
typedef struct row_case {
    vlp_form form;
    vlp_transform_traits traits;
    int32_t rows, columns;
    bool linear, answer;
    double *x, *r, *dy; /* (rows, entity_width), (rows, relation_width), (rows, query_width) */
} row_case;

static row_case make_rows(lab *bench, vlp_transform transform, int32_t rows, int32_t columns) {
    vlp_transform_traits traits = vlp_transform_traits_of(transform);
    int32_t width = traits.parts * columns, relation = traits.relation_parts * columns;
    row_case one = {.form = {.transform = transform,
                             .similarity = VLP_DOT,
                             .entity_width = width,
                             .relation_width = relation,
                             .query_width = width,
                             .phase_scale = 1.75f},
                    .traits = traits,
                    .rows = rows,
                    .columns = columns,
                    .x = lab_random(bench, (int64_t)rows * width, 1),
                    .r = lab_random(bench, (int64_t)rows * relation, 3),
                    .dy = lab_random(bench, (int64_t)rows * width, 1)};
    /* Large phases, which are reduced the slow way; and relations of zeros, which have no direction. */
    for (int64_t i = 0; i < (int64_t)rows * relation; i++)
        if (transform == VLP_ROTATE && i % 7 == 0) one.r[i] = (double)(float)(one.r[i] * 1e5);
    for (int32_t i = 0; i < relation; i++) one.r[i] = 0;
    return one;
}

static void load(float *unit, const double *row, int32_t j, int32_t parts, int32_t columns) {
    for (int32_t part = 0; part < parts; part++) unit[part] = (float)row[part * columns + j];
}

static void add(double *row, const float *unit, int32_t j, int32_t parts, int32_t columns) {
    for (int32_t part = 0; part < parts; part++) row[part * columns + j] += (double)unit[part];
}

/* p of unit j of row i. */
static void prepared(float *p, const row_case *one, int32_t i, int32_t j) {
    float r[VLP_MAX_RELATION_PARTS] = {0};
    int32_t parts = one->traits.relation_parts;
    load(r, one->r + (int64_t)i * one->form.relation_width, j, parts, one->columns);
    if (one->traits.prepared > 0)
        vlp_unit_prepare(one->form.transform, p, r, one->form.phase_scale);
    else
        memcpy(p, r, (size_t)parts * sizeof *p);
}

static vlp_unit_row sums_of(const row_case *one, int32_t i) {
    const vlp_transform_traits *traits = &one->traits;
    vlp_transform transform = one->form.transform;
    int64_t first = (int64_t)i * one->form.entity_width;
    double sums[VLP_MAX_SUMS] = {0};
    vlp_unit_row row = {.scale = one->form.phase_scale, .linear = one->linear};
    for (int32_t j = 0; j < one->columns; j++) {
        float p[VLP_MAX_PREPARED] = {0}, unit[VLP_MAX_PARTS] = {0}, terms[VLP_MAX_SUMS] = {0};
        prepared(p, one, i, j);
        load(unit, one->x + first, j, traits->parts, one->columns);
        vlp_unit_terms(transform, terms, unit, p);
        load(unit, one->dy + first, j, traits->parts, one->columns);
        vlp_unit_terms_backward(transform, terms + traits->sums, unit, p);
        for (int32_t s = 0; s < traits->sums + traits->sums_backward; s++) sums[s] += (double)terms[s];
    }
    for (int32_t s = 0; s < VLP_MAX_SUMS; s++) row.sums[s] = (float)sums[s];
    return row;
}

/* y of the query, and the gradients of x and r, added to what is there; by the formulas. */
typedef struct row_result {
    double *y, *x_grad, *r_grad;
} row_result;

static void expect_row(const row_result *out, const row_case *one, int32_t i) {
    const vlp_transform_traits *traits = &one->traits;
    vlp_transform transform = one->form.transform;
    int64_t first = (int64_t)i * one->form.entity_width, r_first = (int64_t)i * one->form.relation_width;
    vlp_unit_row row = sums_of(one, i);
    for (int32_t j = 0; j < one->columns; j++) {
        float p[VLP_MAX_PREPARED] = {0}, y[VLP_MAX_PARTS] = {0};
        float x[VLP_MAX_PARTS] = {0}, dy[VLP_MAX_PARTS] = {0};
        float dx[VLP_MAX_PARTS] = {0}, dr[VLP_MAX_RELATION_PARTS] = {0};
        prepared(p, one, i, j);
        load(x, one->x + first, j, traits->parts, one->columns);
        load(dy, one->dy + first, j, traits->parts, one->columns);
        vlp_unit_query(transform, y, x, p, &row);
        if (one->answer) {
            vlp_unit_answer_grad_tail(transform, dx, dy, p, &row);
            vlp_unit_answer_grad_relation(transform, dr, dy, x, p, &row);
        } else {
            vlp_unit_query_grad_head(transform, dx, dy, p, &row);
            vlp_unit_query_grad_relation(transform, dr, dy, x, p, &row);
        }
        add(out->y + first, y, j, traits->parts, one->columns);
        add(out->x_grad + first, dx, j, traits->parts, one->columns);
        add(out->r_grad + r_first, dr, j, traits->relation_parts, one->columns);
    }
}

static void check_rows(lab *bench, const row_case *one) {
    const vlp_form *form = &one->form;
    int64_t size = (int64_t)one->rows * form->entity_width;
    int64_t r_size = (int64_t)one->rows * form->relation_width;
    double *x_before = lab_random(bench, size, 1), *r_before = lab_random(bench, r_size, 1);
    int32_t *ids = lab_ids(bench, one->rows, 0, 0);
    for (int32_t i = 0; i < one->rows; i++) ids[i] = one->rows - 1 - i;
    double *r = lab_zeros(bench, r_size), *r_grad = lab_zeros(bench, r_size);
    row_result expected = {lab_zeros(bench, size), lab_zeros(bench, size), lab_zeros(bench, r_size)};
    for (int32_t i = 0; i < one->rows; i++) expect_row(&expected, one, i);
    for (int64_t i = 0; i < size; i++) expected.x_grad[i] += x_before[i];
    for (int64_t i = 0; i < r_size; i++) { /* row i has relation rows - 1 - i */
        int64_t at =
            (one->rows - 1 - i / form->relation_width) * form->relation_width + i % form->relation_width;
        r[at] = one->r[i];
        r_grad[at] = r_before[at] + expected.r_grad[i];
    }
    float *y = lab_put(bench, x_before, size), *x_grad = lab_put(bench, x_before, size);
    float *r_grad_on = lab_put(bench, r_before, r_size);
    vlp_related_rows rows = {.count = one->rows,
                             .rows = lab_put(bench, one->x, size),
                             .relations = lab_put_ids(bench, ids, one->rows),
                             .relation_table = lab_put(bench, r, r_size),
                             .relation_count = one->rows};
    const float *dy = lab_put(bench, one->dy, size);
    if (one->answer) {
        must(gpu->transform->answer_backward(bench->compute, x_grad, r_grad_on, form, dy, &rows));
    } else {
        gpu->transform->query(bench->compute, y, form, &rows, one->linear);
        must(gpu->transform->query_backward(bench->compute, x_grad, r_grad_on, form, dy, &rows,
                                            one->linear));
        lab_expect("a query by units", expected.y, lab_get(bench, y, size), size, 4e-6, 1);
    }
    lab_expect("the gradient of a row", expected.x_grad, lab_get(bench, x_grad, size), size, 4e-6, 1);
    lab_expect("the gradient of a relation", r_grad, lab_get(bench, r_grad_on, r_size), r_size, 2e-5, 1);
}

static void test_transforms(void **state) {
    (void)state;
    if (!gpu) skip();
    static const vlp_transform transforms[] = {
#define ENUMERATOR(NAME, ...) VLP_##NAME,
        VLP_UNIT_TRANSFORMS(ENUMERATOR, )
#undef ENUMERATOR
    };
    static const int32_t shapes[][2] = {{300, 1}, {67, 4}, {33, 130}, {5, 517}};
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED + 3);
    for (size_t t = 0; t < sizeof transforms / sizeof *transforms; t++)
        for (int s = 0; s < 4; s++)
            for (int kind = 0; kind < 3; kind++) {
                row_case one = make_rows(&bench, transforms[t], shapes[s][0], shapes[s][1]);
                one.linear = kind > 0;
                one.answer = kind == 2;
                check_rows(&bench, &one);
                lab_clear(&bench);
            }
    lab_close(&bench);
}

int main(void) {
    gpu = lab_gpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_bf16_units),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_transforms),
    };
    return cmocka_run_group_tests_name("cuda specializations", tests, NULL, NULL);
}
