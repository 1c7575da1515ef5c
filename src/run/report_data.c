/* What a report needs of runs besides their figures: ranks that can be compared, the course of training,
 * settings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"

/* ---- Ranks that are kept ------------------------------------------------------------------------- */

struct vlp_kept_ranks {
    vlp_ranking *ranking; /* by f, then by each component of the run alone */
    unsigned components;
    char checksum[33]; /* of the data set */
    int32_t threads;
};

vlp_status vlp_ranks_keep(struct vlp_kept_ranks **out, const vlp_dataset *dataset, unsigned components,
                          vlp_ranking **ranking, int32_t threads) {
    *out = vlp_alloc_zero(1, sizeof **out);
    if (!*out) return vlp_fail_memory("ranks");
    vlp_dataset_checksum((*out)->checksum, dataset);
    (*out)->threads = threads;
    (*out)->components = components;
    (*out)->ranking = *ranking;
    *ranking = NULL;
    /* The scores behind an area under the curve are many, and have served. */
    vlp_free((*out)->ranking->scores);
    vlp_free((*out)->ranking->truths);
    (*out)->ranking->scores = NULL;
    (*out)->ranking->truths = NULL;
    return VLP_OK;
}

void vlp_ranks_free(struct vlp_kept_ranks *ranks) {
    if (!ranks) return;
    vlp_ranking_free(ranks->ranking);
    vlp_free(ranks);
}

/* The ranks by f or by one component, NULL where there are none. */
static const vlp_rank *ranks_by(const struct vlp_kept_ranks *ranks, vlp_ranked_by by) {
    int component = (int)by - (int)VLP_BY_F_G;
    if (by == VLP_BY_F) return vlp_ranking_of(ranks->ranking, 0);
    if (component < 0 || component >= VLP_COMPONENTS || !(ranks->components >> component & 1))
        return NULL;
    int32_t index = 1;
    for (int c = 0; c < component; c++) index += (int32_t)(ranks->components >> c & 1);
    return vlp_ranking_of(ranks->ranking, index);
}

double vlp_evaluation_rank(const vlp_evaluation *evaluation, vlp_ranked_by by, int64_t query) {
    if (!evaluation || !evaluation->ranks || query < 0 || (int32_t)by < 0) return (double)NAN;
    const vlp_ranking *ranking = evaluation->ranks->ranking;
    const vlp_rank *ranks = ranks_by(evaluation->ranks, by);
    int64_t index = query - ranking->first;
    if (index < 0 || index >= ranking->queries || !ranks) return (double)NAN;
    return vlp_rank_value(ranks[index], VLP_REALISTIC);
}

/* ---- Comparing ----------------------------------------------------------------------------------- */

vlp_status vlp_ranks_interval(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                              int64_t queries, vlp_sides sides, uint64_t seed, int32_t threads) {
    if (sides == VLP_BOTH_SIDES)
        return vlp_metrics_bootstrap(out, first, second, queries, VLP_BOOTSTRAP_ROUNDS, seed, threads);
    /* The bootstrap keeps the two queries of a triple together; of one side, the one query of a triple
     * counts for both. */
    vlp_rank *twice = vlp_alloc((size_t)queries * 4, sizeof *twice);
    if (!twice) return vlp_fail_memory("an interval");
    size_t bytes = (size_t)queries * sizeof *twice;
    for (int half = 0; half < 2; half++) {
        memcpy(twice + half * queries, first, bytes);
        if (second) memcpy(twice + (2 + half) * queries, second, bytes);
    }
    vlp_status status = vlp_metrics_bootstrap(out, twice, second ? twice + 2 * queries : NULL,
                                              2 * queries, VLP_BOOTSTRAP_ROUNDS, seed, threads);
    vlp_free(twice);
    return status;
}

/* The same queries with the same candidates: what each query's candidates are after the filter is not
 * kept, their number is, and another filter or candidate set shows there. */
static vlp_status check_pair(const struct vlp_kept_ranks *first, const struct vlp_kept_ranks *second,
                             bool same_split) {
    const vlp_ranking *a = first->ranking, *b = second->ranking;
    if (strcmp(first->checksum, second->checksum) != 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "the two runs are of different data sets: their ranks "
                                            "cannot be compared query by query");
    bool same = same_split && a->first == b->first && a->queries == b->queries;
    for (int64_t i = 0; same && i < a->queries; i++)
        same = a->ranks[i].candidates == b->ranks[i].candidates;
    if (!same)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the two evaluations asked other queries, or had other candidates; evaluate "
                        "both with the same split, sides, filter and candidates");
    return VLP_OK;
}

static vlp_status check_by(vlp_ranked_by by) {
    if ((int)by >= VLP_BY_F && by <= VLP_BY_F_P) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT, "there is no score %d to rank by", (int)by);
}

vlp_status vlp_evaluation_compare(vlp_interval *out, const vlp_evaluation *first, vlp_ranked_by first_by,
                                  const vlp_evaluation *second, vlp_ranked_by second_by) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(first);
    VLP_REQUIRE(first->ranks);
    VLP_REQUIRE(second);
    VLP_REQUIRE(second->ranks);
    VLP_TRY(check_by(first_by));
    VLP_TRY(check_by(second_by));
    VLP_TRY(check_pair(first->ranks, second->ranks,
                       first->split == second->split && first->sides == second->sides));
    const vlp_rank *left = ranks_by(first->ranks, first_by);
    const vlp_rank *right = ranks_by(second->ranks, second_by);
    if (!left || !right)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a run without a component has no ranks by it");
    return vlp_ranks_interval(out, left, right, first->queries, first->sides, 0, first->ranks->threads);
}

/* ---- The course of training ---------------------------------------------------------------------- */

/* The number behind "key": in a line of metrics.jsonl; NaN without one, or null. */
static double number_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    if (!at) return (double)NAN;
    char *end;
    double value = strtod(at + strlen(key), &end);
    return end == at + strlen(key) ? (double)NAN : value;
}

vlp_status vlp_run_history(vlp_history **out, const vlp_run *run) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    char *lines = NULL;
    int64_t capacity = 0;
    vlp_status status = VLP_OK;
    vlp_history *history = vlp_alloc_zero(1, sizeof *history);
    if (!history) return vlp_fail_memory("a history");
    VLP_CHECK(vlp_run_folder_load_metrics(&lines, run->folder, INT64_MAX));
    for (char *line = lines, *next; *line; line = next) {
        char *end = strchr(line, '\n');
        if (!end) break; /* only a damaged file ends without one */
        *end = '\0';
        next = end + 1;
        double step = number_of(line, "\"step\":");
        if (!(step >= 0 && step < 9e15)) continue;
        VLP_CHECK(vlp_grow(&history->items, &capacity, history->count + 1, sizeof *history->items,
                           "a history"));
        vlp_history_point *point = &history->items[history->count++];
        *point =
            (vlp_history_point){.step = (int64_t)step, .valid_mrr = number_of(line, "\"valid_mrr\":")};
        for (int c = 0; c < VLP_MAX_COMPONENTS; c++) {
            const char *name = vlp_component_name((vlp_component)c);
            char key[64];
            snprintf(key, sizeof key, "\"loss_%s\":", name ? name : "");
            point->losses[c] = name ? number_of(line, key) : (double)NAN;
        }
    }
out:
    vlp_free(lines);
    if (status != VLP_OK) {
        vlp_history_free(history);
        return status;
    }
    *out = history;
    return VLP_OK;
}

void vlp_history_free(vlp_history *history) {
    if (!history) return;
    vlp_free(history->items);
    vlp_free(history);
}

/* ---- What a run is ------------------------------------------------------------------------------- */

bool vlp_run_setting(char text[64], const vlp_run *run, int32_t index) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    if (!text || !run || index < 0 || index >= count) return false;
    vlp_settings_get(text, &run->settings, &table[index]);
    return true;
}

const char *vlp_run_checksum(const vlp_run *run) {
    return run ? run->facts.checksum : NULL;
}

const char *vlp_run_version(const vlp_run *run) {
    return run ? run->facts.version : NULL;
}
