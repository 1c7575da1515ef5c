/* A training in memory: nothing is written. To see what settings cost, and what they are worth. */
#ifndef VLP_LEARN_TRIAL_H
#define VLP_LEARN_TRIAL_H

#include "graph/dataset.h"
#include "learn/settings.h"

typedef struct vlp_trial {
    const vlp_dataset *dataset;
    const char *device;
    const vlp_observer *observer; /* its `stop` is asked, nothing else */
    const char *base;             /* as in vlp_train_options; NULL: none */
} vlp_trial;

typedef struct vlp_trial_result {
    double setup;       /* s before the first step */
    double step;        /* s per step */
    double evaluation;  /* s per triple of the validation split; 0: none */
    int64_t steps;      /* of the whole training */
    int64_t bytes;      /* of the model's tables, on the device */
    int64_t free_bytes; /* there, before they were allocated; 0: not known */
    double mrr;         /* on the validation split; NAN: not trained to the end, or no such split */
} vlp_trial_result;

/* Steps for about `seconds`, at least three, and the evaluation of a few triples. */
vlp_status vlp_trial_measure(vlp_trial_result *out, const vlp_trial *trial, const vlp_settings *settings,
                             double seconds);

/* The whole training. VLP_ERROR_STOPPED where the observer asks for it. */
vlp_status vlp_trial_train(vlp_trial_result *out, const vlp_trial *trial, const vlp_settings *settings);

/* Seconds of a clock that only goes forward. */
double vlp_trial_clock(void);

#endif
