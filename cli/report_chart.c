/* Charts as inline SVG. Coordinates refer to a fixed view box that the page scales; colours and dashes
 * come from the style sheet. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "report.h"

/* ---- Axes ---------------------------------------------------------------------------------------- */

typedef struct scale {
    double minimum, maximum; /* of the data */
    double from, to;         /* in the picture */
    double step;             /* between ticks */
} scale;

static double place(const scale *axis, double value) {
    return axis->from +
           (value - axis->minimum) / (axis->maximum - axis->minimum) * (axis->to - axis->from);
}

/* A scale from `minimum` to a tick at or above `maximum`, with about `ticks` ticks. */
static scale make_scale(double minimum, double maximum, int ticks, double from, double to) {
    if (!(maximum > minimum)) maximum = minimum + 1;
    double raw = (maximum - minimum) / ticks, power = pow(10, floor(log10(raw))), rest = raw / power;
    double step = power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 2.5 ? 2.5 : rest <= 5 ? 5 : 10);
    return (scale){minimum, minimum + step * ceil((maximum - minimum) / step - 1e-9), from, to, step};
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

static int tick_count(const scale *axis) {
    return (int)floor((axis->maximum - axis->minimum) / axis->step + 1e-6);
}

enum { WIDTH = 420, HEIGHT = 250, LEFT = 46, TOP = 14, BOTTOM = 44, RIGHT = 14, LABELS = 112 };

static void draw_axes(html_out *out, const chart *plot, const scale *x, const scale *y) {
    for (int i = 0; i <= tick_count(y); i++) {
        double value = y->minimum + i * y->step, at = place(y, value);
        html_print(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                   i == 0 ? "axis" : "grid", x->from, x->to, at, at);
        html_print(out, "<text class=\"t\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">", x->from - 6,
                   at + 4);
        tick_label(out, y, value);
        html_put(out, "</text>");
    }
    for (int i = 0; i <= tick_count(x); i++) {
        double value = x->minimum + i * x->step, at = place(x, value);
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
                   place(y, series->points[i].y));
        command = 'L';
    }
    html_put(out, "\"/>");
    for (int64_t i = 0; i < series->count && series->count <= MAX_DOTS; i++) {
        const chart_point *point = &series->points[i];
        if (!shown(point)) continue;
        html_print(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                   series->colour, place(x, point->x), place(y, point->y),
                   plot->weighted ? 2.5 + 8 * sqrt(point->weight) : 3);
        if (series->label) {
            html_text(out, series->label);
            html_put(out, ": ");
        }
        html_print(out, "%.4g at %.6g</title></circle>", point->y, point->x);
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
        double at = place(y, last->y);
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
        html_print(out, "<text class=\"f%d\" x=\"%.1f\" y=\"%.1f\">", labels[i].series->colour,
                   x->to + 8, labels[i].y + 4);
        html_text_short(out, labels[i].series->label, COLUMNS);
        html_put(out, "</text>");
    }
}

void chart_lines(html_out *out, const chart *plot, const chart_series *series, int count) {
    double minimum_x = INFINITY, maximum_x = -INFINITY, maximum_y = 0;
    bool labels = false;
    for (int i = 0; i < count; i++) {
        labels = labels || series[i].label;
        for (int64_t j = 0; j < series[i].count; j++) {
            const chart_point *point = &series[i].points[j];
            if (!shown(point)) continue;
            minimum_x = fmin(minimum_x, point->x);
            maximum_x = fmax(maximum_x, point->x);
            maximum_y = fmax(maximum_y, point->y);
        }
    }
    if (maximum_x < minimum_x) return;
    scale x = make_scale(0, plot->unit ? 1 : maximum_x, 5, LEFT, WIDTH - (labels ? LABELS : RIGHT));
    /* The x axis ends with the data, so that the lines fill the frame. */
    if (!plot->unit && maximum_x > 0) x.maximum = maximum_x;
    scale y = make_scale(0, plot->unit ? 1 : maximum_y, 5, HEIGHT - BOTTOM, TOP);
    html_put(out, "<figure><figcaption>");
    html_put(out, plot->title);
    html_print(out, "</figcaption><svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"", WIDTH, HEIGHT);
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
    for (int i = 0; i <= tick_count(&x); i++) {
        double value = i * x.step, at = place(&x, value);
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
