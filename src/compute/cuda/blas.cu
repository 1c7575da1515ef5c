/* cuBLAS, loaded at run time: where it is missing, opening the backend fails, and nothing else depends
 * on it. Workspace and algorithm are fixed, so that products have the same bits every time. */
#include <dlfcn.h>

#include <cstdlib>

#include <cublas_v2.h>

#include "compute/cuda/cuda.h"

/* One of each for every stream. */
struct cuda_blas {
    cublasHandle_t handles[2];
    void *workspaces[2];
};

/* The functions used. For C++, cublas_v2.h overloads the matrix products: these are the C functions. */
typedef cublasStatus_t (*product_function)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                           int, int, const void *, const void *, cudaDataType, int,
                                           const void *, cudaDataType, int, const void *, void *,
                                           cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
typedef cublasStatus_t (*products_function)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                            int, int, const void *, const void *, cudaDataType, int,
                                            long long, const void *, cudaDataType, int, long long,
                                            const void *, void *, cudaDataType, int, long long, int,
                                            cublasComputeType_t, cublasGemmAlgo_t);

static struct {
    void *handle;
    decltype(&cublasCreate_v2) create;
    decltype(&cublasDestroy_v2) destroy;
    decltype(&cublasSetStream_v2) set_stream;
    decltype(&cublasSetWorkspace_v2) set_workspace;
    product_function product;
    products_function products;
} library;

/* What Hopper's fastest kernels need. */
constexpr size_t WORKSPACE_BYTES = static_cast<size_t>(64) << 20;

template <class F> static bool find(F *function, const char *name) {
    *function = reinterpret_cast<F>(dlsym(library.handle, name));
    return *function != nullptr;
}

vlp_status cuda_blas_load(void) {
    if (library.handle) return VLP_OK;
    static const char *const names[] = {
        "libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13",
        "/usr/local/cuda/lib64/libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !library.handle; i++)
        library.handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library.handle)
        return cuda_fail(VLP_ERROR_DEVICE,
                         "cannot load cuBLAS (%s); put it on LD_LIBRARY_PATH, or use the device cpu",
                         dlerror());
    if (find(&library.create, "cublasCreate_v2") && find(&library.destroy, "cublasDestroy_v2") &&
        find(&library.set_stream, "cublasSetStream_v2") &&
        find(&library.set_workspace, "cublasSetWorkspace_v2") &&
        find(&library.product, "cublasGemmEx") && find(&library.products, "cublasGemmStridedBatchedEx"))
        return VLP_OK;
    dlclose(library.handle);
    library.handle = nullptr;
    return cuda_fail(VLP_ERROR_DEVICE, "the cuBLAS that was found lacks functions; vlp needs 12 or 13");
}

vlp_status cuda_blas_open(vlp_compute *compute) {
    cuda_blas *blas = static_cast<cuda_blas *>(calloc(1, sizeof *blas));
    if (!blas) return cuda_fail(VLP_ERROR_MEMORY, "out of memory for the CUDA backend");
    compute->blas = blas;
    for (int i = 0; i < 2; i++) {
        if (cudaMalloc(&blas->workspaces[i], WORKSPACE_BYTES) != cudaSuccess) {
            cudaGetLastError();
            return cuda_fail(VLP_ERROR_MEMORY, "the GPU's memory is full; use the device cpu");
        }
        cublasHandle_t *handle = &blas->handles[i];
        if (library.create(handle) != CUBLAS_STATUS_SUCCESS ||
            library.set_stream(*handle, compute->streams[i]) != CUBLAS_STATUS_SUCCESS ||
            library.set_workspace(*handle, blas->workspaces[i], WORKSPACE_BYTES) !=
                CUBLAS_STATUS_SUCCESS)
            return cuda_fail(VLP_ERROR_DEVICE, "cuBLAS does not start on this GPU; use the device cpu");
    }
    return VLP_OK;
}

void cuda_blas_close(vlp_compute *compute) {
    if (!compute->blas) return;
    for (int i = 0; i < 2; i++) {
        if (compute->blas->handles[i]) library.destroy(compute->blas->handles[i]);
        cudaFree(compute->blas->workspaces[i]);
    }
    free(compute->blas);
    compute->blas = nullptr;
}

static cublasHandle_t handle_of(const vlp_compute *compute) {
    return compute->blas->handles[compute->forked];
}

/* Training steps round factors to TF32; scores that are ranked are fp32. */
static cublasComputeType_t compute_type(const vlp_compute *compute) {
    return compute->stepping ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static void note(vlp_compute *compute, cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) cuda_note(compute, cudaErrorUnknown, "a product of cuBLAS");
}

static cublasOperation_t operation(bool transpose) {
    return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* cuBLAS is column-major: its B A is the row-major A B. */
static void multiply(vlp_compute *compute, float *c, const vlp_product *product, const void *a,
                     const void *b, cudaDataType type, cublasComputeType_t precision) {
    if (product->m == 0 || product->n == 0) return;
    note(compute, library.product(handle_of(compute), operation(product->transpose_b),
                                  operation(product->transpose_a), static_cast<int>(product->n),
                                  static_cast<int>(product->m), static_cast<int>(product->k),
                                  &product->alpha, b, type, static_cast<int>(product->ldb), a, type,
                                  static_cast<int>(product->lda), &product->beta, c, CUDA_R_32F,
                                  static_cast<int>(product->ldc), precision, CUBLAS_GEMM_DEFAULT));
}

void cuda_product(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                  const float *b) {
    multiply(compute, c, product, a, b, CUDA_R_32F, compute_type(compute));
}

void cuda_product_bf16(vlp_compute *compute, float *c, const vlp_product *product, const vlp_bf16 *a,
                       const vlp_bf16 *b) {
    multiply(compute, c, product, a, b, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
}

void cuda_products(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                   const float *b, const product_batch *batch) {
    if (product->m == 0 || product->n == 0 || batch->count == 0) return;
    note(compute,
         library.products(handle_of(compute), operation(product->transpose_b),
                          operation(product->transpose_a), static_cast<int>(product->n),
                          static_cast<int>(product->m), static_cast<int>(product->k), &product->alpha, b,
                          CUDA_R_32F, static_cast<int>(product->ldb), batch->stride_b, a, CUDA_R_32F,
                          static_cast<int>(product->lda), batch->stride_a, &product->beta, c, CUDA_R_32F,
                          static_cast<int>(product->ldc), batch->stride_c,
                          static_cast<int>(batch->count), compute_type(compute), CUBLAS_GEMM_DEFAULT));
}

/* Products of bf16 copies are operations of their own. */
static bool rounds_factors() {
    return false;
}

const vlp_blas_operations cuda_blas_operations = {.product = cuda_product,
                                                  .rounds_factors = rounds_factors};
