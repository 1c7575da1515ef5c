/* A model with random tables over a data set, and all its scores by plain loops, in double, from the
 * tables as they would be exported. */
#ifndef VLP_TESTS_WORLD_H
#define VLP_TESTS_WORLD_H

#include "model/model.h"
#include "oracle.h"

typedef struct world {
    const vlp_dataset *dataset;
    vlp_compute *compute;
    vlp_model *model;
    float *tables[VLP_TABLES]; /* as exported */
    int32_t *copy_of;          /* (entities) the first entity with the same row */
    int32_t entities, relations;
} world;

typedef struct model_kind {
    int32_t model, norm, dim, relation_dim;
} model_kind;

/* One of every kind. */
enum { KINDS = 10 };
extern const model_kind kinds[KINDS];

/* Some rows of entities are copies of others, one is zeros, biases are not zero. */
world world_make(const vlp_dataset *dataset, model_kind kind, bool vertical, int32_t threads,
                 oracle_random *random);
void world_upload(world *w); /* the tables, after they were changed */
void world_free(world *w);

/* f_g and f_c of all entities; vertical NULL: not wanted. */
void oracle_scores(double *horizontal, double *vertical, const world *w, vlp_query query, int32_t most,
                   int32_t per_head);

#endif
