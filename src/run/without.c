#include "run/without.h"

#include <string.h>

enum {
    FIRST = 24, /* triples that are tried alone */
    LATER = 12, /* triples that are tried beside each set that is kept */
    BEAM = 4,   /* sets of a size that are kept */
    PATHS = 16  /* whose triples are candidates */
};

/* A set, and what becomes of the answer without it. */
typedef struct tried_set {
    vlp_removed_set set;
    vlp_removal_result result;
    bool falls;
} tried_set;

struct vlp_without {
    vlp_removal *removal;
    const vlp_graph *graph;
    int32_t layers;
    double *total; /* (edges) gradients of the answer's score less those of its competitor's */
    int32_t candidates[FIRST];
    int32_t candidate_count;
    vlp_found_path paths[PATHS]; /* of the graph that is left */
    int32_t path_count;
    tried_set tried[BEAM * FIRST]; /* sets of one size */
    int32_t tried_count;
};

vlp_status vlp_without_open(vlp_without **out, vlp_removal *removal, const vlp_graph *graph,
                            int32_t layers) {
    *out = NULL;
    vlp_without *work = vlp_alloc_zero(1, sizeof *work);
    double *total = vlp_alloc((size_t)graph->edges, sizeof *total);
    if (!work || !total) {
        vlp_free(work);
        vlp_free(total);
        return vlp_fail_memory("explanations");
    }
    work->removal = removal;
    work->graph = graph;
    work->layers = layers;
    work->total = total;
    *out = work;
    return VLP_OK;
}

void vlp_without_close(vlp_without *work) {
    if (!work) return;
    vlp_free(work->total);
    vlp_free(work);
}

/* ---- Candidates ---------------------------------------------------------------------------------- */

static bool contains(const int32_t *triples, int32_t count, int32_t triple) {
    for (int32_t i = 0; i < count; i++)
        if (triples[i] == triple) return true;
    return false;
}

static void add_candidate(vlp_without *work, int32_t limit, int32_t triple) {
    if (work->candidate_count < limit && !contains(work->candidates, work->candidate_count, triple))
        work->candidates[work->candidate_count++] = triple;
}

/* The triples with the largest positive totals, largest first; returns their number. */
static int32_t find_strongest(int32_t *out, const vlp_without *work) {
    int32_t count = 0;
    for (int64_t triple = 0; triple < work->graph->edges; triple++) {
        double value = work->total[triple];
        if (!(value > 0)) continue;
        if (count == FIRST && !(value > work->total[out[count - 1]])) continue;
        int32_t at = count < FIRST ? count++ : count - 1;
        for (; at > 0 && work->total[out[at - 1]] < value; at--) out[at] = out[at - 1];
        out[at] = (int32_t)triple;
    }
    return count;
}

/* Half of them the triples of the best paths, path by path, half those of the largest totals. An answer
 * that no path leads to rests on none. */
static void gather(vlp_without *work, int32_t limit) {
    int32_t strongest[FIRST], count = find_strongest(strongest, work);
    int32_t from_paths = limit - (count < limit / 2 ? count : limit / 2);
    work->candidate_count = 0;
    if (work->path_count == 0) return;
    for (int32_t i = 0; i < work->path_count; i++)
        for (int32_t j = 0; j < work->paths[i].length; j++)
            add_candidate(work, from_paths, work->graph->edge[work->paths[i].slots[j]]);
    for (int32_t i = 0; i < count; i++) add_candidate(work, limit, strongest[i]);
}

/* Paths and candidates of the answer over the graph without `set`, where `competitor` (-1: none) is the
 * entity that it has to stay above. Triples that are out have no message,
 * so that none of them is a candidate. */
static vlp_status look(vlp_without *work, const vlp_removal_answer *answer, const vlp_removed_set *set,
                       int32_t limit, int32_t competitor) {
    vlp_path_search search = {.graph = work->graph,
                              .layers = work->layers,
                              .head = answer->query.entity,
                              .answer = answer->answer};
    VLP_TRY(vlp_removal_messages(&search.messages, work->removal, set, answer->answer));
    VLP_TRY(vlp_paths_find(work->paths, &work->path_count, &search, PATHS));
    memset(work->total, 0, (size_t)work->graph->edges * sizeof *work->total);
    vlp_paths_total(work->total, &search, 1);
    if (competitor >= 0) {
        VLP_TRY(vlp_removal_messages(&search.messages, work->removal, set, competitor));
        vlp_paths_total(work->total, &search, -1);
    }
    gather(work, limit);
    return VLP_OK;
}

/* ---- The set ------------------------------------------------------------------------------------- */

static vlp_removed_set with(const vlp_removed_set *set, int32_t triple) {
    vlp_removed_set out = *set;
    int32_t at = out.count++;
    for (; at > 0 && out.triples[at - 1] > triple; at--) out.triples[at] = out.triples[at - 1];
    out.triples[at] = triple;
    return out;
}

static vlp_removed_set put_back(const vlp_removed_set *set, int32_t index) {
    vlp_removed_set out = {.count = 0};
    for (int32_t i = 0; i < set->count; i++)
        if (i != index) out.triples[out.count++] = set->triples[i];
    return out;
}

/* The number of the best of some results: those that fall come first, then those of the smallest margin,
 * then the first. */
static int32_t best_of(const vlp_removal_result *before, const vlp_removal_result *results,
                       int32_t count) {
    int32_t best = 0;
    for (int32_t i = 1; i < count; i++) {
        bool falls = vlp_removal_falls(before, &results[i]),
             best_falls = vlp_removal_falls(before, &results[best]);
        if (falls != best_falls ? falls : results[i].margin < results[best].margin) best = i;
    }
    return best;
}

static int compare_triples(const vlp_removed_set *a, const vlp_removed_set *b) {
    return memcmp(a->triples, b->triples, (size_t)a->count * sizeof *a->triples);
}

static int compare_sets(const void *left, const void *right) {
    const tried_set *a = left, *b = right;
    if (a->falls != b->falls) return a->falls ? -1 : 1;
    if (a->result.margin != b->result.margin) return a->result.margin < b->result.margin ? -1 : 1;
    return compare_triples(&a->set, &b->set);
}

static vlp_status try_sets(vlp_removal_result *results, vlp_carried *out, vlp_without *work,
                           const vlp_removed_set *sets, int32_t count) {
    out->scorings += count;
    return vlp_removal_try(results, work->removal, sets, count);
}

/* Puts back what the fall does not need, as long as there is such a triple. */
static vlp_status reduce(vlp_carried *out, vlp_without *work) {
    while (out->set.count > 1) {
        vlp_removed_set sets[VLP_SUPPORT_MAX];
        vlp_removal_result results[VLP_SUPPORT_MAX];
        for (int32_t i = 0; i < out->set.count; i++) sets[i] = put_back(&out->set, i);
        VLP_TRY(try_sets(results, out, work, sets, out->set.count));
        int32_t best = best_of(&out->before, results, out->set.count);
        if (!vlp_removal_falls(&out->before, &results[best])) return VLP_OK;
        out->set = sets[best];
        out->after = results[best];
    }
    return VLP_OK;
}

/* Puts the sets of a size that were tried in order, best first, each once; returns their number. */
static int32_t keep_best(tried_set *sets, int32_t count) {
    qsort(sets, (size_t)count, sizeof *sets, compare_sets);
    int32_t kept = 0;
    for (int32_t i = 0; i < count && kept < BEAM; i++)
        if (kept == 0 || compare_triples(&sets[kept - 1].set, &sets[i].set) != 0) sets[kept++] = sets[i];
    return kept;
}

/* Tries every candidate beside a set. */
static vlp_status extend(vlp_carried *out, vlp_without *work, const vlp_removal_answer *answer,
                         const vlp_removed_set *set, int32_t limit, int32_t competitor) {
    vlp_removed_set sets[FIRST];
    vlp_removal_result results[FIRST];
    VLP_TRY(look(work, answer, set, limit, competitor));
    int32_t count = work->candidate_count;
    for (int32_t i = 0; i < count; i++) sets[i] = with(set, work->candidates[i]);
    VLP_TRY(try_sets(results, out, work, sets, count));
    for (int32_t i = 0; i < count; i++)
        work->tried[work->tried_count++] =
            (tried_set){sets[i], results[i], vlp_removal_falls(&out->before, &results[i])};
    return VLP_OK;
}

vlp_status vlp_without_find(vlp_carried *out, vlp_without *work, const vlp_removal_answer *answer,
                            int32_t paths) {
    vlp_removed_set kept[BEAM] = {{.count = 0}};
    int32_t kept_count = 1, competitors[BEAM];
    *out = (vlp_carried){0};
    VLP_TRY(vlp_removal_begin(&out->before, work->removal, answer));
    out->after = out->before;
    competitors[0] = out->before.competitor;
    for (int32_t size = 1; size <= VLP_SUPPORT_MAX; size++) {
        work->tried_count = 0;
        for (int32_t i = 0; i < kept_count; i++)
            VLP_TRY(extend(out, work, answer, &kept[i], size == 1 ? FIRST : LATER, competitors[i]));
        if (size == 1) {
            out->path_count = work->path_count < paths ? work->path_count : paths;
            memcpy(out->paths, work->paths, (size_t)out->path_count * sizeof *out->paths);
        }
        kept_count = keep_best(work->tried, work->tried_count);
        if (kept_count == 0) break;
        if (work->tried[0].falls) {
            out->set = work->tried[0].set;
            out->after = work->tried[0].result;
            return reduce(out, work);
        }
        for (int32_t i = 0; i < kept_count; i++) {
            kept[i] = work->tried[i].set;
            competitors[i] = work->tried[i].result.competitor;
        }
    }
    return VLP_OK;
}
