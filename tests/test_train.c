/* Training as a whole: the same bits from the same seed, at a stop and after it, under SIGKILL, with
 * damaged files; and that the head leaves the embeddings alone. */
#include "support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "lab.h"
#include "store/safetensors.h"

enum { MAX_SETTINGS = 24 };

static const char *family(void) {
    return support_family(6, 3);
}

static const char *const base_settings[] = {"steps=40",     "batch=64",      "negatives=16",
                                            "dim=8",        "rate=0.01",     "threads=2",
                                            "save_every=5", "eval_every=10", "references=3"};
enum { BASE_SETTINGS = sizeof base_settings / sizeof *base_settings };

/* Trains with the base settings and some more (ended by NULL). */
static vlp_status train(const char *run, bool resume, const vlp_observer *observer, ...) {
    const char *settings[MAX_SETTINGS];
    int32_t count = 0;
    for (; count < BASE_SETTINGS; count++) settings[count] = base_settings[count];
    va_list more;
    va_start(more, observer);
    for (const char *text; (text = va_arg(more, const char *));) settings[count++] = text;
    va_end(more);
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = count;
    options.resume = resume;
    options.observer = observer;
    options.device = lab_device();
    return vlp_train(NULL, family(), run, &options);
}

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static void same_file(const char *left, const char *right, const char *name) {
    vlp_safetensors *a = NULL, *b = NULL;
    must(vlp_safetensors_open(&a, support_path(left, name), true));
    must(vlp_safetensors_open(&b, support_path(right, name), true));
    assert_string_equal(vlp_safetensors_metadata(a, "xxh3_128"),
                        vlp_safetensors_metadata(b, "xxh3_128"));
    vlp_safetensors_free(a);
    vlp_safetensors_free(b);
}

static void same_runs(const char *left, const char *right) {
    same_file(left, right, "model.safetensors");
    same_file(left, right, "state.safetensors");
}

/* Whether one tensor has the same bytes in two runs. */
static bool same_tensor(const char *left, const char *right, const char *name) {
    vlp_safetensors *files[2] = {NULL, NULL};
    const vlp_tensor *tensors[2];
    must(vlp_safetensors_open(&files[0], support_path(left, "state.safetensors"), true));
    must(vlp_safetensors_open(&files[1], support_path(right, "state.safetensors"), true));
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

/* Every model, loss and option trains to finite numbers, twice the same, and not the same with another
 * seed. */
static void same_seed_same_bits(void **state) {
    (void)state;
    const char *cases[][4] = {
        {"model=rotate", NULL},
        {"model=transe", "norm=l2", NULL},
        {"model=transr", "relation_dim=5", NULL},
        {"model=distmult", "weights=self-adversarial", "negatives_from=uniform", NULL},
        {"model=complex", "loss=cross-entropy", "relation_prediction=0.5", "n3=0.01"},
        {"model=rescal", "optimizer=adagrad", "clip=1", NULL},
        {"model=pairre", "vertical_gradient=on", NULL},
        {"model=transh", "norm=l2", "clip=1", NULL},
        {"model=quate", "loss=cross-entropy", "n3=0.01", NULL},
        {"model=complex", "loss=kvsall", "label_smoothing=0.1", "dropout=0.2"},
        {"model=rescal", "loss=kvsall", "optimizer=adagrad", "vertical_gradient=on"},
        {"precision=bf16", "model=distmult", "loss=kvsall", "n3=0.01"},
        {"model=distmult", "dropout=0.2", "optimizer=lazy-adam", NULL},
        {"candidates=20", "optimizer=lazy-adam", "schedule=cosine", NULL},
        {"vertical_gradient=on", "warmup=10", "weights=uniform", NULL},
        /* The CPU reads no bf16 copies; a GPU does. */
        {"precision=bf16", NULL},
        {"precision=bf16", "model=complex", "loss=cross-entropy", "n3=0.01"},
        {"precision=bf16", "model=transe", "candidates=20", "clip=1"},
        {"precision=bf16", "model=distmult", "vertical_gradient=on", "optimizer=lazy-adam"}};
    const char *folder = support_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char runs[3][64];
        for (int r = 0; r < 3; r++) {
            snprintf(runs[r], sizeof runs[r], "%s/%zu-%d", folder, i, r);
            must(train(runs[r], false, NULL, r == 2 ? "seed=1" : "seed=0",
                       cases[i][0] ? cases[i][0] : NULL, cases[i][1], cases[i][2], cases[i][3], NULL));
        }
        same_runs(runs[0], runs[1]);
        assert_false(same_tensor(runs[0], runs[2], "entities"));
    }
    support_remove(folder);
}

/* f_g is bit for bit the same with the aggregator on and off. */
static void aggregator_leaves_embeddings_alone(void **state) {
    (void)state;
    static const char *const kinds[][3] = {{"precision=fp32", "model=rotate", "loss=negative-sampling"},
                                           {"precision=bf16", "model=rotate", "loss=negative-sampling"},
                                           {"model=complex", "loss=kvsall", "dropout=0.2"}};
    const char *folder = support_folder();
    for (int p = 0; p < 3; p++) {
        const char *const *k = kinds[p];
        char on[64], off[64], shared[64];
        snprintf(on, sizeof on, "%s/on-%d", folder, p);
        snprintf(off, sizeof off, "%s/off-%d", folder, p);
        snprintf(shared, sizeof shared, "%s/shared-%d", folder, p);
        must(train(on, false, NULL, k[0], k[1], k[2], NULL));
        must(train(off, false, NULL, k[0], k[1], k[2], "vertical=off", NULL));
        must(train(shared, false, NULL, k[0], k[1], k[2], "vertical_gradient=on", NULL));
        const char *names[] = {"entities", "relations", "entities.first", "relations.second"};
        for (int i = 0; i < 4; i++) {
            assert_true(same_tensor(on, off, names[i]));
            assert_false(same_tensor(on, shared, names[i]));
        }
    }
    support_remove(folder);
}

/* Asks to stop once a step is done. */
typedef struct stopper {
    int64_t at;
    bool now;
} stopper;

static void watch_steps(void *user, const char *what, int64_t done, int64_t total) {
    stopper *when = user;
    (void)total;
    if (strcmp(what, "steps") == 0 && done >= when->at) when->now = true;
}

static bool stop_now(void *user) {
    return ((stopper *)user)->now;
}

static vlp_observer stop_at(stopper *when) {
    return (vlp_observer){.progress = watch_steps, .stop = stop_now, .user = when};
}

/* Stopped again and again and taken up, a run ends with the same bits. */
static void check_resuming(const char *folder, const char *setting, const char *model,
                           const char *loss) {
    char whole[64], parts[64];
    snprintf(whole, sizeof whole, "%s/whole-%s", folder, setting);
    snprintf(parts, sizeof parts, "%s/parts-%s", folder, setting);
    must(train(whole, false, NULL, setting, model, loss, NULL));
    int stops = 0;
    for (int round = 0; round < 100; round++) {
        /* Stops fall between saves and on them. */
        stopper when = {1 + 3 * round, false};
        vlp_observer observer = stop_at(&when);
        vlp_status status = train(parts, round > 0, &observer, setting, model, loss, NULL);
        if (status == VLP_OK) break;
        assert_int_equal(status, VLP_ERROR_STOPPED);
        stops++;
    }
    assert_true(stops > 3);
    same_runs(whole, parts);
    char *left = support_read(whole, "metrics.jsonl"), *right = support_read(parts, "metrics.jsonl");
    int lines[2] = {0, 0};
    for (char *at = left; (at = strchr(at, '\n')); at++) lines[0]++;
    for (char *at = right; (at = strchr(at, '\n')); at++) lines[1]++;
    assert_int_equal(lines[0], 4);
    assert_int_equal(lines[1], 4);
    free(left);
    free(right);
}

static void resuming_changes_nothing(void **state) {
    (void)state;
    const char *folder = support_folder();
    check_resuming(folder, "precision=fp32", NULL, NULL);
    check_resuming(folder, "precision=bf16", NULL, NULL);
    check_resuming(folder, "dropout=0.3", "model=complex", "loss=kvsall");
    support_remove(folder);
}

static void refuses(void **state) {
    (void)state;
    const char *folder = support_folder();
    char run[64];
    snprintf(run, sizeof run, "%s/run", folder);
    must(train(run, false, NULL, NULL));
    assert_int_equal(train(run, false, NULL, NULL), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "is a run already"));
    assert_int_equal(train(run, true, NULL, "dim=9", NULL), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "was started with dim = 8, not 9"));
    /* Another data set than it was trained on. */
    support_write_text(folder, "train.txt", "a\tr\tb\n");
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.resume = true;
    assert_int_equal(vlp_train(NULL, folder, run, &options), VLP_ERROR_FORMAT);
    assert_non_null(strstr(vlp_error_message(), "was trained on another data set than"));
    support_remove(folder);
}

/* A damaged state is refused by name, and the one before is used: the end is the same. */
static void damaged_state_falls_back(void **state) {
    (void)state;
    const char *folder = support_folder();
    char whole[64], hurt[64];
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(hurt, sizeof hurt, "%s/hurt", folder);
    must(train(whole, false, NULL, NULL));
    stopper when = {23, false};
    vlp_observer observer = stop_at(&when);
    assert_int_equal(train(hurt, false, &observer, NULL), VLP_ERROR_STOPPED);
    FILE *file = fopen(support_path(hurt, "state.safetensors"), "r+b");
    fseek(file, 5000, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 5000, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    must(train(hurt, true, NULL, NULL));
    same_runs(whole, hurt);
    /* Both damaged: an error that names the file. */
    assert_int_equal(truncate(support_path(hurt, "state.safetensors"), 100), 0);
    assert_int_equal(truncate(support_path(hurt, "state.previous.safetensors"), 100), 0);
    assert_int_equal(train(hurt, true, NULL, NULL), VLP_ERROR_FORMAT);
    assert_non_null(strstr(vlp_error_message(), "state.previous.safetensors"));
    support_remove(folder);
}

/* Runs the program on the family; kills it after some milliseconds unless that is negative. Returns
 * whether it ended by itself, well. The library's threads must not have run in this process when it
 * forks, so the program is run, not the function. */
static bool run_program(const char *data, const char *run, int milliseconds) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *arguments[2 * BASE_SETTINGS + 16] = {
            getenv("VLP_PROGRAM"), "train", data, "-o", run, "--resume", "-q", "--device", lab_device()};
        int count = 9;
        for (int i = 0; i < BASE_SETTINGS; i++) {
            arguments[count++] = "--set";
            arguments[count++] = base_settings[i];
        }
        if (!freopen("/dev/null", "w", stdout)) _exit(126);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    if (milliseconds >= 0) {
        nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
        kill(child, SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Killed at any moment, a hundred times, a run ends with the bits of one that never was. */
static void killed_a_hundred_times(void **state) {
    (void)state;
    const char *program = getenv("VLP_PROGRAM");
    if (!program || access(program, X_OK) != 0) skip();
    const char *folder = support_folder();
    char whole[64], killed[64];
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(killed, sizeof killed, "%s/killed", folder);
    assert_true(run_program(family(), whole, -1));
    int ended = 0;
    for (uint32_t i = 0; i < 100; i++) {
        vlp_random4 bits = vlp_random(1, VLP_STREAM_TEST, i, 0);
        ended += run_program(family(), killed, (int)(bits.v[0] % 120));
        if (ended > 0 && i % 10 == 0) { /* start over: kills at the beginning count too */
            same_runs(whole, killed);
            support_remove(killed);
            ended = 0;
        }
    }
    assert_true(run_program(family(), killed, -1));
    same_runs(whole, killed);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_a_hundred_times), /* first: it forks */
        cmocka_unit_test(same_seed_same_bits),      cmocka_unit_test(aggregator_leaves_embeddings_alone),
        cmocka_unit_test(resuming_changes_nothing), cmocka_unit_test(refuses),
        cmocka_unit_test(damaged_state_falls_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
