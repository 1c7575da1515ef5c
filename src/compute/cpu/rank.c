/* Rank counts: candidates that score above the answer, and equal to it, for several mixtures at once. */
#include <omp.h>

#include "compute/cpu/cpu.h"

/* Mixed scores are computed once, by the same instructions for all entities: the answer's score,
 * computed a second time elsewhere, might be rounded differently and create ties. */
VLP_CLONES static void mix_row(float *out, const float *vertical, const float *horizontal,
                               vlp_mixture mixture, int32_t entities) {
    float v = mixture.vertical, h = mixture.horizontal;
    if (vertical)
        for (int32_t e = 0; e < entities; e++) out[e] = v * vertical[e] + h * horizontal[e];
    else
        for (int32_t e = 0; e < entities; e++) out[e] = h * horizontal[e];
}

/* Every entity gets the score of the first entity with the same row, which precedes it. */
static void join_same(float *scores, const int32_t *same, int32_t entities) {
    for (int32_t e = 0; same && e < entities; e++) scores[e] = scores[same[e]];
}

VLP_CLONES static bool has_nan(const float *row, int32_t entities) {
    int32_t bad = 0;
#pragma omp simd reduction(+ : bad)
    for (int32_t e = 0; e < entities; e++) bad += row[e] != row[e];
    return bad > 0;
}

VLP_CLONES static void count_row(int32_t *above, int32_t *equal, const float *scores, float gold,
                                 int32_t entities) {
    int32_t more = 0, same = 0;
#pragma omp simd reduction(+ : more, same)
    for (int32_t e = 0; e < entities; e++) {
        more += scores[e] > gold;
        same += scores[e] == gold;
    }
    *above = more;
    *equal = same;
}

static void rank_row(int32_t *above, int32_t *equal, const float *scores, int32_t answer,
                     const int32_t *filtered, int64_t filtered_count, const uint8_t *only,
                     int32_t entities) {
    float gold = scores[answer];
    if (only) {
        *above = *equal = 0;
        for (int32_t e = 0; e < entities; e++) {
            if (!only[e] || e == answer) continue;
            *above += scores[e] > gold;
            *equal += scores[e] == gold;
        }
    } else {
        count_row(above, equal, scores, gold, entities);
        (*equal)--; /* the answer itself */
    }
    for (int64_t i = 0; i < filtered_count; i++) {
        if (filtered[i] == answer || (only && !only[filtered[i]])) continue;
        *above -= scores[filtered[i]] > gold;
        *equal -= scores[filtered[i]] == gold;
    }
}

static vlp_status rank_counts(vlp_compute *compute, int32_t *above, int32_t *equal, int32_t *bad,
                              const vlp_ranked *ranked) {
    int32_t entities = ranked->entities, mixtures = ranked->mixture_count;
    if (ranked->form)
        VLP_TRY(cpu_all_scores(compute, ranked->horizontal, ranked->form, &ranked->queries,
                               ranked->entity_table, entities));
    bool wrong = false;
    float *buffers = cpu_scratch(compute, (int64_t)compute->threads * entities);
    if (!buffers) return VLP_ERROR_MEMORY;
#pragma omp parallel for num_threads(compute->threads) schedule(dynamic, 4) reduction(|| : wrong)
    for (int64_t i = 0; i < ranked->queries.count; i++) {
        float *scores = buffers + (int64_t)omp_get_thread_num() * entities;
        const int64_t *offset = ranked->filter_offset + i;
        for (int32_t m = 0; m < mixtures; m++) {
            mix_row(scores, ranked->vertical ? ranked->vertical + i * entities : NULL,
                    ranked->horizontal + i * entities, ranked->mixtures[m], entities);
            wrong = wrong || has_nan(scores, entities);
            join_same(scores, ranked->same, entities);
            rank_row(&above[i * mixtures + m], &equal[i * mixtures + m], scores, ranked->answers[i],
                     ranked->filtered + offset[0], offset[1] - offset[0], ranked->only, entities);
        }
    }
    *bad = wrong;
    return VLP_OK;
}

const vlp_rank_operations cpu_rank_operations = {.counts = rank_counts};
