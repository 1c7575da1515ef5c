/* What a data set gives away: triples in two splits, entities that training never sees, relations that
 * repeat each other, and how often an answer can be copied from a reference. */
#include <stdlib.h>
#include <string.h>

#include "graph/dataset.h"

/* ---- Overlaps ------------------------------------------------------------------------------------ */

static vlp_status find_overlaps(vlp_audit *audit, const vlp_dataset *dataset) {
    for (int a = 0; a < VLP_SPLITS; a++) {
        vlp_filter *filter = NULL;
        VLP_TRY(vlp_filter_new(&filter, dataset, 1u << a));
        for (int b = a + 1; b < VLP_SPLITS; b++)
            for (int64_t i = 0; i < dataset->splits[b].count; i++) {
                vlp_triple triple = dataset->splits[b].items[i];
                if (!vlp_filter_has(filter, triple.head, triple.relation, triple.tail)) continue;
                if (audit->overlap[a][b]++ == 0) audit->overlap_example[a][b] = triple;
            }
        vlp_filter_free(filter);
    }
    return VLP_OK;
}

static void find_unseen(vlp_audit *audit, const vlp_dataset *dataset) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        audit->unseen_example[split] = -1;
        for (int64_t i = 0; i < dataset->splits[split].count && audit->unseen_example[split] < 0; i++) {
            vlp_triple triple = dataset->splits[split].items[i];
            if (triple.head >= dataset->seen_entities) audit->unseen_example[split] = triple.head;
            if (triple.tail >= dataset->seen_entities) audit->unseen_example[split] = triple.tail;
        }
    }
}

/* ---- Relations that repeat each other ------------------------------------------------------------ */

/* Counterparts are counted in a hash table over the pairs that occur: with many relations a full table
 * of pairs would not fit, and few pairs share any triple. */
typedef struct pair_cell {
    int32_t first, second; /* second >= relations: read backwards; first -1: free */
    int64_t shared, leaked;
    int64_t test_example, train_example;
} pair_cell;

typedef struct pair_table {
    pair_cell *cells;
    int64_t used, capacity; /* capacity a power of two */
} pair_table;

static uint64_t pair_hash(int32_t first, int32_t second) {
    return ((uint64_t)(uint32_t)first << 32 | (uint32_t)second) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static vlp_status table_resize(pair_table *table, int64_t capacity) {
    pair_cell *cells = vlp_alloc((size_t)capacity, sizeof *cells);
    if (!cells) return vlp_fail_memory("comparing relations");
    for (int64_t i = 0; i < capacity; i++) cells[i].first = -1;
    pair_table larger = {cells, table->used, capacity};
    for (int64_t i = 0; i < table->capacity; i++) {
        pair_cell cell = table->cells[i];
        if (cell.first < 0) continue;
        uint64_t place = pair_hash(cell.first, cell.second);
        while (cells[place & (uint64_t)(capacity - 1)].first >= 0) place++;
        cells[place & (uint64_t)(capacity - 1)] = cell;
    }
    vlp_free(table->cells);
    *table = larger;
    return VLP_OK;
}

static vlp_status table_find(pair_cell **out, pair_table *table, int32_t first, int32_t second) {
    if (2 * (table->used + 1) > table->capacity)
        VLP_TRY(table_resize(table, table->capacity ? 2 * table->capacity : 256));
    for (uint64_t place = pair_hash(first, second);; place++) {
        pair_cell *cell = &table->cells[place & (uint64_t)(table->capacity - 1)];
        if (cell->first < 0) {
            *cell = (pair_cell){first, second, 0, 0, -1, -1};
            table->used++;
        } else if (cell->first != first || cell->second != second) {
            continue;
        }
        *out = cell;
        return VLP_OK;
    }
}

/* Adds the counterparts in train of one triple: every slot of its head that leads to its tail, but for
 * the triple itself. `test` is the triple's index in test, -1 for a training triple. */
static vlp_status add_counterparts(pair_table *table, const vlp_graph *graph, vlp_triple triple,
                                   int64_t test) {
    /* The shorter of the two rows; read from the tail, a slot's direction is turned round. */
    bool from_tail = vlp_graph_degree(graph, triple.tail) < vlp_graph_degree(graph, triple.head);
    int32_t node = from_tail ? triple.tail : triple.head, other = from_tail ? triple.head : triple.tail;
    for (int64_t slot = graph->offset[node]; slot < graph->offset[node + 1]; slot++) {
        if (graph->neighbor[slot] != other) continue;
        int32_t relation = graph->relation[slot];
        if (from_tail) relation += relation < graph->relations ? graph->relations : -graph->relations;
        bool loop = triple.head == triple.tail; /* reads the same both ways: no counterpart of itself */
        if (relation == triple.relation) continue;
        if (loop && relation == triple.relation + graph->relations) continue;
        pair_cell *cell;
        VLP_TRY(table_find(&cell, table, triple.relation, relation));
        if (test < 0) {
            cell->shared++;
        } else if (cell->leaked++ == 0) {
            cell->test_example = test;
            cell->train_example = graph->edge[slot];
        }
    }
    return VLP_OK;
}

static int most_leaking_first(const void *left, const void *right) {
    const vlp_relation_pair *a = left, *b = right;
    if (a->leaked != b->leaked) return a->leaked < b->leaked ? 1 : -1;
    if (a->shared != b->shared) return a->shared < b->shared ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->second != b->second) return a->second < b->second ? -1 : 1;
    return (int)a->inverse - (int)b->inverse;
}

/* The cells of a large enough share, as pairs. */
static vlp_status list_pairs(vlp_audit *audit, const vlp_dataset *dataset, const pair_table *table,
                             const int64_t *relation_counts, double threshold) {
    int32_t relations = vlp_dataset_relation_count(dataset);
    int64_t capacity = 0;
    for (int64_t i = 0; i < table->capacity; i++) {
        const pair_cell *cell = &table->cells[i];
        if (cell->first < 0 || cell->shared == 0) continue;
        double share = (double)cell->shared / (double)relation_counts[cell->first];
        if (share < threshold) continue;
        VLP_TRY(vlp_grow(&audit->pairs, &capacity, audit->pair_count + 1, sizeof *audit->pairs,
                         "relation pairs"));
        vlp_relation_pair pair = {.first = cell->first,
                                  .second = cell->second % relations,
                                  .inverse = cell->second >= relations,
                                  .shared = cell->shared,
                                  .share = share,
                                  .leaked = cell->leaked};
        if (cell->leaked > 0) {
            pair.example_test = dataset->splits[VLP_TEST].items[cell->test_example];
            pair.example_train = dataset->splits[VLP_TRAIN].items[cell->train_example];
        }
        audit->pairs[audit->pair_count++] = pair;
    }
    vlp_sort(audit->pairs, audit->pair_count, sizeof *audit->pairs, most_leaking_first);
    return VLP_OK;
}

/* Test triples with a counterpart through any of the pairs. */
static vlp_status count_leaked(vlp_audit *audit, const vlp_dataset *dataset) {
    vlp_filter *train = NULL;
    VLP_TRY(vlp_filter_new(&train, dataset, 1u << VLP_TRAIN));
    int32_t relations = vlp_dataset_relation_count(dataset);
    for (int64_t i = 0; i < dataset->splits[VLP_TEST].count; i++) {
        vlp_triple triple = dataset->splits[VLP_TEST].items[i];
        bool leaked = false;
        for (int64_t p = 0; p < audit->pair_count && !leaked; p++) {
            const vlp_relation_pair *pair = &audit->pairs[p];
            int32_t relation = pair->second + (pair->inverse ? relations : 0);
            leaked = pair->first == triple.relation &&
                     vlp_filter_has(train, triple.head, relation, triple.tail);
        }
        audit->leaked += leaked;
    }
    vlp_filter_free(train);
    return VLP_OK;
}

static vlp_status compare_relations(vlp_audit *audit, const vlp_dataset *dataset, double threshold) {
    vlp_status status = VLP_OK;
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN], *test = &dataset->splits[VLP_TEST];
    pair_table table = {0};
    int64_t *counts = vlp_alloc_zero((size_t)vlp_dataset_relation_count(dataset), sizeof *counts);
    if (!counts) return vlp_fail_memory("comparing relations");
    for (int64_t i = 0; i < train->count; i++) {
        counts[train->items[i].relation]++;
        VLP_CHECK(add_counterparts(&table, dataset->graph, train->items[i], -1));
    }
    for (int64_t i = 0; i < test->count; i++)
        VLP_CHECK(add_counterparts(&table, dataset->graph, test->items[i], i));
    VLP_CHECK(list_pairs(audit, dataset, &table, counts, threshold));
    VLP_CHECK(count_leaked(audit, dataset));
out:
    vlp_free(counts);
    vlp_free(table.cells);
    return status;
}

/* ---- Distances and references of test ------------------------------------------------------------ */

static vlp_status measure_distances(vlp_audit *audit, const vlp_dataset *dataset) {
    const vlp_triple_list *test = &dataset->splits[VLP_TEST];
    const int32_t last = (int32_t)(sizeof audit->distance / sizeof *audit->distance) - 1;
    int32_t *distance = vlp_alloc((size_t)test->count, sizeof *distance);
    if (!distance) return vlp_fail_memory("distances");
    vlp_status status =
        vlp_distance_pairs(distance, dataset, test->items, test->count, dataset->threads);
    for (int64_t i = 0; status == VLP_OK && i < test->count; i++) {
        if (distance[i] < 0)
            audit->unreachable++;
        else
            audit->distance[distance[i] < last ? distance[i] : last]++;
        audit->linked += distance[i] == 1;
    }
    vlp_free(distance);
    return status;
}

/* The answer of a query from `list`: of the first half the tails, of the second the heads. */
static int32_t gold_answer(const vlp_triple_list *list, int64_t query) {
    return query < list->count ? list->items[query].tail : list->items[query - list->count].head;
}

static void count_copyable(int64_t *copyable, double *mean, const vlp_references *references,
                           const vlp_triple_list *asked, const vlp_triple_list *train) {
    int64_t total = 0;
    for (int64_t query = 0; query < 2 * asked->count; query++) {
        int32_t count, gold = gold_answer(asked, query);
        const vlp_reference *list = vlp_references_get(references, query, &count);
        bool found = false;
        for (int32_t i = 0; i < count && !found; i++) {
            vlp_triple edge = train->items[list[i].edge];
            found = (query < asked->count ? edge.tail : edge.head) == gold;
        }
        *copyable += found;
        total += count;
    }
    *mean = asked->count ? (double)total / (double)(2 * asked->count) : 0;
}

static vlp_status find_copyable(vlp_audit *audit, const vlp_dataset *dataset,
                                const vlp_reference_options *options) {
    vlp_status status = VLP_OK;
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN], *test = &dataset->splits[VLP_TEST];
    vlp_references *references = NULL;
    vlp_query *queries = vlp_alloc((size_t)test->count * 2, sizeof *queries);
    if (!queries) return vlp_fail_memory("queries");
    VLP_CHECK(vlp_references_find(&references, dataset, NULL, 0, options));
    audit->train_queries = 2 * train->count;
    count_copyable(&audit->train_copyable, &audit->train_references, references, train, train);
    vlp_references_free(references);
    references = NULL;
    int32_t relations = vlp_dataset_relation_count(dataset);
    for (int64_t i = 0; i < test->count; i++) {
        vlp_triple triple = test->items[i];
        queries[i] = (vlp_query){triple.head, triple.relation, -1};
        queries[test->count + i] = (vlp_query){triple.tail, triple.relation + relations, -1};
    }
    VLP_CHECK(vlp_references_find(&references, dataset, queries, 2 * test->count, options));
    audit->test_queries = 2 * test->count;
    count_copyable(&audit->test_copyable, &audit->test_references, references, test, train);
out:
    vlp_free(queries);
    vlp_references_free(references);
    return status;
}

vlp_status vlp_audit_run(vlp_audit **out, const vlp_dataset *dataset, const vlp_audit_options *given) {
    *out = NULL;
    vlp_audit_options options = VLP_AUDIT_OPTIONS_INIT;
    if (given) options = *given;
    vlp_status status = VLP_OK;
    vlp_audit *audit = vlp_alloc_zero(1, sizeof *audit);
    if (!audit) return vlp_fail_memory("an audit");
    VLP_CHECK(vlp_dataset_describe(&audit->stats, dataset));
    find_unseen(audit, dataset);
    VLP_CHECK(find_overlaps(audit, dataset));
    VLP_CHECK(compare_relations(audit, dataset, options.threshold));
    VLP_CHECK(measure_distances(audit, dataset));
    VLP_CHECK(find_copyable(audit, dataset, &options.references));
out:
    if (status != VLP_OK) {
        vlp_audit_free(audit);
        return status;
    }
    *out = audit;
    return VLP_OK;
}

void vlp_audit_free(vlp_audit *audit) {
    if (!audit) return;
    vlp_free(audit->pairs);
    vlp_free(audit);
}
