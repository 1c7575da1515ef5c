/* vlp tune: a search for settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

enum {
    MAX_SETTINGS = 128,
    KEY_RECIPE = 1,
    KEY_SET,
    KEY_DEVICE,
    KEY_BASE,
    KEY_SPACE,
    KEY_COMPONENT,
    KEY_TRIALS,
    KEY_TIME,
    SHOWN_TRIALS = 10 /* rows of the table */
};

typedef struct chosen_options {
    vlp_tune_options tune;
    const char *output;
    const char *settings[MAX_SETTINGS + 2]; /* "key=value" */
    int32_t count;
} chosen_options;

static const struct argp_option options[] = {
    {"output", 'o', "OUT", 0, "The search's folder (needed): trials.jsonl and best.ini", 0},
    {"trials", KEY_TRIALS, "N", 0, "Trials at most, of the whole search (40, or what the time allows)",
     0},
    {"time", KEY_TIME, "TIME", 0, "Time at most, of this call, as 90s, 30m or 2h", 0},
    {"component", KEY_COMPONENT, "NAME", 0,
     "What is searched: path (the default), embeddings, or aggregator, which needs --base", 0},
    {"space", KEY_SPACE, "FILE", 0,
     "An INI file of what to search, as 'path_drop = 0, 0.2, 0.4' or 'n3 = 0.001 .. 0.5 log'", 0},
    {"recipe", KEY_RECIPE, "FILE", 0, "The settings to start from", 0},
    {"base", KEY_BASE, "RUN|DIR", 0,
     "Search the aggregator or the path model over a finished run, or over a folder of arrays", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "A setting that the search does not vary", 0},
    {"device", KEY_DEVICE, "NAME", 0, CLI_DEVICES, 0},
    {0}};

static vlp_component component_of(struct argp_state *state, const char *name) {
    if (strcmp(name, "path") == 0) return VLP_PATH;
    if (strcmp(name, "embeddings") == 0) return VLP_HORIZONTAL;
    if (strcmp(name, "aggregator") != 0)
        argp_error(state, "--component takes path, embeddings or aggregator, not '%s'",
                   text_shown(name));
    return VLP_VERTICAL;
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case 'o':
        chosen->output = value;
        return 0;
    case KEY_RECIPE:
        chosen->tune.recipe = value;
        return 0;
    case KEY_SET:
        if (!strchr(value, '=')) argp_error(state, "--set takes KEY=VALUE, not '%s'", text_shown(value));
        if (chosen->count == MAX_SETTINGS) argp_error(state, "more than %d settings", MAX_SETTINGS);
        chosen->settings[chosen->count++] = value;
        return 0;
    case KEY_DEVICE:
        chosen->tune.device = value;
        return 0;
    case KEY_BASE:
        chosen->tune.base = value;
        return 0;
    case KEY_SPACE:
        chosen->tune.space = value;
        return 0;
    case KEY_COMPONENT:
        chosen->tune.component = component_of(state, value);
        return 0;
    case KEY_TRIALS:
        chosen->tune.trials = cli_integer(state, "--trials", value, 1, 1000000);
        return 0;
    case KEY_TIME:
        chosen->tune.time = cli_seconds(value);
        if (chosen->tune.time < 0)
            argp_error(state, "--time takes 90s, 30m or 2h, not '%s'", text_shown(value));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The live table ------------------------------------------------------------------------------ */

/* Lines of the table on the terminal, which the next one replaces. */
typedef struct live_table {
    int lines;
} live_table;

/* "in full" or "1/9". */
static const char *length_of(char out[16], const vlp_tune_trial *trial) {
    snprintf(out, 16, trial->part == 1 ? "in full" : "1/%d", trial->part);
    return out;
}

static const char *mrr_of(char out[16], const vlp_tune_trial *trial) {
    if (isnan(trial->mrr)) return "diverged";
    snprintf(out, 16, "%.4f", trial->mrr);
    return out;
}

/* "12 of 40 trials, 2 running, about 3 min 20 s left" */
static void print_state(FILE *stream, const vlp_tune_state *state) {
    fprintf(stream, "%s", cli_count(state->count));
    if (state->total > 0) fprintf(stream, " of %s", cli_count(state->total));
    fprintf(stream, " trials, %d running", state->running);
    if (!isnan(state->seconds_left))
        fprintf(stream, ", about %s left", cli_duration(state->seconds_left));
}

static void print_line(const vlp_tune_state *state) {
    char length[16], mrr[16], best[16];
    if (!state->last) return;
    fprintf(stderr, "MRR %s (%s, %s) %s; best %s; ", mrr_of(mrr, state->last),
            length_of(length, state->last), cli_duration(state->last->seconds), state->last->settings,
            mrr_of(best, &state->trials[0]));
    print_state(stderr, state);
    fputc('\n', stderr);
}

static int terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void draw_table(live_table *table, const vlp_tune_state *state) {
    enum { BEFORE_SETTINGS = 36 };
    int columns = terminal_columns(), lines = 2;
    if (table->lines > 0) fprintf(stderr, "\033[%dA", table->lines);
    fprintf(stderr, "\r\033[J%-8s  %-9s  %-8s  %s\n", "MRR", "candidate", "length", "settings");
    for (int64_t i = 0; i < state->count && i < SHOWN_TRIALS; i++, lines++) {
        char length[16], mrr[16];
        const vlp_tune_trial *trial = &state->trials[i];
        fprintf(stderr, "%-8s  %9s  %-8s  %.*s\n", mrr_of(mrr, trial), cli_count(trial->candidate),
                length_of(length, trial), columns - BEFORE_SETTINGS, trial->settings);
    }
    print_state(stderr, state);
    fputc('\n', stderr);
    table->lines = lines;
    fflush(stderr);
}

static void watch(void *user, const vlp_tune_state *state) {
    if (cli_is_terminal())
        draw_table(user, state);
    else
        print_line(state);
}

/* ---- The end ------------------------------------------------------------------------------------- */

static void print_json(const chosen_options *chosen, const vlp_tune_report *report, const char *recipe) {
    json_out json = json_start(stdout);
    json_object(&json, NULL);
    json_string(&json, "out", chosen->output);
    json_integer(&json, "trials", report->trials);
    json_integer(&json, "call_trials", report->call_trials);
    json_number(&json, "seconds", report->seconds);
    json_bool(&json, "complete", report->complete);
    json_integer(&json, "trial_threads", report->trial_threads);
    json_integer(&json, "at_once", report->at_once);
    json_string(&json, "recipe", recipe);
    json_object(&json, "best");
    json_integer(&json, "candidate", report->best.candidate);
    json_integer(&json, "rung", report->best.rung);
    json_integer(&json, "part", report->best.part);
    json_number(&json, "mrr", report->best.mrr);
    json_number(&json, "seconds", report->best.seconds);
    json_string(&json, "settings", report->settings);
    json_end_object(&json);
    json_end_object(&json);
    putchar('\n');
}

static void print_report(const chosen_options *chosen, const char *data, const vlp_tune_report *report,
                         const char *recipe) {
    char length[16];
    printf("%s: %s in %s, best validation MRR %.4f (%s): %s\n", text_shown(chosen->output),
           cli_things(report->trials, "trial"), cli_duration(report->seconds), report->best.mrr,
           length_of(length, &report->best), report->settings);
    if (!report->complete) printf("The time was up; the same command goes on.\n");
    printf("vlp train %s -o RUN --recipe %s", text_shown(data), text_shown(recipe));
    if (chosen->tune.base) printf(" --base %s", text_shown(chosen->tune.base));
    if (chosen->tune.device) printf(" --device %s", text_shown(chosen->tune.device));
    putchar('\n');
}

/* What to type after a failure, NULL where the message says it all. */
static const char *what_next(vlp_status status) {
    if (status == VLP_ERROR_EXISTS) return "another -o";
    if (status == VLP_ERROR_STOPPED) return "the same command goes on";
    if (status == VLP_ERROR_UNKNOWN) return "vlp train --settings lists them";
    return NULL;
}

static int search(chosen_options *chosen, const char *data, const cli_common *common) {
    char recipe[4096];
    vlp_tune_report report;
    vlp_status status = vlp_tune(&report, data, chosen->output, &chosen->tune);
    if (status != VLP_OK) return cli_fail_next(status, chosen->tune.device, what_next(status));
    cli_observer_end();
    snprintf(recipe, sizeof recipe, "%s/best.ini", chosen->output);
    if (common->json)
        print_json(chosen, &report, recipe);
    else
        print_report(chosen, data, &report, recipe);
    return cli_finish();
}

int cmd_tune(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp tune",
        "DIR -o OUT",
        "Search for the settings with the best validation MRR, by successive halving: of 27 candidates "
        "all are trained for 1/27 of their passes and steps, the best 9 for 1/9, the best 3 for 1/3 and "
        "the best one in full; then come 27 new ones, within --trials and --time.\v"
        "OUT/best.ini has the best settings, for `vlp train --recipe`. Interrupted or killed, the same "
        "command goes on: finished trials, a line each in OUT/trials.jsonl, are not repeated. --seed "
        "draws the candidates and seeds their trainings. Small graphs have a thread for each trial.",
        options,
        parse,
        1,
        1};
    chosen_options chosen = {.tune = VLP_TUNE_OPTIONS_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (!chosen.output) {
        fprintf(stderr, "vlp tune: -o OUT names the folder of the search; it is needed\n");
        return EXIT_USAGE;
    }
    char seed[40], threads[40];
    live_table lines = {0};
    snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)line.common.seed);
    snprintf(threads, sizeof threads, "threads=%d", line.common.threads);
    if (line.common.seed_given) chosen.settings[chosen.count++] = seed;
    if (line.common.threads > 0) chosen.settings[chosen.count++] = threads;
    chosen.tune.settings = chosen.settings;
    chosen.tune.setting_count = chosen.count;
    chosen.tune.observer = cli_observer(&line.common);
    if (!line.common.quiet) chosen.tune.watch = watch;
    chosen.tune.user = &lines;
    return search(&chosen, line.arguments[0], &line.common);
}
