/* Pairs of queries and entities.
 *
 * Scores and the entities' gradients walk the pairs entity by entity. Rows are cut into slices; a warp
 * loads the slice of an entity's row into registers, once, and reads the slices of its queries, which
 * all blocks read at about the same time: they hit the caches. The gradient of an entity is a sum in
 * registers, written once: no atomics. Scores are sums over slices; the partial sums are stored and
 * added in the order of slices. The queries' gradients are computed query by query, all queries at the
 * same slice at about the same time, so that the slice of the entity table stays in the L2 cache.
 *
 * Units are those of the similarity (compute/similarity.h). */
#include "compute/cuda/pairs.h"
#include "compute/cuda/similarity.h"

/* ---- Pairs in the order of their entities -------------------------------------------------------- */

__global__ static void index_pairs(int32_t *query, int32_t *begin, const uint32_t *keys,
                                   const uint32_t *order, int32_t total, int32_t width,
                                   int32_t entities) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at > total) return;
    if (at < total) query[at] = static_cast<int32_t>(order[at]) / width;
    /* Rows without pairs between the previous pair's row and this one's begin and end here. */
    int32_t before = at > 0 ? static_cast<int32_t>(keys[at - 1]) : -1;
    int32_t now = at < total ? static_cast<int32_t>(keys[at]) : entities;
    for (int32_t row = before + 1; row <= now && row <= entities; row++)
        begin[row] = static_cast<int32_t>(at);
}

/* Whether these pairs are the ones last sorted. */
static bool is_sorted(const vlp_compute *compute, const vlp_pairs *pairs) {
    return compute->pairs_of == pairs->entities && compute->pairs_batch == pairs->batch &&
           compute->pairs_width == pairs->width && compute->pairs_rows == pairs->table_rows;
}

static bool sort_pairs(vlp_compute *compute, sorted_pairs *out, const vlp_pairs *pairs, bool again) {
    int32_t entities = pairs->table_rows;
    int64_t total = static_cast<int64_t>(pairs->batch) * pairs->width;
    int32_t *query = scratch<int32_t>(compute, SLOT_PAIR_QUERY, total);
    int32_t *begin = scratch<int32_t>(compute, SLOT_PAIR_BEGIN, static_cast<int64_t>(entities) + 1);
    if (!query || !begin) return false;
    if (again) {
        cuda_segments sorted;
        compute->pairs_of = nullptr;
        if (!cuda_sort(compute, &sorted, pairs->entities, total, entities, SLOT_PAIR_KEYS,
                       SLOT_PAIR_ORDER))
            return false;
        LAUNCH(compute, index_pairs, cuda_blocks(total + 1, 256), 256, 0, query, begin, sorted.keys,
               sorted.order, static_cast<int32_t>(total), pairs->width, entities);
        compute->pairs_of = pairs->entities;
        compute->pairs_batch = pairs->batch;
        compute->pairs_width = pairs->width;
        compute->pairs_rows = entities;
    }
    *out = {scratch<uint32_t>(compute, SLOT_PAIR_KEYS, total),
            scratch<uint32_t>(compute, SLOT_PAIR_ORDER, total),
            query,
            begin,
            static_cast<int32_t>(total),
            entities};
    return !compute->failed;
}

/* ---- Entity by entity ---------------------------------------------------------------------------- */

/* Latency-bound: more warps hide more latency than more loads per warp do. 24 blocks per multiprocessor
 * leave 40 registers. */
enum { WALK_BLOCKS = 24 };

/* The position of a lane: a warp has one entity and one slice of its row, LANES lanes per pair, four
 * units per lane. */
template <vlp_similarity SIMILARITY, int LANES> struct walk {
    static constexpr int GROUPS = 32 / LANES; /* pairs at a time */
    int lane, group, part;
    int32_t row, first, left; /* the entity; the lane's first unit, and the units from it on */
    float k[PARTS<SIMILARITY>][4];

    __device__ walk(const slicing &cut)
        : lane(threadIdx.x % 32), group(lane / LANES), part(lane % LANES),
          row(static_cast<int32_t>(blockIdx.x * (WALK_THREADS / 32) + threadIdx.x / 32)),
          first(static_cast<int32_t>(blockIdx.y) * 4 * LANES + 4 * part), left(cut.units - first) {
    }

    __device__ void load(float (*units)[4], const float *from, const slicing &cut) const {
        load_units<PARTS<SIMILARITY>>(units, from + first, cut.units, left, cut.aligned);
    }
};

/* Grid: (chunks of entities, slices). parts (slices, total): partial sums, in sorted order. Positions
 * after the last pair of an entity load query 0 and are not stored: loads need no branch. */
template <vlp_similarity SIMILARITY, int LANES>
__global__ static void __launch_bounds__(WALK_THREADS, WALK_BLOCKS)
    walk_scores(float *parts, const float *q, const float *table, sorted_pairs pairs, slicing cut,
                int32_t query_width, int32_t entity_width) {
    walk<SIMILARITY, LANES> at(cut);
    constexpr int GROUPS = walk<SIMILARITY, LANES>::GROUPS;
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    at.load(at.k, table + static_cast<int64_t>(at.row) * entity_width, cut);
    float *out = parts + static_cast<int64_t>(blockIdx.y) * pairs.total;
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        int32_t mine = at.lane < count ? pairs.query[base + at.lane] : 0;
        for (int32_t i = at.group; i - at.group < count; i += GROUPS) {
            int32_t query = __shfl_sync(ALL_LANES, mine, i & 31);
            float q_units[PARTS<SIMILARITY>][4];
            at.load(q_units, q + static_cast<int64_t>(query) * query_width, cut);
            float sum = add_terms<SIMILARITY>(0, q_units, at.k);
#pragma unroll
            for (int offset = LANES / 2; offset > 0; offset /= 2)
                sum += __shfl_xor_sync(ALL_LANES, sum, offset);
            if (at.part == 0 && i < count) out[base + i] = sum;
        }
    }
}

/* The entities' gradients: weights (total) in sorted order. */
template <vlp_similarity SIMILARITY, int LANES>
__global__ static void __launch_bounds__(WALK_THREADS, WALK_BLOCKS)
    walk_gradients(float *entity_grad, const uint8_t *touched, const float *weights, const float *q,
                   const float *table, sorted_pairs pairs, slicing cut, int32_t query_width,
                   int32_t entity_width) {
    walk<SIMILARITY, LANES> at(cut);
    constexpr int GROUPS = walk<SIMILARITY, LANES>::GROUPS;
    if (at.row >= pairs.entities) return;
    int32_t begin = pairs.begin[at.row], end = pairs.begin[at.row + 1];
    if (begin == end) return;
    float grad[PARTS<SIMILARITY>][4] = {};
    int64_t offset_of_row = static_cast<int64_t>(at.row) * entity_width;
    at.load(at.k, table + offset_of_row, cut);
    for (int32_t base = begin; base < end; base += 32) {
        int32_t count = end - base < 32 ? end - base : 32;
        int32_t mine = at.lane < count ? pairs.query[base + at.lane] : 0;
        float weight = at.lane < count ? weights[base + at.lane] : 0.0f; /* 0 after the last pair */
        for (int32_t i = at.group; i - at.group < count; i += GROUPS) {
            int32_t query = __shfl_sync(ALL_LANES, mine, i & 31);
            float w = __shfl_sync(ALL_LANES, weight, i & 31), q_units[PARTS<SIMILARITY>][4];
            at.load(q_units, q + static_cast<int64_t>(query) * query_width, cut);
            add_backward<SIMILARITY>(grad, w, q_units, at.k);
        }
    }
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
        for (int offset = LANES; offset < 32; offset *= 2)
#pragma unroll
            for (int part = 0; part < PARTS<SIMILARITY>; part++)
                grad[part][u] += __shfl_xor_sync(ALL_LANES, grad[part][u], offset);
    if (at.group > 0) return;
    bool holds = !touched || touched[at.row];
#pragma unroll
    for (int part = 0; part < PARTS<SIMILARITY>; part++)
        put4(entity_grad + offset_of_row + part * cut.units + at.first, grad[part], at.left, cut.aligned,
             holds);
}

/* ---- Query by query ------------------------------------------------------------------------------ */

enum { QUERY_THREADS = 256, QUERY_LANES = 8, QUERY_CHUNK = 1024 };

/* Grid: (queries, slices). weights (batch, width), as unit_backward takes them. Marks the entities as
 * touched; kernels that read the marks come before. */
template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(QUERY_THREADS)
    query_gradients(float *q_grad, uint8_t *touched, const float *weights, const float *q,
                    const float *table, const int32_t *entities, slicing cut, int32_t width,
                    int32_t query_width, int32_t entity_width) {
    constexpr int UNITS = 4 * QUERY_LANES, GROUPS = QUERY_THREADS / QUERY_LANES;
    constexpr int COUNT = PARTS<SIMILARITY>;
    static_assert(COUNT * UNITS <= QUERY_THREADS, "one thread per number of the result");
    __shared__ int32_t ids[QUERY_CHUNK];
    __shared__ float shares[QUERY_CHUNK];
    __shared__ float sums[QUERY_THREADS / 32][COUNT][UNITS];
    int64_t query = blockIdx.x;
    int lane = threadIdx.x % 32, group = threadIdx.x / QUERY_LANES, part = threadIdx.x % QUERY_LANES;
    int32_t first = static_cast<int32_t>(blockIdx.y) * UNITS + 4 * part, left = cut.units - first;
    float q_units[COUNT][4], grad[COUNT][4] = {};
    load_units<COUNT>(q_units, q + query * query_width + first, cut.units, left, cut.aligned);
    for (int32_t base = 0; base < width; base += QUERY_CHUNK) {
        int32_t count = width - base < QUERY_CHUNK ? width - base : QUERY_CHUNK;
        __syncthreads();
        for (int32_t i = threadIdx.x; i < count; i += QUERY_THREADS) {
            ids[i] = entities[query * width + base + i];
            shares[i] = weights[query * width + base + i];
            if (touched && blockIdx.y == 0 && ids[i] >= 0) touched[ids[i]] = 1;
        }
        __syncthreads();
#pragma unroll 2
        for (int32_t i = group; i < count; i += GROUPS) {
            int32_t id = ids[i];
            float w = shares[i], k_units[COUNT][4];
            if (id < 0 || w == 0) continue;
            load_units<COUNT>(k_units, table + static_cast<int64_t>(id) * entity_width + first,
                              cut.units, left, cut.aligned);
            add_backward<SIMILARITY>(grad, w, k_units, q_units); /* similarities are symmetric */
        }
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < 4; u++) {
#pragma unroll
        for (int offset = QUERY_LANES; offset < 32; offset *= 2)
#pragma unroll
            for (int p = 0; p < COUNT; p++) grad[p][u] += __shfl_xor_sync(ALL_LANES, grad[p][u], offset);
        if (lane >= QUERY_LANES) continue;
#pragma unroll
        for (int p = 0; p < COUNT; p++) sums[threadIdx.x / 32][p][4 * part + u] = grad[p][u];
    }
    __syncthreads();
    int32_t unit = static_cast<int32_t>(blockIdx.y) * UNITS + threadIdx.x % UNITS;
    int side = threadIdx.x / UNITS; /* the part of this thread's number */
    if (side >= COUNT || unit >= cut.units) return;
    float total = 0;
    for (int warp = 0; warp < QUERY_THREADS / 32; warp++) total += sums[warp][side][threadIdx.x % UNITS];
    q_grad[query * query_width + side * cut.units + unit] = total;
}

/* ---- Sums of slices ------------------------------------------------------------------------------ */

/* The sum of a pair over the slices, in their order. */
__device__ static float sum_slices(const float *parts, const sorted_pairs &pairs, int64_t at,
                                   int32_t slices) {
    float sum = 0;
#pragma unroll 4
    for (int32_t slice = 0; slice < slices; slice++)
        sum += parts[static_cast<int64_t>(slice) * pairs.total + at];
    return sum;
}

template <vlp_similarity SIMILARITY>
__global__ static void finish_scores(float *scores, const float *parts, sorted_pairs pairs,
                                     int32_t slices, float margin) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= pairs.total) return;
    bool masked = pairs.keys[at] >= static_cast<uint32_t>(pairs.entities);
    float sum = sum_slices(parts, pairs, at, masked ? 0 : slices);
    scores[pairs.order[at]] = masked ? -INFINITY : vlp_similarity_score(SIMILARITY, sum, margin);
}

/* Weights in sorted order; where they depend on the sum, in the order of pairs as well (scales). */
template <vlp_similarity SIMILARITY>
__global__ static void sort_weights(float *sorted, float *scales, const float *scores_grad,
                                    const float *parts, sorted_pairs pairs, int32_t slices) {
    int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= pairs.total) return;
    bool masked = pairs.keys[at] >= static_cast<uint32_t>(pairs.entities);
    float weight = masked ? 0.0f : scores_grad[pairs.order[at]];
    if constexpr (vlp_similarity_weight_needs_sum(SIMILARITY)) {
        float sum = sum_slices(parts, pairs, at, masked ? 0 : slices);
        weight = vlp_similarity_weight(SIMILARITY, weight, sum);
        scales[pairs.order[at]] = weight;
    }
    sorted[at] = weight;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

/* As wide as a warp where rows are long: fewer loads of an entity's row; as narrow as rows are. */
static void plan_slices(pair_work *work) {
    const vlp_form *form = work->form;
    int32_t units = vlp_form_similarity_columns(form);
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(work->q) | reinterpret_cast<uintptr_t>(work->table);
    work->cut.units = units;
    work->cut.aligned = addresses % sizeof(float4) == 0 && units % 4 == 0 &&
                        form->query_width % 4 == 0 && form->entity_width % 4 == 0;
    work->lanes = units > 64 ? 32 : units > 32 ? 16 : 8;
    work->cut.slices = (units + 4 * work->lanes - 1) / (4 * work->lanes);
}

template <vlp_similarity SIMILARITY, int LANES>
static void launch_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    LAUNCH(compute, (walk_scores<SIMILARITY, LANES>), work->grid, WALK_THREADS, 0, parts, work->q,
           work->table, work->pairs, work->cut, work->form->query_width, work->form->entity_width);
}

template <vlp_similarity SIMILARITY, int LANES>
static void launch_gradients(vlp_compute *compute, const vlp_table_gradient *out, const pair_work *work,
                             const float *weights) {
    LAUNCH(compute, (walk_gradients<SIMILARITY, LANES>), work->grid, WALK_THREADS, 0, out->rows,
           out->touched, weights, work->q, work->table, work->pairs, work->cut, work->form->query_width,
           work->form->entity_width);
}

template <vlp_similarity SIMILARITY>
static void run_scores(vlp_compute *compute, const pair_work *work, float *parts) {
    if (work->queries)
        cuda_bf16_scores(compute, work, parts);
    else if (work->lanes == 32)
        launch_scores<SIMILARITY, 32>(compute, work, parts);
    else if (work->lanes == 16)
        launch_scores<SIMILARITY, 16>(compute, work, parts);
    else
        launch_scores<SIMILARITY, 8>(compute, work, parts);
}

template <vlp_similarity SIMILARITY>
static void run_gradients(vlp_compute *compute, const vlp_table_gradient *out, const pair_work *work,
                          const float *weights) {
    if (work->lanes == 32)
        launch_gradients<SIMILARITY, 32>(compute, out, work, weights);
    else if (work->lanes == 16)
        launch_gradients<SIMILARITY, 16>(compute, out, work, weights);
    else
        launch_gradients<SIMILARITY, 8>(compute, out, work, weights);
}

static bool open_work(vlp_compute *compute, pair_work *work, const vlp_form *form, const float *q,
                      const vlp_pairs *pairs, bool again) {
    int64_t total = static_cast<int64_t>(pairs->batch) * pairs->width;
    if (total > INT32_MAX) {
        cuda_note(compute, cudaErrorInvalidValue, "more than 2^31 pairs; lower batch or negatives");
        return false;
    }
    *work = {};
    work->form = form;
    work->given = pairs;
    work->q = q;
    work->table = pairs->table;
    plan_slices(work);
    again = again || !is_sorted(compute, pairs);
    if (pairs->bf16 && !cuda_convert_queries(compute, work, again)) return false;
    work->grid =
        dim3(cuda_blocks(pairs->table_rows, WALK_THREADS / 32), static_cast<unsigned>(work->cut.slices));
    return sort_pairs(compute, &work->pairs, pairs, again);
}

template <vlp_similarity SIMILARITY>
static void make_scores(vlp_compute *compute, const pair_work *work, float *scores) {
    float *parts = scratch<float>(compute, SLOT_PAIR_PARTS,
                                  static_cast<int64_t>(work->cut.slices) * work->pairs.total);
    if (!parts) return;
    run_scores<SIMILARITY>(compute, work, parts);
    LAUNCH(compute, finish_scores<SIMILARITY>, cuda_blocks(work->pairs.total, 256), 256, 0, scores,
           parts, work->pairs, work->cut.slices, work->form->margin);
}

/* Weights as unit_backward takes them: in sorted order and, in *weights, in that of pairs. NULL when out
 * of memory. */
template <vlp_similarity SIMILARITY>
static float *make_weights(vlp_compute *compute, const pair_work *work, const float **weights) {
    float *sorted = scratch<float>(compute, SLOT_PAIR_WEIGHTS, work->pairs.total);
    float *parts = nullptr, *scales = nullptr;
    if (!sorted) return nullptr;
    if (vlp_similarity_weight_needs_sum(SIMILARITY)) {
        parts = scratch<float>(compute, SLOT_PAIR_PARTS,
                               static_cast<int64_t>(work->cut.slices) * work->pairs.total);
        scales = scratch<float>(compute, SLOT_PAIR_SCALES, work->pairs.total);
        if (!parts || !scales) return nullptr;
        run_scores<SIMILARITY>(compute, work, parts);
    }
    LAUNCH(compute, sort_weights<SIMILARITY>, cuda_blocks(work->pairs.total, 256), 256, 0, sorted,
           scales, *weights, parts, work->pairs, work->cut.slices);
    if (scales) *weights = scales;
    return sorted;
}

template <vlp_similarity SIMILARITY>
static void make_gradients(vlp_compute *compute, const vlp_pair_gradients *out, const pair_work *work,
                           const float *weights) {
    float *sorted = make_weights<SIMILARITY>(compute, work, &weights);
    if (!sorted) return;
    if (work->queries) {
        cuda_bf16_gradients(compute, out, work, sorted, weights);
        return;
    }
    if (out->entities.rows) run_gradients<SIMILARITY>(compute, &out->entities, work, sorted);
    const vlp_pairs *pairs = work->given;
    dim3 grid(static_cast<unsigned>(pairs->batch), cuda_blocks(work->cut.units, 4 * QUERY_LANES));
    LAUNCH(compute, query_gradients<SIMILARITY>, grid, QUERY_THREADS, 0, out->queries,
           out->entities.touched, weights, work->q, work->table, pairs->entities, work->cut,
           pairs->width, work->form->query_width, work->form->entity_width);
}

/* ---- The operations ------------------------------------------------------------------------------ */

static vlp_status pair_scores(vlp_compute *compute, float *scores, const vlp_form *form,
                              const vlp_related_rows *queries, const vlp_pairs *pairs) {
    if (pairs->batch == 0 || pairs->width == 0) return cuda_status(compute);
    if (vlp_form_transforms_answers(form))
        return cuda_transformed_scores(compute, scores, form, queries, pairs);
    pair_work work;
    /* Always sorted: the caller may have put other entities into the same array. */
    if (!open_work(compute, &work, form, queries->rows, pairs, true)) return cuda_status(compute);
    with_similarity(form->similarity, [&](auto similarity) {
        make_scores<decltype(similarity)::value>(compute, &work, scores);
    });
    return cuda_status(compute);
}

static vlp_status pair_backward(vlp_compute *compute, const vlp_pair_gradients *gradients,
                                const vlp_form *form, const float *scores_grad,
                                const vlp_related_rows *queries, const vlp_pairs *pairs) {
    if (pairs->batch == 0 || pairs->width == 0) return cuda_status(compute);
    if (vlp_form_transforms_answers(form))
        return cuda_transformed_backward(compute, gradients, form, scores_grad, queries, pairs);
    pair_work work;
    vlp_pair_gradients out = *gradients;
    if (!out.entities.rows) out.entities.touched = nullptr;
    if (!open_work(compute, &work, form, queries->rows, pairs, false)) return cuda_status(compute);
    with_similarity(form->similarity, [&](auto similarity) {
        make_gradients<decltype(similarity)::value>(compute, &out, &work, scores_grad);
    });
    return cuda_status(compute);
}

const vlp_pair_operations cuda_pair_operations = {.scores = pair_scores, .backward = pair_backward};

vlp_status cuda_pair_update(vlp_compute *compute, const vlp_updated *table, const vlp_update *update,
                            const vlp_form *form, const float *scores_grad, const float *q,
                            const vlp_pairs *pairs) {
    assert(pairs->table == table->value && pairs->table_rows == table->rows && !table->lazy);
    pair_work work;
    const float *sorted = nullptr;
    if (!open_work(compute, &work, form, q, pairs, false)) return cuda_status(compute);
    with_similarity(form->similarity, [&](auto similarity) {
        sorted = make_weights<decltype(similarity)::value>(compute, &work, &scores_grad);
    });
    if (sorted) cuda_updated_pairs(compute, table, update, &work, sorted);
    return cuda_status(compute);
}
