/* The vertical component: the tables of the aggregator, and the aggregator itself: t' = tanh(W_agg [t_N,
 * q]), t_N = W_node mean(k_i) + W_edge mean(s_i), with k_i = W_r2 t_i and s_i = W_r1 (h - h_i). The mean
 * commutes with the products, so that N references cost one mean and one product. A query without
 * references has t_N = 0. */
#include <math.h>

#include "base/random.h"
#include "model/model.h"

/* ---- Tables -------------------------------------------------------------------------------------- */

static void declare(vlp_model *model) {
    int32_t e = model->form.entity_width, q = model->form.query_width;
    const struct {
        const char *name;
        int64_t rows;
        int32_t width;
    } tables[VLP_VERTICAL_TABLES] = {[VLP_AGGREGATOR_NODE] = {"aggregator_node", e, q},
                                     [VLP_AGGREGATOR_EDGE] = {"aggregator_edge", e, q},
                                     [VLP_AGGREGATOR_OUTPUT] = {"aggregator_output", e, e + q},
                                     [VLP_AGGREGATOR_NODE_BIAS] = {"aggregator_node_bias", 1, e},
                                     [VLP_AGGREGATOR_EDGE_BIAS] = {"aggregator_edge_bias", 1, e},
                                     [VLP_AGGREGATOR_OUTPUT_BIAS] = {"aggregator_output_bias", 1, e}};
    for (int i = 0; i < VLP_VERTICAL_TABLES; i++)
        vlp_model_add_table(model, (vlp_table){.name = tables[i].name,
                                               .component = VLP_VERTICAL,
                                               .rows = tables[i].rows,
                                               .width = tables[i].width,
                                               .allows_bf16 = i < VLP_AGGREGATOR_NODE_BIAS,
                                               .parts = 1});
}

/* Matrices uniform by their fan-in and fan-out; biases start at zero. */
static vlp_value_range initial(const vlp_model *model, int32_t index, double init_scale) {
    (void)init_scale;
    const vlp_table *table = vlp_model_table(model, VLP_VERTICAL, index);
    vlp_value_range range = {.stream = VLP_STREAM_AGGREGATOR +
                                       0x100 * (uint32_t)(VLP_HORIZONTAL_TABLES + index)};
    if (index < VLP_AGGREGATOR_NODE_BIAS)
        range.uniform = (float)sqrt(6.0 / (double)(table->rows + table->width));
    return range;
}

const vlp_component_tables vlp_vertical_tables = {"vertical", declare, initial, NULL};

/* One of the aggregator's tables. */
static const vlp_table *table_of(const vlp_model *model, int32_t index) {
    return vlp_model_table(model, VLP_VERTICAL, index);
}

/* ---- Working memory ------------------------------------------------------------------------------ */

static float *allocate(const vlp_model *model, int64_t count) {
    return model->backend->memory->allocate(model->compute, (size_t)count * sizeof(float));
}

static vlp_bf16 *allocate_bf16(const vlp_model *model, int64_t rows, vlp_bf16_layout layout) {
    size_t count = (size_t)rows * (size_t)vlp_bf16_layout_stride(&layout);
    return model->backend->memory->allocate(model->compute, count * sizeof(vlp_bf16));
}

static bool allocate_bf16_parts(vlp_aggregator_work *work, const vlp_model *model, int64_t b) {
    int32_t e = model->form.entity_width, q = model->form.query_width;
    work->inputs.bf16_k = allocate_bf16(model, b, vlp_bf16_layout_of(1, q));
    work->inputs.bf16_s = allocate_bf16(model, b, vlp_bf16_layout_of(1, q));
    work->bf16_concat = allocate_bf16(model, b, vlp_bf16_layout_of(1, e + q));
    work->bf16_output = allocate_bf16(model, b, vlp_model_entities(model)->layout);
    work->bf16_grad = allocate_bf16(model, b, vlp_bf16_layout_of(1, e));
    work->bf16_concat_grad = allocate_bf16(model, b, vlp_bf16_layout_of(1, e));
    return work->inputs.bf16_k && work->inputs.bf16_s && work->bf16_concat && work->bf16_output &&
           work->bf16_grad && work->bf16_concat_grad;
}

vlp_status vlp_aggregator_work_new(vlp_aggregator_work *work, const vlp_model *model, int32_t batch,
                                   bool uses_bf16) {
    int64_t e = model->form.entity_width, q = model->form.query_width, b = batch;
    bool moves = vlp_form_transforms_answers(&model->form);
    *work = (vlp_aggregator_work){.batch = batch};
    work->uses_bf16 = uses_bf16 && table_of(model, VLP_AGGREGATOR_OUTPUT)->bf16;
    vlp_aggregator_inputs *inputs = &work->inputs;
    inputs->answers = allocate(model, b * e);
    inputs->differences = allocate(model, b * e);
    inputs->k = moves ? allocate(model, b * q) : inputs->answers;
    inputs->s = allocate(model, b * q);
    work->concat = allocate(model, b * (e + q));
    work->output = allocate(model, b * e);
    work->norms = allocate(model, b);
    work->activated = allocate(model, b * e);
    work->concat_grad = allocate(model, b * e);
    work->spare = allocate(model, b * q);
    work->spare_rows = allocate(model, b * e);
    bool bf16 = !work->uses_bf16 || allocate_bf16_parts(work, model, b);
    if (!inputs->answers || !inputs->differences || !inputs->k || !inputs->s || !work->concat ||
        !work->output || !work->norms || !work->activated || !work->concat_grad || !work->spare ||
        !work->spare_rows || !bf16) {
        vlp_aggregator_work_free(work, model);
        return vlp_fail_memory("the vertical aggregator");
    }
    return VLP_OK;
}

void vlp_aggregator_work_free(vlp_aggregator_work *work, const vlp_model *model) {
    vlp_aggregator_inputs *inputs = &work->inputs;
    void *parts[] = {
        inputs->answers,  inputs->differences,   inputs->k == inputs->answers ? NULL : inputs->k,
        inputs->s,        inputs->bf16_k,        inputs->bf16_s,
        work->concat,     work->output,          work->norms,
        work->activated,  work->concat_grad,     work->spare,
        work->spare_rows, work->bf16_concat,     work->bf16_output,
        work->bf16_grad,  work->bf16_concat_grad};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i]) model->backend->memory->release(model->compute, parts[i]);
    *work = (vlp_aggregator_work){0};
}

/* ---- Products ------------------------------------------------------------------------------------ */

/* A factor, rows of `width`, and the bf16 copy that is read instead; NULL: none. */
typedef struct factor {
    const float *rows;
    const vlp_bf16 *bf16;
    int32_t width;
} factor;

static factor table_factor(const vlp_model *model, const vlp_aggregator_work *work, int32_t index) {
    const vlp_table *table = table_of(model, index);
    return (factor){table->value, work->uses_bf16 ? table->bf16 : NULL, table->width};
}

/* The factor from a column on. */
static factor columns_from(factor all, int32_t columns) {
    return (factor){all.rows + columns, all.bf16 ? all.bf16 + columns : NULL, all.width};
}

/* As a backend's product, whose strides of a and b it sets; both factors have bf16 copies, or none
 * has. */
static void multiply(const vlp_model *model, float *c, vlp_product product, factor a, factor b) {
    product.alpha = 1;
    product.lda = a.width;
    product.ldb = b.width;
    if (!a.bf16) {
        model->backend->blas->product(model->compute, c, &product, a.rows, b.rows);
        return;
    }
    vlp_bf16_layout layout_a = vlp_bf16_layout_of(1, a.width), layout_b = vlp_bf16_layout_of(1, b.width);
    product.lda = vlp_bf16_layout_stride(&layout_a);
    product.ldb = vlp_bf16_layout_stride(&layout_b);
    model->backend->bf16->product(model->compute, c, &product, a.bf16, b.bf16);
}

/* ---- Forward ------------------------------------------------------------------------------------- */

static vlp_tanh_rows output_rows(const vlp_model *model, const vlp_aggregator_work *work,
                                 int64_t batch) {
    return (vlp_tanh_rows){.rows = batch,
                           .width = model->form.entity_width,
                           .output = work->output,
                           .activated = work->activated,
                           .norms = work->norms,
                           .bf16 = work->bf16_output,
                           .layout = vlp_model_entities(model)->layout};
}

void vlp_aggregator_forward(const vlp_model *model, vlp_aggregator_work *work, const float *heads,
                            const int32_t *relations, const float *q,
                            const vlp_reference_batch *references, int64_t batch) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_aggregator_inputs *inputs = &work->inputs;
    int32_t e = model->form.entity_width, width = model->form.query_width, concat = e + width;
    vlp_related_rows head_rows = vlp_model_related(model, heads, relations, batch);
    backend->aggregator->mean_references(compute, inputs, &model->form, references,
                                         vlp_model_entities(model)->value, &head_rows);
    multiply(model, work->concat,
             (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = width, .ldc = concat},
             (factor){inputs->k, inputs->bf16_k, width}, table_factor(model, work, VLP_AGGREGATOR_NODE));
    multiply(
        model, work->concat,
        (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = width, .beta = 1, .ldc = concat},
        (factor){inputs->s, inputs->bf16_s, width}, table_factor(model, work, VLP_AGGREGATOR_EDGE));
    backend->aggregator->concat_query(
        compute, work->concat, work->bf16_concat, &model->form,
        &(vlp_concat_operands){.rows = batch,
                               .node_bias = table_of(model, VLP_AGGREGATOR_NODE_BIAS)->value,
                               .edge_bias = table_of(model, VLP_AGGREGATOR_EDGE_BIAS)->value,
                               .counts = references->counts,
                               .q = q});
    multiply(model, work->output,
             (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = concat, .ldc = e},
             (factor){work->concat, work->bf16_concat, concat},
             table_factor(model, work, VLP_AGGREGATOR_OUTPUT));
    vlp_tanh_rows rows = output_rows(model, work, batch);
    backend->aggregator->tanh_normalize(compute, &rows,
                                        table_of(model, VLP_AGGREGATOR_OUTPUT_BIAS)->value);
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* One of the two paths of the gradient to the embeddings: through W_node to the answers of the
 * references, or through W_edge to the query's head entity and, with the other sign, to the references'
 * head entities. The gradient of t_N is zero where there are no references: the head entity of such a
 * query then receives none. */
static vlp_status embedding_backward(const vlp_model *model, vlp_aggregator_work *work,
                                     const vlp_reference_batch *references, int64_t batch,
                                     const vlp_aggregator_sources *sources, bool node) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *entities = vlp_model_entities(model);
    const vlp_table *relations = vlp_model_relations(model);
    int32_t e = model->form.entity_width, width = model->form.query_width;
    multiply(model, work->spare, (vlp_product){.m = batch, .n = width, .k = e, .ldc = width},
             (factor){work->concat_grad, work->bf16_concat_grad, e},
             table_factor(model, work, node ? VLP_AGGREGATOR_NODE : VLP_AGGREGATOR_EDGE));
    backend->memory->zero(compute, work->spare_rows, (size_t)batch * (size_t)e * sizeof(float));
    const vlp_table_gradient entity_grad = vlp_table_gradient_of(entities);
    vlp_id_lists lists = {node ? references->answers : references->heads, references->counts, batch,
                          references->capacity};
    vlp_related_rows rows = vlp_model_related(
        model, node ? work->inputs.answers : work->inputs.differences, sources->relations, batch);
    if (node) {
        VLP_TRY(backend->transform->answer_backward(compute, work->spare_rows, relations->grad,
                                                    &model->form, work->spare, &rows));
        return backend->rows->scatter_mean(compute, &entity_grad, work->spare_rows, 1, &lists);
    }
    VLP_TRY(backend->transform->query_backward(compute, work->spare_rows, relations->grad, &model->form,
                                               work->spare, &rows, true));
    VLP_TRY(backend->rows->scatter_add(compute, &entity_grad, work->spare_rows, NULL, sources->heads,
                                       batch));
    return backend->rows->scatter_mean(compute, &entity_grad, work->spare_rows, -1, &lists);
}

vlp_status vlp_aggregator_backward(const vlp_model *model, vlp_aggregator_work *work,
                                   const float *output_grad, const vlp_bf16_layout *layout,
                                   const vlp_reference_batch *references, int64_t batch,
                                   const vlp_aggregator_sources *sources) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_aggregator_inputs *inputs = &work->inputs;
    int32_t e = model->form.entity_width, width = model->form.query_width, concat = e + width;
    factor grad = {work->spare_rows, work->bf16_grad, e};
    factor concat_grad = {work->concat_grad, work->bf16_concat_grad, e};
    factor output = table_factor(model, work, VLP_AGGREGATOR_OUTPUT);
    vlp_tanh_rows rows = output_rows(model, work, batch);
    backend->aggregator->tanh_normalize_backward(compute, work->spare_rows, output_grad, layout, &rows);
    backend->aggregator->bias_backward(
        compute, table_of(model, VLP_AGGREGATOR_OUTPUT_BIAS)->grad, NULL,
        &(vlp_layer_gradient){
            .rows = batch, .width = e, .grad = work->spare_rows, .bf16 = work->bf16_grad});
    multiply(model, table_of(model, VLP_AGGREGATOR_OUTPUT)->grad,
             (vlp_product){.transpose_a = true, .m = e, .n = concat, .k = batch, .ldc = concat}, grad,
             (factor){work->concat, work->bf16_concat, concat});
    multiply(model, work->concat_grad, (vlp_product){.m = batch, .n = e, .k = e, .ldc = e}, grad,
             output);
    if (sources)
        multiply(model, sources->q_grad, (vlp_product){.m = batch, .n = width, .k = e, .ldc = width},
                 grad, columns_from(output, e));
    backend->aggregator->bias_backward(compute, table_of(model, VLP_AGGREGATOR_NODE_BIAS)->grad,
                                       table_of(model, VLP_AGGREGATOR_EDGE_BIAS)->grad,
                                       &(vlp_layer_gradient){.rows = batch,
                                                             .width = e,
                                                             .grad = work->concat_grad,
                                                             .bf16 = work->bf16_concat_grad,
                                                             .counts = references->counts});
    multiply(model, table_of(model, VLP_AGGREGATOR_NODE)->grad,
             (vlp_product){.transpose_a = true, .m = e, .n = width, .k = batch, .ldc = width},
             concat_grad, (factor){inputs->k, inputs->bf16_k, width});
    multiply(model, table_of(model, VLP_AGGREGATOR_EDGE)->grad,
             (vlp_product){.transpose_a = true, .m = e, .n = width, .k = batch, .ldc = width},
             concat_grad, (factor){inputs->s, inputs->bf16_s, width});
    if (!sources || references->capacity == 0) return VLP_OK;
    VLP_TRY(embedding_backward(model, work, references, batch, sources, true));
    return embedding_backward(model, work, references, batch, sources, false);
}
