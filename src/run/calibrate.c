/* From scores to probabilities: see vlp_calibration in vlp.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/options.h"
#include "base/random.h"
#include "graph/places.h"
#include "run/score.h"
#include "store/safetensors.h"

enum { MAX_POSITIVES = 4000, TRIES = 64 };

/* ---- What a result belongs to -------------------------------------------------------------------- */

static vlp_status compute_fingerprint(char out[33], const vlp_run *run, const vlp_model *model) {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_table *table = &model->tables[i];
        size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
        float *values = vlp_alloc(bytes, 1);
        if (!values) return vlp_fail_memory("a checksum");
        vlp_status status =
            model->backend->memory->download(model->compute, values, table->value, bytes);
        if (status == VLP_OK) XXH3_128bits_update(&state, values, bytes);
        vlp_free(values);
        VLP_TRY(status);
    }
    vlp_mixture mixture = vlp_run_graph_mixture(run);
    int32_t references[2] = {run->settings.references, run->settings.references_per_head};
    for (int c = VLP_COMPONENTS - 1; c >= 0; c--)
        XXH3_128bits_update(&state, &mixture.weights[c], sizeof mixture.weights[c]);
    XXH3_128bits_update(&state, references, sizeof references);
    if (run->settings.references_edges > 0)
        XXH3_128bits_update(&state, &run->settings.references_edges,
                            sizeof run->settings.references_edges);
    /* Runs of before there was a choice keep their fingerprint. */
    int32_t rule[2] = {run->settings.references_choice, run->settings.references_own_edge};
    if (rule[0] != VLP_REFERENCES_NEAREST || rule[1]) XXH3_128bits_update(&state, rule, sizeof rule);
    XXH3_128bits_update(&state, run->facts.checksum, sizeof run->facts.checksum);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return VLP_OK;
}

vlp_status vlp_run_fingerprint(char out[33], const vlp_run *run, const vlp_worker *worker) {
    vlp_run_gate *gate = run->gate;
    pthread_mutex_lock(&gate->lock);
    memcpy(out, gate->fingerprint, sizeof gate->fingerprint);
    pthread_mutex_unlock(&gate->lock);
    if (out[0]) return VLP_OK;
    VLP_TRY(compute_fingerprint(out, run, &worker->model));
    pthread_mutex_lock(&gate->lock);
    memcpy(gate->fingerprint, out, sizeof gate->fingerprint);
    pthread_mutex_unlock(&gate->lock);
    return VLP_OK;
}

/* ---- The triples to learn from ------------------------------------------------------------------- */

typedef struct samples {
    vlp_triple *triples; /* positives first */
    int32_t *group;      /* the positive that a triple is, or was made from */
    vlp_score *scores;
    double *values; /* of the scores */
    int64_t count, positives;
} samples;

static void samples_free(samples *set) {
    vlp_free(set->triples);
    vlp_free(set->group);
    vlp_free(set->scores);
    vlp_free(set->values);
}

static vlp_status samples_new(samples *set, int64_t capacity) {
    set->triples = vlp_alloc((size_t)capacity, sizeof *set->triples);
    set->group = vlp_alloc((size_t)capacity, sizeof *set->group);
    set->scores = vlp_alloc((size_t)capacity, sizeof *set->scores);
    set->values = vlp_alloc((size_t)capacity, sizeof *set->values);
    if (set->triples && set->group && set->scores && set->values) return VLP_OK;
    return vlp_fail_memory("calibration");
}

/* Takes all of valid, or MAX_POSITIVES of it at random: each is taken with the chance that what is
 * still wanted has among what is still to come. */
static void take_positives(samples *set, const vlp_triple_list *valid, uint64_t seed) {
    int64_t wanted = valid->count < MAX_POSITIVES ? valid->count : MAX_POSITIVES;
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

bool vlp_corrupt(vlp_triple *out, const vlp_corruption *work, vlp_triple positive, int64_t group,
                 int32_t draw, bool tail) {
    int32_t relations = vlp_dataset_relation_count(work->run->dataset);
    int64_t there;
    const int32_t *place =
        vlp_places_of(work->places, tail ? positive.relation + relations : positive.relation, &there);
    bool fitting = draw % 2 == 1 && there > 0;
    for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
        uint32_t index = 1 + ((uint32_t)draw * 2 + tail) * TRIES + attempt;
        vlp_random4 random = vlp_random(work->seed, work->stream, (uint64_t)group, index);
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
    vlp_corruption work = {.run = run, .seed = given->seed, .stream = VLP_STREAM_CALIBRATION};
    VLP_CHECK(vlp_filter_new(&work.known, run->dataset, 1u << VLP_TRAIN | 1u << VLP_VALID));
    VLP_CHECK(vlp_places_new(&work.places, run->dataset->graph));
    for (int64_t i = 0; i < set->positives; i++)
        for (int32_t draw = 0; draw < 2 * given->exchanges; draw++) {
            vlp_triple triple;
            if (!vlp_corrupt(&triple, &work, set->triples[i], i, draw / 2, draw % 2 == 0)) continue;
            set->triples[set->count] = triple;
            set->group[set->count++] = (int32_t)i;
        }
out:
    vlp_filter_free(work.known);
    vlp_places_free(work.places);
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

vlp_status vlp_train_predictor(vlp_predictor **out, vlp_predictor **made, vlp_model *model,
                               const vlp_run *run, vlp_worker *worker) {
    if (!run->live) return vlp_run_predictor(out, run, worker);
    *model = worker->model;
    model->components = vlp_run_graph_components(run);
    vlp_predictor_options options = vlp_run_predictor_options(run, model, run->dataset->graph);
    VLP_TRY(vlp_predictor_new(made, &options));
    *out = *made;
    return VLP_OK;
}

static vlp_status compute(vlp_calibration *out, const vlp_run *run, vlp_worker *worker,
                          const vlp_calibration_options *options) {
    vlp_status status = VLP_OK;
    const vlp_triple_list *valid = &run->dataset->splits[VLP_VALID];
    int64_t positives = valid->count < MAX_POSITIVES ? valid->count : MAX_POSITIVES;
    samples set = {0};
    vlp_predictor *predictor = NULL, *made = NULL;
    vlp_model model;
    VLP_CHECK(samples_new(&set, positives * (1 + 2 * (int64_t)options->exchanges)));
    take_positives(&set, valid, options->seed);
    VLP_CHECK(add_negatives(&set, run, options));
    VLP_CHECK(vlp_train_predictor(&predictor, &made, &model, run, worker));
    VLP_CHECK(vlp_triples_score(set.scores, predictor, run->dataset->graph, set.triples, set.count,
                                options->observer));
    for (int64_t i = 0; i < set.count; i++) set.values[i] = set.scores[i].score;
    vlp_calibration_fit(out, set.values, set.group, set.positives, set.count);
out:
    vlp_predictor_free(made);
    samples_free(&set);
    return status;
}

/* ---- Kept in the run's folder -------------------------------------------------------------------- */

enum { FIGURES = 6, BIN_FIGURES = 4 };

/* That of fewer components than the run has, for a graph with new entities, is kept beside the other. */
static const char *file_name(const vlp_run *run) {
    return vlp_run_graph_components(run) == run->model->components ? "calibration.safetensors"
                                                                   : "calibration_path.safetensors";
}

/* False without one that fits. */
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

/* The gate's `calibrating` is held. */
static vlp_status calibrate(vlp_calibration *out, const vlp_run *run, vlp_worker *worker,
                            const vlp_calibration_options *options) {
    vlp_run_gate *gate = run->gate;
    if (gate->calibrated == options->exchanges && gate->calibration_seed == options->seed &&
        !options->fresh) {
        *out = gate->calibration;
        return VLP_OK;
    }
    char fingerprint[33], made[64];
    VLP_TRY(vlp_run_fingerprint(fingerprint, run, worker));
    snprintf(made, sizeof made, "exchanges %d, seed %llu", options->exchanges,
             (unsigned long long)options->seed);
    char *path = vlp_path_join(run->folder, file_name(run));
    if (!path) return vlp_fail_memory("a file name");
    vlp_calibration result;
    vlp_status status = VLP_OK;
    if (options->fresh || !load(&result, path, fingerprint, made)) {
        VLP_CHECK(compute(&result, run, worker, options));
        save(&result, path, fingerprint, made);
    }
    *out = gate->calibration = result;
    gate->calibrated = options->exchanges;
    gate->calibration_seed = options->seed;
out:
    vlp_free(path);
    return status;
}

vlp_status vlp_calibrate_inside(vlp_calibration *out, const vlp_run *run, vlp_worker *worker,
                                const vlp_calibration_options *options) {
    if (options->exchanges < 1 || options->exchanges > 100)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d exchanges; it is 1 to 100", options->exchanges);
    if (run->dataset->splits[VLP_VALID].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the data set of %s has no valid, which probabilities are fitted on",
                        run->folder);
    pthread_mutex_lock(&run->gate->calibrating);
    vlp_status status = calibrate(out, run, worker, options);
    pthread_mutex_unlock(&run->gate->calibrating);
    return status;
}

vlp_status vlp_run_calibrate(vlp_calibration *out, vlp_run *run, const vlp_calibration_options *given) {
    VLP_REQUIRE(out);
    VLP_REQUIRE(run);
    vlp_calibration_options options = VLP_CALIBRATION_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_calibration_options, &options, given));
    vlp_worker *worker;
    VLP_TRY(vlp_run_enter(&worker, run));
    vlp_status status = vlp_calibrate_inside(out, run, worker, &options);
    vlp_run_leave(run, worker);
    return status;
}
