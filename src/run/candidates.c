#include "run/candidates.h"

#include <string.h>

#include "base/options.h"

/* ---- Checks -------------------------------------------------------------------------------------- */

static vlp_status check(const vlp_run *run, const vlp_candidate_options *options) {
    int32_t entities = vlp_run_graph(run)->entities, relations = 2 * vlp_run_graph(run)->relations;
    VLP_TRY(vlp_check_array(options->entities, options->entity_count, "candidates"));
    VLP_TRY(vlp_check_array(options->conditions, options->condition_count, "conditions"));
    for (int64_t i = 0; i < options->entity_count; i++)
        if (options->entities[i] < 0 || options->entities[i] >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "candidate %lld: entity %d of %d", (long long)i,
                            options->entities[i], entities);
    for (int32_t i = 0; i < options->condition_count; i++) {
        vlp_condition condition = options->conditions[i];
        if (condition.entity < 0 || condition.entity >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "condition %d: entity %d of %d", i, condition.entity,
                            entities);
        if (condition.relation < 0 || condition.relation >= relations)
            return vlp_fail(VLP_ERROR_ARGUMENT, "condition %d: relation %d of %d", i, condition.relation,
                            relations);
    }
    return VLP_OK;
}

static bool restricts(const vlp_candidate_options *options) {
    return options->entities || options->condition_count > 0 || options->seen;
}

/* ---- Marks --------------------------------------------------------------------------------------- */

/* Those that the list names and the graph in use has. */
static vlp_status mark_listed(vlp_candidates *candidates, const vlp_run *run,
                              const vlp_candidate_options *options) {
    int32_t entities = candidates->graph->entities;
    const uint8_t *answers = vlp_run_answers(run);
    if (!options->entities) {
        if (answers)
            memcpy(candidates->allowed, answers, (size_t)entities);
        else
            memset(candidates->allowed, 1, (size_t)entities);
        return VLP_OK;
    }
    if (options->entity_count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "no candidate is left: the list names none");
    int64_t left = 0;
    for (int64_t i = 0; i < options->entity_count; i++) {
        int32_t entity = options->entities[i];
        if (answers && !answers[entity]) continue;
        candidates->allowed[entity] = 1;
        left++;
    }
    if (left > 0) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT,
                    "no candidate is left: the graph in use has none of the entities of the list");
}

static vlp_status fail_condition(const vlp_run *run, vlp_condition condition, bool first) {
    const vlp_dataset *names = vlp_run_names(run);
    int32_t relations = vlp_dataset_relation_count(names);
    bool forward = condition.relation < relations;
    const char *entity = vlp_dataset_entity_name(names, condition.entity);
    return vlp_fail(
        VLP_ERROR_ARGUMENT, "no candidate is left: no entity x%s has the known triple (%s, %s, %s)",
        first ? "" : " that meets the restrictions before it", forward ? "x" : entity,
        vlp_dataset_relation_name(names, condition.relation % relations), forward ? entity : "x");
}

/* Of those allowed so far, the ones that have a triple. `spare` (entities) is all zeros, and is left so.
 * False where none is left. */
static bool keep_with(vlp_candidates *candidates, const vlp_filter *known, vlp_condition condition,
                      uint8_t *spare) {
    int32_t relations = candidates->graph->relations, entities = candidates->graph->entities;
    /* (x, r, e) is known: x answers (e, inverse of r, ?). */
    int32_t inverse =
        condition.relation < relations ? condition.relation + relations : condition.relation - relations;
    int64_t count, left = 0;
    const int32_t *having = vlp_filter_answers(known, condition.entity, inverse, &count);
    for (int64_t i = 0; i < count; i++) {
        spare[having[i]] = candidates->allowed[having[i]];
        left += spare[having[i]];
    }
    memcpy(candidates->allowed, spare, (size_t)entities);
    for (int64_t i = 0; i < count; i++) spare[having[i]] = 0;
    return left > 0;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status open_inside(vlp_candidates *candidates, const vlp_run *run, const vlp_filter *known,
                              const vlp_candidate_options *options) {
    size_t entities = (size_t)candidates->graph->entities;
    candidates->allowed = vlp_alloc_zero(entities, 1);
    candidates->marks = vlp_alloc_zero(entities, 1);
    candidates->entities = vlp_alloc(entities, sizeof *candidates->entities);
    if (!candidates->allowed || !candidates->marks || !candidates->entities)
        return vlp_fail_memory("candidates");
    VLP_TRY(mark_listed(candidates, run, options));
    for (int32_t i = 0; i < options->condition_count; i++)
        if (!keep_with(candidates, known, options->conditions[i], candidates->marks))
            return fail_condition(run, options->conditions[i], !options->entities && i == 0);
    return options->seen ? vlp_places_new(&candidates->places, candidates->graph) : VLP_OK;
}

vlp_status vlp_candidates_open(vlp_candidates **out, const vlp_run *run, const vlp_filter *known,
                               const vlp_candidate_options *given) {
    *out = NULL;
    vlp_candidate_options options = VLP_CANDIDATE_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_candidate_options, &options, given));
    VLP_TRY(check(run, &options));
    if (!restricts(&options)) return VLP_OK;
    vlp_candidates *candidates = vlp_alloc_zero(1, sizeof *candidates);
    if (!candidates) return vlp_fail_memory("candidates");
    candidates->graph = vlp_run_graph(run);
    candidates->relation = -1;
    vlp_status status = open_inside(candidates, run, known, &options);
    if (status != VLP_OK) {
        vlp_candidates_free(candidates);
        return status;
    }
    *out = candidates;
    return VLP_OK;
}

void vlp_candidates_free(vlp_candidates *candidates) {
    if (!candidates) return;
    vlp_places_free(candidates->places);
    vlp_free(candidates->allowed);
    vlp_free(candidates->marks);
    vlp_free(candidates->entities);
    vlp_free(candidates);
}

/* Marks those allowed; with `seen` only those that the graph has in the place of the answers, which is
 * that of the entity of queries of the inverse relation. */
static void set_marks(vlp_candidates *candidates, int32_t relation) {
    size_t entities = (size_t)candidates->graph->entities;
    if (!candidates->places) {
        memcpy(candidates->marks, candidates->allowed, entities);
        return;
    }
    int32_t relations = candidates->graph->relations;
    int64_t there;
    const int32_t *place = vlp_places_of(
        candidates->places, relation < relations ? relation + relations : relation - relations, &there);
    memset(candidates->marks, 0, entities);
    for (int64_t i = 0; i < there; i++) candidates->marks[place[i]] = candidates->allowed[place[i]];
}

vlp_candidate_list vlp_candidates_of(vlp_candidates *candidates, int32_t relation) {
    bool made = candidates->relation >= 0 && (!candidates->places || candidates->relation == relation);
    if (!made) {
        set_marks(candidates, relation);
        candidates->count = 0;
        for (int32_t e = 0; e < candidates->graph->entities; e++)
            if (candidates->marks[e]) candidates->entities[candidates->count++] = e;
        candidates->relation = relation;
    }
    return (vlp_candidate_list){candidates->entities, candidates->count};
}
