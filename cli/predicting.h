/* What predict, score and mine share: their options, opening the run, and writing of entities and
 * references. */
#ifndef VLP_CLI_PREDICTING_H
#define VLP_CLI_PREDICTING_H

#include "cli.h"
#include "json.h"

enum {
    KEY_GRAPH = 0x200, /* --reference-graph */
    KEY_RUN_DATA,
    KEY_RUN_DEVICE,
    KEY_ON_ERROR,
    KEY_PRIOR,
    KEY_EXPLAIN
};

typedef struct predicting {
    vlp_run_options run;
    const char *graph; /* NULL: train */
    bool skip;         /* bad lines of a file */
    double prior;
    bool explain;
} predicting;
#define PREDICTING_INIT                                                                                 \
    { VLP_RUN_OPTIONS_INIT, NULL, false, 0.5, false }

/* Rows of an option table. */
#define OPTION_GRAPH                                                                                    \
    {                                                                                                   \
        "reference-graph", KEY_GRAPH, "DIR", 0,                                                         \
            "Take references from the train of this data set, which may have grown since training", 0   \
    }
#define OPTION_DATA                                                                                     \
    { "data", KEY_RUN_DATA, "DIR", 0, "The data set, where it has moved since training", 0 }
#define OPTION_DEVICE                                                                                   \
    { "device", KEY_RUN_DEVICE, "NAME", 0, CLI_DEVICES, 0 }
#define OPTION_ON_ERROR                                                                                 \
    {                                                                                                   \
        "on-error", KEY_ON_ERROR, "WHAT", 0,                                                            \
            "What a bad line of the file does: stop, or skip and go on (stop)", 0                       \
    }
#define OPTION_PRIOR                                                                                    \
    {                                                                                                   \
        "prior", KEY_PRIOR, "SHARE", 0,                                                                 \
            "The share of true triples among those asked about, for probabilities (0.5)", 0             \
    }
#define OPTION_EXPLAIN                                                                                  \
    { "explain", KEY_EXPLAIN, NULL, 0, "Show the references and what each contributes", 0 }

error_t predicting_parse(int key, char *value, struct argp_state *state, predicting *chosen);

/* Opens the run and puts its reference graph in place, with a remark on standard error. */
vlp_status predicting_open(vlp_run **out, const char *folder, predicting *chosen,
                           const cli_common *common);

/* The label of an entity, or its name, for people to see (text_shown). */
const char *predicting_readable(const vlp_dataset *data, int32_t entity);

/* "f = f_c + 0.1 f_g" */
const char *predicting_formula(const vlp_run_info *info);
/* Why contributions are 0, or NULL. */
const char *predicting_no_copy(const vlp_run_info *info);

/* "references":[...] of one prediction, nearest first. */
void predicting_references_json(json_out *json, const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction);
/* The same as lines, what contributes most first, with bars. */
void predicting_references_text(const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction, bool copies);

/* A bad line is told on standard error; true when the work may go on. */
bool predicting_bad_line(const predicting *chosen, vlp_status status);

#endif
