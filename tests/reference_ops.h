/* The formulas of the method in double precision, one vector at a time, written from the definitions:
 * slow, obvious, and sharing nothing with a backend but the types that name a formula. */
#ifndef VLP_TESTS_REFERENCE_OPS_H
#define VLP_TESTS_REFERENCE_OPS_H

#include "compute/backend.h"
#include "tables.h"

/* ---- The horizontal score ---- */
/* q (query_width) from h (entity_width) and the relation's row; `linear`: without b_r. */
void reference_query(const vlp_form *form, double *q, const double *h, const double *r, bool linear);
/* k (query_width) = W_r2 t. */
void reference_answer(const vlp_form *form, double *k, const double *t, const double *r);
double reference_similarity(const vlp_form *form, const double *q, const double *k);
/* f_g of one triple straight from the table of models, without a form in between. */
double reference_score(const vlp_model_options *model, const double *h, const double *r,
                       const double *t);

/* ---- Models to test, of dim 0 until they are sized ---- */
/* Every model, with either norm where there is a choice. */
int32_t reference_model_count(void);
vlp_model_options reference_model(int32_t index);
/* With this dim; a model that has a relation_dim gets this one. */
vlp_model_options reference_sized(vlp_model_options model, int32_t dim, int32_t relation_dim);
bool reference_has_matrices(const vlp_model_options *model);

/* ---- Losses of one row ---- */
/* p1 (width) of scores (width); the first is the positive's and gets 0, as do pairs of -inf. */
void reference_weights(const vlp_weight_form *form, double *p1, const double *scores, int32_t width);
/* (-log s(positive) - sum p1 log s(-negative)) / 2; p1 does not move with the scores. */
double reference_negative_loss(const double *scores, const double *p1, int32_t width);
/* Cross-entropy of softmax(temperature scale[j] logits[j] + offset[j]); NULL: 1, 0. */
double reference_softmax_loss(const double *logits, int32_t answer, const double *scale,
                              const double *offset, double temperature, int64_t columns);
/* Binary cross-entropy of the sigmoids of logits with targets, summed over columns. */
double reference_binary_loss(const double *logits, const double *targets, int64_t columns);
/* Sum of |x|^3 over units of `parts` numbers, which are width / parts apart. */
double reference_n3(const double *x, int32_t width, int32_t parts);

/* ---- The vertical score ---- */
typedef struct reference_head {
    const vlp_form *form;
    const double *tables[TABLES]; /* as a model's */
} reference_head;

/* t' (entity_width), before it is normal, of one query with `count` references. */
void reference_aggregator_output(const reference_head *head, double *output, int32_t entity,
                                 int32_t relation, const int32_t *reference_heads,
                                 const int32_t *reference_answers, int32_t count);
double reference_cosine(const double *left, const double *right, int32_t width);

/* ---- The optimizer ---- */
typedef struct reference_moments {
    double first, second;
} reference_moments;

/* Step number `step`, from 1, of one parameter. */
void reference_adam(double *x, reference_moments *moments, double grad, double rate, double beta1,
                    double beta2, double epsilon, int step);
void reference_adagrad(double *x, reference_moments *moments, double grad, double rate, double epsilon);

#endif
