/* A backend: that a missing library or operation is noticed, and that tables of a step are counted. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

/* ---- A missing library --------------------------------------------------------------------------- */

static bool openblas_is_missing;

/* Instead of the C library's, for the calls of the library under test. */
void *dlopen(const char *name, int flags) {
    void *(*next)(const char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    if (openblas_is_missing && strstr(name, "libopenblas")) name = "libmissing.so";
    return next(name, flags);
}

/* Before any other test: once loaded, it stays. */
static void test_without_openblas(void **state) {
    (void)state;
    vlp_compute *compute = NULL;
    openblas_is_missing = true;
    vlp_status status = vlp_cpu_backend.open(&compute, 1);
    openblas_is_missing = false;
    assert_int_equal(status, VLP_ERROR_DEVICE);
    assert_null(compute);
    assert_non_null(strstr(vlp_error_message(), "cannot load libopenblas.so.0 (libmissing.so: "));
}

/* ---- Completeness -------------------------------------------------------------------------------- */

typedef void (*any_function)(void);

/* The backend lacks each operation of a subtable in turn, then the whole subtable. `member` is the
 * pointer to it, in `backend`. */
static void expect_noticed(vlp_backend *backend, const void *member, size_t bytes) {
    const void *given, *copy = malloc(bytes);
    void *place = (char *)backend + ((const char *)member - (const char *)backend);
    memcpy(&given, place, sizeof given);
    memcpy(place, &copy, sizeof copy);
    memcpy((void *)copy, given, bytes);
    assert_true(vlp_backend_is_complete(backend));
    assert_int_equal(bytes % sizeof(any_function), 0);
    for (size_t at = 0; at < bytes; at += sizeof(any_function)) {
        memset((char *)copy + at, 0, sizeof(any_function));
        assert_false(vlp_backend_is_complete(backend));
        memcpy((char *)copy + at, (const char *)given + at, sizeof(any_function));
    }
    memset(place, 0, sizeof copy);
    assert_false(vlp_backend_is_complete(backend));
    memcpy(place, &given, sizeof given);
    assert_true(vlp_backend_is_complete(backend));
    free((void *)copy);
}

static void test_complete(void **state) {
    (void)state;
    vlp_backend backend = vlp_cpu_backend;
#define EXPECT_NOTICED(member) expect_noticed(&backend, &backend.member, sizeof *backend.member)
    EXPECT_NOTICED(memory);
    EXPECT_NOTICED(steps);
    EXPECT_NOTICED(blas);
    EXPECT_NOTICED(rows);
    EXPECT_NOTICED(transform);
    EXPECT_NOTICED(pairs);
    EXPECT_NOTICED(sample);
    EXPECT_NOTICED(loss);
    EXPECT_NOTICED(scores);
    EXPECT_NOTICED(aggregator);
    EXPECT_NOTICED(optimizer);
    EXPECT_NOTICED(rank);
    EXPECT_NOTICED(select);
#undef EXPECT_NOTICED
}

/* The bf16 operations are all there, or none is. */
static void test_optional(void **state) {
    (void)state;
    any_function functions[sizeof(vlp_bf16_operations) / sizeof(any_function)];
    vlp_bf16_operations operations;
    vlp_backend backend = vlp_cpu_backend;
    assert_null(backend.bf16);
    assert_true(vlp_backend_is_complete(&backend));
    backend.bf16 = &operations;
    for (size_t missing = 0; missing <= sizeof functions / sizeof *functions; missing++) {
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            functions[i] = i == missing ? NULL : (any_function)abort;
        memcpy(&operations, functions, sizeof operations);
        assert_int_equal(vlp_backend_is_complete(&backend),
                         missing == sizeof functions / sizeof *functions);
    }
}

/* ---- Tables of a step ---------------------------------------------------------------------------- */

typedef void (*step_action)(lab *bench, int32_t tables);

/* An update of tables without rows, the last numbered `tables` - 1. */
static void update(lab *bench, int32_t tables) {
    vlp_updated updated[VLP_MAX_TABLES + 1] = {{0}};
    vlp_update options = {.beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f};
    for (int32_t i = 0; i < tables; i++) updated[i].table = i;
    bench->backend->optimizer->update(bench->compute, &options, updated, tables);
}

/* A single table of that number. */
static void update_last(lab *bench, int32_t tables) {
    vlp_updated updated = {.table = tables - 1};
    vlp_update options = {.beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f};
    bench->backend->optimizer->update(bench->compute, &options, &updated, 1);
}

static void check(lab *bench, int32_t tables) {
    vlp_step_report report = {0};
    vlp_step_check options = {.tables = (uint32_t)1 << (tables - 1)};
    bench->backend->steps->check(bench->compute, &report, &options);
}

/* Whether a child process that does it is aborted. */
static bool aborts(lab *bench, step_action action, int32_t tables) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        action(bench, tables);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_too_many_tables(void **state) {
    (void)state;
    static const step_action actions[] = {update, update_last, check};
    lab bench;
    lab_open_on(&bench, &vlp_cpu_backend, 1, 1);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        assert_false(aborts(&bench, actions[i], VLP_MAX_TABLES));
        assert_true(aborts(&bench, actions[i], VLP_MAX_TABLES + 1));
    }
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_openblas),
                                       cmocka_unit_test(test_complete), cmocka_unit_test(test_optional),
                                       cmocka_unit_test(test_too_many_tables)};
    return cmocka_run_group_tests_name("backend", tests, NULL, NULL);
}
