/* The update of states: products with the features, degree scale, layer normalization, ReLU, shortcut;
 * and its gradients. In fp32, for every dimension. */
#include "compute/cuda/paths_outer.h"
#include "compute/cuda/paths_update.h"

enum { TILE = 8 }; /* rows of a block at a time: one per warp */

/* A tile of rows in shared memory. */
struct update_tile {
    float *y; /* (TILE, 5 dim) */
    float *z; /* (TILE, 2 dim) products with W, W'; backward their gradients */
    float *y_grad;
    int32_t *states;  /* (TILE) rows of x_l, -1 */
    float *scales;    /* (TILE) s */
    uint32_t *listed; /* (TILE) node and key */
};

static size_t tile_bytes(int32_t dim, bool backward) {
    size_t d = static_cast<size_t>(dim);
    return TILE * ((backward ? 2 : 1) * PATH_PARTS * d + 2 * d + 4) * sizeof(float);
}

__device__ static update_tile tile_of(float *shared, int32_t dim, bool backward) {
    update_tile out;
    out.scales = shared;
    out.states = reinterpret_cast<int32_t *>(shared + TILE);
    out.listed = reinterpret_cast<uint32_t *>(shared + 2 * TILE);
    out.y = shared + 4 * TILE;
    out.z = out.y + TILE * PATH_PARTS * dim;
    out.y_grad = backward ? out.z + TILE * 2 * dim : nullptr;
    return out;
}

/* y of rows first .. first + TILE - 1; zeros behind the last. */
template <class T>
__device__ static void load_tile(const update_tile &tile, const path_work &work,
                                 const update_operands &in, int32_t first, int32_t rows) {
    path_level level = path_level_of(work, in.layer + 1), before = path_level_of(work, in.layer);
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = first + warp;
    int64_t kept = work.keep ? in.layer * work.capacity : 0;
    if (lane == 0) {
        tile.states[warp] = -1;
        tile.scales[warp] = 0;
        tile.listed[warp] = 0;
        if (row < rows) {
            uint32_t listed = level.rows[row];
            tile.listed[warp] = listed;
            tile.states[warp] = path_find_row(work, before, path_key_of(listed), path_node_of(listed));
            tile.scales[warp] = work.scale[kept + row];
        }
    }
    __syncwarp();
    int32_t state = tile.states[warp];
    const T *x = static_cast<const T *>(work.x) + (path_kept(work, in.layer) + state) * d;
    const T *features = static_cast<const T *>(work.features) + (kept + row) * 4 * d;
    float *y = tile.y + warp * PATH_PARTS * d;
    for (int32_t i = lane; i < PATH_PARTS * d; i += 32) {
        float value = 0;
        if (i < d && state >= 0) value = to_float(x[i]);
        if (i >= d && row < rows) value = to_float(features[i - d]);
        y[i] = value;
    }
}

/* to (TILE, n) = from (TILE, k) times a matrix whose rows are `step` apart and whose columns are in
 * parts of `width`, `part` apart. */
__device__ static void multiply(float *to, const float *from, const float *matrix, int32_t k, int32_t n,
                                int32_t step, int32_t width, int32_t part) {
    constexpr int EACH = 2; /* rows per thread */
    for (int32_t unit = threadIdx.x; unit < n * (TILE / EACH); unit += PATH_THREADS) {
        int32_t column = unit % n, row = unit / n * EACH;
        const float *weights = matrix + static_cast<int64_t>(column / width) * part + column % width;
        float sum[EACH] = {};
#pragma unroll 4
        for (int32_t i = 0; i < k; i++) {
            float weight = weights[static_cast<int64_t>(i) * step];
#pragma unroll
            for (int r = 0; r < EACH; r++) sum[r] = __fmaf_rn(from[(row + r) * k + i], weight, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < EACH; r++) to[(row + r) * n + column] = sum[r];
    }
}

enum { COLUMNS = VLP_PATH_MAX_DIM / 32 }; /* per lane */

/* The normalized z of a warp's row, and 1 / its deviation. */
__device__ static float normalize(float (&unit)[COLUMNS], const update_tile &tile,
                                  const update_operands &in, int32_t dim) {
    int32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float *z = tile.z + warp * 2 * dim;
    float sum = 0, squares = 0, scale = tile.scales[warp], inverse_dim = 1.0f / static_cast<float>(dim);
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        int32_t c = lane + 32 * i;
        unit[i] = 0;
        if (c < dim) unit[i] = z[c] + in.bias[c] + scale * (z[dim + c] + in.bias[dim + c]);
        sum += unit[i];
    }
    float mean = warp_sum(sum) * inverse_dim;
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        if (lane + 32 * i < dim) unit[i] -= mean;
        squares = __fmaf_rn(unit[i], unit[i], squares);
    }
    float inverse = 1.0f / sqrtf(warp_sum(squares) * inverse_dim + VLP_PATH_NORM_EPSILON);
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) unit[i] *= inverse;
    return inverse;
}

template <class T>
__global__ static void __launch_bounds__(PATH_THREADS) update_rows(path_work work, update_operands in) {
    extern __shared__ float shared[];
    update_tile tile = tile_of(shared, work.dim, false);
    int32_t d = work.dim, rows = path_level_of(work, in.layer + 1).counts->rows;
    int32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool last = in.layer + 1 == work.layers;
    for (int32_t first = static_cast<int32_t>(blockIdx.x) * TILE; first < rows;
         first += static_cast<int32_t>(gridDim.x) * TILE) {
        __syncthreads();
        load_tile<T>(tile, work, in, first, rows);
        __syncthreads();
        multiply(tile.z, tile.y, in.matrix, PATH_PARTS * d, 2 * d, d, d, PATH_PARTS * d * d);
        __syncthreads();
        float unit[COLUMNS];
        normalize(unit, tile, in, d);
        int64_t row = first + warp;
        if (row >= rows) continue;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            int32_t c = lane + 32 * i;
            if (c >= d) continue;
            float out = fmaxf(__fmaf_rn(unit[i], in.norm[c], in.norm[d + c]), 0.0f);
            out += tile.y[warp * PATH_PARTS * d + c];
            if (last)
                work.last[row * d + c] = out;
            else
                put(static_cast<T *>(work.x) + (path_kept(work, in.layer + 1) + row) * d + c, out);
        }
    }
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* Sums of a lane's columns over the rows of its warp. */
struct norm_sums {
    float bias[COLUMNS], scaled_bias[COLUMNS], scale[COLUMNS], shift[COLUMNS];
};

/* From the gradient of a warp's row: that of z, and s times it, in tile.z. */
__device__ static void normalize_backward(norm_sums *sums, const update_tile &tile,
                                          const path_work &work, const update_operands &in, int64_t row,
                                          int32_t rows) {
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float unit[COLUMNS], scaled[COLUMNS], sum = 0, product = 0;
    float inverse = normalize(unit, tile, in, d), inverse_dim = 1.0f / static_cast<float>(d);
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        int32_t c = lane + 32 * i;
        scaled[i] = 0;
        if (c >= d || row >= rows) continue;
        bool positive = __fmaf_rn(unit[i], in.norm[c], in.norm[d + c]) > 0;
        float change = positive ? work.state_grads[row * d + c] : 0.0f;
        sums->scale[i] = __fmaf_rn(change, unit[i], sums->scale[i]);
        sums->shift[i] += change;
        scaled[i] = change * in.norm[c];
        sum += scaled[i];
        product = __fmaf_rn(scaled[i], unit[i], product);
    }
    float mean = warp_sum(sum) * inverse_dim, along = warp_sum(product) * inverse_dim;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        int32_t c = lane + 32 * i;
        if (c >= d) continue;
        float change = row < rows ? inverse * (scaled[i] - mean - unit[i] * along) : 0.0f;
        float by_scale = tile.scales[warp] * change;
        sums->bias[i] += change;
        sums->scaled_bias[i] += by_scale;
        tile.z[warp * 2 * d + c] = change;
        tile.z[warp * 2 * d + d + c] = by_scale;
        if (row < rows) work.changes[row * d + c] = change;
    }
}

/* What a warp's row sends back: to its messages, to its own state, to the boundary. */
template <class T>
__device__ static void store_gradients(const update_tile &tile, const path_work &work,
                                       const update_operands &in, int64_t row) {
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float *y = tile.y + warp * PATH_PARTS * d, *y_grad = tile.y_grad + warp * PATH_PARTS * d;
    uint32_t listed = tile.listed[warp];
    int32_t key = path_key_of(listed), node = path_node_of(listed);
    bool head = work.key[key].head == node;
    float inverse = 1.0f / static_cast<float>(work.degree[in.layer * work.capacity + row] + 1);
    for (int32_t c = lane; c < d; c += 32) {
        float mean = y[d + c], deviation = y[4 * d + c];
        /* None where the variance is at its least. */
        bool varies = deviation > 1.00001f * sqrtf(VLP_PATH_LEAST_VARIANCE);
        float by_deviation = varies ? y_grad[4 * d + c] / deviation : 0.0f;
        float grads[4] = {(y_grad[d + c] - mean * by_deviation) * inverse, by_deviation * inverse,
                          y_grad[2 * d + c], y_grad[3 * d + c]};
        int64_t place = (row * (d / 8) + c / 8) * 16 + c % 8;
        put(static_cast<T *>(work.gradients) + place, grads[0]);
        put(static_cast<T *>(work.gradients) + place + 8, grads[1]);
        put(static_cast<T *>(work.extremes) + place, grads[2]);
        put(static_cast<T *>(work.extremes) + place + 8, grads[3]);
        work.own_grads[row * d + c] = work.state_grads[row * d + c] + y_grad[c];
        if (!head) continue;
        float q = work.query[key * d + c];
        if (sizeof(T) == 2) q = __bfloat162float(__float2bfloat16_rn(q));
        work.boundary[(static_cast<int64_t>(in.layer) * PATH_KEYS + key) * d + c] =
            path_boundary_gradient(work, in.layer, key, c, q, grads);
    }
}

/* norm_partial (4, dim) of the block: bias, scaled bias, scale, shift. */
__device__ static void store_norm_sums(const norm_sums &sums, const path_work &work, int32_t layer,
                                       float *shared) {
    int32_t d = work.dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *to =
        work.norm_partial + (static_cast<int64_t>(layer) * work.update_blocks + blockIdx.x) * 4 * d;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        int32_t c = lane + 32 * i;
        if (c >= d) continue;
        float *at = shared + warp * 4 * d + c;
        at[0] = sums.bias[i], at[d] = sums.scaled_bias[i];
        at[2 * d] = sums.scale[i], at[3 * d] = sums.shift[i];
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < 4 * d; i += PATH_THREADS) {
        float sum = 0;
        for (int w = 0; w < TILE; w++) sum += shared[w * 4 * d + i];
        to[i] = sum;
    }
}

template <class T>
__global__ static void __launch_bounds__(PATH_THREADS)
    update_rows_backward(path_work work, update_operands in) {
    extern __shared__ float shared[];
    update_tile tile = tile_of(shared, work.dim, true);
    int32_t d = work.dim, rows = path_level_of(work, in.layer + 1).counts->rows;
    norm_sums sums = {};
    for (int32_t first = static_cast<int32_t>(blockIdx.x) * TILE; first < rows;
         first += static_cast<int32_t>(gridDim.x) * TILE) {
        int64_t row = first + static_cast<int32_t>(threadIdx.x) / 32;
        __syncthreads();
        load_tile<T>(tile, work, in, first, rows);
        __syncthreads();
        multiply(tile.z, tile.y, in.matrix, PATH_PARTS * d, 2 * d, d, d, PATH_PARTS * d * d);
        __syncthreads();
        normalize_backward(&sums, tile, work, in, row, rows);
        __syncthreads();
        multiply(tile.y_grad, tile.z, in.transposed, 2 * d, PATH_PARTS * d, PATH_PARTS * d,
                 PATH_PARTS * d, 0);
        __syncthreads();
        if (row < rows) store_gradients<T>(tile, work, in, row);
    }
    store_norm_sums(sums, work, in.layer, tile.y);
}

/* Functions of a row and a column for the gradients of W, W': y, and the gradients of z with both. */
template <class T> struct feature_of {
    path_work work;
    int32_t layer;
    __device__ float operator()(int32_t row, int32_t column) const {
        int32_t d = work.dim;
        if (column >= d)
            return to_float(static_cast<const T *>(
                work.features)[(layer * work.capacity + row) * 4 * d + column - d]);
        uint32_t listed = path_level_of(work, layer + 1).rows[row];
        int64_t state =
            path_find_row(work, path_level_of(work, layer), path_key_of(listed), path_node_of(listed));
        if (state < 0) return 0;
        return to_float(static_cast<const T *>(work.x)[(layer * work.capacity + state) * d + column]);
    }
};

struct change_of {
    const float *changes, *scale;
    int32_t dim;
    __device__ float operator()(int32_t row, int32_t column) const {
        int64_t at = static_cast<int64_t>(row) * dim;
        return column < dim ? changes[at + column] : scale[row] * changes[at + column - dim];
    }
};

__global__ static void transpose_updates(float *transposed, const float *updates, int32_t dim,
                                         int64_t count) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int64_t rows = PATH_PARTS * dim, matrix = i / (rows * dim), at = i % (rows * dim);
    transposed[(matrix * dim + at % dim) * rows + at / dim] = updates[i];
}

/* ---- Launches ------------------------------------------------------------------------------------ */

bool cuda_path_on_tensor_cores(const path_work *work, const path_operands *operands) {
    return operands->bf16 && cuda_path_mma_dim(work->dim);
}

static update_operands operands_of(const path_work *work, const path_operands *operands, int32_t layer) {
    int64_t d = work->dim, size = 2 * PATH_PARTS * d * d;
    float *const *table = operands->values.table;
    const float *transposed = work->transposed + layer * size;
    return {table[VLP_PATH_UPDATE] + layer * size,       transposed,
            reinterpret_cast<const uint4 *>(transposed), table[VLP_PATH_UPDATE_BIAS] + layer * 2 * d,
            table[VLP_PATH_NORM] + layer * 2 * d,        layer};
}

void cuda_path_update_open(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    const float *updates = operands->values.table[VLP_PATH_UPDATE];
    int64_t count = static_cast<int64_t>(work->layers) * 2 * PATH_PARTS * work->dim * work->dim;
    if (cuda_path_on_tensor_cores(work, operands))
        cuda_path_mma_pack(compute, work, updates);
    else
        LAUNCH(compute, transpose_updates, cuda_blocks(count, PATH_THREADS), PATH_THREADS, 0,
               work->transposed, updates, work->dim, count);
}

void cuda_path_update(vlp_compute *compute, const path_work *work, const path_operands *operands,
                      int32_t layer) {
    update_operands in = operands_of(work, operands, layer);
    if (cuda_path_on_tensor_cores(work, operands)) {
        cuda_path_mma_update(compute, work, in);
        return;
    }
    auto kernel = operands->bf16 ? update_rows<__nv_bfloat16> : update_rows<float>;
    LAUNCH(compute, kernel, static_cast<unsigned>(compute->multiprocessors) * 8, PATH_THREADS,
           tile_bytes(work->dim, false), *work, in);
}

template <class T>
static void update_backward(vlp_compute *compute, const path_work *work, const update_operands &in) {
    int32_t d = work->dim;
    int64_t size = 2 * PATH_PARTS * static_cast<int64_t>(d) * d;
    size_t bytes = tile_bytes(d, true);
    auto kernel = update_rows_backward<T>;
    path_allow_shared(compute, kernel, bytes);
    LAUNCH(compute, kernel, static_cast<unsigned>(work->update_blocks), PATH_THREADS, bytes, *work, in);
    auto outer = outer_products<feature_of<T>, change_of>;
    LAUNCH(compute, outer, outer_grid(PATH_PARTS * d, 2 * d, work->update_blocks), PATH_THREADS, 0,
           work->update_partial + in.layer * work->update_blocks * size, feature_of<T>{*work, in.layer},
           change_of{work->changes, work->scale + in.layer * work->capacity, d},
           path_level_of(*work, in.layer + 1).counts, PATH_PARTS * d, 2 * d, d);
}

void cuda_path_update_backward(vlp_compute *compute, const path_work *work,
                               const path_operands *operands, int32_t layer) {
    update_operands in = operands_of(work, operands, layer);
    if (cuda_path_on_tensor_cores(work, operands))
        cuda_path_mma_backward(compute, work, in);
    else if (operands->bf16)
        update_backward<__nv_bfloat16>(compute, work, in);
    else
        update_backward<float>(compute, work, in);
}
