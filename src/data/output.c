#include "data/output.h"

#include <string.h>

#include "base/random.h"
#include "graph/dataset.h"

/* ---- Splitting ----------------------------------------------------------------------------------- */

/* A random permutation of 0 .. count - 1. */
static void shuffle(int32_t *order, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++) order[i] = (int32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        vlp_random4 bits = vlp_random(seed, VLP_STREAM_SPLIT, (uint64_t)i, 0);
        uint32_t other = vlp_random_below(bits.v[0], bits.v[1], (uint32_t)(i + 1));
        int32_t swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
}

typedef struct division {
    const vlp_triple_list *all;
    bool keep_entities;
    uint8_t *split;    /* (triples) */
    int64_t *entity;   /* (entities) occurrences in the training split */
    int64_t *relation; /* (relations) triples in the training split */
    int64_t *quota; /* (relations) triples still to take for the present split, or one quota for all */
    bool by_relation;
} division;

/* Whether the training split keeps both entities and the relation of a triple that is taken out. */
static bool may_leave(const division *work, vlp_triple triple) {
    if (!work->keep_entities) return true;
    int64_t ends = triple.head == triple.tail ? 2 : 1;
    return work->entity[triple.head] > ends && work->entity[triple.tail] > ends &&
           work->relation[triple.relation] > 1;
}

/* Moves triples out of the training split, in the given order, until the quotas are met; returns how
 * many. */
static int64_t take(division *work, vlp_split split, const int32_t *order) {
    int64_t taken = 0;
    for (int64_t i = 0; i < work->all->count; i++) {
        vlp_triple triple = work->all->items[order[i]];
        int64_t *quota = &work->quota[work->by_relation ? triple.relation : 0];
        if (*quota == 0 || work->split[order[i]] != VLP_TRAIN || !may_leave(work, triple)) continue;
        work->split[order[i]] = (uint8_t)split;
        work->entity[triple.head]--;
        work->entity[triple.tail]--;
        work->relation[triple.relation]--;
        (*quota)--;
        taken++;
    }
    return taken;
}

/* Sets the quotas for a share; returns their sum. */
static int64_t set_quotas(division *work, double share, const int64_t *relation_counts,
                          int32_t relations) {
    int64_t sum = 0;
    for (int32_t i = 0; i < (work->by_relation ? relations : 1); i++) {
        int64_t of = work->by_relation ? relation_counts[i] : work->all->count;
        work->quota[i] = (int64_t)(share * (double)of + 0.5);
        sum += work->quota[i];
    }
    return sum;
}

static vlp_status collect(vlp_triple_list splits[VLP_SPLITS], const division *work) {
    for (int64_t i = 0; i < work->all->count; i++) {
        vlp_triple_list *list = &splits[work->split[i]];
        VLP_TRY(
            vlp_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "a split"));
        list->items[list->count++] = work->all->items[i];
    }
    return VLP_OK;
}

vlp_status vlp_divide(vlp_triple_list splits[VLP_SPLITS], const vlp_triple_list *all, int32_t entities,
                      int32_t relations, const vlp_split_options *options) {
    if (!(options->valid >= 0) || !(options->test >= 0) || !(options->valid + options->test < 1))
        return vlp_fail(
            VLP_ERROR_ARGUMENT,
            "shares of %g for valid and %g for test; both are at least 0 and their sum is below 1",
            options->valid, options->test);
    vlp_status status = VLP_OK;
    size_t count = (size_t)all->count;
    division work = {all, options->keep_entities, NULL, NULL, NULL, NULL, options->by_relation};
    int32_t *order = vlp_alloc(count, sizeof *order);
    int64_t *relation_counts = vlp_alloc_zero((size_t)relations, sizeof *relation_counts);
    work.split = vlp_alloc_zero(count, 1);
    work.entity = vlp_alloc_zero((size_t)entities, sizeof *work.entity);
    work.relation = vlp_alloc_zero((size_t)relations, sizeof *work.relation);
    work.quota = vlp_alloc((size_t)relations + 1, sizeof *work.quota);
    if (!order || !relation_counts || !work.split || !work.entity || !work.relation || !work.quota) {
        status = vlp_fail_memory("dividing triples");
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        work.entity[all->items[i].head]++;
        work.entity[all->items[i].tail]++;
        work.relation[all->items[i].relation]++;
    }
    memcpy(relation_counts, work.relation, (size_t)relations * sizeof *relation_counts);
    shuffle(order, all->count, options->seed);
    const double shares[VLP_SPLITS] = {0, options->valid, options->test};
    for (int split = VLP_TEST; split > VLP_TRAIN; split--) {
        int64_t wanted = set_quotas(&work, shares[split], relation_counts, relations);
        int64_t taken = take(&work, (vlp_split)split, order);
        if (taken < wanted)
            vlp_log(options->observer,
                    "%s has %lld of %lld requested triples: each of the others contains an "
                    "entity or relation that the training split would lose",
                    vlp_split_names[split], (long long)taken, (long long)wanted);
    }
    VLP_CHECK(collect(splits, &work));
out:
    vlp_free(order);
    vlp_free(relation_counts);
    vlp_free(work.split);
    vlp_free(work.entity);
    vlp_free(work.relation);
    vlp_free(work.quota);
    return status;
}

/* ---- Writing ------------------------------------------------------------------------------------- */

static vlp_status write_split(vlp_staging *staging, const vlp_output *output, vlp_split split) {
    const vlp_triple_list *triples = &output->splits[split];
    if (triples->count == 0 && split != VLP_TRAIN) return VLP_OK;
    char name[16];
    memcpy(name, vlp_split_names[split], strlen(vlp_split_names[split]) + 1);
    strcat(name, ".txt");
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, staging, name));
    for (int64_t i = 0; i < triples->count; i++) {
        vlp_triple triple = triples->items[i];
        vlp_writer_text(writer, vlp_dictionary_name(output->entities, triple.head));
        vlp_writer_bytes(writer, "\t", 1);
        vlp_writer_text(writer, vlp_dictionary_name(output->relations, triple.relation));
        vlp_writer_bytes(writer, "\t", 1);
        vlp_writer_text(writer, vlp_dictionary_name(output->entities, triple.tail));
        vlp_writer_bytes(writer, "\n", 1);
    }
    return vlp_writer_commit(&writer);
}

/* Writes the labels of one kind of names and counts them. A name in `earlier` has its line already. */
static void put_labels(vlp_writer *writer, int64_t *count, const vlp_dictionary *names,
                       const char *const *labels, const vlp_output *earlier) {
    for (int32_t i = 0; labels && i < vlp_dictionary_size(names); i++) {
        if (!labels[i]) continue;
        ++*count;
        const char *name = vlp_dictionary_name(names, i);
        int32_t entity =
            earlier && earlier->labels ? vlp_dictionary_find(earlier->entities, name, strlen(name)) : -1;
        if (entity >= 0 && earlier->labels[entity]) continue;
        vlp_writer_text(writer, name);
        vlp_writer_bytes(writer, "\t", 1);
        vlp_writer_text(writer, labels[i]);
        vlp_writer_bytes(writer, "\n", 1);
    }
}

static vlp_status write_labels(vlp_import_report *report, vlp_staging *staging,
                               const vlp_output *output) {
    report->labels = report->relation_labels = 0;
    if (!output->labels && !output->relation_labels) return VLP_OK;
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, staging, "labels.tsv"));
    put_labels(writer, &report->labels, output->entities, output->labels, NULL);
    put_labels(writer, &report->relation_labels, output->relations, output->relation_labels, output);
    return vlp_writer_commit(&writer);
}

vlp_status vlp_output_write(vlp_import_report *report, vlp_staging *staging, const vlp_output *output) {
    report->entities = vlp_dictionary_size(output->entities);
    report->relations = vlp_dictionary_size(output->relations);
    for (int split = 0; split < VLP_SPLITS; split++) {
        report->triples[split] = output->splits[split].count;
        VLP_TRY(write_split(staging, output, (vlp_split)split));
    }
    return write_labels(report, staging, output);
}
