/* trials.jsonl: what a search is, and its finished trials, a line each.
 *
 * The file is created whole with its first line; every further line is written at once and synced, so
 * that a process killed at any moment loses no finished trial. A last line without its newline is one
 * that was being written: it is removed on opening. */
#ifndef VLP_LEARN_TRIAL_LOG_H
#define VLP_LEARN_TRIAL_LOG_H

#include "base/base.h"

typedef struct vlp_trial_record {
    int64_t candidate;
    int32_t rung;
    double mrr; /* NaN: diverged */
    double seconds;
    char *settings; /* as a JSON object; owned by the log */
} vlp_trial_record;

/* What has to be the same for a search to be taken up: names and values. */
typedef struct vlp_trial_fact {
    const char *key, *value;
} vlp_trial_fact;

typedef struct vlp_trial_log {
    char *path;
    int file; /* for appending */
    vlp_trial_record *records;
    int64_t count, capacity;
} vlp_trial_log;

/* Creates folder/trials.jsonl, or reads it. VLP_ERROR_EXISTS names a fact that differs;
 * VLP_ERROR_FORMAT file, line and cause. */
vlp_status vlp_trial_log_open(vlp_trial_log **out, const char *folder, const vlp_trial_fact *facts,
                              int32_t fact_count);
bool vlp_trial_log_exists(const char *folder);
void vlp_trial_log_free(vlp_trial_log *log);

/* Appends a finished trial, durably. Its settings are copied. */
vlp_status vlp_trial_log_add(vlp_trial_log *log, const vlp_trial_record *record);

/* Appends "text" to a text of `size` bytes, in quotes and with JSON's escapes. False where it does not
 * fit. */
bool vlp_json_quote(char *out, size_t size, const char *text);

#endif
