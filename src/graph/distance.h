/* Undirected distances over all relations. */
#ifndef VLP_GRAPH_DISTANCE_H
#define VLP_GRAPH_DISTANCE_H

#include "graph/graph.h"

/* The graph without directions, relations, loops and parallel edges, for distances. Rows are
 * renumbered so that neighbours are close in memory. */
typedef struct vlp_skeleton {
    int32_t nodes;
    int64_t *offset;   /* (nodes + 1) */
    int32_t *neighbor; /* renumbered */
    int32_t *place;    /* (nodes) entity -> row */
    int32_t *entity;   /* (nodes) row -> entity */
} vlp_skeleton;

vlp_status vlp_skeleton_new(vlp_skeleton **out, const vlp_graph *graph, int32_t threads);
void vlp_skeleton_free(vlp_skeleton *skeleton);

/* One source: distance[e] or -1, for every entity; limit 0: no limit. `queue` holds (nodes) int32. */
void vlp_skeleton_search(const vlp_skeleton *skeleton, int32_t source, int32_t limit, int32_t *distance,
                         int32_t *queue);

/* Distances of (head, tail) pairs, or -1 without a path. */
vlp_status vlp_skeleton_pairs(int32_t *out, const vlp_skeleton *skeleton, const vlp_triple *pairs,
                              int64_t count, int32_t threads);

/* counts[e * (limit + 1) + d] = number of entities at distance d of e, d = 0 .. limit. */
vlp_status vlp_skeleton_counts(int32_t *counts, const vlp_skeleton *skeleton, int32_t limit,
                               int32_t threads, const vlp_observer *observer);

/* ---- Shells: distances of all pairs, for the sampler ---- Within the memory budget every distance up
 * to `limit` is known (`exact`). Beyond it every entity has its near shells, as many complete ones as
 * fit its part of the budget (at least the first), and all other entities form one shell. */
typedef struct vlp_shells {
    int32_t nodes, limit;
    bool exact;
    uint8_t *matrix; /* (nodes, vlp_shells_stride) when exact: one half-byte per entity, even ones in the
                        low half: its distance, or limit + 1 if it is farther or unreachable */
    int32_t *counts; /* (nodes, limit + 1) members at each distance; exact: all, else the near ones */
    /* Near shells, as lists: members of e at distances 1 .. near[e], nearest first, ascending ids
     * within a distance. Kept in both modes: small shells are sampled from lists, large ones by
     * rejection. */
    uint8_t *near;        /* (nodes) */
    int64_t *near_offset; /* (nodes + 1) */
    int32_t *near_member;
} vlp_shells;

/* Bytes of a row of the matrix: a multiple of 16, so that 32 distances can be read at once. */
static inline int64_t vlp_shells_stride(int32_t nodes) {
    return ((int64_t)nodes + 31) / 32 * 16;
}

/* limit: 1 to 14. */
vlp_status vlp_shells_new(vlp_shells **out, const vlp_skeleton *skeleton, int32_t limit,
                          int64_t memory_budget, int32_t threads, const vlp_observer *observer);
void vlp_shells_free(vlp_shells *shells);
int64_t vlp_shells_bytes(const vlp_shells *shells);
/* Members of `node` at `distance` (1 .. near[node]). */
const int32_t *vlp_shells_members(const vlp_shells *shells, int32_t node, int32_t distance,
                                  int32_t *count);
/* 0 .. limit, or limit + 1 if it is farther or not known. */
int32_t vlp_shells_distance(const vlp_shells *shells, int32_t from, int32_t to);

#endif
