/* The inside of a run that is opened for use.
 *
 * Several threads may call one run at a time. Its settings, data set and tables never change. What a
 * call writes belongs to a worker, which it has for itself from vlp_run_enter to vlp_run_leave; what
 * callers share and change is in the gate, under its locks. The reference graph changes only while no
 * caller is inside. */
#ifndef VLP_RUN_RUN_INTERNAL_H
#define VLP_RUN_RUN_INTERNAL_H

#include <pthread.h>

#include "eval/predictor.h"
#include "learn/run_folder.h"

/* A graph in the run's ids that references are taken from instead of train. */
typedef struct vlp_live_graph {
    char *folder;
    vlp_triple_list triples; /* its train, as far as its names are known */
    vlp_triple_list others;  /* its valid and test: known answers */
    vlp_graph *graph;
} vlp_live_graph;

void vlp_live_graph_free(vlp_live_graph *live);

/* Working memory of one caller. */
typedef struct vlp_worker {
    vlp_model model;          /* the run's tables, on the worker's state of the backend */
    bool owns_compute;        /* else it is the run's */
    vlp_predictor *predictor; /* over vlp_run_graph; made when it is first used */
    struct vlp_worker *next;
} vlp_worker;

typedef struct vlp_run_gate {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    int32_t callers;        /* inside */
    bool changing;          /* the reference graph is about to change: no caller may enter */
    vlp_worker *idle;       /* workers that no caller has */
    int32_t workers, limit; /* in all, and at most */
    char fingerprint[33];   /* "" until it was first computed */
    /* Taken by callers that are inside; they keep it while they compute what others then wait for. */
    pthread_mutex_t filtering;
    vlp_filter *known[1 << VLP_SPLITS]; /* by splits, with the live graph; made when first used */
    pthread_mutex_t calibrating;
    vlp_calibration calibration;
    int32_t calibrated; /* its exchanges, 0: there is none yet */
    uint64_t calibration_seed;
} vlp_run_gate;

struct vlp_run {
    char *folder;
    vlp_settings settings;
    vlp_run_facts facts;
    vlp_progress_state progress;
    vlp_dataset *dataset;
    const vlp_backend *backend;
    vlp_compute *compute; /* of the first worker */
    vlp_model *model;
    vlp_live_graph *live; /* NULL: train */
    vlp_run_gate *gate;
};

/* ---- Callers (workers.c) ---- */

/* Opens the gate, as the last step of opening a run; frees it with what predicting keeps. */
vlp_status vlp_run_gate_open(vlp_run *run);
void vlp_run_gate_free(vlp_run *run);

/* A worker for the caller alone, until it leaves. Waits while the reference graph changes, and for
 * other callers where the backend has one worker. A caller that is inside must not enter again. */
vlp_status vlp_run_enter(vlp_worker **out, const vlp_run *run);
void vlp_run_leave(const vlp_run *run, vlp_worker *worker);

/* Replaces the reference graph when no caller is inside; takes `live` over. */
void vlp_run_set_graph(vlp_run *run, vlp_live_graph *live);

/* For callers that are inside: the worker's predictor over vlp_run_graph, and the known answers of these
 * splits (0: all) with those of the live graph. Both are borrowed. */
vlp_status vlp_run_predictor(vlp_predictor **out, const vlp_run *run, vlp_worker *worker);
vlp_status vlp_run_known(const vlp_filter **out, const vlp_run *run, unsigned splits);

/* ---- What a run is ---- */

/* The graph that references come from. */
const vlp_graph *vlp_run_graph(const vlp_run *run);
/* The weights that were chosen on the validation split. */
vlp_mixture vlp_run_mixture(const vlp_run *run);
/* How predictors of the run are opened, with references from `graph`. */
vlp_predictor_options vlp_run_predictor_options(const vlp_run *run, const vlp_model *model,
                                                const vlp_graph *graph);

/* The 95% interval of an MRR (second NULL), or of the gain of `second` over `first`, by triples. */
vlp_status vlp_ranks_interval(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                              int64_t queries, vlp_sides sides, uint64_t seed, int32_t threads);

/* Ranks that an evaluation keeps, to be compared with those of another. Takes the ranking over. */
vlp_status vlp_ranks_keep(struct vlp_kept_ranks **out, const vlp_run *run, vlp_ranking **ranking);
void vlp_ranks_free(struct vlp_kept_ranks *ranks);

#endif
