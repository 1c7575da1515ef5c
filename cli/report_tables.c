/* The summary and the results of a report, and elements shared by all sections. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "component.h"
#include "report.h"

/* ---- Pieces -------------------------------------------------------------------------------------- */

const char *report_split_name(vlp_split split) {
    return split == VLP_VALID ? "valid" : "test";
}

const char *report_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *report_entity_text(const vlp_dataset *data, int32_t entity) {
    const char *label = vlp_dataset_entity_label(data, entity);
    return label ? label : vlp_dataset_entity_name(data, entity);
}

void report_entity(html_out *out, const vlp_dataset *data, int32_t entity) {
    const char *label = vlp_dataset_entity_label(data, entity);
    const char *name = vlp_dataset_entity_name(data, entity);
    html_name(out, label ? label : name);
    if (!label || strcmp(label, name) == 0) return;
    html_put(out, " <span class=\"soft mono\">");
    html_name(out, name);
    html_put(out, "</span>");
}

void report_rank(html_out *out, double rank) {
    html_put(out, cli_count((int64_t)rank));
    if (rank > floor(rank)) html_put(out, ".5");
}

void report_legend(html_out *out, report_run *const *runs, int count) {
    html_put(out, "<ul class=\"legend\">");
    for (int i = 0; i < count; i++) {
        html_print(out,
                   "<li><svg width=\"34\" height=\"10\" viewBox=\"0 0 34 10\" aria-hidden=\"true\">"
                   "<line class=\"series s%d d%d\" x1=\"1\" x2=\"33\" y1=\"5\" y2=\"5\"/></svg>",
                   runs[i]->number, runs[i]->number);
        html_name(out, runs[i]->name);
        html_put(out, "</li>");
    }
    html_put(out, "</ul>\n");
}

void report_table_begin(html_out *out, const char *label) {
    html_put(out, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
    html_put(out, label);
    html_put(out, "\"><table>\n");
}

void report_table_end(html_out *out) {
    html_put(out, "</table></div>\n");
}

void report_fold_begin(html_out *out, const char *summary) {
    html_put(out, "<details><summary>");
    html_put(out, summary);
    html_put(out, "</summary></details>\n<div class=\"folded\">\n");
}

void report_fold_end(html_out *out) {
    html_put(out, "</div>\n");
}

void report_bar_cell(html_out *out, double value, int colour) {
    html_put(out, "<td>");
    if (isfinite(value))
        html_print(out,
                   "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\"><rect class=\"track\" width=\"100\" height=\"10\"/>"
                   "<rect class=\"f%d\" width=\"%.1f\" height=\"10\"/></svg>",
                   colour, 100 * fmax(0, fmin(1, value)));
    html_number(out, value, 4);
    html_put(out, "</td>");
}

static void number_cell(html_out *out, double value, int digits) {
    html_put(out, "<td>");
    html_number(out, value, digits);
    html_put(out, "</td>");
}

static void interval_text(html_out *out, vlp_interval interval, bool with_sign) {
    if (with_sign) {
        html_signed(out, interval.low, 4);
        html_put(out, " to ");
        html_signed(out, interval.high, 4);
    } else {
        html_print(out, "%.4f to %.4f", interval.low, interval.high);
    }
}

/* ---- Summary ------------------------------------------------------------------------------------- */

static const char *verdict(vlp_interval interval) {
    return interval.low > 0    ? "<span class=\"good\">better</span>"
           : interval.high < 0 ? "<span class=\"bad\">worse</span>"
                               : "no significant difference";
}

static void tile(html_out *out, const char *name, double value, int digits, const char *unit) {
    html_put(out, "<li><b>");
    html_number(out, value, digits);
    html_put(out, unit);
    html_put(out, "</b><span>");
    html_put(out, name);
    html_put(out, "</span>");
}

/* Whether f = f_g: no other component has a weight. */
static bool embeddings_alone(const vlp_evaluation *evaluation) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (component_has(evaluation->components, c) && c != VLP_HORIZONTAL &&
            evaluation->weights[c] > 0)
            return false;
    return component_has(evaluation->components, VLP_HORIZONTAL);
}

static void tiles(html_out *out, const report_run *run) {
    const vlp_evaluation *evaluation = run->evaluation;
    html_put(out, "<ul class=\"tiles\">\n");
    tile(out, "MRR, 95% interval ", evaluation->both.mrr, 4, "");
    html_put(out, "<span>");
    interval_text(out, evaluation->interval, false);
    html_put(out, "</span></li>\n");
    tile(out, "Hits@1", 100 * evaluation->both.hits1, 1, "&nbsp;%");
    html_put(out, "</li>\n");
    tile(out, "Hits@10", 100 * evaluation->both.hits10, 1, "&nbsp;%");
    html_put(out, "</li>\n<li><b>");
    if (embeddings_alone(evaluation)) {
        html_put(out, "f = f<sub>g</sub></b><span>");
        html_put(out, evaluation->components == 1u << VLP_HORIZONTAL
                          ? "the run has embeddings alone"
                          : "references unused: f<sub>g</sub> alone had the best validation MRR");
        html_put(out, "</span></li>\n</ul>\n");
        return;
    }
    if (!component_has(evaluation->components, VLP_HORIZONTAL)) {
        char formula[96];
        component_formula(formula, sizeof formula, evaluation->components, evaluation->weights, true);
        html_put(out, formula);
        html_put(out, "</b><span>the run has no embeddings</span></li>\n</ul>\n");
        return;
    }
    html_signed(out, run->over_horizontal.middle, 4);
    html_put(out, "</b><span>MRR gain over f<sub>g</sub> alone, paired ");
    interval_text(out, run->over_horizontal, true);
    html_put(out, "</span></li>\n</ul>\n");
}

/* `text` is markup. */
static void legend_item(html_out *out, char shape, const char *text) {
    html_put(out, "<li>");
    chart_symbol(out, shape, 4);
    html_put(out, text);
    html_put(out, "</li>");
}

static void mark_plot(html_out *out, report_run *const *runs, int count) {
    chart_row rows[REPORT_MAX_RUNS];
    for (int i = 0; i < count; i++) {
        const vlp_evaluation *evaluation = runs[i]->evaluation;
        chart_row *row = &rows[i];
        *row = (chart_row){.label = runs[i]->name,
                           .colour = runs[i]->number,
                           .interval = evaluation->interval,
                           .marks = {{evaluation->both.mrr, 'o'}},
                           .count = 1};
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            bool there = component_has(evaluation->components, c);
            row->marks[row->count++] =
                (chart_mark){there ? evaluation->alone[c].mrr : (double)NAN, component_words_of[c].mark};
        }
        row->marks[row->count++] = (chart_mark){evaluation->vote.mrr, 'x'};
        row->marks[row->count++] = (chart_mark){evaluation->frequency.mrr, '+'};
    }
    chart_marks(out, "MRR of each run with its 95% interval, its components and the baselines", rows,
                count);
    html_put(out, "<ul class=\"legend\">");
    legend_item(out, 'o', "f, with its 95% interval");
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        char text[64];
        snprintf(text, sizeof text, "%s alone", component_words_of[c].html);
        legend_item(out, component_words_of[c].mark, text);
    }
    legend_item(out, 'x', "vote of the references");
    legend_item(out, '+', "most frequent answers");
    html_put(out, "</ul>\n");
}

static void comparison_row(html_out *out, const report_run *run, const report_run *first, double reach) {
    const vlp_evaluation *evaluation = run->evaluation;
    html_put(out, "<tr><th scope=\"row\">");
    html_name(out, run->name);
    html_put(out, "</th>");
    report_bar_cell(out, evaluation->both.mrr, run->number);
    html_put(out, "<td>");
    interval_text(out, evaluation->interval, false);
    html_put(out, "</td>");
    if (run == first) {
        html_put(out,
                 "<td colspan=\"4\" class=\"left soft\">the others are compared with this one</td>");
    } else {
        html_put(out, "<td>");
        html_signed(out, run->over_first.middle, 4);
        html_put(out, "</td><td>");
        interval_text(out, run->over_first, true);
        html_put(out, "</td><td>");
        chart_difference(out, run->over_first, reach, run->number);
        html_put(out, "</td><td class=\"tight\">");
        html_put(out, verdict(run->over_first));
        html_put(out, "</td>");
    }
    number_cell(out, evaluation->both.hits10, 4);
    html_put(out, "</tr>\n");
}

static void comparison(html_out *out, const report_group *group) {
    double reach = 0;
    for (int i = 1; i < group->count; i++)
        reach = fmax(reach, fmax(fabs(group->runs[i]->over_first.low), group->runs[i]->over_first.high));
    report_table_begin(out, "Runs side by side");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">run</th><th scope=\"col\">MRR</th>"
                  "<th scope=\"col\">95% interval</th><th scope=\"col\">minus ");
    html_name(out, group->runs[0]->name);
    html_put(out, "</th><th scope=\"col\">95%, paired</th><th scope=\"col\">worse | better</th>"
                  "<th scope=\"col\">result</th><th scope=\"col\">H@10</th></tr></thead><tbody>\n");
    for (int i = 0; i < group->count; i++) comparison_row(out, group->runs[i], group->runs[0], reach);
    html_put(out, "</tbody>");
    report_table_end(out);
    html_put(out,
             "<p class=\"soft small\">Paired: both runs rank the same queries; the interval is that of "
             "the difference, by a bootstrap of 1,000 samples of the triples. If it contains 0, the "
             "difference is not significant.</p>\n");
}

static void group_title(html_out *out, const report_group *group) {
    html_put(out, "<h3>");
    html_name(out, report_base_name(group->runs[0]->info.data));
    html_put(out, "</h3>\n");
}

void report_summary(html_out *out, const report *page) {
    html_put(out, "<section id=\"summary\"><h2>Summary</h2>\n");
    if (page->group_count > 1)
        html_put(
            out,
            "<p>These runs are on different data sets: their results are not comparable, and there are "
            "no paired intervals between them. Runs on the same data set are compared below its "
            "name.</p>\n");
    for (int i = 0; i < page->group_count; i++) {
        const report_group *group = &page->groups[i];
        const report_run *first = group->runs[0];
        if (page->group_count > 1) group_title(out, group);
        html_print(out, "<p>%s of the split <i>%s</i>, two queries each: ",
                   cli_things(first->evaluation->queries / 2, "triple"), report_split_name(page->split));
        html_print(out, "%s, %s as candidates, known answers filtered.</p>\n",
                   cli_things(first->evaluation->queries, "query"),
                   cli_things(vlp_dataset_entity_count(first->data), "entity"));
        if (group->count == 1)
            tiles(out, first);
        else
            comparison(out, group);
        mark_plot(out, group->runs, group->count);
    }
    html_put(out, "</section>\n");
}

/* ---- Results ------------------------------------------------------------------------------------- */

static void metrics_row(html_out *out, const char *name, const vlp_metrics *metrics, bool main,
                        int colour) {
    html_put(out, main ? "<tr class=\"main\"><th scope=\"row\">" : "<tr><th scope=\"row\">");
    html_put(out, name);
    html_print(out, "</th><td>%s</td>", cli_count(metrics->queries));
    report_bar_cell(out, metrics->mrr, colour);
    number_cell(out, metrics->mr, 1);
    number_cell(out, metrics->amri, 4);
    number_cell(out, metrics->hits1, 4);
    number_cell(out, metrics->hits3, 4);
    number_cell(out, metrics->hits10, 4);
    html_put(out, "</tr>\n");
}

static void run_rows(html_out *out, const report_run *run) {
    const vlp_evaluation *evaluation = run->evaluation;
    char name[96];
    html_put(out, "<tbody>\n<tr><th class=\"group\" colspan=\"8\" scope=\"rowgroup\">");
    html_name(out, run->name);
    html_put(out, "</th></tr>\n");
    component_formula(name, sizeof name, evaluation->components, evaluation->weights, true);
    metrics_row(out, name, &evaluation->both, true, run->number);
    metrics_row(out, "head entity queries", &evaluation->head, false, run->number);
    metrics_row(out, "tail entity queries", &evaluation->tail, false, run->number);
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!component_has(evaluation->components, c)) continue;
        snprintf(name, sizeof name, "%s alone: %s", component_words_of[c].html,
                 component_words_of[c].means);
        metrics_row(out, name, &evaluation->alone[c], false, run->number);
    }
    metrics_row(out, "baseline: most frequent answers", &evaluation->frequency, false, 4);
    metrics_row(out, "baseline: vote of the references", &evaluation->vote, false, 4);
    html_put(out, "<tr><td class=\"left soft small\" colspan=\"8\">");
    html_print(out,
               "mean MRR over relations %.4f; optimistic %.4f, pessimistic %.4f; "
               "95%% interval %.4f to %.4f",
               evaluation->macro_mrr, evaluation->optimistic.mrr, evaluation->pessimistic.mrr,
               evaluation->interval.low, evaluation->interval.high);
    html_put(out, "</td></tr>\n</tbody>\n");
}

void report_results(html_out *out, const report *page) {
    html_put(out, "<section id=\"results\"><h2>Results</h2>\n");
    html_print(
        out,
        "<p>Ranks on <i>%s</i> are filtered and realistic: other known answers of the query do not "
        "compete, and equal scores share the mean of their ranks. The weights of the components in f "
        "were chosen on the validation split. The baselines are not trained: the most frequent answers "
        "of the relation in the training split, and the answers of the references by frequency.</p>\n",
        report_split_name(page->split));
    report_table_begin(out, "Results of each run, its components and the baselines");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">ranked by</th>"
                  "<th scope=\"col\">queries</th><th scope=\"col\">MRR</th><th scope=\"col\">MR</th>"
                  "<th scope=\"col\">AMRI</th><th scope=\"col\">H@1</th><th scope=\"col\">H@3</th>"
                  "<th scope=\"col\">H@10</th></tr></thead>\n");
    for (int i = 0; i < page->count; i++) run_rows(out, &page->runs[i]);
    report_table_end(out);
    html_put(out, "</section>\n");
}
