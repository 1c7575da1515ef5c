/* Matrix products by OpenBLAS. It is loaded when the first CPU backend of the process opens, and stays
 * loaded.
 *
 * Its own threads are not used: inside a product they wait for each other with sched_yield, which costs
 * a time slice at every step when other processes are busy, and they serve one caller of the process at
 * a time. Instead a product is cut into pieces, and each thread of an OpenMP region calls OpenBLAS for
 * one of them. The cuts, and so the bits of the result, depend on the shape and on the number of threads
 * alone. Callers share nothing but OpenBLAS's buffers. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cblas.h>
#include <omp.h>

#include "base/library.h"
#include "compute/cpu/cpu.h"

/* ---- Loading ------------------------------------------------------------------------------------- */

/* OpenBLAS maps a buffer for each call that runs, and keeps it. It has a number of them that depends on
 * how it was built, at least 50. When one cannot be mapped it tries again for ever. */
enum { BUFFER_MIB = 129, LIBRARY_MIB = 64, STACK_MIB = 8, MAX_BUFFERS = 48 };

static const char library[] = "libopenblas.so.0";

static struct {
    pthread_mutex_t lock; /* for `handle` and `threads`; the others are set when it is loaded */
    void *handle;
    int32_t threads; /* of all backends that are open */
    void (*sgemm)(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, blasint, blasint, blasint, float,
                  const float *, blasint, const float *, blasint, float, float *, blasint);
    void *(*memory_alloc)(int);
    void (*memory_free)(void *);
    int64_t depth; /* how many terms of a sum its kernels take at once */
    int limit;     /* of calls at a time */
    sem_t buffers; /* those that no call has */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Kernels without AVX2: the fallback of OpenBLAS for an unknown processor. */
static bool is_old(const char *core) {
    static const char *const old[] = {"Prescott", "Core2",   "Banias",      "Northwood", "Dunnington",
                                      "Nehalem",  "Generic", "Sandybridge", "Unknown"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcasecmp(core, old[i]) == 0) return true;
    return false;
}

/* The name of the kernels that OpenBLAS chose; "" when it cannot say. */
static const char *core_of(void *handle) {
    char *(*corename)(void) = NULL;
    *(void **)&corename = dlsym(handle, "openblas_get_corename");
    return corename ? corename() : "";
}

/* The variable that names a kernel which fits this processor, or NULL when the old ones do. */
static const char *fitting_kernel(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return "OPENBLAS_CORETYPE=SKYLAKEX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "OPENBLAS_CORETYPE=HASWELL";
#endif
    return NULL;
}

/* OpenBLAS chooses its kernels while it is loaded, by a list of processors that it knows, and on one
 * that is newer than its list it falls back to the oldest, which is eight times slower. So it is asked
 * what it chose, and, where the processor can do more, loaded again with the name of a kernel that fits.
 * A choice of the user's (OPENBLAS_CORETYPE) stays. With one thread of its own it maps one buffer while
 * it is loaded, instead of one for each core. */
static void *load_fitting(void) {
    const char *variables[] = {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", fitting_kernel()};
    (void)omp_get_max_threads(); /* libgomp first, with its waiting policy (base/openmp.c) */
    void *handle = vlp_library_open(library, variables, 2);
    if (!handle || !variables[2] || getenv("OPENBLAS_CORETYPE") || !is_old(core_of(handle)))
        return handle;
    dlclose(handle);
    return vlp_library_open(library, variables, 3);
}

static vlp_status load(void) {
    void *handle = load_fitting();
    if (!handle)
        return vlp_fail(VLP_ERROR_DEVICE,
                        "cannot load %s (%s); install OpenBLAS (Debian: libopenblas0-openmp)", library,
                        dlerror());
    *(void **)&blas.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&blas.memory_alloc = dlsym(handle, "blas_memory_alloc");
    *(void **)&blas.memory_free = dlsym(handle, "blas_memory_free");
    if (!blas.sgemm) {
        dlclose(handle);
        return vlp_fail(VLP_ERROR_DEVICE, "%s has no cblas_sgemm", library);
    }
    blas.depth = strcasecmp(core_of(handle), "SkylakeX") == 0 ? 448 : 320;
    /* A build without threads takes no locks. */
    int (*parallel)(void) = NULL;
    *(void **)&parallel = dlsym(handle, "openblas_get_parallel");
    blas.limit = parallel && parallel() ? MAX_BUFFERS : 1;
    sem_init(&blas.buffers, 0, (unsigned)blas.limit);
    blas.handle = handle;
    return VLP_OK;
}

/* Whether the process may map that much more. */
static bool has_address_space(int64_t mebibytes) {
    size_t bytes = (size_t)mebibytes << 20;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    munmap(memory, bytes);
    return true;
}

static vlp_status fail_address_space(int64_t needed, int32_t threads) {
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    char allowed[64] = "the system does not give them";
    if (limit.rlim_cur != RLIM_INFINITY)
        snprintf(allowed, sizeof allowed, "the process may have %lld (ulimit -v)",
                 (long long)(limit.rlim_cur >> 20));
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return vlp_fail(
        VLP_ERROR_MEMORY,
        "not enough address space for OpenBLAS with %d thread%s: that takes %lld MiB in all, "
        "and %s",
        threads, threads == 1 ? "" : "s", (long long)needed + (pages * sysconf(_SC_PAGESIZE) >> 20),
        allowed);
}

static int32_t buffers_for(int32_t threads) {
    return threads < MAX_BUFFERS ? threads : MAX_BUFFERS;
}

static void take_buffer(void) {
    while (sem_wait(&blas.buffers) != 0) assert(errno == EINTR);
}

/* Maps `count` buffers, by having them all at once. */
static void map_buffers(int32_t count) {
    void *buffers[MAX_BUFFERS];
    if (!blas.memory_alloc || !blas.memory_free) return;
    if (count > blas.limit) count = blas.limit;
    for (int32_t i = 0; i < count; i++) {
        take_buffer();
        buffers[i] = blas.memory_alloc(0);
    }
    for (int32_t i = 0; i < count; i++) {
        blas.memory_free(buffers[i]);
        sem_post(&blas.buffers);
    }
}

/* OpenBLAS with buffers for `threads` more, as long as there is address space for them. */
static vlp_status reserve(int32_t threads) {
    int32_t before = buffers_for(blas.threads), after = buffers_for(blas.threads + threads);
    /* Calls that run have the others, so that all of `after` may have to be mapped. */
    int64_t needed = after > before ? (int64_t)after * BUFFER_MIB + (int64_t)threads * STACK_MIB : 0;
    if (!blas.handle) needed += LIBRARY_MIB + BUFFER_MIB;
    if (needed > 0 && !has_address_space(needed)) return fail_address_space(needed, threads);
    if (!blas.handle) VLP_TRY(load());
    if (after > before) map_buffers(after);
    blas.threads += threads;
    return VLP_OK;
}

vlp_status cpu_blas_open(vlp_compute *compute) {
    pthread_mutex_lock(&blas.lock);
    vlp_status status = reserve(compute->threads);
    pthread_mutex_unlock(&blas.lock);
    compute->has_blas = status == VLP_OK;
    return status;
}

void cpu_blas_close(vlp_compute *compute) {
    if (!compute->has_blas) return;
    pthread_mutex_lock(&blas.lock);
    blas.threads -= compute->threads;
    pthread_mutex_unlock(&blas.lock);
}

/* ---- Products ------------------------------------------------------------------------------------ */

/* Pieces begin at multiples of ALIGNMENT rows or columns, and have at least PIECE multiplications: with
 * fewer than 10^6, OpenBLAS uses other kernels, which round differently. */
enum { ALIGNMENT = 16, PIECE = 5 << 18 };

/* A product with its arrays. */
typedef struct product {
    const vlp_product *shape;
    int64_t depth; /* a call adds at most this many terms of a sum */
    const float *a, *b;
    float *c;
    float *packed; /* (threads, cpu_rounded_floats): factors are rounded; NULL: OpenBLAS */
} product;

/* The part of a sum of `left` terms that comes next. */
static int64_t next_part(int64_t left, int64_t depth) {
    if (left >= 2 * depth) return depth;
    return left > depth ? (left + 1) / 2 : left;
}

/* Rows first_row .. end_row - 1 and columns first_column .. end_column - 1 of the product. */
static void multiply(const product *whole, int64_t first_row, int64_t end_row, int64_t first_column,
                     int64_t end_column) {
    const float *a = whole->a + first_row * (whole->shape->transpose_a ? 1 : whole->shape->lda);
    const float *b = whole->b + first_column * (whole->shape->transpose_b ? whole->shape->ldb : 1);
    float *c = whole->c + first_row * whole->shape->ldc + first_column;
    if (whole->packed) {
        vlp_product piece = *whole->shape;
        piece.m = end_row - first_row;
        piece.n = end_column - first_column;
        cpu_rounded_product(c, &piece, a, b,
                            whole->packed + omp_get_thread_num() * cpu_rounded_floats());
        return;
    }
    int64_t done = 0;
    do {
        int64_t part = next_part(whole->shape->k - done, whole->depth);
        blas.sgemm(
            CblasRowMajor, whole->shape->transpose_a ? CblasTrans : CblasNoTrans,
            whole->shape->transpose_b ? CblasTrans : CblasNoTrans, (blasint)(end_row - first_row),
            (blasint)(end_column - first_column), (blasint)part, whole->shape->alpha,
            a + done * (whole->shape->transpose_a ? whole->shape->lda : 1), (blasint)whole->shape->lda,
            b + done * (whole->shape->transpose_b ? 1 : whole->shape->ldb), (blasint)whole->shape->ldb,
            done == 0 ? whole->shape->beta : 1, c, (blasint)whole->shape->ldc);
        done += part;
    } while (done < whole->shape->k);
}

/* How many pieces of `units` aligned units the product is cut into. */
static int pieces_of(const product *whole, int64_t units, int threads) {
    int64_t pieces =
        whole->shape->m * whole->shape->n * next_part(whole->shape->k, whole->depth) / PIECE;
    if (pieces > units) pieces = units;
    if (pieces > threads) pieces = threads;
    if (pieces > MAX_BUFFERS) pieces = MAX_BUFFERS;
    return pieces < 1 ? 1 : (int)pieces;
}

static void multiply_pieces(const product *whole, int threads) {
    bool by_rows = whole->shape->m > whole->shape->n;
    int64_t length = by_rows ? whole->shape->m : whole->shape->n,
            units = (length + ALIGNMENT - 1) / ALIGNMENT;
    int pieces = pieces_of(whole, units, threads);
#pragma omp parallel for num_threads(pieces) schedule(static, 1)
    for (int piece = 0; piece < pieces; piece++) {
        int64_t first = units * piece / pieces * ALIGNMENT,
                end = units * (piece + 1) / pieces * ALIGNMENT;
        if (end > length) end = length;
        /* OpenBLAS uses as many threads as OpenMP says. This sets the value for this region only. */
        omp_set_num_threads(1);
        take_buffer();
        multiply(whole, by_rows ? first : 0, by_rows ? end : whole->shape->m, by_rows ? 0 : first,
                 by_rows ? whole->shape->n : end);
        sem_post(&blas.buffers);
    }
}

void cpu_product(vlp_compute *compute, float *c, const vlp_product *shape, const float *a,
                 const float *b) {
    if (shape->m == 0 || shape->n == 0) return;
    bool large = shape->m * shape->n * shape->k > PIECE;
    product whole = {.shape = shape, .depth = shape->k + 1, .a = a, .b = b, .c = c};
    /* Where OpenBLAS's own threads cut a sum: with its kernels for AVX-512, results have the same bits.
     */
    if (compute->threads > 1 && large) whole.depth = blas.depth;
    if (shape->rounded && large) whole.packed = compute->packed;
    multiply_pieces(&whole, compute->threads);
}

const vlp_blas_operations cpu_blas_operations = {.product = cpu_product,
                                                 .rounds_factors = cpu_rounds_factors};
