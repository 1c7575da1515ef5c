/* The relation between two entities: answers of (HEAD, ?, TAIL). */
#ifndef VLP_CLI_RELATIONS_H
#define VLP_CLI_RELATIONS_H

#include "predicting.h"

/* What is written of the relations of a pair. */
typedef struct relations_output {
    vlp_run *run;
    const vlp_dataset *data;
    const vlp_run_info *info;
    const vlp_predict_options *predict;
} relations_output;

/* Members of a JSON object, a block of text, lines of fields. With `explain` of the options each
 * relation is explained, as the tail entity's answer to (head, relation, ?). */
vlp_status relations_json(json_out *json, const relations_output *out,
                          const vlp_relation_answers *answers);
vlp_status relations_text(const relations_output *out, const vlp_relation_answers *answers);
void relations_table(const vlp_dataset *data, const vlp_relation_answers *answers);

/* What the scores are, for the remark above them. */
#define RELATIONS_SCORE "score of a relation: the mean log-softmax of f over entities, both directions"

#endif
