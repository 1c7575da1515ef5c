/* The best answers, a block a query. Candidates above the row's threshold are put into a room, which is
 * sorted out when it is full. No two candidates have the same key, so that what is kept does not depend
 * on the order in which they came. */
#include <cstdlib>

#include "compute/cuda/device.h"

/* A step looks at STEP scores of a row. Rooms of up to SHARED_ROOM candidates stand in shared memory,
 * larger ones in the device's. */
enum { SELECT_THREADS = 512, EACH = 2, STEP = SELECT_THREADS * EACH, SHARED_ROOM = 2048 };
constexpr int64_t MAX_ROOM = 1 << 30;

typedef struct candidate {
    uint64_t key;
    float horizontal, vertical;
} candidate;

/* What the kernels know of a selection. */
typedef struct select_view {
    int32_t wanted, room;
    int64_t stride;                 /* of the rows of `kept` */
    candidate *kept;                /* (rows, stride), best first between tiles */
    int32_t *counts;                /* (rows) */
    const int64_t *excluded_offset; /* (rows + 1) */
    const int32_t *excluded;
    int *bad;
} select_view;

struct vlp_selection {
    select_view view;
    int32_t capacity, rows;    /* queries: at most, and now */
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

/* Of a score of minus infinity, which nobody is kept for, with any entity: the highest such key. */
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

/* Sorts items[0 .. count), best first: a bitonic sort by the whole block. There is room for the next
 * power of two. */
__device__ static void sort_items(candidate *items, int32_t count) {
    int32_t size = 1;
    while (size < count) size *= 2;
    for (int32_t i = count + threadIdx.x; i < size; i += SELECT_THREADS) items[i].key = 0;
    for (int32_t run = 2; run <= size; run *= 2)
        for (int32_t gap = run / 2; gap > 0; gap /= 2) {
            __syncthreads();
            for (int32_t i = threadIdx.x; i < size / 2; i += SELECT_THREADS) {
                int32_t low = 2 * i - (i & (gap - 1));
                bool falling = (low & run) == 0;
                candidate left = items[low], right = items[low + gap];
                if ((left.key < right.key) != falling) continue;
                items[low] = right;
                items[low + gap] = left;
            }
        }
    __syncthreads();
}

/* What all threads of a block know of its row. */
typedef struct row_state {
    candidate *room;
    int32_t count;
    uint64_t threshold; /* keys that are not above it cannot be among the best */
} row_state;

/* Keeps the best `wanted` and raises the threshold. `used` is the block's count for all to see. */
__device__ static void sort_out(row_state *row, int32_t wanted, int32_t *used) {
    sort_items(row->room, row->count);
    if (row->count >= wanted) {
        row->count = wanted;
        row->threshold = row->room[wanted - 1].key;
    }
    if (threadIdx.x == 0) *used = row->count;
    __syncthreads();
}

template <bool SHARED>
__global__ static void __launch_bounds__(SELECT_THREADS)
    offer_rows(select_view view, vlp_score_tile tile, vlp_mixture mixture) {
    extern __shared__ candidate shared_room[];
    __shared__ int32_t used;
    int64_t query = blockIdx.x, begin = view.excluded_offset[query];
    int64_t excluded = view.excluded_offset[query + 1] - begin;
    candidate *kept = view.kept + query * view.stride;
    row_state row = {SHARED ? shared_room : kept, view.counts[query], LOWEST};
    int32_t first = tile.first, columns = tile.columns;
    const float *horizontal = tile.horizontal + query * columns;
    const float *vertical = tile.vertical ? tile.vertical + query * columns : nullptr;
    if (SHARED)
        for (int32_t i = threadIdx.x; i < row.count; i += SELECT_THREADS) row.room[i] = kept[i];
    if (threadIdx.x == 0) used = row.count;
    __syncthreads();
    if (row.count == view.wanted) row.threshold = row.room[view.wanted - 1].key;
    for (int32_t start = 0; start < columns; start += STEP) {
        if (row.count + STEP > view.room) sort_out(&row, view.wanted, &used);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int32_t e = start + i * SELECT_THREADS + static_cast<int32_t>(threadIdx.x);
            if (e >= columns) continue;
            float h = horizontal[e], v = vertical ? __fmul_rn(vertical[e], tile.scale[first + e]) : 0.0f;
            float score = __fmul_rn(mixture.horizontal, h);
            if (vertical) score = __fmaf_rn(mixture.vertical, v, score);
            uint64_t key = key_of(score, first + e);
            bool number = score == score;
            if (number && key <= row.threshold) continue;
            if (list_has(view.excluded + begin, excluded, first + e)) continue;
            if (number)
                row.room[atomicAdd(&used, 1)] = {key, h, v};
            else
                *view.bad = 1; /* whoever it is, it is the same */
        }
        __syncthreads();
        row.count = used;
        __syncthreads(); /* all have read it before somebody adds */
    }
    sort_out(&row, view.wanted, &used);
    if (SHARED)
        for (int32_t i = threadIdx.x; i < row.count; i += SELECT_THREADS) kept[i] = row.room[i];
    if (threadIdx.x == 0) view.counts[query] = row.count;
}

/* The kept candidates as answers. */
__global__ static void give_tops(vlp_top *tops, select_view view, int64_t cells) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= cells) return;
    int64_t query = i / view.wanted, place = i % view.wanted;
    if (place >= view.counts[query]) return;
    candidate one = view.kept[query * view.stride + place];
    tops[i] = {score_of(one.key), one.horizontal, one.vertical, entity_of(one.key)};
}

/* ---- The object ---------------------------------------------------------------------------------- */

/* An array on the device; nullptr when there is not enough memory. */
template <class T> static T *device_array(int64_t count) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)) == cudaSuccess)
        return static_cast<T *>(memory);
    cudaGetLastError(); /* it is told by the null, not to be found again later */
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
    view->kept = device_array<candidate>(rows * view->stride);
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

static vlp_status selection_open(vlp_compute *compute, vlp_selection **out, int32_t rows, int32_t wanted,
                                 int32_t) {
    *out = nullptr;
    int64_t room = SHARED_ROOM;
    while (room < static_cast<int64_t>(wanted) + STEP) room *= 2;
    if (room > MAX_ROOM) return fail_memory();
    vlp_selection *selection = static_cast<vlp_selection *>(calloc(1, sizeof *selection));
    if (!selection) return fail_memory();
    selection->capacity = rows;
    selection->view.wanted = wanted;
    selection->view.room = static_cast<int32_t>(room);
    selection->view.stride = room > SHARED_ROOM ? room : wanted;
    if (!allocate(selection)) {
        selection_close(compute, selection);
        return fail_memory();
    }
    *out = selection;
    return VLP_OK;
}

/* Room for so many excluded entities on both sides; nothing in it has to be kept. */
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
                                  const vlp_score_tile *tile, vlp_mixture mixture) {
    unsigned rows = static_cast<unsigned>(selection->rows);
    if (rows == 0) return cuda_status(compute);
    if (selection->view.room > SHARED_ROOM)
        LAUNCH(compute, offer_rows<false>, rows, SELECT_THREADS, 0, selection->view, *tile, mixture);
    else
        LAUNCH(compute, offer_rows<true>, rows, SELECT_THREADS, SHARED_ROOM * sizeof(candidate),
               selection->view, *tile, mixture);
    return cuda_status(compute);
}

static vlp_status selection_finish(vlp_compute *compute, vlp_best *out, vlp_selection *selection) {
    int64_t rows = selection->rows, cells = rows * selection->view.wanted;
    int bad = 0;
    *out = {selection->host_tops, selection->host_counts, selection->view.wanted};
    if (rows == 0) return cuda_status(compute);
    LAUNCH(compute, give_tops, cuda_blocks(cells, 256), 256, 0, selection->tops, selection->view, cells);
    cuda_copy(compute, &bad, selection->view.bad, sizeof bad);
    cuda_copy(compute, selection->host_counts, selection->view.counts,
              static_cast<size_t>(rows) * sizeof(int32_t));
    vlp_status status = cuda_copy(compute, selection->host_tops, selection->tops,
                                  static_cast<size_t>(cells) * sizeof(vlp_top));
    if (status == VLP_OK && bad) return cuda_fail(VLP_ERROR_FORMAT, "a score is not a number");
    return status;
}

const vlp_select_operations cuda_select_operations = {.open = selection_open,
                                                      .close = selection_close,
                                                      .start = selection_start,
                                                      .offer = selection_offer,
                                                      .finish = selection_finish};
