/* Results of the library as JSON, shared by the program and the server. */
#ifndef VLP_COMMON_RESULTS_JSON_H
#define VLP_COMMON_RESULTS_JSON_H

#include "json.h"
#include "vlp.h"

/* A member for each component: its score before its weight, null where the run does not have it. */
void component_parts_json(json_out *json, const double *parts);

/* How the queries of an evaluation are grouped. */
typedef enum group_kind { GROUP_RELATION, GROUP_SIDE, GROUP_MAPPING, GROUP_DISTANCE } group_kind;
extern const char *const group_names[];
/* The text of the value of a group, with the relation's name; NULL for a number. */
const char *group_text(const vlp_dataset *data, group_kind kind, int32_t value);

/* An evaluation with all its breakdowns, as one object: what `vlp eval --json` prints. */
void evaluation_json(json_out *json, const vlp_dataset *data, const vlp_evaluation *evaluation);

#endif
