/* A walk from one entity over the graph, level by level, for references: the level of every node and
 * the mass that reaches it, in the graph without one edge.
 *
 * The edge of a training query is left out of the graph. A new walk for every query of an entity would
 * repeat nearly all of the work, so one walk per entity is made and then repaired for each edge (h,
 * t): only nodes reached through t change. The walk already uses the share that the entity's slots
 * have when one of them is left out. Masses are integers, so a repaired mass equals that of a walk
 * without the edge exactly. */
#ifndef VLP_GRAPH_WALK_H
#define VLP_GRAPH_WALK_H

#include "graph/graph.h"

enum { VLP_WALK_LEVELS = 8, VLP_WALK_NOWHERE = -1 };

typedef struct vlp_walk_node {
    uint64_t mass;
    int32_t parents; /* slots that lead here from the previous level */
    int32_t level;
} vlp_walk_node;

typedef struct vlp_node_list {
    int32_t *items; /* (entities) */
    int32_t count;
} vlp_node_list;

typedef struct vlp_walk {
    const vlp_graph *graph;
    /* The unrepaired walk of the entity. */
    int32_t head;
    uint64_t head_share;  /* the share that each slot of the start entity carries */
    int64_t without;      /* the edge left out of this walk, or -1 */
    vlp_walk_node *nodes; /* (entities); level VLP_WALK_NOWHERE if not reached */
    vlp_node_list order;  /* nodes in the order of their levels */
    int32_t level_start[VLP_WALK_LEVELS + 2];
    int32_t levels; /* levels 0 .. levels - 1 are complete */
    int64_t limit;  /* of `read`; 0: none. With a limit, walks are not repaired */
    int64_t read;   /* slots of the nodes of the levels before the last */
    /* The repair for one left-out edge. */
    bool repaired;
    int32_t answer;                  /* the other end of the edge */
    int32_t repair_level;            /* changes are known up to this level */
    uint32_t epoch;                  /* stamp[v] == epoch: changed[v] replaces nodes[v] */
    uint32_t *stamp;                 /* (entities) */
    vlp_walk_node *changed;          /* (entities) */
    vlp_node_list dirty, next_dirty; /* changed nodes at level `repair_level` */
    vlp_node_list orphans;           /* nodes that lost their level and have no new one yet */
    vlp_node_list arrived;           /* former orphans whose new level is `repair_level` */
} vlp_walk;

/* A level is walked to where the nodes before it have at most `limit` slots together; 0: no limit. */
vlp_status vlp_walk_new(vlp_walk *walk, const vlp_graph *graph, int64_t limit);
void vlp_walk_free(vlp_walk *walk);
/* Another limit, from the next walk on. */
void vlp_walk_limit(vlp_walk *walk, int64_t limit);

/* Begins the walk for (head, left_out), -1 for none; reuses an earlier walk from the same entity. Any
 * edge can be left out. False if the entity has no slot left. */
bool vlp_walk_start(vlp_walk *walk, int32_t head, int64_t left_out);

/* Completes `level`, in ascending order; false if no node is at this level or beyond, or the limit does
 * not allow to see them. */
bool vlp_walk_advance(vlp_walk *walk, int32_t level);

/* The node in the walk without the left-out edge. */
static inline const vlp_walk_node *vlp_walk_node_at(const vlp_walk *walk, int32_t node) {
    return walk->stamp[node] == walk->epoch ? &walk->changed[node] : &walk->nodes[node];
}

/* Candidates for the nodes at `level`, the last level completed: two lists, of which the first may
 * contain nodes that are no longer at the level. */
static inline const int32_t *vlp_walk_level(const vlp_walk *walk, int32_t level, int32_t *count) {
    *count = walk->level_start[level + 1] - walk->level_start[level];
    return walk->order.items + walk->level_start[level];
}

#endif
