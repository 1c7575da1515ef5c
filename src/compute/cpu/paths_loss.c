/* The loss of a key over its candidates, and the gradients of their scores. */
#include <math.h>

#include "base/vector_math.h"
#include "compute/cpu/paths_kernels.h"

/* The position of an entity among the candidates; -1: it is none of them. Candidates within `near` hops
 * are the first nodes, the others follow in ascending order. */
static int32_t candidate_of(const path_local *local, int32_t entity) {
    int32_t node = local->number[entity], low = local->near_count, high = local->candidate_count;
    if (node < low) return node;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (local->queue[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < local->candidate_count && local->queue[low] == node ? low : -1;
}

/* values become exp(values - largest); returns their sum. */
static VLP_CLONES double exponentials(float *values, float largest, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        values[i] = expf(values[i] - largest);
        sum += (double)values[i];
    }
    return sum;
}

/* The softmax over the candidates that compete, as exponentials of what is above the largest. */
typedef struct path_softmax {
    float largest;
    double total;
    double zero; /* the part of the entities without a state */
} path_softmax;

/* score_grads become the exponentials, 0 for the key's answers. */
static path_softmax softmax(path_work *work, const path_key *key) {
    const path_local *local = &work->local;
    float *values = work->score_grads, largest = -INFINITY;
    int64_t unreached = local->unreached;
    for (int32_t i = 0; i < local->candidate_count; i++)
        values[i] = work->scores[i] - (i < local->near_count ? 0 : key->log_share);
    for (int64_t i = 0; i < key->count; i++) {
        int32_t at = candidate_of(local, key->answers[i]);
        if (at >= 0)
            values[at] = -INFINITY;
        else
            unreached--;
    }
    for (int32_t i = 0; i < local->candidate_count; i++)
        if (values[i] > largest) largest = values[i];
    if (unreached > 0 && work->zero_score > largest) largest = work->zero_score;
    path_softmax out = {largest, 0, 0};
    if (largest == -INFINITY) {
        memset(values, 0, (size_t)local->candidate_count * sizeof *values);
        return out;
    }
    out.total = exponentials(values, largest, local->candidate_count);
    if (unreached > 0) out.zero = (double)unreached * exp((double)(work->zero_score - largest));
    out.total += out.zero;
    return out;
}

/* Softmax weights become gradients: small ones are kept with a probability in proportion. */
static void scale_gradients(path_work *work, const path_key *key, double total, double sum) {
    const path_local *local = &work->local;
    float *grads = work->score_grads, scale = (float)(sum / total);
    float least = key->prune * (float)total;
    for (int32_t i = 0; i < local->candidate_count; i++) {
        if (grads[i] < least && grads[i] > 0) {
            uint32_t entity = (uint32_t)local->nodes[local->queue[i]].entity;
            vlp_random4 r = vlp_random(key->seed, VLP_STREAM_PATH_GRADIENTS, 0, entity);
            grads[i] = vlp_random_unit(r.v[0]) * least < grads[i] ? least : 0;
        }
        grads[i] *= scale;
    }
}

double path_loss(path_work *work, float *zero_grad, const path_key *key) {
    const path_local *local = &work->local;
    path_softmax all = softmax(work, key);
    double log_total = (double)all.largest + log(all.total), loss = 0, sum = 0;
    int64_t hidden = 0;
    for (int64_t i = 0; i < key->count; i++) hidden += key->hidden[i];
    assert(hidden > 0);
    *zero_grad = 0;
    if (all.total == 0) return 0; /* every entity is an answer */
    double weight = key->weight / (double)hidden;
    for (int64_t i = 0; i < key->count; i++) {
        int32_t at = candidate_of(local, key->answers[i]);
        double score = (double)(at >= 0 ? work->scores[at] : work->zero_score);
        double above = log_total - score;
        if (key->hidden[i])
            loss += weight * (above > 0 ? above + log1p(exp(-above)) : log1p(exp(above)));
        if (key->hidden[i]) sum += weight / (1 + exp(-above));
    }
    scale_gradients(work, key, all.total, sum);
    *zero_grad = (float)(sum * all.zero / all.total);
    for (int64_t i = 0; i < key->count; i++) {
        if (!key->hidden[i]) continue;
        int32_t at = candidate_of(local, key->answers[i]);
        float *grad = at >= 0 ? work->score_grads + at : zero_grad;
        double score = (double)(at >= 0 ? work->scores[at] : work->zero_score);
        *grad -= (float)(weight / (1 + exp(score - log_total)));
    }
    return loss;
}
