/* The parts of a report: what was collected of the runs, and the sections that are written from it. */
#ifndef VLP_CLI_REPORT_H
#define VLP_CLI_REPORT_H

#include "html.h"
#include "vlp.h"

enum { REPORT_MAX_RUNS = 8, REPORT_ANSWERS = 5, REPORT_MAX_EXAMPLES = 50 };

/* A run, with all that is shown of it. */
typedef struct report_run {
    const char *name; /* as shown */
    int number;       /* 0, 1, ...: its colour */
    int group;        /* runs on the same data share it */
    vlp_run *run;
    vlp_run_info info;
    const vlp_dataset *data;
    vlp_evaluation *evaluation;
    vlp_history *history;
    vlp_calibration calibration;
    bool calibrated;
    vlp_interval over_first;      /* MRR less that of the group's first run, paired */
    vlp_interval over_horizontal; /* MRR of f less that of f_g, paired */
    vlp_predictions *answers;     /* to the group's examples */
} report_run;

/* Runs on the same data. */
typedef struct report_group {
    report_run *runs[REPORT_MAX_RUNS]; /* at least one */
    int count;
    vlp_query queries[REPORT_MAX_EXAMPLES]; /* of the examples */
    int32_t truths[REPORT_MAX_EXAMPLES];    /* their answers */
    int64_t places[REPORT_MAX_EXAMPLES];    /* their numbers among all queries */
    int examples;
} report_group;

typedef struct report {
    const char *title; /* NULL: made from the runs */
    report_run runs[REPORT_MAX_RUNS];
    int count;
    report_group groups[REPORT_MAX_RUNS];
    int group_count;
    vlp_split split;
    uint64_t seed; /* of the choice of examples */
} report;

extern const char report_style[]; /* the style sheet */
const char *report_split_name(vlp_split split);

/* ---- Sections ---- */
void report_summary(html_out *out, const report *page);
void report_results(html_out *out, const report *page);
void report_curves(html_out *out, const report *page);
void report_breakdowns(html_out *out, const report *page);
void report_calibration(html_out *out, const report *page);
void report_examples(html_out *out, const report *page);
void report_setup(html_out *out, const report *page);

/* ---- Pieces ---- */
/* "label (name)", or the name alone. */
void report_entity(html_out *out, const vlp_dataset *data, int32_t entity);
/* The label, or the name. */
const char *report_entity_text(const vlp_dataset *data, int32_t entity);
/* The last part of a path. */
const char *report_base_name(const char *path);
/* The names of the runs beside their colours. */
void report_legend(html_out *out, report_run *const *runs, int count);
/* Begins and ends a table that scrolls by itself where the page is narrow. `label` is ours. */
void report_table_begin(html_out *out, const char *label);
void report_table_end(html_out *out);
/* Begins and ends what is folded on the screen and open on paper. `summary` is ours. */
void report_fold_begin(html_out *out, const char *summary);
void report_fold_end(html_out *out);
/* A cell with a number between 0 and 1 and a bar as long as it, in a run's colour. */
void report_bar_cell(html_out *out, double value, int colour);
/* The graph of an answer: the query's entity, its references by distance, their answers. */
void report_graph(html_out *out, const vlp_dataset *data, const vlp_answers *answers);

/* ---- Charts ---- */
typedef struct chart_point {
    double x, y;   /* not finite: left out */
    double weight; /* of its dot, 0 to 1 */
} chart_point;
typedef struct chart_series {
    const chart_point *points;
    int64_t count;
    int colour;
    const char *label; /* at its end; NULL: none */
} chart_series;
typedef struct chart {
    const char *title, *x_title, *y_title; /* ours */
    bool unit;                             /* both axes from 0 to 1, with the diagonal */
    bool weighted;                         /* dots have a size */
} chart;
void chart_lines(html_out *out, const chart *plot, const chart_series *series, int count);

/* A row of a plot of figures with intervals. */
typedef struct chart_mark {
    double value;
    char shape; /* 'o' f, 's' f_g, 't' f_c, 'x' vote, '+' frequency */
} chart_mark;
typedef struct chart_row {
    const char *label; /* anybody's */
    int colour;
    vlp_interval interval; /* of the first mark */
    chart_mark marks[3 + VLP_COMPONENTS];
    int count;
} chart_row;
void chart_marks(html_out *out, const char *title, const chart_row *rows, int count);
/* A mark of such a plot by itself, for a legend. */
void chart_symbol(html_out *out, char shape, int colour);
/* An interval around or beside zero, in a cell; all cells of a column share `reach`. */
void chart_difference(html_out *out, vlp_interval interval, double reach, int colour);

#endif
