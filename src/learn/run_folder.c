#include "learn/run_folder.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/safetensors.h"

/* ---- Facts and plain files ----------------------------------------------------------------------- */

vlp_status vlp_run_folder_facts_of(vlp_run_facts *out, const vlp_dataset *dataset, const char *folder) {
    *out = (vlp_run_facts){0};
    char path[PATH_MAX];
    if (!realpath(folder, path)) return vlp_fail_io("find", folder, errno);
    if (strlen(path) >= sizeof out->data)
        return vlp_fail(VLP_ERROR_IO, "the path of %s is too long", folder);
    memcpy(out->data, path, strlen(path) + 1);
    snprintf(out->version, sizeof out->version, "%s", vlp_version());
    vlp_dataset_checksum(out->checksum, dataset);
    return VLP_OK;
}

bool vlp_run_folder_exists(const char *folder) {
    char *path = vlp_path_join(folder, "config.ini");
    bool there = path && vlp_path_exists(path);
    vlp_free(path);
    return there;
}

/* A writer for a file of the folder. */
static vlp_status open_file(vlp_writer **out, const char *folder, const char *name) {
    char *path = vlp_path_join(folder, name);
    if (!path) return vlp_fail_memory("a file name");
    vlp_status status = vlp_writer_open(out, path);
    vlp_free(path);
    return status;
}

static vlp_status write_config(const char *folder, const vlp_settings *settings,
                               const vlp_run_facts *facts) {
    vlp_writer *writer = NULL;
    VLP_TRY(open_file(&writer, folder, "config.ini"));
    vlp_writer_text(writer, "; vlp ");
    vlp_writer_text(writer, facts->version);
    vlp_writer_text(writer, "\n; data ");
    vlp_writer_text(writer, facts->data);
    vlp_writer_text(writer, "\n; data checksum ");
    vlp_writer_text(writer, facts->checksum);
    vlp_writer_text(writer, "\n");
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

/* Row number = id; name, then label where there is one. */
static vlp_status write_names(const char *folder, const vlp_dataset *dataset, bool entities) {
    vlp_writer *writer = NULL;
    VLP_TRY(open_file(&writer, folder, entities ? "entities.tsv" : "relations.tsv"));
    int32_t count = entities ? vlp_dataset_entity_count(dataset) : vlp_dataset_relation_count(dataset);
    for (int32_t i = 0; i < count; i++) {
        vlp_writer_text(writer, entities ? vlp_dataset_entity_name(dataset, i)
                                         : vlp_dataset_relation_name(dataset, i));
        const char *label = entities ? vlp_dataset_entity_label(dataset, i) : NULL;
        if (label) {
            vlp_writer_text(writer, "\t");
            vlp_writer_text(writer, label);
        }
        vlp_writer_text(writer, "\n");
    }
    return vlp_writer_commit(&writer);
}

vlp_status vlp_run_folder_write_names(const char *folder, const vlp_dataset *dataset) {
    VLP_TRY(write_names(folder, dataset, true));
    return write_names(folder, dataset, false);
}

vlp_status vlp_run_folder_create(const char *folder, const vlp_settings *settings,
                                 const vlp_dataset *dataset, const vlp_run_facts *facts) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return vlp_fail_io("make", folder, errno);
    VLP_TRY(vlp_run_folder_write_names(folder, dataset));
    /* Last: a folder with a config.ini is a run. */
    return write_config(folder, settings, facts);
}

vlp_status vlp_run_folder_settings(vlp_settings *out, const char *folder) {
    char *path = vlp_path_join(folder, "config.ini");
    if (!path) return vlp_fail_memory("a file name");
    vlp_settings_default(out);
    vlp_status status = vlp_path_exists(path)
                            ? vlp_recipe_read(out, path)
                            : vlp_fail(VLP_ERROR_IO, "%s is not a run: it has no config.ini", folder);
    vlp_free(path);
    return status;
}

/* ---- Weight files -------------------------------------------------------------------------------- */

enum { MAX_TENSORS = 3 * VLP_TABLES + 1, MAX_PAIRS = 12 };

/* Values that go into a file's metadata, as text. */
typedef struct metadata {
    vlp_pair pairs[MAX_PAIRS];
    char texts[MAX_PAIRS][40];
    int32_t count;
} metadata;

static void put(metadata *data, const char *key, const char *value) {
    data->pairs[data->count++] = (vlp_pair){key, value};
}

static void put_number(metadata *data, const char *key, double value) {
    char *text = data->texts[data->count];
    snprintf(text, sizeof data->texts[0], "%.17g", value);
    put(data, key, text);
}

static void describe(metadata *data, const vlp_progress_state *progress, const vlp_run_facts *facts) {
    put(data, "data", facts->data);
    put(data, "data_checksum", facts->checksum);
    put(data, "version", facts->version);
    put_number(data, "step", (double)progress->step);
    put_number(data, "best_mrr", progress->best_mrr);
    put_number(data, "best_step", (double)progress->best_step);
    put_number(data, "waited", progress->waited);
    put_number(data, "mixture_vertical", (double)progress->mixture.vertical);
    put_number(data, "mixture_horizontal", (double)progress->mixture.horizontal);
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
    float *host = vlp_alloc(bytes, 1);
    if (!host) return vlp_fail_memory("saving");
    int32_t at = copies->count++;
    copies->memory[at] = host;
    VLP_TRY(model->backend->memory->download(model->compute, host, values, bytes));
    snprintf(copies->names[at], sizeof copies->names[at], "%s%s", table->name, suffix);
    copies->tensors[at] =
        (vlp_tensor){copies->names[at], VLP_F32, 2, {table->rows, table->width, 0, 0}, host};
    return VLP_OK;
}

static void copies_free(host_copies *copies) {
    for (int32_t i = 0; i < copies->count; i++) vlp_free(copies->memory[i]);
}

static vlp_status copy_tables(host_copies *copies, const vlp_model *model, bool moments) {
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        if (table->rows == 0) continue;
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
    *out = strtod(text, &end);
    if (end == text || *end) return vlp_fail(VLP_ERROR_FORMAT, "%s: '%s' is not a number", path, key);
    return VLP_OK;
}

static vlp_status read_facts(vlp_run_facts *facts, const vlp_safetensors *file, const char *path) {
    const char *text;
    *facts = (vlp_run_facts){0};
    VLP_TRY(get(&text, file, path, "data"));
    snprintf(facts->data, sizeof facts->data, "%s", text);
    VLP_TRY(get(&text, file, path, "data_checksum"));
    snprintf(facts->checksum, sizeof facts->checksum, "%s", text);
    VLP_TRY(get(&text, file, path, "version"));
    snprintf(facts->version, sizeof facts->version, "%s", text);
    return VLP_OK;
}

static vlp_status read_progress(vlp_progress_state *out, const vlp_safetensors *file, const char *path) {
    double step, best_step, waited, vertical, horizontal;
    VLP_TRY(get_number(&step, file, path, "step"));
    VLP_TRY(get_number(&out->best_mrr, file, path, "best_mrr"));
    VLP_TRY(get_number(&best_step, file, path, "best_step"));
    VLP_TRY(get_number(&waited, file, path, "waited"));
    VLP_TRY(get_number(&vertical, file, path, "mixture_vertical"));
    VLP_TRY(get_number(&horizontal, file, path, "mixture_horizontal"));
    out->step = (int64_t)step;
    out->best_step = (int64_t)best_step;
    out->waited = (int32_t)waited;
    out->mixture = (vlp_mixture){(float)vertical, (float)horizontal};
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
    for (int id = 0; id < VLP_TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        if (table->rows == 0) continue;
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

static vlp_status load_state_file(vlp_model *model, vlp_progress_state *progress, vlp_run_facts *facts,
                                  const char *path) {
    vlp_safetensors *file = NULL;
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_safetensors_open(&file, path, true));
    VLP_CHECK(read_facts(facts, file, path));
    VLP_CHECK(read_progress(progress, file, path));
    VLP_CHECK(read_tables(model, file, true));
out:
    vlp_safetensors_free(file);
    return status;
}

vlp_status vlp_run_folder_load_state(vlp_model *model, vlp_progress_state *progress,
                                     vlp_run_facts *facts, bool *found, const char *folder,
                                     const vlp_observer *observer) {
    const char *const names[2] = {"state.safetensors", "state.previous.safetensors"};
    vlp_status status = VLP_OK;
    *found = false;
    for (int i = 0; i < 2 && !*found; i++) {
        char *path = vlp_path_join(folder, names[i]);
        if (!path) return vlp_fail_memory("a file name");
        if (vlp_path_exists(path)) {
            status = load_state_file(model, progress, facts, path);
            *found = status == VLP_OK;
            if (!*found) {
                if (status != VLP_ERROR_FORMAT) i = 1;
                vlp_log(observer, "%s%s", vlp_error_message(), i == 0 ? "; trying the one before" : "");
            }
        }
        vlp_free(path);
    }
    return *found ? VLP_OK : status;
}

/* ---- Metrics ------------------------------------------------------------------------------------- */

vlp_status vlp_run_folder_save_metrics(const char *folder, const char *lines) {
    vlp_writer *writer = NULL;
    VLP_TRY(open_file(&writer, folder, "metrics.jsonl"));
    vlp_writer_text(writer, lines);
    return vlp_writer_commit(&writer);
}

vlp_status vlp_run_folder_load_metrics(char **out, const char *folder, int64_t last_step) {
    *out = NULL;
    char *path = vlp_path_join(folder, "metrics.jsonl");
    if (!path) return vlp_fail_memory("a file name");
    vlp_map map = {"", 0};
    vlp_status status = VLP_OK;
    size_t keep = 0;
    if (vlp_path_exists(path)) VLP_CHECK(vlp_map_open(&map, path));
    /* Lines of steps that were done after the last save are done again. */
    while (keep < map.size) {
        const char *line = map.data + keep;
        const char *newline = memchr(line, '\n', map.size - keep);
        long long step;
        char start[40] = "";
        memcpy(start, line, map.size - keep < 39 ? map.size - keep : 39);
        if (!newline || sscanf(start, "{\"step\":%lld", &step) != 1 || step > last_step) break;
        keep = (size_t)(newline - map.data) + 1;
    }
    *out = vlp_alloc(keep + 1, 1);
    if (!*out) {
        status = vlp_fail_memory("metrics");
        goto out;
    }
    memcpy(*out, map.data, keep);
    (*out)[keep] = '\0';
out:
    vlp_map_close(&map);
    vlp_free(path);
    return status;
}
