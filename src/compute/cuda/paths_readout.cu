/* The readout of the last states, in fp32, and the way back to them. */
#include "compute/cuda/paths_outer.h"
#include "compute/cuda/paths_readout.h"

enum {
    WARPS = PATH_THREADS / 32,
    EACH = 4,                          /* rows per warp at a time */
    READOUT_ROWS = WARPS * EACH,       /* rows of a block at a time */
    UNITS = 2 * VLP_PATH_MAX_DIM / 32, /* of the hidden layer, per lane, at most */
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

void cuda_path_scores(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    size_t d = static_cast<size_t>(work->dim), bytes = (2 * d * d + READOUT_ROWS * d) * sizeof(float);
    readout_operands in = operands_of(operands);
    LAUNCH(compute, open_readout, static_cast<unsigned>(work->keys), PATH_THREADS, 0, *work, in);
    if (cuda_path_read_dim(work->dim)) {
        cuda_path_read_rows(compute, work, in);
        return;
    }
    path_allow_shared(compute, read_states, bytes);
    LAUNCH(compute, read_states, static_cast<unsigned>(compute->multiprocessors) * 4, PATH_THREADS,
           bytes, *work, in);
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
    if (operands->bf16 && cuda_path_read_dim(d)) {
        cuda_path_read_backward(compute, work, operands_of(operands));
        return;
    }
    path_allow_shared(compute, readout_backward, bytes);
    LAUNCH(compute, readout_backward, static_cast<unsigned>(work->blocks), PATH_THREADS, bytes, *work,
           operands_of(operands));
    auto outer = outer_products<state_of, state_of>;
    LAUNCH(compute, outer, outer_grid(d, 2 * d, work->blocks), PATH_THREADS, 0, work->hidden_partial,
           state_of{work->last, d}, state_of{work->changes, 2 * d},
           path_level_of(*work, work->layers).counts, d, 2 * d, 2 * d);
}
