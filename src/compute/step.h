/* The values a training step reads and the report it writes. Both are in the backend's memory, so that
 * steps are asynchronous: the host waits only when it downloads the report. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_STEP_H
#define VLP_COMPUTE_STEP_H

#include <math.h>

#include "base/formula.h"
#include "vlp.h"

/* The tables of a component are trained together, with a rate, a loss and a clipping of their own. */

/* Tables of all components together, at most: their numbers are below it. */
enum { VLP_MAX_TABLES = 24 };

/* What changes from step to step. */
typedef struct vlp_step_values {
    int64_t step;
    float rates[VLP_MAX_COMPONENTS];
    float correction1, correction2; /* 1 - beta^(step + 1) */
} vlp_step_values;

/* What was non-finite: the loss of component fault - VLP_FAULT_LOSS, or the gradient of table fault -
 * VLP_FAULT_TABLE. */
enum {
    VLP_FAULT_NONE = 0,
    VLP_FAULT_LOSS,
    VLP_FAULT_TABLE = VLP_FAULT_LOSS + VLP_MAX_COMPONENTS,
    VLP_FAULTS = VLP_FAULT_TABLE + VLP_MAX_TABLES
};

typedef struct vlp_step_report {
    double losses[VLP_MAX_COMPONENTS]; /* of the last step */
    double squares[VLP_MAX_TABLES];    /* of the gradients */
    float scales[VLP_MAX_COMPONENTS];  /* what gradients are multiplied by (clipping) */
    int32_t fault;                     /* the first there was: updates stop with it */
    int32_t reserved;
    int64_t fault_step;
} vlp_step_report;

typedef struct vlp_step_check {
    vlp_component component; /* whose loss is known, and whose tables are to be updated */
    uint32_t tables;         /* bit i: table i, below VLP_MAX_TABLES */
    double clip;             /* largest norm of the component's gradient; 0: none */
} vlp_step_check;

/* Records the first fault of a step and sets the scale of a component's gradients. */
VLP_FORMULA void vlp_step_check_apply(vlp_step_report *report, const vlp_step_check *check,
                                      int64_t step) {
    if (report->fault != VLP_FAULT_NONE) return;
    vlp_component component = check->component;
    int32_t fault = VLP_FAULT_NONE;
    if (!isfinite(report->losses[component])) fault = VLP_FAULT_LOSS + (int32_t)component;
    double sum = 0, clip = check->clip;
    for (int table = 0; table < VLP_MAX_TABLES; table++) {
        if (!(check->tables >> table & 1)) continue;
        sum += report->squares[table];
        if (fault == VLP_FAULT_NONE && !isfinite(report->squares[table]))
            fault = VLP_FAULT_TABLE + table;
    }
    report->scales[component] = clip > 0 && sum > clip * clip ? (float)(clip / sqrt(sum)) : 1.0f;
    report->fault = fault;
    if (fault != VLP_FAULT_NONE) report->fault_step = step;
}

#endif
