/* Trainings of a small graph through the public interface, and what they save: every number comes from
 * the files of a run folder or from a public function. */
#ifndef VLP_TESTS_TRAINING_H
#define VLP_TESTS_TRAINING_H

#include "support.h"

/* Writes train, valid and test of 30 entities and 3 relations. Every entity is in train. `test_seed`
 * changes test alone. */
void training_data(const char *folder, uint64_t seed, uint64_t test_seed);

/* Trains with "key=value" texts, ended by NULL; where the folder has a run, resumes it, which takes no
 * settings. `stop_at`: the observer asks to stop when that many steps are done; 0: it does not. `report`
 * may be NULL. Returns whether the run came to its end. */
bool training_run(vlp_train_report *report, const char *data, const char *run,
                  const char *const *settings, int64_t stop_at);

/* Opens a run on the device that tests are for. */
vlp_run *training_open(const char *run);

/* A table of RUN/FILE as doubles, to be freed with training_table_free. `rows` is 0 without one.
 */
typedef struct training_table {
    int64_t rows, columns, count; /* count: of numbers */
    double *values;
} training_table;
training_table training_read(const char *run, const char *file, const char *name);
void training_table_free(training_table *table);

/* A number of the metadata of RUN/FILE; -1 where there is no such file. */
double training_metadata(const char *run, const char *file, const char *key);

/* The tables of a run with an aggregator. */
enum { TRAINING_TABLES = 8 };
extern const char *const training_tables[TRAINING_TABLES];

/* f_g and f_c of all entities for many queries, as vlp_run_predict gives them: (count, entities) each;
 * f_c is NaN without an aggregator. To be freed. */
typedef struct training_scores {
    int32_t entities;
    double *horizontal, *vertical;
} training_scores;
training_scores training_score(vlp_run *run, const vlp_query *queries, int64_t count);
void training_scores_free(training_scores *scores);

#endif
