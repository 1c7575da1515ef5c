/* Scores of triples, for those who ask about many: vlp_run_score, calibration, mining. */
#ifndef VLP_LEARN_SCORE_H
#define VLP_LEARN_SCORE_H

#include "learn/run_inside.h"

/* out (count): the two directions and their means, each triple's own edge left out where the graph has
 * it; no probability, not known. `graph` is the predictor's. */
vlp_status vlp_triples_score(vlp_score *out, vlp_predictor *predictor, const vlp_graph *graph,
                             const vlp_triple *triples, int64_t count, bool vertical,
                             const vlp_observer *observer);

/* The index of a triple in the graph, or -1. */
int64_t vlp_graph_find(const vlp_graph *graph, vlp_triple triple);

/* The probability of a score, and whether a prior is one. */
double vlp_calibrated(const vlp_calibration *calibration, double score, double prior);
vlp_status vlp_prior_check(double prior);

/* 32 hex digits over what scores depend on: weights, mixture, references, the data set. */
vlp_status vlp_run_fingerprint(const char **out, vlp_run *run);

#endif
