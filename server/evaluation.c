/* The evaluation of a run, computed once in a thread of its own. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "handlers.h"
#include "results_json.h"

static void on_progress(void *user, const char *what, int64_t done, int64_t total) {
    served_evaluation *evaluation = user;
    (void)what;
    atomic_store(&evaluation->done, done);
    atomic_store(&evaluation->total, total);
}

static bool on_stop(void *user) {
    served_evaluation *evaluation = user;
    return atomic_load(&evaluation->run->stopping);
}

/* Writes the evaluation, or why there is none, as the body of a reply. */
static served_state evaluate(char **text, size_t *size, served_evaluation *evaluation) {
    served *run = evaluation->run;
    vlp_observer observer = {NULL, on_progress, on_stop, evaluation};
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    options.split = evaluation->split;
    options.observer = &observer;
    options.graph = run->info.graph != NULL;
    vlp_evaluation *found = NULL;
    vlp_status status = vlp_run_evaluate(&found, run->run, &options);
    http_reply reply = {0};
    if (status == VLP_OK) {
        json_out json = reply_begin(&reply, 200);
        evaluation_json(&json, run->data, found);
        reply_end(&reply);
    } else {
        answer_failure(&reply, status);
    }
    vlp_evaluation_free(found);
    *text = reply.fixed ? strdup(reply.fixed) : reply.text;
    *size = reply.size;
    return reply.status == 200 ? STATE_DONE : STATE_FAILED;
}

static void *work(void *user) {
    served_evaluation *evaluation = user;
    served *run = evaluation->run;
    /* Requests come first. On Linux this is the thread's own priority, and that of threads it starts. */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
    char *text = NULL;
    size_t size = 0;
    served_state state = evaluate(&text, &size, evaluation);
    pthread_mutex_lock(&run->lock);
    evaluation->text = text;
    evaluation->size = text ? size : 0;
    evaluation->state = state;
    pthread_mutex_unlock(&run->lock);
    served_release(run);
    return NULL;
}

/* Starts the thread, which holds the run. */
static bool start(served_evaluation *evaluation) {
    pthread_t thread;
    pthread_attr_t attributes;
    served_hold(evaluation->run);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = pthread_create(&thread, &attributes, work, evaluation) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) served_release(evaluation->run);
    return started;
}

void answer_evaluation(http_handling *handling) {
    const char *split = request_text(handling->request, handling->reply, "split");
    if (reply_failed(handling->reply)) return;
    if (split && strcmp(split, "test") != 0 && strcmp(split, "valid") != 0) {
        reply_error(handling->reply, 400, "The parameter 'split' takes test or valid.");
        return;
    }
    served *run = handling->run;
    served_evaluation *evaluation = &run->evaluations[split && split[0] == 'v' ? VLP_VALID : VLP_TEST];
    pthread_mutex_lock(&run->lock);
    if (evaluation->state == STATE_NONE && start(evaluation)) evaluation->state = STATE_RUNNING;
    served_state state = evaluation->state;
    if (state == STATE_DONE || state == STATE_FAILED) {
        char *copy = evaluation->text ? malloc(evaluation->size) : NULL;
        if (copy) {
            memcpy(copy, evaluation->text, evaluation->size);
            reply_text(handling->reply, state == STATE_DONE ? 200 : 400, "application/json", NULL,
                       evaluation->size);
            handling->reply->text = copy;
        } else {
            answer_failure(handling->reply, VLP_ERROR_MEMORY);
        }
    }
    pthread_mutex_unlock(&run->lock);
    if (state == STATE_NONE) answer_failure(handling->reply, VLP_ERROR_MEMORY);
    if (state != STATE_RUNNING) return;
    json_out json = reply_begin(handling->reply, 202);
    json_object(&json, NULL);
    json_string(&json, "state", "running");
    json_integer(&json, "done", atomic_load(&evaluation->done));
    json_integer(&json, "total", atomic_load(&evaluation->total));
    json_end_object(&json);
    reply_end(handling->reply);
}
