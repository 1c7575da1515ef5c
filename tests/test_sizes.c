/* Sizes that do not fit are refused before anything is allocated, and the message says what would fit:
 * for every model, rows wider than an int32_t holds, tables larger than memory, more pairs than can be
 * numbered. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "compute/backend.h"
#include "learn/settings.h"
#include "model/model.h"

/* ---- Widths -------------------------------------------------------------------------------------- */

/* The number behind "dim = " in what a message says would fit, 0 without one. */
static int32_t fitting_dim(void) {
    const char *said = strstr(vlp_error_message(), "; dim = ");
    return said ? (int32_t)strtol(said + 8, NULL, 10) : 0;
}

/* Every model at every kind of extreme: accepted with widths as in 64 bits, or refused with the largest
 * dim that is accepted. */
static void widths_of_every_model(void **state) {
    (void)state;
    static const int32_t dims[] = {1, 2, 32767, 32768, 32769, 46341, 65536, INT32_MAX / 2, INT32_MAX};
    enum { DIMS = sizeof dims / sizeof *dims };
    int refused = 0;
    for (int32_t kind = 0; kind < VLP_MODELS; kind++)
        for (int i = 0; i < DIMS; i++)
            for (int j = -1; j < DIMS; j++) {
                vlp_model_options options = {kind, dims[i], j < 0 ? 0 : dims[j], VLP_NORM_L1, 6};
                bool matrix = kind == VLP_MODEL_RESCAL || kind == VLP_MODEL_TRANSR;
                int64_t other = kind == VLP_MODEL_TRANSR && j >= 0 ? dims[j] : dims[i];
                if (!matrix && j >= 0) continue;
                if (vlp_model_check(&options) == VLP_OK) {
                    vlp_form form;
                    vlp_model_form(&form, &options);
                    assert_true(form.entity_width >= dims[i] && form.query_width >= 1);
                    if (kind == VLP_MODEL_RESCAL)
                        assert_int_equal(form.relation_width, (int64_t)dims[i] * dims[i]);
                    if (kind == VLP_MODEL_TRANSR)
                        assert_int_equal(form.relation_width, other * dims[i] + other);
                    continue;
                }
                refused++;
                vlp_model_options fitting = options;
                if (kind == VLP_MODEL_TRANSR && 2 * other > VLP_MAX_WIDTH && j >= 0) {
                    assert_non_null(strstr(vlp_error_message(), "; lower relation_dim"));
                    continue;
                }
                fitting.dim = fitting_dim();
                assert_in_range(fitting.dim, 1, options.dim - 1);
                assert_int_equal(vlp_model_check(&fitting), VLP_OK);
                fitting.dim++;
                assert_int_equal(vlp_model_check(&fitting), VLP_ERROR_ARGUMENT);
            }
    assert_true(refused > 20);
}

/* ---- Training ------------------------------------------------------------------------------------ */

static vlp_status train(const char *data, const char *const *settings) {
    int32_t count = 0;
    while (settings[count]) count++;
    char run[128];
    const char *folder = support_folder();
    snprintf(run, sizeof run, "%s/run", folder);
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = count;
    options.device = "cpu";
    vlp_status status = vlp_train(NULL, data, run, &options);
    support_remove(folder);
    return status;
}

static void training_refuses_wide_rows(void **state) {
    (void)state;
    const char *data = support_family(20, 4);
    const char *const rescal[] = {"model=rescal", "dim=65536", "steps=1", NULL};
    const char *const transr[] = {"model=transr", "dim=65536", "steps=1", NULL};
    const char *const narrow[] = {"model=transr", "dim=40000", "relation_dim=60000", "steps=1", NULL};
    assert_int_equal(train(data, rescal), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "dim = 32768 would fit"));
    assert_int_equal(train(data, transr), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "dim = 32767 would fit"));
    assert_int_equal(train(data, narrow), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "dim = 17894 would fit"));
}

static void training_refuses_too_many_pairs(void **state) {
    (void)state;
    /* Some thousand training queries, each with a million negatives. */
    const char *data = support_family(20, 4);
    const char *const many[] = {"dim=1",
                                "batch=1000000",
                                "negatives=1000000",
                                "negatives_from=uniform",
                                "steps=1",
                                "vertical=off",
                                NULL};
    assert_int_equal(train(data, many), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "pairs; negatives = "));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVES_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESERVES_ADDRESSES 1
#endif
#endif

/* Every model with the largest dim whose rows can be numbered, the vertical aggregator's matrices on
 * top, with 4 GiB of addresses: none of them fits. */
static void training_refuses_more_than_memory(void **state) {
    (void)state;
#ifdef RESERVES_ADDRESSES
    skip(); /* a sanitizer takes more addresses than that for itself */
#endif
    const char *data = support_family(20, 4);
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){(rlim_t)4 << 30, before.rlim_max};
    int64_t available, total;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    bool known = vlp_memory_available(&available, &total);
    for (int32_t kind = 0; kind < VLP_MODELS; kind++) {
        const vlp_model_row *row = vlp_model_row_of(kind);
        bool matrix = vlp_transform_traits_of(row->transform).matrix;
        char model[32];
        snprintf(model, sizeof model, "model=%s", row->name);
        const char *const settings[] = {model, matrix ? "dim=32767" : "dim=65536", "steps=1",
                                        "threads=1", NULL};
        vlp_status status = train(data, settings);
        const char *message = vlp_error_message();
        if (status != VLP_ERROR_MEMORY || !strstr(message, "would fit")) {
            setrlimit(RLIMIT_AS, &before);
            fail_msg("%s: status %d, %s", model, (int)status, message);
        }
    }
    /* The working memory of a batch; and scratch of one query, which is allocated within a step. */
    const char *const batch[] = {"model=transe",  "dim=65536", "vertical=off", "steps=1", "threads=1",
                                 "batch=1000000", NULL};
    const char *const scratch[] = {"model=transr", "dim=8192",         "relation_dim=8",
                                   "vertical=off", "steps=1",          "threads=1",
                                   "batch=1",      "negatives=100000", NULL};
    vlp_status statuses[2];
    statuses[0] = train(support_family(20, 4), batch);
    bool advice = strstr(vlp_error_message(), "lower batch") != NULL;
    statuses[1] = train(support_family(20, 4), scratch);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(known);
    assert_true(total <= (int64_t)4 << 30);
    assert_int_equal(statuses[0], VLP_ERROR_MEMORY);
    assert_true(advice);
    assert_int_equal(statuses[1], VLP_ERROR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_of_every_model),
        cmocka_unit_test(training_refuses_wide_rows),
        cmocka_unit_test(training_refuses_too_many_pairs),
        cmocka_unit_test(training_refuses_more_than_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
