#include "routes.h"

#include <string.h>

static const char *const none[] = {NULL};
static const char *const evaluation_names[] = {"split", NULL};
static const char *const entities_names[] = {"q", "limit", NULL};
static const char *const entity_names[] = {"name", "limit", "offset", "relation", "direction", NULL};
static const char *const predict_names[] = {"head", "tail",       "relation", "k", "known",
                                            "seen", "candidates", "where",    NULL};
static const char *const explain_names[] = {"head", "tail", "relation", "answer", "paths", NULL};
static const char *const what_if_names[] = {"head", "tail", "relation", "answer", "without", NULL};
static const char *const map_names[] = {"limit", "name", NULL};

static const http_route routes[] = {
    {"/", true, false, true, WORK_PAGE, NULL, none},
    {"/app.js", true, false, true, WORK_PAGE, NULL, none},
    {"/style.css", true, false, true, WORK_PAGE, NULL, none},
    {"/icon.svg", true, false, true, WORK_PAGE, NULL, none},
    {"/api/health", true, false, false, WORK_QUICK, answer_health, none},
    {"/api/run", true, false, false, WORK_QUICK, answer_run, none},
    {"/api/evaluation", true, false, false, WORK_QUICK, answer_evaluation, evaluation_names},
    {"/api/entities", true, false, false, WORK_QUICK, answer_entities, entities_names},
    {"/api/entity", true, false, false, WORK_QUICK, answer_entity, entity_names},
    {"/api/relations", true, false, false, WORK_QUICK, answer_relations, none},
    {"/api/predict", true, true, false, WORK_PREDICT, NULL, predict_names},
    {"/api/explain", true, true, false, WORK_LONG, answer_explain, explain_names},
    {"/api/what-if", false, true, false, WORK_LONG, answer_what_if, what_if_names},
    {"/api/map", true, false, false, WORK_LONG, answer_map, map_names},
    {"/metrics", true, false, false, WORK_METRICS, NULL, none},
    {"/api/openapi.json", true, false, false, WORK_PAGE, NULL, none}};
enum { ROUTES = sizeof routes / sizeof *routes };
_Static_assert((int)ROUTES <= (int)ROUTE_OTHER, "metrics has a row for each route");

const http_route *route_at(int index) {
    return index >= 0 && index < ROUTES ? &routes[index] : NULL;
}

int route_index(const http_route *route) {
    return route ? (int)(route - routes) : ROUTE_OTHER;
}

const char *route_name(int index) {
    const http_route *route = route_at(index);
    return route ? route->path : "other";
}

const http_route *route_find(http_reply *failure, const http_request *request) {
    const http_route *found = NULL;
    for (int i = 0; i < ROUTES; i++)
        if (strcmp(routes[i].path, request->path) == 0) found = &routes[i];
    page_file part;
    if (!found && page_find(&part, request->path))
        found = &routes[0]; /* parts of the page count as the page */
    if (!found) {
        reply_error(failure, 404, "There is nothing at '%.200s'; /api/openapi.json lists the addresses.",
                    request->path);
        return NULL;
    }
    bool post = request->method == METHOD_POST;
    if (request->method == METHOD_OTHER || !(post ? found->post : found->get)) {
        const char *allow = !found->post ? "GET, HEAD" : !found->get ? "POST" : "GET, HEAD, POST";
        failure->allow = allow;
        reply_error(failure, 405, "This address takes %s.", allow);
        return NULL;
    }
    return found;
}
