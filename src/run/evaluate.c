/* vlp_run_evaluate: ranks of a split, and every figure that follows from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "eval/baselines.h"
#include "eval/pagerank.h"
#include "run/run_internal.h"
#include "run/sample.h"

/* One evaluation at work. */
typedef struct evaluating {
    vlp_run *run;
    vlp_worker *worker;
    vlp_evaluation_options options; /* the filter resolved */
    const vlp_dataset *dataset;     /* the run's own, or that of its graph, or `part` */
    vlp_dataset part;               /* the same with some triples of the split alone */
    vlp_triple *triples;            /* these; NULL: all are ranked */
    vlp_filter *known;              /* of the splits of all triples */
    const vlp_model *model;         /* of the components that score it */
    vlp_mixture mixture;
    uint8_t *only; /* (entities), or NULL */
    vlp_evaluation *out;
    vlp_ranking *ranking;
} evaluating;

/* Ranks by f and by each component alone; of another run than the one evaluated, by f alone. */
static vlp_status rank(vlp_ranking **out, const evaluating *work, const vlp_run *run) {
    bool own = run == work->run;
    vlp_mixture mixtures[1 + VLP_COMPONENTS] = {own ? work->mixture : vlp_run_mixture(run)};
    int32_t count = 1;
    for (int c = 0; own && c < VLP_COMPONENTS; c++)
        if (vlp_model_has(work->model, (vlp_component)c))
            mixtures[count++] = vlp_mixture_alone((vlp_component)c);
    vlp_ranking_options options = {.split = work->options.split,
                                   .known = work->known,
                                   .sides = work->options.sides,
                                   .only = work->only,
                                   .collect = own && work->options.candidates,
                                   .mixtures = mixtures,
                                   .mixture_count = count,
                                   .references = run->settings.references,
                                   .references_per_head = run->settings.references_per_head,
                                   .references_rule = vlp_settings_reference_rule(&run->settings),
                                   .trained = run->dataset->graph,
                                   .threads = run->settings.threads,
                                   .observer = work->options.observer};
    return vlp_ranking_compute(out, own ? work->model : run->model, work->dataset, &options);
}

/* Metrics of one side of those ranked. */
static vlp_metrics side_metrics(const evaluating *work, bool tail, uint8_t *selected) {
    const vlp_ranking *ranking = work->ranking;
    int64_t triples = work->dataset->splits[work->options.split].count;
    for (int64_t i = 0; i < ranking->queries; i++) selected[i] = (ranking->first + i < triples) == tail;
    return vlp_metrics_compute(vlp_ranking_of(ranking, 0), ranking->queries, VLP_REALISTIC, selected);
}

/* The interval of an MRR, or of `second`'s gain over `first`. */
static vlp_status interval(vlp_interval *out, const evaluating *work, const vlp_rank *first,
                           const vlp_rank *second) {
    const vlp_settings *settings = &work->run->settings;
    return vlp_ranks_interval(out, first, second, work->ranking->queries, work->options.sides,
                              settings->seed, settings->threads);
}

static vlp_status set_metrics(const evaluating *work) {
    vlp_evaluation *out = work->out;
    const vlp_ranking *ranking = work->ranking;
    int64_t queries = ranking->queries;
    const vlp_rank *ranks = vlp_ranking_of(ranking, 0);
    uint8_t *selected = vlp_alloc((size_t)queries, 1);
    if (!selected) return vlp_fail_memory("metrics");
    out->queries = queries;
    out->both = vlp_metrics_compute(ranks, queries, VLP_REALISTIC, NULL);
    out->tail = side_metrics(work, true, selected);
    out->head = side_metrics(work, false, selected);
    vlp_free(selected);
    out->optimistic = vlp_metrics_compute(ranks, queries, VLP_OPTIMISTIC, NULL);
    out->pessimistic = vlp_metrics_compute(ranks, queries, VLP_PESSIMISTIC, NULL);
    for (int c = 0, index = 1; c < VLP_COMPONENTS; c++)
        if (vlp_model_has(work->model, (vlp_component)c))
            out->alone[c] =
                vlp_metrics_compute(vlp_ranking_of(ranking, index++), queries, VLP_REALISTIC, NULL);
    out->auc_pr = NAN;
    if (ranking->scores)
        VLP_TRY(vlp_metrics_auc_pr(&out->auc_pr, ranking->scores, ranking->truths, ranking->pairs));
    return interval(&out->interval, work, ranks, NULL);
}

/* Hits@10 among random candidates, of `ranks`. */
static vlp_status set_among(vlp_interval *out, const evaluating *work, const vlp_rank *ranks) {
    const vlp_settings *settings = &work->run->settings;
    int64_t queries = work->ranking->queries;
    bool both = work->options.sides == VLP_BOTH_SIDES;
    *out = (vlp_interval){(double)NAN, (double)NAN, (double)NAN};
    if (work->options.among == 0) return VLP_OK;
    /* Of one side, the one query of a triple counts for both. */
    double *hits = vlp_alloc((both ? 1 : 2) * (size_t)queries, sizeof *hits);
    if (!hits) return vlp_fail_memory("metrics");
    for (int64_t i = 0; i < (both ? queries : 2 * queries); i++)
        hits[i] = vlp_rank_hits_among(ranks[i % queries], 10, work->options.among);
    vlp_status status =
        vlp_metrics_bootstrap_mean(out, hits, both ? queries : 2 * queries, VLP_BOOTSTRAP_ROUNDS,
                                   settings->seed, settings->threads);
    vlp_free(hits);
    return status;
}

static vlp_status set_pagerank(const evaluating *work, vlp_rank *ranks, const vlp_filter *known) {
    vlp_evaluation *out = work->out;
    const vlp_rank *asked = ranks + work->ranking->first;
    vlp_interval among;
    out->pagerank_hits10_among = (double)NAN;
    if (!work->options.pagerank) return VLP_OK;
    VLP_TRY(vlp_baseline_pagerank(ranks, work->dataset, work->options.split, known, work->only,
                                  work->options.observer));
    out->pagerank = vlp_metrics_compute(asked, out->queries, VLP_REALISTIC, NULL);
    VLP_TRY(set_among(&among, work, asked));
    out->pagerank_hits10_among = among.middle;
    return VLP_OK;
}

static vlp_status set_baselines(const evaluating *work) {
    const vlp_run *run = work->run;
    const vlp_dataset *dataset = work->dataset;
    vlp_evaluation *out = work->out;
    vlp_split split = work->options.split;
    const vlp_filter *known = work->known;
    vlp_status status = VLP_OK;
    vlp_rank *ranks = vlp_alloc(2 * (size_t)dataset->splits[split].count, sizeof *ranks);
    if (!ranks) return vlp_fail_memory("baselines");
    const vlp_rank *asked = ranks + work->ranking->first;
    VLP_CHECK(vlp_baseline_frequency(ranks, dataset, split, known, work->only));
    out->frequency = vlp_metrics_compute(asked, out->queries, VLP_REALISTIC, NULL);
    int32_t references = run->settings.references > 0 ? run->settings.references : 8;
    VLP_CHECK(vlp_baseline_vote(ranks, dataset, split, known, work->only, references,
                                run->settings.references_per_head, run->settings.threads));
    out->vote = vlp_metrics_compute(asked, out->queries, VLP_REALISTIC, NULL);
    VLP_CHECK(set_pagerank(work, ranks, known));
out:
    vlp_free(ranks);
    return status;
}

/* The groups of a breakdown: metrics by f, and the MRR by each component alone. */
static vlp_status break_down(vlp_groups *out, const evaluating *work, const vlp_query_kind *kinds,
                             vlp_breakdown by) {
    int64_t queries = work->out->queries;
    VLP_TRY(vlp_groups_compute(out, vlp_ranking_of(work->ranking, 0), kinds, queries, by));
    for (int c = 0, index = 1; c < VLP_COMPONENTS; c++) {
        if (!(work->out->components >> c & 1)) continue;
        vlp_groups alone;
        VLP_TRY(vlp_groups_compute(&alone, vlp_ranking_of(work->ranking, index++), kinds, queries, by));
        for (int64_t i = 0; i < alone.count; i++) out->items[i].alone[c] = alone.items[i].metrics.mrr;
        vlp_groups_free(&alone);
    }
    return VLP_OK;
}

static vlp_status set_groups(const evaluating *work) {
    vlp_evaluation *out = work->out;
    const vlp_rank *ranks = vlp_ranking_of(work->ranking, 0);
    vlp_status status = VLP_OK;
    vlp_query_kind *all =
        vlp_alloc(2 * (size_t)work->dataset->splits[work->options.split].count, sizeof *all);
    if (!all) return vlp_fail_memory("breakdowns");
    const vlp_query_kind *kinds = all + work->ranking->first;
    VLP_CHECK(vlp_query_kinds(all, work->dataset, out->split, work->run->settings.threads));
    VLP_CHECK(break_down(&out->by_relation, work, kinds, VLP_BREAKDOWN_RELATION));
    VLP_CHECK(break_down(&out->by_side, work, kinds, VLP_BREAKDOWN_SIDE));
    VLP_CHECK(break_down(&out->by_mapping, work, kinds, VLP_BREAKDOWN_MAPPING));
    VLP_CHECK(break_down(&out->by_distance, work, kinds, VLP_BREAKDOWN_DISTANCE));
    VLP_CHECK(vlp_metrics_macro_mrr(&out->macro_mrr, ranks, kinds, out->queries));
out:
    vlp_free(all);
    return status;
}

/* ---- The control --------------------------------------------------------------------------------- */

enum { MAX_SETTINGS = 96, SETTING_TEXT = 128 };

/* Trains the run's aggregator anew, without references, into RUN/control; a finished one is used
 * again. */
static vlp_status train_control(const vlp_run *run, const char *folder, const vlp_observer *observer) {
    vlp_settings settings = run->settings;
    settings.references = 0;
    settings.trains = VLP_TRAINS_AGGREGATOR;
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    assert(count <= MAX_SETTINGS);
    char texts[MAX_SETTINGS][SETTING_TEXT];
    const char *given[MAX_SETTINGS];
    for (int32_t i = 0; i < count; i++) {
        char value[64];
        vlp_settings_get(value, &settings, &table[i]);
        snprintf(texts[i], sizeof texts[i], "%s=%s", table[i].name, value);
        given[i] = texts[i];
    }
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = given;
    options.setting_count = count;
    options.device = run->backend->name;
    options.base = run->folder;
    options.resume = true;
    options.observer = observer;
    vlp_log(observer, "control: the same aggregator without references, over the same embeddings");
    return vlp_train_dataset(NULL, run->dataset, folder, &options);
}

/* A control that was trained before the run went on is one of other embeddings. */
static vlp_status check_control(const evaluating *work, const vlp_run *control) {
    const vlp_run *run = work->run;
    const vlp_model *model = &work->worker->model;
    const vlp_table *mine = vlp_model_entities(model);
    const vlp_table *other = vlp_model_entities(control->model);
    size_t bytes = (size_t)mine->rows * (size_t)mine->width * sizeof(float);
    float *left = vlp_alloc(bytes, 1), *right = vlp_alloc(bytes, 1);
    vlp_status status = left && right ? VLP_OK : vlp_fail_memory("a control");
    if (status == VLP_OK) {
        status = model->backend->memory->download(model->compute, left, mine->value, bytes);
        if (status == VLP_OK)
            status = control->backend->memory->download(control->compute, right, other->value, bytes);
        if (status == VLP_OK && memcmp(left, right, bytes) != 0)
            status = vlp_fail(VLP_ERROR_FORMAT,
                              "%s was trained over other embeddings than %s has now; remove it, and it "
                              "is trained anew",
                              control->folder, run->folder);
    }
    vlp_free(left);
    vlp_free(right);
    return status;
}

static vlp_status set_control(const evaluating *work) {
    const vlp_run *run = work->run;
    vlp_run *control = NULL;
    vlp_ranking *ranking = NULL;
    vlp_status status = VLP_OK;
    if (!run->settings.vertical || run->settings.vertical_gradient)
        return vlp_fail(
            VLP_ERROR_ARGUMENT, "a control is for runs with an aggregator and the stop-gradient; %s %s",
            run->folder, run->settings.vertical ? "has vertical_gradient = on" : "has no aggregator");
    char *folder = vlp_path_join(run->folder, "control");
    if (!folder) return vlp_fail_memory("a file name");
    vlp_run_options opening = VLP_RUN_OPTIONS_INIT;
    opening.device = run->backend->name;
    opening.threads = run->settings.threads;
    VLP_CHECK(train_control(run, folder, work->options.observer));
    VLP_CHECK(vlp_run_open(&control, folder, &opening));
    VLP_CHECK(check_control(work, control));
    VLP_CHECK(rank(&ranking, work, control));
    const vlp_rank *other = vlp_ranking_of(ranking, 0);
    work->out->control = vlp_metrics_compute(other, ranking->queries, VLP_REALISTIC, NULL);
    VLP_CHECK(interval(&work->out->control_gain, work, other, vlp_ranking_of(work->ranking, 0)));
out:
    vlp_ranking_free(ranking);
    vlp_run_free(control);
    vlp_free(folder);
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status check_options(const vlp_evaluation_options *options) {
    VLP_TRY(vlp_check_split(options->split));
    VLP_TRY(vlp_check_splits(options->filter));
    if ((int)options->sides < VLP_BOTH_SIDES || options->sides > VLP_TAILS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "there is no choice of sides %d", (int)options->sides);
    if (options->among < 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "among %d random candidates; it is 0 (none) or more",
                        options->among);
    if (options->triples < 0 || options->sample < 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a sample of %lld triples and %d candidates; 0 takes all",
                        (long long)options->triples, options->sample);
    if (options->sample > 0 && options->candidates)
        return vlp_fail(VLP_ERROR_ARGUMENT, "candidates are either given or a random sample, not both");
    if (options->sample > 0 && options->control)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a control is compared among all entities, not among a "
                                            "sample of them");
    if (options->graph && options->control)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a control is trained on the run's own data set, and is not "
                                            "compared over another graph");
    return options->candidates
               ? vlp_check_array(options->candidates, options->candidate_count, "candidates")
               : VLP_OK;
}

/* What is evaluated: the run over its own data set, or over that of its graph. */
static vlp_status set_subject(evaluating *work) {
    vlp_run *run = work->run;
    if (work->options.graph && !run->live)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%s has no other graph in use to evaluate", run->folder);
    work->dataset = work->options.graph ? vlp_run_names(run) : run->dataset;
    work->model = work->options.graph ? vlp_run_graph_model(run, work->worker) : &work->worker->model;
    work->mixture = work->options.graph ? vlp_run_graph_mixture(run) : vlp_run_mixture(run);
    if (work->options.graph && run->live->new_entities > 0) work->options.pagerank = true;
    if (work->dataset->splits[work->options.split].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%s has no %s to evaluate",
                        work->options.graph ? run->live->folder : "the data set",
                        vlp_split_names[work->options.split]);
    return vlp_filter_new(&work->known, work->dataset, work->options.filter);
}

/* Some triples in place of all, where fewer are asked for. */
static vlp_status set_triples(evaluating *work) {
    int64_t all = work->dataset->splits[work->options.split].count, asked = work->options.triples;
    work->out->split_triples = all;
    work->out->triples = asked > 0 && asked < all ? asked : all;
    if (work->out->triples == all) return VLP_OK;
    VLP_TRY(vlp_sample_triples(&work->part, &work->triples, work->dataset, work->options.split, asked,
                               work->options.seed));
    work->dataset = &work->part;
    return VLP_OK;
}

/* The entities that compete: those that are given, or those of another graph; else all. */
static vlp_status set_candidates(evaluating *work) {
    int32_t entities = vlp_dataset_entity_count(work->dataset);
    work->out->candidates = entities;
    if (!work->options.candidates && !work->options.graph && work->options.sample == 0) return VLP_OK;
    work->only = vlp_alloc_zero((size_t)entities, 1);
    if (!work->only) return vlp_fail_memory("candidates");
    if (work->options.graph && !work->options.candidates)
        memcpy(work->only, work->run->live->present, (size_t)entities);
    else if (!work->options.candidates)
        memset(work->only, 1, (size_t)entities);
    for (int64_t i = 0; work->options.candidates && i < work->options.candidate_count; i++) {
        int32_t entity = work->options.candidates[i];
        if (entity < 0 || entity >= entities)
            return vlp_fail(VLP_ERROR_ARGUMENT, "candidate %d is none of the %d entities", entity,
                            entities);
        work->only[entity] = 1;
    }
    for (int32_t e = 0; e < entities; e++) work->out->candidates -= !work->only[e];
    int32_t sample = work->options.sample;
    if (sample > 0 && sample < work->out->candidates) {
        vlp_sample_marks(work->only, entities, sample, work->options.seed);
        work->out->candidates = work->out->sample = sample;
    }
    return VLP_OK;
}

static void set_formula(const evaluating *work) {
    vlp_evaluation *out = work->out;
    const float *weights = work->mixture.weights;
    out->components = work->model->components;
    out->lambda = (double)weights[VLP_HORIZONTAL];
    out->horizontal_only = weights[VLP_VERTICAL] == 0;
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        out->weights[c] = out->components >> c & 1 ? (double)weights[c] : (double)NAN;
}

vlp_status vlp_run_evaluate(vlp_evaluation **out, vlp_run *run, const vlp_evaluation_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    evaluating work = {.run = run, .options = VLP_EVALUATION_OPTIONS_INIT};
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_evaluation_options, &work.options, given));
    VLP_TRY(check_options(&work.options));
    vlp_split split = work.options.split;
    if (!work.options.filter) work.options.filter = 1u << VLP_TRAIN | 1u << VLP_VALID | 1u << split;
    vlp_status status = VLP_OK;
    work.out = vlp_alloc_zero(1, sizeof *work.out);
    if (!work.out) return vlp_fail_memory("an evaluation");
    work.out->split = split;
    work.out->sides = work.options.sides;
    work.out->among = work.options.among;
    VLP_CHECK(vlp_run_enter(&work.worker, run));
    VLP_CHECK(set_subject(&work));
    VLP_CHECK(set_triples(&work));
    VLP_CHECK(set_candidates(&work));
    set_formula(&work);
    VLP_CHECK(rank(&work.ranking, &work, run));
    VLP_CHECK(set_metrics(&work));
    VLP_CHECK(set_among(&work.out->hits10_among, &work, vlp_ranking_of(work.ranking, 0)));
    VLP_CHECK(set_baselines(&work));
    VLP_CHECK(set_groups(&work));
    if (work.options.control) VLP_CHECK(set_control(&work));
    VLP_CHECK(vlp_ranks_keep(&work.out->ranks, work.dataset, work.model->components, &work.ranking,
                             run->settings.threads));
out:
    vlp_run_leave(run, work.worker);
    vlp_ranking_free(work.ranking);
    vlp_free(work.only);
    vlp_free(work.triples);
    vlp_filter_free(work.known);
    if (status != VLP_OK) {
        vlp_evaluation_free(work.out);
        return status;
    }
    *out = work.out;
    return VLP_OK;
}

void vlp_evaluation_free(vlp_evaluation *evaluation) {
    if (!evaluation) return;
    vlp_groups_free(&evaluation->by_relation);
    vlp_groups_free(&evaluation->by_side);
    vlp_groups_free(&evaluation->by_mapping);
    vlp_groups_free(&evaluation->by_distance);
    vlp_ranks_free(evaluation->ranks);
    vlp_free(evaluation);
}
