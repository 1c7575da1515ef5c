/* The life of the server: options, the socket, signals, opening the run again, the end. */
#include "server.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "text.h"

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("vlp: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- The socket ---------------------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24) == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static int port_of(int listener) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char port[8] = "0";
    if (getsockname(listener, (struct sockaddr *)&address, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&address, length, NULL, 0, port, sizeof port,
                          NI_NUMERICSERV);
    return (int)strtol(port, NULL, 10);
}

static int bind_socket(const struct addrinfo *address) {
    int listener = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return -1;
    int on = 1;
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6)
        (void)setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(listener, address->ai_addr, address->ai_addrlen) == 0 && listen(listener, 1024) == 0)
        return listener;
    int fault = errno;
    close(listener);
    errno = fault;
    return -1;
}

/* Listens on the address; -1: it failed, and said why. */
static int open_listener(const server_options *options) {
    char port[16];
    snprintf(port, sizeof port, "%d", options->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *address = NULL;
    int found = getaddrinfo(options->host, port, &hints, &address);
    if (found != 0) {
        say("cannot find the address %s: %s", text_shown(options->host), gai_strerror(found));
        return -1;
    }
    int listener = -1;
    if (!is_loopback(address->ai_addr) && !options->token_file) {
        say("other machines could reach %s: give --token-file FILE, or leave out --host",
            text_shown(options->host));
    } else {
        listener = bind_socket(address);
        if (listener < 0 && errno == EADDRINUSE)
            say("port %d of %s is in use: choose another with --port, or --port 0 for any that is free",
                options->port, text_shown(options->host));
        else if (listener < 0)
            say("cannot listen on %s, port %d: %s", text_shown(options->host), options->port,
                strerror(errno));
    }
    freeaddrinfo(address);
    return listener;
}

/* Allows as many open files as the system permits; returns how many connections fit. */
static int allow_files(int connections) {
    enum { OTHERS = 200 }; /* of the run and its threads, and a margin for those that are being closed */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= (rlim_t)connections + OTHERS) return connections;
    return limit.rlim_cur > 2 * OTHERS ? (int)limit.rlim_cur - OTHERS : OTHERS;
}

/* ---- Opening the run again ----------------------------------------------------------------------- */

typedef struct run_reload {
    http_server *server;
    const served_options *options;
    pthread_t thread;
    bool started;      /* the thread is to be joined */
    atomic_bool ended; /* and has nothing left to do */
    bool again;        /* a signal came meanwhile */
} run_reload;

static void *open_again(void *user) {
    run_reload *reload = user;
    served *run = NULL;
    if (served_open(&run, reload->options) == VLP_OK) {
        long long step = run->info.step;
        http_swap(reload->server, run);
        atomic_fetch_add(&reload->server->metrics.reloads, 1);
        say("opened the run again, at step %lld", step);
    } else {
        atomic_fetch_add(&reload->server->metrics.failed_reloads, 1);
        say("kept the run as it was, since it cannot be opened again: %s", vlp_error_message());
    }
    atomic_store(&reload->ended, true);
    return NULL;
}

static void start_reload(run_reload *reload) {
    if (reload->started) {
        reload->again = true;
        return;
    }
    atomic_store(&reload->ended, false);
    reload->again = false;
    reload->started = pthread_create(&reload->thread, NULL, open_again, reload) == 0;
    if (!reload->started) say("kept the run as it was: no thread could be started to open it again");
}

static void end_reload(run_reload *reload) {
    if (!reload->started || !atomic_load(&reload->ended)) return;
    pthread_join(reload->thread, NULL);
    reload->started = false;
    if (reload->again) start_reload(reload);
}

/* ---- Running ------------------------------------------------------------------------------------- */

static void block_signals(sigset_t *out) {
    sigemptyset(out);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGHUP);
    pthread_sigmask(SIG_BLOCK, out, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* While the run is opened: whether a signal asks to end. */
static bool on_stop(void *user) {
    (void)user;
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}

static void announce(const server_options *options, int port) {
    bool six = strchr(options->host, ':') != NULL;
    char url[300];
    snprintf(url, sizeof url, "http://%s%s%s:%d/", six ? "[" : "", options->host, six ? "]" : "", port);
    if (!options->quiet) fprintf(stderr, "serving %s at %s\n", text_shown(options->folder), url);
    if (!options->json) return;
    json_out json = json_start(stdout);
    json_object(&json, NULL);
    json_string(&json, "url", url);
    json_integer(&json, "pid", getpid());
    json_end_object(&json);
    putchar('\n');
    fflush(stdout);
}

/* Waits for signals, and looks after connections in between. */
static void wait_for_end(http_server *server, const served_options *options, const sigset_t *signals) {
    const struct timespec pause = {0, 500000000};
    run_reload reload = {.server = server, .options = options};
    for (int signal = 0; signal != SIGTERM && signal != SIGINT;) {
        signal = sigtimedwait(signals, NULL, &pause);
        if (signal == SIGHUP) start_reload(&reload);
        end_reload(&reload);
        sockets_sweep(&server->sockets);
    }
    /* A second signal ends the program at once. */
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(SIGTERM, &usual, NULL);
    sigaction(SIGINT, &usual, NULL);
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    if (reload.started) pthread_join(reload.thread, NULL);
}

/* Ends what is computed in the background, and frees the run. */
static void end_run(served *run) {
    atomic_store(&run->stopping, true);
    for (int i = 0; i < 2000 && atomic_load(&run->holders) > 1; i++) usleep(5000);
    served_release(run);
}

/* An explanation by the path model takes both time and memory; of the others many may gather, whose
 * ranks are then found together. */
enum { WORKERS = 16, WORKERS_PATHS = 2 };

bool server_run(const server_options *options) {
    sigset_t signals;
    block_signals(&signals);
    http_server *server = calloc(1, sizeof *server);
    char message[GUARD_MESSAGE];
    int listener = -1;
    bool done = false;
    vlp_observer observer = {.stop = on_stop};
    served_options open = {options->folder, options->graph, options->run};
    open.run.observer = &observer;
    if (!server) goto out;
    if (options->token_file) {
        server->guard.token = guard_read_token(message, options->token_file);
        if (!server->guard.token) {
            say("%s", message);
            goto out;
        }
    }
    listener = open_listener(options);
    if (listener < 0) goto out;
    if (served_open(&server->run, &open) != VLP_OK) {
        say("%s", vlp_error_message());
        goto out;
    }
    server->guard.port = port_of(listener);
    server->guard.allowed = options->allowed;
    server->guard.allowed_count = options->allowed_count;
    server->timeout = options->timeout;
    int connections = allow_files(options->connections);
    if (connections < options->connections)
        say("the system allows %d connections, not %d (ulimit -n)", connections, options->connections);
    int chosen = server->run->info.components >> VLP_PATH & 1 ? WORKERS_PATHS : WORKERS;
    int workers = options->workers > 0 ? options->workers : chosen;
    if (!http_start(server, listener, connections, workers, options->queue)) {
        say("cannot start the server: threads or memory are missing");
        end_run(server->run);
        goto out;
    }
    listener = -1; /* the server's now */
    announce(options, server->guard.port);
    wait_for_end(server, &open, &signals);
    if (!options->quiet) fprintf(stderr, "ending\n");
    http_stop(server, options->timeout);
    end_run(server->run);
    done = true;
out:
    if (listener >= 0) close(listener);
    if (server) free(server->guard.token);
    free(server);
    return done;
}
