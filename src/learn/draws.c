#include "learn/draws.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_locale.h"
#include "eval/path_graph.h"
#include "learn/base.h"
#include "learn/halving.h"
#include "learn/trial_log.h"

enum {
    MISSES = 1000, /* draws in a row that are invalid or not new: there are no more */
    /* Full length where nothing says it. */
    PATH_STEPS = 5000,
    LEAST_PATH_PASSES = 2,
    MOST_PATH_PASSES = 8,
    EMBEDDING_PASSES = 60,
    STEPS_BY_PASSES = 0 /* of `steps`: not given */
};

/* ---- The start ----------------------------------------------------------------------------------- */

static vlp_status check_component(const vlp_tune_options *options) {
    switch (options->component) {
    case VLP_HORIZONTAL:
        if (!options->base) return VLP_OK;
        return vlp_fail(
            VLP_ERROR_ARGUMENT,
            "embeddings are not trained over a base: leave it out, or search the aggregator or "
            "the path model");
    case VLP_VERTICAL:
        if (options->base) return VLP_OK;
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the aggregator is searched over a base, which is a finished run or a folder of "
                        "arrays");
    case VLP_PATH:
        return VLP_OK;
    case VLP_COMPONENTS:
        break;
    }
    return vlp_fail(VLP_ERROR_ARGUMENT, "there is no component %d to search", (int)options->component);
}

/* Passes of the path model for about PATH_STEPS steps, were every query a key. */
static double path_passes(const vlp_dataset *dataset, int32_t batch) {
    double passes = (double)PATH_STEPS * batch / (2 * (double)dataset->graph->edges);
    return fmin(fmax(ceil(passes), LEAST_PATH_PASSES), MOST_PATH_PASSES);
}

/* What is trained, and for how long, before a recipe says otherwise. */
static vlp_status start_component(vlp_draws *work) {
    const vlp_tune_options *options = work->options;
    vlp_settings *start = &work->start;
    if (!options->recipe && !options->base) {
        vlp_space *fixed;
        VLP_TRY(vlp_space_builtin(&fixed, options->component));
        vlp_status status = vlp_space_fix(start, fixed);
        vlp_space_free(fixed);
        VLP_TRY(status);
    }
    switch (options->component) {
    case VLP_HORIZONTAL:
        if (options->recipe) break;
        start->steps = STEPS_BY_PASSES;
        start->loss = VLP_LOSS_CROSS_ENTROPY; /* the built-in space varies it */
        break;
    case VLP_VERTICAL:
        start->trains = VLP_TRAINS_AGGREGATOR;
        break;
    case VLP_PATH:
        start->path = true;
        if (options->base) start->trains = VLP_TRAINS_PATH;
        if (!options->base && !options->recipe) start->model = VLP_MODEL_NONE;
        if (!options->recipe) start->path_passes = path_passes(work->dataset, start->path_batch);
        break;
    case VLP_COMPONENTS:
        break;
    }
    return VLP_OK;
}

static vlp_status assign_given(vlp_settings *settings, const vlp_tune_options *options) {
    for (int32_t i = 0; i < options->setting_count; i++)
        VLP_TRY(vlp_settings_assign(settings, options->settings[i]));
    return VLP_OK;
}

vlp_status vlp_draws_open(vlp_draws *out, const vlp_dataset *dataset, const vlp_tune_options *options) {
    *out = (vlp_draws){.dataset = dataset, .options = options};
    VLP_TRY(check_component(options));
    if (options->component == VLP_HORIZONTAL) {
        vlp_path_graph slots = vlp_path_graph_of(dataset->graph);
        out->keys = vlp_path_keys_count(&slots);
    }
    vlp_settings_default(&out->start);
    if (options->base) VLP_TRY(vlp_base_start(&out->start, options->base));
    VLP_TRY(options->space ? vlp_space_read(&out->space, options->space)
                           : vlp_space_builtin(&out->space, options->component));
    VLP_TRY(start_component(out));
    if (options->recipe) VLP_TRY(vlp_recipe_read(&out->start, options->recipe));
    if (options->space) VLP_TRY(vlp_space_fix(&out->start, out->space));
    return assign_given(&out->start, options);
}

void vlp_draws_close(vlp_draws *candidates) {
    vlp_space_free(candidates->space);
    vlp_free(candidates->drawn);
}

/* ---- Drawing ------------------------------------------------------------------------------------- */

/* What vlp_train would refuse as well. */
static vlp_status check(const vlp_draws *work, const vlp_settings *settings) {
    int32_t entities = vlp_dataset_entity_count(work->dataset);
    if (settings->vertical && settings->candidates > entities)
        return vlp_fail(VLP_ERROR_ARGUMENT, "candidates = %d is more than the %d entities",
                        settings->candidates, entities);
    if (!work->options->base && settings->trains != VLP_TRAINS_ALL &&
        (settings->trains == VLP_TRAINS_AGGREGATOR || settings->model != VLP_MODEL_NONE))
        return vlp_fail(VLP_ERROR_ARGUMENT, "trains = aggregator and trains = path need a base");
    return vlp_settings_check(settings);
}

/* Steps of EMBEDDING_PASSES over the queries, or over the keys where a batch is of keys. */
static int64_t embedding_steps(const vlp_draws *work, const vlp_settings *settings) {
    int64_t items =
        settings->loss == VLP_LOSS_KVSALL ? work->keys : 2 * (int64_t)work->dataset->graph->edges;
    int64_t batch = settings->batch < items ? settings->batch : items;
    return batch > 0 ? (EMBEDDING_PASSES * items + batch - 1) / batch : 1;
}

static vlp_status draw_one(vlp_settings *out, vlp_draws *work) {
    *out = work->start;
    VLP_TRY(vlp_space_draw(out, work->space, work->start.seed, work->draw++));
    VLP_TRY(assign_given(out, work->options));
    if (out->steps == STEPS_BY_PASSES) out->steps = embedding_steps(work, out);
    if (work->options->base) VLP_TRY(vlp_base_settle(out, work->options->base));
    return check(work, out);
}

/* All else follows from what the space has. */
static bool are_equal(const vlp_draws *work, const vlp_settings *a, const vlp_settings *b) {
    for (int64_t i = 0; i < work->space->count; i++) {
        char of_a[64], of_b[64];
        vlp_settings_get(of_a, a, work->space->dimensions[i].setting);
        vlp_settings_get(of_b, b, work->space->dimensions[i].setting);
        if (strcmp(of_a, of_b) != 0) return false;
    }
    return true;
}

static bool is_new(const vlp_draws *work, const vlp_settings *settings) {
    for (int64_t i = 0; i < work->count; i++)
        if (are_equal(work, &work->drawn[i], settings)) return false;
    return true;
}

vlp_status vlp_draws_draw(vlp_draws *work, int64_t wanted) {
    for (int32_t misses = 0; work->count < wanted && misses < MISSES; misses++) {
        vlp_settings drawn;
        vlp_status status = draw_one(&drawn, work);
        if (status != VLP_OK && status != VLP_ERROR_ARGUMENT) return status;
        if (status == VLP_ERROR_ARGUMENT) {
            if (work->count == 0 && misses == MISSES - 1)
                return status; /* the message says what is wrong with every one of them */
            continue;
        }
        if (!is_new(work, &drawn)) continue;
        VLP_TRY(
            vlp_grow(&work->drawn, &work->capacity, work->count + 1, sizeof *work->drawn, "candidates"));
        work->drawn[work->count++] = drawn;
        misses = -1;
    }
    return VLP_OK;
}

/* ---- Rungs --------------------------------------------------------------------------------------- */

/* Four digits, for people. */
static double rounded(double value) {
    char text[32];
    vlp_plain_locale locale = vlp_plain_locale_begin();
    snprintf(text, sizeof text, "%.4g", value);
    value = strtod(text, NULL);
    vlp_plain_locale_end(locale);
    return value;
}

static bool trains_queries(const vlp_settings *settings) {
    return settings->model != VLP_MODEL_NONE && settings->trains != VLP_TRAINS_PATH;
}

static bool trains_paths(const vlp_settings *settings) {
    return settings->path && settings->trains != VLP_TRAINS_AGGREGATOR;
}

vlp_settings vlp_draws_at(const vlp_draws *candidates, int64_t candidate, int32_t rung) {
    vlp_settings settings = candidates->drawn[candidate];
    int32_t part = vlp_halving_part(rung);
    if (part > 1 && trains_queries(&settings)) {
        settings.steps = (settings.steps + part - 1) / part;
        settings.warmup /= part;
        settings.decay_at = (settings.decay_at + part - 1) / part;
    }
    if (part > 1 && trains_paths(&settings)) {
        settings.path_passes = fmax(rounded(settings.path_passes / part), 1e-6);
        settings.path_warmup /= part;
    }
    return settings;
}

/* ---- Text ---------------------------------------------------------------------------------------- */

static bool is_given(const vlp_draws *work, const char *name) {
    size_t length = strlen(name);
    for (int32_t i = 0; i < work->options->setting_count; i++) {
        const char *text = work->options->settings[i];
        if (strncmp(text, name, length) == 0 && text[length] == '=') return true;
    }
    return false;
}

/* Whether a dimension differs between candidates. */
static bool varies(const vlp_draws *work, const vlp_dimension *dimension) {
    return vlp_dimension_varies(dimension) && !is_given(work, dimension->setting->name);
}

static void append(char *text, size_t size, const char *format, const char *key, const char *value) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, format, used > 0 ? " " : "", key, value);
}

void vlp_draws_text(char *text, size_t size, const vlp_draws *candidates, int64_t candidate) {
    text[0] = '\0';
    for (int64_t i = 0; i < candidates->space->count; i++) {
        const vlp_dimension *dimension = &candidates->space->dimensions[i];
        if (!varies(candidates, dimension)) continue;
        char value[64];
        vlp_settings_get(value, &candidates->drawn[candidate], dimension->setting);
        append(text, size, "%s%s=%s", dimension->setting->name, value);
    }
}

void vlp_draws_json(char json[VLP_DRAW_JSON], const vlp_draws *candidates, int64_t candidate,
                    int32_t rung) {
    vlp_settings settings = vlp_draws_at(candidates, candidate, rung);
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    snprintf(json, VLP_DRAW_JSON, "{");
    for (int32_t i = 0; i < count; i++) {
        const char *name = table[i].name;
        bool wanted = (strcmp(name, "steps") == 0 && trains_queries(&settings)) ||
                      (strcmp(name, "path_passes") == 0 && trains_paths(&settings));
        for (int64_t d = 0; !wanted && d < candidates->space->count; d++)
            wanted = candidates->space->dimensions[d].setting == &table[i] &&
                     varies(candidates, &candidates->space->dimensions[d]);
        if (!wanted) continue;
        char value[64];
        vlp_settings_get(value, &settings, &table[i]);
        size_t used = strlen(json);
        snprintf(json + used, VLP_DRAW_JSON - used, "%s\"%s\":\"%s\"", used > 1 ? "," : "", name, value);
    }
    size_t used = strlen(json);
    snprintf(json + used, VLP_DRAW_JSON - used, "}");
}

void vlp_draws_space(char *text, size_t size, const vlp_draws *candidates) {
    text[0] = '\0';
    for (int64_t i = 0; i < candidates->space->count; i++) {
        const vlp_dimension *dimension = &candidates->space->dimensions[i];
        if (!varies(candidates, dimension)) continue;
        char values[1024];
        vlp_dimension_text(values, sizeof values, dimension);
        append(text, size, "%s%s = %s;", dimension->setting->name, values);
    }
}

void vlp_draws_start(char *text, size_t size, const vlp_draws *candidates) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    vlp_settings plain;
    vlp_settings_default(&plain);
    text[0] = '\0';
    for (int32_t i = 0; i < count; i++) {
        char value[64], otherwise[64];
        vlp_settings_get(value, &candidates->start, &table[i]);
        vlp_settings_get(otherwise, &plain, &table[i]);
        /* Threads are those of the call, and what a trial does not read may change. */
        if (strcmp(value, otherwise) == 0 || strcmp(table[i].name, "threads") == 0 ||
            strcmp(table[i].name, "save_every") == 0 || strcmp(table[i].name, "eval_every") == 0 ||
            strcmp(table[i].name, "patience") == 0)
            continue;
        append(text, size, "%s%s=%s", table[i].name, value);
    }
}
