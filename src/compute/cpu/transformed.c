/* Pairs whose answers are transformed by the query's relation, k = W_r2 t. Every pair has a k of its
 * own, so pairs are walked query by query. Gradients of answers and of relations are buffered for a
 * chunk of queries, then scattered, so that no two threads write the same row. */
#include <string.h>

#include <omp.h>

#include "compute/cpu/cpu.h"
#include "compute/cpu/units.h"

/* ---- One answer ---------------------------------------------------------------------------------- */

/* k = W t. Summed as here, not as in transform.c, for the sake of the bits of trained models. */
static void matrix_answer(const vlp_form *form, float *k, const float *t, const float *w) {
    for (int32_t row = 0; row < form->query_width; row++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t j = 0; j < form->entity_width; j++)
            sum += w[(int64_t)row * form->entity_width + j] * t[j];
        k[row] = sum;
    }
}

/* p: the relation's row, prepared where the transform is unit-wise. */
static void answer_row(const vlp_form *form, float *k, const float *t, const float *p) {
    if (vlp_transform_traits_of(form->transform).matrix)
        matrix_answer(form, k, t, p);
    else
        cpu_unit_answer(form, k, t, p);
}

/* ---- Working memory ------------------------------------------------------------------------------ */

/* Buffers of a thread. */
typedef struct thread_rows {
    float *prepared, *k, *k_grad;
} thread_rows;

static int64_t thread_floats(const vlp_form *form) {
    return cpu_prepared_width(form) + 2 * (int64_t)form->query_width;
}

static thread_rows rows_of_thread(const vlp_form *form, float *scratch) {
    float *mine = scratch + omp_get_thread_num() * thread_floats(form);
    float *k = mine + cpu_prepared_width(form);
    return (thread_rows){mine, k, k + form->query_width};
}

/* The relation of query b, prepared where the transform is unit-wise. */
static const float *relation_of(const vlp_form *form, const vlp_related_rows *queries, int64_t b,
                                float *prepared) {
    const float *r = queries->relation_table + (int64_t)queries->relations[b] * form->relation_width;
    return vlp_transform_traits_of(form->transform).matrix ? r : cpu_unit_prepare(form, prepared, r);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

vlp_status cpu_transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                  const vlp_related_rows *queries, const vlp_pairs *pairs) {
    float *scratch = cpu_scratch(compute, compute->threads * thread_floats(form));
    if (!scratch) return VLP_ERROR_MEMORY;
#pragma omp parallel num_threads(compute->threads)
    {
        thread_rows mine = rows_of_thread(form, scratch);
#pragma omp for schedule(static)
        for (int64_t b = 0; b < pairs->batch; b++) {
            const float *q = queries->rows + b * form->query_width;
            const float *p = relation_of(form, queries, b, mine.prepared);
            for (int64_t i = b * pairs->width; i < (b + 1) * pairs->width; i++) {
                if (pairs->entities[i] < 0) continue;
                answer_row(form, mine.k, pairs->table + (int64_t)pairs->entities[i] * form->entity_width,
                           p);
                cpu_similarities(compute, scores + i, form, mine.k, &q, 1);
            }
        }
    }
    return VLP_OK;
}

/* ---- Gradients ----------------------------------------------------------------------------------- */

/* Buffers of a chunk of queries, `pairs` pairs in all. */
typedef struct chunk_rows {
    int64_t first, count; /* queries */
    float *rows_grad;     /* (pairs, entity_width) of the answers */
    /* Unit-wise transforms: */
    float *relations_grad; /* (count, relation_width) */
    /* Matrix transforms: */
    float *k_grad;      /* (pairs, query_width) */
    float *rows;        /* (pairs, entity_width) the answers */
    int32_t *relations; /* (pairs), -1 where masked */
} chunk_rows;

static int64_t floats_per_query(const vlp_form *form, int64_t width) {
    int64_t e = form->entity_width, q = form->query_width;
    return vlp_transform_traits_of(form->transform).matrix ? width * (2 * e + q + 1)
                                                           : width * e + form->relation_width;
}

static chunk_rows chunk_in(const vlp_form *form, float *scratch, int64_t count, int64_t width) {
    int64_t pairs = count * width;
    chunk_rows chunk = {.count = count, .rows_grad = scratch};
    float *behind = scratch + pairs * form->entity_width;
    if (!vlp_transform_traits_of(form->transform).matrix) {
        chunk.relations_grad = behind;
        return chunk;
    }
    chunk.k_grad = behind;
    chunk.rows = chunk.k_grad + pairs * form->query_width;
    chunk.relations = (int32_t *)(chunk.rows + pairs * form->entity_width);
    return chunk;
}

/* Operands of the backward pass. */
typedef struct backward_operands {
    const vlp_pair_gradients *out;
    const vlp_form *form;
    const float *scores_grad;
    const vlp_related_rows *queries;
    const vlp_pairs *pairs;
} backward_operands;

/* The gradients of query b of the chunk, and those of its answers and relation into the buffers. */
static void query_gradients(const vlp_compute *compute, const backward_operands *of,
                            const chunk_rows *chunk, int64_t b, thread_rows mine) {
    const vlp_form *form = of->form;
    const vlp_pairs *pairs = of->pairs;
    int64_t width = form->query_width, entity = form->entity_width, query = chunk->first + b;
    const float *p = relation_of(form, of->queries, query, mine.prepared);
    bool matrix = vlp_transform_traits_of(form->transform).matrix;
    for (int64_t at = b * pairs->width; at < (b + 1) * pairs->width; at++) {
        int64_t pair = chunk->first * pairs->width + at;
        bool masked = pairs->entities[pair] < 0;
        float weight = of->scores_grad[pair],
              *k_grad = matrix ? chunk->k_grad + at * width : mine.k_grad;
        if (matrix) chunk->relations[at] = masked ? -1 : of->queries->relations[query];
        memset(k_grad, 0, (size_t)width * sizeof *k_grad);
        memset(chunk->rows_grad + at * entity, 0, (size_t)entity * sizeof(float));
        if (masked || weight == 0) continue;
        const float *t = pairs->table + pairs->entities[pair] * entity;
        answer_row(form, mine.k, t, p);
        cpu_pair_rows one = {
            {of->queries->rows + query * width}, {of->out->queries + query * width}, {weight}, 1};
        cpu_similarities_backward(compute, form, &one, k_grad, mine.k);
        if (!matrix)
            cpu_unit_answer_backward(
                form, &(cpu_backward_rows){.x_grad = chunk->rows_grad + at * entity,
                                           .r_grad = chunk->relations_grad + b * form->relation_width,
                                           .dy = k_grad,
                                           .x = t,
                                           .p = p});
    }
}

/* Adds the buffers of a chunk to the gradients of the tables. */
static vlp_status scatter_chunk(vlp_compute *compute, const backward_operands *of,
                                const chunk_rows *chunk) {
    const vlp_form *form = of->form;
    const vlp_related_rows *queries = of->queries;
    int64_t count = chunk->count * of->pairs->width;
    const int32_t *entities = of->pairs->entities + chunk->first * of->pairs->width;
    if (vlp_transform_traits_of(form->transform).matrix) {
        cpu_gather(compute, chunk->rows, of->pairs->table, entities, count, form->entity_width);
        vlp_related_rows answers = {.count = count,
                                    .rows = chunk->rows,
                                    .relations = chunk->relations,
                                    .relation_table = queries->relation_table,
                                    .relation_count = queries->relation_count};
        VLP_TRY(cpu_answer_backward(compute, chunk->rows_grad, of->out->relations, form, chunk->k_grad,
                                    &answers));
    } else {
        vlp_table_gradient relations = {
            .rows = of->out->relations, .count = queries->relation_count, .width = form->relation_width};
        VLP_TRY(cpu_scatter_add(compute, &relations, chunk->relations_grad, NULL,
                                queries->relations + chunk->first, chunk->count));
    }
    return cpu_scatter_add(compute, &of->out->entities, chunk->rows_grad, NULL, entities, count);
}

vlp_status cpu_transformed_backward(vlp_compute *compute, const vlp_pair_gradients *out,
                                    const vlp_form *form, const float *scores_grad,
                                    const vlp_related_rows *queries, const vlp_pairs *pairs) {
    enum { CHUNK_FLOATS = 16 << 20 };
    backward_operands of = {out, form, scores_grad, queries, pairs};
    int64_t each = floats_per_query(form, pairs->width), chunk = CHUNK_FLOATS / each;
    chunk = chunk < 1 ? 1 : chunk < pairs->batch ? chunk : pairs->batch;
    int64_t threads = compute->threads * thread_floats(form);
    float *scratch = cpu_scratch(compute, threads + chunk * each);
    if (!scratch) return VLP_ERROR_MEMORY;
    memset(out->queries, 0, (size_t)(pairs->batch * (int64_t)form->query_width) * sizeof(float));
    for (int64_t first = 0; first < pairs->batch; first += chunk) {
        int64_t count = pairs->batch - first < chunk ? pairs->batch - first : chunk;
        chunk_rows rows = chunk_in(form, scratch + threads, count, pairs->width);
        rows.first = first;
        if (rows.relations_grad)
            memset(rows.relations_grad, 0, (size_t)(count * form->relation_width) * sizeof(float));
#pragma omp parallel num_threads(compute->threads)
        {
            thread_rows mine = rows_of_thread(form, scratch);
#pragma omp for schedule(static)
            for (int64_t b = 0; b < count; b++) query_gradients(compute, &of, &rows, b, mine);
        }
        VLP_TRY(scatter_chunk(compute, &of, &rows));
    }
    return VLP_OK;
}
