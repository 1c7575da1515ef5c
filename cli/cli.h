/* Shared by the subcommands: common options, messages, exit codes. */
#ifndef VLP_CLI_CLI_H
#define VLP_CLI_CLI_H

#include <argp.h>
#include <stdio.h>

#include "vlp.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Options of every command. */
typedef struct cli_common {
    bool json, quiet;
    uint64_t seed;
    bool seed_given;
    int32_t threads;
} cli_common;

extern const struct argp cli_common_argp; /* its input is a cli_common */

/* A subcommand: argv[0] is its name. Returns an exit code. */
typedef int (*cli_run)(int argc, char **argv);
typedef struct cli_command {
    const char *name, *usage, *help;
    cli_run run;
} cli_command;

/* Runs the command named by argv[1], or prints the list. `prefix` is the part before it ("vlp data"). */
int cli_dispatch(const cli_command *commands, const char *prefix, const char *about, int argc,
                 char **argv);

/* Parses the command line of a subcommand. `name` ("vlp data stats") is used in messages; `options`
 * are those of the command, or NULL; it takes `minimum` to `maximum` positional arguments. Exits on
 * wrong usage and on --help. */
typedef struct cli_line {
    cli_common common;
    char *arguments[8];
    int count;
    void *own; /* the command's own settings, for `parse` */
} cli_line;

typedef struct cli_syntax {
    const char *name, *arguments, *help;
    const struct argp_option *options;
    /* Parses an option of the command; returns 0 or ARGP_ERR_UNKNOWN. */
    error_t (*parse)(int key, char *value, struct argp_state *state, void *own);
    int minimum, maximum;
} cli_syntax;

void cli_parse(cli_line *line, const cli_syntax *syntax, int argc, char **argv);

/* Option values. An invalid value is a usage error that names the option and its range. */
int64_t cli_integer(struct argp_state *state, const char *option, const char *text, int64_t minimum,
                    int64_t maximum);
/* "90s", "10m", "1.5h" or plain seconds. Negative: not a time. */
double cli_seconds(const char *text);
vlp_split cli_split(struct argp_state *state, const char *text); /* of --split: valid or test */
vlp_sides cli_sides(struct argp_state *state, const char *text); /* of --side: head, tail or both */
#define CLI_DEVICES "auto, cpu or cuda"                          /* the help of --device */
/* The usage error for an item of a list, `length` bytes of `item`. */
void cli_unknown_item(struct argp_state *state, const char *option, const char *item, size_t length);
double cli_number(struct argp_state *state, const char *option, const char *text, double minimum,
                  double maximum);

/* An observer that prints to standard error: a progress bar on a terminal, otherwise a line every few
 * seconds. It requests a stop after SIGINT, SIGTERM or SIGHUP. A second signal ends the program at once,
 * and so does the first while another library is loaded, or when the library does not ask for a while.
 */
const vlp_observer *cli_observer(const cli_common *common);
void cli_observer_end(void); /* clears the bar */
/* Whether standard error is a terminal that can move its cursor. */
bool cli_is_terminal(void);

/* Prints the library's last message; returns the exit code of a failure. */
int cli_fail(void);
/* The same, followed in brackets by what to type next: `next`, or, where it is NULL and `device`, the
 * value of --device, is a GPU that is missing or failed, the device that works without. The library's
 * messages name no options. `device` and `next` may be NULL. */
int cli_fail_next(vlp_status status, const char *device, const char *next);
/* Flushes standard output; returns the exit code. */
int cli_finish(void);
/* For atexit: argp prints --help and exits with 0 even if the output could not be written. */
void cli_check_output(void);

/* An integer with thousands separators, in one of a few static buffers, for one printf. */
const char *cli_count(int64_t value);
/* "1 entity", "2,000 entities", likewise. */
const char *cli_things(int64_t count, const char *noun);
/* "3.2 s", "45 s", "3 min 20 s", "2 h 05 min", likewise. */
const char *cli_duration(double seconds);

/* How a relation is shown to people: its label, else its name. Borrowed. */
const char *cli_relation(const vlp_dataset *data, int32_t relation);

#endif
