/* Labels of entities: labels.tsv with lines "name<TAB>label[<TAB>description]". Names that are not
 * entities are skipped; of repeated names the first is used. */
#ifndef VLP_GRAPH_LABELS_H
#define VLP_GRAPH_LABELS_H

#include "base/file.h"
#include "graph/dictionary.h"

typedef struct vlp_labels vlp_labels;

vlp_status vlp_labels_read(vlp_labels **out, vlp_source *source, const vlp_dictionary *entities);
/* From memory: texts of (entities), NULL or members NULL or empty where there is none. *out is NULL
 * where no entity has either. */
vlp_status vlp_labels_new(vlp_labels **out, const char *const *labels, const char *const *descriptions,
                          int32_t entities);
void vlp_labels_free(vlp_labels *labels);

/* NULL if there is none. */
const char *vlp_labels_label(const vlp_labels *labels, int32_t entity);
const char *vlp_labels_description(const vlp_labels *labels, int32_t entity);
int64_t vlp_labels_count(const vlp_labels *labels);
int64_t vlp_labels_bytes(const vlp_labels *labels);

#endif
