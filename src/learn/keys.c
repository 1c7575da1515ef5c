/* Batches of keys (h, r): every key once in an epoch, with all its answers in the training graph. */
#include "eval/path_graph.h"
#include "learn/trainer_internal.h"

vlp_status vlp_trainer_open_keys(vlp_trainer *trainer) {
    const vlp_graph *graph = trainer->dataset->graph;
    vlp_key_tables *keys = &trainer->tables.keys;
    /* An aggregator that is trained alone reads queries. */
    if (trainer->settings->loss != VLP_LOSS_KVSALL || !(trainer->trained >> VLP_HORIZONTAL & 1))
        return VLP_OK;
    vlp_path_graph slots = vlp_path_graph_of(graph);
    VLP_TRY(vlp_path_keys_make(&trainer->keys, &slots));
    int64_t count = trainer->keys.count, answers = 2 * graph->edges;
    VLP_TRY(vlp_trainer_resident(trainer, &keys->relations, trainer->keys.relations, count,
                                 sizeof *keys->relations));
    VLP_TRY(vlp_trainer_resident(trainer, &keys->offset, trainer->keys.offset, count + 1,
                                 sizeof *keys->offset));
    VLP_TRY(
        vlp_trainer_resident(trainer, &keys->answers, graph->neighbor, answers, sizeof *keys->answers));
    VLP_TRY(vlp_trainer_resident(trainer, &keys->triples, graph->edge, answers, sizeof *keys->triples));
    keys->count = count;
    return VLP_OK;
}
