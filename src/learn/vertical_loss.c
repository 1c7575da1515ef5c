/* The training of the vertical component: the aggregator by the vertical loss, cross-entropy of
 * softmax(temperature cos(t', t)) over all entities, or over a sampled set.
 *
 * The sampled set holds the answers of the batch, and `candidates` others drawn uniformly without
 * replacement. Each of these represents (entities - answers) / candidates entities, which is added to
 * its logit as a logarithm: the sum over the set is then an unbiased estimate of the sum over all. */
#include "graph/reference.h"
#include "learn/trainer_internal.h"

/* ---- Opening ------------------------------------------------------------------------------------- */

static void optimizer(vlp_settings *settings, const vlp_trainer *trainer) {
    (void)trainer;
    if (settings->vertical_rate > 0) settings->rate = settings->vertical_rate;
}

/* The stop-gradient: the embeddings receive none of its gradient. */
static bool independent(const vlp_settings *settings) {
    return !settings->vertical_gradient;
}

/* A search for all queries that takes longer is not worth waiting for. */
#define LONGEST_SEARCH 60.0 /* s */

/* Whether the references of a batch are found for its step. On a GPU a thread searches while the device
 * is busy; on the CPU it would take the cores of the step itself. */
static vlp_status choose_ahead(bool *ahead, vlp_vertical_state *mine, const vlp_trainer *trainer,
                               const vlp_reference_options *options) {
    const vlp_settings *settings = trainer->settings;
    double seconds = 0;
    /* The batch of a step is known on the host where it is of queries. */
    bool known = settings->loss == VLP_LOSS_NEGATIVES || settings->loss == VLP_LOSS_CROSS_ENTROPY;
    *ahead = known && settings->references_found == VLP_REFERENCES_AHEAD;
    if (!known || settings->references_found == VLP_REFERENCES_BEFORE) return VLP_OK;
    VLP_TRY(vlp_batch_references_new(&mine->ahead, trainer->dataset->graph, options, settings->seed,
                                     trainer->batch, trainer->model->backend != &vlp_cpu_backend));
    vlp_reference_rule rule = vlp_settings_reference_rule(settings);
    VLP_TRY(vlp_batch_references_set(mine->ahead, &rule));
    if (*ahead) return VLP_OK;
    VLP_TRY(vlp_batch_references_time(&seconds, mine->ahead));
    *ahead = seconds > LONGEST_SEARCH;
    if (*ahead) {
        vlp_log(trainer->observer,
                "references of all %lld training queries would take about %.0f s: those of a batch are "
                "found ahead of its step",
                (long long)trainer->queries, seconds);
        return VLP_OK;
    }
    vlp_batch_references_free(mine->ahead);
    mine->ahead = NULL;
    return VLP_OK;
}

static vlp_status allocate_ahead(vlp_vertical_state *mine, vlp_trainer *trainer) {
    vlp_query_tables *tables = &trainer->tables;
    const vlp_trainer_array arrays[] = {
        {&mine->batch_edges, (int64_t)trainer->batch * tables->capacity, sizeof(vlp_reference)},
        {&mine->batch_edge_counts, trainer->batch, sizeof(int32_t)}};
    VLP_TRY(vlp_trainer_allocate(trainer, arrays, 2));
    tables->edges = mine->batch_edges;
    tables->edge_counts = mine->batch_edge_counts;
    tables->of_batch = true;
    return VLP_OK;
}

static vlp_status prepare(void *state, vlp_trainer *trainer, int64_t step) {
    vlp_vertical_state *mine = state;
    const vlp_memory_operations *memory = trainer->model->backend->memory;
    vlp_compute *compute = trainer->model->compute;
    if (!mine->ahead) return VLP_OK;
    const vlp_reference *edges;
    const int32_t *counts;
    size_t rows = (size_t)trainer->batch, width = (size_t)trainer->tables.capacity;
    VLP_TRY(vlp_batch_references_get(&edges, &counts, mine->ahead, step));
    VLP_TRY(memory->upload(compute, mine->batch_edges, edges, rows * width * sizeof *edges));
    return memory->upload(compute, mine->batch_edge_counts, counts, rows * sizeof *counts);
}

static vlp_status prepare_references(vlp_vertical_state *mine, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    vlp_query_tables *tables = &trainer->tables;
    if (settings->references == 0) return VLP_OK;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = settings->references;
    options.per_head = settings->references_per_head;
    options.threads = settings->threads;
    options.observer = trainer->observer;
    bool ahead;
    VLP_TRY(choose_ahead(&ahead, mine, trainer, &options));
    if (ahead) return allocate_ahead(mine, trainer);
    vlp_reference_rule rule = vlp_settings_reference_rule(settings);
    VLP_TRY(
        vlp_graph_references_by(&mine->references, trainer->dataset->graph, NULL, 0, &options, &rule));
    const int32_t *counts;
    const vlp_reference *edges = vlp_references_all(mine->references, &counts);
    VLP_TRY(vlp_trainer_resident(trainer, &tables->edges, edges, trainer->queries * tables->capacity,
                                 sizeof *edges));
    return vlp_trainer_resident(trainer, &tables->edge_counts, counts, trainer->queries, sizeof *counts);
}

static vlp_status allocate(vlp_vertical_state *mine, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    const vlp_model *model = trainer->model;
    vlp_batch *chosen = &trainer->chosen;
    int64_t b = trainer->batch, entities = model->entities, capacity = settings->references;
    int64_t e = model->form.entity_width, q = model->form.query_width;
    int64_t sampled = settings->candidates > 0 ? b + settings->candidates : 0;
    int64_t shared = !settings->vertical_gradient ? 0 : sampled ? sampled : entities;
    int64_t columns = sampled ? sampled : entities;
    int64_t cells = mine->block * vlp_trainer_stride(trainer, columns);
    int64_t padded = vlp_bf16_layout_stride(&vlp_model_entities(model)->layout);
    const vlp_trainer_array arrays[] = {
        {&chosen->reference_heads, b * capacity, sizeof(int32_t)},
        {&chosen->reference_answers, b * capacity, sizeof(int32_t)},
        {&chosen->reference_counts, b, sizeof(int32_t)},
        {&mine->columns.ids, sampled, sizeof(int32_t)},
        {&mine->columns.offsets, sampled, sizeof(float)},
        {&mine->columns.answers, sampled ? b : 0, sizeof(int32_t)},
        {&mine->even, b, sizeof(float)},
        {&mine->row_loss, b, sizeof(float)},
        {&mine->logits, cells, sizeof(float)},
        {&mine->bf16_logits, mine->uses_bf16 ? cells : 0, sizeof(vlp_bf16)},
        {&mine->padded_grad, mine->uses_bf16 ? b * padded : 0, sizeof(float)},
        {&mine->inverse_norms, columns, sizeof(float)},
        {&mine->output_grad, b * e, sizeof(float)},
        {&mine->candidate_rows, vlp_trainer_stride(trainer, sampled) * e, sizeof(float)},
        {&mine->candidate_grad, vlp_trainer_stride(trainer, shared) * e, sizeof(float)},
        {&mine->projected, shared * e, sizeof(float)},
        {&trainer->other_q_grad, shared ? b * q : 0, sizeof(float)}};
    return vlp_trainer_allocate(trainer, arrays, (int32_t)(sizeof arrays / sizeof *arrays));
}

/* Every query has the same weight in the loss. */
static vlp_status upload_even(vlp_vertical_state *mine, const vlp_trainer *trainer) {
    const vlp_model *model = trainer->model;
    float *even = vlp_alloc((size_t)trainer->batch, sizeof *even);
    if (!even) return vlp_fail_memory("a batch");
    for (int32_t i = 0; i < trainer->batch; i++)
        even[i] = (float)(trainer->settings->vertical_weight / trainer->batch);
    vlp_status status = model->backend->memory->upload(model->compute, mine->even, even,
                                                       (size_t)trainer->batch * sizeof *even);
    vlp_free(even);
    return status;
}

static vlp_status open_training(void **state, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    if (settings->candidates > INT32_MAX - trainer->batch) /* columns are numbered by int32_t */
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "%d candidates and %d answers are more than %d columns; candidates = %d would "
                        "fit",
                        settings->candidates, trainer->batch, INT32_MAX, INT32_MAX - trainer->batch);
    vlp_vertical_state *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("a trainer");
    mine->model = trainer->model;
    /* Sampled candidates are gathered, and their gradient is projected: both in fp32. */
    mine->uses_bf16 = trainer->uses_bf16 && settings->candidates == 0 && !settings->vertical_gradient;
    mine->block = trainer->block;
    if (settings->candidates > 0) {
        int64_t fit = LOGIT_LIMIT / ((int64_t)trainer->batch + settings->candidates);
        mine->block = (int32_t)(fit < 1 ? 1 : fit < trainer->batch ? fit : trainer->batch);
    }
    VLP_TRY(prepare_references(mine, trainer));
    VLP_TRY(allocate(mine, trainer));
    VLP_TRY(vlp_aggregator_work_new(&mine->aggregator, trainer->model, trainer->batch, mine->uses_bf16));
    trainer->entities_dense = settings->vertical_gradient && settings->candidates == 0;
    if (settings->candidates == 0) trainer->entity_norms = mine->inverse_norms;
    return upload_even(mine, trainer);
}

static void close_training(void *state) {
    vlp_vertical_state *mine = state;
    vlp_aggregator_work_free(&mine->aggregator, mine->model);
    vlp_references_free(mine->references);
    vlp_batch_references_free(mine->ahead);
    vlp_free(mine);
}

/* ---- The loss ------------------------------------------------------------------------------------ */

/* What the softmax runs over: rows, one over their norms, offsets and the columns of the answers. */
typedef struct candidate_set {
    const float *rows, *inverse_norms, *offsets;
    const int32_t *answers;
    int32_t count;
} candidate_set;

static vlp_status open_candidates(candidate_set *set, vlp_vertical_state *mine, vlp_trainer *trainer) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_settings *settings = trainer->settings;
    const float *entities = vlp_model_entities(model)->value;
    int32_t e = model->form.entity_width;
    *set =
        (candidate_set){entities, mine->inverse_norms, NULL, trainer->chosen.answers, model->entities};
    if (settings->candidates > 0) {
        vlp_column_options options = {.answers = trainer->chosen.answers,
                                      .count = trainer->batch,
                                      .candidates = settings->candidates,
                                      .entities = model->entities,
                                      .seed = settings->seed};
        VLP_TRY(backend->steps->choose_columns(model->compute, &set->count, &mine->columns, &options));
        backend->rows->gather(model->compute, mine->candidate_rows, entities, mine->columns.ids,
                              set->count, e);
        set->rows = mine->candidate_rows;
        set->offsets = mine->columns.offsets;
        set->answers = mine->columns.answers;
        /* Those of all entities follow their updates. */
        backend->rows->inverse_norms(model->compute, mine->inverse_norms, set->rows, set->count, e);
    }
    return VLP_OK;
}

/* The gradient of the candidates, where embeddings receive that of the vertical loss. */
static vlp_status pass_to_candidates(vlp_vertical_state *mine, vlp_trainer *trainer,
                                     const candidate_set *set) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t e = model->form.entity_width;
    if (trainer->settings->candidates == 0) {
        backend->rows->project_add(model->compute, entities->grad, mine->candidate_grad, set->rows,
                                   set->inverse_norms, set->count, e);
        backend->memory->fill_bytes(model->compute, entities->touched, 1, (size_t)model->entities);
        return VLP_OK;
    }
    backend->memory->zero(model->compute, mine->projected,
                          (size_t)set->count * (size_t)e * sizeof(float));
    backend->rows->project_add(model->compute, mine->projected, mine->candidate_grad, set->rows,
                               set->inverse_norms, set->count, e);
    vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    return backend->rows->scatter_add(model->compute, &entity_grad, mine->projected, NULL,
                                      mine->columns.ids, set->count);
}

/* Logits of a block of queries, their loss, and the gradient of the aggregator's output. */
static void logits_block(vlp_vertical_state *mine, vlp_trainer *trainer, const candidate_set *set,
                         int64_t start, int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    int32_t e = model->form.entity_width;
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    const float *output = mine->aggregator.output + start * e;
    backend->blas->product(model->compute, mine->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = e,
                                          .alpha = 1,
                                          .lda = e,
                                          .ldb = e,
                                          .ldc = stride},
                           output, set->rows);
    backend->loss->softmax(model->compute, mine->logits, NULL, mine->row_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = set->count,
                                          .stride = stride,
                                          .answers = set->answers + start,
                                          .weights = mine->even + start,
                                          .column_scale = set->inverse_norms,
                                          .column_offset = set->offsets,
                                          .temperature = (float)trainer->settings->temperature});
    backend->blas->product(
        model->compute, mine->output_grad + start * e,
        &(vlp_product){.m = rows, .n = e, .k = stride, .alpha = 1, .lda = stride, .ldb = e, .ldc = e},
        mine->logits, set->rows);
    if (trainer->settings->vertical_gradient)
        backend->blas->product(model->compute, mine->candidate_grad,
                               &(vlp_product){.transpose_a = true,
                                              .m = stride,
                                              .n = e,
                                              .k = rows,
                                              .alpha = 1,
                                              .beta = start > 0,
                                              .lda = stride,
                                              .ldb = e,
                                              .ldc = e},
                               mine->logits, output);
}

/* The same over bf16 copies; the gradient is padded as they are. */
static void logits_block_bf16(vlp_vertical_state *mine, vlp_trainer *trainer, const candidate_set *set,
                              int64_t start, int64_t rows) {
    vlp_model *model = trainer->model;
    const vlp_backend *backend = model->backend;
    const vlp_table *entities = vlp_model_entities(model);
    int32_t padded = vlp_bf16_layout_stride(&entities->layout);
    int64_t stride = vlp_trainer_stride(trainer, set->count);
    backend->bf16->product(model->compute, mine->logits,
                           &(vlp_product){.transpose_b = true,
                                          .m = rows,
                                          .n = stride,
                                          .k = padded,
                                          .alpha = 1,
                                          .lda = padded,
                                          .ldb = padded,
                                          .ldc = stride},
                           mine->aggregator.bf16_output + start * padded, entities->bf16);
    backend->loss->softmax(model->compute, mine->logits, mine->bf16_logits, mine->row_loss,
                           &(vlp_softmax){.count = rows,
                                          .columns = set->count,
                                          .stride = stride,
                                          .answers = set->answers + start,
                                          .weights = mine->even + start,
                                          .column_scale = set->inverse_norms,
                                          .column_offset = set->offsets,
                                          .temperature = (float)trainer->settings->temperature});
    backend->bf16->product(model->compute, mine->padded_grad + start * padded,
                           &(vlp_product){.m = rows,
                                          .n = padded,
                                          .k = stride,
                                          .alpha = 1,
                                          .lda = stride,
                                          .ldb = padded,
                                          .ldc = padded},
                           mine->bf16_logits, entities->bf16);
}

static vlp_status step(void *state, vlp_trainer *trainer) {
    vlp_vertical_state *mine = state;
    vlp_model *model = trainer->model;
    const vlp_batch *chosen = &trainer->chosen;
    bool shared = trainer->settings->vertical_gradient;
    vlp_reference_batch references = {chosen->reference_heads, chosen->reference_answers,
                                      chosen->reference_counts, trainer->settings->references};
    vlp_aggregator_forward(model, &mine->aggregator, trainer->head_rows, chosen->relations, trainer->q,
                           &references, trainer->batch);
    candidate_set set;
    VLP_TRY(open_candidates(&set, mine, trainer));
    for (int64_t start = 0; start < trainer->batch; start += mine->block) {
        int64_t rows = trainer->batch - start < mine->block ? trainer->batch - start : mine->block;
        if (mine->uses_bf16)
            logits_block_bf16(mine, trainer, &set, start, rows);
        else
            logits_block(mine, trainer, &set, start, rows);
        vlp_trainer_add_loss(trainer, VLP_VERTICAL, mine->row_loss, rows, 1);
    }
    if (shared) VLP_TRY(pass_to_candidates(mine, trainer, &set));
    vlp_aggregator_sources sources = {chosen->heads, chosen->relations, trainer->other_q_grad};
    return vlp_aggregator_backward(model, &mine->aggregator,
                                   mine->uses_bf16 ? mine->padded_grad : mine->output_grad,
                                   mine->uses_bf16 ? &vlp_model_entities(model)->layout : NULL,
                                   &references, trainer->batch, shared ? &sources : NULL);
}

const vlp_component_training vlp_vertical_training = {.optimizer = optimizer,
                                                      .independent = independent,
                                                      .open = open_training,
                                                      .close = close_training,
                                                      .prepare = prepare,
                                                      .step = step};
