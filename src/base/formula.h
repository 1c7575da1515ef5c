/* VLP_FORMULA marks functions of headers that compile as C17 and as CUDA, shared by the backends. */
#ifndef VLP_BASE_FORMULA_H
#define VLP_BASE_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

/* VLP_CONSTEXPR: a formula over compile-time constants alone, which a kernel may use as a template
 * argument. */
#ifdef __CUDACC__
#define VLP_FORMULA static inline __host__ __device__
#define VLP_CONSTEXPR static inline constexpr __host__ __device__
#else
#define VLP_FORMULA static inline
#define VLP_CONSTEXPR static inline
#endif

#endif
