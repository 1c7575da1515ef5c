/* The inside of a data set, for the modules above. */
#ifndef VLP_GRAPH_DATASET_H
#define VLP_GRAPH_DATASET_H

#include "graph/dictionary.h"
#include "graph/distance.h"
#include "graph/graph.h"
#include "graph/labels.h"
#include "graph/reader.h"

struct vlp_dataset {
    char *folder;
    vlp_dictionary *entities, *relations;
    vlp_labels *labels; /* NULL without labels.tsv */
    vlp_triple_list splits[VLP_SPLITS];
    int64_t duplicates[VLP_SPLITS];
    int32_t seen_entities, seen_relations; /* ids below these are in train */
    vlp_graph *graph;                      /* of train */
    int32_t threads;
};

extern const char *const vlp_split_names[VLP_SPLITS];

/* 32 hex digits over all names and triples, in their order. */
void vlp_dataset_checksum(char out[33], const vlp_dataset *dataset);

#endif
