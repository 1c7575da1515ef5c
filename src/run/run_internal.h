/* The inside of a run that is opened for use. */
#ifndef VLP_RUN_RUN_INTERNAL_H
#define VLP_RUN_RUN_INTERNAL_H

#include "eval/predictor.h"
#include "learn/run_folder.h"

/* A graph in the run's numbers that references are taken from instead of train. */
typedef struct vlp_live_graph {
    char *folder;
    vlp_triple_list triples; /* its train, as far as its names are known */
    vlp_triple_list others;  /* its valid and test: known answers */
    vlp_graph *graph;
} vlp_live_graph;

void vlp_live_graph_free(vlp_live_graph *live);

struct vlp_run {
    char *folder;
    vlp_settings settings;
    vlp_run_facts facts;
    vlp_progress_state progress;
    vlp_dataset *dataset;
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_model *model;
    /* What predicting keeps between calls; made when first asked for. */
    vlp_predictor *predictor;
    vlp_filter *known; /* of the splits in known_splits, and of the live graph */
    unsigned known_splits;
    vlp_live_graph *live; /* NULL: train */
    char fingerprint[33]; /* "" until it was asked for */
    vlp_calibration calibration;
    int32_t calibrated; /* with so many exchanges, 0: not yet */
    uint64_t calibration_seed;
};

/* Lets go of what predicting keeps, the live graph included. */
void vlp_run_predicting_free(vlp_run *run);

/* The graph that references come from. */
const vlp_graph *vlp_run_graph(const vlp_run *run);
/* The weights that were chosen on the validation split. */
vlp_mixture vlp_run_mixture(const vlp_run *run);
/* The predictor over vlp_run_graph, and the known answers of these splits (0: all) with those of the
 * live graph; both borrowed from the run. */
vlp_status vlp_run_predictor(vlp_predictor **out, vlp_run *run);
vlp_status vlp_run_known(const vlp_filter **out, vlp_run *run, unsigned splits);

/* The 95% interval of an MRR (second NULL), or of the gain of `second` over `first`, by triples. */
vlp_status vlp_ranks_interval(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                              int64_t queries, vlp_sides sides, uint64_t seed, int32_t threads);

/* Ranks that an evaluation keeps, to be compared with those of another. Takes the ranking over. */
vlp_status vlp_ranks_keep(struct vlp_kept_ranks **out, const vlp_run *run, vlp_ranking **ranking);
void vlp_ranks_free(struct vlp_kept_ranks *ranks);

#endif
