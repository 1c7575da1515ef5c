/* The operations of the path model: keys and queries go to threads, one at a time. */
#include <math.h>
#include <omp.h>

#include "base/order.h"
#include "compute/cpu/paths_kernels.h"

/* Relations whose w_l are in memory at the same time when queries are scored. */
enum { ASKED_AT_ONCE = 32 };

struct cpu_paths {
    const path_kernels *kernels;
    path_weights weights;
    path_work *works; /* (threads) */
    path_array group_array, key_array;
    double *losses; /* (keys) */
    int32_t *order; /* of queries */
    int64_t loss_capacity, order_capacity;
};

void cpu_paths_close(vlp_compute *compute) {
    struct cpu_paths *paths = compute->paths;
    if (!paths) return;
    for (int i = 0; paths->works && i < compute->threads; i++) path_work_free(compute, paths->works + i);
    vlp_free(paths->works);
    path_weights_free(compute, &paths->weights);
    path_array_free(compute, &paths->group_array);
    path_array_free(compute, &paths->key_array);
    vlp_free(paths->losses);
    vlp_free(paths->order);
    vlp_free(paths);
    compute->paths = NULL;
}

static vlp_status open_state(vlp_compute *compute) {
    if (compute->paths) return VLP_OK;
    compute->paths = vlp_alloc_zero(1, sizeof *compute->paths);
    if (!compute->paths) return VLP_ERROR_MEMORY;
    compute->paths->kernels = path_kernels_choose();
    return VLP_OK;
}

vlp_status cpu_paths_use(vlp_compute *compute, const path_kernels *kernels) {
    VLP_TRY(open_state(compute));
    compute->paths->kernels = kernels;
    return VLP_OK;
}

/* The state of the path model, with the weights of a model; bf16: its update matrices are rounded where
 * that is faster. */
static vlp_status open_paths(vlp_compute *compute, const vlp_path_model *model, bool bf16) {
    assert(model->form->layers >= 1 && model->form->layers <= VLP_PATH_MAX_LAYERS);
    assert(model->form->dim % 8 == 0 && model->form->dim <= VLP_PATH_MAX_DIM);
    assert(model->form->relations == model->graph->relations);
    VLP_TRY(open_state(compute));
    struct cpu_paths *paths = compute->paths;
    const path_bf16_kernels *rounded =
        bf16 && paths->kernels == path_kernel_versions[0] ? path_bf16_choose() : NULL;
    if (!paths->works) paths->works = vlp_alloc_zero((size_t)compute->threads, sizeof *paths->works);
    if (!paths->works) return VLP_ERROR_MEMORY;
    for (int i = 0; i < compute->threads; i++) {
        path_work *work = paths->works + i;
        work->kernels = paths->kernels;
        work->bf16 = rounded;
        work->weights = &paths->weights;
        work->graph = model->graph;
        VLP_TRY(path_local_open(&work->local, model->graph));
    }
    return path_weights_set(compute, &paths->weights, model, rounded);
}

/* ---- The batch ----------------------------------------------------------------------------------- */

static void hide_answers(uint8_t *hidden, int64_t count, uint64_t seed, uint32_t share) {
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        hidden[i] = vlp_path_chosen(seed, VLP_STREAM_PATH_HIDDEN, (uint32_t)i, share);
        any |= hidden[i];
    }
    if (any) return;
    vlp_random4 r = vlp_random(seed, VLP_STREAM_PATH_HIDDEN, 16, 0); /* 16: no digit of a choice */
    hidden[vlp_random_below(r.v[0], r.v[1], (uint32_t)count)] = 1;
}

static void choose(vlp_compute *compute, const vlp_path_batch *batch, const vlp_path_keys *keys,
                   const vlp_path_choice *choice) {
    int64_t step = compute->values.step;
    assert(batch->capacity >= batch->count * keys->most_answers);
    batch->offset[0] = 0;
    for (int32_t i = 0; i < batch->count; i++) {
        int64_t at = step * batch->count + i;
        int64_t turn = vlp_permuted(at % keys->turn_count, keys->turn_count, choice->seed,
                                    (uint64_t)(at / keys->turn_count));
        int64_t key = keys->turns[turn];
        int64_t answers = keys->offset[key + 1] - keys->offset[key];
        batch->heads[i] = keys->heads[key];
        batch->relations[i] = keys->relations[key];
        batch->answers[i] = keys->offset[key];
        batch->offset[i + 1] = batch->offset[i] + answers;
        hide_answers(batch->hidden + batch->offset[i], answers, vlp_path_key_seed(choice->seed, step, i),
                     vlp_path_share(choice->hidden));
    }
}

/* ---- A step -------------------------------------------------------------------------------------- */

/* What the keys of a step are computed with. */
typedef struct step_operands {
    const vlp_path_model *model;
    const vlp_path_batch *batch;
    const vlp_path_options *options;
    int64_t step;
    double weights; /* the sum over the keys */
    const path_batch_gradients *grads;
    double *losses; /* (keys) */
} step_operands;

static int64_t answers_of(const vlp_path_batch *batch, int32_t key) {
    return batch->offset[key + 1] - batch->offset[key];
}

static void take_out(path_local *local, const step_operands *operands, int32_t i, const path_key *key) {
    const vlp_path_graph *graph = operands->model->graph;
    int32_t head = operands->batch->heads[i];
    path_local_drop(local, graph, key->seed, vlp_path_share(operands->options->drop));
    switch (operands->options->hiding) {
    case VLP_PATH_HIDE_EDGE:
        for (int64_t j = 0; j < key->count; j++)
            if (key->hidden[j]) path_local_hide(local, graph, head, operands->batch->answers[i] + j);
        return;
    case VLP_PATH_HIDE_PAIR:
        path_local_hide_pairs(local, graph, head, key->answers, key->hidden, key->count);
        return;
    }
}

static vlp_status run_key(vlp_compute *compute, path_work *work, const step_operands *operands,
                          int32_t i) {
    const vlp_path_batch *batch = operands->batch;
    const vlp_path_options *options = operands->options;
    const path_sizes *sizes = &work->weights->sizes;
    const vlp_path_graph *graph = operands->model->graph;
    uint32_t share = vlp_path_share(options->far);
    path_key key = {.answers = graph->neighbor + batch->answers[i],
                    .hidden = batch->hidden + batch->offset[i],
                    .count = answers_of(batch, i),
                    .weight = vlp_path_weight(answers_of(batch, i)) / operands->weights,
                    .log_share = logf((float)share / 65536.0f),
                    .prune = options->prune,
                    .seed = vlp_path_key_seed(options->seed, operands->step, i)};
    path_scope scope = {.form = operands->model->form,
                        .graph = graph,
                        .head = batch->heads[i],
                        .all = share >= 65536,
                        .near = options->near,
                        .share = share,
                        .seed = key.seed,
                        .answers = key.answers,
                        .answer_count = key.count,
                        .classes = work->weights->classes};
    float *group = operands->grads->group_values + i % PATH_GROUPS * path_gradients_size(sizes);
    float *own = operands->grads->key_values + i * path_key_gradients_size(sizes);
    path_gradients grads = path_gradients_at(sizes, group);
    path_key_gradients key_grads = path_key_gradients_at(sizes, own);
    float zero_grad = 0;
    memset(own, 0, (size_t)path_key_gradients_size(sizes) * sizeof *own);
    work->slot = work->weights->slots[batch->relations[i]];
    take_out(&work->local, operands, i, &key);
    vlp_status status = path_local_build(&work->local, &scope);
    if (status == VLP_OK) status = path_forward(compute, work, true);
    if (status == VLP_OK) operands->losses[i] = path_loss(work, &zero_grad, &key);
    if (status == VLP_OK) status = path_backward(compute, work, &grads, &key_grads, zero_grad, NULL);
    path_local_clear(&work->local);
    return status;
}

/* Keys i, i + PATH_GROUPS, .. add to the same gradients, one after the other. */
static vlp_status run_group(vlp_compute *compute, path_work *work, const step_operands *operands,
                            int32_t group) {
    int64_t size = path_gradients_size(&work->weights->sizes);
    float *values = operands->grads->group_values + group * size;
    memset(values, 0, (size_t)size * sizeof *values);
    for (int32_t i = group; i < operands->batch->count; i += PATH_GROUPS)
        VLP_TRY(run_key(compute, work, operands, i));
    return VLP_OK;
}

static vlp_status run_groups(vlp_compute *compute, const step_operands *operands) {
    vlp_status status = VLP_OK;
#pragma omp parallel for schedule(dynamic) num_threads(compute->threads)
    for (int32_t group = 0; group < operands->grads->groups; group++) {
        path_work *work = compute->paths->works + omp_get_thread_num();
        vlp_status own = run_group(compute, work, operands, group);
        if (own == VLP_OK) continue;
#pragma omp atomic write
        status = own;
    }
    return status;
}

static vlp_status train_step(vlp_compute *compute, double *loss, const vlp_path_tables *grads,
                             const vlp_path_model *model, const vlp_path_batch *batch,
                             const vlp_path_options *options) {
    VLP_TRY(open_paths(compute, model, model->form->bf16));
    struct cpu_paths *paths = compute->paths;
    path_sizes sizes = paths->weights.sizes;
    int32_t groups = batch->count < PATH_GROUPS ? batch->count : PATH_GROUPS;
    VLP_TRY(path_weights_ask(compute, &paths->weights, model, batch->relations, batch->count));
    VLP_TRY(path_array_grow(compute, &paths->group_array, groups * path_gradients_size(&sizes)));
    VLP_TRY(path_array_grow(compute, &paths->key_array, batch->count * path_key_gradients_size(&sizes)));
    VLP_TRY(vlp_grow(&paths->losses, &paths->loss_capacity, batch->count, sizeof(double), "a batch"));
    path_batch_gradients gradients = {groups, batch->count, paths->group_array.values,
                                      paths->key_array.values, batch->relations};
    step_operands operands = {.model = model,
                              .batch = batch,
                              .options = options,
                              .step = compute->values.step,
                              .grads = &gradients,
                              .losses = paths->losses};
    for (int32_t i = 0; i < batch->count; i++) operands.weights += vlp_path_weight(answers_of(batch, i));
    VLP_TRY(run_groups(compute, &operands));
    *loss = 0;
    for (int32_t i = 0; i < batch->count; i++) *loss += paths->losses[i];
    return path_gradients_reduce(compute, grads, &paths->weights, model, &gradients);
}

static vlp_status step(vlp_compute *compute, double *loss, const vlp_path_tables *grads,
                       const vlp_path_model *model, const vlp_path_batch *batch,
                       const vlp_path_options *options) {
    vlp_status status = train_step(compute, loss, grads, model, batch, options);
    return status == VLP_OK ? VLP_OK : vlp_fail_memory("a step of the path model");
}

/* ---- Scores -------------------------------------------------------------------------------------- */

static void remove_listed(path_local *local, const vlp_path_queries *queries, int32_t i) {
    if (!queries->removed_offset) return;
    for (int64_t j = queries->removed_offset[i]; j < queries->removed_offset[i + 1]; j++)
        path_local_remove(local, queries->removed[j]);
}

static vlp_status score_query(vlp_compute *compute, path_work *work, float *scores,
                              const vlp_path_model *model, const vlp_path_queries *queries, int32_t i) {
    path_local *local = &work->local;
    path_scope scope = {.form = model->form,
                        .graph = model->graph,
                        .head = queries->heads[i],
                        .all = true,
                        .classes = work->weights->classes};
    work->slot = work->weights->slots[queries->relations[i]];
    remove_listed(local, queries, i);
    vlp_status status = path_local_build(local, &scope);
    if (status == VLP_OK) status = path_forward(compute, work, false);
    if (status == VLP_OK) {
        for (int32_t v = 0; v < model->graph->entities; v++) scores[v] = work->zero_score;
        for (int32_t j = 0; j < local->candidate_count; j++)
            scores[local->nodes[local->queue[j]].entity] = work->scores[j];
    }
    path_local_clear(local);
    return status;
}

/* Queries by relation, each as often as it is asked for: order (count). */
static vlp_status sort_queries(struct cpu_paths *paths, const vlp_path_queries *queries,
                               int32_t relations) {
    int64_t *begin = vlp_alloc_zero((size_t)relations + 1, sizeof *begin);
    if (!begin) return VLP_ERROR_MEMORY;
    vlp_status status =
        vlp_grow(&paths->order, &paths->order_capacity, queries->count, sizeof(int32_t), "queries");
    if (status == VLP_OK) {
        for (int32_t i = 0; i < queries->count; i++) begin[queries->relations[i] + 1]++;
        for (int32_t r = 0; r < relations; r++) begin[r + 1] += begin[r];
        for (int32_t i = 0; i < queries->count; i++) paths->order[begin[queries->relations[i]]++] = i;
    }
    vlp_free(begin);
    return status;
}

/* Scores queries order[begin .. end). */
static vlp_status score_range(vlp_compute *compute, float *scores, const vlp_path_model *model,
                              const vlp_path_queries *queries, int32_t begin, int32_t end) {
    struct cpu_paths *paths = compute->paths;
    int32_t relations[ASKED_AT_ONCE], count = 0;
    for (int32_t i = begin; i < end; i++) {
        int32_t relation = queries->relations[paths->order[i]];
        if (count == 0 || relations[count - 1] != relation) relations[count++] = relation;
    }
    VLP_TRY(path_weights_ask(compute, &paths->weights, model, relations, count));
    vlp_status status = VLP_OK;
#pragma omp parallel for schedule(dynamic) num_threads(compute->threads)
    for (int32_t i = begin; i < end; i++) {
        int32_t query = paths->order[i];
        vlp_status own =
            score_query(compute, paths->works + omp_get_thread_num(),
                        scores + (int64_t)query * model->graph->entities, model, queries, query);
        if (own == VLP_OK) continue;
#pragma omp atomic write
        status = own;
    }
    return status;
}

static vlp_status score_queries(vlp_compute *compute, float *scores, const vlp_path_model *model,
                                const vlp_path_queries *queries) {
    VLP_TRY(open_paths(compute, model, false));
    struct cpu_paths *paths = compute->paths;
    VLP_TRY(sort_queries(paths, queries, model->form->relations));
    for (int32_t begin = 0, end = 0; begin < queries->count; begin = end) {
        int32_t distinct = 0, last = -1;
        for (end = begin; end < queries->count; end++) {
            int32_t relation = queries->relations[paths->order[end]];
            distinct += relation != last;
            if (distinct > ASKED_AT_ONCE) break;
            last = relation;
        }
        VLP_TRY(score_range(compute, scores, model, queries, begin, end));
    }
    return VLP_OK;
}

static vlp_status scores_of(vlp_compute *compute, float *scores, const vlp_path_model *model,
                            const vlp_path_queries *queries) {
    vlp_status status = score_queries(compute, scores, model, queries);
    return status == VLP_OK ? VLP_OK : vlp_fail_memory("the path model");
}

/* ---- Explanations -------------------------------------------------------------------------------- */

/* From the derivatives of local edges. */
static void write_messages(float *out, const path_local *local, const float *messages, int32_t layers,
                           int64_t edges) {
    memset(out, 0, (size_t)(layers * edges) * sizeof *out);
    for (int32_t l = 0; l < layers; l++)
        for (int32_t edge = 0; edge < local->edge_count; edge++)
            out[l * edges + local->slots[edge]] = messages[(int64_t)l * local->edge_count + edge];
}

static vlp_status backward_answer(vlp_compute *compute, path_work *work, float *out, int64_t edges) {
    struct cpu_paths *paths = compute->paths;
    path_local *local = &work->local;
    const path_sizes *sizes = &paths->weights.sizes;
    int64_t messages = (int64_t)sizes->layers * local->edge_count, own = path_key_gradients_size(sizes);
    VLP_TRY(path_array_grow(compute, &paths->group_array, path_gradients_size(sizes)));
    VLP_TRY(path_array_grow(compute, &paths->key_array, messages + own));
    memset(paths->group_array.values, 0, (size_t)path_gradients_size(sizes) * sizeof(float));
    memset(paths->key_array.values, 0, (size_t)(messages + own) * sizeof(float));
    path_gradients grads = path_gradients_at(sizes, paths->group_array.values);
    path_key_gradients key_grads = path_key_gradients_at(sizes, paths->key_array.values);
    float *derivatives = paths->key_array.values + own;
    work->score_grads[0] = 1;
    VLP_TRY(path_backward(compute, work, &grads, &key_grads, 0, derivatives));
    write_messages(out, local, derivatives, sizes->layers, edges);
    return VLP_OK;
}

static vlp_status explain(vlp_compute *compute, float *score, float *out, const vlp_path_model *model,
                          const vlp_path_queries *query, int32_t answer) {
    VLP_TRY(open_paths(compute, model, false));
    struct cpu_paths *paths = compute->paths;
    path_work *work = paths->works;
    VLP_TRY(path_weights_ask(compute, &paths->weights, model, query->relations, 1));
    int64_t edges = 2 * model->graph->triples;
    path_scope scope = {.form = model->form,
                        .graph = model->graph,
                        .head = query->heads[0],
                        .near = -1,
                        .answers = &answer,
                        .answer_count = 1,
                        .classes = paths->weights.classes,
                        .slots = true};
    work->slot = paths->weights.slots[query->relations[0]];
    remove_listed(&work->local, query, 0);
    vlp_status status = path_local_build(&work->local, &scope);
    if (status == VLP_OK) status = path_forward(compute, work, true);
    bool reached = status == VLP_OK && work->local.candidate_count > 0;
    if (status == VLP_OK) {
        *score = reached ? work->scores[0] : work->zero_score;
        if (reached)
            status = backward_answer(compute, work, out, edges);
        else
            memset(out, 0, (size_t)(model->form->layers * edges) * sizeof *out);
    }
    path_local_clear(&work->local);
    return status;
}

static vlp_status message_gradients(vlp_compute *compute, float *score, float *out,
                                    const vlp_path_model *model, const vlp_path_queries *query,
                                    int32_t answer) {
    vlp_status status = explain(compute, score, out, model, query, answer);
    return status == VLP_OK ? VLP_OK : vlp_fail_memory("the gradients of a path");
}

const vlp_path_operations cpu_path_operations = {
    .choose = choose, .step = step, .scores = scores_of, .message_gradients = message_gradients};
