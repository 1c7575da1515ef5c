/* The inside of an opened run, for the files that use it. */
#ifndef VLP_LEARN_RUN_INSIDE_H
#define VLP_LEARN_RUN_INSIDE_H

#include "learn/run.h"

struct vlp_run {
    char *folder;
    vlp_settings settings;
    vlp_run_facts facts;
    vlp_progress_state progress;
    vlp_dataset *dataset;
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_model *model;
};

#endif
