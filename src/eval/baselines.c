#include "eval/baselines.h"

#include <string.h>

#include "graph/reference.h"

/* A query of the split: as in evaluate.c, the first half asks for tails. */
static vlp_query query_of(const vlp_dataset *dataset, vlp_split split, int64_t index, int32_t *answer) {
    const vlp_triple_list *triples = &dataset->splits[split];
    bool forward = index < triples->count;
    vlp_triple triple = triples->items[forward ? index : index - triples->count];
    *answer = forward ? triple.tail : triple.head;
    return forward ? (vlp_query){triple.head, triple.relation, -1}
                   : (vlp_query){triple.tail, triple.relation + vlp_dataset_relation_count(dataset), -1};
}

/* The rank of `answer` where scores are small counts: at_least[s] of those that compete have a score of
 * s or more. Known answers other than the gold one do not compete. */
static vlp_rank rank_of(const int32_t *scores, const int64_t *at_least, int32_t most, int32_t answer,
                        const int32_t *known, int64_t known_count, const uint8_t *only) {
    int32_t gold = scores[answer];
    bool outside = only && !only[answer]; /* a candidate all the same */
    int64_t above = gold < most ? at_least[gold + 1] : 0;
    int64_t equal = at_least[gold] - above - !outside, candidates = at_least[0] + outside;
    for (int64_t i = 0; i < known_count; i++) {
        if (known[i] == answer || (only && !only[known[i]])) continue;
        above -= scores[known[i]] > gold;
        equal -= scores[known[i]] == gold;
        candidates--;
    }
    return (vlp_rank){(int32_t)above, (int32_t)equal, (int32_t)candidates};
}

/* at_least from scores; `most` is the largest score. */
static void count_at_least(int64_t *at_least, int32_t most, const int32_t *scores, int32_t entities,
                           const uint8_t *only) {
    memset(at_least, 0, ((size_t)most + 2) * sizeof *at_least);
    for (int32_t e = 0; e < entities; e++) at_least[scores[e]] += !only || only[e];
    for (int32_t s = most - 1; s >= 0; s--) at_least[s] += at_least[s + 1];
}

vlp_status vlp_baseline_frequency(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                                  const vlp_filter *filter, const uint8_t *only) {
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN];
    int32_t entities = vlp_dataset_entity_count(dataset),
            relations = vlp_dataset_relation_count(dataset);
    int64_t queries = 2 * dataset->splits[split].count;
    int32_t *scores = vlp_alloc((size_t)entities, sizeof *scores);
    int64_t *at_least = vlp_alloc((size_t)train->count + 2, sizeof *at_least);
    vlp_status status = scores && at_least ? VLP_OK : vlp_fail_memory("baselines");
    for (int32_t relation = 0; status == VLP_OK && relation < 2 * relations; relation++) {
        int32_t most = 0;
        memset(scores, 0, (size_t)entities * sizeof *scores);
        for (int64_t i = 0; i < train->count; i++) {
            if (train->items[i].relation != relation % relations) continue;
            int32_t answer = relation < relations ? train->items[i].tail : train->items[i].head;
            if (++scores[answer] > most) most = scores[answer];
        }
        count_at_least(at_least, most, scores, entities, only);
        for (int64_t i = 0; i < queries; i++) {
            int32_t answer;
            vlp_query query = query_of(dataset, split, i, &answer);
            if (query.relation != relation) continue;
            int64_t known_count;
            const int32_t *known = vlp_filter_answers(filter, query.entity, relation, &known_count);
            out[i] = rank_of(scores, at_least, most, answer, known, known_count, only);
        }
    }
    vlp_free(scores);
    vlp_free(at_least);
    return status;
}

vlp_status vlp_baseline_vote(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                             const vlp_filter *filter, const uint8_t *only, int32_t references,
                             int32_t per_head, int32_t threads) {
    int32_t entities = vlp_dataset_entity_count(dataset),
            relations = vlp_dataset_relation_count(dataset);
    int64_t queries = 2 * dataset->splits[split].count;
    vlp_status status = VLP_OK;
    vlp_references *found = NULL;
    vlp_query *asked = vlp_alloc((size_t)queries, sizeof *asked);
    int32_t *answers = vlp_alloc((size_t)queries, sizeof *answers);
    int32_t *scores = vlp_alloc_zero((size_t)entities, sizeof *scores);
    int64_t *at_least = vlp_alloc((size_t)references + 2, sizeof *at_least);
    if (!asked || !answers || !scores || !at_least) {
        status = vlp_fail_memory("baselines");
        goto out;
    }
    int64_t competing = entities;
    for (int32_t e = 0; only && e < entities; e++) competing -= !only[e];
    for (int64_t i = 0; i < queries; i++) asked[i] = query_of(dataset, split, i, &answers[i]);
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = references;
    options.per_head = per_head;
    options.threads = threads;
    VLP_CHECK(vlp_graph_references(&found, dataset->graph, asked, queries, &options));
    for (int64_t i = 0; i < queries; i++) {
        int32_t count;
        const vlp_reference *list = vlp_references_get(found, i, &count);
        memset(at_least, 0, ((size_t)references + 2) * sizeof *at_least);
        at_least[0] = competing;
        for (int32_t j = 0; j < count; j++) {
            vlp_triple edge = dataset->splits[VLP_TRAIN].items[list[j].edge];
            int32_t answer = asked[i].relation < relations ? edge.tail : edge.head;
            /* One more vote lifts the entity over one more threshold. */
            at_least[++scores[answer]] += !only || only[answer];
        }
        int64_t known_count;
        const int32_t *known =
            vlp_filter_answers(filter, asked[i].entity, asked[i].relation, &known_count);
        out[i] = rank_of(scores, at_least, references, answers[i], known, known_count, only);
        for (int32_t j = 0; j < count; j++) {
            vlp_triple edge = dataset->splits[VLP_TRAIN].items[list[j].edge];
            scores[asked[i].relation < relations ? edge.tail : edge.head] = 0;
        }
    }
out:
    vlp_references_free(found);
    vlp_free(asked);
    vlp_free(answers);
    vlp_free(scores);
    vlp_free(at_least);
    return status;
}
