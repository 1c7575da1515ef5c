/* Whether counts are what shares let expect. */
#ifndef VLP_TESTS_CHI_SQUARE_H
#define VLP_TESTS_CHI_SQUARE_H

#include <stdbool.h>
#include <stdint.h>

/* Normal quantiles of 1 - 1e-4 and 1 - 1e-6: for a whole configuration, for one part of it. */
#define UNLIKELY 3.719
#define ABSURD 4.753

typedef struct fit {
    double sum;
    int64_t cells; /* degrees of freedom, once one is taken off for each total */
} fit;

/* The quantile of so many degrees of freedom whose normal one is z (Wilson and Hilferty). */
double quantile(double freedom, double z);
bool fits(fit f, double z);
/* Cells that expect fewer than 8 are thrown together; too few together join the last of the others. An
 * impossible cell has to be empty. */
fit compare_counts(const int64_t *observed, const long double *share, int64_t cells, double total);

#endif
