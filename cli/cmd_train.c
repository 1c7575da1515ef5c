/* vlp train: a model from a data set. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

enum {
    MAX_SETTINGS = 128,
    KEY_RECIPE = 1,
    KEY_MODEL,
    KEY_DIM,
    KEY_SET,
    KEY_DEVICE,
    KEY_BASE,
    KEY_RESUME,
    KEY_TIME,
    KEY_SETTINGS
};

typedef struct chosen_options {
    vlp_train_options train;
    const char *output;
    char *settings[MAX_SETTINGS]; /* "key=value", owned */
    int32_t count;
    bool time_given;
} chosen_options;

static const struct argp_option options[] = {
    {"output", 'o', "RUN", 0, "The run's folder (needed)", 0},
    {"recipe", KEY_RECIPE, "FILE", 0, "Settings from an INI file", 0},
    {"model", KEY_MODEL, "NAME", 0, "The score function; --settings lists them", 0},
    {"dim", KEY_DIM, "N", 0, "Size of an embedding", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Any setting; wins over the recipe", 0},
    {"device", KEY_DEVICE, "NAME", 0, CLI_DEVICES, 0},
    {"base", KEY_BASE, "RUN|DIR", 0,
     "Train the vertical aggregator, or with path=on the path model, over a finished run, or over a "
     "folder "
     "of arrays; what is there stays as it is",
     0},
    {"resume", KEY_RESUME, NULL, 0, "Continue a run from its last save, with its own settings", 0},
    {"time", KEY_TIME, "TIME", 0,
     "How long it may take, as 90s, 10m or 2h: chooses the settings that are not given (10m on a CPU, "
     "3m on "
     "a GPU); off: they have their defaults. Not with --recipe or --base, which have settings",
     0},
    {"settings", KEY_SETTINGS, NULL, 0, "List every setting, and stop", 0},
    {0}};

static void add_setting(chosen_options *chosen, struct argp_state *state, const char *key,
                        const char *value) {
    if (chosen->count == MAX_SETTINGS) argp_error(state, "more than %d settings", MAX_SETTINGS);
    size_t size = strlen(key) + strlen(value) + 2;
    char *text = malloc(size);
    if (!text) argp_failure(state, EXIT_FAILED, 0, "out of memory");
    snprintf(text, size, "%s%s%s", key, *key ? "=" : "", value);
    chosen->settings[chosen->count++] = text;
}

static void list_settings(void) {
    vlp_setting_info info;
    const char *section = "";
    for (int32_t i = 0; vlp_setting_describe(&info, i); i++) {
        if (strcmp(section, info.section) != 0) printf("%s[%s]\n", i ? "\n" : "", info.section);
        section = info.section;
        printf("%-20s %-18s %s (%s)\n", info.name, info.fallback, info.help, info.range);
    }
    exit(cli_finish());
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case 'o':
        chosen->output = value;
        return 0;
    case KEY_RECIPE:
        chosen->train.recipe = value;
        return 0;
    case KEY_MODEL:
        add_setting(chosen, state, "model", value);
        return 0;
    case KEY_DIM:
        add_setting(chosen, state, "dim", value);
        return 0;
    case KEY_SET:
        if (!strchr(value, '=')) argp_error(state, "--set takes KEY=VALUE, not '%s'", text_shown(value));
        add_setting(chosen, state, "", value);
        return 0;
    case KEY_DEVICE:
        chosen->train.device = value;
        return 0;
    case KEY_BASE:
        chosen->train.base = value;
        return 0;
    case KEY_RESUME:
        chosen->train.resume = true;
        return 0;
    case KEY_TIME:
        chosen->train.time = strcmp(value, "off") == 0 ? 0 : cli_seconds(value);
        chosen->time_given = true;
        if (chosen->train.time < 0)
            argp_error(state, "--time takes 90s, 10m, 2h or off, not '%s'", text_shown(value));
        return 0;
    case KEY_SETTINGS:
        list_settings();
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_report(const cli_common *common, const char *run, const vlp_train_report *report) {
    if (common->json) {
        json_out json = json_start(stdout);
        json_object(&json, NULL);
        json_string(&json, "run", run);
        json_integer(&json, "steps", report->steps);
        json_integer(&json, "call_steps", report->call_steps);
        json_number(&json, "seconds", report->seconds);
        json_number(&json, "steps_per_s", report->steps_per_second);
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            char key[48];
            snprintf(key, sizeof key, "loss_%s", vlp_component_name((vlp_component)c));
            json_number(&json, key, report->losses[c]);
        }
        json_number(&json, "valid_mrr", report->valid_mrr);
        json_end_object(&json);
        putchar('\n');
        return;
    }
    printf("%s: %s in %.1f s (%.1f per second)", text_shown(run), cli_things(report->call_steps, "step"),
           report->seconds, report->steps_per_second);
    if (report->call_steps != report->steps) printf(", %s in all", cli_count(report->steps));
    if (isfinite(report->valid_mrr))
        printf(", valid MRR %.4f (filtered by train and valid)", report->valid_mrr);
    putchar('\n');
}

/* Whether the folder holds a run, which can be resumed. */
static bool is_run(const char *folder) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/config.ini", folder);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* What to type after a failure of training into `run`, NULL where the message says it all. */
static const char *what_next(vlp_status status, const char *run) {
    if (status == VLP_ERROR_EXISTS) return is_run(run) ? "--resume, or another -o" : "another -o";
    if (status == VLP_ERROR_STOPPED) return "--resume goes on from the last save";
    if (status == VLP_ERROR_UNKNOWN) return "vlp train --settings lists them";
    return NULL;
}

/* Whether training is to read a file, not a folder. */
static bool is_file(const char *path) {
    struct stat about;
    return strcmp(path, "-") == 0 || (stat(path, &about) == 0 && S_ISREG(about.st_mode));
}

/* The data set that is made of a file of triples: RUN.data. NULL: it failed, with the error's code. */
static const char *split_file(const char *file, const chosen_options *chosen, const cli_line *line,
                              int *code) {
    static char folder[PATH_MAX];
    size_t length = strlen(chosen->output);
    while (length > 1 && chosen->output[length - 1] == '/') length--;
    vlp_split_options split = VLP_SPLIT_OPTIONS_INIT;
    vlp_import_report report;
    split.seed = line->common.seed;
    split.threads = line->common.threads;
    split.observer = chosen->train.observer;
    *code = EXIT_FAILED;
    if (length + sizeof ".data" > sizeof folder) {
        fprintf(stderr, "vlp train: the name of the folder is too long: %s\n",
                text_shown(chosen->output));
        return NULL;
    }
    snprintf(folder, sizeof folder, "%.*s.data", (int)length, chosen->output);
    if (chosen->train.resume && access(folder, F_OK) == 0) return folder;
    vlp_status status = vlp_import_file(&report, file, folder, NULL, &split);
    if (status != VLP_OK) {
        *code = cli_fail_next(status, NULL,
                              status == VLP_ERROR_EXISTS ? "train on it, or name another -o" : NULL);
        return NULL;
    }
    if (!line->common.quiet)
        fprintf(stderr,
                "%s has no splits: %s has them, %s to train, %s to validate, %s to test, at random\n",
                strcmp(file, "-") == 0 ? "standard input" : text_shown(file), folder,
                cli_count(report.triples[VLP_TRAIN]), cli_count(report.triples[VLP_VALID]),
                cli_count(report.triples[VLP_TEST]));
    return folder;
}

int cmd_train(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp train",
        "DIR|FILE -o RUN",
        "Train a model on a data set, or on a file of triples, which is split into RUN.data; the run's "
        "folder holds its weights, settings and metrics. Without a recipe, settings are chosen by the "
        "graph, the device and the time.\v"
        "Interrupting saves and stops; --resume goes on as if nothing had happened. It may change "
        "threads, device, eval_every, eval_triples, save_every, patience and steps, nothing else. `vlp "
        "train --settings` lists every setting with its default.",
        options,
        parse,
        1,
        1};
    chosen_options chosen = {.train = VLP_TRAIN_OPTIONS_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (!chosen.output) {
        fprintf(stderr, "vlp train: -o RUN names the folder to train into; it is needed\n");
        return EXIT_USAGE;
    }
    char seed[40], threads[40];
    snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)line.common.seed);
    snprintf(threads, sizeof threads, "threads=%d", line.common.threads);
    const char *all[MAX_SETTINGS + 2];
    int32_t count = 0;
    if (line.common.seed_given) all[count++] = seed;
    if (line.common.threads > 0) all[count++] = threads;
    for (int32_t i = 0; i < chosen.count; i++) all[count++] = chosen.settings[i];
    if (!chosen.time_given && !chosen.train.recipe && !chosen.train.base && !chosen.train.resume)
        chosen.train.time = VLP_TIME_DEFAULT;
    chosen.train.settings = all;
    chosen.train.setting_count = count;
    chosen.train.observer = cli_observer(&line.common);
    vlp_train_report report;
    int code = EXIT_FAILED;
    const char *data = line.arguments[0];
    /* A run that is there already is refused, or resumed, before anything is written. */
    bool there = is_run(chosen.output) && !chosen.train.resume;
    if (is_file(data) && !there) data = split_file(data, &chosen, &line, &code);
    vlp_status status = data ? vlp_train(&report, data, chosen.output, &chosen.train) : VLP_OK;
    if (!data) {
        /* The message is out. */
    } else if (status != VLP_OK) {
        code = cli_fail_next(status, chosen.train.device, what_next(status, chosen.output));
    } else {
        cli_observer_end();
        print_report(&line.common, chosen.output, &report);
        code = cli_finish();
    }
    for (int32_t i = 0; i < chosen.count; i++) free(chosen.settings[i]);
    return code;
}
