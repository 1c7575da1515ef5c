/* Known answers, as rows of (relation, answer) in ascending order: an answer is found by bisection. */
#include "graph/graph.h"

#include <string.h>

#include <omp.h>

#include "graph/rows.h"

struct vlp_filter {
    int32_t entities, relations;
    int64_t *offset; /* (entities + 1) */
    int32_t *relation, *answer;
};

/* Sorts a row and removes repeated pairs; returns how many remain. */
static int64_t sort_row(vlp_filter *filter, int32_t node, vlp_keyed *items, vlp_keyed *spare) {
    int64_t start = filter->offset[node], count = filter->offset[node + 1] - start;
    for (int64_t i = 0; i < count; i++)
        items[i] = (vlp_keyed){vlp_pair_key(filter->relation[start + i], filter->answer[start + i]), 0};
    vlp_keyed_sort(items, spare, count);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && items[i].key == items[i - 1].key) continue;
        filter->relation[start + kept] = (int32_t)(items[i].key >> 32);
        filter->answer[start + kept] = (int32_t)(uint32_t)items[i].key;
        kept++;
    }
    return kept;
}

/* Sorts all rows and closes the gaps left by removed pairs. */
static vlp_status sort_rows(vlp_filter *filter, int threads) {
    size_t longest = (size_t)vlp_rows_longest(filter->offset, filter->entities);
    vlp_keyed *buffer = vlp_alloc((size_t)threads * 2 * longest, sizeof *buffer);
    int64_t *kept = vlp_alloc((size_t)filter->entities, sizeof *kept);
    vlp_status status = VLP_OK;
    if (!buffer || !kept) {
        status = vlp_fail_memory("sorting known answers");
        goto out;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024) if (filter->entities > 4096)
    for (int32_t node = 0; node < filter->entities; node++) {
        vlp_keyed *items = buffer + (size_t)omp_get_thread_num() * 2 * longest;
        kept[node] = sort_row(filter, node, items, items + longest);
    }
    int64_t end = 0;
    for (int32_t node = 0; node < filter->entities; node++) {
        int64_t start = filter->offset[node];
        if (end < start) {
            memmove(filter->relation + end, filter->relation + start, (size_t)kept[node] * 4);
            memmove(filter->answer + end, filter->answer + start, (size_t)kept[node] * 4);
        }
        filter->offset[node] = end;
        end += kept[node];
    }
    filter->offset[filter->entities] = end;
out:
    vlp_free(buffer);
    vlp_free(kept);
    return status;
}

static void put(vlp_filter *filter, int32_t node, int32_t relation, int32_t answer) {
    int64_t slot = filter->offset[node]++;
    filter->relation[slot] = relation;
    filter->answer[slot] = answer;
}

vlp_status vlp_filter_build(vlp_filter **out, const vlp_triple *const *lists, const int64_t *counts,
                            int list_count, int32_t entities, int32_t relations, int32_t threads) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_filter *filter = vlp_alloc_zero(1, sizeof *filter);
    if (!filter) return vlp_fail_memory("known answers");
    filter->entities = entities;
    filter->relations = relations;
    filter->offset = vlp_alloc_zero((size_t)entities + 1, sizeof *filter->offset);
    int64_t total = 0;
    for (int list = 0; list < list_count; list++) total += counts[list];
    filter->relation = vlp_alloc(2 * (size_t)total, sizeof *filter->relation);
    filter->answer = vlp_alloc(2 * (size_t)total, sizeof *filter->answer);
    if (!filter->offset || !filter->relation || !filter->answer) {
        status = vlp_fail_memory("known answers");
        goto out;
    }
    for (int list = 0; list < list_count; list++)
        for (int64_t i = 0; i < counts[list]; i++) {
            filter->offset[lists[list][i].head + 1]++;
            filter->offset[lists[list][i].tail + 1]++;
        }
    vlp_rows_accumulate(filter->offset, entities);
    for (int list = 0; list < list_count; list++)
        for (int64_t i = 0; i < counts[list]; i++) {
            vlp_triple triple = lists[list][i];
            put(filter, triple.head, triple.relation, triple.tail);
            put(filter, triple.tail, triple.relation + relations, triple.head);
        }
    memmove(filter->offset + 1, filter->offset, (size_t)entities * sizeof *filter->offset);
    filter->offset[0] = 0;
    VLP_CHECK(sort_rows(filter, vlp_thread_count(threads)));
out:
    if (status != VLP_OK) {
        vlp_filter_free(filter);
        return status;
    }
    *out = filter;
    return VLP_OK;
}

void vlp_filter_free(vlp_filter *filter) {
    if (!filter) return;
    vlp_free(filter->offset);
    vlp_free(filter->relation);
    vlp_free(filter->answer);
    vlp_free(filter);
}

/* The first slot of the row that is at least (relation, answer). */
static int64_t lower_bound(const vlp_filter *filter, int32_t entity, int32_t relation, int32_t answer) {
    int64_t low = filter->offset[entity], high = filter->offset[entity + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (filter->relation[middle] < relation ||
            (filter->relation[middle] == relation && filter->answer[middle] < answer))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_query(const vlp_filter *filter, int32_t entity, int32_t relation) {
    return filter && entity >= 0 && entity < filter->entities && relation >= 0 &&
           relation < 2 * filter->relations;
}

const int32_t *vlp_filter_answers(const vlp_filter *filter, int32_t entity, int32_t relation,
                                  int64_t *count) {
    if (count) *count = 0;
    if (!is_query(filter, entity, relation)) return NULL;
    int64_t first = lower_bound(filter, entity, relation, 0);
    if (count) *count = lower_bound(filter, entity, relation + 1, 0) - first;
    return filter->answer + first;
}

const int32_t *vlp_filter_list(const vlp_filter *filter, int64_t *count) {
    *count = filter->offset[filter->entities];
    return filter->answer;
}

bool vlp_filter_has(const vlp_filter *filter, int32_t entity, int32_t relation, int32_t answer) {
    if (!is_query(filter, entity, relation)) return false;
    int64_t slot = lower_bound(filter, entity, relation, answer);
    return slot < filter->offset[entity + 1] && filter->relation[slot] == relation &&
           filter->answer[slot] == answer;
}
