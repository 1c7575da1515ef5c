/* The scores of the horizontal component, f_g: of q with every entity's embedding. */
#include "eval/component.h"

typedef struct horizontal_scores {
    const vlp_model *model;
    int32_t columns;
    float *scores; /* (batch, columns) */
    float *rows;   /* (columns, d_e) of given entities; allocated when they are first asked for */
} horizontal_scores;

static void close_scores(void *state) {
    horizontal_scores *mine = state;
    if (!mine) return;
    const vlp_memory_operations *memory = mine->model->backend->memory;
    if (mine->scores) memory->release(mine->model->compute, mine->scores);
    if (mine->rows) memory->release(mine->model->compute, mine->rows);
    vlp_free(mine);
}

static vlp_status open_scores(void **state, const vlp_scorer_options *options) {
    const vlp_model *model = options->model;
    horizontal_scores *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("scores");
    mine->model = model;
    mine->columns = options->columns;
    mine->scores = model->backend->memory->allocate(
        model->compute, (size_t)options->batch * (size_t)options->columns * sizeof(float));
    return mine->scores ? VLP_OK : vlp_fail_memory("scores");
}

static vlp_related_rows related(const horizontal_scores *mine, const vlp_prepared *queries) {
    return vlp_model_related(mine->model, queries->q, queries->relations, queries->count);
}

/* The scores of the entities with these rows, (columns, d_e). */
static vlp_status score_rows(vlp_component_scores *out, horizontal_scores *mine,
                             const vlp_prepared *queries, const float *rows, int32_t columns) {
    const vlp_model *model = mine->model;
    vlp_related_rows asked = related(mine, queries);
    *out = (vlp_component_scores){.rows = mine->scores, .stride = columns};
    return model->backend->scores->all(model->compute, mine->scores, &model->form, &asked, rows,
                                       columns);
}

static vlp_status columns_of(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                             int32_t first, int32_t columns) {
    horizontal_scores *mine = state;
    const vlp_model *model = mine->model;
    const float *rows = vlp_model_entities(model)->value + (int64_t)first * model->form.entity_width;
    return score_rows(out, mine, queries, rows, columns);
}

static vlp_status listed_scores(vlp_component_scores *out, void *state, const vlp_prepared *queries,
                                const int32_t *ids, int32_t columns) {
    horizontal_scores *mine = state;
    const vlp_model *model = mine->model;
    int32_t width = model->form.entity_width;
    if (!mine->rows)
        mine->rows = model->backend->memory->allocate(model->compute, (size_t)mine->columns *
                                                                          (size_t)width * sizeof(float));
    if (!mine->rows) return vlp_fail_memory("scores");
    model->backend->rows->gather(model->compute, mine->rows, vlp_model_entities(model)->value, ids,
                                 columns, width);
    return score_rows(out, mine, queries, mine->rows, columns);
}

static vlp_status all_scores(const float **out, void *state, const vlp_prepared *queries) {
    horizontal_scores *mine = state;
    vlp_component_scores scores;
    *out = mine->scores;
    return columns_of(&scores, state, queries, 0, mine->model->entities);
}

static void rank_scores(vlp_ranked *out, void *state, const vlp_prepared *queries) {
    horizontal_scores *mine = state;
    out->queries = related(mine, queries);
    out->form = &mine->model->form;
    out->entity_table = vlp_model_entities(mine->model)->value;
    out->horizontal = mine->scores;
}

static vlp_status pair_scores(float *out, void *state, const vlp_prepared *queries,
                              const vlp_scored_pairs *pairs) {
    horizontal_scores *mine = state;
    const vlp_model *model = mine->model;
    vlp_pairs all = {.batch = (int32_t)queries->count,
                     .width = pairs->width,
                     .entities = pairs->ids,
                     .table = vlp_model_entities(model)->value,
                     .table_rows = model->entities};
    vlp_related_rows asked = related(mine, queries);
    VLP_TRY(model->backend->pairs->scores(model->compute, pairs->scores, &model->form, &asked, &all));
    return model->backend->memory->download(model->compute, out, pairs->scores,
                                            (size_t)queries->count * (size_t)pairs->width * sizeof *out);
}

const vlp_component_scoring vlp_horizontal_scoring = {.by_row = true,
                                                      .open = open_scores,
                                                      .close = close_scores,
                                                      .columns = columns_of,
                                                      .listed = listed_scores,
                                                      .all = all_scores,
                                                      .rank = rank_scores,
                                                      .pairs = pair_scores};
