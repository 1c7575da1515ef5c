/* Connections that are open, what each is at, and how long it has been at it.
 *
 * A connection waits for a request, receives its body, has it worked on, or is sent a reply. All but the
 * work have a time limit. Where there are more connections than allowed, the one that has waited for the
 * longest time is closed: connections that are opened and left cannot keep others out. */
#ifndef VLP_SERVER_SOCKETS_H
#define VLP_SERVER_SOCKETS_H

#include <pthread.h>
#include <stdbool.h>

#include "metrics.h"

typedef enum socket_stage {
    SOCKET_WAITING,
    SOCKET_RECEIVING,
    SOCKET_WORKING,
    SOCKET_SENDING,
    SOCKET_CLOSING /* shut down here, not yet closed by the library */
} socket_stage;

typedef struct socket_state {
    struct socket_state *before, *after;
    int file;
    socket_stage stage;
    double since;
} socket_state;

typedef struct socket_list {
    pthread_mutex_t lock;
    socket_state waiting, others; /* rings; these are their ends. `waiting` is ordered by `since` */
    int count, limit;
    double timeout;
    server_metrics *metrics;
} socket_list;

void sockets_start(socket_list *out, int limit, double timeout, server_metrics *metrics);
void sockets_end(socket_list *sockets);
/* A connection was opened; NULL: memory is missing. */
socket_state *sockets_open(socket_list *sockets, int file);
/* It is about to be closed. */
void sockets_close(socket_list *sockets, socket_state *socket);
void sockets_set(socket_list *sockets, socket_state *socket, socket_stage stage);
/* Shuts those down whose time is over. */
void sockets_sweep(socket_list *sockets);

#endif
