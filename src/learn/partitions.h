/* Training embeddings whose table does not fit the memory of the device: the entities are divided into
 * partitions at random, all tables are on the host, and two partitions at a time are on the device.
 *
 * Every pass over the training split goes through all pairs of partitions, in an order of its own. A
 * triple is trained with the pair that holds its two entities; where both are in one partition, with a
 * pair drawn for this pass. Negatives come from the two partitions. A pair has steps in proportion to
 * its triples, so that a pass is as long as without partitions. */
#ifndef VLP_LEARN_PARTITIONS_H
#define VLP_LEARN_PARTITIONS_H

#include "learn/trainer.h"

typedef struct vlp_partitions vlp_partitions;

/* How many partitions the entities are divided into for two of them to fit `bytes` of memory, with
 * gradients, optimizer state and bf16 copies; 0: all of them fit. */
int32_t vlp_partition_count(const vlp_model *model, const vlp_settings *settings, int64_t bytes);

/* VLP_ERROR_ARGUMENT for settings that partitions do not allow: they train embeddings alone, by
 * uniform negatives. */
vlp_status vlp_partitions_check(const vlp_settings *settings);

typedef struct vlp_partitions_options {
    const vlp_dataset *dataset;
    const vlp_settings *settings;
    vlp_model *model; /* of all entities, on the CPU backend, with optimizer state */
    const vlp_backend *device;
    vlp_compute *compute; /* of the device */
    const vlp_observer *observer;
    int32_t count; /* partitions, 3 or more */
} vlp_partitions_options;

vlp_status vlp_partitions_new(vlp_partitions **out, const vlp_partitions_options *options);
void vlp_partitions_free(vlp_partitions *partitions);

/* The partition of an entity. */
int32_t vlp_partitions_part(const vlp_partitions *partitions, int32_t entity);
/* What is on the device in a step: two partitions, for steps first .. end - 1. */
typedef struct vlp_partition_visit {
    int32_t parts[2]; /* ascending */
    int64_t first, end;
} vlp_partition_visit;
vlp_status vlp_partitions_visit(vlp_partition_visit *out, vlp_partitions *partitions, int64_t step);
/* Whether a triple of train is trained in the visit of a step. */
bool vlp_partitions_trains(const vlp_partitions *partitions, const vlp_partition_visit *visit,
                           int64_t triple);

/* Step number `step`, whose schedule runs from `schedule_start`. What is on the device is written back
 * to the host's tables where another pair comes. */
vlp_status vlp_partitions_step(vlp_partitions *partitions, int64_t step, int64_t schedule_start);
/* Waits for the steps: the losses of the last. */
vlp_status vlp_partitions_read(vlp_step_loss *loss, vlp_partitions *partitions);
/* Brings the host's tables up to date. */
vlp_status vlp_partitions_settle(vlp_partitions *partitions);

#endif
