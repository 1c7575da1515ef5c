/* Trainings of a small family for the tests of run folders. */
#ifndef VLP_TESTS_RUN_LAB_H
#define VLP_TESTS_RUN_LAB_H

#include "lab.h"
#include "tiny_run.h"

/* Settings of a short training. */
enum { RUN_USUAL = 10 };
extern const char *const run_usual[RUN_USUAL];

/* The data set. */
const char *run_family(void);
/* Options with settings of the caller's, which have to live as long. */
vlp_train_options run_options(const char *const *settings, int32_t count, bool resume);
/* Starts a run with the usual settings and one more (NULL: none). */
vlp_status run_start(const char *data, const char *run, const char *more);
/* Resumes a run of the family with these settings (NULL: none) and no others. */
vlp_status run_resume(vlp_train_report *report, const char *run, const char *first, const char *second);
/* Whether two runs have the same tables and moments. */
bool run_same_state(const char *left, const char *right);

/* An observer that asks to stop once a step is done. */
typedef struct run_stopper {
    int64_t at;
    bool now;
    const char *what; /* of the progress; NULL: "steps" */
} run_stopper;
vlp_observer run_stop_at(run_stopper *when);

/* A status and a part of its message. */
void run_expect(vlp_status status, vlp_status expected, const char *part);

#endif
