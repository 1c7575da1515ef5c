/* The files of a run folder.
 *
 * state.safetensors has all that resuming needs (values, moments, step, best so far) in one file, so
 * that no crash between two files can tear it; the one before is kept as state.previous.safetensors. The
 * weights to use, the best on the validation split, are model.safetensors. entities.tsv, relations.tsv
 * and triples.tsv.gz are the data set, so that a run needs no other folder.
 *
 * The format is counted. Format 1 has no triples.tsv.gz and no digest of the settings. */
#ifndef VLP_LEARN_RUN_FOLDER_H
#define VLP_LEARN_RUN_FOLDER_H

#include "eval/evaluate.h"
#include "graph/dataset.h"
#include "learn/settings.h"
#include "model/model.h"

/* What this version writes, and the newest it reads. */
enum { VLP_RUN_FORMAT = 2 };

/* How far a training is, besides its tables. */
typedef struct vlp_progress_state {
    int64_t step;           /* steps done */
    int64_t steps;          /* of the whole run, as it was asked for; 0 in format 1 */
    int64_t schedule_start; /* the step from which the schedule runs: 0, or where `steps` was changed */
    double best_mrr;
    int64_t best_step;
    int32_t waited;      /* evaluations since the best */
    vlp_mixture mixture; /* chosen on the validation split at the best */
} vlp_progress_state;

/* What a weight file says of itself. */
typedef struct vlp_run_facts {
    int32_t format;
    char data[4096];   /* the data set's folder, absolute; "": it came from memory */
    char checksum[33]; /* of its names and triples */
    char version[16];
    /* As vlp_settings_describe gives them; "" in format 1. */
    char settings[VLP_SETTINGS_TEXT], digest[33];
} vlp_run_facts;

vlp_status vlp_run_folder_facts_of(vlp_run_facts *out, const vlp_dataset *dataset,
                                   const vlp_settings *settings);

/* Writes config.ini, last of all: a folder with one is a run. */
vlp_status vlp_run_folder_write_config(const char *folder, const vlp_settings *settings,
                                       const vlp_run_facts *facts);
bool vlp_run_folder_exists(const char *folder);
/* The settings in config.ini. */
vlp_status vlp_run_folder_settings(vlp_settings *out, const char *folder);
/* That config.ini has the settings that a weight file was trained with. */
vlp_status vlp_run_folder_verify(const vlp_run_facts *facts, const vlp_settings *settings,
                                 const char *folder);

/* ---- The data set (run_data.c) ---- */
/* Names, labels and triples. */
vlp_status vlp_run_folder_write_data(const char *folder, const vlp_dataset *dataset);
bool vlp_run_folder_has_data(const char *folder);
/* The data set that was written, its checksum verified. */
vlp_status vlp_run_folder_read_data(vlp_dataset **out, const char *folder, const vlp_run_facts *facts,
                                    int32_t threads);
/* The text of entities.tsv or relations.tsv: row number = id; name, then label and description where
 * there are. */
void vlp_run_folder_put_names(vlp_writer *writer, const vlp_dataset *dataset, bool entities);

/* ---- Weights ---- */
vlp_status vlp_run_folder_save_model(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts);
vlp_status vlp_run_folder_load_model(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, const char *folder);
vlp_status vlp_run_folder_load_facts(vlp_run_facts *facts, const char *folder);

vlp_status vlp_run_folder_save_state(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts);
/* What a state has to have been trained with. */
typedef struct vlp_run_training {
    const char *folder;
    const vlp_settings *settings;
    const vlp_dataset *dataset;
} vlp_run_training;
/* The state, or the one before where it is damaged (the observer is told). *found false: never saved. */
vlp_status vlp_run_folder_load_state(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, bool *found, const vlp_run_training *training,
                                     const vlp_observer *observer);

/* ---- Metrics (run_metrics.c) ---- */
/* metrics.jsonl: all of it, written whole; and its lines up to a step, to be freed ("" when there is
 * none). A line that is not one of ours is VLP_ERROR_FORMAT with file and line. */
vlp_status vlp_run_folder_save_metrics(const char *folder, const char *lines);
vlp_status vlp_run_folder_load_metrics(char **out, const char *folder, int64_t last_step);

/* ---- The lock of a training (run_lock.c) ---- */
/* Makes the folder where it is missing, and holds it against other trainings, in this process and in
 * others, until the lock is released. VLP_ERROR_BUSY names who holds it. Readers take no lock. */
typedef struct vlp_run_lock vlp_run_lock;
vlp_status vlp_run_lock_take(vlp_run_lock **out, const char *folder);
/* VLP_ERROR_EXISTS where a folder that is not a run holds files; those of a training that was killed
 * before its run was begun do not count. */
vlp_status vlp_run_lock_check_free(const vlp_run_lock *lock);
/* Removes the temporary files of trainings that were killed. */
void vlp_run_lock_sweep(const vlp_run_lock *lock);
/* Takes NULL. `discard` removes what a training that saved no weights has written, and the folder where
 * taking the lock made it. */
void vlp_run_lock_release(vlp_run_lock *lock, bool discard);

#endif
