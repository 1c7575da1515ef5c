/* Progress and remarks on standard error: a bar on a terminal, otherwise a line every few seconds. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* The signal that asked to stop, 0 before it. */
static volatile sig_atomic_t interrupted;

/* A signal asks the library to stop, and the library asks the observer in turn. When it does not ask
 * within GRACE seconds, or is loading another library, the signal ends the program as if there were no
 * handler. */
enum { GRACE = 10 };
static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

typedef struct terminal {
    vlp_observer observer;
    bool bar_drawn;
    char what[64];
    double started, drawn;
} terminal;

static terminal screen;

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void on_signal(int number) {
    interrupted = number;
    /* A second one ends the program at once. */
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
        signal(stop_signals[i], SIG_DFL);
    if (vlp_is_loading())
        raise(number); /* delivered when the handler returns */
    else
        alarm(GRACE);
}

static void on_alarm(int number) {
    (void)number;
    raise(interrupted);
}

/* A signal that the caller ignores (nohup) stays ignored; SIGINT does not, since shells without job
 * control ignore it for everything in the background. */
static void install_handlers(void) {
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++) {
        struct sigaction present;
        sigaction(stop_signals[i], NULL, &present);
        if (present.sa_handler == SIG_IGN && stop_signals[i] != SIGINT) continue;
        sigaction(stop_signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    }
}

bool cli_is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void clear_bar(void) {
    if (screen.bar_drawn) fputs("\r\033[K", stderr);
    screen.bar_drawn = false;
}

static void on_log(void *user, const char *line) {
    (void)user;
    clear_bar();
    fprintf(stderr, "%s\n", line);
}

/* 1234567 -> "1.2 M" */
static const char *short_count(char out[16], double value) {
    const char *units[] = {"", " k", " M", " G"};
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++) value /= 1000;
    snprintf(out, 16, value < 10 && unit > 0 ? "%.1f%s" : "%.0f%s", value, units[unit]);
    return out;
}

static void draw(const char *what, int64_t done, int64_t total, double elapsed) {
    enum { WIDTH = 24 };
    char rate[16], line[160], bar[3 * WIDTH + 1] = "";
    double per_second = elapsed > 0 ? (double)done / elapsed : 0;
    short_count(rate, per_second);
    if (total > 0) {
        int filled = (int)((double)WIDTH * (double)done / (double)total);
        for (int i = 0; i < WIDTH; i++) strcat(bar, i < filled ? "█" : "░");
        double left = per_second > 0 ? (double)(total - done) / per_second : 0;
        snprintf(line, sizeof line, "%-11s %s %3.0f%%  %s/s  %.0f s left", what, bar,
                 100.0 * (double)done / (double)total, rate, ceil(left));
    } else {
        snprintf(line, sizeof line, "%-11s %s  %s/s", what, cli_count(done), rate);
    }
    if (cli_is_terminal()) {
        fprintf(stderr, "\r%s\033[K", line);
        screen.bar_drawn = true;
    } else if (total > 0) {
        fprintf(stderr, "%s: %s of %s, %s/s\n", what, cli_count(done), cli_count(total), rate);
    } else {
        fprintf(stderr, "%s: %s, %s/s\n", what, cli_count(done), rate);
    }
    fflush(stderr);
}

static void on_progress(void *user, const char *what, int64_t done, int64_t total) {
    (void)user;
    double now = seconds();
    if (strncmp(screen.what, what, sizeof screen.what - 1) != 0) {
        snprintf(screen.what, sizeof screen.what, "%s", what);
        screen.started = now;
        screen.drawn = now; /* short work prints nothing */
    }
    double pause = cli_is_terminal() ? 0.1 : 5;
    if (done == total) {
        clear_bar();
        screen.what[0] = '\0';
    } else if (now - screen.drawn >= pause) {
        draw(what, done, total, now - screen.started);
        screen.drawn = now;
    }
}

static bool on_stop(void *user) {
    (void)user;
    if (interrupted) alarm(0);
    return interrupted != 0;
}

const vlp_observer *cli_observer(const cli_common *common) {
    install_handlers();
    screen.observer = (vlp_observer){on_log, on_progress, on_stop, NULL};
    if (common->quiet) screen.observer = (vlp_observer){NULL, NULL, on_stop, NULL};
    return &screen.observer;
}

void cli_observer_end(void) {
    clear_bar();
    fflush(stderr);
}
