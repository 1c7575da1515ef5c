/* The best answers of many queries, from one tile of entities after the other. Scores are read once: a
 * row keeps a threshold, and whole blocks that do not pass it cost one vectorized comparison. */
#include <math.h>
#include <stdlib.h>

#include <omp.h>

#include "compute/cpu/cpu.h"
#include "compute/cpu/mix.h"

enum { BLOCK = 64 };

typedef struct top_row {
    float threshold;  /* scores that are not above it cannot be among the best */
    int64_t excluded; /* number of the excluded entities before the next tile */
} top_row;

struct vlp_selection {
    int32_t row_capacity, rows;               /* queries: at most, and now */
    int32_t wanted, buffer, columns, threads; /* buffer: the capacity of a row */
    top_row *state;                           /* (rows) */
    int32_t *counts;                          /* (rows) */
    vlp_top *items;                           /* (rows, buffer) in no order */
    float *mixed;                             /* (threads, columns) */
    vlp_excluded *excluded;                   /* (rows) */
};

static void selection_close(vlp_compute *compute, vlp_selection *selection) {
    (void)compute;
    if (!selection) return;
    vlp_free(selection->state);
    vlp_free(selection->counts);
    vlp_free(selection->items);
    vlp_free(selection->mixed);
    vlp_free(selection->excluded);
    vlp_free(selection);
}

static vlp_status selection_open(vlp_compute *compute, vlp_selection **out,
                                 const vlp_select_options *options) {
    *out = NULL;
    int32_t rows = options->rows, wanted = options->wanted, columns = options->columns;
    vlp_selection *selection = vlp_alloc_zero(1, sizeof *selection);
    if (!selection) return vlp_fail_memory("the best answers");
    selection->row_capacity = rows;
    selection->wanted = wanted;
    /* The larger the buffer, the rarer it is sorted, and the sooner it leaves the cache. */
    selection->buffer = wanted < INT32_MAX / 2 - BLOCK ? 2 * wanted + BLOCK : wanted;
    selection->columns = columns;
    selection->threads = compute->threads;
    selection->state = vlp_alloc((size_t)rows, sizeof *selection->state);
    selection->counts = vlp_alloc((size_t)rows, sizeof *selection->counts);
    selection->items = vlp_alloc((size_t)rows * (size_t)selection->buffer, sizeof *selection->items);
    selection->mixed = vlp_alloc((size_t)selection->threads * (size_t)columns, sizeof *selection->mixed);
    selection->excluded = vlp_alloc((size_t)rows, sizeof *selection->excluded);
    if (!selection->state || !selection->counts || !selection->items || !selection->mixed ||
        !selection->excluded) {
        selection_close(compute, selection);
        return vlp_fail_memory("the best answers");
    }
    *out = selection;
    return VLP_OK;
}

static vlp_status selection_start(vlp_compute *compute, vlp_selection *selection,
                                  const vlp_excluded *excluded, int32_t rows) {
    (void)compute;
    assert(rows <= selection->row_capacity);
    selection->rows = rows;
    for (int32_t i = 0; i < rows; i++) {
        selection->state[i] = (top_row){-INFINITY, 0};
        selection->counts[i] = 0;
        selection->excluded[i] = excluded[i];
    }
    return VLP_OK;
}

/* ---- One row ------------------------------------------------------------------------------------- */

/* Best first: a higher score, or the same and an earlier entity. */
static int compare(const void *left, const void *right) {
    const vlp_top *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->entity > b->entity) - (a->entity < b->entity);
}

/* The start of the first block from `at` on with a score that is not at or below the threshold (NaN is
 * neither), or `columns`. */
VLP_CLONES static int32_t next_block(const float *scores, int32_t at, int32_t columns, float threshold) {
    for (; at + BLOCK <= columns; at += BLOCK) {
        int32_t above = 0;
#pragma omp simd reduction(+ : above)
        for (int32_t i = 0; i < BLOCK; i++) above += !(scores[at + i] <= threshold);
        if (above) return at;
    }
    return at;
}

/* Keeps the best `wanted` of a full row and raises its threshold. */
static void keep_best(vlp_selection *selection, int32_t row) {
    vlp_top *items = selection->items + (int64_t)row * selection->buffer;
    qsort(items, (size_t)selection->counts[row], sizeof *items, compare);
    if (selection->counts[row] < selection->wanted) return;
    selection->counts[row] = selection->wanted;
    selection->state[row].threshold = items[selection->wanted - 1].score;
}

/* Column e of a tile. */
static vlp_top top_of(const mixed_rows *rows, float score, int32_t first, int32_t e) {
    vlp_top top = {.score = score, .entity = first + e};
    for (int32_t i = 0; i < rows->count; i++) {
        const float *scale = rows->items[i].scale;
        float part = rows->items[i].scores[e];
        top.parts[rows->items[i].component] = scale ? part * scale[e] : part;
    }
    return top;
}

/* One row of a tile; false when a score is NaN. */
static bool offer_row(vlp_selection *selection, int32_t row, const float *mixed, const mixed_rows *rows,
                      int32_t first, int32_t columns) {
    top_row *state = &selection->state[row];
    int32_t *count = &selection->counts[row];
    vlp_top *items = selection->items + (int64_t)row * selection->buffer;
    for (int32_t at = 0; (at = next_block(mixed, at, columns, state->threshold)) < columns;
         at += BLOCK) {
        int32_t end = at + BLOCK < columns ? at + BLOCK : columns;
        for (int32_t e = at; e < end; e++) {
            /* Tiles come in ascending order: an entity that only equals the threshold is too late. */
            if (mixed[e] <= state->threshold) continue;
            if (isnan(mixed[e])) return false;
            items[(*count)++] = top_of(rows, mixed[e], first, e);
            if (*count == selection->buffer) keep_best(selection, row);
        }
    }
    return true;
}

/* Masks the excluded entities of the tile. */
static void exclude(vlp_selection *selection, int32_t row, float *mixed, int32_t first,
                    int32_t columns) {
    const vlp_excluded *excluded = &selection->excluded[row];
    int64_t *at = &selection->state[row].excluded;
    for (; *at < excluded->count && excluded->items[*at] < first + columns; ++*at)
        mixed[excluded->items[*at] - first] = -INFINITY;
}

static vlp_status selection_offer(vlp_compute *compute, vlp_selection *selection,
                                  const vlp_score_tile *tile, const vlp_mixture *mixture) {
    (void)compute;
    int32_t first = tile->first, columns = tile->columns;
    assert(columns <= selection->columns);
    bool bad = false;
#pragma omp parallel for num_threads(selection->threads) schedule(static) reduction(|| : bad)
    for (int32_t row = 0; row < selection->rows; row++) {
        float *mixed = selection->mixed + (int64_t)omp_get_thread_num() * selection->columns;
        mixed_rows rows = {.count = 0};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++) {
            const vlp_component_scores *scores = &tile->components[c];
            if (scores->rows)
                mixed_rows_add(&rows, c, scores->rows + row * scores->stride,
                               scores->scale ? scores->scale + first : NULL);
        }
        mix_row(mixed, &rows, mixture, columns);
        exclude(selection, row, mixed, first, columns);
        bad = !offer_row(selection, row, mixed, &rows, first, columns) || bad;
    }
    return bad ? vlp_fail(VLP_ERROR_DIVERGED, "a score is not a number") : VLP_OK;
}

static vlp_status selection_finish(vlp_compute *compute, vlp_best *out, vlp_selection *selection) {
    (void)compute;
#pragma omp parallel for num_threads(selection->threads) schedule(static)
    for (int32_t row = 0; row < selection->rows; row++) keep_best(selection, row);
    *out = (vlp_best){selection->items, selection->counts, selection->buffer};
    return VLP_OK;
}

const vlp_select_operations cpu_select_operations = {.open = selection_open,
                                                     .close = selection_close,
                                                     .start = selection_start,
                                                     .offer = selection_offer,
                                                     .finish = selection_finish};
