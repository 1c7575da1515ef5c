/* The training of the horizontal component: the embeddings by the horizontal loss, which is over sampled
 * negatives, 1-to-All cross-entropy with N3 and relation prediction, or KvsAll: binary cross-entropy of
 * all answers of a key. */
#include <string.h>

#include "learn/trainer_internal.h"

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status prepare_graph(vlp_horizontal_state *mine, const vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    const vlp_dataset *dataset = trainer->dataset;
    if (settings->loss == VLP_LOSS_NEGATIVES || trainer->tables.weigh)
        VLP_TRY(vlp_filter_new(&mine->known, dataset, 1u << VLP_TRAIN));
    if (settings->loss != VLP_LOSS_NEGATIVES || settings->negatives_from != VLP_NEGATIVES_RED)
        return VLP_OK;
    vlp_skeleton *skeleton = NULL;
    VLP_TRY(vlp_skeleton_new(&skeleton, dataset->graph, settings->threads));
    vlp_status status =
        vlp_shells_new(&mine->shells, skeleton, 8, (int64_t)settings->distance_memory << 20,
                       settings->threads, trainer->observer);
    vlp_skeleton_free(skeleton);
    return status;
}

/* Where the known answers of every training query are in the filter's list. */
static vlp_status find_known(vlp_horizontal_state *mine, const vlp_trainer *trainer) {
    int64_t train = trainer->queries / 2, total;
    const vlp_triple *triples = trainer->dataset->splits[VLP_TRAIN].items;
    int32_t relations = vlp_dataset_relation_count(trainer->dataset);
    const int32_t *list = vlp_filter_list(mine->known, &total);
    if (total > UINT32_MAX)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%lld known answers are more than a trainer can hold",
                        (long long)total);
    mine->known_begin = vlp_alloc((size_t)trainer->queries, sizeof *mine->known_begin);
    mine->known_counts = vlp_alloc((size_t)trainer->queries, sizeof *mine->known_counts);
    if (!mine->known_begin || !mine->known_counts) return vlp_fail_memory("known answers");
#pragma omp parallel for num_threads(vlp_thread_count(trainer->settings->threads)) schedule(static)
    for (int64_t query = 0; query < trainer->queries; query++) {
        vlp_triple triple = triples[query % train];
        bool forward = query < train;
        int64_t count;
        const int32_t *answers = vlp_filter_answers(mine->known, forward ? triple.head : triple.tail,
                                                    triple.relation + (forward ? 0 : relations), &count);
        mine->known_begin[query] = (uint32_t)(answers - list);
        mine->known_counts[query] = (int32_t)count;
    }
    return VLP_OK;
}

static vlp_status upload_known(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    vlp_query_tables *tables = &trainer->tables;
    int64_t queries = trainer->queries, known = 0;
    VLP_TRY(find_known(mine, trainer));
    const int32_t *list = vlp_filter_list(mine->known, &known);
    VLP_TRY(vlp_trainer_resident(trainer, &mine->known_list, list, known, sizeof *list));
    VLP_TRY(vlp_trainer_resident(trainer, &tables->known_begin, mine->known_begin, queries,
                                 sizeof *tables->known_begin));
    return vlp_trainer_resident(trainer, &tables->known_counts, mine->known_counts, queries,
                                sizeof *tables->known_counts);
}

static vlp_status upload_shells(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    const vlp_shells *shells = mine->shells;
    vlp_shell_view *view = &mine->view;
    int64_t nodes = shells->nodes, stride = vlp_shells_stride(shells->nodes);
    *view = (vlp_shell_view){.nodes = shells->nodes, .limit = shells->limit, .stride = stride};
    VLP_TRY(vlp_trainer_resident(trainer, &view->matrix, shells->matrix, nodes * stride, 1));
    VLP_TRY(vlp_trainer_resident(trainer, &view->counts, shells->counts, nodes * (shells->limit + 1),
                                 sizeof *shells->counts));
    VLP_TRY(vlp_trainer_resident(trainer, &view->near, shells->near, nodes, 1));
    VLP_TRY(vlp_trainer_resident(trainer, &view->near_offset, shells->near_offset, nodes + 1,
                                 sizeof *shells->near_offset));
    return vlp_trainer_resident(trainer, &view->near_member, shells->near_member,
                                shells->near_offset[nodes], sizeof *shells->near_member);
}

/* Whether the loss is over all entities. */
static bool scores_all(const vlp_settings *settings) {
    switch ((vlp_loss_kind)settings->loss) {
    case VLP_LOSS_NEGATIVES:
        return false;
    case VLP_LOSS_CROSS_ENTROPY:
    case VLP_LOSS_KVSALL:
        break;
    }
    return true;
}

static vlp_status allocate(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    const vlp_model *model = trainer->model;
    const vlp_form *form = &model->form;
    vlp_batch *chosen = &trainer->chosen;
    int64_t b = trainer->batch, e = form->entity_width, q = form->query_width;
    bool all = scores_all(settings), bf16 = all && trainer->uses_bf16;
    int64_t pairs = all ? 0 : b * mine->width, known = pairs || trainer->keys.count > 0 ? b : 0;
    int64_t cells = trainer->block * vlp_trainer_stride(trainer, model->entities);
    int64_t asked = settings->relation_prediction > 0 ? b : 0;
    int64_t padded = vlp_bf16_layout_stride(&vlp_model_entities(model)->layout);
    int64_t relations = vlp_trainer_stride(trainer, model->relations);
    const vlp_trainer_array arrays[] = {
        {&chosen->pairs, pairs, sizeof(int32_t)},
        {&chosen->known_begin, known, sizeof(int64_t)},
        {&chosen->known_end, known, sizeof(int64_t)},
        {&mine->scores, pairs, sizeof(float)},
        {&mine->row_loss, b, sizeof(float)},
        {&mine->heads_grad, (b + asked) * e, sizeof(float)},
        {&mine->dropped_q, settings->dropout > 0 ? b * q : 0, sizeof(float)},
        {&mine->q_grad, b * q, sizeof(float)},
        {&mine->logits, all ? cells : 0, sizeof(float)},
        {&mine->bf16_q, bf16 ? b * padded : 0, sizeof(vlp_bf16)},
        {&mine->bf16_logits, bf16 ? cells : 0, sizeof(vlp_bf16)},
        {&mine->answer_rows, asked * e, sizeof(float)},
        {&mine->v, asked * form->relation_width, sizeof(float)},
        {&mine->v_grad, asked * form->relation_width, sizeof(float)},
        {&mine->relation_logits, asked * relations, sizeof(float)}};
    VLP_TRY(vlp_trainer_allocate(trainer, arrays, (int32_t)(sizeof arrays / sizeof *arrays)));
    mine->answers_grad = mine->heads_grad + b * e;
    chosen->width = mine->width;
    return VLP_OK;
}

/* Pairs are numbered by int32_t. */
static vlp_status check_pairs(const vlp_settings *settings, int32_t batch) {
    if (settings->loss != VLP_LOSS_NEGATIVES || batch * ((int64_t)settings->negatives + 1) <= INT32_MAX)
        return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT,
                    "%d queries with %d negatives each are more than %d pairs; negatives = %d would "
                    "fit, or a smaller batch",
                    batch, settings->negatives, INT32_MAX, INT32_MAX / batch - 1);
}

static vlp_status open_training(void **state, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    VLP_TRY(check_pairs(settings, trainer->batch));
    vlp_horizontal_state *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("a trainer");
    mine->width = settings->negatives + 1;
    mine->fused = trainer->uses_bf16 && settings->loss == VLP_LOSS_NEGATIVES && settings->clip == 0 &&
                  settings->optimizer != VLP_LAZY_ADAM && !trainer->embeddings_shared &&
                  !vlp_form_transforms_answers(&trainer->model->form);
    VLP_TRY(prepare_graph(mine, trainer));
    if (mine->known) VLP_TRY(upload_known(mine, trainer));
    if (mine->shells) VLP_TRY(upload_shells(mine, trainer));
    return allocate(mine, trainer);
}

static void close_training(void *state) {
    vlp_horizontal_state *mine = state;
    vlp_free(mine->known_begin);
    vlp_free(mine->known_counts);
    vlp_filter_free(mine->known);
    vlp_shells_free(mine->shells);
    vlp_free(mine);
}

static void optimizer(vlp_settings *settings, const vlp_trainer *trainer) {
    (void)settings, (void)trainer; /* they are the embeddings' */
}

/* The others read the embeddings. */
static bool independent(const vlp_settings *settings) {
    (void)settings;
    return false;
}

/* ---- The loss ------------------------------------------------------------------------------------ */

vlp_pairs vlp_horizontal_pairs(const vlp_horizontal_state *mine, const vlp_trainer *trainer) {
    const vlp_table *entities = vlp_model_entities(trainer->model);
    return (vlp_pairs){.batch = trainer->batch,
                       .width = mine->width,
                       .entities = trainer->chosen.pairs,
                       .table = entities->value,
                       .table_rows = trainer->model->entities,
                       .bf16 = trainer->uses_bf16 ? entities->bf16 : NULL,
                       .layout = entities->layout};
}

/* q as the loss reads it. The aggregator reads it without dropout. */
static const float *loss_q(const vlp_horizontal_state *mine, const vlp_trainer *trainer) {
    return mine->dropped_q ? mine->dropped_q : trainer->q;
}

/* The step's dropout of q, or of its gradient. */
static void drop_out(float *out, const float *in, const vlp_trainer *trainer) {
    const vlp_model *model = trainer->model;
    model->backend->rows->dropout(model->compute, out, in,
                                  &(vlp_dropout){.rows = trainer->batch,
                                                 .width = model->form.query_width,
                                                 .probability = (float)trainer->settings->dropout,
                                                 .seed = trainer->settings->seed});
}

/* Over sampled negatives: gradients of q and of entities. */
static vlp_status negative_step(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    const vlp_table *entities = vlp_model_entities(model), *relations = vlp_model_relations(model);
    vlp_sample_options sampling = {mine->shells ? &mine->view : NULL, (float)settings->alpha0,
                                   model->entities, settings->negatives, settings->seed};
    vlp_sampled_queries sampled = {trainer->batch, chosen->heads, chosen->known_begin, chosen->known_end,
                                   mine->known_list};
    VLP_TRY(backend->sample->negatives(model->compute, chosen->pairs, &sampled, &sampling));
    vlp_pairs pairs = vlp_horizontal_pairs(mine, trainer);
    vlp_related_rows queries =
        vlp_model_related(model, loss_q(mine, trainer), chosen->relations, trainer->batch);
    VLP_TRY(backend->pairs->scores(model->compute, mine->scores, &model->form, &queries, &pairs));
    vlp_weight_form weights = {(vlp_weighing)settings->weights, (float)settings->alpha1,
                               (float)settings->alpha2, (float)settings->tau,
                               settings->red_form == VLP_RED_PUBLISHED};
    backend->loss->negative(model->compute, mine->scores, mine->row_loss, &weights, chosen->weights,
                            trainer->batch, mine->width);
    vlp_trainer_add_loss(trainer, VLP_HORIZONTAL, mine->row_loss, trainer->batch, 1);
    /* Fused, the entities' gradients are computed by their update. */
    vlp_pair_gradients out = {.queries = mine->q_grad,
                              .entities = vlp_table_gradient_of(entities),
                              .relations = relations->grad};
    if (mine->fused) out.entities.rows = NULL;
    return backend->pairs->backward(model->compute, &out, &model->form, mine->scores, &queries, &pairs);
}

/* The loss of a block of logits, which become their gradients; or `bf16` does. */
static void logits_loss(vlp_horizontal_state *mine, vlp_trainer *trainer, vlp_bf16 *bf16, int64_t start,
                        int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_loss_operations *losses = model->backend->loss;
    const vlp_batch *chosen = &trainer->chosen;
    int64_t entities = model->entities, stride = vlp_trainer_stride(trainer, entities);
    if (trainer->settings->loss == VLP_LOSS_CROSS_ENTROPY) {
        losses->softmax(model->compute, mine->logits, bf16, mine->row_loss,
                        &(vlp_softmax){.count = rows,
                                       .columns = entities,
                                       .stride = stride,
                                       .answers = chosen->answers + start,
                                       .weights = chosen->weights + start,
                                       .temperature = 1});
        return;
    }
    double smoothing = trainer->settings->label_smoothing;
    losses->binary(
        model->compute, mine->logits, bf16, mine->row_loss,
        &(vlp_binary){.count = rows,
                      .columns = entities,
                      .stride = stride,
                      .begin = chosen->known_begin + start,
                      .end = chosen->known_end + start,
                      .answers = trainer->tables.keys.answers,
                      .weights = chosen->weights + start,
                      .positive = (float)(1 - smoothing),
                      .negative = entities > 1 ? (float)(smoothing / (double)(entities - 1)) : 0});
}

/* The losses over all entities of the dot models, a block of queries or keys. Products run over the
 * padding too (see vlp_table). */
static void all_block(vlp_horizontal_state *mine, vlp_trainer *trainer, int64_t start, int64_t rows,
                      bool first) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t width = model->form.query_width;
    int64_t stride = vlp_trainer_stride(trainer, model->entities);
    const float *q = loss_q(mine, trainer) + start * width;
    bool rounded = trainer->settings->precision == VLP_PRECISION_BF16;
    backend->blas->product(model->compute, mine->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = width,
                                          .alpha = 1,
                                          .lda = width,
                                          .ldb = width,
                                          .ldc = stride,
                                          .rounded = rounded},
                           q, entities->value);
    logits_loss(mine, trainer, NULL, start, rows);
    backend->blas->product(model->compute, mine->q_grad + start * width,
                           &(vlp_product){.m = rows,
                                          .n = width,
                                          .k = stride,
                                          .alpha = 1,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width,
                                          .rounded = rounded},
                           mine->logits, entities->value);
    backend->blas->product(model->compute, entities->grad,
                           &(vlp_product){.transpose_a = true,
                                          .m = stride,
                                          .n = width,
                                          .k = rows,
                                          .alpha = 1,
                                          .beta = first ? 0 : 1,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width,
                                          .rounded = rounded},
                           mine->logits, q);
}

/* The same over bf16 copies. */
static void all_block_bf16(vlp_horizontal_state *mine, vlp_trainer *trainer, int64_t start, int64_t rows,
                           bool first) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t width = model->form.query_width, padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, model->entities);
    backend->bf16->convert_rows(model->compute, mine->bf16_q, &entities->layout,
                                loss_q(mine, trainer) + start * width, width, rows);
    backend->bf16->product(model->compute, mine->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = padded,
                                          .alpha = 1,
                                          .lda = padded,
                                          .ldb = padded,
                                          .ldc = stride},
                           mine->bf16_q, entities->bf16);
    logits_loss(mine, trainer, mine->bf16_logits, start, rows);
    backend->bf16->product(
        model->compute, mine->q_grad + start * width,
        &(vlp_product){
            .m = rows, .n = width, .k = stride, .alpha = 1, .lda = stride, .ldb = padded, .ldc = width},
        mine->bf16_logits, entities->bf16);
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
                           mine->bf16_logits, mine->bf16_q);
}

static vlp_status all_step(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    for (int64_t start = 0; start < trainer->batch; start += trainer->block) {
        int64_t rows = trainer->batch - start < trainer->block ? trainer->batch - start : trainer->block;
        bool first = start == 0 && !trainer->embeddings_shared;
        if (trainer->uses_bf16)
            all_block_bf16(mine, trainer, start, rows, first);
        else
            all_block(mine, trainer, start, rows, first);
        vlp_trainer_add_loss(trainer, VLP_HORIZONTAL, mine->row_loss, rows, 1);
    }
    model->backend->memory->fill_bytes(model->compute, vlp_model_entities(model)->touched, 1,
                                       (size_t)model->entities);
    return VLP_OK;
}

/* N3 over the head entities, relations and answers of the batch. */
static vlp_status n3_step(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    vlp_n3_options options = {.weight = (float)(trainer->settings->n3 / trainer->batch),
                              .parts = vlp_transform_traits_of(model->form.transform).parts};
    double *loss = &trainer->report->losses[VLP_HORIZONTAL];
    const vlp_table *entities = vlp_model_entities(model), *relations = vlp_model_relations(model);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities),
                       relation_grad = vlp_table_gradient_of(relations);
    VLP_TRY(backend->rows->n3_loss(model->compute, loss, &entity_grad, entities->value, trainer->ends,
                                   2 * (int64_t)trainer->batch, &options));
    return backend->rows->n3_loss(model->compute, loss, &relation_grad, relations->value,
                                  chosen->relations, trainer->batch, &options);
}

/* Predicting the relation of (h, ?, t) among all, inverse ones included: adds to the gradients of the
 * heads and answers. */
static void relation_step(vlp_horizontal_state *mine, vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model), *relations = vlp_model_relations(model);
    int32_t e = model->form.entity_width, width = model->form.relation_width, all = model->relations;
    int64_t stride = vlp_trainer_stride(trainer, all);
    backend->rows->gather(model->compute, mine->answer_rows, entities->value, trainer->chosen.answers,
                          trainer->batch, e);
    vlp_head_answer_rows ends = {trainer->batch, trainer->head_rows, mine->answer_rows};
    backend->transform->relation_query(model->compute, mine->v, &model->form, &ends);
    backend->blas->product(model->compute, mine->relation_logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = trainer->batch,
                                          .n = stride,
                                          .k = width,
                                          .alpha = 1,
                                          .lda = width,
                                          .ldb = width,
                                          .ldc = stride},
                           mine->v, relations->value);
    backend->loss->softmax(model->compute, mine->relation_logits, NULL, mine->row_loss,
                           &(vlp_softmax){.count = trainer->batch,
                                          .columns = all,
                                          .stride = stride,
                                          .answers = trainer->chosen.relations,
                                          .weights = trainer->chosen.weights,
                                          .temperature = 1});
    float weight = (float)trainer->settings->relation_prediction;
    vlp_trainer_add_loss(trainer, VLP_HORIZONTAL, mine->row_loss, trainer->batch, (double)weight);
    backend->blas->product(model->compute, mine->v_grad,
                           &(vlp_product){.m = trainer->batch,
                                          .n = width,
                                          .k = stride,
                                          .alpha = weight,
                                          .lda = stride,
                                          .ldb = width,
                                          .ldc = width},
                           mine->relation_logits, relations->value);
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
                           mine->relation_logits, mine->v);
    backend->transform->relation_query_backward(model->compute, mine->heads_grad, mine->answers_grad,
                                                &model->form, mine->v_grad, &ends);
}

static vlp_status step(void *state, vlp_trainer *trainer) {
    vlp_horizontal_state *mine = state;
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model), *relations = vlp_model_relations(model);
    if (mine->dropped_q) drop_out(mine->dropped_q, trainer->q, trainer);
    VLP_TRY(scores_all(trainer->settings) ? all_step(mine, trainer) : negative_step(mine, trainer));
    if (mine->dropped_q) drop_out(mine->q_grad, mine->q_grad, trainer);
    if (trainer->other_q_grad)
        backend->rows->add(model->compute, mine->q_grad, trainer->other_q_grad,
                           (int64_t)trainer->batch * model->form.query_width);
    bool relation = trainer->settings->relation_prediction > 0;
    int64_t ends = relation ? 2 * (int64_t)trainer->batch : trainer->batch;
    backend->memory->zero(model->compute, mine->heads_grad,
                          (size_t)ends * (size_t)model->form.entity_width * sizeof(float));
    vlp_related_rows heads =
        vlp_model_related(model, trainer->head_rows, trainer->chosen.relations, trainer->batch);
    VLP_TRY(backend->transform->query_backward(model->compute, mine->heads_grad, relations->grad,
                                               &model->form, mine->q_grad, &heads, false));
    if (relation) relation_step(mine, trainer);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    VLP_TRY(backend->rows->scatter_add(model->compute, &entity_grad, mine->heads_grad, NULL,
                                       trainer->ends, ends));
    if (trainer->settings->n3 > 0) VLP_TRY(n3_step(trainer));
    return VLP_OK;
}

/* ---- Updates ------------------------------------------------------------------------------------- */

/* Gradients of relations start from zero; rows of entities are set where they are first touched. Where
 * another component adds to all entities, or along with a loss over all of them, whole tables are added.
 */
static void clear(void *state, vlp_trainer *trainer) {
    (void)state;
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model), *relations = vlp_model_relations(model);
    backend->memory->zero(model->compute, relations->grad,
                          (size_t)relations->rows * (size_t)relations->width * sizeof(float));
    bool whole = trainer->entities_dense || scores_all(trainer->settings);
    if (!trainer->embeddings_shared || !whole) return;
    backend->memory->zero(model->compute, entities->grad,
                          (size_t)entities->rows * (size_t)entities->width * sizeof(float));
    backend->memory->fill_bytes(model->compute, entities->touched, 1, (size_t)entities->rows);
}

static vlp_status refresh(void *state, vlp_trainer *trainer) {
    const vlp_horizontal_state *mine = state;
    vlp_model *model = trainer->model;
    const vlp_table *entities = vlp_model_entities(model);
    if (!trainer->entity_norms) return VLP_OK;
    if (mine->fused)
        return model->backend->bf16->pair_norms(model->compute, trainer->entity_norms, entities->value,
                                                model->entities, &entities->layout);
    model->backend->rows->inverse_norms(model->compute, trainer->entity_norms, entities->value,
                                        entities->rows, entities->width);
    return VLP_OK;
}

static vlp_status update(bool *done, vlp_updated *table, void *state, vlp_trainer *trainer,
                         const vlp_update *options) {
    const vlp_horizontal_state *mine = state;
    const vlp_model *model = trainer->model;
    if (&model->tables[table->table] != vlp_model_entities(model)) return VLP_OK;
    table->lazy = trainer->settings->optimizer == VLP_LAZY_ADAM;
    table->inverse_norms = trainer->entity_norms;
    *done = mine->fused;
    if (!mine->fused) return VLP_OK;
    vlp_pairs pairs = vlp_horizontal_pairs(mine, trainer);
    return model->backend->bf16->pair_update(model->compute, table, options, &model->form, mine->scores,
                                             loss_q(mine, trainer), &pairs);
}

const vlp_component_training vlp_horizontal_training = {.optimizer = optimizer,
                                                        .independent = independent,
                                                        .open = open_training,
                                                        .close = close_training,
                                                        .refresh = refresh,
                                                        .clear = clear,
                                                        .step = step,
                                                        .update = update};
