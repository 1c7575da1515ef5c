/* Scores of triples, for those who ask about many: vlp_run_score, calibration, mining. */
#ifndef VLP_RUN_SCORE_H
#define VLP_RUN_SCORE_H

#include "graph/places.h"
#include "run/run_internal.h"

/* out (count): the two directions and their means, each triple's own edge left out where the graph has
 * it; no probability, not known. `graph` is the predictor's. */
vlp_status vlp_triples_score(vlp_score *out, vlp_predictor *predictor, const vlp_graph *graph,
                             const vlp_triple *triples, int64_t count, const vlp_observer *observer);

/* The index of a triple in the graph, or -1. */
int64_t vlp_graph_find(const vlp_graph *graph, vlp_triple triple);

/* Fits a calibration to scores: `positives` true ones, then the others up to `count`. group[i]: the
 * positive that number i is or was made from; what is made from one another lies in one half, which the
 * fit on the other half is judged by. */
void vlp_calibration_fit(vlp_calibration *out, const double *values, const int32_t *group,
                         int64_t positives, int64_t count);

/* The probability of a score, and whether a prior is one. */
double vlp_calibrated(const vlp_calibration *calibration, double score, double prior);
vlp_status vlp_prior_check(double prior);

/* The calibration of vlp_run_calibrate, for callers that are inside. */
vlp_status vlp_calibrate_inside(vlp_calibration *out, const vlp_run *run, vlp_worker *worker,
                                const vlp_calibration_options *options);

/* What corrupting a triple reads. */
typedef struct vlp_corruption {
    const vlp_run *run;
    vlp_filter *known; /* no corruption is one of these triples */
    vlp_places *places;
    uint64_t seed;
    uint32_t stream; /* of random numbers */
} vlp_corruption;
/* Draw number `draw` of the triple that is number `group`: its tail entity or its head entity replaced,
 * by any entity in even draws, by one of that place of the relation in odd ones. False when every try
 * gave a known triple. */
bool vlp_corrupt(vlp_triple *out, const vlp_corruption *work, vlp_triple positive, int64_t group,
                 int32_t draw, bool tail);

/* A predictor over the run's own train, with the components that score the graph in use: another graph
 * may hold the triples of valid, and what is fitted on them would look better than it is. *made is to be
 * freed; `model` outlives it. */
vlp_status vlp_train_predictor(vlp_predictor **out, vlp_predictor **made, vlp_model *model,
                               const vlp_run *run, vlp_worker *worker);

/* 32 hex digits over what scores depend on: tables, mixture, references, the data set. */
vlp_status vlp_run_fingerprint(char out[33], const vlp_run *run, const vlp_worker *worker);

#endif
