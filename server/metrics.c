#include "metrics.h"

#include <string.h>
#include <unistd.h>

static const double bounds[METRICS_BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                               0.1,    0.25,  0.5,    1,     2.5,  5,     10};
static const int sizes[METRICS_BATCHES] = {1, 2, 4, 8, 16, 32, 64};
/* 0: any other. */
static const int statuses[METRICS_STATUSES] = {200, 202, 400, 401, 404, 405, 408, 413,
                                               414, 415, 421, 429, 500, 503, 0};

void metrics_request(server_metrics *metrics, int route, int status, double seconds) {
    int column = 0, bucket = 0;
    while (statuses[column] != 0 && statuses[column] != status) column++;
    while (bucket < METRICS_BUCKETS && seconds > bounds[bucket]) bucket++;
    atomic_fetch_add(&metrics->requests[route][column], 1);
    atomic_fetch_add(&metrics->latency[route][bucket], 1);
    atomic_fetch_add(&metrics->microseconds[route], (long long)(1e6 * seconds));
}

void metrics_batch(server_metrics *metrics, int size) {
    int bucket = 0;
    while (bucket < METRICS_BATCHES && size > sizes[bucket]) bucket++;
    atomic_fetch_add(&metrics->batches[bucket], 1);
    atomic_fetch_add(&metrics->batch_queries, size);
}

static void head(FILE *to, const char *name, const char *kind, const char *help) {
    fprintf(to, "# HELP vlp_%s %s\n# TYPE vlp_%s %s\n", name, help, name, kind);
}

static void value(FILE *to, const char *name, const char *kind, const char *help, long long number) {
    head(to, name, kind, help);
    fprintf(to, "vlp_%s %lld\n", name, number);
}

/* Bytes of the process in memory. */
static long long resident(void) {
    long long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void requests_text(FILE *to, server_metrics *metrics, const char *(*name_of)(int route)) {
    head(to, "requests_total", "counter", "Requests answered, by path and status.");
    for (int r = 0; r < METRICS_ROUTES; r++)
        for (int s = 0; s < METRICS_STATUSES; s++) {
            long long count = atomic_load(&metrics->requests[r][s]);
            if (count > 0)
                fprintf(to, "vlp_requests_total{path=\"%s\",status=\"%d\"} %lld\n", name_of(r),
                        statuses[s], count);
        }
    head(to, "request_seconds", "histogram",
         "Time from the first line of a request to its reply, by path.");
    for (int r = 0; r < METRICS_ROUTES; r++) {
        long long sum = 0;
        for (int b = 0; b <= METRICS_BUCKETS; b++) sum += atomic_load(&metrics->latency[r][b]);
        if (sum == 0) continue;
        long long below = 0;
        for (int b = 0; b < METRICS_BUCKETS; b++) {
            below += atomic_load(&metrics->latency[r][b]);
            fprintf(to, "vlp_request_seconds_bucket{path=\"%s\",le=\"%g\"} %lld\n", name_of(r),
                    bounds[b], below);
        }
        fprintf(to, "vlp_request_seconds_bucket{path=\"%s\",le=\"+Inf\"} %lld\n", name_of(r), sum);
        fprintf(to, "vlp_request_seconds_sum{path=\"%s\"} %.6f\n", name_of(r),
                1e-6 * (double)atomic_load(&metrics->microseconds[r]));
        fprintf(to, "vlp_request_seconds_count{path=\"%s\"} %lld\n", name_of(r), sum);
    }
}

static void batches_text(FILE *to, server_metrics *metrics) {
    head(to, "batch_size", "histogram", "Predictions answered by one call.");
    long long below = 0;
    for (int b = 0; b < METRICS_BATCHES; b++) {
        below += atomic_load(&metrics->batches[b]);
        fprintf(to, "vlp_batch_size_bucket{le=\"%d\"} %lld\n", sizes[b], below);
    }
    below += atomic_load(&metrics->batches[METRICS_BATCHES]);
    fprintf(
        to,
        "vlp_batch_size_bucket{le=\"+Inf\"} %lld\nvlp_batch_size_sum %lld\nvlp_batch_size_count %lld\n",
        below, (long long)atomic_load(&metrics->batch_queries), below);
}

void metrics_text(http_reply *reply, server_metrics *metrics, const char *(*name_of)(int route),
                  long long step) {
    FILE *to = reply_begin(reply, 200).stream;
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    requests_text(to, metrics, name_of);
    batches_text(to, metrics);
    value(to, "open_connections", "gauge", "Connections that are open.",
          atomic_load(&metrics->open_connections));
    value(to, "closed_idle_total", "counter",
          "Connections closed because they waited too long, or in favour of others.",
          atomic_load(&metrics->closed_idle));
    value(to, "reloads_total", "counter", "Runs opened again.", atomic_load(&metrics->reloads));
    value(to, "failed_reloads_total", "counter", "Runs that could not be opened again.",
          atomic_load(&metrics->failed_reloads));
    value(to, "resident_bytes", "gauge", "Memory of the process.", resident());
    value(to, "run_step", "gauge", "Training step of the weights in use.", step);
    reply_end(reply);
}
