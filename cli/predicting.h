/* Shared by predict, score and mine, and by eval for its graph: options, opening the run, printing
 * entities and references. */
#ifndef VLP_CLI_PREDICTING_H
#define VLP_CLI_PREDICTING_H

#include "cli.h"
#include "json.h"

enum {
    KEY_GRAPH = 0x200,
    KEY_RUN_DATA,
    KEY_RUN_DEVICE,
    KEY_ON_ERROR,
    KEY_PRIOR,
    KEY_EXPLAIN,
    KEY_PATHS
};

typedef struct predicting {
    vlp_run_options run;
    const char *graph; /* NULL: the training split of the run */
    bool skip;         /* invalid lines of a file */
    double prior;
    bool explain;
    int32_t paths; /* of an answer */
} predicting;
#define PREDICTING_INIT                                                                                 \
    { VLP_RUN_OPTIONS_INIT, NULL, false, 0.5, false, 3 }

/* Rows of an option table; two for the graph, whose older name stays. */
#define OPTION_GRAPH                                                                                    \
    {"graph",                                                                                           \
     KEY_GRAPH,                                                                                         \
     "DIR",                                                                                             \
     0,                                                                                                 \
     "Read the training split of this data set in place of the run's own: a graph over the same "       \
     "relations, which may have grown since training; entities that the run does not know are scored "  \
     "by the path model alone",                                                                         \
     0},                                                                                                \
    {                                                                                                   \
        "reference-graph", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0                               \
    }
#define OPTION_DATA                                                                                     \
    { "data", KEY_RUN_DATA, "DIR", 0, "The data set, if it has moved since training", 0 }
#define OPTION_DEVICE                                                                                   \
    { "device", KEY_RUN_DEVICE, "NAME", 0, CLI_DEVICES, 0 }
#define OPTION_ON_ERROR                                                                                 \
    { "on-error", KEY_ON_ERROR, "WHAT", 0, "On an invalid line of the file: stop or skip (stop)", 0 }
#define OPTION_PRIOR                                                                                    \
    {                                                                                                   \
        "prior", KEY_PRIOR, "SHARE", 0,                                                                 \
            "The share of true triples among those scored, for probabilities (0.5)", 0                  \
    }
#define OPTION_EXPLAIN                                                                                  \
    {                                                                                                   \
        "explain", KEY_EXPLAIN, NULL, 0,                                                                \
            "Show what each answer rests on: paths of known triples, the triples without which it "     \
            "falls, and references with the contribution of each",                                      \
            0                                                                                           \
    }
#define OPTION_PATHS                                                                                    \
    {                                                                                                   \
        "paths", KEY_PATHS, "N", 0,                                                                     \
            "With --explain: paths of each answer, 0 to 8; 0 also leaves out the search for the "       \
            "triples without which it falls (3)",                                                       \
            0                                                                                           \
    }

error_t predicting_parse(int key, char *value, struct argp_state *state, predicting *chosen);

/* Opens the run and sets its graph. */
vlp_status predicting_open(vlp_run **out, const char *folder, predicting *chosen,
                           const cli_common *common);

/* Sets the graph of a run, with remarks on standard error. */
vlp_status predicting_use_graph(vlp_run *run, const char *folder, const cli_common *common,
                                const vlp_observer *observer);

/* The label of an entity, or its name, for display (text_shown). */
const char *predicting_readable(const vlp_dataset *data, int32_t entity);

/* "f = f_c + 0.1 f_g" */
const char *predicting_formula(const vlp_run_info *info);
/* Why contributions are 0, or NULL. */
const char *predicting_no_copy(const vlp_run_info *info);

/* "references":[...] of one prediction, nearest first. */
void predicting_references_json(json_out *json, const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction);
/* The same as lines with bars, largest contribution first; nothing where the run has a path model and no
 * aggregator. */
void predicting_references_text(const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction, const vlp_run_info *info);

/* "paths":[...], "rank" and "without" of one prediction; nothing where the run has no path model. */
void predicting_paths_json(json_out *json, const vlp_dataset *data, const vlp_prediction *prediction);
/* The same as lines. */
void predicting_paths_text(const vlp_dataset *data, const vlp_prediction *prediction);

/* Reports an invalid line on standard error; returns whether to continue. */
bool predicting_bad_line(const predicting *chosen, vlp_status status);

#endif
