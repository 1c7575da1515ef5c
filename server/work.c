#include "work.h"

#include <semaphore.h>
#include <time.h>

double work_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Queues -------------------------------------------------------------------------------------- */

static void push(work_queue *queue, work_job *job) {
    job->next = NULL;
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    queue->count++;
}

static work_job *take_first(work_queue *queue) {
    work_job *job = queue->first;
    queue->first = job->next;
    if (!queue->first) queue->last = NULL;
    queue->count--;
    return job;
}

/* The first prediction and those behind it that fit, in their order; the others stay. */
static int take_batch(work_job **out, work_queue *queue) {
    int count = 0;
    out[count++] = take_first(queue);
    work_queue rest = {0};
    while (queue->first) {
        work_job *next = take_first(queue);
        if (count < WORK_BATCH && next->handling.run == out[0]->handling.run &&
            prediction_fits(&out[0]->prediction, &next->prediction))
            out[count++] = next;
        else
            push(&rest, next);
    }
    *queue = rest;
    return count;
}

bool workers_push(work_force *workers, work_job *job) {
    bool prediction = !job->answer;
    work_queue *queue = prediction ? &workers->predictions : &workers->others;
    pthread_mutex_lock(&workers->lock);
    bool taken = queue->count < workers->limit && !workers->stopping;
    if (taken) push(queue, job);
    pthread_cond_signal(prediction ? &workers->predictions_wait : &workers->others_wait);
    pthread_mutex_unlock(&workers->lock);
    return taken;
}

typedef struct awaited_job {
    work_job job; /* first */
    sem_t done;
} awaited_job;

static void on_awaited(work_job *job) {
    sem_post(&((awaited_job *)job)->done);
}

bool workers_predict(work_force *workers, const asked_prediction *asked, http_reply *reply,
                     const http_handling *handling) {
    awaited_job awaited = {
        .job = {.prediction = *asked, .deadline = handling->deadline, .done = on_awaited}};
    awaited.job.handling = (http_handling){.run = handling->run, .reply = reply};
    sem_init(&awaited.done, 0, 0);
    bool taken = workers_push(workers, &awaited.job);
    while (taken && sem_wait(&awaited.done) != 0) continue;
    sem_destroy(&awaited.done);
    return taken;
}

/* ---- Working ------------------------------------------------------------------------------------- */

static bool on_stop(void *user) {
    return work_now() > *(const double *)user;
}

/* A job whose time was over before it was begun. */
static bool is_late(work_job *job) {
    if (work_now() <= job->deadline) return false;
    answer_failure(job->handling.reply, VLP_ERROR_STOPPED);
    job->done(job);
    return true;
}

static void answer_batch(work_force *workers, work_job **jobs, int count) {
    const asked_prediction *predictions[WORK_BATCH];
    http_reply *replies[WORK_BATCH];
    int kept = 0;
    double deadline = 0;
    for (int i = 0; i < count; i++) {
        if (is_late(jobs[i])) continue;
        if (jobs[i]->deadline > deadline) deadline = jobs[i]->deadline;
        predictions[kept] = &jobs[i]->prediction;
        replies[kept] = jobs[i]->handling.reply;
        jobs[kept++] = jobs[i];
    }
    if (kept == 0) return;
    metrics_batch(workers->metrics, kept);
    vlp_observer observer = {.stop = on_stop, .user = &deadline};
    predictions_answer(predictions, replies, kept, jobs[0]->handling.run, &observer);
    for (int i = 0; i < kept; i++) jobs[i]->done(jobs[i]);
}

static void *predict(void *user) {
    work_force *workers = user;
    work_job *jobs[WORK_BATCH];
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->predictions.first && !workers->stopping)
            pthread_cond_wait(&workers->predictions_wait, &workers->lock);
        if (!workers->predictions.first) break;
        int count = take_batch(jobs, &workers->predictions);
        pthread_mutex_unlock(&workers->lock);
        answer_batch(workers, jobs, count);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static void *answer_others(void *user) {
    work_force *workers = user;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->others.first && !workers->stopping)
            pthread_cond_wait(&workers->others_wait, &workers->lock);
        if (!workers->others.first) break;
        work_job *job = take_first(&workers->others);
        pthread_mutex_unlock(&workers->lock);
        if (!is_late(job)) {
            vlp_observer observer = {.stop = on_stop, .user = &job->deadline};
            job->handling.observer = &observer;
            job->handling.deadline = job->deadline;
            job->handling.workers = workers;
            job->answer(&job->handling);
            job->handling.observer = NULL;
            job->done(job);
        }
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

bool workers_start(work_force *out, int pool, int limit, server_metrics *metrics) {
    *out = (work_force){.limit = limit, .metrics = metrics};
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->predictions_wait, NULL);
    pthread_cond_init(&out->others_wait, NULL);
    for (int i = 0; i < pool + 1; i++) {
        if (pthread_create(&out->threads[i], NULL, i == 0 ? predict : answer_others, out) != 0) {
            workers_stop(out);
            return false;
        }
        out->thread_count++;
    }
    return true;
}

void workers_stop(work_force *workers) {
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->predictions_wait);
    pthread_cond_broadcast(&workers->others_wait);
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->thread_count; i++) pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->predictions_wait);
    pthread_cond_destroy(&workers->others_wait);
    pthread_mutex_destroy(&workers->lock);
}
