/* The addresses: which handler answers, what parameters it knows, who works on it. */
#ifndef VLP_SERVER_ROUTES_H
#define VLP_SERVER_ROUTES_H

#include "handlers.h"
#include "page.h"

typedef enum route_work {
    WORK_PAGE,    /* a file that is part of the program */
    WORK_METRICS, /* the counts of the server */
    WORK_QUICK,   /* answered at once, by the thread that reads requests */
    WORK_PREDICT, /* answered with others */
    WORK_LONG     /* answered by the pool */
} route_work;

typedef struct http_route {
    const char *path;
    bool get, post;
    bool open; /* needs no token */
    route_work work;
    handler *answer;
    const char *const *parameters; /* ended by NULL */
} http_route;

/* Route number `index`, from 0; NULL past the last. */
const http_route *route_at(int index);
int route_index(const http_route *route);
/* The route of a request. NULL: the reply says 404 or 405. */
const http_route *route_find(http_reply *failure, const http_request *request);
/* The path of a route, for metrics; "other" for what is none. */
const char *route_name(int index);
enum { ROUTE_OTHER = 31 };

#endif
