#include "learn/batch_references.h"

#include <pthread.h>
#include <stdio.h>

#include "base/order.h"
#include "graph/reference.h"
#include "learn/trial.h"

enum { SAMPLE = 256 };

/* A search for the batch of a step. */
typedef struct search {
    vlp_batch_references *of;
    int64_t step;
    vlp_references *found;
    vlp_status status;
    char message[1024]; /* of a failure: messages are per thread */
} search;

struct vlp_batch_references {
    const vlp_graph *graph;
    vlp_reference_finder *finder; /* used by one thread at a time: the caller waits for the other */
    uint64_t seed;
    int32_t batch;
    bool ahead;
    vlp_query *queries;    /* (batch) */
    vlp_references *given; /* what the caller reads */
    pthread_t thread;
    bool running; /* the thread searches: `next` is its own */
    search next;
};

/* The training query of a number: see vlp_query_tables. */
static vlp_query query_of(const vlp_graph *graph, int64_t number) {
    bool forward = number < graph->edges;
    int64_t edge = forward ? number : number - graph->edges;
    vlp_triple triple = graph->triples[edge];
    return (vlp_query){forward ? triple.head : triple.tail,
                       triple.relation + (forward ? 0 : graph->relations), edge};
}

static vlp_status find(vlp_references **out, vlp_batch_references *references, int64_t step) {
    const vlp_graph *graph = references->graph;
    for (int32_t i = 0; i < references->batch; i++)
        references->queries[i] = query_of(
            graph, vlp_batch_query(step, references->batch, i, 2 * graph->edges, references->seed));
    return vlp_reference_finder_find(out, references->finder, references->queries, references->batch);
}

vlp_status vlp_batch_references_new(vlp_batch_references **out, const vlp_graph *graph,
                                    const vlp_reference_options *options, uint64_t seed, int32_t batch,
                                    bool ahead) {
    *out = NULL;
    vlp_batch_references *references = vlp_alloc_zero(1, sizeof *references);
    if (!references) return vlp_fail_memory("references");
    references->graph = graph;
    references->seed = seed;
    references->batch = batch;
    references->ahead = ahead;
    references->queries = vlp_alloc((size_t)(batch > SAMPLE ? batch : SAMPLE), sizeof(vlp_query));
    vlp_reference_options quiet = *options;
    quiet.observer = NULL; /* a batch is short, and the thread is not the observer's */
    vlp_status status = references->queries
                            ? vlp_reference_finder_new(&references->finder, graph, &quiet)
                            : vlp_fail_memory("references");
    if (status != VLP_OK) {
        vlp_batch_references_free(references);
        return status;
    }
    *out = references;
    return VLP_OK;
}

vlp_status vlp_batch_references_set(vlp_batch_references *references, const vlp_reference_rule *rule) {
    return vlp_reference_finder_set(references->finder, rule);
}

/* ---- The thread ---------------------------------------------------------------------------------- */

static void *run(void *own) {
    search *work = own;
    work->status = find(&work->found, work->of, work->step);
    if (work->status != VLP_OK) snprintf(work->message, sizeof work->message, "%s", vlp_error_message());
    return NULL;
}

static void wait_for(vlp_batch_references *references) {
    if (!references->running) return;
    pthread_join(references->thread, NULL);
    references->running = false;
}

/* Without a thread the step will search itself. */
static void start(vlp_batch_references *references, int64_t step) {
    references->next = (search){.of = references, .step = step};
    references->running = pthread_create(&references->thread, NULL, run, &references->next) == 0;
}

void vlp_batch_references_free(vlp_batch_references *references) {
    if (!references) return;
    wait_for(references);
    vlp_references_free(references->next.found);
    vlp_references_free(references->given);
    vlp_reference_finder_free(references->finder);
    vlp_free(references->queries);
    vlp_free(references);
}

vlp_status vlp_batch_references_get(const vlp_reference **out, const int32_t **counts,
                                    vlp_batch_references *references, int64_t step) {
    bool expected = references->running && references->next.step == step;
    wait_for(references);
    vlp_references *found = references->next.found;
    vlp_status status = expected ? references->next.status : VLP_OK;
    references->next.found = NULL;
    if (!expected) {
        vlp_references_free(found);
        VLP_TRY(find(&found, references, step));
    }
    if (status != VLP_OK) return vlp_fail(status, "%s", references->next.message);
    vlp_references_free(references->given);
    references->given = found;
    *out = vlp_references_all(found, counts);
    if (references->ahead) start(references, step + 1);
    return VLP_OK;
}

vlp_status vlp_batch_references_time(double *seconds, vlp_batch_references *references) {
    const vlp_graph *graph = references->graph;
    int64_t all = 2 * graph->edges, count = all < SAMPLE ? all : SAMPLE;
    for (int64_t i = 0; i < count; i++) references->queries[i] = query_of(graph, i * all / count);
    vlp_references *found = NULL;
    double start_time = vlp_trial_clock();
    VLP_TRY(vlp_reference_finder_find(&found, references->finder, references->queries, count));
    vlp_references_free(found);
    *seconds = (vlp_trial_clock() - start_time) * (double)all / (double)(count > 0 ? count : 1);
    return VLP_OK;
}
