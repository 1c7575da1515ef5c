/* The scores of the vertical component, f_c: the cosine of t', which the aggregator makes from the
 * query's references, with every entity's embedding. A product gives the cosine times the entity's
 * norm; its reader multiplies by the inverse norms. */
#include <string.h>

#include "eval/component.h"
#include "graph/reference.h"

typedef struct vertical_scores {
    const vlp_model *model;
    const vlp_graph *graph;
    vlp_reference_options references;
    vlp_reference_rule rule;
    vlp_reference_finder *finder; /* made when it is first used */
    vlp_references *found;        /* of the last queries; NULL where none were looked for */
    float *inverse_norms;         /* (entities) */
    float *host_inverse_norms;    /* (entities) */
    int32_t columns;
    float *scores; /* (batch, columns) */
    /* Of given entities; allocated when they are first asked for. */
    float *rows, *norms; /* (columns, d_e), (columns) */
    vlp_aggregator_work aggregator;
} vertical_scores;

/* Per query: the number of references, their head entities and their answers. Arrays of a batch, one
 * after the other. */
typedef struct reference_ids {
    int32_t *counts, *heads, *answers;
} reference_ids;

static int32_t ids_per_query(const vlp_scorer_options *options) {
    return 1 + 2 * options->references;
}

static reference_ids divide(const vertical_scores *mine, int32_t *ids, int64_t count) {
    return (reference_ids){ids, ids + count, ids + count * (1 + mine->references.count)};
}

static void close_scores(void *state) {
    vertical_scores *mine = state;
    if (!mine) return;
    const vlp_model *model = mine->model;
    void *there[] = {mine->scores, mine->inverse_norms, mine->rows, mine->norms};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) model->backend->memory->release(model->compute, there[i]);
    vlp_aggregator_work_free(&mine->aggregator, model);
    vlp_references_free(mine->found);
    vlp_reference_finder_free(mine->finder);
    vlp_free(mine->host_inverse_norms);
    vlp_free(mine);
}

static vlp_status open_scores(void **state, const vlp_scorer_options *options) {
    const vlp_model *model = options->model;
    size_t entities = (size_t)model->entities;
    vertical_scores *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("scores");
    mine->model = model;
    mine->graph = options->graph;
    mine->columns = options->columns;
    mine->references = (vlp_reference_options)VLP_REFERENCE_OPTIONS_INIT;
    mine->references.count = options->references;
    mine->references.per_head = options->references_per_head;
    mine->rule = options->references_rule;
    mine->references.threads = options->threads;
    mine->host_inverse_norms = vlp_alloc_zero(entities, sizeof(float));
    mine->inverse_norms = model->backend->memory->allocate(model->compute, entities * sizeof(float));
    mine->scores = model->backend->memory->allocate(
        model->compute, (size_t)options->batch * (size_t)options->columns * sizeof(float));
    if (!mine->host_inverse_norms || !mine->inverse_norms || !mine->scores)
        return vlp_fail_memory("scores");
    model->backend->rows->inverse_norms(model->compute, mine->inverse_norms,
                                        vlp_model_entities(model)->value, model->entities,
                                        model->form.entity_width);
    VLP_TRY(model->backend->memory->download(model->compute, mine->host_inverse_norms,
                                             mine->inverse_norms, entities * sizeof(float)));
    return vlp_aggregator_work_new(&mine->aggregator, model, options->batch, false);
}

/* ---- References ---------------------------------------------------------------------------------- */

static vlp_status find_references(void *state, int32_t *ids, const vlp_query *queries, int64_t count) {
    vertical_scores *mine = state;
    int32_t capacity = mine->references.count;
    reference_ids out = divide(mine, ids, count);
    vlp_references_free(mine->found);
    mine->found = NULL;
    if (capacity > 0 && !mine->finder) {
        VLP_TRY(vlp_reference_finder_new(&mine->finder, mine->graph, &mine->references));
        VLP_TRY(vlp_reference_finder_set(mine->finder, &mine->rule));
    }
    if (capacity > 0) VLP_TRY(vlp_reference_finder_find(&mine->found, mine->finder, queries, count));
    for (int64_t i = 0; i < count; i++) {
        int32_t size = 0;
        const vlp_reference *list = mine->found ? vlp_references_get(mine->found, i, &size) : NULL;
        out.counts[i] = size;
        for (int32_t j = 0; j < size; j++) {
            vlp_triple edge = mine->graph->triples[list[j].edge];
            bool forward = queries[i].relation < mine->graph->relations;
            out.heads[i * capacity + j] = forward ? edge.head : edge.tail;
            out.answers[i * capacity + j] = forward ? edge.tail : edge.head;
        }
    }
    return VLP_OK;
}

const vlp_references *vlp_vertical_found(const void *state) {
    return ((const vertical_scores *)state)->found;
}

void vlp_vertical_give(void *state, int32_t *ids, const vlp_reference_batch *references, int64_t count) {
    vertical_scores *mine = state;
    size_t bytes = (size_t)(count * mine->references.count) * sizeof(int32_t);
    reference_ids out = divide(mine, ids, count);
    vlp_references_free(mine->found);
    mine->found = NULL;
    if (bytes > 0) {
        memcpy(out.heads, references->heads, bytes);
        memcpy(out.answers, references->answers, bytes);
    }
    memcpy(out.counts, references->counts, (size_t)count * sizeof(int32_t));
}

static vlp_status prepare(void *state, const vlp_prepared *queries, const int32_t *ids) {
    vertical_scores *mine = state;
    int64_t count = queries->count;
    vlp_reference_batch references = {.counts = ids,
                                      .heads = ids + count,
                                      .answers = ids + count * (1 + mine->references.count),
                                      .capacity = mine->references.count};
    vlp_aggregator_forward(mine->model, &mine->aggregator, queries->head_rows, queries->relations,
                           queries->q, &references, count);
    return VLP_OK;
}

/* ---- Scores -------------------------------------------------------------------------------------- */

/* The cosines times the norms of the entities with these rows, (columns, d_e). */
static void multiply(vertical_scores *mine, const vlp_prepared *queries, const float *rows,
                     int32_t columns) {
    const vlp_model *model = mine->model;
    int32_t e = model->form.entity_width;
    model->backend->blas->product(model->compute, mine->scores,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = queries->count,
                                                 .n = columns,
                                                 .k = e,
                                                 .alpha = 1,
                                                 .lda = e,
                                                 .ldb = e,
                                                 .ldc = columns},
                                  mine->aggregator.output, rows);
}

static vlp_status columns_of(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                             int32_t first, int32_t columns) {
    vertical_scores *mine = state;
    const vlp_model *model = mine->model;
    multiply(mine, queries, vlp_model_entities(model)->value + (int64_t)first * model->form.entity_width,
             columns);
    *out = (vlp_component_scores){mine->scores, columns, mine->inverse_norms};
    return VLP_OK;
}

static vlp_status listed_scores(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                                const int32_t *ids, int32_t columns) {
    vertical_scores *mine = state;
    const vlp_model *model = mine->model;
    const vlp_memory_operations *memory = model->backend->memory;
    const vlp_row_operations *rows = model->backend->rows;
    int32_t e = model->form.entity_width;
    size_t capacity = (size_t)mine->columns;
    if (!mine->rows) mine->rows = memory->allocate(model->compute, capacity * (size_t)e * sizeof(float));
    if (!mine->norms) mine->norms = memory->allocate(model->compute, capacity * sizeof(float));
    if (!mine->rows || !mine->norms) return vlp_fail_memory("scores");
    rows->gather(model->compute, mine->rows, vlp_model_entities(model)->value, ids, columns, e);
    rows->gather(model->compute, mine->norms, mine->inverse_norms, ids, columns, 1);
    multiply(mine, queries, mine->rows, columns);
    rows->scale_columns(model->compute, mine->scores, mine->norms, queries->count, columns);
    *out = (vlp_component_scores){.rows = mine->scores, .stride = columns};
    return VLP_OK;
}

static vlp_status all_scores(const float **out, void *state, const vlp_prepared *queries) {
    vertical_scores *mine = state;
    const vlp_model *model = mine->model;
    vlp_component_scores scores;
    VLP_TRY(columns_of(&scores, state, queries, 0, model->entities));
    model->backend->rows->scale_columns(model->compute, mine->scores, mine->inverse_norms,
                                        queries->count, model->entities);
    *out = mine->scores;
    return VLP_OK;
}

/* A dot product with the entity's row, which is then divided by its norm. */
static vlp_status pair_scores(float *out, void *state, const vlp_prepared *queries,
                              const vlp_scored_pairs *pairs) {
    vertical_scores *mine = state;
    const vlp_model *model = mine->model;
    int32_t e = model->form.entity_width;
    int64_t cells = queries->count * pairs->width;
    vlp_form dot = {.transform = VLP_SCALE,
                    .similarity = VLP_DOT,
                    .entity_width = e,
                    .relation_width = e,
                    .query_width = e};
    vlp_pairs all = {.batch = (int32_t)queries->count,
                     .width = pairs->width,
                     .entities = pairs->ids,
                     .table = vlp_model_entities(model)->value,
                     .table_rows = model->entities};
    vlp_related_rows asked =
        vlp_model_related(model, mine->aggregator.output, queries->relations, queries->count);
    VLP_TRY(model->backend->pairs->scores(model->compute, pairs->scores, &dot, &asked, &all));
    VLP_TRY(model->backend->memory->download(model->compute, out, pairs->scores,
                                             (size_t)cells * sizeof *out));
    for (int64_t i = 0; i < cells; i++)
        if (pairs->entities[i] >= 0) out[i] *= mine->host_inverse_norms[pairs->entities[i]];
    return VLP_OK;
}

const vlp_component_scoring vlp_vertical_scoring = {.by_row = true,
                                                    .ids = ids_per_query,
                                                    .open = open_scores,
                                                    .close = close_scores,
                                                    .find = find_references,
                                                    .prepare = prepare,
                                                    .columns = columns_of,
                                                    .listed = listed_scores,
                                                    .all = all_scores,
                                                    .pairs = pair_scores};
