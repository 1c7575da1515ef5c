/* A row of a site is walked by a team of 8 dim / 8 threads, eight numbers of one key per thread; rows of
 * hubs in pieces, whose results are put together by another kernel. */
#ifndef VLP_COMPUTE_CUDA_PATHS_TEAM_H
#define VLP_COMPUTE_CUDA_PATHS_TEAM_H

#include "compute/cuda/paths.h"

/* A thread's place in its team, and the site it works at. */
struct path_thread {
    int32_t team, teams; /* of the block */
    int32_t key, part;   /* of the octet; of dim / 8 */
    int32_t octet, node;
    int32_t row;        /* -1: the key has none */
    uint32_t bit;       /* of the key in words over the group */
    bool check;         /* edges of the node are out of the graph of a key of the octet */
    int32_t begin, end; /* slots to walk */
    int32_t piece;      /* of a hub, by octet; -1: no hub */
};

__device__ inline path_thread path_thread_of(int32_t dim) {
    path_thread out;
    int32_t parts = dim / 8, size = PATH_OCTET * parts, lane = static_cast<int32_t>(threadIdx.x) % size;
    out.teams = PATH_THREADS / size;
    out.team = static_cast<int32_t>(threadIdx.x) / size;
    out.key = lane / parts;
    out.part = lane % parts;
    return out;
}

__device__ inline void path_enter(path_thread *at, const path_work &work, const path_level &level) {
    uint2 site = level.sites[static_cast<int64_t>(at->octet) * work.graph.entities + at->node];
    at->row = path_has_row(site, at->key) ? path_row(site, at->key) : -1;
    at->bit = 1u << (at->octet * PATH_OCTET + at->key);
    at->check = work.touched[at->node] >> (PATH_OCTET * at->octet) & 0xff;
    at->begin = work.graph.begin[at->node];
    at->end = work.graph.begin[at->node + 1];
}

/* The units of a level are the pieces of hubs, for every octet, then the listed sites. */
__device__ inline int32_t path_units(const path_work &work, const path_level &level) {
    return work.octets * work.graph.pieces + level.counts->sites;
}

__device__ inline void path_enter_unit(path_thread *at, const path_work &work, const path_level &level,
                                       int32_t unit) {
    int32_t pieces = work.octets * work.graph.pieces;
    at->piece = -1;
    if (unit >= pieces) {
        uint32_t listed = level.list[unit - pieces];
        at->octet = static_cast<int32_t>(listed >> 30);
        at->node = static_cast<int32_t>(listed & 0x3fffffff);
        path_enter(at, work, level);
        return;
    }
    int2 piece = work.graph.piece[unit % work.graph.pieces];
    at->octet = unit / work.graph.pieces;
    at->node = piece.x;
    path_enter(at, work, level);
    at->piece = unit;
    at->begin = piece.y;
    at->end = min(at->end, piece.y + work.graph.piece_size);
}

/* Numbers of a thread in hub_sums: array 0 .. 6 of a piece. */
__device__ inline float *path_hub_sums(const path_work &work, const path_thread &at, int32_t piece,
                                       int32_t array) {
    int64_t row = (static_cast<int64_t>(piece) * 7 + array) * PATH_OCTET + at.key;
    return work.hub_sums + row * work.dim + 8 * at.part;
}

#endif
