/* The path model in double precision, dense over all entities, written from the equations of
 * compute/paths.h: slow, obvious, and sharing nothing with a backend but the names of the tables and the
 * random choices. Finite differences of its loss are the gradients a backend is held to. */
#ifndef VLP_TESTS_PATH_ORACLE_H
#define VLP_TESTS_PATH_ORACLE_H

#include "compute/paths.h"

/* What the oracle does wrong on purpose. A test that compares right and mistaken losses knows whether
 * its graphs would have caught the mistake. */
typedef enum path_mistake {
    PATH_NO_MISTAKE = 0,
    PATH_ONE_WAY_LEFT,   /* a hidden triple's edge into the answer stays */
    PATH_OTHER_WAY_LEFT, /* its edge into the head entity stays */
    PATH_FULL_DEGREE,    /* the degree counts edges that are out: it tells who lost one */
    PATH_DROPS_ONE_WAY,  /* a dropped triple keeps its edge into the head entity */
    PATH_NOT_MASKED,     /* a key's other answers compete */
    PATH_MISTAKES
} path_mistake;

typedef struct path_world {
    vlp_path_form form;
    int32_t entities;
    int64_t triples;
    const vlp_triple *items;        /* (triples) of relations below form.relations / 2 */
    double *table[VLP_PATH_TABLES]; /* the values */
    path_mistake mistake;
} path_world;

/* Of the edges of a triple (h, r, t): out of the graph. */
enum { PATH_INTO_TAIL = 1, PATH_INTO_HEAD = 2, PATH_BOTH_WAYS = 3 };

/* A key as a step trains it. */
typedef struct path_oracle_key {
    int32_t head, relation;
    const int32_t *answers; /* (count) all that are known */
    const uint8_t *hidden;  /* (count) */
    int64_t count;
    uint64_t seed; /* vlp_path_key_seed */
} path_oracle_key;

/* Hops from `head` over the edges that are left, -1 without a path. removed: (triples), NULL: none. */
void path_oracle_hops(int32_t *hops, const path_world *world, int32_t head, const uint8_t *removed);
/* The same, and -1 for entities beyond the form's limits: its layers and its edges. */
void path_oracle_reach(int32_t *hops, const path_world *world, int32_t head, const uint8_t *removed);

/* scores (entities). factors: (layers, 2, triples) of the message along the edge h -> t and along t -> h
 * of a triple, NULL: 1. */
void path_oracle_scores(double *scores, const path_world *world, int32_t head, int32_t relation,
                        const uint8_t *removed, const double *factors);

/* What is out of the graph of a key. */
void path_oracle_removed(uint8_t *removed, const path_world *world, const path_oracle_key *key,
                         const vlp_path_options *options);

/* The loss of a batch with sampled candidates. Gradients are not pruned, products not rounded. */
double path_oracle_loss(const path_world *world, const path_oracle_key *keys, int32_t count,
                        const vlp_path_options *options);

#endif
