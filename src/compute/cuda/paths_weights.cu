/* What a group's queries are computed with, made from the tables; and gradients of the tables from
 * partial sums, which are added in a fixed order. */
#include "compute/cuda/paths.h"

enum { WEIGHT_THREADS = 128, RELATION_COLUMNS = 32, COLUMN_BLOCKS = 48 };

/* ---- Weights ------------------------------------------------------------------------------------- */

/* One block per key: q, and x_0 at its head entity. */
template <class T> __global__ static void set_heads(path_work work, const float *queries) {
    int32_t d = work.dim, index = static_cast<int32_t>(blockIdx.x);
    path_key key = work.key[index];
    int64_t row = path_find_row(work, path_level_of(work, 0), index, key.head);
    for (int32_t i = threadIdx.x; i < d; i += blockDim.x) {
        float q = queries[static_cast<int64_t>(key.relation) * d + i];
        work.query[index * d + i] = q;
        if (row >= 0) put(static_cast<T *>(work.x) + row * d + i, q);
    }
}

/* w_l = A_l q + a_l for all keys: one thread per column and layer. */
template <class T>
__global__ static void __launch_bounds__(WEIGHT_THREADS)
    relation_weights(path_work work, const float *matrix, const float *bias) {
    __shared__ float q[VLP_PATH_MAX_DIM][PATH_KEYS];
    int32_t d = work.dim, layer = static_cast<int32_t>(blockIdx.y);
    int64_t columns = static_cast<int64_t>(work.graph.relations) * d;
    int64_t column = static_cast<int64_t>(blockIdx.x) * WEIGHT_THREADS + threadIdx.x;
    for (int32_t i = threadIdx.x; i < d * PATH_KEYS; i += WEIGHT_THREADS)
        q[i / PATH_KEYS][i % PATH_KEYS] =
            i % PATH_KEYS < work.keys ? work.query[i % PATH_KEYS * d + i / PATH_KEYS] : 0.0f;
    __syncthreads();
    if (column >= columns) return;
    float sum[PATH_KEYS], first = bias[layer * columns + column];
#pragma unroll
    for (int k = 0; k < PATH_KEYS; k++) sum[k] = first;
    for (int32_t i = 0; i < d; i++) {
        float weight = matrix[(static_cast<int64_t>(layer) * d + i) * columns + column];
#pragma unroll
        for (int k = 0; k < PATH_KEYS; k++) sum[k] = __fmaf_rn(q[i][k], weight, sum[k]);
    }
    int64_t relation = column / d;
    T *to = static_cast<T *>(work.weights) + column % d;
#pragma unroll
    for (int k = 0; k < PATH_KEYS; k++) {
        int64_t octet = layer * static_cast<int64_t>(work.octets) + k / PATH_OCTET;
        if (k / PATH_OCTET < work.octets)
            put(to + ((octet * work.graph.relations + relation) * PATH_OCTET + k % PATH_OCTET) * d,
                sum[k]);
    }
}

void cuda_path_weights(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    float *const *table = operands->values.table;
    dim3 grid(cuda_blocks(static_cast<int64_t>(work->graph.relations) * work->dim, WEIGHT_THREADS),
              static_cast<unsigned>(work->layers));
    auto heads = operands->bf16 ? set_heads<__nv_bfloat16> : set_heads<float>;
    auto relations = operands->bf16 ? relation_weights<__nv_bfloat16> : relation_weights<float>;
    LAUNCH(compute, heads, static_cast<unsigned>(work->keys), WEIGHT_THREADS, 0, *work,
           table[VLP_PATH_QUERY]);
    LAUNCH(compute, relations, grid, WEIGHT_THREADS, 0, *work, table[VLP_PATH_RELATION],
           table[VLP_PATH_RELATION_BIAS]);
}

/* ---- Gradients of relations ---------------------------------------------------------------------- */

__device__ static void set_or_add(float *to, float value, bool add) {
    *to = add ? *to + value : value;
}

/* Chunks of a relation become their sum, in the place of the first. blockIdx.y: the layer. */
__global__ static void sum_chunks(path_work work) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    int64_t stride = static_cast<int64_t>(PATH_OCTET) * work.dim, place = at / stride;
    if (place >= static_cast<int64_t>(work.octets) * work.graph.relations) return;
    int64_t octet = static_cast<int64_t>(blockIdx.y) * work.octets + place / work.graph.relations;
    int32_t relation = static_cast<int32_t>(place % work.graph.relations);
    int32_t first = work.graph.relation_chunk[relation], last = work.graph.relation_chunk[relation + 1];
    float *sums = work.chunk_sums + octet * work.graph.chunks * stride + at % stride, sum = 0;
    if (first == last) return;
#pragma unroll 8
    for (int32_t i = first; i < last; i++) sum += sums[i * stride];
    sums[first * stride] = sum;
}

/* The gradient of w_l of a key. */
__device__ static float weight_gradient(const path_work &work, int32_t layer, int32_t key,
                                        int64_t column) {
    int32_t relation = static_cast<int32_t>(column / work.dim),
            first = work.graph.relation_chunk[relation];
    if (key >= work.keys || first == work.graph.relation_chunk[relation + 1]) return 0;
    int64_t octet = static_cast<int64_t>(layer) * work.octets + key / PATH_OCTET;
    int64_t place = (octet * work.graph.chunks + first) * PATH_OCTET + key % PATH_OCTET;
    return work.chunk_sums[place * work.dim + column % work.dim];
}

enum { KEYS_STEP = PATH_THREADS / RELATION_COLUMNS };

/* One block per layer and several times RELATION_COLUMNS columns: through w_l = A_l q + a_l. Shared
 * memory: q (32, dim), the gradients of w (32, columns), A (dim, columns). */
__global__ static void __launch_bounds__(PATH_THREADS)
    relation_gradients(path_work work, path_pointers grads, const float *matrix, bool add) {
    extern __shared__ float shared[];
    constexpr int32_t WIDTH = RELATION_COLUMNS + 1, EACH = PATH_KEYS * VLP_PATH_MAX_DIM / PATH_THREADS;
    int32_t d = work.dim, layer = static_cast<int32_t>(blockIdx.y);
    int32_t c = threadIdx.x % RELATION_COLUMNS, y = threadIdx.x / RELATION_COLUMNS;
    float *q = shared, *w_grad = q + PATH_KEYS * d, *a = w_grad + PATH_KEYS * WIDTH, query[EACH] = {};
    int64_t columns = static_cast<int64_t>(work.graph.relations) * d;
    for (int32_t i = threadIdx.x; i < PATH_KEYS * d; i += PATH_THREADS)
        q[i] = i / d < work.keys ? work.query[i] : 0.0f;
    for (int64_t first = static_cast<int64_t>(blockIdx.x) * RELATION_COLUMNS; first < columns;
         first += static_cast<int64_t>(gridDim.x) * RELATION_COLUMNS) {
        bool in = first + c < columns;
        __syncthreads();
        for (int32_t key = y; key < PATH_KEYS; key += KEYS_STEP)
            w_grad[key * WIDTH + c] = in ? weight_gradient(work, layer, key, first + c) : 0.0f;
        for (int32_t row = y; row < d; row += KEYS_STEP)
            a[row * WIDTH + c] =
                in ? matrix[(static_cast<int64_t>(layer) * d + row) * columns + first + c] : 0.0f;
        __syncthreads();
        /* Four rows per thread: a number of w_grad is read once for all. */
        for (int32_t row = 4 * y; in && row < d; row += 4 * KEYS_STEP) {
            float sum[4] = {}, bias = 0;
            for (int32_t key = 0; key < work.keys; key++) {
                float change = w_grad[key * WIDTH + c];
                float4 four = *reinterpret_cast<const float4 *>(q + key * d + row);
                sum[0] = __fmaf_rn(four.x, change, sum[0]), sum[1] = __fmaf_rn(four.y, change, sum[1]);
                sum[2] = __fmaf_rn(four.z, change, sum[2]), sum[3] = __fmaf_rn(four.w, change, sum[3]);
                bias += change;
            }
            int64_t at = (static_cast<int64_t>(layer) * d + row) * columns + first + c;
#pragma unroll
            for (int k = 0; k < 4; k++)
                set_or_add(grads.table[VLP_PATH_RELATION] + at + k * columns, sum[k], add);
            if (row == 0)
                set_or_add(grads.table[VLP_PATH_RELATION_BIAS] + layer * columns + first + c, bias, add);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            int32_t i = static_cast<int32_t>(threadIdx.x) + k * PATH_THREADS;
            if (i >= work.keys * d) break;
            for (int32_t column = 0; column < RELATION_COLUMNS; column++)
                query[k] =
                    __fmaf_rn(a[i % d * WIDTH + column], w_grad[i / d * WIDTH + column], query[k]);
        }
    }
    int64_t block = static_cast<int64_t>(layer) * gridDim.x + blockIdx.x;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int32_t i = static_cast<int32_t>(threadIdx.x) + k * PATH_THREADS;
        if (i < work.keys * d) work.query_partial[block * PATH_KEYS * d + i] = query[k];
    }
}

/* ---- Gradients of queries ------------------------------------------------------------------------ */

/* One block per key: q's gradient through w_l, the boundary, x_0 and the readout. */
__global__ static void __launch_bounds__(PATH_THREADS)
    query_gradients(path_work work, const float *hidden, int32_t partials) {
    __shared__ float sums[PATH_THREADS];
    int32_t d = work.dim, key = static_cast<int32_t>(blockIdx.x), slices = PATH_THREADS / d;
    int32_t i = threadIdx.x % d, slice = threadIdx.x / d;
    float sum = 0;
#pragma unroll 8
    for (int32_t p = slice < slices ? slice : partials; p < partials; p += slices)
        sum += work.query_partial[(static_cast<int64_t>(p) * PATH_KEYS + key) * d + i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (slice > 0) return;
    for (int32_t s = 1; s < slices; s++) sum += sums[s * d + i];
    for (int32_t l = 0; l < work.layers; l++)
        sum += work.boundary[(static_cast<int64_t>(l) * PATH_KEYS + key) * d + i];
    int64_t row = path_find_gradient(work, path_level_of(work, 0), key, work.key[key].head);
    if (row >= 0) sum += work.state_grads[row * d + i];
    for (int32_t j = 0; j < 2 * d; j++)
        sum = __fmaf_rn(work.offset_grad[key * 2 * d + j], hidden[(d + i) * 2 * d + j], sum);
    work.query_grad[key * d + i] = sum;
}

/* The table of queries: keys of one relation are added in their order. */
__global__ static void query_table(path_work work, float *grad, bool add) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= static_cast<int64_t>(work.graph.relations) * work.dim) return;
    float sum = 0;
    for (int32_t key = 0; key < work.keys; key++)
        if (work.key[key].relation == at / work.dim)
            sum += work.query_grad[key * work.dim + at % work.dim];
    set_or_add(grad + at, sum, add);
}

/* ---- Gradients of the update and the readout ----------------------------------------------------- */

__device__ static float sum_blocks(const float *partial, int64_t stride, int32_t blocks) {
    float sum = 0;
#pragma unroll 8
    for (int32_t i = 0; i < blocks; i++) sum += partial[i * stride];
    return sum;
}

/* blockIdx.y: the layer. */
__global__ static void update_tables(path_work work, path_pointers grads, bool add) {
    int64_t d = work.dim, size = 2 * PATH_PARTS * d * d, layer = blockIdx.y;
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < size) {
        float sum = sum_blocks(work.update_partial + layer * work.update_blocks * size + at, size,
                               work.update_blocks);
        set_or_add(grads.table[VLP_PATH_UPDATE] + layer * size + at, sum, add);
    } else if (at < size + 4 * d) {
        at -= size;
        float sum = sum_blocks(work.norm_partial + layer * work.update_blocks * 4 * d + at, 4 * d,
                               work.update_blocks);
        float *table = grads.table[at < 2 * d ? VLP_PATH_UPDATE_BIAS : VLP_PATH_NORM];
        set_or_add(table + layer * 2 * d + at % (2 * d), sum, add);
    }
}

/* One block per key: the gradient of q H + bias, states of zeros included. */
__global__ static void offset_gradients(path_work work, const float *output) {
    int32_t d = work.dim, key = static_cast<int32_t>(blockIdx.x);
    for (int32_t j = threadIdx.x; j < 2 * d; j += blockDim.x) {
        int32_t at = key * 2 * d + j;
        float sum = sum_blocks(work.offset_partial + at, PATH_KEYS * 2 * d, work.blocks);
        if (work.offset[at] > 0) sum = __fmaf_rn(work.zero_grad[key], output[j], sum);
        work.offset_grad[at] = sum;
    }
}

/* The output's gradient through states of zeros. */
__device__ static float zero_gradient(const path_work &work, int32_t unit) {
    float sum = 0;
    for (int32_t key = 0; key < work.keys; key++) {
        float value = unit < 2 * work.dim ? fmaxf(work.offset[key * 2 * work.dim + unit], 0.0f) : 1.0f;
        sum = __fmaf_rn(value, work.zero_grad[key], sum);
    }
    return sum;
}

__global__ static void readout_tables(path_work work, path_pointers grads, bool add) {
    int32_t d = work.dim, at = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    int32_t column = at % (2 * d), row = at / (2 * d); /* x, q, bias, output, its bias */
    if (row < d) {
        float sum = sum_blocks(work.hidden_partial + at, 2 * d * d, work.blocks);
        set_or_add(grads.table[VLP_PATH_HIDDEN] + at, sum, add);
    } else if (row <= 2 * d) {
        float sum = 0;
        for (int32_t key = 0; key < work.keys; key++) {
            float factor = row < 2 * d ? work.query[key * d + row - d] : 1.0f;
            sum = __fmaf_rn(factor, work.offset_grad[key * 2 * d + column], sum);
        }
        set_or_add(row < 2 * d ? grads.table[VLP_PATH_HIDDEN] + at
                               : grads.table[VLP_PATH_HIDDEN_BIAS] + column,
                   sum, add);
    } else if (at - (2 * d + 1) * 2 * d <= 2 * d) {
        int32_t unit = at - (2 * d + 1) * 2 * d;
        float sum = sum_blocks(work.output_partial + unit, 2 * d + 1, work.blocks);
        set_or_add(grads.table[VLP_PATH_OUTPUT] + unit, sum + zero_gradient(work, unit), add);
    }
}

int32_t cuda_path_column_blocks(const path_work *work) {
    int64_t columns = static_cast<int64_t>(work->graph.relations) * work->dim;
    unsigned blocks = cuda_blocks(columns, RELATION_COLUMNS);
    return static_cast<int32_t>(blocks < COLUMN_BLOCKS ? blocks : static_cast<unsigned>(COLUMN_BLOCKS));
}

void cuda_path_reduce(vlp_compute *compute, const path_work *work, const path_operands *operands) {
    int32_t d = work->dim, column_blocks = cuda_path_column_blocks(work);
    unsigned layers = static_cast<unsigned>(work->layers), keys = static_cast<unsigned>(work->keys);
    const path_pointers *values = &operands->values, *grads = &operands->grads;
    bool add = operands->add;
    size_t bytes =
        static_cast<size_t>((PATH_KEYS + d) * (RELATION_COLUMNS + 1) + PATH_KEYS * d) * sizeof(float);
    LAUNCH(compute, offset_gradients, keys, WEIGHT_THREADS, 0, *work, values->table[VLP_PATH_OUTPUT]);
    LAUNCH(compute, readout_tables, cuda_blocks((2 * d + 2) * 2 * d + 1, PATH_THREADS), PATH_THREADS, 0,
           *work, *grads, add);
    LAUNCH(compute, update_tables,
           dim3(cuda_blocks(2 * PATH_PARTS * d * d + 4 * d, PATH_THREADS), layers), PATH_THREADS, 0,
           *work, *grads, add);
    int64_t sums = static_cast<int64_t>(work->octets) * work->graph.relations * PATH_OCTET * d;
    LAUNCH(compute, sum_chunks, dim3(cuda_blocks(sums, PATH_THREADS), layers), PATH_THREADS, 0, *work);
    LAUNCH(compute, relation_gradients, dim3(static_cast<unsigned>(column_blocks), layers), PATH_THREADS,
           bytes, *work, *grads, values->table[VLP_PATH_RELATION], add);
    LAUNCH(compute, query_gradients, keys, PATH_THREADS, 0, *work, values->table[VLP_PATH_HIDDEN],
           work->layers * column_blocks);
    LAUNCH(compute, query_table,
           cuda_blocks(static_cast<int64_t>(work->graph.relations) * d, PATH_THREADS), PATH_THREADS, 0,
           *work, grads->table[VLP_PATH_QUERY], add);
}
