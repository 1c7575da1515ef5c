/* Data sets from files of triples: read, take labels of RDF out, remove repeated triples, split, write.
 */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "data/output.h"
#include "graph/format.h"

/* A data set under construction. */
typedef struct pending {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
    char **labels, **relation_labels; /* (entities), (relations); or NULL */
} pending;

static vlp_status pending_new(pending *work) {
    *work = (pending){0};
    VLP_TRY(vlp_dictionary_new(&work->entities));
    return vlp_dictionary_new(&work->relations);
}

static void free_labels(char **labels, const vlp_dictionary *names) {
    for (int32_t i = 0; labels && i < vlp_dictionary_size(names); i++) vlp_free(labels[i]);
    vlp_free(labels);
}

static void pending_free(pending *work) {
    free_labels(work->labels, work->entities);
    free_labels(work->relation_labels, work->relations);
    vlp_triple_list_free(&work->triples);
    vlp_dictionary_free(work->entities);
    vlp_dictionary_free(work->relations);
}

static vlp_read_sink sink_of(pending *work) {
    return (vlp_read_sink){.entities = work->entities,
                           .relations = work->relations,
                           .triples = &work->triples,
                           .drops_repeated = true};
}

static vlp_status finish(vlp_import_report *report, pending *work, const char *source,
                         const char *folder, const vlp_split_options *options) {
    vlp_status status = VLP_OK;
    vlp_triple_list splits[VLP_SPLITS] = {{0}};
    vlp_staging *staging = NULL;
    if (work->triples.count == 0) return vlp_fail(VLP_ERROR_FORMAT, "%s has no triples", source);
    int32_t entities = vlp_dictionary_size(work->entities);
    VLP_CHECK(
        vlp_divide(splits, &work->triples, entities, vlp_dictionary_size(work->relations), options));
    VLP_CHECK(vlp_staging_open(&staging, folder));
    vlp_output output = {work->entities, work->relations, splits, (const char *const *)work->labels,
                         (const char *const *)work->relation_labels};
    VLP_CHECK(vlp_output_write(report, staging, &output));
    VLP_CHECK(vlp_staging_commit(&staging));
out:
    vlp_staging_free(staging);
    for (int split = 0; split < VLP_SPLITS; split++) vlp_triple_list_free(&splits[split]);
    return status;
}

/* ---- Labels of RDF ------------------------------------------------------------------------------- */

static bool is_literal(const char *name) {
    return name[0] == '"';
}

static bool is_label_relation(const char *name) {
    return strcmp(name, "http://www.w3.org/2000/01/rdf-schema#label") == 0 ||
           strcmp(name, "http://www.w3.org/2004/02/skos/core#prefLabel") == 0;
}

/* The preference of a literal as a label: 3 for the requested language, 2 without a language, 1 for
 * another. */
static int label_rank(const char *literal, const char *language) {
    const char *end = strrchr(literal, '"') + 1;
    if (*end != '@') return 2;
    if (!language) return 2;
    size_t length = strlen(language);
    bool same = strncasecmp(end + 1, language, length) == 0 &&
                (end[1 + length] == '\0' || end[1 + length] == '-');
    return same ? 3 : 1;
}

/* The text of a literal with control characters replaced by spaces; NULL when out of memory. */
static char *label_text(const char *literal) {
    const char *from = literal + 1, *end = strrchr(literal, '"');
    char *text = vlp_alloc((size_t)(end - from) + 1, 1), *to = text;
    if (!text) return NULL;
    for (; from < end; from++) {
        char byte = *from;
        if (byte == '\\') {
            byte = *++from;
            /* only control characters are written as \u00XX */
            if (byte == 'u') from += 4;
            if (byte != '"' && byte != '\\') byte = ' ';
        }
        *to++ = byte;
    }
    *to = '\0';
    return text;
}

/* Adds a triple and its names to the data set under construction. */
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

/* The labels of one kind of names. */
typedef struct label_choice {
    const vlp_dictionary *names;
    char **labels; /* (names) */
    int8_t *rank;  /* (names) of the labels */
} label_choice;

static vlp_status choice_start(label_choice *choice, const vlp_dictionary *names) {
    choice->names = names;
    choice->labels = vlp_alloc_zero((size_t)vlp_dictionary_size(names), sizeof *choice->labels);
    choice->rank = vlp_alloc_zero((size_t)vlp_dictionary_size(names), sizeof *choice->rank);
    return choice->labels && choice->rank ? VLP_OK : vlp_fail_memory("labels");
}

/* Takes a literal as the label of a name, if it is better than the one before. */
static vlp_status offer(label_choice *choice, const char *name, const char *literal, int rank) {
    int32_t id = vlp_dictionary_find(choice->names, name, strlen(name));
    if (id < 0 || rank <= choice->rank[id]) return VLP_OK;
    char *text = label_text(literal);
    if (!text) return vlp_fail_memory("labels");
    vlp_free(choice->labels[id]);
    choice->labels[id] = text;
    choice->rank[id] = (int8_t)rank;
    return VLP_OK;
}

/* Chooses the best label of every name of `work` among the literals of `read`. */
static vlp_status choose_labels(pending *work, const pending *read, const char *language) {
    vlp_status status = VLP_OK;
    label_choice entities = {0}, relations = {0};
    VLP_CHECK(choice_start(&entities, work->entities));
    VLP_CHECK(choice_start(&relations, work->relations));
    for (int64_t i = 0; i < read->triples.count; i++) {
        vlp_triple triple = read->triples.items[i];
        const char *literal = vlp_dictionary_name(read->entities, triple.tail);
        if (!is_literal(literal)) continue;
        if (!is_label_relation(vlp_dictionary_name(read->relations, triple.relation))) continue;
        const char *name = vlp_dictionary_name(read->entities, triple.head);
        int rank = label_rank(literal, language);
        VLP_CHECK(offer(&entities, name, literal, rank));
        VLP_CHECK(offer(&relations, name, literal, rank));
    }
out:
    work->labels = entities.labels;
    work->relation_labels = relations.labels;
    vlp_free(entities.rank);
    vlp_free(relations.rank);
    return status;
}

/* Moves the triples of `read` to `work`, less the literals that are left out, with labels. */
static vlp_status take_labels(pending *work, int64_t *skipped, const pending *read,
                              const vlp_file_options *how) {
    for (int64_t i = 0; i < read->triples.count; i++) {
        vlp_triple triple = read->triples.items[i];
        if (is_literal(vlp_dictionary_name(read->entities, triple.tail))) {
            bool label = is_label_relation(vlp_dictionary_name(read->relations, triple.relation));
            if (!(label ? how->keep_labels : how->keep_literals)) {
                *skipped += !label;
                continue;
            }
        }
        VLP_TRY(keep_triple(work, read, triple));
    }
    return how->keep_labels ? VLP_OK : choose_labels(work, read, how->language);
}

/* ---- Importing ----------------------------------------------------------------------------------- */

vlp_status vlp_import_file(vlp_import_report *out, const char *file, const char *folder,
                           const vlp_file_options *given_how, const vlp_split_options *given) {
    VLP_REQUIRE(file);
    VLP_REQUIRE(folder);
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_split_options, &options, given));
    VLP_TRY(vlp_check_threads(options.threads));
    vlp_file_options how = VLP_FILE_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_file_options, &how, given_how));
    VLP_TRY(vlp_file_options_check(&how));
    vlp_import_report report = {0};
    pending read = {0}, work = {0};
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_staging_check(folder));
    VLP_CHECK(pending_new(&read));
    vlp_read_sink sink = sink_of(&read);
    vlp_read_options reading = {&how, options.threads, options.observer};
    VLP_CHECK(vlp_read_file(&sink, file, &reading));
    VLP_CHECK(vlp_triple_list_unique(&read.triples, &report.duplicates,
                                     vlp_dictionary_size(read.entities), options.threads));
    report.duplicates += sink.repeated;
    report.graph_names = sink.graph_names;
    bool whole = vlp_format_is_table(sink.format) || (how.keep_literals && how.keep_labels);
    if (!whole) {
        VLP_CHECK(pending_new(&work));
        VLP_CHECK(take_labels(&work, &report.skipped, &read, &how));
    }
    VLP_CHECK(finish(&report, whole ? &read : &work, file, folder, &options));
    if (out) *out = report;
out:
    pending_free(&read);
    pending_free(&work);
    return status;
}

vlp_status vlp_split_file(vlp_import_report *out, const char *file, const char *folder,
                          const vlp_split_options *options) {
    VLP_REQUIRE(file);
    VLP_REQUIRE(folder);
    vlp_file_options how = VLP_FILE_OPTIONS_INIT;
    how.keep_literals = how.keep_labels = true;
    return vlp_import_file(out, file, folder, &how, options);
}
