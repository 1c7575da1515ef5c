/* Declares the vector versions of expf, logf, sinf and cosf in the C library, so that loops over them
 * are vectorized; its own header does so only under fast-math. The scalar functions are unchanged; the
 * vector versions have errors of at most 4 units in the last place. */
#ifndef VLP_BASE_VECTOR_MATH_H
#define VLP_BASE_VECTOR_MATH_H

#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&            \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#pragma omp declare simd notinbranch
extern float expf(float);
#pragma omp declare simd notinbranch
extern float logf(float);
#pragma omp declare simd notinbranch
extern float sinf(float);
#pragma omp declare simd notinbranch
extern float cosf(float);
#endif

#endif
