/* vlp_train: the loop around the trainer's steps, with evaluation, saving, resuming and stopping. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "base/plain_locale.h"
#include "learn/automatic.h"
#include "learn/base.h"
#include "learn/partitions.h"
#include "learn/run_folder.h"
#include "learn/trainer.h"
#include "learn/trial.h"
#include "learn/validation.h"

/* One training. */
typedef struct training {
    const char *folder;
    const vlp_observer *caller; /* NULL: none */
    vlp_observer observer;      /* the caller's, with lines to train.log as well */
    vlp_run_lock *lock;
    bool created; /* the run was begun by this call */
    bool resumed; /* a state was loaded */
    bool saved;   /* weights of this call are in the folder */
    bool changed; /* a resumed run has other settings than config.ini, or an older format */
    vlp_settings settings;
    const vlp_dataset *dataset;
    vlp_dataset *opened; /* the data set, where it is this call's own */
    vlp_run_facts facts;
    const vlp_backend *backend; /* of the model */
    vlp_compute *compute;
    vlp_model *model;
    vlp_trainer_device device; /* what trains in partitions; count 0: the model's backend trains */
    vlp_trainer *trainer;
    vlp_progress_state progress;
    vlp_step_loss loss;
    void (*watch)(void *user, const vlp_history_point *point); /* the caller's `metrics`; NULL: none */
    void *user;
    char *metrics; /* the lines of metrics.jsonl */
    int64_t metrics_size, metrics_capacity;
    double started;
    double looked;      /* when the losses were read last */
    int64_t started_at; /* step */
    double deadline;    /* of vlp_trial_clock; 0: none */
} training;

/* Adds a line to train.log. A log that cannot be written is no reason to stop. */
static void note(const training *work, const char *line) {
    char *path = vlp_path_join(work->folder, "train.log");
    FILE *file = path ? vlp_append_open(path) : NULL;
    if (file) {
        char date[32];
        time_t now = time(NULL);
        struct tm parts;
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &parts));
        fprintf(file, "%s %s\n", date, line);
        fclose(file);
    }
    vlp_free(path);
}

/* ---- The observer: the caller's, and train.log --------------------------------------------------- */

static void observe_log(void *user, const char *line) {
    const training *work = user;
    vlp_log(work->caller, "%s", line);
    note(work, line);
}

static void observe_progress(void *user, const char *what, int64_t done, int64_t total) {
    vlp_progress(((const training *)user)->caller, what, done, total);
}

static bool observe_stop(void *user) {
    return vlp_stopped(((const training *)user)->caller);
}

/* ---- Settings ------------------------------------------------------------------------------------ */

/* Recipe and single settings, over what is there. */
static vlp_status apply_settings(vlp_settings *settings, const vlp_train_options *options) {
    if (options->recipe) VLP_TRY(vlp_recipe_read(settings, options->recipe));
    for (int32_t i = 0; i < options->setting_count; i++)
        VLP_TRY(vlp_settings_assign(settings, options->settings[i]));
    if (options->base) VLP_TRY(vlp_base_settle(settings, options->base));
    return vlp_settings_check(settings);
}

static vlp_status start_settings(vlp_settings *settings, const vlp_train_options *options) {
    vlp_settings_default(settings);
    if (options->base) VLP_TRY(vlp_base_start(settings, options->base));
    if (options->time != 0) settings->path = true; /* as plans have it unless they are told not to */
    return apply_settings(settings, options);
}

/* On resuming, the run's own settings hold; of those that are given besides, only adjustable ones may
 * differ from them. */
static vlp_status resume_settings(training *work, const vlp_train_options *options) {
    vlp_settings saved;
    VLP_TRY(vlp_run_folder_settings(&saved, work->folder));
    memcpy(&work->settings, &saved, sizeof saved); /* padding too */
    VLP_TRY(apply_settings(&work->settings, options));
    work->progress.steps = saved.steps;
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        char asked[64], has[64];
        vlp_settings_get(asked, &work->settings, &table[i]);
        vlp_settings_get(has, &saved, &table[i]);
        if (strcmp(asked, has) == 0) continue;
        if (!table[i].adjustable)
            return vlp_fail(VLP_ERROR_ARGUMENT,
                            "%s was started with %s = %s, not %s, and resuming cannot change that; "
                            "start another run",
                            work->folder, table[i].name, has, asked);
        work->changed = true;
    }
    return VLP_OK;
}

/* What settings can only be held against once the data set is known. */
static vlp_status check_dataset(const training *work) {
    int32_t entities = vlp_dataset_entity_count(work->dataset);
    if (work->settings.vertical && work->settings.candidates > entities)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "candidates = %d is more than the %d entities of %s; use all, or fewer",
                        work->settings.candidates, entities, vlp_dataset_title(work->dataset));
    return VLP_OK;
}

/* ---- Evaluation on the validation split ---------------------------------------------------------- */

/* The components that are trained by the end of a stage, or were before, as bits. */
static unsigned ready_components(const training *work, const vlp_stage *stage) {
    vlp_stage last = vlp_trainer_stage(work->trainer, vlp_trainer_steps(work->trainer));
    return work->model->components & ~(last.first > stage->first ? last.components : 0u);
}

/* The best mixture on the validation split and its MRR, of the components that are ready. */
static vlp_status evaluate(double *mrr, vlp_mixture *best, const training *work, unsigned components) {
    vlp_model ready = *work->model;
    ready.components = components;
    return vlp_validate(mrr, best, &ready, work->dataset, &work->settings);
}

static vlp_status add_metrics_line(training *work, double mrr) {
    double elapsed = vlp_trial_clock() - work->started;
    double rate = elapsed > 0 ? (double)(work->progress.step - work->started_at) / elapsed : 0;
    double sum = 0;
    for (int c = 0; c < VLP_COMPONENTS; c++) sum += work->loss.components[c];
    char valid[32] = "null", line[384];
    vlp_plain_locale locale = vlp_plain_locale_begin();
    if (!isnan(mrr)) snprintf(valid, sizeof valid, "%.6f", mrr);
    int length =
        snprintf(line, sizeof line, "{\"step\":%lld,\"loss\":%.6g", (long long)work->progress.step, sum);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        length += snprintf(line + length, sizeof line - (size_t)length, ",\"loss_%s\":%.6g",
                           vlp_component_name((vlp_component)c), work->loss.components[c]);
    length += snprintf(line + length, sizeof line - (size_t)length,
                       ",\"valid_mrr\":%s,\"steps_per_s\":%.4g}\n", valid, rate);
    vlp_plain_locale_end(locale);
    VLP_TRY(vlp_grow(&work->metrics, &work->metrics_capacity, work->metrics_size + length + 1, 1,
                     "metrics"));
    memcpy(work->metrics + work->metrics_size, line, (size_t)length + 1);
    work->metrics_size += length;
    return VLP_OK;
}

static void tell_metrics(const training *work, double mrr) {
    if (!work->watch) return;
    vlp_history_point point = {.step = work->progress.step, .valid_mrr = mrr};
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        point.losses[c] = c < VLP_COMPONENTS ? work->loss.components[c] : (double)NAN;
    work->watch(work->user, &point);
}

/* Waits for the steps that were asked for: their loss, or what went wrong in one of them. */
static vlp_status look(training *work) {
    work->looked = vlp_trial_clock();
    return vlp_trainer_read(&work->loss, work->trainer);
}

/* The same, after which the model is that of the last step. */
static vlp_status settle(training *work) {
    VLP_TRY(look(work));
    return vlp_trainer_settle(work->trainer);
}

static bool out_of_patience(const training *work) {
    return work->settings.patience > 0 && work->progress.waited >= work->settings.patience;
}

/* "0.6931 + 4.2": by component. */
static void describe_losses(char *text, size_t size, const vlp_step_loss *loss, unsigned components) {
    size_t used = 0;
    for (int c = 0; c < VLP_COMPONENTS && used < size; c++)
        if (components >> c & 1)
            used += (size_t)snprintf(text + used, size - used, "%s%.4f", used > 0 ? " + " : "",
                                     loss->components[c]);
}

/* Evaluates, keeps the model when it is the best so far. *stop: patience has run out. */
static vlp_status check_point(training *work, const vlp_stage *stage, bool *stop) {
    double mrr = NAN;
    bool keep = true;
    VLP_TRY(settle(work));
    if (work->dataset->splits[VLP_VALID].count > 0) {
        vlp_mixture mixture = work->progress.mixture;
        VLP_TRY(evaluate(&mrr, &mixture, work, ready_components(work, stage)));
        keep = !(mrr <= work->progress.best_mrr);
        work->progress.waited = keep ? 0 : work->progress.waited + 1;
        if (keep) {
            work->progress.best_mrr = mrr;
            work->progress.mixture = mixture;
        }
        *stop = out_of_patience(work);
    }
    VLP_TRY(add_metrics_line(work, mrr));
    tell_metrics(work, mrr);
    char losses[128];
    describe_losses(losses, sizeof losses, &work->loss, stage->components);
    if (isnan(mrr))
        vlp_log(&work->observer, "step %lld: loss %s", (long long)work->progress.step, losses);
    else
        vlp_log(&work->observer, "step %lld: loss %s, valid MRR %.4f (filtered by train and valid)%s",
                (long long)work->progress.step, losses, mrr, keep ? ", the best so far" : "");
    if (!keep) return VLP_OK;
    work->progress.best_step = work->progress.step;
    VLP_TRY(vlp_run_folder_save_model(work->folder, work->model, &work->progress, &work->facts));
    work->saved = true;
    return VLP_OK;
}

static vlp_status save(training *work) {
    VLP_TRY(settle(work));
    VLP_TRY(vlp_run_folder_save_metrics(work->folder, work->metrics));
    VLP_TRY(vlp_run_folder_save_state(work->folder, work->model, &work->progress, &work->facts));
    work->saved = true;
    return VLP_OK;
}

/* ---- The loop ------------------------------------------------------------------------------------ */

/* Steps are not waited for, but a fault is not to go unseen for long. */
#define LOOK_EVERY 0.25 /* s */

static bool due(int64_t step, int64_t every) {
    return every > 0 && step % every == 0;
}

static vlp_status stopped(const training *work) {
    vlp_log(&work->observer, "saved at step %lld of %lld", (long long)work->progress.step,
            (long long)vlp_trainer_steps(work->trainer));
    return vlp_fail_stopped();
}

/* Whether the last stage has to end for its evaluation to end in time. */
static bool out_of_time(const training *work) {
    return work->deadline > 0 && vlp_trial_clock() > work->deadline;
}

/* The steps of a stage, from where it is; ended by its last, or by patience. */
static vlp_status run_stage(training *work, const vlp_stage *stage) {
    const vlp_settings *settings = &work->settings;
    const char *what = stage->components == 1u << VLP_PATH ? "steps of the path model" : "steps";
    int64_t end = stage->first + stage->steps;
    bool done = work->progress.step >= end || out_of_patience(work);
    while (!done) {
        VLP_TRY(vlp_trainer_step(NULL, work->trainer, work->progress.step));
        if (vlp_trial_clock() - work->looked > LOOK_EVERY) VLP_TRY(look(work));
        int64_t step = ++work->progress.step, own = step - stage->first;
        bool late = out_of_time(work), last = step == end || late, stop = false;
        vlp_progress(&work->observer, what, own, stage->steps);
        if (late && step < end)
            vlp_log(&work->observer,
                    "the time is up at step %lld of %lld: the machine was slower than when steps were "
                    "measured",
                    (long long)own, (long long)stage->steps);
        if (last || due(own, settings->eval_every)) VLP_TRY(check_point(work, stage, &stop));
        bool asked = vlp_stopped(&work->observer);
        if (last || stop || asked || due(own, settings->save_every)) VLP_TRY(save(work));
        if (asked && !last && !stop) return stopped(work);
        done = last || stop;
    }
    return VLP_OK;
}

/* The next stage starts from the best of the one before, whatever that ended with. */
static vlp_status begin_stage(training *work, const vlp_stage *stage) {
    vlp_progress_state best;
    vlp_run_facts facts;
    work->progress.step = stage->first;
    work->progress.waited = 0;
    if (work->progress.best_step != stage->first)
        VLP_TRY(vlp_run_folder_load_model(work->model, &best, &facts, work->folder));
    vlp_log(&work->observer, "the path model: %lld steps", (long long)stage->steps);
    return VLP_OK;
}

static vlp_status loop(training *work) {
    int64_t total = vlp_trainer_steps(work->trainer);
    vlp_stage stage = vlp_trainer_stage(work->trainer, work->progress.step);
    for (;;) {
        if (stage.first > 0 && work->progress.step <= stage.first) VLP_TRY(begin_stage(work, &stage));
        VLP_TRY(run_stage(work, &stage));
        int64_t end = stage.first + stage.steps;
        if (end >= total) return VLP_OK;
        if (vlp_stopped(&work->observer)) return stopped(work);
        stage = vlp_trainer_stage(work->trainer, end);
    }
}

/* The device trains in partitions, and the model is on the host. */
static vlp_status move_to_host(training *work, int32_t partitions) {
    int32_t entities = vlp_dataset_entity_count(work->dataset);
    work->device = (vlp_trainer_device){work->backend, work->compute, partitions};
    work->backend = &vlp_cpu_backend;
    work->compute = NULL;
    vlp_log(
        &work->observer,
        "%d entities in %d partitions, two of them at a time in %d MiB; negatives come from these two",
        entities, partitions, work->settings.device_memory);
    return work->backend->open(&work->compute, work->settings.threads);
}

/* Divides the entities where their tables are larger than the memory for them. Without a setting, that
 * is most of what the device has free; what was found becomes the setting, so that resuming divides them
 * in the same way. */
static vlp_status divide_entities(training *work, const vlp_model_shape *shape) {
    int64_t unused = 0, total = 0, bytes = (int64_t)work->settings.device_memory << 20;
    vlp_model *declared = NULL;
    VLP_TRY(vlp_model_declare(&declared, work->backend, work->compute, shape));
    if (bytes == 0 && work->backend != &vlp_cpu_backend &&
        work->backend->memory->available(work->compute, &unused, &total) &&
        vlp_model_bytes(declared, true) > unused)
        bytes = (int64_t)(0.6 * (double)unused);
    int32_t partitions = bytes > 0 ? vlp_partition_count(declared, &work->settings, bytes) : 0;
    vlp_model_free(declared);
    if (partitions == 0) return VLP_OK;
    VLP_TRY(vlp_partitions_check(&work->settings));
    work->settings.device_memory = (int32_t)(bytes >> 20);
    return move_to_host(work, partitions);
}

static vlp_status open_model(training *work, const char *device) {
    VLP_TRY(vlp_backend_find(&work->backend, device ? device : "auto"));
    VLP_TRY(work->backend->open(&work->compute, work->settings.threads));
    vlp_model_shape shape = vlp_settings_shape(&work->settings, work->dataset);
    VLP_TRY(divide_entities(work, &shape));
    return vlp_model_new(&work->model, work->backend, work->compute, &shape, true);
}

static vlp_status open_trainer(training *work) {
    if (work->device.count > 0)
        return vlp_trainer_new_partitioned(&work->trainer, work->dataset, &work->settings, work->model,
                                           &work->observer, &work->device);
    return vlp_trainer_new(&work->trainer, work->dataset, &work->settings, work->model, &work->observer);
}

/* Whether the rate at a step depends on how many steps there are. */
static bool schedule_depends_on_steps(const vlp_settings *settings) {
    switch ((vlp_schedule)settings->schedule) {
    case VLP_CONSTANT:
        return false;
    case VLP_STEP:
        return settings->decay_at == 0;
    case VLP_LINEAR:
    case VLP_COSINE:
        return true;
    }
    return false;
}

/* A resumed run that has another number of steps than its state was made for. */
static vlp_status change_steps(training *work) {
    vlp_progress_state *progress = &work->progress;
    int64_t steps = work->settings.steps;
    if (steps == progress->steps) return VLP_OK;
    if (work->settings.trains == VLP_TRAINS_PATH || work->settings.model == VLP_MODEL_NONE ||
        (work->settings.path && progress->step >= progress->steps))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "steps are those of the embeddings, and %s has no more of them to do",
                        work->folder);
    if (steps <= progress->step)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%s has done %lld steps; steps = %lld leaves nothing to do: ask for more",
                        work->folder, (long long)progress->step, (long long)steps);
    bool restart = schedule_depends_on_steps(&work->settings);
    vlp_log(&work->observer, "%lld steps instead of %lld%s", (long long)steps,
            (long long)progress->steps,
            restart ? "; the schedule of the learning rate starts anew from here" : "");
    if (restart) progress->schedule_start = progress->step;
    progress->steps = steps;
    work->changed = true;
    return VLP_OK;
}

/* Takes up the state that was saved in the folder. *found false: none was. */
static vlp_status load_state(training *work, bool *found) {
    vlp_run_facts saved;
    vlp_progress_state loaded = work->progress;
    const vlp_run_training own = {work->folder, &work->settings, work->dataset};
    VLP_TRY(vlp_run_folder_load_state(work->model, &loaded, &saved, found, &own, &work->observer));
    if (!*found) return VLP_OK;
    if (loaded.steps == 0) loaded.steps = work->progress.steps; /* format 1: those of config.ini */
    work->progress = loaded;
    work->changed = work->changed || saved.format < VLP_RUN_FORMAT;
    VLP_TRY(vlp_run_folder_load_metrics(&work->metrics, work->folder, work->progress.step));
    work->metrics_size = (int64_t)strlen(work->metrics);
    work->metrics_capacity = work->metrics_size + 1;
    work->resumed = true;
    return change_steps(work);
}

/* The tables of a run that has no state yet. */
static vlp_status init_tables(training *work, const char *base) {
    work->progress.steps = work->settings.steps;
    VLP_TRY(vlp_model_init(work->model, work->settings.seed, work->settings.init_scale));
    if (work->settings.trains == VLP_TRAINS_AGGREGATOR && !base)
        return vlp_fail(
            VLP_ERROR_ARGUMENT,
            "trains = aggregator needs embeddings to start from: a base, which is a run or a "
            "folder of arrays");
    if (work->settings.trains == VLP_TRAINS_PATH && work->settings.model != VLP_MODEL_NONE && !base)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "trains = path adds the path model to a base, which is a run or a folder of "
                        "arrays; without one, train it alone with model = none");
    return base ? vlp_base_load(work->model, work->dataset, base, &work->settings, &work->observer)
                : VLP_OK;
}

/* Begins the run's folder, or brings a resumed one up to date. */
static vlp_status write_folder(training *work) {
    if (!work->created && !work->changed) return VLP_OK;
    if (work->created || !vlp_run_folder_has_data(work->folder))
        VLP_TRY(vlp_run_folder_write_data(work->folder, work->dataset));
    return vlp_run_folder_write_config(work->folder, &work->settings, &work->facts);
}

/* Says which settings make every step work on all rows of a large table, and what would not. */
static void say_dense(const training *work) {
    enum { LARGE_TABLE = 1000000 };
    const vlp_settings *settings = &work->settings;
    int32_t entities = vlp_dataset_entity_count(work->dataset);
    bool trained = settings->trains == VLP_TRAINS_ALL;
    if (entities < LARGE_TABLE || settings->model == VLP_MODEL_NONE ||
        settings->trains == VLP_TRAINS_PATH)
        return;
    char advice[128] = "";
    const char *const parts[] = {
        trained && settings->loss != VLP_LOSS_NEGATIVES ? ", loss = negative-sampling" : "",
        trained && settings->optimizer == VLP_ADAM ? ", optimizer = lazy-adam" : "",
        settings->vertical && settings->candidates == 0 ? ", candidates = 4096" : ""};
    snprintf(advice, sizeof advice, "%s%s%s", parts[0], parts[1], parts[2]);
    if (*advice)
        vlp_log(&work->observer, "every step works on all %d entities; these settings do not: %s",
                entities, advice + 2);
}

static vlp_status begin(training *work, const char *base) {
    bool found = false;
    if (!work->created) VLP_TRY(load_state(work, &found));
    if (!found) VLP_TRY(init_tables(work, base));
    bool rounds = work->settings.loss != VLP_LOSS_NEGATIVES && work->backend->blas->rounds_factors();
    if (work->settings.precision == VLP_PRECISION_BF16 && !work->backend->bf16 && !rounds &&
        work->settings.model != VLP_MODEL_NONE && !work->settings.path)
        vlp_log(&work->observer,
                "precision = bf16 has no effect on embeddings here: they are trained in fp32");
    say_dense(work);
    VLP_TRY(write_folder(work));
    /* With the new settings on disk, a state of before has to say which of them it was made with. */
    if (found && work->changed)
        VLP_TRY(vlp_run_folder_save_state(work->folder, work->model, &work->progress, &work->facts));
    work->started_at = work->progress.step;
    VLP_TRY(vlp_grow(&work->metrics, &work->metrics_capacity, work->metrics_size + 1, 1, "metrics"));
    work->metrics[work->metrics_size] = '\0';
    return VLP_OK;
}

/* Takes the folder, and the settings to train with. */
static vlp_status open_folder(training *work, const vlp_train_options *options) {
    vlp_status status = vlp_run_lock_take(&work->lock, work->folder);
    if (status == VLP_ERROR_BUSY) return status;
    bool exists = vlp_run_folder_exists(work->folder);
    if (exists && !options->resume)
        return vlp_fail(VLP_ERROR_EXISTS, "%s is a run already: resume it, or train into another folder",
                        work->folder);
    VLP_TRY(status);
    if (!exists) VLP_TRY(vlp_run_lock_check_free(work->lock));
    work->created = !exists;
    vlp_run_lock_sweep(work->lock);
    return exists ? resume_settings(work, options) : start_settings(&work->settings, options);
}

/* ---- Automatic settings -------------------------------------------------------------------------- */

static vlp_status check_time(const vlp_train_options *options) {
    if (options->time == 0 || options->resume) return VLP_OK;
    if (options->recipe || options->base)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "time chooses settings, and %s has them already: leave one out",
                        options->recipe ? "a recipe" : "a base");
    if (!(options->time > 0) && options->time != VLP_TIME_DEFAULT)
        return vlp_fail(VLP_ERROR_ARGUMENT, "time = %g is no number of seconds", options->time);
    return VLP_OK;
}

static void mark_given(bool *given, const vlp_train_options *options) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        size_t length = strlen(table[i].name);
        given[i] = false;
        for (int32_t j = 0; j < options->setting_count; j++) {
            const char *text = options->settings[j];
            given[i] |= strncmp(text, table[i].name, length) == 0 && text[length] == '=';
        }
    }
}

/* Chooses the settings of a new run, and notes them as a recipe. */
static vlp_status choose_settings(training *work, const vlp_train_options *options) {
    if (options->time == 0 || !work->created) return VLP_OK;
    const vlp_backend *backend;
    int32_t count;
    VLP_TRY(vlp_backend_find(&backend, options->device ? options->device : "auto"));
    double time = options->time > 0 ? options->time : backend == &vlp_cpu_backend ? 600 : 180;
    vlp_settings_table(&count);
    bool *given = vlp_alloc((size_t)count, sizeof *given);
    if (!given) return vlp_fail_memory("settings");
    mark_given(given, options);
    vlp_automatic from = {work->dataset, options->device, &work->observer, work->started + time, given};
    vlp_status status = vlp_automatic_settings(&work->settings, &from);
    vlp_free(given);
    VLP_TRY(status);
    work->deadline = work->started + 1.05 * time;
    char *path = vlp_path_join(work->folder, "recipe.ini");
    if (!path) return vlp_fail_memory("a file name");
    status = vlp_recipe_write(path, &work->settings);
    vlp_free(path);
    return status;
}

static vlp_status prepare(training *work, const char *data, const vlp_train_options *options) {
    VLP_TRY(open_folder(work, options));
    if (data) {
        vlp_dataset_options opening = {1, work->settings.threads, options->observer};
        VLP_TRY(vlp_dataset_open(&work->opened, data, &opening));
        work->dataset = work->opened;
    }
    VLP_TRY(choose_settings(work, options));
    VLP_TRY(check_dataset(work));
    VLP_TRY(open_model(work, options->device));
    VLP_TRY(vlp_run_folder_facts_of(&work->facts, work->dataset, &work->settings));
    work->progress.mixture = vlp_mixture_default(work->model->components);
    VLP_TRY(begin(work, options->base));
    VLP_TRY(open_trainer(work));
    vlp_trainer_schedule_from(work->trainer, work->progress.schedule_start);
    if (work->resumed)
        vlp_log(&work->observer, "resuming at step %lld of %lld", (long long)work->progress.step,
                (long long)vlp_trainer_steps(work->trainer));
    return VLP_OK;
}

static void training_free(training *work, bool failed) {
    vlp_trainer_free(work->trainer);
    vlp_model_free(work->model);
    if (work->backend) work->backend->close(work->compute);
    if (work->device.count > 0) work->device.backend->close(work->device.compute);
    vlp_dataset_free(work->opened);
    vlp_free(work->metrics);
    vlp_run_lock_release(work->lock, failed && work->created && !work->saved);
}

/* Trains on `dataset`, or, where that is NULL, on the one in folder `data`. */
static vlp_status train(vlp_train_report *out, const vlp_dataset *dataset, const char *data,
                        const char *run, const vlp_train_options *given) {
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_train_options, &options, given));
    VLP_TRY(vlp_check_array(options.settings, options.setting_count, "settings"));
    training work = {.folder = run,
                     .caller = options.observer,
                     .dataset = dataset,
                     .watch = options.metrics,
                     .user = options.user};
    work.observer = (vlp_observer){observe_log, observe_progress, observe_stop, &work};
    work.progress = (vlp_progress_state){.best_mrr = -1};
    work.started = vlp_trial_clock();
    vlp_status status = check_time(&options);
    if (status == VLP_OK) status = prepare(&work, data, &options);
    work.started = vlp_trial_clock();
    if (status == VLP_OK) {
        status = loop(&work);
        if (status != VLP_OK && status != VLP_ERROR_STOPPED) note(&work, vlp_error_message());
    }
    if (out && (status == VLP_OK || status == VLP_ERROR_STOPPED)) {
        double elapsed = vlp_trial_clock() - work.started;
        int64_t steps = work.progress.step - work.started_at;
        *out =
            (vlp_train_report){.steps = work.progress.step,
                               .seconds = elapsed,
                               .steps_per_second = elapsed > 0 ? (double)steps / elapsed : 0,
                               .valid_mrr = work.progress.best_mrr >= 0 ? work.progress.best_mrr : NAN,
                               .call_steps = steps};
        memcpy(out->losses, work.loss.components, sizeof out->losses);
    }
    training_free(&work, status != VLP_OK);
    return status;
}

vlp_status vlp_train(vlp_train_report *out, const char *data, const char *run,
                     const vlp_train_options *options) {
    VLP_REQUIRE(data);
    VLP_REQUIRE(run);
    return train(out, NULL, data, run, options);
}

vlp_status vlp_train_dataset(vlp_train_report *out, const vlp_dataset *dataset, const char *run,
                             const vlp_train_options *options) {
    VLP_REQUIRE(dataset);
    VLP_REQUIRE(run);
    return train(out, dataset, NULL, run, options);
}

bool vlp_setting_describe(vlp_setting_info *out, int32_t index) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    if (!out || index < 0 || index >= count) return false;
    static _Thread_local char range[128];
    const vlp_setting *setting = &table[index];
    range[0] = '\0';
    if (setting->type == VLP_SETTING_SWITCH) snprintf(range, sizeof range, "on, off");
    for (int i = 0; setting->type == VLP_SETTING_CHOICE && setting->choices[i]; i++) {
        size_t used = strlen(range);
        snprintf(range + used, sizeof range - used, "%s%s", i ? ", " : "", setting->choices[i]);
    }
    if (!range[0]) snprintf(range, sizeof range, "%g to %g", setting->least, setting->most);
    *out = (vlp_setting_info){setting->name, setting->section, setting->fallback, range, setting->help};
    return true;
}
