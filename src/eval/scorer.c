/* All scores of a batch of queries: f_g by the model, f_c by its head over the references. */
#include "eval/scorer.h"

#include <string.h>

#include "graph/reference.h"

/* Ids of queries one behind the other in a block, which crosses over at once: heads, relations, counts
 * of references (count each), and the references' heads and answers (count, N). */
typedef struct query_ids {
    int32_t *heads, *relations, *reference_counts, *reference_heads, *reference_answers;
} query_ids;

struct vlp_scorer {
    const vlp_model *model;
    const vlp_graph *graph;
    vlp_reference_options references;
    int32_t batch, columns;
    vlp_reference_finder *finder; /* made when it is first asked */
    vlp_references *found;        /* of the last queries; NULL where none were looked for */
    int32_t *block, *d_block;     /* (batch, 3 + 2 N) on the host, and on the backend */
    query_ids ids, there;         /* where in them */
    float *rows, *q, *inverse_norms;
    float *host_inverse_norms;    /* (entities) */
    float *horizontal, *vertical; /* (batch, columns) */
    /* Pairs of queries and entities, grown as asked for. */
    int32_t *d_pairs;
    float *pair_scores;
    int64_t pair_capacity;
    vlp_aggregator_work head;
};

static void *device(const vlp_scorer *scorer, int64_t count, size_t size) {
    return scorer->model->backend->memory->allocate(scorer->model->compute, (size_t)count * size);
}

static query_ids divide(const vlp_scorer *scorer, int32_t *block, int64_t count) {
    int32_t *references = block + 3 * count;
    return (query_ids){block, block + count, block + 2 * count, references,
                       references + count * scorer->references.count};
}

static size_t block_bytes(const vlp_scorer *scorer, int64_t count) {
    return (size_t)(count * (3 + 2 * (int64_t)scorer->references.count)) * sizeof(int32_t);
}

static vlp_status allocate(vlp_scorer *scorer) {
    const vlp_model *model = scorer->model;
    int64_t b = scorer->batch, entities = model->entities;
    scorer->block = vlp_alloc_zero(block_bytes(scorer, b), 1);
    scorer->d_block = model->backend->memory->allocate(model->compute, block_bytes(scorer, b));
    scorer->rows = device(scorer, b * model->form.entity_width, sizeof(float));
    scorer->q = device(scorer, b * model->form.query_width, sizeof(float));
    scorer->inverse_norms = device(scorer, entities, sizeof(float));
    scorer->host_inverse_norms = vlp_alloc_zero((size_t)entities, sizeof(float));
    int64_t cells = b * scorer->columns;
    scorer->horizontal = device(scorer, cells, sizeof(float));
    scorer->vertical = device(scorer, vlp_model_has(model, VLP_VERTICAL) ? cells : 1, sizeof(float));
    if (!scorer->block || !scorer->d_block || !scorer->rows || !scorer->q || !scorer->inverse_norms ||
        !scorer->host_inverse_norms || !scorer->horizontal || !scorer->vertical)
        return vlp_fail_memory("scores");
    if (!vlp_model_has(model, VLP_VERTICAL)) return VLP_OK;
    model->backend->rows->inverse_norms(model->compute, scorer->inverse_norms,
                                        vlp_model_entities(model)->value, entities,
                                        model->form.entity_width);
    VLP_TRY(model->backend->memory->download(model->compute, scorer->host_inverse_norms,
                                             scorer->inverse_norms, (size_t)entities * sizeof(float)));
    return vlp_aggregator_work_new(&scorer->head, model, scorer->batch, false);
}

vlp_status vlp_scorer_open(vlp_scorer **out, const vlp_scorer_options *options) {
    *out = NULL;
    vlp_scorer *scorer = vlp_alloc_zero(1, sizeof *scorer);
    if (!scorer) return vlp_fail_memory("scores");
    scorer->model = options->model;
    scorer->graph = options->graph;
    scorer->references = (vlp_reference_options)VLP_REFERENCE_OPTIONS_INIT;
    scorer->references.count = options->references;
    scorer->references.per_head = options->references_per_head;
    scorer->references.threads = options->threads;
    scorer->batch = options->batch;
    scorer->columns = options->columns;
    vlp_status status = allocate(scorer);
    if (status != VLP_OK) {
        vlp_scorer_free(scorer);
        return status;
    }
    *out = scorer;
    return VLP_OK;
}

vlp_status vlp_scorer_new(vlp_scorer **out, const vlp_model *model, const vlp_dataset *dataset,
                          int32_t references, int32_t references_per_head, int32_t batch,
                          int32_t threads) {
    vlp_scorer_options options = {.model = model,
                                  .graph = dataset->graph,
                                  .references = references,
                                  .references_per_head = references_per_head,
                                  .batch = batch,
                                  .columns = model->entities,
                                  .threads = threads};
    return vlp_scorer_open(out, &options);
}

void vlp_scorer_free(vlp_scorer *scorer) {
    if (!scorer) return;
    const vlp_model *model = scorer->model;
    void *there[] = {scorer->d_block,    scorer->rows,     scorer->q,       scorer->inverse_norms,
                     scorer->horizontal, scorer->vertical, scorer->d_pairs, scorer->pair_scores};
    vlp_free(scorer->block);
    vlp_free(scorer->host_inverse_norms);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) model->backend->memory->release(model->compute, there[i]);
    vlp_aggregator_work_free(&scorer->head, model);
    vlp_references_free(scorer->found);
    vlp_reference_finder_free(scorer->finder);
    vlp_free(scorer);
}

/* ---- Preparing ----------------------------------------------------------------------------------- */

/* Finds the references of the queries. */
static vlp_status find_references(vlp_scorer *scorer, const vlp_query *queries, int64_t count) {
    int32_t most = scorer->references.count;
    if (most > 0 && !scorer->finder)
        VLP_TRY(vlp_reference_finder_new(&scorer->finder, scorer->graph, &scorer->references));
    if (most > 0) VLP_TRY(vlp_reference_finder_find(&scorer->found, scorer->finder, queries, count));
    for (int64_t i = 0; i < count; i++) {
        int32_t size = 0;
        const vlp_reference *list = scorer->found ? vlp_references_get(scorer->found, i, &size) : NULL;
        scorer->ids.reference_counts[i] = size;
        for (int32_t j = 0; j < size; j++) {
            vlp_triple edge = scorer->graph->triples[list[j].edge];
            bool forward = queries[i].relation < scorer->graph->relations;
            scorer->ids.reference_heads[i * most + j] = forward ? edge.head : edge.tail;
            scorer->ids.reference_answers[i * most + j] = forward ? edge.tail : edge.head;
        }
    }
    return VLP_OK;
}

static void copy_references(vlp_scorer *scorer, const vlp_reference_batch *given, int64_t count) {
    size_t bytes = (size_t)(count * scorer->references.count) * sizeof(int32_t);
    if (bytes > 0) {
        memcpy(scorer->ids.reference_heads, given->heads, bytes);
        memcpy(scorer->ids.reference_answers, given->answers, bytes);
    }
    memcpy(scorer->ids.reference_counts, given->counts, (size_t)count * sizeof(int32_t));
}

vlp_status vlp_scorer_look(vlp_scorer *scorer, const vlp_query *queries, int64_t count,
                           const vlp_reference_batch *given) {
    assert(count <= scorer->batch);
    vlp_references_free(scorer->found);
    scorer->found = NULL;
    scorer->ids = divide(scorer, scorer->block, count);
    for (int64_t i = 0; i < count; i++) {
        scorer->ids.heads[i] = queries[i].entity;
        scorer->ids.relations[i] = queries[i].relation;
    }
    if (!vlp_model_has(scorer->model, VLP_VERTICAL)) return VLP_OK;
    if (!given) return find_references(scorer, queries, count);
    copy_references(scorer, given, count);
    return VLP_OK;
}

vlp_status vlp_scorer_make(vlp_scorer *scorer, int64_t count) {
    const vlp_model *model = scorer->model;
    const vlp_backend *backend = model->backend;
    const query_ids *there = &scorer->there;
    scorer->there = divide(scorer, scorer->d_block, count);
    VLP_TRY(backend->memory->upload(model->compute, scorer->d_block, scorer->block,
                                    block_bytes(scorer, count)));
    backend->rows->gather(model->compute, scorer->rows, vlp_model_entities(model)->value, there->heads,
                          count, model->form.entity_width);
    vlp_related_rows heads = vlp_model_related(model, scorer->rows, there->relations, count);
    backend->transform->query(model->compute, scorer->q, &model->form, &heads, false);
    if (!vlp_model_has(model, VLP_VERTICAL)) return VLP_OK;
    vlp_reference_batch references = {there->reference_heads, there->reference_answers,
                                      there->reference_counts, scorer->references.count};
    vlp_aggregator_forward(model, &scorer->head, scorer->rows, there->relations, scorer->q, &references,
                           count);
    return VLP_OK;
}

vlp_status vlp_scorer_prepare(vlp_scorer *scorer, const vlp_query *queries, int64_t count,
                              const vlp_reference_batch *given) {
    VLP_TRY(vlp_scorer_look(scorer, queries, count, given));
    return vlp_scorer_make(scorer, count);
}

const vlp_references *vlp_scorer_found(const vlp_scorer *scorer) {
    return scorer->found;
}

const float *vlp_scorer_inverse_norms(const vlp_scorer *scorer) {
    return scorer->inverse_norms;
}

/* ---- Scores -------------------------------------------------------------------------------------- */

/* f_c of the prepared queries with some entities, as far as a product makes it; NULL without a head. */
static const float *make_vertical(vlp_scorer *scorer, int64_t count, int32_t first, int32_t columns) {
    const vlp_model *model = scorer->model;
    if (!vlp_model_has(model, VLP_VERTICAL)) return NULL;
    int32_t e = model->form.entity_width;
    const float *rows = vlp_model_entities(model)->value + (int64_t)first * e;
    model->backend->blas->product(model->compute, scorer->vertical,
                                  &(vlp_product){.transpose_b = true,
                                                 .m = count,
                                                 .n = columns,
                                                 .k = e,
                                                 .alpha = 1,
                                                 .lda = e,
                                                 .ldb = e,
                                                 .ldc = columns},
                                  scorer->head.output, rows);
    return scorer->vertical;
}

vlp_status vlp_scorer_columns(const float **horizontal, const float **vertical, vlp_scorer *scorer,
                              int64_t count, int32_t first, int32_t columns) {
    assert(columns <= scorer->columns);
    const vlp_model *model = scorer->model;
    const float *rows = vlp_model_entities(model)->value + (int64_t)first * model->form.entity_width;
    vlp_related_rows queries = vlp_model_related(model, scorer->q, scorer->there.relations, count);
    VLP_TRY(model->backend->scores->all(model->compute, scorer->horizontal, &model->form, &queries, rows,
                                        columns));
    *horizontal = scorer->horizontal;
    *vertical = make_vertical(scorer, count, first, columns);
    return VLP_OK;
}

void vlp_scorer_ranked(vlp_ranked *out, vlp_scorer *scorer, int64_t count) {
    const vlp_model *model = scorer->model;
    assert(scorer->columns == model->entities);
    *out = (vlp_ranked){.queries = vlp_model_related(model, scorer->q, scorer->there.relations, count),
                        .entities = model->entities,
                        .form = &model->form,
                        .entity_table = vlp_model_entities(model)->value,
                        .horizontal = scorer->horizontal,
                        .vertical = make_vertical(scorer, count, 0, model->entities)};
    if (out->vertical)
        model->backend->rows->scale_columns(model->compute, scorer->vertical, scorer->inverse_norms,
                                            count, model->entities);
}

vlp_status vlp_scorer_run(const float **horizontal, const float **vertical, vlp_scorer *scorer,
                          const vlp_query *queries, int64_t count) {
    const vlp_model *model = scorer->model;
    VLP_TRY(vlp_scorer_prepare(scorer, queries, count, NULL));
    VLP_TRY(vlp_scorer_columns(horizontal, vertical, scorer, count, 0, model->entities));
    if (*vertical)
        model->backend->rows->scale_columns(model->compute, scorer->vertical, scorer->inverse_norms,
                                            count, model->entities);
    return VLP_OK;
}

/* Room for pairs on the backend. */
static vlp_status reserve_pairs(vlp_scorer *scorer, int64_t pairs) {
    if (pairs <= scorer->pair_capacity) return VLP_OK;
    const vlp_model *model = scorer->model;
    if (scorer->d_pairs) model->backend->memory->release(model->compute, scorer->d_pairs);
    if (scorer->pair_scores) model->backend->memory->release(model->compute, scorer->pair_scores);
    scorer->pair_capacity = 0;
    scorer->d_pairs = device(scorer, pairs, sizeof(int32_t));
    scorer->pair_scores = device(scorer, pairs, sizeof(float));
    if (!scorer->d_pairs || !scorer->pair_scores) return vlp_fail_memory("scores");
    scorer->pair_capacity = pairs;
    return VLP_OK;
}

/* out (count, width) of one kind of score. */
static vlp_status score_pairs(float *out, const vlp_scorer *scorer, const vlp_form *form,
                              const float *queries, const vlp_pairs *pairs) {
    const vlp_model *model = scorer->model;
    vlp_related_rows related = vlp_model_related(model, queries, scorer->there.relations, pairs->batch);
    VLP_TRY(model->backend->pairs->scores(model->compute, scorer->pair_scores, form, &related, pairs));
    return model->backend->memory->download(model->compute, out, scorer->pair_scores,
                                            (size_t)pairs->batch * (size_t)pairs->width * sizeof *out);
}

vlp_status vlp_scorer_pairs(float *horizontal, float *vertical, vlp_scorer *scorer,
                            const int32_t *entities, int64_t count, int32_t width) {
    const vlp_model *model = scorer->model;
    int64_t cells = count * width;
    if (cells == 0) return VLP_OK;
    VLP_TRY(reserve_pairs(scorer, cells));
    VLP_TRY(model->backend->memory->upload(model->compute, scorer->d_pairs, entities,
                                           (size_t)cells * sizeof *entities));
    vlp_pairs pairs = {.batch = (int32_t)count,
                       .width = width,
                       .entities = scorer->d_pairs,
                       .table = vlp_model_entities(model)->value,
                       .table_rows = model->entities};
    if (horizontal) VLP_TRY(score_pairs(horizontal, scorer, &model->form, scorer->q, &pairs));
    if (!vertical || !vlp_model_has(model, VLP_VERTICAL)) return VLP_OK;
    /* The cosine is a dot product with the entity's row, which is then divided by its length. */
    int32_t e = model->form.entity_width;
    vlp_form dot = {.transform = VLP_SCALE,
                    .similarity = VLP_DOT,
                    .entity_width = e,
                    .relation_width = e,
                    .query_width = e};
    VLP_TRY(score_pairs(vertical, scorer, &dot, scorer->head.output, &pairs));
    for (int64_t i = 0; i < cells; i++)
        if (entities[i] >= 0) vertical[i] *= scorer->host_inverse_norms[entities[i]];
    return VLP_OK;
}
