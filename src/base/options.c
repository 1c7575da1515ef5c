#include "base/options.h"

#include <string.h>

/* ---- Versions of the option structs -------------------------------------------------------------- */

#define END(type, field) (offsetof(type, field) + sizeof(((type *)NULL)->field))
#define KIND(type, newest, ...)                                                                         \
    _Static_assert(sizeof((size_t[]){__VA_ARGS__}) == (newest) * sizeof(size_t), "a size per version"); \
    const vlp_options_kind type##_kind = {#type, newest, {__VA_ARGS__}}

KIND(vlp_dataset_options, VLP_DATASET_OPTIONS_VERSION, END(vlp_dataset_options, observer));
KIND(vlp_dataset_content, VLP_DATASET_CONTENT_VERSION, END(vlp_dataset_content, entity_descriptions),
     END(vlp_dataset_content, relation_descriptions));
KIND(vlp_split_options, VLP_SPLIT_OPTIONS_VERSION, END(vlp_split_options, observer));
KIND(vlp_file_options, VLP_FILE_OPTIONS_VERSION, END(vlp_file_options, language));
KIND(vlp_family_options, VLP_FAMILY_OPTIONS_VERSION, END(vlp_family_options, seed));
KIND(vlp_random_graph_options, VLP_RANDOM_GRAPH_OPTIONS_VERSION,
     END(vlp_random_graph_options, observer));
KIND(vlp_reference_options, VLP_REFERENCE_OPTIONS_VERSION, END(vlp_reference_options, observer));
KIND(vlp_audit_options, VLP_AUDIT_OPTIONS_VERSION, END(vlp_audit_options, references));
KIND(vlp_train_options, VLP_TRAIN_OPTIONS_VERSION, END(vlp_train_options, observer),
     END(vlp_train_options, time), END(vlp_train_options, user));
KIND(vlp_tune_options, VLP_TUNE_OPTIONS_VERSION, END(vlp_tune_options, user));
KIND(vlp_run_options, VLP_RUN_OPTIONS_VERSION, END(vlp_run_options, observer));
KIND(vlp_evaluation_options, VLP_EVALUATION_OPTIONS_VERSION, END(vlp_evaluation_options, observer),
     END(vlp_evaluation_options, pagerank), END(vlp_evaluation_options, seed));
KIND(vlp_predict_options, VLP_PREDICT_OPTIONS_VERSION, END(vlp_predict_options, observer),
     END(vlp_predict_options, paths), END(vlp_predict_options, candidates));
KIND(vlp_candidate_options, VLP_CANDIDATE_OPTIONS_VERSION, END(vlp_candidate_options, seen));
KIND(vlp_score_options, VLP_SCORE_OPTIONS_VERSION, END(vlp_score_options, observer));
KIND(vlp_calibration_options, VLP_CALIBRATION_OPTIONS_VERSION, END(vlp_calibration_options, observer));
KIND(vlp_classification_options, VLP_CLASSIFICATION_OPTIONS_VERSION,
     END(vlp_classification_options, observer));
KIND(vlp_mine_options, VLP_MINE_OPTIONS_VERSION, END(vlp_mine_options, observer),
     END(vlp_mine_options, sides));

vlp_status vlp_options_take(void *out, const void *given, const vlp_options_kind *kind) {
    if (!given) return VLP_OK;
    int32_t version;
    memcpy(&version, given, sizeof version); /* every option struct starts with it */
    if (version < 1 || version > kind->version)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%s of version %d; this library knows versions 1 to %d: start from the "
                        "initializer of its header",
                        kind->name, version, kind->version);
    memcpy(out, given, kind->sizes[version - 1]);
    memcpy(out, &kind->version, sizeof kind->version);
    return VLP_OK;
}

/* ---- Other arguments ----------------------------------------------------------------------------- */

vlp_status vlp_fail_null(const char *function, const char *argument) {
    return vlp_fail(VLP_ERROR_ARGUMENT, "%s: %s is NULL", function, argument);
}

vlp_status vlp_check_array(const void *array, int64_t count, const char *what) {
    if (count < 0) return vlp_fail(VLP_ERROR_ARGUMENT, "%lld %s", (long long)count, what);
    if (count > 0 && !array)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%lld %s, and their array is NULL", (long long)count, what);
    return VLP_OK;
}

vlp_status vlp_check_threads(int32_t threads) {
    if (threads >= 0) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT, "%d threads; it is 0 (all of the machine's) or more", threads);
}

vlp_status vlp_check_split(vlp_split split) {
    if ((int)split >= 0 && split < VLP_SPLITS) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT, "there is no split %d; it is 0 (training) to %d (test)",
                    (int)split, VLP_SPLITS - 1);
}

vlp_status vlp_check_splits(unsigned splits) {
    if (splits >> VLP_SPLITS == 0) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT, "splits 0x%x; there are bits 1 << 0 to 1 << %d", splits,
                    VLP_SPLITS - 1);
}
