#include "chi_square.h"

#include <math.h>

#include "support.h"

double quantile(double freedom, double z) {
    double part = 2 / (9 * freedom);
    return freedom * pow(1 - part + z * sqrt(part), 3);
}

bool fits(fit f, double z) {
    return f.cells <= 0 || f.sum <= quantile((double)f.cells, z);
}

fit compare_counts(const int64_t *observed, const long double *share, int64_t cells, double total) {
    fit f = {0, 0};
    double small_expected = 0, small_observed = 0, last_expected = 0, last_observed = 0;
    for (int64_t c = 0; c < cells; c++) {
        double expected = total * (double)share[c], seen = (double)observed[c];
        if (expected < 1e-7) assert_true(seen == 0);
        if (expected < 8) {
            small_expected += expected;
            small_observed += seen;
            continue;
        }
        if (f.cells++ > 0) f.sum += pow(last_observed - last_expected, 2) / last_expected;
        last_expected = expected;
        last_observed = seen;
    }
    if (small_expected >= 8) {
        f.sum += pow(small_observed - small_expected, 2) / small_expected;
        f.cells++;
    } else {
        last_expected += small_expected;
        last_observed += small_observed;
    }
    if (last_expected > 0) f.sum += pow(last_observed - last_expected, 2) / last_expected;
    f.cells--;
    return f;
}
