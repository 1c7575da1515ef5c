/* What a report needs of runs besides their figures: ranks that can be compared, the course of training,
 * settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"

/* ---- Ranks that are kept ------------------------------------------------------------------------- */

struct vlp_kept_ranks {
    vlp_ranking *ranking; /* by f, f_g and, with a head, f_c */
    char checksum[33];    /* of the data set */
    int32_t threads;
};

vlp_status vlp_ranks_keep(struct vlp_kept_ranks **out, const vlp_run *run, vlp_ranking **ranking) {
    *out = vlp_alloc_zero(1, sizeof **out);
    if (!*out) return vlp_fail_memory("ranks");
    memcpy((*out)->checksum, run->facts.checksum, sizeof(*out)->checksum);
    (*out)->threads = run->settings.threads;
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

double vlp_evaluation_rank(const vlp_evaluation *evaluation, vlp_ranked_by by, int64_t query) {
    if (!evaluation || !evaluation->ranks || query < 0 || (int32_t)by < 0) return (double)NAN;
    const vlp_ranking *ranking = evaluation->ranks->ranking;
    int64_t index = query - ranking->first;
    if (index < 0 || index >= ranking->queries || (int32_t)by >= ranking->mixtures) return (double)NAN;
    return vlp_rank_value(vlp_ranking_of(ranking, (int32_t)by)[index], VLP_REALISTIC);
}

/* ---- Comparing ----------------------------------------------------------------------------------- */

enum { BOOTSTRAP_ROUNDS = 1000 };

vlp_status vlp_ranks_interval(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                              int64_t queries, vlp_sides sides, uint64_t seed, int32_t threads) {
    if (sides == VLP_BOTH_SIDES)
        return vlp_metrics_bootstrap(out, first, second, queries, BOOTSTRAP_ROUNDS, seed, threads);
    /* The bootstrap keeps the two queries of a triple together; of one side, a triple's one query stands
     * for both. */
    vlp_rank *twice = vlp_alloc((size_t)queries * 4, sizeof *twice);
    if (!twice) return vlp_fail_memory("an interval");
    size_t bytes = (size_t)queries * sizeof *twice;
    for (int half = 0; half < 2; half++) {
        memcpy(twice + half * queries, first, bytes);
        if (second) memcpy(twice + (2 + half) * queries, second, bytes);
    }
    vlp_status status = vlp_metrics_bootstrap(out, twice, second ? twice + 2 * queries : NULL,
                                              2 * queries, BOOTSTRAP_ROUNDS, seed, threads);
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
    if ((int)by >= VLP_BY_F && by <= VLP_BY_F_C) return VLP_OK;
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
    const vlp_ranking *a = first->ranks->ranking, *b = second->ranks->ranking;
    VLP_TRY(check_pair(first->ranks, second->ranks,
                       first->split == second->split && first->sides == second->sides));
    if ((int32_t)first_by >= a->mixtures || (int32_t)second_by >= b->mixtures)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a run without a head has no ranks by f_c");
    const vlp_rank *left = vlp_ranking_of(a, (int32_t)first_by);
    const vlp_rank *right = vlp_ranking_of(b, (int32_t)second_by);
    return vlp_ranks_interval(out, left, right, a->queries, first->sides, 0, first->ranks->threads);
}

/* ---- The course of training ---------------------------------------------------------------------- */

/* The number behind "key": in a line of metrics.jsonl; NaN where there is none, or null. */
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
        history->items[history->count++] = (vlp_history_point){
            (int64_t)step, number_of(line, "\"loss_horizontal\":"),
            number_of(line, "\"loss_vertical\":"), number_of(line, "\"valid_mrr\":")};
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
