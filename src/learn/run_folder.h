/* The files of a run folder.
 *
 * state.safetensors has all that resuming needs (values, moments, step, best so far) in one file, so
 * that no crash between two files can tear it; the one before is kept as state.previous.safetensors. The
 * weights to use, the best on valid, are model.safetensors. */
#ifndef VLP_LEARN_RUN_FOLDER_H
#define VLP_LEARN_RUN_FOLDER_H

#include "eval/evaluate.h"
#include "learn/settings.h"
#include "model/model.h"

/* How far a training is, besides its tables. */
typedef struct vlp_progress_state {
    int64_t step; /* steps done */
    double best_mrr;
    int64_t best_step;
    int32_t waited;      /* evaluations since the best */
    vlp_mixture mixture; /* chosen on valid at the best */
} vlp_progress_state;

/* What a weight file says of itself. */
typedef struct vlp_run_facts {
    char data[4096];   /* the data set's folder, absolute */
    char checksum[33]; /* of its names and triples */
    char version[16];
} vlp_run_facts;

vlp_status vlp_run_folder_facts_of(vlp_run_facts *out, const vlp_dataset *dataset, const char *folder);

/* Makes the folder with config.ini, entities.tsv, relations.tsv. Refuses one that has a run in it. */
vlp_status vlp_run_folder_create(const char *folder, const vlp_settings *settings,
                                 const vlp_dataset *dataset, const vlp_run_facts *facts);
/* entities.tsv and relations.tsv: row number = id; name, then label where there is one. */
vlp_status vlp_run_folder_write_names(const char *folder, const vlp_dataset *dataset);
bool vlp_run_folder_exists(const char *folder);
vlp_status vlp_run_folder_settings(vlp_settings *out, const char *folder);

vlp_status vlp_run_folder_save_model(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts);
vlp_status vlp_run_folder_load_model(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, const char *folder);
vlp_status vlp_run_folder_load_facts(vlp_run_facts *facts, const char *folder);

vlp_status vlp_run_folder_save_state(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts);
/* The state, or the one before where it is damaged (the observer is told). *found false: never saved. */
vlp_status vlp_run_folder_load_state(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, bool *found, const char *folder,
                                     const vlp_observer *observer);

/* metrics.jsonl: all of it, written whole; and its lines up to a step, to be freed ("" when there is
 * none). */
vlp_status vlp_run_folder_save_metrics(const char *folder, const char *lines);
vlp_status vlp_run_folder_load_metrics(char **out, const char *folder, int64_t last_step);

#endif
