/* The thresholds of `vlp score --classify`. */
#ifndef VLP_CLI_CLASSES_H
#define VLP_CLI_CLASSES_H

#include "json.h"
#include "vlp.h"

/* Lines of comments: the accuracy, the relations without a threshold of their own, and with `all` the
 * threshold of each relation. */
void classes_text(const vlp_dataset *data, const vlp_classification *classes, bool all);
/* "classification":{...} */
void classes_json(json_out *json, const vlp_dataset *data, const vlp_classification *classes);

#endif
