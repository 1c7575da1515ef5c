/* The inside of a run that is opened for use.
 *
 * Several threads may call one run at a time. Its settings, data set and tables never change. What a
 * call writes belongs to a worker, which it has for itself from vlp_run_enter to vlp_run_leave; what
 * callers share and change is in the gate, under its locks. The graph changes only while no caller is
 * inside. */
#ifndef VLP_RUN_RUN_INTERNAL_H
#define VLP_RUN_RUN_INTERNAL_H

#include <pthread.h>

#include "eval/predictor.h"
#include "learn/run_folder.h"

/* A graph that is read instead of train. */
typedef struct vlp_live_graph {
    char *folder;
    vlp_dataset *dataset; /* the folder's splits in the run's ids; new entities follow the run's own */
    int32_t new_entities; /* 0 where the run has no component that scores them: they are left out */
    uint8_t *present;     /* (entities of the data set) whether the folder names it */
} vlp_live_graph;

void vlp_live_graph_free(vlp_live_graph *live);

/* Working memory of one caller. */
typedef struct vlp_worker {
    vlp_model model;          /* the run's tables, on the worker's state of the backend */
    vlp_model wider;          /* the same for a graph with new entities; see vlp_run_graph_model */
    bool owns_compute;        /* else it is the run's */
    vlp_predictor *predictor; /* over vlp_run_graph; made when it is first used */
    struct vlp_worker *next;
} vlp_worker;

typedef struct vlp_run_gate {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    int32_t callers;        /* inside */
    bool changing;          /* the graph is about to change: no caller may enter */
    vlp_worker *idle;       /* workers that no caller has */
    int32_t workers, limit; /* in all, and at most */
    char fingerprint[33];   /* of the graph's scores; "" until it was first computed */
    /* Taken by callers that are inside; they keep it while they compute what others then wait for. */
    pthread_mutex_t filtering;
    vlp_filter *known[1 << VLP_SPLITS]; /* by splits, with the live graph; made when first used */
    pthread_mutex_t copying;
    float *embeddings; /* a copy of the entities' table, where it is not on the host; made when first
                          used */
    pthread_mutex_t calibrating;
    vlp_calibration calibration;
    int32_t calibrated; /* its exchanges, 0: none yet */
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

/* A worker for the caller alone, until it leaves. Waits while the graph changes, and for
 * other callers where the backend has one worker. A caller that is inside must not enter again. */
vlp_status vlp_run_enter(vlp_worker **out, const vlp_run *run);
void vlp_run_leave(const vlp_run *run, vlp_worker *worker);

/* Replaces the graph when no caller is inside; takes `live` over. */
void vlp_run_set_graph(vlp_run *run, vlp_live_graph *live);

/* For callers that are inside: the worker's predictor over vlp_run_graph, and the known answers of these
 * splits (0: all) with those of the live graph. Both are borrowed. */
vlp_status vlp_run_predictor(vlp_predictor **out, const vlp_run *run, vlp_worker *worker);
vlp_status vlp_run_known(const vlp_filter **out, const vlp_run *run, unsigned splits);

/* ---- What a run is ---- */

/* The weights that were chosen on the validation split. */
vlp_mixture vlp_run_mixture(const vlp_run *run);

/* The graph in use and the data set whose ids it has: the run's own, or that of vlp_run_use_graph. */
const vlp_graph *vlp_run_graph(const vlp_run *run);
const vlp_dataset *vlp_run_names(const vlp_run *run);
/* What scores over it are made of: all components of the run, or, where it has new entities, those that
 * need no trained entity. */
unsigned vlp_run_graph_components(const vlp_run *run);
vlp_mixture vlp_run_graph_mixture(const vlp_run *run);
/* The model of these components over its entities, on the worker's state of the backend. */
const vlp_model *vlp_run_graph_model(const vlp_run *run, vlp_worker *worker);
/* The entities that may be answers, by marks; NULL: all. */
const uint8_t *vlp_run_answers(const vlp_run *run);
int64_t vlp_run_answer_count(const vlp_run *run);

/* How predictors over `graph` are opened; `model` has the components of vlp_run_graph_components. */
vlp_predictor_options vlp_run_predictor_options(const vlp_run *run, const vlp_model *model,
                                                const vlp_graph *graph);

enum { VLP_BOOTSTRAP_ROUNDS = 1000 };
/* The 95% interval of an MRR (second NULL), or of the gain of `second` over `first`, by triples. */
vlp_status vlp_ranks_interval(vlp_interval *out, const vlp_rank *first, const vlp_rank *second,
                              int64_t queries, vlp_sides sides, uint64_t seed, int32_t threads);

/* Ranks that an evaluation keeps, to be compared with those of another. Takes the ranking, by f and by
 * each of `components` alone, over. */
vlp_status vlp_ranks_keep(struct vlp_kept_ranks **out, const vlp_dataset *dataset, unsigned components,
                          vlp_ranking **ranking, int32_t threads);
void vlp_ranks_free(struct vlp_kept_ranks *ranks);

#endif
