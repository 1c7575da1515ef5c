/* Mixed precision: bf16 copies of matrices, which some backends read twice as fast and multiply far
 * faster. Parameters and sums stay in fp32. Compiles as C17 and CUDA. */
#ifndef VLP_COMPUTE_BF16_H
#define VLP_COMPUTE_BF16_H

#include <stdint.h>

#include "base/formula.h"

/* A number in bf16: the upper half of one in fp32. */
typedef uint16_t vlp_bf16;

/* The layout of a row of a bf16 copy: `parts` of `width` numbers, each padded with zeros to `padded`. */
typedef struct vlp_bf16_layout {
    int32_t parts, width, padded;
} vlp_bf16_layout;

/* Rows are aligned to 16 bytes for vectorized loads; real and imaginary parts, which are read
 * separately, are cache-line aligned. */
VLP_FORMULA vlp_bf16_layout vlp_bf16_layout_of(int32_t parts, int32_t width) {
    int32_t unit = parts > 1 ? 64 : 8;
    vlp_bf16_layout layout = {parts, width, (width + unit - 1) / unit * unit};
    return layout;
}

/* Numbers from the start of a row to that of the next. */
VLP_FORMULA int32_t vlp_bf16_layout_stride(const vlp_bf16_layout *layout) {
    return layout->parts * layout->padded;
}

#endif
