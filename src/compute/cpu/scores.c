/* Scores of queries with all entities: a matrix product for dot models, tiles of entities for
 * distances. */
#include "compute/cpu/cpu.h"
#include "compute/cpu/units.h"

enum { ROWS = CPU_MODULUS_ROWS };

/* The scores of one query and the entities of a tile. */
static void tile_scores(const vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                        const float *rows, int32_t count) {
    for (int32_t e = 0; e < count; e += ROWS) {
        int32_t some = count - e < ROWS ? count - e : ROWS;
        const float *answers[ROWS];
        for (int32_t n = 0; n < some; n++) answers[n] = rows + (int64_t)(e + n) * form->query_width;
        cpu_similarities(compute, scores + e, form, q, answers, some);
    }
}

static void distance_scores(vlp_compute *compute, const vlp_form *form, float *scores, const float *q,
                            const float *table, int32_t entities, int64_t count) {
    /* A tile of entities stays in the L1 cache over all queries. */
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

/* Scores of `count` queries q with the rows of a table, k. */
static void table_scores(vlp_compute *compute, float *scores, const vlp_form *form, const float *q,
                         const float *table, int32_t entities, int64_t count) {
    switch (form->similarity) {
    case VLP_DOT:
        cpu_product(compute, scores,
                    &(vlp_product){.transpose_b = true,
                                   .m = count,
                                   .n = entities,
                                   .k = form->query_width,
                                   .alpha = 1,
                                   .lda = form->query_width,
                                   .ldb = form->query_width,
                                   .ldc = entities},
                    q, table);
        break;
    case VLP_MINUS_L1:
    case VLP_MINUS_L2:
    case VLP_MINUS_MODULUS:
        distance_scores(compute, form, scores, q, table, entities, count);
        break;
    }
}

/* k (entities, query_width) of all entities, by one relation. */
static void transform_entities(vlp_compute *compute, float *k, const vlp_form *form, const float *r,
                               const float *entity_table, int32_t entities) {
    switch (form->transform) {
        VLP_UNIT_LABELS {
            float prepared[cpu_prepared_width(form) + 1];
            const float *p = cpu_unit_prepare(form, prepared, r);
#pragma omp parallel for num_threads(compute->threads) schedule(static)
            for (int64_t i = 0; i < entities; i++)
                cpu_unit_answer(form, k + i * form->query_width, entity_table + i * form->entity_width,
                                p);
            break;
        }
    case VLP_MATRIX_TRANSPOSED: /* does not transform answers */
        assert(false);
        break;
    case VLP_MATRIX_TRANSLATE:
        cpu_product(compute, k,
                    &(vlp_product){.transpose_b = true,
                                   .m = entities,
                                   .n = form->query_width,
                                   .k = form->entity_width,
                                   .alpha = 1,
                                   .lda = form->entity_width,
                                   .ldb = form->entity_width,
                                   .ldc = form->query_width},
                    entity_table, r);
        break;
    }
}

static vlp_status transformed_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                                     const vlp_related_rows *queries, const float *entity_table,
                                     int32_t entities) {
    int32_t width = form->query_width;
    int64_t count = queries->count;
    const int32_t *relations = queries->relations;
    vlp_status status = VLP_OK;
    float *k = vlp_alloc((size_t)entities * (size_t)width, sizeof *k);
    bool *done = vlp_alloc_zero((size_t)count, sizeof *done);
    if (!k || !done) {
        status = vlp_fail_memory("transformed answers");
        goto out;
    }
    for (int64_t first = 0; first < count; first++) { /* every relation of the batch once */
        if (done[first]) continue;
        const float *r = queries->relation_table + (int64_t)relations[first] * form->relation_width;
        transform_entities(compute, k, form, r, entity_table, entities);
        for (int64_t i = first; i < count; i++) {
            if (relations[i] != relations[first]) continue;
            table_scores(compute, scores + i * entities, form, queries->rows + i * width, k, entities,
                         1);
            done[i] = true;
        }
    }
out:
    vlp_free(k);
    vlp_free(done);
    return status;
}

vlp_status cpu_all_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                          const vlp_related_rows *queries, const float *entity_table, int32_t entities) {
    if (vlp_form_transforms_answers(form))
        return transformed_scores(compute, scores, form, queries, entity_table, entities);
    table_scores(compute, scores, form, queries->rows, entity_table, entities, queries->count);
    return VLP_OK;
}

const vlp_score_operations cpu_score_operations = {.all = cpu_all_scores};
