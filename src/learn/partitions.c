#include "learn/partitions.h"

#include <string.h>

#include "base/order.h"
#include "base/random.h"
#include "learn/trainer_internal.h"

/* The pair of partitions on the device. */
typedef struct loaded_pair {
    vlp_partition_visit visit; /* end 0: none */
    vlp_dataset *dataset;      /* of their entities, under ids of their own */
    vlp_settings settings;     /* with a seed of its own */
    vlp_model *model;
    vlp_trainer *trainer;
    bool changed; /* since it was written back */
} loaded_pair;

struct vlp_partitions {
    vlp_partitions_options options;
    int32_t pairs;      /* of partitions */
    int64_t pass_steps; /* of a pass over the training split */
    int32_t *part;      /* (entities) */
    int32_t *member;    /* (entities) by partition, ascending in each */
    int32_t *first;     /* (count + 1) of a partition among the members */
    int32_t *local;     /* (entities) number in their partition */
    /* The pass that is planned. */
    int64_t pass;
    int32_t *order; /* (pairs) */
    int64_t *end;   /* (pairs) the step of the pass at which a place of the order ends */
    float *rows;    /* (rows of a pair, width) between host and device */
    loaded_pair pair;
};

/* ---- How many ------------------------------------------------------------------------------------ */

int32_t vlp_partition_count(const vlp_model *model, const vlp_settings *settings, int64_t bytes) {
    if (!vlp_model_has(model, VLP_HORIZONTAL)) return 0;
    const vlp_table *entities = vlp_model_entities(model);
    double row = 4.0 * sizeof(float) * entities->width;
    if (settings->precision == VLP_PRECISION_BF16) row += (double)sizeof(vlp_bf16) * entities->width;
    double all = row * (double)entities->rows;
    if (all <= (double)bytes) return 0;
    double count = 2 * all / (double)bytes;
    double most = (double)entities->rows / 2; /* a partition has two entities at least */
    if (count > most) count = most;
    int32_t whole = (int32_t)count;
    return whole + (whole < count) < 3 ? 3 : whole + (whole < count);
}

vlp_status vlp_partitions_check(const vlp_settings *settings) {
    const char *wrong = settings->loss != VLP_LOSS_NEGATIVES                ? "loss = negative-sampling"
                        : settings->negatives_from != VLP_NEGATIVES_UNIFORM ? "negatives_from = uniform"
                        : settings->vertical                                ? "vertical = off"
                        : settings->path                                    ? "path = off"
                        : settings->trains != VLP_TRAINS_ALL                ? "trains = all"
                                                                            : NULL;
    if (!wrong) return VLP_OK;
    return vlp_fail(
        VLP_ERROR_ARGUMENT,
        "the entities do not fit the memory for their tables, and are trained in partitions: "
        "that needs %s; the other components are trained over the finished run as a base",
        wrong);
}

/* ---- Dividing ------------------------------------------------------------------------------------ */

static int32_t entities_of(const vlp_partitions *all) {
    return all->options.model->entities;
}

static void divide(vlp_partitions *all) {
    int32_t entities = entities_of(all), count = all->options.count;
    uint64_t seed = all->options.settings->seed ^ VLP_STREAM_PARTITIONS;
    for (int32_t e = 0; e < entities; e++)
        all->part[e] = (int32_t)(vlp_permuted(e, entities, seed, 0) * count / entities);
    memset(all->first, 0, ((size_t)count + 1) * sizeof *all->first);
    for (int32_t e = 0; e < entities; e++) all->local[e] = all->first[all->part[e] + 1]++;
    for (int32_t p = 0; p < count; p++) all->first[p + 1] += all->first[p];
    for (int32_t e = 0; e < entities; e++) all->member[all->first[all->part[e]] + all->local[e]] = e;
}

static int32_t part_size(const vlp_partitions *all, int32_t part) {
    return all->first[part + 1] - all->first[part];
}

/* The number of the pair of two partitions, low < high. */
static int32_t pair_number(int32_t low, int32_t high) {
    return high * (high - 1) / 2 + low;
}

/* The pair that a triple is trained with in a pass. */
static int32_t pair_of(const vlp_partitions *all, int64_t index, int64_t pass) {
    vlp_triple triple = all->options.dataset->splits[VLP_TRAIN].items[index];
    int32_t a = all->part[triple.head], b = all->part[triple.tail];
    if (a == b) {
        vlp_random4 random = vlp_random(all->options.settings->seed, VLP_STREAM_PARTITIONS,
                                        (uint64_t)index, (uint32_t)pass);
        b = (int32_t)vlp_random_below(random.v[0], random.v[1], (uint32_t)all->options.count - 1);
        if (b >= a) b++;
    }
    return a < b ? pair_number(a, b) : pair_number(b, a);
}

/* The order of the pairs in a pass, and when each ends. */
static vlp_status plan_pass(vlp_partitions *all, int64_t pass) {
    int64_t triples = all->options.dataset->splits[VLP_TRAIN].count, before = 0;
    int64_t *sizes = vlp_alloc_zero((size_t)all->pairs, sizeof *sizes);
    if (!sizes) return vlp_fail_memory("partitions");
    for (int64_t i = 0; i < triples; i++) sizes[pair_of(all, i, pass)]++;
    for (int32_t i = 0; i < all->pairs; i++) {
        all->order[i] = (int32_t)vlp_permuted(
            i, all->pairs, all->options.settings->seed ^ VLP_STREAM_PARTITIONS, (uint64_t)pass + 1);
        before += sizes[all->order[i]];
        all->end[i] =
            (int64_t)((unsigned __int128)before * (uint64_t)all->pass_steps / (uint64_t)triples);
    }
    vlp_free(sizes);
    all->pass = pass;
    return VLP_OK;
}

/* ---- Visits -------------------------------------------------------------------------------------- */

int32_t vlp_partitions_part(const vlp_partitions *all, int32_t entity) {
    return all->part[entity];
}

vlp_status vlp_partitions_visit(vlp_partition_visit *out, vlp_partitions *all, int64_t step) {
    int64_t pass = step / all->pass_steps, start = pass * all->pass_steps;
    int32_t place = 0, high = 1;
    if (pass != all->pass) VLP_TRY(plan_pass(all, pass));
    while (all->end[place] <= step - start) place++;
    while (pair_number(0, high + 1) <= all->order[place]) high++;
    *out = (vlp_partition_visit){.parts = {all->order[place] - pair_number(0, high), high},
                                 .first = start + (place > 0 ? all->end[place - 1] : 0),
                                 .end = start + all->end[place]};
    return VLP_OK;
}

bool vlp_partitions_trains(const vlp_partitions *all, const vlp_partition_visit *visit, int64_t triple) {
    return pair_of(all, triple, visit->first / all->pass_steps) ==
           pair_number(visit->parts[0], visit->parts[1]);
}

/* ---- Rows between host and device ---------------------------------------------------------------- */

/* The host's row of row `i` of the pair. */
static int64_t host_row(const vlp_partitions *all, int64_t i) {
    const loaded_pair *pair = &all->pair;
    const int32_t *parts = pair->visit.parts;
    int32_t low = part_size(all, parts[0]);
    return i < low ? all->member[all->first[parts[0]] + i] : all->member[all->first[parts[1]] + i - low];
}

/* One array of a table; `entities`: some rows of the host's, else all. */
static vlp_status move_array(vlp_partitions *all, float *there, float *here, int64_t rows, int32_t width,
                             bool entities, bool to_device) {
    const vlp_memory_operations *memory = all->options.device->memory;
    size_t bytes = (size_t)rows * (size_t)width * sizeof(float), row = (size_t)width * sizeof(float);
    float *through = entities ? all->rows : here;
    if (to_device) {
#pragma omp parallel for num_threads(vlp_thread_count(all->options.settings->threads))                  \
    schedule(static) if (entities)
        for (int64_t i = 0; i < (entities ? rows : 0); i++)
            memcpy(through + i * width, here + host_row(all, i) * width, row);
        return memory->upload(all->options.compute, there, through, bytes);
    }
    VLP_TRY(memory->download(all->options.compute, through, there, bytes));
#pragma omp parallel for num_threads(vlp_thread_count(all->options.settings->threads))                  \
    schedule(static) if (entities)
    for (int64_t i = 0; i < (entities ? rows : 0); i++)
        memcpy(here + host_row(all, i) * width, through + i * width, row);
    return VLP_OK;
}

static vlp_status move_tables(vlp_partitions *all, bool to_device) {
    vlp_model *host = all->options.model, *device = all->pair.model;
    for (int32_t i = 0; i < device->table_count; i++) {
        vlp_table *here = &host->tables[i], *there = &device->tables[i];
        bool entities = here == vlp_model_entities(host);
        float *arrays[3][2] = {
            {there->value, here->value}, {there->first, here->first}, {there->second, here->second}};
        for (int j = 0; j < 3; j++)
            VLP_TRY(move_array(all, arrays[j][0], arrays[j][1], there->rows, there->width, entities,
                               to_device));
    }
    return VLP_OK;
}

/* ---- The pair on the device ---------------------------------------------------------------------- */

/* The triples between entities of the pair, under its ids: first those that it trains in this pass, then
 * the others, which are no negatives. Returns how many it trains. `out` NULL: they are counted. */
static int64_t gather_triples(vlp_triple *out, int64_t *count, const vlp_partitions *all) {
    const vlp_partition_visit *visit = &all->pair.visit;
    const vlp_triple_list *train = &all->options.dataset->splits[VLP_TRAIN];
    const int32_t shift[2] = {0, part_size(all, visit->parts[0])};
    int64_t trained = 0;
    *count = 0;
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < train->count; i++) {
            vlp_triple triple = train->items[i];
            int32_t head = all->part[triple.head], tail = all->part[triple.tail];
            if ((head != visit->parts[0] && head != visit->parts[1]) ||
                (tail != visit->parts[0] && tail != visit->parts[1]) ||
                vlp_partitions_trains(all, visit, i) != (round == 0))
                continue;
            if (out)
                out[*count] = (vlp_triple){all->local[triple.head] + shift[head == visit->parts[1]],
                                           triple.relation,
                                           all->local[triple.tail] + shift[tail == visit->parts[1]]};
            ++*count;
        }
        if (round == 0) trained = *count;
    }
    return trained;
}

/* The data set of the pair; *trained: how many of its triples, the first ones, are trained. */
static vlp_status make_dataset(vlp_partitions *all, int64_t *trained) {
    loaded_pair *pair = &all->pair;
    vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;
    vlp_dataset_options options = {VLP_DATASET_OPTIONS_VERSION, all->options.settings->threads, NULL};
    int64_t count;
    gather_triples(NULL, &count, all);
    vlp_triple *triples = vlp_alloc((size_t)count, sizeof *triples);
    if (!triples) return vlp_fail_memory("partitions");
    *trained = gather_triples(triples, &count, all);
    content.triples[VLP_TRAIN] = triples;
    content.counts[VLP_TRAIN] = count;
    content.entities = part_size(all, pair->visit.parts[0]) + part_size(all, pair->visit.parts[1]);
    content.relations = vlp_dataset_relation_count(all->options.dataset);
    vlp_status status = vlp_dataset_from_ids(&pair->dataset, &content, &options);
    vlp_free(triples);
    return status;
}

static void unload(loaded_pair *pair) {
    vlp_trainer_free(pair->trainer);
    vlp_model_free(pair->model);
    vlp_dataset_free(pair->dataset);
    *pair = (loaded_pair){.visit = {.end = 0}};
}

vlp_status vlp_partitions_settle(vlp_partitions *all) {
    if (!all->pair.changed) return VLP_OK;
    VLP_TRY(move_tables(all, false));
    all->pair.changed = false;
    return VLP_OK;
}

static vlp_status load(vlp_partitions *all, const vlp_partition_visit *visit) {
    loaded_pair *pair = &all->pair;
    int64_t trained = 0;
    VLP_TRY(vlp_partitions_settle(all));
    unload(pair);
    pair->visit = *visit;
    pair->settings = *all->options.settings;
    pair->settings.seed ^= (uint64_t)(visit->first + 1) * UINT64_C(0x9e3779b97f4a7c15);
    VLP_TRY(make_dataset(all, &trained));
    vlp_model_shape shape = vlp_settings_shape(&pair->settings, pair->dataset);
    VLP_TRY(vlp_model_new(&pair->model, all->options.device, all->options.compute, &shape, true));
    VLP_TRY(move_tables(all, true));
    vlp_trainer_part part = {.triples = trained, .first_step = visit->first};
    return vlp_trainer_new_part(&pair->trainer, pair->dataset, &pair->settings, pair->model,
                                all->options.observer, &part);
}

/* ---- The object ---------------------------------------------------------------------------------- */

vlp_status vlp_partitions_new(vlp_partitions **out, const vlp_partitions_options *options) {
    *out = NULL;
    vlp_partitions *all = vlp_alloc_zero(1, sizeof *all);
    if (!all) return vlp_fail_memory("partitions");
    size_t entities = (size_t)options->model->entities, count = (size_t)options->count;
    const vlp_table *table = vlp_model_entities(options->model);
    int64_t queries = 2 * options->dataset->splits[VLP_TRAIN].count;
    all->options = *options;
    all->pairs = options->count * (options->count - 1) / 2;
    all->pass_steps = (queries + options->settings->batch - 1) / options->settings->batch;
    all->pass = -1;
    all->part = vlp_alloc(entities, sizeof *all->part);
    all->member = vlp_alloc(entities, sizeof *all->member);
    all->local = vlp_alloc(entities, sizeof *all->local);
    all->first = vlp_alloc(count + 1, sizeof *all->first);
    all->order = vlp_alloc((size_t)all->pairs, sizeof *all->order);
    all->end = vlp_alloc((size_t)all->pairs, sizeof *all->end);
    all->rows = vlp_alloc((2 * (entities / count + 1)) * (size_t)table->width, sizeof *all->rows);
    if (!all->part || !all->member || !all->local || !all->first || !all->order || !all->end ||
        !all->rows) {
        vlp_partitions_free(all);
        return vlp_fail_memory("partitions");
    }
    divide(all);
    *out = all;
    return VLP_OK;
}

void vlp_partitions_free(vlp_partitions *all) {
    if (!all) return;
    unload(&all->pair);
    vlp_free(all->part);
    vlp_free(all->member);
    vlp_free(all->local);
    vlp_free(all->first);
    vlp_free(all->order);
    vlp_free(all->end);
    vlp_free(all->rows);
    vlp_free(all);
}

vlp_status vlp_partitions_step(vlp_partitions *all, int64_t step, int64_t schedule_start) {
    const vlp_partition_visit *now = &all->pair.visit;
    if (!all->pair.trainer || step < now->first || step >= now->end) {
        vlp_partition_visit next;
        VLP_TRY(vlp_partitions_visit(&next, all, step));
        VLP_TRY(load(all, &next));
    }
    vlp_trainer_schedule_from(all->pair.trainer, schedule_start);
    all->pair.changed = true;
    return vlp_trainer_step(NULL, all->pair.trainer, step);
}

vlp_status vlp_partitions_read(vlp_step_loss *loss, vlp_partitions *all) {
    if (all->pair.trainer) return vlp_trainer_read(loss, all->pair.trainer);
    *loss = (vlp_step_loss){{0}};
    return VLP_OK;
}
