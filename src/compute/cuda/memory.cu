/* The CUDA backend's table, its memory, and what happens when a call fails. */
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
        cuda_note(compute, cudaStreamSynchronize(stream), "the end of the work");
}

static void *cuda_allocate(vlp_compute *compute, size_t bytes) {
    void *memory = nullptr;
    if (bytes == 0) bytes = 1;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError(); /* it is the caller's to say, not to be found again later */
        return nullptr;
    }
    cuda_note(compute, cudaMemsetAsync(memory, 0, bytes, compute->stream), "clearing memory");
    return memory;
}

static void cuda_release(vlp_compute *compute, void *memory) {
    if (!memory) return;
    compute->pairs_of = nullptr; /* another array may come to stand there */
    cuda_wait(compute);
    cuda_note(compute, cudaFree(memory), "giving memory back");
}

vlp_status cuda_copy(vlp_compute *compute, void *to, const void *from, size_t bytes) {
    if (bytes > 0) {
        /* Either side may be host or device. */
        cuda_note(compute, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, compute->stream),
                  "copying");
        cuda_note(compute, cudaStreamSynchronize(compute->stream), "the work before a copy");
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

static bool cuda_memory(vlp_compute *compute, int64_t *unused, int64_t *total) {
    size_t free_bytes = 0, all_bytes = 0;
    *unused = *total = 0;
    if (!cuda_note(compute, cudaMemGetInfo(&free_bytes, &all_bytes), "asking for the memory"))
        return false;
    *unused = static_cast<int64_t>(free_bytes);
    *total = static_cast<int64_t>(all_bytes);
    return true;
}

void *cuda_scratch(vlp_compute *compute, cuda_slot slot, size_t bytes) {
    cuda_buffer *buffer = &compute->slots[compute->aside][slot];
    if (bytes == 0) bytes = 1;
    if (bytes <= buffer->bytes) return buffer->memory;
    /* Nothing in it has to be kept, but work under way may still read it. */
    cuda_wait(compute);
    cudaFree(buffer->memory);
    buffer->memory = nullptr;
    buffer->bytes = 0;
    compute->generation++;
    size_t larger = bytes + bytes / 8;
    if (cudaMalloc(&buffer->memory, larger) != cudaSuccess) {
        cudaGetLastError();
        larger = bytes;
        if (!cuda_note(compute, cudaMalloc(&buffer->memory, larger), "taking working memory"))
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
    for (int i = 0; i < 2 * SLOTS; i++) cudaFree(compute->slots[i / SLOTS][i % SLOTS].memory);
    for (int i = 0; i < RING; i++)
        if (compute->events[i]) cudaEventDestroy(compute->events[i]);
    if (compute->ring) cudaFreeHost(compute->ring);
    cudaFree(compute->values);
    if (compute->forked) cudaEventDestroy(compute->forked);
    if (compute->concat) cudaEventDestroy(compute->concat);
    for (cudaStream_t stream : compute->streams)
        if (stream) cudaStreamDestroy(stream);
    free(compute);
}

static void open_parts(vlp_compute *compute) {
    int device = 0, limit = 0;
    cuda_note(compute, cudaGetDevice(&device), "choosing the device");
    cuda_note(compute,
              cudaDeviceGetAttribute(&compute->multiprocessors, cudaDevAttrMultiProcessorCount, device),
              "asking the device");
    cuda_note(compute, cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
              "asking the device");
    compute->shared_limit = static_cast<size_t>(limit);
    /* What goes aside is many small kernels: they come between the blocks of large ones. */
    int low = 0, high = 0;
    cuda_note(compute, cudaDeviceGetStreamPriorityRange(&low, &high), "asking the device");
    for (int i = 0; i < 2; i++)
        cuda_note(compute,
                  cudaStreamCreateWithPriority(&compute->streams[i], cudaStreamNonBlocking,
                                               i == 0 ? low : high),
                  "making a stream");
    compute->stream = compute->streams[0];
    for (cudaEvent_t *event : {&compute->forked, &compute->concat})
        cuda_note(compute, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
    cuda_note(compute, cudaMalloc(&compute->values, sizeof(vlp_step_values)), "taking memory");
    cuda_note(compute, cudaMallocHost(&compute->ring, RING * sizeof(vlp_step_values)),
              "taking pinned memory");
    for (int i = 0; i < RING; i++)
        cuda_note(compute, cudaEventCreateWithFlags(&compute->events[i], cudaEventDisableTiming),
                  "making an event");
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

static void fill_memory_operations(vlp_backend *table) {
    table->name = "cuda";
    table->stride = 32;
    table->uses_bf16 = true;
    table->even = true;
    table->tile = 32 << 20;
    table->probe = cuda_probe;
    table->open = cuda_open;
    table->close = cuda_close;
    table->allocate = cuda_allocate;
    table->release = cuda_release;
    table->upload = cuda_copy;
    table->download = cuda_copy;
    table->zero = cuda_zero;
    table->fill_bytes = cuda_fill_bytes;
    table->resident = cuda_resident;
    table->dismiss = cuda_dismiss;
    table->memory = cuda_memory;
}

static void fill_step_operations(vlp_backend *table) {
    table->plan_new = cuda_plan_new;
    table->plan_free = cuda_plan_free;
    table->step_begin = cuda_step_begin;
    table->step_end = cuda_step_end;
    table->choose_batch = cuda_choose_batch;
    table->choose_columns = cuda_choose_columns;
    table->sum = cuda_sum;
    table->square_sum = cuda_square_sum;
    table->check_step = cuda_check_step;
    table->fork_begin = cuda_fork_begin;
    table->fork_end = cuda_fork_end;
    table->fork_join = cuda_fork_join;
    table->sample = cuda_sample;
    table->update = cuda_update;
    table->rank = cuda_rank;
    table->negative_loss = cuda_negative_loss;
    table->softmax_loss = cuda_softmax_loss;
    table->n3_loss = cuda_n3_loss;
}

static void fill_row_operations(vlp_backend *table) {
    table->product = cuda_product;
    table->product_bf16 = cuda_product_bf16;
    table->convert_rows = cuda_convert_rows;
    table->gather = cuda_gather;
    table->scatter_add = cuda_scatter_add;
    table->scatter_mean = cuda_scatter_mean;
    table->add = cuda_add;
    table->project_add = cuda_project_add;
    table->inverse_norms = cuda_inverse_norms;
    table->scale_columns = cuda_scale_columns;
}

static void fill_model_operations(vlp_backend *table) {
    table->query = cuda_query;
    table->query_backward = cuda_query_backward;
    table->relation_query = cuda_relation_query;
    table->relation_query_backward = cuda_relation_query_backward;
    table->answer_backward = cuda_answer_backward;
    table->pair_scores = cuda_pair_scores;
    table->pair_backward = cuda_pair_backward;
    table->pair_update = cuda_pair_update;
    table->pair_norms = cuda_pair_norms;
    table->all_scores = cuda_all_scores;
    table->mean_references = cuda_mean_references;
    table->concat_query = cuda_concat_query;
    table->tanh_normalize = cuda_tanh_normalize;
    table->tanh_normalize_backward = cuda_tanh_normalize_backward;
    table->bias_backward = cuda_bias_backward;
}

static void fill_selection_operations(vlp_backend *table) {
    table->selection_new = cuda_selection_new;
    table->selection_free = cuda_selection_free;
    table->selection_start = cuda_selection_start;
    table->selection_offer = cuda_selection_offer;
    table->selection_finish = cuda_selection_finish;
}

extern "C" __attribute__((visibility("default"))) const vlp_backend *
vlp_backend_load(int32_t version, vlp_fail_function fail) {
    static vlp_backend table;
    if (version != VLP_BACKEND_VERSION) return nullptr;
    cuda_fail_function = fail;
    fill_memory_operations(&table);
    fill_step_operations(&table);
    fill_row_operations(&table);
    fill_model_operations(&table);
    fill_selection_operations(&table);
    return &table;
}
