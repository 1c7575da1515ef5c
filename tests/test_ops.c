/* The plain operations of a backend, each against a loop in double precision: rows of tables,
 * elementwise passes and their gradients, the optimizer. Shapes are random, odd and small, and in every
 * test also one that is large enough to be shared among threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "reference_ops.h"

enum { SEED = 30, ROUNDS = 40 };

typedef void (*operation_check)(lab *bench, int32_t rows, int32_t width);

/* Rows of 1 to 9 numbers, single rows, single columns, and one large array. */
static void for_shapes(operation_check one, uint64_t stream) {
    for (int32_t threads = 1; threads <= 3; threads++) {
        lab bench;
        lab_open(&bench, threads, SEED);
        bench.random.step = stream;
        for (int round = 0; round <= ROUNDS; round++) {
            int32_t rows = round % 7 == 0 ? 1 : lab_between(&bench, 1, 9);
            int32_t width = round % 5 == 0 ? 1 : lab_between(&bench, 1, 9);
            bool large = round == ROUNDS;
            one(&bench, large ? 307 : rows, large ? 257 : width);
            lab_clear(&bench);
        }
        lab_close(&bench);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static void test_memory(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 2, SEED);
    uint8_t bytes[100], zeros[100] = {0}, sevens[100];
    memset(bytes, 5, sizeof bytes);
    memset(sevens, 7, sizeof sevens);
    uint8_t *memory = bench.backend->memory->allocate(bench.compute, sizeof bytes);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0); /* on a line of the cache */
    bench.backend->memory->download(bench.compute, bytes, memory, sizeof bytes);
    assert_memory_equal(bytes, zeros, sizeof bytes);
    bench.backend->memory->fill_bytes(bench.compute, memory, 7, sizeof bytes);
    bench.backend->memory->zero(bench.compute, memory + 90, 10);
    bench.backend->memory->download(bench.compute, bytes, memory, sizeof bytes);
    assert_memory_equal(bytes, sevens, 90);
    assert_memory_equal(bytes + 90, zeros, 10);
    bench.backend->memory->upload(bench.compute, memory, sevens, 0);
    bench.backend->memory->zero(bench.compute, memory, 0);
    bench.backend->memory->release(bench.compute, memory);
    lab_close(&bench);
    bench.backend->close(NULL);
}

/* ---- Products and rows --------------------------------------------------------------------------- */

static void check_product(lab *bench, int32_t m, int32_t n) {
    int32_t k = lab_between(bench, 1, 9), gap = lab_between(bench, 0, 3);
    for (int kind = 0; kind < 4; kind++) {
        bool ta = kind & 1, tb = kind & 2;
        int32_t lda = (ta ? m : k) + gap, ldb = (tb ? k : n) + gap, ldc = n + gap;
        int32_t sizes[3] = {(ta ? k : m) * lda, (tb ? n : k) * ldb, m * ldc};
        double alpha = 0.5 * lab_between(bench, -2, 2), beta = 0.5 * lab_between(bench, -2, 2);
        double *a = lab_random(bench, sizes[0], 1), *b = lab_random(bench, sizes[1], 1);
        double *c = lab_random(bench, sizes[2], 1);
        float *c_on = lab_put(bench, c, sizes[2]);
        bench->backend->blas->product(bench->compute, c_on,
                                      &(vlp_product){.transpose_a = ta,
                                                     .transpose_b = tb,
                                                     .m = m,
                                                     .n = n,
                                                     .k = k,
                                                     .alpha = (float)alpha,
                                                     .beta = (float)beta,
                                                     .lda = lda,
                                                     .ldb = ldb,
                                                     .ldc = ldc},
                                      lab_put(bench, a, sizes[0]), lab_put(bench, b, sizes[1]));
        for (int32_t i = 0; i < m; i++)
            for (int32_t j = 0; j < n; j++) {
                double sum = 0;
                for (int32_t l = 0; l < k; l++)
                    sum +=
                        (ta ? a[l * lda + i] : a[i * lda + l]) * (tb ? b[j * ldb + l] : b[l * ldb + j]);
                c[i * ldc + j] = alpha * sum + beta * c[i * ldc + j];
            }
        lab_expect_near("product", c, lab_get(bench, c_on, sizes[2]), sizes[2]);
    }
}

static void test_product(void **state) {
    (void)state;
    for_shapes(check_product, 1);
}

static void check_gather(lab *bench, int32_t rows, int32_t width) {
    int32_t table_rows = lab_between(bench, 1, 6);
    double *table = lab_random(bench, table_rows * width, 1);
    float *table_on = lab_put(bench, table, table_rows * width);
    int32_t *ids = lab_ids(bench, rows, -1, table_rows - 1);
    double *expected = lab_zeros(bench, rows * width);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < width && ids[i] >= 0; j++)
            expected[i * width + j] = table[ids[i] * width + j];
    float *out = lab_put(bench, lab_random(bench, rows * width, 9), rows * width);
    bench->backend->rows->gather(bench->compute, out, table_on, lab_put_ids(bench, ids, rows), rows,
                                 width);
    lab_expect("gather", expected, lab_get(bench, out, rows * width), rows * width, 0, 0);
}

static void test_gather(void **state) {
    (void)state;
    for_shapes(check_gather, 2);
}

/* A row that is not touched yet counts as zeros, whatever stands there. */
static void touch(double *table, uint8_t *touched, int32_t row, int32_t width) {
    for (int32_t j = 0; !touched[row] && j < width; j++) table[row * width + j] = 0;
    touched[row] = 1;
}

static void check_scatter(lab *bench, int32_t rows, int32_t width) {
    int32_t table_rows = lab_between(bench, 1, 12), size = table_rows * width;
    bool weighted = lab_between(bench, 0, 1), marked = lab_between(bench, 0, 2) > 0;
    double *table = lab_random(bench, size, 1), *add = lab_random(bench, rows * width, 1);
    double *weights = lab_random(bench, rows, 2);
    int32_t *ids = lab_ids(bench, rows, -1, table_rows - 1);
    uint8_t touched[12] = {1}, got[12];
    float *table_on = lab_put(bench, table, size);
    uint8_t *touched_on = lab_put_bytes(bench, touched, sizeof touched);
    assert_int_equal(
        bench->backend->rows->scatter_add(bench->compute,
                                          &(vlp_table_gradient){.rows = table_on,
                                                                .touched = marked ? touched_on : NULL,
                                                                .count = table_rows,
                                                                .width = width},
                                          lab_put(bench, add, rows * width),
                                          weighted ? lab_put(bench, weights, rows) : NULL,
                                          lab_put_ids(bench, ids, rows), rows),
        VLP_OK);
    for (int32_t i = 0; i < rows; i++) {
        if (ids[i] < 0) continue;
        if (marked) touch(table, touched, ids[i], width);
        for (int32_t j = 0; j < width; j++)
            table[ids[i] * width + j] += (weighted ? weights[i] : 1) * add[i * width + j];
    }
    lab_expect("scatter", table, lab_get(bench, table_on, size), size, 1e-5, 1);
    lab_get_bytes(bench, got, touched_on, sizeof got);
    assert_memory_equal(got, touched, sizeof got);
}

static void test_scatter(void **state) {
    (void)state;
    for_shapes(check_scatter, 3);
}

static void check_scatter_mean(lab *bench, int32_t rows, int32_t width) {
    int32_t table_rows = lab_between(bench, 1, 12), size = table_rows * width;
    int32_t most = lab_between(bench, 1, 5), cells = rows * most;
    bool marked = lab_between(bench, 0, 2) > 0;
    double weight = lab_between(bench, 0, 1) ? 1 : -0.5;
    double *table = lab_random(bench, size, 1), *add = lab_random(bench, rows * width, 1);
    int32_t *ids = lab_ids(bench, cells, 0, table_rows - 1), *counts = lab_ids(bench, rows, 0, most);
    uint8_t touched[12] = {1}, got[12];
    float *table_on = lab_put(bench, table, size);
    uint8_t *touched_on = lab_put_bytes(bench, touched, sizeof touched);
    for (int32_t i = 0; i < cells; i++) {
        if (i % most >= counts[i / most]) {
            ids[i] = i % 2 ? -1 : table_rows - 1; /* nothing there, whatever it says */
            continue;
        }
        if (marked) touch(table, touched, ids[i], width);
        for (int32_t j = 0; j < width; j++)
            table[ids[i] * width + j] += weight / counts[i / most] * add[i / most * width + j];
    }
    assert_int_equal(
        bench->backend->rows->scatter_mean(bench->compute,
                                           &(vlp_table_gradient){.rows = table_on,
                                                                 .touched = marked ? touched_on : NULL,
                                                                 .count = table_rows,
                                                                 .width = width},
                                           lab_put(bench, add, rows * width), (float)weight,
                                           &(vlp_id_lists){.ids = lab_put_ids(bench, ids, cells),
                                                           .counts = lab_put_ids(bench, counts, rows),
                                                           .count = rows,
                                                           .capacity = most}),
        VLP_OK);
    lab_expect("scatter mean", table, lab_get(bench, table_on, size), size, 1e-5, 1);
    lab_get_bytes(bench, got, touched_on, sizeof got);
    assert_memory_equal(got, touched, sizeof got);
}

static void test_scatter_mean(void **state) {
    (void)state;
    for_shapes(check_scatter_mean, 13);
}

/* ---- Norms --------------------------------------------------------------------------------------- */

static double norm_of(const double *x, int32_t width) {
    double square = 0;
    for (int32_t j = 0; j < width; j++) square += x[j] * x[j];
    return sqrt(square);
}

static void check_norms(lab *bench, int32_t rows, int32_t width) {
    int32_t size = rows * width, zero_row = lab_between(bench, 0, rows - 1);
    double *x = lab_random(bench, size, 1), *inverse = lab_zeros(bench, rows);
    for (int32_t j = 0; j < width; j++) x[zero_row * width + j] = 0;
    for (int32_t i = 0; i < rows; i++) {
        double norm = norm_of(x + i * width, width);
        inverse[i] = norm == 0 ? 0 : 1 / norm;
    }
    float *norms_on = lab_put(bench, lab_random(bench, rows, 9), rows);
    bench->backend->rows->inverse_norms(bench->compute, norms_on, lab_put(bench, x, size), rows, width);
    lab_expect("inverse norms", inverse, lab_get(bench, norms_on, rows), rows, 1e-5, 1);
}

static void test_norms(void **state) {
    (void)state;
    for_shapes(check_norms, 4);
}

/* ---- Elementwise passes -------------------------------------------------------------------------- */

static void check_columns(lab *bench, int32_t rows, int32_t columns) {
    int32_t size = rows * columns;
    double *x = lab_random(bench, size, 1), *scale = lab_random(bench, columns, 2);
    float *x_on = lab_put(bench, x, size);
    bench->backend->rows->scale_columns(bench->compute, x_on, lab_put(bench, scale, columns), rows,
                                        columns);
    for (int32_t i = 0; i < size; i++) x[i] *= scale[i % columns];
    lab_expect("scale columns", x, lab_get(bench, x_on, size), size, 1e-6, 1);
}

static void test_columns(void **state) {
    (void)state;
    for_shapes(check_columns, 8);
}

/* Dropout of ones in a step: out (rows * width), zeros and one other number. */
static double *drop_ones(lab *bench, int64_t step, int32_t rows, int32_t width, double probability) {
    int32_t size = rows * width;
    double *ones = lab_zeros(bench, size);
    for (int32_t i = 0; i < size; i++) ones[i] = 1;
    float *on = lab_put(bench, ones, size);
    assert_false(bench->backend->steps->begin(bench->compute, NULL, &(vlp_step_values){.step = step}));
    bench->backend->rows->dropout(
        bench->compute, on, on,
        &(vlp_dropout){.rows = rows, .width = width, .probability = (float)probability, .seed = SEED});
    return lab_get(bench, on, size);
}

/* The share of numbers in which two choices differ. */
static double difference(const double *left, const double *right, int32_t count) {
    int32_t differ = 0;
    for (int32_t i = 0; i < count; i++) differ += (left[i] == 0) != (right[i] == 0);
    return (double)differ / count;
}

/* The share that is dropped, the factor of the others, and that choices of other steps, rows and columns
 * are independent: two differ where one is zero and the other is not. */
static void test_dropout(void **state) {
    (void)state;
    enum { ROWS = 300, WIDTH = 203, SIZE = ROWS * WIDTH };
    static const double shares[] = {0, 0.1, 0.5, 0.9};
    lab bench;
    lab_open(&bench, 2, SEED);
    for (int s = 0; s < 4; s++) {
        double p = shares[s], unlike = 2 * p * (1 - p), zeros = 0;
        double *first = drop_ones(&bench, 5, ROWS, WIDTH, p);
        for (int32_t i = 0; i < SIZE; i++) {
            assert_true(first[i] == 0 || fabs(first[i] - 1 / (1 - p)) < 1e-3);
            zeros += first[i] == 0;
        }
        assert_true(fabs(zeros / SIZE - p) < 0.01);
        assert_memory_equal(first, drop_ones(&bench, 5, ROWS, WIDTH, p), SIZE * sizeof *first);
        double *later = drop_ones(&bench, 6, ROWS, WIDTH, p);
        assert_true(fabs(difference(first, later, SIZE) - unlike) < 0.01);
        assert_true(fabs(difference(first, first + WIDTH, SIZE - WIDTH) - unlike) < 0.01);
        for (int32_t apart = 1; apart <= 8; apart++)
            assert_true(fabs(difference(first, first + apart, SIZE - apart) - unlike) < 0.01);
    }
    lab_close(&bench);
}

/* grad + a, and then + a - t <a, t> / |t|^2. */
static void check_add(lab *bench, int32_t rows, int32_t width) {
    int32_t size = rows * width;
    double *grad = lab_random(bench, size, 1), *a = lab_random(bench, size, 1);
    double *t = lab_random(bench, size, 1), *inverse = lab_zeros(bench, rows);
    float *grad_on = lab_put(bench, grad, size), *a_on = lab_put(bench, a, size);
    bench->backend->rows->add(bench->compute, grad_on, a_on, size);
    for (int32_t i = 0; i < rows; i++) {
        double dot = 0, norm = norm_of(t + i * width, width);
        inverse[i] = 1 / norm;
        for (int32_t j = 0; j < width; j++) dot += a[i * width + j] * t[i * width + j];
        for (int32_t j = 0; j < width; j++)
            grad[i * width + j] += 2 * a[i * width + j] - t[i * width + j] * dot / (norm * norm);
    }
    bench->backend->rows->project_add(bench->compute, grad_on, a_on, lab_put(bench, t, size),
                                      lab_put(bench, inverse, rows), rows, width);
    lab_expect_near("add, project and add", grad, lab_get(bench, grad_on, size), size);
}

static void test_add(void **state) {
    (void)state;
    for_shapes(check_add, 14);
}

/* ---- N3 ------------------------------------------------------------------------------------------ */

typedef struct one_n3 {
    const double *x;
    int32_t width, parts;
} one_n3;

static double n3_sum(const void *context) {
    const one_n3 *one = context;
    return reference_n3(one->x, one->width, one->parts);
}

/* The gradient of one row, added as often as it is meant. */
static void expect_n3(double *grad, const double *x, double weight, int32_t columns, int32_t parts) {
    int32_t units = columns / parts;
    for (int32_t j = 0; j < columns; j++) {
        /* One unit at a time: a whole row would drown it. */
        double unit[4];
        for (int32_t part = 0; part < parts; part++) unit[part] = x[part * units + j % units];
        one_n3 number = {unit, parts, parts};
        grad[j] += weight * lab_slope(unit + j / units, n3_sum, &number);
    }
}

static void check_n3(lab *bench, int32_t count, int32_t width) {
    for (int kind = 0; kind < 6; kind++) {
        bool marked = kind & 1;
        int32_t parts = 1 << kind / 2, rows = lab_between(bench, 1, 12), columns = parts * width;
        int32_t size = rows * columns, *ids = lab_ids(bench, count, 0, rows - 1);
        double *x = lab_random(bench, size, 1), *grad = lab_random(bench, size, 1);
        double weight = 0.75, loss = 2, expected = 2;
        uint8_t touched[12] = {1}, got[12];
        float *grad_on = lab_put(bench, grad, size);
        double *loss_on = lab_put_bytes(bench, &loss, sizeof loss);
        uint8_t *touched_on = lab_put_bytes(bench, touched, sizeof touched);
        assert_int_equal(
            bench->backend->rows->n3_loss(bench->compute, loss_on,
                                          &(vlp_table_gradient){.rows = grad_on,
                                                                .touched = marked ? touched_on : NULL,
                                                                .count = rows,
                                                                .width = columns},
                                          lab_put(bench, x, size), lab_put_ids(bench, ids, count), count,
                                          &(vlp_n3_options){.weight = (float)weight, .parts = parts}),
            VLP_OK);
        for (int32_t i = 0; i < count; i++) {
            one_n3 row = {x + ids[i] * columns, columns, parts};
            if (marked) touch(grad, touched, ids[i], columns);
            expected += weight * n3_sum(&row);
            expect_n3(grad + ids[i] * columns, row.x, weight, columns, parts);
        }
        loss = lab_get_double(bench, loss_on);
        lab_expect("N3", &expected, &loss, 1, 1e-5, 1);
        lab_expect("N3: gradient", grad, lab_get(bench, grad_on, size), size, 2e-4, 1);
        lab_get_bytes(bench, got, touched_on, sizeof got);
        assert_memory_equal(got, touched, sizeof got);
    }
}

static void test_n3(void **state) {
    (void)state;
    for_shapes(check_n3, 9);
}

/* ---- Sums of squares ----------------------------------------------------------------------------- */

static double square_sum(lab *bench, float *values, uint8_t *touched, int32_t rows, int32_t width) {
    const double poison = -3;
    double *out = lab_put_bytes(bench, &poison, sizeof poison);
    bench->backend->rows->square_sum(
        bench->compute, out,
        &(vlp_table_gradient){.rows = values, .touched = touched, .count = rows, .width = width});
    return lab_get_double(bench, out);
}

static void check_squares(lab *bench, int32_t rows, int32_t width) {
    int32_t count = rows * width;
    double *values = lab_random(bench, count, 1), expected = norm_of(values, count), got[2];
    float *on = lab_put(bench, values, count);
    expected *= expected;
    for (int i = 0; i < 2; i++) got[i] = square_sum(bench, on, NULL, rows, width);
    lab_expect("square sum", &expected, got, 1, 1e-5, 0);
    assert_memory_equal(&got[0], &got[1], sizeof got[0]);
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t at = i == 0 ? count - 1 : lab_between(bench, 0, count - 1);
        double kept = values[at], left = 0;
        values[at] = bad[i];
        float *spoiled = lab_put(bench, values, count);
        assert_true(!isfinite(square_sum(bench, spoiled, NULL, rows, width)));
        /* What stands in a row that is not touched does not count. */
        uint8_t touched[400];
        memset(touched, 1, sizeof touched);
        touched[at / width] = 0;
        for (int32_t j = 0; j < count; j++)
            if (j / width != at / width) left += values[j] * values[j];
        got[0] = square_sum(bench, spoiled, lab_put_bytes(bench, touched, sizeof touched), rows, width);
        lab_expect("square sum of some", &left, got, 1, 1e-5, 1e-9);
        values[at] = kept;
    }
    assert_true(square_sum(bench, on, NULL, 0, width) == 0);
}

/* A sum that is added to, weighted. */
static void check_sum(lab *bench, int32_t rows, int32_t width) {
    int32_t count = rows * width;
    double *values = lab_random(bench, count, 1), expected = 5, start = 5, got[2];
    for (int32_t i = 0; i < count; i++) expected += 0.25 * values[i];
    float *on = lab_put(bench, values, count);
    for (int i = 0; i < 2; i++) {
        double *out = lab_put_bytes(bench, &start, sizeof start);
        bench->backend->rows->sum(bench->compute, out, on, count, 0.25);
        got[i] = lab_get_double(bench, out);
    }
    lab_expect("sum", &expected, got, 1, 1e-9, 1);
    assert_memory_equal(&got[0], &got[1], sizeof got[0]);
}

static void test_sum(void **state) {
    (void)state;
    for_shapes(check_sum, 15);
}

static void test_squares(void **state) {
    (void)state;
    for_shapes(check_squares, 10);
}

/* ---- The optimizer ------------------------------------------------------------------------------- */

/* A table with its moments on both sides. */
typedef struct trained {
    int32_t rows, width;
    double *x, *grad;
    reference_moments *moments;
    float *x_on, *first_on, *second_on, *grad_on;
    uint8_t touched[400], *touched_on;
} trained;

static void reference_update(trained *table, const vlp_update *update, double rate, double scale,
                             int step, bool lazy, bool marked) {
    for (int32_t i = 0; i < table->rows * table->width; i++) {
        bool touched = !marked || table->touched[i / table->width];
        if (lazy && !touched) continue;
        double grad = touched ? table->grad[i] * scale : 0;
        table->x[i] *= 1 - rate * (double)update->decay;
        if (update->kind == 0)
            reference_adam(&table->x[i], &table->moments[i], grad, rate, (double)update->beta1,
                           (double)update->beta2, (double)update->epsilon, step);
        else
            reference_adagrad(&table->x[i], &table->moments[i], grad, rate, (double)update->epsilon);
    }
}

/* Copy and norms are those of what stands in the table, in the rows that were moved. */
static void expect_copies(lab *bench, const trained *table, const vlp_updated *updated) {
    int32_t size = table->rows * table->width;
    double *x = lab_get(bench, table->x_on, size), *expected = lab_zeros(bench, size);
    double *norms = lab_get(bench, updated->inverse_norms, table->rows);
    double *copy =
        updated->bf16 ? lab_get_bf16(bench, updated->bf16, &updated->layout, table->rows) : NULL;
    for (int32_t i = 0; i < table->rows; i++) {
        double norm = norm_of(x + i * table->width, table->width);
        double inverse = norm > 1e-12 ? 1 / norm : 0;
        if (updated->lazy && !table->touched[i]) continue;
        lab_expect("norm", &inverse, &norms[i], 1, 1e-4, 1e-3);
        for (int32_t j = 0; j < table->width; j++)
            expected[i * table->width + j] = lab_bf16(x[i * table->width + j]);
        if (copy)
            lab_expect("bf16 copy", expected + i * table->width, copy + i * table->width, table->width,
                       0, 0);
    }
}

static void expect_update(lab *bench, const trained *table, const vlp_updated *updated, bool marked) {
    int32_t size = table->rows * table->width;
    double *second = lab_zeros(bench, size);
    uint8_t touched[400], none[400] = {0};
    for (int32_t i = 0; i < size; i++) second[i] = table->moments[i].second;
    lab_expect("updated table", table->x, lab_get(bench, table->x_on, size), size, 2e-5, 0.1);
    lab_expect("second moments", second, lab_get(bench, table->second_on, size), size, 1e-4, 1e-4);
    expect_copies(bench, table, updated);
    if (!marked) return;
    lab_get_bytes(bench, touched, table->touched_on, (size_t)table->rows);
    assert_memory_equal(touched, none, (size_t)table->rows);
}

/* Tells the backend a step's rates and corrections. */
static void begin_step(lab *bench, const vlp_update *update, vlp_component component, float rate,
                       int step) {
    vlp_step_values values = {.step = step - 1};
    values.rates[component] = rate;
    values.rates[!component] = 7; /* another's */
    values.correction1 = (float)(1 - pow((double)update->beta1, step));
    values.correction2 = (float)(1 - pow((double)update->beta2, step));
    assert_false(bench->backend->steps->begin(bench->compute, NULL, &values));
}

/* Two tables at a time: the second is of one number, a zero, which stays where it is. */
static vlp_updated run_update(lab *bench, const trained *table, const vlp_update *update,
                              vlp_component component, bool lazy, bool marked) {
    bool parts = table->width % 2 == 0;
    double zero = 0;
    vlp_updated updated[2] = {
        {.table = 3,
         .component = component,
         .width = table->width,
         .rows = table->rows,
         .value = table->x_on,
         .grad = table->grad_on,
         .first = update->kind == 0 ? table->first_on : NULL,
         .second = table->second_on,
         .touched = marked ? table->touched_on : NULL,
         .lazy = lazy,
         .inverse_norms = lab_put(bench, lab_zeros(bench, table->rows), table->rows),
         .layout =
             parts ? vlp_bf16_layout_of(2, table->width / 2) : vlp_bf16_layout_of(1, table->width)},
        {.table = 4, .component = component, .width = 1, .rows = 1, .value = lab_put(bench, &zero, 1)}};
    updated[1].grad = lab_put(bench, &zero, 1);
    updated[1].first = lab_put(bench, &zero, 1);
    updated[1].second = lab_put(bench, &zero, 1);
    if (bench->backend->bf16) {
        updated[0].bf16 = lab_bf16_places(bench, &updated[0].layout, table->rows);
        bench->backend->bf16->convert_rows(bench->compute, updated[0].bf16, &updated[0].layout,
                                           table->x_on, table->width, table->rows);
    }
    bench->backend->optimizer->update(bench->compute, update, updated, 2);
    lab_expect("the other table", &zero, lab_get(bench, updated[1].value, 1), 1, 0, 0);
    return updated[0];
}

/* A gradient that is not finite is named; where a row is not touched, what stands there does not count.
 */
static void expect_fault(lab *bench, trained *table, int kind, bool lazy, bool marked) {
    int32_t size = table->rows * table->width, at = lab_between(bench, 0, size - 1);
    for (int spoiled = 0; spoiled < 2; spoiled++) {
        vlp_step_report report = {.scales = {1, 1}};
        vlp_update update = {.kind = kind, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f};
        update.report = lab_put_bytes(bench, &report, sizeof report);
        double *grad = lab_random(bench, size, 1);
        memset(table->touched, 1, sizeof table->touched);
        table->touched[at / table->width] = (uint8_t)spoiled;
        grad[at] = spoiled ? INFINITY : NAN;
        if (!spoiled && !marked) continue;
        table->grad_on = lab_put(bench, grad, size);
        table->touched_on = lab_put_bytes(bench, table->touched, (size_t)table->rows);
        begin_step(bench, &update, 0, 0.05f, 9);
        run_update(bench, table, &update, 0, lazy, marked);
        lab_get_bytes(bench, &report, update.report, sizeof report);
        assert_int_equal(report.fault, spoiled ? VLP_FAULT_TABLE + 3 : VLP_FAULT_NONE);
        if (spoiled) assert_int_equal(report.fault_step, 8);
    }
}

static void train_table(lab *bench, trained *table, int kind, bool lazy, bool marked) {
    int32_t size = table->rows * table->width;
    for (int step = 1; step <= 5; step++) {
        vlp_component component = step % 2 ? VLP_VERTICAL : VLP_HORIZONTAL;
        vlp_update update = {.kind = kind, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f};
        if (step % 2) update.decay = 0.4f;
        vlp_step_report report = {.scales = {0.5f, 0.75f}};
        double scale = step % 3 ? (double)report.scales[component] : 1;
        if (step % 3) update.report = lab_put_bytes(bench, &report, sizeof report);
        begin_step(bench, &update, component, 0.05f, step);
        table->grad = lab_random(bench, size, 1);
        for (int32_t i = 0; i < table->rows; i++)
            table->touched[i] = (uint8_t)(lab_between(bench, 0, 1) && marked);
        table->grad_on = lab_put(bench, table->grad, size);
        table->touched_on = lab_put_bytes(bench, table->touched, (size_t)table->rows);
        vlp_updated updated = run_update(bench, table, &update, component, lazy, marked);
        reference_update(table, &update, (double)0.05f, scale, step, lazy, marked);
        expect_update(bench, table, &updated, marked);
    }
    /* After a fault nothing moves. */
    vlp_step_report faulty = {.scales = {1, 1}, .fault = VLP_FAULT_TABLE};
    vlp_update update = {.kind = kind, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .decay = 1};
    update.report = lab_put_bytes(bench, &faulty, sizeof faulty);
    double *before = lab_get(bench, table->x_on, size);
    table->grad_on = lab_put(bench, lab_random(bench, size, 1), size);
    run_update(bench, table, &update, 0, lazy, marked);
    lab_expect_same_bits(bench, "after a fault", before, table->x_on, size);
    expect_fault(bench, table, kind, lazy, marked);
}

static void check_update(lab *bench, int32_t rows, int32_t width) {
    for (int kind = 0; kind < 6; kind++) { /* Adam, Adagrad; dense, lazy, dense without marks */
        int32_t size = rows * width;
        trained table = {.rows = rows, .width = width, .x = lab_random(bench, size, 1)};
        table.moments = calloc((size_t)size, sizeof *table.moments);
        assert_non_null(table.moments);
        table.x_on = lab_put(bench, table.x, size);
        table.first_on = lab_put(bench, lab_zeros(bench, size), size);
        table.second_on = lab_put(bench, lab_zeros(bench, size), size);
        train_table(bench, &table, kind % 2, kind / 2 == 1, kind / 2 < 2);
        free(table.moments);
    }
}

static void test_update(void **state) {
    (void)state;
    for_shapes(check_update, 11);
}

/* ---- The check of a step ---------------------------------------------------------------------- */

static vlp_step_report checked(lab *bench, vlp_step_report report, vlp_step_check check, int64_t step) {
    vlp_step_report *on = lab_put_bytes(bench, &report, sizeof report);
    vlp_step_values values = {.step = step};
    assert_false(bench->backend->steps->begin(bench->compute, NULL, &values));
    bench->backend->steps->check(bench->compute, on, &check);
    lab_get_bytes(bench, &report, on, sizeof report);
    lab_clear(bench);
    return report;
}

static void test_check_step(void **state) {
    (void)state;
    lab bench;
    lab_open(&bench, 1, SEED);
    const uint32_t all = (1u << VLP_MAX_TABLES) - 1;
    vlp_step_check embeddings = {VLP_HORIZONTAL, 3, 5}, aggregator = {VLP_VERTICAL, all & ~3u, 5};
    vlp_step_report good = {.losses = {1, 2}, .squares = {9, 16, 50, 50}, .scales = {7, 7}};
    vlp_step_report report = checked(&bench, good, embeddings, 7);
    assert_int_equal(report.fault, VLP_FAULT_NONE);
    assert_true(report.scales[0] == 1 && report.scales[1] == 7);
    report = checked(&bench, good, aggregator, 7);
    assert_int_equal(report.fault, VLP_FAULT_NONE);
    assert_true(report.scales[0] == 7 && report.scales[1] == 0.5f);
    aggregator.clip = 0;
    assert_true(checked(&bench, good, aggregator, 7).scales[1] == 1);
    for (int table = 0; table < VLP_MAX_TABLES; table++) {
        vlp_step_report bad = good;
        bad.squares[table] = table % 2 ? NAN : INFINITY;
        bad.squares[VLP_MAX_TABLES - 1] = NAN;
        vlp_step_check mine = table < 2 ? embeddings : aggregator,
                       other = table < 2 ? aggregator : embeddings;
        report = checked(&bench, bad, mine, 7 + table);
        assert_int_equal(report.fault, VLP_FAULT_TABLE + table);
        assert_int_equal(report.fault_step, 7 + table);
        /* The first fault stays. */
        report.losses[other.component] = NAN;
        report = checked(&bench, report, other, 20);
        assert_int_equal(report.fault, VLP_FAULT_TABLE + table);
        assert_int_equal(report.fault_step, 7 + table);
        /* Tables that are not updated are not checked. */
        mine.tables &= all >> 1 & ~(1u << table);
        assert_int_equal(checked(&bench, bad, mine, 7).fault, VLP_FAULT_NONE);
    }
    /* Nor is the loss of the other component, which may not be computed yet. */
    good.losses[VLP_VERTICAL] = NAN;
    assert_int_equal(checked(&bench, good, aggregator, 7).fault, VLP_FAULT_LOSS + VLP_VERTICAL);
    assert_int_equal(checked(&bench, good, embeddings, 7).fault, VLP_FAULT_NONE);
    good.losses[VLP_HORIZONTAL] = -INFINITY;
    assert_int_equal(checked(&bench, good, embeddings, 7).fault, VLP_FAULT_LOSS + VLP_HORIZONTAL);
    lab_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_product),
        cmocka_unit_test(test_gather),       cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_mean), cmocka_unit_test(test_add),
        cmocka_unit_test(test_norms),        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_dropout),      cmocka_unit_test(test_n3),
        cmocka_unit_test(test_squares),      cmocka_unit_test(test_update),
        cmocka_unit_test(test_sum),          cmocka_unit_test(test_check_step),
    };
    return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
