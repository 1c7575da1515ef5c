/* Small data sets at random, and their queries and known answers by plain search: for the tests of
 * evaluation. */
#ifndef VLP_TESTS_RANDOM_DATA_H
#define VLP_TESTS_RANDOM_DATA_H

#include "oracle.h"
#include "support.h"

typedef struct sizes {
    int32_t entities, relations;
    int32_t unseen; /* entities, beyond those, that only valid and test have */
    int64_t counts[VLP_SPLITS];
} sizes;

/* Sets of splits. */
enum { ALL = 7, TRAIN_VALID = 3 };

sizes random_sizes(oracle_random *random);
extern const char *const split_files[VLP_SPLITS];
void write_triples(const char *folder, const char *name, const vlp_triple *triples, int64_t count);
vlp_dataset *open_folder(const char *folder);
/* Triples at random, a few of them repeated in other splits; heads crowd at the low ids. */
vlp_dataset *random_dataset(sizes s, oracle_random *random);

/* Query i of a split: first the tails are asked for, then the heads. */
vlp_query query_of(const vlp_dataset *dataset, vlp_split split, int64_t i, int32_t *answer);
/* Whether a split of the set has `entity` as an answer. */
bool known(const vlp_dataset *dataset, unsigned splits, vlp_query query, int32_t entity);

#endif
