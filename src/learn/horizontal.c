/* The horizontal loss L2 of a step: sampled negatives, or 1-to-All cross-entropy with N3 and relation
 * prediction. */
#include "learn/trainer_internal.h"

/* The paper's L2 over sampled negatives: gradients of q and of entities. */
static vlp_status negative_step(vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    vlp_sample_options sampling = {trainer->shells ? &trainer->view : NULL, (float)settings->alpha0,
                                   model->entities, settings->negatives, settings->seed};
    VLP_TRY(backend->sample(model->compute, chosen->pairs, chosen->heads, trainer->batch,
                            chosen->known_begin, chosen->known_end, trainer->known_list, &sampling));
    vlp_pairs pairs = vlp_trainer_pairs(trainer);
    VLP_TRY(backend->pair_scores(model->compute, &model->form, trainer->scores, trainer->q,
                                 chosen->relations, relations->value, entities->value, model->entities,
                                 &pairs));
    vlp_weight_form weights = {(vlp_weighing)settings->weights, (float)settings->alpha1,
                               (float)settings->alpha2, (float)settings->tau,
                               settings->red_form == VLP_RED_PUBLISHED};
    backend->negative_loss(model->compute, &weights, trainer->scores, trainer->row_loss, chosen->weights,
                           trainer->batch, trainer->width);
    vlp_trainer_add_loss(trainer, VLP_GROUP_EMBEDDINGS, trainer->batch, 1);
    /* Fused, the entities' gradients are made along with their update. */
    return backend->pair_backward(
        model->compute, &model->form, trainer->q_grad, trainer->fused ? NULL : entities->grad,
        entities->touched, relations->grad, trainer->scores, trainer->q, chosen->relations,
        relations->value, model->relations, entities->value, model->entities, &pairs);
}

/* 1-to-All cross-entropy of the dot models, a block of queries. Products run over the padding too (see
 * vlp_table). */
static void all_block(vlp_trainer *trainer, int64_t start, int64_t rows, bool first) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    int32_t width = model->form.query_width;
    int64_t stride = vlp_trainer_stride(trainer, model->entities);
    const float *q = trainer->q + start * width;
    backend->product(model->compute, false, true, rows, stride, width, 1, q, width, entities->value,
                     width, 0, trainer->logits, stride);
    backend->softmax_loss(model->compute, trainer->logits, NULL, trainer->row_loss,
                          trainer->chosen.answers + start, trainer->chosen.weights + start, NULL, NULL,
                          1, rows, model->entities, stride);
    backend->product(model->compute, false, false, rows, width, stride, 1, trainer->logits, stride,
                     entities->value, width, 0, trainer->q_grad + start * width, width);
    backend->product(model->compute, true, false, stride, width, rows, 1, trainer->logits, stride, q,
                     width, first ? 0 : 1, entities->grad, width);
}

/* The same over bf16 copies. */
static void all_block_bf16(vlp_trainer *trainer, int64_t start, int64_t rows, bool first) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    int32_t width = model->form.query_width, padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, model->entities);
    backend->convert_rows(model->compute, trainer->bf16_q, &entities->layout, trainer->q + start * width,
                          width, rows);
    backend->product_bf16(model->compute, false, true, rows, stride, padded, 1, trainer->bf16_q, padded,
                          entities->bf16, padded, 0, trainer->logits, stride);
    backend->softmax_loss(model->compute, trainer->logits, trainer->bf16_logits, trainer->row_loss,
                          trainer->chosen.answers + start, trainer->chosen.weights + start, NULL, NULL,
                          1, rows, model->entities, stride);
    backend->product_bf16(model->compute, false, false, rows, width, stride, 1, trainer->bf16_logits,
                          stride, entities->bf16, padded, 0, trainer->q_grad + start * width, width);
    backend->product_bf16(model->compute, true, false, stride, width, rows, 1, trainer->bf16_logits,
                          stride, trainer->bf16_q, padded, first ? 0 : 1, entities->grad, width);
}

static vlp_status all_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    bool felt = trainer->settings->vertical && trainer->settings->vertical_gradient;
    for (int64_t start = 0; start < trainer->batch; start += trainer->block) {
        int64_t rows = trainer->batch - start < trainer->block ? trainer->batch - start : trainer->block;
        bool first = start == 0 && !felt;
        if (trainer->uses_bf16)
            all_block_bf16(trainer, start, rows, first);
        else
            all_block(trainer, start, rows, first);
        vlp_trainer_add_loss(trainer, VLP_GROUP_EMBEDDINGS, rows, 1);
    }
    model->backend->fill_bytes(model->compute, model->tables[VLP_TABLE_ENTITIES].touched, 1,
                               (size_t)model->entities);
    return VLP_OK;
}

/* N3 over the heads, relations and answers of the batch. */
static vlp_status n3_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    bool moduli = vlp_model_row_of(model->options.kind)->complex_valued;
    float weight = (float)(trainer->settings->n3 / trainer->batch);
    double *loss = &trainer->report->losses[VLP_GROUP_EMBEDDINGS];
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    VLP_TRY(backend->n3_loss(model->compute, loss, entities->grad, entities->touched, entities->value,
                             trainer->ends, 2 * (int64_t)trainer->batch, model->entities,
                             entities->width, weight, moduli));
    return backend->n3_loss(model->compute, loss, relations->grad, NULL, relations->value,
                            chosen->relations, trainer->batch, model->relations, relations->width,
                            weight, moduli);
}

/* Predicting the relation of (h, ?, t) among all, inverse ones included: adds to the gradients of the
 * heads and answers. */
static void relation_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    int32_t e = model->form.entity_width, width = model->form.relation_width, all = model->relations;
    int64_t stride = vlp_trainer_stride(trainer, all);
    backend->gather(model->compute, trainer->answer_rows, entities->value, trainer->chosen.answers,
                    trainer->batch, e);
    backend->relation_query(model->compute, &model->form, trainer->v, trainer->head_rows,
                            trainer->answer_rows, trainer->batch);
    backend->product(model->compute, false, true, trainer->batch, stride, width, 1, trainer->v, width,
                     relations->value, width, 0, trainer->relation_logits, stride);
    backend->softmax_loss(model->compute, trainer->relation_logits, NULL, trainer->row_loss,
                          trainer->chosen.relations, trainer->chosen.weights, NULL, NULL, 1,
                          trainer->batch, all, stride);
    float weight = (float)trainer->settings->relation_prediction;
    vlp_trainer_add_loss(trainer, VLP_GROUP_EMBEDDINGS, trainer->batch, (double)weight);
    backend->product(model->compute, false, false, trainer->batch, width, stride, weight,
                     trainer->relation_logits, stride, relations->value, width, 0, trainer->v_grad,
                     width);
    backend->product(model->compute, true, false, stride, width, trainer->batch, weight,
                     trainer->relation_logits, stride, trainer->v, width, 1, relations->grad, width);
    backend->relation_query_backward(model->compute, &model->form, trainer->heads_grad,
                                     trainer->answers_grad, trainer->v_grad, trainer->head_rows,
                                     trainer->answer_rows, trainer->batch);
}

vlp_status vlp_horizontal_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    if (trainer->settings->loss == VLP_LOSS_NEGATIVES)
        VLP_TRY(negative_step(trainer));
    else
        VLP_TRY(all_step(trainer));
    if (trainer->settings->vertical && trainer->settings->vertical_gradient)
        backend->add(model->compute, trainer->q_grad, trainer->vertical_q_grad,
                     (int64_t)trainer->batch * model->form.query_width);
    bool relation = trainer->settings->relation_prediction > 0;
    int64_t ends = relation ? 2 * (int64_t)trainer->batch : trainer->batch;
    backend->zero(model->compute, trainer->heads_grad,
                  (size_t)ends * (size_t)model->form.entity_width * sizeof(float));
    VLP_TRY(backend->query_backward(model->compute, &model->form, trainer->heads_grad, relations->grad,
                                    trainer->q_grad, trainer->head_rows, trainer->chosen.relations,
                                    relations->value, model->relations, trainer->batch, false));
    if (relation) relation_step(trainer);
    VLP_TRY(backend->scatter_add(model->compute, entities->grad, entities->touched, trainer->heads_grad,
                                 NULL, trainer->ends, ends, model->entities, model->form.entity_width));
    if (trainer->settings->n3 > 0) VLP_TRY(n3_step(trainer));
    return VLP_OK;
}
