/* Callers of a run: who may work, and with what. See run_internal.h. */
#include <limits.h>

#include "run/run_internal.h"

/* ---- Workers ------------------------------------------------------------------------------------- */

static void worker_free(vlp_worker *worker) {
    vlp_predictor_free(worker->predictor);
    if (worker->owns_compute) worker->model.backend->close(worker->model.compute);
    vlp_free(worker);
}

/* The first worker uses the run's state of the backend, further ones have their own. */
static vlp_status worker_new(vlp_worker **out, const vlp_run *run, bool first) {
    *out = NULL;
    vlp_worker *worker = vlp_alloc_zero(1, sizeof *worker);
    if (!worker) return vlp_fail_memory("a run");
    worker->model = *run->model;
    vlp_status status = VLP_OK;
    if (!first) {
        worker->model.compute = NULL;
        status = run->backend->open(&worker->model.compute, run->settings.threads);
        worker->owns_compute = status == VLP_OK;
    }
    if (status != VLP_OK) {
        worker_free(worker);
        return status;
    }
    *out = worker;
    return VLP_OK;
}

/* ---- The gate ------------------------------------------------------------------------------------ */

vlp_status vlp_run_gate_open(vlp_run *run) {
    vlp_run_gate *gate = vlp_alloc_zero(1, sizeof *gate);
    if (!gate) return vlp_fail_memory("a run");
    pthread_mutex_init(&gate->lock, NULL);
    pthread_mutex_init(&gate->filtering, NULL);
    pthread_mutex_init(&gate->copying, NULL);
    pthread_mutex_init(&gate->calibrating, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->limit = run->backend->shared_memory ? INT_MAX : 1;
    run->gate = gate;
    return VLP_OK;
}

/* Frees what depends on the graph: predictors, known answers, calibration. No caller is inside. */
static void forget_graph(vlp_run_gate *gate) {
    for (vlp_worker *worker = gate->idle; worker; worker = worker->next) {
        vlp_predictor_free(worker->predictor);
        worker->predictor = NULL;
    }
    for (int i = 0; i < 1 << VLP_SPLITS; i++) {
        vlp_filter_free(gate->known[i]);
        gate->known[i] = NULL;
    }
    gate->calibrated = 0;
    gate->fingerprint[0] = '\0';
}

void vlp_run_gate_free(vlp_run *run) {
    vlp_run_gate *gate = run->gate;
    vlp_live_graph_free(run->live);
    if (!gate) return;
    assert(gate->callers == 0);
    forget_graph(gate);
    for (vlp_worker *worker = gate->idle, *next; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->calibrating);
    pthread_mutex_destroy(&gate->copying);
    pthread_mutex_destroy(&gate->filtering);
    pthread_mutex_destroy(&gate->lock);
    vlp_free(gate->embeddings);
    vlp_free(gate);
}

vlp_status vlp_run_enter(vlp_worker **out, const vlp_run *run) {
    vlp_run_gate *gate = run->gate;
    vlp_status status = VLP_OK;
    pthread_mutex_lock(&gate->lock);
    while (gate->changing || (!gate->idle && gate->workers == gate->limit))
        pthread_cond_wait(&gate->changed, &gate->lock);
    *out = gate->idle;
    if (*out) {
        gate->idle = (*out)->next;
    } else {
        status = worker_new(out, run, gate->workers == 0);
        gate->workers += status == VLP_OK;
    }
    gate->callers += status == VLP_OK;
    pthread_mutex_unlock(&gate->lock);
    return status;
}

void vlp_run_leave(const vlp_run *run, vlp_worker *worker) {
    vlp_run_gate *gate = run->gate;
    if (!worker) return;
    pthread_mutex_lock(&gate->lock);
    worker->next = gate->idle;
    gate->idle = worker;
    gate->callers--;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void vlp_run_set_graph(vlp_run *run, vlp_live_graph *live) {
    vlp_run_gate *gate = run->gate;
    pthread_mutex_lock(&gate->lock);
    while (gate->changing) pthread_cond_wait(&gate->changed, &gate->lock);
    gate->changing = true;
    while (gate->callers > 0) pthread_cond_wait(&gate->changed, &gate->lock);
    forget_graph(gate);
    vlp_live_graph_free(run->live);
    run->live = live;
    gate->changing = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* ---- What callers use ---------------------------------------------------------------------------- */

vlp_predictor_options vlp_run_predictor_options(const vlp_run *run, const vlp_model *model,
                                                const vlp_graph *graph) {
    return (vlp_predictor_options){.model = model,
                                   .graph = graph,
                                   .trained = run->dataset->graph,
                                   .mixture = vlp_run_graph_mixture(run),
                                   .references =
                                       vlp_model_has(model, VLP_VERTICAL) ? run->settings.references : 0,
                                   .references_per_head = run->settings.references_per_head,
                                   .references_rule = vlp_settings_reference_rule(&run->settings),
                                   .threads = run->settings.threads};
}

vlp_status vlp_run_predictor(vlp_predictor **out, const vlp_run *run, vlp_worker *worker) {
    if (!worker->predictor) {
        vlp_predictor_options options =
            vlp_run_predictor_options(run, vlp_run_graph_model(run, worker), vlp_run_graph(run));
        options.only = vlp_run_answers(run);
        VLP_TRY(vlp_predictor_new(&worker->predictor, &options));
    }
    *out = worker->predictor;
    return VLP_OK;
}

static vlp_status build_known(vlp_filter **out, const vlp_run *run, unsigned splits) {
    const vlp_triple *lists[2 * VLP_SPLITS];
    int64_t counts[2 * VLP_SPLITS];
    int used = 0;
    for (int split = 0; split < VLP_SPLITS; split++)
        if (splits >> split & 1) {
            lists[used] = run->dataset->splits[split].items;
            counts[used++] = run->dataset->splits[split].count;
        }
    for (int split = 0; run->live && split < VLP_SPLITS; split++) {
        lists[used] = run->live->dataset->splits[split].items;
        counts[used++] = run->live->dataset->splits[split].count;
    }
    return vlp_filter_build(out, lists, counts, used, vlp_run_graph(run)->entities,
                            vlp_dataset_relation_count(run->dataset), run->settings.threads);
}

vlp_status vlp_run_known(const vlp_filter **out, const vlp_run *run, unsigned splits) {
    vlp_run_gate *gate = run->gate;
    splits = splits == 0 ? (1u << VLP_SPLITS) - 1 : splits & ((1u << VLP_SPLITS) - 1);
    vlp_status status = VLP_OK;
    pthread_mutex_lock(&gate->filtering);
    if (!gate->known[splits]) status = build_known(&gate->known[splits], run, splits);
    *out = gate->known[splits];
    pthread_mutex_unlock(&gate->filtering);
    return status;
}
