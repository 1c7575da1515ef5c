/* Data sets from arrays: by names, and by ids. Both end as reading the same triples from files would. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"
#include "graph/dataset.h"

/* Triples between two reports of progress and checks for a stop. */
enum { REPORT_EVERY = 1 << 16 };

static const char *const end_names[3] = {"head", "relation", "tail"};

/* Why a file could not hold a text; NULL where it could. */
static const char *text_fault(const char *text) {
    size_t length = strlen(text);
    if (vlp_utf8_valid_prefix(text, length) < length) return "invalid UTF-8";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return "a control character";
    return length > UINT32_MAX ? "more than 4 GiB" : NULL;
}

static const char *name_fault(const char *name) {
    if (!name) return "no name";
    return *name ? text_fault(name) : "an empty name";
}

static vlp_status check_counts(const int64_t counts[VLP_SPLITS], const bool given[VLP_SPLITS]) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        if (counts[split] < 0 || counts[split] > INT32_MAX)
            return vlp_fail(VLP_ERROR_ARGUMENT, "%lld triples in %s; it is 0 to %d",
                            (long long)counts[split], vlp_split_names[split], INT32_MAX);
        if (counts[split] > 0 && !given[split])
            return vlp_fail(VLP_ERROR_ARGUMENT, "the triples of %s are NULL", vlp_split_names[split]);
    }
    if (counts[VLP_TRAIN] == 0) return vlp_fail(VLP_ERROR_ARGUMENT, "there are no training triples");
    return VLP_OK;
}

static vlp_status reserve(vlp_triple_list *list, int64_t count) {
    return vlp_grow(&list->items, &list->capacity, count, sizeof *list->items, "triples");
}

/* ---- By names ------------------------------------------------------------------------------------ */

static vlp_status add_named(vlp_dataset *dataset, vlp_split split, const vlp_named_triple *triples,
                            int64_t count, const vlp_observer *observer) {
    vlp_triple_list *list = &dataset->splits[split];
    VLP_TRY(reserve(list, count));
    for (int64_t i = 0; i < count; i++) {
        const char *const names[3] = {triples[i].head, triples[i].relation, triples[i].tail};
        int32_t ids[3];
        for (int end = 0; end < 3; end++) {
            const char *fault = name_fault(names[end]);
            if (fault)
                return vlp_fail(VLP_ERROR_ARGUMENT, "triple %lld of %s: %s (the %s)", (long long)i,
                                vlp_split_names[split], fault, end_names[end]);
            VLP_TRY(vlp_dictionary_add(end == 1 ? dataset->relations : dataset->entities, &ids[end],
                                       names[end]));
        }
        list->items[list->count++] = (vlp_triple){ids[0], ids[1], ids[2]};
        if ((i + 1) % REPORT_EVERY != 0) continue;
        vlp_progress(observer, "triples", i + 1, count);
        if (vlp_stopped(observer)) return vlp_fail_stopped();
    }
    return vlp_dataset_end_split(dataset, split);
}

vlp_status vlp_dataset_from_names(vlp_dataset **out, const vlp_named_triple *const triples[VLP_SPLITS],
                                  const int64_t counts[VLP_SPLITS], const vlp_dataset_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(triples);
    VLP_REQUIRE(counts);
    const bool lists[VLP_SPLITS] = {triples[0] != NULL, triples[1] != NULL, triples[2] != NULL};
    vlp_dataset_options options = VLP_DATASET_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_dataset_options, &options, given));
    VLP_TRY(vlp_check_threads(options.threads));
    vlp_dataset *dataset = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY(check_counts(counts, lists));
    VLP_TRY(vlp_dataset_start(&dataset, options.threads));
    for (int split = 0; split < VLP_SPLITS; split++)
        VLP_CHECK(add_named(dataset, (vlp_split)split, triples[split], counts[split], options.observer));
    VLP_CHECK(vlp_dataset_finish(dataset));
out:
    if (status != VLP_OK) {
        vlp_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return VLP_OK;
}

/* ---- By ids -------------------------------------------------------------------------------------- */

/* Checks the ids of a split; a limit of 0 takes any, and *entities and *relations grow to fit. */
static vlp_status check_ids(int32_t *entities, int32_t *relations, const vlp_dataset_content *content,
                            vlp_split split) {
    int32_t limits[3] = {content->entities, content->relations, content->entities};
    for (int end = 0; end < 3; end++)
        if (limits[end] == 0) limits[end] = INT32_MAX;
    for (int64_t i = 0; i < content->counts[split]; i++) {
        vlp_triple triple = content->triples[split][i];
        int32_t ids[3] = {triple.head, triple.relation, triple.tail};
        for (int end = 0; end < 3; end++) {
            int32_t *count = end == 1 ? relations : entities;
            if (ids[end] < 0 || ids[end] >= limits[end])
                return vlp_fail(VLP_ERROR_ARGUMENT, "triple %lld of %s: %s %d; it is 0 to %d",
                                (long long)i, vlp_split_names[split], end_names[end], ids[end],
                                limits[end] - 1);
            if (ids[end] >= *count) *count = ids[end] + 1;
        }
    }
    return VLP_OK;
}

static vlp_status check_texts(const char *const *texts, int32_t count, const char *what, bool names) {
    for (int32_t i = 0; texts && i < count; i++) {
        const char *fault = names ? name_fault(texts[i]) : texts[i] ? text_fault(texts[i]) : NULL;
        if (fault) return vlp_fail(VLP_ERROR_ARGUMENT, "%s %d: %s", what, i, fault);
    }
    return VLP_OK;
}

/* Names 0 .. count - 1 in a dictionary; NULL: the numbers themselves. */
static vlp_status add_names(vlp_dictionary *dictionary, const char *const *names, int32_t count) {
    for (int32_t i = 0, id; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        VLP_TRY(vlp_dictionary_add(dictionary, &id, names ? names[i] : number));
        if (id != i)
            return vlp_fail(VLP_ERROR_FORMAT, "'%.200s' is the name of both %d and %d", names[i], id, i);
    }
    return VLP_OK;
}

vlp_status vlp_dataset_make(vlp_dataset **out, const vlp_dataset_content *content,
                            vlp_triple_list splits[VLP_SPLITS], int32_t threads) {
    *out = NULL;
    vlp_dataset *dataset = NULL;
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_dataset_start(&dataset, threads));
    VLP_CHECK(add_names(dataset->entities, content->entity_names, content->entities));
    VLP_CHECK(add_names(dataset->relations, content->relation_names, content->relations));
    for (int split = 0; split < VLP_SPLITS; split++) {
        dataset->splits[split] = splits[split];
        splits[split] = (vlp_triple_list){NULL, 0, 0};
        VLP_CHECK(vlp_dataset_end_split(dataset, (vlp_split)split));
    }
    VLP_CHECK(vlp_labels_new(&dataset->labels[VLP_ENTITY_LABELS], content->entity_labels,
                             content->entity_descriptions, content->entities));
    VLP_CHECK(vlp_labels_new(&dataset->labels[VLP_RELATION_LABELS], content->relation_labels,
                             content->relation_descriptions, content->relations));
    VLP_CHECK(vlp_dataset_finish(dataset));
out:
    for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&splits[split]);
    if (status != VLP_OK) {
        vlp_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return VLP_OK;
}

static vlp_status check_content(vlp_dataset_content *content) {
    int32_t entities = content->entities, relations = content->relations;
    const bool lists[VLP_SPLITS] = {content->triples[0] != NULL, content->triples[1] != NULL,
                                    content->triples[2] != NULL};
    VLP_TRY(check_counts(content->counts, lists));
    if (entities < 0 || relations < 0 || relations > INT32_MAX / 2)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d entities and %d relations; it is at most %d and %d",
                        entities, relations, INT32_MAX, INT32_MAX / 2);
    if (entities == 0 &&
        (content->entity_names || content->entity_labels || content->entity_descriptions))
        return vlp_fail(VLP_ERROR_ARGUMENT, "there are names or labels for 0 entities");
    if (relations == 0 &&
        (content->relation_names || content->relation_labels || content->relation_descriptions))
        return vlp_fail(VLP_ERROR_ARGUMENT, "there are names or labels for 0 relations");
    for (int split = 0; split < VLP_SPLITS; split++)
        VLP_TRY(check_ids(&entities, &relations, content, (vlp_split)split));
    VLP_TRY(check_texts(content->entity_names, entities, "the name of entity", true));
    VLP_TRY(check_texts(content->relation_names, relations, "the name of relation", true));
    VLP_TRY(check_texts(content->entity_labels, entities, "the label of entity", false));
    VLP_TRY(check_texts(content->entity_descriptions, entities, "the description of entity", false));
    VLP_TRY(check_texts(content->relation_labels, relations, "the label of relation", false));
    VLP_TRY(
        check_texts(content->relation_descriptions, relations, "the description of relation", false));
    content->entities = entities;
    content->relations = relations;
    return VLP_OK;
}

vlp_status vlp_dataset_from_ids(vlp_dataset **out, const vlp_dataset_content *content,
                                const vlp_dataset_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(content);
    vlp_dataset_content mine = VLP_DATASET_CONTENT_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_dataset_content, &mine, content));
    vlp_dataset_options options = VLP_DATASET_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_dataset_options, &options, given));
    VLP_TRY(vlp_check_threads(options.threads));
    VLP_TRY(check_content(&mine));
    vlp_triple_list splits[VLP_SPLITS] = {{NULL, 0, 0}};
    vlp_status status = VLP_OK;
    for (int split = 0; split < VLP_SPLITS && status == VLP_OK; split++) {
        status = reserve(&splits[split], mine.counts[split]);
        if (status != VLP_OK || mine.counts[split] == 0) continue;
        splits[split].count = mine.counts[split];
        memcpy(splits[split].items, mine.triples[split],
               (size_t)mine.counts[split] * sizeof *splits[split].items);
    }
    if (status != VLP_OK) {
        for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&splits[split]);
        return status;
    }
    status = vlp_dataset_make(out, &mine, splits, options.threads);
    /* Here the texts came from the caller. */
    return status == VLP_ERROR_FORMAT ? VLP_ERROR_ARGUMENT : status;
}
