/* Parts of the server without sockets: addresses, bodies, hosts and tokens, the description of the API,
 * batches, principal components. */
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tiny_run.h"

#include "server/guard.h"
#include "server/pca.h"
#include "server/routes.h"
#include "server/work.h"

/* ---- Addresses and bodies ------------------------------------------------------------------------ */

static void addresses_are_read(void **state) {
    (void)state;
    http_request request = {0};
    http_reply reply = {0};
    assert_true(request_read_target(&request, &reply, "/api/x%2F?a=1+2&&b&c=%C3%A9&a=%26"));
    assert_string_equal(request.path, "/api/x/");
    assert_int_equal(request.count, 4);
    assert_string_equal(request_text(&request, &reply, "c"), "é");
    assert_string_equal(request_text(&request, &reply, "b"), "");
    int index = -1;
    assert_string_equal(request_next(&request, "a", &index), "1 2");
    assert_string_equal(request_next(&request, "a", &index), "&");
    assert_null(request_next(&request, "a", &index));
    assert_null(request_text(&request, &reply, "a")); /* twice */
    assert_int_equal(reply.status, 400);
    request_free(&request);
    reply_free(&reply);
}

static void wrong_addresses_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",     "api",  "*",    "http://a/", "/%",     "/%1",
                                        "/%zz", "/%00", "/%ff", "/?a=%C3",   "/?%80=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        http_request request = {0};
        http_reply reply = {0};
        assert_false(request_read_target(&request, &reply, wrong[i]));
        assert_int_equal(reply.status, 400);
        assert_non_null(strstr(reply.text, "{\"error\":\"The address"));
        request_free(&request);
        reply_free(&reply);
    }
    char *many = malloc(REQUEST_TARGET + 1);
    memset(many, '/', REQUEST_TARGET);
    many[REQUEST_TARGET] = '\0';
    http_request request = {0};
    http_reply reply = {0};
    assert_false(request_read_target(&request, &reply, many));
    assert_int_equal(reply.status, 414);
    strcpy(many, "/?");
    for (int i = 0; i <= REQUEST_PARAMETERS; i++) strcat(many, "a&");
    assert_false(request_read_target(&request, &reply, many));
    assert_non_null(strstr(reply.text, "more than 64 parameters"));
    free(many);
    request_free(&request);
    reply_free(&reply);
}

typedef struct body_case {
    const char *body;
    int status; /* 0: it is read */
} body_case;

static void bodies_are_read(void **state) {
    (void)state;
    static const char *const names[] = {"k", "seen", "head", NULL};
    static const body_case cases[] = {{"{\"k\":7,\"seen\":true,\"head\":\"a\"}", 0},
                                      {"{}", 0},
                                      {"{\"k\":null}", 0},
                                      {"{\"k\":0}", 400},
                                      {"{\"k\":1001}", 400},
                                      {"{\"k\":1.5}", 400},
                                      {"{\"k\":\"7\"}", 400},
                                      {"{\"k\":99999999999999999999}", 400},
                                      {"{\"seen\":1}", 400},
                                      {"{\"head\":[]}", 400},
                                      {"{\"other\":1}", 400},
                                      {"[]", 400},
                                      {"", 400},
                                      {"{", 400},
                                      {"{\"k\":1,\"k\":2}", 400},
                                      {"{\"head\":\"\\u0000\"}", 400},
                                      {"{\"head\":\"\xff\"}", 400},
                                      {"{}x", 400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_request request = {0};
        http_reply reply = {0};
        int32_t k = 3;
        bool seen = false;
        const char *body = cases[i].body;
        bool right = request_read_body(&request, &reply, body, strlen(body)) &&
                     request_knows(&request, &reply, names) &&
                     request_integer(&k, &request, &reply, "k", 1, 1000) &&
                     request_bool(&seen, &request, &reply, "seen");
        if (right) (void)request_text(&request, &reply, "head");
        assert_int_equal(reply.status, cases[i].status);
        if (i == 0) assert_true(k == 7 && seen);
        if (i == 2) assert_int_equal(k, 3);
        request_free(&request);
        reply_free(&reply);
    }
}

static void numbers_of_addresses_are_checked(void **state) {
    (void)state;
    static const char *const wrong[] = {"/?k=",     "/?k=x", "/?k=1x", "/?k=%201",
                                        "/?k=%2B1", "/?k=0", "/?k=11", "/?k=99999999999999999999",
                                        "/?k=1&k=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        http_request request = {0};
        http_reply reply = {0};
        int32_t k = 3;
        assert_true(request_read_target(&request, &reply, wrong[i]));
        assert_false(request_integer(&k, &request, &reply, "k", 1, 10));
        assert_int_equal(reply.status, 400);
        request_free(&request);
        reply_free(&reply);
    }
}

/* ---- Who may ask --------------------------------------------------------------------------------- */

static void hosts_are_checked(void **state) {
    (void)state;
    static const char *const allowed[] = {"graphs.example"};
    server_guard local = {NULL, 8080, allowed, 1};
    server_guard guarded = {(char *)(uintptr_t) "0123456789abcdef", 8080, allowed, 1};
    static const struct {
        const char *host;
        bool local, guarded;
    } cases[] = {{"127.0.0.1:8080", true, true},
                 {"localhost:8080", true, true},
                 {"LOCALHOST:8080", true, true},
                 {"[::1]:8080", true, true},
                 {"localhost", false, false},
                 {"localhost:80", false, false},
                 {"evil.example:8080", false, false},
                 {"evil.example", false, false},
                 {"graphs.example", false, true},
                 {"Graphs.Example:443", false, true},
                 {"192.168.1.5:8080", false, true},
                 {"[2001:db8::1]:8080", false, true},
                 {"192.168.1.5.evil.example", false, false},
                 {"localhost:8080:1", false, false},
                 {"localhost:x", false, false},
                 {"[::1", false, false},
                 {"", false, false},
                 {":8080", false, false},
                 {"127.0.0.1:8080@evil.example", false, false},
                 {NULL, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(guard_knows_host(&local, cases[i].host), cases[i].local);
        assert_int_equal(guard_knows_host(&guarded, cases[i].host), cases[i].guarded);
    }
    local.port = 80;
    assert_true(guard_knows_host(&local, "localhost"));
}

static void tokens_are_checked(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "token");
    char message[GUARD_MESSAGE];
    assert_null(guard_read_token(message, path));
    support_write_text(folder, "token", "0123456789abcdef\n");
    chmod(path, 0644);
    assert_null(guard_read_token(message, path));
    assert_non_null(strstr(message, "chmod 600"));
    chmod(path, 0600);
    server_guard guard = {.token = guard_read_token(message, path)};
    assert_string_equal(guard.token, "0123456789abcdef");
    assert_true(guard_has_token(&guard, "Bearer 0123456789abcdef"));
    assert_true(guard_has_token(&guard, "bearer 0123456789abcdef"));
    static const char *const wrong[] = {NULL,
                                        "",
                                        "Bearer",
                                        "Bearer ",
                                        "Bearer 0123456789abcdeg",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdef0",
                                        "Bearer 0123456789abcdef0123456789abcdef",
                                        "Basic 0123456789abcdef",
                                        "0123456789abcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(guard_has_token(&guard, wrong[i]));
    free(guard.token);
    guard.token = NULL;
    assert_true(guard_has_token(&guard, NULL));
    static const char *const bad[] = {"short\n", "", "has a space 0123456789",
                                      "h\xc3\xa4s no ascii 0123456789"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        support_write_text(folder, "token", bad[i]);
        assert_null(guard_read_token(message, path));
    }
    assert_null(guard_read_token(message, folder));
    support_remove(folder);
}

/* ---- Routes -------------------------------------------------------------------------------------- */

static void the_description_has_every_route(void **state) {
    (void)state;
    page_file file;
    char message[BODY_MESSAGE];
    assert_true(page_find(&file, "/api/openapi.json"));
    body_json *json = body_read(message, file.text, file.size);
    assert_non_null(json);
    body_value paths = body_member(json, "paths");
    const char *known[64] = {NULL};
    for (int i = 0; route_at(i); i++) {
        const http_route *route = route_at(i);
        body_value described = body_member(paths.json, route->path);
        assert_int_equal(described.kind, BODY_OBJECT);
        body_value get = body_member(described.json, "get"), post = body_member(described.json, "post");
        assert_int_equal(get.kind == BODY_OBJECT, route->get);
        assert_int_equal(post.kind == BODY_OBJECT, route->post);
        /* Parameters of GET, both ways; a list of candidates comes by POST alone. */
        body_value list = body_member(get.json, "parameters");
        size_t expected = 0;
        for (int j = 0; route->get && route->parameters[j]; j++)
            expected += strcmp(route->parameters[j], "candidates") != 0;
        assert_int_equal(list.count, expected);
        for (size_t j = 0; j < list.count; j++) {
            body_value name = body_member(body_item(list.json, j).json, "name");
            int k = 0;
            while (route->parameters[k] && strcmp(route->parameters[k], name.text) != 0) k++;
            assert_non_null(route->parameters[k]);
        }
        known[i] = route->path;
        assert_int_equal(page_find(&file, route->path), route->work == WORK_PAGE);
    }
    assert_null(body_unknown(paths.json, known));
    body_free(json);
}

static void only_routes_are_found(void **state) {
    (void)state;
    static const struct {
        const char *target;
        request_method method;
        int status;
    } cases[] = {{"/", METHOD_GET, 0},
                 {"/api/predict", METHOD_POST, 0},
                 {"/api/what-if", METHOD_GET, 405},
                 {"/api/run", METHOD_POST, 405},
                 {"/", METHOD_OTHER, 405},
                 {"/index.html", METHOD_GET, 404},
                 {"//", METHOD_GET, 404},
                 {"/../etc/passwd", METHOD_GET, 404},
                 {"/%2e%2e/%2e%2e/etc/passwd", METHOD_GET, 404},
                 {"/app.js/..", METHOD_GET, 404},
                 {"/server/page/app.js", METHOD_GET, 404},
                 {"/API/RUN", METHOD_GET, 404}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_request request = {.method = cases[i].method};
        http_reply reply = {0};
        assert_true(request_read_target(&request, &reply, cases[i].target));
        assert_int_equal(route_find(&reply, &request) == NULL, cases[i].status != 0);
        assert_int_equal(reply.status, cases[i].status);
        assert_int_equal(reply.allow != NULL, cases[i].status == 405);
        request_free(&request);
        reply_free(&reply);
    }
}

/* ---- Batches ------------------------------------------------------------------------------------- */

enum { JOBS = 24 };
typedef struct asked_job {
    work_job job; /* first */
    http_request request;
    http_reply reply;
    sem_t *done, *before; /* `before`: waited for within the worker */
} asked_job;

static void on_done(work_job *job) {
    asked_job *asked = (asked_job *)job;
    if (asked->before) sem_wait(asked->before);
    sem_post(asked->done);
}

static void ask(asked_job *out, served *run, const char *target, sem_t *done) {
    memset(out, 0, sizeof *out);
    out->done = done;
    assert_true(request_read_target(&out->request, &out->reply, target));
    out->job.handling = (http_handling){.run = run, .request = &out->request, .reply = &out->reply};
    out->job.done = on_done;
    out->job.deadline = work_now() + 60;
    assert_true(prediction_read(&out->job.prediction, &out->job.handling));
}

static void end(asked_job *asked) {
    prediction_free(&asked->job.prediction);
    request_free(&asked->request);
    reply_free(&asked->reply);
}

static served *open_tiny(tiny_run *tiny) {
    tiny_run_make(tiny, NULL, 5);
    served *run = NULL;
    served_options options = {tiny->path, NULL, VLP_RUN_OPTIONS_INIT};
    options.run.threads = 1;
    must(served_open(&run, &options));
    return run;
}

static long long batches(server_metrics *metrics) {
    long long sum = 0;
    for (int i = 0; i <= METRICS_BATCHES; i++) sum += atomic_load(&metrics->batches[i]);
    return sum;
}

/* While the worker is kept, jobs gather; then those that fit are one batch, in their order, and each has
 * the answer that it gets alone. */
static void predictions_are_answered_together(void **state) {
    (void)state;
    tiny_run tiny;
    served *run = open_tiny(&tiny);
    static server_metrics metrics;
    static asked_job jobs[JOBS + 2], alone[JOBS];
    work_force workers;
    sem_t done, before;
    sem_init(&done, 0, 0);
    sem_init(&before, 0, 0);
    char target[256];
    for (int i = 0; i < JOBS; i++) {
        const char *entity = vlp_dataset_entity_name(run->data, i % run->entities);
        snprintf(target, sizeof target, "/?%s=%s&relation=%s&k=%d%s", i % 2 ? "head" : "tail", entity,
                 vlp_dataset_relation_name(run->data, i % run->relations), 1 + i % 7,
                 i % 4 == 3 ? "&known=hide" : "");
        ask(&jobs[i], run, target, &done);
        ask(&alone[i], run, target, &done);
        const asked_prediction *one = &alone[i].job.prediction;
        http_reply *reply = &alone[i].reply;
        predictions_answer(&one, &reply, 1, run, NULL);
        assert_int_equal(reply->status, 200);
    }
    assert_true(workers_start(&workers, 1, JOBS, &metrics));
    jobs[0].before = &before; /* keeps the worker in its end */
    assert_true(workers_push(&workers, &jobs[0].job));
    while (batches(&metrics) == 0) sched_yield();
    for (int i = 1; i < JOBS; i++) assert_true(workers_push(&workers, &jobs[i].job));
    /* One too late, and one too many. */
    ask(&jobs[JOBS], run, target, &done);
    jobs[JOBS].job.deadline = 0;
    assert_true(workers_push(&workers, &jobs[JOBS].job));
    ask(&jobs[JOBS + 1], run, target, &done);
    assert_false(workers_push(&workers, &jobs[JOBS + 1].job));
    sem_post(&before);
    for (int i = 0; i <= JOBS; i++) sem_wait(&done);
    workers_stop(&workers);
    /* The first, those that mark, those that hide. */
    assert_int_equal(batches(&metrics), 3);
    assert_int_equal(atomic_load(&metrics.batch_queries), JOBS);
    assert_int_equal(jobs[JOBS].reply.status, 503);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].reply.status, 200);
        assert_string_equal(jobs[i].reply.text, alone[i].reply.text);
        end(&jobs[i]);
        end(&alone[i]);
    }
    end(&jobs[JOBS]);
    end(&jobs[JOBS + 1]);
    served_release(run);
    tiny_run_free(&tiny);
    sem_destroy(&done);
    sem_destroy(&before);
}

/* ---- The graph ----------------------------------------------------------------------------------- */

static void the_graph_is_indexed(void **state) {
    (void)state;
    tiny_run tiny;
    served *run = open_tiny(&tiny);
    for (int32_t e = 0; e < run->entities; e++) {
        int32_t degree = 0;
        for (int64_t i = 0; i < run->triple_count; i++)
            degree += run->triples[i].head == e || run->triples[i].tail == e;
        assert_int_equal(run->degrees[e], degree);
        for (int64_t i = run->out.offsets[e]; i < run->out.offsets[e + 1]; i++) {
            assert_int_equal(run->triples[run->out.edges[i]].head, e);
            if (i > run->out.offsets[e])
                assert_true(run->triples[run->out.edges[i]].relation >=
                            run->triples[run->out.edges[i - 1]].relation);
        }
        for (int64_t i = run->in.offsets[e]; i < run->in.offsets[e + 1]; i++)
            assert_int_equal(run->triples[run->in.edges[i]].tail, e);
        http_reply reply = {0};
        assert_int_equal(served_entity(run, &reply, vlp_dataset_entity_name(run->data, e)), e);
    }
    assert_int_equal(run->out.offsets[run->entities], run->triple_count);
    assert_int_equal(run->in.offsets[run->entities], run->triple_count);
    for (int64_t i = 0; i < run->triple_count; i++)
        assert_int_equal(served_edge(run, run->triples[i]), i);
    for (int32_t h = 0; h < run->entities; h++)
        for (int32_t t = 0; t < run->entities; t++) {
            int64_t expected = -1;
            for (int64_t i = 0; i < run->triple_count; i++)
                if (run->triples[i].head == h && run->triples[i].tail == t &&
                    run->triples[i].relation == 1)
                    expected = i;
            assert_int_equal(served_edge(run, (vlp_triple){h, 1, t}), expected);
        }
    http_reply reply = {0};
    assert_int_equal(served_entity(run, &reply, "no such entity at all"), -1);
    assert_int_equal(reply.status, 404);
    reply_free(&reply);
    served_release(run);
    tiny_run_free(&tiny);
}

/* ---- Principal components ------------------------------------------------------------------------ */

/* Points spread along two known directions, and a little along all: the components are these directions.
 */
static void principal_components_are_found(void **state) {
    (void)state;
    enum { ROWS = 400, COLUMNS = 30 };
    static float values[ROWS][COLUMNS], points[ROWS][2], again[ROWS][2];
    static double along[ROWS][2];
    double variance[2] = {0}, mean[2] = {0};
    uint64_t bits = 1;
    for (int r = 0; r < ROWS; r++) {
        double draws[2 + COLUMNS];
        for (int i = 0; i < 2 + COLUMNS; i++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            draws[i] = (double)(bits >> 11) * 0x1p-53 - 0.5;
        }
        along[r][0] = 10 * draws[0];
        along[r][1] = 4 * draws[1];
        for (int i = 0; i < COLUMNS; i++)
            values[r][i] = (float)(5 + (i == 3 ? along[r][0] : 0) + (i == 7 ? along[r][1] : 0) +
                                   0.001 * draws[2 + i]);
        for (int i = 0; i < 2; i++) mean[i] += along[r][i] / ROWS;
    }
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 2; i++) variance[i] += (along[r][i] - mean[i]) * (along[r][i] - mean[i]);
    double explained[2];
    assert_true(pca_project(&points[0][0], explained, &values[0][0], ROWS, COLUMNS));
    /* The directions correlate a little by chance: the share is near, the positions are up to that. */
    assert_true(fabs(explained[0] - variance[0] / (variance[0] + variance[1])) < 0.01);
    assert_true(fabs(explained[0] + explained[1] - 1) < 1e-4);
    for (int r = 0; r < ROWS; r++) {
        double x = along[r][0] - mean[0], y = along[r][1] - mean[1];
        double length = sqrt(x * x + y * y);
        assert_true(fabs(hypot((double)points[r][0], (double)points[r][1]) - length) < 0.01);
        assert_true(fabs((double)points[r][0] - x) < 0.5);
    }
    assert_true(pca_project(&again[0][0], explained, &values[0][0], ROWS, COLUMNS));
    assert_memory_equal(points, again, sizeof points);
    /* Fewer columns than vectors, and no variance. */
    static const float small[3][2] = {{1, 1}, {1, 3}, {1, 5}}, same[3][2] = {{1, 1}, {1, 1}, {1, 1}};
    assert_true(pca_project(&points[0][0], explained, &small[0][0], 3, 2));
    assert_true(fabs(explained[0] - 1) < 1e-9 && fabs((double)points[2][0] - 2) < 1e-6);
    assert_true(pca_project(&points[0][0], explained, &same[0][0], 3, 2));
    assert_true(explained[0] == 0 && points[0][0] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses_are_read),
                                       cmocka_unit_test(wrong_addresses_are_refused),
                                       cmocka_unit_test(bodies_are_read),
                                       cmocka_unit_test(numbers_of_addresses_are_checked),
                                       cmocka_unit_test(hosts_are_checked),
                                       cmocka_unit_test(tokens_are_checked),
                                       cmocka_unit_test(the_description_has_every_route),
                                       cmocka_unit_test(only_routes_are_found),
                                       cmocka_unit_test(predictions_are_answered_together),
                                       cmocka_unit_test(the_graph_is_indexed),
                                       cmocka_unit_test(principal_components_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
