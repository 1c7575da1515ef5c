/* The slow and obvious way of computing what src/graph computes cleverly, and random graphs to compare
 * both on. Nothing here shares code with the library except the definition of its types, of the walk's
 * unit and of its random numbers.
 *
 * The oracle can also be asked to make one of a list of mistakes on purpose. A test that compares the
 * right and the mistaken answers knows whether its graphs would have caught the mistake. */
#ifndef VLP_TESTS_ORACLE_H
#define VLP_TESTS_ORACLE_H

#include "graph/reference.h"

/* ---- Random numbers: a cursor over the counters ---- */
typedef struct oracle_random {
    uint64_t seed, step;
    uint32_t index;
} oracle_random;

/* Uniform in 0 .. bound - 1, and the cursor moves on. */
int32_t oracle_below(oracle_random *random, int32_t bound);
bool oracle_chance(oracle_random *random, int32_t one_in);
/* A random order of 0 .. count - 1; free() it. */
int32_t *oracle_permutation(oracle_random *random, int32_t count);

/* ---- Graphs ---- */
typedef struct oracle_graph {
    int32_t entities, relations;
    int64_t count, capacity;
    vlp_triple *triples; /* (count), distinct */
} oracle_graph;

enum oracle_shape {
    ORACLE_RANDOM, /* anything: loops, parallel and reverse edges, parts, isolated nodes */
    ORACLE_PATH,
    ORACLE_STAR,
    ORACLE_CLIQUE,
    ORACLE_TREE,
    ORACLE_TWO_HUBS,  /* that share most of their leaves */
    ORACLE_LAYERS,    /* a hub whose degree does not divide the unit, with ties two levels below */
    ORACLE_FRACTIONS, /* ties two levels below between sums of unlike fractions */
    ORACLE_SHAPES
};

/* `nodes` is the number of nodes that take part; a few isolated ones may join them. Ids and the order of
 * the triples are shuffled. ORACLE_RANDOM ignores `edges` < 0 and then takes as many as it likes. */
void oracle_graph_make(oracle_graph *out, enum oracle_shape shape, int32_t nodes, int32_t relations,
                       int64_t edges, oracle_random *random);
/* 1 to 16 entities, 1 to 4 relations, 0 to about 90 triples, of any shape but the last two. */
void oracle_graph_small(oracle_graph *out, oracle_random *random);
/* 200 to 700 entities, `shape` as asked. */
void oracle_graph_middle(oracle_graph *out, enum oracle_shape shape, oracle_random *random);
/* False when the triple is there already. */
bool oracle_graph_add(oracle_graph *graph, int32_t head, int32_t relation, int32_t tail);
void oracle_graph_free(oracle_graph *graph);

/* ---- Distances, -1 without a path ---- */
/* (entities, entities) by Floyd and Warshall; free() it. */
int32_t *oracle_distance_matrix(const oracle_graph *graph);
/* (entities) from one source, by relaxing the triples until nothing changes. */
void oracle_distance_from(int32_t *out, const oracle_graph *graph, int32_t source);

/* ---- References ---- */
enum oracle_mistake {
    ORACLE_OWN_EDGE_IN_GRAPH = 1 << 0, /* the left-out triple still counts for distance and mass */
    ORACLE_OWN_EDGE_A_REFERENCE = 1 << 1,
    ORACLE_OLD_DEGREES = 1 << 2,    /* degrees of the whole graph */
    ORACLE_OLD_FAR_DEGREE = 1 << 3, /* of the left-out triple's ends only the entity is corrected */
    ORACLE_LOOP_ONE_SLOT = 1 << 4,
    ORACLE_PARALLEL_CARRY_ONCE = 1 << 5, /* of parallel slots one carries */
    ORACLE_PATH_COUNTS = 1 << 6,         /* mass is not divided */
    ORACLE_ROUND_LATE = 1 << 7,          /* parallel slots' shares are added before layout */
    ORACLE_FLOATING_MASS = 1 << 8,       /* mass in fp32 */
    ORACLE_NO_MASS = 1 << 9,
    ORACLE_TIES_BY_HEAD = 1 << 10,     /* equal mass: by the head entity's id, not by the edge */
    ORACLE_ORPHANS_LOST = 1 << 11,     /* nodes that moved farther are gone */
    ORACLE_ORPHANS_MASSLESS = 1 << 12, /* nodes that moved farther get no mass */
    ORACLE_CAP_AFTER_CUT = 1 << 13,
    ORACLE_CAP_AT_ENTITY = 1 << 14,     /* the entity's own edges are capped as well */
    ORACLE_INVERSE_FORWARD = 1 << 15,   /* an inverse relation's edges are found at their heads */
    ORACLE_OWN_EDGE_BACKWARD = 1 << 16, /* inverse queries find their own triple in the graph */
    ORACLE_MISTAKES = 17
};

typedef struct oracle_candidate {
    int32_t edge, head, distance;
    uint64_t mass;
} oracle_candidate;

/* What a query sees: distances up to max_distance (-1 beyond) and masses in the graph that remains, and
 * every edge it could refer to, in order, before cap and cut. */
typedef struct oracle_view {
    int32_t *distance; /* (entities) */
    uint64_t *mass;    /* (entities) */
    oracle_candidate *candidates;
    int64_t count;
} oracle_view;

void oracle_view_make(oracle_view *out, const oracle_graph *graph, vlp_query query, int32_t max_distance,
                      unsigned mistakes);
void oracle_view_free(oracle_view *view);

/* The references of `query`; `out` has room for options->count. Returns how many. */
int32_t oracle_references(vlp_reference *out, const oracle_graph *graph, vlp_query query,
                          const vlp_reference_options *options, unsigned mistakes);
/* The same with the limit of vlp_reference_rule's edges, above 0. */
int32_t oracle_references_within(vlp_reference *out, const oracle_graph *graph, vlp_query query,
                                 const vlp_reference_options *options, int64_t edges);

#endif
