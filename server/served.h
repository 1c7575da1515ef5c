/* A run that is served: opened, with what requests look up in its graph. It does not change, but for its
 * caches. Requests hold it while they use it; the last one that releases it frees it. */
#ifndef VLP_SERVER_SERVED_H
#define VLP_SERVER_SERVED_H

#include <pthread.h>
#include <stdatomic.h>

#include "request.h"
#include "search.h"
#include "vlp.h"

/* The triples of the graph at each entity, by relation, then in the order of the graph. */
typedef struct served_edges {
    int64_t *offsets; /* (entities + 1) */
    int32_t *edges;   /* indices of triples */
} served_edges;

typedef enum served_state { STATE_NONE = 0, STATE_RUNNING, STATE_DONE, STATE_FAILED } served_state;

typedef struct served served;

/* What is computed once, on first demand, in the background. */
typedef struct served_evaluation {
    served *run;
    vlp_split split;
    served_state state; /* this and what follows under the run's lock */
    atomic_llong done, total;
    char *text; /* JSON, or why it failed */
    size_t size;
} served_evaluation;

typedef struct served_map {
    float *points; /* (rows, 2); NULL: not computed yet */
    int64_t rows;
    double explained[2];
    pthread_mutex_t lock; /* held while it is computed */
} served_map;

struct served {
    atomic_int holders;
    atomic_bool stopping; /* background work ends */
    vlp_run *run;
    const vlp_dataset *data; /* of the graph in use */
    vlp_run_info info;
    vlp_dataset_stats stats; /* of the run's own data set */
    const char *device;      /* as it was asked for; borrowed */
    char *name;              /* the last part of the folder's path */
    vlp_history *history;
    const vlp_triple *triples;
    int64_t triple_count;
    int32_t entities, relations;
    served_edges out, in;        /* by head entity, by tail entity */
    int32_t *degrees;            /* (entities) triples that an entity is in */
    int64_t *counts;             /* (relations) triples of a relation */
    int32_t *by_name, *by_label; /* hash tables of entities */
    uint32_t slots;              /* of each, a power of two */
    search_index *search;
    pthread_mutex_t lock;
    served_evaluation evaluations[VLP_SPLITS];
    served_map map;
};

typedef struct served_options {
    const char *folder;
    const char *graph; /* NULL: the run's own */
    vlp_run_options run;
} served_options;

/* Opens a run; vlp_error_message() says why it failed. */
vlp_status served_open(served **out, const served_options *options);
served *served_hold(served *run);
void served_release(served *run);

/* An entity by its name, or by a label that it alone has; -1: the reply says 404 and names the nearest.
 */
int32_t served_entity(const served *run, http_reply *failure, const char *name);
int32_t served_relation(const served *run, http_reply *failure, const char *name);
/* The index of a triple in the graph, or -1. */
int64_t served_edge(const served *run, vlp_triple triple);

#endif
