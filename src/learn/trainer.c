/* Batches, schedules, updates: the frame around the steps of the components. */
#include <math.h>
#include <string.h>

#include "learn/partitions.h"
#include "learn/trainer_internal.h"

static const vlp_component_training *const trainings[VLP_COMPONENTS] = {
    [VLP_HORIZONTAL] = &vlp_horizontal_training,
    [VLP_VERTICAL] = &vlp_vertical_training,
    [VLP_PATH] = &vlp_path_training};

/* ---- Schedule ------------------------------------------------------------------------------------ */

/* The learning rate of a step: schedule and warm-up. */
static double rate_at(const vlp_settings *settings, int64_t step) {
    double steps = (double)settings->steps, at = (double)step, rate = settings->rate;
    int64_t decay_at = settings->decay_at > 0 ? settings->decay_at : (int64_t)(0.6 * steps);
    if (decay_at < 1) decay_at = 1; /* the only step of a run is not after 0.6 of it */
    if (step < settings->warmup) rate *= (at + 1) / (double)settings->warmup;
    switch ((vlp_schedule)settings->schedule) {
    case VLP_CONSTANT:
        break;
    case VLP_STEP:
        return step >= decay_at ? rate * settings->decay : rate;
    case VLP_LINEAR:
        return rate * (1 - at / steps);
    case VLP_COSINE:
        return rate * 0.5 * (1 + cos(M_PI * at / steps));
    }
    return rate;
}

void vlp_trainer_schedule_from(vlp_trainer *trainer, int64_t step) {
    trainer->schedule_start = step;
}

/* The learning rate of a step of a stage; the schedule of the first may have been started anew. */
static double scheduled_rate(const vlp_trainer *trainer, int component, int64_t step) {
    vlp_settings rest = trainer->optimizers[component];
    int64_t start = trainings[component]->own_batch ? 0 : trainer->schedule_start;
    if (start == 0) return rate_at(&rest, step);
    if (step < rest.warmup) rest.rate *= ((double)step + 1) / (double)rest.warmup;
    rest.warmup = 0;
    rest.steps -= start;
    return rate_at(&rest, step - start);
}

/* ---- Stages -------------------------------------------------------------------------------------- */

/* The components that share batches of queries, as bits. */
static unsigned by_queries(unsigned components) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (trainings[c]->own_batch) components &= ~(1u << c);
    return components;
}

vlp_stage vlp_trainer_stage(const vlp_trainer *trainer, int64_t step) {
    unsigned first = by_queries(trainer->trained), second = trainer->trained & ~first;
    int64_t steps = first ? trainer->settings->steps : 0;
    if (step < steps || !second) return (vlp_stage){first, 0, steps};
    return (vlp_stage){second, steps, trainer->own_steps};
}

int64_t vlp_trainer_steps(const vlp_trainer *trainer) {
    bool first = by_queries(trainer->trained) != 0,
         second = by_queries(trainer->trained) != trainer->trained;
    return (first ? trainer->settings->steps : 0) + (second ? trainer->own_steps : 0);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

vlp_status vlp_trainer_resident(vlp_trainer *trainer, void *out, const void *host, int64_t count,
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

vlp_status vlp_trainer_allocate(vlp_trainer *trainer, const vlp_trainer_array *arrays, int32_t count) {
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    int64_t bytes = 0;
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
        assert(trainer->array_count < MAX_ARRAYS);
        trainer->arrays[trainer->array_count++] = memory;
        memcpy(arrays[i].place, &memory, sizeof memory);
    }
    return VLP_OK;
}

/* What all components read of a batch. */
static vlp_status allocate_batch(vlp_trainer *trainer) {
    const vlp_form *form = &trainer->model->form;
    const vlp_triple_list *train = &trainer->dataset->splits[VLP_TRAIN];
    vlp_batch *chosen = &trainer->chosen;
    int64_t b = trainer->batch;
    bool embeds = vlp_model_has(trainer->model, VLP_HORIZONTAL);
    const vlp_trainer_array arrays[] = {
        {&trainer->report, 1, sizeof(vlp_step_report)},
        {&trainer->ends, 2 * b, sizeof(int32_t)},
        {&chosen->relations, b, sizeof(int32_t)},
        {&chosen->weights, b, sizeof(float)},
        {&trainer->head_rows, embeds ? b * form->entity_width : 0, sizeof(float)},
        {&trainer->q, embeds ? b * form->query_width : 0, sizeof(float)}};
    VLP_TRY(vlp_trainer_allocate(trainer, arrays, (int32_t)(sizeof arrays / sizeof *arrays)));
    chosen->heads = trainer->ends;
    chosen->answers = trainer->ends + trainer->batch;
    chosen->count = trainer->batch;
    vlp_query_tables *tables = &trainer->tables;
    tables->triples = trainer->queries / 2;
    tables->relations = vlp_dataset_relation_count(trainer->dataset);
    tables->seed = trainer->settings->seed;
    tables->weigh = trainer->settings->query_weights && tables->keys.count == 0;
    tables->capacity = trainer->settings->references;
    return vlp_trainer_resident(trainer, &tables->items, train->items, train->count, sizeof(vlp_triple));
}

/* ---- Opening ------------------------------------------------------------------------------------- */

/* Components whose steps read queries are opened together: they share the embeddings. */
static unsigned opened_components(const vlp_trainer *trainer) {
    unsigned shared = by_queries(trainer->model->components);
    return trainer->trained & shared ? trainer->trained | shared : trainer->trained & ~shared;
}

static vlp_status open_components(vlp_trainer *trainer) {
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (vlp_model_has(trainer->model, (vlp_component)c) && c != VLP_HORIZONTAL &&
            !trainings[c]->independent(trainer->settings))
            trainer->embeddings_shared = true;
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        if (!(opened_components(trainer) >> c & 1)) continue;
        VLP_TRY(trainings[c]->open(&trainer->states[c], trainer));
        trainer->optimizers[c] = *trainer->settings;
        trainings[c]->optimizer(&trainer->optimizers[c], trainer);
    }
    return VLP_OK;
}

static unsigned components_of_setting(const vlp_model *model, vlp_trains trains) {
    switch (trains) {
    case VLP_TRAINS_ALL:
        break;
    case VLP_TRAINS_AGGREGATOR:
        return 1u << VLP_VERTICAL;
    case VLP_TRAINS_PATH:
        return 1u << VLP_PATH;
    }
    return model->components;
}

static vlp_trainer *trainer_of(const vlp_dataset *dataset, const vlp_settings *settings,
                               vlp_model *model, const vlp_observer *observer) {
    vlp_trainer *trainer = vlp_alloc_zero(1, sizeof *trainer);
    if (!trainer) return NULL;
    trainer->dataset = dataset;
    trainer->settings = settings;
    trainer->model = model;
    trainer->observer = observer;
    trainer->trained = components_of_setting(model, (vlp_trains)settings->trains);
    return trainer;
}

vlp_status vlp_trainer_new_partitioned(vlp_trainer **out, const vlp_dataset *dataset,
                                       const vlp_settings *settings, vlp_model *model,
                                       const vlp_observer *observer, const vlp_trainer_device *device) {
    *out = NULL;
    VLP_TRY(vlp_partitions_check(settings));
    vlp_trainer *trainer = trainer_of(dataset, settings, model, observer);
    if (!trainer) return vlp_fail_memory("a trainer");
    vlp_partitions_options options = {.dataset = dataset,
                                      .settings = settings,
                                      .model = model,
                                      .device = device->backend,
                                      .compute = device->compute,
                                      .observer = observer,
                                      .count = device->count};
    vlp_status status = vlp_partitions_new(&trainer->partitions, &options);
    if (status != VLP_OK) {
        vlp_trainer_free(trainer);
        return status;
    }
    *out = trainer;
    return VLP_OK;
}

vlp_status vlp_trainer_settle(vlp_trainer *trainer) {
    return trainer->partitions ? vlp_partitions_settle(trainer->partitions) : VLP_OK;
}

vlp_status vlp_trainer_new(vlp_trainer **out, const vlp_dataset *dataset, const vlp_settings *settings,
                           vlp_model *model, const vlp_observer *observer) {
    vlp_trainer_part all = {.triples = dataset->splits[VLP_TRAIN].count, .first_step = 0};
    return vlp_trainer_new_part(out, dataset, settings, model, observer, &all);
}

vlp_status vlp_trainer_new_part(vlp_trainer **out, const vlp_dataset *dataset,
                                const vlp_settings *settings, vlp_model *model,
                                const vlp_observer *observer, const vlp_trainer_part *part) {
    *out = NULL;
    vlp_trainer *trainer = trainer_of(dataset, settings, model, observer);
    if (!trainer) return vlp_fail_memory("a trainer");
    trainer->queries = 2 * part->triples;
    trainer->first_step = part->first_step;
    vlp_status status = vlp_trainer_open_keys(trainer);
    int64_t items = trainer->keys.count > 0 ? trainer->keys.count : trainer->queries;
    trainer->batch = settings->batch < items ? settings->batch : (int32_t)items;
    int64_t rows = LOGIT_LIMIT / (model->entities > 0 ? model->entities : 1);
    trainer->block = (int32_t)(rows < 1 ? 1 : rows < trainer->batch ? rows : trainer->batch);
    trainer->uses_bf16 = settings->precision == VLP_PRECISION_BF16 && model->backend->bf16;
    if (status == VLP_OK && trainer->uses_bf16) status = vlp_model_keep_bf16(model);
    if (status == VLP_OK) status = allocate_batch(trainer);
    if (status == VLP_OK) status = open_components(trainer);
    if (status != VLP_OK) {
        vlp_trainer_free(trainer);
        return status;
    }
    *out = trainer;
    return VLP_OK;
}

void vlp_trainer_free(vlp_trainer *trainer) {
    if (!trainer) return;
    vlp_partitions_free(trainer->partitions);
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    for (int i = 0; i < 1 << VLP_COMPONENTS; i++)
        if (trainer->plans[i]) backend->steps->plan_free(model->compute, trainer->plans[i]);
    for (int32_t i = 0; i < trainer->array_count; i++)
        backend->memory->release(model->compute, trainer->arrays[i]);
    for (int32_t i = 0; i < trainer->resident_count; i++)
        backend->memory->dismiss(model->compute, trainer->residents[i]);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (trainer->states[c]) trainings[c]->close(trainer->states[c]);
    vlp_path_keys_free(&trainer->keys);
    vlp_free(trainer);
}

void vlp_trainer_choose(vlp_trainer *trainer, unsigned components) {
    assert(components && !(components & ~trainer->model->components));
    trainer->trained = components;
}

/* ---- Updates ------------------------------------------------------------------------------------- */

void vlp_trainer_add_loss(vlp_trainer *trainer, vlp_component component, const float *row_loss,
                          int64_t rows, double weight) {
    const vlp_model *model = trainer->model;
    model->backend->rows->sum(model->compute, &trainer->report->losses[component], row_loss, rows,
                              weight);
}

/* Checks that a component's loss is finite, and sets how its gradients are clipped. */
static void check_loss(vlp_trainer *trainer, vlp_component component) {
    vlp_model *model = trainer->model;
    vlp_step_check check = {.component = component, .clip = trainer->optimizers[component].clip};
    for (int32_t i = 0; i < model->ranges[component].count; i++) {
        int32_t id = model->ranges[component].first + i;
        check.tables |= 1u << id;
        if (check.clip == 0) continue;
        vlp_table_gradient grad = vlp_table_gradient_of(&model->tables[id]);
        model->backend->rows->square_sum(model->compute, &trainer->report->squares[id], &grad);
    }
    model->backend->steps->check(model->compute, trainer->report, &check);
}

static vlp_updated updated_table(const vlp_trainer *trainer, int32_t id) {
    const vlp_table *table = &trainer->model->tables[id];
    return (vlp_updated){.table = id,
                         .component = table->component,
                         .width = table->width,
                         .rows = table->rows,
                         .value = table->value,
                         .grad = table->grad,
                         .first = table->first,
                         .second = table->second,
                         .touched = table->touched,
                         .bf16 = trainer->uses_bf16 ? table->bf16 : NULL,
                         .layout = table->layout};
}

/* Updates the tables of a component whose gradients are computed. */
static vlp_status update_component(vlp_trainer *trainer, vlp_component component) {
    const vlp_settings *settings = &trainer->optimizers[component];
    vlp_model *model = trainer->model;
    check_loss(trainer, component);
    vlp_update update = {.kind = settings->optimizer == VLP_ADAGRAD,
                         .beta1 = (float)settings->beta1,
                         .beta2 = (float)settings->beta2,
                         .epsilon = (float)settings->epsilon,
                         .decay = (float)settings->weight_decay,
                         .report = trainer->report};
    vlp_updated updated[VLP_MAX_TABLES];
    int32_t count = 0;
    for (int32_t i = 0; i < model->ranges[component].count; i++) {
        bool done = false;
        updated[count] = updated_table(trainer, model->ranges[component].first + i);
        if (trainings[component]->update)
            VLP_TRY(trainings[component]->update(&done, &updated[count], trainer->states[component],
                                                 trainer, &update));
        if (!done) count++;
    }
    model->backend->optimizer->update(model->compute, &update, updated, count);
    return VLP_OK;
}

/* Copies and norms of tables that were changed by others than updates. */
static vlp_status refresh(vlp_trainer *trainer) {
    if (trainer->fresh) return VLP_OK;
    if (trainer->uses_bf16) vlp_model_convert_bf16(trainer->model);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (trainer->states[c] && trainings[c]->refresh)
            VLP_TRY(trainings[c]->refresh(trainer->states[c], trainer));
    trainer->fresh = true;
    return VLP_OK;
}

/* ---- The step ------------------------------------------------------------------------------------ */

static vlp_status step_component(vlp_trainer *trainer, int c) {
    return trainings[c]->step(trainer->states[c], trainer);
}

/* Chooses the batch, and computes what components share of it. */
static void begin_step(vlp_trainer *trainer, unsigned trained) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_batch *chosen = &trainer->chosen;
    backend->memory->zero(model->compute, trainer->report->losses, sizeof trainer->report->losses);
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (trainer->states[c] && trainings[c]->clear) trainings[c]->clear(trainer->states[c], trainer);
    if (!by_queries(trained)) return;
    backend->steps->choose_batch(model->compute, &trainer->tables, chosen);
    if (!vlp_model_has(model, VLP_HORIZONTAL)) return;
    backend->rows->gather(model->compute, trainer->head_rows, vlp_model_entities(model)->value,
                          chosen->heads, trainer->batch, model->form.entity_width);
    vlp_related_rows heads =
        vlp_model_related(model, trainer->head_rows, chosen->relations, trainer->batch);
    backend->transform->query(model->compute, trainer->q, &model->form, &heads, false);
}

/* All operations of a step. Components are stepped and updated from the last to the first, since those
 * behind the horizontal one may add to the gradients of the embeddings. Those that are independent run
 * concurrently, in a fork, with the others; the first component trained joins them before its update,
 * because they read its tables. */
static vlp_status make_step(vlp_trainer *trainer, unsigned trained) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    unsigned forked = 0;
    int first = 0;
    while (!(trained >> first & 1)) first++;
    for (int c = first + 1; c < VLP_COMPONENTS; c++)
        if (trained >> c & 1 && trainings[c]->independent(trainer->settings)) forked |= 1u << c;
    begin_step(trainer, trained);
    if (forked) backend->steps->fork_begin(model->compute);
    for (int c = VLP_COMPONENTS - 1; c > first; c--) {
        if (!(forked >> c & 1)) continue;
        VLP_TRY(step_component(trainer, c));
        VLP_TRY(update_component(trainer, (vlp_component)c));
    }
    if (forked) backend->steps->fork_end(model->compute);
    for (int c = VLP_COMPONENTS - 1; c >= first; c--) {
        if (!(trained >> c & 1) || forked >> c & 1) continue;
        VLP_TRY(step_component(trainer, c));
        if (c == first && forked) backend->steps->fork_join(model->compute);
        VLP_TRY(update_component(trainer, (vlp_component)c));
    }
    return VLP_OK;
}

vlp_status vlp_trainer_step(vlp_step_loss *loss, vlp_trainer *trainer, int64_t step) {
    if (trainer->partitions) {
        VLP_TRY(vlp_partitions_step(trainer->partitions, step, trainer->schedule_start));
        return loss ? vlp_trainer_read(loss, trainer) : VLP_OK;
    }
    const vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    vlp_stage stage = vlp_trainer_stage(trainer, step);
    int first = 0;
    while (!(stage.components >> first & 1)) first++;
    const vlp_settings *optimizer = &trainer->optimizers[first];
    vlp_step_values values = {
        .step = step - stage.first - trainer->first_step,
        .correction1 = (float)(1 - pow(optimizer->beta1, (double)(step - stage.first) + 1)),
        .correction2 = (float)(1 - pow(optimizer->beta2, (double)(step - stage.first) + 1)),
    };
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (stage.components >> c & 1)
            values.rates[c] = (float)scheduled_rate(trainer, c, step - stage.first);
    VLP_TRY(refresh(trainer));
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (stage.components >> c & 1 && trainings[c]->prepare)
            VLP_TRY(trainings[c]->prepare(trainer->states[c], trainer, values.step));
    vlp_plan **plan = &trainer->plans[stage.components];
    if (!*plan) *plan = backend->steps->plan_new(model->compute);
    if (!*plan) return vlp_fail_memory("a step");
    if (!backend->steps->begin(model->compute, *plan, &values)) {
        vlp_status status = make_step(trainer, stage.components);
        vlp_status ended = backend->steps->end(model->compute, *plan);
        VLP_TRY(status);
        VLP_TRY(ended);
    }
    return loss ? vlp_trainer_read(loss, trainer) : VLP_OK;
}

vlp_status vlp_trainer_read(vlp_step_loss *loss, vlp_trainer *trainer) {
    if (trainer->partitions) return vlp_partitions_read(loss, trainer->partitions);
    const vlp_model *model = trainer->model;
    vlp_step_report report;
    VLP_TRY(model->backend->memory->download(model->compute, &report, trainer->report, sizeof report));
    memcpy(loss->components, report.losses, sizeof loss->components);
    if (report.fault == VLP_FAULT_NONE) return VLP_OK;
    if (report.fault >= VLP_FAULT_TABLE)
        return vlp_fail(VLP_ERROR_DIVERGED,
                        "step %lld: the gradient of %s is not finite; lower the rate, or set clip",
                        (long long)(report.fault_step + trainer->first_step),
                        model->tables[report.fault - VLP_FAULT_TABLE].name);
    return vlp_fail(VLP_ERROR_DIVERGED,
                    "step %lld: the %s loss is not finite; lower the rate, or set clip",
                    (long long)(report.fault_step + trainer->first_step),
                    vlp_component_name((vlp_component)(report.fault - VLP_FAULT_LOSS)));
}
