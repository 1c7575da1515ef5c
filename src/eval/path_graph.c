#include "eval/path_graph.h"

vlp_path_graph vlp_path_graph_of(const vlp_graph *graph) {
    vlp_path_graph out = {.entities = graph->entities,
                          .relations = 2 * graph->relations,
                          .triples = graph->edges,
                          .offset = graph->offset,
                          .neighbor = graph->neighbor,
                          .relation = graph->relation,
                          .triple = graph->edge};
    vlp_path_graph_measure(&out);
    return out;
}

vlp_status vlp_path_resident_open(vlp_path_resident *out, const vlp_model *model,
                                  const vlp_graph *graph) {
    const vlp_backend *backend = model->backend;
    *out = (vlp_path_resident){.graph = vlp_path_graph_of(graph)};
    if (!backend->paths)
        return vlp_fail(VLP_ERROR_DEVICE, "the %s backend has no path model; use the CPU",
                        backend->name);
    size_t slots = 2 * (size_t)graph->edges,
           sizes[VLP_PATH_GRAPH_ARRAYS] = {((size_t)graph->entities + 1) * sizeof(int64_t),
                                           slots * sizeof(int32_t), slots * sizeof(int32_t),
                                           slots * sizeof(int32_t)};
    const void *host[VLP_PATH_GRAPH_ARRAYS] = {graph->offset, graph->neighbor, graph->relation,
                                               graph->edge};
    for (int i = 0; i < VLP_PATH_GRAPH_ARRAYS; i++) {
        out->arrays[i] = backend->memory->resident(model->compute, host[i], sizes[i]);
        if (!out->arrays[i]) {
            vlp_path_resident_close(out, model);
            return vlp_fail_device_memory(backend, model->compute, "the graph", (int64_t)sizes[i],
                                          "use the CPU");
        }
    }
    out->graph.offset = out->arrays[0];
    out->graph.neighbor = out->arrays[1];
    out->graph.relation = out->arrays[2];
    out->graph.triple = out->arrays[3];
    return VLP_OK;
}

void vlp_path_resident_close(vlp_path_resident *resident, const vlp_model *model) {
    for (int i = 0; i < VLP_PATH_GRAPH_ARRAYS; i++)
        if (resident->arrays[i]) model->backend->memory->dismiss(model->compute, resident->arrays[i]);
    *resident = (vlp_path_resident){0};
}
