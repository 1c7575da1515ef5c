/* vlp serve: a trained run over HTTP, with a page. */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "server/server.h"
#include "text.h"

enum {
    KEY_HOST = 1,
    KEY_PORT,
    KEY_TOKEN,
    KEY_ALLOW,
    KEY_CONNECTIONS,
    KEY_WORKERS,
    KEY_QUEUE,
    KEY_TIMEOUT,
    KEY_SERVED_GRAPH,
    KEY_DATA,
    KEY_DEVICE
};

static const struct argp_option options[] = {
    {"port", KEY_PORT, "N", 0, "Port to listen on; 0: any that is free (8080)", 0},
    {"host", KEY_HOST, "ADDRESS", 0,
     "Address to listen on; one that other machines reach needs --token-file (127.0.0.1)", 0},
    {"token-file", KEY_TOKEN, "FILE", 0,
     "Answer only requests with the token in this file (16 characters or more), which others may not "
     "read",
     0},
    {"allow-host", KEY_ALLOW, "NAME", 0,
     "With a token: a name under which the server is reached, for the Host header; may be repeated", 0},
    {"connections", KEY_CONNECTIONS, "N", 0, "Connections at the same time (2000)", 0},
    {"workers", KEY_WORKERS, "N", 0,
     "Explanations that are computed at the same time (2 with a path model, else 16)", 0},
    {"queue", KEY_QUEUE, "N", 0, "Requests that may wait to be computed, then 503 is answered (256)", 0},
    {"timeout", KEY_TIMEOUT, "TIME", 0,
     "Time for a request to arrive, and for it to be answered: seconds, or with a unit as in 90s, 2m "
     "(30)",
     0},
    {"graph", KEY_SERVED_GRAPH, "DIR", 0,
     "Read the training split of this data set in place of the run's own, as vlp predict does", 0},
    {"data", KEY_DATA, "DIR", 0, "The data set, if it has moved since training", 0},
    {"device", KEY_DEVICE, "NAME", 0, CLI_DEVICES, 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    server_options *chosen = own;
    switch (key) {
    case KEY_HOST:
        chosen->host = value;
        return 0;
    case KEY_PORT:
        chosen->port = (int)cli_integer(state, "--port", value, 0, 65535);
        return 0;
    case KEY_TOKEN:
        chosen->token_file = value;
        return 0;
    case KEY_ALLOW:
        if (chosen->allowed_count == SERVER_ALLOWED)
            argp_error(state, "--allow-host is given more than %d times", SERVER_ALLOWED);
        chosen->allowed[chosen->allowed_count++] = value;
        return 0;
    case KEY_CONNECTIONS:
        chosen->connections = (int)cli_integer(state, "--connections", value, 1, 1000000);
        return 0;
    case KEY_WORKERS:
        chosen->workers = (int)cli_integer(state, "--workers", value, 1, 64);
        return 0;
    case KEY_QUEUE:
        chosen->queue = (int)cli_integer(state, "--queue", value, 1, 1000000);
        return 0;
    case KEY_TIMEOUT:
        chosen->timeout = cli_seconds(value);
        if (chosen->timeout < 0.1 || chosen->timeout > 86400)
            argp_error(state, "--timeout takes a time from 0.1s to 24h, not '%s'", text_shown(value));
        return 0;
    case KEY_SERVED_GRAPH:
        chosen->graph = value;
        return 0;
    case KEY_DATA:
        chosen->run.data = value;
        return 0;
    case KEY_DEVICE:
        chosen->run.device = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_serve(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp serve",
        "RUN",
        "Serve a run over HTTP: a page to ask it from a browser, and a JSON API.\v"
        "The address is printed when the server is ready; with --json, as an object with url and pid on "
        "standard output. SIGTERM and SIGINT end it after the requests under way are answered; SIGHUP "
        "opens "
        "the run again, which may have been trained further, without a request lost. /api/openapi.json "
        "describes the API.",
        options,
        parse,
        1,
        1};
    server_options chosen = {.run = VLP_RUN_OPTIONS_INIT,
                             .host = "127.0.0.1",
                             .port = 8080,
                             .connections = 2000,
                             .queue = 256,
                             .timeout = 30};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (chosen.allowed_count > 0 && !chosen.token_file) {
        fprintf(stderr, "vlp serve: --allow-host needs --token-file\n");
        return EXIT_USAGE;
    }
    chosen.folder = line.arguments[0];
    chosen.run.threads = line.common.threads;
    chosen.json = line.common.json;
    chosen.quiet = line.common.quiet;
    return server_run(&chosen) ? EXIT_DONE : EXIT_FAILED;
}
