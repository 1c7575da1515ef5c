#include "http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    CONNECTION_MEMORY = 24 * 1024, /* bounds the header of a request */
    BODY_DROPPED = 16000000        /* a body that says it is longer is not read */
};

typedef enum call_stage { CALL_NEW, CALL_RECEIVING, CALL_WORKING, CALL_READY } call_stage;

/* One request, from its first line until its reply is sent. */
typedef struct http_call {
    work_job job; /* first: a job is a call */
    http_server *server;
    struct MHD_Connection *connection;
    socket_state *socket;
    const http_route *route;
    http_request request;
    http_reply reply;
    call_stage stage;
    double started;
    char *body;
    size_t body_size, body_capacity;
    bool body_too_large, has_body;
} http_call;

/* ---- Replies ------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *value;
} headers[] = {{"Content-Security-Policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
               {"X-Content-Type-Options", "nosniff"},
               {"X-Frame-Options", "DENY"},
               {"Referrer-Policy", "no-referrer"},
               {"Cross-Origin-Opener-Policy", "same-origin"},
               {"Cross-Origin-Resource-Policy", "same-origin"}};

static void add_headers(struct MHD_Response *response, const http_call *call) {
    const http_reply *reply = &call->reply;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    MHD_add_response_header(response, "Content-Type", reply->type);
    bool page = call->route && call->route->work == WORK_PAGE;
    MHD_add_response_header(response, "Cache-Control", page ? "no-cache" : "no-store");
    if (reply->allow) MHD_add_response_header(response, "Allow", reply->allow);
    if (reply->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (reply->retry_after > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", reply->retry_after);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    if (atomic_load(&call->server->closing)) MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result send_reply(http_call *call) {
    http_reply *reply = &call->reply;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->size, reply->fixed ? (void *)(uintptr_t)reply->fixed : reply->text,
        reply->fixed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (!response) return MHD_NO; /* closes the connection; the reply is freed with the call */
    reply->text = NULL;           /* the response's now */
    add_headers(response, call);
    metrics_request(&call->server->metrics, route_index(call->route), reply->status,
                    work_now() - call->started);
    sockets_set(&call->server->sockets, call->socket, SOCKET_SENDING);
    enum MHD_Result queued = MHD_queue_response(call->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* ---- Answering ----------------------------------------------------------------------------------- */

/* A worker has filled the reply. */
static void on_done(work_job *job) {
    http_call *call = (struct http_call *)job;
    call->stage = CALL_READY;
    MHD_resume_connection(call->connection);
}

static void fail_busy(http_reply *reply) {
    reply->retry_after = 1;
    reply_error(reply, 503, "The server has more requests than it can take; try again in a second.");
}

static void fail_large(http_reply *reply) {
    reply_error(reply, 413, "The body is larger than %d bytes.", REQUEST_BODY);
}

/* Hands the request to a worker, and suspends its connection until then. */
static enum MHD_Result hand_over(http_call *call) {
    call->stage = CALL_WORKING;
    call->job.done = on_done;
    call->job.deadline = work_now() + call->server->timeout;
    sockets_set(&call->server->sockets, call->socket, SOCKET_WORKING);
    MHD_suspend_connection(call->connection);
    if (!workers_push(&call->server->workers, &call->job)) {
        fail_busy(&call->reply);
        on_done(&call->job);
    }
    return MHD_YES;
}

static void hold_run(http_call *call) {
    http_server *server = call->server;
    pthread_mutex_lock(&server->lock);
    call->job.handling = (http_handling){.run = served_hold(server->run),
                                         .request = &call->request,
                                         .reply = &call->reply,
                                         .uptime = work_now() - server->started};
    pthread_mutex_unlock(&server->lock);
}

/* The whole request is there. */
static enum MHD_Result answer(http_call *call) {
    const http_route *route = call->route;
    http_reply *reply = &call->reply;
    if (call->body_too_large)
        fail_large(reply);
    else if (call->request.method == METHOD_POST &&
             request_read_body(&call->request, reply, call->body ? call->body : "", call->body_size))
        (void)request_knows(&call->request, reply, route->parameters);
    if (reply_failed(reply)) return send_reply(call);
    hold_run(call);
    page_file file;
    switch (route->work) {
    case WORK_PAGE:
        if (page_find(&file, call->request.path))
            reply_text(reply, 200, file.type, file.text, file.size);
        return send_reply(call);
    case WORK_METRICS:
        metrics_text(reply, &call->server->metrics, route_name, call->job.handling.run->info.step);
        return send_reply(call);
    case WORK_QUICK:
        route->answer(&call->job.handling);
        return send_reply(call);
    case WORK_PREDICT:
        if (!prediction_read(&call->job.prediction, &call->job.handling)) return send_reply(call);
        return hand_over(call);
    case WORK_LONG:
        call->job.answer = route->answer;
        return hand_over(call);
    }
    return MHD_NO;
}

/* ---- Receiving ----------------------------------------------------------------------------------- */

static const char *header_of(const http_call *call, const char *name) {
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* Whether the body is sent as JSON; a form of another site cannot do that without asking. */
static bool is_json(const char *type) {
    static const char json[] = "application/json";
    size_t length = sizeof json - 1;
    return type && strncasecmp(type, json, length) == 0 &&
           (type[length] == '\0' || type[length] == ';' || type[length] == ' ');
}

/* Checks what is known before the body comes. */
static void check(http_call *call, const char *method) {
    http_server *server = call->server;
    http_reply *reply = &call->reply;
    call->request.method = request_method_of(method);
    if (!guard_knows_host(&server->guard, header_of(call, "Host"))) {
        reply_error(reply, 421,
                    "This server has another name than the Host header says; --allow-host adds one.");
        return;
    }
    if (reply_failed(reply)) return; /* the target was wrong */
    call->route = route_find(reply, &call->request);
    bool open = call->route && call->route->open;
    if (!open && !guard_has_token(&server->guard, header_of(call, "Authorization"))) {
        reply_error(reply, 401, "This server needs its token, as 'Authorization: Bearer TOKEN'.");
        return;
    }
    if (!call->route || !request_knows(&call->request, reply, call->route->parameters)) return;
    const char *length = header_of(call, "Content-Length");
    call->has_body = (length && strcmp(length, "0") != 0) || header_of(call, "Transfer-Encoding");
    if (call->request.method != METHOD_POST && call->has_body)
        reply_error(reply, 400, "A request without POST has no body.");
    else if (length && strtoull(length, NULL, 10) > BODY_DROPPED)
        fail_large(reply);
    else if (call->request.method == METHOD_POST && !is_json(header_of(call, "Content-Type")))
        reply_error(reply, 415, "The body has to be JSON, with 'Content-Type: application/json'.");
}

/* What is above the limit is read and dropped, so that a client that sends all of it sees the reply. */
static void receive(http_call *call, const char *data, size_t size) {
    if (call->body_too_large || call->body_size + size > REQUEST_BODY) {
        call->body_too_large = true;
        return;
    }
    if (call->body_size + size > call->body_capacity) {
        size_t capacity = 2 * (call->body_size + size);
        char *body = realloc(call->body, capacity);
        if (!body) {
            call->body_too_large = true;
            return;
        }
        call->body = body;
        call->body_capacity = capacity;
    }
    memcpy(call->body + call->body_size, data, size);
    call->body_size += size;
}

/* ---- Callbacks ----------------------------------------------------------------------------------- */

/* The first line of a request is there. */
static void *on_target(void *user, const char *target, struct MHD_Connection *connection) {
    http_server *server = user;
    http_call *call = calloc(1, sizeof *call);
    if (!call) return NULL;
    call->server = server;
    call->connection = connection;
    call->started = work_now();
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    call->socket = info ? info->socket_context : NULL;
    atomic_fetch_add(&server->active, 1);
    (void)request_read_target(&call->request, &call->reply, target);
    return call;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context) {
    (void)user, (void)connection, (void)url, (void)version;
    http_call *call = *context;
    if (!call) return MHD_NO;
    switch (call->stage) {
    case CALL_NEW:
        call->stage = CALL_RECEIVING;
        sockets_set(&call->server->sockets, call->socket, SOCKET_RECEIVING);
        check(call, method);
        return reply_failed(&call->reply) ? send_reply(call) : MHD_YES;
    case CALL_RECEIVING:
        if (*size == 0) return answer(call);
        receive(call, data, *size);
        *size = 0;
        return MHD_YES;
    case CALL_WORKING:
    case CALL_READY:
        break;
    }
    return send_reply(call);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how) {
    (void)user, (void)connection, (void)how;
    http_call *call = *context;
    if (!call) return;
    sockets_set(&call->server->sockets, call->socket, SOCKET_WAITING);
    atomic_fetch_sub(&call->server->active, 1);
    prediction_free(&call->job.prediction);
    served_release(call->job.handling.run);
    request_free(&call->request);
    reply_free(&call->reply);
    free(call->body);
    free(call);
    *context = NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    http_server *server = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? sockets_open(&server->sockets, info->connect_fd) : NULL;
    } else {
        sockets_close(&server->sockets, *context);
        *context = NULL;
    }
}

/* ---- Life ---------------------------------------------------------------------------------------- */

/* Messages of libmicrohttpd are of clients that behave badly. */
static void no_log(void *user, const char *format, va_list arguments) {
    (void)user, (void)format, (void)arguments;
}

bool http_start(http_server *server, int listener, int connections, int workers, int queue) {
    server->started = work_now();
    pthread_mutex_init(&server->lock, NULL);
    sockets_start(&server->sockets, connections, server->timeout, &server->metrics);
    if (!workers_start(&server->workers, workers, queue, &server->metrics)) return false;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(connections + 64),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (server->daemon) return true;
    workers_stop(&server->workers);
    return false;
}

void http_stop(http_server *server, double seconds) {
    atomic_store(&server->closing, true);
    int listener = MHD_quiesce_daemon(server->daemon);
    if (listener >= 0) close(listener);
    for (double end = work_now() + seconds; atomic_load(&server->active) > 0 && work_now() < end;) {
        usleep(5000);
        sockets_sweep(&server->sockets);
    }
    /* Workers first: they resume the connections of what they still have. */
    workers_stop(&server->workers);
    MHD_stop_daemon(server->daemon);
    sockets_end(&server->sockets);
    pthread_mutex_destroy(&server->lock);
}

void http_swap(http_server *server, served *run) {
    pthread_mutex_lock(&server->lock);
    served *old = server->run;
    server->run = run;
    pthread_mutex_unlock(&server->lock);
    atomic_store(&old->stopping, true);
    served_release(old);
}
