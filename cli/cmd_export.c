/* vlp export: a run's tables as numpy arrays. */
#include "cli.h"
#include "commands.h"
#include "output.h"

enum { KEY_NPY = 1, KEY_DATA };

typedef struct chosen_options {
    vlp_run_options run;
    const char *folder;
} chosen_options;

static const struct argp_option options[] = {
    {"npy", KEY_NPY, "DIR", 0, "Write numpy arrays into this folder (needed)", 0},
    {"data", KEY_DATA, "DIR", 0, "The data set, where it has moved since training", 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    (void)state;
    chosen_options *chosen = own;
    switch (key) {
    case KEY_NPY:
        chosen->folder = value;
        return 0;
    case KEY_DATA:
        chosen->run.data = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_export(int argc, char **argv) {
    static const cli_syntax syntax = {"vlp export",
                                      "RUN --npy DIR",
                                      "Write a run's tables as arrays: entities in the order of "
                                      "entities.tsv, relations followed by their inverses.",
                                      options,
                                      parse,
                                      1,
                                      1};
    chosen_options chosen = {VLP_RUN_OPTIONS_INIT, NULL};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (!chosen.folder) {
        fprintf(stderr, "vlp export: --npy DIR names the folder to write; it is needed\n");
        return EXIT_USAGE;
    }
    if (!output_check_folder(chosen.folder)) return EXIT_FAILED;
    chosen.run.threads = line.common.threads;
    chosen.run.observer = cli_observer(&line.common);
    vlp_run *run = NULL;
    int code;
    if (vlp_run_open(&run, line.arguments[0], &chosen.run) != VLP_OK ||
        vlp_run_export(run, chosen.folder) != VLP_OK)
        code = cli_fail();
    else
        code = cli_finish();
    vlp_run_free(run);
    return code;
}
