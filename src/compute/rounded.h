/* Copies of matrices rounded to bf16, which some backends read twice as fast and multiply far faster.
 * What is trained stays in fp32, and so do sums. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_ROUNDED_H
#define VLP_COMPUTE_ROUNDED_H

#include <stdint.h>

#include "base/formula.h"

/* A number in bf16: the upper half of one in fp32. */
typedef uint16_t vlp_bf16;

/* How the rows of a copy stand: `parts` of `width` numbers, each followed by zeros up to `padded`. */
typedef struct vlp_rounding {
    int32_t parts, width, padded;
} vlp_rounding;

/* Rows begin where 16 bytes can be read at once; real and imaginary parts, which are read apart, on a
 * line of the cache. */
VLP_FORMULA vlp_rounding vlp_rounding_of(int32_t parts, int32_t width) {
    int32_t unit = parts > 1 ? 64 : 8;
    vlp_rounding rounding = {parts, width, (width + unit - 1) / unit * unit};
    return rounding;
}

/* Numbers from the begin of a row to that of the next. */
VLP_FORMULA int32_t vlp_rounding_stride(const vlp_rounding *rounding) {
    return rounding->parts * rounding->padded;
}

#endif
