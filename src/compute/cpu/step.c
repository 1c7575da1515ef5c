/* The values of a training step, its queries and its check. */
#include <math.h>
#include <string.h>

#include "compute/batch.h"
#include "compute/cpu/cpu.h"

/* Steps are not recorded: a plan is empty. */
struct vlp_plan {
    char nothing;
};

static vlp_plan *plan_new(vlp_compute *compute) {
    (void)compute;
    return vlp_alloc_zero(1, sizeof(vlp_plan));
}

static void plan_free(vlp_compute *compute, vlp_plan *plan) {
    (void)compute;
    vlp_free(plan);
}

static bool step_begin(vlp_compute *compute, vlp_plan *plan, const vlp_step_values *values) {
    (void)plan;
    compute->values = *values;
    return false;
}

static vlp_status step_end(vlp_compute *compute, vlp_plan *plan) {
    (void)compute, (void)plan;
    return VLP_OK;
}

static void check_step(vlp_compute *compute, vlp_step_report *report, const vlp_step_check *check) {
    assert(check->tables >> VLP_MAX_TABLES == 0);
    vlp_step_check_apply(report, check, compute->values.step);
}

/* ---- The batch ----------------------------------------------------------------------------------- */

static void set_references(const vlp_query_tables *tables, const vlp_batch *batch, int64_t query,
                           int64_t i) {
    bool forward = query < tables->triples;
    int64_t row = tables->of_batch ? i : query;
    int32_t count = tables->edges ? tables->edge_counts[row] : 0;
    batch->reference_counts[i] = count;
    for (int32_t j = 0; j < count; j++) {
        vlp_triple edge = tables->items[tables->edges[row * tables->capacity + j].edge];
        batch->reference_heads[i * tables->capacity + j] = forward ? edge.head : edge.tail;
        batch->reference_answers[i * tables->capacity + j] = forward ? edge.tail : edge.head;
    }
}

/* Weights before they are normalized to sum 1. */
static double query_weight(const vlp_query_tables *tables, int64_t query) {
    int64_t triple = query % tables->triples;
    if (!tables->weigh) return 1;
    int64_t answers =
        (int64_t)tables->known_counts[triple] + (int64_t)tables->known_counts[triple + tables->triples];
    return 1 / sqrt((double)(answers + 6));
}

static void choose_batch(vlp_compute *compute, const vlp_query_tables *tables, const vlp_batch *batch) {
    int64_t count = batch->count;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        vlp_drawn drawn = vlp_batch_draw(tables, compute->values.step * count + i);
        int64_t query = drawn.query;
        vlp_triple triple = tables->items[query % tables->triples];
        bool forward = query < tables->triples;
        batch->heads[i] = forward ? triple.head : triple.tail;
        batch->relations[i] = triple.relation + (forward ? 0 : tables->relations);
        batch->answers[i] = forward ? triple.tail : triple.head;
        if (batch->pairs) batch->pairs[i * batch->width] = batch->answers[i];
        double weight = query_weight(tables, query);
        batch->weights[i] = (float)weight;
        sum += weight;
        if (batch->known_begin) {
            batch->known_begin[i] = drawn.known_begin;
            batch->known_end[i] = drawn.known_end;
        }
        if (batch->reference_counts) set_references(tables, batch, query, i);
    }
    for (int64_t i = 0; i < count; i++) batch->weights[i] = (float)((double)batch->weights[i] / sum);
}

/* ---- Columns of a sampled softmax ---------------------------------------------------------------- */

static vlp_status open_columns(vlp_compute *compute, int32_t entities) {
    if (entities <= compute->column_capacity) return VLP_OK;
    vlp_free(compute->column_of);
    compute->column_capacity = 0;
    compute->column_of = vlp_alloc((size_t)entities, sizeof(int32_t));
    if (!compute->column_of) return vlp_fail_memory("the candidates of a softmax");
    memset(compute->column_of, 0xff, (size_t)entities * sizeof(int32_t));
    compute->column_capacity = entities;
    return VLP_OK;
}

static vlp_status choose_columns(vlp_compute *compute, int32_t *out, const vlp_columns *columns,
                                 const vlp_column_options *options) {
    const int32_t *answers = options->answers;
    int32_t count = options->count, entities = options->entities;
    VLP_TRY(open_columns(compute, entities));
    int32_t *column_of = compute->column_of, used = 0;
    for (int32_t i = 0; i < count; i++) {
        if (column_of[answers[i]] < 0) {
            column_of[answers[i]] = used;
            columns->ids[used++] = answers[i];
        }
        columns->answers[i] = column_of[answers[i]];
    }
    int32_t distinct = used, wanted = options->candidates;
    if (wanted > entities - distinct) wanted = entities - distinct;
    for (int64_t i = 0; used < distinct + wanted; i++) {
        int32_t entity = (int32_t)vlp_permuted(i, entities, options->seed ^ VLP_STREAM_CANDIDATES,
                                               (uint64_t)compute->values.step);
        if (column_of[entity] < 0) columns->ids[used++] = entity;
    }
    float correction = wanted > 0 ? logf((float)(entities - distinct) / (float)wanted) : 0;
    for (int32_t i = 0; i < used; i++) columns->offsets[i] = i < distinct ? 0 : correction;
    for (int32_t i = 0; i < distinct; i++) column_of[columns->ids[i]] = -1;
    *out = used;
    return VLP_OK;
}

/* Operations run one after the other, each on all threads: there is nothing to fork. */
static void fork_nothing(vlp_compute *compute) {
    (void)compute;
}

const vlp_step_operations cpu_step_operations = {.plan_new = plan_new,
                                                 .plan_free = plan_free,
                                                 .begin = step_begin,
                                                 .end = step_end,
                                                 .choose_batch = choose_batch,
                                                 .choose_columns = choose_columns,
                                                 .check = check_step,
                                                 .fork_begin = fork_nothing,
                                                 .fork_end = fork_nothing,
                                                 .fork_join = fork_nothing};
