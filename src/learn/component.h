/* How a component is trained: what the trainer (learn/trainer.h) asks of it. A new component is a table
 * of these functions, named in trainer.c. Operations of a step are the same in every step, over the same
 * memory: what changes is in the backend's memory. */
#ifndef VLP_LEARN_COMPONENT_H
#define VLP_LEARN_COMPONENT_H

#include "learn/trainer.h"

/* `state` is what `open` returned. Optional functions may be NULL. */
typedef struct vlp_component_training {
    /* Replaces, in a copy of the run's settings, what optimizer, schedule and clipping of its tables
     * read: from `optimizer` to `clip`, and `steps`. Called after `open`. */
    void (*optimizer)(vlp_settings *settings, const vlp_trainer *trainer);
    bool own_batch; /* it chooses its own batch, in a stage of its own, behind the other components */
    /* Whether its step writes nothing that the step of another component reads or writes: it may then
     * run concurrently. Such a component adds nothing to the gradients of the embeddings. */
    bool (*independent)(const vlp_settings *settings);
    /* Prepares what it reads of the graph, and its arrays. */
    vlp_status (*open)(void **state, vlp_trainer *trainer);
    void (*close)(void *state);
    /* Recomputes what follows from the tables, after they were changed by others than updates.
     * Optional. */
    vlp_status (*refresh)(void *state, vlp_trainer *trainer);
    /* Gives the backend what the host computes for a step of the stage, before it begins. Optional. */
    vlp_status (*prepare)(void *state, vlp_trainer *trainer, int64_t step);
    /* Clears gradients that several add to, before the batch is chosen. Optional. */
    void (*clear)(void *state, vlp_trainer *trainer);
    /* The loss of the chosen batch (vlp_trainer_add_loss) and the gradients of its tables. */
    vlp_status (*step)(void *state, vlp_trainer *trainer);
    /* Completes how one of its tables is updated; *done: it has updated it itself. Optional. */
    vlp_status (*update)(bool *done, vlp_updated *table, void *state, vlp_trainer *trainer,
                         const vlp_update *update);
} vlp_component_training;

extern const vlp_component_training vlp_horizontal_training, vlp_vertical_training, vlp_path_training;

#endif
