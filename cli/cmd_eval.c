/* vlp eval: the metrics of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "cli.h"
#include "commands.h"
#include "component.h"
#include "json.h"
#include "predicting.h"
#include "results_json.h"
#include "text.h"

static const char *const split_names[VLP_SPLITS] = {"train", "valid", "test"};

enum { BY_RELATION = 1, BY_SIDE = 2, BY_MAPPING = 4, BY_DISTANCE = 8 };
enum {
    KEY_SPLIT = 1,
    KEY_BY,
    KEY_DEVICE,
    KEY_DATA,
    KEY_FILTER,
    KEY_SIDE,
    KEY_CONTROL,
    KEY_AMONG,
    KEY_TRIPLES,
    KEY_SAMPLE,
    KEY_BASELINES
};

typedef struct chosen_options {
    vlp_evaluation_options evaluation;
    vlp_run_options run;
    int by;
    const char *candidates; /* a file of names */
    const char *graph;      /* NULL: the run's own data set */
} chosen_options;

static const struct argp_option eval_options[] = {
    {"split", KEY_SPLIT, "NAME", 0, "valid or test (test)", 0},
    {"by", KEY_BY, "LIST", 0,
     "Break down by any of relation, side, mapping, distance, separated by commas", 0},
    {"filter", KEY_FILTER, "LIST", 0,
     "Splits whose answers are filtered (train,valid, and test if test is ranked)", 0},
    {"side", KEY_SIDE, "NAME", 0, "Entity to predict: head, tail or both (both)", 0},
    {"candidates", KEY_CANDIDATES, "FILE", 0,
     "Rank only these entities, one name per line; adds the area under the precision-recall curve", 0},
    {"control", KEY_CONTROL, NULL, 0,
     "Compare with an aggregator trained without references (kept as RUN/control)", 0},
    {"graph", KEY_GRAPH, "DIR", 0,
     "Evaluate this data set, over the same relations: its training split is the graph, its splits give "
     "queries and filter, its entities are the candidates; entities that the run does not know are "
     "scored by the path model alone",
     0},
    {"reference-graph", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
    {"among", KEY_AMONG, "N", 0,
     "Also Hits@10 among N random candidates: its expectation, computed from the rank", 0},
    {"triples", KEY_TRIPLES, "N", 0,
     "Rank N triples of the split, drawn at random (--seed): an estimate, for large graphs", 0},
    {"sample", KEY_SAMPLE, "N", 0,
     "Rank among N entities, drawn at random once (--seed): for graphs where all would take too long. "
     "These figures do not compare with those among all entities",
     0},
    {"baselines", KEY_BASELINES, "LIST", 0,
     "Further baselines: pagerank (which graphs with new entities get in any case)", 0},
    {"data", KEY_DATA, "DIR", 0, "A copy of the data set, to use instead of the one in the run", 0},
    {"device", KEY_DEVICE, "NAME", 0, CLI_DEVICES, 0},
    {0}};

/* Parses a list of names into a bit set: bit i for names[i]. */
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
            cli_unknown_item(state, option, at, length); /* ends the program */
        else
            bits |= 1u << found;
        at = comma ? comma + 1 : NULL;
    }
    return bits;
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    static const char *const by_names[] = {"relation", "side", "mapping", "distance"};
    static const char *const baseline_names[] = {"pagerank"};
    chosen_options *chosen = own;
    switch (key) {
    case KEY_SPLIT:
        chosen->evaluation.split = cli_split(state, value);
        return 0;
    case KEY_BY:
        chosen->by = (int)parse_list(state, "--by", value, by_names, 4);
        return 0;
    case KEY_FILTER:
        chosen->evaluation.filter = parse_list(state, "--filter", value, split_names, VLP_SPLITS);
        return 0;
    case KEY_SIDE:
        chosen->evaluation.sides = cli_sides(state, value);
        return 0;
    case KEY_CANDIDATES:
        chosen->candidates = value;
        return 0;
    case KEY_CONTROL:
        chosen->evaluation.control = true;
        return 0;
    case KEY_GRAPH:
        chosen->graph = value;
        return 0;
    case KEY_AMONG:
        chosen->evaluation.among = (int32_t)cli_integer(state, "--among", value, 1, 1000000000);
        return 0;
    case KEY_TRIPLES:
        chosen->evaluation.triples = cli_integer(state, "--triples", value, 1, INT64_MAX);
        return 0;
    case KEY_SAMPLE:
        chosen->evaluation.sample = (int32_t)cli_integer(state, "--sample", value, 1, INT32_MAX);
        return 0;
    case KEY_BASELINES:
        chosen->evaluation.pagerank = parse_list(state, "--baselines", value, baseline_names, 1) & 1;
        return 0;
    case KEY_DATA:
        chosen->run.data = value;
        return 0;
    case KEY_DEVICE:
        chosen->run.device = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- JSON ---- */

static void print_json(const vlp_dataset *data, const vlp_evaluation *evaluation) {
    json_out json = json_start(stdout);
    evaluation_json(&json, data, evaluation);
    putchar('\n');
}

/* ---- Tables ---- */

enum { NAME_COLUMNS = 34 };

static void print_columns(const char *name, const vlp_metrics *metrics) {
    printf("  ");
    text_print(text_shown(name), NAME_COLUMNS);
    printf(" %8s  %.4f  %9.1f  %.4f  %.4f  %.4f  %.4f", cli_count(metrics->queries), metrics->mrr,
           metrics->mr, metrics->amri, metrics->hits1, metrics->hits3, metrics->hits10);
}

static void print_row(const char *name, const vlp_metrics *metrics) {
    print_columns(name, metrics);
    putchar('\n');
}

static void print_titles(const char *title) {
    printf("  %-*s %8s  %6s  %9s  %6s  %6s  %6s  %6s", NAME_COLUMNS, title, "queries", "MRR", "MR",
           "AMRI", "H@1", "H@3", "H@10");
}

static void print_header(const char *title) {
    print_titles(title);
    putchar('\n');
}

/* Where there are several components, columns for the MRR by each alone. */
static void print_groups(const vlp_dataset *data, group_kind kind, const vlp_groups *groups,
                         unsigned components) {
    char title[32], number[16];
    if ((components & (components - 1)) == 0) components = 0;
    snprintf(title, sizeof title, "by %s", group_names[kind]);
    putchar('\n');
    print_titles(title);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (component_has(components, c)) printf("  %6s", component_words_of[c].symbol);
    putchar('\n');
    for (int64_t i = 0; i < groups->count; i++) {
        int32_t value = groups->items[i].value;
        const char *text =
            kind == GROUP_RELATION ? cli_relation(data, value) : group_text(data, kind, value);
        snprintf(number, sizeof number, "%d", value);
        print_columns(text ? text : number, &groups->items[i].metrics);
        for (int c = 0; c < VLP_COMPONENTS; c++)
            if (component_has(components, c)) printf("  %.4f", groups->items[i].alone[c]);
        putchar('\n');
    }
}

static void print_among(const vlp_evaluation *evaluation) {
    printf("  H@10 among %s random candidates %.4f, 95%% interval %.4f to %.4f",
           cli_count(evaluation->among), evaluation->hits10_among.middle, evaluation->hits10_among.low,
           evaluation->hits10_among.high);
    if (evaluation->pagerank.queries) printf("; PageRank %.4f", evaluation->pagerank_hits10_among);
    putchar('\n');
}

static void print_tables(const vlp_dataset *data, const vlp_evaluation *evaluation, int by) {
    static const char *const sides[] = {"", " for head entities", " for tail entities"};
    printf("%s: %s queries%s, filtered, ranks realistic\n", split_names[evaluation->split],
           cli_count(evaluation->queries), sides[evaluation->sides]);
    if (evaluation->triples < evaluation->split_triples)
        printf("of %s triples, drawn at random from %s\n", cli_count(evaluation->triples),
               cli_count(evaluation->split_triples));
    if (evaluation->sample > 0)
        printf("among %s sampled candidates of %s entities: these figures are higher than those among "
               "all\n",
               cli_count(evaluation->sample), cli_count(vlp_dataset_entity_count(data)));
    putchar('\n');
    print_header("");
    char title[96];
    component_formula(title, sizeof title, evaluation->components, evaluation->weights, false);
    print_row(title, &evaluation->both);
    if (evaluation->sides == VLP_BOTH_SIDES) {
        print_row("  head entity queries", &evaluation->head);
        print_row("  tail entity queries", &evaluation->tail);
    }
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (component_has(evaluation->components, c))
            print_row(component_words_of[c].alone, &evaluation->alone[c]);
    if (evaluation->control.queries) print_row("control: without references", &evaluation->control);
    print_row("baseline: frequent answers", &evaluation->frequency);
    print_row("baseline: vote of the references", &evaluation->vote);
    if (evaluation->pagerank.queries)
        print_row("baseline: PageRank from the entity", &evaluation->pagerank);
    printf("\n  MRR 95%% interval %.4f to %.4f, mean over relations %.4f, optimistic %.4f, pessimistic "
           "%.4f\n",
           evaluation->interval.low, evaluation->interval.high, evaluation->macro_mrr,
           evaluation->optimistic.mrr, evaluation->pessimistic.mrr);
    if (evaluation->among > 0) print_among(evaluation);
    if (isfinite(evaluation->auc_pr)) printf("  AUC-PR %.4f over the candidates\n", evaluation->auc_pr);
    if (evaluation->control.queries)
        printf("  MRR gain over the control %+.4f, 95%% interval %+.4f to %+.4f\n",
               evaluation->control_gain.middle, evaluation->control_gain.low,
               evaluation->control_gain.high);
    if (by & BY_RELATION)
        print_groups(data, GROUP_RELATION, &evaluation->by_relation, evaluation->components);
    if (by & BY_SIDE) print_groups(data, GROUP_SIDE, &evaluation->by_side, evaluation->components);
    if (by & BY_MAPPING)
        print_groups(data, GROUP_MAPPING, &evaluation->by_mapping, evaluation->components);
    if (by & BY_DISTANCE)
        print_groups(data, GROUP_DISTANCE, &evaluation->by_distance, evaluation->components);
}

int cmd_eval(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp eval",
        "RUN",
        "Rank the answers of a split: two queries per triple, every entity a "
        "candidate, known answers filtered.\v"
        "In the JSON object, lambda is that of f = f_c + lambda f_g, and null where the run ranks "
        "by f_g alone; gain is the MRR of f less that of each component alone: the bounds of its 95% "
        "interval (paired bootstrap) around it.",
        eval_options,
        parse,
        1,
        1};
    chosen_options chosen = {VLP_EVALUATION_OPTIONS_INIT, VLP_RUN_OPTIONS_INIT, 0, NULL, NULL};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    chosen.run.threads = line.common.threads;
    chosen.evaluation.seed = line.common.seed;
    chosen.run.observer = chosen.evaluation.observer = cli_observer(&line.common);
    vlp_run *run = NULL;
    vlp_evaluation *evaluation = NULL;
    int32_t *candidates = NULL;
    int code = EXIT_FAILED;
    vlp_status status = vlp_run_open(&run, line.arguments[0], &chosen.run);
    if (status != VLP_OK) {
        code = cli_fail_next(status, chosen.run.device, NULL);
        goto out;
    }
    chosen.evaluation.graph = chosen.graph != NULL;
    if (chosen.graph &&
        predicting_use_graph(run, chosen.graph, &line.common, chosen.run.observer) != VLP_OK) {
        code = cli_fail();
        goto out;
    }
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    if (chosen.candidates) {
        candidates = candidates_read(&chosen.evaluation.candidate_count, data, chosen.candidates);
        if (!candidates) goto out;
        chosen.evaluation.candidates = candidates;
    }
    if (vlp_run_evaluate(&evaluation, run, &chosen.evaluation) != VLP_OK) {
        code = cli_fail();
        goto out;
    }
    cli_observer_end();
    if (line.common.json)
        print_json(data, evaluation);
    else
        print_tables(data, evaluation, chosen.by);
    code = cli_finish();
out:
    free(candidates);
    vlp_evaluation_free(evaluation);
    vlp_run_free(run);
    return code;
}
