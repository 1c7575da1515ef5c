#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

/* ---- Commands ------------------------------------------------------------------------------------ */

static void print_commands(FILE *stream, const cli_command *commands, const char *prefix,
                           const char *about) {
    fprintf(stream, "%s\n\nUsage: %s COMMAND ...\n\n", about, prefix);
    for (const cli_command *command = commands; command->name; command++)
        fprintf(stream, "  %-9s %s\n            %s\n", command->name, command->usage, command->help);
    fprintf(stream, "\n`%s COMMAND --help` lists the options of a command.\n", prefix);
}

int cli_dispatch(const cli_command *commands, const char *prefix, const char *about, int argc,
                 char **argv) {
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_commands(stderr, commands, prefix, about);
        return EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0 ||
        strcmp(name, "help") == 0) {
        print_commands(stdout, commands, prefix, about);
        return cli_finish();
    }
    for (const cli_command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command->run(argc - 1, argv + 1);
    fprintf(stderr, "vlp: there is no command '%s %s'; `%s --help` lists them\n", prefix,
            text_shown(name), prefix);
    return EXIT_USAGE;
}

/* ---- Options ------------------------------------------------------------------------------------- */

int64_t cli_integer(struct argp_state *state, const char *option, const char *text, int64_t minimum,
                    int64_t maximum) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < minimum || value > maximum)
        argp_error(state, "%s takes a whole number from %lld to %lld, not '%s'", option,
                   (long long)minimum, (long long)maximum, text_shown(text));
    return value;
}

double cli_seconds(const char *text) {
    char *end;
    double value = strtod(text, &end);
    double unit = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1
                  : strcmp(end, "m") == 0                       ? 60
                  : strcmp(end, "h") == 0                       ? 3600
                                                                : -1;
    return end != text && isfinite(value) && value > 0 ? value * unit : -1;
}

vlp_split cli_split(struct argp_state *state, const char *text) {
    if (strcmp(text, "valid") != 0 && strcmp(text, "test") != 0)
        argp_error(state, "--split takes valid or test, not '%s'", text_shown(text));
    return text[0] == 'v' ? VLP_VALID : VLP_TEST;
}

vlp_sides cli_sides(struct argp_state *state, const char *text) {
    if (strcmp(text, "head") == 0) return VLP_HEADS;
    if (strcmp(text, "tail") == 0) return VLP_TAILS;
    if (strcmp(text, "both") != 0)
        argp_error(state, "--side takes head, tail or both, not '%s'", text_shown(text));
    return VLP_BOTH_SIDES;
}

void cli_unknown_item(struct argp_state *state, const char *option, const char *item, size_t length) {
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)length, item);
    argp_error(state, "%s: unknown item '%s'", option, text_shown(text));
}

double cli_number(struct argp_state *state, const char *option, const char *text, double minimum,
                  double maximum) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < minimum || value > maximum)
        argp_error(state, "%s takes a number from %g to %g, not '%s'", option, minimum, maximum,
                   text_shown(text));
    return value;
}

enum { KEY_JSON = 0x1000, KEY_SEED, KEY_THREADS };

static const struct argp_option common_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON object and nothing else on standard output", 90},
    {"quiet", 'q', NULL, 0, "Print neither progress nor remarks", 90},
    {"seed", KEY_SEED, "N", 0, "Seed of all random numbers (0)", 90},
    {"threads", KEY_THREADS, "N", 0, "Threads to use (all)", 90},
    {0}};

static error_t parse_common(int key, char *value, struct argp_state *state) {
    cli_common *common = state->input;
    switch (key) {
    case KEY_JSON:
        common->json = true;
        return 0;
    case 'q':
        common->quiet = true;
        return 0;
    case KEY_SEED:
        common->seed = (uint64_t)cli_integer(state, "--seed", value, 0, INT64_MAX);
        common->seed_given = true;
        return 0;
    case KEY_THREADS:
        common->threads = (int32_t)cli_integer(state, "--threads", value, 1, 1024);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_common_argp = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};

typedef struct parse_job {
    cli_line *line;
    const cli_syntax *syntax;
} parse_job;

static error_t parse_line(int key, char *value, struct argp_state *state) {
    parse_job *job = state->input;
    cli_line *line = job->line;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &line->common;
        return 0;
    case ARGP_KEY_ARG:
        if (line->count == job->syntax->maximum)
            argp_error(state, "too many arguments: '%s'", text_shown(value));
        line->arguments[line->count++] = value;
        return 0;
    case ARGP_KEY_END:
        if (line->count < job->syntax->minimum)
            argp_error(state, "%d argument%s; %d %s needed", line->count, line->count == 1 ? "" : "s",
                       job->syntax->minimum, job->syntax->minimum == 1 ? "is" : "are");
        return 0;
    default:
        return job->syntax->parse ? job->syntax->parse(key, value, state, line->own) : ARGP_ERR_UNKNOWN;
    }
}

void cli_parse(cli_line *line, const cli_syntax *syntax, int argc, char **argv) {
    const struct argp_child children[] = {{&cli_common_argp, 0, "Common options:", 90}, {0}};
    const struct argp argp = {.options = syntax->options,
                              .parser = parse_line,
                              .args_doc = syntax->arguments,
                              .doc = syntax->help,
                              .children = children};
    parse_job job = {line, syntax};
    argp_err_exit_status = EXIT_USAGE;
    /* argp uses this as the name of the program in messages. */
    char name[64];
    snprintf(name, sizeof name, "%s", syntax->name);
    argv[0] = name;
    if (argp_parse(&argp, argc, argv, 0, NULL, &job) != 0) exit(EXIT_USAGE);
    argv[0] = (char *)(uintptr_t)syntax->name;
}

/* ---- The end ------------------------------------------------------------------------------------- */

int cli_fail(void) {
    return cli_fail_next(VLP_OK, NULL, NULL);
}

int cli_fail_next(vlp_status status, const char *device, const char *next) {
    if (!next && status == VLP_ERROR_DEVICE && device && strcmp(device, "cuda") == 0)
        next = "--device cpu does without";
    cli_observer_end();
    fprintf(stderr, "vlp: %s", vlp_error_message());
    if (next) fprintf(stderr, " (%s)", next);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

/* Whether standard output was written completely; reports a failure once. */
static bool output_written(void) {
    static bool failed;
    if (failed) return false;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    failed = true;
    fprintf(stderr, "vlp: cannot write standard output: %s\n", strerror(errno ? errno : EIO));
    return false;
}

int cli_finish(void) {
    cli_observer_end();
    return output_written() ? EXIT_DONE : EXIT_FAILED;
}

void cli_check_output(void) {
    if (!output_written()) _exit(EXIT_FAILED);
}

const char *cli_count(int64_t value) {
    static char buffers[8][32];
    static int next;
    char digits[24], *out = buffers[next++ % 8];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value), used = 0;
    for (int i = 0; i < length; i++) {
        out[used++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0) out[used++] = ',';
    }
    out[used] = '\0';
    return out;
}

const char *cli_things(int64_t count, const char *noun) {
    static char buffers[8][96];
    static int next;
    char *out = buffers[next++ % 8];
    size_t length = strlen(noun);
    bool y = length > 0 && noun[length - 1] == 'y';
    if (count == 1)
        snprintf(out, sizeof buffers[0], "1 %s", noun);
    else
        snprintf(out, sizeof buffers[0], "%s %.*s%s", cli_count(count), (int)(length - y), noun,
                 y ? "ies" : "s");
    return out;
}

const char *cli_duration(double seconds) {
    static char buffers[8][48];
    static int next;
    char *out = buffers[next++ % 8];
    long long whole = (long long)(seconds + 0.5);
    if (seconds < 9.95)
        snprintf(out, sizeof buffers[0], "%.1f s", seconds);
    else if (whole < 60)
        snprintf(out, sizeof buffers[0], "%lld s", whole);
    else if (whole < 3600)
        snprintf(out, sizeof buffers[0], "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(out, sizeof buffers[0], "%lld h %02lld min", whole / 3600, whole / 60 % 60);
    return out;
}

const char *cli_relation(const vlp_dataset *data, int32_t relation) {
    const char *label = vlp_dataset_relation_label(data, relation);
    return label ? label : vlp_dataset_relation_name(data, relation);
}
