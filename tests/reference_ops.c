#include "reference_ops.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The horizontal score ------------------------------------------------------------------------ */

/* C11's CMPLX, which clang's headers do not have. */
static double complex complex_of(double re, double im) {
    return re + im * I;
}

/* Number j of a row of complex numbers in halves. */
static double complex number(const double *x, int32_t width, int32_t j) {
    return complex_of(x[j], x[width / 2 + j]);
}

static void put_number(double *x, int32_t width, int32_t j, double complex z) {
    x[j] = creal(z);
    x[width / 2 + j] = cimag(z);
}

/* W x, W (rows, columns). */
static void apply(double *y, const double *w, const double *x, int32_t rows, int32_t columns) {
    for (int32_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (int32_t j = 0; j < columns; j++) y[i] += w[i * columns + j] * x[j];
    }
}

/* x without its part along w. */
static void project(double *y, const double *w, const double *x, int32_t width) {
    double dot = 0, square = 0;
    for (int32_t j = 0; j < width; j++) {
        dot += w[j] * x[j];
        square += w[j] * w[j];
    }
    for (int32_t j = 0; j < width; j++) y[j] = x[j] - (square > 0 ? dot / square : 0) * w[j];
}

/* The Hamilton product of quaternions j of a and b, by the table of i, j and k. */
static void add_hamilton(double *out, const double *a, const double *b) {
    static const int unit[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    static const int sign[4][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, -1, -1, 1}, {1, 1, -1, -1}};
    for (int m = 0; m < 4; m++)
        for (int n = 0; n < 4; n++) out[unit[m][n]] += sign[m][n] * a[m] * b[n];
}

/* h (x) r / |r|, quaternion by quaternion. */
static void rotate_quaternions(double *q, const double *h, const double *r, int32_t columns) {
    for (int32_t j = 0; j < columns; j++) {
        double a[4], b[4], out[4] = {0, 0, 0, 0}, norm = 0;
        for (int part = 0; part < 4; part++) {
            a[part] = h[part * columns + j];
            b[part] = r[part * columns + j];
            norm = hypot(norm, b[part]);
        }
        add_hamilton(out, a, b);
        for (int part = 0; part < 4; part++) q[part * columns + j] = norm > 0 ? out[part] / norm : 0;
    }
}

void reference_query(const vlp_form *form, double *q, const double *h, const double *r, bool linear) {
    int32_t d = form->entity_width, width = form->query_width;
    switch (form->transform) {
    case VLP_TRANSLATE:
        for (int32_t j = 0; j < width; j++) q[j] = h[j] + (linear ? 0 : r[j]);
        return;
    case VLP_SCALE:
        for (int32_t j = 0; j < width; j++) q[j] = r[j] * h[j];
        return;
    case VLP_SCALE_COMPLEX:
        for (int32_t j = 0; j < width / 2; j++)
            put_number(q, width, j, number(r, width, j) * number(h, width, j));
        return;
    case VLP_ROTATE:
        for (int32_t j = 0; j < width / 2; j++)
            put_number(q, width, j, cexp(I * (double)form->phase_scale * r[j]) * number(h, width, j));
        return;
    case VLP_PAIR:
        for (int32_t j = 0; j < width; j++) q[j] = r[j] * h[j];
        return;
    case VLP_HYPERPLANE:
        project(q, r + width, h, width);
        for (int32_t j = 0; j < width && !linear; j++) q[j] += r[j];
        return;
    case VLP_QUATERNION:
        rotate_quaternions(q, h, r, width / 4);
        return;
    case VLP_MATRIX_TRANSPOSED:
        for (int32_t j = 0; j < width; j++) {
            q[j] = 0;
            for (int32_t i = 0; i < d; i++) q[j] += r[i * d + j] * h[i];
        }
        return;
    case VLP_MATRIX_TRANSLATE:
        apply(q, r, h, width, d);
        for (int32_t i = 0; i < width && !linear; i++) q[i] += r[width * d + i];
        return;
    }
    abort();
}

void reference_answer(const vlp_form *form, double *k, const double *t, const double *r) {
    int32_t width = form->query_width;
    switch (form->transform) {
    case VLP_TRANSLATE:
    case VLP_SCALE:
    case VLP_SCALE_COMPLEX:
    case VLP_ROTATE:
    case VLP_QUATERNION:
    case VLP_MATRIX_TRANSPOSED:
        for (int32_t j = 0; j < width; j++) k[j] = t[j];
        return;
    case VLP_PAIR:
        for (int32_t j = 0; j < width; j++) k[j] = r[width + j] * t[j];
        return;
    case VLP_HYPERPLANE:
        project(k, r + width, t, width);
        return;
    case VLP_MATRIX_TRANSLATE:
        apply(k, r, t, width, form->entity_width);
        return;
    }
    abort();
}

double reference_similarity(const vlp_form *form, const double *q, const double *k) {
    int32_t width = form->query_width;
    double sum = 0;
    switch (form->similarity) {
    case VLP_DOT:
        for (int32_t j = 0; j < width; j++) sum += q[j] * k[j];
        return sum;
    case VLP_MINUS_L1:
        for (int32_t j = 0; j < width; j++) sum += fabs(q[j] - k[j]);
        return (double)form->margin - sum;
    case VLP_MINUS_L2:
        for (int32_t j = 0; j < width; j++) sum = hypot(sum, q[j] - k[j]);
        return (double)form->margin - sum;
    case VLP_MINUS_MODULUS:
        for (int32_t j = 0; j < width / 2; j++) sum += cabs(number(q, width, j) - number(k, width, j));
        return (double)form->margin - sum;
    }
    abort();
}

static double power_sum(double value, int32_t norm) {
    return norm == VLP_NORM_L1 ? fabs(value) : value * value;
}

double reference_score(const vlp_model_options *model, const double *h, const double *r,
                       const double *t) {
    int32_t d = model->dim, d_r = model->relation_dim > 0 ? model->relation_dim : d;
    double sum = 0;
    double complex product = 0;
    switch (model->kind) {
    case VLP_MODEL_RESCAL: /* h^T W t */
        for (int32_t i = 0; i < d; i++)
            for (int32_t j = 0; j < d; j++) sum += h[i] * r[i * d + j] * t[j];
        return sum;
    case VLP_MODEL_DISTMULT:
        for (int32_t j = 0; j < d; j++) sum += h[j] * r[j] * t[j];
        return sum;
    case VLP_MODEL_COMPLEX: /* Re <r o h, conj t> */
        for (int32_t j = 0; j < d; j++)
            product +=
                complex_of(h[j], h[d + j]) * complex_of(r[j], r[d + j]) * complex_of(t[j], -t[d + j]);
        return creal(product);
    case VLP_MODEL_ROTATE: /* theta = rho pi d / (margin + 2) */
        for (int32_t j = 0; j < d; j++)
            sum += cabs(cexp(I * (r[j] * M_PI * d / (model->margin + 2))) * complex_of(h[j], h[d + j]) -
                        complex_of(t[j], t[d + j]));
        return model->margin - sum;
    case VLP_MODEL_TRANSE:
        for (int32_t j = 0; j < d; j++) sum += power_sum(h[j] + r[j] - t[j], model->norm);
        break;
    case VLP_MODEL_TRANSR:
        for (int32_t i = 0; i < d_r; i++) {
            double difference = r[d_r * d + i];
            for (int32_t j = 0; j < d; j++) difference += r[i * d + j] * (h[j] - t[j]);
            sum += power_sum(difference, model->norm);
        }
        break;
    case VLP_MODEL_PAIRRE:
        for (int32_t j = 0; j < d; j++) sum += fabs(h[j] * r[j] - t[j] * r[d + j]);
        return model->margin - sum;
    case VLP_MODEL_TRANSH: { /* the difference h - t, projected */
        double difference[256] = {0}, projected[256] = {0};
        for (int32_t j = 0; j < d; j++) difference[j] = h[j] - t[j];
        project(projected, r + d, difference, d);
        for (int32_t j = 0; j < d; j++) sum += power_sum(projected[j] + r[j], model->norm);
        break;
    }
    case VLP_MODEL_QUATE: {
        double q[256] = {0};
        rotate_quaternions(q, h, r, d);
        for (int32_t j = 0; j < 4 * d; j++) sum += q[j] * t[j];
        return sum;
    }
    default:
        abort();
    }
    return model->margin - (model->norm == VLP_NORM_L1 ? sum : sqrt(sum));
}

/* ---- Models to test ------------------------------------------------------------------------------ */

static int32_t norms_of(int32_t kind) {
    return vlp_model_row_of(kind)->has_norm ? 2 : 1;
}

int32_t reference_model_count(void) {
    int32_t count = 0;
    for (int32_t kind = 0; kind < VLP_MODELS; kind++) count += norms_of(kind);
    return count;
}

vlp_model_options reference_model(int32_t index) {
    int32_t kind = 0, norm = index;
    while (norm >= norms_of(kind)) norm -= norms_of(kind++);
    return (vlp_model_options){.kind = kind, .norm = norm, .margin = 2.25 + 5 * index % 8};
}

vlp_model_options reference_sized(vlp_model_options model, int32_t dim, int32_t relation_dim) {
    model.dim = dim;
    if (vlp_model_row_of(model.kind)->relation_dim_array) model.relation_dim = relation_dim;
    return model;
}

bool reference_has_matrices(const vlp_model_options *model) {
    return vlp_transform_traits_of(vlp_model_row_of(model->kind)->transform).matrix;
}

/* ---- Losses -------------------------------------------------------------------------------------- */

/* w of the paper's p1 = exp(w) / sum of exp(w). */
static double weight_exponent(const vlp_weight_form *form, double n, double c) {
    double a1 = (double)form->alpha1, a2 = (double)form->alpha2, tau = (double)form->tau;
    switch (form->kind) {
    case VLP_WEIGH_EVEN:
        return 0;
    case VLP_WEIGH_SELF_ADVERSARIAL:
        return a1 * n;
    case VLP_WEIGH_RED:
        if (n > c + tau) return a1 * (form->continuous ? c + tau : c) - a2 * (n - (c + tau));
        return a1 * n;
    }
    abort();
}

void reference_weights(const vlp_weight_form *form, double *p1, const double *scores, int32_t width) {
    double total = 0;
    for (int32_t j = 0; j < width; j++) {
        bool there = j > 0 && !isinf(scores[j]);
        p1[j] = there ? exp(weight_exponent(form, scores[j], scores[0])) : 0;
        total += p1[j];
    }
    for (int32_t j = 0; j < width; j++)
        if (p1[j] > 0) p1[j] /= total;
}

static double minus_log_sigmoid(double x) {
    return x > -700 ? log1p(exp(-x)) : -x;
}

double reference_negative_loss(const double *scores, const double *p1, int32_t width) {
    double loss = minus_log_sigmoid(scores[0]);
    for (int32_t j = 1; j < width; j++)
        if (p1[j] > 0) loss += p1[j] * minus_log_sigmoid(-scores[j]);
    return loss / 2;
}

double reference_softmax_loss(const double *logits, int32_t answer, const double *scale,
                              const double *offset, double temperature, int64_t columns) {
    double most = -INFINITY, total = 0, gold = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < columns; j++) {
            double logit = temperature * (scale ? scale[j] : 1) * logits[j] + (offset ? offset[j] : 0);
            if (pass == 0)
                most = fmax(most, logit);
            else
                total += exp(logit - most);
            if (j == answer) gold = logit;
        }
    return most + log(total) - gold;
}

double reference_binary_loss(const double *logits, const double *targets, int64_t columns) {
    double loss = 0;
    for (int64_t j = 0; j < columns; j++)
        loss += targets[j] * log(1 + exp(-logits[j])) + (1 - targets[j]) * log(1 + exp(logits[j]));
    return loss;
}

double reference_n3(const double *x, int32_t width, int32_t parts) {
    double sum = 0;
    for (int32_t j = 0; j < width / parts; j++) {
        double square = 0;
        for (int32_t part = 0; part < parts; part++)
            square += x[part * (width / parts) + j] * x[part * (width / parts) + j];
        sum += pow(sqrt(square), 3);
    }
    return sum;
}

/* ---- The vertical score -------------------------------------------------------------------------- */

/* out += share (W x + b). */
static void add_layer(double *out, const double *w, const double *b, const double *x, double share,
                      int32_t rows, int32_t columns) {
    for (int32_t i = 0; i < rows; i++) {
        double sum = b[i];
        for (int32_t j = 0; j < columns; j++) sum += w[i * columns + j] * x[j];
        out[i] += share * sum;
    }
}

/* Reference by reference, as the paper writes it; nothing is taken out of the mean. */
void reference_aggregator_output(const reference_head *head, double *output, int32_t entity,
                                 int32_t relation, const int32_t *reference_heads,
                                 const int32_t *reference_answers, int32_t count) {
    int32_t d = head->form->entity_width, width = head->form->query_width;
    const double *entities = head->tables[VLP_TABLE_ENTITIES], *const *tables = head->tables;
    const double *r = tables[VLP_TABLE_RELATIONS] + relation * head->form->relation_width;
    const double *h = entities + entity * d;
    double *concat = calloc((size_t)(3 * d + 3 * width), sizeof *concat);
    double *k = concat + d + width, *s = k + width, *difference = s + width;
    if (!concat) abort();
    for (int32_t n = 0; n < count; n++) {
        for (int32_t j = 0; j < d; j++) difference[j] = h[j] - entities[reference_heads[n] * d + j];
        reference_answer(head->form, k, entities + reference_answers[n] * d, r);
        reference_query(head->form, s, difference, r, true);
        add_layer(concat, tables[TABLE_NODE], tables[TABLE_NODE_BIAS], k, 1.0 / count, d, width);
        add_layer(concat, tables[TABLE_EDGE], tables[TABLE_EDGE_BIAS], s, 1.0 / count, d, width);
    }
    reference_query(head->form, concat + d, h, r, false);
    for (int32_t j = 0; j < d; j++) output[j] = 0;
    add_layer(output, tables[TABLE_OUTPUT], tables[TABLE_OUTPUT_BIAS], concat, 1, d, d + width);
    for (int32_t j = 0; j < d; j++) output[j] = tanh(output[j]);
    free(concat);
}

double reference_cosine(const double *left, const double *right, int32_t width) {
    double dot = 0, left_square = 0, right_square = 0;
    for (int32_t j = 0; j < width; j++) {
        dot += left[j] * right[j];
        left_square += left[j] * left[j];
        right_square += right[j] * right[j];
    }
    double norms = sqrt(left_square) * sqrt(right_square);
    return norms > 0 ? dot / norms : 0;
}

/* ---- The optimizer ------------------------------------------------------------------------------- */

void reference_adam(double *x, reference_moments *moments, double grad, double rate, double beta1,
                    double beta2, double epsilon, int step) {
    moments->first = beta1 * moments->first + (1 - beta1) * grad;
    moments->second = beta2 * moments->second + (1 - beta2) * pow(grad, 2);
    double mean = moments->first / (1 - pow(beta1, step));
    double square = moments->second / (1 - pow(beta2, step));
    *x -= rate * mean / (sqrt(square) + epsilon);
}

void reference_adagrad(double *x, reference_moments *moments, double grad, double rate, double epsilon) {
    moments->second += pow(grad, 2);
    *x -= rate * grad / (sqrt(moments->second) + epsilon);
}
