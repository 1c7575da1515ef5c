/* The readout, one thread per row, for dimensions 16, 32 and 64: as paths_readout.cu. Scores and
 * gradients of states are computed in fp32; sums over rows for the tables on tensor cores, from bf16,
 * where the step is in bf16. */
#include "compute/cuda/paths_mma.h"
#include "compute/cuda/paths_readout.h"

enum { WARPS = PATH_THREADS / 32 };

/* Shared memory: the matrix of x, transposed (2 D, D), offsets by key (32, 2 D + 1), output (2 D + 1).
 */
template <int D> struct readout_tables {
    float matrix[2 * D * D], offset[PATH_KEYS * (2 * D + 1)], output[2 * D + 4];
};

template <int D>
__device__ static void load_tables(readout_tables<D> *to, const path_work &work,
                                   const readout_operands &in) {
    for (int32_t i = threadIdx.x; i < 2 * D * D; i += PATH_THREADS)
        to->matrix[i % (2 * D) * D + i / (2 * D)] = in.hidden[i];
    for (int32_t i = threadIdx.x; i < work.keys * 2 * D; i += PATH_THREADS)
        to->offset[i / (2 * D) * (2 * D + 1) + i % (2 * D)] = work.offset[i];
    for (int32_t i = threadIdx.x; i <= 2 * D; i += PATH_THREADS) to->output[i] = in.output[i];
    __syncthreads();
}

/* A unit of the hidden layer before ReLU. */
template <int D>
__device__ static float hidden_unit(const float (&x)[D], const readout_tables<D> &tables, int32_t key,
                                    int j) {
    const float4 *weights = reinterpret_cast<const float4 *>(tables.matrix + j * D);
    float sums[4] = {tables.offset[key * (2 * D + 1) + j], 0, 0, 0};
#pragma unroll
    for (int i = 0; i < D / 4; i++) {
        float4 w = weights[i];
        sums[0] = __fmaf_rn(x[4 * i], w.x, sums[0]);
        sums[1] = __fmaf_rn(x[4 * i + 1], w.y, sums[1]);
        sums[2] = __fmaf_rn(x[4 * i + 2], w.z, sums[2]);
        sums[3] = __fmaf_rn(x[4 * i + 3], w.w, sums[3]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Two rows per thread: a number of the matrix is read once for both. */
template <int D>
__global__ static void __launch_bounds__(PATH_THREADS, 2)
    read_rows(path_work work, readout_operands in) {
    constexpr int ROWS = D < 64 ? 2 : 1;
    extern __shared__ __align__(16) unsigned char shared[];
    readout_tables<D> &tables = *reinterpret_cast<readout_tables<D> *>(shared);
    path_level level = path_level_of(work, work.layers);
    int32_t rows = level.counts->rows, step = static_cast<int32_t>(gridDim.x) * PATH_THREADS;
    load_tables(&tables, work, in);
    for (int32_t first = static_cast<int32_t>(blockIdx.x * PATH_THREADS + threadIdx.x); first < rows;
         first += ROWS * step) {
        float x[ROWS][D], scores[ROWS];
        int32_t offsets[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int32_t row = min(first + r * step, rows - 1);
            offsets[r] = path_key_of(level.rows[row]) * (2 * D + 1);
            scores[r] = tables.output[2 * D];
            load_floats<D>(x[r], work.last + static_cast<int64_t>(row) * D);
        }
#pragma unroll 2
        for (int j = 0; j < 2 * D; j++) {
            const float4 *weights = reinterpret_cast<const float4 *>(tables.matrix + j * D);
            float sums[ROWS][2];
#pragma unroll
            for (int r = 0; r < ROWS; r++) sums[r][0] = tables.offset[offsets[r] + j], sums[r][1] = 0;
#pragma unroll
            for (int i = 0; i < D / 4; i++) {
                float4 w = weights[i];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    sums[r][0] = __fmaf_rn(x[r][4 * i], w.x, sums[r][0]);
                    sums[r][1] = __fmaf_rn(x[r][4 * i + 1], w.y, sums[r][1]);
                    sums[r][0] = __fmaf_rn(x[r][4 * i + 2], w.z, sums[r][0]);
                    sums[r][1] = __fmaf_rn(x[r][4 * i + 3], w.w, sums[r][1]);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                scores[r] = __fmaf_rn(fmaxf(sums[r][0] + sums[r][1], 0.0f), tables.output[j], scores[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (first + r * step < rows) work.scores[first + r * step] = scores[r];
    }
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* Rows of a block in shared memory, as factors of sums over them. */
template <int D> struct readout_rows {
    static constexpr int STATE = D + 8, HIDDEN = 2 * D + 8; /* padded against bank conflicts */
    __nv_bfloat16 x[PATH_THREADS * STATE];
    __nv_bfloat16 change[PATH_THREADS * HIDDEN];   /* gradients of the hidden layer */
    __nv_bfloat16 weighted[PATH_THREADS * HIDDEN]; /* the hidden layer times the score's gradient */
    int32_t key[PATH_THREADS];
};

/* A row's way back (-1: none): the gradient of its state, and its part of the factors. */
template <int D>
__device__ static void row_backward(readout_rows<D> *to, const readout_tables<D> &tables,
                                    const path_work &work, int32_t row, float *bias_sum) {
    int32_t at = static_cast<int32_t>(threadIdx.x);
    float x[D] = {}, x_grad[D] = {}, grad = row >= 0 ? work.score_grads[row] : 0.0f;
    int32_t key = row >= 0 ? path_key_of(path_level_of(work, work.layers).rows[row]) : 0;
    if (row >= 0) load_floats<D>(x, work.last + static_cast<int64_t>(row) * D);
    to->key[at] = key;
    *bias_sum += grad;
#pragma unroll
    for (int i = 0; i < D; i += 2)
        *reinterpret_cast<uint32_t *>(to->x + at * readout_rows<D>::STATE + i) =
            pack_two(x[i], x[i + 1]);
#pragma unroll 1
    for (int j = 0; j < 2 * D; j += 2) {
        float change[2], weighted[2];
#pragma unroll
        for (int u = 0; u < 2; u++) {
            float hidden = hidden_unit(x, tables, key, j + u);
            change[u] = hidden > 0 ? grad * tables.output[j + u] : 0.0f;
            weighted[u] = fmaxf(hidden, 0.0f) * grad;
            const float4 *weights = reinterpret_cast<const float4 *>(tables.matrix + (j + u) * D);
#pragma unroll
            for (int i = 0; i < D / 4; i++) {
                float4 w = weights[i];
                x_grad[4 * i] = __fmaf_rn(change[u], w.x, x_grad[4 * i]);
                x_grad[4 * i + 1] = __fmaf_rn(change[u], w.y, x_grad[4 * i + 1]);
                x_grad[4 * i + 2] = __fmaf_rn(change[u], w.z, x_grad[4 * i + 2]);
                x_grad[4 * i + 3] = __fmaf_rn(change[u], w.w, x_grad[4 * i + 3]);
            }
        }
        int32_t place = at * readout_rows<D>::HIDDEN + j;
        *reinterpret_cast<uint32_t *>(to->change + place) = pack_two(change[0], change[1]);
        *reinterpret_cast<uint32_t *>(to->weighted + place) = pack_two(weighted[0], weighted[1]);
    }
    if (row >= 0) store_floats<D>(work.state_grads + static_cast<int64_t>(row) * D, x_grad);
}

/* Sums over rows, tiles of eight columns of the hidden layer: x^T change, by key the sum of change, and
 * the sum of weighted. */
template <int D> struct readout_sums {
    static constexpr int LEFT = D / 16, RIGHT = D < 32 ? 1 : D / 32;
    float matrix[LEFT][RIGHT][4], keys[2][RIGHT][4], output[RIGHT][4];
};

/* 1 where a row is of a key, as the left factor: keys 16 m .. 16 m + 15, 16 rows. */
__device__ static void key_factor(uint32_t (&a)[4], const int32_t *keys, int m) {
    int32_t t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int32_t key = 16 * m + g + i % 2 * 8, row = 2 * t + i / 2 * 8;
        a[i] = (keys[row] == key ? 0x3f80u : 0u) | (keys[row + 1] == key ? 0x3f800000u : 0u);
    }
}

template <int D> __device__ static void add_rows(readout_sums<D> *sums, const readout_rows<D> &rows) {
    using size = readout_rows<D>;
    constexpr int RIGHT = readout_sums<D>::RIGHT;
    constexpr uint32_t ONES = 0x3f803f80u;
    int32_t first = static_cast<int32_t>(threadIdx.x) / 32 * RIGHT;
    if (first >= D / 4) return;
#pragma unroll 1
    for (int32_t row = 0; row < PATH_THREADS; row += 16) {
        uint32_t a[4], ones[4] = {ONES, ONES, ONES, ONES};
        uint2 right[RIGHT];
#pragma unroll
        for (int n = 0; n < RIGHT; n++) {
            right[n] = load_right(rows.change + row * size::HIDDEN + (first + n) * 8, size::HIDDEN);
            mma_tile(sums->output[n], ones,
                     load_right(rows.weighted + row * size::HIDDEN + (first + n) * 8, size::HIDDEN));
        }
#pragma unroll
        for (int m = 0; m < readout_sums<D>::LEFT; m++) {
            load_transposed(a, rows.x + row * size::STATE + m * 16, size::STATE);
#pragma unroll
            for (int n = 0; n < RIGHT; n++) mma_tile(sums->matrix[m][n], a, right[n]);
        }
#pragma unroll
        for (int m = 0; m < 2; m++) {
            key_factor(a, rows.key + row, m);
#pragma unroll
            for (int n = 0; n < RIGHT; n++) mma_tile(sums->keys[m][n], a, right[n]);
        }
    }
}

template <int D> __device__ static void store_sums(const readout_sums<D> &sums, const path_work &work) {
    constexpr int RIGHT = readout_sums<D>::RIGHT;
    int64_t block = blockIdx.x;
    int32_t first = static_cast<int32_t>(threadIdx.x) / 32 * RIGHT;
    int32_t t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
    if (first >= D / 4) return;
#pragma unroll
    for (int n = 0; n < RIGHT; n++) {
        int32_t column = (first + n) * 8 + 2 * t;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int32_t row = g + e / 2 * 8;
#pragma unroll
            for (int m = 0; m < readout_sums<D>::LEFT; m++)
                work.hidden_partial[block * 2 * D * D + (16 * m + row) * 2 * D + column + e % 2] =
                    sums.matrix[m][n][e];
#pragma unroll
            for (int m = 0; m < 2; m++)
                work.offset_partial[(block * PATH_KEYS + 16 * m + row) * 2 * D + column + e % 2] =
                    sums.keys[m][n][e];
        }
        if (g > 0) continue;
        float *output = work.output_partial + block * (2 * D + 1) + column;
        output[0] = sums.output[n][0], output[1] = sums.output[n][1];
    }
}

template <int D>
__global__ static void __launch_bounds__(PATH_THREADS, D < 64 ? 2 : 1)
    read_rows_backward(path_work work, readout_operands in) {
    extern __shared__ __align__(16) unsigned char shared[];
    readout_tables<D> &tables = *reinterpret_cast<readout_tables<D> *>(shared);
    readout_rows<D> &tile = *reinterpret_cast<readout_rows<D> *>(shared + sizeof tables);
    path_level level = path_back_level_of(work, work.layers);
    int32_t rows = level.counts->rows;
    readout_sums<D> sums = {};
    float bias_sum = 0;
    load_tables(&tables, work, in);
    for (int32_t first = static_cast<int32_t>(blockIdx.x) * PATH_THREADS; first < rows;
         first += static_cast<int32_t>(gridDim.x) * PATH_THREADS) {
        __syncthreads();
        int32_t place = first + static_cast<int32_t>(threadIdx.x);
        int32_t row = place < rows ? place : -1;
        if (level.rows && place < rows) row = static_cast<int32_t>(level.rows[place]);
        row_backward(&tile, tables, work, row, &bias_sum);
        __syncthreads();
        add_rows(&sums, tile);
    }
    store_sums(sums, work);
    __syncthreads();
    bias_sum = block_sum(bias_sum, tables.matrix);
    if (threadIdx.x == 0)
        work.output_partial[static_cast<int64_t>(blockIdx.x) * (2 * D + 1) + 2 * D] = bias_sum;
}

/* ---- Launches ------------------------------------------------------------------------------------ */

template <int D>
static void scores(vlp_compute *compute, const path_work *work, const readout_operands &in) {
    size_t bytes = sizeof(readout_tables<D>);
    path_allow_shared(compute, read_rows<D>, bytes);
    LAUNCH(compute, read_rows<D>, static_cast<unsigned>(compute->multiprocessors) * 2, PATH_THREADS,
           bytes, *work, in);
}

template <int D>
static void backward(vlp_compute *compute, const path_work *work, const readout_operands &in) {
    size_t bytes = sizeof(readout_tables<D>) + sizeof(readout_rows<D>);
    path_allow_shared(compute, read_rows_backward<D>, bytes);
    LAUNCH(compute, read_rows_backward<D>, static_cast<unsigned>(work->blocks), PATH_THREADS, bytes,
           *work, in);
}

bool cuda_path_read_dim(int32_t dim) {
    return dim == 16 || dim == 32 || dim == 64;
}

void cuda_path_read_rows(vlp_compute *compute, const path_work *work, const readout_operands &in) {
    if (work->dim == 16) scores<16>(compute, work, in);
    if (work->dim == 32) scores<32>(compute, work, in);
    if (work->dim == 64) scores<64>(compute, work, in);
}

void cuda_path_read_backward(vlp_compute *compute, const path_work *work, const readout_operands &in) {
    if (work->dim == 16) backward<16>(compute, work, in);
    if (work->dim == 32) backward<32>(compute, work, in);
    if (work->dim == 64) backward<64>(compute, work, in);
}
