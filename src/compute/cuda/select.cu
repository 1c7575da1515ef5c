/* The best answers, one block per query. Candidates above the row's threshold are appended to a buffer,
 * which is sorted and cut to the best when it is full. No two candidates have the same key, so that
 * what is kept does not depend on the order in which they came. */
#include <cstdlib>

#include "compute/cuda/device.h"

/* A step reads STEP scores of a row. Buffers of up to SHARED_CAPACITY candidates of at most
 * SHARED_CANDIDATE bytes are in shared memory, larger ones in the device's. */
enum { SELECT_THREADS = 512, EACH = 2, STEP = SELECT_THREADS * EACH, SHARED_CAPACITY = 2048 };
enum { SHARED_CANDIDATE = 16 };
constexpr int64_t MAX_CAPACITY = 1 << 30;

/* parts: the scores of the COUNT components of the selection. */
template <int COUNT> struct candidate {
    uint64_t key;
    float parts[COUNT];
};

/* What the kernels know of a selection. */
typedef struct select_view {
    int32_t wanted, capacity;       /* capacity: of a row's buffer */
    int64_t stride;                 /* of the rows of `kept` */
    void *kept;                     /* (rows, stride) candidates, best first between tiles */
    int32_t *counts;                /* (rows) */
    const int64_t *excluded_offset; /* (rows + 1) */
    const int32_t *excluded;
    int *bad;
} select_view;

/* A tile by the components of the selection. */
template <int COUNT> struct tile_view {
    int32_t first, columns;
    vlp_component_scores components[COUNT];
    float weights[COUNT];
};

struct vlp_selection {
    select_view view;
    int32_t capacity, rows; /* queries: at most, and now */
    int32_t component_count;
    int components[VLP_MAX_COMPONENTS];
    int64_t *excluded_offset;  /* (capacity + 1) on the device */
    int32_t *excluded;         /* on the device, grown as asked for */
    int64_t excluded_capacity; /* of both lists */
    vlp_top *tops;             /* (capacity, wanted) on the device */
    /* The same on the host. */
    int64_t *host_offset;
    int32_t *host_excluded, *host_counts;
    vlp_top *host_tops;
};

/* ---- Keys ---------------------------------------------------------------------------------------- */

/* The highest key of a score of minus infinity, with any entity: such scores are not kept. */
constexpr uint64_t LOWEST = 0x007fffffffffffffu;

/* Higher for a higher score, and for the same score for an earlier entity. */
__device__ static uint64_t key_of(float score, int32_t entity) {
    uint32_t bits =
        __float_as_uint(score == 0 ? 0.0f : score); /* zeros are equal, whatever their sign */
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return static_cast<uint64_t>(bits) << 32 | ~static_cast<uint32_t>(entity);
}

__device__ static float score_of(uint64_t key) {
    uint32_t bits = static_cast<uint32_t>(key >> 32);
    return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

__device__ static int32_t entity_of(uint64_t key) {
    return static_cast<int32_t>(~static_cast<uint32_t>(key));
}

/* ---- One row ------------------------------------------------------------------------------------- */

/* Sorts items[0 .. count), best first: a bitonic sort by the whole block. The capacity is at least the
 * next power of two. */
template <int COUNT> __device__ static void sort_items(candidate<COUNT> *items, int32_t count) {
    int32_t size = 1;
    while (size < count) size *= 2;
    for (int32_t i = count + threadIdx.x; i < size; i += SELECT_THREADS) items[i].key = 0;
    for (int32_t run = 2; run <= size; run *= 2)
        for (int32_t gap = run / 2; gap > 0; gap /= 2) {
            __syncthreads();
            for (int32_t i = threadIdx.x; i < size / 2; i += SELECT_THREADS) {
                int32_t low = 2 * i - (i & (gap - 1));
                bool falling = (low & run) == 0;
                candidate<COUNT> left = items[low], right = items[low + gap];
                if ((left.key < right.key) != falling) continue;
                items[low] = right;
                items[low + gap] = left;
            }
        }
    __syncthreads();
}

/* What all threads of a block know of its row. */
template <int COUNT> struct row_state {
    candidate<COUNT> *buffer;
    int32_t count;
    uint64_t threshold; /* keys that are not above it cannot be among the best */
};

/* Keeps the best `wanted` and raises the threshold. `used` is the block's count, in shared memory. */
template <int COUNT>
__device__ static void keep_best(row_state<COUNT> *row, int32_t wanted, int32_t *used) {
    sort_items<COUNT>(row->buffer, row->count);
    if (row->count >= wanted) {
        row->count = wanted;
        row->threshold = row->buffer[wanted - 1].key;
    }
    if (threadIdx.x == 0) *used = row->count;
    __syncthreads();
}

/* The scores of one entity by component, from the query's rows of the tile; returns their mixture. */
template <int COUNT>
__device__ static float mixed_at(float parts[COUNT], const tile_view<COUNT> &tile,
                                 const float *const rows[COUNT], int32_t e) {
    float score = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const float *scale = tile.components[k].scale;
        float part = scale ? __fmul_rn(rows[k][e], scale[tile.first + e]) : rows[k][e];
        score = k == 0 ? __fmul_rn(tile.weights[k], part) : __fmaf_rn(tile.weights[k], part, score);
        parts[k] = part;
    }
    return score;
}

template <int COUNT, bool SHARED>
__global__ static void __launch_bounds__(SELECT_THREADS)
    offer_rows(select_view view, const __grid_constant__ tile_view<COUNT> tile) {
    extern __shared__ uint64_t shared_buffer[];
    __shared__ int32_t used;
    int64_t query = blockIdx.x, begin = view.excluded_offset[query];
    int64_t excluded = view.excluded_offset[query + 1] - begin;
    candidate<COUNT> *kept = static_cast<candidate<COUNT> *>(view.kept) + query * view.stride;
    row_state<COUNT> row = {SHARED ? reinterpret_cast<candidate<COUNT> *>(shared_buffer) : kept,
                            view.counts[query], LOWEST};
    int32_t first = tile.first, columns = tile.columns;
    const float *rows[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        rows[k] = tile.components[k].rows + query * tile.components[k].stride;
    if (SHARED)
        for (int32_t i = threadIdx.x; i < row.count; i += SELECT_THREADS) row.buffer[i] = kept[i];
    if (threadIdx.x == 0) used = row.count;
    __syncthreads();
    if (row.count == view.wanted) row.threshold = row.buffer[view.wanted - 1].key;
    for (int32_t start = 0; start < columns; start += STEP) {
        if (row.count + STEP > view.capacity) keep_best<COUNT>(&row, view.wanted, &used);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int32_t e = start + i * SELECT_THREADS + static_cast<int32_t>(threadIdx.x);
            if (e >= columns) continue;
            candidate<COUNT> one;
            float score = mixed_at<COUNT>(one.parts, tile, rows, e);
            one.key = key_of(score, first + e);
            bool number = score == score;
            if (number && one.key <= row.threshold) continue;
            if (list_has(view.excluded + begin, excluded, first + e)) continue;
            if (number)
                row.buffer[atomicAdd(&used, 1)] = one;
            else
                *view.bad = 1; /* a benign race: all write the same */
        }
        __syncthreads();
        row.count = used;
        __syncthreads(); /* all have read it before the next one adds */
    }
    keep_best<COUNT>(&row, view.wanted, &used);
    if (SHARED)
        for (int32_t i = threadIdx.x; i < row.count; i += SELECT_THREADS) kept[i] = row.buffer[i];
    if (threadIdx.x == 0) view.counts[query] = row.count;
}

/* Which component each part of a candidate is of. */
template <int COUNT> struct part_list { int components[COUNT]; };

/* The kept candidates as answers. */
template <int COUNT>
__global__ static void give_tops(vlp_top *tops, select_view view, part_list<COUNT> list, int64_t cells) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= cells) return;
    int64_t query = i / view.wanted, place = i % view.wanted;
    if (place >= view.counts[query]) return;
    candidate<COUNT> one = static_cast<const candidate<COUNT> *>(view.kept)[query * view.stride + place];
    vlp_top top = {.score = score_of(one.key), .parts = {}, .entity = entity_of(one.key)};
#pragma unroll
    for (int k = 0; k < COUNT; k++) top.parts[list.components[k]] = one.parts[k];
    tops[i] = top;
}

/* ---- By number of components --------------------------------------------------------------------- */

template <int COUNT>
static void launch_offer(vlp_compute *compute, const vlp_selection *selection,
                         const vlp_score_tile *tile, const vlp_mixture *mixture) {
    constexpr bool fits = sizeof(candidate<COUNT>) <= SHARED_CANDIDATE;
    unsigned rows = static_cast<unsigned>(selection->rows);
    tile_view<COUNT> view = {tile->first, tile->columns, {}, {}};
    for (int k = 0; k < COUNT; k++) {
        view.components[k] = tile->components[selection->components[k]];
        view.weights[k] = mixture->weights[selection->components[k]];
    }
    if constexpr (fits)
        if (selection->view.capacity <= SHARED_CAPACITY) {
            LAUNCH(compute, (offer_rows<COUNT, true>), rows, SELECT_THREADS,
                   SHARED_CAPACITY * sizeof(candidate<COUNT>), selection->view, view);
            return;
        }
    LAUNCH(compute, (offer_rows<COUNT, false>), rows, SELECT_THREADS, 0, selection->view, view);
}

template <int COUNT>
static void launch_give(vlp_compute *compute, const vlp_selection *selection, int64_t cells) {
    part_list<COUNT> list;
    for (int k = 0; k < COUNT; k++) list.components[k] = selection->components[k];
    LAUNCH(compute, give_tops<COUNT>, cuda_blocks(cells, 256), 256, 0, selection->tops, selection->view,
           list, cells);
}

/* The functions for a number of components. */
typedef struct select_kernels {
    size_t candidate_size;
    void (*offer)(vlp_compute *compute, const vlp_selection *selection, const vlp_score_tile *tile,
                  const vlp_mixture *mixture);
    void (*give)(vlp_compute *compute, const vlp_selection *selection, int64_t cells);
} select_kernels;

template <int COUNT> constexpr select_kernels kernels_for() {
    return {sizeof(candidate<COUNT>), launch_offer<COUNT>, launch_give<COUNT>};
}

static const select_kernels kernels[VLP_MAX_COMPONENTS] = {kernels_for<1>(), kernels_for<2>(),
                                                           kernels_for<3>(), kernels_for<4>()};

static const select_kernels *kernels_of(const vlp_selection *selection) {
    return &kernels[selection->component_count - 1];
}

/* ---- The object ---------------------------------------------------------------------------------- */

/* An array on the device; nullptr when there is not enough memory. */
template <class T> static T *device_array(int64_t count) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)) == cudaSuccess)
        return static_cast<T *>(memory);
    cudaGetLastError(); /* the null pointer reports it; the next check is not to find it again */
    return nullptr;
}

template <class T> static T *host_array(int64_t count) {
    return static_cast<T *>(malloc(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)));
}

static vlp_status fail_memory(void) {
    return cuda_fail(VLP_ERROR_MEMORY, "out of memory for the best answers");
}

static bool allocate(vlp_selection *selection) {
    select_view *view = &selection->view;
    int64_t rows = selection->capacity, cells = rows * view->wanted;
    int64_t kept = rows * view->stride * static_cast<int64_t>(kernels_of(selection)->candidate_size);
    view->kept = device_array<char>(kept);
    view->counts = device_array<int32_t>(rows);
    view->bad = device_array<int>(1);
    selection->excluded_offset = device_array<int64_t>(rows + 1);
    selection->tops = device_array<vlp_top>(cells);
    selection->host_offset = host_array<int64_t>(rows + 1);
    selection->host_counts = host_array<int32_t>(rows);
    selection->host_tops = host_array<vlp_top>(cells);
    view->excluded_offset = selection->excluded_offset;
    return view->kept && view->counts && view->bad && selection->excluded_offset && selection->tops &&
           selection->host_offset && selection->host_counts && selection->host_tops;
}

static void selection_close(vlp_compute *compute, vlp_selection *selection) {
    if (!selection) return;
    cuda_note(compute, cudaStreamSynchronize(compute->stream), "the end of the work");
    void *there[] = {selection->view.kept,       selection->view.counts, selection->view.bad,
                     selection->excluded_offset, selection->excluded,    selection->tops};
    void *here[] = {selection->host_offset, selection->host_excluded, selection->host_counts,
                    selection->host_tops};
    for (void *memory : there) cuda_note(compute, cudaFree(memory), "giving memory back");
    for (void *memory : here) free(memory);
    free(selection);
}

static vlp_status selection_open(vlp_compute *compute, vlp_selection **out,
                                 const vlp_select_options *options) {
    *out = nullptr;
    int64_t capacity = SHARED_CAPACITY;
    while (capacity < static_cast<int64_t>(options->wanted) + STEP) capacity *= 2;
    if (capacity > MAX_CAPACITY) return fail_memory();
    vlp_selection *selection = static_cast<vlp_selection *>(calloc(1, sizeof *selection));
    if (!selection) return fail_memory();
    for (int c = 0; c < VLP_MAX_COMPONENTS; c++)
        if (options->components >> c & 1) selection->components[selection->component_count++] = c;
    assert(selection->component_count > 0);
    bool shared =
        capacity <= SHARED_CAPACITY && kernels_of(selection)->candidate_size <= SHARED_CANDIDATE;
    selection->capacity = options->rows;
    selection->view.wanted = options->wanted;
    selection->view.capacity = static_cast<int32_t>(capacity);
    selection->view.stride = shared ? options->wanted : capacity;
    if (!allocate(selection)) {
        selection_close(compute, selection);
        return fail_memory();
    }
    *out = selection;
    return VLP_OK;
}

/* Capacity for `total` excluded entities on host and device; their contents are lost. */
static bool reserve_excluded(vlp_compute *compute, vlp_selection *selection, int64_t total) {
    if (total <= selection->excluded_capacity) return true;
    cuda_note(compute, cudaStreamSynchronize(compute->stream), "the end of the work");
    cuda_note(compute, cudaFree(selection->excluded), "giving memory back");
    free(selection->host_excluded);
    selection->excluded_capacity = 0;
    selection->excluded = device_array<int32_t>(2 * total);
    selection->host_excluded = host_array<int32_t>(2 * total);
    if (!selection->excluded || !selection->host_excluded) return false;
    selection->excluded_capacity = 2 * total;
    return true;
}

static vlp_status selection_start(vlp_compute *compute, vlp_selection *selection,
                                  const vlp_excluded *excluded, int32_t rows) {
    int64_t total = 0;
    for (int32_t i = 0; i < rows; i++) {
        selection->host_offset[i] = total;
        total += excluded[i].count;
    }
    selection->host_offset[rows] = total;
    if (!reserve_excluded(compute, selection, total)) return fail_memory();
    for (int32_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < excluded[i].count; j++)
            selection->host_excluded[selection->host_offset[i] + j] = excluded[i].items[j];
    selection->rows = rows;
    selection->view.excluded = selection->excluded;
    size_t count = static_cast<size_t>(rows);
    cuda_note(compute,
              cudaMemsetAsync(selection->view.counts, 0, count * sizeof(int32_t), compute->stream),
              "clearing memory");
    cuda_note(compute, cudaMemsetAsync(selection->view.bad, 0, sizeof(int), compute->stream),
              "clearing memory");
    cuda_copy(compute, selection->excluded_offset, selection->host_offset,
              (count + 1) * sizeof(int64_t));
    return cuda_copy(compute, selection->excluded, selection->host_excluded,
                     static_cast<size_t>(total) * sizeof(int32_t));
}

static vlp_status selection_offer(vlp_compute *compute, vlp_selection *selection,
                                  const vlp_score_tile *tile, const vlp_mixture *mixture) {
    if (selection->rows > 0) kernels_of(selection)->offer(compute, selection, tile, mixture);
    return cuda_status(compute);
}

static vlp_status selection_finish(vlp_compute *compute, vlp_best *out, vlp_selection *selection) {
    int64_t rows = selection->rows, cells = rows * selection->view.wanted;
    int bad = 0;
    *out = {selection->host_tops, selection->host_counts, selection->view.wanted};
    if (rows == 0) return cuda_status(compute);
    kernels_of(selection)->give(compute, selection, cells);
    cuda_copy(compute, &bad, selection->view.bad, sizeof bad);
    cuda_copy(compute, selection->host_counts, selection->view.counts,
              static_cast<size_t>(rows) * sizeof(int32_t));
    vlp_status status = cuda_copy(compute, selection->host_tops, selection->tops,
                                  static_cast<size_t>(cells) * sizeof(vlp_top));
    if (status == VLP_OK && bad) return cuda_fail(VLP_ERROR_DIVERGED, "a score is not a number");
    return status;
}

const vlp_select_operations cuda_select_operations = {.open = selection_open,
                                                      .close = selection_close,
                                                      .start = selection_start,
                                                      .offer = selection_offer,
                                                      .finish = selection_finish};
