/* What an evaluation takes of a data set that is too large for all of it: some triples of a split, and
 * some entities. Draws are without replacement and depend on the seed alone. */
#ifndef VLP_RUN_SAMPLE_H
#define VLP_RUN_SAMPLE_H

#include "graph/dataset.h"

/* out: `dataset` with `count` triples of a split in place of all, in their order; the rest is shared.
 * *taken: their memory, to be freed. */
vlp_status vlp_sample_triples(vlp_dataset *out, vlp_triple **taken, const vlp_dataset *dataset,
                              vlp_split split, int64_t count, uint64_t seed);

/* Clears all but `count` of the marks (entities) that are set. */
void vlp_sample_marks(uint8_t *marks, int32_t entities, int32_t count, uint64_t seed);

#endif
