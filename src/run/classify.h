/* The threshold between true and false triples, for vlp_run_classify. */
#ifndef VLP_RUN_CLASSIFY_H
#define VLP_RUN_CLASSIFY_H

#include "base/base.h"

/* A triple whose truth is known. */
typedef struct vlp_judged {
    int32_t relation;
    bool is_true;
    double score;
} vlp_judged;

/* The threshold with the largest accuracy over triples in ascending order of scores, true and false ones
 * weighted equally; among equal ones that in the widest gap between two scores. It lies in the middle of
 * two scores, or below all of them by their range where no other one is better. 0 for no triples. */
double vlp_threshold_fit(const vlp_judged *sorted, int64_t count);

#endif
