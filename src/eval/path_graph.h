/* The graph that the path component reads, in the memory of a model's backend. */
#ifndef VLP_EVAL_PATH_GRAPH_H
#define VLP_EVAL_PATH_GRAPH_H

#include "graph/graph.h"
#include "model/model.h"

enum { VLP_PATH_GRAPH_ARRAYS = 4 };

typedef struct vlp_path_resident {
    vlp_path_graph graph; /* its arrays are the backend's */
    const void *arrays[VLP_PATH_GRAPH_ARRAYS];
} vlp_path_resident;

/* The graph in host memory: the arrays are those of `graph`. */
vlp_path_graph vlp_path_graph_of(const vlp_graph *graph);

/* `graph` outlives it: a backend may share its memory. VLP_ERROR_DEVICE where the backend has no path
 * model. */
vlp_status vlp_path_resident_open(vlp_path_resident *out, const vlp_model *model,
                                  const vlp_graph *graph);
void vlp_path_resident_close(vlp_path_resident *resident, const vlp_model *model); /* or zeros */

#endif
