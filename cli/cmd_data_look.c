/* vlp data stats and vlp data audit. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

static const char *const split_names[VLP_SPLITS] = {"train", "valid", "test"};

static vlp_status open_data(vlp_dataset **out, const cli_line *line) {
    vlp_dataset_options options = VLP_DATASET_OPTIONS_INIT;
    options.threads = line->common.threads;
    options.observer = cli_observer(&line->common);
    return vlp_dataset_open(out, line->arguments[0], &options);
}

/* ---- stats --------------------------------------------------------------------------------------- */

static void stats_json(json_out *json, const vlp_dataset_stats *stats) {
    json_integer(json, "entities", stats->entities);
    json_integer(json, "relations", stats->relations);
    for (int split = 0; split < VLP_SPLITS; split++)
        json_integer(json, split_names[split], stats->triples[split]);
    json_object(json, "unseen_entities");
    for (int split = VLP_VALID; split < VLP_SPLITS; split++)
        json_integer(json, split_names[split], stats->unseen_entities[split]);
    json_end_object(json);
    json_object(json, "unseen_triples");
    for (int split = VLP_VALID; split < VLP_SPLITS; split++)
        json_integer(json, split_names[split], stats->unseen_triples[split]);
    json_end_object(json);
    json_object(json, "unseen_relations");
    for (int split = VLP_VALID; split < VLP_SPLITS; split++)
        json_integer(json, split_names[split], stats->unseen_relations[split]);
    json_end_object(json);
    int64_t duplicates = 0;
    for (int split = 0; split < VLP_SPLITS; split++) duplicates += stats->duplicates[split];
    json_integer(json, "duplicates", duplicates);
    json_integer(json, "labels", stats->labels);
    json_integer(json, "bytes", stats->bytes);
    json_integer(json, "relation_labels", stats->relation_labels);
    json_integer(json, "graph_names", stats->graph_names);
}

static void stats_print(const char *folder, const vlp_dataset_stats *stats) {
    printf("%s: %s, %s", text_shown(folder), cli_things(stats->entities, "entity"),
           cli_things(stats->relations, "relation"));
    if (stats->labels) printf(", labels for %s", cli_count(stats->labels));
    if (stats->relation_labels)
        printf(", labels for %s", cli_things(stats->relation_labels, "relation"));
    printf("\n\n  %-6s %12s %12s %22s %22s\n", "", "triples", "duplicates", "entities not in train",
           "triples with them");
    for (int split = 0; split < VLP_SPLITS; split++) {
        printf("  %-6s %12s %12s", split_names[split], cli_count(stats->triples[split]),
               cli_count(stats->duplicates[split]));
        if (split != VLP_TRAIN)
            printf(" %22s %22s", cli_count(stats->unseen_entities[split]),
                   cli_count(stats->unseen_triples[split]));
        putchar('\n');
    }
    for (int split = VLP_VALID; split < VLP_SPLITS; split++)
        if (stats->unseen_relations[split])
            printf("  %s has %s that are not in train\n", split_names[split],
                   cli_things(stats->unseen_relations[split], "relation"));
    if (stats->graph_names) printf("  %s dropped\n", cli_things(stats->graph_names, "graph name"));
    printf("\n  %.1f MiB in memory\n", (double)stats->bytes / 0x1p20);
}

int cmd_data_stats(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp data stats", "DIR", "Counts of a data set.", NULL, NULL, 1, 1};
    cli_line line = {0};
    cli_parse(&line, &syntax, argc, argv);
    vlp_dataset *data = NULL;
    vlp_dataset_stats stats;
    if (open_data(&data, &line) != VLP_OK) return cli_fail();
    vlp_status status = vlp_dataset_describe(&stats, data);
    vlp_dataset_free(data);
    if (status != VLP_OK) return cli_fail();
    if (line.common.json) {
        json_out json = json_start(stdout);
        json_object(&json, NULL);
        stats_json(&json, &stats);
        json_end_object(&json);
        putchar('\n');
    } else {
        stats_print(line.arguments[0], &stats);
    }
    return cli_finish();
}

/* ---- audit --------------------------------------------------------------------------------------- */

static double percent(int64_t part, int64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_triple(const vlp_dataset *data, vlp_triple triple) {
    const char *head = vlp_dataset_entity_label(data, triple.head);
    const char *tail = vlp_dataset_entity_label(data, triple.tail);
    printf("(%s, %s, %s)", text_shown(head ? head : vlp_dataset_entity_name(data, triple.head)),
           text_shown(cli_relation(data, triple.relation)),
           text_shown(tail ? tail : vlp_dataset_entity_name(data, triple.tail)));
}

static void print_splits(const vlp_dataset *data, const vlp_audit *audit) {
    printf("Splits\n");
    for (int a = 0; a < VLP_SPLITS; a++)
        for (int b = a + 1; b < VLP_SPLITS; b++) {
            printf("  in both %s and %s: %s", split_names[a], split_names[b],
                   cli_count(audit->overlap[a][b]));
            if (audit->overlap[a][b]) {
                printf(", such as ");
                print_triple(data, audit->overlap_example[a][b]);
            }
            putchar('\n');
        }
    for (int split = 0; split < VLP_SPLITS; split++)
        if (audit->stats.duplicates[split])
            printf("  lines of %s that repeat an earlier one: %s\n", split_names[split],
                   cli_count(audit->stats.duplicates[split]));
    for (int split = VLP_VALID; split < VLP_SPLITS; split++) {
        printf("  entities of %s that are not in train: %s, in %s", split_names[split],
               cli_count(audit->stats.unseen_entities[split]),
               cli_things(audit->stats.unseen_triples[split], "triple"));
        if (audit->unseen_example[split] >= 0)
            printf(", such as %s",
                   text_shown(vlp_dataset_entity_name(data, audit->unseen_example[split])));
        putchar('\n');
    }
}

static void print_pair(const vlp_dataset *data, const vlp_relation_pair *pair) {
    const char *first = text_shown(cli_relation(data, pair->first));
    const char *second = text_shown(cli_relation(data, pair->second));
    if (pair->inverse && pair->first == pair->second)
        printf("  %s is symmetric", first);
    else
        printf("  %s %s %s", first, pair->inverse ? "is the inverse of" : "repeats", second);
    printf(" in %.1f%% of its training triples; this leaks %s\n", 100 * pair->share,
           cli_things(pair->leaked, "test triple"));
    if (pair->leaked == 0) return;
    printf("    test ");
    print_triple(data, pair->example_test);
    printf(", train ");
    print_triple(data, pair->example_train);
    putchar('\n');
}

static void print_audit(const vlp_dataset *data, const vlp_audit *audit,
                        const vlp_audit_options *options) {
    int64_t test = audit->stats.triples[VLP_TEST];
    print_splits(data, audit);
    printf("\nRelations that repeat another one, or their own inverse, in at least %.0f%% of their "
           "training triples\n",
           100 * options->threshold);
    if (audit->pair_count == 0) printf("  none\n");
    for (int64_t i = 0; i < audit->pair_count; i++) print_pair(data, &audit->pairs[i]);
    printf("  test triples that are in train in one of these ways: %s (%.1f%%)\n",
           cli_count(audit->leaked), percent(audit->leaked, test));
    printf("\nDistance between the two entities of a test triple, over train\n");
    const int last = (int)(sizeof audit->distance / sizeof *audit->distance) - 1;
    for (int d = 0; d <= last; d++)
        if (audit->distance[d])
            printf("  %2d%s %8s  %5.1f%%\n", d, d == last ? "+" : " ", cli_count(audit->distance[d]),
                   percent(audit->distance[d], test));
    if (audit->unreachable)
        printf("  no path %4s  %5.1f%%\n", cli_count(audit->unreachable),
               percent(audit->unreachable, test));
    printf("\nReferences, at most %d per query, training queries without their own triple\n",
           options->references.count);
    printf("  training queries whose answer is among their references: %.1f%% (of %s; %.2f references "
           "each)\n",
           percent(audit->train_copyable, audit->train_queries), cli_count(audit->train_queries),
           audit->train_references);
    printf("  test queries whose answer is among their references:     %.1f%% (of %s; %.2f references "
           "each)\n",
           percent(audit->test_copyable, audit->test_queries), cli_count(audit->test_queries),
           audit->test_references);
}

static void triple_json(json_out *json, const char *key, const vlp_dataset *data, vlp_triple triple) {
    json_array(json, key);
    json_string(json, NULL, vlp_dataset_entity_name(data, triple.head));
    json_string(json, NULL, vlp_dataset_relation_name(data, triple.relation));
    json_string(json, NULL, vlp_dataset_entity_name(data, triple.tail));
    json_end_array(json);
}

static void pair_json(json_out *json, const vlp_dataset *data, const vlp_relation_pair *pair) {
    json_object(json, NULL);
    json_string(json, "relation", vlp_dataset_relation_name(data, pair->first));
    json_string(json, "repeats", vlp_dataset_relation_name(data, pair->second));
    json_bool(json, "inverse", pair->inverse);
    json_integer(json, "shared", pair->shared);
    json_number(json, "share", pair->share);
    json_integer(json, "leaked", pair->leaked);
    if (pair->leaked) {
        triple_json(json, "example_test", data, pair->example_test);
        triple_json(json, "example_train", data, pair->example_train);
    }
    json_end_object(json);
}

static void references_json(json_out *json, const char *key, int64_t queries, int64_t copyable,
                            double mean) {
    json_object(json, key);
    json_integer(json, "queries", queries);
    json_integer(json, "answer_among_references", copyable);
    json_number(json, "share", queries ? (double)copyable / (double)queries : 0);
    json_number(json, "references_per_query", mean);
    json_end_object(json);
}

static void audit_json(const vlp_dataset *data, const vlp_audit *audit) {
    json_out out = json_start(stdout), *json = &out;
    json_object(json, NULL);
    stats_json(json, &audit->stats);
    json_object(json, "overlap");
    for (int a = 0; a < VLP_SPLITS; a++)
        for (int b = a + 1; b < VLP_SPLITS; b++) {
            char key[32];
            snprintf(key, sizeof key, "%s_%s", split_names[a], split_names[b]);
            json_integer(json, key, audit->overlap[a][b]);
        }
    json_end_object(json);
    json_array(json, "relation_pairs");
    for (int64_t i = 0; i < audit->pair_count; i++) pair_json(json, data, &audit->pairs[i]);
    json_end_array(json);
    json_integer(json, "leaked", audit->leaked);
    json_integer(json, "linked", audit->linked);
    json_array(json, "distance");
    for (size_t d = 0; d < sizeof audit->distance / sizeof *audit->distance; d++)
        json_integer(json, NULL, audit->distance[d]);
    json_end_array(json);
    json_integer(json, "unreachable", audit->unreachable);
    references_json(json, "train_references", audit->train_queries, audit->train_copyable,
                    audit->train_references);
    references_json(json, "test_references", audit->test_queries, audit->test_copyable,
                    audit->test_references);
    json_end_object(json);
    putchar('\n');
}

enum { KEY_THRESHOLD = 1, KEY_PER_HEAD };

static const struct argp_option audit_options[] = {
    {"threshold", KEY_THRESHOLD, "SHARE", 0,
     "Report relations that repeat another one in at least this share of their triples (0.8)", 0},
    {"count", 'n', "N", 0, "References per query (8)", 0},
    {"per-head", KEY_PER_HEAD, "N", 0,
     "At most this many from one entity other than the query's (no limit)", 0},
    {0}};

static error_t parse_audit(int key, char *value, struct argp_state *state, void *own) {
    vlp_audit_options *chosen = own;
    switch (key) {
    case KEY_THRESHOLD:
        chosen->threshold = cli_number(state, "--threshold", value, 0, 1);
        return 0;
    case 'n':
        chosen->references.count = (int32_t)cli_integer(state, "-n", value, 1, 1024);
        return 0;
    case KEY_PER_HEAD:
        chosen->references.per_head = (int32_t)cli_integer(state, "--per-head", value, 0, 1024);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_data_audit(int argc, char **argv) {
    static const cli_syntax syntax = {"vlp data audit",
                                      "DIR",
                                      "Leakage in a data set (triples in two splits, relations "
                                      "that repeat each other) and how often "
                                      "an answer is the answer of a reference.",
                                      audit_options,
                                      parse_audit,
                                      1,
                                      1};
    vlp_audit_options chosen = VLP_AUDIT_OPTIONS_INIT;
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    vlp_dataset *data = NULL;
    vlp_audit *audit = NULL;
    if (open_data(&data, &line) != VLP_OK) return cli_fail();
    chosen.references.threads = line.common.threads;
    chosen.references.observer = cli_observer(&line.common);
    int code;
    if (vlp_audit_run(&audit, data, &chosen) != VLP_OK) {
        code = cli_fail();
    } else {
        cli_observer_end();
        if (line.common.json)
            audit_json(data, audit);
        else
            print_audit(data, audit, &chosen);
        code = cli_finish();
    }
    vlp_audit_free(audit);
    vlp_dataset_free(data);
    return code;
}
