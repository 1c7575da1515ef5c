/* Ranking answers among some of the entities, where only these are scored. */
#ifndef VLP_EVAL_LISTED_RANKING_H
#define VLP_EVAL_LISTED_RANKING_H

#include "eval/evaluate.h"

/* Fills ranking->ranks with what vlp_ranking_compute gives for the same options, which have `only` and
 * do not have `collect`. An answer's score is from the same products as those of its competitors. */
vlp_status vlp_ranking_listed(vlp_ranking *ranking, const vlp_model *model, const vlp_dataset *dataset,
                              const vlp_ranking_options *options, const vlp_filter *known);

#endif
