/* The parts of a report: the data of the runs, and the sections of the page. */
#ifndef VLP_CLI_REPORT_H
#define VLP_CLI_REPORT_H

#include "html.h"
#include "vlp.h"

enum { REPORT_MAX_RUNS = 8, REPORT_ANSWERS = 5, REPORT_MAX_EXAMPLES = 50 };

/* A run and its results. */
typedef struct report_run {
    const char *name; /* for display */
    int number;       /* 0, 1, ...: selects the colour */
    int group;        /* shared by runs on the same data */
    vlp_run *run;
    vlp_run_info info;
    const vlp_dataset *data;
    vlp_evaluation *evaluation;
    vlp_history *history;
    vlp_calibration calibration;
    bool calibrated;
    vlp_interval over_first;      /* MRR difference to the first run of the group, paired */
    vlp_interval over_horizontal; /* MRR of f minus that of f_g, paired */
    vlp_predictions *answers;     /* of the examples of the group */
    vlp_predictions *explained;   /* their first answers with paths; NULL without a path model */
} report_run;

/* Runs on the same data. */
typedef struct report_group {
    report_run *runs[REPORT_MAX_RUNS]; /* at least one */
    int count;
    vlp_query queries[REPORT_MAX_EXAMPLES]; /* of the examples */
    int32_t truths[REPORT_MAX_EXAMPLES];    /* their answers */
    int64_t places[REPORT_MAX_EXAMPLES];    /* their indices among all queries */
    int examples;
} report_group;

typedef struct report {
    const char *title; /* NULL: the names of the runs */
    report_run runs[REPORT_MAX_RUNS];
    int count;
    report_group groups[REPORT_MAX_RUNS];
    int group_count;
    vlp_split split;
    uint64_t seed; /* of the sample of examples */
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
/* A rank, which is a multiple of one half: "58,408.5". */
void report_rank(html_out *out, double rank);
/* The last part of a path. */
const char *report_base_name(const char *path);
/* The names of the runs with their colours. */
void report_legend(html_out *out, report_run *const *runs, int count);
/* Begins and ends a table that scrolls on a narrow page. `label` is trusted markup. */
void report_table_begin(html_out *out, const char *label);
void report_table_end(html_out *out);
/* Begins and ends a section that is folded on screen and open in print. `summary` is trusted markup. */
void report_fold_begin(html_out *out, const char *summary);
void report_fold_end(html_out *out);
/* A cell with a number from 0 to 1 and a bar of that length, in the colour of a run. */
void report_bar_cell(html_out *out, double value, int colour);
/* The paths of an answer, and the known triples it rests on: the first prediction. */
void report_paths(html_out *out, const vlp_dataset *data, const vlp_answers *answers);
/* The reference graph of an answer: the entity of the query, references by distance, their answers. */
void report_graph(html_out *out, const vlp_dataset *data, const vlp_answers *answers);

/* ---- Charts ---- */
typedef struct chart_point {
    double x, y;   /* skipped if not finite */
    double weight; /* of its dot, 0 to 1 */
} chart_point;
typedef struct chart_series {
    const chart_point *points;
    int64_t count;
    int colour;
    const char *label; /* the label at its end, or NULL */
} chart_series;
typedef struct chart {
    const char *title, *x_title, *y_title; /* trusted markup */
    bool unit;                             /* both axes from 0 to 1, with the diagonal */
    bool weighted;                         /* dots have a size */
} chart;
void chart_lines(html_out *out, const chart *plot, const chart_series *series, int count);

/* A row of a plot of values with intervals. */
typedef struct chart_mark {
    double value;
    char shape; /* 'o' f, 's' f_g, 't' f_c, 'x' vote, '+' frequency */
} chart_mark;
typedef struct chart_row {
    const char *label; /* untrusted */
    int colour;
    vlp_interval interval; /* of the first mark */
    chart_mark marks[3 + VLP_COMPONENTS];
    int count;
} chart_row;
void chart_marks(html_out *out, const char *title, const chart_row *rows, int count);
/* A single mark of such a plot, for a legend. */
void chart_symbol(html_out *out, char shape, int colour);
/* A cell with an interval on an axis through zero; all cells of a column share `reach`. */
void chart_difference(html_out *out, vlp_interval interval, double reach, int colour);

#endif
