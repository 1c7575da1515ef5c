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
    const float *entities = vlp_model_entities(model)->value;
    int32_t e = model->form.entity_width;
    *set = (candidate_set){entities, trainer->inverse_norms, NULL, trainer->chosen.answers,
                           model->entities};
    if (settings->candidates > 0) {
        vlp_column_options options = {.answers = trainer->chosen.answers,
                                      .count = trainer->batch,
                                      .candidates = settings->candidates,
                                      .entities = model->entities,
                                      .seed = settings->seed};
        VLP_TRY(
            backend->steps->choose_columns(model->compute, &set->count, &trainer->columns, &options));
        backend->rows->gather(model->compute, trainer->candidate_rows, entities, trainer->columns.ids,
                              set->count, e);
        set->rows = trainer->candidate_rows;
        set->offsets = trainer->columns.offsets;
        set->answers = trainer->columns.answers;
        /* Those of all entities follow their updates. */
        backend->rows->inverse_norms(model->compute, trainer->inverse_norms, set->rows, set->count, e);
    }
    return VLP_OK;
}

/* The candidates' side of the cosine, where embeddings feel L1. */
static vlp_status pass_to_candidates(vlp_trainer *trainer, const candidate_set *set) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t e = model->form.entity_width;
    if (trainer->settings->candidates == 0) {
        backend->rows->project_add(model->compute, entities->grad, trainer->candidate_grad, set->rows,
                                   set->inverse_norms, set->count, e);
        backend->memory->fill_bytes(model->compute, entities->touched, 1, (size_t)model->entities);
        return VLP_OK;
    }
    backend->memory->zero(model->compute, trainer->projected,
                          (size_t)set->count * (size_t)e * sizeof(float));
    backend->rows->project_add(model->compute, trainer->projected, trainer->candidate_grad, set->rows,
                               set->inverse_norms, set->count, e);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    return backend->rows->scatter_add(model->compute, &entity_grad, trainer->projected, NULL,
                                      trainer->columns.ids, set->count);
}

/* Logits of a block of queries, their loss, and the gradient of the head's output. */
static void logits_block(vlp_trainer *trainer, const candidate_set *set, int64_t start, int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    int32_t e = model->form.entity_width;
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    const float *output = trainer->head.output + start * e;
    backend->blas->product(model->compute, trainer->aggregator_logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = e,
                                          .alpha = 1,
                                          .lda = e,
                                          .ldb = e,
                                          .ldc = stride},
                           output, set->rows);
    backend->loss->softmax(model->compute, trainer->aggregator_logits, NULL, trainer->aggregator_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = set->count,
                                          .stride = stride,
                                          .answers = set->answers + start,
                                          .weights = trainer->even + start,
                                          .column_scale = set->inverse_norms,
                                          .column_offset = set->offsets,
                                          .temperature = (float)trainer->settings->temperature});
    backend->blas->product(
        model->compute, trainer->output_grad + start * e,
        &(vlp_product){.m = rows, .n = e, .k = stride, .alpha = 1, .lda = stride, .ldb = e, .ldc = e},
        trainer->aggregator_logits, set->rows);
    if (trainer->settings->vertical_gradient)
        backend->blas->product(model->compute, trainer->candidate_grad,
                               &(vlp_product){.transpose_a = true,
                                              .m = stride,
                                              .n = e,
                                              .k = rows,
                                              .alpha = 1,
                                              .beta = start > 0,
                                              .lda = stride,
                                              .ldb = e,
                                              .ldc = e},
                               trainer->aggregator_logits, output);
}

/* The same over bf16 copies; the gradient has zeros in between, as they have. */
static void logits_block_bf16(vlp_trainer *trainer, const candidate_set *set, int64_t start,
                              int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    backend->bf16->product(model->compute, trainer->aggregator_logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = padded,
                                          .alpha = 1,
                                          .lda = padded,
                                          .ldb = padded,
                                          .ldc = stride},
                           trainer->head.bf16_output + start * padded, entities->bf16);
    backend->loss->softmax(model->compute, trainer->aggregator_logits, trainer->bf16_aggregator_logits,
                           trainer->aggregator_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = set->count,
                                          .stride = stride,
                                          .answers = set->answers + start,
                                          .weights = trainer->even + start,
                                          .column_scale = set->inverse_norms,
                                          .column_offset = set->offsets,
                                          .temperature = (float)trainer->settings->temperature});
    backend->bf16->product(model->compute, trainer->padded_grad + start * padded,
                           &(vlp_product){.m = rows,
                                          .n = padded,
                                          .k = stride,
                                          .alpha = 1,
                                          .lda = stride,
                                          .ldb = padded,
                                          .ldc = padded},
                           trainer->bf16_aggregator_logits, entities->bf16);
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
        vlp_trainer_add_loss(trainer, VLP_VERTICAL, rows, 1);
    }
    if (shared) VLP_TRY(pass_to_candidates(trainer, &set));
    vlp_aggregator_sources sources = {chosen->heads, chosen->relations, trainer->vertical_q_grad};
    return vlp_aggregator_backward(
        model, &trainer->head,
        trainer->aggregator_uses_bf16 ? trainer->padded_grad : trainer->output_grad,
        trainer->aggregator_uses_bf16 ? &vlp_model_entities(model)->layout : NULL, &references,
        trainer->batch, shared ? &sources : NULL);
}
