/* vlp_tune: a search for settings, by trials in memory that run beside each other.
 *
 * The calling thread does all bookkeeping: it starts trials, each in a thread of its own, collects their
 * results and asks the observer. What is trained follows from the finished trials alone, so that a
 * search that is taken up from trials.jsonl goes on as if it had not been stopped. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/options.h"
#include "learn/base.h"
#include "learn/draws.h"
#include "learn/halving.h"
#include "learn/run_folder.h"
#include "learn/trial.h"
#include "learn/trial_log.h"

enum {
    SMALL_GRAPH = 100000,   /* triples: a trial has one thread */
    TRIAL_MEMORY = 1 << 30, /* bytes that there are for each trial that runs beside others */
    MOST_AT_ONCE = 1024,
    DEFAULT_TRIALS = VLP_HALVING_TRIALS
};

typedef struct search search;

/* A trial that runs. */
typedef struct runner {
    search *of;
    pthread_t thread;
    bool busy;
    int64_t candidate;
    int32_t rung;
    vlp_settings settings;
    /* Written by the thread before it sets `done`. */
    vlp_status status;
    vlp_trial_result result;
    double seconds;
    char message[1024];
    bool done; /* under the lock */
} runner;

struct search {
    const char *folder;
    vlp_tune_options options;
    vlp_run_lock *lock;
    vlp_dataset *dataset;
    vlp_draws candidates;
    vlp_halving *halving;
    vlp_trial_log *log;
    bool created;                       /* by this call, and nothing is written yet */
    int64_t trials;                     /* of the whole search; 0: no limit */
    int64_t planned;                    /* trials of the brackets so far */
    int64_t by_rung[VLP_HALVING_RUNGS]; /* of those, at each rung */
    bool exhausted;                     /* the space has no more candidates */
    int32_t trial_threads, at_once;
    runner *runners;          /* (at_once) */
    vlp_tune_trial *finished; /* best first */
    int64_t finished_count, finished_capacity, call_trials;
    double started, deadline; /* of vlp_trial_clock; deadline 0: none */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a runner is done */
    bool threads_ready;     /* mutex and condition exist */
    atomic_bool stop;       /* the trials are to stop */
    bool asked;             /* the observer asked for it */
};

/* ---- Finished trials ----------------------------------------------------------------------------- */

static double shown(double mrr) {
    return isnan(mrr) ? -1 : mrr;
}

static bool is_better(const vlp_tune_trial *a, const vlp_tune_trial *b) {
    if (shown(a->mrr) != shown(b->mrr)) return shown(a->mrr) > shown(b->mrr);
    if (a->rung != b->rung) return a->rung > b->rung;
    return a->candidate < b->candidate;
}

/* Puts a trial in its place. *place: where it is. */
static vlp_status insert(search *work, const vlp_trial_record *record, int64_t *place) {
    enum { TEXT = 1024 };
    VLP_TRY(vlp_grow(&work->finished, &work->finished_capacity, work->finished_count + 1,
                     sizeof *work->finished, "trials"));
    char *text = vlp_alloc(TEXT, 1);
    if (!text) return vlp_fail_memory("a trial");
    vlp_draws_text(text, TEXT, &work->candidates, record->candidate);
    vlp_tune_trial trial = {record->candidate, record->rung,    vlp_halving_part(record->rung),
                            record->mrr,       record->seconds, text};
    int64_t at = work->finished_count++;
    for (; at > 0 && is_better(&trial, &work->finished[at - 1]); at--)
        work->finished[at] = work->finished[at - 1];
    work->finished[at] = trial;
    *place = at;
    return VLP_OK;
}

static const vlp_tune_trial *best_of(const search *work) {
    return work->finished_count > 0 && !isnan(work->finished[0].mrr) ? &work->finished[0] : NULL;
}

/* The best trial as it was trained; its threads are for the user to choose. */
static vlp_status write_best(const search *work) {
    const vlp_tune_trial *best = best_of(work);
    vlp_settings settings = vlp_draws_at(&work->candidates, best->candidate, best->rung), start;
    vlp_settings_default(&start);
    if (work->options.base) VLP_TRY(vlp_base_start(&start, work->options.base));
    settings.threads = start.threads;
    char *path = vlp_path_join(work->folder, "best.ini");
    if (!path) return vlp_fail_memory("a file name");
    vlp_status status = vlp_recipe_write_over(path, &settings, &start);
    vlp_free(path);
    return status;
}

/* ---- Brackets ------------------------------------------------------------------------------------ */

static void count_bracket(int64_t by_rung[VLP_HALVING_RUNGS], int32_t count) {
    for (int32_t rung = vlp_halving_first_rung(count); rung < VLP_HALVING_RUNGS; rung++) {
        by_rung[rung] += count;
        count /= VLP_HALVING_FACTOR;
    }
}

/* Candidates of the next bracket within the trials that are left; 0: none. */
static int32_t next_bracket(const search *work, int64_t planned) {
    if (work->exhausted) return 0;
    return work->trials == 0 ? VLP_HALVING_BRACKET : vlp_halving_largest(work->trials - planned);
}

/* What trials.jsonl knows of candidates from `first` on. */
static void recall(search *work, int64_t first) {
    for (int64_t i = 0; i < work->log->count; i++) {
        const vlp_trial_record *record = &work->log->records[i];
        if (record->candidate >= first && record->candidate < vlp_halving_candidates(work->halving))
            vlp_halving_finish(work->halving, record->candidate, record->rung, record->mrr);
    }
}

/* Adds a bracket. *added false: there are no more. */
static vlp_status add_bracket(search *work, bool *added) {
    int32_t count = next_bracket(work, work->planned);
    int64_t first = vlp_halving_candidates(work->halving);
    *added = false;
    if (count == 0) return VLP_OK;
    VLP_TRY(vlp_draws_draw(&work->candidates, first + count));
    int64_t drawn = work->candidates.count - first;
    if (drawn < count) {
        work->exhausted = true;
        if (drawn == 0) return VLP_OK;
        count = (int32_t)drawn;
    }
    VLP_TRY(vlp_halving_add(work->halving, count));
    work->planned += vlp_halving_trials(count);
    count_bracket(work->by_rung, count);
    recall(work, first);
    *added = true;
    return VLP_OK;
}

static vlp_status next_trial(search *work, runner *out, bool *found) {
    for (;;) {
        *found = vlp_halving_next(&out->candidate, &out->rung, work->halving);
        bool added = false;
        if (!*found) VLP_TRY(add_bracket(work, &added));
        if (!added) return VLP_OK;
    }
}

/* ---- Running ------------------------------------------------------------------------------------- */

static bool runner_stops(void *user) {
    return atomic_load(&((search *)user)->stop);
}

static void *run(void *user) {
    runner *own = user;
    search *work = own->of;
    vlp_observer observer = {.stop = runner_stops, .user = work};
    vlp_trial trial = {work->dataset, work->options.device, &observer, work->options.base};
    double start = vlp_trial_clock();
    own->status = vlp_trial_train(&own->result, &trial, &own->settings);
    own->seconds = vlp_trial_clock() - start;
    if (own->status != VLP_OK) snprintf(own->message, sizeof own->message, "%s", vlp_error_message());
    pthread_mutex_lock(&work->mutex);
    own->done = true;
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->mutex);
    return NULL;
}

static vlp_status start_trials(search *work) {
    for (int32_t i = 0; i < work->at_once; i++) {
        runner *free = &work->runners[i];
        bool found;
        if (free->busy) continue;
        VLP_TRY(next_trial(work, free, &found));
        if (!found) return VLP_OK;
        free->of = work;
        free->settings = vlp_draws_at(&work->candidates, free->candidate, free->rung);
        free->settings.threads = work->trial_threads;
        free->done = false;
        if (pthread_create(&free->thread, NULL, run, free) != 0)
            return vlp_fail(VLP_ERROR_MEMORY, "cannot start a thread for a trial");
        free->busy = true;
    }
    return VLP_OK;
}

/* The result of a trial that is done. A training that diverges has a result: it is the last of its rung.
 */
static vlp_status collect(search *work, const runner *done, int64_t *place) {
    *place = -1;
    if (done->status == VLP_ERROR_STOPPED) return VLP_OK;
    if (done->status != VLP_OK && done->status != VLP_ERROR_DIVERGED)
        return vlp_fail(done->status, "%s", done->message);
    char json[VLP_DRAW_JSON];
    vlp_draws_json(json, &work->candidates, done->candidate, done->rung);
    vlp_trial_record record = {done->candidate, done->rung,
                               done->status == VLP_OK ? done->result.mrr : NAN, done->seconds, json};
    VLP_TRY(vlp_trial_log_add(work->log, &record));
    vlp_halving_finish(work->halving, done->candidate, done->rung, record.mrr);
    work->call_trials++;
    return insert(work, &record, place);
}

static int32_t running(const search *work) {
    int32_t count = 0;
    for (int32_t i = 0; i < work->at_once; i++) count += work->runners[i].busy;
    return count;
}

/* ---- What the caller sees ------------------------------------------------------------------------ */

/* Trials of the whole search at each rung, as far as they are known. Returns how many in all. */
static int64_t count_trials(int64_t by_rung[VLP_HALVING_RUNGS], const search *work) {
    int64_t planned = work->planned;
    memcpy(by_rung, work->by_rung, sizeof work->by_rung);
    for (int32_t count; work->trials > 0 && (count = next_bracket(work, planned)) > 0;) {
        planned += vlp_halving_trials(count);
        count_bracket(by_rung, count);
    }
    return planned;
}

/* By the mean time of a trial at each rung; at one that was not seen yet, three times that before it. */
static double time_left(const search *work) {
    double now = vlp_trial_clock(), by_time = work->deadline > 0 ? work->deadline - now : INFINITY;
    int64_t by_rung[VLP_HALVING_RUNGS];
    double sum[VLP_HALVING_RUNGS] = {0}, count[VLP_HALVING_RUNGS] = {0}, mean = NAN, left = 0;
    count_trials(by_rung, work);
    for (int64_t i = 0; i < work->finished_count; i++) {
        sum[work->finished[i].rung] += work->finished[i].seconds;
        count[work->finished[i].rung]++;
    }
    for (int32_t rung = 0; rung < VLP_HALVING_RUNGS; rung++) {
        mean = count[rung] > 0 ? sum[rung] / count[rung] : VLP_HALVING_FACTOR * mean;
        double missing = (double)by_rung[rung] - count[rung];
        if (missing > 0) left += missing * mean;
    }
    left /= work->at_once;
    bool limited = work->trials > 0 || work->exhausted;
    double seconds = limited && !isnan(left) ? fmin(left, by_time) : by_time;
    return isinf(seconds) ? NAN : fmax(seconds, 0);
}

static void show(const search *work, const vlp_tune_trial *last) {
    if (!work->options.watch) return;
    int64_t by_rung[VLP_HALVING_RUNGS], total = count_trials(by_rung, work);
    vlp_tune_state state = {.trials = work->finished,
                            .count = work->finished_count,
                            .last = last,
                            .running = running(work),
                            .total = work->trials > 0 || work->exhausted ? total : 0,
                            .seconds = vlp_trial_clock() - work->started,
                            .seconds_left = time_left(work)};
    work->options.watch(work->options.user, &state);
}

/* ---- The loop ------------------------------------------------------------------------------------ */

/* Until a trial is done, or a fifth of a second. */
static void wait_for_trials(search *work) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    bool done = false;
    pthread_mutex_lock(&work->mutex);
    for (int32_t i = 0; i < work->at_once; i++) done |= work->runners[i].busy && work->runners[i].done;
    if (!done) pthread_cond_timedwait(&work->changed, &work->mutex, &until);
    pthread_mutex_unlock(&work->mutex);
}

static void ask(search *work) {
    work->asked = work->asked || vlp_stopped(work->options.observer);
    bool late = work->deadline > 0 && vlp_trial_clock() >= work->deadline;
    if (work->asked || late) atomic_store(&work->stop, true);
}

static vlp_status collect_done(search *work) {
    vlp_status status = VLP_OK;
    bool shown_any = false;
    for (int32_t i = 0; i < work->at_once; i++) {
        runner *slot = &work->runners[i];
        pthread_mutex_lock(&work->mutex);
        bool done = slot->busy && slot->done;
        pthread_mutex_unlock(&work->mutex);
        if (!done) continue;
        pthread_join(slot->thread, NULL);
        slot->busy = false;
        int64_t place = -1;
        /* After a failure the others are only waited for; their results are kept where they can be. */
        vlp_status own = collect(work, slot, &place);
        if (own != VLP_OK && status == VLP_OK) status = own;
        if (place >= 0) show(work, &work->finished[place]);
        shown_any = shown_any || place >= 0;
    }
    if (!shown_any) show(work, NULL);
    return status;
}

/* Trains until there is nothing left, the time is up, or something fails. */
static vlp_status loop(search *work) {
    vlp_status status = VLP_OK;
    char message[1024] = "";
    for (;;) {
        ask(work);
        vlp_status own = atomic_load(&work->stop) ? VLP_OK : start_trials(work);
        if (own == VLP_OK && running(work) == 0) break;
        if (own == VLP_OK) {
            wait_for_trials(work);
            own = collect_done(work);
        }
        if (own == VLP_OK) continue;
        if (status == VLP_OK) {
            status = own;
            snprintf(message, sizeof message, "%s", vlp_error_message());
        }
        atomic_store(&work->stop, true);
    }
    return status == VLP_OK ? VLP_OK : vlp_fail(status, "%s", message);
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status check_options(const vlp_tune_options *options) {
    VLP_TRY(vlp_check_array(options->settings, options->setting_count, "settings"));
    if (options->trials < 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "trials = %lld; it is 0 or more",
                        (long long)options->trials);
    if (!(options->time >= 0) || isinf(options->time))
        return vlp_fail(VLP_ERROR_ARGUMENT, "time = %g is no number of seconds", options->time);
    return VLP_OK;
}

/* Threads of a trial, and trials at a time. */
static vlp_status choose_threads(search *work) {
    const vlp_backend *backend;
    const char *device = work->options.device;
    VLP_TRY(vlp_backend_find(&backend, device ? device : "auto"));
    int32_t total = vlp_thread_count(work->candidates.start.threads);
    bool apart = backend == &vlp_cpu_backend && work->dataset->graph->edges <= SMALL_GRAPH;
    int64_t available, all, fit = MOST_AT_ONCE;
    if (vlp_memory_available(&available, &all)) fit = available / TRIAL_MEMORY;
    work->trial_threads = apart ? 1 : total;
    work->at_once = apart ? total : 1;
    if (work->at_once > fit) work->at_once = fit < 1 ? 1 : (int32_t)fit;
    work->runners = vlp_alloc_zero((size_t)work->at_once, sizeof *work->runners);
    if (!work->runners) return vlp_fail_memory("trials");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&work->mutex, NULL);
    pthread_cond_init(&work->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    work->threads_ready = true;
    return VLP_OK;
}

static vlp_status open_log(search *work) {
    char checksum[33], threads[16], space[8192], start[VLP_SETTINGS_TEXT];
    const vlp_backend *backend;
    VLP_TRY(vlp_backend_find(&backend, work->options.device ? work->options.device : "auto"));
    vlp_dataset_checksum(checksum, work->dataset);
    snprintf(threads, sizeof threads, "%d", work->trial_threads);
    vlp_draws_space(space, sizeof space, &work->candidates);
    vlp_draws_start(start, sizeof start, &work->candidates);
    const vlp_trial_fact facts[] = {
        {"data", checksum},   {"device", backend->name},
        {"threads", threads}, {"base", work->options.base ? work->options.base : ""},
        {"space", space},     {"settings", start}};
    return vlp_trial_log_open(&work->log, work->folder, facts, sizeof facts / sizeof *facts);
}

/* Finished trials are those of the same candidates: their settings have to be the ones drawn now. */
static vlp_status take_up(search *work) {
    for (int64_t i = 0; i < work->log->count; i++) {
        const vlp_trial_record *record = &work->log->records[i];
        /* A bracket is begun only when every one before it has a trial. */
        int64_t possible = VLP_HALVING_BRACKET * (work->log->count + MOST_AT_ONCE);
        char json[VLP_DRAW_JSON] = "";
        int64_t place;
        if (record->candidate < possible) {
            VLP_TRY(vlp_draws_draw(&work->candidates, record->candidate + 1));
            if (record->candidate < work->candidates.count)
                vlp_draws_json(json, &work->candidates, record->candidate, record->rung);
        }
        if (strcmp(json, record->settings) != 0)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s:%lld: candidate %lld has other settings in this search", work->log->path,
                            (long long)i + 2, (long long)record->candidate);
        VLP_TRY(insert(work, record, &place));
    }
    if (work->log->count > 0)
        vlp_log(work->options.observer, "%s: %lld finished trials are taken up", work->folder,
                (long long)work->log->count);
    return VLP_OK;
}

static vlp_status open_folder(search *work) {
    VLP_TRY(vlp_run_lock_take(&work->lock, work->folder));
    if (!vlp_trial_log_exists(work->folder)) {
        vlp_status status = vlp_run_lock_check_free(work->lock);
        if (status == VLP_ERROR_EXISTS)
            return vlp_fail(
                status, "cannot search in %s: it is not a search, and holds files; name a new folder",
                work->folder);
        VLP_TRY(status);
        work->created = true;
    }
    vlp_run_lock_sweep(work->lock);
    return VLP_OK;
}

static vlp_status prepare(search *work, const char *data) {
    vlp_settings given; /* a wrong one is told before anything is read */
    VLP_TRY(check_options(&work->options));
    vlp_settings_default(&given);
    for (int32_t i = 0; i < work->options.setting_count; i++)
        VLP_TRY(vlp_settings_assign(&given, work->options.settings[i]));
    VLP_TRY(open_folder(work));
    vlp_dataset_options opening = {1, given.threads, work->options.observer};
    VLP_TRY(vlp_dataset_open(&work->dataset, data, &opening));
    if (work->dataset->splits[VLP_VALID].count == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%s has no validation split: there is nothing to compare trials by", data);
    VLP_TRY(vlp_draws_open(&work->candidates, work->dataset, &work->options));
    VLP_TRY(choose_threads(work));
    /* Before anything is written: that there are candidates at all. */
    VLP_TRY(vlp_draws_draw(&work->candidates, 1));
    VLP_TRY(open_log(work));
    work->created = false;
    VLP_TRY(vlp_halving_new(&work->halving));
    return take_up(work);
}

static void search_free(search *work) {
    for (int64_t i = 0; i < work->finished_count; i++)
        vlp_free((char *)(uintptr_t)work->finished[i].settings);
    vlp_free(work->finished);
    vlp_free(work->runners);
    if (work->threads_ready) {
        pthread_mutex_destroy(&work->mutex);
        pthread_cond_destroy(&work->changed);
    }
    vlp_halving_free(work->halving);
    vlp_trial_log_free(work->log);
    vlp_draws_close(&work->candidates);
    vlp_dataset_free(work->dataset);
    vlp_run_lock_release(work->lock, work->created);
}

static void fill_report(vlp_tune_report *out, const search *work) {
    const vlp_tune_trial *best = best_of(work);
    *out = (vlp_tune_report){.trials = work->finished_count,
                             .call_trials = work->call_trials,
                             .seconds = vlp_trial_clock() - work->started,
                             .complete = !atomic_load(&work->stop),
                             .best = {.mrr = NAN},
                             .trial_threads = work->trial_threads,
                             .at_once = work->at_once};
    if (!best) return;
    out->best = *best;
    out->best.settings = NULL;
    snprintf(out->settings, sizeof out->settings, "%s", best->settings);
}

static vlp_status finish(vlp_tune_report *report, const search *work, vlp_status status) {
    if (report) fill_report(report, work);
    if (best_of(work)) {
        vlp_status written = write_best(work);
        if (status == VLP_OK) status = written;
    }
    VLP_TRY(status);
    if (work->asked) return vlp_fail_stopped();
    if (best_of(work)) return VLP_OK;
    return work->finished_count > 0
               ? vlp_fail(VLP_ERROR_DIVERGED, "every trial of the search diverged: lower the rates")
               : vlp_fail(
                     VLP_ERROR_ARGUMENT,
                     "the time of %g s was up before a trial was finished: give it more, or shorter "
                     "trainings",
                     work->options.time);
}

vlp_status vlp_tune(vlp_tune_report *report, const char *data, const char *out,
                    const vlp_tune_options *options) {
    VLP_REQUIRE(data);
    VLP_REQUIRE(out);
    search work = {.folder = out, .options = VLP_TUNE_OPTIONS_INIT, .started = vlp_trial_clock()};
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_tune_options, &work.options, options));
    work.trials =
        work.options.trials > 0 || work.options.time > 0 ? work.options.trials : DEFAULT_TRIALS;
    if (work.options.time > 0) work.deadline = work.started + work.options.time;
    vlp_status status = prepare(&work, data);
    if (status == VLP_OK) status = finish(report, &work, loop(&work));
    search_free(&work);
    return status;
}
