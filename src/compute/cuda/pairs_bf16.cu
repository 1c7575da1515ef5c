/* Pairs over bf16 copies. The walks are those of pairs.cu; the bf16 copy of the queries is stored slice
 * by slice, so that the slice that all blocks read at about the same time is contiguous. */
#include "compute/cuda/pairs_bf16.h"

/* ---- Queries in bf16 ----------------------------------------------------------------------------- */

/* out (slices, batch, parts, SLICE), each part padded with zeros. */
__global__ static void convert_queries(vlp_bf16 *out, const float *q, int32_t batch, int32_t parts,
                                       int32_t width) {
    int64_t query = blockIdx.x, slice = blockIdx.y;
    vlp_bf16 *to = out + (slice * batch + query) * parts * SLICE;
    for (int i = threadIdx.x; i < parts * SLICE; i += blockDim.x) {
        int64_t part = i / SLICE, unit = slice * SLICE + i % SLICE;
        to[i] = unit < width ? bf16(q[(query * parts + part) * width + unit]) : 0;
    }
}

bool cuda_convert_queries(vlp_compute *compute, pair_work *work, bool again) {
    const vlp_bf16_layout *layout = &work->given->layout;
    int32_t batch = work->given->batch, parts = layout->parts;
    work->cut.slices = (layout->padded + SLICE - 1) / SLICE;
    int64_t count = static_cast<int64_t>(work->cut.slices) * batch * parts * SLICE;
    work->queries = scratch<vlp_bf16>(compute, SLOT_PAIR_QUERIES, count);
    if (!work->queries) return false;
    if (again)
        LAUNCH(compute, convert_queries,
               dim3(static_cast<unsigned>(batch), static_cast<unsigned>(work->cut.slices)), SLICE, 0,
               work->queries, work->q, batch, parts, layout->width);
    return true;
}

/* ---- Entity by entity ---------------------------------------------------------------------------- */

template <vlp_similarity SIMILARITY, int LANES>
__global__ static void __launch_bounds__(WALK_THREADS, 20)
    bf16_scores(float *parts, bf16_rows from, sorted_pairs pairs) {
    using walk = bf16_walk<SIMILARITY, LANES>;
    walk at(from);
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    packed<SIMILARITY, walk::COUNT> k, q;
    at.load_entity(k, from);
    float *out = parts + static_cast<int64_t>(blockIdx.y) * pairs.total;
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        uint32_t mine = at.lane < count ? walk::offset_of(pairs.query[base + at.lane]) : 0;
#pragma unroll 1
        for (int32_t i = at.group; i - at.group < count; i += walk::GROUPS) {
            at.load_query(q, __shfl_sync(ALL_LANES, mine, i & 31));
            float sum = term_of(q, k);
#pragma unroll
            for (int offset = LANES / 2; offset > 0; offset /= 2)
                sum += __shfl_xor_sync(ALL_LANES, sum, offset);
            if (at.part == 0 && i < count) out[base + i] = sum;
        }
    }
}

template <vlp_similarity SIMILARITY, int LANES>
__global__ static void __launch_bounds__(WALK_THREADS, 24)
    bf16_gradients(float *entity_grad, const uint8_t *touched, const float *weights, bf16_rows from,
                   sorted_pairs pairs) {
    using walk = bf16_walk<SIMILARITY, LANES>;
    walk at(from);
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    float grad[PARTS<SIMILARITY>][walk::COUNT] = {};
    packed<SIMILARITY, walk::COUNT> k;
    at.load_entity(k, from);
    walk_backward(grad, at, k, pairs, weights, begin, end);
    sum_groups<SIMILARITY, walk::COUNT, LANES>(grad);
    if (at.group > 0) return;
    bool holds = !touched || touched[at.row], aligned = from.layout.width % 4 == 0;
    int64_t offset = static_cast<int64_t>(at.row) * PARTS<SIMILARITY> * from.layout.width + at.first;
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
#pragma unroll
        for (int i = 0; i < walk::COUNT; i += 4)
            put4(entity_grad + offset + part * from.layout.width + i, &grad[part][i],
                 from.layout.width - at.first - i, aligned, holds);
}

/* ---- Query by query ------------------------------------------------------------------------------ */

enum { CHUNK = 1024, THREADS = 256, WARPS = THREADS / 32 };

/* An entity of a query and its weight. */
typedef struct weighted {
    int32_t entity;
    float weight;
} weighted;

/* Grid: (queries, slices). Marks the entities as touched; kernels that read the marks come before. */
template <vlp_similarity SIMILARITY, int LANES>
__global__ static void __launch_bounds__(THREADS, 4)
    bf16_query_gradients(float *q_grad, uint8_t *touched, const float *weights, bf16_rows from,
                         const int32_t *entities, int32_t width) {
    constexpr int COUNT = SLICE / LANES, GROUPS = THREADS / LANES;
    __shared__ weighted items[CHUNK];
    __shared__ float sums[WARPS][PARTS<SIMILARITY>][SLICE];
    int64_t query = blockIdx.x;
    int warp = threadIdx.x / 32, group = threadIdx.x / LANES, part = threadIdx.x % LANES;
    int32_t first = static_cast<int32_t>(blockIdx.y) * SLICE + COUNT * part;
    bool padding = first >= from.layout.padded;
    float grad[PARTS<SIMILARITY>][COUNT] = {};
    packed<SIMILARITY, COUNT> q, k;
    q.load(from.queries +
               (blockIdx.y * static_cast<int64_t>(from.batch) + query) * PARTS<SIMILARITY> * SLICE +
               COUNT * part,
           SLICE, false);
    for (int32_t base = 0; base < width; base += CHUNK) {
        int32_t count = width - base < CHUNK ? width - base : CHUNK;
        __syncthreads();
        for (int32_t i = threadIdx.x; i < count; i += THREADS) {
            int32_t entity = entities[query * width + base + i];
            bool masked = entity < 0;
            items[i] = {masked ? 0 : entity, masked ? 0.0f : weights[query * width + base + i]};
            if (touched && blockIdx.y == 0 && !masked) touched[entity] = 1;
        }
        __syncthreads();
#pragma unroll 2
        for (int32_t i = group; i < count; i += GROUPS) {
            weighted item = items[i];
            int64_t row = static_cast<int64_t>(item.entity) * PARTS<SIMILARITY> * from.layout.padded;
            k.load(from.table + row + first, from.layout.padded, padding);
            add_backward(grad, item.weight, k, q); /* similarities are symmetric */
        }
    }
    __syncwarp();
    sum_groups<SIMILARITY, COUNT, LANES>(grad);
    if (threadIdx.x % 32 < LANES)
        for (int p = 0; p < PARTS<SIMILARITY>; p++)
#pragma unroll
            for (int i = 0; i < COUNT; i++) sums[warp][p][COUNT * part + i] = grad[p][i];
    __syncthreads();
    int side = threadIdx.x / SLICE, at = threadIdx.x % SLICE;
    int32_t unit = static_cast<int32_t>(blockIdx.y) * SLICE + at;
    if (side >= PARTS<SIMILARITY> || unit >= from.layout.width) return;
    float total = 0;
    for (int w = 0; w < WARPS; w++) total += sums[w][side][at];
    q_grad[(query * PARTS<SIMILARITY> + side) * from.layout.width + unit] = total;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

template <vlp_similarity SIMILARITY>
static void launch_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    LAUNCH(compute, (bf16_scores<SIMILARITY, 16>), work->grid, WALK_THREADS, 0, parts, rows_of(work),
           work->pairs);
}

void cuda_bf16_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    with_similarity(work->form->similarity, [&](auto similarity) {
        launch_scores<decltype(similarity)::value>(compute, work, parts);
    });
}

template <vlp_similarity SIMILARITY>
static void launch_gradients(vlp_compute *compute, const vlp_pair_gradients *out, const pair_work *work,
                             const float *sorted, const float *weights) {
    if (out->entities.rows)
        LAUNCH(compute, (bf16_gradients<SIMILARITY, 32>), work->grid, WALK_THREADS, 0,
               out->entities.rows, out->entities.touched, sorted, rows_of(work), work->pairs);
    dim3 grid(static_cast<unsigned>(work->given->batch), static_cast<unsigned>(work->cut.slices));
    LAUNCH(compute, (bf16_query_gradients<SIMILARITY, 16>), grid, THREADS, 0, out->queries,
           out->entities.touched, weights, rows_of(work), work->given->entities, work->given->width);
}

void cuda_bf16_gradients(vlp_compute *compute, const vlp_pair_gradients *out, const pair_work *work,
                         const float *sorted, const float *weights) {
    with_similarity(work->form->similarity, [&](auto similarity) {
        launch_gradients<decltype(similarity)::value>(compute, out, work, sorted, weights);
    });
}
