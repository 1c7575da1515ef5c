/* One fused pass: read gradient and moments, write moments and parameters. */
#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"

/* An update with the numbers of its step. */
typedef struct row_update {
    float rate, keep, beta1, beta2, epsilon, correction1, correction2, scale;
} row_update;

VLP_CLONES static void adam_row(const row_update *u, float *x, const float *g, float *m, float *v,
                                int32_t width) {
    float step = u->rate / u->correction1, root = 1.0f / sqrtf(u->correction2);
    for (int32_t j = 0; j < width; j++) {
        float grad = g[j] * u->scale;
        m[j] = u->beta1 * m[j] + (1.0f - u->beta1) * grad;
        v[j] = u->beta2 * v[j] + (1.0f - u->beta2) * grad * grad;
        x[j] = u->keep * x[j] - step * m[j] / (sqrtf(v[j]) * root + u->epsilon);
    }
}

VLP_CLONES static void adagrad_row(const row_update *u, float *x, const float *g, float *v,
                                   int32_t width) {
    for (int32_t j = 0; j < width; j++) {
        float grad = g[j] * u->scale;
        v[j] += grad * grad;
        x[j] = u->keep * x[j] - u->rate * grad / (sqrtf(v[j]) + u->epsilon);
    }
}

/* Zero times a finite number is zero. */
VLP_CLONES static bool is_finite_row(const float *g, int32_t width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t j = 0; j < width; j++) sum += g[j] * 0.0f;
    return sum == 0;
}

static bool update_row(const row_update *row, const vlp_updated *table, int kind, int64_t i) {
    int64_t at = i * table->width;
    float *grad = table->grad + at;
    if (table->touched && !table->touched[i]) {
        /* A zero gradient changes nothing of Adagrad's. */
        if (table->lazy || (kind != 0 && row->keep == 1)) return true;
        memset(grad, 0, (size_t)table->width * sizeof *grad);
    }
    if (table->touched) table->touched[i] = 0;
    if (kind == 0)
        adam_row(row, table->value + at, grad, table->first + at, table->second + at, table->width);
    else
        adagrad_row(row, table->value + at, grad, table->second + at, table->width);
    return is_finite_row(grad, table->width);
}

static bool update_table(vlp_compute *compute, const row_update *row, const vlp_updated *table,
                         int kind) {
    bool finite = true;
#pragma omp parallel for num_threads(compute->threads) schedule(static) reduction(&& : finite)         \
    if (table->rows * table->width > 16384)
    for (int64_t i = 0; i < table->rows; i++) finite = update_row(row, table, kind, i) && finite;
    if (table->inverse_norms)
        cpu_inverse_norms(compute, table->inverse_norms, table->value, table->rows, table->width);
    return finite;
}

static void update_tables(vlp_compute *compute, const vlp_update *update, const vlp_updated *tables,
                          int32_t count) {
    assert(count <= VLP_MAX_TABLES);
    const vlp_step_values *values = &compute->values;
    vlp_step_report *report = update->report;
    if (report && report->fault != VLP_FAULT_NONE) return;
    for (int32_t i = 0; i < count; i++) {
        assert(tables[i].table >= 0 && tables[i].table < VLP_MAX_TABLES);
        float rate = values->rates[tables[i].component];
        row_update row = {.rate = rate,
                          .keep = 1 - rate * update->decay,
                          .beta1 = update->beta1,
                          .beta2 = update->beta2,
                          .epsilon = update->epsilon,
                          .correction1 = values->correction1,
                          .correction2 = values->correction2,
                          .scale = report ? report->scales[tables[i].component] : 1.0f};
        bool finite = update_table(compute, &row, &tables[i], update->kind);
        if (finite || !report || report->fault != VLP_FAULT_NONE) continue;
        report->fault = VLP_FAULT_TABLE + tables[i].table;
        report->fault_step = values->step;
    }
}

const vlp_optimizer_operations cpu_optimizer_operations = {.update = update_tables};
