/* Every public function with NULL for each of its pointers, with ids, counts and enum values out of
 * range, and with option structs of unknown versions: an error with a message, or the neutral value that
 * vlp.h documents, and never a crash. Here errors, training, runs and predicting; data sets are
 * in test_arguments_data.c. The last test holds the list of functions against the header. */
#include "arguments.h"

#include <math.h>

/* ---- Objects to call with ------------------------------------------------------------------------ */

static vlp_dataset *dataset;
static vlp_filter *filter;
static vlp_run *run;
static int32_t entities, relations;
static char data[64], folder[64], trained[96], new_folder[96];

static int set_up(void **state) {
    (void)state;
    snprintf(data, sizeof data, "%s", support_family(3, 3));
    snprintf(folder, sizeof folder, "%s", support_folder());
    snprintf(trained, sizeof trained, "%s/run", folder);
    snprintf(new_folder, sizeof new_folder, "%s/new", folder);
    must(vlp_dataset_open(&dataset, data, NULL));
    must(vlp_filter_new(&filter, dataset, 7));
    const char *settings[] = {"steps=5", "dim=4", "batch=16", "negatives=4", "threads=1"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    options.device = "cpu";
    must(vlp_train(NULL, data, trained, &options));
    must(vlp_run_open(&run, trained, NULL));
    entities = vlp_dataset_entity_count(dataset);
    relations = vlp_dataset_relation_count(dataset);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vlp_run_free(run);
    vlp_filter_free(filter);
    vlp_dataset_free(dataset);
    support_remove(folder);
    *strrchr(data, '/') = '\0'; /* support_family's own folder */
    support_remove(data);
    return 0;
}

/* ---- 1. Errors and allocation -------------------------------------------------------------------- */

static void *refuse_all(void *user, void *memory, size_t size) {
    (void)user, (void)memory, (void)size;
    return NULL;
}

static void library(void **state) {
    (void)state;
    note("vlp_error_message");
    note("vlp_version");
    note("vlp_is_loading");
    assert_non_null(vlp_error_message());
    assert_non_null(vlp_version());
    assert_false(vlp_is_loading());
    DOES_NOTHING(vlp_allocator_set, NULL);
    /* Half of an allocator is none: the next allocation works. */
    vlp_allocator half = {.reallocate = refuse_all};
    vlp_allocator_set(&half);
    vlp_allocator_set(&(vlp_allocator){.user = &half});
    vlp_filter *made = NULL;
    must(vlp_filter_new(&made, dataset, 1));
    vlp_filter_free(made);
}

/* ---- 7. Training --------------------------------------------------------------------------------- */

static void training(void **state) {
    (void)state;
    GIVES(NULL, vlp_component_name, (vlp_component)-1);
    GIVES(NULL, vlp_component_name, VLP_COMPONENTS);
    vlp_train_report report = {.steps = 77};
    NULL_REFUSED(data, vlp_train, &report, NULL, new_folder, NULL);
    NULL_REFUSED(run, vlp_train, &report, data, NULL, NULL);
    NULL_REFUSED(dataset, vlp_train_dataset, &report, NULL, new_folder, NULL);
    NULL_REFUSED(run, vlp_train_dataset, &report, dataset, NULL, NULL);
    VERSIONS_REFUSED(vlp_train_options, VLP_TRAIN_OPTIONS_INIT, vlp_train_dataset, &report, dataset,
                     new_folder, &options);
    VERSIONS_REFUSED(vlp_train_options, VLP_TRAIN_OPTIONS_INIT, vlp_train, &report, data, new_folder,
                     &options);
    vlp_train_options wrong = VLP_TRAIN_OPTIONS_INIT;
    wrong.setting_count = -1;
    REFUSED("-1 settings", vlp_train, &report, data, new_folder, &wrong);
    wrong.setting_count = 1;
    REFUSED("array is NULL", vlp_train, &report, data, new_folder, &wrong);
    const char *settings[] = {NULL};
    wrong.settings = settings;
    REFUSED("key=value", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "dim";
    REFUSED("key=value, not 'dim'", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "dim=0";
    REFUSED("dim takes", vlp_train, &report, data, new_folder, &wrong);
    settings[0] = "trains=head";
    REFUSED("needs embeddings", vlp_train, &report, data, new_folder, &wrong);
    wrong = (vlp_train_options)VLP_TRAIN_OPTIONS_INIT;
    wrong.device = "abacus";
    REFUSED("device 'abacus'", vlp_train, &report, data, new_folder, &wrong);
    vlp_tune_report tuned = {.trials = 78};
    NULL_REFUSED(data, vlp_tune, &tuned, NULL, new_folder, NULL);
    NULL_REFUSED(out, vlp_tune, &tuned, data, NULL, NULL);
    VERSIONS_REFUSED(vlp_tune_options, VLP_TUNE_OPTIONS_INIT, vlp_tune, &tuned, data, new_folder,
                     &options);
    vlp_tune_options search = VLP_TUNE_OPTIONS_INIT;
    search.setting_count = -1;
    REFUSED("-1 settings", vlp_tune, &tuned, data, new_folder, &search);
    search = (vlp_tune_options)VLP_TUNE_OPTIONS_INIT;
    search.component = VLP_COMPONENTS;
    REFUSED("there is no component", vlp_tune, &tuned, data, new_folder, &search);
    assert_int_equal(tuned.trials, 78);
    assert_int_equal(report.steps, 77); /* untouched on failure */
    assert_int_equal(support_count(folder), 1);
    vlp_setting_info info = {.name = "mine"};
    GIVES(false, vlp_setting_describe, NULL, 0);
    GIVES(false, vlp_setting_describe, &info, -1);
    GIVES(false, vlp_setting_describe, &info, INT32_MAX);
    GIVES(false, vlp_setting_describe, &info, INT32_MIN);
    assert_string_equal(info.name, "mine");
}

/* What is wrong with other statuses than the argument's. */
static void statuses(void **state) {
    (void)state;
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    assert_int_equal(vlp_train(NULL, data, trained, &options), VLP_ERROR_EXISTS);
    assert_int_equal(vlp_family_generate(NULL, data, NULL), VLP_ERROR_EXISTS);
    char file[128];
    snprintf(file, sizeof file, "%s/train.txt", data);
    assert_int_equal(vlp_split_file(NULL, file, file, NULL), VLP_ERROR_EXISTS);
    const char *settings[] = {"dims=3"};
    options.settings = settings;
    options.setting_count = 1;
    assert_int_equal(vlp_train(NULL, data, new_folder, &options), VLP_ERROR_UNKNOWN);
}

/* ---- 8. Runs ------------------------------------------------------------------------------------- */

static void runs(void **state) {
    (void)state;
    vlp_run *made = run;
    NULL_REFUSED(out, vlp_run_open, NULL, trained, NULL);
    NULL_REFUSED(folder, vlp_run_open, &made, NULL, NULL);
    assert_null(made);
    VERSIONS_REFUSED(vlp_run_options, VLP_RUN_OPTIONS_INIT, vlp_run_open, &made, trained, &options);
    vlp_run_options wrong = VLP_RUN_OPTIONS_INIT;
    wrong.threads = -1;
    REFUSED("threads", vlp_run_open, &made, trained, &wrong);
    wrong = (vlp_run_options)VLP_RUN_OPTIONS_INIT;
    wrong.device = "";
    REFUSED("device", vlp_run_open, &made, trained, &wrong);
    DOES_NOTHING(vlp_run_free, NULL);
    GIVES(NULL, vlp_run_dataset, NULL);
    GIVES(NULL, vlp_run_checksum, NULL);
    GIVES(NULL, vlp_run_version, NULL);
    char text[64] = "mine";
    GIVES(false, vlp_run_setting, NULL, run, 0);
    GIVES(false, vlp_run_setting, text, NULL, 0);
    GIVES(false, vlp_run_setting, text, run, -1);
    GIVES(false, vlp_run_setting, text, run, INT32_MAX);
    assert_string_equal(text, "mine");
    vlp_history *history = NULL;
    NULL_REFUSED(out, vlp_run_history, NULL, run);
    NULL_REFUSED(run, vlp_run_history, &history, NULL);
    DOES_NOTHING(vlp_history_free, NULL);
    vlp_embeddings table;
    NULL_REFUSED(out, vlp_run_entity_embeddings, NULL, run);
    NULL_REFUSED(run, vlp_run_entity_embeddings, &table, NULL);
    NULL_REFUSED(run, vlp_run_export, NULL, new_folder);
    NULL_REFUSED(folder, vlp_run_export, run, NULL);
    vlp_run_info info;
    memset(&info, 0x5a, sizeof info);
    DOES_NOTHING(vlp_run_describe, NULL, run);
    vlp_run_describe(&info, NULL);
    assert_null(info.folder);
    assert_int_equal(info.dim, 0);
}

static void evaluations(void **state) {
    (void)state;
    vlp_evaluation *made = NULL;
    NULL_REFUSED(out, vlp_run_evaluate, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_evaluate, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_evaluation_options, VLP_EVALUATION_OPTIONS_INIT, vlp_run_evaluate, &made, run,
                     &options);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_evaluation_options wrong = VLP_EVALUATION_OPTIONS_INIT;
        wrong.split = (vlp_split)bad_id(i, VLP_SPLITS);
        REFUSED("no split", vlp_run_evaluate, &made, run, &wrong);
        wrong = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
        wrong.sides = (vlp_sides)bad_id(i, VLP_TAILS + 1);
        REFUSED("sides", vlp_run_evaluate, &made, run, &wrong);
        wrong = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
        int32_t candidate = bad_id(i, entities);
        wrong.candidates = &candidate;
        wrong.candidate_count = 1;
        REFUSED("candidate", vlp_run_evaluate, &made, run, &wrong);
        wrong.candidate_count = -1;
        REFUSED("-1 candidates", vlp_run_evaluate, &made, run, &wrong);
    }
    vlp_evaluation_options other = VLP_EVALUATION_OPTIONS_INIT;
    other.filter = 8;
    REFUSED("splits 0x8", vlp_run_evaluate, &made, run, &other);
    other = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
    other.triples = -1;
    REFUSED("a sample of -1 triples", vlp_run_evaluate, &made, run, &other);
    int32_t first = 0;
    other = (vlp_evaluation_options)VLP_EVALUATION_OPTIONS_INIT;
    other.sample = 2;
    other.candidates = &first;
    other.candidate_count = 1;
    REFUSED("either given or a random sample", vlp_run_evaluate, &made, run, &other);
    assert_null(made);
    must(vlp_run_evaluate(&made, run, NULL));
    vlp_evaluation empty = {0};
    note("vlp_evaluation_rank");
    assert_true(isnan(vlp_evaluation_rank(NULL, VLP_BY_F, 0)));
    assert_true(isnan(vlp_evaluation_rank(&empty, VLP_BY_F, 0)));
    const int64_t numbers[] = {-1, made->queries, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) assert_true(isnan(vlp_evaluation_rank(made, VLP_BY_F, numbers[i])));
    vlp_interval out;
    NULL_REFUSED(out, vlp_evaluation_compare, NULL, made, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(first, vlp_evaluation_compare, &out, NULL, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(second, vlp_evaluation_compare, &out, made, VLP_BY_F, NULL, VLP_BY_F);
    NULL_REFUSED(first->ranks, vlp_evaluation_compare, &out, &empty, VLP_BY_F, made, VLP_BY_F);
    NULL_REFUSED(second->ranks, vlp_evaluation_compare, &out, made, VLP_BY_F, &empty, VLP_BY_F);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_ranked_by by = (vlp_ranked_by)bad_id(i, VLP_BY_F_P + 1);
        assert_true(isnan(vlp_evaluation_rank(made, by, 0)));
        REFUSED("rank by", vlp_evaluation_compare, &out, made, by, made, VLP_BY_F);
        REFUSED("rank by", vlp_evaluation_compare, &out, made, VLP_BY_F, made, by);
    }
    assert_true(vlp_evaluation_rank(made, VLP_BY_F_C, made->queries - 1) >= 1);
    vlp_evaluation_free(made);
    DOES_NOTHING(vlp_evaluation_free, NULL);
}

/* ---- 9. Predicting ------------------------------------------------------------------------------- */

static void wrong_candidates(void) {
    vlp_predictions *made = NULL;
    vlp_query query = {0, 0, -1};
    int32_t entity = 0;
    vlp_condition condition = {0, 0};
    vlp_candidate_options candidates[6];
    for (int i = 0; i < 6; i++) candidates[i] = (vlp_candidate_options)VLP_CANDIDATE_OPTIONS_INIT;
    candidates[0].version = 0;
    candidates[1].version = VLP_CANDIDATE_OPTIONS_VERSION + 1;
    candidates[2].entity_count = 1;
    candidates[3].condition_count = 1;
    candidates[4].entities = &entity;
    candidates[4].entity_count = -1;
    candidates[5].conditions = &condition;
    candidates[5].condition_count = INT32_MIN;
    static const char *const parts[6] = {"of version 0",  "of version",    "array is NULL",
                                         "array is NULL", "-1 candidates", "conditions"};
    for (int i = 0; i < 6; i++) {
        vlp_predict_options wrong = VLP_PREDICT_OPTIONS_INIT;
        wrong.candidates = &candidates[i];
        REFUSED(parts[i], vlp_run_predict, &made, run, &query, 1, &wrong);
        vlp_mining *mined = NULL;
        vlp_mine_options mining = VLP_MINE_OPTIONS_INIT;
        mining.candidates = &candidates[i];
        REFUSED(parts[i], vlp_run_mine, &mined, run, &mining);
    }
}

static void predictions(void **state) {
    (void)state;
    vlp_predictions *made = NULL;
    vlp_query query = {0, 0, -1};
    int32_t answer = 0;
    NULL_REFUSED(out, vlp_run_predict, NULL, run, &query, 1, NULL);
    NULL_REFUSED(run, vlp_run_predict, &made, NULL, &query, 1, NULL);
    REFUSED("array is NULL", vlp_run_predict, &made, run, NULL, 1, NULL);
    REFUSED("-1 queries", vlp_run_predict, &made, run, &query, -1, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_predict, &made, run, &query,
                     1, &options);
    NULL_REFUSED(out, vlp_run_explain, NULL, run, &query, &answer, 1, NULL);
    NULL_REFUSED(run, vlp_run_explain, &made, NULL, &query, &answer, 1, NULL);
    REFUSED("queries, and their array is NULL", vlp_run_explain, &made, run, NULL, &answer, 1, NULL);
    REFUSED("answers, and their array is NULL", vlp_run_explain, &made, run, &query, NULL, 1, NULL);
    REFUSED("-1 answers", vlp_run_explain, &made, run, &query, &answer, -1, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_explain, &made, run, &query,
                     &answer, 1, &options);
    vlp_predict_options wrong = VLP_PREDICT_OPTIONS_INIT;
    wrong.count = 0;
    REFUSED("0 answers", vlp_run_predict, &made, run, &query, 1, &wrong);
    for (int i = 0; i < 2; i++) {
        wrong = (vlp_predict_options)VLP_PREDICT_OPTIONS_INIT;
        wrong.paths = i == 0 ? -1 : VLP_MAX_PATHS + 1;
        REFUSED("paths asked for", vlp_run_predict, &made, run, &query, 1, &wrong);
    }
    wrong = (vlp_predict_options)VLP_PREDICT_OPTIONS_INIT;
    wrong_candidates();
    vlp_what_if changed;
    vlp_triple unknown = {bad_id(0, entities), 0, 0};
    NULL_REFUSED(out, vlp_run_what_if, NULL, run, query, answer, NULL, 0, NULL);
    NULL_REFUSED(run, vlp_run_what_if, &changed, NULL, query, answer, NULL, 0, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_what_if, &changed, run,
                     query, answer, NULL, 0, &options);
    REFUSED("not in the graph", vlp_run_what_if, &changed, run, query, answer, &unknown, 1, NULL);
    REFUSED("-1 triples", vlp_run_what_if, &changed, run, query, answer, &unknown, -1, NULL);
    wrong.filter = UINT32_MAX;
    REFUSED("splits", vlp_run_what_if, &changed, run, query, answer, NULL, 0, &wrong);
    REFUSED("splits", vlp_run_predict, &made, run, &query, 1, &wrong);
    REFUSED("splits", vlp_run_explain, &made, run, &query, &answer, 1, &wrong);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_query bad[2] = {{bad_id(i, entities), 0, -1}, {0, bad_id(i, 2 * relations), -1}};
        int32_t bad_answer = bad_id(i, entities);
        for (int j = 0; j < 2; j++) {
            REFUSED("query 0", vlp_run_predict, &made, run, &bad[j], 1, NULL);
            REFUSED("query 0", vlp_run_explain, &made, run, &bad[j], &answer, 1, NULL);
        }
        REFUSED("query 0: answer", vlp_run_explain, &made, run, &query, &bad_answer, 1, NULL);
    }
    assert_null(made);
    vlp_predict_options all = VLP_PREDICT_OPTIONS_INIT;
    all.count = INT32_MAX; /* more than there are */
    must(vlp_run_predict(&made, run, &query, 1, &all));
    assert_non_null(vlp_predictions_get(made, 0));
    GIVES(NULL, vlp_predictions_get, NULL, 0);
    const int64_t numbers[] = {-1, 1, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) GIVES(NULL, vlp_predictions_get, made, numbers[i]);
    vlp_predictions_free(made);
    must(vlp_run_predict(&made, run, NULL, 0, NULL));
    vlp_predictions_free(made);
    DOES_NOTHING(vlp_predictions_free, NULL);
}

static void classes(void **state) {
    (void)state;
    vlp_classification *made = NULL;
    NULL_REFUSED(out, vlp_run_classify, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_classify, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_classification_options, VLP_CLASSIFICATION_OPTIONS_INIT, vlp_run_classify,
                     &made, run, &options);
    vlp_classification_options wrong[3];
    for (int i = 0; i < 3; i++) wrong[i] = (vlp_classification_options)VLP_CLASSIFICATION_OPTIONS_INIT;
    wrong[0].exchanges = 0;
    wrong[1].exchanges = 101;
    wrong[2].minimum = 0;
    for (int i = 0; i < 3; i++) REFUSED("it is 1", vlp_run_classify, &made, run, &wrong[i]);
    assert_null(made);
    GIVES(false, vlp_classification_holds, NULL, 0, 0);
    DOES_NOTHING(vlp_classification_free, NULL);
}

static void relations_of_pairs(void **state) {
    (void)state;
    vlp_relation_predictions *made = NULL;
    vlp_entity_pair pair = {0, 1};
    NULL_REFUSED(out, vlp_run_predict_relations, NULL, run, &pair, 1, NULL);
    NULL_REFUSED(run, vlp_run_predict_relations, &made, NULL, &pair, 1, NULL);
    REFUSED("pairs, and their array is NULL", vlp_run_predict_relations, &made, run, NULL, 1, NULL);
    REFUSED("-1 pairs", vlp_run_predict_relations, &made, run, &pair, -1, NULL);
    VERSIONS_REFUSED(vlp_predict_options, VLP_PREDICT_OPTIONS_INIT, vlp_run_predict_relations, &made,
                     run, &pair, 1, &options);
    vlp_predict_options wrong = VLP_PREDICT_OPTIONS_INIT;
    wrong.filter = UINT32_MAX;
    REFUSED("splits", vlp_run_predict_relations, &made, run, &pair, 1, &wrong);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_entity_pair bad[2] = {{bad_id(i, entities), 0}, {0, bad_id(i, entities)}};
        for (int j = 0; j < 2; j++)
            REFUSED("pair 0", vlp_run_predict_relations, &made, run, &bad[j], 1, NULL);
    }
    assert_null(made);
    GIVES(NULL, vlp_relation_predictions_get, NULL, 0);
    DOES_NOTHING(vlp_relation_predictions_free, NULL);
}

static void scores(void **state) {
    (void)state;
    vlp_score out;
    vlp_triple triple = {0, 0, 1};
    NULL_REFUSED(run, vlp_run_score, &out, NULL, &triple, 1, NULL);
    REFUSED("scores, and their array is NULL", vlp_run_score, NULL, run, &triple, 1, NULL);
    REFUSED("triples, and their array is NULL", vlp_run_score, &out, run, NULL, 1, NULL);
    REFUSED("-1 scores", vlp_run_score, &out, run, &triple, -1, NULL);
    VERSIONS_REFUSED(vlp_score_options, VLP_SCORE_OPTIONS_INIT, vlp_run_score, &out, run, &triple, 1,
                     &options);
    for (int i = 0; i < BAD_IDS; i++) {
        vlp_triple bad[3] = {
            {bad_id(i, entities), 0, 0}, {0, bad_id(i, relations), 0}, {0, 0, bad_id(i, entities)}};
        for (int j = 0; j < 3; j++) REFUSED("triple 0", vlp_run_score, &out, run, &bad[j], 1, NULL);
    }
    must(vlp_run_score(NULL, run, NULL, 0, NULL));
    vlp_calibration calibration;
    NULL_REFUSED(out, vlp_run_calibrate, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_calibrate, &calibration, NULL, NULL);
    VERSIONS_REFUSED(vlp_calibration_options, VLP_CALIBRATION_OPTIONS_INIT, vlp_run_calibrate,
                     &calibration, run, &options);
    vlp_calibration_options wrong = VLP_CALIBRATION_OPTIONS_INIT;
    wrong.exchanges = INT32_MAX;
    REFUSED("exchanges", vlp_run_calibrate, &calibration, run, &wrong);
}

static void mining(void **state) {
    (void)state;
    vlp_mining *made = NULL;
    NULL_REFUSED(out, vlp_run_mine, NULL, run, NULL);
    NULL_REFUSED(run, vlp_run_mine, &made, NULL, NULL);
    VERSIONS_REFUSED(vlp_mine_options, VLP_MINE_OPTIONS_INIT, vlp_run_mine, &made, run, &options);
    vlp_mine_options wrong[5];
    for (int i = 0; i < 5; i++) wrong[i] = (vlp_mine_options)VLP_MINE_OPTIONS_INIT;
    wrong[0].relation = -2;
    wrong[1].relation = relations;
    wrong[2].relation = INT32_MAX;
    wrong[3].count = 0;
    wrong[4].per_query = INT32_MAX;
    for (int i = 0; i < 5; i++) REFUSED("", vlp_run_mine, &made, run, &wrong[i]);
    assert_null(made);
    DOES_NOTHING(vlp_mining_free, NULL);
    NULL_REFUSED(run, vlp_run_use_graph, NULL, NULL, data, NULL);
    int64_t count = 99;
    GIVES(NULL, vlp_run_graph_triples, NULL, &count);
    assert_int_equal(count, 0);
    GIVES(NULL, vlp_run_graph_dataset, NULL);
    assert_ptr_equal(vlp_run_graph_dataset(run), vlp_run_dataset(run));
    assert_non_null(vlp_run_graph_triples(run, NULL));
}

static void triple_files(void **state) {
    (void)state;
    vlp_triple_reader *made = NULL;
    vlp_triple triple;
    bool more;
    char path[128];
    snprintf(path, sizeof path, "%s/train.txt", data);
    NULL_REFUSED(out, vlp_triple_reader_open, NULL, dataset, path, false);
    NULL_REFUSED(dataset, vlp_triple_reader_open, &made, NULL, path, false);
    NULL_REFUSED(path, vlp_triple_reader_open, &made, dataset, NULL, false);
    assert_null(made);
    must(vlp_triple_reader_open(&made, dataset, path, false));
    NULL_REFUSED(out, vlp_triple_reader_next, NULL, &more, made);
    NULL_REFUSED(more, vlp_triple_reader_next, &triple, NULL, made);
    NULL_REFUSED(reader, vlp_triple_reader_next, &triple, &more, NULL);
    assert_int_equal(vlp_triple_reader_line(made), 0);
    must(vlp_triple_reader_next(&triple, &more, made));
    assert_true(more);
    vlp_triple_reader_free(made);
    GIVES(0, vlp_triple_reader_line, NULL);
    DOES_NOTHING(vlp_triple_reader_free, NULL);
}

static void queries(void **state) {
    (void)state;
    note("vlp_query_of");
    vlp_triple bad[2 + 3 * BAD_IDS] = {{-1, 0, -1}, {0, 0, 0}};
    for (int i = 0; i < BAD_IDS; i++) {
        bad[2 + 3 * i] = (vlp_triple){bad_id(i, entities), 0, -1};
        bad[3 + 3 * i] = (vlp_triple){-1, 0, bad_id(i, entities)};
        bad[4 + 3 * i] = (vlp_triple){0, bad_id(i, relations), -1};
    }
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        bool last = i == sizeof bad / sizeof *bad; /* a good one, and no data set */
        vlp_query query =
            last ? vlp_query_of(NULL, (vlp_triple){0, 0, -1}) : vlp_query_of(dataset, bad[i]);
        assert_int_equal(query.entity, -1);
        assert_int_equal(query.relation, -1);
        assert_int_equal(query.left_out, -1);
    }
    vlp_query forward = vlp_query_of(dataset, (vlp_triple){2, 1, -1});
    vlp_query backward = vlp_query_of(dataset, (vlp_triple){-1, 1, 2});
    assert_int_equal(forward.entity, 2);
    assert_int_equal(forward.relation, 1);
    assert_int_equal(backward.entity, 2);
    assert_int_equal(backward.relation, 1 + relations);
}

/* ---- All of them --------------------------------------------------------------------------------- */

static void nothing_is_left_out(void **state) {
    (void)state;
    int found = 0;
    assert_int_equal(count_missing(1, 1, &found), 0);
    assert_int_equal(count_missing(7, TO_THE_END, &found), 0);
    assert_true(found > 35);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(library),
                                       cmocka_unit_test(training),
                                       cmocka_unit_test(statuses),
                                       cmocka_unit_test(runs),
                                       cmocka_unit_test(evaluations),
                                       cmocka_unit_test(predictions),
                                       cmocka_unit_test(relations_of_pairs),
                                       cmocka_unit_test(classes),
                                       cmocka_unit_test(scores),
                                       cmocka_unit_test(mining),
                                       cmocka_unit_test(triple_files),
                                       cmocka_unit_test(queries),
                                       cmocka_unit_test(nothing_is_left_out)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
