/* Logistic regression of two kinds on their scores, and how well it does on scores it has not seen. */
#include <math.h>
#include <string.h>

#include "run/score.h"

enum { FEWEST_FOR_A_CURVE = 4, NEWTON_STEPS = 100 };

typedef struct samples {
    const double *values; /* positives first */
    const int32_t *group;
    int64_t positives, count;
} samples;

/* Which samples: those whose group is even, odd, or all. */
typedef enum half { EVEN = 0, ODD = 1, BOTH = 2 } half;

static bool in_half(const samples *set, int64_t i, half part) {
    return part == BOTH || set->group[i] % 2 == (int32_t)part;
}

typedef struct fit {
    double intercept, slope;
} fit;

static double log_loss(double logit, double target) {
    /* -t log p - (1 - t) log(1 - p), without overflow. */
    return (logit > 0 ? logit : 0) - target * logit + log1p(exp(-fabs(logit)));
}

/* What the fit needs of a half: how many there are, their mean and deviation. */
typedef struct summary {
    int64_t positives, negatives;
    double mean, deviation;
} summary;

static summary summarize(const samples *set, half part) {
    summary out = {0};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < set->count; i++) {
        if (!in_half(set, i, part)) continue;
        out.positives += i < set->positives;
        out.negatives += i >= set->positives;
        sum += set->values[i];
    }
    int64_t count = out.positives + out.negatives;
    out.mean = count > 0 ? sum / (double)count : 0;
    for (int64_t i = 0; i < set->count; i++)
        if (in_half(set, i, part)) squares += pow(set->values[i] - out.mean, 2);
    out.deviation = count > 0 ? sqrt(squares / (double)count) : 0;
    return out;
}

/* The loss of a fit over standardized scores; gradient (2) and Hessian (3: aa, ab, bb) where wanted.
 * Both kinds weigh 1/2 together. Targets lie a little inside of 0 and 1, as Platt has them, so that
 * scores that divide the kinds perfectly have a fit too. */
static double loss_of(fit at, const samples *set, half part, const summary *about, double *gradient,
                      double *hessian) {
    double loss = 0, positive = (double)about->positives, negative = (double)about->negatives;
    if (gradient) memset(gradient, 0, 2 * sizeof *gradient);
    if (hessian) memset(hessian, 0, 3 * sizeof *hessian);
    for (int64_t i = 0; i < set->count; i++) {
        if (!in_half(set, i, part)) continue;
        bool is_true = i < set->positives;
        double target = is_true ? (positive + 1) / (positive + 2) : 1 / (negative + 2);
        double weight = 0.5 / (is_true ? positive : negative);
        double x = (set->values[i] - about->mean) / about->deviation;
        double logit = at.intercept + at.slope * x, p = 1 / (1 + exp(-logit));
        loss += weight * log_loss(logit, target);
        if (!gradient) continue;
        gradient[0] += weight * (p - target);
        gradient[1] += weight * (p - target) * x;
        hessian[0] += weight * p * (1 - p);
        hessian[1] += weight * p * (1 - p) * x;
        hessian[2] += weight * p * (1 - p) * x * x;
    }
    return loss;
}

/* Newton's method; a step that does not lower the loss is halved. */
static fit fit_half(const samples *set, half part) {
    summary about = summarize(set, part);
    fit at = {0, 0};
    if (about.positives == 0 || about.negatives == 0 || !(about.deviation > 0)) return at;
    double gradient[2], hessian[3];
    double loss = loss_of(at, set, part, &about, gradient, hessian);
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double a = hessian[0] + 1e-12, b = hessian[1], c = hessian[2] + 1e-12, det = a * c - b * b;
        double move[2] = {(c * gradient[0] - b * gradient[1]) / det,
                          (a * gradient[1] - b * gradient[0]) / det};
        double share = 1, now = loss;
        fit next = at;
        for (int halving = 0; halving < 34; halving++, share /= 2) {
            next = (fit){at.intercept - share * move[0], at.slope - share * move[1]};
            now = loss_of(next, set, part, &about, NULL, NULL);
            if (now < loss) break;
        }
        if (!(now < loss)) break; /* as low as it gets */
        at = next;
        loss = loss_of(at, set, part, &about, gradient, hessian);
    }
    /* Back to scores as they are. */
    double slope = at.slope / about.deviation;
    return (fit){at.intercept - slope * about.mean, slope};
}

/* Each half judged by the fit on the other one. */
static void set_curve(vlp_calibration *out, const samples *set) {
    const fit halves[2] = {fit_half(set, ODD), fit_half(set, EVEN)};
    double truth[VLP_CALIBRATION_BINS] = {0}, said[VLP_CALIBRATION_BINS] = {0};
    for (int64_t i = 0; i < set->count; i++) {
        bool is_true = i < set->positives;
        double weight = 0.5 / (double)(is_true ? out->positives : out->negatives);
        fit check_step = halves[set->group[i] % 2];
        double logit = check_step.intercept + check_step.slope * set->values[i];
        double p = 1 / (1 + exp(-logit)), error = p - is_true;
        int bin = (int)(p * VLP_CALIBRATION_BINS);
        if (bin >= VLP_CALIBRATION_BINS) bin = VLP_CALIBRATION_BINS - 1;
        out->brier += weight * error * error;
        out->log_loss += weight * log_loss(logit, is_true);
        out->bins[bin].weight += weight;
        out->bins[bin].triples++;
        truth[bin] += weight * is_true;
        said[bin] += weight * p;
    }
    for (int bin = 0; bin < VLP_CALIBRATION_BINS; bin++) {
        double weight = out->bins[bin].weight;
        out->bins[bin].predicted = weight > 0 ? said[bin] / weight : (double)NAN;
        out->bins[bin].observed = weight > 0 ? truth[bin] / weight : (double)NAN;
    }
}

void vlp_calibration_fit(vlp_calibration *out, const double *values, const int32_t *group,
                         int64_t positives, int64_t count) {
    const samples given = {values, group, positives, count}, *set = &given;
    fit all = fit_half(set, BOTH);
    *out = (vlp_calibration){.positives = set->positives,
                             .negatives = set->count - set->positives,
                             .intercept = all.intercept,
                             .slope = all.slope};
    if (set->positives >= FEWEST_FOR_A_CURVE) {
        set_curve(out, set);
        return;
    }
    out->brier = out->log_loss = (double)NAN;
    for (int bin = 0; bin < VLP_CALIBRATION_BINS; bin++)
        out->bins[bin].predicted = out->bins[bin].observed = (double)NAN;
}
