/* Internals of the path model on the CPU.
 *
 * A query is computed by one thread over a local graph: the entities it reaches, numbered in
 * breadth-first order, so that the entities with a state in layer l are a prefix. Rows of states are
 * padded with zeros to `width`, a multiple of 16. Rows that are computed together are called a block:
 * aggregation, product and normalization of a block stay in the L1 and L2 caches. */
#ifndef VLP_COMPUTE_CPU_PATHS_INTERNAL_H
#define VLP_COMPUTE_CPU_PATHS_INTERNAL_H

#include "compute/cpu/cpu.h"

enum {
    PATH_ROWS = 48,    /* of a block, a multiple of every kernel's rows at a time */
    PATH_CLASSES = 64, /* classes of degrees with an update matrix of their own, at most */
    PATH_FEW = 8,      /* rows of a class that are not worth a product of their own */
    PATH_PARTS = 5,    /* of y: state, mean, maximum, minimum, deviation */
    PATH_GROUPS = 32   /* sums of gradients: of keys i, i + PATH_GROUPS, .. */
};

/* ---- The local graph ----------------------------------------------------------------------------- */

/* An edge into a node of the local graph. */
typedef struct path_edge {
    int32_t source, relation;
} path_edge;

/* A node. Its level is the number of hops from the head entity; without `reached_only` that of all
 * others is 1. Edges whose source has no state in any layer are left out, but count in the degree. */
typedef struct path_node {
    int32_t entity, degree;
    int32_t begin, same, farther, end; /* edges from nearer nodes, from the same level, from farther */
    uint8_t level;
    uint8_t degree_class;
} path_node;

typedef struct path_local {
    /* By entity, by triple; cleared after every query. */
    int32_t *number;    /* (entities) local number, -1 */
    uint64_t *visited;  /* (entities) bits: reached so far */
    uint64_t *chosen;   /* (entities) bits: candidates however far */
    uint64_t *removed;  /* (triples) bits: out of the graph */
    uint64_t *incident; /* (entities) bits: has an edge that is out of the graph */
    bool check_all;     /* every entity may have one */
    int64_t entity_capacity, triple_capacity;

    int32_t *found;   /* (entities + 1) those of the nodes */
    path_node *nodes; /* in breadth-first order */
    uint8_t *last;    /* (nodes) the last layer whose state is needed; 0: none is computed */
    int64_t node_capacity, last_capacity;
    path_edge *edges;
    int64_t edge_capacity;
    int32_t *slots; /* (edges) of the graph, where wanted */
    int64_t slot_capacity;
    int32_t *order; /* computed nodes by class: order[class_begin[c] .. class_begin[c + 1]) */
    int64_t order_capacity;
    int32_t class_begin[PATH_CLASSES + 2];
    int32_t *queue; /* computed nodes, by descending last layer; candidates first */
    int64_t queue_capacity;
    path_edge *spare; /* edges of one node: from the same level, from farther */
    int64_t spare_capacity;

    int32_t node_count, edge_count, queue_count;
    int32_t candidate_count; /* candidates are the first of the queue */
    int32_t near_count; /* the first of these within `near` hops; all others are sampled, or answers */
    int32_t reached[VLP_PATH_MAX_LAYERS + 1]; /* nodes with a state in layer l */
    int32_t unreached;                        /* entities without a state in any layer */
} path_local;

/* What a local graph is built for. */
typedef struct path_scope {
    const vlp_path_form *form;
    const vlp_path_graph *graph;
    int32_t head;
    bool all;               /* every entity is a candidate; else: */
    int32_t near;           /* entities within this many hops */
    uint32_t share;         /* others with a probability of share / 2^16 */
    uint64_t seed;          /* of that choice */
    const int32_t *answers; /* (answer_count), and these */
    int64_t answer_count;
    int32_t classes; /* those from it on are one */
    bool slots;      /* are wanted */
} path_scope;

vlp_status path_local_open(path_local *local, const vlp_path_graph *graph);
void path_local_close(path_local *local);
/* Take out: both edges of a slot of an entity; all edges between an entity and others that are hidden;
 * triples with a probability of share / 2^16, of which nothing else is out; a
 * triple. */
void path_local_hide(path_local *local, const vlp_path_graph *graph, int32_t entity, int64_t slot);
void path_local_hide_pairs(path_local *local, const vlp_path_graph *graph, int32_t entity,
                           const int32_t *others, const uint8_t *hidden, int64_t count);
void path_local_drop(path_local *local, const vlp_path_graph *graph, uint64_t seed, uint32_t share);
void path_local_remove(path_local *local, int32_t triple);
vlp_status path_local_build(path_local *local, const path_scope *scope);
/* Back to no query and nothing taken out. */
void path_local_clear(path_local *local);

/* The end of a node's edges whose sources have a state in layer `layer`. */
static inline int32_t path_edges_end(const path_local *local, int32_t node, int32_t layer) {
    const path_node *at = local->nodes + node;
    if (layer > 0 && node < local->reached[layer - 1]) return at->end;
    return node < local->reached[layer] ? at->farther : at->same;
}

/* ---- Weights ------------------------------------------------------------------------------------- */

/* The sizes of padded arrays. */
typedef struct path_sizes {
    int32_t layers, dim, relations;
    int64_t width, hidden; /* dim and 2 dim, rounded up to a multiple of 16 */
    int64_t matrix;        /* PATH_PARTS width * width: an update matrix */
} path_sizes;

path_sizes path_sizes_of(const vlp_path_form *form);

/* An array that grows without keeping its content, cache-line aligned. */
typedef struct path_array {
    float *values;
    int64_t capacity;
} path_array;

vlp_status path_array_grow(vlp_compute *compute, path_array *array, int64_t count);
void path_array_free(vlp_compute *compute, path_array *array);

/* What queries are computed with, made from the tables. Rows are padded with zeros. */
typedef struct path_weights {
    path_sizes sizes;
    int32_t classes; /* of degrees: those below it have update matrices of their own */
    path_array common, asked_arrays;
    int32_t *slots, *asked; /* (relations) number of a relation among those asked for, or -1; these */
    int64_t slot_capacity, asked_capacity;
    int32_t asked_count;
    float *queries;  /* (asked_count, width) q_r */
    float *relation; /* (asked_count, layers, relations, width) w_l */

    float *update;             /* (layers, classes + 2, 5 width, width) W + s W' by class, then W, W' */
    float *transposed;         /* (layers, classes + 2, width, 5 width) the same, transposed */
    uint32_t *update_bf16;     /* (layers, classes + 2, 5 width / 2, width) pairs of rows; NULL: none */
    uint32_t *transposed_bf16; /* (layers, classes + 2, width / 2, 5 width) */
    float *bias;               /* (layers, classes + 2, width) b + s b' by class, then b, b' */
    float *norm;               /* (layers, 2, width) scale, shift */
    float *hidden;             /* (2, width, hidden) of x, of q */
    float *transposed_hidden;  /* (hidden, width) of x */
    float *hidden_bias;        /* (hidden) */
    float *output;             /* (hidden) */
    float output_bias;
    float scales[VLP_PATH_MAX_CLASSES]; /* s of a class */
} path_weights;

struct path_kernels;
struct path_bf16_kernels;

/* Sets all but what depends on the relations asked for. bf16: NULL, or to round update matrices with. */
vlp_status path_weights_set(vlp_compute *compute, path_weights *weights, const vlp_path_model *model,
                            const struct path_bf16_kernels *bf16);
/* The relations of queries: each distinct one gets a slot. */
vlp_status path_weights_ask(vlp_compute *compute, path_weights *weights, const vlp_path_model *model,
                            const int32_t *relations, int32_t count);
void path_weights_free(vlp_compute *compute, path_weights *weights);

/* The matrices of a layer and class; `classes` is W, `classes` + 1 is W'. */
static inline int64_t path_matrix(const path_weights *weights, int32_t layer, int32_t rows) {
    return (int64_t)layer * (weights->classes + 2) + rows;
}

/* ---- Gradients ----------------------------------------------------------------------------------- */

/* Of the tables, summed over a group of keys. */
typedef struct path_gradients {
    float *update;      /* (layers, 2, 5 width, width) */
    float *bias;        /* (layers, 2, width) */
    float *norm;        /* (layers, 2, width) */
    float *hidden;      /* (2, width, hidden) */
    float *hidden_bias; /* (hidden) */
    float *output;      /* (hidden), bias */
} path_gradients;

/* Of what depends on the relation of one key. */
typedef struct path_key_gradients {
    float *query;    /* (width) of q_r, without what it gets through w_l */
    float *relation; /* (layers, relations, width) of w_l */
} path_key_gradients;

/* Floats of both, and their parts in an array of so many. */
int64_t path_gradients_size(const path_sizes *sizes);
path_gradients path_gradients_at(const path_sizes *sizes, float *values);
int64_t path_key_gradients_size(const path_sizes *sizes);
path_key_gradients path_key_gradients_at(const path_sizes *sizes, float *values);

/* The gradients of a batch. */
typedef struct path_batch_gradients {
    int32_t groups, keys;
    float *group_values;      /* (groups, path_gradients_size); the first becomes the sum */
    float *key_values;        /* (keys, path_key_gradients_size) */
    const int32_t *relations; /* (keys) */
} path_batch_gradients;

/* Sums them, in an order of their numbers alone, into the gradients of the tables. */
vlp_status path_gradients_reduce(vlp_compute *compute, const vlp_path_tables *grads,
                                 const path_weights *weights, const vlp_path_model *model,
                                 const path_batch_gradients *batch);

/* ---- The loss ------------------------------------------------------------------------------------ */

/* A key of a step. */
typedef struct path_key {
    const int32_t *answers; /* (count) */
    const uint8_t *hidden;  /* (count) */
    int64_t count;
    double weight;   /* of the key's loss, a mean over its hidden answers */
    float log_share; /* logarithm of the probability of sampled candidates */
    float prune;
    uint64_t seed;
} path_key;

/* ---- One query ----------------------------------------------------------------------------------- */

/* What a thread computes a query with. */
typedef struct path_work {
    path_local local;
    const struct path_kernels *kernels;
    const struct path_bf16_kernels *bf16; /* NULL: products are in fp32 */
    const path_weights *weights;
    const vlp_path_graph *graph;
    int32_t slot; /* the query's relation */

    path_array state_array, block_array, gradient_array, candidate_array;
    float *x[VLP_PATH_MAX_LAYERS + 1];   /* (reached, width) states */
    float *unit[VLP_PATH_MAX_LAYERS];    /* (reached in the next layer, width) normalized */
    float *inverse[VLP_PATH_MAX_LAYERS]; /* (reached in the next layer) of deviations */
    float *offset;                       /* (hidden) q H + bias */
    float zero_score;                    /* of a state of zeros */
    float *scores, *score_grads;         /* (candidates) */
    float *state_grads, *changes;        /* (nodes, width) gradients of x, of z by position in `rows` */
    uint8_t *active;                     /* (nodes) whether a row of state_grads is set */
    int32_t *rows;                       /* (nodes) that are computed in a layer, by class */
    int64_t active_capacity, rows_capacity;
    /* Of a block. */
    float *y, *y_grad;           /* (PATH_ROWS, 5 width) */
    float *z, *scaled;           /* (PATH_ROWS, width) */
    float *hidden;               /* (PATH_ROWS, hidden) */
    int32_t *largest, *smallest; /* (PATH_ROWS, width) */
    uint32_t *y_bf16, *z_bf16;   /* (PATH_ROWS, 5 width / 2), (PATH_ROWS, width / 2) pairs */
} path_work;

void path_work_free(vlp_compute *compute, path_work *work);
/* Scores of the candidates of the local graph. keep: what the backward pass needs. */
vlp_status path_forward(vlp_compute *compute, path_work *work, bool keep);
/* Its loss, from the scores; score_grads and *zero_grad, that of zero_score, are set. */
double path_loss(path_work *work, float *zero_grad, const path_key *key);
/* From score_grads, and zero_grad. messages: as in path_scatter, (layers, edges). */
vlp_status path_backward(vlp_compute *compute, path_work *work, const path_gradients *grads,
                         const path_key_gradients *key_grads, float zero_grad, float *messages);

#endif
