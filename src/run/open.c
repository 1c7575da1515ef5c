/* Opens a trained run: settings, data set, backend, weights. */
#include <string.h>

#include "base/options.h"
#include "run/run_internal.h"

/* The data set that is named, or the run's own; a run of format 1 has none, and needs its folder. */
static vlp_status open_dataset(vlp_run *run, const vlp_run_options *options) {
    if (!options->data && vlp_run_folder_has_data(run->folder))
        return vlp_run_folder_read_data(&run->dataset, run->folder, &run->facts, run->settings.threads);
    const char *data = options->data ? options->data : run->facts.data;
    if (!*data)
        return vlp_fail(VLP_ERROR_IO,
                        "%s has no triples.tsv.gz, and was trained on a data set in memory",
                        run->folder);
    vlp_dataset_options opening = {1, run->settings.threads, options->observer};
    VLP_TRY(vlp_dataset_open(&run->dataset, data, &opening));
    char checksum[33];
    vlp_dataset_checksum(checksum, run->dataset);
    if (strcmp(checksum, run->facts.checksum) != 0)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s is not the data set that %s was trained on: its names or triples differ",
                        data, run->folder);
    return VLP_OK;
}

static vlp_status fill(vlp_run *run, const vlp_run_options *options) {
    VLP_TRY(vlp_run_folder_settings(&run->settings, run->folder));
    VLP_TRY(vlp_run_folder_load_facts(&run->facts, run->folder));
    VLP_TRY(vlp_run_folder_verify(&run->facts, &run->settings, run->folder));
    if (options->threads > 0) run->settings.threads = options->threads;
    VLP_TRY(open_dataset(run, options));
    VLP_TRY(vlp_backend_find(&run->backend, options->device ? options->device : "auto"));
    VLP_TRY(run->backend->open(&run->compute, run->settings.threads));
    vlp_model_shape shape = vlp_settings_shape(&run->settings, run->dataset);
    VLP_TRY(vlp_model_new(&run->model, run->backend, run->compute, &shape, false));
    VLP_TRY(vlp_run_folder_load_model(run->model, &run->progress, &run->facts, run->folder));
    return vlp_run_gate_open(run);
}

vlp_status vlp_run_open(vlp_run **out, const char *folder, const vlp_run_options *given) {
    VLP_REQUIRE(out);
    *out = NULL;
    VLP_REQUIRE(folder);
    vlp_run_options options = VLP_RUN_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_run_options, &options, given));
    VLP_TRY(vlp_check_threads(options.threads));
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
    vlp_run_gate_free(run);
    vlp_model_free(run->model);
    if (run->backend) run->backend->close(run->compute);
    vlp_dataset_free(run->dataset);
    vlp_free(run->folder);
    vlp_free(run);
}

const vlp_dataset *vlp_run_dataset(const vlp_run *run) {
    return run ? run->dataset : NULL;
}
