/* The scores of the path component, f_p: a query is read over the whole graph at once, so that all
 * entities are scored when it is prepared. */
#include "eval/component.h"
#include "eval/path_graph.h"

typedef struct path_scores {
    const vlp_model *model;
    vlp_path_resident graph;
    vlp_path_tables values;
    float *scores; /* (batch, entities) */
} path_scores;

static void close_scores(void *state) {
    path_scores *mine = state;
    if (!mine) return;
    vlp_path_resident_close(&mine->graph, mine->model);
    if (mine->scores) mine->model->backend->memory->release(mine->model->compute, mine->scores);
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
    mine->scores = model->backend->memory->allocate(
        model->compute, (size_t)options->batch * (size_t)model->entities * sizeof(float));
    return mine->scores ? VLP_OK : vlp_fail_memory("scores");
}

static vlp_status prepare(void *state, const vlp_prepared *queries, const int32_t *ids) {
    (void)ids;
    path_scores *mine = state;
    const vlp_model *model = mine->model;
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    vlp_path_queries asked = {
        .count = (int32_t)queries->count, .heads = queries->heads, .relations = queries->relations};
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

const vlp_component_scoring vlp_path_scoring = {.open = open_scores,
                                                .close = close_scores,
                                                .prepare = prepare,
                                                .columns = columns_of,
                                                .all = all_scores,
                                                .pairs = pair_scores};
