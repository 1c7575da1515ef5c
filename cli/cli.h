/* What the subcommands share: common options, messages, tables, the end of the program. */
#ifndef VLP_CLI_CLI_H
#define VLP_CLI_CLI_H

#include <argp.h>
#include <stdio.h>

#include "vlp.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Options that every command takes. */
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

/* Runs the command that argv[1] names, or prints the list. `prefix` is what came before ("vlp data"). */
int cli_dispatch(const cli_command *commands, const char *prefix, const char *about, int argc,
                 char **argv);

/* Parses a subcommand's line: `name` ("vlp data stats") goes into messages. `options` are its own, NULL
 * for none; positional arguments are collected, between `least` and `most` of them. Exits on wrong
 * usage and on --help. */
typedef struct cli_line {
    cli_common common;
    char *arguments[8];
    int count;
    void *own; /* the command's own settings, for `parse` */
} cli_line;

typedef struct cli_syntax {
    const char *name, *arguments, *help;
    const struct argp_option *options;
    /* Takes an option of the command's own; 0, or ARGP_ERR_UNKNOWN. */
    error_t (*parse)(int key, char *value, struct argp_state *state, void *own);
    int least, most;
} cli_syntax;

void cli_parse(cli_line *line, const cli_syntax *syntax, int argc, char **argv);

/* Option values; a bad one is a usage error that names the option and its range. */
int64_t cli_integer(struct argp_state *state, const char *option, const char *text, int64_t least,
                    int64_t most);
vlp_split cli_split(struct argp_state *state, const char *text); /* of --split: valid or test */
#define CLI_DEVICES "auto, cpu or cuda"                          /* the help of --device */
/* The usage error for an item of a list, `length` bytes of `item`. */
void cli_unknown_item(struct argp_state *state, const char *option, const char *item, size_t length);
double cli_number(struct argp_state *state, const char *option, const char *text, double least,
                  double most);

/* An observer that draws on standard error: a bar on a terminal, rare plain lines elsewhere; it asks to
 * stop after SIGINT or SIGTERM. */
const vlp_observer *cli_observer(const cli_common *common);
void cli_observer_end(void); /* clears the bar */

/* Prints the library's last message; the exit code of a failure. */
int cli_fail(void);
/* Flushes standard output; the exit code. */
int cli_finish(void);
/* For atexit: argp prints --help and exits with 0 by itself, whether it could be written or not. */
void cli_check_output(void);

/* An integer with its thousands apart; from a few static buffers, for one printf. */
const char *cli_count(int64_t value);
/* "1 entity", "2,000 entities"; likewise. */
const char *cli_things(int64_t count, const char *noun);

#endif
