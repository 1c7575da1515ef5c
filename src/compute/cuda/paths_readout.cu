/* The readout of the last states, in fp32; the loss of every key over its candidates; and the way back
 * to the states. */
#include "compute/cuda/paths_outer.h"

enum {
    WARPS = PATH_THREADS / 32,
    EACH = 4,                          /* rows per warp at a time */
    READOUT_ROWS = WARPS * EACH,       /* rows of a block at a time */
    UNITS = 2 * VLP_PATH_MAX_DIM / 32, /* of the hidden layer, per lane, at most */
    LOSS_THREADS = 1024
};

/* What the readout is computed with. */
struct readout_operands {
    const float *hidden; /* (2 dim, 2 dim): of x, of q */
    const float *bias;   /* (2 dim) */
    const float *output; /* (2 dim + 1) */
};

static readout_operands operands_of(const path_operands *operands) {
    float *const *table = operands->values.table;
    return {table[VLP_PATH_HIDDEN], table[VLP_PATH_HIDDEN_BIAS], table[VLP_PATH_OUTPUT]};
}

/* ---- Scores -------------------------------------------------------------------------------------- */

/* One block per key: q H + bias, and the score of a state of zeros. */
__global__ static void open_readout(path_work work, readout_operands in) {
    __shared__ float shared[32];
    int32_t d = work.dim, key = static_cast<int32_t>(blockIdx.x);
    float score = 0;
    for (int32_t j = threadIdx.x; j < 2 * d; j += PATH_THREADS) {
        float sum = in.bias[j];
        for (int32_t i = 0; i < d; i++)
            sum = __fmaf_rn(work.query[key * d + i], in.hidden[(d + i) * 2 * d + j], sum);
        work.offset[key * 2 * d + j] = sum;
        score = __fmaf_rn(fmaxf(sum, 0.0f), in.output[j], score);
    }
    score = block_sum(score, shared);
    if (threadIdx.x == 0) work.zero_score[key] = score + in.output[2 * d];
}

/* The hidden layer of a warp's rows before ReLU: unit lane + 32 u of row r in out[r][u]. x: (EACH, dim)
 * in shared memory. */
__device__ static void hidden_layer(float (&out)[EACH][UNITS], const float *x, const float *matrix,
                                    const int32_t (&keys)[EACH], const path_work &work) {
    int32_t d = work.dim, lane = threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        int32_t j = lane + 32 * u;
        if (j >= 2 * d) break;
        float sum[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) sum[r] = work.offset[keys[r] * 2 * d + j];
        for (int32_t i = 0; i < d; i++) {
            float weight = matrix[i * 2 * d + j];
#pragma unroll
            for (int r = 0; r < EACH; r++) sum[r] = __fmaf_rn(x[r * d + i], weight, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < EACH; r++) out[r][u] = sum[r];
    }
}

/* A warp's rows of x into shared memory, and their keys. */
__device__ static void load_rows(float *x, int32_t (&keys)[EACH], const path_work &work,
                                 const path_level &level, int32_t first, int32_t rows) {
    int32_t d = work.dim, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < EACH; r++)
        keys[r] = first + r < rows ? static_cast<int32_t>(level.rows[first + r] >> PATH_NODE_BITS) : 0;
    for (int32_t i = lane; i < EACH * d; i += 32)
        x[i] = first + i / d < rows ? work.last[static_cast<int64_t>(first) * d + i] : 0.0f;
    __syncwarp();
}

/* Shared memory: the matrix of x (dim, 2 dim), then the rows of x. */
__device__ static void load_matrix(float *matrix, const float *hidden, int32_t dim) {
    for (int32_t i = threadIdx.x; i < dim * 2 * dim; i += PATH_THREADS) matrix[i] = hidden[i];
    __syncthreads();
}

__global__ static void __launch_bounds__(PATH_THREADS) read_states(path_work work, readout_operands in) {
    extern __shared__ float shared[];
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    path_level level = path_level_of(work, work.layers);
    int32_t rows = level.counts->rows;
    float *x = shared + 2 * d * d + warp * EACH * d;
    load_matrix(shared, in.hidden, d);
    for (int32_t first = (static_cast<int32_t>(blockIdx.x) * WARPS + warp) * EACH; first < rows;
         first += static_cast<int32_t>(gridDim.x) * READOUT_ROWS) {
        int32_t keys[EACH];
        float hidden[EACH][UNITS];
        __syncwarp();
        load_rows(x, keys, work, level, first, rows);
        hidden_layer(hidden, x, shared, keys, work);
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            float score = 0;
#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                int32_t j = lane + 32 * u;
                if (j < 2 * d) score = __fmaf_rn(fmaxf(hidden[r][u], 0.0f), in.output[j], score);
            }
            score = warp_sum(score);
            if (lane == 0 && first + r < rows) work.scores[first + r] = score + in.output[2 * d];
        }
    }
}

/* Raises a kernel's shared memory above what every kernel has. */
template <class Kernel> static void allow_shared(vlp_compute *compute, Kernel kernel, size_t bytes) {
    if (bytes > 48 << 10)
        cuda_note(compute,
                  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(bytes)),
                  "shared memory of a kernel");
}

void cuda_path_scores(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    size_t d = static_cast<size_t>(work->dim), bytes = (2 * d * d + READOUT_ROWS * d) * sizeof(float);
    readout_operands in = operands_of(operands);
    LAUNCH(compute, open_readout, static_cast<unsigned>(work->keys), PATH_THREADS, 0, *work, in);
    allow_shared(compute, read_states, bytes);
    LAUNCH(compute, read_states, static_cast<unsigned>(compute->multiprocessors) * 4, PATH_THREADS,
           bytes, *work, in);
}

/* ---- The loss ------------------------------------------------------------------------------------ */

/* The candidates of a key, of which each thread of the block sees its own nodes. */
struct candidates {
    const path_work *work;
    path_level level;
    int32_t key;
    const uint32_t *near_hops; /* NULL: none is near, unless all are */
    float correction;          /* of those that are not near */

    /* The row of a node that competes; -1: it is no candidate, or an answer. */
    __device__ int32_t competitor(int32_t node) const {
        return work->known[node] >> key & 1 ? -1 : path_find_row(*work, level, key, node);
    }
    __device__ float logit(int32_t node, int32_t row) const {
        bool is_near = correction == 0 || (near_hops && (near_hops[node] >> key & 1));
        return work->scores[row] - (is_near ? 0.0f : correction);
    }
};

/* The softmax over the candidates that compete, as exponentials of what is above the largest. */
struct softmax {
    float largest;
    double total, zero; /* zero: the part of the entities without a state */
};

__device__ static softmax sum_candidates(const candidates &all, const uint32_t *reached, double *shared,
                                         float *shared_max) {
    const path_work &work = *all.work;
    softmax out = {-INFINITY, 0, 0};
    double unreached = 0;
    for (int32_t node = threadIdx.x; node < work.graph.entities; node += LOSS_THREADS) {
        int32_t row = all.competitor(node);
        if (row >= 0) out.largest = fmaxf(out.largest, all.logit(node, row));
        /* Answers among them do not compete. */
        unreached += reached && !((reached[node] | work.known[node]) >> all.key & 1);
    }
    unreached = block_sum(unreached, shared);
    out.largest = block_max(out.largest, shared_max);
    float zero_score = work.zero_score[all.key];
    if (unreached > 0) out.largest = fmaxf(out.largest, zero_score);
    if (out.largest == -INFINITY) return out;
    for (int32_t node = threadIdx.x; node < work.graph.entities; node += LOSS_THREADS) {
        int32_t row = all.competitor(node);
        if (row >= 0) out.total += static_cast<double>(expf(all.logit(node, row) - out.largest));
    }
    out.total = block_sum(out.total, shared);
    if (unreached > 0) out.zero = unreached * exp(static_cast<double>(zero_score - out.largest));
    out.total += out.zero;
    return out;
}

/* Softmax weights become gradients: small ones are kept with a probability in proportion. */
__device__ static void set_gradients(const candidates &all, const softmax &sums, double sum, float prune,
                                     uint64_t seed) {
    const path_work &work = *all.work;
    float scale = sums.total > 0 ? static_cast<float>(sum / sums.total) : 0.0f;
    float least = prune * static_cast<float>(sums.total);
    for (int32_t node = threadIdx.x; node < work.graph.entities; node += LOSS_THREADS) {
        int32_t row = path_find_row(work, all.level, all.key, node);
        if (row < 0) continue;
        float grad = 0;
        if (!(work.known[node] >> all.key & 1) && sums.total > 0)
            grad = expf(all.logit(node, row) - sums.largest);
        if (grad < least && grad > 0) {
            vlp_random4 r = vlp_random(seed, VLP_STREAM_PATH_GRADIENTS, 0,
                                       static_cast<uint32_t>(work.graph.entity[node]));
            grad = vlp_random_unit(r.v[0]) * least < grad ? least : 0.0f;
        }
        work.score_grads[row] = grad * scale;
    }
}

/* One block per key. */
__global__ static void __launch_bounds__(LOSS_THREADS)
    key_loss(path_work work, vlp_path_graph graph, const uint8_t *hidden, const uint32_t *reached,
             float correction, float prune) {
    __shared__ double shared[32];
    __shared__ float shared_max[32];
    int32_t index = static_cast<int32_t>(blockIdx.x);
    path_key key = work.key[index];
    candidates all = {&work, path_level_of(work, work.layers), index, work.near_hops, correction};
    softmax sums = sum_candidates(all, reached, shared, shared_max);
    double log_total = static_cast<double>(sums.largest) + log(sums.total), loss = 0, sum = 0, count = 0;
    float zero_score = work.zero_score[index];
    for (int32_t i = threadIdx.x; i < key.answers; i += LOSS_THREADS) count += hidden[key.hidden + i];
    double weight = key.weight / block_sum(count, shared), zero_change = 0;
    for (int32_t i = threadIdx.x; i < key.answers && sums.total > 0; i += LOSS_THREADS) {
        if (!hidden[key.hidden + i]) continue;
        int32_t row =
            path_find_row(work, all.level, index, work.graph.node[graph.neighbor[key.answer + i]]);
        double above = log_total - static_cast<double>(row >= 0 ? work.scores[row] : zero_score);
        loss += weight * (above > 0 ? above + log1p(exp(-above)) : log1p(exp(above)));
        sum += weight / (1 + exp(-above));
        if (row < 0) zero_change += weight / (1 + exp(-above));
    }
    loss = block_sum(loss, shared);
    sum = block_sum(sum, shared);
    zero_change = block_sum(zero_change, shared);
    set_gradients(all, sums, sum, prune, key.seed);
    __syncthreads();
    for (int32_t i = threadIdx.x; i < key.answers && sums.total > 0; i += LOSS_THREADS) {
        if (!hidden[key.hidden + i]) continue;
        int32_t row =
            path_find_row(work, all.level, index, work.graph.node[graph.neighbor[key.answer + i]]);
        if (row < 0) continue;
        double above = log_total - static_cast<double>(work.scores[row]);
        work.score_grads[row] = -static_cast<float>(weight / (1 + exp(-above)));
    }
    if (threadIdx.x > 0) return;
    double zero = sums.total > 0 ? sum * sums.zero / sums.total - zero_change : 0;
    work.zero_grad[index] = static_cast<float>(zero);
    work.losses[index] = loss;
}

void cuda_path_loss(vlp_compute *compute, const path_work *work, const vlp_path_graph *graph,
                    const uint8_t *hidden, const vlp_path_options *options) {
    uint32_t share = vlp_path_share(options->far);
    float correction = share < 65536 ? logf(static_cast<float>(share) / 65536.0f) : 0.0f;
    LAUNCH(compute, key_loss, static_cast<unsigned>(work->keys), LOSS_THREADS, 0, *work, *graph, hidden,
           work->reached, correction, options->prune);
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* Shared memory: the matrix of x, padded rows; rows of x; gradients of the hidden layer (rows, 2 dim);
 * keys of the rows; sums by key, of several slices of rows: (slices, 32, 2 dim). */
struct readout_shared {
    float *matrix, *x, *grads, *sums;
    int32_t *keys;
    int32_t slices;
};

static size_t backward_bytes(int32_t dim) {
    size_t d = static_cast<size_t>(dim), slices = PATH_THREADS / (2 * d);
    return (2 * d * d + READOUT_ROWS * 3 * d + READOUT_ROWS + slices * PATH_KEYS * 2 * d) *
           sizeof(float);
}

__device__ static readout_shared shared_of(float *shared, int32_t dim) {
    readout_shared out;
    out.matrix = shared;
    out.x = out.matrix + 2 * dim * dim;
    out.grads = out.x + READOUT_ROWS * dim;
    out.keys = reinterpret_cast<int32_t *>(out.grads + READOUT_ROWS * 2 * dim);
    out.sums = reinterpret_cast<float *>(out.keys + READOUT_ROWS);
    out.slices = PATH_THREADS / (2 * dim);
    return out;
}

/* Gradients of a warp's rows of the hidden layer, and sums of the output's. */
__device__ static void hidden_backward(float (&output_sums)[UNITS], float *bias_sum,
                                       const readout_shared &to, const path_work &work,
                                       const readout_operands &in, const path_level &level,
                                       int32_t first, int32_t rows) {
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32, keys[EACH];
    float hidden[EACH][UNITS], *x = to.x + warp * EACH * d;
    load_rows(x, keys, work, level, first, rows);
    hidden_layer(hidden, x, to.matrix, keys, work);
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        int64_t row = first + r;
        float grad = row < rows ? work.score_grads[row] : 0.0f;
        if (lane == 0) to.keys[warp * EACH + r] = keys[r], *bias_sum += grad;
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            int32_t j = lane + 32 * u;
            if (j >= 2 * d) break;
            float change = hidden[r][u] > 0 ? grad * in.output[j] : 0.0f;
            output_sums[u] = __fmaf_rn(fmaxf(hidden[r][u], 0.0f), grad, output_sums[u]);
            to.grads[(warp * EACH + r) * 2 * d + j] = change;
            if (row < rows) work.changes[row * 2 * d + j] = change;
        }
    }
}

/* The rows' gradients of x, and sums of the hidden layer's by key. */
__device__ static void rows_backward(const readout_shared &from, const path_work &work, int32_t first,
                                     int32_t rows) {
    int32_t d = work.dim, column = threadIdx.x % (2 * d), slice = threadIdx.x / (2 * d);
    for (int32_t i = threadIdx.x; i < READOUT_ROWS * d; i += PATH_THREADS) {
        int32_t row = i / d, c = i % d;
        if (first + row >= rows) break;
        float sum = 0;
        for (int32_t j = 0; j < 2 * d; j++) /* lanes begin at different banks */
            sum = __fmaf_rn(from.grads[row * 2 * d + (j + c) % (2 * d)],
                            from.matrix[c * 2 * d + (j + c) % (2 * d)], sum);
        work.state_grads[static_cast<int64_t>(first + row) * d + c] = sum;
    }
    if (slice >= from.slices) return;
    for (int32_t row = slice; row < READOUT_ROWS; row += from.slices) {
        float *sum = from.sums + (slice * PATH_KEYS + from.keys[row]) * 2 * d + column;
        *sum += from.grads[row * 2 * d + column];
    }
}

__global__ static void __launch_bounds__(PATH_THREADS)
    readout_backward(path_work work, readout_operands in) {
    extern __shared__ float shared[];
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    readout_shared at = shared_of(shared, d);
    path_level level = path_level_of(work, work.layers);
    int32_t rows = level.counts->rows;
    float output_sums[UNITS] = {}, bias_sum = 0;
    for (int32_t i = threadIdx.x; i < at.slices * PATH_KEYS * 2 * d; i += PATH_THREADS) at.sums[i] = 0;
    load_matrix(at.matrix, in.hidden, d);
    for (int32_t first = static_cast<int32_t>(blockIdx.x) * READOUT_ROWS; first < rows;
         first += static_cast<int32_t>(gridDim.x) * READOUT_ROWS) {
        __syncthreads();
        hidden_backward(output_sums, &bias_sum, at, work, in, level, first + warp * EACH, rows);
        __syncthreads();
        rows_backward(at, work, first, rows);
    }
    __syncthreads();
    float *offsets = work.offset_partial + static_cast<int64_t>(blockIdx.x) * PATH_KEYS * 2 * d;
    for (int32_t i = threadIdx.x; i < PATH_KEYS * 2 * d; i += PATH_THREADS) {
        float sum = 0;
        for (int32_t slice = 0; slice < at.slices; slice++)
            sum += at.sums[slice * PATH_KEYS * 2 * d + i];
        offsets[i] = sum;
    }
    /* Sums of warps, in the place of rows. */
#pragma unroll
    for (int u = 0; u < UNITS; u++)
        if (lane + 32 * u < 2 * d) at.grads[warp * 2 * d + lane + 32 * u] = output_sums[u];
    if (lane == 0) at.x[warp] = bias_sum;
    __syncthreads();
    float *output = work.output_partial + static_cast<int64_t>(blockIdx.x) * (2 * d + 1);
    for (int32_t i = threadIdx.x; i <= 2 * d; i += PATH_THREADS) {
        float sum = 0;
        for (int w = 0; w < WARPS; w++) sum += i < 2 * d ? at.grads[w * 2 * d + i] : at.x[w];
        output[i] = sum;
    }
}

/* Functions of a row and a column for the gradient of the hidden layer's matrix. */
struct state_of {
    const float *last;
    int32_t dim;
    __device__ float operator()(int32_t row, int32_t column) const {
        return last[static_cast<int64_t>(row) * dim + column];
    }
};

void cuda_path_readout_backward(vlp_compute *compute, const path_work *work,
                                const path_operands *operands) {
    int32_t d = work->dim;
    size_t bytes = backward_bytes(d);
    allow_shared(compute, readout_backward, bytes);
    LAUNCH(compute, readout_backward, static_cast<unsigned>(work->blocks), PATH_THREADS, bytes, *work,
           operands_of(operands));
    auto outer = outer_products<state_of, state_of>;
    LAUNCH(compute, outer, outer_grid(d, 2 * d, work->blocks), PATH_THREADS, 0, work->hidden_partial,
           state_of{work->last, d}, state_of{work->changes, 2 * d},
           path_level_of(*work, work->layers).counts, d, 2 * d, 2 * d);
}
