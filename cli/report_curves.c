/* The training of the runs: curves of the validation MRR and of the losses, and what was saved. */
#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "component.h"
#include "report.h"

/* A component's loss at a point of the history, or the validation MRR where `component` is -1. A
 * component that is not trained at that step has the loss 0, which is no value. */
static double value_at(const vlp_history_point *point, int component) {
    if (component < 0) return point->valid_mrr;
    return point->losses[component] > 0 ? point->losses[component] : (double)NAN;
}

/* Returns whether there is a curve: a run with two values or more. */
static bool curve(html_out *out, const report *page, const chart *plot, int component) {
    chart_series series[REPORT_MAX_RUNS] = {0};
    chart_point *points[REPORT_MAX_RUNS] = {NULL};
    int used = 0;
    bool found = false;
    for (int i = 0; i < page->count; i++) {
        const report_run *run = &page->runs[i];
        if (component >= 0 && !component_has(run->info.components, component)) continue;
        points[used] = calloc((size_t)run->history->count + 1, sizeof *points[used]);
        if (!points[used]) continue;
        int64_t finite = 0;
        for (int64_t j = 0; j < run->history->count; j++) {
            const vlp_history_point *point = &run->history->items[j];
            points[used][j] = (chart_point){(double)point->step, value_at(point, component), 0};
            finite += isfinite(points[used][j].y);
        }
        found = found || finite > 1;
        series[used] = (chart_series){points[used], run->history->count, run->number,
                                      page->count > 1 ? run->name : NULL};
        used++;
    }
    if (found) chart_lines(out, plot, series, used);
    for (int i = 0; i < used; i++) free(points[i]);
    return found;
}

static void value_cell(html_out *out, double value) {
    html_put(out, "<td>");
    html_number(out, value, 4);
    html_put(out, "</td>");
}

/* The curves of a run as a table, of a long history rows spread over it. */
static void history_table(html_out *out, const report_run *run) {
    enum { MAX_ROWS = 100 };
    const vlp_history *history = run->history;
    report_table_begin(out, "Values of the curves");
    html_put(out, "<caption>");
    html_name(out, run->name);
    html_put(out, "</caption><thead><tr><th scope=\"col\">step</th><th scope=\"col\">validation "
                  "MRR</th>");
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!component_has(run->info.components, c)) continue;
        html_print(out, "<th scope=\"col\">loss of %s</th>", component_words_of[c].html);
    }
    html_put(out, "</tr></thead><tbody>\n");
    int64_t rows = history->count < MAX_ROWS ? history->count : MAX_ROWS;
    for (int64_t i = 1; i <= rows; i++) {
        const vlp_history_point *point = &history->items[i * history->count / rows - 1];
        html_print(out, "<tr><th scope=\"row\">%s</th>", cli_count(point->step));
        value_cell(out, value_at(point, -1));
        for (int c = 0; c < VLP_COMPONENTS; c++)
            if (component_has(run->info.components, c)) value_cell(out, value_at(point, c));
        html_put(out, "</tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
}

/* "complex, dim 100; aggregator; path model". */
static void components_text(html_out *out, const report_run *run) {
    const char *gap = "";
    if (component_has(run->info.components, VLP_HORIZONTAL)) {
        html_text(out, run->info.model);
        html_print(out, ", dim %d", run->info.dim);
        gap = "; ";
    }
    if (component_has(run->info.components, VLP_VERTICAL)) {
        html_put(out, gap);
        html_put(out, "aggregator");
        gap = "; ";
    }
    if (component_has(run->info.components, VLP_PATH)) {
        html_put(out, gap);
        html_put(out, "path model");
    }
}

static void saved_table(html_out *out, const report *page) {
    report_table_begin(out, "Saved weights");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">run</th>"
                  "<th class=\"left\" scope=\"col\">components</th>"
                  "<th scope=\"col\">saved at step</th><th scope=\"col\">validation MRR</th>"
                  "<th scope=\"col\">trained by</th></tr></thead><tbody>\n");
    for (int i = 0; i < page->count; i++) {
        const report_run *run = &page->runs[i];
        html_put(out, "<tr><th scope=\"row\">");
        html_name(out, run->name);
        html_put(out, "</th><td class=\"left\">");
        components_text(out, run);
        html_print(out, "</td><td>%s</td>", cli_count(run->info.step));
        value_cell(out, run->info.valid_mrr);
        html_put(out, "<td>vlp ");
        html_text(out, vlp_run_version(run->run));
        html_put(out, "</td></tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
}

void report_curves(html_out *out, const report *page) {
    report_run *all[REPORT_MAX_RUNS];
    for (int i = 0; i < page->count; i++) all[i] = (report_run *)(uintptr_t)&page->runs[i];
    html_put(out, "<section id=\"training\"><h2>Training</h2>\n");
    html_put(out, "<p>Recorded at every evaluation on the validation split. A loss is that of one step, "
                  "while its component is trained; losses of different settings are not comparable. "
                  "Axes need not begin at 0.</p>\n");
    if (page->count > 1) report_legend(out, all, page->count);
    html_put(out, "<div class=\"charts\">\n");
    bool found = curve(out, page, &(chart){"Validation MRR", "step", "MRR", false, false}, -1);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        found =
            curve(out, page, &(chart){component_words_of[c].curve, "step", "loss", false, false}, c) ||
            found;
    html_put(out, "</div>\n");
    if (!found)
        html_put(out, "<p class=\"soft\">There is no curve: a run was evaluated at most once while it "
                      "trained (setting <code>eval_every</code>).</p>\n");
    saved_table(out, page);
    report_fold_begin(out, "The curves as tables");
    for (int i = 0; i < page->count; i++) history_table(out, all[i]);
    report_fold_end(out);
    html_put(out, "</section>\n");
}
