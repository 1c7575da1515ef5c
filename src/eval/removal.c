#include "eval/removal.h"

#include <math.h>
#include <string.h>

enum { SCORES = 16 << 20 /* floats of a batch, per component */ };

struct vlp_removal {
    const vlp_model *model;
    const vlp_graph *graph;
    const uint8_t *only; /* (entities) that may compete; NULL: all */
    vlp_scorer *scorer;
    int32_t batch, references;
    vlp_removal_answer of;
    const int32_t *excluded; /* (excluded_count) known answers, which do not compete */
    int64_t excluded_count;
    int64_t competitor;               /* how many score at least as high as the answer, and one more */
    double *fixed;                    /* (entities) the part of f that no removal changes */
    double *row;                      /* (entities) f */
    double *spare;                    /* (entities) f of the competitors */
    int32_t *entities;                /* (entities) these */
    float *parts[VLP_MAX_COMPONENTS]; /* (batch, entities); f_g: (1, entities) */
    float *messages;                  /* (layers, 2 triples) */
    /* The references of the query, and of its variants. */
    vlp_reference *found; /* (references) */
    int32_t found_count;
    vlp_query *queries;                                        /* (batch) */
    int32_t *variant_heads, *variant_answers, *variant_counts; /* (batch, references), (batch) */
    int64_t *offset;                                           /* (batch + 1) of what is taken out */
    int32_t *taken;                                            /* (batch, VLP_REMOVAL_MAX + 1) */
};

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status allocate(vlp_removal *removal, const vlp_predictor_options *options) {
    size_t entities = (size_t)removal->model->entities, batch = (size_t)removal->batch,
           references = (size_t)removal->references;
    vlp_scorer_options scoring = {.model = options->model,
                                  .graph = options->graph,
                                  .trained = options->trained,
                                  .references = options->references,
                                  .references_per_head = options->references_per_head,
                                  .references_rule = options->references_rule,
                                  .batch = removal->batch,
                                  .columns = removal->model->entities,
                                  .threads = options->threads};
    VLP_TRY(vlp_scorer_open(&removal->scorer, &scoring));
    removal->fixed = vlp_alloc(entities, sizeof(double));
    removal->row = vlp_alloc(entities, sizeof(double));
    removal->spare = vlp_alloc(entities, sizeof(double));
    removal->entities = vlp_alloc(entities, sizeof(int32_t));
    removal->found = vlp_alloc(references, sizeof *removal->found);
    removal->queries = vlp_alloc(batch, sizeof *removal->queries);
    removal->variant_heads = vlp_alloc_zero(batch * references, sizeof(int32_t));
    removal->variant_answers = vlp_alloc_zero(batch * references, sizeof(int32_t));
    removal->variant_counts = vlp_alloc(batch, sizeof(int32_t));
    removal->offset = vlp_alloc_zero(batch + 1, sizeof(int64_t));
    removal->taken = vlp_alloc(batch * (VLP_REMOVAL_MAX + 1), sizeof(int32_t));
    bool all = removal->fixed && removal->row && removal->spare && removal->entities && removal->found &&
               removal->queries && removal->variant_heads && removal->variant_answers &&
               removal->variant_counts && removal->offset && removal->taken;
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!vlp_model_has(removal->model, (vlp_component)c)) continue;
        removal->parts[c] = vlp_alloc((c == VLP_HORIZONTAL ? 1 : batch) * entities, sizeof(float));
        all = all && removal->parts[c];
    }
    return all ? VLP_OK : vlp_fail_memory("explanations");
}

vlp_status vlp_removal_open(vlp_removal **out, const vlp_predictor_options *options, int32_t batch) {
    *out = NULL;
    vlp_removal *removal = vlp_alloc_zero(1, sizeof *removal);
    if (!removal) return vlp_fail_memory("explanations");
    int64_t fitting = SCORES / options->model->entities;
    removal->model = options->model;
    removal->graph = options->graph;
    removal->only = options->only;
    removal->references = options->references;
    removal->batch = (int32_t)(fitting < 1 ? 1 : fitting > batch ? batch : fitting);
    vlp_status status = allocate(removal, options);
    if (status != VLP_OK) {
        vlp_removal_close(removal);
        return status;
    }
    *out = removal;
    return VLP_OK;
}

void vlp_removal_close(vlp_removal *removal) {
    if (!removal) return;
    vlp_scorer_free(removal->scorer);
    for (int c = 0; c < VLP_COMPONENTS; c++) vlp_free(removal->parts[c]);
    void *parts[] = {removal->entities,        removal->fixed,         removal->row,
                     removal->spare,           removal->messages,      removal->found,
                     removal->queries,         removal->variant_heads, removal->taken,
                     removal->variant_answers, removal->offset,        removal->variant_counts};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) vlp_free(parts[i]);
    vlp_free(removal);
}

/* ---- Ranks --------------------------------------------------------------------------------------- */

/* The score of a row of the batch by a component that the model has. */
static float part_of(const vlp_removal *removal, vlp_component c, int32_t row, int32_t entity) {
    if (c == VLP_HORIZONTAL) row = 0;
    return removal->parts[c][(int64_t)row * removal->model->entities + entity];
}

static double mixed(const vlp_removal *removal, vlp_component c, int32_t row, int32_t entity) {
    double weight = (double)removal->of.mixture.weights[c];
    if (weight == 0 || !removal->parts[c]) return 0;
    return weight * (double)part_of(removal, c, row, entity);
}

/* The k-th largest of n values, from 1 on; their order changes. */
static double largest(double *values, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1, wanted = k - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i > j) break;
            double swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (wanted <= j)
            high = j;
        else if (wanted >= i)
            low = i;
        else
            break;
    }
    return values[wanted];
}

/* f of the competitors of the last row, into `spare`; returns their number. */
static int64_t collect_competitors(vlp_removal *removal) {
    int64_t count = 0, next = 0;
    for (int32_t e = 0; e < removal->model->entities; e++) {
        while (next < removal->excluded_count && removal->excluded[next] < e) next++;
        bool excluded = next < removal->excluded_count && removal->excluded[next] == e;
        if (e == removal->of.answer || excluded || (removal->only && !removal->only[e])) continue;
        removal->entities[count] = e;
        removal->spare[count++] = removal->row[e];
    }
    return count;
}

/* The result of a row of the batch. `first`: it decides which competitor counts for the margin. */
static vlp_status rank_row(vlp_removal_result *out, vlp_removal *removal, int32_t row, bool first) {
    int32_t entities = removal->model->entities, answer = removal->of.answer;
    double *f = removal->row;
    bool bad = false;
    for (int32_t e = 0; e < entities; e++) {
        f[e] =
            removal->fixed[e] + mixed(removal, VLP_VERTICAL, row, e) + mixed(removal, VLP_PATH, row, e);
        bad = bad || f[e] != f[e];
    }
    if (bad)
        return vlp_fail(VLP_ERROR_DIVERGED,
                        "a score is not a number; the run is damaged or training diverged");
    int64_t above = 0, equal = 0, count = collect_competitors(removal);
    for (int64_t i = 0; i < count; i++) {
        above += removal->spare[i] > f[answer];
        equal += removal->spare[i] == f[answer];
    }
    if (first) removal->competitor = above + equal + 1;
    *out = (vlp_removal_result){.rank = 1 + (double)above + (double)equal / 2,
                                .score = f[answer],
                                .margin = (double)INFINITY,
                                .competitor = -1};
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        out->parts[c] =
            removal->parts[c] ? (double)part_of(removal, (vlp_component)c, row, answer) : (double)NAN;
    if (removal->competitor > count) return VLP_OK;
    double passes = largest(removal->spare, count, removal->competitor);
    int64_t at = 0;
    while (f[removal->entities[at]] != passes) at++;
    out->margin = f[answer] - passes;
    out->competitor = removal->entities[at];
    return VLP_OK;
}

/* ---- Scoring ------------------------------------------------------------------------------------- */

static vlp_status download(vlp_removal *removal, int32_t count) {
    const vlp_model *model = removal->model;
    const float *scores[VLP_MAX_COMPONENTS];
    VLP_TRY(vlp_scorer_all(scores, removal->scorer));
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (scores[c])
            VLP_TRY(model->backend->memory->download(model->compute, removal->parts[c], scores[c],
                                                     (size_t)count * (size_t)model->entities *
                                                         sizeof(float)));
    return VLP_OK;
}

/* Components whose scores a removal changes. */
static unsigned changing(const vlp_removal *removal) {
    return removal->model->components & (1u << VLP_VERTICAL | 1u << VLP_PATH);
}

vlp_status vlp_removal_begin(vlp_removal_result *out, vlp_removal *removal,
                             const vlp_removal_answer *answer) {
    const vlp_model *model = removal->model;
    removal->of = *answer;
    removal->excluded = NULL;
    removal->excluded_count = 0;
    if (answer->known)
        removal->excluded = vlp_filter_answers(answer->known, answer->query.entity,
                                               answer->query.relation, &removal->excluded_count);
    VLP_TRY(vlp_scorer_prepare(removal->scorer, &answer->query, 1));
    const vlp_references *references = vlp_scorer_references(removal->scorer);
    removal->found_count = 0;
    if (references) {
        const vlp_reference *list = vlp_references_get(references, 0, &removal->found_count);
        if (removal->found_count > 0)
            memcpy(removal->found, list, (size_t)removal->found_count * sizeof *list);
    }
    VLP_TRY(download(removal, 1));
    for (int32_t e = 0; e < model->entities; e++)
        removal->fixed[e] = mixed(removal, VLP_HORIZONTAL, 0, e);
    return rank_row(out, removal, 0, true);
}

static bool has(const vlp_removed_set *set, int32_t triple) {
    for (int32_t i = 0; i < set->count; i++)
        if (set->triples[i] == triple) return true;
    return false;
}

/* Row `row` becomes the query without a set. Returns the number of triples in `taken` so far. */
static int64_t put_variant(vlp_removal *removal, int32_t row, const vlp_removed_set *set, int64_t used) {
    vlp_query query = removal->of.query;
    bool forward = query.relation < removal->graph->relations;
    int64_t at = (int64_t)row * removal->references;
    int32_t left = 0;
    for (int32_t i = 0; i < removal->found_count; i++) {
        vlp_triple edge = removal->graph->triples[removal->found[i].edge];
        if (has(set, (int32_t)removal->found[i].edge)) continue;
        removal->variant_heads[at + left] = forward ? edge.head : edge.tail;
        removal->variant_answers[at + left++] = forward ? edge.tail : edge.head;
    }
    removal->variant_counts[row] = left;
    removal->queries[row] = query;
    removal->offset[row] = used;
    if (query.left_out >= 0) removal->taken[used++] = (int32_t)query.left_out;
    for (int32_t i = 0; i < set->count; i++) removal->taken[used++] = set->triples[i];
    removal->offset[row + 1] = used;
    return used;
}

static vlp_status try_batch(vlp_removal_result *out, vlp_removal *removal, const vlp_removed_set *sets,
                            int32_t count) {
    unsigned components = changing(removal);
    int64_t used = 0;
    for (int32_t i = 0; i < count; i++) used = put_variant(removal, i, &sets[i], used);
    VLP_TRY(vlp_scorer_find(removal->scorer, components & 1u << VLP_PATH, removal->queries, count));
    if (components >> VLP_VERTICAL & 1) {
        vlp_reference_batch given = {removal->variant_heads, removal->variant_answers,
                                     removal->variant_counts, removal->references};
        vlp_scorer_give_references(removal->scorer, &given);
    }
    if (components >> VLP_PATH & 1)
        VLP_TRY(vlp_scorer_remove(removal->scorer, removal->offset, removal->taken));
    VLP_TRY(vlp_scorer_make(removal->scorer, components));
    VLP_TRY(download(removal, count));
    for (int32_t i = 0; i < count; i++) VLP_TRY(rank_row(&out[i], removal, i, false));
    return VLP_OK;
}

vlp_status vlp_removal_try(vlp_removal_result *out, vlp_removal *removal, const vlp_removed_set *sets,
                           int32_t count) {
    for (int32_t first = 0; first < count; first += removal->batch)
        VLP_TRY(try_batch(out + first, removal, sets + first,
                          count - first < removal->batch ? count - first : removal->batch));
    return VLP_OK;
}

vlp_status vlp_removal_messages(const float **out, vlp_removal *removal, const vlp_removed_set *set,
                                int32_t answer) {
    if (!removal->messages)
        removal->messages = vlp_alloc(
            (size_t)removal->model->path.layers * 2 * (size_t)removal->graph->edges, sizeof(float));
    if (!removal->messages) return vlp_fail_memory("explanations");
    int64_t used = put_variant(removal, 0, set, 0);
    vlp_explained_answer of = {removal->of.query, answer, removal->taken, (int32_t)used};
    VLP_TRY(vlp_scorer_messages(removal->messages, removal->scorer, &of));
    *out = removal->messages;
    return VLP_OK;
}
