/* Automatic settings: from the graph, the device and the time there is. */
#ifndef VLP_LEARN_AUTOMATIC_H
#define VLP_LEARN_AUTOMATIC_H

#include "graph/dataset.h"
#include "learn/settings.h"

typedef struct vlp_automatic {
    const vlp_dataset *dataset;
    const char *device;
    const vlp_observer *observer;
    double deadline;   /* of vlp_trial_clock: training and its last evaluation are to end by then */
    const bool *given; /* (settings, in the order of the table) those that are to stay as they are */
} vlp_automatic;

/* Chooses the settings that were not given, and says what and why. Steps are measured, and where there
 * is time settings are compared on the validation split: only that depends on the machine's speed. */
vlp_status vlp_automatic_settings(vlp_settings *settings, const vlp_automatic *from);

#endif
