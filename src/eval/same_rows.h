/* Entities with the same row. They have the same scores, and ranks count them as equal; a library's
 * product may give them different last digits, depending on their position. */
#ifndef VLP_EVAL_SAME_ROWS_H
#define VLP_EVAL_SAME_ROWS_H

#include "model/model.h"

/* *out (entities): the first entity with the row of each; NULL where all rows differ. */
vlp_status vlp_same_rows(int32_t **out, const vlp_model *model);

#endif
