/* The vertical aggregator: t' = tanh(W_agg [t_N, q]), t_N = W_node mean(k_i) + W_edge mean(s_i), with
 * k_i = W_r2 t_i and s_i = W_r1 (h - h_i). The mean commutes with the products, so that N references
 * cost one mean and one product. A query without references has t_N = 0. */
#include "model/model.h"

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
    work->bf16_output = allocate_bf16(model, b, model->tables[VLP_TABLE_ENTITIES].layout);
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
    work->uses_bf16 = uses_bf16 && model->tables[VLP_TABLE_OUTPUT].bf16;
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

static factor table_factor(const vlp_model *model, const vlp_aggregator_work *work, vlp_table_id id) {
    const vlp_table *table = &model->tables[id];
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
                           .layout = model->tables[VLP_TABLE_ENTITIES].layout};
}

void vlp_aggregator_forward(const vlp_model *model, vlp_aggregator_work *work, const float *heads,
                            const int32_t *relations, const float *q,
                            const vlp_reference_batch *references, int64_t batch) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *tables = model->tables;
    const vlp_aggregator_inputs *inputs = &work->inputs;
    int32_t e = model->form.entity_width, width = model->form.query_width, concat = e + width;
    vlp_related_rows head_rows = vlp_model_related(model, heads, relations, batch);
    backend->aggregator->mean_references(compute, inputs, &model->form, references,
                                         tables[VLP_TABLE_ENTITIES].value, &head_rows);
    multiply(model, work->concat,
             (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = width, .ldc = concat},
             (factor){inputs->k, inputs->bf16_k, width}, table_factor(model, work, VLP_TABLE_NODE));
    multiply(
        model, work->concat,
        (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = width, .beta = 1, .ldc = concat},
        (factor){inputs->s, inputs->bf16_s, width}, table_factor(model, work, VLP_TABLE_EDGE));
    backend->aggregator->concat_query(
        compute, work->concat, work->bf16_concat, &model->form,
        &(vlp_concat_operands){.rows = batch,
                               .node_bias = tables[VLP_TABLE_NODE_BIAS].value,
                               .edge_bias = tables[VLP_TABLE_EDGE_BIAS].value,
                               .counts = references->counts,
                               .q = q});
    multiply(model, work->output,
             (vlp_product){.transpose_b = true, .m = batch, .n = e, .k = concat, .ldc = e},
             (factor){work->concat, work->bf16_concat, concat},
             table_factor(model, work, VLP_TABLE_OUTPUT));
    vlp_tanh_rows rows = output_rows(model, work, batch);
    backend->aggregator->tanh_normalize(compute, &rows, tables[VLP_TABLE_OUTPUT_BIAS].value);
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* One of the two paths of the gradient to the embeddings: through W_node to the answers of the
 * references, or through W_edge to the query's head entity and, with the opposite sign, to the
 * references' head entities. Without references the gradient of t_N is zero, and so is that of the head
 * entity. */
static vlp_status embedding_backward(const vlp_model *model, vlp_aggregator_work *work,
                                     const vlp_reference_batch *references, int64_t batch,
                                     const vlp_aggregator_sources *sources, bool node) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    const vlp_table *relations = &model->tables[VLP_TABLE_RELATIONS];
    int32_t e = model->form.entity_width, width = model->form.query_width;
    multiply(model, work->spare, (vlp_product){.m = batch, .n = width, .k = e, .ldc = width},
             (factor){work->concat_grad, work->bf16_concat_grad, e},
             table_factor(model, work, node ? VLP_TABLE_NODE : VLP_TABLE_EDGE));
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
    const vlp_table *tables = model->tables;
    const vlp_aggregator_inputs *inputs = &work->inputs;
    int32_t e = model->form.entity_width, width = model->form.query_width, concat = e + width;
    factor grad = {work->spare_rows, work->bf16_grad, e};
    factor concat_grad = {work->concat_grad, work->bf16_concat_grad, e};
    factor output = table_factor(model, work, VLP_TABLE_OUTPUT);
    vlp_tanh_rows rows = output_rows(model, work, batch);
    backend->aggregator->tanh_normalize_backward(compute, work->spare_rows, output_grad, layout, &rows);
    backend->aggregator->bias_backward(
        compute, tables[VLP_TABLE_OUTPUT_BIAS].grad, NULL,
        &(vlp_layer_gradient){
            .rows = batch, .width = e, .grad = work->spare_rows, .bf16 = work->bf16_grad});
    multiply(model, tables[VLP_TABLE_OUTPUT].grad,
             (vlp_product){.transpose_a = true, .m = e, .n = concat, .k = batch, .ldc = concat}, grad,
             (factor){work->concat, work->bf16_concat, concat});
    multiply(model, work->concat_grad, (vlp_product){.m = batch, .n = e, .k = e, .ldc = e}, grad,
             output);
    if (sources)
        multiply(model, sources->q_grad, (vlp_product){.m = batch, .n = width, .k = e, .ldc = width},
                 grad, columns_from(output, e));
    backend->aggregator->bias_backward(compute, tables[VLP_TABLE_NODE_BIAS].grad,
                                       tables[VLP_TABLE_EDGE_BIAS].grad,
                                       &(vlp_layer_gradient){.rows = batch,
                                                             .width = e,
                                                             .grad = work->concat_grad,
                                                             .bf16 = work->bf16_concat_grad,
                                                             .counts = references->counts});
    multiply(model, tables[VLP_TABLE_NODE].grad,
             (vlp_product){.transpose_a = true, .m = e, .n = width, .k = batch, .ldc = width},
             concat_grad, (factor){inputs->k, inputs->bf16_k, width});
    multiply(model, tables[VLP_TABLE_EDGE].grad,
             (vlp_product){.transpose_a = true, .m = e, .n = width, .k = batch, .ldc = width},
             concat_grad, (factor){inputs->s, inputs->bf16_s, width});
    if (!sources || references->capacity == 0) return VLP_OK;
    VLP_TRY(embedding_backward(model, work, references, batch, sources, true));
    return embedding_backward(model, work, references, batch, sources, false);
}
