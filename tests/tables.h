/* Where the tables of a model with a vertical aggregator are in its list. */
#ifndef VLP_TESTS_TABLES_H
#define VLP_TESTS_TABLES_H

#include "model/model.h"

enum {
    TABLE_NODE = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_NODE,
    TABLE_EDGE = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_EDGE,
    TABLE_OUTPUT = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_OUTPUT,
    TABLE_NODE_BIAS = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_NODE_BIAS,
    TABLE_EDGE_BIAS = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_EDGE_BIAS,
    TABLE_OUTPUT_BIAS = VLP_HORIZONTAL_TABLES + VLP_AGGREGATOR_OUTPUT_BIAS,
    TABLES = VLP_HORIZONTAL_TABLES + VLP_VERTICAL_TABLES
};

/* The components of a model with a vertical aggregator, or without one. */
static inline unsigned components_of(bool vertical) {
    return 1u << VLP_HORIZONTAL | (vertical ? 1u << VLP_VERTICAL : 0);
}

#endif
