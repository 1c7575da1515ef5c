/* Batches, schedules, updates: the frame around the two losses. */
#include <math.h>
#include <string.h>

#include "graph/reference.h"
#include "learn/trainer_internal.h"

/* ---- Schedule ------------------------------------------------------------------------------------ */

double vlp_rate_at(const vlp_settings *settings, double rate, int64_t step) {
    double steps = (double)settings->steps, at = (double)step;
    int64_t decay_at = settings->decay_at > 0 ? settings->decay_at : (int64_t)(0.6 * steps);
    if (step < settings->warmup) rate *= (at + 1) / (double)settings->warmup;
    switch (settings->schedule) {
    case VLP_STEP:
        return step >= decay_at ? rate * settings->decay : rate;
    case VLP_LINEAR:
        return rate * (1 - at / steps);
    case VLP_COSINE:
        return rate * 0.5 * (1 + cos(M_PI * at / steps));
    default:
        return rate;
    }
}

/* ---- Making -------------------------------------------------------------------------------------- */

static vlp_status prepare_graph(vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    const vlp_dataset *dataset = trainer->dataset;
    if (settings->loss == VLP_LOSS_NEGATIVES || settings->query_weights)
        VLP_TRY(vlp_filter_new(&trainer->known, dataset, 1u << VLP_TRAIN));
    if (settings->loss == VLP_LOSS_NEGATIVES && settings->negatives_from == VLP_NEGATIVES_RED) {
        vlp_skeleton *skeleton = NULL;
        VLP_TRY(vlp_skeleton_new(&skeleton, dataset->graph, settings->threads));
        vlp_status status =
            vlp_shells_new(&trainer->shells, skeleton, 8, (int64_t)settings->distance_memory << 20,
                           settings->threads, trainer->observer);
        vlp_skeleton_free(skeleton);
        VLP_TRY(status);
    }
    if (settings->vertical && settings->references > 0) {
        vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
        options.count = settings->references;
        options.per_head = settings->references_per_head;
        options.threads = settings->threads;
        options.observer = trainer->observer;
        VLP_TRY(vlp_graph_references(&trainer->references, dataset->graph, NULL, 0, &options));
    }
    return VLP_OK;
}

/* Where the known answers of every training query stand in the filter's list. */
static vlp_status find_known(vlp_trainer *trainer) {
    int64_t train = trainer->queries / 2, total;
    const vlp_triple *triples = trainer->dataset->splits[VLP_TRAIN].items;
    int32_t relations = vlp_dataset_relation_count(trainer->dataset);
    const int32_t *list = vlp_filter_list(trainer->known, &total);
    if (total > UINT32_MAX)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%lld known answers are more than a trainer can hold",
                        (long long)total);
    trainer->known_begin = vlp_alloc((size_t)trainer->queries, sizeof *trainer->known_begin);
    trainer->known_counts = vlp_alloc((size_t)trainer->queries, sizeof *trainer->known_counts);
    if (!trainer->known_begin || !trainer->known_counts) return vlp_fail_memory("known answers");
#pragma omp parallel for num_threads(vlp_thread_count(trainer->settings->threads)) schedule(static)
    for (int64_t query = 0; query < trainer->queries; query++) {
        vlp_triple triple = triples[query % train];
        bool forward = query < train;
        int64_t count;
        const int32_t *answers = vlp_filter_answers(trainer->known, forward ? triple.head : triple.tail,
                                                    triple.relation + (forward ? 0 : relations), &count);
        trainer->known_begin[query] = (uint32_t)(answers - list);
        trainer->known_counts[query] = (int32_t)count;
    }
    return VLP_OK;
}

/* Hands a host array to the backend; *out stays NULL for an array that is not there. */
static vlp_status make_resident(vlp_trainer *trainer, void *out, const void *host, int64_t count,
                                size_t size) {
    const vlp_model *model = trainer->model;
    if (!host) return VLP_OK;
    assert(trainer->resident_count < MAX_RESIDENTS);
    size_t bytes = (size_t)count * size;
    const void *memory = model->backend->memory->resident(model->compute, host, bytes);
    if (!memory)
        return vlp_fail_device_memory(model->backend, model->compute, "the training graph",
                                      (int64_t)bytes, "lower distance_memory or references");
    trainer->residents[trainer->resident_count++] = memory;
    memcpy(out, &memory, sizeof memory);
    return VLP_OK;
}

static vlp_status upload_graph(vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    const vlp_triple_list *train = &trainer->dataset->splits[VLP_TRAIN];
    vlp_query_tables *tables = &trainer->tables;
    int64_t queries = trainer->queries, known = 0;
    *tables = (vlp_query_tables){.triples = train->count,
                                 .relations = vlp_dataset_relation_count(trainer->dataset),
                                 .seed = settings->seed,
                                 .weigh = settings->query_weights,
                                 .capacity = settings->references};
    VLP_TRY(make_resident(trainer, &tables->items, train->items, train->count, sizeof(vlp_triple)));
    if (trainer->known) {
        VLP_TRY(find_known(trainer));
        const int32_t *list = vlp_filter_list(trainer->known, &known);
        VLP_TRY(make_resident(trainer, &trainer->known_list, list, known, sizeof *list));
        VLP_TRY(make_resident(trainer, &tables->known_begin, trainer->known_begin, queries,
                              sizeof *tables->known_begin));
        VLP_TRY(make_resident(trainer, &tables->known_counts, trainer->known_counts, queries,
                              sizeof *tables->known_counts));
    }
    if (trainer->references) {
        const int32_t *counts;
        const vlp_reference *edges = vlp_references_all(trainer->references, &counts);
        VLP_TRY(
            make_resident(trainer, &tables->edges, edges, queries * tables->capacity, sizeof *edges));
        VLP_TRY(make_resident(trainer, &tables->edge_counts, counts, queries, sizeof *counts));
    }
    const vlp_shells *shells = trainer->shells;
    if (!shells) return VLP_OK;
    vlp_shell_view *view = &trainer->view;
    int64_t nodes = shells->nodes, stride = vlp_shells_stride(shells->nodes);
    *view = (vlp_shell_view){.nodes = shells->nodes, .limit = shells->limit, .stride = stride};
    VLP_TRY(make_resident(trainer, &view->matrix, shells->matrix, nodes * stride, 1));
    VLP_TRY(make_resident(trainer, &view->counts, shells->counts, nodes * (shells->limit + 1),
                          sizeof *shells->counts));
    VLP_TRY(make_resident(trainer, &view->near, shells->near, nodes, 1));
    VLP_TRY(make_resident(trainer, &view->near_offset, shells->near_offset, nodes + 1,
                          sizeof *shells->near_offset));
    return make_resident(trainer, &view->near_member, shells->near_member, shells->near_offset[nodes],
                         sizeof *shells->near_member);
}

/* An array of the trainer on the backend: where its pointer is, and how large. */
typedef struct array {
    void *place; /* address of the pointer */
    int64_t count;
    size_t size;
} array;

enum { MAX_ARRAYS = 48 };

static int32_t batch_arrays(vlp_trainer *trainer, array *out) {
    const vlp_settings *settings = trainer->settings;
    vlp_batch *chosen = &trainer->chosen;
    int64_t b = trainer->batch, most = settings->references;
    int64_t pairs = settings->loss == VLP_LOSS_NEGATIVES ? b * trainer->width : 0;
    int64_t sampled = settings->candidates > 0 ? b + settings->candidates : 0;
    const array arrays[] = {{&trainer->report, 1, sizeof(vlp_step_report)},
                            {&trainer->ends, 2 * b, sizeof(int32_t)},
                            {&chosen->relations, b, sizeof(int32_t)},
                            {&chosen->weights, b, sizeof(float)},
                            {&chosen->pairs, pairs, sizeof(int32_t)},
                            {&chosen->known_begin, pairs ? b : 0, sizeof(int64_t)},
                            {&chosen->known_end, pairs ? b : 0, sizeof(int64_t)},
                            {&chosen->reference_heads, b * most, sizeof(int32_t)},
                            {&chosen->reference_answers, b * most, sizeof(int32_t)},
                            {&chosen->reference_counts, settings->vertical ? b : 0, sizeof(int32_t)},
                            {&trainer->columns.ids, sampled, sizeof(int32_t)},
                            {&trainer->columns.offsets, sampled, sizeof(float)},
                            {&trainer->columns.answers, sampled ? b : 0, sizeof(int32_t)},
                            {&trainer->scores, pairs, sizeof(float)}};
    memcpy(out, arrays, sizeof arrays);
    return (int32_t)(sizeof arrays / sizeof *arrays);
}

static int32_t work_arrays(vlp_trainer *trainer, array *out) {
    const vlp_settings *settings = trainer->settings;
    const vlp_form *form = &trainer->model->form;
    int64_t b = trainer->batch, entities = trainer->model->entities;
    int64_t e = form->entity_width, q = form->query_width;
    int64_t sampled = settings->candidates > 0 ? b + settings->candidates : 0;
    int64_t shared =
        settings->vertical && settings->vertical_gradient ? sampled ? sampled : entities : 0;
    int64_t asked = settings->relation_prediction > 0 ? b : 0;
    int64_t columns = sampled > entities ? sampled : entities;
    int64_t stride = vlp_trainer_stride(trainer, columns), cells = trainer->block * stride;
    bool all = settings->loss == VLP_LOSS_CROSS_ENTROPY;
    int64_t padded = vlp_bf16_layout_stride(&trainer->model->tables[VLP_TABLE_ENTITIES].layout);
    int64_t relations = vlp_trainer_stride(trainer, trainer->model->relations);
    const array arrays[] = {
        {&trainer->even, b, sizeof(float)},
        {&trainer->row_loss, b, sizeof(float)},
        {&trainer->aggregator_loss, b, sizeof(float)},
        {&trainer->head_rows, b * e, sizeof(float)},
        {&trainer->heads_grad, (b + asked) * e, sizeof(float)},
        {&trainer->q, b * q, sizeof(float)},
        {&trainer->q_grad, b * q, sizeof(float)},
        {&trainer->logits, all ? cells : 0, sizeof(float)},
        {&trainer->aggregator_logits, settings->vertical ? cells : 0, sizeof(float)},
        {&trainer->bf16_q, all && trainer->uses_bf16 ? b * padded : 0, sizeof(vlp_bf16)},
        {&trainer->bf16_logits, all && trainer->uses_bf16 ? cells : 0, sizeof(vlp_bf16)},
        {&trainer->bf16_aggregator_logits, trainer->aggregator_uses_bf16 ? cells : 0, sizeof(vlp_bf16)},
        {&trainer->padded_grad, trainer->aggregator_uses_bf16 ? b * padded : 0, sizeof(float)},
        {&trainer->inverse_norms, columns, sizeof(float)},
        {&trainer->output_grad, b * e, sizeof(float)},
        {&trainer->candidate_rows, vlp_trainer_stride(trainer, sampled) * e, sizeof(float)},
        {&trainer->candidate_grad, vlp_trainer_stride(trainer, shared) * e, sizeof(float)},
        {&trainer->projected, shared * e, sizeof(float)},
        {&trainer->vertical_q_grad, shared ? b * q : 0, sizeof(float)},
        {&trainer->answer_rows, asked * e, sizeof(float)},
        {&trainer->v, asked * form->relation_width, sizeof(float)},
        {&trainer->v_grad, asked * form->relation_width, sizeof(float)},
        {&trainer->relation_logits, asked * relations, sizeof(float)}};
    memcpy(out, arrays, sizeof arrays);
    return (int32_t)(sizeof arrays / sizeof *arrays);
}

static int32_t all_arrays(vlp_trainer *trainer, array out[MAX_ARRAYS]) {
    int32_t count = batch_arrays(trainer, out);
    return count + work_arrays(trainer, out + count);
}

/* Every query counts the same in the head's loss. */
static vlp_status upload_even(vlp_trainer *trainer) {
    const vlp_model *model = trainer->model;
    float *even = vlp_alloc((size_t)trainer->batch, sizeof *even);
    if (!even) return vlp_fail_memory("a batch");
    for (int32_t i = 0; i < trainer->batch; i++)
        even[i] = (float)(trainer->settings->vertical_weight / trainer->batch);
    vlp_status status = model->backend->memory->upload(model->compute, trainer->even, even,
                                                       (size_t)trainer->batch * sizeof *even);
    vlp_free(even);
    return status;
}

/* Pairs and columns are numbered by int32_t. */
static vlp_status check_counts(const vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    int64_t pairs = (int64_t)trainer->batch * trainer->width;
    if (settings->loss == VLP_LOSS_NEGATIVES && pairs > INT32_MAX)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%d queries with %d negatives each are more than %d pairs; negatives = %d would "
                        "fit, or a smaller batch",
                        trainer->batch, settings->negatives, INT32_MAX, INT32_MAX / trainer->batch - 1);
    if (settings->candidates > INT32_MAX - trainer->batch)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%d candidates and %d answers are more than %d columns; candidates = %d would "
                        "fit",
                        settings->candidates, trainer->batch, INT32_MAX, INT32_MAX - trainer->batch);
    return VLP_OK;
}

static vlp_status allocate(vlp_trainer *trainer) {
    array arrays[MAX_ARRAYS];
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    int64_t rows = LOGIT_LIMIT / (model->entities > 0 ? model->entities : 1), bytes = 0;
    trainer->block = (int32_t)(rows < 1 ? 1 : rows < trainer->batch ? rows : trainer->batch);
    int32_t count = all_arrays(trainer, arrays);
    for (int32_t i = 0; i < count; i++) bytes += arrays[i].count * (int64_t)arrays[i].size;
    VLP_TRY(vlp_check_device_memory(backend, model->compute, "a batch", bytes,
                                    "lower batch, negatives or candidates"));
    for (int32_t i = 0; i < count; i++) {
        if (arrays[i].count == 0) continue;
        void *memory =
            backend->memory->allocate(model->compute, (size_t)arrays[i].count * arrays[i].size);
        if (!memory)
            return vlp_fail_device_memory(backend, model->compute, "a batch", bytes,
                                          "lower batch, negatives or candidates");
        memcpy(arrays[i].place, &memory, sizeof memory);
    }
    trainer->chosen.heads = trainer->ends;
    trainer->chosen.answers = trainer->ends + trainer->batch;
    trainer->answers_grad = trainer->heads_grad + (int64_t)trainer->batch * model->form.entity_width;
    trainer->chosen.count = trainer->batch;
    trainer->chosen.width = trainer->width;
    for (int i = 0; i < 2; i++) {
        trainer->plans[i] = backend->steps->plan_new(model->compute);
        if (!trainer->plans[i]) return vlp_fail_memory("a step");
    }
    if (trainer->settings->vertical)
        VLP_TRY(vlp_aggregator_work_new(&trainer->head, trainer->model, trainer->batch,
                                        trainer->aggregator_uses_bf16));
    return upload_even(trainer);
}

vlp_status vlp_trainer_new(vlp_trainer **out, const vlp_dataset *dataset, const vlp_settings *settings,
                           vlp_model *model, const vlp_observer *observer) {
    *out = NULL;
    vlp_trainer *trainer = vlp_alloc_zero(1, sizeof *trainer);
    if (!trainer) return vlp_fail_memory("a trainer");
    trainer->dataset = dataset;
    trainer->settings = settings;
    trainer->model = model;
    trainer->observer = observer;
    trainer->queries = 2 * dataset->splits[VLP_TRAIN].count;
    trainer->batch = settings->batch < trainer->queries ? settings->batch : (int32_t)trainer->queries;
    trainer->width = settings->negatives + 1;
    trainer->uses_bf16 = settings->precision == VLP_PRECISION_BF16 && model->backend->bf16;
    /* Sampled candidates are gathered, and what they feel of L1 is projected: both in fp32. */
    bool felt = settings->vertical && settings->vertical_gradient;
    trainer->aggregator_uses_bf16 =
        trainer->uses_bf16 && settings->vertical && settings->candidates == 0 && !felt;
    trainer->fused = trainer->uses_bf16 && settings->loss == VLP_LOSS_NEGATIVES && settings->clip == 0 &&
                     settings->optimizer != VLP_LAZY_ADAM && !felt &&
                     !vlp_form_transforms_answers(&model->form);
    vlp_status status = check_counts(trainer);
    if (status == VLP_OK && trainer->uses_bf16) status = vlp_model_keep_bf16(model);
    if (status == VLP_OK) status = prepare_graph(trainer);
    if (status == VLP_OK) status = upload_graph(trainer);
    if (status == VLP_OK) status = allocate(trainer);
    if (status != VLP_OK) {
        vlp_trainer_free(trainer);
        return status;
    }
    *out = trainer;
    return VLP_OK;
}

void vlp_trainer_free(vlp_trainer *trainer) {
    if (!trainer) return;
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    array arrays[MAX_ARRAYS];
    for (int i = 0; i < 2; i++)
        if (trainer->plans[i]) backend->steps->plan_free(model->compute, trainer->plans[i]);
    int32_t count = all_arrays(trainer, arrays);
    for (int32_t i = 0; i < count; i++) {
        void *memory;
        memcpy(&memory, arrays[i].place, sizeof memory);
        if (memory) backend->memory->release(model->compute, memory);
    }
    for (int32_t i = 0; i < trainer->resident_count; i++)
        backend->memory->dismiss(model->compute, trainer->residents[i]);
    vlp_aggregator_work_free(&trainer->head, model);
    vlp_free(trainer->known_begin);
    vlp_free(trainer->known_counts);
    vlp_filter_free(trainer->known);
    vlp_shells_free(trainer->shells);
    vlp_references_free(trainer->references);
    vlp_free(trainer);
}

/* ---- The step ------------------------------------------------------------------------------------ */

void vlp_trainer_add_loss(vlp_trainer *trainer, vlp_step_group group, int64_t rows, double weight) {
    const vlp_model *model = trainer->model;
    const float *losses = group == VLP_GROUP_AGGREGATOR ? trainer->aggregator_loss : trainer->row_loss;
    model->backend->rows->sum(model->compute, &trainer->report->losses[group], losses, rows, weight);
}

vlp_pairs vlp_trainer_pairs(const vlp_trainer *trainer) {
    const vlp_table *entities = &trainer->model->tables[VLP_TABLE_ENTITIES];
    return (vlp_pairs){.batch = trainer->batch,
                       .width = trainer->width,
                       .entities = trainer->chosen.pairs,
                       .table = entities->value,
                       .table_rows = trainer->model->entities,
                       .bf16 = trainer->uses_bf16 ? entities->bf16 : NULL,
                       .layout = entities->layout};
}

static vlp_step_group group_of(int id) {
    return vlp_table_of_aggregator(id) ? VLP_GROUP_AGGREGATOR : VLP_GROUP_EMBEDDINGS;
}

/* The bits of the tables of a group. */
static uint32_t tables_of(const vlp_model *model, vlp_step_group group) {
    uint32_t tables = 0;
    for (int id = 0; id < VLP_TABLES; id++)
        if (model->tables[id].rows > 0 && group_of(id) == group) tables |= 1u << id;
    assert(tables >> VLP_MAX_TABLES == 0);
    return tables;
}

/* Sees whether the loss is finite, and how gradients are to be clipped. */
static void check_step(vlp_trainer *trainer, vlp_step_group group, uint32_t tables) {
    vlp_model *model = trainer->model;
    vlp_step_check check = {group, tables, trainer->settings->clip};
    for (int id = 0; id < VLP_TABLES && check.clip > 0; id++) {
        const vlp_table *table = &model->tables[id];
        if (!(tables >> id & 1)) continue;
        vlp_table_gradient grad = vlp_table_gradient_of(table);
        model->backend->rows->square_sum(model->compute, &trainer->report->squares[id], &grad);
    }
    model->backend->steps->check(model->compute, trainer->report, &check);
}

/* Whether the norms of all entities are used, and so are to follow their updates. */
static bool needs_norms(const vlp_trainer *trainer) {
    return trainer->settings->vertical && trainer->settings->candidates == 0;
}

static vlp_updated updated_table(const vlp_trainer *trainer, int id) {
    const vlp_table *table = &trainer->model->tables[id];
    bool entities = id == VLP_TABLE_ENTITIES;
    return (vlp_updated){.table = id,
                         .group = group_of(id),
                         .width = table->width,
                         .rows = table->rows,
                         .value = table->value,
                         .grad = table->grad,
                         .first = table->first,
                         .second = table->second,
                         .touched = table->touched,
                         .lazy = entities && trainer->settings->optimizer == VLP_LAZY_ADAM,
                         .inverse_norms =
                             entities && needs_norms(trainer) ? trainer->inverse_norms : NULL,
                         .bf16 = trainer->uses_bf16 ? table->bf16 : NULL,
                         .layout = table->layout};
}

static vlp_status update_tables(vlp_trainer *trainer, uint32_t tables) {
    const vlp_settings *settings = trainer->settings;
    vlp_model *model = trainer->model;
    vlp_update update = {.kind = settings->optimizer == VLP_ADAGRAD,
                         .beta1 = (float)settings->beta1,
                         .beta2 = (float)settings->beta2,
                         .epsilon = (float)settings->epsilon,
                         .report = trainer->report};
    vlp_updated updated[VLP_TABLES];
    int32_t count = 0;
    for (int id = 0; id < VLP_TABLES; id++) {
        if (!(tables >> id & 1)) continue;
        updated[count] = updated_table(trainer, id);
        if (id == VLP_TABLE_ENTITIES && trainer->fused) {
            vlp_pairs pairs = vlp_trainer_pairs(trainer);
            VLP_TRY(model->backend->bf16->pair_update(model->compute, &updated[count], &update,
                                                      &model->form, trainer->scores, trainer->q,
                                                      &pairs));
        } else {
            count++;
        }
    }
    assert(count <= VLP_MAX_TABLES);
    model->backend->optimizer->update(model->compute, &update, updated, count);
    return VLP_OK;
}

/* Copies and norms of tables that were changed by others than updates. */
static vlp_status refresh(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    if (trainer->fresh) return VLP_OK;
    if (trainer->uses_bf16) vlp_model_convert_bf16(model);
    if (needs_norms(trainer) && trainer->fused)
        VLP_TRY(model->backend->bf16->pair_norms(model->compute, trainer->inverse_norms, entities->value,
                                                 model->entities, &entities->layout));
    else if (needs_norms(trainer))
        model->backend->rows->inverse_norms(model->compute, trainer->inverse_norms, entities->value,
                                            entities->rows, entities->width);
    trainer->fresh = true;
    return VLP_OK;
}

/* Gradients that more than one adds to start from zero; the head's are set, and rows of entities when
 * they are touched. */
static void clear_gradients(vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES],
              *relations = &model->tables[VLP_TABLE_RELATIONS];
    backend->memory->zero(model->compute, relations->grad,
                          (size_t)relations->rows * (size_t)relations->width * sizeof(float));
    /* Where L1 is felt by all entities, or along with a 1-to-All loss, whole tables are added. */
    const vlp_settings *settings = trainer->settings;
    if (!settings->vertical || !settings->vertical_gradient ||
        (settings->candidates > 0 && settings->loss == VLP_LOSS_NEGATIVES))
        return;
    backend->memory->zero(model->compute, entities->grad,
                          (size_t)entities->rows * (size_t)entities->width * sizeof(float));
    backend->memory->fill_bytes(model->compute, entities->touched, 1, (size_t)entities->rows);
}

/* Moves the tables of a group whose gradients are made. */
static vlp_status move_group(vlp_trainer *trainer, vlp_step_group group) {
    uint32_t tables = tables_of(trainer->model, group);
    check_step(trainer, group, tables);
    return update_tables(trainer, tables);
}

/* All operations of a step. They are the same in every step: what differs is in the backend's memory.
 * The two losses do not touch the same memory, unless embeddings feel both; and nobody else reads the
 * head, so that it moves as soon as its gradients are there. */
static vlp_status make_step(vlp_trainer *trainer, bool aggregator_only) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    bool vertical = trainer->settings->vertical;
    bool beside = vertical && !trainer->settings->vertical_gradient && !aggregator_only;
    backend->memory->zero(model->compute, trainer->report->losses, sizeof trainer->report->losses);
    clear_gradients(trainer);
    backend->steps->choose_batch(model->compute, &trainer->tables, chosen);
    backend->rows->gather(model->compute, trainer->head_rows, model->tables[VLP_TABLE_ENTITIES].value,
                          chosen->heads, trainer->batch, model->form.entity_width);
    vlp_related_rows heads =
        vlp_model_related(model, trainer->head_rows, chosen->relations, trainer->batch);
    backend->transform->query(model->compute, trainer->q, &model->form, &heads, false);
    if (beside) backend->steps->fork_begin(model->compute);
    if (vertical) {
        VLP_TRY(vlp_vertical_step(trainer));
        VLP_TRY(move_group(trainer, VLP_GROUP_AGGREGATOR));
    }
    if (beside) backend->steps->fork_end(model->compute);
    if (aggregator_only) return VLP_OK;
    VLP_TRY(vlp_horizontal_step(trainer));
    if (beside) backend->steps->fork_join(model->compute);
    return move_group(trainer, VLP_GROUP_EMBEDDINGS);
}

vlp_status vlp_trainer_step(vlp_step_loss *loss, vlp_trainer *trainer, int64_t step,
                            bool aggregator_only) {
    const vlp_settings *settings = trainer->settings;
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    double aggregator_rate = settings->vertical_rate > 0 ? settings->vertical_rate : settings->rate;
    vlp_step_values values = {
        .step = step,
        .rates = {(float)vlp_rate_at(settings, settings->rate, step),
                  (float)vlp_rate_at(settings, aggregator_rate, step)},
        .correction1 = (float)(1 - pow(settings->beta1, (double)step + 1)),
        .correction2 = (float)(1 - pow(settings->beta2, (double)step + 1)),
    };
    VLP_TRY(refresh(trainer));
    vlp_plan *plan = trainer->plans[aggregator_only];
    if (!backend->steps->begin(model->compute, plan, &values)) {
        vlp_status status = make_step(trainer, aggregator_only);
        vlp_status ended = backend->steps->end(model->compute, plan);
        VLP_TRY(status);
        VLP_TRY(ended);
    }
    return loss ? vlp_trainer_read(loss, trainer) : VLP_OK;
}

vlp_status vlp_trainer_read(vlp_step_loss *loss, vlp_trainer *trainer) {
    const vlp_model *model = trainer->model;
    vlp_step_report report;
    VLP_TRY(model->backend->memory->download(model->compute, &report, trainer->report, sizeof report));
    *loss = (vlp_step_loss){report.losses[VLP_GROUP_EMBEDDINGS], report.losses[VLP_GROUP_AGGREGATOR]};
    if (report.fault == VLP_FAULT_NONE) return VLP_OK;
    if (report.fault >= VLP_FAULT_TABLE)
        return vlp_fail(
            VLP_ERROR_FORMAT, "step %lld: the gradient of %s is not finite; lower the rate, or set clip",
            (long long)report.fault_step, model->tables[report.fault - VLP_FAULT_TABLE].name);
    return vlp_fail(VLP_ERROR_FORMAT,
                    "step %lld: the %s loss is not finite; lower the rate, or set clip",
                    (long long)report.fault_step,
                    report.fault == VLP_FAULT_LOSS + VLP_GROUP_EMBEDDINGS ? "horizontal" : "vertical");
}
