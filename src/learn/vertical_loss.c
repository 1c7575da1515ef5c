/* The vertical loss L1 of a step: cross-entropy of softmax(temperature cos(t', t)) over all entities, or
 * over a sampled set.
 *
 * The sampled set holds the answers of the batch, and `candidates` others drawn uniformly without
 * replacement. Each of these stands for (entities - answers) / candidates of its kind, which is added to
 * its logit as a logarithm: the sum over the set is then an unbiased estimate of the sum over all. */
#include "learn/trainer_internal.h"

/* What the softmax runs over: rows, one over their norms, offsets and the answers' places. */
typedef struct candidate_set {
    const float *rows, *inverse_norms, *offsets;
    const int32_t *answers;
    int32_t count;
} candidate_set;

static vlp_status open_candidates(candidate_set *set, vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_settings *settings = trainer->settings;
    const float *entities = model->tables[VLP_TABLE_ENTITIES].value;
    int32_t e = model->form.entity_width;
    *set = (candidate_set){entities, trainer->inverse_norms, NULL, trainer->chosen.answers,
                           model->entities};
    if (settings->candidates > 0) {
        VLP_TRY(backend->choose_columns(model->compute, &set->count, &trainer->columns,
                                        trainer->chosen.answers, trainer->batch, settings->candidates,
                                        model->entities, settings->seed));
        backend->gather(model->compute, trainer->candidate_rows, entities, trainer->columns.ids,
                        set->count, e);
        set->rows = trainer->candidate_rows;
        set->offsets = trainer->columns.offsets;
        set->answers = trainer->columns.answers;
        /* Those of all entities follow their updates. */
        backend->inverse_norms(model->compute, trainer->inverse_norms, set->rows, set->count, e);
    }
    return VLP_OK;
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
                                NULL, trainer->columns.ids, set->count, model->entities, e);
}

/* Logits of a block of queries, their loss, and the gradient of the head's output. */
static void logits_block(vlp_trainer *trainer, const candidate_set *set, int64_t start, int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    int32_t e = model->form.entity_width;
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    const float *output = trainer->head.output + start * e;
    backend->product(model->compute, false, true, rows, stride, e, 1, output, e, set->rows, e, 0,
                     trainer->aggregator_logits, stride);
    backend->softmax_loss(model->compute, trainer->aggregator_logits, NULL, trainer->aggregator_loss,
                          set->answers + start, trainer->even + start, set->inverse_norms, set->offsets,
                          (float)trainer->settings->temperature, rows, set->count, stride);
    backend->product(model->compute, false, false, rows, e, stride, 1, trainer->aggregator_logits,
                     stride, set->rows, e, 0, trainer->output_grad + start * e, e);
    if (trainer->settings->vertical_gradient)
        backend->product(model->compute, true, false, stride, e, rows, 1, trainer->aggregator_logits,
                         stride, output, e, start > 0, trainer->candidate_grad, e);
}

/* The same over bf16 copies; the gradient has zeros in between, as they have. */
static void logits_block_bf16(vlp_trainer *trainer, const candidate_set *set, int64_t start,
                              int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    int32_t padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    backend->product_bf16(model->compute, false, true, rows, stride, padded, 1,
                          trainer->head.bf16_output + start * padded, padded, entities->bf16, padded, 0,
                          trainer->aggregator_logits, stride);
    backend->softmax_loss(model->compute, trainer->aggregator_logits, trainer->bf16_aggregator_logits,
                          trainer->aggregator_loss, set->answers + start, trainer->even + start,
                          set->inverse_norms, set->offsets, (float)trainer->settings->temperature, rows,
                          set->count, stride);
    backend->product_bf16(model->compute, false, false, rows, padded, stride, 1,
                          trainer->bf16_aggregator_logits, stride, entities->bf16, padded, 0,
                          trainer->padded_grad + start * padded, padded);
}

vlp_status vlp_vertical_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_batch *chosen = &trainer->chosen;
    bool shared = trainer->settings->vertical_gradient;
    vlp_reference_batch references = {chosen->reference_heads, chosen->reference_answers,
                                      chosen->reference_counts, trainer->settings->references};
    vlp_aggregator_forward(model, &trainer->head, trainer->head_rows, chosen->relations, trainer->q,
                           &references, trainer->batch);
    candidate_set set;
    VLP_TRY(open_candidates(&set, trainer));
    for (int64_t start = 0; start < trainer->batch; start += trainer->block) {
        int64_t rows = trainer->batch - start < trainer->block ? trainer->batch - start : trainer->block;
        if (trainer->aggregator_uses_bf16)
            logits_block_bf16(trainer, &set, start, rows);
        else
            logits_block(trainer, &set, start, rows);
        vlp_trainer_add_loss(trainer, VLP_GROUP_AGGREGATOR, rows, 1);
    }
    if (shared) VLP_TRY(pass_to_candidates(trainer, &set));
    vlp_aggregator_sources sources = {chosen->heads, chosen->relations, trainer->vertical_q_grad};
    return vlp_aggregator_backward(
        model, &trainer->head,
        trainer->aggregator_uses_bf16 ? trainer->padded_grad : trainer->output_grad,
        trainer->aggregator_uses_bf16 ? &model->tables[VLP_TABLE_ENTITIES].layout : NULL, &references,
        trainer->batch, shared ? &sources : NULL);
}
