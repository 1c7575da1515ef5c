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
    vlp_sampled_queries sampled = {trainer->batch, chosen->heads, chosen->known_begin, chosen->known_end,
                                   trainer->known_list};
    VLP_TRY(backend->sample->negatives(model->compute, chosen->pairs, &sampled, &sampling));
    vlp_pairs pairs = vlp_trainer_pairs(trainer);
    vlp_related_rows queries = vlp_model_related(model, trainer->q, chosen->relations, trainer->batch);
    VLP_TRY(backend->pairs->scores(model->compute, trainer->scores, &model->form, &queries, &pairs));
    vlp_weight_form weights = {(vlp_weighing)settings->weights, (float)settings->alpha1,
                               (float)settings->alpha2, (float)settings->tau,
                               settings->red_form == VLP_RED_PUBLISHED};
    backend->loss->negative(model->compute, trainer->scores, trainer->row_loss, &weights,
                            chosen->weights, trainer->batch, trainer->width);
    vlp_trainer_add_loss(trainer, VLP_GROUP_EMBEDDINGS, trainer->batch, 1);
    /* Fused, the entities' gradients are computed by their update. */
    vlp_pair_gradients out = {.queries = trainer->q_grad,
                              .entities = vlp_table_gradient_of(entities),
                              .relations = relations->grad};
    if (trainer->fused) out.entities.rows = NULL;
    return backend->pairs->backward(model->compute, &out, &model->form, trainer->scores, &queries,
                                    &pairs);
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
    backend->blas->product(model->compute, trainer->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = width,
                                          .alpha = 1,
                                          .lda = width,
                                          .ldb = width,
                                          .ldc = stride},
                           q, entities->value);
    backend->loss->softmax(model->compute, trainer->logits, NULL, trainer->row_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = model->entities,
                                          .stride = stride,
                                          .answers = trainer->chosen.answers + start,
                                          .weights = trainer->chosen.weights + start,
                                          .temperature = 1});
    backend->blas->product(
        model->compute, trainer->q_grad + start * width,
        &(vlp_product){
            .m = rows, .n = width, .k = stride, .alpha = 1, .lda = stride, .ldb = width, .ldc = width},
        trainer->logits, entities->value);
    backend->blas->product(model->compute, entities->grad,
                           &(vlp_product){.transpose_a = true,
                                          .m = stride,
                                          .n = width,
                                          .k = rows,
                                          .alpha = 1,
                                          .beta = first ? 0 : 1,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width},
                           trainer->logits, q);
}

/* The same over bf16 copies. */
static void all_block_bf16(vlp_trainer *trainer, int64_t start, int64_t rows, bool first) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    int32_t width = model->form.query_width, padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, model->entities);
    backend->bf16->convert_rows(model->compute, trainer->bf16_q, &entities->layout,
                                trainer->q + start * width, width, rows);
    backend->bf16->product(model->compute, trainer->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = padded,
                                          .alpha = 1,
                                          .lda = padded,
                                          .ldb = padded,
                                          .ldc = stride},
                           trainer->bf16_q, entities->bf16);
    backend->loss->softmax(model->compute, trainer->logits, trainer->bf16_logits, trainer->row_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = model->entities,
                                          .stride = stride,
                                          .answers = trainer->chosen.answers + start,
                                          .weights = trainer->chosen.weights + start,
                                          .temperature = 1});
    backend->bf16->product(
        model->compute, trainer->q_grad + start * width,
        &(vlp_product){
            .m = rows, .n = width, .k = stride, .alpha = 1, .lda = stride, .ldb = padded, .ldc = width},
        trainer->bf16_logits, entities->bf16);
    backend->bf16->product(model->compute, entities->grad,
                           &(vlp_product){.transpose_a = true,
                                          .m = stride,
                                          .n = width,
                                          .k = rows,
                                          .alpha = 1,
                                          .beta = first ? 0 : 1,
                                          .lda = stride,
                                          .ldb = padded,
                                          .ldc = width},
                           trainer->bf16_logits, trainer->bf16_q);
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
    model->backend->memory->fill_bytes(model->compute, model->tables[VLP_TABLE_ENTITIES].touched, 1,
                                       (size_t)model->entities);
    return VLP_OK;
}

/* N3 over the heads, relations and answers of the batch. */
static vlp_status n3_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    vlp_n3_options options = {.weight = (float)(trainer->settings->n3 / trainer->batch),
                              .parts = vlp_transform_traits_of(model->form.transform).parts};
    double *loss = &trainer->report->losses[VLP_GROUP_EMBEDDINGS];
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities),
                       relation_grad = vlp_table_gradient_of(relations);
    VLP_TRY(backend->rows->n3_loss(model->compute, loss, &entity_grad, entities->value, trainer->ends,
                                   2 * (int64_t)trainer->batch, &options));
    return backend->rows->n3_loss(model->compute, loss, &relation_grad, relations->value,
                                  chosen->relations, trainer->batch, &options);
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
    backend->rows->gather(model->compute, trainer->answer_rows, entities->value, trainer->chosen.answers,
                          trainer->batch, e);
    vlp_head_answer_rows ends = {trainer->batch, trainer->head_rows, trainer->answer_rows};
    backend->transform->relation_query(model->compute, trainer->v, &model->form, &ends);
    backend->blas->product(model->compute, trainer->relation_logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = trainer->batch,
                                          .n = stride,
                                          .k = width,
                                          .alpha = 1,
                                          .lda = width,
                                          .ldb = width,
                                          .ldc = stride},
                           trainer->v, relations->value);
    backend->loss->softmax(model->compute, trainer->relation_logits, NULL, trainer->row_loss,
                           &(vlp_softmax){.count = trainer->batch,
                                          .columns = all,
                                          .stride = stride,
                                          .answers = trainer->chosen.relations,
                                          .weights = trainer->chosen.weights,
                                          .temperature = 1});
    float weight = (float)trainer->settings->relation_prediction;
    vlp_trainer_add_loss(trainer, VLP_GROUP_EMBEDDINGS, trainer->batch, (double)weight);
    backend->blas->product(model->compute, trainer->v_grad,
                           &(vlp_product){.m = trainer->batch,
                                          .n = width,
                                          .k = stride,
                                          .alpha = weight,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width},
                           trainer->relation_logits, relations->value);
    backend->blas->product(model->compute, relations->grad,
                           &(vlp_product){.transpose_a = true,
                                          .m = stride,
                                          .n = width,
                                          .k = trainer->batch,
                                          .alpha = weight,
                                          .beta = 1,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width},
                           trainer->relation_logits, trainer->v);
    backend->transform->relation_query_backward(model->compute, trainer->heads_grad,
                                                trainer->answers_grad, &model->form, trainer->v_grad,
                                                &ends);
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
        backend->rows->add(model->compute, trainer->q_grad, trainer->vertical_q_grad,
                           (int64_t)trainer->batch * model->form.query_width);
    bool relation = trainer->settings->relation_prediction > 0;
    int64_t ends = relation ? 2 * (int64_t)trainer->batch : trainer->batch;
    backend->memory->zero(model->compute, trainer->heads_grad,
                          (size_t)ends * (size_t)model->form.entity_width * sizeof(float));
    vlp_related_rows heads =
        vlp_model_related(model, trainer->head_rows, trainer->chosen.relations, trainer->batch);
    VLP_TRY(backend->transform->query_backward(model->compute, trainer->heads_grad, relations->grad,
                                               &model->form, trainer->q_grad, &heads, false));
    if (relation) relation_step(trainer);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    VLP_TRY(backend->rows->scatter_add(model->compute, &entity_grad, trainer->heads_grad, NULL,
                                       trainer->ends, ends));
    if (trainer->settings->n3 > 0) VLP_TRY(n3_step(trainer));
    return VLP_OK;
}
