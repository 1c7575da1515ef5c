/* Rank counts: how many candidates score above the answer, how many the same, for several mixtures of
 * the components' scores at once.
 *
 * Where f_g is a matrix product it is computed first, and one block per query counts. Distances of a
 * model that has at most one other component are counted where they are computed, tile by tile, and
 * never written: those of the answers and of the filtered entities are computed by themselves, sum for
 * sum by the same instructions. */
#include "compute/cuda/tiles.h"

enum { RANK_THREADS = 512, RANK_GROUP = 9, MAX_MIXTURES = 64 };

/* The mixtures of a launch, with weights[k] of the k-th component that is there. Passed by value: an
 * asynchronous copy to the device would need its own buffer. */
typedef struct mixture_list {
    vlp_mixture items[MAX_MIXTURES];
    int32_t count;
} mixture_list;

/* Counts and what they are computed from, for the mixtures of a list. */
typedef struct rank_view {
    int32_t *above, *equal, *bad;
    int32_t stride; /* of the rows of above and equal */
    int32_t entities;
    int64_t count;
    const float *scores[VLP_MAX_COMPONENTS]; /* (count, entities) of the components that are there; of
                                                distances that are not written nullptr, and first */
    int32_t components;                      /* that are there */
    const int32_t *answers;
    const int64_t *filter_offset;
    const int32_t *filtered;
    const uint8_t *only;
    mixture_list mixtures;
} rank_view;

/* Mixed scores are computed by the same instructions for every entity: the answer's score, rounded
 * otherwise, would invent ties. */
template <int COUNT>
__device__ static float mixed(const float parts[COUNT], const vlp_mixture &mixture) {
    float score = __fmul_rn(mixture.weights[0], parts[0]);
#pragma unroll
    for (int k = 1; k < COUNT; k++) score = __fmaf_rn(mixture.weights[k], parts[k], score);
    return score;
}

/* The same of a distance, and of the one other component where there is one. */
__device__ static float mixed_distance(bool has_other, float other, float distance,
                                       const vlp_mixture &mixture) {
    float score = __fmul_rn(mixture.weights[0], distance);
    return has_other ? __fmaf_rn(mixture.weights[1], other, score) : score;
}

__device__ static float other_at(const rank_view &view, int64_t query, int64_t e) {
    return view.components > 1 ? view.scores[1][query * view.entities + e] : 0.0f;
}

__device__ static bool competes(const rank_view &view, int32_t answer, int64_t e) {
    return e != answer && (!view.only || view.only[e]);
}

/* ---- Scores that are there ----------------------------------------------------------------------- */

template <int COUNT>
__device__ static void load_parts(float parts[COUNT], const rank_view &view, int64_t query, int64_t e) {
#pragma unroll
    for (int k = 0; k < COUNT; k++) parts[k] = view.scores[k][query * view.entities + e];
}

/* A few mixtures at a time, so that their counts stay in registers. */
template <int COUNT> __global__ static void __launch_bounds__(RANK_THREADS) rank_rows(rank_view view) {
    __shared__ int shared[32];
    int64_t i = blockIdx.x;
    int32_t answer = view.answers[i], first = static_cast<int32_t>(blockIdx.y) * RANK_GROUP;
    vlp_mixture mine[RANK_GROUP];
    float gold[RANK_GROUP], parts[COUNT];
    int more[RANK_GROUP], same[RANK_GROUP], wrong = 0;
    load_parts<COUNT>(parts, view, i, answer);
#pragma unroll
    for (int m = 0; m < RANK_GROUP; m++) {
        mine[m] =
            view.mixtures.items[first + m < view.mixtures.count ? first + m : view.mixtures.count - 1];
        gold[m] = mixed<COUNT>(parts, mine[m]);
        more[m] = same[m] = 0;
    }
    for (int32_t e = threadIdx.x; e < view.entities; e += RANK_THREADS) {
        bool counts = competes(view, answer, e);
        load_parts<COUNT>(parts, view, i, e);
#pragma unroll
        for (int m = 0; m < RANK_GROUP; m++) {
            float score = mixed<COUNT>(parts, mine[m]);
            wrong |= score != score;
            more[m] += counts && score > gold[m];
            same[m] += counts && score == gold[m];
        }
    }
    for (int64_t f = view.filter_offset[i] + threadIdx.x; f < view.filter_offset[i + 1];
         f += RANK_THREADS) {
        int32_t e = view.filtered[f];
        if (!competes(view, answer, e)) continue;
        load_parts<COUNT>(parts, view, i, e);
#pragma unroll
        for (int m = 0; m < RANK_GROUP; m++) {
            float score = mixed<COUNT>(parts, mine[m]);
            more[m] -= score > gold[m];
            same[m] -= score == gold[m];
        }
    }
#pragma unroll
    for (int m = 0; m < RANK_GROUP; m++) {
        int all_more = block_sum(more[m], shared), all_same = block_sum(same[m], shared);
        if (threadIdx.x > 0 || first + m >= view.mixtures.count) continue;
        view.above[i * view.stride + first + m] = all_more;
        view.equal[i * view.stride + first + m] = all_same;
    }
    if (wrong) *view.bad = 1; /* a benign race: all write the same */
}

/* ---- Distances of given pairs -------------------------------------------------------------------- */

/* A block computes LIST scores; all threads load, one warp adds. */
enum { LIST = 32, LIST_DEPTH = 64, LIST_THREADS = 256 };

/* The query i with offset[i] <= pair < offset[i + 1]. */
__device__ static int64_t query_of(const int64_t *offset, int64_t queries, int64_t pair) {
    int64_t low = 0, high = queries - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (offset[middle] <= pair)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* scores[p] of query and entities[p]; without `offset` query p is meant. */
template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(LIST_THREADS)
    listed_scores(float *scores, tile_operands operands, const int32_t *entities, const int64_t *offset,
                  int64_t count) {
    constexpr int parts = PARTS<SIMILARITY>;
    __shared__ float q_rows[parts][LIST][LIST_DEPTH + 1], k_rows[parts][LIST][LIST_DEPTH + 1];
    __shared__ int64_t q_start[LIST], k_start[LIST];
    int64_t pair = static_cast<int64_t>(blockIdx.x) * LIST + threadIdx.x;
    int mine = static_cast<int>(threadIdx.x), units = operands.units;
    bool adds = mine < LIST && pair < count;
    if (mine < LIST) {
        int64_t query = !adds ? 0 : offset ? query_of(offset, operands.count, pair) : pair;
        q_start[mine] = query * operands.width;
        k_start[mine] = adds ? static_cast<int64_t>(entities[pair]) * operands.width : 0;
    }
    float sum = 0;
    for (int32_t unit = 0; unit < units; unit += LIST_DEPTH) {
        __syncthreads();
        for (int i = mine; i < LIST * LIST_DEPTH; i += LIST_THREADS) {
            int row = i / LIST_DEPTH, u = i % LIST_DEPTH;
            bool there = unit + u < units;
#pragma unroll
            for (int part = 0; part < parts; part++) {
                int64_t at = static_cast<int64_t>(part) * units + unit + u;
                q_rows[part][row][u] = there ? operands.q[q_start[row] + at] : 0.0f;
                k_rows[part][row][u] = there ? operands.table[k_start[row] + at] : 0.0f;
            }
        }
        __syncthreads();
#pragma unroll 8
        for (int u = 0; adds && u < LIST_DEPTH; u++) {
            float q[parts], k[parts];
#pragma unroll
            for (int part = 0; part < parts; part++) {
                q[part] = q_rows[part][mine][u];
                k[part] = k_rows[part][mine][u];
            }
            sum = add_unit<SIMILARITY>(sum, q, k);
        }
    }
    if (adds) scores[pair] = vlp_similarity_score(SIMILARITY, sum, operands.margin);
}

/* ---- Distances, counted where they are computed -------------------------------------------------- */

/* The counts of one query over the entities of a thread, for all mixtures. The 16 threads of a query
 * add theirs up; each then holds those of one mixture in 16. Bits of `ours`: which entities exist. */
__device__ static void count_mine(const rank_view &view, int64_t query, unsigned ours,
                                  int64_t first_entity, const float h[MINE_ENTITIES], float gold_h,
                                  int *wrong) {
    int32_t answer = ours ? view.answers[query] : 0;
    float v[MINE_ENTITIES], gold_v = ours ? other_at(view, query, answer) : 0.0f;
    bool has_other = view.components > 1;
    unsigned counted = 0;
#pragma unroll
    for (int j = 0; j < MINE_ENTITIES; j++) {
        int64_t e = first_entity + my_entity(j);
        bool there = ours >> j & 1;
        v[j] = there ? other_at(view, query, e) : 0.0f;
        counted |= static_cast<unsigned>(there && competes(view, answer, e)) << j;
    }
    int lane = threadIdx.x % 16, held = 0;
    for (int32_t m = 0; m < view.mixtures.count; m++) {
        vlp_mixture mixture = view.mixtures.items[m];
        float gold = mixed_distance(has_other, gold_v, gold_h, mixture);
        int counts = 0; /* above, and equal in the upper half */
#pragma unroll
        for (int j = 0; j < MINE_ENTITIES; j++) {
            float score = mixed_distance(has_other, v[j], h[j], mixture);
            *wrong |= (ours >> j & 1) && score != score;
            if (counted >> j & 1) counts += score > gold ? 1 : score == gold ? 1 << 16 : 0;
        }
        for (int offset = 8; offset > 0; offset /= 2)
            counts += __shfl_xor_sync(ALL_LANES, counts, offset);
        if (m % 16 == lane) held = counts;
        if (m % 16 < 15 && m + 1 < view.mixtures.count) continue;
        int64_t at = query * view.stride + m / 16 * 16 + lane;
        if (held & 0xffff) atomicAdd(view.above + at, held & 0xffff);
        if (held >> 16) atomicAdd(view.equal + at, held >> 16);
        held = 0;
    }
}

template <vlp_similarity SIMILARITY>
__global__ static void __launch_bounds__(TILE_THREADS)
    rank_tiles(rank_view view, tile_operands operands, const float *answer_scores) {
    int64_t first_query = static_cast<int64_t>(blockIdx.y) * TILE_QUERIES;
    int64_t first_entity = static_cast<int64_t>(blockIdx.x) * TILE_ENTITIES;
    float sums[MINE_QUERIES][MINE_ENTITIES];
    int wrong = 0;
    tile_sums<SIMILARITY>(sums, operands, first_query, first_entity);
#pragma unroll
    for (int i = 0; i < MINE_QUERIES; i++) {
        int64_t query = first_query + my_query() + i;
        unsigned ours = 0;
        float h[MINE_ENTITIES];
#pragma unroll
        for (int j = 0; j < MINE_ENTITIES; j++) {
            bool there = query < view.count && first_entity + my_entity(j) < view.entities;
            ours |= static_cast<unsigned>(there) << j;
            h[j] = vlp_similarity_score(SIMILARITY, sums[i][j], operands.margin);
        }
        count_mine(view, query, ours, first_entity, h, ours ? answer_scores[query] : 0.0f, &wrong);
    }
    if (wrong) *view.bad = 1;
}

/* Subtracts the filtered entities again: one warp per query and mixture. scores: f_g of the filtered. */
__global__ static void subtract_filtered(rank_view view, const float *answer_scores,
                                         const float *scores) {
    int64_t item = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    int64_t query = item / view.mixtures.count;
    int32_t m = static_cast<int32_t>(item % view.mixtures.count), answer;
    if (query >= view.count) return;
    answer = view.answers[query];
    bool has_other = view.components > 1;
    vlp_mixture mixture = view.mixtures.items[m];
    float gold = mixed_distance(has_other, other_at(view, query, answer), answer_scores[query], mixture);
    int more = 0, same = 0;
    for (int64_t f = view.filter_offset[query] + threadIdx.x % 32; f < view.filter_offset[query + 1];
         f += 32) {
        int32_t e = view.filtered[f];
        if (!competes(view, answer, e)) continue;
        float score = mixed_distance(has_other, other_at(view, query, e), scores[f], mixture);
        more += score > gold;
        same += score == gold;
    }
    more = warp_sum(more);
    same = warp_sum(same);
    if (threadIdx.x % 32 > 0) return;
    view.above[query * view.stride + m] -= more;
    view.equal[query * view.stride + m] -= same;
}

/* ---- The operation ------------------------------------------------------------------------------- */

/* The components that are there, in their order. */
static int32_t list_components(int components[VLP_MAX_COMPONENTS], const vlp_ranked *ranked) {
    int32_t count = 0;
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        if (ranked->scores[c] || (c == VLP_HORIZONTAL && ranked->form)) components[count++] = c;
    return count;
}

static bool counts_distances(const vlp_ranked *ranked, int32_t components) {
    return ranked->form && ranked->form->similarity != VLP_DOT && !ranked->keep && components <= 2 &&
           !vlp_form_transforms_answers(ranked->form);
}

/* f_g of the answers, and of the filtered. */
typedef struct rank_scores {
    float *answers, *filtered;
} rank_scores;

static bool compute_rank_scores(vlp_compute *compute, rank_scores *out, const vlp_ranked *ranked,
                                const tile_operands *operands) {
    out->answers = scratch<float>(compute, SLOT_RANK_ANSWERS, ranked->queries.count);
    out->filtered = scratch<float>(compute, SLOT_RANK_FILTERED, ranked->filtered_count);
    if (!out->answers || !out->filtered) return false;
    LAUNCH_DISTANCE(compute, ranked->form, listed_scores, cuda_blocks(ranked->queries.count, LIST),
                    LIST_THREADS, 0, out->answers, *operands, ranked->answers, nullptr,
                    ranked->queries.count);
    if (ranked->filtered_count > 0)
        LAUNCH_DISTANCE(compute, ranked->form, listed_scores, cuda_blocks(ranked->filtered_count, LIST),
                        LIST_THREADS, 0, out->filtered, *operands, ranked->filtered,
                        ranked->filter_offset, ranked->filtered_count);
    return true;
}

static void rank_distances(vlp_compute *compute, const vlp_ranked *ranked, const rank_view *view,
                           const tile_operands *operands, const rank_scores *scores) {
    LAUNCH_DISTANCE(compute, ranked->form, rank_tiles, tile_grid(operands), TILE_THREADS, 0, *view,
                    *operands, scores->answers);
    if (ranked->filtered_count > 0)
        LAUNCH(compute, subtract_filtered, cuda_blocks(view->count * view->mixtures.count, 8), 256, 0,
               *view, scores->answers, scores->filtered);
}

static void clear(vlp_compute *compute, int32_t *counts, int64_t count) {
    cuda_note(compute,
              cudaMemsetAsync(counts, 0, static_cast<size_t>(count) * sizeof *counts, compute->stream),
              "clearing memory");
}

static void launch_rank_rows(vlp_compute *compute, const rank_view *view) {
    dim3 grid(static_cast<unsigned>(view->count), cuda_blocks(view->mixtures.count, RANK_GROUP));
    static_assert(VLP_MAX_COMPONENTS == 4, "a kernel for each number of components");
    switch (view->components) {
    case 1:
        LAUNCH(compute, rank_rows<1>, grid, RANK_THREADS, 0, *view);
        break;
    case 2:
        LAUNCH(compute, rank_rows<2>, grid, RANK_THREADS, 0, *view);
        break;
    case 3:
        LAUNCH(compute, rank_rows<3>, grid, RANK_THREADS, 0, *view);
        break;
    case 4:
        LAUNCH(compute, rank_rows<4>, grid, RANK_THREADS, 0, *view);
        break;
    }
}

static vlp_status rank_counts(vlp_compute *compute, int32_t *above, int32_t *equal, int32_t *bad,
                              const vlp_ranked *ranked) {
    int64_t cells = ranked->queries.count * ranked->mixture_count;
    clear(compute, bad, 1);
    if (cells == 0 || ranked->entities == 0) return cuda_status(compute);
    int there[VLP_MAX_COMPONENTS];
    rank_view view = {.above = above,
                      .equal = equal,
                      .bad = bad,
                      .stride = ranked->mixture_count,
                      .entities = ranked->entities,
                      .count = ranked->queries.count,
                      .scores = {},
                      .components = list_components(there, ranked),
                      .answers = ranked->answers,
                      .filter_offset = ranked->filter_offset,
                      .filtered = ranked->filtered,
                      .only = ranked->only,
                      .mixtures = {}};
    assert(view.components > 0);
    bool fused = counts_distances(ranked, view.components);
    for (int32_t k = 0; k < view.components; k++)
        view.scores[k] =
            there[k] == VLP_HORIZONTAL && ranked->form ? ranked->horizontal : ranked->scores[there[k]];
    rank_scores scores = {};
    tile_operands operands = {};
    if (fused) {
        operands = tile_operands_of(ranked->form, ranked->queries.rows, ranked->entity_table,
                                    ranked->entities, ranked->queries.count);
        clear(compute, above, cells);
        clear(compute, equal, cells);
        if (!compute_rank_scores(compute, &scores, ranked, &operands)) return cuda_status(compute);
    } else if (ranked->form) {
        vlp_status status = cuda_all_scores(compute, ranked->horizontal, ranked->form, &ranked->queries,
                                            ranked->entity_table, ranked->entities);
        if (status != VLP_OK) return status;
    }
    for (int32_t first = 0; first < ranked->mixture_count; first += MAX_MIXTURES) {
        int32_t left = ranked->mixture_count - first;
        view.mixtures.count = left < MAX_MIXTURES ? left : MAX_MIXTURES;
        for (int32_t m = 0; m < view.mixtures.count; m++)
            for (int32_t k = 0; k < view.components; k++)
                view.mixtures.items[m].weights[k] = ranked->mixtures[first + m].weights[there[k]];
        view.above = above + first;
        view.equal = equal + first;
        if (fused)
            rank_distances(compute, ranked, &view, &operands, &scores);
        else
            launch_rank_rows(compute, &view);
    }
    return cuda_status(compute);
}

const vlp_rank_operations cuda_rank_operations = {.counts = rank_counts};
