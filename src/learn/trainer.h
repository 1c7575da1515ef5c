/* The training of one run: what a step needs, and the step. Files, progress and evaluation are the
 * caller's (train.c). How each component is trained: learn/component.h. */
#ifndef VLP_LEARN_TRAINER_H
#define VLP_LEARN_TRAINER_H

#include "graph/dataset.h"
#include "learn/settings.h"
#include "model/model.h"

typedef struct vlp_trainer vlp_trainer;

typedef struct vlp_step_loss {
    double components[VLP_MAX_COMPONENTS]; /* 0 for those that were not trained */
} vlp_step_loss;

/* Prepares distances, references and working memory. The model is the caller's and has gradients.
 * Settings and data set outlive the trainer. */
vlp_status vlp_trainer_new(vlp_trainer **out, const vlp_dataset *dataset, const vlp_settings *settings,
                           vlp_model *model, const vlp_observer *observer);
void vlp_trainer_free(vlp_trainer *trainer);

/* A trainer of some steps of a run, by some of its triples. */
typedef struct vlp_trainer_part {
    int64_t triples;    /* the first of train, which queries are made of; all of train are known */
    int64_t first_step; /* its batches are counted from here, its schedule from 0 */
} vlp_trainer_part;
vlp_status vlp_trainer_new_part(vlp_trainer **out, const vlp_dataset *dataset,
                                const vlp_settings *settings, vlp_model *model,
                                const vlp_observer *observer, const vlp_trainer_part *part);

/* A trainer of entities that are on the device in partitions, of which there are `count`. The model is
 * on the CPU backend; it is up to date after vlp_trainer_settle. */
typedef struct vlp_trainer_device {
    const vlp_backend *backend;
    vlp_compute *compute;
    int32_t count;
} vlp_trainer_device;
vlp_status vlp_trainer_new_partitioned(vlp_trainer **out, const vlp_dataset *dataset,
                                       const vlp_settings *settings, vlp_model *model,
                                       const vlp_observer *observer, const vlp_trainer_device *device);
/* Brings the model's tables up to date, for others than the trainer to read. */
vlp_status vlp_trainer_settle(vlp_trainer *trainer);

/* Components are trained in stages, one after the other: first those that read queries, then the one
 * with a batch of its own. */
typedef struct vlp_stage {
    unsigned components; /* bits */
    int64_t first, steps;
} vlp_stage;

/* The stage of a step, and the steps of all stages. */
vlp_stage vlp_trainer_stage(const vlp_trainer *trainer, int64_t step);
int64_t vlp_trainer_steps(const vlp_trainer *trainer);

/* The components that the next steps train, as bits; at first those of the setting `trains`. The tables
 * of the others remain as they are. */
void vlp_trainer_choose(vlp_trainer *trainer, unsigned components);

/* Step number `step`, from 0: a function of the tables and the settings. With `loss` NULL the step is
 * asynchronous: its faults and losses are known when they are read. */
vlp_status vlp_trainer_step(vlp_step_loss *loss, vlp_trainer *trainer, int64_t step);

/* Waits for the steps and returns the losses of the last. A non-finite value is an error that names the
 * first step and tensor that had one; the tables are then those before that step. */
vlp_status vlp_trainer_read(vlp_step_loss *loss, vlp_trainer *trainer);

/* Lets the schedule of the first stage run from a step on, as if the run began there; warm-up is not
 * repeated. */
void vlp_trainer_schedule_from(vlp_trainer *trainer, int64_t step);

#endif
