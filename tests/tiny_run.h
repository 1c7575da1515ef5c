/* A small run for the tests of predicting: trained for a few steps on triples at random, with its tables
 * in double and its scores by the definitions, reference by reference. */
#ifndef VLP_TESTS_TINY_RUN_H
#define VLP_TESTS_TINY_RUN_H

#include "oracle.h"
#include "reference_ops.h"
#include "run/run_internal.h"
#include "support.h"

typedef struct tiny_run {
    char folder[128], data[160], path[160];
    vlp_run *run;
    const vlp_dataset *dataset;
    int32_t entities, relations;
    double *tables[TABLES];
    reference_head head;
} tiny_run;

/* `settings` ("key=value", ended by NULL) go beyond a few of the helper's own; NULL: none. The mixture
 * is f_c + 0.3 f_g where there is a head, whatever valid would choose. */
void tiny_run_make(tiny_run *out, const char *const *settings, uint64_t seed);
void tiny_run_free(tiny_run *tiny);
/* The same with a folder of triples that is there already; it stays. */
void tiny_run_train(tiny_run *out, const char *data, const char *const *settings);

/* A score by the definitions. */
typedef struct tiny_score {
    double f, g, c;
} tiny_score;
/* `edges` are triples as they stand; `without` is the one to leave out, or -1. */
tiny_score tiny_run_score(const tiny_run *tiny, vlp_query query, const vlp_triple *edges, int32_t count,
                          int32_t without, int32_t entity);
/* The references of a query in the run's train; `edges` has room for 64. Returns how many. */
int32_t tiny_run_references(const tiny_run *tiny, vlp_query query, vlp_triple *edges);
/* f of both directions of a triple, its own edge left out; the mean. */
tiny_score tiny_run_triple(const tiny_run *tiny, vlp_triple triple);

void must(vlp_status status);
void near(double got, double expected);

#endif
