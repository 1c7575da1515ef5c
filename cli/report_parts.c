/* Breakdowns, calibration, data and settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "component.h"
#include "report.h"

/* ---- Breakdowns ---------------------------------------------------------------------------------- */

typedef enum breakdown { BY_DISTANCE, BY_MAPPING, BY_SIDE, BY_RELATION } breakdown;

static const vlp_groups *groups_of(const report_run *run, breakdown by) {
    const vlp_evaluation *evaluation = run->evaluation;
    switch (by) {
    case BY_DISTANCE:
        return &evaluation->by_distance;
    case BY_MAPPING:
        return &evaluation->by_mapping;
    case BY_SIDE:
        return &evaluation->by_side;
    default:
        return &evaluation->by_relation;
    }
}

static void value_text(html_out *out, const vlp_dataset *data, breakdown by, int32_t value) {
    static const char *const mappings[] = {"1-1", "1-N", "N-1", "N-N"};
    if (by == BY_RELATION)
        html_name(out, cli_relation(data, value));
    else if (by == BY_SIDE)
        html_put(out, value ? "tail entity queries" : "head entity queries");
    else if (by == BY_MAPPING)
        html_put(out, mappings[value]);
    else if (value < 0)
        html_put(out, "no path");
    else
        html_print(out, "%d hop%s", value, value == 1 ? "" : "s");
}

/* Relations by number of queries, other groups in their order. */
static int compare_groups(const void *left, const void *right) {
    const vlp_group *a = *(const vlp_group *const *)left, *b = *(const vlp_group *const *)right;
    if (a->metrics.queries != b->metrics.queries)
        return a->metrics.queries < b->metrics.queries ? 1 : -1;
    return (a->value > b->value) - (a->value < b->value);
}

static const vlp_metrics *find_group(const vlp_groups *groups, int32_t value) {
    for (int64_t i = 0; i < groups->count; i++)
        if (groups->items[i].value == value) return &groups->items[i].metrics;
    return NULL;
}

static void breakdown_row(html_out *out, const report_group *group, breakdown by,
                          const vlp_group *item) {
    const report_run *first = group->runs[0];
    html_put(out, "<tr><th scope=\"row\">");
    value_text(out, first->data, by, item->value);
    html_print(out, "</th><td>%s</td><td>%.1f&nbsp;%%</td>", cli_count(item->metrics.queries),
               100 * (double)item->metrics.queries / (double)first->evaluation->queries);
    for (int i = 0; i < group->count; i++) {
        const vlp_metrics *metrics = find_group(groups_of(group->runs[i], by), item->value);
        report_bar_cell(out, metrics ? metrics->mrr : (double)NAN, group->runs[i]->number);
        html_put(out, "<td>");
        if (group->count == 1) {
            html_number(out, metrics ? metrics->mr : (double)NAN, 1);
            html_put(out, "</td><td>");
            html_number(out, metrics ? metrics->hits1 : (double)NAN, 4);
            html_put(out, "</td><td>");
        }
        html_number(out, metrics ? metrics->hits10 : (double)NAN, 4);
        html_put(out, "</td>");
    }
    html_put(out, "</tr>\n");
}

static void breakdown_head(html_out *out, const report_group *group, const char *what) {
    html_put(out, "<thead>");
    if (group->count > 1) {
        html_put(out, "<tr><th class=\"left\" rowspan=\"2\" scope=\"col\">");
        html_put(out, what);
        html_put(out, "</th><th rowspan=\"2\" scope=\"col\">queries</th>"
                      "<th rowspan=\"2\" scope=\"col\">share</th>");
        for (int i = 0; i < group->count; i++) {
            html_put(out, "<th colspan=\"2\" scope=\"colgroup\">");
            html_name(out, group->runs[i]->name);
            html_put(out, "</th>");
        }
        html_put(out, "</tr><tr>");
        for (int i = 0; i < group->count; i++)
            html_put(out, "<th scope=\"col\">MRR</th><th scope=\"col\">H@10</th>");
    } else {
        html_put(out, "<tr><th class=\"left\" scope=\"col\">");
        html_put(out, what);
        html_put(out, "</th><th scope=\"col\">queries</th><th scope=\"col\">share</th>"
                      "<th scope=\"col\">MRR</th><th scope=\"col\">MR</th><th scope=\"col\">H@1</th>"
                      "<th scope=\"col\">H@10</th>");
    }
    html_put(out, "</tr></thead><tbody>\n");
}

enum { MAX_OPEN_ROWS = 40 };

static void breakdown_table(html_out *out, const report_group *group, breakdown by, const char *what) {
    const vlp_groups *groups = groups_of(group->runs[0], by);
    const vlp_group **order = calloc((size_t)groups->count + 1, sizeof *order);
    if (!order) return;
    for (int64_t i = 0; i < groups->count; i++) order[i] = &groups->items[i];
    if (by == BY_RELATION) qsort(order, (size_t)groups->count, sizeof *order, compare_groups);
    bool fold = groups->count > MAX_OPEN_ROWS;
    if (fold) {
        char summary[96];
        snprintf(summary, sizeof summary, "All %s rows, by number of queries", cli_count(groups->count));
        report_fold_begin(out, summary);
    }
    report_table_begin(out, what);
    breakdown_head(out, group, what);
    for (int64_t i = 0; i < groups->count; i++) breakdown_row(out, group, by, order[i]);
    html_put(out, "</tbody>");
    report_table_end(out);
    if (fold) report_fold_end(out);
    free(order);
}

/* A breakdown of every group of runs. */
static void breakdown_part(html_out *out, const report *page, breakdown by) {
    static const struct {
        const char *title, *what, *help;
    } words[] = {
        [BY_DISTANCE] = {"By distance", "distance",
                         "Undirected hops between the entity of the query and its answer over all "
                         "relations of the training split. Scores do not use this distance."},
        [BY_MAPPING] = {"By mapping", "mapping",
                        "Whether a head entity of the relation has many tail entities (1-N), a tail "
                        "entity many head entities (N-1), both or neither: many is an average of at "
                        "least 1.5 in the training split."},
        [BY_SIDE] = {"By side", "side", "The entity of the triple to predict."},
        [BY_RELATION] = {"By relation", "relation", "Queries in both directions."}};
    html_put(out, "<h3>");
    html_put(out, words[by].title);
    html_put(out, "</h3>\n<p class=\"soft small\">");
    html_put(out, words[by].help);
    html_put(out, "</p>\n");
    for (int i = 0; i < page->group_count; i++) {
        if (page->group_count > 1) {
            html_put(out, "<h4>");
            html_name(out, report_base_name(page->groups[i].runs[0]->info.data));
            html_put(out, "</h4>\n");
        }
        breakdown_table(out, &page->groups[i], by, words[by].what);
    }
}

/* Relations beside the other breakdowns, where the tables of the runs leave space for it. */
void report_breakdowns(html_out *out, const report *page) {
    enum { MAX_BESIDE = 2 };
    html_put(out, "<section id=\"breakdowns\"><h2>Breakdowns</h2>\n");
    html_put(out, page->count <= MAX_BESIDE ? "<div class=\"columns\"><div>\n" : "<div><div>\n");
    breakdown_part(out, page, BY_DISTANCE);
    breakdown_part(out, page, BY_MAPPING);
    breakdown_part(out, page, BY_SIDE);
    html_put(out, "</div><div>\n");
    breakdown_part(out, page, BY_RELATION);
    html_put(out, "</div></div></section>\n");
}

/* ---- Calibration --------------------------------------------------------------------------------- */

static void calibration_table(html_out *out, const report_run *run) {
    const vlp_calibration *calibration = &run->calibration;
    html_put(out, "<h3>");
    html_name(out, run->name);
    html_put(out, "</h3>\n");
    html_print(out,
               "<p class=\"small\">%s true triples and %s corruptions; Brier score %.4f (constant 1/2: "
               "0.25), log loss %.4f (0.6931).</p>\n",
               cli_count(calibration->positives), cli_count(calibration->negatives), calibration->brier,
               calibration->log_loss);
    report_table_begin(out, "Calibration");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">predicted probability</th>"
                  "<th scope=\"col\">triples</th><th scope=\"col\">mean predicted</th>"
                  "<th scope=\"col\">observed share</th></tr></thead><tbody>\n");
    for (int i = 0; i < VLP_CALIBRATION_BINS; i++) {
        const vlp_calibration_bin *bin = &calibration->bins[i];
        if (bin->triples == 0) continue;
        html_print(out,
                   "<tr><th scope=\"row\">%.1f to %.1f</th><td>%s</td><td>%.3f</td><td>%.3f</td></tr>\n",
                   (double)i / VLP_CALIBRATION_BINS, (double)(i + 1) / VLP_CALIBRATION_BINS,
                   cli_count(bin->triples), bin->predicted, bin->observed);
    }
    html_put(out, "</tbody>");
    report_table_end(out);
}

void report_calibration(html_out *out, const report *page) {
    chart_series series[REPORT_MAX_RUNS] = {0};
    chart_point points[REPORT_MAX_RUNS][VLP_CALIBRATION_BINS];
    report_run *shown[REPORT_MAX_RUNS];
    int used = 0;
    for (int i = 0; i < page->count; i++) {
        const report_run *run = &page->runs[i];
        if (!run->calibrated) continue;
        for (int j = 0; j < VLP_CALIBRATION_BINS; j++) {
            const vlp_calibration_bin *bin = &run->calibration.bins[j];
            points[used][j] = (chart_point){bin->predicted, bin->observed, bin->weight};
        }
        shown[used] = (report_run *)(uintptr_t)run;
        series[used] = (chart_series){points[used], VLP_CALIBRATION_BINS, run->number, NULL};
        used++;
    }
    html_put(out, "<section id=\"calibration\"><h2>Calibration</h2>\n<div class=\"columns\"><div>\n");
    html_put(out,
             "<p>Of triples with a predicted probability of 0.8, 80% should be true. Triples of the "
             "validation split are compared with as many corruptions, half of them with an entity "
             "that occurs with the relation in that position; each half is evaluated with "
             "probabilities fitted on the other. Calibrated probabilities are on the diagonal; the "
             "size of a dot shows the number of triples.</p>\n");
    if (used == 0) {
        html_put(
            out,
            "<p class=\"soft\">No run has valid triples to calibrate on.</p></div></div></section>\n");
        return;
    }
    if (used > 1) report_legend(out, shown, used);
    report_fold_begin(out, "Calibration as tables");
    for (int i = 0; i < used; i++) calibration_table(out, shown[i]);
    report_fold_end(out);
    html_put(out, "</div><div>\n");
    chart_lines(out,
                &(chart){"Predicted probability and observed share", "predicted probability",
                         "observed share", true, true},
                series, used);
    html_put(out, "</div></div></section>\n");
}

/* ---- Data and settings --------------------------------------------------------------------------- */

static void data_rows(html_out *out, const report *page) {
    report_table_begin(out, "Data sets");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">data set</th>"
                  "<th scope=\"col\">entities</th><th scope=\"col\">relations</th>"
                  "<th scope=\"col\">train</th><th scope=\"col\">valid</th><th scope=\"col\">test</th>"
                  "<th class=\"left\" scope=\"col\">checksum of names and triples</th></tr></thead>"
                  "<tbody>\n");
    for (int i = 0; i < page->group_count; i++) {
        const report_run *run = page->groups[i].runs[0];
        int64_t counts[VLP_SPLITS];
        for (int split = 0; split < VLP_SPLITS; split++)
            (void)vlp_dataset_triples(run->data, (vlp_split)split, &counts[split]);
        html_put(out, "<tr><th scope=\"row\">");
        html_name(out, report_base_name(run->info.data));
        html_print(out, "</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td>",
                   cli_count(vlp_dataset_entity_count(run->data)),
                   cli_count(vlp_dataset_relation_count(run->data)), cli_count(counts[VLP_TRAIN]),
                   cli_count(counts[VLP_VALID]), cli_count(counts[VLP_TEST]));
        html_put(out, "<td class=\"left mono\">");
        html_text(out, vlp_run_checksum(run->run));
        html_put(out, "</td></tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
}

/* The values of a setting in all runs. False after the last setting. */
typedef struct setting_row {
    vlp_setting_info info;
    char values[REPORT_MAX_RUNS][64];
    bool differs; /* differs from its default, or between runs */
} setting_row;

static bool read_setting(setting_row *row, const report *page, int32_t index) {
    if (!vlp_setting_describe(&row->info, index)) return false;
    row->differs = false;
    for (int i = 0; i < page->count; i++) {
        if (!vlp_run_setting(row->values[i], page->runs[i].run, index)) return false;
        row->differs = row->differs || strcmp(row->values[i], row->info.fallback) != 0 ||
                       strcmp(row->values[i], row->values[0]) != 0;
    }
    return true;
}

static void settings_table(html_out *out, const report *page, bool all) {
    report_table_begin(out, "Settings");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">setting</th>");
    for (int i = 0; i < page->count; i++) {
        html_put(out, "<th scope=\"col\">");
        html_name(out, page->runs[i].name);
        html_put(out, "</th>");
    }
    html_put(out, "<th scope=\"col\">default</th><th class=\"left\" scope=\"col\">what it is</th></tr>"
                  "</thead><tbody>\n");
    setting_row row;
    for (int32_t index = 0; read_setting(&row, page, index); index++) {
        /* The number of threads is not a property of the run. */
        if ((!all && !row.differs) || strcmp(row.info.name, "threads") == 0) continue;
        html_put(out, row.differs && all ? "<tr class=\"main\"><th scope=\"row\">"
                                         : "<tr><th scope=\"row\">");
        html_text(out, row.info.name);
        html_put(out, "</th>");
        for (int i = 0; i < page->count; i++) {
            html_put(out, "<td>");
            html_text(out, row.values[i]);
            html_put(out, "</td>");
        }
        html_put(out, "<td class=\"soft\">");
        html_text(out, row.info.fallback);
        html_put(out, "</td><td class=\"left soft\">");
        html_text(out, row.info.help);
        html_put(out, "</td></tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
}

void report_setup(html_out *out, const report *page) {
    html_put(out, "<section id=\"setup\"><h2>Data and settings</h2>\n");
    data_rows(out, page);
    html_put(out, "<h3>Settings other than the defaults</h3>\n");
    settings_table(out, page, false);
    report_fold_begin(out, "Every setting");
    settings_table(out, page, true);
    report_fold_end(out);
    html_put(out, "</section>\n");
}
