/* The graph and the keys of the path model, in host memory. */
#include "compute/paths.h"

const char *vlp_path_table_name(vlp_path_table table) {
    static const char *const names[VLP_PATH_TABLES] = {
        "path_query", "path_relation", "path_relation_bias", "path_update", "path_update_bias",
        "path_norm",  "path_hidden",   "path_hidden_bias",   "path_output"};
    return names[table];
}

/* ---- The graph ----------------------------------------------------------------------------------- */

/* Up to the last class that at least one entity in 200 has. */
static int32_t frequent_classes(const int64_t *offset, int32_t entities) {
    int64_t counts[VLP_PATH_MAX_CLASSES] = {0};
    for (int32_t v = 0; v < entities; v++)
        counts[vlp_path_degree_class((int32_t)(offset[v + 1] - offset[v]))]++;
    int32_t classes = VLP_PATH_MAX_CLASSES;
    while (classes > 0 && (counts[classes - 1] == 0 || counts[classes - 1] < entities / 200)) classes--;
    return classes;
}

void vlp_path_graph_measure(vlp_path_graph *graph) {
    double sum = 0;
    for (int32_t v = 0; v < graph->entities; v++)
        sum += log((double)(graph->offset[v + 1] - graph->offset[v] + 1));
    graph->mean_log_degree = sum > 0 ? (float)(sum / graph->entities) : 1;
    graph->frequent_classes = frequent_classes(graph->offset, graph->entities);
}

/* ---- Keys ---------------------------------------------------------------------------------------- */

void vlp_path_keys_free(vlp_path_keys *keys) {
    vlp_free((void *)keys->heads);
    vlp_free((void *)keys->relations);
    vlp_free((void *)keys->offset);
    vlp_free((void *)keys->turns);
    *keys = (vlp_path_keys){0};
}

static bool begins_key(const vlp_path_graph *graph, int32_t entity, int64_t slot) {
    return slot == graph->offset[entity] || graph->relation[slot] != graph->relation[slot - 1];
}

int64_t vlp_path_keys_count(const vlp_path_graph *graph) {
    int64_t count = 0;
    for (int32_t v = 0; v < graph->entities; v++)
        for (int64_t slot = graph->offset[v]; slot < graph->offset[v + 1]; slot++)
            count += begins_key(graph, v, slot);
    return count;
}

vlp_status vlp_path_keys_make(vlp_path_keys *out, const vlp_path_graph *graph) {
    *out = (vlp_path_keys){.count = vlp_path_keys_count(graph)};
    int32_t *heads = vlp_alloc((size_t)out->count, sizeof *heads);
    int32_t *relations = vlp_alloc((size_t)out->count, sizeof *relations);
    int64_t *offset = vlp_alloc((size_t)out->count + 1, sizeof *offset), at = 0;
    out->heads = heads;
    out->relations = relations;
    out->offset = offset;
    if (!heads || !relations || !offset) {
        vlp_path_keys_free(out);
        return vlp_fail_memory("the keys of the training graph");
    }
    for (int32_t v = 0; v < graph->entities; v++)
        for (int64_t slot = graph->offset[v]; slot < graph->offset[v + 1]; slot++) {
            if (!begins_key(graph, v, slot)) continue;
            heads[at] = v;
            relations[at] = graph->relation[slot];
            offset[at++] = slot;
        }
    offset[at] = 2 * graph->triples;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t answers = offset[i + 1] - offset[i];
        if (answers > out->most_answers) out->most_answers = answers;
        out->turn_count += vlp_path_turns(answers);
    }
    int32_t *turns = vlp_alloc((size_t)out->turn_count, sizeof *turns);
    out->turns = turns;
    if (!turns) {
        vlp_path_keys_free(out);
        return vlp_fail_memory("the keys of the path model");
    }
    for (int64_t i = 0, turn = 0; i < out->count; i++)
        for (int64_t j = vlp_path_turns(offset[i + 1] - offset[i]); j > 0; j--)
            turns[turn++] = (int32_t)i;
    return VLP_OK;
}
