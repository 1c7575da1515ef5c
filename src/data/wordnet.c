/* WordNet as a data set: synsets are entities, pointers between them (or between their words) triples.
 *
 * The database contains most relations in both directions. A random split would put one direction into
 * the training split and the other into the test split, which is leakage. So, unless inverses are
 * requested,
 *   - hyponyms, holonyms and members of domains are converted to the hypernyms, meronyms and domains
 *     that they repeat, which also keeps a fact that only the inverse pointer states;
 *   - of a symmetric relation the first direction is kept. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "data/output.h"
#include "data/wordnet.h"

/* ---- Files --------------------------------------------------------------------------------------- */

typedef struct wordnet_folder {
    vlp_map maps[VLP_WORDNET_FILES];
    char *paths[VLP_WORDNET_FILES];
    int opened;
    vlp_wordnet *wordnet;
} wordnet_folder;

static void database_close(wordnet_folder *database) {
    vlp_wordnet_free(database->wordnet);
    while (database->opened > 0) vlp_map_close(&database->maps[--database->opened]);
    for (int i = 0; i < VLP_WORDNET_FILES; i++) vlp_free(database->paths[i]);
}

static vlp_status database_open(wordnet_folder *database, const char *folder) {
    vlp_wordnet_file files[VLP_WORDNET_FILES];
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        char *path = database->paths[i] = vlp_path_join(folder, vlp_wordnet_file_names[i]);
        if (!path) return vlp_fail_memory("a file name");
        vlp_status status = vlp_map_open(&database->maps[i], path);
        if (status == VLP_ERROR_IO)
            return vlp_fail(status,
                            "%s; WordNet's database files come with Debian's package wordnet-base, in "
                            "/usr/share/wordnet",
                            vlp_error_message());
        if (status != VLP_OK) return status;
        database->opened = i + 1;
        files[i] = (vlp_wordnet_file){path, database->maps[i].data, database->maps[i].size};
    }
    VLP_TRY(vlp_wordnet_read(&database->wordnet, files));
    if (database->wordnet->pointer_count == 0)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the WordNet database has no pointers", folder);
    return VLP_OK;
}

/* ---- Choosing triples ---------------------------------------------------------------------------- */

/* Triples of synsets and of vlp_wordnet_relations, without repeats. */
typedef struct triple_choice {
    vlp_triple_list kept;
    bool *stated;   /* (kept) as a pointer, not only by its inverse */
    int64_t *slots; /* (mask + 1) index into kept, or -1: open addressing */
    uint64_t mask;
    int64_t duplicates, skipped;
} triple_choice;

static void selection_free(triple_choice *selection) {
    vlp_triple_list_free(&selection->kept);
    vlp_free(selection->stated);
    vlp_free(selection->slots);
}

static vlp_status selection_prepare(triple_choice *selection, int64_t pointers) {
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)pointers) slots *= 2;
    selection->mask = slots - 1;
    selection->slots = vlp_alloc(slots, sizeof *selection->slots);
    selection->stated = vlp_alloc((size_t)pointers, sizeof *selection->stated);
    if (!selection->slots || !selection->stated) return vlp_fail_memory("WordNet's triples");
    memset(selection->slots, 0xff, slots * sizeof *selection->slots);
    return vlp_grow(&selection->kept.items, &selection->kept.capacity, pointers,
                    sizeof *selection->kept.items, "WordNet's triples");
}

/* The index of the triple in the table, or of the free place for it. */
static int64_t *find_slot(const triple_choice *selection, vlp_triple triple) {
    uint64_t hash = ((uint64_t)(uint32_t)triple.head << 32 | (uint32_t)triple.tail) +
                    (uint64_t)(uint32_t)triple.relation * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    for (uint64_t place = hash ^ hash >> 32;; place++) {
        int64_t *slot = &selection->slots[place & selection->mask];
        if (*slot < 0) return slot;
        const vlp_triple *item = &selection->kept.items[*slot];
        if (item->head == triple.head && item->relation == triple.relation && item->tail == triple.tail)
            return slot;
    }
}

static void keep(triple_choice *selection, int64_t *slot, vlp_triple triple, bool stated) {
    *slot = selection->kept.count++;
    selection->kept.items[*slot] = triple;
    selection->stated[*slot] = stated;
}

/* A pointer of a relation that is kept. */
static void add_stated(triple_choice *selection, vlp_triple triple) {
    int64_t *slot = find_slot(selection, triple);
    if (*slot < 0) {
        keep(selection, slot, triple, true);
    } else if (selection->stated[*slot]) {
        selection->duplicates++;
    } else {
        /* It was added by its inverse pointer, which is now redundant. */
        selection->stated[*slot] = true;
        selection->skipped++;
    }
}

/* A pointer of the inverse relation of `triple`. */
static void add_turned(triple_choice *selection, vlp_triple triple) {
    int64_t *slot = find_slot(selection, triple);
    if (*slot < 0)
        keep(selection, slot, triple, false);
    else
        selection->skipped++;
}

static vlp_status select_triples(triple_choice *selection, const vlp_wordnet *wordnet,
                                 bool keep_inverses) {
    VLP_TRY(selection_prepare(selection, wordnet->pointer_count));
    for (int64_t i = 0; i < wordnet->pointer_count; i++) {
        const vlp_pointer *pointer = &wordnet->pointers[i];
        vlp_triple triple = {pointer->head, pointer->relation, pointer->tail};
        vlp_triple turned = {pointer->tail, pointer->relation, pointer->head};
        const char *mirror = vlp_wordnet_relations[pointer->relation].mirror;
        if (mirror) turned.relation = vlp_wordnet_find_relation(mirror, strlen(mirror));
        bool is_symmetric = turned.relation == triple.relation;
        if (!mirror || keep_inverses)
            add_stated(selection, triple);
        else if (is_symmetric &&
                 (*find_slot(selection, triple) >= 0 || *find_slot(selection, turned) < 0))
            add_stated(selection, triple);
        else
            add_turned(selection, turned);
    }
    return VLP_OK;
}

/* ---- Names --------------------------------------------------------------------------------------- */

typedef struct name_table {
    vlp_dictionary *entities, *relations;
    int32_t *entity_of; /* (synsets) or -1 */
    int32_t *synset_of; /* (entities) */
    char *name;         /* of one synset at a time */
    int64_t name_capacity;
    const char **labels; /* (entities) into label_text */
    char *label_text;
} name_table;

static void naming_free(name_table *naming) {
    vlp_dictionary_free(naming->entities);
    vlp_dictionary_free(naming->relations);
    vlp_free(naming->entity_of);
    vlp_free(naming->synset_of);
    vlp_free(naming->name);
    vlp_free(naming->labels);
    vlp_free(naming->label_text);
}

/* lemma.type.NN, as in NLTK. Names are unique: the reader has checked that a word has one line in its
 * index, and each synset its own position on that line. */
static vlp_status name_synset(name_table *naming, const vlp_synset *synset, int32_t *entity) {
    const char *at = NULL, *word = NULL;
    int length = 0;
    (void)vlp_wordnet_next_word(synset, &at, &word, &length);
    VLP_TRY(vlp_grow(&naming->name, &naming->name_capacity, (int64_t)length + 16, 1, "a synset's name"));
    snprintf(naming->name, (size_t)naming->name_capacity, "%.*s.%c.%02d", length, word, synset->type,
             synset->sense);
    for (char *c = naming->name; c < naming->name + length; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    int32_t known = vlp_dictionary_size(naming->entities);
    VLP_TRY(vlp_dictionary_add(naming->entities, entity, naming->name));
    assert(*entity == known);
    (void)known;
    return VLP_OK;
}

/* Numbers the synsets and relations that have triples, in the order of the files, and rewrites the
 * triples to these numbers. */
static vlp_status name_all(name_table *naming, vlp_triple_list *triples, const vlp_wordnet *wordnet) {
    VLP_TRY(vlp_dictionary_new(&naming->entities));
    VLP_TRY(vlp_dictionary_new(&naming->relations));
    size_t synsets = (size_t)wordnet->synset_count;
    naming->entity_of = vlp_alloc(synsets, sizeof *naming->entity_of);
    naming->synset_of = vlp_alloc(synsets, sizeof *naming->synset_of);
    if (!naming->entity_of || !naming->synset_of) return vlp_fail_memory("WordNet's synsets");
    int32_t relation_of[VLP_WORDNET_RELATIONS];
    enum { UNUSED = -1, USED = -2 };
    for (int i = 0; i < VLP_WORDNET_RELATIONS; i++) relation_of[i] = UNUSED;
    for (size_t i = 0; i < synsets; i++) naming->entity_of[i] = UNUSED;
    for (int64_t i = 0; i < triples->count; i++) {
        naming->entity_of[triples->items[i].head] = USED;
        naming->entity_of[triples->items[i].tail] = USED;
        relation_of[triples->items[i].relation] = USED;
    }
    for (int32_t i = 0; i < (int32_t)synsets; i++) {
        if (naming->entity_of[i] == UNUSED) continue;
        VLP_TRY(name_synset(naming, &wordnet->synsets[i], &naming->entity_of[i]));
        naming->synset_of[naming->entity_of[i]] = i;
    }
    for (int i = 0; i < VLP_WORDNET_RELATIONS; i++)
        if (relation_of[i] == USED)
            VLP_TRY(
                vlp_dictionary_add(naming->relations, &relation_of[i], vlp_wordnet_relations[i].name));
    for (int64_t i = 0; i < triples->count; i++) {
        vlp_triple *triple = &triples->items[i];
        *triple = (vlp_triple){naming->entity_of[triple->head], relation_of[triple->relation],
                               naming->entity_of[triple->tail]};
    }
    return VLP_OK;
}

/* "domestic dog, Canis familiaris<TAB>a member of the genus Canis": words with spaces, then the gloss.
 */
static char *write_label(char *to, const vlp_synset *synset) {
    const char *at = NULL, *word = NULL;
    int length = 0;
    for (int count = 0; vlp_wordnet_next_word(synset, &at, &word, &length); count++) {
        if (count > 0) *to++ = ',', *to++ = ' ';
        for (int i = 0; i < length; i++) *to++ = word[i] == '_' ? ' ' : word[i];
    }
    if (synset->gloss_size > 0) {
        *to++ = '\t';
        memcpy(to, synset->gloss, (size_t)synset->gloss_size);
        to += synset->gloss_size;
    }
    *to++ = '\0';
    return to;
}

static vlp_status label_all(name_table *naming, const vlp_wordnet *wordnet) {
    int32_t entities = vlp_dictionary_size(naming->entities);
    /* The ", " after a word is not longer than the lex_id that follows it in the file. */
    size_t size = 0;
    for (int32_t i = 0; i < entities; i++) {
        const vlp_synset *synset = &wordnet->synsets[naming->synset_of[i]];
        size += (size_t)synset->words_size + (size_t)synset->gloss_size + 2;
    }
    naming->labels = vlp_alloc((size_t)entities, sizeof *naming->labels);
    naming->label_text = vlp_alloc(size, 1);
    if (!naming->labels || !naming->label_text) return vlp_fail_memory("WordNet's glosses");
    char *to = naming->label_text;
    for (int32_t i = 0; i < entities; i++) {
        naming->labels[i] = to;
        to = write_label(to, &wordnet->synsets[naming->synset_of[i]]);
    }
    return VLP_OK;
}

/* ---- The import ---------------------------------------------------------------------------------- */

static void report_progress(const vlp_observer *observer, const vlp_wordnet *wordnet,
                            const triple_choice *selection, const name_table *naming) {
    long long isolated = (long long)wordnet->synset_count - vlp_dictionary_size(naming->entities);
    vlp_log(observer, "%lld synsets, %lld pointers: %lld triples, %lld repeats, %lld redundant inverses",
            (long long)wordnet->synset_count, (long long)wordnet->pointer_count,
            (long long)selection->kept.count, (long long)selection->duplicates,
            (long long)selection->skipped);
    if (isolated > 0) vlp_log(observer, "%lld synsets without any pointer are left out", isolated);
}

vlp_status vlp_import_wordnet(vlp_import_report *out, const char *source, const char *folder,
                              bool keep_inverses, const vlp_split_options *options) {
    VLP_REQUIRE(source);
    VLP_REQUIRE(folder);
    vlp_split_options split = VLP_SPLIT_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_split_options, &split, options));
    VLP_TRY(vlp_check_threads(split.threads));
    vlp_status status = VLP_OK;
    vlp_staging *staging = NULL;
    wordnet_folder database = {0};
    triple_choice selection = {0};
    name_table naming = {0};
    vlp_triple_list splits[VLP_SPLITS] = {{0}};
    vlp_import_report report = {0};

    VLP_CHECK(vlp_staging_open(&staging, folder));
    VLP_CHECK(database_open(&database, source));
    if (vlp_stopped(split.observer)) VLP_CHECK(vlp_fail_stopped());
    VLP_CHECK(select_triples(&selection, database.wordnet, keep_inverses));
    VLP_CHECK(name_all(&naming, &selection.kept, database.wordnet));
    VLP_CHECK(label_all(&naming, database.wordnet));
    report_progress(split.observer, database.wordnet, &selection, &naming);
    VLP_CHECK(vlp_divide(splits, &selection.kept, vlp_dictionary_size(naming.entities),
                         vlp_dictionary_size(naming.relations), &split));
    if (vlp_stopped(split.observer)) VLP_CHECK(vlp_fail_stopped());
    vlp_output output = {naming.entities, naming.relations, splits, naming.labels, NULL};
    VLP_CHECK(vlp_output_write(&report, staging, &output));
    VLP_CHECK(vlp_staging_commit(&staging));
    report.duplicates = selection.duplicates;
    report.skipped = selection.skipped;
    if (out) *out = report;
out:
    for (int i = 0; i < VLP_SPLITS; i++) vlp_triple_list_free(&splits[i]);
    naming_free(&naming);
    selection_free(&selection);
    database_close(&database);
    vlp_staging_free(staging);
    return status;
}
