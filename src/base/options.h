/* The arguments of public functions: pointers that may not be NULL, counts, splits, and option structs
 * of any version.
 *
 * A caller may have been compiled with an older header, whose option structs are shorter. The version at
 * the start of a struct tells how many of its bytes there are; fields that it lacks keep their defaults.
 * To add a field: put it at the end of the struct, give it a default in the initializer, raise
 * VLP_X_OPTIONS_VERSION, and add a size in options.c; sizes of earlier versions stay. A struct that
 * contains another option struct has it as its last field and is raised together with it. */
#ifndef VLP_BASE_OPTIONS_H
#define VLP_BASE_OPTIONS_H

#include "base/base.h"

enum { VLP_OPTIONS_VERSIONS = 8 };

/* The versions of one option struct. */
typedef struct vlp_options_kind {
    const char *name;
    int32_t version;                    /* the newest, that of the initializer */
    size_t sizes[VLP_OPTIONS_VERSIONS]; /* [v - 1]: bytes up to the end of the last field of version v;
                                           without the padding behind it, where a later field may be */
} vlp_options_kind;

/* Every option struct of vlp.h. */
#define VLP_OPTION_STRUCTS(DO)                                                                          \
    DO(vlp_dataset_options)                                                                             \
    DO(vlp_dataset_content)                                                                             \
    DO(vlp_split_options)                                                                               \
    DO(vlp_file_options)                                                                                \
    DO(vlp_family_options)                                                                              \
    DO(vlp_random_graph_options)                                                                        \
    DO(vlp_reference_options)                                                                           \
    DO(vlp_audit_options)                                                                               \
    DO(vlp_train_options)                                                                               \
    DO(vlp_tune_options)                                                                                \
    DO(vlp_run_options)                                                                                 \
    DO(vlp_evaluation_options)                                                                          \
    DO(vlp_predict_options)                                                                             \
    DO(vlp_candidate_options)                                                                           \
    DO(vlp_score_options)                                                                               \
    DO(vlp_calibration_options)                                                                         \
    DO(vlp_classification_options)                                                                      \
    DO(vlp_mine_options)

#define VLP_OPTIONS_DECLARE(type) extern const vlp_options_kind type##_kind;
VLP_OPTION_STRUCTS(VLP_OPTIONS_DECLARE)
#undef VLP_OPTIONS_DECLARE

/* Copies the fields that `given` has over those of `out`, which holds the defaults of the newest
 * version, and keeps out's version. NULL gives nothing. VLP_ERROR_ARGUMENT for a version that is not
 * known. */
vlp_status vlp_options_take(void *out, const void *given, const vlp_options_kind *kind);

/* The same with the types checked. */
#define VLP_OPTIONS_TAKE(type, out, given)                                                              \
    vlp_options_take(1 ? (out) : (type *)NULL, 1 ? (given) : (const type *)NULL, &type##_kind)

/* Leaves a public function with VLP_ERROR_ARGUMENT where an argument is NULL. */
#define VLP_REQUIRE(argument)                                                                           \
    do {                                                                                                \
        if (!(argument)) return vlp_fail_null(__func__, #argument);                                     \
    } while (0)
vlp_status vlp_fail_null(const char *function, const char *argument);

/* VLP_ERROR_ARGUMENT for an array that is NULL with a count above 0, for a negative count, for a
 * negative number of threads, for a number that is no split, and for bits that belong to no split. */
vlp_status vlp_check_array(const void *array, int64_t count, const char *what);
vlp_status vlp_check_threads(int32_t threads);
vlp_status vlp_check_split(vlp_split split);
vlp_status vlp_check_splits(unsigned splits);

#endif
