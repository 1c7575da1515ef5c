/* Sorts items by the row they belong to, in place of atomics. The sort is stable: sums over a row are
 * computed in the order of its items. */
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "compute/cuda/device.h"

__device__ static uint32_t key_of(int32_t id, uint32_t rows) {
    return id < 0 ? rows : static_cast<uint32_t>(id);
}

/* Few items: one block sorts them all. */
template <int THREADS, int EACH>
__global__ static void __launch_bounds__(THREADS)
    sort_block(uint32_t *keys_out, uint32_t *order, const int32_t *ids, int count, uint32_t rows,
               int bits) {
    using Sort = cub::BlockRadixSort<uint32_t, THREADS, EACH, uint32_t>;
    __shared__ typename Sort::TempStorage storage;
    uint32_t keys[EACH], items[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int at = static_cast<int>(threadIdx.x) * EACH + i;
        keys[i] = at < count ? key_of(ids[at], rows) : ALL_LANES;
        items[i] = static_cast<uint32_t>(at);
    }
    /* The padding has all bits set; the sort is stable, so that it stays after the masked items. */
    Sort(storage).Sort(keys, items, 0, bits);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int at = static_cast<int>(threadIdx.x) * EACH + i;
        if (at >= count) continue;
        keys_out[at] = keys[i];
        order[at] = items[i];
    }
}

__global__ static void make_keys(uint32_t *keys, uint32_t *items, const int32_t *ids, int64_t count,
                                 uint32_t rows) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    keys[i] = key_of(ids[i], rows);
    items[i] = static_cast<uint32_t>(i);
}

static bool sort_many(vlp_compute *compute, uint32_t *keys, uint32_t *order, const int32_t *ids,
                      int64_t count, uint32_t rows, int bits) {
    uint32_t *keys_in = scratch<uint32_t>(compute, SLOT_SORT_KEYS_IN, count);
    uint32_t *items_in = scratch<uint32_t>(compute, SLOT_SORT_ITEMS_IN, count);
    size_t bytes = 0;
    if (!keys_in || !items_in ||
        !cuda_note(compute,
                   cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys_in, keys, items_in, order, count,
                                                   0, bits, compute->stream),
                   "preparing a sort"))
        return false;
    void *work = cuda_scratch(compute, SLOT_SORT_WORK, bytes);
    if (!work) return false;
    LAUNCH(compute, make_keys, cuda_blocks(count, 256), 256, 0, keys_in, items_in, ids, count, rows);
    return cuda_note(compute,
                     cub::DeviceRadixSort::SortPairs(work, bytes, keys_in, keys, items_in, order, count,
                                                     0, bits, compute->stream),
                     "sorting");
}

bool cuda_sort(vlp_compute *compute, cuda_segments *out, const int32_t *ids, int64_t count, int32_t rows,
               cuda_slot keys_slot, cuda_slot order_slot) {
    uint32_t *keys = scratch<uint32_t>(compute, keys_slot, count);
    uint32_t *order = scratch<uint32_t>(compute, order_slot, count);
    if (!keys || !order) return false;
    out->keys = keys;
    out->order = order;
    int bits = 1; /* keys are 0 .. rows */
    while (bits < 32 && (static_cast<int64_t>(1) << bits) <= rows) bits++;
    int items = static_cast<int>(count);
    if (count == 0) return true;
    if (count <= 1024)
        LAUNCH(compute, (sort_block<256, 4>), 1, 256, 0, keys, order, ids, items,
               static_cast<uint32_t>(rows), bits);
    else if (count <= 2048)
        LAUNCH(compute, (sort_block<512, 4>), 1, 512, 0, keys, order, ids, items,
               static_cast<uint32_t>(rows), bits);
    else if (count <= 8192)
        LAUNCH(compute, (sort_block<1024, 8>), 1, 1024, 0, keys, order, ids, items,
               static_cast<uint32_t>(rows), bits);
    else
        return sort_many(compute, keys, order, ids, count, static_cast<uint32_t>(rows), bits);
    return !compute->failed;
}
