/* The weights of a score's components: which are tried on the validation split. */
#ifndef VLP_EVAL_MIXTURE_H
#define VLP_EVAL_MIXTURE_H

#include "compute/backend.h"

/* One component alone, with weight 1. */
vlp_mixture vlp_mixture_alone(vlp_component component);

/* Where there is no validation split: weights that suit the scales of the scores. */
vlp_mixture vlp_mixture_default(unsigned components);

/* The weights that are tried for a component beside the mixtures of the components before it. */
typedef struct vlp_weight_axis {
    vlp_component component;
    const float *weights;
    int32_t count;
} vlp_weight_axis;

/* The mixtures of the axes: the first component alone; then, for each further axis, every mixture so far
 * without its component and with each of its weights, and its component alone. Returns their number;
 * out NULL: that only. */
int64_t vlp_mixtures_of(vlp_mixture *out, const vlp_weight_axis *axes, int32_t count);

/* The mixtures that are tried for a set of components, each component alone among them; to be freed. */
vlp_status vlp_mixture_grid(vlp_mixture **out, int32_t *count, unsigned components);

#endif
