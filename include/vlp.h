/* vlp: learn from the triples of a knowledge graph, predict the missing ones, and show which known
 * triples each prediction was copied from.
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
 *   9. Predicting: answers with what they were copied from, scores, missing triples
 *
 * Conventions
 *   - Functions that can fail return vlp_status and put what they make into their first argument.
 *     On failure that argument is left NULL or untouched, and vlp_error_message() says, in one line,
 *     what went wrong, where, and what to do.
 *   - What a function puts into a `**out` is yours: free it with the matching _free. What a function
 *     returns as a const pointer is borrowed from its first argument and lives as long as that does.
 *   - Every _free takes NULL.
 *   - Option structs start with their initializer (`vlp_dataset_options options =
 *     VLP_DATASET_OPTIONS_INIT;`); passing NULL means the defaults.
 *   - The library does not print, does not exit and installs no signal handler.
 *   - Distinct objects may be used from distinct threads. A data set may be read by many threads. An
 *     opened run serves many threads at once: its tables are shared and read-only, and each call has
 *     working memory of its own, which the run keeps for later calls. On the CPU calls run at the same
 *     time, each with the run's number of threads; on a GPU they queue. What calls return does not
 *     depend on it. vlp_run_use_graph waits for the calls under way, and later ones wait for it.
 *     vlp_run_free is for when no call is under way; an observer must not call the run it observes.
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

typedef enum vlp_status {
    VLP_OK = 0,
    VLP_ERROR_MEMORY,   /* an allocation failed */
    VLP_ERROR_IO,       /* a file could not be read or written */
    VLP_ERROR_FORMAT,   /* a file was read, and what it says is wrong */
    VLP_ERROR_UNKNOWN,  /* a name that is not in the data set */
    VLP_ERROR_ARGUMENT, /* an argument out of its range, or a call that makes no sense */
    VLP_ERROR_STOPPED   /* the observer asked to stop */
} vlp_status;

/* The message of this thread's last failed call; "" when none has failed. */
VLP_API const char *vlp_error_message(void);

/* "0.1.0". The number of the library that runs, not of the header that was compiled. */
VLP_API const char *vlp_version(void);

/* All memory of the library's own comes from here. To be set, if at all, before any other call of the
 * process; NULL puts the C library's functions back. `reallocate` takes NULL for `memory`. */
typedef struct vlp_allocator {
    void *(*reallocate)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
    void *user;
} vlp_allocator;

VLP_API void vlp_allocator_set(const vlp_allocator *allocator);

/* How long work reports and how it is stopped. Any member may be NULL. The calls come from the thread
 * that called the library, a few times a second at most. */
typedef struct vlp_observer {
    /* A line worth telling the user, without newline. */
    void (*log)(void *user, const char *line);
    /* `done` of `total` (0: unknown) units of `what` ("triples", "queries"). done == total ends it. */
    void (*progress)(void *user, const char *what, int64_t done, int64_t total);
    /* True asks the work to stop: it then returns VLP_ERROR_STOPPED and leaves nothing half-done. */
    bool (*stop)(void *user);
    void *user;
} vlp_observer;

/* ---- 2. Data sets ---------------------------------------------------------------------------- */

/* A folder with train, valid and test, each as .txt, .tsv or .nt, plain or .gz, and perhaps
 * labels.tsv. Entities and relations are numbered from 0 in the order in which they first appear,
 * train before valid before test. Repeated lines of a split count once.
 *
 * Queries run both ways over one kind of relation: relation r + relation_count is r read backwards. */
typedef struct vlp_dataset vlp_dataset;

typedef struct vlp_triple {
    int32_t head, relation, tail;
} vlp_triple;

typedef enum vlp_split { VLP_TRAIN = 0, VLP_VALID, VLP_TEST, VLP_SPLITS } vlp_split;

typedef struct vlp_dataset_options {
    int32_t version;
    int32_t threads;              /* 0: as many as the machine has */
    const vlp_observer *observer; /* NULL: silent */
} vlp_dataset_options;
#define VLP_DATASET_OPTIONS_INIT                                                                        \
    { 1, 0, NULL }

/* A missing valid or test is an empty split; a missing or empty train is an error. */
VLP_API vlp_status vlp_dataset_open(vlp_dataset **out, const char *folder,
                                    const vlp_dataset_options *options);
VLP_API void vlp_dataset_free(vlp_dataset *dataset);

VLP_API int32_t vlp_dataset_entity_count(const vlp_dataset *dataset);
VLP_API int32_t vlp_dataset_relation_count(const vlp_dataset *dataset);
VLP_API const char *vlp_dataset_entity_name(const vlp_dataset *dataset, int32_t entity);
VLP_API const char *vlp_dataset_relation_name(const vlp_dataset *dataset, int32_t relation);
/* What a person would rather read: the second and the third column of labels.tsv (name, label,
 * description), NULL where there is none. */
VLP_API const char *vlp_dataset_entity_label(const vlp_dataset *dataset, int32_t entity);
VLP_API const char *vlp_dataset_entity_description(const vlp_dataset *dataset, int32_t entity);

/* By name, or else by a label that only one entity has. The error names the nearest known ones. */
VLP_API vlp_status vlp_dataset_find_entity(int32_t *out, const vlp_dataset *dataset, const char *name);
VLP_API vlp_status vlp_dataset_find_relation(int32_t *out, const vlp_dataset *dataset, const char *name);

/* The distinct triples of a split, in the order of the file. */
VLP_API const vlp_triple *vlp_dataset_triples(const vlp_dataset *dataset, vlp_split split,
                                              int64_t *count);

typedef struct vlp_dataset_stats {
    int64_t entities, relations;
    int64_t triples[VLP_SPLITS];         /* distinct */
    int64_t duplicates[VLP_SPLITS];      /* lines that repeated an earlier one of the same split */
    int64_t unseen_entities[VLP_SPLITS]; /* of the split, not in train; 0 for train */
    int64_t unseen_triples[VLP_SPLITS];  /* with such an entity */
    int64_t unseen_relations[VLP_SPLITS];
    int64_t labels; /* entities with a label */
    int64_t bytes;  /* memory held: names, ids, graph */
} vlp_dataset_stats;

VLP_API vlp_status vlp_dataset_describe(vlp_dataset_stats *out, const vlp_dataset *dataset);

/* The answers of (entity, relation, ?) in the union of the splits whose bit (1 << split) is set, as
 * ascending entity ids; relation + relation_count asks for the heads. The filter is a view of its own:
 * build it once and ask it often. */
typedef struct vlp_filter vlp_filter;
VLP_API vlp_status vlp_filter_new(vlp_filter **out, const vlp_dataset *dataset, unsigned splits);
VLP_API const int32_t *vlp_filter_answers(const vlp_filter *filter, int32_t entity, int32_t relation,
                                          int64_t *count);
VLP_API bool vlp_filter_has(const vlp_filter *filter, int32_t entity, int32_t relation, int32_t answer);
VLP_API void vlp_filter_free(vlp_filter *filter);

/* ---- 3. Making data sets --------------------------------------------------------------------- */

/* How triples are divided into train, valid and test. */
typedef struct vlp_split_options {
    int32_t version;
    int32_t threads;
    double valid, test; /* shares of the triples, 0 to 1 */
    bool by_relation;   /* take the shares from every relation alike */
    bool keep_entities; /* every entity and relation stays in train, if shares have to give way */
    uint64_t seed;
    const vlp_observer *observer;
} vlp_split_options;
#define VLP_SPLIT_OPTIONS_INIT                                                                          \
    { 1, 0, 0.05, 0.05, false, true, 0, NULL }

/* Counts of a finished import. */
typedef struct vlp_import_report {
    int64_t entities, relations;
    int64_t triples[VLP_SPLITS];
    int64_t labels;
    int64_t duplicates; /* repeated triples that were dropped */
    int64_t skipped;    /* statements left out: literals, redundant inverse pointers */
} vlp_import_report;

/* Each of these writes a new folder whole or not at all, and refuses one that exists and is not empty.
 */

/* Divides a file of triples (.txt, .tsv, .nt, plain or .gz). */
VLP_API vlp_status vlp_split_file(vlp_import_report *out, const char *file, const char *folder,
                                  const vlp_split_options *options);

/* Reads N-Triples, takes rdfs:label and skos:prefLabel as labels, leaves other literals out unless
 * `keep_literals`, and divides the rest. `language`: the labels preferred ("en"), NULL for any. */
VLP_API vlp_status vlp_import_ntriples(vlp_import_report *out, const char *file, const char *folder,
                                       bool keep_literals, const char *language,
                                       const vlp_split_options *options);

/* Reads a delimited table, one triple a row, and divides it. `columns` are the 1-based positions of
 * head, relation and tail; `header` skips the first row; fields may not contain the separator. */
typedef struct vlp_table_options {
    int32_t version;
    int32_t columns[3];
    char separator;
    bool header;
} vlp_table_options;
#define VLP_TABLE_OPTIONS_INIT                                                                          \
    { 1, {1, 2, 3}, '\t', false }
VLP_API vlp_status vlp_import_table(vlp_import_report *out, const char *file, const char *folder,
                                    const vlp_table_options *table, const vlp_split_options *options);

/* Reads the WordNet database files (data.noun and so on) of a folder. Synsets become entities with
 * readable names (dog.n.01), their words the label and their gloss the description. Of a pointer and its
 * inverse (hyponym and hypernym) one is left out as redundant unless `keep_inverses`. */
VLP_API vlp_status vlp_import_wordnet(vlp_import_report *out, const char *source, const char *folder,
                                      bool keep_inverses, const vlp_split_options *options);

/* Generates people, and relations between them that follow known rules (father of father is
 * grandfather, and so on). Held-out triples of test need 1, 2, 3 or 4 steps to be concluded; folder
 * gets hops.tsv, which says for each line of test.txt how many. */
typedef struct vlp_family_options {
    int32_t version;
    int32_t families; /* independent founding couples, 1 to 100000; 3 or more for all kinds of steps */
    int32_t generations; /* 2 to 12; cousins need 3 */
    double held_out;     /* share of the concludable triples for valid and for test each, 0 to 0.4 */
    uint64_t seed;
} vlp_family_options;
#define VLP_FAMILY_OPTIONS_INIT                                                                         \
    { 1, 40, 5, 0.1, 0 }
VLP_API vlp_status vlp_family_generate(vlp_import_report *out, const char *folder,
                                       const vlp_family_options *options);

/* ---- 4. Distances ---------------------------------------------------------------------------- */

/* Undirected hops over the training graph, all relations alike. out[e] is the distance of entity e
 * from `source`, or -1 where it is unreachable or farther than `limit` (0: no limit). */
VLP_API vlp_status vlp_distance_from(int32_t *out, const vlp_dataset *dataset, int32_t source,
                                     int32_t limit);

/* out[i] is the distance of pairs[i].head and pairs[i].tail, -1 where there is no path. The relation
 * is ignored. */
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
    const vlp_observer *observer;
} vlp_reference_options;
#define VLP_REFERENCE_OPTIONS_INIT                                                                      \
    { 1, 8, 8, 0, 0, NULL }

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

/* The references of many queries at once. `queries` NULL asks for all training queries, each without
 * its own triple: query i < train is (head, relation, ?) of triple i, query train + i is its
 * (tail, inverse relation, ?). */
typedef struct vlp_references vlp_references;
VLP_API vlp_status vlp_references_find(vlp_references **out, const vlp_dataset *dataset,
                                       const vlp_query *queries, int64_t count,
                                       const vlp_reference_options *options);
/* The references of query `query`, nearest first. */
VLP_API const vlp_reference *vlp_references_get(const vlp_references *references, int64_t query,
                                                int32_t *count);
VLP_API void vlp_references_free(vlp_references *references);

/* ---- 6. Auditing ----------------------------------------------------------------------------- */

/* Two relations of which one repeats the other: read the same way (`inverse` false) or backwards. A
 * relation paired with itself backwards is symmetric. */
typedef struct vlp_relation_pair {
    int32_t first, second;
    bool inverse;
    int64_t shared; /* training triples of `first` that have their counterpart in `second` */
    double share;   /* of all training triples of `first` */
    int64_t leaked; /* test triples of `first` whose counterpart stands in train under `second` */
    vlp_triple example_test, example_train; /* of a leaked one, where leaked > 0 */
} vlp_relation_pair;

typedef struct vlp_audit {
    vlp_dataset_stats stats;
    /* Triples that stand in two splits; [a][b] with a < b. Examples follow in `overlap_example`. */
    int64_t overlap[VLP_SPLITS][VLP_SPLITS];
    vlp_triple overlap_example[VLP_SPLITS][VLP_SPLITS];
    /* Pairs of a share of at least `threshold`, most leaking first; owned by the audit. */
    vlp_relation_pair *pairs;
    int64_t pair_count;
    int64_t leaked;       /* test triples with a counterpart in train through any of the pairs */
    int64_t linked;       /* test triples whose two entities are directly linked in train */
    int64_t unreachable;  /* test triples whose two entities have no path between them in train */
    int64_t distance[16]; /* test triples by the distance of their entities; the last: 15 and more */
    /* Queries whose answer is among the answers of their references. */
    int64_t train_queries, train_copyable;
    int64_t test_queries, test_copyable;
    double train_references, test_references; /* mean number of references a query has */
    int32_t unseen_example[VLP_SPLITS];       /* an entity that is not in train, or -1 */
} vlp_audit;

typedef struct vlp_audit_options {
    int32_t version;
    double threshold; /* of a relation pair's share */
    vlp_reference_options references;
} vlp_audit_options;
#define VLP_AUDIT_OPTIONS_INIT                                                                          \
    { 1, 0.8, VLP_REFERENCE_OPTIONS_INIT }

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
typedef enum vlp_component { VLP_HORIZONTAL = 0, VLP_VERTICAL, VLP_COMPONENTS } vlp_component;
enum { VLP_MAX_COMPONENTS = 4 };

/* "horizontal", "vertical"; NULL for a number that is none of them. */
VLP_API const char *vlp_component_name(vlp_component component);

/* Trains a model on a data set into a run folder: config.ini, model.safetensors, state.safetensors,
 * entities.tsv, relations.tsv, metrics.jsonl, train.log. */
typedef struct vlp_train_options {
    int32_t version;
    const char *recipe;          /* an INI file of settings, NULL: none */
    const char *const *settings; /* "key=value" each; they win over the recipe */
    int32_t setting_count;
    const char *device; /* "auto" (a GPU where there is one), "cpu", "cuda"; NULL: auto */
    /* Trains the vertical head alone, over embeddings that stay as they are: those of a finished run,
     * whose settings then hold where no others are given; or arrays as vlp_run_export writes them, rows
     * by the names in entities.tsv and relations.tsv where these are beside them. NULL: all is trained.
     */
    const char *base;
    bool resume; /* go on where the folder's last save stands; a run never saved is started */
    const vlp_observer *observer;
} vlp_train_options;
#define VLP_TRAIN_OPTIONS_INIT                                                                          \
    { 1, NULL, NULL, 0, NULL, NULL, false, NULL }

typedef struct vlp_train_report {
    int64_t steps;  /* done in all */
    double seconds; /* of this call */
    double steps_per_second;
    double losses[VLP_MAX_COMPONENTS]; /* of the last step; 0 for components that are not trained */
    double valid_mrr;                  /* the best; NaN without valid */
} vlp_train_report;

/* When the observer asks to stop, the state is saved and VLP_ERROR_STOPPED returned. */
VLP_API vlp_status vlp_train(vlp_train_report *out, const char *data, const char *run,
                             const vlp_train_options *options);

/* The settings there are, one after the other; NULL past the last. */
typedef struct vlp_setting_info {
    const char *name, *section, *fallback, *range, *help;
} vlp_setting_info;
VLP_API bool vlp_setting_describe(vlp_setting_info *out, int32_t index);

/* ---- 8. Runs --------------------------------------------------------------------------------- */

typedef struct vlp_run vlp_run;
typedef struct vlp_run_options {
    int32_t version;
    const char *data;   /* the data set, where it has moved since training; NULL: where it was */
    const char *device; /* as in vlp_train_options */
    int32_t threads;
    const vlp_observer *observer;
} vlp_run_options;
#define VLP_RUN_OPTIONS_INIT                                                                            \
    { 1, NULL, NULL, 0, NULL }
VLP_API vlp_status vlp_run_open(vlp_run **out, const char *folder, const vlp_run_options *options);
VLP_API void vlp_run_free(vlp_run *run);
VLP_API const vlp_dataset *vlp_run_dataset(const vlp_run *run);

/* Ranks are realistic (ties share the mean of their places) unless said otherwise. */
typedef struct vlp_metrics {
    int64_t queries;
    double mrr, mr, amri;
    double hits1, hits3, hits10; /* rank <= k */
} vlp_metrics;

/* The metrics of the queries that share a value: a relation, a side, a mapping, a distance. */
typedef struct vlp_group {
    int32_t value;
    vlp_metrics metrics;
} vlp_group;
typedef struct vlp_groups {
    vlp_group *items;
    int64_t count;
} vlp_groups;

typedef struct vlp_interval {
    double low, middle, high;
} vlp_interval;

/* Which ends of a triple are asked for. */
typedef enum vlp_sides { VLP_BOTH_SIDES = 0, VLP_HEADS, VLP_TAILS } vlp_sides;

typedef struct vlp_evaluation {
    vlp_split split;
    vlp_sides sides;
    int64_t queries;
    unsigned components;                /* of the run, as bits */
    double weights[VLP_MAX_COMPONENTS]; /* f = sum of weights[c] f_c; NaN for components it has not */
    double lambda;                      /* f = f_c + lambda f_g */
    bool horizontal_only; /* f = f_g: the validation split chose it, or the run has no aggregator */
    vlp_metrics both, head, tail; /* of f; head: the heads were asked for */
    vlp_metrics optimistic, pessimistic;
    vlp_metrics alone[VLP_MAX_COMPONENTS]; /* each component alone; no queries where the run has it not */
    vlp_metrics frequency, vote; /* trivial baselines: the relation's most frequent answers; the
                                    answers of the references */
    double macro_mrr;            /* mean over relations */
    vlp_interval interval;       /* of the MRR, 95% */
    double auc_pr;               /* area under precision and recall over all pairs of a query and a
                                    candidate, its answer the true one; NaN without `candidates` */
    vlp_metrics control;         /* of the same aggregator trained without references; no queries unless
                                    asked for */
    vlp_interval control_gain;   /* MRR less the control's, 95%, paired */
    vlp_groups by_relation, by_side, by_mapping, by_distance;
    struct vlp_kept_ranks *ranks; /* of every query; see vlp_evaluation_rank, vlp_evaluation_compare */
} vlp_evaluation;

typedef struct vlp_evaluation_options {
    int32_t version;
    vlp_split split;
    unsigned filter; /* bits 1 << split of the answers that are filtered; 0: train and valid, and test
                        too when test is ranked */
    vlp_sides sides;
    const int32_t *candidates; /* the entities that compete with an answer, NULL: all */
    int64_t candidate_count;
    bool control; /* also train and rank the same head without references, over the same embeddings; it
                     is kept in the run's folder as a run of its own, `control` */
    const vlp_observer *observer;
} vlp_evaluation_options;
#define VLP_EVALUATION_OPTIONS_INIT                                                                     \
    { 1, VLP_TEST, 0, VLP_BOTH_SIDES, NULL, 0, false, NULL }
VLP_API vlp_status vlp_run_evaluate(vlp_evaluation **out, vlp_run *run,
                                    const vlp_evaluation_options *options);
VLP_API void vlp_evaluation_free(vlp_evaluation *evaluation);

/* What queries were ranked by: f, or a component alone, VLP_BY_F_G + component. */
typedef enum vlp_ranked_by { VLP_BY_F = 0, VLP_BY_F_G, VLP_BY_F_C } vlp_ranked_by;

/* The realistic rank of one query's answer; NaN where there is no such query or component. With t
 * triples in the split, query i < t asks (h, r, ?) of triple i and query t + i asks (?, r, t). */
VLP_API double vlp_evaluation_rank(const vlp_evaluation *evaluation, vlp_ranked_by by, int64_t query);

/* The MRR of `second` less that of `first`, with its 95% interval, by a bootstrap over triples that are
 * the same for both. They have to be of the same data set (by its checksum), split, sides, filter and
 * candidates; what they were ranked by may differ, and they may be one evaluation. */
VLP_API vlp_status vlp_evaluation_compare(vlp_interval *out, const vlp_evaluation *first,
                                          vlp_ranked_by first_by, const vlp_evaluation *second,
                                          vlp_ranked_by second_by);

/* What was noted while a run was trained, at every evaluation on valid. */
typedef struct vlp_history_point {
    int64_t step;
    double losses[VLP_MAX_COMPONENTS]; /* of that step; NaN where there is none */
    double valid_mrr;                  /* NaN without valid */
} vlp_history_point;
typedef struct vlp_history {
    vlp_history_point *items;
    int64_t count;
} vlp_history;
VLP_API vlp_status vlp_run_history(vlp_history **out, const vlp_run *run);
VLP_API void vlp_history_free(vlp_history *history);

/* The value of setting `index` (as in vlp_setting_describe) that a run was trained with; false past the
 * last. */
VLP_API bool vlp_run_setting(char text[64], const vlp_run *run, int32_t index);

/* The checksum of the names and triples a run was trained on, and the version that trained it. */
VLP_API const char *vlp_run_checksum(const vlp_run *run);
VLP_API const char *vlp_run_version(const vlp_run *run);

/* Writes entities.npy, relations.npy and the aggregator's arrays into a new folder, and entities.tsv and
 * relations.tsv, which name their rows. */
VLP_API vlp_status vlp_run_export(const vlp_run *run, const char *folder);

/* ---- 9. Predicting --------------------------------------------------------------------------- */

/* A run answers queries (vlp_run_predict), scores triples (vlp_run_score) and looks for missing ones
 * (vlp_run_mine). Below these stands what they lean on: explanations of given answers, calibration,
 * references from a graph that has grown since training, and files of queries.
 *
 * An answer's score is f = f_c + lambda f_g; lambda was chosen on valid. f_c is copied from references,
 * the known triples nearest to the query; f_g is what the embeddings memorize. */

/* What a run is. */
typedef struct vlp_run_info {
    const char *folder, *data; /* of the run, and of its data set when it was trained */
    const char *model;         /* "rotate" and so on */
    int32_t dim;
    int64_t step;         /* of the weights in use */
    double valid_mrr;     /* at that step; NaN without valid */
    unsigned components;  /* bits 1 << component */
    double weights[VLP_MAX_COMPONENTS]; /* f = sum of weights[c] f_c; NaN for components it has not */
    bool copies;          /* scores depend on references: there is an aggregator, of weight above 0 */
    bool horizontal_only; /* f = f_g: the validation split chose it, or there is no aggregator */
    double lambda;        /* else f = f_c + lambda f_g */
    int32_t references;   /* of a query, at most */
    const char *graph;    /* where references come from: the folder, NULL for the run's own train */
} vlp_run_info;
VLP_API void vlp_run_describe(vlp_run_info *out, const vlp_run *run);

/* A reference of a query: a known triple, as it stands in the graph, `distance` hops away. */
typedef struct vlp_answer_reference {
    vlp_triple triple;
    int32_t distance;
} vlp_answer_reference;

typedef struct vlp_prediction {
    int32_t entity;
    bool known;                  /* the answer stands in the data set, or in the reference graph */
    double score;                     /* f */
    double parts[VLP_MAX_COMPONENTS]; /* f_g, f_c by component, before their weights; NaN where the run
                                         does not have it */
    const double *contributions;      /* (reference_count) of each reference to this score: f with all of
                                         them less f without this one; NULL unless asked for */
} vlp_prediction;

/* The answers of one query, best first; equal scores in the order of entities. All of them share the
 * query's references, nearest first. */
typedef struct vlp_answers {
    vlp_query query;
    const vlp_prediction *predictions;
    int32_t prediction_count;
    const vlp_answer_reference *references;
    int32_t reference_count;
} vlp_answers;

typedef struct vlp_predict_options {
    int32_t version;
    int32_t count;   /* best answers wanted, 1 or more */
    bool known;      /* also those that are known already */
    bool explain;    /* contributions; and references also where the score does not depend on them */
    unsigned filter; /* bits 1 << split: what counts as known; 0: all splits. The training triples of a
                        reference graph count in any case */
    const vlp_observer *observer;
} vlp_predict_options;
#define VLP_PREDICT_OPTIONS_INIT                                                                        \
    { 1, 10, false, false, 0, NULL }

/* The answers of many queries at once; a relation r + relation_count asks for heads. `left_out` of a
 * query (-1: none) is the index of a triple that is taken out of the graph for this query, among
 * vlp_run_graph_triples. Memory is that of the answers: ask in batches of some hundreds where there are
 * many queries; a batch costs one product over all entities for each of f_c and f_g. */
typedef struct vlp_predictions vlp_predictions;
VLP_API vlp_status vlp_run_predict(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                                   int64_t count, const vlp_predict_options *options);
VLP_API const vlp_answers *vlp_predictions_get(const vlp_predictions *predictions, int64_t query);
VLP_API void vlp_predictions_free(vlp_predictions *predictions);

/* The same for given answers: query i has the one prediction answers[i], with references and
 * contributions. `count` and `known` of the options play no part. */
VLP_API vlp_status vlp_run_explain(vlp_predictions **out, vlp_run *run, const vlp_query *queries,
                                   const int32_t *answers, int64_t count,
                                   const vlp_predict_options *options);

/* ---- Scores of triples ---- */

/* A triple is asked both ways, (h, r, ?) for t and (?, r, t) for h; its scores are the means of the two.
 * A triple that stands in the reference graph has its own edge taken out, in both directions, as a
 * training query has: else it would be copied from itself. */
typedef struct vlp_score {
    double score;                     /* f */
    double parts[VLP_MAX_COMPONENTS]; /* as in vlp_prediction */
    double tail, head;                /* f of t as the answer of (h, r, ?), of h for (?, r, t) */
    double probability;               /* see vlp_run_calibrate; NaN without valid */
    bool known;                       /* in the data set, or in the reference graph */
} vlp_score;

typedef struct vlp_score_options {
    int32_t version;
    bool uncalibrated; /* no probabilities */
    double prior;      /* the share of true triples among those asked about, above 0 and below 1 */
    const vlp_observer *observer;
} vlp_score_options;
#define VLP_SCORE_OPTIONS_INIT                                                                          \
    { 1, false, 0.5, NULL }
/* out: (count). */
VLP_API vlp_status vlp_run_score(vlp_score *out, vlp_run *run, const vlp_triple *triples, int64_t count,
                                 const vlp_score_options *options);

/* ---- Calibration ---- */

/* How probabilities come about: the triples of valid against triples made from them by exchanging the
 * head or the tail, half of the time for any entity, half of the time for one that train has in that
 * place of the relation; what is known (train, valid) is no exchange. P = 1 / (1 + exp(-(intercept +
 * slope * score))) is fitted by logistic regression with both kinds weighing the same, so that a prior
 * of 1/2 is built in; another prior moves the intercept by its log odds. References are those of the
 * run's own train. The curve, the Brier score and the log loss are of triples that the fit had not
 * seen: each half of valid is judged by the fit on the other half. */
enum { VLP_CALIBRATION_BINS = 10 };
typedef struct vlp_calibration_bin {
    double weight;    /* share of all triples, true ones and others weighing the same */
    double predicted; /* mean probability; NaN where the bin is empty */
    double observed;  /* share of true ones */
    int64_t triples;
} vlp_calibration_bin;
typedef struct vlp_calibration {
    int64_t positives, negatives;
    double intercept, slope;
    double brier, log_loss;                         /* of saying 1/2 always: 0.25, log 2 */
    vlp_calibration_bin bins[VLP_CALIBRATION_BINS]; /* of probabilities, equally wide */
} vlp_calibration;

typedef struct vlp_calibration_options {
    int32_t version;
    int32_t exchanges; /* for each triple and side, 1 to 100 */
    bool fresh;        /* do not use what an earlier call left in the run's folder */
    uint64_t seed;
    const vlp_observer *observer;
} vlp_calibration_options;
#define VLP_CALIBRATION_OPTIONS_INIT                                                                    \
    { 1, 4, false, 0, NULL }
/* VLP_ERROR_ARGUMENT without valid. The result is kept in the run's folder (calibration.safetensors) and
 * used again as long as the weights are the same; a folder that cannot be written is no error. */
VLP_API vlp_status vlp_run_calibrate(vlp_calibration *out, vlp_run *run,
                                     const vlp_calibration_options *options);

/* ---- Missing triples ---- */

/* The likeliest triples that are not known. Not all |E|^2 |R| are scored: a relation is asked about the
 * entities that stand in its place in the graph, both ways; the best `per_query` unknown answers of each
 * query, among all entities, are candidates; and these are scored as vlp_run_score does. What no
 * query ranks so high, and entities never seen in that place, are left out; so are (e, r, e), unless
 * the graph has such triples of r. */
typedef struct vlp_mine_options {
    int32_t version;
    int32_t count;     /* triples wanted */
    int32_t per_query; /* candidates a query, 1 to 1000 */
    int32_t relation;  /* only this one; -1: all */
    double prior;      /* as for scores; probabilities only, the order stays */
    const char *state; /* a file that holds how far it is, written now and then and at the end: remove it
                          when the result is safe, resuming gives it again until then. NULL: none. One
                          that is there already is refused without `resume` */
    bool resume;       /* go on from `state`, where it is there */
    const vlp_observer *observer;
} vlp_mine_options;
#define VLP_MINE_OPTIONS_INIT                                                                           \
    { 1, 100, 10, -1, 0.5, NULL, false, NULL }

typedef struct vlp_mined {
    vlp_triple triple;
    double score, parts[VLP_MAX_COMPONENTS], probability; /* as in vlp_score */
    double tail, head;
} vlp_mined;
typedef struct vlp_mining {
    vlp_mined *items; /* best first; equal scores by relation, head, tail */
    int64_t count;
    int64_t queries;          /* asked, both ways */
    int64_t possible_queries; /* of these relations and all entities */
    int64_t candidates;       /* scored; a triple that both ways propose counts twice */
    int64_t possible_triples; /* of these relations, |E|^2 each, the known ones among them */
} vlp_mining;
/* When the observer asks to stop, the state is saved and VLP_ERROR_STOPPED returned. */
VLP_API vlp_status vlp_run_mine(vlp_mining **out, vlp_run *run, const vlp_mine_options *options);
VLP_API void vlp_mining_free(vlp_mining *mining);

/* ---- Live references ---- */

typedef struct vlp_graph_report {
    int64_t triples;                             /* taken, of the folder's train */
    int64_t new_triples;                         /* of these, not in the run's train */
    int64_t unknown_triples;                     /* left out: with a name that the run does not know */
    int64_t unknown_entities, unknown_relations; /* names in train that the run does not know */
} vlp_graph_report;

/* From now on predictions, scores and mining take their references from the train of another folder: a
 * graph that has grown since training. Names tell which entities and relations are meant; nothing is
 * trained. All its triples count as known. NULL puts the run's own train back. Evaluation and
 * calibration stay with the run's own. `out` may be NULL. */
VLP_API vlp_status vlp_run_use_graph(vlp_graph_report *out, vlp_run *run, const char *folder,
                                     const vlp_observer *observer);
/* The triples that references come from, in the run's numbers. */
VLP_API const vlp_triple *vlp_run_graph_triples(const vlp_run *run, int64_t *count);

/* ---- Files of queries and of triples ---- */

/* Reads "head<TAB>relation<TAB>tail" line by line (plain or .gz; "-": standard input) in bounded memory.
 * Names are those of the data set; an entity may also be given by a label that it alone has. A query
 * has "?" for head or tail, which reads as -1. */
typedef struct vlp_triple_reader vlp_triple_reader;
VLP_API vlp_status vlp_triple_reader_open(vlp_triple_reader **out, const vlp_dataset *dataset,
                                          const char *path, bool queries);
/* The next triple, *more false at the end. A bad line is an error that names file, line and cause
 * (unknown names with the nearest known ones); the call after it goes on with the next line. */
VLP_API vlp_status vlp_triple_reader_next(vlp_triple *out, bool *more, vlp_triple_reader *reader);
VLP_API int64_t vlp_triple_reader_line(const vlp_triple_reader *reader); /* of the last, from 1 */
VLP_API void vlp_triple_reader_free(vlp_triple_reader *reader);

/* The query that a triple with one -1 asks; left_out is -1. */
VLP_API vlp_query vlp_query_of(const vlp_dataset *dataset, vlp_triple query);

#ifdef __cplusplus
}
#endif
#endif
