/* From scores to probabilities: see vlp_calibration in vlp.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"
#include "graph/places.h"
#include "learn/score.h"
#include "store/safetensors.h"

enum { MOST_POSITIVES = 4000, TRIES = 64, FEWEST_FOR_A_CURVE = 4, NEWTON_STEPS = 100 };

/* ---- What a result belongs to -------------------------------------------------------------------- */

vlp_status vlp_run_fingerprint(const char **out, vlp_run *run) {
    *out = run->fingerprint;
    if (run->fingerprint[0]) return VLP_OK;
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &run->model->tables[id];
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        if (bytes == 0) continue;
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("a checksum");
        run->backend->download(run->compute, values, table->value, bytes);
        XXH3_128bits_update(&state, values, bytes);
        vlp_free(values);
    }
    vlp_mixture mixture = vlp_run_mixture(run);
    float mixed[2] = {mixture.vertical, mixture.horizontal};
    int32_t references[2] = {run->settings.references, run->settings.references_per_head};
    XXH3_128bits_update(&state, mixed, sizeof mixed);
    XXH3_128bits_update(&state, references, sizeof references);
    XXH3_128bits_update(&state, run->facts.checksum, sizeof run->facts.checksum);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    snprintf(run->fingerprint, sizeof run->fingerprint, "%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return VLP_OK;
}

/* ---- The triples to learn from ------------------------------------------------------------------- */

typedef struct samples {
    vlp_triple *triples; /* positives first */
    int32_t *group;      /* the positive that a triple is, or was made from */
    vlp_score *scores;
    int64_t count, positives, capacity;
} samples;

static void samples_free(samples *set) {
    vlp_free(set->triples);
    vlp_free(set->group);
    vlp_free(set->scores);
}

static vlp_status samples_new(samples *set, int64_t most) {
    *set = (samples){.capacity = most};
    set->triples = vlp_alloc((size_t)most, sizeof *set->triples);
    set->group = vlp_alloc((size_t)most, sizeof *set->group);
    set->scores = vlp_alloc((size_t)most, sizeof *set->scores);
    if (set->triples && set->group && set->scores) return VLP_OK;
    samples_free(set);
    *set = (samples){0};
    return vlp_fail_memory("calibration");
}

/* Takes all of valid, or MOST_POSITIVES of it at random: each is taken with the chance that what is
 * still wanted has among what is still to come. */
static void take_positives(samples *set, const vlp_triple_list *valid, uint64_t seed) {
    int64_t wanted = valid->count < MOST_POSITIVES ? valid->count : MOST_POSITIVES;
    for (int64_t i = 0; i < valid->count; i++) {
        vlp_random4 random = vlp_random(seed, VLP_STREAM_CALIBRATION, (uint64_t)i, 0);
        int64_t left = valid->count - i, missing = wanted - set->count;
        if ((int64_t)vlp_random_below(random.v[0], random.v[1], (uint32_t)left) >= missing) continue;
        set->triples[set->count] = valid->items[i];
        set->group[set->count] = (int32_t)set->count;
        set->count++;
    }
    set->positives = set->count;
}

/* What exchanging needs to know. */
typedef struct exchanging {
    const vlp_run *run;
    vlp_filter *known; /* train and valid */
    vlp_places *places;
    uint64_t seed;
} exchanging;

/* Draw number `draw` for a positive, its tail or its head exchanged. False when every try hit what is
 * known. */
static bool exchange(vlp_triple *out, const exchanging *work, vlp_triple positive, int64_t group,
                     int32_t draw, bool tail) {
    int32_t relations = vlp_dataset_relation_count(work->run->dataset);
    int64_t there;
    const int32_t *place =
        vlp_places_of(work->places, tail ? positive.relation + relations : positive.relation, &there);
    bool fitting = draw % 2 == 1 && there > 0;
    for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
        uint32_t index = 1 + ((uint32_t)draw * 2 + tail) * TRIES + attempt;
        vlp_random4 random = vlp_random(work->seed, VLP_STREAM_CALIBRATION, (uint64_t)group, index);
        uint32_t bound = fitting ? (uint32_t)there : (uint32_t)work->run->model->entities;
        int32_t entity = (int32_t)vlp_random_below(random.v[0], random.v[1], bound);
        if (fitting) entity = place[entity];
        *out = positive;
        *(tail ? &out->tail : &out->head) = entity;
        if (!vlp_filter_has(work->known, out->head, out->relation, out->tail)) return true;
    }
    return false;
}

static vlp_status add_negatives(samples *set, const vlp_run *run, const vlp_calibration_options *given) {
    vlp_status status = VLP_OK;
    exchanging work = {.run = run, .seed = given->seed};
    VLP_CHECK(vlp_filter_new(&work.known, run->dataset, 1u << VLP_TRAIN | 1u << VLP_VALID));
    VLP_CHECK(vlp_places_new(&work.places, run->dataset->graph));
    for (int64_t i = 0; i < set->positives; i++)
        for (int32_t draw = 0; draw < 2 * given->exchanges; draw++) {
            vlp_triple triple;
            if (!exchange(&triple, &work, set->triples[i], i, draw / 2, draw % 2 == 0)) continue;
            set->triples[set->count] = triple;
            set->group[set->count++] = (int32_t)i;
        }
out:
    vlp_filter_free(work.known);
    vlp_places_free(work.places);
    return status;
}

/* ---- The fit ------------------------------------------------------------------------------------- */

/* Which samples: those whose group is even, odd, or all. */
typedef enum half { EVEN = 0, ODD = 1, BOTH = 2 } half;

static bool in_half(const samples *set, int64_t i, half part) {
    return part == BOTH || set->group[i] % 2 == (int32_t)part;
}

typedef struct fit {
    double intercept, slope;
} fit;

static double log_loss(double logit, double target) {
    /* -t log p - (1 - t) log(1 - p), without overflow. */
    return (logit > 0 ? logit : 0) - target * logit + log1p(exp(-fabs(logit)));
}

/* What the fit needs of a half: how many there are, their mean and deviation. */
typedef struct summary {
    int64_t positives, negatives;
    double mean, deviation;
} summary;

static summary summarize(const samples *set, half part) {
    summary out = {0};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < set->count; i++) {
        if (!in_half(set, i, part)) continue;
        out.positives += i < set->positives;
        out.negatives += i >= set->positives;
        sum += set->scores[i].score;
    }
    int64_t count = out.positives + out.negatives;
    out.mean = count > 0 ? sum / (double)count : 0;
    for (int64_t i = 0; i < set->count; i++)
        if (in_half(set, i, part)) squares += pow(set->scores[i].score - out.mean, 2);
    out.deviation = count > 0 ? sqrt(squares / (double)count) : 0;
    return out;
}

/* The loss of a fit over standardized scores; gradient (2) and Hessian (3: aa, ab, bb) where wanted.
 * Both kinds weigh 1/2 together. Targets lie a little inside of 0 and 1, as Platt has them, so that
 * scores that divide the kinds perfectly have a fit too. */
static double loss_of(fit at, const samples *set, half part, const summary *about, double *gradient,
                      double *hessian) {
    double loss = 0, positive = (double)about->positives, negative = (double)about->negatives;
    if (gradient) memset(gradient, 0, 2 * sizeof *gradient);
    if (hessian) memset(hessian, 0, 3 * sizeof *hessian);
    for (int64_t i = 0; i < set->count; i++) {
        if (!in_half(set, i, part)) continue;
        bool is_true = i < set->positives;
        double target = is_true ? (positive + 1) / (positive + 2) : 1 / (negative + 2);
        double weight = 0.5 / (is_true ? positive : negative);
        double x = (set->scores[i].score - about->mean) / about->deviation;
        double logit = at.intercept + at.slope * x, p = 1 / (1 + exp(-logit));
        loss += weight * log_loss(logit, target);
        if (!gradient) continue;
        gradient[0] += weight * (p - target);
        gradient[1] += weight * (p - target) * x;
        hessian[0] += weight * p * (1 - p);
        hessian[1] += weight * p * (1 - p) * x;
        hessian[2] += weight * p * (1 - p) * x * x;
    }
    return loss;
}

/* Newton's method; a step that does not lower the loss is halved. */
static fit fit_half(const samples *set, half part) {
    summary about = summarize(set, part);
    fit at = {0, 0};
    if (about.positives == 0 || about.negatives == 0 || !(about.deviation > 0)) return at;
    double gradient[2], hessian[3];
    double loss = loss_of(at, set, part, &about, gradient, hessian);
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double a = hessian[0] + 1e-12, b = hessian[1], c = hessian[2] + 1e-12, det = a * c - b * b;
        double move[2] = {(c * gradient[0] - b * gradient[1]) / det,
                          (a * gradient[1] - b * gradient[0]) / det};
        double share = 1, now = loss;
        fit next = at;
        for (; share > 1e-10; share /= 2) {
            next = (fit){at.intercept - share * move[0], at.slope - share * move[1]};
            now = loss_of(next, set, part, &about, NULL, NULL);
            if (now < loss) break;
        }
        if (!(now < loss)) break; /* as low as it gets */
        at = next;
        loss = loss_of(at, set, part, &about, gradient, hessian);
    }
    /* Back to scores as they are. */
    double slope = at.slope / about.deviation;
    return (fit){at.intercept - slope * about.mean, slope};
}

/* Each half judged by the fit on the other one. */
static void set_curve(vlp_calibration *out, const samples *set) {
    const fit halves[2] = {fit_half(set, ODD), fit_half(set, EVEN)};
    double truth[VLP_CALIBRATION_BINS] = {0}, said[VLP_CALIBRATION_BINS] = {0};
    for (int64_t i = 0; i < set->count; i++) {
        bool is_true = i < set->positives;
        double weight = 0.5 / (double)(is_true ? out->positives : out->negatives);
        fit judge = halves[set->group[i] % 2];
        double logit = judge.intercept + judge.slope * set->scores[i].score;
        double p = 1 / (1 + exp(-logit)), error = p - is_true;
        int bin = (int)(p * VLP_CALIBRATION_BINS);
        if (bin >= VLP_CALIBRATION_BINS) bin = VLP_CALIBRATION_BINS - 1;
        out->brier += weight * error * error;
        out->log_loss += weight * log_loss(logit, is_true);
        out->bins[bin].weight += weight;
        out->bins[bin].triples++;
        truth[bin] += weight * is_true;
        said[bin] += weight * p;
    }
    for (int bin = 0; bin < VLP_CALIBRATION_BINS; bin++) {
        double weight = out->bins[bin].weight;
        out->bins[bin].predicted = weight > 0 ? said[bin] / weight : (double)NAN;
        out->bins[bin].observed = weight > 0 ? truth[bin] / weight : (double)NAN;
    }
}

static void finish(vlp_calibration *out, const samples *set) {
    fit all = fit_half(set, BOTH);
    *out = (vlp_calibration){.positives = set->positives,
                             .negatives = set->count - set->positives,
                             .intercept = all.intercept,
                             .slope = all.slope};
    if (set->positives >= FEWEST_FOR_A_CURVE) {
        set_curve(out, set);
        return;
    }
    out->brier = out->log_loss = (double)NAN;
    for (int bin = 0; bin < VLP_CALIBRATION_BINS; bin++)
        out->bins[bin].predicted = out->bins[bin].observed = (double)NAN;
}

static vlp_status compute(vlp_calibration *out, vlp_run *run, const vlp_calibration_options *options) {
    vlp_status status = VLP_OK;
    const vlp_triple_list *valid = &run->dataset->splits[VLP_VALID];
    int64_t positives = valid->count < MOST_POSITIVES ? valid->count : MOST_POSITIVES;
    samples set = {0};
    /* A live graph may hold the triples of valid: the fit would then look better than it is. */
    vlp_live_graph *live = run->live;
    vlp_predictor *predictor = NULL, *kept = run->predictor;
    run->live = NULL;
    if (live) run->predictor = NULL;
    VLP_CHECK(samples_new(&set, positives * (1 + 2 * (int64_t)options->exchanges)));
    take_positives(&set, valid, options->seed);
    VLP_CHECK(add_negatives(&set, run, options));
    VLP_CHECK(vlp_run_predictor(&predictor, run));
    VLP_CHECK(vlp_triples_score(set.scores, predictor, run->dataset->graph, set.triples, set.count,
                                run->settings.vertical, options->observer));
    finish(out, &set);
out:
    if (live) {
        vlp_predictor_free(run->predictor);
        run->predictor = kept;
        run->live = live;
    }
    samples_free(&set);
    return status;
}

/* ---- Kept in the run's folder -------------------------------------------------------------------- */

enum { FIGURES = 6, BIN_FIGURES = 4 };

static const char file_name[] = "calibration.safetensors";

/* False when there is none that fits. */
static bool load(vlp_calibration *out, const char *path, const char *fingerprint, const char *made) {
    vlp_safetensors *file = NULL;
    bool fits = false;
    if (!vlp_path_exists(path)) return false;
    if (vlp_safetensors_open(&file, path, true) != VLP_OK) return false;
    const char *of = vlp_safetensors_metadata(file, "run");
    const char *how = vlp_safetensors_metadata(file, "made");
    const vlp_tensor *figures, *bins;
    const int64_t shape[2] = {VLP_CALIBRATION_BINS, BIN_FIGURES}, length[1] = {FIGURES};
    if (of && how && strcmp(of, fingerprint) == 0 && strcmp(how, made) == 0 &&
        vlp_safetensors_need(&figures, file, "figures", VLP_F64, 1, length) == VLP_OK &&
        vlp_safetensors_need(&bins, file, "bins", VLP_F64, 2, shape) == VLP_OK) {
        const double *f = figures->data, *b = bins->data;
        *out = (vlp_calibration){.positives = (int64_t)f[0],
                                 .negatives = (int64_t)f[1],
                                 .intercept = f[2],
                                 .slope = f[3],
                                 .brier = f[4],
                                 .log_loss = f[5]};
        for (int i = 0; i < VLP_CALIBRATION_BINS; i++, b += BIN_FIGURES)
            out->bins[i] = (vlp_calibration_bin){b[0], b[1], b[2], (int64_t)b[3]};
        fits = true;
    }
    vlp_safetensors_free(file);
    return fits;
}

/* A folder that cannot be written means computing it again next time. */
static void save(const vlp_calibration *from, const char *path, const char *fingerprint,
                 const char *made) {
    double figures[FIGURES] = {
        (double)from->positives, (double)from->negatives, from->intercept, from->slope, from->brier,
        from->log_loss};
    double bins[VLP_CALIBRATION_BINS][BIN_FIGURES];
    for (int i = 0; i < VLP_CALIBRATION_BINS; i++) {
        vlp_calibration_bin bin = from->bins[i];
        double row[BIN_FIGURES] = {bin.weight, bin.predicted, bin.observed, (double)bin.triples};
        memcpy(bins[i], row, sizeof row);
    }
    vlp_tensor tensors[2] = {{"figures", VLP_F64, 1, {FIGURES, 0, 0, 0}, figures},
                             {"bins", VLP_F64, 2, {VLP_CALIBRATION_BINS, BIN_FIGURES, 0, 0}, bins}};
    vlp_pair pairs[2] = {{"run", fingerprint}, {"made", made}};
    (void)vlp_safetensors_write(path, tensors, 2, pairs, 2);
}

vlp_status vlp_run_calibrate(vlp_calibration *out, vlp_run *run, const vlp_calibration_options *given) {
    vlp_calibration_options options = VLP_CALIBRATION_OPTIONS_INIT;
    if (given) options = *given;
    if (options.exchanges < 1 || options.exchanges > 100)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d exchanges; it is 1 to 100", options.exchanges);
    if (run->dataset->splits[VLP_VALID].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the data set of %s has no valid, which probabilities are fitted on",
                        run->folder);
    if (run->calibrated == options.exchanges && run->calibration_seed == options.seed &&
        !options.fresh) {
        *out = run->calibration;
        return VLP_OK;
    }
    const char *fingerprint;
    char made[64];
    VLP_TRY(vlp_run_fingerprint(&fingerprint, run));
    snprintf(made, sizeof made, "exchanges %d, seed %llu", options.exchanges,
             (unsigned long long)options.seed);
    char *path = vlp_path_join(run->folder, file_name);
    if (!path) return vlp_fail_memory("a file name");
    vlp_calibration result;
    vlp_status status = VLP_OK;
    if (options.fresh || !load(&result, path, fingerprint, made)) {
        VLP_CHECK(compute(&result, run, &options));
        save(&result, path, fingerprint, made);
    }
    *out = run->calibration = result;
    run->calibrated = options.exchanges;
    run->calibration_seed = options.seed;
out:
    vlp_free(path);
    return status;
}
