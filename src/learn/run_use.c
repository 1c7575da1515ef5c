/* Runs that are finished: opening, evaluating, exporting. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/baselines.h"
#include "learn/run_inside.h"
#include "store/npy.h"

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status fill(vlp_run *run, const vlp_run_options *options) {
    VLP_TRY(vlp_run_settings(&run->settings, run->folder));
    if (options->threads > 0) run->settings.threads = options->threads;
    VLP_TRY(vlp_run_load_facts(&run->facts, run->folder));
    vlp_dataset_options opening = {1, run->settings.threads, options->observer};
    const char *data = options->data ? options->data : run->facts.data;
    VLP_TRY(vlp_dataset_open(&run->dataset, data, &opening));
    char checksum[33];
    vlp_dataset_checksum(checksum, run->dataset);
    if (strcmp(checksum, run->facts.checksum) != 0)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s is not the data set that %s was trained on: its names or triples differ",
                        data, run->folder);
    VLP_TRY(vlp_backend_find(&run->backend, options->device ? options->device : "auto"));
    VLP_TRY(run->backend->open(&run->compute, run->settings.threads));
    vlp_model_options model = {run->settings.model, run->settings.dim, run->settings.relation_dim,
                               run->settings.norm, run->settings.margin};
    VLP_TRY(vlp_model_new(&run->model, run->backend, run->compute, &model,
                          vlp_dataset_entity_count(run->dataset),
                          2 * vlp_dataset_relation_count(run->dataset), run->settings.vertical, false));
    return vlp_run_load_model(run->model, &run->progress, &run->facts, run->folder);
}

vlp_status vlp_run_open(vlp_run **out, const char *folder, const vlp_run_options *given) {
    *out = NULL;
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    if (given) options = *given;
    vlp_run *run = vlp_alloc_zero(1, sizeof *run);
    if (!run) return vlp_fail_memory("a run");
    run->folder = vlp_string_copy(folder);
    vlp_status status = run->folder ? fill(run, &options) : vlp_fail_memory("a run");
    if (status != VLP_OK) {
        vlp_run_free(run);
        return status;
    }
    *out = run;
    return VLP_OK;
}

void vlp_run_free(vlp_run *run) {
    if (!run) return;
    vlp_run_predicting_free(run);
    vlp_model_free(run->model);
    if (run->backend) run->backend->close(run->compute);
    vlp_dataset_free(run->dataset);
    vlp_free(run->folder);
    vlp_free(run);
}

const vlp_dataset *vlp_run_dataset(const vlp_run *run) {
    return run->dataset;
}

/* ---- Evaluating ---------------------------------------------------------------------------------- */

enum { MIXTURES = 3, BOOTSTRAP_ROUNDS = 1000 }; /* f, f_g, f_c */

static vlp_metrics side_metrics(const vlp_rank *ranks, int64_t queries, bool tail, uint8_t *selected) {
    for (int64_t i = 0; i < queries; i++) selected[i] = (i < queries / 2) == tail;
    return vlp_metrics_compute(ranks, queries, VLP_REALISTIC, selected);
}

static vlp_status set_baselines(vlp_evaluation *out, const vlp_run *run, vlp_split split,
                                unsigned filter) {
    vlp_filter *known = NULL;
    vlp_status status = VLP_OK;
    vlp_rank *ranks = vlp_alloc((size_t)out->queries, sizeof *ranks);
    if (!ranks) return vlp_fail_memory("baselines");
    VLP_CHECK(vlp_filter_new(&known, run->dataset, filter));
    VLP_CHECK(vlp_baseline_frequency(ranks, run->dataset, split, known));
    out->frequency = vlp_metrics_compute(ranks, out->queries, VLP_REALISTIC, NULL);
    int32_t references = run->settings.references > 0 ? run->settings.references : 8;
    VLP_CHECK(vlp_baseline_vote(ranks, run->dataset, split, known, references,
                                run->settings.references_per_head, run->settings.threads));
    out->vote = vlp_metrics_compute(ranks, out->queries, VLP_REALISTIC, NULL);
out:
    vlp_filter_free(known);
    vlp_free(ranks);
    return status;
}

static vlp_status set_groups(vlp_evaluation *out, const vlp_run *run, const vlp_rank *ranks) {
    vlp_status status = VLP_OK;
    vlp_query_kind *kinds = vlp_alloc((size_t)out->queries, sizeof *kinds);
    if (!kinds) return vlp_fail_memory("breakdowns");
    VLP_CHECK(vlp_query_kinds(kinds, run->dataset, out->split, run->settings.threads));
    VLP_CHECK(vlp_groups_compute(&out->by_relation, ranks, kinds, out->queries, VLP_BY_RELATION));
    VLP_CHECK(vlp_groups_compute(&out->by_side, ranks, kinds, out->queries, VLP_BY_SIDE));
    VLP_CHECK(vlp_groups_compute(&out->by_mapping, ranks, kinds, out->queries, VLP_BY_MAPPING));
    VLP_CHECK(vlp_groups_compute(&out->by_distance, ranks, kinds, out->queries, VLP_BY_DISTANCE));
    VLP_CHECK(vlp_metrics_macro_mrr(&out->macro_mrr, ranks, kinds, out->queries));
out:
    vlp_free(kinds);
    return status;
}

static vlp_status set_metrics(vlp_evaluation *out, const vlp_run *run, const vlp_ranking *ranking) {
    int64_t queries = ranking->queries;
    const vlp_rank *ranks = vlp_ranking_of(ranking, 0);
    uint8_t *selected = vlp_alloc((size_t)queries, 1);
    if (!selected) return vlp_fail_memory("metrics");
    out->queries = queries;
    out->both = vlp_metrics_compute(ranks, queries, VLP_REALISTIC, NULL);
    out->tail = side_metrics(ranks, queries, true, selected);
    out->head = side_metrics(ranks, queries, false, selected);
    vlp_free(selected);
    out->optimistic = vlp_metrics_compute(ranks, queries, VLP_OPTIMISTIC, NULL);
    out->pessimistic = vlp_metrics_compute(ranks, queries, VLP_PESSIMISTIC, NULL);
    out->horizontal = vlp_metrics_compute(vlp_ranking_of(ranking, 1), queries, VLP_REALISTIC, NULL);
    if (run->settings.vertical)
        out->vertical = vlp_metrics_compute(vlp_ranking_of(ranking, 2), queries, VLP_REALISTIC, NULL);
    return vlp_metrics_bootstrap(&out->interval, ranks, NULL, queries, BOOTSTRAP_ROUNDS,
                                 run->settings.seed, run->settings.threads);
}

vlp_status vlp_run_evaluate(vlp_evaluation **out, vlp_run *run, const vlp_evaluation_options *given) {
    *out = NULL;
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    if (given) options = *given;
    if (run->dataset->splits[options.split].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "the data set has no %s to evaluate",
                        vlp_split_names[options.split]);
    unsigned filter =
        options.filter ? options.filter : 1u << VLP_TRAIN | 1u << VLP_VALID | 1u << options.split;
    vlp_mixture chosen = run->settings.vertical ? run->progress.mixture : (vlp_mixture){0, 1};
    const vlp_mixture mixtures[MIXTURES] = {chosen, {0, 1}, {1, 0}};
    vlp_ranking_options ranking_options = {.split = options.split,
                                           .filter = filter,
                                           .mixtures = mixtures,
                                           .mixture_count = run->settings.vertical ? MIXTURES : 2,
                                           .references = run->settings.references,
                                           .references_per_head = run->settings.references_per_head,
                                           .threads = run->settings.threads,
                                           .observer = options.observer};
    vlp_ranking *ranking = NULL;
    vlp_status status = VLP_OK;
    vlp_evaluation *evaluation = vlp_alloc_zero(1, sizeof *evaluation);
    if (!evaluation) return vlp_fail_memory("an evaluation");
    evaluation->split = options.split;
    evaluation->lambda = (double)chosen.horizontal;
    evaluation->horizontal_only = chosen.vertical == 0;
    VLP_CHECK(vlp_ranking_compute(&ranking, run->model, run->dataset, &ranking_options));
    VLP_CHECK(set_metrics(evaluation, run, ranking));
    VLP_CHECK(set_baselines(evaluation, run, options.split, filter));
    VLP_CHECK(set_groups(evaluation, run, vlp_ranking_of(ranking, 0)));
out:
    vlp_ranking_free(ranking);
    if (status != VLP_OK) {
        vlp_evaluation_free(evaluation);
        return status;
    }
    *out = evaluation;
    return VLP_OK;
}

void vlp_evaluation_free(vlp_evaluation *evaluation) {
    if (!evaluation) return;
    vlp_groups_free(&evaluation->by_relation);
    vlp_groups_free(&evaluation->by_side);
    vlp_groups_free(&evaluation->by_mapping);
    vlp_groups_free(&evaluation->by_distance);
    vlp_free(evaluation);
}

/* ---- Exporting ----------------------------------------------------------------------------------- */

static vlp_status write_array(const char *folder, const char *name, const float *data, int64_t rows,
                              int64_t columns) {
    char file[64];
    snprintf(file, sizeof file, "%s.npy", name);
    char *path = vlp_path_join(folder, file);
    if (!path) return vlp_fail_memory("a file name");
    vlp_tensor tensor = {name, VLP_F32, 2, {rows, columns, 0, 0}, data};
    vlp_status status = vlp_npy_write(path, &tensor);
    vlp_free(path);
    return status;
}

/* Relations as others read them: phases in radians, translations apart from matrices. */
static vlp_status write_relations(const char *folder, const vlp_run *run, float *values) {
    const vlp_form *form = &run->model->form;
    int64_t rows = run->model->relations, width = form->relation_width;
    if (form->transform == VLP_ROTATE)
        for (int64_t i = 0; i < rows * width; i++) values[i] *= form->phase_scale;
    if (form->transform != VLP_MATRIX_TRANSLATE)
        return write_array(folder, "relations", values, rows, width);
    int64_t matrix = (int64_t)form->query_width * form->entity_width, shift = form->query_width;
    float *parts = vlp_alloc((size_t)(rows * width), sizeof *parts);
    if (!parts) return vlp_fail_memory("an export");
    for (int64_t i = 0; i < rows; i++) {
        memcpy(parts + i * matrix, values + i * width, (size_t)matrix * sizeof *parts);
        memcpy(parts + rows * matrix + i * shift, values + i * width + matrix,
               (size_t)shift * sizeof *parts);
    }
    vlp_status status = write_array(folder, "relations", parts, rows, matrix);
    if (status == VLP_OK)
        status = write_array(folder, "translations", parts + rows * matrix, rows, shift);
    vlp_free(parts);
    return status;
}

vlp_status vlp_run_export(const vlp_run *run, const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return vlp_fail_io("make", folder, errno);
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &run->model->tables[id];
        if (table->rows == 0) continue;
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("an export");
        run->backend->download(run->compute, values, table->value, bytes);
        vlp_status status = id == VLP_TABLE_RELATIONS
                                ? write_relations(folder, run, values)
                                : write_array(folder, table->name, values, table->rows, table->width);
        vlp_free(values);
        VLP_TRY(status);
    }
    return VLP_OK;
}
