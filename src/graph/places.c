#include "graph/places.h"

#include <string.h>

#include "graph/rows.h"

vlp_status vlp_places_new(vlp_places **out, const vlp_graph *graph) {
    *out = NULL;
    vlp_places *places = vlp_alloc_zero(1, sizeof *places);
    int32_t relations = 2 * graph->relations;
    if (!places) return vlp_fail_memory("the places of relations");
    places->offset = vlp_alloc_zero((size_t)relations + 1, sizeof *places->offset);
    places->entities = vlp_alloc((size_t)(2 * graph->edges), sizeof *places->entities);
    if (!places->offset || !places->entities) {
        vlp_places_free(places);
        return vlp_fail_memory("the places of relations");
    }
    /* Two passes, counting and filling; slots of a row are sorted by relation. */
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t node = 0; node < graph->entities; node++)
            for (int64_t slot = graph->offset[node]; slot < graph->offset[node + 1]; slot++) {
                int32_t relation = graph->relation[slot];
                if (slot > graph->offset[node] && graph->relation[slot - 1] == relation) continue;
                if (pass == 0)
                    places->offset[relation + 1]++;
                else
                    places->entities[places->offset[relation]++] = node;
            }
        if (pass == 0) vlp_rows_accumulate(places->offset, relations);
    }
    memmove(places->offset + 1, places->offset, (size_t)relations * sizeof *places->offset);
    places->offset[0] = 0;
    *out = places;
    return VLP_OK;
}

void vlp_places_free(vlp_places *places) {
    if (!places) return;
    vlp_free(places->offset);
    vlp_free(places->entities);
    vlp_free(places);
}

const int32_t *vlp_places_of(const vlp_places *places, int32_t relation, int64_t *count) {
    *count = places->offset[relation + 1] - places->offset[relation];
    return places->entities + places->offset[relation];
}
