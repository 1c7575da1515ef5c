/* Opening a folder of triples, and asking it for names and counts. */
#include "graph/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/options.h"
#include "base/text.h"
#include "graph/format.h"
#include "graph/reference.h"

const char *const vlp_split_names[VLP_SPLITS] = {"train", "valid", "test"};

/* The path of a split's file: NULL without one, an error where there are two. */
static vlp_status find_split(char **out, const char *folder, const char *split) {
    *out = NULL;
    for (int i = 0; i < VLP_FORMAT_EXTENSIONS; i++) {
        char name[32];
        vlp_format_file_name(name, sizeof name, split, i);
        char *path = vlp_path_join(folder, name);
        if (!path) {
            vlp_free(*out);
            *out = NULL;
            return vlp_fail_memory("a file name");
        }
        if (!vlp_path_exists(path)) {
            vlp_free(path);
            continue;
        }
        if (*out) {
            vlp_status status =
                vlp_fail(VLP_ERROR_FORMAT, "both %s and %s are there; remove one of them", *out, path);
            vlp_free(path);
            vlp_free(*out);
            *out = NULL;
            return status;
        }
        *out = path;
    }
    return VLP_OK;
}

vlp_status vlp_dataset_end_split(vlp_dataset *dataset, vlp_split split) {
    vlp_triple_list *triples = &dataset->splits[split];
    VLP_TRY(vlp_triple_list_unique(triples, &dataset->duplicates[split],
                                   vlp_dictionary_size(dataset->entities), dataset->threads));
    void *trimmed = vlp_realloc(triples->items, (size_t)triples->count, sizeof *triples->items);
    if (trimmed) {
        triples->items = trimmed;
        triples->capacity = triples->count;
    }
    return VLP_OK;
}

static vlp_status read_split(vlp_dataset *dataset, vlp_split split, vlp_read_sink *sink,
                             const vlp_dataset_options *options) {
    char *path = NULL;
    VLP_TRY(find_split(&path, dataset->folder, vlp_split_names[split]));
    vlp_status status = VLP_OK;
    vlp_triple_list *triples = &dataset->splits[split];
    if (path) {
        vlp_read_options reading = {.threads = options->threads, .observer = options->observer};
        sink->triples = triples;
        sink->repeated = 0;
        VLP_CHECK(vlp_read_file(sink, path, &reading));
        VLP_CHECK(vlp_dataset_end_split(dataset, split));
        dataset->duplicates[split] += sink->repeated;
    }
    if (split == VLP_TRAIN && triples->count == 0) {
        status = path ? vlp_fail(VLP_ERROR_FORMAT, "%s has no triples", path)
                      : vlp_fail(VLP_ERROR_IO,
                                 "%s has no train.txt (nor .tsv, .csv, .nt, .nq, .ttl, .trig, nor one "
                                 "of these with .gz or .zst)",
                                 dataset->folder);
    }
out:
    vlp_free(path);
    return status;
}

static vlp_status read_labels(vlp_dataset *dataset) {
    char *path = vlp_path_join(dataset->folder, "labels.tsv");
    if (!path) return vlp_fail_memory("a file name");
    vlp_status status = VLP_OK;
    vlp_source *source = NULL;
    if (!vlp_path_exists(path)) goto out;
    VLP_CHECK(vlp_source_open(&source, path));
    const vlp_dictionary *const names[VLP_LABEL_KINDS] = {dataset->entities, dataset->relations};
    VLP_CHECK(vlp_labels_read(dataset->labels, source, names));
out:
    vlp_source_free(source);
    vlp_free(path);
    return status;
}

static vlp_status read_folder(vlp_dataset *dataset, const char *folder,
                              const vlp_dataset_options *options) {
    dataset->folder = vlp_string_copy(folder);
    if (!dataset->folder) return vlp_fail_memory("a folder name");
    if (!vlp_path_exists(folder)) return vlp_fail(VLP_ERROR_IO, "there is no folder %s", folder);
    /* One sink for all splits: their nodes without a label are numbered through. */
    vlp_read_sink sink = {
        .entities = dataset->entities, .relations = dataset->relations, .drops_repeated = true};
    for (int split = 0; split < VLP_SPLITS; split++)
        VLP_TRY(read_split(dataset, (vlp_split)split, &sink, options));
    dataset->graph_names = sink.graph_names;
    VLP_TRY(read_labels(dataset));
    return vlp_dataset_finish(dataset);
}

vlp_status vlp_dataset_open(vlp_dataset **out, const char *folder, const vlp_dataset_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(folder);
    vlp_dataset_options options = VLP_DATASET_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_dataset_options, &options, given));
    VLP_TRY(vlp_check_threads(options.threads));
    vlp_dataset *dataset = NULL;
    VLP_TRY(vlp_dataset_start(&dataset, options.threads));
    vlp_status status = read_folder(dataset, folder, &options);
    if (status != VLP_OK) {
        vlp_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return VLP_OK;
}

/* ---- Making, from files and from memory ---------------------------------------------------------- */

vlp_status vlp_dataset_start(vlp_dataset **out, int32_t threads) {
    *out = NULL;
    vlp_dataset *dataset = vlp_alloc_zero(1, sizeof *dataset);
    if (!dataset) return vlp_fail_memory("a data set");
    dataset->threads = threads;
    vlp_status status = vlp_dictionary_new(&dataset->entities);
    if (status == VLP_OK) status = vlp_dictionary_new(&dataset->relations);
    if (status != VLP_OK) {
        vlp_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return VLP_OK;
}

static vlp_status mark_seen(vlp_dataset *dataset) {
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN];
    dataset->seen_entities = vlp_alloc_zero((size_t)vlp_dictionary_size(dataset->entities), 1);
    dataset->seen_relations = vlp_alloc_zero((size_t)vlp_dictionary_size(dataset->relations), 1);
    if (!dataset->seen_entities || !dataset->seen_relations) return vlp_fail_memory("a data set");
    for (int64_t i = 0; i < train->count; i++) {
        dataset->seen_entities[train->items[i].head] = 1;
        dataset->seen_entities[train->items[i].tail] = 1;
        dataset->seen_relations[train->items[i].relation] = 1;
    }
    return VLP_OK;
}

vlp_status vlp_dataset_finish(vlp_dataset *dataset) {
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN];
    int32_t entities = vlp_dictionary_size(dataset->entities);
    int32_t relations = vlp_dictionary_size(dataset->relations);
    /* Inverse relations are numbered behind the others. */
    if (relations > INT32_MAX / 2)
        return vlp_fail(VLP_ERROR_FORMAT, "%s has more than %d relations", vlp_dataset_title(dataset),
                        INT32_MAX / 2);
    vlp_dictionary_trim(dataset->entities);
    vlp_dictionary_trim(dataset->relations);
    VLP_TRY(mark_seen(dataset));
    return vlp_graph_new(&dataset->graph, train->items, train->count, entities, relations,
                         dataset->threads);
}

void vlp_dataset_free(vlp_dataset *dataset) {
    if (!dataset) return;
    vlp_graph_free(dataset->graph);
    for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&dataset->splits[split]);
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++) vlp_labels_free(dataset->labels[kind]);
    vlp_dictionary_free(dataset->entities);
    vlp_dictionary_free(dataset->relations);
    vlp_free(dataset->seen_entities);
    vlp_free(dataset->seen_relations);
    vlp_free(dataset->folder);
    vlp_free(dataset);
}

/* ---- Names --------------------------------------------------------------------------------------- */

const char *vlp_dataset_title(const vlp_dataset *dataset) {
    return dataset->folder ? dataset->folder : "the data set in memory";
}

int32_t vlp_dataset_entity_count(const vlp_dataset *dataset) {
    return dataset ? vlp_dictionary_size(dataset->entities) : 0;
}

int32_t vlp_dataset_relation_count(const vlp_dataset *dataset) {
    return dataset ? vlp_dictionary_size(dataset->relations) : 0;
}

static bool is_entity(const vlp_dataset *dataset, int32_t entity) {
    return entity >= 0 && entity < vlp_dataset_entity_count(dataset);
}

const char *vlp_dataset_entity_name(const vlp_dataset *dataset, int32_t entity) {
    return is_entity(dataset, entity) ? vlp_dictionary_name(dataset->entities, entity) : NULL;
}

static bool is_relation(const vlp_dataset *dataset, int32_t relation) {
    return relation >= 0 && relation < vlp_dataset_relation_count(dataset);
}

const char *vlp_dataset_relation_name(const vlp_dataset *dataset, int32_t relation) {
    return is_relation(dataset, relation) ? vlp_dictionary_name(dataset->relations, relation) : NULL;
}

const char *vlp_dataset_entity_label(const vlp_dataset *dataset, int32_t entity) {
    if (!is_entity(dataset, entity) || !dataset->labels[VLP_ENTITY_LABELS]) return NULL;
    return vlp_labels_label(dataset->labels[VLP_ENTITY_LABELS], entity);
}

const char *vlp_dataset_entity_description(const vlp_dataset *dataset, int32_t entity) {
    if (!is_entity(dataset, entity) || !dataset->labels[VLP_ENTITY_LABELS]) return NULL;
    return vlp_labels_description(dataset->labels[VLP_ENTITY_LABELS], entity);
}

const char *vlp_dataset_relation_label(const vlp_dataset *dataset, int32_t relation) {
    if (!is_relation(dataset, relation) || !dataset->labels[VLP_RELATION_LABELS]) return NULL;
    return vlp_labels_label(dataset->labels[VLP_RELATION_LABELS], relation);
}

const char *vlp_dataset_relation_description(const vlp_dataset *dataset, int32_t relation) {
    if (!is_relation(dataset, relation) || !dataset->labels[VLP_RELATION_LABELS]) return NULL;
    return vlp_labels_description(dataset->labels[VLP_RELATION_LABELS], relation);
}

enum { SUGGESTIONS = 3 };

/* The known texts nearest to what was asked for. */
typedef struct suggestion {
    const char *text;
    int distance;
} suggestion;

static void suggest(suggestion *best, const char *asked, const char *known) {
    if (!known) return;
    int distance = vlp_edit_distance(asked, known, best[SUGGESTIONS - 1].distance);
    int place = SUGGESTIONS;
    while (place > 0 && distance < best[place - 1].distance) place--;
    if (place == SUGGESTIONS) return;
    memmove(best + place + 1, best + place, (size_t)(SUGGESTIONS - place - 1) * sizeof *best);
    best[place] = (suggestion){known, distance};
}

static vlp_status fail_unknown(const char *kind, const char *asked, const suggestion *best) {
    char text[512] = "";
    for (int i = 0; i < SUGGESTIONS && best[i].text; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.120s",
                 i ? ", " : "; the nearest known: ", best[i].text);
    }
    return vlp_fail(VLP_ERROR_UNKNOWN, "unknown %s '%.200s'%s", kind, asked, text);
}

/* Names that share less than half with what was asked for are no help. */
static void suggestions_start(suggestion best[SUGGESTIONS], const char *asked) {
    size_t length = strlen(asked);
    int limit = length < 200 ? (int)length / 2 + 1 : 100;
    for (int i = 0; i < SUGGESTIONS; i++) best[i] = (suggestion){NULL, limit};
}

/* Finds entities or relations: by name, else by a label that one of them alone has. */
static vlp_status find_name(int32_t *out, const vlp_dataset *dataset, int kind, const char *name) {
    static const char *const kinds[VLP_LABEL_KINDS] = {"entity", "relation"};
    const vlp_dictionary *names = kind == VLP_ENTITY_LABELS ? dataset->entities : dataset->relations;
    const vlp_labels *labels = dataset->labels[kind];
    *out = vlp_dictionary_find(names, name, strlen(name));
    if (*out >= 0) return VLP_OK;
    int32_t found = -1, count = vlp_dictionary_size(names);
    for (int32_t id = 0; labels && id < count; id++) {
        const char *label = vlp_labels_label(labels, id);
        if (!label || strcmp(label, name) != 0) continue;
        if (found >= 0)
            return vlp_fail(VLP_ERROR_UNKNOWN,
                            "'%.200s' is the label of %s and of %s at least; use a name", name,
                            vlp_dictionary_name(names, found), vlp_dictionary_name(names, id));
        found = id;
    }
    if (found >= 0) {
        *out = found;
        return VLP_OK;
    }
    suggestion best[SUGGESTIONS];
    suggestions_start(best, name);
    for (int32_t id = 0; id < count; id++) {
        suggest(best, name, vlp_dictionary_name(names, id));
        if (labels) suggest(best, name, vlp_labels_label(labels, id));
    }
    return fail_unknown(kinds[kind], name, best);
}

vlp_status vlp_dataset_find_entity(int32_t *out, const vlp_dataset *dataset, const char *name) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(dataset);
    VLP_REQUIRE(name);
    return find_name(out, dataset, VLP_ENTITY_LABELS, name);
}

vlp_status vlp_dataset_find_relation(int32_t *out, const vlp_dataset *dataset, const char *name) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(dataset);
    VLP_REQUIRE(name);
    return find_name(out, dataset, VLP_RELATION_LABELS, name);
}

/* ---- Triples, filter, distances, references ------------------------------------------------------ */

const vlp_triple *vlp_dataset_triples(const vlp_dataset *dataset, vlp_split split, int64_t *count) {
    bool valid = dataset && (int)split >= 0 && split < VLP_SPLITS;
    if (count) *count = valid ? dataset->splits[split].count : 0;
    return valid ? dataset->splits[split].items : NULL;
}

vlp_status vlp_filter_new(vlp_filter **out, const vlp_dataset *dataset, unsigned splits) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(dataset);
    VLP_TRY(vlp_check_splits(splits));
    const vlp_triple *lists[VLP_SPLITS];
    int64_t counts[VLP_SPLITS];
    int used = 0;
    for (int split = 0; split < VLP_SPLITS; split++)
        if (splits >> split & 1) {
            lists[used] = dataset->splits[split].items;
            counts[used++] = dataset->splits[split].count;
        }
    return vlp_filter_build(out, lists, counts, used, vlp_dataset_entity_count(dataset),
                            vlp_dataset_relation_count(dataset), dataset->threads);
}

vlp_status vlp_distance_from(int32_t *out, const vlp_dataset *dataset, int32_t source, int32_t limit) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(dataset);
    if (limit < 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a limit of %d hops; it is 0 (none) or more", limit);
    if (!is_entity(dataset, source))
        return vlp_fail(VLP_ERROR_ARGUMENT, "entity %d of %d", source,
                        vlp_dataset_entity_count(dataset));
    vlp_skeleton *skeleton = NULL;
    VLP_TRY(vlp_skeleton_new(&skeleton, dataset->graph, dataset->threads));
    int32_t *queue = vlp_alloc((size_t)skeleton->nodes, sizeof *queue);
    vlp_status status = queue ? VLP_OK : vlp_fail_memory("distances");
    if (queue) vlp_skeleton_search(skeleton, source, limit, out, queue);
    vlp_free(queue);
    vlp_skeleton_free(skeleton);
    return status;
}

vlp_status vlp_distance_pairs(int32_t *out, const vlp_dataset *dataset, const vlp_triple *pairs,
                              int64_t count, int32_t threads) {
    VLP_REQUIRE(dataset);
    VLP_TRY(vlp_check_array(pairs, count, "pairs"));
    VLP_TRY(vlp_check_array(out, count, "distances"));
    VLP_TRY(vlp_check_threads(threads));
    int32_t entities = vlp_dataset_entity_count(dataset);
    for (int64_t i = 0; i < count; i++)
        if (pairs[i].head < 0 || pairs[i].head >= entities || pairs[i].tail < 0 ||
            pairs[i].tail >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "pair %lld has an entity out of range", (long long)i);
    vlp_skeleton *skeleton = NULL;
    VLP_TRY(vlp_skeleton_new(&skeleton, dataset->graph, threads));
    vlp_status status = vlp_skeleton_pairs(out, skeleton, pairs, count, threads);
    vlp_skeleton_free(skeleton);
    return status;
}

vlp_status vlp_references_find(vlp_references **out, const vlp_dataset *dataset,
                               const vlp_query *queries, int64_t count,
                               const vlp_reference_options *options) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(dataset);
    return vlp_graph_references(out, dataset->graph, queries, count, options);
}

/* ---- Counts -------------------------------------------------------------------------------------- */

static void count_unseen(vlp_dataset_stats *stats, const vlp_dataset *dataset, vlp_split split,
                         uint8_t *met) {
    const vlp_triple_list *triples = &dataset->splits[split];
    int32_t entities = vlp_dataset_entity_count(dataset);
    for (int64_t i = 0; i < triples->count; i++) {
        vlp_triple triple = triples->items[i];
        int32_t ends[2] = {triple.head, triple.tail};
        bool unseen = false;
        for (int end = 0; end < 2; end++) {
            if (dataset->seen_entities[ends[end]]) continue;
            unseen = true;
            if (met[ends[end]]) continue;
            met[ends[end]] = 1;
            stats->unseen_entities[split]++;
        }
        stats->unseen_triples[split] += unseen;
        if (!dataset->seen_relations[triple.relation] && !met[entities + triple.relation]) {
            met[entities + triple.relation] = 1;
            stats->unseen_relations[split]++;
        }
    }
}

vlp_status vlp_dataset_describe(vlp_dataset_stats *out, const vlp_dataset *dataset) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(dataset);
    vlp_dataset_stats stats = {.entities = vlp_dataset_entity_count(dataset),
                               .relations = vlp_dataset_relation_count(dataset)};
    stats.bytes = vlp_dictionary_bytes(dataset->entities) + vlp_dictionary_bytes(dataset->relations) +
                  vlp_graph_bytes(dataset->graph) + stats.entities + stats.relations;
    int64_t *labels[VLP_LABEL_KINDS] = {&stats.labels, &stats.relation_labels};
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++)
        if (dataset->labels[kind]) {
            *labels[kind] = vlp_labels_count(dataset->labels[kind]);
            stats.bytes += vlp_labels_bytes(dataset->labels[kind]);
        }
    stats.graph_names = dataset->graph_names;
    size_t names = (size_t)(stats.entities + stats.relations);
    uint8_t *met = vlp_alloc(names, 1);
    if (!met) return vlp_fail_memory("counting");
    for (int split = 0; split < VLP_SPLITS; split++) {
        stats.triples[split] = dataset->splits[split].count;
        stats.duplicates[split] = dataset->duplicates[split];
        stats.bytes += dataset->splits[split].capacity * (int64_t)sizeof(vlp_triple);
        memset(met, 0, names);
        count_unseen(&stats, dataset, (vlp_split)split, met);
    }
    vlp_free(met);
    *out = stats;
    return VLP_OK;
}

void vlp_dataset_checksum(char out[33], const vlp_dataset *dataset) {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    const vlp_dictionary *names[2] = {dataset->entities, dataset->relations};
    for (int kind = 0; kind < 2; kind++)
        for (int32_t i = 0; i < vlp_dictionary_size(names[kind]); i++)
            XXH3_128bits_update(&state, vlp_dictionary_name(names[kind], i),
                                vlp_dictionary_name_length(names[kind], i) + 1);
    for (int split = 0; split < VLP_SPLITS; split++) {
        XXH3_128bits_update(&state, &dataset->splits[split].count, sizeof dataset->splits[split].count);
        XXH3_128bits_update(&state, dataset->splits[split].items,
                            (size_t)dataset->splits[split].count * sizeof(vlp_triple));
    }
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}
