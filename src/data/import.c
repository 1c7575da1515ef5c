/* Data sets from files of triples: read, drop repeated triples, divide, write. */
#include <stdio.h>
#include <string.h>

#include "data/output.h"

/* What has been read and is about to become a data set. */
typedef struct pending {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
    char **labels; /* (entities) or NULL */
} pending;

static vlp_status pending_new(pending *work) {
    *work = (pending){0};
    VLP_TRY(vlp_dictionary_new(&work->entities));
    return vlp_dictionary_new(&work->relations);
}

static void pending_free(pending *work) {
    if (work->labels)
        for (int32_t i = 0; i < vlp_dictionary_size(work->entities); i++) vlp_free(work->labels[i]);
    vlp_free(work->labels);
    vlp_triple_list_free(&work->triples);
    vlp_dictionary_free(work->entities);
    vlp_dictionary_free(work->relations);
}

static vlp_status finish(vlp_import_report *report, pending *work, const char *source,
                         const char *folder, const vlp_split_options *options) {
    vlp_status status = VLP_OK;
    vlp_triple_list splits[VLP_SPLITS] = {{0}};
    vlp_staging *staging = NULL;
    if (work->triples.count == 0) return vlp_fail(VLP_ERROR_FORMAT, "%s has no triples", source);
    int32_t entities = vlp_dictionary_size(work->entities);
    VLP_CHECK(vlp_triple_list_unique(&work->triples, &report->duplicates, entities, options->threads));
    VLP_CHECK(
        vlp_divide(splits, &work->triples, entities, vlp_dictionary_size(work->relations), options));
    VLP_CHECK(vlp_staging_open(&staging, folder));
    vlp_output output = {work->entities, work->relations, splits, (const char *const *)work->labels};
    VLP_CHECK(vlp_output_write(report, staging, &output));
    VLP_CHECK(vlp_staging_commit(&staging));
out:
    vlp_staging_free(staging);
    for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&splits[split]);
    return status;
}

/* ---- Plain files --------------------------------------------------------------------------------- */

vlp_status vlp_split_file(vlp_import_report *out, const char *file, const char *folder,
                          const vlp_split_options *given) {
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    if (given) options = *given;
    vlp_import_report report = {0};
    pending work = {0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_staging_check(folder));
    VLP_CHECK(pending_new(&work));
    vlp_read_sink sink = {work.entities, work.relations, &work.triples, 0};
    VLP_CHECK(vlp_read_file(&sink, file, options.threads, options.observer));
    VLP_CHECK(finish(&report, &work, file, folder, &options));
    if (out) *out = report;
out:
    pending_free(&work);
    return status;
}

static vlp_status check_table(const vlp_table_options *table) {
    for (int i = 0; i < 3; i++) {
        if (table->columns[i] < 1)
            return vlp_fail(VLP_ERROR_ARGUMENT, "column %d; columns count from 1", table->columns[i]);
        for (int j = 0; j < i; j++)
            if (table->columns[i] == table->columns[j])
                return vlp_fail(VLP_ERROR_ARGUMENT,
                                "column %d stands for two of head, relation and tail",
                                table->columns[i]);
    }
    if (table->separator == '\n' || table->separator == '\r' || (table->separator & 0x80))
        return vlp_fail(VLP_ERROR_ARGUMENT, "the separator must be one ASCII character of a line");
    return VLP_OK;
}

vlp_status vlp_import_table(vlp_import_report *out, const char *file, const char *folder,
                            const vlp_table_options *given_table, const vlp_split_options *given) {
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    if (given) options = *given;
    vlp_table_options table = VLP_TABLE_OPTIONS_INIT;
    if (given_table) table = *given_table;
    VLP_TRY(check_table(&table));
    vlp_import_report report = {0};
    vlp_source *source = NULL;
    pending work = {0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_staging_check(folder));
    VLP_CHECK(pending_new(&work));
    VLP_CHECK(vlp_source_open(&source, file));
    vlp_read_sink sink = {work.entities, work.relations, &work.triples, 0};
    vlp_read_options reading = {.parser = vlp_parse_table,
                                .settings = &table,
                                .skip_first_line = table.header,
                                .threads = options.threads,
                                .observer = options.observer};
    VLP_CHECK(vlp_read_lines(&sink, source, &reading));
    VLP_CHECK(finish(&report, &work, file, folder, &options));
    if (out) *out = report;
out:
    vlp_source_free(source);
    pending_free(&work);
    return status;
}

/* ---- N-Triples with labels ----------------------------------------------------------------------- */

static bool is_literal(const char *name) {
    return name[0] == '"';
}

static bool is_label_relation(const char *name) {
    return strcmp(name, "http://www.w3.org/2000/01/rdf-schema#label") == 0 ||
           strcmp(name, "http://www.w3.org/2004/02/skos/core#prefLabel") == 0;
}

/* How welcome a literal is as a label: 3 of the language asked for, 2 of none, 1 of another. */
static int label_rank(const char *literal, const char *language) {
    const char *end = strrchr(literal, '"') + 1;
    if (*end != '@') return 2;
    if (!language) return 2;
    size_t length = strlen(language);
    bool same = strncasecmp(end + 1, language, length) == 0 &&
                (end[1 + length] == '\0' || end[1 + length] == '-');
    return same ? 3 : 1;
}

/* The text of a literal, control characters as spaces; NULL when out of memory. */
static char *label_text(const char *literal) {
    const char *from = literal + 1, *end = strrchr(literal, '"');
    char *text = vlp_alloc((size_t)(end - from) + 1, 1), *to = text;
    if (!text) return NULL;
    for (; from < end; from++) {
        char byte = *from;
        if (byte == '\\') {
            byte = *++from;
            /* \u00XX is how control characters are written; nothing else is. */
            if (byte == 'u') from += 4;
            if (byte != '"' && byte != '\\') byte = ' ';
        }
        *to++ = byte;
    }
    *to = '\0';
    return text;
}

/* Copies a triple's names into the data set to be. */
static vlp_status keep_triple(pending *work, const pending *read, vlp_triple triple) {
    int32_t old[3] = {triple.head, triple.relation, triple.tail}, ids[3];
    for (int i = 0; i < 3; i++) {
        const vlp_dictionary *from = i == 1 ? read->relations : read->entities;
        vlp_span span =
            vlp_span_make(vlp_dictionary_name(from, old[i]), vlp_dictionary_name_length(from, old[i]));
        VLP_TRY(vlp_dictionary_intern(i == 1 ? work->relations : work->entities, &ids[i], &span));
    }
    vlp_triple_list *list = &work->triples;
    VLP_TRY(vlp_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "triples"));
    list->items[list->count++] = (vlp_triple){ids[0], ids[1], ids[2]};
    return VLP_OK;
}

/* The best label of every entity of `work`, by its literal's id in `read`. */
static vlp_status choose_labels(pending *work, const pending *read, const char *language) {
    int32_t entities = vlp_dictionary_size(work->entities);
    work->labels = vlp_alloc_zero((size_t)entities, sizeof *work->labels);
    int8_t *rank = vlp_alloc_zero((size_t)entities, sizeof *rank);
    vlp_status status = work->labels && rank ? VLP_OK : vlp_fail_memory("labels");
    for (int64_t i = 0; status == VLP_OK && i < read->triples.count; i++) {
        vlp_triple triple = read->triples.items[i];
        const char *literal = vlp_dictionary_name(read->entities, triple.tail);
        if (!is_literal(literal)) continue;
        if (!is_label_relation(vlp_dictionary_name(read->relations, triple.relation))) continue;
        int32_t entity =
            vlp_dictionary_find(work->entities, vlp_dictionary_name(read->entities, triple.head),
                                vlp_dictionary_name_length(read->entities, triple.head));
        int welcome = label_rank(literal, language);
        if (entity < 0 || welcome <= rank[entity]) continue;
        char *text = label_text(literal);
        if (!text) status = vlp_fail_memory("labels");
        vlp_free(work->labels[entity]);
        work->labels[entity] = text;
        rank[entity] = (int8_t)welcome;
    }
    vlp_free(rank);
    return status;
}

vlp_status vlp_import_ntriples(vlp_import_report *out, const char *file, const char *folder,
                               bool keep_literals, const char *language,
                               const vlp_split_options *given) {
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    if (given) options = *given;
    vlp_import_report report = {0};
    vlp_source *source = NULL;
    pending read = {0}, work = {0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_staging_check(folder));
    VLP_CHECK(pending_new(&read));
    VLP_CHECK(pending_new(&work));
    VLP_CHECK(vlp_source_open(&source, file));
    vlp_read_sink sink = {read.entities, read.relations, &read.triples, 0};
    vlp_read_options reading = {
        .parser = vlp_parse_ntriples, .threads = options.threads, .observer = options.observer};
    VLP_CHECK(vlp_read_lines(&sink, source, &reading));
    for (int64_t i = 0; i < read.triples.count; i++) {
        vlp_triple triple = read.triples.items[i];
        if (is_literal(vlp_dictionary_name(read.entities, triple.tail))) {
            bool label = is_label_relation(vlp_dictionary_name(read.relations, triple.relation));
            if (label || !keep_literals) {
                report.skipped += !label;
                continue;
            }
        }
        VLP_CHECK(keep_triple(&work, &read, triple));
    }
    VLP_CHECK(choose_labels(&work, &read, language));
    VLP_CHECK(finish(&report, &work, file, folder, &options));
    if (out) *out = report;
out:
    vlp_source_free(source);
    pending_free(&read);
    pending_free(&work);
    return status;
}
