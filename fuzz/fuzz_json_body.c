/* Bodies of POST: the first byte chooses the address, the others are the body. */
#include "served.h"

UNCOUNTED_BEGIN

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static served *run;
    static const char *const targets[] = {"/api/predict", "/api/explain", "/api/what-if"};
    if (!run) run = small_run();
    if (size == 0) return 0;
    http_request request = {.method = METHOD_POST};
    http_reply reply = {0};
    REQUIRE(request_read_target(&request, &reply, targets[data[0] % 3]));
    const http_route *route = route_find(&reply, &request);
    REQUIRE(route != NULL);
    if (request_read_body(&request, &reply, (const char *)data + 1, size - 1)) {
        REQUIRE(naive_utf8(data + 1, size - 1));
        if (request_knows(&request, &reply, route->parameters))
            answer(route, &request, &reply, run, one_in(data, size, 256));
    }
    if (reply_failed(&reply)) check_reply(&reply);
    request_free(&request);
    reply_free(&reply);
    return 0;
}

UNCOUNTED_END
