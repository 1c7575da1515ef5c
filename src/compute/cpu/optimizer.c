/* One fused pass: read gradient and moments, write moments and parameters, clear the gradient. */
#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"

/* An update with the numbers of its step. */
typedef struct row_update {
    float rate, beta1, beta2, epsilon, correction1, correction2, scale;
} row_update;

VLP_CLONES static void adam_row(const row_update *u, float *x, float *g, float *m, float *v,
                                int32_t width) {
    float step = u->rate / u->correction1, root = 1.0f / sqrtf(u->correction2);
    for (int32_t j = 0; j < width; j++) {
        float grad = g[j] * u->scale;
        m[j] = u->beta1 * m[j] + (1.0f - u->beta1) * grad;
        v[j] = u->beta2 * v[j] + (1.0f - u->beta2) * grad * grad;
        x[j] -= step * m[j] / (sqrtf(v[j]) * root + u->epsilon);
        g[j] = 0;
    }
}

VLP_CLONES static void adagrad_row(const row_update *u, float *x, float *g, float *v, int32_t width) {
    for (int32_t j = 0; j < width; j++) {
        float grad = g[j] * u->scale;
        v[j] += grad * grad;
        x[j] -= u->rate * grad / (sqrtf(v[j]) + u->epsilon);
        g[j] = 0;
    }
}

void cpu_update(vlp_compute *compute, const vlp_update *update, float *table, float *grad, float *first,
                float *second, uint8_t *touched, bool lazy, int64_t rows, int32_t width) {
    const vlp_step_values *values = &compute->values;
    const vlp_step_report *report = update->report;
    if (report && report->fault != VLP_FAULT_NONE) return;
    row_update row = {.rate = values->rates[update->group],
                      .beta1 = update->beta1,
                      .beta2 = update->beta2,
                      .epsilon = update->epsilon,
                      .correction1 = values->correction1,
                      .correction2 = values->correction2,
                      .scale = report ? report->scales[update->group] : 1.0f};
#pragma omp parallel for num_threads(compute->threads) schedule(static) if (rows * width > 16384)
    for (int64_t i = 0; i < rows; i++) {
        if (lazy && !touched[i]) continue;
        if (touched) touched[i] = 0;
        int64_t at = i * width;
        if (update->kind == 0)
            adam_row(&row, table + at, grad + at, first + at, second + at, width);
        else
            adagrad_row(&row, table + at, grad + at, second + at, width);
    }
}
