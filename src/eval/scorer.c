#include "eval/scorer.h"

static const vlp_component_scoring *const scorings[VLP_COMPONENTS] = {
    [VLP_HORIZONTAL] = &vlp_horizontal_scoring,
    [VLP_VERTICAL] = &vlp_vertical_scoring,
    [VLP_PATH] = &vlp_path_scoring};

struct vlp_scorer {
    vlp_scorer_options options;
    int64_t count;                /* of the last queries */
    void *states[VLP_COMPONENTS]; /* NULL for components the model does not have */
    /* Ids of queries, one array after the other, which cross to the backend in one copy: head entities
     * and relations (count each), and those of each component. */
    int32_t *block, *d_block;       /* (batch, ids_per_query) on the host, and on the backend */
    int32_t ids[VLP_COMPONENTS];    /* per query */
    int64_t offset[VLP_COMPONENTS]; /* per query, of a component's ids in the block */
    int64_t ids_per_query;
    float *head_rows, *q; /* (batch, d_e), (batch, d_q) */
    vlp_prepared prepared;
    unsigned made; /* the components that are prepared */
    /* Pairs of queries and entities, grown as needed. */
    int32_t *d_pairs;
    float *pair_scores;
    int64_t pair_capacity;
    /* The last list of entities, on the backend. */
    int32_t *list;
    int64_t list_capacity;
};

bool vlp_scores_by_row(unsigned components) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (components >> c & 1 && !scorings[c]->by_row) return false;
    return true;
}

static void *device(const vlp_scorer *scorer, int64_t count, size_t size) {
    const vlp_model *model = scorer->options.model;
    return model->backend->memory->allocate(model->compute, (size_t)count * size);
}

static size_t block_bytes(const vlp_scorer *scorer, int64_t count) {
    return (size_t)(count * scorer->ids_per_query) * sizeof(int32_t);
}

static vlp_status allocate(vlp_scorer *scorer) {
    const vlp_model *model = scorer->options.model;
    int64_t batch = scorer->options.batch;
    scorer->ids_per_query = 2; /* head entity and relation */
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!vlp_model_has(model, (vlp_component)c)) continue;
        scorer->ids[c] = scorings[c]->ids ? scorings[c]->ids(&scorer->options) : 0;
        scorer->offset[c] = scorer->ids_per_query;
        scorer->ids_per_query += scorer->ids[c];
    }
    scorer->block = vlp_alloc_zero(block_bytes(scorer, batch), 1);
    scorer->d_block = model->backend->memory->allocate(model->compute, block_bytes(scorer, batch));
    if (!scorer->block || !scorer->d_block) return vlp_fail_memory("scores");
    if (vlp_model_has(model, VLP_HORIZONTAL)) {
        scorer->head_rows = device(scorer, batch * model->form.entity_width, sizeof(float));
        scorer->q = device(scorer, batch * model->form.query_width, sizeof(float));
        if (!scorer->head_rows || !scorer->q) return vlp_fail_memory("scores");
    }
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (vlp_model_has(model, (vlp_component)c))
            VLP_TRY(scorings[c]->open(&scorer->states[c], &scorer->options));
    return VLP_OK;
}

vlp_status vlp_scorer_open(vlp_scorer **out, const vlp_scorer_options *options) {
    *out = NULL;
    vlp_scorer *scorer = vlp_alloc_zero(1, sizeof *scorer);
    if (!scorer) return vlp_fail_memory("scores");
    scorer->options = *options;
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
    const vlp_model *model = scorer->options.model;
    void *there[] = {scorer->d_block, scorer->head_rows,   scorer->q,
                     scorer->d_pairs, scorer->pair_scores, scorer->list};
    for (int c = 0; c < VLP_COMPONENTS; c++) scorings[c]->close(scorer->states[c]);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i]) model->backend->memory->release(model->compute, there[i]);
    vlp_free(scorer->block);
    vlp_free(scorer);
}

/* ---- Preparing ----------------------------------------------------------------------------------- */

/* The ids of a component in a block of the last queries. */
static int32_t *ids_of(const vlp_scorer *scorer, int32_t *block, int c) {
    return block + scorer->count * scorer->offset[c];
}

vlp_status vlp_scorer_find(vlp_scorer *scorer, unsigned components, const vlp_query *queries,
                           int64_t count) {
    assert(count <= scorer->options.batch);
    scorer->count = count;
    for (int64_t i = 0; i < count; i++) {
        scorer->block[i] = queries[i].entity;
        scorer->block[count + i] = queries[i].relation;
    }
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scorer->states[c] && components >> c & 1 && scorings[c]->find)
            VLP_TRY(
                scorings[c]->find(scorer->states[c], ids_of(scorer, scorer->block, c), queries, count));
    return VLP_OK;
}

vlp_status vlp_scorer_make(vlp_scorer *scorer, unsigned components) {
    const vlp_model *model = scorer->options.model;
    const vlp_backend *backend = model->backend;
    int64_t count = scorer->count;
    scorer->made = components;
    VLP_TRY(backend->memory->upload(model->compute, scorer->d_block, scorer->block,
                                    block_bytes(scorer, count)));
    vlp_prepared *prepared = &scorer->prepared;
    *prepared = (vlp_prepared){count, scorer->d_block, scorer->d_block + count, NULL, NULL};
    if (vlp_model_has(model, VLP_HORIZONTAL)) {
        backend->rows->gather(model->compute, scorer->head_rows, vlp_model_entities(model)->value,
                              prepared->heads, count, model->form.entity_width);
        vlp_related_rows heads = vlp_model_related(model, scorer->head_rows, prepared->relations, count);
        backend->transform->query(model->compute, scorer->q, &model->form, &heads, false);
        prepared->head_rows = scorer->head_rows;
        prepared->q = scorer->q;
    }
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scorer->states[c] && components >> c & 1 && scorings[c]->prepare)
            VLP_TRY(
                scorings[c]->prepare(scorer->states[c], prepared, ids_of(scorer, scorer->d_block, c)));
    return VLP_OK;
}

vlp_status vlp_scorer_prepare(vlp_scorer *scorer, const vlp_query *queries, int64_t count) {
    VLP_TRY(vlp_scorer_find(scorer, scorer->options.model->components, queries, count));
    return vlp_scorer_make(scorer, scorer->options.model->components);
}

const vlp_references *vlp_scorer_references(const vlp_scorer *scorer) {
    const void *vertical = scorer->states[VLP_VERTICAL];
    return vertical ? vlp_vertical_found(vertical) : NULL;
}

void vlp_scorer_give_references(vlp_scorer *scorer, const vlp_reference_batch *references) {
    vlp_vertical_give(scorer->states[VLP_VERTICAL], ids_of(scorer, scorer->block, VLP_VERTICAL),
                      references, scorer->count);
}

vlp_status vlp_scorer_remove(vlp_scorer *scorer, const int64_t *offset, const int32_t *triples) {
    return vlp_path_remove(scorer->states[VLP_PATH], ids_of(scorer, scorer->block, VLP_PATH), offset,
                           triples, scorer->count);
}

vlp_status vlp_scorer_messages(float *out, vlp_scorer *scorer, const vlp_explained_answer *of) {
    return vlp_path_messages(scorer->states[VLP_PATH], out, of);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

vlp_status vlp_scorer_columns(vlp_score_tile *out, vlp_scorer *scorer, int32_t first, int32_t columns) {
    assert(columns <= scorer->options.columns);
    *out = (vlp_score_tile){.first = first, .columns = columns};
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scorer->states[c])
            VLP_TRY(scorings[c]->columns(&out->components[c], scorer->states[c], &scorer->prepared,
                                         first, columns));
    return VLP_OK;
}

vlp_status vlp_scorer_list(vlp_scorer *scorer, const int32_t *list, int64_t count) {
    const vlp_model *model = scorer->options.model;
    if (count > scorer->list_capacity) {
        if (scorer->list) model->backend->memory->release(model->compute, scorer->list);
        scorer->list_capacity = 0;
        scorer->list = device(scorer, count, sizeof *list);
        if (!scorer->list) return vlp_fail_memory("candidates");
        scorer->list_capacity = count;
    }
    return model->backend->memory->upload(model->compute, scorer->list, list,
                                          (size_t)count * sizeof *list);
}

vlp_status vlp_scorer_listed(vlp_score_tile *out, vlp_scorer *scorer, int32_t first, int32_t columns) {
    assert(columns <= scorer->options.columns && first + columns <= scorer->list_capacity);
    *out = (vlp_score_tile){.first = first, .columns = columns};
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scorer->states[c])
            VLP_TRY(scorings[c]->listed(&out->components[c], scorer->states[c], &scorer->prepared,
                                        scorer->list + first, columns));
    return VLP_OK;
}

vlp_status vlp_scorer_all(const float *out[VLP_MAX_COMPONENTS], vlp_scorer *scorer) {
    assert(scorer->options.columns == scorer->options.model->entities);
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++) out[c] = NULL;
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scorer->states[c] && scorer->made >> c & 1)
            VLP_TRY(scorings[c]->all(&out[c], scorer->states[c], &scorer->prepared));
    return VLP_OK;
}

vlp_status vlp_scorer_ranked(vlp_ranked *out, vlp_scorer *scorer) {
    assert(scorer->options.columns == scorer->options.model->entities);
    *out = (vlp_ranked){.queries = {.count = scorer->count}, .entities = scorer->options.columns};
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!scorer->states[c]) continue;
        if (scorings[c]->rank)
            scorings[c]->rank(out, scorer->states[c], &scorer->prepared);
        else
            VLP_TRY(scorings[c]->all(&out->scores[c], scorer->states[c], &scorer->prepared));
    }
    return VLP_OK;
}

/* Capacity for pairs on the backend. */
static vlp_status reserve_pairs(vlp_scorer *scorer, int64_t pairs) {
    if (pairs <= scorer->pair_capacity) return VLP_OK;
    const vlp_model *model = scorer->options.model;
    if (scorer->d_pairs) model->backend->memory->release(model->compute, scorer->d_pairs);
    if (scorer->pair_scores) model->backend->memory->release(model->compute, scorer->pair_scores);
    scorer->pair_capacity = 0;
    scorer->d_pairs = device(scorer, pairs, sizeof(int32_t));
    scorer->pair_scores = device(scorer, pairs, sizeof(float));
    if (!scorer->d_pairs || !scorer->pair_scores) return vlp_fail_memory("scores");
    scorer->pair_capacity = pairs;
    return VLP_OK;
}

vlp_status vlp_scorer_pairs(float *const out[VLP_MAX_COMPONENTS], vlp_scorer *scorer,
                            const int32_t *entities, int32_t width) {
    const vlp_model *model = scorer->options.model;
    int64_t cells = scorer->count * width;
    if (cells == 0) return VLP_OK;
    VLP_TRY(reserve_pairs(scorer, cells));
    VLP_TRY(model->backend->memory->upload(model->compute, scorer->d_pairs, entities,
                                           (size_t)cells * sizeof *entities));
    vlp_scored_pairs pairs = {width, entities, scorer->d_pairs, scorer->pair_scores};
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (out[c] && scorer->states[c])
            VLP_TRY(scorings[c]->pairs(out[c], scorer->states[c], &scorer->prepared, &pairs));
    return VLP_OK;
}
