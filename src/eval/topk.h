/* The best answers of many queries, met a tile of entities at a time. Scores are looked at once: a row
 * keeps a threshold, and whole blocks that do not pass it cost one comparison of vectors. */
#ifndef VLP_EVAL_TOPK_H
#define VLP_EVAL_TOPK_H

#include "compute/backend.h"

typedef struct vlp_top {
    float score, horizontal, vertical; /* vertical: 0 without a head */
    int32_t entity;
} vlp_top;

typedef struct vlp_selection vlp_selection;
/* For up to `rows` queries, the best `count` each. */
vlp_status vlp_selection_new(vlp_selection **out, int32_t rows, int32_t count, int32_t columns,
                             int32_t threads);
void vlp_selection_free(vlp_selection *selection);

/* Begins anew. excluded: for each row the entities that do not compete, ascending, borrowed until the
 * last tile was offered. */
typedef struct vlp_excluded {
    const int32_t *items;
    int64_t count;
} vlp_excluded;
void vlp_selection_start(vlp_selection *selection, const vlp_excluded *excluded, int32_t rows);

/* Offers entities first .. first + columns - 1, tiles in ascending order. Host arrays (rows, columns);
 * vertical NULL without a head, else still to be multiplied by scale[entity]. VLP_ERROR_FORMAT when a
 * score is not a number. */
vlp_status vlp_selection_offer(vlp_selection *selection, const float *horizontal, const float *vertical,
                               const float *scale, vlp_mixture mixture, int32_t first, int32_t columns);

/* The best of a row, best first, equal scores by entity; *count of them. Ends the row's selection. */
const vlp_top *vlp_selection_finish(vlp_selection *selection, int32_t row, int32_t *count);

#endif
