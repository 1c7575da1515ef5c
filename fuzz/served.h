/* A small run for the targets of the server, trained for two steps, and the check of a reply. */
#ifndef VLP_FUZZ_SERVED_H
#define VLP_FUZZ_SERVED_H

#include <ftw.h>

#include "fuzz.h"
#include "server/routes.h"

UNCOUNTED_BEGIN

static inline int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static inline served *small_run(void) {
    static const vlp_named_triple train[] = {{"a", "r", "bb"},    {"bb", "r", "c c"},
                                             {"c c", "s s", "a"}, {"\xc3\xa9", "s s", "a"},
                                             {"a", "s s", "?"},   {"bb", "=", "a=b"}};
    static const char *const settings[] = {"steps=2",     "dim=4",        "batch=4",
                                           "negatives=2", "references=2", "threads=1"};
    const vlp_named_triple *const triples[VLP_SPLITS] = {train, train, train};
    const int64_t counts[VLP_SPLITS] = {6, 2, 2};
    char folder[] = "/tmp/vlp-fuzz-XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/run", folder);
    vlp_dataset *dataset = NULL;
    REQUIRE(vlp_dataset_from_names(&dataset, triples, counts, NULL) == VLP_OK);
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    REQUIRE(vlp_train_dataset(NULL, dataset, path, &options) == VLP_OK);
    vlp_dataset_free(dataset);
    served_options open = {path, NULL, VLP_RUN_OPTIONS_INIT};
    open.run.threads = 1;
    served *run = NULL;
    REQUIRE(served_open(&run, &open) == VLP_OK);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return run;
}

/* A reply is a JSON object in UTF-8; an error is a sentence. */
static inline void check_reply(const http_reply *reply) {
    static const int statuses[] = {200, 202, 400, 404, 405, 414, 503};
    bool known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        known |= reply->status == statuses[i];
    REQUIRE(known && (reply->text != NULL) != (reply->fixed != NULL) && !reply->stream);
    char message[BODY_MESSAGE];
    const char *text = reply->text ? reply->text : reply->fixed;
    REQUIRE(naive_utf8((const uint8_t *)text, reply->size));
    body_json *json = body_read(message, text, reply->size);
    REQUIRE(json != NULL);
    const char *error = body_member(json, "error").text;
    REQUIRE((error != NULL) == (reply->status >= 400));
    if (error) REQUIRE(error[0] >= 'A' && error[0] <= 'Z' && strlen(error) > 10);
    body_free(json);
}

/* Answers a request as the server does; what computes is answered where `compute` is true. */
static inline void answer(const http_route *route, const http_request *request, http_reply *reply,
                          served *run, bool compute) {
    http_handling handling = {.run = run, .request = request, .reply = reply};
    switch (route->work) {
    case WORK_PAGE:
    case WORK_METRICS:
        return;
    case WORK_QUICK:
        /* The evaluation starts a thread. */
        if (route->answer == answer_evaluation) return;
        route->answer(&handling);
        break;
    case WORK_PREDICT: {
        asked_prediction asked;
        if (prediction_read(&asked, &handling)) {
            REQUIRE(asked.query.entity >= 0 && asked.query.entity < run->entities);
            REQUIRE(asked.query.relation >= 0 && asked.query.relation < 2 * run->relations);
            REQUIRE(asked.count >= 1 && asked.count <= PREDICTION_LIMIT);
            const asked_prediction *one = &asked;
            if (compute) predictions_answer(&one, &reply, 1, run, NULL);
            prediction_free(&asked);
            if (!compute) return;
        }
        break;
    }
    case WORK_LONG:
        if (!compute) return;
        route->answer(&handling);
        break;
    }
    check_reply(reply);
}

UNCOUNTED_END

#endif
