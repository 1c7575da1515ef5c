/* A walk from one head over the graph, level by level, as references need it: the level of every node
 * and the mass that reaches it, in the graph without one edge.
 *
 * The edge of a training query is taken out of the graph. Walking anew for every query of a head would
 * repeat nearly all of the work, so the walk is made once for the head and then repaired for each edge
 * (h, t): what changes lies behind t. For that the walk of the head is made with the share its slots
 * have when one of them is gone. Sums are of integers, so a repaired mass is the very number a walk
 * without the edge would give. */
#ifndef VLP_GRAPH_WALK_H
#define VLP_GRAPH_WALK_H

#include "graph/graph.h"

enum { VLP_WALK_LEVELS = 8, VLP_WALK_NOWHERE = -1 };

typedef struct vlp_walk_node {
    uint64_t mass;
    int32_t parents; /* slots that lead here from the level before */
    int32_t level;
} vlp_walk_node;

typedef struct vlp_node_list {
    int32_t *items; /* (entities) */
    int32_t count;
} vlp_node_list;

typedef struct vlp_walk {
    const vlp_graph *graph;
    /* The head's own walk. */
    int32_t head;
    uint64_t head_share;  /* what each slot of the head carries */
    int64_t without;      /* edge that this walk does not use, or -1 */
    vlp_walk_node *nodes; /* (entities), level VLP_WALK_NOWHERE where it has not been */
    vlp_node_list order;  /* nodes in the order of their levels */
    int32_t level_start[VLP_WALK_LEVELS + 2];
    int32_t levels; /* levels 0 .. levels - 1 are complete */
    /* The repair for one left-out edge. */
    bool repaired;
    int32_t answer;                  /* the edge's other end */
    int32_t repair_level;            /* changes are known up to this level */
    uint32_t epoch;                  /* stamp[v] == epoch: changed[v] counts instead of nodes[v] */
    uint32_t *stamp;                 /* (entities) */
    vlp_walk_node *changed;          /* (entities) */
    vlp_node_list dirty, next_dirty; /* nodes of the head's level `repair_level` that changed */
    vlp_node_list orphans;           /* nodes that lost their level and have none yet */
    vlp_node_list arrived;           /* former orphans whose new level is `repair_level` */
} vlp_walk;

vlp_status vlp_walk_new(vlp_walk *walk, const vlp_graph *graph);
void vlp_walk_free(vlp_walk *walk);

/* Begins the walk for (head, left_out), -1 for none; keeps what an earlier one of the same head did. The
 * left-out edge may be any. False when the head has no slot left. */
bool vlp_walk_start(vlp_walk *walk, int32_t head, int64_t left_out);

/* Completes `level` (each after the one before); false when nothing is there or beyond. */
bool vlp_walk_advance(vlp_walk *walk, int32_t level);

/* The node as the walk sees it without the left-out edge. */
static inline const vlp_walk_node *vlp_walk_node_at(const vlp_walk *walk, int32_t node) {
    return walk->stamp[node] == walk->epoch ? &walk->changed[node] : &walk->nodes[node];
}

/* The nodes that may be at `level`, which was the last to be completed: two lists, of which the first
 * may hold nodes that have left the level. */
static inline const int32_t *vlp_walk_level(const vlp_walk *walk, int32_t level, int32_t *count) {
    *count = walk->level_start[level + 1] - walk->level_start[level];
    return walk->order.items + walk->level_start[level];
}

#endif
