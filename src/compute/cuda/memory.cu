/* The CUDA backend: its table of operations, its memory, and its failures. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compute/cuda/cuda.h"

/* ---- Failures ------------------------------------------------------------------------------------ */

vlp_fail_function cuda_fail_function;

vlp_status cuda_fail(vlp_status status, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return cuda_fail_function(status, message);
}

bool cuda_note(vlp_compute *compute, cudaError_t error, const char *what) {
    if (error == cudaSuccess) return true;
    if (!compute->failed) {
        compute->failed = true;
        compute->no_memory = error == cudaErrorMemoryAllocation;
        snprintf(compute->message, sizeof compute->message, "CUDA failed in %s: %s", what,
                 cudaGetErrorString(error));
    }
    return false;
}

vlp_status cuda_status(vlp_compute *compute) {
    if (!compute->failed) return VLP_OK;
    return cuda_fail(compute->no_memory ? VLP_ERROR_MEMORY : VLP_ERROR_DEVICE, "%s", compute->message);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

void cuda_wait(vlp_compute *compute) {
    for (cudaStream_t stream : compute->streams)
        cuda_note(compute, cudaStreamSynchronize(stream), "waiting for a stream");
}

static void *cuda_allocate(vlp_compute *compute, size_t bytes) {
    void *memory = nullptr;
    if (bytes == 0) bytes = 1;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError(); /* cleared: the caller reports it */
        return nullptr;
    }
    cuda_note(compute, cudaMemsetAsync(memory, 0, bytes, compute->stream), "clearing memory");
    return memory;
}

static void cuda_release(vlp_compute *compute, void *memory) {
    if (!memory) return;
    compute->pairs_of = nullptr; /* another array may get this address */
    cuda_wait(compute);
    cuda_path_forget(compute, memory);
    cuda_note(compute, cudaFree(memory), "freeing memory");
}

vlp_status cuda_copy(vlp_compute *compute, void *to, const void *from, size_t bytes) {
    if (bytes > 0) {
        /* Either side may be host or device. */
        cuda_note(compute, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, compute->stream),
                  "copying");
        cuda_note(compute, cudaStreamSynchronize(compute->stream), "waiting for a copy");
    }
    return cuda_status(compute);
}

static void cuda_fill_bytes(vlp_compute *compute, void *memory, int value, size_t bytes) {
    if (bytes > 0)
        cuda_note(compute, cudaMemsetAsync(memory, value, bytes, compute->stream), "filling memory");
}

static void cuda_zero(vlp_compute *compute, void *memory, size_t bytes) {
    cuda_fill_bytes(compute, memory, 0, bytes);
}

static const void *cuda_resident(vlp_compute *compute, const void *host, size_t bytes) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    cuda_copy(compute, memory, host, bytes);
    return memory;
}

static void cuda_dismiss(vlp_compute *compute, const void *memory) {
    cuda_release(compute, const_cast<void *>(memory));
}

static bool cuda_available(vlp_compute *compute, int64_t *unused, int64_t *total) {
    size_t free_bytes = 0, all_bytes = 0;
    *unused = *total = 0;
    if (!cuda_note(compute, cudaMemGetInfo(&free_bytes, &all_bytes), "querying the memory"))
        return false;
    *unused = static_cast<int64_t>(free_bytes);
    *total = static_cast<int64_t>(all_bytes);
    return true;
}

void *cuda_scratch(vlp_compute *compute, cuda_slot slot, size_t bytes) {
    cuda_buffer *buffer = &compute->slots[compute->forked][slot];
    if (bytes == 0) bytes = 1;
    if (bytes <= buffer->bytes) return buffer->memory;
    /* The contents are not kept, but kernels in flight may still read them. */
    cuda_wait(compute);
    cudaFree(buffer->memory);
    buffer->memory = nullptr;
    buffer->bytes = 0;
    compute->generation++;
    size_t larger = bytes + bytes / 8;
    if (cudaMalloc(&buffer->memory, larger) != cudaSuccess) {
        cudaGetLastError();
        larger = bytes;
        if (!cuda_note(compute, cudaMalloc(&buffer->memory, larger), "allocating working memory"))
            return buffer->memory = nullptr;
    }
    buffer->bytes = larger;
    return buffer->memory;
}

/* ---- Opening ------------------------------------------------------------------------------------- */

static vlp_status cuda_probe(void) {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        cudaGetLastError();
        return cuda_fail(VLP_ERROR_DEVICE, "no GPU was found (CUDA says: %s); use the device cpu",
                         error != cudaSuccess ? cudaGetErrorString(error) : "there is none");
    }
    int device = 0;
    cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess ||
        (error = cudaGetDeviceProperties(&properties, device)) != cudaSuccess)
        return cuda_fail(VLP_ERROR_DEVICE, "the GPU does not answer (CUDA says: %s); use the device cpu",
                         cudaGetErrorString(error));
    if (properties.major < 8)
        return cuda_fail(VLP_ERROR_DEVICE,
                         "the GPU (%s) is of compute capability %d.%d and vlp needs 8.0; use the "
                         "device cpu",
                         properties.name, properties.major, properties.minor);
    return cuda_blas_load();
}

static void cuda_close(vlp_compute *compute) {
    if (!compute) return;
    for (cudaStream_t stream : compute->streams)
        if (stream) cudaStreamSynchronize(stream);
    cuda_blas_close(compute);
    cuda_path_forget(compute, nullptr);
    for (int i = 0; i < 2 * SLOTS; i++) cudaFree(compute->slots[i / SLOTS][i % SLOTS].memory);
    for (int i = 0; i < RING; i++)
        if (compute->events[i]) cudaEventDestroy(compute->events[i]);
    if (compute->ring) cudaFreeHost(compute->ring);
    cudaFree(compute->values);
    if (compute->fork_event) cudaEventDestroy(compute->fork_event);
    if (compute->join_event) cudaEventDestroy(compute->join_event);
    for (cudaStream_t stream : compute->streams)
        if (stream) cudaStreamDestroy(stream);
    free(compute);
}

/* How much working memory is planned for: by the device, not by what is free at the moment, so that
 * the same training has the same bits. */
static size_t planned_memory(vlp_compute *compute) {
    size_t unused = 0, total = 0;
    const char *given = getenv("VLP_CUDA_MEMORY");
    cuda_note(compute, cudaMemGetInfo(&unused, &total), "querying the memory");
    return given && *given ? static_cast<size_t>(strtoull(given, nullptr, 10)) << 20 : total;
}

static void open_parts(vlp_compute *compute) {
    int device = 0, limit = 0;
    cuda_note(compute, cudaGetDevice(&device), "choosing the device");
    cuda_note(compute,
              cudaDeviceGetAttribute(&compute->multiprocessors, cudaDevAttrMultiProcessorCount, device),
              "querying the device");
    cuda_note(compute, cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
              "querying the device");
    compute->shared_limit = static_cast<size_t>(limit);
    compute->memory = planned_memory(compute);
    /* A fork has many small kernels: by priority they run between the blocks of large ones. */
    int low = 0, high = 0;
    cuda_note(compute, cudaDeviceGetStreamPriorityRange(&low, &high), "querying the device");
    for (int i = 0; i < 2; i++)
        cuda_note(compute,
                  cudaStreamCreateWithPriority(&compute->streams[i], cudaStreamNonBlocking,
                                               i == 0 ? low : high),
                  "creating a stream");
    compute->stream = compute->streams[0];
    for (cudaEvent_t *event : {&compute->fork_event, &compute->join_event})
        cuda_note(compute, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "creating an event");
    cuda_note(compute, cudaMalloc(&compute->values, sizeof(vlp_step_values)), "allocating memory");
    cuda_note(compute, cudaMallocHost(&compute->ring, RING * sizeof(vlp_step_values)),
              "allocating pinned memory");
    for (int i = 0; i < RING; i++)
        cuda_note(compute, cudaEventCreateWithFlags(&compute->events[i], cudaEventDisableTiming),
                  "creating an event");
    if (!compute->failed)
        cuda_note(compute, cudaMemsetAsync(compute->values, 0, sizeof(vlp_step_values), compute->stream),
                  "clearing memory");
}

static vlp_status cuda_open(vlp_compute **out, int32_t) {
    *out = nullptr;
    vlp_status status = cuda_probe();
    if (status != VLP_OK) return status;
    vlp_compute *compute = static_cast<vlp_compute *>(calloc(1, sizeof *compute));
    if (!compute) return cuda_fail(VLP_ERROR_MEMORY, "out of memory for the CUDA backend");
    const char *eager = getenv("VLP_CUDA_EAGER");
    compute->eager = eager && *eager && strcmp(eager, "0") != 0;
    open_parts(compute);
    status = cuda_status(compute);
    if (status == VLP_OK) status = cuda_blas_open(compute);
    if (status != VLP_OK) {
        cuda_close(compute);
        return status;
    }
    *out = compute;
    return VLP_OK;
}

/* ---- The table ----------------------------------------------------------------------------------- */

static const vlp_memory_operations memory_operations = {.allocate = cuda_allocate,
                                                        .release = cuda_release,
                                                        .upload = cuda_copy,
                                                        .download = cuda_copy,
                                                        .zero = cuda_zero,
                                                        .fill_bytes = cuda_fill_bytes,
                                                        .resident = cuda_resident,
                                                        .dismiss = cuda_dismiss,
                                                        .available = cuda_available};

static const vlp_bf16_operations bf16_operations = {.product = cuda_product_bf16,
                                                    .convert_rows = cuda_convert_rows,
                                                    .pair_update = cuda_pair_update,
                                                    .pair_norms = cuda_pair_norms};

static const vlp_backend backend = {.name = "cuda",
                                    .stride = 32,
                                    .tile = 32 << 20,
                                    .shared_memory = false,
                                    .position_invariant_scores = true,
                                    .probe = cuda_probe,
                                    .open = cuda_open,
                                    .close = cuda_close,
                                    .memory = &memory_operations,
                                    .steps = &cuda_step_operations,
                                    .blas = &cuda_blas_operations,
                                    .rows = &cuda_row_operations,
                                    .transform = &cuda_transform_operations,
                                    .pairs = &cuda_pair_operations,
                                    .sample = &cuda_sample_operations,
                                    .loss = &cuda_loss_operations,
                                    .scores = &cuda_score_operations,
                                    .aggregator = &cuda_aggregator_operations,
                                    .optimizer = &cuda_optimizer_operations,
                                    .rank = &cuda_rank_operations,
                                    .select = &cuda_select_operations,
                                    .bf16 = &bf16_operations,
                                    .paths = &cuda_path_operations};

extern "C" __attribute__((visibility("default"))) const vlp_backend *
vlp_backend_load(int32_t version, vlp_fail_function fail) {
    if (version != VLP_BACKEND_VERSION) return nullptr;
    cuda_fail_function = fail;
    return &backend;
}
