/* Random worlds for the path model, with what a backend needs to compute them. */
#ifndef VLP_TESTS_PATH_LAB_H
#define VLP_TESTS_PATH_LAB_H

#include "graph/graph.h"
#include "lab.h"
#include "path_oracle.h"

enum { PATH_LAB_KEYS = 64 };

/* A world, its graph and keys, and copies on the backend; the arrays are the bench's until it is
 * cleared. */
typedef struct path_case {
    path_world world;
    oracle_graph graph_source;
    vlp_graph *rows;
    vlp_path_graph host, graph; /* over arrays of the host, of the backend */
    vlp_path_keys keys_host;
    vlp_path_tables values, grads;
    vlp_path_model model;
    vlp_path_batch batch;
    path_oracle_key keys[PATH_LAB_KEYS];
} path_case;

/* Takes the graph over. The tables get random values. */
void path_case_open(path_case *one, lab *bench, const oracle_graph *graph, vlp_path_form form);
/* A form that fits the graph: up to 4 layers, dimensions that are multiples of 16 and that are not. */
vlp_path_form path_case_form(lab *bench, const oracle_graph *graph, bool reached_only);
void path_case_close(path_case *one);

/* The backend's copy of the tables, after one was changed. */
void path_case_put(path_case *one, lab *bench);

/* A batch of random keys; their seeds are those of a step. At least one key is there. */
void path_case_batch(path_case *one, lab *bench, int32_t count, uint64_t seed, int64_t step);
void path_case_begin(lab *bench, int64_t step);
/* One step over the batch: the loss; gradients are in one->grads. */
double path_case_step(path_case *one, lab *bench, const vlp_path_options *options, int64_t step);
/* All gradients in one array, table by table. */
double *path_case_gradients(const path_case *one, lab *bench, int64_t *count);
/* The scores (entities) of a query; removed: (count) triples. */
double *path_case_scores(path_case *one, lab *bench, int32_t head, int32_t relation,
                         const int32_t *removed, int64_t count);

int64_t path_table_size(const vlp_path_form *form, vlp_path_table table);

#endif
