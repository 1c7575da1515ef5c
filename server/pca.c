#include "pca.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Subspace iteration: a block of vectors is multiplied by the covariance X^T X and orthonormalized,
 * again and again; the block turns to the space of the largest eigenvectors. More vectors than are
 * wanted make it fast. */
enum { BLOCK = 6, ITERATIONS = 24 };

/* A fixed start: the bits of a counter, mixed. */
static double start_value(uint64_t counter) {
    uint64_t bits = (counter + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return (double)(bits >> 11) * 0x1p-53 - 0.5;
}

static double dot(const double *left, const double *right, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += left[i] * right[i];
    return sum;
}

/* Gram-Schmidt, twice; a vector that depends on those before it becomes 0. */
static void orthonormalize(double *vectors, int64_t columns) {
    for (int v = 0; v < BLOCK; v++) {
        double *vector = vectors + v * columns;
        double before = sqrt(dot(vector, vector, columns));
        for (int again = 0; again < 2; again++)
            for (int u = 0; u < v; u++) {
                const double *other = vectors + u * columns;
                double part = dot(vector, other, columns);
                for (int64_t i = 0; i < columns; i++) vector[i] -= part * other[i];
            }
        double norm = sqrt(dot(vector, vector, columns));
        double scale = norm > 1e-9 * before ? 1 / norm : 0;
        for (int64_t i = 0; i < columns; i++) vector[i] *= scale;
    }
}

typedef struct table {
    const float *values;
    const double *mean;
    int64_t rows, columns;
} table;

/* Coordinates of a row, centred, in the vectors. */
static void project_row(double out[BLOCK], const table *of, int64_t row, const double *vectors,
                        const double *shift) {
    const float *values = of->values + row * of->columns;
    for (int v = 0; v < BLOCK; v++) {
        const double *vector = vectors + v * of->columns;
        /* Four sums, in a fixed order, that the compiler may keep in a vector register. */
        double sums[4] = {0};
        int64_t i = 0;
        for (; i + 4 <= of->columns; i += 4)
            for (int j = 0; j < 4; j++) sums[j] += (double)values[i + j] * vector[i + j];
        for (; i < of->columns; i++) sums[0] += (double)values[i] * vector[i];
        out[v] = sums[0] + sums[1] + (sums[2] + sums[3]) - shift[v];
    }
}

/* next = C vectors, with C the sum over rows of centred outer products. */
static void multiply(double *next, const table *of, const double *vectors) {
    double shift[BLOCK], total[BLOCK] = {0}, along[BLOCK];
    for (int v = 0; v < BLOCK; v++) shift[v] = dot(of->mean, vectors + v * of->columns, of->columns);
    memset(next, 0, sizeof *next * BLOCK * (size_t)of->columns);
    for (int64_t row = 0; row < of->rows; row++) {
        const float *values = of->values + row * of->columns;
        project_row(along, of, row, vectors, shift);
        for (int v = 0; v < BLOCK; v++) {
            double *to = next + v * of->columns, factor = along[v];
            total[v] += factor;
            for (int64_t i = 0; i < of->columns; i++) to[i] += factor * (double)values[i];
        }
    }
    for (int v = 0; v < BLOCK; v++)
        for (int64_t i = 0; i < of->columns; i++) next[v * of->columns + i] -= total[v] * of->mean[i];
}

/* Eigenvectors of a small symmetric matrix by Jacobi rotations; columns of `turn`, by descending
 * eigenvalue. */
static void eigenvectors(double turn[BLOCK][BLOCK], double values[BLOCK], double matrix[BLOCK][BLOCK]) {
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < BLOCK; j++) turn[i][j] = i == j;
    for (int sweep = 0; sweep < 30; sweep++)
        for (int p = 0; p < BLOCK; p++)
            for (int q = p + 1; q < BLOCK; q++) {
                if (matrix[p][q] == 0) continue;
                double angle = 0.5 * atan2(2 * matrix[p][q], matrix[q][q] - matrix[p][p]);
                double c = cos(angle), s = sin(angle);
                for (int i = 0; i < BLOCK; i++) {
                    double a = matrix[i][p], b = matrix[i][q];
                    matrix[i][p] = c * a - s * b;
                    matrix[i][q] = s * a + c * b;
                    a = turn[i][p], b = turn[i][q];
                    turn[i][p] = c * a - s * b;
                    turn[i][q] = s * a + c * b;
                }
                for (int i = 0; i < BLOCK; i++) {
                    double a = matrix[p][i], b = matrix[q][i];
                    matrix[p][i] = c * a - s * b;
                    matrix[q][i] = s * a + c * b;
                }
            }
    for (int i = 0; i < BLOCK; i++) values[i] = matrix[i][i];
    for (int i = 0; i < BLOCK; i++)
        for (int j = i + 1; j < BLOCK; j++) {
            if (values[j] <= values[i]) continue;
            double other = values[i];
            values[i] = values[j];
            values[j] = other;
            for (int k = 0; k < BLOCK; k++) {
                other = turn[k][i];
                turn[k][i] = turn[k][j];
                turn[k][j] = other;
            }
        }
}

/* Turns the block to eigenvectors of the covariance within its space. */
static void rotate(double *vectors, double values[BLOCK], double *product, int64_t columns) {
    double matrix[BLOCK][BLOCK], turn[BLOCK][BLOCK];
    for (int u = 0; u < BLOCK; u++)
        for (int v = 0; v < BLOCK; v++)
            matrix[u][v] = dot(vectors + u * columns, product + v * columns, columns);
    for (int u = 0; u < BLOCK; u++)
        for (int v = 0; v < u; v++) matrix[u][v] = matrix[v][u] = (matrix[u][v] + matrix[v][u]) / 2;
    eigenvectors(turn, values, matrix);
    for (int64_t i = 0; i < columns; i++) {
        double turned[BLOCK] = {0};
        for (int v = 0; v < BLOCK; v++)
            for (int u = 0; u < BLOCK; u++) turned[v] += turn[u][v] * vectors[u * columns + i];
        for (int v = 0; v < BLOCK; v++) vectors[v * columns + i] = turned[v];
    }
}

static void fix_sign(double *vector, int64_t columns) {
    int64_t largest = 0;
    for (int64_t i = 1; i < columns; i++)
        if (fabs(vector[i]) > fabs(vector[largest])) largest = i;
    if (vector[largest] < 0)
        for (int64_t i = 0; i < columns; i++) vector[i] = -vector[i];
}

/* The mean of each column; returns the sum of squares around it. */
static double centre(double *mean, const float *values, int64_t rows, int64_t columns) {
    double total = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < columns; i++) mean[i] += (double)values[row * columns + i];
    for (int64_t i = 0; i < columns; i++) mean[i] /= (double)rows;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < columns; i++) {
            double from = (double)values[row * columns + i] - mean[i];
            total += from * from;
        }
    return total;
}

bool pca_project(float *points, double explained[2], const float *values, int64_t rows,
                 int64_t columns) {
    size_t size = BLOCK * (size_t)columns;
    double *mean = calloc((size_t)columns, sizeof *mean);
    double *vectors = malloc(size * sizeof *vectors), *product = malloc(size * sizeof *product);
    bool done = mean && vectors && product;
    if (!done) goto out;
    double total = centre(mean, values, rows, columns);
    table of = {values, mean, rows, columns};
    for (size_t i = 0; i < size; i++) vectors[i] = start_value(i);
    orthonormalize(vectors, columns);
    double found[BLOCK] = {0};
    for (int i = 0; i < ITERATIONS; i++) {
        multiply(product, &of, vectors);
        double *other = vectors;
        vectors = product;
        product = other;
        orthonormalize(vectors, columns);
    }
    multiply(product, &of, vectors);
    rotate(vectors, found, product, columns);
    double shift[BLOCK], along[BLOCK];
    for (int v = 0; v < BLOCK; v++) {
        fix_sign(vectors + v * columns, columns);
        shift[v] = dot(mean, vectors + v * columns, columns);
    }
    for (int i = 0; i < 2; i++) explained[i] = total > 0 ? found[i] / total : 0;
    for (int64_t row = 0; row < rows; row++) {
        project_row(along, &of, row, vectors, shift);
        for (int i = 0; i < 2; i++) points[2 * row + i] = (float)along[i];
    }
out:
    free(mean);
    free(vectors);
    free(product);
    return done;
}
