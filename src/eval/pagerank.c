#include "eval/pagerank.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 8 /* sources that are iterated together */,
    BLOCKS = 16 /* of lanes, between two reports */
};

/* ---- Power iteration ----------------------------------------------------------------------------- */

/* One step for LANES sources: next = restart * source + (1 - restart) * what comes over the edges.
 * now, next: (entities, LANES). Returns the largest change of a lane. */
static double step(double *next, const double *now, const double *share, const vlp_graph *graph,
                   const int32_t *sources) {
    double stranded[LANES] = {0}, changes[LANES] = {0}, largest = 0;
    for (int32_t e = 0; e < graph->entities; e++)
        for (int i = 0; i < LANES && share[e] == 0; i++) stranded[i] += now[(int64_t)e * LANES + i];
    for (int32_t e = 0; e < graph->entities; e++) {
        double sum[LANES] = {0};
        for (int64_t slot = graph->offset[e]; slot < graph->offset[e + 1]; slot++) {
            const double *from = now + (int64_t)graph->neighbor[slot] * LANES;
            double part = share[graph->neighbor[slot]];
            for (int i = 0; i < LANES; i++) sum[i] += part * from[i];
        }
        for (int i = 0; i < LANES; i++)
            next[(int64_t)e * LANES + i] = (1 - VLP_PAGERANK_RESTART) * sum[i];
    }
    for (int i = 0; i < LANES; i++)
        next[(int64_t)sources[i] * LANES + i] +=
            VLP_PAGERANK_RESTART + (1 - VLP_PAGERANK_RESTART) * stranded[i];
    for (int64_t j = 0; j < (int64_t)graph->entities * LANES; j++)
        changes[j % LANES] += fabs(next[j] - now[j]);
    for (int i = 0; i < LANES; i++) largest = fmax(largest, changes[i]);
    return largest;
}

/* work: (2, entities, LANES). Writes the rows of `count` <= LANES sources. */
static void iterate(double *out, double *work, const double *share, const vlp_graph *graph,
                    const int32_t *given, int64_t count) {
    int64_t cells = (int64_t)graph->entities * LANES;
    double *now = work, *next = work + cells;
    int32_t sources[LANES];
    for (int i = 0; i < LANES; i++) sources[i] = given[i < count ? i : 0];
    memset(now, 0, (size_t)cells * sizeof *now);
    for (int i = 0; i < LANES; i++) now[(int64_t)sources[i] * LANES + i] = 1;
    for (bool more = true; more;) {
        more = step(next, now, share, graph, sources) >= VLP_PAGERANK_TOLERANCE;
        double *last = now;
        now = next;
        next = last;
    }
    for (int64_t i = 0; i < count; i++)
        for (int32_t e = 0; e < graph->entities; e++)
            out[i * graph->entities + e] = now[(int64_t)e * LANES + i];
}

vlp_status vlp_pagerank(double *out, const vlp_graph *graph, const int32_t *sources, int64_t count,
                        int32_t threads) {
    int workers = vlp_thread_count(threads);
    int64_t cells = (int64_t)graph->entities * LANES, blocks = (count + LANES - 1) / LANES;
    double *work = vlp_alloc(2 * (size_t)workers * (size_t)cells, sizeof *work);
    double *share = vlp_alloc((size_t)graph->entities, sizeof *share);
    vlp_status status = work && share ? VLP_OK : vlp_fail_memory("PageRank");
    if (status == VLP_OK) {
        for (int32_t e = 0; e < graph->entities; e++) {
            int64_t degree = vlp_graph_degree(graph, e);
            share[e] = degree > 0 ? 1.0 / (double)degree : 0;
        }
#pragma omp parallel for num_threads(workers) schedule(static, 1)
        for (int worker = 0; worker < workers; worker++)
            for (int64_t block = worker; block < blocks; block += workers) {
                int64_t first = block * LANES;
                iterate(out + first * graph->entities, work + 2 * worker * cells, share, graph,
                        sources + first, count - first < LANES ? count - first : LANES);
            }
    }
    vlp_free(work);
    vlp_free(share);
    return status;
}

/* ---- Ranks --------------------------------------------------------------------------------------- */

/* The rank of `answer` where candidates are scored by a row of probabilities. */
static vlp_rank rank_of(const double *scores, int32_t entities, int32_t self, int32_t answer,
                        const int32_t *known, int64_t known_count, const uint8_t *only) {
    vlp_rank rank = {0, 0, 1};
    double gold = answer == self ? 0 : scores[answer];
    for (int32_t e = 0; e < entities; e++) {
        if (e == answer || (only && !only[e])) continue;
        double score = e == self ? 0 : scores[e];
        rank.candidates++;
        rank.above += score > gold;
        rank.equal += score == gold;
    }
    for (int64_t i = 0; i < known_count; i++) {
        if (known[i] == answer || (only && !only[known[i]])) continue;
        double score = known[i] == self ? 0 : scores[known[i]];
        rank.candidates--;
        rank.above -= score > gold;
        rank.equal -= score == gold;
    }
    return rank;
}

/* What is asked about an entity: (e, r, ?) for its triples as head, (e, r inverse, ?) as tail. */
typedef struct asked_of {
    int64_t *offset; /* (entities + 1) into query */
    int64_t *query;  /* (2 * triples) numbers of queries */
} asked_of;

static int32_t source_of(const vlp_triple_list *triples, int64_t query) {
    return query < triples->count ? triples->items[query].head
                                  : triples->items[query - triples->count].tail;
}

static vlp_status group_queries(asked_of *out, const vlp_triple_list *triples, int32_t entities) {
    out->offset = vlp_alloc_zero((size_t)entities + 2, sizeof *out->offset);
    out->query = vlp_alloc(2 * (size_t)triples->count, sizeof *out->query);
    if (!out->offset || !out->query) return vlp_fail_memory("PageRank");
    int64_t *next = out->offset + 1; /* becomes the ends */
    for (int64_t i = 0; i < 2 * triples->count; i++) next[source_of(triples, i) + 1]++;
    for (int32_t e = 0; e < entities; e++) next[e + 1] += next[e];
    for (int64_t i = 0; i < 2 * triples->count; i++) out->query[next[source_of(triples, i)]++] = i;
    return VLP_OK;
}

/* Ranks the queries about one entity. */
static void rank_queries(vlp_rank *out, const double *scores, int32_t source, const asked_of *asked,
                         const vlp_dataset *dataset, const vlp_triple_list *triples,
                         const vlp_filter *filter, const uint8_t *only) {
    int32_t entities = vlp_dataset_entity_count(dataset),
            relations = vlp_dataset_relation_count(dataset);
    for (int64_t i = asked->offset[source]; i < asked->offset[source + 1]; i++) {
        int64_t query = asked->query[i], known_count;
        bool forward = query < triples->count;
        vlp_triple triple = triples->items[forward ? query : query - triples->count];
        const int32_t *known = vlp_filter_answers(
            filter, source, forward ? triple.relation : triple.relation + relations, &known_count);
        out[query] = rank_of(scores, entities, source, forward ? triple.tail : triple.head, known,
                             known_count, only);
    }
}

vlp_status vlp_baseline_pagerank(vlp_rank *out, const vlp_dataset *dataset, vlp_split split,
                                 const vlp_filter *filter, const uint8_t *only,
                                 const vlp_observer *observer) {
    const vlp_triple_list *triples = &dataset->splits[split];
    int32_t entities = vlp_dataset_entity_count(dataset), used = 0;
    enum { CHUNK = LANES * BLOCKS };
    vlp_status status = VLP_OK;
    asked_of asked = {0};
    int32_t *sources = vlp_alloc((size_t)entities, sizeof *sources);
    double *scores = vlp_alloc((size_t)CHUNK * (size_t)entities, sizeof *scores);
    if (!sources || !scores) {
        status = vlp_fail_memory("PageRank");
        goto out;
    }
    VLP_CHECK(group_queries(&asked, triples, entities));
    for (int32_t e = 0; e < entities; e++)
        if (asked.offset[e + 1] > asked.offset[e]) sources[used++] = e;
    for (int32_t start = 0; start < used; start += CHUNK) {
        int32_t count = used - start < CHUNK ? used - start : CHUNK;
        VLP_CHECK(vlp_pagerank(scores, dataset->graph, sources + start, count, dataset->threads));
        for (int32_t i = 0; i < count; i++)
            rank_queries(out, scores + (int64_t)i * entities, sources[start + i], &asked, dataset,
                         triples, filter, only);
        vlp_progress(observer, "entities", start + count, used);
        if (vlp_stopped(observer)) {
            status = vlp_fail_stopped();
            goto out;
        }
    }
out:
    vlp_free(sources);
    vlp_free(scores);
    vlp_free(asked.offset);
    vlp_free(asked.query);
    return status;
}
