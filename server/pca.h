/* The first two principal components of a table. */
#ifndef VLP_SERVER_PCA_H
#define VLP_SERVER_PCA_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the coordinates of each row to `points` (rows, 2) and the share of the variance that each
 * component explains to `explained`. The same table gives the same bits: fixed start, fixed order of
 * sums, and the largest coefficient of a component is positive. Components that the table does not have
 * are 0. False: memory is missing. */
bool pca_project(float *points, double explained[2], const float *values, int64_t rows, int64_t columns);

#endif
