/* Copies of matrices bf16 to bf16, which some backends read twice as fast and multiply far faster.
 * What is trained stays in fp32, and so do sums. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_BF16_H
#define VLP_COMPUTE_BF16_H

#include <stdint.h>

#include "base/formula.h"

/* A number in bf16: the upper half of one in fp32. */
typedef uint16_t vlp_bf16;

/* How the rows of a copy stand: `parts` of `width` numbers, each followed by zeros up to `padded`. */
typedef struct vlp_bf16_layout {
    int32_t parts, width, padded;
} vlp_bf16_layout;

/* Rows begin where 16 bytes can be read at once; real and imaginary parts, which are read apart, on a
 * line of the cache. */
VLP_FORMULA vlp_bf16_layout vlp_bf16_layout_of(int32_t parts, int32_t width) {
    int32_t unit = parts > 1 ? 64 : 8;
    vlp_bf16_layout layout = {parts, width, (width + unit - 1) / unit * unit};
    return layout;
}

/* Numbers from the begin of a row to that of the next. */
VLP_FORMULA int32_t vlp_bf16_layout_stride(const vlp_bf16_layout *layout) {
    return layout->parts * layout->padded;
}

#endif
