/* What an aggregator or a path model is trained over: the components of a finished run, which are copied
 * unchanged, or embeddings in arrays that came from elsewhere. */
#ifndef VLP_LEARN_BASE_H
#define VLP_LEARN_BASE_H

#include "graph/dataset.h"
#include "learn/settings.h"
#include "model/model.h"

/* The settings to start from, before recipe and single settings: those of a run; for a folder of arrays
 * the defaults, with a dim of 0 that says none was asked for. */
vlp_status vlp_base_start(vlp_settings *settings, const char *base);

/* After recipe and single settings: settles what is trained, takes the sizes from the arrays, and
 * refuses settings of another model than the base's. */
vlp_status vlp_base_settle(vlp_settings *settings, const char *base);

/* Fills the tables of the components that are not trained. */
vlp_status vlp_base_load(vlp_model *model, const vlp_dataset *dataset, const char *base,
                         const vlp_settings *settings, const vlp_observer *observer);

#endif
