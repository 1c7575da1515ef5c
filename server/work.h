/* Requests that compute: who works on them.
 *
 * Predictions are answered by one thread, which takes all that wait and fit together into one call of
 * the library: the more come at once, the larger the batches. Everything else is answered by a pool of
 * threads, one request each. Both queues are bounded. */
#ifndef VLP_SERVER_WORK_H
#define VLP_SERVER_WORK_H

#include "handlers.h"
#include "metrics.h"

enum { WORK_BATCH = 64, WORK_POOL_LIMIT = 64 };

typedef struct work_job {
    struct work_job *next;
    http_handling handling; /* its observer is set by the worker */
    asked_prediction prediction;
    handler *answer; /* NULL: a prediction, read already */
    double deadline; /* on the clock of work_now */
    void (*done)(struct work_job *job);
} work_job;

typedef struct work_queue {
    work_job *first, *last;
    int count;
} work_queue;

typedef struct work_force {
    pthread_mutex_t lock;
    pthread_cond_t predictions_wait, others_wait;
    work_queue predictions, others;
    int limit; /* of each queue */
    bool stopping;
    pthread_t threads[WORK_POOL_LIMIT + 1];
    int thread_count;
    server_metrics *metrics;
} work_force;

double work_now(void); /* seconds on a clock that only runs forward */

/* Starts the threads: `pool` of them besides that of predictions. */
bool workers_start(work_force *out, int pool, int limit, server_metrics *metrics);
/* Hands a job over; its `done` is called by a worker. False: the queue is full, and the job stays the
 * caller's. */
bool workers_push(work_force *workers, work_job *job);
/* Has a prediction answered with others, for a worker that needs it; waits for it. False: the queue is
 * full. */
bool workers_predict(work_force *workers, const asked_prediction *asked, http_reply *reply,
                     const http_handling *handling);
/* Ends the threads after the jobs that wait. */
void workers_stop(work_force *workers);

#endif
