/* Requests without sockets: method, address, Host and Authorization through routing and handlers. An
 * input is lines: METHOD, TARGET, HOST, AUTHORIZATION. */
#include "served.h"
#include "server/guard.h"
#include "server/page.h"

UNCOUNTED_BEGIN

enum { LINES = 4 };

/* Cuts the input into texts; bytes behind a NUL of a line are dropped, as they are by HTTP. */
static void split(char *texts[LINES], char *copy, const uint8_t *data, size_t size) {
    memcpy(copy, data, size);
    copy[size] = '\0';
    for (int i = 0; i < LINES; i++) {
        texts[i] = copy;
        size_t length = strcspn(copy, "\n");
        if (copy[length]) {
            copy[length] = '\0';
            copy += length + 1;
        } else {
            copy += length;
        }
    }
}

/* A name that the guard knows is one of these with its port, or numeric. */
static void check_host(const char *host) {
    static const char *const allowed[] = {"graphs.example"};
    server_guard local = {NULL, 8080, allowed, 1};
    server_guard guarded = {(char *)(uintptr_t) "0123456789abcdef", 8080, allowed, 1};
    bool known = guard_knows_host(&local, host);
    bool expected = strcasecmp(host, "localhost:8080") == 0 || strcmp(host, "127.0.0.1:8080") == 0 ||
                    strcmp(host, "[::1]:8080") == 0;
    /* A port may have zeros before it. */
    REQUIRE(known == expected || (known && strstr(host, ":0")));
    if (known) REQUIRE(guard_knows_host(&guarded, host));
    if (guard_knows_host(&guarded, host) && !known) {
        size_t length = strlen("graphs.example");
        REQUIRE(strncasecmp(host, "graphs.example", length) == 0 || host[0] == '[' ||
                (host[0] >= '0' && host[0] <= '9'));
    }
}

static void check_token(const char *authorization) {
    server_guard guard = {.token = (char *)(uintptr_t) "0123456789abcdef"};
    bool expected =
        strncasecmp(authorization, "Bearer ", 7) == 0 && strcmp(authorization + 7, guard.token) == 0;
    REQUIRE(guard_has_token(&guard, authorization) == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static served *run;
    if (!run) run = small_run();
    char *copy = malloc(size + 1), *texts[LINES];
    REQUIRE(copy != NULL);
    split(texts, copy, data, size);
    check_host(texts[2]);
    check_token(texts[3]);
    http_request request = {.method = request_method_of(texts[0])};
    http_reply reply = {0};
    if (request_read_target(&request, &reply, texts[1])) {
        REQUIRE(naive_utf8((const uint8_t *)request.path, strlen(request.path)));
        for (int i = 0; i < request.count; i++)
            REQUIRE(naive_utf8((const uint8_t *)request.parameters[i].value,
                               strlen(request.parameters[i].value)));
        const http_route *route = route_find(&reply, &request);
        page_file part;
        if (route)
            REQUIRE(strcmp(route->path, request.path) == 0 ||
                    (strcmp(route->path, "/") == 0 && page_find(&part, request.path)));
        if (route && request_knows(&request, &reply, route->parameters))
            answer(route, &request, &reply, run, one_in(data, size, 256));
    }
    if (reply_failed(&reply)) check_reply(&reply);
    request_free(&request);
    reply_free(&reply);
    free(copy);
    return 0;
}

UNCOUNTED_END
