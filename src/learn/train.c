/* vlp_train: the loop around the trainer's steps, with evaluation, saving, resuming and stopping. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "learn/base.h"
#include "learn/run_folder.h"
#include "learn/trainer.h"

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One training. */
typedef struct training {
    const char *folder;
    const vlp_observer *observer;
    vlp_settings settings;
    vlp_dataset *dataset;
    vlp_run_facts facts;
    const vlp_backend *backend;
    vlp_compute *compute;
    vlp_model *model;
    vlp_trainer *trainer;
    vlp_progress_state progress;
    vlp_step_loss loss;
    char *metrics; /* the lines of metrics.jsonl */
    int64_t metrics_size, metrics_capacity;
    double started;
    double looked;      /* when the losses were read last */
    int64_t started_at; /* step */
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

/* Tells the observer, and notes it. */
static void say(const training *work, const char *format, ...) VLP_PRINTF(2, 3);
static void say(const training *work, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    vlp_log(work->observer, "%s", line);
    note(work, line);
}

/* ---- Settings ------------------------------------------------------------------------------------ */

static vlp_status apply_settings(vlp_settings *settings, const vlp_train_options *options) {
    vlp_settings_default(settings);
    if (options->base) VLP_TRY(vlp_base_start(settings, options->base));
    if (options->recipe) VLP_TRY(vlp_recipe_read(settings, options->recipe));
    for (int32_t i = 0; i < options->setting_count; i++) {
        const char *text = options->settings[i], *equals = strchr(text, '=');
        char key[64];
        if (!equals || (size_t)(equals - text) >= sizeof key)
            return vlp_fail(VLP_ERROR_ARGUMENT, "--set takes key=value, not '%.100s'", text);
        memcpy(key, text, (size_t)(equals - text));
        key[equals - text] = '\0';
        VLP_TRY(vlp_settings_set(settings, key, equals + 1, "--set"));
    }
    if (options->base) VLP_TRY(vlp_base_settle(settings, options->base));
    return vlp_settings_check(settings);
}

/* On resuming, the run's own settings hold; others that are given must agree with them. */
static vlp_status resume_settings(training *work, const vlp_train_options *options) {
    vlp_settings asked = work->settings, saved;
    VLP_TRY(vlp_run_folder_settings(&saved, work->folder));
    if (options->recipe || options->setting_count > 0 || options->base) {
        int32_t count;
        const vlp_setting *table = vlp_settings_table(&count);
        for (int32_t i = 0; i < count; i++) {
            char left[64], right[64];
            vlp_settings_get(left, &asked, &table[i]);
            vlp_settings_get(right, &saved, &table[i]);
            if (strcmp(left, right) != 0)
                return vlp_fail(
                    VLP_ERROR_ARGUMENT,
                    "%s was started with %s = %s, not %s; resume it without settings, or start "
                    "another run",
                    work->folder, table[i].name, right, left);
        }
    }
    work->settings = saved;
    return VLP_OK;
}

/* ---- Evaluation on valid ------------------------------------------------------------------------- */

/* The best mixture on valid and its MRR. */
static vlp_status evaluate(double *mrr, vlp_mixture *best, training *work) {
    static const vlp_mixture horizontal = {0, 1};
    int32_t count = 1;
    const vlp_mixture *grid = work->settings.vertical ? vlp_mixture_grid(&count) : &horizontal;
    vlp_ranking_options options = {.split = VLP_VALID,
                                   .filter = 1u << VLP_TRAIN | 1u << VLP_VALID,
                                   .mixtures = grid,
                                   .mixture_count = count,
                                   .references = work->settings.references,
                                   .references_per_head = work->settings.references_per_head,
                                   .threads = work->settings.threads};
    vlp_ranking *ranking = NULL;
    VLP_TRY(vlp_ranking_compute(&ranking, work->model, work->dataset, &options));
    *mrr = -1;
    for (int32_t i = 0; i < count; i++) {
        vlp_metrics metrics =
            vlp_metrics_compute(vlp_ranking_of(ranking, i), ranking->queries, VLP_REALISTIC, NULL);
        if (metrics.mrr > *mrr) {
            *mrr = metrics.mrr;
            *best = grid[i];
        }
    }
    vlp_ranking_free(ranking);
    return VLP_OK;
}

static vlp_status add_metrics_line(training *work, double mrr) {
    double elapsed = seconds() - work->started;
    double rate = elapsed > 0 ? (double)(work->progress.step - work->started_at) / elapsed : 0;
    char valid[32] = "null", line[256];
    if (!isnan(mrr)) snprintf(valid, sizeof valid, "%.6f", mrr);
    int length = snprintf(line, sizeof line,
                          "{\"step\":%lld,\"loss\":%.6g,\"loss_horizontal\":%.6g,\"loss_vertical\":%.6g,"
                          "\"valid_mrr\":%s,\"steps_per_s\":%.4g}\n",
                          (long long)work->progress.step, work->loss.horizontal + work->loss.vertical,
                          work->loss.horizontal, work->loss.vertical, valid, rate);
    VLP_TRY(vlp_grow(&work->metrics, &work->metrics_capacity, work->metrics_size + length + 1, 1,
                     "metrics"));
    memcpy(work->metrics + work->metrics_size, line, (size_t)length + 1);
    work->metrics_size += length;
    return VLP_OK;
}

/* Waits for the steps that were asked for: their loss, or what went wrong in one of them. */
static vlp_status look(training *work) {
    work->looked = seconds();
    return vlp_trainer_read(&work->loss, work->trainer);
}

/* Evaluates, keeps the model when it is the best so far. *stop: patience has run out. */
static vlp_status check_point(training *work, bool *stop) {
    double mrr = NAN;
    bool keep = true;
    VLP_TRY(look(work));
    if (work->dataset->splits[VLP_VALID].count > 0) {
        vlp_mixture mixture = work->progress.mixture;
        VLP_TRY(evaluate(&mrr, &mixture, work));
        keep = !(mrr <= work->progress.best_mrr);
        work->progress.waited = keep ? 0 : work->progress.waited + 1;
        if (keep) {
            work->progress.best_mrr = mrr;
            work->progress.mixture = mixture;
        }
        *stop = work->settings.patience > 0 && work->progress.waited >= work->settings.patience;
    }
    VLP_TRY(add_metrics_line(work, mrr));
    if (isnan(mrr))
        say(work, "step %lld: loss %.4f + %.4f", (long long)work->progress.step, work->loss.horizontal,
            work->loss.vertical);
    else
        say(work, "step %lld: loss %.4f + %.4f, valid MRR %.4f%s", (long long)work->progress.step,
            work->loss.horizontal, work->loss.vertical, mrr, keep ? ", the best so far" : "");
    if (!keep) return VLP_OK;
    work->progress.best_step = work->progress.step;
    return vlp_run_folder_save_model(work->folder, work->model, &work->progress, &work->facts);
}

static vlp_status save(training *work) {
    VLP_TRY(look(work));
    VLP_TRY(vlp_run_folder_save_metrics(work->folder, work->metrics));
    return vlp_run_folder_save_state(work->folder, work->model, &work->progress, &work->facts);
}

/* ---- The loop ------------------------------------------------------------------------------------ */

/* Steps are not waited for, but a fault is not to go unseen for long. */
#define LOOK_EVERY 0.25 /* s */

static bool due(int64_t step, int64_t every) {
    return every > 0 && step % every == 0;
}

static vlp_status loop(training *work) {
    const vlp_settings *settings = &work->settings;
    bool done = work->progress.step >= settings->steps;
    while (!done) {
        VLP_TRY(vlp_trainer_step(NULL, work->trainer, work->progress.step,
                                 settings->trains == VLP_TRAINS_AGGREGATOR));
        if (seconds() - work->looked > LOOK_EVERY) VLP_TRY(look(work));
        int64_t step = ++work->progress.step;
        bool last = step == settings->steps, stop = false;
        vlp_progress(work->observer, "steps", step, settings->steps);
        if (last || due(step, settings->eval_every)) VLP_TRY(check_point(work, &stop));
        bool asked = vlp_stopped(work->observer);
        if (last || stop || asked || due(step, settings->save_every)) VLP_TRY(save(work));
        if (asked && !last) {
            say(work, "saved at step %lld of %lld; --resume goes on from there", (long long)step,
                (long long)settings->steps);
            return vlp_fail_stopped();
        }
        done = last || stop;
    }
    return VLP_OK;
}

static vlp_status open_model(training *work, const char *device) {
    VLP_TRY(vlp_backend_find(&work->backend, device ? device : "auto"));
    VLP_TRY(work->backend->open(&work->compute, work->settings.threads));
    const vlp_settings *settings = &work->settings;
    vlp_model_options options = {settings->model, settings->dim, settings->relation_dim, settings->norm,
                                 settings->margin};
    return vlp_model_new(&work->model, work->backend, work->compute, &options,
                         vlp_dataset_entity_count(work->dataset),
                         2 * vlp_dataset_relation_count(work->dataset), settings->vertical, true);
}

/* Starts the run's folder, or takes up the state that was saved in it. */
static vlp_status begin(training *work, bool resuming, const char *base) {
    bool found = false;
    if (resuming) {
        vlp_run_facts saved;
        VLP_TRY(vlp_run_folder_load_state(work->model, &work->progress, &saved, &found, work->folder,
                                          work->observer));
        if (found && strcmp(saved.checksum, work->facts.checksum) != 0)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s was trained on another data set than %s: the names or triples differ",
                            work->folder, work->facts.data);
    }
    if (found) {
        VLP_TRY(vlp_run_folder_load_metrics(&work->metrics, work->folder, work->progress.step));
        work->metrics_size = (int64_t)strlen(work->metrics);
        work->metrics_capacity = work->metrics_size + 1;
        say(work, "resuming at step %lld of %lld", (long long)work->progress.step,
            (long long)work->settings.steps);
    } else {
        VLP_TRY(vlp_model_init(work->model, work->settings.seed, work->settings.init_scale));
        if (work->settings.trains == VLP_TRAINS_AGGREGATOR && !base)
            return vlp_fail(VLP_ERROR_ARGUMENT,
                            "trains = head needs embeddings to stand on: name a run or a folder of "
                            "arrays by --base");
        if (base) VLP_TRY(vlp_base_load(work->model, work->dataset, base, work->observer));
    }
    if (work->settings.precision == VLP_PRECISION_BF16 && !work->backend->bf16)
        say(work, "precision = bf16 is for a GPU: this trains in fp32");
    if (!resuming)
        VLP_TRY(vlp_run_folder_create(work->folder, &work->settings, work->dataset, &work->facts));
    work->started_at = work->progress.step;
    return vlp_grow(&work->metrics, &work->metrics_capacity, work->metrics_size + 1, 1, "metrics");
}

static void training_free(training *work) {
    vlp_trainer_free(work->trainer);
    vlp_model_free(work->model);
    if (work->backend) work->backend->close(work->compute);
    vlp_dataset_free(work->dataset);
    vlp_free(work->metrics);
}

vlp_status vlp_train(vlp_train_report *out, const char *data, const char *run,
                     const vlp_train_options *given) {
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    if (given) options = *given;
    vlp_status status = VLP_OK;
    training work = {.folder = run, .observer = options.observer};
    /* Without valid nothing chooses lambda: a value that suits the scale of the scores. */
    work.progress = (vlp_progress_state){.best_mrr = -1, .mixture = {1, 0.05f}};
    VLP_CHECK(apply_settings(&work.settings, &options));
    bool resuming = options.resume && vlp_run_folder_exists(run);
    if (!options.resume && vlp_run_folder_exists(run)) {
        status = vlp_fail(VLP_ERROR_IO, "%s is a run already; --resume goes on with it, or name another",
                          run);
        goto out;
    }
    if (resuming) VLP_CHECK(resume_settings(&work, &options));
    vlp_dataset_options opening = {1, work.settings.threads, options.observer};
    VLP_CHECK(vlp_dataset_open(&work.dataset, data, &opening));
    VLP_CHECK(vlp_run_folder_facts_of(&work.facts, work.dataset, data));
    VLP_CHECK(open_model(&work, options.device));
    if (!work.settings.vertical) work.progress.mixture = (vlp_mixture){0, 1};
    VLP_CHECK(begin(&work, resuming, options.base));
    work.metrics[work.metrics_size] = '\0';
    VLP_CHECK(
        vlp_trainer_new(&work.trainer, work.dataset, &work.settings, work.model, options.observer));
    work.started = seconds();
    status = loop(&work);
    if (status != VLP_OK && status != VLP_ERROR_STOPPED) note(&work, vlp_error_message());
out:
    if (out) {
        double elapsed = seconds() - work.started;
        int64_t steps = work.progress.step - work.started_at;
        *out =
            (vlp_train_report){.steps = work.progress.step,
                               .seconds = elapsed,
                               .steps_per_second = elapsed > 0 ? (double)steps / elapsed : 0,
                               .loss_horizontal = work.loss.horizontal,
                               .loss_vertical = work.loss.vertical,
                               .valid_mrr = work.progress.best_mrr >= 0 ? work.progress.best_mrr : NAN};
    }
    training_free(&work);
    return status;
}

bool vlp_setting_describe(vlp_setting_info *out, int32_t index) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    if (index < 0 || index >= count) return false;
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
