/* The vertical loss L1 of a step: cross-entropy of softmax(temperature cos(t', t)) over all entities, or
 * over a sampled set.
 *
 * The sampled set holds the answers of the batch, and `candidates` others drawn uniformly without
 * replacement. Each of these stands for (entities - answers) / candidates of its kind, which is added to
 * its logit as a logarithm: the sum over the set is then an unbiased estimate of the sum over all. */
#include <math.h>
#include <string.h>

#include "learn/order.h"
#include "learn/trainer_inside.h"

/* Chooses the columns of a step's softmax, on the host. Returns how many there are. */
static int32_t choose_columns(vlp_trainer *trainer, int64_t step) {
    int32_t entities = trainer->model->entities, used = 0;
    for (int32_t i = 0; i < trainer->batch; i++) {
        int32_t answer = trainer->answers[i];
        if (trainer->column_of[answer] < 0) {
            trainer->column_of[answer] = used;
            trainer->columns[used++] = answer;
        }
        trainer->column_answers[i] = trainer->column_of[answer];
    }
    int32_t answers = used, wanted = trainer->settings->candidates;
    if (wanted > entities - answers) wanted = entities - answers;
    for (int64_t i = 0; used < answers + wanted; i++) {
        int32_t entity = (int32_t)vlp_permuted(
            i, entities, trainer->settings->seed ^ VLP_STREAM_CANDIDATES, (uint64_t)step);
        if (trainer->column_of[entity] < 0) trainer->columns[used++] = entity;
    }
    float correction = wanted > 0 ? logf((float)(entities - answers) / (float)wanted) : 0;
    for (int32_t i = 0; i < used; i++) trainer->offsets[i] = i < answers ? 0 : correction;
    for (int32_t i = 0; i < answers; i++) trainer->column_of[trainer->columns[i]] = -1;
    return used;
}

/* What the softmax runs over: rows, one over their norms, offsets and the answers' places. */
typedef struct candidate_set {
    const float *rows, *inverse_norms, *offsets;
    const int32_t *answers;
    int32_t count;
} candidate_set;

static candidate_set open_candidates(vlp_trainer *trainer, int64_t step) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const float *entities = model->tables[VLP_TABLE_ENTITIES].value;
    int32_t e = model->form.entity_width;
    candidate_set set = {entities, trainer->inverse_norms, NULL, trainer->d_answers, model->entities};
    if (trainer->settings->candidates > 0) {
        set.count = choose_columns(trainer, step);
        backend->upload(model->compute, trainer->d_columns, trainer->columns,
                        (size_t)set.count * sizeof(int32_t));
        backend->upload(model->compute, trainer->d_offsets, trainer->offsets,
                        (size_t)set.count * sizeof(float));
        backend->upload(model->compute, trainer->d_column_answers, trainer->column_answers,
                        (size_t)trainer->batch * sizeof(int32_t));
        backend->gather(model->compute, trainer->candidate_rows, entities, trainer->d_columns, set.count,
                        e);
        set.rows = trainer->candidate_rows;
        set.offsets = trainer->d_offsets;
        set.answers = trainer->d_column_answers;
    }
    backend->inverse_norms(model->compute, trainer->inverse_norms, set.rows, set.count, e);
    return set;
}

/* The candidates' side of the cosine, where embeddings feel L1. */
static vlp_status pass_to_candidates(vlp_trainer *trainer, const candidate_set *set) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    int32_t e = model->form.entity_width;
    if (trainer->settings->candidates == 0) {
        backend->project_add(model->compute, entities->grad, trainer->candidate_grad, set->rows,
                             set->inverse_norms, set->count, e);
        backend->fill_bytes(model->compute, entities->touched, 1, (size_t)model->entities);
        return VLP_OK;
    }
    backend->zero(model->compute, trainer->projected, (size_t)set->count * (size_t)e * sizeof(float));
    backend->project_add(model->compute, trainer->projected, trainer->candidate_grad, set->rows,
                         set->inverse_norms, set->count, e);
    return backend->scatter_add(model->compute, entities->grad, entities->touched, trainer->projected,
                                NULL, trainer->d_columns, set->count, model->entities, e);
}

vlp_status vlp_vertical_step(double *loss, vlp_trainer *trainer, int64_t step) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    bool shared = trainer->settings->vertical_gradient;
    int32_t e = model->form.entity_width;
    vlp_reference_batch references = {trainer->d_reference_heads, trainer->d_reference_answers,
                                      trainer->d_reference_counts, trainer->settings->references};
    vlp_head_forward(model, &trainer->head, trainer->head_rows, trainer->d_relations, trainer->q,
                     &references, trainer->batch);
    candidate_set set = open_candidates(trainer, step);
    for (int64_t start = 0; start < trainer->batch; start += trainer->block) {
        int64_t rows = trainer->batch - start < trainer->block ? trainer->batch - start : trainer->block;
        const float *output = trainer->head.output + start * e;
        backend->product(model->compute, false, true, rows, set.count, e, 1, output, e, set.rows, e, 0,
                         trainer->logits, set.count);
        backend->softmax_loss(model->compute, trainer->logits, trainer->d_row_loss, set.answers + start,
                              trainer->d_even + start, set.inverse_norms, set.offsets,
                              (float)trainer->settings->temperature, rows, set.count);
        *loss += vlp_trainer_sum(trainer, rows);
        backend->product(model->compute, false, false, rows, e, set.count, 1, trainer->logits, set.count,
                         set.rows, e, 0, trainer->output_grad + start * e, e);
        if (shared)
            backend->product(model->compute, true, false, set.count, e, rows, 1, trainer->logits,
                             set.count, output, e, start > 0, trainer->candidate_grad, e);
    }
    if (shared) VLP_TRY(pass_to_candidates(trainer, &set));
    vlp_head_sources sources = {trainer->d_heads, trainer->d_relations, trainer->vertical_q_grad};
    return vlp_head_backward(model, &trainer->head, trainer->output_grad, &references, trainer->batch,
                             shared ? &sources : NULL);
}
