/* Formulas that more than one backend needs stand in headers that compile as C17 and as CUDA. */
#ifndef VLP_BASE_FORMULA_H
#define VLP_BASE_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define VLP_FORMULA static inline __host__ __device__
#else
#define VLP_FORMULA static inline
#endif

#endif
