/* The inside of a data set, for the modules above. */
#ifndef VLP_GRAPH_DATASET_H
#define VLP_GRAPH_DATASET_H

#include "graph/dictionary.h"
#include "graph/distance.h"
#include "graph/graph.h"
#include "graph/labels.h"
#include "graph/reader.h"

struct vlp_dataset {
    char *folder; /* NULL: it was made from memory */
    vlp_dictionary *entities, *relations;
    vlp_labels *labels[VLP_LABEL_KINDS]; /* NULL: there are none */
    vlp_triple_list splits[VLP_SPLITS];
    int64_t duplicates[VLP_SPLITS];
    int64_t graph_names;                     /* statements whose graph name was dropped */
    uint8_t *seen_entities, *seen_relations; /* (entities), (relations): 1 for those in train */
    vlp_graph *graph;                        /* of train */
    int32_t threads;
};

extern const char *const vlp_split_names[VLP_SPLITS];

/* The steps of making a data set, in this order: empty dictionaries; the triples of each split; names,
 * labels, marks and graph once all names are known. */
vlp_status vlp_dataset_start(vlp_dataset **out, int32_t threads);
vlp_status vlp_dataset_end_split(vlp_dataset *dataset, vlp_split split); /* drops repeated triples */
vlp_status vlp_dataset_finish(vlp_dataset *dataset);

/* As vlp_dataset_from_ids, but takes over the triples in `splits` (also on failure; those of `content`
 * are not read), and checks neither names nor ids: ids are in range, names hold no tab, newline or zero
 * byte. A name that occurs twice is VLP_ERROR_FORMAT. `content` has names for all ids. */
vlp_status vlp_dataset_make(vlp_dataset **out, const vlp_dataset_content *content,
                            vlp_triple_list splits[VLP_SPLITS], int32_t threads);

/* What messages call it. */
const char *vlp_dataset_title(const vlp_dataset *dataset);

/* 32 hex digits over all names and triples, in their order. */
void vlp_dataset_checksum(char out[33], const vlp_dataset *dataset);

#endif
