/* expf, logf, sinf and cosf for loops: says to the compiler that the C library has them for vectors,
 * which its header does only under fast-math. Meaning and errors of the scalar functions stay as they
 * are; the vector ones are off by at most 4 units in the last place. */
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
