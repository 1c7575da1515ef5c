#include "learn/run_folder.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain_locale.h"
#include "store/safetensors.h"

/* ---- Facts and config.ini ------------------------------------------------------------------------ */

vlp_status vlp_run_folder_facts_of(vlp_run_facts *out, const vlp_dataset *dataset,
                                   const vlp_settings *settings) {
    *out = (vlp_run_facts){.format = VLP_RUN_FORMAT};
    if (dataset->folder) {
        char path[PATH_MAX];
        /* A folder that is gone by now is named as it was when the data set was read. */
        const char *folder = realpath(dataset->folder, path) ? path : dataset->folder;
        if (strlen(folder) >= sizeof out->data)
            return vlp_fail(VLP_ERROR_IO, "the path of %s is too long", dataset->folder);
        memcpy(out->data, folder, strlen(folder) + 1);
    }
    snprintf(out->version, sizeof out->version, "%s", vlp_version());
    vlp_dataset_checksum(out->checksum, dataset);
    vlp_settings_describe(out->settings, out->digest, settings);
    return VLP_OK;
}

bool vlp_run_folder_exists(const char *folder) {
    char *path = vlp_path_join(folder, "config.ini");
    bool there = path && vlp_path_exists(path);
    vlp_free(path);
    return there;
}

vlp_status vlp_run_folder_write_config(const char *folder, const vlp_settings *settings,
                                       const vlp_run_facts *facts) {
    char *path = vlp_path_join(folder, "config.ini");
    if (!path) return vlp_fail_memory("a file name");
    vlp_writer *writer = NULL;
    vlp_status status = vlp_writer_open(&writer, path);
    vlp_free(path);
    VLP_TRY(status);
    vlp_writer_format(writer, "; vlp %s\n; format %d\n", facts->version, facts->format);
    if (*facts->data) {
        vlp_writer_text(writer, "; data ");
        vlp_writer_text(writer, facts->data);
        vlp_writer_text(writer, "\n");
    }
    vlp_writer_format(writer, "; data checksum %s\n", facts->checksum);
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        char value[64];
        vlp_settings_get(value, settings, &table[i]);
        if (i == 0 || strcmp(table[i].section, table[i - 1].section) != 0)
            vlp_writer_format(writer, "\n[%s]\n", table[i].section);
        vlp_writer_format(writer, "%s = %s\n", table[i].name, value);
    }
    return vlp_writer_commit(&writer);
}

static vlp_status check_format(const char *path, long format) {
    if (format <= VLP_RUN_FORMAT) return VLP_OK;
    return vlp_fail(VLP_ERROR_FORMAT,
                    "%s was written by a newer version of vlp (format %ld; this one reads up to %d)",
                    path, format, VLP_RUN_FORMAT);
}

/* The format that the comments at the top of config.ini state: settings of a newer one may not be known
 * here, so it is checked before they are read. */
static vlp_status check_config_format(const char *path) {
    static const char key[] = "; format ";
    const size_t length = sizeof key - 1;
    vlp_map map = {"", 0};
    VLP_TRY(vlp_map_open(&map, path));
    long format = 1;
    const char *end = map.data + map.size, *line = map.data;
    while (line < end && *line == ';') {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline) break;
        if ((size_t)(newline - line) > length && memcmp(line, key, length) == 0)
            format = strtol(line + length, NULL, 10); /* the newline ends it */
        line = newline + 1;
    }
    vlp_map_close(&map);
    return check_format(path, format);
}

vlp_status vlp_run_folder_settings(vlp_settings *out, const char *folder) {
    char *path = vlp_path_join(folder, "config.ini");
    if (!path) return vlp_fail_memory("a file name");
    vlp_settings_default(out);
    vlp_status status = VLP_OK;
    if (!vlp_path_exists(path)) {
        status = vlp_fail(VLP_ERROR_IO, "%s is not a run: it has no config.ini", folder);
        goto out;
    }
    VLP_CHECK(check_config_format(path));
    VLP_CHECK(vlp_recipe_read(out, path));
out:
    vlp_free(path);
    return status;
}

vlp_status vlp_run_folder_verify(const vlp_run_facts *facts, const vlp_settings *settings,
                                 const char *folder) {
    if (!*facts->digest) return VLP_OK;
    char *where = vlp_path_join(folder, "config.ini does not fit the weights beside it");
    if (!where) return vlp_fail_memory("a file name");
    vlp_status status = vlp_settings_verify(settings, facts->settings, facts->digest, where);
    vlp_free(where);
    return status;
}

/* ---- Weight files -------------------------------------------------------------------------------- */

enum { MAX_TENSORS = 3 * VLP_MAX_TABLES, MAX_PAIRS = 14 + VLP_COMPONENTS, KEY_SIZE = 48 };

/* Values that go into a file's metadata, as text. */
typedef struct metadata {
    vlp_pair pairs[MAX_PAIRS];
    char texts[MAX_PAIRS][40];
    char weight_keys[VLP_COMPONENTS][KEY_SIZE];
    int32_t count;
} metadata;

static void put(metadata *data, const char *key, const char *value) {
    assert(data->count < MAX_PAIRS);
    data->pairs[data->count++] = (vlp_pair){key, value};
}

static void put_number(metadata *data, const char *key, double value) {
    char *text = data->texts[data->count];
    vlp_plain_locale locale = vlp_plain_locale_begin();
    snprintf(text, sizeof data->texts[0], "%.17g", value);
    vlp_plain_locale_end(locale);
    put(data, key, text);
}

static void describe(metadata *data, const vlp_progress_state *progress, const vlp_run_facts *facts) {
    put_number(data, "format", facts->format);
    put(data, "data", facts->data);
    put(data, "data_checksum", facts->checksum);
    put(data, "version", facts->version);
    put(data, "settings", facts->settings);
    put(data, "settings_digest", facts->digest);
    put_number(data, "step", (double)progress->step);
    put_number(data, "steps", (double)progress->steps);
    put_number(data, "schedule_start", (double)progress->schedule_start);
    put_number(data, "best_mrr", progress->best_mrr);
    put_number(data, "best_step", (double)progress->best_step);
    put_number(data, "waited", progress->waited);
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        snprintf(data->weight_keys[c], KEY_SIZE, "weight_%s", vlp_component_name((vlp_component)c));
        put_number(data, data->weight_keys[c], (double)progress->mixture.weights[c]);
    }
}

/* Host copies of tables, freed together. */
typedef struct host_copies {
    void *memory[MAX_TENSORS];
    char names[MAX_TENSORS][64];
    vlp_tensor tensors[MAX_TENSORS];
    int32_t count;
} host_copies;

static vlp_status copy_table(host_copies *copies, const vlp_model *model, const vlp_table *table,
                             const float *values, const char *suffix) {
    size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
    int32_t at = copies->count++;
    if (model->backend != &vlp_cpu_backend) { /* the CPU's tables are written as they are */
        float *host = copies->memory[at] = vlp_alloc(bytes, 1);
        if (!host) return vlp_fail_memory("saving");
        VLP_TRY(model->backend->memory->download(model->compute, host, values, bytes));
        values = host;
    }
    snprintf(copies->names[at], sizeof copies->names[at], "%s%s", table->name, suffix);
    copies->tensors[at] =
        (vlp_tensor){copies->names[at], VLP_F32, 2, {table->rows, table->width, 0, 0}, values};
    return VLP_OK;
}

static void copies_free(host_copies *copies) {
    for (int32_t i = 0; i < copies->count; i++) vlp_free(copies->memory[i]);
}

static vlp_status copy_tables(host_copies *copies, const vlp_model *model, bool moments) {
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_table *table = &model->tables[i];
        VLP_TRY(copy_table(copies, model, table, table->value, ""));
        if (!moments) continue;
        VLP_TRY(copy_table(copies, model, table, table->first, ".first"));
        VLP_TRY(copy_table(copies, model, table, table->second, ".second"));
    }
    return VLP_OK;
}

vlp_status vlp_run_folder_save_model(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts) {
    vlp_status status = VLP_OK;
    host_copies copies = {0};
    metadata data = {0};
    describe(&data, progress, facts);
    char *path = vlp_path_join(folder, "model.safetensors");
    if (!path) return vlp_fail_memory("a file name");
    VLP_CHECK(copy_tables(&copies, model, false));
    VLP_CHECK(vlp_safetensors_write(path, copies.tensors, copies.count, data.pairs, data.count));
out:
    copies_free(&copies);
    vlp_free(path);
    return status;
}

vlp_status vlp_run_folder_save_state(const char *folder, const vlp_model *model,
                                     const vlp_progress_state *progress, const vlp_run_facts *facts) {
    vlp_status status = VLP_OK;
    host_copies copies = {0};
    metadata data = {0};
    describe(&data, progress, facts);
    char *path = vlp_path_join(folder, "state.safetensors");
    char *previous = vlp_path_join(folder, "state.previous.safetensors");
    if (!path || !previous) {
        status = vlp_fail_memory("a file name");
        goto out;
    }
    VLP_CHECK(copy_tables(&copies, model, true));
    /* The last state becomes the one before only by a second name: at no moment is there none. */
    if (vlp_path_exists(path)) {
        VLP_CHECK(vlp_writer_check(previous)); /* the rename would replace anything */
        char *second = vlp_path_join(folder, "state.previous.safetensors.link");
        if (!second) {
            status = vlp_fail_memory("a file name");
            goto out;
        }
        unlink(second);
        if (link(path, second) != 0 || rename(second, previous) != 0)
            status = vlp_fail_io("keep", previous, errno);
        vlp_free(second);
        if (status != VLP_OK) goto out;
    }
    VLP_CHECK(vlp_safetensors_write(path, copies.tensors, copies.count, data.pairs, data.count));
out:
    copies_free(&copies);
    vlp_free(path);
    vlp_free(previous);
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static vlp_status get(const char **out, const vlp_safetensors *file, const char *path, const char *key) {
    *out = vlp_safetensors_metadata(file, key);
    if (*out) return VLP_OK;
    return vlp_fail(VLP_ERROR_FORMAT, "%s: it does not say '%s'; it is not a weight file of vlp", path,
                    key);
}

static vlp_status get_number(double *out, const vlp_safetensors *file, const char *path,
                             const char *key) {
    const char *text;
    VLP_TRY(get(&text, file, path, key));
    char *end;
    vlp_plain_locale locale = vlp_plain_locale_begin();
    *out = strtod(text, &end);
    vlp_plain_locale_end(locale);
    if (end == text || *end) return vlp_fail(VLP_ERROR_FORMAT, "%s: '%s' is not a number", path, key);
    return VLP_OK;
}

/* As get_number, for what files of format 1 do not say. */
static vlp_status get_newer(double *out, const vlp_safetensors *file, const char *path, const char *key,
                            double fallback) {
    *out = fallback;
    return vlp_safetensors_metadata(file, key) ? get_number(out, file, path, key) : VLP_OK;
}

static vlp_status read_facts(vlp_run_facts *facts, const vlp_safetensors *file, const char *path) {
    const char *text;
    double format;
    *facts = (vlp_run_facts){0};
    VLP_TRY(get_newer(&format, file, path, "format", 1));
    if (!(format >= 1 && format <= INT32_MAX))
        return vlp_fail(VLP_ERROR_FORMAT, "%s: format %g is not possible", path, format);
    facts->format = (int32_t)format;
    VLP_TRY(check_format(path, facts->format));
    VLP_TRY(get(&text, file, path, "data"));
    snprintf(facts->data, sizeof facts->data, "%s", text);
    VLP_TRY(get(&text, file, path, "data_checksum"));
    snprintf(facts->checksum, sizeof facts->checksum, "%s", text);
    VLP_TRY(get(&text, file, path, "version"));
    snprintf(facts->version, sizeof facts->version, "%s", text);
    if (facts->format == 1) return VLP_OK;
    VLP_TRY(get(&text, file, path, "settings"));
    snprintf(facts->settings, sizeof facts->settings, "%s", text);
    VLP_TRY(get(&text, file, path, "settings_digest"));
    snprintf(facts->digest, sizeof facts->digest, "%s", text);
    return VLP_OK;
}

/* A component that the file does not name has weight 0: the file is older than it. */
static vlp_status read_weights(vlp_mixture *out, const vlp_safetensors *file, const char *path) {
    char key[KEY_SIZE], old_key[KEY_SIZE];
    bool found = false;
    *out = (vlp_mixture){{0}};
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        double weight = 0;
        snprintf(key, sizeof key, "weight_%s", vlp_component_name((vlp_component)c));
        snprintf(old_key, sizeof old_key, "mixture_%s", vlp_component_name((vlp_component)c));
        const char *there = vlp_safetensors_metadata(file, key) ? key : old_key;
        if (!vlp_safetensors_metadata(file, there)) continue;
        VLP_TRY(get_number(&weight, file, path, there));
        out->weights[c] = (float)weight;
        found = true;
    }
    const char *text;
    return found ? VLP_OK : get(&text, file, path, "weight_horizontal");
}

static vlp_status read_progress(vlp_progress_state *out, const vlp_safetensors *file, const char *path) {
    double step, steps, schedule_start, best_step, waited;
    VLP_TRY(get_number(&step, file, path, "step"));
    VLP_TRY(get_newer(&steps, file, path, "steps", 0));
    VLP_TRY(get_newer(&schedule_start, file, path, "schedule_start", 0));
    VLP_TRY(get_number(&out->best_mrr, file, path, "best_mrr"));
    VLP_TRY(get_number(&best_step, file, path, "best_step"));
    VLP_TRY(get_number(&waited, file, path, "waited"));
    VLP_TRY(read_weights(&out->mixture, file, path));
    out->step = (int64_t)step;
    out->steps = (int64_t)steps;
    out->schedule_start = (int64_t)schedule_start;
    out->best_step = (int64_t)best_step;
    out->waited = (int32_t)waited;
    return VLP_OK;
}

static vlp_status read_values(float *to, const vlp_model *model, const vlp_table *table,
                              const vlp_safetensors *file, const char *suffix) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", table->name, suffix);
    const vlp_tensor *tensor;
    int64_t shape[2] = {table->rows, table->width};
    VLP_TRY(vlp_safetensors_need(&tensor, file, name, VLP_F32, 2, shape));
    return model->backend->memory->upload(model->compute, to, tensor->data,
                                          (size_t)table->rows * (size_t)table->width * sizeof(float));
}

static vlp_status read_tables(const vlp_model *model, const vlp_safetensors *file, bool moments) {
    for (int32_t i = 0; i < model->table_count; i++) {
        const vlp_table *table = &model->tables[i];
        VLP_TRY(read_values(table->value, model, table, file, ""));
        if (!moments) continue;
        VLP_TRY(read_values(table->first, model, table, file, ".first"));
        VLP_TRY(read_values(table->second, model, table, file, ".second"));
    }
    return VLP_OK;
}

vlp_status vlp_run_folder_load_facts(vlp_run_facts *facts, const char *folder) {
    char *path = vlp_path_join(folder, "model.safetensors");
    if (!path) return vlp_fail_memory("a file name");
    vlp_safetensors *file = NULL;
    vlp_status status = VLP_OK;
    if (!vlp_path_exists(path)) {
        status = vlp_fail(VLP_ERROR_IO, "%s has no model yet: training has saved none", folder);
        goto out;
    }
    VLP_CHECK(vlp_safetensors_open(&file, path, true));
    VLP_CHECK(read_facts(facts, file, path));
out:
    vlp_safetensors_free(file);
    vlp_free(path);
    return status;
}

vlp_status vlp_run_folder_load_model(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, const char *folder) {
    char *path = vlp_path_join(folder, "model.safetensors");
    if (!path) return vlp_fail_memory("a file name");
    vlp_safetensors *file = NULL;
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_safetensors_open(&file, path, true));
    VLP_CHECK(read_facts(facts, file, path));
    VLP_CHECK(read_progress(progress, file, path));
    VLP_CHECK(read_tables(model, file, false));
out:
    vlp_safetensors_free(file);
    vlp_free(path);
    return status;
}

static vlp_status check_training(const vlp_run_facts *facts, const vlp_run_training *training) {
    char checksum[33];
    VLP_TRY(vlp_run_folder_verify(facts, training->settings, training->folder));
    vlp_dataset_checksum(checksum, training->dataset);
    if (strcmp(facts->checksum, checksum) == 0) return VLP_OK;
    return vlp_fail(VLP_ERROR_FORMAT,
                    "%s was trained on another data set than %s: the names or triples differ",
                    training->folder, vlp_dataset_title(training->dataset));
}

/* *damaged false on failure: the file is whole, but too new, or of another training. */
static vlp_status load_state_file(vlp_model *model, vlp_progress_state *progress, vlp_run_facts *facts,
                                  bool *damaged, const char *path, const vlp_run_training *training) {
    vlp_safetensors *file = NULL;
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_safetensors_open(&file, path, true));
    VLP_CHECK(read_facts(facts, file, path));
    VLP_CHECK(read_progress(progress, file, path));
    /* Before the tables, whose shapes follow from settings and data set. */
    *damaged = false;
    VLP_CHECK(check_training(facts, training));
    *damaged = true;
    VLP_CHECK(read_tables(model, file, true));
out:
    if (facts->format > VLP_RUN_FORMAT) *damaged = false;
    vlp_safetensors_free(file);
    return status;
}

vlp_status vlp_run_folder_load_state(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, bool *found, const vlp_run_training *training,
                                     const vlp_observer *observer) {
    const char *const names[2] = {"state.safetensors", "state.previous.safetensors"};
    vlp_status status = VLP_OK;
    *found = false;
    for (int i = 0; i < 2 && !*found; i++) {
        char *path = vlp_path_join(training->folder, names[i]);
        if (!path) return vlp_fail_memory("a file name");
        if (vlp_path_exists(path)) {
            bool damaged = true;
            *facts = (vlp_run_facts){0};
            status = load_state_file(model, progress, facts, &damaged, path, training);
            *found = status == VLP_OK;
            if (!*found) {
                if (status != VLP_ERROR_FORMAT || !damaged) i = 1;
                if (i == 0) vlp_log(observer, "%s; trying the one before", vlp_error_message());
            }
        }
        vlp_free(path);
    }
    return *found ? VLP_OK : status;
}
