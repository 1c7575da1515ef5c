/* Removing repeated triples, by sorting the triples of each head entity. While a file is read, an
 * estimate decides when to do so, so that memory grows with the number of distinct triples. */
#include <string.h>

#include <omp.h>

#include "graph/reader.h"
#include "graph/rows.h"

/* Marks in `repeated` all triples of a head entity that equal an earlier one; returns their count. */
static int64_t mark_repeated(uint8_t *repeated, const vlp_triple *triples, const int32_t *row,
                             int64_t count, vlp_keyed *items, vlp_keyed *spare) {
    for (int64_t i = 0; i < count; i++)
        items[i] = (vlp_keyed){vlp_pair_key(triples[row[i]].relation, triples[row[i]].tail), row[i]};
    vlp_keyed_sort(items, spare, count);
    int64_t found = 0;
    for (int64_t i = 1; i < count; i++)
        if (items[i].key == items[i - 1].key) {
            repeated[items[i].value] = 1;
            found++;
        }
    return found;
}

vlp_status vlp_triple_list_unique(vlp_triple_list *list, int64_t *dropped, int32_t entities,
                                  int32_t requested) {
    *dropped = 0;
    int threads = vlp_thread_count(requested);
    vlp_status status = VLP_OK;
    vlp_keyed *buffer = NULL;
    size_t count = (size_t)list->count;
    int64_t *offset = vlp_alloc_zero((size_t)entities + 1, sizeof *offset);
    int32_t *rows = vlp_alloc(count, sizeof *rows);
    uint8_t *repeated = vlp_alloc_zero(count, 1);
    if (!offset || !rows || !repeated) {
        status = vlp_fail_memory("finding repeated triples");
        goto out;
    }
    for (size_t i = 0; i < count; i++) offset[list->items[i].head + 1]++;
    vlp_rows_accumulate(offset, entities);
    for (size_t i = 0; i < count; i++) rows[offset[list->items[i].head]++] = (int32_t)i;
    memmove(offset + 1, offset, (size_t)entities * sizeof *offset);
    offset[0] = 0;
    size_t longest = (size_t)vlp_rows_longest(offset, entities);
    buffer = vlp_alloc((size_t)threads * 2 * longest, sizeof *buffer);
    if (!buffer) {
        status = vlp_fail_memory("finding repeated triples");
        goto out;
    }
    int64_t found = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024) reduction(+ : found) if (count > 10000)
    for (int32_t head = 0; head < entities; head++) {
        vlp_keyed *items = buffer + (size_t)omp_get_thread_num() * 2 * longest;
        found += mark_repeated(repeated, list->items, rows + offset[head],
                               offset[head + 1] - offset[head], items, items + longest);
    }
    *dropped = found;
    if (found > 0) {
        int64_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (!repeated[i]) list->items[kept++] = list->items[i];
        list->count = kept;
    }
out:
    vlp_free(offset);
    vlp_free(rows);
    vlp_free(repeated);
    vlp_free(buffer);
    return status;
}

/* ---- While reading ------------------------------------------------------------------------------- */

enum {
    COMPACT_FROM = 1 << 20, /* triples; shorter lists are not checked */
    SAMPLE_BITS = 6         /* 1/64 of the distinct triples are in the sample */
};

/* The finalizer of splitmix64. */
static uint64_t triple_hash(vlp_triple triple) {
    uint64_t value =
        vlp_pair_key(triple.head, triple.tail) + (uint64_t)triple.relation * 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* Whether an estimated quarter of the list repeats earlier triples. The sample selects triples by
 * their hash: it contains all copies of a triple or none. So 64 times the number of distinct triples
 * in the sample estimates the distinct ones of the list, however they are repeated. A wrong estimate
 * costs memory or time but does not change the result. */
static bool is_repetitive(const vlp_triple_list *list) {
    int64_t enough = list->count / 4 * 3 >> SAMPLE_BITS, distinct = 0;
    uint64_t slots = 64;
    while (slots < 2 * (uint64_t)enough) slots *= 2;
    uint64_t *seen = vlp_alloc_zero(slots, sizeof *seen); /* open addressing; 0: free */
    if (!seen) return false;
    for (int64_t i = 0; i < list->count && distinct <= enough; i++) {
        uint64_t hash = triple_hash(list->items[i]);
        if (hash >> (64 - SAMPLE_BITS) != 1) continue; /* so no hash in the sample is 0 */
        uint64_t place = hash & (slots - 1);
        while (seen[place] && seen[place] != hash) place = (place + 1) & (slots - 1);
        distinct += !seen[place];
        seen[place] = hash;
    }
    vlp_free(seen);
    return distinct <= enough;
}

vlp_status vlp_triple_list_reserve(vlp_triple_list *list, int64_t *dropped, int64_t more,
                                   int32_t entities, int32_t threads) {
    int64_t needed = list->count + more;
    if (needed <= list->capacity) return VLP_OK;
    if (list->count >= COMPACT_FROM && is_repetitive(list)) {
        int64_t found;
        VLP_TRY(vlp_triple_list_unique(list, &found, entities, threads));
        *dropped += found;
        needed = list->count + more;
        /* Keep at least a quarter free, so that the cost per triple stays constant. */
        if (needed <= list->capacity && needed > list->capacity / 4 * 3) needed = list->capacity + 1;
    }
    return vlp_grow(&list->items, &list->capacity, needed, sizeof *list->items, "triples");
}
