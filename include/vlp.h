/* vlp: learn from the triples of a knowledge graph, predict the missing ones, and show which known
 * triples each prediction rests on.
 *
 * This header is the whole public interface, and its comments are the manual.
 *
 *   1. Errors, version, allocation, progress
 *   2. Data sets: opening a folder of triples, names and labels, counts
 *   3. Making data sets: import, split, generate
 *   4. Distances
 *   5. References: the known triples a prediction may copy from
 *   6. Auditing a data set
 *   7. Training
 *   8. Runs: evaluating, comparing and exporting what was trained
 *   9. Predicting: answers with what they rest on, scores, missing triples
 *
 * Terms
 *   A triple (h, r, t) has a head entity, a relation and a tail entity. A query (h, r, ?) asks for
 *   tail entities, (?, r, t) for head entities; what is asked for is the answer. f_g is the
 *   horizontal score, from embeddings; f_c the vertical score, which the vertical aggregator makes
 *   from references. f is the score that answers are ranked by.
 *
 * Conventions
 *   - Results. Functions that can fail return vlp_status and put what they make into their first
 *     argument. On failure that argument is left NULL or untouched, and vlp_error_message() says, in
 *     one line, what went wrong, where, and what to do. Any of them may return VLP_ERROR_MEMORY and
 *     VLP_ERROR_ARGUMENT; other statuses are named where they are not obvious.
 *   - Arguments. A pointer may be NULL only where its comment says so: elsewhere NULL gives
 *     VLP_ERROR_ARGUMENT, and so do ids, counts, splits and enum values out of their range.
 *     Functions that return no status give a neutral value instead: NULL, 0, false or NaN, as their
 *     comments say. Where such a function has a `count`, it may be NULL.
 *   - Ownership. What a function puts into a `**out` is the caller's: free it with the matching
 *     _free. What a function returns as a const pointer is borrowed from its first argument and
 *     lives as long as that does. Arguments are borrowed for the call alone unless said otherwise;
 *     strings are copied.
 *   - Every _free takes NULL and does nothing then.
 *   - Text is UTF-8. Paths are the system's.
 *   - Options. An option struct starts from its initializer (`vlp_run_options options =
 *     VLP_RUN_OPTIONS_INIT;`); NULL means the defaults. Its `version` says which fields it has: a
 *     program that was compiled with an older header works with a newer library, and fields that it
 *     does not know have their defaults. A version that is not known gives VLP_ERROR_ARGUMENT.
 *   - `threads` is the number of threads a call may use; 0: all of the machine's.
 *   - The library does not print, does not exit and installs no signal handler.
 *   - Distinct objects may be used from distinct threads. A data set may be read by many threads. An
 *     opened run serves many threads at once: its tables are shared and read-only, and each call has
 *     working memory of its own, which the run keeps for later calls. On the CPU calls run at the same
 *     time, each with the run's number of threads; on a GPU they queue. What calls return does not
 *     depend on it. vlp_run_use_graph waits for the calls under way, and later ones wait for it.
 *     vlp_run_free is for when no call is under way; an observer must not call the run it observes.
 *   - Functions of other objects that take them as const may be called by several threads at once on
 *     the same object. A _free may not run beside any other use of its object. Functions that write
 *     into a folder (vlp_train, imports, vlp_run_export) need that folder to themselves.
 *   - Loading the library starts nothing: a process may fork before its first call that works. After
 *     one, threads are waiting, and a child of fork must not call the library.
 */
#ifndef VLP_H
#define VLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VLP_API __attribute__((visibility("default")))

#define VLP_VERSION_MAJOR 0
#define VLP_VERSION_MINOR 1
#define VLP_VERSION_PATCH 0

/* ---- 1. Errors, version, allocation, progress ------------------------------------------------ */

/* More may be added at the end. */
typedef enum vlp_status {
    VLP_OK = 0,
    VLP_ERROR_MEMORY,   /* an allocation failed, of the machine's memory or of the device's */
    VLP_ERROR_IO,       /* a file could not be read or written */
    VLP_ERROR_FORMAT,   /* a file was read, and its content is wrong */
    VLP_ERROR_UNKNOWN,  /* a name that is not known: of an entity, a relation, a setting */
    VLP_ERROR_ARGUMENT, /* an argument that is NULL or out of its range, or a call that makes no sense */
    VLP_ERROR_STOPPED,  /* the observer asked to stop */
    VLP_ERROR_DIVERGED, /* a loss, gradient or score is NaN or infinite */
    VLP_ERROR_DEVICE,   /* the device that was asked for is missing, or failed */
    VLP_ERROR_EXISTS,   /* what was to be made is there already, and is not replaced */
    VLP_ERROR_BUSY      /* a run is in use: another call or process is training it */
} vlp_status;

/* The message of this thread's last failed call, one line without control characters; "" when none has
 * failed. Borrowed from the thread: valid until its next call of the library. Thread-safe. */
VLP_API const char *vlp_error_message(void);

/* "0.1.0". The version of the library that runs, not of the header that was compiled. A constant.
 * Thread-safe. */
VLP_API const char *vlp_version(void);

/* Where the library's own memory comes from. `reallocate` works as realloc does: `memory` may be NULL,
 * and NULL is returned where it has none; `release` is never given NULL. Both get `user`, and may be
 * called by several threads at once. */
typedef struct vlp_allocator {
    void *(*reallocate)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
    void *user;
} vlp_allocator;

/* Sets the allocator of the whole process; `allocator` is copied, and NULL restores the C library's
 * functions. One without both functions is ignored. Not thread-safe: to be called, if at all, before any
 * other call of the process. */
VLP_API void vlp_allocator_set(const vlp_allocator *allocator);

/* How long work reports and how it is stopped. Any member may be NULL. The calls come from the thread
 * that called the library, `progress` and `stop` once a training step or a piece of work of that size:
 * they should be quick. They must not call the library with an object that is in use. The observer has
 * to live until the call returns. */
typedef struct vlp_observer {
    /* A line worth telling the user, without newline; valid during the call. */
    void (*log)(void *user, const char *line);
    /* `done` of `total` (0: unknown) units of `what` ("triples", "queries"). done == total ends it. */
    void (*progress)(void *user, const char *what, int64_t done, int64_t total);
    /* True asks the work to stop: it then returns VLP_ERROR_STOPPED and leaves nothing half-done. */
    bool (*stop)(void *user);
    void *user; /* handed to each of these */
} vlp_observer;

/* Whether a call is loading another library (OpenMP's runtime, OpenBLAS, the CUDA backend), which
 * happens once in a process. The call does not ask its observer meanwhile and has nothing to save yet: a
 * signal handler that otherwise waits for `stop` to be asked may end the process, where no other call
 * runs. Thread-safe and async-signal-safe. */
VLP_API bool vlp_is_loading(void);

/* ---- 2. Data sets ---------------------------------------------------------------------------- */

/* A folder with train, valid and test (the training, validation and test splits), each in one of the
 * formats of vlp_format, and optionally labels.tsv. Entities and relations are numbered from 0 in the
 * order in which they first appear, train before valid before test. Repeated lines of a split count
 * once.
 *
 * Queries run in both directions over one kind of relation: relation r + relation_count is the inverse
 * of relation r.
 *
 * A data set does not change once it is open: all functions of this section but vlp_dataset_free may be
 * called by several threads at once. */
typedef struct vlp_dataset vlp_dataset;

typedef struct vlp_triple {
    int32_t head, relation, tail;
} vlp_triple;

typedef enum vlp_split { VLP_TRAIN = 0, VLP_VALID, VLP_TEST, VLP_SPLITS } vlp_split;

typedef struct vlp_dataset_options {
    int32_t version;
    int32_t threads;
    const vlp_observer *observer; /* NULL: none */
} vlp_dataset_options;
#define VLP_DATASET_OPTIONS_VERSION 1
#define VLP_DATASET_OPTIONS_INIT                                                                        \
    { VLP_DATASET_OPTIONS_VERSION, 0, NULL }

/* Opens the data set in `folder` and puts it into *out, to be freed with vlp_dataset_free. A missing
 * valid or test is an empty split. VLP_ERROR_IO: there is no such folder, or no train in it;
 * VLP_ERROR_FORMAT: a line is wrong, or train is empty; VLP_ERROR_STOPPED. */
VLP_API vlp_status vlp_dataset_open(vlp_dataset **out, const char *folder,
                                    const vlp_dataset_options *options);
VLP_API void vlp_dataset_free(vlp_dataset *dataset);

/* A triple by its names. */
typedef struct vlp_named_triple {
    const char *head, *relation, *tail;
} vlp_named_triple;

/* Makes a data set from triples in memory, by name. Ids, order, dropped duplicates and checksum are
 * those of a folder whose files hold the same triples in the same order.
 *
 * out: the data set, to be freed with vlp_dataset_free; NULL on failure.
 * triples: (VLP_SPLITS) the triples of train, valid, test; NULL where counts is 0. Texts are copied.
 * counts: (VLP_SPLITS) how many; train needs at least one.
 * options: NULL: the defaults.
 *
 * VLP_ERROR_ARGUMENT: a name that a file could not hold (NULL, empty, invalid UTF-8, a control
 * character; the message names split and index); VLP_ERROR_STOPPED. Thread-safe. */
VLP_API vlp_status vlp_dataset_from_names(vlp_dataset **out,
                                          const vlp_named_triple *const triples[VLP_SPLITS],
                                          const int64_t counts[VLP_SPLITS],
                                          const vlp_dataset_options *options);

/* What a data set is made of, by ids. Borrowed for the call. */
typedef struct vlp_dataset_content {
    int32_t version;
    const vlp_triple *triples[VLP_SPLITS];  /* of train, valid, test; NULL where counts is 0 */
    int64_t counts[VLP_SPLITS];             /* train needs at least one */
    int32_t entities, relations;            /* ids are 0 .. count - 1; 0: one more than the largest id */
    const char *const *entity_names;        /* (entities), distinct; NULL: the ids in decimal */
    const char *const *relation_names;      /* (relations), likewise */
    const char *const *entity_labels;       /* (entities), members NULL without one; NULL: none */
    const char *const *entity_descriptions; /* likewise */
    const char *const *relation_labels;     /* (relations), likewise; since version 2 */
    const char *const *relation_descriptions;
} vlp_dataset_content;
#define VLP_DATASET_CONTENT_VERSION 2
#define VLP_DATASET_CONTENT_INIT                                                                        \
    { VLP_DATASET_CONTENT_VERSION, {NULL}, {0}, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/* Makes a data set from triples in memory, by id. Ids stay as they are; where they are numbered in the
 * order in which names first appear, train before valid before test, the data set is that of a folder
 * whose files hold the same triples by name. An entity need not be in any triple.
 *   out      the data set, to be freed with vlp_dataset_free; NULL on failure
 *   content  triples, counts and texts; all is copied
 *   options  NULL: the defaults
 * `entities` and `relations` may be 0 only where there are no names (and labels) for them. Returns
 * VLP_ERROR_ARGUMENT for an id out of range and for texts that files could not hold (see
 * vlp_dataset_from_names; labels likewise, but they may be empty) or that name two ids; else
 * VLP_ERROR_MEMORY. Several threads may call it at once. */
VLP_API vlp_status vlp_dataset_from_ids(vlp_dataset **out, const vlp_dataset_content *content,
                                        const vlp_dataset_options *options);

/* Entities and relations of all splits, inverse relations not counted; 0 for NULL. */
VLP_API int32_t vlp_dataset_entity_count(const vlp_dataset *dataset);
VLP_API int32_t vlp_dataset_relation_count(const vlp_dataset *dataset);
/* The name of an entity, or of a relation (0 .. relation_count - 1), as it is in the files; borrowed.
 * NULL for an id out of range. */
VLP_API const char *vlp_dataset_entity_name(const vlp_dataset *dataset, int32_t entity);
VLP_API const char *vlp_dataset_relation_name(const vlp_dataset *dataset, int32_t relation);
/* The second and the third column of labels.tsv (name, label, description): text for people; borrowed.
 * NULL without one, and for an id out of range. */
VLP_API const char *vlp_dataset_entity_label(const vlp_dataset *dataset, int32_t entity);
VLP_API const char *vlp_dataset_entity_description(const vlp_dataset *dataset, int32_t entity);
VLP_API const char *vlp_dataset_relation_label(const vlp_dataset *dataset, int32_t relation);
VLP_API const char *vlp_dataset_relation_description(const vlp_dataset *dataset, int32_t relation);

/* Puts the id of `name` into *out: of the entity (or relation) with that name, or else of the only one
 * with that label. VLP_ERROR_UNKNOWN: none, or several have the label;
 * the message names the nearest known names, and *out is -1. */
VLP_API vlp_status vlp_dataset_find_entity(int32_t *out, const vlp_dataset *dataset, const char *name);
VLP_API vlp_status vlp_dataset_find_relation(int32_t *out, const vlp_dataset *dataset, const char *name);

/* The distinct triples of a split, in the order of the file; their number goes into *count (NULL: not
 * wanted). Borrowed. NULL and 0 for a split out of range. */
VLP_API const vlp_triple *vlp_dataset_triples(const vlp_dataset *dataset, vlp_split split,
                                              int64_t *count);

typedef struct vlp_dataset_stats {
    int64_t entities, relations;
    int64_t triples[VLP_SPLITS];         /* distinct */
    int64_t duplicates[VLP_SPLITS];      /* lines that repeat an earlier one of the same split */
    int64_t unseen_entities[VLP_SPLITS]; /* of the split, not in train; 0 for train */
    int64_t unseen_triples[VLP_SPLITS];  /* with such an entity */
    int64_t unseen_relations[VLP_SPLITS];
    int64_t labels;          /* entities with a label */
    int64_t bytes;           /* memory held: names, ids, graph */
    int64_t relation_labels; /* relations with a label */
    int64_t graph_names;     /* statements whose graph name was dropped (N-Quads, TriG) */
} vlp_dataset_stats;

/* Counts what is in a data set and writes it to *out. */
VLP_API vlp_status vlp_dataset_describe(vlp_dataset_stats *out, const vlp_dataset *dataset);

/* The known answers of queries (entity, relation, ?): a filter is built once and asked often. It holds
 * what it needs, and may outlive its data set. */
typedef struct vlp_filter vlp_filter;
/* Puts into *out the filter over the union of the splits whose bit (1 << split) is set in `splits`; to
 * be freed with vlp_filter_free. */
VLP_API vlp_status vlp_filter_new(vlp_filter **out, const vlp_dataset *dataset, unsigned splits);
/* The answers of (entity, relation, ?), as ascending entity ids; relation + relation_count asks for head
 * entities. Their number goes into *count (NULL: not wanted). Borrowed. NULL and 0 for ids out of range.
 */
VLP_API const int32_t *vlp_filter_answers(const vlp_filter *filter, int32_t entity, int32_t relation,
                                          int64_t *count);
/* Whether `answer` is one of them; false for ids out of range. */
VLP_API bool vlp_filter_has(const vlp_filter *filter, int32_t entity, int32_t relation, int32_t answer);
VLP_API void vlp_filter_free(vlp_filter *filter);

/* ---- 3. Making data sets --------------------------------------------------------------------- */

/* How triples are divided into train, valid and test. */
typedef struct vlp_split_options {
    int32_t version;
    int32_t threads;
    double valid, test; /* fractions of the triples, 0 to 1; something has to be left for train */
    bool by_relation;   /* take the fractions of every relation */
    bool keep_entities; /* keep every entity and relation in train, even if a split gets fewer triples */
    uint64_t seed;
    const vlp_observer *observer; /* NULL: none */
} vlp_split_options;
#define VLP_SPLIT_OPTIONS_VERSION 1
#define VLP_SPLIT_OPTIONS_INIT                                                                          \
    { VLP_SPLIT_OPTIONS_VERSION, 0, 0.05, 0.05, false, true, 0, NULL }

/* Formats of files of triples. A file in any of them may be compressed with gzip or zstd, which is
 * recognized by its content. */
typedef enum vlp_format {
    VLP_FORMAT_AUTO = 0, /* by the extension, in front of .gz or .zst; .txt and others: by the content */
    VLP_FORMAT_TSV,      /* .tsv: head, relation, tail, separated by tabs */
    VLP_FORMAT_CSV,      /* .csv: RFC 4180; a header that names head, relation and tail (or subject,
                            predicate, object; source, relation, target) is recognized */
    VLP_FORMAT_NTRIPLES, /* .nt */
    VLP_FORMAT_NQUADS,   /* .nq: graph names are dropped, and counted */
    VLP_FORMAT_TURTLE,   /* .ttl */
    VLP_FORMAT_TRIG,     /* .trig: likewise */
    VLP_FORMATS
} vlp_format;

/* "tsv", "csv", "ntriples", "nquads", "turtle", "trig", and "auto"; NULL for another value. A constant.
 * Thread-safe. */
VLP_API const char *vlp_format_name(vlp_format format);

/* How a file of triples is read. */
typedef struct vlp_file_options {
    int32_t version;
    vlp_format format;
    /* Tables: the columns of head, relation and tail, by number from 1, or by their names in the header
     * (where a name is not NULL); all 0 and NULL: the table has these three and no others. */
    int32_t columns[3];
    const char *column_names[3];
    char separator; /* tables: one ASCII character, not a line end or quote; 0: that of the format */
    bool header;    /* tables: skip the first row; names of columns imply it */
    /* Imports of RDF: literals, or rdfs:label and skos:prefLabel, stay triples, whose tails are entities
     * named by the literal. Otherwise literals are left out, and labels become labels.tsv. */
    bool keep_literals, keep_labels;
    const char *language; /* imports of RDF: the labels preferred ("en"); NULL: any */
} vlp_file_options;
#define VLP_FILE_OPTIONS_VERSION 1
#define VLP_FILE_OPTIONS_INIT                                                                           \
    { VLP_FILE_OPTIONS_VERSION, VLP_FORMAT_AUTO, {0}, {NULL}, '\0', false, false, false, NULL }

/* Counts of a finished import. */
typedef struct vlp_import_report {
    int64_t entities, relations;
    int64_t triples[VLP_SPLITS];
    int64_t labels;          /* of entities */
    int64_t duplicates;      /* repeated triples that were dropped */
    int64_t skipped;         /* statements left out: literals, redundant inverse pointers */
    int64_t relation_labels; /* of relations */
    int64_t graph_names;     /* statements whose graph name was dropped */
} vlp_import_report;

/* Each of these functions writes a new data set into `folder`, completely or not at all. `out` (NULL:
 * not wanted) receives its counts. VLP_ERROR_EXISTS: the folder exists and is not empty; VLP_ERROR_IO: a
 * file cannot be read or written; VLP_ERROR_FORMAT: a line is wrong, or there is no triple;
 * VLP_ERROR_STOPPED. */

/* Divides the triples of `file` ("-": standard input), in the format of its extension. Of RDF every
 * statement is a triple, those with literals and labels as well. */
VLP_API vlp_status vlp_split_file(vlp_import_report *out, const char *file, const char *folder,
                                  const vlp_split_options *options);

/* Reads `file` ("-": standard input) as `how` says (NULL: the defaults) and divides its triples. */
VLP_API vlp_status vlp_import_file(vlp_import_report *out, const char *file, const char *folder,
                                   const vlp_file_options *how, const vlp_split_options *options);

/* Reads the WordNet database files (data.noun and so on) of the folder `source`. Synsets become entities
 * with readable names (dog.n.01), their words the label and their gloss the description. Of a pointer
 * and its inverse (hyponym and hypernym) one is left out as redundant unless `keep_inverses`. */
VLP_API vlp_status vlp_import_wordnet(vlp_import_report *out, const char *source, const char *folder,
                                      bool keep_inverses, const vlp_split_options *options);

typedef struct vlp_family_options {
    int32_t version;
    int32_t families; /* independent founding couples, 1 to 100000; 3 or more for all kinds of steps */
    int32_t generations; /* 2 to 12; cousins need 3 */
    double held_out;     /* fraction of the deducible triples for valid and for test each, 0 to 0.4 */
    uint64_t seed;
} vlp_family_options;
#define VLP_FAMILY_OPTIONS_VERSION 1
#define VLP_FAMILY_OPTIONS_INIT                                                                         \
    { VLP_FAMILY_OPTIONS_VERSION, 40, 5, 0.1, 0 }
/* Generates people, and relations between them that follow known rules (father of father is grandfather,
 * and so on). Held-out triples of test need 1, 2, 3 or 4 steps to be deduced; `folder` also gets
 * hops.tsv, which gives that number for each line of test.txt. */
VLP_API vlp_status vlp_family_generate(vlp_import_report *out, const char *folder,
                                       const vlp_family_options *options);

typedef struct vlp_random_graph_options {
    int32_t version;
    int32_t entities;  /* 10 or more; each occurs in train */
    int64_t triples;   /* of all splits, none twice; at least as many as entities */
    int32_t relations; /* 1 to 10000 */
    double held_out;   /* fraction of the deducible triples for valid and for test each, 0 to 0.4 */
    uint64_t seed;
    const vlp_observer *observer;
} vlp_random_graph_options;
#define VLP_RANDOM_GRAPH_OPTIONS_VERSION 1
#define VLP_RANDOM_GRAPH_OPTIONS_INIT                                                                   \
    { VLP_RANDOM_GRAPH_OPTIONS_VERSION, 100000, 500000, 200, 0.01, 0, NULL }
/* Generates a graph of any size: degrees follow a power law, entities have types and communities, and
 * half of the relations are compositions of two others. Held-out triples follow from two of train;
 * `folder` also gets rules.tsv, which names a composed relation and its two parts. Memory is of the
 * order of the largest degree. */
VLP_API vlp_status vlp_random_graph_generate(vlp_import_report *out, const char *folder,
                                             const vlp_random_graph_options *options);

/* ---- 4. Distances ---------------------------------------------------------------------------- */

/* Undirected hops over the training graph, all relations alike. */

/* Writes to out[e], for every entity e, its distance from entity `source`, or -1 where it is unreachable
 * or farther than `limit` (0: no limit). out: (entity_count). */
VLP_API vlp_status vlp_distance_from(int32_t *out, const vlp_dataset *dataset, int32_t source,
                                     int32_t limit);

/* Writes to out[i] the distance of pairs[i].head and pairs[i].tail, or -1 where there is no path. The
 * relation is ignored. out, pairs: (count), which may be NULL where count is 0. */
VLP_API vlp_status vlp_distance_pairs(int32_t *out, const vlp_dataset *dataset, const vlp_triple *pairs,
                                      int64_t count, int32_t threads);

/* ---- 5. References --------------------------------------------------------------------------- */

/* The references of a query (h, r, ?): the N training edges (h_i, r, t_i) whose h_i is nearest to h,
 * ties by the mass a random walk from h brings to h_i, then by the order of the training file. */
typedef struct vlp_reference_options {
    int32_t version;
    int32_t count;        /* N, 1 to 1024 */
    int32_t max_distance; /* of h_i, 0 to 8 */
    int32_t per_head;     /* at most this many from one h_i other than h; 0: no limit */
    int32_t threads;
    const vlp_observer *observer; /* NULL: none */
} vlp_reference_options;
#define VLP_REFERENCE_OPTIONS_VERSION 1
#define VLP_REFERENCE_OPTIONS_INIT                                                                      \
    { VLP_REFERENCE_OPTIONS_VERSION, 8, 8, 0, 0, NULL }

typedef struct vlp_query {
    int32_t entity;   /* the known one */
    int32_t relation; /* 0 .. 2 * relation_count - 1 */
    int64_t left_out; /* index of the training triple that is taken out of the graph for this query, or
                         -1. A training query leaves its own triple out. */
} vlp_query;

/* The reference of a query: training triple `edge`, at `distance` from the query's entity. */
typedef struct vlp_reference {
    int32_t edge;
    int32_t distance;
} vlp_reference;

/* The references of many queries; may outlive the data set. */
typedef struct vlp_references vlp_references;
/* Finds the references of queries[0 .. count - 1] and puts them into *out, to be freed with
 * vlp_references_free. `queries` NULL asks for all training queries, each without its own triple, and
 * `count` is ignored: query i < train is (head, relation, ?) of triple i, query train + i is its
 * (tail, inverse relation, ?). VLP_ERROR_STOPPED. */
VLP_API vlp_status vlp_references_find(vlp_references **out, const vlp_dataset *dataset,
                                       const vlp_query *queries, int64_t count,
                                       const vlp_reference_options *options);
/* The references of query number `query`, nearest first; how many goes into *count (NULL: not wanted).
 * Borrowed. NULL and 0 for a number out of range. */
VLP_API const vlp_reference *vlp_references_get(const vlp_references *references, int64_t query,
                                                int32_t *count);
VLP_API void vlp_references_free(vlp_references *references);

/* ---- 6. Auditing ----------------------------------------------------------------------------- */

/* Two relations of which one repeats the other: in the same direction (`inverse` false) or inverted. A
 * relation paired with its own inverse is symmetric. */
typedef struct vlp_relation_pair {
    int32_t first, second;
    bool inverse;
    int64_t shared; /* training triples of `first` that have their counterpart in `second` */
    double share;   /* of all training triples of `first` */
    int64_t leaked; /* test triples of `first` whose counterpart is in train under `second` */
    vlp_triple example_test, example_train; /* of a leaked one, where leaked > 0 */
} vlp_relation_pair;

typedef struct vlp_audit {
    vlp_dataset_stats stats;
    /* Triples that are in two splits, [a][b] with a < b, and an example where there is one. */
    int64_t overlap[VLP_SPLITS][VLP_SPLITS];
    vlp_triple overlap_example[VLP_SPLITS][VLP_SPLITS];
    /* Pairs of a share of at least `threshold`, most leaked triples first; owned by the audit. */
    vlp_relation_pair *pairs;
    int64_t pair_count;
    int64_t leaked;       /* test triples with a counterpart in train through any of the pairs */
    int64_t linked;       /* test triples whose two entities are directly linked in train */
    int64_t unreachable;  /* test triples whose two entities have no path between them in train */
    int64_t distance[16]; /* test triples by the distance of their entities; the last: 15 and more */
    /* Queries whose answer is among the answers of their references. */
    int64_t train_queries, train_copyable;
    int64_t test_queries, test_copyable;
    double train_references, test_references; /* mean number of references per query */
    int32_t unseen_example[VLP_SPLITS];       /* an entity that is not in train, or -1 */
} vlp_audit;

typedef struct vlp_audit_options {
    int32_t version;
    double threshold; /* of a relation pair's share, 0 to 1 */
    vlp_reference_options references;
} vlp_audit_options;
#define VLP_AUDIT_OPTIONS_VERSION 1
#define VLP_AUDIT_OPTIONS_INIT                                                                          \
    { VLP_AUDIT_OPTIONS_VERSION, 0.8, VLP_REFERENCE_OPTIONS_INIT }

/* Looks for what makes the test split of a data set easier than it seems. *out is to be freed with
 * vlp_audit_free, and may outlive the data set. VLP_ERROR_STOPPED. */
VLP_API vlp_status vlp_audit_run(vlp_audit **out, const vlp_dataset *dataset,
                                 const vlp_audit_options *options);
VLP_API void vlp_audit_free(vlp_audit *audit);

/* ---- 7. Training ----------------------------------------------------------------------------- */

/* A score is the weighted sum of the components that a run has: f = sum of weight_c f_c over them. Each
 * has its own parameters and its own loss; the weights are chosen on the validation split.
 *   horizontal  f_g, of the embeddings
 *   vertical    f_c, of the vertical aggregator, from the query's references
 * Arrays of figures that are indexed by component have VLP_MAX_COMPONENTS elements, so that a new
 * component changes no layout; they hold NaN, or no queries, for components a run does not have. A set
 * of components is the bits 1 << component. */
typedef enum vlp_component {
    VLP_HORIZONTAL = 0, /* embeddings */
    VLP_VERTICAL,       /* the aggregator of references */
    VLP_PATH,           /* paths of known triples */
    VLP_COMPONENTS
} vlp_component;
enum { VLP_MAX_COMPONENTS = 4 };

/* "horizontal", "vertical", "path"; NULL for a number that is none of them. */
VLP_API const char *vlp_component_name(vlp_component component);

/* What is recorded at every evaluation on the validation split while a run is trained. */
typedef struct vlp_history_point {
    int64_t step;
    double losses[VLP_MAX_COMPONENTS]; /* of that step; NaN without one */
    double valid_mrr;                  /* NaN without a validation split */
} vlp_history_point;

typedef struct vlp_train_options {
    int32_t version;
    const char *recipe;          /* an INI file of settings; NULL: none */
    const char *const *settings; /* (setting_count) "key=value" each; they override the recipe */
    int32_t setting_count;
    const char *device; /* "auto" (a GPU where there is one), "cpu" or "cuda"; NULL: auto */
    /* Trains the vertical aggregator alone, or with path=on the path model, over components that are
     * not changed: those of a finished run, whose settings are then the defaults; or arrays as
     * vlp_run_export writes them, with the names of their rows in entities.tsv and relations.tsv where
     * these exist. NULL: everything is trained. */
    const char *base;
    /* Continues from the folder's last save, with the run's own settings; a run never saved is started.
     * Of recipe and settings only threads, eval_every, eval_triples, save_every, patience and steps may
     * differ from the run's own. With other steps, a schedule that depends on them starts anew from
     * there. */
    bool resume;
    const vlp_observer *observer;
    /* Since version 2. Seconds for all of it: the settings that are not given are chosen by the graph,
     * the device and this time, which is kept within a tenth, by what steps cost and, where there is
     * time, by trials on the validation split; recipe.ini in the run's folder has them. A run that is
     * resumed has its settings already. Not with a recipe or a base. 0: settings that are not given have
     * their defaults. VLP_TIME_DEFAULT: ten minutes on a CPU, three on a GPU. */
    double time;
    /* Since version 3. Called at every evaluation on the validation split, with what metrics.jsonl then
     * has a line of; from the thread that called the library, like the observer's functions. NULL: not
     * wanted. */
    void (*metrics)(void *user, const vlp_history_point *point);
    void *user; /* handed to `metrics` */
} vlp_train_options;
#define VLP_TIME_DEFAULT (-1.0)
#define VLP_TRAIN_OPTIONS_VERSION 3
#define VLP_TRAIN_OPTIONS_INIT                                                                          \
    { VLP_TRAIN_OPTIONS_VERSION, NULL, NULL, 0, NULL, NULL, false, NULL, 0, NULL, NULL }

typedef struct vlp_train_report {
    int64_t steps;  /* done in all */
    double seconds; /* of this call */
    double steps_per_second;
    double losses[VLP_MAX_COMPONENTS]; /* of the last step; 0 for components that are not trained */
    double valid_mrr;                  /* the best validation MRR; NaN without a validation split */
    int64_t call_steps;                /* done in this call */
} vlp_train_report;

/* Trains a model on the data set in folder `data` into the run folder `run`: config.ini,
 * model.safetensors, state.safetensors, entities.tsv, relations.tsv, triples.tsv.gz, metrics.jsonl,
 * train.log. The run holds its data set: it needs no other folder to be opened. `out` (NULL: not wanted)
 * receives the report. While it is trained, train.lock in the folder names the process. A call that
 * fails before it has saved anything leaves nothing behind. Thread-safe, one folder per call.
 *
 * VLP_ERROR_STOPPED: the observer asked to stop; what was trained is saved, `out` is filled, and
 * `resume` continues. VLP_ERROR_EXISTS: the folder holds a run, and `resume` is false, or it holds other
 * files. VLP_ERROR_BUSY: another call or process is training this run; the message names the process.
 * VLP_ERROR_UNKNOWN: a setting that does not exist; VLP_ERROR_ARGUMENT: a value out of its range, or
 * settings that contradict each other; VLP_ERROR_FORMAT: such a mistake in the recipe, a wrong line in
 * the data set, or a damaged run. VLP_ERROR_DIVERGED: a loss or gradient is NaN or infinite.
 * VLP_ERROR_DEVICE, VLP_ERROR_IO. */
VLP_API vlp_status vlp_train(vlp_train_report *out, const char *data, const char *run,
                             const vlp_train_options *options);

/* The same on `dataset`, which is open already or was made from memory. It is borrowed for the call and
 * not changed; other threads may read it meanwhile. Returns what vlp_train returns. */
VLP_API vlp_status vlp_train_dataset(vlp_train_report *out, const vlp_dataset *dataset, const char *run,
                                     const vlp_train_options *options);

/* A setting: its name, its section in config.ini, its default, what it may be, and a line of help. All
 * are constants but `range`, which is borrowed from the thread until its next call. */
typedef struct vlp_setting_info {
    const char *name, *section, *fallback, *range, *help;
} vlp_setting_info;
/* Writes setting number `index`, from 0, to *out. False, with *out untouched, past the last one and for
 * NULL. Thread-safe. */
VLP_API bool vlp_setting_describe(vlp_setting_info *out, int32_t index);

/* A trial of a search: a training of one candidate, which is settings that were drawn. */
typedef struct vlp_tune_trial {
    int64_t candidate;    /* from 0 */
    int32_t rung;         /* 0 to 3 */
    int32_t part;         /* trained for 1/part of its passes and steps: 27, 9, 3 or 1, by the rung */
    double mrr;           /* on the validation split; NaN: the training diverged */
    double seconds;       /* it took */
    const char *settings; /* "path_drop=0.2 path_rate=0.003": what the search varies; borrowed */
} vlp_tune_trial;

typedef struct vlp_tune_state {
    const vlp_tune_trial *trials; /* (count) finished ones, best first; borrowed */
    int64_t count;
    const vlp_tune_trial *last; /* the one that has finished now, NULL: none has */
    int32_t running;            /* trials at this moment */
    int64_t total;              /* trials of the whole search; 0: as many as the time allows */
    double seconds;             /* of this call */
    double seconds_left;        /* about; NaN: not known yet */
} vlp_tune_state;

typedef struct vlp_tune_options {
    int32_t version;
    const char *recipe;          /* settings to start from, as in vlp_train_options; NULL: none */
    const char *const *settings; /* (setting_count) "key=value" each; the search does not vary them */
    int32_t setting_count;
    const char *device; /* as in vlp_train_options */
    /* A finished run, or a folder of arrays, over which the aggregator or the path model is searched, as
     * in vlp_train_options; NULL: none. The weights of the sum are chosen anew for each trial. */
    const char *base;
    const char *space; /* an INI file of values and ranges; NULL: the built-in one of the component */
    /* Which built-in space, and what is trained where neither recipe nor base say it: VLP_PATH,
     * VLP_HORIZONTAL (the embeddings) or VLP_VERTICAL (the aggregator, which needs a base). */
    vlp_component component;
    int64_t trials; /* of the whole search, at most; 0: 40, or with a time as many as it allows */
    double time;    /* seconds of this call; 0: no limit */
    const vlp_observer *observer;
    /* Called when a trial has finished and a few times a second, from the thread that called the library
     * like the observer's functions. NULL: not wanted. */
    void (*watch)(void *user, const vlp_tune_state *state);
    void *user; /* handed to `watch` */
} vlp_tune_options;
#define VLP_TUNE_OPTIONS_VERSION 1
#define VLP_TUNE_OPTIONS_INIT                                                                           \
    { VLP_TUNE_OPTIONS_VERSION, NULL, NULL, 0, NULL, NULL, NULL, VLP_PATH, 0, 0, NULL, NULL, NULL }

typedef struct vlp_tune_report {
    int64_t trials;        /* finished in all */
    int64_t call_trials;   /* in this call */
    double seconds;        /* of this call */
    bool complete;         /* every trial of the search is finished; false: the time was up */
    vlp_tune_trial best;   /* its `settings` is NULL */
    char settings[1024];   /* of the best trial */
    int32_t trial_threads; /* threads of each trial */
    int32_t at_once;       /* trials at a time */
} vlp_tune_report;

/* Searches for the settings with the best validation MRR on the data set in folder `data`, by successive
 * halving: of 27 candidates all are trained for 1/27 of their passes and steps, the best 9 for 1/9, the
 * best 3 for 1/3 and the best one in full; then come 27 new ones. A trial is a whole training of this
 * length, with its warm-up and decay in proportion. The folder `out` receives trials.jsonl, a line for
 * each finished trial, and at the end best.ini: the settings of the best trial, as it was trained, as a
 * recipe. `report` (NULL: not wanted) receives the result.
 *
 * The same call on the same folder takes up a search that was stopped or killed: finished trials are not
 * repeated. It may have other trials, time, threads, observer and watch, and nothing else. On a CPU a
 * graph of at most 100,000 triples has one thread per trial and as many trials at a time as there are
 * threads; otherwise trials come one after the other. A trial's result depends on neither. One call or
 * process per folder; other than that thread-safe.
 *
 * VLP_ERROR_STOPPED: the observer asked to stop; best.ini is written and `report` filled where a trial
 * is finished. VLP_ERROR_EXISTS: the folder holds a search with other settings, or other files.
 * VLP_ERROR_BUSY: another call or process searches in it. VLP_ERROR_FORMAT: a wrong line in the recipe,
 * the space, the data set or trials.jsonl. VLP_ERROR_ARGUMENT: no settings of the space are valid, there
 * is no validation split, or the time was up before a trial was finished. VLP_ERROR_UNKNOWN,
 * VLP_ERROR_DEVICE, VLP_ERROR_MEMORY, VLP_ERROR_IO. */
VLP_API vlp_status vlp_tune(vlp_tune_report *report, const char *data, const char *out,
                            const vlp_tune_options *options);

/* ---- 8. Runs --------------------------------------------------------------------------------- */

/* A trained run, opened for use. See Conventions for runs and threads. */
typedef struct vlp_run vlp_run;
typedef struct vlp_run_options {
    int32_t version;
    const char *data;   /* a folder with the data set the run was trained on, to use instead of the copy
                           in the run; its checksum is compared. NULL: the copy, or, for a run of format
                           1, which has none, the folder it was trained on */
    const char *device; /* as in vlp_train_options */
    int32_t threads;
    const vlp_observer *observer; /* of opening; NULL: none */
} vlp_run_options;
#define VLP_RUN_OPTIONS_VERSION 1
#define VLP_RUN_OPTIONS_INIT                                                                            \
    { VLP_RUN_OPTIONS_VERSION, NULL, NULL, 0, NULL }
/* Opens the run in `folder` and puts it into *out, to be freed with vlp_run_free. VLP_ERROR_IO: it is no
 * run, has no model yet, or its data set is gone; VLP_ERROR_FORMAT: a file is damaged, or the data set
 * is another one than it was trained on; VLP_ERROR_DEVICE; VLP_ERROR_STOPPED. */
VLP_API vlp_status vlp_run_open(vlp_run **out, const char *folder, const vlp_run_options *options);
VLP_API void vlp_run_free(vlp_run *run);
/* The run's data set, borrowed; NULL for NULL. */
VLP_API const vlp_dataset *vlp_run_dataset(const vlp_run *run);

/* Ranks are realistic (the mean of optimistic and pessimistic) unless said otherwise. Where `queries` is
 * 0 the other members have no meaning. */
typedef struct vlp_metrics {
    int64_t queries;
    double mrr, mr, amri;        /* mean reciprocal rank, mean rank, adjusted mean rank index */
    double hits1, hits3, hits10; /* fraction of queries with rank <= k */
} vlp_metrics;

/* The metrics of the queries that share a value: a relation's id; a side (0: head entities were asked
 * for, 1: tail entities); a mapping (0: 1-1, 1: 1-N, 2: N-1, 3: N-N); a distance between the query's
 * entity and its answer (-1: no path). */
typedef struct vlp_group {
    int32_t value;
    vlp_metrics metrics;              /* by f */
    double alone[VLP_MAX_COMPONENTS]; /* the MRR by each component alone; NaN without one */
} vlp_group;
typedef struct vlp_groups {
    vlp_group *items; /* (count), ascending by value, -1 last */
    int64_t count;
} vlp_groups;

/* An estimate and its 95% interval. */
typedef struct vlp_interval {
    double low, middle, high;
} vlp_interval;

/* Which entity of a triple is asked for. */
typedef enum vlp_sides { VLP_BOTH_SIDES = 0, VLP_HEADS, VLP_TAILS } vlp_sides;

/* Owns all that it points to, and may outlive its run. */
typedef struct vlp_evaluation {
    vlp_split split;
    vlp_sides sides;
    int64_t queries;
    unsigned components;                /* of the run, as bits */
    double weights[VLP_MAX_COMPONENTS]; /* f = sum of weights[c] f_c; NaN for components it has not */
    double lambda; /* f = f_c + lambda f_g. Without meaning where horizontal_only is true: the program's
                      JSON then has null */
    bool horizontal_only; /* f = f_g: the validation split chose it, or the run has no aggregator */
    vlp_metrics both, head, tail; /* of f; head: the queries that ask for head entities */
    vlp_metrics optimistic, pessimistic;
    vlp_metrics
        alone[VLP_MAX_COMPONENTS]; /* each component alone; no queries where the run has it not */
    vlp_metrics frequency, vote;   /* trivial baselines: the relation's most frequent answers; the
                                      answers of the references */
    double macro_mrr;              /* mean over relations */
    vlp_interval interval;         /* of the MRR, 95% */
    double auc_pr;                 /* area under precision and recall over all pairs of a query and a
                                      candidate, its answer the true one; NaN without `candidates` */
    vlp_metrics control;       /* of the same aggregator trained without references; no queries unless
                                  asked for */
    vlp_interval control_gain; /* MRR less the control's, 95%, paired */
    vlp_groups by_relation, by_side, by_mapping, by_distance;
    struct vlp_kept_ranks *ranks; /* of every query; see vlp_evaluation_rank, vlp_evaluation_compare */
    int64_t candidates;           /* entities that compete, before the filter */
    vlp_metrics pagerank;         /* baseline: personalised PageRank from the query's entity; no queries
                                     unless asked for */
    int32_t among;                /* as in the options; where it is 0 what follows is NaN */
    vlp_interval hits10_among;    /* Hits@10 among so many random candidates, of f, 95% */
    double pagerank_hits10_among; /* the same of the baseline; NaN without it */
    int64_t triples;              /* of the split that were ranked */
    int64_t split_triples;        /* that it has */
    int32_t sample;               /* entities drawn as candidates; 0: not drawn */
} vlp_evaluation;

typedef struct vlp_evaluation_options {
    int32_t version;
    vlp_split split;
    unsigned filter; /* bits 1 << split of the answers that are filtered; 0: train and valid, and test
                        too when test is ranked */
    vlp_sides sides;
    const int32_t *candidates; /* (candidate_count) what competes with an answer; NULL: all entities */
    int64_t candidate_count;
    bool control; /* also train and rank the same aggregator without references, over the same
                     embeddings; it is kept in the run's folder as a run of its own, `control` */
    const vlp_observer *observer; /* NULL: none */
    /* Of version 2. */
    bool graph;    /* evaluate the graph of vlp_run_use_graph: its train is the graph, its splits give
                      queries and filter, and its entities are the candidates. False: the run's own */
    int32_t among; /* 1 or more: also the expected Hits@10 where an answer competes with this many of its
                      candidates alone, drawn without replacement from those that the filter leaves. It
                      is computed from the rank, not drawn: with a candidates above the answer and b
                      equal to it among those drawn, a hit has 1 + a + b / 2 <= 10. 0: not */
    bool pagerank; /* also rank by personalised PageRank, the baseline of graphs with new entities, which
                      get it in any case. Its cost is a power iteration per distinct query entity */
    /* Of version 3: for graphs where all queries with all candidates would take too long. */
    int64_t triples; /* rank this many triples of the split, drawn at random; 0: all. The figures are
                        estimates of those of all triples, and the interval says how good */
    int32_t sample;  /* the answers of all queries compete with these many entities only, drawn at random
                        once; 0: all. The figures are others than those among all entities, and far
                        higher: they compare with figures of the same sample alone */
    uint64_t seed;   /* of both draws */
} vlp_evaluation_options;
#define VLP_EVALUATION_OPTIONS_VERSION 3
#define VLP_EVALUATION_OPTIONS_INIT                                                                     \
    {                                                                                                   \
        VLP_EVALUATION_OPTIONS_VERSION, VLP_TEST, 0, VLP_BOTH_SIDES, NULL, 0, false, NULL, false, 0,    \
            false, 0, 0, 0                                                                              \
    }
/* Ranks the answers of a split and puts all figures into *out, to be freed with vlp_evaluation_free.
 * VLP_ERROR_ARGUMENT: the split is empty, a control makes no sense for this run, `graph` is given where
 * no graph is in use, or `sample` together with `candidates`; VLP_ERROR_DIVERGED: a score is NaN;
 * VLP_ERROR_DEVICE; VLP_ERROR_STOPPED; with `control` those of vlp_train. */
VLP_API vlp_status vlp_run_evaluate(vlp_evaluation **out, vlp_run *run,
                                    const vlp_evaluation_options *options);
VLP_API void vlp_evaluation_free(vlp_evaluation *evaluation);

/* What queries were ranked by: f, or a component alone, VLP_BY_F_G + component. */
typedef enum vlp_ranked_by { VLP_BY_F = 0, VLP_BY_F_G, VLP_BY_F_C, VLP_BY_F_P } vlp_ranked_by;

/* The realistic rank of one query's answer. With t triples ranked, query i < t asks (h, r, ?) of
 * triple i and query t + i asks (?, r, t). NaN where there is no such query, for a component that the
 * run does not have, and for arguments out of range. */
VLP_API double vlp_evaluation_rank(const vlp_evaluation *evaluation, vlp_ranked_by by, int64_t query);

/* Writes to *out the MRR of `second` less that of `first`, with its 95% interval, by a bootstrap over
 * triples that are the same for both. They have to be of the same data set (by its checksum), split,
 * sides, filter and candidates, else VLP_ERROR_ARGUMENT; what they were ranked by may differ, and they
 * may be one evaluation. */
VLP_API vlp_status vlp_evaluation_compare(vlp_interval *out, const vlp_evaluation *first,
                                          vlp_ranked_by first_by, const vlp_evaluation *second,
                                          vlp_ranked_by second_by);

/* What was recorded while a run was trained. */
typedef struct vlp_history {
    vlp_history_point *items; /* (count), by step */
    int64_t count;
} vlp_history;
/* Reads the run's metrics.jsonl into *out, to be freed with vlp_history_free; empty without one.
 * VLP_ERROR_IO, VLP_ERROR_FORMAT. */
VLP_API vlp_status vlp_run_history(vlp_history **out, const vlp_run *run);
VLP_API void vlp_history_free(vlp_history *history);

/* Writes to `text`, a buffer of 64 bytes, the value of setting number `index` (as in
 * vlp_setting_describe) that a run was trained with. False, with `text` untouched, past the last one and
 * for NULL. */
VLP_API bool vlp_run_setting(char text[64], const vlp_run *run, int32_t index);

/* The checksum of the names and triples a run was trained on, 32 hexadecimal digits, and the version of
 * the library that trained it; borrowed. NULL for NULL. */
VLP_API const char *vlp_run_checksum(const vlp_run *run);
VLP_API const char *vlp_run_version(const vlp_run *run);

/* A table of embeddings: (rows, columns), a row per entity in the order of ids, complex numbers as all
 * real parts, then all imaginary parts. values is NULL and rows 0 where a run has none. */
typedef struct vlp_embeddings {
    const float *values;
    int64_t rows, columns;
} vlp_embeddings;
/* Writes the embeddings of the entities that a run was trained on to *out, borrowed from the run: the
 * table itself where the run is on the CPU, a copy that the run makes once where it is on a GPU. */
VLP_API vlp_status vlp_run_entity_embeddings(vlp_embeddings *out, vlp_run *run);

/* Writes entities.npy, relations.npy and the aggregator's arrays into the new folder `folder`, and
 * entities.tsv and relations.tsv, which name their rows. VLP_ERROR_IO, VLP_ERROR_EXISTS,
 * VLP_ERROR_DEVICE. */
VLP_API vlp_status vlp_run_export(const vlp_run *run, const char *folder);

/* ---- 9. Predicting --------------------------------------------------------------------------- */

/* A run answers queries (vlp_run_predict), scores triples (vlp_run_score) and looks for missing ones
 * (vlp_run_mine). Below these is what they use: explanations of given answers, calibration, another
 * graph than the one trained on, and files of queries. Ids are those of vlp_run_graph_dataset.
 *
 * An answer's score f is a weighted sum of the run's components: f_g of the embeddings, f_c of the
 * vertical aggregator over references, the known triples nearest to the query, and f_p of the path
 * model. The weights were chosen on the validation split.
 *
 * All functions that compute scores may return VLP_ERROR_DIVERGED (a score is NaN), VLP_ERROR_DEVICE and
 * VLP_ERROR_STOPPED. What they return owns its memory and may outlive the run. */

/* What a run is. Strings are borrowed from the run; `graph` until the next vlp_run_use_graph. */
typedef struct vlp_run_info {
    const char *folder, *data; /* of the run, and of its data set when it was trained */
    const char *model;         /* "rotate" and so on */
    int32_t dim;
    int64_t step;                       /* of the weights in use */
    double valid_mrr;                   /* at that step; NaN without a validation split */
    unsigned components;                /* bits 1 << component; those that score the graph in use */
    double weights[VLP_MAX_COMPONENTS]; /* f = sum of weights[c] f_c; NaN for components it has not */
    bool copies;          /* scores depend on references: there is an aggregator, of weight above 0 */
    bool horizontal_only; /* f = f_g: the validation split chose it, or there is no aggregator */
    double lambda;        /* else f = f_c + lambda f_g */
    int32_t references;   /* maximum number per query */
    const char *graph;    /* the graph in use: its folder; NULL: the run's own train */
} vlp_run_info;
/* Writes to *out; all zeros for a run that is NULL. */
VLP_API void vlp_run_describe(vlp_run_info *out, const vlp_run *run);

/* A reference of a query: a known triple, as it is in the graph, `distance` hops away; -1 where the run
 * was trained with references_choice = random. */
typedef struct vlp_answer_reference {
    vlp_triple triple;
    int32_t distance;
} vlp_answer_reference;

/* A known triple of a path, passed from its head entity to its tail entity (`forward`), or back. */
typedef struct vlp_path_triple {
    vlp_triple triple;
    bool forward;
} vlp_path_triple;

/* A chain of known triples from the entity of a query to an answer. */
typedef struct vlp_path {
    double weight; /* the share of the path score that depends on it, an estimate from gradients */
    const vlp_path_triple *triples; /* (count) */
    int32_t count;
} vlp_path;
enum { VLP_MAX_PATHS = 8 };

/* The known triples that an answer rests on: with all of them taken out of the graph, and the query
 * answered again, the answer has a worse rank; with any one of them put back it has not. At most four.
 * `count` is 0 where no such set was found; the other members then are those of the whole graph. Ranks
 * are filtered and realistic, by f. The horizontal score does not depend on the graph; the vertical
 * score loses the references among the triples, and no others take their place. */
typedef struct vlp_support {
    const vlp_triple *triples; /* (count) */
    int32_t count;
    double rank_before;       /* with the whole graph */
    double rank, score, path; /* without the triples: the rank, f and f_p */
} vlp_support;

typedef struct vlp_prediction {
    int32_t entity;
    bool known;                       /* the answer is in the data set, or in the graph in use */
    double score;                     /* f */
    double parts[VLP_MAX_COMPONENTS]; /* f_g, f_c by component, before their weights; NaN where the run
                                         does not have it */
    const double *contributions;      /* (reference_count) of each reference to this score: f with all of
                                         them less f without this one; NULL unless asked for */
    /* With `explain`, where the run has a path model of weight above 0; else none, and NULL. */
    const vlp_path *paths; /* (path_count), largest weight first; none where no path leads to it */
    int32_t path_count;
    const vlp_support *support;
} vlp_prediction;

/* The answers of one query, best first; equal scores in the order of entities. All of them share the
 * query's references, nearest first. */
typedef struct vlp_answers {
    vlp_query query;
    const vlp_prediction *predictions;
    int32_t prediction_count;
    const vlp_answer_reference *references;
    int32_t reference_count;
    int64_t
        candidate_count; /* entities that may be answers, the known ones among them; ranks are among
                            these. 0: `seen` of the candidates left none, and there is no prediction */
} vlp_answers;

/* A known triple that candidates x have: (x, relation, entity), or for relation + relation_count the
 * triple (entity, relation, x). */
typedef struct vlp_condition {
    int32_t relation, entity;
} vlp_condition;

/* Which entities may be answers: those that meet every restriction given. Only these are scored. */
typedef struct vlp_candidate_options {
    int32_t version;
    const int32_t *entities; /* (entity_count) only these, in any order; NULL: all */
    int64_t entity_count;
    const vlp_condition *conditions; /* (condition_count) triples that each candidate has. Known are the
                                        triples of the same splits as the answers of the call, and those
                                        of a graph of vlp_run_use_graph */
    int32_t condition_count;
    bool seen; /* only entities that the graph in use has in the place that a query asks for: as tail
                  entities of r for (h, r, ?), as head entities for (?, r, t) */
} vlp_candidate_options;
#define VLP_CANDIDATE_OPTIONS_VERSION 1
#define VLP_CANDIDATE_OPTIONS_INIT                                                                      \
    { VLP_CANDIDATE_OPTIONS_VERSION, NULL, 0, NULL, 0, false }

typedef struct vlp_predict_options {
    int32_t version;
    int32_t count;   /* best answers wanted, 1 or more */
    bool known;      /* also those that are known already */
    bool explain;    /* contributions, paths and support; where neither aggregator nor path model scores,
                        also references, on which no score depends */
    unsigned filter; /* bits 1 << split: what counts as known; 0: all splits. All triples of a graph of
                        vlp_run_use_graph count in any case */
    const vlp_observer *observer; /* NULL: none */
    int32_t paths;                /* of an answer, with `explain`, 0 to VLP_MAX_PATHS; 0: no support
                                     either, whose search scores an answer up to 180 times */
    /* Of version 3. */
    const vlp_candidate_options *candidates; /* NULL: every entity */
} vlp_predict_options;
#define VLP_PREDICT_OPTIONS_VERSION 3
#define VLP_PREDICT_OPTIONS_INIT                                                                        \
    { VLP_PREDICT_OPTIONS_VERSION, 10, false, false, 0, NULL, 3, NULL }

/* The answers of many queries. */
typedef struct vlp_predictions vlp_predictions;
/* Answers queries[0 .. count - 1]; *out is to be freed with vlp_predictions_free. A relation
 * r + relation_count asks for head entities. `left_out` of a query (-1: none) is the index of a triple
 * that is taken out of the graph for this query, among vlp_run_graph_triples. Memory is that of the
 * answers: ask in batches of some hundreds where there are many queries; a batch costs one matrix
 * product over all candidates for each of f_c and f_g (with `seen`, one for each relation of the batch).
 * VLP_ERROR_ARGUMENT also where list and conditions of the candidates leave no entity: the message names
 * the restriction that left none. */
VLP_API vlp_status vlp_run_predict(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                                   int64_t count, const vlp_predict_options *options);
/* The answers of query number `query`, borrowed; NULL for a number out of range. */
VLP_API const vlp_answers *vlp_predictions_get(const vlp_predictions *predictions, int64_t query);
VLP_API void vlp_predictions_free(vlp_predictions *predictions);

/* The same for given answers: query i has the one prediction answers[i], with references and
 * contributions. queries, answers: (count). `count`, `known`, `explain` and `candidates` of the options
 * are ignored. */
VLP_API vlp_status vlp_run_explain(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                                   const int32_t *answers, int64_t count,
                                   const vlp_predict_options *options);

/* ---- Without some triples ---- */

enum { VLP_MAX_REMOVED = 16 };
/* An answer with the whole graph, and without some of its triples. Ranks are filtered and realistic, by
 * f; parts as in vlp_prediction. */
typedef struct vlp_what_if {
    double rank_before, score_before, parts_before[VLP_MAX_COMPONENTS];
    double rank, score, parts[VLP_MAX_COMPONENTS];
} vlp_what_if;
/* Scores the answer of a query again as if triples[0 .. count - 1] were not known, and writes what it
 * was and what it becomes to *out. f_p reads the graph that is left; f_c loses the references among the
 * triples, and no others take their place; f_g does not depend on the graph.
 *   triples  (count) of vlp_run_graph_triples, by ids, in any order; NULL where count is 0
 *   count    0 to VLP_MAX_REMOVED
 *   options  of which `filter` is read: what counts as known; NULL: the defaults
 * VLP_ERROR_ARGUMENT also for a triple that the graph in use does not have. */
VLP_API vlp_status vlp_run_what_if(vlp_what_if *out, vlp_run *run, vlp_query query, int32_t answer,
                                   const vlp_triple *triples, int32_t count,
                                   const vlp_predict_options *options);

/* ---- The relation between two entities ---- */

typedef struct vlp_entity_pair {
    int32_t head, tail;
} vlp_entity_pair;

/* How well a relation holds between two entities. Raw scores do not compare across relations: f of one
 * relation may be larger than that of another for all entities. So a relation is scored by how far its
 * score stands out among the entities: p(t | h, r) is the softmax of f / s over the entities that are
 * not known answers of (h, r, ?), t itself among them, and the score is the mean of log p(t | h, r) and
 * log p(h | r, t); it is at most 0. The scale s is a constant of the run and its graph, 4 times the mean
 * standard deviation of f over entities in 64 queries of training triples. A triple that is in the graph
 * in use has its own edge taken out, as in vlp_score. */
typedef struct vlp_relation_prediction {
    int32_t relation; /* r: the triple is (head, r, tail); r + relation_count: it is (tail, r, head) */
    bool known;       /* that triple is in the data set, or in the graph in use */
    int64_t edge;     /* its index among vlp_run_graph_triples, or -1: what explaining it leaves out */
    double score;     /* the mean of: */
    double tail_log_probability, head_log_probability; /* of the pair's tail given its head, and back */
    double f, parts[VLP_MAX_COMPONENTS]; /* f and its components, the means of both directions */
} vlp_relation_prediction;

/* The relations of one pair, best first; equal scores in the order of relations. */
typedef struct vlp_relation_answers {
    vlp_entity_pair pair;
    const vlp_relation_prediction *predictions;
    int32_t prediction_count;
} vlp_relation_answers;

/* The relations of many pairs. */
typedef struct vlp_relation_predictions vlp_relation_predictions;
/* Scores every relation in both directions between the entities of pairs[0 .. count - 1] (in one
 * direction where a pair is an entity with itself); *out is to be freed with
 * vlp_relation_predictions_free. Of the options `count`, `known`, `filter` and `observer` are read; a
 * relation of vlp_relation_prediction is explained by vlp_run_explain of {head, relation, edge} with the
 * answer tail. A pair costs the scores of 4 relation_count queries with all entities. */
VLP_API vlp_status vlp_run_predict_relations(vlp_relation_predictions **out, vlp_run *run,
                                             const vlp_entity_pair *pairs, int64_t count,
                                             const vlp_predict_options *options);
/* The relations of pair number `pair`, borrowed; NULL for a number out of range. */
VLP_API const vlp_relation_answers *vlp_relation_predictions_get(const vlp_relation_predictions *from,
                                                                 int64_t pair);
VLP_API void vlp_relation_predictions_free(vlp_relation_predictions *predictions);

/* ---- Scores of triples ---- */

/* A triple is asked in both directions, (h, r, ?) for t and (?, r, t) for h; its scores are the means of
 * the two. A triple that is in the graph in use has its own edge taken out, in both directions, as a
 * training query has: otherwise it would be copied from itself. */
typedef struct vlp_score {
    double score;                     /* f */
    double parts[VLP_MAX_COMPONENTS]; /* as in vlp_prediction */
    double tail, head;                /* f of t as the answer of (h, r, ?), of h for (?, r, t) */
    double probability;               /* see vlp_run_calibrate; NaN without a validation split */
    bool known;                       /* in the data set, or in the graph in use */
} vlp_score;

typedef struct vlp_score_options {
    int32_t version;
    bool uncalibrated; /* no probabilities */
    double prior;      /* the fraction of true triples among those scored, above 0 and below 1 */
    const vlp_observer *observer; /* NULL: none */
} vlp_score_options;
#define VLP_SCORE_OPTIONS_VERSION 1
#define VLP_SCORE_OPTIONS_INIT                                                                          \
    { VLP_SCORE_OPTIONS_VERSION, false, 0.5, NULL }
/* Writes the scores of triples[i] to out[i]. out, triples: (count), which may be NULL where count is 0.
 * On failure out may be filled in part. */
VLP_API vlp_status vlp_run_score(vlp_score *out, vlp_run *run, const vlp_triple *triples, int64_t count,
                                 const vlp_score_options *options);

/* ---- Calibration ---- */

/* How probabilities are made: the triples of the validation split against corruptions of them, which
 * have another head or tail entity, half of the time any entity, half of the time one that train has in
 * that place of the relation; no corruption is a known triple (train, valid). P = 1 / (1 +
 * exp(-(intercept + slope * score))) is fitted by logistic regression with both kinds weighted equally,
 * so that a prior of 1/2 is built in; another prior shifts the intercept by its log odds. The graph is
 * the run's own train; the components are those that score the graph in use. The curve, the Brier score
 * and the log loss are of triples that the fit had not seen: each half of the validation split is judged
 * by the fit on the other half. */
enum { VLP_CALIBRATION_BINS = 10 };
typedef struct vlp_calibration_bin {
    double weight;    /* fraction of all triples, true ones and corruptions weighted equally */
    double predicted; /* mean probability; NaN where the bin is empty */
    double observed;  /* fraction of true ones */
    int64_t triples;
} vlp_calibration_bin;
typedef struct vlp_calibration {
    int64_t positives, negatives;
    double intercept, slope;
    double brier, log_loss;                         /* of a constant 1/2: 0.25, log 2 */
    vlp_calibration_bin bins[VLP_CALIBRATION_BINS]; /* of probabilities, equally wide */
} vlp_calibration;

typedef struct vlp_calibration_options {
    int32_t version;
    int32_t exchanges; /* corruptions of each triple and side, 1 to 100 */
    bool fresh;        /* do not use what an earlier call left in the run's folder */
    uint64_t seed;
    const vlp_observer *observer; /* NULL: none */
} vlp_calibration_options;
#define VLP_CALIBRATION_OPTIONS_VERSION 1
#define VLP_CALIBRATION_OPTIONS_INIT                                                                    \
    { VLP_CALIBRATION_OPTIONS_VERSION, 4, false, 0, NULL }
/* Fits probabilities and writes the fit to *out. VLP_ERROR_ARGUMENT without a validation split. The
 * result is kept in the run's folder (calibration.safetensors) and used again as long as the weights are
 * the same; a folder that cannot be written is no error. */
VLP_API vlp_status vlp_run_calibrate(vlp_calibration *out, vlp_run *run,
                                     const vlp_calibration_options *options);

/* ---- True or false ---- */

/* A triple is taken as true where its score, vlp_score.score, is at least the threshold of its relation.
 * Thresholds are fitted on triples of the validation split and corruptions of them, made as for
 * calibration: they maximize the accuracy with both kinds weighted equally. The accuracy on the test
 * split is that of test triples and of corruptions of their own, which are in none of the splits. At
 * most 4,000 triples of a split are used, of valid as many as possible of each relation. The graph is
 * the run's own train; the components are those that score the graph in use. */
typedef struct vlp_relation_threshold {
    double threshold;
    bool own; /* fitted on triples of this relation; false: too few of them, the threshold of all */
    int64_t positives, negatives;           /* of valid */
    int64_t test_positives, test_negatives; /* of test */
    double test_accuracy;                   /* NaN where test has none of either kind */
} vlp_relation_threshold;

typedef struct vlp_classification {
    double threshold;                  /* fitted on triples of all relations */
    vlp_relation_threshold *relations; /* (relation_count) */
    int32_t relation_count;
    int64_t positives, negatives;
    double accuracy; /* of the triples it was fitted on, by the thresholds of their relations */
    int64_t test_positives, test_negatives;
    double test_accuracy;                   /* the mean of the next two; NaN without a test split */
    double test_true_rate, test_false_rate; /* the fraction of true triples that are taken as true, of
                                               corruptions that are taken as false */
} vlp_classification;

typedef struct vlp_classification_options {
    int32_t version;
    int32_t exchanges; /* corruptions of each triple and side, 1 to 100 */
    int32_t minimum;   /* triples of a relation in valid, and corruptions, that it needs for a threshold
                          of its own, 1 or more */
    uint64_t seed;
    const vlp_observer *observer; /* NULL: none */
} vlp_classification_options;
#define VLP_CLASSIFICATION_OPTIONS_VERSION 1
#define VLP_CLASSIFICATION_OPTIONS_INIT                                                                 \
    { VLP_CLASSIFICATION_OPTIONS_VERSION, 2, 10, 0, NULL }
/* Fits thresholds and puts them into *out, to be freed with vlp_classification_free. VLP_ERROR_ARGUMENT
 * without a validation split. They are kept in the run's folder (thresholds.safetensors) and used again
 * as long as weights and options are the same; a folder that cannot be written is no error. */
VLP_API vlp_status vlp_run_classify(vlp_classification **out, vlp_run *run,
                                    const vlp_classification_options *options);
/* Whether a triple of the relation with this score is taken as true; false for NULL, for a relation out
 * of range and for a score that is NaN. */
VLP_API bool vlp_classification_holds(const vlp_classification *classification, int32_t relation,
                                      double score);
VLP_API void vlp_classification_free(vlp_classification *classification);

/* ---- Missing triples ---- */

/* The likeliest triples that are not known. Not all |E|^2 |R| are scored: a relation is asked, in both
 * directions, about the entities that occur in its place in the graph; the best `per_query` unknown
 * answers of each query, among all entities, are candidates; and these are scored as vlp_run_score does.
 * Triples that no query ranks so high, and entities never seen in that place, are left out; so are (e,
 * r, e), unless the graph has such triples of r. With `candidates` the answers of a query are among
 * these; the entities it is asked about are not restricted, so that a triple has at least one candidate,
 * at a side that `sides` asks for. */
typedef struct vlp_mine_options {
    int32_t version;
    int32_t count;     /* triples wanted, 1 or more */
    int32_t per_query; /* candidates per query, 1 to 1000 */
    int32_t relation;  /* only this one; -1: all */
    double prior;      /* as for scores; it changes probabilities, not the order */
    const char *state; /* a file for the progress made, written now and then and at the end: remove it
                          when the result is safe, until then resuming gives it again. NULL: none. An
                          existing one gives VLP_ERROR_EXISTS without `resume` */
    bool resume;       /* continue from `state`, where it exists */
    const vlp_observer *observer; /* NULL: none */
    /* Of version 2. */
    const vlp_candidate_options *candidates; /* NULL: every entity */
    vlp_sides sides;                         /* which entity of a triple queries ask for */
} vlp_mine_options;
#define VLP_MINE_OPTIONS_VERSION 2
#define VLP_MINE_OPTIONS_INIT                                                                           \
    { VLP_MINE_OPTIONS_VERSION, 100, 10, -1, 0.5, NULL, false, NULL, NULL, VLP_BOTH_SIDES }

typedef struct vlp_mined {
    vlp_triple triple;
    double score, parts[VLP_MAX_COMPONENTS], probability; /* as in vlp_score */
    double tail, head;
} vlp_mined;
typedef struct vlp_mining {
    vlp_mined *items; /* (count), best first; equal scores by relation, head, tail */
    int64_t count;
    int64_t queries;          /* asked, in both directions or in that of `sides` */
    int64_t possible_queries; /* of these relations and all entities */
    int64_t candidates;       /* scored; a triple that both directions propose counts twice */
    int64_t possible_triples; /* of these relations, |E|^2 each, the known ones among them */
} vlp_mining;
/* Puts the best missing triples into *out, to be freed with vlp_mining_free. VLP_ERROR_STOPPED: the
 * observer asked to stop, and the state was saved. VLP_ERROR_ARGUMENT also for a state of another run,
 * graph or choice of options; VLP_ERROR_FORMAT for a damaged one; VLP_ERROR_IO. */
VLP_API vlp_status vlp_run_mine(vlp_mining **out, vlp_run *run, const vlp_mine_options *options);
VLP_API void vlp_mining_free(vlp_mining *mining);

/* ---- Another graph ---- */

typedef struct vlp_graph_report {
    int64_t triples;                             /* taken, of the folder's train */
    int64_t new_triples;                         /* of these, not in the run's train */
    int64_t unknown_triples;                     /* of train, left out: they have a name without an id */
    int64_t unknown_entities, unknown_relations; /* names in train that the run does not know */
    int64_t unknown_others;                      /* of valid and test, left out likewise */
    int64_t new_entities; /* of all splits, that the run does not know and that got ids. 0: there are
                             none, or the run has no path model, without which none can be scored */
} vlp_graph_report;

/* From now on predictions, scores and mining read the train of the data set in `folder` instead of the
 * run's own: a graph that has grown since training, or one of other entities over the same relations.
 * References and paths come from it, and all its triples count as known. Nothing is trained.
 *
 * Entities and relations are matched by name. Triples of a relation that the run does not know are left
 * out. Entities that it does not know get ids behind its own where it has a path model. Then the path
 * model alone scores (f = f_p): the other components need trained entities; and only entities of the
 * folder are answers. In a run without path model triples of unknown entities are left out.
 *
 * out: the counts; NULL: not wanted.
 * folder: borrowed for the call. NULL restores the run's own train.
 * observer: of opening the data set; may be NULL.
 *
 * Evaluation reads the graph only where its options say so. On failure the graph stays as it was:
 * VLP_ERROR_IO, VLP_ERROR_FORMAT (also where no triple is left), VLP_ERROR_STOPPED. See Conventions for
 * runs and threads. */
VLP_API vlp_status vlp_run_use_graph(vlp_graph_report *out, vlp_run *run, const char *folder,
                                     const vlp_observer *observer);
/* The data set whose ids queries, answers and triples of the run have: its own, or after
 * vlp_run_use_graph one with the run's entities and relations under their own ids, new entities behind
 * them, and the folder's triples and labels. Borrowed until the next vlp_run_use_graph. NULL for NULL.
 */
VLP_API const vlp_dataset *vlp_run_graph_dataset(const vlp_run *run);
/* The training triples of that data set: the graph in use. Their number goes into *count (NULL: not
 * wanted). Borrowed likewise. NULL and 0 for NULL. */
VLP_API const vlp_triple *vlp_run_graph_triples(const vlp_run *run, int64_t *count);

/* ---- Files of queries and of triples ---- */

/* Reads "head<TAB>relation<TAB>tail" line by line in bounded memory. Names are those of the data set; an
 * entity or a relation may also be given by a label that it alone has. A reader serves one thread at a
 * time. */
typedef struct vlp_triple_reader vlp_triple_reader;
/* Opens the file `path`, plain, gzip or zstd ("-": standard input). `dataset` is borrowed until the
 * reader is freed with vlp_triple_reader_free. With `queries` every line is a query, with one "?", for
 * its head, its relation or its tail, which reads as -1. VLP_ERROR_IO. */
VLP_API vlp_status vlp_triple_reader_open(vlp_triple_reader **out, const vlp_dataset *dataset,
                                          const char *path, bool queries);
/* Writes the next triple to *out and true to *more; at the end false to *more, and *out is untouched. A
 * bad line is VLP_ERROR_FORMAT, an unknown name VLP_ERROR_UNKNOWN, with file, line and cause in the
 * message; the call after it continues with the next line. VLP_ERROR_IO. */
VLP_API vlp_status vlp_triple_reader_next(vlp_triple *out, bool *more, vlp_triple_reader *reader);
/* The number of the last line read, from 1; 0 before the first, and for NULL. */
VLP_API int64_t vlp_triple_reader_line(const vlp_triple_reader *reader);
VLP_API void vlp_triple_reader_free(vlp_triple_reader *reader);

/* The query that a triple asks whose head or whose tail is -1; left_out is -1. Where the dataset is
 * NULL, an id is out of range, or not exactly one of head and tail is -1, all members are -1, which
 * every function that takes queries refuses. */
VLP_API vlp_query vlp_query_of(const vlp_dataset *dataset, vlp_triple query);

#ifdef __cplusplus
}
#endif
#endif
