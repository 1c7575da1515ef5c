/* Embeddings for an aggregator or a path model that is trained alone.
 *
 * A folder of arrays holds entities.npy and the arrays of relations as an export writes them: those that
 * the model's row names. Rows belong to the names in entities.tsv and relations.tsv where these are in
 * the folder, and are in the order of the data set's ids where they are not. Relations may come without
 * their inverses: these follow from them, and the scores stay the same read backwards. */
#include "learn/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/run_folder.h"
#include "store/npy.h"

/* ---- Settings ------------------------------------------------------------------------------------ */

/* The settings that make the tables of a component what they are. */
static bool shapes_component(vlp_component component, const char *name) {
    static const char *const names[VLP_COMPONENTS][6] = {
        [VLP_HORIZONTAL] = {"model", "dim", "relation_dim", "norm", "margin"},
        [VLP_VERTICAL] = {"references", "references_per_head", "references_edges", "references_choice",
                          "references_own_edge"},
        [VLP_PATH] = {"path_layers", "path_dim", "path_states", "path_edges"}};
    for (int i = 0; i < 6 && names[component][i]; i++)
        if (strcmp(name, names[component][i]) == 0) return true;
    return false;
}

vlp_status vlp_base_start(vlp_settings *settings, const char *base) {
    vlp_settings_default(settings);
    if (vlp_run_folder_exists(base))
        VLP_TRY(vlp_run_folder_settings(settings, base));
    else
        settings->dim = 0;
    settings->vertical = true;
    settings->vertical_gradient = false;
    settings->trains = VLP_TRAINS_ALL;
    return VLP_OK;
}

/* The settings of a base; of a folder of arrays, those of embeddings alone. */
static vlp_status base_settings(vlp_settings *out, const char *base) {
    vlp_settings_default(out);
    out->vertical = false;
    return vlp_run_folder_exists(base) ? vlp_run_folder_settings(out, base) : VLP_OK;
}

/* What is trained where `trains` does not say it: the path model where it is asked for and the base has
 * none, else the aggregator. */
static vlp_status choose_trained(vlp_settings *settings, const vlp_settings *saved) {
    if (settings->trains == VLP_TRAINS_ALL)
        settings->trains = settings->path && !saved->path ? VLP_TRAINS_PATH : VLP_TRAINS_AGGREGATOR;
    if (settings->trains == VLP_TRAINS_PATH) { /* the aggregator is the base's */
        settings->vertical = settings->vertical && saved->vertical;
        return VLP_OK;
    }
    if (!settings->vertical)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "a base is for training the aggregator (vertical = on) or the path model (path "
                        "= on) over it");
    if (settings->path && !saved->path)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "trains = aggregator trains no path model, and the base has none; set path = "
                        "off");
    return VLP_OK;
}

/* The components that a run with these settings takes from its base, as bits. */
static unsigned taken_components(const vlp_settings *settings, const vlp_settings *saved) {
    unsigned taken = vlp_settings_components(settings) & vlp_settings_components(saved);
    switch ((vlp_trains)settings->trains) {
    case VLP_TRAINS_ALL:
        break;
    case VLP_TRAINS_AGGREGATOR:
        return taken & ~(1u << VLP_VERTICAL);
    case VLP_TRAINS_PATH:
        return taken & ~(1u << VLP_PATH);
    }
    return taken;
}

static vlp_status open_array(vlp_array *out, const char *folder, const char *name) {
    char *path = vlp_path_join(folder, name);
    if (!path) return vlp_fail_memory("a file name");
    vlp_status status = vlp_npy_read(out, path);
    if (status == VLP_OK && out->dimensions < 2)
        status =
            vlp_fail(VLP_ERROR_FORMAT, "%s has %d dimensions; a table has two, or three of matrices",
                     path, out->dimensions);
    if (status != VLP_OK) vlp_array_free(out);
    vlp_free(path);
    return status;
}

/* Floats of a row. */
static int64_t width_of(const vlp_array *array) {
    int64_t width = 1;
    for (int32_t i = 1; i < array->dimensions; i++) width *= array->shape[i];
    return width;
}

static bool has_file(const char *folder, const char *name) {
    char *path = vlp_path_join(folder, name);
    bool there = path && vlp_path_exists(path);
    vlp_free(path);
    return there;
}

static vlp_status settle_array_sizes(vlp_settings *settings, const char *base) {
    if (!has_file(base, "entities.npy"))
        return vlp_fail(VLP_ERROR_IO,
                        "%s is neither a run (no config.ini) nor a folder of arrays (no entities.npy)",
                        base);
    vlp_array array = {0};
    VLP_TRY(open_array(&array, base, "entities.npy"));
    const vlp_model_row *model = vlp_model_row_of(settings->model);
    vlp_transform_traits traits = vlp_transform_traits_of(model->transform);
    int64_t width = width_of(&array), parts = traits.parts;
    vlp_array_free(&array);
    if (width % parts != 0 || width / parts > INT32_MAX)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s/entities.npy has rows of %lld numbers; %s takes %lld parts of the same size",
                        base, (long long)width, model->name, (long long)parts);
    if (settings->dim != 0 && settings->dim != width / parts)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%s/entities.npy has rows for dim = %lld, not %d", base,
                        (long long)(width / parts), settings->dim);
    settings->dim = (int32_t)(width / parts);
    if (model->relation_dim_array && settings->relation_dim == 0) {
        char file[64];
        snprintf(file, sizeof file, "%s.npy", model->relation_dim_array);
        VLP_TRY(open_array(&array, base, file));
        settings->relation_dim = (int32_t)width_of(&array);
        vlp_array_free(&array);
    }
    return VLP_OK;
}

vlp_status vlp_base_settle(vlp_settings *settings, const char *base) {
    vlp_settings saved;
    VLP_TRY(base_settings(&saved, base));
    VLP_TRY(choose_trained(settings, &saved));
    if (!vlp_run_folder_exists(base)) return settle_array_sizes(settings, base);
    unsigned taken = taken_components(settings, &saved);
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        char left[64], right[64];
        bool shapes = shapes_component(VLP_HORIZONTAL, table[i].name);
        for (int c = 0; c < VLP_COMPONENTS; c++)
            shapes = shapes || (taken >> c & 1 && shapes_component((vlp_component)c, table[i].name));
        vlp_settings_get(left, settings, &table[i]);
        vlp_settings_get(right, &saved, &table[i]);
        if (shapes && strcmp(left, right) != 0)
            return vlp_fail(VLP_ERROR_ARGUMENT,
                            "the base %s has %s = %s, not %s; leave it out, or train from the start",
                            base, table[i].name, right, left);
    }
    return VLP_OK;
}

/* ---- A run --------------------------------------------------------------------------------------- */

static vlp_status load_run(vlp_model *model, const vlp_dataset *dataset, const char *base,
                           const vlp_settings *settings) {
    vlp_model *other = NULL;
    vlp_progress_state progress;
    vlp_run_facts facts;
    vlp_settings saved;
    char checksum[33];
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_run_folder_load_facts(&facts, base));
    VLP_CHECK(vlp_run_folder_settings(&saved, base));
    VLP_CHECK(vlp_run_folder_verify(&facts, &saved, base));
    vlp_dataset_checksum(checksum, dataset);
    if (strcmp(checksum, facts.checksum) != 0) {
        status = vlp_fail(VLP_ERROR_FORMAT,
                          "the base %s was trained on another data set than %s: the names or triples "
                          "differ",
                          base, vlp_dataset_title(dataset));
        goto out;
    }
    vlp_model_shape shape = vlp_settings_shape(&saved, dataset);
    shape.components = taken_components(settings, &saved);
    VLP_CHECK(vlp_model_new(&other, model->backend, model->compute, &shape, false));
    VLP_CHECK(vlp_run_folder_load_model(other, &progress, &facts, base));
    for (int32_t i = 0; i < other->table_count; i++) {
        vlp_component component = other->tables[i].component;
        int32_t index = i - other->ranges[component].first;
        float **mine = &model->tables[model->ranges[component].first + index].value;
        float *loaded = other->tables[i].value;
        other->tables[i].value = *mine;
        *mine = loaded;
    }
out:
    vlp_model_free(other);
    return status;
}

/* ---- Arrays -------------------------------------------------------------------------------------- */

/* rows[i]: the id that row i of an array belongs to, -1 for a name the data set does not have. */
static vlp_status read_names(int32_t *rows, int64_t count, const vlp_dictionary *names,
                             const char *folder, const char *file) {
    char *path = vlp_path_join(folder, file);
    if (!path) return vlp_fail_memory("a file name");
    vlp_map map = {"", 0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_map_open(&map, path));
    int64_t line = 0;
    for (const char *at = map.data, *end = map.data + map.size; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const char *tab = memchr(at, '\t', (size_t)(stop - at));
        size_t length = (size_t)((tab ? tab : stop) - at);
        if (!tab && length > 0 && at[length - 1] == '\r') length--;
        if (line < count) rows[line] = vlp_dictionary_find(names, at, length);
        at = stop + 1;
    }
    if (line != count)
        status = vlp_fail(VLP_ERROR_FORMAT, "%s has %lld lines, and the array beside it %lld rows", path,
                          (long long)line, (long long)count);
out:
    vlp_map_close(&map);
    vlp_free(path);
    return status;
}

/* Which row of an array each id has: out[id], -1 for none. `what` is "entities" or "relations"; of the
 * latter the rows of the inverses are not looked at. */
static vlp_status match_rows(int64_t *out, const vlp_dataset *dataset, const char *folder,
                             const char *what, int64_t rows) {
    bool entities = strcmp(what, "entities") == 0;
    const vlp_dictionary *names = entities ? dataset->entities : dataset->relations;
    int32_t count = vlp_dictionary_size(names);
    char file[32];
    snprintf(file, sizeof file, "%s.tsv", what);
    if (!has_file(folder, file)) {
        if (rows != count)
            return vlp_fail(
                VLP_ERROR_FORMAT,
                "%s/%s.npy has rows for %lld %s, and the data set has %d; put their names, a "
                "line a row, into %s/%s",
                folder, what, (long long)rows, what, count, folder, file);
        for (int32_t i = 0; i < count; i++) out[i] = i;
        return VLP_OK;
    }
    int32_t *ids = vlp_alloc((size_t)rows, sizeof *ids);
    if (!ids) return vlp_fail_memory("names of rows");
    vlp_status status = read_names(ids, rows, names, folder, file);
    for (int32_t i = 0; i < count; i++) out[i] = -1;
    for (int64_t row = 0; status == VLP_OK && row < rows; row++) {
        if (ids[row] < 0) continue;
        if (out[ids[row]] >= 0)
            status = vlp_fail(VLP_ERROR_FORMAT, "%s/%s:%lld: '%s' has a row already, %lld", folder, file,
                              (long long)row + 1, vlp_dictionary_name(names, ids[row]),
                              (long long)out[ids[row]] + 1);
        else
            out[ids[row]] = row;
    }
    vlp_free(ids);
    return status;
}

/* The error for an id that training needs and the arrays do not have. */
static vlp_status fail_missing(const char *folder, const char *what, const char *name) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s/%s.tsv has no row for '%s', which is in train", folder, what,
                    name);
}

static vlp_status check_finite(const float *values, int64_t count, const char *folder,
                               const char *what) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return vlp_fail(VLP_ERROR_FORMAT, "%s/%s.npy has a value that is NaN or infinite", folder,
                            what);
    return VLP_OK;
}

static vlp_status load_entities(vlp_model *model, const vlp_dataset *dataset, const char *folder,
                                const vlp_observer *observer) {
    const vlp_table *table = vlp_model_entities(model);
    vlp_array array = {0};
    vlp_status status = VLP_OK;
    int64_t *rows = vlp_alloc((size_t)table->rows, sizeof *rows);
    float *values = vlp_alloc_zero((size_t)table->rows * (size_t)table->width, sizeof *values);
    if (!rows || !values) {
        status = vlp_fail_memory("entities");
        goto out;
    }
    VLP_CHECK(open_array(&array, folder, "entities.npy"));
    VLP_CHECK(check_finite(array.data, array.shape[0] * width_of(&array), folder, "entities"));
    VLP_CHECK(match_rows(rows, dataset, folder, "entities", array.shape[0]));
    int64_t without = 0;
    for (int32_t id = 0; id < table->rows; id++) {
        if (rows[id] < 0 && dataset->seen_entities[id]) {
            status = fail_missing(folder, "entities", vlp_dataset_entity_name(dataset, id));
            goto out;
        }
        without += rows[id] < 0;
        if (rows[id] >= 0)
            memcpy(values + (int64_t)id * table->width, array.data + rows[id] * table->width,
                   (size_t)table->width * sizeof *values);
    }
    if (without > 0)
        vlp_log(observer, "%lld entities that are not in train have no row in %s: they are zeros",
                (long long)without, folder);
    status = model->backend->memory->upload(model->compute, table->value, values,
                                            (size_t)table->rows * (size_t)table->width * sizeof *values);
out:
    vlp_array_free(&array);
    vlp_free(rows);
    vlp_free(values);
    return status;
}

/* The arrays of the relations. */
typedef struct relation_arrays {
    vlp_model_array arrays[VLP_MAX_MODEL_ARRAYS]; /* where their rows go */
    vlp_array read[VLP_MAX_MODEL_ARRAYS];
    int32_t count;
    int64_t rows; /* of each */
} relation_arrays;

static void close_relations(relation_arrays *from) {
    for (int32_t i = 0; i < from->count; i++) vlp_array_free(&from->read[i]);
}

static vlp_status open_relations(relation_arrays *from, const vlp_model *model, const char *folder) {
    const vlp_model_row *row = vlp_model_row_of(model->options.kind);
    from->count = vlp_model_arrays(from->arrays, row, &model->form);
    for (int32_t i = 0; i < from->count; i++) {
        const vlp_model_array *part = &from->arrays[i];
        vlp_array *array = &from->read[i];
        char file[64];
        snprintf(file, sizeof file, "%s.npy", part->name);
        VLP_TRY(open_array(array, folder, file));
        if (width_of(array) != part->width)
            return vlp_fail(VLP_ERROR_FORMAT, "%s/%s has rows of %lld numbers; %s takes %lld", folder,
                            file, (long long)width_of(array), row->name, (long long)part->width);
        if (i > 0 && array->shape[0] != from->rows)
            return vlp_fail(VLP_ERROR_FORMAT, "%s/%s has %lld rows, and %s.npy %lld", folder, file,
                            (long long)array->shape[0], from->arrays[0].name, (long long)from->rows);
        from->rows = array->shape[0];
        VLP_TRY(check_finite(array->data, from->rows * part->width, folder, part->name));
    }
    return VLP_OK;
}

/* One relation's row as the model trains it. */
static void take_relation(float *out, const vlp_model *model, const relation_arrays *from, int64_t row) {
    const vlp_model_row *of = vlp_model_row_of(model->options.kind);
    for (int32_t i = 0; i < from->count; i++) {
        const vlp_model_array *part = &from->arrays[i];
        memcpy(out + part->offset, from->read[i].data + row * part->width,
               (size_t)part->width * sizeof *out);
    }
    if (of->from_arrays) of->from_arrays(out, &model->form);
}

static vlp_status load_relations(vlp_model *model, const vlp_dataset *dataset, const char *folder) {
    const vlp_table *table = vlp_model_relations(model);
    int32_t relations = vlp_dataset_relation_count(dataset);
    relation_arrays from = {.count = 0};
    vlp_status status = VLP_OK;
    int64_t *rows = vlp_alloc((size_t)relations, sizeof *rows);
    float *values = vlp_alloc_zero((size_t)table->rows * (size_t)table->width, sizeof *values);
    if (!rows || !values) {
        status = vlp_fail_memory("relations");
        goto out;
    }
    VLP_CHECK(open_relations(&from, model, folder));
    /* With names, as many rows as names or twice as many; without, as many as relations or twice. */
    bool inverses = from.rows == 2 * (int64_t)relations;
    int64_t named = inverses ? from.rows / 2 : from.rows;
    VLP_CHECK(match_rows(rows, dataset, folder, "relations", named));
    for (int32_t r = 0; r < relations; r++) {
        float *forward = values + (int64_t)r * table->width;
        float *backward = values + (int64_t)(r + relations) * table->width;
        if (rows[r] < 0 && dataset->seen_relations[r]) {
            status = fail_missing(folder, "relations", vlp_dataset_relation_name(dataset, r));
            goto out;
        }
        if (rows[r] < 0) continue;
        take_relation(forward, model, &from, rows[r]);
        if (inverses)
            take_relation(backward, model, &from, rows[r] + named);
        else
            vlp_model_row_of(model->options.kind)->inverse(backward, forward, &model->form);
    }
    status = model->backend->memory->upload(model->compute, table->value, values,
                                            (size_t)table->rows * (size_t)table->width * sizeof *values);
out:
    close_relations(&from);
    vlp_free(rows);
    vlp_free(values);
    return status;
}

vlp_status vlp_base_load(vlp_model *model, const vlp_dataset *dataset, const char *base,
                         const vlp_settings *settings, const vlp_observer *observer) {
    if (vlp_run_folder_exists(base)) return load_run(model, dataset, base, settings);
    VLP_TRY(load_entities(model, dataset, base, observer));
    return load_relations(model, dataset, base);
}
