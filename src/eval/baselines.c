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

/* at_least from the scores of the entities listed, the largest of which is `most`; those that are not
 * listed have 0. */
static void count_at_least(int64_t *at_least, int32_t most, const int32_t *scores, const int32_t *listed,
                           int64_t count, const uint8_t *only, int64_t competing) {
    memset(at_least, 0, ((size_t)most + 2) * sizeof *at_least);
    for (int64_t i = 0; i < count; i++) at_least[scores[listed[i]]] += !only || only[listed[i]];
    for (int32_t s = most - 1; s > 0; s--) at_least[s] += at_least[s + 1];
    at_least[0] = competing;
}

/* Numbers 0 .. count - 1 of triples or queries by relation: those of relation r are
 * order[first[r] .. first[r + 1]). */
typedef struct by_relation {
    int64_t *first; /* (relations + 1) */
    int64_t *order; /* (count) */
} by_relation;

static vlp_status order_by_relation(by_relation *out, const int32_t *relation_of, int64_t stride,
                                    int64_t count, int32_t relations) {
    out->first = vlp_alloc_zero((size_t)relations + 2, sizeof *out->first);
    out->order = vlp_alloc((size_t)count, sizeof *out->order);
    if (!out->first || !out->order) return vlp_fail_memory("baselines");
    int64_t *next = out->first + 1;
    for (int64_t i = 0; i < count; i++) next[relation_of[i * stride] + 1]++;
    for (int32_t r = 0; r < relations; r++) next[r + 1] += next[r];
    for (int64_t i = 0; i < count; i++) out->order[next[relation_of[i * stride]]++] = i;
    return VLP_OK;
}

/* What the frequency of answers is counted with. */
typedef struct counting {
    const vlp_dataset *dataset;
    const vlp_filter *filter;
    const uint8_t *only;
    int64_t competing;
    by_relation triples, queries; /* of train; of the split, inverse relations apart */
    vlp_query *asked;             /* (queries) */
    int32_t *answers;             /* (queries) */
    int32_t *scores;              /* (entities), zeros between relations */
    int32_t *listed;              /* (train) the entities whose score is not 0 */
    int64_t *at_least;            /* (train + 2) */
} counting;

/* The queries of one relation, which may be an inverse one. */
static void rank_relation(vlp_rank *out, const counting *work, int32_t relation) {
    const vlp_triple *train = work->dataset->splits[VLP_TRAIN].items;
    int32_t relations = vlp_dataset_relation_count(work->dataset), most = 0;
    bool forward = relation < relations;
    const by_relation *triples = &work->triples, *queries = &work->queries;
    int64_t count = 0;
    for (int64_t i = triples->first[relation % relations]; i < triples->first[relation % relations + 1];
         i++) {
        vlp_triple triple = train[triples->order[i]];
        int32_t answer = forward ? triple.tail : triple.head;
        if (work->scores[answer] == 0) work->listed[count++] = answer;
        if (++work->scores[answer] > most) most = work->scores[answer];
    }
    count_at_least(work->at_least, most, work->scores, work->listed, count, work->only, work->competing);
    for (int64_t i = queries->first[relation]; i < queries->first[relation + 1]; i++) {
        int64_t query = queries->order[i], known_count;
        const int32_t *known =
            vlp_filter_answers(work->filter, work->asked[query].entity, relation, &known_count);
        out[query] = rank_of(work->scores, work->at_least, most, work->answers[query], known,
                             known_count, work->only);
    }
    for (int64_t i = 0; i < count; i++) work->scores[work->listed[i]] = 0;
}

static int64_t count_competing(const uint8_t *only, int32_t entities) {
    int64_t competing = entities;
    for (int32_t e = 0; only && e < entities; e++) competing -= !only[e];
    return competing;
}

vlp_status vlp_baseline_frequency(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                                  const vlp_filter *filter, const uint8_t *only) {
    const vlp_triple_list *train = &dataset->splits[VLP_TRAIN];
    int32_t entities = vlp_dataset_entity_count(dataset),
            relations = vlp_dataset_relation_count(dataset);
    int64_t queries = 2 * dataset->splits[split].count;
    vlp_status status = VLP_OK;
    counting work = {.dataset = dataset,
                     .filter = filter,
                     .only = only,
                     .competing = count_competing(only, entities),
                     .asked = vlp_alloc((size_t)queries, sizeof *work.asked),
                     .answers = vlp_alloc((size_t)queries, sizeof *work.answers),
                     .scores = vlp_alloc_zero((size_t)entities, sizeof *work.scores),
                     .listed = vlp_alloc((size_t)train->count, sizeof *work.listed),
                     .at_least = vlp_alloc((size_t)train->count + 2, sizeof *work.at_least)};
    if (!work.asked || !work.answers || !work.scores || !work.listed || !work.at_least) {
        status = vlp_fail_memory("baselines");
        goto out;
    }
    for (int64_t i = 0; i < queries; i++) work.asked[i] = query_of(dataset, split, i, &work.answers[i]);
    VLP_CHECK(order_by_relation(&work.triples, &train->items->relation,
                                sizeof *train->items / sizeof(int32_t), train->count, relations));
    VLP_CHECK(order_by_relation(&work.queries, &work.asked->relation,
                                sizeof *work.asked / sizeof(int32_t), queries, 2 * relations));
    for (int32_t relation = 0; relation < 2 * relations; relation++) rank_relation(out, &work, relation);
out:
    vlp_free(work.triples.first);
    vlp_free(work.triples.order);
    vlp_free(work.queries.first);
    vlp_free(work.queries.order);
    vlp_free(work.asked);
    vlp_free(work.answers);
    vlp_free(work.scores);
    vlp_free(work.listed);
    vlp_free(work.at_least);
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
    int64_t competing = count_competing(only, entities);
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
