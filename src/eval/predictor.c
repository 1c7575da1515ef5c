#include "eval/predictor.h"

#include <string.h>

enum { BATCH = 512, PATH_SCORES = 32 << 20 /* of a batch */ };

struct vlp_predictor {
    vlp_predictor_options options;
    int32_t batch, tile;
    vlp_scorer *scorer;
    vlp_selection *selection;
    int32_t wanted;  /* of the selection */
    vlp_best best;   /* what it chose */
    vlp_top *listed; /* the same of a list of candidates, by entity */
    int64_t listed_capacity;
    vlp_excluded *excluded; /* (batch) */
    int32_t *positions;     /* of excluded entities in a list of candidates */
    int64_t position_capacity;
    float *pair_scores[VLP_MAX_COMPONENTS]; /* NULL for components the model does not have */
    int32_t *pair_entities;
    int64_t pair_capacity;
    /* Variants of queries without one of their references. */
    vlp_query *variants;                                       /* (batch) */
    int32_t *variant_heads, *variant_answers, *variant_counts; /* (batch, references), (batch) */
};

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status allocate(vlp_predictor *predictor) {
    const vlp_predictor_options *options = &predictor->options;
    size_t batch = (size_t)predictor->batch, capacity = (size_t)options->references;
    vlp_scorer_options scoring = {.model = options->model,
                                  .graph = options->graph,
                                  .trained = options->trained,
                                  .references = options->references,
                                  .references_per_head = options->references_per_head,
                                  .references_rule = options->references_rule,
                                  .batch = predictor->batch,
                                  .columns = predictor->tile,
                                  .threads = options->threads};
    VLP_TRY(vlp_scorer_open(&predictor->scorer, &scoring));
    predictor->excluded = vlp_alloc(batch, sizeof *predictor->excluded);
    predictor->variants = vlp_alloc(batch, sizeof *predictor->variants);
    predictor->variant_heads = vlp_alloc_zero(batch * capacity, sizeof(int32_t));
    predictor->variant_answers = vlp_alloc_zero(batch * capacity, sizeof(int32_t));
    predictor->variant_counts = vlp_alloc(batch, sizeof(int32_t));
    if (!predictor->excluded || !predictor->variants || !predictor->variant_heads ||
        !predictor->variant_answers || !predictor->variant_counts)
        return vlp_fail_memory("predictions");
    return VLP_OK;
}

/* The path component scores all entities of a batch at once. All variants of one query go into one
 * batch. */
static int32_t batch_of(const vlp_predictor_options *options) {
    int64_t batch = BATCH;
    if (vlp_model_has(options->model, VLP_PATH) && PATH_SCORES / options->model->entities < BATCH)
        batch = PATH_SCORES / options->model->entities;
    if (batch < options->references + 1) batch = options->references + 1;
    return (int32_t)batch;
}

vlp_status vlp_predictor_new(vlp_predictor **out, const vlp_predictor_options *options) {
    *out = NULL;
    vlp_predictor *predictor = vlp_alloc_zero(1, sizeof *predictor);
    if (!predictor) return vlp_fail_memory("predictions");
    predictor->options = *options;
    predictor->batch = batch_of(options);
    int64_t tile = options->model->backend->tile / predictor->batch;
    predictor->tile = (int32_t)(tile < options->model->entities ? tile : options->model->entities);
    vlp_status status = allocate(predictor);
    if (status != VLP_OK) {
        vlp_predictor_free(predictor);
        return status;
    }
    *out = predictor;
    return VLP_OK;
}

void vlp_predictor_free(vlp_predictor *predictor) {
    if (!predictor) return;
    const vlp_model *model = predictor->options.model;
    vlp_scorer_free(predictor->scorer);
    model->backend->select->close(model->compute, predictor->selection);
    for (int c = 0; c < VLP_COMPONENTS; c++) vlp_free(predictor->pair_scores[c]);
    void *parts[] = {predictor->excluded,      predictor->pair_entities,   predictor->variants,
                     predictor->variant_heads, predictor->variant_answers, predictor->variant_counts,
                     predictor->listed,        predictor->positions};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) vlp_free(parts[i]);
    vlp_free(predictor);
}

const vlp_predictor_options *vlp_predictor_opened(const vlp_predictor *predictor) {
    return &predictor->options;
}

unsigned vlp_predictor_components(const vlp_predictor *predictor) {
    return predictor->options.model->components;
}

int32_t vlp_predictor_batch(const vlp_predictor *predictor) {
    return predictor->batch;
}

/* ---- The best answers ---------------------------------------------------------------------------- */

static vlp_status fail_not_a_number(void) {
    return vlp_fail(VLP_ERROR_DIVERGED,
                    "a score is not a number; the run is damaged or training diverged");
}

static vlp_status set_selection(vlp_predictor *predictor, int32_t wanted) {
    if (predictor->selection && predictor->wanted == wanted) return VLP_OK;
    const vlp_model *model = predictor->options.model;
    model->backend->select->close(model->compute, predictor->selection);
    predictor->selection = NULL;
    vlp_select_options options = {predictor->batch, wanted, predictor->tile, model->components};
    VLP_TRY(model->backend->select->open(model->compute, &predictor->selection, &options));
    predictor->wanted = wanted;
    return VLP_OK;
}

/* The number of entities from `first` on that are offered at once: 0 where that one is left out. */
static int32_t offered_at_once(const vlp_predictor *predictor, int32_t first) {
    int32_t entities = predictor->options.model->entities, columns = 0;
    const uint8_t *only = predictor->options.only;
    while (columns < predictor->tile && first + columns < entities && (!only || only[first + columns]))
        columns++;
    return columns;
}

/* Offers all entities that may be answers to the selection. */
static vlp_status offer_all(vlp_predictor *predictor, const vlp_observer *observer) {
    const vlp_model *model = predictor->options.model;
    for (int32_t first = 0, columns; first < model->entities; first += columns) {
        columns = offered_at_once(predictor, first);
        if (columns == 0) {
            columns = 1;
            continue;
        }
        vlp_score_tile tile;
        VLP_TRY(vlp_scorer_columns(&tile, predictor->scorer, first, columns));
        VLP_TRY(model->backend->select->offer(model->compute, predictor->selection, &tile,
                                              &predictor->options.mixture));
        if (vlp_stopped(observer)) return vlp_fail_stopped();
    }
    return VLP_OK;
}

/* Offers a list of candidates, by their positions in it. */
static vlp_status offer_list(vlp_predictor *predictor, const vlp_candidate_list *among,
                             const vlp_observer *observer) {
    const vlp_model *model = predictor->options.model;
    int32_t count = (int32_t)among->count;
    VLP_TRY(vlp_scorer_list(predictor->scorer, among->entities, count));
    for (int32_t first = 0, columns; first < count; first += columns) {
        columns = count - first < predictor->tile ? count - first : predictor->tile;
        vlp_score_tile tile;
        VLP_TRY(vlp_scorer_listed(&tile, predictor->scorer, first, columns));
        VLP_TRY(model->backend->select->offer(model->compute, predictor->selection, &tile,
                                              &predictor->options.mixture));
        if (vlp_stopped(observer)) return vlp_fail_stopped();
    }
    return VLP_OK;
}

/* The entities that do not compete, for each query. */
static void find_excluded(vlp_predictor *predictor, const vlp_query *queries, int64_t count,
                          const vlp_filter *known) {
    for (int64_t i = 0; i < count; i++) {
        vlp_excluded *row = &predictor->excluded[i];
        *row = (vlp_excluded){NULL, 0};
        if (known)
            row->items = vlp_filter_answers(known, queries[i].entity, queries[i].relation, &row->count);
    }
}

/* Replaces excluded entities by their positions in a list; those that are not in it are dropped. Both
 * are ascending. */
static vlp_status exclude_by_position(vlp_predictor *predictor, int64_t queries,
                                      const vlp_candidate_list *among) {
    int64_t total = 0;
    for (int64_t i = 0; i < queries; i++) total += predictor->excluded[i].count;
    VLP_TRY(vlp_grow(&predictor->positions, &predictor->position_capacity, total,
                     sizeof *predictor->positions, "predictions"));
    int32_t *out = predictor->positions;
    for (int64_t i = 0; i < queries; i++) {
        vlp_excluded by_entity = predictor->excluded[i];
        predictor->excluded[i] = (vlp_excluded){out, 0};
        for (int64_t j = 0, at = 0; j < by_entity.count && at < among->count;) {
            int32_t entity = by_entity.items[j], candidate = among->entities[at];
            if (entity == candidate) out[predictor->excluded[i].count++] = (int32_t)at;
            j += entity <= candidate;
            at += candidate <= entity;
        }
        if (predictor->excluded[i].count > 0)
            out += predictor->excluded[i].count; /* NULL where total is 0 */
    }
    return VLP_OK;
}

/* What was selected names positions in a list; here they become entities. */
static vlp_status name_entities(vlp_predictor *predictor, int64_t queries,
                                const vlp_candidate_list *among) {
    vlp_best *best = &predictor->best;
    VLP_TRY(vlp_grow(&predictor->listed, &predictor->listed_capacity, queries * predictor->wanted,
                     sizeof *predictor->listed, "predictions"));
    for (int64_t i = 0; i < queries; i++)
        for (int32_t j = 0; j < best->counts[i]; j++) {
            vlp_top *top = &predictor->listed[i * predictor->wanted + j];
            *top = best->items[i * best->stride + j];
            top->entity = among->entities[top->entity];
        }
    best->items = predictor->listed;
    best->stride = predictor->wanted;
    return VLP_OK;
}

vlp_status vlp_predictor_top(vlp_predictor *predictor, const vlp_query *queries, int64_t count,
                             int32_t wanted, const vlp_filter *excluded, const vlp_candidate_list *among,
                             const vlp_observer *observer) {
    assert(count <= predictor->batch && (!among || among->count > 0));
    const vlp_model *model = predictor->options.model;
    const vlp_select_operations *select = model->backend->select;
    int64_t most = among ? among->count : model->entities;
    VLP_TRY(set_selection(predictor, wanted < most ? wanted : (int32_t)most));
    find_excluded(predictor, queries, count, excluded);
    if (among) VLP_TRY(exclude_by_position(predictor, count, among));
    VLP_TRY(select->start(model->compute, predictor->selection, predictor->excluded, (int32_t)count));
    VLP_TRY(vlp_scorer_prepare(predictor->scorer, queries, count));
    vlp_status status = among ? offer_list(predictor, among, observer) : offer_all(predictor, observer);
    if (status == VLP_OK)
        status = select->finish(model->compute, &predictor->best, predictor->selection);
    if (status == VLP_ERROR_FORMAT) return fail_not_a_number();
    if (status == VLP_OK && among) status = name_entities(predictor, count, among);
    return status;
}

const vlp_top *vlp_predictor_answers(const vlp_predictor *predictor, int64_t index, int32_t *count) {
    *count = predictor->best.counts[index];
    return predictor->best.items + index * predictor->best.stride;
}

const vlp_references *vlp_predictor_references(const vlp_predictor *predictor) {
    return vlp_scorer_references(predictor->scorer);
}

/* ---- Given pairs --------------------------------------------------------------------------------- */

static vlp_status reserve_pairs(vlp_predictor *predictor, int64_t cells) {
    if (cells <= predictor->pair_capacity) return VLP_OK;
    int64_t capacity = predictor->pair_capacity;
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!vlp_model_has(predictor->options.model, (vlp_component)c)) continue;
        capacity = predictor->pair_capacity;
        VLP_TRY(vlp_grow(&predictor->pair_scores[c], &capacity, cells, sizeof(float), "predictions"));
    }
    capacity = predictor->pair_capacity;
    VLP_TRY(vlp_grow(&predictor->pair_entities, &capacity, cells, sizeof(int32_t), "predictions"));
    predictor->pair_capacity = capacity;
    return VLP_OK;
}

vlp_status vlp_predictor_score(vlp_top *out, vlp_predictor *predictor, const vlp_query *queries,
                               const int32_t *entities, int64_t count) {
    VLP_TRY(reserve_pairs(predictor, count));
    VLP_TRY(vlp_scorer_prepare(predictor->scorer, queries, count));
    VLP_TRY(vlp_scorer_pairs(predictor->pair_scores, predictor->scorer, entities, 1));
    for (int64_t i = 0; i < count; i++) {
        out[i] = (vlp_top){.entity = entities[i]};
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            if (!predictor->pair_scores[c]) continue;
            out[i].parts[c] = predictor->pair_scores[c][i];
            out[i].score += predictor->options.mixture.weights[c] * out[i].parts[c];
        }
        if (out[i].score != out[i].score) return fail_not_a_number();
    }
    return VLP_OK;
}

/* ---- All scores ---------------------------------------------------------------------------------- */

/* Hands a tile of the prepared queries to a reader; `start`: the first of them. */
static vlp_status read_tile(vlp_predictor *predictor, int64_t start, int64_t count,
                            const vlp_score_tile *tile, vlp_score_reader read, void *user) {
    const vlp_model *model = predictor->options.model;
    int64_t columns = tile->columns;
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (predictor->pair_scores[c])
            VLP_TRY(model->backend->memory->download(model->compute, predictor->pair_scores[c],
                                                     tile->components[c].rows,
                                                     (size_t)(count * columns) * sizeof(float)));
#pragma omp parallel for num_threads(vlp_thread_count(predictor->options.threads)) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        const float *scores[VLP_MAX_COMPONENTS] = {NULL};
        for (int c = 0; c < VLP_COMPONENTS; c++)
            if (predictor->pair_scores[c]) scores[c] = predictor->pair_scores[c] + i * columns;
        read(user, start + i, tile->first, tile->columns, scores);
    }
    return VLP_OK;
}

vlp_status vlp_predictor_read(vlp_predictor *predictor, const vlp_query *queries, int64_t count,
                              const vlp_candidate_list *among, vlp_score_reader read, void *user,
                              const vlp_observer *observer) {
    int32_t candidates = (int32_t)among->count, tile = predictor->tile;
    if (tile > candidates) tile = candidates;
    VLP_TRY(reserve_pairs(predictor, (int64_t)predictor->batch * tile));
    VLP_TRY(vlp_scorer_list(predictor->scorer, among->entities, candidates));
    for (int64_t start = 0; start < count; start += predictor->batch) {
        int64_t size = count - start < predictor->batch ? count - start : predictor->batch;
        VLP_TRY(vlp_scorer_prepare(predictor->scorer, queries + start, size));
        for (int32_t first = 0; first < candidates; first += tile) {
            vlp_score_tile scored;
            int32_t columns = candidates - first < tile ? candidates - first : tile;
            VLP_TRY(vlp_scorer_listed(&scored, predictor->scorer, first, columns));
            VLP_TRY(read_tile(predictor, start, size, &scored, read, user));
            if (vlp_stopped(observer)) return vlp_fail_stopped();
        }
    }
    return VLP_OK;
}

/* ---- Contributions of references, to the vertical component ----------------------------------------
 */

/* Row `row` becomes the query of `item` without reference `without` (-1: with all of them). */
static void put_variant(vlp_predictor *predictor, int64_t row, const vlp_explained *item,
                        int32_t without) {
    bool forward = item->query.relation < predictor->options.graph->relations;
    int64_t at = row * predictor->options.references;
    int32_t used = 0;
    for (int32_t i = 0; i < item->reference_count; i++) {
        if (i == without) continue;
        vlp_triple edge = item->references[i].triple;
        predictor->variant_heads[at + used] = forward ? edge.head : edge.tail;
        predictor->variant_answers[at + used++] = forward ? edge.tail : edge.head;
    }
    predictor->variants[row] = item->query;
    predictor->variant_counts[row] = used;
}

/* The contributions of items[0 .. count), whose variants fill `rows` rows. */
static vlp_status explain_batch(vlp_predictor *predictor, const vlp_explained *items, int64_t count,
                                int64_t rows, int32_t width) {
    VLP_TRY(reserve_pairs(predictor, rows * width));
    int64_t row = 0;
    for (int64_t i = 0; i < count; i++)
        for (int32_t without = -1; without < items[i].reference_count; without++, row++) {
            put_variant(predictor, row, &items[i], without);
            for (int32_t j = 0; j < width; j++)
                predictor->pair_entities[row * width + j] =
                    j < items[i].answer_count ? items[i].answers[j] : -1;
        }
    vlp_reference_batch given = {predictor->variant_heads, predictor->variant_answers,
                                 predictor->variant_counts, predictor->options.references};
    VLP_TRY(vlp_scorer_find(predictor->scorer, 0, predictor->variants, rows));
    vlp_scorer_give_references(predictor->scorer, &given);
    VLP_TRY(vlp_scorer_make(predictor->scorer, 1u << VLP_VERTICAL));
    float *wanted[VLP_MAX_COMPONENTS] = {[VLP_VERTICAL] = predictor->pair_scores[VLP_VERTICAL]};
    VLP_TRY(vlp_scorer_pairs(wanted, predictor->scorer, predictor->pair_entities, width));
    const float *scores = wanted[VLP_VERTICAL];
    double weight = (double)predictor->options.mixture.weights[VLP_VERTICAL];
    for (int64_t i = 0; i < count; i++) {
        int32_t references = items[i].reference_count;
        for (int32_t j = 0; j < items[i].answer_count; j++)
            for (int32_t k = 0; k < references; k++)
                items[i].contributions[(int64_t)j * references + k] =
                    weight * ((double)scores[j] - (double)scores[(int64_t)(k + 1) * width + j]);
        scores += (int64_t)(references + 1) * width;
    }
    return VLP_OK;
}

vlp_status vlp_predictor_contributions(vlp_predictor *predictor, const vlp_explained *items,
                                       int64_t count, const vlp_observer *observer) {
    if (!vlp_model_has(predictor->options.model, VLP_VERTICAL) ||
        predictor->options.mixture.weights[VLP_VERTICAL] == 0) {
        for (int64_t i = 0; i < count; i++)
            memset(items[i].contributions, 0,
                   (size_t)items[i].answer_count * (size_t)items[i].reference_count * sizeof(double));
        return VLP_OK;
    }
    for (int64_t first = 0, end; first < count; first = end) {
        int64_t rows = 0;
        int32_t width = 0;
        for (end = first; end < count && rows + items[end].reference_count + 1 <= predictor->batch;
             end++) {
            rows += items[end].reference_count + 1;
            if (items[end].answer_count > width) width = items[end].answer_count;
        }
        VLP_TRY(explain_batch(predictor, items + first, end - first, rows, width));
        if (vlp_stopped(observer)) return vlp_fail_stopped();
    }
    return VLP_OK;
}
