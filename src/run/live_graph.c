/* References from a graph that has grown since training. */
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"

void vlp_live_graph_free(vlp_live_graph *live) {
    if (!live) return;
    vlp_graph_free(live->graph);
    vlp_triple_list_free(&live->triples);
    vlp_triple_list_free(&live->others);
    vlp_free(live->folder);
    vlp_free(live);
}

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

/* Appends the triples of a split whose names are known; returns how many are not. */
static vlp_status take_triples(vlp_triple_list *list, int64_t *unknown, const vlp_triple_list *from,
                               const int32_t *entities, const int32_t *relations) {
    VLP_TRY(vlp_grow(&list->items, &list->capacity, list->count + from->count, sizeof(vlp_triple),
                     "the reference graph"));
    for (int64_t i = 0; i < from->count; i++) {
        vlp_triple triple = {entities[from->items[i].head], relations[from->items[i].relation],
                             entities[from->items[i].tail]};
        if (triple.head >= 0 && triple.relation >= 0 && triple.tail >= 0)
            list->items[list->count++] = triple;
        else
            ++*unknown;
    }
    return VLP_OK;
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
    int64_t not_counted = 0;
    int32_t *entities = match_names(run->dataset->entities, other->entities);
    int32_t *relations = match_names(run->dataset->relations, other->relations);
    if (!entities || !relations) {
        status = vlp_fail_memory("the reference graph");
        goto out;
    }
    report->unknown_entities =
        count_unknown(entities, other->seen_entities, vlp_dataset_entity_count(other));
    report->unknown_relations =
        count_unknown(relations, other->seen_relations, vlp_dataset_relation_count(other));
    VLP_CHECK(take_triples(&live->triples, &report->unknown_triples, &other->splits[VLP_TRAIN], entities,
                           relations));
    for (int split = VLP_VALID; split < VLP_SPLITS; split++)
        VLP_CHECK(take_triples(&live->others, &not_counted, &other->splits[split], entities, relations));
    report->triples = live->triples.count;
    if (report->triples == 0) {
        status = vlp_fail(VLP_ERROR_FORMAT,
                          "%s has no training triple whose names %s knows; it cannot give references",
                          live->folder, run->folder);
        goto out;
    }
    VLP_CHECK(count_new(&report->new_triples, run, &live->triples));
    VLP_CHECK(vlp_graph_new(&live->graph, live->triples.items, live->triples.count, run->model->entities,
                            vlp_dataset_relation_count(run->dataset), run->settings.threads));
out:
    vlp_free(entities);
    vlp_free(relations);
    return status;
}

static vlp_status live_graph_open(vlp_live_graph **out, vlp_graph_report *report, const vlp_run *run,
                                  const char *folder, const vlp_observer *observer) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_dataset *other = NULL;
    vlp_live_graph *live = vlp_alloc_zero(1, sizeof *live);
    if (!live) return vlp_fail_memory("the reference graph");
    live->folder = vlp_string_copy(folder);
    if (!live->folder) {
        status = vlp_fail_memory("the reference graph");
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

const vlp_triple *vlp_run_graph_triples(const vlp_run *run, int64_t *count) {
    if (count) *count = 0;
    if (!run) return NULL;
    pthread_mutex_lock(&run->gate->lock);
    const vlp_graph *graph = vlp_run_graph(run);
    pthread_mutex_unlock(&run->gate->lock);
    if (count) *count = graph->edges;
    return graph->triples;
}
