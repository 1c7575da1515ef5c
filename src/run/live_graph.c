/* Another graph over the run's relations: one that has grown since training, or one of other entities.
 *
 * Its data set is made in the run's ids: entities that the run knows keep theirs, new ones are numbered
 * behind them. What needs a trained row for every entity does not score a graph with new ones. */
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"

void vlp_live_graph_free(vlp_live_graph *live) {
    if (!live) return;
    vlp_dataset_free(live->dataset);
    vlp_free(live->present);
    vlp_free(live->folder);
    vlp_free(live);
}

/* ---- Names --------------------------------------------------------------------------------------- */

/* The ids of the other data set's names in the run; those of new entities follow the run's own, those of
 * what is left out are -1. */
typedef struct matching {
    int32_t *entities, *relations;
    int32_t new_entities;
} matching;

/* The run's number of every name of another dictionary, -1 where it has none; to be freed. */
static int32_t *match_names(const vlp_dictionary *mine, const vlp_dictionary *theirs) {
    int32_t count = vlp_dictionary_size(theirs);
    int32_t *ids = vlp_alloc((size_t)count, sizeof *ids);
    for (int32_t i = 0; ids && i < count; i++)
        ids[i] = vlp_dictionary_find(mine, vlp_dictionary_name(theirs, i),
                                     vlp_dictionary_name_length(theirs, i));
    return ids;
}

/* Of the names in train, how many are not known. */
static int64_t count_unknown(const int32_t *ids, const uint8_t *seen, int32_t count) {
    int64_t unknown = 0;
    for (int32_t i = 0; i < count; i++) unknown += seen[i] && ids[i] < 0;
    return unknown;
}

static vlp_status match(matching *out, vlp_graph_report *report, const vlp_run *run,
                        const vlp_dataset *other) {
    int32_t entities = vlp_dataset_entity_count(other), known = run->model->entities;
    out->entities = match_names(run->dataset->entities, other->entities);
    out->relations = match_names(run->dataset->relations, other->relations);
    if (!out->entities || !out->relations) return vlp_fail_memory("a graph");
    report->unknown_entities = count_unknown(out->entities, other->seen_entities, entities);
    report->unknown_relations =
        count_unknown(out->relations, other->seen_relations, vlp_dataset_relation_count(other));
    if (!vlp_model_has(run->model, VLP_PATH)) return VLP_OK;
    for (int32_t i = 0; i < entities; i++)
        if (out->entities[i] < 0) out->new_entities++;
    if (out->new_entities > INT32_MAX - known)
        return vlp_fail(VLP_ERROR_ARGUMENT, "more than %d entities", INT32_MAX);
    for (int32_t i = 0, next = known; i < entities; i++)
        if (out->entities[i] < 0) out->entities[i] = next++;
    return VLP_OK;
}

/* ---- Its data set -------------------------------------------------------------------------------- */

/* Appends the triples of a split whose names have ids; *left_out counts the others. */
static vlp_status take_triples(vlp_triple_list *list, int64_t *left_out, const vlp_triple_list *from,
                               const matching *ids) {
    VLP_TRY(vlp_grow(&list->items, &list->capacity, from->count, sizeof(vlp_triple), "a graph"));
    for (int64_t i = 0; i < from->count; i++) {
        vlp_triple triple = {ids->entities[from->items[i].head], ids->relations[from->items[i].relation],
                             ids->entities[from->items[i].tail]};
        if (triple.head >= 0 && triple.relation >= 0 && triple.tail >= 0)
            list->items[list->count++] = triple;
        else
            ++*left_out;
    }
    return VLP_OK;
}

/* Names, labels and descriptions by id: those of the run, and for new entities those of the other data
 * set. Also a label for a name to which the run gives none. Takes `splits` over. */
static vlp_status make_dataset(vlp_live_graph *live, const vlp_run *run, const vlp_dataset *other,
                               const matching *ids, vlp_triple_list splits[VLP_SPLITS]) {
    int32_t known = run->model->entities, count = known + ids->new_entities,
            relations = vlp_dataset_relation_count(run->dataset);
    vlp_status status = VLP_OK;
    const char **texts = vlp_alloc_zero(3 * ((size_t)count + (size_t)relations), sizeof *texts);
    live->present = vlp_alloc_zero((size_t)count, 1);
    if (!texts || !live->present) {
        status = vlp_fail_memory("a graph");
        goto out;
    }
    const char **names = texts, **labels = texts + count, **descriptions = labels + count,
               **relation_names = descriptions + count, **relation_labels = relation_names + relations,
               **relation_descriptions = relation_labels + relations;
    for (int32_t e = 0; e < known; e++) {
        names[e] = vlp_dataset_entity_name(run->dataset, e);
        labels[e] = vlp_dataset_entity_label(run->dataset, e);
        descriptions[e] = vlp_dataset_entity_description(run->dataset, e);
    }
    for (int32_t i = 0; i < vlp_dataset_entity_count(other); i++) {
        int32_t e = ids->entities[i];
        if (e < 0) continue;
        live->present[e] = 1;
        if (e >= known) names[e] = vlp_dataset_entity_name(other, i);
        if (!labels[e]) labels[e] = vlp_dataset_entity_label(other, i);
        if (!descriptions[e]) descriptions[e] = vlp_dataset_entity_description(other, i);
    }
    for (int32_t r = 0; r < relations; r++) {
        relation_names[r] = vlp_dataset_relation_name(run->dataset, r);
        relation_labels[r] = vlp_dataset_relation_label(run->dataset, r);
        relation_descriptions[r] = vlp_dataset_relation_description(run->dataset, r);
    }
    for (int32_t i = 0; i < vlp_dataset_relation_count(other); i++) {
        int32_t r = ids->relations[i];
        if (r < 0) continue;
        if (!relation_labels[r]) relation_labels[r] = vlp_dataset_relation_label(other, i);
        if (!relation_descriptions[r])
            relation_descriptions[r] = vlp_dataset_relation_description(other, i);
    }
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    content.entities = count;
    content.relations = relations;
    content.entity_names = names;
    content.relation_names = relation_names;
    content.entity_labels = labels;
    content.entity_descriptions = descriptions;
    content.relation_labels = relation_labels;
    content.relation_descriptions = relation_descriptions;
    VLP_CHECK(vlp_dataset_make(&live->dataset, &content, splits, run->settings.threads));
out:
    vlp_free(texts);
    return status;
}

static vlp_status count_new(int64_t *out, const vlp_run *run, const vlp_triple_list *triples) {
    vlp_filter *train = NULL;
    VLP_TRY(vlp_filter_new(&train, run->dataset, 1u << VLP_TRAIN));
    *out = 0;
    for (int64_t i = 0; i < triples->count; i++) {
        vlp_triple triple = triples->items[i];
        *out += !vlp_filter_has(train, triple.head, triple.relation, triple.tail);
    }
    vlp_filter_free(train);
    return VLP_OK;
}

/* Fills `live` and the report from an opened folder. */
static vlp_status take_folder(vlp_live_graph *live, vlp_graph_report *report, const vlp_run *run,
                              const vlp_dataset *other) {
    vlp_status status = VLP_OK;
    matching ids = {0};
    vlp_triple_list splits[VLP_SPLITS] = {{NULL, 0, 0}};
    VLP_CHECK(match(&ids, report, run, other));
    for (int split = 0; split < VLP_SPLITS; split++)
        VLP_CHECK(take_triples(&splits[split],
                               split == VLP_TRAIN ? &report->unknown_triples : &report->unknown_others,
                               &other->splits[split], &ids));
    live->new_entities = ids.new_entities;
    report->new_entities = ids.new_entities;
    report->triples = splits[VLP_TRAIN].count;
    if (report->triples == 0) {
        status = vlp_fail(VLP_ERROR_FORMAT,
                          "%s has no training triple whose names %s knows; it cannot be used as a graph",
                          live->folder, run->folder);
        goto out;
    }
    VLP_CHECK(count_new(&report->new_triples, run, &splits[VLP_TRAIN]));
    VLP_CHECK(make_dataset(live, run, other, &ids, splits));
out:
    for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&splits[split]);
    vlp_free(ids.entities);
    vlp_free(ids.relations);
    return status;
}

static vlp_status live_graph_open(vlp_live_graph **out, vlp_graph_report *report, const vlp_run *run,
                                  const char *folder, const vlp_observer *observer) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_dataset *other = NULL;
    vlp_live_graph *live = vlp_alloc_zero(1, sizeof *live);
    if (!live) return vlp_fail_memory("a graph");
    live->folder = vlp_string_copy(folder);
    if (!live->folder) {
        status = vlp_fail_memory("a graph");
        goto out;
    }
    vlp_dataset_options opening = {1, run->settings.threads, observer};
    VLP_CHECK(vlp_dataset_open(&other, folder, &opening));
    VLP_CHECK(take_folder(live, report, run, other));
out:
    vlp_dataset_free(other);
    if (status != VLP_OK) {
        vlp_live_graph_free(live);
        return status;
    }
    *out = live;
    return VLP_OK;
}

/* ---- Its use ------------------------------------------------------------------------------------- */

vlp_status vlp_run_use_graph(vlp_graph_report *out, vlp_run *run, const char *folder,
                             const vlp_observer *observer) {
    VLP_REQUIRE(run);
    vlp_graph_report report = {0};
    vlp_live_graph *live = NULL;
    if (folder)
        VLP_TRY(live_graph_open(&live, &report, run, folder, observer));
    else
        report.triples = run->dataset->splits[VLP_TRAIN].count;
    vlp_run_set_graph(run, live);
    if (out) *out = report;
    return VLP_OK;
}

const vlp_dataset *vlp_run_graph_dataset(const vlp_run *run) {
    if (!run) return NULL;
    pthread_mutex_lock(&run->gate->lock);
    const vlp_dataset *dataset = vlp_run_names(run);
    pthread_mutex_unlock(&run->gate->lock);
    return dataset;
}

const vlp_triple *vlp_run_graph_triples(const vlp_run *run, int64_t *count) {
    const vlp_dataset *dataset = vlp_run_graph_dataset(run);
    if (count) *count = dataset ? dataset->graph->edges : 0;
    return dataset ? dataset->graph->triples : NULL;
}

const vlp_dataset *vlp_run_names(const vlp_run *run) {
    return run->live ? run->live->dataset : run->dataset;
}

const vlp_graph *vlp_run_graph(const vlp_run *run) {
    return vlp_run_names(run)->graph;
}

static bool has_new_entities(const vlp_run *run) {
    return run->live && run->live->new_entities > 0;
}

unsigned vlp_run_graph_components(const vlp_run *run) {
    return has_new_entities(run) ? 1u << VLP_PATH : run->model->components;
}

vlp_mixture vlp_run_graph_mixture(const vlp_run *run) {
    return has_new_entities(run) ? vlp_mixture_alone(VLP_PATH) : vlp_run_mixture(run);
}

const uint8_t *vlp_run_answers(const vlp_run *run) {
    return has_new_entities(run) ? run->live->present : NULL;
}

int64_t vlp_run_answer_count(const vlp_run *run) {
    const uint8_t *answers = vlp_run_answers(run);
    int32_t entities = vlp_run_graph(run)->entities;
    int64_t count = 0;
    for (int32_t e = 0; e < entities; e++) count += !answers || answers[e];
    return count;
}

const vlp_model *vlp_run_graph_model(const vlp_run *run, vlp_worker *worker) {
    if (!has_new_entities(run)) return &worker->model;
    worker->wider = worker->model;
    worker->wider.entities = vlp_run_graph(run)->entities;
    worker->wider.components = vlp_run_graph_components(run);
    return &worker->wider;
}
