/* A row of a site is walked by a team of 8 dim / 8 threads, eight numbers of one key per thread; the row
 * of a hub by all teams of a block, piece by piece. */
#ifndef VLP_COMPUTE_CUDA_PATHS_TEAM_H
#define VLP_COMPUTE_CUDA_PATHS_TEAM_H

#include "compute/cuda/paths.h"

/* A thread's place in its team, and the site it works at. */
struct path_thread {
    int32_t team, teams, lane, size;
    int32_t key, part; /* of the octet; of dim / 8 */
    int32_t octet, node;
    path_octet sites;
    uint2 site;   /* in the layer whose rows are walked */
    int32_t row;  /* -1: the key has none */
    uint32_t bit; /* of the key in words over the group */
    bool check;   /* edges of the node are out of the graph of a key of the octet */
};

__device__ inline path_thread thread_of(int32_t dim) {
    path_thread out;
    int32_t parts = dim / 8;
    out.size = PATH_OCTET * parts;
    out.teams = PATH_THREADS / out.size;
    out.team = static_cast<int32_t>(threadIdx.x) / out.size;
    out.lane = static_cast<int32_t>(threadIdx.x) % out.size;
    out.key = out.lane / parts;
    out.part = out.lane % parts;
    return out;
}

__device__ inline void enter_site(path_thread *at, const path_work &work, const path_level &level,
                                  uint32_t listed) {
    at->octet = static_cast<int32_t>(listed >> 30);
    at->node = static_cast<int32_t>(listed & 0x3fffffff);
    at->sites = path_octet_of(work, at->octet);
    at->site = level.sites[path_site(work, at->sites, at->node)];
    at->row = path_has_row(at->site, at->key) ? path_row(at->site, at->key) : -1;
    at->bit = 1u << (at->octet * PATH_OCTET + at->key);
    at->check = work.touched[at->node] >> (PATH_OCTET * at->octet) & 0xff;
}

/* The sum over teams, for those of the first; every thread of the block calls it. */
__device__ inline float sum_teams(float value, float *shared, const path_thread &at) {
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int32_t team = 1; at.team == 0 && team < at.teams; team++)
        value += shared[team * at.size + at.lane];
    return value;
}

#endif
