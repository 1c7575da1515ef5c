/* The best answers of many queries, from tiles of entities. Scores are read once: a row keeps a
 * threshold, and a block of scores that does not pass it costs one vectorized comparison. */
#include <math.h>
#include <stdlib.h>

#include <omp.h>

#include "compute/cpu/cpu.h"

enum { BLOCK = 64 };

typedef struct top_row {
    float threshold;  /* scores that are not above it cannot be among the best */
    int64_t excluded; /* excluded entities before the next tile */
} top_row;

struct vlp_selection {
    int32_t capacity, rows; /* queries: at most, and of this selection */
    int32_t wanted, buffer, columns, threads;
    top_row *state;         /* (rows) */
    int32_t *counts;        /* (rows) */
    vlp_top *items;         /* (rows, buffer) in no order */
    float *mixed;           /* (threads, columns) */
    vlp_excluded *excluded; /* (rows) */
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

static vlp_status selection_open(vlp_compute *compute, vlp_selection **out, int32_t rows, int32_t wanted,
                                 int32_t columns) {
    *out = NULL;
    vlp_selection *selection = vlp_alloc_zero(1, sizeof *selection);
    if (!selection) return vlp_fail_memory("the best answers");
    selection->capacity = rows;
    selection->wanted = wanted;
    /* A larger buffer is sorted less often, but leaves the cache sooner. */
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
    assert(rows <= selection->capacity);
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

VLP_CLONES static void mix(float *restrict out, const float *restrict horizontal,
                           const float *restrict vertical, const float *restrict scale,
                           vlp_mixture mixture, int32_t columns) {
    float v = mixture.vertical, h = mixture.horizontal;
    if (vertical)
        for (int32_t e = 0; e < columns; e++) out[e] = v * (vertical[e] * scale[e]) + h * horizontal[e];
    else
        for (int32_t e = 0; e < columns; e++) out[e] = h * horizontal[e];
}

/* The start of the first block from `at` on with a score that is above the threshold or NaN, or
 * `columns`.
 */
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
static void sort_out(vlp_selection *selection, int32_t row) {
    vlp_top *items = selection->items + (int64_t)row * selection->buffer;
    qsort(items, (size_t)selection->counts[row], sizeof *items, compare);
    if (selection->counts[row] < selection->wanted) return;
    selection->counts[row] = selection->wanted;
    selection->state[row].threshold = items[selection->wanted - 1].score;
}

/* One row of a tile; false when a score is NaN. */
static bool offer_row(vlp_selection *selection, int32_t row, const float *mixed,
                      const vlp_score_tile *tile) {
    top_row *state = &selection->state[row];
    int32_t *count = &selection->counts[row], columns = tile->columns;
    vlp_top *items = selection->items + (int64_t)row * selection->buffer;
    const float *horizontal = tile->horizontal + (int64_t)row * columns;
    const float *vertical = tile->vertical ? tile->vertical + (int64_t)row * columns : NULL;
    const float *scale = tile->scale + tile->first;
    for (int32_t at = 0; (at = next_block(mixed, at, columns, state->threshold)) < columns;
         at += BLOCK) {
        int32_t end = at + BLOCK < columns ? at + BLOCK : columns;
        for (int32_t e = at; e < end; e++) {
            /* Tiles come in ascending order: an equal score of a later entity ranks below. */
            if (mixed[e] <= state->threshold) continue;
            if (isnan(mixed[e])) return false;
            items[(*count)++] = (vlp_top){mixed[e], horizontal[e], vertical ? vertical[e] * scale[e] : 0,
                                          tile->first + e};
            if (*count == selection->buffer) sort_out(selection, row);
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
                                  const vlp_score_tile *tile, vlp_mixture mixture) {
    (void)compute;
    int32_t first = tile->first, columns = tile->columns;
    assert(columns <= selection->columns);
    bool bad = false;
#pragma omp parallel for num_threads(selection->threads) schedule(static) reduction(|| : bad)
    for (int32_t row = 0; row < selection->rows; row++) {
        float *mixed = selection->mixed + (int64_t)omp_get_thread_num() * selection->columns;
        const float *h = tile->horizontal + (int64_t)row * columns;
        const float *v = tile->vertical ? tile->vertical + (int64_t)row * columns : NULL;
        mix(mixed, h, v, tile->scale + first, mixture, columns);
        exclude(selection, row, mixed, first, columns);
        bad = !offer_row(selection, row, mixed, tile) || bad;
    }
    return bad ? vlp_fail(VLP_ERROR_FORMAT, "a score is not a number") : VLP_OK;
}

static vlp_status selection_finish(vlp_compute *compute, vlp_best *out, vlp_selection *selection) {
    (void)compute;
#pragma omp parallel for num_threads(selection->threads) schedule(static)
    for (int32_t row = 0; row < selection->rows; row++) sort_out(selection, row);
    *out = (vlp_best){selection->items, selection->counts, selection->buffer};
    return VLP_OK;
}

const vlp_select_operations cpu_select_operations = {.open = selection_open,
                                                     .close = selection_close,
                                                     .start = selection_start,
                                                     .offer = selection_offer,
                                                     .finish = selection_finish};
