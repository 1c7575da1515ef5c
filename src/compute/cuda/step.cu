/* Training steps: their values, their batches, their checks, and plans, CUDA graphs of a step's
 * operations that are recorded once and launched from then on. */
#include <cstdlib>

#include "compute/batch.h"
#include "compute/cuda/device.h"

/* ---- Fork and join ------------------------------------------------------------------------------- */

/* In a recorded graph these are two branches. */
static void fork_begin(vlp_compute *compute) {
    cuda_note(compute, cudaEventRecord(compute->fork_event, compute->streams[0]), "a fork");
    cuda_note(compute, cudaStreamWaitEvent(compute->streams[1], compute->fork_event, 0), "a fork");
    compute->forked = 1;
    compute->stream = compute->streams[1];
}

static void fork_end(vlp_compute *compute) {
    cuda_note(compute, cudaEventRecord(compute->join_event, compute->streams[1]), "a fork");
    compute->forked = 0;
    compute->stream = compute->streams[0];
}

static void fork_join(vlp_compute *compute) {
    cuda_note(compute, cudaStreamWaitEvent(compute->streams[0], compute->join_event, 0), "a join");
}

/* ---- Plans --------------------------------------------------------------------------------------- */

struct vlp_plan {
    bool ran; /* once without recording: working memory has its size */
    bool recording;
    uint64_t generation; /* of the working memory it was recorded over */
    cudaGraphExec_t graph;
};

static vlp_plan *plan_new(vlp_compute *) {
    return static_cast<vlp_plan *>(calloc(1, sizeof(vlp_plan)));
}

static void free_graph(vlp_compute *compute, vlp_plan *plan) {
    if (!plan->graph) return;
    cuda_wait(compute);
    cuda_note(compute, cudaGraphExecDestroy(plan->graph), "freeing a plan");
    plan->graph = nullptr;
}

static void plan_free(vlp_compute *compute, vlp_plan *plan) {
    if (!plan) return;
    free_graph(compute, plan);
    free(plan);
}

/* Copies the values to the device, asynchronously; waits only where RING steps are in flight. */
static int send_values(vlp_compute *compute, const vlp_step_values *values) {
    int slot = static_cast<int>(compute->begun++ % RING);
    if (compute->begun > RING)
        cuda_note(compute, cudaEventSynchronize(compute->events[slot]), "an earlier step");
    compute->ring[slot] = *values;
    cuda_note(compute,
              cudaMemcpyAsync(compute->values, &compute->ring[slot], sizeof *values,
                              cudaMemcpyHostToDevice, compute->stream),
              "copying the values of a step");
    return slot;
}

static void end_values(vlp_compute *compute, int slot) {
    cuda_note(compute, cudaEventRecord(compute->events[slot], compute->stream), "marking a step");
}

static bool step_begin(vlp_compute *compute, vlp_plan *plan, const vlp_step_values *values) {
    int slot = send_values(compute, values);
    compute->stepping = plan != nullptr;
    if (!plan || compute->failed) {
        end_values(compute, slot);
        return false;
    }
    if (plan->graph && plan->generation != compute->generation) {
        free_graph(compute, plan);
        plan->ran = false;
    }
    if (plan->graph) {
        cuda_note(compute, cudaGraphLaunch(plan->graph, compute->stream), "a recorded step");
        end_values(compute, slot);
        compute->stepping = false;
        return true;
    }
    end_values(compute, slot);
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
    if (compute->forked) { /* the step failed within a fork */
        fork_end(compute);
        fork_join(compute);
    }
    plan->ran = true;
    if (!plan->recording) return cuda_status(compute);
    plan->recording = false;
    cudaGraph_t graph = nullptr;
    cuda_note(compute, cudaStreamEndCapture(compute->stream, &graph), "recording a step");
    if (!compute->failed)
        cuda_note(compute, cudaGraphInstantiate(&plan->graph, graph, 0), "instantiating a plan");
    if (graph) cuda_note(compute, cudaGraphDestroy(graph), "freeing a recording");
    if (!compute->failed)
        cuda_note(compute, cudaGraphLaunch(plan->graph, compute->stream), "a recorded step");
    return cuda_status(compute);
}

/* ---- The check ----------------------------------------------------------------------------------- */

__global__ static void check_losses(vlp_step_report *report, vlp_step_check check,
                                    const vlp_step_values *values) {
    vlp_step_check_apply(report, &check, values->step);
}

static void check_step(vlp_compute *compute, vlp_step_report *report, const vlp_step_check *check) {
    assert(check->tables >> VLP_MAX_TABLES == 0);
    LAUNCH(compute, check_losses, 1, 1, 0, report, *check, compute->values);
}

/* ---- The batch ----------------------------------------------------------------------------------- */

/* Lanes per query: they share its references. */
enum { CHOOSE_LANES = 8 };

/* All of a query but its references. */
__device__ static void set_query(const vlp_query_tables &tables, const vlp_batch &batch, int64_t i,
                                 const vlp_drawn &drawn, const vlp_triple &triple) {
    int64_t item = drawn.query % tables.triples;
    bool forward = drawn.query < tables.triples;
    int32_t answer = forward ? triple.tail : triple.head;
    double weight = 1;
    if (tables.weigh) {
        int64_t answers = static_cast<int64_t>(tables.known_counts[item]) +
                          static_cast<int64_t>(tables.known_counts[item + tables.triples]);
        weight = 1 / sqrt(static_cast<double>(answers + 6));
    }
    if (batch.known_begin) {
        batch.known_begin[i] = drawn.known_begin;
        batch.known_end[i] = drawn.known_end;
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
    vlp_drawn drawn = vlp_batch_draw(&tables, values->step * batch.count + i);
    int64_t query = drawn.query;
    int64_t row = tables.of_batch ? i : query;
    bool forward = query < tables.triples;
    if (lane == 0) set_query(tables, batch, i, drawn, tables.items[query % tables.triples]);
    if (!batch.reference_counts) return;
    int32_t count = tables.edges ? tables.edge_counts[row] : 0;
    if (lane == 0) batch.reference_counts[i] = count;
    for (int32_t j = lane; j < count; j += CHOOSE_LANES) {
        vlp_triple edge = tables.items[tables.edges[row * tables.capacity + j].edge];
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

/* NO_QUERY: an int32_t of bytes 0x7f, which memset can write; batches have at most 10^6 queries. */
enum { COLUMN_THREADS = 1024, NO_QUERY = 0x7f7f7f7f };

__global__ static void mark_answers(int32_t *first, const int32_t *answers, int32_t count) {
    int32_t i = static_cast<int32_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&first[answers[i]], i);
}

/* One block: distinct answers in the order of their first queries, then other entities in the order of
 * the step's permutation. first (entities): the first query with that answer, or NO_QUERY; column
 * (count): the column of the answer of such a first query. */
__global__ static void __launch_bounds__(COLUMN_THREADS)
    choose_ids(vlp_columns columns, int32_t *column, const int32_t *first, vlp_column_options options,
               const vlp_step_values *values) {
    const int32_t *answers = options.answers;
    int32_t count = options.count, candidates = options.candidates, entities = options.entities;
    int32_t used = 0, total, capacity = count + candidates;
    for (int32_t start = 0; start < count; start += COLUMN_THREADS) {
        int32_t i = start + threadIdx.x;
        bool is_first = i < count && first[answers[i]] == i;
        int32_t at = used + flags_before(is_first, &total);
        if (is_first) {
            columns.ids[at] = answers[i];
            columns.offsets[at] = 0;
            column[i] = at;
        }
        used += total;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < count; i += COLUMN_THREADS)
        columns.answers[i] = column[first[answers[i]]];
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
        int32_t at = used + flags_before(other, &total);
        if (other && at < distinct + wanted) {
            columns.ids[at] = entity;
            columns.offsets[at] = correction;
        }
        used += total;
    }
    for (int32_t i = distinct + wanted + threadIdx.x; i < capacity; i += COLUMN_THREADS) {
        columns.ids[i] = -1;
        columns.offsets[i] = -INFINITY;
    }
}

/* The same number of columns in every step: plans have fixed shapes. Masked columns have an offset of
 * -inf. */
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
