/* The scores of the path component, f_p: a query is read over the whole graph at once, so that all
 * entities are scored when it is prepared. The triple that a query leaves out, or a list of triples of
 * its own, is out of the graph in both directions. */
#include <string.h>

#include "eval/component.h"
#include "eval/path_graph.h"

/* Triples that are out of the graph of the last queries. */
typedef struct removed_triples {
    int64_t *offset, *d_offset; /* (batch + 1) on the host, on the backend */
    int32_t *items, *d_items;   /* (offset[count]) */
    int64_t capacity, d_capacity;
    bool any;
} removed_triples;

typedef struct path_scores {
    const vlp_model *model;
    vlp_path_resident graph;
    vlp_path_tables values;
    float *scores; /* (batch, entities) */
    removed_triples removed;
    /* Of gradients, on the backend; allocated when they are first asked for. */
    int32_t *d_query;  /* (2) head entity, relation */
    float *d_score;    /* (1) */
    float *d_messages; /* (layers, 2 triples) */
} path_scores;

static void close_scores(void *state) {
    path_scores *mine = state;
    if (!mine) return;
    const vlp_model *model = mine->model;
    void *there[] = {mine->scores,  mine->removed.d_offset, mine->removed.d_items,
                     mine->d_query, mine->d_score,          mine->d_messages};
    vlp_path_resident_close(&mine->graph, model);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) model->backend->memory->release(model->compute, there[i]);
    vlp_free(mine->removed.offset);
    vlp_free(mine->removed.items);
    vlp_free(mine);
}

static vlp_status open_scores(void **state, const vlp_scorer_options *options) {
    const vlp_model *model = options->model;
    path_scores *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("scores");
    mine->model = model;
    mine->values = vlp_model_path_values(model);
    VLP_TRY(vlp_path_resident_open(&mine->graph, model, options->graph));
    mine->scores = model->backend->memory->allocate(
        model->compute, (size_t)options->batch * (size_t)model->entities * sizeof(float));
    size_t offsets = ((size_t)options->batch + 1) * sizeof(int64_t);
    mine->removed.offset = vlp_alloc_zero(offsets, 1);
    mine->removed.d_offset = model->backend->memory->allocate(model->compute, offsets);
    if (!mine->scores || !mine->removed.offset || !mine->removed.d_offset)
        return vlp_fail_memory("scores");
    return VLP_OK;
}

/* ---- Triples that are taken out ------------------------------------------------------------------ */

/* The triple that a query itself leaves out. */
static vlp_status find_left_out(void *state, int32_t *ids, const vlp_query *queries, int64_t count) {
    (void)ids;
    removed_triples *removed = &((path_scores *)state)->removed;
    VLP_TRY(vlp_grow(&removed->items, &removed->capacity, count, sizeof(int32_t), "queries"));
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        removed->offset[i] = used;
        if (queries[i].left_out >= 0) removed->items[used++] = (int32_t)queries[i].left_out;
    }
    removed->offset[count] = used;
    removed->any = used > 0;
    return VLP_OK;
}

vlp_status vlp_path_remove(void *state, const int64_t *offset, const int32_t *triples, int64_t count) {
    removed_triples *removed = &((path_scores *)state)->removed;
    int64_t used = offset[count];
    VLP_TRY(vlp_grow(&removed->items, &removed->capacity, used, sizeof(int32_t), "queries"));
    memcpy(removed->offset, offset, ((size_t)count + 1) * sizeof *offset);
    if (used > 0) memcpy(removed->items, triples, (size_t)used * sizeof *triples);
    removed->any = used > 0;
    return VLP_OK;
}

static vlp_status upload_removed(path_scores *mine, int64_t count) {
    const vlp_model *model = mine->model;
    const vlp_memory_operations *memory = model->backend->memory;
    removed_triples *removed = &mine->removed;
    int64_t used = removed->offset[count];
    if (removed->d_capacity < used) {
        if (removed->d_items) memory->release(model->compute, removed->d_items);
        removed->d_capacity = 0;
        removed->d_items = memory->allocate(model->compute, (size_t)removed->capacity * sizeof(int32_t));
        if (!removed->d_items) return vlp_fail_memory("queries");
        removed->d_capacity = removed->capacity;
    }
    VLP_TRY(memory->upload(model->compute, removed->d_offset, removed->offset,
                           ((size_t)count + 1) * sizeof(int64_t)));
    return memory->upload(model->compute, removed->d_items, removed->items,
                          (size_t)used * sizeof(int32_t));
}

/* ---- Scores -------------------------------------------------------------------------------------- */

static vlp_status prepare(void *state, const vlp_prepared *queries, const int32_t *ids) {
    (void)ids;
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {
        .count = (int32_t)queries->count, .heads = queries->heads, .relations = queries->relations};
    if (mine->removed.any) {
        VLP_TRY(upload_removed(mine, queries->count));
        asked.removed_offset = mine->removed.d_offset;
        asked.removed = mine->removed.d_items;
    }
    return model->backend->paths->scores(model->compute, mine->scores, &read, &asked);
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
    int64_t offset[2] = {0, of->removed_count};
    VLP_TRY(open_messages(mine, bytes));
    VLP_TRY(vlp_path_remove(state, offset, of->removed, 1));
    if (mine->removed.any) VLP_TRY(upload_removed(mine, 1));
    VLP_TRY(backend->memory->upload(model->compute, mine->d_query,
                                    (int32_t[]){of->query.entity, of->query.relation},
                                    2 * sizeof(int32_t)));
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {.count = 1,
                              .heads = mine->d_query,
                              .relations = mine->d_query + 1,
                              .removed_offset = mine->removed.any ? mine->removed.d_offset : NULL,
                              .removed = mine->removed.d_items};
    VLP_TRY(backend->paths->message_gradients(model->compute, mine->d_score, mine->d_messages, &read,
                                              &asked, of->answer));
    return backend->memory->download(model->compute, out, mine->d_messages, bytes);
}

const vlp_component_scoring vlp_path_scoring = {.open = open_scores,
                                                .close = close_scores,
                                                .find = find_left_out,
                                                .prepare = prepare,
                                                .columns = columns_of,
                                                .all = all_scores,
                                                .pairs = pair_scores};
