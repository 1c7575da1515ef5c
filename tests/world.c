#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "reference_ops.h"

enum { WIDEST = 16, WIDEST_RELATION = 32 };

const model_kind kinds[KINDS] = {
    {VLP_MODEL_DISTMULT, 0, 7, 0},         {VLP_MODEL_COMPLEX, 0, 5, 0},
    {VLP_MODEL_TRANSE, VLP_NORM_L1, 6, 0}, {VLP_MODEL_TRANSE, VLP_NORM_L2, 6, 0},
    {VLP_MODEL_ROTATE, 0, 4, 0},           {VLP_MODEL_RESCAL, 0, 4, 0},
    {VLP_MODEL_TRANSR, VLP_NORM_L1, 5, 3}, {VLP_MODEL_PAIRRE, 0, 6, 0},
    {VLP_MODEL_TRANSH, VLP_NORM_L2, 5, 0}, {VLP_MODEL_QUATE, 0, 3, 0}};

/* Copies of rows, a row of zeros, biases that are not zero. */
static void spoil_tables(world *w, oracle_random *random) {
    size_t width = (size_t)w->model->form.entity_width;
    float *rows = w->tables[VLP_TABLE_ENTITIES];
    for (int32_t e = 0; e < w->entities; e++) {
        w->copy_of[e] = e > 0 && oracle_chance(random, 3) ? w->copy_of[oracle_below(random, e)] : e;
        if (w->copy_of[e] != e)
            memcpy(rows + (size_t)e * width, rows + (size_t)w->copy_of[e] * width, width * sizeof *rows);
        else if (e == 2)
            memset(rows + (size_t)e * width, 0, width * sizeof *rows);
    }
    for (int id = TABLE_NODE_BIAS; id < w->model->table_count; id++)
        for (int32_t j = 0; j < w->model->tables[id].width; j++)
            w->tables[id][j] = (float)(oracle_below(random, 2001) - 1000) * 4e-4f;
}

static size_t table_bytes(const vlp_table *table) {
    return (size_t)table->rows * (size_t)table->width * sizeof(float);
}

void world_upload(world *w) {
    for (int id = 0; id < TABLES; id++)
        lab_backend()->memory->upload(w->compute, w->model->tables[id].value, w->tables[id],
                                      table_bytes(&w->model->tables[id]));
}

world world_make(const vlp_dataset *dataset, model_kind kind, bool vertical, int32_t threads,
                 oracle_random *random) {
    world w = {.dataset = dataset,
               .entities = vlp_dataset_entity_count(dataset),
               .relations = vlp_dataset_relation_count(dataset)};
    vlp_model_options options = {kind.model, kind.dim, kind.relation_dim, kind.norm, 4.0};
    assert_int_equal(lab_backend()->open(&w.compute, threads), VLP_OK);
    assert_int_equal(
        vlp_model_new(
            &w.model, lab_backend(), w.compute,
            &(vlp_model_shape){options, w.entities, 2 * w.relations, components_of(vertical), {0}},
            false),
        VLP_OK);
    assert_int_equal(vlp_model_init(w.model, random->step + 5, 0), VLP_OK);
    w.copy_of = calloc((size_t)w.entities, sizeof *w.copy_of);
    assert_non_null(w.copy_of);
    for (int id = 0; id < TABLES; id++) {
        size_t bytes = table_bytes(&w.model->tables[id]);
        w.tables[id] = malloc(bytes + 1);
        assert_non_null(w.tables[id]);
        lab_backend()->memory->download(w.compute, w.tables[id], w.model->tables[id].value, bytes);
    }
    spoil_tables(&w, random);
    world_upload(&w);
    return w;
}

void world_free(world *w) {
    vlp_model_free(w->model);
    lab_backend()->close(w->compute);
    for (int id = 0; id < TABLES; id++) free(w->tables[id]);
    free(w->copy_of);
}

/* ---- The oracle's scores ---- */

static void relation_of(double *r, const world *w, int32_t relation) {
    int32_t width = w->model->form.relation_width;
    assert_in_range(width, 1, WIDEST_RELATION);
    for (int32_t j = 0; j < width; j++)
        r[j] = w->tables[VLP_TABLE_RELATIONS][(int64_t)relation * width + j];
}

/* y = W_r1 x + b_r, without b_r when `linear`. */
static void oracle_query(double *y, const world *w, const double *x, int32_t relation, bool linear) {
    double r[WIDEST_RELATION];
    relation_of(r, w, relation);
    reference_query(&w->model->form, y, x, r, linear);
}

static void row_of(double *x, const world *w, int32_t entity) {
    int32_t width = w->model->form.entity_width;
    for (int32_t j = 0; j < width; j++)
        x[j] = w->tables[VLP_TABLE_ENTITIES][(int64_t)entity * width + j];
}

/* k = W_r2 t. */
static void oracle_answer(double *k, const world *w, int32_t entity, int32_t relation) {
    double x[WIDEST], r[WIDEST_RELATION];
    row_of(x, w, entity);
    relation_of(r, w, relation);
    reference_answer(&w->model->form, k, x, r);
}

static double product(const world *w, int id, int32_t row, const double *x, int32_t from) {
    const vlp_table *table = &w->model->tables[id];
    double sum = 0;
    for (int32_t j = from; j < table->width; j++)
        sum += (double)w->tables[id][(int64_t)row * table->width + j] * x[j - from];
    return sum;
}

/* t_N: the mean over the references of W_node k_i + W_edge s_i, biases and all; zeros without one. */
static void oracle_neighbors(double *mean, const world *w, vlp_query query, int32_t most,
                             int32_t per_head) {
    int32_t width = w->model->form.entity_width, count = 0;
    int64_t train;
    const vlp_triple *triples = vlp_dataset_triples(w->dataset, VLP_TRAIN, &train);
    vlp_references *found = NULL;
    const vlp_reference *list = NULL;
    vlp_reference_options options = {1, most, 8, per_head, 1, NULL};
    if (most > 0) {
        assert_int_equal(vlp_references_find(&found, w->dataset, &query, 1, &options), VLP_OK);
        list = vlp_references_get(found, 0, &count);
    }
    memset(mean, 0, WIDEST * sizeof *mean);
    for (int32_t i = 0; i < count; i++) {
        vlp_triple edge = triples[list[i].edge];
        bool forward = query.relation < w->relations;
        double k[WIDEST], s[WIDEST], h[WIDEST], other[WIDEST];
        oracle_answer(k, w, forward ? edge.tail : edge.head, query.relation);
        row_of(h, w, query.entity);
        row_of(other, w, forward ? edge.head : edge.tail);
        for (int32_t j = 0; j < width; j++) h[j] -= other[j];
        oracle_query(s, w, h, query.relation, true);
        for (int32_t j = 0; j < width; j++)
            mean[j] += (product(w, TABLE_NODE, j, k, 0) + w->tables[TABLE_NODE_BIAS][j] +
                        product(w, TABLE_EDGE, j, s, 0) + w->tables[TABLE_EDGE_BIAS][j]) /
                       count;
    }
    vlp_references_free(found);
}

void oracle_scores(double *horizontal, double *vertical, const world *w, vlp_query query, int32_t most,
                   int32_t per_head) {
    double h[WIDEST], q[WIDEST], k[WIDEST], mean[WIDEST], made[WIDEST], length = 0;
    int32_t width = w->model->form.entity_width;
    row_of(h, w, query.entity);
    oracle_query(q, w, h, query.relation, false);
    for (int32_t e = 0; e < w->entities; e++) {
        oracle_answer(k, w, e, query.relation);
        horizontal[e] = reference_similarity(&w->model->form, q, k);
    }
    if (!vertical) return;
    oracle_neighbors(mean, w, query, most, per_head);
    for (int32_t j = 0; j < width; j++) {
        double sum = w->tables[TABLE_OUTPUT_BIAS][j];
        for (int32_t i = 0; i < width; i++)
            sum +=
                mean[i] * w->tables[TABLE_OUTPUT][(int64_t)j * w->model->tables[TABLE_OUTPUT].width + i];
        made[j] = tanh(sum + product(w, TABLE_OUTPUT, j, q, width));
        length += made[j] * made[j];
    }
    for (int32_t e = 0; e < w->entities; e++) {
        double t[WIDEST], dot = 0, size = 0;
        row_of(t, w, e);
        for (int32_t j = 0; j < width; j++) {
            dot += made[j] * t[j];
            size += t[j] * t[j];
        }
        vertical[e] = size > 0 ? dot / sqrt(length * size) : 0;
    }
}
