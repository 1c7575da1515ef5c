/* vlp mine: the most likely missing triples. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "candidates.h"
#include "commands.h"
#include "component.h"
#include "output.h"
#include "predicting.h"
#include "text.h"

enum { KEY_COUNT = 'k', KEY_OUTPUT = 'o', KEY_PER_QUERY = 1, KEY_RELATION, KEY_RESUME, KEY_SIDE };

typedef struct chosen_options {
    predicting common;
    vlp_mine_options mine;
    chosen_candidates candidates;
    const char *relation, *output;
} chosen_options;

static const struct argp_option options[] = {
    {NULL, KEY_COUNT, "K", 0, "Triples to find (100)", 0},
    {"relation", KEY_RELATION, "NAME", 0, "Only of this relation", 0},
    {"per-query", KEY_PER_QUERY, "N", 0, "Answers per query that are scored in both directions (10)", 0},
    {"side", KEY_SIDE, "SIDE", 0, "The entity that queries ask for: head, tail or both (both)", 0},
    OPTION_CANDIDATES,
    OPTION_EXPLAIN,
    OPTION_PRIOR,
    {"output", KEY_OUTPUT, "FILE", 0,
     "Write the result here when it is complete; FILE.state holds the progress until then", 0},
    {"resume", KEY_RESUME, NULL, 0, "Continue after an interruption", 0},
    OPTION_GRAPH,
    OPTION_DATA,
    OPTION_DEVICE,
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case KEY_COUNT:
        chosen->mine.count = (int32_t)cli_integer(state, "-k", value, 1, 100000000);
        return 0;
    case KEY_PER_QUERY:
        chosen->mine.per_query = (int32_t)cli_integer(state, "--per-query", value, 1, 1000);
        return 0;
    case KEY_RELATION:
        chosen->relation = value;
        return 0;
    case KEY_OUTPUT:
        chosen->output = value;
        return 0;
    case KEY_RESUME:
        chosen->mine.resume = true;
        return 0;
    case KEY_SIDE:
        chosen->mine.sides = cli_sides(state, value);
        return 0;
    case KEY_CANDIDATES:
    case KEY_SEEN:
    case KEY_WHERE:
        return candidates_parse(key, value, state, &chosen->candidates);
    default:
        return predicting_parse(key, value, state, &chosen->common);
    }
}

/* ---- Writing ------------------------------------------------------------------------------------- */

/* Explains a mined triple: its tail entity as the answer of (head, relation, ?). */
static vlp_status explain(vlp_predictions **out, vlp_run *run, const vlp_mined *item,
                          const vlp_observer *observer) {
    vlp_predict_options explaining = VLP_PREDICT_OPTIONS_INIT;
    explaining.observer = observer;
    vlp_query query = {item->triple.head, item->triple.relation, -1};
    return vlp_run_explain(out, run, &query, &item->triple.tail, 1, &explaining);
}

static void item_json(json_out *json, const vlp_dataset *data, const vlp_mined *item,
                      const vlp_answers *answers) {
    json_object(json, NULL);
    json_string(json, "head", vlp_dataset_entity_name(data, item->triple.head));
    json_string(json, "relation", vlp_dataset_relation_name(data, item->triple.relation));
    json_string(json, "tail", vlp_dataset_entity_name(data, item->triple.tail));
    json_number(json, "score", item->score);
    component_parts_json(json, item->parts);
    json_number(json, "probability", item->probability);
    if (answers) predicting_paths_json(json, data, &answers->predictions[0]);
    if (answers) predicting_references_json(json, data, answers, &answers->predictions[0]);
    json_end_object(json);
}

static void item_text(FILE *stream, const vlp_dataset *data, const vlp_mined *item, bool names) {
    vlp_triple triple = item->triple;
    if (names)
        fprintf(stream, "%s\t%s\t%s\t", vlp_dataset_entity_name(data, triple.head),
                vlp_dataset_relation_name(data, triple.relation),
                vlp_dataset_entity_name(data, triple.tail));
    if (isnan(item->probability))
        fprintf(stream, names ? "-\t" : "     -  ");
    else
        fprintf(stream, names ? "%.6g\t" : "%6.4f  ", item->probability);
    fprintf(stream, names ? "%.6g\n" : "%8.4f  ", item->score);
    if (!names)
        fprintf(stream, "%s  %s  %s\n", predicting_readable(data, triple.head),
                text_shown(cli_relation(data, triple.relation)), predicting_readable(data, triple.tail));
}

/* How many of the possible queries and triples were scored. */
static void print_coverage(const vlp_mining *mining) {
    printf("# %s of %s possible queries (entities that occur with the relation in that position);\n",
           cli_count(mining->queries), cli_count(mining->possible_queries));
    printf("# %s scored in both directions, of %s possible triples\n",
           cli_things(mining->candidates, "candidate"), cli_count(mining->possible_triples));
}

static int print_text(vlp_run *run, const vlp_mining *mining, const chosen_options *chosen) {
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    vlp_run_info info;
    vlp_run_describe(&info, run);
    print_coverage(mining);
    if (candidates_chosen(&chosen->candidates)) {
        printf("# answers of a query are candidates only: entities ");
        candidates_print(&chosen->candidates, data);
        putchar('\n');
    }
    const char *why = chosen->common.explain ? predicting_no_copy(&info) : NULL;
    if (why) printf("# %s\n", why);
    printf("# %s; columns: probability, f, triple\n", predicting_formula(&info));
    for (int64_t i = 0; i < mining->count; i++) {
        item_text(stdout, data, &mining->items[i], false);
        if (!chosen->common.explain) continue;
        vlp_predictions *predictions = NULL;
        if (explain(&predictions, run, &mining->items[i], chosen->mine.observer) != VLP_OK)
            return cli_fail();
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        predicting_paths_text(data, &answers->predictions[0]);
        predicting_references_text(data, answers, &answers->predictions[0], &info);
        vlp_predictions_free(predictions);
    }
    return cli_finish();
}

static int print_json(vlp_run *run, const vlp_mining *mining, const chosen_options *chosen) {
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    json_out out = json_start(stdout), *json = &out;
    vlp_status status = VLP_OK;
    json_object(json, NULL);
    candidates_json(json, &chosen->candidates, data);
    json_integer(json, "queries", mining->queries);
    json_integer(json, "possible_queries", mining->possible_queries);
    json_integer(json, "candidates", mining->candidates);
    json_integer(json, "possible_triples", mining->possible_triples);
    json_array(json, "triples");
    for (int64_t i = 0; status == VLP_OK && i < mining->count; i++) {
        vlp_predictions *predictions = NULL;
        if (chosen->common.explain)
            status = explain(&predictions, run, &mining->items[i], chosen->mine.observer);
        if (status == VLP_OK)
            item_json(json, data, &mining->items[i],
                      predictions ? vlp_predictions_get(predictions, 0) : NULL);
        vlp_predictions_free(predictions);
    }
    json_end_array(json);
    json_end_object(json);
    putchar('\n');
    return status == VLP_OK ? cli_finish() : cli_fail();
}

/* `path` with a suffix, to be freed. */
static char *with_suffix(const char *path, const char *suffix) {
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%s%s", path, suffix);
    return name;
}

static int fail_file(const char *verb, const char *path) {
    fprintf(stderr, "vlp: cannot %s %s: %s\n", verb, text_shown(path), strerror(errno));
    return EXIT_FAILED;
}

static int write_file(const char *path, const vlp_dataset *data, const vlp_mining *mining) {
    output_file file;
    int64_t bytes;
    if (!output_open(&file, path)) return EXIT_FAILED;
    for (int64_t i = 0; i < mining->count; i++) item_text(file.stream, data, &mining->items[i], true);
    return output_commit(&file, &bytes) ? EXIT_DONE : EXIT_FAILED;
}

/* What to type after a failure; NULL: nothing. `kept`: there is a state. */
static const char *next_step(const chosen_options *chosen, vlp_status status, bool kept) {
    if (kept) return "--resume";
    /* When resuming, a state of another choice of options is an error of the same kind. */
    bool empty = status == VLP_ERROR_ARGUMENT && !chosen->mine.resume;
    return empty && candidates_chosen(&chosen->candidates) ? CANDIDATES_NEXT : NULL;
}

static int mine(vlp_run *run, chosen_options *chosen, bool json) {
    vlp_mining *mining = NULL;
    char *state = NULL;
    int code = EXIT_DONE;
    if (chosen->output && !(state = with_suffix(chosen->output, ".state")))
        return fail_file("keep", "state");
    chosen->mine.state = state;
    chosen->mine.prior = chosen->common.prior;
    chosen->mine.observer = chosen->common.run.observer;
    vlp_status status = VLP_OK;
    if (chosen->relation)
        status = vlp_dataset_find_relation(&chosen->mine.relation, vlp_run_graph_dataset(run),
                                           chosen->relation);
    if (status == VLP_OK && !candidates_find(&chosen->candidates, vlp_run_graph_dataset(run))) {
        free(state);
        return EXIT_FAILED;
    }
    chosen->mine.candidates = &chosen->candidates.options;
    if (status == VLP_OK) status = vlp_run_mine(&mining, run, &chosen->mine);
    if (status != VLP_OK) {
        bool kept = state && (status == VLP_ERROR_STOPPED || status == VLP_ERROR_EXISTS);
        code = cli_fail_next(status, chosen->common.run.device, next_step(chosen, status, kept));
    } else {
        cli_observer_end();
        if (chosen->output) code = write_file(chosen->output, vlp_run_graph_dataset(run), mining);
        if (state && code == EXIT_DONE && unlink(state) != 0) code = fail_file("remove", state);
        if (code == EXIT_DONE)
            code = json ? print_json(run, mining, chosen) : print_text(run, mining, chosen);
    }
    vlp_mining_free(mining);
    free(state);
    return code;
}

int cmd_mine(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp mine",
        "RUN",
        "The most likely triples that are not known, of one relation or of all.\v"
        "For each relation and direction, the entities that occur with it in that position are queried; "
        "unknown answers among the best of each query are scored in both directions. Probabilities are "
        "those of `vlp score`: these triples are the best of very many, so a --prior well below 0.5 is "
        "more realistic. With --candidates, --seen and --where the answers of a query meet all of them; "
        "with "
        "--side head they are the head entities of the triples found.",
        options,
        parse,
        1,
        1};
    chosen_options chosen = {.common = PREDICTING_INIT, .mine = VLP_MINE_OPTIONS_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (chosen.mine.resume && !chosen.output) {
        fprintf(stderr, "vlp mine: --resume continues what -o FILE names; it is required\n");
        return EXIT_USAGE;
    }
    if (chosen.output && !output_check(chosen.output)) return EXIT_FAILED;
    vlp_run *run = NULL;
    int code;
    vlp_status status = predicting_open(&run, line.arguments[0], &chosen.common, &line.common);
    if (status != VLP_OK)
        code = cli_fail_next(status, chosen.common.run.device, NULL);
    else
        code = mine(run, &chosen, line.common.json);
    candidates_free(&chosen.candidates);
    vlp_run_free(run);
    return code;
}
