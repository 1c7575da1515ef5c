/* Counts of what the server does, as Prometheus reads them. Any thread may count. */
#ifndef VLP_SERVER_METRICS_H
#define VLP_SERVER_METRICS_H

#include <stdatomic.h>

#include "request.h"

enum { METRICS_ROUTES = 32, METRICS_STATUSES = 24, METRICS_BUCKETS = 14, METRICS_BATCHES = 7 };

typedef struct server_metrics {
    atomic_llong requests[METRICS_ROUTES][METRICS_STATUSES];
    atomic_llong latency[METRICS_ROUTES][METRICS_BUCKETS + 1]; /* the last: longer */
    atomic_llong microseconds[METRICS_ROUTES];
    atomic_llong batches[METRICS_BATCHES + 1], batch_queries;
    atomic_llong open_connections, closed_idle, reloads, failed_reloads;
} server_metrics;

/* A request to route number `route` was answered. */
void metrics_request(server_metrics *metrics, int route, int status, double seconds);
void metrics_batch(server_metrics *metrics, int size);
/* The text of /metrics. `name_of` names routes; `step` is the run's. */
void metrics_text(http_reply *reply, server_metrics *metrics, const char *(*name_of)(int route),
                  long long step);

#endif
