/* The graph and the keys of the path model, in host memory. */
#include "compute/paths.h"

#include <string.h>

const char *vlp_path_table_name(vlp_path_table table) {
    static const char *const names[VLP_PATH_TABLES] = {
        "path_query", "path_relation", "path_relation_bias", "path_update", "path_update_bias",
        "path_norm",  "path_hidden",   "path_hidden_bias",   "path_output"};
    return names[table];
}

/* ---- Sorting ------------------------------------------------------------------------------------- */

/* An edge before it is sorted, by its position among the triples: edge 2 i is the direction of triple i,
 * edge 2 i + 1 the other. */
typedef struct edge_fields {
    int32_t destination, relation, source;
} edge_fields;

static edge_fields edge_of(const vlp_triple *triples, int64_t edge, int32_t relations) {
    vlp_triple triple = triples[edge / 2];
    if (edge % 2 == 0) return (edge_fields){triple.tail, triple.relation, triple.head};
    return (edge_fields){triple.head, triple.relation + relations, triple.tail};
}

typedef enum sort_key { BY_SOURCE, BY_RELATION, BY_DESTINATION } sort_key;

static int32_t key_of(edge_fields edge, sort_key key) {
    switch (key) {
    case BY_SOURCE:
        return edge.source;
    case BY_RELATION:
        return edge.relation;
    case BY_DESTINATION:
        return edge.destination;
    }
    return 0;
}

/* Stable: to = from, sorted by one field. counts (values + 1); afterwards counts[v] is the end of v. */
static void sort_by(int64_t *to, const int64_t *from, int64_t *counts, int32_t values,
                    const vlp_triple *triples, int64_t edges, int32_t relations, sort_key key) {
    memset(counts, 0, ((size_t)values + 1) * sizeof *counts);
    for (int64_t i = 0; i < edges; i++) counts[key_of(edge_of(triples, from[i], relations), key) + 1]++;
    for (int32_t v = 0; v < values; v++) counts[v + 1] += counts[v];
    for (int64_t i = 0; i < edges; i++)
        to[counts[key_of(edge_of(triples, from[i], relations), key)]++] = from[i];
}

/* ---- The index ----------------------------------------------------------------------------------- */

void vlp_path_index_free(vlp_path_index *index) {
    vlp_free(index->offset);
    vlp_free(index->key_offset);
    vlp_free(index->source);
    vlp_free(index->relation);
    vlp_free(index->triple);
    vlp_free(index->key_head);
    vlp_free(index->key_relation);
    memset(index, 0, sizeof *index);
}

static vlp_status allocate(vlp_path_index *index, int64_t edges, int32_t entities) {
    size_t count = (size_t)edges;
    index->offset = vlp_alloc_zero((size_t)entities + 1, sizeof(int64_t));
    index->key_offset = vlp_alloc(count + 1, sizeof(int64_t)); /* every key has an edge */
    index->source = vlp_alloc(count, sizeof(int32_t));
    index->relation = vlp_alloc(count, sizeof(int32_t));
    index->triple = vlp_alloc(count, sizeof(int32_t));
    index->key_head = vlp_alloc(count, sizeof(int32_t));
    index->key_relation = vlp_alloc(count, sizeof(int32_t));
    if (!index->offset || !index->key_offset || !index->source || !index->relation || !index->triple ||
        !index->key_head || !index->key_relation)
        return vlp_fail_memory("the graph of the path model");
    return VLP_OK;
}

/* order (edges): by destination, relation, source. */
static vlp_status sort_edges(int64_t *order, const vlp_triple *triples, int64_t edges, int32_t entities,
                             int32_t relations) {
    int32_t values = entities > 2 * relations ? entities : 2 * relations;
    int64_t *other = vlp_alloc((size_t)edges, sizeof *other);
    int64_t *counts = vlp_alloc((size_t)values + 1, sizeof *counts);
    if (other && counts) {
        for (int64_t i = 0; i < edges; i++) order[i] = i;
        sort_by(other, order, counts, values, triples, edges, relations, BY_SOURCE);
        sort_by(order, other, counts, values, triples, edges, relations, BY_RELATION);
        sort_by(other, order, counts, values, triples, edges, relations, BY_DESTINATION);
        if (edges > 0) memcpy(order, other, (size_t)edges * sizeof *order);
    }
    vlp_status status = other && counts ? VLP_OK : vlp_fail_memory("the graph of the path model");
    vlp_free(other);
    vlp_free(counts);
    return status;
}

/* One key for every run of edges of a destination and relation: the answers of (destination, inverse
 * relation) are their sources. */
static void set_keys(vlp_path_index *index, const int64_t *order, const vlp_triple *triples,
                     int32_t relations) {
    vlp_path_keys *keys = &index->keys;
    int64_t edges = 2 * index->graph.triples;
    int32_t head = -1, relation = -1;
    for (int64_t i = 0; i < edges; i++) {
        edge_fields edge = edge_of(triples, order[i], relations);
        if (edge.destination == head && edge.relation == relation) continue;
        head = edge.destination;
        relation = edge.relation;
        index->key_head[keys->count] = head;
        index->key_relation[keys->count] = vlp_path_inverse(relation, 2 * relations);
        index->key_offset[keys->count++] = i;
    }
    index->key_offset[keys->count] = edges;
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t answers = index->key_offset[i + 1] - index->key_offset[i];
        if (answers > keys->most_answers) keys->most_answers = answers;
    }
    keys->heads = index->key_head;
    keys->relations = index->key_relation;
    keys->offset = index->key_offset;
}

/* Of the degrees that at least one entity in a thousand has, the largest; at most 63. */
static int32_t frequent_degree(const int64_t *offset, int32_t entities) {
    int64_t counts[64] = {0};
    for (int32_t v = 0; v < entities; v++)
        if (offset[v + 1] - offset[v] < 64) counts[offset[v + 1] - offset[v]]++;
    for (int32_t degree = 63; degree > 0; degree--)
        if (counts[degree] > 0 && counts[degree] >= entities / 1000) return degree;
    return 0;
}

static void set_degrees(vlp_path_graph *graph) {
    double sum = 0;
    for (int32_t v = 0; v < graph->entities; v++)
        sum += log((double)(graph->offset[v + 1] - graph->offset[v] + 1));
    graph->mean_log_degree = sum > 0 ? (float)(sum / graph->entities) : 1;
    graph->frequent_degree = frequent_degree(graph->offset, graph->entities);
}

vlp_status vlp_path_index_make(vlp_path_index *out, const vlp_triple *triples, int64_t count,
                               int32_t entities, int32_t relations) {
    int64_t edges = 2 * count;
    *out = (vlp_path_index){0};
    if (edges > INT32_MAX) return vlp_fail(VLP_ERROR_ARGUMENT, "too many triples for a path model");
    int64_t *order = vlp_alloc((size_t)edges, sizeof *order);
    vlp_status status = order ? VLP_OK : vlp_fail_memory("the graph of the path model");
    if (status != VLP_OK) goto out;
    VLP_CHECK(allocate(out, edges, entities));
    VLP_CHECK(sort_edges(order, triples, edges, entities, relations));
    for (int64_t i = 0; i < edges; i++) {
        edge_fields edge = edge_of(triples, order[i], relations);
        out->source[i] = edge.source;
        out->relation[i] = edge.relation;
        out->triple[i] = (int32_t)(order[i] / 2);
        out->offset[edge.destination + 1]++;
    }
    for (int32_t v = 0; v < entities; v++) out->offset[v + 1] += out->offset[v];
    out->graph = (vlp_path_graph){.entities = entities,
                                  .relations = 2 * relations,
                                  .triples = count,
                                  .offset = out->offset,
                                  .source = out->source,
                                  .relation = out->relation,
                                  .triple = out->triple};
    set_degrees(&out->graph);
    set_keys(out, order, triples, relations);
out:
    vlp_free(order);
    if (status != VLP_OK) vlp_path_index_free(out);
    return status;
}
