/* Internals of the path model on a GPU.
 *
 * Up to 32 keys are computed at a time, a group: sets of entities are 32-bit words over the keys, one
 * word per entity. Entities are numbered by descending degree ("nodes"), so that teams of threads that
 * work side by side have rows of about the same length, and entities of high degree ("hubs") come first.
 *
 * Eight keys, an octet, share a site: (octet, node). A site has a row of states for each of its keys
 * that needs one; rows of a site are next to each other, so that a team of 8 dim / 8 threads reads the
 * states of a neighbour coalesced, eight numbers per thread. All sums are computed in a fixed order. */
#ifndef VLP_COMPUTE_CUDA_PATHS_H
#define VLP_COMPUTE_CUDA_PATHS_H

#include "compute/cuda/device.h"

enum {
    PATH_KEYS = 32,
    PATH_OCTET = 8,
    PATH_PARTS = 5,       /* of y: state, mean, maximum, minimum, deviation */
    PATH_MAX_PIECE = 224, /* slots that a team walks at once, at most 254 */
    PATH_PADDING = 8,     /* slots that may be read behind the last */
    PATH_CHUNK = 64,      /* segments whose gradients of a relation's weights are summed together */
    PATH_THREADS = 256,   /* of most blocks */
    PATH_LOSS_BLOCKS = 16 /* that share the entities of a key */
};

/* ---- The graph ----------------------------------------------------------------------------------- */

/* A slot (r, u) of a node's row. */
struct __align__(16) path_slot {
    int32_t node;     /* u */
    int32_t relation; /* r */
    int32_t position; /* of the reverse slot in the row of u */
    /* The last slot of a segment has its number, others -1. Segments are slots of one row, piece and
     * relation; they are numbered by relation. */
    int32_t segment;
};

/* A vlp_path_graph by nodes. */
struct path_layout {
    int32_t entities, relations, segments, chunks;
    /* Entities of a degree above `piece` are hubs: their rows are computed in pieces. */
    int32_t piece_size, hubs, pieces;
    int64_t slot_count, triple_count;
    const int32_t *entity, *node; /* (entities) of a node; of an entity */
    const int32_t *begin;         /* (entities + 1) into the slots, by node */
    const path_slot *slots;       /* (2 triples), and padding */
    const int32_t *reverse;       /* (2 triples) the slot of the other direction */
    /* (2 triples), and padding; of the same slots: the source, the relation of its message */
    const int2 *edges;
    const int2 *piece;             /* (pieces) of hubs: the node, the first slot */
    const int32_t *hub_piece;      /* (hubs + 1) */
    const int2 *triples;           /* (triples) the two slots of each */
    const int32_t *segment_node;   /* (segments) */
    const int2 *chunk;             /* (chunks) begin and end in the segments, all of one relation */
    const int32_t *relation_chunk; /* (relations + 1) */
};

/* The layout of a graph, made when it is first asked for; it lives as long as the graph's arrays.
 * Reading the graph waits for the device: not within a recording, where a layout is always there. */
vlp_status cuda_path_layout(vlp_compute *compute, path_layout *out, const vlp_path_graph *graph);

/* ---- A group of keys ----------------------------------------------------------------------------- */

struct path_key {
    int32_t head, relation; /* head: a node */
    uint64_t seed;
    double weight;  /* of the key's loss */
    int64_t answer; /* the graph's slot of the first answer */
    int64_t hidden; /* where its flags begin */
    int32_t answers;
};

/* A softmax over some entities, as exponentials of what is above the largest. */
struct path_softmax {
    float largest;
    double total, unreached; /* unreached: entities without a state */
};

/* That of a key, and what its gradients are made of. */
struct path_key_softmax {
    float largest;
    double total, scale;      /* scale: of exponentials */
    double weight, log_total; /* weight: of a hidden answer */
};

struct path_counts {
    int32_t rows, sites; /* sites: without those of hubs */
};

/* A layer's rows. Sites are numbered by octet, then by node. */
struct path_level {
    /* (octets entities) keys with a row and, from bit 8 on, with a gradient; the first row */
    const uint2 *sites;
    const uint32_t *list; /* those with a row, without hubs: node | octet << 30 */
    const uint32_t *rows; /* (rows) node | key << 27 */
    const path_counts *counts;
};

/* What a group is computed with: shapes, and working memory. T is float or bf16. */
struct path_work {
    path_layout graph;
    int32_t keys, octets, layers, dim;
    float mean_log_degree;
    int64_t capacity; /* rows of a layer, at most */
    /* Sites of their own have, in this order, the first layers, the layers between together, and the
     * last. */
    int32_t levels;
    bool keep;           /* all layers, for the backward pass; else the last two */
    bool layers_alike;   /* from layer 1 on all entities have rows */
    bool dense;          /* and every site has eight */
    int32_t pruned_from; /* from this layer on rows without a gradient are left out on the way back */
    int32_t blocks, update_blocks; /* that write partial sums of the readout, of the update */

    path_key *key;               /* (32) */
    uint32_t *out;               /* (slots), and padding: keys for which the edge is out of the graph */
    uint32_t *touched;           /* (entities) keys for which one of its edges is */
    uint32_t *known, *hidden;    /* (entities) answers */
    uint32_t *hops;              /* (reached levels, entities) within that many hops */
    uint32_t *near_hops, *spare; /* (entities) */
    uint32_t *active;            /* (levels, entities) keys with a row */
    const uint32_t *reached;     /* (entities) keys that reach an entity; NULL: all do */
    int64_t *left;               /* (32) edges that a limit leaves */
    uint64_t *site_sums;         /* (levels, blocks of sites) */
    uint2 *sites;                /* (levels, octets entities) */
    uint32_t *list, *rows;       /* (levels, octets entities), (levels, capacity) */
    path_counts *counts;         /* (levels) */
    /* On the way back, where rows are left out: keys with a gradient, sites and rows with one. */
    uint32_t *back_active, *back_list, *back_rows;
    path_counts *back_counts;

    float *query;   /* (32, dim) q_r */
    void *weights;  /* T (layers, octets, relations, 8, dim) w_l */
    void *x;        /* T (layers, capacity, dim) states; two layers unless they are kept */
    float *last;    /* (capacity, dim) x_L */
    void *features; /* T (layers, capacity, 4, dim) mean, maximum, minimum, deviation */
    /* (layers, octets, slots, 8, dim / 8) by slot of the source: bits of the eight numbers of which a
     * message was the maximum, then of which it was the minimum. Set where a row reads the message. */
    uint16_t *hits;
    int32_t *hub_slots;          /* (layers, octets hubs, 2, 8, dim) of the maxima and minima of hubs */
    uint16_t *boundary_hits;     /* (layers, 32, dim / 8) the same of the boundary at a head entity */
    int32_t *degree;             /* (layers, capacity) */
    float *scale;                /* (layers, capacity) s */
    float *offset;               /* (32, 2 dim) q H + bias of the readout */
    float *hub_sums;             /* (octets pieces, 7, 8 dim) what the pieces of hubs give */
    float *zero_score;           /* (32) of a state of zeros */
    float *scores, *score_grads; /* (capacity) */
    float *zero_grad;            /* (32) */
    double *losses;              /* (32) */
    path_softmax *softmax;       /* (32, PATH_LOSS_BLOCKS) */
    path_key_softmax *key_softmax; /* (32) */

    float *state_grads, *own_grads; /* (capacity, dim) of x; those that rows give to themselves */
    void *gradients;                /* T (capacity, dim / 8, 16) g1, g2: of a message m, g1 + m g2 */
    void *extremes;                 /* T (capacity, dim / 8, 16) of the maximum, of the minimum */
    float *changes;        /* (capacity, dim) gradients of z; or (capacity, 2 dim) of the hidden */
    void *partial;         /* T (octets, segments, 8, dim) of w */
    float *chunk_sums;     /* (layers, octets, chunks, 8, dim) */
    float *boundary;       /* (layers, 32, dim) of q, through the boundary */
    float *update_partial; /* (layers, update_blocks, 10 dim^2) */
    float *norm_partial;   /* (layers, update_blocks, 4 dim) */
    float *hidden_partial; /* (blocks, 2 dim^2) */
    float *output_partial; /* (blocks, 2 dim + 1) */
    float *offset_partial; /* (blocks, 32, 2 dim) */
    float *offset_grad;    /* (32, 2 dim) */
    float *query_partial;  /* (layers, column blocks, 32, dim) */
    float *query_grad;     /* (32, dim) */
    float *transposed;     /* (layers, 2 dim, 5 dim) update matrices; or packed for tensor cores */
};

/* The tables a kernel reads or writes. */
struct path_pointers {
    float *table[VLP_PATH_TABLES];
};

/* What a group is computed from. */
struct path_operands {
    const vlp_path_form *form;
    const vlp_path_graph *graph; /* its arrays are by entity */
    path_pointers values, grads;
    bool bf16;
    bool add; /* gradients are added to those of groups before */
};

/* ---- paths_reach.cu: what is out of the graph, and the rows of every layer ---- */

/* Which entities are candidates. */
struct path_scope {
    bool all;
    int32_t near;
    uint32_t share; /* of those farther, by 2^16 */
};

void cuda_path_hide(vlp_compute *compute, const path_work *work, const vlp_path_graph *graph,
                    const uint8_t *hidden, const vlp_path_options *options);
/* Triples out of the graph of each key; first: the group's first query. */
void cuda_path_remove(vlp_compute *compute, const path_work *work, const vlp_path_queries *queries,
                      int32_t first);
/* From `out`, `known` and the keys: hops, active, and sites. */
void cuda_path_reach(vlp_compute *compute, path_work *work, const vlp_path_form *form,
                     const path_scope *scope);

/* From `back_active` of the last layer: which rows of the others have a gradient. */
void cuda_path_reach_back(vlp_compute *compute, const path_work *work);

/* ---- paths_messages.cu ---- */
void cuda_path_aggregate(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16);
/* The hits of all layers' hubs, before the way back. */
void cuda_path_hub_hits(vlp_compute *compute, const path_work *work);
/* From the gradients of a layer's messages: those of its states, and of w by chunks. */
void cuda_path_collect(vlp_compute *compute, const path_work *work, int32_t layer, bool bf16);
/* Of a single key: out (2 triples) by slots of the graph. */
void cuda_path_factors(vlp_compute *compute, float *out, const path_work *work,
                       const vlp_path_graph *graph, int32_t layer, bool bf16);

/* ---- paths_update.cu ---- */
bool cuda_path_on_tensor_cores(const path_work *work, const path_operands *operands);
void cuda_path_update_open(vlp_compute *compute, const path_work *work, const path_operands *operands);
void cuda_path_update(vlp_compute *compute, const path_work *work, const path_operands *operands,
                      int32_t layer);
/* From state_grads of layer + 1: gradients, extremes, own_grads, boundary and partial sums. */
void cuda_path_update_backward(vlp_compute *compute, const path_work *work,
                               const path_operands *operands, int32_t layer);

/* ---- paths_readout.cu ---- */
void cuda_path_scores(vlp_compute *compute, const path_work *work, const path_operands *operands);
void cuda_path_readout_backward(vlp_compute *compute, const path_work *work,
                                const path_operands *operands);

/* ---- paths_loss.cu ---- */
/* Losses of the keys, and gradients of the scores. */
void cuda_path_loss(vlp_compute *compute, const path_work *work, const vlp_path_graph *graph,
                    const uint8_t *hidden, const vlp_path_options *options);

/* ---- paths_weights.cu ---- */
/* q, w_l, x_0. */
void cuda_path_weights(vlp_compute *compute, const path_work *work, const path_operands *operands);
int32_t cuda_path_column_blocks(const path_work *work); /* of query_partial */
/* Gradients of all tables from partial sums. */
void cuda_path_reduce(vlp_compute *compute, const path_work *work, const path_operands *operands);

/* ---- Sites and rows ------------------------------------------------------------------------------ */

constexpr uint32_t PATH_NODE_BITS = 27; /* of `rows`; `list` has three more */

__host__ __device__ inline int64_t path_sites(const path_work &work) {
    return static_cast<int64_t>(work.octets) * work.graph.entities;
}

__host__ __device__ inline int64_t path_level_number(const path_work &work, int32_t layer) {
    if (layer == work.layers) return work.levels - 1;
    return layer < work.levels - 2 ? layer : work.levels - 2;
}

__host__ __device__ inline path_level path_level_of(const path_work &work, int32_t layer) {
    int64_t level = path_level_number(work, layer);
    return {work.sites + level * path_sites(work), work.list + level * path_sites(work),
            work.rows + level * work.capacity, work.counts + level};
}

__host__ __device__ inline const uint32_t *path_active_of(const path_work &work, int32_t layer) {
    return work.active + path_level_number(work, layer) * work.graph.entities;
}

/* A layer's rows on the way back: `rows` are numbers of rows, NULL: all. */
__host__ __device__ inline path_level path_back_level_of(const path_work &work, int32_t layer) {
    path_level out = path_level_of(work, layer);
    out.rows = nullptr;
    if (layer < work.pruned_from) return out;
    out.list = work.back_list + layer * path_sites(work);
    out.rows = work.back_rows + layer * work.capacity;
    out.counts = work.back_counts + layer;
    return out;
}

__host__ __device__ inline const uint32_t *path_back_active_of(const path_work &work, int32_t layer) {
    if (layer < work.pruned_from) return path_active_of(work, layer);
    return work.back_active + static_cast<int64_t>(layer) * work.graph.entities;
}

/* The layer's part of an array that holds all layers, or the last two. */
__host__ __device__ inline int64_t path_kept(const path_work &work, int32_t layer) {
    return (work.keep ? layer : layer & 1) * work.capacity;
}

__device__ inline bool path_has_row(uint2 site, int32_t key) {
    return site.x >> key & 1;
}

__device__ inline bool path_has_gradient(uint2 site, int32_t key) {
    return site.x >> (PATH_OCTET + key) & 1;
}

/* Of an entry of `rows`. */
__device__ inline int32_t path_key_of(uint32_t listed) {
    return static_cast<int32_t>(listed >> PATH_NODE_BITS);
}

__device__ inline int32_t path_node_of(uint32_t listed) {
    return static_cast<int32_t>(listed & ((1u << PATH_NODE_BITS) - 1));
}

/* The row of key 0 .. 7 of an octet. */
__device__ inline int32_t path_row(uint2 site, int32_t key) {
    return static_cast<int32_t>(site.y) + __popc(site.x & ((1u << key) - 1));
}

/* The row of a key of the group at a node; -1: none. */
__device__ inline int32_t path_find_row(const path_work &work, const path_level &level, int32_t key,
                                        int32_t node) {
    uint2 site = level.sites[static_cast<int64_t>(key / PATH_OCTET) * work.graph.entities + node];
    return path_has_row(site, key % PATH_OCTET) ? path_row(site, key % PATH_OCTET) : -1;
}

/* The same, of a row that has a gradient. */
__device__ inline int32_t path_find_gradient(const path_work &work, const path_level &level, int32_t key,
                                             int32_t node) {
    uint2 site = level.sites[static_cast<int64_t>(key / PATH_OCTET) * work.graph.entities + node];
    return path_has_gradient(site, key % PATH_OCTET) ? path_row(site, key % PATH_OCTET) : -1;
}

/* Raises a kernel's shared memory above what every kernel has. */
template <class Kernel>
static inline void path_allow_shared(vlp_compute *compute, Kernel kernel, size_t bytes) {
    if (bytes > 48 << 10)
        cuda_note(compute,
                  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(bytes)),
                  "shared memory of a kernel");
}

/* ---- Eight numbers ------------------------------------------------------------------------------- */

template <class T> struct eight;
template <> struct eight<float> { float4 low, high; };
template <> struct eight<__nv_bfloat16> { uint4 bits; };

__device__ inline eight<float> load_eight(const float *from) {
    const float4 *at = reinterpret_cast<const float4 *>(from);
    return {at[0], at[1]};
}

__device__ inline eight<__nv_bfloat16> load_eight(const __nv_bfloat16 *from) {
    return {*reinterpret_cast<const uint4 *>(from)};
}

template <class T> __device__ inline eight<T> zero_eight();
template <> __device__ inline eight<float> zero_eight() {
    return {make_float4(0, 0, 0, 0), make_float4(0, 0, 0, 0)};
}
template <> __device__ inline eight<__nv_bfloat16> zero_eight() {
    return {make_uint4(0, 0, 0, 0)};
}

__device__ inline void unpack(float (&to)[8], const eight<float> &from) {
    to[0] = from.low.x, to[1] = from.low.y, to[2] = from.low.z, to[3] = from.low.w;
    to[4] = from.high.x, to[5] = from.high.y, to[6] = from.high.z, to[7] = from.high.w;
}

__device__ inline void unpack(float (&to)[8], const eight<__nv_bfloat16> &from) {
    uint32_t words[4] = {from.bits.x, from.bits.y, from.bits.z, from.bits.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

__device__ inline void store_eight(float *to, const float (&from)[8]) {
    float4 *at = reinterpret_cast<float4 *>(to);
    at[0] = make_float4(from[0], from[1], from[2], from[3]);
    at[1] = make_float4(from[4], from[5], from[6], from[7]);
}

__device__ inline uint32_t pack_two(float low, float high) {
    __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&two);
}

__device__ inline void store_eight(__nv_bfloat16 *to, const float (&from)[8]) {
    *reinterpret_cast<uint4 *>(to) = make_uint4(pack_two(from[0], from[1]), pack_two(from[2], from[3]),
                                                pack_two(from[4], from[5]), pack_two(from[6], from[7]));
}

/* Past the caches' other contents: what is read once, much later. */
__device__ inline void stream_eight(float *to, const float (&from)[8]) {
    float4 *at = reinterpret_cast<float4 *>(to);
    __stcs(at, make_float4(from[0], from[1], from[2], from[3]));
    __stcs(at + 1, make_float4(from[4], from[5], from[6], from[7]));
}

__device__ inline void stream_eight(__nv_bfloat16 *to, const float (&from)[8]) {
    __stcs(reinterpret_cast<uint4 *>(to),
           make_uint4(pack_two(from[0], from[1]), pack_two(from[2], from[3]), pack_two(from[4], from[5]),
                      pack_two(from[6], from[7])));
}

__device__ inline eight<float> stream_load(const float *from) {
    const float4 *at = reinterpret_cast<const float4 *>(from);
    return {__ldcs(at), __ldcs(at + 1)};
}

__device__ inline eight<__nv_bfloat16> stream_load(const __nv_bfloat16 *from) {
    return {__ldcs(reinterpret_cast<const uint4 *>(from))};
}

__device__ inline float to_float(float x) {
    return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
__device__ inline void put(float *to, float x) {
    *to = x;
}
__device__ inline void put(__nv_bfloat16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}

#endif
