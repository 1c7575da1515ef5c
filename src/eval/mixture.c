#include "eval/mixture.h"

/* 10^-4 .. 10^2 in quarters of a decade. */
static const float lambda[] = {1e-4f,      1.7783e-4f, 3.1623e-4f, 5.6234e-4f, 1e-3f,
                               1.7783e-3f, 3.1623e-3f, 5.6234e-3f, 1e-2f,      1.7783e-2f,
                               3.1623e-2f, 5.6234e-2f, 1e-1f,      1.7783e-1f, 3.1623e-1f,
                               5.6234e-1f, 1,          1.7783f,    3.1623f,    5.6234f,
                               10,         17.783f,    31.623f,    56.234f,    100};

/* Of f_c beside f_p: 10^-1 .. 10^2 in halves of a decade. */
static const float vertical[] = {1e-1f, 3.1623e-1f, 1, 3.1623f, 10, 31.623f, 100};

/* In the order in which they are combined: f_p + mu f_c + lambda f_g. The weights of the first component
 * of a run are not read: it has weight 1. A new component adds a row, with the weights its scores need
 * beside those before it. */
static const vlp_weight_axis axes[VLP_COMPONENTS] = {
    {VLP_PATH, NULL, 0},
    {VLP_VERTICAL, vertical, sizeof vertical / sizeof *vertical},
    {VLP_HORIZONTAL, lambda, sizeof lambda / sizeof *lambda}};

vlp_mixture vlp_mixture_alone(vlp_component component) {
    vlp_mixture mixture = {{0}};
    mixture.weights[component] = 1;
    return mixture;
}

vlp_mixture vlp_mixture_default(unsigned components) {
    if (components == (1u << VLP_HORIZONTAL | 1u << VLP_VERTICAL))
        return (vlp_mixture){.weights = {[VLP_HORIZONTAL] = 0.05f, [VLP_VERTICAL] = 1}};
    if (components >> VLP_PATH & 1) return vlp_mixture_alone(VLP_PATH);
    vlp_mixture mixture = {{0}};
    for (int c = 0; c < VLP_COMPONENTS; c++) mixture.weights[c] = (float)(components >> c & 1);
    return mixture;
}

int64_t vlp_mixtures_of(vlp_mixture *out, const vlp_weight_axis *given, int32_t count) {
    if (count == 0) return 0;
    const vlp_weight_axis *axis = &given[count - 1];
    vlp_mixture alone = vlp_mixture_alone(axis->component);
    int64_t before = vlp_mixtures_of(out, given, count - 1);
    int64_t each = 1 + (int64_t)axis->count, all = before * each + 1;
    if (!out) return all;
    /* From the last on: a mixture is read before its place is written. */
    for (int64_t i = before - 1; i >= 0; i--) {
        vlp_mixture base = out[i];
        for (int64_t j = 0; j < each; j++) {
            out[i * each + j] = base;
            if (j > 0) out[i * each + j].weights[axis->component] = axis->weights[j - 1];
        }
    }
    out[all - 1] = alone;
    return all;
}

vlp_status vlp_mixture_grid(vlp_mixture **out, int32_t *count, unsigned components) {
    vlp_weight_axis present[VLP_COMPONENTS];
    int32_t used = 0;
    for (int i = 0; i < VLP_COMPONENTS; i++)
        if (components >> axes[i].component & 1) present[used++] = axes[i];
    *count = (int32_t)vlp_mixtures_of(NULL, present, used);
    *out = vlp_alloc((size_t)*count, sizeof **out);
    if (!*out) return vlp_fail_memory("mixtures");
    vlp_mixtures_of(*out, present, used);
    return VLP_OK;
}
