/* Opens a trained run: settings, data set, backend, weights. */
#include <string.h>

#include "run/run_internal.h"

static vlp_status fill(vlp_run *run, const vlp_run_options *options) {
    VLP_TRY(vlp_run_folder_settings(&run->settings, run->folder));
    if (options->threads > 0) run->settings.threads = options->threads;
    VLP_TRY(vlp_run_folder_load_facts(&run->facts, run->folder));
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
    vlp_model_shape shape = {.options = {run->settings.model, run->settings.dim,
                                         run->settings.relation_dim, run->settings.norm,
                                         run->settings.margin},
                             .entities = vlp_dataset_entity_count(run->dataset),
                             .relations = 2 * vlp_dataset_relation_count(run->dataset),
                             .components = vlp_settings_components(&run->settings)};
    VLP_TRY(vlp_model_new(&run->model, run->backend, run->compute, &shape, false));
    VLP_TRY(vlp_run_folder_load_model(run->model, &run->progress, &run->facts, run->folder));
    return vlp_run_gate_open(run);
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
    vlp_run_gate_free(run);
    vlp_model_free(run->model);
    if (run->backend) run->backend->close(run->compute);
    vlp_dataset_free(run->dataset);
    vlp_free(run->folder);
    vlp_free(run);
}

const vlp_dataset *vlp_run_dataset(const vlp_run *run) {
    return run->dataset;
}
