/* Thresholds that were fitted, kept in the run's folder: they depend on the run's scores and the options
 * alone. */
#ifndef VLP_RUN_CLASSIFICATION_STORE_H
#define VLP_RUN_CLASSIFICATION_STORE_H

#include "run/run_internal.h"

/* Fills *out, whose relations are allocated; false without thresholds that fit. */
bool vlp_classification_load(vlp_classification *out, const char *path, const char *fingerprint,
                             const char *made);
/* A folder that cannot be written means fitting them again next time. */
void vlp_classification_save(const vlp_classification *from, const char *path, const char *fingerprint,
                             const char *made);

#endif
