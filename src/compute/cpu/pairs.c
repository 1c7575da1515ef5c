/* Pairs of queries and entities. They are walked entity by entity, a few of its pairs at a time: the
 * entity's row and the sum of its gradient stay in the nearest cache, the queries of the batch in the
 * next, and every row of the table is read once and written by one thread. Gradients of queries are
 * summed in a copy for each thread. */
#include <math.h>
#include <string.h>

#include <omp.h>

#include "compute/cpu/cpu.h"

/* ---- One pair ------------------------------------------------------------------------------------ */

VLP_CLONES static float euclidean(const float *q, const float *k, int32_t width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < width; j++) sum += (q[j] - k[j]) * (q[j] - k[j]);
    return sqrtf(sum);
}

VLP_CLONES static float similarity(const vlp_form *form, const float *q, const float *k) {
    int32_t width = form->query_width;
    float sum = 0;
    switch (form->similarity) {
    case VLP_DOT:
#pragma omp simd reduction(+ : sum)
        for (int32_t j = 0; j < width; j++) sum += q[j] * k[j];
        return sum;
    case VLP_MINUS_L1:
#pragma omp simd reduction(+ : sum)
        for (int32_t j = 0; j < width; j++) sum += fabsf(q[j] - k[j]);
        return form->margin - sum;
    case VLP_MINUS_L2:
        return form->margin - euclidean(q, k, width);
    case VLP_MINUS_MODULUS: /* in modulus.c */
        break;
    }
    return 0;
}

/* q_grad += w dg/dq, k_grad += w dg/dk. The two lie apart: only so do the loops become vectors. */
VLP_CLONES static void similarity_backward(const vlp_form *form, float *restrict q_grad,
                                           float *restrict k_grad, float w, const float *restrict q,
                                           const float *restrict k) {
    int32_t width = form->query_width;
    switch (form->similarity) {
    case VLP_DOT:
#pragma omp simd
        for (int32_t j = 0; j < width; j++) {
            q_grad[j] += w * k[j];
            k_grad[j] += w * q[j];
        }
        break;
    case VLP_MINUS_L1:
#pragma omp simd
        for (int32_t j = 0; j < width; j++) {
            float difference = q[j] - k[j];
            float g = difference > 0 ? w : difference < 0 ? -w : 0.0f;
            q_grad[j] -= g;
            k_grad[j] += g;
        }
        break;
    case VLP_MINUS_L2: {
        /* Not from the score: taking the margin off again would leave little of a small distance. */
        float distance = euclidean(q, k, width);
        float scale = distance > VLP_TINY_DISTANCE ? w / distance : 0.0f;
#pragma omp simd
        for (int32_t j = 0; j < width; j++) {
            float g = scale * (q[j] - k[j]);
            q_grad[j] -= g;
            k_grad[j] += g;
        }
        break;
    }
    case VLP_MINUS_MODULUS: /* in modulus.c */
        break;
    }
}

/* ---- One row and a few others -------------------------------------------------------------------- */

enum { ROWS = CPU_MODULUS_ROWS };

/* scores[i] = g(one, others[i]). Whether the one is the query or the answer makes no difference, not
 * even in the last digit. */
static void similarities(const vlp_compute *compute, const vlp_form *form, float *scores,
                         const float *one, const float *const *others, int32_t count) {
    if (form->similarity == VLP_MINUS_MODULUS) {
        cpu_modulus_sums(compute->modulus, scores, one, others, count, form->query_width / 2);
        for (int32_t i = 0; i < count; i++) scores[i] = form->margin - scores[i];
    } else {
        for (int32_t i = 0; i < count; i++) scores[i] = similarity(form, others[i], one);
    }
}

/* Pairs of one answer. */
typedef struct pair_rows {
    const float *q[ROWS];
    float *q_grad[ROWS], weights[ROWS];
    int32_t count;
} pair_rows;

/* q_grad += w dg/dq, k_grad += w dg/dk, and no pair is left. */
static void similarities_backward(const vlp_compute *compute, const vlp_form *form, pair_rows *rows,
                                  float *k_grad, const float *k) {
    if (form->similarity == VLP_MINUS_MODULUS)
        compute->modulus->backward(k_grad, rows->q_grad, rows->weights, k, rows->q, rows->count,
                                   form->query_width / 2);
    else
        for (int32_t i = 0; i < rows->count; i++)
            similarity_backward(form, rows->q_grad[i], k_grad, rows->weights[i], rows->q[i], k);
    rows->count = 0;
}

/* ---- Pairs by entity ----------------------------------------------------------------------------- */

static vlp_status sort_pairs(vlp_compute *compute, const vlp_pairs *pairs, int32_t entities) {
    if (compute->segments_of == pairs->entities && compute->segments_batch == pairs->batch &&
        compute->segments_width == pairs->width)
        return VLP_OK;
    compute->segments_of = NULL;
    VLP_TRY(cpu_segments_make(&compute->segments, pairs->entities, (int64_t)pairs->batch * pairs->width,
                              entities));
    return VLP_OK;
}

/* The segments of one thread: an equal share of the pairs. */
static void share_of(const cpu_segments *segments, int thread, int threads, int64_t *first,
                     int64_t *end) {
    int64_t total = segments->start[segments->segments], bounds[2];
    for (int side = 0; side < 2; side++) {
        int64_t wanted = total * (thread + side) / threads, low = 0, high = segments->segments;
        while (low < high) { /* the first segment that starts at or behind the bound */
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

/* Asks for the row of the segment behind this one, which comes while this one's pairs are walked. */
static void fetch_next(const cpu_segments *segments, int64_t s, const float *table, int32_t width) {
    if (s + 1 == segments->segments) return;
    const float *row = table + (int64_t)segments->row[s + 1] * width;
    enum { LINE = 64 / sizeof *row };
    for (int32_t j = 0; j < width; j += LINE) __builtin_prefetch(row + j);
}

static vlp_status moved_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                               const int32_t *relations, const float *relation_table,
                               const float *entity_table, const vlp_pairs *pairs);
static vlp_status moved_backward(vlp_compute *compute, const vlp_form *form, float *q_grad,
                                 float *entity_grad, uint8_t *touched, float *relation_grad,
                                 const float *scores_grad, const float *q, const int32_t *relations,
                                 const float *relation_table, int32_t relation_count,
                                 const float *entity_table, int32_t entities, const vlp_pairs *pairs);

vlp_status cpu_pair_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                           const int32_t *relations, const float *relation_table,
                           const float *entity_table, int32_t entities, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    for (int64_t i = 0; i < total; i++)
        if (pairs->entities[i] < 0) scores[i] = -INFINITY;
    if (vlp_form_moves_answers(form))
        return moved_scores(compute, form, scores, q, relations, relation_table, entity_table, pairs);
    compute->segments_of = NULL; /* the caller may have put other entities into the same array */
    VLP_TRY(sort_pairs(compute, pairs, entities));
    compute->segments_of = pairs->entities;
    compute->segments_batch = pairs->batch;
    compute->segments_width = pairs->width;
    const cpu_segments *segments = &compute->segments;
#pragma omp parallel num_threads(compute->threads)
    {
        int64_t first, end;
        share_of(segments, omp_get_thread_num(), omp_get_num_threads(), &first, &end);
        for (int64_t s = first; s < end; s++) {
            const float *k = entity_table + (int64_t)segments->row[s] * form->entity_width;
            int64_t stop = segments->start[s + 1];
            fetch_next(segments, s, entity_table, form->entity_width);
            for (int64_t i = segments->start[s]; i < stop; i += ROWS) {
                const int32_t *order = segments->order + i;
                int32_t count = stop - i < ROWS ? (int32_t)(stop - i) : ROWS;
                const float *queries[ROWS];
                float found[ROWS];
                for (int32_t n = 0; n < count; n++)
                    queries[n] = q + (int64_t)(order[n] / pairs->width) * form->query_width;
                similarities(compute, form, found, k, queries, count);
                for (int32_t n = 0; n < count; n++) scores[order[n]] = found[n];
            }
        }
    }
    return VLP_OK;
}

vlp_status cpu_pair_backward(vlp_compute *compute, const vlp_form *form, float *q_grad,
                             float *entity_grad, uint8_t *touched, float *relation_grad,
                             const float *scores_grad, const float *q, const int32_t *relations,
                             const float *relation_table, int32_t relation_count,
                             const float *entity_table, int32_t entities, const vlp_pairs *pairs) {
    assert(entity_grad); /* bf16 copies are not asked for here */
    int64_t size = (int64_t)pairs->batch * form->query_width;
    if (vlp_form_moves_answers(form))
        return moved_backward(compute, form, q_grad, entity_grad, touched, relation_grad, scores_grad, q,
                              relations, relation_table, relation_count, entity_table, entities, pairs);
    VLP_TRY(sort_pairs(compute, pairs, entities));
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
            int64_t row = (int64_t)segments->row[s] * form->entity_width;
            cpu_touch(entity_grad + row, touched, segments->row[s], form->entity_width);
            pair_rows rows = {.count = 0};
            fetch_next(segments, s, entity_table, form->entity_width);
            fetch_next(segments, s, entity_grad, form->entity_width);
            for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
                int32_t pair = segments->order[i];
                if (scores_grad[pair] == 0) continue;
                int64_t query = (int64_t)(pair / pairs->width) * form->query_width;
                rows.q[rows.count] = q + query;
                rows.q_grad[rows.count] = mine + query;
                rows.weights[rows.count++] = scores_grad[pair];
                if (rows.count == ROWS)
                    similarities_backward(compute, form, &rows, entity_grad + row, entity_table + row);
            }
            similarities_backward(compute, form, &rows, entity_grad + row, entity_table + row);
        }
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t i = 0; i < size; i++) {
            float sum = copies[i];
            for (int t = 1; t < threads; t++) sum += copies[t * size + i];
            q_grad[i] = sum;
        }
    }
    return VLP_OK;
}

/* ---- Answers that relations move (TransR) -------------------------------------------------------- */

/* k (batch * width, query_width) of all pairs: a product for each query. */
static void move_answers(vlp_compute *compute, const vlp_form *form, float *k, const int32_t *relations,
                         const float *relation_table, const float *entity_table,
                         const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    int32_t width = form->query_width, entity = form->entity_width;
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        if (pairs->entities[i] < 0) continue;
        const float *w = relation_table + (int64_t)relations[i / pairs->width] * form->relation_width;
        const float *t = entity_table + (int64_t)pairs->entities[i] * entity;
        for (int32_t row = 0; row < width; row++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int32_t j = 0; j < entity; j++) sum += w[(int64_t)row * entity + j] * t[j];
            k[i * width + row] = sum;
        }
    }
}

static vlp_status moved_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                               const int32_t *relations, const float *relation_table,
                               const float *entity_table, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    float *k = cpu_scratch(compute, total * form->query_width);
    if (!k) return VLP_ERROR_MEMORY;
    move_answers(compute, form, k, relations, relation_table, entity_table, pairs);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        const float *query = q + i / pairs->width * form->query_width;
        if (pairs->entities[i] >= 0)
            similarities(compute, form, scores + i, k + i * form->query_width, &query, 1);
    }
    return VLP_OK;
}

static vlp_status moved_backward(vlp_compute *compute, const vlp_form *form, float *q_grad,
                                 float *entity_grad, uint8_t *touched, float *relation_grad,
                                 const float *scores_grad, const float *q, const int32_t *relations,
                                 const float *relation_table, int32_t relation_count,
                                 const float *entity_table, int32_t entities, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    int32_t width = form->query_width, entity = form->entity_width;
    float *k = cpu_scratch(compute, total * (2 * (width + entity) + 1));
    if (!k) return VLP_ERROR_MEMORY;
    float *rows = k + total * width, *k_grad = rows + total * entity;
    float *rows_grad = k_grad + total * width;
    int32_t *pair_relations = (int32_t *)(rows_grad + total * entity);
    memset(k_grad, 0, (size_t)(total * (width + entity)) * sizeof *k_grad); /* and rows_grad */
    move_answers(compute, form, k, relations, relation_table, entity_table, pairs);
    memset(q_grad, 0, (size_t)((int64_t)pairs->batch * width) * sizeof *q_grad);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t b = 0; b < pairs->batch; b++)
        for (int64_t i = b * pairs->width; i < (b + 1) * pairs->width; i++) {
            bool there = pairs->entities[i] >= 0;
            pair_relations[i] = there ? relations[b] : -1;
            pair_rows one = {{q + b * width}, {q_grad + b * width}, {scores_grad[i]}, 1};
            if (there && scores_grad[i] != 0)
                similarities_backward(compute, form, &one, k_grad + i * width, k + i * width);
        }
    cpu_gather(compute, rows, entity_table, pairs->entities, total, entity);
    VLP_TRY(cpu_query_backward(compute, form, rows_grad, relation_grad, k_grad, rows, pair_relations,
                               relation_table, relation_count, total, true));
    return cpu_scatter_add(compute, entity_grad, touched, rows_grad, NULL, pairs->entities, total,
                           entities, entity);
}

/* ---- All entities -------------------------------------------------------------------------------- */

/* The scores of one query and the entities of a tile. */
static void tile_scores(const vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                        const float *rows, int32_t count) {
    for (int32_t e = 0; e < count; e += ROWS) {
        int32_t some = count - e < ROWS ? count - e : ROWS;
        const float *answers[ROWS];
        for (int32_t n = 0; n < some; n++) answers[n] = rows + (int64_t)(e + n) * form->query_width;
        similarities(compute, form, scores + e, q, answers, some);
    }
}

static void distance_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                            const float *table, int32_t entities, int64_t count) {
    /* A tile of entities stays in the nearest cache while all queries pass over it. */
    enum { TILE_FLOATS = 6 << 10 };
    int32_t width = form->query_width, tile = TILE_FLOATS / width / ROWS * ROWS;
    if (tile < ROWS) tile = ROWS;
#pragma omp parallel for num_threads(compute->threads) schedule(dynamic, 4)
    for (int32_t start = 0; start < entities; start += tile) {
        int32_t end = start + tile < entities ? start + tile : entities;
        for (int64_t i = 0; i < count; i++)
            tile_scores(compute, form, scores + i * entities + start, q + i * width,
                        table + (int64_t)start * width, end - start);
    }
}

static vlp_status moved_all_scores(vlp_compute *compute, const vlp_form *form, float *scores,
                                   const float *q, const int32_t *relations, const float *relation_table,
                                   const float *entity_table, int32_t entities, int64_t count) {
    int32_t width = form->query_width;
    vlp_status status = VLP_OK;
    float *k = vlp_alloc((size_t)entities * (size_t)width, sizeof *k);
    bool *done = vlp_alloc_zero((size_t)count, sizeof *done);
    if (!k || !done) {
        status = vlp_fail_memory("moved answers");
        goto out;
    }
    for (int64_t first = 0; first < count; first++) { /* every relation of the batch once */
        if (done[first]) continue;
        const float *w = relation_table + (int64_t)relations[first] * form->relation_width;
        cpu_product(compute, false, true, entities, width, form->entity_width, 1, entity_table,
                    form->entity_width, w, form->entity_width, 0, k, width);
        for (int64_t i = first; i < count; i++) {
            if (relations[i] != relations[first]) continue;
            distance_scores(compute, form, scores + i * entities, q + i * width, k, entities, 1);
            done[i] = true;
        }
    }
out:
    vlp_free(k);
    vlp_free(done);
    return status;
}

vlp_status cpu_all_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                          const int32_t *relations, const float *relation_table,
                          const float *entity_table, int32_t entities, int64_t count) {
    if (vlp_form_moves_answers(form))
        return moved_all_scores(compute, form, scores, q, relations, relation_table, entity_table,
                                entities, count);
    if (form->similarity == VLP_DOT)
        cpu_product(compute, false, true, count, entities, form->query_width, 1, q, form->query_width,
                    entity_table, form->entity_width, 0, scores, entities);
    else
        distance_scores(compute, form, scores, q, entity_table, entities, count);
    return VLP_OK;
}
