#include "path_lab.h"

#include <stdlib.h>
#include <string.h>

int64_t path_table_size(const vlp_path_form *form, vlp_path_table table) {
    vlp_path_shape shape = vlp_path_table_shape(form, table);
    return shape.rows * shape.width;
}

vlp_path_form path_case_form(lab *bench, const oracle_graph *graph, bool reached_only) {
    static const int32_t dims[] = {8, 16, 24, 32, 40};
    return (vlp_path_form){.layers = lab_between(bench, 1, 4),
                           .dim = dims[lab_between(bench, 0, 4)],
                           .relations = 2 * graph->relations,
                           .reached_only = reached_only};
}

/* Initial values, and biases of some size: scales that differ and shifts that are not 0. */
static void fill_tables(path_case *one, lab *bench) {
    const vlp_path_form *form = &one->world.form;
    uint64_t seed = (uint64_t)lab_between(bench, 0, 1 << 20);
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        vlp_path_shape shape = vlp_path_table_shape(form, (vlp_path_table)table);
        double *values = lab_random(bench, shape.rows * shape.width, 0.3);
        for (int64_t row = 0; row < shape.rows; row++)
            for (int32_t column = 0; column < shape.width; column++) {
                float initial = vlp_path_initial(form, (vlp_path_table)table, row, column, seed);
                double *value = values + row * shape.width + column;
                *value = (double)((float)*value + initial);
            }
        one->world.table[table] = values;
    }
}

void path_case_put(path_case *one, lab *bench) {
    for (int table = 0; table < VLP_PATH_TABLES; table++)
        one->values.table[table] = lab_put(bench, one->world.table[table],
                                           path_table_size(&one->world.form, (vlp_path_table)table));
}

void path_case_open(path_case *one, lab *bench, const oracle_graph *graph, vlp_path_form form) {
    memset(one, 0, sizeof *one);
    one->graph_source = *graph;
    one->world = (path_world){
        .form = form, .entities = graph->entities, .triples = graph->count, .items = graph->triples};
    fill_tables(one, bench);
    path_case_put(one, bench);
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        int64_t size = path_table_size(&form, (vlp_path_table)table);
        one->grads.table[table] = lab_put(bench, lab_random(bench, size, 9), size);
    }
    assert_int_equal(
        vlp_graph_new(&one->rows, graph->triples, graph->count, graph->entities, graph->relations, 1),
        VLP_OK);
    one->host = (vlp_path_graph){.entities = graph->entities,
                                 .relations = 2 * graph->relations,
                                 .triples = graph->count,
                                 .offset = one->rows->offset,
                                 .neighbor = one->rows->neighbor,
                                 .relation = one->rows->relation,
                                 .triple = one->rows->edge};
    vlp_path_graph_measure(&one->host);
    assert_int_equal(vlp_path_keys_make(&one->keys_host, &one->host), VLP_OK);
    size_t slots = 2 * (size_t)graph->count;
    one->graph = one->host;
    one->graph.offset =
        lab_put_bytes(bench, one->host.offset, ((size_t)graph->entities + 1) * sizeof(int64_t));
    one->graph.neighbor = lab_put_bytes(bench, one->host.neighbor, slots * sizeof(int32_t));
    one->graph.relation = lab_put_bytes(bench, one->host.relation, slots * sizeof(int32_t));
    one->graph.triple = lab_put_bytes(bench, one->host.triple, slots * sizeof(int32_t));
    one->model = (vlp_path_model){&one->world.form, &one->values, &one->graph};
}

void path_case_close(path_case *one) {
    oracle_graph_free(&one->graph_source);
    vlp_path_keys_free(&one->keys_host);
    vlp_graph_free(one->rows);
}

/* ---- Steps --------------------------------------------------------------------------------------- */

void path_case_batch(path_case *one, lab *bench, int32_t count, uint64_t seed, int64_t step) {
    const vlp_path_keys *keys = &one->keys_host;
    assert_true(count <= PATH_LAB_KEYS && keys->count > 0);
    int32_t heads[PATH_LAB_KEYS], relations[PATH_LAB_KEYS];
    int64_t answers[PATH_LAB_KEYS], offset[PATH_LAB_KEYS + 1] = {0};
    for (int32_t i = 0; i < count; i++) {
        int32_t key = lab_between(bench, 0, (int32_t)keys->count - 1);
        heads[i] = keys->heads[key];
        relations[i] = keys->relations[key];
        answers[i] = keys->offset[key];
        offset[i + 1] = offset[i] + keys->offset[key + 1] - keys->offset[key];
    }
    int32_t *choices = lab_ids(bench, offset[count], 0, 1);
    uint8_t *hidden = (uint8_t *)lab_zeros(bench, offset[count]);
    for (int32_t i = 0; i < count; i++) {
        for (int64_t j = offset[i]; j < offset[i + 1]; j++) hidden[j] = (uint8_t)choices[j];
        hidden[offset[i] + lab_between(bench, 0, (int32_t)(offset[i + 1] - offset[i]) - 1)] = 1;
        one->keys[i] = (path_oracle_key){.head = heads[i],
                                         .relation = relations[i],
                                         .answers = one->host.neighbor + answers[i],
                                         .hidden = hidden + offset[i],
                                         .count = offset[i + 1] - offset[i],
                                         .seed = vlp_path_key_seed(seed, step, i)};
    }
    size_t n = (size_t)count;
    one->batch = (vlp_path_batch){.count = count,
                                  .heads = lab_put_ids(bench, heads, count),
                                  .relations = lab_put_ids(bench, relations, count),
                                  .answers = lab_put_bytes(bench, answers, n * sizeof *answers),
                                  .offset = lab_put_bytes(bench, offset, (n + 1) * sizeof *offset),
                                  .hidden = lab_put_bytes(bench, hidden, (size_t)offset[count]),
                                  .capacity = offset[count]};
}

void path_case_begin(lab *bench, int64_t step) {
    bench->backend->steps->begin(bench->compute, NULL, &(vlp_step_values){.step = step});
}

double path_case_step(path_case *one, lab *bench, const vlp_path_options *options, int64_t step) {
    double *loss = lab_put_bytes(bench, &(double){-1}, sizeof *loss);
    path_case_begin(bench, step);
    if (bench->backend->paths->step(bench->compute, loss, &one->grads, &one->model, &one->batch,
                                    options) != VLP_OK)
        fail_msg("%s", vlp_error_message());
    return lab_get_double(bench, loss);
}

double *path_case_gradients(const path_case *one, lab *bench, int64_t *count) {
    *count = 0;
    for (int table = 0; table < VLP_PATH_TABLES; table++)
        *count += path_table_size(&one->world.form, (vlp_path_table)table);
    double *all = lab_zeros(bench, *count), *next = all;
    for (int table = 0; table < VLP_PATH_TABLES; table++) {
        int64_t size = path_table_size(&one->world.form, (vlp_path_table)table);
        memcpy(next, lab_get(bench, one->grads.table[table], size), (size_t)size * sizeof *next);
        next += size;
    }
    return all;
}

double *path_case_scores(path_case *one, lab *bench, int32_t head, int32_t relation,
                         const int32_t *removed, int64_t count) {
    int32_t entities = one->world.entities;
    float *scores = lab_put(bench, lab_random(bench, entities, 9), entities);
    vlp_path_queries queries = {.count = 1,
                                .heads = lab_put_ids(bench, &head, 1),
                                .relations = lab_put_ids(bench, &relation, 1)};
    if (removed) {
        queries.removed_offset = lab_put_bytes(bench, (int64_t[]){0, count}, 2 * sizeof(int64_t));
        queries.removed = lab_put_ids(bench, removed, count);
    }
    if (bench->backend->paths->scores(bench->compute, scores, &one->model, &queries) != VLP_OK)
        fail_msg("%s", vlp_error_message());
    return lab_get(bench, scores, entities);
}
