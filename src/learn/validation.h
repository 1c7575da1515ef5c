/* The validation split as training looks at it. */
#ifndef VLP_LEARN_VALIDATION_H
#define VLP_LEARN_VALIDATION_H

#include "eval/mixture.h"
#include "graph/dataset.h"
#include "learn/settings.h"

/* The best mixture of the model's components on the validation split and its MRR, filtered by train and
 * valid. With settings->eval_triples, that many of the split's triples, spread over it. */
vlp_status vlp_validate(double *mrr, vlp_mixture *best, const vlp_model *model,
                        const vlp_dataset *dataset, const vlp_settings *settings);

#endif
