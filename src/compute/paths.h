/* The path model, as far as computing needs to know it: its shape, its tables, the graph it reads, and
 * the operands of its operations (compute/backend.h). Compiles as C17 and CUDA.
 *
 * For a query (h, r, ?), with d numbers per state and x_0[v] = q_r at v = h, 0 elsewhere, layer l reads
 * every edge (u, p, v) of the graph, both directions of every triple:
 *
 *   message           m = x_l[u] o w_l[p],  w_l = A_l q_r + a_l, a row for each of the 2 |R| relations
 *   at v              mean, maximum, minimum and deviation over all messages and x_0[v]
 *   x_{l+1}[v]        x_l[v] + relu(norm(W_l y + b_l + s_v (W'_l y + b'_l))), y = [x_l[v], mean,
 *                     maximum, minimum, deviation], norm a layer normalization with scale and shift
 *   s_v               log(degree + 1), rounded as below, by its mean over the whole graph
 *   f_p(t)            output of one hidden layer of 2 d over [x_L[t], q_r]
 *
 * Messages of states that are 0 count. Edges that are taken out (hidden, dropped, or listed by the
 * caller) count nowhere, the degree included: else the degree tells which entities lost an edge.
 *
 * `reached_only`: x_l stays 0 at entities farther than l hops from h in the graph that is left, so that
 * work is in proportion to what a query reaches. Else every entity has a state from layer 1 on. */
#ifndef VLP_COMPUTE_PATHS_H
#define VLP_COMPUTE_PATHS_H

#include <math.h>

#include "base/base.h"
#include "base/random.h"

/* Dimensions are multiples of 8 up to the maximum. */
enum { VLP_PATH_MAX_LAYERS = 16, VLP_PATH_MAX_DIM = 128 };

#define VLP_PATH_LEAST_VARIANCE 1e-6f /* deviation = sqrt(max(variance, this)) */
#define VLP_PATH_NORM_EPSILON 1e-5f   /* added to the variance of a layer normalization */

typedef struct vlp_path_form {
    int32_t layers, dim;
    int32_t relations; /* 2 |R| */
    bool reached_only;
    /* With reached_only: at most this many edges lead to the entities that a query reaches, h apart;
     * 0: no limit. Entities are taken level by level, within a level by degree in the whole graph,
     * largest first, then by number, until one does not fit; all others are not reached. */
    int64_t edge_limit;
    /* Where that is faster, factors of the update's products, on a GPU also states, relation weights and
     * gradients of messages, are rounded to bf16. Last states and the readout are fp32; on a CPU also
     * all of what is scored. */
    bool bf16;
} vlp_path_form;

/* ---- Tables -------------------------------------------------------------------------------------- */

typedef enum vlp_path_table {
    VLP_PATH_QUERY = 0,     /* (2 |R|, d) q_r */
    VLP_PATH_RELATION,      /* (layers d, 2 |R| d) A_l: row l d + k is multiplied by q_r[k] */
    VLP_PATH_RELATION_BIAS, /* (layers, 2 |R| d) a_l */
    VLP_PATH_UPDATE,        /* (layers 2 5 d, d) W_l, then W'_l, each (5 d, d): y W */
    VLP_PATH_UPDATE_BIAS,   /* (layers 2, d) b_l, b'_l */
    VLP_PATH_NORM,          /* (layers 2, d) scale, shift */
    VLP_PATH_HIDDEN,        /* (2 d, 2 d) [x, q] H */
    VLP_PATH_HIDDEN_BIAS,   /* (1, 2 d) */
    VLP_PATH_OUTPUT,        /* (1, 2 d + 1) weights of the hidden layer, bias */
    VLP_PATH_TABLES
} vlp_path_table;

/* Values or gradients of all tables, row-major. */
typedef struct vlp_path_tables {
    float *table[VLP_PATH_TABLES];
} vlp_path_tables;

typedef struct vlp_path_shape {
    int64_t rows;
    int32_t width;
} vlp_path_shape;

VLP_FORMULA vlp_path_shape vlp_path_table_shape(const vlp_path_form *form, vlp_path_table table) {
    int32_t d = form->dim;
    vlp_path_shape shape = {1, d};
    switch (table) {
    case VLP_PATH_QUERY:
        shape.rows = form->relations;
        break;
    case VLP_PATH_RELATION:
        shape.rows = (int64_t)form->layers * d;
        shape.width = form->relations * d;
        break;
    case VLP_PATH_RELATION_BIAS:
        shape.rows = form->layers;
        shape.width = form->relations * d;
        break;
    case VLP_PATH_UPDATE:
        shape.rows = (int64_t)form->layers * 2 * 5 * d;
        break;
    case VLP_PATH_UPDATE_BIAS:
    case VLP_PATH_NORM:
        shape.rows = (int64_t)form->layers * 2;
        break;
    case VLP_PATH_HIDDEN:
        shape.rows = 2 * d;
        shape.width = 2 * d;
        break;
    case VLP_PATH_HIDDEN_BIAS:
        shape.width = 2 * d;
        break;
    case VLP_PATH_OUTPUT:
        shape.width = 2 * d + 1;
        break;
    case VLP_PATH_TABLES:
        break;
    }
    return shape;
}

/* The name a table is saved under; owned by the library. */
const char *vlp_path_table_name(vlp_path_table table);

/* The initial value of a number of a table: q_r normal, scales 1, shifts 0, all others uniform within
 * 1 / sqrt(inputs of the product). */
VLP_FORMULA float vlp_path_initial(const vlp_path_form *form, vlp_path_table table, int64_t row,
                                   int32_t column, uint64_t seed) {
    int64_t index = row * vlp_path_table_shape(form, table).width + column;
    vlp_random4 r = vlp_random(seed, VLP_STREAM_PATH_VALUES, (uint64_t)index, (uint32_t)table);
    float unit = vlp_random_unit(r.v[0]), inputs = 1;
    switch (table) {
    case VLP_PATH_QUERY:
        return sqrtf(-2 * logf(1 - unit)) * cosf(6.2831853f * vlp_random_unit(r.v[1]));
    case VLP_PATH_NORM:
        return row % 2 == 0 ? 1.0f : 0.0f;
    case VLP_PATH_RELATION:
    case VLP_PATH_RELATION_BIAS:
        inputs = (float)form->dim;
        break;
    case VLP_PATH_UPDATE:
    case VLP_PATH_UPDATE_BIAS:
        inputs = 5 * (float)form->dim;
        break;
    case VLP_PATH_HIDDEN:
    case VLP_PATH_HIDDEN_BIAS:
    case VLP_PATH_OUTPUT:
        inputs = 2 * (float)form->dim;
        break;
    case VLP_PATH_TABLES:
        break;
    }
    return (2 * unit - 1) / sqrtf(inputs);
}

/* ---- The graph ----------------------------------------------------------------------------------- */

/* Both directions of every triple, in the rows of a vlp_graph (graph/graph.h): a triple (h, r, t) is the
 * slot (r, t) of h's row and the slot (r + |R|, h) of t's row; slots of a row are sorted by relation.
 * Through slot (r, u) of v's row v gets the message of the edge (u, inverse of r, v). */
typedef struct vlp_path_graph {
    int32_t entities;
    int32_t relations; /* 2 |R| */
    int64_t triples;
    const int64_t *offset;   /* (entities + 1) into the slots */
    const int32_t *neighbor; /* (2 triples) */
    const int32_t *relation; /* (2 triples) */
    const int32_t *triple;   /* (2 triples) */
    /* Of vlp_path_graph_measure. */
    float mean_log_degree;    /* mean over entities of log(degree + 1); 1 where that is 0 */
    int32_t frequent_classes; /* of degrees: rows of one below it are worth a product of their own */
} vlp_path_graph;

/* Sets what follows from the arrays, which are in host memory. */
void vlp_path_graph_measure(vlp_path_graph *graph);

VLP_FORMULA int32_t vlp_path_inverse(int32_t relation, int32_t relations) {
    return relation < relations / 2 ? relation + relations / 2 : relation - relations / 2;
}

/* Degrees are told apart up to 15; above, by quarters of an octave of degree + 1. An exact degree would
 * be the fingerprint of an entity, and tell a model that remembers it which entities have lost an edge.
 */
enum { VLP_PATH_MAX_CLASSES = 16 + 4 * 28 };

VLP_FORMULA int32_t vlp_path_degree_class(int32_t degree) {
    uint64_t n = (uint64_t)degree + 1;
    if (n <= 16) return degree;
    int octave = 4;
    while (n >> (octave + 1)) octave++;
    uint64_t part = (n << 16) >> octave; /* 2^16 .. 2^17 - 1; quarters begin at 2^(1/4), 2^(2/4), .. */
    int quarter = (part >= 77936) + (part >= 92682) + (part >= 110218);
    return 16 + 4 * (octave - 4) + quarter;
}

/* s_v of a class of degrees: of the middle of its quarter. */
VLP_FORMULA float vlp_path_class_scale(const vlp_path_graph *graph, int32_t class_of_degree) {
    float middle = class_of_degree < 16 ? logf((float)(class_of_degree + 1))
                                        : (4 + ((float)class_of_degree - 15.5f) / 4) * 0.69314718f;
    return middle / graph->mean_log_degree;
}

/* All keys (h, r) with answers: those of key i are the neighbours of the slots offset[i] .. offset[i +
 * 1], which are all slots of one row and relation. */
typedef struct vlp_path_keys {
    int64_t count;
    const int32_t *heads, *relations; /* (count) */
    const int64_t *offset;            /* (count + 1) */
    int64_t most_answers;             /* of a key */
    /* A pass takes key turns[i] at its i-th place, in a random order: every key vlp_path_turns times. */
    int64_t turn_count;
    const int32_t *turns; /* (turn_count) */
} vlp_path_keys;

/* A key with n answers weighs sqrt(n). The whole part of it is how often a pass takes the key, each time
 * with other answers hidden; the rest is its weight in a step. */
VLP_FORMULA int64_t vlp_path_turns(int64_t answers) {
    return (int64_t)sqrt((double)answers);
}

VLP_FORMULA double vlp_path_weight(int64_t answers) {
    return sqrt((double)answers) / (double)vlp_path_turns(answers);
}

/* The keys of a graph, and how many there are; arrays of both are in host memory. */
int64_t vlp_path_keys_count(const vlp_path_graph *graph);
vlp_status vlp_path_keys_make(vlp_path_keys *out, const vlp_path_graph *graph);
void vlp_path_keys_free(vlp_path_keys *keys); /* those of vlp_path_keys_make, or zeros */

/* ---- Random choices ------------------------------------------------------------------------------ */

/* Independent choices of a given probability, 128 at a time: one random bit for every choice and binary
 * digit of the probability. Probabilities are rounded to multiples of 2^-16. */
VLP_FORMULA uint32_t vlp_path_share(float probability) {
    return (uint32_t)(probability * 65536.0f + 0.5f);
}

VLP_FORMULA vlp_random4 vlp_path_choices(uint64_t seed, uint32_t stream, uint32_t group,
                                         uint32_t share) {
    vlp_random4 out = {{0, 0, 0, 0}};
    if (share >= 65536) out.v[0] = out.v[1] = out.v[2] = out.v[3] = ~UINT32_C(0);
    if (share == 0 || share >= 65536) return out;
    int digit = 0;
    while (!(share >> digit & 1)) digit++;
    for (; digit < 16; digit++) {
        vlp_random4 r = vlp_random(seed, stream, (uint64_t)digit, group);
        for (int i = 0; i < 4; i++)
            out.v[i] = share >> digit & 1 ? out.v[i] | r.v[i] : out.v[i] & r.v[i];
    }
    return out;
}

/* One of these choices. */
VLP_FORMULA bool vlp_path_chosen(uint64_t seed, uint32_t stream, uint32_t item, uint32_t share) {
    return vlp_path_choices(seed, stream, item / 128, share).v[item / 32 % 4] >> item % 32 & 1;
}

/* The seed of the choices of key `key` of a step's batch. */
VLP_FORMULA uint64_t vlp_path_key_seed(uint64_t seed, int64_t step, int32_t key) {
    vlp_random4 r = vlp_random(seed, VLP_STREAM_PATH_KEYS, (uint64_t)step, (uint32_t)key);
    return (uint64_t)r.v[0] << 32 | r.v[1];
}

/* ---- Operands ------------------------------------------------------------------------------------ */

/* The keys of a step. Arrays are in the backend's memory. */
typedef struct vlp_path_batch {
    int32_t count;
    int32_t *heads, *relations; /* (count) */
    int64_t *answers;           /* (count) the slot of the first answer */
    int64_t *offset;            /* (count + 1) where a key's answers begin in `hidden` */
    uint8_t *hidden;  /* (capacity) which of the answers are hidden: of every key at least one */
    int64_t capacity; /* at least count * most_answers */
} vlp_path_batch;

/* How a batch is chosen: by a keyed permutation of all keys, one pass after the other. */
typedef struct vlp_path_choice {
    uint64_t seed;
    float hidden; /* probability that an answer is hidden; at least one is */
} vlp_path_choice;

/* The edges that are out of the graph for a hidden answer: those of its triple, or all between the head
 * entity and the answer; both directions. */
typedef enum vlp_path_hiding { VLP_PATH_HIDE_EDGE = 0, VLP_PATH_HIDE_PAIR } vlp_path_hiding;

/* How a step is computed. Random choices are those of (seed, step, key). */
typedef struct vlp_path_options {
    uint64_t seed;
    vlp_path_hiding hiding;
    float drop; /* probability that a triple is out of a key's graph, in both directions */
    /* Candidates farther than `near` hops are sampled with probability `far`, and only what they depend
     * on is computed; their scores get -log(far). 1: all are candidates. */
    float far;
    int32_t near;
    /* A candidate's gradient whose softmax weight p is below `prune` is kept with probability p / prune
     * and scaled by its inverse; 0: all are kept. */
    float prune;
} vlp_path_options;

/* What a step or a score reads. */
typedef struct vlp_path_model {
    const vlp_path_form *form;
    const vlp_path_tables *values;
    const vlp_path_graph *graph; /* the struct is the caller's, its arrays the backend's */
} vlp_path_model;

/* Queries over the graph without some of its triples. */
typedef struct vlp_path_queries {
    int32_t count;
    const int32_t *heads, *relations; /* (count) */
    /* removed[removed_offset[i] .. removed_offset[i + 1]) are out of the graph of query i, in both
     * directions. NULL: none. */
    const int64_t *removed_offset; /* (count + 1) */
    const int32_t *removed;
} vlp_path_queries;

#endif
