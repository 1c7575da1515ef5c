/* HTTP by libmicrohttpd: one thread reads and writes all connections. A request that computes is
 * suspended, and resumed when a worker has filled its reply. */
#ifndef VLP_SERVER_HTTP_H
#define VLP_SERVER_HTTP_H

#include <pthread.h>
#include <stdatomic.h>

#include "guard.h"
#include "metrics.h"
#include "routes.h"
#include "sockets.h"
#include "work.h"

typedef struct http_server {
    struct MHD_Daemon *daemon;
    double started, timeout;
    pthread_mutex_t lock; /* of `run` */
    served *run;          /* that new requests get */
    server_guard guard;
    work_force workers;
    socket_list sockets;
    server_metrics metrics;
    atomic_int active; /* requests that are not answered completely */
    atomic_bool closing;
} http_server;

/* Starts on a socket that listens; `run`, `guard` and `timeout` of the server are set. */
bool http_start(http_server *server, int listener, int connections, int workers, int queue);
/* Accepts no more connections, waits at most `seconds` for requests under way, then closes everything.
 */
void http_stop(http_server *server, double seconds);
/* Requests from now on get this run; the server takes it over. */
void http_swap(http_server *server, served *run);

#endif
