/* vlp data: its table of subcommands, and those that create data sets. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

static const cli_command parts[] = {
    {"stats", "DIR", "Counts of a data set", cmd_data_stats},
    {"audit", "DIR", "Leakage between splits, and answers that references give", cmd_data_audit},
    {"split", "FILE DIR", "Split a file of triples into train, valid and test", cmd_data_split},
    {"import", "[FORMAT] SRC DIR", "Make a data set from RDF, CSV, TSV or WordNet", cmd_data_import},
    {"family", "DIR", "Generate people whose relations follow known rules", cmd_data_family},
    {"random", "DIR", "Generate a graph of any size, to measure with", cmd_data_random},
    {0}};

int cmd_data(int argc, char **argv) {
    return cli_dispatch(parts, "vlp data", "Inspect, check, split, import and generate data sets.", argc,
                        argv);
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
        json_integer(&json, "relation_labels", report->relation_labels);
        json_integer(&json, "graph_names", report->graph_names);
        json_end_object(&json);
        putchar('\n');
        return cli_finish();
    }
    printf("%s: %s, %s\n", text_shown(folder), cli_things(report->entities, "entity"),
           cli_things(report->relations, "relation"));
    printf("  train %s, valid %s, test %s\n", cli_count(report->triples[VLP_TRAIN]),
           cli_count(report->triples[VLP_VALID]), cli_count(report->triples[VLP_TEST]));
    if (report->labels) printf("  labels for %s\n", cli_things(report->labels, "entity"));
    if (report->relation_labels)
        printf("  labels for %s\n", cli_things(report->relation_labels, "relation"));
    if (report->graph_names) printf("  %s dropped\n", cli_things(report->graph_names, "graph name"));
    if (report->duplicates) printf("  %s dropped\n", cli_things(report->duplicates, "repeated triple"));
    if (report->skipped) printf("  %s left out\n", cli_things(report->skipped, "statement"));
    return cli_finish();
}

/* ---- Splitting, for split and import ------------------------------------------------------------- */

typedef struct making {
    vlp_split_options split;
    vlp_file_options file;
    char columns[3][256]; /* names of columns */
    bool keep_inverses;
    vlp_family_options family;
    vlp_random_graph_options random;
} making;

enum {
    KEY_VALID = 1,
    KEY_TEST,
    KEY_BY_RELATION,
    KEY_ANY_ENTITY,
    KEY_FORMAT,
    KEY_COLUMNS,
    KEY_SEPARATOR,
    KEY_HEADER,
    KEY_INVERSES,
    KEY_LITERALS,
    KEY_LANGUAGE,
    KEY_FAMILIES,
    KEY_GENERATIONS,
    KEY_HELD_OUT,
    KEY_ENTITIES,
    KEY_TRIPLES,
    KEY_RELATIONS
};

#define SPLIT_OPTIONS                                                                                   \
    {                                                                                                   \
        "valid", KEY_VALID, "SHARE", 0, "Share of the triples for the validation split, 0 to 1 (0.05)", \
        0},                                                                                             \
        {"test", KEY_TEST, "SHARE", 0, "Share of the triples for the test split, 0 to 1 (0.05)", 0},    \
        {"by-relation", KEY_BY_RELATION, NULL, 0, "Take the same share of every relation", 0}, {        \
        "any-entity", KEY_ANY_ENTITY, NULL, 0,                                                          \
            "Let valid and test have entities that train has not (else every entity and relation "      \
            "stays "                                                                                    \
            "in train)",                                                                                \
            0                                                                                           \
    }

#define FILE_OPTIONS                                                                                    \
    {"format",                                                                                          \
     KEY_FORMAT,                                                                                        \
     "NAME",                                                                                            \
     0,                                                                                                 \
     "Format of the file: tsv, csv, ntriples, nquads, turtle or trig (by its extension, else by its "   \
     "content)",                                                                                        \
     1},                                                                                                \
        {"columns",                                                                                     \
         KEY_COLUMNS,                                                                                   \
         "H,R,T",                                                                                       \
         0,                                                                                             \
         "csv, tsv: the columns of head, relation and tail, by number from 1 or by name in the header", \
         1},                                                                                            \
        {"separator",                                                                                   \
         KEY_SEPARATOR,                                                                                 \
         "CHAR",                                                                                        \
         0,                                                                                             \
         "csv, tsv: the column separator (a comma; a tab, for which \\t is written)",                   \
         1},                                                                                            \
    {                                                                                                   \
        "header", KEY_HEADER, NULL, 0, "csv, tsv: skip the first row", 1                                \
    }

/* "2,1,3" or "from,kind,to": the columns of head, relation and tail. */
static void parse_columns(making *chosen, const char *text, struct argp_state *state) {
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof chosen->columns[i] || (at[length] == ',') != (i < 2))
            argp_error(state,
                       "--columns takes three column numbers or names such as 1,2,3 or from,kind,to, "
                       "not '%s'",
                       text_shown(text));
        memcpy(chosen->columns[i], at, length);
        chosen->columns[i][length] = '\0';
        bool number = strspn(chosen->columns[i], "0123456789") == length;
        if (number)
            chosen->file.columns[i] =
                (int32_t)cli_integer(state, "--columns", chosen->columns[i], 1, INT32_MAX);
        chosen->file.column_names[i] = number ? NULL : chosen->columns[i];
        at += length + 1;
    }
}

/* The format with that name; VLP_FORMATS: none. */
static vlp_format find_format(const char *name) {
    int format = 0;
    while (format < VLP_FORMATS && strcmp(vlp_format_name((vlp_format)format), name) != 0) format++;
    return (vlp_format)format;
}

static vlp_format parse_format(struct argp_state *state, const char *name) {
    vlp_format format = find_format(name);
    if (format == VLP_FORMATS)
        argp_error(state, "--format takes tsv, csv, ntriples, nquads, turtle, trig or auto, not '%s'",
                   text_shown(name));
    return format;
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
    case KEY_FORMAT:
        chosen->file.format = parse_format(state, value);
        return 0;
    case KEY_COLUMNS:
        parse_columns(chosen, value, state);
        return 0;
    case KEY_SEPARATOR:
        if (strcmp(value, "\\t") == 0) value = "\t";
        if (strlen(value) != 1)
            argp_error(state, "--separator takes one character, not '%s'", text_shown(value));
        chosen->file.separator = value[0];
        return 0;
    case KEY_HEADER:
        chosen->file.header = true;
        return 0;
    case KEY_INVERSES:
        chosen->keep_inverses = true;
        return 0;
    case KEY_LITERALS:
        chosen->file.keep_literals = true;
        return 0;
    case KEY_LANGUAGE:
        chosen->file.language = value;
        return 0;
    case KEY_FAMILIES:
        chosen->family.families = (int32_t)cli_integer(state, "--families", value, 1, 100000);
        return 0;
    case KEY_GENERATIONS:
        chosen->family.generations = (int32_t)cli_integer(state, "--generations", value, 2, 12);
        return 0;
    case KEY_HELD_OUT:
        chosen->family.held_out = chosen->random.held_out =
            cli_number(state, "--held-out", value, 0, 0.4);
        return 0;
    case KEY_ENTITIES:
        chosen->random.entities = (int32_t)cli_integer(state, "--entities", value, 10, INT32_MAX);
        return 0;
    case KEY_TRIPLES:
        chosen->random.triples = cli_integer(state, "--triples", value, 10, INT32_MAX);
        return 0;
    case KEY_RELATIONS:
        chosen->random.relations = (int32_t)cli_integer(state, "--relations", value, 1, 10000);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void making_start(making *chosen) {
    *chosen = (making){.split = VLP_SPLIT_OPTIONS_INIT,
                       .file = VLP_FILE_OPTIONS_INIT,
                       .family = VLP_FAMILY_OPTIONS_INIT,
                       .random = VLP_RANDOM_GRAPH_OPTIONS_INIT};
    chosen->file.language = "en";
}

/* Copies the common options. */
static void apply_common(making *chosen, const cli_common *common) {
    chosen->split.threads = common->threads;
    chosen->split.seed = common->seed;
    chosen->split.observer = cli_observer(common);
    chosen->family.seed = common->seed;
    chosen->random.seed = common->seed;
    chosen->random.observer = cli_observer(common);
}

static int import_file(const cli_line *line, making *chosen, const char *source, const char *folder) {
    vlp_import_report report;
    if (vlp_import_file(&report, source, folder, &chosen->file, &chosen->split) != VLP_OK)
        return cli_fail();
    return print_report(&line->common, folder, &report);
}

int cmd_data_split(int argc, char **argv) {
    static const struct argp_option options[] = {SPLIT_OPTIONS, FILE_OPTIONS, {0}};
    static const cli_syntax syntax = {
        "vlp data split",
        "FILE DIR",
        "Split a file of triples into a new folder with train, valid and test. FILE is TSV (.tsv, "
        ".txt), CSV (.csv), N-Triples (.nt), N-Quads (.nq), Turtle (.ttl) or TriG (.trig), also "
        "compressed (.gz, .zst), or - for standard input. Every statement is a triple, those with "
        "literals as well; `vlp data import` leaves literals out and makes labels of labels.",
        options,
        parse,
        2,
        2};
    making chosen;
    making_start(&chosen);
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    chosen.file.keep_literals = chosen.file.keep_labels = true;
    return import_file(&line, &chosen, line.arguments[0], line.arguments[1]);
}

int cmd_data_import(int argc, char **argv) {
    static const struct argp_option options[] = {
        SPLIT_OPTIONS,
        FILE_OPTIONS,
        {"keep-literals", KEY_LITERALS, NULL, 0, "RDF: keep literals as entities", 2},
        {"language", KEY_LANGUAGE, "TAG", 0, "RDF: the preferred language of labels (en)", 2},
        {"keep-inverses", KEY_INVERSES, NULL, 0,
         "wordnet: keep pointers that are the inverse of another one (hyponym and hypernym)", 3},
        {0}};
    static const cli_syntax syntax = {
        "vlp data import",
        "SRC DIR\nFORMAT SRC DIR\nwordnet SRC DIR",
        "Make a data set, a new folder with train, valid, test and labels, from a file of triples or "
        "from "
        "WordNet's database folder (Debian: /usr/share/wordnet). SRC is TSV (.tsv, .txt), CSV (.csv), "
        "N-Triples (.nt), N-Quads (.nq), Turtle (.ttl) or TriG (.trig), also compressed (.gz, .zst), or "
        "- for standard input. FORMAT is tsv, csv, ntriples, nquads, turtle or trig, as with --format. "
        "Of RDF, rdfs:label and skos:prefLabel become labels, other literals are left out.",
        options,
        parse,
        2,
        3};
    making chosen;
    making_start(&chosen);
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    const char *kind = line.count == 3 ? line.arguments[0] : NULL;
    const char *source = line.arguments[line.count - 2], *folder = line.arguments[line.count - 1];
    if (kind && strcmp(kind, "wordnet") == 0) {
        vlp_import_report report;
        if (vlp_import_wordnet(&report, source, folder, chosen.keep_inverses, &chosen.split) != VLP_OK)
            return cli_fail();
        return print_report(&line.common, folder, &report);
    }
    if (kind) chosen.file.format = find_format(kind);
    if (chosen.file.format == VLP_FORMATS) {
        fprintf(
            stderr,
            "vlp data import: unknown format '%s'; it is tsv, csv, ntriples, nquads, turtle, trig or "
            "wordnet\n",
            text_shown(kind));
        return EXIT_USAGE;
    }
    return import_file(&line, &chosen, source, folder);
}

int cmd_data_family(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"families", KEY_FAMILIES, "N", 0, "Founding couples (40)", 0},
        {"generations", KEY_GENERATIONS, "N", 0, "Generations, including the founders (5)", 0},
        {"held-out", KEY_HELD_OUT, "SHARE", 0,
         "Share of the derivable triples for each of valid and test (0.1)", 0},
        {0}};
    static const cli_syntax syntax = {
        "vlp data family",
        "DIR",
        "Generate people whose relations follow known rules (the father of the father is the "
        "grandfather). "
        "Held-out triples follow from the training split in 1, 2, 3 or 4 steps; hops.tsv has the number "
        "of steps.",
        options,
        parse,
        1,
        1};
    making chosen;
    making_start(&chosen);
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    vlp_import_report report;
    if (vlp_family_generate(&report, line.arguments[0], &chosen.family) != VLP_OK) return cli_fail();
    return print_report(&line.common, line.arguments[0], &report);
}

int cmd_data_random(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"entities", KEY_ENTITIES, "N", 0, "Entities (100000)", 0},
        {"triples", KEY_TRIPLES, "N", 0, "Triples of all splits; at least as many as entities (500000)",
         0},
        {"relations", KEY_RELATIONS, "N", 0, "Relations (200)", 0},
        {"held-out", KEY_HELD_OUT, "SHARE", 0,
         "Share of the derivable triples for each of valid and test (0.01)", 0},
        {0}};
    static const cli_syntax syntax = {
        "vlp data random",
        "DIR",
        "Generate a graph of any size, to measure with. Degrees follow a power law; entities have types "
        "and communities; half of the relations are compositions of two others, which rules.tsv names. "
        "Held-out triples follow from two of the training split.",
        options,
        parse,
        1,
        1};
    making chosen;
    making_start(&chosen);
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    apply_common(&chosen, &line.common);
    vlp_import_report report;
    if (vlp_random_graph_generate(&report, line.arguments[0], &chosen.random) != VLP_OK)
        return cli_fail();
    return print_report(&line.common, line.arguments[0], &report);
}
