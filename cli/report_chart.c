/* Charts as inline SVG. Coordinates refer to a fixed view box that the page scales; colours and dashes
 * come from the style sheet. */
#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "report.h"

/* ---- Axes ---------------------------------------------------------------------------------------- */

enum { MAX_TICKS = 24 };

typedef struct scale {
    double minimum, maximum; /* of the data */
    double from, to;         /* in the picture */
    double step;             /* between ticks */
    double ticks[MAX_TICKS];
    int count;
} scale;

static double place(const scale *axis, double value) {
    double share = (value - axis->minimum) / (axis->maximum - axis->minimum);
    return axis->from + share * (axis->to - axis->from);
}

/* A scale from a tick at or below `minimum` to one at or above `maximum`, with about `ticks` ticks. */
static scale make_scale(double minimum, double maximum, int ticks, double from, double to) {
    if (!(maximum > minimum)) maximum = minimum + 1;
    double raw = (maximum - minimum) / ticks, power = pow(10, floor(log10(raw))), rest = raw / power;
    double step = power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 2.5 ? 2.5 : rest <= 5 ? 5 : 10);
    scale axis = {.minimum = step * floor(minimum / step + 1e-9), .from = from, .to = to, .step = step};
    axis.count = (int)ceil((maximum - axis.minimum) / step - 1e-9) + 1;
    if (axis.count > MAX_TICKS) axis.count = MAX_TICKS;
    for (int i = 0; i < axis.count; i++) axis.ticks[i] = axis.minimum + i * step;
    axis.maximum = axis.ticks[axis.count - 1];
    return axis;
}

static void tick_label(html_out *out, const scale *axis, double value) {
    if (axis->step >= 1) {
        html_put(out, cli_count((int64_t)llround(value)));
        return;
    }
    int digits = (int)ceil(-log10(axis->step) - 1e-9);
    double scaled = axis->step * pow(10, digits);
    if (fabs(scaled - round(scaled)) > 1e-6) digits++;
    html_print(out, "%.*f", digits, value);
}

enum { WIDTH = 420, HEIGHT = 250, LEFT = 46, TOP = 14, BOTTOM = 44, RIGHT = 14, LABELS = 112 };

static void draw_axes(html_out *out, const chart *plot, const scale *x, const scale *y) {
    html_print(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x->from,
               x->to, y->from, y->from);
    for (int i = 0; i < y->count; i++) {
        double value = y->ticks[i], at = place(y, value);
        if (at < y->from - 0.5)
            html_print(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                       x->from, x->to, at, at);
        html_print(out, "<text class=\"t\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">", x->from - 6,
                   at + 4);
        tick_label(out, y, value);
        html_put(out, "</text>");
    }
    for (int i = 0; i < x->count; i++) {
        double value = x->ticks[i], at = place(x, value);
        if (value > x->maximum * (1 + 1e-9)) continue;
        html_print(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", at, at,
                   y->from, y->from + 4);
        /* The last label must not exceed the picture. */
        html_print(out, "<text class=\"t\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">",
                   at > x->to - 12 ? "end" : "middle", at > x->to - 12 ? x->to + 4 : at, y->from + 17);
        tick_label(out, x, value);
        html_put(out, "</text>");
    }
    html_print(out, "<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">",
               (x->from + x->to) / 2, HEIGHT - 6);
    html_put(out, plot->x_title);
    html_put(out, "</text>");
    if (plot->unit)
        html_print(out, "<line class=\"axis d5\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                   place(x, 0), place(x, 1), place(y, 0), place(y, 1));
}

/* ---- Lines --------------------------------------------------------------------------------------- */

static bool shown(const chart_point *point) {
    return isfinite(point->x) && isfinite(point->y);
}

enum { MAX_DOTS = 60 };

static void draw_series(html_out *out, const chart *plot, const chart_series *series, const scale *x,
                        const scale *y) {
    html_print(out, "<path class=\"series s%d d%d\" d=\"", series->colour, series->colour);
    char command = 'M';
    for (int64_t i = 0; i < series->count; i++) {
        if (!shown(&series->points[i])) continue;
        html_print(out, "%c%.1f %.1f", command, place(x, series->points[i].x),
                   place(y, fmin(series->points[i].y, y->maximum)));
        command = 'L';
    }
    html_put(out, "\"/>");
    for (int64_t i = 0; i < series->count; i++) {
        const chart_point *point = &series->points[i];
        bool above = point->y > y->maximum;
        if (!shown(point) || (series->count > MAX_DOTS && !above)) continue;
        const char *shape = above ? "path" : "circle";
        if (above)
            html_print(out, "<path class=\"f%d\" d=\"M%.1f %.1fl5 9h-10z\"><title>", series->colour,
                       place(x, point->x), y->to - 8);
        else
            html_print(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                       series->colour, place(x, point->x), place(y, point->y),
                       plot->weighted ? 2.5 + 8 * sqrt(point->weight) : 3);
        if (series->label) {
            html_text(out, series->label);
            html_put(out, ": ");
        }
        html_print(out, "%.4g at %.6g</title></%s>", point->y, point->x, shape);
    }
}

typedef struct end_label {
    const chart_series *series;
    double y;
} end_label;

/* Labels at the ends of their lines, moved apart where they would overlap. */
static void draw_labels(html_out *out, const chart_series *series, int count, const scale *x,
                        const scale *y) {
    enum { APART = 15, COLUMNS = 15 };
    end_label labels[REPORT_MAX_RUNS];
    int used = 0;
    for (int i = 0; i < count && used < REPORT_MAX_RUNS; i++) {
        const chart_point *last = NULL;
        for (int64_t j = 0; j < series[i].count; j++)
            if (shown(&series[i].points[j])) last = &series[i].points[j];
        if (!last || !series[i].label) continue;
        double at = place(y, fmin(last->y, y->maximum));
        int slot = used++;
        for (; slot > 0 && labels[slot - 1].y > at; slot--) labels[slot] = labels[slot - 1];
        labels[slot] = (end_label){&series[i], at};
    }
    for (int i = 1; i < used; i++)
        if (labels[i].y < labels[i - 1].y + APART) labels[i].y = labels[i - 1].y + APART;
    /* Labels below the frame push the others up again. */
    double lowest = y->from;
    for (int i = used - 1; i >= 0; i--, lowest -= APART)
        if (labels[i].y > lowest) labels[i].y = lowest;
    for (int i = 0; i < used; i++) {
        html_print(out, "<text class=\"f%d\" x=\"%.1f\" y=\"%.1f\"><title>", labels[i].series->colour,
                   x->to + 8, labels[i].y + 4);
        html_text(out, labels[i].series->label);
        html_put(out, "</title>");
        html_text_short(out, labels[i].series->label, COLUMNS);
        html_put(out, "</text>");
    }
}

/* The values of all series, ascending. */
typedef struct chart_values {
    double *items;
    int64_t count;
    double minimum_x, maximum_x;
} chart_values;

static int compare_values(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* False: there are none, or no memory. */
static bool collect_values(chart_values *values, const chart_series *series, int count) {
    int64_t capacity = 0;
    for (int i = 0; i < count; i++) capacity += series[i].count;
    *values = (chart_values){calloc((size_t)capacity + 1, sizeof(double)), 0, INFINITY, -INFINITY};
    for (int i = 0; i < count && values->items; i++)
        for (int64_t j = 0; j < series[i].count; j++) {
            const chart_point *point = &series[i].points[j];
            if (!shown(point)) continue;
            values->items[values->count++] = point->y;
            values->minimum_x = fmin(values->minimum_x, point->x);
            values->maximum_x = fmax(values->maximum_x, point->x);
        }
    if (values->count > 0) qsort(values->items, (size_t)values->count, sizeof(double), compare_values);
    return values->count > 0;
}

static double quantile(const chart_values *values, double share) {
    return values->items[(int64_t)floor(share * (double)(values->count - 1) + 0.5)];
}

/* An axis that shows the values apart: from 0 only where the smallest is near it, and without the few
 * that are far above all others, as the first losses of a training may be. */
static scale fit_values(const chart_values *values) {
    enum { FAR = 6 };
    double minimum = values->items[0], maximum = values->items[values->count - 1];
    double high = quantile(values, 0.9), spread = high - quantile(values, 0.1);
    if (maximum - minimum > FAR * spread && spread > 0) maximum = fmin(maximum, high + 2 * spread);
    if (minimum >= 0 && minimum < 0.4 * maximum) minimum = 0;
    return make_scale(minimum, maximum, 5, HEIGHT - BOTTOM, TOP);
}

/* Says how many values are above the axis. */
static void above_text(html_out *out, const chart_values *values, double maximum) {
    int64_t above = 0;
    while (above < values->count && values->items[values->count - 1 - above] > maximum) above++;
    if (above > 0)
        html_print(out, " <span class=\"soft\">(&#9650; %s above, up to %.3g)</span>",
                   cli_things(above, "value"), values->items[values->count - 1]);
}

/* An axis over the steps of the data, so that the lines fill the frame. */
static scale fit_steps(const chart_values *values, double to) {
    double minimum = values->minimum_x < 0.25 * values->maximum_x ? 0 : values->minimum_x;
    scale axis = make_scale(minimum, values->maximum_x, 5, LEFT, to);
    if (values->maximum_x > axis.minimum) axis.maximum = values->maximum_x;
    return axis;
}

void chart_lines(html_out *out, const chart *plot, const chart_series *series, int count) {
    chart_values values;
    bool labels = false;
    for (int i = 0; i < count; i++) labels = labels || series[i].label;
    double right = WIDTH - (labels ? LABELS : RIGHT);
    if (collect_values(&values, series, count)) {
        scale x = plot->unit ? make_scale(0, 1, 5, LEFT, right) : fit_steps(&values, right);
        scale y = plot->unit ? make_scale(0, 1, 5, HEIGHT - BOTTOM, TOP) : fit_values(&values);
        html_put(out, "<figure><figcaption>");
        html_put(out, plot->title);
        above_text(out, &values, y.maximum);
        html_print(out, "</figcaption><svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"", WIDTH,
                   HEIGHT);
        html_put(out, plot->title);
        html_put(out, ": ");
        html_put(out, plot->y_title);
        html_put(out, " over ");
        html_put(out, plot->x_title);
        html_put(out, "; the values are in the tables\">");
        draw_axes(out, plot, &x, &y);
        for (int i = 0; i < count; i++) draw_series(out, plot, &series[i], &x, &y);
        if (labels) draw_labels(out, series, count, &x, &y);
        html_put(out, "</svg></figure>\n");
    }
    free(values.items);
}

/* ---- Values with intervals ----------------------------------------------------------------------- */

static void draw_mark(html_out *out, char shape, int colour, double x, double y) {
    switch (shape) {
    case 'o':
        html_print(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", colour, x, y);
        return;
    case 's':
        html_print(out, "<rect class=\"open s%d\" x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\"/>",
                   colour, x - 4, y - 4);
        return;
    case 't':
        html_print(out, "<path class=\"open s%d\" d=\"M%.1f %.1fl5 9h-10z\"/>", colour, x, y - 5.5);
        return;
    case 'd':
        html_print(out, "<path class=\"open s%d\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>", colour, x, y - 5);
        return;
    case 'x':
        html_print(out, "<path class=\"mark s%d\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\"/>", colour, x - 4,
                   y - 4);
        return;
    default:
        html_print(out, "<path class=\"mark s%d\" d=\"M%.1f %.1fh10m-5 -5v10\"/>", colour, x - 5, y);
    }
}

void chart_symbol(html_out *out, char shape, int colour) {
    html_put(out, "<svg width=\"16\" height=\"16\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">");
    draw_mark(out, shape, colour, 8, 8);
    html_put(out, "</svg>");
}

void chart_marks(html_out *out, const char *title, const chart_row *rows, int count) {
    enum { FRAME = 500, NAMES = 122, ROW = 38, HEAD = 10, FOOT = 42 };
    double maximum = 0;
    for (int i = 0; i < count; i++) {
        maximum = fmax(maximum, rows[i].interval.high);
        for (int j = 0; j < rows[i].count; j++)
            if (isfinite(rows[i].marks[j].value)) maximum = fmax(maximum, rows[i].marks[j].value);
    }
    int height = HEAD + count * ROW + FOOT;
    scale x = make_scale(0, maximum, 6, NAMES, FRAME - 20);
    html_print(out, "<figure class=\"wide\"><svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"",
               FRAME, height);
    html_put(out, title);
    html_put(out, "; the values are in the tables\">");
    for (int i = 0; i < x.count; i++) {
        double value = x.ticks[i], at = place(&x, value);
        html_print(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>",
                   i == 0 ? "axis" : "grid", at, at, HEAD, HEAD + count * ROW);
        html_print(out, "<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", at,
                   HEAD + count * ROW + 17);
        tick_label(out, &x, value);
        html_put(out, "</text>");
    }
    html_print(out, "<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">MRR</text>",
               (x.from + x.to) / 2, height - 6);
    for (int i = 0; i < count; i++) {
        const chart_row *row = &rows[i];
        double y = HEAD + ROW * (i + 0.5);
        html_print(out, "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\"><title>", NAMES - 10, y + 4.5);
        html_text(out, row->label);
        html_put(out, "</title>");
        html_text_short(out, row->label, 14);
        html_put(out, "</text>");
        /* f and its interval above, the others below, as they are often close to each other. */
        html_print(out, "<line class=\"mark s%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                   row->colour, place(&x, row->interval.low), place(&x, row->interval.high), y - 7,
                   y - 7);
        for (int j = row->count - 1; j >= 0; j--)
            if (isfinite(row->marks[j].value))
                draw_mark(out, row->marks[j].shape, row->colour, place(&x, row->marks[j].value),
                          j == 0 ? y - 7 : y + 7);
    }
    html_put(out, "</svg></figure>\n");
}

void chart_difference(html_out *out, vlp_interval interval, double reach, int colour) {
    enum { SPAN = 100, MIDDLE = SPAN / 2 };
    double unit = reach > 0 ? (MIDDLE - 6) / reach : 0;
    html_print(out,
               "<svg width=\"%d\" height=\"18\" viewBox=\"0 0 %d 18\" aria-hidden=\"true\">"
               "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"1\" y2=\"17\"/>",
               SPAN, SPAN, MIDDLE, MIDDLE);
    html_print(out, "<line class=\"mark s%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"9\" y2=\"9\"/>", colour,
               MIDDLE + interval.low * unit, MIDDLE + interval.high * unit);
    html_print(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"9\" r=\"4\"/></svg>", colour,
               MIDDLE + interval.middle * unit);
}
