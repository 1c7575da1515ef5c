/* The local graph of a query: what it reaches, and of that only what its candidates depend on. */
#include "compute/cpu/paths_internal.h"

static bool get_bit(const uint64_t *bits, int64_t i) {
    return bits[i >> 6] >> (i & 63) & 1;
}

static void set_bit(uint64_t *bits, int64_t i) {
    bits[i >> 6] |= UINT64_C(1) << (i & 63);
}

/* Words of a bitmap; random bits come 128 at a time. */
static int64_t words(int64_t bits) {
    return (bits + 127) / 128 * 2;
}

static void fill_choices(uint64_t *bits, int64_t count, uint64_t seed, uint32_t stream, uint32_t share) {
    for (int64_t group = 0; 128 * group < count; group++) {
        vlp_random4 r = vlp_path_choices(seed, stream, (uint32_t)group, share);
        bits[2 * group] = r.v[0] | (uint64_t)r.v[1] << 32;
        bits[2 * group + 1] = r.v[2] | (uint64_t)r.v[3] << 32;
    }
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static vlp_status grow_bits(uint64_t **bits, int64_t count) {
    vlp_free(*bits);
    *bits = vlp_alloc_zero((size_t)words(count), sizeof **bits);
    return *bits ? VLP_OK : VLP_ERROR_MEMORY;
}

vlp_status path_local_open(path_local *local, const vlp_path_graph *graph) {
    if (graph->triples > local->triple_capacity) {
        local->triple_capacity = 0;
        VLP_TRY(grow_bits(&local->removed, graph->triples));
        local->triple_capacity = graph->triples;
    }
    if (graph->entities <= local->entity_capacity) return VLP_OK;
    local->entity_capacity = 0;
    vlp_free(local->number);
    local->number = vlp_alloc((size_t)graph->entities, sizeof *local->number);
    if (!local->number) return VLP_ERROR_MEMORY;
    for (int32_t v = 0; v < graph->entities; v++) local->number[v] = -1;
    vlp_free(local->found);
    local->found = vlp_alloc((size_t)graph->entities + 1, sizeof *local->found);
    if (!local->found) return VLP_ERROR_MEMORY;
    VLP_TRY(grow_bits(&local->visited, graph->entities));
    VLP_TRY(grow_bits(&local->chosen, graph->entities));
    VLP_TRY(grow_bits(&local->incident, graph->entities));
    local->entity_capacity = graph->entities;
    return VLP_OK;
}

void path_local_close(path_local *local) {
    vlp_free(local->number);
    vlp_free(local->visited);
    vlp_free(local->chosen);
    vlp_free(local->removed);
    vlp_free(local->incident);
    vlp_free(local->found);
    vlp_free(local->nodes);
    vlp_free(local->last);
    vlp_free(local->edges);
    vlp_free(local->slots);
    vlp_free(local->order);
    vlp_free(local->queue);
    vlp_free(local->spare);
}

void path_local_clear(path_local *local) {
    size_t entity_bytes = (size_t)words(local->entity_capacity) * sizeof(uint64_t);
    for (int32_t i = 0; i < local->node_count; i++) local->number[local->found[i]] = -1;
    memset(local->visited, 0, entity_bytes);
    memset(local->chosen, 0, entity_bytes);
    memset(local->incident, 0, entity_bytes);
    if (local->removed)
        memset(local->removed, 0, (size_t)words(local->triple_capacity) * sizeof(uint64_t));
    local->check_all = false;
    local->node_count = local->edge_count = local->queue_count = local->candidate_count = 0;
}

/* ---- Edges that are out -------------------------------------------------------------------------- */

void path_local_hide(path_local *local, const vlp_path_graph *graph, int32_t entity, int64_t slot) {
    set_bit(local->removed, graph->triple[slot]);
    set_bit(local->incident, entity);
    set_bit(local->incident, graph->neighbor[slot]);
}

void path_local_hide_pairs(path_local *local, const vlp_path_graph *graph, int32_t entity,
                           const int32_t *others, const uint8_t *hidden, int64_t count) {
    uint64_t *marks = local->visited; /* not yet in use */
    for (int64_t i = 0; i < count; i++)
        if (hidden[i]) set_bit(marks, others[i]);
    for (int64_t slot = graph->offset[entity]; slot < graph->offset[entity + 1]; slot++)
        if (get_bit(marks, graph->neighbor[slot])) path_local_hide(local, graph, entity, slot);
    memset(marks, 0, (size_t)words(local->entity_capacity) * sizeof *marks);
}

void path_local_drop(path_local *local, const vlp_path_graph *graph, uint64_t seed, uint32_t share) {
    if (share == 0) return;
    fill_choices(local->removed, graph->triples, seed, VLP_STREAM_PATH_DROPPED, share);
    local->check_all = true;
}

void path_local_remove(path_local *local, int32_t triple) {
    set_bit(local->removed, triple);
    local->check_all = true;
}

static bool may_be_out(const path_local *local, int32_t entity) {
    return local->check_all || get_bit(local->incident, entity);
}

/* ---- The search ---------------------------------------------------------------------------------- */

/* Rows of the graph are read in an order that only the search knows: an entity's offset is fetched ahead
 * of the loop, and then its slots. */
enum { FETCH_OFFSET = 16, FETCH_SLOTS = 8 };

static void fetch_ahead(const vlp_path_graph *graph, const int32_t *entities, int32_t left, bool all) {
    if (left > FETCH_OFFSET) __builtin_prefetch(graph->offset + entities[FETCH_OFFSET]);
    if (left <= FETCH_SLOTS) return;
    int64_t first = graph->offset[entities[FETCH_SLOTS]];
    __builtin_prefetch(graph->neighbor + first);
    if (all) __builtin_prefetch(graph->relation + first);
}

/* Adds the nodes of the next level, neighbours of nodes begin .. end - 1, to `found`. *counted: all that
 * are reached; `only_chosen`: others than chosen ones are not added. */
static void expand(path_local *local, const vlp_path_graph *graph, int32_t begin, int32_t end,
                   bool only_chosen, int32_t *counted) {
    uint64_t others = only_chosen ? 0 : ~UINT64_C(0), *visited = local->visited;
    int32_t *found = local->found, count = local->node_count, reached = *counted;
    for (int32_t i = begin; i < end; i++) {
        int32_t entity = found[i];
        bool check = may_be_out(local, entity);
        fetch_ahead(graph, found + i, end - i, false);
        for (int64_t slot = graph->offset[entity]; slot < graph->offset[entity + 1]; slot++) {
            int32_t source = graph->neighbor[slot], word = source >> 6;
            if (check && get_bit(local->removed, graph->triple[slot])) continue;
            /* Every other slot leads to a new entity: no branch depends on that. */
            uint64_t bit = UINT64_C(1) << (source & 63), fresh = bit & ~visited[word];
            visited[word] |= bit;
            found[count] = source;
            count += (fresh & (local->chosen[word] | others)) != 0;
            reached += fresh != 0;
        }
    }
    local->node_count = count;
    *counted = reached;
}

typedef struct ranked_node {
    int64_t degree;
    int32_t entity;
} ranked_node;

static int by_degree(const void *left, const void *right) {
    const ranked_node *a = left, *b = right;
    if (a->degree != b->degree) return a->degree < b->degree ? 1 : -1;
    return (a->entity > b->entity) - (a->entity < b->entity);
}

/* Takes the nodes from `begin` on, all of one level, as far as edges are left; *left becomes -1 when one
 * did not fit. */
static vlp_status limit_level(path_local *local, const vlp_path_graph *graph, int32_t begin,
                              int64_t *left) {
    int32_t count = local->node_count - begin;
    ranked_node *ranked = vlp_alloc((size_t)count, sizeof *ranked);
    if (!ranked) return VLP_ERROR_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        int32_t entity = local->found[begin + i];
        ranked[i] = (ranked_node){graph->offset[entity + 1] - graph->offset[entity], entity};
    }
    vlp_sort(ranked, count, sizeof *ranked, by_degree);
    local->node_count = begin;
    for (int32_t i = 0; i < count && *left >= 0; i++) {
        bool fits = ranked[i].degree <= *left;
        *left = fits ? *left - ranked[i].degree : -1;
        if (fits) local->found[local->node_count++] = ranked[i].entity;
    }
    vlp_free(ranked);
    return VLP_OK;
}

/* The entities within `layers` hops. In the last level those that are no candidates are only counted:
 * nothing depends on their states. */
static vlp_status search(path_local *local, const path_scope *scope) {
    const vlp_path_form *form = scope->form;
    int64_t left = form->edge_limit;
    int32_t begin = 0, counted = 1;
    for (int32_t level = 1; level <= form->layers; level++) {
        int32_t end = local->node_count;
        bool only_chosen =
            level == form->layers && !scope->all && level > scope->near && form->edge_limit == 0;
        if (left >= 0) expand(local, scope->graph, begin, end, only_chosen, &counted);
        if (left >= 0 && form->edge_limit > 0) {
            VLP_TRY(limit_level(local, scope->graph, end, &left));
            counted = local->node_count;
        }
        local->reached[level] = local->node_count;
        begin = end;
    }
    local->unreached = scope->graph->entities - counted;
    int32_t near = scope->near < form->layers ? scope->near : form->layers;
    if (scope->all) near = form->layers;
    local->near_count = near < 0 ? 0 : local->reached[near];
    return VLP_OK;
}

/* Every entity, those within `near` hops first. */
static void take_all(path_local *local, const path_scope *scope) {
    int32_t begin = 0, counted = 1, entities = scope->graph->entities;
    for (int32_t hop = 1; !scope->all && hop <= scope->near; hop++) {
        int32_t end = local->node_count;
        if (begin == end) break;
        expand(local, scope->graph, begin, end, false, &counted);
        begin = end;
    }
    local->near_count = scope->near < 0 ? 0 : local->node_count;
    for (int32_t v = 0; v < entities; v++)
        if (!get_bit(local->visited, v)) local->found[local->node_count++] = v;
    if (scope->all) local->near_count = entities;
    for (int32_t level = 1; level <= scope->form->layers; level++) local->reached[level] = entities;
    local->unreached = 0;
}

/* ---- What candidates depend on ------------------------------------------------------------------- */

static vlp_status open_nodes(path_local *local) {
    int64_t count = local->node_count + 1; /* one is written behind the last of the queue */
    VLP_TRY(vlp_grow(&local->nodes, &local->node_capacity, count, sizeof *local->nodes, "a query"));
    VLP_TRY(vlp_grow(&local->last, &local->last_capacity, count, sizeof *local->last, "a query"));
    VLP_TRY(vlp_grow(&local->queue, &local->queue_capacity, count, sizeof *local->queue, "a query"));
    return vlp_grow(&local->order, &local->order_capacity, count, sizeof *local->order, "a query");
}

/* Nodes and levels; candidates are the first of the queue. */
static void set_nodes(path_local *local, const path_scope *scope) {
    int32_t layers = scope->form->layers;
    memset(local->last, 0, (size_t)local->node_count);
    for (int32_t level = 0, i = 0; level <= layers; level++)
        for (; i < local->reached[level]; i++) {
            int32_t entity = local->found[i];
            local->number[entity] = i;
            local->nodes[i].entity = entity;
            local->nodes[i].level = (uint8_t)level;
            if (i >= local->near_count && !get_bit(local->chosen, entity)) continue;
            local->last[i] = (uint8_t)layers;
            local->queue[local->queue_count++] = i;
        }
    local->candidate_count = local->queue_count;
}

/* The group of an edge by its source's number: 0 nearer, 1 the same level, 2 farther, 3 not read. */
typedef struct edge_groups {
    uint32_t nearer, same, all;
} edge_groups;

static edge_groups groups_of(const path_local *local, const path_node *node) {
    int32_t last = local->last[node - local->nodes];
    edge_groups out = {node->level > 0 ? (uint32_t)local->reached[node->level - 1] : 0,
                       (uint32_t)local->reached[node->level], (uint32_t)local->reached[last - 1]};
    return out;
}

static int group_of(edge_groups groups, int32_t number) {
    uint32_t source = (uint32_t)number; /* -1 is larger than all */
    return source >= groups.all ? 3 : (source >= groups.nearer) + (source >= groups.same);
}

/* The slots of a node's edges, which are set. */
static void set_slots(path_local *local, const vlp_path_graph *graph, const path_node *node) {
    int32_t at[4] = {node->begin, node->same, node->farther, 0};
    edge_groups groups = groups_of(local, node);
    for (int64_t slot = graph->offset[node->entity]; slot < graph->offset[node->entity + 1]; slot++) {
        int group = group_of(groups, local->number[graph->neighbor[slot]]);
        if (group == 3 || get_bit(local->removed, graph->triple[slot])) continue;
        local->slots[at[group]++] = (int32_t)slot;
    }
}

/* same, farther: room for the edges of the node, and one more. */
static void set_edges(path_local *local, const vlp_path_graph *graph, path_node *node, path_edge *same,
                      path_edge *farther) {
    int64_t begin = graph->offset[node->entity], end = graph->offset[node->entity + 1];
    bool check = may_be_out(local, node->entity);
    path_edge *nearer = local->edges + local->edge_count;
    edge_groups groups = groups_of(local, node);
    int32_t degree = (int32_t)(end - begin), counts[3] = {0};
    for (int64_t slot = begin; slot < end; slot++) {
        if (check && get_bit(local->removed, graph->triple[slot])) {
            degree--;
            continue;
        }
        int32_t number = local->number[graph->neighbor[slot]];
        path_edge edge = {number, vlp_path_inverse(graph->relation[slot], graph->relations)};
        int group = group_of(groups, number);
        /* An edge is written behind every group and stays in its own: no branch depends on it. */
        nearer[counts[0]] = same[counts[1]] = farther[counts[2]] = edge;
        counts[0] += group == 0;
        counts[1] += group == 1;
        counts[2] += group == 2;
    }
    node->degree = degree;
    node->begin = local->edge_count;
    node->same = node->begin + counts[0];
    node->farther = node->same + counts[1];
    node->end = node->farther + counts[2];
    memcpy(nearer + counts[0], same, (size_t)counts[1] * sizeof *same);
    memcpy(nearer + counts[0] + counts[1], farther, (size_t)counts[2] * sizeof *farther);
    local->edge_count = node->end;
}

static vlp_status grow_edges(path_local *local, int64_t degree, bool ids) {
    int64_t needed = local->edge_count + degree + 1;
    VLP_TRY(
        vlp_grow(&local->edges, &local->edge_capacity, needed, sizeof *local->edges, "a local graph"));
    VLP_TRY(vlp_grow(&local->spare, &local->spare_capacity, 2 * degree + 2, sizeof *local->spare,
                     "a local graph"));
    if (!ids) return VLP_OK;
    return vlp_grow(&local->slots, &local->slot_capacity, needed, sizeof *local->slots, "a local graph");
}

/* As fetch_ahead, for the queue. */
static void fetch_nodes(const path_local *local, const vlp_path_graph *graph, int32_t at) {
    int32_t left = local->queue_count - at, entities[FETCH_OFFSET + 1];
    if (left > FETCH_OFFSET) entities[FETCH_OFFSET] = local->found[local->queue[at + FETCH_OFFSET]];
    if (left > FETCH_SLOTS) entities[FETCH_SLOTS] = local->found[local->queue[at + FETCH_SLOTS]];
    fetch_ahead(graph, entities, left, true);
}

/* Edges of the nodes in the queue, which grows by the sources they are the first to need. A source of a
 * node whose last layer is l is needed in layer l - 1: the queue descends by last layers, and no node
 * has to be looked at twice. */
static vlp_status follow_edges(path_local *local, const path_scope *scope) {
    const vlp_path_graph *graph = scope->graph;
    for (int32_t at = 0; at < local->queue_count; at++) {
        path_node *node = local->nodes + local->queue[at];
        fetch_nodes(local, graph, at);
        int64_t degree = graph->offset[node->entity + 1] - graph->offset[node->entity];
        if (local->edge_count + degree >= local->edge_capacity ||
            2 * degree + 2 > local->spare_capacity || scope->slots)
            VLP_TRY(grow_edges(local, degree, scope->slots));
        set_edges(local, graph, node, local->spare, local->spare + degree + 1);
        node->degree_class = (uint8_t)vlp_path_degree_class(node->degree);
        if (scope->slots) set_slots(local, graph, node);
        uint8_t before = (uint8_t)(local->last[local->queue[at]] - 1);
        if (scope->all || before == 0) continue;
        for (int32_t edge = node->begin; edge < node->end; edge++) {
            int32_t source = local->edges[edge].source;
            bool fresh = local->last[source] == 0;
            local->last[source] = fresh ? before : local->last[source];
            local->queue[local->queue_count] = source;
            local->queue_count += fresh;
        }
    }
    return VLP_OK;
}

/* Computed nodes by class; within one by position in the queue. */
static void sort_by_class(path_local *local, int32_t classes) {
    int32_t begin[VLP_PATH_MAX_CLASSES + 1] = {0}, *to = begin + 1;
    for (int32_t i = 0; i < local->queue_count; i++) to[local->nodes[local->queue[i]].degree_class]++;
    for (int32_t c = 1; c <= VLP_PATH_MAX_CLASSES; c++) begin[c] += begin[c - 1];
    memcpy(local->class_begin, begin, (size_t)(classes + 1) * sizeof *begin);
    local->class_begin[classes + 1] = local->queue_count;
    for (int32_t i = 0; i < local->queue_count; i++)
        local->order[begin[local->nodes[local->queue[i]].degree_class]++] = local->queue[i];
}

vlp_status path_local_build(path_local *local, const path_scope *scope) {
    if (scope->share > 0 && !scope->all)
        fill_choices(local->chosen, scope->graph->entities, scope->seed, VLP_STREAM_PATH_CANDIDATES,
                     scope->share);
    for (int64_t i = 0; i < scope->answer_count; i++) set_bit(local->chosen, scope->answers[i]);
    set_bit(local->visited, scope->head);
    local->found[0] = scope->head;
    local->node_count = local->reached[0] = 1;
    if (scope->form->reached_only)
        VLP_TRY(search(local, scope));
    else
        take_all(local, scope);
    VLP_TRY(open_nodes(local));
    set_nodes(local, scope);
    VLP_TRY(follow_edges(local, scope));
    sort_by_class(local, scope->classes);
    return VLP_OK;
}
