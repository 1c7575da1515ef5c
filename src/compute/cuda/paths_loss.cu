/* The loss of every key over its candidates, and the gradients of their scores. Several blocks share a
 * key's entities; their sums are put together in the order of the blocks. */
#include "compute/cuda/paths.h"

/* The candidates of a key, of which each thread sees its own nodes. */
struct candidates {
    const path_work *work;
    path_level level;
    int32_t key;
    float correction; /* of those that are not near; 0: all are */

    /* The row of a node that is a candidate; -1: it is none. */
    __device__ int32_t row(int32_t node) const {
        return path_find_row(*work, level, key, node);
    }
    __device__ bool is_answer(int32_t node) const {
        return work->known[node] >> key & 1;
    }
    __device__ float logit(int32_t node, int32_t row) const {
        bool is_near = correction == 0 || (work->near_hops && (work->near_hops[node] >> key & 1));
        return work->scores[row] - (is_near ? 0.0f : correction);
    }
};

__device__ static candidates candidates_of(const path_work &work, float correction) {
    return {&work, path_level_of(work, work.layers), static_cast<int32_t>(blockIdx.y), correction};
}

/* The softmax over a block's candidates that compete: answers do not. */
__global__ static void __launch_bounds__(PATH_THREADS) sum_candidates(path_work work, float correction) {
    __shared__ double shared[32];
    __shared__ float shared_max[32];
    candidates all = candidates_of(work, correction);
    path_softmax out = {-INFINITY, 0, 0};
    int32_t first = static_cast<int32_t>(blockIdx.x * PATH_THREADS + threadIdx.x);
    int32_t step = PATH_LOSS_BLOCKS * PATH_THREADS;
    for (int32_t node = first; node < work.graph.entities; node += step) {
        if (all.is_answer(node)) continue;
        int32_t row = all.row(node);
        if (row >= 0) out.largest = fmaxf(out.largest, all.logit(node, row));
        out.unreached += work.reached && !(work.reached[node] >> all.key & 1);
    }
    out.unreached = block_sum(out.unreached, shared);
    out.largest = block_max(out.largest, shared_max);
    for (int32_t node = first; node < work.graph.entities && out.largest > -INFINITY; node += step) {
        if (all.is_answer(node)) continue;
        int32_t row = all.row(node);
        if (row >= 0) out.total += static_cast<double>(expf(all.logit(node, row) - out.largest));
    }
    out.total = block_sum(out.total, shared);
    if (threadIdx.x == 0) work.softmax[all.key * PATH_LOSS_BLOCKS + blockIdx.x] = out;
}

/* The whole key's, entities without a state included: *zero is their part of the total. */
__device__ static path_softmax whole_softmax(const path_work &work, int32_t key, double *zero) {
    path_softmax out = {-INFINITY, 0, 0};
    const path_softmax *parts = work.softmax + key * PATH_LOSS_BLOCKS;
    float zero_score = work.zero_score[key];
    for (int i = 0; i < PATH_LOSS_BLOCKS; i++) {
        out.largest = fmaxf(out.largest, parts[i].largest);
        out.unreached += parts[i].unreached;
    }
    if (out.unreached > 0) out.largest = fmaxf(out.largest, zero_score);
    for (int i = 0; i < PATH_LOSS_BLOCKS; i++)
        if (parts[i].total > 0)
            out.total += parts[i].total * exp(static_cast<double>(parts[i].largest - out.largest));
    *zero = 0;
    if (out.unreached > 0) *zero = out.unreached * exp(static_cast<double>(zero_score - out.largest));
    out.total += *zero;
    return out;
}

/* One block per key: its loss over the hidden answers, and what its gradients are made of. */
__global__ static void __launch_bounds__(PATH_THREADS)
    key_loss(path_work work, vlp_path_graph graph, const uint8_t *hidden) {
    __shared__ double shared[32];
    int32_t index = static_cast<int32_t>(blockIdx.x);
    path_key key = work.key[index];
    path_level level = path_level_of(work, work.layers);
    double zero, loss = 0, sum = 0, count = 0, zero_change = 0;
    path_softmax all = whole_softmax(work, index, &zero);
    double log_total = static_cast<double>(all.largest) + log(all.total);
    float zero_score = work.zero_score[index];
    for (int32_t i = threadIdx.x; i < key.answers; i += PATH_THREADS) count += hidden[key.hidden + i];
    double weight = key.weight / block_sum(count, shared);
    for (int32_t i = threadIdx.x; i < key.answers && all.total > 0; i += PATH_THREADS) {
        if (!hidden[key.hidden + i]) continue;
        int32_t row = path_find_row(work, level, index, work.graph.node[graph.neighbor[key.answer + i]]);
        double above = log_total - static_cast<double>(row >= 0 ? work.scores[row] : zero_score);
        loss += weight * (above > 0 ? above + log1p(exp(-above)) : log1p(exp(above)));
        sum += weight / (1 + exp(-above));
        if (row < 0) zero_change += weight / (1 + exp(-above));
    }
    loss = block_sum(loss, shared);
    sum = block_sum(sum, shared);
    zero_change = block_sum(zero_change, shared);
    if (threadIdx.x > 0) return;
    bool any = all.total > 0; /* else every entity is an answer */
    work.zero_grad[index] = any ? static_cast<float>(sum * zero / all.total - zero_change) : 0.0f;
    work.losses[index] = loss;
    work.key_softmax[index] = {all.largest, all.total, any ? sum / all.total : 0, weight, log_total};
}

__device__ static void set_gradient(const path_work &work, int32_t node, int32_t key, int32_t row,
                                    float grad) {
    work.score_grads[row] = grad;
    if (work.pruned_from <= work.layers && grad != 0)
        atomicOr(work.back_active + static_cast<int64_t>(work.layers) * work.graph.entities + node,
                 1u << key);
}

/* Softmax weights become gradients: small ones are kept with a probability in proportion. */
__global__ static void __launch_bounds__(PATH_THREADS)
    score_gradients(path_work work, float correction, float prune) {
    candidates all = candidates_of(work, correction);
    path_key_softmax key = work.key_softmax[all.key];
    float scale = static_cast<float>(key.scale), least = prune * static_cast<float>(key.total);
    for (int32_t node = static_cast<int32_t>(blockIdx.x * PATH_THREADS + threadIdx.x);
         node < work.graph.entities; node += PATH_LOSS_BLOCKS * PATH_THREADS) {
        int32_t row = all.row(node);
        if (row < 0) continue;
        float grad = 0;
        if (all.is_answer(node)) {
            double above = key.log_total - static_cast<double>(work.scores[row]);
            if (key.total > 0 && (work.hidden[node] >> all.key & 1))
                grad = -static_cast<float>(key.weight / (1 + exp(-above)));
            set_gradient(work, node, all.key, row, grad);
            continue;
        }
        if (key.total > 0) grad = expf(all.logit(node, row) - key.largest);
        if (grad < least && grad > 0) {
            vlp_random4 r = vlp_random(work.key[all.key].seed, VLP_STREAM_PATH_GRADIENTS, 0,
                                       static_cast<uint32_t>(work.graph.entity[node]));
            grad = vlp_random_unit(r.v[0]) * least < grad ? least : 0.0f;
        }
        set_gradient(work, node, all.key, row, grad * scale);
    }
}

void cuda_path_loss(vlp_compute *compute, const path_work *work, const vlp_path_graph *graph,
                    const uint8_t *hidden, const vlp_path_options *options) {
    uint32_t share = vlp_path_share(options->far);
    float correction = share < 65536 ? logf(static_cast<float>(share) / 65536.0f) : 0.0f;
    dim3 grid(PATH_LOSS_BLOCKS, static_cast<unsigned>(work->keys));
    bool pruned = work->pruned_from <= work->layers;
    if (pruned)
        cuda_note(compute,
                  cudaMemsetAsync(
                      work->back_active + static_cast<int64_t>(work->layers) * work->graph.entities, 0,
                      static_cast<size_t>(work->graph.entities) * sizeof(uint32_t), compute->stream),
                  "clearing memory");
    LAUNCH(compute, sum_candidates, grid, PATH_THREADS, 0, *work, correction);
    LAUNCH(compute, key_loss, static_cast<unsigned>(work->keys), PATH_THREADS, 0, *work, *graph, hidden);
    LAUNCH(compute, score_gradients, grid, PATH_THREADS, 0, *work, correction, options->prune);
    if (pruned) cuda_path_reach_back(compute, work);
}
