/* vlp data: the table of its parts, and the ones that make data sets. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

static const cli_command parts[] = {
    {"stats", "DIR", "Counts of a data set", cmd_data_stats},
    {"audit", "DIR", "What a data set gives away, and what can be copied in it", cmd_data_audit},
    {"split", "FILE DIR", "Divide a file of triples into train, valid and test", cmd_data_split},
    {"import", "wordnet|ntriples|tsv SRC DIR", "Make a data set from other formats", cmd_data_import},
    {"family", "DIR", "Generate people whose relations follow known rules", cmd_data_family},
    {0}};

int cmd_data(int argc, char **argv) {
    return cli_dispatch(parts, "vlp data", "Look at, check, divide, import and generate data sets.",
                        argc, argv);
}

static int print_report(const cli_common *common, const char *folder, const vlp_import_report *report) {
    if (common->json) {
        json_out json = json_start(stdout);
        json_object(&json, NULL);
        json_string(&json, "folder", folder);
        json_integer(&json, "entities", report->entities);
        json_integer(&json, "relations", report->relations);
        json_integer(&json, "train", report->triples[VLP_TRAIN]);
        json_integer(&json, "valid", report->triples[VLP_VALID]);
        json_integer(&json, "test", report->triples[VLP_TEST]);
        json_integer(&json, "labels", report->labels);
        json_integer(&json, "duplicates", report->duplicates);
        json_integer(&json, "skipped", report->skipped);
        json_end_object(&json);
        putchar('\n');
        return cli_finish();
    }
    printf("%s: %s, %s\n", text_shown(folder), cli_things(report->entities, "entity"),
           cli_things(report->relations, "relation"));
    printf("  train %s, valid %s, test %s\n", cli_count(report->triples[VLP_TRAIN]),
           cli_count(report->triples[VLP_VALID]), cli_count(report->triples[VLP_TEST]));
    if (report->labels) printf("  labels for %s\n", cli_things(report->labels, "entity"));
    if (report->duplicates) printf("  %s dropped\n", cli_things(report->duplicates, "repeated triple"));
    if (report->skipped) printf("  %s left out\n", cli_things(report->skipped, "statement"));
    return cli_finish();
}

/* ---- Dividing, for split and import -------------------------------------------------------------- */

typedef struct making {
    vlp_split_options split;
    vlp_table_options table;
    bool keep_inverses, keep_literals;
    const char *language;
    vlp_family_options family;
} making;

enum {
    KEY_VALID = 1,
    KEY_TEST,
    KEY_BY_RELATION,
    KEY_ANY_ENTITY,
    KEY_COLUMNS,
    KEY_SEPARATOR,
    KEY_HEADER,
    KEY_INVERSES,
    KEY_LITERALS,
    KEY_LANGUAGE,
    KEY_FAMILIES,
    KEY_GENERATIONS,
    KEY_HELD_OUT
};

#define SPLIT_OPTIONS                                                                                   \
    {"valid", KEY_VALID, "SHARE", 0, "Share of the triples for valid, 0 to 1 (0.05)", 0},               \
        {"test", KEY_TEST, "SHARE", 0, "Share of the triples for test, 0 to 1 (0.05)", 0},              \
        {"by-relation", KEY_BY_RELATION, NULL, 0, "Take the shares from every relation alike", 0}, {    \
        "any-entity", KEY_ANY_ENTITY, NULL, 0,                                                          \
            "Let valid and test have entities that train has not (else every entity and relation "      \
            "stays "                                                                                    \
            "in train)",                                                                                \
            0                                                                                           \
    }

/* "2,1,3": the columns of head, relation and tail. */
static void parse_columns(int32_t columns[3], const char *text, struct argp_state *state) {
    char end;
    if (sscanf(text, "%d,%d,%d%c", &columns[0], &columns[1], &columns[2], &end) != 3)
        argp_error(state, "--columns takes three column numbers such as 1,2,3, not '%s'",
                   text_shown(text));
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    making *chosen = own;
    switch (key) {
    case KEY_VALID:
        chosen->split.valid = cli_number(state, "--valid", value, 0, 1);
        return 0;
    case KEY_TEST:
        chosen->split.test = cli_number(state, "--test", value, 0, 1);
        return 0;
    case KEY_BY_RELATION:
        chosen->split.by_relation = true;
        return 0;
    case KEY_ANY_ENTITY:
        chosen->split.keep_entities = false;
        return 0;
    case KEY_COLUMNS:
        parse_columns(chosen->table.columns, value, state);
        return 0;
    case KEY_SEPARATOR:
        if (strcmp(value, "\\t") == 0) value = "\t";
        if (strlen(value) != 1)
            argp_error(state, "--separator takes one character, not '%s'", text_shown(value));
        chosen->table.separator = value[0];
        return 0;
    case KEY_HEADER:
        chosen->table.header = true;
        return 0;
    case KEY_INVERSES:
        chosen->keep_inverses = true;
        return 0;
    case KEY_LITERALS:
        chosen->keep_literals = true;
        return 0;
    case KEY_LANGUAGE:
        chosen->language = value;
        return 0;
    case KEY_FAMILIES:
        chosen->family.families = (int32_t)cli_integer(state, "--families", value, 1, 100000);
        return 0;
    case KEY_GENERATIONS:
        chosen->family.generations = (int32_t)cli_integer(state, "--generations", value, 2, 12);
        return 0;
    case KEY_HELD_OUT:
        chosen->family.held_out = cli_number(state, "--held-out", value, 0, 0.4);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static making making_start(void) {
    return (making){.split = VLP_SPLIT_OPTIONS_INIT,
                    .table = VLP_TABLE_OPTIONS_INIT,
                    .language = "en",
                    .family = VLP_FAMILY_OPTIONS_INIT};
}

/* Gives the common options to the split. */
static void apply_common(making *chosen, const cli_common *common) {
    chosen->split.threads = common->threads;
    chosen->split.seed = common->seed;
    chosen->split.observer = cli_observer(common);
    chosen->family.seed = common->seed;
}

int cmd_data_split(int argc, char **argv) {
    static const struct argp_option options[] = {SPLIT_OPTIONS, {0}};
    static const cli_syntax syntax = {
        "vlp data split",
        "FILE DIR",
        "Divide a file of triples (.txt, .tsv, .nt, plain or .gz) into a new "
        "folder with train, valid and test.",
        options,
        parse,
        2,
        2};
    making chosen = making_start();
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    vlp_import_report report;
    if (vlp_split_file(&report, line.arguments[0], line.arguments[1], &chosen.split) != VLP_OK)
        return cli_fail();
    return print_report(&line.common, line.arguments[1], &report);
}

int cmd_data_import(int argc, char **argv) {
    static const struct argp_option options[] = {
        SPLIT_OPTIONS,
        {"columns", KEY_COLUMNS, "H,R,T", 0, "tsv: columns of head, relation, tail (1,2,3)", 1},
        {"separator", KEY_SEPARATOR, "CHAR", 0, "tsv: what separates the columns (a tab)", 1},
        {"header", KEY_HEADER, NULL, 0, "tsv: pass over the first line", 1},
        {"keep-literals", KEY_LITERALS, NULL, 0, "ntriples: keep texts and numbers as entities", 2},
        {"language", KEY_LANGUAGE, "TAG", 0, "ntriples: the labels to prefer (en)", 2},
        {"keep-inverses", KEY_INVERSES, NULL, 0,
         "wordnet: keep pointers that repeat another one backwards (hyponym and hypernym)", 3},
        {0}};
    static const cli_syntax syntax = {"vlp data import",
                                      "wordnet SRC DIR\nntriples SRC DIR\ntsv SRC DIR",
                                      "Make a data set, a new folder with train, valid, test and "
                                      "labels, from WordNet's database folder "
                                      "(Debian: /usr/share/wordnet), a file of N-Triples, or a table.",
                                      options,
                                      parse,
                                      3,
                                      3};
    making chosen = making_start();
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    const char *kind = line.arguments[0], *source = line.arguments[1], *folder = line.arguments[2];
    vlp_import_report report;
    vlp_status status;
    if (strcmp(kind, "wordnet") == 0) {
        status = vlp_import_wordnet(&report, source, folder, chosen.keep_inverses, &chosen.split);
    } else if (strcmp(kind, "ntriples") == 0) {
        status = vlp_import_ntriples(&report, source, folder, chosen.keep_literals, chosen.language,
                                     &chosen.split);
    } else if (strcmp(kind, "tsv") == 0) {
        status = vlp_import_table(&report, source, folder, &chosen.table, &chosen.split);
    } else {
        fprintf(stderr, "vlp data import: '%s' is not known; it is wordnet, ntriples or tsv\n",
                text_shown(kind));
        return EXIT_USAGE;
    }
    if (status != VLP_OK) return cli_fail();
    return print_report(&line.common, folder, &report);
}

int cmd_data_family(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"families", KEY_FAMILIES, "N", 0, "Founding couples (40)", 0},
        {"generations", KEY_GENERATIONS, "N", 0, "Generations, the founders' included (5)", 0},
        {"held-out", KEY_HELD_OUT, "SHARE", 0,
         "Share of the concludable triples for valid and for test, each (0.1)", 0},
        {0}};
    static const cli_syntax syntax = {
        "vlp data family",
        "DIR",
        "Generate people whose relations follow known rules (the father of the father is the "
        "grandfather). "
        "What is held out can be concluded from train in 1, 2, 3 or 4 steps; hops.tsv says in how many.",
        options,
        parse,
        1,
        1};
    making chosen = making_start();
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    vlp_import_report report;
    if (vlp_family_generate(&report, line.arguments[0], &chosen.family) != VLP_OK) return cli_fail();
    return print_report(&line.common, line.arguments[0], &report);
}
