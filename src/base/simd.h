/* One source, several instruction sets: a function marked VLP_CLONES is compiled for AVX-512, AVX2 and
 * the baseline, and the dynamic loader selects one. Sanitizers do not support this, so they get the
 * baseline. */
#ifndef VLP_BASE_SIMD_H
#define VLP_BASE_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VLP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VLP_CLONES
#endif

/* Before a loop without dependencies between iterations that calls inline functions with local arrays.
 * clang takes such arrays as shared by all iterations of an `omp simd` loop, and computes wrong values.
 */
#ifdef __clang__
#define VLP_SIMD
#else
#define VLP_SIMD _Pragma("omp simd")
#endif

#endif
