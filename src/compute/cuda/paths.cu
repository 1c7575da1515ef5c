/* The operations of the path model: groups of 32 keys, one after the other. */
#include "base/order.h"
#include "compute/cuda/paths.h"

/* ---- The batch ----------------------------------------------------------------------------------- */

enum { CHOOSE_THREADS = 256 };

/* One block: the keys, and where their answers begin. */
__global__ static void __launch_bounds__(CHOOSE_THREADS)
    choose_keys(vlp_path_batch batch, vlp_path_keys keys, uint64_t seed, const vlp_step_values *values) {
    __shared__ int64_t ends[CHOOSE_THREADS];
    int64_t before = 0;
    if (threadIdx.x == 0) batch.offset[0] = 0;
    for (int32_t start = 0; start < batch.count; start += CHOOSE_THREADS) {
        int32_t i = start + static_cast<int32_t>(threadIdx.x);
        int64_t answers = 0;
        if (i < batch.count) {
            int64_t at = values->step * batch.count + i;
            int64_t turn = vlp_permuted(at % keys.turn_count, keys.turn_count, seed,
                                        static_cast<uint64_t>(at / keys.turn_count));
            int64_t key = keys.turns[turn];
            answers = keys.offset[key + 1] - keys.offset[key];
            batch.heads[i] = keys.heads[key];
            batch.relations[i] = keys.relations[key];
            batch.answers[i] = keys.offset[key];
        }
        ends[threadIdx.x] = answers;
        for (unsigned step = 1; step < CHOOSE_THREADS; step *= 2) {
            __syncthreads();
            int64_t left = threadIdx.x >= step ? ends[threadIdx.x - step] : 0;
            __syncthreads();
            ends[threadIdx.x] += left;
        }
        __syncthreads();
        if (i < batch.count) batch.offset[i + 1] = before + ends[threadIdx.x];
        before += ends[CHOOSE_THREADS - 1];
        __syncthreads();
    }
}

/* One block per key. */
__global__ static void hide_answers(vlp_path_batch batch, vlp_path_choice choice,
                                    const vlp_step_values *values) {
    int32_t key = static_cast<int32_t>(blockIdx.x);
    uint64_t seed = vlp_path_key_seed(choice.seed, values->step, key);
    uint8_t *hidden = batch.hidden + batch.offset[key];
    int64_t count = batch.offset[key + 1] - batch.offset[key];
    uint32_t share = vlp_path_share(choice.hidden);
    bool any = false;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        hidden[i] = vlp_path_chosen(seed, VLP_STREAM_PATH_HIDDEN, static_cast<uint32_t>(i), share);
        any |= hidden[i];
    }
    if (__syncthreads_or(any) || threadIdx.x > 0) return;
    vlp_random4 r = vlp_random(seed, VLP_STREAM_PATH_HIDDEN, 16, 0); /* 16: no digit of a choice */
    hidden[vlp_random_below(r.v[0], r.v[1], static_cast<uint32_t>(count))] = 1;
}

static void choose(vlp_compute *compute, const vlp_path_batch *batch, const vlp_path_keys *keys,
                   const vlp_path_choice *choice) {
    assert(batch->capacity >= batch->count * keys->most_answers);
    LAUNCH(compute, choose_keys, 1, CHOOSE_THREADS, 0, *batch, *keys, choice->seed, compute->values);
    LAUNCH(compute, hide_answers, static_cast<unsigned>(batch->count), 128, 0, *batch, *choice,
           compute->values);
}

/* ---- Working memory ------------------------------------------------------------------------------ */

/* Arrays one after the other; without memory it only counts. */
struct carver {
    char *memory;
    size_t used;

    template <class T> void take(T **to, int64_t count, size_t size = sizeof(T)) {
        *to = reinterpret_cast<T *>(memory + used);
        used += (static_cast<size_t>(count) * size + 255) / 256 * 256;
    }
    void take(void **to, int64_t count, size_t size) {
        *to = memory + used;
        used += (static_cast<size_t>(count) * size + 255) / 256 * 256;
    }
};

static void carve_sets(carver *at, path_work *work, const vlp_path_form *form) {
    int64_t entities = work->graph.entities, levels = work->layers + 1, sites = path_sites(*work);
    at->take(&work->key, PATH_KEYS);
    /* Cleared together, from `out` to the first level of `hops`. */
    at->take(&work->out, work->graph.slot_count + PATH_PADDING);
    at->take(&work->touched, entities);
    at->take(&work->known, entities);
    at->take(&work->hidden, entities);
    at->take(&work->hops, (form->reached_only ? levels : 2) * entities);
    at->take(&work->near_hops, entities);
    at->take(&work->spare, entities);
    at->take(&work->active, levels * entities);
    at->take(&work->left, PATH_KEYS);
    at->take(&work->site_sums, levels * (sites / 512 + 1));
    at->take(&work->sites, levels * sites);
    at->take(&work->list, levels * sites);
    at->take(&work->rows, levels * work->capacity);
    at->take(&work->counts, levels);
}

static void carve_states(carver *at, path_work *work, size_t size) {
    int64_t d = work->dim, rows = work->capacity, layers = work->layers;
    int64_t kept = work->keep ? layers : 1;
    at->take(&work->query, PATH_KEYS * d);
    at->take(&work->weights, layers * work->octets * work->graph.relations * PATH_OCTET * d, size);
    at->take(&work->x, (work->keep ? layers : 2) * rows * d, size);
    at->take(&work->last, rows * d);
    at->take(&work->features, kept * rows * 4 * d, size);
    at->take(&work->degree, kept * rows);
    at->take(&work->scale, kept * rows);
    at->take(&work->transposed, layers * 2 * PATH_PARTS * d * d);
    at->take(&work->hub_sums,
             static_cast<int64_t>(work->octets) * work->graph.pieces * 7 * PATH_OCTET * d);
    at->take(&work->offset, PATH_KEYS * 2 * d);
    at->take(&work->zero_score, PATH_KEYS);
    at->take(&work->scores, rows);
}

static void carve_gradients(carver *at, path_work *work, size_t size) {
    int64_t d = work->dim, rows = work->capacity, layers = work->layers, blocks = work->blocks;
    int64_t octets = work->octets;
    at->take(&work->back_active, (layers + 1) * work->graph.entities);
    at->take(&work->back_list, (layers + 1) * path_sites(*work));
    at->take(&work->back_rows, (layers + 1) * rows);
    at->take(&work->back_counts, layers + 1);
    at->take(&work->hits, (layers * octets * work->graph.slot_count + PATH_PADDING) * d);
    at->take(&work->hub_slots, layers * octets * work->graph.hubs * 2 * PATH_OCTET * d);
    at->take(&work->boundary_hits, layers * PATH_KEYS * (d / 8));
    at->take(&work->score_grads, rows);
    at->take(&work->zero_grad, PATH_KEYS);
    at->take(&work->losses, PATH_KEYS);
    at->take(&work->softmax, PATH_KEYS * PATH_LOSS_BLOCKS);
    at->take(&work->key_softmax, PATH_KEYS);
    at->take(&work->state_grads, rows * d);
    at->take(&work->own_grads, rows * d);
    at->take(&work->gradients, rows * 2 * d, size);
    at->take(&work->extremes, rows * 2 * d, size);
    at->take(&work->changes, rows * 2 * d);
    at->take(&work->partial, octets * work->graph.segments * PATH_OCTET * d, size);
    at->take(&work->chunk_sums, layers * octets * work->graph.chunks * PATH_OCTET * d);
    at->take(&work->boundary, layers * PATH_KEYS * d);
    at->take(&work->update_partial, layers * work->update_blocks * 2 * PATH_PARTS * d * d);
    at->take(&work->norm_partial, layers * work->update_blocks * 4 * d);
    at->take(&work->hidden_partial, blocks * 2 * d * d);
    at->take(&work->output_partial, blocks * (2 * d + 1));
    at->take(&work->offset_partial, blocks * PATH_KEYS * 2 * d);
    at->take(&work->offset_grad, PATH_KEYS * 2 * d);
    at->take(&work->query_partial, layers * cuda_path_column_blocks(work) * PATH_KEYS * d);
    at->take(&work->query_grad, PATH_KEYS * d);
}

static void carve(carver *at, path_work *work, const vlp_path_form *form, bool bf16) {
    carve_sets(at, work, form);
    carve_states(at, work, bf16 ? sizeof(__nv_bfloat16) : sizeof(float));
    if (work->keep) carve_gradients(at, work, bf16 ? sizeof(__nv_bfloat16) : sizeof(float));
}

/* Sets the number of keys of a group, and with it what its memory is carved into; returns the bytes. */
static size_t set_keys(path_work *work, const vlp_path_form *form, int32_t keys, bool bf16) {
    /* An entity that is reached has an edge. */
    int64_t reached = work->graph.entities;
    if (form->reached_only && form->edge_limit > 0 && form->edge_limit + 1 < reached)
        reached = form->edge_limit + 1;
    work->keys = keys;
    work->octets = (keys + PATH_OCTET - 1) / PATH_OCTET;
    work->capacity = keys * reached;
    carver measure = {nullptr, 0};
    carve(&measure, work, form, bf16);
    return measure.used;
}

/* Working memory for groups of at most `keys` keys: fewer octets where they would take more than half of
 * the device's memory. */
static vlp_status open_work(vlp_compute *compute, path_work *work, const vlp_path_model *model,
                            int32_t keys, bool keep, bool bf16) {
    const vlp_path_form *form = model->form;
    assert(form->layers >= 1 && form->layers <= VLP_PATH_MAX_LAYERS);
    assert(form->dim % 8 == 0 && form->dim <= VLP_PATH_MAX_DIM);
    assert(form->relations == model->graph->relations);
    *work = {};
    vlp_status status = cuda_path_layout(compute, &work->graph, model->graph);
    if (status != VLP_OK) return status;
    work->layers = form->layers;
    work->dim = form->dim;
    work->keep = keep;
    work->pruned_from = form->layers + 1; /* none */
    work->mean_log_degree = model->graph->mean_log_degree;
    work->blocks = compute->multiprocessors * (form->dim > 64 ? 1 : 2);
    /* Twice as many blocks sum up the gradients of this dimension's matrices on tensor cores. */
    work->update_blocks = compute->multiprocessors / (bf16 && form->dim == 64 ? 2 : 1);
    int32_t most = keys < PATH_KEYS ? keys : PATH_KEYS;
    size_t bytes = set_keys(work, form, most, bf16);
    while (bytes > compute->memory / 2 && work->octets > 1)
        bytes = set_keys(work, form, (work->octets - 1) * PATH_OCTET, bf16);
    uint64_t before = compute->generation;
    char *memory = static_cast<char *>(cuda_scratch(compute, SLOT_PATHS, bytes));
    if (!memory) return cuda_status(compute);
    /* Hits are read ahead, before it is known whether they are there. */
    if (compute->generation != before)
        cuda_note(compute, cudaMemsetAsync(memory, 0, bytes, compute->stream), "clearing memory");
    carver take = {memory, 0};
    carve(&take, work, form, bf16);
    return VLP_OK;
}

/* The work of a group of `keys` keys, over the same memory. */
static path_work group_of(const path_work *all, int32_t keys) {
    path_work work = *all;
    work.keys = keys;
    work.octets = (keys + PATH_OCTET - 1) / PATH_OCTET;
    return work;
}

static path_pointers pointers_of(const vlp_path_tables *tables) {
    path_pointers out;
    for (int i = 0; i < VLP_PATH_TABLES; i++) out.table[i] = tables->table[i];
    return out;
}

/* ---- A step -------------------------------------------------------------------------------------- */

__global__ static void open_keys(path_work work, vlp_path_batch batch, int32_t first, uint64_t seed,
                                 const vlp_step_values *values) {
    __shared__ double shared[32];
    double sum = 0;
    for (int32_t i = threadIdx.x; i < batch.count; i += blockDim.x)
        sum += vlp_path_weight(batch.offset[i + 1] - batch.offset[i]);
    sum = block_sum(sum, shared);
    if (threadIdx.x >= static_cast<unsigned>(work.keys)) return;
    int32_t i = first + static_cast<int32_t>(threadIdx.x);
    path_key key;
    key.head = work.graph.node[batch.heads[i]];
    key.relation = batch.relations[i];
    key.seed = vlp_path_key_seed(seed, values->step, i);
    key.answer = batch.answers[i];
    key.hidden = batch.offset[i];
    key.answers = static_cast<int32_t>(batch.offset[i + 1] - batch.offset[i]);
    key.weight = vlp_path_weight(key.answers) / sum;
    work.key[threadIdx.x] = key;
}

__global__ static void add_losses(double *loss, const double *losses, int32_t keys, bool add) {
    double sum = add ? *loss : 0;
    for (int32_t i = 0; i < keys; i++) sum += losses[i];
    *loss = sum;
}

static void forward(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    cuda_path_weights(compute, work, operands);
    cuda_path_update_open(compute, work, operands);
    for (int32_t l = 0; l < work->layers; l++) {
        cuda_path_aggregate(compute, work, l, operands->bf16);
        cuda_path_update(compute, work, operands, l);
    }
    cuda_path_scores(compute, work, operands);
}

/* From score_grads to chunk_sums and partial sums. factors: NULL, or as in message_gradients. */
static void backward(vlp_compute *compute, const path_work *work, const path_operands *operands,
                     float *factors) {
    size_t bytes = static_cast<size_t>(work->layers) * PATH_KEYS * work->dim * sizeof(float);
    cuda_note(compute, cudaMemsetAsync(work->boundary, 0, bytes, compute->stream), "clearing memory");
    cuda_path_hub_hits(compute, work);
    cuda_path_readout_backward(compute, work, operands);
    for (int32_t l = work->layers - 1; l >= 0; l--) {
        cuda_path_update_backward(compute, work, operands, l);
        if (factors)
            cuda_path_factors(compute, factors + l * work->graph.slot_count, work, operands->graph, l,
                              operands->bf16);
        cuda_path_collect(compute, work, l, operands->bf16);
    }
}

static vlp_status step(vlp_compute *compute, double *loss, const vlp_path_tables *grads,
                       const vlp_path_model *model, const vlp_path_batch *batch,
                       const vlp_path_options *options) {
    path_work all;
    uint32_t share = vlp_path_share(options->far);
    path_scope scope = {share >= 65536, options->near, share};
    vlp_status status = open_work(compute, &all, model, batch->count, true, model->form->bf16);
    if (status != VLP_OK) return status;
    path_operands operands = {model->form,        model->graph,      pointers_of(model->values),
                              pointers_of(grads), model->form->bf16, false};
    for (int32_t first = 0; first < batch->count; first += all.keys) {
        path_work work = group_of(&all, min(batch->count - first, all.keys));
        operands.add = first > 0;
        LAUNCH(compute, open_keys, 1, PATH_THREADS, 0, work, *batch, first, options->seed,
               compute->values);
        cuda_path_hide(compute, &work, model->graph, batch->hidden, options);
        cuda_path_reach(compute, &work, model->form, &scope);
        if (options->prune > 0 && cuda_path_on_tensor_cores(&work, &operands))
            work.pruned_from = work.layers_alike ? work.layers : 0;
        forward(compute, &work, &operands);
        cuda_path_loss(compute, &work, model->graph, batch->hidden, options);
        backward(compute, &work, &operands, nullptr);
        cuda_path_reduce(compute, &work, &operands);
        LAUNCH(compute, add_losses, 1, 1, 0, loss, work.losses, work.keys, operands.add);
    }
    return cuda_status(compute);
}

/* ---- Scores -------------------------------------------------------------------------------------- */

__global__ static void open_queries(path_work work, const int32_t *heads, const int32_t *relations) {
    path_key key = {};
    key.head = work.graph.node[heads[threadIdx.x]];
    key.relation = relations[threadIdx.x];
    work.key[threadIdx.x] = key;
}

/* blockIdx.y: the key. */
__global__ static void write_scores(float *scores, path_work work) {
    int32_t entity = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    int32_t key = static_cast<int32_t>(blockIdx.y);
    if (entity >= work.graph.entities) return;
    int32_t row = path_find_row(work, path_level_of(work, work.layers), key, work.graph.node[entity]);
    scores[static_cast<int64_t>(key) * work.graph.entities + entity] =
        row >= 0 ? work.scores[row] : work.zero_score[key];
}

static vlp_status scores_of(vlp_compute *compute, float *scores, const vlp_path_model *model,
                            const vlp_path_queries *queries) {
    path_work all;
    path_scope scope = {true, 0, 65536};
    vlp_status status = open_work(compute, &all, model, queries->count, false, model->form->bf16);
    if (status != VLP_OK) return status;
    path_operands operands = {model->form, model->graph,      pointers_of(model->values),
                              {},          model->form->bf16, false};
    for (int32_t first = 0; first < queries->count; first += all.keys) {
        path_work work = group_of(&all, min(queries->count - first, all.keys));
        LAUNCH(compute, open_queries, 1, static_cast<unsigned>(work.keys), 0, work,
               queries->heads + first, queries->relations + first);
        cuda_path_remove(compute, &work, queries, first);
        cuda_path_reach(compute, &work, model->form, &scope);
        forward(compute, &work, &operands);
        dim3 grid(cuda_blocks(work.graph.entities, PATH_THREADS), static_cast<unsigned>(work.keys));
        LAUNCH(compute, write_scores, grid, PATH_THREADS, 0,
               scores + static_cast<int64_t>(first) * work.graph.entities, work);
    }
    return cuda_status(compute);
}

/* ---- Explanations -------------------------------------------------------------------------------- */

__global__ static void mark_answer(path_work work, int32_t answer) {
    work.known[work.graph.node[answer]] = 1;
}

/* The answer's is the only row of the last layer, if it is reached. */
__global__ static void score_answer(float *score, path_work work, int32_t answer) {
    int32_t row = path_find_row(work, path_level_of(work, work.layers), 0, work.graph.node[answer]);
    *score = row >= 0 ? work.scores[row] : work.zero_score[0];
    if (row >= 0) work.score_grads[row] = 1;
}

static vlp_status message_gradients(vlp_compute *compute, float *score, float *out,
                                    const vlp_path_model *model, const vlp_path_queries *query,
                                    int32_t answer) {
    path_work work;
    path_scope scope = {false, -1, 0};
    vlp_status status = open_work(compute, &work, model, 1, true, false);
    if (status != VLP_OK) return status;
    path_operands operands = {model->form, model->graph, pointers_of(model->values), {}, false, false};
    LAUNCH(compute, open_queries, 1, 1, 0, work, query->heads, query->relations);
    cuda_path_remove(compute, &work, query, 0);
    LAUNCH(compute, mark_answer, 1, 1, 0, work, answer);
    cuda_path_reach(compute, &work, model->form, &scope);
    forward(compute, &work, &operands);
    LAUNCH(compute, score_answer, 1, 1, 0, score, work, answer);
    backward(compute, &work, &operands, out);
    return cuda_status(compute);
}

const vlp_path_operations cuda_path_operations = {
    .choose = choose, .step = step, .scores = scores_of, .message_gradients = message_gradients};
