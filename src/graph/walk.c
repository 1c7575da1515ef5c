#include "graph/walk.h"

#include <string.h>

#include "graph/reference.h"

/* With fewer slots at the start entity, each of them leads to most of the graph, and a repair costs
 * more than a new walk. */
enum { REPAIR_DEGREE = 8 };

static bool list_new(vlp_node_list *list, size_t entities) {
    list->count = 0;
    list->items = vlp_alloc(entities, sizeof *list->items);
    return list->items != NULL;
}

static void list_add(vlp_node_list *list, int32_t node) {
    list->items[list->count++] = node;
}

vlp_status vlp_walk_new(vlp_walk *walk, const vlp_graph *graph, int64_t limit) {
    *walk = (vlp_walk){.graph = graph, .head = -1, .without = -1, .epoch = 1, .limit = limit};
    size_t entities = (size_t)graph->entities;
    walk->nodes = vlp_alloc(entities, sizeof *walk->nodes);
    walk->changed = vlp_alloc(entities, sizeof *walk->changed);
    walk->stamp = vlp_alloc_zero(entities, sizeof *walk->stamp);
    bool lists = list_new(&walk->order, entities) && list_new(&walk->dirty, entities) &&
                 list_new(&walk->next_dirty, entities) && list_new(&walk->orphans, entities) &&
                 list_new(&walk->arrived, entities);
    if (!walk->nodes || !walk->changed || !walk->stamp || !lists) {
        vlp_walk_free(walk);
        return vlp_fail_memory("the search for references");
    }
    for (size_t i = 0; i < entities; i++) walk->nodes[i].level = VLP_WALK_NOWHERE;
    return VLP_OK;
}

void vlp_walk_limit(vlp_walk *walk, int64_t limit) {
    walk->limit = limit;
    walk->head_share = 0; /* no walk has it: none is reused */
}

void vlp_walk_free(vlp_walk *walk) {
    vlp_free(walk->nodes);
    vlp_free(walk->changed);
    vlp_free(walk->stamp);
    vlp_free(walk->order.items);
    vlp_free(walk->dirty.items);
    vlp_free(walk->next_dirty.items);
    vlp_free(walk->orphans.items);
    vlp_free(walk->arrived.items);
    *walk = (vlp_walk){0};
}

/* Slots of `node` that belong to `edge`: a loop has two. */
static int64_t slots_of_edge(const vlp_graph *graph, int32_t node, int64_t edge) {
    if (edge < 0) return 0;
    return (graph->triples[edge].head == node) + (graph->triples[edge].tail == node);
}

/* ---- The unrepaired walk ------------------------------------------------------------------------- */

static void restart(vlp_walk *walk, int32_t head, uint64_t head_share, int64_t without) {
    for (int32_t i = 0; i < walk->order.count; i++)
        walk->nodes[walk->order.items[i]].level = VLP_WALK_NOWHERE;
    walk->head = head;
    walk->head_share = head_share;
    walk->without = without;
    walk->order.count = 0;
    list_add(&walk->order, head);
    walk->nodes[head] = (vlp_walk_node){VLP_WALK_UNIT, 0, 0};
    walk->level_start[0] = 0;
    walk->level_start[1] = 1;
    walk->levels = 1;
    walk->read = 0;
}

static uint64_t own_share(const vlp_walk *walk, int32_t node) {
    if (node == walk->head) return walk->head_share;
    int64_t degree =
        vlp_graph_degree(walk->graph, node) - slots_of_edge(walk->graph, node, walk->without);
    return degree > 0 ? walk->nodes[node].mass / (uint64_t)degree : 0;
}

static void walk_slot(vlp_walk *walk, int32_t node, int32_t level, uint64_t share) {
    vlp_walk_node *reached = &walk->nodes[node];
    if (reached->level == VLP_WALK_NOWHERE) {
        *reached = (vlp_walk_node){share, 1, level};
        list_add(&walk->order, node);
    } else if (reached->level == level) {
        reached->mass += share;
        reached->parents++;
    }
}

/* Completes the next level of the unrepaired walk. */
static void extend(vlp_walk *walk) {
    const vlp_graph *graph = walk->graph;
    int32_t level = walk->levels;
    for (int32_t i = walk->level_start[level - 1]; i < walk->level_start[level]; i++) {
        int32_t node = walk->order.items[i];
        uint64_t share = own_share(walk, node);
        bool watch = slots_of_edge(graph, node, walk->without) > 0;
        for (int64_t slot = graph->offset[node]; slot < graph->offset[node + 1]; slot++)
            if (!watch || graph->edge[slot] != walk->without)
                walk_slot(walk, graph->neighbor[slot], level, share);
    }
    walk->level_start[level + 1] = walk->order.count;
    walk->levels++;
}

/* Whether the limit allows to read the slots of the last level; counts them. */
static bool may_extend(vlp_walk *walk) {
    if (walk->limit == 0) return true;
    int32_t level = walk->levels - 1;
    int64_t read = walk->read;
    for (int32_t i = walk->level_start[level]; i < walk->level_start[level + 1]; i++) {
        read += vlp_graph_degree(walk->graph, walk->order.items[i]);
        if (read > walk->limit) return false;
    }
    walk->read = read;
    return true;
}

/* ---- The repair ---------------------------------------------------------------------------------- */

static vlp_walk_node *touch(vlp_walk *walk, int32_t node, vlp_node_list *list) {
    if (walk->stamp[node] != walk->epoch) {
        walk->stamp[node] = walk->epoch;
        walk->changed[node] = walk->nodes[node];
        list_add(list, node);
    }
    return &walk->changed[node];
}

static void orphan(vlp_walk *walk, int32_t node) {
    walk->changed[node] = (vlp_walk_node){0, 0, VLP_WALK_NOWHERE};
    list_add(&walk->orphans, node);
}

static void forget_repair(vlp_walk *walk) {
    if (++walk->epoch == 0) { /* the counter wrapped around: old stamps would look current */
        memset(walk->stamp, 0, (size_t)walk->graph->entities * sizeof *walk->stamp);
        walk->epoch = 1;
    }
    walk->repaired = false;
    walk->repair_level = 0;
    walk->dirty.count = walk->next_dirty.count = walk->orphans.count = walk->arrived.count = 0;
}

/* The share that a slot of `node` carries without the edge. */
static uint64_t repaired_share(const vlp_walk *walk, int32_t node) {
    int64_t degree = vlp_graph_degree(walk->graph, node) - (node == walk->answer);
    return degree > 0 ? vlp_walk_node_at(walk, node)->mass / (uint64_t)degree : 0;
}

/* Propagates a change of a node at `level` of the unrepaired walk to the next level. */
static void pass_on(vlp_walk *walk, int32_t node, int32_t level) {
    const vlp_graph *graph = walk->graph;
    bool stays = walk->changed[node].level == level;
    uint64_t before = own_share(walk, node), now = stays ? repaired_share(walk, node) : 0;
    if (stays && before == now) return;
    for (int64_t slot = graph->offset[node]; slot < graph->offset[node + 1]; slot++) {
        int32_t next = graph->neighbor[slot];
        if (walk->nodes[next].level != level + 1) continue;
        vlp_walk_node *changed = touch(walk, next, &walk->next_dirty);
        changed->mass += now - before; /* exact modulo 2^64 */
        changed->parents -= !stays;
    }
}

/* Assigns a level to the orphans that are neighbours of a node at `level`. */
static void adopt_orphans(vlp_walk *walk, int32_t level, int32_t count) {
    const vlp_graph *graph = walk->graph;
    int32_t left = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t node = walk->orphans.items[i];
        vlp_walk_node found = {0, 0, level + 1};
        for (int64_t slot = graph->offset[node]; slot < graph->offset[node + 1]; slot++) {
            int32_t from = graph->neighbor[slot];
            if (vlp_walk_node_at(walk, from)->level != level) continue;
            found.mass += repaired_share(walk, from);
            found.parents++;
        }
        if (found.parents > 0) {
            walk->changed[node] = found;
            list_add(&walk->arrived, node);
        } else {
            walk->orphans.items[left++] = node;
        }
    }
    /* After these come the nodes that have just become orphans. */
    for (int32_t i = count; i < walk->orphans.count; i++)
        walk->orphans.items[left++] = walk->orphans.items[i];
    walk->orphans.count = left;
}

/* Advances the repair by one level, which the unrepaired walk has completed. */
static void repair_next(vlp_walk *walk) {
    int32_t level = walk->repair_level;
    int32_t waiting = walk->orphans.count;
    walk->next_dirty.count = walk->arrived.count = 0;
    if (level == 0) {
        vlp_walk_node *answer = touch(walk, walk->answer, &walk->next_dirty);
        answer->mass -= walk->head_share;
        answer->parents--;
    } else {
        for (int32_t i = 0; i < walk->dirty.count; i++) pass_on(walk, walk->dirty.items[i], level);
    }
    for (int32_t i = 0; i < walk->next_dirty.count; i++)
        if (walk->changed[walk->next_dirty.items[i]].parents == 0)
            orphan(walk, walk->next_dirty.items[i]);
    adopt_orphans(walk, level, waiting);
    vlp_node_list swap = walk->dirty;
    walk->dirty = walk->next_dirty;
    walk->next_dirty = swap;
    walk->repair_level = level + 1;
}

/* ---- Both together ------------------------------------------------------------------------------- */

bool vlp_walk_start(vlp_walk *walk, int32_t head, int64_t left_out) {
    const vlp_graph *graph = walk->graph;
    int64_t own = slots_of_edge(graph, head, left_out);
    int64_t degree = vlp_graph_degree(graph, head) - own;
    if (degree <= 0) return false;
    uint64_t share = VLP_WALK_UNIT / (uint64_t)degree;
    /* An edge between the start entity and another node can be repaired, which is worthwhile if the
     * walk serves several queries. */
    bool repair = walk->limit == 0 && own == 1 && degree >= REPAIR_DEGREE;
    int64_t without = repair ? -1 : left_out;
    forget_repair(walk);
    if (walk->head != head || walk->head_share != share || walk->without != without)
        restart(walk, head, share, without);
    if (repair) {
        walk->repaired = true;
        vlp_triple edge = graph->triples[left_out];
        walk->answer = edge.head == head ? edge.tail : edge.head;
    }
    return true;
}

bool vlp_walk_advance(vlp_walk *walk, int32_t level) {
    assert(level <= VLP_WALK_LEVELS);
    while (walk->levels <= level) {
        if (!may_extend(walk)) return false;
        extend(walk);
    }
    if (walk->repaired)
        while (walk->repair_level < level) repair_next(walk);
    return walk->level_start[level + 1] > walk->level_start[level] || walk->orphans.count > 0 ||
           walk->arrived.count > 0;
}
