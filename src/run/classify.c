/* Thresholds that tell true triples from false ones: see vlp_classification in vlp.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/random.h"
#include "run/classification_store.h"
#include "run/classify.h"
#include "run/score.h"

enum { MAX_POSITIVES = 4000 };

void vlp_classification_free(vlp_classification *classification) {
    if (!classification) return;
    vlp_free(classification->relations);
    vlp_free(classification);
}

bool vlp_classification_holds(const vlp_classification *classification, int32_t relation, double score) {
    return classification && relation >= 0 && relation < classification->relation_count &&
           score >= classification->relations[relation].threshold;
}

/* ---- The triples of a split ---------------------------------------------------------------------- */

/* True triples, then corruptions of them. */
typedef struct samples {
    vlp_triple *triples;
    vlp_score *scores;
    vlp_judged *judged;
    int64_t count, positives;
} samples;

static void samples_free(samples *set) {
    vlp_free(set->triples);
    vlp_free(set->scores);
    vlp_free(set->judged);
}

/* The largest number of triples of each relation with which at most MAX_POSITIVES are taken. */
static int64_t fair_share(const int64_t *counts, int32_t relations) {
    for (int64_t low = 0, high = MAX_POSITIVES;;) {
        int64_t middle = (low + high + 1) / 2, taken = 0;
        for (int32_t r = 0; r < relations; r++) taken += counts[r] < middle ? counts[r] : middle;
        if (taken <= MAX_POSITIVES)
            low = middle;
        else
            high = middle - 1;
        if (low == high) return low;
    }
}

/* Takes triples at random: of valid an equal share of each relation, of test whatever there is. Each is
 * taken with the probability that those still wanted have among those still to come. */
static vlp_status take_positives(samples *set, const vlp_triple_list *split, int32_t relations,
                                 bool by_relation, uint64_t seed, uint64_t first) {
    int64_t *left = vlp_alloc_zero((size_t)relations, sizeof *left);
    int64_t *missing = vlp_alloc_zero((size_t)relations, sizeof *missing);
    if (!left || !missing) {
        vlp_free(left);
        vlp_free(missing);
        return vlp_fail_memory("thresholds");
    }
    for (int64_t i = 0; i < split->count; i++) left[by_relation ? split->items[i].relation : 0]++;
    int64_t share = by_relation ? fair_share(left, relations) : MAX_POSITIVES;
    for (int32_t r = 0; r < relations; r++) missing[r] = left[r] < share ? left[r] : share;
    for (int64_t i = 0; i < split->count; i++) {
        int32_t group = by_relation ? split->items[i].relation : 0;
        vlp_random4 random = vlp_random(seed, VLP_STREAM_CLASSES, first + (uint64_t)i, 0);
        uint32_t drawn = vlp_random_below(random.v[0], random.v[1], (uint32_t)left[group]--);
        if ((int64_t)drawn >= missing[group]) continue;
        missing[group]--;
        set->triples[set->count++] = split->items[i];
    }
    set->positives = set->count;
    vlp_free(left);
    vlp_free(missing);
    return VLP_OK;
}

/* What a split is judged with. */
typedef struct classifying {
    const vlp_run *run;
    vlp_predictor *predictor;
    vlp_places *places;
    vlp_classification_options options;
} classifying;

/* The random numbers of a split begin at 2^40 times its number. */
static vlp_status take_split(samples *set, const classifying *work, vlp_split which) {
    vlp_status status = VLP_OK;
    const vlp_dataset *dataset = work->run->dataset;
    const vlp_triple_list *split = &dataset->splits[which];
    int64_t most = split->count < MAX_POSITIVES ? split->count : MAX_POSITIVES;
    size_t capacity = (size_t)(most * (1 + 2 * (int64_t)work->options.exchanges));
    uint64_t first = (uint64_t)which << 40;
    vlp_corruption corruption = {.run = work->run,
                                 .places = work->places,
                                 .seed = work->options.seed,
                                 .stream = VLP_STREAM_CLASSES};
    set->triples = vlp_alloc(capacity, sizeof *set->triples);
    set->scores = vlp_alloc(capacity, sizeof *set->scores);
    set->judged = vlp_alloc(capacity, sizeof *set->judged);
    if (!set->triples || !set->scores || !set->judged) return vlp_fail_memory("thresholds");
    VLP_TRY(take_positives(set, split, dataset->graph->relations, which == VLP_VALID, work->options.seed,
                           first));
    /* Valid knows nothing of test. */
    VLP_TRY(vlp_filter_new(&corruption.known, dataset, which == VLP_VALID ? 3 : 7));
    for (int64_t i = 0; i < set->positives; i++)
        for (int32_t draw = 0; draw < 2 * work->options.exchanges; draw++)
            set->count += vlp_corrupt(&set->triples[set->count], &corruption, set->triples[i],
                                      (int64_t)first + i, draw / 2, draw % 2 == 0);
    VLP_CHECK(vlp_triples_score(set->scores, work->predictor, dataset->graph, set->triples, set->count,
                                work->options.observer));
    for (int64_t i = 0; i < set->count; i++)
        set->judged[i] =
            (vlp_judged){set->triples[i].relation, i < set->positives, set->scores[i].score};
out:
    vlp_filter_free(corruption.known);
    return status;
}

/* ---- Fitting ------------------------------------------------------------------------------------- */

static int by_score(const void *left, const void *right) {
    const vlp_judged *a = left, *b = right;
    return (a->score > b->score) - (a->score < b->score);
}

static int by_relation_and_score(const void *left, const void *right) {
    const vlp_judged *a = left, *b = right;
    if (a->relation != b->relation) return a->relation < b->relation ? -1 : 1;
    return by_score(left, right);
}

double vlp_threshold_fit(const vlp_judged *sorted, int64_t count) {
    int64_t positives = 0;
    for (int64_t i = 0; i < count; i++) positives += sorted[i].is_true;
    int64_t negatives = count - positives, false_below = 0, true_below = 0;
    if (count == 0) return 0;
    /* Below all scores: everything is taken as true. */
    double range = sorted[count - 1].score - sorted[0].score;
    double threshold = sorted[0].score - range, best = 0, widest = 0;
    for (int64_t i = 1; i < count; i++) {
        *(sorted[i - 1].is_true ? &true_below : &false_below) += 1;
        double gap = sorted[i].score - sorted[i - 1].score;
        if (!(gap > 0)) continue;
        /* What the accuracy gains, times positives times negatives: exact in whole numbers. */
        double gain = (double)(false_below * positives - true_below * negatives);
        if (gain < best || (gain == best && (gain == 0 || gap <= widest))) continue;
        best = gain;
        widest = gap;
        threshold = sorted[i - 1].score + gap / 2;
    }
    return threshold;
}

/* Sets all thresholds from the triples of valid, whose order changes. */
static void fit(vlp_classification *out, samples *valid, int32_t minimum) {
    vlp_sort(valid->judged, valid->count, sizeof *valid->judged, by_score);
    out->threshold = vlp_threshold_fit(valid->judged, valid->count);
    vlp_sort(valid->judged, valid->count, sizeof *valid->judged, by_relation_and_score);
    for (int64_t start = 0, end = 0, r = 0; r < out->relation_count; r++, start = end) {
        vlp_relation_threshold *of = &out->relations[r];
        for (; end < valid->count && valid->judged[end].relation == r; end++)
            *(valid->judged[end].is_true ? &of->positives : &of->negatives) += 1;
        of->own = of->positives >= minimum && of->negatives >= minimum;
        of->threshold = of->own ? vlp_threshold_fit(valid->judged + start, end - start) : out->threshold;
        of->test_accuracy = (double)NAN;
    }
}

/* ---- Judging ------------------------------------------------------------------------------------- */

/* Of true triples and of corruptions: how many there are, and how many are taken for what they are. */
typedef struct tally {
    int64_t positives, negatives, found, rejected;
} tally;

static void count_one(tally *to, bool is_true, bool taken) {
    *(is_true ? &to->positives : &to->negatives) += 1;
    if (is_true == taken) *(is_true ? &to->found : &to->rejected) += 1;
}

static double true_rate(tally of) {
    return of.positives > 0 ? (double)of.found / (double)of.positives : (double)NAN;
}

static double false_rate(tally of) {
    return of.negatives > 0 ? (double)of.rejected / (double)of.negatives : (double)NAN;
}

/* The tally of all; `each` (relations) of every relation, NULL: not wanted. */
static tally judge(tally *each, const vlp_classification *by, const samples *set) {
    tally all = {0};
    for (int64_t i = 0; i < set->count; i++) {
        vlp_judged one = set->judged[i];
        bool taken = vlp_classification_holds(by, one.relation, one.score);
        count_one(&all, one.is_true, taken);
        if (each) count_one(&each[one.relation], one.is_true, taken);
    }
    return all;
}

static vlp_status judge_test(vlp_classification *out, const samples *test) {
    tally *each = vlp_alloc_zero((size_t)out->relation_count, sizeof *each);
    if (!each) return vlp_fail_memory("thresholds");
    tally all = judge(each, out, test);
    out->test_positives = all.positives;
    out->test_negatives = all.negatives;
    out->test_true_rate = true_rate(all);
    out->test_false_rate = false_rate(all);
    out->test_accuracy = (out->test_true_rate + out->test_false_rate) / 2;
    for (int32_t r = 0; r < out->relation_count; r++) {
        out->relations[r].test_positives = each[r].positives;
        out->relations[r].test_negatives = each[r].negatives;
        out->relations[r].test_accuracy = (true_rate(each[r]) + false_rate(each[r])) / 2;
    }
    vlp_free(each);
    return VLP_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status classify(vlp_classification *out, const vlp_run *run, vlp_worker *worker,
                           const vlp_classification_options *options) {
    vlp_status status = VLP_OK;
    classifying work = {.run = run, .options = *options};
    samples valid = {0}, test = {0};
    vlp_predictor *made = NULL;
    vlp_model model;
    VLP_CHECK(vlp_train_predictor(&work.predictor, &made, &model, run, worker));
    VLP_CHECK(vlp_places_new(&work.places, run->dataset->graph));
    VLP_CHECK(take_split(&valid, &work, VLP_VALID));
    fit(out, &valid, options->minimum);
    tally fitted = judge(NULL, out, &valid);
    out->positives = fitted.positives;
    out->negatives = fitted.negatives;
    out->accuracy = (true_rate(fitted) + false_rate(fitted)) / 2;
    VLP_CHECK(take_split(&test, &work, VLP_TEST));
    VLP_CHECK(judge_test(out, &test));
out:
    vlp_predictor_free(made);
    vlp_places_free(work.places);
    samples_free(&valid);
    samples_free(&test);
    return status;
}

/* The thresholds of the run's folder where they fit, else new ones, which are left there. Those of fewer
 * components than the run has, for a graph with new entities, are kept beside the others. */
static vlp_status classify_inside(vlp_classification *out, const vlp_run *run, vlp_worker *worker,
                                  const vlp_classification_options *options) {
    bool all = vlp_run_graph_components(run) == run->model->components;
    char fingerprint[33], how[96];
    vlp_status status = VLP_OK;
    VLP_TRY(vlp_run_fingerprint(fingerprint, run, worker));
    snprintf(how, sizeof how, "exchanges %d, minimum %d, seed %llu", options->exchanges,
             options->minimum, (unsigned long long)options->seed);
    char *path =
        vlp_path_join(run->folder, all ? "thresholds.safetensors" : "thresholds_path.safetensors");
    if (!path) return vlp_fail_memory("a file name");
    if (!vlp_classification_load(out, path, fingerprint, how)) {
        VLP_CHECK(classify(out, run, worker, options));
        vlp_classification_save(out, path, fingerprint, how);
    }
out:
    vlp_free(path);
    return status;
}

static vlp_status check(const vlp_run *run, const vlp_classification_options *options) {
    if (options->exchanges < 1 || options->exchanges > 100)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d exchanges; it is 1 to 100", options->exchanges);
    if (options->minimum < 1)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a minimum of %d triples; it is 1 or more",
                        options->minimum);
    if (run->dataset->splits[VLP_VALID].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the data set of %s has no valid, which thresholds are fitted on", run->folder);
    return VLP_OK;
}

vlp_status vlp_run_classify(vlp_classification **out, vlp_run *run,
                            const vlp_classification_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(run);
    vlp_classification_options options = VLP_CLASSIFICATION_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_classification_options, &options, given));
    VLP_TRY(check(run, &options));
    vlp_worker *worker = NULL;
    vlp_classification *made = vlp_alloc_zero(1, sizeof *made);
    if (!made) return vlp_fail_memory("thresholds");
    made->relation_count = vlp_dataset_relation_count(run->dataset);
    made->relations = vlp_alloc_zero((size_t)made->relation_count, sizeof *made->relations);
    vlp_status status = made->relations ? VLP_OK : vlp_fail_memory("thresholds");
    if (status == VLP_OK) status = vlp_run_enter(&worker, run);
    if (status == VLP_OK) {
        status = classify_inside(made, run, worker, &options);
        vlp_run_leave(run, worker);
    }
    if (status != VLP_OK) {
        vlp_classification_free(made);
        return status;
    }
    *out = made;
    return VLP_OK;
}
