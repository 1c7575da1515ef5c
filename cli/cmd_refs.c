/* vlp refs: the references of one query. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

typedef struct settings {
    vlp_reference_options references;
    const char *answer;
} settings;

enum { KEY_ANSWER = 1, KEY_PER_HEAD, KEY_DISTANCE };

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "At most this many references (8)", 0},
    {"answer", KEY_ANSWER, "ENTITY", 0,
     "Treat the query as the training query of this answer: leave its triple out of the graph", 0},
    {"per-head", KEY_PER_HEAD, "N", 0,
     "At most this many from one entity other than the query's (no limit)", 0},
    {"max-distance", KEY_DISTANCE, "N", 0, "Search at most this many hops away (8)", 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    settings *chosen = own;
    switch (key) {
    case 'n':
        chosen->references.count = (int32_t)cli_integer(state, "-n", value, 1, 1024);
        return 0;
    case KEY_ANSWER:
        chosen->answer = value;
        return 0;
    case KEY_PER_HEAD:
        chosen->references.per_head = (int32_t)cli_integer(state, "--per-head", value, 0, 1024);
        return 0;
    case KEY_DISTANCE:
        chosen->references.max_distance = (int32_t)cli_integer(state, "--max-distance", value, 0, 8);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The index of the training triple of a query and its answer. */
static vlp_status find_triple(int64_t *out, const vlp_dataset *data, const vlp_query *query,
                              const char *answer) {
    int32_t entity, relations = vlp_dataset_relation_count(data);
    vlp_status status = vlp_dataset_find_entity(&entity, data, answer);
    if (status != VLP_OK) return status;
    bool forward = query->relation < relations;
    vlp_triple wanted = {forward ? query->entity : entity, query->relation % relations,
                         forward ? entity : query->entity};
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(data, VLP_TRAIN, &count);
    for (*out = 0; *out < count; (*out)++)
        if (memcmp(&train[*out], &wanted, sizeof wanted) == 0) return VLP_OK;
    *out = -1;
    return VLP_OK;
}

static void print_json(const vlp_dataset *data, const vlp_reference *list, int32_t count) {
    int64_t ignored;
    const vlp_triple *train = vlp_dataset_triples(data, VLP_TRAIN, &ignored);
    json_out json = json_start(stdout);
    json_object(&json, NULL);
    json_array(&json, "references");
    for (int32_t i = 0; i < count; i++) {
        vlp_triple triple = train[list[i].edge];
        json_object(&json, NULL);
        json_string(&json, "head", vlp_dataset_entity_name(data, triple.head));
        json_string(&json, "relation", vlp_dataset_relation_name(data, triple.relation));
        json_string(&json, "tail", vlp_dataset_entity_name(data, triple.tail));
        json_integer(&json, "distance", list[i].distance);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    putchar('\n');
}

static const char *readable(const vlp_dataset *data, int32_t entity) {
    const char *label = vlp_dataset_entity_label(data, entity);
    return text_shown(label ? label : vlp_dataset_entity_name(data, entity));
}

static void print_table(const vlp_dataset *data, const vlp_query *query, const vlp_reference *list,
                        int32_t count) {
    int64_t ignored;
    const vlp_triple *train = vlp_dataset_triples(data, VLP_TRAIN, &ignored);
    int32_t relations = vlp_dataset_relation_count(data);
    const char *relation = cli_relation(data, query->relation % relations);
    if (query->relation < relations)
        printf("%s  %s  ?\n", readable(data, query->entity), text_shown(relation));
    else
        printf("?  %s  %s\n", text_shown(relation), readable(data, query->entity));
    if (count == 0) printf("  no reference: no edge of this relation is near enough\n");
    for (int32_t i = 0; i < count; i++) {
        vlp_triple triple = train[list[i].edge];
        printf("  %d hop%s  %s  %s  %s\n", list[i].distance, list[i].distance == 1 ? " " : "s",
               readable(data, triple.head), text_shown(relation), readable(data, triple.tail));
    }
}

/* The query of the arguments: HEAD RELATION '?' or '?' RELATION TAIL. */
static vlp_status make_query(vlp_query *query, const vlp_dataset *data, char **arguments) {
    bool forward = strcmp(arguments[3], "?") == 0;
    query->left_out = -1;
    vlp_status status = vlp_dataset_find_entity(&query->entity, data, arguments[forward ? 1 : 3]);
    if (status == VLP_OK) status = vlp_dataset_find_relation(&query->relation, data, arguments[2]);
    if (status == VLP_OK && !forward) query->relation += vlp_dataset_relation_count(data);
    return status;
}

int cmd_refs(int argc, char **argv) {
    settings chosen = {VLP_REFERENCE_OPTIONS_INIT, NULL};
    cli_line line = {.own = &chosen};
    static const cli_syntax syntax = {
        "vlp refs",
        "DIR HEAD RELATION '?'\nDIR '?' RELATION TAIL",
        "The references of a query, the known triples that predictions use, nearest first.\v"
        "Entities are given by name, or by a label that only one of them has. References are printed as "
        "they are in train.",
        options,
        parse,
        4,
        4};
    cli_parse(&line, &syntax, argc, argv);
    if ((strcmp(line.arguments[1], "?") == 0) == (strcmp(line.arguments[3], "?") == 0)) {
        fprintf(stderr, "vlp refs: one of HEAD and TAIL must be '?' and the other a name\n");
        return EXIT_USAGE;
    }
    vlp_dataset_options opening = VLP_DATASET_OPTIONS_INIT;
    opening.threads = chosen.references.threads = line.common.threads;
    opening.observer = cli_observer(&line.common);
    vlp_dataset *data = NULL;
    vlp_references *references = NULL;
    vlp_query query;
    int code = EXIT_FAILED;
    if (vlp_dataset_open(&data, line.arguments[0], &opening) != VLP_OK) goto failed;
    if (make_query(&query, data, line.arguments) != VLP_OK) goto failed;
    if (chosen.answer) {
        if (find_triple(&query.left_out, data, &query, chosen.answer) != VLP_OK) goto failed;
        if (query.left_out < 0) {
            fprintf(stderr, "vlp: %s is not an answer of this query in train; leave --answer out\n",
                    text_shown(chosen.answer));
            goto out;
        }
    }
    if (vlp_references_find(&references, data, &query, 1, &chosen.references) != VLP_OK) goto failed;
    int32_t count;
    const vlp_reference *list = vlp_references_get(references, 0, &count);
    if (line.common.json)
        print_json(data, list, count);
    else
        print_table(data, &query, list, count);
    code = cli_finish();
    goto out;
failed:
    code = cli_fail();
out:
    vlp_references_free(references);
    vlp_dataset_free(data);
    return code;
}
