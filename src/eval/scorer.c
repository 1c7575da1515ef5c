/* All scores of a batch of queries: f_g by the model, f_c by its head over the references. */
#include <string.h>

#include "eval/evaluate.h"
#include "graph/reference.h"

struct vlp_scorer {
    const vlp_model *model;
    const vlp_dataset *dataset;
    vlp_reference_options references;
    int32_t batch;
    int32_t *heads, *relations; /* host, and on the backend */
    int32_t *d_heads, *d_relations;
    int32_t *reference_heads, *reference_answers, *reference_counts;
    int32_t *d_reference_heads, *d_reference_answers, *d_reference_counts;
    float *rows, *q, *inverse_norms;
    float *horizontal, *vertical; /* (batch, entities) */
    vlp_head_work head;
};

static void *device(const vlp_scorer *scorer, int64_t count, size_t size) {
    return scorer->model->backend->allocate(scorer->model->compute, (size_t)count * size);
}

static vlp_status allocate(vlp_scorer *scorer) {
    const vlp_model *model = scorer->model;
    int64_t b = scorer->batch, most = scorer->references.count, entities = model->entities;
    scorer->heads = vlp_alloc((size_t)b, sizeof(int32_t));
    scorer->relations = vlp_alloc((size_t)b, sizeof(int32_t));
    scorer->reference_heads = vlp_alloc_zero((size_t)(b * most), sizeof(int32_t));
    scorer->reference_answers = vlp_alloc_zero((size_t)(b * most), sizeof(int32_t));
    scorer->reference_counts = vlp_alloc_zero((size_t)b, sizeof(int32_t));
    scorer->d_heads = device(scorer, b, sizeof(int32_t));
    scorer->d_relations = device(scorer, b, sizeof(int32_t));
    scorer->d_reference_heads = device(scorer, b * most, sizeof(int32_t));
    scorer->d_reference_answers = device(scorer, b * most, sizeof(int32_t));
    scorer->d_reference_counts = device(scorer, b, sizeof(int32_t));
    scorer->rows = device(scorer, b * model->form.entity_width, sizeof(float));
    scorer->q = device(scorer, b * model->form.query_width, sizeof(float));
    scorer->inverse_norms = device(scorer, entities, sizeof(float));
    scorer->horizontal = device(scorer, b * entities, sizeof(float));
    scorer->vertical = device(scorer, model->vertical ? b * entities : 1, sizeof(float));
    if (!scorer->heads || !scorer->relations || !scorer->reference_heads || !scorer->reference_answers ||
        !scorer->reference_counts || !scorer->d_heads || !scorer->d_relations ||
        !scorer->d_reference_heads || !scorer->d_reference_answers || !scorer->d_reference_counts ||
        !scorer->rows || !scorer->q || !scorer->inverse_norms || !scorer->horizontal ||
        !scorer->vertical)
        return vlp_fail_memory("scores");
    if (!model->vertical) return VLP_OK;
    model->backend->inverse_norms(model->compute, scorer->inverse_norms,
                                  model->tables[VLP_TABLE_ENTITIES].value, entities,
                                  model->form.entity_width);
    return vlp_head_work_new(&scorer->head, model, scorer->batch);
}

vlp_status vlp_scorer_new(vlp_scorer **out, const vlp_model *model, const vlp_dataset *dataset,
                          int32_t references, int32_t references_per_head, int32_t batch,
                          int32_t threads) {
    *out = NULL;
    vlp_scorer *scorer = vlp_alloc_zero(1, sizeof *scorer);
    if (!scorer) return vlp_fail_memory("scores");
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = references;
    options.per_head = references_per_head;
    options.threads = threads;
    scorer->model = model;
    scorer->dataset = dataset;
    scorer->references = options;
    scorer->batch = batch;
    vlp_status status = allocate(scorer);
    if (status != VLP_OK) {
        vlp_scorer_free(scorer);
        return status;
    }
    *out = scorer;
    return VLP_OK;
}

void vlp_scorer_free(vlp_scorer *scorer) {
    if (!scorer) return;
    const vlp_model *model = scorer->model;
    void *host[] = {scorer->heads, scorer->relations, scorer->reference_heads, scorer->reference_answers,
                    scorer->reference_counts};
    void *there[] = {scorer->d_heads,
                     scorer->d_relations,
                     scorer->d_reference_heads,
                     scorer->d_reference_answers,
                     scorer->d_reference_counts,
                     scorer->rows,
                     scorer->q,
                     scorer->inverse_norms,
                     scorer->horizontal,
                     scorer->vertical};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) vlp_free(host[i]);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) model->backend->release(model->compute, there[i]);
    vlp_head_work_free(&scorer->head, model);
    vlp_free(scorer);
}

/* Finds and uploads the references of the queries. */
static vlp_status set_references(vlp_scorer *scorer, const vlp_query *queries, int64_t count) {
    const vlp_model *model = scorer->model;
    int32_t most = scorer->references.count, relations = vlp_dataset_relation_count(scorer->dataset);
    const vlp_triple *train = scorer->dataset->splits[VLP_TRAIN].items;
    vlp_references *found = NULL;
    if (most > 0)
        VLP_TRY(
            vlp_graph_references(&found, scorer->dataset->graph, queries, count, &scorer->references));
    for (int64_t i = 0; i < count; i++) {
        int32_t size = 0;
        const vlp_reference *list = found ? vlp_references_get(found, i, &size) : NULL;
        scorer->reference_counts[i] = size;
        for (int32_t j = 0; j < size; j++) {
            vlp_triple edge = train[list[j].edge];
            bool forward = queries[i].relation < relations;
            scorer->reference_heads[i * most + j] = forward ? edge.head : edge.tail;
            scorer->reference_answers[i * most + j] = forward ? edge.tail : edge.head;
        }
    }
    vlp_references_free(found);
    size_t ids = (size_t)(count * most) * sizeof(int32_t);
    const vlp_backend *backend = model->backend;
    VLP_TRY(backend->upload(model->compute, scorer->d_reference_heads, scorer->reference_heads, ids));
    VLP_TRY(
        backend->upload(model->compute, scorer->d_reference_answers, scorer->reference_answers, ids));
    return backend->upload(model->compute, scorer->d_reference_counts, scorer->reference_counts,
                           (size_t)count * sizeof(int32_t));
}

vlp_status vlp_scorer_run(const float **horizontal, const float **vertical, vlp_scorer *scorer,
                          const vlp_query *queries, int64_t count) {
    assert(count <= scorer->batch);
    const vlp_model *model = scorer->model;
    const vlp_backend *backend = model->backend;
    const float *entities = model->tables[VLP_TABLE_ENTITIES].value;
    const float *relations = model->tables[VLP_TABLE_RELATIONS].value;
    int32_t e = model->form.entity_width;
    for (int64_t i = 0; i < count; i++) {
        scorer->heads[i] = queries[i].entity;
        scorer->relations[i] = queries[i].relation;
    }
    size_t bytes = (size_t)count * sizeof(int32_t);
    VLP_TRY(backend->upload(model->compute, scorer->d_heads, scorer->heads, bytes));
    VLP_TRY(backend->upload(model->compute, scorer->d_relations, scorer->relations, bytes));
    backend->gather(model->compute, scorer->rows, entities, scorer->d_heads, count, e);
    backend->query(model->compute, &model->form, scorer->q, scorer->rows, scorer->d_relations, relations,
                   count, false);
    VLP_TRY(backend->all_scores(model->compute, &model->form, scorer->horizontal, scorer->q,
                                scorer->d_relations, relations, entities, model->entities, count));
    *horizontal = scorer->horizontal;
    *vertical = NULL;
    if (!model->vertical) return VLP_OK;
    VLP_TRY(set_references(scorer, queries, count));
    vlp_reference_batch references = {scorer->d_reference_heads, scorer->d_reference_answers,
                                      scorer->d_reference_counts, scorer->references.count};
    vlp_head_forward(model, &scorer->head, scorer->rows, scorer->d_relations, scorer->q, &references,
                     count);
    backend->product(model->compute, false, true, count, model->entities, e, 1, scorer->head.output, e,
                     entities, e, 0, scorer->vertical, model->entities);
    backend->scale_columns(model->compute, scorer->vertical, scorer->inverse_norms, count,
                           model->entities);
    *vertical = scorer->vertical;
    return VLP_OK;
}
