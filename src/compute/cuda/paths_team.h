/* A row of a site is walked by a team of threads, eight numbers of one key per thread; rows of hubs in
 * pieces, whose results are put together by another kernel. */
#ifndef VLP_COMPUTE_CUDA_PATHS_TEAM_H
#define VLP_COMPUTE_CUDA_PATHS_TEAM_H

#include "compute/cuda/paths.h"

/* What a team walks: a site, or a piece of a hub's. */
struct path_unit {
    int32_t octet, node;
    uint2 site;
    uint32_t touched;
    int32_t begin, end; /* slots */
    int32_t piece;      /* of a hub, by octet; -1: no hub */
};

/* A thread's place in its team, and the unit it works at. */
struct path_thread : path_unit {
    int32_t team, teams; /* of the block */
    int32_t key, part;   /* of the octet; of dim / 8 */
    int32_t row;         /* -1: the key has none */
    uint32_t bit;        /* of the key in words over the group */
    bool check;          /* edges of the node are out of the graph of a key of the octet */
};

/* The dimension, where kernels are compiled for it; 0: for any. */
template <int DIM> __device__ inline int32_t path_dim(const path_work &work) {
    return DIM > 0 ? DIM : work.dim;
}

/* Keeps an address in registers: the compiler would compute it anew for every slot of a walk. */
template <class T> __device__ inline T *path_hold(T *address) {
    size_t global = __cvta_generic_to_global(address);
    asm volatile("" : "+l"(global));
    return static_cast<T *>(__cvta_global_to_generic(global));
}

__device__ inline path_thread path_thread_of(int32_t dim) {
    path_thread out;
    int32_t parts = dim / 8, size = PATH_OCTET * parts, lane = static_cast<int32_t>(threadIdx.x) % size;
    out.teams = PATH_THREADS / size;
    out.team = static_cast<int32_t>(threadIdx.x) / size;
    out.key = lane / parts;
    out.part = lane % parts;
    return out;
}

__device__ inline path_unit path_unit_at(const path_work &work, const path_level &level, int32_t octet,
                                         int32_t node) {
    path_unit out;
    out.octet = octet;
    out.node = node;
    out.site = level.sites[static_cast<int64_t>(octet) * work.graph.entities + node];
    out.touched = work.touched[node];
    out.begin = work.graph.begin[node];
    out.end = work.graph.begin[node + 1];
    out.piece = -1;
    return out;
}

/* The units of a level are the pieces of hubs, for every octet, then the listed sites. */
__device__ inline int32_t path_units(const path_work &work, const path_level &level) {
    return work.octets * work.graph.pieces + level.counts->sites;
}

__device__ inline path_unit path_load_unit(const path_work &work, const path_level &level,
                                           int32_t unit) {
    int32_t pieces = work.octets * work.graph.pieces;
    if (unit >= pieces) {
        uint32_t listed = level.list[unit - pieces];
        return path_unit_at(work, level, static_cast<int32_t>(listed >> 30),
                            static_cast<int32_t>(listed & 0x3fffffff));
    }
    int2 piece = work.graph.piece[unit % work.graph.pieces];
    path_unit out = path_unit_at(work, level, unit / work.graph.pieces, piece.x);
    out.piece = unit;
    out.begin = piece.y;
    out.end = min(out.end, piece.y + work.graph.piece_size);
    return out;
}

/* back: rows without a gradient are none. */
__device__ inline void path_enter(path_thread *at, const path_unit &unit, bool back = false) {
    bool has = back ? path_has_gradient(unit.site, at->key) : path_has_row(unit.site, at->key);
    *static_cast<path_unit *>(at) = unit;
    at->row = has ? path_row(unit.site, at->key) : -1;
    at->bit = 1u << (unit.octet * PATH_OCTET + at->key);
    at->check = unit.touched >> (PATH_OCTET * unit.octet) & 0xff;
}

/* Numbers of a thread in hub_sums: array 0 .. 6 of a piece. */
__device__ inline float *path_hub_sums(const path_work &work, const path_thread &at, int32_t piece,
                                       int32_t array) {
    int64_t row = (static_cast<int64_t>(piece) * 7 + array) * PATH_OCTET + at.key;
    return work.hub_sums + row * work.dim + 8 * at.part;
}

#endif
