#include "run_lab.h"

#include <string.h>

#include "store/safetensors.h"

void run_expect(vlp_status status, vlp_status expected, const char *part) {
    if (status != expected || !strstr(vlp_error_message(), part))
        fail_msg("status %d, '%s' lacks '%s'", status, vlp_error_message(), part);
}

const char *const run_usual[RUN_USUAL] = {
    "steps=12",     "batch=32",     "negatives=6",  "dim=6",     "rate=0.03",
    "references=3", "eval_every=4", "save_every=3", "threads=2", "schedule=constant"};

const char *run_family(void) {
    return support_family(4, 3);
}

vlp_train_options run_options(const char *const *settings, int32_t count, bool resume) {
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = count;
    options.resume = resume;
    options.device = lab_device();
    return options;
}

vlp_status run_start(const char *data, const char *run, const char *more) {
    const char *settings[RUN_USUAL + 1];
    int32_t count = 0;
    for (; count < RUN_USUAL; count++) settings[count] = run_usual[count];
    if (more) settings[count++] = more;
    vlp_train_options options = run_options(settings, count, false);
    return vlp_train(NULL, data, run, &options);
}

vlp_status run_resume(vlp_train_report *report, const char *run, const char *first, const char *second) {
    const char *settings[2] = {first, second};
    vlp_train_options options = run_options(settings, (first != NULL) + (second != NULL), true);
    return vlp_train(report, run_family(), run, &options);
}

static bool same_tensor(const char *left, const char *right, const char *file, const char *name) {
    vlp_safetensors *files[2] = {NULL, NULL};
    const vlp_tensor *tensors[2];
    must(vlp_safetensors_open(&files[0], support_path(left, file), true));
    must(vlp_safetensors_open(&files[1], support_path(right, file), true));
    for (int i = 0; i < 2; i++) {
        tensors[i] = vlp_safetensors_find(files[i], name);
        assert_non_null(tensors[i]);
    }
    size_t bytes = (size_t)(tensors[0]->shape[0] * tensors[0]->shape[1]) * sizeof(float);
    bool same = memcmp(tensors[0]->data, tensors[1]->data, bytes) == 0;
    vlp_safetensors_free(files[0]);
    vlp_safetensors_free(files[1]);
    return same;
}

bool run_same_state(const char *left, const char *right) {
    static const char *const names[] = {"entities", "relations.second", "aggregator_output",
                                        "aggregator_node.first"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!same_tensor(left, right, "state.safetensors", names[i])) return false;
    return true;
}

static void watch_steps(void *user, const char *what, int64_t done, int64_t total) {
    run_stopper *when = user;
    (void)total;
    if (strcmp(what, when->what ? when->what : "steps") == 0 && done >= when->at) when->now = true;
}

static bool stop_now(void *user) {
    return ((run_stopper *)user)->now;
}

vlp_observer run_stop_at(run_stopper *when) {
    return (vlp_observer){.progress = watch_steps, .stop = stop_now, .user = when};
}
