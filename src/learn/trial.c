#include "learn/trial.h"

#include <math.h>
#include <time.h>

#include "learn/base.h"
#include "learn/trainer.h"
#include "learn/validation.h"

/* On a GPU the first steps compile and record what later ones repeat. */
enum { FIRST_STEPS = 3, MEASURED_TRIPLES = 16 };

typedef struct trial_work {
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_model *model;
    vlp_trainer *trainer;
} trial_work;

double vlp_trial_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static vlp_status open_work(vlp_trial_result *out, trial_work *work, const vlp_trial *trial,
                            const vlp_settings *settings) {
    VLP_TRY(vlp_backend_find(&work->backend, trial->device ? trial->device : "auto"));
    VLP_TRY(work->backend->open(&work->compute, settings->threads));
    int64_t total;
    if (!work->backend->memory->available(work->compute, &out->free_bytes, &total)) out->free_bytes = 0;
    vlp_model_shape shape = vlp_settings_shape(settings, trial->dataset);
    VLP_TRY(vlp_model_new(&work->model, work->backend, work->compute, &shape, true));
    out->bytes = vlp_model_bytes(work->model, true);
    VLP_TRY(vlp_model_init(work->model, settings->seed, settings->init_scale));
    if (trial->base) VLP_TRY(vlp_base_load(work->model, trial->dataset, trial->base, settings, NULL));
    return vlp_trainer_new(&work->trainer, trial->dataset, settings, work->model, NULL);
}

static void close_work(trial_work *work) {
    vlp_trainer_free(work->trainer);
    vlp_model_free(work->model);
    if (work->backend) work->backend->close(work->compute);
}

static vlp_status validate(vlp_trial_result *out, const trial_work *work, const vlp_trial *trial,
                           const vlp_settings *settings) {
    vlp_mixture mixture;
    int64_t triples = trial->dataset->splits[VLP_VALID].count, most = settings->eval_triples;
    if (triples == 0) return VLP_OK;
    double start = vlp_trial_clock();
    VLP_TRY(vlp_validate(&out->mrr, &mixture, work->model, trial->dataset, settings));
    out->evaluation =
        (vlp_trial_clock() - start) / (double)(most > 0 && most < triples ? most : triples);
    return VLP_OK;
}

static vlp_status measure(vlp_trial_result *out, trial_work *work, double seconds) {
    vlp_step_loss loss;
    int64_t step = 0, together = 1;
    out->steps = vlp_trainer_steps(work->trainer);
    for (; step < FIRST_STEPS && step < out->steps; step++)
        VLP_TRY(vlp_trainer_step(NULL, work->trainer, step));
    VLP_TRY(vlp_trainer_read(&loss, work->trainer));
    double start = vlp_trial_clock(), passed = 0;
    int64_t first = step;
    /* Waiting for every step of a GPU would count the wait. */
    while (step < out->steps && (passed < seconds || step == first)) {
        for (int64_t i = 0; i < together && step < out->steps; i++)
            VLP_TRY(vlp_trainer_step(NULL, work->trainer, step++));
        VLP_TRY(vlp_trainer_read(&loss, work->trainer));
        passed = vlp_trial_clock() - start;
        if (passed < 0.1 * seconds) together *= 2;
    }
    out->step = step > first ? passed / (double)(step - first) : 0;
    return VLP_OK;
}

vlp_status vlp_trial_measure(vlp_trial_result *out, const vlp_trial *trial, const vlp_settings *settings,
                             double seconds) {
    trial_work work = {0};
    vlp_settings few = *settings;
    few.eval_triples = MEASURED_TRIPLES;
    *out = (vlp_trial_result){.mrr = NAN};
    double start = vlp_trial_clock();
    vlp_status status = open_work(out, &work, trial, settings);
    out->setup = vlp_trial_clock() - start;
    if (status == VLP_OK) status = measure(out, &work, seconds);
    if (status == VLP_OK) status = validate(out, &work, trial, &few);
    out->mrr = NAN;
    close_work(&work);
    return status;
}

static vlp_status train(vlp_trial_result *out, trial_work *work, const vlp_observer *observer) {
    vlp_step_loss loss;
    out->steps = vlp_trainer_steps(work->trainer);
    double start = vlp_trial_clock(), looked = start;
    for (int64_t step = 0; step < out->steps; step++) {
        VLP_TRY(vlp_trainer_step(NULL, work->trainer, step));
        if (vlp_stopped(observer)) return vlp_fail_stopped();
        if (vlp_trial_clock() - looked < 0.25) continue;
        VLP_TRY(vlp_trainer_read(&loss, work->trainer));
        looked = vlp_trial_clock();
    }
    VLP_TRY(vlp_trainer_read(&loss, work->trainer));
    out->step = (vlp_trial_clock() - start) / (double)out->steps;
    return VLP_OK;
}

vlp_status vlp_trial_train(vlp_trial_result *out, const vlp_trial *trial, const vlp_settings *settings) {
    trial_work work = {0};
    *out = (vlp_trial_result){.mrr = NAN};
    double start = vlp_trial_clock();
    vlp_status status = open_work(out, &work, trial, settings);
    out->setup = vlp_trial_clock() - start;
    if (status == VLP_OK) status = train(out, &work, trial->observer);
    if (status == VLP_OK) status = validate(out, &work, trial, settings);
    close_work(&work);
    return status;
}
