/* Choosing references. For a query (h, r) the nodes of a walk from h are visited level by level. Nodes
 * with edges of relation r are candidates; the best candidates of a level (largest mass, then file
 * order) fill the remaining places of the N references. A level is scanned by its nodes or by the
 * nodes of r, whichever are fewer. Where ties are broken at random, a random number of the query and the
 * edge takes the place of the mass; random references need no walk. */
#include "graph/reference.h"

#include <string.h>

#include <omp.h>

#include "base/options.h"
#include "base/random.h"
#include "graph/rows.h"
#include "graph/walk.h"

struct vlp_references {
    int64_t queries;
    int32_t capacity;     /* N */
    vlp_reference *items; /* (queries, capacity) */
    int32_t *counts;      /* (queries) */
};

/* ---- The nodes of a relation --------------------------------------------------------------------- */

typedef struct relation_group {
    int32_t node;
    int32_t count;
    int64_t first; /* slot */
} relation_group;

typedef struct relation_index {
    int64_t *offset; /* (2 * relations + 1) */
    relation_group *groups;
} relation_index;

/* The end of the run of slots with the same relation that begins at `slot`. */
static int64_t run_end(const vlp_graph *graph, int32_t node, int64_t slot) {
    int64_t end = slot + 1;
    while (end < graph->offset[node + 1] && graph->relation[end] == graph->relation[slot]) end++;
    return end;
}

static void index_free(relation_index *index) {
    vlp_free(index->offset);
    vlp_free(index->groups);
    *index = (relation_index){0};
}

static vlp_status index_new(relation_index *index, const vlp_graph *graph) {
    int32_t relations = 2 * graph->relations;
    *index = (relation_index){0};
    index->offset = vlp_alloc_zero((size_t)relations + 1, sizeof *index->offset);
    if (!index->offset) return vlp_fail_memory("the search for references");
    for (int32_t node = 0; node < graph->entities; node++)
        for (int64_t slot = graph->offset[node], end; slot < graph->offset[node + 1]; slot = end) {
            end = run_end(graph, node, slot);
            index->offset[graph->relation[slot] + 1]++;
        }
    vlp_rows_accumulate(index->offset, relations);
    index->groups = vlp_alloc((size_t)index->offset[relations], sizeof *index->groups);
    if (!index->groups) {
        index_free(index);
        return vlp_fail_memory("the search for references");
    }
    for (int32_t node = 0; node < graph->entities; node++)
        for (int64_t slot = graph->offset[node], end; slot < graph->offset[node + 1]; slot = end) {
            end = run_end(graph, node, slot);
            index->groups[index->offset[graph->relation[slot]]++] =
                (relation_group){node, (int32_t)(end - slot), slot};
        }
    memmove(index->offset + 1, index->offset, (size_t)relations * sizeof *index->offset);
    index->offset[0] = 0;
    return VLP_OK;
}

/* The edges of each relation in the order of the file, for random references. */
typedef struct edge_index {
    int64_t *offset; /* (relations + 1) */
    int32_t *edges;  /* (edges) */
} edge_index;

static void edge_index_free(edge_index *index) {
    vlp_free(index->offset);
    vlp_free(index->edges);
    *index = (edge_index){0};
}

static vlp_status edge_index_new(edge_index *index, const vlp_graph *graph) {
    index->offset = vlp_alloc_zero((size_t)graph->relations + 1, sizeof *index->offset);
    index->edges = vlp_alloc((size_t)graph->edges, sizeof *index->edges);
    if (!index->offset || !index->edges) {
        edge_index_free(index);
        return vlp_fail_memory("the search for references");
    }
    for (int64_t i = 0; i < graph->edges; i++) index->offset[graph->triples[i].relation + 1]++;
    vlp_rows_accumulate(index->offset, graph->relations);
    for (int64_t i = 0; i < graph->edges; i++)
        index->edges[index->offset[graph->triples[i].relation]++] = (int32_t)i;
    memmove(index->offset + 1, index->offset, (size_t)graph->relations * sizeof *index->offset);
    index->offset[0] = 0;
    return VLP_OK;
}

/* ---- The best of a level ------------------------------------------------------------------------- */

typedef struct candidate {
    uint64_t mass;
    int32_t edge;
} candidate;

/* The best `capacity` candidates so far, best first. */
typedef struct selection {
    candidate *items;
    int32_t count, capacity;
} selection;

static bool better(candidate left, candidate right) {
    return left.mass != right.mass ? left.mass > right.mass : left.edge < right.edge;
}

/* False if it is not among the best. */
static bool offer(selection *chosen, candidate item) {
    if (chosen->count == chosen->capacity) {
        if (!better(item, chosen->items[chosen->count - 1])) return false;
        chosen->count--;
    }
    int32_t place = chosen->count++;
    for (; place > 0 && better(item, chosen->items[place - 1]); place--)
        chosen->items[place] = chosen->items[place - 1];
    chosen->items[place] = item;
    return true;
}

/* ---- One query ----------------------------------------------------------------------------------- */

/* The working memory of a thread. */
typedef struct seeker {
    const vlp_graph *graph;
    const relation_index *index;
    const edge_index *edges; /* filled where the rule asks for random references */
    const vlp_reference_options *options;
    const vlp_reference_rule *rule;
    vlp_walk walk;
    candidate *candidates; /* (options->count) */
} seeker;

/* A random number of a query and one of its edges, or of its draws. */
static vlp_random4 random_of(const seeker *find, const vlp_query *query, int64_t index) {
    uint64_t key = (uint64_t)query->entity << 32 | (uint32_t)query->relation;
    return vlp_random(find->rule->seed, VLP_STREAM_REFERENCES, key, (uint32_t)index);
}

/* The same where ties are broken at random: all edges of the level are ties. */
static void offer_group_random(const seeker *find, selection *chosen, const vlp_query *query,
                               int64_t first, int64_t count) {
    for (int64_t slot = first; slot < first + count; slot++) {
        int32_t edge = find->graph->edge[slot];
        if (edge == query->left_out) continue;
        vlp_random4 bits = random_of(find, query, edge);
        offer(chosen, (candidate){(uint64_t)bits.v[0] << 32 | bits.v[1], edge});
    }
}

/* Offers at most `cap` edges of a node, in the order of the file. */
static void offer_group(const seeker *find, selection *chosen, const vlp_query *query, int64_t first,
                        int64_t count, uint64_t mass, int32_t cap) {
    int32_t taken = 0;
    if (find->rule->choice == VLP_REFERENCES_NEAREST_RANDOM) {
        offer_group_random(find, chosen, query, first, count);
        return;
    }
    for (int64_t slot = first; slot < first + count && taken < cap; slot++) {
        int32_t edge = find->graph->edge[slot];
        if (edge == query->left_out) continue;
        /* Later edges of the node have the same mass and are later in the file: they are not among the
         * best either. */
        if (!offer(chosen, (candidate){mass, edge})) return;
        taken++;
    }
}

/* Offers the edges of the query's relation of those nodes of a list that are at `level`. */
static int64_t offer_nodes(const seeker *find, selection *chosen, const vlp_query *query, int32_t level,
                           int32_t cap, const int32_t *nodes, int32_t count) {
    int64_t groups = 0;
    for (int32_t i = 0; i < count; i++) {
        const vlp_walk_node *state = vlp_walk_node_at(&find->walk, nodes[i]);
        if (state->level != level) continue;
        int64_t size, first = vlp_graph_slots(find->graph, nodes[i], query->relation, &size);
        if (size == 0) continue;
        groups++;
        offer_group(find, chosen, query, first, size, state->mass, cap);
    }
    return groups;
}

/* The same, by scanning the nodes of the relation. */
static int64_t offer_relation(const seeker *find, selection *chosen, const vlp_query *query,
                              int32_t level, int32_t cap) {
    int64_t groups = 0;
    for (int64_t i = find->index->offset[query->relation]; i < find->index->offset[query->relation + 1];
         i++) {
        const relation_group *group = &find->index->groups[i];
        const vlp_walk_node *state = vlp_walk_node_at(&find->walk, group->node);
        if (state->level != level) continue;
        groups++;
        offer_group(find, chosen, query, group->first, group->count, state->mass, cap);
    }
    return groups;
}

/* Offers the edges of a level; returns how many nodes have edges of the relation. */
static int64_t offer_level(const seeker *find, selection *chosen, const vlp_query *query,
                           int32_t level) {
    int32_t cap = level > 0 && find->options->per_head > 0 ? find->options->per_head : INT32_MAX;
    int32_t count;
    const int32_t *nodes = vlp_walk_level(&find->walk, level, &count);
    int64_t with_relation =
        find->index->offset[query->relation + 1] - find->index->offset[query->relation];
    /* A binary search for a node costs about four times as much as scanning one. */
    if (with_relation < 4 * (int64_t)count) return offer_relation(find, chosen, query, level, cap);
    int64_t groups = offer_nodes(find, chosen, query, level, cap, nodes, count);
    if (level > 0)
        groups += offer_nodes(find, chosen, query, level, cap, find->walk.arrived.items,
                              find->walk.arrived.count);
    return groups;
}

static bool contains(const vlp_reference *items, int32_t count, int32_t edge) {
    for (int32_t i = 0; i < count; i++)
        if (items[i].edge == edge) return true;
    return false;
}

/* Edges of the relation without the left-out one, each subset of N with the same probability (Floyd's
 * algorithm: draw number i is among the first i of them, or that one where it was drawn before). */
static int32_t find_random(const seeker *find, const vlp_query *query, vlp_reference *out) {
    int32_t relation = query->relation % find->graph->relations, found = 0;
    const int32_t *edges = find->edges->edges + find->edges->offset[relation];
    int64_t count = find->edges->offset[relation + 1] - find->edges->offset[relation], left_out = count;
    if (query->left_out >= 0 && find->graph->triples[query->left_out].relation == relation) {
        int64_t low = 0;
        for (int64_t high = count - 1; low < high;) {
            int64_t middle = (low + high) / 2;
            if (edges[middle] < query->left_out)
                low = middle + 1;
            else
                high = middle;
        }
        left_out = low;
        count--;
    }
    int64_t first = count > find->options->count ? count - find->options->count : 0;
    for (int64_t i = first; i < count; i++) {
        vlp_random4 bits = random_of(find, query, i);
        int64_t drawn = vlp_random_below(bits.v[0], bits.v[1], (uint32_t)(i + 1));
        int32_t edge = edges[drawn + (drawn >= left_out)];
        if (contains(out, found, edge)) edge = edges[i + (i >= left_out)];
        out[found++] = (vlp_reference){edge, -1};
    }
    return found;
}

/* The references of one query; returns how many. */
static int32_t find_one(seeker *find, const vlp_query *query, vlp_reference *out) {
    if (find->rule->choice == VLP_REFERENCES_RANDOM) return find_random(find, query, out);
    int64_t groups_left =
        find->index->offset[query->relation + 1] - find->index->offset[query->relation];
    if (groups_left == 0) return 0;
    /* An entity without slots has no edges, and no node is near it. */
    int64_t without = find->rule->own_edge ? -1 : query->left_out;
    if (!vlp_walk_start(&find->walk, query->entity, without)) return 0;
    int32_t found = 0;
    for (int32_t level = 0; level <= find->options->max_distance && groups_left > 0; level++) {
        if (!vlp_walk_advance(&find->walk, level)) break;
        selection chosen = {find->candidates, 0, find->options->count - found};
        groups_left -= offer_level(find, &chosen, query, level);
        for (int32_t i = 0; i < chosen.count; i++)
            out[found++] = (vlp_reference){chosen.items[i].edge, level};
        if (found == find->options->count) break;
    }
    return found;
}

/* ---- Many queries -------------------------------------------------------------------------------- */

/* Queries grouped by entity: `order` is (entity, index), sorted; NULL for all training queries, which
 * the rows of the graph already group. */
typedef struct job {
    const vlp_graph *graph;
    const vlp_query *queries;
    const vlp_keyed *order;
    const int64_t *group; /* (groups + 1) into order, or into the slots of the graph */
    int64_t groups;
    vlp_references *out;
} job;

/* The query at `place` of a group, and the index of its result. */
static vlp_query query_at(const job *work, int64_t group, int64_t place, int64_t *index) {
    if (work->queries) {
        *index = work->order[place].value;
        return work->queries[*index];
    }
    const vlp_graph *graph = work->graph;
    int32_t relation = graph->relation[place], edge = graph->edge[place];
    *index = relation < graph->relations ? edge : graph->edges + edge;
    return (vlp_query){(int32_t)group, relation, edge};
}

/* Groups of queries that share a walk: those whose left-out edge has the same number of slots at the
 * entity. */
static int walk_kind(const vlp_graph *graph, const vlp_query *query) {
    if (query->left_out < 0) return 0;
    vlp_triple edge = graph->triples[query->left_out];
    bool touches = edge.head == query->entity || edge.tail == query->entity;
    return touches && edge.head != edge.tail ? 1 : 2;
}

static void find_group(const job *work, seeker *find, int64_t group) {
    for (int kind = 0; kind < 3; kind++)
        for (int64_t place = work->group[group]; place < work->group[group + 1]; place++) {
            int64_t index;
            vlp_query query = query_at(work, group, place, &index);
            if (walk_kind(work->graph, &query) != kind) continue;
            work->out->counts[index] =
                find_one(find, &query, work->out->items + index * (int64_t)work->out->capacity);
        }
}

static vlp_status run(const job *work, seeker *seekers, int threads, const vlp_observer *observer) {
    bool stopped = vlp_stopped(observer);
    int64_t done = 0, total = work->out->queries;
    const int64_t *row = work->group;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (total > 64)
    for (int64_t group = 0; group < work->groups; group++) {
        bool stop;
#pragma omp atomic read
        stop = stopped;
        if (stop || row[group + 1] == row[group]) continue;
        int thread = omp_get_thread_num();
        find_group(work, &seekers[thread], group);
        int64_t now;
#pragma omp atomic capture
        now = done += row[group + 1] - row[group];
        if (thread == 0) {
            vlp_progress(observer, "references", now, total);
            if (vlp_stopped(observer)) {
#pragma omp atomic write
                stopped = true;
            }
        }
    }
    if (stopped) return vlp_fail_stopped();
    vlp_progress(observer, "references", total, total);
    return VLP_OK;
}

static vlp_status check_options(const vlp_reference_options *options) {
    VLP_TRY(vlp_check_threads(options->threads));
    if (options->count < 1 || options->count > 1024)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d references requested; the range is 1 to 1024",
                        options->count);
    if (options->max_distance < 0 || options->max_distance > VLP_WALK_LEVELS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a reference distance of %d; the range is 0 to %d",
                        options->max_distance, VLP_WALK_LEVELS);
    if (options->per_head < 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d references per entity; it is 0 (no limit) or more",
                        options->per_head);
    return VLP_OK;
}

static vlp_status check_queries(const vlp_graph *graph, const vlp_query *queries, int64_t count) {
    if (queries && count < 0) return vlp_fail(VLP_ERROR_ARGUMENT, "%lld queries", (long long)count);
    for (int64_t i = 0; queries && i < count; i++) {
        vlp_query query = queries[i];
        if (query.entity < 0 || query.entity >= graph->entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: entity %d of %d", (long long)i,
                            query.entity, graph->entities);
        if (query.relation < 0 || query.relation >= 2 * graph->relations)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: relation %d of %d", (long long)i,
                            query.relation, 2 * graph->relations);
        if (query.left_out < -1 || query.left_out >= graph->edges)
            return vlp_fail(VLP_ERROR_ARGUMENT, "query %lld: left-out triple %lld of %lld", (long long)i,
                            (long long)query.left_out, (long long)graph->edges);
    }
    return VLP_OK;
}

/* Sorts given queries by entity: the memory and the work are of the order of their number. */
static vlp_status sort_queries(job *work, vlp_keyed **order, int64_t **group, int64_t count) {
    vlp_keyed *spare = vlp_alloc((size_t)count, sizeof *spare);
    *order = vlp_alloc((size_t)count, sizeof **order);
    *group = vlp_alloc((size_t)count + 1, sizeof **group);
    if (!spare || !*order || !*group) {
        vlp_free(spare);
        return vlp_fail_memory("queries");
    }
    for (int64_t i = 0; i < count; i++) (*order)[i] = (vlp_keyed){(uint32_t)work->queries[i].entity, i};
    vlp_keyed_sort(*order, spare, count);
    vlp_free(spare);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || (*order)[i].key != (*order)[i - 1].key) (*group)[work->groups++] = i;
    (*group)[work->groups] = count;
    work->order = *order;
    work->group = *group;
    return VLP_OK;
}

/* ---- The finder ---------------------------------------------------------------------------------- */

struct vlp_reference_finder {
    const vlp_graph *graph;
    vlp_reference_options options;
    vlp_reference_rule rule;
    relation_index index;
    edge_index edges;
    int threads;
    seeker *seekers; /* (threads) */
};

static vlp_status seeker_new(seeker *one, const vlp_reference_finder *finder) {
    *one = (seeker){.graph = finder->graph,
                    .index = &finder->index,
                    .edges = &finder->edges,
                    .options = &finder->options,
                    .rule = &finder->rule};
    one->candidates = vlp_alloc((size_t)finder->options.count, sizeof(candidate));
    if (!one->candidates) return vlp_fail_memory("the search for references");
    return vlp_walk_new(&one->walk, finder->graph, 0);
}

vlp_status vlp_reference_finder_new(vlp_reference_finder **out, const vlp_graph *graph,
                                    const vlp_reference_options *options) {
    *out = NULL;
    VLP_TRY(check_options(options));
    vlp_status status = VLP_OK;
    vlp_reference_finder *finder = vlp_alloc_zero(1, sizeof *finder);
    if (!finder) return vlp_fail_memory("the search for references");
    finder->graph = graph;
    finder->options = *options;
    finder->threads = vlp_thread_count(options->threads);
    finder->seekers = vlp_alloc_zero((size_t)finder->threads, sizeof *finder->seekers);
    if (!finder->seekers) {
        status = vlp_fail_memory("the search for references");
        goto out;
    }
    VLP_CHECK(index_new(&finder->index, graph));
    for (int i = 0; i < finder->threads; i++) VLP_CHECK(seeker_new(&finder->seekers[i], finder));
out:
    if (status != VLP_OK) {
        vlp_reference_finder_free(finder);
        return status;
    }
    *out = finder;
    return VLP_OK;
}

vlp_status vlp_reference_finder_set(vlp_reference_finder *finder, const vlp_reference_rule *rule) {
    assert(rule->choice == VLP_REFERENCES_NEAREST || finder->options.per_head == 0);
    if (rule->choice == VLP_REFERENCES_RANDOM && !finder->edges.offset)
        VLP_TRY(edge_index_new(&finder->edges, finder->graph));
    finder->rule = *rule;
    for (int i = 0; i < finder->threads; i++) vlp_walk_limit(&finder->seekers[i].walk, rule->edges);
    return VLP_OK;
}

void vlp_reference_finder_free(vlp_reference_finder *finder) {
    if (!finder) return;
    for (int i = 0; finder->seekers && i < finder->threads; i++) {
        vlp_walk_free(&finder->seekers[i].walk);
        vlp_free(finder->seekers[i].candidates);
    }
    vlp_free(finder->seekers);
    index_free(&finder->index);
    edge_index_free(&finder->edges);
    vlp_free(finder);
}

vlp_status vlp_reference_finder_find(vlp_references **out, vlp_reference_finder *finder,
                                     const vlp_query *queries, int64_t count) {
    *out = NULL;
    const vlp_graph *graph = finder->graph;
    VLP_TRY(check_queries(graph, queries, count));
    vlp_status status = VLP_OK;
    vlp_keyed *order = NULL;
    int64_t *group = NULL;
    vlp_references *references = vlp_alloc_zero(1, sizeof *references);
    if (!references) return vlp_fail_memory("references");
    references->queries = queries ? count : 2 * graph->edges;
    references->capacity = finder->options.count;
    references->items =
        vlp_alloc((size_t)references->queries, (size_t)references->capacity * sizeof(vlp_reference));
    references->counts = vlp_alloc((size_t)references->queries, sizeof *references->counts);
    if (!references->items || !references->counts) {
        status = vlp_fail_memory("references");
        goto out;
    }
    job work = {.graph = graph, .queries = queries, .out = references};
    if (queries) {
        VLP_CHECK(sort_queries(&work, &order, &group, count));
    } else {
        work.group = graph->offset;
        work.groups = graph->entities;
    }
    VLP_CHECK(run(&work, finder->seekers, finder->threads, finder->options.observer));
out:
    vlp_free(order);
    vlp_free(group);
    if (status != VLP_OK) {
        vlp_references_free(references);
        return status;
    }
    *out = references;
    return VLP_OK;
}

vlp_status vlp_graph_references(vlp_references **out, const vlp_graph *graph, const vlp_query *queries,
                                int64_t count, const vlp_reference_options *given) {
    return vlp_graph_references_by(out, graph, queries, count, given, &(vlp_reference_rule){0});
}

vlp_status vlp_graph_references_by(vlp_references **out, const vlp_graph *graph,
                                   const vlp_query *queries, int64_t count,
                                   const vlp_reference_options *given, const vlp_reference_rule *rule) {
    *out = NULL;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_reference_options, &options, given));
    vlp_reference_finder *finder = NULL;
    VLP_TRY(vlp_reference_finder_new(&finder, graph, &options));
    vlp_status status = vlp_reference_finder_set(finder, rule);
    if (status == VLP_OK) status = vlp_reference_finder_find(out, finder, queries, count);
    vlp_reference_finder_free(finder);
    return status;
}

const vlp_reference *vlp_references_get(const vlp_references *references, int64_t query,
                                        int32_t *count) {
    bool valid = references && query >= 0 && query < references->queries;
    if (count) *count = valid ? references->counts[query] : 0;
    if (!valid) return NULL;
    return references->items + query * references->capacity;
}

const vlp_reference *vlp_references_all(const vlp_references *references, const int32_t **counts) {
    *counts = references->counts;
    return references->items;
}

void vlp_references_free(vlp_references *references) {
    if (!references) return;
    vlp_free(references->items);
    vlp_free(references->counts);
    vlp_free(references);
}
