#include "sockets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "work.h"

static void unlink_socket(socket_state *socket) {
    socket->before->after = socket->after;
    socket->after->before = socket->before;
}

static void append(socket_state *end, socket_state *socket) {
    socket->before = end->before;
    socket->after = end;
    end->before->after = socket;
    end->before = socket;
}

/* The library sees an end of the stream and closes. */
static void shut_down(socket_list *sockets, socket_state *socket) {
    unlink_socket(socket);
    append(&sockets->others, socket);
    socket->stage = SOCKET_CLOSING;
    shutdown(socket->file, SHUT_RDWR);
    atomic_fetch_add(&sockets->metrics->closed_idle, 1);
}

void sockets_start(socket_list *out, int limit, double timeout, server_metrics *metrics) {
    *out = (socket_list){.limit = limit, .timeout = timeout, .metrics = metrics};
    pthread_mutex_init(&out->lock, NULL);
    out->waiting.before = out->waiting.after = &out->waiting;
    out->others.before = out->others.after = &out->others;
}

void sockets_end(socket_list *sockets) {
    pthread_mutex_destroy(&sockets->lock);
}

socket_state *sockets_open(socket_list *sockets, int file) {
    socket_state *socket = calloc(1, sizeof *socket);
    if (!socket) return NULL;
    *socket = (socket_state){.file = file, .stage = SOCKET_WAITING, .since = work_now()};
    pthread_mutex_lock(&sockets->lock);
    append(&sockets->waiting, socket);
    atomic_store(&sockets->metrics->open_connections, ++sockets->count);
    if (sockets->count > sockets->limit && sockets->waiting.after != socket)
        shut_down(sockets, sockets->waiting.after);
    pthread_mutex_unlock(&sockets->lock);
    return socket;
}

void sockets_close(socket_list *sockets, socket_state *socket) {
    if (!socket) return;
    pthread_mutex_lock(&sockets->lock);
    unlink_socket(socket);
    atomic_store(&sockets->metrics->open_connections, --sockets->count);
    pthread_mutex_unlock(&sockets->lock);
    free(socket);
}

void sockets_set(socket_list *sockets, socket_state *socket, socket_stage stage) {
    if (!socket) return;
    pthread_mutex_lock(&sockets->lock);
    if (socket->stage != SOCKET_CLOSING) {
        unlink_socket(socket);
        append(stage == SOCKET_WAITING ? &sockets->waiting : &sockets->others, socket);
        socket->stage = stage;
        socket->since = work_now();
    }
    pthread_mutex_unlock(&sockets->lock);
}

/* Nothing else is written to a connection whose request is still received. */
static void say_timeout(const socket_state *socket) {
    static const char text[] =
        "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
        "Content-Length: 72\r\nConnection: close\r\n\r\n"
        "{\"error\":\"The request did not arrive within the time that is allowed.\"}\n";
    (void)send(socket->file, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sockets_sweep(socket_list *sockets) {
    pthread_mutex_lock(&sockets->lock);
    double oldest = work_now() - sockets->timeout;
    while (sockets->waiting.after != &sockets->waiting && sockets->waiting.after->since < oldest)
        shut_down(sockets, sockets->waiting.after);
    for (socket_state *socket = sockets->others.after, *next; socket != &sockets->others;
         socket = next) {
        next = socket->after;
        bool timed = socket->stage == SOCKET_RECEIVING || socket->stage == SOCKET_SENDING;
        if (!timed || socket->since >= oldest) continue;
        if (socket->stage == SOCKET_RECEIVING) say_timeout(socket);
        shut_down(sockets, socket);
    }
    pthread_mutex_unlock(&sockets->lock);
}
