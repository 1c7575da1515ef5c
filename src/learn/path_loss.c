/* The training of the path component, by keys: the answers of a (h, r) in the training graph, some of
 * which are hidden and have to be found again over the rest of the graph. */
#include <math.h>

#include "eval/path_graph.h"
#include "learn/trainer_internal.h"

typedef struct path_state {
    const vlp_model *model;
    vlp_path_keys made; /* on the host */
    vlp_path_keys keys; /* on the backend */
    vlp_path_resident graph;
    vlp_path_tables values, grads;
    vlp_path_batch batch;
    vlp_path_choice choice;
    vlp_path_options options;
} path_state;

/* ---- Opening ------------------------------------------------------------------------------------- */

/* Adam with a cosine to 0. */
static void optimizer(vlp_settings *settings, const vlp_trainer *trainer) {
    settings->optimizer = VLP_ADAM;
    settings->beta1 = 0.9;
    settings->beta2 = 0.999;
    settings->epsilon = 1e-8;
    settings->rate = settings->path_rate;
    settings->schedule = VLP_COSINE;
    settings->warmup = settings->path_warmup;
    settings->clip = settings->path_clip;
    settings->weight_decay = settings->path_weight_decay;
    settings->steps = trainer->own_steps;
}

static bool independent(const vlp_settings *settings) {
    (void)settings;
    return true;
}

static vlp_status open_keys(path_state *mine, vlp_trainer *trainer) {
    vlp_path_graph graph = vlp_path_graph_of(trainer->dataset->graph);
    VLP_TRY(vlp_path_keys_make(&mine->made, &graph));
    mine->keys = mine->made;
    int64_t count = mine->made.count;
    VLP_TRY(vlp_trainer_resident(trainer, &mine->keys.heads, mine->made.heads, count, sizeof(int32_t)));
    VLP_TRY(vlp_trainer_resident(trainer, &mine->keys.relations, mine->made.relations, count,
                                 sizeof(int32_t)));
    VLP_TRY(vlp_trainer_resident(trainer, &mine->keys.offset, mine->made.offset, count + 1,
                                 sizeof(int64_t)));
    return vlp_trainer_resident(trainer, &mine->keys.turns, mine->made.turns, mine->made.turn_count,
                                sizeof(int32_t));
}

static vlp_status allocate(path_state *mine, vlp_trainer *trainer) {
    vlp_path_batch *batch = &mine->batch;
    int64_t keys = trainer->settings->path_batch;
    batch->count = (int32_t)(keys < mine->made.count ? keys : mine->made.count);
    batch->capacity = batch->count * mine->made.most_answers;
    const vlp_trainer_array arrays[] = {{&batch->heads, batch->count, sizeof(int32_t)},
                                        {&batch->relations, batch->count, sizeof(int32_t)},
                                        {&batch->answers, batch->count, sizeof(int64_t)},
                                        {&batch->offset, batch->count + 1, sizeof(int64_t)},
                                        {&batch->hidden, batch->capacity, sizeof(uint8_t)}};
    return vlp_trainer_allocate(trainer, arrays, (int32_t)(sizeof arrays / sizeof *arrays));
}

static vlp_status open_training(void **state, vlp_trainer *trainer) {
    const vlp_settings *settings = trainer->settings;
    path_state *mine = *state = vlp_alloc_zero(1, sizeof *mine);
    if (!mine) return vlp_fail_memory("a trainer");
    mine->model = trainer->model;
    VLP_TRY(vlp_path_resident_open(&mine->graph, trainer->model, trainer->dataset->graph));
    VLP_TRY(open_keys(mine, trainer));
    VLP_TRY(allocate(mine, trainer));
    mine->values = vlp_model_path_values(trainer->model);
    mine->grads = vlp_model_path_gradients(trainer->model);
    mine->choice = (vlp_path_choice){settings->seed, (float)settings->path_hidden};
    mine->options = (vlp_path_options){.seed = settings->seed,
                                       .hiding = (vlp_path_hiding)settings->path_hide,
                                       .drop = (float)settings->path_drop,
                                       .far = (float)settings->path_far,
                                       .near = settings->path_near,
                                       .prune = (float)settings->path_prune};
    trainer->own_steps =
        (int64_t)ceil(settings->path_passes * (double)mine->made.turn_count / mine->batch.count);
    if (settings->path_edges > 0)
        vlp_log(trainer->observer,
                "the path model reads at most %lld edges for a query: the nearest entities first, among "
                "them those of the highest degree",
                (long long)settings->path_edges);
    return VLP_OK;
}

static void close_training(void *state) {
    path_state *mine = state;
    vlp_path_resident_close(&mine->graph, mine->model);
    vlp_path_keys_free(&mine->made);
    vlp_free(mine);
}

/* ---- The step ------------------------------------------------------------------------------------ */

static vlp_status step(void *state, vlp_trainer *trainer) {
    path_state *mine = state;
    const vlp_model *model = mine->model;
    const vlp_path_operations *paths = model->backend->paths;
    vlp_path_model read = {&model->path, &mine->values, &mine->graph.graph};
    paths->choose(model->compute, &mine->batch, &mine->keys, &mine->choice);
    return paths->step(model->compute, &trainer->report->losses[VLP_PATH], &mine->grads, &read,
                       &mine->batch, &mine->options);
}

const vlp_component_training vlp_path_training = {.optimizer = optimizer,
                                                  .own_batch = true,
                                                  .independent = independent,
                                                  .open = open_training,
                                                  .close = close_training,
                                                  .step = step};
