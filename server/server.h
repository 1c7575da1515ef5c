/* vlp serve: a trained run over HTTP, with a page. */
#ifndef VLP_SERVER_SERVER_H
#define VLP_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "vlp.h"

enum { SERVER_ALLOWED = 16 };

typedef struct server_options {
    const char *folder; /* of the run */
    const char *graph;  /* NULL: the run's own */
    vlp_run_options run;
    const char *host;       /* an address of this machine */
    int port;               /* 0: any that is free */
    const char *token_file; /* NULL: none; only on an address that other machines do not reach */
    const char *allowed[SERVER_ALLOWED]; /* names of this machine, for the Host header */
    int allowed_count;
    int connections; /* at most, at the same time */
    int workers;     /* threads for explanations; 0: chosen by the run */
    int queue;       /* requests that wait for each kind of work, at most */
    double timeout;  /* seconds for a request to arrive, and for it to be answered */
    bool json;       /* print an object with the address on standard output when ready */
    bool quiet;      /* no remarks on standard error */
} server_options;

/* Serves until SIGTERM or SIGINT; SIGHUP opens the run again. Returns whether it worked; messages are
 * printed to standard error. */
bool server_run(const server_options *options);

#endif
