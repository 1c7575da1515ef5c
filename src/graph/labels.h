/* Labels of entities and relations: labels.tsv with lines "name<TAB>label[<TAB>description]". A line
 * labels the entity of that name and the relation of that name. Other names are skipped; of repeated
 * names the first is used. The file is read line by line: memory grows with the labels kept. */
#ifndef VLP_GRAPH_LABELS_H
#define VLP_GRAPH_LABELS_H

#include "base/file.h"
#include "graph/dictionary.h"

typedef struct vlp_labels vlp_labels;

enum { VLP_ENTITY_LABELS, VLP_RELATION_LABELS, VLP_LABEL_KINDS };

/* Reads the labels of both kinds of names. On failure every member of `out` is NULL. */
vlp_status vlp_labels_read(vlp_labels *out[VLP_LABEL_KINDS], vlp_source *source,
                           const vlp_dictionary *const names[VLP_LABEL_KINDS]);
/* From memory: texts of (names), NULL or members NULL or empty without one. *out is NULL where
 * no name has either. */
vlp_status vlp_labels_new(vlp_labels **out, const char *const *labels, const char *const *descriptions,
                          int32_t names);
void vlp_labels_free(vlp_labels *labels);

/* Of the name with that id; NULL without one. */
const char *vlp_labels_label(const vlp_labels *labels, int32_t id);
const char *vlp_labels_description(const vlp_labels *labels, int32_t id);
int64_t vlp_labels_count(const vlp_labels *labels);
int64_t vlp_labels_bytes(const vlp_labels *labels);

#endif
