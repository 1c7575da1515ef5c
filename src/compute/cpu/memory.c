/* The CPU backend's table, its memory, and sorting by rows. */
#include <string.h>

#include "compute/cpu/cpu.h"

/* Twice as many floats stay in the L2 caches between the products that compute scores and the pass that
 * reads them. */
enum { TILE_SCORES = 1 << 20 };

/* Arrays are cache-line aligned, so that vectors of rows do not cross lines; the pointer to free is
 * stored in front of them. */
enum { LINE = 64 };

/* Allocations from this size on are compared with the available memory first: zeroing memory that the
 * system overcommitted would end the process. */
enum { LARGE = 64 << 20 };

static bool there_is_memory(size_t bytes) {
    int64_t available, total;
    return bytes < LARGE || !vlp_memory_available(&available, &total) || bytes <= (size_t)available;
}

static void *cpu_allocate(vlp_compute *compute, size_t bytes) {
    (void)compute;
    char *memory =
        bytes < SIZE_MAX - LINE && there_is_memory(bytes) ? vlp_alloc_zero(bytes + LINE, 1) : NULL;
    if (!memory) return NULL;
    char *line = memory + LINE - (uintptr_t)memory % LINE;
    memcpy(line - sizeof memory, &memory, sizeof memory);
    return line;
}

static void cpu_release(vlp_compute *compute, void *line) {
    (void)compute;
    if (!line) return;
    char *memory;
    memcpy(&memory, (char *)line - sizeof memory, sizeof memory);
    vlp_free(memory);
}

static void cpu_close(vlp_compute *compute) {
    if (!compute) return;
    cpu_segments_free(&compute->segments);
    cpu_release(compute, compute->scratch);
    cpu_release(compute, compute->packed);
    vlp_free(compute->marks);
    vlp_free(compute->column_of);
    cpu_blas_close(compute);
    cpu_paths_close(compute);
    vlp_free(compute);
}

static vlp_status cpu_probe(void) {
    return VLP_OK;
}

/* Pages of it are mapped by the first product that needs them. */
static vlp_status allocate_packed(vlp_compute *compute) {
    size_t floats = (size_t)compute->threads * (size_t)cpu_rounded_floats();
    compute->packed = cpu_allocate(compute, floats * sizeof(float));
    return compute->packed ? VLP_OK : vlp_fail_memory("matrix products");
}

static vlp_status cpu_open(vlp_compute **out, int32_t threads) {
    *out = NULL;
    vlp_compute *compute = vlp_alloc_zero(1, sizeof *compute);
    if (!compute) return vlp_fail_memory("the CPU backend");
    compute->threads = vlp_thread_count(threads);
    compute->modulus = cpu_modulus_choose();
    vlp_status status = cpu_blas_open(compute);
    if (status == VLP_OK && cpu_rounds_factors()) status = allocate_packed(compute);
    if (status != VLP_OK) {
        cpu_close(compute);
        return status;
    }
    *out = compute;
    return VLP_OK;
}

static vlp_status cpu_copy(vlp_compute *compute, void *to, const void *from, size_t bytes) {
    (void)compute;
    if (bytes > 0) memcpy(to, from, bytes);
    return VLP_OK;
}

/* This backend's memory is the host's. */
static const void *cpu_resident(vlp_compute *compute, const void *host, size_t bytes) {
    (void)compute, (void)bytes;
    return host;
}

static void cpu_dismiss(vlp_compute *compute, const void *memory) {
    (void)compute, (void)memory;
}

static bool cpu_available(vlp_compute *compute, int64_t *unused, int64_t *total) {
    (void)compute;
    return vlp_memory_available(unused, total);
}

static void cpu_fill_bytes(vlp_compute *compute, void *memory, int value, size_t bytes) {
    (void)compute;
    if (bytes > 0) memset(memory, value, bytes);
}

static void cpu_zero(vlp_compute *compute, void *memory, size_t bytes) {
    cpu_fill_bytes(compute, memory, 0, bytes);
}

static const vlp_memory_operations memory_operations = {.allocate = cpu_allocate,
                                                        .release = cpu_release,
                                                        .upload = cpu_copy,
                                                        .download = cpu_copy,
                                                        .zero = cpu_zero,
                                                        .fill_bytes = cpu_fill_bytes,
                                                        .resident = cpu_resident,
                                                        .dismiss = cpu_dismiss,
                                                        .available = cpu_available};

const vlp_backend vlp_cpu_backend = {.name = "cpu",
                                     .stride = 1,
                                     .tile = TILE_SCORES,
                                     .shared_memory = true,
                                     .probe = cpu_probe,
                                     .open = cpu_open,
                                     .close = cpu_close,
                                     .memory = &memory_operations,
                                     .steps = &cpu_step_operations,
                                     .blas = &cpu_blas_operations,
                                     .rows = &cpu_row_operations,
                                     .transform = &cpu_transform_operations,
                                     .pairs = &cpu_pair_operations,
                                     .sample = &cpu_sample_operations,
                                     .loss = &cpu_loss_operations,
                                     .scores = &cpu_score_operations,
                                     .aggregator = &cpu_aggregator_operations,
                                     .optimizer = &cpu_optimizer_operations,
                                     .rank = &cpu_rank_operations,
                                     .select = &cpu_select_operations,
                                     .paths = &cpu_path_operations};

float *cpu_scratch(vlp_compute *compute, int64_t count) {
    if (count > compute->scratch_capacity) {
        /* Nothing in it has to be kept. */
        cpu_release(compute, compute->scratch);
        compute->scratch_capacity = 0;
        compute->scratch = cpu_allocate(compute, (size_t)count * sizeof(float));
        if (!compute->scratch) {
            vlp_fail_memory("working memory");
            return NULL;
        }
        compute->scratch_capacity = count;
    }
    return compute->scratch;
}

vlp_status cpu_segments_make(cpu_segments *segments, const int32_t *ids, int64_t count, int32_t rows) {
    VLP_TRY(vlp_grow(&segments->order, &segments->order_capacity, count + 1, sizeof(int32_t), "pairs"));
    VLP_TRY(vlp_grow(&segments->counts, &segments->counts_capacity, (int64_t)rows + 1, sizeof(int64_t),
                     "pairs"));
    int64_t *counts = segments->counts, used = 0;
    memset(counts, 0, ((size_t)rows + 1) * sizeof *counts);
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= 0) counts[ids[i] + 1]++;
    for (int32_t row = 0; row < rows; row++) {
        used += counts[row + 1] > 0;
        counts[row + 1] += counts[row];
    }
    VLP_TRY(vlp_grow(&segments->row, &segments->row_capacity, used + 1, sizeof(int32_t), "pairs"));
    VLP_TRY(vlp_grow(&segments->start, &segments->start_capacity, used + 1, sizeof(int64_t), "pairs"));
    segments->segments = 0;
    for (int32_t row = 0; row < rows; row++)
        if (counts[row + 1] > counts[row]) {
            segments->row[segments->segments] = row;
            segments->start[segments->segments++] = counts[row];
        }
    segments->start[segments->segments] = counts[rows];
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= 0) segments->order[counts[ids[i]]++] = (int32_t)i;
    return VLP_OK;
}

void cpu_segments_free(cpu_segments *segments) {
    vlp_free(segments->order);
    vlp_free(segments->row);
    vlp_free(segments->start);
    vlp_free(segments->counts);
}
