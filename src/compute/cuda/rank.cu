/* Rank counts, a block a query: how many candidates score above the answer, how many the same, for
 * several mixtures of the two scores at once. */
#include "compute/cuda/device.h"

enum { RANK_THREADS = 512, RANK_GROUP = 9 };

/* Mixed scores are made by the same instructions for everyone: the answer's score, rounded otherwise,
 * would invent ties. */
__device__ static float mixed(const float *vertical, const float *horizontal, vlp_mixture mixture,
                              int64_t e) {
    float h = __fmul_rn(mixture.horizontal, horizontal[e]);
    return vertical ? __fmaf_rn(mixture.vertical, vertical[e], h) : h;
}

/* A few mixtures at a time, so that their counts stay in registers. */
__global__ static void __launch_bounds__(RANK_THREADS)
    rank_rows(int32_t *above, int32_t *equal, int *bad, const float *vertical, const float *horizontal,
              const int32_t *answers, const int64_t *filter_offset, const int32_t *filtered,
              const uint8_t *only, const vlp_mixture *mixtures, int32_t mixture_count,
              int32_t entities) {
    __shared__ int shared[32];
    int64_t i = blockIdx.x;
    int32_t answer = answers[i], first = static_cast<int32_t>(blockIdx.y) * RANK_GROUP;
    if (vertical) vertical += i * entities;
    horizontal += i * entities;
    vlp_mixture mine[RANK_GROUP];
    float gold[RANK_GROUP];
    int more[RANK_GROUP], same[RANK_GROUP], wrong = 0;
#pragma unroll
    for (int m = 0; m < RANK_GROUP; m++) {
        mine[m] = mixtures[first + m < mixture_count ? first + m : mixture_count - 1];
        gold[m] = mixed(vertical, horizontal, mine[m], answer);
        more[m] = same[m] = 0;
    }
    for (int32_t e = threadIdx.x; e < entities; e += RANK_THREADS) {
        bool competes = e != answer && (!only || only[e]);
#pragma unroll
        for (int m = 0; m < RANK_GROUP; m++) {
            float score = mixed(vertical, horizontal, mine[m], e);
            wrong |= score != score;
            more[m] += competes && score > gold[m];
            same[m] += competes && score == gold[m];
        }
    }
    for (int64_t f = filter_offset[i] + threadIdx.x; f < filter_offset[i + 1]; f += RANK_THREADS) {
        int32_t e = filtered[f];
        if (e == answer || (only && !only[e])) continue;
#pragma unroll
        for (int m = 0; m < RANK_GROUP; m++) {
            float score = mixed(vertical, horizontal, mine[m], e);
            more[m] -= score > gold[m];
            same[m] -= score == gold[m];
        }
    }
#pragma unroll
    for (int m = 0; m < RANK_GROUP; m++) {
        int all_more = block_sum(more[m], shared), all_same = block_sum(same[m], shared);
        if (threadIdx.x > 0 || first + m >= mixture_count) continue;
        above[i * mixture_count + first + m] = all_more;
        equal[i * mixture_count + first + m] = all_same;
    }
    if (wrong) *bad = 1; /* whoever it is, it is the same */
}

vlp_status cuda_rank(vlp_compute *compute, int32_t *above, int32_t *equal, const float *vertical,
                     const float *horizontal, const int32_t *answers, const int64_t *filter_offset,
                     const int32_t *filtered, const uint8_t *only, const vlp_mixture *mixtures,
                     int32_t mixture_count, int32_t entities, int64_t count) {
    if (count == 0 || mixture_count == 0) return cuda_status(compute);
    size_t bytes = static_cast<size_t>(mixture_count) * sizeof *mixtures;
    vlp_mixture *there = scratch<vlp_mixture>(compute, SLOT_MIXTURES, mixture_count);
    if (!there) return cuda_status(compute);
    cuda_note(compute, cudaMemcpyAsync(there, mixtures, bytes, cudaMemcpyDefault, compute->stream),
              "copying");
    cuda_note(compute, cudaMemsetAsync(compute->flag, 0, sizeof(int), compute->stream),
              "clearing memory");
    dim3 grid(static_cast<unsigned>(count), cuda_blocks(mixture_count, RANK_GROUP));
    LAUNCH(compute, rank_rows, grid, RANK_THREADS, 0, above, equal, compute->flag, vertical, horizontal,
           answers, filter_offset, filtered, only, there, mixture_count, entities);
    int bad = 0;
    cuda_note(compute,
              cudaMemcpyAsync(&bad, compute->flag, sizeof bad, cudaMemcpyDeviceToHost, compute->stream),
              "copying");
    cuda_note(compute, cudaStreamSynchronize(compute->stream), "ranking");
    vlp_status status = cuda_status(compute);
    if (status == VLP_OK && bad) return cuda_fail(VLP_ERROR_FORMAT, "a score is not a number");
    return status;
}
