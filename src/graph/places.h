/* The entities of a relation: for (h, r, t), h is an entity of relation r and t one of the inverse
 * relation r + relations. */
#ifndef VLP_GRAPH_PLACES_H
#define VLP_GRAPH_PLACES_H

#include "graph/graph.h"

typedef struct vlp_places {
    int64_t *offset;   /* (2 * relations + 1) */
    int32_t *entities; /* ascending for each relation */
} vlp_places;

vlp_status vlp_places_new(vlp_places **out, const vlp_graph *graph);
void vlp_places_free(vlp_places *places);
const int32_t *vlp_places_of(const vlp_places *places, int32_t relation, int64_t *count);

#endif
