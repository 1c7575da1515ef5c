/* vlp eval and vlp export: what a run is worth, and its numbers for others. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"

static const char *const split_names[VLP_SPLITS] = {"train", "valid", "test"};
static const char *const mapping_names[4] = {"1-1", "1-N", "N-1", "N-N"};

enum { BY_RELATION = 1, BY_SIDE = 2, BY_MAPPING = 4, BY_DISTANCE = 8 };
enum { KEY_SPLIT = 1, KEY_BY, KEY_DEVICE, KEY_DATA, KEY_FILTER, KEY_NPY };

typedef struct chosen_options {
    vlp_evaluation_options evaluation;
    vlp_run_options run;
    int by;
    const char *folder; /* of an export */
} chosen_options;

static const struct argp_option eval_options[] = {
    {"split", KEY_SPLIT, "NAME", 0, "valid or test (test)", 0},
    {"by", KEY_BY, "LIST", 0,
     "Also by relation, side, mapping, distance: any of them, separated by commas", 0},
    {"filter", KEY_FILTER, "LIST", 0,
     "Splits whose answers do not compete (train,valid, and test when test is ranked)", 0},
    {"data", KEY_DATA, "DIR", 0, "The data set, where it has moved since training", 0},
    {"device", KEY_DEVICE, "NAME", 0, "auto or cpu", 0},
    {0}};

/* The bits of a list of names: bit i for names[i]. */
static unsigned parse_list(struct argp_state *state, const char *option, const char *text,
                           const char *const *names, int count) {
    unsigned bits = 0;
    for (const char *at = text; at;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        int found = -1;
        for (int i = 0; i < count; i++)
            if (strlen(names[i]) == length && memcmp(names[i], at, length) == 0) found = i;
        if (found < 0)
            argp_error(state, "%s does not know '%.*s'", option, (int)length, at); /* ends the program */
        else
            bits |= 1u << found;
        at = comma ? comma + 1 : NULL;
    }
    return bits;
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    static const char *const by_names[] = {"relation", "side", "mapping", "distance"};
    chosen_options *chosen = own;
    switch (key) {
    case KEY_SPLIT:
        if (strcmp(value, "valid") != 0 && strcmp(value, "test") != 0)
            argp_error(state, "--split takes valid or test, not '%s'", value);
        chosen->evaluation.split = value[0] == 'v' ? VLP_VALID : VLP_TEST;
        return 0;
    case KEY_BY:
        chosen->by = (int)parse_list(state, "--by", value, by_names, 4);
        return 0;
    case KEY_FILTER:
        chosen->evaluation.filter = parse_list(state, "--filter", value, split_names, VLP_SPLITS);
        return 0;
    case KEY_DATA:
        chosen->run.data = value;
        return 0;
    case KEY_DEVICE:
        chosen->run.device = value;
        return 0;
    case KEY_NPY:
        chosen->folder = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- JSON ---- */

static void metrics_members(json_out *json, const vlp_metrics *metrics) {
    json_integer(json, "queries", metrics->queries);
    json_number(json, "mrr", metrics->mrr);
    json_number(json, "mr", metrics->mr);
    json_number(json, "amri", metrics->amri);
    json_number(json, "hits@1", metrics->hits1);
    json_number(json, "hits@3", metrics->hits3);
    json_number(json, "hits@10", metrics->hits10);
}

static void metrics_json(json_out *json, const char *key, const vlp_metrics *metrics) {
    json_object(json, key);
    metrics_members(json, metrics);
    json_end_object(json);
}

typedef enum group_kind { GROUP_RELATION, GROUP_SIDE, GROUP_MAPPING, GROUP_DISTANCE } group_kind;
static const char *const group_names[] = {"relation", "side", "mapping", "distance"};

/* The text of a group's value; NULL for a number. */
static const char *group_text(const vlp_dataset *data, group_kind kind, int32_t value) {
    switch (kind) {
    case GROUP_RELATION:
        return vlp_dataset_relation_name(data, value);
    case GROUP_SIDE:
        return value ? "tail" : "head";
    case GROUP_MAPPING:
        return mapping_names[value];
    default:
        return value < 0 ? "no path" : NULL;
    }
}

static void groups_json(json_out *json, const vlp_dataset *data, group_kind kind,
                        const vlp_groups *groups) {
    char key[32];
    snprintf(key, sizeof key, "by_%s", group_names[kind]);
    json_array(json, key);
    for (int64_t i = 0; i < groups->count; i++) {
        const char *text = group_text(data, kind, groups->items[i].value);
        json_object(json, NULL);
        if (text && groups->items[i].value >= 0)
            json_string(json, group_names[kind], text);
        else if (text)
            json_string(json, group_names[kind], NULL);
        else
            json_integer(json, group_names[kind], groups->items[i].value);
        metrics_members(json, &groups->items[i].metrics);
        json_end_object(json);
    }
    json_end_array(json);
}

static void print_json(const vlp_dataset *data, const vlp_evaluation *evaluation) {
    json_out out = json_start(stdout), *json = &out;
    json_object(json, NULL);
    json_string(json, "split", split_names[evaluation->split]);
    json_integer(json, "queries", evaluation->queries);
    metrics_json(json, "both", &evaluation->both);
    metrics_json(json, "head", &evaluation->head);
    metrics_json(json, "tail", &evaluation->tail);
    metrics_json(json, "optimistic", &evaluation->optimistic);
    metrics_json(json, "pessimistic", &evaluation->pessimistic);
    if (evaluation->horizontal_only)
        json_string(json, "lambda", NULL);
    else
        json_number(json, "lambda", evaluation->lambda);
    json_number(json, "macro_mrr", evaluation->macro_mrr);
    json_array(json, "mrr_interval");
    json_number(json, NULL, evaluation->interval.low);
    json_number(json, NULL, evaluation->interval.high);
    json_end_array(json);
    groups_json(json, data, GROUP_RELATION, &evaluation->by_relation);
    groups_json(json, data, GROUP_SIDE, &evaluation->by_side);
    groups_json(json, data, GROUP_MAPPING, &evaluation->by_mapping);
    groups_json(json, data, GROUP_DISTANCE, &evaluation->by_distance);
    metrics_json(json, "horizontal", &evaluation->horizontal);
    if (evaluation->vertical.queries) metrics_json(json, "vertical", &evaluation->vertical);
    metrics_json(json, "baseline_frequency", &evaluation->frequency);
    metrics_json(json, "baseline_vote", &evaluation->vote);
    json_end_object(json);
    putchar('\n');
}

/* ---- Tables ---- */

static void print_row(const char *name, const vlp_metrics *metrics) {
    printf("  %-34s %8s  %.4f  %9.1f  %.4f  %.4f  %.4f  %.4f\n", name, cli_count(metrics->queries),
           metrics->mrr, metrics->mr, metrics->amri, metrics->hits1, metrics->hits3, metrics->hits10);
}

static void print_header(const char *title) {
    printf("  %-34s %8s  %6s  %9s  %6s  %6s  %6s  %6s\n", title, "queries", "MRR", "MR", "AMRI", "H@1",
           "H@3", "H@10");
}

static void print_groups(const vlp_dataset *data, group_kind kind, const vlp_groups *groups) {
    char title[32], number[16];
    snprintf(title, sizeof title, "by %s", group_names[kind]);
    putchar('\n');
    print_header(title);
    for (int64_t i = 0; i < groups->count; i++) {
        const char *text = group_text(data, kind, groups->items[i].value);
        snprintf(number, sizeof number, "%d", groups->items[i].value);
        print_row(text ? text : number, &groups->items[i].metrics);
    }
}

static void print_tables(const vlp_dataset *data, const vlp_evaluation *evaluation, int by) {
    printf("%s: %s queries, filtered, ranks realistic\n\n", split_names[evaluation->split],
           cli_count(evaluation->queries));
    print_header("");
    char title[64];
    if (evaluation->horizontal_only)
        snprintf(title, sizeof title, "f = f_g");
    else
        snprintf(title, sizeof title, "f = f_c + %.4g f_g", evaluation->lambda);
    print_row(title, &evaluation->both);
    print_row("  heads asked for", &evaluation->head);
    print_row("  tails asked for", &evaluation->tail);
    print_row("f_g alone (horizontal)", &evaluation->horizontal);
    if (evaluation->vertical.queries) print_row("f_c alone (vertical)", &evaluation->vertical);
    print_row("baseline: frequent answers", &evaluation->frequency);
    print_row("baseline: vote of the references", &evaluation->vote);
    printf("\n  MRR 95%% interval %.4f to %.4f, mean over relations %.4f, optimistic %.4f, pessimistic "
           "%.4f\n",
           evaluation->interval.low, evaluation->interval.high, evaluation->macro_mrr,
           evaluation->optimistic.mrr, evaluation->pessimistic.mrr);
    if (by & BY_RELATION) print_groups(data, GROUP_RELATION, &evaluation->by_relation);
    if (by & BY_SIDE) print_groups(data, GROUP_SIDE, &evaluation->by_side);
    if (by & BY_MAPPING) print_groups(data, GROUP_MAPPING, &evaluation->by_mapping);
    if (by & BY_DISTANCE) print_groups(data, GROUP_DISTANCE, &evaluation->by_distance);
}

int cmd_eval(int argc, char **argv) {
    static const cli_syntax syntax = {"vlp eval",
                                      "RUN",
                                      "Rank the answers of a split: every triple asked both ways, every "
                                      "entity a candidate, known answers "
                                      "filtered.",
                                      eval_options,
                                      parse,
                                      1,
                                      1};
    chosen_options chosen = {VLP_EVALUATION_OPTIONS_INIT, VLP_RUN_OPTIONS_INIT, 0, NULL};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    chosen.run.threads = line.common.threads;
    chosen.run.observer = chosen.evaluation.observer = cli_observer(&line.common);
    vlp_run *run = NULL;
    vlp_evaluation *evaluation = NULL;
    int code;
    if (vlp_run_open(&run, line.arguments[0], &chosen.run) != VLP_OK ||
        vlp_run_evaluate(&evaluation, run, &chosen.evaluation) != VLP_OK) {
        code = cli_fail();
    } else {
        cli_observer_end();
        if (line.common.json)
            print_json(vlp_run_dataset(run), evaluation);
        else
            print_tables(vlp_run_dataset(run), evaluation, chosen.by);
        code = cli_finish();
    }
    vlp_evaluation_free(evaluation);
    vlp_run_free(run);
    return code;
}

int cmd_export(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"npy", KEY_NPY, "DIR", 0, "Write numpy arrays into this folder (needed)", 0},
        {"data", KEY_DATA, "DIR", 0, "The data set, where it has moved since training", 0},
        {0}};
    static const cli_syntax syntax = {"vlp export",
                                      "RUN --npy DIR",
                                      "Write a run's numbers as arrays: entities in the order of "
                                      "entities.tsv, relations with their inverses behind them.",
                                      options,
                                      parse,
                                      1,
                                      1};
    chosen_options chosen = {VLP_EVALUATION_OPTIONS_INIT, VLP_RUN_OPTIONS_INIT, 0, NULL};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (!chosen.folder) {
        fprintf(stderr, "vlp export: --npy DIR names the folder to write; it is needed\n");
        return EXIT_USAGE;
    }
    chosen.run.threads = line.common.threads;
    chosen.run.observer = cli_observer(&line.common);
    vlp_run *run = NULL;
    int code;
    if (vlp_run_open(&run, line.arguments[0], &chosen.run) != VLP_OK ||
        vlp_run_export(run, chosen.folder) != VLP_OK)
        code = cli_fail();
    else
        code = cli_finish();
    vlp_run_free(run);
    return code;
}
