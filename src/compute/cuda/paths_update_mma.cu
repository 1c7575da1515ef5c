/* The update of states and its gradients on tensor cores: as paths_update.cu, for bf16 and dimensions
 * 16, 32 and 64. A warp holds 16 rows; gradients of the matrices are summed over the rows of a block,
 * through shared memory, and then over blocks. */
#include "compute/cuda/paths_mma.h"
#include "compute/cuda/paths_update.h"

enum { WARPS = PATH_THREADS / 32 };

/* Products of a layer with [W W'] and its transpose: factors by step and tile of eight columns. */
template <int D> struct packed_sizes {
    static constexpr int V = D / 4, STEPS = D / 16, TILES = D / 8;         /* of D numbers */
    static constexpr int MATRIX = PATH_PARTS * STEPS * 2 * TILES * 32 / 2; /* of pairs of tiles */
};

/* Blocks of the backward pass. Packed matrices are in shared memory where they fit beside rows of
 * features and changes, which are padded against bank conflicts. */
template <int D> struct backward_sizes {
    static constexpr bool SHARED = D < 64;
    static constexpr int THREADS = SHARED ? 512 : 256, WARPS = THREADS / 32, ROWS = 16 * WARPS;
    static constexpr int FEATURES = PATH_PARTS * D + 8, CHANGES = 4 * D + 8;
    static constexpr size_t BYTES = ROWS * (FEATURES + CHANGES) * sizeof(__nv_bfloat16) +
                                    (SHARED ? 2 * packed_sizes<D>::MATRIX * sizeof(uint4) : 0);
    /* Tiles of the matrices' gradients per warp: features, columns; of columns that are summed. Where
     * they are too many for a block's registers, blocks of another kind sum up the other half. */
    static constexpr int KINDS = D < 64 ? 1 : 2, LEFT_GROUPS = WARPS / 4 * KINDS;
    static constexpr int LEFT = (PATH_PARTS * D / 16 + LEFT_GROUPS - 1) / LEFT_GROUPS, RIGHT = D / 16;
    static constexpr int ONES = D / 2 < WARPS ? 1 : D / 2 / WARPS;
};

/* ---- Packing ------------------------------------------------------------------------------------- */

__device__ static uint32_t pack_weights(const float *matrix, int64_t first, int64_t second) {
    return pack_two(matrix[first], matrix[second]);
}

/* One thread per lane's part of a right factor. packed: (layers, 2, MATRIX). */
template <int D> __global__ static void pack_updates(uint4 *packed, const float *updates) {
    using sizes = packed_sizes<D>;
    int32_t at = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= 2 * sizes::MATRIX) return;
    bool transposed = at >= sizes::MATRIX;
    int32_t lane = at % 32, pair = at % sizes::MATRIX / 32, t = lane % 4, g = lane / 4;
    int32_t pairs = (transposed ? PATH_PARTS : 2) * sizes::TILES / 2, step = pair / pairs;
    /* Sums are over `inner`, of part step / STEPS; results are `outer`, of part tile / TILES. */
    int32_t inner = t * sizes::V + 4 * (step % sizes::STEPS), inner_part = step / sizes::STEPS;
    const float *matrix = updates + static_cast<int64_t>(blockIdx.y) * 2 * PATH_PARTS * D * D;
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int32_t tile = pair % pairs * 2 + i, outer_part = tile / sizes::TILES;
        int32_t outer = g / 2 * sizes::V + 2 * (tile % sizes::TILES) + g % 2;
        int32_t which = transposed ? inner_part : outer_part; /* W, W' */
        int32_t row = transposed ? outer_part * D + outer : inner_part * D + inner;
        int64_t first =
            (static_cast<int64_t>(which) * PATH_PARTS * D + row) * D + (transposed ? inner : outer);
        int64_t stride = transposed ? 1 : D;
        words[2 * i] = pack_weights(matrix, first, first + stride);
        words[2 * i + 1] = pack_weights(matrix, first + 2 * stride, first + 3 * stride);
    }
    packed[static_cast<int64_t>(blockIdx.y) * 2 * sizes::MATRIX + at] =
        make_uint4(words[0], words[1], words[2], words[3]);
}

/* ---- Rows ---------------------------------------------------------------------------------------- */

/* A row of a quad: first + q or first + q + 8. */
struct quad_row {
    int32_t row;   /* -1: behind the last */
    int32_t state; /* its row of x_l, -1 */
    float scale;
};

/* The row at a place of `numbers`; NULL: of all rows. */
__device__ static quad_row find_row(const path_work &work, int32_t layer, const uint32_t *numbers,
                                    int32_t place, int32_t places) {
    quad_row out = {-1, -1, 0};
    if (place >= places) return out;
    int32_t row = numbers ? static_cast<int32_t>(numbers[place]) : place;
    out.row = out.state = row;
    out.scale = work.scale[(work.keep ? layer * work.capacity : 0) + row];
    if (work.dense && layer > 0) return out;
    uint32_t listed = path_level_of(work, layer + 1).rows[row];
    out.state =
        path_find_row(work, path_level_of(work, layer), path_key_of(listed), path_node_of(listed));
    return out;
}

/* Part 0 .. 4 of y. */
template <int V>
__device__ static columns<V> load_part(const path_work &work, int32_t layer, const quad_row &at,
                                       int part) {
    constexpr int D = 4 * V;
    int32_t column = threadIdx.x % 4 * V;
    int64_t kept = work.keep ? layer * work.capacity : 0;
    columns<V> zero = {};
    if (part == 0) {
        if (at.state < 0) return zero;
        return load_columns<V>(static_cast<const __nv_bfloat16 *>(work.x) +
                               (path_kept(work, layer) + at.state) * D + column);
    }
    if (at.row < 0) return zero;
    return load_columns<V>(static_cast<const __nv_bfloat16 *>(work.features) +
                           ((kept + at.row) * 4 + part - 1) * D + column);
}

/* z of the two rows of a quad, normalized; 1 / deviations. sums: products with W, then W'. */
template <int D>
__device__ static void normalize(float (&unit)[2][D / 4], float (&inverse)[2],
                                 const float (&sums)[D / 4][4], const quad_row (&at)[2],
                                 const update_operands &in) {
    constexpr int V = D / 4;
    int32_t column = threadIdx.x % 4 * V;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float plain = sums[i / 2][2 * h + i % 2] + in.bias[column + i];
            float scaled = sums[V / 2 + i / 2][2 * h + i % 2] + in.bias[D + column + i];
            unit[h][i] = __fmaf_rn(at[h].scale, scaled, plain);
            sum += unit[h][i];
        }
        float mean = quad_sum(sum) * (1.0f / D);
#pragma unroll
        for (int i = 0; i < V; i++) {
            unit[h][i] -= mean;
            squares = __fmaf_rn(unit[h][i], unit[h][i], squares);
        }
        inverse[h] = rsqrtf(quad_sum(squares) * (1.0f / D) + VLP_PATH_NORM_EPSILON);
#pragma unroll
        for (int i = 0; i < V; i++) unit[h][i] *= inverse[h];
    }
}

/* sums += a part of y times its rows of [W W']. */
template <int D>
__device__ static void multiply_part(float (&sums)[D / 4][4], const columns<D / 4> (&rows)[2],
                                     const uint4 *packed, int part) {
    using sizes = packed_sizes<D>;
#pragma unroll
    for (int s = 0; s < sizes::STEPS; s++) {
        uint32_t a[4];
        left_factor(a, rows, s);
        const uint4 *right = packed + (part * sizes::STEPS + s) * sizes::TILES * 32 + threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < sizes::TILES; n++) {
            uint4 two = right[n * 32];
            mma_tile(sums[2 * n], a, make_uint2(two.x, two.y));
            mma_tile(sums[2 * n + 1], a, make_uint2(two.z, two.w));
        }
    }
}

template <int D>
__global__ static void __launch_bounds__(PATH_THREADS, D < 64 ? 3 : 1)
    update_mma(path_work work, update_operands in) {
    constexpr int V = D / 4;
    int32_t rows = path_level_of(work, in.layer + 1).counts->rows, quad = threadIdx.x % 32 / 4;
    int32_t column = threadIdx.x % 4 * V, warp = static_cast<int32_t>(threadIdx.x) / 32;
    const uint4 *packed = in.packed;
    for (int32_t first = (static_cast<int32_t>(blockIdx.x) * WARPS + warp) * 16; first < rows;
         first += static_cast<int32_t>(gridDim.x) * WARPS * 16) {
        quad_row at[2] = {find_row(work, in.layer, nullptr, first + quad, rows),
                          find_row(work, in.layer, nullptr, first + quad + 8, rows)};
        float sums[V][4] = {};
        columns<V> x[2];
#pragma unroll
        for (int part = 0; part < PATH_PARTS; part++) {
            columns<V> y[2] = {load_part<V>(work, in.layer, at[0], part),
                               load_part<V>(work, in.layer, at[1], part)};
            if (part == 0) x[0] = y[0], x[1] = y[1];
            multiply_part<D>(sums, y, packed, part);
        }
        float unit[2][V], inverse[2];
        normalize<D>(unit, inverse, sums, at, in);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (at[h].row < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                float out = __fmaf_rn(unit[h][i], in.norm[column + i], in.norm[D + column + i]);
                unit[h][i] = fmaxf(out, 0.0f) + ::column(x[h], i);
            }
            int64_t row = at[h].row;
            if (in.layer + 1 == work.layers)
                store_floats<V>(work.last + row * D + column, unit[h]);
            else
                store_columns<V>(static_cast<__nv_bfloat16 *>(work.x) +
                                     (path_kept(work, in.layer + 1) + row) * D + column,
                                 pack_columns(unit[h]));
        }
    }
}

/* ---- Backward ------------------------------------------------------------------------------------ */

/* From the gradients of a quad's states to those of z: factors of the product with the transpose, and
 * rows (4, D) of shared memory: gradients of z, s times these, and what scale and shift receive. */
template <int D>
__device__ static void normalize_backward(columns<D / 4> (&plain)[2], columns<D / 4> (&scaled)[2],
                                          __nv_bfloat16 *changes, const float (&unit)[2][D / 4],
                                          const float (&inverse)[2], const float (&state)[2][D / 4],
                                          const quad_row (&at)[2], const update_operands &in) {
    constexpr int V = D / 4;
    int32_t column = threadIdx.x % 4 * V, quad = threadIdx.x % 32 / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        __nv_bfloat16 *to = changes + (quad + 8 * h) * backward_sizes<D>::CHANGES + column;
        float change[V], along_unit[V], z[V], by_scale[V], sum = 0, product = 0;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float norm = in.norm[column + i];
            bool positive = __fmaf_rn(unit[h][i], norm, in.norm[D + column + i]) > 0;
            change[i] = positive ? state[h][i] : 0.0f;
            along_unit[i] = change[i] * unit[h][i];
            z[i] = change[i] * norm;
            sum += z[i];
            product = __fmaf_rn(z[i], unit[h][i], product);
        }
        float mean = quad_sum(sum) * (1.0f / D), along = quad_sum(product) * (1.0f / D);
#pragma unroll
        for (int i = 0; i < V; i++) {
            z[i] = inverse[h] * (z[i] - mean - unit[h][i] * along);
            by_scale[i] = at[h].scale * z[i];
        }
        plain[h] = pack_columns(z);
        scaled[h] = pack_columns(by_scale);
        store_columns<V>(to, plain[h]);
        store_columns<V>(to + D, scaled[h]);
        store_columns<V>(to + 2 * D, pack_columns(along_unit));
        store_columns<V>(to + 3 * D, pack_columns(change));
    }
}

/* A part of the gradient of y, for the two rows of a quad. */
template <int D>
__device__ static void part_gradient(float (&out)[2][D / 4], const columns<D / 4> (&plain)[2],
                                     const columns<D / 4> (&scaled)[2], const uint4 *packed, int part) {
    using sizes = packed_sizes<D>;
    float sums[sizes::TILES][4] = {};
#pragma unroll
    for (int s = 0; s < 2 * sizes::STEPS; s++) {
        uint32_t a[4];
        left_factor(a, s < sizes::STEPS ? plain : scaled, s % sizes::STEPS);
        const uint4 *right = packed + (s * PATH_PARTS + part) * sizes::TILES / 2 * 32 + threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < sizes::TILES / 2; n++) {
            uint4 two = right[n * 32];
            mma_tile(sums[2 * n], a, make_uint2(two.x, two.y));
            mma_tile(sums[2 * n + 1], a, make_uint2(two.z, two.w));
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < D / 4; i++) out[h][i] = sums[i / 2][2 * h + i % 2];
}

/* Where a row's columns are in `gradients` and `extremes`; side 1: g2, the minimum. */
template <int V>
__device__ static void store_pair(void *array, int64_t row, int side, const float (&from)[V]) {
    int32_t column = threadIdx.x % 4 * V;
    __nv_bfloat16 *to = static_cast<__nv_bfloat16 *>(array) + row * 8 * V + column / 8 * 16 + 8 * side;
    columns<V> packed = pack_columns(from);
    if constexpr (V == 16) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            *reinterpret_cast<uint4 *>(to + 16 * i) =
                make_uint4(packed.words[4 * i], packed.words[4 * i + 1], packed.words[4 * i + 2],
                           packed.words[4 * i + 3]);
    } else {
        store_columns<V>(to + column % 8, packed);
    }
}

/* The gradients of a quad's rows of y: to messages, to their own states, to the boundary. */
template <int D>
__device__ static void
store_gradients(const path_work &work, const update_operands &in, const uint4 *packed,
                const columns<D / 4> (&plain)[2], const columns<D / 4> (&scaled)[2],
                const columns<D / 4> (&mean)[2], const columns<D / 4> (&deviation)[2],
                const float (&state)[2][D / 4], const quad_row (&at)[2]) {
    constexpr int V = D / 4;
    int32_t column = threadIdx.x % 4 * V;
    float grads[2][V], constant[2][V];
    part_gradient<D>(grads, plain, scaled, packed, 0);
    for (int h = 0; h < 2; h++) {
        if (at[h].row < 0) continue;
#pragma unroll
        for (int i = 0; i < V; i++) grads[h][i] += state[h][i];
        store_floats<V>(work.own_grads + static_cast<int64_t>(at[h].row) * D + column, grads[h]);
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
        part_gradient<D>(grads, plain, scaled, packed, 2 + side);
        for (int h = 0; h < 2; h++)
            if (at[h].row >= 0) store_pair<V>(work.extremes, at[h].row, side, grads[h]);
    }
    part_gradient<D>(constant, plain, scaled, packed, 1);
    part_gradient<D>(grads, plain, scaled, packed, 4);
    for (int h = 0; h < 2; h++) {
        if (at[h].row < 0) continue;
        int32_t degree = work.degree[in.layer * work.capacity + at[h].row];
        float inverse = 1.0f / static_cast<float>(degree + 1);
#pragma unroll
        for (int i = 0; i < V; i++) {
            float spread = ::column(deviation[h], i);
            /* None where the variance is at its least. */
            bool varies = spread > 1.00001f * sqrtf(VLP_PATH_LEAST_VARIANCE);
            float by_deviation = varies ? __fdividef(grads[h][i], spread) : 0.0f;
            constant[h][i] = (constant[h][i] - ::column(mean[h], i) * by_deviation) * inverse;
            grads[h][i] = by_deviation * inverse;
        }
        store_pair<V>(work.gradients, at[h].row, 0, constant[h]);
        store_pair<V>(work.gradients, at[h].row, 1, grads[h]);
    }
}

/* Sums over the rows of a block: y^T [gradients of z, s times these], tiles of 16 features and 8
 * columns; and column sums of all four of `changes`. */
template <int D> struct block_sums {
    using size = backward_sizes<D>;
    float matrix[size::LEFT][size::RIGHT][4], ones[size::ONES][4];
};

template <int D>
__device__ static void add_rows(block_sums<D> *sums, const __nv_bfloat16 *features,
                                const __nv_bfloat16 *changes) {
    using size = backward_sizes<D>;
    constexpr int LEFT = size::LEFT, RIGHT = size::RIGHT, SUMMED = size::ONES;
    constexpr uint32_t ONES = 0x3f803f80u;
    int32_t warp = threadIdx.x / 32, first_right = warp % 4 * RIGHT;
    int32_t first_left = (blockIdx.y * (size::WARPS / 4) + warp / 4) * LEFT;
#pragma unroll 1
    for (int32_t row = 0; row < size::ROWS; row += 16) {
        uint2 right[RIGHT];
#pragma unroll
        for (int n = 0; n < RIGHT; n++)
            right[n] = load_right(changes + row * size::CHANGES + (first_right + n) * 8, size::CHANGES);
#pragma unroll
        for (int m = 0; m < LEFT; m++) {
            if ((first_left + m) * 16 >= PATH_PARTS * D) break;
            uint32_t a[4];
            load_transposed(a, features + row * size::FEATURES + (first_left + m) * 16, size::FEATURES);
#pragma unroll
            for (int n = 0; n < RIGHT; n++) mma_tile(sums->matrix[m][n], a, right[n]);
        }
        uint32_t ones[4] = {ONES, ONES, ONES, ONES};
#pragma unroll
        for (int n = 0; n < SUMMED; n++)
            if ((warp * SUMMED + n) * 8 < 4 * D)
                mma_tile(
                    sums->ones[n], ones,
                    load_right(changes + row * size::CHANGES + (warp * SUMMED + n) * 8, size::CHANGES));
    }
}

template <int D>
__device__ static void store_sums(const block_sums<D> &sums, const path_work &work, int32_t layer) {
    using size = backward_sizes<D>;
    constexpr int LEFT = size::LEFT, RIGHT = size::RIGHT, SUMMED = size::ONES;
    int64_t block = static_cast<int64_t>(layer) * work.update_blocks + blockIdx.x;
    int32_t warp = threadIdx.x / 32, t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
    int32_t first_left = (blockIdx.y * (size::WARPS / 4) + warp / 4) * LEFT;
    float *update = work.update_partial + block * 2 * PATH_PARTS * D * D;
#pragma unroll
    for (int m = 0; m < LEFT; m++)
#pragma unroll
        for (int n = 0; n < RIGHT; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int32_t feature = (first_left + m) * 16 + g + 8 * h;
                int32_t column = (warp % 4 * RIGHT + n) * 8 + 2 * t;
                if (feature >= PATH_PARTS * D) continue;
                float *to = update + (column / D * PATH_PARTS * D + feature) * D + column % D;
                to[0] = sums.matrix[m][n][2 * h], to[1] = sums.matrix[m][n][2 * h + 1];
            }
    if (g > 0 || blockIdx.y > 0) return;
#pragma unroll
    for (int n = 0; n < SUMMED; n++) {
        if ((warp * SUMMED + n) * 8 >= 4 * D) break;
        float *to = work.norm_partial + block * 4 * D + (warp * SUMMED + n) * 8 + 2 * t;
        to[0] = sums.ones[n][0], to[1] = sums.ones[n][1];
    }
}

template <int D>
__global__ static void __launch_bounds__(backward_sizes<D>::THREADS)
    update_mma_backward(path_work work, update_operands in) {
    constexpr int V = D / 4;
    extern __shared__ __align__(16) unsigned char shared[];
    __nv_bfloat16 *features = reinterpret_cast<__nv_bfloat16 *>(shared);
    using size = backward_sizes<D>;
    __nv_bfloat16 *changes = features + size::ROWS * size::FEATURES;
    const uint4 *packed = in.packed;
    if constexpr (size::SHARED) {
        uint4 *copy = reinterpret_cast<uint4 *>(changes + size::ROWS * size::CHANGES);
        for (int i = threadIdx.x; i < 2 * packed_sizes<D>::MATRIX; i += size::THREADS)
            copy[i] = packed[i];
        packed = copy;
    }
    path_level level = path_back_level_of(work, in.layer + 1);
    int32_t rows = level.counts->rows, quad = threadIdx.x % 32 / 4;
    int32_t column = threadIdx.x % 4 * V, warp = static_cast<int32_t>(threadIdx.x) / 32;
    block_sums<D> block = {};
    for (int32_t start = static_cast<int32_t>(blockIdx.x) * size::ROWS; start < rows;
         start += static_cast<int32_t>(gridDim.x) * size::ROWS) {
        int32_t first = start + 16 * warp;
        quad_row at[2] = {find_row(work, in.layer, level.rows, first + quad, rows),
                          find_row(work, in.layer, level.rows, first + quad + 8, rows)};
        columns<V> mean[2], deviation[2], plain[2], scaled[2];
        float state[2][V] = {}, sums[V][4] = {}, unit[2][V], inverse[2];
        __syncthreads();
#pragma unroll
        for (int part = 0; part < PATH_PARTS; part++) {
            columns<V> y[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                y[h] = load_part<V>(work, in.layer, at[h], part);
                store_columns<V>(
                    features + (16 * warp + quad + 8 * h) * size::FEATURES + part * D + column, y[h]);
                if (part == 1) mean[h] = y[h];
                if (part == 4) deviation[h] = y[h];
            }
            multiply_part<D>(sums, y, packed, part);
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (at[h].row >= 0)
                load_floats<V>(state[h],
                               work.state_grads + static_cast<int64_t>(at[h].row) * D + column);
        normalize<D>(unit, inverse, sums, at, in);
        normalize_backward<D>(plain, scaled, changes + 16 * warp * size::CHANGES, unit, inverse, state,
                              at, in);
        if (blockIdx.y == 0)
            store_gradients<D>(work, in, packed + packed_sizes<D>::MATRIX, plain, scaled, mean,
                               deviation, state, at);
        __syncthreads();
        add_rows<D>(&block, features, changes);
    }
    store_sums<D>(block, work, in.layer);
}

/* One block per key: the boundary's gradient at its head entity. */
__global__ static void boundary_gradients(path_work work, int32_t layer) {
    int32_t d = work.dim, key = static_cast<int32_t>(blockIdx.x), node = work.key[key].head;
    int32_t row = path_find_gradient(work, path_level_of(work, layer + 1), key, node);
    if (row < 0) return;
    for (int32_t c = threadIdx.x; c < d; c += blockDim.x) {
        int64_t place = static_cast<int64_t>(row) * 2 * d + c / 8 * 16 + c % 8;
        const __nv_bfloat16 *gradients = static_cast<const __nv_bfloat16 *>(work.gradients) + place;
        const __nv_bfloat16 *extremes = static_cast<const __nv_bfloat16 *>(work.extremes) + place;
        float grads[4] = {to_float(gradients[0]), to_float(gradients[8]), to_float(extremes[0]),
                          to_float(extremes[8])};
        float q = __bfloat162float(__float2bfloat16_rn(work.query[key * d + c]));
        work.boundary[(static_cast<int64_t>(layer) * PATH_KEYS + key) * d + c] =
            path_boundary_gradient(work, layer, key, c, q, grads);
    }
}

/* ---- Launches ------------------------------------------------------------------------------------ */

template <int D> static void pack(vlp_compute *compute, const path_work *work, const float *updates) {
    dim3 grid(cuda_blocks(2 * packed_sizes<D>::MATRIX, PATH_THREADS),
              static_cast<unsigned>(work->layers));
    LAUNCH(compute, pack_updates<D>, grid, PATH_THREADS, 0, reinterpret_cast<uint4 *>(work->transposed),
           updates);
}

template <int D>
static void forward(vlp_compute *compute, const path_work *work, const update_operands &in) {
    LAUNCH(compute, update_mma<D>, static_cast<unsigned>(compute->multiprocessors) * (D < 64 ? 3 : 1),
           PATH_THREADS, 0, *work, in);
}

template <int D>
static void backward(vlp_compute *compute, const path_work *work, const update_operands &in) {
    path_allow_shared(compute, update_mma_backward<D>, backward_sizes<D>::BYTES);
    dim3 grid(static_cast<unsigned>(work->update_blocks), backward_sizes<D>::KINDS);
    LAUNCH(compute, update_mma_backward<D>, grid, static_cast<unsigned>(backward_sizes<D>::THREADS),
           backward_sizes<D>::BYTES, *work, in);
    LAUNCH(compute, boundary_gradients, static_cast<unsigned>(work->keys), 64, 0, *work, in.layer);
}

bool cuda_path_mma_dim(int32_t dim) {
    return dim == 16 || dim == 32 || dim == 64;
}

void cuda_path_mma_pack(vlp_compute *compute, const path_work *work, const float *updates) {
    if (work->dim == 16) pack<16>(compute, work, updates);
    if (work->dim == 32) pack<32>(compute, work, updates);
    if (work->dim == 64) pack<64>(compute, work, updates);
}

void cuda_path_mma_update(vlp_compute *compute, const path_work *work, const update_operands &in) {
    if (work->dim == 16) forward<16>(compute, work, in);
    if (work->dim == 32) forward<32>(compute, work, in);
    if (work->dim == 64) forward<64>(compute, work, in);
}

void cuda_path_mma_backward(vlp_compute *compute, const path_work *work, const update_operands &in) {
    if (work->dim == 16) backward<16>(compute, work, in);
    if (work->dim == 32) backward<32>(compute, work, in);
    if (work->dim == 64) backward<64>(compute, work, in);
}
