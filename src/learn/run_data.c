/* The data set in a run folder: entities.tsv and relations.tsv name the ids, triples.tsv.gz has the
 * triples by id. A name may hold any byte but tab, newline and zero; fields are cut at tabs alone. */
#include <string.h>

#include "learn/run_folder.h"
#include "store/triples.h"

static const char triples_name[] = "triples.tsv.gz";
static const char *const names_files[2] = {"relations.tsv", "entities.tsv"}; /* [entities] */

/* ---- Writing ------------------------------------------------------------------------------------- */

void vlp_run_folder_put_names(vlp_writer *writer, const vlp_dataset *dataset, bool entities) {
    int32_t count = entities ? vlp_dataset_entity_count(dataset) : vlp_dataset_relation_count(dataset);
    for (int32_t i = 0; i < count; i++) {
        const char *label =
            entities ? vlp_dataset_entity_label(dataset, i) : vlp_dataset_relation_label(dataset, i);
        const char *description = entities ? vlp_dataset_entity_description(dataset, i)
                                           : vlp_dataset_relation_description(dataset, i);
        vlp_writer_text(writer, entities ? vlp_dataset_entity_name(dataset, i)
                                         : vlp_dataset_relation_name(dataset, i));
        if (label || description) vlp_writer_text(writer, "\t");
        if (label) vlp_writer_text(writer, label);
        if (description) {
            vlp_writer_text(writer, "\t");
            vlp_writer_text(writer, description);
        }
        vlp_writer_text(writer, "\n");
    }
}

static vlp_status write_names(const char *folder, const vlp_dataset *dataset, bool entities) {
    char *path = vlp_path_join(folder, names_files[entities]);
    if (!path) return vlp_fail_memory("a file name");
    vlp_writer *writer = NULL;
    vlp_status status = vlp_writer_open(&writer, path);
    vlp_free(path);
    VLP_TRY(status);
    vlp_run_folder_put_names(writer, dataset, entities);
    return vlp_writer_commit(&writer);
}

vlp_status vlp_run_folder_write_data(const char *folder, const vlp_dataset *dataset) {
    VLP_TRY(write_names(folder, dataset, true));
    VLP_TRY(write_names(folder, dataset, false));
    vlp_stored_triples triples;
    for (int split = 0; split < VLP_SPLITS; split++) {
        triples.items[split] = dataset->splits[split].items;
        triples.counts[split] = dataset->splits[split].count;
    }
    char *path = vlp_path_join(folder, triples_name);
    if (!path) return vlp_fail_memory("a file name");
    vlp_status status = vlp_triples_write(path, &triples);
    vlp_free(path);
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------------- */

bool vlp_run_folder_has_data(const char *folder) {
    char *path = vlp_path_join(folder, triples_name);
    bool there = path && vlp_path_exists(path);
    vlp_free(path);
    return there;
}

/* The fields of a file of names, one row for each id. */
typedef struct name_table {
    char *text;                                   /* of the file, fields terminated in place */
    const char **names, **labels, **descriptions; /* (count); NULL without one */
    int64_t count, capacity[3];
} name_table;

static void name_table_free(name_table *table) {
    vlp_free(table->text);
    vlp_free(table->names);
    vlp_free(table->labels);
    vlp_free(table->descriptions);
}

/* Cuts one line, terminated, at its tabs. */
static vlp_status take_row(name_table *table, char *line) {
    char *label = strchr(line, '\t'), *description = NULL;
    if (label) *label++ = '\0';
    if (label) description = strchr(label, '\t');
    if (description) *description++ = '\0';
    int64_t at = table->count++;
    VLP_TRY(vlp_grow(&table->names, &table->capacity[0], at + 1, sizeof *table->names, "names"));
    VLP_TRY(vlp_grow(&table->labels, &table->capacity[1], at + 1, sizeof *table->labels, "names"));
    VLP_TRY(vlp_grow(&table->descriptions, &table->capacity[2], at + 1, sizeof *table->descriptions,
                     "names"));
    table->names[at] = line;
    table->labels[at] = label;
    table->descriptions[at] = description;
    return VLP_OK;
}

static vlp_status read_table(name_table *out, const char *folder, bool entities) {
    char *path = vlp_path_join(folder, names_files[entities]);
    if (!path) return vlp_fail_memory("a file name");
    vlp_map map = {"", 0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_map_open(&map, path));
    out->text = vlp_alloc(map.size + 1, 1);
    if (!out->text) {
        status = vlp_fail_memory("names");
        goto out;
    }
    memcpy(out->text, map.data, map.size);
    char *end = out->text + map.size;
    for (char *line = out->text, *newline; line < end; line = newline + 1) {
        newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline || newline == line || *line == '\t' ||
            memchr(line, '\0', (size_t)(newline - line)) || out->count == INT32_MAX) {
            status = vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: damaged: not a name, label and description",
                              path, (long long)out->count + 1);
            goto out;
        }
        *newline = '\0';
        VLP_CHECK(take_row(out, line));
    }
out:
    vlp_map_close(&map);
    vlp_free(path);
    return status;
}

/* The triples as the lists of a data set. */
static vlp_status read_triples(vlp_triple_list splits[VLP_SPLITS], const char *folder, int32_t entities,
                               int32_t relations) {
    char *path = vlp_path_join(folder, triples_name);
    if (!path) return vlp_fail_memory("a file name");
    vlp_stored_triples triples;
    vlp_status status = vlp_triples_read(&triples, path, entities, relations);
    for (int split = 0; status == VLP_OK && split < VLP_SPLITS; split++)
        splits[split] =
            (vlp_triple_list){triples.items[split], triples.counts[split], triples.counts[split]};
    vlp_free(path);
    return status;
}

static vlp_status fail_changed(const char *folder) {
    return vlp_fail(VLP_ERROR_FORMAT,
                    "%s: its names or triples were changed after training: the checksum of "
                    "entities.tsv, relations.tsv and triples.tsv.gz does not fit",
                    folder);
}

vlp_status vlp_run_folder_read_data(vlp_dataset **out, const char *folder, const vlp_run_facts *facts,
                                    int32_t threads) {
    *out = NULL;
    name_table entities = {0}, relations = {0};
    vlp_triple_list splits[VLP_SPLITS] = {{NULL, 0, 0}};
    vlp_dataset *dataset = NULL;
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    char checksum[33];
    vlp_status status = VLP_OK;
    VLP_CHECK(read_table(&entities, folder, true));
    VLP_CHECK(read_table(&relations, folder, false));
    content.entities = (int32_t)entities.count;
    content.relations = (int32_t)relations.count;
    content.entity_names = entities.names;
    content.relation_names = relations.names;
    content.entity_labels = entities.labels;
    content.entity_descriptions = entities.descriptions;
    content.relation_labels = relations.labels;
    content.relation_descriptions = relations.descriptions;
    VLP_CHECK(read_triples(splits, folder, content.entities, content.relations));
    status = vlp_dataset_make(&dataset, &content, splits, threads);
    if (status == VLP_ERROR_FORMAT) status = fail_changed(folder); /* a name that occurs twice */
    if (status != VLP_OK) goto out;
    vlp_dataset_checksum(checksum, dataset);
    if (strcmp(checksum, facts->checksum) != 0) {
        status = fail_changed(folder);
        goto out;
    }
    if (*facts->data) {
        dataset->folder = vlp_string_copy(facts->data);
        if (!dataset->folder) status = vlp_fail_memory("a folder name");
    }
out:
    name_table_free(&entities);
    name_table_free(&relations);
    if (status != VLP_OK) {
        vlp_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return VLP_OK;
}
