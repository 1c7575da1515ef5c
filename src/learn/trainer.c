/* Batches, schedules, updates: the frame around the two losses. */
#include <math.h>
#include <string.h>

#include "graph/reference.h"
#include "learn/order.h"
#include "learn/trainer_inside.h"

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

/* An array of the trainer: where its pointer is, and how large. */
typedef struct array {
    void *place; /* address of the pointer */
    int64_t count;
    size_t size;
} array;

enum { MOST_ARRAYS = 48 };

static int32_t host_arrays(vlp_trainer *trainer, array out[MOST_ARRAYS]) {
    int64_t b = trainer->batch, most = trainer->settings->references;
    int64_t columns = trainer->settings->candidates > 0 ? b + trainer->settings->candidates : 0;
    const array arrays[] = {
        {&trainer->query, b, sizeof(int64_t)},
        {&trainer->heads, b, sizeof(int32_t)},
        {&trainer->query_relations, b, sizeof(int32_t)},
        {&trainer->answers, b, sizeof(int32_t)},
        {&trainer->pairs, b * trainer->width, sizeof(int32_t)},
        {&trainer->weights, b, sizeof(float)},
        {&trainer->even, b, sizeof(float)},
        {&trainer->row_loss, b, sizeof(float)},
        {&trainer->known_offset, b + 1, sizeof(int64_t)},
        {&trainer->reference_heads, b * most, sizeof(int32_t)},
        {&trainer->reference_answers, b * most, sizeof(int32_t)},
        {&trainer->reference_counts, b, sizeof(int32_t)},
        {&trainer->columns, columns, sizeof(int32_t)},
        {&trainer->column_answers, b, sizeof(int32_t)},
        {&trainer->offsets, columns, sizeof(float)},
        {&trainer->column_of, columns ? trainer->model->entities : 0, sizeof(int32_t)}};
    memcpy(out, arrays, sizeof arrays);
    return (int32_t)(sizeof arrays / sizeof *arrays);
}

static int32_t device_arrays(vlp_trainer *trainer, array out[MOST_ARRAYS]) {
    const vlp_settings *settings = trainer->settings;
    const vlp_form *form = &trainer->model->form;
    int64_t b = trainer->batch, most = settings->references, entities = trainer->model->entities;
    int64_t e = form->entity_width, q = form->query_width;
    int64_t sampled = settings->candidates > 0 ? b + settings->candidates : 0;
    int64_t shared =
        settings->vertical && settings->vertical_gradient ? sampled ? sampled : entities : 0;
    int64_t asked = settings->relation_prediction > 0 ? b : 0;
    int64_t columns = sampled > entities ? sampled : entities;
    const array arrays[] = {
        {&trainer->d_heads, b, sizeof(int32_t)},
        {&trainer->d_relations, b, sizeof(int32_t)},
        {&trainer->d_answers, b, sizeof(int32_t)},
        {&trainer->d_pairs, b * trainer->width, sizeof(int32_t)},
        {&trainer->d_reference_heads, b * most, sizeof(int32_t)},
        {&trainer->d_reference_answers, b * most, sizeof(int32_t)},
        {&trainer->d_reference_counts, b, sizeof(int32_t)},
        {&trainer->d_weights, b, sizeof(float)},
        {&trainer->d_even, b, sizeof(float)},
        {&trainer->d_row_loss, b, sizeof(float)},
        {&trainer->head_rows, b * e, sizeof(float)},
        {&trainer->heads_grad, b * e, sizeof(float)},
        {&trainer->q, b * q, sizeof(float)},
        {&trainer->q_grad, b * q, sizeof(float)},
        {&trainer->scores, b * trainer->width, sizeof(float)},
        {&trainer->logits, trainer->block * columns, sizeof(float)},
        {&trainer->inverse_norms, columns, sizeof(float)},
        {&trainer->output_grad, b * e, sizeof(float)},
        {&trainer->d_columns, sampled, sizeof(int32_t)},
        {&trainer->d_column_answers, b, sizeof(int32_t)},
        {&trainer->d_offsets, sampled, sizeof(float)},
        {&trainer->candidate_rows, sampled * e, sizeof(float)},
        {&trainer->candidate_grad, shared * e, sizeof(float)},
        {&trainer->projected, shared * e, sizeof(float)},
        {&trainer->vertical_q_grad, shared ? b * q : 0, sizeof(float)},
        {&trainer->answer_rows, asked * e, sizeof(float)},
        {&trainer->answers_grad, asked * e, sizeof(float)},
        {&trainer->v, asked * form->relation_width, sizeof(float)},
        {&trainer->v_grad, asked * form->relation_width, sizeof(float)},
        {&trainer->relation_logits, asked * trainer->model->relations, sizeof(float)}};
    memcpy(out, arrays, sizeof arrays);
    return (int32_t)(sizeof arrays / sizeof *arrays);
}

static vlp_status allocate(vlp_trainer *trainer) {
    array arrays[MOST_ARRAYS];
    const vlp_model *model = trainer->model;
    int64_t rows = LOGIT_LIMIT / (model->entities > 0 ? model->entities : 1);
    trainer->block = (int32_t)(rows < 1 ? 1 : rows < trainer->batch ? rows : trainer->batch);
    int32_t count = host_arrays(trainer, arrays);
    for (int32_t i = 0; i < count; i++) {
        void *memory = vlp_alloc_zero((size_t)arrays[i].count, arrays[i].size);
        if (!memory) return vlp_fail_memory("a batch");
        memcpy(arrays[i].place, &memory, sizeof memory);
    }
    if (trainer->settings->candidates > 0)
        memset(trainer->column_of, 0xff, (size_t)model->entities * sizeof(int32_t));
    count = device_arrays(trainer, arrays);
    for (int32_t i = 0; i < count; i++) {
        if (arrays[i].count == 0) continue;
        void *memory =
            model->backend->allocate(model->compute, (size_t)arrays[i].count * arrays[i].size);
        if (!memory) return vlp_fail_memory("a batch on the device");
        memcpy(arrays[i].place, &memory, sizeof memory);
    }
    if (trainer->settings->vertical)
        VLP_TRY(vlp_head_work_new(&trainer->head, trainer->model, trainer->batch));
    return VLP_OK;
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
    trainer->relations = vlp_dataset_relation_count(dataset);
    trainer->batch = settings->batch < trainer->queries ? settings->batch : (int32_t)trainer->queries;
    trainer->width = settings->negatives + 1;
    vlp_status status = prepare_graph(trainer);
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
    array arrays[MOST_ARRAYS];
    for (int device = 0; device < 2; device++) {
        int32_t count = device ? device_arrays(trainer, arrays) : host_arrays(trainer, arrays);
        for (int32_t i = 0; i < count; i++) {
            void *memory;
            memcpy(&memory, arrays[i].place, sizeof memory);
            if (!memory) continue;
            if (device)
                model->backend->release(model->compute, memory);
            else
                vlp_free(memory);
        }
    }
    vlp_free(trainer->known_list);
    vlp_head_work_free(&trainer->head, model);
    vlp_filter_free(trainer->known);
    vlp_shells_free(trainer->shells);
    vlp_references_free(trainer->references);
    vlp_free(trainer);
}

/* ---- A batch ------------------------------------------------------------------------------------- */

/* A training query: its entity, relation and answer. */
static void query_at(const vlp_trainer *trainer, int64_t query, int32_t *entity, int32_t *relation,
                     int32_t *answer) {
    int64_t train = trainer->queries / 2;
    vlp_triple triple = trainer->dataset->splits[VLP_TRAIN].items[query % train];
    bool forward = query < train;
    *entity = forward ? triple.head : triple.tail;
    *relation = triple.relation + (forward ? 0 : trainer->relations);
    *answer = forward ? triple.tail : triple.head;
}

static int32_t inverse_of(const vlp_trainer *trainer, int32_t relation) {
    return relation < trainer->relations ? relation + trainer->relations : relation - trainer->relations;
}

/* 1 / sqrt(n(h, r) + n(t, r-1) + 6), made to sum to one over the batch. */
static void set_weights(vlp_trainer *trainer) {
    double sum = 0;
    for (int32_t i = 0; i < trainer->batch; i++) {
        double weight = 1;
        if (trainer->settings->query_weights) {
            int64_t forward, backward;
            vlp_filter_answers(trainer->known, trainer->heads[i], trainer->query_relations[i], &forward);
            vlp_filter_answers(trainer->known, trainer->answers[i],
                               inverse_of(trainer, trainer->query_relations[i]), &backward);
            weight = 1 / sqrt((double)(forward + backward + 6));
        }
        trainer->weights[i] = (float)weight;
        sum += weight;
    }
    for (int32_t i = 0; i < trainer->batch; i++) {
        trainer->weights[i] = (float)((double)trainer->weights[i] / sum);
        trainer->even[i] = (float)(trainer->settings->vertical_weight / trainer->batch);
    }
}

static void set_references(vlp_trainer *trainer) {
    int32_t most = trainer->settings->references;
    const vlp_triple *train = trainer->dataset->splits[VLP_TRAIN].items;
    for (int32_t i = 0; i < trainer->batch; i++) {
        int32_t count = 0;
        const vlp_reference *list = NULL;
        if (trainer->references)
            list = vlp_references_get(trainer->references, trainer->query[i], &count);
        trainer->reference_counts[i] = count;
        for (int32_t j = 0; j < count; j++) {
            vlp_triple edge = train[list[j].edge];
            bool forward = trainer->query_relations[i] < trainer->relations;
            trainer->reference_heads[(int64_t)i * most + j] = forward ? edge.head : edge.tail;
            trainer->reference_answers[(int64_t)i * most + j] = forward ? edge.tail : edge.head;
        }
    }
}

static void upload(const vlp_trainer *trainer, void *to, const void *from, int64_t count, size_t size) {
    trainer->model->backend->upload(trainer->model->compute, to, from, (size_t)count * size);
}

/* Chooses and uploads the queries of a step. */
static vlp_status set_batch(vlp_trainer *trainer, int64_t step) {
    int64_t b = trainer->batch, most = trainer->settings->references;
    for (int64_t i = 0; i < b; i++) {
        int64_t at = step * b + i;
        trainer->query[i] = vlp_permuted(at % trainer->queries, trainer->queries,
                                         trainer->settings->seed, (uint64_t)(at / trainer->queries));
        query_at(trainer, trainer->query[i], &trainer->heads[i], &trainer->query_relations[i],
                 &trainer->answers[i]);
        trainer->pairs[i * trainer->width] = trainer->answers[i];
    }
    set_weights(trainer);
    upload(trainer, trainer->d_heads, trainer->heads, b, sizeof(int32_t));
    upload(trainer, trainer->d_relations, trainer->query_relations, b, sizeof(int32_t));
    upload(trainer, trainer->d_answers, trainer->answers, b, sizeof(int32_t));
    upload(trainer, trainer->d_pairs, trainer->pairs, b * trainer->width, sizeof(int32_t));
    upload(trainer, trainer->d_weights, trainer->weights, b, sizeof(float));
    upload(trainer, trainer->d_even, trainer->even, b, sizeof(float));
    if (trainer->settings->vertical) {
        set_references(trainer);
        upload(trainer, trainer->d_reference_heads, trainer->reference_heads, b * most, sizeof(int32_t));
        upload(trainer, trainer->d_reference_answers, trainer->reference_answers, b * most,
               sizeof(int32_t));
        upload(trainer, trainer->d_reference_counts, trainer->reference_counts, b, sizeof(int32_t));
    }
    return VLP_OK;
}

double vlp_trainer_sum(vlp_trainer *trainer, int64_t rows) {
    trainer->model->backend->download(trainer->model->compute, trainer->row_loss, trainer->d_row_loss,
                                      (size_t)rows * sizeof(float));
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) sum += (double)trainer->row_loss[i];
    return sum;
}

/* ---- The step ------------------------------------------------------------------------------------ */

/* The factor that clips the gradient of a group of tables, after seeing that all of it is finite. */
static vlp_status clip_factor(double *factor, vlp_trainer *trainer, int first, int last, int64_t step) {
    vlp_model *model = trainer->model;
    double sum = 0;
    for (int id = first; id <= last; id++) {
        bool finite;
        const vlp_table *table = &model->tables[id];
        if (table->rows == 0) continue;
        sum +=
            model->backend->square_sum(model->compute, table->grad, table->rows * table->width, &finite);
        if (!finite)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "step %lld: the gradient of %s is not finite; lower the rate, or set clip",
                            (long long)step, table->name);
    }
    double clip = trainer->settings->clip;
    *factor = clip > 0 && sum > clip * clip ? clip / sqrt(sum) : 1;
    return VLP_OK;
}

static vlp_status update_tables(vlp_trainer *trainer, int first, int last, double rate, int64_t step) {
    const vlp_settings *settings = trainer->settings;
    vlp_model *model = trainer->model;
    double factor = 1;
    VLP_TRY(clip_factor(&factor, trainer, first, last, step));
    vlp_update update = {.kind = settings->optimizer == VLP_ADAGRAD,
                         .rate = (float)vlp_rate_at(settings, rate, step),
                         .beta1 = (float)settings->beta1,
                         .beta2 = (float)settings->beta2,
                         .epsilon = (float)settings->epsilon,
                         .correction1 = (float)(1 - pow(settings->beta1, (double)step + 1)),
                         .correction2 = (float)(1 - pow(settings->beta2, (double)step + 1)),
                         .scale = (float)factor};
    for (int id = first; id <= last; id++) {
        vlp_table *table = &model->tables[id];
        bool lazy = settings->optimizer == VLP_LAZY_ADAM && id == VLP_TABLE_ENTITIES;
        if (table->rows > 0)
            model->backend->update(model->compute, &update, table->value, table->grad, table->first,
                                   table->second, table->touched, lazy, table->rows, table->width);
    }
    return VLP_OK;
}

vlp_status vlp_trainer_step(vlp_step_loss *loss, vlp_trainer *trainer, int64_t step, bool head_only) {
    const vlp_settings *settings = trainer->settings;
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    *loss = (vlp_step_loss){0, 0};
    VLP_TRY(set_batch(trainer, step));
    backend->gather(model->compute, trainer->head_rows, model->tables[VLP_TABLE_ENTITIES].value,
                    trainer->d_heads, trainer->batch, model->form.entity_width);
    backend->query(model->compute, &model->form, trainer->q, trainer->head_rows, trainer->d_relations,
                   model->tables[VLP_TABLE_RELATIONS].value, trainer->batch, false);
    /* The head first: it reads the rows that the horizontal step's N3 overwrites. */
    if (settings->vertical) VLP_TRY(vlp_vertical_step(&loss->vertical, trainer, step));
    if (!head_only) VLP_TRY(vlp_horizontal_step(&loss->horizontal, trainer, step));
    if (!isfinite(loss->horizontal) || !isfinite(loss->vertical))
        return vlp_fail(VLP_ERROR_FORMAT,
                        "step %lld: the %s loss is not finite; lower the rate, or set clip",
                        (long long)step, isfinite(loss->horizontal) ? "vertical" : "horizontal");
    if (!head_only)
        VLP_TRY(update_tables(trainer, VLP_TABLE_ENTITIES, VLP_TABLE_RELATIONS, settings->rate, step));
    double head_rate = settings->vertical_rate > 0 ? settings->vertical_rate : settings->rate;
    if (settings->vertical)
        VLP_TRY(update_tables(trainer, VLP_TABLE_NODE, VLP_TABLE_OUTPUT_BIAS, head_rate, step));
    return VLP_OK;
}
