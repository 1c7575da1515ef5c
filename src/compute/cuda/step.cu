/* What a step is made of besides its mathematics: its values, its queries, its check; and its plan,
 * a graph of its operations that is recorded once and launched from then on. */
#include <cstdlib>

#include "base/order.h"
#include "compute/cuda/device.h"

/* ---- Fork and join ------------------------------------------------------------------------------- */

/* Recorded, this becomes two branches of the graph. */
static void fork_begin(vlp_compute *compute) {
    cuda_note(compute, cudaEventRecord(compute->forked, compute->streams[0]), "parting work");
    cuda_note(compute, cudaStreamWaitEvent(compute->streams[1], compute->forked, 0), "parting work");
    compute->aside = 1;
    compute->stream = compute->streams[1];
}

static void fork_end(vlp_compute *compute) {
    cuda_note(compute, cudaEventRecord(compute->joined, compute->streams[1]), "parting work");
    compute->aside = 0;
    compute->stream = compute->streams[0];
}

static void fork_join(vlp_compute *compute) {
    cuda_note(compute, cudaStreamWaitEvent(compute->streams[0], compute->joined, 0), "joining work");
}

/* ---- Plans --------------------------------------------------------------------------------------- */

struct vlp_plan {
    bool ran; /* once as it was told: working memory is there */
    bool recording;
    uint64_t generation; /* of the working memory it was recorded over */
    cudaGraphExec_t graph;
};

static vlp_plan *plan_new(vlp_compute *) {
    return static_cast<vlp_plan *>(calloc(1, sizeof(vlp_plan)));
}

static void forget_graph(vlp_compute *compute, vlp_plan *plan) {
    if (!plan->graph) return;
    cuda_wait(compute);
    cuda_note(compute, cudaGraphExecDestroy(plan->graph), "forgetting a plan");
    plan->graph = nullptr;
}

static void plan_free(vlp_compute *compute, vlp_plan *plan) {
    if (!plan) return;
    forget_graph(compute, plan);
    free(plan);
}

/* Brings the values to the device; waits only where a whole ring of steps is under way. */
static int send_values(vlp_compute *compute, const vlp_step_values *values) {
    int place = static_cast<int>(compute->begun++ % RING);
    if (compute->begun > RING)
        cuda_note(compute, cudaEventSynchronize(compute->events[place]), "an earlier step");
    compute->ring[place] = *values;
    cuda_note(compute,
              cudaMemcpyAsync(compute->values, &compute->ring[place], sizeof *values,
                              cudaMemcpyHostToDevice, compute->stream),
              "copying the values of a step");
    return place;
}

static void end_values(vlp_compute *compute, int place) {
    cuda_note(compute, cudaEventRecord(compute->events[place], compute->stream), "marking a step");
}

static bool step_begin(vlp_compute *compute, vlp_plan *plan, const vlp_step_values *values) {
    int place = send_values(compute, values);
    compute->stepping = plan != nullptr;
    if (!plan || compute->failed) {
        end_values(compute, place);
        return false;
    }
    if (plan->graph && plan->generation != compute->generation) {
        forget_graph(compute, plan);
        plan->ran = false;
    }
    if (plan->graph) {
        cuda_note(compute, cudaGraphLaunch(plan->graph, compute->stream), "a recorded step");
        end_values(compute, place);
        compute->stepping = false;
        return true;
    }
    end_values(compute, place);
    plan->recording = plan->ran && !compute->eager;
    if (plan->recording) {
        plan->generation = compute->generation;
        plan->recording =
            cuda_note(compute, cudaStreamBeginCapture(compute->stream, cudaStreamCaptureModeThreadLocal),
                      "recording a step");
    }
    return false;
}

static vlp_status step_end(vlp_compute *compute, vlp_plan *plan) {
    compute->stepping = false;
    if (compute->aside) { /* the step was given up in between */
        fork_end(compute);
        fork_join(compute);
    }
    plan->ran = true;
    if (!plan->recording) return cuda_status(compute);
    plan->recording = false;
    cudaGraph_t graph = nullptr;
    cuda_note(compute, cudaStreamEndCapture(compute->stream, &graph), "recording a step");
    if (!compute->failed)
        cuda_note(compute, cudaGraphInstantiate(&plan->graph, graph, 0), "making a plan");
    if (graph) cuda_note(compute, cudaGraphDestroy(graph), "forgetting a recording");
    if (!compute->failed)
        cuda_note(compute, cudaGraphLaunch(plan->graph, compute->stream), "a recorded step");
    return cuda_status(compute);
}

/* ---- The check ------------------------------------------------------------------------------- */

__global__ static void check_losses(vlp_step_report *report, vlp_step_check check,
                                    const vlp_step_values *values) {
    vlp_step_check_apply(report, &check, values->step);
}

static void check_step(vlp_compute *compute, vlp_step_report *report, const vlp_step_check *check) {
    assert(check->tables >> VLP_MAX_TABLES == 0);
    LAUNCH(compute, check_losses, 1, 1, 0, report, *check, compute->values);
}

/* ---- The batch ----------------------------------------------------------------------------------- */

/* Lanes a query: they share its references. */
enum { CHOOSE_LANES = 8 };

/* What a query is, besides its references. */
__device__ static void set_query(const vlp_query_tables &tables, const vlp_batch &batch, int64_t i,
                                 int64_t query, const vlp_triple &triple) {
    int64_t item = query % tables.triples;
    bool forward = query < tables.triples;
    int32_t answer = forward ? triple.tail : triple.head;
    double weight = 1;
    if (tables.weigh) {
        int64_t answers = static_cast<int64_t>(tables.known_counts[item]) +
                          static_cast<int64_t>(tables.known_counts[item + tables.triples]);
        weight = 1 / sqrt(static_cast<double>(answers + 6));
    }
    if (batch.known_begin) {
        int64_t begin = tables.known_begin[query];
        batch.known_begin[i] = begin;
        batch.known_end[i] = begin + tables.known_counts[query];
    }
    batch.heads[i] = forward ? triple.head : triple.tail;
    batch.relations[i] = triple.relation + (forward ? 0 : tables.relations);
    batch.answers[i] = answer;
    if (batch.pairs) batch.pairs[i * batch.width] = answer;
    batch.weights[i] = static_cast<float>(weight);
}

__global__ static void choose_queries(vlp_query_tables tables, vlp_batch batch,
                                      const vlp_step_values *values) {
    int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / CHOOSE_LANES;
    int32_t lane = threadIdx.x % CHOOSE_LANES;
    if (i >= batch.count) return;
    int64_t queries = 2 * tables.triples, at = values->step * batch.count + i;
    int64_t query =
        vlp_permuted(at % queries, queries, tables.seed, static_cast<uint64_t>(at / queries));
    bool forward = query < tables.triples;
    if (lane == 0) set_query(tables, batch, i, query, tables.items[query % tables.triples]);
    if (!batch.reference_counts) return;
    int32_t count = tables.edges ? tables.edge_counts[query] : 0;
    if (lane == 0) batch.reference_counts[i] = count;
    for (int32_t j = lane; j < count; j += CHOOSE_LANES) {
        vlp_triple edge = tables.items[tables.edges[query * tables.capacity + j].edge];
        batch.reference_heads[i * tables.capacity + j] = forward ? edge.head : edge.tail;
        batch.reference_answers[i * tables.capacity + j] = forward ? edge.tail : edge.head;
    }
}

__global__ static void share_weights(float *weights, int32_t count) {
    __shared__ double shared[32];
    double sum = 0;
    for (int32_t i = threadIdx.x; i < count; i += blockDim.x) sum += static_cast<double>(weights[i]);
    sum = block_sum(sum, shared);
    for (int32_t i = threadIdx.x; i < count; i += blockDim.x)
        weights[i] = static_cast<float>(static_cast<double>(weights[i]) / sum);
}

static void choose_batch(vlp_compute *compute, const vlp_query_tables *tables, const vlp_batch *batch) {
    compute->pairs_of = nullptr;
    LAUNCH(compute, choose_queries, cuda_blocks(static_cast<int64_t>(batch->count) * CHOOSE_LANES, 64),
           64, 0, *tables, *batch, compute->values);
    LAUNCH(compute, share_weights, 1, 512, 0, batch->weights, batch->count);
}

/* ---- Columns of a sampled softmax ---------------------------------------------------------------- */

/* What bytes of 0x7f make: no query, since batches have at most 10^6. */
enum { COLUMN_THREADS = 1024, NO_QUERY = 0x7f7f7f7f };

__global__ static void mark_answers(int32_t *first, const int32_t *answers, int32_t count) {
    int32_t i = static_cast<int32_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&first[answers[i]], i);
}

/* One block: distinct answers in the order they come first, then others in the order of the step's
 * permutation. first (entities): the first query with that answer, NO_QUERY for none; place
 * (count): the column of a first one. */
__global__ static void __launch_bounds__(COLUMN_THREADS)
    choose_ids(vlp_columns columns, int32_t *place, const int32_t *first, vlp_column_options options,
               const vlp_step_values *values) {
    const int32_t *answers = options.answers;
    int32_t count = options.count, candidates = options.candidates, entities = options.entities;
    int32_t used = 0, total, room = count + candidates;
    for (int32_t start = 0; start < count; start += COLUMN_THREADS) {
        int32_t i = start + threadIdx.x;
        bool is_first = i < count && first[answers[i]] == i;
        int32_t at = used + place_of(is_first, &total);
        if (is_first) {
            columns.ids[at] = answers[i];
            columns.offsets[at] = 0;
            place[i] = at;
        }
        used += total;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < count; i += COLUMN_THREADS)
        columns.answers[i] = place[first[answers[i]]];
    int32_t distinct = used, wanted = candidates;
    if (wanted > entities - distinct) wanted = entities - distinct;
    float correction =
        wanted > 0 ? logf(static_cast<float>(entities - distinct) / static_cast<float>(wanted)) : 0.0f;
    uint64_t pass = static_cast<uint64_t>(values->step);
    for (int32_t start = 0; start < entities && used < distinct + wanted; start += COLUMN_THREADS) {
        int32_t i = start + threadIdx.x, entity = 0;
        bool other = i < entities;
        if (other) {
            entity = static_cast<int32_t>(
                vlp_permuted(i, entities, options.seed ^ VLP_STREAM_CANDIDATES, pass));
            other = first[entity] == NO_QUERY;
        }
        int32_t at = used + place_of(other, &total);
        if (other && at < distinct + wanted) {
            columns.ids[at] = entity;
            columns.offsets[at] = correction;
        }
        used += total;
    }
    for (int32_t i = distinct + wanted + threadIdx.x; i < room; i += COLUMN_THREADS) {
        columns.ids[i] = -1;
        columns.offsets[i] = -INFINITY;
    }
}

/* As many columns in every step: plans are of fixed shapes. What is not there has an offset of -inf. */
static vlp_status choose_columns(vlp_compute *compute, int32_t *used, const vlp_columns *columns,
                                 const vlp_column_options *options) {
    int32_t count = options->count, entities = options->entities;
    int32_t *first = scratch<int32_t>(compute, SLOT_COLUMNS, static_cast<int64_t>(entities) + count);
    *used = count + options->candidates;
    if (!first) return cuda_status(compute);
    cuda_note(
        compute,
        cudaMemsetAsync(first, 0x7f, static_cast<size_t>(entities) * sizeof *first, compute->stream),
        "clearing memory");
    LAUNCH(compute, mark_answers, cuda_blocks(count, 256), 256, 0, first, options->answers, count);
    LAUNCH(compute, choose_ids, 1, COLUMN_THREADS, 0, *columns, first + entities, first, *options,
           compute->values);
    return cuda_status(compute);
}

const vlp_step_operations cuda_step_operations = {.plan_new = plan_new,
                                                  .plan_free = plan_free,
                                                  .begin = step_begin,
                                                  .end = step_end,
                                                  .choose_batch = choose_batch,
                                                  .choose_columns = choose_columns,
                                                  .check = check_step,
                                                  .fork_begin = fork_begin,
                                                  .fork_end = fork_end,
                                                  .fork_join = fork_join};
