/* The scores of the path component, f_p: a query is read over the whole graph at once, so that all
 * entities are scored when it is prepared. Equal queries that follow each other are read once: an
 * evaluation asks them in such an order. */
#include <string.h>

#include "eval/component.h"
#include "eval/path_graph.h"

typedef struct path_scores {
    const vlp_model *model;
    vlp_path_resident graph;
    vlp_path_tables values;
    float *scores;   /* (batch, entities) */
    float *distinct; /* (batch, entities) of distinct queries, where some are equal; once queries are
                        prepared, the scores of given entities */
    int32_t asked;   /* distinct queries of the last `find` */
    /* The triples that are out of the graph of distinct queries: on the host, and on the backend. */
    int64_t *offset, *d_offset;   /* (batch + 1) */
    int32_t *removed, *d_removed; /* (offset[asked]), at least (batch) */
    int64_t removed_capacity, d_removed_capacity;
    /* Of gradients, on the backend; allocated when they are first asked for. */
    int32_t *d_query;  /* (2) head entity, relation */
    float *d_score;    /* (1) */
    float *d_messages; /* (layers, 2 triples) */
} path_scores;

static void close_scores(void *state) {
    path_scores *mine = state;
    if (!mine) return;
    vlp_path_resident_close(&mine->graph, mine->model);
    void *there[] = {mine->scores,  mine->distinct, mine->d_offset,  mine->d_removed,
                     mine->d_query, mine->d_score,  mine->d_messages};
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
    if (options->trained && options->trained != options->graph)
        mine->graph.graph.mean_log_degree = vlp_path_graph_of(options->trained).mean_log_degree;
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
    mine->removed_capacity = mine->d_removed_capacity = options->batch;
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

vlp_status vlp_path_remove(void *state, int32_t *ids, const int64_t *offset, const int32_t *triples,
                           int64_t count) {
    path_scores *mine = state;
    int32_t *heads = ids, *relations = ids + count, *numbers = ids + 2 * count;
    VLP_TRY(
        vlp_grow(&mine->removed, &mine->removed_capacity, offset[count], sizeof *triples, "queries"));
    /* Each query has a graph of its own now. The number of a query is at most its place. */
    for (int64_t i = count - 1; i >= 0; i--) {
        heads[i] = heads[numbers[i]];
        relations[i] = relations[numbers[i]];
        numbers[i] = (int32_t)i;
    }
    mine->asked = (int32_t)count;
    memcpy(mine->offset, offset, ((size_t)count + 1) * sizeof *offset);
    if (offset[count] > 0) memcpy(mine->removed, triples, (size_t)offset[count] * sizeof *triples);
    return VLP_OK;
}

/* The triples that are out, on the backend. */
static vlp_status upload_removed(path_scores *mine) {
    const vlp_model *model = mine->model;
    const vlp_memory_operations *memory = model->backend->memory;
    int64_t removed = mine->offset[mine->asked];
    if (removed > mine->d_removed_capacity) {
        memory->release(model->compute, mine->d_removed);
        mine->d_removed_capacity = 0;
        mine->d_removed =
            memory->allocate(model->compute, (size_t)mine->removed_capacity * sizeof *mine->d_removed);
        if (!mine->d_removed) return vlp_fail_memory("queries");
        mine->d_removed_capacity = mine->removed_capacity;
    }
    VLP_TRY(memory->upload(model->compute, mine->d_offset, mine->offset,
                           ((size_t)mine->asked + 1) * sizeof *mine->offset));
    return memory->upload(model->compute, mine->d_removed, mine->removed,
                          (size_t)removed * sizeof *mine->removed);
}

static vlp_status prepare(void *state, const vlp_prepared *queries, const int32_t *ids) {
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    const vlp_backend *backend = model->backend;
    bool all = mine->asked == queries->count;
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {.count = mine->asked, .heads = ids, .relations = ids + queries->count};
    if (mine->offset[mine->asked] > 0) {
        VLP_TRY(upload_removed(mine));
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

/* Entities are picked from the row of each query. */
static vlp_status listed_scores(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                                const int32_t *ids, int32_t columns) {
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    for (int64_t i = 0; i < queries->count; i++)
        model->backend->rows->gather(model->compute, mine->distinct + i * columns,
                                     mine->scores + i * model->entities, ids, columns, 1);
    *out = (vlp_component_scores){.rows = mine->distinct, .stride = columns};
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

/* ---- Gradients ----------------------------------------------------------------------------------- */

static vlp_status open_messages(path_scores *mine, size_t bytes) {
    const vlp_model *model = mine->model;
    const vlp_memory_operations *memory = model->backend->memory;
    if (!mine->d_query) mine->d_query = memory->allocate(model->compute, 2 * sizeof(int32_t));
    if (!mine->d_score) mine->d_score = memory->allocate(model->compute, sizeof(float));
    if (!mine->d_messages) mine->d_messages = memory->allocate(model->compute, bytes);
    if (!mine->d_query || !mine->d_score || !mine->d_messages)
        return vlp_fail_memory("the gradients of a path");
    return VLP_OK;
}

vlp_status vlp_path_messages(void *state, float *out, const vlp_explained_answer *of) {
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    const vlp_backend *backend = model->backend;
    size_t bytes = (size_t)model->path.layers * 2 * (size_t)mine->graph.graph.triples * sizeof(float);
    int32_t ids[3] = {of->query.entity, of->query.relation, 0};
    VLP_TRY(open_messages(mine, bytes));
    VLP_TRY(vlp_path_remove(state, ids, (int64_t[]){0, of->removed_count}, of->removed, 1));
    VLP_TRY(backend->memory->upload(model->compute, mine->d_query, ids, 2 * sizeof *ids));
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {.count = 1, .heads = mine->d_query, .relations = mine->d_query + 1};
    if (of->removed_count > 0) {
        VLP_TRY(upload_removed(mine));
        asked.removed_offset = mine->d_offset;
        asked.removed = mine->d_removed;
    }
    VLP_TRY(backend->paths->message_gradients(model->compute, mine->d_score, mine->d_messages, &read,
                                              &asked, of->answer));
    return backend->memory->download(model->compute, out, mine->d_messages, bytes);
}

const vlp_component_scoring vlp_path_scoring = {.open = open_scores,
                                                .close = close_scores,
                                                .ids = ids_per_query,
                                                .find = find_distinct,
                                                .prepare = prepare,
                                                .columns = columns_of,
                                                .listed = listed_scores,
                                                .all = all_scores,
                                                .pairs = pair_scores};
