/* Calls of public functions with bad arguments, and the list of what was called: for test_arguments.c
 * and test_arguments_data.c. */
#ifndef VLP_TESTS_ARGUMENTS_H
#define VLP_TESTS_ARGUMENTS_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- What was called ----------------------------------------------------------------------------- */

static const char *called[256];
static int called_count;

static inline void note(const char *function) {
    for (int i = 0; i < called_count; i++)
        if (strcmp(called[i], function) == 0) return;
    assert_true(called_count < 256);
    called[called_count++] = function;
}

/* A message that no check leaves, so that an old one is not taken for a new one. */
static inline void forget_message(void) {
    vlp_fail(VLP_ERROR_IO, "no message");
}

static inline void expect_refused(const char *function, vlp_status status, const char *part, int line) {
    note(function);
    if (status != VLP_ERROR_ARGUMENT)
        fail_msg("line %d: %s gives status %d, not VLP_ERROR_ARGUMENT", line, function, (int)status);
    if (!strstr(vlp_error_message(), part))
        fail_msg("line %d: %s says '%s', which lacks '%s'", line, function, vlp_error_message(), part);
}

/* The call is refused with a message that has `part` in it. */
#define REFUSED(part, function, ...)                                                                    \
    do {                                                                                                \
        forget_message();                                                                               \
        expect_refused(#function, function(__VA_ARGS__), part, __LINE__);                               \
    } while (0)
/* The call has NULL for `argument`, and says so. */
#define NULL_REFUSED(argument, function, ...)                                                           \
    REFUSED(#function ": " #argument " is NULL", function, __VA_ARGS__)
/* The call gives a value. */
#define GIVES(value, function, ...)                                                                     \
    do {                                                                                                \
        note(#function);                                                                                \
        assert_true(function(__VA_ARGS__) == (value));                                                  \
    } while (0)
#define DOES_NOTHING(function, ...)                                                                     \
    do {                                                                                                \
        note(#function);                                                                                \
        function(__VA_ARGS__);                                                                          \
    } while (0)

/* Ids that nothing has: `count` is how many there are. */
enum { BAD_IDS = 4 };
static inline int32_t bad_id(int i, int64_t count) {
    const int32_t ids[BAD_IDS] = {-1, (int32_t)count, INT32_MAX, INT32_MIN};
    return ids[i];
}

/* Versions that no struct has: `newest` is the initializer's. */
enum { BAD_VERSIONS = 5 };
static inline int32_t bad_version(int i, int32_t newest) {
    const int32_t versions[BAD_VERSIONS] = {0, -1, newest + 1, INT32_MAX, INT32_MIN};
    return versions[i];
}

/* Calls with structs of unknown versions: the arguments name the struct `options`. */
#define VERSIONS_REFUSED(type, INITIALIZER, function, ...)                                              \
    do {                                                                                                \
        for (int v = 0; v < BAD_VERSIONS; v++) {                                                        \
            type options = INITIALIZER;                                                                 \
            options.version = bad_version(v, options.version);                                          \
            char part[64];                                                                              \
            snprintf(part, sizeof part, #type " of version %d;", options.version);                      \
            REFUSED(part, function, __VA_ARGS__);                                                       \
        }                                                                                               \
    } while (0)

static inline void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- All of them --------------------------------------------------------------------------------- */

enum { TO_THE_END = 98 };

/* The functions of sections `first` to `last` of the header that were not called; *found counts all. */
static inline int count_missing(int first, int last, int *found) {
    char *text = support_read("include", "vlp.h"), mark[32];
    assert_non_null(text);
    snprintf(mark, sizeof mark, "\n/* ---- %d. ", first);
    char *at = strstr(text, mark);
    assert_non_null(at);
    snprintf(mark, sizeof mark, "\n/* ---- %d. ", last + 1);
    char *stop = strstr(at, mark);
    if (!stop) stop = text + strlen(text);
    int missing = 0;
    for (; (at = strstr(at, "\nVLP_API ")) && at < stop; ++*found) {
        char *end = strchr(at, '('), *start = end;
        while (start > at && (start[-1] == '_' || (start[-1] >= 'a' && start[-1] <= 'z'))) start--;
        *end = '\0';
        bool known = false;
        for (int i = 0; i < called_count; i++) known = known || strcmp(called[i], start) == 0;
        if (!known) print_error("%s is public, and no test here calls it with bad arguments\n", start);
        missing += !known;
        at = end + 1;
    }
    free(text);
    return missing;
}

#endif
