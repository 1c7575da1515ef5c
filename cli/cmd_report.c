/* vlp report: one self-contained page about runs. The same runs give the same bytes: it contains no
 * date. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "component.h"
#include "json.h"
#include "output.h"
#include "report.h"
#include "text.h"

enum { KEY_SPLIT = 1, KEY_EXAMPLES, KEY_DATA, KEY_DEVICE, KEY_TITLE };

typedef struct chosen_options {
    const char *output, *title;
    vlp_split split;
    int examples;
    vlp_run_options run;
} chosen_options;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The page to write (required); an existing file is replaced", 0},
    {"split", KEY_SPLIT, "NAME", 0, "valid or test (test)", 0},
    {"examples", KEY_EXAMPLES, "N", 0, "Queries to show, sampled by --seed (6)", 0},
    {"title", KEY_TITLE, "TEXT", 0, "The page's title", 0},
    {"data", KEY_DATA, "DIR", 0, "A copy of the data set, to use instead of the one in the run", 0},
    {"device", KEY_DEVICE, "NAME", 0, CLI_DEVICES, 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case 'o':
        chosen->output = value;
        return 0;
    case KEY_SPLIT:
        chosen->split = cli_split(state, value);
        return 0;
    case KEY_EXAMPLES:
        chosen->examples = (int)cli_integer(state, "--examples", value, 0, REPORT_MAX_EXAMPLES);
        return 0;
    case KEY_TITLE:
        chosen->title = value;
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

/* ---- Collecting ---------------------------------------------------------------------------------- */

/* Names each run by the last part of its path, or by the whole path if two runs share it. */
static void name_runs(report *page, char **paths) {
    for (int i = 0; i < page->count; i++) page->runs[i].name = report_base_name(paths[i]);
    for (int i = 0; i < page->count; i++)
        for (int j = 0; j < page->count; j++)
            if (i != j && strcmp(report_base_name(paths[i]), report_base_name(paths[j])) == 0)
                page->runs[i].name = paths[i];
}

static void join_group(report *page, report_run *run) {
    int group = 0;
    while (group < page->group_count &&
           strcmp(vlp_run_checksum(page->groups[group].runs[0]->run), vlp_run_checksum(run->run)) != 0)
        group++;
    if (group == page->group_count) page->group_count++;
    run->group = group;
    page->groups[group].runs[page->groups[group].count++] = run;
}

static vlp_status collect_run(report *page, report_run *run, const char *path,
                              const chosen_options *chosen) {
    vlp_evaluation_options evaluating = VLP_EVALUATION_OPTIONS_INIT;
    evaluating.split = chosen->split;
    evaluating.observer = chosen->run.observer;
    vlp_status status = vlp_run_open(&run->run, path, &chosen->run);
    if (status != VLP_OK) return status;
    vlp_run_describe(&run->info, run->run);
    run->data = vlp_run_dataset(run->run);
    join_group(page, run);
    status = vlp_run_evaluate(&run->evaluation, run->run, &evaluating);
    if (status == VLP_OK) status = vlp_run_history(&run->history, run->run);
    if (status == VLP_OK && component_has(run->info.components, VLP_HORIZONTAL))
        status = vlp_evaluation_compare(&run->over_horizontal, run->evaluation, VLP_BY_F_G,
                                        run->evaluation, VLP_BY_F);
    if (status == VLP_OK)
        status = vlp_evaluation_compare(&run->over_first, page->groups[run->group].runs[0]->evaluation,
                                        VLP_BY_F, run->evaluation, VLP_BY_F);
    int64_t valid;
    (void)vlp_dataset_triples(run->data, VLP_VALID, &valid);
    if (status == VLP_OK && valid > 0) {
        vlp_calibration_options calibrating = VLP_CALIBRATION_OPTIONS_INIT;
        calibrating.observer = chosen->run.observer;
        status = vlp_run_calibrate(&run->calibration, run->run, &calibrating);
        run->calibrated = status == VLP_OK;
    }
    return status;
}

/* One output of a keyed sequence (splitmix64). */
static uint64_t draw(uint64_t seed, uint64_t index) {
    uint64_t value = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* Samples queries of a split without replacement. */
static void choose_examples(report_group *group, vlp_split split, int wanted, uint64_t seed) {
    const vlp_dataset *data = group->runs[0]->data;
    int32_t relations = vlp_dataset_relation_count(data);
    int64_t count;
    const vlp_triple *triples = vlp_dataset_triples(data, split, &count);
    if (wanted > 2 * count) wanted = (int)(2 * count);
    for (uint64_t i = 0; group->examples < wanted; i++) {
        int64_t at = (int64_t)(draw(seed, i) % (uint64_t)(2 * count));
        bool again = false;
        for (int j = 0; j < group->examples; j++) again = again || group->places[j] == at;
        if (again) continue;
        const vlp_triple *triple = &triples[at % count];
        bool forward = at < count;
        int slot = group->examples++;
        group->places[slot] = at;
        group->queries[slot] = forward ? (vlp_query){triple->head, triple->relation, -1}
                                       : (vlp_query){triple->tail, triple->relation + relations, -1};
        group->truths[slot] = forward ? triple->tail : triple->head;
    }
}

/* Only first answers are explained by paths: that takes many scorings. */
static vlp_status explain_first(report_run *run, const report_group *group,
                                const vlp_predict_options *asked) {
    int32_t first[REPORT_MAX_EXAMPLES];
    if (!(run->info.weights[VLP_PATH] > 0)) return VLP_OK;
    for (int i = 0; i < group->examples; i++) {
        const vlp_answers *answers = vlp_predictions_get(run->answers, i);
        first[i] = answers->prediction_count > 0 ? answers->predictions[0].entity : group->truths[i];
    }
    vlp_predict_options asking = *asked;
    asking.paths = 3;
    return vlp_run_explain(&run->explained, run->run, group->queries, first, group->examples, &asking);
}

static vlp_status answer_examples(report *page, const chosen_options *chosen, uint64_t seed) {
    vlp_predict_options asking = VLP_PREDICT_OPTIONS_INIT;
    asking.count = REPORT_ANSWERS;
    asking.explain = true;
    asking.paths = 0;
    /* Held-out answers must not be filtered. */
    asking.filter = 1u << VLP_TRAIN | (chosen->split == VLP_TEST ? 1u << VLP_VALID : 0);
    asking.observer = chosen->run.observer;
    for (int g = 0; g < page->group_count; g++) {
        report_group *group = &page->groups[g];
        choose_examples(group, chosen->split, chosen->examples, seed);
        for (int i = 0; i < group->count && group->examples > 0; i++) {
            vlp_status status = vlp_run_predict(&group->runs[i]->answers, group->runs[i]->run,
                                                group->queries, group->examples, &asking);
            if (status == VLP_OK) status = explain_first(group->runs[i], group, &asking);
            if (status != VLP_OK) return status;
        }
    }
    return VLP_OK;
}

static void page_free(report *page) {
    for (int i = 0; i < page->count; i++) {
        vlp_predictions_free(page->runs[i].answers);
        vlp_predictions_free(page->runs[i].explained);
        vlp_history_free(page->runs[i].history);
        vlp_evaluation_free(page->runs[i].evaluation);
        vlp_run_free(page->runs[i].run);
    }
    free(page);
}

/* ---- The page ------------------------------------------------------------------------------------ */

static void write_title(html_out *out, const report *page) {
    if (page->title) {
        html_text(out, page->title);
        return;
    }
    for (int i = 0; i < page->count; i++) {
        html_put(out, i == 0 ? "" : i + 1 == page->count ? " and " : ", ");
        html_text(out, page->runs[i].name);
    }
}

static void write_head(html_out *out, const report *page) {
    html_put(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "style-src 'unsafe-inline'; img-src data:\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
                  "content=\"vlp ");
    html_text(out, vlp_version());
    html_put(out, "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
    write_title(out, page);
    html_put(out, "</title>\n<style>\n");
    html_put(out, report_style);
    html_put(out, "</style>\n</head>\n<body>\n<header>\n<h1><bdi>");
    write_title(out, page);
    html_put(out, "</bdi></h1>\n<p class=\"soft\">Prediction of missing triples: ");
    html_print(out, "%s on %s", cli_things(page->count, "run"),
               cli_things(page->group_count, "data set"));
    html_put(out, ". Written by vlp ");
    html_text(out, vlp_version());
    html_put(out, ".</p>\n</header>\n<nav aria-label=\"Sections\"><ul>"
                  "<li><a href=\"#summary\">Summary</a></li><li><a href=\"#results\">Results</a></li>"
                  "<li><a href=\"#training\">Training</a></li>"
                  "<li><a href=\"#breakdowns\">Breakdowns</a></li>"
                  "<li><a href=\"#calibration\">Calibration</a></li>");
    if (page->groups[0].examples > 0) html_put(out, "<li><a href=\"#examples\">Examples</a></li>");
    html_put(out, "<li><a href=\"#setup\">Data and settings</a></li>"
                  "<li><a href=\"#words\">Words</a></li></ul></nav>\n<main>\n");
}

static void write_words(html_out *out) {
    html_put(
        out,
        "<section id=\"words\"><h2>Words</h2>\n<dl>"
        "<dt>MRR</dt><dd>mean reciprocal rank of the correct answer; 1 is "
        "best</dd>"
        "<dt>H@k</dt><dd>share of queries whose correct answer ranks among the first k</dd>"
        "<dt>MR, AMRI</dt><dd>mean rank, and the same on a scale where 0 is guessing and 1 is "
        "perfect</dd>"
        "<dt>f<sub>g</sub></dt><dd>the horizontal score, by the embeddings</dd>"
        "<dt>f<sub>c</sub></dt><dd>the vertical score, by the vertical aggregator from references</dd>"
        "<dt>f<sub>p</sub></dt><dd>the path score, by the path model from chains of known triples</dd>"
        "<dt>filtered rank</dt><dd>1 + the number of candidates with a higher score, without the other "
        "known answers of the query; equal scores share the mean of their ranks</dd>"
        "<dt>reference</dt><dd>a known triple of the query's relation whose entity is near that of the "
        "query</dd>"
        "<dt>contribution</dt><dd>the score with all references minus the score without this one</dd>"
        "</dl>\n</section>\n");
}

static void write_page(html_out *out, const report *page) {
    write_head(out, page);
    report_summary(out, page);
    report_results(out, page);
    report_curves(out, page);
    report_breakdowns(out, page);
    report_calibration(out, page);
    if (page->groups[0].examples > 0) report_examples(out, page);
    report_setup(out, page);
    write_words(out);
    html_put(out, "</main>\n<footer><p>This page is self-contained and loads nothing.</p></footer>\n"
                  "</body>\n</html>\n");
}

static void print_done(const cli_common *common, const report *page, const char *file, int64_t bytes) {
    if (common->json) {
        json_out json = json_start(stdout);
        json_object(&json, NULL);
        json_string(&json, "file", file);
        json_integer(&json, "runs", page->count);
        json_integer(&json, "examples", page->groups[0].examples);
        json_integer(&json, "bytes", bytes);
        json_end_object(&json);
        putchar('\n');
        return;
    }
    printf("%s: %s, %s, %s bytes\n", text_shown(file), cli_things(page->count, "run"),
           cli_things(page->groups[0].examples, "example"), cli_count(bytes));
}

static int write_file(const report *page, const char *path, const cli_common *common) {
    output_file file;
    int64_t bytes;
    if (!output_open(&file, path)) return EXIT_FAILED;
    html_out out = {file.stream};
    write_page(&out, page);
    if (!output_commit(&file, &bytes)) return EXIT_FAILED;
    print_done(common, page, path, bytes);
    return cli_finish();
}

int cmd_report(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp report",
        "RUN... -o FILE.html",
        "Evaluate runs and write one page about them: results with intervals, curves, breakdowns, "
        "calibration, examples with their references.\v"
        "The page needs no other file and no network. Up to 8 runs are shown side by side; those on "
        "the same data set are compared with the first of them, query by query.",
        options,
        parse,
        1,
        REPORT_MAX_RUNS};
    chosen_options chosen = {.split = VLP_TEST, .examples = 6, .run = VLP_RUN_OPTIONS_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (!chosen.output) {
        fprintf(stderr, "vlp report: -o FILE.html names the page to write; it is required\n");
        return EXIT_USAGE;
    }
    chosen.run.threads = line.common.threads;
    chosen.run.observer = cli_observer(&line.common);
    if (!output_check(chosen.output)) return EXIT_FAILED;
    report *page = calloc(1, sizeof *page);
    if (!page) {
        fprintf(stderr, "vlp: out of memory\n");
        return EXIT_FAILED;
    }
    vlp_status status = VLP_OK;
    int code = EXIT_FAILED;
    page->count = line.count;
    page->title = chosen.title;
    page->split = chosen.split;
    page->seed = line.common.seed;
    name_runs(page, line.arguments);
    for (int i = 0; i < page->count && status == VLP_OK; i++) {
        page->runs[i].number = i;
        status = collect_run(page, &page->runs[i], line.arguments[i], &chosen);
    }
    if (status == VLP_OK) status = answer_examples(page, &chosen, page->seed);
    if (status != VLP_OK) {
        code = cli_fail_next(status, chosen.run.device, NULL);
    } else {
        cli_observer_end();
        code = write_file(page, chosen.output, &line.common);
    }
    page_free(page);
    return code;
}
