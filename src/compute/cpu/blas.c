/* OpenBLAS, loaded when the backend opens. It chooses its kernels while it is loaded, by a list of known
 * processors, and falls back to the oldest, eight times slower, on a processor that is newer than the
 * list. So the choice is read back, and, where the processor supports more, OpenBLAS is loaded again
 * with the name of a kernel that fits. A choice of the user (OPENBLAS_CORETYPE) is kept. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "compute/cpu/cpu.h"

static const char library[] = "libopenblas.so.0";
static const char variable[] = "OPENBLAS_CORETYPE";

/* Kernels without AVX2: the fallback of OpenBLAS for an unknown processor. */
static bool is_old(const char *core) {
    static const char *const old[] = {"Prescott", "Core2",   "Banias",      "Northwood", "Dunnington",
                                      "Nehalem",  "Generic", "Sandybridge", "Unknown"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcasecmp(core, old[i]) == 0) return true;
    return false;
}

/* The kernel that fits this processor, or NULL when the old ones do. */
static const char *fitting_kernel(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return "SKYLAKEX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
    return NULL;
}

vlp_status cpu_blas_open(vlp_compute *compute) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return vlp_fail(VLP_ERROR_IO,
                        "cannot load %s (%s); install OpenBLAS (Debian: libopenblas0-openmp)", library,
                        dlerror());
    char *(*corename)(void) = NULL;
    *(void **)&corename = dlsym(handle, "openblas_get_corename");
    const char *kernel = fitting_kernel();
    if (corename && kernel && !getenv(variable) && is_old(corename())) {
        dlclose(handle);
        setenv(variable, kernel, 1);
        handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        unsetenv(variable);
        if (!handle) return vlp_fail(VLP_ERROR_IO, "cannot load %s (%s)", library, dlerror());
    }
    *(void **)&compute->sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&compute->set_blas_threads = dlsym(handle, "openblas_set_num_threads");
    compute->blas = handle;
    if (!compute->sgemm) return vlp_fail(VLP_ERROR_IO, "%s has no cblas_sgemm", library);
    return VLP_OK;
}

void cpu_blas_close(vlp_compute *compute) {
    if (compute->blas) dlclose(compute->blas);
}

void cpu_product(vlp_compute *compute, float *c, const vlp_product *product, const float *a,
                 const float *b) {
    if (product->m == 0 || product->n == 0) return;
    /* The number of threads is global to the process: another caller may have changed it. */
    if (compute->set_blas_threads) compute->set_blas_threads(compute->threads);
    compute->sgemm(CblasRowMajor, product->transpose_a ? CblasTrans : CblasNoTrans,
                   product->transpose_b ? CblasTrans : CblasNoTrans, (blasint)product->m,
                   (blasint)product->n, (blasint)product->k, product->alpha, a, (blasint)product->lda, b,
                   (blasint)product->ldb, product->beta, c, (blasint)product->ldc);
}

const vlp_blas_operations cpu_blas_operations = {.product = cpu_product};
