/* The vertical head: t' = tanh(W_agg [t_N, q]), t_N = W_node mean(k_i) + W_edge mean(s_i), with k_i =
 * W_r2 t_i and s_i = W_r1 (h - h_i). The mean commutes with the products, so that N references cost one
 * mean and one product. A query without references has t_N = 0. */
#include <string.h>

#include "model/model.h"

static float *allocate(const vlp_model *model, int64_t count) {
    return model->backend->allocate(model->compute, (size_t)count * sizeof(float));
}

vlp_status vlp_head_work_new(vlp_head_work *work, const vlp_model *model, int32_t batch) {
    int64_t e = model->form.entity_width, q = model->form.query_width, b = batch;
    *work = (vlp_head_work){.batch = batch};
    work->mean_heads = allocate(model, b * e);
    work->mean_answers = allocate(model, b * e);
    work->k = allocate(model, b * q);
    work->s = allocate(model, b * q);
    work->joined = allocate(model, b * (e + q));
    work->output = allocate(model, b * e);
    work->norms = allocate(model, b);
    work->activated = allocate(model, b * e);
    work->joined_grad = allocate(model, b * (e + q));
    work->spare = allocate(model, b * q);
    work->spare_rows = allocate(model, b * e);
    work->zeros = allocate(model, b * e);
    const vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    if (entities->rounded)
        work->rounded_output = model->backend->allocate(
            model->compute,
            (size_t)(b * vlp_rounding_stride(&entities->rounding)) * sizeof *work->rounded_output);
    if ((entities->rounded && !work->rounded_output) || !work->mean_heads || !work->mean_answers ||
        !work->k || !work->s || !work->joined || !work->output || !work->norms || !work->activated ||
        !work->joined_grad || !work->spare || !work->spare_rows || !work->zeros) {
        vlp_head_work_free(work, model);
        return vlp_fail_memory("the vertical head");
    }
    return VLP_OK;
}

void vlp_head_work_free(vlp_head_work *work, const vlp_model *model) {
    float *parts[] = {work->mean_heads,  work->mean_answers, work->k,          work->s,
                      work->joined,      work->output,       work->norms,      work->activated,
                      work->joined_grad, work->spare,        work->spare_rows, work->zeros};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i]) model->backend->release(model->compute, parts[i]);
    if (work->rounded_output) model->backend->release(model->compute, work->rounded_output);
    *work = (vlp_head_work){0};
}

void vlp_head_forward(const vlp_model *model, vlp_head_work *work, const float *heads,
                      const int32_t *relations, const float *q, const vlp_reference_batch *references,
                      int64_t batch) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *tables = model->tables;
    int32_t e = model->form.entity_width, width = model->form.query_width, joined = e + width;
    const float *entities = tables[VLP_TABLE_ENTITIES].value, *rows = tables[VLP_TABLE_RELATIONS].value;
    backend->gather_mean(compute, work->mean_answers, entities, references->answers, references->counts,
                         batch, references->most, e);
    backend->gather_mean(compute, work->mean_heads, entities, references->heads, references->counts,
                         batch, references->most, e);
    backend->answer(compute, &model->form, work->k, work->mean_answers, relations, rows, batch);
    /* h - mean(h_i); a query without references has no t_N whatever stands here. */
    backend->subtract(compute, work->mean_heads, heads, work->mean_heads, references->counts, batch, e);
    backend->query(compute, &model->form, work->s, work->mean_heads, relations, rows, batch, true);
    /* [t_N, q] */
    backend->product(compute, false, true, batch, e, width, 1, work->k, width,
                     tables[VLP_TABLE_NODE].value, width, 0, work->joined, joined);
    backend->product(compute, false, true, batch, e, width, 1, work->s, width,
                     tables[VLP_TABLE_EDGE].value, width, 1, work->joined, joined);
    backend->add_bias(compute, work->joined, tables[VLP_TABLE_NODE_BIAS].value, references->counts,
                      batch, e, joined);
    backend->add_bias(compute, work->joined, tables[VLP_TABLE_EDGE_BIAS].value, references->counts,
                      batch, e, joined);
    backend->copy_columns(compute, work->joined + e, joined, q, width, batch, width);
    backend->product(compute, false, true, batch, e, joined, 1, work->joined, joined,
                     tables[VLP_TABLE_OUTPUT].value, joined, 0, work->output, e);
    backend->tanh_rows(compute, work->output, tables[VLP_TABLE_OUTPUT_BIAS].value, batch, e);
    backend->copy_columns(compute, work->activated, e, work->output, e, batch, e);
    backend->normalize(compute, work->output, work->norms, batch, e);
}

/* One of the two ways to the embeddings: through W_node to the answers of the references, or through
 * W_edge to the query's head and, with the other sign, to their heads. */
static vlp_status pass_on(const vlp_model *model, vlp_head_work *work,
                          const vlp_reference_batch *references, int64_t batch,
                          const vlp_head_sources *sources, bool node) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *entities = &model->tables[VLP_TABLE_ENTITIES];
    const vlp_table *relations = &model->tables[VLP_TABLE_RELATIONS];
    int32_t e = model->form.entity_width, width = model->form.query_width;
    backend->product(compute, false, false, batch, width, e, 1, work->joined_grad, e + width,
                     model->tables[node ? VLP_TABLE_NODE : VLP_TABLE_EDGE].value, width, 0, work->spare,
                     width);
    backend->zero(compute, work->spare_rows, (size_t)batch * (size_t)e * sizeof(float));
    if (node) {
        VLP_TRY(backend->answer_backward(compute, &model->form, work->spare_rows, relations->grad,
                                         work->spare, work->mean_answers, sources->relations,
                                         relations->value, model->relations, batch));
        return backend->scatter_mean(compute, entities->grad, entities->touched, work->spare_rows, 1,
                                     references->answers, references->counts, batch, references->most,
                                     model->entities, e);
    }
    VLP_TRY(backend->query_backward(compute, &model->form, work->spare_rows, relations->grad,
                                    work->spare, work->mean_heads, sources->relations, relations->value,
                                    model->relations, batch, true));
    /* A query without references has no difference of heads to speak of. */
    backend->subtract(compute, work->spare_rows, work->spare_rows, work->zeros, references->counts,
                      batch, e);
    VLP_TRY(backend->scatter_add(compute, entities->grad, entities->touched, work->spare_rows, NULL,
                                 sources->heads, batch, model->entities, e));
    return backend->scatter_mean(compute, entities->grad, entities->touched, work->spare_rows, -1,
                                 references->heads, references->counts, batch, references->most,
                                 model->entities, e);
}

vlp_status vlp_head_backward(const vlp_model *model, vlp_head_work *work, float *output_grad,
                             const vlp_reference_batch *references, int64_t batch,
                             const vlp_head_sources *sources) {
    const vlp_backend *backend = model->backend;
    vlp_compute *compute = model->compute;
    const vlp_table *tables = model->tables;
    int32_t e = model->form.entity_width, width = model->form.query_width, joined = e + width;
    backend->normalize_backward(compute, output_grad, work->output, work->norms, batch, e);
    backend->tanh_backward(compute, output_grad, work->activated, batch, e);
    backend->bias_backward(compute, tables[VLP_TABLE_OUTPUT_BIAS].grad, output_grad, NULL, batch, e, e);
    backend->product(compute, true, false, e, joined, batch, 1, output_grad, e, work->joined, joined, 1,
                     tables[VLP_TABLE_OUTPUT].grad, joined);
    backend->product(compute, false, false, batch, joined, e, 1, output_grad, e,
                     tables[VLP_TABLE_OUTPUT].value, joined, 0, work->joined_grad, joined);
    /* k and s are zero without references, so that their products bring nothing to these rows; the
     * biases ask for the counts. */
    backend->product(compute, true, false, e, width, batch, 1, work->joined_grad, joined, work->k, width,
                     1, tables[VLP_TABLE_NODE].grad, width);
    backend->product(compute, true, false, e, width, batch, 1, work->joined_grad, joined, work->s, width,
                     1, tables[VLP_TABLE_EDGE].grad, width);
    backend->bias_backward(compute, tables[VLP_TABLE_NODE_BIAS].grad, work->joined_grad,
                           references->counts, batch, e, joined);
    backend->bias_backward(compute, tables[VLP_TABLE_EDGE_BIAS].grad, work->joined_grad,
                           references->counts, batch, e, joined);
    if (!sources) return VLP_OK;
    backend->copy_columns(compute, sources->q_grad, width, work->joined_grad + e, joined, batch, width);
    if (references->most == 0) return VLP_OK;
    VLP_TRY(pass_on(model, work, references, batch, sources, true));
    return pass_on(model, work, references, batch, sources, false);
}
