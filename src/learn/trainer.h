/* The training of one run: what a step needs, and the step. Files, progress and evaluation are the
 * caller's (train.c). */
#ifndef VLP_LEARN_TRAINER_H
#define VLP_LEARN_TRAINER_H

#include "graph/dataset.h"
#include "learn/settings.h"
#include "model/model.h"

typedef struct vlp_trainer vlp_trainer;

typedef struct vlp_step_loss {
    double horizontal, vertical;
} vlp_step_loss;

/* Prepares distances, references and working memory. The model is the caller's and has gradients.
 * Settings and data set outlive the trainer. */
vlp_status vlp_trainer_new(vlp_trainer **out, const vlp_dataset *dataset, const vlp_settings *settings,
                           vlp_model *model, const vlp_observer *observer);
void vlp_trainer_free(vlp_trainer *trainer);

/* Step number `step`, from 0: a function of the tables and the settings. `aggregator_only` leaves
 * entities and relations as they are. With `loss` NULL nobody waits for the step: what went wrong in it,
 * and its losses, are known when they are read. */
vlp_status vlp_trainer_step(vlp_step_loss *loss, vlp_trainer *trainer, int64_t step,
                            bool aggregator_only);

/* Waits for the steps and gives the losses of the last. A value that was not finite is an error that
 * names the first step and tensor that had one; the tables are then those before that step. */
vlp_status vlp_trainer_read(vlp_step_loss *loss, vlp_trainer *trainer);

/* Lets the schedule run from a step on, as if the run began there; warm-up is not repeated. */
void vlp_trainer_schedule_from(vlp_trainer *trainer, int64_t step);

/* The learning rate of a step: schedule and warm-up. */
double vlp_rate_at(const vlp_settings *settings, double rate, int64_t step);

#endif
