/* Files of queries and of triples, line by line: see vlp_triple_reader in vlp.h. */
#ifndef VLP_GRAPH_TRIPLE_READER_H
#define VLP_GRAPH_TRIPLE_READER_H

#include "graph/dataset.h"

/* As vlp_triple_reader_open; takes ownership of the source, also on failure. */
vlp_status vlp_triple_reader_new(vlp_triple_reader **out, const vlp_dataset *dataset, vlp_source *source,
                                 bool queries);

#endif
