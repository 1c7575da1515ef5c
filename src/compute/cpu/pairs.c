/* Pairs of queries and entities, grouped by entity, a few pairs of an entity at a time: the entity's row
 * and its gradient stay in the L1 cache, the queries of the batch in L2, and every row of the table is
 * read once and written by one thread. Gradients of queries are summed in a copy per thread, then
 * reduced. */
#include <math.h>
#include <string.h>

#include <omp.h>

#include "compute/cpu/cpu.h"

enum { ROWS = CPU_MODULUS_ROWS };

/* ---- Pairs by entity ----------------------------------------------------------------------------- */

static vlp_status sort_pairs(vlp_compute *compute, const vlp_pairs *pairs) {
    if (compute->segments_of == pairs->entities && compute->segments_batch == pairs->batch &&
        compute->segments_width == pairs->width)
        return VLP_OK;
    compute->segments_of = NULL;
    return cpu_segments_make(&compute->segments, pairs->entities, (int64_t)pairs->batch * pairs->width,
                             pairs->table_rows);
}

/* The segments of one thread: an equal share of the pairs. */
static void share_of(const cpu_segments *segments, int thread, int threads, int64_t *first,
                     int64_t *end) {
    int64_t total = segments->start[segments->segments], bounds[2];
    for (int side = 0; side < 2; side++) {
        int64_t wanted = total * (thread + side) / threads, low = 0, high = segments->segments;
        while (low < high) { /* the first segment that starts at the bound or later */
            int64_t middle = (low + high) / 2;
            if (segments->start[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        bounds[side] = low;
    }
    *first = bounds[0];
    *end = thread + 1 == threads ? segments->segments : bounds[1];
}

/* Prefetches the row of the next segment during the pairs of this one. */
static void fetch_next(const cpu_segments *segments, int64_t s, const float *table, int32_t width) {
    if (s + 1 == segments->segments) return;
    const float *row = table + (int64_t)segments->row[s + 1] * width;
    enum { LINE = 64 / sizeof *row };
    for (int32_t j = 0; j < width; j += LINE) __builtin_prefetch(row + j);
}

static vlp_status pair_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                              const vlp_related_rows *queries, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    for (int64_t i = 0; i < total; i++)
        if (pairs->entities[i] < 0) scores[i] = -INFINITY;
    if (vlp_form_transforms_answers(form))
        return cpu_transformed_scores(compute, scores, form, queries, pairs);
    compute->segments_of = NULL; /* the same array may hold other entities by now */
    VLP_TRY(sort_pairs(compute, pairs));
    compute->segments_of = pairs->entities;
    compute->segments_batch = pairs->batch;
    compute->segments_width = pairs->width;
    const cpu_segments *segments = &compute->segments;
#pragma omp parallel num_threads(compute->threads)
    {
        int64_t first, end;
        share_of(segments, omp_get_thread_num(), omp_get_num_threads(), &first, &end);
        for (int64_t s = first; s < end; s++) {
            const float *k = pairs->table + (int64_t)segments->row[s] * form->entity_width;
            int64_t stop = segments->start[s + 1];
            fetch_next(segments, s, pairs->table, form->entity_width);
            for (int64_t i = segments->start[s]; i < stop; i += ROWS) {
                const int32_t *order = segments->order + i;
                int32_t count = stop - i < ROWS ? (int32_t)(stop - i) : ROWS;
                const float *rows[ROWS];
                float found[ROWS];
                for (int32_t n = 0; n < count; n++)
                    rows[n] = queries->rows + (int64_t)(order[n] / pairs->width) * form->query_width;
                cpu_similarities(compute, found, form, k, rows, count);
                for (int32_t n = 0; n < count; n++) scores[order[n]] = found[n];
            }
        }
    }
    return VLP_OK;
}

static vlp_status pair_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                const vlp_form *form, const float *scores_grad,
                                const vlp_related_rows *queries, const vlp_pairs *pairs) {
    assert(out->entities.rows); /* this backend has no bf16 operations */
    int64_t size = (int64_t)pairs->batch * form->query_width;
    if (vlp_form_transforms_answers(form))
        return cpu_transformed_backward(compute, out, form, scores_grad, queries, pairs);
    VLP_TRY(sort_pairs(compute, pairs));
    float *copies = cpu_scratch(compute, size * compute->threads);
    if (!copies) return VLP_ERROR_MEMORY;
    const cpu_segments *segments = &compute->segments;
#pragma omp parallel num_threads(compute->threads)
    {
        int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        float *mine = copies + thread * size;
        memset(mine, 0, (size_t)size * sizeof *mine);
        int64_t first, end;
        share_of(segments, thread, threads, &first, &end);
        for (int64_t s = first; s < end; s++) {
            const float *k = pairs->table + (int64_t)segments->row[s] * form->entity_width;
            float *k_grad = cpu_touch(&out->entities, segments->row[s]);
            cpu_pair_rows rows = {.count = 0};
            fetch_next(segments, s, pairs->table, form->entity_width);
            fetch_next(segments, s, out->entities.rows, form->entity_width);
            for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
                int32_t pair = segments->order[i];
                if (scores_grad[pair] == 0) continue;
                int64_t query = (int64_t)(pair / pairs->width) * form->query_width;
                rows.q[rows.count] = queries->rows + query;
                rows.q_grad[rows.count] = mine + query;
                rows.weights[rows.count++] = scores_grad[pair];
                if (rows.count == ROWS) cpu_similarities_backward(compute, form, &rows, k_grad, k);
            }
            cpu_similarities_backward(compute, form, &rows, k_grad, k);
        }
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t i = 0; i < size; i++) {
            float sum = copies[i];
            for (int t = 1; t < threads; t++) sum += copies[t * size + i];
            out->queries[i] = sum;
        }
    }
    return VLP_OK;
}

const vlp_pair_operations cpu_pair_operations = {.scores = pair_scores, .backward = pair_backward};
