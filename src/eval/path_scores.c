/* The scores of the path component, f_p: a query is read over the whole graph at once, so that all
 * entities are scored when it is prepared. Equal queries that follow each other are read once: an
 * evaluation asks them in such an order. */
#include "eval/component.h"
#include "eval/path_graph.h"

typedef struct path_scores {
    const vlp_model *model;
    vlp_path_resident graph;
    vlp_path_tables values;
    float *scores;   /* (batch, entities) */
    float *distinct; /* (batch, entities) of distinct queries, where some are equal */
    int32_t asked;   /* distinct queries of the last `find` */
    /* The triples that queries leave out, at most one each: on the host, and on the backend. */
    int64_t *offset, *d_offset;   /* (batch + 1) */
    int32_t *removed, *d_removed; /* (batch) */
} path_scores;

static void close_scores(void *state) {
    path_scores *mine = state;
    if (!mine) return;
    vlp_path_resident_close(&mine->graph, mine->model);
    void *there[] = {mine->scores, mine->distinct, mine->d_offset, mine->d_removed};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) mine->model->backend->memory->release(mine->model->compute, there[i]);
    vlp_free(mine->offset);
    vlp_free(mine->removed);
    vlp_free(mine);
}

static vlp_status open_scores(void **state, const vlp_scorer_options *options) {
    const vlp_model *model = options->model;
    path_scores *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("scores");
    mine->model = model;
    mine->values = vlp_model_path_values(model);
    VLP_TRY(vlp_path_resident_open(&mine->graph, model, options->graph));
    const vlp_memory_operations *memory = model->backend->memory;
    size_t batch = (size_t)options->batch;
    mine->scores =
        memory->allocate(model->compute, batch * (size_t)model->entities * sizeof *mine->scores);
    mine->distinct =
        memory->allocate(model->compute, batch * (size_t)model->entities * sizeof *mine->distinct);
    mine->d_offset = memory->allocate(model->compute, (batch + 1) * sizeof *mine->d_offset);
    mine->d_removed = memory->allocate(model->compute, batch * sizeof *mine->d_removed);
    mine->offset = vlp_alloc_zero(batch + 1, sizeof *mine->offset);
    mine->removed = vlp_alloc(batch, sizeof *mine->removed);
    if (!mine->scores || !mine->distinct || !mine->d_offset || !mine->d_removed || !mine->offset ||
        !mine->removed)
        return vlp_fail_memory("scores");
    return VLP_OK;
}

/* Of a query: head entity and relation of a distinct one, and the number of its own. */
static int32_t ids_per_query(const vlp_scorer_options *options) {
    (void)options;
    return 3;
}

static bool equal_queries(const vlp_query *a, const vlp_query *b) {
    return a->entity == b->entity && a->relation == b->relation && a->left_out == b->left_out;
}

static vlp_status find_distinct(void *state, int32_t *ids, const vlp_query *queries, int64_t count) {
    path_scores *mine = state;
    int32_t *heads = ids, *relations = ids + count, *numbers = ids + 2 * count;
    int64_t used = 0;
    mine->asked = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || !equal_queries(&queries[i], &queries[i - 1])) {
            heads[mine->asked] = queries[i].entity;
            relations[mine->asked] = queries[i].relation;
            if (queries[i].left_out >= 0) mine->removed[used++] = (int32_t)queries[i].left_out;
            mine->offset[++mine->asked] = used;
        }
        numbers[i] = mine->asked - 1;
    }
    return VLP_OK;
}

static vlp_status prepare(void *state, const vlp_prepared *queries, const int32_t *ids) {
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    const vlp_backend *backend = model->backend;
    bool all = mine->asked == queries->count;
    size_t removed = (size_t)mine->offset[mine->asked];
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {.count = mine->asked, .heads = ids, .relations = ids + queries->count};
    if (removed > 0) {
        VLP_TRY(backend->memory->upload(model->compute, mine->d_offset, mine->offset,
                                        ((size_t)mine->asked + 1) * sizeof *mine->offset));
        VLP_TRY(backend->memory->upload(model->compute, mine->d_removed, mine->removed,
                                        removed * sizeof *mine->removed));
        asked.removed_offset = mine->d_offset;
        asked.removed = mine->d_removed;
    }
    VLP_TRY(backend->paths->scores(model->compute, all ? mine->scores : mine->distinct, &read, &asked));
    if (!all)
        backend->rows->gather(model->compute, mine->scores, mine->distinct, ids + 2 * queries->count,
                              queries->count, model->entities);
    return VLP_OK;
}

static vlp_status columns_of(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                             int32_t first, int32_t columns) {
    (void)queries, (void)columns;
    path_scores *mine = state;
    *out = (vlp_component_scores){.rows = mine->scores + first, .stride = mine->model->entities};
    return VLP_OK;
}

static vlp_status all_scores(const float **out, void *state, const vlp_prepared *queries) {
    (void)queries;
    *out = ((path_scores *)state)->scores;
    return VLP_OK;
}

/* Entities of a query are picked from its row. */
static vlp_status pair_scores(float *out, void *state, const vlp_prepared *queries,
                              const vlp_scored_pairs *pairs) {
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    const vlp_backend *backend = model->backend;
    int32_t width = pairs->width;
    for (int64_t i = 0; i < queries->count; i++)
        backend->rows->gather(model->compute, pairs->scores + i * width,
                              mine->scores + i * model->entities, pairs->ids + i * width, width, 1);
    return backend->memory->download(model->compute, out, pairs->scores,
                                     (size_t)(queries->count * width) * sizeof *out);
}

const vlp_component_scoring vlp_path_scoring = {.open = open_scores,
                                                .close = close_scores,
                                                .ids = ids_per_query,
                                                .find = find_distinct,
                                                .prepare = prepare,
                                                .columns = columns_of,
                                                .all = all_scores,
                                                .pairs = pair_scores};
