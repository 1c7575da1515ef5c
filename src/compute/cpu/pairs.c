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

void cpu_similarities(const vlp_compute *compute, float *scores, const vlp_form *form, const float *one,
                      const float *const *others, int32_t count) {
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

static vlp_status moved_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                               const vlp_related_rows *queries, const vlp_pairs *pairs);
static vlp_status moved_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                 const vlp_form *form, const float *scores_grad,
                                 const vlp_related_rows *queries, const vlp_pairs *pairs);

static vlp_status pair_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                              const vlp_related_rows *queries, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    for (int64_t i = 0; i < total; i++)
        if (pairs->entities[i] < 0) scores[i] = -INFINITY;
    if (vlp_form_transforms_answers(form)) return moved_scores(compute, scores, form, queries, pairs);
    compute->segments_of = NULL; /* the caller may have put other entities into the same array */
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
        return moved_backward(compute, out, form, scores_grad, queries, pairs);
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
            pair_rows rows = {.count = 0};
            fetch_next(segments, s, pairs->table, form->entity_width);
            fetch_next(segments, s, out->entities.rows, form->entity_width);
            for (int64_t i = segments->start[s]; i < segments->start[s + 1]; i++) {
                int32_t pair = segments->order[i];
                if (scores_grad[pair] == 0) continue;
                int64_t query = (int64_t)(pair / pairs->width) * form->query_width;
                rows.q[rows.count] = queries->rows + query;
                rows.q_grad[rows.count] = mine + query;
                rows.weights[rows.count++] = scores_grad[pair];
                if (rows.count == ROWS) similarities_backward(compute, form, &rows, k_grad, k);
            }
            similarities_backward(compute, form, &rows, k_grad, k);
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

/* ---- Answers that relations move (TransR) -------------------------------------------------------- */

/* k (batch * width, query_width) of all pairs: a product for each query. */
static void move_answers(vlp_compute *compute, float *k, const vlp_form *form,
                         const vlp_related_rows *queries, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    int32_t width = form->query_width, entity = form->entity_width;
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        if (pairs->entities[i] < 0) continue;
        int64_t relation = queries->relations[i / pairs->width];
        const float *w = queries->relation_table + relation * form->relation_width;
        const float *t = pairs->table + (int64_t)pairs->entities[i] * entity;
        for (int32_t row = 0; row < width; row++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int32_t j = 0; j < entity; j++) sum += w[(int64_t)row * entity + j] * t[j];
            k[i * width + row] = sum;
        }
    }
}

static vlp_status moved_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                               const vlp_related_rows *queries, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    float *k = cpu_scratch(compute, total * form->query_width);
    if (!k) return VLP_ERROR_MEMORY;
    move_answers(compute, k, form, queries, pairs);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        const float *query = queries->rows + i / pairs->width * form->query_width;
        if (pairs->entities[i] >= 0)
            cpu_similarities(compute, scores + i, form, k + i * form->query_width, &query, 1);
    }
    return VLP_OK;
}

static vlp_status moved_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                 const vlp_form *form, const float *scores_grad,
                                 const vlp_related_rows *queries, const vlp_pairs *pairs) {
    int64_t total = (int64_t)pairs->batch * pairs->width;
    int32_t width = form->query_width, entity = form->entity_width;
    const float *q = queries->rows;
    float *k = cpu_scratch(compute, total * (2 * (width + entity) + 1)), *q_grad = out->queries;
    if (!k) return VLP_ERROR_MEMORY;
    float *rows = k + total * width, *k_grad = rows + total * entity;
    float *rows_grad = k_grad + total * width;
    int32_t *pair_relations = (int32_t *)(rows_grad + total * entity);
    memset(k_grad, 0, (size_t)(total * (width + entity)) * sizeof *k_grad); /* and rows_grad */
    move_answers(compute, k, form, queries, pairs);
    memset(q_grad, 0, (size_t)((int64_t)pairs->batch * width) * sizeof *q_grad);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
    for (int64_t b = 0; b < pairs->batch; b++)
        for (int64_t i = b * pairs->width; i < (b + 1) * pairs->width; i++) {
            bool there = pairs->entities[i] >= 0;
            pair_relations[i] = there ? queries->relations[b] : -1;
            pair_rows one = {{q + b * width}, {q_grad + b * width}, {scores_grad[i]}, 1};
            if (there && scores_grad[i] != 0)
                similarities_backward(compute, form, &one, k_grad + i * width, k + i * width);
        }
    cpu_gather(compute, rows, pairs->table, pairs->entities, total, entity);
    vlp_related_rows answers = {.count = total,
                                .rows = rows,
                                .relations = pair_relations,
                                .relation_table = queries->relation_table,
                                .relation_count = queries->relation_count};
    VLP_TRY(cpu_answer_backward(compute, rows_grad, out->relations, form, k_grad, &answers));
    return cpu_scatter_add(compute, &out->entities, rows_grad, NULL, pairs->entities, total);
}
